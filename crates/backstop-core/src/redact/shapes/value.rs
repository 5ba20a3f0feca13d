//! What a value looks like: random, a placeholder, a path, prose.

use super::is_key_byte;

/// No more of a value than this decides whether it is a secret.
pub(super) const VALUE_BYTES_MAX: usize = 256;

/// Letters and digits, or letters of both cases: more than a word.
pub(super) fn is_mixed(text: &[u8]) -> bool {
    let count = |accept: fn(&u8) -> bool| text.iter().filter(|byte| accept(byte)).count();
    let (digits, upper, lower) =
        (count(u8::is_ascii_digit), count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    digits >= 2 || (digits >= 1 && upper + lower >= 6) || (upper >= 2 && lower >= 2)
}

/// Letters of both cases and digits, not in words: random beyond doubt.
pub(super) fn is_random(text: &[u8]) -> bool {
    let text = &text[..text.len().min(48)];
    let count = |accept: fn(&u8) -> bool| text.iter().filter(|byte| accept(byte)).count();
    let changes = text.windows(2).filter(|pair| class(pair[0]) != class(pair[1])).count();
    count(u8::is_ascii_digit) >= 2
        && count(u8::is_ascii_uppercase) >= 2
        && count(u8::is_ascii_lowercase) >= 2
        && changes * 4 >= text.len()
}

/// Letters of both cases and digits that change so often that they are no words at all.
pub(super) fn is_very_random(text: &[u8]) -> bool {
    const CHANGES_PERCENT_MIN: usize = 42;
    let text = &text[..text.len().min(64)];
    let count = |accept: fn(&u8) -> bool| text.iter().filter(|byte| accept(byte)).count();
    let changes = text.windows(2).filter(|pair| class(pair[0]) != class(pair[1])).count();
    count(u8::is_ascii_digit) >= 1
        && count(u8::is_ascii_uppercase) >= 2
        && count(u8::is_ascii_lowercase) >= 2
        && changes * 100 >= text.len() * CHANGES_PERCENT_MIN
}

/// Random enough to be a key: [`is_random`], or a long row of hexadecimal digits.
pub(super) fn is_key_like(text: &[u8]) -> bool {
    const BYTES_MIN: usize = 12;
    (text.len() >= BYTES_MIN && is_random(text) && is_dense(text)) || is_hex_key(text)
}

/// As many hexadecimal digits as keys have.
pub(super) fn is_hex_key(text: &[u8]) -> bool {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    (32..=128).contains(&text.len())
        && text.iter().all(u8::is_ascii_hexdigit)
        && digits >= 4
        && text.len() - digits >= 4
}

/// Letters of both cases and a digit, in turn: a password that a program made.
pub(super) fn is_generated(text: &[u8]) -> bool {
    let changes = text.windows(2).filter(|pair| class(pair[0]) != class(pair[1])).count();
    (8..=64).contains(&text.len())
        && text.iter().all(u8::is_ascii_graphic)
        && text.iter().any(u8::is_ascii_digit)
        && text.iter().any(u8::is_ascii_uppercase)
        && text.iter().any(u8::is_ascii_lowercase)
        && changes * 5 >= text.len() * 2
}

fn class(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    }
}

/// At least 8 letters, digits and signs, with both a digit and a letter.
pub(super) fn is_dense(text: &[u8]) -> bool {
    const BYTES_MIN: usize = 8;
    text.len() >= BYTES_MIN
        && text
            .iter()
            .all(|byte| is_key_byte(*byte) || matches!(byte, b'%' | b':' | b'|' | b'!' | b'@' | b'$'))
        && text.iter().any(u8::is_ascii_digit)
        && text.iter().any(u8::is_ascii_alphabetic)
}

/// Values that stand for something else, or say that there is none; kinds of values in code and in
/// schemas; what is said of a value instead of it.
const PLACEHOLDERS: &[&str] = &[
    "true",
    "false",
    "none",
    "null",
    "nil",
    "undefined",
    "string",
    "str",
    "text",
    "int",
    "integer",
    "number",
    "bool",
    "boolean",
    "bytes",
    "object",
    "array",
    "buffer",
    "any",
    "void",
    "char",
    "varchar",
    "optional",
    "required",
    "missing",
    "invalid",
    "incorrect",
    "wrong",
    "expired",
    "empty",
    "unset",
    "set",
    "not",
    "yes",
    "ok",
    "no",
    "on",
    "off",
    "enabled",
    "disabled",
    "unknown",
    "default",
    "hidden",
    "masked",
    "redacted",
    "ok.",
    "failed",
    "failed.",
    "denied",
    "rejected",
    "unauthorized",
    "bearer",
    "basic",
    "password",
    "passwd",
    "secret",
    "token",
    "passphrase",
    "changed",
    "updated",
    "deleted",
    "created",
    "mismatch",
    "accepted",
    "passed",
    "error",
    "error:",
    "got",
    "expected",
    "identifier",
    "keyword",
    "punctuation",
    "prompt",
    "stdin",
    "manual",
    "auto",
    "always",
    "never",
    "self",
    "nothing",
    "skipped",
    "found",
    "write",
    "read",
    "inherit",
    "example",
    "never[]",
    "string[]",
    "secretstr",
    "cstring",
    "osstring",
    "path",
    "pathbuf",
    "file",
    "plain",
    "plaintext",
    "encrypted",
    "hashed",
    "sensitive",
    "(sensitive",
    "reset",
];

/// Whether a value stands for another: a variable, a mask, a type, a word of ours.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    let word = value.strip_suffix(b",").or(value.strip_suffix(b";")).unwrap_or(value);
    let [first, ..] = *word else { return true };
    let is_same = word.iter().all(|byte| *byte == first);
    let is_name = |name: &[u8]| {
        name.first().is_some_and(|byte| byte.is_ascii_uppercase() || *byte == b'_')
            && name.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_')
    };
    let is_variable = word.starts_with(b"${")
        || word.starts_with(b"$(")
        || word.starts_with(b"{{")
        || word.starts_with(b"#{")
        || word.starts_with(b"<")
        || word.strip_prefix(b"$").is_some_and(is_name)
        || word.strip_prefix(b"%").is_some_and(|rest| rest.strip_suffix(b"%").is_some_and(is_name));
    let is_mask = word.starts_with(b"[") || word.starts_with(b"***") || word.starts_with(b"xxxx");
    // `%s`, `%(name)s`, `{name}`.
    let is_format = (word.len() <= 3 && first == b'%')
        || word.starts_with(b"%(")
        || (first == b'{' && !word.iter().any(u8::is_ascii_digit));
    is_same
        || is_variable
        || is_mask
        || is_format
        || PLACEHOLDERS.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(word))
        || is_code(word)
}

/// A call, a member, a type with parameters.
fn is_code(word: &[u8]) -> bool {
    const ROOTS: &[&[u8]] = &[
        b"process.env",
        b"os.environ",
        b"os.getenv",
        b"env.",
        b"secrets.",
        b"self.",
        b"this.",
        b"config.",
        b"settings.",
        b"std::",
        b"options.",
        b"args.",
        b"request.",
        b"req.",
        b"user.",
        b"vars.",
        b"var.",
        b"import.meta",
        b"System.getenv",
        b"ENV[",
        b"Optional[",
        b"Option<",
        b"Secret<",
        b"Vec<",
        b"&str",
        b"&'",
        b"&mut",
        b"Promise<",
        b"Record<",
        b"z.",
        b"data.",
        b"local.",
        b"params.",
        b"sha256:",
        b"sha512-",
        b"sha384-",
        b"sha1-",
        b"refs/",
    ];
    if ROOTS.iter().any(|root| word.starts_with(root)) {
        return true;
    }
    let Some(open) = memchr::memchr(b'(', word) else { return false };
    let callee = &word[..open];
    !callee.is_empty()
        && callee.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':'))
        && callee[0].is_ascii_alphabetic()
}

/// The path of a file.
pub(super) fn is_path(value: &[u8]) -> bool {
    const STARTS: &[&[u8]] = &[b"/", b"./", b"../", b"~/", b"C:\\", b"file:", b"http://", b"https://"];
    const ENDS: &[&[u8]] = &[
        b".pem", b".key", b".pub", b".crt", b".json", b".txt", b".toml", b".yaml", b".yml", b".env", b".ts",
        b".rs", b".py", b".js", b".go", b".java", b".p12", b".jks", b".html", b".md",
    ];
    STARTS.iter().any(|start| value.starts_with(start)) || ENDS.iter().any(|end| value.ends_with(end))
}

/// Small words: what has one of them is a sentence.
const SMALL_WORDS: &[&str] = &[
    "must", "is", "be", "not", "the", "a", "an", "for", "should", "cannot", "can", "too", "has", "have",
    "was", "are", "expected", "to", "of", "in", "with", "at", "contain", "contains", "required", "invalid",
    "please", "and", "or", "from", "on", "when", "if", "your", "no", "will", "does", "did", "do", "least",
    "than", "only", "found", "by", "failed", "it", "this", "that", "as", "may", "using", "via", "into",
    "but", "were", "been",
];

/// Whether a line of several words is a sentence.
pub(super) fn is_prose(line: &[u8]) -> bool {
    line.split(u8::is_ascii_whitespace)
        .map(<[u8]>::trim_ascii)
        .any(|word| SMALL_WORDS.iter().any(|small| small.as_bytes().eq_ignore_ascii_case(word)))
}

/// Whether a word is one of a sentence.
pub(super) fn is_small_word(word: &[u8]) -> bool {
    const OTHERS: &[&str] =
        &["flag", "option", "argument", "parameter", "value", "instead", "which", "after"];
    is_prose(word) || OTHERS.iter().any(|other| other.as_bytes().eq_ignore_ascii_case(word))
}
