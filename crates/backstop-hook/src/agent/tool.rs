//! A tool call that failed: classified, recorded, answered with advice.

use super::handle::Session;
use super::{AgentEvent, REPEATS_MAX, ToolFailure, answer, fault_signature, tool_fault};
use crate::surroundings::{HookError, Surroundings};
use backstop_core::Severity;
use backstop_report::{AgentFailure, agent_failure};
use serde_json::Value;

pub(super) fn failed(
    around: &Surroundings<'_>,
    event: &AgentEvent,
    failed: &ToolFailure,
) -> Result<Option<Value>, HookError> {
    let session = Session::open(around)?;
    let project = &session.project;
    let failed = failed.clone().masked(&project.redactor);
    let mut fault = tool_fault(&failed, &session.classifier(), (around.now)());
    session.observe(&mut fault);
    let signature = fault_signature(&failed, &fault).filter(|_| !event.session.is_empty());
    let streak = signature.map(|signature| {
        let counted = project.ask_hooks(|store| store.note_streak(event.session.raw(), &signature));
        counted.map(|(_, count)| count)
    });
    let times = streak.unwrap_or(Ok(1)).unwrap_or_else(|error| {
        session.log(&error.to_string());
        1
    });
    let operation = failed.command.clone().unwrap_or_else(|| failed.tool.clone());
    let why = format!("the agent decides, and is advised; times in a row that it met this fault: {times}");
    let recorder = session.record_fault(event, &operation, times, &fault, why, None);
    // One attempt of the agent's is no ending. What is critical concerns everybody at once.
    if fault.severity == Severity::Critical {
        session.follow(recorder.as_ref(), &fault);
    }
    let advice = AgentFailure {
        tool: &failed.tool,
        command: failed.command.as_ref(),
        fault: &fault,
        times,
        times_max: REPEATS_MAX,
    };
    Ok(Some(answer::context(failed.event, &agent_failure(&advice))))
}
