//! The text between two parts of an object or array: white space, comments, at most one comma.

use super::parse::comment_end;

/// A gap, with positions in the whole text.
#[derive(Debug, Clone, Copy)]
pub struct Gap<'t> {
    text: &'t str,
    start: usize,
    end: usize,
    /// The position of the comma, if there is one.
    pub comma: Option<usize>,
    /// The end of the last comment, if there is one.
    last_comment: Option<Comment>,
}

/// The end of a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comment {
    /// The position after its last byte; of a line comment, before the line end.
    pub end: usize,
    /// Whether it ends with its line, so that nothing may follow on that line.
    pub is_line: bool,
}

impl<'t> Gap<'t> {
    pub(super) fn new(text: &'t str, start: usize, end: usize) -> Self {
        let mut gap = Self { text, start, end, comma: None, last_comment: None };
        let mut at = start;
        while at < end {
            match text.as_bytes()[at] {
                b',' => {
                    gap.comma = Some(at);
                    at += 1;
                }
                b'/' => {
                    let comment = gap.comment(at);
                    gap.last_comment = Some(comment);
                    at = comment.end.max(at + 1);
                }
                _ => at += 1,
            }
        }
        gap
    }

    fn comment(&self, at: usize) -> Comment {
        let end = comment_end(self.text.as_bytes(), at).unwrap_or(self.end).min(self.end);
        Comment { end, is_line: self.text[at..].starts_with("//") }
    }

    /// Whether there is a comment in it.
    pub fn has_comment(&self) -> bool {
        self.last_comment.is_some()
    }

    /// The last comment in it.
    pub fn last_comment(&self) -> Option<Comment> {
        self.last_comment
    }

    /// The end of the comments that belong to the part before the gap: those on the same line,
    /// after the comma if there is one. Without any, the position after the comma or the part.
    pub fn end_of_line_comments(&self) -> Comment {
        let mut found = Comment { end: self.comma.map_or(self.start, |comma| comma + 1), is_line: false };
        let mut at = found.end;
        while at < self.end {
            match self.text.as_bytes()[at] {
                b' ' | b'\t' => at += 1,
                b'/' => {
                    found = self.comment(at);
                    at = found.end.max(at + 1);
                }
                _ => break,
            }
        }
        found
    }

    /// The start of the white space at its end.
    pub fn trailing_space(&self) -> usize {
        let kept = self.text[self.start..self.end].trim_end_matches([' ', '\t', '\r', '\n']).len();
        self.start + kept
    }

    /// Whether what follows a position in it, except commas and spaces, is the end of a line.
    pub fn is_line_end(&self) -> bool {
        let rest = self.text[self.start..].trim_start_matches([' ', '\t', ',']);
        rest.starts_with('\n') || rest.starts_with("\r\n")
    }
}
