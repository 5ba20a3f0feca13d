//! `backstop notify`: the sinks, what waits for them, and the sender.

mod list;
mod test;

use crate::error::{CliError, DONE};
use crate::process;
use backstop_runtime::aftermath::sender;
use clap::{Args, Subcommand};
use std::io::Read;

/// The longest message that is handed over directly.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;

/// Show and test notifications. Sinks, the places that messages go to, are set in the config below
/// `notify`.
///
/// Without a command, the sinks and the last messages are shown.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  backstop notify test\n  backstop notify test ops --json\n  backstop notify list"
)]
pub(crate) struct Notify {
    #[command(subcommand)]
    pub(crate) action: Option<NotifyAction>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to do about them.
#[derive(Debug, Subcommand)]
pub(crate) enum NotifyAction {
    /// Send a test message to a sink; exits 1 if it could not be sent
    Test {
        /// The sink (default: all of them)
        sink: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the sinks, the messages that wait, and the last deliveries
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Deliver what waits, until nothing is left. Backstop starts this by itself
    #[command(hide = true)]
    Send {
        /// The one message on standard input, without the outbox: there was no room for it there
        #[arg(long)]
        direct: bool,
    },
}

impl Notify {
    /// Whether it is the detached sender, which has nobody to tell anything.
    pub(crate) fn is_sender(&self) -> bool {
        matches!(self.action, Some(NotifyAction::Send { .. }))
    }
}

pub(crate) fn run(args: &Notify) -> Result<u8, CliError> {
    match &args.action {
        None => list::run(args.json)?,
        Some(NotifyAction::Test { sink, json }) => return test::run(sink.as_deref(), *json),
        Some(NotifyAction::List { json }) => list::run(*json)?,
        Some(NotifyAction::Send { direct }) => send(*direct)?,
    }
    Ok(DONE)
}

/// Delivers what waits, as a process of its own.
fn send(direct: bool) -> Result<(), CliError> {
    // A session of its own: what is typed at the terminal is not for it. That it has one already is
    // no error.
    let _ = rustix::process::setsid();
    if !direct {
        return Ok(sender::run(&process::open_quietly(&[], None)?, &process::open_at)?);
    }
    let mut text = Vec::new();
    let read = std::io::stdin().take(MESSAGE_BYTES_MAX).read_to_end(&mut text);
    read.map_err(|error| CliError::read("standard input", error))?;
    Ok(sender::deliver_directly(&text, &process::open_at)?)
}
