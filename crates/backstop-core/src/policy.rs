//! A policy: for each reason, the number of attempts, the delays between them, and what else is
//! done. A named policy is a profile.
//!
//! A policy is data. It must not know what an operation is, nor what happened before: the attempt
//! machine does.

use crate::{Backoff, Class, Reason, Retry};
use std::borrow::Cow;
use std::time::Duration;

/// The largest number of attempts that a policy may allow.
pub const ATTEMPTS_MAX: u32 = 100;

/// The reasons that a cell covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum On {
    /// These reasons.
    Reasons(Cow<'static, [Reason]>),
    /// All reasons of a class.
    Class(Class),
    /// All reasons.
    Any,
}

impl On {
    fn covers(&self, reason: Reason) -> bool {
        match self {
            On::Reasons(reasons) => reasons.contains(&reason),
            On::Class(class) => reason.class() == *class,
            On::Any => true,
        }
    }
}

/// What is done about a fault that a cell covers, besides waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Retry unchanged.
    Again,
    /// Wait for the provider's guard, then retry. The delays start over.
    Guarded,
    /// Retry with this many percent of the request.
    Compressed(u8),
    /// Do not retry: return the fault to the caller.
    Surface,
    /// Do not retry: halt the run.
    Halt,
    /// Do not retry now: defer the operation.
    Defer,
    /// Do not retry until a person confirms it.
    Confirm,
}

/// One cell of a profile: what is done about the reasons that it covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The reasons.
    pub on: On,
    /// The number of attempts in all, the first included.
    pub attempts: u32,
    /// The delays, if they differ from the profile's.
    pub backoff: Option<Backoff>,
    /// What else is done.
    pub how: How,
}

/// Faults that come from outside (rate limit, overload, lost worker). They are waited out against
/// limits of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct World {
    /// The reasons.
    pub reasons: Cow<'static, [Reason]>,
    /// The number of waits allowed, where the attempts before them could do nothing at all.
    pub times: u32,
    /// The number of waits allowed after attempts that had done work: each of them costs something.
    pub times_worked: u32,
    /// The time allowed for all waits together.
    pub total: Duration,
    /// The delay of each wait.
    pub backoff: Backoff,
    /// How rate limits are waited for: they have limits of their own.
    pub limits: LimitWaits,
}

/// How rate limits are waited for. [`Policy::wait_max`] is the longest single wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitWaits {
    /// The number of waits that a run may begin. Operations that wait for the same limit at the
    /// same time share one.
    pub times: u32,
    /// The delays where no end of the limit is known. Together they are one wait.
    pub backoff: Backoff,
}

/// What happens when all attempts are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhausted {
    /// The fault is returned to the caller.
    Surface,
    /// The run is halted, and can be resumed.
    Halt,
}

/// For each reason: the number of attempts, the delays between them, and what else is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The name of the profile.
    pub name: Cow<'static, str>,
    /// The cells. The first cell that covers a reason counts.
    pub cells: Vec<Cell>,
    /// The number of attempts for a reason that no cell covers and whose `retry` is `plain`. Other
    /// reasons without a cell have one attempt.
    pub plain_attempts: u32,
    /// How often an operation is started at most, whatever the reasons of its failures and even
    /// where waiting uses up no attempt; `None` where only the counts of the cells hold.
    pub starts_max: Option<u32>,
    /// The delays where a cell has none of its own.
    pub backoff: Backoff,
    /// The faults from outside, which do not use up attempts.
    pub world: Option<World>,
    /// The longest wait that a server may ask for. If it asks for more, the operation is deferred.
    pub wait_max: Duration,
    /// What happens when all attempts are used up.
    pub exhausted: Exhausted,
    /// Whether failures that retries have never cured are no longer retried.
    pub learn: bool,
}

/// What a policy allows for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance<'p> {
    /// The index of the cell; `None` if no cell covers the reason.
    pub cell: Option<usize>,
    /// The number of attempts in all.
    pub attempts: u32,
    /// The delays.
    pub backoff: &'p Backoff,
    /// What else is done.
    pub how: How,
}

impl Policy {
    /// What the policy allows for `reason`.
    pub fn allowance(&self, reason: Reason) -> Allowance<'_> {
        let found = self.cells.iter().enumerate().find(|(_, cell)| cell.on.covers(reason));
        match found {
            Some((index, cell)) => Allowance {
                cell: Some(index),
                attempts: cell.attempts.clamp(1, ATTEMPTS_MAX),
                backoff: cell.backoff.as_ref().unwrap_or(&self.backoff),
                how: cell.how,
            },
            None => {
                let attempts = if reason.retry() == Retry::Plain { self.plain_attempts } else { 1 };
                Allowance {
                    cell: None,
                    attempts: attempts.clamp(1, ATTEMPTS_MAX),
                    backoff: &self.backoff,
                    how: How::Again,
                }
            }
        }
    }

    /// Sets the number of attempts wherever it is more than one, and of all together. One attempt
    /// turns every retry off.
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        let attempts = attempts.clamp(1, ATTEMPTS_MAX);
        for cell in &mut self.cells {
            // A request that was compressed once is not compressed again.
            if cell.attempts > 1 && !(attempts > 1 && matches!(cell.how, How::Compressed(_))) {
                cell.attempts = attempts;
            }
        }
        self.plain_attempts = attempts;
        if attempts == 1 {
            self.world = None;
        }
        // Waits for the world have a count of their own, which this number does not change.
        self.starts_max = self.world.is_none().then_some(attempts);
        self
    }

    /// Starts an operation at most so often, whatever the cells allow.
    pub fn with_starts_max(mut self, starts: u32) -> Self {
        self.starts_max = Some(starts.clamp(1, ATTEMPTS_MAX));
        self
    }

    /// Replaces the profile's delays.
    pub fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Adds a cell for one reason, which takes precedence over all others.
    pub fn with_cell(mut self, reason: Reason, attempts: u32, how: How, backoff: Option<Backoff>) -> Self {
        let on = On::Reasons(Cow::Owned(vec![reason]));
        self.cells.insert(0, Cell { on, attempts, backoff, how });
        // Whoever allows one reason more attempts wants them made.
        self.starts_max = self.starts_max.map(|most| most.max(attempts.min(ATTEMPTS_MAX)));
        if let Some(world) = &mut self.world {
            world.reasons.to_mut().retain(|r| *r != reason);
        }
        self
    }

    /// The number of attempts that `--on REASON=retry` gives.
    pub fn usual_attempts(&self) -> u32 {
        let cells = self.cells.iter().filter(|c| matches!(c.how, How::Again)).map(|c| c.attempts);
        cells.chain([self.plain_attempts]).max().unwrap_or(1).max(2)
    }
}
