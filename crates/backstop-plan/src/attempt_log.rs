//! Following the logs of a phase while it is worked on: each look gives what is new.

use crate::record::RunRecord;
use crate::runs::FoundRun;
use crate::start::RunError;
use backstop_core::SafeText;
use backstop_report::plan::AttemptLog;
use backstop_runtime::host::NodeStatus;
use std::fs::File;
use std::io::Read;

/// The longest line that is waited for; a longer one is shown in parts.
const LINE_BYTES_MAX: usize = 4 << 20;

/// How much of a log is read.
const LOG_BYTES_MAX: u64 = 64 << 20;

impl FoundRun {
    /// The log of the attempt of a phase that was asked for, else of its last one.
    pub fn read_log(&self, phase: &str, attempt: Option<u32>) -> Result<AttemptLog, RunError> {
        let (at, attempt) = self.attempt(phase, attempt)?;
        let phase = self.record.phase(at).plan.id.clone();
        let file = self.views.attempt_log(&phase, attempt);
        let unreadable = |error| RunError::Read { file: file.clone(), error };
        let log = self.views.read_attempt_log(&phase, attempt).map_err(|error| unreadable(error.into()))?;
        let mut text = Vec::new();
        log.take(LOG_BYTES_MAX).read_to_end(&mut text).map_err(unreadable)?;
        let text = SafeText::from_bytes(&text);
        Ok(AttemptLog { run: self.run, phase, attempt, file, text })
    }
}

/// What a look at a phase found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PhaseNews {
    /// An attempt has begun.
    Began(u32),
    /// A line of its log.
    Line(String),
    /// The phase has not begun yet.
    Waits,
    /// Nothing more will come. `false` if it never ran.
    Over(bool),
}

/// Follows the logs of a phase's attempts until the phase or the run has ended.
#[derive(Debug)]
pub struct PhaseFollower {
    phase: usize,
    /// The attempt that is followed.
    attempt: u32,
    /// Whether its end was seen.
    has_ended: bool,
    log: Option<File>,
    /// What was read and is no whole line yet.
    rest: Vec<u8>,
}

impl PhaseFollower {
    /// Follows this phase of a run, by its place in the plan, from its last attempt on.
    pub fn new(phase: usize) -> Self {
        Self { phase, attempt: 0, has_ended: true, log: None, rest: Vec::new() }
    }

    /// What is new. `found` is the run as it is now.
    pub fn look(&mut self, found: &FoundRun) -> Result<Vec<PhaseNews>, RunError> {
        let mut news = Vec::new();
        let phase = found.record.phase(self.phase);
        if self.has_ended && phase.node.total > self.attempt {
            self.attempt = phase.node.total;
            (self.has_ended, self.log) = (false, None);
            news.push(PhaseNews::Began(self.attempt));
        }
        if !self.has_ended {
            // Asked before the log is read: what was written before the end is shown.
            let has_ended = !is_running(&found.record, self.phase, self.attempt);
            self.read(found, &phase.plan.id)?;
            news.extend(self.lines(has_ended).into_iter().map(PhaseNews::Line));
            self.has_ended = has_ended;
            if !has_ended {
                return Ok(news);
            }
        }
        let is_over =
            matches!(phase.node.status, NodeStatus::Complete | NodeStatus::Failed | NodeStatus::Blocked)
                || has_stopped(&found.record);
        match (is_over && phase.node.total == self.attempt, self.attempt) {
            (true, attempt) => news.push(PhaseNews::Over(attempt > 0)),
            (false, 0) => news.push(PhaseNews::Waits),
            (false, _) => {}
        }
        Ok(news)
    }

    fn read(&mut self, found: &FoundRun, id: &str) -> Result<(), RunError> {
        if self.log.is_none() {
            self.log = found.views.read_attempt_log(id, self.attempt).ok();
        }
        let Some(log) = &mut self.log else { return Ok(()) };
        let unreadable = |error| RunError::Read { file: found.views.attempt_log(id, self.attempt), error };
        log.read_to_end(&mut self.rest).map(|_| ()).map_err(unreadable)
    }

    /// The whole lines of what was read; with `all`, also what comes after the last line end.
    fn lines(&mut self, all: bool) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned();
        let mut lines = Vec::new();
        let end = |rest: &[u8]| {
            let long = (rest.len() > LINE_BYTES_MAX).then_some(LINE_BYTES_MAX);
            rest.iter().position(|byte| *byte == b'\n').or(long)
        };
        while let Some(end) = end(&self.rest) {
            lines.push(text(&self.rest.drain(..=end).collect::<Vec<_>>()));
        }
        if all && !self.rest.is_empty() {
            lines.push(text(&std::mem::take(&mut self.rest)));
        }
        lines
    }
}

fn is_running(record: &RunRecord, phase: usize, attempt: u32) -> bool {
    let node = record.phase(phase).node;
    node.status == NodeStatus::Running && node.total == attempt && !has_stopped(record)
}

/// Whether the run itself is over, for now or for good.
fn has_stopped(record: &RunRecord) -> bool {
    record.progress.ended.is_some() || record.progress.halted.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_and_the_last_one_comes_at_the_end() {
        let mut follower = PhaseFollower::new(0);
        follower.rest = b"one\ntwo\nthr".to_vec();
        assert_eq!(follower.lines(false), ["one", "two"]);
        follower.rest.extend_from_slice(b"ee");
        assert_eq!(follower.lines(false), Vec::<String>::new());
        assert_eq!(follower.lines(true), ["three"]);
        assert!(follower.lines(true).is_empty());
    }
}
