//! The status of a phase in the plan, and how status cells are read.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The status of a phase, as a cell of the plan says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing was done yet.
    NotStarted,
    /// It is being worked on.
    InProgress,
    /// Done.
    Complete,
    /// Waits for something that failed, or for a person.
    Blocked,
    /// Left out.
    Skipped,
    /// Tried and failed.
    Failed,
    /// Empty, or not understood.
    #[default]
    Unknown,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Status::NotStarted => "not started",
            Status::InProgress => "in progress",
            Status::Complete => "complete",
            Status::Blocked => "blocked",
            Status::Skipped => "skipped",
            Status::Failed => "failed",
            Status::Unknown => "unknown",
        })
    }
}

/// The emoji, without the variation selector.
const PICTURES: &[(char, Status)] = &[
    ('⬜', Status::NotStarted),
    ('🔲', Status::NotStarted),
    ('☐', Status::NotStarted),
    ('◻', Status::NotStarted),
    ('⚪', Status::NotStarted),
    ('🔄', Status::InProgress),
    ('⏳', Status::InProgress),
    ('🚧', Status::InProgress),
    ('🟡', Status::InProgress),
    ('✅', Status::Complete),
    ('☑', Status::Complete),
    ('✔', Status::Complete),
    ('✓', Status::Complete),
    ('🟢', Status::Complete),
    ('⏸', Status::Blocked),
    ('🚫', Status::Blocked),
    ('⛔', Status::Blocked),
    ('⏭', Status::Skipped),
    ('⏩', Status::Skipped),
    ('❌', Status::Failed),
    ('✗', Status::Failed),
    ('🔴', Status::Failed),
];

/// The status that an emoji means.
pub(crate) fn picture(c: char) -> Option<Status> {
    PICTURES.iter().find(|(picture, _)| *picture == c).map(|(_, status)| *status)
}

/// The words; longer ones come before shorter ones that they begin with.
const WORDS: &[(&str, Status)] = &[
    ("not started", Status::NotStarted),
    ("not complete", Status::NotStarted),
    ("not done", Status::NotStarted),
    ("not needed", Status::Skipped),
    ("no", Status::NotStarted),
    ("todo", Status::NotStarted),
    ("to do", Status::NotStarted),
    ("to-do", Status::NotStarted),
    ("pending", Status::NotStarted),
    ("planned", Status::NotStarted),
    ("open", Status::NotStarted),
    ("incomplete", Status::NotStarted),
    ("in progress", Status::InProgress),
    ("in-progress", Status::InProgress),
    ("started", Status::InProgress),
    ("running", Status::InProgress),
    ("ongoing", Status::InProgress),
    ("wip", Status::InProgress),
    ("completed", Status::Complete),
    ("complete", Status::Complete),
    ("done", Status::Complete),
    ("finished", Status::Complete),
    ("yes", Status::Complete),
    ("blocked", Status::Blocked),
    ("on hold", Status::Blocked),
    ("paused", Status::Blocked),
    ("skipped", Status::Skipped),
    ("skip", Status::Skipped),
    ("failed", Status::Failed),
];

/// The variation selector, which asks for a coloured emoji.
pub(crate) const COLOURED: char = '\u{fe0f}';

/// The parts of a status cell, each with its byte range in the cell's text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StatusCell {
    /// An emoji.
    pub(crate) picture: Option<(Range<usize>, Status)>,
    /// A word.
    pub(crate) word: Option<(Range<usize>, Status)>,
    /// The brackets of a checkbox.
    pub(crate) brackets: Option<(Range<usize>, Status)>,
    /// Whether there are several emoji, as in `⬜/⏭️`.
    pub(crate) several: bool,
}

impl StatusCell {
    /// The status. A word counts before an emoji.
    pub(crate) fn status(&self) -> Status {
        let first = self.word.as_ref().or(self.picture.as_ref()).or(self.brackets.as_ref());
        first.map_or(Status::Unknown, |(_, status)| *status)
    }
}

/// Reads the text of a cell. Only what it begins with counts: `almost done` is not done.
pub(crate) fn read_cell(cell: &str) -> StatusCell {
    let mut found = StatusCell::default();
    let mut at = 0;
    while let Some(c) = cell[at..].chars().next() {
        let rest = &cell[at..];
        if matches!(c, ' ' | '\t' | '*' | '_' | '`' | '/' | COLOURED) {
            at += c.len_utf8();
        } else if let Some(&(_, status)) = PICTURES.iter().find(|(picture, _)| *picture == c) {
            let coloured = if rest[c.len_utf8()..].starts_with(COLOURED) { COLOURED.len_utf8() } else { 0 };
            let end = at + c.len_utf8() + coloured;
            found.several |= found.picture.is_some();
            found.picture.get_or_insert((at..end, status));
            at = end;
        } else if let Some((length, status)) = brackets(rest).filter(|_| found.brackets.is_none()) {
            found.brackets = Some((at..at + length, status));
            at += length;
        } else {
            let word = WORDS.iter().find(|(word, _)| begins_with(rest, word));
            found.word = word.map(|(word, status)| (at..at + word.len(), *status));
            break;
        }
    }
    found
}

fn brackets(text: &str) -> Option<(usize, Status)> {
    match text.as_bytes() {
        [b'[', b']', ..] => Some((2, Status::NotStarted)),
        [b'[', b' ', b']', ..] => Some((3, Status::NotStarted)),
        [b'[', b'x' | b'X', b']', ..] => Some((3, Status::Complete)),
        _ => None,
    }
}

fn begins_with(text: &str, word: &str) -> bool {
    text.split_at_checked(word.len()).is_some_and(|(start, rest)| {
        start.eq_ignore_ascii_case(word) && !rest.starts_with(|c: char| c.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cells_say() {
        for (cell, want) in [
            ("⬜", Status::NotStarted),
            ("⬜ Not Started", Status::NotStarted),
            ("⬜/⏭️", Status::NotStarted),
            ("🔄", Status::InProgress),
            ("⏳ Pending", Status::NotStarted),
            ("✅ 2026-01-05", Status::Complete),
            ("⏸️", Status::Blocked),
            ("⏸", Status::Blocked),
            ("⏭️ skipped", Status::Skipped),
            ("❌", Status::Failed),
            ("**Complete**", Status::Complete),
            ("COMPLETED", Status::Complete),
            ("DONE", Status::Complete),
            ("TODO", Status::NotStarted),
            ("In Progress (60%)", Status::InProgress),
            ("Not done", Status::NotStarted),
            ("No", Status::NotStarted),
            ("Noted", Status::Unknown),
            ("almost done", Status::Unknown),
            ("[ ]", Status::NotStarted),
            ("`[x]`", Status::Complete),
            ("[]", Status::NotStarted),
            ("", Status::Unknown),
            ("-", Status::Unknown),
            ("é", Status::Unknown),
        ] {
            assert_eq!(read_cell(cell).status(), want, "{cell}");
        }
        assert!(read_cell("⬜/⏭️").several);
        assert_eq!(read_cell("**⏸️ Blocked** x").picture.unwrap().0, 2..8);
    }
}
