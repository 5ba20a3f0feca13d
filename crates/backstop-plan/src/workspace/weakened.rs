//! What a phase changed that it must not change, or that it is judged by.

use super::phase_runner::PhaseRunner;
use crate::document::files::means;
use backstop_core::{Fault, Reason, SafeText};
use backstop_runtime::host::{AttemptResult, Note, Reporter};
use backstop_work::weakened::{Task, signs};
use std::borrow::Cow;

/// The largest diff that is looked at, in bytes.
const DIFF_BYTES_MAX: usize = 8 << 20;

/// What the work of a phase has changed.
pub(super) struct WorkChange<'w> {
    /// The paths, below the root.
    pub(super) paths: Vec<Cow<'w, str>>,
    /// The whole as a patch, where it can be read.
    pub(super) patch: &'w dyn Fn() -> Option<Vec<u8>>,
}

impl PhaseRunner<'_> {
    /// Whether anything of what a phase changes is looked at, beside its gates.
    pub(super) fn looks_at_changes(&self, node: usize) -> bool {
        let equipment = &self.equipment[node];
        !equipment.protect.is_empty() || !equipment.gates.is_empty() || !equipment.idioms.is_empty()
    }

    /// Protected files that were changed are a fault that halts the run. Signs that the work
    /// weakened its own gates are noted, and go with what it delivers.
    pub(super) fn look_for_weakening(
        &self,
        node: usize,
        change: &WorkChange<'_>,
        reporter: &Reporter,
        result: &mut AttemptResult,
    ) {
        let equipment = &self.equipment[node];
        let is_protected =
            |path: &&Cow<'_, str>| equipment.protect.iter().any(|pattern| means(pattern, path));
        let protected = change.paths.iter().filter(is_protected);
        let protected: Vec<SafeText> = protected.map(|path| SafeText::new(path.as_ref())).collect();
        if !protected.is_empty() {
            result.fault = Some(Box::new(changed_protected(protected)));
            return;
        }
        let is_judged = !equipment.gates.is_empty() || !equipment.idioms.is_empty();
        if !is_judged || change.paths.is_empty() {
            return;
        }
        // A diff that cannot be read says nothing; the gates have.
        let Some(diff) = (change.patch)() else { return };
        let diff = String::from_utf8_lossy(&diff[..diff.len().min(DIFF_BYTES_MAX)]).into_owned();
        if let Some(violation) = equipment.idioms.violation(&diff) {
            result.fault = Some(Box::new(violation));
            return;
        }
        if equipment.gates.is_empty() {
            return;
        }
        let phase = self.phase(node);
        let tasks: Vec<&str> = phase.tasks.iter().map(|task| task.text.raw()).collect();
        let text = format!(
            "{}\n{}\n{}\n{}",
            phase.name.raw(),
            phase.section.raw(),
            tasks.join("\n"),
            phase.settings.files.join("\n")
        );
        let checks: Vec<String> = equipment.gates.iter().map(|gate| gate.check.shown()).collect();
        result.delivery.weakened = signs(&diff, Task { text: &text, checks: &checks });
        for sign in &result.delivery.weakened {
            let line = format!("{} {}; look at it", phase.id.shown(), sign.raw());
            reporter.note(Note::Message(SafeText::new(line)));
        }
    }
}

fn changed_protected(files: Vec<SafeText>) -> Fault {
    let names: Vec<String> = files.iter().take(3).map(|file| file.line(200)).collect();
    let mut fault = Fault::new(Reason::PermissionDenied);
    fault.cause = Some(SafeText::new(format!("it changed protected files: {}", names.join(", "))));
    fault.suggested_action =
        SafeText::new("look at the change, then undo it or take the files out of `protect`");
    fault.facts.files = files;
    // Somebody has to look first.
    fault.facts.should_retry = Some(false);
    fault
}
