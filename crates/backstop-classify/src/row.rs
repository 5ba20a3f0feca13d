//! A failure as one JSON object, the way `classify --batch` and corpora have it: a line in, a
//! [`Signal`] out.

use backstop_core::{Signal, Surface, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::time::Duration;

/// The largest `headers` that are read.
const HEADERS_BYTES_MAX: usize = 256 << 10;

/// The longest id that is answered with.
const ID_BYTES_MAX: usize = 64 << 10;

/// The fields that say something. A line with none of them is a mistake.
const FIELDS: &[&str] = &[
    "command",
    "exit_code",
    "exit",
    "signal",
    "timed_out",
    "stdout",
    "stderr",
    "stdout_b64",
    "stderr_b64",
    "status",
    "headers",
    "body",
    "message",
    "errno",
    "error_type",
];

/// What a line may say. Fields that are not here are passed over.
#[derive(Deserialize)]
struct Row<'l> {
    #[serde(borrow, default)]
    id: Option<&'l RawValue>,
    command: Option<String>,
    #[serde(alias = "exit")]
    exit_code: Option<i64>,
    signal: Option<i64>,
    #[serde(default)]
    timed_out: Option<bool>,
    duration_ms: Option<f64>,
    stdout: Option<String>,
    stderr: Option<String>,
    stdout_b64: Option<String>,
    stderr_b64: Option<String>,
    provider: Option<String>,
    status: Option<u16>,
    #[serde(borrow, default)]
    headers: Option<&'l RawValue>,
    #[serde(borrow, default)]
    body: Option<&'l RawValue>,
    message: Option<String>,
    errno: Option<Value>,
    error_type: Option<String>,
}

/// Reads a line: its id, which may be anything, and what it says of a failure. What is wrong with
/// it comes back as a sentence. `at` is the time that dates in headers are counted from.
pub fn read_row(line: &[u8], at: Timestamp) -> Result<(Value, Signal), String> {
    if line.trim_ascii_start().first() != Some(&b'{') {
        return Err("a line is one JSON object".to_owned());
    }
    let row: Row<'_> = serde_json::from_slice(line).map_err(|error| {
        // serde counts lines within this one line; the column is what helps.
        let what = error.to_string();
        what.split(" at line ").next().unwrap_or(&what).to_owned() + &format!(" at column {}", error.column())
    })?;
    if !row.says_anything() {
        return Err(format!("no known field: use some of {}", FIELDS.join(", ")));
    }
    let id = match row.id {
        Some(id) if id.get().len() > ID_BYTES_MAX => {
            return Err(format!("the id has more than {ID_BYTES_MAX} bytes"));
        }
        Some(id) => serde_json::from_str(id.get()).unwrap_or(Value::Null),
        None => Value::Null,
    };
    Ok((id, row.into_signal(at)?))
}

impl Row<'_> {
    fn says_anything(&self) -> bool {
        let text = [
            &self.command,
            &self.stdout,
            &self.stderr,
            &self.stdout_b64,
            &self.stderr_b64,
            &self.message,
            &self.error_type,
        ];
        text.iter().any(|field| field.is_some())
            || self.exit_code.is_some()
            || self.signal.is_some()
            || self.timed_out.is_some()
            || self.status.is_some()
            || self.headers.is_some()
            || self.body.is_some()
            || self.errno.is_some()
            || self.provider.is_some()
    }

    fn into_signal(self, at: Timestamp) -> Result<Signal, String> {
        let ran = self.command.is_some()
            || self.exit_code.is_some()
            || self.signal.is_some()
            || self.timed_out.is_some();
        let ran = ran || self.stdout.is_some() || self.stderr.is_some();
        let bytes = |text: Option<String>, base64: Option<String>| match base64 {
            Some(encoded) => decode_base64(&encoded).ok_or("not base64"),
            None => Ok(text.unwrap_or_default().into_bytes()),
        };
        let mut signal = Signal {
            surface: if ran { Surface::Command } else { Surface::Response },
            command: self.command,
            exit: self.exit_code,
            signal: self.signal,
            timed_out: self.timed_out.unwrap_or(false),
            duration: self
                .duration_ms
                .filter(|ms| ms.is_finite() && *ms >= 0.0)
                .map(|ms| Duration::from_secs_f64((ms / 1000.0).min(1e9))),
            status: self.status,
            headers: self.headers.map(headers).unwrap_or_default(),
            errno: self.errno.filter(|v| !v.is_null()).map(|v| text(&v)),
            provider: self.provider,
            reported: self.error_type,
            at: Some(at),
            stdout: bytes(self.stdout, self.stdout_b64)?,
            stderr: bytes(self.stderr, self.stderr_b64)?,
            ..Signal::default()
        };
        if !ran {
            let body = self.body.map_or("null", RawValue::get);
            signal.stdout = match body.as_bytes().first() {
                Some(b'n') => Vec::new(),
                Some(b'"') => serde_json::from_str::<String>(body).unwrap_or_default().into_bytes(),
                _ => body.as_bytes().to_vec(),
            };
            signal.stderr = self.message.unwrap_or_default().into_bytes();
        }
        Ok(signal)
    }
}

fn headers(raw: &RawValue) -> Vec<(String, String)> {
    if raw.get().len() > HEADERS_BYTES_MAX {
        return Vec::new();
    }
    let fields: BTreeMap<String, Value> = serde_json::from_str(raw.get()).unwrap_or_default();
    fields.into_iter().map(|(name, value)| (name, text(&value))).collect()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Base64 in the usual alphabet, padded or not.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut bits = 0u32;
    let mut count = 0;
    for byte in text.bytes().filter(|b| !b.is_ascii_whitespace() && *b != b'=') {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from((bits >> count) & 0xff).ok()?);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_padded_or_not() {
        assert_eq!(decode_base64("/v8AcmF0ZQ==").unwrap(), b"\xfe\xff\0rate");
        assert_eq!(decode_base64("/v8AcmF0ZQ").unwrap(), b"\xfe\xff\0rate");
        assert_eq!(decode_base64("!"), None);
    }
}
