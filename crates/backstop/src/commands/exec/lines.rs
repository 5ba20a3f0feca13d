//! What a person is told while a command is attempted: lines, and a countdown. What programs read
//! is `EventLines`'.

use super::countdown::Countdown;
use crate::{process, terminal};
use backstop_core::guard::Closed;
use backstop_core::{Action, Event, EventKind, Name};
use backstop_report::Style;
use backstop_runtime::Observer;
use std::sync::{Mutex, PoisonError};

/// Tells a person what was recorded.
pub(super) struct Lines {
    /// Whether nobody is told.
    quiet: bool,
    style: Style,
    /// The line about the attempt that failed last.
    failed: Mutex<String>,
    countdown: Countdown,
}

impl Lines {
    pub(super) fn new(quiet: bool) -> Self {
        let (failed, countdown) = (Mutex::default(), Countdown::default());
        Self { quiet, style: terminal::stderr_style(), failed, countdown }
    }

    /// What a person is told while it goes on. How it ended is told at the end.
    fn line(&self, kind: &EventKind) -> Option<String> {
        match kind {
            EventKind::ErrorClassified { attempt, fault, .. } => {
                // Told with what is done about it; a failure that ends the run is told by the
                // ending.
                let line = backstop_report::attempt_failed(*attempt, fault, self.style);
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = line;
                None
            }
            EventKind::DecisionMade { decision, .. } => match &decision.action {
                Action::Retry { after, attempt, of } | Action::AwaitGuard { after, attempt, of, .. } => {
                    let failed =
                        std::mem::take(&mut *self.failed.lock().unwrap_or_else(PoisonError::into_inner));
                    let retrying = backstop_report::retrying(*after, *attempt, *of, self.style);
                    Some(format!("{failed}\n{retrying}"))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Says that a guard is waited for.
    pub(super) fn waiting(&self, provider: &Name, closed: &Closed) {
        if self.quiet {
            return;
        }
        let now = process::now();
        terminal::say(&backstop_report::guard_countdown(provider, closed, now, self.style));
        self.countdown.start(closed.left(now));
    }
}

impl Observer for Lines {
    fn recorded(&self, events: &[Event]) {
        self.countdown.stop();
        if self.quiet {
            return;
        }
        for event in events {
            if let Some(line) = self.line(&event.kind) {
                terminal::say(&format!("{line}\n"));
            }
            if let EventKind::DecisionMade { decision, .. } = &event.kind
                && let Action::Retry { after, .. } | Action::AwaitGuard { after, .. } = &decision.action
            {
                self.countdown.start(*after);
            }
        }
    }
}
