//! Secrets are masked however they are written; what only looks like one stays; and the time grows
//! with the text and with nothing else.
#![allow(clippy::unwrap_used)] // A test may panic.

mod arguments;
mod growth;
mod harmless;
mod leaks;
mod planted;
