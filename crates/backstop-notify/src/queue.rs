//! Puts a message into the outbox, for every sink whose route matches.

use super::{Message, Sink, SinkKind, limits};
use backstop_core::{Name, Severity};
use backstop_store::{NewNote, Outbox, StoreError};

/// The result of queuing a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueOutcome {
    /// The sinks that it was queued for.
    pub queued: Vec<Name>,
    /// The terminal sinks that it is to be printed on now.
    pub tell: Vec<Name>,
    /// Whether a sink's secret is in the environment: a sender started from this process can read
    /// it, another may not.
    pub needs_environment: bool,
}

impl QueueOutcome {
    /// All sinks that take the message.
    pub fn sinks(&self) -> impl Iterator<Item = &Name> {
        self.queued.iter().chain(&self.tell)
    }
}

/// Queues a message for each sink that takes it. `project` is the folder whose configuration has
/// the sinks.
pub fn queue(
    outbox: &Outbox,
    sinks: &[Sink],
    message: &Message,
    project: &str,
) -> Result<QueueOutcome, StoreError> {
    let mut outcome = QueueOutcome::default();
    let body = serde_json::to_value(message).unwrap_or_default();
    for sink in sinks.iter().filter(|sink| sink.route.takes(&message.about)) {
        let note = NewNote {
            sink: sink.name.clone(),
            target: sink.target(),
            project: project.to_owned(),
            group: message.group(),
            body: body.clone(),
            label: message.about.operation.raw().to_owned(),
            urgent: message.about.severity == Severity::Critical,
        };
        if sink.kind == SinkKind::Terminal {
            // Only this process has the terminal.
            if outbox.say_once(&note, limits::GROUP_WINDOW)? {
                outcome.tell.push(sink.name.clone());
            }
            continue;
        }
        outbox.add(&note)?;
        outcome.needs_environment |= sink.secret_env().is_some();
        outcome.queued.push(sink.name.clone());
    }
    Ok(outcome)
}
