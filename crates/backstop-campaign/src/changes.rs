//! What a person changes about a campaign: answers, retries, blocks, a re-plan. Each is recorded
//! with its rationale first; the campaign takes it up when it is carried on.

use crate::CampaignError;
use crate::drive::{campaign_lock, entered, last_campaign, task_entered};
use crate::phases::{asked_phase, plan_of, task_phases};
use crate::prompts;
use crate::record::{BLOCK_OVERRIDE, CampaignRecord, REPLAN_OVERRIDE, replanner_phase};
use crate::state::State;
use backstop_core::{EventKind, PlanRecord, RunId, SafeText};
use backstop_plan::start::person;
use backstop_plan::start_events::{Mode, Person, plan_record};
use backstop_runtime::host::{CAMPAIGN, NodeStatus};
use backstop_runtime::{Opening, Project, Recorder};
use backstop_store::{Held, Journal};

/// A campaign that was found.
pub struct FoundCampaign {
    /// The run.
    pub run: RunId,
    /// What its events add up to.
    pub record: CampaignRecord,
    /// The journal that it is in.
    pub journal: Journal,
}

/// What a person does to tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskChange {
    /// Begins a blocked task anew, with those that wait for it.
    Retry,
    /// Sets a task aside.
    Block,
}

impl FoundCampaign {
    /// The command that carries it on, as it was recorded.
    pub fn resume_command(&self) -> String {
        match self.record.run.plan.resume.as_str() {
            "" => "backstop campaign".to_owned(),
            known => known.to_owned(),
        }
    }

    /// The last campaign of a project.
    pub fn last(project: &Project) -> Result<Self, CampaignError> {
        let journal = project.existing_journal()?.ok_or(CampaignError::NoCampaign)?;
        let run = last_campaign(journal, None)?.ok_or(CampaignError::NoCampaign)?;
        let record = CampaignRecord::of(&journal.load(run)?);
        Ok(Self { run, record, journal: journal.clone() })
    }

    /// Records, while nobody else carries the campaign on.
    fn append(&mut self, project: &Project, kinds: Vec<EventKind>) -> Result<(), CampaignError> {
        let _hold = match project.hold(&campaign_lock())? {
            Held::Ours(hold) => hold,
            Held::By(holder) => return Err(CampaignError::HeldBy { holder }),
        };
        Recorder::resume(project, self.run, Opening::new(CAMPAIGN))?.append(kinds)?;
        self.record = CampaignRecord::of(&self.journal.load(self.run)?);
        Ok(())
    }

    /// Answers the open questions, in their order. One answer may be given for a single question
    /// only.
    pub fn answer(&mut self, project: &Project, answers: &[String]) -> Result<(), CampaignError> {
        let questions = self.record.open_questions();
        if questions.is_empty() {
            return Err(CampaignError::NoQuestions);
        }
        if questions.len() != answers.len() {
            return Err(CampaignError::AnswerCount { given: answers.len(), asked: questions.len() });
        }
        let said = questions.iter().zip(answers).map(|(question, answer)| EventKind::QuestionAnswered {
            question: SafeText::new(question.clone()),
            answer: SafeText::new(answer.clone()),
        });
        let kinds = said.collect();
        self.append(project, kinds)
    }

    /// Begins tasks anew, or sets them aside.
    pub fn change(
        &mut self,
        project: &Project,
        seqs: &[String],
        change: TaskChange,
        why: Option<&str>,
    ) -> Result<(), CampaignError> {
        let person = person(project, why);
        let mut kinds = Vec::new();
        for given in seqs {
            let known = || self.record.plan.tasks.iter().map(|task| task.seq.clone()).collect();
            let unknown = || CampaignError::NoTask { given: given.clone(), known: known() };
            let seq = self.record.task(given).ok_or_else(unknown)?.0.seq.clone();
            kinds.extend(self.changed(&seq, change, &person)?);
        }
        kinds.extend(self.back_to_execute());
        self.append(project, kinds)
    }

    fn changed(
        &self,
        seq: &str,
        change: TaskChange,
        person: &Person,
    ) -> Result<Vec<EventKind>, CampaignError> {
        let status = self.record.status(seq);
        let wrong = |wanted| Err(CampaignError::WrongStatus { seq: seq.to_owned(), status, wanted });
        match change {
            TaskChange::Retry if status != "blocked" => wrong("blocked"),
            TaskChange::Retry => {
                let mut kinds = vec![
                    person.overrides(format!("campaign retry {seq}")),
                    task_entered(seq, NodeStatus::Pending),
                ];
                let waits =
                    self.record.plan.tasks.iter().filter(|task| self.is_blocked_behind(&task.seq, seq));
                kinds.extend(waits.map(|task| task_entered(&task.seq, NodeStatus::Pending)));
                Ok(kinds)
            }
            TaskChange::Block if status == "complete" || status == "blocked" => wrong("pending"),
            TaskChange::Block => Ok(vec![
                person.overrides(format!("{BLOCK_OVERRIDE}{seq}")),
                task_entered(seq, NodeStatus::Failed),
            ]),
        }
    }

    /// Whether a task is blocked only because it waits for this one, at whatever distance.
    fn is_blocked_behind(&self, seq: &str, parent: &str) -> bool {
        let own = self.record.run.phase_of(seq).map(|phase| phase.node.status);
        own == Some(NodeStatus::Blocked)
            && self.record.task(seq).is_some_and(|(task, _)| {
                task.depends.iter().any(|on| on == parent || self.is_blocked_behind(on, parent))
            })
    }

    /// EXECUTE or BUILD again, with all tasks.
    fn back_to_execute(&self) -> Vec<EventKind> {
        if self.record.plan.tasks.is_empty() {
            return Vec::new();
        }
        vec![entered(self.record.work_state()), self.loaded(task_phases(&self.record.plan))]
    }

    fn loaded(&self, phases: Vec<backstop_plan::document::Phase>) -> EventKind {
        let known: &PlanRecord = &self.record.run.plan;
        let mode = Mode {
            commit: known.commit.clone(),
            isolation: known.isolation.clone(),
            base: known.base.clone(),
            branch: known.branch.clone(),
            resume: known.resume.clone(),
            max_attempts: known.max_attempts,
            before: known.before.clone(),
        };
        EventKind::PlanLoaded { plan: Box::new(plan_record(&plan_of(phases), &mode)) }
    }

    /// Asks for another plan, whether the campaign is stuck or not.
    pub fn replan(&mut self, project: &Project, why: Option<&str>) -> Result<(), CampaignError> {
        if self.record.plan.tasks.is_empty() {
            return Err(CampaignError::NoTasks);
        }
        let number = self.record.counters().replans + 1;
        let person = person(project, why);
        let mut asked = self.record.clone();
        asked.replan_why = Some(person.why.clone());
        let prompt = prompts::replanner(&asked);
        let phases = asked_phase(&replanner_phase(number), "plan anew", &prompt).into_iter().collect();
        let kinds = vec![person.overrides(REPLAN_OVERRIDE), entered(State::Cascade), self.loaded(phases)];
        self.append(project, kinds)
    }
}
