//! Writes a new status into a cell in the style of the old one: the same vocabulary, case and
//! width.

use super::status::{COLOURED, Status, StatusCell, read_cell};
use std::ops::Range;

/// The emoji of a status.
fn picture(status: Status) -> &'static str {
    match status {
        Status::NotStarted | Status::Unknown => "⬜",
        Status::InProgress => "🔄",
        Status::Complete => "✅",
        Status::Blocked => "⏸️",
        Status::Skipped => "⏭️",
        Status::Failed => "❌",
    }
}

/// The word for a status: `todo` and `done`, or `Not started` and `Complete`.
fn word(status: Status, todo: bool) -> &'static str {
    match status {
        Status::NotStarted | Status::Unknown if todo => "Todo",
        Status::NotStarted | Status::Unknown => "Not Started",
        Status::InProgress => "In Progress",
        Status::Complete if todo => "Done",
        Status::Complete => "Complete",
        Status::Blocked => "Blocked",
        Status::Skipped => "Skipped",
        Status::Failed => "Failed",
    }
}

/// Whether a word is of the vocabulary of `todo` and `done`.
fn is_todo(word: &str) -> bool {
    ["todo", "to do", "to-do", "done", "not done"].iter().any(|todo| word.eq_ignore_ascii_case(todo))
}

/// Whether a cell uses the vocabulary of `todo` and `done`.
pub(crate) fn says_todo(cell: &str) -> bool {
    read_cell(cell).word.is_some_and(|(range, _)| is_todo(&cell[range]))
}

/// The word for a status, in the vocabulary and case of the one that it replaces.
fn alike(there: &str, status: Status, column_todo: bool) -> String {
    let upper = there.chars().any(char::is_uppercase) && !there.chars().any(char::is_lowercase);
    let lower = !there.chars().any(char::is_uppercase);
    let shared = read_cell(there).word.is_some_and(|(_, status)| {
        !matches!(status, Status::NotStarted | Status::Complete | Status::Unknown)
    });
    let todo = is_todo(there) || shared && (column_todo || upper);
    if there.ends_with('%') {
        match status {
            Status::Complete => return "100%".to_owned(),
            Status::NotStarted => return "0%".to_owned(),
            _ => {}
        }
    }
    if let Some(word) = super::status::in_language_of(there, status) {
        let first_is_upper = there.chars().next().is_some_and(char::is_uppercase);
        let mut chars = word.chars();
        let first = chars
            .next()
            .into_iter()
            .flat_map(|c| if first_is_upper { c.to_uppercase().collect::<Vec<_>>() } else { vec![c] });
        return first.chain(chars).collect();
    }
    match word(status, todo) {
        word if upper => word.to_uppercase(),
        word if lower => word.to_lowercase(),
        word => word.to_owned(),
    }
}

/// The cell's text with another status, or nothing if it has that status already. `column_todo`:
/// whether another cell of the column uses `todo` and `done`.
pub(crate) fn respelt(cell: &str, status: Status, column_todo: bool) -> Option<String> {
    let found = read_cell(cell);
    if status == Status::Unknown || (found.status() == status && !found.several) {
        return None;
    }
    if found.several {
        return Some(picture(status).to_owned());
    }
    let brackets = if status == Status::Complete { "[x]" } else { "[ ]" };
    let StatusCell { picture: there, word, brackets: boxed, .. } = found;
    let mut parts: Vec<(Range<usize>, String)> = Vec::new();
    parts.extend(boxed.map(|(range, _)| (range, brackets.to_owned())));
    parts.extend(there.map(|(range, _)| (range, picture(status).to_owned())));
    parts.extend(word.map(|(range, _)| {
        let new = alike(&cell[range.clone()], status, column_todo);
        (range, new)
    }));
    if parts.is_empty() {
        return Some(picture(status).to_owned());
    }
    parts.sort_by_key(|(range, _)| range.start);
    let (mut out, mut at) = (String::new(), 0);
    for (range, new) in parts {
        out.push_str(&cell[at..range.start]);
        out.push_str(&new);
        at = range.end;
    }
    out.push_str(&cell[at..]);
    (out != cell).then_some(out)
}

/// The width of a text in columns, as far as tables need it: emoji take two.
fn width(text: &str) -> usize {
    text.chars()
        .map(|c| match c {
            COLOURED => 0,
            '⏸' | '⏭' | '⏩' | '⏳' | '⬜' | '⚪' | '✅' | '❌' | '⛔' | '\u{1f000}'..='\u{1faff}' => {
                2
            }
            _ => 1,
        })
        .sum()
}

/// A cell between its borders with a new text. It keeps its width where there is room, and its left
/// padding.
pub(crate) fn padded(whole: &str, text: Range<usize>, new: &str) -> String {
    let (left, old, right) = (&whole[..text.start], &whole[text.clone()], &whole[text.end..]);
    if old.is_empty() {
        let room = width(whole).saturating_sub(width(new) + 1).max(1);
        return format!(" {new}{}", " ".repeat(room));
    }
    let spaces = !right.is_empty() && right.bytes().all(|byte| byte == b' ');
    if !spaces {
        return format!("{left}{new}{right}");
    }
    let room = (width(old) + right.len()).saturating_sub(width(new)).max(1);
    format!("{left}{new}{}", " ".repeat(room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_written_as_the_one_before() {
        for (cell, status, want) in [
            ("⬜", Status::InProgress, "🔄"),
            ("⬜", Status::Failed, "❌"),
            ("✅", Status::Blocked, "⏸️"),
            ("⏭", Status::Complete, "✅"),
            ("⬜ Not Started", Status::Complete, "✅ Complete"),
            ("not started", Status::InProgress, "in progress"),
            ("Not Started", Status::Failed, "Failed"),
            ("TODO", Status::InProgress, "IN PROGRESS"),
            ("IN PROGRESS", Status::Complete, "DONE"),
            ("In Progress", Status::Complete, "Complete"),
            ("Todo", Status::Complete, "Done"),
            ("Pending", Status::Skipped, "Skipped"),
            ("**Not started** (Bob)", Status::Complete, "**Complete** (Bob)"),
            ("⬜ Bob", Status::Complete, "✅ Bob"),
            ("⬜/⏭️", Status::NotStarted, "⬜"),
            ("[ ]", Status::Complete, "[x]"),
            ("[x]", Status::Failed, "[ ]"),
            ("[]", Status::Complete, "[x]"),
            ("", Status::Complete, "✅"),
            ("who knows", Status::Complete, "✅"),
            ("offen", Status::Complete, "erledigt"),
            ("Offen", Status::InProgress, "In arbeit"),
            ("40%", Status::Complete, "100%"),
            ("未着手", Status::Complete, "完了"),
        ] {
            assert_eq!(respelt(cell, status, false).as_deref(), Some(want), "{cell}");
        }
        assert_eq!(respelt("In Progress", Status::Complete, true).as_deref(), Some("Done"));
        for (cell, status) in
            [("Done!", Status::Complete), ("[ ]", Status::InProgress), ("⬜", Status::Unknown)]
        {
            assert_eq!(respelt(cell, status, false), None, "{cell}");
        }
    }

    #[test]
    fn borders_stay_where_they_are_if_there_is_room() {
        for (whole, text, new, want) in [
            (" ⬜     ", 1..4, "✅", " ✅     "),
            (" Not Started ", 1..12, "Complete", " Complete    "),
            (" Done ", 1..5, "In Progress", " In Progress "),
            (" Done        ", 1..5, "In Progress", " In Progress "),
            ("Done", 0..4, "Todo", "Todo"),
            ("        ", 0..0, "✅", " ✅     "),
            ("", 0..0, "✅", " ✅ "),
            (" ⬜\t", 1..4, "✅", " ✅\t"),
        ] {
            assert_eq!(padded(whole, text, new), want, "{whole:?}");
        }
    }
}
