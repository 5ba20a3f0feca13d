//! A campaign as the values that reports render.

use crate::drive::CampaignEnd;
use crate::record::CampaignRecord;
use crate::state::State;
use backstop_core::{EventKind, RunId, SafeText, WorkAt, shell};
use backstop_report::{CampaignReport, LessonRow, TaskRow, UnreachableRow};
use backstop_store::Lesson;

/// Where a campaign stands, or how it ended. `resume` is the command that carries it on.
pub fn report(
    record: &CampaignRecord,
    run: RunId,
    end: Option<&CampaignEnd>,
    work: Option<&WorkAt>,
    resume: &str,
) -> CampaignReport {
    let task = |task: &crate::task::Task| {
        let phase = record.run.phase_of(&task.seq);
        let status = record.status(&task.seq);
        TaskRow {
            seq: task.seq.clone(),
            slug: task.slug.clone(),
            kind: task.kind.name(),
            status,
            depends: task.depends.clone(),
            attempts: phase.map_or(0, |phase| phase.node.total),
            reason: (status == "blocked").then(|| SafeText::new(record.blocked_reason(&task.seq))),
            blocked_by: record.blocked_parents(&task.seq).into_iter().map(str::to_owned).collect(),
        }
    };
    let questions: Vec<SafeText> = record.open_questions().into_iter().map(SafeText::new).collect();
    CampaignReport {
        run,
        objective: record.objective().clone(),
        state: record.state().name(),
        error_type: record.error_type.clone(),
        end: end.map(name),
        explorers: record.explored().0.into_iter().map(|(mode, _)| mode.name()).collect(),
        tasks: record.plan.tasks.iter().map(task).collect(),
        unreachable: record.analysis().into_iter().map(unreachable).collect(),
        partial: is_partial(record).then(|| record.partial()),
        rounds: record.counters().clarify_rounds,
        replans: record.counters().replans,
        cause: record.cause().filter(|_| !is_over_and_complete(record)).cloned(),
        work: work.map(shown),
        next: next(record, end, &questions, resume),
        questions,
    }
}

fn unreachable((seq, blocked_by): (&str, Vec<&str>)) -> UnreachableRow {
    UnreachableRow { seq: seq.to_owned(), blocked_by: blocked_by.into_iter().map(str::to_owned).collect() }
}

/// Whether there is nothing left to explain.
fn is_over_and_complete(record: &CampaignRecord) -> bool {
    let complete = record.tasks_with("complete").len();
    record.state() == State::Complete && complete == record.plan.tasks.len()
}

/// Whether what the explorers said is all that there is.
fn is_partial(record: &CampaignRecord) -> bool {
    record.state() == State::Error && record.state_before_error() == State::Explore
}

fn name(end: &CampaignEnd) -> &'static str {
    match end {
        CampaignEnd::Complete => "complete",
        CampaignEnd::Blocked => "blocked",
        CampaignEnd::Questions(_) => "questions",
        CampaignEnd::Returned(_) => "returned",
        CampaignEnd::Stopped { .. } => "stopped",
    }
}

fn next(
    record: &CampaignRecord,
    end: Option<&CampaignEnd>,
    questions: &[SafeText],
    resume: &str,
) -> Vec<SafeText> {
    let mut all = Vec::new();
    if !questions.is_empty() {
        let blanks: Vec<String> = (1..=questions.len()).map(|n| format!("ANSWER-{n}")).collect();
        all.push(SafeText::new(format!("backstop campaign answer {}", shell::line(&blanks))));
        all.push(SafeText::new(format!("then: {resume}")));
        return all;
    }
    match end {
        Some(CampaignEnd::Complete) | None => {}
        Some(CampaignEnd::Blocked) => {
            if record.has_ready() {
                all.push(SafeText::new(format!("tasks can still begin: {resume}")));
            }
            if let Some(seq) = record.root_cause() {
                all.push(SafeText::new(format!("backstop campaign retry {seq} --why '...', then: {resume}")));
                all.push(SafeText::new(format!(
                    "or another plan: backstop campaign replan --why '...', then: {resume}"
                )));
            }
        }
        Some(CampaignEnd::Returned(_)) => {
            all.extend(record.advice().cloned());
            all.push(SafeText::new(resume));
        }
        Some(_) => all.push(SafeText::new(resume)),
    }
    all
}

fn shown(work: &WorkAt) -> SafeText {
    match work {
        WorkAt::Landed { branch, sha } => SafeText::new(format!("on {} at {}", branch.raw(), sha.raw())),
        WorkAt::Uncommitted { .. } => SafeText::new("in your working tree, not committed"),
        WorkAt::Kept { reference, why, .. } => {
            SafeText::new(format!("kept on {}: {}", reference.raw(), why.raw()))
        }
    }
}

/// A lesson as it is listed.
pub fn lesson(lesson: Lesson) -> LessonRow {
    LessonRow {
        run: lesson.run,
        task: lesson.task,
        signature: lesson.signature,
        reason: lesson.reason.code(),
        files: lesson.files,
        tried: lesson.tried,
        cure: lesson.cure,
        attempts: lesson.attempts,
        cost_ms: lesson.cost_ms,
        at: lesson.at,
    }
}

/// One line about an event between stages, for people; nothing for those that say nothing to them.
pub fn line(kind: &EventKind) -> Option<String> {
    match kind {
        EventKind::StateEntered { operation: None, state, error_type, .. } => Some(match error_type {
            Some(error) => format!("state: {state} ({error})"),
            None => format!("state: {state}"),
        }),
        EventKind::StateMessage { message } => Some(message.line(200)),
        EventKind::ErrorClassified { operation, fault, .. } => {
            let cause = fault.cause.as_ref().map_or_else(String::new, |cause| cause.line(200));
            Some(format!("{} failed: {} {cause}", operation.line(40), fault.reason.code()))
        }
        EventKind::RecoveryAttempted { strategy, success, .. } => {
            Some(format!("recovery: {strategy}, {}", if *success { "it helped" } else { "it did not help" }))
        }
        _ => None,
    }
}
