//! Secrets that are recognised by their shape: tokens with known prefixes, values whose name says
//! what they are, credentials in URLs and command lines, private keys.
//!
//! One pass looks for the three letters with which anything of interest begins; a reader for what
//! may be there looks at a bounded part of the text around it. So the time grows with the text and
//! with nothing else. What a reader masks is not looked at again.

mod anchors;
mod argument_table;
mod collection;
mod command_line;
mod fields;
mod inside;
mod kubernetes;
mod names;
mod next_line;
mod piped;
mod private_key;
mod sentence;
mod sql;
mod tokens;
mod unnamed;
mod url;
mod value;

pub(super) use command_line::secret_arguments;
pub(super) use next_line::open_value;
pub(super) use private_key::{
    KEY_BYTES_MAX, begins_key, ends_key, find_all as find_private_keys, has_key_mark,
};

use anchors::{Anchor, Kind};
use std::ops::Range;
use tokens::{Place, TOKENS, Token};

/// The letters, digits and signs that tokens are made of.
pub(super) fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'+' | b'=' | b'~')
}

/// How many of the first bytes are accepted.
fn run(text: &[u8], accept: impl Fn(u8) -> bool) -> usize {
    text.iter().position(|byte| !accept(*byte)).unwrap_or(text.len())
}

/// The same, of which no more than `most` matter.
fn run_within(text: &[u8], most: usize, accept: impl Fn(u8) -> bool) -> usize {
    run(&text[..text.len().min(most)], accept)
}

/// How many of the last bytes are accepted, of which no more than `most` matter.
fn run_back(text: &[u8], most: usize, accept: impl Fn(u8) -> bool) -> usize {
    text.iter().rev().take(most).take_while(|byte| accept(**byte)).count()
}

/// Adds the positions of all secrets.
pub(super) fn find(text: &[u8], found: &mut Vec<Range<usize>>) {
    let mut state = State::default();
    let mut from = 0;
    while let Some(at) = anchors::next(text, from) {
        let mut secret: Option<Range<usize>> = None;
        for anchor in anchors::at(text, at) {
            if let Some(range) = state.secret_at(text, anchor, at).filter(|range| !range.is_empty())
                && secret.as_ref().is_none_or(|known| known.end < range.end)
            {
                secret = Some(range);
            }
        }
        from = match secret {
            Some(range) => {
                let end = range.end;
                found.push(range);
                end.max(at + 1)
            }
            None => at + 1,
        };
        found.append(&mut state.elsewhere);
    }
    unnamed::find(text, found);
}

/// Whether a secret behind this would be masked.
fn announces(before: &[u8]) -> bool {
    const SECRET: &[u8] = b"c7KXb3Xq9Zt4Rb6Yh1Ns8Vd3";
    let mut found = Vec::new();
    find(&[before, SECRET].concat(), &mut found);
    found.iter().any(|range| range.end > before.len())
}

/// What is known of the text before.
#[derive(Debug, Default)]
struct State {
    /// Up to where command lines were read.
    commands_until: usize,
    /// Up to where manifests of Kubernetes were read.
    manifests_until: usize,
    /// Secrets that were found in them.
    elsewhere: Vec<Range<usize>>,
}

impl State {
    /// The secret that an anchor announces.
    fn secret_at(&mut self, text: &[u8], anchor: &Anchor, at: usize) -> Option<Range<usize>> {
        let end = at + anchor.text.len();
        match anchor.kind {
            Kind::Token(index) => token(text, &TOKENS[index], at),
            Kind::Jwt => inside::jwt(text, at),
            Kind::Inside(shape) => inside::find(text, shape, at, end),
            Kind::Name(word) => {
                if word == names::Word::Secret
                    && at >= self.manifests_until
                    && let Some(end) = kubernetes::find(text, at, self.manifests_until, &mut self.elsewhere)
                {
                    self.manifests_until = end;
                }
                names::named(text, word, at..end)
            }
            Kind::Sql => sql::quoted(text, at, end),
            Kind::Scheme => names::after_scheme(text, at..end),
            Kind::Url => url::user_info(text, end),
            Kind::SecretPath => url::secret_path(text, end),
            Kind::Reader => {
                piped::find(text, at, &mut self.elsewhere);
                None
            }
            Kind::Program => {
                if at >= self.commands_until {
                    self.commands_until = command_line::find(text, at, &mut self.elsewhere);
                }
                None
            }
        }
    }
}

/// A token with a known prefix.
fn token(text: &[u8], token: &Token, at: usize) -> Option<Range<usize>> {
    let start = at + token.prefix.len();
    let rest = &text[start..];
    let length = run_within(rest, token.rest_min, |byte| token.body.has(byte));
    if length < token.rest_min {
        return None;
    }
    let body = &rest[..length];
    let starts_word = at == 0 || !text[at - 1].is_ascii_alphanumeric();
    let convinces = match token.place {
        Place::OnlyStart => starts_word && (value::is_random(body) || value::is_very_random(body)),
        Place::WordStart if !starts_word => value::is_random(body),
        _ => value::is_mixed(body),
    };
    match tokens::secret_of_pair(text, token, start) {
        Some(secret) => Some(at..secret.end),
        None => convinces.then(|| at..start + run(rest, is_key_byte)),
    }
}
