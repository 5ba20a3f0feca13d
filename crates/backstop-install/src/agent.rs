//! Agents that can be told to call us, and where their settings are.

use super::error::InstallError;
use std::path::PathBuf;

/// An agent that can be told to call us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// OpenCode.
    Opencode,
}

impl Agent {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 3] = [Self::Claude, Self::Codex, Self::Opencode];

    /// The name of its program, and of its flag.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
        }
    }
}

/// Whose settings are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The project's.
    Project,
    /// The user's, for all projects.
    User,
}

impl Scope {
    /// Its name, and that of its flag.
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// The folders in which settings are looked for. They are arguments: nothing here asks the process.
#[derive(Debug, Clone, Default)]
pub struct Folders {
    /// The repository's root, else the current folder.
    pub project: PathBuf,
    /// The home folder.
    pub home: Option<PathBuf>,
    /// Claude Code's folder, where it was moved.
    pub claude: Option<PathBuf>,
    /// Codex' folder, where it was moved.
    pub codex: Option<PathBuf>,
    /// The folder of configurations, where it was moved.
    pub config: Option<PathBuf>,
}

/// One settings file of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The agent.
    pub agent: Agent,
    /// Its own folder: that it is there says that the agent is used.
    pub folder: PathBuf,
    /// The file that is changed.
    pub file: PathBuf,
}

impl Target {
    /// Where an agent's settings are.
    pub fn new(agent: Agent, scope: Scope, folders: &Folders) -> Result<Self, InstallError> {
        let home = || folders.home.clone().ok_or(InstallError::NoHome);
        let folder = match (scope, agent) {
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
        };
        let name = match agent {
            Agent::Claude => "settings.json",
            Agent::Codex => "hooks.json",
            Agent::Opencode => "plugin/backstop.js",
        };
        Ok(Self { agent, file: folder.join(name), folder })
    }
}
