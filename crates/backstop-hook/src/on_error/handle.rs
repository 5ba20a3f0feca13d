//! One report in, one answer out: counted, decided, recorded, and what follows from it.

use super::{Answer, Case, Refusal, Report, WINDOW, classify, counted_together, decide};
use crate::record;
use crate::surroundings::{HookError, Surroundings};
use backstop_core::{Action, Decision, EventKind, Fault, Outcome, RunId, SafeText, Severity, Verdict};
use backstop_runtime::aftermath::{self, Failures};
use backstop_runtime::process::unit;
use backstop_runtime::{Project, ProjectError, Recorder, machine_state};
use backstop_store::{DeferredWork, TaskRecord, TaskStatus};
use serde_json::Value;
use std::sync::Arc;

/// Answers a report. Whatever happens, there is one JSON object: an answer, or what is wrong with
/// the report.
pub fn handle(bytes: &[u8], around: &Surroundings<'_>) -> Result<Value, Box<(Value, HookError)>> {
    answer(bytes, around).map_err(|error| {
        let refusal = match &error {
            HookError::Input(error) => Refusal::from(error),
            other => Refusal {
                place: match other {
                    HookError::Project(ProjectError::Config(_)) => "configuration",
                    _ => "backstop",
                }
                .to_owned(),
                message: other.to_string(),
                hint: other.hints().into_iter().next().unwrap_or_default(),
            },
        };
        Box::new((refusal.json(), error))
    })
}

fn answer(bytes: &[u8], around: &Surroundings<'_>) -> Result<Value, HookError> {
    let project = Arc::new((around.open)()?);
    let process = &project.process;
    let report = Report::read(bytes, &project.redactor)?;
    let policy = project.config.policy("task").map_err(ProjectError::from)?;
    let classifier =
        || project.classifier_or_builtin(|error| warn(&project, "rule packs are not used", error));
    let mut fault = classify(&report, &classifier, process.now());
    let deferred = project.journal().ok().and_then(|journal| journal.deferred_count().ok());
    machine_state::observe(&project, deferred, &mut fault);
    let fault = fault;
    let is_frozen = project.frozen().is_some();
    let (key, random) = (project.key(), (process.random)());
    let expected = RunId::from_random(random, 4);
    let decided = |attempt: u32, unrepeatable: Option<&str>| {
        let case = Case {
            fault: &fault,
            attempt,
            random: unit(random),
            unrepeatable,
            has_partial: report.partial.is_some(),
            fallback: report.fallback().map(SafeText::raw),
            disabled: process.disabled,
            frozen: is_frozen,
        };
        let mut verdict = decide(policy.clone(), &case);
        if let Action::Defer { until } = &mut verdict.decision.action {
            *until = aftermath::deferred::stored_until(until, &fault, process.now());
        }
        verdict
    };
    // Counted, decided and kept in one go: of many reports at once each is an attempt of its own.
    let mut verdict = None;
    let counted = counted_together(fault.reason);
    let store = project.ask_hooks(|store| {
        store.note_failure(key.as_str(), &report.task, fault.reason, &counted, WINDOW, &mut |attempt| {
            let verdict = verdict.insert(decided(attempt, None));
            task_record(&project, &answered(&report, &fault, verdict, attempt), expected)
        })
    });
    let (store, attempt, mut verdict) = match (store, verdict) {
        (Ok((store, attempt)), Some(verdict)) => (Some(store), attempt, verdict),
        (store, _) => {
            if let Err(error) = store {
                warn(&project, "attempts are not counted", &error);
            }
            (None, 1, decided(1, Some("attempts cannot be counted, and what is not counted is not repeated")))
        }
    };
    let folder = project.root.display().to_string();
    let mut events = answered(&report, &fault, &verdict, attempt).events(Some(&folder));
    if let Some(EventKind::RunStarted { parent, .. }) = events.first_mut() {
        *parent = process.parent;
    }
    let is_classified = |event: &EventKind| matches!(event, EventKind::ErrorClassified { .. });
    let rest = events.split_off(events.iter().position(is_classified).map_or(0, |at| at + 1));
    let recorded = record::begin(&project, None, "task", Some(random)).and_then(|recorder| {
        recorder.append(events)?;
        Ok(recorder)
    });
    let recorder = recorded.map_err(|error| warn(&project, "this report is not recorded", &error)).ok();
    // What failed is on record: now the limits that others share may change. What is decided comes
    // after that. What cannot be recorded still concerns everybody who shares a limit.
    let mut ending = record::guard_events(&project, None, &fault);
    ending.extend(rest);
    let recorder = recorder.and_then(|recorder| match recorder.end(ending) {
        Ok(_) => Some(recorder),
        Err(error) => {
            warn(&project, "this report is not recorded", &error.into());
            None
        }
    });
    let put_aside = put_aside(&project, recorder.as_ref(), deferred, &report, &fault, &verdict);
    if matches!(verdict.decision.action, Action::Defer { .. }) && put_aside.is_none() {
        verdict = not_put_aside(verdict, report.partial.is_some());
    }
    let mut follows = Vec::from_iter(put_aside);
    let mut answer = answered(&report, &fault, &verdict, attempt);
    answer.run = recorder.as_ref().map(Recorder::run);
    let failures = Failures { faults: vec![&fault], ended_with: answer.ended_with(), run: answer.run };
    // What happens inside a run is an attempt of that one, which tells of itself.
    let is_told = process.parent.is_none() || fault.severity == Severity::Critical;
    let told = aftermath::freeze_and_notify(&project, &failures, |frozen| {
        is_told.then(|| answer.notice(SafeText::new(folder.clone()), process.now(), frozen))
    });
    answer.notified = told.iter().any(|kind| matches!(kind, EventKind::Notified { .. }));
    follows.extend(told);
    if let Some(recorder) = recorder.filter(|_| !follows.is_empty())
        && let Err(error) = recorder.append(follows)
    {
        warn(&project, "what followed is not recorded", &error.into());
    }
    if let Some(store) = store.filter(|_| answer.run != Some(expected))
        && let Err(error) = store.set_task_run(key.as_str(), &report.task, answer.run)
    {
        warn(&project, "the task's status is not kept", &error.into());
    }
    Ok(answer.json())
}

/// Puts a task aside that waits for something; what is recorded of that. One that does not wait any
/// more is forgotten there.
fn put_aside(
    project: &Project,
    recorder: Option<&Recorder>,
    deferred: Option<u32>,
    report: &Report,
    fault: &Fault,
    verdict: &Verdict,
) -> Option<EventKind> {
    let recorder = recorder?;
    let Action::Defer { until } = &verdict.decision.action else {
        // Most often nothing is put aside at all.
        if deferred != Some(0)
            && let Some(journal) = recorder.journal()
        {
            let _ = journal.drop_deferred_task(&report.task);
        }
        return None;
    };
    let work = DeferredWork {
        run: recorder.run(),
        argv: vec![report.task.clone()],
        folder: project.root.display().to_string(),
        reason: fault.reason,
        until: SafeText::new(until.clone()),
        whole: false,
        is_task: true,
        address: machine_state::service_address(fault),
    };
    let put = recorder.journal()?.defer(&work);
    let put = put.map_err(|error| warn(project, "the task is not put aside", &error.into())).ok();
    put.map(|_| EventKind::Deferred { operation: SafeText::new(report.task.clone()), until: until.clone() })
}

/// What could not be put aside has failed.
fn not_put_aside(verdict: Verdict, has_partial: bool) -> Verdict {
    let action = if has_partial { Action::UsePartial } else { Action::Surface };
    let why = format!("{}; it could not be put aside", verdict.decision.why);
    Verdict { decision: Decision { action, why }, ..verdict }
}

/// The answer as far as it is known before it is recorded.
fn answered<'a>(report: &'a Report, fault: &'a Fault, verdict: &'a Verdict, attempt: u32) -> Answer<'a> {
    Answer { report, fault, verdict, attempt, run: None, notified: false }
}

fn task_record(project: &Project, answer: &Answer<'_>, run: RunId) -> TaskRecord {
    let action = &answer.verdict.decision.action;
    let retry_at = match action {
        Action::Retry { after, .. } | Action::AwaitGuard { after, .. } => {
            Some(project.process.now().after(*after))
        }
        _ => None,
    };
    let status = match answer.outcome() {
        _ if answer.is_retried() => TaskStatus::Retrying,
        Outcome::Deferred => TaskStatus::Deferred,
        Outcome::Partial => TaskStatus::Partial,
        Outcome::Unconfirmed => TaskStatus::Unconfirmed,
        _ => TaskStatus::Failed,
    };
    TaskRecord {
        status,
        reason: answer.ended_with().unwrap_or(answer.fault.reason),
        severity: answer.severity(),
        attempt: answer.attempt,
        of: answer.of(),
        retry_at,
        run: Some(run),
        why: SafeText::new(answer.verdict.decision.why.clone()),
        context: Some(SafeText::new(answer.report.context_json().to_string())),
    }
}

fn warn(project: &Project, what: &str, error: &ProjectError) {
    project.process.warn(&format!("{what}: {error}"), error.hints().first().map(String::as_str));
}
