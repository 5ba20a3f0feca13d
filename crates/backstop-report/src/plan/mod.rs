//! The texts about a plan's run: before it starts, while it runs, when it halts and when it is
//! complete.
//!
//! Values in, text out: it must not read a clock, a journal or a terminal, and must not decide
//! anything. Text from outside is escaped here and cut to the width of the terminal. Only commands
//! may be wider than the width that was asked for.
//!
//! - [`PhaseRow`] is one phase; [`live_view`] shows all of them with a progress bar,
//!   [`PlanStatus`] those of an earlier run.
//! - [`Change`] is one thing that happened to a phase, as a line for pipes and CI; [`LogEvent`] the
//!   same for the log file.
//! - [`HaltSummary`], [`Completion`] and [`DryRun`] are a run's summaries, as a text and as JSON.
//! - [`FreshStart`] is the warning before an earlier run is put aside.
//! - [`remaining`] estimates how long a run still takes.
//!
//! Three things differ from the autobuild seed, on purpose. An attempt that is retried without a
//! person has one line and no banner, page or batch report: nobody has to act on it, and a banner
//! would scroll the live view away; the retry guidance goes into the agent's prompt. What halts a
//! run is told once, in the box, with its files, its ways out and the command that continues, and
//! not a second time on a page for each error. A plan with a cycle or a syntax error never becomes
//! a run: it is refused with its line and column before anything is started.

mod agent_words;
mod boxed;
mod change;
mod completion;
mod completion_json;
mod detail;
mod dry_run;
mod dry_run_json;
mod ended_phases;
mod fresh_start;
mod halt;
mod halt_json;
mod live;
mod log;
mod phase_details;
mod phases;
mod remaining;
mod row;
mod spans;
mod status;
#[cfg(test)]
mod tests;
mod usage;
mod wait;

pub use agent_words::agent_words;
pub use change::{Change, ChangeKind, RunningPhase, Then, plain_line};
pub use completion::{CompletePhase, Completion, completion_line, completion_summary};
pub use completion_json::completion_json;
pub use dry_run::{DryPhase, DryRun, PlanReading, Wave, dry_run};
pub use dry_run_json::dry_run_json;
pub use ended_phases::{BlockedPhase, CompletedPhase, FailedPhase, PendingPhase, PreservedState};
pub use fresh_start::{FreshStart, fresh_start};
pub use halt::{HaltSummary, halt_summary};
pub use halt_json::halt_json;
pub use live::{Progress, live_view};
pub use log::{LogEvent, log_line};
pub use phase_details::{PhaseDetails, phase_details};
pub use phases::{AttemptChanges, AttemptLog, ChangedPhase, ChangedPhases, VerifiedGate, VerifiedGates};
pub use remaining::{Ahead, Course, remaining};
pub use row::{PhaseRow, PhaseState};
pub use status::{PlanStatus, RunState, plan_status, plan_status_json};
pub use wait::{LimitWaitRow, WaitSum};

use crate::Style;
use crate::list::more;
use backstop_core::SafeText;

/// The length to which a phase's id is cut.
const ID_CHARS_MAX: usize = 20;
/// Where the details of a phase are, below an ending.
const SHOW_HINT: &str = "Details of a phase: backstop plan show PHASE";
/// The length to which a name, a path or a subject is cut.
const NAME_CHARS_MAX: usize = 200;
/// The length to which a message is cut.
const MESSAGE_CHARS_MAX: usize = 600;
/// How many names are listed on one line.
const NAMES_MAX: usize = 8;
/// The length to which a command is cut: the longest path that a system allows fits in it twice.
const COMMAND_CHARS_MAX: usize = 16_384;

/// Text from outside on one line: escaped, cut, and in the characters that the terminal has.
fn shown(text: &SafeText, chars_max: usize, style: Style) -> String {
    style.marks(&text.line(chars_max))
}

/// A command to type: escaped, and not cut.
fn command(text: &SafeText) -> String {
    text.line(COMMAND_CHARS_MAX)
}

/// Ids, separated by commas.
fn ids(list: &[SafeText], style: Style) -> String {
    let shown: Vec<String> = list.iter().take(NAMES_MAX).map(|id| shown(id, ID_CHARS_MAX, style)).collect();
    format!("{}{}", shown.join(", "), more(list.len(), NAMES_MAX))
}

/// `2A Backend`; without the name where there is none.
fn title(id: &SafeText, name: &SafeText, style: Style) -> String {
    let title = format!("{} {}", shown(id, ID_CHARS_MAX, style), shown(name, NAME_CHARS_MAX, style));
    title.trim().to_owned()
}

/// `a1b2c3d chore: add tools`.
fn commit(sha: &SafeText, subject: &SafeText, style: Style) -> String {
    title(sha, subject, style)
}

/// A message on one line, or `(no message)`.
fn message(text: &SafeText, style: Style) -> String {
    let line = shown(text, MESSAGE_CHARS_MAX, style);
    if line.is_empty() { "(no message)".to_owned() } else { line }
}
