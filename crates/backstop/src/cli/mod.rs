//! What may be typed. Completions, man pages and the reference are made from this.

mod exec;
mod hook;
mod init;
mod journal;
mod limits;
mod notify;
mod plan;
mod settings;
mod stats;

pub(crate) use exec::{Exec, StdinMode};
pub(crate) use hook::{Hook, HookAction};
pub(crate) use init::Init;
pub(crate) use journal::{Clean, Deferred, DeferredAction, Diagnose, Events, Runs, Unfreeze};
pub(crate) use limits::{Budget, BudgetAction, Guard, GuardAction};
pub(crate) use notify::{Notify, NotifyAction};
pub(crate) use plan::{Plan, PlanAction, PlanAttempt, PlanChange, PlanRetry, PlanStatus, Run, Which};
pub(crate) use settings::{Config, ConfigAction, Doctor, Trust};
pub(crate) use stats::{By, Drift, Stats};

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Stands behind everything an AI agent does that can fail: classify, decide, recover, record.
#[derive(Debug, Parser)]
#[command(name = "backstop", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// How events are printed: for people, as JSON lines, or as EMIT lines
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// How events are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Human,
    /// One JSON object a line
    Json,
    /// `EMIT: TOOL_FAILURE tool=… error=…`
    Emit,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a plan: its phases in order, finished ones kept as commits, what fails tried again and told
    Run(Box<Run>),
    /// Look at the runs of plans, and put them right
    Plan(Plan),
    /// Run a command and make it dependable: classified, retried where that helps, recorded, nothing left behind
    Exec(Box<Exec>),
    /// What others call when something fails: tasks that report an error, and coding agents
    Hook(Hook),
    /// Say what a failure is, why, whether to try again, and what to do
    Classify(Classify),
    /// List the reasons that a failure can have
    Reasons(Reasons),
    /// Tell the story of a run, or print the page of a reason
    Explain(Explain),
    /// List the runs of this project
    Runs(Runs),
    /// List, follow and filter what was recorded
    Events(Events),
    /// Say where the time went: what failed, what a retry cured, how long was waited
    Stats(Stats),
    /// Say what no rule knows yet, and whether there is more of it than before
    Drift(Drift),
    /// Work that was put aside: list it, run it, drop it
    Deferred(Deferred),
    /// What was left of the machine when something failed, how far it had come, and what it was
    Diagnose(Diagnose),
    /// Let a frozen project go on
    Unfreeze(Unfreeze),
    /// List, show and test the rules that recognise failures
    Rules(Rules),
    /// Rate limits that are shared: learn, check, wait, show, clear
    Guard(Guard),
    /// Allowances that are spent before work: set, show, reset
    Budget(Budget),
    /// Put hooks into agents' settings, so that what fails there is classified and answered
    Init(Init),
    /// Who is told when something ends badly: try the sinks, see what waits and what was sent
    Notify(Notify),
    /// Show and check the configuration
    Config(Config),
    /// Trust this project's configuration, so that what it runs and reads takes effect
    Trust(Trust),
    /// Remove what is old, or set a damaged store aside
    Clean(Clean),
    /// Check this machine: state folder, store, configuration, supervision
    Doctor(Doctor),
    /// Watch a plan fail and recover, in a scratch repository, offline
    Demo(Demo),
    /// Print completions for a shell
    Completions(Completions),
    /// Write the man pages into a folder
    Man(Man),
}

/// Say what a failure is.
///
/// Reads what a failed command wrote, or the body of a failed answer, from files or standard input. Several files are
/// parts of one failure, in order. Exits 0 whatever the fault is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  npm test > out.log 2>&1; backstop classify --exit $? out.log\n  \
    curl -sS URL | backstop classify --status 429 --header 'retry-after: 30'\n  \
    backstop classify --batch < failures.jsonl")]
pub(crate) struct Classify {
    /// Files to read; none, or `-`, is standard input
    pub(crate) files: Vec<PathBuf>,
    /// The exit code of the command; 0 is success, whatever the output says
    #[arg(long, value_name = "CODE", allow_hyphen_values = true, conflicts_with_all = ["signal", "status", "headers", "errno"])]
    pub(crate) exit: Option<i64>,
    /// The signal that ended the command, by number or name
    #[arg(long, value_name = "SIGNAL")]
    pub(crate) signal: Option<String>,
    /// Our own clock ended the command
    #[arg(long)]
    pub(crate) timed_out: bool,
    /// The command line, which tells the program
    #[arg(long, value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// The HTTP status of the answer; the input is its body
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..600))]
    pub(crate) status: Option<u16>,
    /// A header of the answer, as `name: value`; may be given several times
    #[arg(long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
    /// The errno or error code of the client, such as ECONNRESET
    #[arg(long, value_name = "ERRNO")]
    pub(crate) errno: Option<String>,
    /// Who answered, such as `openai`
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// A rule pack of your own; may be given several times
    #[arg(long = "rules", value_name = "FILE")]
    pub(crate) packs: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Read one JSON object a line, answer one a line
    #[arg(long, conflicts_with_all = ["exit", "signal", "timed_out", "command", "status", "headers", "errno", "provider"])]
    pub(crate) batch: bool,
}

/// List the reasons.
#[derive(Debug, Args)]
pub(crate) struct Reasons {
    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// Print a Markdown table
    #[arg(long)]
    pub(crate) markdown: bool,
}

/// Tell the story of a run: each attempt, what failed, which rule says so, what was decided and why. Or print the page of a
/// reason.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A run, such as `r-7f3a`, `last` for the latest of this project, or a reason, such as `rate_limited`; a name that
    /// another system uses for a reason will do
    pub(crate) what: String,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List, show and test rules.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Rules {
    #[command(subcommand)]
    pub(crate) action: Option<RulesAction>,
    /// Print every literal of every rule, one a line, for `grep -F -f` or `rg -F -f`
    #[arg(long)]
    pub(crate) literals: bool,
}

/// What to do with rules.
#[derive(Debug, Subcommand)]
pub(crate) enum RulesAction {
    /// List the rules
    List {
        /// Only those of this reason
        #[arg(long, value_name = "REASON")]
        reason: Option<String>,
        /// Only those of this pack
        #[arg(long, value_name = "PACK")]
        pack: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one rule with its examples
    Show {
        /// The rule, such as `jest.summary`
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check a rule pack and run its examples
    Test {
        /// The packs
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Watch Backstop at work, offline, in a folder of its own below the temporary folder. The last three of these folders are
/// kept, so that you can look at their runs.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// What to watch
    #[arg(default_value = "plan")]
    pub(crate) what: DemoKind,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the demo shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoKind {
    /// A plan: phases side by side, a failed test, a retry that knows what failed, a commit for each phase
    Plan,
    /// A command that fails, is retried and recovers
    Command,
    /// Ten failures, each classified
    Faults,
}

/// Print completions.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}

/// A shell that completions are made for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Shell {
    /// bash
    Bash,
    /// elvish
    Elvish,
    /// fish
    Fish,
    /// PowerShell
    Powershell,
    /// zsh
    Zsh,
}

/// Write the man pages.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder; it is made if it is not there
    pub(crate) folder: PathBuf,
}

/// What would be typed to go on with a run, from the words that were recorded.
pub(crate) fn run_again(
    words: &[String],
    plan: &std::path::Path,
    why: Option<&str>,
    json: bool,
) -> Option<Run> {
    let usual = [std::ffi::OsString::from("backstop"), "run".into(), plan.into()];
    let mut line: Vec<std::ffi::OsString> = match words {
        [program, run, ..] if program == "backstop" && run == "run" => words.iter().map(Into::into).collect(),
        _ => usual.into(),
    };
    line.extend(why.into_iter().flat_map(|why| ["--why".into(), why.into()]));
    if json {
        line.push("--json".into());
    }
    match Cli::try_parse_from(line).ok()?.command {
        Some(Command::Run(run)) => Some(*run),
        _ => None,
    }
}
