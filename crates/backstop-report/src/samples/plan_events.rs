//! Everything that happens in a plan's run, one of each.

use super::Texts;
use super::plans::{run, secs};
use crate::plan::*;
use backstop_core::{LimitWindow, Reason, SafeText, Timestamp};

/// Everything that can happen to a phase.
pub(crate) fn changes(t: &Texts) -> Vec<Change> {
    let (reason, message) = (Reason::TestFailure, t.message.clone());
    let failed =
        |attempt, then| ChangeKind::AttemptFailed { attempt, reason, message: message.clone(), then };
    let gate = || SafeText::from("test");
    let began = Timestamp::from_millis(1_795_000_000_000);
    let limit = || LimitWaitRow {
        provider: Some("anthropic".into()),
        model: None,
        window: Some(LimitWindow::FiveHour),
        resets_at: Some(began.after(secs(8_340))),
        until: began.after(secs(8_400)),
        left: secs(8_400),
    };
    let beside = || vec![RunningPhase { id: "2B".into(), agent: Some("codex".into()) }];
    let kinds = vec![
        ChangeKind::Started { attempt: 1, of: 2 },
        ChangeKind::Started { attempt: 2, of: 2 },
        failed(1, Then::RetriedAfter(vec!["2B".into()])),
        failed(1, Then::RetriedNow),
        failed(1, Then::RetriedIn(secs(30))),
        failed(1, Then::Waits { limit: limit(), beside: beside() }),
        failed(2, Then::Fails),
        ChangeKind::SameSession { attempt: 2, agent: "claude".into() },
        ChangeKind::GatePassed { gate: gate(), elapsed: secs(41) },
        ChangeKind::GateFailed { gate: gate(), reason, message: message.clone() },
        ChangeKind::Flaky { tests: vec![t.test.clone()] },
        ChangeKind::Conflicted { files: vec![t.file.clone()], rerun: true },
        ChangeKind::Committed { sha: "a1b2c3d".into(), subject: t.problem.clone() },
        ChangeKind::Complete { elapsed: secs(260), attempts: 2 },
        ChangeKind::Blocked { by: vec!["2A".into()] },
        ChangeKind::Skipped { why: t.absent.clone() },
        ChangeKind::Stopped { attempt: 1 },
    ];
    let name = SafeText::from("Backend");
    kinds.into_iter().map(|kind| Change { id: t.id.clone(), name: name.clone(), kind }).collect()
}

/// Everything that is logged.
pub(crate) fn log_events(t: &Texts) -> Vec<LogEvent> {
    let phase = || SafeText::new(t.id.raw().to_lowercase());
    let (reason, run) = (Reason::TestFailure, run());
    vec![
        LogEvent::Start { run, plan: t.plan.clone(), phases: 6 },
        LogEvent::Config(vec![("commit", "auto".into()), ("agent", t.tool.clone())]),
        LogEvent::PhaseStart { phase: phase(), attempt: 1, of: 2 },
        LogEvent::PhaseComplete { phase: "2b".into(), attempt: 1, elapsed: secs(242) },
        LogEvent::PhaseFail { phase: phase(), attempt: 1, reason, message: t.message.clone() },
        LogEvent::Retry { phase: phase(), attempt: 2, of: 2, after: vec!["2b".into()] },
        LogEvent::Verify { phase: phase(), gate: t.check.clone(), passed: false, elapsed: secs(41) },
        LogEvent::Commit { phase: "2b".into(), sha: "a1b2c3d".into(), subject: t.problem.clone() },
        LogEvent::Integrate { phase: "2b".into(), tip: "a1b2c3d".into() },
        LogEvent::Conflict { phase: phase(), files: vec![t.file.clone()] },
        LogEvent::Wait {
            phase: phase(),
            reason: Reason::RateLimited,
            until: Some(Timestamp::from_millis(0)),
        },
        LogEvent::Resume { run, done: 3 },
        LogEvent::Override { by: "user".into(), what: t.test.clone(), rationale: t.message.clone() },
        LogEvent::Halt { reason, message: t.message.clone(), resume: t.command.clone() },
        LogEvent::Complete { phases: 6, elapsed: secs(724) },
    ]
}
