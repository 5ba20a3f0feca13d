//! One operation as a run: attempts under the engine, with the project's recorder and admission
//! around them.

use crate::admission::OperationAdmission;
use crate::machine_state;
use crate::project::Project;
use crate::recorder::Recorder;
use backstop_classify::Classifier;
use backstop_core::{Fault, Policy};
use backstop_engine::{Cancel, Engine, Finished, Operation};
use std::sync::Arc;
use std::time::Duration;

/// Everything around an operation that is attempted: a command, a tool call, a request.
#[derive(Debug)]
pub struct OperationRun {
    /// The project that it runs in.
    pub project: Arc<Project>,
    /// Where it is recorded.
    pub recorder: Arc<Recorder>,
    /// What it asks before each attempt.
    pub admission: Arc<OperationAdmission>,
    /// Says what a failure is.
    pub classifier: Arc<Classifier>,
    /// How often, and how long apart.
    pub policy: Arc<Policy>,
    /// Asks for its end.
    pub cancel: Cancel,
    /// How long all attempts may take, from now.
    pub deadline: Option<Duration>,
    /// Whether it may be repeated where nobody knows how far it got.
    pub repeatable: bool,
    /// The command that repeats it where a person or agent has to say so.
    pub confirm_with: String,
}

impl OperationRun {
    /// Attempts it until it succeeds or nothing more is to be tried. How it ended is not recorded
    /// yet.
    pub async fn attempt<O: Operation>(&self, name: &str, operation: O) -> Finished<O::Output> {
        let (project, counted) = (Arc::clone(&self.project), Arc::clone(&self.recorder));
        let observe = move |fault: &mut Fault| {
            machine_state::observe(&project, counted.deferred_count(), fault);
        };
        let recent = Arc::clone(&self.recorder);
        let budget = self.project.retry_budget();
        let engine = Engine::new(Arc::clone(&self.policy))
            .classifying(Arc::clone(&self.classifier))
            .observed_by(Arc::new(observe))
            .recording(Arc::clone(&self.recorder) as Arc<_>)
            .admitted_by(Arc::clone(&self.admission) as Arc<_>)
            .cancelled_by(self.cancel.clone())
            .deadline(self.deadline)
            .disabled(self.project.process.disabled)
            .budget(budget, Some(Arc::new(move || recent.recent(budget.window))))
            .repeatable(self.repeatable, self.confirm_with.clone());
        engine.run(name, operation).await
    }

    /// What was learned from its failures. Gives how often in a row it has failed the same way,
    /// where that is a loop.
    pub fn learn<T>(&self, finished: &Finished<T>) -> Option<u32> {
        self.admission.ended(&finished.faults, finished.result.is_ok(), finished.attempts)
    }
}
