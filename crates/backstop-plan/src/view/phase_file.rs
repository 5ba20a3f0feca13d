//! The state file of one phase, in the format that existing tools for plans read.

use crate::record::{PhaseProgress, RunRecord, fault_message};
use backstop_runtime::host::{AttemptError, NodeStatus};
use serde_json::{Map, Value, json};

/// The version of the format.
pub const PHASE_FILE_SCHEMA: u32 = 1;

/// The longest error message in a state file.
const MESSAGE_CHARS_MAX: usize = 500;

/// The state file of one phase.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseFile(Value);

impl PhaseFile {
    /// The state file of a phase, by its place in the plan.
    pub fn of(record: &RunRecord, at: usize) -> Self {
        let phase = record.phase(at);
        let node = phase.node;
        let blocks: Vec<&str> = record
            .plan
            .phases
            .iter()
            .filter(|other| other.depends_on.contains(&phase.plan.id))
            .map(|other| other.id.as_str())
            .collect();
        let delivery = node.delivery.clone().unwrap_or_default();
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
            "run": record.progress.run,
            "seq": record.progress.seq,
            "phase_id": phase.plan.id,
            "phase_name": phase.plan.name,
            "status": node.status.name(),
            "skipped": node.skipped,
            "attempt": node.attempt,
            "max_attempts": record.plan.max_attempts,
            "total_attempts": node.total,
            "timestamps": {
                "started_at": node.started_at, "attempt_at": node.attempt_at, "ended_at": node.ended_at,
            },
            "dependencies": { "depends_on": phase.plan.depends_on, "blocks": blocks },
            "execution": {
                "tasks_total": phase.plan.tasks, "tasks_completed": delivery.tasks_done.len(),
                "worked_seconds": node.worked_ms / 1000,
            },
            "quality_gates": gates,
            "commit": commit,
            "error": errors_json(record, phase),
        }))
    }

    /// The JSON text.
    pub fn to_text(&self) -> String {
        format!("{}\n", serde_json::to_string_pretty(&self.0).unwrap_or_default())
    }
}

/// The field `error`: `attempt_1`, `resolved_on_retry`, `final`; or which phases block this one.
fn errors_json(record: &RunRecord, phase: PhaseProgress<'_>) -> Value {
    let mut fields = Map::new();
    for error in since_resume(record, phase) {
        fields.insert(format!("attempt_{}", error.attempt), error_json(error));
    }
    match phase.node.status {
        NodeStatus::Complete if !fields.is_empty() => {
            fields.insert("resolved_on_retry".to_owned(), Value::Bool(true));
        }
        NodeStatus::Failed => {
            let why = match fields.len() {
                0 => "Failed",
                1 => "Failed, and a retry makes no sense or was not begun",
                _ => "Failed after maximum retries",
            };
            fields.insert("final".to_owned(), Value::from(why));
        }
        NodeStatus::Blocked => {
            fields.insert("type".to_owned(), Value::from("blocked"));
            fields.insert("blocking_phase".to_owned(), json!(blockers(record, &phase.plan.id)));
        }
        _ => {}
    }
    if fields.is_empty() { Value::Null } else { Value::Object(fields) }
}

/// The failed attempts since the run was last started or resumed.
fn since_resume<'r>(record: &RunRecord, phase: PhaseProgress<'r>) -> impl Iterator<Item = &'r AttemptError> {
    let node = phase.node;
    let before = node.total.saturating_sub(node.attempt);
    let all = record.progress.resumed == 0;
    node.errors.iter().filter(move |error| all || error.total > before)
}

fn error_json(error: &AttemptError) -> Value {
    let fault = &error.fault;
    let message = fault_message(fault);
    let mut json = json!({ "type": fault.reason, "message": message.line(MESSAGE_CHARS_MAX) });
    let facts = &fault.facts;
    if let (Value::Object(fields), false) =
        (&mut json, facts.failed_tests.is_empty() && facts.files.is_empty())
    {
        fields.insert("details".to_owned(), json!({ "tests": facts.failed_tests, "files": facts.files }));
    }
    json
}

/// The failed phases that a phase waits for, directly or through others.
pub(crate) fn blockers(record: &RunRecord, id: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    let mut open = vec![id.to_owned()];
    while let Some(at) = open.pop() {
        let Some(phase) = record.phase_of(&at) else { continue };
        for dep in &phase.plan.depends_on {
            if seen.insert(dep.clone()) {
                open.push(dep.clone());
            }
        }
    }
    found.extend(
        record
            .progress
            .order
            .iter()
            .filter(|id| {
                seen.contains(*id) && record.phase_of(id).is_some_and(|p| p.node.status == NodeStatus::Failed)
            })
            .cloned(),
    );
    found
}
