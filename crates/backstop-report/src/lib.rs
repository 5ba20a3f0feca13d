//! What people read. Every template lives here, and text from outside is escaped for where it goes.
//!
//! It must not print, decide or look anything up: values in, text out. The three things it renders are a [`Fault`], the
//! taxonomy as a table, and the page of one [`Reason`].
//!
//! [`Fault`]: backstop_core::Fault
//! [`Reason`]: backstop_core::Reason

mod fault;
mod json;
mod reasons;
mod style;
mod table;

pub use fault::{fault, fault_json, success, summary};
pub use json::{JSON_SCHEMA, to_json};
pub use reasons::{reason_page, reasons_json, reasons_markdown, reasons_table};
pub use style::Style;
pub use table::table;
