//! Where the work is done, as the host sees it.

use super::Ask;
use crate::record::RunRecord;
use crate::site::Conclusion;
use backstop_core::{Delivery, Dispatch, EventKind, Fault, Reason, SafeText};
use backstop_exec::Stop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// An attempt that is to be made.
#[derive(Debug, Clone)]
pub struct AttemptJob {
    /// The phase, by its place in the plan.
    pub node: usize,
    /// Which attempt in all, counted from 1.
    pub attempt: u32,
    /// Which of its own chances this is, counted from 1.
    pub chance: u32,
    /// How many it has.
    pub of: u32,
    /// The tip that it begins from, where there is one.
    pub tip: Option<String>,
    /// What failed before, where something did.
    pub previous: Option<Box<Fault>>,
    /// The end of what it wrote then.
    pub output: Option<SafeText>,
    /// The numbers of the tasks that were done then.
    pub tasks_done: Vec<u32>,
    /// Those that run at the same time.
    pub beside: Vec<usize>,
    /// How it is asked to end.
    pub stop: Stop,
}

/// What came of an attempt.
#[derive(Debug, Clone)]
pub struct Worked {
    /// What went wrong, if anything did.
    pub fault: Option<Box<Fault>>,
    /// How far it got.
    pub dispatch: Dispatch,
    /// Whether the one who worked was taken away from outside.
    pub worker_lost: bool,
    /// The exit code.
    pub exit: Option<i64>,
    /// The signal that ended it, by name.
    pub signal: Option<String>,
    /// The end of what it wrote, where it failed.
    pub output: Option<SafeText>,
    /// How long it took, with its gates.
    pub duration: Duration,
    /// What it handed in.
    pub delivery: Delivery,
}

impl Worked {
    /// Something that failed before it could begin.
    pub fn failed(fault: Fault) -> Self {
        Self {
            fault: Some(Box::new(fault)),
            dispatch: Dispatch::NotDispatched,
            worker_lost: false,
            exit: None,
            signal: None,
            output: None,
            duration: Duration::ZERO,
            delivery: Delivery::default(),
        }
    }
}

/// Work that is to be put together with what is in already.
#[derive(Debug, Clone)]
pub struct IntegrationJob {
    /// The phase, by its place in the plan.
    pub node: usize,
    /// Of which attempt, counted from 1.
    pub attempt: u32,
    /// What was handed in.
    pub delivery: Delivery,
    /// The tip by the record.
    pub tip: Option<String>,
    /// Whether a Backstop that was killed had begun it.
    pub resumed: bool,
    /// How it is asked to end.
    pub stop: Stop,
}

/// What came of an integration.
#[derive(Debug, Clone)]
pub enum Integrated {
    /// It is in.
    Done {
        /// The new tip, where there is one.
        tip: Option<String>,
        /// The commit that was made for people, hash and first line.
        commit: Option<(String, SafeText)>,
    },
    /// It does not go together with what came in meanwhile.
    Conflicted {
        /// The files.
        files: Vec<String>,
        /// What it is; its evidence [`CONFLICT`] is what the next attempt is told.
        fault: Box<Fault>,
    },
    /// It cannot be put in: a hook refuses it, git has trouble.
    Failed(Box<Fault>),
}

/// The evidence of a conflict: the lines that do not go together.
pub const CONFLICT: &str = "git.conflict";

/// What a gate said.
#[derive(Debug, Clone)]
pub struct Checked {
    /// Which gate.
    pub gate: String,
    /// Whether it passed.
    pub passed: bool,
    /// Why, where it failed.
    pub reason: Option<Reason>,
    /// Tests that failed first and then passed.
    pub flaky: Vec<SafeText>,
    /// How long it took.
    pub duration: Duration,
}

impl Checked {
    pub(super) fn event(self, operation: SafeText, attempt: u32) -> EventKind {
        EventKind::GateFinished {
            gate: self.gate,
            passed: self.passed,
            operation: Some(operation),
            attempt,
            duration_ms: u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
            reason: self.reason,
            flaky: self.flaky,
        }
    }
}

/// Something that people are told and that changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A gate runs.
    Checking(String),
    /// The work is put together with what is in.
    Integrating,
    /// A provider's limit is waited for.
    Guard(String, Duration),
    /// Something else that is worth a line.
    Said(SafeText),
}

/// Where the work is done. Called from several threads at once; each call blocks until its work is done.
pub trait Workshop: Sync {
    /// Whether finished work has to be integrated before it counts.
    fn integrates(&self) -> bool;
    /// Makes an attempt, with its gates.
    fn attempt(&self, job: &AttemptJob, tell: &Tell) -> Worked;
    /// Puts finished work together with what is in already. One at a time.
    fn integrate(&self, job: &IntegrationJob, tell: &Tell) -> Integrated;
    /// What is left to do once every phase is complete. It may be asked again after a crash.
    fn conclude(&self, record: &RunRecord) -> Result<Conclusion, Box<Fault>>;
}

pub(super) enum Message {
    Asked(Ask),
    Checked(usize, Checked),
    Noted(usize, Note),
    Worked(usize, Box<Worked>),
    Integrated(usize, Box<Integrated>),
}

/// How a workshop tells what it does meanwhile.
pub struct Tell {
    node: usize,
    to: Sender<Message>,
}

impl Tell {
    pub(super) fn new(node: usize, to: Sender<Message>) -> Self {
        Self { node, to }
    }

    /// A gate has ended.
    pub fn checked(&self, checked: Checked) {
        let _ = self.to.send(Message::Checked(self.node, checked));
    }

    /// Something for people.
    pub fn note(&self, note: Note) {
        let _ = self.to.send(Message::Noted(self.node, note));
    }

    /// However it ends, the host hears of it: one that is never heard of would be waited for for ever.
    pub(super) fn worked(&self, work: impl FnOnce(&Self) -> Worked) {
        let worked =
            catch_unwind(AssertUnwindSafe(|| work(self))).unwrap_or_else(|_| Worked::failed(broken()));
        let _ = self.to.send(Message::Worked(self.node, Box::new(worked)));
    }

    pub(super) fn integrated(&self, work: impl FnOnce(&Self) -> Integrated) {
        let done = catch_unwind(AssertUnwindSafe(|| work(self)));
        let done = done.unwrap_or_else(|_| Integrated::Failed(Box::new(broken())));
        let _ = self.to.send(Message::Integrated(self.node, Box::new(done)));
    }
}

fn broken() -> Fault {
    let mut fault = Fault::new(Reason::Crash);
    fault.cause = Some("Backstop itself failed while it did this; please report it".into());
    fault
}
