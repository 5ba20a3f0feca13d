//! What a person sees while a plan is run: a view that is drawn anew on a terminal, lines
//! elsewhere, events as JSON.

use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::{Event, EventKind, Redactor, Schedule};
use backstop_plan::document::Plan;
use backstop_plan::present::{Live, change, rows, time_left};
use backstop_plan::record::RunRecord;
use backstop_report::Style;
use backstop_report::plan::{ChangeKind, Progress, live_view, plain_line};
use backstop_runtime::host::{HostState, Note, Observer, ObserverError, StopRequest};
use backstop_runtime::{EventLines, Observers};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the view is drawn while nothing happens.
const DRAW_EVERY: Duration = Duration::from_millis(500);
/// The shortest time between two drawings.
const DRAW_MIN: Duration = Duration::from_millis(60);

/// How the run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Show {
    /// Drawn anew.
    Live,
    /// A line for each change.
    Lines,
    /// Events, in one of the formats of the log.
    Events(LogFormat),
    /// Nothing.
    Quiet,
}

impl Show {
    /// As what was typed and the format of the log say.
    pub(in crate::commands) fn of(json: bool, quiet: bool, format: LogFormat) -> Self {
        match format {
            _ if json => Show::Events(LogFormat::Json),
            _ if quiet => Show::Quiet,
            LogFormat::Json | LogFormat::Emit => Show::Events(format),
            LogFormat::Human if terminal::is_watched() => Show::Live,
            LogFormat::Human => Show::Lines,
        }
    }

    /// Who prints events for programs, where it is shown to one.
    pub(in crate::commands) fn observers(self) -> Observers {
        let print = |lines: &str| {
            let _ = terminal::print(lines);
        };
        let lines = match self {
            Show::Events(format) => EventLines::new(format, print),
            Show::Live | Show::Lines | Show::Quiet => None,
        };
        Observers(
            lines.into_iter().map(|lines| Arc::new(lines) as Arc<dyn backstop_runtime::Observer>).collect(),
        )
    }

    /// Whether a person reads what is shown.
    pub(in crate::commands) fn is_for_people(self) -> bool {
        matches!(self, Show::Live | Show::Lines)
    }
}

/// Whoever watches from a terminal, a pipe or a program.
pub(in crate::commands) struct Viewer<'v> {
    pub(in crate::commands) show: Show,
    pub(in crate::commands) style: Style,
    pub(in crate::commands) plan: &'v Plan,
    pub(in crate::commands) jobs: usize,
    pub(in crate::commands) levels: Vec<usize>,
    pub(in crate::commands) redactor: Arc<Redactor>,
    pub(in crate::commands) began: Instant,
    notes: BTreeMap<usize, Note>,
    drawn: usize,
    drawn_at: Option<Instant>,
    warned: Vec<String>,
}

impl<'v> Viewer<'v> {
    pub(in crate::commands) fn new(show: Show, plan: &'v Plan, jobs: usize, redactor: Arc<Redactor>) -> Self {
        Self {
            show,
            style: terminal::stderr_style(),
            plan,
            jobs,
            levels: plan.level_of_each(),
            redactor,
            began: Instant::now(),
            notes: BTreeMap::new(),
            drawn: 0,
            drawn_at: None,
            warned: Vec::new(),
        }
    }

    fn draw(&mut self, record: &RunRecord, schedule: &Schedule, forced: bool) {
        if self.show != Show::Live || (!forced && self.drawn_at.is_some_and(|at| at.elapsed() < DRAW_MIN)) {
            return;
        }
        let now = process::now();
        let live = Live { schedule, notes: &self.notes, clock: self.began.elapsed() };
        let rows = rows(record, Some(&live), now);
        let planned = |at: usize| self.plan.phases.get(at).and_then(|phase| phase.estimated);
        let left = time_left(record, &self.levels, &planned, self.jobs, now).filter(|left| !left.is_zero());
        let (width, height) = terminal::size();
        let bar = Progress::of(&rows, self.began.elapsed(), left);
        let lines = live_view(&rows, bar, width, height.saturating_sub(1), self.style);
        let mut text = self.wiped();
        for line in &lines {
            text.push_str(&self.redactor.redact(line));
            text.push('\n');
        }
        self.drawn = lines.len();
        self.drawn_at = Some(Instant::now());
        terminal::say(&text);
    }

    /// What takes the last drawing away.
    fn wiped(&self) -> String {
        if self.drawn == 0 { String::new() } else { format!("\x1b[{}A\r\x1b[J", self.drawn) }
    }

    /// A line that stays.
    fn say(&mut self, line: &str) {
        let text = format!("{}{}\n", self.wiped(), self.redactor.redact(line));
        self.drawn = 0;
        terminal::say(&text);
    }

    /// The last drawing, which stays.
    pub(in crate::commands) fn finish(&mut self) {
        self.drawn = 0;
        let _ = std::io::stderr().flush();
    }
}

impl Observer<RunRecord> for Viewer<'_> {
    fn due_in(&self, _: Duration) -> Option<Duration> {
        (self.show == Show::Live).then_some(DRAW_EVERY)
    }

    fn tick(&mut self, state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        self.draw(state.record, state.schedule, false);
        Ok(())
    }

    fn recorded(&mut self, events: &[Event], state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        let HostState { record, schedule, .. } = *state;
        match self.show {
            // What programs read is printed by an observer of the recorder.
            Show::Quiet | Show::Events(_) => {}
            Show::Live => {
                for event in events {
                    if let EventKind::AttemptStarted { operation, .. } = &event.kind
                        && let Some(at) = record.progress.number(operation.raw())
                    {
                        self.notes.remove(&at);
                    }
                }
                let last = |event: &Event| {
                    matches!(event.kind, EventKind::RunEnded { .. } | EventKind::RunHalted { .. })
                };
                self.draw(record, schedule, events.iter().any(last));
            }
            Show::Lines => {
                for event in events {
                    let Some(change) = change(event, record, schedule) else { continue };
                    // A gate that passes is in the log of the attempt.
                    if !matches!(change.kind, ChangeKind::GatePassed { .. }) {
                        let line = plain_line(&change, self.style);
                        self.say(line.trim_end());
                    }
                }
            }
        }
        Ok(())
    }

    fn noted(&mut self, node: Option<usize>, note: &Note) {
        if let Note::Message(text) = note {
            if self.show != Show::Quiet && !matches!(self.show, Show::Events(_)) {
                let line = format!("note: {}", text.line(300));
                self.say(&line);
            }
            return;
        }
        if let Some(node) = node {
            self.notes.insert(node, note.clone());
        } else if let (Note::Checking(gate), Show::Lines | Show::Live) = (note, self.show) {
            self.say(&format!("checking: {gate}"));
        }
    }

    fn stop_requested(&mut self, request: StopRequest, running: usize) {
        if matches!(self.show, Show::Events(_)) {
            return;
        }
        let what = match (request, running) {
            (_, 0) => "stopping".to_owned(),
            (StopRequest::Finish, 1) => {
                "stopping: 1 phase may end what it does; Ctrl-C again ends it now".to_owned()
            }
            (StopRequest::Finish, n) => {
                format!("stopping: {n} phases may end what they do; Ctrl-C again ends them now")
            }
            (StopRequest::End | StopRequest::Kill, _) => "ending what runs".to_owned(),
        };
        self.say(&what);
    }

    fn trouble(&mut self, what: &str) {
        if self.warned.iter().any(|known| known == what) {
            return;
        }
        self.warned.push(what.to_owned());
        let wiped = self.wiped();
        self.drawn = 0;
        terminal::say(&wiped);
        terminal::warn(what, None);
    }
}
