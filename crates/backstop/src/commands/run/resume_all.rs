//! `backstop run --resume-all`: goes on with every run of a plan and every campaign that was cut
//! off, each in a process of its own. For a login item or a timer, which nobody watches.

use crate::error::{CliError, DONE, FAILED, failed};
use crate::{process, terminal};
use backstop_core::{SafeText, shell};
use backstop_plan::interrupted::{InterruptedRun, interrupted_runs};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

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
    let mut failures = 0;
    for run in &runs {
        let place = SafeText::new(run.project.to_string_lossy()).line(300);
        let plan = SafeText::new(run.plan.as_str()).line(200);
        match start(run) {
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

/// Starts the command that goes on with a run, without a terminal and in a group of its own: it
/// lives on when we end. Gives where its output goes.
fn start(run: &InterruptedRun) -> std::io::Result<Option<std::path::PathBuf>> {
    let words = shell::words(&run.resume).unwrap_or_default();
    let surface = if run.is_campaign { "campaign" } else { "run" };
    let args: Vec<String> = match words.as_slice() {
        [program, command, rest @ ..] if program == "backstop" && command == surface => rest.to_vec(),
        _ => vec![run.plan.clone()],
    };
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(surface).args(args).current_dir(&run.project);
    if !run.is_campaign {
        // A campaign that was cut off goes on by itself.
        command.arg("--resume");
    }
    if let Some(at) = run.starts_at {
        command.args(["--at", &at.to_string()]);
    }
    let log = run.open_log();
    match &log {
        Some((file, _)) => {
            command.stdout(file.try_clone()?).stderr(file.try_clone()?);
        }
        None => {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
    }
    command.stdin(Stdio::null()).process_group(0).spawn()?;
    Ok(log.map(|(_, path)| path))
}
