//! `backstop run`: a plan, from what was typed to how it ended.

mod resume_all;
mod summary;
pub(super) mod watch;

use super::deferred;
use super::proxy::ProxyBeside;
use crate::error::{CliError, DEFERRED, DONE, HALTED, INTERRUPTED, usage};
use crate::prompt::TerminalPrompts;
use crate::{process, terminal};
use backstop_config::{Given, LogFormat};
use backstop_core::nearest::nearest;
use backstop_core::{Clock, End, Name, SafeText, shell};
use backstop_plan::document::{By, Format, ReadOptions};
use backstop_plan::record::RunRecord;
use backstop_plan::run::{Ran, jobs};
use backstop_plan::start::{
    PlanRequest, PreparedPlan, Prompts, RunRequest, last_run, path_in_project, recorded_options,
};
use backstop_runtime::{Project, signals};
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

/// Runs a plan.
pub(crate) fn run(args: &Run, format: Option<LogFormat>) -> Result<u8, CliError> {
    let Some(plan) = args.plan.as_deref().filter(|_| !args.resume_all) else { return resume_all::run() };
    // The environment is changed before anything else reads it.
    let _proxy = (args.proxy && !args.dry_run).then(ProxyBeside::start).transpose()?;
    let project = Arc::new(process::open_strictly(&flags(args), format)?);
    let budget = args.budget.as_deref().map(str::parse::<Name>).transpose()?;
    let last = if args.fresh { None } else { last_record(&project, plan) };
    let dir = work_dir(args, last.as_ref(), &project.root)?;
    let plan_request = PlanRequest {
        options: read_options(args, last.as_ref())?,
        dir: dir.clone(),
        accepted: args.accept.clone(),
        last,
        fresh: args.fresh,
    };
    terminal::warn_inert(&project.config);
    for (what, hint) in process::unknown_variables() {
        terminal::warn(&what, Some(&hint));
    }
    let start_after = args.at.as_deref().map(start_after).transpose()?.unwrap_or_default();
    let prompts: Option<&dyn Prompts> = if args.dry_run { None } else { Some(&TerminalPrompts) };
    let mut prepared = PreparedPlan::new(&project, plan, &plan_request, prompts)?;
    let again = again(args, &prepared.file.path, prepared.run_gates, dir.as_deref());
    let request = request(args, &again);
    if args.dry_run {
        return summary::dry_run(args, &prepared.forecast(&request, &TerminalPrompts)?);
    }
    project.refuse_if_frozen()?;
    if args.quiet {
        terminal::be_quiet();
    }
    let begun = prepared.begin(&request, &TerminalPrompts, &process::is_on_the_path)?;
    let show = Show::of(args.json, args.quiet, project.config.log_format());
    if let Show::Events(format) = show {
        watch::print_events(&begun.opened, format);
    }
    if matches!(show, Show::Live | Show::Lines) {
        for warning in &prepared.file.plan.warnings {
            terminal::warn(&format!("{}:{}: {}", prepared.file.path, warning.line, warning.text), None);
        }
        let read = &prepared.file.plan;
        if read.format != Format::Backstop {
            let (title, by, count) = (read.format.title(), read.by.name(), read.phases.len());
            terminal::say(&format!(
                "note: read as {title}, by {by}: {count} phases (`--dry-run` shows them)\n"
            ));
        }
        for note in &begun.notes {
            terminal::say(&format!("note: {}\n", SafeText::new(note.clone()).line(400)));
        }
    }
    if !start_after.is_zero() && matches!(show, Show::Live | Show::Lines) {
        let now = process::now();
        let at = backstop_report::near_time(now.after(start_after), now);
        terminal::say(&format!("starts at {at} (in {})\n", backstop_report::duration(start_after)));
    }
    let clock = process::running_clock();
    let jobs = jobs(&begun.workspace, &prepared.settings, false);
    let mut viewer = Viewer::new(show, &prepared.file.plan, jobs, Arc::clone(&project.redactor));
    let requests = signals::stop_requests().map_err(CliError::signals)?;
    let plan_run = prepared.run(again.clone(), budget, &clock, start_after);
    let Ran { ending, recorder, .. } = plan_run.run(begun, &mut viewer, requests)?;
    viewer.finish();
    summary::tell(args, &project, &prepared.views, &ending, &again, clock(), show)?;
    if matches!(show, Show::Live | Show::Lines) {
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

/// What was recorded of the last run of a plan. Nothing is made where nothing was recorded yet.
fn last_record(project: &Project, plan: &Path) -> Option<RunRecord> {
    let is_there = process::state_root(process::home().as_deref()).is_some_and(|root| root.exists());
    let file = plan.canonicalize().ok().filter(|_| is_there)?;
    let journal = project.existing_journal().ok()??;
    let run = last_run(journal, &path_in_project(&file, &project.root)).ok()??;
    Some(RunRecord::of(&journal.load(run).ok()?))
}

/// How the plan is to be read: as was typed, else as the last run of it was, else as it looks.
fn read_options(args: &Run, last: Option<&RunRecord>) -> Result<ReadOptions, CliError> {
    let given = options(args.format.as_deref(), super::word(args.by).as_deref())?;
    let recorded = last.map(recorded_options).unwrap_or_default();
    Ok(ReadOptions { format: given.format.or(recorded.format), by: given.by.or(recorded.by) })
}

/// The folder in which phases work: as was typed, else as the run began, else where we are.
fn work_dir(args: &Run, last: Option<&RunRecord>, root: &Path) -> Result<Option<String>, CliError> {
    match (&args.dir, last) {
        (Some(dir), _) => below_project(dir).map(Some),
        (None, Some(record)) => {
            let words = shell::words(&record.plan.resume).unwrap_or_default();
            let at = words.iter().position(|word| word == "--dir");
            Ok(at.and_then(|at| words.get(at + 1).cloned()))
        }
        (None, None) => Ok(folder_here(root)),
    }
}

/// A format and a granularity as they are typed.
pub(super) fn options(format: Option<&str>, by: Option<&str>) -> Result<ReadOptions, CliError> {
    let known = || {
        let names = Format::ALL.map(Format::name);
        match format.and_then(|given| nearest(given, names)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("formats are {}", names.join(", ")),
        }
    };
    let unknown = |name: &str| usage(format!("there is no format `{name}`")).hint(known());
    let format = format.map(|name| Format::from_name(name).ok_or_else(|| unknown(name))).transpose()?;
    Ok(ReadOptions { format, by: by.and_then(By::from_name) })
}

/// The folder where the command was typed, below the project's root.
fn folder_here(root: &Path) -> Option<String> {
    let here = process::here()?;
    let root = root.canonicalize().ok()?;
    let below = here.strip_prefix(&root).ok()?.to_str()?.to_owned();
    (!below.is_empty()).then_some(below)
}

/// A folder below the project's root, as it is typed.
fn below_project(dir: &str) -> Result<String, CliError> {
    let dir = dir.trim_start_matches("./").trim_end_matches('/');
    if dir.starts_with('/') || dir.split('/').any(|part| part == "..") {
        return Err(usage(format!("--dir {dir} is not below the project"))
            .hint("write a folder such as packages/api, from the project's root"));
    }
    Ok(dir.to_owned())
}

/// The latest time that a run may be told to start at.
const START_MAX: Duration = Duration::from_secs(31 * 24 * 3600);

/// How long it is until a time that was typed. One that has just passed means now.
fn start_after(at: &str) -> Result<Duration, CliError> {
    let now = process::now();
    let clock = Clock { now: Some(now), zone: process::zone() };
    let hint = "write a time of day such as 22:30, or a date and a time such as 2026-11-20T08:00";
    let time = backstop_core::wait::moment(at, &clock)
        .ok_or_else(|| usage(format!("`{at}` is not a time that --at knows")).hint(hint))?;
    let after = time.since(now);
    if after > START_MAX {
        let when = backstop_report::date_time(time);
        return Err(usage(format!("`{at}` is {when}, more than 31 days away")).hint(hint));
    }
    Ok(after)
}

fn request(args: &Run, again: &str) -> RunRequest {
    RunRequest {
        resume: args.resume,
        fresh: args.fresh,
        accept: args.accept.clone(),
        rerun_changed: args.rerun_changed,
        allow_dirty: args.allow_dirty,
        dry_run: args.dry_run,
        yes: args.yes,
        why: args.why.clone(),
        resume_command: again.to_owned(),
    }
}

fn flags(args: &Run) -> Vec<Given> {
    let given = [
        ("--agent", "plan.agent", args.agent.clone()),
        ("--model", "plan.model", args.model.clone()),
        ("--commit", "plan.commit", super::word(args.commit)),
        ("--jobs", "plan.jobs", args.jobs.clone()),
        ("--parallel", "plan.parallel", super::word(args.parallel)),
        ("--retry", "plan.retry", super::word(args.retry)),
        ("--isolation", "plan.isolation", super::word(args.isolation)),
        ("--gates", "plan.gates", super::word(args.gates)),
        ("--timeout", "plan.timeout", args.timeout.clone()),
        ("--idle", "plan.idle", args.idle.clone()),
        ("--halt-timeout", "plan.halt_timeout", args.halt_timeout.clone()),
        ("--max-cost", "plan.max_cost", args.max_cost.clone()),
        ("--max-tokens", "plan.max_tokens", args.max_tokens.clone()),
        ("--wait-max", "plan.wait_max", args.wait_max.clone()),
        ("--waits-max", "plan.waits_max", args.waits_max.clone()),
        ("--allow-overage", "plan.allow_overage", args.allow_overage.then(|| "true".to_owned())),
        ("--no-inhibit", "plan.inhibit", args.no_inhibit.then(|| "false".to_owned())),
    ];
    let given = given.into_iter().filter_map(|(flag, key, value)| {
        Some(Given { flag: flag.to_owned(), key: key.to_owned(), value: value? })
    });
    given.collect()
}

/// Flags of settings that take no value.
const SWITCHES: [&str; 2] = ["--allow-overage", "--no-inhibit"];

/// The command that goes on with a run: what was typed, without what is for one time only.
fn again(args: &Run, path: &str, run_gates: Option<bool>, dir: Option<&str>) -> String {
    let plan = args.plan.as_ref().map(|plan| plan.to_string_lossy().into_owned());
    let plan = plan.filter(|plan| !plan.is_empty()).unwrap_or_else(|| path.to_owned());
    let mut words = vec!["backstop".to_owned(), "run".to_owned(), plan];
    for Given { flag, value, .. } in flags(args) {
        words.push(flag.clone());
        if !SWITCHES.contains(&flag.as_str()) {
            words.push(value);
        }
    }
    if let Some(run) = run_gates {
        words.extend(["--gates".to_owned(), if run { "auto" } else { "none" }.to_owned()]);
    }
    if let Some(budget) = &args.budget {
        words.extend(["--budget".to_owned(), budget.clone()]);
    }
    let by = super::word(args.by);
    for (flag, value) in [("--format", args.format.as_deref()), ("--by", by.as_deref()), ("--dir", dir)] {
        words.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value.to_owned()]));
    }
    if args.allow_dirty {
        words.push("--allow-dirty".to_owned());
    }
    if args.proxy {
        words.push("--proxy".to_owned());
    }
    shell::line(&words)
}
