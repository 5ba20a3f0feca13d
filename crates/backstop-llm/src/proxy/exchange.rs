//! One attempt of a model request: sent once, and looked at until it is clear that it succeeds.
//!
//! A stream is held back until its first content event, a whole answer until it is complete, so
//! that what goes wrong before that can be tried again unseen.

use super::State;
use super::call::Call;
use super::errors::with_note;
use super::events::{self, Event, StreamReader};
use super::usage;
use crate::trim::{TrimError, TrimOptions, trim};
use crate::{Api, Overflow};
use backstop_core::{Dispatch, FallbackChoice, Fault, Reason, SafeText, Signal, Surface, Usage};
use backstop_engine::{Attempt, Failed, Operation};
use backstop_http::{Chunk, Headers, HttpError, Limits, Request, Response};
use backstop_report::trim_line;
use backstop_runtime::admission::OperationAdmission;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// How much of an error's body is read.
const ERROR_BYTES_MAX: usize = 1 << 20;
/// How much of a whole answer is held back until it is complete.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// How much of a stream may come before its first content.
const PREAMBLE_BYTES_MAX: usize = 1 << 20;
/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// An error as the upstream answered it.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) headers: Headers,
    pub(super) body: Vec<u8>,
}

/// What others may look at while attempts are made.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Whether something was sent and is waited for: then it is the upstream's turn.
    pub(super) attempting: AtomicBool,
    /// Whether the upstream has begun a stream in this attempt: its status is known then.
    pub(super) is_streaming: AtomicBool,
    /// How many requests were sent.
    pub(super) sent: AtomicU32,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    refusal: Option<Refusal>,
    changed: Option<String>,
}

impl Progress {
    /// Whether the answer to a client may begin as a stream. While the upstream works on its
    /// answer, its status is worth waiting for; once it has begun a stream, that status is known.
    pub(super) fn may_begin_stream(&self) -> bool {
        !self.attempting.load(Ordering::Relaxed) || self.is_streaming.load(Ordering::Relaxed)
    }

    /// What the upstream answered to the last attempt, where it answered an error.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).refusal.clone()
    }

    /// How the request was changed, if it was.
    pub(super) fn changed(&self) -> Option<String> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).changed.clone()
    }

    fn set(&self, change: impl FnOnce(&mut Last)) {
        change(&mut self.last.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// An answer that has begun well.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) status: u16,
    pub(super) headers: Headers,
    /// What has arrived, in whole events where it is a stream.
    pub(super) start: Vec<u8>,
    /// The beginning of an event that is not complete yet.
    pub(super) partial: Vec<u8>,
    /// What follows; none where all is there.
    pub(super) rest: Option<Response>,
    /// Whether it is read event by event; anything else passes as it comes.
    pub(super) is_stream: bool,
    /// What the events so far have said.
    pub(super) reader: StreamReader,
    /// The error that came together with the first content.
    pub(super) error: Option<Value>,
    pub(super) usage: Usage,
    pub(super) model: Option<String>,
    /// Held until the answer has ended.
    pub(super) slot: Option<OwnedSemaphorePermit>,
}

/// A model request that is attempted.
pub(super) struct Exchange {
    pub(super) state: Arc<State>,
    pub(super) call: Arc<Call>,
    pub(super) admission: Arc<OperationAdmission>,
    pub(super) progress: Arc<Progress>,
    pub(super) overflow: Overflow,
    pub(super) trimmed: Option<Chunk>,
}

impl Operation for Exchange {
    type Output = Accepted;

    fn is_compressible(&self) -> bool {
        self.call.is_model_request()
    }

    fn recovery_detail(&self) -> Option<SafeText> {
        self.progress.changed().map(SafeText::new)
    }

    fn fallbacks(&self) -> Vec<FallbackChoice> {
        let mut choices = Vec::new();
        let mut model = self.call.model.as_deref();
        // Each model names the next one; a circle ends where it began.
        while let Some(next) = model.and_then(|model| self.state.settings.fallbacks.get(model)) {
            if choices.iter().any(|choice: &FallbackChoice| choice.to == *next)
                || choices.len() >= FALLBACKS_MAX
            {
                break;
            }
            choices.push(FallbackChoice { to: next.clone(), on: FALLBACK_REASONS.to_vec() });
            model = Some(next);
        }
        choices
    }

    async fn attempt(&mut self, attempt: Attempt) -> Result<Accepted, Failed> {
        let body = self.body(&attempt)?;
        let slot = match &self.call.route.upstream.slots {
            Some(slots) => Arc::clone(slots).acquire_owned().await.ok(),
            None => None,
        };
        let (target, body) = match &attempt.fallback {
            Some(model) => {
                let (target, changed) = self.call.for_model(model, &body);
                self.progress.set(|last| last.changed = Some(format!("model {model}")));
                (target, changed.map_or(body, Chunk::from))
            }
            None => (self.call.route.target.clone(), body),
        };
        self.progress.set(|last| last.refusal = None);
        self.progress.is_streaming.store(false, Ordering::Relaxed);
        self.progress.attempting.store(true, Ordering::Relaxed);
        self.progress.sent.fetch_add(1, Ordering::Relaxed);
        let sent = self.send(&target, body).await;
        let result = match sent {
            Ok(response) => self.receive(response).await,
            Err(failed) => Err(failed),
        };
        self.progress.attempting.store(false, Ordering::Relaxed);
        result
            .map(|accepted| Accepted {
                slot,
                model: attempt.fallback.or_else(|| self.call.model.clone()),
                ..accepted
            })
            .map_err(|mut failed| {
                // A client that tries again by itself multiplies what is tried here; the engine
                // heeds that where it would send the same again.
                failed.retried_below = (self.call.client_retries > 0).then_some(self.call.client_retries + 1);
                failed
            })
    }
}

/// The reasons for which another model is used.
const FALLBACK_REASONS: [Reason; 6] = [
    Reason::RateLimited,
    Reason::QuotaExhausted,
    Reason::NetworkTransient,
    Reason::Timeout,
    Reason::ServiceDown,
    Reason::ContextOverflow,
];
/// How many other models are tried.
const FALLBACKS_MAX: usize = 3;

impl Exchange {
    /// The body to send now: as it came, or smaller once it was too large.
    fn body(&mut self, attempt: &Attempt) -> Result<Chunk, Failed> {
        let Some(keep_percent) = attempt.keep_percent else { return Ok(self.call.body.clone()) };
        if let Some(trimmed) = &self.trimmed {
            return Ok(trimmed.clone());
        }
        let options = TrimOptions { keep_percent, overflow: self.overflow };
        match trim(self.call.api(), &self.call.body, &options) {
            Ok(trimmed) => {
                let line = trim_line(&trimmed.report);
                self.progress.set(|last| last.changed = Some(line));
                let body = Chunk::from(trimmed.body);
                self.trimmed = Some(body.clone());
                Ok(body)
            }
            // Another model may have a larger window.
            Err(_) if attempt.fallback.is_some() => Ok(self.call.body.clone()),
            Err(error) => Err(self.untrimmable(&error)),
        }
    }

    /// A request that is too large and cannot be made smaller: said in the provider's own error.
    fn untrimmable(&self, error: &TrimError) -> Failed {
        let mut fault = Fault::new(Reason::ContextOverflow);
        fault.cause = Some(SafeText::new(error.to_string()));
        fault.suggested_action = SafeText::new(error.hint());
        // What is no conversation was understood better by the provider than here.
        if !matches!(error, TrimError::NotJson(_) | TrimError::NoConversation(_)) {
            let note = format!("backstop: {error}; {}", error.hint());
            self.progress.set(|last| {
                last.refusal = last.refusal.take().and_then(|refusal| {
                    with_note(&refusal.body, &note).map(|body| Refusal { body, ..refusal })
                });
            });
        }
        Failed::classified(fault, Dispatch::NotDispatched)
    }

    async fn send(&self, target: &str, body: Chunk) -> Result<Response, Failed> {
        let upstream = &self.call.route.upstream;
        let address = upstream.origin.below(target).map_err(|error| {
            let mut fault = Fault::new(Reason::Validation);
            fault.cause = Some(SafeText::new(format!("the path {error}")));
            Failed::classified(fault, Dispatch::NotDispatched)
        })?;
        let limits = Limits { connect: CONNECT_MAX, idle: self.state.settings.idle, total: None };
        let request = Request::new(self.call.method.clone(), &address)
            .headers(self.call.headers.clone())
            .body(body)
            .limits(limits);
        self.state.client.send(request).await.map_err(|error| self.lost(&error))
    }

    fn lost(&self, error: &HttpError) -> Failed {
        Failed::from(self.signal(Signal::from(error)))
    }

    fn signal(&self, signal: Signal) -> Signal {
        Signal {
            provider: Some(self.call.route.upstream.name.to_string()),
            at: Some(self.state.project.process.now()),
            ..signal
        }
    }

    async fn receive(&mut self, mut response: Response) -> Result<Accepted, Failed> {
        let headers = response.take_headers();
        if self.admission.wants_headers(headers.iter().map(|(name, _)| name)) {
            self.admission.answered(&headers.to_pairs(), response.is_success());
        }
        if response.status() >= 400 {
            let body = self.error_body(&mut response).await;
            return Err(self.refused(response.status(), headers, body));
        }
        let kind = headers.text("content-type").unwrap_or_default().to_ascii_lowercase();
        let accepted = Accepted {
            status: response.status(),
            headers,
            start: Vec::new(),
            partial: Vec::new(),
            rest: None,
            is_stream: false,
            reader: StreamReader::new(self.call.api()),
            error: None,
            usage: Usage::default(),
            model: None,
            slot: None,
        };
        if !response.is_success() || !self.call.is_model_request() {
            return Ok(Accepted { rest: Some(response), ..accepted });
        }
        if kind.starts_with("text/event-stream") {
            // Nobody asked for a compressed stream: what cannot be read passes as it is.
            if is_encoded(&accepted.headers) {
                return Ok(Accepted { rest: Some(response), ..accepted });
            }
            self.progress.is_streaming.store(true, Ordering::Relaxed);
            self.stream(response, accepted).await
        } else {
            self.whole(response, accepted, kind.contains("html")).await
        }
    }

    /// The body of an error, as far as it comes.
    async fn error_body(&self, response: &mut Response) -> Vec<u8> {
        response.body_start(ERROR_BYTES_MAX).await
    }

    /// An error that the upstream answered, or that hides in an answer that looks well.
    fn refused(&mut self, status: u16, headers: Headers, body: Vec<u8>) -> Failed {
        self.overflow = Overflow::read(Some(status), &String::from_utf8_lossy(&body));
        let pairs = headers.to_pairs();
        let signal = Signal { headers: pairs, ..Signal::answered(status).text(body.clone()) };
        self.progress.set(|last| last.refusal = Some(Refusal { status, headers, body }));
        Failed::from(self.signal(signal))
    }

    /// Reads a stream up to its first content event.
    async fn stream(&mut self, mut response: Response, mut accepted: Accepted) -> Result<Accepted, Failed> {
        let api = self.call.api();
        let mut bytes: Vec<u8> = Vec::new();
        let mut looked_at = 0;
        loop {
            let piece = match response.chunk().await {
                Ok(Some(piece)) => piece,
                Ok(None) => return Err(self.cut("the stream ended before its first content")),
                Err(error) => return Err(self.lost(&error)),
            };
            let seen = bytes.len();
            bytes.extend_from_slice(&piece);
            let whole = events::whole_events(&bytes, seen);
            let mut found = bytes.len() > PREAMBLE_BYTES_MAX;
            for event in events::split(&bytes[looked_at..whole.max(looked_at)]) {
                if usage::may_report(event)
                    && let Some(value) = events::data(event)
                {
                    usage::read(api, &value, &mut accepted.usage);
                }
                match accepted.reader.read(event) {
                    Event::Preamble => {}
                    Event::Content | Event::End => found = true,
                    // What comes after content is the client's to see.
                    Event::Error(error) if found => accepted.error = Some(error),
                    Event::Error(error) => return Err(self.hidden(&accepted.headers, &error)),
                }
            }
            looked_at = whole.max(looked_at);
            if found {
                accepted.partial = bytes.split_off(whole);
                accepted.start = bytes;
                return Ok(Accepted { rest: Some(response), is_stream: true, ..accepted });
            }
        }
    }

    /// Reads a whole answer, unless it is very large.
    async fn whole(
        &mut self,
        mut response: Response,
        mut accepted: Accepted,
        is_page: bool,
    ) -> Result<Accepted, Failed> {
        let mut bytes: Vec<u8> = Vec::new();
        // Gemini's other stream is a list that grows.
        let grows = self.call.route.target.contains(":streamGenerateContent");
        loop {
            match response.chunk().await {
                Ok(Some(piece)) => bytes.extend_from_slice(&piece),
                Ok(None) => break,
                Err(error) => return Err(self.lost(&error)),
            }
            if bytes.len() > ANSWER_BYTES_MAX || (grows && !may_be_error(&bytes)) {
                return Ok(Accepted { start: bytes, rest: Some(response), ..accepted });
            }
        }
        // What is compressed is not read; events are passed on where a stream was asked for.
        let is_readable = !(is_encoded(&accepted.headers) || self.call.streams && may_be_events(&bytes));
        let is_telling = is_readable && (may_be_error(&bytes) || usage::may_report(&bytes));
        let value: serde_json::Result<Option<Value>> = match (is_readable, is_telling) {
            (true, true) => serde_json::from_slice(&bytes).map(Some),
            (true, false) => serde_json::from_slice::<IgnoredAny>(&bytes).map(|_| None),
            (false, _) => Ok(None),
        };
        if is_page || value.is_err() {
            // A page of a gateway or a login, half an answer or none: no answer of a model.
            let failed = self.refused(502, accepted.headers, bytes);
            // No client understands it: it gets an error of its API instead.
            self.progress.set(|last| last.refusal = None);
            return Err(failed);
        }
        if let Ok(Some(value)) = value {
            if let Some(error) = hidden_error(self.call.api(), &value) {
                let headers = accepted.headers;
                return Err(self.hidden(&headers, &error));
            }
            usage::read(self.call.api(), &value, &mut accepted.usage);
        }
        Ok(Accepted { start: bytes, ..accepted })
    }

    /// An error inside an answer with status 200.
    fn hidden(&mut self, headers: &Headers, error: &Value) -> Failed {
        let status = error.pointer("/error/code").and_then(Value::as_u64);
        let status =
            status.and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code));
        let mut pairs = Headers::new();
        for name in ["request-id", "x-request-id", "retry-after"] {
            if let Some(value) = headers.get(name) {
                let _ = pairs.add(name, value);
            }
        }
        let _ = pairs.add("content-type", "application/json");
        let body = error.to_string().into_bytes();
        let mut failed = self.refused(status.unwrap_or(200), pairs, body);
        failed.dispatch = Dispatch::Answered;
        failed
    }

    fn cut(&self, what: &str) -> Failed {
        Failed::from(self.signal(Signal {
            surface: Surface::Response,
            dispatch: Dispatch::Lost,
            errno: Some("ERR_STREAM_PREMATURE_CLOSE".to_owned()),
            stderr: what.as_bytes().to_vec(),
            ..Signal::default()
        }))
    }
}

/// Whether an answer is compressed.
pub(super) fn is_encoded(headers: &Headers) -> bool {
    headers.text("content-encoding").is_some_and(|encoding| !encoding.eq_ignore_ascii_case("identity"))
}

/// Whether an answer looks like server-sent events, although its head does not say so.
fn may_be_events(bytes: &[u8]) -> bool {
    [&b"data:"[..], b"event:", b":"].iter().any(|start| bytes.starts_with(start))
}

/// Whether the start of an answer looks like an error, so that it is worth reading.
pub(super) fn may_be_error(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"\"error\"").is_some()
}

/// The error in an answer with status 200, if it is one.
fn hidden_error(api: Api, value: &Value) -> Option<Value> {
    let first = value.get(0).unwrap_or(value);
    let error = first.get("error").filter(|error| !error.is_null())?;
    // A response that failed has its error beside its other members.
    let is_error = match api {
        Api::Responses => first.get("status").and_then(Value::as_str).is_none_or(|status| status == "failed"),
        Api::Chat => first.get("choices").is_none_or(|choices| choices.as_array().is_none_or(Vec::is_empty)),
        Api::Anthropic | Api::Gemini => true,
    };
    (is_error && (error.is_object() || error.is_string())).then(|| first.clone())
}
