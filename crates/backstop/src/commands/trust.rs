//! `backstop trust`: what a project's configuration runs and reads may take effect.

use super::tools::places;
use crate::error::{CliError, failed, usage};
use crate::{process, terminal};
use backstop_config::Sets;
use backstop_core::SafeText;
use backstop_plan::start::SuggestedGates;
use backstop_report::{SetValue, TrustChange, TrustState, TrustedFiles};
use backstop_runtime::Project;
use backstop_store::UserStore;
use backstop_tools::{ProjectImport, project_imports};
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
    let around = process::surroundings()?;
    let project = process::open(&[], None)?;
    let candidate = backstop_config::candidate(&around)?;
    let user = project.user_store()?;
    let Some(candidate) = candidate else {
        if args.show {
            let paths = user.trusted()?.into_iter().map(|trusted| trusted.path).collect();
            return terminal::show(&TrustedFiles(paths), args.json);
        }
        let Some(gates) = SuggestedGates::of(&project) else {
            return Err(usage(
                "nothing to trust: there is no backstop.toml between here and the repository's root, and no \
                 file of the project suggests a gate",
            )
            .hint("docs/config.md says what it may hold"));
        };
        return terminal::show(&suggested(&user, args.revoke, gates)?, args.json);
    };
    if let Some(repository) = candidate.slot_of.as_ref().filter(|_| !args.show) {
        let folder = backstop_core::shell::quoted(&repository.to_string_lossy());
        return Err(usage("this is a worktree of a plan, which is trusted as its project is")
            .hint(format!("in the project: `cd {folder} && backstop trust`")));
    }
    let known = user.trusted_hashes(&candidate.canonical)?;
    let was_trusted = known.as_deref() == Some(candidate.hashes.as_str());
    let mut named = if args.show || args.revoke { imports(&project)? } else { Vec::new() };
    let (is_trusted, change) = if args.show {
        (was_trusted, TrustChange::Shown(known.map(|known| candidate.changes_since(&known))))
    } else if args.revoke {
        let was = user.revoke(&candidate.canonical)?;
        for import in &named {
            user.revoke(&import.file)?;
        }
        (false, TrustChange::Revoked(was))
    } else {
        if let Some(what) = candidate.unreadable() {
            let file = SafeText::new(candidate.file.shown.clone()).line(200);
            return Err(failed(format!("{file} cannot be trusted: {what} cannot be covered"))
                .hint("it is no regular file, a link, or larger than 64 MB: put a file in its place"));
        }
        user.trust(&candidate.canonical, &candidate.hashes)?;
        named = imports(&process::open_quietly(&[], None)?)?;
        for import in &named {
            user.trust(&import.file, &import.hash)?;
        }
        (true, TrustChange::Given)
    };
    let imports = named.into_iter().map(|import| {
        let is_trusted = user.trusted_hashes(&import.file)?.as_deref() == Some(import.hash.as_str());
        Ok((import.file, import.hash, import.servers, is_trusted))
    });
    let state = TrustState {
        change,
        is_trusted,
        hash: candidate.hash().to_owned(),
        covers: candidate.covers().map(str::to_owned).collect(),
        file: candidate.file.shown,
        canonical: candidate.canonical,
        sets: values(&project, candidate.sets),
        without_trust: values(&project, candidate.without_trust),
        imports: imports.collect::<Result<_, CliError>>()?,
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

/// What the trusted settings take MCP servers from is trusted with them, each file as it is now.
fn imports(project: &Project) -> Result<Vec<ProjectImport>, CliError> {
    let (imports, errors) = project_imports(&project.config.mcp().from, &places()?);
    for error in errors {
        project.process.warn(&error.to_string(), Some("`backstop mcp import` shows what was found where"));
    }
    Ok(imports)
}

fn values(project: &Project, sets: Vec<Sets>) -> Vec<SetValue> {
    let masked = |value: &str| project.redactor.redact(value).into_owned();
    sets.into_iter()
        .map(|set| {
            let shown = masked(&set.value);
            (set.key, set.value, shown, set.line)
        })
        .collect()
}
