//! Secrets are masked before anything is stored or shown.
//!
//! Two kinds are known: values that we were told (environment, settings, plans, credential files),
//! and shapes that say by themselves what they are. A text is searched as it is, and once more as a
//! reader would see it, with colours and escapes undone; what is found is masked in the original.
//! What is masked is gone: nothing here can undo it. [`RedactStream`] does the same for text that
//! comes in pieces.

mod encoded;
mod known;
mod scattered;
mod shapes;
mod stream;
mod unescape;

pub use stream::RedactStream;

use crate::shell;
use known::Known;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock, RwLock};
use unescape::{Readable, Undone};

/// What stands in place of a secret.
pub const MASK: &str = "[redacted]";

/// A known value shorter than this is not masked: it would be found everywhere.
const KNOWN_BYTES_MIN: usize = 6;
/// How many lines of known values are looked for.
const KNOWN_LINES_MAX: usize = 4_000;

/// Reads the secrets that are known by their values, when they are first needed.
type Source = Box<dyn Fn() -> Vec<String> + Send + Sync>;

/// Masks secrets in text. Clones share what they know.
#[derive(Clone)]
pub struct Redactor {
    values: Arc<Values>,
}

/// The secrets that are known by their values.
struct Values {
    source: Source,
    first: OnceLock<Option<Known>>,
    /// With those that were learned later.
    all: RwLock<Option<Arc<Known>>>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
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
        let values: Vec<String> = known.into_iter().map(|value| value.as_ref().to_owned()).collect();
        Self::reading(move || values.clone())
    }

    /// A redactor that reads the values when something is first redacted: they may be in files.
    pub fn reading(source: impl Fn() -> Vec<String> + Send + Sync + 'static) -> Self {
        let values = Values { source: Box::new(source), first: OnceLock::new(), all: RwLock::new(None) };
        Self { values: Arc::new(values) }
    }

    /// From now on, these values are masked as well, wherever this redactor is shared.
    pub fn learn<S: AsRef<str>>(&self, more: impl IntoIterator<Item = S>) {
        let more: Vec<String> = more.into_iter().map(|value| value.as_ref().to_owned()).collect();
        if more.is_empty() {
            return;
        }
        let mut all = self.values.all.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut lines = match &*all {
            Some(known) => known.values().to_vec(),
            None => self.first().map(|known| known.values().to_vec()).unwrap_or_default(),
        };
        lines.extend(forms(&more));
        *all = Known::new(lines).map(Arc::new);
    }

    fn first(&self) -> Option<&Known> {
        self.values.first.get_or_init(|| Known::new(forms(&(self.values.source)()))).as_ref()
    }

    fn with_known<T>(&self, use_it: impl FnOnce(Option<&Known>) -> T) -> T {
        let all = self.values.all.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        match all {
            Some(known) => use_it(Some(&known)),
            None => use_it(self.first()),
        }
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

    /// The words of a command with every secret masked. `--password` and its value are two words
    /// and one secret.
    pub fn redact_arguments(&self, words: &[String]) -> Vec<String> {
        let mut masked: Vec<String> = words.iter().map(|word| self.redact(word).into_owned()).collect();
        for at in 1..words.len() {
            let (flag, value) = (&words[at - 1], &words[at]);
            let is_name = flag.starts_with('-') || flag.ends_with(':');
            if is_name && !flag.contains(char::is_whitespace) && masked[at] == *value {
                // The value is one word, whatever is in it.
                let word: String = value.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
                let name = flag.replace(['"', '\''], "");
                let together = format!("{name} {word}");
                let is_secret = self.secrets(&together).iter().any(|range| range.end > name.len() + 1);
                if is_secret {
                    masked[at] = MASK.to_owned();
                }
            }
        }
        let bytes: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        for (at, range) in shapes::secret_arguments(&bytes, true) {
            let word = &words[at];
            if masked[at] == *word && word.is_char_boundary(range.start) && word.is_char_boundary(range.end) {
                masked[at] = format!("{}{MASK}{}", &word[..range.start], &word[range.end..]);
            }
        }
        masked
    }

    /// A command as one line for a shell, with every secret masked. Words are masked before they
    /// are quoted: quotes inside of them would hide what they are.
    pub fn redact_command(&self, words: &[String]) -> String {
        let masked = self.redact_arguments(words);
        let quoted = words.iter().zip(&masked).map(|(word, masked)| match shell::quoted(word) == *word {
            true => masked.clone(),
            false => shell::quoted(masked),
        });
        quoted.collect::<Vec<_>>().join(" ")
    }

    /// Whether the value of a field is a secret, as the field's name says.
    pub fn is_secret_value(&self, name: &str, value: &str) -> bool {
        const BYTES_MAX: usize = 4 << 10;
        if name.len() + value.len() > BYTES_MAX {
            return false;
        }
        let pair = format!("\"{name}\": \"{value}\"");
        self.secrets(&pair).iter().any(|range| range.start == name.len() + 5)
    }

    /// The secrets in a text, e.g. in a credential file.
    pub fn secrets_of(&self, text: &str) -> Vec<String> {
        self.secrets(text).into_iter().map(|range| text[range].to_owned()).collect()
    }

    /// Where the secrets lie, in order; those that touch are one.
    fn secrets(&self, text: &str) -> Vec<Range<usize>> {
        let bytes = text.as_bytes();
        let mut found: Vec<Range<usize>> = Vec::new();
        self.with_known(|known| {
            if let Some(known) = known {
                known.find(bytes, &mut found);
                known.find_scattered(bytes, &mut found);
            }
            shapes::find_private_keys(bytes, &mut found);
            find_shapes(bytes, known, &mut found);
        });
        for range in &mut found {
            *range = text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end);
        }
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

/// Adds the secrets that are known by their shapes, and those of lines with escapes as a reader
/// would see them.
fn find_shapes(bytes: &[u8], known: Option<&Known>, found: &mut Vec<Range<usize>>) {
    let mut readable = Readable::default();
    let mut inside = Vec::new();
    let mut plain_from = 0;
    let find_plain = |range: Range<usize>, found: &mut Vec<Range<usize>>| {
        let (start, first) = (range.start, found.len());
        shapes::find(&bytes[range], found);
        for range in &mut found[first..] {
            *range = start + range.start..start + range.end;
        }
    };
    for line in unescape::Lines::new(bytes) {
        match readable.read(bytes, line.clone()) {
            Undone::Nothing => continue,
            Undone::Removed => {
                find_plain(plain_from..line.start, found);
                plain_from = line.end;
            }
            Undone::Replaced => {}
        }
        if let Some(known) = known {
            known.find(readable.text(), &mut inside);
        }
        shapes::find_private_keys(readable.text(), &mut inside);
        shapes::find(readable.text(), &mut inside);
        found.extend(inside.drain(..).map(|range| readable.original(&range)));
    }
    find_plain(plain_from..bytes.len(), found);
}

/// The lines of these values, each with the encodings in which it travels.
fn forms(values: &[String]) -> Vec<String> {
    let mut forms: Vec<String> = Vec::new();
    // A secret of several lines, such as a private key, is masked line by line.
    let lines = values.iter().flat_map(|value| value.lines()).map(str::trim);
    for line in lines.filter(|line| line.len() >= KNOWN_BYTES_MIN).take(KNOWN_LINES_MAX) {
        forms.push(line.to_owned());
        forms.extend(encoded::forms(line).into_iter().filter(|form| form.len() >= KNOWN_BYTES_MIN));
    }
    forms
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
