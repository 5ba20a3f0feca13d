//! Splits the row of a table into its cells.
//!
//! A pipe that is escaped or in a code span is no border. It must not know what a cell means.

use super::inline::code_spans;
use std::ops::Range;

/// A cell: the byte range between its borders, and the byte range of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) whole: Range<usize>,
    pub(crate) text: Range<usize>,
}

/// The cells of a line that begins at `start`.
pub(crate) fn split(line: &str, start: usize) -> Vec<Cell> {
    let mut cells = Vec::new();
    let bytes = line.as_bytes();
    let indent = line.len() - line.trim_start().len();
    let mut from = indent + usize::from(bytes.get(indent) == Some(&b'|'));
    let mut bordered = from > indent;
    let mut spans = code_spans(line).into_iter().peekable();
    let mut at = from;
    while at < bytes.len() {
        if let Some(span) = spans.next_if(|span| span.start <= at) {
            at = at.max(span.end);
            continue;
        }
        match bytes[at] {
            b'\\' => at += 2,
            b'|' => {
                cells.push(cell(line, from..at, start));
                bordered = true;
                at += 1;
                from = at;
            }
            _ => at += 1,
        }
    }
    let last = from.min(line.len())..line.len();
    if !(bordered && line[last.clone()].trim().is_empty()) {
        cells.push(cell(line, last, start));
    }
    cells
}

/// The cell in this range of a line that begins at `start`.
pub(super) fn cell(line: &str, whole: Range<usize>, start: usize) -> Cell {
    let text = &line[whole.clone()];
    let trimmed = text.trim();
    // The text range of an empty cell is empty, where text would begin.
    let left = if trimmed.is_empty() { 0 } else { text.len() - text.trim_start().len() };
    let from = start + whole.start + left;
    Cell { whole: start + whole.start..start + whole.end, text: from..from + trimmed.len() }
}

/// Whether a line is the delimiter row below a header: `|---|---|`.
pub(crate) fn is_delimiter(line: &str) -> bool {
    let plain = line.bytes().all(|byte| matches!(byte, b'|' | b'-' | b':' | b' ' | b'\t'));
    plain
        && line.contains('|')
        && split(line, 0).iter().all(|cell| {
            let dashes = &line[cell.text.clone()];
            let dashes = dashes.strip_prefix(':').unwrap_or(dashes);
            let dashes = dashes.strip_suffix(':').unwrap_or(dashes);
            !dashes.is_empty() && dashes.bytes().all(|byte| byte == b'-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<&str> {
        split(line, 0).into_iter().map(|cell| &line[cell.text]).collect()
    }

    #[test]
    fn borders_are_found_and_others_left() {
        for (line, want) in [
            ("| a | b |", vec!["a", "b"]),
            ("a | b", vec!["a", "b"]),
            ("  |a|b", vec!["a", "b"]),
            ("| a | |", vec!["a", ""]),
            ("| a ||", vec!["a", ""]),
            ("|a\\|b|c|", vec!["a\\|b", "c"]),
            ("| `a|b` | c |", vec!["`a|b`", "c"]),
            ("| `a | b |", vec!["`a", "b"]),
            ("| ``a`|b`` | c |", vec!["``a`|b``", "c"]),
            ("| a\\\\| b |", vec!["a\\\\", "b"]),
            ("||", vec![""]),
            ("|", vec![]),
            ("text", vec!["text"]),
            ("| é\\", vec!["é\\"]),
        ] {
            assert_eq!(texts(line), want, "{line}");
        }
        assert_eq!(split("| ab |", 10)[0], Cell { whole: 11..15, text: 12..14 });
    }

    #[test]
    fn lines_of_dashes() {
        for line in ["|---|:-:|", "--- | --:", "|-|"] {
            assert!(is_delimiter(line), "{line}");
        }
        for line in ["---", "| a |", "| | |", "|::|", "|- -|", ""] {
            assert!(!is_delimiter(line), "{line}");
        }
    }
}
