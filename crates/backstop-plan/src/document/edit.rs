//! Keeps a plan's marks up to date: status cells and checkboxes, and nothing else.
//!
//! It must not decide what is done. Everything that is not a mark stays the same, byte for byte.

use super::assemble;
use super::draft::Draft;
use super::error::PlanErrors;
use super::format::ReadOptions;
use super::id::PhaseId;
use super::mark::{self, Mark};
use super::outline::Outline;
use super::read::draft;
use super::readers::PlanText;
use super::source::Source;
use super::spelling::{padded, respelt, says_todo};
use super::status::Status;
use super::table::Column;
use std::collections::{BTreeMap, HashMap};

/// One change of a phase's marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The phase.
    pub phase: PhaseId,
    /// What changes.
    pub change: Change,
}

/// What changes about a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Its status cell, and the status in its section's quote block. `Unknown` changes nothing.
    Status(Status),
    /// Ticks some of its tasks, by their index.
    Tick(Vec<usize>),
    /// Ticks all of its tasks.
    TickAll,
    /// Takes the ticks off some of its tasks, by their index.
    Untick(Vec<usize>),
    /// Takes the ticks off all of its tasks.
    UntickAll,
}

/// Replacements by the byte that they begin at: where each ends, and the new text.
type Changes = BTreeMap<usize, (usize, String)>;

/// The text with these edits made, in order. A phase or task that is no longer there is skipped,
/// and so is the status of a row that is too short to have one.
pub fn updated(text: &[u8], edits: &[Edit]) -> Result<Vec<u8>, PlanErrors> {
    let changed = updated_files(&[PlanText { name: "", text }], &ReadOptions::default(), edits)?;
    Ok(changed.into_iter().next().map_or_else(|| text.to_vec(), |(_, text)| text))
}

/// The files of a plan that these edits change, by their places, with their new content.
pub fn updated_files(
    texts: &[PlanText<'_>],
    options: &ReadOptions,
    edits: &[Edit],
) -> Result<Vec<(usize, Vec<u8>)>, PlanErrors> {
    let Some(first) = texts.first().filter(|_| !edits.is_empty()) else { return Ok(Vec::new()) };
    let mut files = vec![Changes::new(); texts.len()];
    match draft(texts, options)? {
        Some(draft) => marked(draft, texts, options, edits, &mut files)?,
        None => files[0] = in_table(first.text, edits)?,
    }
    let changed = files.into_iter().enumerate().filter(|(_, changes)| !changes.is_empty());
    Ok(changed.map(|(file, changes)| (file, applied(texts[file].text, changes))).collect())
}

fn applied(text: &[u8], changes: Changes) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + changes.len());
    let mut at = 0;
    for (start, (end, new)) in changes {
        out.extend_from_slice(&text[at..start]);
        out.extend_from_slice(new.as_bytes());
        at = end;
    }
    out.extend_from_slice(&text[at..]);
    out
}

/// The changes of a plan that is not in Backstop's own format.
fn marked(
    mut draft: Draft,
    texts: &[PlanText<'_>],
    options: &ReadOptions,
    edits: &[Edit],
    files: &mut [Changes],
) -> Result<(), PlanErrors> {
    let source = Source::new(texts[0].text)?;
    let all = assemble::units(&mut draft, options.by, &source);
    let places: HashMap<&str, usize> =
        all.ids.iter().enumerate().map(|(at, id)| (id.key().as_str(), at)).collect();
    // What each phase comes to, for the groups that they are in.
    let mut is_done: Vec<bool> = all.units.iter().map(|unit| unit.entry.is_done()).collect();
    let mut set = |mark: &Mark, status: Status| {
        let text = std::str::from_utf8(texts[mark.file].text).unwrap_or_default();
        let start = mark.place.start();
        files[mark.file].retain(|at, (end, _)| !(*at <= start && start <= *end));
        if let Some((range, new)) = mark::written(text, &mark.place, status) {
            files[mark.file].insert(range.start, (range.end, new));
        }
    };
    for edit in edits {
        let Some(&at) = places.get(edit.phase.key().as_str()) else { continue };
        let entry = &all.units[at].entry;
        let ticked = |wanted: &dyn Fn(usize) -> bool| -> Vec<Mark> {
            let steps = entry.steps.iter().enumerate().filter(|(n, _)| wanted(*n));
            steps.filter_map(|(_, step)| step.mark.clone()).collect()
        };
        let (marks, status) = match &edit.change {
            Change::Status(status) => {
                if *status != Status::Unknown {
                    is_done[at] = matches!(status, Status::Complete | Status::Skipped);
                }
                // A phase without a mark of its own is done when all in it is ticked.
                match (entry.marks.is_empty(), status) {
                    (true, Status::Complete) => (ticked(&|_| true), *status),
                    (true, _) => continue,
                    (false, _) => (entry.marks.clone(), *status),
                }
            }
            Change::Tick(tasks) => (ticked(&|n| tasks.contains(&n)), Status::Complete),
            Change::TickAll => (ticked(&|_| true), Status::Complete),
            Change::Untick(tasks) => (ticked(&|n| tasks.contains(&n)), Status::NotStarted),
            Change::UntickAll => (ticked(&|_| true), Status::NotStarted),
        };
        marks.iter().for_each(|mark| set(mark, status));
    }
    for (marks, units) in &all.outer {
        let status = if units.iter().all(|at| is_done[*at]) { Status::Complete } else { Status::NotStarted };
        let is_touched =
            units.iter().any(|at| edits.iter().any(|edit| places.get(edit.phase.key().as_str()) == Some(at)));
        if is_touched {
            marks.iter().for_each(|mark| set(mark, status));
        }
    }
    Ok(())
}

/// The changes of a plan in Backstop's own format.
fn in_table(text: &[u8], edits: &[Edit]) -> Result<Changes, PlanErrors> {
    let mut outline = Outline::read(text)?;
    if let Some(errors) = PlanErrors::of(std::mem::take(&mut outline.errors)) {
        return Err(errors);
    }
    let todo = outline.table.rows.iter().any(|row| {
        outline.table.cell(row, Column::Status).is_some_and(|cell| says_todo(outline.text(&cell.text)))
    });
    let mut changes = Changes::new();
    for edit in edits {
        let Some(&phase) = outline.known.get(edit.phase.key().as_str()) else { continue };
        match &edit.change {
            Change::Status(status) => set_status(&outline, phase, *status, todo, &mut changes),
            Change::Tick(tasks) => tick(&outline, phase, Some(tasks), true, &mut changes),
            Change::TickAll => tick(&outline, phase, None, true, &mut changes),
            Change::Untick(tasks) => tick(&outline, phase, Some(tasks), false, &mut changes),
            Change::UntickAll => tick(&outline, phase, None, false, &mut changes),
        }
    }
    Ok(changes)
}

fn set_status(outline: &Outline<'_>, phase: usize, status: Status, todo: bool, changes: &mut Changes) {
    if status == Status::Unknown {
        return;
    }
    if let Some(cell) = outline.cell(phase, Column::Status) {
        // An edit before this one may have changed the cell.
        changes.remove(&cell.whole.start);
        if let Some(new) = respelt(outline.text(&cell.text), status, todo) {
            let text = cell.text.start - cell.whole.start..cell.text.end - cell.whole.start;
            let new = padded(outline.text(&cell.whole), text, &new);
            changes.insert(cell.whole.start, (cell.whole.end, new));
        }
    }
    if let Some(field) = outline.sections.of[phase].field(Column::Status) {
        changes.remove(&field.value.start);
        if let Some(new) = respelt(outline.text(&field.value), status, todo) {
            let new = if field.value.is_empty() { format!(" {new}") } else { new };
            changes.insert(field.value.start, (field.value.end, new));
        }
    }
}

fn tick(outline: &Outline<'_>, phase: usize, tasks: Option<&Vec<usize>>, done: bool, changes: &mut Changes) {
    let wanted: Option<std::collections::HashSet<usize>> = tasks.map(|tasks| tasks.iter().copied().collect());
    for (task, checkbox) in outline.checkboxes(phase).enumerate() {
        if wanted.as_ref().is_some_and(|wanted| !wanted.contains(&task)) {
            continue;
        }
        changes.remove(&checkbox.mark);
        if checkbox.done != done {
            let end = checkbox.mark + usize::from(!checkbox.bare);
            changes.insert(checkbox.mark, (end, if done { "x" } else { " " }.to_owned()));
        }
    }
}
