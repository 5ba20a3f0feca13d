//! What a host writes: the log first, then what follows from it for the record, the schedule and
//! the observers; and the end.

use super::executor::millis;
use super::nodes::grow;
use super::record_again::record;
use super::{Fold, Host, HostError, HostState, Observer, ObserverError, RunProgress};
use backstop_core::{Command, End, Event, EventKind, Outcome, Reason};

impl<R: Fold + Clone + Send + 'static, C: Send> Host<'_, R, C> {
    /// Records what is pending, and what follows from it: all of it, or the run is over.
    pub(super) fn commit(&mut self) -> Result<(), HostError> {
        while !self.pending.is_empty() {
            let kinds = std::mem::take(&mut self.pending);
            let events = record(self.parts.log, self.progress().seq, kinds)?;
            self.follow(&events)?;
        }
        Ok(())
    }

    /// Everything that follows from what was recorded.
    pub(super) fn follow(&mut self, events: &[Event]) -> Result<(), HostError> {
        for event in events {
            self.parts.record.apply(event);
            for observer in &mut self.parts.observers {
                observer.applied(event, &self.parts.record);
            }
        }
        if events.iter().any(|event| RunProgress::brings_nodes(&event.kind)) {
            self.grow()?;
        }
        self.observe(|observer, state| observer.recorded(events, state));
        Ok(())
    }

    /// The schedule's graph becomes that of the recorded nodes, where there are more than it knows.
    fn grow(&mut self) -> Result<(), HostError> {
        let happenings = grow(self.progress(), &self.schedule, &self.ids)?;
        if happenings.is_empty() {
            return Ok(());
        }
        happenings.iter().for_each(|happening| self.schedule.evolve(happening));
        self.ids = self.progress().order.clone();
        self.carry_out(happenings);
        self.command(&Command::Look);
        Ok(())
    }

    /// Calls every observer. What one cannot do holds nothing up; all of them are told.
    pub(super) fn observe(
        &mut self,
        mut call: impl FnMut(&mut dyn Observer<R>, &HostState<'_, R>) -> Result<(), ObserverError>,
    ) {
        let now = self.now();
        let state = HostState { record: &self.parts.record, schedule: &self.schedule, now };
        let observers = &mut self.parts.observers;
        let troubles: Vec<ObserverError> =
            observers.iter_mut().filter_map(|observer| call(&mut **observer, &state).err()).collect();
        for ObserverError(message) in &troubles {
            observers.iter_mut().for_each(|observer| observer.trouble(message));
        }
    }

    pub(super) fn finish(&mut self, end: &End) -> Result<(), HostError> {
        self.observe(|observer, state| observer.before_end(state));
        if self.parts.is_stage {
            return self.commit();
        }
        let resume = self.parts.resume.clone();
        let kind = match end {
            End::Complete if self.unconcluded.is_none() => EventKind::RunEnded {
                outcome: Outcome::Done,
                reason: None,
                attempts: self.progress().attempts(),
                duration_ms: millis(self.progress().active_before + self.now()),
                exit: Some(0),
                next: None,
            },
            End::Complete | End::Halted(_) | End::Blocked(_) | End::Stuck { .. } => {
                EventKind::RunHalted { reason: self.halt_reason.unwrap_or(Reason::Unknown), resume }
            }
            End::Stopped => {
                EventKind::RunHalted { reason: self.frozen.unwrap_or(Reason::Interrupted), resume }
            }
        };
        self.pending.push(kind);
        self.commit()
    }
}
