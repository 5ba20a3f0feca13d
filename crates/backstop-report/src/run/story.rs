//! The story of a run: its attempts, faults, decisions and ending, folded from its events.

use super::event::{event_text, event_text_utc};
use backstop_core::{
    Decision, Event, EventKind, Fault, Outcome, OutputLog, Reason, RunId, SafeText, Timestamp,
};
use std::time::Duration;

/// The story of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunStory {
    /// The run.
    pub run: RunId,
    /// The surface that recorded it.
    pub surface: String,
    /// Who called, if known.
    pub caller: Option<SafeText>,
    /// The session, if known.
    pub session: Option<SafeText>,
    /// The operation.
    pub operation: Option<SafeText>,
    /// The folder it ran in.
    pub folder: Option<SafeText>,
    /// The policy profile.
    pub profile: Option<String>,
    /// The run that started this one.
    pub parent: Option<RunId>,
    /// When it began.
    pub started: Timestamp,
    /// When the last event was recorded.
    pub last: Timestamp,
    /// What happened, in order.
    pub entries: Vec<StoryEntry>,
    /// How it ended, if it has.
    pub ending: Option<StoryEnding>,
    /// Whether its process is alive; `None` where that was not looked at.
    pub is_alive: Option<bool>,
}

/// An entry of a story.
#[derive(Debug, Clone, PartialEq)]
pub enum StoryEntry {
    /// An attempt, with its fault and the decision.
    Attempt(Box<AttemptStory>),
    /// Anything else that happened: an override, a wait, a gate, a commit.
    Note {
        /// When it happened.
        at: Timestamp,
        /// The kind of event: `override`, `guard.waited`.
        kind: &'static str,
        /// The text of the event for people: one line, escaped.
        text: String,
        /// The same with times in UTC.
        text_utc: String,
    },
}

/// One attempt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AttemptStory {
    /// The operation.
    pub operation: SafeText,
    /// The attempt's number, counted from 1.
    pub attempt: u32,
    /// When it began.
    pub started: Option<Timestamp>,
    /// How long it took.
    pub duration: Option<Duration>,
    /// Whether it succeeded; `None` where that is not known.
    pub success: Option<bool>,
    /// The exit code.
    pub exit: Option<i64>,
    /// The signal that ended it.
    pub signal: Option<String>,
    /// The end of its output.
    pub output: Option<SafeText>,
    /// All that was kept of its output, where it was.
    pub log: Option<OutputLog>,
    /// Why it is not known how it ended.
    pub lost: Option<SafeText>,
    /// The fault.
    pub fault: Option<Fault>,
    /// The decision.
    pub decision: Option<Decision>,
    /// The reason that the decision gave the fault instead.
    pub reclassified: Option<Reason>,
    /// The recovery strategy that this attempt carried out, and whether it succeeded.
    pub recovery: Option<(String, bool)>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct StoryEnding {
    /// The outcome; `None` where the run halted and can be resumed.
    pub outcome: Option<Outcome>,
    /// The reason, where the outcome is not done.
    pub reason: Option<Reason>,
    /// How many attempts were made, where that was recorded.
    pub attempts: Option<u32>,
    /// How long it took, where that was recorded.
    pub duration: Option<Duration>,
    /// The exit code that was passed on.
    pub exit: Option<i32>,
    /// The command that resumes the run.
    pub next: Option<SafeText>,
}

impl RunStory {
    /// The story of a run from its events, in order; `None` where there are none.
    pub fn from_events(events: &[Event]) -> Option<Self> {
        let first = events.first()?;
        let mut story = Self {
            run: first.run,
            surface: first.surface.clone(),
            caller: first.caller.clone(),
            session: first.session.clone(),
            operation: None,
            folder: None,
            profile: None,
            parent: None,
            started: first.at,
            last: first.at,
            entries: Vec::new(),
            ending: None,
            is_alive: None,
        };
        for event in events.iter().filter(|event| event.run == first.run) {
            story.last = story.last.max(event.at);
            story.apply(event);
        }
        Some(story)
    }

    /// How many attempts were made: as recorded at the end, else those that are known. A report of
    /// a task counts the attempts of reports before it.
    pub fn attempts_made(&self) -> u32 {
        let recorded = self.ending.as_ref().and_then(|ending| ending.attempts);
        recorded.unwrap_or_else(|| u32::try_from(self.attempts().count()).unwrap_or(u32::MAX))
    }

    /// The attempts, in order.
    pub fn attempts(&self) -> impl Iterator<Item = &AttemptStory> {
        self.entries.iter().filter_map(|entry| match entry {
            StoryEntry::Attempt(attempt) => Some(&**attempt),
            StoryEntry::Note { .. } => None,
        })
    }

    /// Adds what was kept of the output of attempts.
    #[must_use]
    pub fn with_logs(mut self, logs: Vec<(u32, OutputLog)>) -> Self {
        for (attempt, log) in logs {
            if let Some(story) = self.latest_attempt(attempt) {
                story.log = Some(log);
            }
        }
        self
    }

    /// The fault that ended the run, under the reason that it ended with; `None` where it is done
    /// or goes on.
    pub fn final_fault(&self) -> Option<Fault> {
        let reason = self.ending.as_ref()?.reason?;
        let last = self.attempts().filter_map(|attempt| attempt.fault.as_ref()).last();
        let is_it = |fault: &&Fault| fault.reason == reason || fault.reason.when_exhausted() == Some(reason);
        Some(match last.filter(is_it) {
            Some(fault) => fault.clone().renamed(reason),
            None => Fault::new(reason),
        })
    }

    /// How long it took, or has taken up to the last event.
    pub fn total(&self) -> Duration {
        let recorded = self.ending.as_ref().and_then(|ending| ending.duration);
        recorded.unwrap_or_else(|| self.last.since(self.started))
    }

    fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::RunStarted { operation, folder, profile, parent } => {
                self.operation = Some(operation.clone());
                self.folder.clone_from(folder);
                self.profile.clone_from(profile);
                self.parent = *parent;
            }
            EventKind::RunEnded { outcome, reason, attempts, duration_ms, exit, next } => {
                self.ending = Some(StoryEnding {
                    outcome: Some(*outcome),
                    reason: *reason,
                    attempts: Some(*attempts),
                    duration: Some(Duration::from_millis(*duration_ms)),
                    exit: *exit,
                    next: next.clone(),
                });
            }
            EventKind::RunHalted { reason, resume } => {
                let next = Some(SafeText::from(resume.as_str()));
                let reason = Some(*reason);
                self.ending = Some(StoryEnding {
                    outcome: None,
                    reason,
                    attempts: None,
                    duration: None,
                    exit: None,
                    next,
                });
            }
            EventKind::AttemptStarted { operation, attempt } => {
                let (operation, started) = (operation.clone(), Some(event.at));
                let begun = AttemptStory { operation, attempt: *attempt, started, ..AttemptStory::default() };
                self.entries.push(StoryEntry::Attempt(Box::new(begun)));
            }
            EventKind::AttemptFinished {
                operation,
                attempt,
                success,
                duration_ms,
                exit,
                signal,
                output,
                ..
            } => {
                self.update_attempt(operation, *attempt, |story| {
                    story.success = Some(*success);
                    story.duration = Some(Duration::from_millis(*duration_ms));
                    story.exit = *exit;
                    story.signal.clone_from(signal);
                    story.output.clone_from(output);
                });
            }
            EventKind::AttemptLost { operation, attempt, why, .. } => {
                self.update_attempt(operation, *attempt, |story| story.lost = Some(why.clone()));
            }
            EventKind::ErrorClassified { operation, attempt, fault } => {
                self.update_attempt(operation, *attempt, |story| story.fault = Some((**fault).clone()));
            }
            EventKind::DecisionMade { operation: None, attempt, decision, reclassified } => {
                match self.latest_attempt(*attempt) {
                    Some(story) => {
                        story.decision = Some(decision.clone());
                        story.reclassified = *reclassified;
                    }
                    None => self.note(event),
                }
            }
            EventKind::DecisionMade { operation: Some(operation), attempt, decision, reclassified } => {
                self.update_attempt(operation, *attempt, |story| {
                    story.decision = Some(decision.clone());
                    story.reclassified = *reclassified;
                });
            }
            EventKind::RecoveryAttempted { strategy, success, attempt, .. } => {
                match self.latest_attempt(*attempt) {
                    Some(story) => story.recovery = Some((strategy.clone(), *success)),
                    None => self.note(event),
                }
            }
            EventKind::RunResumed {} => {
                self.ending = None;
                self.note(event);
            }
            _ => self.note(event),
        }
    }

    fn note(&mut self, event: &Event) {
        self.entries.push(StoryEntry::Note {
            at: event.at,
            kind: event.kind.name(),
            text: event_text(&event.kind),
            text_utc: event_text_utc(&event.kind),
        });
    }

    /// Changes the latest attempt of an operation with this number; adds one where its start was
    /// not recorded.
    fn update_attempt(&mut self, operation: &SafeText, attempt: u32, change: impl FnOnce(&mut AttemptStory)) {
        for entry in self.entries.iter_mut().rev() {
            if let StoryEntry::Attempt(story) = entry
                && story.attempt == attempt
                && story.operation == *operation
            {
                return change(story);
            }
        }
        let mut story = AttemptStory { operation: operation.clone(), attempt, ..AttemptStory::default() };
        change(&mut story);
        self.entries.push(StoryEntry::Attempt(Box::new(story)));
    }

    /// The latest attempt with this number. Older events have 0, which means the latest of all.
    fn latest_attempt(&mut self, attempt: u32) -> Option<&mut AttemptStory> {
        self.entries.iter_mut().rev().find_map(|entry| match entry {
            StoryEntry::Attempt(story) if attempt == 0 || story.attempt == attempt => Some(&mut **story),
            _ => None,
        })
    }
}
