//! All that is known of one phase, for `plan show`: what an ending leaves out.

use super::row::PhaseState;
use super::usage::usage_words;
use super::{COMMAND_CHARS_MAX, ID_CHARS_MAX, NAME_CHARS_MAX, command, ids, message, shown};
use crate::list::count;
use crate::{Style, duration};
use backstop_core::{Reason, SafeText, Usage};
use std::time::Duration;

/// How many commits are listed.
const COMMITS_MAX: usize = 50;
/// How many failed attempts are listed, the last ones.
const FAILURES_MAX: usize = 20;

/// One phase of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseDetails {
    /// Its id.
    pub id: SafeText,
    /// Its name.
    pub name: SafeText,
    /// Its state.
    pub state: PhaseState,
    /// How many attempts were made in all.
    pub attempts: u32,
    /// How long it was worked on.
    pub elapsed: Option<Duration>,
    /// How many of its tasks are done, and how many it has.
    pub tasks: Option<(u32, u32)>,
    /// The phases that it waits for.
    pub depends_on: Vec<SafeText>,
    /// The attempts that failed: number, reason and message.
    pub failures: Vec<(u32, Reason, SafeText)>,
    /// The gates of the last attempt: name, whether it passed, how long it took.
    pub gates: Vec<(SafeText, bool, Duration)>,
    /// Its commits: short sha and subject.
    pub commits: Vec<(SafeText, SafeText)>,
    /// What its agents used, as far as they say so.
    pub usage: Option<Usage>,
    /// The log of the last attempt, where there was one.
    pub log: Option<SafeText>,
    /// Commands that show more or put it right.
    pub next: Vec<SafeText>,
}

/// The details in lines.
pub fn phase_details(given: &PhaseDetails, style: Style) -> String {
    let name = shown(&given.name, NAME_CHARS_MAX, style);
    let head = style.strong(&format!("Phase {}: {name}", shown(&given.id, ID_CHARS_MAX, style)));
    let state = match &given.state {
        PhaseState::Failed => style.bad("failed"),
        PhaseState::Complete => style.good("complete"),
        state => state.name().replace('_', " "),
    };
    let mut parts = vec![state];
    parts.extend((given.attempts > 0).then(|| count(u64::from(given.attempts), "attempt", "attempts")));
    parts.extend(given.elapsed.map(duration));
    parts.extend(given.tasks.map(|(done, all)| format!("{done} of {all} tasks")));
    parts.extend(given.usage.map(usage_words).filter(|words| !words.is_empty()));
    let mut lines = vec![head, format!("  {}", parts.join(style.dot()))];
    if !given.depends_on.is_empty() {
        lines.push(format!("  after {}", ids(&given.depends_on, style)));
    }
    let skipped = given.failures.len().saturating_sub(FAILURES_MAX);
    for (attempt, reason, text) in given.failures.iter().skip(skipped) {
        lines.push(format!("  attempt {attempt}: {reason}: {}", message(text, style)));
    }
    for (gate, passed, took) in &given.gates {
        let word = if *passed { style.good("passed") } else { style.bad("failed") };
        let gate = shown(gate, NAME_CHARS_MAX, style);
        lines.push(format!("  gate {gate}: {word}{}{}", style.dot(), duration(*took)));
    }
    for (sha, subject) in given.commits.iter().take(COMMITS_MAX) {
        let (sha, subject) = (shown(sha, ID_CHARS_MAX, style), shown(subject, NAME_CHARS_MAX, style));
        lines.push(format!("  commit {sha} {subject}"));
    }
    if let Some(rest @ 1..) = given.commits.len().checked_sub(COMMITS_MAX) {
        lines.push(format!("  and {rest} more"));
    }
    lines.extend(given.log.iter().map(|log| format!("  log {}", command(log))));
    lines.extend(given.next.iter().map(|next| format!("next: {}", next.line(COMMAND_CHARS_MAX))));
    lines.push(String::new());
    lines.join("\n")
}
