//! The sentences of a story, before they are rendered for a terminal or Markdown.

use super::event::exit_or_signal;
use super::{AttemptStory, RunStory, clock, date, decision_words, duration};
use crate::fault::{confidence, recognised_by};
use crate::list::{count, names};
use crate::notice::Words;
use crate::summary;
use backstop_core::{Facts, Fault, Outcome, Reason, SafeText};

/// How much of a text is shown on a line.
pub(super) const LINE_CHARS_MAX: usize = 160;
/// How many lines of output are shown.
pub(super) const OUTPUT_LINES_MAX: usize = 8;

/// The operation of the run.
pub(super) fn operation(story: &RunStory) -> Words {
    story.operation.as_ref().map_or_else(|| "(not recorded)".into(), outside)
}

/// The outcome in one word.
pub(super) fn outcome_word(story: &RunStory) -> &'static str {
    match &story.ending {
        Some(ending) => ending.outcome.map_or("halted", Outcome::name),
        None if story.is_alive == Some(true) => "running",
        None if story.is_alive == Some(false) => "cut off",
        None => "not ended",
    }
}

/// The header: when, where, which surface, who called.
pub(super) fn header(story: &RunStory) -> Vec<Words> {
    let mut parts = vec![Words::own(date(story.started))];
    parts.extend(story.folder.as_ref().map(|folder| Words::own("in ").and_words(outside(folder))));
    parts.push(outside(&story.surface.as_str().into()));
    parts.extend(
        story.profile.as_deref().map(|profile| Words::own("profile ").and_words(outside(&profile.into()))),
    );
    parts.extend(story.caller.as_ref().map(|caller| Words::own("called by ").and_words(outside(caller))));
    parts.extend(story.parent.map(|parent| Words::own(format!("started by {parent}"))));
    parts
}

/// `attempt 2`; the operation is named where it is not the run's own.
pub(super) fn attempt_title(story: &RunStory, attempt: &AttemptStory) -> Words {
    let title = Words::own(format!("attempt {}", attempt.attempt));
    match story.operation.as_ref() == Some(&attempt.operation) {
        true => title,
        false if story.surface == "run" => title.and_own(" of phase ").and_words(outside(&attempt.operation)),
        false => title.and_own(" of ").and_words(outside(&attempt.operation)),
    }
}

/// When an attempt began, how long it took, and how it ended.
pub(super) fn attempt_summary(story: &RunStory, attempt: &AttemptStory) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(attempt.started.map(|at| match at.since(story.started) {
        later if later.is_zero() => clock(at),
        later => format!("{}, {} into the run", clock(at), duration(later)),
    }));
    parts.extend(attempt.duration.map(|took| format!("took {}", duration(took))));
    parts.extend(exit_or_signal(attempt.exit, attempt.signal.as_deref()));
    let end = match (attempt.success, &attempt.lost, &attempt.fault) {
        (Some(true), _, _) => "succeeded",
        (Some(false), _, _) => "failed",
        (None, Some(_), _) => "lost",
        (None, None, Some(_)) => "failed",
        (None, None, None) if story.is_alive == Some(true) => "running",
        (None, None, None) => "its end is not recorded",
    };
    parts.push(end.to_owned());
    parts
}

/// The fault of an attempt, its evidence, and the decision. `same_as` is the attempt that failed in
/// the same way before, where that is all that is to be said.
pub(super) fn attempt_details(attempt: &AttemptStory, same_as: Option<u32>) -> Vec<Words> {
    let mut lines = Vec::new();
    let recovery = attempt.recovery.as_ref().filter(|(_, helped)| *helped || same_as.is_none());
    if let Some((strategy, helped)) = recovery {
        let helped = if *helped { ", it helped" } else { ", it did not help" };
        lines.push(Words::own("recovery: ").and_words(outside(&strategy.as_str().into())).and_own(helped));
    }
    lines.extend(
        attempt.lost.as_ref().map(|why| Words::own("how it ended is not known: ").and_words(outside(why))),
    );
    if let Some(fault) = &attempt.fault {
        match same_as {
            Some(earlier) => {
                lines.push(format!("{}: the same failure as in attempt {earlier}", fault.reason).into());
            }
            None => {
                let head = Words::own(format!("{} ({}): ", fault.reason, fault.class));
                lines.push(head.and_words(outside(&summary(fault).into())));
                lines.push(evidence_words(fault));
                lines.extend(fact_words(&fault.facts));
            }
        }
    }
    if let Some(decision) = &attempt.decision {
        let why = (!decision.why.trim().is_empty()).then(|| outside(&decision.why.as_str().into()));
        let action = Words::own("decided: ").and_words(decision_words(decision, date));
        lines.push(match why {
            Some(why) => action.and_own(", because ").and_words(why),
            None => action,
        });
    }
    lines.extend(attempt.reclassified.map(|reason| {
        Words::own(format!("retries are used up: it now counts as {reason} ({})", reason.class()))
    }));
    lines
}

/// The first of these earlier attempts that failed in the same way as this one.
pub(super) fn same_as<'s>(
    mut earlier: impl Iterator<Item = &'s AttemptStory>,
    attempt: &AttemptStory,
) -> Option<u32> {
    let fault = attempt.fault.as_ref()?;
    let is_same = |known: &Fault| known.reason == fault.reason && summary(known) == summary(fault);
    let found = earlier
        .find(|other| other.operation == attempt.operation && other.fault.as_ref().is_some_and(is_same));
    found.map(|other| other.attempt)
}

fn evidence_words(fault: &Fault) -> Words {
    let Some(evidence) = fault.evidence.first() else {
        return "no rule recognises it".into();
    };
    let place = match (evidence.line, evidence.stream.as_deref()) {
        (Some(line), Some(stream)) => format!(" ({} line {line})", SafeText::from(stream).line(20)),
        (Some(line), None) => format!(" (line {line})"),
        (None, _) => String::new(),
    };
    let by = if evidence.rule == "learned" || evidence.rule.starts_with("grammar.") {
        Words::own(recognised_by(&evidence.rule))
    } else {
        Words::own("recognised by rule ").and_words(outside(&evidence.rule.as_str().into()))
    };
    let mut words = by.and_own(": \"").and_words(outside(&evidence.text)).and_own(format!("\"{place}"));
    // A guess names all that it was compared with.
    for other in fault.evidence.iter().skip(1).filter(|other| other.rule == "learned") {
        words = words.and_own(", \"").and_words(outside(&other.text)).and_own("\"");
    }
    match confidence(fault) {
        Some(sure) => words.and_own(format!("; {sure}")),
        None => words,
    }
}

/// The facts that a summary does not always show.
fn fact_words(facts: &Facts) -> Option<Words> {
    let lists = [
        ("files ", facts.files.as_slice()),
        ("tests ", &facts.failed_tests),
        ("rules ", &facts.rules),
        ("missing ", facts.missing.as_slice()),
        ("provider ", facts.provider.as_slice()),
        ("credential ", facts.credential.as_slice()),
    ];
    let mut words: Option<Words> = None;
    for (label, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        let so_far = words.map_or_else(|| Words::own("found: "), |words| words.and_own("; "));
        words = Some(so_far.and_own(label).and_outside(&names(list, 4, 80).into()));
    }
    words
}

/// The ending, and what to do next.
pub(super) fn ending_lines(story: &RunStory) -> Vec<Words> {
    let Some(ending) = &story.ending else {
        return not_ended(story);
    };
    let mut after = format!("after {}", count(story.attempts_made().into(), "attempt", "attempts"));
    // Who reports a failure does not say how long it took.
    if story.surface != "hook" {
        after.push_str(&format!(" and {}", duration(story.total())));
    }
    let exit = ending.exit.map(|exit| format!(", exit {exit}")).unwrap_or_default();
    let head = match ending.reason {
        Some(reason) => format!("{}: {reason} ({}), {after}{exit}", outcome_word(story), reason.class()),
        None => format!("{} {after}{exit}", outcome_word(story)),
    };
    let next = match (&ending.next, ending.reason) {
        (Some(next), _) => Some(Words::own("next: ").and_code(&next.line(LINE_CHARS_MAX * 2).into())),
        (None, Some(reason)) => Some(next_step(story, reason)),
        (None, None) => None,
    };
    [Words::own(head)].into_iter().chain(next).collect()
}

/// A run without an ending: it runs, or its process is gone.
fn not_ended(story: &RunStory) -> Vec<Words> {
    let (run, last) = (story.run, clock(story.last));
    let (state, next) = match story.is_alive {
        Some(true) => {
            ("still running".to_owned(), format!("`backstop events --run {run} --follow` shows what it does"))
        }
        Some(false) => (
            "cut off: Backstop was killed while it ran, so how it ended is not known".to_owned(),
            "check what the command has done, then run it again".to_owned(),
        ),
        None => (
            "no ending is recorded: it still runs, or Backstop was killed while it ran".to_owned(),
            format!("`backstop events --run {run}` shows every event"),
        ),
    };
    vec![format!("{state}; last event at {last}").into(), format!("next: {next}").into()]
}

/// The next step: what the fault that ended the run suggests.
fn next_step(story: &RunStory, reason: Reason) -> Words {
    let step = story.final_fault().map(|fault| outside(&fault.suggested_action)).unwrap_or_default();
    Words::own("next: ").and_words(step).and_own(format!("; `backstop explain {reason}` says more"))
}

fn outside(text: &SafeText) -> Words {
    Words::outside(&text.line(LINE_CHARS_MAX).into())
}
