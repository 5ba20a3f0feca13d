//! `backstop notify`: the sinks, what waits for them, and the sender.

use crate::error::{CliError, DONE, FAILED};
use crate::{process, terminal};
use backstop_notify::{message_row, sink_rows};
use backstop_report::{Messages, SinkTests};
use backstop_runtime::aftermath::{sender, sink_test::test_sinks};
use backstop_store::Outbox;
use clap::{Args, Subcommand};
use std::io::Read;

/// How many messages are shown.
const SHOWN_MAX: usize = 50;
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
        None => list(args.json)?,
        Some(NotifyAction::Test { sink, json }) => return test(sink.as_deref(), *json),
        Some(NotifyAction::List { json }) => list(*json)?,
        Some(NotifyAction::Send { direct }) => send(*direct)?,
    }
    Ok(DONE)
}

/// The sinks, what waits, and what became of the last messages.
fn list(json: bool) -> Result<(), CliError> {
    let project = process::open(&[], None)?;
    terminal::warn_inert(&project.config);
    let notes = match Outbox::open_existing(project.folder()?)? {
        Some(outbox) => outbox.notes()?,
        None => Vec::new(),
    };
    let messages = notes.into_iter().take(SHOWN_MAX).map(message_row).collect();
    let sinks = sink_rows(&project.config);
    terminal::show(&Messages { sinks, messages, now: process::now() }, json)
}

/// A message through each sink, now, and what came of it.
fn test(only: Option<&str>, json: bool) -> Result<u8, CliError> {
    let project = process::open(&[], None)?;
    terminal::warn_inert(&project.config);
    let mut printed = Ok(());
    let tests = test_sinks(&project, only, &terminal::say, &mut |test| {
        if !json && printed.is_ok() {
            printed = terminal::show(test, false);
        }
    })?;
    printed?;
    let all_sent = tests.iter().all(|test| test.sent);
    if json {
        terminal::show(&SinkTests(tests), true)?;
    }
    Ok(if all_sent { DONE } else { FAILED })
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
