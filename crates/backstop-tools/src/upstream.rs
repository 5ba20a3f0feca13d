//! One MCP server and its life: started when it is first needed, restarted after a crash with a
//! growing pause, stopped when nobody uses it.

use crate::catalogue::Listing;
use crate::connection::{Connection, RequestFailure, RequestLimits};
use crate::fault::{self, StartFailure};
use crate::handshake::{self, OurSide};
use crate::jsonrpc::{self, METHOD_NOT_FOUND, Raw, RpcError};
use crate::leftovers::ChildFile;
use crate::log_level::LogLevel;
use crate::protocol::{Era, TOOLS_CHANGED};
use crate::transport::{Http, HttpTarget, Inbox, PeerMessage, Program, Stdio, Transport, repeat_stream};
use backstop_config::McpServerSettings;
use backstop_core::{Fault, Name, Sha256};
use backstop_engine::Cancel;
use backstop_http::{Address, Client};
use backstop_runtime::Project;
use backstop_runtime::expand::{self, expand};
use backstop_runtime::project::secrets_in;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Instant;

/// The pauses before a server is started again, by how often in a row it has crashed.
const RESTART_PAUSES: &[Duration] = &[
    Duration::ZERO,
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(30),
];
/// A server that ran for so long before it crashed starts anew with the shortest pause.
const RAN_WELL: Duration = Duration::from_secs(60);
/// How many tools of one server are taken.
pub(crate) const TOOLS_MAX: usize = 2000;
/// How long a server may take to be told which log messages are wanted.
const LOG_LEVEL_WAIT: Duration = Duration::from_secs(10);
/// The shortest value of a header that is taken for a secret, in bytes.
const SECRET_BYTES_MIN: usize = 6;
/// How many requests of one server are answered at once.
const PEER_REQUESTS_MAX: usize = 16;

/// Who answers what a server asks, and hears what it says by itself.
pub(crate) trait Peers: Send + Sync {
    /// A server said something.
    fn notified(&self, server: &Name, method: &str, params: Option<&RawValue>);
    /// A server asks something: sampling, elicitation, roots. `related` is the request of ours that
    /// it asks during, where it says so.
    fn asked<'a>(
        &'a self,
        server: &'a Name,
        method: &'a str,
        params: Option<&'a RawValue>,
        related: Option<u64>,
    ) -> Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send + 'a>>;
}

/// What an upstream is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamState {
    /// Whether it runs, or a session with it is open.
    pub running: bool,
    /// The process, where it is a program.
    pub pid: Option<u32>,
    /// How often it was started.
    pub starts: u32,
    /// How often in a row it could not be started, or crashed.
    pub failures: u32,
    /// Lines that it wrote and that were no message.
    pub unreadable: u64,
    /// Answers that nobody had asked for.
    pub stray_answers: u64,
}

#[derive(Default)]
struct Live {
    connection: Option<Arc<Connection>>,
    /// What remembers the process, for whoever comes after a killed Backstop.
    child: Option<ChildFile>,
    started_at: Option<Instant>,
    starts: u32,
    failures: u32,
    retry_at: Option<Instant>,
    last_fault: Option<Fault>,
}

/// One MCP server.
pub struct Upstream {
    /// Its name in the settings.
    pub name: Name,
    /// Whose rate limit holds for its calls.
    pub(crate) client: Option<Name>,
    /// Its settings.
    pub settings: McpServerSettings,
    /// Where its settings come from.
    pub origin: String,
    project: Arc<Project>,
    http: Client,
    live: tokio::sync::Mutex<Live>,
    slots: Arc<Semaphore>,
    last_used: Mutex<Option<Instant>>,
    peers: Mutex<Option<Arc<dyn Peers>>>,
    capabilities: Mutex<Value>,
    era: Mutex<Option<Era>>,
    /// The gateways that its calls come through, ours first.
    gateways: Mutex<Vec<String>>,
    /// The least important log messages that anybody wants, where somebody has said so.
    log_level: Mutex<Option<LogLevel>>,
    /// Fires when it is ended for good: a start in progress is given up.
    closing: Cancel,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream").field("name", &self.name).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Upstream {
    pub(crate) fn new(
        name: Name,
        settings: McpServerSettings,
        origin: String,
        project: Arc<Project>,
        http: Client,
    ) -> Self {
        let slots = Arc::new(Semaphore::new(settings.concurrency.max(1)));
        Self {
            client: format!("mcp-{name}").parse().ok(),
            name,
            settings,
            origin,
            project,
            http,
            live: tokio::sync::Mutex::default(),
            slots,
            last_used: Mutex::default(),
            peers: Mutex::default(),
            capabilities: Mutex::new(json!({})),
            era: Mutex::default(),
            gateways: Mutex::default(),
            log_level: Mutex::default(),
            closing: Cancel::new(),
        }
    }

    /// Tells it the least important log messages that anybody wants: now where it runs, else when
    /// it is started.
    pub(crate) fn set_log_level(&self, level: LogLevel) {
        let before = lock(&self.log_level).replace(level);
        if before == Some(level) {
            return;
        }
        // One that is just being started reads the level when it has been greeted.
        if let Ok(live) = self.live.try_lock()
            && let Some(connection) = live.connection.clone()
        {
            tell_log_level(connection, level);
        }
    }

    /// What its list of tools depends on, as a hash: a change of it makes a cached list void.
    pub(crate) fn fingerprint(&self) -> String {
        let settings = &self.settings;
        let parts = json!([
            settings.command,
            settings.args,
            settings.cwd,
            settings.env,
            settings.url,
            settings.headers,
        ]);
        let mut hasher = Sha256::new();
        hasher.update(parts.to_string().as_bytes());
        hasher.hex()
    }

    /// The environment variables that its settings take credentials from.
    pub(crate) fn credential_variables(&self) -> Vec<String> {
        let values = self.settings.env.values().chain(self.settings.headers.values());
        values.flat_map(|value| expand::variables(value)).collect()
    }

    /// Who answers what it asks, and what they can do. It counts from the next start on.
    /// It is told the `gateways` that its calls come through.
    pub(crate) fn answered_by(&self, peers: Arc<dyn Peers>, capabilities: Value, gateways: Vec<String>) {
        *lock(&self.peers) = Some(peers);
        *lock(&self.gateways) = gateways;
        *lock(&self.capabilities) = capabilities;
    }

    /// The era that it spoke the last time, from the cache.
    pub(crate) fn remember_era(&self, era: Era) {
        lock(&self.era).get_or_insert(era);
    }

    /// What it is doing.
    pub async fn state(&self) -> UpstreamState {
        let live = self.live.lock().await;
        let open = live.connection.as_ref().filter(|connection| !connection.is_closed());
        let (unreadable, stray_answers) = open.map(|c| c.inbox.oddities()).unwrap_or_default();
        UpstreamState {
            running: open.is_some(),
            pid: open.and_then(|connection| match &connection.transport {
                Transport::Stdio(stdio) => Some(stdio.started.process.pid),
                Transport::Http(_) => None,
            }),
            starts: live.starts,
            failures: live.failures,
            unreadable,
            stray_answers,
        }
    }

    /// A place for one more call, where one is free.
    pub(crate) fn free_slot(&self) -> Option<Option<OwnedSemaphorePermit>> {
        Arc::clone(&self.slots).try_acquire_owned().ok().map(Some)
    }

    /// Waits until it may get one more call.
    pub(crate) async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).acquire_owned().await.ok()
    }

    /// The connection to it, where it runs.
    pub(crate) fn open_connection(&self) -> Option<Arc<Connection>> {
        let live = self.live.try_lock().ok()?;
        let connection = live.connection.clone().filter(|connection| !connection.is_closed())?;
        *lock(&self.last_used) = Some(Instant::now());
        Some(connection)
    }

    /// The connection to it; it is started where it does not run. The start goes on where whoever
    /// asked for it gives up: the next one finds it further on.
    pub(crate) async fn connection(self: &Arc<Self>, cancel: &Cancel) -> Result<Arc<Connection>, Box<Fault>> {
        if let Some(connection) = self.open_connection() {
            return Ok(connection);
        }
        let (tell, told) = oneshot::channel();
        let this = Arc::clone(self);
        // It is rare and large: the future of each call would have room for it.
        tokio::spawn(Box::pin(async move {
            let answer = this.connect(&tell).await;
            let _ = tell.send(answer);
        }));
        let ended = || {
            let failure = RequestFailure::Cancelled { sent: false };
            Box::new(fault::of_request(self, &self.project, failure).fault)
        };
        tokio::select! {
            biased;
            answer = told => answer.unwrap_or_else(|_| Err(ended())),
            () = cancel.cancelled() => Err(ended()),
        }
    }

    /// Connects for whoever waits at the other end of `to`.
    async fn connect(
        &self,
        to: &oneshot::Sender<Result<Arc<Connection>, Box<Fault>>>,
    ) -> Result<Arc<Connection>, Box<Fault>> {
        let mut live = self.live.lock().await;
        *lock(&self.last_used) = Some(Instant::now());
        match live.connection.clone() {
            Some(connection) if !connection.is_closed() => return Ok(connection),
            Some(closed) => self.note_crash(&mut live, &closed),
            None => {}
        }
        if to.is_closed() {
            // Nobody waits any more: nothing is started for them.
            let failure = RequestFailure::Cancelled { sent: false };
            return Err(Box::new(fault::of_request(self, &self.project, failure).fault));
        }
        if let (Some(at), Some(fault)) = (live.retry_at, &live.last_fault)
            && at > Instant::now()
        {
            let left = at.duration_since(Instant::now());
            return Err(Box::new(fault::backing_off(&self.name, left, fault)));
        }
        live.starts += 1;
        match self.start(&self.closing).await {
            Ok((connection, child)) => {
                live.connection = Some(Arc::clone(&connection));
                live.child = child;
                live.started_at = Some(Instant::now());
                *lock(&self.era) = Some(connection.era);
                Ok(connection)
            }
            Err(failure) => {
                let is_cancelled = matches!(
                    failure,
                    StartFailure::Greeting { failure: RequestFailure::Cancelled { .. }, .. }
                );
                let fault = fault::of_start(self, &self.project, failure);
                if !is_cancelled {
                    self.note_failure(&mut live, fault.clone());
                }
                Err(Box::new(fault))
            }
        }
    }

    fn note_failure(&self, live: &mut Live, fault: Fault) {
        let pause = RESTART_PAUSES[(live.failures as usize).min(RESTART_PAUSES.len() - 1)];
        live.failures = live.failures.saturating_add(1);
        live.retry_at = Instant::now().checked_add(pause);
        live.last_fault = Some(fault);
    }

    /// A connection was found closed. A program that ran well for long begins with a short pause.
    fn note_crash(&self, live: &mut Live, closed: &Connection) {
        live.connection = None;
        live.child = None;
        if live.started_at.is_some_and(|at| at.elapsed() >= RAN_WELL) {
            live.failures = 0;
        }
        if let Some(kind) = closed.inbox.closed() {
            let fault = fault::of_closed(self, &self.project, &kind);
            self.note_failure(live, fault);
        }
    }

    /// A call was answered: it works.
    pub(crate) async fn works(&self) {
        if let Ok(mut live) = self.live.try_lock()
            && live.failures > 0
        {
            live.failures = 0;
            live.retry_at = None;
        }
    }

    async fn start(&self, cancel: &Cancel) -> Result<(Arc<Connection>, Option<ChildFile>), StartFailure> {
        let (inbox, from_peer) = Inbox::new();
        let (transport, child) = self.open(&inbox).await?;
        let capabilities = lock(&self.capabilities).clone();
        let era = *lock(&self.era);
        let tail = match &transport {
            Transport::Stdio(stdio) => Some(stdio.tail()),
            Transport::Http(_) => None,
        };
        let us = OurSide { capabilities, gateways: lock(&self.gateways).clone() };
        let greeting = handshake::greet(transport, inbox, us, era, self.settings.start_timeout, cancel).await;
        let connection = greeting.map_err(|failure| StartFailure::Greeting {
            failure,
            stderr: tail.map(|tail| tail.text()).filter(|text| !text.is_empty()),
        })?;
        let answering = Answering {
            name: self.name.clone(),
            peers: lock(&self.peers).clone(),
            root: self.project.root.clone(),
        };
        let connection = Arc::new(connection);
        if connection.era == Era::Modern && connection.has_changing_lists() {
            answering.hear_changes(&connection);
        }
        answering.listen(&connection, from_peer);
        if let Some(level) = *lock(&self.log_level) {
            tell_log_level(Arc::clone(&connection), level);
        }
        Ok((connection, child))
    }

    async fn open(&self, inbox: &Arc<Inbox>) -> Result<(Transport, Option<ChildFile>), StartFailure> {
        let variable = self.project.process.variable;
        let filled = |text: &str, secret: bool| {
            expand(text, &variable).map_err(|unset| StartFailure::Unset { variable: unset.name, secret })
        };
        if let Some(url) = &self.settings.url {
            let address = Address::parse(&filled(url, false)?)
                .map_err(|error| StartFailure::Address(error.to_string(), error.hint()))?;
            let headers =
                self.settings.headers.iter().map(|(name, value)| Ok((name.clone(), filled(value, true)?)));
            let headers: Vec<(String, String)> = headers.collect::<Result<_, StartFailure>>()?;
            // The name of a scheme stands before what is secret.
            self.mask(headers.iter().filter_map(|(_, value)| value.split_whitespace().last()));
            let target = HttpTarget { address, headers };
            return Ok((Transport::Http(Http::new(self.http.clone(), target, inbox)), None));
        }
        let command = self.settings.command.as_deref().ok_or(StartFailure::Nothing)?;
        let mut argv = vec![filled(command, false)?];
        for arg in &self.settings.args {
            argv.push(filled(arg, false)?);
        }
        let mut env = Vec::new();
        for (name, value) in &self.settings.env {
            env.push((name.clone(), filled(value, true)?));
        }
        self.mask(secrets_in(&env, &[]).iter().map(String::as_str));
        let mark = crate::leftovers::mark(&self.project.process);
        env.push((crate::leftovers::MARK_VARIABLE.to_owned(), mark.clone()));
        let program = Program { argv, folder: self.settings.cwd.clone(), env };
        let stdio = Stdio::start(program, inbox).await.map_err(StartFailure::Program)?;
        let child = ChildFile::write(&self.project, &stdio.started, &mark);
        Ok((Transport::Stdio(stdio), child))
    }

    /// Makes sure that these values of its settings are shown nowhere: a variable of any name may
    /// have given them.
    fn mask<'v>(&self, values: impl Iterator<Item = &'v str>) {
        let redactor = &self.project.redactor;
        let new: Vec<&str> = values
            .filter(|value| value.len() >= SECRET_BYTES_MIN && redactor.redact(value) == *value)
            .collect();
        redactor.learn(new);
    }

    /// Lists its tools, asking it now.
    pub(crate) async fn list(self: &Arc<Self>, cancel: &Cancel) -> Result<Listing, Box<Fault>> {
        let connection = self.connection(cancel).await?;
        let limits = RequestLimits { idle: None, total: self.settings.start_timeout };
        let listed = connection.list("tools/list", "tools", limits, cancel).await;
        let mut tools = listed.map_err(|failure| {
            let wrote = connection.transport.stderr();
            Box::new(fault::of_request_that_wrote(self, &self.project, failure, &wrote).fault)
        })?;
        self.works().await;
        let left_out = tools.len().saturating_sub(TOOLS_MAX);
        tools.truncate(TOOLS_MAX);
        Ok(Listing { tools, left_out, era: connection.era, hello: connection.hello.clone() })
    }

    /// Ends it, where it has not been used for as long as the settings say.
    pub(crate) async fn stop_if_unused(&self) {
        let Some(limit) = self.settings.stop_after else { return };
        let unused = lock(&self.last_used).is_some_and(|at| at.elapsed() >= limit);
        if !unused {
            return;
        }
        let mut live = self.live.lock().await;
        let idle = live.connection.as_ref().is_some_and(|connection| connection.inbox.is_idle());
        if idle && let Some(connection) = live.connection.take() {
            live.child = None;
            connection.transport.stop().await;
        }
    }

    /// Whether somebody waits for an answer of it.
    pub(crate) fn is_busy(&self) -> bool {
        // Whoever starts it or stops it holds the lock.
        self.live.try_lock().map_or(true, |live| {
            live.connection.as_ref().is_some_and(|connection| !connection.inbox.is_idle())
        })
    }

    /// Ends it: it does not answer any more. Calls beside this one are told.
    pub(crate) async fn abandon(&self, which: &Arc<Connection>) {
        let mut live = self.live.lock().await;
        if live.connection.as_ref().is_some_and(|connection| Arc::ptr_eq(connection, which)) {
            live.connection = None;
            live.child = None;
        }
        drop(live);
        which.transport.stop().await;
    }

    /// Ends it where it does not answer a ping either.
    pub(crate) async fn abandon_if_frozen(&self, which: &Arc<Connection>) {
        if !which.answers_ping().await {
            self.abandon(which).await;
        }
    }

    /// Ends it, with all that it started.
    pub async fn stop(&self) {
        self.closing.cancel();
        let mut live = self.live.lock().await;
        if let Some(connection) = live.connection.take() {
            connection.transport.stop().await;
        }
        live.child = None;
    }
}

/// Tells a server the least important log messages that anybody wants, without waiting for it. One
/// of the modern era is told with each request.
fn tell_log_level(connection: Arc<Connection>, level: LogLevel) {
    if connection.era == Era::Modern || !connection.has("logging") {
        return;
    }
    tokio::spawn(async move {
        let params = jsonrpc::raw(&json!({ "level": level.name() }));
        let limits = RequestLimits { idle: None, total: Some(LOG_LEVEL_WAIT) };
        // A server that does not know the method writes what it likes, as before.
        let _ = connection.request("logging/setLevel", Some(&params), limits, &Cancel::new()).await;
    });
}

/// Answers what a server asks.
struct Answering {
    name: Name,
    peers: Option<Arc<dyn Peers>>,
    root: std::path::PathBuf,
}

impl Answering {
    /// Begins to listen. The connection is kept only as long as others keep it.
    fn listen(self, connection: &Arc<Connection>, mut from_peer: mpsc::Receiver<PeerMessage>) {
        let connection = Arc::downgrade(connection);
        let answers = Arc::new(self);
        let slots = Arc::new(Semaphore::new(PEER_REQUESTS_MAX));
        tokio::spawn(async move {
            while let Some(message) = from_peer.recv().await {
                match message {
                    PeerMessage::Notification { method, params } => {
                        if let Some(peers) = &answers.peers {
                            peers.notified(&answers.name, &method, params.as_deref());
                        }
                    }
                    PeerMessage::Request { id, method, params, related } => {
                        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
                        let (answers, connection) = (Arc::clone(&answers), connection.clone());
                        tokio::spawn(async move {
                            let asking = connection.upgrade().map(|connection| connection.inbox.asks());
                            let result = answers.answer(&method, params.as_deref(), related).await;
                            drop(asking);
                            if let Some(connection) = connection.upgrade() {
                                connection.answer(&id, &result).await;
                            }
                            drop(slot);
                        });
                    }
                }
            }
        });
    }

    /// Asks a server of the modern era to tell changes of its lists. What it said while nobody
    /// listened is lost: its tools are asked for again.
    fn hear_changes(&self, connection: &Arc<Connection>) {
        let Some(peers) = self.peers.clone() else { return };
        let (name, connection) = (self.name.clone(), Arc::clone(connection));
        tokio::spawn(async move {
            let mut is_again = false;
            repeat_stream(|| {
                if std::mem::replace(&mut is_again, true) {
                    peers.notified(&name, TOOLS_CHANGED, None);
                }
                connection.listen()
            })
            .await;
        });
    }

    async fn answer(
        &self,
        method: &str,
        params: Option<&RawValue>,
        related: Option<u64>,
    ) -> Result<Raw, RpcError> {
        match (method, &self.peers) {
            ("ping", _) => Ok(jsonrpc::raw(&json!({}))),
            (_, Some(peers)) => peers.asked(&self.name, method, params, related).await,
            ("roots/list", None) => {
                let uri = format!("file://{}", self.root.display());
                Ok(jsonrpc::raw(&json!({ "roots": [{ "uri": uri, "name": "project" }] })))
            }
            _ => Err(RpcError::new(
                METHOD_NOT_FOUND,
                format!("{method} is not available: nobody can answer it"),
            )),
        }
    }
}
