//! Freezing a project, and what a person overrides outside of a run.

use super::Failures;
use crate::admission::{FROZEN, UNFREEZE};
use crate::project::{Project, ProjectError};
use crate::recorder::{Opening, Recorder};
use backstop_core::{EventKind, Outcome, SafeText};
use backstop_store::Freeze;

/// Freezes this project, where that is called for: the machine itself is short of something, or
/// what it ended with is one of `freeze.reasons`. What is recorded of it, and why; nothing where it
/// is not frozen, or was before.
pub(super) fn freeze(project: &Project, failures: &Failures<'_>) -> Option<(EventKind, SafeText)> {
    let short =
        failures.faults.iter().rev().find_map(|fault| Some((fault.reason, fault.shortage()?.says.clone())));
    let named = || {
        let reason = failures.ended_with.filter(|reason| project.config.freeze_reasons().contains(reason))?;
        let cause = failures.faults.last().and_then(|fault| fault.cause.as_ref());
        let cause = cause.map(|cause| format!(": {}", cause.line(200))).unwrap_or_default();
        Some((reason, SafeText::new(format!("freeze.reasons names it{cause}"))))
    };
    let (reason, why) = short.or_else(named)?;
    let freeze = Freeze::new(reason, why, failures.run, project.process.now());
    match project.folder().and_then(|folder| Ok(folder.freeze(&project.root, &freeze)?)) {
        Ok(true) => {
            let what = format!("this project is frozen ({}): {}", freeze.reason, freeze.why.line(200));
            let hint = format!("put it right, then `{UNFREEZE}`; until then nothing new begins");
            project.process.warn(&what, Some(&hint));
            let entered = EventKind::StateEntered {
                operation: None,
                state: FROZEN.to_owned(),
                error_type: Some(freeze.reason.code().to_owned()),
                context: None,
            };
            Some((entered, freeze.why))
        }
        Ok(false) => None,
        Err(error) => {
            let hints = error.hints();
            project.process.warn(
                &format!("this project cannot be frozen: {error}"),
                Some(hints.first().map_or("begin nothing new here before it is put right", String::as_str)),
            );
            None
        }
    }
}

/// Records what a person overrides outside a run: as a run of its own, with its rationale.
pub fn record_override(
    project: &Project,
    surface: &'static str,
    what: &str,
    why: Option<&str>,
) -> Result<(), ProjectError> {
    let recorder = Recorder::begin(project, Opening { required: true, ..Opening::new(surface) })?;
    let by = recorder.caller().cloned().unwrap_or_else(|| SafeText::new("command line"));
    recorder.append(vec![
        EventKind::RunStarted { operation: SafeText::new(what), folder: None, profile: None, parent: None },
        EventKind::Override {
            by,
            what: SafeText::new(what),
            rationale: SafeText::new(why.unwrap_or("no reason given")),
        },
        EventKind::ended(Outcome::Done, None),
    ])?;
    Ok(())
}
