//! What may be typed about plans.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Run a plan: its phases in order, each tried again once with what went wrong, finished ones kept as commits.
///
/// A plan that halted, or was cut off, goes on where it stopped. Exits 0 when every phase is complete, 3 when it halted and
/// can be gone on with, 130 when it was interrupted, 2 for a plan that cannot be read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  backstop run docs/feature-plan.md --agent claude --commit auto\n  \
    backstop run plan.md --dry-run\n  \
    backstop run plan.md --commit auto --fresh --why 'the plan was rewritten'")]
pub(crate) struct Run {
    /// The plan, a Markdown file
    pub(crate) plan: PathBuf,
    /// Who works on phases that name neither an agent nor a command: claude, codex, opencode, or one of the configuration
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// The model that agents are told to use
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// How finished phases are committed
    #[arg(long, value_name = "MODE")]
    pub(crate) commit: Option<CommitMode>,
    /// How many phases run at once
    #[arg(long, short = 'j', value_name = "N")]
    pub(crate) jobs: Option<String>,
    /// Which phases may run at once
    #[arg(long, value_name = "WHICH")]
    pub(crate) parallel: Option<ParallelMode>,
    /// When a phase that failed is tried again
    #[arg(long, value_name = "WHEN")]
    pub(crate) retry: Option<RetryMode>,
    /// Where phases run: in worktrees of their own, or in the folder itself, one at a time
    #[arg(long, value_name = "WHERE")]
    pub(crate) isolation: Option<IsolationMode>,
    /// Whether the gates that the project's files suggest are run
    #[arg(long, value_name = "WHICH")]
    pub(crate) gates: Option<GatesMode>,
    /// How long one attempt of a phase may take, such as 30m, or none
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
    /// How long an agent may be silent, or none
    #[arg(long, value_name = "DURATION")]
    pub(crate) idle: Option<String>,
    /// How long running phases have to end once the run halts, or none
    #[arg(long, value_name = "DURATION")]
    pub(crate) halt_timeout: Option<String>,
    /// Go on with the last run of this plan; the default where there is one
    #[arg(long, conflicts_with = "fresh")]
    pub(crate) resume: bool,
    /// Begin anew: the old state is moved aside, commits stay
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Run finished phases again whose text in the plan has changed
    #[arg(long, conflicts_with = "fresh")]
    pub(crate) rerun_changed: bool,
    /// Run although tracked files have changes that are not committed
    #[arg(long)]
    pub(crate) allow_dirty: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Ask nothing: the answer is yes
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
    /// Why something is overridden; it is recorded
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,
    /// Print every event as a line of JSON while it goes on, and the ending last
    #[arg(long)]
    pub(crate) json: bool,
    /// Say nothing but how it ended
    #[arg(long, short = 'q')]
    pub(crate) quiet: bool,
}

/// How finished phases are committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CommitMode {
    /// One commit a phase, on your branch as soon as it is finished
    Auto,
    /// No commits: the work lies in your tree, and commits.sh has one command a phase
    MessageOnly,
    /// One commit at the end
    Single,
    /// No commits: the work lies in your tree
    None,
}

/// Which phases may run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ParallelMode {
    /// Those that the plan declares
    Declared,
    /// All that wait for nothing
    Auto,
}

/// When a phase is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RetryMode {
    /// When those that were running have ended
    AfterSiblings,
    /// At once
    Immediate,
}

/// Where phases run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IsolationMode {
    /// In worktrees wherever there is git
    Auto,
    /// In the folder itself
    None,
}

/// Whether detected gates are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GatesMode {
    /// Those that the project's files suggest
    Auto,
    /// None but what the plan and the configuration name
    None,
}

/// Look at the runs of plans, and put them right.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(subcommand)]
    pub(crate) action: PlanAction,
}

/// What to do with a plan's run.
#[derive(Debug, Subcommand)]
pub(crate) enum PlanAction {
    /// Show where each phase stands
    Status(PlanStatus),
    /// Show the log of a phase's attempt
    Logs(PlanAttempt),
    /// Show what a phase changed
    Diff(PlanAttempt),
    /// Try phases again, and go on with the run
    Retry(PlanRetry),
    /// Set phases back to pending, so that the next run does them again
    Reset(PlanChange),
    /// Pass phases over, so that those which wait for them can begin
    Skip(PlanChange),
}

/// Which run.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The plan; not needed where only one was run in this project
    #[arg(long, value_name = "PLAN")]
    pub(crate) plan: Option<PathBuf>,
    /// The run, such as r-7f3a; without it, the last one
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
}

/// Show where each phase stands.
#[derive(Debug, Args)]
pub(crate) struct PlanStatus {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// An attempt of a phase.
#[derive(Debug, Args)]
pub(crate) struct PlanAttempt {
    /// The phase, such as 2A
    pub(crate) phase: String,
    #[command(flatten)]
    pub(crate) which: Which,
    /// The attempt, counted from 1; without it, the last one
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Set phases to something, and say why.
#[derive(Debug, Args)]
pub(crate) struct PlanChange {
    /// The phases, such as 2A
    #[arg(required = true)]
    pub(crate) phases: Vec<String>,
    #[command(flatten)]
    pub(crate) which: Which,
    /// Why; it is recorded
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Try phases again, and go on with the run.
#[derive(Debug, Args)]
pub(crate) struct PlanRetry {
    #[command(flatten)]
    pub(crate) change: PlanChange,
    /// Only set them back; run nothing
    #[arg(long)]
    pub(crate) no_run: bool,
}
