//! Every rule matches its examples and none of its near misses.

use backstop_classify::{Classifier, check_examples};

#[test]
fn every_rule_matches_its_examples_and_not_its_near_misses() {
    let failures = check_examples(&Classifier::builtin(), |_| true);
    let list: Vec<String> =
        failures.iter().map(|f| format!("{f}; it is matched by {}", f.matched.join(", "))).collect();
    assert!(list.is_empty(), "{} examples:\n{}", list.len(), list.join("\n"));
}

#[test]
fn every_effect_rule_matches_its_examples_and_not_its_near_misses() {
    let effects = backstop_classify::Effects::builtin();
    let failures = effects.check_examples(|_| true);
    let list: Vec<String> =
        failures.iter().map(|f| format!("{f}; it is matched by {}", f.matched.join(", "))).collect();
    assert!(list.is_empty(), "{} examples:\n{}", list.len(), list.join("\n"));
    assert!(effects.rules().len() >= 40, "{}", effects.rules().len());
}
