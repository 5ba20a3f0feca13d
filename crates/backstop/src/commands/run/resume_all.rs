//! `backstop run --resume-all`: goes on with every run of a plan and every campaign that was cut
//! off, each in a process of its own. For a login item or a timer, which nobody watches.

use crate::error::{CliError, DONE, FAILED, failed};
use crate::{process, terminal};
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
    let around = process::surroundings()?;
    let mut failures = 0;
    for run in &runs {
        match run.resume(&program, &around) {
            Ok(told) => terminal::say(&told),
            Err(obstacle) => {
                failures += 1;
                terminal::warn(&obstacle.what, Some(&obstacle.hint));
            }
        }
    }
    Ok(if failures == 0 { DONE } else { FAILED })
}
