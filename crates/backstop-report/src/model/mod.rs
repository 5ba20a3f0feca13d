//! Texts about model requests.

mod trim;

pub use trim::{TrimReport, trim_json, trim_line};
