//! Masks secrets that are recognised by their shape: key prefixes, `password=`, URLs, private keys.

use std::ops::Range;

/// Prefixes of API keys, each with the minimum length of what follows.
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

/// Words that announce a secret after a `=`, `:` or space.
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

/// What announces a URL, and a private key.
const OTHERS: &[&str] = &["://", "-----BEGIN "];

/// The number of shapes: one bit each.
const SHAPES: usize = PREFIXES.len() + ANNOUNCERS.len() + OTHERS.len();
/// The length of the shortest shape.
const SHAPE_BYTES_MIN: usize = 3;

/// For each of the first positions and each byte, the shapes that have this byte there, in upper or
/// lower case. Computed at compile time, so that starting costs nothing.
static PLACES: [[u64; 256]; SHAPE_BYTES_MIN] = places();

const fn places() -> [[u64; 256]; SHAPE_BYTES_MIN] {
    const { assert!(SHAPES <= 64) };
    let mut places = [[0; 256]; SHAPE_BYTES_MIN];
    let mut shape = 0;
    while shape < SHAPES {
        let bytes = text_of(shape).as_bytes();
        let mut at = 0;
        while at < SHAPE_BYTES_MIN {
            places[at][bytes[at].to_ascii_lowercase() as usize] |= 1 << shape;
            places[at][bytes[at].to_ascii_uppercase() as usize] |= 1 << shape;
            at += 1;
        }
        shape += 1;
    }
    places
}

const fn text_of(shape: usize) -> &'static str {
    if shape < PREFIXES.len() {
        PREFIXES[shape].0
    } else if shape < PREFIXES.len() + ANNOUNCERS.len() {
        ANNOUNCERS[shape - PREFIXES.len()]
    } else {
        OTHERS[shape - PREFIXES.len() - ANNOUNCERS.len()]
    }
}

/// The next shape and its position, in upper or lower case. Of several at one position, the
/// longest.
fn next_shape(text: &[u8], from: usize) -> Option<(usize, usize)> {
    let [first, second, third] = &PLACES;
    for (at, window) in text.get(from..)?.windows(SHAPE_BYTES_MIN).enumerate() {
        let mut left =
            first[usize::from(window[0])] & second[usize::from(window[1])] & third[usize::from(window[2])];
        let mut longest: Option<usize> = None;
        while left != 0 {
            let shape = left.trailing_zeros() as usize;
            left &= left - 1;
            let wanted = text_of(shape).as_bytes();
            let there = text[from + at..].get(..wanted.len());
            if there.is_some_and(|there| there.eq_ignore_ascii_case(wanted))
                && longest.is_none_or(|known| text_of(known).len() < wanted.len())
            {
                longest = Some(shape);
            }
        }
        if let Some(shape) = longest {
            return Some((shape, from + at));
        }
    }
    None
}

/// Adds the positions of all secrets.
pub(super) fn find(text: &str, found: &mut Vec<Range<usize>>) {
    let mut from = 0;
    while let Some((shape, at)) = next_shape(text.as_bytes(), from) {
        match secret_at(text, shape, at, at + text_of(shape).len()) {
            Some((start, end)) if end > start => {
                found.push(start..end);
                from = end.max(at + 1);
            }
            // Step by one, so that a shape that begins inside this one is still seen.
            _ => from = at + 1,
        }
    }
}

/// The position of the secret that the shape `pattern` at `start..end` announces.
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
    // Without quotes, prose looks like this too ("token: expected `;`"): ask for something that can
    // be a secret.
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
    use aho_corasick::{AhoCorasick, Input, MatchKind};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shapes_are_found_as_by_an_automaton(
            parts in prop::collection::vec((0..SHAPES, any::<bool>(), "[ -~é_:sk]{0,4}"), 0..8),
            from in 0usize..20,
        ) {
            let automaton = AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .ascii_case_insensitive(true)
                .build((0..SHAPES).map(text_of))
                .unwrap();
            let mut text = String::new();
            for (shape, upper, between) in parts {
                let shape = text_of(shape);
                text.push_str(&if upper { shape.to_ascii_uppercase() } else { shape.to_owned() });
                text.push_str(&between);
            }
            let from = from.min(text.len());
            let want = automaton.find(Input::new(&text).range(from..));
            let want = want.map(|found| (found.pattern().as_usize(), found.start()));
            prop_assert_eq!(next_shape(text.as_bytes(), from), want);
        }
    }
}
