//! For each reason: how often, how long apart, what else. A named policy is a profile.
//!
//! A policy is data. It must not know what an operation is, nor what happened before: that is the attempt machine's.

use crate::{Backoff, Class, Reason, Retry};
use std::borrow::Cow;
use std::time::Duration;

/// The most attempts that any table may name.
pub const ATTEMPTS_MAX: u32 = 100;

/// Which reasons a cell is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum On {
    /// These.
    Reasons(Cow<'static, [Reason]>),
    /// All of a class.
    Class(Class),
    /// All.
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

/// What is done about a fault that a cell covers, beside waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The same again.
    Again,
    /// Wait for the provider's guard first; the waits start over.
    Guarded,
    /// Again, with so many percent of it.
    Compressed(u8),
    /// Nothing: give it to the caller.
    Surface,
    /// Nothing: stop the run.
    Halt,
    /// Nothing now: put it aside.
    Defer,
    /// Nothing until somebody says so.
    Confirm,
}

/// One cell of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// For what.
    pub on: On,
    /// How many attempts in all, the first included.
    pub attempts: u32,
    /// How long apart, where it differs from the profile's.
    pub backoff: Option<Backoff>,
    /// What else.
    pub how: How,
}

/// Trouble that is the world's and not the work's: waited out against limits of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct World {
    /// Which reasons.
    pub reasons: Cow<'static, [Reason]>,
    /// How many waits.
    pub times: u32,
    /// How long all waits together.
    pub total: Duration,
    /// How long each.
    pub backoff: Backoff,
}

/// What becomes of an operation whose attempts are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhausted {
    /// The caller gets the fault.
    Surface,
    /// The run stops, resumable.
    Halt,
}

/// For each reason: how often, how long apart, what else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The profile's name.
    pub name: Cow<'static, str>,
    /// The cells; the first that covers a reason counts.
    pub cells: Vec<Cell>,
    /// Attempts for a reason that no cell covers and whose `retry` is `plain`. Every other such reason has one.
    pub plain_attempts: u32,
    /// The waits, where a cell names none.
    pub backoff: Backoff,
    /// What is waited out beside the attempts.
    pub world: Option<World>,
    /// The longest wait that a server may ask for; what asks for more is put aside.
    pub wait_max: Duration,
    /// What becomes of it in the end.
    pub exhausted: Exhausted,
    /// Whether what a retry has never cured is not tried again.
    pub learn: bool,
}

/// What a policy allows for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance<'p> {
    /// The cell's place, or nothing where none covers it.
    pub cell: Option<usize>,
    /// Attempts in all.
    pub attempts: u32,
    /// The waits.
    pub backoff: &'p Backoff,
    /// What else.
    pub how: How,
}

impl Policy {
    /// What is allowed for this reason.
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

    /// With this many attempts wherever there was more than one. One turns every retry off.
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        let attempts = attempts.clamp(1, ATTEMPTS_MAX);
        for cell in &mut self.cells {
            // What was made smaller once is not made smaller again and again.
            if cell.attempts > 1 && !(attempts > 1 && matches!(cell.how, How::Compressed(_))) {
                cell.attempts = attempts;
            }
        }
        self.plain_attempts = attempts;
        if attempts == 1 {
            self.world = None;
        }
        self
    }

    /// With these waits wherever the profile's own count.
    pub fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// With a cell for one reason, which beats all others.
    pub fn with_cell(mut self, reason: Reason, attempts: u32, how: How, backoff: Option<Backoff>) -> Self {
        let on = On::Reasons(Cow::Owned(vec![reason]));
        self.cells.insert(0, Cell { on, attempts, backoff, how });
        if let Some(world) = &mut self.world {
            world.reasons.to_mut().retain(|r| *r != reason);
        }
        self
    }

    /// How often a plain retry is tried here: the number that `--on REASON=retry` gives.
    pub fn usual_attempts(&self) -> u32 {
        let cells = self.cells.iter().filter(|c| matches!(c.how, How::Again)).map(|c| c.attempts);
        cells.chain([self.plain_attempts]).max().unwrap_or(1).max(2)
    }
}
