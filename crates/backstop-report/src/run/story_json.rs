//! The story of a run as JSON.

use super::sentences;
use super::{AttemptStory, RunStory, StoryEntry};
use crate::json::ms;
use crate::{JSON_SCHEMA, summary};
use backstop_core::Reason;
use serde_json::{Value, json};

/// The story as JSON: the run, its `entries` (attempts and notes) in order, and its ending.
pub fn story_json(story: &RunStory) -> Value {
    let ending = story.ending.as_ref();
    json!({
        "schema": JSON_SCHEMA,
        "run": story.run,
        "surface": story.surface,
        "caller": story.caller,
        "session": story.session,
        "operation": story.operation,
        "folder": story.folder,
        "profile": story.profile,
        "parent": story.parent,
        "started": story.started,
        "last_event": story.last,
        "duration_ms": ms(story.total()),
        "outcome": ending.map(|_| sentences::outcome_word(story)),
        "reason": ending.and_then(|ending| ending.reason),
        "class": ending.and_then(|ending| ending.reason).map(Reason::class),
        "attempts": story.attempts_made(),
        "exit": ending.and_then(|ending| ending.exit),
        "next": ending.and_then(|ending| ending.next.as_ref()),
        "entries": story.entries.iter().map(entry).collect::<Vec<_>>(),
    })
}

fn entry(entry: &StoryEntry) -> Value {
    match entry {
        StoryEntry::Attempt(attempt) => attempt_json(attempt),
        StoryEntry::Note { at, kind, text_utc, .. } => {
            json!({ "kind": kind, "at": at, "text": text_utc })
        }
    }
}

fn attempt_json(attempt: &AttemptStory) -> Value {
    json!({
        "kind": "attempt",
        "operation": attempt.operation,
        "attempt": attempt.attempt,
        "started": attempt.started,
        "duration_ms": attempt.duration.map(ms),
        "success": attempt.success,
        "exit": attempt.exit,
        "signal": attempt.signal,
        "output": attempt.output,
        "log": attempt.log,
        "lost": attempt.lost,
        "fault": attempt.fault,
        "summary": attempt.fault.as_ref().map(summary),
        "decision": attempt.decision,
        "reclassified": attempt.reclassified,
        "recovery": attempt.recovery.as_ref().map(|(strategy, success)| json!({ "strategy": strategy, "success": success })),
    })
}
