//! A plan that is ready to be run: read, with its settings, and with somebody who works on each
//! phase. What a surface does is ask a person, show, and pass on requests to stop.

use super::{
    Begun, Equipper, PlanFile, Prompts, RunError, RunRequest, SuggestedGates, begin, drop_missing_fallbacks,
    missing_programs, preflight, view_name,
};
use crate::document::ReadOptions;
use crate::present::{done_phases, forecast};
use crate::record::RunRecord;
use crate::run::PlanRun;
use crate::view::ViewFolder;
use crate::workspace::Equipment;
use backstop_config::PlanSettings;
use backstop_core::{Name, Policy};
use backstop_report::plan::DryRun;
use backstop_runtime::Project;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How a plan is read, and where its phases work.
#[derive(Default)]
pub struct PlanRequest {
    /// The format and the granularity, where they are not to be guessed.
    pub options: ReadOptions,
    /// The folder that phases work in, below the project's root.
    pub dir: Option<String>,
    /// The phases whose gates alone are run.
    pub accepted: Vec<String>,
    /// The last run of this plan.
    pub last: Option<RunRecord>,
    /// Whether everything is done anew.
    pub fresh: bool,
}

/// A plan that is ready to be run.
pub struct PreparedPlan {
    /// The plan.
    pub file: PlanFile,
    /// Its settings.
    pub settings: PlanSettings,
    /// Where its views are written.
    pub views: ViewFolder,
    /// Whether a person was asked about the gates that the project's files suggest, and what they
    /// said.
    pub run_gates: Option<bool>,
    project: Arc<Project>,
    equipper: Equipper,
    equipment: Vec<Equipment>,
    policy: Arc<Policy>,
    /// For each phase, whether it is done or skipped.
    done: Vec<bool>,
}

impl PreparedPlan {
    /// Reads a plan and equips its phases. Without `prompts` nobody is asked.
    pub fn new(
        project: &Arc<Project>,
        plan: &Path,
        request: &PlanRequest,
        prompts: Option<&dyn Prompts>,
    ) -> Result<Self, RunError> {
        let mut file = PlanFile::read(plan, &project.root, &request.options)?;
        file.plan.work_in(request.dir.as_deref());
        project.redactor.learn(file.secrets());
        let mut equipper = Equipper::new(&project.config, &project.root, SuggestedGates::may_run(project))?;
        let undecided = equipper.undecided_gates(&file.plan);
        let prompts = prompts.filter(|_| !undecided.is_empty());
        let run_gates = prompts.and_then(|prompts| prompts.run_gates(&undecided));
        if run_gates == Some(true) {
            equipper.run_detected_gates();
        }
        let mut equipment = equipper.equip(&file.plan)?;
        Equipper::accept(&file.plan, &mut equipment, &request.accepted)?;
        Ok(Self {
            settings: project.config.plan(),
            views: ViewFolder::new(&project.root, &view_name(&file.path)),
            policy: Arc::new(project.config.policy("phase").map_err(backstop_runtime::ProjectError::from)?),
            project: Arc::clone(project),
            done: done_phases(&file.plan, request.last.as_ref(), request.fresh),
            run_gates,
            file,
            equipper,
            equipment,
        })
    }

    /// What would be done.
    pub fn forecast(&self, request: &RunRequest, prompts: &dyn Prompts) -> Result<DryRun, RunError> {
        let place = preflight(request, &self.project, prompts, &self.settings, &self.file, None)?;
        let (file, equipment, notes) = (&self.file, &self.equipment, self.notes());
        let again = &request.resume_command;
        let (settings, policy) = (&self.settings, &self.policy);
        Ok(forecast(file, equipment, &self.done, settings, policy, &place, &notes, again))
    }

    /// What a person should know about the gates of this plan.
    pub fn notes(&self) -> Vec<String> {
        self.equipper.notes(&self.file.plan, &self.equipment)
    }

    /// Begins a run, or goes on with one. `is_there` says whether a program is on the PATH. What a
    /// person should know is in its notes.
    pub fn begin(
        &mut self,
        request: &RunRequest,
        prompts: &dyn Prompts,
        is_there: &dyn Fn(&str) -> bool,
    ) -> Result<Begun, RunError> {
        let missing = missing_programs(&self.file.plan, &self.equipment, is_there);
        if let Some((program, phase)) = missing.into_iter().next() {
            return Err(RunError::AgentMissing { program, phase });
        }
        let unable = drop_missing_fallbacks(&mut self.equipment, is_there);
        let (project, file, views) = (&self.project, &self.file, &self.views);
        let attempts = self.policy.usual_attempts();
        let mut begun = begin(request, project, prompts, &self.settings, file, views, attempts)?;
        begun.notes =
            self.notes().into_iter().chain(unable).chain(std::mem::take(&mut begun.notes)).collect();
        Ok(begun)
    }

    /// The run of this plan, to be carried out once it has begun.
    pub fn run<'r>(
        &'r self,
        resume_command: String,
        budget: Option<Name>,
        clock: &'r (dyn Fn() -> Duration + Sync),
        start_after: Duration,
    ) -> PlanRun<'r> {
        PlanRun {
            project: &self.project,
            file: &self.file,
            settings: &self.settings,
            equipment: self.equipment.clone(),
            policy: Arc::clone(&self.policy),
            views: &self.views,
            resume_command,
            budget,
            clock,
            start_after,
            stage: None,
        }
    }
}
