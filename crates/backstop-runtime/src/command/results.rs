//! Results that are kept and used again, for commands that only read.

use super::{CacheKey, CacheKeyError, LastAttempt, PreparedCommand};
use crate::admission::OperationAdmission;
use crate::project::Project;
use crate::recorder::Recorder;
use backstop_core::{EventKind, Outcome, SafeText};
use backstop_report::CommandEnding;
use backstop_store::KeptResult;
use std::ffi::OsString;
use std::time::Duration;

/// Under which key a result is kept, and how old it may be.
#[derive(Debug, Clone)]
pub struct ResultCache {
    key: String,
    age_max: Duration,
}

impl ResultCache {
    /// For a command whose result depends on these variables and input files.
    pub fn new(
        command: &PreparedCommand,
        age_max: Duration,
        variables: Vec<(String, Option<OsString>)>,
        inputs: &[String],
    ) -> Result<Self, CacheKeyError> {
        let folder = &command.project.process.cwd;
        let key = CacheKey { argv: &command.request.argv, folder, variables, inputs };
        Ok(Self { key: key.hash()?, age_max })
    }

    /// A result that was kept and how old it is; nothing where its budget is used up.
    pub fn find(
        &self,
        project: &Project,
        recorder: &Recorder,
        admission: &OperationAdmission,
    ) -> Option<(KeptResult, Duration)> {
        let kept = project.existing_limits().ok()??.result(&self.key, self.age_max).ok()??;
        // Spent before work, and given back: nothing was done.
        admission.spend(recorder).ok()?;
        admission.refund(recorder);
        let old = project.process.now().since(kept.at);
        Some((kept, old))
    }

    /// Records that a run has ended with a result that is so old.
    pub fn end_run(&self, command: &PreparedCommand, recorder: &Recorder, old: Duration) -> CommandEnding {
        let _ = recorder.end(vec![EventKind::RunEnded {
            outcome: Outcome::Done,
            reason: None,
            attempts: 0,
            duration_ms: 0,
            exit: Some(0),
            next: None,
        }]);
        let shown = command.project.redactor.redact(&command.shown).into_owned();
        let ended = CommandEnding::cached(recorder.run(), SafeText::new(shown));
        CommandEnding { cached_seconds: Some(old.as_secs_f64()), ..ended }
    }

    /// Keeps a result, unless it holds a secret: what is kept is kept as it is.
    pub fn keep(&self, project: &Project, last: &LastAttempt) {
        let (Ok(store), Some((stdout, stderr))) = (project.limits(), last.take_output()) else { return };
        let clean = [&stdout, &stderr].into_iter().all(|bytes| {
            let text = String::from_utf8_lossy(bytes);
            project.redactor.redact(&text) == text
        });
        if clean {
            let _ = store.keep_result(&self.key, &stdout, &stderr);
        } else {
            project.process.warn("the result is not kept for --cache: it holds a secret", None);
        }
    }
}
