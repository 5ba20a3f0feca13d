//! JSON with positions, so that a text can be patched without being written anew: settings of
//! agents, plans of other programs.
//!
//! Comments (`//` and `/* */`) and trailing commas are skipped, as agents' own readers do; `gap`
//! finds them again, so that a patch leaves them where they are. The main types are [`Node`] and
//! [`JsonError`]. This module must not change anything.

mod error;
mod gap;
mod parse;

pub use error::JsonErrorKind;
pub use gap::{Comment, Gap};
pub use parse::{BOM, parse};

/// A value, with its position in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The position of its first byte.
    pub start: usize,
    /// The position after its last byte.
    pub end: usize,
    /// The value.
    pub value: Value,
}

/// The type of a value, with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// An object.
    Object(Vec<Member>),
    /// An array.
    Array(Vec<Node>),
    /// A string, unescaped.
    Text(String),
    /// A number, `true`, `false` or `null`.
    Scalar,
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The key, unescaped.
    pub key: String,
    /// The position of the key's first byte.
    pub start: usize,
    /// Whether there is white space between the colon and the value.
    pub spaced: bool,
    /// The value.
    pub node: Node,
}

/// An error, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// The position in bytes.
    pub at: usize,
    /// What is wrong.
    pub kind: JsonErrorKind,
}

impl Node {
    /// The members of an object; an error for any other type.
    pub fn object(&self, what: &str) -> Result<&[Member], JsonError> {
        match &self.value {
            Value::Object(members) => Ok(members),
            _ => Err(self.is_no(what, "an object")),
        }
    }

    /// The elements of an array; an error for any other type.
    pub fn array(&self, what: &str) -> Result<&[Node], JsonError> {
        match &self.value {
            Value::Array(elements) => Ok(elements),
            _ => Err(self.is_no(what, "an array")),
        }
    }

    /// The gaps around its parts: before the first, between two, after the last. An object or array
    /// without parts has one.
    pub fn gaps<'t>(&self, text: &'t str) -> Vec<Gap<'t>> {
        let parts = self.parts();
        let starts = std::iter::once(self.start + 1).chain(parts.iter().map(|(_, end)| *end));
        let ends = parts.iter().map(|(start, _)| *start).chain([self.end.saturating_sub(1)]);
        starts.zip(ends).map(|(start, end)| Gap::new(text, start, end)).collect()
    }

    fn is_no(&self, what: &str, expected: &'static str) -> JsonError {
        JsonError { at: self.start, kind: JsonErrorKind::Shape { what: what.to_owned(), expected } }
    }

    /// The positions of its parts: elements, or keys with their values.
    pub fn parts(&self) -> Vec<(usize, usize)> {
        match &self.value {
            Value::Object(members) => members.iter().map(|m| (m.start, m.node.end)).collect(),
            Value::Array(elements) => elements.iter().map(|e| (e.start, e.end)).collect(),
            Value::Text(_) | Value::Scalar => Vec::new(),
        }
    }
}

/// The member of this name. A duplicate key is an error, because readers disagree which one counts.
pub fn member<'m>(members: &'m [Member], key: &str) -> Result<Option<&'m Member>, JsonError> {
    let mut found = members.iter().filter(|m| m.key == key);
    let first = found.next();
    match found.next() {
        Some(second) => {
            Err(JsonError { at: second.start, kind: JsonErrorKind::Twice { key: second.key.clone() } })
        }
        None => Ok(first),
    }
}

/// The line and column of a position, both from 1. Columns count characters.
pub fn place(text: &str, at: usize) -> (usize, usize) {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let from = before.rfind('\n').map_or(0, |n| n + 1);
    let column = before[from..].trim_start_matches(BOM).chars().count() + 1;
    (before.bytes().filter(|b| *b == b'\n').count() + 1, column)
}
