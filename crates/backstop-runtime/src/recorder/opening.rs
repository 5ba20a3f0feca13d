//! How the record of a run begins.

use super::successes::Successes;
use super::{Observer, TailFile};
use crate::otel::Exporter;
use crate::process::Process;
use crate::project::Project;
use backstop_core::{EventKind, RunId, SafeText};
use std::sync::Arc;

/// How the record of a run begins.
pub struct Opening {
    /// The surface: `exec`, `run`, `hook`.
    pub surface: &'static str,
    /// What is recorded first.
    pub first: Vec<EventKind>,
    /// The session, where it is not the process's own.
    pub session: Option<SafeText>,
    /// Who calls, where it is not the process's own caller.
    pub caller: Option<SafeText>,
    /// The run that this one belongs to.
    pub parent: Option<RunId>,
    /// The random number that the id is made of, where somebody has to know it before.
    pub random: Option<u64>,
    /// Whether nothing may be done that is not recorded.
    pub required: bool,
    /// Whether events wait in memory until something fails.
    pub held: bool,
    /// Where successes are counted that leave no run.
    pub successes: Option<Arc<Successes>>,
    /// Whether the trace is exported when it has ended, where the project wants that.
    pub exported: bool,
    /// Who is told what was recorded, besides the file that others tail and the exporter of traces.
    pub observers: Vec<Arc<dyn Observer>>,
}

impl Opening {
    /// A run of this surface, which goes on where it cannot be recorded.
    pub fn new(surface: &'static str) -> Self {
        Self {
            surface,
            first: Vec::new(),
            session: None,
            caller: None,
            parent: None,
            random: None,
            required: false,
            held: false,
            exported: true,
            successes: None,
            observers: Vec::new(),
        }
    }

    /// Everybody who is told: what the project's settings name, then those that were given.
    pub(super) fn observers_in(&self, project: &Project) -> Vec<Arc<dyn Observer>> {
        if !project.is_observed() {
            return self.observers.clone();
        }
        let tail = project
            .config
            .tail_to()
            .map(|file| TailFile::new(project.given(&file), Arc::clone(&project.process)));
        let exporter = self.exported.then(|| Exporter::of(project)).flatten();
        let mut all: Vec<Arc<dyn Observer>> = Vec::new();
        all.extend(tail.map(|tail| Arc::new(tail) as Arc<dyn Observer>));
        all.extend(self.observers.iter().cloned());
        all.extend(exporter.map(|exporter| Arc::new(exporter) as Arc<dyn Observer>));
        all
    }

    /// The session and the caller.
    pub(super) fn who(&self, process: &Process) -> (Option<SafeText>, Option<SafeText>) {
        let session = self.session.clone().or_else(|| process.session.clone());
        (session, self.caller.clone().or_else(|| process.caller.clone()))
    }
}
