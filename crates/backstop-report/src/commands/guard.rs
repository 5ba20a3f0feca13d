//! Rate limits and breakers: what is closed, until when, and why.

use crate::{JSON_SCHEMA, Style, View, duration, near_time, table};
use backstop_core::breaker::{BreakerState, FAILURES_MAX};
use backstop_core::guard::{Closed, GuardState, PROBE_EVERY};
use backstop_core::{Name, SafeText, Timestamp};
use serde_json::{Value, json};

/// How many characters of a reason are shown.
const WHY_CHARS_MAX: usize = 200;

/// Whether a request may be sent to a provider now.
#[derive(Debug, Clone)]
pub struct GuardDecision<'g> {
    /// The provider.
    pub provider: &'g Name,
    /// Until when its guard is closed, and why, if it is.
    pub closed: Option<&'g Closed>,
    /// The time.
    pub now: Timestamp,
}

impl View for GuardDecision<'_> {
    fn text(&self, _: Style) -> String {
        let provider = self.provider;
        match self.closed {
            Some(closed) => format!(
                "{provider} is limited for {} until {}: {}\n",
                duration(closed.left(self.now)),
                near_time(closed.until, self.now),
                SafeText::new(closed.why.clone()).line(WHY_CHARS_MAX)
            ),
            None => format!("{provider} is open\n"),
        }
    }

    fn json(&self) -> Value {
        json!({
            "schema": JSON_SCHEMA,
            "provider": self.provider,
            "decision": if self.closed.is_some() { "rate-limited" } else { "open" },
            "until": self.closed.map(|closed| closed.until),
            "wait_seconds": self.closed.map_or(0.0, |closed| closed.left(self.now).as_secs_f64()),
            "why": self.closed.map(|closed| closed.why.clone()),
        })
    }
}

/// That a guard is waited for.
pub fn guard_waits(provider: &Name, closed: &Closed, now: Timestamp) -> String {
    let why = SafeText::new(closed.why.clone()).line(WHY_CHARS_MAX);
    format!("waiting {} for {provider}: {why}\n", duration(closed.left(now)))
}

/// The same, while a command waits that can be stopped.
pub fn guard_countdown(provider: &Name, closed: &Closed, now: Timestamp, style: Style) -> String {
    let (left, why) = (duration(closed.left(now)), SafeText::new(closed.why.clone()).line(100));
    format!("waiting {left} for {provider} ({why}){}Ctrl-C to stop\n", style.dot())
}

/// All guards and breakers that are known.
#[derive(Debug, Clone)]
pub struct GuardList {
    /// The guards, each with how many wait for it.
    pub guards: Vec<(GuardState, usize)>,
    /// The breakers.
    pub breakers: Vec<BreakerState>,
    /// The time.
    pub now: Timestamp,
}

impl View for GuardList {
    fn text(&self, _: Style) -> String {
        if self.guards.is_empty() && self.breakers.is_empty() {
            return "no rate limit is known yet; `backstop exec --provider NAME -- COMMAND` learns one, and so \
                    does `backstop guard ingest NAME`\n"
                .to_owned();
        }
        let mut text = String::new();
        if !self.guards.is_empty() {
            let rows: Vec<Vec<String>> = self.guards.iter().map(|guard| self.guard_row(guard)).collect();
            text.push_str(&table(&["GUARD", "STATE", "WAITING", "REFUSALS", "WHY"], &rows));
        }
        if !self.breakers.is_empty() {
            let row = |state: &BreakerState| {
                let operation = SafeText::new(state.operation.clone()).line(40);
                let name = state.breaker.name(self.now).to_owned();
                vec![state.provider.to_string(), operation, name, breaker_why(state, self.now)]
            };
            let rows: Vec<Vec<String>> = self.breakers.iter().map(row).collect();
            text.push_str(&table(&["BREAKER", "OPERATION", "STATE", "WHY"], &rows));
        }
        text
    }

    fn json(&self) -> Value {
        let guard = |(guard, waiting): &(GuardState, usize)| {
            let closed = guard.closed.as_ref();
            let decision = GuardDecision { provider: &guard.key.provider, closed, now: self.now };
            let mut row = decision.json();
            row["account"] = json!(guard.key.account());
            row["model"] = json!(guard.key.model());
            row["waiting"] = json!(waiting);
            row["in_words"] = json!(closed.is_some_and(|closed| closed.in_words));
            row["answers"] = json!(guard.answers);
            row["refusals"] = json!(guard.refusals);
            row["updated_at"] = json!(guard.updated_at);
            row
        };
        let breaker = |state: &BreakerState| {
            json!({
                "provider": state.provider, "operation": state.operation,
                "state": state.breaker.name(self.now), "failures": state.breaker.failures,
                "opened": state.breaker.opened, "open_since": state.breaker.open_since,
                "updated_at": state.updated_at, "why": breaker_why(state, self.now),
            })
        };
        let guards: Vec<Value> = self.guards.iter().map(guard).collect();
        let breakers: Vec<Value> = self.breakers.iter().map(breaker).collect();
        json!({ "schema": JSON_SCHEMA, "guards": guards, "breakers": breakers })
    }
}

impl GuardList {
    fn guard_row(&self, (guard, waiting): &(GuardState, usize)) -> Vec<String> {
        let (state, why) = match &guard.closed {
            Some(closed) => {
                let left = duration(closed.left(self.now));
                let until = near_time(closed.until, self.now);
                (format!("limited for {left} until {until}"), closed_why(closed))
            }
            None => ("open".to_owned(), "-".to_owned()),
        };
        vec![guard.key.to_string(), state, waiting.to_string(), guard.refusals.to_string(), why]
    }
}

/// Why a guard is closed.
fn closed_why(closed: &Closed) -> String {
    let why = SafeText::new(closed.why.clone()).line(80);
    // Shorter ones are over before anybody may try.
    let is_probed = closed.in_words && closed.until.since(closed.learned_at) > PROBE_EVERY;
    if is_probed { format!("{why} (in words: one may try each {})", duration(PROBE_EVERY)) } else { why }
}

/// Why a breaker stands as it does.
fn breaker_why(state: &BreakerState, now: Timestamp) -> String {
    let failures = state.breaker.failures;
    match (state.breaker.name(now), state.breaker.open_since) {
        ("closed", _) => format!("{failures} of {FAILURES_MAX} failures in a row"),
        ("half-open", _) => "the next one is let through to see whether it works again".to_owned(),
        (_, Some(since)) => format!("{failures} failures in a row, open since {since}"),
        _ => format!("{failures} failures in a row"),
    }
}

/// A provider's limit was forgotten.
#[derive(Debug, Clone)]
pub struct GuardCleared {
    /// The provider.
    pub provider: Name,
    /// Whether its guard was closed.
    pub was_limited: bool,
    /// How many breakers were reset.
    pub breakers: usize,
}

impl View for GuardCleared {
    fn text(&self, _: Style) -> String {
        let is = if self.was_limited || self.breakers > 0 { "is open now" } else { "was open" };
        format!("{} {is}\n", self.provider)
    }

    fn json(&self) -> Value {
        json!({
            "schema": JSON_SCHEMA, "provider": self.provider, "was_limited": self.was_limited,
            "breakers": self.breakers,
        })
    }
}
