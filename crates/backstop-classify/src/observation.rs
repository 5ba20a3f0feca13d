//! What training sees of a labelled failure.

use crate::learned::{Sketch, Vector};
use crate::{Classifier, ClassifierError, Rule};
use backstop_core::{Reason, Signal, Surface};
use std::collections::BTreeSet;

/// What the rules, the grammar and the model see of one failure.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The reason that the rules found.
    pub reason: Reason,
    /// The rule that decided.
    pub rule: Option<String>,
    /// The kind of that rule.
    pub kind: Option<&'static str>,
    /// All rules that matched, and what each stands for.
    pub matched: Vec<(String, Reason)>,
    /// The failure as numbers.
    pub vector: Vector,
    /// The sketch of its text.
    pub sketch: Sketch,
    /// What the grammar recognised, and what that speaks for.
    pub findings: Vec<(&'static str, Reason)>,
    /// The line that the rules take for the cause.
    pub text: String,
}

/// A program that no command line has.
const NO_PROGRAM: &str = "(left out)";

impl Classifier {
    /// A classifier with the built-in rules except those that name one of these tools, in lower
    /// case: how it does on these tools says how it does on tools that no rule was written for.
    pub fn leaving_out(tools: &BTreeSet<String>) -> Result<Self, ClassifierError> {
        let is_named = |name: &str| tools.contains(&name.to_lowercase());
        let names_one = |rule: &&Rule| {
            rule.tool.as_deref().is_some_and(is_named)
                || rule.program.iter().any(|program| is_named(program))
                || rule.id.split('.').next().is_some_and(is_named)
        };
        let all = Self::builtin();
        let silenced = all.rules().iter().filter(names_one).cloned().map(|rule| Rule {
            // Others may refer to it, so that it stays and never matches.
            program: vec![NO_PROGRAM.into()].into(),
            tool: None,
            ..rule
        });
        Self::with_packs(silenced)
    }

    /// What training sees of a signal. `None` if it is a success.
    pub fn observe(&self, signal: &Signal) -> Option<Observation> {
        let mut session = self.session(signal);
        if signal.surface == Surface::Command {
            session.feed(&signal.stdout);
            session.next_stream();
            session.feed(&signal.stderr);
        }
        session.observe()
    }
}
