//! The warning before a fresh start: what it does, and what it does not undo.

use crate::notice::{Marker, Notice, Words, json_text};
use backstop_core::{Reason, SafeText};

/// A run that starts from the first phase although an earlier one can be continued.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FreshStart {
    /// The command that was typed.
    pub command: SafeText,
    /// The plan.
    pub plan: SafeText,
    /// The folder with the views of the earlier run.
    pub folder: SafeText,
    /// The first phase.
    pub first_phase: SafeText,
    /// Why the earlier run cannot be continued; `None` where a person chose to start fresh.
    pub because: Option<(Reason, SafeText)>,
    /// How many commits the earlier run has made.
    pub commits: u64,
    /// The command that continues the earlier run instead.
    pub resume: SafeText,
}

/// The warning before a fresh start.
pub fn fresh_start(given: &FreshStart) -> Notice {
    let commits = crate::list::count(given.commits, "commit", "commits");
    let steps = vec![
        Words::own("The earlier run's files in ").and_outside(&given.folder).and_own(" are moved aside"),
        "New ones are written, with every phase pending".into(),
        Words::own("Work begins with Phase ").and_outside(&given.first_phase),
        match given.commits {
            0 => "The earlier run has committed nothing".into(),
            _ => format!("What the earlier run committed stays ({commits})").into(),
        },
    ];
    let warning = match given.commits {
        0 => "changes of the earlier run that are still in your tree stay there".to_owned(),
        _ => format!("the earlier run's {commits} are not undone; `git reset` does that, if you want it"),
    };
    let keep = match given.because {
        Some(_) => "to keep the earlier run instead, correct what is named and run ",
        None => "to keep the earlier run instead, run ",
    };
    Notice::headed("fresh_start", "FRESH START", given.because.as_ref().map(|because| because.0))
        .field("command", "Command", Words::outside(&given.command))
        .data("plan", json_text(&given.plan))
        .reason_line()
        .with(given.because.as_ref(), |notice, (_, cause)| {
            notice.value("cause", "Cause", crate::notice::Value::Message(cause.clone()))
        })
        .gap()
        .list("behavior", "Starting anew", Marker::Number, steps)
        .gap()
        .field("warning", "Warning", warning)
        .next_line(Words::own(keep).and_code(&given.resume))
}
