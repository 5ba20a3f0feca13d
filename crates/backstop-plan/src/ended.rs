//! How a plan's run ended, as a surface shows it.

use crate::Ending;
use crate::present::{Facts, completion, halt};
use crate::saved_work::unlanded_refs;
use crate::start::path_in_project;
use crate::view::ViewFolder;
use backstop_core::{End, SafeText};
use backstop_report::Style;
use backstop_report::plan::{
    Completion, HaltSummary, completion_json, completion_line, completion_summary, halt_json, halt_summary,
};
use backstop_runtime::Project;
use backstop_runtime::admission::UNFREEZE;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// How a plan's run ended: complete, or halted with what was done and what was not.
#[derive(Debug)]
pub enum EndedPlan {
    /// Every phase is complete.
    Complete(Box<Completion>),
    /// It stopped before the end.
    Halted(Box<HaltSummary>),
}

impl EndedPlan {
    /// The ending of a run. `again` is the command that continues it, `elapsed` how long it took.
    pub fn of(
        project: &Project,
        views: &ViewFolder,
        ending: &Ending,
        again: &str,
        elapsed: Duration,
    ) -> Option<Self> {
        let shown = |path: &Path| {
            path_in_project(&path.canonicalize().unwrap_or_else(|_| path.to_owned()), &project.root)
        };
        let is_frozen = project.frozen().is_some();
        let facts = Facts {
            views,
            shown: &shown,
            first: is_frozen
                .then(|| SafeText::new(format!("Put right why the project is frozen, then `{UNFREEZE}`"))),
            resume: again.to_owned(),
            kept: unlanded_refs(project, ending),
            elapsed,
            notes: Vec::new(),
            now: project.process.now(),
        };
        Some(match (&ending.end, &ending.conclusion) {
            (End::Complete, Some(conclusion)) => {
                Self::Complete(Box::new(completion(&ending.record, conclusion, &facts)?))
            }
            _ => Self::Halted(Box::new(halt(ending, &facts)?)),
        })
    }

    /// For people.
    pub fn text(&self, width: usize, style: Style) -> String {
        match self {
            Self::Complete(completion) => completion_summary(completion, width, style),
            Self::Halted(halted) => halt_summary(halted, width, style),
        }
    }

    /// A complete run in one line; nothing for one that halted.
    pub fn line(&self, style: Style) -> String {
        match self {
            Self::Complete(completion) => completion_line(completion, style),
            Self::Halted(_) => String::new(),
        }
    }

    /// For programs.
    pub fn json(&self) -> Value {
        match self {
            Self::Complete(completion) => completion_json(completion),
            Self::Halted(halted) => halt_json(halted),
        }
    }
}
