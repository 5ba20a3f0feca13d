//! `backstop hook`: what others call when something fails.

mod tasks;

use crate::cli::{Cli, Command};
use crate::error::{CliError, DONE};
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::SafeText;
use backstop_core::nearest::nearest;
use backstop_exec::read_stdin;
use backstop_hook::agent::answer;
use backstop_hook::{INPUT_BYTES_MAX, Surroundings, agent, on_error};
use clap::{Args, Subcommand};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// How long an agent's event may take to come in: agents end their hooks after ten seconds, and
/// what they end says nothing.
const EVENT_MAX: Duration = Duration::from_secs(5);
/// How long a report may take to come in.
const REPORT_MAX: Duration = Duration::from_secs(30);

/// Take failure reports from tasks and coding agents, and answer them.
#[derive(Debug, Args)]
pub(crate) struct Hook {
    #[command(subcommand)]
    pub(crate) action: HookAction,
}

/// Who calls, and what is asked.
#[derive(Debug, Subcommand)]
pub(crate) enum HookAction {
    /// Take a task's error as JSON on standard input; answer what it is, and whether and when to
    /// retry
    #[command(after_help = "Example:\n  echo '{\"task_data\":{\"task_id\":\"task-1\"},\
        \"error\":{\"type\":\"ConnectionError\",\"message\":\"refused\"}}' | backstop hook on-error")]
    OnError,
    /// Take a hook event of a coding agent as JSON on standard input; always exits 0, so that it
    /// never blocks the agent
    Agent {
        /// Provider of the agent's models, such as `anthropic` (default: from the event, else
        /// `anthropic`)
        #[arg(long, value_name = "NAME")]
        provider: Option<String>,
    },
    /// Show the tasks of this project that reported errors
    Status {
        /// Only this task
        task: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Mark a task's error as resolved; its attempts are counted from 1 again
    Resolved {
        /// The task
        task: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &Hook, format: Option<LogFormat>) -> Result<u8, CliError> {
    match &args.action {
        HookAction::OnError => report(format)?,
        HookAction::Agent { provider } => event(provider.as_deref()),
        HookAction::Status { task, json } => tasks::status(task.as_deref(), *json)?,
        HookAction::Resolved { task, json } => tasks::resolved(task, *json)?,
    }
    Ok(DONE)
}

/// Answers the report of a task. Whatever happens, there is one JSON object on standard output.
fn report(format: Option<LogFormat>) -> Result<(), CliError> {
    let answered = match read_stdin(INPUT_BYTES_MAX, REPORT_MAX) {
        Ok(bytes) => with_surroundings(format, |around| on_error::handle(&bytes, around)),
        Err(error) => return Err(CliError::read("standard input", error)),
    };
    match answered {
        Ok(answer) => terminal::print_json(&answer),
        Err(refused) => {
            let (mut refusal, error) = *refused;
            if let Some(Value::String(message)) = refusal.pointer_mut("/error/message") {
                *message = terminal::redactor().redact(message).into_owned();
            }
            terminal::print_json(&refusal)?;
            Err(error.into())
        }
    }
}

/// Answers an event of an agent, always: what goes wrong is a line in the log, and the agent goes
/// on.
fn event(provider: Option<&str>) {
    // A panic is a line in the log like everything else.
    std::panic::set_hook(Box::new(|_| {}));
    let handled = catch_unwind(AssertUnwindSafe(|| -> Result<Option<Value>, String> {
        let bytes = read_stdin(INPUT_BYTES_MAX, EVENT_MAX)
            .map_err(|error| CliError::read("standard input", error).to_string())?;
        with_surroundings(None, |around| agent::handle(&bytes, provider, around))
            .map_err(|error| error.to_string())
    }));
    let said = match handled {
        Ok(Ok(said)) => said.filter(|_| !process::is_disabled()),
        Ok(Err(error)) => {
            log(&error);
            None
        }
        Err(_) => {
            log("it panicked; please report this with the event that it was given");
            None
        }
    };
    say(said);
}

/// What a hook is given by this process.
fn with_surroundings<T>(format: Option<LogFormat>, use_it: impl FnOnce(&Surroundings<'_>) -> T) -> T {
    let open = || process::open(&[], format).map_err(CliError::into_project_error);
    use_it(&Surroundings {
        open: &open,
        folder: &process::user_folder,
        root: &|| process::root().ok(),
        now: process::now,
        disabled: process::is_disabled(),
    })
}

/// Answers, also where there is nothing to say: an agent that reads JSON finds some.
fn say(said: Option<Value>) {
    let said = said.unwrap_or_else(answer::nothing);
    if let Err(error) = terminal::print_json(&said) {
        log(&error.to_string());
    }
}

/// Writes down what went wrong.
fn log(what: &str) {
    with_surroundings(None, |around| around.log(what));
}

/// Whether a mistake in these arguments may be one in what an agent calls: then it must not block
/// the agent.
pub(crate) fn is_agents(args: &[String]) -> bool {
    // The one global flag that takes a value may stand before the command.
    let valued = |at: usize| at > 0 && args[at - 1] == "--log-format";
    let words = args.iter().enumerate().filter(|(at, arg)| !arg.starts_with('-') && !valued(*at));
    let mut words = words.map(|(_, arg)| arg.as_str());
    const ACTIONS: [&str; 4] = ["agent", "on-error", "status", "resolved"];
    // What is near another action is a mistake of somebody else's.
    let may_be_agent = |word: &str| nearest(word, ACTIONS).is_none_or(|near| near == "agent");
    words.next() == Some("hook") && words.next().is_some_and(may_be_agent)
}

/// Answers an agent whose settings call us wrongly: it goes on as if there were no hook, and the
/// mistake is in the log.
pub(crate) fn answer_nothing(mistake: &str) {
    log(&SafeText::new(mistake).line(300));
    say(None);
}

impl Cli {
    /// What agents and tasks call all the time, where it is just that: known without everything
    /// that could be typed.
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
