//! `backstop trim`, through the binary.

use crate::docs::fits;
use crate::harness::{Run, schema};
use serde_json::{Value, json};

fn request() -> Value {
    let turns = (0..20).flat_map(|n| {
        [
            json!({"role": "assistant", "content": format!("answer {n} {}", "x".repeat(500))}),
            json!({"role": "user", "content": format!("question {n}")}),
        ]
    });
    let mut messages =
        vec![json!({"role": "system", "content": "be kind"}), json!({"role": "user", "content": "the task"})];
    messages.extend(turns);
    json!({"model": "gpt-5", "messages": messages})
}

#[test]
fn a_request_comes_out_smaller_and_words_go_to_standard_error() {
    let done = Run::new(&["trim"]).stdin(request().to_string()).go().code(0);
    let after = done.json();
    let messages = after["messages"].as_array().unwrap();
    assert_eq!(messages[0]["content"], "be kind");
    assert!(messages[1]["content"].as_str().unwrap().starts_with("the task\n\n[Earlier turns"));
    assert_eq!(messages.last().unwrap()["content"], "question 19");
    assert!(done.stderr().starts_with("removed "), "{}", done.stderr());

    let reported =
        Run::new(&["trim", "--json", "--keep", "30"]).stdin(request().to_string()).go().code(0).json();
    fits(&schema("trim"), &reported, "trim");
    assert!(reported["bytes"]["after"].as_u64() < Some(after.to_string().len() as u64));
}

#[test]
fn the_providers_numbers_count() {
    let error = "This model's maximum context length is 1000 tokens. However, you requested 9000 tokens (9000 in the messages, 0 in the completion).";
    let done = Run::new(&["trim", "--error", error]).stdin(request().to_string()).go().code(0);
    assert!(done.stderr().contains("about 9000 -> "), "{}", done.stderr());
    assert!(done.stdout().len() < request().to_string().len() / 8, "{}", done.stderr());
}

#[test]
fn what_cannot_be_trimmed_says_why() {
    for (input, args, code, words) in [
        ("x", &["trim"][..], 2, "the request is no JSON object"),
        ("{}", &["trim"], 2, "has no list `messages`"),
        (r#"{"input":"hi"}"#, &["trim"], 1, "nothing that can be removed"),
        (r#"{"input":7}"#, &["trim"], 2, "has no list `input`"),
        (r#"{"messages":[{"role":"user","content":"x"}]}"#, &["trim"], 1, "nothing that can be removed"),
        ("{}", &["trim", "--keep", "100"], 2, "100"),
        ("{}", &["trim", "--api", "cohere"], 2, "cohere"),
    ] {
        let done = Run::new(args).stdin(input).go().code(code);
        assert!(done.stderr().contains(words), "{}", done.stderr());
        assert_eq!(done.stdout(), "");
    }
}
