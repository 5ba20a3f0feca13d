//! `backstop plan watch`: what an agent says while it works on a phase, as text.

use super::{Which, find};
use crate::error::{CliError, DONE, usage};
use crate::terminal;
use backstop_plan::attempt_log::{PhaseFollower, PhaseNews};
use backstop_report::plan::agent_words;
use backstop_runtime::Project;
use clap::Args;
use std::time::Duration;

/// How often the log is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(300);

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
    let mut follower = PhaseFollower::new(found.phase(&args.phase)?);
    let mut told_waiting = false;
    loop {
        for news in follower.look(&found)? {
            match news {
                PhaseNews::Began(attempt) => {
                    terminal::say(&format!("phase {}, attempt {attempt}\n", args.phase));
                }
                PhaseNews::Line(line) => {
                    if let Some(text) = agent_words(&line).filter(|text| !text.is_empty()) {
                        terminal::print(&format!("{text}\n"))?;
                    }
                }
                PhaseNews::Waits if told_waiting => {}
                PhaseNews::Waits => {
                    told_waiting = true;
                    terminal::say(&format!("phase {} has not begun yet\n", args.phase));
                }
                PhaseNews::Over(true) => return Ok(DONE),
                PhaseNews::Over(false) => {
                    return Err(usage(format!("phase {} has not run yet", args.phase))
                        .hint("`backstop plan status` shows where it stands"));
                }
            }
        }
        std::thread::sleep(LOOK_EVERY);
        found = find(project, &args.which)?;
    }
}
