//! JSON as text with places: what is where, so that a text can be changed without being written anew.
//!
//! Strict JSON and nothing else: comments and trailing commas are errors, because a change next to them could not be
//! promised to keep them. Main types: [`Node`], [`JsonError`]. It must not change anything.

mod parse;

pub(crate) use parse::{BOM, parse};

use super::error::JsonErrorKind;

/// A value, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// Its first byte.
    pub(crate) start: usize,
    /// Behind its last byte.
    pub(crate) end: usize,
    /// What it is.
    pub(crate) value: Value,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// An object.
    Object(Vec<Member>),
    /// An array.
    Array(Vec<Node>),
    /// A string, without its escapes.
    Text(String),
    /// A number, `true`, `false` or `null`.
    Scalar,
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// The key, without its escapes.
    pub(crate) key: String,
    /// The first byte of the key.
    pub(crate) start: usize,
    /// Whether white space stands between the colon and the value.
    pub(crate) spaced: bool,
    /// The value.
    pub(crate) node: Node,
}

/// An error, and the byte offset where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonError {
    /// The byte.
    pub(crate) at: usize,
    /// What is wrong there.
    pub(crate) kind: JsonErrorKind,
}

impl Node {
    /// The members of what must be an object.
    pub(crate) fn object(&self, what: &str) -> Result<&[Member], JsonError> {
        match &self.value {
            Value::Object(members) => Ok(members),
            _ => Err(self.is_no(what, "an object")),
        }
    }

    /// The elements of what must be an array.
    pub(crate) fn array(&self, what: &str) -> Result<&[Node], JsonError> {
        match &self.value {
            Value::Array(elements) => Ok(elements),
            _ => Err(self.is_no(what, "an array")),
        }
    }

    fn is_no(&self, what: &str, expected: &'static str) -> JsonError {
        JsonError { at: self.start, kind: JsonErrorKind::Shape { what: what.to_owned(), expected } }
    }

    /// Where its parts stand: elements, or keys with their values.
    pub(crate) fn parts(&self) -> Vec<(usize, usize)> {
        match &self.value {
            Value::Object(members) => members.iter().map(|m| (m.start, m.node.end)).collect(),
            Value::Array(elements) => elements.iter().map(|e| (e.start, e.end)).collect(),
            Value::Text(_) | Value::Scalar => Vec::new(),
        }
    }
}

/// The member of this name. Two of them are an error: which one counts cannot be decided here.
pub(crate) fn member<'m>(members: &'m [Member], key: &str) -> Result<Option<&'m Member>, JsonError> {
    let mut found = members.iter().filter(|m| m.key == key);
    let first = found.next();
    match found.next() {
        Some(second) => {
            Err(JsonError { at: second.start, kind: JsonErrorKind::Twice { key: second.key.clone() } })
        }
        None => Ok(first),
    }
}

/// Line and column of a byte, both from 1; columns are characters.
pub(crate) fn place(text: &str, at: usize) -> (usize, usize) {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let from = before.rfind('\n').map_or(0, |n| n + 1);
    let column = before[from..].trim_start_matches(BOM).chars().count() + 1;
    (before.bytes().filter(|b| *b == b'\n').count() + 1, column)
}
