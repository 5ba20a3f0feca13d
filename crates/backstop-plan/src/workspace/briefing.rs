//! What the worker of a phase is told: its assignment and what failed before; and the phase's
//! commit message.

use super::CONFLICT;
use super::phase_runner::{AttemptDir, PhaseRunner};
use crate::record::fault_message;
use backstop_core::{Delivery, EventKind, Fault, Reason, SafeText};
use backstop_report::{GuidanceContext, fault_guidance};
use backstop_runtime::host::AttemptJob;
use backstop_work::agent::{Assignment, GateToRun, RetryContext, Task, result_file};
use backstop_work::gate::Gate;
use std::path::Path;

/// The longest phase name in a generated commit subject.
const SUBJECT_CHARS_MAX: usize = 150;
/// How much of a failure's details goes into the next attempt's prompt.
const DETAILS_CHARS_MAX: usize = 4000;

impl PhaseRunner<'_> {
    pub(super) fn tasks(&self, node: usize) -> Vec<Task> {
        self.phase(node).tasks.iter().map(|task| Task { text: task.text.clone(), done: task.done }).collect()
    }

    pub(super) fn retry_context(&self, job: &AttemptJob, dir: &AttemptDir<'_>) -> Option<RetryContext> {
        let lost = job.lost.then(interrupted);
        let fault = lost.as_ref().or(job.previous.as_deref())?;
        let phase = self.phase(job.node);
        let gate = self.equipment[job.node].gates.iter().find(|gate| finds(gate, fault.reason));
        let is_open = |(n, _): &(usize, &crate::document::Task)| {
            !job.tasks_done.iter().any(|done| *done as usize == n + 1)
        };
        let remaining =
            phase.tasks.iter().enumerate().filter(is_open).map(|(_, task)| task.text.clone()).collect();
        let guided = GuidanceContext {
            check: gate.map(|gate| SafeText::new(gate.check.shown())),
            fix: gate.and_then(|gate| gate.fix.as_ref()).map(|fix| SafeText::new(fix.shown())),
            found: fault.cause.clone().filter(|_| fault.reason == Reason::VerificationMismatch),
            remaining,
            ..GuidanceContext::default()
        };
        let mut guidance = match job.lost {
            true => "Go on with the task; the last attempt was only cut off.".to_owned(),
            false => fault_guidance(fault, &guided),
        };
        if let Some(previous) = &dir.previous {
            guidance.push_str(&format!(
                " You begin from a clean tree. What the last attempt left is kept as commit {previous}: look at it \
                 with `git show {previous}`, and take over what was right."
            ));
        }
        let details = details(fault, job.output.as_ref().filter(|_| !job.lost));
        Some(RetryContext {
            previous_error_type: fault.reason.code().to_owned(),
            previous_error_message: self.masked(&fault_message(fault)),
            previous_error_details: self.masked(&details),
            tasks_completed: u32::try_from(job.tasks_done.len()).unwrap_or(u32::MAX),
            tasks_total: u32::try_from(phase.tasks.len()).unwrap_or(u32::MAX),
            retry_guidance: self.redactor.redact(&guidance).into_owned(),
        })
    }

    /// What the phases that this one waits for delivered, as their commits say.
    pub(super) fn delivered_before(&self, node: usize) -> Option<SafeText> {
        const NAMED_MAX: usize = 20;
        let on = &self.phase(node).depends_on;
        let events = if on.is_empty() { Vec::new() } else { self.recorder.events() };
        let line = |at: &usize| {
            let phase = self.phase(*at);
            let delivery = events.iter().rev().find_map(|event| match &event.kind {
                EventKind::AttemptFinished { operation, delivery: Some(delivery), .. }
                    if operation.raw() == phase.id.key().as_str() =>
                {
                    Some(delivery)
                }
                _ => None,
            });
            let message = match delivery {
                Some(delivery) => {
                    self.commit_message(*at, delivery).lines().next().unwrap_or_default().to_owned()
                }
                None => "done before this run".to_owned(),
            };
            format!("- phase {} ({}): {message}", phase.id, phase.name.line(SUBJECT_CHARS_MAX))
        };
        let lines: Vec<String> = on.iter().take(NAMED_MAX).map(line).collect();
        (!lines.is_empty()).then(|| {
            SafeText::new(format!("What the phases that this one waits for delivered:\n{}", lines.join("\n")))
        })
    }

    pub(super) fn masked(&self, text: &SafeText) -> SafeText {
        SafeText::new(self.redactor.redact(text.raw()).into_owned())
    }

    pub(super) fn assignment(
        &self,
        job: &AttemptJob,
        retry: Option<RetryContext>,
        scratch: &Path,
    ) -> Assignment {
        let phase = self.phase(job.node);
        let sibling = |node: &usize| {
            let other = self.phase(*node);
            SafeText::new(format!("{} {}", other.id.shown(), other.name.raw()))
        };
        let gate = |gate: &Gate| GateToRun {
            name: gate.name.clone(),
            check: SafeText::new(gate.check.shown()),
            fix: gate.fix.as_ref().map(|fix| SafeText::new(fix.shown())),
        };
        Assignment {
            phase_id: phase.id.shown().to_owned(),
            phase_key: self.key(job.node).to_owned(),
            phase_name: phase.name.clone(),
            plan: self.plan_path.clone(),
            section: phase.section.clone(),
            tasks: self.tasks(job.node),
            gates: self.equipment[job.node].gates.iter().map(gate).collect(),
            siblings: job.beside.iter().map(sibling).collect(),
            files: phase.settings.files.iter().map(|file| SafeText::new(file.clone())).collect(),
            attempt: job.chance,
            of: job.of,
            retry,
            conflict: conflict(job).map(|lines| self.masked(&lines)),
            context: None,
            result_file: SafeText::new(result_file(scratch).to_string_lossy()),
        }
    }

    /// The commit message of a phase: the delivered one, else one made of its id and name. Secrets
    /// in it are masked: commits are pushed.
    pub(super) fn commit_message(&self, node: usize, delivery: &Delivery) -> String {
        let message = match &delivery.message {
            // Terminals show commit messages: escape sequences are taken out.
            Some(message) if !message.raw().trim().is_empty() => {
                SafeText::new(message.raw().trim()).terminal()
            }
            _ => {
                let phase = self.phase(node);
                format!("Phase {}: {}", phase.id.shown(), phase.name.line(SUBJECT_CHARS_MAX))
            }
        };
        self.redactor.redact(&message).into_owned()
    }
}

/// What the next attempt is told of one of which nobody knows how it ended.
fn interrupted() -> Fault {
    let mut fault = Fault::new(Reason::Interrupted);
    fault.cause = Some("the last attempt was interrupted before it ended".into());
    fault
}

/// The conflicting lines, where the last attempt ended in a conflict.
pub(super) fn conflict(job: &AttemptJob) -> Option<SafeText> {
    let evidence = &job.previous.as_ref()?.evidence;
    evidence.iter().find(|evidence| evidence.rule == CONFLICT).map(|evidence| evidence.text.clone())
}

/// Whether failures with this reason are found by this gate.
fn finds(gate: &Gate, reason: Reason) -> bool {
    use backstop_work::gate::GateKind;
    matches!(
        (gate.kind(), reason),
        (GateKind::Lint, Reason::LintError)
            | (GateKind::Format, Reason::FormatError)
            | (GateKind::Typecheck, Reason::TypecheckError | Reason::CompileError)
            | (GateKind::Test, Reason::TestFailure | Reason::FlakyTest)
    )
}

/// The details of a failure: failed tests, files, rules, evidence and the end of the output.
fn details(fault: &Fault, output: Option<&SafeText>) -> SafeText {
    let mut lines = Vec::new();
    let mut list = |label: &str, names: &[SafeText]| {
        if !names.is_empty() {
            let names: Vec<String> = names.iter().take(20).map(|name| name.line(200)).collect();
            lines.push(format!("{label}: {}", names.join(", ")));
        }
    };
    list("tests", &fault.facts.failed_tests);
    list("files", &fault.facts.files);
    list("rules", &fault.facts.rules);
    for evidence in fault.evidence.iter().take(5) {
        match evidence.rule == CONFLICT {
            true => lines.push(evidence.text.raw().to_owned()),
            false => lines.push(format!("{}: {}", evidence.rule, evidence.text.line(400))),
        }
    }
    if let Some(output) = output {
        lines.push(format!("the end of its output:\n{}", output.raw()));
    }
    let text = lines.join("\n");
    SafeText::new(text.chars().take(DETAILS_CHARS_MAX).collect::<String>())
}
