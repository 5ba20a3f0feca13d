//! The host with a log in memory and an executor that follows a script: no process, no git, no
//! plan.

use super::*;
use backstop_core::{
    Delivery, EVENT_SCHEMA, EventId, PhaseRecord, PlanRecord, RunId, SafeText, Timestamp, profile,
};
use std::sync::Mutex;
use std::sync::mpsc::channel;

/// A log in memory. It can be told to refuse from some version on, or to fail once.
#[derive(Default)]
struct MemoryLog {
    events: Mutex<Vec<Event>>,
    full_at: Option<u64>,
    /// The next failures, the first one first.
    failures: Mutex<VecDeque<Failing>>,
    continued_from: Mutex<Vec<u64>>,
    refuses_to_continue: bool,
}

/// The log fails once, when events of a kind are appended.
struct Failing {
    kind: &'static str,
    /// What is on record all the same.
    writes: Writes,
}

#[derive(Clone, Copy, PartialEq)]
enum Writes {
    Nothing,
    TheUpdate,
    SomethingElse,
    /// The same kinds of events, of other attempts.
    OtherAttempts,
    /// The same kinds of events, with other states.
    OtherStates,
}

fn of_other_attempts(mut kind: EventKind) -> EventKind {
    if let EventKind::AttemptFinished { attempt, .. } = &mut kind {
        *attempt += 1;
    }
    kind
}

fn with_other_states(mut kind: EventKind) -> EventKind {
    if let EventKind::StateEntered { state, .. } = &mut kind {
        "failed".clone_into(state);
    }
    kind
}

impl MemoryLog {
    fn kinds(&self) -> Vec<EventKind> {
        self.events.lock().unwrap().iter().map(|event| event.kind.clone()).collect()
    }

    /// The names of all events after the first two, which start the run.
    fn names(&self) -> Vec<String> {
        let name = |kind: &EventKind| match operation(kind) {
            Some(id) => format!("{} {}", kind.name(), id.raw()),
            None => kind.name().to_owned(),
        };
        self.kinds()[2..].iter().map(name).collect()
    }

    /// What kinds of events there are.
    fn has(&self, name: &str) -> bool {
        self.names().iter().any(|known| known.starts_with(name))
    }
}

fn unavailable() -> RunLogError {
    RunLogError::Unavailable {
        reason: Reason::ResourceContention,
        what: "the database is locked".into(),
        hint: "try again".into(),
    }
}

fn run_id() -> RunId {
    "r-7f3a".parse().unwrap()
}

impl RunLog for MemoryLog {
    fn append(&self, expected: u64, kinds: Vec<EventKind>) -> Result<Vec<Event>, RunLogError> {
        let mut events = self.events.lock().unwrap();
        let found = events.len() as u64;
        if found != expected {
            return Err(RunLogError::Conflict { run: run_id(), expected, found, hint: String::new() });
        }
        if self.full_at.is_some_and(|full| found >= full) {
            return Err(RunLogError::Unavailable {
                reason: Reason::DiskFull,
                what: "the disk is full".into(),
                hint: "free some".into(),
            });
        }
        let fails = {
            let mut failures = self.failures.lock().unwrap();
            let is_due = |next: &mut Failing| kinds.iter().any(|kind| kind.name() == next.kind);
            failures.pop_front_if(is_due).map(|failing| failing.writes)
        };
        let kinds = match fails {
            Some(Writes::SomethingElse) => {
                vec![EventKind::StateMessage { message: SafeText::new("somebody else was here") }]
            }
            Some(Writes::OtherAttempts) => kinds.into_iter().map(of_other_attempts).collect(),
            Some(Writes::OtherStates) => kinds.into_iter().map(with_other_states).collect(),
            None | Some(Writes::Nothing | Writes::TheUpdate) => kinds,
        };
        let event = |(seq, kind): (u64, EventKind)| Event {
            schema: EVENT_SCHEMA,
            id: EventId { run: run_id(), seq },
            run: run_id(),
            seq,
            at: Timestamp::from_millis(0),
            session: None,
            surface: "run".into(),
            caller: None,
            kind,
        };
        let new: Vec<Event> = (found + 1..).zip(kinds).map(event).collect();
        if fails != Some(Writes::Nothing) {
            events.extend(new.clone());
        }
        match fails {
            None => Ok(new),
            Some(_) => Err(unavailable()),
        }
    }

    fn load(&self) -> Result<Vec<Event>, RunLogError> {
        Ok(self.events.lock().unwrap().clone())
    }

    fn continue_from(&self, version: u64) -> Result<(), RunLogError> {
        self.continued_from.lock().unwrap().push(version);
        match self.refuses_to_continue {
            true => Err(unavailable()),
            false => Ok(()),
        }
    }
}

/// A node, and what it waits for.
type Node<'n> = (&'n str, &'n [&'n str]);

/// Nodes that are all declared to run beside each other.
fn nodes(list: &[Node<'_>]) -> EventKind {
    let own = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let phase = |(id, depends_on): &Node<'_>| PhaseRecord {
        id: (*id).to_owned(),
        depends_on: own(depends_on),
        parallel_with: list
            .iter()
            .map(|(other, _)| (*other).to_owned())
            .filter(|other| other != id)
            .collect(),
        repeatable: true,
        ..PhaseRecord::default()
    };
    let plan = PlanRecord { phases: list.iter().map(phase).collect(), ..PlanRecord::default() };
    EventKind::PlanLoaded { plan: Box::new(plan) }
}

type Script<'s> = dyn Fn(&AttemptJob) -> AttemptResult + Sync + 's;

/// An executor that follows a script.
struct Scripted<'s> {
    attempt: &'s Script<'s>,
    integrates: bool,
    refused: Mutex<Vec<String>>,
    integrated: Mutex<Vec<(String, bool)>>,
}

impl<'s> Scripted<'s> {
    fn new(attempt: &'s Script<'s>) -> Self {
        Self { attempt, integrates: false, refused: Mutex::default(), integrated: Mutex::default() }
    }
}

impl Executor for Scripted<'_> {
    type Record = RunProgress;
    type Conclusion = &'static str;

    fn integrates(&self) -> bool {
        self.integrates
    }

    fn attempt(&self, job: &AttemptJob, _: &Reporter) -> AttemptResult {
        (self.attempt)(job)
    }

    fn refused(&self, job: &AttemptJob, fault: &Fault) {
        self.refused.lock().unwrap().push(format!("{}: {}", job.id, fault.reason));
    }

    fn integrate(&self, job: &IntegrationJob, _: &Reporter) -> IntegrationResult {
        self.integrated.lock().unwrap().push((job.id.clone(), job.resumed));
        IntegrationResult::Done { tip: Some(format!("tip-{}", job.id)), commit: None, events: Vec::new() }
    }

    fn conclude(
        &self,
        record: &RunProgress,
        _: &Stop,
        _: &Reporter,
    ) -> Result<Concluded<&'static str>, Box<Fault>> {
        let commit =
            EventKind::CommitMade { operation: record.operation.clone(), sha: "abc".into(), subject: None };
        Ok(Concluded { events: vec![commit], conclusion: "there" })
    }
}

fn ok() -> AttemptResult {
    AttemptResult::succeeded(Delivery::default())
}

fn fails(reason: Reason) -> AttemptResult {
    AttemptResult { dispatch: backstop_core::Dispatch::Answered, ..AttemptResult::failed(Fault::new(reason)) }
}

fn start(log: &MemoryLog, list: &[Node<'_>]) {
    let started =
        EventKind::RunStarted { operation: "plan.md".into(), folder: None, profile: None, parent: None };
    log.append(0, vec![started, nodes(list)]).unwrap();
}

/// Time that goes on by a minute whenever somebody looks: no wait is sat out.
fn minutes() -> impl Fn() -> Duration + Sync {
    let looks = std::sync::atomic::AtomicU64::new(0);
    move || Duration::from_secs(60 * looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}

fn go<'h>(
    log: &'h MemoryLog,
    executor: &'h Scripted<'_>,
    admission: &'h dyn Admission,
    observers: Vec<&'h mut dyn Observer<RunProgress>>,
) -> Result<Ending<RunProgress, &'static str>, HostError> {
    let mut record = RunProgress::default();
    log.load()?.iter().for_each(|event| record.apply(event));
    // It lives as long as the observers do.
    let clock: &'h _ = Box::leak(Box::new(minutes()));
    let (_asks, requests) = channel();
    Host::new(HostParts {
        log,
        record,
        opened: Vec::new(),
        rules: Rules { jobs: 4, ..Rules::default() },
        policy: Arc::new(profile("phase").unwrap()),
        recovery_disabled: false,
        executor,
        admission,
        observers,
        is_stage: false,
        concludes: &|end| *end == End::Complete,
        halt_timeout: None,
        resume: "backstop run plan.md".into(),
        pass_time: None,
        start_after: Duration::ZERO,
        clock,
        annotate_fault: &|_| {},
        random: &|| 0.5,
    })?
    .run(requests)
}

/// An admission that looks at the log whenever it is asked or told.
struct Guard<'g> {
    log: &'g MemoryLog,
    refuses: Option<&'static str>,
    told: Mutex<Vec<(String, Vec<String>)>>,
}

impl<'g> Guard<'g> {
    fn new(log: &'g MemoryLog) -> Self {
        Self { log, refuses: None, told: Mutex::default() }
    }

    fn note(&self, what: String) {
        self.told.lock().unwrap().push((what, self.log.names()));
    }
}

impl Admission for Guard<'_> {
    fn before(&self, job: &AttemptJob, _: Waiting<'_>) -> Result<Vec<EventKind>, Refusal> {
        self.note(format!("before {} {}", job.id, job.attempt));
        let budget = "plan".parse().unwrap();
        if self.refuses == Some(job.id.as_str()) {
            let fault = Box::new(Fault::new(Reason::BudgetExhausted));
            return Err(Refusal { fault, events: vec![EventKind::BudgetExhausted { budget }] });
        }
        Ok(vec![EventKind::BudgetConsumed { budget, units: 1, remaining: 9 }])
    }

    fn failed(&self, node: usize, fault: &Fault) -> Vec<EventKind> {
        self.note(format!("failed {node} {}", fault.reason));
        vec![EventKind::GuardUpdated { provider: "anthropic".parse().unwrap(), until: None }]
    }

    fn succeeded(&self, node: usize) -> Vec<EventKind> {
        self.note(format!("succeeded {node}"));
        Vec::new()
    }
}

#[test]
fn what_failed_is_recorded_before_the_admission_learns_of_it() {
    let log = MemoryLog::default();
    start(&log, &[("a", &[])]);
    let guard = Guard::new(&log);
    let script = |job: &AttemptJob| if job.attempt == 1 { fails(Reason::RateLimited) } else { ok() };
    let ending = go(&log, &Scripted::new(&script), &guard, Vec::new()).unwrap();
    assert_eq!(ending.end, End::Complete);
    let names = log.names();
    assert_eq!(
        names,
        [
            "attempt.started a",
            "budget.consumed",
            "attempt.finished a",
            "error.classified a",
            "guard.updated",
            "decision.made a",
            "wait.started a",
            "attempt.started a",
            "budget.consumed",
            "attempt.finished a",
            "recovery.attempted a",
            "state.entered a",
            "commit.made plan.md",
            "run.ended"
        ]
    );
    let told = guard.told.into_inner().unwrap();
    let at = |what: &str| told.iter().find(|(known, _)| known == what).map(|(_, log)| log.len());
    assert_eq!(at("before a 1"), Some(1), "the attempt is recorded before it is asked for");
    assert_eq!(at("failed 0 rate_limited"), Some(4), "the failure is recorded, and nothing is decided");
    assert_eq!(at("before a 2"), Some(8), "what was learned is recorded before the next attempt");
    assert_eq!(at("succeeded 0"), Some(12));
}

#[test]
fn an_attempt_that_is_refused_has_failed_and_taught_nobody_anything() {
    let log = MemoryLog::default();
    start(&log, &[("a", &[]), ("b", &["a"])]);
    let guard = Guard { refuses: Some("a"), ..Guard::new(&log) };
    let executor = Scripted::new(&|_| panic!("it must not be attempted"));
    let ending = go(&log, &executor, &guard, Vec::new()).unwrap();
    assert_eq!((ending.end, ending.reason), (End::Halted(vec![0]), Some(Reason::BudgetExhausted)));
    assert_eq!(
        log.names()[1..4],
        ["budget.exhausted", "attempt.finished a", "error.classified a"].map(str::to_owned)
    );
    assert!(!log.has("guard.updated"), "{:?}", log.names());
    assert_eq!(*executor.refused.lock().unwrap(), ["a: budget_exhausted"]);
    assert_eq!(ending.record.node(1).status, NodeStatus::Blocked);
}

#[test]
fn nodes_that_an_attempt_brings_are_run_after_it() {
    let log = MemoryLog::default();
    start(&log, &[("explore", &[])]);
    let order = Mutex::new(Vec::new());
    let script = |job: &AttemptJob| {
        order.lock().unwrap().push(job.id.clone());
        match job.id.as_str() {
            "explore" => AttemptResult {
                events: vec![nodes(&[("explore", &[]), ("build", &["explore"]), ("test", &["build"])])],
                ..ok()
            },
            _ => ok(),
        }
    };
    let ending = go(&log, &Scripted::new(&script), &(), Vec::new()).unwrap();
    assert_eq!((ending.end, ending.conclusion), (End::Complete, Some("there")));
    assert_eq!(*order.lock().unwrap(), ["explore", "build", "test"]);
    assert_eq!(log.names()[1..3], ["attempt.finished explore", "plan.loaded"].map(str::to_owned));
    assert_eq!(ending.record.count(NodeStatus::Complete), 3);
}

#[test]
fn an_old_node_that_has_not_begun_can_be_made_to_wait_for_a_new_one() {
    let log = MemoryLog::default();
    start(&log, &[("a", &[]), ("end", &["a"])]);
    let order = Mutex::new(Vec::new());
    let script = |job: &AttemptJob| {
        order.lock().unwrap().push(job.id.clone());
        let grown = nodes(&[("a", &[]), ("end", &["a", "more"]), ("more", &["a"])]);
        AttemptResult { events: if job.id == "a" { vec![grown] } else { Vec::new() }, ..ok() }
    };
    let executor = Scripted { integrates: true, ..Scripted::new(&script) };
    assert_eq!(go(&log, &executor, &(), Vec::new()).unwrap().end, End::Complete);
    assert_eq!(*order.lock().unwrap(), ["a", "more", "end"]);
}

#[test]
fn nodes_that_cannot_be_added_are_a_failure_and_not_recorded() {
    let cases: [(&[Node<'_>], Reason, &str); 4] = [
        (
            &[("a", &[]), ("b", &["a", "c"]), ("c", &["b"])],
            Reason::CircularDependency,
            "these wait for each other: b -> c -> b",
        ),
        (&[("a", &[]), ("b", &["a"]), ("c", &["z"])], Reason::StateInvalid, "c names z, which is not there"),
        (&[("a", &["c"]), ("b", &["a"]), ("c", &[])], Reason::StateInvalid, "a has begun"),
        (&[("b", &["a"]), ("a", &[])], Reason::StateInvalid, "a was removed, moved"),
    ];
    for (grown, reason, cause) in cases {
        let log = MemoryLog::default();
        start(&log, &[("a", &[]), ("b", &["a"])]);
        let script = |_: &AttemptJob| AttemptResult { events: vec![nodes(grown)], ..ok() };
        let ending = go(&log, &Scripted::new(&script), &(), Vec::new()).unwrap();
        assert_eq!(ending.reason, Some(reason));
        let fault = &ending.record.node(0).errors[0].fault;
        assert!(fault.cause.as_ref().unwrap().raw().starts_with(cause), "{:?}", fault.cause);
        assert!(!log.has("plan.loaded"), "{:?}", log.names());
    }
}

/// An observer that writes down what it sees.
#[derive(Default)]
struct Notes {
    seen: Vec<String>,
    troubles: Vec<String>,
    broken: bool,
}

impl Observer<RunProgress> for Notes {
    fn started(&mut self, opened: &[Event], state: &HostState<'_, RunProgress>) -> Result<(), ObserverError> {
        self.seen.push(format!("started {} {}", opened.len(), state.record.order.len()));
        Ok(())
    }

    fn applied(&mut self, event: &Event, record: &RunProgress) {
        assert_eq!(event.seq, record.seq, "what comes after it is not applied yet");
    }

    fn recorded(&mut self, events: &[Event], _: &HostState<'_, RunProgress>) -> Result<(), ObserverError> {
        self.seen.extend(events.iter().map(|event| event.kind.name().to_owned()));
        if self.broken { Err(ObserverError("the disk is full".to_owned())) } else { Ok(()) }
    }

    fn trouble(&mut self, message: &str) {
        self.troubles.push(message.to_owned());
    }

    fn before_end(&mut self, state: &HostState<'_, RunProgress>) -> Result<(), ObserverError> {
        assert!(state.record.ended.is_none() && state.record.halted.is_none());
        self.seen.push("before the end".to_owned());
        Ok(())
    }

    fn closed(&mut self, _: &HostState<'_, RunProgress>) -> Result<(), ObserverError> {
        self.seen.push("closed".to_owned());
        Ok(())
    }
}

#[test]
fn observers_see_what_was_recorded_and_are_done_before_the_end_is() {
    let log = MemoryLog::default();
    start(&log, &[("a", &[])]);
    let (mut one, mut other) = (Notes::default(), Notes { broken: true, ..Notes::default() });
    go(&log, &Scripted::new(&|_| ok()), &(), vec![&mut one, &mut other]).unwrap();
    assert_eq!(one.seen[..2], ["started 0 1", "attempt.started"]);
    let last = one.seen.len() - 4;
    assert_eq!(one.seen[last..], ["commit.made", "before the end", "run.ended", "closed"]);
    assert_eq!(one.troubles[0], "the disk is full", "what one cannot do, all hear of");
    assert_eq!(one.troubles, other.troubles);
}

#[test]
fn where_nothing_can_be_recorded_nothing_is_done() {
    let log = MemoryLog { full_at: Some(2), ..MemoryLog::default() };
    start(&log, &[("a", &[])]);
    let mut notes = Notes::default();
    let executor = Scripted::new(&|_| panic!("it must not be attempted"));
    let error = go(&log, &executor, &(), vec![&mut notes]).unwrap_err();
    assert!(error.to_string().contains("nothing can be recorded: the disk is full"), "{error}");
    assert_eq!(error.hint(), "free some");
    assert_eq!(notes.seen, ["started 0 1", "closed"]);
}

/// A run of one node whose log fails when the end of the attempt is recorded.
fn log_that_fails(writes: &[Writes]) -> MemoryLog {
    log_that_fails_at("attempt.finished", writes)
}

fn log_that_fails_at(kind: &'static str, writes: &[Writes]) -> MemoryLog {
    let failures = Mutex::new(writes.iter().map(|writes| Failing { kind, writes: *writes }).collect());
    let log = MemoryLog { failures, ..MemoryLog::default() };
    start(&log, &[("a", &[])]);
    log
}

/// The strategies of recovery that were recorded, and whether they helped.
fn recoveries(log: &MemoryLog) -> Vec<(String, bool)> {
    let recovery = |kind: EventKind| match kind {
        EventKind::RecoveryAttempted { strategy, success, .. } => Some((strategy, success)),
        _ => None,
    };
    log.kinds().into_iter().filter_map(recovery).collect()
}

#[test]
fn an_update_that_is_due_is_recorded_once_more_after_its_failure() {
    let log = log_that_fails(&[Writes::Nothing]);
    let mut notes = Notes::default();
    let ending = go(&log, &Scripted::new(&|_| ok()), &(), vec![&mut notes]).unwrap();
    assert_eq!(ending.end, End::Complete);
    assert_eq!(
        log.names(),
        [
            "attempt.started a",
            "error.classified journal.append",
            "attempt.finished a",
            "state.entered a",
            "recovery.attempted journal.append",
            "commit.made plan.md",
            "run.ended"
        ]
    );
    assert_eq!(recoveries(&log), [("record_again".to_owned(), true)]);
    assert!(notes.seen.contains(&"error.classified".to_owned()), "observers are told: {:?}", notes.seen);
}

#[test]
fn an_update_that_is_on_record_already_is_not_recorded_twice() {
    let log = log_that_fails(&[Writes::TheUpdate]);
    let ending = go(&log, &Scripted::new(&|_| ok()), &(), Vec::new()).unwrap();
    assert_eq!(ending.end, End::Complete);
    let names = log.names();
    let count = |name: &str| names.iter().filter(|known| known.starts_with(name)).count();
    assert_eq!((count("attempt.finished"), count("error.classified")), (1, 1), "{names:?}");
    assert_eq!(*log.continued_from.lock().unwrap(), [5]);
    assert_eq!(recoveries(&log), [("already_recorded".to_owned(), true)]);
}

#[test]
fn an_update_is_not_recorded_after_events_that_nobody_here_knows() {
    let log = log_that_fails(&[Writes::SomethingElse]);
    let error = go(&log, &Scripted::new(&|_| ok()), &(), Vec::new()).unwrap_err();
    assert!(error.to_string().contains("the database is locked"), "{error}");
    assert!(!log.has("attempt.finished"), "{:?}", log.names());
}

#[test]
fn an_update_like_ours_of_somebody_else_is_not_ours() {
    for writes in [Writes::OtherAttempts, Writes::OtherStates] {
        let log = log_that_fails(&[writes]);
        let error = go(&log, &Scripted::new(&|_| ok()), &(), Vec::new()).unwrap_err();
        assert!(error.to_string().contains("the database is locked"), "{error}");
        assert_eq!((log.continued_from.lock().unwrap().len(), recoveries(&log)), (0, Vec::new()));
    }
}

#[test]
fn a_conflict_is_never_ours_whatever_the_other_one_wrote() {
    // What this one will write, to the letter.
    let whole = MemoryLog::default();
    start(&whole, &[("a", &[])]);
    go(&whole, &Scripted::new(&|_| ok()), &(), Vec::new()).unwrap();
    let update: Vec<EventKind> = whole.kinds().drain(3..5).collect();
    assert_eq!(update[0].name(), "attempt.finished");
    let log = MemoryLog::default();
    start(&log, &[("a", &[])]);
    let script = |_: &AttemptJob| {
        log.append(3, update.clone()).unwrap();
        ok()
    };
    let error = go(&log, &Scripted::new(&script), &(), Vec::new()).unwrap_err();
    assert!(matches!(error, HostError::Log(RunLogError::Conflict { expected: 3, found: 5, .. })), "{error}");
    assert_eq!((log.kinds().len(), recoveries(&log)), (5, Vec::new()), "nothing is written");
    assert_eq!(log.continued_from.lock().unwrap().len(), 0);
}

#[test]
fn an_update_that_cannot_be_recorded_twice_ends_the_run_and_says_so() {
    let log = log_that_fails(&[Writes::Nothing, Writes::Nothing]);
    let error = go(&log, &Scripted::new(&|_| ok()), &(), Vec::new()).unwrap_err();
    assert!(error.to_string().contains("the database is locked"), "{error}");
    assert_eq!(
        log.names(),
        ["attempt.started a", "error.classified journal.append", "recovery.attempted journal.append"]
    );
    assert_eq!(recoveries(&log), [("record_again".to_owned(), false)]);
}

#[test]
fn nothing_is_recorded_after_the_end_of_a_run() {
    for (writes, recovered) in
        [(Writes::Nothing, vec![("record_again".to_owned(), true)]), (Writes::TheUpdate, Vec::new())]
    {
        let log = log_that_fails_at("run.ended", &[writes]);
        assert_eq!(go(&log, &Scripted::new(&|_| ok()), &(), Vec::new()).unwrap().end, End::Complete);
        let names = log.names();
        assert_eq!(names.last().map(String::as_str), Some("run.ended"), "{names:?}");
        assert_eq!(names.iter().filter(|name| *name == "run.ended").count(), 1, "{names:?}");
        assert_eq!(recoveries(&log), recovered);
    }
}

#[test]
fn a_log_that_cannot_be_continued_ends_the_run() {
    let log = MemoryLog { refuses_to_continue: true, ..log_that_fails(&[Writes::TheUpdate]) };
    let error = go(&log, &Scripted::new(&|_| ok()), &(), Vec::new()).unwrap_err();
    assert!(error.to_string().contains("the database is locked"), "{error}");
    assert_eq!((log.continued_from.lock().unwrap().len(), recoveries(&log)), (1, Vec::new()));
}

#[test]
fn a_run_that_somebody_else_writes_to_stops() {
    let log = MemoryLog::default();
    start(&log, &[("a", &[]), ("b", &["a"])]);
    let script = |job: &AttemptJob| {
        let version = log.kinds().len() as u64;
        log.append(version, vec![EventKind::RunResumed {}]).unwrap();
        assert_eq!(job.id, "a", "nothing more is begun");
        ok()
    };
    let error = go(&log, &Scripted::new(&script), &(), Vec::new()).unwrap_err();
    assert!(matches!(error, HostError::Log(RunLogError::Conflict { expected: 3, found: 4, .. })), "{error}");
}

#[test]
fn delivered_work_is_integrated_and_not_done_again() {
    let log = MemoryLog::default();
    start(&log, &[("a", &[]), ("b", &[])]);
    let started = |id: &str| EventKind::AttemptStarted { operation: id.into(), attempt: 1 };
    let finished = |id: &str| EventKind::AttemptFinished {
        operation: id.into(),
        attempt: 1,
        success: true,
        duration_ms: 5,
        exit: Some(0),
        signal: None,
        output: None,
        delivery: None,
    };
    let begun = EventKind::IntegrationStarted { operation: "b".into(), attempt: 1, onto: None };
    let before = vec![started("a"), started("b"), finished("a"), finished("b"), begun];
    log.append(2, before).unwrap();
    log.append(7, vec![EventKind::RunResumed {}]).unwrap();
    let executor = Scripted { integrates: true, ..Scripted::new(&|_| panic!("it must not be attempted")) };
    assert_eq!(go(&log, &executor, &(), Vec::new()).unwrap().end, End::Complete);
    let integrated = executor.integrated.into_inner().unwrap();
    assert_eq!(integrated, [("b".to_owned(), true), ("a".to_owned(), false)]);
}

#[test]
fn a_failure_about_which_nothing_was_decided_is_not_cut_off() {
    let log = MemoryLog::default();
    start(&log, &[("a", &[])]);
    let started = EventKind::AttemptStarted { operation: "a".into(), attempt: 1 };
    log.append(2, vec![started]).unwrap();
    let record = |log: &MemoryLog| {
        let mut record = RunProgress::default();
        log.load().unwrap().iter().for_each(|event| record.apply(event));
        record
    };
    assert!(record(&log).node(0).is_cut_off());
    let finished = EventKind::AttemptFinished {
        operation: "a".into(),
        attempt: 1,
        success: false,
        duration_ms: 5,
        exit: Some(1),
        signal: None,
        output: None,
        delivery: None,
    };
    let fault = Box::new(Fault::new(Reason::TestFailure));
    let classified = EventKind::ErrorClassified { operation: "a".into(), attempt: 1, fault };
    log.append(3, vec![finished, classified]).unwrap();
    assert!(!record(&log).node(0).is_cut_off());
    log.append(5, vec![EventKind::RunResumed {}]).unwrap();
    let seen = Mutex::new(None);
    let script = |job: &AttemptJob| {
        *seen.lock().unwrap() = job.previous.as_ref().map(|fault| (job.attempt, fault.reason));
        ok()
    };
    go(&log, &Scripted::new(&script), &(), Vec::new()).unwrap();
    assert_eq!(*seen.lock().unwrap(), Some((2, Reason::TestFailure)), "the next attempt is told of it");
}

#[test]
fn a_panic_of_the_executor_is_a_failure() {
    let log = MemoryLog::default();
    start(&log, &[("a", &[])]);
    let script = |job: &AttemptJob| if job.attempt == 1 { panic!("a bug") } else { ok() };
    let ending = go(&log, &Scripted::new(&script), &(), Vec::new()).unwrap();
    assert_eq!(ending.record.node(0).errors[0].fault.reason, Reason::Crash);
    assert_eq!(ending.end, End::Complete);
}

#[test]
fn a_frozen_project_begins_nothing_more() {
    struct Frozen;
    impl Admission for Frozen {
        fn before(&self, _: &AttemptJob, _: Waiting<'_>) -> Result<Vec<EventKind>, Refusal> {
            Ok(Vec::new())
        }
        fn failed(&self, _: usize, _: &Fault) -> Vec<EventKind> {
            Vec::new()
        }
        fn frozen(&self) -> Option<Reason> {
            Some(Reason::SecurityBreach)
        }
    }
    let log = MemoryLog::default();
    start(&log, &[("a", &[]), ("b", &["a"])]);
    let ending = go(&log, &Scripted::new(&|_| ok()), &Frozen, Vec::new()).unwrap();
    assert_eq!((ending.end, ending.frozen), (End::Stopped, Some(Reason::SecurityBreach)));
    assert_eq!(ending.record.node(1).total, 0);
    assert!(ending.record.halted.is_some_and(|(reason, _)| reason == Reason::SecurityBreach));
}
