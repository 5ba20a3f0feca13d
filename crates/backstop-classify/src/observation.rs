//! What training sees of a labelled failure.

use crate::Classifier;
use crate::learned::{Sketch, Vector};
use backstop_core::{Reason, Signal, Surface};

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

impl Classifier {
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
