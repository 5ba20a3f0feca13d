//! The events of a run as one trace: the run is the root span, each attempt a span below it.
//!
//! Ids are derived from the run's id and its beginning, so that the same run is the same trace
//! however often it is sent.

use backstop_core::{Action, Event, EventKind, Fault, Outcome, Sha256, Timestamp};
use backstop_store::operation_label;
use serde_json::{Value, json};
use std::time::Duration;

/// How many attempts and how many events of a span are sent.
const SPANS_MAX: usize = 1000;
/// How much of a text is sent.
const TEXT_CHARS_MAX: usize = 1000;

const INTERNAL: u8 = 1;
const OK: u8 = 1;
const ERROR: u8 = 2;

/// The request for a run's events; none where there are none.
pub(super) fn request(events: &[Event], service: &str) -> Option<Value> {
    let first = events.first()?;
    let version = env!("CARGO_PKG_VERSION");
    let mut trace = Trace::new(first);
    events.iter().for_each(|event| trace.event(event));
    Some(json!({ "resourceSpans": [{
        "resource": { "attributes": [text("service.name", service), text("service.version", version)] },
        "scopeSpans": [{ "scope": { "name": "backstop", "version": version }, "spans": trace.into_spans() }],
    }] }))
}

/// A span in the making.
struct Span {
    id: String,
    name: String,
    start: Timestamp,
    end: Timestamp,
    status: u8,
    message: String,
    attributes: Vec<Value>,
    events: Vec<Value>,
}

impl Span {
    fn new(id: String, name: String, start: Timestamp) -> Self {
        let (attributes, events, message) = (Vec::new(), Vec::new(), String::new());
        Self { id, name, start, end: start, status: 0, message, attributes, events }
    }

    fn add(&mut self, event: &Event, attributes: Vec<Value>) {
        if self.events.len() < SPANS_MAX {
            let name = event.kind.name();
            self.events
                .push(json!({ "timeUnixNano": nanos(event.at), "name": name, "attributes": attributes }));
        }
    }

    fn failed(&mut self, why: &str) {
        (self.status, self.message) = (ERROR, why.to_owned());
    }

    fn into_json(self, trace: &str, parent: Option<&str>) -> Value {
        let mut span = json!({
            "traceId": trace, "spanId": self.id, "name": self.name, "kind": INTERNAL,
            "startTimeUnixNano": nanos(self.start), "endTimeUnixNano": nanos(self.end.max(self.start)),
            "attributes": self.attributes, "events": self.events,
            "status": if self.status == ERROR {
                json!({ "code": ERROR, "message": self.message })
            } else {
                json!({ "code": self.status })
            },
        });
        if let Some(parent) = parent {
            span["parentSpanId"] = parent.into();
        }
        span
    }
}

struct Trace {
    id: String,
    root: Span,
    /// By attempt: those that began, in order.
    attempts: Vec<(String, u32, Span)>,
}

impl Trace {
    fn new(first: &Event) -> Self {
        let seed = format!("{} {}", first.run, first.at.as_millis());
        let id = hex(&seed, 16);
        let mut root = Span::new(hex(&format!("{seed} run"), 8), first.surface.clone(), first.at);
        root.attributes.push(text("backstop.run", &first.run.to_string()));
        root.attributes.push(text("backstop.surface", &first.surface));
        root.attributes.extend(first.session.as_ref().map(|session| text("backstop.session", session.raw())));
        root.attributes.extend(first.caller.as_ref().map(|caller| text("backstop.caller", caller.raw())));
        Self { id, root, attempts: Vec::new() }
    }

    /// The span of an attempt, newest first; the root where it is not known.
    fn attempt(&mut self, operation: Option<&str>, number: u32) -> &mut Span {
        let is = |(name, n, _): &&mut (String, u32, Span)| {
            *n == number && operation.is_none_or(|operation| operation == name)
        };
        match self.attempts.iter_mut().rev().find(is) {
            Some((_, _, span)) => span,
            None => &mut self.root,
        }
    }

    fn event(&mut self, event: &Event) {
        self.root.end = self.root.end.max(event.at);
        match &event.kind {
            EventKind::RunStarted { operation, folder, profile, parent } => {
                self.root.name = format!("{} {}", event.surface, cut(&operation_label(operation.raw())));
                let more = [
                    Some(text("backstop.operation", operation.raw())),
                    folder.as_ref().map(|folder| text("backstop.folder", folder.raw())),
                    profile.as_ref().map(|profile| text("backstop.profile", profile)),
                    parent.map(|parent| text("backstop.parent", &parent.to_string())),
                ];
                self.root.attributes.extend(more.into_iter().flatten());
            }
            EventKind::RunEnded { outcome, reason, attempts, exit, .. } => {
                match (outcome, reason) {
                    (Outcome::Done, _) => self.root.status = OK,
                    (_, Some(reason)) => self.root.failed(reason.code()),
                    (outcome, None) => self.root.failed(outcome.name()),
                }
                self.root.attributes.push(text("backstop.outcome", outcome.name()));
                self.root.attributes.push(number("backstop.attempts", i64::from(*attempts)));
                self.root.attributes.extend(exit.map(|exit| number("backstop.exit", exit.into())));
                self.root.attributes.extend(reason.map(|reason| text("backstop.reason", reason.code())));
                self.root
                    .attributes
                    .extend(reason.map(|reason| text("backstop.class", reason.class().name())));
            }
            EventKind::AttemptStarted { operation, attempt } if self.attempts.len() < SPANS_MAX => {
                let id = hex(&format!("{} {attempt} {} {}", self.id, event.seq, operation.raw()), 8);
                let mut span = Span::new(id, format!("attempt {attempt}"), event.at);
                span.attributes.push(number("backstop.attempt", i64::from(*attempt)));
                self.attempts.push((operation.raw().to_owned(), *attempt, span));
            }
            EventKind::AttemptFinished { operation, attempt, success, duration_ms, exit, signal, .. } => {
                let span = self.attempt(Some(operation.raw()), *attempt);
                // It is recorded with what comes next, which may be later than it ended.
                span.end = span.start.after(Duration::from_millis(*duration_ms));
                if *success {
                    span.status = OK;
                } else {
                    span.failed("failed");
                }
                span.attributes.extend(exit.map(|exit| number("backstop.exit", exit)));
                span.attributes.extend(signal.as_ref().map(|signal| text("backstop.signal", signal)));
            }
            EventKind::AttemptLost { operation, attempt, why, .. } => {
                let span = self.attempt(Some(operation.raw()), *attempt);
                span.end = event.at;
                span.failed(&cut(why.raw()));
            }
            EventKind::ErrorClassified { operation, attempt, fault } => {
                let said = of_fault(fault);
                let span = self.attempt(Some(operation.raw()), *attempt);
                span.failed(fault.reason.code());
                span.attributes.extend(said.iter().take(3).cloned());
                span.add(event, said);
            }
            EventKind::DecisionMade { operation: None, attempt, decision, reclassified, .. } => {
                let mut said = vec![
                    text("backstop.decision", decision.action.name()),
                    text("backstop.why", &decision.why),
                ];
                let span = self.attempt(None, *attempt);
                span.attributes.extend(said.iter().cloned());
                if let Action::Retry { after, .. } | Action::AwaitGuard { after, .. } = &decision.action {
                    said.push(json!({ "key": "backstop.after_seconds", "value": { "doubleValue": after.as_secs_f64() } }));
                }
                said.extend(reclassified.map(|reason| text("backstop.reclassified", reason.code())));
                span.add(event, said);
            }
            EventKind::GuardWaited { provider, waited_ms } => {
                let waited = i64::try_from(*waited_ms).unwrap_or(i64::MAX);
                let said = vec![
                    text("backstop.provider", &provider.to_string()),
                    number("backstop.waited_ms", waited),
                ];
                self.root.add(event, said);
            }
            _ => {}
        }
    }

    fn into_spans(self) -> Vec<Value> {
        let Trace { id, mut root, attempts } = self;
        root.end = attempts.iter().map(|(_, _, span)| span.end).max().unwrap_or(root.end).max(root.end);
        let parent = root.id.clone();
        let below = attempts.into_iter().map(|(_, _, span)| span.into_json(&id, Some(&parent)));
        let below: Vec<Value> = below.collect();
        std::iter::once(root.into_json(&id, None)).chain(below).collect()
    }
}

/// Reason, class and rule first: those are said of the span too.
fn of_fault(fault: &Fault) -> Vec<Value> {
    let rule = fault.evidence.first().map_or("none", |evidence| evidence.rule.as_str());
    let mut said = vec![
        text("backstop.reason", fault.reason.code()),
        text("backstop.class", fault.class.name()),
        text("backstop.rule", rule),
    ];
    said.extend(fault.cause.as_ref().map(|cause| text("backstop.cause", cause.raw())));
    said
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": cut(value) } })
}

/// OTLP writes whole numbers as text.
fn number(key: &str, value: i64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}

/// Nanoseconds since 1970, as text.
fn nanos(at: Timestamp) -> String {
    (i128::from(at.as_millis().max(0)) * 1_000_000).to_string()
}

fn hex(of: &str, bytes: usize) -> String {
    backstop_core::hex(&Sha256::of(of).bytes()[..bytes])
}
