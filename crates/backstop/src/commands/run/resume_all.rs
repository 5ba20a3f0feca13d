//! `backstop run --resume-all`: goes on with every run of a plan and every campaign that was cut
//! off, each in a process of its own. For a login item or a timer, which nobody watches.

use crate::error::{CliError, DONE, FAILED, failed};
use crate::{process, terminal};
use backstop_core::SafeText;
use backstop_plan::interrupted::interrupted_runs;

/// Goes on with all of them. Says which, and which could not be started.
pub(super) fn run() -> Result<u8, CliError> {
    let Some(folder) = process::user_folder() else {
        return Err(failed("the state folder cannot be opened").hint("`backstop doctor` checks it"));
    };
    let (runs, unreadable) = interrupted_runs(&folder, &process::is_alive)?;
    for error in &unreadable {
        terminal::warn(&error.to_string(), Some(&error.hint()));
    }
    if runs.is_empty() {
        terminal::say("no run of a plan was cut off, and no campaign\n");
    }
    let program =
        std::env::current_exe().map_err(|error| failed(format!("cannot find this program: {error}")))?;
    let mut failures = 0;
    for run in &runs {
        let place = SafeText::new(run.project.to_string_lossy()).line(300);
        let plan = SafeText::new(run.plan.as_str()).line(200);
        match run.start(&program) {
            Ok(log) => {
                let (done, all) = run.phases;
                let log =
                    log.map(|log| format!("; its output goes to {}", log.display())).unwrap_or_default();
                terminal::say(&format!("{place}: {plan} goes on ({done} of {all} phases complete){log}\n"));
            }
            Err(error) => {
                failures += 1;
                let hint = format!("in {place}: `{}`", run.resume);
                terminal::warn(&format!("{place}: {plan} could not be started: {error}"), Some(&hint));
            }
        }
    }
    Ok(if failures == 0 { DONE } else { FAILED })
}
