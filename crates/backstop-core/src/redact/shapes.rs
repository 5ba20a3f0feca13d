//! Secrets that say by themselves what they are.

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

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

/// The shapes, as one table that all redactors of a process share.
#[derive(Debug, Clone)]
pub(super) struct Shapes(Arc<AhoCorasick>);

impl Shapes {
    pub(super) fn new() -> Self {
        static TABLE: OnceLock<Shapes> = OnceLock::new();
        TABLE.get_or_init(Self::build).clone()
    }

    fn build() -> Self {
        let patterns =
            PREFIXES.iter().map(|(p, _)| *p).chain(ANNOUNCERS.iter().copied()).chain(["://", "-----BEGIN "]);
        let shapes = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            // Quick to build, at every start; what is looked through is short.
            .kind(Some(AhoCorasickKind::NoncontiguousNFA))
            .ascii_case_insensitive(true)
            .build(patterns)
            .expect("the shapes are constants, and a test builds them");
        Self(Arc::new(shapes))
    }

    /// Adds where secrets lie.
    pub(super) fn find(&self, text: &str, found: &mut Vec<Range<usize>>) {
        let mut from = 0;
        while let Some(shape) = self.0.find(Input::new(text).range(from..)) {
            let secret = secret_at(text, shape.pattern().as_usize(), shape.start(), shape.end());
            match secret {
                Some((start, end)) if end > start => {
                    found.push(start..end);
                    from = end.max(shape.start() + 1);
                }
                // Step by one character, so that a shape that begins inside this one is still seen.
                _ => from = shape.start() + text[shape.start()..].chars().next().map_or(1, char::len_utf8),
            }
            if from >= text.len() {
                break;
            }
        }
    }
}

/// Where the secret lies that the shape `pattern` at `start..end` announces.
fn secret_at(text: &str, pattern: usize, start: usize, end: usize) -> Option<(usize, usize)> {
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

pub(super) fn key_char(c: char) -> bool {
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
