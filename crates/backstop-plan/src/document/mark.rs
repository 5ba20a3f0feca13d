//! The marks of a document that say what is done, and how each is written: in the document's own
//! way, without touching another byte.

use super::block::is_tick;
use super::cells::{self, Cell};
use super::spelling::{padded, respelt};
use super::status::{self, Status};
use std::ops::Range;

/// A mark: where it is, and what kind of mark it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The file of the plan, counted from 0.
    pub(crate) file: usize,
    pub(crate) place: Place,
}

/// The kinds of marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Between the brackets of a checkbox: `[ ]`, `[x]`.
    Box { at: usize, bare: bool },
    /// A word of a vocabulary: `"status": "done"`, `Status: done`.
    Word { range: Range<usize>, words: &'static Vocabulary },
    /// `true` or `false`: `"passes": false`.
    Flag { range: Range<usize> },
    /// ✅ at a heading or a line: where it would be written, and what is there already.
    Sign { at: usize, there: Option<Range<usize>> },
    /// The status cell of a table, between its borders. `todo`: whether a cell of its column uses
    /// the words `todo` and `done`.
    Cell { cell: Cell, todo: bool },
    /// The status in the quote block of a section; empty where there is none yet.
    Field { range: Range<usize>, todo: bool },
}

impl Place {
    /// The byte at which it begins.
    pub(crate) fn start(&self) -> usize {
        match self {
            Place::Box { at, .. } | Place::Sign { at, there: None } => *at,
            Place::Cell { cell, .. } => cell.whole.start,
            Place::Word { range, .. }
            | Place::Flag { range }
            | Place::Field { range, .. }
            | Place::Sign { there: Some(range), .. } => range.start,
        }
    }

    /// The same place in a text that is longer before it by this many bytes.
    pub(crate) fn moved(&self, by: isize) -> Place {
        let to = |at: usize| at.saturating_add_signed(by);
        let range_to = |range: &Range<usize>| to(range.start)..to(range.end);
        match self {
            Place::Box { at, bare } => Place::Box { at: to(*at), bare: *bare },
            Place::Word { range, words } => Place::Word { range: range_to(range), words },
            Place::Flag { range } => Place::Flag { range: range_to(range) },
            Place::Sign { at, there } => Place::Sign { at: to(*at), there: there.as_ref().map(range_to) },
            Place::Cell { cell, todo } => {
                let cell = Cell { whole: range_to(&cell.whole), text: range_to(&cell.text) };
                Place::Cell { cell, todo: *todo }
            }
            Place::Field { range, todo } => Place::Field { range: range_to(range), todo: *todo },
        }
    }

    /// Where the mark is after `new` was written into this range.
    pub(crate) fn rewritten(&self, written: &Range<usize>, new: &str) -> Place {
        let start = written.start;
        let range = start..start + new.len();
        match self {
            Place::Box { at, .. } => Place::Box { at: *at, bare: false },
            Place::Word { words, .. } => Place::Word { range, words },
            Place::Flag { .. } => Place::Flag { range },
            Place::Sign { there: None, .. } => {
                Place::Sign { at: range.end, there: Some(start + 1..range.end) }
            }
            Place::Sign { there: Some(_), .. } if new.is_empty() => Place::Sign { at: start, there: None },
            Place::Sign { at, there: Some(_) } => {
                Place::Sign { at: at + new.len() - written.len(), there: Some(range) }
            }
            Place::Cell { todo, .. } => {
                Place::Cell { cell: cells::cell(new, 0..new.len(), start), todo: *todo }
            }
            Place::Field { todo, .. } => {
                let spaces = new.len() - new.trim_start().len();
                Place::Field { range: start + spaces..range.end, todo: *todo }
            }
        }
    }
}

/// The words of a format for what is to be done and what is done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Vocabulary {
    /// Every word that is read.
    pub(crate) read: &'static [(&'static str, Status)],
    /// What is written for a status; others are not written.
    pub(crate) written: &'static [(Status, &'static str)],
}

impl Vocabulary {
    /// What a word means.
    pub(crate) fn status(&self, word: &str) -> Status {
        let plain = word.trim().to_lowercase().replace([' ', '_'], "-");
        let known = self.read.iter().find(|(known, _)| *known == plain);
        known.map_or(Status::Unknown, |(_, status)| *status)
    }
}

/// The replacement that gives a mark another status; nothing where it has it already or the
/// document has no way to say it.
pub(crate) fn written(text: &str, place: &Place, status: Status) -> Option<(Range<usize>, String)> {
    match place {
        Place::Box { at, bare } => {
            let sign = text.get(*at..)?.chars().next().filter(|_| !bare);
            let end = at + sign.map_or(0, char::len_utf8);
            let done = sign.is_some_and(is_tick);
            match status {
                Status::Complete if !done => Some((*at..end, "x".to_owned())),
                Status::NotStarted if done => Some((*at..end, " ".to_owned())),
                _ => None,
            }
        }
        Place::Word { range, words } => {
            let there = text.get(range.clone())?;
            let new = words.written.iter().find(|(known, _)| *known == status)?.1;
            if words.status(there) == status {
                return None;
            }
            Some((range.clone(), alike(there, new)))
        }
        Place::Flag { range } => {
            let new = match status {
                Status::Complete => "true",
                Status::NotStarted => "false",
                _ => return None,
            };
            (text.get(range.clone())? != new).then(|| (range.clone(), new.to_owned()))
        }
        Place::Sign { at, there } => sign(text, *at, there.as_ref(), status),
        Place::Cell { cell: Cell { whole, text: inner }, todo } => {
            let new = respelt(text.get(inner.clone())?, status, *todo)?;
            let inner = inner.start - whole.start..inner.end - whole.start;
            Some((whole.clone(), padded(text.get(whole.clone())?, inner, &new)))
        }
        Place::Field { range, todo } => {
            let new = respelt(text.get(range.clone())?, status, *todo)?;
            Some((range.clone(), if range.is_empty() { format!(" {new}") } else { new }))
        }
    }
}

/// The word in the case of the one that it replaces.
fn alike(there: &str, new: &str) -> String {
    let mut letters = there.chars().filter(|c| c.is_alphabetic());
    let first_is_upper = letters.next().is_some_and(char::is_uppercase);
    if !first_is_upper {
        return new.to_owned();
    }
    let words: Vec<String> = new
        .split('-')
        .map(|word| {
            let mut chars = word.chars();
            chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
        })
        .collect();
    words.join(if there.contains('-') { "-" } else { " " })
}

/// ✅ and ⏭️ are written where nothing is; another sign is replaced by one of its kind.
fn sign(
    text: &str,
    at: usize,
    there: Option<&Range<usize>>,
    status: Status,
) -> Option<(Range<usize>, String)> {
    let Some(range) = there else {
        return match status {
            Status::Complete => Some((at..at, " ✅".to_owned())),
            Status::Skipped => Some((at..at, " ⏭️".to_owned())),
            _ => None,
        };
    };
    let old = text.get(range.clone())?;
    let old_status = status::read_cell(old.trim_matches(['(', ')', '[', ']', ' '])).status();
    if old_status == status || status == Status::Unknown {
        return None;
    }
    let new = match status {
        Status::Complete => "✅",
        Status::Skipped => "⏭️",
        Status::InProgress => "🔄",
        Status::Failed => "❌",
        Status::Blocked => "⏸️",
        Status::NotStarted | Status::Unknown => "⬜",
    };
    // What was appended goes away again.
    let before = text[..range.start].trim_end_matches([' ', '\t']).len();
    let is_last = text[range.end..].split(['\r', '\n']).next().is_none_or(|rest| rest.trim().is_empty());
    let is_first = text[..before].ends_with('#') || text[..before].ends_with('\n') || before == 0;
    let was_done = matches!(old_status, Status::Complete | Status::Skipped);
    if status == Status::NotStarted && is_last && !is_first && was_done {
        return Some((before..range.end, String::new()));
    }
    if was_done && !matches!(status, Status::Complete | Status::Skipped | Status::NotStarted) {
        return None;
    }
    Some((range.clone(), new.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Vocabulary = Vocabulary {
        read: &[
            ("pending", Status::NotStarted),
            ("done", Status::Complete),
            ("in-progress", Status::InProgress),
        ],
        written: &[
            (Status::NotStarted, "pending"),
            (Status::Complete, "done"),
            (Status::InProgress, "in-progress"),
        ],
    };

    fn set(text: &str, place: Place, status: Status) -> String {
        let mut out = text.to_owned();
        if let Some((range, new)) = written(text, &place, status) {
            out.replace_range(range, &new);
        }
        out
    }

    #[test]
    fn each_mark_is_written_in_its_own_way() {
        let boxed = |bare| Place::Box { at: 3, bare };
        assert_eq!(set("- [ ] a", boxed(false), Status::Complete), "- [x] a");
        assert_eq!(set("- [] a", boxed(true), Status::Complete), "- [x] a");
        assert_eq!(set("- [X] a", boxed(false), Status::Complete), "- [X] a");
        assert_eq!(set("- [x] a", boxed(false), Status::NotStarted), "- [ ] a");
        assert_eq!(set("- [~] a", boxed(false), Status::InProgress), "- [~] a");
        let word = |range| Place::Word { range, words: &WORDS };
        assert_eq!(set("pending", word(0..7), Status::Complete), "done");
        assert_eq!(set("Pending", word(0..7), Status::InProgress), "In Progress");
        assert_eq!(set("pending", word(0..7), Status::Failed), "pending");
        assert_eq!(set("false,", Place::Flag { range: 0..5 }, Status::Complete), "true,");
    }

    #[test]
    fn a_sign_comes_and_goes_without_a_trace() {
        for text in ["## One\r\nx", "## One", "## One\n"] {
            let at = 6;
            let marked = set(text, Place::Sign { at, there: None }, Status::Complete);
            assert!(marked.starts_with("## One ✅"), "{marked}");
            let there = Some(7..10);
            assert_eq!(set(&marked, Place::Sign { at: 10, there }, Status::NotStarted), text);
        }
        assert_eq!(
            set("## ✅ One", Place::Sign { at: 0, there: Some(3..6) }, Status::NotStarted),
            "## ⬜ One"
        );
        assert_eq!(set("## ⬜ One", Place::Sign { at: 0, there: Some(3..6) }, Status::Complete), "## ✅ One");
    }
}
