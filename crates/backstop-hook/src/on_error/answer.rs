//! What goes out: the answer to a report.

use super::decide::is_dangerous;
use super::{Report, suggest_command};
use backstop_core::{Action, Fault, Outcome, Reason, RunId, SafeText, Severity, Timestamp, Verdict};
use backstop_notify::{About, Message};
use backstop_report::{Alert, JSON_SCHEMA, TaskError, TaskFollowUp, alert, task_error};
use backstop_runtime::admission::UNTIL_UNFROZEN;
use serde_json::{Value, json};

/// The hook's name, as the seed has it.
pub(super) const HOOK: &str = "on-error";

/// The answer to a report.
#[derive(Debug)]
pub struct Answer<'a> {
    /// What was reported.
    pub report: &'a Report,
    /// What it is.
    pub fault: &'a Fault,
    /// What to do about it.
    pub verdict: &'a Verdict,
    /// Which attempt failed.
    pub attempt: u32,
    /// The run that recorded it, where it was recorded.
    pub run: Option<RunId>,
    /// Whether a person is told, or will be.
    pub notified: bool,
}

/// What becomes of a partial result: `keep` it for the next attempt or for a person, `use` it, or
/// there is `none`.
fn partial_handling(report: &Report, fault: &Fault, action: &Action) -> &'static str {
    match (&report.partial, action) {
        (None, _) => "none",
        (Some(_), Action::UsePartial) if !is_dangerous(fault.reason) => "use",
        (Some(_), _) => "keep",
    }
}

impl Answer<'_> {
    fn action(&self) -> &Action {
        &self.verdict.decision.action
    }

    /// The fault as it is shown: where retries are used up, under the reason that it has then. What
    /// needs a confirmation is nobody advised to repeat.
    fn shown_fault(&self) -> Fault {
        let fault = self.fault.clone().renamed(self.verdict.reclassified.unwrap_or(self.fault.reason));
        match self.action() {
            Action::Confirm { .. } => fault.may_have_changed(),
            _ => fault,
        }
    }

    /// Whether the task is tried again as it was. A fallback is another way, which its worker
    /// takes.
    pub fn is_retried(&self) -> bool {
        self.action().goes_on() && !matches!(self.action(), Action::Fallback { .. })
    }

    /// What the task ended with; nothing while it goes on. A reason that retries did not help
    /// becomes another.
    pub fn ended_with(&self) -> Option<Reason> {
        let reason = self.verdict.reclassified.unwrap_or(self.fault.reason);
        (!self.is_retried()).then_some(reason)
    }

    /// How bad it is: a fault that ends the task is never less than `high` where it was `medium`.
    pub fn severity(&self) -> Severity {
        if self.is_retried() { self.fault.severity } else { self.shown_fault().ending_severity() }
    }

    /// When it is tried again, in seconds; 0 where it is not.
    pub fn retry_after_seconds(&self) -> f64 {
        match self.action() {
            // Milliseconds are all that anybody sleeps for.
            Action::Retry { after, .. } | Action::AwaitGuard { after, .. } => {
                (after.as_secs_f64() * 1000.0).round() / 1000.0
            }
            _ => 0.0,
        }
    }

    /// How many attempts there may be: this one, where it is not tried again.
    pub fn of(&self) -> u32 {
        match self.action() {
            Action::Retry { of, .. } | Action::AwaitGuard { of, .. } => *of,
            _ => self.attempt,
        }
    }

    /// How the report's own run ends. One that is tried again is put aside for as long as that
    /// takes.
    pub fn outcome(&self) -> Outcome {
        match self.action() {
            _ if self.is_retried() => Outcome::Deferred,
            Action::Defer { .. } => Outcome::Deferred,
            Action::UsePartial => Outcome::Partial,
            Action::Confirm { .. } => Outcome::Unconfirmed,
            _ => Outcome::Failed,
        }
    }

    /// What to do next: what the fault suggests, unless somebody has to let the project go on
    /// first.
    fn next(&self) -> SafeText {
        match self.action() {
            Action::Defer { until } if until == UNTIL_UNFROZEN => {
                SafeText::new("the project is frozen: put right why, then `backstop unfreeze --why TEXT`")
            }
            _ => self.shown_fault().suggested_action,
        }
    }

    /// The text for the person who asked, in Markdown.
    pub fn message(&self) -> String {
        let follow_up = match self.action() {
            Action::Retry { after, attempt, of } | Action::AwaitGuard { after, attempt, of, .. } => {
                TaskFollowUp::Retry { after: *after, attempt: *attempt, of: *of }
            }
            Action::Defer { until } => TaskFollowUp::Deferred { until: SafeText::new(until.clone()) },
            _ => TaskFollowUp::Over,
        };
        let message = self.error_message();
        let shown = self.shown_fault();
        task_error(&TaskError {
            task: self.report.shown.clone(),
            step: self.report.step.clone(),
            reason: shown.reason,
            causes: shown.causes(),
            next_steps: shown.next_steps(),
            did_you_mean: suggest_command(&message, &self.report.commands),
            message,
            next: self.next(),
            commands: self.report.commands.clone(),
            docs_url: self.report.docs_url.clone(),
            partial: *self.action() == Action::UsePartial,
            fallback: match self.action() {
                Action::Fallback { to } => Some(SafeText::new(to.clone())),
                _ => None,
            },
            follow_up,
        })
    }

    /// What a person is told who was not there. The sinks' routes say who that is.
    pub fn notice(&self, project: SafeText, at: Timestamp, frozen: Option<SafeText>) -> Message {
        let outcome = if self.is_retried() { "retrying" } else { self.outcome().name() };
        let given = Alert {
            severity: self.severity(),
            outcome,
            operation: self.report.shown.clone(),
            project,
            attempts: self.attempt,
            run: self.run,
            frozen,
            ..Alert::about(&self.shown_fault(), at)
        };
        Message::new(&alert(&given), About::of(&given)).with_markdown(self.message())
    }

    /// What the error said, as it was reported; where it said nothing, its cause.
    fn error_message(&self) -> SafeText {
        match self.report.message.raw().trim().is_empty() {
            true => self.fault.cause.clone().unwrap_or_default(),
            false => self.report.message.clone(),
        }
    }

    /// The answer: the seed's fields, and ours beside them.
    pub fn json(&self) -> Value {
        let (report, fault, action) = (self.report, &self.shown_fault(), self.action());
        let retry = self.is_retried();
        let until = match action {
            Action::Defer { until } => Some(until),
            _ => None,
        };
        let to = match action {
            Action::Fallback { to } => Some(SafeText::new(to.clone())),
            _ => None,
        };
        let fallback = (!retry)
            .then(|| json!({ "action": action.name(), "to": to, "until": until, "next": self.next() }));
        let handling = partial_handling(report, fault, action);
        let partial =
            report.partial.as_ref().map(|_| json!({ "handling": handling, "value": report.partial_kept() }));
        json!({
            "schema": JSON_SCHEMA,
            "hook": HOOK,
            "task_id": report.task,
            "error_classified": true,
            "error_type": fault.class,
            "severity": self.severity(),
            "reason": fault.reason,
            "retry": retry,
            "retry_after_seconds": self.retry_after_seconds(),
            "attempt": self.attempt,
            "user_notified": self.notified,
            "diagnostics_saved": self.run.is_some(),
            "partial_result": partial,
            "fallback": fallback,
            "message": self.message(),
            "why": self.verdict.decision.why,
            "error_info": self.error_info(),
            "run": self.run,
        })
    }

    /// The seed's diagnostics: what the error was, where it came from and how far the task had
    /// come.
    fn error_info(&self) -> Value {
        let (report, fault) = (self.report, &self.shown_fault());
        let exception = fault.facts.exception.as_ref();
        json!({
            "error_type": fault.class,
            "exception_type": report.kind,
            "error_message": self.error_message(),
            "severity": self.severity(),
            "file": exception.and_then(|e| e.file.as_ref()),
            "line": exception.and_then(|e| e.line),
            "function": exception.and_then(|e| e.function.as_ref()),
            "root": exception.and_then(|e| e.root.as_ref()),
            "stack_trace": report.trace_kept(),
            "provider": fault.facts.provider,
            "credential": fault.facts.credential,
            "renewal": fault.facts.renewal,
            "task_state": {
                "current_step": report.step,
                "elapsed_seconds": report.elapsed_seconds,
                "fields": report.fields,
                "fields_omitted": report.fields_omitted,
            },
        })
    }
}
