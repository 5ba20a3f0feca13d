//! End to end, through the built binary.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::print_stdout)]

mod bad_input;
mod batch;
mod classify;
mod demo;
mod docs;
mod harness;
mod limits;
mod reference;
mod rules;
