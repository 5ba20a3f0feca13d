//! Every text that people read, and its JSON. Text from outside is escaped for where it is shown.
//!
//! It must not print, decide or look anything up: values in, text out. What it renders:
//!
//! - a [`Fault`], the taxonomy as a table, and the page of one [`Reason`];
//! - a [`Notice`]: each text about a tool call that failed or a fresh start, for a terminal, for
//!   Markdown and as JSON, and the [`failure_report`] for programs;
//! - alerts to people who did not watch the run ([`alert`]), also for Slack ([`Notice::slack`]);
//! - guidance: what an agent is told before a retry ([`fault_guidance`]), and what a person does
//!   when retries did not help ([`user_actions`]);
//! - statistics of many runs ([`StatsReport`]), and the messages that no rule knows
//!   ([`DriftReport`]);
//! - a run: its lines while it runs, its events, and its story afterwards ([`RunStory`]);
//! - the answers of hooks: to a person about a task's error ([`task_error`]), and to an agent about
//!   a failed call ([`agent_failure`]);
//! - what commands show, each a [`View`] with text for people and JSON for programs: lists of
//!   guards, budgets, runs and rules, checks, changes;
//! - a plan's run ([`plan`]): its phases while they run, its halt, its completion, its log.
//!
//! [`Fault`]: backstop_core::Fault
//! [`Reason`]: backstop_core::Reason

mod alert;
mod campaign;
mod commands;
mod diagnosis;
mod drift;
mod fault;
mod guidance;
mod hook;
mod json;
mod list;
mod model;
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
mod view;
mod width;

pub use alert::{Alert, Form, alert, name_list, notify_test};
pub use campaign::{CampaignReport, LessonRow, Lessons, TaskRow, UnreachableRow};
pub use commands::{
    AgentList, AgentRow, BudgetChange, BudgetList, Check, CheckState, Checks, CleanedStore, ConfigChange,
    DEMO_COMMAND_STARTS, DEMO_FAULTS_END, DEMO_FAULTS_START, DeferredDropped, DeferredList, DemoPlan,
    FileChange, FileChanges, GuardCleared, GuardDecision, GuardList, HookChange, HookChanges, MessageRow,
    Messages, RuleDetails, RuleList, RulesAudited, RulesTested, SetAside, SetValue, SinkRow, SinkTest,
    SinkTests, TaskList, TaskResolved, TrustChange, TrustState, TrustedFiles, Unfrozen, deferred_offer,
    demo_command_ended, demo_command_json, demo_plan_ended, demo_plan_starts, demo_plan_stopped, demo_step,
    guard_countdown, guard_waits, server_move_last, servers_can_move, servers_moved, service_last,
};
pub use diagnosis::{DiagnosedError, Diagnosis};
pub use drift::{DriftReport, rule_stub};
pub use fault::{advice, fault, fault_json, success, summary};
pub use guidance::{GuidanceContext, fault_guidance, retry_guidance, user_actions};
pub use hook::{
    AgentFailure, FailedGate, TaskCommand, TaskError, TaskFollowUp, agent_denied, agent_failure,
    agent_frozen, agent_stop_blocked, task_error,
};
pub use json::{JSON_SCHEMA, to_json};
pub use list::fenced;
pub use model::{TrimReport, trim_json, trim_line};
pub use notice::Notice;
pub use plan::{FreshStart, fresh_start};
pub use reasons::{reason_json, reason_page, reasons_json, reasons_markdown, reasons_table};
pub use run::{
    AttemptStory, CommandEnding, DryRunReason, ExecDryRun, NO_RUNS, RunList, RunStory, StoryEnding,
    StoryEntry, attempt_failed, done, duration, event_emit, event_gdd, event_line, gave_up, loop_warning,
    retrying, reused_line, story, story_command, story_json, story_log, story_markdown,
};
pub use stats::{StatsBy, StatsReport, stats, stats_by, stats_json, stats_prometheus};
pub use style::Style;
pub use table::table;
pub use times::{date_time, near_time, set_zone_source, time_of_day, until_words};
pub use tool::{
    Advice, CacheMissing, CheckedServer, ExecutionFailure, FailedItem, ImportedFile, InvalidParameters,
    MissingServer, NO_SERVERS, NO_SERVERS_LINE, Param, PartialSuccess, RefreshedServer, StepState, ToolError,
    ToolNotFound, ToolRow, ToolTimeout, cache_missing, chain_steps, checked_json, checked_text,
    execution_failure, failure_report, failure_suggestion, generic_error, imported_json, imported_table,
    invalid_parameters, partial_success, refreshed_json, refreshed_table, tool_advice, tool_kind,
    tool_not_found, tool_page, tool_page_json, tool_timeout, tools_json, tools_table,
};
pub use view::View;
