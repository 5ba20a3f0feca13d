//! The summary of a complete run: every phase, its duration and attempts, and where the work is.

use super::boxed::Boxed;
use super::ended_phases::label;
use super::spans::Paint;
use super::wait::WaitSum;
use super::{COMMAND_CHARS_MAX, NAME_CHARS_MAX, NAMES_MAX, SHOW_HINT, command, message, shown};
use crate::list::{self, count};
use crate::{Style, duration};
use backstop_core::{RunId, SafeText, Usage, WorkAt};
use std::time::Duration;

/// How many lines a list of names may have.
const LINES_MAX: usize = 4;
/// How many notes are listed.
const NOTES_MAX: usize = 6;

/// A phase of a complete run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CompletePhase {
    /// Its id.
    pub id: SafeText,
    /// Its name.
    pub name: SafeText,
    /// Whether it was skipped.
    pub skipped: bool,
    /// How long it took.
    pub elapsed: Option<Duration>,
    /// How many attempts were made in all.
    pub attempts: u32,
    /// Whether it was retried because of a failure of its own.
    pub retried: bool,
    /// Tests that failed and passed when they were run again unchanged.
    pub flaky: Vec<SafeText>,
    /// Gates that were skipped.
    pub gates_skipped: Vec<SafeText>,
    /// Its commits: short sha and subject.
    pub commits: Vec<(SafeText, SafeText)>,
}

/// A run whose phases are all complete or skipped.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// The plan.
    pub plan: SafeText,
    /// The run.
    pub run: RunId,
    /// How long it took.
    pub elapsed: Duration,
    /// Every phase, in the plan's order.
    pub phases: Vec<CompletePhase>,
    /// The one commit of all phases, where that is how they are committed: short sha and subject.
    pub one_commit: Option<(SafeText, SafeText)>,
    /// Where the work is.
    pub work: WorkAt,
    /// How many files it changed, where that is known.
    pub files_changed: Option<u64>,
    /// The tokens and the cost, where they are known.
    pub usage: Option<Usage>,
    /// How often and how long it waited for rate limits.
    pub waits: WaitSum,
    /// How many of the phases that were not skipped had their work checked by a gate.
    pub verified: u64,
    /// Gates that fail on the user's own commits: `test (t_old.sh)`.
    pub red: Vec<SafeText>,
    /// Further notes. Commands stand in backticks.
    pub notes: Vec<SafeText>,
}

impl Completion {
    /// Whether gates checked the work of every phase.
    pub(super) fn is_verified(&self) -> bool {
        self.verified > 0 && self.verified >= self.count(|phase| !phase.skipped)
    }

    pub(super) fn attempts(&self) -> u64 {
        self.phases.iter().map(|phase| u64::from(phase.attempts)).sum()
    }

    pub(super) fn count(&self, which: impl Fn(&CompletePhase) -> bool) -> u64 {
        self.phases.iter().map(|phase| u64::from(which(phase))).sum()
    }

    pub(super) fn commits(&self) -> u64 {
        let own: u64 = self.phases.iter().map(|phase| many(phase.commits.len())).sum();
        own + u64::from(self.one_commit.is_some())
    }

    /// Every flaky test.
    fn flaky(&self) -> Vec<SafeText> {
        self.phases.iter().flat_map(|phase| phase.flaky.iter().cloned()).collect()
    }

    /// `typecheck (2A)`, for each gate that was skipped.
    fn gates_skipped(&self) -> Vec<SafeText> {
        let of = |phase: &CompletePhase| {
            let id = phase.id.clone();
            phase
                .gates_skipped
                .iter()
                .map(move |gate| SafeText::new(format!("{} ({})", gate.raw(), id.raw())))
                .collect::<Vec<_>>()
        };
        self.phases.iter().flat_map(of).collect()
    }
}

/// The summary as a box, between 40 and 100 columns wide. Long lists of phases are folded. Commands
/// are never cut, and overrun the border where they must.
pub fn completion_summary(given: &Completion, width: usize, style: Style) -> String {
    let mut page = Boxed::new("BACKSTOP COMPLETE", Paint::Good, width, style);
    page.path("Plan: ", &command(&given.plan));
    page.line(format!("Run: {}", given.run));
    page.entries("COMPLETED PHASES", &given.phases, CompletePhase::show);
    result(given, &mut page);
    work(given, &mut page);
    page.finish()
}

/// The whole run in one line, for example:
/// `COMPLETE  9 phases · 9 commits on main, each verified as it landed · 2 waits, 2h 55m · $4.10`.
pub fn completion_line(given: &Completion, style: Style) -> String {
    let of = given.count(|phase| !phase.skipped);
    let phases = count(of, "phase", "phases");
    let skipped = given.count(|phase| phase.skipped);
    let skipped = (skipped > 0).then(|| format!("{skipped} skipped"));
    let commits = match given.commits() {
        // The user's own commits have it.
        0 if given.files_changed.is_some_and(|files| files > 0) => "the work is".to_owned(),
        commits => count(commits, "commit", "commits"),
    };
    let unchecked = match given.red.is_empty() {
        true => "no gate has checked them",
        false => "no gate has passed on them",
    };
    let checked = match given.verified {
        0 => format!("; {unchecked}"),
        all if all >= of => ", each verified as it landed".to_owned(),
        some => format!("; {some} of {of} phases verified as they landed"),
    };
    let work = match &given.work {
        WorkAt::Landed { branch, .. } => {
            format!("{commits} on {}{checked}", shown(branch, NAME_CHARS_MAX, style))
        }
        WorkAt::Kept { .. } => format!("{commits} kept on a ref of the run{checked}"),
        WorkAt::Uncommitted { .. } => match given.verified {
            0 => format!("in your files, not committed; {unchecked}"),
            all if all >= of => "in your files, verified, not committed".to_owned(),
            some => format!("in your files, not committed; {some} of {of} phases verified"),
        },
    };
    let cost = given.usage.and_then(|usage| usage.cost_usd).filter(|cost| cost.is_finite());
    let red = (!given.red.is_empty()).then(|| {
        let names = style.marks(&list::names(&given.red, NAMES_MAX, NAME_CHARS_MAX));
        format!("fails on your own commits: {names}")
    });
    let parts =
        [Some(phases), skipped, Some(work), red, given.waits.words(), cost.map(|cost| format!("${cost:.2}"))];
    format!("COMPLETE  {}", parts.into_iter().flatten().collect::<Vec<_>>().join(style.dot()))
}

impl CompletePhase {
    fn show(&self, page: &mut Boxed) {
        let style = page.style();
        let label = label(&self.id, &self.name, style);
        if self.skipped {
            return page.leader(&label, Paint::Faint, "skipped");
        }
        let mut parts = Vec::new();
        parts.extend(self.elapsed.map(duration));
        if self.attempts > 1 {
            let retried = if self.retried { ", retried" } else { "" };
            parts.push(format!("{} attempts{retried}", self.attempts));
        }
        if !self.flaky.is_empty() {
            parts.push(count(many(self.flaky.len()), "flaky test", "flaky tests"));
        }
        let details =
            if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(style.dot())) };
        page.leader(&format!("{label}{details}"), Paint::Good, "complete");
    }
}

fn result(given: &Completion, page: &mut Boxed) {
    let style = page.style();
    let names = |list: &[SafeText]| style.marks(&list::names(list, NAMES_MAX, NAME_CHARS_MAX));
    page.section("RESULT");
    let skipped = match given.count(|phase| phase.skipped) {
        0 => String::new(),
        skipped => format!(", {skipped} skipped"),
    };
    let retried = count(given.count(|phase| phase.retried), "phase retried", "phases retried");
    let parts = [
        format!("Phases: {}{skipped}", given.phases.len()),
        format!("Time: {}", duration(given.elapsed)),
        format!("Attempts: {} ({retried})", given.attempts()),
    ];
    page.text("", &parts.join(style.dot()), LINES_MAX);
    if let Some(words) = given.waits.words() {
        page.line(format!("Waits for limits: {words}"));
    }
    let flaky = given.flaky();
    if !flaky.is_empty() {
        page.text(&format!("Flaky tests: {} ", flaky.len()), &format!("({})", names(&flaky)), LINES_MAX);
    }
    let gates = given.gates_skipped();
    if !gates.is_empty() {
        page.text("Gates skipped: ", &names(&gates), LINES_MAX);
    }
    if !given.red.is_empty() {
        page.text("Fails on your own commits: ", &names(&given.red), LINES_MAX);
    }
    let files = given.files_changed.map(|files| format!("Files changed: {files}"));
    let cost = given.usage.and_then(|usage| usage.cost_usd).filter(|cost| cost.is_finite());
    let tokens =
        given.usage.map(|usage| format!("Tokens: {} in, {} out", usage.input_tokens, usage.output_tokens));
    let parts = [
        Some(format!("Commits: {}", given.commits())),
        files,
        tokens,
        cost.map(|cost| format!("Cost: {cost:.2} USD")),
    ];
    page.text("", &parts.into_iter().flatten().collect::<Vec<_>>().join(style.dot()), LINES_MAX);
}

fn work(given: &Completion, page: &mut Boxed) {
    let style = page.style();
    page.section("WHERE THE WORK IS");
    match &given.work {
        WorkAt::Landed { branch, sha } => {
            page.path("Branch: ", &command(branch));
            page.line(format!("At: {}", shown(sha, NAME_CHARS_MAX, style)));
        }
        WorkAt::Kept { reference, why, command: merge } => {
            page.path("Kept: ", &command(reference));
            page.text("Because: ", &message(why, style), LINES_MAX);
            page.command("Merge it: ", &command(merge));
        }
        WorkAt::Uncommitted { command: None } => page.line("In your files, not committed".to_owned()),
        WorkAt::Uncommitted { command: Some(commit) } => {
            page.line("In your files, not committed".to_owned());
            page.command("Commit it: ", &command(commit));
        }
    }
    page.line(SHOW_HINT.to_owned());
    if !given.notes.is_empty() {
        page.section("NOTES");
        for note in given.notes.iter().take(NOTES_MAX) {
            match note.raw().contains('`') {
                true => page.sentences("- ", &note.line(COMMAND_CHARS_MAX)),
                false => page.text("- ", &message(note, style), LINES_MAX),
            }
        }
        if given.notes.len() > NOTES_MAX {
            page.line(list::more(given.notes.len(), NOTES_MAX).trim_start().to_owned());
        }
    }
}

fn many(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
