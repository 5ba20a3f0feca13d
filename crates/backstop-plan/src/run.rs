//! Carrying a plan out: its phases are the nodes of a host, in worktrees or in the folder itself.

use crate::Ending;
use crate::admission::PhaseAdmission;
use crate::allowance::Allowance;
use crate::observers::PlanFiles;
use crate::record::RunRecord;
use crate::start::{Begun, PlanFile, RunError, Workspace, folder_name};
use crate::view::ViewFolder;
use crate::workspace::{
    Baseline, ContinueSession, Equipment, InPlace, PhaseExecutor, PhaseRunner, Worktrees,
};
use backstop_config::PlanSettings;
use backstop_core::{End, Name, Parallel, Policy, RetryWhen, Rules, SafeText};
use backstop_runtime::host::{Host, HostError, HostParts, Observer, StopRequest};
use backstop_runtime::{Project, Recorder, aftermath, machine_state};
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
    /// Time since the run was started or resumed.
    pub clock: &'r (dyn Fn() -> Duration + Sync),
}

/// How a run of a plan ended, and its record.
pub struct Ran {
    /// How it ended.
    pub ending: Ending,
    /// Its record.
    pub recorder: Recorder,
}

/// How many phases of this plan run at once in this workspace.
pub fn jobs(workspace: &Workspace, settings: &PlanSettings) -> usize {
    if matches!(workspace, Workspace::InPlace(_)) { 1 } else { settings.jobs }
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
        let jobs = jobs(&workspace, self.settings);
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
            continue_session: ContinueSession::from_name(&self.settings.continue_session),
            to_come: record.to_come(),
            baseline: Mutex::new(Baseline::of(record.base_gates.clone())),
            results: project.limits().ok().cloned(),
        };
        let requests = match workspace.repo() {
            Some(repo) => interrupting(requests, repo.interrupt()),
            None => requests,
        };
        let mut files = PlanFiles::new(self.views, self.file.file.clone(), self.resume_command.clone());
        let drive = |executor: &PhaseExecutor<'_>| {
            let parts = HostParts {
                log: &recorder,
                record,
                opened,
                rules: rules(jobs, self.settings),
                policy: Arc::clone(&self.policy),
                recovery_disabled: project.process.disabled,
                executor,
                admission: &admission,
                observers: files.observers().into_iter().chain([observer as &mut dyn Observer<_>]).collect(),
                halt_timeout: self.settings.halt_timeout,
                resume: self.resume_command.clone(),
                clock: self.clock,
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
                if ending.end == End::Complete && ending.unconcluded.is_none() {
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
                })?
            }
        };
        let _ = std::fs::remove_dir_all(&scratch);
        drop(hold);
        admission.learn(&ending.record);
        let is_done = ending.end == End::Complete && ending.unconcluded.is_none();
        aftermath::run_ended(project, &recorder, is_done);
        recorder.clean();
        Ok(Ran { ending, recorder })
    }
}

/// Passes requests to stop on. Those that end attempts end hooks of git as well, at once: a hook that
/// hangs may be what the host waits for.
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

fn rules(jobs: usize, settings: &PlanSettings) -> Rules {
    Rules {
        jobs,
        parallel: if settings.parallel == "auto" { Parallel::Auto } else { Parallel::Declared },
        retry: if settings.retry == "immediate" { RetryWhen::Immediate } else { RetryWhen::AfterSiblings },
    }
}
