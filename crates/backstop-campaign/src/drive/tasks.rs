//! REGISTER, EXECUTE, CASCADE and OBSERVE: what comes of the tasks, another plan, and lessons.

use super::*;

impl Driver<'_, '_> {
    /// Workspaces of the tasks. Lines that are no numbers are no reason not to begin: the builder is
    /// told of the whole file.
    pub(super) fn register(&mut self) -> Result<Option<CampaignEnd>, CampaignError> {
        let mut with = Vec::new();
        for task in self.record.plan.tasks.iter().filter(|task| !task.has_valid_lines()) {
            let mut fault = fault_of(
                Reason::StateInvalid,
                format!("target_lines of task {} are no line numbers", task.seq),
            );
            fault.suggested_action = SafeText::new("the whole file is given instead");
            with.push(EventKind::ErrorClassified {
                operation: SafeText::new(format!("workspace {}", task.workspace_id())),
                attempt: 1,
                fault: Box::new(fault),
            });
            with.push(recovered("fallback_context", true));
        }
        self.take(&Outcome::Registered, None, with)
    }

    pub(super) fn execute(&mut self) -> Result<Option<CampaignEnd>, CampaignError> {
        let (end, forced) = self.run_tasks()?;
        let executed = match (end, forced) {
            (StageEnd::Stopped(_), Some(forced)) => forced,
            (StageEnd::Over(End::Complete), _) => Executed::Complete,
            (StageEnd::Over(End::Blocked(_)), _) => Executed::Blocked,
            (StageEnd::Over(End::Stuck { unreachable, .. }), _) => {
                Executed::Stuck { unreachable: unreachable.len() }
            }
            (StageEnd::Unconcluded(reason), _) => Executed::Halted(reason.code().to_owned()),
            (StageEnd::Over(End::Halted(_)), _) => {
                let reason = self.record.run.progress.nodes.values().filter_map(|node| node.last_error());
                let newest = reason
                    .max_by_key(|error| error.total)
                    .map_or(Reason::Unknown, |error| error.fault.reason);
                let halted = self.halt_reason().unwrap_or(newest);
                Executed::Halted(halted.code().to_owned())
            }
            (end @ (StageEnd::Stopped(_) | StageEnd::Over(End::Stopped)), _) => {
                return self.interrupted(&end);
            }
        };
        let fault = match &executed {
            Executed::Complete | Executed::Blocked | Executed::Stuck { .. } => None,
            Executed::IterationsExhausted => {
                Some(fault_of(Reason::IterationExhausted, "20 attempts in a row finished no task"))
            }
            Executed::StuckDetected => {
                Some(fault_of(Reason::StuckDetected, "nothing has changed at three looks"))
            }
            Executed::Halted(code) => {
                let reason = Reason::from_code(code).unwrap_or(Reason::Unknown);
                Some(fault_of(reason, format!("a failure that ends the campaign: {code}")))
            }
        };
        self.take(&Outcome::Executed(executed), fault, Vec::new())
    }

    /// The reason for which the stage halted: the policy's own.
    pub(super) fn halt_reason(&self) -> Option<Reason> {
        let policy = self.campaign.project.config.policy("phase").ok()?;
        let halts = |reason: &Reason| matches!(policy.allowance(*reason).how, How::Halt);
        let nodes = self.record.run.progress.nodes.values();
        let failed = nodes.filter(|node| node.status == NodeStatus::Failed);
        failed.filter_map(|node| node.last_error()).map(|error| error.fault.reason).find(halts)
    }

    pub(super) fn cascade(&mut self) -> Result<Option<CampaignEnd>, CampaignError> {
        if self.record.is_replanning() {
            return self.replan();
        }
        let unreachable = self.record.unreachable().len();
        let outcome = Outcome::Analysed { unreachable };
        let fault = (unreachable >= REPLAN_UNREACHABLE_MIN).then(|| {
            let blocked = self.record.tasks_with("blocked").join(", ");
            fault_of(Reason::CascadeStuck, format!("{unreachable} tasks wait for what is blocked: {blocked}"))
        });
        if step(State::Cascade, &outcome, self.record.counters()).goto == Goto::Replan {
            let number = self.record.counters().replans + 1;
            let loaded = self.loaded(self.planners(number, true))?;
            return self.take(&outcome, fault, vec![loaded]);
        }
        let blocks = self.propagated();
        self.take(&outcome, fault, blocks)
    }

    /// What waits for blocked tasks is blocked, too: nobody will come for it.
    pub(super) fn propagated(&self) -> Vec<EventKind> {
        self.record.unreachable().into_iter().map(|seq| task_entered(seq, NodeStatus::Blocked)).collect()
    }

    pub(super) fn replan(&mut self) -> Result<Option<CampaignEnd>, CampaignError> {
        let number = self.record.counters().replans;
        let phases = self.planners(number, true);
        let end = self.run_asked(phases, None)?;
        if let Some(end) = self.interrupted(&end)? {
            return Ok(Some(end));
        }
        let text = self.record.answer_of(&replanner_phase(number)).unwrap_or_default().to_owned();
        match self.replanned(&text) {
            Ok(replanned) => {
                let text = serde_json::to_string(&replanned.plan).unwrap_or_default();
                let mut with: Vec<EventKind> =
                    replanned.reopened.iter().map(|seq| task_entered(seq, NodeStatus::Pending)).collect();
                with.push(EventKind::TasksRegistered { plan: SafeText::new(text) });
                with.push(self.loaded(task_phases(&replanned.plan))?);
                self.take(&Outcome::Replanned, None, with)
            }
            Err(why) => {
                let mut with = self.propagated();
                // The tasks are what the campaign is about again.
                with.push(self.loaded(task_phases(&self.record.plan))?);
                self.take(&Outcome::ReplanRefused, Some(fault_of(Reason::CascadeStuck, why)), with)
            }
        }
    }

    pub(super) fn replanned(&self, text: &str) -> Result<Replanned, String> {
        let answer = crate::planner_answer::PlannerAnswer::read(text);
        let plan = answer.plan.ok_or_else(|| "the planner gave no other plan".to_owned())?;
        let plan = TaskPlan::read(&with_objective(&plan, self.record.objective().raw()))
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
        replan::merge(&self.record, &plan).map_err(|error| error.to_string())
    }

    pub(super) fn observe(&mut self) -> Result<Option<CampaignEnd>, CampaignError> {
        let project = self.campaign.project;
        let learned =
            lessons::lessons(&self.record, &self.recorder()?.events(), self.run, project.process.now());
        if let Err(error) = project.journal()?.keep_lessons(&learned) {
            self.audience.note(&format!("lessons could not be written: {error}"));
        }
        let progress = &self.record.run.progress;
        let blocked = self.record.tasks_with("blocked");
        let pending = self.record.tasks_with("pending");
        let is_done = blocked.is_empty() && pending.is_empty();
        let first = blocked.first().or(pending.first());
        let reason = first
            .and_then(|seq| self.record.run.phase_of(seq)?.node.last_error().map(|error| error.fault.reason));
        let duration = progress.active_before + (self.campaign.clock)();
        let over = EventKind::RunEnded {
            outcome: if is_done { RunOutcome::Done } else { RunOutcome::Partial },
            reason: (!is_done).then(|| reason.unwrap_or(Reason::CascadeStuck)),
            attempts: progress.attempts(),
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            exit: Some(if is_done { 0 } else { 4 }),
            next: first.map(|seq| SafeText::new(format!("backstop campaign retry {seq}"))),
        };
        let step = step(State::Observe, &Outcome::Observed, self.record.counters());
        let Goto::State(state) = step.goto else {
            return Ok(Some(CampaignEnd::Returned(Reason::StateInvalid)));
        };
        self.append(vec![entered(state), over])?;
        Ok(None)
    }
}

/// A re-plan says only what changes: its objective is the campaign's.
fn with_objective(plan: &Value, objective: &str) -> Value {
    let mut plan = plan.clone();
    if plan.is_object() && plan.get("objective").is_none() {
        plan["objective"] = Value::from(objective);
    }
    if plan.is_object() && plan.get("tasks").is_none() {
        plan["tasks"] = Value::Array(Vec::new());
    }
    plan
}
