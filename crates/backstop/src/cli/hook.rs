//! What may be typed about hooks.

use super::{Cli, Command};
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

impl Cli {
    /// What agents and tasks call all the time, where it is just that: known without everything that could be typed.
    pub(crate) fn usual_hook() -> Option<Self> {
        // Of a longer command line no more is looked at.
        let args: Vec<_> = std::env::args_os().skip(1).take(5).collect();
        let args: Option<Vec<&str>> = args.iter().map(|arg| arg.to_str()).collect();
        usual(&args?).map(|action| Self { log_format: None, command: Some(Command::Hook(Hook { action })) })
    }
}

fn usual(args: &[&str]) -> Option<HookAction> {
    match args {
        ["hook", "on-error"] => Some(HookAction::OnError),
        ["hook", "agent"] => Some(HookAction::Agent { provider: None }),
        ["hook", "agent", "--provider", name] if !name.starts_with('-') && !name.is_empty() => {
            Some(HookAction::Agent { provider: Some((*name).to_owned()) })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn what_is_usual_means_what_it_says() {
        for line in ["hook on-error", "hook agent", "hook agent --provider openai"] {
            let args: Vec<&str> = line.split(' ').collect();
            let parsed =
                Cli::try_parse_from(std::iter::once("backstop").chain(args.iter().copied())).unwrap();
            let Some(Command::Hook(hook)) = parsed.command else { panic!("{line}") };
            assert_eq!(format!("{:?}", usual(&args).unwrap()), format!("{:?}", hook.action));
        }
        for line in [
            "hook",
            "hook agent --help",
            "hook agent --provider",
            "hook agent --provider --help",
            "hook status",
        ] {
            assert!(usual(&line.split(' ').collect::<Vec<_>>()).is_none(), "{line}");
        }
    }
}
