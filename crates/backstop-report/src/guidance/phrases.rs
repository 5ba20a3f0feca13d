//! Parts of guidance sentences that are made of facts.

use super::GuidanceContext;
use crate::list::more;
use backstop_core::{Facts, SafeText, Shape};

/// How many names are listed before "and n more".
const NAMES_MAX: usize = 5;

/// Facts and context, as parts of sentences.
pub(super) struct Phrases<'a> {
    pub(super) facts: &'a Facts,
    pub(super) context: &'a GuidanceContext,
}

/// A name as a code span, or `otherwise` where there is none that looks like one.
pub(super) fn name(given: Option<&SafeText>, shape: Shape, otherwise: &str) -> String {
    given.and_then(|text| shown(text, shape)).unwrap_or_else(|| otherwise.to_owned())
}

/// `before` and the names, or nothing where there are none. What does not look like a name is left
/// out: it stands in the output, which is quoted as data.
pub(super) fn names(before: &str, list: &[SafeText], shape: Shape) -> String {
    let names: Vec<String> = list.iter().filter_map(|text| shown(text, shape)).collect();
    if names.is_empty() {
        return String::new();
    }
    let listed = names.len().min(NAMES_MAX);
    format!("{before}{}{}", names[..listed].join(", "), more(list.len(), listed))
}

/// `: 3 are open`: their words are in the plan's section, or in what is quoted as data.
pub(super) fn still_open(remaining: &[SafeText]) -> String {
    match remaining.iter().filter(|text| !text.raw().trim().is_empty()).count() {
        0 => String::new(),
        1 => ": 1 is still open".to_owned(),
        open => format!(": {open} are still open"),
    }
}

fn shown(text: &SafeText, shape: Shape) -> Option<String> {
    text.shaped(shape).map(|name| SafeText::new(name).code_span())
}

impl Phrases<'_> {
    /// ` in a, b`, with the line where there is one file.
    pub(super) fn places(&self) -> String {
        let line = match (self.facts.line, self.facts.files.len()) {
            (Some(line), 1) => format!(", line {line}"),
            _ => String::new(),
        };
        match names(" in ", &self.facts.files, Shape::Path) {
            places if places.is_empty() => places,
            places => format!("{places}{line}"),
        }
    }

    /// `: a, b`.
    pub(super) fn tests(&self) -> String {
        names(": ", &self.facts.failed_tests, Shape::Test)
    }

    /// ` (rules: a, b)`.
    pub(super) fn rules(&self) -> String {
        match names("", &self.facts.rules, Shape::Name) {
            rules if rules.is_empty() => rules,
            rules => format!(" ({rules})"),
        }
    }

    /// ` Expected a, found b.`
    pub(super) fn difference(&self) -> String {
        let value = |given: &Option<SafeText>| given.as_ref().and_then(|text| shown(text, Shape::Name));
        match (value(&self.facts.expected), value(&self.facts.actual)) {
            (Some(expected), Some(actual)) => format!(" Expected {expected}, found {actual}."),
            _ => String::new(),
        }
    }

    /// ` Run X to see what is left.`
    pub(super) fn check(&self) -> String {
        match self.context.check.as_ref().and_then(|command| shown(command, Shape::Command)) {
            Some(command) => {
                format!(" Run {command} to see what is left, and run it once more at the end.")
            }
            None => String::new(),
        }
    }

    /// ` Y puts much of it right by itself; run it first.`
    pub(super) fn fix(&self) -> String {
        match self.context.fix.as_ref().and_then(|command| shown(command, Shape::Command)) {
            Some(command) => format!(" {command} puts much of it right by itself; run it first."),
            None => String::new(),
        }
    }

    /// The provider, or "the provider".
    pub(super) fn provider(&self) -> String {
        name(self.facts.provider.as_ref(), Shape::Name, "the provider")
    }

    /// The first file, or `otherwise`.
    pub(super) fn first_file(&self, otherwise: &str) -> String {
        name(self.facts.files.first(), Shape::Path, otherwise)
    }
}
