//! No sentence from outside stands where a prompt speaks to an agent.

#[path = "../../backstop-report/tests/support/injections.rs"]
mod injections;

use backstop_core::SafeText;
use backstop_work::agent::{Assignment, GateToRun, RetryContext, Task, continuation, prompt};
use injections::{SENTENCES, WRAPPINGS, holds, outside_fences};

/// A phase whose plan and gates are a person's own words, with what others said about it.
fn assignment(said: &SafeText) -> Assignment {
    Assignment {
        phase_id: "2A".to_owned(),
        phase_key: "2a".to_owned(),
        phase_name: "Backend".into(),
        plan: "plan.md".into(),
        section: "add the route".into(),
        tasks: vec![Task { text: "add the route".into(), done: false }],
        gates: vec![GateToRun { name: "test".to_owned(), check: "npm test".into(), fix: None }],
        attempt: 2,
        of: 2,
        retry: Some(RetryContext {
            previous_error_type: "test_failure".to_owned(),
            previous_error_message: said.clone(),
            previous_error_details: said.clone(),
            ..RetryContext::default()
        }),
        conflict: Some(said.clone()),
        context: Some(said.clone()),
        result_file: "out/result.json".into(),
        ..Assignment::default()
    }
}

#[test]
fn no_sentence_from_outside_stands_where_a_prompt_speaks() {
    let mut tried = 0;
    for sentence in SENTENCES {
        for wrapping in WRAPPINGS {
            tried += 1;
            let said = SafeText::new(wrapping.replace("{}", sentence));
            let whole = assignment(&said);
            for text in [prompt(&whole), continuation(&whole, "`rate_limited`", Some(&said))] {
                assert!(holds(&text, sentence), "it is not told at all: {text}");
                assert!(!holds(&outside_fences(&text), sentence), "{said:?}: {text}");
            }
        }
    }
    assert!(tried >= 100, "{tried}");
}
