//! The gateway: one MCP server in front of all others.
//!
//! Clients of both eras are served, in any pairing with servers of both: a [`Session`] is one
//! client, [`requests`] says what each method does, [`ask`] carries what a server asks back to the
//! client whose call it works on, [`changes`] tells clients that a list changed, [`own_tools`] has
//! the tools of the gateway itself.
//!
//! It must not change a result that passes through, other than by what the client's era asks for.

mod ask;
mod awake;
mod changes;
mod http;
mod lists;
mod own_tools;
mod requests;
mod session;
mod stdio;
mod workers;

pub use http::HttpAccess;
pub(crate) use session::Session;

use crate::jsonrpc::{self, Raw, RpcError};
use crate::log_level::LogLevel;
use crate::toolbox::Toolbox;
use crate::upstream::Peers;
use ask::ActiveCall;
use backstop_core::Name;
use backstop_engine::Cancel;
use changes::{Changed, Subscription};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

/// How often unused servers are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How often it is looked whether the calls of servers that are set up no longer have ended.
const OLD_CALLS_LOOK: Duration = Duration::from_millis(200);
/// How many times, before they are ended all the same.
const OLD_CALLS_LOOKS: u32 = 3000;

/// How the gateway behaves.
#[derive(Debug, Clone, Copy)]
pub struct GatewaySettings {
    /// Whether the tools of the gateway itself are offered.
    pub own_tools: bool,
}

/// One MCP server in front of all others.
pub struct Gateway {
    toolbox: RwLock<Arc<Toolbox>>,
    settings: GatewaySettings,
    sessions: Mutex<Vec<Weak<Session>>>,
    /// The calls that are running, by server, oldest first.
    active: Mutex<HashMap<Name, Vec<Arc<ActiveCall>>>>,
    /// Calls of clients of the modern era that wait for the client's answer, by token.
    suspended: Mutex<HashMap<String, ask::Suspended>>,
    /// What clients of the modern era listen for.
    subscriptions: Mutex<Vec<Arc<Subscription>>>,
    /// The server that has a resource, by its address.
    resources: Mutex<BTreeMap<String, Name>>,
    /// The server and its own name of a prompt, by the name that it is listed by.
    prompts: Mutex<BTreeMap<String, (Name, String)>>,
    /// The servers that were asked for their tools by this process.
    refreshed: Mutex<HashSet<Name>>,
    /// The servers that a method has waited for.
    waited: Mutex<HashSet<(String, Name)>>,
    /// Its name among gateways.
    id: String,
    /// The gateways that clients' calls come through.
    above: Mutex<BTreeSet<String>>,
    own: Weak<Gateway>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gateway {
    /// A gateway to these servers. None is started yet.
    pub fn new(toolbox: Arc<Toolbox>, settings: GatewaySettings) -> Arc<Self> {
        let random = toolbox.project.process.random;
        let id = format!("{:016x}{:016x}", random(), random());
        Arc::new_cyclic(|own| Self {
            id,
            above: Mutex::default(),
            toolbox: RwLock::new(toolbox),
            settings,
            sessions: Mutex::default(),
            active: Mutex::default(),
            suspended: Mutex::default(),
            subscriptions: Mutex::default(),
            resources: Mutex::default(),
            prompts: Mutex::default(),
            refreshed: Mutex::default(),
            waited: Mutex::default(),
            own: Weak::clone(own),
        })
    }

    /// The servers as they are set up now.
    pub(crate) fn toolbox(&self) -> Arc<Toolbox> {
        Arc::clone(&self.toolbox.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The settings have changed: from now on these servers are served. Those from before are ended
    /// when their calls are, and clients are told that the lists changed.
    pub async fn replace(self: &Arc<Self>, toolbox: Arc<Toolbox>) {
        let old = {
            let mut current = self.toolbox.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, toolbox)
        };
        lock(&self.refreshed).clear();
        lock(&self.waited).clear();
        lock(&self.resources).clear();
        lock(&self.prompts).clear();
        if let Some(session) = self.live_sessions().first() {
            self.client_is_known(session);
        }
        self.tell_log_level();
        tokio::spawn(async move {
            for _ in 0..OLD_CALLS_LOOKS {
                if !old.is_busy() {
                    break;
                }
                tokio::time::sleep(OLD_CALLS_LOOK).await;
            }
            old.close().await;
        });
        self.tell_change(Changed::Tools);
    }

    /// Looks after the servers until `cancel` fires: those that nobody uses are stopped.
    async fn look_after(self: Arc<Self>, cancel: Cancel) {
        loop {
            tokio::select! {
                () = cancel.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => self.toolbox().stop_unused().await,
            }
        }
    }

    fn add_session(&self, session: &Arc<Session>) {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(Arc::downgrade(session));
    }

    fn live_sessions(&self) -> Vec<Arc<Session>> {
        lock(&self.sessions).iter().filter_map(Weak::upgrade).collect()
    }

    /// A client has said what it can do: servers that are started from now on are told.
    fn client_is_known(&self, session: &Session) {
        let Some(own) = self.own.upgrade() else { return };
        let toolbox = self.toolbox();
        let gateways: Vec<String> =
            std::iter::once(self.id.clone()).chain(lock(&self.above).iter().cloned()).collect();
        for upstream in toolbox.upstreams().values() {
            let peers = Arc::clone(&own) as Arc<dyn Peers>;
            upstream.answered_by(peers, session.capabilities(), gateways.clone());
        }
    }

    /// Asks a server for its tools behind everybody's back, and tells clients where they changed.
    fn refresh_behind(&self, server: &Name) {
        let Some(own) = self.own.upgrade() else { return };
        let server = server.clone();
        tokio::spawn(async move {
            let toolbox = own.toolbox();
            if toolbox.refresh(&server, &toolbox.closing).await == Ok(true) {
                own.tell_change(Changed::Tools);
            }
        });
    }
}

impl Peers for Gateway {
    fn notified(&self, server: &Name, method: &str, params: Option<&RawValue>) {
        match Changed::by_method(method) {
            Some(Changed::Tools) => self.refresh_behind(server),
            Some(changed) => self.tell_change(changed),
            None if method == "notifications/message" => {
                self.pass_on_log(LogLevel::of_message(params), &jsonrpc::notification(method, params));
            }
            None => {}
        }
    }

    fn asked<'a>(
        &'a self,
        server: &'a Name,
        method: &'a str,
        params: Option<&'a RawValue>,
        related: Option<u64>,
    ) -> Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send + 'a>> {
        Box::pin(self.ask_client(server, method, params, related))
    }
}
