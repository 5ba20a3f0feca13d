//! Logs of CI services and build tools, each with the passage that says why it failed: the cause
//! that is cited lies in it, and not in set-up, in what passed or in what was tried again.
#![allow(clippy::unwrap_used)]

use backstop_classify::{Auditor, Classifier};
use backstop_core::Signal;
use serde_json::Value;

const LOGS: &str = include_str!("marked_logs.jsonl");

#[test]
fn the_cause_lies_in_the_passage_that_a_person_marked() {
    let classifier = Classifier::builtin();
    for line in LOGS.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let signal = Signal::exited(1).text(row["log"].as_str().unwrap());
        let fault = classifier.classify(&signal).unwrap();
        let cause = fault.cause.as_ref().map(|cause| cause.raw().trim().to_owned()).unwrap_or_default();
        let passage = row["chunk"].as_str().unwrap();
        assert!(
            cause.len() >= 4 && passage.contains(&cause),
            "{}: {cause:?} by {:?}",
            row["id"],
            fault.evidence
        );
    }
}

#[test]
fn no_rule_misfires_on_them() {
    let classifier = Classifier::builtin();
    let mut auditor = Auditor::new(&classifier);
    auditor.read("marked_logs.jsonl", LOGS).unwrap();
    let audit = auditor.finish();
    assert_eq!(audit.rows as usize, LOGS.lines().count());
    let wrong: Vec<_> = audit.rules.iter().filter(|record| record.wrong > 0).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_sentence_after_logged_messages_is_the_cause_and_their_place_is_no_file() {
    let head = "E1118 17:00:00.123456    4711 memcache.go:265] couldn't get current server API group list: ";
    let text = format!(
        "{head}Get \"http://localhost:8080/api\": dial tcp [::1]:8080: connect: connection refused\n\
         The connection to the server localhost:8080 was refused - did you specify the right host or port?\n"
    );
    let signal = Signal::exited(1).command("kubectl get pods").text(text);
    let fault = Classifier::builtin().classify(&signal).unwrap();
    let cause = fault.cause.unwrap();
    assert!(cause.raw().starts_with("The connection to the server localhost:8080"), "{cause}");
    assert!(fault.facts.files.is_empty(), "{:?}", fault.facts.files);
}

#[test]
fn of_a_command_that_printed_nothing_no_last_lines_are_to_be_read() {
    let classifier = Classifier::builtin();
    let step = |text: &str| {
        let signal = Signal::exited(3).command("frob x").text(text);
        classifier.classify(&signal).unwrap().suggested_action.raw().to_lowercase()
    };
    assert!(step("").starts_with("it printed nothing"), "{}", step(""));
    assert!(step("zorp glimf").contains("last lines"), "{}", step("zorp glimf"));
}
