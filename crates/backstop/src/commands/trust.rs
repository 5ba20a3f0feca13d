//! `backstop trust`: what a project's configuration runs and reads may take effect.

use super::tools::places;
use crate::error::CliError;
use crate::{process, terminal};
use backstop_plan::start::SuggestedGates;
use backstop_report::{TrustChange, TrustState, TrustedFiles};
use backstop_store::UserStore;
use backstop_tools::{TrustError, give_trust, revoke_trust, show_trust};
use clap::Args;

/// Trust this project's `backstop.toml`, and the rule packs and scripts that it names, as they are
/// now. It has to be trusted again when one of them changes. In a project without that file, trust
/// the gates that its files suggest, so that `run` checks by them.
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
        let Some(gates) = SuggestedGates::of(&project) else { return Err(TrustError::Nothing.into()) };
        return terminal::show(&suggested(&project.user_store()?, args.revoke, gates)?, args.json);
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

/// Trusts the gates that the files of a project without settings suggest, or revokes that.
fn suggested(user: &UserStore, revoke: bool, gates: SuggestedGates) -> Result<TrustState, CliError> {
    let change = if revoke {
        TrustChange::Revoked(user.revoke(&gates.folder)?)
    } else {
        user.trust(&gates.folder, &gates.hash)?;
        TrustChange::Given
    };
    Ok(TrustState {
        change,
        is_trusted: !revoke,
        file: gates.folder.display().to_string(),
        canonical: gates.folder,
        hash: gates.hash,
        sets: Vec::new(),
        without_trust: Vec::new(),
        covers: gates.lines,
        imports: Vec::new(),
    })
}
