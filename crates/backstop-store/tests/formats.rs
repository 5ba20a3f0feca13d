//! Old data stays readable: golden files of every format that was ever written.
//!
//! `BACKSTOP_WRITE_FORMATS=1 cargo test -p backstop-store --test formats` writes those of the
//! newest format, once, when it is new. A golden file of a released format is never written again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use backstop_core::{
    Action, Decision, Event, EventKind, Fault, Outcome, OutputLog, OutputStream, PhaseRecord, PlanRecord,
    Reason, Stats, Timestamp,
};
use backstop_store::{
    Child, DeferredWork, EventFilter, Journal, Lesson, ProjectKey, Retention, RunFilter, RunHeader, RunState,
    StatsFilter,
};
use common::{GONE, Place, START, attempt, ended, header, started};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The project of the golden files; it need not exist.
const PROJECT: &str = "/srv/example";

fn formats() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats")
}

fn lines(events: &[(u64, Event)]) -> String {
    events.iter().map(|(_, event)| serde_json::to_string(event).unwrap() + "\n").collect()
}

fn plan() -> PlanRecord {
    let phase = PhaseRecord {
        id: "2a".into(),
        shown: "2A".into(),
        name: "Backend".into(),
        hash: "abc".into(),
        depends_on: vec!["1".into()],
        parallel_with: Vec::new(),
        repeatable: true,
        tasks: 3,
    };
    PlanRecord {
        table: "abc".into(),
        defaults: String::new(),
        phases: vec![phase],
        commit: "auto".into(),
        isolation: "worktree".into(),
        base: Some("abc".into()),
        branch: Some("refs/heads/main".into()),
        resume: String::new(),
        max_attempts: 2,
        before: Vec::new(),
        format: None,
        by: None,
    }
}

/// One event of every kind, a run of every state, deferred work, children.
fn write(journal: &Journal, place: &Place) {
    let full = RunHeader {
        session: Some("s-1".into()),
        caller: Some("agent".into()),
        parent: Some("r-0abc".parse().unwrap()),
        ..header(0x7f3a_0001)
    };
    let run = journal
        .begin(
            full,
            vec![EventKind::RunStarted {
                operation: "npm ci".into(),
                folder: Some("/srv/example".into()),
                profile: Some("command".into()),
                parent: Some("r-0abc".parse().unwrap()),
            }],
        )
        .unwrap();
    place.set(START + 1500);
    let mut fault = Fault::new(Reason::NetworkTransient);
    fault.cause = Some("ECONNRESET \u{1b}[31m".into());
    fault.facts.retry_after_seconds = Some(1.5);
    let decision = Decision {
        action: Action::Retry { after: Duration::from_millis(1100), attempt: 2, of: 4 },
        why: "network_transient: attempt 1 of 4".into(),
    };
    let operation = || "npm ci".into();
    let name = || "openai".parse().unwrap();
    run.append(vec![
        attempt("npm ci", 1),
        EventKind::AttemptFinished {
            operation: operation(),
            attempt: 1,
            success: false,
            duration_ms: 1400,
            exit: Some(1),
            signal: Some("SIGTERM".into()),
            output: Some("npm ERR! ECONNRESET\n".into()),
            delivery: None,
        },
        EventKind::ErrorClassified { operation: operation(), attempt: 1, fault: Box::new(fault) },
        EventKind::DecisionMade {
            operation: None,
            attempt: 1,
            decision,
            reclassified: Some(Reason::NetworkPermanent),
        },
        EventKind::RecoveryAttempted {
            operation: None,
            strategy: "retry".into(),
            success: true,
            attempt: 2,
            detail: None,
        },
        EventKind::AttemptLost { operation: operation(), attempt: 2, why: "gone".into(), delivery: None },
        EventKind::GuardUpdated { provider: name(), until: Some(Timestamp::from_millis(START + 9000)) },
        EventKind::GuardWaited { provider: name(), waited_ms: 7 },
        EventKind::BudgetConsumed { budget: name(), units: 1, remaining: 2 },
        EventKind::BudgetRefunded { budget: name(), units: 1, remaining: 3 },
        EventKind::BudgetExhausted { budget: name() },
        EventKind::GateFinished {
            gate: "lint".into(),
            passed: false,
            operation: Some("2a".into()),
            attempt: 1,
            duration_ms: 1200,
            reason: Some(Reason::LintError),
            flaky: Vec::new(),
            known_failures: 0,
        },
        EventKind::PlanLoaded { plan: Box::new(plan()) },
        EventKind::IntegrationStarted { operation: operation(), attempt: 1, onto: None },
        EventKind::IntegrationFinished { operation: operation(), tip: "abc".into() },
        EventKind::IntegrationConflicted { operation: operation(), files: vec!["a.rs".into()], attempt: 1 },
        EventKind::CommitMade { operation: operation(), sha: "abc".into(), subject: None },
        EventKind::StateEntered {
            operation: None,
            state: "ERROR".into(),
            error_type: Some("x".into()),
            context: None,
        },
        EventKind::StateMessage { message: "Insufficient explorer data".into() },
        EventKind::TasksRegistered { plan: "{}".into() },
        EventKind::QuestionAnswered { question: "Which?".into(), answer: "this".into() },
        EventKind::Override { by: "me".into(), what: "skip".into(), rationale: "known".into() },
        EventKind::Notified { sink: "slack".into() },
        EventKind::Deferred { operation: operation(), until: "later".into() },
        EventKind::RunHalted { reason: Reason::AuthError, resume: "backstop resume".into() },
        EventKind::RunResumed {},
        ended(Outcome::Done),
    ])
    .unwrap();
    let mut log = OutputLog::default();
    log.push(OutputStream::Stdout, "one\n", 0);
    log.push(OutputStream::Stderr, "two \u{1b}[31m\n", 7);
    run.keep_output(1, &log).unwrap();
    let mut dead = header(0x1234_0002);
    dead.process = GONE;
    let open = journal.begin(dead, vec![started("make"), attempt("make", 1)]).unwrap();
    open.child_started(Child { operation: None, attempt: 1, pid: 100, start: 200, group: -100 }).unwrap();
    let halted = journal.begin(header(0x4321_0003), vec![started("plan.md")]).unwrap();
    halted.append(vec![EventKind::RunHalted { reason: Reason::AuthError, resume: "x".into() }]).unwrap();
    journal.keep_lessons(&[a_lesson()]).unwrap();
    journal
        .defer(&DeferredWork {
            run: run.id(),
            argv: vec!["npm".into(), "ci".into()],
            folder: "/srv/example".into(),
            reason: Reason::ServiceDown,
            until: "it answers".into(),
            whole: true,
            is_task: false,
            address: None,
        })
        .unwrap();
}

fn a_lesson() -> Lesson {
    Lesson {
        run: "r-7f3a".parse().unwrap(),
        task: "001-spec".into(),
        signature: "test <n> failed".into(),
        reason: Reason::TestFailure,
        files: vec!["a.py".to_owned()],
        tried: "the same again".into(),
        cure: None,
        attempts: 2,
        cost_ms: 7,
        at: Timestamp::from_millis(START),
    }
}

fn all() -> EventFilter {
    EventFilter { limit: 10_000, ..EventFilter::default() }
}

/// The newest format.
const NEWEST: u32 = 5;

#[test]
#[allow(clippy::disallowed_methods, reason = "golden files are written on request only")]
fn every_format_is_read() {
    if std::env::var_os("BACKSTOP_WRITE_FORMATS").is_some() {
        let place = Place::new();
        let journal = Journal::open(&place.folder, Path::new(PROJECT)).unwrap();
        write(&journal, &place);
        // Everything into one file.
        journal.clean(&Retention::default(), &|_| true).unwrap();
        std::fs::create_dir_all(formats()).unwrap();
        std::fs::copy(journal.file(), formats().join(format!("v{NEWEST}.db"))).unwrap();
        let text = lines(&journal.events(&all()).unwrap());
        std::fs::write(formats().join(format!("v{NEWEST}.events.jsonl")), text).unwrap();
    }
    let stats: Vec<Stats> = (1..=NEWEST).map(format_is_read).collect();
    assert!(stats.iter().all(|other| *other == stats[0]), "what is counted does not depend on the format");
    let total = stats[0].total;
    assert_eq!((total.attempts, total.lost, total.failed_ms), (2, 1, 1400));
    assert_eq!((total.errors, total.retried, total.cured), (1, 1, 1));
    assert_eq!((total.waited_ms, total.guard_ms), (1100, 7));
}

fn format_is_read(version: u32) -> Stats {
    let place = Place::new();
    let projects = place.folder.root().join("projects");
    std::fs::create_dir(&projects).unwrap();
    let key = ProjectKey::of(Path::new(PROJECT));
    std::fs::copy(formats().join(format!("v{version}.db")), projects.join(format!("{key}.db"))).unwrap();

    let journal = Journal::open_existing(&place.folder, Path::new(PROJECT)).unwrap().unwrap();
    journal.check().unwrap();
    assert_eq!(journal.project_path().unwrap().as_deref(), Some(Path::new(PROJECT)));
    let events = journal.events(&all()).unwrap();
    let golden = std::fs::read_to_string(formats().join(format!("v{version}.events.jsonl"))).unwrap();
    assert_eq!(lines(&events), golden);
    for (line, (_, event)) in golden.lines().zip(&events) {
        assert_eq!(serde_json::from_str::<Event>(line).unwrap(), *event);
    }
    let kinds: std::collections::HashSet<_> = events.iter().map(|(_, event)| event.kind.name()).collect();
    let of_every_kind = match version {
        1 | 2 => 24,
        3 | 4 => 25,
        _ => 28,
    };
    assert_eq!(kinds.len(), of_every_kind, "one of every kind");

    let runs = journal.runs(&RunFilter::default()).unwrap();
    let states: Vec<RunState> = runs.iter().map(|run| run.state).collect();
    assert_eq!(states, [RunState::Halted, RunState::Open, RunState::Ended]);
    assert_eq!(runs[2].outcome, Some(Outcome::Done));
    let lost = journal.lost_runs(&common::here_is_alive).unwrap();
    assert_eq!(lost[0].children, [Child { operation: None, attempt: 1, pid: 100, start: 200, group: -100 }]);
    assert_eq!(journal.deferred().unwrap()[0].id.to_string(), "d-1");

    let outputs = journal.outputs(runs[2].id).unwrap();
    assert_eq!(outputs.len(), usize::from(version >= 4));
    for (attempt, log) in outputs {
        let lines: Vec<_> = log.lines().map(|(stream, line)| (stream.name(), line)).collect();
        assert_eq!((attempt, lines), (1, vec![("stdout", "one"), ("stderr", "two \u{1b}[31m")]));
    }

    let lessons = journal.lessons(10).unwrap();
    assert_eq!(lessons.len(), usize::from(version >= 5));
    assert!(lessons.iter().all(|lesson| *lesson == a_lesson()));

    let stats = journal.stats(&StatsFilter::default()).unwrap();

    // And it can be written to.
    assert!(journal.close_lost(&lost[0]).unwrap());
    journal.begin(header(9), vec![started("new")]).unwrap();
    stats
}
