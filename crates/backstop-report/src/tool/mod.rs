//! Notices about tool calls that failed, the skill-manager seed's texts, and lists of servers and
//! tools.
//!
//! Each template turns a struct into a [`Notice`](crate::Notice). It must not decide whether a call
//! is retried.

mod advice;
mod failure;
mod report;
mod request;
mod servers;

pub use advice::{Advice, tool_advice, tool_kind};
pub use failure::{
    ExecutionFailure, FailedItem, PartialSuccess, ToolError, ToolTimeout, execution_failure, generic_error,
    partial_success, tool_timeout,
};
pub use report::{failure_report, failure_suggestion};
pub use request::{
    CacheMissing, InvalidParameters, Param, ToolNotFound, cache_missing, invalid_parameters, tool_not_found,
};

pub use servers::{
    CheckedServer, ImportedFile, MissingServer, NO_SERVERS, NO_SERVERS_LINE, RefreshedServer, StepState,
    ToolRow, chain_steps, checked_json, checked_text, imported_json, imported_table, refreshed_json,
    refreshed_table, tool_page, tool_page_json, tools_json, tools_table,
};

/// The command that refreshes the list of tools.
const REFRESH: &str = "backstop tools refresh";
