//! Checks of a machine and a project, each with what to do about it.

use crate::{JSON_SCHEMA, Style, View};
use backstop_core::{HintedError, SafeText};
use serde_json::{Value, json};

/// How many characters of what a check says are shown.
const LINE_CHARS_MAX: usize = 300;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckState {
    /// As it should be.
    Good,
    /// Worth knowing.
    Note,
    /// It keeps Backstop from working.
    Bad,
}

impl CheckState {
    /// The name as it is written in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Bad => "failed",
        }
    }
}

/// One check, and how it came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was checked, such as `store`.
    pub name: &'static str,
    /// How it came out.
    pub state: CheckState,
    /// What was found.
    pub says: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Check {
    /// As it should be.
    pub fn good(name: &'static str, says: impl Into<String>) -> Self {
        Self { name, state: CheckState::Good, says: says.into(), hint: None }
    }

    /// Worth knowing.
    pub fn note(name: &'static str, says: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name, state: CheckState::Note, says: says.into(), hint: Some(hint.into()) }
    }

    /// It keeps Backstop from working.
    pub fn bad(name: &'static str, says: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name, state: CheckState::Bad, says: says.into(), hint: Some(hint.into()) }
    }

    /// An error keeps Backstop from working.
    pub fn error(name: &'static str, error: &dyn HintedError) -> Self {
        let hint = error.hints().into_iter().next();
        Self { name, state: CheckState::Bad, says: error.to_string(), hint }
    }
}

/// All checks of `doctor`.
#[derive(Debug, Clone, Default)]
pub struct Checks(pub Vec<Check>);

impl Checks {
    /// Whether none has failed.
    pub fn is_ok(&self) -> bool {
        self.0.iter().all(|check| check.state != CheckState::Bad)
    }
}

impl View for Checks {
    fn text(&self, style: Style) -> String {
        let mut text = String::new();
        for check in &self.0 {
            let word = format!("{:<6}", check.state.name());
            let mark = match check.state {
                CheckState::Good => style.good(&word),
                CheckState::Note => style.strong(&word),
                CheckState::Bad => style.bad(&word),
            };
            let says = SafeText::new(check.says.clone()).line(LINE_CHARS_MAX);
            text.push_str(&format!("{mark}  {:<14} {says}\n", check.name));
            if let Some(hint) = &check.hint {
                let hint = SafeText::new(hint.clone()).line(LINE_CHARS_MAX);
                text.push_str(&format!("        {:<14} hint: {hint}\n", ""));
            }
        }
        text
    }

    fn json(&self) -> Value {
        let row = |check: &Check| json!({ "check": check.name, "state": check.state.name(), "says": check.says, "hint": check.hint });
        let rows: Vec<Value> = self.0.iter().map(row).collect();
        json!({ "schema": JSON_SCHEMA, "ok": self.is_ok(), "checks": rows })
    }
}
