//! The JSON parser.

use super::{JsonError, JsonErrorKind, Member, Node, Value};

/// How deeply objects and arrays may be nested.
const DEPTH_MAX: usize = 100;

/// The byte order mark that some editors write. It is skipped, and stays in the file.
pub const BOM: char = '\u{feff}';

/// Parses a text. `None` if it contains only white space.
pub fn parse(text: &str) -> Result<Option<Node>, JsonError> {
    let start = if text.starts_with(BOM) { BOM.len_utf8() } else { 0 };
    let mut reader = Reader { text, bytes: text.as_bytes(), at: start };
    reader.skip();
    if reader.at == text.len() {
        return Ok(None);
    }
    let node = reader.value(0)?;
    reader.skip();
    if reader.at < text.len() {
        return Err(reader.unexpected("the end of the file"));
    }
    Ok(Some(node))
}

/// The end of the comment that begins here; of a line comment, before the line end. `None` if there
/// is no comment, or if it is never closed.
pub(super) fn comment_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at + 2..).filter(|_| bytes[at] == b'/')?;
    match bytes[at + 1] {
        b'/' => {
            let line = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let line = line - usize::from(rest[..line].ends_with(b"\r"));
            Some(at + 2 + line)
        }
        b'*' => rest.windows(2).position(|pair| pair == b"*/").map(|close| at + 2 + close + 2),
        _ => None,
    }
}

struct Reader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Skips white space and comments. A comment that is never closed is left for the next token.
    fn skip(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(b'/') => match comment_end(self.bytes, self.at) {
                    Some(end) => self.at = end,
                    None => return,
                },
                _ => return,
            }
        }
    }

    fn error(&self, kind: JsonErrorKind) -> JsonError {
        JsonError { at: self.at, kind }
    }

    /// The error for an unexpected token. A comment that is never closed has an error of its own.
    fn unexpected(&self, expected: &'static str) -> JsonError {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        self.error(match rest {
            [] => JsonErrorKind::Ends { expected },
            [b'/', b'*', ..] => JsonErrorKind::OpenComment,
            _ => JsonErrorKind::Expected { expected },
        })
    }

    fn value(&mut self, depth: usize) -> Result<Node, JsonError> {
        let start = self.at;
        let value = match self.peek() {
            Some(b'{' | b'[') if depth >= DEPTH_MAX => return Err(self.error(JsonErrorKind::TooDeep)),
            Some(b'{') => Value::Object(self.object(depth)?),
            Some(b'[') => Value::Array(self.array(depth)?),
            Some(b'"') => Value::Text(self.string("a value")?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { start, end: self.at, value })
    }

    fn object(&mut self, depth: usize) -> Result<Vec<Member>, JsonError> {
        let mut members = Vec::new();
        self.at += 1;
        self.skip();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(members);
        }
        loop {
            let start = self.at;
            let key = self.string("a key in double quotes")?;
            self.skip();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("a colon"));
            }
            self.at += 1;
            let colon = self.at;
            self.skip();
            let spaced = self.at > colon;
            let node = self.value(depth + 1)?;
            members.push(Member { key, start, spaced, node });
            if self.is_last(b'}', "a comma or `}`")? {
                return Ok(members);
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Node>, JsonError> {
        let mut elements = Vec::new();
        self.at += 1;
        self.skip();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(elements);
        }
        loop {
            elements.push(self.value(depth + 1)?);
            if self.is_last(b']', "a comma or `]`")? {
                return Ok(elements);
            }
        }
    }

    /// Skips the comma after a part, or the closing bracket. Returns whether the part was the last.
    fn is_last(&mut self, close: u8, expected: &'static str) -> Result<bool, JsonError> {
        self.skip();
        match self.peek() {
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(true)
            }
            Some(b',') => {
                self.at += 1;
                self.skip();
                let is_trailing = self.peek() == Some(close);
                self.at += usize::from(is_trailing);
                Ok(is_trailing)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    fn string(&mut self, expected: &'static str) -> Result<String, JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected(expected));
        }
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.error(JsonErrorKind::Ends { expected: "the end of a string" })),
                Some(b'"') => break self.at += 1,
                Some(b'\\') => self.at += 2,
                Some(0..=0x1f) => return Err(self.error(JsonErrorKind::Control)),
                Some(_) => self.at += 1,
            }
        }
        // serde_json decodes the escapes.
        let quoted = self.text.get(start..self.at).unwrap_or_default();
        serde_json::from_str(quoted).map_err(|_| JsonError { at: start, kind: JsonErrorKind::Escape })
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        match serde_json::from_str::<&serde_json::value::RawValue>(&self.text[start..self.at]) {
            Ok(_) => Ok(Value::Scalar),
            Err(_) => Err(JsonError { at: start, kind: JsonErrorKind::Expected { expected: "a number" } }),
        }
    }

    fn word(&mut self) -> Result<Value, JsonError> {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        let word = ["true", "false", "null"].into_iter().find(|word| rest.starts_with(word.as_bytes()));
        let Some(word) = word else { return Err(self.unexpected("a value")) };
        self.at += word.len();
        match self.peek() {
            Some(b) if b.is_ascii_alphanumeric() || b == b'_' => Err(self.unexpected("a value")),
            _ => Ok(Value::Scalar),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::place;
    use proptest::prelude::*;

    #[test]
    fn errors_are_named_and_have_a_place() {
        let table: &[(&str, JsonErrorKind, (usize, usize))] = &[
            ("{\n  /* note\n}", JsonErrorKind::OpenComment, (2, 3)),
            ("# note\n{}", JsonErrorKind::Expected { expected: "a value" }, (1, 1)),
            ("{\"a\": 1,,\n}", JsonErrorKind::Expected { expected: "a key in double quotes" }, (1, 9)),
            ("[,]", JsonErrorKind::Expected { expected: "a value" }, (1, 2)),
            ("{} /", JsonErrorKind::Expected { expected: "the end of the file" }, (1, 4)),
            ("{'a': 1}", JsonErrorKind::Expected { expected: "a key in double quotes" }, (1, 2)),
            ("{a: 1}", JsonErrorKind::Expected { expected: "a key in double quotes" }, (1, 2)),
            ("{\"é\" 1}", JsonErrorKind::Expected { expected: "a colon" }, (1, 6)),
            ("{\"a\": 1", JsonErrorKind::Ends { expected: "a comma or `}`" }, (1, 8)),
            ("{\"a", JsonErrorKind::Ends { expected: "the end of a string" }, (1, 4)),
            ("{\"a\\", JsonErrorKind::Ends { expected: "the end of a string" }, (1, 5)),
            ("{} {}", JsonErrorKind::Expected { expected: "the end of the file" }, (1, 4)),
            ("[01]", JsonErrorKind::Expected { expected: "a number" }, (1, 2)),
            ("[truex]", JsonErrorKind::Expected { expected: "a value" }, (1, 6)),
            ("[\"\\x\"]", JsonErrorKind::Escape, (1, 2)),
            ("[\"a\tb\"]", JsonErrorKind::Control, (1, 4)),
        ];
        for (text, kind, at) in table {
            let error = parse(text).unwrap_err();
            assert_eq!((&error.kind, place(text, error.at)), (kind, *at), "{text}");
        }
        assert_eq!(parse(&"[".repeat(100_000)).unwrap_err().kind, JsonErrorKind::TooDeep);
        assert_eq!(parse(" \r\n").unwrap(), None);
        assert!(parse("\u{feff}{}").unwrap().is_some());
    }

    #[test]
    fn comments_and_trailing_commas_are_skipped() {
        for text in [
            "// a\n{\n  // b\n  \"a\" /* c */ : // d\n  [1, /* e */ 2, // f\n  ], /* , */\n} // end",
            "/**/{}/***/",
            "[1,]",
            "{\"a\": 1,\r\n}\r\n// x",
            "{\"a\": \"// no comment\"}",
        ] {
            assert!(matches!(parse(text), Ok(Some(_))), "{text}");
        }
        assert_eq!(parse("// nothing\n/* at all */").unwrap(), None);
    }

    proptest! {
        /// Another reader accepts the same texts, except for comments and trailing commas.
        #[test]
        fn it_accepts_what_json_is(text in r#"([\[\]{},:" \n/a1\-.eE\\]|true|null|"a"|\[\]|\{\}|"a": ?1){0,12}"#) {
            let other = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            let ours = matches!(parse(&text), Ok(Some(_)));
            prop_assert!(ours || !other, "{:?}", text);
            let compact: String = text.split_whitespace().collect();
            let is_strict = !text.contains('/') && !compact.contains(",}") && !compact.contains(",]");
            prop_assert!(ours == other || !is_strict, "{:?}", text);
        }
    }
}
