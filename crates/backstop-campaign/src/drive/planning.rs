//! EXPLORE and PLAN: explorers and planners are asked, and what they say is read.

use super::*;

impl Driver<'_, '_> {
    pub(super) fn explorers(&self) -> Vec<Phase> {
        let objective = self.record.objective();
        let phase = |mode: Mode| asked_phase(mode.name(), mode.name(), &prompts::explorer(mode, objective));
        Mode::ALL.into_iter().filter_map(phase).collect()
    }

    /// The planner of a round, or the one who is asked for another plan.
    pub(super) fn planners(&self, number: u32, anew: bool) -> Vec<Phase> {
        let (id, name, prompt) = match anew {
            true => (replanner_phase(number), "plan anew", prompts::replanner(&self.record)),
            false => {
                let notes = self.notes_on(number.saturating_sub(1));
                let explored = self.explored().unwrap_or(Value::Null);
                (planner_phase(number), "plan", prompts::planner(&self.record, &explored, &notes))
            }
        };
        asked_phase(&id, name, &prompt).into_iter().collect()
    }

    /// What was wrong with the answer of a round.
    pub(super) fn notes_on(&self, round: u32) -> Vec<String> {
        let Some(text) = self.record.answer_of(&planner_phase(round)) else { return Vec::new() };
        let answer = crate::planner_answer::PlannerAnswer::read(text);
        match (&answer.plan, answer.word) {
            (Some(plan), _) => match self.read_plan(plan) {
                Ok(_) => Vec::new(),
                Err(errors) => errors,
            },
            (None, PlannerWord::Clarify) if !answer.questions.is_empty() => Vec::new(),
            (None, _) => vec!["there was neither a plan nor a question in it that could be read".to_owned()],
        }
    }

    /// What the explorers said, put together; once more with less of it where it is too much.
    pub(super) fn explored(&self) -> Option<Value> {
        let (answers, _) = self.record.explored();
        let texts: Vec<String> = answers.into_iter().map(|(_, text)| text).collect();
        let objective = self.record.objective().raw();
        let whole = explore::aggregate(Some(objective), &texts);
        if whole.to_string().len() <= EXPLORED_BYTES_MAX {
            return Some(whole);
        }
        let less = trimmed(whole);
        (less.to_string().len() <= EXPLORED_BYTES_MAX).then_some(less)
    }

    pub(super) fn explore(&mut self) -> Result<Option<CampaignEnd>, CampaignError> {
        let timeout = self.campaign.explore_timeout;
        let prompts: Vec<Phase> = self.explorers();
        let end = self.run_asked(prompts, Some(timeout))?;
        if let Some(end) = self.interrupted(&end)? {
            return Ok(Some(end));
        }
        let quorum = self.record.quorum();
        let (answers, _) = self.record.explored();
        if answers.len() < explore::QUORUM
            && let Some(fault) = self.halting_fault()
        {
            return self.fail(fault);
        }
        let fault = match quorum {
            explore::Quorum::AllComplete | explore::Quorum::QuorumMet => None,
            explore::Quorum::Timeout => Some(fault_of(Reason::Timeout, "an explorer did not answer in time")),
            explore::Quorum::QuorumFailure | explore::Quorum::Waiting => {
                let cause = format!(
                    "{} of {} explorers have answered, {} are needed",
                    answers.len(),
                    Mode::ALL.len(),
                    explore::QUORUM
                );
                Some(fault_of(Reason::QuorumFailure, cause))
            }
        };
        if fault.as_ref().is_none_or(|fault| fault.reason == Reason::Timeout) && self.explored().is_none() {
            let fault =
                fault_of(Reason::AggregationFailed, "the explorers said more than a planner can be given");
            return self.take(&StepOutcome::AggregationFailed, Some(fault), Vec::new());
        }
        self.take(&StepOutcome::Explored(quorum), fault, Vec::new())
    }

    pub(super) fn plan(&mut self) -> Result<Option<CampaignEnd>, CampaignError> {
        let round = self.record.counters().clarify_rounds;
        let phase = planner_phase(round);
        let is_over = self.record.run.phase_of(&phase).is_some_and(|phase| {
            matches!(phase.node.status, NodeStatus::Complete | NodeStatus::Failed | NodeStatus::Blocked)
        });
        if !is_over {
            let phases = self.planners(round, false);
            let end = self.run_asked(phases, None)?;
            if let Some(end) = self.interrupted(&end)? {
                return Ok(Some(end));
            }
        }
        let Some(answer) = self.record.planner_answer() else {
            let error = self.record.run.phase_of(&phase).and_then(|phase| phase.node.last_error().cloned());
            let fault = error.map_or_else(|| Fault::new(Reason::Unknown), |error| *error.fault);
            if fault.reason == Reason::ParseError {
                return self.ask_again(
                    PlanAnswer::Clarify,
                    fault_of(Reason::DecisionUnknown, "the planner said nothing"),
                );
            }
            return self.fail(fault);
        };
        let plan = answer.plan.as_ref().map(|plan| self.read_plan(plan));
        match (answer.word, plan) {
            (PlannerWord::Proceed | PlannerWord::Confirm, Some(Err(errors))) => {
                let is_cycle = errors.iter().any(|error| error.contains("cycle"));
                let reason = if is_cycle { Reason::CircularDependency } else { Reason::PlanInvalid };
                self.ask_again(PlanAnswer::Invalid, fault_of(reason, errors.join("; ")))
            }
            (PlannerWord::Proceed, Some(Ok(plan))) => self.registered(plan),
            (PlannerWord::Confirm, Some(Ok(plan))) => {
                let said = self.record.answers.last().filter(|_| self.record.is_answered());
                match said.map(|(_, answer)| answer.raw().trim().to_ascii_lowercase()) {
                    Some(yes) if matches!(yes.as_str(), "yes" | "y" | "ok") => self.registered(plan),
                    Some(_) => self.next_round(Vec::new()),
                    None if self.campaign.request.yes => {
                        self.answered(&[crate::record::CONFIRM_QUESTION.to_owned()], vec!["yes".to_owned()])
                    }
                    None => self.ask(),
                }
            }
            (PlannerWord::Clarify, _) if !answer.questions.is_empty() => match self.record.is_answered() {
                true => self.next_round(Vec::new()),
                false => self.ask(),
            },
            _ => {
                let fault = fault_of(Reason::DecisionUnknown, "the planner's answer could not be read");
                self.ask_again(PlanAnswer::Clarify, fault)
            }
        }
    }

    /// A plan, or what is wrong with it, each with its path.
    fn read_plan(&self, plan: &Value) -> Result<TaskPlan, Vec<String>> {
        let plan = read_plan(plan)?;
        if self.record.counters().is_single && plan.tasks.len() != 1 {
            return Err(vec![format!("tasks: one task was asked for, and there are {}", plan.tasks.len())]);
        }
        Ok(plan)
    }

    /// A plan is taken as it is: its tasks are recorded with the entry of REGISTER or BUILD.
    pub(super) fn registered(&mut self, plan: TaskPlan) -> Result<Option<CampaignEnd>, CampaignError> {
        let text = serde_json::to_string(&plan).unwrap_or_default();
        let mut with = vec![EventKind::TasksRegistered { plan: SafeText::new(text) }];
        if self.record.counters().is_single {
            with.extend(Self::fallback_contexts(&plan));
            with.push(self.loaded(task_phases(&plan))?);
        }
        self.take(&StepOutcome::Planned(PlanAnswer::Valid), None, with)
    }

    /// Asks the planner once more, where it has a round left.
    pub(super) fn ask_again(
        &mut self,
        answer: PlanAnswer,
        fault: Fault,
    ) -> Result<Option<CampaignEnd>, CampaignError> {
        let outcome = StepOutcome::Planned(answer);
        if step(State::Plan, &outcome, self.record.counters()).goto == Goto::Ask {
            let kinds = vec![classified(State::Plan, fault), recovered("default_to_clarify", true)];
            return self.next_round(kinds);
        }
        let fault = match answer {
            PlanAnswer::Invalid => fault,
            _ => fault_of(
                Reason::ClarifyExhausted,
                "the planner gave neither a plan nor a question that could be read",
            ),
        };
        self.take(&outcome, Some(fault), Vec::new())
    }

    pub(super) fn next_round(
        &mut self,
        mut kinds: Vec<EventKind>,
    ) -> Result<Option<CampaignEnd>, CampaignError> {
        kinds.push(entered(State::Plan));
        let stage = self.stage_of(State::Plan)?;
        kinds.extend(stage);
        self.append(kinds)?;
        Ok(None)
    }

    /// Asks a person, or returns with the questions.
    pub(super) fn ask(&mut self) -> Result<Option<CampaignEnd>, CampaignError> {
        let questions = self.record.open_questions();
        let outcome = StepOutcome::Planned(PlanAnswer::Clarify);
        let is_exhausted = step(State::Plan, &outcome, self.record.counters()).goto == Goto::Return;
        if !is_exhausted && let Some(answers) = self.audience.answers(&questions) {
            return self.answered(&questions, answers);
        }
        let resume = "backstop campaign answer".to_owned();
        let mut kinds = Vec::new();
        if is_exhausted {
            let cause = format!(
                "{} questions are open after {} rounds",
                questions.len(),
                self.record.counters().clarify_rounds
            );
            kinds.push(classified(State::Plan, fault_of(Reason::ClarifyExhausted, cause)));
        }
        // Before that it only waits for a person's word.
        let reason = if is_exhausted { Reason::ClarifyExhausted } else { Reason::DecisionUnknown };
        kinds.push(EventKind::RunHalted { reason, resume });
        self.append(kinds)?;
        Ok(Some(CampaignEnd::Questions(questions)))
    }

    pub(super) fn answered(
        &mut self,
        questions: &[String],
        answers: Vec<String>,
    ) -> Result<Option<CampaignEnd>, CampaignError> {
        let answered = questions.iter().zip(answers).map(|(question, answer)| EventKind::QuestionAnswered {
            question: SafeText::new(question.clone()),
            answer: SafeText::new(answer),
        });
        self.append(answered.collect())?;
        Ok(None)
    }
}

/// A plan, or what is wrong with it, each with its path.
fn read_plan(plan: &Value) -> Result<TaskPlan, Vec<String>> {
    let plan =
        TaskPlan::read(plan).map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    plan.check().map_err(|error| vec![error.to_string()])?;
    Ok(plan)
}

fn trimmed(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.chars().take(TRIMMED_CHARS).collect()),
        Value::Array(items) => Value::Array(items.into_iter().map(trimmed).collect()),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(name, field)| (name, trimmed(field))).collect())
        }
        other => other,
    }
}
