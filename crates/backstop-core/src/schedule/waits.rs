//! The waits of a run for rate limits. Nodes that wait for the same limit at the same time share
//! a wait; so do the growing waits of a node for a limit whose end nobody knows. A run may begin so
//! many of them and no more, so that nobody sleeps through a night of refusals.

use crate::SafeText;
use std::time::Duration;

/// A wait that a node begins or shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitWait {
    /// The number of the wait in its run, counted from 1.
    pub number: u32,
    /// Whose limit it is, a provider or `provider/model`; empty where nobody knows.
    pub limit: String,
    /// When it is over, in time since the run began.
    pub until: Duration,
}

impl LimitWait {
    /// The name of a limit: the provider's, or that of one of its models.
    pub fn name(provider: Option<&SafeText>, model: Option<&SafeText>) -> String {
        let provider = provider.map_or("", SafeText::raw).to_ascii_lowercase();
        match model {
            Some(model) => format!("{provider}/{}", model.raw().to_ascii_lowercase()),
            None => provider,
        }
    }
}

/// The waits that a run has begun.
#[derive(Debug, Clone, Default)]
pub(super) struct LimitWaits {
    /// How many were begun in all.
    begun: u32,
    /// The number of the last wait that may begin.
    last: u32,
    under_way: Vec<LimitWait>,
}

impl LimitWaits {
    /// After so many waits, of which those up to `forgiven` do not count: somebody has resumed the
    /// run since.
    pub(super) fn new(begun: u32, forgiven: u32, times: u32) -> Self {
        Self { begun, last: forgiven.saturating_add(times), under_way: Vec::new() }
    }

    /// The number of the wait that a node would share or begin now; nothing where all are used.
    /// `own` is the wait that this node's last attempt followed, if the next belongs to it.
    pub(super) fn number(&self, limit: &str, own: Option<u32>, now: Duration) -> Option<u32> {
        let shared = self.under_way.iter().find(|wait| wait.limit == limit && wait.until > now);
        let number = shared.map(|wait| wait.number).or(own).unwrap_or(self.begun.saturating_add(1));
        (number <= self.last.max(self.begun)).then_some(number)
    }

    /// A node waits.
    pub(super) fn waits(&mut self, wait: &LimitWait) {
        self.begun = self.begun.max(wait.number);
        match self.under_way.iter_mut().find(|known| known.number == wait.number) {
            Some(known) => known.until = known.until.max(wait.until),
            None => self.under_way.push(wait.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn wait(number: u32, limit: &str, until: Duration) -> LimitWait {
        LimitWait { number, limit: limit.to_owned(), until }
    }

    #[test]
    fn what_is_waited_for_together_is_one_wait_and_a_run_has_so_many() {
        let mut waits = LimitWaits::new(0, 0, 2);
        assert_eq!(waits.number("anthropic", None, Duration::ZERO), Some(1));
        waits.waits(&wait(1, "anthropic", HOUR));
        assert_eq!(waits.number("anthropic", None, HOUR / 2), Some(1), "shared");
        assert_eq!(waits.number("openai", None, HOUR / 2), Some(2));
        waits.waits(&wait(2, "openai", HOUR));
        assert_eq!(waits.number("anthropic", None, HOUR / 2), Some(1), "still shared");
        assert_eq!(waits.number("anthropic", None, 2 * HOUR), None, "all are used");
        assert_eq!(waits.number("anthropic", Some(1), 2 * HOUR), Some(1), "the same one goes on");
        // Somebody has resumed the run after two.
        assert_eq!(LimitWaits::new(2, 2, 2).number("anthropic", None, Duration::ZERO), Some(3));
        assert_eq!(LimitWaits::new(2, 1, 1).number("anthropic", None, Duration::ZERO), None);
    }
}
