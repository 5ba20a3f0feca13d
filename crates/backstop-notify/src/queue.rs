//! A message on its way into the outbox: to every sink whose route takes it.

use super::{Message, Sink, SinkKind, limits};
use backstop_core::{Name, Severity};
use backstop_store::{NewNote, Outbox, StoreError};

/// What became of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueOutcome {
    /// The sinks that it waits for now.
    pub queued: Vec<Name>,
    /// The terminals that it is to be told on at once.
    pub tell: Vec<Name>,
    /// Whether one of the sinks has a secret in the environment: a sender from here can read it, another may not.
    pub needs_environment: bool,
}

impl QueueOutcome {
    /// The sinks that take it.
    pub fn sinks(&self) -> impl Iterator<Item = &Name> {
        self.queued.iter().chain(&self.tell)
    }
}

/// Puts a message into the outbox, for each sink that takes it. `project` is the folder whose configuration has the sinks.
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
            // Nobody but this process has the terminal.
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
