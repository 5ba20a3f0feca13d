//! A plan: its phases and their tasks.

use super::files;
use super::format::{By, Format};
use super::id::PhaseId;
use super::settings::Settings;
use super::status::Status;
use super::warning::Warning;
use backstop_core::SafeText;
use backstop_core::order as graph;
use std::time::Duration;

/// A plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The phases, in the order of the table.
    pub phases: Vec<Phase>,
    /// Warnings, in the order of lines.
    pub warnings: Vec<Warning>,
    /// SHA-256 of the table without its status cells and its layout.
    pub table_hash: String,
    /// The settings of every phase that does not set its own.
    pub defaults: Settings,
    /// SHA-256 of the settings block that the defaults are from.
    pub defaults_hash: String,
    /// The format that it was read as.
    pub format: Format,
    /// What a phase is in the document.
    pub by: By,
    /// How many groups of tasks the document has.
    pub groups: usize,
    /// How many tasks they have.
    pub items: usize,
    /// Parts of the document that were not read as part of the plan.
    pub passed_over: Vec<Warning>,
}

/// One phase: a row of the table and a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// Its id.
    pub id: PhaseId,
    /// Its name: from the table, else from the section's heading, else made of the id.
    pub name: SafeText,
    /// The phases that it waits for, as sorted indexes into the plan's phases.
    pub depends_on: Vec<usize>,
    /// The phases that may run at the same time, as sorted indexes. Each of those lists this one
    /// too.
    pub parallel_with: Vec<usize>,
    /// Its estimate, as the plan writes it.
    pub estimate: Option<SafeText>,
    /// The estimate as a duration, where it is one; of a range the upper end.
    pub estimated: Option<Duration>,
    /// What its status cell says.
    pub status: Status,
    /// The checkboxes of its section, in order.
    pub tasks: Vec<Task>,
    /// The text of its section, heading included. Empty if there is none.
    pub section: SafeText,
    /// Its own settings over the plan's defaults.
    pub settings: Settings,
    /// SHA-256 of its row and section, without status and checkbox marks: what Backstop itself
    /// changes makes no difference.
    pub hash: String,
    /// The line of its row, counted from 1.
    pub line: usize,
}

/// A checkbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// What is to be done.
    pub text: SafeText,
    /// Whether it is ticked.
    pub done: bool,
    /// How many list items it is nested in.
    pub depth: usize,
    /// Its line, counted from 1.
    pub line: usize,
}

impl Plan {
    /// The index of the phase that a typed id names.
    pub fn find(&self, typed: &str) -> Option<usize> {
        let place = |id: PhaseId| self.phases.iter().position(|phase| phase.id == id);
        let glued =
            || typed.trim().split_at_checked(5).filter(|(word, _)| word.eq_ignore_ascii_case("phase"));
        let found = typed.parse().ok().and_then(place);
        found.or_else(|| glued().and_then(|(_, rest)| rest.parse().ok()).and_then(place))
    }

    /// Has phases that name no folder work in this one.
    pub fn work_in(&mut self, dir: Option<&str>) {
        let own = self.phases.iter_mut().map(|phase| &mut phase.settings).filter(|one| one.dir.is_none());
        own.for_each(|settings| settings.dir = dir.map(str::to_owned));
    }

    /// What it was read as, where that was not Backstop's own form.
    pub fn read_as(&self) -> Option<String> {
        let (title, by, count) = (self.format.title(), self.by.name(), self.phases.len());
        (self.format != Format::Backstop)
            .then(|| format!("read as {title}, by {by}: {count} phases (`--dry-run` shows them)"))
    }

    /// The level of each phase, as [`Plan::levels`] has them.
    pub fn level_of_each(&self) -> Vec<usize> {
        let mut levels = vec![0; self.phases.len()];
        for (level, phases) in self.levels().into_iter().enumerate() {
            phases.into_iter().for_each(|at| levels[at] = level);
        }
        levels
    }

    /// The phases in levels: each phase is one level after the last of its dependencies. For
    /// display: a phase may start as soon as its dependencies are complete.
    pub fn levels(&self) -> Vec<Vec<usize>> {
        graph::levels(&self.dependencies())
    }

    /// Pairs of phases that do not wait for each other and declare the same files, with those files
    /// or patterns, in order. Of a plan with very many patterns, the first few thousand pairs.
    pub fn overlaps(&self) -> Vec<(usize, usize, Vec<String>)> {
        let declared: Vec<&[String]> =
            self.phases.iter().map(|phase| phase.settings.files.as_slice()).collect();
        if declared.iter().filter(|files| !files.is_empty()).count() < 2 {
            return Vec::new();
        }
        let reach = graph::Reach::new(&self.dependencies());
        files::overlaps(&declared, |a, b| reach.either(a, b))
    }

    fn dependencies(&self) -> Vec<&[usize]> {
        self.phases.iter().map(|phase| phase.depends_on.as_slice()).collect()
    }
}
