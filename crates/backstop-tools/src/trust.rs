//! Trust in a project's settings, together with the files of the project that they take MCP servers
//! from.

use crate::import::{ImportError, ImportPlaces, ProjectImport, project_imports};
use backstop_config::{Candidate, Sets};
use backstop_core::{ErrorKind, HintedError, SafeText, shell};
use backstop_report::{SetValue, TrustChange, TrustState};
use backstop_runtime::{Project, ProjectError};
use backstop_store::StoreError;
use std::path::PathBuf;

/// Why a project cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// There is no file that trust could be given to.
    #[error(
        "nothing to trust: there is no backstop.toml between here and the repository's root, and no file of the \
         project suggests a gate"
    )]
    Nothing,
    /// It is a worktree of a plan.
    #[error("this is a worktree of a plan, which is trusted as its project is")]
    Worktree {
        /// The project.
        repository: PathBuf,
    },
    /// What it names cannot be covered.
    #[error("{file} cannot be trusted: {what} cannot be covered")]
    Uncovered {
        /// The project's file.
        file: String,
        /// What it names.
        what: String,
    },
    /// The project cannot be used.
    #[error(transparent)]
    Project(#[from] ProjectError),
}

impl From<StoreError> for TrustError {
    fn from(error: StoreError) -> Self {
        Self::Project(error.into())
    }
}

impl HintedError for TrustError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Nothing | Self::Worktree { .. } => ErrorKind::Usage,
            Self::Uncovered { .. } => ErrorKind::Failed,
            Self::Project(error) => error.kind(),
        }
    }

    fn hints(&self) -> Vec<String> {
        vec![match self {
            Self::Nothing => "docs/config.md says what it may hold".to_owned(),
            Self::Worktree { repository } => {
                let folder = shell::quoted(&repository.to_string_lossy());
                format!("in the project: `cd {folder} && backstop trust`")
            }
            Self::Uncovered { .. } => {
                "it is no regular file, a link, or larger than 64 MB: put a file in its place".to_owned()
            }
            Self::Project(error) => return HintedError::hints(error),
        }]
    }

    fn is_multiline(&self) -> bool {
        matches!(self, Self::Project(error) if HintedError::is_multiline(error))
    }
}

/// What trust there is in these settings, and what has changed since it was given.
pub fn show_trust(
    project: &Project,
    candidate: Candidate,
    places: &ImportPlaces,
) -> Result<TrustState, TrustError> {
    let known = project.user_store()?.trusted_hashes(&candidate.canonical)?;
    let is_trusted = known.as_deref() == Some(candidate.hashes.as_str());
    let change = TrustChange::Shown(known.map(|known| candidate.changes_since(&known)));
    state(project, candidate, change, is_trusted, imports(project, places))
}

/// Revokes the trust in these settings and in what they take servers from.
pub fn revoke_trust(
    project: &Project,
    candidate: Candidate,
    places: &ImportPlaces,
) -> Result<TrustState, TrustError> {
    refuse_worktree(&candidate)?;
    let user = project.user_store()?;
    let imports = imports(project, places);
    let was_trusted = user.revoke(&candidate.canonical)?;
    for import in &imports {
        user.revoke(&import.file)?;
    }
    state(project, candidate, TrustChange::Revoked(was_trusted), false, imports)
}

/// Trusts these settings as they are now. What they take servers from is known only then: `reopen`
/// opens the project anew.
pub fn give_trust(
    project: &Project,
    candidate: Candidate,
    places: &ImportPlaces,
    reopen: &dyn Fn() -> Result<Project, ProjectError>,
) -> Result<TrustState, TrustError> {
    refuse_worktree(&candidate)?;
    if let Some(what) = candidate.unreadable() {
        let file = SafeText::new(candidate.file.shown.clone()).line(200);
        return Err(TrustError::Uncovered { file, what: what.to_owned() });
    }
    let user = project.user_store()?;
    user.trust(&candidate.canonical, &candidate.hashes)?;
    let imports = imports(&reopen()?, places);
    for import in &imports {
        user.trust(&import.file, &import.hash)?;
    }
    state(project, candidate, TrustChange::Given, true, imports)
}

fn refuse_worktree(candidate: &Candidate) -> Result<(), TrustError> {
    match &candidate.slot_of {
        Some(repository) => Err(TrustError::Worktree { repository: repository.clone() }),
        None => Ok(()),
    }
}

/// What the trusted settings take MCP servers from is trusted with them, each file as it is now.
fn imports(project: &Project, places: &ImportPlaces) -> Vec<ProjectImport> {
    let (imports, errors) = project_imports(&project.config.mcp().from, places);
    let warn = |error: &ImportError| {
        project.process.warn(&error.to_string(), Some("`backstop mcp import` shows what was found where"));
    };
    errors.iter().for_each(warn);
    imports
}

fn state(
    project: &Project,
    candidate: Candidate,
    change: TrustChange,
    is_trusted: bool,
    imports: Vec<ProjectImport>,
) -> Result<TrustState, TrustError> {
    let user = project.user_store()?;
    let imports = imports.into_iter().map(|import| {
        let is_trusted = user.trusted_hashes(&import.file)?.as_deref() == Some(import.hash.as_str());
        Ok((import.file, import.hash, import.servers, is_trusted))
    });
    let imports = imports.collect::<Result<_, TrustError>>()?;
    Ok(TrustState {
        change,
        is_trusted,
        hash: candidate.hash().to_owned(),
        covers: candidate.covers().map(str::to_owned).collect(),
        file: candidate.file.shown,
        canonical: candidate.canonical,
        sets: values(project, candidate.sets),
        without_trust: values(project, candidate.without_trust),
        imports,
    })
}

fn values(project: &Project, sets: Vec<Sets>) -> Vec<SetValue> {
    let masked = |value: &str| project.redactor.redact(value).into_owned();
    let value = |set: Sets| {
        let shown = masked(&set.value);
        (set.key, set.value, shown, set.line)
    };
    sets.into_iter().map(value).collect()
}
