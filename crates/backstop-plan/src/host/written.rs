//! What a host writes: the journal first, then everything that follows from it, and the end.

use super::{Host, HostError, told};
use backstop_core::{End, Event, EventKind, Outcome, Reason};

impl Host<'_> {
    /// Records what is pending: all of it, or the run is over.
    pub(super) fn commit(&mut self) -> Result<(), HostError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let kinds = std::mem::take(&mut self.pending);
        let events = self.parts.recorder.append(kinds)?;
        self.follow(&events);
        Ok(())
    }

    /// Everything that follows from what was recorded.
    pub(super) fn follow(&mut self, events: &[Event]) {
        let mut lines = String::new();
        for event in events {
            self.parts.record.apply(event);
            lines.extend(told::log_line(event, &self.parts.record));
        }
        let touched: Vec<usize> = std::mem::take(&mut self.touched).into_iter().collect();
        for &node in &touched {
            self.upkeep.note(self.parts.plan, node, self.parts.record.phase(node), self.now());
        }
        let views = &self.parts.views;
        let logged = if lines.is_empty() { Ok(()) } else { views.log(&lines) };
        self.views_written(logged);
        self.unseen.extend(touched);
        let now = self.now();
        self.unseen_since.get_or_insert(now);
        self.watch.recorded(events, &self.parts.record, &self.parts.schedule);
    }

    /// Views that cannot be written hold nothing up; somebody is told.
    pub(super) fn views_written(&mut self, written: std::io::Result<()>) {
        if let Err(error) = written {
            let place = self.parts.views.path().display();
            self.watch.trouble(&format!("the views in {place} cannot be written: {error}"));
        }
    }

    pub(super) fn write_views(&mut self) {
        self.unseen_since = None;
        let phases: Vec<usize> = std::mem::take(&mut self.unseen).into_iter().collect();
        let written = self.parts.views.write_phases(&self.parts.record, &phases);
        self.views_written(written);
    }

    pub(super) fn keep_up(&mut self) {
        self.write_views();
        if let Err(error) = self.upkeep.write() {
            self.watch.trouble(&format!("the plan's marks cannot be written: {error}"));
        }
        let config = told::config(&self.parts.record, &self.parts.resume);
        if let Err(error) = self.parts.views.write_config(&config) {
            self.watch.trouble(&format!("the run's summary cannot be written: {error}"));
        }
    }

    /// Brings the work to the user. Where that cannot be, the run halts and can be gone on with.
    pub(super) fn conclude(&mut self) {
        match self.parts.workshop.conclude(&self.parts.record) {
            Ok(conclusion) => {
                if let Some((sha, subject)) = conclusion.commit.clone() {
                    let operation = self.parts.record.path.clone();
                    self.pending.push(EventKind::CommitMade { operation, sha, subject: Some(subject) });
                }
                self.conclusion = Some(conclusion);
            }
            Err(fault) => {
                let operation = self.parts.record.path.clone();
                self.pending.push(EventKind::ErrorClassified { operation, attempt: 1, fault: fault.clone() });
                self.halt_reason = Some(fault.reason);
                self.unconcluded = Some(fault);
            }
        }
    }

    pub(super) fn finish(&mut self, end: &End) -> Result<(), HostError> {
        if *end == End::Complete {
            self.conclude();
        }
        // Views first: from the record of the end on, a missing file means that somebody took it away.
        self.keep_up();
        let missing = |at: &usize| !self.parts.views.phase_file(&self.parts.record.order[*at]).exists();
        let left: Vec<usize> = (0..self.parts.record.order.len()).filter(missing).collect();
        let written = self.parts.views.write_phases(&self.parts.record, &left);
        self.views_written(written);
        let resume = self.parts.resume.clone();
        let kind = match end {
            End::Complete if self.unconcluded.is_none() => EventKind::RunEnded {
                outcome: Outcome::Done,
                reason: None,
                attempts: self.parts.record.phases.values().map(|phase| phase.total).sum(),
                duration_ms: u64::try_from((self.parts.record.active_before + self.now()).as_millis())
                    .unwrap_or(u64::MAX),
                exit: Some(0),
                next: None,
            },
            End::Complete | End::Halted(_) => {
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
