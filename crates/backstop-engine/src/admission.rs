//! The interface through which the engine asks whether an attempt may begin.
//!
//! Budgets, guards and breakers are shared with other processes; the engine knows none of them. It
//! calls an [`Admission`] before an attempt and after it, and records the events that come back.

use crate::operation::{Attempt, Failed};
use backstop_core::{EventKind, Experience, Fault, Record};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// The future that [`Admission::before`] returns.
pub type AdmissionFuture<'a> = Pin<Box<dyn Future<Output = Result<(), Failed>> + Send + 'a>>;

/// The future that [`Admission::await_guard`] returns.
pub type GuardFuture<'a> = Pin<Box<dyn Future<Output = Duration> + Send + 'a>>;

/// Decides whether an attempt may begin, and is informed of its result. Implemented by limits that
/// are shared with other runs: budgets, guards, breakers.
///
/// The engine guarantees the order: a failure is recorded before [`Admission::failed`] is called,
/// and the events that it returns are recorded after that.
pub trait Admission: Send + Sync {
    /// Called before each attempt. May wait. A refusal is returned as a failure that was not
    /// dispatched. Budget spent and time waited are recorded here, through `record`.
    fn before<'a>(&'a self, attempt: &'a Attempt, record: &'a dyn Record) -> AdmissionFuture<'a>;

    /// Called when the decision is to wait for a guard. Returns how long was waited: not at all
    /// where there is no guard, where it is open, or where it opens too late (which
    /// [`Admission::before`] then says).
    fn await_guard<'a>(&'a self, _attempt: &'a Attempt, _record: &'a dyn Record) -> GuardFuture<'a> {
        Box::pin(std::future::ready(Duration::ZERO))
    }

    /// Called after a successful attempt. Returns the events to record for it.
    fn succeeded(&self) -> Vec<EventKind>;

    /// Called after a failed attempt, once the failure is recorded. Returns the events to record
    /// for what changed because of it.
    fn failed(&self, fault: &Fault) -> Vec<EventKind>;

    /// What earlier runs learned about failures like this one.
    fn experience(&self, _fault: &Fault) -> Option<Experience> {
        None
    }
}
