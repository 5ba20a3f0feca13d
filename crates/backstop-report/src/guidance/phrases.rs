//! Parts of guidance sentences that are made of facts.

use super::GuidanceContext;
use crate::list::more;
use crate::notice::code_span;
use backstop_core::{Facts, SafeText};

/// How many names are listed before "and n more".
const NAMES_MAX: usize = 5;
/// How much of a name is shown.
const NAME_CHARS_MAX: usize = 100;

/// Facts and context, as parts of sentences.
pub(super) struct Phrases<'a> {
    pub(super) facts: &'a Facts,
    pub(super) context: &'a GuidanceContext,
}

/// A name as a code span, or `otherwise`.
pub(super) fn name(given: Option<&SafeText>, otherwise: &str) -> String {
    match given {
        Some(text) if !text.raw().trim().is_empty() => code_span(text, NAME_CHARS_MAX),
        _ => otherwise.to_owned(),
    }
}

/// `before` and the names, or nothing where there are none.
pub(super) fn names(before: &str, list: &[SafeText]) -> String {
    let list: Vec<&SafeText> = list.iter().filter(|text| !text.raw().trim().is_empty()).collect();
    if list.is_empty() {
        return String::new();
    }
    let shown: Vec<String> =
        list.iter().take(NAMES_MAX).map(|text| code_span(text, NAME_CHARS_MAX)).collect();
    format!("{before}{}{}", shown.join(", "), more(list.len(), NAMES_MAX))
}

impl Phrases<'_> {
    /// ` in a, b`, with the line where there is one file.
    pub(super) fn places(&self) -> String {
        let line = match (self.facts.line, self.facts.files.len()) {
            (Some(line), 1) => format!(", line {line}"),
            _ => String::new(),
        };
        match names(" in ", &self.facts.files) {
            places if places.is_empty() => places,
            places => format!("{places}{line}"),
        }
    }

    /// `: a, b`.
    pub(super) fn tests(&self) -> String {
        names(": ", &self.facts.failed_tests)
    }

    /// ` (rules: a, b)`.
    pub(super) fn rules(&self) -> String {
        match names("", &self.facts.rules) {
            rules if rules.is_empty() => rules,
            rules => format!(" ({rules})"),
        }
    }

    /// ` Expected a, found b.`
    pub(super) fn difference(&self) -> String {
        match (&self.facts.expected, &self.facts.actual) {
            (Some(expected), Some(actual)) => {
                format!(
                    " Expected {}, found {}.",
                    name(Some(expected), "nothing"),
                    name(Some(actual), "nothing")
                )
            }
            _ => String::new(),
        }
    }

    /// ` Run X to see what is left.`
    pub(super) fn check(&self) -> String {
        match &self.context.check {
            Some(command) if !command.raw().trim().is_empty() => {
                format!(
                    " Run {} to see what is left, and run it once more at the end.",
                    name(Some(command), "")
                )
            }
            _ => String::new(),
        }
    }

    /// ` Y puts much of it right by itself; run it first.`
    pub(super) fn fix(&self) -> String {
        match &self.context.fix {
            Some(command) if !command.raw().trim().is_empty() => {
                format!(" {} puts much of it right by itself; run it first.", name(Some(command), ""))
            }
            _ => String::new(),
        }
    }

    /// The provider, or "the provider".
    pub(super) fn provider(&self) -> String {
        name(self.facts.provider.as_ref(), "the provider")
    }

    /// The first file, or `otherwise`.
    pub(super) fn first_file(&self, otherwise: &str) -> String {
        name(self.facts.files.first(), otherwise)
    }
}
