//! Parses values: text or TOML goes in, a checked value or an error comes out.
//!
//! It must not know where a value came from: the caller adds that.

use super::endpoint::parse_endpoint;
use super::keys::{self, Key, ValueKind, YES_OR_NO};
use backstop_core::duration::{parse, parse_size, shown};
use backstop_core::nearest::nearest;
use backstop_core::{ATTEMPTS_MAX, DELAY_MAX, Jitter, Reason, SafeText, TAXONOMY};
use backstop_http::Address;
use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;
use toml::Spanned;
use toml::de::DeValue;

/// The most entries in a list.
const LIST_MAX: usize = 100;
/// The longest text, in bytes.
const TEXT_BYTES_MAX: usize = 4096;
/// How many characters of a value are shown in an error.
const FOUND_CHARS_MAX: usize = 60;
/// The word for "no value".
const NONE: &str = "none";

/// A checked value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// Explicitly none.
    None,
    /// A duration.
    Duration(Duration),
    /// Durations, in order.
    Durations(Vec<Duration>),
    /// A number.
    Count(u64),
    /// Bytes.
    Size(u64),
    /// A word or a path.
    Text(String),
    /// Names or paths.
    Texts(Vec<String>),
    /// The jitter of delays.
    Jitter(Jitter),
    /// What is done about a reason.
    Action(ReasonAction),
}

/// What the configuration says to do about a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReasonAction {
    /// Retry, with this many attempts in all; `None` for the profile's own number.
    Retry(Option<u32>),
    /// Return the fault to the caller.
    Surface,
    /// Halt the run.
    Halt,
    /// Defer the operation.
    Defer,
    /// Ask for confirmation.
    Confirm,
}

/// The words for actions.
const ACTIONS: &[(&str, ReasonAction)] = &[
    ("retry", ReasonAction::Retry(None)),
    ("surface", ReasonAction::Surface),
    ("halt", ReasonAction::Halt),
    ("defer", ReasonAction::Defer),
    ("confirm", ReasonAction::Confirm),
];

/// A value with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    /// The value.
    pub value: Value,
    /// The text as it was written; for a list, as it would be written in a file.
    pub text: String,
}

/// An error in a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// What was found and what was expected.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
    /// The position in the file, where it is more precise than the position of the value.
    pub at: Option<usize>,
}

impl Wrong {
    fn new(message: String) -> Self {
        Self { message, hint: None, at: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

fn shown_text(text: &str) -> String {
    SafeText::new(text).line(FOUND_CHARS_MAX)
}

impl ValueKind {
    /// A value of this type, as part of a sentence.
    pub fn noun(&self) -> String {
        match self {
            ValueKind::Duration { none: true, .. } => {
                "a duration such as 30 (seconds) or \"10m\", or \"none\"".to_owned()
            }
            ValueKind::Duration { .. } => "a duration such as 30 (seconds) or \"10m\"".to_owned(),
            ValueKind::Durations => "a list of durations such as [\"1s\", \"5s\"]".to_owned(),
            ValueKind::Count { min, max } => format!("a number from {min} to {max}"),
            ValueKind::Size { .. } => "a size such as \"8MB\"".to_owned(),
            ValueKind::Dollars => "US dollars such as 5.00, or \"none\"".to_owned(),
            ValueKind::Tokens => "a number of tokens such as 500000 or \"2M\", or \"none\"".to_owned(),
            ValueKind::OneOf(words) => format!("one of {}", words.join(", ")),
            ValueKind::Path => "a path, or \"none\"".to_owned(),
            ValueKind::Paths => "a list of paths".to_owned(),
            ValueKind::Words => "a list of words such as [\"npm\", \"test\"]".to_owned(),
            ValueKind::Reasons => "a list of reasons such as [\"disk_full\"]".to_owned(),
            ValueKind::Endpoint => "an address such as \"http://127.0.0.1:4318\", or \"none\"".to_owned(),
            ValueKind::Address => "an address such as \"https://hooks.example.com/alerts\"".to_owned(),
            ValueKind::Line => "one line of text".to_owned(),
            ValueKind::Text => "text".to_owned(),
            ValueKind::ToolPatterns => "a list of tools such as [\"get_*\"]".to_owned(),
            ValueKind::Names => "a list of names of environment variables".to_owned(),
            ValueKind::Agents => "a list of agents such as [\"codex\"]".to_owned(),
            ValueKind::Patterns => "a list of commands such as [\"./deploy.sh *\"]".to_owned(),
            ValueKind::Jitter => "a jitter such as \"20%\", \"+10%\" or \"0\"".to_owned(),
            ValueKind::Action => "one of retry, retry:N, surface, halt, defer, confirm".to_owned(),
        }
    }

    /// Parses text from a file, the environment or a flag. For a list, the text is one entry.
    fn read(&self, given: &str) -> Result<Value, Wrong> {
        let text = given.trim();
        if text.len() > TEXT_BYTES_MAX {
            return Err(Wrong::new(format!(
                "a value has at most {TEXT_BYTES_MAX} bytes, this one has {}",
                text.len()
            )));
        }
        match self {
            ValueKind::Duration { none: true, .. }
            | ValueKind::Path
            | ValueKind::Endpoint
            | ValueKind::Dollars
            | ValueKind::Tokens
                if text == NONE =>
            {
                Ok(Value::None)
            }
            ValueKind::Duration { none, min, max } => duration(text, *none, *min, *max).map(Value::Duration),
            ValueKind::Durations => duration(text, false, Duration::ZERO, DELAY_MAX).map(Value::Duration),
            ValueKind::Count { min, max } => match text.parse::<u64>() {
                Ok(number) if (*min..=*max).contains(&number) => Ok(Value::Count(number)),
                _ => Err(Wrong::new(format!("found `{}`", shown_text(text)))),
            },
            ValueKind::Size { min, max } => {
                let bytes = parse_size(text).map_err(|error| Wrong::new(error.to_string()))?;
                if (*min..=*max).contains(&bytes) {
                    return Ok(Value::Size(bytes));
                }
                let range = format!("from {} to {}", size_shown(*min), size_shown(*max));
                Err(Wrong::new(format!("`{}` is not {range}", shown_text(text))))
            }
            ValueKind::Dollars => scaled(text.trim_start_matches('$'), 6, DOLLARS_MAX)
                .map(Value::Count)
                .ok_or_else(|| Wrong::new(format!("found `{}`", shown_text(text)))),
            ValueKind::Tokens => tokens(text)
                .map(Value::Count)
                .ok_or_else(|| Wrong::new(format!("found `{}`", shown_text(text)))),
            ValueKind::OneOf(words) => word(text, words).map(|word| Value::Text(word.to_owned())),
            ValueKind::Path | ValueKind::Paths if text.is_empty() || text.contains('\0') => {
                Err(Wrong::new(format!("`{}` is not a path", shown_text(text))))
            }
            ValueKind::Path | ValueKind::Paths => Ok(Value::Text(text.to_owned())),
            ValueKind::Endpoint => match parse_endpoint(text) {
                Ok(_) => Ok(Value::Text(text.to_owned())),
                // An address may contain a secret, so it is not shown.
                Err(wrong) if text.contains("://") => {
                    Err(Wrong::new(format!("what is there {wrong}")).hint(wrong.hint()))
                }
                Err(wrong) => Err(Wrong::new(format!("`{}` {wrong}", shown_text(text))).hint(wrong.hint())),
            },
            ValueKind::Address => match Address::parse(text) {
                Ok(_) => Ok(Value::Text(text.to_owned())),
                // The address may contain a secret, so it is not shown.
                Err(wrong) => Err(Wrong::new(format!("what is there {wrong}")).hint(wrong.hint())),
            },
            ValueKind::Words | ValueKind::Text if given.contains('\0') => {
                Err(Wrong::new("found a NUL character".to_owned()))
            }
            ValueKind::Words | ValueKind::Text => Ok(Value::Text(given.to_owned())),
            ValueKind::Reasons => match text.parse::<Reason>() {
                Ok(_) => Ok(Value::Text(text.to_owned())),
                Err(_) => {
                    let codes = TAXONOMY.iter().map(|row| row.code);
                    let hint = nearest(text, codes).map(|near| format!("did you mean `{near}`?"));
                    let hint = hint.unwrap_or_else(|| "`backstop reasons` lists them all".to_owned());
                    Err(Wrong::new(format!("there is no reason `{}`", shown_text(text))).hint(hint))
                }
            },
            ValueKind::Line | ValueKind::Patterns | ValueKind::ToolPatterns | ValueKind::Agents
                if text.is_empty() || text.chars().any(char::is_control) =>
            {
                Err(Wrong::new(format!("found `{}`", shown_text(text))))
            }
            ValueKind::Line | ValueKind::Patterns | ValueKind::ToolPatterns | ValueKind::Agents => {
                Ok(Value::Text(text.to_owned()))
            }
            ValueKind::Names => {
                let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
                if text.is_empty() || text.as_bytes()[0].is_ascii_digit() || !text.bytes().all(allowed) {
                    return Err(Wrong::new(format!(
                        "`{}` is not the name of an environment variable",
                        shown_text(text)
                    ))
                    .hint("give the name, such as \"API_KEY\": not `$API_KEY`, and not its value"));
                }
                Ok(Value::Text(text.to_owned()))
            }
            ValueKind::Jitter => jitter(text).map(Value::Jitter).ok_or_else(|| {
                Wrong::new(format!("`{}` is not a jitter", shown_text(text))).hint(
                    "write \"20%\" for both ways, \"+10%\" for only longer, \"0\" for none; at most 100%",
                )
            }),
            ValueKind::Action => action(text).map(Value::Action),
        }
    }
}

fn duration(text: &str, none: bool, min: Duration, max: Duration) -> Result<Duration, Wrong> {
    let duration = parse(text).map_err(|error| Wrong::new(error.to_string()))?;
    if (min..=max).contains(&duration) {
        return Ok(duration);
    }
    if none && duration.is_zero() {
        return Err(
            Wrong::new(format!("`{}` is no limit", shown_text(text))).hint("for no limit, write \"none\"")
        );
    }
    Err(Wrong::new(format!("`{}` is not from {} to {}", shown_text(text), shown(min), shown(max))))
}

fn word<'w>(text: &str, words: &[&'w str]) -> Result<&'w str, Wrong> {
    words.iter().find(|word| **word == text).copied().ok_or_else(|| {
        let wrong = Wrong::new(format!("found `{}`", shown_text(text)));
        match nearest(text, words.iter().copied()) {
            Some(near) => wrong.hint(format!("did you mean `{near}`?")),
            None => wrong,
        }
    })
}

/// The most dollars and tokens that can be allowed.
const DOLLARS_MAX: u64 = 1_000_000;
const TOKENS_MAX: u64 = 1_000_000_000_000;

/// A decimal number times ten to the power of `digits`, without a rounding error. More digits than
/// that are not read.
fn scaled(text: &str, digits: usize, max: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let given = !whole.is_empty() || !fraction.is_empty();
    if !given || !is_digits(whole) || !is_digits(fraction) || fraction.len() > digits {
        return None;
    }
    let unit = 10_u64.checked_pow(u32::try_from(digits).ok()?)?;
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok().filter(|n| *n <= max)? };
    let fraction = format!("{fraction:0<digits$}").parse::<u64>().unwrap_or(0);
    whole.checked_mul(unit)?.checked_add(fraction)
}

/// A number of tokens: `1500000`, `1_500_000`, `500k`, `1.5M`.
fn tokens(text: &str) -> Option<u64> {
    let text = text.replace('_', "");
    let (number, digits) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 3),
        None => match text.strip_suffix(['m', 'M']) {
            Some(number) => (number, 6),
            None => (text.as_str(), 0),
        },
    };
    scaled(number.trim(), digits, TOKENS_MAX).filter(|tokens| *tokens <= TOKENS_MAX)
}

fn jitter(text: &str) -> Option<Jitter> {
    if text == "0" {
        return Some(Jitter::None);
    }
    let (additive, number) = match text.strip_prefix('+') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let digits = number.strip_suffix('%')?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let percent: u8 = digits.parse().ok().filter(|percent| *percent <= 100)?;
    Some(match (percent, additive) {
        (0, _) => Jitter::None,
        (_, true) => Jitter::Additive(percent),
        (_, false) => Jitter::Symmetric(percent),
    })
}

fn action(text: &str) -> Result<ReasonAction, Wrong> {
    if let Some(times) = text.strip_prefix("retry:") {
        return match times.trim().parse::<u32>() {
            Ok(1) => Err(Wrong::new("`retry:1` is one attempt and no retry".to_owned())
                .hint("for no retry, write \"surface\"; `retry:2` is one retry")),
            Ok(times) if (2..=ATTEMPTS_MAX).contains(&times) => Ok(ReasonAction::Retry(Some(times))),
            _ => Err(Wrong::new(format!(
                "`{}` has no number of attempts from 2 to {ATTEMPTS_MAX}",
                shown_text(text)
            ))),
        };
    }
    let words: Vec<&str> = ACTIONS.iter().map(|(word, _)| *word).collect();
    let chosen = word(text, &words)?;
    // The word was checked against the list above.
    Ok(ACTIONS.iter().find(|(word, _)| *word == chosen).map_or(ReasonAction::Surface, |(_, action)| *action))
}

fn size_shown(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        b if b >= 1 << 30 => format!("{}GB", b >> 30),
        b if b >= 1 << 20 => format!("{}MB", b >> 20),
        b => format!("{}KB", b >> 10),
    }
}

/// Adds the key and its type to a message that does not mention them.
fn named(key: &str, kind: &ValueKind, mut wrong: Wrong) -> Wrong {
    wrong.message = match wrong.message.strip_prefix("found ") {
        Some(what) => format!("`{key}` is {}: found {what}", kind.noun()),
        None => format!("`{key}`: {}", wrong.message),
    };
    wrong
}

/// Parses the text of a variable, a flag or a default. `name` is the full name of the key.
pub(crate) fn from_text(key: &Key, name: &str, given: &str) -> Result<Written, Wrong> {
    let value = key.kind.read(given).map_err(|wrong| named(name, &key.kind, wrong))?;
    if !key.is_list() {
        return Ok(Written { value, text: given.trim().to_owned() });
    }
    Ok(match value {
        Value::Duration(one) => {
            Written { value: Value::Durations(vec![one]), text: list_text(&[given.trim()]) }
        }
        Value::Text(one) => Written { text: list_text(&[&one]), value: Value::Texts(vec![one]) },
        other => Written { value: other, text: given.trim().to_owned() },
    })
}

/// The default of a key. A pattern has no value of its own.
pub(crate) fn default(key: &Key) -> Written {
    // A tool call reads a dozen settings: their defaults are parsed once.
    static KNOWN: LazyLock<HashMap<&str, Written>> = LazyLock::new(|| {
        keys::KEYS.iter().filter(|key| !key.is_pattern()).map(|key| (key.name, parsed_default(key))).collect()
    });
    KNOWN.get(key.name).cloned().unwrap_or_else(|| parsed_default(key))
}

fn parsed_default(key: &Key) -> Written {
    let written = if key.is_list() { None } else { from_text(key, key.name, key.default).ok() };
    written.unwrap_or_else(|| Written {
        value: if key.is_list() { Value::Texts(Vec::new()) } else { Value::None },
        text: key.default.to_owned(),
    })
}

/// Parses a value of a file. `name` is the full name of the key.
pub(crate) fn from_toml(key: &Key, name: &str, value: &DeValue<'_>) -> Result<Written, Wrong> {
    let wrong = |wrong| named(name, &key.kind, wrong);
    if key.is_list() {
        return match value {
            DeValue::Array(entries) => list(key, name, entries.as_ref()),
            DeValue::String(text) => Err(wrong(
                Wrong::new(format!("found the text \"{}\"", shown_text(text)))
                    .hint("write it as a list, in brackets"),
            )),
            other => Err(wrong(Wrong::new(format!("found {}", described(other))))),
        };
    }
    if let (ValueKind::Count { .. }, DeValue::Integer(number)) = (&key.kind, value) {
        let read = i128::from_str_radix(number.as_str(), number.radix()).map(|n| n.to_string());
        let text = read.unwrap_or_else(|_| number.to_string());
        return from_text(key, name, &text);
    }
    match (&key.kind, value) {
        (ValueKind::Count { .. }, DeValue::String(text)) if text.trim().parse::<u64>().is_ok() => Err(wrong(
            Wrong::new(format!("found the text \"{}\"", shown_text(text)))
                .hint(format!("write it without quotes: {}", shown_text(text))),
        )),
        (ValueKind::Count { .. }, other) => Err(wrong(Wrong::new(format!("found {}", described(other))))),
        (ValueKind::OneOf(words), DeValue::Boolean(switch)) if *words == YES_OR_NO => {
            from_text(key, name, if *switch { "true" } else { "false" })
        }
        (_, DeValue::String(text)) => from_text(key, name, text),
        // A bare number is seconds, as in a flag.
        (ValueKind::Duration { .. }, DeValue::Integer(n)) if n.radix() == 10 => {
            from_text(key, name, n.as_str())
        }
        (ValueKind::Duration { .. } | ValueKind::Dollars, DeValue::Float(n)) => {
            from_text(key, name, n.as_str())
        }
        (ValueKind::Dollars | ValueKind::Tokens, DeValue::Integer(n)) if n.radix() == 10 => {
            from_text(key, name, n.as_str())
        }
        // Zero needs no unit.
        (ValueKind::Size { .. } | ValueKind::Jitter, DeValue::Integer(n)) if n.as_str() == "0" => {
            from_text(key, name, "0")
        }
        (kind, other) => {
            let mut error = Wrong::new(format!("found {}", described(other)));
            let number = match other {
                DeValue::Integer(n) => Some(shown_text(n.as_str())),
                DeValue::Float(n) => Some(shown_text(n.as_str())),
                _ => None,
            };
            error.hint = match (kind, number, other) {
                (ValueKind::Size { .. }, Some(n), _) => {
                    Some(format!("write it with a unit: \"{n}KB\" or \"{n}MB\""))
                }
                (ValueKind::Jitter, Some(n), _) => Some(format!("write it in percent: \"{n}%\"")),
                (
                    ValueKind::Duration { none: true, .. } | ValueKind::Path | ValueKind::Endpoint,
                    _,
                    DeValue::Boolean(false),
                ) => Some("write \"none\"".to_owned()),
                _ => None,
            };
            Err(wrong(error))
        }
    }
}

fn list(key: &Key, name: &str, entries: &[Spanned<DeValue<'_>>]) -> Result<Written, Wrong> {
    if entries.len() > LIST_MAX {
        let message = format!("`{name}` has {} entries, more than {LIST_MAX}", entries.len());
        return Err(Wrong::new(message));
    }
    let mut texts: Vec<String> = Vec::with_capacity(entries.len());
    let mut durations = Vec::new();
    for entry in entries {
        let at = |wrong: Wrong| Wrong { at: Some(entry.span().start), ..named(name, &key.kind, wrong) };
        let text = match entry.get_ref() {
            // The words of a command are not changed.
            DeValue::String(text) if key.kind == ValueKind::Words => &**text,
            DeValue::String(text) => text.trim(),
            DeValue::Integer(n) if key.kind == ValueKind::Durations && n.radix() == 10 => n.as_str(),
            DeValue::Float(n) if key.kind == ValueKind::Durations => n.as_str(),
            other => return Err(at(Wrong::new(format!("found {} in it", described(other))))),
        };
        match key.kind.read(text).map_err(at)? {
            Value::Duration(one) => durations.push(one),
            _ if key.kind != ValueKind::Words && texts.iter().any(|known| known == text) => continue,
            _ => {}
        }
        texts.push(text.to_owned());
    }
    let text = list_text(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let value =
        if key.kind == ValueKind::Durations { Value::Durations(durations) } else { Value::Texts(texts) };
    Ok(Written { value, text })
}

/// A list as it would be written in a file.
pub(crate) fn list_text(entries: &[&str]) -> String {
    let quoted: Vec<String> = entries.iter().map(|entry| format!("{entry:?}")).collect();
    format!("[{}]", quoted.join(", "))
}

/// The type of a TOML value, as part of a sentence.
pub(crate) fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text \"{}\"", shown_text(text)),
        DeValue::Integer(number) => format!("the number {}", shown_text(number.as_str())),
        DeValue::Float(number) => format!("the number {}", shown_text(number.as_str())),
        DeValue::Boolean(truth) => format!("`{truth}`"),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::{self, KEYS};
    use super::*;

    fn text(key: &str, given: &str) -> Result<Value, Wrong> {
        from_text(keys::named(key).unwrap(), key, given).map(|written| written.value)
    }

    #[test]
    fn every_default_is_a_value_of_its_key() {
        for key in KEYS.iter().filter(|key| !key.is_pattern()) {
            if key.is_list() {
                assert_eq!(key.default, "[]");
            } else {
                let written = from_text(key, key.name, key.default);
                assert!(written.is_ok(), "{}: {written:?}", key.name);
                assert_eq!(default(key), written.unwrap());
            }
        }
    }

    #[test]
    fn what_people_write() {
        assert_eq!(text("exec.timeout", "30").unwrap(), Value::Duration(Duration::from_secs(30)));
        assert_eq!(text("exec.timeout", " 30s ").unwrap(), Value::Duration(Duration::from_secs(30)));
        assert_eq!(text("exec.timeout", "none").unwrap(), Value::None);
        assert_eq!(text("exec.grace", "0").unwrap(), Value::Duration(Duration::ZERO));
        assert_eq!(text("exec.stdin_max", "1MB").unwrap(), Value::Size(1 << 20));
        assert_eq!(text("redact.env", "API_KEY").unwrap(), Value::Texts(vec!["API_KEY".to_owned()]));
        for (given, want) in [
            ("20%", Jitter::Symmetric(20)),
            ("+10%", Jitter::Additive(10)),
            ("0", Jitter::None),
            ("0%", Jitter::None),
            ("100%", Jitter::Symmetric(100)),
        ] {
            assert_eq!(text("profile.tool.jitter", given).unwrap(), Value::Jitter(want), "{given}");
        }
        for (given, want) in [
            ("retry", ReasonAction::Retry(None)),
            ("retry:5", ReasonAction::Retry(Some(5))),
            ("surface", ReasonAction::Surface),
            ("halt", ReasonAction::Halt),
            ("defer", ReasonAction::Defer),
            ("confirm", ReasonAction::Confirm),
        ] {
            assert_eq!(text("profile.tool.on.timeout", given).unwrap(), Value::Action(want), "{given}");
        }
    }

    #[test]
    fn dollars_and_tokens_are_read_without_a_rounding_error() {
        for (given, want) in
            [("5", 5_000_000), ("5.00", 5_000_000), ("$0.1", 100_000), (".5", 500_000), ("0", 0)]
        {
            assert_eq!(text("plan.max_cost", given).unwrap(), Value::Count(want), "{given}");
        }
        for (given, want) in
            [("2M", 2_000_000), ("1.5m", 1_500_000), ("500k", 500_000), ("1_000", 1_000), ("0", 0)]
        {
            assert_eq!(text("plan.max_tokens", given).unwrap(), Value::Count(want), "{given}");
        }
        assert_eq!(text("plan.max_cost", "none").unwrap(), Value::None);
        for bad in ["-1", "5 USD", "1e3", "", ".", "1.2345678", "99999999999999999999"] {
            assert!(text("plan.max_cost", bad).is_err(), "{bad}");
            assert!(text("plan.max_tokens", &format!("{bad}x")).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_refused_and_what_is_said() {
        for (key, given, want) in [
            ("exec.timeout", "30x", "`30x` is not a duration"),
            ("exec.timeout", "0", "`0` is no limit"),
            ("exec.grace", "none", "`none` is not a duration"),
            ("exec.grace", "2h", "`2h` is not from 0 ms to 1h 00m"),
            ("exec.output_max", "1b", "`1b` is not from 4KB to 1GB"),
            ("exec.stdin_max", "8", "`8` is not a size"),
            (
                "exec.profile",
                "comand",
                "`exec.profile` is one of command, tool, request, task, phase, state: found `comand`",
            ),
            ("retry_budget.share_percent", "101", "is a number from 0 to 100: found `101`"),
            ("retry_budget.reserve", "-1", "found `-1`"),
            ("profile.tool.attempts", "0", "is a number from 1 to 100: found `0`"),
            ("profile.tool.jitter", "20", "`20` is not a jitter"),
            ("profile.tool.jitter", "+-5%", "is not a jitter"),
            ("profile.tool.jitter", "101%", "is not a jitter"),
            ("profile.tool.on.timeout", "retry:1", "no retry"),
            ("profile.tool.on.timeout", "retry:101", "from 2 to 100"),
            ("profile.tool.on.timeout", "retyr", "found `retyr`"),
            ("profile.tool.delays", "25h", "is not from 0 ms to"),
            ("redact.env", "$TOKEN", "not the name of an environment variable"),
            ("events.tail_to", "", "is not a path"),
        ] {
            let wrong = text(key, given).unwrap_err();
            assert!(wrong.message.contains(want), "{key} = {given}: {}", wrong.message);
            assert!(wrong.message.contains(key), "{}", wrong.message);
        }
        assert_eq!(text("exec.profile", "comand").unwrap_err().hint.unwrap(), "did you mean `command`?");
        assert!(text("events.tail_to", &"x".repeat(5000)).is_err());
    }
}
