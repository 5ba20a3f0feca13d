//! One attempt of a call.

use super::{CallRequest, WantedTarget};
use crate::arguments::{Mismatch, expected};
use crate::catalogue::Tool;
use crate::connection::{CallWatch, Connection, Params, Partial, RequestFailure, RequestLimits};
use crate::fault::{self, WaitedFor};
use crate::jsonrpc::{self, Raw, RpcError};
use crate::result::Head;
use crate::suggest::{Suggestions, suggest};
use crate::toolbox::{Toolbox, Unlisted};
use crate::transport::TransportFailureKind;
use crate::upstream::Upstream;
use backstop_config::McpServerSettings;
use backstop_core::{Dispatch, Fault, Name, Reason, SafeText};
use backstop_engine::{Attempt, Cancel, Failed, Operation};
use backstop_report::NO_SERVERS_LINE;
use backstop_runtime::Project;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The method that calls a tool.
const CALL: &str = "tools/call";

/// How long a server has to list its tools once it does not have one of them any more.
const LOOK_AGAIN_WAIT: Duration = Duration::from_secs(5);

/// What a call is made of.
#[derive(Debug)]
pub(super) enum Target {
    /// A tool of a server.
    Tool { tool: Arc<Tool>, upstream: Arc<Upstream>, arguments: Value },
    /// Any method of a server.
    Raw { upstream: Arc<Upstream>, method: String, tool: Option<Arc<Tool>> },
    /// A tool of a server that cannot be asked for its tools.
    Unlisted(Unlisted),
    /// There is none.
    Unknown { what: String, suggestions: Suggestions, why: Option<Unusable> },
}

impl Target {
    /// Finds what a call is for. A tool that is not known is asked for once, for at most as long as
    /// `limit`.
    pub(super) async fn find(toolbox: &Toolbox, request: &CallRequest, limit: Option<Duration>) -> Self {
        match &request.target {
            WantedTarget::Tool(name) => match toolbox.find(name, limit, &request.cancel).await {
                Ok(Some((tool, upstream))) => {
                    Self::Tool { tool, upstream, arguments: jsonrpc::value(&request.arguments) }
                }
                Err(unlisted) => Self::Unlisted(unlisted),
                Ok(None) => Self::Unknown {
                    what: name.clone(),
                    suggestions: suggest(name, &toolbox.catalogue()),
                    why: unusable(toolbox, name),
                },
            },
            WantedTarget::Raw { server, method } => match toolbox.upstreams().get(server) {
                Some(upstream) => Self::Raw {
                    tool: called_tool(toolbox, server, method, &request.arguments),
                    upstream: Arc::clone(upstream),
                    method: method.clone(),
                },
                None => Self::Unknown {
                    what: format!("{server} {method}"),
                    suggestions: Suggestions {
                        nearest: Vec::new(),
                        prefixes: toolbox.upstreams().keys().map(ToString::to_string).collect(),
                    },
                    why: unusable(toolbox, server.as_str()),
                },
            },
        }
    }

    pub(super) fn settings(&self) -> Option<&McpServerSettings> {
        self.upstream().map(|upstream| &upstream.settings)
    }

    pub(super) fn upstream(&self) -> Option<&Arc<Upstream>> {
        match self {
            Self::Tool { upstream, .. } | Self::Raw { upstream, .. } => Some(upstream),
            Self::Unlisted(unlisted) => Some(&unlisted.upstream),
            Self::Unknown { .. } => None,
        }
    }

    /// Whether it may be repeated where nobody knows how far it got.
    pub(super) fn is_repeatable(&self) -> bool {
        match self {
            Self::Tool { tool, .. } => tool.repeatable,
            Self::Raw { tool: Some(tool), .. } => tool.repeatable,
            Self::Raw { method, .. } => only_reads(method),
            // What is not known may change something.
            Self::Unlisted(_) => false,
            Self::Unknown { .. } => true,
        }
    }
}

/// The tool that a raw call is for, where it calls one that is known.
fn called_tool(toolbox: &Toolbox, server: &Name, method: &str, params: &RawValue) -> Option<Arc<Tool>> {
    if method != CALL {
        return None;
    }
    let params = jsonrpc::value(params);
    let name = params.get("name")?.as_str()?;
    toolbox.catalogue().tools().find(|tool| tool.server == *server && tool.tool == name).cloned()
}

/// Whether a method of MCP changes nothing.
fn only_reads(method: &str) -> bool {
    method == "ping"
        || method == "server/discover"
        || method == "completion/complete"
        || method == "prompts/get"
        || method.ends_with("/list")
        || method.ends_with("/read")
}

/// Why a server cannot be used, and what to do about it.
#[derive(Debug)]
pub(super) struct Unusable {
    why: String,
    next: Option<String>,
}

/// Why the server of a tool cannot be used, where that is known.
fn unusable(toolbox: &Toolbox, name: &str) -> Option<Unusable> {
    if toolbox.upstreams().is_empty() && toolbox.problems().is_empty() {
        return Some(Unusable { why: NO_SERVERS_LINE.to_owned(), next: None });
    }
    let servers = toolbox.problems().iter().map(|problem| problem.server.as_str());
    let server = crate::names::longest_prefix(name, servers).unwrap_or(name);
    let problem = toolbox.problems().iter().find(|problem| problem.server == server)?;
    let why = format!("{server} cannot be used: {}; {}", problem.what.raw(), problem.hint);
    Some(Unusable { why, next: Some(problem.hint.clone()) })
}

/// What a server answered to a call that went well.
pub(super) struct Answer {
    pub(super) result: Raw,
    pub(super) head: Head,
}

/// What is left of the last attempt.
#[derive(Debug, Default)]
pub(super) struct Last {
    pub(super) partial: Partial,
    /// What the server answered, where it answered that the call failed.
    pub(super) answer: Option<Result<Raw, RpcError>>,
    pub(super) timed_out: Option<Duration>,
    /// Whether the time was over before the call was sent.
    pub(super) not_sent: bool,
    pub(super) mismatch: Option<Mismatch>,
    pub(super) suggestions: Option<Suggestions>,
    /// What to do about a server that cannot be used.
    pub(super) next: Option<SafeText>,
    /// Whether the server says that it does not have the tool.
    pub(super) is_gone: bool,
    /// The tool, where it is known.
    pub(super) tool: Option<Arc<Tool>>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct LastAttempt(Arc<Mutex<Last>>);

impl LastAttempt {
    fn set(&self, change: impl FnOnce(&mut Last)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn take(&self) -> Last {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps a result that may be used again.
    pub(super) fn keep_result(&self, toolbox: &Toolbox, request: &CallRequest, answer: &Answer) {
        let tool = self.0.lock().unwrap_or_else(PoisonError::into_inner).tool.clone();
        let is_of_tool = matches!(request.target, WantedTarget::Tool(_));
        let Some(tool) = tool.filter(|tool| tool.read_only && is_of_tool) else { return };
        let cached = toolbox.upstreams().get(&tool.server).and_then(|upstream| upstream.settings.cache);
        if cached.is_some() && !answer.head.wants_input() {
            toolbox.results.put(&tool.name, request.arguments.get(), &answer.result);
        }
    }
}

/// A call that is attempted.
pub(super) struct CallOperation<'t> {
    toolbox: &'t Toolbox,
    target: Target,
    request: &'t CallRequest,
    last: LastAttempt,
    /// How long the server of a tool that was not known was asked for it.
    asked_for: Duration,
}

/// The shorter of two limits, where there are any.
pub(super) fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

impl<'t> CallOperation<'t> {
    pub(super) fn new(
        toolbox: &'t Toolbox,
        target: Target,
        request: &'t CallRequest,
        asked_for: Duration,
    ) -> Self {
        let last = LastAttempt::default();
        if let Target::Tool { tool, .. } | Target::Raw { tool: Some(tool), .. } = &target {
            last.set(|last| last.tool = Some(Arc::clone(tool)));
        }
        Self { toolbox, target, request, last, asked_for }
    }

    /// What is left when its attempts are over.
    pub(super) fn last(&self) -> LastAttempt {
        self.last.clone()
    }

    fn project(&self) -> &Project {
        &self.toolbox.project
    }

    /// What can be known before anything is sent.
    fn check(&self) -> Result<(), Failed> {
        match &self.target {
            Target::Unknown { what, suggestions, why } => {
                let mut fault = Fault::new(Reason::ToolNotFound);
                let cause = why.as_ref().map(|unusable| unusable.why.clone());
                fault.cause = Some(SafeText::new(cause.unwrap_or_else(|| format!("Tool not found: {what}"))));
                let next = why.as_ref().and_then(|unusable| unusable.next.as_deref()).map(SafeText::new);
                if let Some(next) = &next {
                    fault.suggested_action = next.clone();
                }
                self.last.set(|last| {
                    last.suggestions = Some(suggestions.clone());
                    last.next = next;
                });
                Err(Failed::classified(fault, Dispatch::NotDispatched))
            }
            Target::Tool { tool, arguments, .. } => {
                let Ok(schema) = tool.schema() else { return Ok(()) };
                let Some(mismatch) = schema.check(tool.input_schema(), arguments) else { return Ok(()) };
                let mut fault = Fault::new(Reason::InvalidParameters);
                let cause = format!("invalid parameters for {}: {}", tool.name, mismatch.summary());
                fault.cause = Some(SafeText::new(self.project().redactor.redact(&cause).into_owned()));
                self.last.set(|last| last.mismatch = Some(mismatch));
                Err(Failed::classified(fault, Dispatch::NotDispatched))
            }
            Target::Unlisted(unlisted) => Err(self.not_sent((*unlisted.fault).clone(), self.asked_for)),
            Target::Raw { .. } => Ok(()),
        }
    }

    /// The method, and the parameters as they are sent.
    fn message<'m>(&'m self, name: &'m RawValue) -> (&'m str, Params<'m>) {
        match &self.target {
            Target::Tool { tool, .. } => {
                let mut members: Vec<(Cow<'m, str>, &'m RawValue)> =
                    vec![("name".into(), name), ("arguments".into(), &*self.request.arguments)];
                members.extend(self.request.more.iter().map(|(key, value)| (key.as_str().into(), &**value)));
                let mut params = Params::of_tool(&tool.tool, members);
                params.meta.clone_from(&self.request.meta);
                (CALL, params)
            }
            Target::Raw { method, .. } => (method, Params::of(&self.request.arguments)),
            Target::Unlisted(_) | Target::Unknown { .. } => ("", Params::default()),
        }
    }

    async fn send(&self, upstream: &Arc<Upstream>, attempt: &Attempt) -> Result<Raw, Failed> {
        let settings = &upstream.settings;
        let began = Instant::now();
        // The settings limit the call itself; what this caller wants, all of it.
        let limit = shorter(self.request.timeout, attempt.left);
        let _slot = match upstream.free_slot() {
            Some(slot) => slot,
            None => {
                let waiting = Box::pin(async { Ok(upstream.slot().await) });
                self.waited(upstream, WaitedFor::Slot, (began, limit), &attempt.cancel, waiting).await?
            }
        };
        let connection = match upstream.open_connection() {
            Some(connection) => connection,
            None => {
                let waiting = Box::pin(upstream.connection(&attempt.cancel));
                self.waited(upstream, WaitedFor::Start, (began, limit), &attempt.cancel, waiting).await?
            }
        };
        let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
        let own = settings.timeout.filter(|_| self.request.timeout.is_none());
        let limits = RequestLimits { idle: settings.idle, total: shorter(own, left) };
        let name = match &self.target {
            Target::Tool { tool, .. } => jsonrpc::raw(&Value::from(tool.tool.as_str())),
            _ => RawValue::NULL.to_owned(),
        };
        let (method, params) = self.message(&name);
        let mut answer = self.ask(&connection, method, &params, limits, &attempt.cancel).await;
        if let Err(RequestFailure::Transport(failure)) = &answer
            && matches!(failure.kind, TransportFailureKind::SessionExpired)
        {
            answer =
                Box::pin(self.ask_anew(upstream, &connection, (method, &params), limits, attempt)).await?;
        }
        match answer {
            Ok(result) => {
                upstream.works().await;
                Ok(result)
            }
            Err(failure) => {
                let wrote = connection.transport.stderr();
                if let RequestFailure::TimedOut { sent: true, .. } = &failure {
                    Box::pin(upstream.abandon_if_frozen(&connection)).await;
                }
                Err(self.failed(upstream, failure, &wrote))
            }
        }
    }

    /// Waits for what a call needs before it can be sent, within its time and until it is
    /// cancelled.
    async fn waited<T>(
        &self,
        upstream: &Upstream,
        waited_for: WaitedFor,
        (began, limit): (Instant, Option<Duration>),
        cancel: &Cancel,
        what: impl Future<Output = Result<T, Box<Fault>>>,
    ) -> Result<T, Failed> {
        let time_is_up = async {
            match limit.and_then(|limit| began.checked_add(limit)) {
                Some(end) => tokio::time::sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        let fault = tokio::select! {
            biased;
            done = what => match done {
                Ok(done) => return Ok(done),
                Err(fault) => *fault,
            },
            () = cancel.cancelled() => {
                let cancelled = RequestFailure::Cancelled { sent: false };
                fault::of_request(upstream, self.project(), cancelled).fault
            }
            () = time_is_up => fault::of_wait(&upstream.name, waited_for, limit.unwrap_or_default()),
        };
        Err(self.not_sent(fault, began.elapsed()))
    }

    /// Asks in a new session, once: the server has forgotten the old one, and nothing was done in
    /// it.
    async fn ask_anew(
        &self,
        upstream: &Arc<Upstream>,
        forgotten: &Arc<Connection>,
        (method, params): (&str, &Params<'_>),
        limits: RequestLimits,
        attempt: &Attempt,
    ) -> Result<Result<Raw, RequestFailure>, Failed> {
        upstream.abandon(forgotten).await;
        let renewed = upstream.connection(&attempt.cancel).await;
        let connection = renewed.map_err(|fault| self.not_sent(*fault, Duration::ZERO))?;
        Ok(self.ask(&connection, method, params, limits, &attempt.cancel).await)
    }

    async fn ask(
        &self,
        connection: &Arc<Connection>,
        method: &str,
        params: &Params<'_>,
        limits: RequestLimits,
        cancel: &Cancel,
    ) -> Result<Raw, RequestFailure> {
        let mut partial = Partial::default();
        let watch = CallWatch {
            partial: &mut partial,
            sink: self.request.progress.as_deref(),
            sent_as: &self.request.sent_as,
        };
        let answer = connection.call(method, params, limits, cancel, watch).await;
        self.last.set(|last| last.partial = partial);
        answer
    }

    /// A call that was never sent: its time was over after `after`, or its server cannot be used.
    fn not_sent(&self, fault: Fault, after: Duration) -> Failed {
        // One that waits before it is started again is no longer waited for.
        let timed_out = fault.reason == Reason::Timeout && fault.facts.retry_after_seconds.is_none();
        self.last.set(|last| {
            last.not_sent = true;
            if timed_out {
                last.timed_out = Some(after);
            }
        });
        Failed::classified(fault, Dispatch::NotDispatched)
    }

    fn failed(&self, upstream: &Upstream, failure: RequestFailure, wrote: &str) -> Failed {
        if let RequestFailure::Rpc(error) = &failure {
            let error = error.clone();
            self.last.set(|last| last.answer = Some(Err(error)));
        }
        let classified = fault::of_request_that_wrote(upstream, self.project(), failure, wrote);
        self.last.set(|last| {
            last.timed_out = classified.timed_out;
            last.not_sent = classified.dispatch == Dispatch::NotDispatched;
        });
        self.answered(classified.fault, classified.dispatch)
    }

    /// Where the server does not have a tool that it once listed: asks it for its tools, and notes
    /// which of them may be meant.
    async fn look_for_others(&self, upstream: &Upstream, left: Option<Duration>) {
        let is_gone = self.last.0.lock().unwrap_or_else(PoisonError::into_inner).is_gone;
        let Target::Tool { tool, .. } = &self.target else { return };
        if !is_gone {
            return;
        }
        let asking = self.toolbox.refresh_for_unknown(&upstream.name, &self.request.cancel);
        let wait = shorter(left, Some(LOOK_AGAIN_WAIT)).unwrap_or(LOOK_AGAIN_WAIT);
        let _ = tokio::time::timeout(wait, asking).await;
        let mut suggestions = suggest(&tool.name, &self.toolbox.catalogue());
        suggestions.nearest.retain(|name| *name != tool.name);
        self.last.set(|last| last.suggestions = Some(suggestions));
    }

    /// Whether the result is that of a tool.
    fn calls_tool(&self) -> bool {
        match &self.target {
            Target::Tool { .. } => true,
            Target::Raw { method, .. } => method == CALL,
            Target::Unlisted(_) | Target::Unknown { .. } => false,
        }
    }

    /// The fault of a call whose server wants to know something first, where nobody can be asked.
    fn input_required(&self, upstream: &Upstream, result: &Value) -> Fault {
        let name = match &self.target {
            Target::Tool { tool, .. } => tool.tool.as_str(),
            _ => "TOOL",
        };
        fault::of_input_required(&upstream.name, name, self.project(), result)
    }

    /// A failure, with what it says about whether anything was done.
    fn answered(&self, fault: Fault, dispatch: Dispatch) -> Failed {
        // A server that says that there were too many calls has refused this one.
        let refused = matches!(fault.reason, Reason::RateLimited);
        if fault.reason == Reason::InvalidParameters
            && let Target::Tool { tool, .. } = &self.target
        {
            let mismatch = Mismatch { expected: expected(tool.input_schema()), ..Mismatch::default() };
            self.last.set(|last| last.mismatch = Some(mismatch));
        }
        if fault.reason == Reason::ToolNotFound {
            self.last.set(|last| last.is_gone = true);
        }
        let mut failed = Failed::classified(fault, dispatch);
        failed.nothing_done = refused && dispatch == Dispatch::Answered;
        failed
    }
}

impl Operation for CallOperation<'_> {
    type Output = Answer;

    /// A call is ended by its own limits, and the server is told.
    fn ends_itself(&self) -> bool {
        true
    }

    fn needs_confirmation(&self) -> Option<String> {
        if self.target.is_repeatable() {
            return None;
        }
        let name = self.request.name();
        Some(format!(
            "`{name}` may change something, and neither its annotations nor the settings say that it may be \
             repeated: it needs confirmation before it is retried"
        ))
    }

    fn is_compressible(&self) -> bool {
        false
    }

    async fn attempt(&mut self, attempt: Attempt) -> Result<Answer, Failed> {
        // A server that could not be asked before is asked again.
        if attempt.number > 1 && matches!(self.target, Target::Unlisted(_)) {
            let began = Instant::now();
            let limit = shorter(self.request.timeout, attempt.left);
            self.target = Box::pin(Target::find(self.toolbox, self.request, limit)).await;
            self.asked_for = began.elapsed();
        }
        self.check()?;
        let Some(upstream) = self.target.upstream().cloned() else {
            return Err(Fault::new(Reason::ToolNotFound).into());
        };
        let began = Instant::now();
        let result = match self.send(&upstream, &attempt).await {
            Ok(result) => result,
            Err(failed) => {
                let left = attempt.left.map(|left| left.saturating_sub(began.elapsed()));
                Box::pin(self.look_for_others(&upstream, left)).await;
                return Err(failed);
            }
        };
        let head = Head::of(&result);
        if head.wants_input() && !self.request.answers_input {
            let fault = self.input_required(&upstream, &jsonrpc::value(&result));
            let mut failed = Failed::classified(fault, Dispatch::Answered);
            failed.nothing_done = true;
            return Err(failed);
        }
        if self.calls_tool() && head.is_error {
            let fault = fault::of_error_result(&upstream, self.project(), &jsonrpc::value(&result));
            self.last.set(|last| last.answer = Some(Ok(result)));
            let failed = self.answered(fault, Dispatch::Answered);
            let left = attempt.left.map(|left| left.saturating_sub(began.elapsed()));
            Box::pin(self.look_for_others(&upstream, left)).await;
            return Err(failed);
        }
        Ok(Answer { result, head })
    }
}
