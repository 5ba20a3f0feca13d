//! What is asked before an attempt, and told after it.

use crate::operation::{Attempt, Failed};
use backstop_core::{EventKind, Experience, Fault, Record};
use std::future::Future;
use std::pin::Pin;

/// What comes of asking.
pub type AdmissionFuture<'a> = Pin<Box<dyn Future<Output = Result<(), Failed>> + Send + 'a>>;

/// Who says whether an attempt may begin, and learns how it went: limits that are shared with others.
///
/// The engine keeps the order: a failure is recorded before it is told here, and what follows from it is recorded after that.
pub trait Admission: Send + Sync {
    /// An attempt is about to begin. It may be waited for; what stands in the way comes back as a failure of something
    /// that was not started. What is spent or waited is recorded here.
    fn before<'a>(&'a self, attempt: &'a Attempt, record: &'a dyn Record) -> AdmissionFuture<'a>;

    /// It succeeded. Gives what is to be recorded of that.
    fn succeeded(&self) -> Vec<EventKind>;

    /// It failed, which is on record. Gives what is to be recorded of what follows.
    fn failed(&self, fault: &Fault) -> Vec<EventKind>;

    /// What is known of such failures.
    fn experience(&self, _fault: &Fault) -> Option<Experience> {
        None
    }
}
