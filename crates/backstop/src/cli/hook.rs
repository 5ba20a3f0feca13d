//! What may be typed about hooks.

use clap::{Args, Subcommand};

/// What others call when something fails: tasks that report an error, and coding agents.
#[derive(Debug, Args)]
pub(crate) struct Hook {
    #[command(subcommand)]
    pub(crate) action: HookAction,
}

/// Who calls, and what is asked.
#[derive(Debug, Subcommand)]
pub(crate) enum HookAction {
    /// A task reports its error, as JSON on standard input: answers what it is, and whether and when it is tried again
    #[command(after_help = "Example:\n  echo '{\"task_data\":{\"task_id\":\"task-1\"},\
        \"error\":{\"type\":\"ConnectionError\",\"message\":\"refused\"}}' | backstop hook on-error")]
    OnError,
    /// An event of a coding agent's hooks, as JSON on standard input; exits 0 always, so that it never blocks the agent
    Agent {
        /// Whose models the agent uses, such as `anthropic`; else the event says, else it is `anthropic`
        #[arg(long, value_name = "NAME")]
        provider: Option<String>,
    },
    /// How the tasks of this project stand whose errors were reported
    Status {
        /// Only this task
        task: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// A task has got over its error: its attempts are counted anew
    Resolved {
        /// The task
        task: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
