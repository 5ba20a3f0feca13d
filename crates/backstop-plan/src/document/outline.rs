//! The structure of a plan: its table, the ids of its phases, their sections and checkboxes.
//!
//! This is all that an edit needs. What cells and settings mean is read elsewhere, so that a plan
//! with a mistake in them can still be kept up to date.

use super::block::{self, Blocks, Checkbox};
use super::cells::Cell;
use super::error::{PlanError, PlanErrorKind, shown_text};
use super::id::PhaseId;
use super::inline::{plain, without_remarks};
use super::label;
use super::section::{self, Owner, Sections};
use super::source::Source;
use super::table::{self, Column, Row, Table, in_row};
use super::warning::Warnings;
use std::collections::HashMap;
use std::ops::Range;

/// The structure of a plan.
pub(crate) struct Outline<'t> {
    pub(crate) source: Source<'t>,
    pub(crate) blocks: Blocks<'t>,
    pub(crate) table: Table,
    /// The ids of the phases, in the order of the table.
    pub(crate) ids: Vec<PhaseId>,
    /// The place of each phase in the table, by key.
    pub(crate) known: HashMap<String, usize>,
    pub(crate) sections: Sections,
    /// The names that are written in the cells of ids: `**Phase 1: Setup**`.
    pub(crate) names: Vec<String>,
    /// What is wrong with rows and ids.
    pub(crate) errors: Vec<PlanError>,
    /// Warnings about the structure.
    pub(crate) warnings: Warnings,
    /// The checkboxes of each phase, as indexes into the list of all.
    checkboxes: Vec<Vec<u32>>,
}

impl<'t> Outline<'t> {
    /// Reads the structure of a plan.
    pub(crate) fn read(text: &'t [u8]) -> Result<Self, PlanError> {
        let source = Source::new(text)?;
        let blocks = block::read_bounded(&source)?;
        let mut table = table::find(&source, &blocks)?;
        let mut errors = std::mem::take(&mut table.errors);
        let (ids, known, names) = ids(&source, &mut table, &mut errors);
        let shown: Vec<&str> = ids.iter().map(PhaseId::shown).collect();
        let mut warnings = Warnings::default();
        let sections = section::find(&source, &blocks, &known, &shown, &mut warnings);
        let mut checkboxes = vec![Vec::new(); ids.len()];
        for (at, checkbox) in blocks.checkboxes.iter().enumerate() {
            if let Owner::Phase(phase) = sections.owner(checkbox.line) {
                checkboxes[phase].push(at as u32);
            }
        }
        Ok(Self { source, blocks, table, ids, known, sections, names, errors, warnings, checkboxes })
    }

    /// The text of a byte range.
    pub(crate) fn text(&self, range: &Range<usize>) -> &'t str {
        &self.source.text()[range.clone()]
    }

    /// The row of a phase.
    pub(crate) fn row(&self, phase: usize) -> &Row {
        &self.table.rows[phase]
    }

    /// The cell of a phase's row.
    pub(crate) fn cell(&self, phase: usize, column: Column) -> Option<&Cell> {
        self.table.cell(self.row(phase), column)
    }

    /// The byte range of a phase's value in a column: in its row, or in its section where the table
    /// does not have the column.
    pub(crate) fn cell_range(&self, phase: usize, column: Column) -> Option<Range<usize>> {
        match self.table.place(column) {
            Some(_) => self.cell(phase, column).map(|cell| cell.text.clone()),
            None => self.sections.of[phase].field(column).map(|field| field.value.clone()),
        }
    }

    /// The checkboxes of a phase, in order.
    pub(crate) fn checkboxes(&self, phase: usize) -> impl ExactSizeIterator<Item = &Checkbox<'t>> {
        self.checkboxes[phase].iter().map(|at| &self.blocks.checkboxes[*at as usize])
    }
}

/// The ids of the rows, with the names that are written beside them. Rows without an id of their
/// own are errors, and left out.
fn ids(
    source: &Source<'_>,
    table: &mut Table,
    errors: &mut Vec<PlanError>,
) -> (Vec<PhaseId>, HashMap<String, usize>, Vec<String>) {
    let rows = std::mem::take(&mut table.rows);
    let mut ids: Vec<PhaseId> = Vec::with_capacity(rows.len());
    let mut known: HashMap<String, usize> = HashMap::with_capacity(rows.len());
    let mut names = Vec::with_capacity(rows.len());
    for row in rows {
        let cell = table.cell(&row, Column::Phase);
        let range = cell.map_or_else(|| source.range(row.line), |cell| cell.text.clone());
        let text = cell.map_or("", |cell| &source.text()[cell.text.clone()]);
        let Some((id, name)) = id_of(text, table.is_loose, ids.len()) else {
            let kind = PlanErrorKind::BadId { given: shown_text(text) };
            errors.push(in_row(source, row.line, range.start, kind));
            continue;
        };
        if let Some(first) = known.get(id.key().as_str()).copied() {
            let line = table.rows[first].line + 1;
            let kind = PlanErrorKind::DuplicateId { id: id.shown().into(), first: line };
            let mut error = in_row(source, row.line, range.start, kind);
            error.also.push((line, format!("phase {}", ids[first])));
            errors.push(error);
            continue;
        }
        known.insert(id.key().as_str().to_owned(), ids.len());
        ids.push(id);
        names.push(name);
        table.rows.push(row);
    }
    (ids, known, names)
}

/// The id in a cell, and a name beside it: `2A`, `Phase 2A (optional)`, `**Phase 1: Setup**`. In a
/// table with other names a cell may be a name alone: its number is its place.
fn id_of(cell: &str, is_loose: bool, before: usize) -> Option<(PhaseId, String)> {
    let text = plain(cell);
    let (outside, inside) = without_remarks(&text);
    let written = if outside.is_empty() { inside } else { outside };
    let short = |id: &PhaseId| {
        let key = id.key();
        !is_loose || key.as_str().len() <= 2 || key.as_str().bytes().any(|byte| byte.is_ascii_digit())
    };
    if let Some(id) = written.parse().ok().filter(short) {
        return Some((id, String::new()));
    }
    if let Some(label) = label::heading(&text)
        && let Ok(id) = label.id.parse()
    {
        return Some((id, label.name));
    }
    let number = is_loose && !written.is_empty();
    number.then(|| Some(((before + 1).to_string().parse().ok()?, text.clone())))?
}
