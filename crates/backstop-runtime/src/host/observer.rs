//! Who follows a run: files, terminals, logs. Observers see what was recorded; they decide nothing.

use super::{Note, StopRequest};
use backstop_core::{Event, Schedule};
use std::time::Duration;

/// Where a run stands.
#[derive(Debug)]
pub struct HostState<'s, R> {
    /// The fold of all that was recorded.
    pub record: &'s R,
    /// Where the scheduler has each node.
    pub schedule: &'s Schedule,
    /// Time since this process started or resumed the run.
    pub now: Duration,
}

/// What an observer could not do. It does not stop the run: every observer hears of it by
/// [`Observer::trouble`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ObserverError(pub String);

/// Follows a run. All methods are called from the host's loop, for one observer after the other, in
/// the order in which they were given; each must return soon.
pub trait Observer<R> {
    /// The loop begins. These events were recorded when the run was started or resumed.
    fn started(&mut self, _opened: &[Event], _state: &HostState<'_, R>) -> Result<(), ObserverError> {
        Ok(())
    }

    /// One event was recorded and applied to the record. Those that were recorded with it and come
    /// after it were not applied yet.
    fn applied(&mut self, _event: &Event, _record: &R) {}

    /// These events were recorded, all together, and applied to the record.
    fn recorded(&mut self, _events: &[Event], _state: &HostState<'_, R>) -> Result<(), ObserverError> {
        Ok(())
    }

    /// How long until [`Observer::tick`] is wanted, where it is.
    fn due_in(&self, _now: Duration) -> Option<Duration> {
        None
    }

    /// The loop came round: something happened, or time has passed.
    fn tick(&mut self, _state: &HostState<'_, R>) -> Result<(), ObserverError> {
        Ok(())
    }

    /// Something for people, about a node, or about the run as a whole.
    fn noted(&mut self, _node: Option<usize>, _note: &Note) {}

    /// Somebody asked for the end while so many attempts were under way.
    fn stop_requested(&mut self, _request: StopRequest, _running: usize) {}

    /// An observer could not do its work.
    fn trouble(&mut self, _message: &str) {}

    /// The end of the run is about to be recorded. What a reader of that record may count on must
    /// be done when this returns.
    fn before_end(&mut self, _state: &HostState<'_, R>) -> Result<(), ObserverError> {
        Ok(())
    }

    /// The loop is over: the end was recorded, or nothing can be recorded any more.
    fn closed(&mut self, _state: &HostState<'_, R>) -> Result<(), ObserverError> {
        Ok(())
    }
}
