//! `backstop run`: a plan, from what was typed to how it ended.

mod resume_all;
mod summary;
pub(super) mod watch;

use super::deferred;
use super::proxy::ProxyBeside;
use crate::error::{CliError, DEFERRED, DONE, HALTED, INTERRUPTED};
use crate::prompt::TerminalPrompts;
use crate::{process, terminal};
use backstop_config::{Given, LogFormat};
use backstop_core::{End, Name, SafeText};
use backstop_plan::run::{Ran, jobs};
use backstop_plan::start::{
    Begun, PreparedPlan, Prompts, RunCommand, RunRequest, read_options, settings_given, start_after,
};
use backstop_runtime::signals;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use watch::{Show, Viewer};

/// Run a plan: its phases in order, each tried again once with what went wrong, finished ones kept
/// as commits.
///
/// A plan that halted or was interrupted continues where it stopped. Exits 0 when every phase is
/// complete, 3 when it halted and can be resumed, 130 when it was interrupted, 2 for a plan that
/// cannot be read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  backstop run docs/feature-plan.md --agent claude --commit auto\n  \
    backstop run plan.md --dry-run\n  \
    backstop run plan.md --commit auto --fresh --why 'the plan was rewritten'")]
pub(crate) struct Run {
    /// The plan: a file of any known format, or a folder with a sprint-status.yaml
    #[arg(required_unless_present = "resume_all")]
    pub(crate) plan: Option<PathBuf>,
    /// Agent for phases that name neither an agent nor a command: claude, codex, opencode, one from
    /// the config, or a command such as 'my-agent --prompt {prompt_file}'
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Start a proxy for the model requests of all phases: `backstop proxy --help`
    #[arg(long)]
    pub(crate) proxy: bool,
    /// Format of the plan; it is found by the plan's structure
    #[arg(long, value_name = "FORMAT", hide_short_help = true)]
    pub(crate) format: Option<String>,
    /// What a phase is: a group of the plan's tasks, or one task (default: by format and size)
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<ByWhat>,
    /// Folder below the project in which agents and gates work (default: where you are)
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(crate) dir: Option<String>,
    /// Model that agents are told to use
    #[arg(long, value_name = "MODEL", hide_short_help = true)]
    pub(crate) model: Option<String>,
    /// How finished phases are committed
    #[arg(long, value_name = "MODE")]
    pub(crate) commit: Option<CommitMode>,
    /// Number of phases that may run at once
    #[arg(long, short = 'j', value_name = "N")]
    pub(crate) jobs: Option<String>,
    /// Which phases may run at once
    #[arg(long, value_name = "WHICH", hide_short_help = true)]
    pub(crate) parallel: Option<ParallelMode>,
    /// When a failed phase is retried
    #[arg(long, value_name = "WHEN", hide_short_help = true)]
    pub(crate) retry: Option<RetryMode>,
    /// Where phases run: each in a git worktree of its own, or in the folder itself, one at a time
    #[arg(long, value_name = "WHERE", hide_short_help = true)]
    pub(crate) isolation: Option<IsolationMode>,
    /// Whether to run the gates (lint, format, typecheck, test) detected from the project's files
    #[arg(long, value_name = "WHICH")]
    pub(crate) gates: Option<GatesMode>,
    /// Time limit for one attempt of a phase, such as 30m, or none
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
    /// Time limit for an agent without output, or none
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    pub(crate) idle: Option<String>,
    /// Time that running phases have to finish once the run halts, or none
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    pub(crate) halt_timeout: Option<String>,
    /// Budget to spend: one unit for each attempt of a phase
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) budget: Option<String>,
    /// US dollars that the agents may spend before the run halts, such as 5.00, as far as they say
    /// what they spend
    #[arg(long, value_name = "USD", hide_short_help = true)]
    pub(crate) max_cost: Option<String>,
    /// Tokens that the agents may use before the run halts, such as 2M
    #[arg(long, value_name = "TOKENS", hide_short_help = true)]
    pub(crate) max_tokens: Option<String>,
    /// Longest single wait for a rate limit; one that ends later halts the run
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    pub(crate) wait_max: Option<String>,
    /// Number of waits for rate limits before the run halts
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) waits_max: Option<String>,
    /// Let agents go on with paid usage once a subscription is used up
    #[arg(long, hide_short_help = true)]
    pub(crate) allow_overage: bool,
    /// Let the machine sleep while phases run
    #[arg(long, hide_short_help = true)]
    pub(crate) no_inhibit: bool,
    /// Start at this time, such as 22:30 or 2026-11-20T08:00
    #[arg(long, value_name = "TIME", allow_hyphen_values = false)]
    pub(crate) at: Option<String>,
    /// Continue the last run of this plan (the default if there is one)
    #[arg(long, conflicts_with = "fresh", hide_short_help = true)]
    pub(crate) resume: bool,
    /// Continue every plan of every project whose run was cut off, in the background: for a login
    /// item or a timer (`backstop init --service`)
    #[arg(long, exclusive = true)]
    pub(crate) resume_all: bool,
    /// Start over: the old state is moved aside, commits stay
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Phase whose work you have done: only its gates are run (`backstop plan accept` uses it)
    #[arg(long, value_name = "PHASE", hide = true)]
    pub(crate) accept: Vec<String>,
    /// Run finished phases again if their text in the plan has changed
    #[arg(long, conflicts_with = "fresh", hide_short_help = true)]
    pub(crate) rerun_changed: bool,
    /// Run even if tracked files have uncommitted changes
    #[arg(long, hide_short_help = true)]
    pub(crate) allow_dirty: bool,
    /// Show what would be done; run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Answer yes to every question
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
    /// Reason for an override; it is recorded
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub(crate) why: Option<String>,
    /// Print every event as a line of JSON, and the result last
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only the result
    #[arg(long, short = 'q')]
    pub(crate) quiet: bool,
}

/// How finished phases are committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CommitMode {
    /// One commit per phase, on your branch as soon as the phase is finished
    Auto,
    /// No commits: the changes are in your working tree, and commits.sh has one commit command per
    /// phase
    MessageOnly,
    /// One commit at the end
    Single,
    /// No commits: the changes are in your working tree
    None,
}

/// What a phase is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByWhat {
    /// A group of tasks: a heading, or a task with subtasks
    Phase,
    /// One task
    Task,
}

/// Which phases may run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ParallelMode {
    /// Those that the plan declares parallel
    Declared,
    /// All whose dependencies are complete
    Auto,
}

/// When a phase is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RetryMode {
    /// After the phases that were running have ended
    AfterSiblings,
    /// At once
    Immediate,
}

/// Where phases run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IsolationMode {
    /// In worktrees if the project is a git repository
    Auto,
    /// In the folder itself
    None,
}

/// Whether detected gates are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GatesMode {
    /// Run the detected gates
    Auto,
    /// Run only the gates that the plan and the config name
    None,
}

/// What is to be run, and how it is shown: as it was typed, or as it was recorded.
pub(super) struct PlanStart {
    pub(super) command: RunCommand,
    pub(super) request: RunRequest,
    /// When it starts, as it was typed.
    pub(super) at: Option<String>,
    pub(super) json: bool,
    pub(super) quiet: bool,
}

impl PlanStart {
    fn typed(args: &Run, plan: &Path) -> Result<Self, CliError> {
        Ok(Self {
            command: RunCommand {
                plan: plan.to_string_lossy().into_owned(),
                settings: settings(args),
                budget: args.budget.clone(),
                options: read_options(args.format.as_deref(), super::word(args.by).as_deref())?,
                dir: args.dir.clone(),
                allow_dirty: args.allow_dirty,
                proxy: args.proxy,
            },
            request: RunRequest {
                resume: args.resume,
                fresh: args.fresh,
                accept: args.accept.clone(),
                rerun_changed: args.rerun_changed,
                allow_dirty: args.allow_dirty,
                dry_run: args.dry_run,
                yes: args.yes,
                why: args.why.clone(),
                ..RunRequest::default()
            },
            at: args.at.clone(),
            json: args.json,
            quiet: args.quiet,
        })
    }
}

/// The flags that are also keys of the configuration.
fn settings(args: &Run) -> Vec<Given> {
    settings_given([
        ("--agent", args.agent.clone()),
        ("--model", args.model.clone()),
        ("--commit", super::word(args.commit)),
        ("--jobs", args.jobs.clone()),
        ("--parallel", super::word(args.parallel)),
        ("--retry", super::word(args.retry)),
        ("--isolation", super::word(args.isolation)),
        ("--gates", super::word(args.gates)),
        ("--timeout", args.timeout.clone()),
        ("--idle", args.idle.clone()),
        ("--halt-timeout", args.halt_timeout.clone()),
        ("--max-cost", args.max_cost.clone()),
        ("--max-tokens", args.max_tokens.clone()),
        ("--wait-max", args.wait_max.clone()),
        ("--waits-max", args.waits_max.clone()),
        ("--allow-overage", args.allow_overage.then(|| "true".to_owned())),
        ("--no-inhibit", args.no_inhibit.then(|| "false".to_owned())),
    ])
}

/// Runs a plan.
pub(crate) fn run(args: &Run, format: Option<LogFormat>) -> Result<u8, CliError> {
    match args.plan.as_deref().filter(|_| !args.resume_all) {
        Some(plan) => start(PlanStart::typed(args, plan)?, format),
        None => resume_all::run(),
    }
}

/// Starts a plan, or continues its last run.
pub(super) fn start(mut given: PlanStart, format: Option<LogFormat>) -> Result<u8, CliError> {
    let is_dry_run = given.request.dry_run;
    // The environment is changed before anything else reads it.
    let _proxy = (given.command.proxy && !is_dry_run).then(ProxyBeside::start).transpose()?;
    let project = Arc::new(process::open_strictly(&given.command.settings, format)?);
    let budget = given.command.budget.as_deref().map(str::parse::<Name>).transpose()?;
    let plan = PathBuf::from(&given.command.plan);
    let plan_request = given.command.plan_request(&project, &given.request.accept, given.request.fresh)?;
    terminal::warn_inert(&project.config);
    for (what, hint) in process::unknown_variables() {
        terminal::warn(&what, Some(&hint));
    }
    let start_after =
        given.at.as_deref().map(|at| start_after(at, &project)).transpose()?.unwrap_or_default();
    let prompts: Option<&dyn Prompts> = if is_dry_run { None } else { Some(&TerminalPrompts) };
    let mut prepared = PreparedPlan::new(&project, &plan, &plan_request, prompts)?;
    given.command.run_gates(prepared.run_gates);
    let again = given.command.line();
    given.request.resume_command.clone_from(&again);
    if is_dry_run {
        let forecast = prepared.forecast(&given.request, &TerminalPrompts)?;
        return summary::dry_run(given.json, &forecast);
    }
    project.refuse_if_frozen()?;
    if given.quiet {
        terminal::be_quiet();
    }
    let show = Show::of(given.json, given.quiet, project.config.log_format());
    given.request.observers = show.observers();
    let begun = prepared.begin(&given.request, &TerminalPrompts, &process::is_on_the_path)?;
    tell_begun(&prepared, &begun, start_after, show);
    let clock = process::running_clock();
    let jobs = jobs(&begun.workspace, &prepared.settings, false);
    let mut viewer = Viewer::new(show, &prepared.file.plan, jobs, Arc::clone(&project.redactor));
    let requests = signals::stop_requests().map_err(CliError::signals)?;
    let plan_run = prepared.run(again.clone(), budget, &clock, start_after);
    let Ran { ending, recorder, .. } = plan_run.run(begun, &mut viewer, requests)?;
    viewer.finish();
    summary::tell(&given, &project, &prepared.views, &ending, clock(), show)?;
    if show.is_for_people() {
        deferred::offer(&project, &recorder.deferred(), None);
    }
    Ok(match (&ending.end, &ending.unconcluded) {
        (End::Complete, None) => DONE,
        // Not by anybody's hand: what runs was let end, and nothing more was begun.
        (End::Stopped, _) if ending.frozen.is_some() => DEFERRED,
        (End::Stopped, _) => INTERRUPTED,
        _ => HALTED,
    })
}

/// What a person should know when a run has begun: warnings about the plan, notes, when it starts.
fn tell_begun(prepared: &PreparedPlan, begun: &Begun, start_after: Duration, show: Show) {
    if !show.is_for_people() {
        return;
    }
    let (file, plan) = (&prepared.file, &prepared.file.plan);
    for warning in &plan.warnings {
        terminal::warn(&format!("{}:{}: {}", file.path, warning.line, warning.text), None);
    }
    for note in plan.read_as().into_iter().chain(begun.notes.iter().cloned()) {
        terminal::say(&format!("note: {}\n", SafeText::new(note).line(400)));
    }
    if !start_after.is_zero() {
        let now = process::now();
        let at = backstop_report::near_time(now.after(start_after), now);
        terminal::say(&format!("starts at {at} (in {})\n", backstop_report::duration(start_after)));
    }
}
