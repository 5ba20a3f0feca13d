//! What agents' command lines and libraries print at a limit: whether it is read as a limit, of
//! which window, and until when.
//!
//! `corpus/limits.jsonl` was collected. The two other tables were made up after such messages and
//! labelled before the reader was tried on them; what was wrong with the first was mended then,
//! what was wrong with the second was not looked at.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on says where")]

use backstop_classify::Classifier;
use backstop_core::{Reason, Signal, Timestamp, Zone};
use serde::Deserialize;

/// When a row is read that names no time.
const NOW: &str = "2026-11-16T12:00:00Z";
/// Spans are written in decimal, and times have milliseconds.
const TOLERANCE_SECONDS: f64 = 0.002;
/// The longest wait that a row which cannot be understood may ask for: a year.
const BOUND_SECONDS: f64 = 366.0 * 24.0 * 3600.0;

#[derive(Deserialize)]
struct Row {
    command: String,
    text: String,
    /// The reasons that are right; none for a near miss.
    #[serde(default)]
    reasons: Vec<Reason>,
    /// The reasons that are wrong, for a near miss.
    #[serde(default, rename = "not")]
    wrong: Vec<Reason>,
    wait: Option<WantedWait>,
    window: Option<String>,
    now: Option<String>,
    zone: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WantedWait {
    Seconds(f64),
    /// Any wait that is bounded, or none: `"bounded"`.
    Bounded(#[allow(dead_code)] String),
}

/// What is wrong with how a row is read; empty where it is right.
fn mistakes(row: &Row) -> Vec<String> {
    let now = Timestamp::parse_rfc3339(row.now.as_deref().unwrap_or(NOW)).unwrap();
    let zone = row.zone.as_deref().map_or_else(Zone::utc, |name| Zone::named(name).unwrap());
    let command = Some(row.command.clone()).filter(|command| !command.is_empty());
    let signal =
        Signal { at: Some(now), command, stdout: row.text.clone().into_bytes(), ..Signal::exited(1) };
    let fault = Classifier::builtin().in_zone(zone).classify(&signal).unwrap();
    let mut mistakes = Vec::new();
    if row.wrong.contains(&fault.reason) || !(row.reasons.is_empty() || row.reasons.contains(&fault.reason)) {
        mistakes.push(format!("reason {}", fault.reason));
    }
    if !row.wrong.is_empty() {
        return mistakes;
    }
    let got = fault.facts.resets_at.map(|at| at.since(now).as_secs_f64());
    let is_right = match (&row.wait, got) {
        (None, None) => true,
        (Some(WantedWait::Seconds(want)), Some(got)) => (want - got).abs() <= TOLERANCE_SECONDS,
        (Some(WantedWait::Bounded(_)), got) => got.is_none_or(|got| got <= BOUND_SECONDS),
        _ => false,
    };
    if !is_right {
        mistakes.push(format!("wait {got:?}"));
    }
    let facts = serde_json::to_value(&fault.facts).unwrap();
    let window = facts["window"].as_str();
    if row.window.is_some() && window != row.window.as_deref() {
        mistakes.push(format!("window {window:?}, not {:?}", row.window));
    }
    mistakes
}

/// The share of messages and of near misses that are read rightly.
fn score(name: &str, table: &str) -> (f64, f64) {
    let mut counts = [(0_usize, 0_usize); 2];
    let (mut by_reason, mut but_window) = (0, 0);
    for line in table.lines() {
        let row: Row = serde_json::from_str(line).unwrap();
        let (right, all) = &mut counts[usize::from(!row.wrong.is_empty())];
        *all += 1;
        let mistakes = mistakes(&row);
        by_reason += usize::from(row.wrong.is_empty() && !mistakes.iter().any(|m| m.starts_with("reason")));
        but_window += usize::from(row.wrong.is_empty() && mistakes.iter().all(|m| m.starts_with("window")));
        if mistakes.is_empty() {
            *right += 1;
        } else {
            println!("  {}: {}: {}", mistakes.join(", "), row.command, row.text.replace('\n', "⏎"));
        }
    }
    let share = |(right, all): (usize, usize)| right as f64 / all as f64;
    println!(
        "{name}: messages {} of {} ({by_reason} by reason, {but_window} by reason and end), near misses {} of {}",
        counts[0].0, counts[0].1, counts[1].0, counts[1].1
    );
    (share(counts[0]), share(counts[1]))
}

#[test]
fn limits_are_read_with_their_window_and_their_end() {
    let (messages, misses) = score("collected", include_str!("corpus/limits.jsonl"));
    assert!(messages >= 0.95 && misses >= 0.9, "{messages:.3} {misses:.3}");
}

#[test]
fn limits_that_were_labelled_first_are_read() {
    let (messages, misses) = score("labelled first", include_str!("limit_messages.jsonl"));
    assert!(messages >= 0.95 && misses >= 0.95, "{messages:.3} {misses:.3}");
    let (messages, misses) = score("unseen", include_str!("limit_messages_unseen.jsonl"));
    assert!(messages >= 0.8 && misses >= 0.9, "{messages:.3} {misses:.3}");
}
