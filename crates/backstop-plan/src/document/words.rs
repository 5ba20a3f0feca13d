//! The words by which plans say what waits for what, in the languages that plans are written in.

/// Names of fields and columns that say what something waits for.
pub(crate) const DEPENDS: &[&str] = &[
    "depends on",
    "dependencies",
    "depends",
    "dependency",
    "deps",
    "needs",
    "after",
    "blocked by",
    "requires",
    "waits for",
    "prerequisites",
    "prerequisite",
    "predecessors",
    "predecessor",
    "abhängig von",
    "abhängigkeiten",
    "abhängigkeit",
    "voraussetzungen",
    "voraussetzung",
    "vorgänger",
    "dépend de",
    "dépendances",
    "prérequis",
    "depende de",
    "dependencias",
    "dependências",
    "dependência",
    "requiere",
    "requer",
    "dipende da",
    "dipendenze",
    "zależy od",
    "зависит от",
    "зависимости",
    "依存",
    "依存関係",
    "依赖",
    "前置",
];

/// Names of fields that say that something may run beside others, or beside which.
pub(crate) const BESIDE: &[&str] =
    &["parallel", "parallelizable", "can run in parallel", "parallel with", "can run with", "parallel zu"];

/// What stands before the names of what an entry waits for.
pub(crate) const WAITS: &[&str] = &[
    "depends on",
    "depends upon",
    "blocked by",
    "requires",
    "waits for",
    "needs",
    "after",
    "abhängig von",
    "nach",
    "dépend de",
    "après",
    "depende de",
    "después de",
    "depois de",
    "dipende da",
    "зависит от",
    "после",
];

/// What stands before the names of what an entry may run beside.
pub(crate) const BESIDE_NAMED: &[&str] = &[
    "can run in parallel with",
    "may run in parallel with",
    "runs in parallel with",
    "in parallel with",
    "parallel with",
    "parallel to",
    "can run with",
    "can run alongside",
    "concurrent with",
    "concurrently with",
    "parallel zu",
    "parallel mit",
    "en parallèle avec",
    "en paralelo con",
    "em paralelo com",
];

/// Headings of sections that say in prose what waits for what.
pub(crate) const ORDER_SECTIONS: &[&str] = &[
    "dependencies",
    "phase dependencies",
    "task dependencies",
    "dependency graph",
    "execution order",
    "order of execution",
    "order",
    "sequencing",
    "sequence",
    "dependencies & execution order",
    "dependencies and execution order",
    "abhängigkeiten",
    "reihenfolge",
    "dépendances",
    "dependencias",
    "dependências",
];

/// What stands between the two sides of such a sentence.
pub(crate) const SENTENCE_WAITS: &[&str] = &[
    " depends on ",
    " depend on ",
    " requires ",
    " require ",
    " needs ",
    " need ",
    " is blocked by ",
    " waits for ",
    " wait for ",
    " comes after ",
    " follows ",
    " after ",
    " hängt ab von ",
    " ist abhängig von ",
    " nach ",
    " dépend de ",
    " depende de ",
];

/// What a name may have before it in a list: `after 2`, `completion of Phase 1`.
const BEFORE_NAMES: &[&str] = &["after ", "nach ", "completion of ", "when ", "once "];

/// What a name may have behind it: `Phase 1 completed`.
const BEHIND_NAMES: &[&str] =
    &[" is complete", " is done", " completed", " complete", " completion", " done", " finished"];

/// Words that join two names.
const JOINS: &[&str] = &["and", "und", "et", "plus", "и", "och", "oraz"];

/// The same where they could be ids: only between two names.
const SHORT_JOINS: &[&str] = &["y", "e", "i", "og"];

/// A name without the words around it that say only that it is waited for.
pub(crate) fn bare(name: &str) -> &str {
    let mut name = name.trim().trim_end_matches('.').trim();
    let cut = |text: &str, word: &str, at: usize| {
        text.get(at..at + word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word))
    };
    for word in BEFORE_NAMES {
        if cut(name, word, 0) {
            name = name[word.len()..].trim_start();
        }
    }
    for word in BEHIND_NAMES {
        if let Some(at) = name.len().checked_sub(word.len()).filter(|at| cut(name, word, *at)) {
            name = name[..at].trim_end();
        }
    }
    name
}

/// The names of a list that is joined by words and signs: `1 and 2`, `2 und 3`, `A & B`.
pub(crate) fn joined(text: &str) -> Vec<String> {
    let words: Vec<&str> =
        text.split_whitespace().flat_map(|word| word.split_inclusive(['&', '+'])).collect();
    let mut items = vec![String::new()];
    for (at, word) in words.iter().enumerate() {
        let (word, has_sign) = match word.strip_suffix(['&', '+']) {
            Some(word) => (word, true),
            None => (*word, false),
        };
        let is_between = !items[items.len() - 1].is_empty()
            && words
                .get(at + 1)
                .is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit() || c.is_uppercase()));
        let is_join = JOINS.iter().any(|join| word.eq_ignore_ascii_case(join))
            || (is_between && SHORT_JOINS.contains(&word));
        let last = items.len() - 1;
        if !(word.is_empty() || is_join) {
            if !items[last].is_empty() {
                items[last].push(' ');
            }
            items[last].push_str(word);
        }
        if is_join || has_sign {
            items.push(String::new());
        }
    }
    items
}

/// Whether a text begins with a word, which ends there.
pub(crate) fn begins_with(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word))
        && !text[word.len()..].starts_with(char::is_alphanumeric)
}

/// The values behind one of these words, each with the byte at which it begins: at the start of the
/// text, in brackets, and behind a comma, a dash or another sign that begins a remark.
pub(crate) fn behind<'t>(text: &'t str, words: &[&str]) -> Vec<(&'t str, usize)> {
    const WORDS_MAX: usize = 16;
    const TEXT_BYTES_MAX: usize = 2000;
    let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    let begins_remark = |c: char| matches!(c, '(' | '[' | '—' | '–' | '-' | ',' | ';' | '.' | ':' | '|');
    let starts = text.char_indices().filter(|(_, c)| begins_remark(*c)).map(|(at, c)| at + c.len_utf8());
    let mut found = Vec::new();
    for start in std::iter::once(0).chain(starts) {
        let rest = text[start..].trim_start_matches([' ', '\t', '*', '_', '-', '>']);
        let Some(word) = words.iter().find(|word| begins_with(rest, word)) else { continue };
        let behind = &rest[word.len()..];
        let value = behind.trim_start_matches([' ', '\t', ':', '*', '_']);
        if value.len() == behind.len() {
            continue;
        }
        let mut end = value.find([')', ']', ';', '(', '—', '|']).unwrap_or(value.len());
        end = end.min(value.find(". ").unwrap_or(end));
        // `parallel with 2A, after 1`: another remark begins behind the comma.
        let others = value[..end].match_indices(',').map(|(at, _)| at);
        let is_other = |at: &usize| {
            let rest = value[at + 1..].trim_start();
            WAITS.iter().chain(BESIDE_NAMED).any(|word| begins_with(rest, word))
        };
        end = others.filter(|at| is_other(at)).min().unwrap_or(end);
        let value = value[..end].trim_end_matches([' ', '\t', '.', ':', '*', '_', ',']);
        if !value.is_empty() && value.split_whitespace().count() <= WORDS_MAX {
            found.push((value, value.as_ptr() as usize - text.as_ptr() as usize));
        }
    }
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_between_other_words() {
        for (text, want) in [
            ("1 and 2", "1|2"),
            ("Phase 2 und 3", "Phase 2|3"),
            ("2 y 3", "2|3"),
            ("Fase 2 e 3", "Fase 2|3"),
            ("Phase e", "Phase e"),
            ("A & B+C", "A|B|C"),
            ("Focus order and Contrast", "Focus order|Contrast"),
        ] {
            assert_eq!(joined(text).join("|"), want, "{text}");
        }
        for (text, want) in [
            ("after 2", "2"),
            ("Phase 1 completed", "Phase 1"),
            ("Completion of Setup.", "Setup"),
            ("done", "done"),
        ] {
            assert_eq!(bare(text), want, "{text}");
        }
        for (text, want) in [
            ("UI (after Task 1; easy)", "Task 1"),
            ("Docs — depends on Focus order and Contrast", "Focus order and Contrast"),
            ("Ship, after phases 2 and 3", "phases 2 and 3"),
            ("Requires Steps 2 and 3. Long.", "Steps 2 and 3"),
            ("Files (parallel with 2A, after 1)", "1"),
            ("Look after the garden", ""),
            ("afterwards 2", ""),
        ] {
            let found: Vec<&str> = behind(text, WAITS).into_iter().map(|(value, _)| value).collect();
            assert_eq!(found.join("|"), want, "{text}");
        }
        assert_eq!(behind("Files (parallel with 2A, after 1)", BESIDE_NAMED), [("2A", 21)]);
    }
}
