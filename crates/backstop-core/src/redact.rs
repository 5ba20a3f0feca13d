//! Secrets are masked before anything is stored or shown.
//!
//! Two kinds are known: values that we were told (environment, config), and shapes that say by themselves what they are
//! (key prefixes, `password=`, credentials in URLs, private keys). What is masked is gone: nothing here can undo it.

use aho_corasick::{AhoCorasick, MatchKind};
use std::borrow::Cow;

/// What stands in place of a secret.
pub const MASK: &str = "[redacted]";

/// A known value shorter than this is not masked: it would be found everywhere.
const KNOWN_BYTES_MIN: usize = 6;

/// Prefixes of keys that say what they are, each with the shortest length of what follows.
const PREFIXES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_live_", 12),
    ("sk_test_", 12),
    ("rk_live_", 12),
    ("pk_live_", 12),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 10),
    ("xoxa-", 10),
    ("xoxp-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("xapp-", 10),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ya29.", 20),
    ("npm_", 30),
    ("pypi-", 40),
    ("hf_", 20),
    ("gsk_", 20),
    ("xai-", 20),
    ("r8_", 20),
    ("dop_v1_", 20),
    ("shpat_", 20),
    ("SG.", 30),
    ("eyJ", 30),
];

/// Words before a `=`, `:` or space that announce a secret.
const ANNOUNCERS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "api_key",
    "api-key",
    "apikey",
    "access_key",
    "access-key",
    "access_token",
    "auth_token",
    "authtoken",
    "client_secret",
    "private_key",
    "_token",
    "-token",
    "token",
    "_authtoken",
    "_key",
    "_pass",
    "_pwd",
    "credential",
    "authorization",
    "x-goog-api-key",
    "bearer",
    "basic",
];

/// Masks secrets in text.
#[derive(Debug, Clone)]
pub struct Redactor {
    known: Option<AhoCorasick>,
    shapes: AhoCorasick,
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new(std::iter::empty::<&str>())
    }
}

impl Redactor {
    /// A redactor that also knows these values. Values too short to be secrets are left out.
    pub fn new<S: AsRef<str>>(known: impl IntoIterator<Item = S>) -> Self {
        let mut values: Vec<String> = Vec::new();
        for value in known {
            // A secret of several lines, such as a private key, is masked line by line.
            for line in value.as_ref().lines() {
                let line = line.trim();
                if line.len() >= KNOWN_BYTES_MIN {
                    values.push(line.to_owned());
                }
            }
        }
        values.sort();
        values.dedup();
        let known = (!values.is_empty())
            .then(|| AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&values).ok())
            .flatten();
        let patterns =
            PREFIXES.iter().map(|(p, _)| *p).chain(ANNOUNCERS.iter().copied()).chain(["://", "-----BEGIN "]);
        let shapes = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .ascii_case_insensitive(true)
            .build(patterns)
            .expect("the shapes are constants, and a test builds them");
        Self { known, shapes }
    }

    /// The text with every secret masked.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let known = match &self.known {
            Some(known) if known.is_match(text) => {
                Cow::Owned(known.replace_all(text, &vec![MASK; known.patterns_len()]))
            }
            _ => Cow::Borrowed(text),
        };
        match self.redact_shapes(&known) {
            Some(masked) => Cow::Owned(masked),
            None => known,
        }
    }

    fn redact_shapes(&self, text: &str) -> Option<String> {
        let mut out = String::new();
        let mut done = 0;
        let mut from = 0;
        while let Some(found) = self.shapes.find(aho_corasick::Input::new(text).range(from..)) {
            let secret = self.secret_at(text, found.pattern().as_usize(), found.start(), found.end());
            match secret {
                Some((start, end)) if start >= done && end > start => {
                    out.push_str(&text[done..start]);
                    out.push_str(MASK);
                    done = end;
                    from = end;
                }
                // Step by one character, so that a shape that begins inside this one is still seen.
                _ => from = found.start() + text[found.start()..].chars().next().map_or(1, char::len_utf8),
            }
            if from >= text.len() {
                break;
            }
        }
        (done > 0).then(|| {
            out.push_str(&text[done..]);
            out
        })
    }

    /// Where the secret lies that the shape `pattern` at `start..end` announces.
    fn secret_at(&self, text: &str, pattern: usize, start: usize, end: usize) -> Option<(usize, usize)> {
        if let Some((prefix, rest_min)) = PREFIXES.get(pattern) {
            // Prefixes are case-sensitive, and start a word.
            if &text[start..end] != *prefix
                || text[..start].chars().next_back().is_some_and(|c| c.is_ascii_alphanumeric())
            {
                return None;
            }
            let rest = run(&text[end..], key_char);
            return (rest >= *rest_min).then_some((start, end + rest));
        }
        match pattern - PREFIXES.len() {
            n if n < ANNOUNCERS.len() => announced(text, ANNOUNCERS[n], start, end),
            n if n == ANNOUNCERS.len() => userinfo(text, end),
            _ => private_key(text, start),
        }
    }
}

fn key_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '=' | '~')
}

fn run(text: &str, accept: impl Fn(char) -> bool) -> usize {
    text.find(|c| !accept(c)).unwrap_or(text.len())
}

/// `password=...`, `"api_key": "..."`, `Authorization: Bearer ...`, `Bearer ...`.
fn announced(text: &str, word: &str, start: usize, end: usize) -> Option<(usize, usize)> {
    let rest = &text[end..];
    if matches!(word, "bearer" | "basic") {
        let starts_word = !text[..start].chars().next_back().is_some_and(|c| c.is_ascii_alphanumeric());
        let value = rest.strip_prefix(' ')?;
        let length = run(value, key_char);
        let looks_random = value[..length].bytes().any(|b| b.is_ascii_digit()) || length >= 24;
        return (starts_word && length >= 8 && looks_random).then_some((end + 1, end + 1 + length));
    }
    let mut at = run(rest, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    // The word may only be continued like a name is: `token_v2`, not `tokenizer`.
    if at > 0 && !rest.starts_with(['_', '-']) {
        return None;
    }
    // `--password VALUE`: the value is the next word.
    if text[..start].ends_with("--") && rest[at..].starts_with(' ') {
        let value = rest[at + 1..].trim_start_matches(' ');
        let from = rest.len() - value.len();
        let length = run(value, |c| !c.is_whitespace());
        return (length >= 3 && !value.starts_with('-')).then_some((end + from, end + from + length));
    }
    at += run(&rest[at..], |c| matches!(c, '"' | '\'' | ' ' | '\\'));
    let separator = rest[at..].chars().next().filter(|c| matches!(c, '=' | ':'))?;
    at += separator.len_utf8();
    if separator == ':' && rest[at..].starts_with("//") {
        return None;
    }
    at += run(&rest[at..], |c| matches!(c, ' ' | '\t' | '\\'));
    let quote = rest[at..].chars().next().filter(|c| matches!(c, '"' | '\''));
    at += quote.map_or(0, char::len_utf8);
    for scheme in ["Bearer ", "bearer ", "Basic ", "basic ", "token "] {
        if rest[at..].starts_with(scheme) {
            at += scheme.len();
            break;
        }
    }
    let value = &rest[at..];
    let length = match quote {
        Some(quote) => run(value, |c| c != quote && c != '\n'),
        None if separator == '=' => run(value, |c| !c.is_whitespace() && !matches!(c, '"' | '\'' | '&')),
        None => run(value, |c| {
            !c.is_whitespace() && !matches!(c, '"' | '\'' | ',' | ';' | '&' | ')' | ']' | '}' | '<' | '>')
        }),
    };
    // Without quotes, prose looks like this too ("token: expected `;`"): ask for something that can be a secret.
    let dense = value[..length].bytes().filter(u8::is_ascii_digit).count() >= 1
        && length >= 8
        && value[..length].chars().all(key_char);
    let plain_password = separator == '='
        && matches!(
            word,
            "password" | "passwd" | "passphrase" | "secret" | "client_secret" | "_pass" | "_pwd"
        )
        && length >= 3;
    let quoted = quote.is_some() && length >= 6;
    (dense || plain_password || quoted).then_some((end + at, end + at + length))
}

/// `scheme://user:password@host`: the password, or the whole of it where there is no user.
fn userinfo(text: &str, end: usize) -> Option<(usize, usize)> {
    let rest = &text[end..];
    let authority =
        run(rest, |c| !c.is_whitespace() && !matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>'));
    let at = rest[..authority].rfind('@')?;
    let start = rest[..at].find(':').map_or(0, |colon| colon + 1);
    // A name without a password is no secret: `ssh://git@host`.
    let has_password = rest[..at].contains(':') || at >= 20;
    (has_password && at > start).then_some((end + start, end + at))
}

/// A private key in PEM, up to its end or the end of the text.
fn private_key(text: &str, start: usize) -> Option<(usize, usize)> {
    let rest = &text[start..];
    let header = run(rest, |c| c != '\n');
    rest[..header].contains("PRIVATE KEY").then(|| {
        let end = rest.find("-----END ").map_or(rest.len(), |at| at + run(&rest[at..], |c| c != '\n'));
        (start, start + end)
    })
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
