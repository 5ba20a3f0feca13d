//! `backstop trust`: what a project's configuration runs and reads may take effect.

use super::tools::places;
use crate::error::CliError;
use crate::{process, terminal};
use backstop_report::TrustedFiles;
use backstop_tools::{TrustError, give_trust, revoke_trust, show_trust};
use clap::Args;

/// Trust this project's `backstop.toml`, and the rule packs and scripts that it names, as they are
/// now. It has to be trusted again when one of them changes.
#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// Show what takes effect without trust, what needs it, and whether it is trusted
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) show: bool,
    /// Revoke the trust
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Trust) -> Result<(), CliError> {
    let project = process::open(&[], None)?;
    let Some(candidate) = backstop_config::candidate(&process::surroundings()?)? else {
        if args.show {
            let paths = project.user_store()?.trusted()?.into_iter().map(|trusted| trusted.path).collect();
            return terminal::show(&TrustedFiles(paths), args.json);
        }
        return Err(TrustError::Nothing.into());
    };
    let places = places()?;
    let reopen = || process::open_quietly(&[], None).map_err(CliError::into_project_error);
    let state = match (args.show, args.revoke) {
        (true, _) => show_trust(&project, candidate, &places)?,
        (false, true) => revoke_trust(&project, candidate, &places)?,
        (false, false) => give_trust(&project, candidate, &places, &reopen)?,
    };
    terminal::show(&state, args.json)
}
