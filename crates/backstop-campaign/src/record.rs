//! What the events of a campaign add up to.
//!
//! [`CampaignRecord`] is a fold, as a plan's record is, which it contains: explorers, planners and
//! tasks are phases of the run, one stage after the other. It must not look at a file or a clock.

use crate::explore::{self, Mode, Quorum};
use crate::planner_answer::{PlannerAnswer, PlannerWord};
use crate::state::State;
use crate::step::Counters;
use crate::task::{Task, TaskPlan};
use backstop_core::{Event, EventKind, Reason, SafeText};
use backstop_plan::record::{PhaseProgress, RunRecord};
use backstop_runtime::host::{Fold, NodeStatus};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The first words of the phases in which planners answer.
const PLANNER: &str = "plan";
const REPLANNER: &str = "replan";

/// What a person does that is recorded with its rationale: `campaign block SEQ`, `campaign replan`.
pub(crate) const BLOCK_OVERRIDE: &str = "campaign block ";
pub(crate) const REPLAN_OVERRIDE: &str = "campaign replan";

/// The field of INIT that names the flow, and its value for a campaign of one task.
pub(crate) const FLOW: &str = "flow";
pub(crate) const ONE_TASK: &str = "task";

/// The phase of a planner's round, counted from 1.
pub fn planner_phase(round: u32) -> String {
    format!("{PLANNER}{round}")
}

/// The phase of a re-plan, counted from 1.
pub fn replanner_phase(number: u32) -> String {
    format!("{REPLANNER}{number}")
}

/// What the events of a campaign add up to.
#[derive(Debug, Clone, Default)]
pub struct CampaignRecord {
    /// The run and its phases: those of the stage that is under way, and earlier ones.
    pub run: RunRecord,
    /// The state that was entered last; none before the first.
    state: Option<State>,
    /// The state before ERROR.
    before_error: Option<State>,
    /// What failed last of the campaign itself, and what to do about it.
    cause: Option<SafeText>,
    advice: Option<SafeText>,
    /// Why a person asked for another plan, until there is one.
    pub replan_why: Option<SafeText>,
    /// Why a person set a task aside, by seq.
    set_aside: BTreeMap<String, SafeText>,
    /// How many tasks were complete or blocked when CASCADE led back to EXECUTE last.
    settled_before: Option<usize>,
    /// Why ERROR was entered last.
    pub error_type: Option<String>,
    /// The tasks as they were registered last.
    pub plan: TaskPlan,
    /// Questions of planners that were answered, and the answers.
    pub answers: Vec<(SafeText, SafeText)>,
    /// The planner's round up to which questions were answered.
    answered_round: u32,
    rounds: u32,
    replans: u32,
    /// Whether it is about one task.
    is_single: bool,
}

impl CampaignRecord {
    /// What these events add up to.
    pub fn of(events: &[Event]) -> Self {
        let mut record = Self::default();
        events.iter().for_each(|event| record.apply(event));
        record
    }

    fn apply(&mut self, event: &Event) {
        self.run.apply(event);
        match &event.kind {
            EventKind::StateEntered { operation: None, state, error_type, context } => {
                if let Some(state) = State::from_name(state) {
                    match state {
                        State::Init => {
                            let flow = context.as_ref().and_then(|context| context.fields.get(FLOW));
                            self.is_single = flow.is_some_and(|flow| flow.raw() == ONE_TASK);
                        }
                        // Another plan may have many tasks.
                        State::Cascade => self.is_single = false,
                        _ => {}
                    }
                    if state == State::Error {
                        self.before_error = self.state;
                    }
                    if state == State::Execute && self.state == Some(State::Cascade) {
                        self.settled_before = Some(self.settled());
                    }
                    self.state = Some(state);
                    if state == State::Error {
                        self.error_type.clone_from(error_type);
                    }
                }
            }
            EventKind::ErrorClassified { operation, fault, .. } => {
                let is_own = State::from_name(&operation.raw().to_ascii_uppercase()).is_some();
                if is_own {
                    self.cause.clone_from(&fault.cause);
                    self.advice =
                        Some(&fault.suggested_action).filter(|text| !text.raw().is_empty()).cloned();
                }
            }
            EventKind::RunResumed {} => {
                (self.cause, self.advice, self.settled_before) = (None, None, None);
            }
            EventKind::Override { what, rationale, .. } => {
                if what.raw() == REPLAN_OVERRIDE {
                    self.replan_why = Some(rationale.clone());
                }
                if let Some(seq) = what.raw().strip_prefix(BLOCK_OVERRIDE) {
                    self.set_aside.insert(seq.to_owned(), rationale.clone());
                }
            }
            EventKind::TasksRegistered { plan } => {
                self.replan_why = None;
                if let Ok(plan) = serde_json::from_str(plan.raw()) {
                    self.plan = plan;
                }
            }
            EventKind::QuestionAnswered { question, answer } => {
                self.answers.push((question.clone(), answer.clone()));
                self.answered_round = self.rounds;
            }
            EventKind::PlanLoaded { plan } => {
                for phase in &plan.phases {
                    let number = |prefix: &str| phase.id.strip_prefix(prefix).and_then(|n| n.parse().ok());
                    self.rounds = self.rounds.max(number(PLANNER).unwrap_or(0));
                    self.replans = self.replans.max(number(REPLANNER).unwrap_or(0));
                }
            }
            _ => {}
        }
    }

    /// The state that the campaign is in.
    pub fn state(&self) -> State {
        self.state.unwrap_or(State::Init)
    }

    /// The state that ERROR was entered from.
    pub fn state_before_error(&self) -> State {
        self.before_error.unwrap_or(State::Init)
    }

    /// What failed last of the campaign itself, since it was taken up.
    pub fn cause(&self) -> Option<&SafeText> {
        self.cause.as_ref()
    }

    /// What to do about what failed last.
    pub fn advice(&self) -> Option<&SafeText> {
        self.advice.as_ref()
    }

    /// What it is for.
    pub fn objective(&self) -> &SafeText {
        self.run.path()
    }

    /// How many rounds of planning there were, and how many re-plans.
    pub fn counters(&self) -> Counters {
        Counters { clarify_rounds: self.rounds, replans: self.replans, is_single: self.is_single }
    }

    /// The state in which tasks are worked on.
    pub fn work_state(&self) -> State {
        if self.is_single { State::Build } else { State::Execute }
    }

    /// Whether these phases are those of the stage that is under way.
    pub fn is_at(&self, phases: &[String]) -> bool {
        self.run.progress.order == phases
    }

    /// Whether a re-plan was asked for and is not merged or refused yet.
    pub fn is_replanning(&self) -> bool {
        self.replans > 0 && self.is_at(&[replanner_phase(self.replans)])
    }

    /// What an explorer or a planner has answered.
    pub fn answer_of(&self, phase: &str) -> Option<&str> {
        let phase = self.run.phase_of(phase).filter(|phase| phase.node.status == NodeStatus::Complete)?;
        phase.node.delivery.as_ref()?.message.as_ref().map(SafeText::raw)
    }

    /// The answers of the explorers that count, and whether one of the others ran out of time.
    pub fn explored(&self) -> (Vec<(Mode, String)>, bool) {
        let answer = |mode: Mode| {
            let text = self.answer_of(mode.name()).filter(|text| explore::counts(mode, text))?;
            Some((mode, text.to_owned()))
        };
        let answers: Vec<(Mode, String)> = Mode::ALL.into_iter().filter_map(answer).collect();
        let is_late = |mode: &Mode| {
            let phase = self.run.phase_of(mode.name());
            phase.is_some_and(|phase| {
                phase.node.last_error().is_some_and(|error| error.fault.reason == Reason::Timeout)
            })
        };
        (answers, Mode::ALL.iter().any(is_late))
    }

    /// What the explorers said, put together; those whose answers do not count included.
    pub fn partial(&self) -> Value {
        let texts: Vec<String> =
            Mode::ALL.iter().filter_map(|mode| self.answer_of(mode.name())).map(str::to_owned).collect();
        explore::aggregate(Some(self.objective().raw()), &texts)
    }

    /// Whether enough explorers have answered.
    pub fn quorum(&self) -> Quorum {
        let (answers, timed_out) = self.explored();
        Quorum::of_campaign(answers.len(), timed_out)
    }

    /// The answer of the planner's last round, read.
    pub fn planner_answer(&self) -> Option<PlannerAnswer> {
        self.answer_of(&planner_phase(self.rounds)).map(PlannerAnswer::read)
    }

    /// Questions that wait for a person. A plan that waits for somebody's word is one question.
    pub fn open_questions(&self) -> Vec<String> {
        if self.state() != State::Plan || self.answered_round == self.rounds {
            return Vec::new();
        }
        match self.planner_answer() {
            Some(answer) if answer.word == PlannerWord::Confirm => {
                vec![CONFIRM_QUESTION.to_owned()]
            }
            Some(answer) if answer.word == PlannerWord::Clarify => answer.questions,
            _ => Vec::new(),
        }
    }

    /// Questions of the planner's last answer, whatever state the campaign is in.
    pub fn open_questions_of_error(&self) -> Vec<String> {
        self.planner_answer().map(|answer| answer.questions).unwrap_or_default()
    }

    /// Whether the last round's questions were answered.
    pub fn is_answered(&self) -> bool {
        self.rounds > 0 && self.answered_round == self.rounds
    }

    /// A task and how far it is.
    pub fn task(&self, seq: &str) -> Option<(&Task, Option<PhaseProgress<'_>>)> {
        let task = self.plan.tasks.iter().find(|task| task.seq == seq)?;
        Some((task, self.run.phase_of(seq)))
    }

    /// The status of a task: `pending`, `in_progress`, `complete` or `blocked`.
    pub fn status(&self, seq: &str) -> &'static str {
        match self.run.phase_of(seq).map(|phase| phase.node.status) {
            Some(NodeStatus::Running) => "in_progress",
            Some(NodeStatus::Complete) => "complete",
            Some(NodeStatus::Failed | NodeStatus::Blocked) => "blocked",
            Some(NodeStatus::Pending) | None => "pending",
        }
    }

    /// The tasks of this status, by seq, in the plan's order.
    pub fn tasks_with(&self, status: &str) -> Vec<&str> {
        self.plan
            .tasks
            .iter()
            .map(|task| task.seq.as_str())
            .filter(|seq| self.status(seq) == status)
            .collect()
    }

    /// Why a task is blocked, in one line.
    pub fn blocked_reason(&self, seq: &str) -> String {
        let error = self.run.phase_of(seq).and_then(|phase| phase.node.last_error());
        let own = error.map(|error| match &error.fault.cause {
            Some(cause) => format!("{}: {}", error.fault.reason.code(), cause.line(300)),
            None => error.fault.reason.code().to_owned(),
        });
        own.unwrap_or_else(|| match self.blocked_parents(seq) {
            parents if parents.is_empty() => match self.set_aside.get(seq) {
                Some(why) => format!("blocked by a person: {}", why.line(300)),
                None => "blocked by a person".to_owned(),
            },
            parents => format!("waits for {}", parents.join(", ")),
        })
    }

    /// The blocked tasks that a task waits for directly.
    pub fn blocked_parents(&self, seq: &str) -> Vec<&str> {
        let depends = self.task(seq).map(|(task, _)| task.depends.as_slice()).unwrap_or_default();
        depends.iter().map(String::as_str).filter(|parent| self.status(parent) == "blocked").collect()
    }

    /// The first blocked task that does not only wait for another blocked one: the one to look at.
    pub fn root_cause(&self) -> Option<&str> {
        let blocked = self.tasks_with("blocked");
        let is_root = |seq: &&&str| self.blocked_parents(seq).is_empty();
        blocked.iter().find(is_root).or(blocked.first()).copied()
    }

    /// How many tasks are complete or blocked.
    fn settled(&self) -> usize {
        self.tasks_with("complete").len() + self.tasks_with("blocked").len()
    }

    /// Whether a task can begin: it is pending, and all that it waits for is complete.
    pub fn has_ready(&self) -> bool {
        let is_ready = |task: &Task| {
            self.status(&task.seq) == "pending" && task.depends.iter().all(|on| self.status(on) == "complete")
        };
        self.plan.tasks.iter().any(is_ready)
    }

    /// Whether EXECUTE has something to begin, and got somewhere since CASCADE led back to it last.
    pub fn goes_on(&self) -> bool {
        self.has_ready() && self.settled_before.is_none_or(|before| self.settled() > before)
    }

    /// What CASCADE finds: each task that waits for a blocked one at whatever distance, with those
    /// of its parents that are in its way. Blocked itself it stays one of them: it is blocked for
    /// nothing else.
    pub fn analysis(&self) -> Vec<(&str, Vec<&str>)> {
        let behind: BTreeSet<&str> = self.unreachable().into_iter().collect();
        let is_propagated =
            |seq: &str| self.run.phase_of(seq).is_some_and(|phase| phase.node.status == NodeStatus::Blocked);
        let in_the_way = |seq: &&str| behind.contains(seq) || self.status(seq) == "blocked";
        let found = self.plan.tasks.iter().filter(|task| {
            let seq = task.seq.as_str();
            behind.contains(seq) || is_propagated(seq)
        });
        let mut rows = Vec::new();
        for task in found {
            let parents = task.depends.iter().map(String::as_str).filter(in_the_way);
            rows.push((task.seq.as_str(), parents.collect()));
        }
        rows
    }

    /// The pending tasks that wait for a blocked one, at whatever distance.
    pub fn unreachable(&self) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        loop {
            let waits = |task: &&Task| {
                self.status(&task.seq) == "pending"
                    && !found.contains(&task.seq.as_str())
                    && task
                        .depends
                        .iter()
                        .any(|on| self.status(on) == "blocked" || found.contains(&on.as_str()))
            };
            let more: Vec<&str> =
                self.plan.tasks.iter().filter(waits).map(|task| task.seq.as_str()).collect();
            if more.is_empty() {
                found.sort_unstable();
                return found;
            }
            found.extend(more);
        }
    }
}

/// What a person is asked about a plan that waits for their word.
pub const CONFIRM_QUESTION: &str = "Shall this plan be carried out? (yes, or what should be different)";
