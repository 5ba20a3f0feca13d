//! Who does the work of a run's nodes, as the host sees it, and the messages that come back.

use super::admission::Refusal;
use super::{Fold, PriorSession, StopRequest};
use backstop_core::{Delivery, Dispatch, EventKind, Fault, Reason, SafeText, Usage};
use backstop_exec::Stop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// An attempt that is to be made.
#[derive(Debug, Clone)]
pub struct AttemptJob {
    /// The number of the node.
    pub node: usize,
    /// The id of the node.
    pub id: String,
    /// Which attempt in all, counted from 1.
    pub attempt: u32,
    /// Which of the node's own chances this is, counted from 1: waiting for the world uses none up.
    pub chance: u32,
    /// How many chances it has.
    pub of: u32,
    /// The commit that the attempt begins from, where the run has one.
    pub tip: Option<String>,
    /// What failed before, where something did.
    pub previous: Option<Box<Fault>>,
    /// The end of what the failed attempt wrote.
    pub output: Option<SafeText>,
    /// The numbers of the tasks that the last attempt has done.
    pub tasks_done: Vec<u32>,
    /// The session of the node's agent, and how the attempt ended in which it was used last.
    pub session: Option<PriorSession>,
    /// Whether nobody knows how the attempt before this one ended: it was stopped, or Backstop was.
    pub lost: bool,
    /// What the run's agents have used so far, as far as they say so.
    pub used: Usage,
    /// Who works on the node in place of its own worker, if somebody does.
    pub worker: Option<String>,
    /// The numbers of the nodes that run at the same time.
    pub beside: Vec<usize>,
    /// Ends the attempt from outside.
    pub stop: Stop,
}

/// What came of an attempt.
#[derive(Debug, Clone)]
pub struct AttemptResult {
    /// What failed; nothing where the attempt succeeded.
    pub fault: Option<Box<Fault>>,
    /// How far the attempt got.
    pub dispatch: Dispatch,
    /// Whether the worker was taken away from outside, for example killed by somebody.
    pub worker_lost: bool,
    /// The exit code.
    pub exit: Option<i64>,
    /// The signal that ended it, by name.
    pub signal: Option<String>,
    /// The end of what it wrote, where it failed.
    pub output: Option<SafeText>,
    /// How long it took, with its gates.
    pub duration: Duration,
    /// What it delivers.
    pub delivery: Delivery,
    /// What else is recorded of a success, in one transaction with it: nodes that the work has
    /// shown to be needed.
    pub events: Vec<EventKind>,
}

impl AttemptResult {
    /// An attempt that failed before it could begin.
    pub fn failed(fault: Fault) -> Self {
        Self {
            fault: Some(Box::new(fault)),
            dispatch: Dispatch::NotDispatched,
            ..Self::succeeded(Delivery::default())
        }
    }

    /// An attempt that succeeded, and of which nothing else is known.
    pub fn succeeded(delivery: Delivery) -> Self {
        Self {
            fault: None,
            dispatch: Dispatch::Answered,
            worker_lost: false,
            exit: None,
            signal: None,
            output: None,
            duration: Duration::ZERO,
            delivery,
            events: Vec::new(),
        }
    }
}

/// Delivered work that is to be integrated.
#[derive(Debug, Clone)]
pub struct IntegrationJob {
    /// The number of the node.
    pub node: usize,
    /// The id of the node.
    pub id: String,
    /// The attempt that delivered it, counted from 1.
    pub attempt: u32,
    /// What was delivered.
    pub delivery: Delivery,
    /// The newest integrated commit, by the record.
    pub tip: Option<String>,
    /// Whether a process that was killed may have begun, or even done, this integration.
    pub resumed: bool,
    /// Ends the integration from outside.
    pub stop: Stop,
}

/// What came of an integration.
#[derive(Debug, Clone)]
pub enum IntegrationResult {
    /// The work is integrated.
    Done {
        /// The new tip, where it has moved.
        tip: Option<String>,
        /// The commit that was made for people, hash and first line.
        commit: Option<(String, SafeText)>,
        /// What else is recorded with it.
        events: Vec<EventKind>,
    },
    /// The work is in conflict with what was integrated meanwhile.
    Conflicted {
        /// The files.
        files: Vec<String>,
        /// What it is, with the evidence that the next attempt is told.
        fault: Box<Fault>,
    },
    /// The work cannot be integrated: a hook refuses it, git fails.
    Failed(Box<Fault>),
}

impl IntegrationResult {
    /// There was nothing to integrate.
    pub fn unchanged() -> Self {
        Self::Done { tip: None, commit: None, events: Vec::new() }
    }
}

/// The end of a run's work, once every node is complete.
#[derive(Debug, Clone)]
pub struct Concluded<C> {
    /// What is recorded of it.
    pub events: Vec<EventKind>,
    /// Where the work is now; the host hands it on.
    pub conclusion: C,
}

/// What a gate said.
#[derive(Debug, Clone)]
pub struct GateResult {
    /// Which gate.
    pub gate: String,
    /// Whether it passed.
    pub passed: bool,
    /// Why, where it failed.
    pub reason: Option<Reason>,
    /// Tests that failed first and then passed with nothing changed.
    pub flaky: Vec<SafeText>,
    /// Where it passed as no worse than the run's base: how many failures were there already.
    pub known_failures: u64,
    /// How long it took.
    pub duration: Duration,
}

impl GateResult {
    pub(super) fn event(self, operation: Option<SafeText>, attempt: u32) -> EventKind {
        EventKind::GateFinished {
            gate: self.gate,
            passed: self.passed,
            operation,
            attempt,
            duration_ms: millis(self.duration),
            reason: self.reason,
            flaky: self.flaky,
            known_failures: self.known_failures,
        }
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What people may see while an attempt is under way. It is not recorded and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A gate runs.
    Checking(String),
    /// The work is being integrated.
    Integrating,
    /// The attempt waits for a provider's guard.
    AwaitingGuard {
        /// The provider.
        provider: String,
        /// How long the guard stays closed.
        left: Duration,
    },
    /// Anything else that is worth a line.
    Message(SafeText),
}

/// Does the work of nodes. Called from several threads at once; each call blocks until its work is
/// done.
pub trait Executor: Sync {
    /// The fold of the run's events that the executor needs at the end.
    type Record: Fold + Clone + Send + 'static;
    /// Where the work is once the run is complete.
    type Conclusion: Send;

    /// Does what must be done before the first node begins, such as checking the tree that the run
    /// starts from. Called once, on a thread of its own; it must give up when `stop` is requested.
    /// What it returns is recorded; then [`Executor::prepared`] is called.
    fn prepare(&self, _stop: &Stop, _reporter: &Reporter) -> Result<Vec<EventKind>, Box<Fault>> {
        Ok(Vec::new())
    }
    /// What was prepared is recorded, and can be carried out. After a crash it is called again.
    fn prepared(&self, _record: &Self::Record) -> Result<(), Box<Fault>> {
        Ok(())
    }

    /// Whether the work of an attempt counts only once it is integrated.
    fn integrates(&self) -> bool;
    /// Makes an attempt, with its gates.
    fn attempt(&self, job: &AttemptJob, reporter: &Reporter) -> AttemptResult;
    /// An attempt was refused by the [`Admission`](super::Admission) before it began.
    fn refused(&self, _job: &AttemptJob, _fault: &Fault) {}
    /// Integrates what an attempt has delivered. Called for one node at a time.
    fn integrate(&self, job: &IntegrationJob, reporter: &Reporter) -> IntegrationResult;
    /// Does what is left to do once every node is complete, on a thread of its own; it must give up
    /// when `stop` is requested. After a crash it is called again.
    fn conclude(
        &self,
        record: &Self::Record,
        stop: &Stop,
        reporter: &Reporter,
    ) -> Result<Concluded<Self::Conclusion>, Box<Fault>>;
}

/// What the host's loop waits for.
pub(super) enum Message {
    StopRequested(StopRequest),
    /// Without a node it is a gate on the run's base, or on what is about to land.
    GateFinished(Option<usize>, GateResult),
    Noted(Option<usize>, Note),
    Prepared(Result<Vec<EventKind>, Box<Fault>>),
    /// The end of the run's work has come; what came of it is in the host's other channel.
    Concluded,
    SessionStarted {
        node: usize,
        agent: String,
        id: String,
        folder: SafeText,
    },
    /// What the admission of an attempt changed.
    Admitted(Vec<EventKind>),
    Attempted {
        node: usize,
        result: Box<AttemptResult>,
        /// Whether the attempt really began.
        admitted: bool,
    },
    Integrated(usize, Box<IntegrationResult>),
}

/// Reports to the host what an executor does meanwhile.
pub struct Reporter {
    /// The node that is worked on; none before the first one and after the last.
    node: Option<usize>,
    to: Sender<Message>,
}

impl Reporter {
    pub(super) fn new(node: Option<usize>, to: Sender<Message>) -> Self {
        Self { node, to }
    }

    /// A gate has ended. It is recorded.
    pub fn gate_finished(&self, gate: GateResult) {
        let _ = self.to.send(Message::GateFinished(self.node, gate));
    }

    /// Reports the session of the node's agent from any thread. It is recorded, so that a later
    /// attempt can continue it.
    pub fn session_reporter(&self, agent: String, folder: SafeText) -> impl Fn(&str) + Send + Sync + 'static {
        let (node, to) = (self.node, self.to.clone());
        move |id| {
            let (agent, folder) = (agent.clone(), folder.clone());
            // Sessions belong to attempts, which have a node.
            let Some(node) = node else { return };
            let _ = to.send(Message::SessionStarted { node, agent, id: id.to_owned(), folder });
        }
    }

    /// Something for people.
    pub fn note(&self, note: Note) {
        let _ = self.to.send(Message::Noted(self.node, note));
    }

    /// Asks for admission, makes the attempt, and reports its end. A panic is reported as a
    /// failure: an end that the host never hears of would be waited for for ever.
    pub(super) fn attempted(
        &self,
        node: usize,
        admit: impl FnOnce(&Self) -> Result<Vec<EventKind>, Refusal>,
        refused: impl FnOnce(&Fault) -> AttemptResult,
        attempt: impl FnOnce(&Self) -> AttemptResult,
    ) {
        let admitted = catch_unwind(AssertUnwindSafe(|| admit(self)));
        let (result, admitted) = match admitted {
            Ok(Ok(events)) => {
                self.admitted(events);
                (catch_unwind(AssertUnwindSafe(|| attempt(self))), true)
            }
            Ok(Err(Refusal { fault, events })) => {
                self.admitted(events);
                (catch_unwind(AssertUnwindSafe(|| refused(&fault))), false)
            }
            Err(panic) => (Err(panic), false),
        };
        let result = Box::new(result.unwrap_or_else(|_| AttemptResult::failed(panicked())));
        let _ = self.to.send(Message::Attempted { node, result, admitted });
    }

    fn admitted(&self, events: Vec<EventKind>) {
        if !events.is_empty() {
            let _ = self.to.send(Message::Admitted(events));
        }
    }

    /// Integrates, and reports the end of it, whatever it is.
    pub(super) fn integrated(&self, node: usize, work: impl FnOnce(&Self) -> IntegrationResult) {
        let done = catch_unwind(AssertUnwindSafe(|| work(self)));
        let done = done.unwrap_or_else(|_| IntegrationResult::Failed(Box::new(panicked())));
        let _ = self.to.send(Message::Integrated(node, Box::new(done)));
    }
}

impl Reporter {
    /// Prepares the run, and reports the end of it.
    pub(super) fn prepared(&self, work: impl FnOnce(&Self) -> Result<Vec<EventKind>, Box<Fault>>) {
        let done = catch_unwind(AssertUnwindSafe(|| work(self)));
        let _ = self.to.send(Message::Prepared(done.unwrap_or_else(|_| Err(Box::new(panicked())))));
    }

    /// Concludes the run, hands the result to `result`, and reports the end of it.
    pub(super) fn concluded<C>(
        &self,
        result: &Sender<Result<Concluded<C>, Box<Fault>>>,
        work: impl FnOnce(&Self) -> Result<Concluded<C>, Box<Fault>>,
    ) {
        let done = catch_unwind(AssertUnwindSafe(|| work(self)));
        let _ = result.send(done.unwrap_or_else(|_| Err(Box::new(panicked()))));
        let _ = self.to.send(Message::Concluded);
    }
}

fn panicked() -> Fault {
    let mut fault = Fault::new(Reason::Crash);
    fault.cause = Some("Backstop itself failed while it did this; please report it".into());
    fault
}
