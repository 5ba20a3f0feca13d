//! A tool call that failed: classified, recorded, answered with advice.

use super::agent::{classifier, events, follow, journal, keep, log, witness};
use super::ask_store;
use crate::context::{self, Context};
use crate::error::CliError;
use backstop_core::Severity;
use backstop_hook::agent::{AgentEvent, REPEATS_MAX, ToolFailure, answer, fault_signature, tool_fault};
use backstop_report::{AgentFailure, agent_failure};
use serde_json::Value;

pub(super) fn failed(event: &AgentEvent, failed: &ToolFailure) -> Result<Option<Value>, CliError> {
    let context = Context::new(&[], None)?;
    let failed = failed.clone().masked(&context.redactor);
    let mut fault = tool_fault(&failed, &classifier(&context), context::now());
    let journal = journal(&context);
    witness(&context, journal.as_ref(), &mut fault);
    let signature = fault_signature(&failed, &fault).filter(|_| !event.session.is_empty());
    let streak = signature.map(|signature| {
        let folder = context.folder()?;
        Ok::<u32, CliError>(ask_store(&folder, |store| store.note_streak(event.session.raw(), &signature))?.1)
    });
    let times = streak.unwrap_or(Ok(1)).unwrap_or_else(|error| {
        log(&error.to_string());
        1
    });
    let operation = failed.command.clone().unwrap_or_else(|| failed.tool.clone());
    let why = format!("the agent decides, and is advised; times in a row that it met this fault: {times}");
    let run = keep(&context, journal.as_ref(), event, events(&context, &operation, times, &fault, why, None));
    // One attempt of the agent's is no ending. What is critical concerns everybody at once.
    if fault.severity == Severity::Critical {
        follow(&context, run.as_ref(), &fault);
    }
    let told = AgentFailure {
        tool: &failed.tool,
        command: failed.command.as_ref(),
        fault: &fault,
        times,
        times_max: REPEATS_MAX,
    };
    Ok(Some(answer::context(failed.event, &agent_failure(&told))))
}
