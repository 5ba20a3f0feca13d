//! The detail column of a phase's line: attempts, tasks, commit, error.

use super::row::{PhaseRow, PhaseState};
use super::spans::{Paint, Spans};
use super::usage::usage_words;
use super::{NAME_CHARS_MAX, commit, ids, message, shown};
use crate::list::count;
use crate::{Style, duration};
use backstop_core::{Reason, SafeText};

/// The details of a phase in its state, most important first.
pub(super) fn detail(row: &PhaseRow, style: Style) -> Spans {
    let mut parts = Vec::new();
    let say = |parts: &mut Vec<Spans>, text: String| parts.push(Spans::of(text));
    match &row.state {
        PhaseState::Pending if !row.waits_for.is_empty() => {
            say(&mut parts, format!("waits for {}", ids(&row.waits_for, style)));
        }
        PhaseState::Pending => {}
        PhaseState::Running => parts.extend(attempt(row)),
        PhaseState::Checking(gate) => {
            say(&mut parts, format!("gate {}", shown(gate, NAME_CHARS_MAX, style)));
            parts.extend(attempt(row));
        }
        PhaseState::Integrating => say(&mut parts, "integrating".to_owned()),
        PhaseState::RetryWaiting if row.wait.is_some() => {}
        PhaseState::RetryWaiting => say(&mut parts, retry(row, style)),
        PhaseState::Complete => {
            parts.extend(row.commit.as_ref().map(|(sha, subject)| Spans::of(commit(sha, subject, style))));
            if row.retried {
                say(&mut parts, format!("on attempt {}", row.attempt.max(2)));
            }
        }
        PhaseState::Failed if row.attempt == 0 => {}
        PhaseState::Failed => say(&mut parts, format!("attempts {}", attempts(row))),
        PhaseState::Blocked if !row.waits_for.is_empty() => {
            say(&mut parts, format!("blocked by {}", ids(&row.waits_for, style)));
        }
        PhaseState::Blocked => say(&mut parts, "blocked".to_owned()),
        PhaseState::Skipped => say(&mut parts, "skipped".to_owned()),
    }
    if let Some(wait) = &row.wait {
        say(&mut parts, wait.words(style));
    } else if let Some(until) = row.until {
        say(&mut parts, format!("waits {} more", duration(until)));
    }
    if !row.state.finished() {
        if let Some((done, total)) = row.tasks.filter(|(_, total)| *total > 0) {
            say(&mut parts, format!("{done} of {}", count(total.into(), "task", "tasks")));
        }
        let error = row.error.as_ref().filter(|_| row.wait.is_none());
        parts.extend(error.map(|(reason, text)| failure(*reason, text, style)));
    }
    if row.flaky > 0 {
        say(&mut parts, count(row.flaky.into(), "flaky test", "flaky tests"));
    }
    if let Some(words) = row.usage.map(usage_words).filter(|words| !words.is_empty()) {
        say(&mut parts, words);
    }
    if let Some(note) = row.note.as_ref().filter(|note| !note.raw().trim().is_empty()) {
        say(&mut parts, message(note, style));
    }
    Spans::join(parts, style.dot())
}

/// `test_failure: 3 tests in auth.test.ts`.
pub(super) fn failure(reason: Reason, text: &SafeText, style: Style) -> Spans {
    let head = Spans::default().painted(Paint::Bad, reason.code());
    match text.raw().trim().is_empty() {
        true => head,
        false => head.plain(format!(": {}", message(text, style))),
    }
}

/// `attempt 2 of 2`; nothing for the first attempt.
fn attempt(row: &PhaseRow) -> Option<Spans> {
    (row.attempt > 1 || row.total_attempts > 1)
        .then(|| Spans::of(format!("attempt {} of {}{}", row.attempt, row.of, in_all(row))))
}

/// `2 of 2`, and the number in all where the run was resumed.
fn attempts(row: &PhaseRow) -> String {
    format!("{} of {}{}", row.attempt, row.of, in_all(row))
}

fn in_all(row: &PhaseRow) -> String {
    match row.total_attempts > row.attempt {
        true => format!(" ({} in all)", row.total_attempts),
        false => String::new(),
    }
}

fn retry(row: &PhaseRow, style: Style) -> String {
    let attempt = format!("attempt {} of {}", row.attempt.saturating_add(1), row.of);
    match row.waits_for.is_empty() {
        true => format!("{attempt} follows"),
        false => format!("{attempt} after {}", ids(&row.waits_for, style)),
    }
}
