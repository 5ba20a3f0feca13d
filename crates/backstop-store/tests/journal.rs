//! What is recorded is read back, and a run's row follows its events.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use backstop_core::{Action, Decision, EventKind, Outcome, Reason, Record, RunId, SafeText, Timestamp};
use backstop_store::{EventFilter, Journal, RunFilter, RunHeader, RunJournal, RunState, StoreError};
use common::{HERE, Place, START, attempt, classified, ended, finished, header, started};

#[test]
fn what_is_appended_is_loaded() {
    let place = Place::new();
    let journal = place.journal();
    let first = RunHeader {
        session: Some("s-1".into()),
        caller: Some("agent".into()),
        parent: Some("r-0abc".parse().unwrap()),
        ..header(0x7f3a)
    };
    let run = journal.begin(first, vec![started("npm ci"), attempt("npm ci", 1)]).unwrap();
    place.set(START + 5);
    let decision = Decision {
        action: Action::Retry { after: std::time::Duration::from_secs(1), attempt: 2, of: 4 },
        why: "attempt 1 of 4".into(),
    };
    let stored = run
        .append(vec![
            finished("npm ci", 1),
            classified("npm ci", 1, Reason::NetworkTransient),
            EventKind::DecisionMade { operation: None, attempt: 1, decision, reclassified: None },
        ])
        .unwrap();
    run.record(vec![ended(Outcome::Done)]).unwrap();

    let events =
        Journal::open_existing(&place.folder, &place.project).unwrap().unwrap().load(run.id()).unwrap();
    assert_eq!(events.len(), 6);
    assert_eq!(events[2..5], stored[..]);
    assert!(events.iter().zip(1..).all(|(event, seq)| event.seq == seq && event.id.seq == seq));
    assert_eq!(events[0].kind, started("npm ci"));
    assert_eq!(events[0].session.as_ref().map(SafeText::raw), Some("s-1"));
    assert_eq!(events[0].caller.as_ref().map(SafeText::raw), Some("agent"));
    assert_eq!(events[0].at, Timestamp::from_millis(START));
    assert_eq!(events[2].at, Timestamp::from_millis(START + 5));
    assert_eq!(journal.load("r-ffff".parse().unwrap()).unwrap(), []);
    assert_eq!(run.append(vec![]).unwrap(), []);
    journal.check().unwrap();
}

#[test]
fn the_row_follows_the_events() {
    let place = Place::new();
    let journal = place.journal();
    let first = EventKind::RunStarted {
        operation: "plan.md".into(),
        folder: Some("/srv/shop".into()),
        profile: Some("phase".into()),
        parent: Some("r-0abc".parse().unwrap()),
    };
    let run = journal.begin(header(1), vec![first]).unwrap();
    let now = || journal.run(run.id()).unwrap().unwrap();
    assert_eq!((now().state, now().attempts, now().events), (RunState::Open, 0, 1));
    assert_eq!(now().parent, Some("r-0abc".parse().unwrap()));
    assert_eq!(now().profile.as_deref(), Some("phase"));

    run.append(vec![attempt("2a", 1), classified("2a", 1, Reason::TestFailure), attempt("2a", 2)]).unwrap();
    assert_eq!((now().attempts, now().reason), (2, Some(Reason::TestFailure)));

    let resume = "backstop resume r-0001".to_owned();
    run.append(vec![EventKind::RunHalted { reason: Reason::AuthError, resume: resume.clone() }]).unwrap();
    assert_eq!((now().state, now().reason), (RunState::Halted, Some(Reason::AuthError)));
    assert_eq!(now().next.as_ref().map(SafeText::raw), Some(&*resume));
    assert!(journal.runs(&RunFilter { open_only: true, ..RunFilter::default() }).unwrap().is_empty());

    let other = backstop_store::ProcessId { pid: 8, start: 43 };
    let again = RunJournal::resume(&journal, run.id(), other).unwrap();
    assert_eq!(now().process, HERE);
    again.append(vec![EventKind::RunResumed {}]).unwrap();
    assert_eq!((now().state, now().reason, now().next, now().process), (RunState::Open, None, None, other));

    place.set(START + 900);
    again
        .append(vec![EventKind::RunEnded {
            outcome: Outcome::Partial,
            reason: Some(Reason::QuorumFailure),
            attempts: 3,
            duration_ms: 900,
            exit: Some(3),
            next: Some("backstop again".into()),
        }])
        .unwrap();
    let end = now();
    assert_eq!((end.state, end.outcome, end.exit), (RunState::Ended, Some(Outcome::Partial), Some(3)));
    assert_eq!((end.attempts, end.duration_ms), (3, Some(900)));
    assert_eq!(end.ended_at, Some(Timestamp::from_millis(START + 900)));
    assert_eq!(end.started_at, Timestamp::from_millis(START));
    assert_eq!(end.operation.as_ref().map(SafeText::raw), Some("plan.md"));
    assert_eq!(end.events, 7);
}

#[test]
fn a_writer_goes_on_from_what_it_wrote_without_knowing() {
    let place = Place::new();
    let journal = place.journal();
    let run = journal.begin(header(0x7f3a), vec![started("npm ci")]).unwrap();
    let unaware = RunJournal::resume(&journal, run.id(), header(0x7f3a).process).unwrap();
    run.append(vec![attempt("npm ci", 1)]).unwrap();
    let error = unaware.continue_from(3).unwrap_err();
    assert_eq!(error, StoreError::Conflict { run: run.id(), expected: 3, found: 2 });
    unaware.append_at(2, vec![finished("npm ci", 1)]).unwrap_err();
    unaware.continue_from(2).unwrap();
    unaware.append_at(2, vec![finished("npm ci", 1)]).unwrap();
    assert_eq!(journal.load(run.id()).unwrap().len(), 3);
}

#[test]
fn a_writer_that_knows_an_old_version_writes_nothing() {
    let place = Place::new();
    let journal = place.journal();
    let run = journal.begin(header(1), vec![started("a")]).unwrap();
    let other = RunJournal::resume(&place.journal(), run.id(), HERE).unwrap();
    other.append(vec![attempt("a", 1)]).unwrap();
    let error = run.append(vec![ended(Outcome::Done)]).unwrap_err();
    assert_eq!(error, StoreError::Conflict { run: run.id(), expected: 1, found: 2 });
    assert!(run.record(vec![ended(Outcome::Done)]).is_err());
    assert_eq!(journal.load(run.id()).unwrap().len(), 2);
    assert_eq!(journal.run(run.id()).unwrap().unwrap().state, RunState::Open);
    assert_eq!(run.version(), 1);
    let error = other.append_at(1, vec![ended(Outcome::Done)]).unwrap_err();
    assert_eq!(error, StoreError::Conflict { run: run.id(), expected: 1, found: 2 });
    assert_eq!(other.append_at(2, vec![ended(Outcome::Done)]).unwrap()[0].seq, 3);
    assert!(matches!(
        RunJournal::resume(&journal, "r-ffff".parse().unwrap(), HERE),
        Err(StoreError::NoSuchRun { .. })
    ));
}

#[test]
fn a_taken_id_grows() {
    let place = Place::new();
    let journal = place.journal();
    let ids: Vec<String> =
        (0..40).map(|_| journal.begin(header(0x7f3a_1234), vec![]).unwrap().id().to_string()).collect();
    assert_eq!(ids[0].len(), "r-7f3a".len());
    assert_eq!(ids[1].len(), "r-7f3a5".len());
    let different: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(different.len(), ids.len());
}

#[test]
fn runs_are_listed_newest_first_and_filtered() {
    let place = Place::new();
    let journal = place.journal();
    for n in 0..6_u64 {
        place.set(START + i64::try_from(n).unwrap() * 1000);
        let run = journal.begin(header(n << 8), vec![started(&format!("Make {n}"))]).unwrap();
        if n % 2 == 0 {
            run.append(vec![ended(if n == 4 { Outcome::Failed } else { Outcome::Done })]).unwrap();
        }
    }
    let names = |filter: RunFilter| -> Vec<String> {
        let runs = journal.runs(&filter).unwrap();
        runs.iter().map(|run| run.operation.as_ref().unwrap().raw().to_owned()).collect()
    };
    let all = RunFilter::default;
    assert_eq!(names(RunFilter { limit: 2, ..all() }), ["Make 5", "Make 4"]);
    assert_eq!(names(RunFilter { open_only: true, ..all() }), ["Make 5", "Make 3", "Make 1"]);
    assert_eq!(names(RunFilter { outcome: Some(Outcome::Failed), ..all() }), ["Make 4"]);
    assert_eq!(names(RunFilter { since: Some(Timestamp::from_millis(START + 5000)), ..all() }), ["Make 5"]);
    assert_eq!(names(RunFilter { operation_contains: Some("mAKE 3".into()), ..all() }), ["Make 3"]);
    assert_eq!(names(RunFilter { operation_contains: Some("%' OR 1".into()), ..all() }).len(), 0);
    assert_eq!(names(RunFilter { surface: Some("hook".into()), ..all() }).len(), 0);
}

#[test]
fn events_are_followed_by_their_position() {
    let place = Place::new();
    let journal = place.journal();
    let one = journal.begin(header(1), vec![started("one")]).unwrap();
    let two = journal.begin(header(2), vec![started("two")]).unwrap();
    one.append(vec![classified("one", 1, Reason::Timeout)]).unwrap();
    let seen = journal.events(&EventFilter::default()).unwrap();
    let runs: Vec<RunId> = seen.iter().map(|(_, event)| event.run).collect();
    assert_eq!(runs, [one.id(), two.id(), one.id()]);
    assert!(seen.is_sorted_by_key(|(position, _)| *position));
    assert_eq!(seen[2].1, journal.load(one.id()).unwrap()[1]);

    let after = EventFilter { after: Some(seen[2].0), ..EventFilter::default() };
    assert_eq!(journal.events(&after).unwrap(), []);
    two.append(vec![ended(Outcome::Done)]).unwrap();
    assert_eq!(journal.events(&after).unwrap().len(), 1);

    let count = |filter: EventFilter| journal.events(&filter).unwrap().len();
    let all = EventFilter::default;
    assert_eq!(count(EventFilter { run: Some(two.id()), ..all() }), 2);
    assert_eq!(count(EventFilter { reason: Some(Reason::Timeout), ..all() }), 1);
    assert_eq!(count(EventFilter { kind: Some("run.started".into()), ..all() }), 2);
    assert_eq!(count(EventFilter { since: Some(Timestamp::from_millis(START + 1)), ..all() }), 0);
    assert_eq!(count(EventFilter { limit: 2, ..all() }), 2);
}

#[test]
fn recent_attempts_are_counted() {
    let place = Place::new();
    let journal = place.journal();
    let run = journal.begin(header(1), vec![started("a"), attempt("a", 1)]).unwrap();
    place.set(START + 1000);
    run.append(vec![attempt("a", 2), attempt("b", 1), attempt("a", 3)]).unwrap();
    let since = |millis| {
        let found = journal.recent_attempts(Timestamp::from_millis(millis)).unwrap();
        (found.attempts, found.retries)
    };
    assert_eq!(since(START), (4, 2));
    assert_eq!(since(START + 1), (3, 2));
    assert_eq!(since(START + 1001), (0, 0));
    // What a clock that was ahead recorded does not count as recent for ever.
    place.set(START + 500);
    assert_eq!(since(START), (1, 0));
}
