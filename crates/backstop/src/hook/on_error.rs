//! `backstop hook on-error`: one JSON object in, one out.

use super::{open_store, project_key, read_input, record};
use crate::cli::LogFormat;
use crate::context::{self, Context};
use crate::error::CliError;
use crate::{classify, freeze, host, notify, terminal};
use backstop_classify::Classifier;
use backstop_core::{Action, EventKind, Fault, Outcome, RunId, SafeText, Severity, Verdict};
use backstop_hook::diagnostics;
use backstop_hook::on_error::{Answer, Case, Refusal, Report, WINDOW, decide};
use backstop_report::to_json;
use backstop_store::{DeferredWork, RunJournal, TaskRecord, TaskStatus};

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
    let bytes = read_input().map_err(|error| CliError::Read { file: "standard input".into(), error })?;
    let context = Context::new(&[], format)?;
    let report = Report::read(&bytes, &context.redactor).map_err(CliError::HookInput)?;
    let policy = context.config.policy("task")?;
    let classifier = || {
        classify::classifier_with(&context.config.packs(), &context.redactor).unwrap_or_else(|error| {
            warn("rule packs are not used", &error);
            Classifier::builtin().redacting(context.redactor.as_ref().clone())
        })
    };
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
        let store = open_store(&folder)?;
        let attempt =
            store.note_failure(key.as_str(), &report.task, fault.reason, WINDOW, &mut |attempt| {
                let verdict = verdict.insert(decided(attempt, None));
                task_record(&answered(&report, &fault, verdict, attempt), expected)
            })?;
        Ok((store, attempt))
    });
    let (store, attempt, verdict) = match (store, verdict) {
        (Ok((store, attempt)), Some(verdict)) => (Some(store), attempt, verdict),
        (store, _) => {
            if let Err(error) = store {
                warn("attempts are not counted", &error);
            }
            (None, 1, decided(1, Some("attempts cannot be counted, and what is not counted is not repeated")))
        }
    };
    let mut answer = answered(&report, &fault, &verdict, attempt);
    let folder = context.project.display().to_string();
    let recorded = journal
        .and_then(|journal| record(&context, &journal, None, "task", random, answer.events(Some(&folder))));
    match recorded {
        Ok(run) => {
            answer.run = Some(run.id());
            follow(&context, &run, &mut answer);
        }
        Err(error) => warn("this report is not recorded", &error),
    }
    if let Some(store) = store.filter(|_| answer.run != Some(expected))
        && let Err(error) = store.set_task_run(key.as_str(), &report.task, answer.run)
    {
        warn("the task's status is not kept", &error.into());
    }
    Ok(answer.json())
}

/// What follows: a critical fault freezes the project, work that waits is put aside, people are told. It is recorded with the
/// report.
fn follow(context: &Context, run: &RunJournal, answer: &mut Answer<'_>) {
    let mut follows = Vec::new();
    let is_over = !answer.verdict.decision.action.goes_on();
    if is_over || answer.fault.severity == Severity::Critical {
        follows.extend(freeze::freeze(context, answer.fault, Some(run.id())));
    }
    let frozen = (!follows.is_empty()).then(|| SafeText::new(freeze::UNFREEZE));
    if let Action::Defer { until } = &answer.verdict.decision.action {
        let work = DeferredWork {
            run: run.id(),
            argv: vec![answer.report.task.clone()],
            folder: context.project.display().to_string(),
            reason: answer.fault.reason,
            until: SafeText::new(until.clone()),
            whole: false,
            is_task: true,
            address: diagnostics::service_address(answer.fault),
        };
        match run.journal().defer(&work) {
            Ok(_) => follows.push(EventKind::Deferred {
                operation: SafeText::new(answer.report.task.clone()),
                until: until.clone(),
            }),
            Err(error) => warn("the task is not put aside", &error.into()),
        }
    }
    let project = SafeText::new(context.project.to_string_lossy());
    let told = notify::tell(context, &answer.notice(project, context::now(), frozen));
    answer.notified = !told.is_empty();
    follows.extend(told);
    if !follows.is_empty()
        && let Err(error) = run.append(follows)
    {
        warn("what followed is not recorded", &error.into());
    }
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
