//! Terminal columns: how wide a text is, and how it is padded, cut and wrapped to a width.
//!
//! The one place that measures text for a terminal. A text's length in characters or bytes is a
//! different thing: limits on how much of a text is looked at count characters.
//!
//! Columns are those of the `unicode-width` crate, added up character by character. Terminals
//! disagree on sequences (a skin tone, an emoji that is asked for by a variation selector): there
//! the larger number is taken, because a line that is too short is better than one that wraps.

use crate::{Style, list};
use unicode_width::UnicodeWidthChar;

/// Variation selector 16: the character before it is shown as an emoji, two columns wide.
const EMOJI_SELECTOR: char = '\u{fe0f}';

/// Each character with the columns that it adds.
fn columns(text: &str) -> impl Iterator<Item = (char, usize)> {
    let mut before = 2;
    text.chars().map(move |c| {
        // A control has no width of its own. It is escaped before it gets here, and costs a column
        // if not.
        let own = c.width().unwrap_or(1);
        let adds = if c == EMOJI_SELECTOR && before == 1 { 1 } else { own };
        // A second selector must not widen the same character again.
        before = match (own, adds) {
            (0, 0) => before,
            (0, _) => 2,
            (own, _) => own,
        };
        (c, adds)
    })
}

/// The columns of a text.
pub(crate) fn width(text: &str) -> usize {
    columns(text).map(|(_, adds)| adds).sum()
}

/// The start of a text that takes at most this many columns.
pub(crate) fn head(text: &str, columns_max: usize) -> &str {
    let (mut total, mut bytes) = (0, 0);
    for (c, adds) in columns(text) {
        total += adds;
        if total > columns_max {
            break;
        }
        bytes += c.len_utf8();
    }
    &text[..bytes]
}

/// The text, filled up with spaces to this many columns.
pub(crate) fn pad(text: &str, columns_min: usize) -> String {
    format!("{text}{}", " ".repeat(columns_min.saturating_sub(width(text))))
}

/// The mark at the end of a text that was cut.
pub(crate) fn ellipsis(style: Style) -> &'static str {
    if style.unicode { "…" } else { "..." }
}

/// The text in at most this many columns; one that is cut ends with an ellipsis, which is counted.
pub(crate) fn cut(text: &str, columns_max: usize, style: Style) -> String {
    if width(text) <= columns_max {
        return text.to_owned();
    }
    let mark = head(ellipsis(style), columns_max);
    format!("{}{mark}", head(text, columns_max - width(mark)).trim_end())
}

/// The text in lines of at most this many columns, broken at spaces, and inside a word that is
/// longer than a line.
pub(crate) fn wrap(text: &str, columns_max: usize) -> Vec<String> {
    lines(text.split(' '), columns_max, |_| false)
}

/// Like [`wrap`], for sentences with commands in backticks. A command is never broken: one that is
/// too long has a line of its own, which is wider than the others.
pub(crate) fn wrap_commands(text: &str, columns_max: usize) -> Vec<String> {
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
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn cjk_and_emoji_take_two_columns_and_combining_marks_none() {
        for (text, columns) in [
            ("", 0),
            ("abc", 3),
            ("é", 1),
            ("e\u{301}", 1),
            ("e\u{301}\u{323}", 1),
            ("กำ", 2),
            ("日本", 4),
            ("한글", 4),
            ("ｆ", 2),
            ("ﾊ", 1),
            ("🚀", 2),
            ("✅", 2),
            ("⏸", 1),
            ("⏸\u{fe0f}", 2),
            ("⏸\u{fe0f}\u{fe0f}", 2),
            ("✅\u{fe0f}", 2),
            ("1\u{fe0f}\u{20e3}", 2),
            ("🇩🇪", 2),
            ("✓○⟳…·", 5),
            ("║═─━", 4),
        ] {
            assert_eq!(width(text), columns, "{text}");
        }
        assert_eq!(width("👍🏽"), 4, "a terminal without skin tones shows two emoji");
    }

    #[test]
    fn a_cut_says_so_and_splits_no_character() {
        assert_eq!(cut("日本語", 5, Style::PLAIN), "日本…");
        assert_eq!(cut("日本語", 4, Style::PLAIN), "日…");
        assert_eq!(cut("abcdef", 5, Style::default()), "ab...");
        assert_eq!(cut("abcdef", 2, Style::default()), "..");
        assert_eq!(cut("abcdef", 0, Style::PLAIN), "");
        assert_eq!(cut("abc", 3, Style::PLAIN), "abc");
        assert_eq!(cut("e\u{301}tude", 3, Style::PLAIN), "e\u{301}t…");
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

    /// Any text, and text in which wide characters, marks and selectors are frequent.
    fn text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            any::<String>(),
            "[ -~]{0,12}",
            "[\u{4e00}-\u{4fff}\u{ac00}-\u{acff}\u{3041}-\u{3096}]{0,6}",
            "[\u{1f300}-\u{1f64f}\u{2600}-\u{27bf}]\u{fe0f}?",
            "[a-z\u{300}-\u{36f}]{0,8}",
        ];
        prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide(text in text(), columns in 2usize..60) {
            prop_assert!(width(&cut(&text, columns, Style::PLAIN)) <= columns);
            prop_assert!(width(&cut(&text, columns, Style::default())) <= columns);
            prop_assert!(width(&pad(&text, columns)) >= columns);
            for line in wrap(&text, columns) {
                prop_assert!(width(&line) <= columns, "{line:?}");
            }
            let joined: String = wrap(&text, columns).concat();
            prop_assert_eq!(joined.replace(' ', ""), text.replace(' ', ""));
        }

        #[test]
        fn a_text_and_each_of_its_starts_is_never_measured_too_narrow(text in text(), columns in 0usize..60) {
            prop_assert!(width(&text) >= UnicodeWidthStr::width(text.as_str()), "{text:?}");
            let start = head(&text, columns);
            prop_assert!(text.starts_with(start) && width(start) <= columns);
            prop_assert!(UnicodeWidthStr::width(start) <= columns, "{start:?}");
        }

        #[test]
        fn plain_ascii_takes_a_column_for_each_character(text in "[ -~]{0,200}") {
            prop_assert_eq!(width(&text), text.len());
        }
    }
}
