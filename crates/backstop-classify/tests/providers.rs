//! What HTTP libraries of many languages, providers and gateways say when a request fails. The
//! labels follow the written rules of the corpora; a row is not a rule.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use backstop_classify::learned::canonical;
use backstop_classify::{Classifier, read_row};
use backstop_core::{Reason, Timestamp};
use serde_json::Value;
use std::collections::BTreeSet;

const ROWS: &str = include_str!("provider_texts.jsonl");

/// The reason of each row, what is accepted, and what the classifier says.
fn answers() -> Vec<(Value, Reason, Vec<Reason>, Option<Reason>)> {
    let classifier = Classifier::builtin();
    let parse = |code: &Value| canonical(code.as_str().unwrap().parse().unwrap());
    ROWS.lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            let (_, signal) = read_row(line.as_bytes(), Timestamp::from_millis(0)).unwrap();
            let reason = parse(&row["expected_reason"]);
            let also = row["alt_reasons"].as_array().into_iter().flatten().map(parse).collect();
            let answer = classifier.classify(&signal).map(|fault| canonical(fault.reason));
            (row, reason, also, answer)
        })
        .collect()
}

#[test]
fn texts_of_many_libraries_providers_and_gateways_are_told_apart() {
    let all = answers();
    let names: BTreeSet<&str> = all.iter().map(|(row, ..)| row["provider"].as_str().unwrap()).collect();
    assert!(names.len() >= 80, "{} libraries, providers and gateways", names.len());
    let mut strict = 0;
    let mut wrong = Vec::new();
    for (row, reason, also, answer) in &all {
        strict += usize::from(*answer == Some(*reason));
        if !answer.is_some_and(|answer| answer == *reason || also.contains(&answer)) {
            wrong.push(format!("wanted {reason}, got {answer:?}: {row}"));
        }
    }
    println!("{} rows of {} names: {strict} strict, {} wrong", all.len(), names.len(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(strict * 100 >= all.len() * 93, "{strict} of {}", all.len());
}

/// Whether to try again is what a wrong reason must not change.
#[test]
fn what_money_or_a_person_must_mend_is_not_tried_again() {
    for (row, reason, _, answer) in answers() {
        let lasting = [
            Reason::QuotaExhausted,
            Reason::AuthError,
            Reason::ContentPolicy,
            Reason::NetworkPermanent,
            Reason::Validation,
        ];
        if lasting.contains(&reason) && answer.is_some_and(Reason::retryable) {
            let accepted = row["alt_reasons"].to_string();
            assert!(accepted.contains(answer.unwrap().code()), "wanted {reason}, got {answer:?}: {row}");
        }
    }
}
