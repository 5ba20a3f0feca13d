//! One call: checked, attempted under the profile `tool`, recorded where it fails, and explained.
//!
//! The order is that of what can be known: whether there is such a tool, whether the arguments fit,
//! then what the server says. A call that may not be repeated ends with the command that repeats it
//! once somebody says so.

mod attempt;
mod failure;
mod typed;

pub use failure::CallFailure;

pub use typed::CallWordsError;

use crate::connection::ProgressSink;
use crate::jsonrpc::Raw;
use crate::result::Head;
use crate::toolbox::Toolbox;
use attempt::{Answer, CallOperation, Target};
use backstop_core::{EventKind, Name, Outcome, Reason, RunId, SafeText};
use backstop_engine::{Cancel, Ending};
use backstop_runtime::admission::{BudgetScope, OperationLimits};
use backstop_runtime::operation::OperationRun;
use backstop_runtime::{Opening, Recorder, aftermath};
use backstop_store::DeferredWork;
use failure::FailureParts;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::time::Instant;

/// The longest wait for a server's limit where no deadline is set: an agent that waits for an
/// answer sees nothing of it. A longer one is said at once, with its time.
const GUARD_WAIT_MAX: Duration = Duration::from_secs(60);
/// How many characters of the arguments name a call in the journal.
const OPERATION_CHARS_MAX: usize = 200;
/// What a call waits for that must not be repeated by itself.
const CONFIRMATION: &str = "somebody says that it is to be repeated";
/// The flag that tells a call that was put aside from a command.
pub const CALL_FLAG: &str = "--call";

/// A call that somebody wants.
#[derive(Clone)]
pub struct CallRequest {
    pub(crate) target: WantedTarget,
    pub(crate) arguments: Raw,
    pub(crate) meta: Map<String, Value>,
    pub(crate) more: Vec<(String, Raw)>,
    pub(crate) cancel: Cancel,
    pub(crate) caller: Option<SafeText>,
    pub(crate) session: Option<SafeText>,
    pub(crate) progress: Option<Arc<dyn ProgressSink>>,
    /// Whether the caller can be asked what the server wants to know before it goes on.
    pub(crate) answers_input: bool,
    /// The id under which its server got it last; 0 before that.
    pub(crate) sent_as: Arc<AtomicU64>,
    /// How long one attempt may take, instead of what the settings say.
    pub timeout: Option<Duration>,
    /// How long all attempts may take, instead of what the settings say.
    pub deadline: Option<Duration>,
    /// The run that somebody has confirmed: it is attempted once.
    pub confirmed: Option<RunId>,
    /// The run that this call belongs to.
    pub parent: Option<RunId>,
}

#[derive(Debug, Clone)]
pub(crate) enum WantedTarget {
    Tool(String),
    Raw { server: Name, method: String },
}

impl std::fmt::Debug for CallRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallRequest").field("target", &self.target).finish_non_exhaustive()
    }
}

impl CallRequest {
    /// A call of a tool by the name that callers use. The arguments are JSON text.
    pub fn tool(tool: &str, arguments: &str) -> Result<Self, serde_json::Error> {
        Ok(Self::new(WantedTarget::Tool(tool.to_owned()), serde_json::from_str(arguments)?))
    }

    /// Any method of a server, with these parameters as JSON text.
    pub fn raw(server: Name, method: &str, params: &str) -> Result<Self, serde_json::Error> {
        Ok(Self::new(WantedTarget::Raw { server, method: method.to_owned() }, serde_json::from_str(params)?))
    }

    pub(crate) fn new(target: WantedTarget, arguments: Raw) -> Self {
        Self {
            target,
            arguments,
            meta: Map::new(),
            more: Vec::new(),
            cancel: Cancel::new(),
            caller: None,
            session: None,
            progress: None,
            answers_input: false,
            sent_as: Arc::default(),
            timeout: None,
            deadline: None,
            confirmed: None,
            parent: None,
        }
    }

    /// Stops the call when `cancel` fires; the server is told.
    pub fn cancelled_by(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// The shorter of the limits that this caller has set.
    pub fn limit(&self) -> Option<Duration> {
        attempt::shorter(self.timeout, self.deadline)
    }

    /// What the call is about, as callers name it.
    pub fn name(&self) -> String {
        match &self.target {
            WantedTarget::Tool(tool) => tool.clone(),
            WantedTarget::Raw { server, method } => format!("{server} {method}"),
        }
    }
}

/// A call that succeeded.
#[derive(Debug)]
pub struct CallSuccess {
    /// The tool, as callers name it.
    pub tool: String,
    /// What the server says of a part that did not work, or that is worth a look.
    pub warnings: Vec<SafeText>,
    /// How many attempts were made; none for a result that was used again.
    pub attempts: u32,
    request: Arc<CallRequest>,
    pub(crate) result: Raw,
    /// Whether the server wants to know something before it goes on.
    pub(crate) wants_input: bool,
    /// Whether its structured content is no object.
    pub(crate) is_structured_otherwise: bool,
}

impl CallSuccess {
    /// The parameters of the call, as they are shown.
    pub fn params(&self) -> Vec<(SafeText, SafeText)> {
        key_params(&self.request.arguments)
    }

    /// The result, as the server gave it: JSON text.
    pub fn result(&self) -> &str {
        self.result.get()
    }

    /// The text of the result's content, and what else is in it by name.
    pub fn text(&self) -> String {
        crate::result::shown_of(&crate::jsonrpc::value(&self.result))
    }
}

/// How a call ended.
#[derive(Debug)]
pub enum CallOutcome {
    /// With a result.
    Done(CallSuccess),
    /// Without one.
    Failed(Box<CallFailure>),
}

/// Who makes the calls of a batch or a chain: the toolbox itself, or a client of the gateway.
pub(crate) trait Caller: Clone + Send + Sync + 'static {
    /// Makes a call.
    fn make_call(&self, request: CallRequest) -> impl Future<Output = CallOutcome> + Send;
    /// Takes a call that waits for a confirmation, with these arguments.
    fn confirmed_call(&self, run: RunId, arguments: &str) -> Result<CallRequest, ConfirmError>;
}

impl Caller for Arc<Toolbox> {
    async fn make_call(&self, request: CallRequest) -> CallOutcome {
        self.call(request).await
    }

    fn confirmed_call(&self, run: RunId, arguments: &str) -> Result<CallRequest, ConfirmError> {
        self.take_confirmed(run, Some(arguments))
    }
}

impl Toolbox {
    /// Makes a call.
    pub async fn call(&self, request: impl Into<Arc<CallRequest>>) -> CallOutcome {
        let request = request.into();
        let _running = self.begin_call();
        let began = Instant::now();
        let target = Target::find(self, &request, self.find_limit(&request)).await;
        let asked_for = began.elapsed();
        let name = request.name();
        if let Some(result) = self.kept_result(&target, &request) {
            self.successes.add("tools");
            let head = Head::of(&result);
            return self.succeeded(name, Answer { result, head }, 0, &request);
        }
        let operation_name = operation_name(&name, &request.arguments);
        let run = match self.begin(&target, &request, asked_for, &operation_name) {
            Ok(run) => run,
            Err(failure) => return CallOutcome::Failed(failure),
        };
        let operation = CallOperation::new(self, target, &request, asked_for);
        let last = operation.last();
        let finished = run.attempt(&operation_name, operation).await;
        if !finished.faults.is_empty() || run.admission.streak().is_some() {
            run.learn(&finished);
        }
        let earlier = self.note_outcome(&name, finished.result.is_ok());
        let elapsed = began.elapsed();
        let duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let ended = |outcome, reason, next: Option<&String>| EventKind::RunEnded {
            outcome,
            reason,
            attempts: finished.attempts,
            duration_ms,
            exit: None,
            next: next.map(|next| SafeText::new(next.as_str())),
        };
        match finished.result {
            Ok(answer) => {
                let mut events = finished.unrecorded;
                events.push(ended(Outcome::Done, None, None));
                let was_recorded = run.recorder.is_recorded();
                let _ = run.recorder.end(events);
                if was_recorded {
                    aftermath::run_ended(&self.project, &run.recorder, true);
                }
                last.keep_result(self, &request, &answer);
                self.succeeded(name, answer, finished.attempts, &request)
            }
            Err(ending) => {
                let confirm = self.put_aside(&run.recorder, &request, &ending);
                let _ = run.recorder.end(vec![ended(
                    ending.outcome,
                    Some(ending.fault.reason),
                    confirm.as_ref(),
                )]);
                aftermath::run_ended(&self.project, &run.recorder, false);
                let parts = FailureParts {
                    tool: name,
                    params: key_params(&request.arguments),
                    ending,
                    faults: finished.faults,
                    attempts: finished.attempts,
                    elapsed,
                    run: run.recorder.is_recorded().then(|| run.recorder.run()),
                    confirm,
                    earlier,
                };
                CallOutcome::Failed(Box::new(CallFailure::new(self, parts, last.take())))
            }
        }
    }

    fn succeeded(
        &self,
        tool: String,
        answer: Answer,
        attempts: u32,
        request: &Arc<CallRequest>,
    ) -> CallOutcome {
        let Answer { result, head } = answer;
        let masked = |text: String| SafeText::new(self.project.redactor.redact(&text).into_owned());
        CallOutcome::Done(CallSuccess {
            warnings: head.warnings().into_iter().map(masked).collect(),
            wants_input: head.wants_input(),
            is_structured_otherwise: head.is_structured_otherwise(),
            tool,
            attempts,
            request: Arc::clone(request),
            result,
        })
    }

    /// A result of the same call that may be used again.
    fn kept_result(&self, target: &Target, request: &CallRequest) -> Option<Raw> {
        let Target::Tool { tool, upstream, .. } = target else { return None };
        let age = upstream.settings.cache.filter(|_| tool.read_only)?;
        self.results.get(&tool.name, request.arguments.get(), age)
    }

    /// How long a server may be asked for a tool that is not known.
    fn find_limit(&self, request: &CallRequest) -> Option<Duration> {
        let upstream = match &request.target {
            WantedTarget::Tool(tool) => self.server_of(tool),
            WantedTarget::Raw { server, .. } => self.upstreams().get(server),
        };
        let deadline = request.deadline.or_else(|| upstream.and_then(|upstream| upstream.settings.deadline));
        attempt::shorter(request.timeout, deadline)
    }

    /// What is put around the attempts of a call, which began so long ago.
    fn begin(
        &self,
        target: &Target,
        request: &CallRequest,
        ago: Duration,
        operation: &str,
    ) -> Result<OperationRun, Box<CallFailure>> {
        let settings = target.settings();
        let deadline = request.deadline.or_else(|| settings.and_then(|settings| settings.deadline));
        let deadline = deadline.map(|deadline| deadline.saturating_sub(ago));
        let started = EventKind::RunStarted {
            operation: SafeText::new(operation),
            folder: None,
            profile: Some(self.policy.name.to_string()),
            parent: request.parent,
        };
        let mut first = vec![started];
        if let Some(confirmed) = request.confirmed {
            let by = request.caller.clone().unwrap_or_else(|| SafeText::new("command line"));
            first.push(EventKind::Override {
                by,
                what: SafeText::new(format!("--confirm {confirmed}")),
                rationale: SafeText::new("somebody said that the call is to be repeated"),
            });
        }
        let opening = Opening {
            first,
            session: request.session.clone(),
            caller: request.caller.clone(),
            parent: request.parent,
            held: request.confirmed.is_none(),
            random: Some(self.run_numbers.next()),
            successes: Some(Arc::clone(&self.successes)),
            ..Opening::new("tools")
        };
        let failed = |error: backstop_runtime::ProjectError| {
            Box::new(CallFailure::before(self, request, Reason::StateInvalid, &error.to_string()))
        };
        let recorder = Arc::new(Recorder::begin(&self.project, opening).map_err(failed)?);
        let budget = self.common.budget.as_deref().and_then(|name| name.parse().ok());
        let wait_max = deadline.unwrap_or(GUARD_WAIT_MAX).min(self.policy.wait_max);
        let place = match &self.common.budget {
            Some(_) => format!("{}: {operation}", self.project.root.display()),
            None => String::new(),
        };
        let limits = OperationLimits {
            provider: None,
            client: target.upstream().and_then(|upstream| upstream.client.clone()),
            budget,
            scope: BudgetScope {
                run: request.parent.unwrap_or_else(|| recorder.run()),
                task: request.session.as_ref().map(|session| session.raw().to_owned()),
            },
            command: String::new(),
            operation: request.name(),
            // Loops are stopped where there is a budget; without one, nobody needs to know.
            place,
            wait_max,
            learns: self.policy.learn,
        };
        let admission = Arc::new(self.admission.operation(limits, None).map_err(failed)?);
        let policy = if request.confirmed.is_some() {
            Arc::new((*self.policy).clone().with_attempts(1))
        } else {
            Arc::clone(&self.policy)
        };
        let confirm_with = format!("backstop call --confirm {}", recorder.run());
        Ok(OperationRun {
            project: Arc::clone(&self.project),
            recorder,
            admission,
            classifier: Arc::clone(&self.classifier),
            policy,
            cancel: request.cancel.clone(),
            deadline,
            repeatable: target.is_repeatable(),
            confirm_with,
        })
    }

    /// Puts a call aside that may not be repeated by itself. Gives the command that repeats it.
    fn put_aside(&self, recorder: &Recorder, request: &CallRequest, ending: &Ending) -> Option<String> {
        if ending.outcome != Outcome::Unconfirmed {
            return None;
        }
        let run = recorder.run();
        let mut argv = vec![CALL_FLAG.to_owned(), "--confirm".to_owned(), run.to_string(), "--".to_owned()];
        match &request.target {
            WantedTarget::Tool(tool) => argv.push(tool.clone()),
            WantedTarget::Raw { server, method } => {
                argv.extend(["--raw".to_owned(), server.to_string(), method.clone()]);
            }
        }
        argv.push(request.arguments.get().to_owned());
        let work = DeferredWork {
            run,
            argv,
            whole: true,
            folder: self.project.process.cwd.display().to_string(),
            reason: ending.fault.reason,
            until: SafeText::new(CONFIRMATION),
            is_task: false,
            address: None,
        };
        recorder.defer(&work).map(|_| format!("backstop call --confirm {run}"))
    }

    /// Takes a call that waits for a confirmation: the tool, and its arguments as JSON text. A
    /// confirmation is used up by it. `typed` are the arguments where a secret in them was not
    /// stored.
    pub fn take_confirmed(&self, run: RunId, typed: Option<&str>) -> Result<CallRequest, ConfirmError> {
        let none = || ConfirmError::NotWaiting(run);
        let journal = self.project.existing_journal().ok().flatten().ok_or_else(none)?;
        let all = journal.deferred().unwrap_or_default();
        let is_it = |work: &&backstop_store::Deferred| {
            work.work.run == run && work.work.argv.first().is_some_and(|flag| flag == CALL_FLAG)
        };
        let waiting = all.iter().find(is_it).ok_or_else(none)?;
        let words: Vec<&str> =
            waiting.work.argv.iter().skip_while(|word| *word != "--").skip(1).map(String::as_str).collect();
        if !waiting.runnable && typed.is_none() {
            return Err(ConfirmError::Masked(run));
        }
        let arguments = typed.or_else(|| words.last().copied()).unwrap_or("{}");
        let request = match words.as_slice() {
            ["--raw", server, method, _] => match server.parse::<Name>() {
                Ok(server) => CallRequest::raw(server, method, arguments),
                Err(_) => return Err(none()),
            },
            [tool, _] => CallRequest::tool(tool, arguments),
            _ => return Err(none()),
        };
        let mut request = request.map_err(|error| ConfirmError::Arguments(error.to_string()))?;
        // Whoever takes it first has it.
        if !journal.drop_deferred(waiting.id).unwrap_or(false) {
            return Err(none());
        }
        request.confirmed = Some(run);
        Ok(request)
    }
}

/// Why a call is not repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfirmError {
    /// It does not wait.
    #[error("{0} does not wait for a confirmation in this project")]
    NotWaiting(RunId),
    /// Its arguments hold a secret.
    #[error("the arguments of {0} hold a secret, which was not stored")]
    Masked(RunId),
    /// What was typed is not JSON.
    #[error("the arguments are not JSON: {0}")]
    Arguments(String),
}

/// The parameters of a call as they are shown: of each the name and the start of its value.
pub(crate) fn key_params(arguments: &RawValue) -> Vec<(SafeText, SafeText)> {
    let Value::Object(members) = crate::jsonrpc::value(arguments) else { return Vec::new() };
    let shown = |value: &Value| match value {
        Value::String(text) => text.chars().take(OPERATION_CHARS_MAX).collect(),
        other => other.to_string().chars().take(OPERATION_CHARS_MAX).collect::<String>(),
    };
    members.iter().map(|(name, value)| (SafeText::new(name.as_str()), SafeText::new(shown(value)))).collect()
}

fn operation_name(name: &str, arguments: &RawValue) -> String {
    let text = arguments.get();
    let end = text.char_indices().nth(OPERATION_CHARS_MAX).map_or(text.len(), |(at, _)| at);
    if text == "{}" { name.to_owned() } else { [name, " ", &text[..end]].concat() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::{Gateway, Session};

    fn size<A, F>(_: impl Fn(A) -> F) -> usize {
        size_of::<F>()
    }

    /// Each call moves its future twice: what is rare in it is boxed.
    #[test]
    fn the_future_of_a_call_is_small() {
        let call = size(|(toolbox, request): (&'static Toolbox, CallRequest)| toolbox.call(request));
        assert!(call <= 8 << 10, "{call} bytes");
        let answer = size(|(gateway, session): (&'static Arc<Gateway>, &'static Arc<Session>)| {
            gateway.answer(session, (RawValue::NULL, "tools/call"), None, Cancel::new())
        });
        assert!(answer <= 4 << 10, "{answer} bytes");
    }
}
