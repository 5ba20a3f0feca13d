//! The host of a run: it carries out what the scheduler says about the run's nodes, and records it
//! first.
//!
//! [`Host`] is one loop on one thread: messages come in, events are recorded, work begins. An
//! [`Executor`] does the work of the nodes on threads of its own; the loop waits for nothing but a
//! message or the time. What is about to be done is in the [`RunLog`] before it is done, in one
//! transaction with what led to it. What failed is recorded before anything is done about it: only
//! then is the [`Admission`] told, which closes guards and counts for breakers.
//!
//! The run's nodes are folded state ([`RunProgress`]): an event brings them, and where a recorded
//! event brings more, the schedule grows. [`Observer`]s follow what was recorded: files, logs,
//! terminals.
//!
//! It knows nodes, not what they are: it must not run a process, touch git, read a plan, write a
//! view or print.

mod admission;
mod ending;
mod executor;
mod log;
mod nodes;
mod observer;
mod outcomes;
mod progress;
mod record_again;
mod recording;
mod sessions;
mod steps;
#[cfg(test)]
mod tests;
mod waits;

pub use admission::{Admission, Refusal, Waiting};
pub use ending::{Ending, HostError};
pub use executor::{
    AttemptJob, AttemptResult, Concluded, Executor, GateResult, IntegrationJob, IntegrationResult, Note,
    Reporter,
};
pub use log::{RunLog, RunLogError};
pub use nodes::{NodeSpec, NodesError};
pub use observer::{HostState, Observer, ObserverError};
pub use progress::{AttemptError, CAMPAIGN, Fold, NodeRecord, NodeStatus, RunProgress, SKIPPED, operation};
pub use record_again::record;
pub use sessions::{AgentSession, PriorSession};
pub use waits::{NodeWait, RunWait, RunWaits};

use backstop_core::{
    Command, End, Event, EventKind, Fault, Happening, LimitWait, Policy, Reason, Rules, SafeText, Schedule,
};
use backstop_exec::Stop;
use executor::Message;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::thread::Scope;
use std::time::Duration;
use steps::Step;

/// The longest time without a look around.
const TICK_MAX: Duration = Duration::from_secs(60);
/// The shortest wait for a message.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// What a host is made of. `R` is the fold of the run's events, `C` says where the work is once the
/// run is complete.
pub struct HostParts<'h, R, C> {
    /// Where everything is recorded.
    pub log: &'h dyn RunLog,
    /// What was recorded so far: all events of the log, folded.
    pub record: R,
    /// The events that were recorded when the run was started or resumed just now.
    pub opened: Vec<Event>,
    /// How many nodes run at once, and which.
    pub rules: Rules,
    /// How often and when a failed node is attempted again.
    pub policy: Arc<Policy>,
    /// Whether every recovery is turned off.
    pub recovery_disabled: bool,
    /// Who does the work.
    pub executor: &'h dyn Executor<Record = R, Conclusion = C>,
    /// What is asked before an attempt and told after it.
    pub admission: &'h dyn Admission,
    /// Who follows the run, in the order in which they are told.
    pub observers: Vec<&'h mut dyn Observer<R>>,
    /// Whether the run goes on after this host, as a campaign does: then the caller records its
    /// end.
    pub is_stage: bool,
    /// At which ends the executor does what is left to do.
    pub concludes: &'h (dyn Fn(&End) -> bool + Sync),
    /// How long attempts under way may go on once the run halts.
    pub halt_timeout: Option<Duration>,
    /// The command that resumes the run.
    pub resume: String,
    /// Time since the run was started or resumed. It goes on while the machine sleeps, and nobody
    /// can set it.
    pub clock: &'h (dyn Fn() -> Duration + Sync),
    /// Makes time pass in place of waiting, where nothing runs and time is simulated.
    pub pass_time: Option<&'h (dyn Fn(Duration) + Sync)>,
    /// How long to wait before anything begins: the run is to start at a certain time.
    pub start_after: Duration,
    /// Adds the machine's state to a fault before it is recorded.
    pub annotate_fault: &'h (dyn Fn(&mut Fault) + Sync),
    /// A random number from 0 up to 1.
    pub random: &'h (dyn Fn() -> f64 + Sync),
}

/// What somebody asks of a running host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRequest {
    /// Begin nothing more; attempts under way may end.
    Finish,
    /// Ask the attempts under way to end.
    End,
    /// Kill the attempts under way.
    Kill,
}

/// An attempt that is under way, or whose work is being integrated.
struct Running {
    stop: Stop,
    attempt: u32,
    /// Whether we asked it to end.
    stopped: bool,
}

/// The host of one run.
pub struct Host<'h, R, C> {
    parts: HostParts<'h, R, C>,
    schedule: Schedule,
    /// The ids of the schedule's nodes, by number.
    ids: Vec<String>,
    running: BTreeMap<usize, Running>,
    /// Nodes whose work was delivered and waits for its turn to be integrated.
    delivered: VecDeque<usize>,
    integrating: Option<usize>,
    /// Events that are recorded next, all together.
    pending: Vec<EventKind>,
    /// Attempts and the integration that begin once that is recorded.
    to_start: Vec<usize>,
    to_integrate: Option<usize>,
    integration_resumed: bool,
    /// Nodes whose success is to be told to the admission once it is recorded.
    succeeded: Vec<usize>,
    halting_since: Option<Duration>,
    ended: Option<End>,
    /// The reason of the failure that halted the run.
    halt_reason: Option<Reason>,
    /// Why each node failed last.
    reasons: BTreeMap<usize, Reason>,
    step: Step<C>,
    unprepared: Option<Box<Fault>>,
    conclusion: Option<C>,
    unconcluded: Option<Box<Fault>>,
    /// Why the run was stopped, where the project was frozen meanwhile.
    frozen: Option<Reason>,
}

impl<'h, R: Fold + Clone + Send + 'static, C: Send> Host<'h, R, C> {
    /// A host that has not begun. Nodes that are no graph are refused.
    pub fn new(parts: HostParts<'h, R, C>) -> Result<Self, HostError> {
        let progress = parts.record.progress();
        let schedule = progress.schedule(parts.rules, &parts.policy, parts.recovery_disabled)?;
        Ok(Self {
            ids: progress.order.clone(),
            schedule,
            parts,
            running: BTreeMap::new(),
            delivered: VecDeque::new(),
            integrating: None,
            pending: Vec::new(),
            to_start: Vec::new(),
            to_integrate: None,
            integration_resumed: false,
            succeeded: Vec::new(),
            halting_since: None,
            ended: None,
            halt_reason: None,
            reasons: BTreeMap::new(),
            step: Step::Working,
            unprepared: None,
            conclusion: None,
            unconcluded: None,
            frozen: None,
        })
    }

    /// Runs until the run is over. `requests` is how somebody stops it.
    pub fn run(mut self, requests: Receiver<StopRequest>) -> Result<Ending<R, C>, HostError> {
        let (sender, messages) = std::sync::mpsc::channel();
        let forward = sender.clone();
        // Ends with the process, or when whoever asks is gone.
        std::thread::spawn(move || {
            while let Ok(request) = requests.recv() {
                if forward.send(Message::StopRequested(request)).is_err() {
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
        self.observe(|observer, state| observer.closed(state));
        done.map(|end| Ending {
            end,
            reason: self.halt_reason,
            record: self.parts.record,
            unprepared: self.unprepared,
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
        let opened = std::mem::take(&mut self.parts.opened);
        self.observe(|observer, state| observer.started(&opened, state));
        self.wait_for_start();
        loop {
            if matches!(self.step, Step::NotYet(at) if self.now() >= at) && self.ended.is_none() {
                self.prepare(scope, sender);
            }
            // What came in is recorded before the next is put onto it.
            self.commit()?;
            self.tell_successes();
            self.next_integration();
            self.commit()?;
            if let Some(end) = self.ended.clone().filter(|_| self.running.is_empty()) {
                match self.step {
                    Step::Working if (self.parts.concludes)(&end) => self.conclude(scope, sender),
                    Step::NotYet(_) | Step::Working | Step::Over => {
                        self.finish(&end)?;
                        return Ok(end);
                    }
                    Step::Preparing(_) | Step::Concluding(..) => {}
                }
            }
            self.begin(scope, sender);
            let first = self.next_message(messages);
            for message in first.into_iter().chain(messages.try_iter()) {
                self.handle(message)?;
            }
            self.look_at_the_clock();
        }
    }

    fn now(&self) -> Duration {
        (self.parts.clock)()
    }

    /// Waits for a message, or until it is time to look around.
    fn next_message(&self, messages: &Receiver<Message>) -> Option<Message> {
        let patience = self.patience();
        let is_idle = self.running.is_empty() && matches!(self.step, Step::NotYet(_) | Step::Working);
        match self.parts.pass_time.filter(|_| is_idle) {
            Some(pass_time) => {
                let message = messages.try_recv().ok();
                if message.is_none() {
                    pass_time(patience);
                }
                message
            }
            None => messages.recv_timeout(patience).ok(),
        }
    }

    fn progress(&self) -> &RunProgress {
        self.parts.record.progress()
    }

    /// How long nothing can happen without a message.
    fn patience(&self) -> Duration {
        let now = self.now();
        let wake = self.schedule.wake(now).map(|at| at.saturating_sub(now));
        let halt = self.halting_since.zip(self.parts.halt_timeout);
        let halt = halt.map(|(since, limit)| (since + limit).saturating_sub(now));
        let due = self.parts.observers.iter().filter_map(|observer| observer.due_in(now)).min();
        let start = match self.step {
            Step::NotYet(at) => Some(at.saturating_sub(now)),
            _ => None,
        };
        // The clock that is slept by stands still while the machine sleeps: what is far away is
        // looked for again and again.
        [wake, halt, due, start].into_iter().flatten().min().unwrap_or(TICK_MAX).clamp(WAIT_MIN, TICK_MAX)
    }

    fn look_at_the_clock(&mut self) {
        let now = self.now();
        if matches!(self.step, Step::Working) {
            self.command(&Command::Look);
        }
        if self.schedule.is_stopping() && self.halting_since.is_none() {
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
        self.observe(|observer, state| observer.tick(state));
    }

    /// Work that was delivered before this process began is integrated first.
    fn pick_up(&mut self) {
        let progress = self.parts.record.progress();
        let mut all: Vec<usize> =
            (0..progress.order.len()).filter(|at| progress.node(*at).is_delivered()).collect();
        // One whose integration had begun comes first: it may be integrated already.
        all.sort_by_key(|at| progress.node(*at).integrating.is_none());
        for at in all {
            self.schedule.evolve(&Happening::Started { node: at });
            let attempt = progress.node(at).total;
            self.running.insert(at, Running { stop: Stop::new(), attempt, stopped: false });
            self.delivered.push_back(at);
        }
    }

    fn id(&self, node: usize) -> SafeText {
        SafeText::new(self.ids[node].clone())
    }

    /// Feeds the scheduler, and turns what follows into events and work.
    fn command(&mut self, command: &Command<'_>) {
        let now = self.now();
        let happenings = self.schedule.handle(command, now);
        self.carry_out(happenings);
    }

    fn carry_out(&mut self, happenings: Vec<Happening>) {
        for happening in happenings {
            match happening {
                Happening::Started { node } => {
                    let attempt = self.attempts(node) + 1;
                    let operation = self.id(node);
                    self.pending.push(EventKind::AttemptStarted { operation, attempt });
                    self.running.insert(node, Running { stop: Stop::new(), attempt, stopped: false });
                    self.to_start.push(node);
                }
                Happening::Completed { node } => {
                    self.running.remove(&node);
                    self.enter(node, NodeStatus::Complete, None);
                }
                Happening::Decided { node, verdict, wait, .. } => {
                    if let Some(reason) = verdict.reclassified {
                        self.halt_reason = Some(reason);
                        self.reasons.insert(node, reason);
                    }
                    let attempt = self.running.remove(&node).map_or(0, |running| running.attempt);
                    let operation = Some(self.id(node));
                    self.pending.push(EventKind::DecisionMade {
                        operation,
                        attempt,
                        decision: verdict.decision,
                        reclassified: verdict.reclassified,
                    });
                    let started = wait.map(|wait| self.wait_started(node, &wait));
                    self.pending.extend(started);
                }
                Happening::GaveUp { node, .. } => {
                    self.running.remove(&node);
                    let reason = self.reasons.get(&node).map(|reason| reason.code().to_owned());
                    self.enter(node, NodeStatus::Failed, reason);
                }
                Happening::Blocked { node, .. } => self.enter(node, NodeStatus::Blocked, None),
                Happening::Dropped { node } | Happening::Again { node } => {
                    self.running.remove(&node);
                }
                Happening::Grew { .. } | Happening::Merged { .. } | Happening::Stopping => {}
                Happening::Ended(end) => self.ended = Some(end),
            }
        }
    }

    /// The event of a wait for a rate limit, with what the failure says about the limit.
    fn wait_started(&self, node: usize, wait: &LimitWait) -> EventKind {
        let facts = self.progress().node(node).errors.last().map(|error| &error.fault.facts);
        EventKind::WaitStarted {
            operation: Some(self.id(node)),
            wait: wait.number,
            provider: facts.and_then(|facts| facts.provider.clone()),
            model: facts.and_then(|facts| facts.model.clone()),
            window: facts.and_then(|facts| facts.window),
            resets_at: facts.and_then(|facts| facts.resets_at),
            wait_ms: executor::millis(wait.until.saturating_sub(self.now())),
        }
    }

    /// How many attempts a node has had, those about to be recorded included.
    fn attempts(&self, node: usize) -> u32 {
        let id = self.id(node);
        let soon = self.pending.iter().filter_map(|kind| match kind {
            EventKind::AttemptStarted { operation, attempt } if *operation == id => Some(*attempt),
            _ => None,
        });
        soon.max().unwrap_or(0).max(self.progress().node(node).total)
    }

    fn enter(&mut self, node: usize, status: NodeStatus, error_type: Option<String>) {
        let operation = Some(self.id(node));
        self.pending.push(EventKind::StateEntered {
            operation,
            state: status.name().to_owned(),
            error_type,
            context: None,
        });
    }

    fn handle(&mut self, message: Message) -> Result<(), HostError> {
        if matches!(message, Message::Attempted { .. } | Message::Integrated(..))
            && !self.schedule.is_stopping()
            && let Some(reason) = self.parts.admission.frozen()
        {
            self.frozen = Some(reason);
            self.command(&Command::Stop);
        }
        match message {
            Message::StopRequested(request) => self.stop_requested(request),
            Message::GateFinished(node, gate) => {
                let attempt = node.and_then(|node| self.running.get(&node)).map_or(0, |known| known.attempt);
                let kind = gate.event(node.map(|node| self.id(node)), attempt);
                self.pending.push(kind);
            }
            Message::Prepared(done) => self.prepared(done)?,
            Message::Concluded => self.concluded(),
            Message::Noted(node, note) => {
                self.parts.observers.iter_mut().for_each(|observer| observer.noted(node, &note));
            }
            Message::SessionStarted { node, agent, id, folder } => {
                if let Some(attempt) = self.running.get(&node).map(|running| running.attempt) {
                    self.pending.push(EventKind::SessionStarted {
                        operation: self.id(node),
                        attempt,
                        agent,
                        session_id: SafeText::new(id),
                        folder: Some(folder),
                    });
                }
            }
            Message::Admitted(kinds) => self.pending.extend(kinds),
            Message::Attempted { node, result, admitted } => self.attempted(node, *result, admitted)?,
            Message::Integrated(node, result) => self.integrated(node, *result),
        }
        Ok(())
    }

    fn stop_requested(&mut self, request: StopRequest) {
        self.command(&Command::Stop);
        for running in self.running.values_mut().filter(|_| request != StopRequest::Finish) {
            running.stopped = true;
            running.stop.request();
            if request == StopRequest::Kill {
                running.stop.request();
            }
        }
        self.stop_step(request);
        let running = self.running.len();
        self.parts.observers.iter_mut().for_each(|observer| observer.stop_requested(request, running));
    }

    /// Begins what is recorded as begun.
    fn begin<'s>(&mut self, scope: &'s Scope<'s, '_>, sender: &Sender<Message>)
    where
        'h: 's,
    {
        for node in std::mem::take(&mut self.to_start) {
            let Some(job) = self.attempt_job(node) else { continue };
            let reporter = Reporter::new(Some(node), sender.clone());
            let (executor, admission, clock) = (self.parts.executor, self.parts.admission, self.parts.clock);
            scope.spawn(move || {
                let began = clock();
                let waiting = |provider: &str, left: Duration| {
                    reporter.note(Note::AwaitingGuard { provider: provider.to_owned(), left });
                };
                let refused = |fault: &Fault| {
                    executor.refused(&job, fault);
                    let duration = clock().saturating_sub(began);
                    AttemptResult { duration, ..AttemptResult::failed(fault.clone()) }
                };
                reporter.attempted(
                    node,
                    |_| admission.before(&job, &waiting),
                    refused,
                    |reporter| executor.attempt(&job, reporter),
                );
            });
        }
        if let Some(node) = self.to_integrate.take()
            && let Some(job) = self.integration_job(node)
        {
            let executor = self.parts.executor;
            let reporter = Reporter::new(Some(node), sender.clone());
            scope.spawn(move || reporter.integrated(node, |reporter| executor.integrate(&job, reporter)));
        }
    }

    fn attempt_job(&self, node: usize) -> Option<AttemptJob> {
        let running = self.running.get(&node)?;
        let known = self.progress().node(node);
        let (chance, of) = self.schedule.chance(node);
        let beside = self.schedule.running().iter().copied().filter(|other| *other != node).collect();
        Some(AttemptJob {
            node,
            id: self.ids[node].clone(),
            attempt: running.attempt,
            chance,
            of,
            tip: self.progress().tip.clone(),
            previous: known.last_error().map(|error| error.fault.clone()),
            tasks_done: known.tasks_done.clone(),
            output: known.output.clone(),
            session: known.prior_session(),
            lost: known.lost_attempt.is_some_and(|lost| lost + 1 == running.attempt),
            used: self.progress().used().unwrap_or_default(),
            worker: known.worker.clone(),
            beside,
            stop: running.stop.clone(),
        })
    }

    fn integration_job(&self, node: usize) -> Option<IntegrationJob> {
        let running = self.running.get(&node)?;
        Some(IntegrationJob {
            node,
            id: self.ids[node].clone(),
            attempt: running.attempt,
            delivery: self.progress().node(node).delivery.clone().unwrap_or_default(),
            tip: self.progress().tip.clone(),
            resumed: self.integration_resumed,
            stop: running.stop.clone(),
        })
    }
}
