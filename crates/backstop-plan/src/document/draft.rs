//! What a reader finds in a document: groups of tasks with their marks, before it is chosen which
//! of them are the phases of a run.

use super::format::{By, Format};
use super::mark::Mark;
use super::settings::Settings;
use super::status::Status;

/// A document as a reader understood it.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) format: Format,
    pub(crate) groups: Vec<Group>,
    /// What a phase is, where nobody says: small steps of a group belong together.
    pub(crate) usual: By,
    /// Whether ids are only numbers in a list, which begin anew in every group.
    pub(crate) renumber: bool,
    /// Commands that check the work of every phase.
    pub(crate) checks: Vec<String>,
    /// What a section about the order says, sentence by sentence.
    pub(crate) order: Vec<Sentence>,
    /// What was not read as part of the plan: lines counted from 0, and what is there.
    pub(crate) passed_over: Vec<(usize, String)>,
    /// The settings of every phase.
    pub(crate) defaults: Settings,
    pub(crate) defaults_text: String,
}

/// A sentence about the order of a plan, in the names that it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sentence {
    /// The first wait for the second.
    Waits(String, String),
    /// They come one after the other.
    Chain(Vec<String>),
    /// They may run side by side.
    Beside(String),
}

/// A group of tasks, or a single one.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) entry: Entry,
    /// The tasks in it. A group without any is a task itself.
    pub(crate) items: Vec<Entry>,
}

/// Something that can be a phase.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry {
    /// The id as it is written; empty where there is none.
    pub(crate) id: String,
    /// The byte where it begins in the first file, for errors.
    pub(crate) at: usize,
    pub(crate) name: String,
    /// Its line, counted from 0.
    pub(crate) line: usize,
    /// Its part of the document.
    pub(crate) section: String,
    pub(crate) after: After,
    /// What prose says that it waits for, each with the byte where that is: it counts where all of
    /// it leads to entries before it.
    pub(crate) hints: Vec<(String, usize)>,
    /// What it says it may run beside, read in the same way.
    pub(crate) with: Vec<(String, usize)>,
    /// Whether it may run beside its neighbours that may, too.
    pub(crate) beside: bool,
    pub(crate) status: Status,
    pub(crate) marks: Vec<Mark>,
    /// What is ticked off in it.
    pub(crate) steps: Vec<Step>,
    pub(crate) estimate: Option<String>,
    /// Commands that check its work.
    pub(crate) checks: Vec<String>,
    /// The files that it says it changes.
    pub(crate) files: Vec<String>,
    pub(crate) settings: Option<Settings>,
}

/// What an entry waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum After {
    /// All that come before it.
    #[default]
    Order,
    /// Those that it names, each with the byte where its name is.
    Named(Vec<(String, usize)>),
}

/// A step: something that is ticked off.
#[derive(Debug, Clone, Default)]
pub(crate) struct Step {
    pub(crate) text: String,
    pub(crate) done: bool,
    pub(crate) depth: usize,
    /// Its line, counted from 0.
    pub(crate) line: usize,
    pub(crate) mark: Option<Mark>,
}

impl Entry {
    /// The entry as a step of its group.
    pub(crate) fn as_step(&self) -> Step {
        let is_left_out = self.status == Status::Skipped;
        Step {
            text: if self.id.is_empty() { self.name.clone() } else { format!("{} {}", self.id, self.name) },
            done: self.is_done(),
            depth: 0,
            line: self.line,
            // Nobody does what is left out, so that nobody ticks it off.
            mark: self.marks.first().filter(|_| !is_left_out).cloned(),
        }
    }

    /// Whether nobody has to work on it.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.status, Status::Complete | Status::Skipped)
    }
}
