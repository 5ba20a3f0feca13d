//! Every text that people read, and its JSON. Text from outside is escaped for where it is shown.
//!
//! It must not print, decide or look anything up: values in, text out. What it renders:
//!
//! - a [`Fault`], the taxonomy as a table, and the page of one [`Reason`];
//! - a [`Notice`]: each text about a tool call that failed or a fresh start, for a terminal, for
//!   Markdown and as JSON, and the [`failure_report`] for programs;
//! - alerts to people who did not watch the run ([`alert`]), also for Slack ([`Notice::slack`]);
//! - guidance: what an agent is told before a retry ([`retry_guidance`]), and what a person does
//!   when retries did not help ([`user_actions`]);
//! - statistics of many runs ([`StatsReport`]), and the messages that no rule knows
//!   ([`DriftReport`]);
//! - a run: its lines while it runs, its events, and its story afterwards ([`RunStory`]);
//! - the answers of hooks: to a person about a task's error ([`task_error`]), and to an agent about
//!   a failed call ([`agent_failure`]);
//! - a plan's run ([`plan`]): its phases while they run, its halt, its completion, its log.
//!
//! [`Fault`]: backstop_core::Fault
//! [`Reason`]: backstop_core::Reason

mod alert;
mod diagnosis;
mod drift;
mod fault;
mod guidance;
mod hook;
mod json;
mod list;
mod notice;
pub mod plan;
mod reasons;
mod run;
#[cfg(test)]
mod samples;
mod stats;
mod style;
mod table;
mod times;
mod tool;
mod width;

pub use alert::{Alert, Form, alert, name_list, notify_test};
pub use diagnosis::{DiagnosedError, Diagnosis};
pub use drift::{DriftReport, DriftRow, drift, drift_json, rule_stub};
pub use fault::{advice, fault, fault_json, success, summary};
pub use guidance::{GuidanceContext, retry_guidance, user_actions};
pub use hook::{
    AgentFailure, FailedGate, TaskCommand, TaskError, TaskFollowUp, agent_denied, agent_failure,
    agent_frozen, agent_stop_blocked, task_error,
};
pub use json::{JSON_SCHEMA, to_json};
pub use notice::Notice;
pub use plan::{FreshStart, fresh_start};
pub use reasons::{reason_page, reasons_json, reasons_markdown, reasons_table};
pub use run::{
    AttemptStory, CommandEnding, DryRunReason, ExecDryRun, RunRow, RunStory, StoryEnding, StoryEntry,
    attempt_failed, done, duration, event_emit, event_gdd, event_line, gave_up, retrying, runs_table,
    runs_table_of_projects, story, story_command, story_json, story_log, story_markdown,
};
pub use stats::{SignatureRow, StatsBy, StatsReport, stats, stats_by, stats_json, stats_prometheus};
pub use style::Style;
pub use table::table;
pub use times::{date_time, near_time, set_zone_source, time_of_day, until_words};
pub use tool::{
    Advice, CacheMissing, ExecutionFailure, FailedItem, InvalidParameters, Param, PartialSuccess, ToolError,
    ToolKind, ToolNotFound, ToolTimeout, cache_missing, execution_failure, failure_report,
    failure_suggestion, generic_error, invalid_parameters, partial_success, tool_advice, tool_kind,
    tool_not_found, tool_timeout,
};
