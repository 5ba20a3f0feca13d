//! What a reported error is.

use super::Report;
use crate::hint::asked;
use backstop_classify::Classifier;
use backstop_core::{Evidence, Fault, Reason, SafeText, Signal, Timestamp, from_seed_name};

/// How much of a message is the cause.
const CAUSE_CHARS_MAX: usize = 500;

/// What a reported error is. A name that the seeds know as its type decides; else the rules read
/// what it said. They are asked for only where they have something to say: beside such a name,
/// where the trace leads and how long to wait.
pub fn classify(report: &Report, classifier: &dyn Fn() -> Classifier, at: Timestamp) -> Fault {
    let named = report.kind.as_ref().and_then(|kind| named(kind.raw()));
    let read = match named {
        Some(reason) if report.stack_trace.is_none() && reason != Reason::RateLimited => Fault::new(reason),
        _ => read(report, &classifier(), at),
    };
    let mut fault = match named {
        Some(reason) if reason != read.reason => under(reason, read),
        _ => read,
    };
    if let (Some(_), Some(kind)) = (named, &report.kind) {
        let text = SafeText::new(format!("error type {}", kind.raw()));
        fault.evidence.insert(0, Evidence { rule: "reported".to_owned(), line: None, text, stream: None });
    }
    let said = report.message.raw().trim();
    // What a server asks for is a floor, whatever the error is called.
    if fault.reason.retryable() && fault.facts.retry_after_seconds.is_none() {
        fault.facts.retry_after_seconds = asked(said, at);
    }
    if named.is_some() || fault.cause.is_none() {
        let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let line = if line.is_empty() { report.kind.as_ref().map_or("", |kind| kind.raw()) } else { line };
        fault.cause = Some(SafeText::new(line.chars().take(CAUSE_CHARS_MAX).collect::<String>()));
    }
    fault
}

/// What the rules say.
fn read(report: &Report, classifier: &Classifier, at: Timestamp) -> Fault {
    let signal = Signal {
        reported: report.kind.as_ref().map(|kind| kind.raw().to_owned()),
        stderr: text(report).into_bytes(),
        at: Some(at),
        ..Signal::default()
    };
    classifier.classify(&signal).unwrap_or_else(|| Fault::new(Reason::Unknown))
}

/// The reason that a type's name stands for, with or without the modules before it. `unknown` says
/// nothing.
fn named(kind: &str) -> Option<Reason> {
    let last = kind.trim().rsplit(['.', ':', '$', '/', '\\']).next().unwrap_or(kind);
    from_seed_name(kind).or_else(|| from_seed_name(last)).filter(|reason| *reason != Reason::Unknown)
}

/// What the rules read: the stack trace, and the last line that a trace has, where it is not in it.
fn text(report: &Report) -> String {
    let kind = report.kind.as_ref().map_or("", |kind| kind.raw());
    let message = report.message.raw();
    let mut text = report.stack_trace.as_ref().map(|trace| trace.raw().to_owned()).unwrap_or_default();
    if message.is_empty() || !text.contains(message) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&match (kind.is_empty(), message.is_empty()) {
            (true, _) => message.to_owned(),
            (false, true) => kind.to_owned(),
            (false, false) => format!("{kind}: {message}"),
        });
        text.push('\n');
    }
    text
}

/// The same findings under the reason that was reported: where it came from stays, what it would
/// have been does not.
fn under(reason: Reason, read: Fault) -> Fault {
    let mut fault = Fault::new(reason);
    fault.facts.exception = read.facts.exception;
    fault.facts.files = read.facts.files;
    fault.facts.line = read.facts.line;
    if reason.retryable() && read.reason.retryable() {
        fault.facts.retry_after_seconds = read.facts.retry_after_seconds;
    }
    fault.evidence = read.evidence;
    fault
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::{Class, Redactor, SEED_NAMES, Seed};

    fn fault(kind: &str, message: &str, trace: &str) -> Fault {
        let report = serde_json::json!({"task_data": {"task_id": "t"},
            "error": {"type": kind, "message": message, "stack_trace": trace}});
        let report = Report::read(report.to_string().as_bytes(), &Redactor::default()).unwrap();
        classify(&report, &Classifier::builtin, Timestamp::from_millis(0))
    }

    #[test]
    fn the_names_of_the_four_lists_come_out_as_the_seed_says_whatever_the_message() {
        let messages = [
            "",
            "x",
            "429 Too Many Requests",
            "Killed",
            "ENOSPC: no space left on device",
            "3 failed, 4 passed",
        ];
        for known in SEED_NAMES.iter().filter(|known| known.seed == Seed::Hook) {
            for message in messages {
                for kind in [known.name.to_owned(), format!("requests.exceptions.{}", known.name)] {
                    let fault = fault(&kind, message, "");
                    assert_eq!(fault.reason, known.reason, "{kind}: {message}");
                    assert_eq!(fault.class, known.reason.class());
                    assert!(fault.cause.is_some_and(|cause| !cause.is_empty()));
                }
            }
        }
    }

    #[test]
    fn another_type_is_what_its_text_says() {
        assert_eq!(fault("HTTPError", "429 Too Many Requests", "").reason, Reason::RateLimited);
        assert_eq!(fault("OSError", "[Errno 28] No space left on device", "").class, Class::System);
        assert_eq!(fault("unknown", "Connection refused", "").reason, Reason::NetworkTransient);
        assert_eq!(fault("Exception", "the flux capacitor is offline", "").reason, Reason::Unknown);
    }

    #[test]
    fn how_long_a_server_asks_to_wait_is_heard() {
        for (kind, message, want) in [
            ("RateLimitExceeded", "429: try again in 20s", Some(20.0)),
            ("RateLimitExceeded", "Too many requests\nretry-after: 120", Some(120.0)),
            ("RateLimitExceeded", "429 too many requests, Retry-After: 20", Some(20.0)),
            ("RateLimitExceeded", "{\"retry-after-ms\": \"1500\"}", Some(1.5)),
            ("RateLimitExceeded", "retry-after soon", None),
            ("ServiceUnavailable", "Please retry in 30 seconds", Some(30.0)),
            ("TimeoutError", "no answer within 20s", None),
            ("AuthenticationError", "try again in 20s", None),
        ] {
            assert_eq!(fault(kind, message, "").facts.retry_after_seconds, want, "{kind}: {message}");
        }
    }

    #[test]
    fn where_it_came_from_is_found_in_the_trace() {
        let trace = "Traceback (most recent call last):\n  File \"core/mcp_client.py\", line 45, in call_tool\n    x()\n\
                     ConnectionError: Connection refused\n";
        let exception = fault("ConnectionError", "Connection refused", trace).facts.exception.unwrap();
        assert_eq!(exception.file.unwrap().raw(), "core/mcp_client.py");
        assert_eq!((exception.line, exception.function.unwrap().raw()), (Some(45), "call_tool"));
    }
}
