//! The time that every reader of text from outside takes grows with the text and with nothing else.

use backstop_classify::Classifier;
use backstop_core::{Redactor, Signal};
use std::time::Duration;

/// How long this thread has worked: other programs on the machine do not count.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a value of ours, which the call fills in.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(done, 0, "the clock of this thread cannot be read");
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

fn best(work: &dyn Fn()) -> Duration {
    let timing = |_| {
        let begun = cpu_time();
        work();
        cpu_time().saturating_sub(begun)
    };
    (0..2).map(timing).min().unwrap_or_default()
}

/// Four times the text may take no more than this many times as long. Quadratic is 16.
const GROWTH_MAX: u32 = 10;

#[test]
fn four_times_the_text_takes_about_four_times_as_long() {
    let classifier = Classifier::builtin();
    let classify = |text: &str| {
        let signal = Signal { exit: Some(1), stderr: text.as_bytes().to_vec(), ..Signal::default() };
        drop(classifier.classify(&signal));
    };
    let plan = |text: &str| drop(backstop_plan::document::parse(text.as_bytes()));
    let report = |text: &str| {
        let report = serde_json::json!({"task_data": {"task_id": "t"}, "error": {"type": "x", "message": "m",
            "stack_trace": text}, "context": {"partial_result": text, "other": text}});
        drop(backstop_hook::on_error::Report::read(report.to_string().as_bytes(), &Redactor::default()));
    };
    let json = |text: &str| drop(backstop_hook::parse(text.as_bytes()));
    let headers = |text: &str| drop(backstop_core::Hints::parse_headers(text));
    type Reader<'r> = (&'r str, &'r dyn Fn(&str), &'r [&'r str]);
    let readers: [Reader<'_>; 5] = [
        (
            "classifier",
            &classify,
            &[
                "error: ",
                "-token",
                "retry after ",
                "Traceback (most recent call last):\n",
                "  at x (y.js:1:2)\n",
                "npm error ",
                "FAILED a::b\n",
                "\u{1b}[31m",
                "429 Too Many Requests ",
                "try again in 5 ",
            ],
        ),
        ("plan", &plan, &["| a ", "| 1 | x | y |\n", "- [ ] x\n", "## Phase 1: x\n", "```\n", "[", "*"]),
        ("report", &report, &["-token", "-----BEGIN ", "at x\n", "\\", "{"]),
        ("JSON", &json, &["[", "{\"a\":", "\"\\ud800", "{\"a\":1},", "\\"]),
        ("headers", &headers, &["retry-after: 1\n", "x-ratelimit-reset: ", ":", "a: b\r\n"]),
    ];
    for (name, read, pieces) in readers {
        for piece in pieces {
            let text = |bytes: usize| piece.repeat(bytes / piece.len());
            let (small, large) = (text(64 << 10), text(256 << 10));
            let least = Duration::from_micros(200);
            let time = |text: &str| best(&|| read(text));
            let grows = (0..3).all(|_| time(&large) > time(&small).max(least) * GROWTH_MAX);
            assert!(!grows, "{name}, {piece:?}: {:?} and {:?}", time(&small), time(&large));
        }
    }
}
