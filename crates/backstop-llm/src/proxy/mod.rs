//! The proxy: model requests of every agent on this machine, with shared limits and recovery.
//!
//! A request is passed on byte by byte unless a recovery has to change it. Each one is an operation
//! under the engine, profile `request`; what is asked before it, recorded and learned is the
//! runtime's. Credentials are the client's own headers, or those of the settings; they are neither
//! stored nor logged, except as a hash that tells accounts apart.
//!
//! It must not print, have a retry loop of its own, or look into a request more than it needs to.

mod answer;
mod cache;
mod call;
mod closing;
mod errors;
mod events;
mod exchange;
#[cfg(test)]
mod growth;
mod pass;
mod route;
mod settings;
mod spending;
mod usage;
mod variables;

pub use call::SESSION_HEADERS;
pub use route::{Upstream, UpstreamError};
pub use settings::{ProxySettingsError, upstream_origins};
pub use spending::Budgets;
pub use usage::{Price, Prices};
pub use variables::{ClientVariables, LeftAlone};

use backstop_classify::Classifier;
use backstop_core::{Policy, Usage};
use backstop_engine::Cancel;
use backstop_http::Client;
use backstop_http::server::{Access, Answer, ServerLimits, ServerRequest, serve};
use backstop_runtime::admission::Admission;
use backstop_runtime::operation::OperationRun;
use backstop_runtime::recorder::run_numbers::RunNumbers;
use backstop_runtime::recorder::successes::Successes;
use backstop_runtime::{Project, ProjectError};
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::future::Future;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How many clients are served at once.
const CONNECTIONS_MAX: usize = 4096;
/// How long requests under way have once the end was asked for.
const DRAIN_MAX: Duration = Duration::from_secs(30);
/// How often what was counted is written.
const COUNTS_EVERY: Duration = Duration::from_secs(3);
/// How many connections to one upstream are kept for the next request, and to all of them.
const KEPT_MAX: (usize, usize) = (64, 256);
/// The headers in which a token is looked for: the usual one is for the upstream.
const TOKEN_HEADERS: &[&str] = &["x-backstop-token", "proxy-authorization"];

/// How the proxy works.
#[derive(Debug, Clone)]
pub struct ProxySettings {
    /// Where requests go.
    pub upstreams: Vec<Upstream>,
    /// How long a request may take until its answer begins, with all attempts and waits.
    pub deadline: Duration,
    /// How long an upstream may be silent.
    pub idle: Duration,
    /// The largest request whose failure can be recovered.
    pub body_bytes_max: usize,
    /// Whether answers to identical requests are used again.
    pub cache: bool,
    /// What is used instead of a model where nothing else helps.
    pub fallbacks: HashMap<String, String>,
    /// What models cost.
    pub prices: Prices,
    /// What may be spent.
    pub budgets: Budgets,
    /// The token that clients have to give, where one is asked for.
    pub token: Option<String>,
}

impl Default for ProxySettings {
    fn default() -> Self {
        Self {
            upstreams: Upstream::usual(),
            deadline: Duration::from_secs(9 * 60),
            idle: Duration::from_secs(10 * 60),
            body_bytes_max: 64 << 20,
            cache: false,
            fallbacks: HashMap::new(),
            prices: Prices(BTreeMap::new()),
            budgets: Budgets::default(),
            token: None,
        }
    }
}

/// What all requests share. Each thread has its own connections to upstreams, and shares the rest.
#[derive(Clone)]
pub(crate) struct State {
    project: Arc<Project>,
    settings: Arc<ProxySettings>,
    upstreams: Arc<[Arc<Upstream>]>,
    client: Client,
    admission: Arc<Admission>,
    classifier: Arc<Classifier>,
    policy: Arc<Policy>,
    successes: Arc<Successes>,
    cache: Arc<cache::Cache>,
    spending: Arc<spending::Spending>,
    run_numbers: Arc<RunNumbers>,
    /// Set once the proxy ends.
    ending: Cancel,
}

/// The proxy.
pub struct Proxy(Arc<State>);

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

impl Proxy {
    /// A proxy of this project. Nothing is connected to yet.
    pub fn new(project: Arc<Project>, settings: ProxySettings) -> Result<Self, ProjectError> {
        let classifier = project.classifier_or_builtin(|error| {
            project.process.warn(&error.to_string(), error.hints().first().map(String::as_str));
        });
        let mut policy = project.config.policy("request")?;
        policy.wait_max = settings.deadline;
        let admission = Admission::new(Arc::clone(&project));
        let spending = spending::Spending::new(Arc::clone(&admission), settings.budgets.clone())?;
        let upstreams = settings.upstreams.iter().cloned().map(Arc::new).collect();
        Ok(Self(Arc::new(State {
            upstreams,
            run_numbers: Arc::new(RunNumbers::new(project.process.random)),
            client: project.process.http_client_keeping(KEPT_MAX.0, KEPT_MAX.1),
            admission,
            classifier: Arc::new(classifier),
            policy: Arc::new(policy),
            successes: Arc::default(),
            cache: Arc::default(),
            spending: Arc::new(spending),
            ending: Cancel::new(),
            settings: Arc::new(settings),
            project,
        })))
    }

    /// Serves clients until `stop` is ready, then lets what is under way end: on this thread and,
    /// where `threads` is more than one, on others beside it.
    pub async fn serve(
        &self,
        listener: TcpListener,
        threads: usize,
        stop: impl Future<Output = ()>,
    ) -> std::io::Result<()> {
        let limits = ServerLimits { connections_max: CONNECTIONS_MAX / threads.max(1), drain_max: DRAIN_MAX };
        let others: Vec<JoinHandle<_>> = (1..threads)
            .map(|_| self.serve_beside(listener.try_clone()?, limits))
            .collect::<Result<_, _>>()?;
        let stop = async {
            stop.await;
            self.0.ending.cancel();
        };
        let served = tokio::select! {
            served = Arc::clone(&self.0).serve(listener, limits, stop) => served,
            never = self.keep_counts() => match never {},
        };
        self.0.ending.cancel();
        // Waited for elsewhere, so that this thread still hears of signals.
        let _ = tokio::task::spawn_blocking(|| others.into_iter().for_each(|other| drop(other.join()))).await;
        self.0.write_counts();
        served
    }

    /// Serves the same clients on another thread, until the proxy ends.
    fn serve_beside(
        &self,
        listener: TcpListener,
        limits: ServerLimits,
    ) -> std::io::Result<JoinHandle<std::io::Result<()>>> {
        let client = self.0.client.with_own_connections();
        let state = Arc::new(State { client, ..State::clone(&self.0) });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("proxy".to_owned()).spawn(move || {
            let ending = state.ending.clone();
            let served = runtime.block_on(state.serve(listener, limits, ending.cancelled()));
            runtime.shutdown_background();
            served
        })
    }

    /// Writes what was counted from time to time, so that others see it and a kill costs little.
    async fn keep_counts(&self) -> Infallible {
        loop {
            tokio::time::sleep(COUNTS_EVERY).await;
            let state = Arc::clone(&self.0);
            let _ = tokio::task::spawn_blocking(move || state.write_counts()).await;
        }
    }
}

impl State {
    async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        limits: ServerLimits,
        stop: impl Future<Output = ()>,
    ) -> std::io::Result<()> {
        let access = Access::local().with_token(self.settings.token.clone()).token_in(TOKEN_HEADERS);
        serve(listener, access, limits, stop, move |request| Arc::clone(&self).answer(request)).await
    }

    async fn answer(self: Arc<Self>, request: ServerRequest) -> Answer {
        if request.path() == HEALTH {
            return Answer::json(200, br#"{"ok":true}"#.to_vec());
        }
        if request.method().as_str() == "CONNECT" {
            return Answer::text(
                405,
                "this is no proxy for connections, but the base URL of clients: `backstop proxy --env` prints the variables",
            );
        }
        if route::has_dot_segments(request.target()) {
            return Answer::text(400, "a path with `.` or `..` cannot be passed on as it is");
        }
        let Some(route) =
            route::route(&self.upstreams, request.method(), request.target(), request.headers())
        else {
            let names: Vec<&str> = self.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
            let text = format!(
                "no upstream is set up for this path; there are: {}; `--upstream NAME=URL` adds one, and `/NAME/…` chooses it",
                names.join(", ")
            );
            return Answer::text(404, &text);
        };
        // On the heap, as both are large: each connection has room for this future as long as it is
        // open, and a stream that has begun needs none of it any more.
        match route.operation {
            route::Operation::Other => Box::pin(pass::pass_on(&self, route, request)).await,
            _ => Box::pin(self.recover(route, request)).await,
        }
    }

    /// Writes what was counted and is not written yet.
    fn write_counts(&self) {
        if !self.successes.is_empty()
            && let Ok(journal) = self.project.journal()
        {
            self.successes.write(journal);
        }
    }

    /// Counts what a request used.
    fn used(&self, run: &OperationRun, model: Option<&str>, usage: Usage) {
        if usage != Usage::default() {
            self.successes.add_usage(model.unwrap_or("unknown"), usage);
            self.spending.charge(run, usage);
        }
    }
}

/// The one path that is the proxy's own.
const HEALTH: &str = "/backstop/health";

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, F>(_: impl Fn(A) -> F) -> usize {
        size_of::<F>()
    }

    /// Each connection has room for it as long as it is open.
    #[test]
    fn the_future_of_a_request_is_small() {
        let answer = size(|(state, request): (Arc<State>, ServerRequest)| state.answer(request));
        assert!(answer <= 2 << 10, "{answer} bytes");
    }
}
