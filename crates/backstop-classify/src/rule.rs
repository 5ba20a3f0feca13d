//! A rule. The built-in rules are such values in the binary; users' packs are parsed into the same
//! type.

use backstop_core::Reason;
use std::borrow::Cow;

/// Text that is either in the binary or was read from a pack.
pub type Text = Cow<'static, str>;
/// A list that is either in the binary or was read from a pack.
pub type List<T> = Cow<'static, [T]>;

/// The reason that a match of a rule stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleOutcome {
    /// This reason.
    Reason(Reason),
    /// The reason for the HTTP status that the rule captured.
    Status,
}

/// The weight of a match. Hard signals outweigh a tool's verdict, which outweighs a specific error
/// line, which outweighs a phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(pub u8);

impl Weight {
    /// The tiers by name, with their weights.
    pub const TIERS: &'static [(&'static str, u8)] = &[
        ("hard", 90),
        ("code", 80),
        ("verdict", 70),
        ("error", 60),
        ("consequence", 50),
        ("phrase", 40),
        ("circumstance", 30),
        ("hint", 20),
        ("generic", 10),
    ];
}

/// A language whose stack traces can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trace {
    /// `Traceback (most recent call last):`
    Python,
    /// `TypeError: … at f (file.js:1:2)`
    JavaScript,
    /// `Exception in thread … at a.b.C.d(C.java:1)`
    Java,
    /// `panic: … goroutine 1 [running]:`
    Go,
    /// `thread 'main' panicked at …`
    Rust,
    /// `file.rb:1:in 'm': message (Type)`
    Ruby,
}

/// A text that a rule must match, or must not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The text.
    pub text: Text,
    /// The command line.
    pub command: Option<Text>,
    /// The exit code; 1 if it is not given.
    pub exit: Option<i64>,
    /// The signal.
    pub signal: Option<i64>,
    /// Whether a time limit ended the command.
    pub timed_out: bool,
    /// The HTTP status.
    pub status: Option<u16>,
    /// The errno.
    pub errno: Option<Text>,
}

/// A rule: what it matches, and the reason that a match stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its id, such as `jest.summary`.
    pub id: Text,
    /// The pack it comes from.
    pub pack: Text,
    /// The file of that pack.
    pub source: Text,
    /// The line in the file where it begins.
    pub pack_line: u32,
    /// The reason that a match stands for.
    pub outcome: RuleOutcome,
    /// The weight of a match.
    pub weight: Weight,
    /// Whether it applies to commands.
    pub on_command: bool,
    /// Whether it applies to responses.
    pub on_response: bool,
    /// Literals, any of which selects a line. Case does not matter for selecting.
    pub literals: List<Text>,
    /// The regex that a selected line must match; without one, a literal must be there as it is
    /// written.
    pub regex: Option<Text>,
    /// A regex to look for in the lines above, for more facts. The match stands without it.
    pub above: Option<Text>,
    /// Whether the regex above must be found too.
    pub above_required: bool,
    /// How many lines above are looked at; 0 is the usual number.
    pub above_lines: u32,
    /// A regex to look for in the lines below, for more facts. The match stands without it.
    pub below: Option<Text>,
    /// How many lines below are looked at; 0 is the usual number.
    pub below_lines: u32,
    /// Whether the regex below must be found too.
    pub below_required: bool,
    /// If the captured test does not end with this, the lines below belong to it, up to one that
    /// does.
    pub join_until: Option<Text>,
    /// Programs, one of which must be in the command line.
    pub program: List<Text>,
    /// Words, one of which must be in the command line.
    pub argument: List<Text>,
    /// Exit codes, one of which must be the command's.
    pub exit: List<i64>,
    /// Signals, one of which must have ended the command.
    pub signal: List<i64>,
    /// HTTP statuses, one of which must be the answer's.
    pub status: List<u16>,
    /// Errnos, one of which must be the client's.
    pub errno: List<Text>,
    /// Whether a time limit must have ended the command.
    pub timed_out: bool,
    /// Whether the command must have written nothing to standard error.
    pub silent: bool,
    /// Whether lines that call themselves warnings are passed over.
    pub skip_warnings: bool,
    /// If not 0, the match must be within this many lines of the end.
    pub last_lines: u32,
    /// If not 0, the text must not have more lines than this.
    pub max_lines: u32,
    /// Rules, one of which must have matched too.
    pub requires: List<Text>,
    /// Rules, none of which may have matched.
    pub unless: List<Text>,
    /// Reasons that this rule makes more precise: it replaces them, whatever the weights.
    pub refines: List<Reason>,
    /// With `refines`: only if it matched at least as often as there are failures.
    pub per_failure: bool,
    /// How suitable its line is as the one-line cause; 0 means not at all.
    pub cause: u8,
    /// Whether the last match is the cause, not the first.
    pub pick_last: bool,
    /// What to do next, with `{file}`, `{test}`, `{missing}` and the like filled in.
    pub next: Option<Text>,
    /// The tool whose output this is.
    pub tool: Option<Text>,
    /// The provider whose answer this is.
    pub provider: Option<Text>,
    /// The variable that holds the provider's credential.
    pub credential: Option<Text>,
    /// Where the credential or plan is renewed.
    pub renewal: Option<Text>,
    /// The stack trace that begins here.
    pub trace: Option<Trace>,
    /// Examples that it must match.
    pub matches: List<Example>,
    /// Examples that it must not match.
    pub misses: List<Example>,
}

impl Rule {
    /// Whether the rule looks at text, or only at exit code, signal, status and the like.
    pub fn reads_text(&self) -> bool {
        !self.literals.is_empty()
    }

    /// The reason, if it does not depend on a captured status.
    pub fn reason(&self) -> Option<Reason> {
        match self.outcome {
            RuleOutcome::Reason(reason) => Some(reason),
            RuleOutcome::Status => None,
        }
    }

    /// The name of the tier that its weight belongs to.
    pub fn tier(&self) -> &'static str {
        Weight::TIERS.iter().find(|(_, weight)| *weight <= self.weight.0).map_or("generic", |(name, _)| name)
    }
}
