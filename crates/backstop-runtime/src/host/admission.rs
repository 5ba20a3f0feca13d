//! What is asked before an attempt and told after it: guards, budgets, breakers, a frozen project.

use super::AttemptJob;
use backstop_core::{EventKind, Experience, Fault, Reason};
use std::time::Duration;

/// Why an attempt must not begin.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// What stands in the way. It is the failure of an attempt that was not dispatched.
    pub fault: Box<Fault>,
    /// What being refused has changed: a budget is exhausted.
    pub events: Vec<EventKind>,
}

/// Called with a provider and how long its guard stays closed, before a wait for it.
pub type Waiting<'w> = &'w dyn Fn(&str, Duration);

/// Says whether attempts may begin, and learns from how they ended. It keeps guards, budgets and
/// breakers in a database of their own, and returns the events that say what has changed there; the
/// host records them.
///
/// The order is the host's: `attempt.started` is recorded, then [`Admission::before`] is asked;
/// `attempt.finished` and `error.classified` are recorded, then [`Admission::failed`] is told, then
/// its events are recorded, and only then does another attempt begin.
pub trait Admission: Sync {
    /// Whether this attempt may begin. Called on the attempt's own thread; it may wait for a short
    /// time, and must give up when `job.stop` is requested.
    fn before(&self, job: &AttemptJob, waiting: Waiting<'_>) -> Result<Vec<EventKind>, Refusal>;

    /// An attempt of this node has failed, and that is recorded.
    fn failed(&self, node: usize, fault: &Fault) -> Vec<EventKind>;

    /// An attempt of this node has succeeded, and that is recorded.
    fn succeeded(&self, _node: usize) -> Vec<EventKind> {
        Vec::new()
    }

    /// What earlier runs have learned about failures like this one of a node, where its policy
    /// learns.
    fn experience(&self, _node: usize, _fault: &Fault) -> Option<Experience> {
        None
    }

    /// Who can take over the work of this node, whose worker is limited; `worker` has the work now,
    /// in place of the node's own. Nobody, if nobody else is allowed to or everybody is limited.
    fn alternative(&self, _node: usize, _worker: Option<&str>) -> Option<String> {
        None
    }

    /// Why the project is frozen, where it is: then no new attempt begins, and those under way may
    /// end.
    fn frozen(&self) -> Option<Reason> {
        None
    }
}

/// Admits everything, and learns nothing.
impl Admission for () {
    fn before(&self, _: &AttemptJob, _: Waiting<'_>) -> Result<Vec<EventKind>, Refusal> {
        Ok(Vec::new())
    }

    fn failed(&self, _: usize, _: &Fault) -> Vec<EventKind> {
        Vec::new()
    }
}
