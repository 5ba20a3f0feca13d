//! The machine's state, the progress and the error at the time of a failure.

use crate::{JSON_SCHEMA, Style, View, date_time, duration};
use backstop_core::{
    Action, Decision, Event, EventKind, Exception, ExecutionContext, Fault, MachineState, Reason, RunId,
    SafeText, Timestamp,
};
use serde_json::{Value, json};
use std::time::Duration;

/// How much of a line is shown.
const LINE_CHARS_MAX: usize = 300;
/// How many lines of a partial result are shown.
const PARTIAL_LINES_MAX: usize = 8;
/// How many lines of a stack trace are shown: its end.
const TRACE_LINES_MAX: usize = 12;
/// How many other fields of a report are shown.
const FIELDS_MAX: usize = 12;
/// Where the next line of a row begins.
const NEXT_ROW: &str = "\n                       ";

/// One error of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct DiagnosedError {
    /// What failed.
    pub operation: SafeText,
    /// Which attempt of it.
    pub attempt: u32,
    /// When it was classified.
    pub at: Timestamp,
    /// The fault, with the machine's state at that time. Where retries were used up, it has the
    /// reason and the advice that the run ended with.
    pub fault: Fault,
    /// What was decided about it, where that was recorded.
    pub decision: Option<Decision>,
    /// The error type that was reported, where one was.
    pub reported: Option<String>,
    /// The step, the elapsed time and the partial result.
    pub context: ExecutionContext,
}

/// The errors of one run, with the machine's state then and now.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// The run.
    pub run: RunId,
    /// The surface that recorded it: `exec`, `hook`, `run`.
    pub surface: String,
    /// Its errors, oldest first.
    pub errors: Vec<DiagnosedError>,
    /// The machine's state now.
    pub now: MachineState,
}

impl Diagnosis {
    /// The diagnosis of a run from its events; `None` where there are none.
    pub fn from_events(events: &[Event], now: MachineState) -> Option<Self> {
        let first = events.first()?;
        let mut errors: Vec<DiagnosedError> = Vec::new();
        let mut reported = None;
        let mut finished: Vec<(&SafeText, u32, ExecutionContext)> = Vec::new();
        for event in events {
            match &event.kind {
                EventKind::AttemptFinished { operation, attempt, duration_ms, output, .. } => {
                    let context = ExecutionContext {
                        current_step: None,
                        elapsed_seconds: Some(Duration::from_millis(*duration_ms).as_secs_f64()),
                        partial_result: output.clone(),
                        ..ExecutionContext::default()
                    };
                    finished.push((operation, *attempt, context));
                }
                EventKind::ErrorClassified { operation, attempt, fault } => {
                    let known = finished.iter().rev().find(|(of, n, _)| *of == operation && n == attempt);
                    errors.push(DiagnosedError {
                        operation: operation.clone(),
                        attempt: *attempt,
                        at: event.at,
                        fault: (**fault).clone(),
                        decision: None,
                        reported: None,
                        context: known.map(|(_, _, context)| context.clone()).unwrap_or_default(),
                    });
                }
                EventKind::StateEntered { error_type: Some(kind), context: None, .. }
                    if errors.is_empty() =>
                {
                    reported = Some(kind.clone());
                }
                EventKind::StateEntered { context: Some(context), .. } => {
                    if let Some(error) = errors.last_mut() {
                        error.context = (**context).clone();
                        error.reported = reported.take();
                    }
                }
                EventKind::DecisionMade { operation, attempt, decision, reclassified } => {
                    let is_meant = |error: &&mut DiagnosedError| {
                        error.attempt == *attempt
                            && operation.as_ref().is_none_or(|name| *name == error.operation)
                    };
                    if let Some(error) = errors.iter_mut().rev().find(is_meant) {
                        let reason = reclassified.unwrap_or(error.fault.reason);
                        error.fault = error.fault.clone().renamed(reason);
                        if matches!(decision.action, Action::Confirm { .. }) {
                            error.fault = error.fault.clone().may_have_changed();
                        }
                        // An agent's failed tool call ends nothing, and names no operation.
                        if operation.is_some() && !is_retried(&decision.action) {
                            error.fault.severity = error.fault.ending_severity();
                        }
                        error.decision = Some(decision.clone());
                    }
                }
                _ => {}
            }
        }
        Some(Self { run: first.run, surface: first.surface.clone(), errors, now })
    }
}

impl View for Diagnosis {
    /// With the on-error seed's three parts for each error.
    fn json(&self) -> Value {
        let errors: Vec<Value> = self.errors.iter().map(|error| error.json(&self.surface)).collect();
        json!({ "schema": JSON_SCHEMA, "run": self.run, "surface": self.surface, "errors": errors, "now": self.now })
    }

    /// The last error in full, earlier ones on a line each.
    fn text(&self, style: Style) -> String {
        let Some(last) = self.errors.last() else {
            return format!("{}: nothing has failed in this run\n", self.run);
        };
        let mut out = String::new();
        for error in &self.errors[..self.errors.len() - 1] {
            out.push_str(&format!(
                "earlier: {} attempt {}: {} at {}\n",
                error.operation.line(60),
                error.attempt,
                error.fault.reason,
                date_time(error.at)
            ));
        }
        let mut part = |title: &str, rows: &[(&str, Option<String>)]| {
            out.push_str(&format!("{}\n", style.strong(title)));
            let mut any = false;
            for (label, value) in rows {
                if let Some(value) = value {
                    any = true;
                    out.push_str(&format!("  {label:<20} {value}\n"));
                }
            }
            if !any {
                out.push_str("  nothing is known\n");
            }
        };
        part("Error details", &last.detail_rows());
        part("Execution context", &last.context_rows());
        let then = last.fault.machine.as_deref();
        part("System state then", &then.map(machine_rows).unwrap_or_default());
        part("System state now", &machine_rows(&self.now));
        out.push_str(&format!("\n`backstop explain {}` tells the whole story\n", self.run));
        out
    }
}

impl DiagnosedError {
    /// The type, message and place of the exception, as far as they are known.
    fn exception(&self) -> Exception {
        let (facts, cause) = (&self.fault.facts, self.fault.cause.clone().unwrap_or_default());
        let mut found = facts.exception.clone().unwrap_or_default();
        if let Some(kind) = &self.reported {
            found.kind = SafeText::new(kind.clone());
        }
        if found.message.is_empty() {
            found.message = cause;
        }
        if found.file.is_none() {
            (found.file, found.line) = (facts.files.first().cloned(), facts.line);
        }
        found
    }

    fn json(&self, surface: &str) -> Value {
        let known = |text: SafeText| (!text.is_empty()).then_some(text);
        let (found, fault) = (self.exception(), &self.fault);
        json!({
            "at": self.at,
            "system_state": fault.machine,
            "execution_context": {
                "task_id": self.operation,
                "surface": surface,
                "attempt": self.attempt,
                "current_step": self.context.current_step,
                "elapsed_seconds": self.context.elapsed_seconds,
                "partial_result": self.context.partial_result,
                "fallbacks": self.context.fallbacks,
                "fallback": self.fallback_json(),
                "fields": self.context.fields,
                "fields_omitted": self.context.fields_omitted,
            },
            "error_details": {
                "exception_type": known(found.kind),
                "exception_message": known(found.message),
                "file": found.file,
                "line": found.line,
                "function": found.function,
                "root": found.root,
                "stack_trace": self.context.stack_trace,
                "provider": fault.facts.provider,
                "credential": fault.facts.credential,
                "renewal": fault.facts.renewal,
                "reason": fault.reason,
                "class": fault.class,
                "severity": fault.severity,
                "cause": fault.cause,
                "suggested_action": fault.suggested_action,
                "evidence": fault.evidence,
            },
        })
    }

    fn detail_rows(&self) -> Vec<(&'static str, Option<String>)> {
        let (found, fault) = (self.exception(), &self.fault);
        let place = found.file.map(|file| {
            let line = found.line.map(|line| format!(":{line}")).unwrap_or_default();
            let function = found.function.map(|name| format!(", in {}", name.line(100))).unwrap_or_default();
            format!("{}{line}{function}", file.line(LINE_CHARS_MAX))
        });
        let known = |text: SafeText| (!text.is_empty()).then(|| text.line(LINE_CHARS_MAX));
        vec![
            ("reason", Some(format!("{} ({}, {})", fault.reason, fault.class, fault.severity))),
            ("type", known(found.kind)),
            ("message", known(found.message)),
            ("where", place),
            ("root cause", found.root.map(|root| root.line(LINE_CHARS_MAX))),
            ("credential", self.credential()),
            (
                "stack trace",
                self.context.stack_trace.as_ref().and_then(|trace| last_lines(trace, TRACE_LINES_MAX)),
            ),
            ("next", Some(fault.suggested_action.line(LINE_CHARS_MAX))),
        ]
    }

    /// The credential that was refused, and whose it is.
    fn credential(&self) -> Option<String> {
        let facts = &self.fault.facts;
        let credential = facts.credential.as_ref().filter(|_| self.fault.reason == Reason::AuthError)?;
        let of = facts.provider.as_ref().map(|provider| format!(" ({})", provider.line(100)));
        Some(format!("{}{}", credential.line(LINE_CHARS_MAX), of.unwrap_or_default()))
    }

    /// What is done instead of another attempt, with the names that `hook on-error` answers with.
    /// Null while it is tried again.
    fn fallback_json(&self) -> Value {
        match self.decision.as_ref().filter(|decision| !is_retried(&decision.action)) {
            Some(decision) => {
                let fields = json!(decision);
                json!({ "action": decision.action.name(), "to": fields.get("to"), "until": fields.get("until") })
            }
            None => Value::Null,
        }
    }

    /// The fallback that applies, and those that the task offered.
    fn fallback(&self) -> Option<String> {
        let offered: Vec<String> = self.context.fallbacks.iter().map(|text| text.line(100)).collect();
        let offered = Some(offered.join(", ")).filter(|text| !text.is_empty());
        let applies = match self.decision.as_ref().map(|decision| &decision.action) {
            None => return offered,
            Some(Action::Fallback { to }) => SafeText::new(to.clone()).line(100),
            Some(Action::Defer { .. }) => "put aside, see `backstop deferred`".to_owned(),
            Some(Action::UsePartial) => "use the partial result".to_owned(),
            Some(action) => {
                let none = if is_retried(action) { "none yet, it is tried again" } else { "none applies" };
                offered.as_ref().map(|_| none.to_owned())?
            }
        };
        Some(match offered {
            Some(offered) => format!("{applies} (offered: {offered})"),
            None => applies,
        })
    }

    fn context_rows(&self) -> Vec<(&'static str, Option<String>)> {
        let partial =
            self.context.partial_result.as_ref().and_then(|text| last_lines(text, PARTIAL_LINES_MAX));
        let mut fields: Vec<String> = Vec::new();
        for (name, value) in self.context.fields.iter().take(FIELDS_MAX) {
            fields.push(format!("{}: {}", SafeText::new(name.clone()).line(60), value.line(200)));
        }
        let shown = u32::try_from(fields.len()).unwrap_or(u32::MAX);
        let all = u32::try_from(self.context.fields.len()).unwrap_or(u32::MAX);
        let rest = all.saturating_sub(shown).saturating_add(self.context.fields_omitted);
        if rest > 0 {
            fields.push(format!("and {rest} more"));
        }
        let elapsed = self.context.elapsed_seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
        vec![
            ("operation", Some(self.operation.line(LINE_CHARS_MAX))),
            ("attempt", Some(self.attempt.to_string())),
            ("at", Some(date_time(self.at))),
            ("step", self.context.current_step.as_ref().map(|step| step.line(LINE_CHARS_MAX))),
            ("elapsed", elapsed.map(duration)),
            ("partial result", partial),
            ("fallback", self.fallback()),
            ("other fields", Some(fields.join(NEXT_ROW)).filter(|text| !text.is_empty())),
        ]
    }
}

/// Whether the same is tried again. A fallback is another way.
fn is_retried(action: &Action) -> bool {
    action.goes_on() && !matches!(action, Action::Fallback { .. })
}

/// The last lines of a text, below each other; `None` where it is blank.
fn last_lines(text: &SafeText, lines_max: usize) -> Option<String> {
    let lines: Vec<&str> = text.raw().lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(lines_max);
    let shown: Vec<String> = lines[from..].iter().map(|line| SafeText::new(*line).line(200)).collect();
    (!shown.is_empty()).then(|| shown.join(NEXT_ROW))
}

fn machine_rows(machine: &MachineState) -> Vec<(&'static str, Option<String>)> {
    let short =
        machine.short_of.iter().map(|short| short.says.line(LINE_CHARS_MAX)).collect::<Vec<_>>().join("; ");
    vec![
        ("memory available", machine.memory_available_mb.map(|mb| format!("{mb} MB"))),
        ("disk free", machine.disk_free_gb.map(|gb| format!("{gb} GB"))),
        ("load", machine.load.map(|load| load.to_string())),
        ("connections", machine.active_connections.map(|count| count.to_string())),
        ("put aside", machine.queue_length.map(|count| count.to_string())),
        ("short", Some(short).filter(|short| !short.is_empty())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::tests::{is_unsafe, texts};
    use backstop_core::{EVENT_SCHEMA, EventId, Resource, Shortage};
    use proptest::prelude::*;

    fn diagnosis(text: &SafeText) -> Diagnosis {
        let run: RunId = "r-7f3a".parse().unwrap();
        let mut fault = Fault::new(Reason::DiskFull);
        fault.cause = Some(text.clone());
        fault.facts.files = vec![text.clone()];
        fault.facts.line = Some(45);
        fault.add_machine_state(MachineState {
            memory_available_mb: Some(128),
            disk_free_gb: Some(0.01),
            load: Some(0.5),
            active_connections: Some(3),
            queue_length: Some(12),
            short_of: vec![Shortage { resource: Resource::Disk, says: text.clone() }],
        });
        let context = ExecutionContext {
            current_step: Some(text.clone()),
            elapsed_seconds: Some(23.4),
            partial_result: Some(text.clone()),
            fallbacks: vec![text.clone()],
            stack_trace: Some(text.clone()),
            fields: [("repository".to_owned(), text.clone())].into(),
            fields_omitted: 2,
        };
        let state = |state: &str, context| EventKind::StateEntered {
            operation: Some(text.clone()),
            state: state.to_owned(),
            error_type: Some(text.raw().to_owned()),
            context,
        };
        let kinds = vec![
            state("error_handling_start", None),
            EventKind::ErrorClassified { operation: text.clone(), attempt: 2, fault: Box::new(fault) },
            state("error_diagnostics", Some(Box::new(context))),
        ];
        let event = |(seq, kind)| Event {
            schema: EVENT_SCHEMA,
            id: EventId { run, seq },
            run,
            seq,
            at: Timestamp::from_millis(0),
            session: None,
            surface: "hook".into(),
            caller: None,
            kind,
        };
        let events: Vec<Event> = (1..).zip(kinds).map(event).collect();
        Diagnosis::from_events(&events, MachineState::default()).unwrap()
    }

    #[test]
    fn all_three_parts_and_the_machine_now() {
        insta::assert_snapshot!(diagnosis(&"no space left on /srv".into()).text(Style::PLAIN));
    }

    #[test]
    fn where_nothing_failed_there_is_nothing_to_show() {
        let mut empty = diagnosis(&"x".into());
        empty.errors.clear();
        assert_eq!(empty.text(Style::PLAIN), "r-7f3a: nothing has failed in this run\n");
        assert_eq!(Diagnosis::from_events(&[], MachineState::default()), None);
    }

    proptest! {
        #[test]
        fn no_text_from_outside_acts_on_a_terminal(texts in texts()) {
            let shown = diagnosis(&texts.command).text(Style::PLAIN);
            prop_assert!(!shown.chars().any(is_unsafe), "{shown:?}");
        }
    }
}
