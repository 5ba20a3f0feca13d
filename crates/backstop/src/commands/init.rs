//! `backstop init`: hooks in agents' settings.

use crate::error::CliError;
use crate::{process, terminal};
use backstop_config as config;
use backstop_core::SafeText;
use backstop_install::{Agent, Change, FileAction, Folders, InstallError, Records, Scope, Target, installed};
use backstop_report::{JSON_SCHEMA, to_json};
use backstop_store::StateFolder;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Add hooks that call `backstop hook agent` to the settings of coding agents, or remove them.
///
/// Nothing else in a settings file changes, comments included, and every change is shown as a diff.
/// Without an agent's flag, every agent is chosen whose folder is here or whose program is on the
/// PATH. No project is trusted by this.
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
    /// All agents, whether they are found or not
    #[arg(long, conflicts_with_all = ["claude", "codex", "opencode"])]
    pub(crate) all: bool,
    /// Project settings (the default)
    #[arg(long, conflicts_with = "user")]
    pub(crate) project: bool,
    /// User settings, for all projects
    #[arg(long)]
    pub(crate) user: bool,
    /// Move the project's MCP servers behind the gateway instead: `backstop mcp` replaces them, and
    /// they go into backstop.toml
    #[arg(long, conflicts_with_all = ["claude", "codex", "opencode", "all", "user"])]
    pub(crate) mcp: bool,
    /// Remove the hooks; with --mcp, restore the files to the byte
    #[arg(long)]
    pub(crate) remove: bool,
    /// Show what would change; write nothing
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
    if args.mcp {
        return super::init_mcp::run(args);
    }
    let folders = folders()?;
    let scope = if args.user { Scope::User } else { Scope::Project };
    let state = process::state_root(folders.home.as_deref());
    let records = Records::new(state.as_deref().map(records_in));
    // All are looked at before any is written: one that cannot be read means that nothing is.
    let planned = planned(args, scope, &folders, &records)?;
    let (done, failed) = if args.dry_run { (planned, None) } else { apply(planned, state.as_deref()) };
    let said = say(args, scope, &folders, &done);
    if !args.remove {
        for one in &done {
            warn_if_twice(one.change.target.agent, scope, &folders);
        }
    }
    failed.map_or(said, |error| Err(error.into()))
}

fn records_in(state: &Path) -> PathBuf {
    state.join("init")
}

/// The folders in which agents' settings are looked for.
pub(super) fn folders() -> Result<Folders, CliError> {
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

/// Whether both the project's and the user's settings of an agent have hooks of ours.
pub(super) fn is_twice(agent: Agent, folders: &Folders) -> bool {
    [Scope::Project, Scope::User].into_iter().all(|scope| is_installed(agent, scope, folders))
}

fn is_installed(agent: Agent, scope: Scope, folders: &Folders) -> bool {
    let target = Target::new(agent, scope, folders);
    target.and_then(|target| installed(&target)).is_ok_and(|hooks| hooks.is_some())
}

/// The commands that remove one of the two.
pub(super) const REMOVE_ONE: &str =
    "keep one: `backstop init --remove` removes the project's, `backstop init --user --remove` yours";

/// Warns where an agent has the hooks in its other settings too: it runs both.
fn warn_if_twice(agent: Agent, scope: Scope, folders: &Folders) {
    let other = if scope == Scope::User { Scope::Project } else { Scope::User };
    if is_installed(agent, other, folders) {
        let what = format!(
            "{}: the hooks are in the project's settings and in yours, so each event is handled twice",
            agent.name()
        );
        terminal::warn(&what, Some(REMOVE_ONE));
    }
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
                    let what = "the original layout could not be stored; --remove will find the hooks, but may leave other white space";
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
        file.push_str(&format!(" (a link to {})", shown(real, folders)));
    }
    let is = if args.dry_run { "would be" } else { "was" };
    let what = match change.action() {
        FileAction::Absent => "does not exist: nothing to remove".to_owned(),
        FileAction::Unchanged if args.remove => "has no hooks of Backstop".to_owned(),
        FileAction::Unchanged => "has the hooks already".to_owned(),
        action => format!("{is} {}", action.name()),
    };
    let events: Vec<String> = change.events.iter().map(|event| SafeText::new(event).line(60)).collect();
    let events = if events.is_empty() { String::new() } else { format!(": {}", events.join(", ")) };
    let left = match change.left {
        0 => String::new(),
        n => format!("; {n} edited by hand, which call Backstop, stay"),
    };
    format!("{} ({}): {file} {what}{events}{left}\n", change.target.agent.name(), one.found)
}

/// What to do next.
fn next(args: &Init, done: &[Planned]) -> Vec<String> {
    let mut next = Vec::new();
    if args.dry_run {
        next.push("nothing was written; run it without --dry-run to write".to_owned());
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
            "gates at the end of a turn run after `backstop trust`, if backstop.toml sets them; init trusts nothing"
                .to_owned(),
        );
    }
    if new(Agent::Codex) {
        next.push("Codex runs new hooks only after you approve them: type /hooks in Codex".to_owned());
    }
    if !process::is_on_the_path("backstop") {
        next.push("put backstop on the PATH: the agents look for it there".to_owned());
    }
    next
}
