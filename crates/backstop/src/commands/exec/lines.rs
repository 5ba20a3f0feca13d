//! What is printed while a command is attempted: lines for people with a countdown, JSON events, or
//! EMIT lines.

use super::countdown::Countdown;
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::guard::Closed;
use backstop_core::{Action, Event, EventKind, Name};
use backstop_report::Style;
use backstop_runtime::Observer;
use std::sync::{Mutex, PoisonError};

/// Prints what was recorded, in one of the formats of the log.
pub(super) struct Lines {
    format: LogFormat,
    quiet: bool,
    style: Style,
    /// The line about the attempt that failed last.
    failed: Mutex<String>,
    countdown: Countdown,
}

impl Lines {
    pub(super) fn new(format: LogFormat, quiet: bool) -> Self {
        let (failed, countdown) = (Mutex::default(), Countdown::default());
        Self { format, quiet, style: terminal::stderr_style(), failed, countdown }
    }

    /// What a person is told while it goes on. How it ended is told at the end.
    fn human(&self, kind: &EventKind) -> Option<String> {
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
        if self.quiet || self.format != LogFormat::Human {
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
        if self.quiet && self.format == LogFormat::Human {
            return;
        }
        for event in events {
            let line = match self.format {
                LogFormat::Json => Some(backstop_report::to_json(event)),
                LogFormat::Emit => backstop_report::event_emit(event),
                LogFormat::Human => self.human(&event.kind),
            };
            if let Some(line) = line {
                terminal::say(&format!("{line}\n"));
            }
            if let (LogFormat::Human, EventKind::DecisionMade { decision, .. }) = (self.format, &event.kind)
                && let Action::Retry { after, .. } | Action::AwaitGuard { after, .. } = &decision.action
            {
                self.countdown.start(*after);
            }
        }
    }
}
