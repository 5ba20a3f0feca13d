//! One attempt of a call.

use super::{CallRequest, WantedTarget};
use crate::arguments::{Mismatch, expected};
use crate::catalogue::Tool;
use crate::connection::{CallWatch, Connection, Params, Partial, RequestFailure, RequestLimits};
use crate::fault;
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
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The method that calls a tool.
const CALL: &str = "tools/call";

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
    Unknown { what: String, suggestions: Suggestions, why: Option<String> },
}

impl Target {
    /// Finds what a call is for. A tool that is not known is asked for once.
    pub(super) async fn find(toolbox: &Toolbox, request: &CallRequest) -> Self {
        match &request.target {
            WantedTarget::Tool(name) => match toolbox.find(name, &request.cancel).await {
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

    pub(super) fn server(&self) -> Option<&Name> {
        self.upstream().map(|upstream| &upstream.name)
    }

    fn upstream(&self) -> Option<&Arc<Upstream>> {
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

/// Why the server of a tool cannot be used, where that is known.
fn unusable(toolbox: &Toolbox, name: &str) -> Option<String> {
    if toolbox.upstreams().is_empty() && toolbox.problems().is_empty() {
        return Some(NO_SERVERS_LINE.to_owned());
    }
    let servers = toolbox.problems().iter().map(|problem| problem.server.as_str());
    let server = crate::names::longest_prefix(name, servers).unwrap_or(name);
    let problem = toolbox.problems().iter().find(|problem| problem.server == server)?;
    Some(format!("{server} cannot be used: {}; {}", problem.what.raw(), problem.hint))
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
    pub(super) mismatch: Option<Mismatch>,
    pub(super) suggestions: Option<Suggestions>,
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
    request: CallRequest,
    last: LastAttempt,
}

impl<'t> CallOperation<'t> {
    pub(super) fn new(toolbox: &'t Toolbox, target: Target, request: &CallRequest) -> Self {
        let last = LastAttempt::default();
        if let Target::Tool { tool, .. } | Target::Raw { tool: Some(tool), .. } = &target {
            last.set(|last| last.tool = Some(Arc::clone(tool)));
        }
        Self { toolbox, target, request: request.clone(), last }
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
                let cause = why.clone().unwrap_or_else(|| format!("Tool not found: {what}"));
                fault.cause = Some(SafeText::new(cause));
                self.last.set(|last| last.suggestions = Some(suggestions.clone()));
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
            Target::Unlisted(unlisted) => {
                Err(Failed::classified((*unlisted.fault).clone(), Dispatch::NotDispatched))
            }
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

    async fn send(&self, upstream: &Upstream, attempt: &Attempt) -> Result<Raw, Failed> {
        let settings = &upstream.settings;
        let shorter = |one: Option<Duration>, other: Option<Duration>| one.into_iter().chain(other).min();
        let limits = RequestLimits {
            idle: settings.idle,
            total: shorter(self.request.timeout.or(settings.timeout), attempt.left),
        };
        let _slot = upstream.slot().await;
        let connection =
            upstream.connection(&attempt.cancel).await.map_err(|fault| self.not_started(*fault))?;
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
                if let RequestFailure::TimedOut { sent: true, .. } = &failure {
                    Box::pin(upstream.abandon_if_frozen(&connection)).await;
                }
                Err(self.failed(upstream, failure))
            }
        }
    }

    /// Asks in a new session, once: the server has forgotten the old one, and nothing was done in
    /// it.
    async fn ask_anew(
        &self,
        upstream: &Upstream,
        forgotten: &Arc<Connection>,
        (method, params): (&str, &Params<'_>),
        limits: RequestLimits,
        attempt: &Attempt,
    ) -> Result<Result<Raw, RequestFailure>, Failed> {
        upstream.abandon(forgotten).await;
        let renewed = upstream.connection(&attempt.cancel).await;
        let connection = renewed.map_err(|fault| self.not_started(*fault))?;
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

    fn not_started(&self, fault: Fault) -> Failed {
        Failed::classified(fault, Dispatch::NotDispatched)
    }

    fn failed(&self, upstream: &Upstream, failure: RequestFailure) -> Failed {
        if let RequestFailure::Rpc(error) = &failure {
            let error = error.clone();
            self.last.set(|last| last.answer = Some(Err(error)));
        }
        let classified = fault::of_request(upstream, self.project(), failure);
        self.last.set(|last| last.timed_out = classified.timed_out);
        self.answered(classified.fault, classified.dispatch)
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
            self.target = Box::pin(Target::find(self.toolbox, &self.request)).await;
        }
        self.check()?;
        let Some(upstream) = self.target.upstream().cloned() else {
            return Err(Fault::new(Reason::ToolNotFound).into());
        };
        let result = self.send(&upstream, &attempt).await?;
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
            return Err(self.answered(fault, Dispatch::Answered));
        }
        Ok(Answer { result, head })
    }
}
