//! The formats that plans are written in, and what a phase of a run is in them.

use serde::{Deserialize, Serialize};

/// The format of a plan document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Backstop's own: a table of phases and a section for each.
    #[default]
    Backstop,
    /// GitHub Spec Kit's `tasks.md`.
    SpecKit,
    /// Task Master's `tasks.json`.
    TaskMaster,
    /// Kiro's `tasks.md`.
    Kiro,
    /// OpenSpec's `tasks.md`.
    Openspec,
    /// A BMAD story, or several with their `sprint-status.yaml`.
    Bmad,
    /// A plan of Claude Code's plan mode.
    Claude,
    /// An ExecPlan by the rules of `PLANS.md`.
    Execplan,
    /// A plan of superpowers.
    Superpowers,
    /// A PRP (product requirement prompt).
    Prp,
    /// A plan of ralphex.
    Ralphex,
    /// Gemini Conductor's `plan.md`.
    Conductor,
    /// A ralph loop's `prd.json`.
    Ralph,
    /// A checklist or a numbered list.
    List,
    /// Headings, a phase each.
    Headings,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 15] = [
        Format::Backstop,
        Format::SpecKit,
        Format::TaskMaster,
        Format::Kiro,
        Format::Openspec,
        Format::Bmad,
        Format::Claude,
        Format::Execplan,
        Format::Superpowers,
        Format::Prp,
        Format::Ralphex,
        Format::Conductor,
        Format::Ralph,
        Format::List,
        Format::Headings,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Backstop => "backstop",
            Format::SpecKit => "spec-kit",
            Format::TaskMaster => "task-master",
            Format::Kiro => "kiro",
            Format::Openspec => "openspec",
            Format::Bmad => "bmad",
            Format::Claude => "claude",
            Format::Execplan => "execplan",
            Format::Superpowers => "superpowers",
            Format::Prp => "prp",
            Format::Ralphex => "ralphex",
            Format::Conductor => "conductor",
            Format::Ralph => "ralph",
            Format::List => "list",
            Format::Headings => "headings",
        }
    }

    /// What people read.
    pub fn title(self) -> &'static str {
        match self {
            Format::Backstop => "Backstop plan",
            Format::SpecKit => "Spec Kit tasks",
            Format::TaskMaster => "Task Master tasks",
            Format::Kiro => "Kiro tasks",
            Format::Openspec => "OpenSpec tasks",
            Format::Bmad => "BMAD stories",
            Format::Claude => "Claude Code plan",
            Format::Execplan => "ExecPlan",
            Format::Superpowers => "superpowers plan",
            Format::Prp => "PRP",
            Format::Ralphex => "ralphex plan",
            Format::Conductor => "Conductor plan",
            Format::Ralph => "ralph stories",
            Format::List => "list",
            Format::Headings => "headings",
        }
    }

    /// The format of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// What a phase of a run is in a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// A group of tasks: a heading, or a task with subtasks.
    #[default]
    Phase,
    /// One task.
    Task,
}

impl By {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            By::Phase => "phase",
            By::Task => "task",
        }
    }

    /// What is meant by a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [By::Phase, By::Task].into_iter().find(|by| by.name() == name)
    }
}

/// How a document is to be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format; found by the document's structure where it is not given.
    pub format: Option<Format>,
    /// What a phase is; by format and size where it is not given.
    pub by: Option<By>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_formats() {
        for format in Format::ALL {
            assert_eq!(Format::from_name(format.name()), Some(format));
            assert_eq!(serde_json::to_value(format).unwrap(), format.name());
        }
        assert_eq!(Format::from_name("word"), None);
    }
}
