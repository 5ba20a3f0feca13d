//! A stage: phases under the runtime's host, with what they are equipped with.

use super::*;
use backstop_runtime::host::NodeRecord;
use std::collections::BTreeSet;

impl Driver<'_, '_> {
    /// Runs phases that answer in words.
    pub(super) fn run_asked(
        &mut self,
        phases: Vec<Phase>,
        limit: Option<Duration>,
    ) -> Result<StageEnd, CampaignError> {
        let found = self.plan_file(phases);
        let mut equipment = self.equipper.equip(&found.plan)?;
        for (phase, equipment) in found.plan.phases.iter().zip(&mut equipment) {
            equipment.asked = Some(phase.section.raw().to_owned());
            equipment.gates = Vec::new();
            if let Some(limit) = limit {
                equipment.limits.wall = Some(equipment.limits.wall.map_or(limit, |wall| wall.min(limit)));
            }
        }
        let mut policy = self.campaign.project.config.policy("state")?;
        if limit.is_some() {
            // Time that is over is not given again: the others' answers are what there is.
            policy = policy.with_cell(Reason::Timeout, 1, How::Again, None);
        }
        let settings = PlanSettings { jobs: Mode::ALL.len(), ..self.campaign.settings.clone() };
        let nothing = |_: &_| Advice::default();
        let stage = Stage { concludes: &|_| false, advisor: &nothing, only_reads: true };
        let (end, _) = self.run_stage(&found, equipment, &settings, policy, stage, None)?;
        Ok(end)
    }

    /// Runs the tasks, as far as they can be; or begins nothing, and brings to the user what is
    /// complete.
    pub(super) fn run_tasks(&mut self, begins: bool) -> Result<(StageEnd, Option<Executed>), CampaignError> {
        let found = self.plan_file(task_phases(&self.record.plan));
        let mut equipment = self.equipper.equip(&found.plan)?;
        let missing = missing_programs(&found.plan, &equipment, self.campaign.is_there);
        if let Some((program, phase)) = missing.into_iter().next().filter(|_| begins) {
            return Err(RunError::AgentMissing { program, phase }.into());
        }
        self.prove(&mut equipment);
        let project = self.campaign.project;
        let earlier = project.journal()?.lessons(LESSONS_READ).unwrap_or_default();
        let mut known = Knowledge::new(self.record.plan.clone(), earlier);
        self.recorder()?.events().iter().for_each(|event| known.learn(event));
        let known = Arc::new(Mutex::new(known));
        let for_advice = Arc::clone(&known);
        let advisor = move |job: &_| for_advice.lock().unwrap_or_else(PoisonError::into_inner).advice(job);
        let may_replan = begins && self.record.counters().replans < REPLANS_MAX;
        let lands_halted = !self.would_be_in_the_way();
        let concludes = move |end: &End| match end {
            End::Complete | End::Blocked(_) => true,
            // Another plan may come: then its work is brought to the user with this.
            End::Stuck { unreachable, .. } => unreachable.len() < REPLAN_UNREACHABLE_MIN || !may_replan,
            End::Halted(_) => lands_halted,
            End::Stopped => false,
        };
        let policy = self.task_policy()?;
        let stage = Stage { concludes: &concludes, advisor: &advisor, only_reads: false };
        let settings = self.campaign.settings.clone();
        self.is_landed = false;
        let tasks = TaskStage { known, begins };
        self.run_stage(&found, equipment, &settings, policy, stage, Some(tasks))
    }

    /// How often a task is attempted. What its workspace is made of is made anew once where it is
    /// broken, with nothing but the task itself; then the task is blocked, and the others go on.
    pub(super) fn task_policy(&self) -> Result<backstop_core::Policy, CampaignError> {
        let policy = self.campaign.project.config.policy("phase")?;
        Ok(policy.with_cell(Reason::StateInvalid, 2, How::Again, None))
    }

    /// The policy of a state's phases: what ends the campaign is not the same for tasks.
    pub(super) fn stage_policy(&self, state: State) -> Result<backstop_core::Policy, CampaignError> {
        match state {
            State::Execute | State::Build => self.task_policy(),
            _ => Ok(self.campaign.project.config.policy("phase")?),
        }
    }

    /// Whether work that is in the user's folder, uncommitted, would be taken for changes of theirs
    /// when the campaign goes on: another task may change the same file.
    fn would_be_in_the_way(&self) -> bool {
        let is_uncommitted = !matches!(self.record.run.plan.commit.as_str(), "auto" | "single");
        let mut files = BTreeSet::new();
        let mut deltas = self.record.plan.tasks.iter().flat_map(|task| &task.delta);
        is_uncommitted && deltas.any(|file| !files.insert(file))
    }

    /// Gives each task its proof, its preflight and its idioms.
    pub(super) fn prove(&self, equipment: &mut [Equipment]) {
        let plan = &self.record.plan;
        for (task, equipment) in plan.tasks.iter().zip(equipment) {
            let gate =
                |name: String, line: &String| Gate::new(name, CommandLine::Shell(line.clone()), Origin::Plan);
            let preflight = task
                .preflight
                .iter()
                .enumerate()
                .map(|(at, line)| gate(format!("preflight-{}", at + 1), line));
            let mut gates: Vec<Gate> = preflight.chain([gate("verify".to_owned(), &task.verify)]).collect();
            for own in &mut gates {
                own.flaky = 2;
            }
            gates.append(&mut equipment.gates);
            equipment.gates = gates;
            equipment.idioms = plan.idioms.and(&task.idioms);
            if task.kind == TaskType::Verify {
                equipment.worker = Worker::Nobody;
                equipment.fallbacks.clear();
            }
        }
    }

    pub(super) fn run_stage(
        &mut self,
        found: &PlanFile,
        mut equipment: Vec<Equipment>,
        settings: &PlanSettings,
        policy: backstop_core::Policy,
        stage: Stage<'_>,
        tasks: Option<TaskStage>,
    ) -> Result<(StageEnd, Option<Executed>), CampaignError> {
        let project = self.campaign.project;
        let mut workspace = self.workspace(found)?;
        set_slots(project, &mut workspace, self.run)?;
        meet(&mut workspace, self.run, &self.record.run)?;
        let views = views(project, self.run);
        if let Err(error) = views.make() {
            self.audience
                .note(&format!("the views in {} cannot be written: {error}", views.path().display()));
        }
        for note in drop_missing_fallbacks(&mut equipment, self.campaign.is_there) {
            self.audience.note(&note);
        }
        let jobs = jobs(&workspace, settings, stage.only_reads);
        let (Some(recorder), Some(hold)) = (self.recorder.take(), self.hold.take()) else {
            return Err(CampaignError::NoCampaign);
        };
        let mut record = self.record.run.clone();
        if tasks.as_ref().is_some_and(|tasks| !tasks.begins) {
            let waiting = |node: &&mut NodeRecord| node.status != NodeStatus::Complete;
            let nodes = record.progress.nodes.values_mut().filter(waiting);
            nodes.for_each(|node| node.status = NodeStatus::Blocked);
        }
        let known = tasks.map(|tasks| tasks.known);
        let begun = Begun { recorder, record, workspace, notes: Vec::new(), hold, opened: Vec::new() };
        let (requests, stopper) = self.relay.stage();
        let plan_run = PlanRun {
            project,
            file: found,
            settings,
            equipment,
            policy: Arc::new(policy),
            views: &views,
            resume_command: self.campaign.request.resume_command.clone(),
            budget: self.campaign.budget.clone(),
            clock: self.campaign.clock,
            start_after: Duration::ZERO,
            stage: Some(stage),
        };
        let ran = {
            let inner = self.audience.stage(&found.plan, jobs);
            let mut observer = StageObserver { inner, known: known.clone(), stopper, is_own_stop: false };
            plan_run.run(begun, &mut observer, requests)
        };
        let Ran { ending, recorder, hold } = ran?;
        self.recorder = Some(recorder);
        self.hold = hold;
        self.record = CampaignRecord::of(&self.recorder()?.events());
        if let Some(conclusion) = ending.conclusion {
            self.work = conclusion.work;
            self.is_landed = true;
        }
        let forced =
            known.and_then(|known| known.lock().unwrap_or_else(PoisonError::into_inner).forced.clone());
        let forced = forced.filter(|_| !self.relay.is_stopped());
        let end = match (ending.unprepared, ending.unconcluded, ending.end) {
            // What halted it is what a person has to know of; its work is tried again with the
            // rest.
            (None, Some(_), end @ End::Halted(_)) => StageEnd::Over(end),
            (Some(fault), _, _) | (None, Some(fault), _) => StageEnd::Unconcluded(fault),
            (None, None, End::Stopped) => StageEnd::Stopped(ending.frozen),
            (None, None, end) => StageEnd::Over(end),
        };
        Ok((end, forced))
    }
}
