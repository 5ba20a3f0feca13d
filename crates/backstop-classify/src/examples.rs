//! Runs a rule's own examples: what it must match, and what it must not.

use crate::matcher::Matcher;
use crate::rule::{Example, Rule};
use crate::{Classifier, Session};
use backstop_core::{Signal, Surface};

/// An example that does not do what its rule says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExampleFailure {
    /// The rule.
    pub rule: String,
    /// The file of its pack.
    pub pack: String,
    /// The line in the pack where the rule begins.
    pub pack_line: u32,
    /// Whether the example should have matched.
    pub should_match: bool,
    /// The example's text.
    pub text: String,
    /// The rules that did match it.
    pub matched: Vec<String>,
}

impl std::fmt::Display for ExampleFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = if self.should_match { "does not match its example" } else { "matches its near miss" };
        let text: String = self.text.escape_debug().take(120).collect();
        write!(f, "{}:{}:1: rule `{}` {what} \"{text}\"", self.pack, self.pack_line, self.rule)
    }
}

impl std::error::Error for ExampleFailure {}

/// Runs every example of these rules. The classifier must hold them.
pub fn check_examples(classifier: &Classifier, wanted: impl Fn(&Rule) -> bool) -> Vec<ExampleFailure> {
    let mut failures = Vec::new();
    for (index, rule) in classifier.rules().iter().enumerate().filter(|(_, rule)| wanted(rule)) {
        let examples = rule.matches.iter().map(|e| (e, true)).chain(rule.misses.iter().map(|e| (e, false)));
        for (example, should_match) in examples {
            let matched = matching(classifier, rule, example);
            if matched.contains(&index) != should_match {
                failures.push(ExampleFailure {
                    rule: rule.id.to_string(),
                    pack: rule.source.to_string(),
                    pack_line: rule.pack_line,
                    should_match,
                    text: if example.text.is_empty() {
                        format!("{example:?}")
                    } else {
                        example.text.to_string()
                    },
                    matched: matched.iter().map(|i| classifier.rules()[*i].id.to_string()).collect(),
                });
            }
        }
    }
    failures
}

/// The rules that match an example.
fn matching(classifier: &Classifier, rule: &Rule, example: &Example) -> Vec<usize> {
    let answered = example.status.is_some() || example.errno.is_some();
    let surface =
        if rule.on_command && !(answered && rule.on_response) { Surface::Command } else { Surface::Response };
    let owned = |text: &Option<crate::Text>| text.as_ref().map(ToString::to_string);
    let signal = Signal {
        surface,
        command: owned(&example.command),
        exit: example
            .exit
            .or((example.signal.is_none() && !example.timed_out && surface == Surface::Command).then_some(1)),
        signal: example.signal,
        timed_out: example.timed_out,
        status: example.status,
        errno: owned(&example.errno),
        // An answer's example is the line that it becomes, or the body that makes it.
        stdout: example.text.as_bytes().to_vec(),
        ..Signal::default()
    };
    let session = Session::new(classifier, &signal);
    session.matching()
}

impl Session<'_> {
    /// The rules that match, whatever they weigh.
    fn matching(mut self) -> Vec<usize> {
        if self.signal().surface == Surface::Response {
            let body = crate::response::body_json(self.signal());
            let lines = crate::response::lines(self.signal(), body.as_ref());
            self.feed(&lines);
        } else {
            let text = self.signal().stdout.clone();
            self.feed(&text);
        }
        self.into_matched(|matcher: &Matcher, applies: &dyn Fn(usize) -> bool| {
            (0..matcher.rules.len())
                .filter(|index| matcher.rules[*index].count > 0 || applies(*index))
                .collect()
        })
    }
}
