//! What may be typed about hooks in agents' settings.

use clap::Args;

/// Put hooks that call `backstop hook agent` into agents' settings, or take them out again.
///
/// Nothing else in a settings file is touched, and what changes is shown as a diff. Without an agent's name, those are meant
/// whose folder is here or whose program is on the PATH. Nothing is trusted by it.
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
