//! Lays an answer out as lines, one for each thing that it says, so that the same rules read it as
//! read a log.
//!
//! `body error.code: context_length_exceeded`, `header retry-after: 41`, `message: …`. JSON inside
//! strings is opened too: gateways wrap one error in another.

use backstop_core::Signal;
use serde_json::Value;

/// How deep JSON is followed, strings inside it included.
const DEPTH_MAX: usize = 24;
/// The largest body that is read as JSON.
const JSON_BYTES_MAX: usize = 1 << 20;
/// How much of the path to a value is kept.
const PATH_BYTES_MAX: usize = 200;
/// How many lines an answer becomes at most.
const LINES_MAX: usize = 2000;
/// How much of one string becomes a line.
const STRING_BYTES_MAX: usize = 8 << 10;

/// The body as JSON, if it is.
pub(crate) fn body_json(signal: &Signal) -> Option<Value> {
    // What is larger is no error message; as text it is read all the same.
    (signal.stdout.len() <= JSON_BYTES_MAX).then(|| serde_json::from_slice(&signal.stdout).ok()).flatten()
}

/// The lines of an answer.
pub(crate) fn lines(signal: &Signal, body: Option<&Value>) -> Vec<u8> {
    let mut out = Lines { text: String::new(), count: 0 };
    for (name, value) in signal.headers.iter().take(200) {
        out.line("header ", &name.to_ascii_lowercase(), value);
    }
    match body {
        Some(value) => out.value("", value, 0),
        None => out.words("body ", &String::from_utf8_lossy(&signal.stdout), 0),
    }
    out.words("message ", &String::from_utf8_lossy(&signal.stderr), 0);
    if let Some(errno) = &signal.errno {
        out.line("errno ", "", errno);
    }
    out.text.into_bytes()
}

fn head(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

struct Lines {
    text: String,
    count: usize,
}

impl Lines {
    fn line(&mut self, kind: &str, key: &str, value: &str) {
        if self.count >= LINES_MAX {
            return;
        }
        self.count += 1;
        let value = head(value, STRING_BYTES_MAX);
        let flat = |c: char| if matches!(c, '\n' | '\r') { ' ' } else { c };
        self.text.push_str(if key.is_empty() { kind.trim_end() } else { kind });
        self.text.extend(key.chars().take(200).map(flat));
        self.text.push_str(": ");
        self.text.extend(value.chars().map(flat));
        self.text.push('\n');
    }

    fn value(&mut self, path: &str, value: &Value, depth: usize) {
        if depth > DEPTH_MAX || self.count >= LINES_MAX {
            return;
        }
        match value {
            // A JSON Web Key says nothing of a failure, and outside their braces its members look
            // like anything, not like secrets.
            Value::Object(fields) if fields.contains_key("kty") => {}
            Value::Object(fields) => {
                for (key, field) in fields {
                    if self.count >= LINES_MAX {
                        return;
                    }
                    let key = head(key, PATH_BYTES_MAX);
                    let path = if path.is_empty() {
                        key.to_owned()
                    } else {
                        format!("{}.{key}", head(path, PATH_BYTES_MAX))
                    };
                    self.value(&path, field, depth + 1);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.value(path, item, depth + 1)),
            Value::String(text) => {
                self.line("body ", path, text);
                self.inner(text, depth + 1);
            }
            Value::Null => {}
            other => self.line("body ", path, &other.to_string()),
        }
    }

    /// Text that is no JSON: line by line, then whatever JSON is inside it.
    fn words(&mut self, kind: &str, text: &str, depth: usize) {
        for line in text.lines().take(LINES_MAX) {
            if !line.trim().is_empty() {
                self.line(kind, "", line);
            }
        }
        self.inner(text, depth);
    }

    /// JSON inside text: `400 {"error":{"message":…}}`, `data: {…}`, a JSON string inside JSON.
    fn inner(&mut self, text: &str, depth: usize) {
        if depth > DEPTH_MAX || text.len() > (1 << 20) {
            return;
        }
        let mut from = 0;
        for _ in 0..8 {
            let Some(at) = text[from..].find('{').map(|n| from + n) else { return };
            let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
            match stream.next() {
                Some(Ok(value)) => {
                    from = at + stream.byte_offset().max(1);
                    self.value("", &value, depth + 1);
                }
                _ => from = at + 1,
            }
        }
    }
}
