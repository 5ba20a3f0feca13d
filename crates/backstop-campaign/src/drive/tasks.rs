//! REGISTER, EXECUTE, CASCADE and OBSERVE: what comes of the tasks, another plan, and lessons.

use super::*;

impl Driver<'_, '_> {
    /// Workspaces of the tasks. Lines that are no numbers are no reason not to begin: the builder
    /// is told of the whole file.
    pub(super) fn register(&mut self) -> Result<Option<CampaignEnd>, CampaignError> {
        let with = Self::fallback_contexts(&self.record.plan);
        self.take(&StepOutcome::Registered, None, with)
    }

    /// What is recorded of tasks whose lines are no numbers.
    pub(super) fn fallback_contexts(plan: &TaskPlan) -> Vec<EventKind> {
        let mut with = Vec::new();
        for task in plan.tasks.iter().filter(|task| !task.has_valid_lines()) {
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
        with
    }

    pub(super) fn execute(&mut self) -> Result<Option<CampaignEnd>, CampaignError> {
        let blocked: Vec<String> = self.record.tasks_with("blocked").into_iter().map(str::to_owned).collect();
        let (end, forced) = self.run_tasks(true)?;
        let mut with = Vec::new();
        let (executed, fault) = match (end, forced) {
            (StageEnd::Stopped(_), Some(forced)) => {
                let fault = forced_fault(&forced);
                (forced, fault)
            }
            (StageEnd::Over(End::Complete), _) => (Executed::Complete, None),
            (StageEnd::Over(End::Blocked(_) | End::Stuck { .. }), _) => {
                let unreachable = self.record.unreachable().len();
                match self.exhausted_builder(&blocked) {
                    // Another plan can still help, and is asked for in CASCADE.
                    Some(fault) if !self.is_replan_due(unreachable) => {
                        with = self.propagated();
                        (Executed::BuilderExhausted, Some(fault))
                    }
                    _ if unreachable == 0 => (Executed::Blocked, None),
                    _ => (Executed::Stuck { unreachable }, None),
                }
            }
            (StageEnd::Unconcluded(fault), _) => {
                (Executed::Halted(fault.reason.code().to_owned()), Some(*fault))
            }
            (StageEnd::Over(End::Halted(_)), _) => {
                let fault = self.halting_fault().unwrap_or_else(|| Fault::new(Reason::Unknown));
                (Executed::Halted(fault.reason.code().to_owned()), Some(fault))
            }
            (end @ (StageEnd::Stopped(_) | StageEnd::Over(End::Stopped)), _) => {
                return self.interrupted(&end);
            }
        };
        self.take(&StepOutcome::Executed(executed), fault, with)
    }

    /// The failure of a builder that has used up its iterations, of those not blocked before.
    fn exhausted_builder(&self, before: &[String]) -> Option<Fault> {
        let blocked = self.record.tasks_with("blocked").into_iter();
        let new = blocked.filter(|seq| !before.iter().any(|known| known == seq));
        let mut errors = new.filter_map(|seq| self.record.run.phase_of(seq)?.node.last_error());
        let error = errors.find(|error| error.fault.reason == Reason::BudgetExhausted)?;
        Some(error.fault.as_ref().clone())
    }

    /// Whether CASCADE asks for another plan with so many unreachable tasks.
    fn is_replan_due(&self, unreachable: usize) -> bool {
        let outcome = StepOutcome::Analysed { unreachable, goes_on: false };
        step(State::Cascade, &outcome, self.record.counters()).goto == Goto::Replan
    }

    pub(super) fn cascade(&mut self) -> Result<Option<CampaignEnd>, CampaignError> {
        if self.record.is_replanning() {
            return self.replan();
        }
        let unreachable = self.record.unreachable().len();
        let goes_on = self.record.goes_on();
        let outcome = StepOutcome::Analysed { unreachable, goes_on };
        let fault = (unreachable >= REPLAN_UNREACHABLE_MIN).then(|| {
            let blocked = self.record.tasks_with("blocked").join(", ");
            fault_of(Reason::CascadeStuck, format!("{unreachable} tasks wait for what is blocked: {blocked}"))
        });
        if self.is_replan_due(unreachable) {
            let number = self.record.counters().replans + 1;
            let loaded = self.loaded(self.planners(number, true))?;
            return self.take(&outcome, fault, vec![loaded]);
        }
        // While others go on, what waits may still become part of another plan.
        let blocks = if goes_on { Vec::new() } else { self.propagated() };
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
        let answer = self.record.answer_of(&replanner_phase(number)).map(str::to_owned);
        if answer.is_none()
            && let Some(fault) = self.halting_fault()
        {
            return self.fail(fault);
        }
        let text = answer.unwrap_or_default();
        match self.replanned(&text) {
            Ok(replanned) => {
                let text = serde_json::to_string(&replanned.plan).unwrap_or_default();
                // One that was dropped earlier and is back is another task now.
                let is_back = |seq: &&String| self.record.run.progress.nodes.contains_key(*seq);
                let anew = replanned.reopened.iter().chain(replanned.added.iter().filter(is_back));
                let mut with: Vec<EventKind> =
                    anew.map(|seq| task_entered(seq, NodeStatus::Pending)).collect();
                with.push(EventKind::TasksRegistered { plan: SafeText::new(text) });
                with.push(self.loaded(task_phases(&replanned.plan))?);
                self.take(&StepOutcome::Replanned, None, with)
            }
            Err(why) => {
                let goes_on = self.record.goes_on();
                let mut with = if goes_on { Vec::new() } else { self.propagated() };
                // The tasks are what the campaign is about again.
                with.push(self.loaded(task_phases(&self.record.plan))?);
                let outcome = StepOutcome::ReplanRefused { goes_on };
                self.take(&outcome, Some(fault_of(Reason::CascadeStuck, why)), with)
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

    /// Brings to the user what is complete, where that has not happened yet: another plan might
    /// have come, or it was cut off.
    fn land(&mut self) -> Result<Option<CampaignEnd>, CampaignError> {
        if self.is_landed || self.record.tasks_with("complete").is_empty() {
            return Ok(None);
        }
        let (end, _) = self.run_tasks(false)?;
        if let StageEnd::Unconcluded(fault) = end {
            return self.fail(*fault);
        }
        self.interrupted(&end)
    }

    pub(super) fn observe(&mut self) -> Result<Option<CampaignEnd>, CampaignError> {
        if let Some(end) = self.land()? {
            return Ok(Some(end));
        }
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
        let first = self.record.root_cause();
        let reason = first
            .and_then(|seq| self.record.run.phase_of(seq)?.node.last_error().map(|error| error.fault.reason));
        let duration = progress.active_before + (self.campaign.clock)();
        let over = EventKind::RunEnded {
            outcome: if is_done { Outcome::Done } else { Outcome::Partial },
            reason: (!is_done).then(|| reason.unwrap_or(Reason::CascadeStuck)),
            attempts: progress.attempts(),
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            exit: Some(if is_done { 0 } else { 4 }),
            next: match first {
                _ if self.record.has_ready() => {
                    Some(SafeText::new(self.campaign.request.resume_command.clone()))
                }
                first => first.map(|seq| SafeText::new(format!("backstop campaign retry {seq}"))),
            },
        };
        let step = step(State::Observe, &StepOutcome::Observed, self.record.counters());
        let Goto::State(state) = step.goto else {
            return Ok(Some(CampaignEnd::Returned(Reason::StateInvalid)));
        };
        self.append(vec![entered(state), over])?;
        Ok(None)
    }
}

/// Why CASCADE is entered although tasks could still begin.
fn forced_fault(executed: &Executed) -> Option<Fault> {
    match executed {
        Executed::IterationsExhausted => {
            Some(fault_of(Reason::IterationExhausted, "20 attempts in a row finished no task"))
        }
        Executed::StuckDetected => {
            Some(fault_of(Reason::StuckDetected, "nothing has changed at three looks"))
        }
        _ => None,
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
