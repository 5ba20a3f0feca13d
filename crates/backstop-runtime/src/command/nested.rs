//! Backstops inside Backstops: retries that a layer below has made already are not made again above
//! it.

use crate::project::Project;
use crate::recorder::Recorder;
use backstop_core::{Fault, RunId, Timestamp};
use backstop_store::UserStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

/// What layers below this run, and the one above it, know of retries.
#[derive(Debug)]
pub(super) struct Nested {
    project: Arc<Project>,
    recorder: Arc<Recorder>,
    parent: Option<RunId>,
    /// When the current attempt began, in milliseconds.
    attempt_at: AtomicI64,
    /// The most attempts that a layer below has made.
    below: AtomicU32,
}

impl Nested {
    pub(super) fn new(project: Arc<Project>, recorder: Arc<Recorder>) -> Self {
        let parent = project.process.parent;
        Self { project, recorder, parent, attempt_at: AtomicI64::new(0), below: AtomicU32::new(0) }
    }

    /// Another attempt begins: what was tried below before does not count for it.
    pub(super) fn attempt_begins(&self) {
        self.attempt_at.store(self.project.process.now().as_millis(), Ordering::SeqCst);
    }

    /// How often a Backstop inside this attempt has tried already.
    pub(super) fn retried_below(&self) -> Option<u32> {
        if !self.recorder.is_recorded() {
            return None;
        }
        let since = Timestamp::from_millis(self.attempt_at.load(Ordering::SeqCst));
        let user = UserStore::open_existing(self.project.folder().ok()?).ok()??;
        let below = user.nested(self.recorder.run(), since).ok()?.map(|nested| nested.attempts);
        self.below.fetch_max(below.unwrap_or(0), Ordering::SeqCst);
        below
    }

    /// Tells the run that started this one that retries were made here, or below, and did not help.
    pub(super) fn tell_parent(&self, attempts: u32, fault: Option<&Fault>) {
        let attempts = attempts.max(self.below.load(Ordering::SeqCst));
        if let (Some(parent), Some(fault), true) = (self.parent, fault, attempts > 1)
            && let Ok(user) = self.project.user_store()
        {
            let _ = user.note_nested(parent, self.recorder.run(), attempts, fault.reason);
        }
    }
}
