//! Secrets are masked before anything is stored or shown.
//!
//! Two kinds are known: values that we were told (environment, config), and shapes that say by
//! themselves what they are (key prefixes, `password=`, credentials in URLs, private keys). What is
//! masked is gone: nothing here can undo it. [`RedactStream`] does the same for text that comes in
//! pieces.

mod encoded;
mod known;
mod shapes;
mod stream;

pub use stream::RedactStream;

use known::Known;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// What stands in place of a secret.
pub const MASK: &str = "[redacted]";

/// A known value shorter than this is not masked: it would be found everywhere.
const KNOWN_BYTES_MIN: usize = 6;

/// Masks secrets in text.
#[derive(Debug, Clone)]
pub struct Redactor {
    known: Option<Arc<Known>>,
    /// The longest known value.
    known_bytes_max: usize,
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new(std::iter::empty::<&str>())
    }
}

impl Redactor {
    /// A redactor that also knows these values, as they are and in the encodings in which they
    /// travel. Values too short to be secrets are left out.
    pub fn new<S: AsRef<str>>(known: impl IntoIterator<Item = S>) -> Self {
        let mut values: Vec<String> = Vec::new();
        for value in known {
            // A secret of several lines, such as a private key, is masked line by line.
            for line in value.as_ref().lines() {
                let line = line.trim();
                if line.len() >= KNOWN_BYTES_MIN {
                    values.push(line.to_owned());
                    values.extend(encoded::forms(line).into_iter().filter(|f| f.len() >= KNOWN_BYTES_MIN));
                }
            }
        }
        values.sort();
        values.dedup();
        let known_bytes_max = values.iter().map(String::len).max().unwrap_or(0);
        let known = (!values.is_empty()).then(|| Known::new(values)).flatten().map(Arc::new);
        Self { known, known_bytes_max }
    }

    /// The text with every secret masked.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let secrets = self.secrets(text);
        if secrets.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for secret in secrets {
            out.push_str(&text[done..secret.start]);
            out.push_str(MASK);
            done = secret.end;
        }
        out.push_str(&text[done..]);
        Cow::Owned(out)
    }

    /// Where the secrets lie, in order; those that touch are one.
    fn secrets(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        if let Some(known) = &self.known {
            known.find(text, &mut found);
        }
        shapes::find(text, &mut found);
        found.sort_by_key(|range| (range.start, range.end));
        found.dedup_by(|next, last| {
            let joined = next.start < last.end;
            if joined {
                last.end = last.end.max(next.end);
            }
            joined
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn secrets_are_masked_and_the_rest_stays() {
        let redactor = Redactor::new(["hunter2-canary", "abc"]);
        let cases = [
            ("the value hunter2-canary was used", "the value [redacted] was used"),
            ("abc is too short to be one", "abc is too short to be one"),
            (concat!("key sk-", "ant-x1x2x3x4x5x6x7x8 rejected"), "key [redacted] rejected"),
            (
                concat!("Incorrect API key provided: sk-", "proj-aaaa1111bbbb2222, sorry"),
                "Incorrect API key provided: [redacted], sorry",
            ),
            ("remote: ghp_0123456789abcdefghijABCDEFGHIJ", "remote: [redacted]"),
            ("https://bob:s3cret@example.com/x", "https://bob:[redacted]@example.com/x"),
            ("ssh://git@example.com/x", "ssh://git@example.com/x"),
            ("Authorization: Bearer abcdef0123456789", "Authorization: Bearer [redacted]"),
            ("{\"api_key\": \"k-123456789\"}", "{\"api_key\": \"[redacted]\"}"),
            ("DB_PASSWORD=swordfish rest", "DB_PASSWORD=[redacted] rest"),
            ("GET /v1?access_token=abc123def456&x=1", "GET /v1?access_token=[redacted]&x=1"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nok", "[redacted]\nok"),
            ("{\"password\":\"two words\"}", "{\"password\":\"[redacted]\"}"),
            ("run --password hunter2abc now", "run --password [redacted] now"),
            ("DB_PASS=a,b<c rest", "DB_PASS=[redacted] rest"),
            ("AKIAIOSFODNN7EXAMPLE is an id", "[redacted] is an id"),
        ];
        for (text, want) in cases {
            assert_eq!(redactor.redact(text), want, "{text}");
        }
    }

    #[test]
    fn prose_and_errors_stay_as_they_are() {
        let redactor = Redactor::default();
        for text in [
            "SyntaxError: Unexpected token: expected `;`",
            "error: unexpected token `}` at line 3",
            "tokens: 213462 > 200000 maximum",
            "prompt is too long: 213462 tokens > 200000",
            "invalid password for user app",
            "AssertionError: token == 'x'",
            "the basic types of errors",
            "task-abc-123 sk-x eyJ",
            "see https://example.com/a:b@c",
        ] {
            assert_eq!(redactor.redact(text), text);
        }
    }

    proptest! {
        #[test]
        fn a_known_value_never_survives(before in "[ -~]{0,20}", after in "[ -~]{0,20}") {
            let redactor = Redactor::new(["C4n4ry-Value"]);
            let text = format!("{before}C4n4ry-Value{after}");
            prop_assert!(!redactor.redact(&text).contains("C4n4ry-Value"));
        }

        #[test]
        fn any_text_is_survived(text in any::<String>()) {
            let _ = Redactor::default().redact(&text);
        }
    }
}
