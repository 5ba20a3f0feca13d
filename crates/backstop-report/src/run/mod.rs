//! A run: one line for each thing that happens, one line for each event, and the story afterwards.
//!
//! It must not read a journal or a clock: events and durations are given.

mod command_ending;
mod dry_run;
mod emit;
mod event;
mod gdd;
mod line;
mod sentences;
mod story;
mod story_json;
mod story_markdown;
mod story_text;
mod table;
#[cfg(test)]
mod tests;

pub use backstop_core::duration::shown as duration;
pub use command_ending::CommandEnding;
pub use dry_run::{DryRunReason, ExecDryRun};
pub use emit::event_emit;
pub(crate) use emit::value_within;
pub use event::event_line;
pub use gdd::event_gdd;
pub use line::{attempt_failed, done, gave_up, loop_warning, retrying, reused_line, story_command};
pub use story::{AttemptStory, RunStory, StoryEnding, StoryEntry};
pub use story_json::story_json;
pub use story_markdown::story_markdown;
pub use story_text::{story, story_log};
pub use table::RunList;

use crate::notice::Words;
pub(crate) use crate::times::date_time as date;
use crate::times::time_of_day as clock;
use crate::times::until_words;
use backstop_core::{Action, Decision, SafeText, Timestamp};

/// What is said where there is no run to tell the story of.
pub const NO_RUNS: &str = "no runs are recorded in this project yet; `backstop exec -- COMMAND` makes one, and \
    `backstop explain REASON` explains a reason\n";

/// The decision about an operation that is not known to be safe to repeat.
const CONFIRM: &str = "needs confirmation before it is retried";

/// A decision as part of a sentence; `time` writes times.
fn decision_words(decision: &Decision, time: fn(Timestamp) -> String) -> Words {
    let outside = |text: &str| Words::outside(&SafeText::from(text));
    match &decision.action {
        Action::Retry { after, attempt, of } if after.is_zero() => {
            format!("retry at once, attempt {attempt} of {of}").into()
        }
        Action::Retry { after, attempt, of } => {
            format!("retry in {}, attempt {attempt} of {of}", duration(*after)).into()
        }
        Action::AwaitGuard { provider, attempt, of, .. } => {
            let wait = Words::own("wait for the guard of ").and_words(outside(provider));
            wait.and_own(format!(", then attempt {attempt} of {of}"))
        }
        Action::Compress { keep_percent, attempt } => {
            format!("keep {keep_percent} % of the request, then attempt {attempt}").into()
        }
        Action::Fallback { to } => Words::own("use ").and_words(outside(to)).and_own(" instead"),
        Action::UsePartial => "use the partial result".into(),
        Action::Defer { until } => {
            Words::own("put aside until ").and_words(outside(&until_words(until, time)))
        }
        Action::Confirm { command } if command.trim().is_empty() => CONFIRM.into(),
        Action::Confirm { command } => Words::own(CONFIRM).and_own(": ").and_code(&command.as_str().into()),
        Action::Block => "block this part, the others go on".into(),
        Action::Halt => "halt the run".into(),
        Action::Surface => "do not try again".into(),
    }
}
