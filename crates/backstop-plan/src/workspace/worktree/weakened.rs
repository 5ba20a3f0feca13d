//! What a phase changed that it must not change, or that it is judged by.

use super::Worktrees;
use crate::document::files::means;
use backstop_core::{Fault, Reason, SafeText};
use backstop_runtime::host::{AttemptResult, Note, Reporter};
use backstop_work::git::{Saved, Sha};
use backstop_work::weakened::{Task, signs};

/// The largest diff that is looked at, in bytes.
const DIFF_BYTES_MAX: usize = 8 << 20;

impl Worktrees<'_> {
    /// Protected files that were changed are a fault that halts the run. Signs that the work weakened
    /// its own gates are noted, and go with what it delivers.
    pub(super) fn look_for_weakening(
        &self,
        node: usize,
        base: &Sha,
        saved: &Saved,
        reporter: &Reporter,
        result: &mut AttemptResult,
    ) {
        let equipment = &self.runner.equipment[node];
        let paths = || saved.changed.iter().map(|changed| changed.path.to_string_lossy());
        let is_protected = |path: &str| equipment.protect.iter().any(|pattern| means(pattern, path));
        let protected: Vec<SafeText> = paths().filter(|path| is_protected(path)).map(SafeText::new).collect();
        if !protected.is_empty() {
            result.fault = Some(Box::new(changed_protected(protected)));
            return;
        }
        let is_judged = !equipment.gates.is_empty() || !equipment.idioms.is_empty();
        if !is_judged || saved.changed.is_empty() {
            return;
        }
        // A diff that cannot be read says nothing; the gates have.
        let Ok(diff) = self.repo.diff(base, &saved.sha) else { return };
        let diff = String::from_utf8_lossy(&diff[..diff.len().min(DIFF_BYTES_MAX)]).into_owned();
        if let Some(violation) = equipment.idioms.violation(&diff) {
            result.fault = Some(Box::new(violation));
            return;
        }
        if equipment.gates.is_empty() {
            return;
        }
        let phase = self.runner.phase(node);
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
