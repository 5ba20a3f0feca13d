//! How it ended: for people on standard error, for programs as JSON.

use super::Exec;
use crate::terminal;
use backstop_config::LogFormat;
use backstop_core::{Decision, Fault, Outcome, RunId, SafeText};
use backstop_report::{JSON_SCHEMA, RunStory, to_json};
use backstop_runtime::{Project, Recorder};
use serde_json::{Value, json};
use std::time::Duration;

/// How it ended.
pub(super) struct Ended {
    pub(super) run: RunId,
    pub(super) outcome: Outcome,
    pub(super) exit: i32,
    pub(super) attempts: u32,
    pub(super) elapsed: Duration,
    pub(super) command: SafeText,
    pub(super) program: SafeText,
    /// What it is in the end.
    pub(super) fault: Option<Fault>,
    /// The fault of each failed attempt.
    pub(super) faults: Vec<Fault>,
    pub(super) decision: Option<Decision>,
    pub(super) next: Option<SafeText>,
    pub(super) signal: Option<String>,
    pub(super) left_behind: Vec<String>,
    /// What could not be ended.
    pub(super) unended: Vec<String>,
    /// How old the result is, where it was used again.
    pub(super) cached_seconds: Option<f64>,
    /// Whether there is a story to tell.
    pub(super) recorded: bool,
}

impl Ended {
    /// A result that was used again.
    pub(super) fn cached(run: RunId, command: SafeText) -> Self {
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
            next: None,
            signal: None,
            left_behind: Vec::new(),
            unended: Vec::new(),
            cached_seconds: None,
            recorded: true,
        }
    }

    /// Tells it wherever it was asked for.
    pub(super) fn tell(&self, args: &Exec, project: &Project, recorder: &Recorder) {
        if project.config.log_format() == LogFormat::Human && !args.is_quiet() {
            self.tell_people(args);
        }
        if args.json {
            let _ = terminal::print(&format!("{}\n", to_json(&self.json())));
        }
        if let Some(file) = &args.report {
            let markdown = file.extension().is_some_and(|e| e == "md");
            let story = || {
                let events = project.existing_journal().ok()??.load(recorder.run()).ok()?;
                Some(backstop_report::story_markdown(&RunStory::from_events(&events)?))
            };
            let text =
                markdown.then(story).flatten().unwrap_or_else(|| format!("{}\n", to_json(&self.json())));
            if let Err(error) = backstop_store::write_atomic(file, text.as_bytes()) {
                terminal::warn(&format!("cannot write the report {}: {error}", file.display()), None);
            }
        }
    }

    fn tell_people(&self, args: &Exec) {
        let style = terminal::stderr_style();
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
        if !self.unended.is_empty() {
            terminal::warn(&format!("some processes could not be ended: {}", self.unended.join(", ")), None);
        }
        let run = self.recorded.then_some(self.run);
        match (&self.fault, &self.decision) {
            _ if self.outcome == Outcome::Interrupted => {
                let told = run.map(|run| format!("{}{}", style.dot(), backstop_report::story_command(run)));
                text.push_str(&format!(
                    "stopped after attempt {}{}\n",
                    self.attempts,
                    told.unwrap_or_default()
                ));
            }
            (Some(fault), _) if args.classify => text.push_str(&backstop_report::fault(fault, style)),
            (Some(fault), Some(decision)) => {
                text.push_str(&backstop_report::gave_up(
                    fault,
                    decision,
                    self.attempts,
                    self.elapsed,
                    run,
                    self.next.as_ref(),
                    style,
                ));
                if !text.ends_with('\n') {
                    text.push('\n');
                }
            }
            _ if self.attempts > 1 => {
                text.push_str(&backstop_report::done(self.attempts, self.elapsed, run, style));
                text.push('\n');
            }
            _ => {}
        }
        terminal::say(&text);
    }

    /// For programs. A failure also has what the failure report of the skill manager has.
    pub(super) fn json(&self) -> Value {
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
            "fault": self.fault.as_ref().map(|f| backstop_report::fault_json(Some(f))),
            "decision": self.decision,
            "next": self.next,
            "left_behind": self.left_behind,
            "cached_seconds": self.cached_seconds,
        });
        if let (Some(fault), Value::Object(fields)) = (&self.fault, &mut value) {
            let errors: Vec<SafeText> =
                self.faults.iter().map(|f| SafeText::new(backstop_report::summary(f))).collect();
            let report = backstop_report::failure_report(
                &self.program,
                &errors,
                &backstop_report::failure_suggestion(fault),
            );
            for key in ["tool", "errors", "suggestion"] {
                fields.insert(key.to_owned(), report[key].clone());
            }
        }
        value
    }
}
