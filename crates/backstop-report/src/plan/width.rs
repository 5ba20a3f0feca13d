//! Cutting and breaking a text by the columns that it takes on a terminal.

pub(super) use super::columns::{head, width};
use crate::{Style, list};

/// The mark that says that something was cut off.
pub(super) fn ellipsis(style: Style) -> &'static str {
    if style.unicode { "…" } else { "..." }
}

/// The text in at most this many columns, the mark that says that it was cut included.
pub(super) fn cut(text: &str, columns_max: usize, style: Style) -> String {
    if width(text) <= columns_max {
        return text.to_owned();
    }
    let mark = head(ellipsis(style), columns_max);
    format!("{}{mark}", head(text, columns_max - width(mark)).trim_end())
}

/// The text in lines of at most this many columns, broken at spaces, and inside a word where that is longer than a line.
pub(super) fn wrap(text: &str, columns_max: usize) -> Vec<String> {
    lines(text.split(' '), columns_max, |_| false)
}

/// The same for sentences with commands in backticks. A command stays whole, and stands out where it is too long.
pub(super) fn wrap_commands(text: &str, columns_max: usize) -> Vec<String> {
    // A word that merely has backticks somewhere, such as a file's name, is no command.
    let whole = |word: &str| {
        let ticks = word.matches('`').count();
        word.trim_start_matches('(').starts_with('`') && ticks.is_multiple_of(2)
    };
    lines(list::words(text).into_iter(), columns_max, whole)
}

fn lines<'t>(
    words: impl Iterator<Item = &'t str>,
    columns_max: usize,
    whole: impl Fn(&str) -> bool,
) -> Vec<String> {
    let columns_max = columns_max.max(2);
    let (mut lines, mut line, mut columns) = (Vec::new(), String::new(), 0);
    for mut word in words.filter(|word| !word.is_empty()) {
        let mut wide = width(word);
        if columns > 0 && columns + 1 + wide <= columns_max {
            line.push(' ');
            line.push_str(word);
            columns += 1 + wide;
            continue;
        }
        if columns > 0 {
            lines.push(std::mem::take(&mut line));
        }
        while wide > columns_max && !whole(word) {
            let part = head(word, columns_max);
            lines.push(part.to_owned());
            word = &word[part.len()..];
            wide = width(word);
        }
        line.push_str(word);
        columns = wide;
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cut_says_so_and_splits_no_character() {
        assert_eq!(cut("日本語", 5, Style::PLAIN), "日本…");
        assert_eq!(cut("日本語", 4, Style::PLAIN), "日…");
        assert_eq!(cut("abcdef", 5, Style::default()), "ab...");
        assert_eq!(cut("abcdef", 2, Style::default()), "..");
        assert_eq!(cut("abcdef", 0, Style::PLAIN), "");
        assert_eq!(cut("abc", 3, Style::PLAIN), "abc");
    }

    #[test]
    fn words_are_broken_only_where_they_must_be() {
        assert_eq!(wrap("a bc  defghijk l", 4), ["a bc", "defg", "hijk", "l"]);
        assert_eq!(wrap("日本語 x", 4), ["日本", "語 x"]);
        assert_eq!(wrap_commands("run `a b c d` now", 4), ["run", "`a b c d`", "now"]);
        assert_eq!(wrap_commands("(`a b c d`), x", 4), ["(`a b c d`),", "x"]);
        assert_eq!(wrap_commands("odd`name`.txt", 8), ["odd`name", "`.txt"]);
        assert_eq!(wrap_commands("an `open span", 5), ["an", "`open", " span"]);
        assert!(wrap("", 4).is_empty());
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide(text in any::<String>(), columns in 2usize..60) {
            prop_assert!(width(&cut(&text, columns, Style::PLAIN)) <= columns);
            prop_assert!(width(&cut(&text, columns, Style::default())) <= columns);
            for line in wrap(&text, columns) {
                prop_assert!(width(&line) <= columns, "{line:?}");
            }
            let kept: String = wrap(&text, columns).concat();
            prop_assert_eq!(kept.replace(' ', ""), text.replace(' ', ""));
        }
    }
}
