//! Keeps a plan's marks up to date: status cells and checkboxes, and nothing else.
//!
//! It must not decide what is done. Everything that is not a mark stays the same, byte for byte.

use super::error::PlanErrors;
use super::format::ReadOptions;
use super::id::PhaseId;
use super::mark_index::MarkIndex;
use super::readers::PlanText;
use super::status::Status;

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

/// The text with these edits made. A phase or task that is no longer there is skipped, and so is
/// the status of a row that is too short to have one.
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
    if texts.is_empty() || edits.is_empty() {
        return Ok(Vec::new());
    }
    let mut index = MarkIndex::read(texts, options)?;
    let changed = index.apply(edits);
    Ok(changed.into_iter().map(|file| (file, index.text(file).to_vec())).collect())
}
