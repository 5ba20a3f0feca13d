//! Carrying a plan out: its phases are the nodes of a host, in worktrees or in the folder itself.

use crate::Ending;
use crate::admission::PhaseAdmission;
use crate::allowance::Allowance;
use crate::observers::{Notices, PlanFiles};
use crate::record::RunRecord;
use crate::start::{Begun, PlanFile, RunError, Workspace, folder_name};
use crate::view::ViewFolder;
use crate::workspace::{
    Advisor, Baselines, ContinueSession, Equipment, InPlace, PhaseExecutor, PhaseRunner, Worktrees,
};
use backstop_config::PlanSettings;
use backstop_core::{
    End, ErrorKind, HintedError, Name, OnFailure, Parallel, Policy, RetryWhen, Rules, SafeText,
};
use backstop_runtime::host::{Host, HostError, HostParts, Observer, StopRequest};
use backstop_runtime::{KeepAwake, Project, Recorder, aftermath, machine_state};
use backstop_store::Hold;
use backstop_work::git::Interrupt;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a run of a plan is made of.
pub struct PlanRun<'r> {
    /// The project.
    pub project: &'r Arc<Project>,
    /// The plan.
    pub file: &'r PlanFile,
    /// Its settings.
    pub settings: &'r PlanSettings,
    /// Who works on each phase, with which gates and limits.
    pub equipment: Vec<Equipment>,
    /// How often a phase is attempted.
    pub policy: Arc<Policy>,
    /// Where views are written.
    pub views: &'r ViewFolder,
    /// The command that resumes it.
    pub resume_command: String,
    /// The budget that each attempt takes a unit of.
    pub budget: Option<Name>,
    /// Time since the run was started or resumed, the machine's sleep included.
    pub clock: &'r (dyn Fn() -> Duration + Sync),
    /// How long to wait before anything begins.
    pub start_after: Duration,
    /// Where this is a part of a larger run: what that asks for.
    pub stage: Option<Stage<'r>>,
}

/// What a larger run asks of its phases. Phases that failed for good are set aside while the others
/// go on, all whose dependencies are complete may run at once, and the end is recorded by the
/// larger run.
#[derive(Clone, Copy)]
pub struct Stage<'r> {
    /// At which ends the work is brought to the user.
    pub concludes: &'r (dyn Fn(&End) -> bool + Sync),
    /// What workers are told beyond their phase.
    pub advisor: Advisor<'r>,
    /// Whether its phases only read: then they run side by side in the folder itself, too.
    pub only_reads: bool,
}

/// How a run of a plan ended, and its record.
pub struct Ran {
    /// How it ended.
    pub ending: Ending,
    /// Its record.
    pub recorder: Recorder,
    /// The hold of a larger run, which goes on.
    pub hold: Option<Hold>,
}

/// How many phases of this plan run at once in this workspace. In the folder itself only those that
/// change nothing run side by side.
pub fn jobs(workspace: &Workspace, settings: &PlanSettings, only_read: bool) -> usize {
    if matches!(workspace, Workspace::InPlace(_)) && !only_read { 1 } else { settings.jobs }
}

/// Why a run broke off.
#[derive(Debug, thiserror::Error)]
pub enum PlanRunError {
    /// It could not begin.
    #[error("{0}")]
    Start(#[from] RunError),
    /// It could not go on.
    #[error("{0}")]
    Host(#[from] HostError),
}

impl HintedError for PlanRunError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Start(error) => error.kind(),
            Self::Host(_) => ErrorKind::Failed,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Start(error) => error.hints(),
            Self::Host(error) => vec![error.hint()],
        }
    }

    fn is_multiline(&self) -> bool {
        matches!(self, Self::Start(error) if HintedError::is_multiline(error))
    }
}

impl PlanRun<'_> {
    /// Carries it out until it is complete, halts or is stopped; then what follows the end of every
    /// run.
    pub fn run(
        self,
        begun: Begun,
        observer: &mut impl Observer<RunRecord>,
        requests: Receiver<StopRequest>,
    ) -> Result<Ran, PlanRunError> {
        let Begun { recorder, record, workspace, hold, opened, .. } = begun;
        let project = self.project;
        let run = recorder.run();
        let jobs = jobs(&workspace, self.settings, self.stage.is_some_and(|stage| stage.only_reads));
        let classifier = project.classifier(&[]).map_err(RunError::from)?;
        let folder = project.folder().map_err(RunError::from)?;
        let scratch =
            folder.work_folder(&project.root, &folder_name(run, "scratch")).map_err(RunError::from)?;
        let admission =
            PhaseAdmission::new(project, &recorder, &record, &self.equipment, self.budget.as_ref())
                .map_err(RunError::from)?
                .with_allowance(Allowance::new(self.settings, self.resume_command.clone()));
        let runner = PhaseRunner {
            plan: &self.file.plan,
            plan_path: SafeText::new(self.file.file.to_string_lossy()),
            equipment: self.equipment,
            gate_timeout: self.settings.gate_timeout,
            classifier: &classifier,
            redactor: Arc::clone(&project.redactor),
            views: self.views.clone(),
            scratch: scratch.clone(),
            recorder: &recorder,
            mark: project.process.mark(run),
            now: &project.process.now,
            allow_overage: self.settings.allow_overage,
            linked: workspace.repo().map(|repo| repo.sources(&self.settings.link)).unwrap_or_default(),
            continue_session: ContinueSession::from_name(&self.settings.continue_session),
            to_come: record.to_come(),
            baselines: Mutex::new(Baselines::of(record.base_gates.clone())),
            gates_found: Mutex::default(),
            results: project.limits().ok().cloned(),
            advisor: self.stage.map(|stage| stage.advisor),
            uncounted: std::sync::OnceLock::new(),
        };
        let requests = match workspace.repo() {
            Some(repo) => interrupting(requests, repo.interrupt()),
            None => requests,
        };
        let (file, options) = (self.file.file.clone(), self.file.options());
        let mut files = PlanFiles::new(self.views, file, options, self.resume_command.clone());
        let pass_time = project.process.pass_time;
        let mut awake = KeepAwake::new(self.settings.inhibit);
        let mut notices = Notices::new(project);
        let drive = |executor: &PhaseExecutor<'_>| {
            let others: [&mut dyn Observer<_>; 3] = [observer, &mut awake, &mut notices];
            let parts = HostParts {
                log: &recorder,
                record,
                opened,
                rules: rules(jobs, self.settings, self.stage.is_some()),
                policy: Arc::clone(&self.policy),
                recovery_disabled: project.process.disabled,
                executor,
                admission: &admission,
                observers: files.observers(self.stage.is_none()).into_iter().chain(others).collect(),
                is_stage: self.stage.is_some(),
                concludes: self.stage.map_or(&|end| *end == End::Complete, |stage| stage.concludes),
                halt_timeout: self.settings.halt_timeout,
                resume: self.resume_command.clone(),
                clock: self.clock,
                pass_time: pass_time.as_ref().map(|pass| pass as &(dyn Fn(Duration) + Sync)),
                start_after: self.start_after,
                annotate_fault: &|fault| machine_state::observe(project, recorder.deferred_count(), fault),
                random: &|| project.process.random_unit(),
            };
            let ended = Host::new(parts).and_then(|host| host.run(requests));
            ended.inspect_err(|error| {
                aftermath::broke_off(project, &self.file.path, run, &error.to_string());
            })
        };
        let ending = match workspace {
            Workspace::Worktrees(setup) => {
                let worktrees = Worktrees::new(&runner, *setup);
                let ending = drive(&worktrees)?;
                if ending.conclusion.is_some() {
                    worktrees.remove_slots();
                }
                ending
            }
            Workspace::InPlace(place) => {
                let place = *place;
                drive(&InPlace {
                    runner: &runner,
                    folder: place.folder,
                    repo: place.repo,
                    commit: place.commit,
                    exclude: place.exclude,
                    before: place.before,
                    touched: Mutex::default(),
                })?
            }
        };
        let _ = std::fs::remove_dir_all(&scratch);
        // A larger run goes on: nobody else may take it up meanwhile.
        let hold = self.stage.is_some().then_some(hold);
        admission.learn(&ending.record);
        if self.stage.is_some() {
            return Ok(Ran { ending, recorder, hold });
        }
        let is_done = ending.end == End::Complete && ending.unconcluded.is_none();
        aftermath::run_ended(project, &recorder, is_done);
        recorder.clean();
        Ok(Ran { ending, recorder, hold: None })
    }
}

/// Passes requests to stop on. Those that end attempts end hooks of git as well, at once: a hook
/// that hangs may be what the host waits for.
fn interrupting(requests: Receiver<StopRequest>, git: Interrupt) -> Receiver<StopRequest> {
    let (sender, passed_on) = channel();
    // Ends with the process, or when whoever asks is gone.
    std::thread::spawn(move || {
        while let Ok(request) = requests.recv() {
            // The host first: it must know why an integration ends.
            let is_heard = sender.send(request).is_ok();
            match request {
                StopRequest::Finish => {}
                StopRequest::End => git.hooks(),
                StopRequest::Kill => git.all(),
            }
            if !is_heard {
                break;
            }
        }
    });
    passed_on
}

fn rules(jobs: usize, settings: &PlanSettings, is_stage: bool) -> Rules {
    Rules {
        jobs,
        parallel: if is_stage || settings.parallel == "auto" { Parallel::Auto } else { Parallel::Declared },
        retry: if settings.retry == "immediate" { RetryWhen::Immediate } else { RetryWhen::AfterSiblings },
        on_failure: if is_stage { OnFailure::BlockNode } else { OnFailure::HaltRun },
    }
}
