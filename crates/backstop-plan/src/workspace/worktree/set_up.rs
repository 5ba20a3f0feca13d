//! The set-up command of a worktree (`npm ci`): run before anybody works in it, and again when what
//! it depends on has changed.

use super::Worktrees;
use super::slots::SlotState;
use crate::workspace::faults::git_fault;
use crate::workspace::phase_runner::{AttemptDir, Setup};
use backstop_core::{Fault, Reason, SafeText, Sha256};
use backstop_work::gate::{Gate, Origin};
use backstop_work::git::GitError;

/// The file in a worktree's git folder that remembers what was set up.
const MARK: &str = "backstop-set-up";

/// The files that a set-up depends on where nobody names them: what package managers lock.
const USUAL_INPUTS: &[&str] = &[
    "**/package.json",
    "**/package-lock.json",
    "**/pnpm-lock.yaml",
    "**/yarn.lock",
    "**/bun.lock",
    "**/bun.lockb",
    "**/Cargo.lock",
    "**/go.sum",
    "**/uv.lock",
    "**/poetry.lock",
    "**/pyproject.toml",
    "**/requirements*.txt",
    "**/Gemfile.lock",
    "**/composer.lock",
    "**/mix.lock",
];

impl Worktrees<'_> {
    /// Sets a worktree up, unless that was done for the same inputs. A command that fails is a
    /// fault: nobody can work there.
    pub(super) fn set_up(&self, slot_state: &SlotState, dir: &AttemptDir<'_>) -> Result<(), Box<Fault>> {
        let Some(setup) = &self.runner.equipment[dir.node].setup else { return Ok(()) };
        let fault = |error: GitError| git_fault(&error);
        let wanted = self.set_up_for(slot_state, setup).map_err(fault)?;
        let mark = slot_state.slot.git_dir().join(MARK);
        if std::fs::read_to_string(&mark).is_ok_and(|known| known.trim() == wanted) {
            return Ok(());
        }
        let gate = Gate::new("setup", setup.command.clone(), Origin::Plan);
        let checked = self.runner.run_setup(dir, &gate)?;
        if let Some(mut found) = checked.fault {
            let cause = found.cause.as_ref().map_or_else(|| found.reason.code().to_owned(), |c| c.line(300));
            // What is wrong with the set-up is no mistake of the phase: nothing begins before it is
            // put right. The world's trouble is waited out as ever.
            if !matches!(
                found.reason,
                Reason::Interrupted | Reason::NetworkTransient | Reason::RateLimited | Reason::ServiceDown
            ) {
                found = found.renamed(Reason::DependencyMissing);
            }
            found.cause = Some(SafeText::new(format!("the set-up command failed: {cause}")));
            found.suggested_action =
                SafeText::new(format!("run `{}` yourself and put right what it says", setup.command.shown()));
            return Err(Box::new(found));
        }
        // Where it cannot be remembered, it is set up once more.
        let _ = std::fs::write(&mark, wanted);
        Ok(())
    }

    fn set_up_for(&self, slot_state: &SlotState, setup: &Setup) -> Result<String, GitError> {
        let usual = || USUAL_INPUTS.iter().map(|input| (*input).to_owned()).collect();
        let inputs = if setup.inputs.is_empty() { usual() } else { setup.inputs.clone() };
        let mut digest = Sha256::new();
        digest.update(setup.command.shown().as_bytes());
        digest.update(b"\0");
        digest.update(&slot_state.slot.tracked(&inputs)?);
        Ok(digest.hex())
    }
}
