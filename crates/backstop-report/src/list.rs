//! Lists of names, counts and lines, cut to limits.

use backstop_core::SafeText;

/// At most `max` names, separated by commas, each at most `chars_max` long, and how many more there
/// are.
pub(crate) fn names(list: &[SafeText], max: usize, chars_max: usize) -> String {
    let shown: Vec<String> = list.iter().take(max).map(|name| name.line(chars_max)).collect();
    format!("{}{}", shown.join(", "), more(list.len(), max))
}

/// ` and 3 more`, or nothing.
pub(crate) fn more(len: usize, max: usize) -> String {
    match len.saturating_sub(max) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    }
}

/// `1 test`, `2 tests`.
pub(crate) fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// The text cut to `chars_max` characters, the ellipsis included: a limit on its length, not on its
/// columns.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(chars_max.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// The lines of a text, escaped, each with its indent and at most `chars_max` long. Empty lines at
/// both ends are left out.
pub(crate) fn lines(text: &SafeText, chars_max: usize) -> Vec<String> {
    let line = |raw: &str| {
        let indent = raw.chars().take_while(|c| matches!(c, ' ' | '\t')).count().min(40);
        let text = SafeText::new(raw).line(chars_max);
        if text.is_empty() { text } else { format!("{}{text}", " ".repeat(indent)) }
    };
    text.raw().trim().split('\n').map(line).collect()
}

/// The text split at the spaces that are not in a code span.
pub(crate) fn words(text: &str) -> Vec<&str> {
    let (mut words, mut start, mut span, mut ticks) = (Vec::new(), 0, 0, 0);
    for (at, c) in text.char_indices() {
        if c == '`' {
            ticks += 1;
            continue;
        }
        // A run of backticks opens a span, and one of the same length closes it.
        span = match (ticks, span) {
            (0, span) => span,
            (ticks, 0) => ticks,
            (ticks, span) if ticks == span => 0,
            (_, span) => span,
        };
        ticks = 0;
        if c == ' ' && span == 0 {
            words.push(&text[start..at]);
            start = at + 1;
        }
    }
    words.push(&text[start..]);
    words
}

/// The last `max` lines of a text, escaped.
pub(crate) fn last_lines(text: &SafeText, max: usize, chars_max: usize) -> Vec<String> {
    let mut all = lines(text, chars_max);
    all.drain(..all.len().saturating_sub(max));
    all
}

/// The text with a capital letter at its start.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A Markdown code block that its content cannot close.
pub(crate) fn fence(lines: &[String], indent: &str) -> String {
    let longest = lines.iter().map(|line| line.split(|c| c != '`').map(str::len).max().unwrap_or(0)).max();
    let mark = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    let mut out = format!("{indent}{mark}text\n");
    for line in lines {
        out.push_str(&format!("{indent}{line}\n"));
    }
    out.push_str(&format!("{indent}{mark}\n"));
    out
}

/// Text from outside as data, where an agent reads it: a Markdown code block that its content
/// cannot close.
pub fn fenced(text: &SafeText, chars_max: usize) -> String {
    fence(&lines(text, chars_max), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_say_how_many_more() {
        let list: Vec<SafeText> = ["a", "b", "c"].map(SafeText::from).to_vec();
        assert_eq!(names(&list, 2, 10), "a, b and 1 more");
        assert_eq!(names(&list, 3, 10), "a, b, c");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(last_lines(&"\na\n  b\r\n\n".into(), 1, 80), ["  b"]);
    }

    #[test]
    fn a_code_span_is_one_word() {
        assert_eq!(words("run `a b c d` or ``e ` f`` now"), ["run", "`a b c d`", "or", "``e ` f``", "now"]);
    }

    #[test]
    fn a_fence_is_not_closed_from_inside() {
        let fenced = fence(&["````".into()], "");
        assert!(fenced.starts_with("`````text\n") && fenced.ends_with("\n`````\n"), "{fenced}");
    }
}
