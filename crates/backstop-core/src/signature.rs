//! The signature of a message: its text without variable parts, so that repetitions of one failure
//! have the same signature.

use std::fmt::Write as _;

/// How many characters of a message count.
const MESSAGE_CHARS_MAX: usize = 300;

/// A message without its variable parts: numbers, ids, paths, addresses, times and quoted text.
pub fn signature(message: &str) -> String {
    let mut out = String::new();
    let flat: String = message.chars().take(MESSAGE_CHARS_MAX).collect();
    for word in flat.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&taken_out(word));
    }
    out
}

/// A word, or its placeholder.
fn taken_out(word: &str) -> String {
    let edge = |c: char| !c.is_alphanumeric() && !matches!(c, '/' | '~' | '\\' | '_' | '<' | '>');
    let inner = word.trim_matches(edge);
    let Some(at) = word.find(inner).filter(|_| !inner.is_empty()) else { return word.to_owned() };
    let (before, after) = (&word[..at], &word[at + inner.len()..]);
    let quoted = |text: &str| text.contains(['\'', '"', '`']);
    let digits = inner.chars().filter(char::is_ascii_digit).count();
    let hex = inner.len() >= 8 && inner.chars().all(|c| c.is_ascii_hexdigit() || c == '-') && digits > 0;
    let stand_in = match inner {
        _ if inner.contains("://") => "<url>",
        _ if inner.starts_with(['/', '~']) || inner.contains('\\') || inner.matches('/').count() >= 2 => {
            "<path>"
        }
        _ if hex => "<id>",
        _ if quoted(before) && quoted(after) => "<name>",
        _ if digits > 0 && inner.chars().all(|c| c.is_ascii_digit() || ".,:%-+TZ".contains(c)) => "<n>",
        _ => {
            // Digits inside a word are removed, its letters stay: `worker-17`, `12ms`, `port 5432`.
            let mut kept = String::new();
            let mut in_number = false;
            for c in inner.chars() {
                if c.is_ascii_digit() {
                    if !in_number {
                        let _ = write!(kept, "<n>");
                    }
                    in_number = true;
                } else {
                    in_number = false;
                    kept.push(c);
                }
            }
            return format!("{before}{kept}{after}");
        }
    };
    format!("{before}{stand_in}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_same_trouble_has_the_same_signature() {
        for (one, other, want) in [
            (
                "connect ECONNREFUSED 127.0.0.1:5432",
                "connect ECONNREFUSED 10.0.0.7:6379",
                "connect ECONNREFUSED <n>",
            ),
            ("worker-17 died after 320ms", "worker-3 died after 9ms", "worker-<n> died after <n>ms"),
            (
                "cannot open /tmp/a/b.txt: denied",
                "cannot open /var/x.log: denied",
                "cannot open <path>: denied",
            ),
            ("no module named 'foo'", "no module named 'bar'", "no module named '<name>'"),
            ("request 7f3a9c12-aa01 failed", "request 0011aabb-ff99 failed", "request <id> failed"),
            ("GET https://a.example/x 503", "GET https://b.example/y?z=1 502", "GET <url> <n>"),
        ] {
            assert_eq!(signature(one), want);
            assert_eq!(signature(other), want);
        }
        assert_ne!(signature("connection refused"), signature("connection reset"));
        // Codes are names, not numbers: their letters stay.
        assert_eq!(signature("npm error code ECONNRESET"), "npm error code ECONNRESET");
    }

    proptest! {
        #[test]
        fn any_text_has_a_bounded_signature_without_digits(text in any::<String>()) {
            let signature = signature(&text);
            prop_assert!(!signature.chars().any(|c| c.is_ascii_digit()));
            prop_assert!(signature.chars().count() <= MESSAGE_CHARS_MAX * 4);
        }
    }
}
