//! One run, whatever its surface: what is recorded when, who is told, and that nothing else changes
//! before a failure is on record.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods)]

use backstop_config::Surroundings;
use backstop_core::{Dispatch, Event, EventKind, Fault, Name, Outcome, Reason, Timestamp, profile};
use backstop_engine::{Attempt, Cancel, Failed};
use backstop_runtime::admission::{Admission, BudgetScope, OperationLimits};
use backstop_runtime::operation::OperationRun;
use backstop_runtime::recorder::successes::Successes;
use backstop_runtime::{Observer, Opening, Output, Place, Process, Project, Recorder, process};
use backstop_store::{Budget, LimitStore, Per};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl Output for Warnings {
    fn warn(&self, what: &str, _: Option<&str>) {
        self.0.lock().unwrap().push(what.to_owned());
    }
    fn message(&self, _: &str) {}
}

fn random() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn project_with(root: &Path, state: &Path, output: Arc<dyn Output>) -> Arc<Project> {
    let now = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
    };
    let process = Process {
        now,
        boot_time: || None,
        pass_time: None,
        random,
        id: process::current(),
        is_alive: process::is_alive,
        variable: |_| None,
        caller: None,
        session: None,
        parent: None,
        deadline: None,
        disabled: false,
        cwd: root.to_owned(),
        temp_dir: root.to_owned(),
        zone: backstop_core::Zone::utc,
        program: None,
        commit_hook: None,
        output,
    };
    let surroundings = Surroundings {
        cwd: root.to_owned(),
        home: None,
        xdg_config_home: None,
        env: &|_| None,
        users: Vec::new(),
        state_root: Some(state.to_owned()),
    };
    let place = Place { surroundings, variables: Vec::new() };
    Arc::new(Project::open(&place, &[], process).unwrap())
}

struct Scratch {
    _folder: tempfile::TempDir,
    project: Arc<Project>,
}

fn scratch() -> Scratch {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    std::fs::create_dir_all(&root).unwrap();
    let project = project_with(&root, &folder.path().join("state"), Arc::new(()));
    Scratch { _folder: folder, project }
}

fn started() -> EventKind {
    EventKind::RunStarted { operation: "GET /".into(), folder: None, profile: None, parent: None }
}

fn attempt_started() -> EventKind {
    EventKind::AttemptStarted { operation: "GET /".into(), attempt: 1 }
}

fn attempt_finished(success: bool) -> EventKind {
    EventKind::AttemptFinished {
        operation: "GET /".into(),
        attempt: 1,
        success,
        duration_ms: 1,
        exit: None,
        signal: None,
        output: None,
        delivery: None,
    }
}

fn names(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.kind.name()).collect()
}

fn held(project: &Project, successes: &Arc<Successes>) -> Recorder {
    let opening = Opening {
        held: true,
        successes: Some(Arc::clone(successes)),
        first: vec![started()],
        ..Opening::new("request")
    };
    Recorder::begin(project, opening).unwrap()
}

#[test]
fn a_success_that_is_held_back_is_only_counted() {
    let scratch = scratch();
    let successes = Arc::new(Successes::default());
    for _ in 0..3 {
        let recorder = held(&scratch.project, &successes);
        recorder.append(vec![attempt_started()]).unwrap();
        let ended = EventKind::ended(Outcome::Done, None);
        assert!(recorder.end(vec![attempt_finished(true), ended]).unwrap().is_empty());
        assert!(!recorder.is_recorded());
    }
    let journal = scratch.project.journal().unwrap();
    assert!(journal.runs(&backstop_store::RunFilter::default()).unwrap().is_empty());
    assert!(journal.successes(Timestamp::from_millis(0)).unwrap().is_empty());

    // The next run that is written carries the count along, with everything that was held back of
    // it.
    let recorder = held(&scratch.project, &successes);
    recorder.append(vec![attempt_started()]).unwrap();
    assert!(!recorder.is_recorded());
    recorder.append(vec![attempt_finished(false)]).unwrap();
    assert!(recorder.is_recorded());
    recorder.end(vec![EventKind::ended(Outcome::Failed, Some(Reason::Timeout))]).unwrap();
    assert_eq!(
        names(&recorder.events()),
        ["run.started", "attempt.started", "attempt.finished", "run.ended"]
    );
    let counted = journal.successes(Timestamp::from_millis(0)).unwrap();
    assert_eq!(counted.into_iter().collect::<Vec<_>>(), [("request".to_owned(), 3)]);
}

#[test]
fn what_cannot_be_recorded_is_told_all_the_same_with_one_warning() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    std::fs::write(&state, "a file where the state folder should be").unwrap();
    let warnings = Arc::new(Warnings::default());
    let project = project_with(folder.path(), &state, Arc::clone(&warnings) as Arc<_>);
    let seen = Arc::new(Seen::default());
    let opening = |required| Opening {
        required,
        observers: vec![Arc::clone(&seen) as Arc<_>],
        first: vec![started()],
        ..Opening::new("exec")
    };
    assert!(Recorder::begin(&project, opening(true)).is_err());
    let recorder = Recorder::begin(&project, opening(false)).unwrap();
    recorder.append(vec![attempt_started()]).unwrap();
    recorder.append(vec![attempt_finished(false)]).unwrap();
    recorder.end(vec![EventKind::ended(Outcome::Failed, None)]).unwrap();
    assert_eq!(*seen.0.lock().unwrap(), ["attempt.started", "attempt.finished", "run.ended"]);
    assert_eq!(warnings.0.lock().unwrap().len(), 1);
}

#[test]
fn observers_are_told_of_what_was_written_though_that_was_not_confirmed() {
    let scratch = scratch();
    let seen = Arc::new(Seen::default());
    let observers = vec![Arc::clone(&seen) as Arc<_>];
    let opening = Opening { observers, first: vec![started()], required: true, ..Opening::new("run") };
    let recorder = Recorder::begin(&scratch.project, opening).unwrap();
    recorder.append(vec![attempt_started()]).unwrap();
    let journal = scratch.project.journal().unwrap();
    let unconfirmed =
        backstop_store::RunJournal::resume(journal, recorder.run(), process::current()).unwrap();
    unconfirmed.append(vec![attempt_finished(false)]).unwrap();
    assert!(recorder.continue_from(9).is_err());
    assert_eq!(*seen.0.lock().unwrap(), ["run.started", "attempt.started"]);
    recorder.continue_from(3).unwrap();
    assert_eq!(*seen.0.lock().unwrap(), ["run.started", "attempt.started", "attempt.finished"]);
    assert_eq!(recorder.version(), 3);
    recorder.continue_from(3).unwrap();
    assert_eq!(seen.0.lock().unwrap().len(), 3, "once");
}

#[derive(Default)]
struct Seen(Mutex<Vec<&'static str>>);

impl Observer for Seen {
    fn recorded(&self, events: &[Event]) {
        self.0.lock().unwrap().extend(names(events));
    }
}

/// Looks at guards and breakers at the moment in which each event was recorded.
struct Order {
    project: Arc<Project>,
    log: Mutex<Vec<String>>,
}

impl Observer for Order {
    fn recorded(&self, events: &[Event]) {
        let closed = self.project.existing_limits().unwrap().is_some_and(|store| {
            store.guard(&provider()).unwrap().is_some_and(|guard| guard.closed.is_some())
        });
        let failures: u32 = self
            .project
            .existing_limits()
            .unwrap()
            .map(|store| store.breakers().unwrap().iter().map(|b| b.breaker.failures).sum())
            .unwrap_or(0);
        let mut log = self.log.lock().unwrap();
        for event in events {
            let guard = if closed { "closed" } else { "open" };
            log.push(format!("{} {guard} {failures}", event.kind.name()));
        }
    }
}

fn provider() -> Name {
    "anthropic".parse().unwrap()
}

/// Attempts an operation that fails with these reasons, one after the other, and then succeeds.
fn attempt(scratch: &Scratch, budget: Option<&str>, reasons: &[Reason]) -> Vec<String> {
    let project = &scratch.project;
    let order = Arc::new(Order { project: Arc::clone(project), log: Mutex::default() });
    let opening = Opening {
        first: vec![started()],
        observers: vec![Arc::clone(&order) as Arc<_>],
        ..Opening::new("request")
    };
    let recorder = Arc::new(Recorder::begin(project, opening).unwrap());
    let limits = OperationLimits {
        provider: Some(provider()),
        budget: budget.map(|name| name.parse().unwrap()),
        scope: BudgetScope { run: recorder.run(), task: None },
        operation: "GET /".to_owned(),
        place: "here: GET /".to_owned(),
        wait_max: Duration::from_secs(60),
        client: None,
        command: String::new(),
        learns: true,
    };
    let admission = Admission::new(Arc::clone(project)).operation(limits, None).unwrap();
    let run = OperationRun {
        project: Arc::clone(project),
        recorder: Arc::clone(&recorder),
        admission: Arc::new(admission),
        classifier: Arc::new(project.classifier(&[]).unwrap()),
        policy: profile("request").unwrap().into(),
        cancel: Cancel::new(),
        deadline: None,
        repeatable: true,
        confirm_with: String::new(),
    };
    let reasons = reasons.to_vec();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let finished = runtime.block_on(run.attempt("GET /", move |attempt: Attempt| {
        let reason = reasons.get(attempt.number as usize - 1).copied();
        async move {
            let Some(reason) = reason else { return Ok(()) };
            let mut fault = Fault::new(reason);
            fault.facts.retry_after_seconds = Some(0.2);
            Err(Failed::classified(fault, Dispatch::Answered))
        }
    }));
    run.learn(&finished);
    let outcome = if finished.result.is_ok() { Outcome::Done } else { Outcome::Failed };
    let mut last = finished.unrecorded;
    last.push(EventKind::ended(outcome, None));
    recorder.end(last).unwrap();
    let log = order.log.lock().unwrap();
    log.clone()
}

#[test]
fn a_guard_is_closed_after_the_failure_is_recorded() {
    let log = attempt(&scratch(), None, &[Reason::RateLimited]);
    assert_eq!(
        log,
        [
            "run.started open 0",
            "attempt.started open 0",
            "attempt.finished open 0",
            "error.classified open 0",
            "guard.updated closed 0",
            "decision.made closed 0",
            "guard.waited open 0",
            "attempt.started open 0",
            "attempt.finished open 0",
            "recovery.attempted open 0",
            "run.ended open 0",
        ]
        .map(str::to_owned),
    );
}

#[test]
fn a_breaker_counts_after_the_failure_is_recorded_and_says_that_it_opened() {
    let scratch = scratch();
    let mut log = Vec::new();
    for _ in 0..backstop_core::breaker::FAILURES_MAX {
        log = attempt(&scratch, None, &[Reason::ServiceDown; 9]);
    }
    let line = |kind: &str| log.iter().find(|line| line.starts_with(kind)).unwrap_or(&log[0]);
    assert_eq!(line("error.classified"), "error.classified open 4", "{log:?}");
    assert_eq!(line("breaker.opened"), "breaker.opened open 5", "{log:?}");
    assert_eq!(line("decision.made"), "decision.made open 5", "{log:?}");
}

#[test]
fn a_budget_is_spent_before_the_work_and_recorded() {
    let scratch = scratch();
    let budget =
        Budget { name: "night".parse().unwrap(), units: 1, per: Per::Total, unit: "iterations".to_owned() };
    let store: &LimitStore = scratch.project.limits().unwrap();
    store.set_budget(&budget).unwrap();
    let log = attempt(&scratch, Some("night"), &[Reason::NetworkTransient]);
    let kinds: Vec<&str> = log.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "run.started",
            "budget.consumed",
            "attempt.started",
            "attempt.finished",
            "error.classified",
            "decision.made",
            "budget.exhausted",
            "error.classified",
            "decision.made",
            "run.ended",
        ]
    );
}

#[test]
fn many_calls_at_once_share_one_guard_and_one_budget() {
    const CALLS: u64 = 64;
    let scratch = scratch();
    let project = &scratch.project;
    let budget =
        Budget { name: "night".parse().unwrap(), units: 50, per: Per::Total, unit: "iterations".to_owned() };
    project.limits().unwrap().set_budget(&budget).unwrap();
    let admission = Admission::new(Arc::clone(project));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcomes: Vec<bool> = runtime.block_on(async {
        let calls: Vec<_> = (0..CALLS)
            .map(|n| {
                let (project, admission) = (Arc::clone(project), Arc::clone(&admission));
                tokio::spawn(async move {
                    let opening = Opening { first: vec![started()], ..Opening::new("request") };
                    let recorder = Arc::new(Recorder::begin(&project, opening).unwrap());
                    let limits = OperationLimits {
                        provider: Some(provider()),
                        budget: Some("night".parse().unwrap()),
                        scope: BudgetScope { run: recorder.run(), task: None },
                        operation: "GET /".to_owned(),
                        place: format!("here: GET /{n}"),
                        wait_max: Duration::from_secs(60),
                        client: None,
                        command: String::new(),
                        learns: false,
                    };
                    let run = OperationRun {
                        project: Arc::clone(&project),
                        recorder,
                        admission: Arc::new(admission.operation(limits, None).unwrap()),
                        classifier: Arc::new(project.classifier(&[]).unwrap()),
                        policy: profile("request").unwrap().with_attempts(1).into(),
                        cancel: Cancel::new(),
                        deadline: None,
                        repeatable: true,
                        confirm_with: String::new(),
                    };
                    let call = |_: Attempt| async { Ok::<(), Failed>(()) };
                    run.attempt("GET /", call).await.result.is_ok()
                })
            })
            .collect();
        let mut outcomes = Vec::new();
        for call in calls {
            outcomes.push(call.await.unwrap());
        }
        outcomes
    });
    // Of 64 calls that share 50 units, exactly 50 were made.
    assert_eq!(outcomes.iter().filter(|admitted| **admitted).count(), 50);
    let left = project.limits().unwrap().budget_states().unwrap()[0].remaining();
    assert_eq!(left, 0);
}
