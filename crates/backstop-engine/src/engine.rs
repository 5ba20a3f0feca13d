//! The attempt loop: drives one attempt machine until the operation succeeds or ends.
//!
//! An operation enters, a [`Finished`] leaves. In between, for each attempt: ask the admission,
//! attempt, classify, record the failure, let the machine decide, record the decision, wait. The
//! loop must not decide anything itself, and must not act on a failure that is not recorded.

use crate::operation::{Attempt, Failed, Operation, SignalOrFault};
use crate::random::Random;
use crate::recent::RecentAttempts;
use crate::{Admission, Cancel};
use backstop_classify::Classifier;
use backstop_core::{
    Action, Decision, Dispatch, EventKind, Failure, Fault, Machine, Observe, Outcome, Policy, Reason, Recent,
    Record, RecordError, RetryBudget, SafeText, Verdict,
};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::time::Instant;

/// The built-in rules, made when the first failure needs them.
static BUILTIN: LazyLock<Classifier> = LazyLock::new(Classifier::builtin);

/// The name of the strategy that uses something else.
const FALLBACK: &str = "fallback";

type Provider<T> = Arc<dyn Fn() -> T + Send + Sync>;

/// Runs operations under one policy. Clones share the retry budget.
#[derive(Clone)]
pub struct Engine {
    policy: Arc<Policy>,
    /// The built-in rules where none are given.
    classifier: Option<Arc<Classifier>>,
    record: Arc<dyn Record>,
    random: Arc<Random>,
    recent: Arc<RecentAttempts>,
    recent_elsewhere: Option<Provider<Recent>>,
    budget: RetryBudget,
    cancel: Cancel,
    deadline: Option<Duration>,
    repeatable: bool,
    confirm_with: String,
    disabled: bool,
    observe: Option<Arc<Observe>>,
    admission: Option<Arc<dyn Admission>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("policy", &self.policy.name).finish_non_exhaustive()
    }
}

/// The end of an operation that did not succeed.
#[derive(Debug, Clone)]
pub struct Ending {
    /// How it ended, e.g. failed, deferred or interrupted.
    pub outcome: Outcome,
    /// The last fault, under the reason that it has once retries are used up.
    pub fault: Fault,
    /// The last decision, with its reason in words.
    pub decision: Decision,
}

/// The result of an operation, with its history.
#[derive(Debug)]
pub struct Finished<T> {
    /// The operation's own output, or how it ended without success.
    pub result: Result<T, Ending>,
    /// The number of attempts made.
    pub attempts: u32,
    /// The fault of each failed attempt, in order.
    pub faults: Vec<Fault>,
    /// The time from the first attempt to the end.
    pub elapsed: Duration,
    /// Events of the success that are not recorded yet. Callers append them to their next write, so
    /// that a success costs no write of its own.
    pub unrecorded: Vec<EventKind>,
    /// Whether it ended because the admission refused a start.
    pub refused: bool,
}

impl Engine {
    /// An engine under `policy`, with the built-in rules, that records nothing.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Self {
        Self {
            policy: policy.into(),
            classifier: None,
            record: Arc::new(()),
            random: Arc::new(Random::new()),
            recent: Arc::default(),
            recent_elsewhere: None,
            budget: RetryBudget::default(),
            cancel: Cancel::new(),
            deadline: None,
            repeatable: true,
            confirm_with: String::new(),
            disabled: false,
            observe: None,
            admission: None,
        }
    }

    /// Classifies failures with `classifier` instead of the built-in rules.
    pub fn classifying(mut self, classifier: Arc<Classifier>) -> Self {
        self.classifier = Some(classifier);
        self
    }

    /// Records events to `record`.
    pub fn recording(mut self, record: Arc<dyn Record>) -> Self {
        self.record = record;
        self
    }

    /// Stops the run when `cancel` fires; the attempt in progress is ended first.
    pub fn cancelled_by(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// No attempt begins later than `deadline` after the operation began.
    pub fn deadline(mut self, deadline: Option<Duration>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Whether an attempt whose result is unknown may be repeated. Where it may not, `confirm_with`
    /// is the command that repeats it.
    pub fn repeatable(mut self, repeatable: bool, confirm_with: impl Into<String>) -> Self {
        self.repeatable = repeatable;
        self.confirm_with = confirm_with.into();
        self
    }

    /// Calls `observe` for each fault, to add the machine's state to it.
    pub fn observed_by(mut self, observe: Arc<Observe>) -> Self {
        self.observe = Some(observe);
        self
    }

    /// Asks `admission` before each attempt and informs it of the result.
    pub fn admitted_by(mut self, admission: Arc<dyn Admission>) -> Self {
        self.admission = Some(admission);
        self
    }

    /// Turns every recovery off: one attempt, and its fault is returned.
    pub fn disabled(mut self, disabled: bool) -> Self {
        self.disabled = disabled;
        self
    }

    /// Limits the share of attempts that may be retries. `recent` counts the attempts of other
    /// processes; without it, only this engine's attempts count.
    pub fn budget(mut self, budget: RetryBudget, recent: Option<Provider<Recent>>) -> Self {
        self.budget = budget;
        self.recent_elsewhere = recent;
        self
    }

    /// Attempts an operation until it succeeds or the policy allows no further attempt.
    pub async fn run<O: Operation>(&self, name: &str, mut operation: O) -> Finished<O::Output> {
        let began = Instant::now();
        let name = SafeText::new(name);
        let mut machine = Machine::new(Arc::clone(&self.policy))
            .deadline(self.deadline)
            .budget(self.budget)
            .repeatable(self.repeatable)
            .compressible(operation.is_compressible())
            .fallbacks(operation.fallbacks())
            .confirm_with(self.confirm_with.clone())
            .disabled(self.disabled);
        let mut faults = Vec::new();
        let mut strategy: Option<&'static str> = None;
        let mut keep_percent = None;
        let mut fallback: Option<String> = None;
        let finish = |result, attempts, faults, unrecorded, refused| Finished {
            result,
            attempts,
            faults,
            elapsed: began.elapsed(),
            unrecorded,
            refused,
        };
        loop {
            if self.cancel.is_cancelled() {
                return finish(Err(interrupted()), machine.attempt(), faults, Vec::new(), false);
            }
            let number = machine.attempt() + 1;
            let left = || self.deadline.map(|deadline| deadline.saturating_sub(began.elapsed()));
            let attempt = Attempt {
                number,
                left: left(),
                cancel: self.cancel.clone(),
                keep_percent,
                fallback: fallback.clone(),
            };
            // A start that is refused is no attempt.
            if let Some(admission) = &self.admission
                && let Err(failed) = admission.before(&attempt, &*self.record).await
            {
                match self.refused(&name, &mut machine, &failed, began.elapsed()) {
                    Ok(to) => {
                        strategy = Some(FALLBACK);
                        fallback = Some(to);
                        continue;
                    }
                    Err(ending) => {
                        return finish(Err(*ending), machine.attempt(), faults, Vec::new(), true);
                    }
                }
            }
            // The guard may have been waited for.
            let attempt_left = left();
            let attempt = Attempt { left: attempt_left, ..attempt };
            machine.begin();
            self.recent.add(Instant::now(), number > 1);
            let started = EventKind::AttemptStarted { operation: name.clone(), attempt: number };
            if let Err(error) = self.record.record(vec![started]) {
                return finish(Err(unrecordable(&error)), number - 1, faults, Vec::new(), false);
            }
            let from = Instant::now();
            let ends_itself = operation.ends_itself();
            let result = if ends_itself {
                operation.attempt(attempt).await
            } else {
                tokio::select! {
                    biased;
                    result = operation.attempt(attempt) => result,
                    () = self.cancel.cancelled() => Err(Failed::classified(Fault::new(Reason::Interrupted), Dispatch::Lost)),
                    () = time_is_up(attempt_left) => Err(out_of_time(attempt_left)),
                }
            };
            let duration_ms = u64::try_from(from.elapsed().as_millis()).unwrap_or(u64::MAX);
            let success_exit = operation.success_exit();
            let finished = |success, failed: Option<&Failed>| EventKind::AttemptFinished {
                operation: name.clone(),
                attempt: number,
                success,
                duration_ms,
                exit: if success { Some(success_exit) } else { failed.and_then(|f| f.exit) },
                signal: failed.and_then(|f| f.signal.clone()),
                output: failed.and_then(|f| f.output.clone()),
                delivery: None,
            };
            let detail = strategy.and_then(|_| operation.recovery_detail());
            let recovery = |success| {
                strategy.map(|strategy| EventKind::RecoveryAttempted {
                    operation: None,
                    strategy: strategy.to_owned(),
                    success,
                    attempt: number,
                    detail: detail.clone(),
                })
            };
            let failed = match result {
                Ok(value) => {
                    machine.succeeded();
                    let mut unrecorded = vec![finished(true, None)];
                    unrecorded.extend(recovery(true));
                    unrecorded.extend(self.admission.iter().flat_map(|admission| admission.succeeded()));
                    return finish(Ok(value), number, faults, unrecorded, false);
                }
                Err(failed) => failed,
            };
            let fault = self.classify(&failed);
            let mut events = vec![finished(false, Some(&failed))];
            events.extend(recovery(false));
            events.push(EventKind::ErrorClassified {
                operation: name.clone(),
                attempt: number,
                fault: Box::new(fault.clone()),
            });
            // The failure is recorded before anything is done about it.
            let recorded = self.record.record(events);
            faults.push(fault.clone());
            if let Err(error) = recorded {
                return finish(Err(unrecordable(&error)), number, faults, Vec::new(), false);
            }
            // The failure is recorded; only now may limits change.
            let mut follows = match &self.admission {
                Some(admission) => admission.failed(&fault),
                None => Vec::new(),
            };
            let known = || self.admission.as_ref()?.experience(&fault);
            let experience = failed.experience.or_else(known);
            // Asked now: what succeeds need not wait for the answer.
            machine.needs_confirmation(operation.needs_confirmation());
            let verdict = machine.failed(&Failure {
                dispatch: failed.dispatch,
                random: self.random.next(),
                recent: self.recent(),
                retried_below: failed.retried_below,
                unrepeatable: failed.unrepeatable.as_deref(),
                nothing_done: failed.nothing_done,
                experience,
                ..Failure::new(&fault, began.elapsed())
            });
            follows.push(EventKind::DecisionMade {
                operation: None,
                attempt: number,
                decision: verdict.decision.clone(),
                reclassified: verdict.reclassified,
            });
            if let Err(error) = self.record.record(follows) {
                return finish(Err(unrecordable(&error)), number, faults, Vec::new(), false);
            }
            strategy = Some(verdict.decision.action.name());
            let wait = match &verdict.decision.action {
                Action::Retry { after, .. } => *after,
                // The guard first, then the delay: a delay that passes while the guard is closed
                // spreads nobody.
                Action::AwaitGuard { after, .. } => {
                    let attempt = Attempt {
                        number: number + 1,
                        left: left(),
                        cancel: self.cancel.clone(),
                        keep_percent,
                        fallback: fallback.clone(),
                    };
                    let waited = match &self.admission {
                        Some(admission) => admission.await_guard(&attempt, &*self.record).await,
                        None => Duration::ZERO,
                    };
                    let rest = after.saturating_sub(waited);
                    if waited.is_zero() { rest } else { rest.max(verdict.after_guard) }
                }
                Action::Compress { keep_percent: keep, .. } => {
                    keep_percent = Some(*keep);
                    Duration::ZERO
                }
                Action::Fallback { to } => {
                    fallback = Some(to.clone());
                    Duration::ZERO
                }
                _ => {
                    let ending = self.ending(fault, verdict);
                    return finish(Err(ending), number, faults, Vec::new(), false);
                }
            };
            if !self.wait(wait).await {
                let ending = Ending { fault, ..interrupted() };
                return finish(Err(ending), number, faults, Vec::new(), false);
            }
        }
    }

    /// Records a refused start, and how the operation ends because of it or what is used instead.
    fn refused(
        &self,
        name: &SafeText,
        machine: &mut Machine,
        failed: &Failed,
        now: Duration,
    ) -> Result<String, Box<Ending>> {
        let attempt = machine.attempt() + 1;
        let fault = self.classify(failed);
        let classified =
            EventKind::ErrorClassified { operation: name.clone(), attempt, fault: Box::new(fault.clone()) };
        if let Err(error) = self.record.record(vec![classified]) {
            return Err(Box::new(unrecordable(&error)));
        }
        let verdict = machine.refused(&Failure { dispatch: failed.dispatch, ..Failure::new(&fault, now) });
        let decided = EventKind::DecisionMade {
            operation: None,
            attempt,
            decision: verdict.decision.clone(),
            reclassified: verdict.reclassified,
        };
        if let Err(error) = self.record.record(vec![decided]) {
            return Err(Box::new(unrecordable(&error)));
        }
        match verdict.decision.action {
            Action::Fallback { to } => Ok(to),
            _ => Err(Box::new(self.ending(fault, verdict))),
        }
    }

    fn ending(&self, fault: Fault, verdict: Verdict) -> Ending {
        let outcome = outcome_of(&verdict.decision.action, fault.reason);
        let reason = verdict.reclassified.unwrap_or(fault.reason);
        let mut fault = fault.renamed(reason);
        fault.severity = fault.ending_severity();
        Ending { outcome, fault, decision: verdict.decision }
    }

    fn classify(&self, failed: &Failed) -> Fault {
        let mut fault = match &failed.evidence {
            SignalOrFault::Fault(fault) => (**fault).clone(),
            // The operation reported a failure: it counts as one even where the signal looks like
            // success.
            SignalOrFault::Signal(signal) => {
                let classified = match &self.classifier {
                    Some(classifier) => classifier.classify(signal),
                    None => BUILTIN.classify(signal),
                };
                classified.unwrap_or_else(|| Fault::new(Reason::Unknown))
            }
        };
        if let Some(observe) = &self.observe {
            observe(&mut fault);
        }
        fault
    }

    fn recent(&self) -> Recent {
        match &self.recent_elsewhere {
            Some(recent) => recent(),
            None => self.recent.within(Instant::now(), self.budget.window),
        }
    }

    /// Waits. Returns false if the operation was cancelled meanwhile.
    async fn wait(&self, wait: Duration) -> bool {
        if self.cancel.is_cancelled() {
            return false;
        }
        tokio::time::timeout(wait, self.cancel.cancelled()).await.is_err()
    }
}

async fn time_is_up(left: Option<Duration>) {
    match left {
        Some(left) => tokio::time::sleep(left).await,
        None => std::future::pending().await,
    }
}

fn out_of_time(left: Option<Duration>) -> Failed {
    let mut fault = Fault::new(Reason::Timeout);
    let left = backstop_core::duration::shown(left.unwrap_or_default());
    fault.cause = Some(SafeText::new(format!("it had {left} until the deadline")));
    Failed::classified(fault, Dispatch::Lost)
}

fn outcome_of(action: &Action, reason: Reason) -> Outcome {
    match action {
        _ if reason == Reason::Interrupted => Outcome::Interrupted,
        Action::Defer { .. } => Outcome::Deferred,
        Action::Confirm { .. } => Outcome::Unconfirmed,
        Action::UsePartial => Outcome::Partial,
        _ => Outcome::Failed,
    }
}

fn interrupted() -> Ending {
    Ending {
        outcome: Outcome::Interrupted,
        fault: Fault::new(Reason::Interrupted),
        decision: Decision { action: Action::Surface, why: "it was stopped from outside".to_owned() },
    }
}

fn unrecordable(error: &RecordError) -> Ending {
    let mut fault = Fault::new(Reason::StateInvalid);
    fault.cause = Some(SafeText::new(error.to_string()));
    let why = "what cannot be recorded is not attempted".to_owned();
    Ending { outcome: Outcome::Failed, fault, decision: Decision { action: Action::Halt, why } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::{Signal, profile};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[derive(Default)]
    struct Notes(Mutex<Vec<EventKind>>);

    impl Record for Notes {
        fn record(&self, kinds: Vec<EventKind>) -> Result<(), RecordError> {
            self.0.lock().unwrap().extend(kinds);
            Ok(())
        }
    }

    impl Notes {
        fn names(&self) -> Vec<&'static str> {
            self.0.lock().unwrap().iter().map(EventKind::name).collect()
        }
    }

    fn engine(name: &str) -> Engine {
        Engine::new(profile(name).unwrap())
    }

    fn reset() -> Signal {
        Signal {
            errno: Some("ECONNRESET".into()),
            surface: backstop_core::Surface::Response,
            ..Signal::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_fails_twice_and_then_succeeds() {
        let notes = Arc::new(Notes::default());
        let engine = engine("request").recording(Arc::clone(&notes) as Arc<dyn Record>);
        let finished = engine
            .run("GET /", |attempt: Attempt| async move {
                if attempt.number < 3 { Err(reset()) } else { Ok(attempt.number) }
            })
            .await;
        assert_eq!((finished.result.unwrap(), finished.attempts), (3, 3));
        let once = ["attempt.started", "attempt.finished", "error.classified", "decision.made"];
        let twice = [
            "attempt.started",
            "attempt.finished",
            "recovery.attempted",
            "error.classified",
            "decision.made",
        ];
        let mut want = [once.to_vec(), twice.to_vec()].concat();
        want.push("attempt.started");
        assert_eq!(notes.names(), want);
        let unrecorded: Vec<&str> = finished.unrecorded.iter().map(EventKind::name).collect();
        assert_eq!(unrecorded, ["attempt.finished", "recovery.attempted"]);
        // 100 ms and 200 ms, each with a jitter of 20 %.
        let waited = finished.elapsed.as_millis();
        assert!((240..=362).contains(&waited), "{waited}");
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_recorded_before_the_next_attempt_begins() {
        let notes = Arc::new(Notes::default());
        let engine = engine("request").recording(Arc::clone(&notes) as Arc<dyn Record>);
        let seen = Arc::clone(&notes);
        let finished = engine
            .run("GET /", move |attempt: Attempt| {
                let names = seen.names();
                async move {
                    if attempt.number > 1 {
                        assert!(
                            names.ends_with(&["error.classified", "decision.made", "attempt.started"]),
                            "{names:?}"
                        );
                    }
                    Err::<(), _>(reset())
                }
            })
            .await;
        let ending = finished.result.unwrap_err();
        assert_eq!((finished.attempts, ending.fault.reason), (4, Reason::NetworkPermanent));
        assert_eq!(finished.faults.len(), 4);
        assert_eq!(finished.faults[3].reason, Reason::NetworkTransient);
    }

    #[tokio::test(start_paused = true)]
    async fn cancelling_ends_a_wait_at_once() {
        let cancel = Cancel::new();
        let engine = engine("task").cancelled_by(cancel.clone());
        let running = tokio::spawn(async move { engine.run("x", |_| async { Err::<(), _>(reset()) }).await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
        let finished = running.await.unwrap();
        assert_eq!(finished.result.unwrap_err().outcome, Outcome::Interrupted);
        assert_eq!((finished.attempts, finished.elapsed), (1, Duration::from_secs(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_never_ends_is_dropped() {
        let forever = |_| std::future::pending::<Result<(), Signal>>();
        let late = engine("request").deadline(Some(Duration::from_secs(5))).run("x", forever).await;
        let ending = late.result.unwrap_err();
        assert_eq!((ending.fault.reason, late.attempts), (Reason::Timeout, 1));
        assert_eq!(late.elapsed, Duration::from_secs(5));
        let cancel = Cancel::new();
        let engine = engine("request").cancelled_by(cancel.clone());
        let running = tokio::spawn(async move { engine.run("x", forever).await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
        let stopped = running.await.unwrap();
        assert_eq!(stopped.result.unwrap_err().outcome, Outcome::Interrupted);
        assert_eq!(stopped.elapsed, Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_is_kept_and_told() {
        let engine = engine("task").deadline(Some(Duration::from_secs(10)));
        let lefts = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&lefts);
        let finished = engine
            .run("x", move |attempt: Attempt| {
                seen.lock().unwrap().push(attempt.left.unwrap());
                async { Err::<(), _>(reset()) }
            })
            .await;
        let ending = finished.result.unwrap_err();
        assert!(ending.decision.why.contains("deadline"), "{}", ending.decision.why);
        assert!(finished.elapsed < Duration::from_secs(10));
        let lefts = lefts.lock().unwrap().clone();
        assert_eq!(lefts[0], Duration::from_secs(10));
        assert!(lefts[1] <= Duration::from_secs(6));
    }

    #[tokio::test(start_paused = true)]
    async fn an_overflow_is_compressed_once() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let finished = engine("request")
            .run("x", move |attempt: Attempt| {
                seen.lock().unwrap().push(attempt.keep_percent);
                async { Err::<(), _>(Fault::new(Reason::ContextOverflow)) }
            })
            .await;
        assert_eq!(*asked.lock().unwrap(), [None, Some(50)]);
        assert_eq!(finished.attempts, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_recorded_is_not_attempted() {
        struct Full;
        impl Record for Full {
            fn record(&self, _: Vec<EventKind>) -> Result<(), RecordError> {
                Err(RecordError("the disk is full".to_owned()))
            }
        }
        let tried = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&tried);
        let finished = engine("request")
            .recording(Arc::new(Full))
            .run("x", move |_| {
                count.fetch_add(1, Ordering::Relaxed);
                async { Ok::<_, Signal>(()) }
            })
            .await;
        assert_eq!(tried.load(Ordering::Relaxed), 0);
        assert_eq!(finished.result.unwrap_err().fault.reason, Reason::StateInvalid);
    }

    #[tokio::test(start_paused = true)]
    async fn io_errors_are_understood() {
        let finished = engine("request")
            .run("x", |_| async { Err::<(), _>(std::io::Error::from(std::io::ErrorKind::ConnectionReset)) })
            .await;
        assert_eq!(finished.faults[0].reason, Reason::NetworkTransient);
        let once = engine("request").repeatable(false, "confirm it");
        let reset = |_| async { Err::<(), _>(std::io::Error::from(std::io::ErrorKind::ConnectionReset)) };
        assert_eq!(once.run("x", reset).await.result.unwrap_err().outcome, Outcome::Unconfirmed);
    }
}
