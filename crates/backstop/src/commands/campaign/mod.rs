//! `backstop campaign`: an objective, from one sentence to tasks that are done and proved.

mod watch;

use super::run::{CommitMode, GatesMode, IsolationMode};
use crate::error::{BLOCKED, CliError, DEFERRED, DONE, HALTED, INTERRUPTED};
use crate::prompt::TerminalPrompts;
use crate::{process, terminal};
use backstop_campaign::changes::{FoundCampaign, TaskChange};
use backstop_campaign::drive::{Campaign as Drive, CampaignEnd, EXPLORE_TIMEOUT, EndedCampaign};
use backstop_campaign::present;
use backstop_config::{Given, LogFormat};
use backstop_core::{Name, duration};
use backstop_plan::start::{RunRequest, command_line, settings_given};
use backstop_report::{Lessons, View};
use backstop_runtime::Project;
use backstop_runtime::signals::stop_requests;
use clap::{Args, Subcommand};
use std::sync::Arc;
use watch::{Show, Watcher};

/// Reach an objective: explore the code, plan tasks with proofs, build them in order, work around
/// what is blocked, keep lessons.
///
/// Without an objective the last campaign is carried on, as it is with the same objective again.
/// Exits 0 when every task is complete, 4 when tasks are blocked or a planner's questions wait for
/// you, 3 when it can be carried on, 130 when it was interrupted.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  backstop campaign \"Add rate limiting to the API\" --agent claude\n  \
    backstop campaign answer \"PostgreSQL\" \"no\"\n  \
    backstop campaign retry 003 --why 'the fixture was wrong' && backstop campaign"
)]
pub(crate) struct Campaign {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    start: Start,
}

/// How a campaign is started or carried on.
#[derive(Debug, Args)]
struct Start {
    /// What is to be reached, in one sentence
    objective: Option<String>,
    /// Agent that explores, plans and builds: claude, codex, opencode, or one from the config
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Model that agents are told to use
    #[arg(long, value_name = "MODEL", hide_short_help = true)]
    model: Option<String>,
    /// How finished tasks are committed [default: auto]
    #[arg(long, value_name = "MODE")]
    commit: Option<CommitMode>,
    /// Number of tasks that may run at once
    #[arg(long, short = 'j', value_name = "N")]
    jobs: Option<String>,
    /// Where tasks run: each in a git worktree of its own, or in the folder itself, one at a time
    #[arg(long, value_name = "WHERE", hide_short_help = true)]
    isolation: Option<IsolationMode>,
    /// Whether to run the gates detected from the project's files, after each task's own proof
    #[arg(long, value_name = "WHICH")]
    gates: Option<GatesMode>,
    /// Time limit for one attempt of a task, such as 30m, or none
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// Time that the explorers have [default: 5m]
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    explore_timeout: Option<String>,
    /// Budget to spend: one unit for each attempt
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    budget: Option<String>,
    /// US dollars that the agents may spend before the campaign halts
    #[arg(long, value_name = "USD", hide_short_help = true)]
    max_cost: Option<String>,
    /// Tokens that the agents may use before the campaign halts, such as 2M
    #[arg(long, value_name = "TOKENS", hide_short_help = true)]
    max_tokens: Option<String>,
    /// Plan and build one task instead of many: EXPLORE, PLAN, BUILD, OBSERVE
    #[arg(long)]
    task: bool,
    /// Start over; the last campaign's commits stay
    #[arg(long)]
    fresh: bool,
    /// Start even if tracked files have uncommitted changes
    #[arg(long, hide_short_help = true)]
    allow_dirty: bool,
    /// Take a plan that waits for a word without asking
    #[arg(long, short = 'y')]
    yes: bool,
    /// Reason for an override; it is recorded
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    why: Option<String>,
    /// Print every event as a line of JSON, and the result last
    #[arg(long)]
    json: bool,
    /// Print only the result
    #[arg(long, short = 'q')]
    quiet: bool,
}

/// What else can be done with the last campaign.
#[derive(Debug, Subcommand)]
enum What {
    /// Show where the last campaign stands: its state, its tasks, open questions
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Answer the planner's questions, one answer each, in their order
    Answer {
        /// The answers
        #[arg(required = true)]
        answers: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Begin blocked tasks anew, with those that wait for them
    Retry(Change),
    /// Set tasks aside; the others go on without them
    Block(Change),
    /// Ask for another plan when the campaign is carried on
    Replan {
        /// Why; it is recorded, and the planner is told
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Follow the last campaign's events until it ends
    Watch {
        /// Print every event as a line of JSON
        #[arg(long)]
        json: bool,
    },
    /// List what campaigns of this project have learned
    Lessons {
        /// Number of lessons to list
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        limit: u32,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Tasks that a person changes.
#[derive(Debug, Args)]
struct Change {
    /// The tasks, by seq
    #[arg(required = true, value_name = "SEQ")]
    tasks: Vec<String>,
    /// Why; it is recorded
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs or changes a campaign.
pub(crate) fn run(args: &Campaign, format: Option<LogFormat>) -> Result<u8, CliError> {
    let Some(what) = &args.what else { return start(&args.start, format) };
    let project = process::open(&[], format)?;
    if let What::Lessons { limit, json } = what {
        return lessons(&project, *limit, *json);
    }
    let mut found = FoundCampaign::last(&project)?;
    let json = match what {
        What::Lessons { .. } => return Ok(DONE),
        What::Status { json } => *json,
        What::Watch { json } => return watch::follow(&found, *json, project.config.log_format()),
        What::Answer { answers, json } => {
            found.answer(&project, answers)?;
            *json
        }
        What::Retry(change) => {
            found.change(&project, &change.tasks, TaskChange::Retry, change.why.as_deref())?;
            change.json
        }
        What::Block(change) => {
            found.change(&project, &change.tasks, TaskChange::Block, change.why.as_deref())?;
            change.json
        }
        What::Replan { why, json } => {
            found.replan(&project, why.as_deref())?;
            *json
        }
    };
    let resume = found.resume_command();
    let report = present::report(&found.record, found.run, None, None, &resume);
    terminal::show(&report, json)?;
    if !json && !matches!(what, What::Status { .. }) {
        terminal::say(&format!("next: {resume}\n"));
    }
    Ok(DONE)
}

fn lessons(project: &Project, limit: u32, json: bool) -> Result<u8, CliError> {
    let known = match project.existing_journal()? {
        Some(journal) => journal.lessons(limit)?,
        None => Vec::new(),
    };
    let rows: Vec<_> = known.into_iter().map(present::lesson).collect();
    terminal::show(&Lessons(rows), json)?;
    Ok(DONE)
}

fn start(args: &Start, format: Option<LogFormat>) -> Result<u8, CliError> {
    let given = settings(args);
    let project = Arc::new(process::open_strictly(&given, format)?);
    project.refuse_if_frozen()?;
    let budget = args.budget.as_deref().map(str::parse::<Name>).transpose()?;
    let explore_timeout = match &args.explore_timeout {
        Some(given) => duration::parse(given)?,
        None => EXPLORE_TIMEOUT,
    };
    let settings = backstop_campaign::drive::settings(&project)?;
    terminal::warn_inert(&project.config);
    if args.quiet {
        terminal::be_quiet();
    }
    // The command that carries it on: what was typed, without what is for one time only.
    let others =
        [("--explore-timeout", args.explore_timeout.as_deref()), ("--budget", args.budget.as_deref())];
    let again = command_line(&["backstop", "campaign"], &given, &others);
    let show = Show::of(args.json, args.quiet, project.config.log_format());
    let campaign = Drive {
        project: &project,
        settings,
        request: RunRequest {
            fresh: args.fresh,
            allow_dirty: args.allow_dirty,
            yes: args.yes,
            why: args.why.clone(),
            resume_command: again.clone(),
            observers: show.observers(),
            ..RunRequest::default()
        },
        prompts: &TerminalPrompts,
        explore_timeout,
        is_single: args.task,
        budget,
        is_there: &process::is_on_the_path,
        clock: &process::running_clock(),
    };
    let mut watcher = Watcher::new(show, Arc::clone(&project.redactor));
    let ended =
        campaign.run(args.objective.as_deref(), &mut watcher, stop_requests().map_err(CliError::signals)?)?;
    tell(args, &ended, &again, show)
}

fn tell(args: &Start, ended: &EndedCampaign, again: &str, show: Show) -> Result<u8, CliError> {
    let report =
        present::report(&ended.record, ended.recorder.run(), Some(&ended.end), ended.work.as_ref(), again);
    if args.json {
        terminal::show(&report, true)?;
    } else if !matches!(show, Show::Events(_)) {
        terminal::say(&format!("\n{}", report.text(terminal::stderr_style())));
    }
    Ok(match &ended.end {
        CampaignEnd::Complete => DONE,
        CampaignEnd::Stopped { frozen: Some(_) } => DEFERRED,
        CampaignEnd::Stopped { frozen: None } => INTERRUPTED,
        end if end.needs_a_person() => BLOCKED,
        _ => HALTED,
    })
}

/// The flags that are also keys of the configuration.
fn settings(args: &Start) -> Vec<Given> {
    settings_given([
        ("--agent", args.agent.clone()),
        ("--model", args.model.clone()),
        ("--commit", super::word(args.commit)),
        ("--jobs", args.jobs.clone()),
        ("--isolation", super::word(args.isolation)),
        ("--gates", super::word(args.gates)),
        ("--timeout", args.timeout.clone()),
        ("--max-cost", args.max_cost.clone()),
        ("--max-tokens", args.max_tokens.clone()),
    ])
}
