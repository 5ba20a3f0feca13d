//! What a server asks during a call: sampling, elicitation, roots. The question goes to the client
//! whose call the server works on.
//!
//! A client of the old era is asked directly. One of the modern era gets the question as the result
//! of its call, and calls again with its answer: the call is held meanwhile.

use super::requests::{Asked, failure_result};
use super::{Gateway, Session, lock};
use crate::call::{CallFailure, CallOutcome, CallRequest, Caller, ConfirmError};
use crate::fault::of_input_required;
use crate::jsonrpc::{self, INVALID_PARAMS, METHOD_NOT_FOUND, Raw, RpcError, raw};
use crate::log_level::LogLevel;
use crate::protocol::{Era, META_LOG_LEVEL};
use backstop_core::{Fault, Name, Reason, RunId, SafeText};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// How many calls may wait for their client's answer.
const SUSPENDED_MAX: usize = 64;
/// How long a call waits for its client's answer.
const SUSPENDED_FOR: Duration = Duration::from_secs(600);
/// How often one call may ask for input.
const ROUNDS_MAX: usize = 10;
/// What the state of a held call begins with.
const STATE: &str = "backstop-call-";
/// The name of the one question in a request for input.
const QUESTION: &str = "question";

/// A question of a server, on its way to a client of the modern era.
pub(super) struct Question {
    method: String,
    params: Option<Raw>,
    answer: oneshot::Sender<Result<Raw, RpcError>>,
}

/// A call that is running.
pub(super) struct ActiveCall {
    session: Arc<Session>,
    era: Era,
    /// Where questions go to a client of the modern era that can be asked them.
    questions: Option<mpsc::Sender<Question>>,
    /// The id under which its server got it.
    sent_as: Arc<AtomicU64>,
}

type Outcome = Pin<Box<dyn Future<Output = Result<CallOutcome, RpcError>> + Send>>;

/// A call that is running, as its waiter sees it.
pub(super) struct Running {
    outcome: Outcome,
    /// What is asked of a client of the modern era.
    questions: Option<mpsc::Receiver<Question>>,
    /// Asked again with the client's answers, where a server of the modern era wants that.
    request: Arc<CallRequest>,
    rounds: usize,
}

/// The next question for a client that gets them as the result of its call.
async fn next_question(questions: &mut Option<mpsc::Receiver<Question>>) -> Question {
    let next = match questions {
        Some(questions) => questions.recv().await,
        None => None,
    };
    match next {
        Some(question) => question,
        None => std::future::pending().await,
    }
}

/// A call among those that are running, until this is dropped.
struct ActiveEntry {
    gateway: Arc<Gateway>,
    server: Name,
    call: Arc<ActiveCall>,
}

impl ActiveEntry {
    fn new(gateway: &Arc<Gateway>, server: Name, call: ActiveCall) -> Self {
        let call = Arc::new(call);
        lock(&gateway.active).entry(server.clone()).or_default().push(Arc::clone(&call));
        Self { gateway: Arc::clone(gateway), server, call }
    }
}

impl Drop for ActiveEntry {
    fn drop(&mut self) {
        if let Some(calls) = lock(&self.gateway.active).get_mut(&self.server) {
            calls.retain(|call| !Arc::ptr_eq(call, &self.call));
        }
    }
}

/// A call that waits for its client's answer.
pub(super) struct Suspended {
    running: Running,
    answer: oneshot::Sender<Result<Raw, RpcError>>,
}

/// A client whose batch or chain makes calls. One of the old era is asked what servers want to know
/// meanwhile; one of the modern era would have to call again, which a batch cannot.
#[derive(Clone)]
pub(super) struct ClientCalls {
    gateway: Arc<Gateway>,
    session: Arc<Session>,
    era: Era,
}

impl Caller for ClientCalls {
    async fn make_call(&self, mut request: CallRequest) -> CallOutcome {
        request.caller = self.session.caller();
        request.session = Some(self.session.id.clone());
        let sent_as = Arc::clone(&request.sent_as);
        let active =
            ActiveCall { session: Arc::clone(&self.session), era: self.era, questions: None, sent_as };
        self.gateway.call_active(Arc::new(request), active).await
    }

    fn confirmed_call(&self, run: RunId, arguments: &str) -> Result<CallRequest, ConfirmError> {
        self.gateway.toolbox().take_confirmed(run, Some(arguments))
    }
}

impl Gateway {
    /// The client of a request, as one that makes many calls.
    pub(super) fn client_of(self: &Arc<Self>, asked: &Asked<'_>) -> ClientCalls {
        ClientCalls { gateway: Arc::clone(self), session: Arc::clone(asked.session), era: asked.era }
    }

    /// Begins a call. It goes on for as long as it is waited for.
    pub(super) fn start_call(self: &Arc<Self>, mut request: CallRequest, asked: &Asked<'_>) -> Running {
        let (questions, from_server) = match asked.era {
            Era::Legacy => (None, None),
            Era::Modern => {
                let (questions, from_server) = mpsc::channel(1);
                (Some(questions), Some(from_server))
            }
        };
        request.answers_input = true;
        // A server of the modern era is told with each request what a client has said once.
        if let Some(level) = asked.session.log_level() {
            request.meta.entry(META_LOG_LEVEL).or_insert_with(|| level.name().into());
        }
        let sent_as = Arc::clone(&request.sent_as);
        let active = ActiveCall { session: Arc::clone(asked.session), era: asked.era, questions, sent_as };
        let (gateway, request) = (Arc::clone(self), Arc::new(request));
        let again = Arc::clone(&request);
        let outcome = async move { Ok(gateway.call_active(request, active).await) };
        Running { outcome: Box::pin(outcome), questions: from_server, request: again, rounds: 0 }
    }

    /// Makes a call that its server may ask questions during.
    async fn call_active(self: &Arc<Self>, request: Arc<CallRequest>, active: ActiveCall) -> CallOutcome {
        let toolbox = self.toolbox();
        let server = toolbox.server_of(&request.name()).map(|upstream| upstream.name.clone());
        let _running = server.map(|server| ActiveEntry::new(self, server, active));
        toolbox.call(request).await
    }

    /// Waits for the end of a call, or for a question that its client has to answer first.
    pub(super) async fn until_input(
        self: &Arc<Self>,
        mut running: Running,
        asked: &Asked<'_>,
    ) -> Result<Raw, RpcError> {
        tokio::select! {
            biased;
            question = next_question(&mut running.questions) => Ok(self.suspend(running, question)),
            outcome = &mut running.outcome => {
                let outcome = outcome?;
                match &outcome {
                    CallOutcome::Done(success) if asked.era == Era::Legacy && success.wants_input => {
                        let result = success.result.clone();
                        Box::pin(self.ask_and_repeat(running, &result, asked)).await
                    }
                    _ => self.call_result(outcome, asked.era),
                }
            }
        }
    }

    /// Holds a call, and gives the result that asks its client for input.
    fn suspend(self: &Arc<Self>, running: Running, question: Question) -> Raw {
        let token = format!("{STATE}{:x}{:x}", self.random(), self.random());
        let Question { method, params, answer } = question;
        let mut request = json!({ "method": method });
        if let Some(params) = &params {
            request["params"] = jsonrpc::value(params);
        }
        {
            let mut suspended = lock(&self.suspended);
            if suspended.len() >= SUSPENDED_MAX {
                let words = "too many calls wait for an answer of their client";
                let _ = answer.send(Err(RpcError::new(jsonrpc::INTERNAL_ERROR, words)));
                let next = "answer what earlier calls ask, then call it again";
                return self.not_answered(&running.request, words, next);
            }
            // It goes on by itself while its client is asked.
            let (tell, told) = oneshot::channel();
            let Running { outcome, questions, request, rounds } = running;
            tokio::spawn(async move {
                let _ = tell.send(outcome.await);
            });
            let outcome: Outcome = Box::pin(async move {
                let lost = |_| RpcError::new(jsonrpc::INTERNAL_ERROR, "the call was lost");
                told.await.map_err(lost)?
            });
            let running = Running { outcome, questions, request, rounds };
            suspended.insert(token.clone(), Suspended { running, answer });
        }
        let (gateway, held) = (Arc::clone(self), token.clone());
        tokio::spawn(async move {
            tokio::time::sleep(SUSPENDED_FOR).await;
            // Dropping it tells the server that there is no answer.
            lock(&gateway.suspended).remove(&held);
        });
        raw(&json!({
            "resultType": "input_required", "inputRequests": { QUESTION: request }, "requestState": token,
        }))
    }

    fn random(&self) -> u64 {
        (self.toolbox().project.process.random)()
    }

    /// A held call whose client has answered. Nothing, where no call of ours has this state.
    pub(super) fn resume(&self, state: &str, responses: Option<Value>) -> Option<Running> {
        if !state.starts_with(STATE) {
            return None;
        }
        let Suspended { running, answer } = lock(&self.suspended).remove(state)?;
        let given = responses.and_then(|responses| responses.get(QUESTION).cloned());
        let _ = answer.send(match given {
            Some(given) => Ok(raw(&given)),
            None => Err(RpcError::new(jsonrpc::INTERNAL_ERROR, "the client gave no answer")),
        });
        Some(running)
    }

    /// Asks a client of the old era what a server of the modern era wants to know, and calls again.
    async fn ask_and_repeat(
        self: &Arc<Self>,
        running: Running,
        result: &RawValue,
        asked: &Asked<'_>,
    ) -> Result<Raw, RpcError> {
        let result = jsonrpc::value(result);
        let mut responses = Map::new();
        for (key, wanted) in result["inputRequests"].as_object().into_iter().flatten() {
            let method = wanted["method"].as_str().unwrap_or_default();
            if !asked.session.can_answer(method) {
                return Ok(self.cannot_answer(&running.request, &result));
            }
            let params = wanted.get("params").map(raw);
            match asked.session.ask(method, params.as_deref()).await {
                Ok(answer) => responses.insert(key.clone(), jsonrpc::value(&answer)),
                Err(error) => {
                    let words = format!("{method} of the server was not answered: {}", error.message);
                    let next = "call it again, and answer what the server asks";
                    return Ok(self.not_answered(&running.request, &words, next));
                }
            };
        }
        if running.rounds >= ROUNDS_MAX {
            let words = format!("the server asked for input {ROUNDS_MAX} times, and asks again");
            let next = "call it with other parameters, or tell the server's authors";
            return Ok(self.not_answered(&running.request, &words, next));
        }
        let mut request = CallRequest::clone(&running.request);
        request.more.retain(|(key, _)| key != "inputResponses" && key != "requestState");
        request.more.push(("inputResponses".to_owned(), raw(&Value::Object(responses))));
        if let Some(state) = result.get("requestState") {
            request.more.push(("requestState".to_owned(), raw(state)));
        }
        let again = Running { rounds: running.rounds + 1, ..self.start_call(request, asked) };
        self.until_input(again, asked).await
    }

    /// The result of a call whose server asks what its client cannot answer.
    fn cannot_answer(&self, request: &CallRequest, result: &Value) -> Raw {
        let toolbox = self.toolbox();
        let name = request.name();
        let fault = match toolbox.catalogue().get(&name) {
            Some(tool) => of_input_required(&tool.server, &tool.tool, &toolbox.project, result),
            None => Fault::new(Reason::InvalidUsage),
        };
        raw(&failure_result(&CallFailure::of_fault(&toolbox, request, fault), self.settings.own_tools))
    }

    /// The result of a call whose server was not given what it asks for.
    fn not_answered(&self, request: &CallRequest, words: &str, next: &str) -> Raw {
        let mut fault = Fault::new(Reason::InvalidUsage);
        fault.cause = Some(SafeText::new(words));
        fault.suggested_action = SafeText::new(next);
        let failure = CallFailure::of_fault(&self.toolbox(), request, fault);
        raw(&failure_result(&failure, self.settings.own_tools))
    }

    /// The call that a question of a server belongs to: the one that it names, else the newest, as
    /// long as all that are running are of one client. A question that may be another client's goes
    /// to nobody: whoever answers it would tell a stranger's call what was asked of them.
    fn asking_call(&self, server: &Name, related: Option<u64>) -> Result<Option<Arc<ActiveCall>>, RpcError> {
        let active = lock(&self.active);
        let Some(calls) = active.get(server) else { return Ok(None) };
        let is_named = |call: &&Arc<ActiveCall>| related == Some(call.sent_as.load(Ordering::Acquire));
        if let Some(call) = related.and_then(|_| calls.iter().find(is_named)) {
            return Ok(Some(Arc::clone(call)));
        }
        let newest = calls.last();
        if newest.is_some_and(|newest| calls.iter().any(|call| call.session.id != newest.session.id)) {
            let words =
                format!("calls of several clients run on {server}, and it does not say which one asks");
            return Err(RpcError::new(jsonrpc::INTERNAL_ERROR, words));
        }
        Ok(newest.cloned())
    }

    /// Answers a question of a server through the client whose call it works on.
    pub(super) async fn ask_client(
        &self,
        server: &Name,
        method: &str,
        params: Option<&RawValue>,
        related: Option<u64>,
    ) -> Result<Raw, RpcError> {
        let nobody = || RpcError::new(METHOD_NOT_FOUND, format!("no client can answer {method}"));
        let active = self.asking_call(server, related);
        if method == "roots/list" {
            let session = active.ok().flatten().map(|call| Arc::clone(&call.session));
            let session = session.or_else(|| self.live_sessions().into_iter().next()).ok_or_else(nobody)?;
            return match session.era() == Era::Legacy && session.can_answer(method) {
                true => session.ask(method, params).await,
                false => Ok(raw(&json!({ "roots": [] }))),
            };
        }
        let call = active?.ok_or_else(nobody)?;
        if !call.session.can_answer(method) {
            return Err(nobody());
        }
        if call.era == Era::Legacy {
            return call.session.ask(method, params).await;
        }
        let (tell, told) = oneshot::channel();
        let question =
            Question { method: method.to_owned(), params: params.map(ToOwned::to_owned), answer: tell };
        let Some(questions) = &call.questions else { return Err(nobody()) };
        if questions.send(question).await.is_err() {
            return Err(nobody());
        }
        told.await
            .unwrap_or_else(|_| Err(RpcError::new(jsonrpc::INTERNAL_ERROR, "the client did not answer")))
    }

    /// A client says which log messages it wants: servers are told the least important that anybody
    /// wants, and each client gets its own.
    pub(super) fn set_log_level(&self, asked: &Asked<'_>) -> Result<Raw, RpcError> {
        let level = asked.text("level").and_then(|level| LogLevel::named(&level)).ok_or_else(|| {
            let names = LogLevel::ALL.map(LogLevel::name).join(", ");
            RpcError::new(INVALID_PARAMS, format!("`level` is one of {names}"))
        })?;
        asked.session.set_log_level(level);
        self.tell_log_level();
        Ok(raw(&json!({})))
    }

    /// Tells all servers the least important log messages that anybody wants.
    pub(super) fn tell_log_level(&self) {
        let wanted = self.live_sessions().iter().filter_map(|session| session.log_level()).min();
        let Some(level) = wanted else { return };
        for upstream in self.toolbox().upstreams().values() {
            upstream.set_log_level(level);
        }
    }

    /// Passes a log message of a server on to the clients of the old era that want it. One of the
    /// modern era gets those of its own calls, with them.
    pub(super) fn pass_on_log(&self, level: LogLevel, bytes: &[u8]) {
        let wants = |session: &Arc<Session>| {
            session.era() == Era::Legacy && session.log_level().is_none_or(|least| level >= least)
        };
        for session in self.live_sessions().into_iter().filter(wants) {
            session.notify(bytes.to_vec());
        }
    }
}
