//! What a reported error is.

use super::Report;
use crate::hint::add_wait;
use backstop_classify::{Classifier, add_credential_facts};
use backstop_core::{
    Evidence, Exception, Fault, Reason, SEED_NAMES, SafeText, Seed, Severity, Signal, Timestamp,
    from_seed_name,
};

/// How much of a message is the cause.
const CAUSE_CHARS_MAX: usize = 500;

/// What a reported error is. A name that the seeds know as its type decides; else the rules read
/// what it said. They are asked for only where they have something to say: beside such a name,
/// where the trace leads, how long to wait, the status of an answer, and whose credential it was.
pub fn classify(report: &Report, classifier: &dyn Fn() -> Classifier, at: Timestamp) -> Fault {
    let named = report.kind.as_ref().and_then(|kind| named(kind.raw()));
    let read = match named {
        Some(reason) if !rules_know_more(report, reason) => Fault::new(reason),
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
    if fault.reason.retryable() {
        add_wait(&mut fault.facts, said, at);
    }
    let is_unadvised = fault.suggested_action.raw() == fault.reason.first_step();
    if named.is_some() || fault.cause.is_none() {
        let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let line = if line.is_empty() { report.kind.as_ref().map_or("", |kind| kind.raw()) } else { line };
        fault.cause = Some(SafeText::new(line.chars().take(CAUSE_CHARS_MAX).collect::<String>()));
    }
    if report.kind.as_ref().is_some_and(|kind| is_system_crash(kind.raw())) {
        fault.severity = Severity::Critical;
    }
    if is_unadvised {
        // What it said may tell more than its name.
        fault.suggest_first_step();
    }
    add_place(&mut fault, report);
    add_message(&mut fault, report);
    if fault.facts.credential.is_none() {
        add_credential_facts(&mut fault, None, None);
    }
    fault
}

/// Whether the rules can add something to an error whose type is known: where the trace leads, how
/// long to wait, or the status that the message names.
fn rules_know_more(report: &Report, reason: Reason) -> bool {
    let names_status = |word: &str| matches!(word.parse::<u16>(), Ok(400..=599));
    report.stack_trace.is_some()
        || reason == Reason::RateLimited
        || report.message.raw().split(|c: char| !c.is_ascii_alphanumeric()).any(names_status)
}

/// Types that report a crash of the whole system, which the seed calls critical. A `crash` alone is
/// that of a task.
const SYSTEM_CRASHES: &[&str] = &["systemcrash", "kernelpanic", "hostcrash", "machinecrash", "nodecrash"];

fn is_system_crash(kind: &str) -> bool {
    let kind = letters(last_name(kind));
    SYSTEM_CRASHES.iter().any(|known| kind == *known || kind.strip_suffix("error") == Some(known))
}

/// The letters and digits of a name, in lower case: `System crash` and `system_crash` are the same.
fn letters(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Where the error was raised, as the reporter says, where no trace says it.
fn add_place(fault: &mut Fault, report: &Report) {
    let place = &report.place;
    if place.file.is_none() && place.function.is_none() {
        return;
    }
    let known = fault.facts.exception.get_or_insert_with(|| Exception {
        kind: report.kind.clone().unwrap_or_default(),
        message: fault.cause.clone().unwrap_or_default(),
        ..Exception::default()
    });
    if known.file.is_none() {
        (known.file, known.line) = (place.file.clone(), place.line);
    }
    known.function = known.function.take().or_else(|| place.function.clone());
}

/// The message as it was reported, where the rules read another: a trace may end with an exception
/// inside the one that was reported, which is then the root of it.
fn add_message(fault: &mut Fault, report: &Report) {
    let Some(line) = report.message.raw().lines().map(str::trim).find(|line| !line.is_empty()) else {
        return;
    };
    let message = SafeText::new(line.chars().take(CAUSE_CHARS_MAX).collect::<String>());
    let exception = &mut fault.facts.exception;
    if exception.is_none() && fault.cause.as_ref() == Some(&message) {
        return;
    }
    let known = exception.get_or_insert_with(Exception::default);
    if known.message == message {
        return;
    }
    let kind = report.kind.as_ref().map_or("", |kind| kind.raw());
    if known.root.is_none() && !known.kind.is_empty() && last_name(known.kind.raw()) != last_name(kind) {
        known.root = Some(SafeText::new(format!("{}: {}", known.kind.raw(), known.message.raw())));
    }
    if let Some(kind) = &report.kind {
        known.kind = kind.clone();
    }
    known.message = message;
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
    let last = last_name(kind);
    let spelled = || {
        let given = letters(last);
        let hook = SEED_NAMES.iter().filter(|known| known.seed == Seed::Hook);
        hook.into_iter().find(|known| letters(known.name) == given).map(|known| known.reason)
    };
    let crash = || is_system_crash(kind).then_some(Reason::Crash);
    let reason = from_seed_name(kind).or_else(|| from_seed_name(last)).or_else(spelled).or_else(crash);
    reason.filter(|reason| *reason != Reason::Unknown)
}

/// A type's name without the modules before it.
fn last_name(kind: &str) -> &str {
    kind.trim().rsplit(['.', ':', '$', '/', '\\']).next().unwrap_or(kind).trim()
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
    fault.facts.status = read.facts.status;
    fault.facts.missing = read.facts.missing;
    if reason.retryable() && (read.reason.retryable() || read.reason == Reason::Unknown) {
        fault.facts.retry_after_seconds = read.facts.retry_after_seconds;
        fault.facts.resets_at = read.facts.resets_at;
    }
    fault.facts.provider = read.facts.provider;
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
    fn a_system_crash_is_critical_and_a_crash_of_a_task_is_not() {
        for kind in ["System crash", "SystemCrash", "system_crash", "worker.SystemCrashError", "KernelPanic"]
        {
            let fault = fault(kind, "host went away", "");
            assert_eq!((fault.reason, fault.severity), (Reason::Crash, Severity::Critical), "{kind}");
        }
        for kind in ["crash", "Crash", "SystemError", "CrashLoop"] {
            assert_ne!(fault(kind, "segmentation fault", "").severity, Severity::Critical, "{kind}");
        }
        for kind in ["Data loss risk", "DataLossRisk", "Security breach", "SecurityBreach"] {
            assert_eq!(fault(kind, "x", "").severity, Severity::Critical, "{kind}");
        }
    }

    #[test]
    fn the_status_that_a_message_names_is_a_fact() {
        let facts = fault("ResourceNotFound", "HTTP 404: Repository not found", "").facts;
        assert_eq!(facts.status, Some(404));
        assert_eq!(fault("ResourceNotFound", "task 17 not found", "").facts.status, None);
    }

    #[test]
    fn whose_credential_was_refused_is_found_in_the_message() {
        let refused = fault("AuthenticationError", "401 from https://api.github.com/repos/a/b", "");
        assert_eq!(refused.facts.provider.unwrap().raw(), "github");
        assert_eq!(refused.facts.credential.unwrap().raw(), "GITHUB_TOKEN");
        let login = fault("AuthenticationError", "anthropic: OAuth token has expired, run claude /login", "");
        assert_eq!(login.suggested_action.raw(), "log in again with `claude /login` (anthropic)");
        let key = fault("AuthenticationError", "OPENAI_API_KEY is not valid", "");
        assert_eq!(
            key.suggested_action.raw(),
            "renew OPENAI_API_KEY at https://platform.openai.com/api-keys (openai)"
        );
    }

    #[test]
    fn where_it_was_raised_is_taken_from_the_report_where_no_trace_says_it() {
        let report = serde_json::json!({"task_data": {"task_id": "t"}, "error": {"type": "ConnectionError",
            "message": "Connection refused", "file": "core/mcp_client.py", "line": 45, "function": "call_tool"}});
        let report = Report::read(report.to_string().as_bytes(), &Redactor::default()).unwrap();
        let fault = classify(&report, &Classifier::builtin, Timestamp::from_millis(0));
        let exception = fault.facts.exception.unwrap();
        assert_eq!(exception.kind.raw(), "ConnectionError");
        assert_eq!((exception.file.unwrap().raw(), exception.line), ("core/mcp_client.py", Some(45)));
        assert_eq!(exception.function.unwrap().raw(), "call_tool");
    }

    #[test]
    fn the_root_of_an_error_is_found_in_its_chained_trace() {
        let frames = |n: usize| "  File \"deep/call.py\", line 7, in descend\n    descend()\n".repeat(n);
        for n in [1, 20, 100] {
            let trace = format!(
                "Traceback (most recent call last):\n{0}ConnectionResetError: [Errno 104] reset\n\nThe above \
                 exception was the direct cause of the following exception:\n\nTraceback (most recent call \
                 last):\n{0}ToolError: it broke\n",
                frames(n)
            );
            let exception = fault("ToolError", "it broke", &trace).facts.exception.unwrap();
            assert_eq!(exception.message.raw(), "it broke", "{n}");
            let root = exception.root.map(|root| root.raw().to_owned());
            assert_eq!(root.as_deref(), Some("ConnectionResetError: [Errno 104] reset"), "{n}");
        }
        let plain = fault("ToolError", "it broke", "it broke: see above\n").facts.exception;
        assert_eq!(plain.and_then(|exception| exception.root), None);
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
