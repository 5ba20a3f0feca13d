//! What every attempt has in common, wherever it runs: the agent or command, then the gates, then a judgement.

use super::attempt_log::AttemptLog;
use crate::document::{Phase, Plan};
use crate::record::fault_message;
use crate::view::ViewFolder;
use backstop_classify::Classifier;
use backstop_core::{Fault, Reason, Redactor, SafeText, Timestamp};
use backstop_exec::{Limits, Started, Stop};
use backstop_runtime::host::{AttemptJob, AttemptResult, Note, Reporter};
use backstop_store::{Child, RunJournal};
use backstop_work::Log;
use backstop_work::agent::{Agent, Attempt, Attempted, Work, attempt, prompt};
use backstop_work::gate::Gate;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How much of the reason of a refusal is logged.
const REFUSAL_CHARS_MAX: usize = 400;

/// Who works on a phase.
#[derive(Debug, Clone)]
pub enum Worker {
    /// An agent, with the model it is told to use.
    Agent {
        /// The agent.
        agent: Agent,
        /// Its model, where it is not its own choice.
        model: Option<String>,
    },
    /// A command.
    Command(backstop_work::CommandLine),
}

/// What a phase needs to be worked on.
#[derive(Debug, Clone)]
pub struct Equipment {
    /// Who works.
    pub worker: Worker,
    /// What the work must pass.
    pub gates: Vec<Gate>,
    /// How long an attempt may take, and be silent.
    pub limits: Limits,
}

/// What every attempt of a run has in common.
pub struct PhaseRunner<'c> {
    /// The plan.
    pub plan: &'c Plan,
    /// Its path, as it is shown.
    pub plan_path: SafeText,
    /// What each phase needs.
    pub equipment: Vec<Equipment>,
    /// How long a gate may take.
    pub gate_timeout: Option<Duration>,
    /// Says what a failure is.
    pub classifier: &'c Classifier,
    /// Masks what is kept.
    pub redactor: Arc<Redactor>,
    /// Where logs go.
    pub views: ViewFolder,
    /// A private folder for files of attempts, which goes when the run ends: file systems are slow where files come and go.
    pub scratch: PathBuf,
    /// The pen of the run, for processes that a later Backstop may have to find.
    pub journal: &'c RunJournal,
    /// What everything below this run is marked with.
    pub mark: String,
    /// The time.
    pub now: &'c (dyn Fn() -> Timestamp + Sync),
    /// Whether never more than one attempt is under way.
    pub one_at_a_time: bool,
}

/// Where processes run, and for which attempt.
pub(super) struct AttemptDir<'b> {
    pub(super) node: usize,
    pub(super) attempt: u32,
    pub(super) folder: &'b Path,
    /// The number of the slot, counted from 1.
    pub(super) slot: usize,
    /// The commit that holds what the attempt before this one left.
    pub(super) previous: Option<String>,
    pub(super) stop: &'b Stop,
    pub(super) reporter: &'b Reporter,
}

/// Whether the folder was changed since the attempt began; nothing where nobody knows.
pub(super) type IsChanged<'c> = &'c dyn Fn() -> Option<bool>;

impl PhaseRunner<'_> {
    pub(super) fn phase(&self, node: usize) -> &Phase {
        &self.plan.phases[node]
    }

    pub(super) fn key(&self, node: usize) -> &str {
        self.phase(node).id.key().as_str()
    }

    /// Variables of everything that is run for an attempt. By them its processes are told from others'.
    pub(super) fn env(&self, dir: &AttemptDir<'_>) -> Vec<(String, String)> {
        let mut env: Vec<(String, String)> = self
            .phase(dir.node)
            .settings
            .env
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut set = |name: &str, value: String| env.push((name.to_owned(), value));
        set("BACKSTOP_RUN_ID", self.journal.id().to_string());
        set("BACKSTOP_RUN_MARK", self.mark.clone());
        set("BACKSTOP_PHASE", self.key(dir.node).to_owned());
        set("BACKSTOP_ATTEMPT", dir.attempt.to_string());
        set("BACKSTOP_SLOT", dir.slot.to_string());
        if let Some(previous) = &dir.previous {
            set("BACKSTOP_PREVIOUS", previous.clone());
        }
        env
    }

    /// The log of an attempt.
    pub(super) fn log(&self, node: usize, attempt: u32) -> AttemptLog {
        let file = self.views.attempt_log(self.key(node), attempt);
        AttemptLog::open(&file, Arc::clone(&self.redactor))
    }

    /// What a person should know of an attempt, whatever came of it.
    pub(super) fn note_oddities(&self, dir: &AttemptDir<'_>, attempted: &Attempted) {
        let id = self.phase(dir.node).id.shown();
        let say = |text: String| dir.reporter.note(Note::Message(SafeText::new(text)));
        if let Some(first) = attempted.denials.first() {
            let count = attempted.denials.len();
            say(format!(
                "{id}: the agent was denied what it asked for, {count} times; first: {}",
                first.line(200)
            ));
        }
        if !attempted.unended.is_empty() {
            say(format!("{id}: could not be ended: {}", attempted.unended.join(", ")));
        }
        if let Some(trouble) = &attempted.log_trouble {
            say(format!("{id}: its log is not whole: {trouble}"));
        }
    }

    pub(super) fn record_child(&self, dir: &AttemptDir<'_>, started: Started) {
        // Where this cannot be recorded, the next event meets the same trouble and the run ends.
        let _ = self.journal.child_started(Child {
            operation: Some(SafeText::new(self.key(dir.node))),
            attempt: dir.attempt,
            pid: started.process.pid,
            start: started.process.start,
            group: started.group,
        });
    }

    /// Makes an attempt in a folder, with its gates.
    pub(super) fn perform(
        &self,
        job: &AttemptJob,
        dir: &AttemptDir<'_>,
        changed: IsChanged<'_>,
    ) -> AttemptResult {
        let log = self.log(job.node, job.attempt);
        let result = self.attempt(job, dir, &log, changed);
        log.finish();
        result
    }

    /// Writes into the log of an attempt why it was refused: whoever looks for the log finds out.
    pub(super) fn log_refusal(&self, job: &AttemptJob, fault: &Fault) {
        let log = self.log(job.node, job.attempt);
        log.write_line(&format!("not started: {}", fault_message(fault).line(REFUSAL_CHARS_MAX)));
        log.finish();
    }

    fn attempt(
        &self,
        job: &AttemptJob,
        dir: &AttemptDir<'_>,
        log: &AttemptLog,
        changed: IsChanged<'_>,
    ) -> AttemptResult {
        let equipment = &self.equipment[job.node];
        let key = self.key(job.node);
        let scratch = self.scratch.join(format!("{key}-{}", job.attempt));
        let context = self.retry_context(job, dir);
        let tasks = self.tasks(job.node);
        let work = match &equipment.worker {
            Worker::Agent { agent, model } => {
                let prompt = prompt(&self.assignment(job, context.clone(), &scratch));
                let file = self.views.attempt_log(key, job.attempt).with_extension("prompt.md");
                let _ = backstop_store::write_view(&file, self.redactor.redact(&prompt).as_bytes());
                Work::Agent { agent, model: model.as_deref(), prompt }
            }
            Worker::Command(line) => Work::Command(line.clone()),
        };
        if let Err(error) = std::fs::create_dir_all(&scratch) {
            let mut fault = Fault::new(Reason::StateInvalid);
            fault.cause = Some(SafeText::new(format!("cannot make {}: {error}", scratch.display())));
            return AttemptResult::failed(fault);
        }
        let made = attempt(
            Attempt {
                work,
                folder: dir.folder,
                scratch: &scratch,
                phase_key: key,
                number: job.attempt,
                tasks: &tasks,
                env: self.env(dir),
                limits: equipment.limits.clone(),
                retry_context: context.as_ref(),
                log: Log::to(log.clone()),
                redactor: &self.redactor,
                exclusive: self.one_at_a_time,
            },
            self.classifier,
            (self.now)(),
            &job.stop,
            |started| self.record_child(dir, started),
        );
        match made {
            Ok(attempted) => self.judge_attempt(dir, log, changed, attempted),
            Err(error) => AttemptResult::failed(error.fault()),
        }
    }
}
