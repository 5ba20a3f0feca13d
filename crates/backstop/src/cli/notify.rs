//! What may be typed about notifications.

use clap::{Args, Subcommand};

/// Who is told when something ends badly. Sinks are in the configuration, below `notify`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  backstop notify test\n  backstop notify test ops --json\n  backstop notify list"
)]
pub(crate) struct Notify {
    #[command(subcommand)]
    pub(crate) action: NotifyAction,
}

/// What to do about them.
#[derive(Debug, Subcommand)]
pub(crate) enum NotifyAction {
    /// Send a message through a sink now, and say what happened: exits 1 where one could not be sent
    Test {
        /// The sink; all, where none is named
        sink: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the sinks, what waits for them, and what became of the last messages
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
