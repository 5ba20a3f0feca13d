//! What holds for any input: an answer, within its bounds, and the same one however the text is cut
//! up.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use backstop_classify::Classifier;
use backstop_core::{Fault, Reason, Signal, Surface};
use proptest::prelude::*;
use std::sync::LazyLock;

static CLASSIFIER: LazyLock<Classifier> = LazyLock::new(Classifier::builtin);

/// Text that is likely to wake rules: pieces of real lines between arbitrary bytes.
fn log() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any::<Vec<u8>>(),
        "[ -~]{0,80}".prop_map(String::into_bytes),
        prop::sample::select(vec![
            "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nKeyError: 'x'\n",
            "Tests:       2 failed, 1 passed, 3 total\n",
            "\x1b[31merror\x1b[0m[E0308]: mismatched types\n --> src/main.rs:1:2\n",
            "curl: (7) Failed to connect\r\n",
            "  ● suite › name\n\n    at f (a.test.js:1:2)\n",
            "make: *** [Makefile:3: x] Error 1\n",
            "panic: boom\n\ngoroutine 1 [running]:\nmain.f()\n\t/a/main.go:1\n",
            "\n",
            "\r",
            "\0",
            "\x1b]0;title",
        ])
        .prop_map(|s| s.as_bytes().to_vec()),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn check(fault: &Fault) {
    assert!(fault.evidence.len() <= 10);
    assert!(
        fault.facts.failed_tests.len() <= 50
            && fault.facts.files.len() <= 50
            && fault.facts.rules.len() <= 50
    );
    assert!(fault.cause.as_ref().is_none_or(|c| c.raw().len() <= 600));
    assert_eq!(fault.class, fault.reason.class());
    assert!(!fault.suggested_action.is_empty());
    serde_json::to_string(fault).unwrap();
}

fn fed(signal: &Signal, parts: &[&[u8]]) -> Option<Fault> {
    let mut session = CLASSIFIER.session(signal);
    parts.iter().for_each(|part| session.feed(part));
    session.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_get_an_answer_within_bounds(text in log(), exit in prop::option::of(-5i64..300), signal in prop::option::of(0i64..70), timed_out: bool) {
        let signal = Signal { exit, signal, timed_out, stdout: text.clone(), stderr: text, ..Signal::default() };
        match CLASSIFIER.classify(&signal) {
            Some(fault) => check(&fault),
            None => prop_assert!(signal.is_success()),
        }
    }

    #[test]
    fn any_answer_of_a_server_gets_one_too(body in log(), message in any::<String>(), status in prop::option::of(0u16..1000), errno in prop::option::of("[A-Z_]{0,20}")) {
        let signal = Signal { surface: Surface::Response, status, errno, stdout: body, stderr: message.into_bytes(), ..Signal::default() };
        check(&CLASSIFIER.classify(&signal).expect("an answer is never a success"));
    }

    #[test]
    fn it_does_not_matter_where_the_text_is_cut(text in log(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let signal = Signal::exited(1);
        let mut at: Vec<usize> = cuts.iter().map(|i| i.index(text.len() + 1)).collect();
        at.sort_unstable();
        let mut parts = Vec::new();
        let mut from = 0;
        for cut in at {
            parts.push(&text[from..cut]);
            from = cut;
        }
        parts.push(&text[from..]);
        prop_assert_eq!(fed(&signal, &parts), fed(&signal, &[&text]));
    }

    #[test]
    fn success_stays_success(text in log()) {
        let signal = Signal { exit: Some(0), stdout: text.clone(), stderr: text, ..Signal::default() };
        prop_assert_eq!(CLASSIFIER.classify(&signal), None);
    }
}

#[test]
fn a_reader_and_a_slice_say_the_same_across_many_blocks() {
    let mut text = Vec::new();
    for n in 0..60_000 {
        text.extend_from_slice(
            format!("2026-01-05 INFO [pool-{}] GET /v1/items/{n} 200 in {} ms\n", n % 7, n % 97).as_bytes(),
        );
        if n == 31_000 {
            text.extend_from_slice(b"FAILED tests/test_calc.py::test_slug - AssertionError: x\n=== 1 failed, 5 passed in 0.28s ===\n");
        }
    }
    let signal = Signal::exited(1);
    let read = CLASSIFIER.classify_reader(&signal, text.as_slice()).unwrap().unwrap();
    assert_eq!(read.reason, Reason::TestFailure);
    assert_eq!(read.evidence[0].line, Some(31_003));
    assert_eq!(Some(read), fed(&signal, &[&text]));
}

#[test]
fn a_failure_on_a_line_without_end_is_found() {
    let mut text = vec![b'x'; 5_000_000];
    text.extend_from_slice(
        b" FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
    );
    let fault = CLASSIFIER.classify_reader(&Signal::exited(1), text.as_slice()).unwrap().unwrap();
    assert_eq!(fault.reason, Reason::OutOfMemory);
}

#[test]
fn secrets_are_in_no_answer() {
    let text = format!(
        "Error: HTTP 401 for https://bob:{0}@example.com/x\nAuthorization: Bearer {0}{0}\n",
        "hunter2hunter2"
    );
    let fault = CLASSIFIER.classify(&Signal::exited(1).text(text)).unwrap();
    let json = serde_json::to_string(&fault).unwrap();
    assert!(!json.contains("hunter2"), "{json}");
    assert!(json.contains("[redacted]"), "{json}");
}

#[test]
fn a_secret_is_masked_before_anything_is_cut_out_of_its_line() {
    let key = format!("ghp_{}", "0123456789abcdefghijABCDEFGHIJ");
    let long = format!("Error: {} {key}\n", "x".repeat(473));
    let window = format!(
        "{}{key} {} ENOSPC: no space left on device {}\n",
        "a ".repeat(10_000),
        "c".repeat(8148),
        "d".repeat(9000)
    );
    let frame = format!(
        "Traceback (most recent call last):\n  File \"/app/{key}.py\", line 3, in f_{key}\n    x\nKeyError: 1\n"
    );
    let url = "error: cannot open https://bob:s3cretpass@h/run.py: No such file or directory\n".to_owned();
    for text in [long, window, frame, url] {
        let fault = CLASSIFIER.classify(&Signal::exited(1).text(text.clone())).unwrap();
        let json = serde_json::to_string(&fault).unwrap();
        assert!(!json.contains("0123456789abcde") && !json.contains("s3cretpass"), "{text:.80}: {json}");
    }
}

#[test]
fn a_hostile_body_takes_no_more_than_its_share() {
    let wide: String = (0..40_000).map(|n| format!("\"{n:x}\":1,")).collect();
    let body = format!("{{\"{}\":{{{}\"z\":1}}}}", "k".repeat(400_000), wide);
    let fault = CLASSIFIER.classify(&Signal::answered(500).text(body)).unwrap();
    assert_eq!(fault.reason, Reason::NetworkTransient);
}
