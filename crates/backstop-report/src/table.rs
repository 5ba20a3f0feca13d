//! The one renderer of tables.

use crate::width::{pad, width};

/// Spaces between two columns.
const GAP_COLUMNS: usize = 2;

/// Aligned columns, two spaces apart. The last column is not padded.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell));
        cells.chain(header.get(column).map(|name| width(name))).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(widest).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut out = String::new();
        for (column, cell) in cells.enumerate() {
            let last = column + 1 == widths.len();
            out.push_str(&if last { cell.to_owned() } else { pad(cell, widths[column] + GAP_COLUMNS) });
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
        out
    };
    let mut out = line(&mut header.iter().copied());
    for row in rows {
        out.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_do_not_shift_the_columns_after_them() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["npm test", "1", "a"]), row(["日本 🚀", "22", "b"]), row(["cafe\u{301}", "3", "c"])];
        let text = table(&["OPERATION", "N", "LAST"], &rows);
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            ["OPERATION  N   LAST", "npm test   1   a", "日本 🚀    22  b", "cafe\u{301}       3   c"]
        );
        let last_column = |line: &str| width(&line[..line.rfind(' ').unwrap()]);
        assert!(text.lines().all(|line| last_column(line) == 14), "{text}");
    }
}
