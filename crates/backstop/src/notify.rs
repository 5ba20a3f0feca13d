//! `backstop notify`, and what every command does when a run has ended: people are told, and nobody waits for it.

mod direct;
mod list;
mod send;
mod test;

use crate::cli::{Notify, NotifyAction};
use crate::context::Context;
use crate::error::{CliError, DONE};
use crate::terminal;
use backstop_core::{EventKind, Severity};
use backstop_notify::{self as notify, Kind, Message, Sink};
use backstop_store::{Outbox, StateFolder, StoreError};

pub(crate) fn run(args: &Notify) -> Result<u8, CliError> {
    match &args.action {
        NotifyAction::Test { sink, json } => test::run(sink.as_deref(), *json),
        NotifyAction::List { json } => list::run(*json).map(|()| DONE),
        NotifyAction::Send { direct: false } => send::run(),
        NotifyAction::Send { direct: true } => direct::run(),
    }
}

/// A sender that was cut off left something; whoever comes by sees to it.
pub(crate) fn see_to_the_rest(context: &Context) {
    if context.config.has_sinks() {
        let left = || -> Option<bool> {
            let outbox = Outbox::open_existing(&context.folder().ok()?).ok()??;
            outbox.has_unfinished().ok()
        };
        if left() == Some(true) {
            send::start(context, false);
        }
    }
}

/// The sinks that can be used; of the others it is said what is wrong with them.
fn usable(context: &Context) -> Vec<Sink> {
    let sinks = backstop_notify::sinks(&context.config).into_iter().filter_map(|(_, sink)| match sink {
        Ok(sink) => Some(sink),
        Err(error) => {
            terminal::warn(&error.to_string(), Some(&error.hint()));
            None
        }
    });
    sinks.collect()
}

/// Tells whoever has to know, by way of the outbox. Gives what is to be recorded about that. What goes wrong is a warning: it
/// must not change how anything ends.
pub(crate) fn tell(context: &Context, message: &Message) -> Vec<EventKind> {
    if !context.config.has_sinks() {
        return Vec::new();
    }
    let sinks = usable(context);
    if !sinks.iter().any(|sink| sink.route.takes(&message.about)) {
        return Vec::new();
    }
    let queue = || -> Result<_, CliError> {
        let outbox = open(&context.folder()?)?;
        let folder = std::env::current_dir().unwrap_or_else(|_| context.project.clone());
        Ok(notify::queue(&outbox, &sinks, message, &folder.to_string_lossy())?)
    };
    let queued = match queue() {
        Ok(queued) => queued,
        Err(error) => {
            let hints = error.hints();
            terminal::warn(
                &format!("the message cannot be queued: {error}"),
                hints.first().map(String::as_str),
            );
            // What is only printed needs no outbox; it may be said twice then.
            let mut here = sinks.iter().filter(|sink| sink.kind == Kind::Terminal);
            if !terminal::is_quiet() && here.any(|sink| sink.route.takes(&message.about)) {
                terminal::say(&format!("\n{}", message.plain));
            }
            // What is critical must not stay unsaid because there is no room to write it down.
            if message.about.severity == Severity::Critical {
                direct::hand_over(message);
            }
            return Vec::new();
        }
    };
    if !queued.tell.is_empty() && !terminal::is_quiet() {
        terminal::say(&format!("\n{}", message.plain));
    }
    if !queued.queued.is_empty() {
        send::start(context, queued.needs_environment);
    }
    queued.sinks().map(|sink| EventKind::Notified { sink: sink.to_string() }).collect()
}

/// Opens the outbox. A damaged file is set aside: what waited in it is not told, which is said.
fn open(folder: &StateFolder) -> Result<Outbox, CliError> {
    match Outbox::open(folder) {
        Err(StoreError::Corrupt { file, why }) => {
            let aside = folder.quarantine_outbox()?;
            let place = aside.map(|path| path.display().to_string()).unwrap_or_default();
            let lost = format!(
                "{} was damaged ({why}) and is set aside as {place}; what waited in it is not sent",
                file.display()
            );
            terminal::warn(&lost, None);
            Ok(Outbox::open(folder)?)
        }
        other => Ok(other?),
    }
}
