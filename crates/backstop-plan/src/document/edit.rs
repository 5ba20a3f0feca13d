//! Keeps a plan's marks up to date: status cells and checkboxes, and nothing else.
//!
//! It must not decide what is done. Everything that is not a mark stays the same, byte for byte.

use super::error::PlanError;
use super::id::PhaseId;
use super::outline::Outline;
use super::spelling::{padded, respelt, says_todo};
use super::status::Status;
use super::table::Column;
use std::collections::BTreeMap;

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
pub fn updated(text: &[u8], edits: &[Edit]) -> Result<Vec<u8>, PlanError> {
    if edits.is_empty() {
        return Ok(text.to_vec());
    }
    let outline = Outline::read(text)?;
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
    let mut out = Vec::with_capacity(text.len() + changes.len());
    let mut at = 0;
    for (start, (end, new)) in changes {
        out.extend_from_slice(&text[at..start]);
        out.extend_from_slice(new.as_bytes());
        at = end;
    }
    out.extend_from_slice(&text[at..]);
    Ok(out)
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
