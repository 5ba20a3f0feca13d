//! The table of waits: how many of its forms are read as they are labelled, by the reader itself
//! and on the way from a signal to a fault.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use backstop_classify::Classifier;
use backstop_core::{Clock, Hints, Reason, Signal, Timestamp, Zone, wait};
use serde::Deserialize;

const TABLE: &str = include_str!("waits.jsonl");
/// When a row is read that names no time.
const NOW: &str = "2026-11-16T12:00:00Z";
/// The share of rows that must be right.
const SHARE_MIN: f64 = 0.97;
/// Spans are written in decimal, and times have milliseconds.
const TOLERANCE_SECONDS: f64 = 0.002;

#[derive(Deserialize)]
struct Row {
    group: String,
    /// How the text is given: `headers`, `body` or `output`.
    form: String,
    text: String,
    /// The wait in seconds; none where the text asks for none.
    wait: Option<f64>,
    now: Option<String>,
    zone: Option<String>,
}

impl Row {
    fn clock(&self) -> Clock {
        let now = Timestamp::parse_rfc3339(self.now.as_deref().unwrap_or(NOW)).unwrap();
        let zone = self.zone.as_deref().map_or_else(Zone::utc, |name| Zone::named(name).unwrap());
        Clock { now: Some(now), zone }
    }

    fn is_right(&self, got: Option<f64>) -> bool {
        match (self.wait, got) {
            (None, None) => true,
            (Some(want), Some(got)) => (want - got).abs() <= TOLERANCE_SECONDS,
            _ => false,
        }
    }
}

fn rows() -> Vec<Row> {
    TABLE.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[allow(clippy::print_stdout)]
fn require(what: &str, right: usize, all: usize, wrong: &[String]) {
    let share = right as f64 / all as f64;
    println!("{what}: {right} of {all} right, {share:.3}");
    for line in wrong {
        println!("  {line}");
    }
    assert!(share >= SHARE_MIN, "{what}: {share:.3}\n{}", wrong.join("\n"));
}

#[test]
fn the_reader_reads_the_table() {
    let rows = rows();
    assert!(rows.len() >= 150);
    let mut wrong = Vec::new();
    for row in &rows {
        let clock = row.clock();
        let read = match row.form.as_str() {
            "headers" => Hints::read(&Hints::parse_headers(&row.text), None, &clock).wait(),
            "body" => Hints::read(&[], serde_json::from_str(&row.text).ok().as_ref(), &clock).wait(),
            _ => wait::in_output(&row.text, &clock),
        };
        let got = read.map(|wait| wait.after.as_secs_f64());
        if !row.is_right(got) {
            wrong.push(format!("{} want {:?} got {got:?}: {}", row.group, row.wait, row.text));
        }
    }
    require("read", rows.len() - wrong.len(), rows.len(), &wrong);
}

#[test]
fn any_text_is_read_without_a_panic_and_within_a_year() {
    let clock = Clock::utc(Timestamp::parse_rfc3339(NOW).unwrap());
    for row in rows() {
        for cut in (0..row.text.len()).filter(|cut| row.text.is_char_boundary(*cut)) {
            for text in [&row.text[..cut], &row.text[cut..]] {
                let read = wait::in_output(text, &clock);
                assert!(read.is_none_or(|wait| wait.after.as_secs() <= 366 * 24 * 3600), "{text}");
            }
        }
    }
}

/// Reasons whose faults have a wait.
const WAITING: &[Reason] = &[
    Reason::RateLimited,
    Reason::NetworkTransient,
    Reason::ServiceDown,
    Reason::QuotaExhausted,
    Reason::Unknown,
];

#[test]
fn a_fault_has_the_wait_of_its_signal() {
    let classifier = |zone| Classifier::builtin().in_zone(zone);
    let mut wrong = Vec::new();
    let mut all = 0;
    for row in rows().iter().filter(|row| row.form == "output") {
        let Clock { now, zone } = row.clock();
        let signal = Signal { at: now, stdout: row.text.clone().into_bytes(), ..Signal::exited(1) };
        let fault = classifier(zone).classify(&signal).unwrap();
        if !WAITING.contains(&fault.reason) {
            // A fault that is not waited out has no wait; its row may not ask for one either.
            assert_eq!(fault.facts.retry_after_seconds, None, "{}: {}", fault.reason, row.text);
            if let Some(want) = row.wait {
                all += 1;
                wrong.push(format!("{} {} want {want}: {}", fault.reason, row.group, row.text));
            }
            continue;
        }
        all += 1;
        let facts = &fault.facts;
        // A wait that is over is a time that has passed.
        let got = facts.resets_at.zip(now).map(|(at, now)| at.since(now).as_secs_f64());
        let asked = facts.retry_after_seconds.or(got.filter(|wait| *wait <= TOLERANCE_SECONDS));
        if !row.is_right(got) || !row.is_right(asked) {
            wrong.push(format!(
                "{} {} want {:?} got {got:?}: {}",
                fault.reason, row.group, row.wait, row.text
            ));
        }
    }
    assert!(all >= 100, "only {all} rows were compared");
    require("classified", all - wrong.len(), all, &wrong);
}
