//! The state file of one phase, in the shape that tools around plans know.

use crate::record::{AttemptError, PhaseProgress, RunRecord, Status};
use backstop_core::SafeText;
use serde_json::{Map, Value, json};

/// The version of the shape.
pub const PHASE_FILE_SCHEMA: u32 = 1;

/// How much of a message is written.
const MESSAGE_CHARS_MAX: usize = 500;

/// The state file of one phase.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseFile(Value);

impl PhaseFile {
    /// What is known of a phase.
    pub fn of(record: &RunRecord, at: usize) -> Self {
        let phase = record.phase(at);
        let blocks: Vec<&str> = record
            .plan
            .phases
            .iter()
            .filter(|other| other.depends_on.contains(&phase.plan.id))
            .map(|other| other.id.as_str())
            .collect();
        let delivery = phase.delivery.clone().unwrap_or_default();
        let gates: Map<String, Value> = phase
            .gates
            .iter()
            .map(|gate| (gate.gate.clone(), json!({ "passed": gate.passed, "flaky": gate.flaky })))
            .collect();
        let commit = phase.commits.last().map(|(sha, subject)| {
            json!({ "message": delivery.message.as_ref().unwrap_or(subject), "committed": true, "commit_sha": sha })
        });
        let commit =
            commit.or_else(|| delivery.message.as_ref().map(|m| json!({ "message": m, "committed": false })));
        Self(json!({
            "schema": PHASE_FILE_SCHEMA,
            "run": record.run,
            "seq": record.seq,
            "phase_id": phase.plan.id,
            "phase_name": phase.plan.name,
            "status": phase.status.name(),
            "skipped": phase.skipped,
            "attempt": phase.attempt,
            "max_attempts": record.plan.max_attempts,
            "total_attempts": phase.total,
            "timestamps": {
                "started_at": phase.started_at, "attempt_at": phase.attempt_at, "ended_at": phase.ended_at,
            },
            "dependencies": { "depends_on": phase.plan.depends_on, "blocks": blocks },
            "execution": {
                "tasks_total": phase.plan.tasks, "tasks_completed": delivery.tasks_done.len(),
                "worked_seconds": phase.worked_ms / 1000,
            },
            "quality_gates": gates,
            "commit": commit,
            "error": error(record, phase),
        }))
    }

    /// As it is written.
    pub fn to_text(&self) -> String {
        format!("{}\n", serde_json::to_string_pretty(&self.0).unwrap_or_default())
    }
}

/// `error.attempt_1`, `resolved_on_retry`, `final`; or who blocks it.
fn error(record: &RunRecord, phase: &PhaseProgress) -> Value {
    let mut fields = Map::new();
    for error in since_resume(record, phase) {
        fields.insert(format!("attempt_{}", error.attempt), told(error));
    }
    match phase.status {
        Status::Complete if !fields.is_empty() => {
            fields.insert("resolved_on_retry".to_owned(), Value::Bool(true));
        }
        Status::Failed => {
            let why = match fields.len() {
                0 => "Failed",
                1 => "Failed, and a retry makes no sense or was not begun",
                _ => "Failed after maximum retries",
            };
            fields.insert("final".to_owned(), Value::from(why));
        }
        Status::Blocked => {
            fields.insert("type".to_owned(), Value::from("blocked"));
            fields.insert("blocking_phase".to_owned(), json!(blockers(record, &phase.plan.id)));
        }
        _ => {}
    }
    if fields.is_empty() { Value::Null } else { Value::Object(fields) }
}

/// What failed since the run last went on; of a finished phase, what it failed of on its way.
fn since_resume<'r>(record: &RunRecord, phase: &'r PhaseProgress) -> impl Iterator<Item = &'r AttemptError> {
    let before = phase.total.saturating_sub(phase.attempt);
    let all = record.resumed == 0;
    phase.errors.iter().filter(move |error| all || error.total > before)
}

fn told(error: &AttemptError) -> Value {
    let fault = &error.fault;
    let message = fault.cause.as_ref().map_or_else(|| fault.suggested_action.clone(), SafeText::clone);
    let mut told = json!({ "type": fault.reason, "message": message.line(MESSAGE_CHARS_MAX) });
    let facts = &fault.facts;
    if let (Value::Object(fields), false) =
        (&mut told, facts.failed_tests.is_empty() && facts.files.is_empty())
    {
        fields.insert("details".to_owned(), json!({ "tests": facts.failed_tests, "files": facts.files }));
    }
    told
}

/// The failed phases that a phase waits for, at whatever distance.
pub(crate) fn blockers(record: &RunRecord, id: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    let mut open = vec![id.to_owned()];
    while let Some(at) = open.pop() {
        let Some(phase) = record.phases.get(&at) else { continue };
        for dep in &phase.plan.depends_on {
            if seen.insert(dep.clone()) {
                open.push(dep.clone());
            }
        }
    }
    found.extend(
        record
            .order
            .iter()
            .filter(|id| {
                seen.contains(*id) && record.phases.get(*id).is_some_and(|p| p.status == Status::Failed)
            })
            .cloned(),
    );
    found
}
