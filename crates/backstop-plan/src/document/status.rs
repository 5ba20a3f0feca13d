//! The status of a phase in the plan, and how status cells are read.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The status of a phase, as a cell of the plan says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing was done yet.
    NotStarted,
    /// It is being worked on.
    InProgress,
    /// Done.
    Complete,
    /// Waits for something that failed, or for a person.
    Blocked,
    /// Left out.
    Skipped,
    /// Tried and failed.
    Failed,
    /// Empty, or not understood.
    #[default]
    Unknown,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Status::NotStarted => "not started",
            Status::InProgress => "in progress",
            Status::Complete => "complete",
            Status::Blocked => "blocked",
            Status::Skipped => "skipped",
            Status::Failed => "failed",
            Status::Unknown => "unknown",
        })
    }
}

/// The emoji, without the variation selector.
const PICTURES: &[(char, Status)] = &[
    ('⬜', Status::NotStarted),
    ('🔲', Status::NotStarted),
    ('☐', Status::NotStarted),
    ('◻', Status::NotStarted),
    ('⚪', Status::NotStarted),
    ('🔄', Status::InProgress),
    ('⏳', Status::InProgress),
    ('🚧', Status::InProgress),
    ('🟡', Status::InProgress),
    ('✅', Status::Complete),
    ('☑', Status::Complete),
    ('✔', Status::Complete),
    ('✓', Status::Complete),
    ('🟢', Status::Complete),
    ('⏸', Status::Blocked),
    ('🚫', Status::Blocked),
    ('⛔', Status::Blocked),
    ('⏭', Status::Skipped),
    ('⏩', Status::Skipped),
    ('❌', Status::Failed),
    ('✗', Status::Failed),
    ('🔴', Status::Failed),
];

/// The status that an emoji means.
pub(crate) fn picture(c: char) -> Option<Status> {
    PICTURES.iter().find(|(picture, _)| *picture == c).map(|(_, status)| *status)
}

/// The words; longer ones come before shorter ones that they begin with.
const WORDS: &[(&str, Status)] = &[
    ("not started", Status::NotStarted),
    ("not complete", Status::NotStarted),
    ("not done", Status::NotStarted),
    ("not needed", Status::Skipped),
    ("no", Status::NotStarted),
    ("todo", Status::NotStarted),
    ("to do", Status::NotStarted),
    ("to-do", Status::NotStarted),
    ("pending", Status::NotStarted),
    ("planned", Status::NotStarted),
    ("open", Status::NotStarted),
    ("incomplete", Status::NotStarted),
    ("in progress", Status::InProgress),
    ("in-progress", Status::InProgress),
    ("started", Status::InProgress),
    ("running", Status::InProgress),
    ("ongoing", Status::InProgress),
    ("wip", Status::InProgress),
    ("completed", Status::Complete),
    ("complete", Status::Complete),
    ("done", Status::Complete),
    ("finished", Status::Complete),
    ("yes", Status::Complete),
    ("blocked", Status::Blocked),
    ("on hold", Status::Blocked),
    ("paused", Status::Blocked),
    ("skipped", Status::Skipped),
    ("skip", Status::Skipped),
    ("failed", Status::Failed),
];

/// The words of other languages, a list for each. The first of a list for a status is the one that
/// is written.
const OTHER_LANGUAGES: &[&[(&str, Status)]] = &[
    &[
        ("erledigt", Status::Complete),
        ("fertig", Status::Complete),
        ("abgeschlossen", Status::Complete),
        ("offen", Status::NotStarted),
        ("geplant", Status::NotStarted),
        ("nicht begonnen", Status::NotStarted),
        ("in arbeit", Status::InProgress),
        ("läuft", Status::InProgress),
        ("übersprungen", Status::Skipped),
        ("entfällt", Status::Skipped),
        ("blockiert", Status::Blocked),
        ("fehlgeschlagen", Status::Failed),
    ],
    &[
        ("terminé", Status::Complete),
        ("fini", Status::Complete),
        ("fait", Status::Complete),
        ("à faire", Status::NotStarted),
        ("en cours", Status::InProgress),
        ("ignoré", Status::Skipped),
        ("bloqué", Status::Blocked),
        ("échoué", Status::Failed),
    ],
    &[
        ("completado", Status::Complete),
        ("hecho", Status::Complete),
        ("terminado", Status::Complete),
        ("pendiente", Status::NotStarted),
        ("en progreso", Status::InProgress),
        ("en curso", Status::InProgress),
        ("omitido", Status::Skipped),
        ("bloqueado", Status::Blocked),
        ("fallido", Status::Failed),
    ],
    &[
        ("concluído", Status::Complete),
        ("feito", Status::Complete),
        ("pendente", Status::NotStarted),
        ("a fazer", Status::NotStarted),
        ("em andamento", Status::InProgress),
        ("ignorado", Status::Skipped),
        ("bloqueado", Status::Blocked),
        ("falhou", Status::Failed),
    ],
    &[
        ("готово", Status::Complete),
        ("выполнено", Status::Complete),
        ("не начато", Status::NotStarted),
        ("в работе", Status::InProgress),
        ("пропущено", Status::Skipped),
        ("заблокировано", Status::Blocked),
        ("ошибка", Status::Failed),
    ],
    &[
        ("完了", Status::Complete),
        ("未着手", Status::NotStarted),
        ("進行中", Status::InProgress),
        ("スキップ", Status::Skipped),
        ("保留", Status::Blocked),
        ("失敗", Status::Failed),
    ],
    &[
        ("已完成", Status::Complete),
        ("完成", Status::Complete),
        ("未开始", Status::NotStarted),
        ("待办", Status::NotStarted),
        ("进行中", Status::InProgress),
        ("已跳过", Status::Skipped),
        ("已阻塞", Status::Blocked),
        ("失败", Status::Failed),
    ],
];

/// The word for a status in the language of another word; nothing where that is not one of another
/// language.
pub(crate) fn in_language_of(word: &str, status: Status) -> Option<&'static str> {
    let knows =
        |language: &&&[(&str, Status)]| language.iter().any(|(known, _)| known.eq_ignore_ascii_case(word));
    let language = OTHER_LANGUAGES.iter().find(knows)?;
    language.iter().find(|(_, known)| *known == status).map(|(word, _)| *word)
}

/// How much is done: `40%`.
fn percent(text: &str) -> Option<(usize, Status)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u32 = text.get(..digits.min(4))?.parse().ok()?;
    let rest = &text[digits..];
    let end = digits + rest.find('%').filter(|at| rest[..*at].trim().is_empty())? + 1;
    let status = match number {
        0 => Status::NotStarted,
        100 => Status::Complete,
        _ => Status::InProgress,
    };
    Some((end, status))
}

/// The variation selector, which asks for a coloured emoji.
pub(crate) const COLOURED: char = '\u{fe0f}';

/// The parts of a status cell, each with its byte range in the cell's text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StatusCell {
    /// An emoji.
    pub(crate) picture: Option<(Range<usize>, Status)>,
    /// A word.
    pub(crate) word: Option<(Range<usize>, Status)>,
    /// The brackets of a checkbox.
    pub(crate) brackets: Option<(Range<usize>, Status)>,
    /// Whether there are several emoji, as in `⬜/⏭️`.
    pub(crate) several: bool,
}

impl StatusCell {
    /// The status. A word counts before an emoji.
    pub(crate) fn status(&self) -> Status {
        let first = self.word.as_ref().or(self.picture.as_ref()).or(self.brackets.as_ref());
        first.map_or(Status::Unknown, |(_, status)| *status)
    }
}

/// Reads the text of a cell. Only what it begins with counts: `almost done` is not done.
pub(crate) fn read_cell(cell: &str) -> StatusCell {
    let mut found = StatusCell::default();
    let mut at = 0;
    while let Some(c) = cell[at..].chars().next() {
        let rest = &cell[at..];
        if matches!(c, ' ' | '\t' | '*' | '_' | '`' | '/' | COLOURED) {
            at += c.len_utf8();
        } else if let Some(&(_, status)) = PICTURES.iter().find(|(picture, _)| *picture == c) {
            let coloured = if rest[c.len_utf8()..].starts_with(COLOURED) { COLOURED.len_utf8() } else { 0 };
            let end = at + c.len_utf8() + coloured;
            found.several |= found.picture.is_some();
            found.picture.get_or_insert((at..end, status));
            at = end;
        } else if let Some((length, status)) = brackets(rest).filter(|_| found.brackets.is_none()) {
            found.brackets = Some((at..at + length, status));
            at += length;
        } else {
            let mut words = WORDS.iter().chain(OTHER_LANGUAGES.iter().copied().flatten());
            let word = words.find(|(word, _)| begins_with(rest, word));
            let word = word.map(|(word, status)| (word.len(), *status)).or_else(|| percent(rest));
            found.word = word.map(|(length, status)| (at..at + length, status));
            break;
        }
    }
    found
}

fn brackets(text: &str) -> Option<(usize, Status)> {
    match text.as_bytes() {
        [b'[', b']', ..] => Some((2, Status::NotStarted)),
        [b'[', b' ', b']', ..] => Some((3, Status::NotStarted)),
        [b'[', b'x' | b'X', b']', ..] => Some((3, Status::Complete)),
        _ => None,
    }
}

fn begins_with(text: &str, word: &str) -> bool {
    text.split_at_checked(word.len()).is_some_and(|(start, rest)| {
        start.eq_ignore_ascii_case(word) && !rest.starts_with(|c: char| c.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cells_say() {
        for (cell, want) in [
            ("⬜", Status::NotStarted),
            ("⬜ Not Started", Status::NotStarted),
            ("⬜/⏭️", Status::NotStarted),
            ("🔄", Status::InProgress),
            ("⏳ Pending", Status::NotStarted),
            ("✅ 2026-01-05", Status::Complete),
            ("⏸️", Status::Blocked),
            ("⏸", Status::Blocked),
            ("⏭️ skipped", Status::Skipped),
            ("❌", Status::Failed),
            ("**Complete**", Status::Complete),
            ("COMPLETED", Status::Complete),
            ("DONE", Status::Complete),
            ("TODO", Status::NotStarted),
            ("In Progress (60%)", Status::InProgress),
            ("erledigt", Status::Complete),
            ("In Arbeit (60 %)", Status::InProgress),
            ("完了", Status::Complete),
            ("100%", Status::Complete),
            ("40 %", Status::InProgress),
            ("0%", Status::NotStarted),
            ("5 days", Status::Unknown),
            ("Not done", Status::NotStarted),
            ("No", Status::NotStarted),
            ("Noted", Status::Unknown),
            ("almost done", Status::Unknown),
            ("[ ]", Status::NotStarted),
            ("`[x]`", Status::Complete),
            ("[]", Status::NotStarted),
            ("", Status::Unknown),
            ("-", Status::Unknown),
            ("é", Status::Unknown),
        ] {
            assert_eq!(read_cell(cell).status(), want, "{cell}");
        }
        assert!(read_cell("⬜/⏭️").several);
        assert_eq!(read_cell("**⏸️ Blocked** x").picture.unwrap().0, 2..8);
    }
}
