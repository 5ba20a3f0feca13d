//! The overview table: which of a plan's tables it is, its columns and its rows.
//!
//! It must not know what a cell means, except for the header's.

use super::PHASES_MAX;
use super::block::{Blocks, Kind};
use super::cells::{self, Cell};
use super::error::{PlanError, PlanErrorKind};
use super::inline::plain;
use super::source::Source;
use super::words;
use backstop_core::SafeText;

/// The most columns of a table that is considered.
const COLUMNS_MAX: usize = 64;
/// How much of a row an error shows.
const ROW_CHARS_MAX: usize = 400;

/// A column of the overview table that Backstop reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Phase,
    Name,
    DependsOn,
    ParallelWith,
    Estimate,
    Status,
    /// Which rows run side by side, one number after the other.
    Wave,
}

/// The names of each column. Where a header has several names of one column, the first in this list
/// counts.
const NAMES: &[(Column, &[&str])] = &[
    (
        Column::Phase,
        &[
            "phase",
            "#",
            "id",
            "no",
            "no.",
            "nr",
            "nr.",
            "phase id",
            "task id",
            "step id",
            "story id",
            "phase #",
            "task #",
            "step #",
            "step",
            "stage",
            "milestone",
            "task",
            "item",
            "schritt",
            "aufgabe",
            "étape",
            "tâche",
            "paso",
            "tarea",
            "fase",
            "passo",
            "tarefa",
            "etapa",
            "этап",
            "задача",
            "フェーズ",
            "段階",
            "ステップ",
            "番号",
            "阶段",
            "步骤",
            "编号",
            "序号",
            "단계",
            "번호",
        ],
    ),
    (
        Column::Name,
        &[
            "name",
            "title",
            "task",
            "step",
            "description",
            "what",
            "item",
            "goal",
            "deliverable",
            "aufgabe",
            "beschreibung",
            "tâche",
            "tarea",
            "tarefa",
            "задача",
            "タスク",
            "作業",
            "内容",
            "任务",
            "工作",
            "작업",
        ],
    ),
    (Column::DependsOn, words::DEPENDS),
    (
        Column::ParallelWith,
        &[
            "parallel with",
            "can run with",
            "parallel",
            "parallel?",
            "can run in parallel",
            "can run in parallel?",
            "parallelizable",
            "concurrent with",
        ],
    ),
    (Column::Estimate, &["estimate", "effort", "points", "duration", "time", "est.", "size"]),
    (
        Column::Status,
        &[
            "status",
            "done",
            "state",
            "done?",
            "complete",
            "complete?",
            "progress",
            "stand",
            "erledigt",
            "statut",
            "état",
            "estado",
            "stato",
            "статус",
            "状態",
            "状态",
            "상태",
        ],
    ),
    (Column::Wave, &["wave", "parallel group", "batch", "welle"]),
];

/// The names of the first column in Backstop's own form.
const OWN: &[&str] =
    &["phase", "#", "id", "phase id", "task id", "step id", "story id", "phase #", "task #", "step #"];

/// The column that a name is for.
pub(crate) fn column(name: &str) -> Option<Column> {
    NAMES.iter().find(|(_, names)| names.contains(&name)).map(|(column, _)| *column)
}

/// A header's text for comparison: without markup, in lower case, with single spaces.
pub(crate) fn header_name(text: &str) -> String {
    let words = plain(text).to_lowercase().replace(['_', '-'], " ");
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A row.
pub(crate) struct Row {
    /// Its line, counted from 0.
    pub(crate) line: usize,
    /// Its cells: not more than there are columns.
    pub(crate) cells: Vec<Cell>,
}

/// The overview table.
pub(crate) struct Table {
    /// The header.
    pub(crate) header: Row,
    /// The position of each column, by its place in `NAMES`.
    places: [Option<usize>; NAMES.len()],
    /// Whether the first column has another name than in Backstop's own form: its cells may be
    /// names.
    pub(crate) is_loose: bool,
    /// What is wrong with its rows.
    pub(crate) errors: Vec<PlanError>,
    /// The rows.
    pub(crate) rows: Vec<Row>,
    /// Lines that have a row without any text.
    pub(crate) empty: Vec<usize>,
    /// A line after the table that looks like a row that was separated from it.
    pub(crate) cut_off: Option<usize>,
}

impl Table {
    /// Where a column is.
    pub(crate) fn place(&self, column: Column) -> Option<usize> {
        self.places[column as usize]
    }

    /// A row's cell of a column, if the row is long enough.
    pub(crate) fn cell<'r>(&self, row: &'r Row, column: Column) -> Option<&'r Cell> {
        row.cells.get(self.place(column)?)
    }

    /// The lines that the table is on, from the header to the last row.
    pub(crate) fn lines(&self) -> std::ops::RangeInclusive<usize> {
        let last = self.rows.last().map_or(self.header.line + 1, |row| row.line);
        self.header.line..=last.max(self.empty.last().copied().unwrap_or_default())
    }
}

/// The header's columns, if this is the overview table.
fn places(names: &[String]) -> [Option<usize>; NAMES.len()] {
    let mut places: [Option<usize>; NAMES.len()] = [None; NAMES.len()];
    for (at, (_, wanted)) in NAMES.iter().enumerate() {
        let is_free = |place: &usize| !places[..at].contains(&Some(*place));
        let free = |name: &&str| names.iter().position(|known| known == name).filter(is_free);
        places[at] = wanted.iter().find_map(free);
    }
    // `| # | Phase | Status |`: with a number and no name, the phase is the name.
    let find = |wanted: &[&str]| wanted.iter().find_map(|name| names.iter().position(|n| n == name));
    let number = find(&["#", "id", "no", "no.", "nr", "nr."]);
    if number.is_some() && find(&["phase"]).is_some() && places[Column::Name as usize].is_none() {
        places[Column::Name as usize] = find(&["phase"]);
        places[Column::Phase as usize] = number;
    }
    places
}

/// Finds the overview table and its rows.
pub(crate) fn find(source: &Source<'_>, blocks: &Blocks<'_>) -> Result<Table, PlanError> {
    let text = |line: usize| blocks.kinds.get(line) == Some(&Kind::Text);
    let mut without_phase = None;
    let mut also = Vec::new();
    for line in 0..source.count() {
        if !text(line)
            || !source.line(line).contains('|')
            || source.line(line).starts_with(['\t', ' ']) && deep(source.line(line))
        {
            continue;
        }
        let delimited = text(line + 1) && cells::is_delimiter(source.line(line + 1));
        let starts_block = line == 0 || !text(line - 1);
        if !delimited && !starts_block {
            continue;
        }
        let header = Row { line, cells: cells::split(source.line(line), source.start(line)) };
        if header.cells.len() > COLUMNS_MAX {
            continue;
        }
        let names: Vec<String> =
            header.cells.iter().map(|cell| header_name(&source.text()[cell.text.clone()])).collect();
        let places = places(&names);
        let known = places.iter().flatten().count();
        match (places[Column::Phase as usize], delimited) {
            (Some(first), true) if known >= 2 => {
                let is_loose = !OWN.contains(&names[first].as_str());
                return rows(source, blocks, header, places, is_loose);
            }
            (Some(_), false) if known >= 2 && also.is_empty() => {
                also.push((line + 1, "this looks like its header, but no line of dashes follows".to_owned()));
            }
            (None, true) if known >= 2 => without_phase = without_phase.or(Some(header)),
            _ => {}
        }
    }
    match without_phase.filter(|_| also.is_empty()) {
        Some(header) => {
            let kind = PlanErrorKind::MissingColumn { column: "Phase" };
            Err(in_row(source, header.line, source.range(header.line).start, kind))
        }
        None => Err(PlanError { also, ..PlanError::at(1, 1, PlanErrorKind::NoTable) }),
    }
}

/// Whether a line is indented so far that it is code.
fn deep(line: &str) -> bool {
    line.starts_with("    ") || line.trim_start_matches(' ').starts_with('\t')
}

fn rows(
    source: &Source<'_>,
    blocks: &Blocks<'_>,
    header: Row,
    places: [Option<usize>; NAMES.len()],
    is_loose: bool,
) -> Result<Table, PlanError> {
    let columns = header.cells.len();
    let first = header.line + 2;
    let (rows, empty, errors) = (Vec::new(), Vec::new(), Vec::new());
    let mut table = Table { header, places, is_loose, errors, rows, empty, cut_off: None };
    for line in (first..source.count()).take_while(|line| blocks.kinds[*line] == Kind::Text) {
        let mut cells = cells::split(source.line(line), source.start(line));
        if let Some(extra) = cells.get(columns) {
            let kind = PlanErrorKind::TooManyCells { found: cells.len(), columns };
            table.errors.push(in_row(source, line, extra.text.start, kind));
            cells.truncate(columns);
        }
        if cells.iter().all(|cell| cell.text.is_empty()) {
            table.empty.push(line);
            continue;
        }
        if table.rows.len() == PHASES_MAX {
            return Err(PlanError::at(line + 1, 1, PlanErrorKind::TooManyPhases { limit: PHASES_MAX }));
        }
        table.rows.push(Row { line, cells });
    }
    let gap = |line: &usize| matches!(blocks.kinds[*line], Kind::Blank | Kind::Comment);
    let behind = (table.lines().end() + 1..source.count()).find(|line| !gap(line));
    table.cut_off = behind.filter(|line| {
        let row = source.line(*line).trim_start().starts_with('|') && blocks.kinds[*line] == Kind::Text;
        row && !(line + 1 < source.count() && cells::is_delimiter(source.line(line + 1)))
    });
    if table.rows.is_empty() {
        let kind = PlanErrorKind::EmptyTable;
        return Err(in_row(source, table.header.line, source.range(table.header.line).start, kind));
    }
    Ok(table)
}

/// An error at a byte of a row.
pub(crate) fn in_row(source: &Source<'_>, line: usize, at: usize, kind: PlanErrorKind) -> PlanError {
    let (line_shown, column) = source.position(at);
    let row = source.line(line).trim();
    let cut = row.char_indices().nth(ROW_CHARS_MAX).map_or(row.len(), |(at, _)| at);
    PlanError { row: Some(SafeText::new(&row[..cut])), ..PlanError::at(line_shown, column, kind) }
}
