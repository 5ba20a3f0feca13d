//! Model requests that recover.
//!
//! - [`api`]: the request formats that are known here, and how one is recognised.
//! - [`overflow`]: the numbers in a provider's message about a request that is too large.
//! - [`proxy`]: passes model requests on, with shared limits and recovery.
//! - [`trim`](mod@trim): makes a conversation smaller and leaves it valid.
//!
//! It must not print, read the environment or a clock.

pub mod api;
pub mod overflow;
pub mod proxy;
pub mod trim;

pub use api::Api;
pub use overflow::Overflow;
pub use trim::{TrimError, TrimOptions, Trimmed, trim};
