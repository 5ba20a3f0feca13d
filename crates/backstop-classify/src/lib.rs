//! Classifies failures: which reason a failure has, and the evidence for it.
//!
//! A [`Classifier`] holds rule packs. Give it a [`Signal`] and get a [`Fault`]: the reason, the
//! line that says why, which rule matched which text, and the facts that were found (failed tests,
//! files, the missing package).
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
//! This crate must not act: deciding and recovering is done elsewhere. It reads no clock, no
//! environment and no file, and keeps a bounded part of its input in memory, however long that is.
//! The main types are [`Rule`] (what to look for), [`Classifier`] (all rules and their literals)
//! and [`Session`] (one signal being classified).

mod answer;
mod audit;
// These are compiled into the build script too, which uses more of them than the library does.
#[allow(dead_code, unreachable_pub)]
mod automaton;
mod backoff;
mod batch_rows;
mod builtin;
mod chunk;
mod clean;
mod credential;
mod effect;
pub mod effect_pack;
#[allow(unreachable_pub)]
mod effect_rule;
mod examples;
mod excerpt;
mod grammar;
pub mod learned;
mod limit_window;
mod limited_model;
mod matcher;
mod mentioned;
mod observation;
pub mod pack;
mod pattern;
mod program;
mod provider;
mod reader;
mod response;
#[allow(unreachable_pub)]
mod row;
mod rule;
mod section;
mod session;
mod test_name;
mod trace;
mod trailing_advice;
mod waits;
mod weigh;
mod went_well;

pub use answer::is_answer;
pub use audit::{Audit, Auditor, RuleRecord};
pub use automaton::TooManyPatterns;
pub use batch_rows::{BatchRow, BatchRows};
pub use credential::{CredentialFacts, add_credential_facts, credential_facts};
pub use effect::{Effect, Effects, NothingDone, Repeatable};
pub use effect_rule::{Changes, EffectRule};
pub use examples::{ExampleFailure, check_examples};
pub use limited_model::{is_account_limit, limited_model, limited_model_of, model_of_window};
pub use observation::Observation;
pub use pack::PackError;
pub use program::{Call, Calls, all_calls, calls};
pub use provider::{
    agent_names, credential_variables, model_of_command, model_of_words, provider_names, provider_of_command,
    provider_of_name,
};
pub use row::read_row;
pub use rule::{Example, List, Rule, RuleOutcome, Text, Trace, Weight};
pub use session::Session;

use automaton::Automaton;
use backstop_core::{Fault, Reason, Redactor, Signal, Surface, Zone};
use learned::Table;
use pattern::{Built, Needs, Pattern};
use std::borrow::Cow;
use std::io::Read;
use std::sync::OnceLock;

/// All rules and the table of their literals. Create one and use it for every signal.
#[derive(Debug)]
pub struct Classifier {
    rules: Cow<'static, [Rule]>,
    automaton: Automaton,
    /// Which rules come from users' packs: for those, the literals that a regex needs are not
    /// known.
    users: Vec<bool>,
    built: Vec<OnceLock<Box<[Built; 3]>>>,
    redactor: Redactor,
    /// The zone of times that name none.
    zone: Zone,
    /// Whether the learned back-off is asked.
    learns: bool,
    /// The learned table, if it is not the one that is compiled in.
    own_table: Option<Box<Table>>,
}

/// A rule's regexes, built when its literals select a line on which they may match.
struct Patterns<'c> {
    regex: Option<Pattern<'c>>,
    above: Option<Pattern<'c>>,
    below: Option<Pattern<'c>>,
}

impl Classifier {
    /// A classifier with the built-in rules.
    pub fn builtin() -> Self {
        Self::over(Cow::Borrowed(builtin::RULES), Vec::new(), builtin::automaton())
    }

    /// A classifier with the built-in rules and users' packs. A user's rule replaces a built-in
    /// rule with the same id.
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
        Self::of_rules(rules, users)
    }

    /// A classifier with the rules of a pack and nothing else.
    pub fn only(pack: Vec<Rule>) -> Result<Self, ClassifierError> {
        let users = vec![true; pack.len()];
        Self::of_rules(pack, users)
    }

    fn of_rules(rules: Vec<Rule>, users: Vec<bool>) -> Result<Self, ClassifierError> {
        pack::check_references(&rules)?;
        let patterns = rules.iter().enumerate().flat_map(|(index, rule)| {
            // A pack has at most 4,096 rules, so the index fits; a larger one is never selected.
            let index = u16::try_from(index).unwrap_or(u16::MAX);
            rule.literals.iter().map(move |literal| (literal.as_bytes(), index))
        });
        let automaton = Automaton::build(patterns)?;
        Ok(Self::over(Cow::Owned(rules), users, automaton))
    }

    fn over(rules: Cow<'static, [Rule]>, users: Vec<bool>, automaton: Automaton) -> Self {
        let built = std::iter::repeat_with(OnceLock::new).take(rules.len()).collect();
        Self {
            rules,
            automaton,
            users,
            built,
            redactor: Redactor::default(),
            zone: Zone::utc(),
            learns: true,
            own_table: None,
        }
    }

    /// Masks secrets with this redactor, which knows values besides shapes.
    pub fn redacting(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// Reads times of day that name no zone as times of this one.
    pub fn in_zone(mut self, zone: Zone) -> Self {
        self.zone = zone;
        self
    }

    /// Whether the learned back-off is asked where no rule is sure.
    pub fn learning(mut self, learns: bool) -> Self {
        self.learns = learns;
        self
    }

    /// Asks this table, and not the one that is compiled in.
    pub fn with_table(mut self, table: Table) -> Self {
        self.own_table = Some(Box::new(table));
        self
    }

    fn table(&self) -> Option<&Table> {
        self.own_table.as_deref().or_else(|| learned::builtin())
    }

    /// All rules.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Classifies a signal. `None` if it is a success.
    pub fn classify(&self, signal: &Signal) -> Option<Fault> {
        let mut session = self.session(signal);
        if signal.surface == Surface::Command {
            session.feed(&signal.stdout);
            session.next_stream();
            session.feed(&signal.stderr);
        }
        session.finish()
    }

    /// Classifies text piece by piece, for text too long for memory. The text in the signal itself
    /// is not read.
    pub fn session<'c>(&'c self, signal: &'c Signal) -> Session<'c> {
        Session::new(self, signal)
    }

    /// Classifies everything that a reader returns, on two threads if it is long.
    pub fn classify_reader(
        &self,
        signal: &Signal,
        reader: impl Read + Send,
    ) -> std::io::Result<Option<Fault>> {
        let mut session = self.session(signal);
        session.read(reader)?;
        Ok(session.finish())
    }

    /// The reason for an HTTP status alone.
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

/// Why a classifier could not be built from packs.
#[derive(Debug, thiserror::Error)]
pub enum ClassifierError {
    /// A pack has an error.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// There are too many literals.
    #[error(transparent)]
    TooManyPatterns(#[from] TooManyPatterns),
}
