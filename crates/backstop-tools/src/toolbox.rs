//! Everything that calls need: the servers, the catalogue of their tools, and what the runtime puts
//! around a call. One for a process.

use crate::catalogue::broken_cache::BrokenCache;
use crate::catalogue::{CacheState, Catalogue, ServerListing, Tool, cache};
use crate::fault::{WaitedFor, of_wait};
use crate::names::longest_prefix;
use crate::result_cache::ResultCache;
use crate::upstream::Upstream;
use crate::{import, leftovers};
use backstop_classify::Classifier;
use backstop_config::{CommonMcpSettings, ConfigError, McpServerSettings};
use backstop_core::{ErrorKind, Fault, HintedError, Name, Outcome, Policy, SafeText};
use backstop_engine::Cancel;
use backstop_runtime::admission::Admission;
use backstop_runtime::recorder::run_numbers::RunNumbers;
use backstop_runtime::recorder::successes::Successes;
use backstop_runtime::{Project, ProjectError};
use backstop_store::{RunFilter, RunSummary, UserStore};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::time::Instant;

/// A server that cannot be used as it is set up, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupProblem {
    /// The server, or the file, as it is named in the settings.
    pub server: String,
    /// What is wrong.
    pub what: SafeText,
    /// What to do about it.
    pub hint: String,
}

/// Why no call can be made at all.
#[derive(Debug, thiserror::Error)]
pub enum ToolboxError {
    /// The project cannot be used.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// The settings cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl HintedError for ToolboxError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Project(error) => error.kind(),
            Self::Config(error) => error.kind(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Project(error) => HintedError::hints(error),
            Self::Config(error) => HintedError::hints(error),
        }
    }

    fn is_multiline(&self) -> bool {
        match self {
            Self::Project(error) => HintedError::is_multiline(error),
            Self::Config(error) => HintedError::is_multiline(error),
        }
    }
}

/// A tool, and the server that has it.
pub(crate) type Found = (Arc<Tool>, Arc<Upstream>);

/// For how long a server is not asked again for a tool that it did not have.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// For how long failures of other processes count as those just before.
const REMEMBERED_FOR: Duration = Duration::from_secs(600);
/// How many of them are looked at.
const REMEMBERED_MAX: u32 = 20;

/// A server that could not be asked for its tools, and why.
#[derive(Debug)]
pub(crate) struct Unlisted {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) fault: Box<Fault>,
}

/// The servers, their tools, and what is put around a call.
#[derive(Debug)]
pub struct Toolbox {
    pub(crate) project: Arc<Project>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) classifier: Arc<Classifier>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) successes: Arc<Successes>,
    pub(crate) run_numbers: RunNumbers,
    pub(crate) results: ResultCache,
    upstreams: BTreeMap<Name, Arc<Upstream>>,
    catalogue: RwLock<Arc<Catalogue>>,
    listings: Mutex<BTreeMap<Name, Arc<ServerListing>>>,
    /// The settings that all servers have in common.
    pub(crate) common: CommonMcpSettings,
    cache_state: CacheState,
    /// What is on record of lists on disk that could not be used, until they are made anew.
    broken_cache: Mutex<Option<BrokenCache>>,
    problems: Vec<SetupProblem>,
    /// When a server last gave its tools for a name that was not known.
    asked: Mutex<BTreeMap<Name, Arc<tokio::sync::Mutex<Option<Instant>>>>>,
    /// How often in a row calls of a tool have failed, where one has ended in this process.
    failures: Mutex<HashMap<String, u32>>,
    /// How many calls are being made.
    running: Arc<AtomicUsize>,
    /// Fires when the servers are to be ended.
    pub(crate) closing: Cancel,
}

/// A call that is being made, until this is dropped.
pub(crate) struct RunningCall(Arc<AtomicUsize>);

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Toolbox {
    /// The servers that the project's settings name. No server is started yet; programs that a
    /// killed Backstop left are ended.
    pub fn open(project: Arc<Project>, places: &import::ImportPlaces) -> Result<Self, ToolboxError> {
        leftovers::end_all(&project);
        let policy = project.config.policy("tool")?;
        let classifier = Arc::new(project.classifier_or_builtin(|error| {
            project.process.warn(&error.to_string(), error.hints().first().map(String::as_str));
        }));
        let (servers, problems) = servers(&project, places);
        let http = project.process.http_client();
        let upstream = |(name, (settings, origin)): (Name, (McpServerSettings, String))| {
            let upstream = Upstream::new(name.clone(), settings, origin, Arc::clone(&project), http.clone());
            (name, Arc::new(upstream))
        };
        let upstreams: BTreeMap<Name, Arc<Upstream>> = servers.into_iter().map(upstream).collect();
        let (kept, cache_state) = cache::load(&project);
        let policy = Arc::new(policy);
        let broken_cache = match &cache_state {
            CacheState::Invalid(why) if !upstreams.is_empty() => BrokenCache::record(&project, &policy, why),
            _ => None,
        };
        let fits = |name: &Name, listing: &ServerListing| {
            upstreams.get(name).is_some_and(|upstream| upstream.fingerprint() == listing.fingerprint)
        };
        let listings: BTreeMap<Name, Arc<ServerListing>> = kept
            .into_iter()
            .filter(|(name, listing)| fits(name, listing))
            .map(|(name, listing)| (name, Arc::new(listing)))
            .collect();
        for (name, listing) in &listings {
            if let Some(upstream) = upstreams.get(name) {
                upstream.remember_era(listing.era);
            }
        }
        let this = Self {
            admission: Admission::new(Arc::clone(&project)),
            classifier,
            policy,
            successes: Arc::default(),
            run_numbers: RunNumbers::new(project.process.random),
            results: ResultCache::default(),
            upstreams,
            catalogue: RwLock::default(),
            listings: Mutex::new(listings),
            common: project.config.mcp(),
            cache_state,
            broken_cache: Mutex::new(broken_cache),
            problems,
            asked: Mutex::default(),
            failures: Mutex::default(),
            running: Arc::default(),
            closing: Cancel::new(),
            project,
        };
        this.rebuild();
        Ok(this)
    }

    /// The project.
    pub fn project(&self) -> &Arc<Project> {
        &self.project
    }

    /// All servers, by name.
    pub fn upstreams(&self) -> &BTreeMap<Name, Arc<Upstream>> {
        &self.upstreams
    }

    /// Servers that cannot be used as they are set up.
    pub fn problems(&self) -> &[SetupProblem] {
        &self.problems
    }

    /// Whether the lists of tools on disk could be used.
    pub fn cache_state(&self) -> &CacheState {
        &self.cache_state
    }

    /// Where the lists of tools are kept.
    pub fn cache_file(&self) -> Option<std::path::PathBuf> {
        cache::file(&self.project)
    }

    /// The tools that are known now.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn rebuild(&self) {
        let settings = self.upstreams.iter().map(|(name, upstream)| (name.clone(), &upstream.settings));
        let settings: BTreeMap<Name, &McpServerSettings> = settings.collect();
        // A single server may be offered without its name; one that has not been asked counts too.
        let prefix = self.common.prefix || self.upstreams.len() != 1;
        let catalogue = Catalogue::new(lock(&self.listings).clone(), &settings, prefix);
        *self.catalogue.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalogue);
    }

    /// Whether a server's list is there and young enough.
    pub(crate) fn is_fresh(&self, server: &Name) -> bool {
        let now = self.project.process.now();
        let age_max = self.common.cache_for;
        lock(&self.listings).get(server).is_some_and(|listing| now.since(listing.listed_at) < age_max)
    }

    /// Whether a server's list is there, however old.
    pub(crate) fn is_listed(&self, server: &Name) -> bool {
        lock(&self.listings).contains_key(server)
    }

    /// Asks a server for its tools, and keeps the answer. Returns whether anything changed.
    pub async fn refresh(&self, server: &Name, cancel: &Cancel) -> Result<bool, Box<Fault>> {
        let Some(upstream) = self.upstreams.get(server) else { return Ok(false) };
        let listing = upstream.list(cancel).await?;
        let now = self.project.process.now();
        let changed = {
            let mut listings = lock(&self.listings);
            let old = listings.get(server).map(|old| &**old);
            let new = ServerListing::new(upstream.fingerprint(), listing, old, now);
            let changed = old.is_none_or(|old| !old.is_same(&new));
            listings.insert(server.clone(), Arc::new(new));
            match cache::save(&self.project, &listings) {
                Ok(()) => self.cache_is_rebuilt(true),
                Err(error) => {
                    self.project.process.warn(&format!("the list of tools is not kept: {error}"), None);
                }
            }
            changed
        };
        self.rebuild();
        Ok(changed)
    }

    /// Lists on disk that could not be used were made anew, or never will be by this process.
    fn cache_is_rebuilt(&self, rebuilt: bool) {
        if let Some(broken) = lock(&self.broken_cache).take() {
            broken.end(rebuilt);
        }
    }

    /// Asks a server for its tools because of a name that is not known: many such names are one
    /// question.
    pub(crate) async fn refresh_for_unknown(&self, server: &Name, cancel: &Cancel) -> Result<(), Box<Fault>> {
        let gate = Arc::clone(lock(&self.asked).entry(server.clone()).or_default());
        let mut asked_at = gate.lock().await;
        if asked_at.is_some_and(|at| at.elapsed() < ASK_AGAIN_AFTER) {
            return Ok(());
        }
        self.refresh(server, cancel).await?;
        *asked_at = Some(Instant::now());
        Ok(())
    }

    /// Asks these servers for their tools, all at once. Gives what became of each.
    pub async fn refresh_all(
        self: &Arc<Self>,
        servers: Vec<Name>,
        wait: Option<Duration>,
    ) -> BTreeMap<Name, Result<bool, Box<Fault>>> {
        let mut tasks = tokio::task::JoinSet::new();
        for server in servers {
            let this = Arc::clone(self);
            tasks.spawn(async move {
                let answer = this.refresh(&server, &this.closing).await;
                (server, answer)
            });
        }
        let mut answers = BTreeMap::new();
        let all = async {
            while let Some(done) = tasks.join_next().await {
                if let Ok((server, answer)) = done {
                    answers.insert(server, answer);
                }
            }
        };
        match wait {
            Some(wait) => {
                let _ = tokio::time::timeout(wait, all).await;
            }
            None => all.await,
        }
        // Whoever is slow goes on behind, and is found in the catalogue later.
        tasks.detach_all();
        answers
    }

    /// The servers whose tools are not known.
    pub fn unlisted(&self) -> Vec<Name> {
        self.upstreams.keys().filter(|name| !self.is_listed(name)).cloned().collect()
    }

    /// The servers whose tools are known only from longer ago than `mcp.cache_for`.
    pub fn stale(&self) -> Vec<Name> {
        let is_stale = |name: &&Name| self.is_listed(name) && !self.is_fresh(name);
        self.upstreams.keys().filter(is_stale).cloned().collect()
    }

    /// The server that has a tool; where the tool is not known, the one that its name begins with.
    pub(crate) fn server_of(&self, tool: &str) -> Option<&Arc<Upstream>> {
        if let Some(known) = self.catalogue().get(tool) {
            return self.upstreams.get(&known.server);
        }
        match longest_prefix(tool, self.upstreams.keys().map(Name::as_str)) {
            Some(server) => self.upstreams.get(&server.parse::<Name>().ok()?),
            None if self.upstreams.len() == 1 => self.upstreams.values().next(),
            None => None,
        }
    }

    /// The name of the server that a tool belongs to, by its name.
    pub fn server_of_tool(&self, tool: &str) -> Option<&Name> {
        self.server_of(tool).map(|upstream| &upstream.name)
    }

    /// A tool, and the server that has it. A tool that is not known is asked for once, for at most
    /// as long as `limit`; an error says why its server cannot be asked.
    pub(crate) async fn find(
        &self,
        name: &str,
        limit: Option<Duration>,
        cancel: &Cancel,
    ) -> Result<Option<Found>, Unlisted> {
        let known = || {
            let tool = Arc::clone(self.catalogue().get(name)?);
            let upstream = Arc::clone(self.upstreams.get(&tool.server)?);
            Some((tool, upstream))
        };
        if let Some(found) = known() {
            return Ok(Some(found));
        }
        let Some(upstream) = self.server_of(name) else { return Ok(None) };
        let asking = Box::pin(self.refresh_for_unknown(&upstream.name, cancel));
        let asked = match limit {
            Some(limit) => tokio::time::timeout(limit, asking)
                .await
                .unwrap_or_else(|_| Err(Box::new(of_wait(&upstream.name, WaitedFor::Start, limit)))),
            None => asking.await,
        };
        match asked {
            Ok(()) => Ok(known()),
            Err(fault) => Err(Unlisted { upstream: Arc::clone(upstream), fault }),
        }
    }

    /// A call of this tool has ended. Returns how often in a row calls of it had failed before: in
    /// this process, and just before it in others.
    pub(crate) fn note_outcome(&self, tool: &str, succeeded: bool) -> u32 {
        let mut failures = lock(&self.failures);
        let known = failures.get_mut(tool);
        if succeeded {
            return match known {
                Some(count) => std::mem::take(count),
                None => failures.insert(tool.to_owned(), 0).unwrap_or(0),
            };
        }
        let before = known.map_or_else(|| self.failed_just_before(tool), |count| *count);
        failures.insert(tool.to_owned(), before.saturating_add(1));
        before
    }

    /// How often calls of a tool have failed lately, by the journal: failures are all in it, while
    /// successes are only counted.
    fn failed_just_before(&self, tool: &str) -> u32 {
        let filter = RunFilter {
            limit: REMEMBERED_MAX,
            since: Some(self.project.process.now().before(REMEMBERED_FOR)),
            surface: Some("tools".to_owned()),
            operation_contains: Some(tool.to_owned()),
            ..RunFilter::default()
        };
        let journal = self.project.existing_journal().ok().flatten();
        let runs = journal.and_then(|journal| journal.runs(&filter).ok()).unwrap_or_default();
        let is_of_tool = |run: &&RunSummary| {
            let operation = run.operation.as_ref().and_then(|operation| operation.raw().strip_prefix(tool));
            operation.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        let ended = runs.iter().filter(is_of_tool).filter_map(|run| run.outcome);
        let failed = ended.take_while(|outcome| *outcome != Outcome::Done).count();
        u32::try_from(failed).unwrap_or(u32::MAX)
    }

    /// Ends servers that nobody uses.
    pub(crate) async fn stop_unused(&self) {
        for upstream in self.upstreams.values() {
            upstream.stop_if_unused().await;
        }
    }

    /// Notes that a call is being made, for as long as the answer is kept.
    pub(crate) fn begin_call(&self) -> RunningCall {
        self.running.fetch_add(1, Ordering::AcqRel);
        RunningCall(Arc::clone(&self.running))
    }

    /// Whether a call is being made, or anybody waits for an answer of a server.
    pub(crate) fn is_busy(&self) -> bool {
        self.running.load(Ordering::Acquire) > 0 || self.upstreams.values().any(|upstream| upstream.is_busy())
    }

    /// Ends every server, and writes what was counted.
    pub async fn close(&self) {
        self.closing.cancel();
        let mut tasks = tokio::task::JoinSet::new();
        for upstream in self.upstreams.values() {
            let upstream = Arc::clone(upstream);
            tasks.spawn(async move { upstream.stop().await });
        }
        while tasks.join_next().await.is_some() {}
        self.cache_is_rebuilt(false);
        if let Ok(journal) = self.project.journal() {
            self.successes.write(journal);
        }
    }
}

type Servers = BTreeMap<Name, (McpServerSettings, String)>;

/// The servers that the settings name, those of other programs' files included.
fn servers(project: &Project, places: &import::ImportPlaces) -> (Servers, Vec<SetupProblem>) {
    let (mut found, mut problems) = (Servers::new(), Vec::new());
    for server in project.config.untrusted_mcp_servers() {
        problems.push(SetupProblem {
            what: SafeText::new("it is set up by this project's backstop.toml, which is not trusted"),
            hint: "read the file, then `backstop trust`".to_owned(),
            server,
        });
    }
    for (name, settings) in project.config.mcp_servers() {
        // The configuration has checked the name.
        if let Ok(name) = name.parse::<Name>()
            && !settings.disabled
        {
            found.insert(name, (settings, "backstop.toml".to_owned()));
        }
    }
    let from = project.config.mcp().from;
    let all =
        from.iter().flat_map(|from| import::servers_of(from, places).into_iter().map(move |one| (from, one)));
    for (from, imported) in all {
        match imported {
            Ok(imported) if !is_trusted(project, &imported, places) => {
                let file = imported.file.display();
                let what = format!("it is set up by {file}, which is not trusted as it is now");
                let names = imported.servers.keys().map(ToString::to_string);
                problems.extend(names.map(|server| SetupProblem {
                    server,
                    what: SafeText::new(what.as_str()),
                    hint: "read the file, then `backstop trust`".to_owned(),
                }));
            }
            Ok(imported) => {
                for (name, settings) in imported.servers {
                    found.entry(name).or_insert((settings, imported.file.display().to_string()));
                }
            }
            Err(problem) => problems.push(SetupProblem {
                server: from.clone(),
                what: SafeText::new(problem.to_string()),
                hint: "`backstop mcp import` shows what was found where".to_owned(),
            }),
        }
    }
    (found, problems)
}

/// Whether a file may start something: one of the user's own, or one of the project that is trusted
/// as it is.
fn is_trusted(project: &Project, imported: &import::Imported, places: &import::ImportPlaces) -> bool {
    if !import::is_of_project(&imported.file, places) {
        return true;
    }
    let file = imported.file.canonicalize().unwrap_or_else(|_| imported.file.clone());
    let known = || -> Option<bool> {
        UserStore::open_existing(project.folder().ok()?).ok()??.is_trusted(&file, &imported.hash).ok()
    };
    known().unwrap_or(false)
}
