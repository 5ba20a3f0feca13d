//! `backstop init`: hooks in agents' settings.

use crate::error::CliError;
use crate::{process, terminal};
use backstop_config as config;
use backstop_install::doctor::{REMOVE_ONE, is_installed};
use backstop_install::{Agent, Applied, Folders, Records, Scope, Wanted, apply, plan, records_in};
use backstop_report::HookChanges;
use clap::Args;
use std::path::PathBuf;

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
    /// Gemini CLI: .gemini/settings.json
    #[arg(long)]
    pub(crate) gemini: bool,
    /// Copilot CLI: .github/hooks/backstop.json
    #[arg(long)]
    pub(crate) copilot: bool,
    /// Qwen Code: .qwen/settings.json
    #[arg(long)]
    pub(crate) qwen: bool,
    /// All agents, whether they are found or not
    #[arg(long, conflicts_with_all = ["claude", "codex", "opencode", "gemini", "copilot", "qwen"])]
    pub(crate) all: bool,
    /// Project settings (the default)
    #[arg(long, conflicts_with = "user")]
    pub(crate) project: bool,
    /// User settings, for all projects
    #[arg(long)]
    pub(crate) user: bool,
    /// Move MCP servers behind the gateway instead: `backstop mcp` replaces the project's, and they
    /// go into backstop.toml; with --user yours, and they go into your own settings
    #[arg(long, conflicts_with_all = ["claude", "codex", "opencode", "gemini", "copilot", "qwen", "all"])]
    pub(crate) mcp: bool,
    /// Write a systemd user timer or a launchd agent that goes on with interrupted plan runs after
    /// a reboot or a crash (`backstop run --resume-all`)
    #[arg(long, conflicts_with_all = ["claude", "codex", "opencode", "gemini", "copilot", "qwen", "all", "user", "project", "mcp"])]
    pub(crate) service: bool,
    /// Remove the hooks; with --mcp or --service, restore the files to the byte
    #[arg(long)]
    pub(crate) remove: bool,
    /// Show what would change; write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Init) -> Result<(), CliError> {
    if args.mcp {
        return super::init_mcp::run(args);
    }
    if args.service {
        return super::init_service::run(args);
    }
    let folders = folders()?;
    let scope = if args.user { Scope::User } else { Scope::Project };
    let state = process::state_root(folders.home.as_deref());
    let records = Records::new(state.as_deref().map(records_in));
    let wanted = Wanted { agents: named(args), scope, is_removal: args.remove };
    let planned = plan(&wanted, &folders, &records, &process::is_on_the_path)?;
    let Applied { done, failed, forgotten } = match args.dry_run {
        true => Applied { done: planned, failed: None, forgotten: 0 },
        false => apply(planned, state.as_deref(), process::now),
    };
    for _ in 0..forgotten {
        let what = "the original layout could not be stored; --remove will find the hooks, but may leave other white space";
        terminal::warn(what, Some("`backstop doctor` checks the state folder"));
    }
    let redactor = terminal::redactor();
    let changes = HookChanges {
        project: folders.project.clone(),
        scope: scope.name(),
        is_removal: args.remove,
        is_dry_run: args.dry_run,
        changes: done.iter().map(|one| one.row(&folders, &redactor)).collect(),
        is_on_the_path: process::is_on_the_path("backstop"),
    };
    let shown = terminal::show(&changes, args.json);
    if !args.json {
        terminal::say(&changes.summary());
    }
    for one in done.iter().filter(|_| !args.remove) {
        warn_if_twice(one.change.target.agent, scope, &folders);
    }
    if failed.is_none() && shown.is_ok() && !args.remove && !args.json {
        super::init_mcp::offer(args)?;
    }
    failed.map_or(shown, |error| Err(error.into()))
}

/// The agents that were named.
fn named(args: &Init) -> Vec<Agent> {
    let is_named = |agent: &Agent| match agent {
        Agent::Claude => args.claude,
        Agent::Codex => args.codex,
        Agent::Opencode => args.opencode,
        Agent::Gemini => args.gemini,
        Agent::Copilot => args.copilot,
        Agent::Qwen => args.qwen,
    };
    Agent::ALL.into_iter().filter(|agent| args.all || is_named(agent)).collect()
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
