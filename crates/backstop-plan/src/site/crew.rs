//! What every attempt has in common, wherever it runs: the agent or command, then the gates, then a judgement.

use super::log::AttemptLog;
use crate::document::{Phase, Plan};
use crate::host::{AttemptJob, CONFLICT, Checked, Note, Tell, message};
use crate::view::ViewFolder;
use backstop_classify::Classifier;
use backstop_core::{Delivery, Dispatch, Fault, Reason, Redactor, SafeText, Timestamp};
use backstop_exec::{Limits, Started, Stop};
use backstop_report::{GuidanceContext, retry_guidance};
use backstop_store::{Child, RunJournal};
use backstop_work::agent::{
    Agent, Assignment, Attempt, Attempted, Claim, GateToRun, RetryContext, Task, Work, attempt, prompt,
    result_file,
};
use backstop_work::gate::{self, Gate, GateRun, Judgement, judge};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How much of the end of an attempt's output is recorded.
const OUTPUT_BYTES_MAX: usize = 2 << 10;
/// How long the first line of a commit may be that nobody wrote.
const SUBJECT_CHARS_MAX: usize = 150;
/// How much of a failure's details the next attempt is told.
const DETAILS_CHARS_MAX: usize = 4000;

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

/// Rate limits that are shared with others.
pub trait Shared: Sync {
    /// Waits until the provider lets us; what stands in the way for too long is a fault.
    fn before(&self, provider: &str, stop: &Stop, waiting: &dyn Fn(Duration)) -> Option<Fault>;
    /// An attempt failed.
    fn failed(&self, provider: &str, fault: &Fault);
}

/// What every attempt of a run has in common.
pub struct Crew<'c> {
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
    /// Rate limits that are shared with others.
    pub shared: &'c dyn Shared,
    /// Whether never more than one attempt is under way.
    pub one_at_a_time: bool,
}

/// Where an attempt runs.
pub(super) struct Bench<'b> {
    pub(super) folder: &'b Path,
    /// The number of the slot, counted from 1.
    pub(super) slot: usize,
    /// The commit that holds what the attempt before this one left.
    pub(super) previous: Option<String>,
    /// Whether the folder was changed since the attempt began; nothing where nobody knows.
    pub(super) changed: &'b dyn Fn() -> Option<bool>,
}

/// What came of an attempt, before anything is saved.
pub(super) struct Performed {
    pub(super) fault: Option<Box<Fault>>,
    pub(super) dispatch: Dispatch,
    pub(super) worker_lost: bool,
    pub(super) exit: Option<i64>,
    pub(super) signal: Option<String>,
    pub(super) output: Option<SafeText>,
    pub(super) delivery: Delivery,
}

impl Performed {
    pub(super) fn failed(fault: Box<Fault>) -> Self {
        Self {
            fault: Some(fault),
            dispatch: Dispatch::NotDispatched,
            worker_lost: false,
            exit: None,
            signal: None,
            output: None,
            delivery: Delivery::default(),
        }
    }
}

impl Crew<'_> {
    pub(super) fn phase(&self, node: usize) -> &Phase {
        &self.plan.phases[node]
    }

    fn key(&self, node: usize) -> &str {
        self.phase(node).id.key().as_str()
    }

    /// Variables of everything that is run for an attempt. By them its processes are told from others'.
    fn env(&self, job: &AttemptJob, bench: &Bench<'_>) -> Vec<(String, String)> {
        let mut env: Vec<(String, String)> = self
            .phase(job.node)
            .settings
            .env
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut set = |name: &str, value: String| env.push((name.to_owned(), value));
        set("BACKSTOP_RUN_ID", self.journal.id().to_string());
        set("BACKSTOP_RUN_MARK", self.mark.clone());
        set("BACKSTOP_PHASE", self.key(job.node).to_owned());
        set("BACKSTOP_ATTEMPT", job.attempt.to_string());
        set("BACKSTOP_SLOT", bench.slot.to_string());
        if let Some(previous) = &bench.previous {
            set("BACKSTOP_PREVIOUS", previous.clone());
        }
        env
    }

    fn started(&self, job: &AttemptJob, started: Started) {
        // Where this cannot be recorded, the next event meets the same trouble and the run ends.
        let _ = self.journal.child_started(Child {
            operation: Some(SafeText::new(self.key(job.node))),
            attempt: job.attempt,
            pid: started.process.pid,
            start: started.process.start,
            group: started.group,
        });
    }

    /// Makes an attempt in a folder, with its gates.
    pub(super) fn perform(&self, job: &AttemptJob, bench: &Bench<'_>, tell: &Tell) -> Performed {
        let equipment = &self.equipment[job.node];
        let log = AttemptLog::open(
            &self.views.attempt_log(self.key(job.node), job.attempt),
            Arc::clone(&self.redactor),
        );
        if let Worker::Agent { agent, .. } = &equipment.worker
            && let Some(provider) = &agent.provider
        {
            let waiting = |wait| tell.note(Note::Guard(provider.clone(), wait));
            if let Some(fault) = self.shared.before(provider, &job.stop, &waiting) {
                return Performed::failed(Box::new(fault));
            }
        }
        let performed = self.attempt(job, bench, &log, tell);
        if let (Some(fault), Worker::Agent { agent, .. }) = (&performed.fault, &equipment.worker)
            && let Some(provider) = &agent.provider
        {
            self.shared.failed(provider, fault);
        }
        log.finish();
        performed
    }

    fn attempt(&self, job: &AttemptJob, bench: &Bench<'_>, log: &AttemptLog, tell: &Tell) -> Performed {
        let equipment = &self.equipment[job.node];
        let key = self.key(job.node);
        let scratch = self.scratch.join(format!("{key}-{}", job.attempt));
        let context = self.retry_context(job, bench);
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
            return Performed::failed(Box::new(fault));
        }
        let made = attempt(
            Attempt {
                work,
                folder: bench.folder,
                scratch: &scratch,
                phase_key: key,
                number: job.attempt,
                tasks: &tasks,
                env: self.env(job, bench),
                limits: equipment.limits.clone(),
                retry_context: context.as_ref(),
                log: Box::new(log.clone()),
                redactor: &self.redactor,
                exclusive: self.one_at_a_time,
            },
            self.classifier,
            (self.now)(),
            &job.stop,
            |started| self.started(job, started),
        );
        match made {
            Ok(attempted) => self.judged(job, bench, log, tell, attempted),
            Err(error) => Performed::failed(Box::new(error.fault())),
        }
    }

    /// The third signal: what the gates say, beside what was claimed.
    fn judged(
        &self,
        job: &AttemptJob,
        bench: &Bench<'_>,
        log: &AttemptLog,
        tell: &Tell,
        attempted: Attempted,
    ) -> Performed {
        let phase = self.phase(job.node);
        let is_agent = matches!(self.equipment[job.node].worker, Worker::Agent { .. });
        let claim = attempted.envelope.as_ref().map(|envelope| envelope.status);
        let done = tasks_done(phase.tasks.len(), is_agent, &attempted);
        // What only claims to have failed may still have done its work: the gates and the tree say so.
        let only_claims = claim == Some(Claim::Failed) && attempted.exit == Some(0);
        let mut fault = attempted.fault.clone().map(Box::new);
        if fault.is_none() || only_claims {
            let checks = self.check(job, bench.folder, self.env(job, bench), log, tell, &job.stop);
            let left = u32::try_from(phase.tasks.len() - done.len()).ok();
            fault = match checks {
                Ok(checks) => match judge(claim, &checks, (bench.changed)(), left) {
                    Judgement::Complete => None,
                    // The agent's own words say more than that it claims to have failed.
                    Judgement::Failed(found) if found.reason == Reason::TaskIncomplete && only_claims => {
                        fault.or(Some(found))
                    }
                    Judgement::Failed(found) => Some(found),
                },
                Err(found) => Some(found),
            };
        }
        if fault.is_none() && is_agent && (bench.changed)() == Some(false) {
            fault = Some(Box::new(did_nothing()));
        }
        if let Some(fault) = fault.as_mut().filter(|fault| fault.cause.is_none()) {
            fault.cause = Some(SafeText::new(match ending(&attempted.tail) {
                Some(output) => output.raw().lines().last().unwrap_or_default().to_owned(),
                None => match (attempted.exit, &attempted.signal) {
                    (_, Some(signal)) => format!("it was ended by {signal} and said nothing"),
                    (exit, None) => format!("it exited with {} and said nothing", exit.unwrap_or(-1)),
                },
            }));
        }
        let taken = |name: &str| matches!(name, "SIGKILL" | "SIGTERM" | "SIGHUP" | "SIGINT");
        let worker_lost = fault.is_some()
            && !attempted.timed_out
            && job.stop.requests() == 0
            && attempted.signal.as_deref().is_some_and(taken);
        let message = phase.settings.message.as_ref().map(|text| SafeText::new(text.clone()));
        let claimed = attempted.envelope.as_ref().and_then(|envelope| envelope.commit_message.clone());
        Performed {
            output: fault.as_ref().and_then(|_| ending(&attempted.tail)),
            fault,
            dispatch: attempted.dispatch,
            worker_lost,
            exit: attempted.exit,
            signal: attempted.signal,
            delivery: Delivery {
                tasks_done: done,
                tasks_total: u32::try_from(phase.tasks.len()).unwrap_or(u32::MAX),
                message: message.or(claimed),
                ..Delivery::default()
            },
        }
    }

    /// Runs the gates of a phase in a folder. What keeps them from running is a fault.
    pub(super) fn check(
        &self,
        job: &AttemptJob,
        folder: &Path,
        env: Vec<(String, String)>,
        log: &AttemptLog,
        tell: &Tell,
        stop: &Stop,
    ) -> Result<Vec<gate::Checked>, Box<Fault>> {
        let gates = &self.equipment[job.node].gates;
        if gates.is_empty() {
            return Ok(Vec::new());
        }
        log.say("--- gates ---");
        let usual = GateRun::new(folder, self.classifier, (self.now)());
        let run = GateRun {
            env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            log: gate::Log::to(log.clone()),
            limits: Limits { wall: self.gate_timeout, ..usual.limits.clone() },
            exclusive: self.one_at_a_time,
            ..usual
        };
        let mut started = |started: gate::StartedGate<'_>| {
            tell.note(Note::Checking(started.gate.to_owned()));
            self.started(job, started.child);
        };
        let mut done = |checked: &gate::Checked| {
            tell.checked(Checked {
                gate: checked.gate.clone(),
                passed: checked.passed,
                reason: checked.fault.as_ref().map(|fault| fault.reason),
                flaky: checked.flaky.clone(),
                duration: checked.duration,
            });
        };
        gate::run(gates, &run, stop, &mut started, &mut done).map_err(|error| {
            let mut fault = Fault::new(Reason::StateInvalid);
            fault.cause = Some(SafeText::new(error.to_string()));
            fault.suggested_action = SafeText::new(error.hint());
            Box::new(fault)
        })
    }

    fn tasks(&self, node: usize) -> Vec<Task> {
        self.phase(node).tasks.iter().map(|task| Task { text: task.text.clone(), done: task.done }).collect()
    }

    fn retry_context(&self, job: &AttemptJob, bench: &Bench<'_>) -> Option<RetryContext> {
        let fault = job.previous.as_deref()?;
        let phase = self.phase(job.node);
        let gate = self.equipment[job.node].gates.iter().find(|gate| fits(gate, fault.reason));
        let is_open = |(n, _): &(usize, &crate::document::Task)| {
            !job.tasks_done.iter().any(|done| *done as usize == n + 1)
        };
        let remaining =
            phase.tasks.iter().enumerate().filter(is_open).map(|(_, task)| task.text.clone()).collect();
        let guided = GuidanceContext {
            check: gate.map(|gate| SafeText::new(gate.check.shown())),
            fix: gate.and_then(|gate| gate.fix.as_ref()).map(|fix| SafeText::new(fix.shown())),
            found: fault.cause.clone().filter(|_| fault.reason == Reason::VerificationMismatch),
            remaining,
            ..GuidanceContext::default()
        };
        let mut guidance = retry_guidance(fault.reason, &fault.facts, &guided);
        if let Some(previous) = &bench.previous {
            guidance.push_str(&format!(
                " You begin from a clean tree. What the last attempt left is kept as commit {previous}: look at it \
                 with `git show {previous}`, and take over what was right."
            ));
        }
        Some(RetryContext {
            previous_error_type: fault.reason.code().to_owned(),
            previous_error_message: message(fault),
            previous_error_details: details(fault, job.output.as_ref()),
            tasks_completed: u32::try_from(job.tasks_done.len()).unwrap_or(u32::MAX),
            tasks_total: u32::try_from(phase.tasks.len()).unwrap_or(u32::MAX),
            retry_guidance: guidance,
        })
    }

    fn assignment(&self, job: &AttemptJob, retry: Option<RetryContext>, scratch: &Path) -> Assignment {
        let phase = self.phase(job.node);
        let sibling = |node: &usize| {
            let other = self.phase(*node);
            SafeText::new(format!("{} {}", other.id.shown(), other.name.raw()))
        };
        let gate = |gate: &Gate| GateToRun {
            name: gate.name.clone(),
            check: SafeText::new(gate.check.shown()),
            fix: gate.fix.as_ref().map(|fix| SafeText::new(fix.shown())),
        };
        Assignment {
            phase_id: phase.id.shown().to_owned(),
            phase_key: self.key(job.node).to_owned(),
            phase_name: phase.name.clone(),
            plan: self.plan_path.clone(),
            section: phase.section.clone(),
            tasks: self.tasks(job.node),
            gates: self.equipment[job.node].gates.iter().map(gate).collect(),
            siblings: job.beside.iter().map(sibling).collect(),
            files: phase.settings.files.iter().map(|file| SafeText::new(file.clone())).collect(),
            attempt: job.chance,
            of: job.of,
            retry,
            conflict: conflict(job),
            result_file: SafeText::new(result_file(scratch).to_string_lossy()),
        }
    }

    /// What a phase's commit says where nobody said anything.
    pub(super) fn message(&self, node: usize, delivery: &Delivery) -> String {
        match &delivery.message {
            // A terminal shows commits: nothing that it would act on goes into one.
            Some(message) if !message.raw().trim().is_empty() => {
                SafeText::new(message.raw().trim()).terminal()
            }
            _ => {
                let phase = self.phase(node);
                format!("Phase {}: {}", phase.id.shown(), phase.name.line(SUBJECT_CHARS_MAX))
            }
        }
    }
}

/// What the work of the last attempt did not go together with.
pub(super) fn conflict(job: &AttemptJob) -> Option<SafeText> {
    let evidence = &job.previous.as_ref()?.evidence;
    evidence.iter().find(|evidence| evidence.rule == CONFLICT).map(|evidence| evidence.text.clone())
}

/// The numbers of the tasks that were done, counted from 1.
fn tasks_done(total: usize, is_agent: bool, attempted: &Attempted) -> Vec<u32> {
    let count = |n: usize| (1..=u32::try_from(n.min(total)).unwrap_or(u32::MAX)).collect();
    if !is_agent && attempted.envelope.is_none() {
        return if attempted.fault.is_none() { count(total) } else { Vec::new() };
    }
    let Some(envelope) = &attempted.envelope else { return Vec::new() };
    if let Some(done) = &envelope.tasks_done {
        let valid = |n: &&usize| (1..=total).contains(*n);
        return done.iter().filter(valid).filter_map(|n| u32::try_from(*n).ok()).collect();
    }
    match (envelope.status, envelope.tasks_completed) {
        (Claim::Complete, None) => count(total),
        (_, Some(n)) => count(usize::try_from(n).unwrap_or(0)),
        (Claim::Failed, None) => Vec::new(),
    }
}

fn did_nothing() -> Fault {
    let mut fault = Fault::new(Reason::VerificationMismatch);
    fault.cause = Some("the agent says that the phase is complete, and nothing was changed".into());
    fault.suggested_action =
        "read the agent's log; where there was nothing to do, pass the phase over with `backstop plan skip`"
            .into();
    fault
}

/// Whether a failure is of the kind that a gate finds.
fn fits(gate: &Gate, reason: Reason) -> bool {
    use backstop_work::gate::Kind;
    matches!(
        (gate.kind(), reason),
        (Kind::Lint, Reason::LintError)
            | (Kind::Format, Reason::FormatError)
            | (Kind::Typecheck, Reason::TypecheckError | Reason::CompileError)
            | (Kind::Test, Reason::TestFailure | Reason::FlakyTest)
    )
}

/// What was found out about a failure, beyond its one line.
fn details(fault: &Fault, output: Option<&SafeText>) -> SafeText {
    let mut lines = Vec::new();
    let mut list = |label: &str, names: &[SafeText]| {
        if !names.is_empty() {
            let names: Vec<String> = names.iter().take(20).map(|name| name.line(200)).collect();
            lines.push(format!("{label}: {}", names.join(", ")));
        }
    };
    list("tests", &fault.facts.failed_tests);
    list("files", &fault.facts.files);
    list("rules", &fault.facts.rules);
    for evidence in fault.evidence.iter().take(5) {
        match evidence.rule == CONFLICT {
            true => lines.push(evidence.text.raw().to_owned()),
            false => lines.push(format!("{}: {}", evidence.rule, evidence.text.line(400))),
        }
    }
    if let Some(output) = output {
        lines.push(format!("the end of its output:\n{}", output.raw()));
    }
    let text = lines.join("\n");
    SafeText::new(text.chars().take(DETAILS_CHARS_MAX).collect::<String>())
}

fn ending(tail: &[u8]) -> Option<SafeText> {
    let text = String::from_utf8_lossy(tail);
    let text = text.trim_end();
    let from = text.ceil_char_boundary(text.len().saturating_sub(OUTPUT_BYTES_MAX));
    let cut = if from == 0 { text } else { text[from..].split_once('\n').map_or("", |(_, rest)| rest) };
    (!cut.trim().is_empty()).then(|| SafeText::new(cut))
}
