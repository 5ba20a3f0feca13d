//! A complete run as JSON.

use super::completion::{CompletePhase, Completion};
use super::row::commit_json;
use super::usage::usage_json;
use crate::JSON_SCHEMA;
use crate::json::ms;
use crate::notice::json_text;
use backstop_core::{SafeText, WorkAt};
use serde_json::{Value, json};

/// The summary of a complete run as JSON, with every phase. Commands, paths and refs are not
/// escaped.
pub fn completion_json(given: &Completion) -> Value {
    json!({
        "schema": JSON_SCHEMA,
        "outcome": "complete",
        "plan": given.plan.raw(),
        "run": given.run,
        "elapsed_ms": ms(given.elapsed),
        "attempts": given.attempts(),
        "retried": given.count(|phase| phase.retried),
        "skipped": given.count(|phase| phase.skipped),
        "commits": given.commits(),
        "files_changed": given.files_changed,
        "phases": given.phases.iter().map(phase_json).collect::<Vec<_>>(),
        "work": work_json(&given.work),
        "usage": given.usage.map(usage_json),
        "waits": given.waits.json(),
        "verified": given.is_verified(),
        "phases_verified": given.verified,
        "red": given.red.iter().map(json_text).collect::<Vec<_>>(),
        "notes": given.notes.iter().map(SafeText::raw).collect::<Vec<_>>(),
    })
}

fn phase_json(phase: &CompletePhase) -> Value {
    json!({
        "phase_id": json_text(&phase.id), "phase_name": json_text(&phase.name),
        "status": if phase.skipped { "skipped" } else { "complete" },
        "elapsed_ms": phase.elapsed.map(ms), "attempts": phase.attempts, "retried": phase.retried,
        "flaky_tests": phase.flaky.iter().map(json_text).collect::<Vec<_>>(),
        "gates_skipped": phase.gates_skipped.iter().map(json_text).collect::<Vec<_>>(),
        "commits": phase.commits.iter().map(commit_json).collect::<Vec<_>>(),
    })
}

/// `where` names the variant; fields that do not apply are null.
fn work_json(work: &WorkAt) -> Value {
    let (place, branch, sha, reference, why, command) = match work {
        WorkAt::Landed { branch, sha } => ("landed", Some(branch), Some(sha), None, None, None),
        WorkAt::Kept { reference, why, command } => {
            ("kept", None, None, Some(reference), Some(why), Some(command))
        }
        WorkAt::Uncommitted { command } => ("uncommitted", None, None, None, None, command.as_ref()),
    };
    json!({
        "where": place, "branch": branch.map(SafeText::raw), "sha": sha.map(SafeText::raw),
        "ref": reference.map(SafeText::raw), "why": why.map(json_text), "command": command.map(SafeText::raw),
    })
}
