//! One line for each thing that happens to a phase: for pipes and CI, where no live view is drawn.

use super::detail::failure;
use super::spans::{Paint, Spans};
use super::wait::LimitWaitRow;
use super::{NAME_CHARS_MAX, NAMES_MAX, commit, ids, message, shown, title};
use crate::list::{self, count};
use crate::{Style, duration};
use backstop_core::{Reason, SafeText};
use std::time::Duration;

/// Something that happened to a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The phase's id, such as `2A`.
    pub id: SafeText,
    /// Its name.
    pub name: SafeText,
    /// What happened.
    pub kind: ChangeKind,
}

/// A phase whose attempt is running.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningPhase {
    /// The phase's id, such as `2B`.
    pub id: SafeText,
    /// The agent that works on it, where it has said so.
    pub agent: Option<SafeText>,
}

/// What follows a failed attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Then {
    /// The next attempt starts at once.
    RetriedNow,
    /// The next attempt starts when these phases have finished.
    RetriedAfter(Vec<SafeText>),
    /// The next attempt starts after this time.
    RetriedIn(Duration),
    /// The next attempt starts when this rate limit is over.
    Waits {
        /// The rate limit.
        limit: LimitWaitRow,
        /// The phases that go on meanwhile.
        beside: Vec<RunningPhase>,
    },
    /// Somebody else makes the next attempt, at once.
    TakenOver(SafeText),
    /// No further attempt: the phase failed, and the run halts when the others have finished.
    Fails,
}

/// What happened to a phase.
#[derive(Debug, Clone, PartialEq)]
pub enum ChangeKind {
    /// An attempt began.
    Started {
        /// The attempt's number, counted from 1.
        attempt: u32,
        /// How many attempts are allowed.
        of: u32,
    },
    /// The agent of an attempt continues its earlier session.
    SameSession {
        /// The attempt's number, counted from 1.
        attempt: u32,
        /// The agent.
        agent: SafeText,
    },
    /// An attempt failed.
    AttemptFailed {
        /// The attempt's number, counted from 1.
        attempt: u32,
        /// The reason for the failure.
        reason: Reason,
        /// The error message.
        message: SafeText,
        /// What follows the failure.
        then: Then,
    },
    /// A gate passed.
    GatePassed {
        /// Its name.
        gate: SafeText,
        /// How long it took.
        elapsed: Duration,
    },
    /// A gate failed.
    GateFailed {
        /// Its name.
        gate: SafeText,
        /// The reason for the failure.
        reason: Reason,
        /// The error message.
        message: SafeText,
    },
    /// Tests failed, and passed when they were run again unchanged.
    Flaky {
        /// Their names.
        tests: Vec<SafeText>,
    },
    /// Its work conflicts with what was merged before.
    Conflicted {
        /// The files in conflict.
        files: Vec<SafeText>,
        /// Whether it is run again on the new tip.
        rerun: bool,
    },
    /// A commit was made.
    Committed {
        /// Its short sha.
        sha: SafeText,
        /// Its subject.
        subject: SafeText,
    },
    /// It is complete.
    Complete {
        /// How long it took.
        elapsed: Duration,
        /// How many attempts it took.
        attempts: u32,
    },
    /// It cannot run, because a phase that it depends on failed.
    Blocked {
        /// The phases that failed.
        by: Vec<SafeText>,
    },
    /// It is skipped.
    Skipped {
        /// Why it was skipped.
        why: SafeText,
    },
    /// Its attempt was stopped because the run was interrupted.
    Stopped {
        /// The attempt's number, counted from 1.
        attempt: u32,
    },
}

/// The line of a change, for example:
/// `2A Backend: attempt 1 failed: test_failure: 3 tests in auth.test.ts; retried after 2B`.
pub fn plain_line(change: &Change, style: Style) -> String {
    let head = Spans::default().painted(Paint::Strong, title(&change.id, &change.name, style)).plain(": ");
    head.then(change_text(&change.kind, style)).show(style)
}

fn change_text(kind: &ChangeKind, style: Style) -> Spans {
    let name = |text: &SafeText| shown(text, NAME_CHARS_MAX, style);
    let because = |why: &SafeText| match why.raw().trim().is_empty() {
        true => String::new(),
        false => format!(": {}", message(why, style)),
    };
    Spans::of(match kind {
        ChangeKind::Started { attempt: 1, .. } => "started".to_owned(),
        ChangeKind::Started { attempt, of } => format!("attempt {attempt} of {of} started"),
        ChangeKind::SameSession { attempt, agent } => {
            format!("attempt {attempt} continues the same session of {}", name(agent))
        }
        ChangeKind::AttemptFailed { attempt, reason, message, then } => {
            let failed = Spans::of(format!("attempt {attempt} failed: "));
            return failed.then(failure(*reason, message, style)).plain(follow_up_text(then, style));
        }
        ChangeKind::GatePassed { gate, elapsed } => {
            format!("gate {} passed after {}", name(gate), duration(*elapsed))
        }
        ChangeKind::GateFailed { gate, reason, message } => {
            return Spans::of(format!("gate {} failed: ", name(gate))).then(failure(*reason, message, style));
        }
        ChangeKind::Flaky { tests } => {
            let number = count(u64::try_from(tests.len()).unwrap_or(u64::MAX), "flaky test", "flaky tests");
            format!("{number}: {}", style.marks(&list::names(tests, NAMES_MAX, NAME_CHARS_MAX)))
        }
        ChangeKind::Conflicted { files, rerun } => {
            let files = style.marks(&list::names(files, NAMES_MAX, NAME_CHARS_MAX));
            let then = if *rerun { "; run again on the new tip" } else { "" };
            return Spans::default().painted(Paint::Bad, "conflict").plain(format!(" in {files}{then}"));
        }
        ChangeKind::Committed { sha, subject } => format!("committed {}", commit(sha, subject, style)),
        ChangeKind::Complete { elapsed, attempts } => {
            let attempt = if *attempts > 1 { format!(" on attempt {attempts}") } else { String::new() };
            let after = format!("{attempt} after {}", duration(*elapsed));
            return Spans::default().painted(Paint::Good, "complete").plain(after);
        }
        ChangeKind::Blocked { by } => format!("blocked by {}", ids(by, style)),
        ChangeKind::Skipped { why } => format!("skipped{}", because(why)),
        ChangeKind::Stopped { attempt } => format!("attempt {attempt} stopped, the run was interrupted"),
    })
}

fn follow_up_text(then: &Then, style: Style) -> String {
    match then {
        Then::RetriedNow => "; retried now".to_owned(),
        Then::RetriedAfter(phases) if phases.is_empty() => "; retried now".to_owned(),
        Then::RetriedAfter(phases) => format!("; retried after {}", ids(phases, style)),
        Then::RetriedIn(wait) => format!("; retried in {}", duration(*wait)),
        Then::Waits { limit, beside } => format!("; {}{}", limit.words(style), go_on(beside, style)),
        Then::TakenOver(to) => format!("; {} takes over", shown(to, NAME_CHARS_MAX, style)),
        Then::Fails => "; not tried again".to_owned(),
    }
}

/// ` · 2B goes on with codex`; nothing where no other phase is running.
fn go_on(beside: &[RunningPhase], style: Style) -> String {
    let one = |phase: &RunningPhase| {
        let id = shown(&phase.id, NAME_CHARS_MAX, style);
        let agent = phase.agent.as_ref().map(|agent| shown(agent, NAME_CHARS_MAX, style));
        format!("{id} goes on{}", agent.map(|agent| format!(" with {agent}")).unwrap_or_default())
    };
    let lines: Vec<String> = beside.iter().take(NAMES_MAX).map(one).collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!("{}{}{}", style.marks(" · "), lines.join(", "), list::more(beside.len(), NAMES_MAX)),
    }
}
