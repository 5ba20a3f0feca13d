//! What a failed tool call or a broken turn is.

use super::{Event, ToolFailure};
use crate::hint::asked;
use backstop_classify::Classifier;
use backstop_core::{Fault, Reason, Retry, SafeText, Signal, Timestamp, signature};

/// How much of a message is the cause.
const CAUSE_CHARS_MAX: usize = 300;
/// Tools that run a command, as agents call them.
const SHELLS: &[&str] = &["Bash", "PowerShell", "shell", "local_shell", "exec_command", "unified_exec"];

/// Whether a tool runs commands.
pub(super) fn runs_commands(tool: &str) -> bool {
    SHELLS.contains(&tool)
}

/// What a failed tool call is.
pub fn tool_fault(failed: &ToolFailure, classifier: &Classifier, at: Timestamp) -> Fault {
    let is_shell = failed.command.is_some() || runs_commands(failed.tool.raw());
    let signal = Signal {
        command: failed.command.as_ref().map(|command| command.raw().to_owned()),
        // It failed: exit 0 in an answer that says so would be taken for a success.
        exit: failed.exit.filter(|code| *code != 0),
        stdout: failed.said.raw().as_bytes().to_vec(),
        at: Some(at),
        ..Signal::default()
    };
    let mut fault = classifier.classify(&signal).unwrap_or_else(|| Fault::new(Reason::Unknown));
    if fault.reason == Reason::Unknown && !is_shell {
        let found = fault;
        fault = Fault::new(Reason::ToolFailed);
        (fault.cause, fault.facts, fault.evidence) = (found.cause, found.facts, found.evidence);
    }
    with_cause(fault, &failed.said)
}

/// What a turn that broke off is: the agent's own word for it, and what the rules read in the rest.
pub fn turn_fault(event: &Event, classifier: &Classifier, at: Timestamp) -> Option<Fault> {
    let Event::TurnFailed { error, said } = event else { return None };
    let named = match error.raw() {
        "rate_limit" => Reason::RateLimited,
        "overloaded" | "server_error" => Reason::NetworkTransient,
        "authentication_failed" | "oauth_org_not_allowed" => Reason::AuthError,
        "billing_error" => Reason::QuotaExhausted,
        "invalid_request" | "model_not_found" => Reason::Validation,
        "max_output_tokens" => Reason::TaskIncomplete,
        _ => Reason::Unknown,
    };
    let signal = Signal { stdout: said.raw().as_bytes().to_vec(), at: Some(at), ..Signal::default() };
    let read = classifier.classify(&signal).unwrap_or_else(|| Fault::new(Reason::Unknown));
    // A bad request may be one that is too long; what the agent does not know, the rules may.
    let finer = match named {
        Reason::Unknown => true,
        Reason::Validation => read.reason == Reason::ContextOverflow,
        _ => read.reason == named,
    };
    let mut fault = if finer {
        read
    } else {
        let mut fault = Fault::new(named);
        fault.facts.retry_after_seconds =
            read.facts.retry_after_seconds.filter(|_| named == Reason::RateLimited);
        fault.evidence = read.evidence;
        fault
    };
    if fault.reason == Reason::RateLimited && fault.facts.retry_after_seconds.is_none() {
        fault.facts.retry_after_seconds = asked(said.raw(), at);
    }
    Some(with_cause(fault, if said.raw().trim().is_empty() { error } else { said }))
}

/// The same trouble has the same signature, whatever numbers and paths are in it. What a tool
/// counts or names is a part of it: fewer failed tests are progress. Nothing where nothing was
/// said: then nobody knows whether it is the same.
pub fn fault_signature(failed: &ToolFailure, fault: &Fault) -> Option<String> {
    let cause = fault.cause.as_ref().map(|cause| cause.raw().trim()).filter(|cause| !cause.is_empty())?;
    let facts = &fault.facts;
    // Where only a change helps, the numbers say whether there was one.
    let cause = if fault.retry == Retry::Changed { cause.to_owned() } else { signature(cause) };
    let mut parts = vec![failed.tool.line(60), fault.reason.to_string(), cause];
    parts.extend(facts.failed_tests.iter().map(|test| test.line(100)));
    parts.extend(facts.failed_count.map(|count| count.to_string()));
    parts.extend(facts.files.iter().map(|file| file.line(100)));
    parts.extend(facts.line.map(|line| line.to_string()));
    Some(parts.join(" "))
}

/// With the last line that says something as its cause, where it has none.
fn with_cause(mut fault: Fault, said: &SafeText) -> Fault {
    if fault.cause.as_ref().is_none_or(|cause| cause.raw().trim().is_empty()) {
        let line = said.raw().lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let line: String = line.trim().chars().take(CAUSE_CHARS_MAX).collect();
        fault.cause = (!line.is_empty()).then(|| SafeText::new(line));
    }
    fault
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(tool: &str, command: Option<&str>, exit: Option<i64>, said: &str) -> ToolFailure {
        let command = command.map(SafeText::from);
        ToolFailure { tool: tool.into(), command, exit, said: said.into(), event: "PostToolUseFailure" }
    }

    #[test]
    fn a_command_is_classified_and_another_tool_has_failed_at_least() {
        let classifier = Classifier::builtin();
        let at = Timestamp::from_millis(0);
        let tests = failed("Bash", Some("npm test"), Some(1), "Tests:       3 failed, 44 passed, 47 total\n");
        assert_eq!(tool_fault(&tests, &classifier, at).reason, Reason::TestFailure);
        let edit = failed("Edit", None, None, "String to replace not found in file.\nString: x");
        let fault = tool_fault(&edit, &classifier, at);
        assert_eq!((fault.reason, fault.cause.is_some()), (Reason::ToolFailed, true));
        let odd = failed("Bash", Some("frobnicate"), Some(7), "");
        assert_eq!(tool_fault(&odd, &classifier, at).reason, Reason::Unknown);
    }

    #[test]
    fn every_word_for_a_broken_turn_has_a_reason() {
        let cases = [
            ("rate_limit", "API Error: 429", Reason::RateLimited),
            ("server_error", "API Error: 529 overloaded", Reason::NetworkTransient),
            ("overloaded", "", Reason::NetworkTransient),
            ("authentication_failed", "Invalid API key", Reason::AuthError),
            ("oauth_org_not_allowed", "", Reason::AuthError),
            ("billing_error", "Credit balance is too low", Reason::QuotaExhausted),
            (
                "invalid_request",
                "prompt is too long: 210000 tokens > 200000 maximum",
                Reason::ContextOverflow,
            ),
            ("invalid_request", "messages: at least one message is required", Reason::Validation),
            ("model_not_found", "", Reason::Validation),
            ("max_output_tokens", "", Reason::TaskIncomplete),
            ("unknown", "", Reason::Unknown),
            ("\u{1b}[2J", "", Reason::Unknown),
        ];
        for (error, said, want) in cases {
            let event = Event::TurnFailed { error: error.into(), said: said.into() };
            let fault = turn_fault(&event, &Classifier::builtin(), Timestamp::from_millis(0)).unwrap();
            assert_eq!(fault.reason, want, "{error}: {said}");
        }
        assert!(turn_fault(&Event::Other, &Classifier::builtin(), Timestamp::from_millis(0)).is_none());
    }

    #[test]
    fn a_limit_lasts_as_long_as_the_answer_asks() {
        let cases = [
            ("Slow down.\nretry-after: 120", Some(120.0)),
            ("Slow down.\nretry-after-ms: 1500\nretry-after: 2", Some(1.5)),
            ("Rate limit reached. Please try again in 11s.", Some(11.0)),
            ("API Error: Request rejected (429) · This request would exceed your rate limit.", None),
            ("retry-after: soon", None),
            ("retry-after: 0", None),
            ("", None),
        ];
        for (said, want) in cases {
            let event = Event::TurnFailed { error: "rate_limit".into(), said: said.into() };
            let fault = turn_fault(&event, &Classifier::builtin(), Timestamp::from_millis(0)).unwrap();
            assert_eq!(
                (fault.reason, fault.facts.retry_after_seconds),
                (Reason::RateLimited, want),
                "{said}"
            );
        }
    }

    #[test]
    fn what_is_the_same_fault_and_what_is_progress() {
        let classifier = Classifier::builtin();
        let signed = |tool: &str, said: &str| {
            let failed = failed(tool, Some("x"), Some(1), said);
            fault_signature(&failed, &tool_fault(&failed, &classifier, Timestamp::from_millis(0)))
        };
        let worker = |n: u32| signed("Bash", &format!("worker {n} failed after {n} ms"));
        assert_eq!(worker(17), worker(9));
        assert_ne!(worker(17), signed("Edit", "worker 17 failed after 17 ms"));
        let tests = |n: u32| signed("Bash", &format!("Tests:       {n} failed, 44 passed, 47 total\n"));
        assert_eq!(tests(3), tests(3));
        assert_ne!(tests(3), tests(2), "fewer failures are progress");
        assert_eq!(signed("Bash", ""), None, "what says nothing cannot be told from something else");
    }
}
