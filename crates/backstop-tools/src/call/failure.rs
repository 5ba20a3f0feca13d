//! A call that failed: what happened, with which parameters, and what to do.

use super::attempt::Last;
use super::{CallRequest, key_params};
use crate::arguments::params as as_params;
use crate::jsonrpc::{Raw, RpcError};
use crate::toolbox::Toolbox;
use backstop_core::{Action, Decision, Fault, Outcome, Reason, RunId, SafeText};
use backstop_engine::Ending;
use backstop_report::{
    ExecutionFailure, InvalidParameters, Notice, Style, ToolError, ToolNotFound, ToolTimeout,
    execution_failure, failure_report, failure_suggestion, generic_error, invalid_parameters, tool_advice,
    tool_not_found, tool_timeout,
};
use serde_json::{Value, json};
use std::time::Duration;

/// What a failure is made of.
pub(super) struct FailureParts {
    pub(super) tool: String,
    pub(super) params: Vec<(SafeText, SafeText)>,
    pub(super) ending: Ending,
    pub(super) faults: Vec<Fault>,
    pub(super) attempts: u32,
    pub(super) elapsed: Duration,
    pub(super) run: Option<RunId>,
    pub(super) confirm: Option<String>,
    /// How often in a row calls of this tool had failed before.
    pub(super) earlier: u32,
}

/// A call that failed.
#[derive(Debug)]
pub struct CallFailure {
    /// The tool, as callers name it.
    pub tool: String,
    /// The parameters of the call.
    pub params: Vec<(SafeText, SafeText)>,
    /// The last fault.
    pub fault: Fault,
    /// How it ended.
    pub outcome: Outcome,
    /// The last decision.
    pub decision: Decision,
    /// The message of each attempt.
    pub errors: Vec<SafeText>,
    /// How many attempts were made.
    pub attempts: u32,
    /// How long it took in all.
    pub elapsed: Duration,
    /// What arrived before it was cut off.
    pub partial: Option<SafeText>,
    /// The run, where it was recorded.
    pub run: Option<RunId>,
    /// The command that repeats it, where that needs somebody's word.
    pub confirm: Option<String>,
    /// What to do, in one line.
    pub suggestion: SafeText,
    notice: Notice,
    pub(crate) answer: Option<Result<Raw, RpcError>>,
}

impl CallFailure {
    pub(super) fn new(toolbox: &Toolbox, parts: FailureParts, last: Last) -> Self {
        let FailureParts { tool, params, ending, faults, attempts, elapsed, run, confirm, earlier } = parts;
        let masked = |text: &str| SafeText::new(toolbox.project.redactor.redact(text).into_owned());
        let params: Vec<(SafeText, SafeText)> = params
            .into_iter()
            .map(|(name, value)| (masked(name.raw()), masked_param(toolbox, &name, &value)))
            .collect();
        let partial = last.partial.summary().map(|text| masked(&text));
        let message =
            |fault: &Fault| fault.cause.clone().unwrap_or_else(|| SafeText::new(fault.reason.code()));
        let mut errors: Vec<SafeText> = faults.iter().map(message).collect();
        if errors.is_empty() {
            errors.push(message(&ending.fault));
        }
        let category = last.tool.as_ref().and_then(|tool| tool.category()).map(SafeText::new);
        let name = SafeText::new(tool.as_str());
        let known = Known {
            name: &name,
            params: &params,
            category: category.as_ref(),
            last: &last,
            partial: partial.as_ref(),
        };
        let unconfirmed = ending.outcome == Outcome::Unconfirmed;
        let repetition = Repetition { unconfirmed, confirm: confirm.as_deref().map(SafeText::new) };
        let notice = known.notice(&ending.fault, attempts, earlier, repetition);
        let advice = tool_advice(
            &name,
            category.as_ref(),
            ending.fault.reason,
            &message(&ending.fault),
            attempts.saturating_add(earlier),
        );
        let suggestion = match (&confirm, advice) {
            (Some(command), _) => {
                SafeText::new(format!("check whether it took effect; `{command}` repeats it"))
            }
            (None, _) if unconfirmed => {
                SafeText::new("check whether it took effect before it is called again")
            }
            (None, Some(advice)) => SafeText::new(advice.next),
            (None, None) if ending.fault.reason == Reason::ToolNotFound => SafeText::new(notice.next()),
            (None, None) => failure_suggestion(&ending.fault),
        };
        Self {
            tool,
            fault: ending.fault,
            outcome: ending.outcome,
            decision: ending.decision,
            errors,
            attempts,
            elapsed,
            partial,
            run,
            confirm,
            suggestion,
            notice,
            params,
            answer: last.answer,
        }
    }

    /// A call that could not even begin.
    pub(super) fn before(toolbox: &Toolbox, request: &CallRequest, reason: Reason, cause: &str) -> Self {
        let mut fault = Fault::new(reason);
        fault.cause = Some(SafeText::new(cause));
        Self::of_fault(toolbox, request, fault)
    }

    /// A call that is not made, or not made again, because of this.
    pub(crate) fn of_fault(toolbox: &Toolbox, request: &CallRequest, fault: Fault) -> Self {
        let why = "it could not begin".to_owned();
        let ending =
            Ending { outcome: Outcome::Failed, fault, decision: Decision { action: Action::Surface, why } };
        let parts = FailureParts {
            tool: request.name(),
            params: key_params(&request.arguments),
            ending,
            faults: Vec::new(),
            attempts: 0,
            elapsed: Duration::ZERO,
            run: None,
            confirm: None,
            earlier: 0,
        };
        Self::new(toolbox, parts, Last::default())
    }

    /// The text for people and agents.
    pub fn text(&self) -> String {
        self.notice.terminal(Style::PLAIN)
    }

    /// The text for a terminal.
    pub fn terminal(&self, style: Style) -> String {
        self.notice.terminal(style)
    }

    /// The report for programs: `tool`, `attempts`, `errors`, `suggestion`, and what else is known.
    pub fn report(&self) -> Value {
        let mut report = failure_report(&SafeText::new(self.tool.as_str()), &self.errors, &self.suggestion);
        report["attempts"] = self.attempts.into();
        report["reason"] = self.fault.reason.code().into();
        report["class"] = json!(self.fault.class);
        report["retryable"] = self.fault.retryable.into();
        report["outcome"] = self.outcome.name().into();
        report["params"] = self
            .params
            .iter()
            .map(|(name, value)| (name.raw().to_owned(), Value::from(value.raw())))
            .collect::<serde_json::Map<String, Value>>()
            .into();
        report["next"] = self.notice.next().into();
        report["duration_ms"] = u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX).into();
        report["run"] = json!(self.run);
        report["confirm"] = json!(self.confirm);
        report["partial"] = json!(self.partial);
        report["notice"] = self.notice.json();
        report
    }
}

/// Whether a call may be repeated by itself.
struct Repetition {
    /// It may have taken effect.
    unconfirmed: bool,
    /// The command that repeats it.
    confirm: Option<SafeText>,
}

/// What is known of a call that failed.
struct Known<'k> {
    name: &'k SafeText,
    params: &'k [(SafeText, SafeText)],
    category: Option<&'k SafeText>,
    last: &'k Last,
    partial: Option<&'k SafeText>,
}

impl Known<'_> {
    /// The seed's order: the id, a timeout, a known error, the parameters, then anything else.
    fn notice(&self, fault: &Fault, attempts: u32, earlier: u32, repetition: Repetition) -> Notice {
        let message = fault.cause.clone().unwrap_or_else(|| SafeText::new(fault.reason.info().remedy));
        let (tool, params) = (self.name.clone(), self.params.to_vec());
        let Repetition { unconfirmed, confirm } = repetition;
        match fault.reason {
            Reason::ToolNotFound => {
                let suggestions = self.last.suggestions.clone().unwrap_or_default();
                let texts =
                    |names: &[String]| names.iter().map(|name| SafeText::new(name.as_str())).collect();
                tool_not_found(&ToolNotFound {
                    tool,
                    params,
                    nearest: texts(&suggestions.nearest),
                    prefixes: texts(&suggestions.prefixes),
                    message: Some(message).filter(|text| !text.raw().starts_with("Tool not found")),
                    next: self.last.next.clone(),
                })
            }
            Reason::Timeout if self.last.timed_out.is_some() => tool_timeout(&ToolTimeout {
                tool,
                params,
                after: self.last.timed_out.unwrap_or_default(),
                partial: self.partial.cloned(),
                not_sent: self.last.not_sent,
                may_have_taken_effect: unconfirmed,
                confirm,
                next: own_next(fault),
            }),
            Reason::InvalidParameters => {
                let mismatch = self.last.mismatch.clone().unwrap_or_default();
                let texts = |names: &std::collections::BTreeSet<String>| {
                    names.iter().map(|name| SafeText::new(name.as_str())).collect()
                };
                let mistyped: Vec<(String, String)> = mismatch.mistyped.iter().cloned().collect();
                let is_named = mismatch.missing.is_empty()
                    && mismatch.mistyped.is_empty()
                    && mismatch.unknown.is_empty();
                invalid_parameters(&InvalidParameters {
                    tool,
                    params,
                    missing: texts(&mismatch.missing),
                    mistyped: as_params(&mistyped),
                    unknown: texts(&mismatch.unknown),
                    expected: mismatch.expected_params(),
                    message: is_named.then_some(message),
                })
            }
            Reason::Unknown if !unconfirmed => generic_error(&ToolError {
                reason: fault.reason,
                message,
                tool,
                category: self.category.cloned(),
                params,
                next: None,
            }),
            reason => execution_failure(&ExecutionFailure {
                reason,
                message,
                tool,
                category: self.category.cloned(),
                params,
                attempts,
                earlier,
                may_have_taken_effect: unconfirmed,
                confirm,
                next: own_next(fault),
            }),
        }
    }
}

/// The next step that belongs to a fault itself: which credential, which program, which wait.
fn own_next(fault: &Fault) -> Option<SafeText> {
    let own = matches!(
        fault.reason,
        Reason::AuthError
            | Reason::PermissionDenied
            | Reason::DependencyMissing
            | Reason::InvalidUsage
            | Reason::RateLimited
            | Reason::QuotaExhausted
            | Reason::BudgetExhausted
            | Reason::StuckDetected
            | Reason::Crash
            | Reason::Timeout
    );
    (own && !fault.suggested_action.is_empty()).then(|| fault.suggested_action.clone())
}

/// A parameter as it is shown: the value of one whose name says that it is a secret is not.
fn masked_param(toolbox: &Toolbox, name: &SafeText, value: &SafeText) -> SafeText {
    let redactor = &toolbox.project.redactor;
    let pair = format!("{}={}", name.raw(), value.raw());
    let masked = redactor.redact(&pair);
    match masked.strip_prefix(&format!("{}=", name.raw())) {
        Some(value) => SafeText::new(value),
        None => SafeText::new(backstop_core::MASK),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::ImportPlaces;
    use backstop_config::Surroundings;
    use backstop_core::{Timestamp, Zone};
    use backstop_runtime::{Place, Process, Project, process};
    use proptest::prelude::*;
    use std::sync::Arc;

    fn toolbox(folder: &std::path::Path) -> Toolbox {
        let process = Process {
            now: || Timestamp::from_millis(0),
            boot_time: || None,
            pass_time: None,
            random: || 4,
            id: process::current(),
            is_alive: process::is_alive,
            variable: |_| None,
            caller: None,
            session: None,
            parent: None,
            deadline: None,
            disabled: false,
            cwd: folder.to_owned(),
            temp_dir: folder.to_owned(),
            zone: Zone::utc,
            program: None,
            commit_hook: None,
            output: Arc::new(()),
        };
        let surroundings = Surroundings {
            cwd: folder.to_owned(),
            home: None,
            xdg_config_home: None,
            env: &|_| None,
            users: Vec::new(),
            state_root: Some(folder.join("state")),
        };
        let place = Place { surroundings, variables: Vec::new() };
        let project = Project::open(&place, &[], process).unwrap();
        Toolbox::open(Arc::new(project), &ImportPlaces::default()).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// The seed's checklist, over the surface itself: class, summary, tool, key parameters, a
        /// next step, and no repetition that nobody confirmed.
        #[test]
        fn every_failure_says_what_it_is_and_what_to_do(
            tool in "[a-z]{3,9}__[a-z]{3,9}", message in "[a-z]{4,20}", value in "[a-z]{4,12}", confirm in any::<bool>(),
            unconfirmed in any::<bool>(), timed_out in any::<bool>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let toolbox = toolbox(folder.path());
            for reason in Reason::all() {
                let mut fault = Fault::new(reason);
                fault.cause = Some(SafeText::new(message.as_str()));
                let decision = Decision { action: Action::Surface, why: String::new() };
                // Where the store is broken, a call that may have taken effect cannot be put aside.
                let outcome = if unconfirmed { Outcome::Unconfirmed } else { Outcome::Failed };
                let ending = Ending { outcome, fault: fault.clone(), decision };
                let command = (confirm && unconfirmed).then(|| "backstop call --confirm r-1234".to_owned());
                let parts = FailureParts {
                    tool: tool.clone(),
                    params: vec![(SafeText::new("name"), SafeText::new(value.as_str()))],
                    ending,
                    faults: vec![fault],
                    attempts: 1,
                    elapsed: Duration::from_millis(5),
                    run: None,
                    confirm: command.clone(),
                    earlier: 0,
                };
                let timed_out = timed_out.then_some(Duration::from_millis(5));
                let failure = CallFailure::new(&toolbox, parts, Last { timed_out, ..Last::default() });
                let (text, report) = (failure.text(), failure.report());
                for part in [reason.code(), reason.class().name(), tool.as_str(), value.as_str()] {
                    prop_assert!(text.contains(part), "{reason}: {part}\n{text}");
                }
                prop_assert!(text.contains("Next: ") && !report["next"].as_str().unwrap_or_default().is_empty(), "{text}");
                prop_assert!(!report["suggestion"].as_str().unwrap_or_default().is_empty());
                let error = format!("Attempt 1: {message}");
                prop_assert_eq!(report["errors"][0].as_str(), Some(error.as_str()));
                // What may not be repeated by itself names the command, and nothing says to repeat
                // it.
                if matches!(reason, Reason::ToolNotFound | Reason::InvalidParameters) {
                    continue;
                }
                if let Some(command) = &command {
                    prop_assert!(text.contains(command.as_str()), "{reason}\n{text}");
                }
                if unconfirmed {
                    let words = format!("{text}{}", report["suggestion"]).to_lowercase();
                    for repeats in ["same input", "try again", "then retry", "run it again", "repeat it with"] {
                        prop_assert!(!words.contains(repeats), "{reason}: {repeats}\n{text}");
                    }
                    prop_assert!(words.contains("took effect") || words.contains("taken effect"), "{text}");
                }
            }
        }
    }
}
