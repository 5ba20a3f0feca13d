//! The lines of `exec` while it runs: one for each thing that happens.

use super::duration;
use crate::list::{count, cut};
use crate::{Style, near_time, summary};
use backstop_core::{Action, Decision, Fault, RunId, SafeText, Timestamp};
use std::time::Duration;

/// How much of a cause is shown.
const CAUSE_CHARS_MAX: usize = 100;
/// How much of a why or a next step is shown.
const LINE_CHARS_MAX: usize = 300;

/// `attempt 1 failed: network_transient (npm error code ECONNRESET, rule npm.econnreset)`.
pub fn attempt_failed(attempt: u32, fault: &Fault, style: Style) -> String {
    let rule = fault
        .evidence
        .first()
        .map(|evidence| format!("rule {}", SafeText::from(evidence.rule.as_str()).line(60)));
    let parts: Vec<String> = short_cause(fault).into_iter().chain(rule).collect();
    let because = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    format!("attempt {attempt} failed: {}{}", style.bad(fault.reason.code()), style.marks(&because))
}

/// `retrying in 1.1 s (attempt 2 of 4) · Ctrl-C to stop`.
pub fn retrying(after: Duration, attempt: u32, of: u32, style: Style) -> String {
    let when = if after.is_zero() { "now".to_owned() } else { format!("in {}", duration(after)) };
    format!("retrying {when} (attempt {attempt} of {of}){}{}", style.dot(), style.faint("Ctrl-C to stop"))
}

/// ``done on attempt 2 · 41 s · `backstop explain r-7f3a` tells the story``.
pub fn done(attempt: u32, total: Duration, run: Option<RunId>, style: Style) -> String {
    let dot = style.dot();
    let story = run.map(|run| format!("{dot}{}", story_command(run))).unwrap_or_default();
    format!("{} on attempt {attempt}{dot}{}{story}", style.good("done"), duration(total))
}

/// The lines at the end of a failed run: the reason, why nothing more is tried, the next step, and
/// the command that shows its story. A time is written as it is read at `now`.
#[expect(clippy::too_many_arguments)] // All of it is what is told.
pub fn gave_up(
    fault: &Fault,
    decision: &Decision,
    attempts: u32,
    total: Duration,
    run: Option<RunId>,
    next: Option<&SafeText>,
    now: Timestamp,
    style: Style,
) -> String {
    let dot = style.dot();
    let (head, label) = match decision.action {
        Action::Defer { .. } if next.is_some() && attempts == 0 => ("not started, but put aside", "why"),
        // What could not be put aside has only failed.
        Action::Defer { .. } if next.is_some() => ("failed and put aside", "not tried again"),
        Action::Confirm { .. } => ("unconfirmed", "not repeated by itself"),
        Action::UsePartial => ("partial", "going on with what there is"),
        Action::Block => ("blocked", "not tried again"),
        Action::Halt => ("halted", "not tried again"),
        _ => ("failed", "not tried again"),
    };
    let cause = short_cause(fault).map(|cause| format!(": {}", style.marks(&cause))).unwrap_or_default();
    let after = match attempts {
        0 => String::new(),
        _ => format!(" after {}{dot}{}", count(attempts.into(), "attempt", "attempts"), duration(total)),
    };
    let mut out = format!("{head}{after}{dot}{} ({}){cause}\n", style.bad(fault.reason.code()), fault.class,);
    let why = SafeText::from(decision.why.as_str()).line(LINE_CHARS_MAX);
    if !why.is_empty() {
        out.push_str(&format!("  {label}: {}\n", style.marks(&why)));
    }
    let next = match (next, &decision.action) {
        (Some(next), _) => next.line(LINE_CHARS_MAX),
        (None, Action::Confirm { command }) if !command.is_empty() => {
            format!("`{}`", SafeText::from(command.as_str()).line(LINE_CHARS_MAX))
        }
        (None, _) => fault.suggested_action.line(LINE_CHARS_MAX),
    };
    // A limit that ends at a time: the time is what a reader looks for.
    let after = match &decision.action {
        Action::Defer { until } => Timestamp::parse_rfc3339(until),
        _ => None,
    };
    let after = after.map(|at| format!(" after {}", near_time(at, now))).unwrap_or_default();
    let next = format!("{next}{after}");
    let story = run.map(|run| format!("{dot}{}", story_command(run))).unwrap_or_default();
    out.push_str(&format!("  next: {}{story}\n", style.marks(&next)));
    out
}

/// The summary of a fault, cut short; `None` where nothing is known.
pub(super) fn short_cause(fault: &Fault) -> Option<String> {
    let text = summary(fault);
    let known = text != fault.reason.info().remedy || fault.cause.is_some();
    (known && !text.is_empty()).then(|| cut(&text, CAUSE_CHARS_MAX))
}

/// The command that shows the story of a run.
pub fn story_command(run: RunId) -> String {
    format!("`backstop explain {run}` tells the story")
}

/// That a result was kept and is used again.
pub fn reused_line(command: &str, old: Duration) -> String {
    format!("from the cache, {} old: `{}`\n", duration(old), SafeText::new(command).line(80))
}

/// That a command may be in a loop, and what to do about it.
pub fn loop_warning(times: u32, has_budget: bool) -> (String, &'static str) {
    let what = format!(
        "the same failure {times} times in a row, and no file has changed in between: this may be a loop"
    );
    let hint = match has_budget {
        true => "change something first: unchanged, the next one is not started",
        false => "change something first; with --budget NAME the next one would not be started",
    };
    (what, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::{Evidence, Reason};

    fn reset() -> Fault {
        let mut fault = Fault::new(Reason::NetworkTransient);
        fault.cause = Some("npm error code ECONNRESET".into());
        fault.evidence.push(Evidence {
            rule: "npm.econnreset".into(),
            line: Some(2),
            text: "npm error code ECONNRESET".into(),
            stream: None,
        });
        fault
    }

    #[test]
    fn what_was_not_started_does_not_count_attempts() {
        let decision = Decision { action: Action::Defer { until: "later".into() }, why: "a limit".into() };
        let next = SafeText::new("backstop deferred run d-1");
        let now = Timestamp::from_millis(0);
        let of = |attempts: u32| {
            let all = Duration::from_secs(3);
            gave_up(&reset(), &decision, attempts, all, None, Some(&next), now, Style::PLAIN)
        };
        assert!(of(0).starts_with("not started, but put aside · network_transient"), "{}", of(0));
        assert!(of(2).starts_with("failed and put aside after 2 attempts · 3 s · "), "{}", of(2));
    }

    #[test]
    fn a_recovery_in_three_lines() {
        let run: RunId = "r-7f3a".parse().unwrap();
        let shown = [
            attempt_failed(1, &reset(), Style::PLAIN),
            retrying(Duration::from_millis(1_100), 2, 4, Style::PLAIN),
            done(2, Duration::from_secs(41), Some(run), Style::PLAIN),
            retrying(Duration::ZERO, 2, 3, Style::default()),
        ];
        insta::assert_snapshot!(shown.join("\n"), @"
        attempt 1 failed: network_transient (npm error code ECONNRESET, rule npm.econnreset)
        retrying in 1.1 s (attempt 2 of 4) · Ctrl-C to stop
        done on attempt 2 · 41 s · `backstop explain r-7f3a` tells the story
        retrying now (attempt 2 of 3) - Ctrl-C to stop
        ");
    }

    #[test]
    fn nothing_known_leaves_no_empty_parentheses() {
        let fault = Fault::new(Reason::Unknown);
        assert_eq!(attempt_failed(1, &fault, Style::PLAIN), "attempt 1 failed: unknown");
        let mut long = reset();
        long.cause = Some(SafeText::new("x\x1b".repeat(500)));
        let shown = attempt_failed(1, &long, Style::PLAIN);
        assert!(shown.len() < 180 && !shown.contains('\x1b'), "{shown}");
    }

    #[test]
    fn an_ending_says_why_and_what_next() {
        let run: RunId = "r-7f3a".parse().unwrap();
        let end = |action, next: Option<&SafeText>| {
            let decision = Decision { action, why: "network_transient: all 4 attempts are used up".into() };
            gave_up(
                &reset(),
                &decision,
                4,
                Duration::from_secs(95),
                Some(run),
                next,
                Timestamp::default(),
                Style::PLAIN,
            )
        };
        let confirm = Action::Confirm { command: "backstop exec --confirm -- ./deploy".into() };
        let shown = format!(
            "{}{}{}",
            end(Action::Surface, None),
            end(Action::Defer { until: "the disk has space".into() }, Some(&"backstop deferred run".into())),
            end(confirm, None)
        );
        insta::assert_snapshot!(shown, @"
        failed after 4 attempts · 1m 35s · network_transient (transient): npm error code ECONNRESET
          not tried again: network_transient: all 4 attempts are used up
          next: wait a moment and try again · `backstop explain r-7f3a` tells the story
        failed and put aside after 4 attempts · 1m 35s · network_transient (transient): npm error code ECONNRESET
          not tried again: network_transient: all 4 attempts are used up
          next: backstop deferred run · `backstop explain r-7f3a` tells the story
        unconfirmed after 4 attempts · 1m 35s · network_transient (transient): npm error code ECONNRESET
          not repeated by itself: network_transient: all 4 attempts are used up
          next: `backstop exec --confirm -- ./deploy` · `backstop explain r-7f3a` tells the story
        ");
    }
}
