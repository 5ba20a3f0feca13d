//! Idioms: patterns that the added lines of a diff must, or must not, have.
//!
//! A pattern is a text that a line contains; `*` in it stands for anything within the line. It says
//! nothing about what a line means: that is for people and tests.

use backstop_core::{Fault, Reason, SafeText};
use serde::{Deserialize, Serialize};

/// How much of a line is quoted.
const LINE_CHARS_MAX: usize = 160;

/// Patterns that the added lines of a diff must, or must not, have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Idioms {
    /// Each must be found in a line that was added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// None may be found in a line that was added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forbidden: Vec<String>,
}

impl Idioms {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.required.is_empty() && self.forbidden.is_empty()
    }

    /// These and others together.
    pub fn and(&self, others: &Idioms) -> Idioms {
        let both = |own: &[String], more: &[String]| {
            let mut all = own.to_vec();
            all.extend(more.iter().filter(|pattern| !own.contains(pattern)).cloned());
            all
        };
        Idioms {
            required: both(&self.required, &others.required),
            forbidden: both(&self.forbidden, &others.forbidden),
        }
    }

    /// What a diff violates first, where it does. A diff without added lines violates nothing.
    pub fn violation(&self, diff: &str) -> Option<Fault> {
        let added: Vec<&str> = added_lines(diff).collect();
        if added.is_empty() {
            return None;
        }
        for pattern in &self.forbidden {
            if let Some(line) = added.iter().find(|line| matches(pattern, line)) {
                let line = SafeText::new(line.trim()).line(LINE_CHARS_MAX);
                return Some(violated(format!("forbidden idiom `{pattern}` in: {line}")));
            }
        }
        let missing = self.required.iter().find(|pattern| !added.iter().any(|line| matches(pattern, line)));
        missing.map(|pattern| violated(format!("required idiom `{pattern}` is in no added line")))
    }
}

fn violated(cause: String) -> Fault {
    let mut fault = Fault::new(Reason::IdiomViolation);
    fault.cause = Some(SafeText::new(cause));
    fault
}

fn added_lines(diff: &str) -> impl Iterator<Item = &str> {
    diff.lines().filter(|line| !line.starts_with("+++")).filter_map(|line| line.strip_prefix('+'))
}

/// Whether a line has a pattern: its parts between `*`, in order.
fn matches(pattern: &str, line: &str) -> bool {
    let mut rest = line;
    pattern.split('*').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "--- a/x.py\n+++ b/x.py\n@@ -1 +1,2 @@\n-print('old')\n+@rt('/users')\n+print('new')\n context eval(1)\n";

    fn cause(required: &[&str], forbidden: &[&str]) -> Option<String> {
        let own = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        let idioms = Idioms { required: own(required), forbidden: own(forbidden) };
        idioms.violation(DIFF).map(|fault| fault.cause.unwrap().raw().to_owned())
    }

    #[test]
    fn only_added_lines_count() {
        assert_eq!(cause(&["@rt("], &["eval(", "old"]), None);
        assert_eq!(cause(&[], &["print("]).unwrap(), "forbidden idiom `print(` in: print('new')");
        assert_eq!(cause(&["@app.*route"], &[]).unwrap(), "required idiom `@app.*route` is in no added line");
        assert_eq!(cause(&["@rt(*users"], &["x.py"]), None);
        assert_eq!(Idioms { required: vec!["a".into()], ..Idioms::default() }.violation(""), None);
    }
}
