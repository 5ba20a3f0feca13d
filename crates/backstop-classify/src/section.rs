//! The part of a long log that belongs to the command that failed: CI services write where a step
//! begins and how it ends, and set-up, banners and what passed lie outside.

use crate::matcher::Match;

/// How many marks are kept.
const MARKS_MAX: usize = 256;
/// How many lines a section has at least to be one.
const LINES_MIN: u64 = 4;

/// A line that begins or ends a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    stream: u8,
    line: u64,
    failed: bool,
}

/// All marks of a log, the last ones of very many.
#[derive(Debug, Default)]
pub(crate) struct Marks(Vec<Mark>);

/// The lines of the section that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    stream: u8,
    first: u64,
    last: u64,
}

impl Marks {
    /// Notes a mark, if the rule is one of those that recognise them.
    pub(crate) fn note(&mut self, rule: &str, found: &Match) {
        let failed = match rule {
            "section.start" => false,
            "section.failed" => true,
            _ => return,
        };
        if self.0.len() == MARKS_MAX {
            self.0.remove(0);
        }
        self.0.push(Mark { stream: found.stream, line: found.line, failed });
    }

    /// The last section that failed.
    pub(crate) fn failing(&self) -> Option<Section> {
        let mut marks = self.0.clone();
        marks.sort_by_key(|mark| (mark.stream, mark.line));
        let at = marks.iter().rposition(|mark| mark.failed)?;
        let end = marks[at];
        let begins = |mark: &&Mark| mark.stream == end.stream && mark.line + LINES_MIN <= end.line;
        // Several failed marks may follow one another; a section begins after one that did not
        // fail, or after a failed one that lies further up.
        let start = marks[..at].iter().rev().find(begins).map_or(0, |mark| mark.line);
        Some(Section { stream: end.stream, first: start, last: end.line })
    }
}

impl Section {
    /// Whether a match lies in it.
    pub(crate) fn has(&self, found: &Match) -> bool {
        found.stream == self.stream && (self.first..=self.last).contains(&found.line)
    }

    /// Whether a match lies before it.
    pub(crate) fn is_after(&self, found: &Match) -> bool {
        found.stream == self.stream && found.line < self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: u64) -> Match {
        Match { line, stream: 0, text: String::new(), cause: None, status: None }
    }

    #[test]
    fn the_last_section_that_failed_is_found() {
        let mut marks = Marks::default();
        assert_eq!(marks.failing(), None);
        for (line, rule) in [
            (10, "section.start"),
            (40, "section.failed"),
            (50, "section.start"),
            (90, "section.failed"),
            (91, "section.failed"),
            (120, "section.start"),
            (7, "net.reset"),
        ] {
            marks.note(rule, &found(line));
        }
        let section = marks.failing().unwrap();
        assert!(section.has(&found(60)) && section.has(&found(91)));
        assert!(!section.has(&found(45)) && !section.has(&found(121)));
        assert!(section.is_after(&found(20)) && !section.is_after(&found(121)));
    }
}
