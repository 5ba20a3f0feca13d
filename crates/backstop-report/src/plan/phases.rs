//! What commands show that look at phases of a plan's run, or change them.

use crate::{JSON_SCHEMA, Style, View};
use backstop_core::{Fault, RunId, SafeText};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The log of an attempt of a phase.
#[derive(Debug, Clone)]
pub struct AttemptLog {
    /// The run.
    pub run: RunId,
    /// The phase's id.
    pub phase: String,
    /// The attempt, counted from 1.
    pub attempt: u32,
    /// The log's file.
    pub file: PathBuf,
    /// What is in it.
    pub text: SafeText,
}

impl View for AttemptLog {
    fn text(&self, _: Style) -> String {
        self.text.terminal()
    }

    fn json(&self) -> Value {
        json!({
            "schema": JSON_SCHEMA, "run": self.run, "phase_id": self.phase, "attempt": self.attempt,
            "file": self.file.display().to_string(), "text": self.text.terminal(),
        })
    }
}

/// What an attempt of a phase changed.
#[derive(Debug, Clone)]
pub struct AttemptChanges {
    /// The run.
    pub run: RunId,
    /// The phase's id.
    pub phase: String,
    /// The attempt, counted from 1.
    pub attempt: u32,
    /// The ref that holds it.
    pub reference: String,
    /// The commit that it began from.
    pub base: String,
    /// The commit that holds its tree.
    pub commit: String,
    /// The changed paths, and how each was changed.
    pub paths: Vec<(String, &'static str)>,
    /// The changes, as git prints them.
    pub diff: SafeText,
}

impl View for AttemptChanges {
    fn text(&self, _: Style) -> String {
        if self.paths.is_empty() {
            return format!("attempt {} of phase {} changed no file", self.attempt, self.phase);
        }
        self.diff.terminal()
    }

    fn json(&self) -> Value {
        let path = |(path, how): &(String, &'static str)| json!({ "path": path, "how": how });
        json!({
            "schema": JSON_SCHEMA, "run": self.run, "phase_id": self.phase, "attempt": self.attempt,
            "reference": self.reference, "base": self.base, "commit": self.commit,
            "paths": self.paths.iter().map(path).collect::<Vec<_>>(),
        })
    }
}

/// A phase that a person has changed.
#[derive(Debug, Clone)]
pub struct ChangedPhase {
    /// Its id.
    pub id: String,
    /// Its id as the plan writes it.
    pub shown: SafeText,
    /// Its status now.
    pub status: &'static str,
    /// Whether it is skipped.
    pub skipped: bool,
}

/// Phases that a person has changed.
#[derive(Debug, Clone)]
pub struct ChangedPhases {
    /// The run.
    pub run: RunId,
    /// The phases.
    pub phases: Vec<ChangedPhase>,
    /// What was done to them.
    pub what: &'static str,
    /// The command that continues the run.
    pub next: String,
    /// Whether the run is continued by the same command.
    pub is_continued: bool,
    /// How many finished phases depend on what is done again, and are not done again themselves.
    pub dependents_kept: usize,
}

impl ChangedPhases {
    /// A warning about phases that are not done again, and what to do about it.
    pub fn warning(&self) -> Option<(String, &'static str)> {
        let kept = self.dependents_kept;
        let what = format!(
            "finished phases that wait for what is done again ({kept}) are not done again themselves"
        );
        (kept > 0).then_some((what, "`backstop plan reset` sets them back, too"))
    }
}

impl View for ChangedPhases {
    fn text(&self, _: Style) -> String {
        let names: Vec<String> = self.phases.iter().map(|phase| phase.shown.line(40)).collect();
        let (names, what) = (names.join(", "), self.what);
        match self.is_continued {
            true => format!("{names}: {what}\n"),
            false => format!("{names}: {what}; go on with `{}`\n", self.next),
        }
    }

    fn json(&self) -> Value {
        let phase = |phase: &ChangedPhase| json!({ "phase_id": phase.id, "status": phase.status, "skipped": phase.skipped });
        let phases: Vec<Value> = self.phases.iter().map(phase).collect();
        json!({ "schema": JSON_SCHEMA, "run": self.run, "phases": phases, "next": self.next })
    }
}

/// What a gate found on the tree as it is.
#[derive(Debug, Clone)]
pub struct VerifiedGate {
    /// The gate.
    pub gate: String,
    /// Its command.
    pub check: String,
    /// Whether it passed.
    pub passed: bool,
    /// What it found.
    pub fault: Option<Fault>,
}

/// What the gates of phases found on the tree as it is.
#[derive(Debug, Clone)]
pub struct VerifiedGates {
    /// The plan.
    pub plan: String,
    /// The gates.
    pub gates: Vec<VerifiedGate>,
}

impl VerifiedGates {
    /// Whether all of them passed.
    pub fn passed(&self) -> bool {
        self.gates.iter().all(|gate| gate.passed)
    }
}

impl View for VerifiedGates {
    fn text(&self, _: Style) -> String {
        let line = |gate: &VerifiedGate| {
            let line = match &gate.fault {
                None => format!("{}: passed", gate.gate),
                Some(fault) => {
                    let cause = fault.cause.as_ref().map(|cause| cause.line(300)).unwrap_or_default();
                    format!("{}: {}: {cause}", gate.gate, fault.reason)
                }
            };
            format!("{}\n", SafeText::new(line).line(500))
        };
        self.gates.iter().map(line).collect()
    }

    fn json(&self) -> Value {
        let gate = |gate: &VerifiedGate| {
            let cause = gate.fault.as_ref().and_then(|fault| fault.cause.as_ref());
            json!({
                "gate": gate.gate, "check": gate.check, "passed": gate.passed,
                "reason": gate.fault.as_ref().map(|fault| fault.reason),
                "cause": cause.map(|cause| cause.line(400)),
            })
        };
        let gates: Vec<Value> = self.gates.iter().map(gate).collect();
        json!({ "schema": JSON_SCHEMA, "plan": self.plan, "passed": self.passed(), "gates": gates })
    }
}
