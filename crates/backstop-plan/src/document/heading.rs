//! Finds the phase that a heading begins the section of.

use super::id::{PhaseId, after_word};
use super::inline::without_remarks;

/// A phase that a heading may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeadingMatch {
    /// The phase.
    pub(crate) id: PhaseId,
    /// The phase's name in the heading.
    pub(crate) name: String,
    /// Whether id and name are separated: `Phase 2A: Name`, not `Phase 2A Name`.
    pub(crate) plainly: bool,
}

/// The phases that a heading without markup may name, the most likely first.
pub(crate) fn heading_matches(text: &str) -> Vec<HeadingMatch> {
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let word = after_word(text);
    let rest = word.unwrap_or(text);
    let mut matched = Vec::new();
    let mut add = |head: &str, name: &str, plainly: bool| {
        // Without the word `Phase`, only what comes before a separator is an id.
        if let Ok(id) = without_remarks(head).0.parse::<PhaseId>() {
            matched.push(HeadingMatch { id, name: name.trim().to_owned(), plainly });
        }
    };
    if let Some((head, name)) = rest.split_once(':') {
        add(head, name, true);
    }
    let dash = [" - ", " – ", " — ", "–", "—"];
    let first =
        dash.iter().filter_map(|dash| rest.find(dash).map(|at| (at, dash.len()))).min_by_key(|(at, _)| *at);
    if let Some((at, length)) = first {
        add(&rest[..at], &rest[at + length..], true);
    }
    add(rest, "", word.is_some());
    if word.is_some()
        && let Some((head, name)) = rest.split_once(char::is_whitespace)
    {
        add(head, name, false);
    }
    matched
}

/// The numbered phase that a heading without markup names, whether or not the table has it.
pub(crate) fn names_phase(text: &str, matched: &[HeadingMatch]) -> Option<PhaseId> {
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let numbered = |id: &PhaseId| id.key().as_str().bytes().any(|byte| byte.is_ascii_digit());
    after_word(text)?;
    matched.iter().find(|matched| matched.plainly && numbered(&matched.id)).map(|matched| matched.id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_mean_phases() {
        let of = |text: &str| -> Vec<String> {
            let mark = |plainly: bool| if plainly { "" } else { "?" };
            heading_matches(text).iter().map(|m| format!("{}{}={}", m.id, mark(m.plainly), m.name)).collect()
        };
        for (text, want) in [
            ("Phase 2A: Backend", vec!["2A=Backend", "2A?=Backend"]),
            ("Phase 2A - Backend", vec!["2A=Backend", "2A-Backend=", "2A?=- Backend"]),
            ("Phase 2A — Backend: the API", vec!["2A=Backend: the API", "2A?=— Backend: the API"]),
            ("Phase 2A (optional): Backend", vec!["2A=Backend", "2A?=(optional): Backend"]),
            ("✅ Phase 2A", vec!["2A="]),
            ("Phase 2A Backend", vec!["2A Backend=", "2A?=Backend"]),
            ("2A: Backend", vec!["2A=Backend"]),
            ("2A", vec!["2A?="]),
            ("Phase Overview", vec!["Overview="]),
            ("", vec![]),
        ] {
            assert_eq!(of(text), want, "{text}");
        }
        let speaks = |text: &str| names_phase(text, &heading_matches(text)).map(|id| id.to_string());
        assert_eq!(speaks("Phase 9: Old"), Some("9".to_owned()));
        assert_eq!(speaks("Phase Overview"), None);
        assert_eq!(speaks("9: Old"), None);
    }
}
