//! Telling people by way of the outbox. Nobody waits for it.

use super::{sender, warn};
use crate::project::{Project, ProjectError};
use backstop_core::{EventKind, Severity};
use backstop_notify::{Message, Sink, SinkKind, queue};
use backstop_store::Outbox;

/// The sinks that can be used; of the others it is said what is wrong with them.
fn usable(project: &Project) -> Vec<Sink> {
    let sinks = backstop_notify::sinks(&project.config).into_iter().filter_map(|(_, sink)| match sink {
        Ok(sink) => Some(sink),
        Err(error) => {
            project.process.warn(&error.to_string(), Some(&error.hint()));
            None
        }
    });
    sinks.collect()
}

/// A sender that was cut off left something; whoever comes by sees to it.
pub fn send_rest(project: &Project) {
    if project.config.has_sinks() {
        let left = || -> Option<bool> {
            let outbox = Outbox::open_existing(project.folder().ok()?).ok()??;
            outbox.has_unfinished().ok()
        };
        if left() == Some(true) {
            sender::start(project, false);
        }
    }
}

/// The folder in which the sender looks for the sinks: the current one or, if its path holds what
/// looks like a secret, the nearest one above it whose path does not.
fn folder(project: &Project) -> String {
    let paths = project.process.cwd.ancestors().map(|folder| folder.to_string_lossy().into_owned());
    let mut plain = paths.filter(|path| project.redactor.redact(path) == *path);
    plain.next().unwrap_or_else(|| "/".to_owned())
}

/// Queues a message for whoever has to know. Gives what is to be recorded about that. What goes
/// wrong is a warning: it must not change how anything ends.
pub fn notify(project: &Project, message: &Message) -> Vec<EventKind> {
    if !project.config.has_sinks() {
        return Vec::new();
    }
    let sinks = usable(project);
    if !sinks.iter().any(|sink| sink.route.takes(&message.about)) {
        return Vec::new();
    }
    let output = &project.process.output;
    let queued =
        || -> Result<_, ProjectError> { Ok(queue(&project.outbox()?, &sinks, message, &folder(project))?) };
    let queued = match queued() {
        Ok(queued) => queued,
        Err(error) => {
            warn(project, "the message cannot be queued", &error);
            // What is only printed needs no outbox; it may be said twice then.
            let mut here = sinks.iter().filter(|sink| sink.kind == SinkKind::Terminal);
            if !output.is_quiet() && here.any(|sink| sink.route.takes(&message.about)) {
                output.message(&message.plain);
            }
            // What is critical must not stay unsaid because there is no room to write it down.
            if message.about.severity == Severity::Critical {
                sender::hand_over(project, message);
            }
            return Vec::new();
        }
    };
    if !queued.tell.is_empty() && !output.is_quiet() {
        output.message(&message.plain);
    }
    if !queued.queued.is_empty() {
        sender::start(project, queued.needs_environment);
    }
    queued.sinks().map(|sink| EventKind::Notified { sink: sink.to_string() }).collect()
}
