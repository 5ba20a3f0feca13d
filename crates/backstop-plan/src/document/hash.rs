//! Hashes of a plan's parts. Status and checkbox marks, which Backstop changes itself, line ends
//! and the layout of the table make no difference.

use super::outline::Outline;
use super::table::{Column, Row};
use backstop_core::Sha256;

/// Hashes a part with its length, so that different lists of parts never hash the same bytes.
fn part(hasher: &mut Sha256, text: &str) {
    hasher.update((text.len() as u64).to_le_bytes());
    hasher.update(text);
}

/// The hash of a text.
pub(crate) fn text(text: &str) -> String {
    let mut hasher = Sha256::new();
    part(&mut hasher, text);
    hasher.hex()
}

fn row(hasher: &mut Sha256, outline: &Outline<'_>, row: &Row) {
    let status = outline.table.place(Column::Status);
    let columns = outline.table.header.cells.len();
    for column in (0..columns).filter(|column| Some(*column) != status) {
        // A cell that is missing is an empty one.
        part(hasher, row.cells.get(column).map_or("", |cell| outline.text(&cell.text)));
    }
}

/// The hash of the overview table.
pub(crate) fn table(outline: &Outline<'_>) -> String {
    let mut hasher = Sha256::new();
    row(&mut hasher, outline, &outline.table.header);
    for each in &outline.table.rows {
        row(&mut hasher, outline, each);
    }
    hasher.hex()
}

/// The hash of a phase that is an entry of a draft. Checkboxes and signs at the ends of lines make
/// no difference.
pub(crate) fn entry(id: &str, name: &str, section: &str) -> String {
    let mut hasher = Sha256::new();
    part(&mut hasher, id);
    part(&mut hasher, &unmarked(name));
    for line in section.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        part(&mut hasher, &unmarked(line));
    }
    hasher.hex()
}

/// A line without its marks.
fn unmarked(line: &str) -> String {
    let line = ["[x]", "[X]", "[✓]", "[✔]", "[√]", "[✅]", "[~]", "[-]", "[ ]", "[]"]
        .iter()
        .fold(line.to_owned(), |line, mark| line.replacen(mark, "", 1));
    let is_sign = |c: char| super::status::picture(c).is_some() || c == super::status::COLOURED;
    line.chars().filter(|c| !is_sign(*c)).collect::<String>().trim().to_owned()
}

/// The hash of a phase: its row and its section.
pub(crate) fn phase(outline: &Outline<'_>, phase: usize) -> String {
    let mut hasher = Sha256::new();
    row(&mut hasher, outline, outline.row(phase));
    let section = &outline.sections.of[phase];
    let status = section.field(Column::Status);
    let table = outline.table.lines();
    let mut checkboxes = outline.checkboxes(phase).peekable();
    // Empty lines count only if something follows.
    let mut empty = 0;
    for line in section.lines.iter().cloned().flatten() {
        let range = outline.source.range(line);
        let text = outline.text(&range);
        let checkbox = checkboxes.next_if(|checkbox| checkbox.line == line);
        if table.contains(&line) {
            continue;
        }
        if text.trim().is_empty() {
            empty += 1;
            continue;
        }
        (0..std::mem::take(&mut empty)).for_each(|_| part(&mut hasher, ""));
        if let Some(checkbox) = checkbox {
            part(&mut hasher, outline.text(&(range.start..checkbox.mark)));
            let sign = outline.text(&(checkbox.mark..range.end)).chars().next().filter(|_| !checkbox.bare);
            let after = checkbox.mark + sign.map_or(0, char::len_utf8);
            part(&mut hasher, outline.text(&(after..range.end)));
        } else if let Some(field) = status.filter(|field| field.line == line) {
            part(&mut hasher, outline.text(&(range.start..field.value.start)).trim_end());
        } else {
            part(&mut hasher, text);
        }
    }
    hasher.hex()
}
