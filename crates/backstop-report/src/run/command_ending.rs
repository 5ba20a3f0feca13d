//! How a command ended: for people, and as JSON for programs.

use crate::{JSON_SCHEMA, Style};
use backstop_core::{Decision, Fault, Outcome, RunId, SafeText, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;

/// How a command ended.
#[derive(Debug, Clone)]
pub struct CommandEnding {
    /// The run.
    pub run: RunId,
    /// In one word.
    pub outcome: Outcome,
    /// The exit code that is passed on.
    pub exit: i32,
    /// How many attempts were made.
    pub attempts: u32,
    /// How long it took in all.
    pub elapsed: Duration,
    /// The command as one would type it.
    pub command: SafeText,
    /// Its program.
    pub program: SafeText,
    /// What it is in the end.
    pub fault: Option<Fault>,
    /// The fault of each failed attempt.
    pub faults: Vec<Fault>,
    /// What was decided last.
    pub decision: Option<Decision>,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The command that continues, where there is one.
    pub next: Option<SafeText>,
    /// The signal that ended it, by name.
    pub signal: Option<String>,
    /// Whether whoever started us stopped it, and not somebody else by a signal to the command.
    pub stopped_here: bool,
    /// Whether it ended because whoever read its output closed it.
    pub reader_left: bool,
    /// Programs that it left running, and that were ended.
    pub left_behind: Vec<String>,
    /// What could not be ended.
    pub unended: Vec<String>,
    /// How old the result is, where it was used again.
    pub cached_seconds: Option<f64>,
    /// Whether there is a story to tell.
    pub recorded: bool,
}

impl CommandEnding {
    /// A result that was used again.
    pub fn cached(run: RunId, command: SafeText) -> Self {
        Self {
            run,
            outcome: Outcome::Done,
            exit: 0,
            attempts: 0,
            elapsed: Duration::ZERO,
            command,
            program: SafeText::default(),
            fault: None,
            faults: Vec::new(),
            decision: None,
            ended_at: Timestamp::default(),
            next: None,
            signal: None,
            stopped_here: true,
            reader_left: false,
            left_behind: Vec::new(),
            unended: Vec::new(),
            cached_seconds: None,
            recorded: true,
        }
    }

    /// For people; with `explain`, a failure is explained in full.
    pub fn text(&self, explain: bool, style: Style) -> String {
        let mut text = String::new();
        if !self.left_behind.is_empty() {
            let names: Vec<String> =
                self.left_behind.iter().map(|n| SafeText::new(n.clone()).line(40)).collect();
            text.push_str(&style.faint(&format!(
                "ended what it had left running: {} (--keep-background leaves it)",
                names.join(", ")
            )));
            text.push('\n');
        }
        let run = self.recorded.then_some(self.run);
        match (&self.fault, &self.decision) {
            // Nobody reads the output any more: whoever closed it knows.
            _ if self.outcome == Outcome::Interrupted && self.reader_left => {}
            _ if self.outcome == Outcome::Interrupted => {
                let told = run.map(|run| format!("{}{}", style.dot(), crate::story_command(run)));
                let attempt =
                    if self.attempts > 1 { format!(" in attempt {}", self.attempts) } else { String::new() };
                let what = match &self.signal {
                    Some(signal) if !self.stopped_here => {
                        format!("ended by {} from elsewhere", SafeText::new(signal.clone()).line(20))
                    }
                    _ => "stopped by you".to_owned(),
                };
                text.push_str(&format!("{what}{attempt}{}\n", told.unwrap_or_default()));
            }
            (Some(fault), _) if explain => text.push_str(&crate::fault(fault, style)),
            (Some(fault), Some(decision)) => {
                text.push_str(&crate::gave_up(
                    fault,
                    decision,
                    self.attempts,
                    self.elapsed,
                    run,
                    self.next.as_ref(),
                    self.ended_at,
                    style,
                ));
                if !text.ends_with('\n') {
                    text.push('\n');
                }
            }
            _ if self.attempts > 1 => {
                text.push_str(&crate::done(self.attempts, self.elapsed, run, style));
                text.push('\n');
            }
            _ => {}
        }
        text
    }

    /// For programs. A failure also has what the failure report of the skill manager has.
    pub fn json(&self) -> Value {
        let mut value = json!({
            "schema": JSON_SCHEMA,
            "run": self.run,
            "outcome": self.outcome,
            "exit": self.exit,
            "signal": self.signal,
            "attempts": self.attempts,
            "duration_seconds": self.elapsed.as_secs_f64(),
            "operation": self.command,
            "reason": self.fault.as_ref().map(|f| f.reason),
            "fault": self.fault.as_ref().map(|f| crate::fault_json(Some(f))),
            "decision": self.decision,
            "next": self.next,
            "left_behind": self.left_behind,
            "cached_seconds": self.cached_seconds,
        });
        if let (Some(fault), Value::Object(fields)) = (&self.fault, &mut value) {
            let errors: Vec<SafeText> =
                self.faults.iter().map(|f| SafeText::new(crate::summary(f))).collect();
            let report = crate::failure_report(&self.program, &errors, &crate::failure_suggestion(fault));
            for key in ["tool", "errors", "suggestion"] {
                fields.insert(key.to_owned(), report[key].clone());
            }
        }
        value
    }
}
