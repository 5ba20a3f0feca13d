//! What is said about a tool call that failed: the skill-manager seed's texts.
//!
//! A template takes what is known and makes a [`Notice`](crate::Notice). It must not decide whether a call is repeated.

mod advice;
mod failure;
mod report;
mod request;

pub use advice::{Advice, ToolKind, tool_advice, tool_kind};
pub use failure::{
    ExecutionFailure, FailedItem, PartialSuccess, ToolError, ToolTimeout, execution_failure, generic_error,
    partial_success, tool_timeout,
};
pub use report::{failure_report, failure_suggestion};
pub use request::{
    CacheMissing, InvalidParameters, Param, ToolNotFound, cache_missing, invalid_parameters, tool_not_found,
};

/// The command that lists the tools anew.
const REFRESH: &str = "backstop tools refresh";
