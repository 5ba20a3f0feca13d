//! Reads cells that name other phases: `Phase 2A, Phase 2B`, `1 and 2`, `-`, `Phase 0 (or nothing
//! if skipped)`.

use super::id::{PhaseId, after_word};
use super::inline::{plain, without_remarks};
use super::label;
use super::words;
use backstop_core::nearest::nearest;
use std::collections::HashMap;

/// Words that mean "no phase".
const NONE: &[&str] = &["", "-", "--", "–", "—", "none", "nothing", "n/a", "na", "nil", "no", "null"];

/// The phases that a cell names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// The phases that it names, sorted, each once.
    pub(crate) phases: Vec<usize>,
    /// The first name in it that is not a phase.
    pub(crate) unknown: Option<String>,
    /// A remark without any phase.
    pub(crate) remark: Option<String>,
}

/// Words for more than one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wide {
    /// All phases before this one.
    AllBefore,
    /// The one before it.
    Before,
}

/// `All previous phases`, `everything above`, `previous task`.
pub(crate) fn wide(text: &str) -> Option<Wide> {
    if text.len() > 60 {
        return None;
    }
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !["", "the", "of", "phase", "task", "step", "item", "one", "ones"].contains(word))
        .collect();
    match words.as_slice() {
        ["all" | "everything" | "alle" | "toutes" | "todas"] => Some(Wide::AllBefore),
        [
            "all" | "everything" | "every" | "each",
            "previous" | "prior" | "above" | "before" | "preceding" | "earlier",
            ..,
        ] if words.len() <= 4 => Some(Wide::AllBefore),
        ["all", "phases" | "tasks" | "steps" | "stories"] => Some(Wide::AllBefore),
        ["previous" | "prior" | "preceding" | "earlier", "phases" | "tasks" | "steps"] => {
            Some(Wide::AllBefore)
        }
        ["previous" | "prior" | "preceding" | "above"] => Some(Wide::Before),
        _ => None,
    }
}

/// The two ends of a range: `1-3`, `1 – 3`, `T001 to T003`, `2 through 4`.
pub(crate) fn range_ends(text: &str) -> Option<(&str, &str)> {
    let words = [" through ", " thru ", " to ", "..", "–", "—", "-"];
    let (at, length) = words.iter().find_map(|word| text.find(word).map(|at| (at, word.len())))?;
    let (from, to) = (text[..at].trim(), text[at + length..].trim().trim_start_matches('.'));
    (!from.is_empty() && !to.is_empty()).then_some((from, to))
}

/// The phases of a table.
pub(crate) struct Ids<'i> {
    /// Their ids as the table writes them.
    pub(crate) ids: &'i [PhaseId],
    /// Their places in the table, by key.
    pub(crate) known: &'i HashMap<String, usize>,
    /// Their places in the table, by name in lower case.
    pub(crate) names: &'i HashMap<String, usize>,
}

impl Ids<'_> {
    /// Reads the cell of the phase at a place.
    pub(crate) fn read(&self, cell: &str, at: usize) -> Named {
        let (outside, inside) = without_remarks(&plain(cell));
        match wide(&outside) {
            Some(Wide::AllBefore) => return Named { phases: (0..at).collect(), ..Named::default() },
            Some(Wide::Before) => {
                return Named { phases: at.checked_sub(1).into_iter().collect(), ..Named::default() };
            }
            None => {}
        }
        if !outside.is_empty() || is_none(&inside) {
            return self.list(&outside);
        }
        // A cell that is only a remark: it may name phases.
        let named = self.list(&inside);
        match named.unknown {
            None => named,
            Some(_) => Named { remark: Some(inside), ..Named::default() },
        }
    }

    fn list(&self, text: &str) -> Named {
        let mut named = Named::default();
        for part in text.split([',', ';', '\n']) {
            let part = plural(part.trim());
            match self.find(part) {
                Some(phase) => named.phases.push(phase),
                None => {
                    for item in words::joined(part) {
                        let item = plural(words::bare(&item));
                        match self.find(item).map(|phase| vec![phase]).or_else(|| self.range(item)) {
                            _ if is_none(item) => {}
                            Some(phases) => named.phases.extend(phases),
                            None => named.unknown = named.unknown.or_else(|| Some(item.to_owned())),
                        }
                    }
                }
            }
        }
        named.phases.sort_unstable();
        named.phases.dedup();
        named
    }

    /// The phase that a text names.
    fn find(&self, text: &str) -> Option<usize> {
        if is_none(text) || self.is_range(text) {
            return None;
        }
        // `Phase2` is `2` where there is no `Phase2`; `2A: Backend` is `2A`.
        let glued = text.split_at_checked(5).filter(|(word, _)| word.eq_ignore_ascii_case("phase"));
        let before = text.split_once([':', '–', '—']).or_else(|| text.split_once(" - "));
        let tries = [Some(text), glued.map(|(_, rest)| rest), before.map(|(head, _)| head)];
        tries
            .into_iter()
            .flatten()
            .chain(text.strip_prefix('#'))
            .find_map(|text| self.exactly(text))
            // `Step 1` is `1`; a name is as good as an id.
            .or_else(|| self.exactly(&label::heading(text).filter(|label| label.name.is_empty())?.id))
            .or_else(|| self.names.get(&text.to_lowercase()).copied())
    }

    fn exactly(&self, text: &str) -> Option<usize> {
        let id: PhaseId = text.parse().ok()?;
        self.known.get(id.key().as_str()).copied()
    }

    /// The phases from one to another, in the order of the table.
    fn range(&self, text: &str) -> Option<Vec<usize>> {
        let (from, to) = range_ends(after_word(text).unwrap_or(text))?;
        let (from, to) = (self.find(from)?, self.find(to)?);
        (from <= to).then(|| (from..=to).collect())
    }

    /// Whether a text is a range of two phases, such as `1-3`: without its hyphen it could be a
    /// third one, `13`.
    fn is_range(&self, text: &str) -> bool {
        let text = after_word(text).unwrap_or(text);
        let Some((from, to)) = text.split_once(['-', '–', '—']) else { return false };
        let ends = self.exactly(from.trim()).is_some() && self.exactly(to.trim()).is_some();
        // A phase whose id has the separator in the table is not a range.
        let written = |phase: usize| self.ids[phase].shown().contains(['-', '_', ' ']);
        ends && !self.exactly(text).is_some_and(written)
    }

    /// The known phase that is nearest to a text that names none, as the table writes it.
    pub(crate) fn nearest(&self, text: &str) -> Option<&str> {
        if self.is_range(text) {
            return None;
        }
        let key =
            text.parse::<PhaseId>().map_or_else(|_| text.to_lowercase(), |id| id.key().as_str().to_owned());
        let near = nearest(&key, self.ids.iter().map(|id| id.key().as_str()))?;
        self.known.get(near).map(|phase| self.ids[*phase].shown())
    }
}

pub(crate) fn is_none(text: &str) -> bool {
    text.len() <= 8 && NONE.contains(&text.to_lowercase().trim())
}

/// The text without a leading `Phases`, `Steps` and the like.
fn plural(text: &str) -> &str {
    let Some((word, rest)) = text.split_once(' ') else { return text };
    let is_plural = word.strip_suffix(['s', 'S']).is_some_and(|word| label::is_word(&word.to_lowercase()));
    if is_plural { rest.trim_start() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(cell: &str) -> String {
        let ids: Vec<PhaseId> =
            ["0", "1", "2A", "2B", "3", "13", "Set and go"].iter().map(|id| id.parse().unwrap()).collect();
        let known = ids.iter().enumerate().map(|(at, id)| (id.key().as_str().to_owned(), at)).collect();
        let names = [("schema".to_owned(), 1), ("login form".to_owned(), 2)].into_iter().collect();
        let of = Ids { ids: &ids, known: &known, names: &names };
        let named = of.read(cell, 4);
        let mut out: Vec<String> = named.phases.iter().map(|phase| ids[*phase].to_string()).collect();
        out.extend(named.unknown.map(|text| match of.nearest(&text) {
            Some(near) => format!("?{text}~{near}"),
            None => format!("?{text}"),
        }));
        out.extend(named.remark.map(|text| format!("({text})")));
        out.join(" ")
    }

    #[test]
    fn every_way_to_name_phases() {
        for (cell, want) in [
            ("", ""),
            ("-", ""),
            ("–", ""),
            ("—", ""),
            ("Nothing", ""),
            ("none", ""),
            ("N/A", ""),
            ("(none)", ""),
            ("None (can start at once)", ""),
            ("(first phase)", "(first phase)"),
            ("(2A)", "2A"),
            ("Phase 0 (or nothing if skipped)", "0"),
            ("Phase 2A, Phase 2B", "2A 2B"),
            ("Phases 2A and 2B", "2A 2B"),
            ("2B & 2a;1", "1 2A 2B"),
            ("2A&2B", "2A 2B"),
            ("0, 1, and 3", "0 1 3"),
            ("1,1, 1", "1"),
            ("**2A**, [2B](#b), `3`", "2A 2B 3"),
            ("2A<br>2B", "2A 2B"),
            ("Phase2A", "2A"),
            ("2A: Backend", "2A"),
            ("2-A", "2A"),
            ("set and go, 1", "1 Set and go"),
            ("#1, #2A", "1 2A"),
            ("Step 1, task #13", "1 13"),
            ("Schema, Login form", "1 2A"),
            ("Step 9", "?Step 9"),
            ("none, 1", "1"),
            ("1-3", "1 2A 2B 3"),
            ("1 – 3", "1 2A 2B 3"),
            ("Phases 1 to 2B, 13", "1 2A 2B 13"),
            ("3-1", "?3-1"),
            ("All previous", "0 1 2A 2B"),
            ("all prior phases (see above)", "0 1 2A 2B"),
            ("Previous phase", "2B"),
            ("2C", "?2C~2A"),
            ("all of them", "?all of them"),
            ("all the tests", "?all the tests"),
            ("1 or 3", "?1 or 3"),
            ("after 2A", "2A"),
            ("steps 2A and 3", "2A 3"),
            ("Phase 1 und 2B", "1 2B"),
            ("Phase 1 completed", "1"),
        ] {
            assert_eq!(named(cell), want, "{cell}");
        }
    }
}
