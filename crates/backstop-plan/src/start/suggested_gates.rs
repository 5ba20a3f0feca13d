//! Trust in the gates that a project's files suggest, where the project has no settings of its own
//! to trust. It covers the gates as they are found: their commands, and the scripts of
//! `package.json` that some of them run. What a command does with the project's code is not
//! covered; whoever trusts it means to run that.

use backstop_core::Sha256;
use backstop_runtime::Project;
use backstop_store::UserStore;
use backstop_work::gate::{detect, package_scripts};
use std::path::PathBuf;

/// The gates that a project's files suggest.
#[derive(Debug)]
pub struct SuggestedGates {
    /// The project's folder.
    pub folder: PathBuf,
    /// Each gate with its command: `lint: cargo clippy`.
    pub lines: Vec<String>,
    /// What trust is given to: another one where a gate or a script has changed.
    pub hash: String,
}

impl SuggestedGates {
    /// The gates of a project; nothing where its files suggest none.
    pub fn of(project: &Project) -> Option<Self> {
        let folder = project.root.canonicalize().ok()?;
        let gates = detect(&folder).gates;
        let lines: Vec<String> =
            gates.iter().map(|gate| format!("{}: {}", gate.name, gate.check.shown())).collect();
        if lines.is_empty() {
            return None;
        }
        let scripts = package_scripts(&folder).unwrap_or_default();
        let scripts = scripts.iter().map(|(name, line)| format!("{name}\0{line}"));
        let whole: Vec<String> = lines.iter().cloned().chain(scripts).collect();
        let hash = Sha256::of(format!("suggested gates\0{}", whole.join("\0\0")).as_bytes()).hex();
        Some(Self { folder, lines, hash })
    }

    /// Whether somebody trusts them as they are. Asking makes no state folder.
    pub fn are_trusted(&self, project: &Project) -> bool {
        let known = || {
            let store = UserStore::open_existing(project.folder().ok()?).ok()??;
            store.is_trusted(&self.folder, &self.hash).ok()
        };
        project.has_state() && known().unwrap_or(false)
    }

    /// Whether the gates of a project may be run without being asked for: the project's settings
    /// are trusted, or the gates themselves are.
    pub fn may_run(project: &Project) -> bool {
        project.is_trusted() || Self::of(project).is_some_and(|gates| gates.are_trusted(project))
    }
}
