//! What a gate is.

use super::CommandLine;
use backstop_core::Reason;
use std::time::Duration;

/// A check that a phase must pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// `lint`, `format`, `typecheck`, `test`, or a name of one's own. Where two stacks give the
    /// same, `lint:rust`.
    pub name: String,
    /// The command that checks.
    pub check: CommandLine,
    /// The command that puts right what it finds. It is named, never run.
    pub fix: Option<CommandLine>,
    /// How long the check may run. A gate that says so has this one clock, and may be silent for as
    /// long.
    pub timeout: Option<Duration>,
    /// Who asks for it.
    pub origin: Origin,
    /// The line that installs its tool where that is missing.
    pub install: Option<String>,
    /// How often failed tests are run again, unchanged.
    pub flaky: u32,
    /// What counts as passed.
    pub passes: Passes,
}

/// Who asks for a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It was found in the folder, for this stack.
    Detected(&'static str),
    /// A phase's own section of the plan names it: it is what the phase is for.
    Plan,
    /// The plan names it for every phase.
    PlanWide,
    /// The configuration names it.
    Config,
}

/// What counts as passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Passes {
    /// It exits with 0.
    #[default]
    ExitZero,
    /// It exits with 0 and writes nothing to standard output: each line is a finding (`gofmt -l`).
    SaysNothing,
}

/// What a gate checks, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateKind {
    /// `lint`.
    Lint,
    /// `format`.
    Format,
    /// `typecheck`.
    Typecheck,
    /// `test`.
    Test,
    /// Anything else.
    Other,
}

impl Gate {
    /// A gate with a name and a check, and nothing else.
    pub fn new(name: impl Into<String>, check: CommandLine, origin: Origin) -> Self {
        Self {
            name: name.into(),
            check,
            fix: None,
            timeout: None,
            origin,
            install: None,
            flaky: 0,
            passes: Passes::ExitZero,
        }
    }

    /// What it checks: its name up to the colon says so.
    pub fn kind(&self) -> GateKind {
        match base(&self.name) {
            "lint" => GateKind::Lint,
            "format" | "fmt" => GateKind::Format,
            "typecheck" | "types" => GateKind::Typecheck,
            "test" | "tests" => GateKind::Test,
            _ => GateKind::Other,
        }
    }

    /// Whether a phase must pass it although it failed before anybody worked.
    pub fn is_a_phases_own(&self) -> bool {
        self.origin == Origin::Plan
    }

    /// Whether it is meant by this name: `lint` means `lint:rust` too.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || base(&self.name) == name
    }
}

impl GateKind {
    /// What a failure of such a gate is where its output does not say.
    pub(super) fn reason(self) -> Option<Reason> {
        match self {
            GateKind::Lint => Some(Reason::LintError),
            GateKind::Format => Some(Reason::FormatError),
            GateKind::Typecheck => Some(Reason::TypecheckError),
            GateKind::Test => Some(Reason::TestFailure),
            GateKind::Other => None,
        }
    }
}

fn base(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}
