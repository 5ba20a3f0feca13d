//! Tokens without a prefix, that are known by something in their middle.

use super::tokens::Body;
use super::value::{is_mixed, is_placeholder, is_random};
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
    /// `/webhooks/`, the number of one, a slash, 40 or more.
    Webhook,
    /// `/hooks/` and 26 small letters and digits.
    Mattermost,
    /// `pat.` or `sat.`, 22 characters, a dot, 24 hexadecimal digits, a dot, 20 characters.
    Harness,
    /// `A3-` and five groups of capital letters and digits.
    OnePassword,
    /// 6 characters, `_`, 29 characters, `_mmk`.
    MaxMind,
    /// A row of `A` that begins a word, of 90 to 140 characters.
    Twitter,
    /// `NAME:SECRET` before `@tcp(` or `@unix(`.
    GoAddress,
    /// `NAME/SECRET@` of Oracle.
    OracleAddress,
    /// `HOST:5432:DATABASE:NAME:SECRET`, which is all of a line.
    Pgpass,
    /// `access_token$`, words and hexadecimal digits with `$` between them.
    Braintree,
    /// The stored form of a password, from its `$` on: `$2b$…`, `$6$…`.
    Crypt,
    /// Twelve or more small words behind what announces them.
    Mnemonic,
    /// A private member of a key as JSON: `"d": "…"`.
    JsonKey,
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
            // In Europe the first six are letters and digits: `eu01xx`.
            let region = before[..start - head].ends_with(b"xx") && head >= 28;
            (ends && (head >= 36 || region))
                .then(|| start - head - if region { 6.min(start - head) } else { 0 }..end)
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
        Shape::Webhook => {
            let digits = run_within(rest, 21, |byte| byte.is_ascii_digit());
            let secret = rest.get(digits + 1..)?;
            let fits = (17..21).contains(&digits) && rest[digits] == b'/';
            let length = run_within(secret, 80, is_word);
            (fits && length >= 40).then(|| end..end + digits + 1 + length)
        }
        Shape::Mattermost => {
            let length = run_within(rest, 27, |byte| Body::Lower.has(byte));
            let digits = rest[..length].iter().filter(|byte| byte.is_ascii_digit()).count();
            (length == 26 && (2..20).contains(&digits)).then(|| end..end + length)
        }
        Shape::Harness => {
            let is_part = |from: usize, length: usize, is_in: fn(u8) -> bool| {
                rest.get(from..from + length).is_some_and(|part| part.iter().all(|byte| is_in(*byte)))
            };
            let fits = is_part(0, 22, |byte| Body::Word.has(byte))
                && is_part(23, 24, |byte| Body::Hex.has(byte))
                && is_part(48, 20, |byte| byte.is_ascii_alphanumeric())
                && rest[22] == b'.'
                && rest[47] == b'.';
            (fits && !before.last().is_some_and(u8::is_ascii_alphanumeric)).then(|| start..end + 68)
        }
        Shape::OnePassword => {
            let is_group = |byte: u8| Body::Upper.has(byte) || byte == b'-';
            let length = run_within(rest, 40, is_group);
            let groups: Vec<usize> = rest[..length].split(|byte| *byte == b'-').map(<[u8]>::len).collect();
            matches!(groups[..], [6, 11, 5, 5, 5] | [6, 6, 5, 5, 5, 5]).then(|| start..end + length)
        }
        Shape::MaxMind => {
            let head = run_back(before, 37, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let is_end = !rest.first().is_some_and(u8::is_ascii_alphanumeric);
            (head == 36 && before[start - 30] == b'_' && is_end).then(|| start - head..end)
        }
        Shape::Twitter => {
            // A hyphen is in no picture, but in names of files.
            let is_picture = |byte: &u8| (is_key_byte(*byte) && *byte != b'-') || *byte == b',';
            if before.last().is_some_and(is_picture) {
                return None;
            }
            let is_body = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'%';
            let length = run_within(rest, 130, is_body);
            let tail = &rest[run_within(rest, 130, |byte| byte == b'A')..length];
            ((60..125).contains(&length) && tail.len() >= 40 && is_random(tail)).then(|| start..end + length)
        }
        Shape::GoAddress => {
            let is_body =
                |byte: u8| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'`' | b'=');
            let head = &before[start - run_back(before, 128, is_body)..];
            let colon = memchr::memchr(b':', head).filter(|at| *at > 0 && !head.starts_with(b"//"))?;
            let length = head.len() - colon - 1;
            (length > 0 && !is_placeholder(&head[colon + 1..])).then(|| start - length..start)
        }
        Shape::OracleAddress => {
            let is_body = |byte: u8| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'`');
            let address = &rest[..run_within(rest, 128, is_body)];
            let at = memchr::memchr(b'@', address)?;
            let slash = memchr::memchr(b'/', &address[..at])?;
            (at > slash + 1 && !is_placeholder(&address[slash + 1..at])).then(|| end + slash + 1..end + at)
        }
        Shape::Braintree => {
            let is_body = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'$';
            let length = run_within(rest, 80, is_body);
            (length >= 40 && is_mixed(&rest[..length])).then(|| start..end + length)
        }
        Shape::Crypt => {
            const BODY_BYTES_MIN: usize = 22;
            let is_body = |byte: u8| byte.is_ascii_alphanumeric() || b"./$=,+-".contains(&byte);
            let length = run_within(rest, 128, is_body);
            (length >= BODY_BYTES_MIN && is_mixed(&rest[..length])).then(|| start..end + length)
        }
        Shape::Mnemonic => {
            const WORDS_MIN: usize = 12;
            const WORDS_BYTES_MAX: usize = 260;
            let is_between = |byte: u8| b" =:\"'`_".contains(&byte) || byte.is_ascii_uppercase();
            let gap = run_within(rest, 12, is_between);
            let words = &rest[gap..];
            let words = &words
                [..run_within(words, WORDS_BYTES_MAX, |byte| byte == b' ' || byte.is_ascii_lowercase())];
            let words = words.trim_ascii_end();
            let is_phrase = words.split(|byte| *byte == b' ').all(|word| (3..=8).contains(&word.len()));
            let count = words.split(|byte| *byte == b' ').count();
            (is_phrase && count >= WORDS_MIN).then(|| end + gap..end + gap + words.len())
        }
        Shape::JsonKey => {
            /// The shortest private part of a key that has no other sign of being one.
            const ALONE_BYTES_MIN: usize = 40;
            const BYTES_MIN: usize = 16;
            const NEAR_BYTES: usize = 1 << 10;
            let is_space = |byte: u8| byte == b' ';
            let colon = run_within(rest, 4, is_space);
            let value = colon + 1 + run_within(rest.get(colon + 1..)?, 4, is_space);
            let inner = rest.get(value + 1..)?;
            let length = run(inner, is_word);
            // A long one may be cut off.
            let is_closed = inner.get(length) == Some(&b'"') || length >= ALONE_BYTES_MIN;
            let is_string = rest.get(colon) == Some(&b':') && rest.get(value) == Some(&b'"') && is_closed;
            let is_near = || {
                let near = &text[start.saturating_sub(NEAR_BYTES)..text.len().min(end + length + NEAR_BYTES)];
                memchr::memmem::find(near, b"\"kty\"").is_some()
            };
            let is_secret = length >= BYTES_MIN
                && is_random(&inner[..length])
                && (length >= ALONE_BYTES_MIN || is_near());
            (is_string && is_secret).then(|| end + value + 1..end + value + 1 + length)
        }
        Shape::Pgpass => {
            let host = run_back(before, 80, |byte| is_word(byte) || matches!(byte, b'.' | b'*'));
            let is_sign = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`');
            let is_line = start == host || is_sign(before[start - host - 1]);
            let length = run_within(rest, 200, |byte| !is_sign(byte) && byte != b'\\');
            let is_alone = rest.get(length).is_none_or(|byte| *byte != b' ' && *byte != b'\\');
            let mut fields = rest[..length].splitn(3, |byte| *byte == b':');
            let (database, user) = (fields.next()?, fields.next()?);
            let secret = fields.next()?;
            let fits = host > 0 && is_line && is_alone && !database.is_empty() && !user.is_empty();
            (fits && secret.len() >= 3 && !is_placeholder(secret))
                .then(|| end + length - secret.len()..end + length)
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
