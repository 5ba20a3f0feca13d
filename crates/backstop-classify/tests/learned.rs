//! The learned back-off: it is made from the corpora that are here, it says nothing about empty
//! outputs, and no text makes a retry of it.
#![allow(clippy::unwrap_used)]

use backstop_classify::learned::{self, data_version, is_for_training, is_held_out, read_corpus};
use backstop_classify::{Auditor, Classifier};
use backstop_core::{ConfidenceLevel, Reason, Signal};
use proptest::prelude::*;
use std::path::Path;

fn corpora(wanted: fn(&str) -> bool) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if wanted(&name) {
            files.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
    files.sort();
    files
}

#[test]
fn the_table_is_that_of_the_corpora() {
    let table = learned::builtin().expect("the table can be read");
    let version = data_version(&corpora(is_for_training));
    assert_eq!(
        table.version(),
        version,
        "run `cargo run -p backstop-classify --bin train` and commit the table"
    );
    assert!(table.len_bytes() <= 400_000, "{}", table.len_bytes());
}

#[test]
fn held_out_tools_are_in_no_file_that_is_trained_on_and_the_corpus_is_large() {
    let (mut rows, mut tools) = (0, std::collections::BTreeSet::new());
    for (name, text) in corpora(|name| is_for_training(name) || name == "held_out.jsonl") {
        for row in read_corpus(&name, &text).unwrap() {
            match name.as_str() {
                "held_out.jsonl" => assert!(is_held_out(&row.tool), "{}", row.id),
                "unseen.jsonl" => assert!(!is_held_out(&row.tool), "{}", row.id),
                _ => {}
            }
            rows += 1;
            tools.insert(row.tool);
        }
    }
    assert!(rows >= 2500 && tools.len() >= 450, "{rows} rows of {} tools", tools.len());
}

#[test]
fn empty_and_one_byte_outputs_are_unknown() {
    let classifier = Classifier::builtin();
    for text in ["", "x", "\n"] {
        let fault = classifier.classify(&Signal::exited(1).command("frob x").text(text)).unwrap();
        assert_eq!(fault.reason, Reason::Unknown, "{text:?}");
    }
}

#[test]
fn words_that_nobody_has_labelled_are_unknown() {
    let classifier = Classifier::builtin();
    let line = "x".repeat(500);
    for text in ["boom", "boom\n", line.as_str(), "zorp glimf quabble", "?!", "ok ok ok"] {
        for exit in [1, 2, 3] {
            let fault = classifier.classify(&Signal::exited(exit).command("frob x").text(text)).unwrap();
            assert_eq!(fault.reason, Reason::Unknown, "{text:?}: {fault:?}");
        }
    }
}

#[test]
fn rules_that_name_a_tool_can_be_left_out() {
    let tools = ["jest".to_owned()].into();
    let signal = Signal::exited(1).command("jest").text("Tests:       3 failed, 44 passed, 47 total\n");
    let by = |classifier: &Classifier| classifier.observe(&signal).unwrap().rule;
    assert_eq!(by(&Classifier::builtin()).as_deref(), Some("jest.summary"));
    assert_ne!(by(&Classifier::leaving_out(&tools).unwrap()).as_deref(), Some("jest.summary"));
}

#[test]
fn it_is_asked_only_where_no_rule_is_sure_and_can_be_turned_off() {
    let text = "frobnicate: the widget list has an entry that the schema does not allow\n";
    let signal = Signal::exited(1).command("frobnicate list.frob").text(text);
    let asked = Classifier::builtin().classify(&signal).unwrap();
    assert_eq!(asked.evidence[0].rule, "learned", "{asked:?}");
    assert!(asked.evidence[0].text.raw().contains("like "), "{asked:?}");
    assert!(asked.confidence.level() < ConfidenceLevel::High);
    let off = Classifier::builtin().learning(false).classify(&signal).unwrap();
    assert!(off.evidence.iter().all(|piece| piece.rule != "learned"), "{off:?}");
    let sure = Signal::exited(1).command("npx jest").text("Tests:       3 failed, 44 passed, 47 total\n");
    let sure = Classifier::builtin().classify(&sure).unwrap();
    assert_eq!((sure.reason, sure.confidence.level()), (Reason::TestFailure, ConfidenceLevel::High));
}

#[test]
fn no_rule_is_mostly_wrong() {
    let classifier = Classifier::builtin();
    let mut auditor = Auditor::new(&classifier);
    for (name, text) in corpora(is_for_training) {
        auditor.read(&name, &text).unwrap();
    }
    let audit = auditor.finish();
    let wrong: Vec<_> =
        audit.rules.iter().filter(|record| record.is_mostly_wrong(MOSTLY_WRONG_LEAST)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A rule that decided so many failures and is wrong for most of them is to be mended.
const MOSTLY_WRONG_LEAST: u32 = 6;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Words that speak of trouble that passes, in any order, after a line that no rule knows.
    #[test]
    fn no_text_makes_a_retry_of_a_guess(words in prop::collection::vec(
        prop_oneof![
            Just("retry"), Just("connection"), Just("temporarily"), Just("unavailable"), Just("again"),
            Just("network"), Just("lost"), Just("busy"), Just("please"), Just("run: rm -rf /"), Just("$(reboot)"),
            Just("timeout"), Just("server"), Just("frozen"), Just("locked"),
        ],
        1..40,
    )) {
        let text = words.join(" ");
        let fault = Classifier::builtin().classify(&Signal::exited(1).command("frob").text(text)).unwrap();
        let guessed = fault.evidence.first().is_some_and(|piece| piece.rule == "learned");
        prop_assert!(!(guessed && (fault.retryable || fault.retry == backstop_core::Retry::Plain)), "{fault:?}");
        prop_assert!(!(fault.confidence.is_low() && fault.retryable), "{fault:?}");
        prop_assert!(!guessed || !fault.suggested_action.raw().contains("rm -rf"), "{fault:?}");
    }
}
