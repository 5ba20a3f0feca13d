//! What a server asks during a call: sampling, elicitation, roots. The question goes to the client
//! whose call the server works on.
//!
//! A client of the old era is asked directly. One of the modern era gets the question as the result
//! of its call, and calls again with its answer: the call is held meanwhile.

use super::requests::Asked;
use super::{Gateway, Session, lock};
use crate::call::{CallOutcome, CallRequest};
use crate::jsonrpc::{self, METHOD_NOT_FOUND, Raw, RpcError, raw};
use crate::protocol::Era;
use crate::result::Head;
use backstop_core::Name;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::Arc;
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
    questions: mpsc::Sender<Question>,
    wants_log: bool,
}

/// A call that is running, as its waiter sees it.
pub(super) struct Running {
    outcome: oneshot::Receiver<CallOutcome>,
    questions: mpsc::Receiver<Question>,
    /// Asked again with the client's answers, where a server of the modern era wants that.
    request: CallRequest,
    rounds: usize,
}

/// A call that waits for its client's answer.
pub(super) struct Suspended {
    running: Running,
    answer: oneshot::Sender<Result<Raw, RpcError>>,
}

impl Gateway {
    /// Begins a call, in a task of its own: it may outlive the request that asked for it.
    pub(super) fn start_call(self: &Arc<Self>, request: CallRequest, asked: &Asked<'_>) -> Running {
        let (tell, outcome) = oneshot::channel();
        let (questions, from_server) = mpsc::channel(1);
        let wants_log = asked.params.is_some_and(|params| {
            jsonrpc::value(params)["_meta"]["io.modelcontextprotocol/logLevel"].is_string()
        });
        let active =
            Arc::new(ActiveCall { session: Arc::clone(asked.session), era: asked.era, questions, wants_log });
        let server = self.toolbox().server_of(&request.name()).map(|upstream| upstream.name.clone());
        if let Some(server) = &server {
            lock(&self.active).entry(server.clone()).or_default().push(Arc::clone(&active));
        }
        let (gateway, again) = (Arc::clone(self), request.clone());
        tokio::spawn(async move {
            let toolbox = gateway.toolbox();
            let outcome = toolbox.call(request).await;
            drop(toolbox);
            if let Some(server) = server
                && let Some(calls) = lock(&gateway.active).get_mut(&server)
            {
                calls.retain(|call| !Arc::ptr_eq(call, &active));
            }
            let _ = tell.send(outcome);
        });
        Running { outcome, questions: from_server, request: again, rounds: 0 }
    }

    /// Waits for the end of a call, or for a question that its client has to answer first.
    pub(super) async fn until_input(
        self: &Arc<Self>,
        mut running: Running,
        asked: &Asked<'_>,
    ) -> Result<Raw, RpcError> {
        tokio::select! {
            biased;
            Some(question) = running.questions.recv() => Ok(self.suspend(running, question)),
            outcome = &mut running.outcome => {
                let Ok(outcome) = outcome else {
                    return Err(RpcError::new(jsonrpc::INTERNAL_ERROR, "the call was lost"));
                };
                match &outcome {
                    CallOutcome::Done(success)
                        if asked.era == Era::Legacy && Head::of(&success.result).wants_input() =>
                    {
                        let result = success.result.clone();
                        self.ask_and_repeat(running, &result, asked).await
                    }
                    _ => self.told(outcome),
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
                let _ =
                    answer.send(Err(RpcError::new(jsonrpc::INTERNAL_ERROR, "too many calls wait for input")));
                return raw(&json!({
                    "content": [{ "type": "text", "text": "too many calls wait for input" }], "isError": true,
                }));
            }
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
                return Err(RpcError::new(METHOD_NOT_FOUND, format!("the client cannot answer {method}")));
            }
            let params = wanted.get("params").map(raw);
            let answer = asked.session.ask(method, params.as_deref()).await?;
            responses.insert(key.clone(), jsonrpc::value(&answer));
        }
        if running.rounds >= ROUNDS_MAX {
            return Err(RpcError::new(jsonrpc::INTERNAL_ERROR, "the server asks for input again and again"));
        }
        let mut request = running.request;
        request.more.retain(|(key, _)| key != "inputResponses" && key != "requestState");
        request.more.push(("inputResponses".to_owned(), raw(&Value::Object(responses))));
        if let Some(state) = result.get("requestState") {
            request.more.push(("requestState".to_owned(), raw(state)));
        }
        let again = Running { rounds: running.rounds + 1, ..self.start_call(request, asked) };
        Box::pin(self.until_input(again, asked)).await
    }

    /// Answers a question of a server through the client whose call it works on.
    pub(super) async fn ask_client(
        &self,
        server: &Name,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Raw, RpcError> {
        let active = lock(&self.active).get(server).and_then(|calls| calls.last().cloned());
        let nobody = || RpcError::new(METHOD_NOT_FOUND, format!("no client can answer {method}"));
        if method == "roots/list" {
            let session = active.as_ref().map(|call| Arc::clone(&call.session));
            let session = session.or_else(|| self.live_sessions().into_iter().next()).ok_or_else(nobody)?;
            return match session.era() == Era::Legacy && session.can_answer(method) {
                true => session.ask(method, params).await,
                false => Ok(raw(&json!({ "roots": [] }))),
            };
        }
        let call = active.ok_or_else(nobody)?;
        if !call.session.can_answer(method) {
            return Err(nobody());
        }
        if call.era == Era::Legacy {
            return call.session.ask(method, params).await;
        }
        let (tell, told) = oneshot::channel();
        let question =
            Question { method: method.to_owned(), params: params.map(ToOwned::to_owned), answer: tell };
        if call.questions.send(question).await.is_err() {
            return Err(nobody());
        }
        told.await
            .unwrap_or_else(|_| Err(RpcError::new(jsonrpc::INTERNAL_ERROR, "the client did not answer")))
    }

    /// Passes a log message of a server on to the clients that it concerns.
    pub(super) async fn pass_on_log(&self, server: &Name, bytes: Vec<u8>) {
        let calls: Vec<Arc<ActiveCall>> = lock(&self.active).get(server).cloned().unwrap_or_default();
        let mut told: Vec<Arc<Session>> = Vec::new();
        for session in self.live_sessions() {
            let of_call = |call: &&Arc<ActiveCall>| Arc::ptr_eq(&call.session, &session);
            let wants = match session.era() {
                Era::Legacy => true,
                Era::Modern => calls.iter().filter(of_call).any(|call| call.wants_log),
            };
            if wants {
                told.push(session);
            }
        }
        for session in told {
            session.send(bytes.clone()).await;
        }
    }
}
