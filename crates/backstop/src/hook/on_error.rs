//! `backstop hook on-error`: one JSON object in, one out.

use super::{ask_store, project_key, read_input, record};
use crate::aftermath::{self, Trouble};
use crate::cli::LogFormat;
use crate::context::{self, Context};
use crate::error::CliError;
use crate::{classify, freeze, host, terminal};
use backstop_core::{Action, Decision, EventKind, Fault, Outcome, RunId, SafeText, Severity, Verdict};
use backstop_hook::on_error::{Answer, Case, Refusal, Report, WINDOW, decide};
use backstop_report::to_json;
use backstop_runtime::machine_state as diagnostics;
use backstop_store::{DeferredWork, RunJournal, TaskRecord, TaskStatus};
use std::time::Duration;

/// How long a report may take to come in.
const INPUT_MAX: Duration = Duration::from_secs(30);

/// Answers a report. Whatever happens, there is one JSON object on standard output.
pub(super) fn run(format: Option<LogFormat>) -> Result<(), CliError> {
    match answer(format) {
        Ok(answer) => print(&answer),
        Err(error) => {
            let refusal = match &error {
                CliError::HookInput(error) => Refusal::from(error),
                other => Refusal {
                    place: if matches!(other, CliError::Config(_)) { "configuration" } else { "backstop" }
                        .to_owned(),
                    message: terminal::redactor().redact(&other.to_string()).into_owned(),
                    hint: other.hints().into_iter().next().unwrap_or_default(),
                },
            };
            print(&refusal.json())?;
            Err(error)
        }
    }
}

fn print(value: &serde_json::Value) -> Result<(), CliError> {
    terminal::print(&format!("{}\n", to_json(value)))
}

fn answer(format: Option<LogFormat>) -> Result<serde_json::Value, CliError> {
    let bytes =
        read_input(INPUT_MAX).map_err(|error| CliError::Read { file: "standard input".into(), error })?;
    let context = Context::new(&[], format)?;
    let report = Report::read(&bytes, &context.redactor).map_err(CliError::HookInput)?;
    let policy = context.config.policy("task")?;
    let classifier =
        || classify::classifier_or_builtin(&context, |error| warn("rule packs are not used", error));
    let mut fault = backstop_hook::on_error::classify(&report, &classifier, context::now());
    let journal = context.journal();
    let aside = journal.as_ref().ok().and_then(|journal| journal.deferred_count().ok());
    host::witness(&context, aside, &mut fault);
    let fault = fault;
    let is_frozen = freeze::frozen(&context).is_some();
    let (key, random) = (project_key(&context), context::random());
    let expected = RunId::from_random(random, 4);
    let decided = |attempt: u32, unrepeatable: Option<&str>| {
        let case = Case {
            fault: &fault,
            attempt,
            random: (random >> 11) as f64 / (1u64 << 53) as f64,
            unrepeatable,
            has_partial: report.partial.is_some(),
            disabled: context::is_disabled(),
            frozen: is_frozen,
        };
        decide(policy.clone(), &case)
    };
    // Counted, decided and kept in one go: of many reports at once each is an attempt of its own.
    let mut verdict = None;
    let store = context.folder().and_then(|folder| {
        let counted = ask_store(&folder, |store| {
            store.note_failure(key.as_str(), &report.task, fault.reason, WINDOW, &mut |attempt| {
                let verdict = verdict.insert(decided(attempt, None));
                task_record(&answered(&report, &fault, verdict, attempt), expected)
            })
        });
        Ok(counted?)
    });
    let (store, attempt, mut verdict) = match (store, verdict) {
        (Ok((store, attempt)), Some(verdict)) => (Some(store), attempt, verdict),
        (store, _) => {
            if let Err(error) = store {
                warn("attempts are not counted", &error);
            }
            (None, 1, decided(1, Some("attempts cannot be counted, and what is not counted is not repeated")))
        }
    };
    let folder = context.project.display().to_string();
    let events = answered(&report, &fault, &verdict, attempt).events(Some(&folder));
    let recorded = journal.and_then(|journal| record(&context, &journal, None, "task", random, events));
    let run = recorded.map_err(|error| warn("this report is not recorded", &error)).ok();
    let mut follows: Vec<EventKind> =
        put_aside(&context, run.as_ref(), aside, &report, &fault, &verdict).into_iter().collect();
    if matches!(verdict.decision.action, Action::Defer { .. }) && follows.is_empty() {
        verdict = not_put_aside(verdict, report.partial.is_some());
    }
    let mut answer = answered(&report, &fault, &verdict, attempt);
    answer.run = run.as_ref().map(RunJournal::id);
    let trouble = Trouble { faults: vec![&fault], ended_with: answer.ended_with(), run: answer.run };
    // What happens inside a run is an attempt of that one, which tells of itself.
    let is_told = context::outer().0.is_none() || fault.severity == Severity::Critical;
    let told = aftermath::follow(&context, &trouble, |frozen| {
        is_told.then(|| answer.notice(SafeText::new(folder.clone()), context::now(), frozen))
    });
    answer.notified = told.iter().any(|kind| matches!(kind, EventKind::Notified { .. }));
    follows.extend(told);
    if let Some(run) = run.filter(|_| !follows.is_empty())
        && let Err(error) = run.append(follows)
    {
        warn("what followed is not recorded", &error.into());
    }
    if let Some(store) = store.filter(|_| answer.run != Some(expected))
        && let Err(error) = store.set_task_run(key.as_str(), &report.task, answer.run)
    {
        warn("the task's status is not kept", &error.into());
    }
    Ok(answer.json())
}

/// Puts a task aside that waits for something; what is recorded of that. One that does not wait any more is forgotten there.
fn put_aside(
    context: &Context,
    run: Option<&RunJournal>,
    aside: Option<u32>,
    report: &Report,
    fault: &Fault,
    verdict: &Verdict,
) -> Option<EventKind> {
    let journal = run?.journal();
    let Action::Defer { until } = &verdict.decision.action else {
        // Most often nothing is put aside at all.
        if aside != Some(0) {
            let _ = journal.drop_deferred_task(&report.task);
        }
        return None;
    };
    let work = DeferredWork {
        run: run?.id(),
        argv: vec![report.task.clone()],
        folder: context.project.display().to_string(),
        reason: fault.reason,
        until: SafeText::new(until.clone()),
        whole: false,
        is_task: true,
        address: diagnostics::service_address(fault),
    };
    let put = journal.defer(&work).map_err(|error| warn("the task is not put aside", &error.into())).ok();
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

fn task_record(answer: &Answer<'_>, run: RunId) -> TaskRecord {
    let action = &answer.verdict.decision.action;
    let retry_at = match action {
        Action::Retry { after, .. } | Action::AwaitGuard { after, .. } => Some(context::now().after(*after)),
        _ => None,
    };
    let status = match answer.outcome() {
        _ if action.goes_on() => TaskStatus::Retrying,
        Outcome::Deferred => TaskStatus::Deferred,
        Outcome::Partial => TaskStatus::Partial,
        Outcome::Unconfirmed => TaskStatus::Unconfirmed,
        _ => TaskStatus::Failed,
    };
    TaskRecord {
        status,
        reason: answer.fault.reason,
        severity: answer.severity(),
        attempt: answer.attempt,
        of: answer.of(),
        retry_at,
        run: Some(run),
        why: SafeText::new(answer.verdict.decision.why.clone()),
        context: Some(SafeText::new(answer.report.context_json().to_string())),
    }
}

fn warn(what: &str, error: &CliError) {
    terminal::warn(&format!("{what}: {error}"), error.hints().first().map(String::as_str));
}
