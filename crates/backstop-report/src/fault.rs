//! A fault for a terminal and as JSON.

use crate::{JSON_SCHEMA, Style};
use backstop_core::{ConfidenceLevel, Facts, Fault, Reason, SafeText};
use serde_json::{Value, json};
use std::time::Duration;

/// How many names are listed before "and n more".
const NAMES_MAX: usize = 4;
/// How much of a line is shown.
const LINE_CHARS_MAX: usize = 160;

/// A fault for a terminal: its reason, a summary, the evidence and the next step.
pub fn fault(fault: &Fault, style: Style) -> String {
    let dot = style.dot();
    let retry = match fault.facts.may_have_changed {
        true => "retry only if a second time does no harm".to_owned(),
        false => format!("retry {}", fault.retry),
    };
    let mut out = format!(
        "{}{dot}{}{dot}{}{dot}{retry}\n",
        looks_like(fault).to_owned() + &style.bad(fault.reason.code()),
        fault.class,
        fault.severity,
    );
    let summary = summary(fault);
    out.push_str(&format!("  {}\n", style.marks(&summary)));
    if let Some(cause) = &fault.cause {
        let cause = cause.line(LINE_CHARS_MAX);
        if !summary.contains(cause.trim_end_matches('…')) && !cause.is_empty() {
            out.push_str(&format!("  {}\n", style.marks(&cause)));
        }
    }
    match fault.evidence.first() {
        Some(evidence) => {
            let place = match (evidence.line, &evidence.stream) {
                (Some(line), Some(stream)) => format!(" ({stream} line {line})"),
                (Some(line), None) => format!(" (line {line})"),
                (None, _) => String::new(),
            };
            let text = style.marks(&evidence.text.line(LINE_CHARS_MAX));
            let by = recognised_by(&evidence.rule);
            out.push_str(&style.faint(&format!("  {by}: \"{text}\"{place}")));
        }
        None => out.push_str(&style.faint("  no rule recognises it")),
    }
    out.push('\n');
    if let Some(sure) = confidence(fault) {
        out.push_str(&style.faint(&format!("  {sure}")));
        out.push('\n');
    }
    out.push_str(&format!("  next: {}\n", style.marks(&fault.suggested_action.line(LINE_CHARS_MAX * 2))));
    out
}

/// What goes before the reason of a guess.
pub(crate) fn looks_like(fault: &Fault) -> &'static str {
    if fault.confidence.is_low() && fault.reason != Reason::Unknown { "looks like " } else { "" }
}

/// How sure the reason is, in words. Nothing where there is no doubt worth a line.
pub(crate) fn confidence(fault: &Fault) -> Option<String> {
    let sure = fault.confidence;
    let doubted = sure.level() < ConfidenceLevel::High && fault.reason != Reason::Unknown;
    doubted.then(|| format!("confidence {} ({}%)", sure.level(), sure.percent()))
}

/// Who recognised a failure: a rule, the shape of its lines, or its likeness to labelled failures.
pub(crate) fn recognised_by(rule: &str) -> String {
    if rule == "learned" {
        return "no rule is sure; by likeness to labelled failures".to_owned();
    }
    match rule.strip_prefix("grammar.") {
        Some(kind) => format!("recognised by how its line is written ({})", kind.replace('_', " ")),
        None => format!("recognised by rule {}", SafeText::new(rule).line(60)),
    }
}

/// What to do about a fault, in order: what it suggests, then the steps that fit what is known of
/// it. Every surface takes its advice from here.
pub fn advice(fault: &Fault) -> Vec<SafeText> {
    let suggested = fault.suggested_action.raw().trim();
    let mut steps = Vec::new();
    if !suggested.is_empty() {
        steps.push(SafeText::new(crate::list::capital(suggested)));
    }
    let others = fault.next_steps().iter().filter(|step| !step.eq_ignore_ascii_case(suggested));
    steps.extend(others.map(|step| SafeText::new(*step)));
    steps
}

/// The text for a success.
pub fn success(style: Style) -> String {
    format!("{}{}exit 0 is success, whatever the output says\n", style.good("success"), style.dot())
}

/// A summary of a fault in one line: what failed and where.
pub fn summary(fault: &Fault) -> String {
    let facts = &fault.facts;
    match fault.reason {
        Reason::TestFailure | Reason::FlakyTest
            if facts.failed_count.is_some() || !facts.failed_tests.is_empty() =>
        {
            tests(facts)
        }
        Reason::LintError | Reason::TypecheckError | Reason::FormatError | Reason::CompileError
            if !facts.files.is_empty() =>
        {
            problems(fault)
        }
        Reason::DependencyMissing if facts.missing.is_some() => {
            format!("missing: {}", names(facts.missing.as_slice()))
        }
        Reason::Timeout if facts.last_activity.is_some() => {
            let last = facts.last_activity.as_ref().map(|a| a.line(LINE_CHARS_MAX)).unwrap_or_default();
            match &fault.cause {
                Some(cause) if cause.raw() != last => {
                    format!("{}; last activity: {last}", cause.line(LINE_CHARS_MAX))
                }
                _ => format!("last activity: {last}"),
            }
        }
        reason if reason.retryable() && facts.retry_after_seconds.is_some() => {
            let wait = Duration::try_from_secs_f64(facts.retry_after_seconds.unwrap_or_default());
            format!("the server asks to wait {}", crate::duration(wait.unwrap_or_default()))
        }
        _ => match (&facts.exception, &fault.cause) {
            (Some(exception), _) if fault.reason == Reason::Crash => exception_line(exception),
            (_, Some(cause)) => cause.line(LINE_CHARS_MAX),
            _ => fault
                .evidence
                .first()
                .map_or_else(|| fault.reason.info().remedy.to_owned(), |e| e.text.line(LINE_CHARS_MAX)),
        },
    }
}

fn exception_line(exception: &backstop_core::Exception) -> String {
    let message = exception.message.line(100);
    let mut out = if message.is_empty() {
        exception.kind.line(80)
    } else {
        format!("{}: {message}", exception.kind.line(80))
    };
    if let Some(file) = &exception.file {
        let line = exception.line.map(|n| format!(":{n}")).unwrap_or_default();
        let function = exception.function.as_ref().map(|f| format!(" in {}", f.line(60))).unwrap_or_default();
        out.push_str(&format!(" at {}{line}{function}", file.line(100)));
    }
    out
}

fn tests(facts: &Facts) -> String {
    let count = facts.failed_count.unwrap_or(facts.failed_tests.len() as u64);
    let noun = if count == 1 { "test" } else { "tests" };
    let place = if facts.files.is_empty() { String::new() } else { format!(" in {}", names(&facts.files)) };
    let which = if facts.failed_tests.is_empty() {
        String::new()
    } else {
        format!(": {}", names(&facts.failed_tests))
    };
    format!("{count} {noun} failed{place}{which}")
}

fn problems(fault: &Fault) -> String {
    let facts = &fault.facts;
    let count = match facts.failed_count {
        Some(1) => "1 problem".to_owned(),
        Some(n) => format!("{n} problems"),
        None => "problems".to_owned(),
    };
    let rules = if facts.rules.is_empty() { String::new() } else { format!(": {}", names(&facts.rules)) };
    let line = match (facts.line, facts.files.len()) {
        (Some(line), 1) => format!(":{line}"),
        _ => String::new(),
    };
    // One problem is told as it is.
    if facts.files.len() == 1
        && facts.failed_count.is_none_or(|count| count == 1)
        && let Some(cause) = fault.cause.as_ref().filter(|cause| !cause.is_empty())
    {
        let (cause, file) = (cause.line(LINE_CHARS_MAX), names(&facts.files));
        return if cause.contains(&file) { cause } else { format!("{file}{line}: {cause}") };
    }
    format!("{count} in {}{line}{rules}", names(&facts.files))
}

fn names(list: &[SafeText]) -> String {
    crate::list::names(list, NAMES_MAX, 80)
}

/// A fault, or a success, as JSON. `reason` is null for a success.
pub fn fault_json(fault: Option<&Fault>) -> Value {
    match fault {
        Some(fault) => {
            let mut value = serde_json::to_value(fault).unwrap_or_default();
            if let Value::Object(fields) = &mut value {
                fields.insert("schema".to_owned(), json!(JSON_SCHEMA));
                fields.insert("summary".to_owned(), json!(summary(fault)));
            }
            value
        }
        None => json!({
            "schema": JSON_SCHEMA, "reason": null, "class": null, "severity": null, "retry": "no", "retryable": false,
            "suggested_action": "nothing to do: it succeeded", "facts": {}, "evidence": [],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::Evidence;

    fn sample() -> Fault {
        let mut fault = Fault::new(Reason::TestFailure);
        fault.facts.failed_count = Some(3);
        fault.facts.files = vec!["src/api/auth.test.ts".into()];
        fault.facts.failed_tests =
            vec!["validateToken".into(), "refreshToken".into(), "handleExpired".into()];
        fault.evidence.push(Evidence {
            rule: "jest.summary".into(),
            line: Some(812),
            text: "Tests: 3 failed, 44 passed".into(),
            stream: None,
        });
        fault.suggested_action = "fix the failing tests, then `npx jest src/api/auth.test.ts`".into();
        fault
    }

    #[test]
    fn a_fault_reads_as_in_the_readme() {
        insta::assert_snapshot!(fault(&sample(), Style::PLAIN), @r#"
        test_failure · permanent · medium · retry changed
          3 tests failed in src/api/auth.test.ts: validateToken, refreshToken, handleExpired
          recognised by rule jest.summary: "Tests: 3 failed, 44 passed" (line 812)
          next: fix the failing tests, then `npx jest src/api/auth.test.ts`
        "#);
    }

    #[test]
    fn a_guess_says_that_it_is_one() {
        let mut fault = sample();
        fault.set_confidence(backstop_core::Confidence::of_percent(41));
        fault.evidence[0].rule = "learned".into();
        fault.evidence[0].text = "like frob-1 (test_failure): 1 of 2 failed".into();
        fault.evidence[0].line = None;
        insta::assert_snapshot!(super::fault(&fault, Style::PLAIN), @r#"
        looks like test_failure · permanent · medium · retry changed
          3 tests failed in src/api/auth.test.ts: validateToken, refreshToken, handleExpired
          no rule is sure; by likeness to labelled failures: "like frob-1 (test_failure): 1 of 2 failed"
          confidence low (41%)
          next: fix the failing tests, then `npx jest src/api/auth.test.ts`
        "#);
        assert_eq!(fault_json(Some(&fault))["confidence"]["level"], "low");
    }

    #[test]
    fn nothing_from_outside_reaches_the_terminal_unescaped() {
        let mut fault = sample();
        fault.facts.failed_tests = vec!["\x1b]0;owned\x07\n\u{202e}".into()];
        fault.evidence[0].text = "\x1b[2J".into();
        fault.suggested_action = "\x1b[31m".into();
        fault.cause = Some("\r\x1bc".into());
        let shown = super::fault(&fault, Style::PLAIN);
        assert!(!shown.contains(['\x1b', '\x07', '\r', '\u{202e}']), "{shown:?}");
        let json = crate::to_json(&fault_json(Some(&fault)));
        assert!(!json.contains(['\x1b', '\u{202e}']));
    }
}
