//! Makes one attempt of a phase in a folder: runs its agent or command, then its gates, and judges
//! the result.

use super::attempt_log::AttemptLog;
use super::attempt_process::AttemptProcess;
use super::baseline::Baselines;
use super::sessions::{self, ContinueSession};
use crate::document::{Phase, Plan};
use crate::record::fault_message;
use crate::view::ViewFolder;
use backstop_classify::Classifier;
use backstop_core::{BaseGate, Fault, Reason, Redactor, SafeText, Timestamp};
use backstop_exec::{Limits, Started, Stop};
use backstop_runtime::Recorder;
use backstop_runtime::host::{AgentSession, AttemptJob, AttemptResult, Note, Reporter};
use backstop_store::{Child, LimitStore};
use backstop_work::agent::{Agent, Assignment, Attempted, Work};
use backstop_work::gate::Gate;
use backstop_work::idioms::Idioms;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// How much of the reason of a refusal is logged.
const REFUSAL_CHARS_MAX: usize = 400;

/// What does the work of a phase.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant)] // One for each phase: a few dozen at most.
pub enum Worker {
    /// A coding agent.
    Agent {
        /// The agent.
        agent: Agent,
        /// The model that it is told to use; without one it chooses.
        model: Option<String>,
    },
    /// A command of the plan.
    Command(backstop_work::CommandLine),
    /// Nobody: a person says that the work is done, and only its gates are run.
    Nobody,
}

/// What a phase is run with.
#[derive(Debug, Clone)]
pub struct Equipment {
    /// The agent or command.
    pub worker: Worker,
    /// The agents that take over while the agent is limited, in order.
    pub fallbacks: Vec<Agent>,
    /// The gates that the work must pass.
    pub gates: Vec<Gate>,
    /// How long an attempt may take, how long it may be silent, how much output is kept.
    pub limits: Limits,
    /// What sets a worktree up before anybody works in it.
    pub setup: Option<Setup>,
    /// Files or patterns that the work must not change.
    pub protect: Vec<String>,
    /// Patterns that what was added must, or must not, have.
    pub idioms: Idioms,
    /// The whole prompt of an agent that is to answer in words and whose changes count for nothing.
    pub asked: Option<String>,
}

/// What else the worker of an attempt is given, where somebody has something for it.
#[derive(Debug, Clone, Default)]
pub struct Advice {
    /// What it should know: what others delivered, what failed elsewhere.
    pub context: Option<SafeText>,
    /// How many turns with tools it has, where its output shows them.
    pub iterations_max: Option<u32>,
}

/// Asked before each attempt what its worker should know.
pub type Advisor<'a> = &'a (dyn Fn(&AttemptJob) -> Advice + Sync);

/// What sets a worktree up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// The command.
    pub command: backstop_work::CommandLine,
    /// Files or patterns that it depends on. An empty list means the usual lock files.
    pub inputs: Vec<String>,
}

/// Makes attempts of a plan's phases.
pub struct PhaseRunner<'c> {
    /// The plan.
    pub plan: &'c Plan,
    /// The plan's path, for prompts.
    pub plan_path: SafeText,
    /// What each phase is run with, by its place in the plan.
    pub equipment: Vec<Equipment>,
    /// How long a gate may take, where the gate does not say.
    pub gate_timeout: Option<Duration>,
    /// Classifies failures.
    pub classifier: &'c Classifier,
    /// Masks secrets in logs and prompts.
    pub redactor: Arc<Redactor>,
    /// Where attempt logs are written.
    pub views: ViewFolder,
    /// A private folder for the files of attempts, outside the worktrees. It is removed when the
    /// run ends.
    pub scratch: PathBuf,
    /// The run's record: started processes are recorded, so that a later Backstop can end them.
    pub recorder: &'c Recorder,
    /// The value of `BACKSTOP_RUN_MARK`, by which processes of this run are recognised.
    pub mark: String,
    /// The wall clock.
    pub now: &'c (dyn Fn() -> Timestamp + Sync),
    /// The phases that are not complete when the run is started or resumed, by their places in the
    /// plan.
    pub to_come: Vec<usize>,
    /// What the gates said of the tree that the run starts from.
    pub(crate) baselines: Mutex<Baselines>,
    /// What the gates said of each phase's work when they ran last.
    pub(crate) gates_found: Mutex<BTreeMap<usize, Vec<BaseGate>>>,
    /// Where it is remembered that a gate passes on a tree.
    pub results: Option<Arc<LimitStore>>,
    /// When a retry continues the agent's own session.
    pub continue_session: ContinueSession,
    /// What workers are told beyond the plan.
    pub advisor: Option<Advisor<'c>>,
    /// Set once it was said that iterations cannot be counted.
    pub(crate) uncounted: OnceLock<()>,
    /// Whether agents may go on with paid usage once a subscription is used up.
    pub allow_overage: bool,
    /// The paths of the project that a worktree has as links.
    pub linked: Vec<PathBuf>,
}

impl Equipment {
    /// Who works in an attempt: the worker of the phase, or the one that has taken over.
    pub fn worker(&self, taken_over: Option<&str>) -> Worker {
        let other = taken_over.and_then(|name| self.fallbacks.iter().find(|agent| agent.name == name));
        match other {
            // The model is one of the phase's own agent.
            Some(agent) => Worker::Agent { agent: agent.clone(), model: None },
            None => self.worker.clone(),
        }
    }
}

/// The folder of one attempt, and what its processes need to know.
pub(super) struct AttemptDir<'b> {
    pub(super) node: usize,
    pub(super) attempt: u32,
    pub(super) folder: &'b Path,
    /// The tip that the work is judged against, where the run has one.
    pub(super) tip: Option<String>,
    /// The number of the worktree slot, counted from 1.
    pub(super) slot: usize,
    /// The commit that holds what the failed or lost attempt before this one left.
    pub(super) previous: Option<String>,
    /// Whether the tree that the attempt begins from has changed since the failed attempt before
    /// it.
    pub(super) moved_since: bool,
    /// Whether the folder has what the attempt left whose session may be continued.
    pub(super) has_earlier_work: bool,
    pub(super) stop: &'b Stop,
    pub(super) reporter: &'b Reporter,
}

/// Whether files were changed since the attempt began; nothing where that cannot be known.
pub(super) type IsChanged<'c> = &'c dyn Fn() -> Option<bool>;

impl PhaseRunner<'_> {
    pub(super) fn phase(&self, node: usize) -> &Phase {
        &self.plan.phases[node]
    }

    pub(super) fn key(&self, node: usize) -> &str {
        self.phase(node).id.key().as_str()
    }

    /// The environment of an attempt's processes: the phase's variables and Backstop's own.
    pub(super) fn env(&self, dir: &AttemptDir<'_>) -> Vec<(String, String)> {
        let mut env: Vec<(String, String)> = self
            .phase(dir.node)
            .settings
            .env
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut set = |name: &str, value: String| env.push((name.to_owned(), value));
        set("BACKSTOP_RUN_ID", self.recorder.run().to_string());
        set("BACKSTOP_RUN_MARK", self.mark.clone());
        set("BACKSTOP_PHASE", self.key(dir.node).to_owned());
        set("BACKSTOP_ATTEMPT", dir.attempt.to_string());
        set("BACKSTOP_SLOT", dir.slot.to_string());
        if let Some(previous) = &dir.previous {
            set("BACKSTOP_PREVIOUS", previous.clone());
        }
        env
    }

    /// The folder in which the agent or command of an attempt works: the phase's own below the
    /// attempt's, made where it is not there yet.
    pub(super) fn work_folder(&self, dir: &AttemptDir<'_>) -> PathBuf {
        let Some(own) = &self.phase(dir.node).settings.dir else { return dir.folder.to_owned() };
        let folder = dir.folder.join(own);
        match std::fs::create_dir_all(&folder) {
            Ok(()) => folder,
            Err(error) => {
                self.note_refusal(dir, &format!("it works in the project's folder: {own}: {error}"));
                dir.folder.to_owned()
            }
        }
    }

    /// Opens the log of an attempt.
    pub(super) fn log(&self, node: usize, attempt: u32) -> AttemptLog {
        let opened = self.views.open_attempt_log(self.key(node), attempt);
        AttemptLog::new(opened, Arc::clone(&self.redactor))
    }

    /// Notes what a person should know of an attempt, whether it succeeded or not.
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
        for oddity in attempted.envelope.iter().flat_map(|envelope| &envelope.oddities) {
            say(format!("{id}: in the agent's result {oddity}; the rest of it counts"));
        }
        if attempted.is_contradicted {
            say(format!("{id}: the agent says that the phase is complete, and ended with an error"));
        }
        if !attempted.unended.is_empty() {
            say(format!("{id}: could not be ended: {}", attempted.unended.join(", ")));
        }
        if let Some(trouble) = &attempted.log_trouble {
            say(format!("{id}: its log is not whole: {trouble}"));
        }
    }

    /// Notes a file of an attempt that cannot be written. The attempt goes on without it.
    pub(super) fn note_refusal(&self, dir: &AttemptDir<'_>, what: &str) {
        let text = format!("{}: {what}", self.phase(dir.node).id.shown());
        dir.reporter.note(Note::Message(SafeText::new(text)));
    }

    pub(super) fn record_child(&self, dir: &AttemptDir<'_>, started: Started) {
        // If this cannot be recorded, neither can the next event, and the run ends there.
        self.recorder.child_started(Child {
            // Attempt 0 is a check of a tree that no phase has worked on.
            operation: (dir.attempt > 0).then(|| SafeText::new(self.key(dir.node))),
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
        if let Some(trouble) = log.trouble() {
            self.note_refusal(dir, &format!("it has no log: {trouble}"));
        }
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

    /// What the worker of an attempt is told beyond the plan.
    pub(super) fn advice(&self, job: &AttemptJob) -> Advice {
        self.advisor.map(|advisor| advisor(job)).unwrap_or_default()
    }

    /// What an agent is told beside its task: what an advisor says, where there is one, else what
    /// the phases before it delivered.
    fn context(&self, job: &AttemptJob, advised: Option<SafeText>) -> Option<SafeText> {
        if self.advisor.is_some() { advised } else { self.delivered_before(job.node) }
    }

    /// Who works in this attempt.
    pub(super) fn worker(&self, job: &AttemptJob) -> Worker {
        self.equipment[job.node].worker(job.worker.as_deref())
    }

    /// The agent of an attempt, where it is an agent that works in it.
    pub(super) fn agent(&self, job: &AttemptJob) -> Option<Agent> {
        match self.worker(job) {
            Worker::Agent { agent, .. } => Some(agent),
            Worker::Command(_) | Worker::Nobody => None,
        }
    }

    /// The session that an attempt is to continue, before it is known where it will work.
    pub(super) fn session_to_continue(&self, job: &AttemptJob) -> Option<AgentSession> {
        self.continue_session.session(job, self.agent(job).as_ref())
    }

    fn attempt(
        &self,
        job: &AttemptJob,
        dir: &AttemptDir<'_>,
        log: &AttemptLog,
        changed: IsChanged<'_>,
    ) -> AttemptResult {
        let key = self.key(job.node);
        let scratch = self.scratch.join(format!("{key}-{}", job.attempt));
        if let Err(error) = std::fs::create_dir_all(&scratch) {
            let mut fault = Fault::new(Reason::StateInvalid);
            fault.cause = Some(SafeText::new(format!("cannot make {}: {error}", scratch.display())));
            return AttemptResult::failed(fault);
        }
        let context = self.retry_context(job, dir);
        let advice = self.advice(job);
        let process = AttemptProcess {
            runner: self,
            job,
            dir,
            log,
            scratch: &scratch,
            context: context.as_ref(),
            iterations_max: advice.iterations_max,
        };
        if let Some(prompt) = &self.equipment[job.node].asked {
            return match process.words(prompt.clone()) {
                Ok(attempted) => self.judge_answer(dir, attempted),
                Err(error) => AttemptResult::failed(error.fault()),
            };
        }
        let made = match &self.worker(job) {
            Worker::Nobody => return self.judge_accepted(dir, log),
            Worker::Command(line) => process.run(Work::Command(line.clone()), None),
            Worker::Agent { .. } => {
                let assignment = Assignment {
                    context: self.context(job, advice.context).map(|text| self.masked(&text)),
                    ..self.assignment(job, context.clone(), &scratch)
                };
                let session = self.session_to_continue(job).filter(|session| {
                    self.agent(job).is_some_and(|agent| sessions::fits(session, &agent, dir, (self.now)()))
                });
                process.agent(&assignment, session)
            }
        };
        match made {
            Ok(attempted) => {
                let is_limited = advice.iterations_max.is_some() && self.agent(job).is_some();
                if is_limited && attempted.iterations.is_none() && self.uncounted.set(()).is_ok() {
                    let text = "iterations are not counted: this agent prints no events of its turns";
                    dir.reporter.note(Note::Message(text.into()));
                }
                let ask = |attempted: &Attempted| process.ask(attempted);
                self.judge_attempt(dir, log, changed, attempted, &ask)
            }
            Err(error) => AttemptResult::failed(error.fault()),
        }
    }
}
