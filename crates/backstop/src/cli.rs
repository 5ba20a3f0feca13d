//! What may be typed: the commands and what they have in common. The arguments of each stand beside
//! its code.
//!
//! Completions, man pages and the reference are made from this.

use crate::commands::{
    agents::Agents, batch::Batch, budget::Budget, call::Call, campaign::Campaign, chain::Chain,
    classify::Classify, clean::Clean, config::Config, deferred::Deferred, demo::Demo, diagnose::Diagnose,
    doctor::Doctor, drift::Drift, events::Events, exec::Exec, explain::Explain, guard::Guard, hook::Hook,
    init::Init, machine::Machine, mcp::Mcp, notify::Notify, plan::Plan, proxy::ProxyArgs,
    reference::Completions, reference::Man, reference::Reasons, rules::Rules, run::Run, runs::Runs,
    stats::Stats, tools::Tools, trim::Trim, trust::Trust, unfreeze::Unfreeze,
};
use backstop_config::LogFormat;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;

/// Stands behind everything an AI agent does that can fail: classify, decide, recover, record.
#[derive(Debug, Parser)]
#[command(name = "backstop", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// Format of printed events
    #[arg(long, global = true, hide = true, value_name = "FORMAT", value_parser = log_formats())]
    pub(crate) log_format: Option<LogFormat>,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Reads `--log-format`.
fn log_formats() -> impl TypedValueParser<Value = LogFormat> {
    PossibleValuesParser::new([
        PossibleValue::new("human").help("Text for people"),
        PossibleValue::new("json").help("One JSON object per line"),
        PossibleValue::new("emit").help("`EMIT: TOOL_FAILURE tool=… error=…`"),
    ])
    .map(|word| match word.as_str() {
        "json" => LogFormat::Json,
        "emit" => LogFormat::Emit,
        _ => LogFormat::Human,
    })
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a plan: phases in order, failures retried with their context, results committed
    Run(Box<Run>),
    /// Show plan runs; retry, reset or skip phases
    Plan(Plan),
    /// Reach an objective: explore, plan, build, work around what is blocked
    Campaign(Box<Campaign>),
    /// Run a command; classify failures, retry those that a retry can cure, record them
    Exec(Box<Exec>),
    /// Take failure reports from tasks and coding agents, and answer them
    Hook(Hook),
    /// List, search and check the tools of MCP servers
    Tools(Tools),
    /// Call an MCP tool: checked before it is sent, retried where that is safe
    Call(Call),
    /// Call many MCP tools at once; report what succeeded and what failed
    Batch(Batch),
    /// Call MCP tools one after the other; later calls use earlier results
    Chain(Chain),
    /// Serve all MCP servers as one, with checks, retries and explained failures
    Mcp(Mcp),
    /// Pass model requests on, with recovery and shared limits
    Proxy(ProxyArgs),
    /// Make a model request smaller and leave it valid: the oldest turns go first
    Trim(Trim),
    /// Answer a campaign's decisions as JSON lines, for other harnesses and tests
    Machine(Machine),
    /// List, run or drop deferred work
    Deferred(Deferred),
    /// Watch a plan fail, recover and finish, offline
    Demo(Demo),
    /// Classify a failure: reason, cause, whether a retry helps, what to do
    Classify(Classify),
    /// Explain a run attempt by attempt (default: the last one), or a reason
    Explain(Explain),
    /// List the runs of this project, or of all projects
    Runs(Runs),
    /// List, follow and filter recorded events
    Events(Events),
    /// Show what failed, what retries cured, and where the time went
    Stats(Stats),
    /// Show failures that no rule knows yet
    Drift(Drift),
    /// Show the machine's state at the time of a failure
    Diagnose(Diagnose),
    /// List the reasons that a failure can have
    Reasons(Reasons),
    /// List, show and test the rules that recognise failures
    Rules(Rules),
    /// Show, check, wait for and clear the rate limits shared on this machine
    Guard(Guard),
    /// Show and set budgets: how many attempts may be made in all, a day, a run or a task
    Budget(Budget),
    /// Unfreeze a project, so that new work may start
    Unfreeze(Unfreeze),
    /// List the agents that can work on phases: installed or not, version, how each is run
    Agents(Agents),
    /// Install hooks into coding agents' settings, or remove them
    Init(Init),
    /// Show and test notifications
    Notify(Notify),
    /// Show, check and change settings
    Config(Config),
    /// Trust this project's backstop.toml
    Trust(Trust),
    /// Remove old runs, or move a damaged store aside
    Clean(Clean),
    /// Check this machine: store, settings, hooks, notifications, supervision
    Doctor(Doctor),
    /// Print completions for a shell
    Completions(Completions),
    /// Write the man pages into a folder
    Man(Man),
}

/// The commands as `--help` groups them.
const GROUPS: &[(&str, &[&str])] = &[
    ("Run", &["run", "plan", "campaign", "exec", "deferred", "hook", "demo"]),
    ("MCP tools", &["mcp", "tools", "call", "batch", "chain"]),
    ("Model requests", &["proxy", "trim"]),
    (
        "Look",
        &[
            "classify", "explain", "runs", "events", "stats", "drift", "diagnose", "reasons", "rules",
            "machine",
        ],
    ),
    ("Limits", &["guard", "budget", "unfreeze"]),
    ("Set up", &["agents", "init", "notify", "config", "trust", "clean", "doctor", "completions", "man"]),
];

/// The commands for which `--log-format` means something.
const PRINTS_EVENTS: &[&str] = &["run", "campaign", "exec", "events", "classify"];

impl Cli {
    /// Reads what was typed.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        match Self::read_exec(std::env::args_os().skip(1)) {
            Some(cli) => Ok(cli),
            None => Self::from_arg_matches(&command().try_get_matches()?),
        }
    }

    /// Reads `exec …` with the parser of `exec` alone. Building the parsers of all commands takes
    /// longer than anything else that `exec` does before its command starts. `None` where that
    /// parser does not accept the words: then the whole one says why.
    fn read_exec(words: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut words = words.into_iter().peekable();
        if words.peek()? != "exec" {
            return None;
        }
        let parser = Exec::augment_args(clap::Command::new("exec"));
        let exec = Exec::from_arg_matches(&parser.try_get_matches_from(words).ok()?).ok()?;
        Some(Self { log_format: None, command: Some(Command::Exec(Box::new(exec))) })
    }

    /// Reads words as if they had been typed.
    pub(crate) fn read_from<T: Into<OsString> + Clone>(words: impl IntoIterator<Item = T>) -> Option<Self> {
        Self::from_arg_matches(&command().try_get_matches_from(words).ok()?).ok()
    }
}

/// The command line as clap knows it, with its commands in groups.
pub(crate) fn command() -> clap::Command {
    let mut command = Cli::command();
    let format: Option<Arg> = command.get_arguments().find(|arg| arg.get_id() == "log_format").cloned();
    for name in PRINTS_EVENTS {
        let format = format.clone().map(|arg| arg.hide(false).hide_short_help(true));
        command = command.mut_subcommand(name, |command| command.args(format));
    }
    let groups = grouped(&command);
    command.help_template(format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\nOptions:\n{{options}}{{after-help}}"))
        .after_help("`backstop COMMAND -h` shows the common flags of a command, `--help` all of them.\nTerms: docs/glossary.md")
}

fn grouped(command: &clap::Command) -> String {
    let mut out = String::new();
    for (group, names) in GROUPS {
        out.push_str(&format!("\n{group}:\n"));
        for name in *names {
            let about = command.find_subcommand(name).and_then(|command| command.get_about());
            out.push_str(&format!("  {name:<12} {}\n", about.map(ToString::to_string).unwrap_or_default()));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_with_one_line() {
        let command = command();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.sort_unstable();
        let mut all: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        all.sort_unstable();
        assert_eq!(grouped, all);
        for command in command.get_subcommands() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!((10..=88).contains(&about.len()), "{}: {about}", command.get_name());
        }
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn exec_alone_is_read_as_by_the_whole_parser() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for line in [
            "exec -- true",
            "exec true",
            "exec --timeout 10m --on unknown=retry --json -- npm ci --log-format json",
            "exec npm --help",
            "exec --confirm r-1234",
            "exec -q --stdin null -- cat -n",
        ] {
            let alone = Cli::read_exec(words(line)).unwrap_or_else(|| panic!("{line}"));
            let whole = Cli::read_from(words(&format!("backstop {line}"))).unwrap();
            assert_eq!(format!("{alone:?}"), format!("{whole:?}"));
        }
        for line in [
            "exec",
            "exec --help",
            "exec --log-format json -- true",
            "exec --no-such-flag -- true",
            "exec --pty --no-pty -- true",
            "run plan.md",
            "--log-format json exec -- true",
        ] {
            assert!(Cli::read_exec(words(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn a_format_may_stand_before_and_after_the_command() {
        for line in ["backstop --log-format json exec -- true", "backstop exec --log-format json -- true"] {
            let cli = Cli::read_from(line.split(' ')).unwrap();
            assert_eq!(cli.log_format, Some(LogFormat::Json), "{line}");
        }
    }
}
