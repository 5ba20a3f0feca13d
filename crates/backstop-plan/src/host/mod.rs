//! The host of a plan's run: it carries out what the scheduler says, and records it first.
//!
//! [`Host`] is one loop on one thread: messages in, events recorded, work begun. Work is done by a [`Workshop`] on threads of its
//! own; the loop never waits for anything but a message or the time. Whatever is about to be done is in the journal before it
//! is done, in one transaction with what led to it.
//!
//! It must not run a process, touch git or print: that is the workshop's and the [`Watch`]'s.

mod outcomes;
mod told;
mod upkeep;
mod workshop;
mod written;

pub(crate) use told::message;
pub use told::{Ending, HostError, Watch};
pub use upkeep::mark;
pub use workshop::{AttemptJob, CONFLICT, Checked, Integrated, IntegrationJob, Note, Tell, Worked, Workshop};

use crate::document::Plan;
use crate::record::{RunRecord, Status};
use crate::site::Conclusion;
use crate::view::ViewFolder;
use backstop_core::{Command, End, Event, EventKind, Fault, Happening, Reason, SafeText, Schedule};
use backstop_exec::Stop;
use backstop_runtime::Recorder;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender};
use std::thread::Scope;
use std::time::Duration;
use upkeep::Upkeep;
use workshop::Message;

/// How often what is not urgent is written: the plan's marks, the summary of the run.
const COALESCE: Duration = Duration::from_secs(1);
/// How often state files are written: nobody reads them faster.
const VIEW_EVERY: Duration = Duration::from_millis(200);
/// The longest time without a look around.
const TICK_MAX: Duration = Duration::from_secs(60);

/// What a host is made of.
pub struct Parts<'h> {
    /// The plan.
    pub plan: &'h Plan,
    /// Where its nodes stand.
    pub schedule: Schedule,
    /// The record of the run.
    pub recorder: &'h Recorder,
    /// What was recorded so far.
    pub record: RunRecord,
    /// Where views are written.
    pub views: ViewFolder,
    /// The plan's file, which is kept up to date.
    pub plan_file: PathBuf,
    /// Who does the work.
    pub workshop: &'h dyn Workshop,
    /// How long running phases have once the run halts.
    pub halt_timeout: Option<Duration>,
    /// The command that goes on.
    pub resume: String,
    /// Time since the run began.
    pub clock: &'h (dyn Fn() -> Duration + Sync),
    /// Who looks at the machine when something failed.
    pub witness: &'h (dyn Fn(&mut Fault) + Sync),
    /// Why no new work may begin in this project, where that is so.
    pub frozen: &'h (dyn Fn() -> Option<Reason> + Sync),
    /// A random number from 0 up to 1.
    pub random: &'h (dyn Fn() -> f64 + Sync),
    /// What was recorded of this start, for the log.
    pub opened: Vec<Event>,
}

/// What somebody asks of a running host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Begin nothing more, let what runs end.
    Stop,
    /// Ask what runs to end.
    End,
    /// End what runs, now.
    Kill,
}

/// An attempt that is under way.
struct Running {
    stop: Stop,
    attempt: u32,
    /// Whether we asked it to end.
    stopped: bool,
}

/// The host of one run.
pub struct Host<'h> {
    parts: Parts<'h>,
    watch: &'h mut dyn Watch,
    upkeep: Upkeep,
    running: BTreeMap<usize, Running>,
    /// Work that was handed in and waits for its turn.
    handed_in: VecDeque<usize>,
    integrating: Option<usize>,
    /// Kinds that are recorded next, all together.
    pending: Vec<EventKind>,
    /// Attempts and integrations that begin once that is recorded.
    to_start: Vec<usize>,
    to_integrate: Option<usize>,
    integration_resumed: bool,
    touched: BTreeSet<usize>,
    /// Phases whose state files are to be written, and since when.
    unseen: BTreeSet<usize>,
    unseen_since: Option<Duration>,
    halting_since: Option<Duration>,
    ended: Option<End>,
    /// The reason of the failure that halted it.
    halt_reason: Option<Reason>,
    /// What each phase failed of last.
    reasons: BTreeMap<usize, Reason>,
    conclusion: Option<Conclusion>,
    unconcluded: Option<Box<Fault>>,
    /// Why it was stopped, where the project was frozen meanwhile.
    frozen: Option<Reason>,
}

impl<'h> Host<'h> {
    /// A host that has not begun.
    pub fn new(parts: Parts<'h>, watch: &'h mut dyn Watch) -> Self {
        let upkeep = Upkeep::new(parts.plan_file.clone());
        Self {
            parts,
            watch,
            upkeep,
            running: BTreeMap::new(),
            handed_in: VecDeque::new(),
            integrating: None,
            pending: Vec::new(),
            to_start: Vec::new(),
            to_integrate: None,
            integration_resumed: false,
            touched: BTreeSet::new(),
            unseen: BTreeSet::new(),
            unseen_since: None,
            halting_since: None,
            ended: None,
            halt_reason: None,
            reasons: BTreeMap::new(),
            conclusion: None,
            unconcluded: None,
            frozen: None,
        }
    }

    /// Runs until it is over. `asks` is how somebody stops it.
    pub fn run(mut self, asks: Receiver<Ask>) -> Result<Ending, HostError> {
        let (sender, messages) = std::sync::mpsc::channel();
        let forward = sender.clone();
        // Ends with the process, or when whoever asks is gone.
        std::thread::spawn(move || {
            while let Ok(ask) = asks.recv() {
                if forward.send(Message::Asked(ask)).is_err() {
                    break;
                }
            }
        });
        let done = std::thread::scope(|scope| {
            let done = self.drive(scope, &sender, &messages);
            if done.is_err() {
                // What cannot be recorded must not go on.
                self.running.values().for_each(|running| running.stop.request());
            }
            done
        });
        self.keep_up();
        done.map(|end| Ending {
            end,
            reason: self.halt_reason,
            record: self.parts.record,
            conclusion: self.conclusion,
            unconcluded: self.unconcluded,
            frozen: self.frozen,
        })
    }

    fn drive<'s>(
        &mut self,
        scope: &'s Scope<'s, '_>,
        sender: &Sender<Message>,
        messages: &Receiver<Message>,
    ) -> Result<End, HostError>
    where
        'h: 's,
    {
        let opened: String =
            self.parts.opened.iter().filter_map(|event| told::log_line(event, &self.parts.record)).collect();
        let logged = self.parts.views.log(&opened);
        self.views_written(logged);
        self.pick_up();
        // Marks that a killed Backstop did not get to.
        for at in 0..self.parts.record.order.len() {
            self.upkeep.note(self.parts.plan, at, self.parts.record.phase(at), self.now());
        }
        self.command(&Command::Look);
        loop {
            // What came in is recorded before the next is put onto it.
            self.commit()?;
            self.next_integration();
            self.commit()?;
            if let Some(end) = self.ended.clone().filter(|_| self.running.is_empty()) {
                self.finish(&end)?;
                return Ok(end);
            }
            self.begin(scope, sender);
            let first = messages.recv_timeout(self.patience()).ok();
            for message in first.into_iter().chain(messages.try_iter()) {
                self.handle(message);
            }
            self.look_at_the_clock();
        }
    }

    fn now(&self) -> Duration {
        (self.parts.clock)()
    }

    /// How long nothing can happen without a message.
    fn patience(&self) -> Duration {
        let now = self.now();
        let wake = self.parts.schedule.wake(now).map(|at| at.saturating_sub(now));
        let halt = self.halting_since.zip(self.parts.halt_timeout);
        let halt = halt.map(|(since, limit)| (since + limit).saturating_sub(now));
        let upkeep = self.upkeep.is_due_in(now);
        let views = self.unseen_since.map(|since| (since + VIEW_EVERY).saturating_sub(now));
        let tick = self.watch.interval();
        [wake, halt, upkeep, views, tick]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(TICK_MAX)
            .max(Duration::from_millis(1))
    }

    fn look_at_the_clock(&mut self) {
        let now = self.now();
        self.command(&Command::Look);
        if self.parts.schedule.is_stopping() && self.halting_since.is_none() {
            self.halting_since = Some(now);
        }
        let over = self
            .halting_since
            .zip(self.parts.halt_timeout)
            .is_some_and(|(since, limit)| now >= since + limit);
        if over {
            for running in self.running.values_mut().filter(|running| !running.stopped) {
                running.stopped = true;
                running.stop.request();
            }
        }
        if self.unseen_since.is_some_and(|since| now >= since + VIEW_EVERY) {
            self.write_views();
        }
        if self.upkeep.is_due_in(now) == Some(Duration::ZERO) {
            self.keep_up();
        }
        self.watch.tick(&self.parts.record, &self.parts.schedule);
    }

    /// Work that was handed in before this process began is integrated first.
    fn pick_up(&mut self) {
        let mut all: Vec<usize> = (0..self.parts.record.order.len()).collect();
        // One whose integration had begun comes first: it may be in already.
        all.sort_by_key(|at| self.parts.record.phase(*at).integrating.is_none());
        for at in all {
            if self.parts.record.phase(at).is_delivered() {
                self.parts.schedule.evolve(&Happening::Started { node: at });
                let attempt = self.parts.record.phase(at).total;
                self.running.insert(at, Running { stop: Stop::new(), attempt, stopped: false });
                self.handed_in.push_back(at);
            }
        }
    }

    fn id(&self, node: usize) -> SafeText {
        SafeText::new(self.parts.record.order[node].clone())
    }

    fn push(&mut self, node: usize, kinds: impl IntoIterator<Item = EventKind>) {
        self.touched.insert(node);
        self.pending.extend(kinds);
    }

    /// Feeds the scheduler, and turns what follows into events and work.
    fn command(&mut self, command: &Command<'_>) {
        let now = self.now();
        for happening in self.parts.schedule.handle(command, now) {
            match happening {
                Happening::Started { node } => {
                    let attempt = self.attempts(node) + 1;
                    let operation = self.id(node);
                    self.push(node, [EventKind::AttemptStarted { operation, attempt }]);
                    self.running.insert(node, Running { stop: Stop::new(), attempt, stopped: false });
                    self.to_start.push(node);
                }
                Happening::Completed { node } => self.enter(node, Status::Complete, None),
                Happening::Decided { node, verdict, .. } => {
                    if let Some(reason) = verdict.reclassified {
                        self.halt_reason = Some(reason);
                        self.reasons.insert(node, reason);
                    }
                    let attempt = self.running.remove(&node).map_or(0, |running| running.attempt);
                    let operation = Some(self.id(node));
                    self.push(
                        node,
                        [EventKind::DecisionMade {
                            operation,
                            attempt,
                            decision: verdict.decision,
                            reclassified: verdict.reclassified,
                        }],
                    );
                }
                Happening::GaveUp { node } => {
                    self.running.remove(&node);
                    let reason = self.reasons.get(&node).map(|reason| reason.code().to_owned());
                    self.enter(node, Status::Failed, reason);
                }
                Happening::Blocked { node, .. } => self.enter(node, Status::Blocked, None),
                Happening::Dropped { node } => {
                    self.running.remove(&node);
                }
                Happening::Again { node } => {
                    self.running.remove(&node);
                }
                Happening::Stopping => {}
                Happening::Ended(end) => self.ended = Some(end),
            }
        }
    }

    /// How many attempts a phase has had, those about to be recorded included.
    fn attempts(&self, node: usize) -> u32 {
        let id = self.id(node);
        let soon = self.pending.iter().filter_map(|kind| match kind {
            EventKind::AttemptStarted { operation, attempt } if *operation == id => Some(*attempt),
            _ => None,
        });
        soon.max().unwrap_or(0).max(self.parts.record.phase(node).total)
    }

    fn enter(&mut self, node: usize, status: Status, error_type: Option<String>) {
        if status == Status::Complete {
            self.running.remove(&node);
        }
        let operation = Some(self.id(node));
        self.push(
            node,
            [EventKind::StateEntered {
                operation,
                state: status.name().to_owned(),
                error_type,
                context: None,
            }],
        );
    }

    fn handle(&mut self, message: Message) {
        if matches!(message, Message::Worked(..) | Message::Integrated(..))
            && !self.parts.schedule.is_stopping()
            && let Some(reason) = (self.parts.frozen)()
        {
            self.frozen = Some(reason);
            self.command(&Command::Stop);
        }
        match message {
            Message::Asked(ask) => self.asked(ask),
            Message::Checked(node, checked) => {
                let attempt = self.running.get(&node).map_or(0, |running| running.attempt);
                let kind = checked.event(self.id(node), attempt);
                self.push(node, [kind]);
            }
            Message::Noted(node, note) => self.watch.noted(node, &note),
            Message::Worked(node, worked) => self.worked(node, *worked),
            Message::Integrated(node, integrated) => self.integrated(node, *integrated),
        }
    }

    fn asked(&mut self, ask: Ask) {
        self.command(&Command::Stop);
        for running in self.running.values_mut().filter(|_| ask != Ask::Stop) {
            running.stopped = true;
            running.stop.request();
            if ask == Ask::Kill {
                running.stop.request();
            }
        }
        self.watch.asked(ask, self.running.len());
    }

    fn begin<'s>(&mut self, scope: &'s Scope<'s, '_>, sender: &Sender<Message>)
    where
        'h: 's,
    {
        for node in std::mem::take(&mut self.to_start) {
            let Some(running) = self.running.get(&node) else { continue };
            let phase = self.parts.record.phase(node);
            let (chance, of) = self.parts.schedule.chance(node);
            let beside =
                self.parts.schedule.running().iter().copied().filter(|other| *other != node).collect();
            let job = AttemptJob {
                node,
                attempt: running.attempt,
                chance,
                of,
                tip: self.parts.record.tip.clone(),
                previous: phase.last_error().map(|error| error.fault.clone()),
                tasks_done: phase.tasks_done.clone(),
                output: phase.output.clone(),
                beside,
                stop: running.stop.clone(),
            };
            let workshop = self.parts.workshop;
            let tell = Tell::new(node, sender.clone());
            scope.spawn(move || tell.worked(|tell| workshop.attempt(&job, tell)));
        }
        if let Some(node) = self.to_integrate.take() {
            let phase = self.parts.record.phase(node);
            let Some(running) = self.running.get(&node) else { return };
            let job = IntegrationJob {
                node,
                attempt: running.attempt,
                delivery: phase.delivery.clone().unwrap_or_default(),
                tip: self.parts.record.tip.clone(),
                resumed: self.integration_resumed,
                stop: running.stop.clone(),
            };
            let workshop = self.parts.workshop;
            let tell = Tell::new(node, sender.clone());
            scope.spawn(move || tell.integrated(|tell| workshop.integrate(&job, tell)));
        }
    }
}
