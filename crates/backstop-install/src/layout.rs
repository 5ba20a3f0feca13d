//! The layout of a JSON file (indentation, line ends, spaces), and new parts written in the same
//! layout.
//!
//! The main types are [`Layout`] and [`Piece`], a JSON value to insert.

use super::patch::Patch;
use backstop_core::json::{Gap, Node, Value};

/// A JSON value to insert into a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// An object, with its keys in this order.
    Object(Vec<(&'static str, Piece)>),
    /// An array.
    Array(Vec<Piece>),
    /// A string.
    Text(&'static str),
    /// A number.
    Number(u32),
}

/// The layout of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    newline: &'static str,
    unit: String,
    /// Whether parts are on lines of their own.
    lines: bool,
    /// Whether a space follows a colon, and a comma on the same line.
    spaced: bool,
}

impl Layout {
    /// The layout of this text; a common default where the text does not show one.
    pub(crate) fn of(text: &str, root: Option<&Node>) -> Self {
        let newline = match text.find('\n') {
            Some(at) if text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        };
        let usual = Self { newline, unit: "  ".to_owned(), lines: true, spaced: true };
        let Some(Node { start, value: Value::Object(members), .. }) = root else { return usual };
        let Some(first) = members.first() else { return usual };
        let lead = &text[start + 1..first.start];
        match lead.rsplit_once('\n') {
            Some((_, indent)) => match blank_start(indent) {
                "" => Self { spaced: first.spaced, ..usual },
                unit => Self { unit: unit.to_owned(), spaced: first.spaced, ..usual },
            },
            None => Self { lines: false, spaced: first.spaced, ..usual },
        }
    }

    /// A whole file that contains `piece`.
    pub(crate) fn file(&self, piece: &Piece) -> String {
        let mut out = String::new();
        self.write(&mut out, piece, Some(""));
        out.push_str(self.newline);
        out
    }

    /// Inserts parts after the last one of an object or array. Everything else stays: comments on
    /// the line of the last part stay behind it.
    pub(crate) fn append(
        &self,
        text: &str,
        into: &Node,
        parts: &[(Option<&'static str>, Piece)],
    ) -> Vec<Patch> {
        let there = into.parts();
        let Some((last, end)) = there.last().copied() else { return vec![self.fill(text, into, parts)] };
        let before = there.len().checked_sub(2).map_or(into.start, |n| there[n].1);
        // The text between the last two parts: a bracket or a comma, and white space.
        let lead = &text[before..last];
        let gaps = into.gaps(text);
        let behind = gaps.last().filter(|gap| gap.has_comment());
        let line = behind.map(Gap::end_of_line_comments);
        let mut put = String::new();
        for (n, (key, piece)) in parts.iter().enumerate() {
            // Where a comment follows, the comma before the first part is a patch of its own.
            put.push_str(if n > 0 || behind.is_none() { "," } else { "" });
            match lead.rsplit_once('\n') {
                Some((_, indent)) => {
                    // A comma at the start of a line is a part of the style, not of the
                    // indentation.
                    let indent = blank_start(indent);
                    put.push_str(self.newline);
                    put.push_str(indent);
                    self.part(&mut put, *key, piece, Some(indent));
                }
                None => {
                    let is_after_line = n == 0 && line.is_some_and(|line| line.is_line);
                    let space = if self.spaced { " " } else { "" };
                    put.push_str(if is_after_line { self.newline } else { space });
                    self.part(&mut put, *key, piece, None);
                }
            }
        }
        let (Some(behind), Some(line)) = (behind, line) else { return vec![Patch { at: end, take: 0, put }] };
        if behind.comma.is_some() {
            // The file ends its lists with a comma, and so does ours.
            put.push(',');
            return vec![Patch { at: line.end, take: 0, put }];
        }
        let comma = Patch { at: end, take: 0, put: ",".to_owned() };
        vec![comma, Patch { at: line.end, take: 0, put }]
    }

    /// Inserts parts into an empty object or array, behind its comments.
    fn fill(&self, text: &str, into: &Node, parts: &[(Option<&'static str>, Piece)]) -> Patch {
        let line = &text[text[..into.start].rfind('\n').map_or(0, |n| n + 1)..into.start];
        let base = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
        let indent = format!("{base}{}", self.unit);
        let comment = into.gaps(text).first().and_then(Gap::last_comment);
        let lines = self.lines || comment.is_some_and(|comment| comment.is_line);
        let mut put = String::new();
        for (n, (key, piece)) in parts.iter().enumerate() {
            put.push_str(if n > 0 { "," } else { "" });
            if lines {
                put.push_str(self.newline);
                put.push_str(&indent);
                self.part(&mut put, *key, piece, Some(&indent));
            } else {
                put.push_str(if n > 0 && self.spaced { " " } else { "" });
                self.part(&mut put, *key, piece, None);
            }
        }
        if lines {
            put.push_str(self.newline);
            put.push_str(base);
        }
        let at = comment.map_or(into.start + 1, |comment| comment.end);
        Patch { at, take: into.end - 1 - at, put }
    }

    fn part(&self, out: &mut String, key: Option<&str>, piece: &Piece, indent: Option<&str>) {
        if let Some(key) = key {
            quote(out, key);
            out.push_str(if self.spaced { ": " } else { ":" });
        }
        self.write(out, piece, indent);
    }

    /// Writes a piece with this indentation; on one line if there is none.
    fn write(&self, out: &mut String, piece: &Piece, indent: Option<&str>) {
        let (open, close, parts): (_, _, Vec<(Option<&str>, &Piece)>) = match piece {
            Piece::Text(text) => return quote(out, text),
            Piece::Number(number) => return out.push_str(&number.to_string()),
            Piece::Object(members) => ('{', '}', members.iter().map(|(k, p)| (Some(*k), p)).collect()),
            Piece::Array(elements) => ('[', ']', elements.iter().map(|p| (None, p)).collect()),
        };
        let deeper = indent.map(|indent| format!("{indent}{}", self.unit));
        out.push(open);
        for (n, (key, piece)) in parts.into_iter().enumerate() {
            out.push_str(if n > 0 { "," } else { "" });
            match &deeper {
                Some(deeper) => {
                    out.push_str(self.newline);
                    out.push_str(deeper);
                }
                None => out.push_str(if n > 0 && self.spaced { " " } else { "" }),
            }
            self.part(out, key, piece, deeper.as_deref());
        }
        if let Some(indent) = indent {
            out.push_str(self.newline);
            out.push_str(indent);
        }
        out.push(close);
    }
}

/// The spaces and tabs that a text starts with.
fn blank_start(text: &str) -> &str {
    &text[..text.len() - text.trim_start_matches([' ', '\t']).len()]
}

fn quote(out: &mut String, text: &str) {
    // A string always serialises.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}
