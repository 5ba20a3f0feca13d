//! JSON-RPC messages as they are on the wire. What a message carries stays the text that arrived:
//! only its envelope is read.
//!
//! It must not know any method.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The longest message, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// How much room for the start of a line is kept for the next one, in bytes.
const PENDING_BYTES_MAX: usize = 64 << 10;
/// How deep objects and lists in a message may be nested.
pub(crate) const DEPTH_MAX: usize = 100;

/// JSON text that is known to be valid.
pub(crate) type Raw = Box<RawValue>;

pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const INTERNAL_ERROR: i64 = -32603;

/// The error of a response.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct RpcError {
    #[serde(default)]
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }
}

/// One message.
#[derive(Debug)]
pub(crate) enum Message {
    /// It wants an answer.
    Request { id: Raw, method: String, params: Option<Raw> },
    /// It wants none.
    Notification { method: String, params: Option<Raw> },
    /// An answer.
    Response { id: Raw, result: Result<Raw, RpcError> },
}

/// Why something is not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadMessage {
    #[error("it is not JSON: {0}")]
    NotJson(String),
    #[error("it is nested deeper than {DEPTH_MAX}")]
    TooDeep,
    #[error("it is not a JSON-RPC message")]
    NotRpc,
    #[error("it is longer than {MESSAGE_BYTES_MAX} bytes")]
    TooLong,
}

#[derive(Deserialize)]
struct Envelope<'m> {
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'m RawValue>,
    #[serde(default, borrow)]
    method: Option<Cow<'m, str>>,
    #[serde(default, borrow)]
    params: Option<&'m RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'m RawValue>,
    #[serde(default)]
    error: Option<RpcError>,
}

/// A member that is there, even if it is null.
fn present<'m, D: serde::Deserializer<'m>>(deserializer: D) -> Result<Option<&'m RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Message {
    /// Reads one message.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, BadMessage> {
        if bytes.len() > MESSAGE_BYTES_MAX {
            return Err(BadMessage::TooLong);
        }
        if is_too_deep(bytes) {
            return Err(BadMessage::TooDeep);
        }
        // Checked once as a whole, not again for each text in it.
        let text = std::str::from_utf8(bytes).map_err(|error| BadMessage::NotJson(error.to_string()))?;
        let envelope: Envelope<'_> =
            serde_json::from_str(text).map_err(|error| BadMessage::NotJson(error.to_string()))?;
        // An id of null belongs to an answer to a request that nobody could read.
        let id = envelope.id.filter(|id| id.get() != "null").map(ToOwned::to_owned);
        let params = envelope.params.map(ToOwned::to_owned);
        match (envelope.method, id) {
            (Some(method), Some(id)) if envelope.id.is_some_and(is_id) => {
                Ok(Self::Request { id, method: method.into_owned(), params })
            }
            (Some(method), None) if envelope.id.is_none() => {
                Ok(Self::Notification { method: method.into_owned(), params })
            }
            (None, id) => {
                let id = id.unwrap_or_else(|| raw(&Value::Null));
                match (envelope.error, envelope.result) {
                    (Some(error), _) => Ok(Self::Response { id, result: Err(error) }),
                    (None, Some(result)) => Ok(Self::Response { id, result: Ok(result.to_owned()) }),
                    (None, None) => Err(BadMessage::NotRpc),
                }
            }
            _ => Err(BadMessage::NotRpc),
        }
    }
}

/// Whether this may be the id of a request: a number or a text.
fn is_id(raw: &RawValue) -> bool {
    raw.get().starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit())
}

/// Whether brackets are nested too deep, outside of texts.
fn is_too_deep(bytes: &[u8]) -> bool {
    // Most messages have fewer brackets in all, which is counted many bytes at a time.
    if bytes.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() <= DEPTH_MAX {
        return false;
    }
    let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return true;
                }
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// A value as JSON text.
pub(crate) fn raw(value: &Value) -> Raw {
    // A value has only texts as keys, so that it always has a text of its own.
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// JSON text as a value.
pub(crate) fn value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or(Value::Null)
}

/// A message on one line, without its end, made of these parts.
fn line(parts: &[&str]) -> Vec<u8> {
    // One more byte for the end of the line.
    let mut line = Vec::with_capacity(parts.iter().map(|part| part.len()).sum::<usize>() + 1);
    for part in parts {
        line.extend_from_slice(part.as_bytes());
    }
    line
}

/// A text in JSON's quotes.
pub(crate) fn quoted(text: &str) -> String {
    if text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\') {
        ["\"", text, "\""].concat()
    } else {
        Value::from(text).to_string()
    }
}

/// A request on one line, without its end. `params` is JSON text.
pub(crate) fn request(id: &str, method: &str, params: Option<&str>) -> Vec<u8> {
    let (start, method) = ("{\"jsonrpc\":\"2.0\",\"id\":", quoted(method));
    match params {
        Some(params) => line(&[start, id, ",\"method\":", &method, ",\"params\":", &one_line(params), "}"]),
        None => line(&[start, id, ",\"method\":", &method, "}"]),
    }
}

/// A notification on one line, without its end.
pub(crate) fn notification(method: &str, params: Option<&RawValue>) -> Vec<u8> {
    let (start, method) = ("{\"jsonrpc\":\"2.0\",\"method\":", quoted(method));
    match params {
        Some(params) => line(&[start, &method, ",\"params\":", &one_line(params.get()), "}"]),
        None => line(&[start, &method, "}"]),
    }
}

/// An answer on one line, without its end.
pub(crate) fn response(id: &RawValue, result: &Result<Raw, RpcError>) -> Vec<u8> {
    let start = "{\"jsonrpc\":\"2.0\",\"id\":";
    match result {
        Ok(result) => line(&[start, id.get(), ",\"result\":", &one_line(result.get()), "}"]),
        Err(error) => line(&[start, id.get(), ",\"error\":", &error.to_json().to_string(), "}"]),
    }
}

/// JSON text without line ends: those that are there stand between tokens.
fn one_line(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte == b'\n' || byte == b'\r') {
        text.replace(['\n', '\r'], " ").into()
    } else {
        text.into()
    }
}

/// The members of an object, each as its text.
#[derive(Deserialize)]
pub(crate) struct Members<'o>(#[serde(borrow)] pub(crate) BTreeMap<Cow<'o, str>, &'o RawValue>);

/// An object with one more member, which beats one of the same name. Everything else stays the text
/// that it was.
pub(crate) fn with_member(object: &RawValue, key: &str, member: &Value) -> Raw {
    let text = object.get();
    let added = format!("{}:{member}", Value::from(key));
    let known: Option<Members<'_>> = serde_json::from_str(text).ok();
    let replaced = match known {
        Some(Members(members)) if members.contains_key(key) => {
            let kept = members.iter().filter(|(name, _)| name.as_ref() != key);
            let kept: Vec<String> =
                kept.map(|(name, value)| format!("{}:{}", Value::from(name.as_ref()), value.get())).collect();
            format!("{{{}}}", kept.into_iter().chain([added]).collect::<Vec<_>>().join(","))
        }
        Some(Members(members)) => {
            let rest = text.trim_start().strip_prefix('{').unwrap_or("}");
            let comma = if members.is_empty() { "" } else { "," };
            format!("{{{added}{comma}{rest}")
        }
        None => return object.to_owned(),
    };
    RawValue::from_string(replaced).unwrap_or_else(|_| object.to_owned())
}

/// How much of a message that is too long is kept: whose answer it is stands at its beginning.
const HEAD_BYTES_MAX: usize = 256;

/// Cuts a stream into lines. A line that is too long is left out, and reported by its beginning.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pending: Vec<u8>,
    /// The beginning of the line that is left out.
    skipped: Option<Vec<u8>>,
}

/// A line of a stream.
pub(crate) enum Line<'l> {
    Whole(&'l [u8]),
    /// Its beginning.
    TooLong(&'l [u8]),
}

impl Lines {
    /// How much memory it has, in bytes.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.pending.capacity()
    }

    /// Takes bytes, and calls `take` for each line that is complete now.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut take: impl FnMut(Line<'_>)) {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = (&bytes[..at], &bytes[at + 1..]);
            if let Some(head) = self.skipped.take() {
                take(Line::TooLong(&head));
            } else if self.pending.len() + line.len() > MESSAGE_BYTES_MAX {
                take(Line::TooLong(&self.head(line)));
            } else if self.pending.is_empty() {
                take(Line::Whole(line));
            } else {
                self.pending.extend_from_slice(line);
                take(Line::Whole(&self.pending));
            }
            self.pending.clear();
            // One long message must not hold its memory for ever.
            self.pending.shrink_to(PENDING_BYTES_MAX);
            bytes = rest;
        }
        if self.skipped.is_some() {
            return;
        }
        if self.pending.len() + bytes.len() > MESSAGE_BYTES_MAX {
            self.skipped = Some(self.head(bytes));
            self.pending = Vec::new();
        } else {
            self.pending.extend_from_slice(bytes);
        }
    }

    /// The beginning of a line of which these are the newest bytes.
    fn head(&self, newest: &[u8]) -> Vec<u8> {
        self.pending.iter().chain(newest).take(HEAD_BYTES_MAX).copied().collect()
    }
}

/// The id in the beginning of a message, where it stands there.
pub(crate) fn id_of_head(head: &[u8]) -> Option<u64> {
    let (_, behind) = head.utf8_chunks().next()?.valid().split_once("\"id\"")?;
    let value = behind.trim_start().strip_prefix(':')?.trim_start();
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    value[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Message, BadMessage> {
        Message::parse(text.as_bytes())
    }

    #[test]
    fn the_three_kinds_of_messages() {
        let Ok(Message::Request { id, method, params }) = parse(
            r#"{"jsonrpc":"2.0","id":"a\"1","method":"tools/call","params":{"x":1.50,"big":123456789012345678901}}"#,
        ) else {
            panic!("no request")
        };
        assert_eq!((id.get(), method.as_str()), (r#""a\"1""#, "tools/call"));
        // Numbers pass as they were written.
        assert_eq!(params.unwrap().get(), r#"{"x":1.50,"big":123456789012345678901}"#);
        assert!(matches!(parse(r#"{"method":"x"}"#), Ok(Message::Notification { .. })));
        assert!(matches!(parse(r#"{"id":1,"result":null}"#), Ok(Message::Response { result: Ok(_), .. })));
        let Ok(Message::Response { result: Err(error), .. }) =
            parse(r#"{"id":1,"error":{"code":-32602,"message":"m","data":[1]}}"#)
        else {
            panic!("no error")
        };
        assert_eq!((error.code, error.data), (-32602, Some(json!([1]))));
    }

    #[test]
    fn what_is_no_message() {
        for text in [
            "",
            "x",
            "[]",
            "1",
            "{}",
            r#"{"id":1}"#,
            r#"{"id":null,"method":"x"}"#,
            r#"{"id":{},"method":"x"}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse(&"[".repeat(DEPTH_MAX + 1)).unwrap_err(), BadMessage::TooDeep);
        let text = format!(r#"{{"method":"{}"}}"#, "[".repeat(500));
        assert!(parse(&text).is_ok());
    }

    #[test]
    fn a_message_is_one_line() {
        let pretty: Raw = RawValue::from_string("{\n \"a\": \"b\\n\"\r\n}".to_owned()).unwrap();
        for bytes in [
            request("1", "m", Some(pretty.get())),
            notification("m", Some(&pretty)),
            response(&raw(&json!(1)), &Ok(pretty.clone())),
        ] {
            assert!(!bytes.contains(&b'\n') && Message::parse(&bytes).is_ok());
        }
    }

    #[test]
    fn a_member_is_added_and_the_rest_stays() {
        let with = |text: &str| {
            let object: Raw = RawValue::from_string(text.to_owned()).unwrap();
            with_member(&object, "k", &json!("v")).get().to_owned()
        };
        assert_eq!(with("{}"), r#"{"k":"v"}"#);
        assert_eq!(with("{ }"), r#"{"k":"v" }"#);
        assert_eq!(with(r#"{"a": 1.0}"#), r#"{"k":"v","a": 1.0}"#);
        assert_eq!(with(r#"{"k":[],"a":1e3}"#), r#"{"a":1e3,"k":"v"}"#);
        assert_eq!(with("[1]"), "[1]");
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_are_cut(text in "[a-c\n]{0,80}", cuts in prop::collection::vec(0usize..80, 0..6)) {
            let mut whole = Vec::new();
            Lines::default().push(text.as_bytes(), |line| if let Line::Whole(line) = line { whole.push(line.to_vec()) });
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let (mut lines, mut pieces) = (Lines::default(), Vec::new());
            for pair in cuts.windows(2) {
                lines.push(&text.as_bytes()[pair[0]..pair[1]], |line| if let Line::Whole(line) = line { pieces.push(line.to_vec()) });
            }
            prop_assert_eq!(whole, pieces);
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Message::parse(&bytes);
        }
    }

    #[test]
    fn a_line_that_is_too_long_costs_itself_only() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        let mut take = |line: Line<'_>| {
            seen.push(match line {
                Line::Whole(l) => l.len(),
                Line::TooLong(head) => head.len(),
            });
        };
        for _ in 0..20 {
            lines.push(&vec![b'x'; 1 << 20], &mut take);
        }
        lines.push(b"\nab\n", &mut take);
        assert_eq!(seen, [HEAD_BYTES_MAX, 2]);
    }

    #[test]
    fn whose_answer_it_is_stands_at_the_beginning() {
        for (head, want) in [
            (r#"{"jsonrpc":"2.0","id":17,"result":{"content":[{"text":"xxx"#, Some(17)),
            (r#"{"jsonrpc": "2.0", "id" : 4}"#, Some(4)),
            (r#"{"result":{"content":"#, None),
            (r#"{"id":"x"}"#, None),
            ("", None),
        ] {
            assert_eq!(id_of_head(head.as_bytes()), want, "{head}");
        }
    }
}
