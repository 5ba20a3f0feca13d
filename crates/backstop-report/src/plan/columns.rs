//! How many columns a character and a text take on a terminal.
//!
//! Where terminals differ, the larger number is taken: a line that is too short is better than one that wraps.

/// Characters that take two columns: East Asian wide ones, and those that are shown as emoji.
const WIDE: &[(u32, u32)] = &[
    (0x1100, 0x115f),
    (0x231a, 0x231b),
    (0x2329, 0x232a),
    (0x23e9, 0x23ec),
    (0x23f0, 0x23f0),
    (0x23f3, 0x23f3),
    (0x25fd, 0x25fe),
    (0x2614, 0x2615),
    (0x2630, 0x2637),
    (0x2648, 0x2653),
    (0x267f, 0x267f),
    (0x268a, 0x268f),
    (0x2693, 0x2693),
    (0x26a1, 0x26a1),
    (0x26aa, 0x26ab),
    (0x26bd, 0x26be),
    (0x26c4, 0x26c5),
    (0x26ce, 0x26ce),
    (0x26d4, 0x26d4),
    (0x26ea, 0x26ea),
    (0x26f2, 0x26f3),
    (0x26f5, 0x26f5),
    (0x26fa, 0x26fa),
    (0x26fd, 0x26fd),
    (0x2705, 0x2705),
    (0x270a, 0x270b),
    (0x2728, 0x2728),
    (0x274c, 0x274c),
    (0x274e, 0x274e),
    (0x2753, 0x2755),
    (0x2757, 0x2757),
    (0x2795, 0x2797),
    (0x27b0, 0x27b0),
    (0x27bf, 0x27bf),
    (0x2b1b, 0x2b1c),
    (0x2b50, 0x2b50),
    (0x2b55, 0x2b55),
    (0x2e80, 0x303e),
    (0x3041, 0xa4cf),
    (0xa960, 0xa97f),
    (0xac00, 0xd7a3),
    (0xf900, 0xfaff),
    (0xfe10, 0xfe19),
    (0xfe30, 0xfe6f),
    (0xff01, 0xff60),
    (0xffe0, 0xffe6),
    (0x16fe0, 0x18dff),
    (0x1aff0, 0x1b2ff),
    (0x1f004, 0x1f004),
    (0x1f0cf, 0x1f0cf),
    (0x1f18e, 0x1f18e),
    (0x1f191, 0x1f19a),
    (0x1f200, 0x1f64f),
    (0x1f680, 0x1f6ff),
    (0x1f7e0, 0x1f7f0),
    (0x1f90c, 0x1f9ff),
    (0x1fa70, 0x1faff),
    (0x20000, 0x3fffd),
];

/// Marks that stand on the character before them. Those that are not here count as one column.
const NARROW: &[(u32, u32)] = &[
    (0x0300, 0x036f),
    (0x0483, 0x0489),
    (0x0591, 0x05bd),
    (0x0610, 0x061a),
    (0x064b, 0x065f),
    (0x0e31, 0x0e31),
    (0x0e34, 0x0e3a),
    (0x0e47, 0x0e4e),
    (0x1ab0, 0x1aff),
    (0x1dc0, 0x1dff),
    (0x20d0, 0x20ff),
    (0xfe00, 0xfe0f),
    (0xfe20, 0xfe2f),
    (0xe0100, 0xe01ef),
];

/// Asks that the character before it is shown as an emoji.
const AS_EMOJI: char = '\u{fe0f}';

fn within(table: &[(u32, u32)], c: char) -> bool {
    let c = u32::from(c);
    let after = table.partition_point(|(_, last)| *last < c);
    table.get(after).is_some_and(|(first, _)| *first <= c)
}

/// The columns of one character by itself.
fn alone(c: char) -> usize {
    match c {
        ' '..='~' => 1,
        c if within(NARROW, c) => 0,
        c if within(WIDE, c) => 2,
        _ => 1,
    }
}

/// Each character with the columns that it adds.
fn each(text: &str) -> impl Iterator<Item = (char, usize)> {
    let mut before = 2;
    text.chars().map(move |c| {
        let own = alone(c);
        let adds = if c == AS_EMOJI && before == 1 { 1 } else { own };
        // A second mark must not widen the same character again.
        before = if own == 0 { if adds == 1 { 2 } else { before } } else { own };
        (c, adds)
    })
}

/// The columns of a text without controls.
pub(super) fn width(text: &str) -> usize {
    each(text).map(|(_, columns)| columns).sum()
}

/// The start of a text that takes at most this many columns.
pub(super) fn head(text: &str, columns_max: usize) -> &str {
    let (mut columns, mut bytes) = (0, 0);
    for (c, adds) in each(text) {
        columns += adds;
        if columns > columns_max {
            break;
        }
        bytes += c.len_utf8();
    }
    &text[..bytes]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_and_emoji_take_two_columns() {
        for (text, columns) in [
            ("abc", 3),
            ("é", 1),
            ("e\u{301}", 1),
            ("日本", 4),
            ("한글", 4),
            ("🚀", 2),
            ("✅", 2),
            ("⏸\u{fe0f}", 2),
            ("⏸\u{fe0f}\u{fe0f}", 2),
            ("✅\u{fe0f}", 2),
            ("🇩🇪", 2),
            ("✓○⟳", 3),
            ("ｆ", 2),
        ] {
            assert_eq!(width(text), columns, "{text}");
        }
    }

    #[test]
    fn the_tables_are_in_order() {
        for table in [WIDE, NARROW] {
            assert!(table.iter().all(|(first, last)| first <= last));
            assert!(table.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
