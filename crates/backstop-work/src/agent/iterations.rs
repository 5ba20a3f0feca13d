//! Counts the iterations of an agent in its event stream, and ends it when they are used up.
//!
//! An iteration is one turn in which the agent uses tools. An agent that prints plain text has no
//! such events: nothing is counted then, and whoever asked is told so.

use super::definition::OutputDialect;
use super::dialect;
use backstop_core::{Fault, Reason, SafeText};
use backstop_exec::Stop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The iterations of one attempt.
#[derive(Debug, Clone)]
pub(super) struct Iterations {
    count: Arc<AtomicU32>,
    dialect: OutputDialect,
    max: Option<u32>,
    /// The turn that was counted last: one message may be printed in several events.
    last: Arc<Mutex<String>>,
}

impl Iterations {
    pub(super) fn new(dialect: OutputDialect, max: Option<u32>) -> Self {
        Self { count: Arc::default(), dialect, max, last: Arc::default() }
    }

    /// How many there were; nothing where the agent has no event stream.
    pub(super) fn count(&self) -> Option<u32> {
        (self.dialect != OutputDialect::Text).then(|| self.count.load(Ordering::Relaxed))
    }

    /// What it is where more were begun than there are.
    pub(super) fn fault(&self) -> Option<Fault> {
        let (count, max) = (self.count()?, self.max?);
        (count > max).then(|| {
            let mut fault = Fault::new(Reason::BudgetExhausted);
            fault.cause = Some(SafeText::new(format!("the agent used all of its {max} iterations")));
            fault
        })
    }

    /// Counts one. `stop` is requested once they are used up.
    pub(super) fn used(&self, stop: &Stop) {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if self.max.is_some_and(|max| count == max + 1) {
            stop.request();
        }
    }

    /// Counts the one that an event of the agent's output tells of, where it does.
    pub(super) fn event(&self, line: &[u8], stop: &Stop) {
        let Some(turn) = dialect::tool_turn(self.dialect, line) else { return };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if turn.is_empty() || turn != *last {
            *last = turn;
            self.used(stop);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(dialect: OutputDialect, max: u32, lines: &[&str]) -> (Option<u32>, bool, u32) {
        let (iterations, stop) = (Iterations::new(dialect, Some(max)), Stop::new());
        lines.iter().for_each(|line| iterations.event(line.as_bytes(), &stop));
        (iterations.count(), iterations.fault().is_some(), u32::from(stop.requests()))
    }

    #[test]
    fn turns_with_tools_are_counted_in_every_dialect() {
        let claude = [
            r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","name":"Read"}]}}"#,
            r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","name":"Read"}]}}"#,
            r#"{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"x"}]}}"#,
            r#"{"type":"assistant","message":{"id":"m3","content":[{"type":"tool_use","name":"Bash"}]}}"#,
        ];
        assert_eq!(counted(OutputDialect::ClaudeJson, 2, &claude), (Some(2), false, 0));
        assert_eq!(counted(OutputDialect::ClaudeJson, 1, &claude), (Some(2), true, 1));
        let codex = [
            r#"{"type":"item.completed","item":{"type":"command_execution","id":"i1"}}"#,
            r#"{"type":"item.completed","item":{"type":"agent_message","id":"i2"}}"#,
            r#"{"type":"item.completed","item":{"type":"file_change","id":"i3"}}"#,
        ];
        assert_eq!(counted(OutputDialect::CodexJsonl, 9, &codex), (Some(2), false, 0));
        let opencode = [
            r#"{"type":"step_finish","part":{"reason":"tool-calls"}}"#,
            r#"{"type":"step_finish","part":{"reason":"stop"}}"#,
        ];
        assert_eq!(counted(OutputDialect::OpencodeJsonl, 9, &opencode), (Some(1), false, 0));
        assert_eq!(counted(OutputDialect::Text, 1, &claude), (None, false, 0));
    }
}
