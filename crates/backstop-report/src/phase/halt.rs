//! The errors that no retry cures and that end a run at once, each with its way out.

use super::Phase;
use crate::Notice;
use crate::notice::{Field, Marker, Words, json_text};
use backstop_core::{Reason, SafeText};
use serde_json::json;

/// Something that is not installed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DependencyMissing {
    /// The phase that needed it, where it was in one.
    pub phase: Option<Phase>,
    /// What is missing.
    pub package: SafeText,
    /// What needs it: a gate, a task.
    pub required_by: SafeText,
    /// What the tool said.
    pub message: Option<SafeText>,
    /// The command that installs it, where it is known.
    pub install: Option<SafeText>,
    /// The command that continues the run.
    pub resume: SafeText,
}

/// Something that the run needs is not installed.
pub fn dependency_missing(given: &DependencyMissing) -> Notice {
    let mut fields = vec![
        Field::new("package", "Package", Words::outside(&given.package)),
        Field::new("required_by", "Required by", Words::outside(&given.required_by)),
    ];
    fields.extend(given.phase.as_ref().map(|phase| Field::new("phase", "Phase", phase.words())));
    fields.extend(given.message.as_ref().map(|message| Field::message("message", "Message", message)));
    let install = match &given.install {
        Some(command) => Words::own("Install it: ").and_outside(command),
        None => Words::own("Install ").and_outside(&given.package).and(" with your package manager"),
    };
    let steps = vec![install.clone(), Words::own("Then resume: ").and_outside(&given.resume)];
    halted("dependency_missing", Reason::DependencyMissing)
        .group("dependency", "Something the run needs is not installed", fields)
        .gap()
        .end(Marker::Indent, "Resolution", steps, "Manual intervention required")
        .next_shown(install)
}

/// Phases that wait for each other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CircularDependency {
    /// The plan.
    pub plan: SafeText,
    /// Who waits for whom, in the order of the cycle.
    pub cycle: Vec<(SafeText, SafeText)>,
    /// The command that runs the plan once it is corrected.
    pub run: SafeText,
}

/// The plan's phases wait for each other.
pub fn circular_dependency(given: &CircularDependency) -> Notice {
    let edge = |(phase, on): &(SafeText, SafeText)| {
        Words::own("Phase ").and_outside(phase).and(" depends on Phase ").and_outside(on)
    };
    let edge_json = |(phase, on): &(SafeText, SafeText)| json!({ "phase": json_text(phase), "depends_on": json_text(on) });
    let cut = Words::own(
        "Take one of these out of the plan's \"Depends On\" column, so that no phase waits for itself",
    );
    let steps = vec![cut.clone(), Words::own("Then run: ").and_outside(&given.run)];
    halted("circular_dependency", Reason::CircularDependency)
        .field("plan", "Plan", Words::outside(&given.plan))
        .data("error", "these phases wait for each other")
        .data("cycle", given.cycle.iter().map(edge_json).collect::<Vec<_>>())
        .list("", "These phases wait for each other", Marker::Indent, given.cycle.iter().map(edge).collect())
        .gap()
        .end(Marker::Indent, "Resolution", steps, "Invalid plan")
        .next_shown(cut)
}

/// Lines of a file that a phase changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LineRange {
    /// The phase.
    pub phase: SafeText,
    /// The first line, counted from 1.
    pub first: u64,
    /// The last line.
    pub last: u64,
}

/// A file that several phases changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConflictFile {
    /// The file.
    pub file: SafeText,
    /// Who changed which lines.
    pub changes: Vec<LineRange>,
}

/// Changes that do not go together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileConflict {
    /// The files.
    pub files: Vec<ConflictFile>,
    /// Where the change that was not integrated is kept, where it is: a ref.
    pub kept: Option<SafeText>,
    /// The command that continues the run.
    pub resume: SafeText,
}

/// Phases that ran side by side changed the same file.
pub fn file_conflict(given: &FileConflict) -> Notice {
    let mut lines = Vec::new();
    for file in &given.files {
        lines.push(Words::own("File: ").and_outside(&file.file));
        for LineRange { phase, first, last } in &file.changes {
            let range = if first == last { format!("line {first}") } else { format!("lines {first}-{last}") };
            lines.push(Words::own("Phase ").and_outside(phase).and(format!(" modified {range}")));
        }
    }
    let merge = match &given.kept {
        Some(kept) => Words::own("Merge by hand: what was not integrated is kept at ").and_outside(kept),
        None => "Merge the changes by hand".into(),
    };
    let steps = vec![
        merge.clone(),
        "Let the phases run one after the other: make one depend on the other in the plan".into(),
        "Split the file, so that each phase has its own".into(),
    ];
    halted("file_conflict", Reason::FileConflict)
        .data("error", "phases that ran side by side changed the same file")
        .data("files", given.files.iter().map(ConflictFile::json).collect::<Vec<_>>())
        .list("", "Phases that ran side by side changed the same file", Marker::Indent, lines)
        .gap()
        .line("verdict", "BACKSTOP CANNOT PROCEED")
        .gap()
        .list("resolution", "Resolution options", Marker::Number, steps)
        .field("resume", "Then resume", Words::outside(&given.resume))
        .gap()
        .line("closing", "[HALTED - Parallel conflict]")
        .next_shown(merge)
}

/// A plan that cannot be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanInvalid {
    /// The plan.
    pub plan: SafeText,
    /// The line, counted from 1.
    pub line: Option<u64>,
    /// The column, counted from 1.
    pub column: Option<u64>,
    /// What is wrong there.
    pub problem: SafeText,
    /// What was expected.
    pub expected: Option<SafeText>,
    /// The text of the line.
    pub excerpt: Option<SafeText>,
    /// The command that runs the plan once it is corrected.
    pub run: SafeText,
}

/// The plan cannot be read.
pub fn plan_invalid(given: &PlanInvalid) -> Notice {
    let mut at = given.plan.line(crate::notice::NAME_CHARS_MAX);
    for number in [given.line, given.column].into_iter().map_while(|n| n) {
        at.push_str(&format!(":{number}"));
    }
    let at = SafeText::new(at);
    let mut fields = vec![
        Field::new("at", "At", Words::outside(&at)),
        Field::message("problem", "Problem", &given.problem),
    ];
    let mut text = |key, label, text: &Option<SafeText>| {
        fields.extend(text.as_ref().map(|text| Field::message(key, label, text)));
    };
    text("excerpt", "Line", &given.excerpt);
    text("expected", "Expected", &given.expected);
    let correct = Words::own("Correct it at ").and_outside(&at);
    let steps = vec![correct.clone(), Words::own("Then run: ").and_outside(&given.run)];
    halted("plan_invalid", Reason::PlanInvalid)
        .data("plan", json_text(&given.plan))
        .data("line", given.line)
        .data("column", given.column)
        .group("error", "The plan cannot be read", fields)
        .gap()
        .end(Marker::Indent, "Resolution", steps, "Invalid plan")
        .next_shown(correct)
}

impl ConflictFile {
    fn json(&self) -> serde_json::Value {
        let change = |range: &LineRange| json!({ "phase": json_text(&range.phase), "first": range.first, "last": range.last });
        json!({ "file": json_text(&self.file), "changes": self.changes.iter().map(change).collect::<Vec<_>>() })
    }
}

fn halted(kind: &'static str, reason: Reason) -> Notice {
    Notice::headed(kind, format!("ERROR: {reason} (NON-RETRYABLE)"), Some(reason)).reason_line().gap()
}

impl Notice {
    /// The verdict, the way out and the closing line.
    fn end(self, marker: Marker, label: &'static str, steps: Vec<Words>, why: &str) -> Self {
        self.line("verdict", "BACKSTOP CANNOT PROCEED")
            .gap()
            .list("resolution", label, marker, steps)
            .gap()
            .line("closing", format!("[HALTED - {why}]"))
    }
}
