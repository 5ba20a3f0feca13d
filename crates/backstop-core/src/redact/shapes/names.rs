//! Values whose name says that they are secrets: `password=…`, `"api_key": "…"`, `--token …`,
//! `<secret>…`, `Authorization: …`, `Cookie: …`.

use super::value::{
    VALUE_BYTES_MAX, is_dense, is_key_like, is_mixed, is_path, is_placeholder, is_prose, is_random,
    is_small_word,
};
use super::{collection, fields, next_line, sentence};
use super::{is_key_byte, run, run_back, run_within};
use std::ops::Range;

/// A word in a name, and with it what its value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// Anything may be one.
    Password,
    /// The same; only behind another word, since tests pass.
    Pass,
    /// The same, shorter.
    Pw,
    Secret,
    Token,
    /// Says little by itself: its value must be random.
    Weak,
    /// Only of some things: caches and tables have keys, too.
    Key,
    /// `_auth`, and the `auth` of a container registry.
    Auth,
    Authorization,
    Cookie,
    /// Of an address.
    Signature,
}

/// How much of a name is looked at, to each side.
const NAME_BYTES_MAX: usize = 40;

/// What stands between a name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    Equals,
    Colon,
    /// The value is the next word: `--password VALUE`.
    Space,
    /// `<password>value</password>`.
    Element,
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Things of which keys are secret.
const SECRET_KEYS: &[&str] = &[
    "api",
    "access",
    "secret",
    "private",
    "account",
    "shared",
    "encryption",
    "encrypt",
    "signing",
    "sign",
    "master",
    "client",
    "auth",
    "service",
    "storage",
    "license",
    "app",
    "application",
    "session",
    "deploy",
    "ssh",
    "gpg",
    "pgp",
    "rsa",
    "routing",
    "integration",
    "ingest",
    "write",
    "admin",
    "webhook",
    "decryption",
    "age",
    "openai",
    "anthropic",
    "consumer",
    "subscription",
    "functions",
    "host",
    "hmac",
    "jwt",
    "aes",
    "stripe",
    "google",
    "azure",
    "aws",
    "github",
    "dd",
    "datadog",
    "sendgrid",
    "mailgun",
    "twilio",
    "user",
    "vault",
    "security",
    "x",
    "live",
    "server",
    "bot",
    "project",
    "team",
    "account",
    "personal",
    "my",
    "acme",
    "preshared",
];

/// What a name ends in that is about a secret and is none.
const HARMLESS_ENDS: &[&str] = &[
    "file",
    "path",
    "type",
    "name",
    "id",
    "ttl",
    "url",
    "uri",
    "length",
    "len",
    "count",
    "policy",
    "stdin",
    "expires",
    "expiry",
    "expiration",
    "limit",
    "usage",
    "size",
    "format",
    "env",
    "field",
    "fields",
    "header",
    "store",
    "ref",
    "version",
    "hint",
    "strength",
    "rules",
    "mode",
    "provider",
    "endpoint",
    "arn",
    "ids",
    "class",
    "status",
    "error",
    "errors",
    "manager",
    "method",
    "prefix",
    "suffix",
    "regex",
    "pattern",
    "kind",
    "budget",
    "per",
    "rate",
    "cost",
    "price",
    "index",
    "idx",
    "validator",
    "service",
    "input",
    "label",
    "dir",
    "folder",
    "max",
    "min",
    "total",
    "used",
    "remaining",
    "window",
    "cache",
    "reset",
    "scope",
    "scopes",
    "algorithm",
    "alg",
];

/// The secret that the word at `word` in a name announces.
pub(super) fn named(text: &[u8], kind: Word, word: Range<usize>) -> Option<Range<usize>> {
    // An anchor may end in its separator.
    let word_end = word.end - usize::from(text[word.end - 1] == b'=');
    let before = &text[..word.start];
    let head = run_back(before, NAME_BYTES_MAX, is_name_byte);
    let name_start = word.start - head;
    let tail = run_within(&text[word_end..], NAME_BYTES_MAX, is_name_byte);
    let name_end = word_end + tail;
    if !goes_on(&text[word.start..word_end], &text[word_end..name_end])
        || !is_secret_name(text, kind, name_start, word.start, word_end, name_end)
    {
        return None;
    }
    let dashes = run_back(text[..word.start].get(..name_end).unwrap_or(before), 1, |b| b == b'-');
    let is_flag = text[name_start..].starts_with(b"-") || (dashes > 0 && head == dashes);
    let place = separator(text, name_start, name_end, is_flag)
        .or_else(|| fields::value(text, kind, name_start, name_end))
        .or_else(|| (kind == Word::Password).then(|| netrc(text, name_start, name_end)).flatten())
        .or_else(|| (kind == Word::Password).then(|| in_sql(text, name_start, name_end)).flatten())
        .or_else(|| sentence::assignment(text, name_start, name_end));
    let Some((separator, at)) = place else { return sentence::value(text, kind, name_end) };
    if separator == Separator::Colon
        && let Some(value) = next_line::value(text, kind, name_start, at)
    {
        return Some(value);
    }
    match kind {
        Word::Authorization => return authorization(text, at),
        Word::Cookie => return cookie(text, at, separator),
        _ => {}
    }
    if separator != Separator::Space
        && let Some(values) = collection::values(text, kind, at)
    {
        return Some(values);
    }
    let value = Value::read(text, unwrapped(text, at), separator)?;
    if is_plural(&text[word.start..word_end], &text[word_end..name_end])
        || (kind == Word::Key && is_bare(&text[name_start..word.start]))
    {
        let shown = &text[value.start..value.end];
        let is_secret = is_key_like(shown) && !is_placeholder(shown) && !is_path(shown);
        return is_secret.then(|| value.range(text));
    }
    if is_weak(kind, &text[name_start..word.start], &text[word.start..word_end]) {
        let shown = &text[value.start..value.end];
        let is_assigned = (kind != Word::Weak
            && (value.quote.is_some() || value.separator == Separator::Equals))
            || (kind == Word::Pw && is_flag);
        let is_secret = shown.len() >= 8
            && is_dense(shown)
            && (is_random(shown) || (is_assigned && is_mixed(shown) && (kind == Word::Pw || head == 0)));
        return (is_secret && !is_placeholder(shown) && !is_path(shown)).then(|| value.range(text));
    }
    let is_password = matches!(kind, Word::Password | Word::Pass);
    if is_password && value.quote.is_none() && value.separator == Separator::Colon {
        return value.password_line(text);
    }
    value.is_secret(text, kind, is_flag).then(|| value.range(text))
}

/// What stands before `pass` in the names of passwords, without a sign between them.
const BEFORE_PASS: &[&str] = &[
    "db", "user", "root", "smtp", "ftp", "admin", "mail", "redis", "sql", "ssh", "pg", "vnc", "imap", "ldap",
];

fn ends_in(text: &[u8], list: &[&str]) -> bool {
    list.iter().any(|one| {
        text.len() >= one.len() && text[text.len() - one.len()..].eq_ignore_ascii_case(one.as_bytes())
    })
}

/// Whether a name says so little that its value has to be random: `pass`, which tests do, `pw`, and
/// what is secret of some things alone.
fn is_weak(kind: Word, head: &[u8], word: &[u8]) -> bool {
    let is_joined = head.last().is_some_and(|byte| matches!(byte, b'_' | b'-' | b'.'));
    let is_camel = word[0].is_ascii_uppercase() && head.last().is_some_and(u8::is_ascii_lowercase);
    match kind {
        Word::Pw | Word::Weak => true,
        Word::Pass => !((is_joined && !head.starts_with(b"-p")) || ends_in(head, BEFORE_PASS) || is_camel),
        _ => false,
    }
}

/// Whether the rest of a name belongs to its word: `token_v2`, `passwordProd`, not `tokenizer`.
fn goes_on(word: &[u8], rest: &[u8]) -> bool {
    let Some(first) = rest.first() else { return true };
    let is_camel = first.is_ascii_uppercase() && word.last().is_some_and(u8::is_ascii_lowercase);
    let is_plural = is_s(rest) && (word.eq_ignore_ascii_case(b"credential") || is_plural(word, rest));
    let is_number = rest.iter().all(u8::is_ascii_digit);
    if !(is_camel || is_plural || is_number || matches!(first, b'_' | b'-')) {
        return false;
    }
    let last = rest.rsplit(|byte| matches!(byte, b'_' | b'-' | b'.')).next().unwrap_or_default();
    let camel = last.iter().rposition(u8::is_ascii_uppercase).map_or(last, |at| &last[at..]);
    !HARMLESS_ENDS.iter().any(|end| {
        end.as_bytes().eq_ignore_ascii_case(last) || (is_camel && end.as_bytes().eq_ignore_ascii_case(camel))
    })
}

fn is_s(rest: &[u8]) -> bool {
    matches!(rest, b"s" | b"S")
}

/// `tokens`, `passwords`: counts of them, and names of things, are more common than their values.
fn is_plural(word: &[u8], rest: &[u8]) -> bool {
    const WORDS: &[&str] = &["password", "passwd", "secret", "token", "apikey", "key"];
    is_s(rest) && WORDS.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(word))
}

/// Whether nothing stands before the word in its name but the dashes of a flag.
fn is_bare(head: &[u8]) -> bool {
    head.iter().all(|byte| *byte == b'-')
}

/// Where a value begins that a language has wrapped: `Some("…")`, `string(12) "…"`, `b'…'`.
fn unwrapped(text: &[u8], at: usize) -> usize {
    let rest = &text[at..];
    let is_quote = |byte: Option<&u8>| matches!(byte, Some(b'"' | b'\''));
    // Three quotes of Python and of TOML.
    if rest.starts_with(b"\"\"\"") || rest.starts_with(b"'''") {
        return at + 2;
    }
    if rest.starts_with(b"Some(") && is_quote(rest.get(5)) {
        return at + 5;
    }
    if let Some(number) = rest.strip_prefix(b"string(") {
        let digits = run_within(number, 6, |byte| byte.is_ascii_digit());
        if number[digits..].starts_with(b") ") && is_quote(number.get(digits + 2)) {
            return at + b"string(".len() + digits + 2;
        }
    }
    at + usize::from(rest.first() == Some(&b'b') && is_quote(rest.get(1)))
}

/// The word before a place, as in `API key`.
fn word_before(text: &[u8], at: usize) -> &[u8] {
    const WORD_BYTES_MAX: usize = 16;
    let Some(before) = text[..at].strip_suffix(b" ") else { return b"" };
    &before[before.len() - run_back(before, WORD_BYTES_MAX, |byte| byte.is_ascii_alphabetic())..]
}

fn is_secret_name(
    text: &[u8],
    kind: Word,
    name_start: usize,
    start: usize,
    end: usize,
    name_end: usize,
) -> bool {
    let head = &text[name_start..start];
    // `-Dsigning.key=x` sets a property of a program in Java.
    let head = head.strip_prefix(b"-D").unwrap_or(head);
    let is_joined = head.last().is_some_and(|byte| matches!(byte, b'_' | b'-' | b'.'));
    // The word before this one in the name.
    let words =
        head.strip_suffix(b"_").or(head.strip_suffix(b"-")).or(head.strip_suffix(b".")).unwrap_or(head);
    let is_camel = text[start].is_ascii_uppercase() && words.last().is_some_and(u8::is_ascii_lowercase);
    let begins = words.iter().rposition(|byte| matches!(byte, b'_' | b'-' | b'.')).map_or(0, |at| at + 1);
    let last = &words[begins..];
    let last = match is_camel {
        true => last.iter().rposition(u8::is_ascii_uppercase).map_or(last, |at| &last[at..]),
        false => last,
    };
    let is_one_of = |list: &[&str]| list.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(last));
    match kind {
        Word::Pass => !head.starts_with(b"-p"),
        Word::Weak => end == name_end,
        Word::Pw => {
            let is_word = head.is_empty() || is_joined || is_camel || ends_in(last, BEFORE_PASS);
            end == name_end && is_word && !head.starts_with(b"-p")
        }
        Word::Key => {
            is_one_of(SECRET_KEYS)
                || (!is_joined && ends_in(last, &["api", "access", "secret", "private", "account"]))
                || (is_bare(head) && (!head.is_empty() || is_parameter(text, name_start)))
                || (head.is_empty() && is_key_of(word_before(text, name_start)))
        }
        Word::Auth => {
            // `X-Auth:` is a header.
            let is_header = head.get(..2).is_some_and(|start| start.eq_ignore_ascii_case(b"x-")) && is_joined;
            end == name_end && (is_bare(head) || head.ends_with(b"_") || is_header)
        }
        Word::Signature => {
            let at_start = !before_is_word(text, start);
            match text[start].to_ascii_lowercase() {
                // `sig=`, `code=`: a parameter of an address.
                b's' if end - start == 3 => at_start,
                b's' => {
                    end == name_end && (is_joined || is_parameter(text, name_start) || text[start] == b'S')
                }
                _ => is_parameter(text, start),
            }
        }
        Word::Cookie => end == name_end,
        Word::Authorization => end == name_end,
        Word::Token => {
            let is_word = head.is_empty() || is_joined || is_camel || !last.is_empty();
            is_word && !is_one_of(&["unexpected", "max", "page", "next", "continuation", "cancellation"])
        }
        Word::Password => true,
        Word::Secret => !is_resource(text, name_start),
    }
}

/// Whether keys of this are secret in prose: `API key`, `private key`.
fn is_key_of(word: &[u8]) -> bool {
    const WORDS: &[&str] =
        &["api", "access", "secret", "private", "encryption", "signing", "master", "auth", "account"];
    WORDS.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(word))
}

/// Whether a name is part of that of a resource: `arn:aws:secretsmanager:…:secret:NAME`.
fn is_resource(text: &[u8], name_start: usize) -> bool {
    const RESOURCE_BYTES_MAX: usize = 128;
    if name_start == 0 || text[name_start - 1] != b':' {
        return false;
    }
    let before = &text[..name_start];
    let is_part = |byte: u8| is_name_byte(byte) || matches!(byte, b':' | b'/');
    let resource = &before[before.len() - run_back(before, RESOURCE_BYTES_MAX, is_part)..];
    memchr::memmem::find(resource, b"arn:").is_some()
}

fn before_is_word(text: &[u8], at: usize) -> bool {
    at > 0 && text[at - 1].is_ascii_alphanumeric()
}

fn is_parameter(text: &[u8], at: usize) -> bool {
    at > 0 && matches!(text[at - 1], b'?' | b'&')
}

/// What separates a name from its value, and where the value begins.
fn separator(text: &[u8], name_start: usize, name_end: usize, is_flag: bool) -> Option<(Separator, usize)> {
    let rest = &text[name_end..];
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t');
    if rest.first() == Some(&b'>') && is_element(text, name_start, name_end + 1) {
        return Some((Separator::Element, name_end + 1));
    }
    if is_flag && rest.first() == Some(&b' ') {
        return Some((Separator::Space, name_end + run_within(rest, 8, is_space)));
    }
    let mut at = run_within(rest, 3, |byte| matches!(byte, b'"' | b'\'' | b'`' | b']' | b')'));
    let is_quoted = at > 0;
    at += run_within(&rest[at..], 24, is_space);
    let skip = |from: usize| name_end + from + run_within(&rest[from..], 24, is_space);
    match &rest[at..] {
        [b'=', b'=' | b'~', ..] | [b':', b':', ..] | [b':', b'/', b'/', ..] => None,
        [b'=', b'>', b'\n', ..] => {
            // `["password"]=>` and the value below it, as PHP prints it.
            let blanks = run_within(&rest[at + 3..], 24, is_space);
            Some((Separator::Equals, name_end + at + 3 + blanks))
        }
        [b'=', b'>', ..] | [b':', b'=', ..] => Some((Separator::Equals, skip(at + 2))),
        [b'=', ..] => Some((Separator::Equals, skip(at + 1))),
        [b':', ..] => Some((Separator::Colon, skip(at + 1))),
        after if is_quoted && after.starts_with(b"value=") => Some((Separator::Equals, name_end + at + 6)),
        _ => None,
    }
}

/// Whether a name in angle brackets is an element whose value, which begins at `at`, is followed by
/// its end: `<password>…</password>`, `<ns:password>…`; not `--password <PASSWORD>  what it is`.
fn is_element(text: &[u8], name_start: usize, at: usize) -> bool {
    let before = &text[..name_start];
    let before = match before.strip_suffix(b":") {
        Some(before) => &before[..before.len() - run_back(before, NAME_BYTES_MAX, is_name_byte)],
        None => before,
    };
    let length = run_within(&text[at..], VALUE_BYTES_MAX, |byte| byte != b'<' && byte != b'\n');
    before.ends_with(b"<") && (length == VALUE_BYTES_MAX || text.get(at + length) == Some(&b'<'))
}

/// `machine HOST login NAME password SECRET`, or the last part on a line of its own.
fn netrc(text: &[u8], name_start: usize, name_end: usize) -> Option<(Separator, usize)> {
    const ENTRY_BYTES_MAX: usize = 120;
    if text.get(name_end) != Some(&b' ') {
        return None;
    }
    let before = &text[..name_start];
    let line = &before[before.len() - run_back(before, ENTRY_BYTES_MAX, |byte| byte != b'\n')..];
    let has = |word: &[u8]| memchr::memmem::find(line, word).is_some();
    let rest = &text[name_end + 1..];
    let length = run_within(rest, VALUE_BYTES_MAX, |byte| !byte.is_ascii_whitespace());
    let is_last = rest.get(length).is_none_or(|byte| *byte == b'\n');
    let is_alone = is_last && line.iter().all(u8::is_ascii_whitespace) && is_mixed(&rest[..length]);
    let is_default = line.trim_ascii_start().starts_with(b"default login ");
    ((has(b"login ") && has(b"machine ")) || is_default || is_alone)
        .then_some((Separator::Space, name_end + 1))
}

/// `PASSWORD '…'` and `PASSWORD('…')` of SQL.
fn in_sql(text: &[u8], name_start: usize, name_end: usize) -> Option<(Separator, usize)> {
    let is_value = |at: usize| super::sql::value(text, at).map(|_| (Separator::Equals, at));
    match &text[name_end..] {
        [b' ', b'\'', ..] => is_value(name_end + 1),
        [b'(', b'\'', ..] if super::sql::is_statement(text, name_start) => is_value(name_end + 1),
        _ => None,
    }
}

/// A value, as far as it decides.
#[derive(Debug)]
struct Value {
    start: usize,
    end: usize,
    quote: Option<u8>,
    separator: Separator,
}

impl Value {
    fn read(text: &[u8], at: usize, separator: Separator) -> Option<Self> {
        let quote = text.get(at).copied().filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
        let start = at + usize::from(quote.is_some());
        let mut this = Self { start, end: start, quote, separator };
        this.end = this.end_within(text, VALUE_BYTES_MAX);
        // A quote that is not closed is none.
        if quote.is_some() && this.end - start < VALUE_BYTES_MAX && text.get(this.end).copied() != quote {
            this.quote = None;
            this.end = this.end_within(text, VALUE_BYTES_MAX);
        }
        (this.end > start).then_some(this)
    }

    /// Where it ends; of a longer one, where `most` bytes do.
    fn end_within(&self, text: &[u8], most: usize) -> usize {
        let rest = &text[self.start..];
        let rest = &rest[..rest.len().min(most)];
        let is_end = |at: usize| {
            let byte = rest[at];
            let next = rest.get(at + 1).copied();
            match (self.quote, self.separator) {
                (Some(quote), _) => byte == b'\n' || (byte == quote && (at == 0 || rest[at - 1] != b'\\')),
                (None, Separator::Element) => byte == b'<' || byte == b'\n',
                // Of a connection string, or a command: `Pwd=x;Server=y`, `A=x; b`.
                (None, Separator::Equals) if byte == b';' => {
                    next.is_none_or(|next| next.is_ascii_whitespace() || next.is_ascii_alphabetic())
                }
                (None, Separator::Equals) => {
                    byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'&' | b'`')
                }
                (None, _) => byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`'),
            }
        };
        let end = (0..rest.len()).find(|at| is_end(*at)).unwrap_or(rest.len());
        if self.quote.is_some() || end == most {
            return self.start + end;
        }
        let value = &rest[..end];
        let after =
            run_back(value, 4, |byte| matches!(byte, b',' | b')' | b']' | b'}' | b';' | b'>' | b'.' | b':'));
        self.start + end - after
    }

    /// Where all of it is.
    fn range(&self, text: &[u8]) -> Range<usize> {
        self.start..self.end_within(text, usize::MAX).max(self.end)
    }

    fn is_secret(&self, text: &[u8], kind: Word, is_flag: bool) -> bool {
        let value = &text[self.start..self.end];
        let is_password = matches!(kind, Word::Password | Word::Pass);
        let is_secret = is_password || kind == Word::Secret;
        if is_placeholder(value) || (is_path(value) && !(is_password && self.quote.is_some())) {
            return false;
        }
        let has_space = value.iter().any(u8::is_ascii_whitespace);
        match (self.quote.is_some(), self.separator) {
            _ if matches!(kind, Word::Auth | Word::Signature) => value.len() >= 12 && is_dense(value),
            _ if kind == Word::Key && is_flag && value.len() < 8 => false,
            (true, _) if has_space => is_secret && !is_prose(value) && value.len() >= 6,
            (true, _) => {
                (is_secret && value.len() >= 4) || (value.len() >= 8 && is_mixed(value)) || is_dense(value)
            }
            (false, Separator::Element) => (is_secret && value.len() >= 4) || is_dense(value),
            (false, Separator::Space) => {
                value.len() >= 3
                    && value[0] != b'-'
                    && !is_small_word(value)
                    && (is_secret
                        || is_mixed(value)
                        || value.len() >= 16
                        || is_flag && matches!(kind, Word::Token | Word::Key))
            }
            (false, Separator::Equals) => {
                let is_typed = is_flag && matches!(kind, Word::Token | Word::Key) && !is_small_word(value);
                (is_typed && value.len() >= 8)
                    || (is_secret && value.len() >= 3)
                    || is_dense(value)
                    || is_dense(value.split(|byte| *byte == b',').next().unwrap_or_default())
                    || (value.len() >= 16 && is_mixed(value))
            }
            (false, Separator::Colon) => {
                (is_dense(value) || (value.len() >= 16 && is_mixed(value)))
                    && !value.ends_with(b":")
                    && value.iter().all(|byte| is_key_byte(*byte) || !byte.is_ascii_punctuation())
                    || (kind == Word::Secret && value.len() >= 8 && is_mixed(value))
            }
        }
    }

    /// `password: …`: one word, or all words to the end of the line where they are no sentence.
    fn password_line(&self, text: &[u8]) -> Option<Range<usize>> {
        const WORDS_MAX: usize = 8;
        let rest = &text[self.start..];
        let length = run_within(rest, VALUE_BYTES_MAX, |byte| !matches!(byte, b'\n' | b'"' | b'`'));
        let line = rest[..length].trim_ascii_end();
        let first = &text[self.start..self.end];
        if is_placeholder(first) || is_path(first) {
            return None;
        }
        if is_dense(first) {
            return Some(self.range(text));
        }
        let is_code = line.iter().any(|byte| matches!(byte, b'(' | b'{' | b'[' | b'<' | b'|'));
        if is_code || first.len() < 4 || line.ends_with(b":") {
            return None;
        }
        let words = line.split(u8::is_ascii_whitespace).count();
        let is_phrase = !is_prose(line)
            && words <= WORDS_MAX
            && (is_mixed(first) || line.iter().all(|b| b.is_ascii_lowercase() || *b == b' '));
        match words {
            1 => Some(self.range(text)),
            _ => is_phrase.then(|| self.start..self.start + line.len()),
        }
    }
}

/// How much of a header decides.
const HEADER_BYTES_MAX: usize = 256;

/// `Authorization: SCHEME CREDENTIALS`: all but the scheme.
fn authorization(text: &[u8], at: usize) -> Option<Range<usize>> {
    let quote = text.get(at).copied().filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let start = at + usize::from(quote.is_some());
    let is_inside = |byte: u8| byte != b'\n' && Some(byte) != quote && !matches!(byte, b'"' | b'\'' | b'`');
    let rest = &text[start..];
    let line = &rest[..run_within(rest, HEADER_BYTES_MAX, is_inside)];
    let first = run(line, |byte| !byte.is_ascii_whitespace());
    let spaces = run(&line[first..], |byte| byte == b' ');
    let second = &line[first + spaces..];
    let word = run(second, |byte| !byte.is_ascii_whitespace());
    let credentials = &second[..word];
    if second.is_empty()
        || !line[..first].iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    {
        let value = &line[..first];
        let is_secret = is_dense(value) || (value.len() >= 16 && is_mixed(value));
        return (is_secret && !is_placeholder(value))
            .then(|| start..start + run(rest, |b| is_inside(b) && !b.is_ascii_whitespace()));
    }
    if is_placeholder(credentials) || is_small_word(&line[..first]) || is_small_word(credentials) {
        return None;
    }
    let from = start + first + spaces;
    // Parameters go on to the end of the header: `Digest username="x", response="y"`.
    let next = text.get(from + word).copied();
    let is_padding = credentials.ends_with(b"=") && !matches!(next, Some(b'"' | b'\''));
    if (credentials.contains(&b'=') && !is_padding) || credentials.ends_with(b",") {
        return Some(from..from + run(&text[from..], |byte| byte != b'\n'));
    }
    let known = [&b"bearer"[..], b"basic", b"token", b"apikey", b"negotiate", b"ntlm", b"bot"];
    let is_known = known.iter().any(|scheme| line[..first].eq_ignore_ascii_case(scheme));
    let is_secret = credentials.len() >= 6 && (is_mixed(credentials) || (is_known && second.len() == word));
    is_secret.then(|| from..from + run(&text[from..], |byte| is_inside(byte) && !byte.is_ascii_whitespace()))
}

/// `Cookie: a=b; c=d`, to its end; of `Set-Cookie`, its attributes, too.
fn cookie(text: &[u8], at: usize, separator: Separator) -> Option<Range<usize>> {
    let quote = text.get(at).copied().filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let start = at + usize::from(quote.is_some());
    let is_inside = |byte: u8| {
        byte != b'\n'
            && if quote.is_some() { Some(byte) != quote } else { !matches!(byte, b'"' | b'\'' | b'`') }
    };
    let rest = &text[start..];
    let line = &rest[..run_within(rest, HEADER_BYTES_MAX, is_inside)];
    let first = &line[..run(line, |byte| !byte.is_ascii_whitespace())];
    let has_pair = line.split(|byte| *byte == b';').any(is_cookie);
    let is_secret = has_pair || (is_dense(first) && first.len() >= 12);
    if !is_secret || is_placeholder(first) || separator == Separator::Element {
        return None;
    }
    // Several pairs are one header.
    let whole = has_pair || quote.is_some();
    Some(start..start + run(rest, |byte| is_inside(byte) && (whole || !byte.is_ascii_whitespace())))
}

/// A pair of a cookie that says more than how it is kept: `sid=…`, not `Max-Age=3600`.
fn is_cookie(pair: &[u8]) -> bool {
    const ATTRIBUTES: &[&str] = &["path", "domain", "expires", "max-age", "samesite", "priority", "version"];
    const VALUE_BYTES_MIN: usize = 4;
    let pair = pair.trim_ascii();
    let Some(equals) = memchr::memchr(b'=', pair).filter(|at| *at > 0) else { return false };
    let (name, value) = (&pair[..equals], &pair[equals + 1..]);
    value.len() >= VALUE_BYTES_MIN
        && !name.iter().any(u8::is_ascii_whitespace)
        && !ATTRIBUTES.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(name))
}

/// `Bearer …` and its kin, wherever they stand.
pub(super) fn after_scheme(text: &[u8], scheme: Range<usize>) -> Option<Range<usize>> {
    if before_is_word(text, scheme.start) {
        return None;
    }
    let rest = &text[scheme.end..];
    let length = run_within(rest, VALUE_BYTES_MAX, is_key_byte);
    let value = &rest[..length];
    let is_secret = value.len() >= 8
        && !is_path(value)
        && (value.iter().any(u8::is_ascii_digit) && is_mixed(value)
            || (value.len() >= 16 && is_mixed(value)));
    is_secret.then(|| scheme.end..scheme.end + run(rest, is_key_byte))
}
