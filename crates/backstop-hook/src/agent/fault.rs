//! What a failed tool call or a broken turn is.

use super::advice::{ToolError, own_tool_error};
use super::{Event, ToolFailure};
use crate::hint::add_wait;
use backstop_classify::{Classifier, add_credential_facts};
use backstop_core::{Evidence, Fault, Reason, Retry, SafeText, Signal, Timestamp, signature};

/// How much of a message is the cause.
const CAUSE_CHARS_MAX: usize = 300;
/// On how many of the last lines of an output a tool may speak for itself.
const LAST_LINES: usize = 3;
/// Tools that run a command, as agents call them.
const SHELLS: &[&str] = &[
    "Bash",
    "PowerShell",
    "shell",
    "local_shell",
    "exec_command",
    "unified_exec",
    "run_shell_command",
    "bash",
];

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
    let named = own_error(failed).and_then(|known| known.reason);
    if let Some(reason) = named.filter(|reason| *reason != fault.reason) {
        fault = under(reason, fault);
        // What the rules took for the cause is that of another reason.
        fault.cause = None;
        let text = failed.said.raw().lines().next().unwrap_or_default();
        let text = SafeText::new(text.chars().take(CAUSE_CHARS_MAX).collect::<String>());
        fault
            .evidence
            .insert(0, Evidence { rule: "agent.tool".to_owned(), line: Some(1), text, stream: None });
    } else if fault.reason == Reason::Unknown && !is_shell {
        fault = under(Reason::ToolFailed, fault);
    }
    with_cause(fault, &failed.said)
}

/// The same findings under another reason.
fn under(reason: Reason, found: Fault) -> Fault {
    Fault {
        cause: found.cause,
        facts: found.facts,
        evidence: found.evidence,
        confidence: found.confidence,
        ..Fault::new(reason)
    }
}

/// The error of one of the agent's own tools that this is. A tool that runs commands speaks on the
/// first line and on the last ones: what is between is the command's output.
pub(super) fn own_error(failed: &ToolFailure) -> Option<&'static ToolError> {
    let said = failed.said.raw();
    if !runs_commands(failed.tool.raw()) {
        return own_tool_error(failed.tool.raw(), said);
    }
    let mut lines: Vec<&str> =
        said.lines().rev().filter(|line| !line.trim().is_empty()).take(LAST_LINES).collect();
    lines.extend(said.lines().next());
    lines.iter().find_map(|line| own_tool_error(failed.tool.raw(), line))
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
    // A bad request may be one that is too long, a refusal one that ends or that money mends; what
    // the agent does not know, the rules may.
    let is_limit =
        matches!(read.reason, Reason::RateLimited | Reason::QuotaExhausted) && !read.confidence.is_low();
    let finer = match named {
        Reason::Unknown => true,
        Reason::Validation => read.reason == Reason::ContextOverflow,
        Reason::RateLimited | Reason::AuthError => is_limit || read.reason == named,
        _ => read.reason == named,
    };
    let mut fault = if finer {
        read
    } else {
        let mut fault = Fault::new(named);
        if named == Reason::RateLimited {
            fault.facts.retry_after_seconds = read.facts.retry_after_seconds;
            fault.facts.resets_at = read.facts.resets_at;
            fault.facts.model = read.facts.model;
        }
        fault.facts.provider = read.facts.provider;
        fault.evidence = read.evidence;
        fault
    };
    if fault.reason == Reason::RateLimited {
        add_wait(&mut fault.facts, said.raw(), at);
    }
    let mut fault = with_cause(fault, if said.raw().trim().is_empty() { error } else { said });
    if fault.facts.credential.is_none() {
        add_credential_facts(&mut fault, None, None);
    }
    Some(fault)
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
        assert_eq!((fault.reason, fault.cause.is_some()), (Reason::Validation, true));
        let mcp = failed("mcp__x__y", None, None, "the flux capacitor is offline");
        assert_eq!(tool_fault(&mcp, &classifier, at).reason, Reason::ToolFailed);
        let odd = failed("Bash", Some("frobnicate"), Some(7), "");
        assert_eq!(tool_fault(&odd, &classifier, at).reason, Reason::Unknown);
    }

    #[test]
    fn an_agents_own_tool_says_what_it_is_and_what_a_command_prints_does_not() {
        let classifier = Classifier::builtin();
        let reason = |tool: &str, command: Option<&str>, exit, said: &str| {
            tool_fault(&failed(tool, command, exit, said), &classifier, Timestamp::from_millis(0)).reason
        };
        let cases = [
            ("Read", "File does not exist. Did you mean notes.md?", Reason::InvalidUsage),
            (
                "Read",
                "File content (31337 tokens) exceeds maximum allowed tokens (25000).",
                Reason::InvalidParameters,
            ),
            (
                "Edit",
                "Found 3 matches of the string to replace, but replace_all is false.",
                Reason::Validation,
            ),
            ("Write", "EACCES: permission denied, open '/etc/hosts'", Reason::PermissionDenied),
            ("WebFetch", "Request failed with status code 403", Reason::AuthError),
            ("Task", "Agent type 'x' not found.", Reason::InvalidParameters),
        ];
        for (tool, said, want) in cases {
            assert_eq!(reason(tool, None, None, said), want, "{tool}: {said}");
        }
        assert_eq!(
            reason("Bash", Some("make"), Some(143), "Command timed out after 2m 0s\nbuilding"),
            Reason::Timeout
        );
        let printed = "Tests:       3 failed, 44 passed, 47 total\nthe command timed out\na\nb\nc\n";
        assert_eq!(reason("Bash", Some("npm test"), Some(1), printed), Reason::TestFailure);
        let fault =
            tool_fault(&failed("Read", None, None, cases[0].1), &classifier, Timestamp::from_millis(0));
        assert_eq!(fault.cause.unwrap().raw(), "File does not exist. Did you mean notes.md?");
        assert!(!fault.retryable);
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
                "authentication_failed",
                "API Error: 403 You've reached your usage limit for this billing cycle. Your quota will be \
                 refreshed in the next cycle.",
                Reason::QuotaExhausted,
            ),
            (
                "rate_limit",
                "You've hit your team's shared budget · ask your admin to raise it",
                Reason::QuotaExhausted,
            ),
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
    fn limits_are_read_as_on_every_other_surface_whatever_the_agent_calls_them() {
        let corpus = include_str!("../../../backstop-classify/tests/corpus/limits.jsonl");
        let (mut all, mut wrong) = (0, Vec::new());
        for line in corpus.lines() {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            let (said, wanted) = (row["text"].as_str().unwrap(), row["reasons"].as_array());
            let Some(wanted) = wanted else { continue };
            let is = |reason: &str| wanted.iter().any(|known| known == reason);
            let words: &[&str] = match is("network_transient") {
                true => &["overloaded", "unknown"],
                false => &["rate_limit", "authentication_failed", "unknown"],
            };
            for error in words {
                let event = Event::TurnFailed { error: (*error).into(), said: said.into() };
                let fault = turn_fault(&event, &Classifier::builtin(), Timestamp::from_millis(0)).unwrap();
                all += 1;
                if !is(fault.reason.code()) {
                    wrong.push(format!("{error} {}: {said}", fault.reason));
                }
            }
        }
        assert!(wrong.len() * 20 <= all, "{} of {all}:\n{}", wrong.len(), wrong.join("\n"));
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
