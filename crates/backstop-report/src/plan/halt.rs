//! The summary of a halted run: which phases are complete, failed or blocked, what is preserved,
//! and how to resume.

use super::boxed::Boxed;
use super::ended_phases::{BlockedPhase, CompletedPhase, FailedPhase, PendingPhase, PreservedState};
use super::spans::Paint;
use super::usage::usage_words;
use super::{COMMAND_CHARS_MAX, NAME_CHARS_MAX, SHOW_HINT, command, message, shown};
use crate::Style;
use backstop_core::{Reason, SafeText, Usage};

/// How many lines the reason may have.
const REASON_LINES_MAX: usize = 4;
/// How many steps are listed.
const STEPS_MAX: usize = 6;
/// How many lines a step without a command may have.
const STEP_LINES_MAX: usize = 4;

/// A run that halted.
#[derive(Debug, Clone, PartialEq)]
pub struct HaltSummary {
    /// The title, such as `BACKSTOP HALTED`.
    pub box_title: SafeText,
    /// The plan.
    pub plan: SafeText,
    /// Why the run halted, as a reason.
    pub reason: Reason,
    /// Why the run halted, in a line: `Phase 2A failed after retry`.
    pub reason_line: SafeText,
    /// The phases that are complete or skipped.
    pub completed: Vec<CompletedPhase>,
    /// The phases that failed.
    pub failed: Vec<FailedPhase>,
    /// The phases that are blocked by failed ones.
    pub blocked: Vec<BlockedPhase>,
    /// The phases that have not begun and are not blocked.
    pub pending: Vec<PendingPhase>,
    /// What its agents used in all, as far as they say so.
    pub usage: Option<Usage>,
    /// Where its state is kept.
    pub state: PreservedState,
    /// What to do before the run is resumed. Commands stand in backticks.
    pub steps: Vec<SafeText>,
    /// The command that resumes the run.
    pub resume: SafeText,
    /// How to start fresh instead. Commands stand in backticks.
    pub fresh_hint: SafeText,
}

/// The summary as a box, between 40 and 100 columns wide. Sections without entries are left out,
/// long ones are folded. Commands are never cut, and overrun the border where they must.
pub fn halt_summary(given: &HaltSummary, width: usize, style: Style) -> String {
    let mut page = Boxed::new(&shown(&given.box_title, NAME_CHARS_MAX, style), Paint::Bad, width, style);
    page.text("Reason: ", &message(&given.reason_line, style), REASON_LINES_MAX);
    // A phase that failed with this reason shows it in its own section.
    if !given.failed.iter().any(|phase| phase.error == given.reason) {
        page.line(format!("Error: {} ({})", given.reason, given.reason.class()));
    }
    page.path("Plan: ", &command(&given.plan));
    if let Some(words) = given.usage.map(usage_words).filter(|words| !words.is_empty()) {
        page.line(format!("Used: {words}"));
    }
    page.entries("COMPLETED PHASES", &given.completed, CompletedPhase::show);
    let heading = if given.failed.len() == 1 { "FAILED PHASE" } else { "FAILED PHASES" };
    page.entries(heading, &given.failed, FailedPhase::show);
    page.entries("BLOCKED PHASES", &given.blocked, BlockedPhase::show);
    page.entries("PENDING PHASES", &given.pending, PendingPhase::show);
    page.entries("STATE PRESERVED", std::slice::from_ref(&given.state), PreservedState::show);
    page.line(SHOW_HINT.to_owned());
    resume(given, &mut page);
    page.finish()
}

fn resume(given: &HaltSummary, page: &mut Boxed) {
    let style = page.style();
    page.section("RESUME INSTRUCTIONS");
    let steps = given.steps.iter().filter(|step| !step.raw().trim().is_empty());
    let mut n = 0;
    for step in steps.take(STEPS_MAX) {
        n += 1;
        let label = format!("{n}. ");
        let has_command = step.raw().contains('`');
        match has_command {
            true => page.sentences(&label, &step.line(COMMAND_CHARS_MAX)),
            false => page.text(&label, &message(step, style), STEP_LINES_MAX),
        }
    }
    if !given.resume.raw().trim().is_empty() {
        page.command(&format!("{}. Run: ", n + 1), &command(&given.resume));
    }
    if !given.fresh_hint.raw().trim().is_empty() {
        page.sentences("To start fresh: ", &given.fresh_hint.line(COMMAND_CHARS_MAX));
    }
}
