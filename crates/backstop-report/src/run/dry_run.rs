//! What `exec --dry-run` shows: what would be repeated, what not, and why. Nothing was run.

use super::duration;
use crate::{JSON_SCHEMA, Style, View};
use backstop_core::{Reason, SafeText};
use serde_json::{Value, json};
use std::time::Duration;

/// The width of the labels.
const LABEL_CHARS: usize = 9;
/// How wide a list of reasons is before it is wrapped.
const REASONS_CHARS: usize = 80;

/// What would be done about a command.
#[derive(Debug, Clone)]
pub struct ExecDryRun {
    /// The command as one would type it.
    pub command: SafeText,
    /// Whether it would be repeated by itself.
    pub repeatable: bool,
    /// Why.
    pub why: String,
    /// The rule that says so, such as `curl.send`.
    pub rule: Option<String>,
    /// Which failures say that nothing was changed, so that it is repeated all the same.
    pub nothing_done: Option<String>,
    /// The profile.
    pub profile: String,
    /// What would be done about each reason.
    pub reasons: Vec<DryRunReason>,
    /// The longest wait that a server may ask for.
    pub wait_max: Duration,
    /// How long one attempt may take, may be silent, and all of them together.
    pub timeout: Option<Duration>,
    /// How long an attempt may be silent.
    pub idle: Option<Duration>,
    /// How long all attempts together may take.
    pub deadline: Option<Duration>,
    /// The budget, and how many units of how many are left.
    pub budget: Option<(String, u64, u64)>,
    /// The provider, and how long its guard stays closed, if it is.
    pub guard: Option<(String, Option<Duration>)>,
    /// How often in a row it has failed the same way, with nothing changed in between.
    pub failures_in_a_row: u32,
    /// Why it would not be started now, if it would not.
    pub refused: Option<String>,
}

/// What would be done about one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DryRunReason {
    /// The reason.
    pub reason: Reason,
    /// What would be done about the first such failure: `retry`, `confirm`, `surface`.
    pub action: &'static str,
    /// What would be done where nothing was changed yet.
    pub if_nothing_done: &'static str,
    /// How many attempts there are in all.
    pub attempts: u32,
    /// The waits between them, before jitter.
    pub waits: Vec<Duration>,
    /// Why.
    pub why: String,
}

impl DryRunReason {
    /// `up to 4 attempts, after 1 s, 2 s and 4 s`.
    fn words(&self) -> String {
        let repeats = || {
            let waits: Vec<String> = self.waits.iter().take(4).map(|wait| duration(*wait)).collect();
            let more = if self.waits.len() > 4 { " …" } else { "" };
            format!("up to {} attempts, {}{more} apart", self.attempts, waits.join(", "))
        };
        match self.action {
            "retry" => repeats(),
            "await_guard" => format!("{}, once its rate limit is over", repeats()),
            "confirm" if self.if_nothing_done == "confirm" => {
                "needs confirmation before it is retried".to_owned()
            }
            "confirm" => {
                format!("needs confirmation before it is retried; if nothing was changed, {}", repeats())
            }
            "defer" => "put aside, `backstop deferred run` runs it later".to_owned(),
            "halt" => "stops the run".to_owned(),
            _ => "one attempt".to_owned(),
        }
    }
}

impl View for ExecDryRun {
    fn text(&self, style: Style) -> String {
        let mut text = String::from("nothing is run: this is what would be done\n");
        let mut row = |label: &str, words: &str| {
            text.push_str(&format!("  {label:LABEL_CHARS$} {}\n", style.marks(words)));
        };
        row("command", &format!("`{}`", self.command.line(200)));
        let repeated = if self.repeatable { "yes" } else { "only after a confirmation" };
        row("repeated", &format!("{repeated}: {}", self.why));
        if let Some(words) = &self.nothing_done {
            row("", words);
        }
        if !self.repeatable {
            row("", "`--repeatable`, or `exec.repeatable` in the settings, lets it be repeated by itself");
        }
        row("profile", &self.profile);
        for (words, reasons) in self.groups() {
            let mut lines = wrapped(&reasons);
            let first = lines.remove(0);
            row("", &format!("{words}: {first}"));
            for line in lines {
                row("", &format!("  {line}"));
            }
        }
        row("waits", &format!("up to {}, if the server asks for it", duration(self.wait_max)));
        let limit = |limit: Option<Duration>| limit.map_or("none".to_owned(), duration);
        let dot = style.dot();
        row(
            "limits",
            &format!(
                "timeout {}{dot}idle {}{dot}deadline {}",
                limit(self.timeout),
                limit(self.idle),
                limit(self.deadline)
            ),
        );
        let budget = self.budget.as_ref();
        row(
            "budget",
            &budget.map_or("none".to_owned(), |(name, left, of)| format!("{name}: {left} of {of} left")),
        );
        let guard = match &self.guard {
            None => "none: no provider is named".to_owned(),
            Some((provider, None)) => format!("{provider}: open"),
            Some((provider, Some(left))) => format!("{provider}: closed for {}", duration(*left)),
        };
        row("guard", &guard);
        if self.failures_in_a_row > 0 {
            row(
                "loop",
                &format!(
                    "the same failure {} times in a row, and nothing changed since",
                    self.failures_in_a_row
                ),
            );
        }
        if let Some(why) = &self.refused {
            row("now", &format!("it would not be started: {why}"));
        }
        text
    }

    fn json(&self) -> Value {
        let seconds = |limit: Option<Duration>| limit.map(|limit| limit.as_secs_f64());
        let reasons: Vec<Value> = self
            .reasons
            .iter()
            .map(|reason| {
                let waits: Vec<f64> = reason.waits.iter().map(Duration::as_secs_f64).collect();
                json!({
                    "reason": reason.reason, "action": reason.action, "if_nothing_done": reason.if_nothing_done,
                    "attempts": reason.attempts, "waits_seconds": waits, "why": reason.why,
                })
            })
            .collect();
        json!({
            "schema": JSON_SCHEMA,
            "operation": self.command,
            "repeatable": self.repeatable,
            "why": self.why,
            "rule": self.rule,
            "nothing_done": self.nothing_done,
            "profile": self.profile,
            "reasons": reasons,
            "wait_max_seconds": self.wait_max.as_secs_f64(),
            "timeout_seconds": seconds(self.timeout),
            "idle_seconds": seconds(self.idle),
            "deadline_seconds": seconds(self.deadline),
            "budget": self.budget.as_ref().map(|(name, left, of)| json!({ "name": name, "remaining": left, "units": of })),
            "guard": self.guard.as_ref().map(|(provider, closed)| json!({ "provider": provider, "closed_seconds": seconds(*closed) })),
            "failures_in_a_row": self.failures_in_a_row,
            "refused": self.refused,
        })
    }
}

impl ExecDryRun {
    /// Reasons for which the same is done, the rarest last; one attempt is the rest.
    fn groups(&self) -> Vec<(String, Vec<&'static str>)> {
        let mut groups: Vec<(String, Vec<&'static str>)> = Vec::new();
        for reason in &self.reasons {
            let words = reason.words();
            match groups.iter_mut().find(|(known, _)| *known == words) {
                Some((_, reasons)) => reasons.push(reason.reason.code()),
                None => groups.push((words, vec![reason.reason.code()])),
            }
        }
        groups.sort_by_key(|(words, _)| words == "one attempt");
        for (words, reasons) in &mut groups {
            if words == "one attempt" && reasons.len() > 5 {
                *reasons = vec!["everything else"];
            }
        }
        groups
    }
}

/// A list in lines that are not too long.
fn wrapped(reasons: &[&str]) -> Vec<String> {
    let mut lines = vec![String::new()];
    for (index, reason) in reasons.iter().enumerate() {
        let comma = if index + 1 < reasons.len() { "," } else { "" };
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.len() + reason.len() > REASONS_CHARS {
            lines.push(format!("{reason}{comma}"));
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&format!("{reason}{comma}"));
        }
    }
    lines
}
