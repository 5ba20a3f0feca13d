//! Shared limits, with many who ask at once.
#![allow(missing_docs, clippy::unwrap_used)]

use backstop_core::breaker::Pass;
use backstop_core::guard::{Closed, GuardKey};
use backstop_core::request_window::{RequestsLeft, WindowStep};
use backstop_core::{BootTime, Clock, Hints, Name, Reason, Redactor, Timestamp};
use backstop_store::{Budget, LimitStore, Per, ProcessId, Spending, StateFolder};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

struct Time(Arc<AtomicI64>);

fn folder(root: &Path) -> (StateFolder, Time) {
    let time = Arc::new(AtomicI64::new(1_700_000_000_000));
    let clock = Arc::clone(&time);
    let redactor = Arc::new(Redactor::new(["C4n4ry-Value"]));
    let now = Arc::new(move || Timestamp::from_millis(clock.load(Ordering::SeqCst)));
    (StateFolder::open(&root.join("state"), now, redactor).unwrap(), Time(time))
}

impl Time {
    fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1000, Ordering::SeqCst);
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn closed(time: &Time, seconds: u64) -> Option<Closed> {
    let now = time.now();
    Some(Closed {
        learned_at: now,
        until: now.after(Duration::from_secs(seconds)),
        why: "C4n4ry-Value".to_owned(),
        in_words: false,
    })
}

const HERE: ProcessId = ProcessId { pid: 7, start: 70 };
const GONE: ProcessId = ProcessId { pid: 8, start: 80 };

#[test]
fn a_guard_closes_and_opens_by_itself() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, time) = folder(temp.path());
    let store = LimitStore::open(&folder).unwrap();
    let openai = name("openai");
    assert_eq!(store.guard(&openai).unwrap(), None);
    store.learn(&openai, closed(&time, 60)).unwrap();
    assert_eq!(
        store.learn(&openai, closed(&time, 5)).unwrap().closed.unwrap().left(time.now()).as_secs(),
        60
    );
    assert!(store.learn(&openai, None).unwrap().closed.is_some(), "a good answer does not open it");
    let queue = || store.queue(&openai, &HERE).unwrap();
    assert_eq!((queue(), queue()), (0, 1));
    time.pass(61);
    let open = store.guard(&openai).unwrap().unwrap();
    assert_eq!((open.closed, open.answers, open.refusals), (None, 3, 2));
    store.learn(&openai, closed(&time, 60)).unwrap();
    assert_eq!(queue(), 0, "a new queue for a new opening");
    assert!(store.clear_guard(&openai).unwrap());
    assert!(!store.clear_guard(&openai).unwrap());
    let bytes = std::fs::read(temp.path().join("state/limits.db-wal")).unwrap_or_default();
    assert!(!bytes.windows(12).any(|w| w == b"C4n4ry-Value"));
}

#[test]
fn a_waiter_that_was_killed_does_not_wait() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, time) = folder(temp.path());
    let store = LimitStore::open(&folder).unwrap();
    let key = GuardKey::unknown_account(name("openai"));
    store.learn(&key, closed(&time, 60)).unwrap();
    let first = store.queue(&key, &HERE).unwrap();
    store.queue(&key, &HERE).unwrap();
    store.queue(&key, &GONE).unwrap();
    let waiting = || store.waiting(&key, &|process| *process == HERE).unwrap();
    assert_eq!(waiting(), 2);
    store.leave_queue(&key, first, &HERE).unwrap();
    assert_eq!(waiting(), 1);
}

#[test]
fn what_a_sentence_closed_is_probed_by_one_and_opened_by_its_success() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, time) = folder(temp.path());
    let store = LimitStore::open(&folder).unwrap();
    let (words, field) = (name("anthropic"), name("openai"));
    let long = closed(&time, 16 * 3600).unwrap();
    store.learn(&field, Some(long.clone())).unwrap();
    store.learn(&words, Some(Closed { in_words: true, ..long })).unwrap();
    let probes = |name: &Name| (0..4).filter(|_| store.probe_guard(name).unwrap()).count();
    assert_eq!((probes(&words), probes(&field)), (0, 0), "not yet");
    time.pass(3600);
    assert_eq!((probes(&words), probes(&field)), (1, 0), "one of many; a field is believed");
    time.pass(3600);
    assert_eq!(probes(&words), 1);
    store.open_guard(&words).unwrap();
    assert_eq!(store.guard(&words).unwrap().unwrap().closed, None);
    assert!(store.guard(&field).unwrap().unwrap().closed.is_some());
}

/// A folder with a clock that nobody can set, and a boot that can change.
fn with_boot(folder: StateFolder, boot: &Arc<AtomicI64>, millis: &Arc<AtomicI64>) -> StateFolder {
    let (boot, millis) = (Arc::clone(boot), Arc::clone(millis));
    let load = |value: &AtomicI64| value.load(Ordering::SeqCst);
    folder.with_boot_clock(Arc::new(move || Some(BootTime { boot: load(&boot), millis: load(&millis) })))
}

#[test]
fn a_clock_that_is_set_back_or_forward_keeps_nothing_closed_and_opens_nothing_early() {
    const TEN_DAYS: i64 = 10 * 24 * 3600;
    let temp = tempfile::tempdir().unwrap();
    let (folder, time) = folder(temp.path());
    let (boot, millis) = (Arc::new(AtomicI64::new(1)), Arc::new(AtomicI64::new(500_000)));
    let store = LimitStore::open(&with_boot(folder, &boot, &millis)).unwrap();
    let (groq, night) = (name("groq"), name("night"));
    store.learn(&groq, closed(&time, 600)).unwrap();
    for _ in 0..backstop_core::breaker::FAILURES_MAX {
        store.tell_breaker(&groq, "curl", false).unwrap();
    }
    let budget = Budget { name: night.clone(), units: 1, per: Per::Day, unit: "x".to_owned() };
    store.set_budget(&budget).unwrap();
    let today = store.budget_day(&night).unwrap();
    store.spend(&night, &today, 1).unwrap();
    // Somebody sets the clock forward, and puts it right again.
    time.pass(TEN_DAYS);
    let ahead = store.guard(&groq).unwrap().unwrap().closed.map(|c| c.left(time.now()).as_secs());
    assert_eq!(ahead, Some(600));
    assert_eq!(store.ask_breaker(&groq, "curl").unwrap(), Pass::Open(Duration::from_secs(30)));
    assert_eq!(store.budget_day(&night).unwrap(), today);
    time.pass(-TEN_DAYS);
    // Twenty seconds later somebody sets the clock back.
    time.pass(20 - TEN_DAYS);
    millis.fetch_add(20_000, Ordering::SeqCst);
    let left = || store.guard(&groq).unwrap().unwrap().closed.map(|c| c.left(time.now()).as_secs());
    assert_eq!(left(), Some(580));
    assert_eq!(store.ask_breaker(&groq, "curl").unwrap(), Pass::Open(Duration::from_secs(10)));
    assert_eq!(store.budget_day(&night).unwrap(), today);
    // What is learned now, on the new clock, is settled no second time.
    assert_eq!(store.learn(&groq, closed(&time, 5)).unwrap().closed.unwrap().left(time.now()).as_secs(), 580);
    time.pass(580);
    millis.fetch_add(580_000, Ordering::SeqCst);
    assert_eq!(left(), None);
    assert_eq!(store.ask_breaker(&groq, "curl").unwrap(), Pass::Probe);
    // A day of real time later it is a new day.
    millis.fetch_add(24 * 3600 * 1000, Ordering::SeqCst);
    assert_ne!(store.budget_day(&night).unwrap(), today);
    // After a restart of the machine only the wall clock is known, within the length that was
    // learned.
    store.learn(&groq, closed(&time, 600)).unwrap();
    boot.store(2, Ordering::SeqCst);
    time.pass(-TEN_DAYS);
    assert_eq!(left(), Some(600));
    // After a restart, a clock that is set forward opens it: it is asked again.
    time.pass(2 * TEN_DAYS);
    assert_eq!(left(), None);
}

#[test]
fn limits_of_the_format_before_are_read_and_brought_up() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, time) = folder(temp.path());
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats/limits-v2.db");
    let file = folder.root().join("limits.db");
    std::fs::copy(golden, &file).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    // A moment after it was written.
    time.0.store(1_794_962_206_000, Ordering::SeqCst);
    let store = LimitStore::open(&folder).unwrap();
    let closed = store.guard(&name("openai")).unwrap().unwrap().closed.unwrap();
    assert_eq!((closed.left(time.now()).as_secs(), closed.in_words), (599, false));
    assert_eq!(store.ask_breaker(&name("groq"), "sh -c").unwrap(), Pass::Open(Duration::from_millis(29_843)));
    assert_eq!(store.remaining(&name("night"), "2026-11-18").unwrap(), Some(4));
    assert!(matches!(
        store.spend(&name("night"), "2026-11-18", 4).unwrap(),
        Spending::Spent { remaining: 0 }
    ));
    store.queue(&name("openai"), &HERE).unwrap();
}

#[test]
fn limits_of_format_3_are_brought_up() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, time) = folder(temp.path());
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats/limits-v3.db");
    let file = folder.root().join("limits.db");
    std::fs::copy(golden, &file).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    time.0.store(1_795_008_833_385, Ordering::SeqCst);
    let store = LimitStore::open(&folder).unwrap();
    let closed = store.guard(&name("openai")).unwrap().unwrap().closed.unwrap();
    assert_eq!((closed.left(time.now()).as_secs(), closed.in_words), (599, true));
    let key = GuardKey::unknown_account(name("openai"));
    assert_eq!(store.take_request(&key).unwrap().1, WindowStep::Go(0));
}

#[test]
fn many_take_requests_of_one_window_and_none_is_taken_twice() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, time) = folder(temp.path());
    let key = GuardKey::unknown_account(name("openai"));
    let header = |name: &str, value: &str| (format!("x-ratelimit-{name}-requests"), value.to_owned());
    let headers = [header("limit", "50"), header("remaining", "40"), header("reset", "60s")];
    let hints = Hints::read(&headers, None, &Clock::utc(time.now()));
    LimitStore::open(&folder).unwrap().learn_window(&key, 0, RequestsLeft::read(&hints)).unwrap();
    let taken = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..16 {
            let (folder, key, taken) = (&folder, &key, &taken);
            scope.spawn(move || {
                let store = LimitStore::open(folder).unwrap();
                for _ in 0..10 {
                    if let WindowStep::Go(number) = store.take_request(key).unwrap().1 {
                        taken.lock().unwrap().push(number);
                    }
                }
            });
        }
    });
    let mut taken = taken.into_inner().unwrap();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), 40);
    // Whoever clears a guard wants it to be asked anew.
    let store = LimitStore::open(&folder).unwrap();
    store.clear_guard(&name("openai")).unwrap();
    assert_eq!(store.take_request(&key).unwrap().1, WindowStep::Go(0));
}

#[test]
fn sixteen_threads_lose_no_update() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, time) = folder(temp.path());
    let (anthropic, night) = (name("anthropic"), name("night"));
    let budget = Budget { name: night.clone(), units: 500, per: Per::Total, unit: "iterations".to_owned() };
    LimitStore::open(&folder).unwrap().set_budget(&budget).unwrap();
    let places = std::sync::Mutex::new(Vec::new());
    LimitStore::open(&folder).unwrap().learn(&anthropic, closed(&time, 3600)).unwrap();
    let granted = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for n in 0..16u64 {
            let (folder, places, granted, anthropic, night, time) =
                (&folder, &places, &granted, &anthropic, &night, &time);
            scope.spawn(move || {
                let store = LimitStore::open(folder).unwrap();
                for round in 0..50 {
                    store.learn(anthropic, closed(time, n * 50 + round)).unwrap();
                    let place = store.queue(anthropic, &HERE).unwrap();
                    places.lock().unwrap().push(place);
                    if matches!(store.spend(night, "all", 1).unwrap(), Spending::Spent { .. }) {
                        granted.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    let store = LimitStore::open(&folder).unwrap();
    let guard = store.guard(&anthropic).unwrap().unwrap();
    assert_eq!((guard.answers, guard.queue), (801, 800));
    assert_eq!(guard.closed.unwrap().left(time.now()).as_secs(), 3600);
    let mut places = places.into_inner().unwrap();
    places.sort_unstable();
    assert_eq!(places, (0..800).collect::<Vec<_>>());
    assert_eq!(granted.into_inner(), 500);
    let state = store.budget_states().unwrap().remove(0);
    assert_eq!((state.spent, state.refused, state.remaining()), (500, 300, 0));
}

#[test]
fn one_probe_is_let_through() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, time) = folder(temp.path());
    let store = LimitStore::open(&folder).unwrap();
    let (github, fetch) = (name("github"), "git fetch");
    for _ in 0..5 {
        assert_eq!(store.ask_breaker(&github, fetch).unwrap(), Pass::Closed);
        store.tell_breaker(&github, fetch, false).unwrap();
    }
    assert!(matches!(store.ask_breaker(&github, fetch).unwrap(), Pass::Open(_)));
    assert_eq!(store.ask_breaker(&github, "git push").unwrap(), Pass::Closed, "each operation has its own");
    time.pass(31);
    let passes: Vec<Pass> = std::thread::scope(|scope| {
        let asks: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| LimitStore::open(&folder).unwrap().ask_breaker(&github, fetch).unwrap()))
            .collect();
        asks.into_iter().map(|ask| ask.join().unwrap()).collect()
    });
    assert_eq!(passes.iter().filter(|pass| **pass == Pass::Probe).count(), 1, "{passes:?}");
    store.tell_breaker(&github, fetch, true).unwrap();
    assert_eq!(store.ask_breaker(&github, fetch).unwrap(), Pass::Closed);
    assert!(store.breakers().unwrap().is_empty());
}

#[test]
fn budgets_are_spent_before_work_and_given_back() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, _) = folder(temp.path());
    let store = LimitStore::open(&folder).unwrap();
    let fix = name("fix");
    assert_eq!(store.spend(&fix, "r-7f3a", 1).unwrap(), Spending::Unknown);
    store
        .set_budget(&Budget { name: fix.clone(), units: 2, per: Per::Run, unit: "iterations".to_owned() })
        .unwrap();
    assert_eq!(store.spend(&fix, "r-7f3a", 1).unwrap(), Spending::Spent { remaining: 1 });
    assert_eq!(store.spend(&fix, "r-7f3a", 1).unwrap(), Spending::Spent { remaining: 0 });
    assert_eq!(store.spend(&fix, "r-7f3a", 1).unwrap(), Spending::Exhausted { remaining: 0 });
    assert_eq!(
        store.spend(&fix, "r-0001", 1).unwrap(),
        Spending::Spent { remaining: 1 },
        "each run has its own"
    );
    assert_eq!(store.refund(&fix, "r-7f3a", 1).unwrap(), 1);
    assert_eq!(store.reset_budget(&fix, None).unwrap(), 2);
}

#[test]
fn experience_and_streaks_add_up() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, _) = folder(temp.path());
    let store = LimitStore::open(&folder).unwrap();
    store.note_experience("connect <n>", Reason::NetworkTransient, 2, 1, 1).unwrap();
    store.note_experience("connect <n>", Reason::NetworkTransient, 1, 1, 0).unwrap();
    let known = store.signature_history("connect <n>").unwrap().unwrap();
    assert_eq!((known.seen, known.retried, known.cured), (3, 2, 1));
    assert_eq!(store.note_streak("npm test", "3 tests").unwrap(), 1);
    assert_eq!(store.note_streak("npm test", "3 tests").unwrap(), 2);
    assert_eq!(store.note_streak("npm test", "another").unwrap(), 1);
    assert!(store.end_streak("npm test").unwrap());
    assert_eq!(store.streak("npm test").unwrap(), None);
}

#[test]
fn results_are_kept_for_a_while_and_within_bounds() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, time) = folder(temp.path());
    let store = LimitStore::open(&folder).unwrap();
    let ten = Duration::from_secs(600);
    assert!(store.keep_result("k", b"out", b"err").unwrap());
    assert_eq!(store.result("k", ten).unwrap().unwrap().stdout, b"out");
    time.pass(601);
    assert_eq!(store.result("k", ten).unwrap(), None);
    time.pass(-100_000);
    assert_eq!(store.result("k", ten).unwrap(), None, "from the future");
    assert!(!store.keep_result("large", &vec![0; 17 << 20], b"").unwrap());
    for n in 0..6 {
        time.pass(1);
        store.keep_result(&format!("k{n}"), &vec![0; 15 << 20], b"").unwrap();
    }
    assert!(store.result("k0", ten).unwrap().is_none() && store.result("k5", ten).unwrap().is_some());
}
