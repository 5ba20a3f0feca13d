//! Where things are: the project's folder, its settings, its stores, and the one redactor.
//!
//! A [`Project`] is opened once and given to everything that runs in it. Stores are opened when
//! they are first asked for, each once; a damaged one that can be spared is set aside, which people
//! are told.

mod error;
mod hold;
mod packs;
mod quarantine;
mod secrets;

pub use error::ProjectError;
pub use packs::{classifier_with_packs, effects_with_packs, tested_packs};
pub use secrets::{is_secret_name, redactor, secrets_in};

use crate::process::Process;
use backstop_classify::{Classifier, Effects};
use backstop_config::{Config, Given, Surroundings};
use backstop_core::{Redactor, RetryBudget};
use backstop_files::GivenPath;
use backstop_store::{
    HookStore, Journal, LimitStore, Outbox, ProjectKey, Retention, StateFolder, StoreError, UserStore,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A project, with everything that a run in it needs.
pub struct Project {
    /// Its settings, each with its origin.
    pub config: Config,
    /// The repository's root, else the current folder.
    pub root: PathBuf,
    /// Masks secrets in everything that is stored or shown.
    pub redactor: Arc<Redactor>,
    /// The process that works in it.
    pub process: Arc<Process>,
    state_root: Option<PathBuf>,
    folder: OnceLock<StateFolder>,
    journal: OnceLock<Journal>,
    limits: OnceLock<Arc<LimitStore>>,
    run_settings: OnceLock<RunSettings>,
}

/// The settings that every run reads, read once.
#[derive(Debug, Clone, Copy)]
struct RunSettings {
    retention: Retention,
    retry_budget: RetryBudget,
    /// Whether the settings name anybody who is told what is recorded.
    is_observed: bool,
}

impl std::fmt::Debug for Project {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Project").field("root", &self.root).finish_non_exhaustive()
    }
}

/// Where a project is looked for.
pub struct Place<'a> {
    /// Folders and variables.
    pub surroundings: Surroundings<'a>,
    /// Every environment variable: those that hold secrets are masked.
    pub variables: Vec<(String, String)>,
}

impl Project {
    /// Reads the settings of the project around the current folder. Flags beat everything else.
    pub fn open(place: &Place<'_>, flags: &[Given], process: Process) -> Result<Self, ProjectError> {
        let state_root = place.surroundings.state_root.clone();
        let now = process.now;
        let trusted = |path: &Path| -> Option<String> {
            let folder = StateFolder::open(state_root.as_deref()?, Arc::new(now), Arc::default()).ok()?;
            UserStore::open_existing(&folder).ok()??.trusted_hashes(path).ok()?
        };
        let is_trusted = |path: &Path, hashes: &str| trusted(path).is_some_and(|known| known == hashes);
        let mut config = backstop_config::load(&place.surroundings, flags, &is_trusted)?;
        config.explain_trust(&trusted);
        let tokens = config.sinks().into_values().filter_map(|sink| sink.token_env);
        let named = config.redact_env().into_iter().chain(tokens).collect();
        let of_settings = secrets::of_settings(&config);
        let redactor = redactor(place.variables.clone(), named, of_settings, place.surroundings.home.clone());
        Ok(Self {
            root: root_of(place),
            config,
            redactor: Arc::new(redactor),
            process: Arc::new(process),
            state_root,
            folder: OnceLock::new(),
            journal: OnceLock::new(),
            limits: OnceLock::new(),
            run_settings: OnceLock::new(),
        })
    }

    /// The state folder.
    pub fn folder(&self) -> Result<&StateFolder, ProjectError> {
        if let Some(folder) = self.folder.get() {
            return Ok(folder);
        }
        let root = self.state_root.as_deref().ok_or(ProjectError::NoStateFolder)?;
        let opened = StateFolder::open(root, Arc::new(self.process.now), Arc::clone(&self.redactor))?;
        let opened = opened.with_boot_clock(Arc::new(self.process.boot_time));
        Ok(self.folder.get_or_init(|| opened))
    }

    /// This project's journal, made where it is not there yet.
    pub fn journal(&self) -> Result<&Journal, ProjectError> {
        if let Some(journal) = self.journal.get() {
            return Ok(journal);
        }
        let opened = self.with_hook(Journal::open(self.folder()?, &self.root)?);
        Ok(self.journal.get_or_init(|| opened))
    }

    /// Whether there is a state folder: nothing was recorded on this machine where there is none.
    pub fn has_state(&self) -> bool {
        self.state_root.as_deref().is_some_and(Path::exists)
    }

    /// This project's journal, if there is one.
    pub fn existing_journal(&self) -> Result<Option<&Journal>, ProjectError> {
        if let Some(journal) = self.journal.get() {
            return Ok(Some(journal));
        }
        let Some(opened) = Journal::open_existing(self.folder()?, &self.root)? else { return Ok(None) };
        let opened = self.with_hook(opened);
        Ok(Some(self.journal.get_or_init(|| opened)))
    }

    fn with_hook(&self, journal: Journal) -> Journal {
        match &self.process.commit_hook {
            Some(hook) => journal.on_commit(Arc::clone(hook)),
            None => journal,
        }
    }

    /// What the journal keeps.
    pub fn retention(&self) -> Retention {
        self.run_settings().retention
    }

    /// The share of recent attempts that may be retries.
    pub(crate) fn retry_budget(&self) -> RetryBudget {
        self.run_settings().retry_budget
    }

    /// Whether the settings name anybody who is told what is recorded.
    pub(crate) fn is_observed(&self) -> bool {
        self.run_settings().is_observed
    }

    fn run_settings(&self) -> &RunSettings {
        self.run_settings.get_or_init(|| {
            let store = self.config.store();
            RunSettings {
                retention: Retention { keep: store.keep, max_bytes: store.bytes_max, ..Retention::default() },
                retry_budget: self.config.retry_budget(),
                is_observed: self.config.tail_to().is_some() || self.config.otel().is_some(),
            }
        })
    }

    /// Whether the project has settings of its own, and somebody trusts them as they are.
    pub fn is_trusted(&self) -> bool {
        // Asking makes no state folder.
        if !self.state_root.as_deref().is_some_and(Path::is_dir) {
            return false;
        }
        let hashes =
            |path: &Path| UserStore::open_existing(self.folder().ok()?).ok()??.trusted_hashes(path).ok()?;
        self.config.is_project_trusted(&hashes)
    }

    /// The user's own store.
    pub fn user_store(&self) -> Result<UserStore, ProjectError> {
        Ok(UserStore::open(self.folder()?)?)
    }

    /// The shared limits. A damaged file is set aside: guards are open then, and budgets are not
    /// set.
    pub fn limits(&self) -> Result<&Arc<LimitStore>, ProjectError> {
        if let Some(limits) = self.limits.get() {
            return Ok(limits);
        }
        let lost = "guards are open, budgets are not set";
        let opened = self.open_or_quarantine(LimitStore::open, StateFolder::quarantine_limits, Some(lost))?;
        Ok(self.limits.get_or_init(|| Arc::new(opened)))
    }

    /// The shared limits, if anything is known of them yet.
    pub fn existing_limits(&self) -> Result<Option<&Arc<LimitStore>>, ProjectError> {
        if let Some(limits) = self.limits.get() {
            return Ok(Some(limits));
        }
        match LimitStore::open_existing(self.folder()?) {
            Ok(None) => Ok(None),
            Ok(Some(opened)) => Ok(Some(self.limits.get_or_init(|| Arc::new(opened)))),
            Err(StoreError::Corrupt { .. }) => self.limits().map(Some),
            Err(error) => Err(error.into()),
        }
    }

    /// What people are to be told. A damaged file is set aside: what waited in it is not sent.
    pub fn outbox(&self) -> Result<Outbox, ProjectError> {
        let lost = "what waited in it is not sent";
        self.open_or_quarantine(Outbox::open, StateFolder::quarantine_outbox, Some(lost))
    }

    /// What hooks remember. A damaged file is set aside: what it counted is lost, and nobody is
    /// told.
    pub fn hooks(&self) -> Result<HookStore, ProjectError> {
        self.open_or_quarantine(HookStore::open, StateFolder::quarantine_hooks, None)
    }

    /// Asks what hooks remember. A file of which only a part is damaged is found out by asking, and
    /// is set aside as well.
    pub fn ask_hooks<T>(
        &self,
        mut ask: impl FnMut(&HookStore) -> Result<T, StoreError>,
    ) -> Result<(HookStore, T), ProjectError> {
        let store = self.hooks()?;
        match ask(&store) {
            Err(StoreError::Corrupt { .. }) => {
                drop(store);
                // Somebody else may have set it aside meanwhile.
                if let Err(StoreError::Corrupt { .. }) = self.hooks()?.check() {
                    self.folder()?.quarantine_hooks()?;
                }
                let store = self.hooks()?;
                let answer = ask(&store)?;
                Ok((store, answer))
            }
            answer => Ok((store, answer?)),
        }
    }

    /// Opens a store that can be spared. `lost` says what is lost with a damaged one, where people
    /// are told.
    fn open_or_quarantine<S>(
        &self,
        open: impl Fn(&StateFolder) -> Result<S, StoreError>,
        set_aside: impl Fn(&StateFolder) -> Result<Option<PathBuf>, StoreError>,
        lost: Option<&str>,
    ) -> Result<S, ProjectError> {
        let folder = self.folder()?;
        match open(folder) {
            Err(StoreError::Corrupt { file, why }) => {
                let aside = set_aside(folder)?;
                let place = aside.map(|path| path.display().to_string()).unwrap_or_default();
                if let Some(lost) = lost {
                    let file = file.display();
                    self.process.warn(
                        &format!("{file} was damaged ({why}) and is set aside as {place}; {lost}"),
                        None,
                    );
                }
                Ok(open(folder)?)
            }
            other => Ok(other?),
        }
    }

    /// A path that somebody gave for a file to be written: in the project, where no link is
    /// followed, or elsewhere.
    pub fn given(&self, path: &Path) -> GivenPath {
        GivenPath::new(path, &self.process.cwd, &self.root)
    }

    /// The key of this project, under which its tasks are known.
    pub fn key(&self) -> ProjectKey {
        ProjectKey::of(&self.root.canonicalize().unwrap_or_else(|_| self.root.clone()))
    }

    /// The classifier with this project's rule packs and `more` of them.
    pub fn classifier(&self, more: &[PathBuf]) -> Result<Classifier, ProjectError> {
        let packs = [self.config.packs(), more.to_vec()].concat();
        let classifier =
            if packs.is_empty() { Classifier::builtin() } else { classifier_with_packs(&packs)?.0 };
        let classifier = classifier.learning(self.config.learns());
        Ok(classifier.redacting(self.redactor.as_ref().clone()).in_zone(self.process.zone()))
    }

    /// The table of commands that change something, with this project's packs and `more` of them.
    pub fn effects(&self, more: &[PathBuf]) -> Result<Effects, ProjectError> {
        let packs = [self.config.packs(), more.to_vec()].concat();
        if packs.is_empty() { Ok(Effects::builtin()) } else { Ok(effects_with_packs(&packs)?.0) }
    }

    /// The classifier; where a pack cannot be used, that is told, and the built-in rules have to
    /// do.
    pub fn classifier_or_builtin(&self, tell: impl FnOnce(&ProjectError)) -> Classifier {
        self.classifier(&[]).unwrap_or_else(|error| {
            tell(&error);
            Classifier::builtin().redacting(self.redactor.as_ref().clone()).in_zone(self.process.zone())
        })
    }
}

/// The folder that a project is known by: the repository's root, else the current folder. A
/// worktree of ours belongs to its repository: what a phase does in its slot, it does in its
/// project.
pub fn root_of(place: &Place<'_>) -> PathBuf {
    let around = &place.surroundings;
    let root = backstop_config::repository_root(&around.cwd, around.home.as_deref());
    let root = root.unwrap_or_else(|| around.cwd.clone());
    backstop_config::repository_of_slot(&root, around.state_root.as_deref()).unwrap_or(root)
}
