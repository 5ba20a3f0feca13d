//! The numbers and ids that headings and list items begin with: `Phase 2: Setup`, `1.1 Models`,
//! `## 3. Build`, `Étape 4 : …`, `第5步：…`.

/// A heading's or item's id and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    /// The word before the number, in lower case: `phase`, `step`, `task`. Empty where there is
    /// none.
    pub(crate) word: String,
    /// The number, such as `2`, `1.1` or `2A`.
    pub(crate) id: String,
    /// What follows.
    pub(crate) name: String,
}

/// Words before a number that make a heading one of a row of phases.
const WORDS: &[&str] = &[
    "phase",
    "step",
    "task",
    "milestone",
    "stage",
    "part",
    "sprint",
    "iteration",
    "epic",
    "story",
    "chunk",
    "slice",
    "pr",
    "étape",
    "etape",
    "tâche",
    "tache",
    "fase",
    "schritt",
    "aufgabe",
    "teil",
    "meilenstein",
    "paso",
    "etapa",
    "tarea",
    "tarefa",
    "passo",
    "attività",
    "krok",
    "zadanie",
    "steg",
    "vaihe",
    "этап",
    "шаг",
    "задача",
    "фаза",
    "adım",
    "bước",
    "trin",
    "stap",
];

/// The same in languages that write no space between.
const GLUED: &[&str] = &["步骤", "阶段", "任务", "ステップ", "フェーズ", "タスク", "段階", "단계", "第"];

/// What may follow a number of [`GLUED`].
const COUNTERS: &[&str] = &["步", "阶段", "章", "段階", "フェーズ", "ステップ", "단계", "项"];

const NUMBERS: &[(&str, &str)] = &[
    ("one", "1"),
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("ten", "10"),
];

/// Whether a word in lower case, before a number, makes a heading one of a row.
pub(crate) fn is_word(word: &str) -> bool {
    WORDS.contains(&word)
}

/// Whether a text is a number such as `2`, `1.1` or `2A`, and nothing else.
pub(crate) fn is_number(text: &str) -> bool {
    number(text).is_some_and(|(_, rest)| rest.is_empty())
}

/// `Phases 1` as `Phase 1`.
pub(crate) fn singular(text: &str) -> String {
    match text.split_once(' ') {
        Some((word, rest)) => format!("{} {rest}", word.trim_end_matches('s')),
        None => text.to_owned(),
    }
}

/// The label of a heading without markup: a word of a row and a number, or a number and a
/// separator.
pub(crate) fn heading(text: &str) -> Option<Label> {
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric()).trim_end();
    for glued in GLUED {
        if let Some(rest) = text.strip_prefix(glued) {
            let rest = rest.trim_start();
            let (id, rest) = number(rest)?;
            let rest = COUNTERS.iter().find_map(|counter| rest.strip_prefix(counter)).unwrap_or(rest);
            return Some(Label {
                word: (*glued).to_owned(),
                id: id.to_owned(),
                name: after_separator(rest).to_owned(),
            });
        }
    }
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let word = first.trim_end_matches(['#', ':', '.']).to_lowercase();
    if WORDS.contains(&word.as_str()) {
        let rest = rest.trim_start().trim_start_matches('#');
        let token = rest.split(|c: char| c.is_whitespace() || matches!(c, ':' | ',' | '(' | ')')).next()?;
        let spelt = NUMBERS.iter().find(|(spelt, _)| token.eq_ignore_ascii_case(spelt));
        if let Some((spelt, id)) = spelt {
            let name = after_separator(&rest[spelt.len()..]);
            return Some(Label { word, id: (*id).to_owned(), name: name.to_owned() });
        }
        if let Some((id, rest)) = number(rest) {
            return Some(Label { word, id: id.to_owned(), name: after_separator(rest).to_owned() });
        }
        // `Phase A: …`: one letter.
        let mut chars = rest.chars();
        let (letter, next) = (chars.next()?, chars.next());
        let is_letter =
            letter.is_ascii_uppercase() && next.is_none_or(|c| matches!(c, ':' | ')' | '.' | ' '));
        return is_letter.then(|| Label {
            word,
            id: letter.to_string(),
            name: after_separator(&rest[1..]).to_owned(),
        });
    }
    let (id, rest) = numeric(text)?;
    Some(Label { word: String::new(), id: id.to_owned(), name: rest.to_owned() })
}

/// A number at the start, with parts and a letter: `2`, `1.1`, `2A`, `2-A`.
fn number(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let mut end = text[..digits].trim_end_matches('.').len();
    if end == 0 || !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let rest = &text[end..];
    let letter = |rest: &str| {
        let mut chars = rest.chars();
        let is_one = chars.next().is_some_and(|c| c.is_ascii_alphabetic());
        is_one && chars.next().is_none_or(|c| !c.is_alphanumeric())
    };
    if letter(rest) {
        end += 1;
    } else if rest.starts_with('-') && letter(&rest[1..]) {
        end += 2;
    }
    Some((&text[..end], &text[end..]))
}

/// A number that an item's text or a heading begins with, such as `1.`, `1)`, `1.1` or `2:`, and
/// the rest. A number that is only a word of the text (`3 retries`) is none.
pub(crate) fn numeric(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(['*', '_']).trim_start();
    let (id, rest) = number(text)?;
    let has_parts = id.contains('.');
    let behind = rest.trim_start_matches(['.', ')', ':']);
    let is_separated =
        behind.len() < rest.len() || [" - ", " – ", " — "].iter().any(|dash| rest.starts_with(dash));
    let ends = behind.is_empty() || behind.starts_with(char::is_whitespace) || behind.starts_with(['*', '_']);
    (ends && (has_parts || is_separated))
        .then(|| (id, after_separator(behind).trim_start_matches(['*', '_']).trim()))
}

fn after_separator(text: &str) -> &str {
    text.trim_start_matches(|c: char| {
        c.is_whitespace() || matches!(c, ':' | '.' | ')' | '-' | '–' | '—' | '：' | '、' | '|')
    })
    .trim()
}

/// An id of letters and digits that an item begins with: `T012`, `US-003`.
pub(crate) fn code<'t>(text: &'t str, prefix: &str) -> Option<(&'t str, &'t str)> {
    let text = text.trim_start_matches(['*', '_', '`']);
    let rest = text.strip_prefix(prefix)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if !(2..=5).contains(&digits) {
        return None;
    }
    let mut end = prefix.len() + digits;
    if rest[digits..].starts_with(|c: char| c.is_ascii_alphabetic()) {
        end += 1;
    }
    let behind = &text[end..];
    let ends = behind.chars().next().is_none_or(|c| !c.is_alphanumeric());
    let rest = behind.trim_start_matches(['*', '_', '`', ':', '.']).trim_start();
    ends.then_some((&text[..end], rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_in_many_hands() {
        let of =
            |text: &str| heading(text).map(|label| format!("{}|{}|{}", label.word, label.id, label.name));
        for (text, want) in [
            ("Phase 1: Setup", Some("phase|1|Setup")),
            ("Step 3 – Build it", Some("step|3|Build it")),
            ("✅ Task 2A. API", Some("task|2A|API")),
            ("Phase One: Start", Some("phase|1|Start")),
            ("Phase B: Later", Some("phase|B|Later")),
            ("1. Setup", Some("|1|Setup")),
            ("2) Setup", Some("|2|Setup")),
            ("1.1 Models", Some("|1.1|Models")),
            ("3: Routes", Some("|3|Routes")),
            ("Étape 4 : Les tests", Some("étape|4|Les tests")),
            ("Schritt 2: Prüfen", Some("schritt|2|Prüfen")),
            ("第5步：部署", Some("第|5|部署")),
            ("步骤 2：测试", Some("步骤|2|测试")),
            ("ステップ3: 実装", Some("ステップ|3|実装")),
            ("Этап 1. Начало", Some("этап|1|Начало")),
            ("Task #7 Docs", Some("task|7|Docs")),
            ("Phase 2", Some("phase|2|")),
            ("Phase out the old API", None),
            ("Task list", None),
            ("2024 roadmap", None),
            ("3 retries", None),
            ("Overview", None),
            ("", None),
        ] {
            assert_eq!(of(text).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn items_begin_with_numbers_and_codes() {
        assert_eq!(numeric("1.2 Do it"), Some(("1.2", "Do it")));
        assert_eq!(numeric("**3.** Do it"), Some(("3", "Do it")));
        assert_eq!(numeric("3 retries"), None);
        assert_eq!(code("T012 [P] x", "T"), Some(("T012", "[P] x")));
        assert_eq!(code("**T001**: x", "T"), Some(("T001", "x")));
        assert_eq!(code("TODO", "T"), None);
    }
}
