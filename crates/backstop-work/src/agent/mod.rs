//! One attempt of a phase: an agent or a command, run once in a folder, and what came of it.
//!
//! An [`Agent`] is data: a command line with placeholders, how it takes its prompt, in which
//! dialect it answers. [`prompt`] makes the prompt of an [`Assignment`]. [`attempt`] runs it under
//! a clock and gives an [`Attempted`]: the fault, where there is one, and the [`Envelope`] in which
//! the agent says what it did. Three signals judge a phase, and two of them are made here: how the
//! process ended, and what it claims. The third, the gates, is made elsewhere.
//!
//! It must not retry, decide, record, run gates or touch git.
//!
//! # How an attempt is judged
//!
//! The first row that fits decides. The envelope is returned beside the fault, whichever row it
//! was.
//!
//! | row | seen | fault |
//! |---|---|---|
//! | 1 | somebody asked for its end | `interrupted` |
//! | 2 | it asks something that nobody will answer, and was ended for it | what the question is about |
//! | 3 | our clock ended it, and its dialect had reported nothing | `timeout` |
//! | 4 | ended by a signal | what [`Ended::fault`](backstop_exec::Ended::fault) says |
//! | 5 | it ended by itself, whatever its exit code, and the envelope claims `failed` and says of what (`error.type`) | that reason |
//! | 6 | its dialect reports a failure, whatever the exit code, and also where it then hung until our clock ended it | what the classifier makes of status, provider and text |
//! | 7 | exit code not 0, and not both of: its dialect reports success, its envelope claims `complete` | what `Ended::fault` says |
//! | 8 | rows 6 and 7 say `unknown`, and the envelope claims `failed` | `task_incomplete`, with its words |
//! | 9 | an agent without a valid envelope; a command that wrote one that is not valid | `parse_error` |
//! | 10 | the envelope claims `failed` | `task_incomplete` |
//! | 11 | the envelope claims `complete` and leaves tasks open | `task_incomplete`, which names them |
//! | 12 | anything else | none |
//!
//! Where rows 6 or 7 decide and the envelope claims `complete`, the attempt is
//! [contradicted](Attempted::is_contradicted): gates that pass may decide otherwise.
//!
//! What counts as the dialect's report: for claude the last `result` line by `is_error`,
//! `api_error_status`, `terminal_reason` and `subtype` (`"subtype":"success"` stands on failures
//! too); for codex the last `turn.failed` or `turn.completed` (`error` lines are printed by
//! successful runs too); for opencode the last `error` or final `step_finish`; for gemini the last
//! `result` by `status`; for copilot the last `session.error` or the exit code in `result`; for
//! qwen what counts for claude. Over ACP (`acp`) only failures are reports: an error of JSON-RPC,
//! or a turn that ended otherwise than with `end_turn`. A command and an agent of plain text report
//! nothing.
//!
//! The envelope is looked for in the file that `BACKSTOP_RESULT` names, then in the agent's
//! structured output, then in what it said: the first valid one counts. A command's envelope, and
//! that of an agent over ACP, is looked for in the file only.

mod acp;
mod agent_error;
mod assignment;
mod attempt;
mod builtin;
mod definition;
mod delivery;
mod dialect;
mod envelope;
mod error;
mod find;
mod iterations;
mod judge;
mod lines;
mod overage;
mod own_retries;
mod phase;
mod places;
mod prompt;
mod question;
mod retry;
mod schema;
mod session;
mod survey;
mod trouble;

pub use crate::{Claim, CommandLine};
pub use acp::{KNOWN_ACP, KnownAcp, known_acp};
pub use agent_error::AgentError;
pub use assignment::{Assignment, GateToRun, Task};
pub use attempt::{Attempt, Attempted, Silences, Wanted, Work, attempt};
pub use builtin::{About, BUILTINS, Builtin, builtin, from_acp};
pub use definition::{
    AcpOptions, Agent, OutputDialect, PLACEHOLDERS, PromptBy, Resume, TemplateOptions, from_template,
};
pub use envelope::{ClaimedError, Envelope, Files, GateClaim};
pub use error::AttemptError;
pub use find::{OBJECT_BYTES_MAX, find_result};
pub use places::{RESULT_BYTES_MAX, result_file};
pub use prompt::{ask_for_result, continuation, prompt};
pub use retry::RetryContext;
pub use schema::RESULT_SCHEMA;
pub use session::{Continued, OnSession};
pub use survey::{SurveyedAgent, survey};
pub use trouble::ResultTrouble;
