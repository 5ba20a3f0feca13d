//! Every rule matches its examples and none of its near misses.

use backstop_classify::{Classifier, check_examples};
use backstop_core::{Reason, Signal};

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

#[test]
fn a_type_that_only_says_that_something_failed_is_less_than_a_status_or_words() {
    let classifier = Classifier::builtin();
    for (status, message, reason) in [
        (500, "Internal server error", Reason::NetworkTransient),
        (500, "prompt is too long: 213462 tokens > 200000 maximum", Reason::ContextOverflow),
        (429, "status 429", Reason::RateLimited),
    ] {
        let body = format!(r#"{{"type":"error","error":{{"type":"api_error","message":"{message}"}}}}"#);
        let fault = classifier.classify(&Signal::answered(status).text(body.into_bytes()));
        assert_eq!(fault.map(|fault| fault.reason), Some(reason), "{status} {message}");
    }
}
