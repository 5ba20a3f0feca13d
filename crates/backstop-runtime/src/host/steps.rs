//! What a host does before its first node begins and after its last one is complete: each on a
//! thread of its own, so that the loop still draws, records and can be stopped meanwhile.

use super::executor::{Message, millis};
use super::{Concluded, Fold, Host, HostError, Reporter, StopRequest};
use backstop_core::{Command, End, EventKind, Fault};
use backstop_exec::Stop;
use std::sync::mpsc::{Receiver, Sender};
use std::thread::Scope;
use std::time::Duration;

/// Which part of a run is under way.
pub(super) enum Step<C> {
    /// The run is to start at this time, since this process began.
    NotYet(Duration),
    /// The executor prepares; no node has begun.
    Preparing(Stop),
    /// Nodes are worked on.
    Working,
    /// Every node is complete, and the executor does what is left.
    Concluding(Stop, Receiver<Result<Concluded<C>, Box<Fault>>>),
    /// Nothing is left but to record the end.
    Over,
}

impl<'h, R: Fold + Clone + Send + 'static, C: Send> Host<'h, R, C> {
    /// Begins at once, or at the time at which the run is to start; that is recorded.
    pub(super) fn wait_for_start(&mut self) {
        let after = self.parts.start_after;
        self.step = Step::NotYet(self.now().saturating_add(after));
        if !after.is_zero() {
            self.pending.push(EventKind::WaitStarted {
                operation: None,
                wait: 0,
                provider: None,
                model: None,
                window: None,
                resets_at: None,
                wait_ms: millis(after),
            });
        }
    }

    /// Has the executor prepare.
    pub(super) fn prepare<'s>(&mut self, scope: &'s Scope<'s, '_>, sender: &Sender<Message>)
    where
        'h: 's,
    {
        let stop = Stop::new();
        self.step = Step::Preparing(stop.clone());
        let executor = self.parts.executor;
        let reporter = Reporter::new(None, sender.clone());
        scope.spawn(move || reporter.prepared(|reporter| executor.prepare(&stop, reporter)));
    }

    /// The executor has prepared: what it found is recorded, then nodes may begin.
    pub(super) fn prepared(&mut self, done: Result<Vec<EventKind>, Box<Fault>>) -> Result<(), HostError> {
        self.step = Step::Working;
        let done = match done {
            Ok(events) => {
                self.pending.extend(events);
                self.commit()?;
                self.parts.executor.prepared(&self.parts.record)
            }
            Err(fault) => Err(fault),
        };
        match done {
            // Somebody asked for the end meanwhile: that it was not prepared says nothing.
            Err(_) if self.schedule.is_stopping() => {}
            Err(fault) => {
                self.run_failed(&fault);
                self.unprepared = Some(fault);
                self.step = Step::Over;
                self.ended = Some(End::Halted(Vec::new()));
                return Ok(());
            }
            Ok(()) => {}
        }
        self.pick_up();
        self.command(&Command::Look);
        Ok(())
    }

    /// Has the executor do what is left. Where that cannot be done, the run halts and can be
    /// resumed.
    pub(super) fn conclude<'s>(&mut self, scope: &'s Scope<'s, '_>, sender: &Sender<Message>)
    where
        'h: 's,
    {
        let (stop, executor) = (Stop::new(), self.parts.executor);
        let (to, result) = std::sync::mpsc::channel();
        self.step = Step::Concluding(stop.clone(), result);
        let record = self.parts.record.clone();
        let reporter = Reporter::new(None, sender.clone());
        scope.spawn(move || reporter.concluded(&to, |reporter| executor.conclude(&record, &stop, reporter)));
    }

    /// The executor has done what is left, or could not.
    pub(super) fn concluded(&mut self) {
        let Step::Concluding(_, result) = std::mem::replace(&mut self.step, Step::Over) else { return };
        match result.try_recv() {
            Ok(Ok(Concluded { events, conclusion })) => {
                self.pending.extend(events);
                self.conclusion = Some(conclusion);
            }
            Ok(Err(fault)) => {
                self.run_failed(&fault);
                self.unconcluded = Some(fault);
            }
            // It is sent before the message that it is there.
            Err(_) => {}
        }
    }

    /// Records a failure of the run itself, which belongs to no node.
    fn run_failed(&mut self, fault: &Fault) {
        let operation = self.progress().operation.clone();
        let mut fault = fault.clone();
        (self.parts.annotate_fault)(&mut fault);
        self.halt_reason = Some(fault.reason);
        self.pending.push(EventKind::ErrorClassified { operation, attempt: 1, fault: Box::new(fault) });
    }

    /// Somebody asks for the end: preparing is given up at once, the end of the work is not.
    pub(super) fn stop_step(&mut self, request: StopRequest) {
        let stop = match &self.step {
            Step::Preparing(stop) => stop,
            Step::Concluding(stop, _) if request != StopRequest::Finish => stop,
            _ => return,
        };
        stop.request();
        if request == StopRequest::Kill {
            stop.request();
        }
    }
}
