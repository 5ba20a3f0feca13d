//! A tool call that failed: classified, recorded, answered with advice.

use super::advice::OwnTool;
use super::fault::own_error;
use super::handle::Session;
use super::{AgentEvent, REPEATS_MAX, ToolFailure, answer, fault_signature, tool_fault};
use crate::surroundings::{HookError, Surroundings};
use backstop_classify::{Effects, Repeatable};
use backstop_core::{Fault, Severity};
use backstop_report::{AgentFailure, agent_failure, tool_advice};
use serde_json::Value;

pub(super) fn failed(
    around: &Surroundings<'_>,
    event: &AgentEvent,
    failed: &ToolFailure,
) -> Result<Option<Value>, HookError> {
    if is_answer_of_command(failed) {
        return Ok(None);
    }
    let session = Session::open(around)?;
    let project = &session.project;
    let failed = failed.clone().masked(&project.redactor);
    let mut fault = tool_fault(&failed, &session.classifier(), (around.now)());
    let kind = OwnTool::of(failed.tool.raw());
    let only_reads = kind.is_some_and(OwnTool::only_reads);
    let repeatable = failed.command.as_ref().map(|command| {
        let effects = project.effects(&[]).unwrap_or_else(|_| Effects::builtin());
        effects.judge(command.raw(), &project.config.repeatable_commands())
    });
    if !only_reads && !matches!(repeatable, Some(Repeatable::Listed(_))) {
        fault = fault.may_have_changed();
    }
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
        advice: advice(&failed, kind, &fault, times),
        only_reads,
        changes: matches!(repeatable, Some(Repeatable::No(_))),
        times,
        times_max: REPEATS_MAX,
    };
    Ok(Some(answer::context(failed.event, &agent_failure(&advice))))
}

/// Whether the exit code answers what the command asks, as 1 of `git diff --exit-code` does: the
/// agent reads that itself, and nothing has failed.
fn is_answer_of_command(failed: &ToolFailure) -> bool {
    let exit = failed.exit.and_then(|exit| i32::try_from(exit).ok());
    let (Some(command), Some(exit)) = (&failed.command, exit) else { return false };
    let words = ["sh", "-c", command.raw()].map(str::to_owned);
    backstop_classify::is_answer(&words, exit)
}

/// What is advised about this error of this tool: for the agent's own tools by their errors, for
/// those of MCP servers by their kind. `None` where the fault's reason says what to do.
fn advice(failed: &ToolFailure, kind: Option<OwnTool>, fault: &Fault, times: u32) -> Option<&'static str> {
    match kind {
        Some(_) => own_error(failed).map(|known| known.advice),
        None if failed.command.is_some() => None,
        None => tool_advice(&failed.tool, None, fault.reason, &failed.said, times).map(|advice| advice.next),
    }
}
