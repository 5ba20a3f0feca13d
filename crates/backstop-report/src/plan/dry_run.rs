//! A dry run: what a run would do.

use super::row::Widths;
use super::spans::{Paint, Spans};
use super::{NAME_CHARS_MAX, NAMES_MAX, command, ids, message, shown};
use crate::list::{self, count};
use crate::width::wrap;
use crate::{Style, duration};
use backstop_core::SafeText;
use std::time::Duration;

/// How many phases, warnings and overlaps are listed for people. JSON has them all.
const PHASES_MAX: usize = 200;
const ITEMS_MAX: usize = 20;
/// How much is shown of a phase's agent or command, and of its estimate.
const BY_CHARS_MAX: usize = 40;

/// A phase that would run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DryPhase {
    /// Its id.
    pub id: SafeText,
    /// Its name.
    pub name: SafeText,
    /// The agent or the command that would run it.
    pub by: SafeText,
    /// How many attempts it is allowed.
    pub attempts_most: u32,
    /// How many tasks it has.
    pub tasks: u32,
    /// The plan's estimate, as it is written there.
    pub estimate: Option<SafeText>,
    /// The gates that it must pass.
    pub gates: Vec<SafeText>,
    /// Whether it is done or skipped already, by the plan's marks or by the last run: it is not
    /// run.
    pub done: bool,
}

/// Phases of a wave: what is side by side in it, or one after the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wave {
    /// The phases.
    pub ids: Vec<SafeText>,
    /// Whether they run side by side.
    pub beside: bool,
    /// What the first of them is called, where there is only one.
    pub name: Option<SafeText>,
}

/// How a plan was understood.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanReading {
    /// The format, in words.
    pub format: SafeText,
    /// What a phase of the run is in the document: `phase` or `task`.
    pub by: SafeText,
    /// How many tasks the document has.
    pub tasks: usize,
    /// In how many groups.
    pub groups: usize,
    /// How many phases are done or skipped.
    pub done: usize,
    /// What runs when.
    pub waves: Vec<Wave>,
    /// The checks, each once.
    pub checks: Vec<SafeText>,
    /// How many phases to run have no estimate.
    pub unestimated: usize,
    /// Who works.
    pub agent: SafeText,
    /// Parts of the document that were not read.
    pub passed_over: Vec<SafeText>,
}

/// What a run would do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DryRun {
    /// The plan.
    pub plan: SafeText,
    /// The phases by level: those of a level need only earlier ones.
    pub levels: Vec<Vec<DryPhase>>,
    /// The order in which they would be started.
    pub order: Vec<SafeText>,
    /// How many may run at once.
    pub jobs: u32,
    /// Which phases may run in parallel: `declared` or `auto`.
    pub parallel: SafeText,
    /// Warnings about the plan.
    pub warnings: Vec<SafeText>,
    /// Pairs of phases that may run in parallel and declare the same files.
    pub overlaps: Vec<(SafeText, SafeText, Vec<SafeText>)>,
    /// How many attempts are allowed in all.
    pub most_attempts: u32,
    /// How phases are isolated, such as `worktree` or `none`.
    pub isolation: SafeText,
    /// What is committed, such as `auto`.
    pub commit: SafeText,
    /// An estimate of how long it takes, where there is one.
    pub expected: Option<Duration>,
    /// The command that runs it.
    pub run: SafeText,
    /// How the plan was understood.
    pub reading: Option<PlanReading>,
}

impl DryRun {
    pub(super) fn phases(&self) -> usize {
        self.levels.iter().map(Vec::len).sum()
    }
}

/// The dry run for a terminal: the levels of the plan, who runs each phase, and warnings. Lines are
/// cut to the width; the command is not.
pub fn dry_run(given: &DryRun, width: usize, style: Style) -> String {
    let mut lines = head(given, style);
    if let Some(reading) = &given.reading {
        lines.extend(understood(given, reading, width, style));
    }
    levels(given, width, style, &mut lines);
    let order = format!("order: {}", style.marks(&list::names(&given.order, PHASES_MAX, 20)));
    lines.extend(wrap(&order, width).into_iter().map(Spans::of));
    for (a, b, files) in given.overlaps.iter().take(ITEMS_MAX) {
        let pair = ids(&[a.clone(), b.clone()], style).replacen(", ", " and ", 1);
        let files = style.marks(&list::names(files, NAMES_MAX, NAME_CHARS_MAX));
        lines.push(
            Spans::default().painted(Paint::Bad, "overlap").plain(format!(": {pair} both declare {files}")),
        );
    }
    lines.extend(left_out(given.overlaps.len(), "overlaps"));
    for warning in given.warnings.iter().take(ITEMS_MAX) {
        let text = message(warning, style);
        lines.extend(wrap(&format!("warning: {text}"), width).into_iter().map(Spans::of));
    }
    lines.extend(left_out(given.warnings.len(), "warnings"));
    let mut out: String =
        lines.into_iter().map(|line| format!("{}\n", line.cut(width, style).show(style))).collect();
    let nothing = Spans::of("nothing was run").cut(width, style).show(style);
    out.push_str(&format!("{nothing}\n"));
    let run = command(&given.run);
    if !run.is_empty() {
        out.push_str(&format!("next: {}\n", style.strong(&run)));
    }
    out
}

fn head(given: &DryRun, style: Style) -> Vec<Spans> {
    let name = |text: &SafeText| shown(text, NAME_CHARS_MAX, style);
    let many = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let mut size = vec![
        count(many(given.phases()), "phase", "phases"),
        count(many(given.levels.len()), "level", "levels"),
        format!("at most {}", count(given.most_attempts.into(), "attempt", "attempts")),
    ];
    size.extend(given.expected.map(|expected| format!("about {}", duration(expected))));
    let how = [
        format!("{} at once", given.jobs),
        format!("parallel {}", name(&given.parallel)),
        format!("isolation {}", name(&given.isolation)),
        format!("commit {}", name(&given.commit)),
    ];
    vec![
        Spans::of("plan ").painted(Paint::Strong, name(&given.plan)),
        Spans::of(format!("  {}", size.join(style.dot()))),
        Spans::of(format!("  {}", how.join(style.dot()))),
        Spans::default(),
    ]
}

/// How the plan was understood: the format and its counts, what runs when, the checks, what was
/// passed over.
fn understood(given: &DryRun, reading: &PlanReading, width: usize, style: Style) -> Vec<Spans> {
    /// How many waves are listed for people.
    const WAVES_MAX: usize = 40;
    let many = |n: usize, one: &str, more: &str| count(u64::try_from(n).unwrap_or(u64::MAX), one, more);
    let counts = match reading.tasks == reading.groups {
        true => many(given.phases(), "phase", "phases"),
        false => {
            format!("{} in {}", many(reading.tasks, "task", "tasks"), many(reading.groups, "phase", "phases"))
        }
    };
    let mut first = vec![shown(&reading.format, NAME_CHARS_MAX, style), counts];
    if reading.tasks != reading.groups {
        first.push(format!("run by {}", shown(&reading.by, NAME_CHARS_MAX, style)));
    }
    first.push(format!("{} done", reading.done));
    let mut lines = vec![Spans::default().painted(Paint::Strong, first.join(style.dot()))];
    for (n, wave) in reading.waves.iter().take(WAVES_MAX).enumerate() {
        let between = match (wave.beside, !style.unicode) {
            (true, false) => " ∥ ",
            (true, true) => " || ",
            (false, _) => " ",
        };
        let names: Vec<String> = wave.ids.iter().map(|id| shown(id, 20, style)).collect();
        let how = match (&wave.name, wave.beside) {
            (Some(name), _) => format!("   {}", shown(name, NAME_CHARS_MAX, style)),
            (None, true) => "   side by side".to_owned(),
            (None, false) => "   in order".to_owned(),
        };
        let text = format!("wave {}  {}{how}", n + 1, names.join(between));
        lines.extend(wrap(&text, width).into_iter().map(Spans::of));
    }
    if reading.waves.len() > WAVES_MAX {
        lines.push(Spans::of(format!("and {} more waves", reading.waves.len() - WAVES_MAX)));
    }
    let checks = match reading.checks.is_empty() {
        true => "none".to_owned(),
        false => style.marks(&list::names(&reading.checks, NAMES_MAX, NAME_CHARS_MAX)),
    };
    lines.extend(wrap(&format!("checks: {checks}"), width).into_iter().map(Spans::of));
    let estimate = match (given.expected, reading.unestimated) {
        (Some(expected), _) => format!("estimate: {}", duration(expected)),
        (None, n) => format!("estimate: unknown for {}", many(n, "phase", "phases")),
    };
    let last = [
        estimate,
        format!("agent {}", shown(&reading.agent, BY_CHARS_MAX, style)),
        format!("commits {}", shown(&given.commit, NAME_CHARS_MAX, style)),
    ];
    lines.push(Spans::of(last.join(style.dot())));
    if !reading.passed_over.is_empty() {
        let text = style.marks(&list::names(&reading.passed_over, NAMES_MAX, NAME_CHARS_MAX));
        lines.extend(wrap(&format!("passed over: {text}"), width).into_iter().map(Spans::of));
    }
    lines.push(Spans::default());
    lines
}

fn levels(given: &DryRun, width: usize, style: Style, lines: &mut Vec<Spans>) {
    let titles = given.levels.iter().flatten().map(|phase| (&phase.id, &phase.name));
    let widths = Widths::titles(titles, width);
    let mut left = PHASES_MAX;
    for (n, level) in given.levels.iter().enumerate() {
        if left == 0 {
            break;
        }
        let beside = if level.len() > 1 && given.jobs > 1 && given.parallel.raw() == "auto" {
            ", side by side"
        } else {
            ""
        };
        lines.push(Spans::default().painted(Paint::Faint, format!("level {}{beside}", n + 1)));
        for phase in level.iter().take(left) {
            lines.push(Spans::of("  ").then(phase.line(widths, style)));
        }
        left -= level.len().min(left);
    }
    if given.phases() > PHASES_MAX {
        lines.push(Spans::of(list::more(given.phases(), PHASES_MAX).trim_start().to_owned()));
    }
    lines.push(Spans::default());
}

impl DryPhase {
    fn line(&self, widths: Widths, style: Style) -> Spans {
        if self.done {
            return widths.title(&self.id, &self.name, style).plain("  done, not run");
        }
        let mut parts = vec![
            shown(&self.by, BY_CHARS_MAX, style),
            count(self.attempts_most.into(), "attempt", "attempts"),
        ];
        if self.tasks > 0 {
            parts.push(count(self.tasks.into(), "task", "tasks"));
        }
        parts.extend(
            self.estimate.as_ref().map(|given| format!("estimate {}", shown(given, BY_CHARS_MAX, style))),
        );
        parts.push(match self.gates.is_empty() {
            true => "no gates".to_owned(),
            false => format!("gates {}", ids(&self.gates, style)),
        });
        parts.retain(|part| !part.is_empty());
        widths.title(&self.id, &self.name, style).plain("  ").plain(parts.join(style.dot()))
    }
}

fn left_out(len: usize, what: &str) -> Option<Spans> {
    (len > ITEMS_MAX).then(|| Spans::of(format!("and {} more {what}", len - ITEMS_MAX)))
}
