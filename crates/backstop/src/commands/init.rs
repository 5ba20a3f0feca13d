//! `backstop init`: hooks in agents' settings.

use crate::error::CliError;
use crate::{process, terminal};
use backstop_config as config;
use backstop_core::SafeText;
use backstop_install::{Agent, Change, FileAction, Folders, InstallError, Records, Scope, Target};
use backstop_report::{JSON_SCHEMA, to_json};
use backstop_store::StateFolder;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Put hooks that call `backstop hook agent` into agents' settings, or take them out again.
///
/// Nothing else in a settings file is touched, and what changes is shown as a diff. Without an
/// agent's name, those are meant whose folder is here or whose program is on the PATH. Nothing is
/// trusted by it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  backstop init --dry-run\n  backstop init --claude --user\n  backstop init --remove"
)]
pub(crate) struct Init {
    /// Claude Code: .claude/settings.json
    #[arg(long)]
    pub(crate) claude: bool,
    /// Codex: .codex/hooks.json
    #[arg(long)]
    pub(crate) codex: bool,
    /// OpenCode: .opencode/plugin/backstop.js
    #[arg(long)]
    pub(crate) opencode: bool,
    /// All of them, whether they are found or not
    #[arg(long, conflicts_with_all = ["claude", "codex", "opencode"])]
    pub(crate) all: bool,
    /// The settings of this project, which is what is meant where nothing is said
    #[arg(long, conflicts_with = "user")]
    pub(crate) project: bool,
    /// Your own settings, for all projects
    #[arg(long)]
    pub(crate) user: bool,
    /// Take the hooks out again
    #[arg(long)]
    pub(crate) remove: bool,
    /// Show what would change, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How much of a path is shown.
const PATH_CHARS_MAX: usize = 400;

/// A change, and why its agent is meant.
struct Planned {
    change: Change,
    found: String,
}

pub(crate) fn run(args: &Init) -> Result<(), CliError> {
    let folders = folders()?;
    let scope = if args.user { Scope::User } else { Scope::Project };
    let state = process::state_root(folders.home.as_deref());
    let records = Records::new(state.as_deref().map(records_in));
    // All are looked at before any is written: one that cannot be read means that nothing is.
    let planned = planned(args, scope, &folders, &records)?;
    let (done, failed) = if args.dry_run { (planned, None) } else { apply(planned, state.as_deref()) };
    let said = say(args, scope, &folders, &done);
    failed.map_or(said, |error| Err(error.into()))
}

fn records_in(state: &Path) -> PathBuf {
    state.join("init")
}

fn folders() -> Result<Folders, CliError> {
    let around = process::surroundings()?;
    let root = config::repository_root(&around.cwd, around.home.as_deref());
    let moved = |name: &str| (around.env)(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    Ok(Folders {
        project: root.unwrap_or_else(|| around.cwd.clone()),
        home: around.home.clone(),
        claude: moved("CLAUDE_CONFIG_DIR").map(|folder| around.cwd.join(folder)),
        codex: moved("CODEX_HOME").map(|folder| around.cwd.join(folder)),
        config: around.xdg_config_home.clone().filter(|folder| folder.is_absolute()),
    })
}

fn planned(
    args: &Init,
    scope: Scope,
    folders: &Folders,
    records: &Records,
) -> Result<Vec<Planned>, InstallError> {
    let named = |agent| match agent {
        Agent::Claude => args.claude,
        Agent::Codex => args.codex,
        Agent::Opencode => args.opencode,
    };
    let any = args.all || Agent::ALL.into_iter().any(named);
    let mut planned = Vec::new();
    for agent in Agent::ALL {
        let target = Target::new(agent, scope, folders)?;
        let found = match any {
            true => (args.all || named(agent)).then(|| "named".to_owned()),
            // What is there is taken out, whether the agent still is or not.
            false if args.remove => Some("looked at".to_owned()),
            false if target.folder.is_dir() => Some(format!("found {}", shown(&target.folder, folders))),
            false => process::is_on_the_path(agent.name()).then(|| "on the PATH".to_owned()),
        };
        let Some(found) = found else { continue };
        let change = if args.remove { Change::remove } else { Change::install }(&target, records)?;
        planned.push(Planned { change, found });
    }
    if planned.is_empty() { Err(InstallError::NothingFound) } else { Ok(planned) }
}

/// Makes changes happen, up to the first that fails.
fn apply(planned: Vec<Planned>, state: Option<&Path>) -> (Vec<Planned>, Option<InstallError>) {
    let writes = |one: &Planned| !matches!(one.change.action(), FileAction::Unchanged | FileAction::Absent);
    let is_any = planned.iter().any(writes);
    // A state folder is not made for nothing; one that is there may have something to forget.
    let state = state.filter(|root| is_any || root.is_dir());
    let opened = state.and_then(|root| StateFolder::open(root, Arc::new(process::now), Arc::default()).ok());
    let records = Records::new(opened.map(|folder| records_in(folder.root())));
    let mut done = Vec::new();
    for one in planned {
        match one.change.apply(&records) {
            Ok(remembered) => {
                if !remembered {
                    let what = "how the file looked before could not be remembered; --remove will find the hooks, and may leave other white space";
                    terminal::warn(what, Some("`backstop doctor` checks the state folder"));
                }
                done.push(one);
            }
            Err(error) => return (done, Some(error)),
        }
    }
    (done, None)
}

/// A path as it is shown: relative to the project where it is inside it.
fn shown(path: &Path, folders: &Folders) -> String {
    let path = path.strip_prefix(&folders.project).unwrap_or(path);
    SafeText::new(path.to_string_lossy()).line(PATH_CHARS_MAX)
}

fn say(args: &Init, scope: Scope, folders: &Folders, done: &[Planned]) -> Result<(), CliError> {
    let redactor = terminal::redactor();
    let next = next(args, done);
    let diff = |one: &Planned| {
        redactor.redact(&one.change.diff(&shown(&one.change.target.file, folders))).into_owned()
    };
    if args.json {
        let path = |path: &PathBuf| path.display().to_string();
        let agents: Vec<_> = done
            .iter()
            .map(|one| {
                json!({
                    "agent": one.change.target.agent.name(),
                    "found": one.found,
                    "file": path(&one.change.target.file),
                    "leads_to": one.change.leads_to.as_ref().map(path),
                    "action": one.change.action().name(),
                    "events": one.change.events,
                    "folders": one.change.folders().iter().map(path).collect::<Vec<_>>(),
                    "left": one.change.left,
                    "diff": diff(one),
                })
            })
            .collect();
        return terminal::print(&format!(
            "{}\n",
            to_json(&json!({
                "schema": JSON_SCHEMA, "scope": scope.name(), "remove": args.remove, "dry_run": args.dry_run,
                "agents": agents, "next": next,
            }))
        ));
    }
    for one in done {
        terminal::print(&SafeText::new(diff(one)).terminal())?;
    }
    let mut words = String::new();
    for one in done {
        words.push_str(&line(args, folders, one));
    }
    for next in next {
        words.push_str(&format!("next: {next}\n"));
    }
    terminal::say(&words);
    Ok(())
}

/// One line about one file, for people.
fn line(args: &Init, folders: &Folders, one: &Planned) -> String {
    let change = &one.change;
    let mut file = shown(&change.target.file, folders);
    if let Some(real) = &change.leads_to {
        file.push_str(&format!(", which leads to {}", shown(real, folders)));
    }
    let is = if args.dry_run { "would be" } else { "was" };
    let what = match change.action() {
        FileAction::Absent => "has nothing of Backstop's: it is not there".to_owned(),
        FileAction::Unchanged if args.remove => "has nothing of Backstop's".to_owned(),
        FileAction::Unchanged => "has the hooks already".to_owned(),
        action => format!("{is} {}", action.name()),
    };
    let events: Vec<String> = change.events.iter().map(|event| SafeText::new(event).line(60)).collect();
    let events = if events.is_empty() { String::new() } else { format!(": {}", events.join(", ")) };
    let left = match change.left {
        0 => String::new(),
        n => format!("; {n} that call Backstop and were added to stay"),
    };
    format!("{} ({}): {file} {what}{events}{left}\n", change.target.agent.name(), one.found)
}

/// What to do next.
fn next(args: &Init, done: &[Planned]) -> Vec<String> {
    let mut next = Vec::new();
    if args.dry_run {
        next.push("nothing was written; type it without --dry-run to write it".to_owned());
    }
    if args.remove {
        return next;
    }
    let new = |agent| {
        let is_new = |one: &&Planned| matches!(one.change.action(), FileAction::Made | FileAction::Changed);
        done.iter().filter(is_new).any(|one| one.change.target.agent == agent)
    };
    if new(Agent::Claude) || new(Agent::Codex) {
        next.push(
            "gates at the end of a turn run once backstop.toml sets them and `backstop trust` was typed; init trusts nothing"
                .to_owned(),
        );
    }
    if new(Agent::Codex) {
        next.push(
            "Codex runs no new hook unseen: look at them with /hooks in Codex, and trust them there"
                .to_owned(),
        );
    }
    if !process::is_on_the_path("backstop") {
        next.push("put backstop on the PATH: that is where the agents look for it".to_owned());
    }
    next
}
