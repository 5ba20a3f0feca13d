//! The wait that a fault asks for: which of the selected lines belong to the failure, and what the
//! reader makes of them.

use crate::Classifier;
use crate::matcher::{Match, Matcher};
use crate::response;
use backstop_core::wait::{OutputLine, Wait, in_lines};
use backstop_core::{Clock, Hints, Reason, Signal, Surface};
use std::collections::BTreeMap;
use std::time::Duration;

/// The rules that select lines.
const RULES: &str = "wait.";
/// How far from the line that decided a line may be that belongs to the same failure: the headers
/// of an answer lie between them.
const NEAR_LINES: u64 = 80;
/// How far from the line that decided a sentence counts as beside it.
const BESIDE_LINES: u64 = 3;

/// The wait that a signal asks for, and whether a server said that a retry makes sense.
pub(crate) struct Asked {
    pub(crate) wait: Option<Wait>,
    pub(crate) should_retry: Option<bool>,
}

/// Whether a fault of this reason may be waited out.
fn waits(reason: Reason) -> bool {
    reason.retryable() || matches!(reason, Reason::QuotaExhausted | Reason::ServiceDown | Reason::Unknown)
}

/// Reads the wait of a signal that is a fault of this reason; `decided` is the line that decided.
pub(crate) fn read(
    classifier: &Classifier,
    signal: &Signal,
    matcher: &Matcher,
    reason: Reason,
    decided: Option<&Match>,
) -> Asked {
    let clock = Clock { now: signal.at, zone: classifier.zone.clone() };
    if signal.surface == Surface::Response {
        let hints = Hints::read(&signal.headers, response::body_json(signal).as_ref(), &clock);
        let said = || in_lines_of(&String::from_utf8_lossy(&signal.stderr), &clock);
        // A refusal that names the end of a window, and not what is left in it, means that window.
        let unexplained = || {
            let after = hints.unexplained_reset().filter(|_| reason == Reason::RateLimited)?;
            Some(Wait { after, is_structured: true })
        };
        let wait = hints.wait().or_else(said).or_else(unexplained);
        return Asked { wait, should_retry: hints.should_retry };
    }
    let wait = waits(reason).then(|| in_output(classifier, matcher, reason, decided, &clock)).flatten();
    Asked { wait, should_retry: None }
}

fn in_lines_of(text: &str, clock: &Clock) -> Option<Wait> {
    backstop_core::wait::in_output(text, clock)
}

fn in_output(
    classifier: &Classifier,
    matcher: &Matcher,
    reason: Reason,
    decided: Option<&Match>,
    clock: &Clock,
) -> Option<Wait> {
    let mut lines: BTreeMap<(u8, u64), &str> = BTreeMap::new();
    for (rule, state) in classifier.rules.iter().zip(&matcher.rules) {
        if rule.id.starts_with(RULES) {
            lines.extend(state.matches().map(|found| ((found.stream, found.line), found.text.as_str())));
        }
    }
    let distance = |stream: u8, line: u64| match decided {
        Some(decided) if decided.stream == stream => decided.line.abs_diff(line),
        // Of the other stream, the end counts.
        _ => matcher.lines.get(usize::from(stream)).map_or(0, |all| all.saturating_sub(line)),
    };
    let is_limit = matches!(reason, Reason::RateLimited | Reason::QuotaExhausted);
    let near = lines.iter().filter(|((stream, line), _)| distance(*stream, *line) <= NEAR_LINES);
    let near = near.map(|((stream, line), text)| OutputLine {
        number: *line,
        text,
        near_limit: is_limit && distance(*stream, *line) <= BESIDE_LINES,
    });
    in_lines(near, is_limit, clock).or_else(|| {
        // A field on the line below the one that names it: `retry_delay { seconds: 23 }`.
        let seconds = matcher.facts.get(None, "retry_after").last()?.parse().ok()?;
        Some(Wait { after: Duration::from_secs(seconds), is_structured: true })
    })
}
