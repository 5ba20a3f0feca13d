//! What an attempt comes to: the table of the module's documentation, row by row.

use super::assignment::Task;
use super::dialect::{AgentOutput, Failure, Report};
use super::envelope::Envelope;
use super::own_retries::EndedFor;
use super::question::asked;
use super::trouble::ResultTrouble;
use crate::Claim;
use backstop_classify::{Classifier, is_account_limit};
use backstop_core::{
    Evidence, Fault, Reason, SafeText, Signal, Surface, Timestamp, duration, from_seed_name,
};
use backstop_exec::{Cause, Ended};
use serde_json::{Value, json};
use std::time::Duration;

/// How much of a text becomes a cause.
const CAUSE_CHARS_MAX: usize = 300;
/// How long ago a limit may have ended that is taken to end now: clocks differ.
const JUST_ENDED_MAX: Duration = Duration::from_secs(600);
/// How many open tasks are named.
const NAMED_MAX: usize = 10;
/// How much of a task's text is named.
const TASK_CHARS_MAX: usize = 80;

/// Everything that is known about an attempt that is over.
pub(super) struct Case<'a> {
    pub(super) classifier: &'a Classifier,
    pub(super) at: Timestamp,
    /// The command line, as it is shown.
    pub(super) command: &'a str,
    pub(super) provider: Option<&'a str>,
    pub(super) ended: &'a Ended,
    pub(super) output: &'a AgentOutput,
    pub(super) envelope: Option<&'a Envelope>,
    pub(super) trouble: Option<&'a ResultTrouble>,
    pub(super) tasks: &'a [Task],
    /// The question for which it was ended.
    pub(super) question: Option<Fault>,
    /// The last lines that it wrote, without events.
    pub(super) last_lines: String,
    /// The request of its model that failed last, where it has done nothing since but wait to
    /// repeat it.
    pub(super) own_retry: Option<Failure>,
    /// The failed request for which it was ended: it repeated it, or waited for that.
    pub(super) ended_for: Option<EndedFor>,
    /// What its own exit codes mean.
    pub(super) exit_codes: &'static [(i32, Reason)],
}

impl Case<'_> {
    /// The fault, where there is one.
    pub(super) fn fault(&self) -> Option<Fault> {
        // One that was done before it could be ended has used what it used.
        let counts =
            |fault: &&Fault| fault.reason != Reason::RateLimited || self.ended.cause == Cause::Stopped;
        if let Some(question) = self.question.as_ref().filter(counts) {
            let mut fault = question.clone();
            let left = fault.facts.resets_at.map(|at| at.since(self.at)).filter(|left| !left.is_zero());
            fault.facts.retry_after_seconds = left.map(|left| left.as_secs_f64());
            return Some(fault);
        }
        if let Some(ended_for) = self.ended_for.as_ref().filter(|_| self.ended.cause == Cause::Stopped) {
            return Some(self.ended_for(ended_for));
        }
        if self.ended.cause == Cause::Stopped {
            return self.ended.fault(self.classifier, self.command, self.at);
        }
        let own = self.envelope.filter(|_| self.ended_by_itself());
        if let Some(fault) = own.and_then(|envelope| self.named_failure(envelope)) {
            return Some(fault);
        }
        if let Some(fault) = self.process_fault() {
            let claims_failure = own.filter(|envelope| envelope.status == Claim::Failed);
            return match claims_failure {
                Some(envelope) if fault.reason == Reason::Unknown => self.claimed(envelope),
                _ => Some(fault),
            };
        }
        if let Some(trouble) = self.trouble {
            let mut fault = with_cause(Reason::ParseError, trouble.to_string());
            fault.suggested_action = SafeText::new(trouble.hint());
            return Some(fault);
        }
        self.envelope.and_then(|envelope| self.claimed(envelope))
    }

    /// Whether it says that everything is done, and how it ended says otherwise.
    pub(super) fn is_contradicted(&self) -> bool {
        self.ended_by_itself()
            && self.envelope.is_some_and(|envelope| envelope.status == Claim::Complete)
            && self.process_fault().is_some()
    }

    /// Whether nobody ended it.
    fn ended_by_itself(&self) -> bool {
        self.ended.cause == Cause::Itself && self.ended.status.code.is_some()
    }

    /// What its dialect and its exit status say, without what it claims.
    fn process_fault(&self) -> Option<Fault> {
        if let Report::Failed(failure) = &self.output.report {
            return Some(self.reported(failure));
        }
        if self.outvoted() {
            return None;
        }
        // A guess from its words is worth less than its own report.
        let fault = self.ended.fault(self.classifier, self.command, self.at)?.without_guess();
        if let Some(fault) = self.waited_itself() {
            return Some(fault);
        }
        let own = self.exit_codes.iter().find(|(code, _)| self.ended.status.code == Some(*code));
        if let Some((_, reason)) = own.filter(|_| self.ended_by_itself() && fault.reason == Reason::Unknown) {
            return Some(fault.renamed(*reason));
        }
        // One that cannot ask ends with its question.
        let is_vague =
            matches!(fault.reason, Reason::Unknown | Reason::InvalidUsage | Reason::PermissionDenied);
        let question = is_vague.then(|| asked(&self.last_lines)).flatten();
        Some(question.unwrap_or(fault))
    }

    /// What it waited for by itself, in silence, until our clock ended it.
    fn waited_itself(&self) -> Option<Fault> {
        let failure = self.own_retry.as_ref().filter(|_| self.ended.cause != Cause::Itself)?;
        Some(self.reported(failure)).filter(|fault| fault.reason != Reason::Unknown)
    }

    /// What it repeated, or waited to repeat, until it was ended for it.
    fn ended_for(&self, EndedFor { failure, rule, words }: &EndedFor) -> Fault {
        let mut fault = self.reported(failure);
        let (rule, text) = ((*rule).to_owned(), SafeText::new(*words));
        fault.evidence.push(Evidence { rule, line: None, text, stream: None });
        fault
    }

    /// Whether two signals say that it worked, and only the exit code says otherwise.
    fn outvoted(&self) -> bool {
        self.ended_by_itself()
            && self.output.report == Report::Succeeded
            && self.envelope.is_some_and(|envelope| envelope.status == Claim::Complete)
    }

    /// What the agent's own report of a failure means. What the provider answered is read as that;
    /// all else is what a command printed. What one reading does not recognise, the other may.
    fn reported(&self, failure: &Failure) -> Fault {
        let answer = || self.classifier.classify(&self.answer(failure));
        let printed = || self.classifier.classify(&self.printed(failure));
        let known = |fault: &Fault| fault.reason != Reason::Unknown;
        let fault = if failure.status.is_some() || failure.is_answer {
            answer().filter(known).or_else(printed)
        } else {
            printed().filter(known).or_else(answer)
        };
        let mut fault = fault.unwrap_or_else(|| Fault::new(Reason::Unknown));
        if failure.fields["subtype"] == "error_max_structured_output_retries" {
            fault = Fault::new(Reason::ParseError);
        }
        if let Some(reason) = failure.reason {
            fault = fault.renamed(reason);
        }
        let words = SafeText::new(failure.text.as_str()).line(CAUSE_CHARS_MAX);
        let subtype = failure.fields["subtype"].as_str().unwrap_or("it failed and did not say why");
        fault.cause = Some(SafeText::new(if words.is_empty() { subtype.to_owned() } else { words }));
        fault.facts.provider = fault.facts.provider.or_else(|| self.provider.map(SafeText::new));
        // What an agent reports of itself is what its provider's client says.
        fault.facts.from_client |= self.provider.is_some();
        if let Some(at) = failure.resets_at {
            let at = Timestamp::from_millis(at.saturating_mul(1000));
            let wait = at.since(self.at);
            // The agent's own field beats what its sentence says. What ended a moment ago ends now.
            if !wait.is_zero() || self.at.since(at) <= JUST_ENDED_MAX {
                fault.facts.retry_after_seconds =
                    Some(wait).filter(|wait| !wait.is_zero()).map(|wait| wait.as_secs_f64());
                fault.facts.resets_at = Some(self.at.after(wait));
                fault.facts.wait_in_words = false;
            }
        }
        if fault.reason == Reason::RateLimited {
            fault.facts.window = failure.window.or(fault.facts.window);
            // Where the window of a model is all that there is, it is called that of the account.
            let of_field = failure.model.filter(|_| !is_account_limit(&failure.text));
            fault.facts.model = of_field.map(SafeText::new).or(fault.facts.model);
        }
        if self.ended.timed_out() {
            let ran = duration::shown(self.ended.duration);
            let text = SafeText::new(format!("it hung then; our clock ended it after {ran}"));
            fault.evidence.push(Evidence { rule: "agent.hung".to_owned(), line: None, text, stream: None });
        }
        fault
    }

    fn answer(&self, failure: &Failure) -> Signal {
        let body = json!({"error": {"message": failure.text}, "terminal_reason": failure.fields["terminal_reason"], "name": failure.fields.pointer("/error/name").unwrap_or(&Value::Null)});
        Signal {
            surface: Surface::Response,
            dispatch: self.ended.dispatch(),
            status: failure.status,
            provider: self.provider.map(str::to_owned),
            at: Some(self.at),
            stdout: body.to_string().into_bytes(),
            ..Signal::default()
        }
    }

    fn printed(&self, failure: &Failure) -> Signal {
        // It failed, whatever its exit code says.
        let exit = self.ended.status.code.filter(|code| *code != 0).unwrap_or(1);
        Signal {
            command: Some(self.command.to_owned()),
            exit: Some(i64::from(exit)),
            dispatch: self.ended.dispatch(),
            at: Some(self.at),
            stdout: format!("{}\n{}\n", failure.text, failure.fields).into_bytes(),
            ..Signal::default()
        }
    }

    fn claimed(&self, envelope: &Envelope) -> Option<Fault> {
        if envelope.status == Claim::Complete {
            return self.open_tasks(envelope);
        }
        let error = envelope.error.as_ref();
        let named = named_reason(envelope);
        let words = error.and_then(|e| e.message.as_ref().or(e.details.as_ref()).or(e.kind.as_ref()));
        let words = words
            .map_or_else(|| "it says that it failed, and not why".to_owned(), |w| w.line(CAUSE_CHARS_MAX));
        Some(with_cause(named.unwrap_or(Reason::TaskIncomplete), words))
    }

    /// The failure that it claims, where it says what kind it is.
    fn named_failure(&self, envelope: &Envelope) -> Option<Fault> {
        let is_named = envelope.status == Claim::Failed && named_reason(envelope).is_some();
        is_named.then(|| self.claimed(envelope)).flatten()
    }

    /// Tasks that a claim of completeness leaves open, by number and text.
    fn open_tasks(&self, envelope: &Envelope) -> Option<Fault> {
        let total = envelope.tasks_total.map_or(self.tasks.len(), |n| n as usize);
        let counted = envelope.tasks_completed.map(|n| n as usize);
        let ticked = |n: usize| self.tasks.get(n - 1).is_some_and(|task| task.done);
        let (open, before): (Vec<usize>, usize) = match &envelope.tasks_done {
            Some(done) => {
                let all = 1..=total.max(self.tasks.len());
                let open = all.clone().filter(|n| done.binary_search(n).is_err() && !ticked(*n)).collect();
                // Whoever lists what it did may count without what was done before.
                (open, all.filter(|n| done.binary_search(n).is_err() && ticked(*n)).count())
            }
            None => (Vec::new(), 0),
        };
        let short = counted.is_some_and(|done| done + before < total);
        if open.is_empty() && !short {
            return None;
        }
        let mut cause = match counted.filter(|_| short) {
            Some(done) => format!("it claims to be complete with {done} of {total} tasks done"),
            None => "it claims to be complete and leaves tasks open".to_owned(),
        };
        let name = |n: &usize| match self.tasks.get(n - 1) {
            Some(task) => format!("{n} ({})", task.text.line(TASK_CHARS_MAX)),
            None => n.to_string(),
        };
        if !open.is_empty() {
            let names: Vec<String> = open.iter().take(NAMED_MAX).map(name).collect();
            cause.push_str(&format!("; not done: {}", names.join(", ")));
        }
        if open.len() > NAMED_MAX {
            cause.push_str(&format!(" and {} more", open.len() - NAMED_MAX));
        }
        Some(with_cause(Reason::TaskIncomplete, cause))
    }
}

/// The reason that `error.type` names.
fn named_reason(envelope: &Envelope) -> Option<Reason> {
    let kind = envelope.error.as_ref()?.kind.as_ref()?;
    from_seed_name(kind.raw()).filter(|reason| *reason != Reason::Unknown)
}

fn with_cause(reason: Reason, cause: String) -> Fault {
    let mut fault = Fault::new(reason);
    fault.cause = Some(SafeText::new(cause));
    fault
}

#[cfg(test)]
mod tests;
