//! The waits of a run for rate limits, as its events add up to them: which there were, which nodes
//! shared them, and until when they last.

use backstop_core::{EventKind, LimitWindow, SafeText, Timestamp};
use std::collections::BTreeSet;
use std::time::Duration;

/// A wait of a run for a rate limit. Nodes that wait for the same limit at the same time share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunWait {
    /// Its number in the run, counted from 1.
    pub number: u32,
    /// Whose limit it is, where that is known.
    pub provider: Option<SafeText>,
    /// The model that the limit is of, where it is that of one model.
    pub model: Option<SafeText>,
    /// The window of time that the limit counts in, where that is known.
    pub window: Option<LimitWindow>,
    /// The end of the limit, as it was stated.
    pub resets_at: Option<Timestamp>,
    /// When it began.
    pub began: Timestamp,
    /// When its last node goes on.
    pub until: Timestamp,
    /// When its last node went on; nothing while it is under way.
    pub ended: Option<Timestamp>,
    /// The nodes that wait.
    nodes: BTreeSet<String>,
}

impl RunWait {
    /// How long it took, or has taken up to `now`.
    pub fn length(&self, now: Timestamp) -> Duration {
        self.ended.unwrap_or(now).since(self.began)
    }
}

/// A node's own part of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeWait {
    /// The number of the wait in the run.
    pub number: u32,
    /// When this node began to wait.
    pub began: Timestamp,
    /// When it goes on.
    pub until: Timestamp,
}

impl NodeWait {
    /// How much of it is left. After the clock was set back, that is never more than at first.
    pub fn left(&self, now: Timestamp) -> Duration {
        self.until.since(now).min(self.until.since(self.began))
    }
}

/// All waits of a run.
#[derive(Debug, Clone, Default)]
pub struct RunWaits {
    all: Vec<RunWait>,
    /// The number of the last wait before somebody resumed the run after a halt.
    forgiven: u32,
}

impl RunWaits {
    /// All of them, oldest first.
    pub fn all(&self) -> &[RunWait] {
        &self.all
    }

    /// The wait with this number.
    pub fn get(&self, number: u32) -> Option<&RunWait> {
        self.all.iter().find(|wait| wait.number == number)
    }

    /// How many there were, and how long they took together up to `now`.
    pub fn sum(&self, now: Timestamp) -> (u32, Duration) {
        let count = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        (count, self.all.iter().map(|wait| wait.length(now)).sum())
    }

    /// The number of the last wait, and of the last one that does not count any more.
    pub(super) fn counted(&self) -> (u32, u32) {
        (self.all.iter().map(|wait| wait.number).max().unwrap_or(0), self.forgiven)
    }

    /// A node begins or shares a wait. Gives the node's part of it; nothing where the event is
    /// none.
    pub(super) fn started(&mut self, node: &str, kind: &EventKind, at: Timestamp) -> Option<NodeWait> {
        let EventKind::WaitStarted { wait, provider, model, window, resets_at, wait_ms, .. } = kind else {
            return None;
        };
        let until = at.after(Duration::from_millis(*wait_ms));
        let known = match self.all.iter().position(|known| known.number == *wait) {
            Some(known) => known,
            None => {
                self.all.push(RunWait {
                    number: *wait,
                    provider: provider.clone(),
                    model: model.clone(),
                    window: *window,
                    resets_at: *resets_at,
                    began: at,
                    until,
                    ended: None,
                    nodes: BTreeSet::new(),
                });
                self.all.len() - 1
            }
        };
        let known = &mut self.all[known];
        known.until = known.until.max(until);
        known.resets_at = resets_at.or(known.resets_at);
        known.ended = None;
        known.nodes.insert(node.to_owned());
        Some(NodeWait { number: *wait, began: at, until })
    }

    /// A node waits no longer.
    pub(super) fn ended(&mut self, node: &str, at: Timestamp) {
        for wait in &mut self.all {
            if wait.nodes.remove(node) && wait.nodes.is_empty() {
                wait.ended.get_or_insert(at);
            }
        }
    }

    /// The run is over, or halts: nobody waits.
    pub(super) fn all_ended(&mut self, at: Timestamp) {
        for wait in &mut self.all {
            wait.nodes.clear();
            wait.ended.get_or_insert(at);
        }
    }

    /// Somebody resumes a run that had halted: waits are counted anew.
    pub(super) fn forgive(&mut self) {
        self.forgiven = self.counted().0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_jumps_neither_lengthens_a_wait_nor_loses_its_end() {
        let at = |seconds: i64| Timestamp::from_millis(1_000_000_000 + seconds * 1000);
        let wait = NodeWait { number: 1, began: at(0), until: at(3600) };
        for (now, left) in [
            (0, 3600),
            (1200, 2400),
            // Set back by two days: never longer than at first.
            (-172_800, 3600),
            // Set forward by two days, or asleep for as long: over.
            (172_800, 0),
        ] {
            assert_eq!(wait.left(at(now)), Duration::from_secs(left), "{now}");
        }
    }
}
