//! What follows when a run has ended, the same on every surface: the project is frozen where that
//! is called for, people are told, the trace is exported, what is old goes.
//!
//! Nobody waits for any of it, and nothing of it changes how a run ends: what goes wrong here is a
//! warning.

pub mod deferred;
mod freeze;
pub mod leftovers;
pub mod notifications;
pub mod sender;
pub mod sink_test;

pub use freeze::record_override;

use crate::machine_state;
use crate::project::{Project, ProjectError};
use crate::recorder::Recorder;
use backstop_core::{Event, EventKind, Fault, Reason, RunId, SafeText, Timestamp};
use backstop_notify::{About, Message, ended};
use backstop_report::{Alert, alert};

/// Something that went wrong, and how it ended.
#[derive(Debug)]
pub struct Failures<'f> {
    /// What was classified, in order.
    pub faults: Vec<&'f Fault>,
    /// What it ended with; nothing where it goes on.
    pub ended_with: Option<Reason>,
    /// The run, where it was recorded.
    pub run: Option<RunId>,
}

/// Freezes where that is called for, and tells people. The message is made when it is known whether
/// the project was frozen: then it is given why. Gives what is to be recorded.
pub fn freeze_and_notify(
    project: &Project,
    failures: &Failures<'_>,
    message: impl FnOnce(Option<SafeText>) -> Option<Message>,
) -> Vec<EventKind> {
    let (mut follows, why) = match freeze::freeze(project, failures) {
        Some((event, why)) => (vec![event], Some(why)),
        None => (Vec::new(), None),
    };
    match message(why) {
        Some(message) => follows.extend(notifications::notify(project, &message)),
        None => notifications::send_rest(project),
    }
    follows
}

/// A run has ended, and that is recorded. What follows is recorded with it; then whoever watches is
/// told that nothing more comes.
pub fn run_ended(project: &Project, recorder: &Recorder, is_done: bool) {
    if is_done {
        notifications::send_rest(project);
    } else {
        let follows = after(project, &recorder.events());
        if !follows.is_empty() {
            // What cannot be recorded now has been told, and a warning was given.
            let _ = recorder.append(follows);
        }
    }
    recorder.close();
}

/// What follows from the events of a run that did not end well.
fn after(project: &Project, events: &[Event]) -> Vec<EventKind> {
    let faults = events.iter().filter_map(|event| match &event.kind {
        EventKind::ErrorClassified { fault, .. } => Some(&**fault),
        _ => None,
    });
    let ended_with = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::RunEnded { reason, .. } => *reason,
        EventKind::RunHalted { reason, .. } => Some(*reason),
        _ => None,
    });
    let run = events.first().map(|event| event.run);
    let failures = Failures { faults: faults.collect(), ended_with, run };
    let root = SafeText::new(project.root.to_string_lossy());
    freeze_and_notify(project, &failures, |frozen| ended(events, &root, frozen))
}

/// A run begins to wait for a rate limit: people are told, once for each wait, until when. Gives
/// what is to be recorded about that.
pub fn run_waits(
    project: &Project,
    operation: &SafeText,
    part: &SafeText,
    run: RunId,
    fault: &Fault,
    until: Timestamp,
) -> Vec<EventKind> {
    let now = project.process.now();
    let words = format!(
        "it goes on by itself at {} (in {})",
        backstop_report::near_time(until, now),
        backstop_report::duration(until.since(now))
    );
    let given = Alert {
        // A wait of hours is worth a message, like an end.
        severity: fault.ending_severity(),
        outcome: "waiting",
        operation: operation.clone(),
        part: Some(part.clone()),
        project: SafeText::new(project.root.to_string_lossy()),
        run: Some(run),
        steps: vec![SafeText::new(words)],
        ..Alert::about(fault, now)
    };
    notifications::notify(project, &Message::new(&alert(&given), About::of(&given)))
}

/// Work is complete that changed what it is judged by: people are told, so that somebody looks at
/// it before anybody relies on the gates. Gives what is to be recorded about that.
pub fn work_flagged(
    project: &Project,
    operation: &SafeText,
    part: &SafeText,
    run: RunId,
    signs: &[SafeText],
) -> Vec<EventKind> {
    let mut fault = Fault::new(Reason::VerificationMismatch);
    fault.cause = signs.first().cloned();
    let given = Alert {
        severity: fault.ending_severity(),
        outcome: "flagged",
        operation: operation.clone(),
        part: Some(part.clone()),
        project: SafeText::new(project.root.to_string_lossy()),
        run: Some(run),
        steps: signs.iter().map(|sign| SafeText::new(format!("look at this: it {}", sign.raw()))).collect(),
        ..Alert::about(&fault, project.process.now())
    };
    notifications::notify(project, &Message::new(&alert(&given), About::of(&given)))
}

/// A run broke off, because nothing could be recorded any more: that is told, and it may be the
/// machine's trouble.
pub fn broke_off(project: &Project, operation: &str, run: RunId, error: &str) {
    let mut fault = Fault::new(Reason::DiskFull);
    machine_state::observe(project, None, &mut fault);
    if fault.shortage().is_none() {
        fault = Fault::new(Reason::StateInvalid);
        machine_state::observe(project, None, &mut fault);
    }
    fault.cause = Some(SafeText::new(error));
    let reason = fault.reason;
    let failures = Failures { faults: vec![&fault], ended_with: Some(reason), run: Some(run) };
    freeze_and_notify(project, &failures, |frozen| {
        let given = Alert {
            operation: SafeText::new(operation),
            project: SafeText::new(project.root.to_string_lossy()),
            run: Some(run),
            frozen,
            ..Alert::about(&fault, project.process.now())
        };
        Some(Message::new(&alert(&given), About::of(&given)))
    });
}

/// Warns of an error, with what to do about it.
pub(crate) fn warn(project: &Project, what: &str, error: &ProjectError) {
    project.process.warn(&format!("{what}: {error}"), error.hints().first().map(String::as_str));
}
