//! Tokens without a prefix, that are known by something in their middle.

use super::tokens::Body;
use super::value::{is_mixed, is_random};
use super::{is_key_byte, run, run_back, run_within};
use std::ops::Range;

/// A token that is known by something in its middle.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// The number of a bot, `:AA`, 33 characters.
    Telegram,
    /// 32 hexadecimal digits, `-us`, the number of a data centre.
    Mailchimp,
    /// Three characters, a digit, `Q~`, 31 or more.
    AzureClient,
    /// 52 or more characters with a mark of Azure's in the last third.
    AzureKey,
    /// 14 characters, `.atlasv1.`, 60 or more.
    Terraform,
    /// 40 hexadecimal digits and `NRAL`.
    NewRelic,
    /// `pat`, 14 characters, a dot, 64 hexadecimal digits.
    Airtable,
    /// The number of a bot in base64, a dot, 6 characters, a dot, 27 or more.
    Discord,
}

pub(super) fn find(text: &[u8], shape: Shape, start: usize, end: usize) -> Option<Range<usize>> {
    let (before, rest) = (&text[..start], &text[end..]);
    let is_word = |byte: u8| Body::Word.has(byte);
    let is_hex = |byte: u8| Body::Hex.has(byte);
    match shape {
        Shape::Telegram => {
            let digits = run_back(before, 12, |byte| byte.is_ascii_digit());
            let length = run_within(rest, 40, is_word);
            ((7..12).contains(&digits) && length >= 30).then(|| start - digits..end + length)
        }
        Shape::Mailchimp => {
            let digits = run_back(before, 33, is_hex);
            let number = run_within(rest, 3, |byte| byte.is_ascii_digit());
            (digits == 32 && matches!(number, 1 | 2)).then(|| start - digits..end + number)
        }
        Shape::AzureClient => {
            let is_body = |byte: u8| Body::Word.has(byte) || matches!(byte, b'.' | b'~');
            let length = run_within(rest, 40, is_body);
            let head = run_back(before, 3, is_body);
            (head == 3 && length >= 31).then(|| start - head..end + length)
        }
        Shape::AzureKey => {
            let head = run_back(before, 80, is_key_byte);
            let tail = run_within(rest, 80, is_key_byte);
            let token = &text[start - head..end + tail];
            (head >= 28 && token.len() >= 52 && token.len() <= 100 && is_random(token))
                .then(|| start - head..end + tail)
        }
        Shape::Terraform => {
            let head = run_back(before, 14, |byte| byte.is_ascii_alphanumeric());
            let tail = run(rest, is_word);
            (head == 14 && tail >= 40).then(|| start - head..end + tail)
        }
        Shape::NewRelic => {
            let head = run_back(before, 41, is_hex);
            let ends = !rest.first().is_some_and(u8::is_ascii_alphanumeric);
            (head >= 36 && ends).then(|| start - head..end)
        }
        Shape::Airtable => {
            let id = run_within(rest, 15, |byte| byte.is_ascii_alphanumeric());
            let secret = rest.get(15..)?;
            let length = run_within(secret, 64, is_hex);
            (id == 14 && rest[14] == b'.' && length == 64).then(|| start..end + 15 + length)
        }
        Shape::Discord => {
            if before.last().is_some_and(|byte| is_key_byte(*byte) && *byte != b'=') {
                return None;
            }
            let first = run_within(rest, 30, |byte| byte.is_ascii_alphanumeric());
            let second = rest.get(first + 1..)?;
            let third = second.get(7..)?;
            let length = run_within(third, 45, is_word);
            let fits = (20..28).contains(&first)
                && rest[first] == b'.'
                && run_within(second, 6, is_word) == 6
                && second[6] == b'.'
                && length >= 27;
            (fits && is_mixed(&third[..length])).then(|| start..end + first + 8 + length)
        }
    }
}

/// A signed token: three parts, each at least this long.
pub(super) fn jwt(text: &[u8], start: usize) -> Option<Range<usize>> {
    const PART_BYTES_MIN: usize = 10;
    /// A longer head is none.
    const HEAD_BYTES_MAX: usize = 2 << 10;
    let part = |from: usize, most: usize| run_within(&text[from..], most, |byte| Body::Word.has(byte));
    let head = part(start, HEAD_BYTES_MAX);
    let claims = start + head + 1;
    if head < PART_BYTES_MIN || text.get(claims - 1) != Some(&b'.') {
        return None;
    }
    let is_jwt = part(claims, PART_BYTES_MIN) == PART_BYTES_MIN || text.get(claims) == Some(&b'.');
    is_jwt.then(|| start..claims + run(&text[claims..], |byte| Body::Word.has(byte) || byte == b'.'))
}
