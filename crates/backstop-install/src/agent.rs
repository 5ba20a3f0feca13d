//! The supported agents, and where their settings files are.

use super::error::InstallError;
use backstop_files::{Durability, Folder, named};
use std::path::PathBuf;

/// An agent whose settings can hold hooks that call Backstop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// OpenCode.
    Opencode,
    /// Gemini CLI.
    Gemini,
    /// Copilot CLI.
    Copilot,
    /// Qwen Code.
    Qwen,
}

impl Agent {
    /// All agents, in the order in which they are shown.
    pub const ALL: [Self; 6] =
        [Self::Claude, Self::Codex, Self::Opencode, Self::Gemini, Self::Copilot, Self::Qwen];

    /// The name of the agent's program, and of its flag.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
            Self::Copilot => "copilot",
            Self::Qwen => "qwen",
        }
    }

    /// Whether its hooks are told that a turn is over, so that gates can hold it.
    pub fn has_gates(self) -> bool {
        matches!(self, Self::Claude | Self::Codex)
    }
}

/// Which settings are changed: the project's or the user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The settings of this project.
    Project,
    /// The settings of the user, for all projects.
    User,
}

impl Scope {
    /// The name of the scope, and of its flag.
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// The folders in which settings are looked for. They are arguments: nothing here reads the
/// environment.
#[derive(Debug, Clone, Default)]
pub struct Folders {
    /// The repository's root, else the current folder.
    pub project: PathBuf,
    /// The home folder.
    pub home: Option<PathBuf>,
    /// Claude Code's folder, if it is not the default.
    pub claude: Option<PathBuf>,
    /// Codex' folder, if it is not the default.
    pub codex: Option<PathBuf>,
    /// The folder for configuration files, if it is not the default.
    pub config: Option<PathBuf>,
}

/// One settings file of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The agent.
    pub agent: Agent,
    /// The agent's own folder. Where it exists, the agent is in use.
    pub folder: PathBuf,
    /// The settings file.
    pub file: PathBuf,
    /// The project that the file is in. Links in it are not followed: they are the repository's.
    pub project: Option<PathBuf>,
}

impl Target {
    /// The settings file of an agent in a scope.
    pub fn new(agent: Agent, scope: Scope, folders: &Folders) -> Result<Self, InstallError> {
        let home = || folders.home.clone().ok_or(InstallError::NoHome);
        let folder = match (scope, agent) {
            // Its hooks of a project are where GitHub's other settings are.
            (Scope::Project, Agent::Copilot) => folders.project.join(".github"),
            (Scope::Project, agent) => folders.project.join(format!(".{}", agent.name())),
            (Scope::User, Agent::Claude) => match &folders.claude {
                Some(folder) => folder.clone(),
                None => home()?.join(".claude"),
            },
            (Scope::User, Agent::Codex) => match &folders.codex {
                Some(folder) => folder.clone(),
                None => home()?.join(".codex"),
            },
            (Scope::User, Agent::Opencode) => match &folders.config {
                Some(folder) => folder.join("opencode"),
                None => home()?.join(".config/opencode"),
            },
            (Scope::User, agent) => home()?.join(format!(".{}", agent.name())),
        };
        let name = match agent {
            Agent::Claude | Agent::Gemini | Agent::Qwen => "settings.json",
            Agent::Codex => "hooks.json",
            Agent::Opencode => "plugin/backstop.js",
            Agent::Copilot => "hooks/backstop.json",
        };
        let project = (scope == Scope::Project).then(|| folders.project.clone());
        Ok(Self { agent, file: folder.join(name), folder, project })
    }
}

impl Target {
    /// Replaces the file, as it is allowed where it is.
    pub(crate) fn write(&self, content: &[u8]) -> std::io::Result<()> {
        let done = match &self.project {
            Some(project) => Folder::new(project).replace(&self.file, content, Durability::OnDisk),
            None => named::replace(&self.file, content, Durability::OnDisk),
        };
        Ok(done?)
    }
}
