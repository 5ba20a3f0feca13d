//! From a client's request to its answer: attempts under the engine, keep-alives while they wait,
//! the answer as it comes, and errors in the API's own shape.

use super::cache::{self, Cached};
use super::call::Call;
use super::closing::Closing;
use super::errors::{api_error, error_event, keep_alive, message, passed_event, with_note};
use super::events::{self, Event};
use super::exchange::{Accepted, Exchange, Progress, Refusal, is_encoded, may_be_error};
use super::route::{Route, Upstream};
use super::usage;
use super::{DRAIN_MAX, State};
use crate::{Api, Overflow};
use backstop_core::{Dispatch, EventKind, Reason, SafeText, Signal, Surface};
use backstop_engine::{Cancel, Ending, Finished};
use backstop_http::server::{Answer, AnswerWriter, BodyProblem, Cut, ServerRequest};
use backstop_runtime::admission::{BudgetScope, OperationLimits};
use backstop_runtime::operation::OperationRun;
use backstop_runtime::{Opening, ProjectError, Recorder};
use serde_json::Value;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a client of a stream hears nothing before it is kept from giving up, and how often it
/// hears something from then on.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(15);
/// How often it is looked whether that is due.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a request may wait for a guard once the proxy ends.
const WAIT_AT_END: Duration = Duration::from_secs(2);
/// The header that says how many requests were sent.
const ATTEMPTS: &str = "x-backstop-attempts";
/// The header that says how the request was changed.
const CHANGED: &str = "x-backstop-changed";
/// The header that says what an error is.
const REASON: &str = "x-backstop-reason";
/// The header that says whether an answer was used again.
const CACHE: &str = "x-backstop-cache";
/// The header that clients of OpenAI and Anthropic obey.
const SHOULD_RETRY: &str = "x-should-retry";

/// The attempts of a request, with how they ended.
type Attempts = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// How the attempts of a request ended.
struct Outcome {
    closing: Closing,
    finished: Finished<Accepted>,
}

impl State {
    /// Makes a model request, and recovers what can be recovered.
    pub(super) async fn recover(self: Arc<Self>, route: Route, mut request: ServerRequest) -> Answer {
        let body = match request.bytes(self.settings.body_bytes_max).await {
            Ok(body) => body,
            Err(problem) => return unread(route.operation.api(), problem, self.settings.body_bytes_max),
        };
        let call = Arc::new(Call::new(route, request.method().clone(), request.headers(), body));
        drop(request);
        let cache_key = self.cache_key(&call);
        if let Some(found) = cache_key.as_deref().and_then(|key| self.cache.get(key)) {
            return Answer::new(found.status)
                .headers(found.headers.clone())
                .header(CACHE, "hit")
                .body(found.body.clone());
        }
        let progress = Arc::new(Progress::default());
        let mut attempts = match self.begin(&call, &progress) {
            Ok(attempts) => attempts,
            Err(error) => {
                let error = api_error(call.api(), Reason::StateInvalid, &format!("backstop: {error}"));
                return Answer::json(error.status, error.body.to_string().into_bytes());
            }
        };
        // The request itself is held by its attempts alone: once one has succeeded, it is gone.
        let (api, streams) = (call.api(), call.streams);
        let upstream = Arc::clone(&call.route.upstream);
        drop(call);
        let reply = Reply { state: Arc::clone(&self), api, upstream, progress, cache_key };
        if !streams {
            return reply.answer(attempts.await);
        }
        let mut silent = Duration::ZERO;
        loop {
            match tokio::time::timeout(LOOK_EVERY, &mut attempts).await {
                Ok(outcome) => return reply.answer(outcome),
                Err(_) => silent += LOOK_EVERY,
            }
            if silent >= KEEP_ALIVE_AFTER && reply.progress.may_begin_stream() {
                return reply.kept_alive(attempts);
            }
        }
    }

    fn cache_key(&self, call: &Call) -> Option<String> {
        if !self.settings.cache || !call.is_model_request() {
            return None;
        }
        let route = &call.route;
        cache::key(route.upstream.name.as_str(), &route.target, call.credential.as_deref(), &call.body)
    }

    /// Begins the attempts of a request.
    fn begin(self: &Arc<Self>, call: &Arc<Call>, progress: &Arc<Progress>) -> Result<Attempts, ProjectError> {
        let name = call.name();
        let started = EventKind::RunStarted {
            operation: SafeText::new(name.as_str()),
            folder: None,
            profile: Some(self.policy.name.to_string()),
            parent: self.project.process.parent,
        };
        let opening = Opening {
            first: vec![started],
            session: call.session.clone(),
            caller: call.caller.clone(),
            parent: self.project.process.parent,
            held: true,
            random: Some(self.run_numbers.next()),
            successes: Some(Arc::clone(&self.successes)),
            ..Opening::new("llm")
        };
        let recorder = Arc::new(Recorder::begin(&self.project, opening)?);
        let scope = BudgetScope {
            run: self.project.process.parent.unwrap_or_else(|| recorder.run()),
            task: call.session.as_ref().map(|session| session.raw().to_owned()),
        };
        let spent = self.spending.check(&scope);
        let limits = OperationLimits {
            provider: Some(call.route.upstream.name.clone()),
            client: None,
            budget: self.spending.requests(),
            scope,
            command: String::new(),
            operation: call.route.target.split('?').next().unwrap_or_default().to_owned(),
            place: String::new(),
            wait_max: self.settings.deadline,
            learns: false,
        };
        let admission = Arc::new(self.admission.operation(limits, None)?.of_request(call.identity()));
        admission.refuse(spent.err());
        let run = OperationRun {
            project: Arc::clone(&self.project),
            recorder,
            admission: Arc::clone(&admission),
            classifier: Arc::clone(&self.classifier),
            policy: Arc::clone(&self.policy),
            cancel: Cancel::new(),
            deadline: Some(self.settings.deadline),
            repeatable: true,
            confirm_with: String::new(),
        };
        let exchange = Exchange {
            state: Arc::clone(self),
            call: Arc::clone(call),
            admission,
            progress: Arc::clone(progress),
            overflow: Overflow::default(),
            trimmed: None,
        };
        let given_up = Arc::clone(self).given_up(Arc::clone(progress), run.cancel.clone());
        let mut closing = Closing::new(Arc::clone(self), run, &name);
        Ok(Box::pin(async move {
            let mut finished = {
                let mut attempts = pin!(closing.run.attempt(&name, exchange));
                tokio::select! {
                    biased;
                    finished = &mut attempts => finished,
                    () = given_up => attempts.await,
                }
            };
            closing.attempts = finished.attempts;
            closing.unrecorded = std::mem::take(&mut finished.unrecorded);
            Outcome { closing, finished }
        }))
    }

    /// Waits until the proxy has been ending for so long that answers have to end now: a moment
    /// before their connections are cut, so that clients get an error that they understand.
    async fn drained(&self) {
        self.ending.cancelled().await;
        tokio::time::sleep(DRAIN_MAX.saturating_sub(WAIT_AT_END)).await;
    }

    /// Once the proxy ends: gives up a request that waits for something else than its upstream, and
    /// in the end all of them.
    async fn given_up(self: Arc<Self>, progress: Arc<Progress>, cancel: Cancel) {
        let waits = async {
            self.ending.cancelled().await;
            loop {
                tokio::time::sleep(WAIT_AT_END).await;
                if !progress.attempting.load(Ordering::Relaxed) {
                    return;
                }
            }
        };
        tokio::select! {
            () = waits => {}
            () = self.drained() => {}
        }
        cancel.cancel();
    }
}

/// What is needed to answer a client.
struct Reply {
    state: Arc<State>,
    api: Api,
    upstream: Arc<Upstream>,
    progress: Arc<Progress>,
    cache_key: Option<String>,
}

impl Reply {
    fn answer(self, outcome: Outcome) -> Answer {
        let Outcome { closing, finished } = outcome;
        match finished.result {
            Ok(accepted) => self.accepted(closing, accepted),
            Err(ending) => self.surfaced(closing, &ending),
        }
    }

    /// Headers of our own.
    fn marked(&self, mut answer: Answer) -> Answer {
        answer.set_header(ATTEMPTS, &self.progress.sent.load(Ordering::Relaxed).to_string());
        if let Some(changed) = self.progress.changed() {
            answer.set_header(CHANGED, &changed);
        }
        answer
    }

    fn accepted(self, closing: Closing, mut accepted: Accepted) -> Answer {
        let headers = std::mem::take(&mut accepted.headers);
        if self.cache_key.is_some() {
            accepted.headers = headers.clone();
        }
        // A stream may end with an event of ours.
        let length = headers.length().filter(|_| !accepted.is_stream);
        let answer = self.marked(Answer::new(accepted.status).headers(headers));
        if accepted.rest.is_some() {
            let answer = answer.written(async move |writer| self.pump(closing, accepted, &writer).await);
            return answer.length(length);
        }
        closing.done(accepted.model.as_deref(), accepted.usage);
        self.keep(accepted.status, &accepted.headers, &accepted.start);
        answer.body(accepted.start)
    }

    /// Keeps an answer that may be used again. The answer to a changed request is none to the
    /// request that would be found by its key.
    fn keep(&self, status: u16, headers: &backstop_http::Headers, body: &[u8]) {
        if let (Some(key), 200, None) = (&self.cache_key, status, self.progress.changed()) {
            let cached = Cached { status, headers: headers.clone(), body: body.to_vec() };
            self.state.cache.put(key.clone(), cached);
        }
    }

    /// What the upstream answered last, where it answered an error. Where even a smaller request
    /// was too large, a note says so.
    fn refusal(&self, ending: &Ending) -> Option<Refusal> {
        let refusal = self.progress.refusal()?;
        let changed = self.progress.changed().filter(|_| ending.fault.reason == Reason::ContextOverflow);
        let noted = changed.and_then(|changed| {
            with_note(
                &refusal.body,
                &format!("backstop: unrecoverable: {changed}, and that is too large as well"),
            )
        });
        Some(match noted {
            Some(body) => Refusal { body, ..refusal },
            None => refusal,
        })
    }

    /// What ended without success: the upstream's own error where it has one, else one like it.
    fn surfaced(self, closing: Closing, ending: &Ending) -> Answer {
        let run = closing.run.recorder.run();
        let api = self.api;
        let mut answer = match self.refusal(ending) {
            // An error that hid in a good answer has no status of its own.
            Some(refusal) if refusal.status >= 400 && !is_page(&refusal.headers) => {
                Answer::new(refusal.status).headers(refusal.headers).body(refusal.body)
            }
            refusal => {
                let told = refusal.filter(|refusal| !is_page(&refusal.headers));
                let error = api_error(api, ending.fault.reason, &message(&ending.fault, run));
                let body = told.map_or_else(|| error.body.to_string().into_bytes(), |refusal| refusal.body);
                Answer::json(error.status, body)
            }
        };
        if answer.header_text("retry-after").is_none()
            && let Some(wait) = ending.fault.facts.retry_after_seconds
        {
            answer.set_header("retry-after", &wait.max(0.0).ceil().to_string());
        }
        answer.set_header(REASON, &ending.fault.reason.to_string());
        // What could be tried was tried here: a client that tries again multiplies it.
        // Once this proxy ends, another one may be there in a moment.
        let is_ending = ending.outcome == backstop_core::Outcome::Interrupted;
        if !self.state.project.process.disabled && !is_ending {
            answer.set_header(SHOULD_RETRY, "false");
        }
        let answer = self.marked(answer);
        closing.surfaced(ending.outcome, ending.fault.reason);
        answer
    }

    /// A stream that begins before anything is known, so that its client does not give up. From
    /// here on errors are events.
    fn kept_alive(self, mut attempts: Attempts) -> Answer {
        let api = self.api;
        let answer =
            Answer::new(200).header("content-type", "text/event-stream").header("cache-control", "no-cache");
        answer.written(async move |writer| {
            writer.write(keep_alive(api).to_vec()).await?;
            let outcome = loop {
                match tokio::time::timeout(KEEP_ALIVE_AFTER, &mut attempts).await {
                    Ok(outcome) => break outcome,
                    Err(_) => writer.write(keep_alive(api).to_vec()).await?,
                }
            };
            drop(attempts);
            let Outcome { closing, finished } = outcome;
            match finished.result {
                Ok(accepted) if accepted.is_stream => self.pump(closing, accepted, &writer).await,
                Ok(accepted) => {
                    // A whole answer cannot follow in a stream: the client asked for one.
                    let text = "the upstream answered with a whole answer where a stream was asked for";
                    closing.done(accepted.model.as_deref(), accepted.usage);
                    writer.write(error_event(api, Reason::Unknown, &format!("backstop: {text}"))).await
                }
                Err(ending) => {
                    let run = closing.run.recorder.run();
                    let words = message(&ending.fault, run);
                    let event = match self.refusal(&ending) {
                        Some(refusal) => passed_event(api, &refusal.body, ending.fault.reason, &words),
                        None => error_event(api, ending.fault.reason, &words),
                    };
                    closing.surfaced(ending.outcome, ending.fault.reason);
                    writer.write(event).await
                }
            }
        })
    }

    /// Passes on an answer as it comes. A stream that breaks ends with the API's own error event.
    async fn pump(self, closing: Closing, mut accepted: Accepted, writer: &AnswerWriter) -> Result<(), Cut> {
        let api = self.api;
        // What is compressed is not read, and may be an error.
        let may_keep = self.cache_key.is_some() && !is_encoded(&accepted.headers);
        let mut copy = may_keep.then(|| accepted.start.clone());
        let keep_piece = |copy: &mut Option<Vec<u8>>, piece: &[u8]| {
            if let Some(copy) = copy.as_mut().filter(|copy| copy.len() <= cache::ANSWER_BYTES_MAX) {
                copy.extend_from_slice(piece);
            }
        };
        writer.write(std::mem::take(&mut accepted.start)).await?;
        if let Some(error) = accepted.error.take() {
            let signal = self.with_provider(error_signal(&error));
            closing.broke(&signal, accepted.model.as_deref(), accepted.usage);
            return Ok(());
        }
        let Some(mut rest) = accepted.rest.take() else { return Ok(()) };
        let mut drained = pin!(self.state.drained());
        let recorder = Arc::clone(&closing.run.recorder);
        let broken = loop {
            let next = tokio::select! {
                biased;
                next = rest.chunk() => next,
                () = &mut drained => {
                    let fault = closing.interrupted(accepted.model.as_deref(), accepted.usage);
                    if !accepted.is_stream {
                        return Err(Cut);
                    }
                    return writer.write(error_event(api, fault.reason, &message(&fault, recorder.run()))).await;
                }
            };
            let piece = match next {
                Ok(Some(piece)) => piece,
                Ok(None) if !accepted.is_stream || accepted.reader.is_complete() => break None,
                Ok(None) => break Some(cut_off()),
                // Nothing that the client needs was missing any more.
                Err(_) if accepted.is_stream && accepted.reader.is_complete() => {
                    accepted.partial.clear();
                    copy = None;
                    break None;
                }
                Err(error) => break Some(Signal::from(&error)),
            };
            if !accepted.is_stream {
                keep_piece(&mut copy, &piece);
                writer.write(piece).await?;
                continue;
            }
            // Most pieces are whole events, which pass as they are.
            let whole = if accepted.partial.is_empty() && events::whole_events(&piece, 0) == piece.len() {
                piece
            } else {
                let seen = accepted.partial.len();
                accepted.partial.extend_from_slice(&piece);
                let whole = events::whole_events(&accepted.partial, seen);
                if whole == 0 {
                    continue;
                }
                let after = accepted.partial.split_off(whole);
                std::mem::replace(&mut accepted.partial, after).into()
            };
            let error = look_at(api, &whole, &mut accepted);
            keep_piece(&mut copy, &whole);
            writer.write(whole).await?;
            if let Some(signal) = error {
                // The upstream has said itself what went wrong, and the client has it.
                closing.broke(&self.with_provider(signal), accepted.model.as_deref(), accepted.usage);
                return Ok(());
            }
        };
        let model = accepted.model.as_deref();
        match broken {
            None => {
                // A last event without its blank line.
                writer.write(std::mem::take(&mut accepted.partial)).await?;
                closing.done(model, accepted.usage);
                drop(accepted.slot.take());
                // Gemini's growing list may end with an error.
                if let Some(copy) = copy.filter(|copy| accepted.is_stream || !may_be_error(copy)) {
                    self.keep(accepted.status, &accepted.headers, &copy);
                }
                Ok(())
            }
            Some(signal) => {
                let fault = closing.broke(&self.with_provider(signal), model, accepted.usage);
                if !accepted.is_stream {
                    return Err(Cut);
                }
                writer.write(error_event(api, fault.reason, &message(&fault, recorder.run()))).await
            }
        }
    }

    fn with_provider(&self, signal: Signal) -> Signal {
        Signal {
            provider: Some(self.upstream.name.to_string()),
            at: Some(self.state.project.process.now()),
            ..signal
        }
    }
}

/// What is answered to a request that was not read to its end.
fn unread(api: Option<Api>, problem: BodyProblem, bytes_max: usize) -> Answer {
    let what = match problem {
        BodyProblem::TooLarge => format!("{problem}: `llm.body_max` allows {bytes_max} bytes"),
        BodyProblem::CutOff | BodyProblem::Silent => problem.to_string(),
    };
    let error = api_error(api.unwrap_or(Api::Chat), Reason::Validation, &format!("backstop: {what}"));
    Answer::json(problem.status(), error.body.to_string().into_bytes())
}

/// Looks at whole events on their way: usage, the end of each choice, an error.
fn look_at(api: Api, bytes: &[u8], accepted: &mut Accepted) -> Option<Signal> {
    let mut found = None;
    for event in events::split(bytes) {
        if usage::may_report(event)
            && let Some(value) = events::data(event)
        {
            usage::read(api, &value, &mut accepted.usage);
        }
        if let Event::Error(error) = accepted.reader.read(event) {
            found = Some(error_signal(&error));
        }
    }
    found
}

/// An error inside a stream.
fn error_signal(error: &Value) -> Signal {
    Signal::answered(200).text(error.to_string().into_bytes())
}

/// A stream that ended without its last event.
fn cut_off() -> Signal {
    Signal {
        surface: Surface::Response,
        dispatch: Dispatch::Lost,
        errno: Some("ERR_STREAM_PREMATURE_CLOSE".to_owned()),
        stderr: b"the stream ended before its last event".to_vec(),
        ..Signal::default()
    }
}

/// Whether an error is a page for people, which no client of an API understands.
fn is_page(headers: &backstop_http::Headers) -> bool {
    headers.text("content-type").is_some_and(|kind| kind.contains("html"))
}
