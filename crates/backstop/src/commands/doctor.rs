//! `backstop doctor`: what on this machine would keep Backstop from doing its work.

use super::init::folders;
use crate::error::{CliError, DONE, FAILED};
use crate::{process, terminal};
use backstop_plan::agents::agent_list;
use backstop_report::{Check, Checks};
use backstop_runtime::doctor;
use clap::Args;

/// Check this machine: state folder, store, settings, hooks, notifications, supervision.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Connect to the address of every sink too; no message is sent
    #[arg(long)]
    pub(crate) sinks: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Doctor) -> Result<u8, CliError> {
    let mut checks = vec![Check::good("version", env!("CARGO_PKG_VERSION"))];
    match process::open_quietly(&[], None) {
        Ok(project) => {
            checks.extend(doctor::project(&project));
            checks.extend(doctor::sinks(&project, args.sinks, &process::is_on_the_path));
            checks.push(agent_list(&project.config, &process::is_on_the_path).check());
        }
        Err(error) => {
            let hint = error.first_hint().map(str::to_owned);
            checks.push(Check { hint, ..Check::bad("configuration", error.to_string(), "") });
        }
    }
    if let Ok(folders) = folders() {
        checks.extend(backstop_install::doctor::checks(&folders, &process::is_on_the_path));
    }
    let variables = process::unknown_variables();
    checks.extend(variables.into_iter().map(|(what, hint)| Check::note("environment", what, hint)));
    checks.extend(doctor::machine());
    let checks = Checks(checks);
    terminal::show(&checks, args.json)?;
    Ok(if checks.is_ok() { DONE } else { FAILED })
}
