//! One of each text about a plan's run.

use super::Texts;
use crate::plan::*;
use backstop_core::{Reason, RunId, SafeText, Usage, WorkAt};
use std::time::Duration;

pub(super) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub(super) fn run() -> RunId {
    "r-7f3a".parse().unwrap()
}

fn commit(sha: &str, subject: &SafeText) -> (SafeText, SafeText) {
    (sha.into(), subject.clone())
}

/// A phase in each state.
pub(crate) fn rows(t: &Texts) -> Vec<PhaseRow> {
    let row = |id: &str, name: &str, state| PhaseRow {
        state,
        attempt: 1,
        total_attempts: 1,
        ..PhaseRow::pending(id.into(), name.into(), 2)
    };
    let error = || Some((Reason::TestFailure, t.message.clone()));
    vec![
        PhaseRow {
            elapsed: Some(secs(135)),
            commit: Some(commit("a1b2c3d", &t.problem)),
            ..row("0", "Bootstrap", PhaseState::Complete)
        },
        PhaseRow {
            elapsed: Some(secs(3_599)),
            attempt: 2,
            retried: true,
            flaky: 2,
            ..row("1", "Setup", PhaseState::Complete)
        },
        PhaseRow {
            id: t.id.clone(),
            name: t.test.clone(),
            elapsed: Some(secs(260)),
            attempt: 2,
            total_attempts: 2,
            error: error(),
            ..row("2A", "Backend", PhaseState::Running)
        },
        PhaseRow { elapsed: Some(secs(242)), ..row("2B", "Frontend", PhaseState::Complete) },
        PhaseRow {
            elapsed: Some(secs(30)),
            tasks: Some((3, 5)),
            ..row("2C", "Tests", PhaseState::Checking(t.check.clone()))
        },
        PhaseRow { elapsed: Some(secs(9)), ..row("2D", "Docs", PhaseState::Integrating) },
        PhaseRow {
            waits_for: vec!["2C".into()],
            error: error(),
            ..row("2E", "Search", PhaseState::RetryWaiting)
        },
        PhaseRow {
            until: Some(secs(250)),
            error: Some((Reason::RateLimited, "429".into())),
            ..row("2F", "Mail", PhaseState::Running)
        },
        PhaseRow {
            attempt: 2,
            total_attempts: 5,
            error: error(),
            ..row("2G", "Billing", PhaseState::Failed)
        },
        PhaseRow { waits_for: vec![t.id.clone()], ..PhaseRow::pending("3".into(), "Integration".into(), 2) },
        PhaseRow { waits_for: vec!["2G".into()], ..row("4", "Invoices", PhaseState::Blocked) },
        PhaseRow { note: Some(t.message.clone()), ..row("5", "統合テスト 🚀", PhaseState::Skipped) },
        PhaseRow::pending("6".into(), "Release".into(), 2),
    ]
}

/// The progress of these phases.
pub(crate) fn progress(t: &Texts) -> Progress {
    Progress::of(&rows(t), secs(724), Some(secs(1_200)))
}

/// The seed's halted run.
pub(crate) fn halt(t: &Texts) -> HaltSummary {
    let complete = |id: &str, name: &str, sha: &str, subject: &SafeText| CompletedPhase {
        id: id.into(),
        name: name.into(),
        commits: vec![commit(sha, subject)],
        skipped: false,
    };
    HaltSummary {
        box_title: "BACKSTOP HALTED".into(),
        plan: t.plan.clone(),
        reason: Reason::TestFailure,
        reason_line: SafeText::new(format!("Phase {} failed after retry", t.id.raw())),
        completed: vec![
            complete("0", "Bootstrap", "a1b2c3d", &"chore(bootstrap): add quality tools".into()),
            complete("1", "Setup", "b2c3d4e", &t.problem),
            CompletedPhase {
                skipped: true,
                ..CompletedPhase { id: "2B".into(), name: t.test.clone(), ..CompletedPhase::default() }
            },
        ],
        failed: vec![FailedPhase {
            id: t.id.clone(),
            name: "Backend".into(),
            attempts: 2,
            of: 2,
            total_attempts: 4,
            error: Reason::TestFailure,
            details: t.message.clone(),
            retried: true,
            log: ".backstop/runs/feature-plan/logs/phase-2a.log".into(),
        }],
        blocked: vec![BlockedPhase { id: "3".into(), name: "Integration".into(), by: vec![t.id.clone()] }],
        pending: vec![PendingPhase { id: "4".into(), name: t.file.clone() }],
        usage: Some(Usage { input_tokens: 120_000, output_tokens: 4_000, cost_usd: None }),
        state: PreservedState {
            folder: ".backstop/runs/feature-plan/".into(),
            files: 6,
            logs: ".backstop/runs/feature-plan/logs/".into(),
            run: run(),
            kept_refs: vec!["refs/backstop/r-7f3a/2a/2".into()],
        },
        steps: vec![
            SafeText::new(format!("Fix the failing tests in {}", t.file.raw())),
            SafeText::new(format!("Run `{}` until it passes", t.check.raw().replace('`', "'"))),
        ],
        resume: t.command.clone(),
        fresh_hint: "add `--fresh`; commits are not undone".into(),
    }
}

/// A complete run.
pub(crate) fn completion(t: &Texts) -> Completion {
    let phase = |id: &str, name: &SafeText| CompletePhase {
        id: id.into(),
        name: name.clone(),
        elapsed: Some(secs(135)),
        attempts: 1,
        commits: vec![commit("a1b2c3d", &t.problem)],
        ..CompletePhase::default()
    };
    Completion {
        plan: t.plan.clone(),
        run: run(),
        elapsed: secs(724),
        phases: vec![
            phase("0", &"Bootstrap".into()),
            CompletePhase {
                attempts: 2,
                retried: true,
                flaky: vec![t.test.clone()],
                gates_skipped: vec![t.check.clone()],
                ..phase("2A", &t.tool)
            },
            CompletePhase {
                skipped: true,
                attempts: 0,
                elapsed: None,
                commits: vec![],
                ..phase("3", &"Docs".into())
            },
        ],
        one_commit: None,
        work: WorkAt::Kept { reference: t.file.clone(), why: t.message.clone(), command: t.command.clone() },
        files_changed: Some(12),
        usage: Some(Usage { input_tokens: 120_000, output_tokens: 4_000, cost_usd: Some(0.416) }),
        waits: WaitSum { times: 2, waited: secs(10_500) },
        verified: 2,
        red: vec![t.check.clone()],
        notes: vec![t.absent.clone()],
    }
}

/// A dry run.
pub(crate) fn dry(t: &Texts) -> DryRun {
    let phase = |id: &SafeText, name: &SafeText| DryPhase {
        id: id.clone(),
        name: name.clone(),
        by: "claude".into(),
        attempts_most: 2,
        tasks: 4,
        estimate: Some("2h".into()),
        gates: vec!["lint".into(), t.check.clone()],
        done: false,
    };
    DryRun {
        plan: t.plan.clone(),
        levels: vec![
            vec![DryPhase {
                by: t.command.clone(),
                gates: vec![],
                tasks: 0,
                ..phase(&"0".into(), &"Bootstrap".into())
            }],
            vec![phase(&t.id, &t.test), phase(&"2B".into(), &"Frontend".into())],
        ],
        order: vec!["0".into(), t.id.clone(), "2B".into()],
        jobs: 2,
        parallel: "declared".into(),
        warnings: vec![t.problem.clone()],
        overlaps: vec![(t.id.clone(), "2B".into(), vec![t.file.clone()])],
        most_attempts: 6,
        isolation: "worktree".into(),
        commit: "auto".into(),
        expected: Some(secs(14_400)),
        run: t.command.clone(),
        reading: Some(PlanReading {
            format: "Spec Kit tasks".into(),
            by: "task".into(),
            tasks: 4,
            groups: 2,
            done: 1,
            waves: vec![
                Wave { ids: vec!["0".into()], beside: false, name: Some("Bootstrap".into()) },
                Wave { ids: vec![t.id.clone(), "2B".into()], beside: true, name: None },
            ],
            checks: vec!["lint".into(), t.check.clone()],
            unestimated: 0,
            agent: "claude".into(),
            passed_over: vec![t.file.clone()],
        }),
    }
}

/// The status of a run.
pub(crate) fn status(t: &Texts) -> PlanStatus {
    PlanStatus {
        plan: t.plan.clone(),
        run: run(),
        state: RunState::Halted { reason: Reason::TestFailure },
        rows: rows(t),
        progress: progress(t),
        usage: Some(Usage { input_tokens: 1_200_000, output_tokens: 40_000, cost_usd: Some(4.1) }),
        waits: WaitSum::default(),
        starts_at: None,
        cut_off: vec![t.id.clone()],
        changed: vec![t.id.clone()],
        next: Some(t.command.clone()),
    }
}
