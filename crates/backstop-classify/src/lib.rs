//! Says what a failure is, and why.
//!
//! A [`Classifier`] holds rule packs. Give it a [`Signal`] and get a [`Fault`]: the reason, the line that says why, which
//! rule matched which text, and the facts that were found (failed tests, files, the missing package).
//!
//! ```
//! use backstop_classify::Classifier;
//! use backstop_core::{Reason, Signal};
//!
//! let classifier = Classifier::builtin();
//! let signal = Signal::exited(1).command("npm test").text("Tests:       3 failed, 44 passed, 47 total\n");
//! let fault = classifier.classify(&signal).expect("it failed");
//! assert_eq!(fault.reason, Reason::TestFailure);
//! assert_eq!(fault.facts.failed_count, Some(3));
//! ```
//!
//! It must not act: deciding and recovering is for others. It reads no clock and no environment, opens no file, and holds
//! no more than a bounded part of its input, however long that is. The three types that matter are [`Rule`] (what to look
//! for), [`Classifier`] (all rules and their table) and [`Session`] (one signal on its way through).

// These are compiled into the build script too, which uses more of them than the library does.
#[allow(dead_code, unreachable_pub)]
mod automaton;
mod builtin;
mod chunk;
mod clean;
mod examples;
mod matcher;
mod mentioned;
pub mod pack;
mod pattern;
mod program;
mod provider;
mod response;
#[allow(unreachable_pub)]
mod rule;
mod session;
mod trace;
mod weigh;

pub use automaton::TooManyPatterns;
pub use examples::{ExampleFailure, check_examples};
pub use pack::PackError;
pub use program::calls;
pub use rule::{Example, List, Rule, RuleOutcome, Text, Trace, Weight};
pub use session::Session;

use automaton::Automaton;
use backstop_core::{Fault, Reason, Redactor, Signal, Surface};
use pattern::{Built, Needs, Pattern};
use std::borrow::Cow;
use std::io::Read;
use std::sync::OnceLock;

/// All rules and the table of their literals. Make one, use it for every signal.
#[derive(Debug)]
pub struct Classifier {
    rules: Cow<'static, [Rule]>,
    automaton: Automaton,
    /// Which rules come from users' packs: nobody has said what their regexes need.
    users: Vec<bool>,
    built: Vec<OnceLock<Box<[Built; 3]>>>,
    redactor: Redactor,
}

/// A rule's regexes, built when its literals select a line on which they may match.
struct Patterns<'c> {
    regex: Option<Pattern<'c>>,
    above: Option<Pattern<'c>>,
    below: Option<Pattern<'c>>,
}

impl Classifier {
    /// With the built-in rules.
    pub fn builtin() -> Self {
        Self::over(Cow::Borrowed(builtin::RULES), Vec::new(), builtin::automaton())
    }

    /// With the built-in rules and those of users' packs. A user's rule takes the place of a built-in one of the same id.
    pub fn with_packs(packs: impl IntoIterator<Item = Rule>) -> Result<Self, ClassifierError> {
        let mut rules = builtin::RULES.to_vec();
        let mut users = vec![false; rules.len()];
        for rule in packs {
            match rules.iter().position(|known| known.id == rule.id) {
                Some(index) => (rules[index], users[index]) = (rule, true),
                None => {
                    rules.push(rule);
                    users.push(true);
                }
            }
        }
        pack::check_references(&rules)?;
        let patterns = rules.iter().enumerate().flat_map(|(index, rule)| {
            // A pack has at most 4,096 rules, so the index fits; what does not is never selected.
            let index = u16::try_from(index).unwrap_or(u16::MAX);
            rule.literals.iter().map(move |literal| (literal.as_bytes(), index))
        });
        let automaton = Automaton::build(patterns)?;
        Ok(Self::over(Cow::Owned(rules), users, automaton))
    }

    fn over(rules: Cow<'static, [Rule]>, users: Vec<bool>, automaton: Automaton) -> Self {
        let built = std::iter::repeat_with(OnceLock::new).take(rules.len()).collect();
        Self { rules, automaton, users, built, redactor: Redactor::default() }
    }

    /// With a redactor that knows more secrets than their shapes.
    pub fn redacting(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// All rules.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What this signal is. Nothing, where it is a success.
    pub fn classify(&self, signal: &Signal) -> Option<Fault> {
        let mut session = self.session(signal);
        if signal.surface == Surface::Command {
            session.feed(&signal.stdout);
            session.next_stream();
            session.feed(&signal.stderr);
        }
        session.finish()
    }

    /// Classifies text as it comes, for what is too long to hold. What the signal itself holds is not read.
    pub fn session<'c>(&'c self, signal: &'c Signal) -> Session<'c> {
        Session::new(self, signal)
    }

    /// Classifies everything that a reader gives, on two threads where it is long.
    pub fn classify_reader(
        &self,
        signal: &Signal,
        reader: impl Read + Send,
    ) -> std::io::Result<Option<Fault>> {
        let mut session = self.session(signal);
        session.read(reader)?;
        Ok(session.finish())
    }

    /// What an HTTP status alone says.
    pub fn status_reason(&self, status: u16, surface: Surface) -> Option<Reason> {
        let on = |rule: &&Rule| match surface {
            Surface::Command => rule.on_command,
            Surface::Response => rule.on_response,
        };
        let rule =
            self.rules.iter().filter(|rule| !rule.reads_text() && rule.status.contains(&status)).find(on)?;
        rule.reason()
    }

    fn patterns(&self, index: usize) -> Patterns<'_> {
        let rule = &self.rules[index];
        let built = self.built[index].get_or_init(Box::default);
        let users = self.users.get(index).is_some_and(|users| *users);
        let pattern = |which: usize| {
            let text = [&rule.regex, &rule.above, &rule.below][which].as_deref()?;
            let needs = if users { Needs::default() } else { builtin::needs(index, which) };
            Some(Pattern { text, needs, built: &built[which] })
        };
        Patterns { regex: pattern(0), above: pattern(1), below: pattern(2) }
    }
}

/// Why a classifier could not be made of some packs.
#[derive(Debug, thiserror::Error)]
pub enum ClassifierError {
    /// A pack is wrong.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// There are too many literals.
    #[error(transparent)]
    TooManyPatterns(#[from] TooManyPatterns),
}
