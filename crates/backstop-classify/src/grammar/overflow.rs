//! Requests that are larger than a model's context.

use super::words::has_any;

/// Whether a lower-case line says that there are too many tokens for a context. A limit of tokens
/// in a time is a rate limit.
pub(super) fn is_overflow(line: &str) -> bool {
    let nouns = [
        has_any(line, &["token", "tokens"]),
        has_any(line, &["context", "prompt"]),
        has_any(line, &["length", "window", "size"]),
    ];
    let counted = nouns.iter().filter(|there| **there).count();
    let too_much = has_any(
        line,
        &[
            "exceed",
            "exceeds",
            "exceeded",
            "maximum",
            "limit",
            "too long",
            "too large",
            "too many",
            "at most",
        ],
    );
    let in_a_time =
        ["per minute", "per day", "per hour", "per second", "rate", "tpm", "quota", "access token"];
    counted >= 2 && too_much && !in_a_time.iter().any(|words| line.contains(words))
}

#[cfg(test)]
mod tests {
    use super::is_overflow;

    #[test]
    fn a_context_is_told_from_a_rate_and_from_a_line() {
        assert!(is_overflow("this model's maximum context length is 8192 tokens"));
        assert!(is_overflow("prompt is too long: 210000 tokens > 200000 maximum"));
        assert!(!is_overflow("rate limit: 40000 tokens per minute exceed the limit"));
        assert!(!is_overflow("line length exceeds the maximum of 80"));
    }
}
