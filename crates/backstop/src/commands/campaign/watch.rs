//! What a person sees while a campaign is carried on, and what they are asked.

use super::super::run::watch::{Show as PlanShow, Viewer};
use crate::error::{CliError, DONE, HALTED};
use crate::{process, prompt, terminal};
use backstop_campaign::changes::FoundCampaign;
use backstop_campaign::drive::Audience;
use backstop_campaign::present;
use backstop_config::LogFormat;
use backstop_core::{Event, EventKind, Redactor, SafeText};
use backstop_plan::document::Plan;
use backstop_plan::record::RunRecord;
use backstop_runtime::EventLines;
use backstop_runtime::host::Observer;
use std::sync::Arc;
use std::time::Duration;

pub(super) type Show = PlanShow;

/// How often a campaign that is followed is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// Whoever watches from a terminal, a pipe or a program.
pub(super) struct Watcher {
    show: Show,
    redactor: Arc<Redactor>,
}

impl Watcher {
    pub(super) fn new(show: Show, redactor: Arc<Redactor>) -> Self {
        Self { show, redactor }
    }
}

impl Audience for Watcher {
    fn stage<'a>(&'a mut self, plan: &'a Plan, jobs: usize) -> Box<dyn Observer<RunRecord> + 'a> {
        Box::new(Viewer::new(self.show, plan, jobs, Arc::clone(&self.redactor)))
    }

    fn recorded(&mut self, events: &[Event]) {
        match self.show {
            // What programs read is printed by an observer of the recorder.
            Show::Events(_) | Show::Quiet => {}
            Show::Live | Show::Lines => {
                for line in events.iter().filter_map(|event| present::line(&event.kind)) {
                    terminal::say(&format!("{}\n", self.redactor.redact(&line)));
                }
            }
        }
    }

    fn answers(&mut self, questions: &[String]) -> Option<Vec<String>> {
        if !prompt::can_ask() {
            return None;
        }
        questions
            .iter()
            .map(|question| prompt::ask_long(&format!("{}\n> ", SafeText::new(question.clone()).line(1000))))
            .map(|answer| answer.filter(|answer| !answer.is_empty()))
            .collect()
    }

    fn note(&mut self, text: &str) {
        if matches!(self.show, Show::Live | Show::Lines) {
            terminal::say(&format!("note: {}\n", SafeText::new(text).line(400)));
        }
    }
}

/// Prints a campaign's events until it has ended, or nobody carries it on any more.
pub(super) fn follow(found: &FoundCampaign, json: bool, format: LogFormat) -> Result<u8, CliError> {
    let mut seen = 0;
    loop {
        // Asked first: what it recorded last is read then.
        let is_left = found.journal.run(found.run)?.is_none_or(|run| !process::is_alive(&run.process));
        let events = found.journal.load(found.run)?;
        for event in events.iter().skip(seen) {
            let line = match if json { LogFormat::Json } else { format } {
                LogFormat::Human => present::line(&event.kind).or_else(|| task_line(&event.kind)),
                format => EventLines::line(format, event),
            };
            if let Some(line) = line {
                terminal::print(&format!("{line}\n"))?;
            }
        }
        seen = events.len();
        let is_over =
            |event: &Event| matches!(event.kind, EventKind::RunEnded { .. } | EventKind::RunHalted { .. });
        if events.last().is_some_and(is_over) {
            return Ok(DONE);
        }
        if is_left {
            terminal::say(&format!("nobody carries this campaign on; next: {}\n", found.resume_command()));
            return Ok(HALTED);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn task_line(kind: &EventKind) -> Option<String> {
    match kind {
        EventKind::StateEntered { operation: Some(task), state, .. } => {
            Some(format!("{}: {}", task.line(40), SafeText::new(state.clone()).line(40)))
        }
        _ => None,
    }
}
