//! `backstop plan watch`: what an agent says while it works on a phase, as text.

use super::{Which, find};
use crate::error::{CliError, DONE, usage};
use crate::terminal;
use backstop_plan::record::RunRecord;
use backstop_report::plan::agent_words;
use backstop_runtime::Project;
use backstop_runtime::host::NodeStatus;
use clap::Args;
use std::io::Read;
use std::time::Duration;

/// How often the log is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// The longest line that is waited for; a longer one is shown in parts.
const LINE_BYTES_MAX: usize = 4 << 20;

/// Follow what an agent says while it works on a phase.
#[derive(Debug, Args)]
pub(crate) struct PlanWatch {
    /// The phase, such as 2A
    pub(crate) phase: String,
    #[command(flatten)]
    pub(crate) which: Which,
}

/// Follows the log of a phase's attempts until the phase or the run has ended.
pub(super) fn watch(project: &Project, args: &PlanWatch) -> Result<u8, CliError> {
    let mut found = find(project, &args.which)?;
    let at = found.phase(&args.phase)?;
    let mut shown = 0;
    let mut told_waiting = false;
    loop {
        let phase = found.record.phase(at);
        let (attempt, id) = (phase.node.total, phase.plan.id.clone());
        let is_over =
            matches!(phase.node.status, NodeStatus::Complete | NodeStatus::Failed | NodeStatus::Blocked)
                || found.record.progress.ended.is_some()
                || found.record.progress.halted.is_some();
        if attempt > shown {
            shown = attempt;
            terminal::say(&format!("phase {}, attempt {attempt}\n", args.phase));
            follow(project, &mut found, &args.which, at, &id, attempt)?;
            continue;
        }
        if is_over {
            if shown == 0 {
                return Err(usage(format!("phase {} has not run yet", args.phase))
                    .hint("`backstop plan status` shows where it stands"));
            }
            return Ok(DONE);
        }
        if shown == 0 && !told_waiting {
            told_waiting = true;
            terminal::say(&format!("phase {} has not begun yet\n", args.phase));
        }
        std::thread::sleep(LOOK_EVERY);
        found = find(project, &args.which)?;
    }
}

/// Shows the log of one attempt as it grows, until the attempt has ended.
fn follow(
    project: &Project,
    found: &mut backstop_plan::runs::FoundRun,
    which: &Which,
    at: usize,
    id: &str,
    attempt: u32,
) -> Result<(), CliError> {
    let file = found.views.attempt_log(id, attempt);
    let mut log = None;
    let mut rest: Vec<u8> = Vec::new();
    loop {
        // Looked at before the log is read: what was written before the end is shown.
        let ended = !is_running(&found.record, at, attempt);
        if log.is_none() {
            log = found.views.read_attempt_log(id, attempt).ok();
        }
        if let Some(log) = &mut log {
            log.read_to_end(&mut rest).map_err(|error| CliError::read(&file, error))?;
        }
        while let Some(end) = rest
            .iter()
            .position(|byte| *byte == b'\n')
            .or((rest.len() > LINE_BYTES_MAX).then_some(LINE_BYTES_MAX))
        {
            let line: Vec<u8> = rest.drain(..=end).collect();
            say(&line)?;
        }
        if ended {
            say(&rest)?;
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
        *found = find(project, which)?;
    }
}

fn is_running(record: &RunRecord, at: usize, attempt: u32) -> bool {
    let node = record.phase(at).node;
    node.status == NodeStatus::Running
        && node.total == attempt
        && record.progress.ended.is_none()
        && record.progress.halted.is_none()
}

fn say(line: &[u8]) -> Result<(), CliError> {
    match agent_words(String::from_utf8_lossy(line).trim_end_matches('\n')).filter(|text| !text.is_empty()) {
        Some(text) => terminal::print(&format!("{text}\n")),
        None => Ok(()),
    }
}
