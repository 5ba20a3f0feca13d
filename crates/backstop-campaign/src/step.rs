//! Where a campaign goes next: the state it is in and what came of its work go in, the states that
//! follow and the sentences and recoveries to record come out.
//!
//! Pure, and total: every [`StepOutcome`] in every state has a [`Step`]. It must not run anything,
//! and it leaves the order of recording to the caller: what failed first, then the step.

use crate::explore::Quorum;
use crate::state::{ErrorType, Flow, State};

/// Rounds of questions before they are returned.
pub const CLARIFY_ROUNDS_MAX: u32 = 5;
/// Re-plans of one campaign.
pub const REPLANS_MAX: u32 = 2;
/// Unreachable tasks from which on a re-plan is asked for.
pub const REPLAN_UNREACHABLE_MIN: usize = 2;
/// Attempts in a row without a newly finished task that force CASCADE.
pub const ITERATIONS_MAX: u32 = 20;
/// Looks in a row at which nothing has changed that force CASCADE.
pub const UNCHANGED_LOOKS_MAX: u32 = 3;

/// What a campaign has used up so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Answers of the planner that were no plan, this one included.
    pub clarify_rounds: u32,
    /// Re-plans that were merged or refused.
    pub replans: u32,
    /// Whether it is about one task: then PLAN leads to BUILD, and BUILD to OBSERVE.
    pub is_single: bool,
}

/// What a planner's answer comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanAnswer {
    /// A plan that is valid.
    Valid,
    /// A plan that its schema or its dependencies refuse: a revision is asked for.
    Invalid,
    /// Questions for a person, or nothing that can be read.
    Clarify,
    /// A plan that waits for somebody's word.
    Confirm,
}

/// How EXECUTE ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Executed {
    /// Every task is complete.
    Complete,
    /// Everything else is complete, and these many are blocked.
    Blocked,
    /// So many tasks wait for blocked ones, at whatever distance.
    Stuck {
        /// How many.
        unreachable: usize,
    },
    /// Too many attempts finished no task.
    IterationsExhausted,
    /// Nothing changed for several looks.
    StuckDetected,
    /// A builder has used up its iterations; its task is blocked, and nothing else can begin.
    BuilderExhausted,
    /// A failure that ends the campaign, by the name of its reason.
    Halted(String),
}

/// What came of the work of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepOutcome {
    /// The campaign was started.
    Started,
    /// The explorers have answered, or their time is over.
    Explored(Quorum),
    /// What they said could not be put together, once more than is tried.
    AggregationFailed,
    /// The planner has answered.
    Planned(PlanAnswer),
    /// The tasks are registered.
    Registered,
    /// The tasks have been worked on as far as they can be.
    Executed(Executed),
    /// CASCADE has looked: so many tasks are unreachable.
    Analysed {
        /// How many.
        unreachable: usize,
        /// Whether other tasks can begin, and EXECUTE has got somewhere since it was entered last.
        goes_on: bool,
    },
    /// The planner's re-plan was merged.
    Replanned,
    /// The re-plan was refused, or could not be had.
    ReplanRefused {
        /// Whether other tasks can begin all the same.
        goes_on: bool,
    },
    /// Lessons are written.
    Observed,
    /// A failure that no state recovers from, by the name of its reason.
    Failed(String),
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Goto {
    /// This state.
    State(State),
    /// The same state once more, with a person's answers or a request for a revision.
    Ask,
    /// CASCADE asks the planner for another plan.
    Replan,
    /// The campaign returns, and can be taken up again.
    Return,
}

/// A step of a campaign: ERROR where it is entered, recoveries, a sentence, and what follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Why ERROR is entered first, where it is.
    pub error: Option<ErrorType>,
    /// What was tried within the state, and whether it helped.
    pub recovery: Option<(&'static str, bool)>,
    /// A sentence for whoever follows.
    pub message: Option<String>,
    /// What follows.
    pub goto: Goto,
}

impl Step {
    fn to(state: State) -> Self {
        Self { error: None, recovery: None, message: None, goto: Goto::State(state) }
    }

    fn recovered(self, strategy: &'static str, success: bool) -> Self {
        Self { recovery: Some((strategy, success)), ..self }
    }

    /// Through ERROR: its sentence, and where it leads.
    fn error(from: State, error: ErrorType) -> Self {
        let (message, next) = error.handled(from);
        // INIT, OBSERVE and COMPLETE have no way to ERROR: they return at once.
        let next = next.filter(|_| flow_of(from).allows(from, State::Error));
        Self {
            error: Some(error),
            recovery: None,
            message: Some(message),
            goto: next.map_or(Goto::Return, Goto::State),
        }
    }
}

/// Where a campaign goes from `state`. What cannot happen there is an error like any other.
pub fn step(state: State, outcome: &StepOutcome, counters: Counters) -> Step {
    match (state, outcome) {
        (State::Init, StepOutcome::Started) => Step::to(State::Explore),
        (State::Explore, StepOutcome::Explored(quorum)) => match quorum {
            Quorum::AllComplete => Step::to(State::Plan),
            Quorum::QuorumMet => Step::to(State::Plan).recovered("partial_data", true),
            Quorum::Timeout => Step::error(state, ErrorType::Timeout).recovered("partial_data", true),
            Quorum::QuorumFailure | Quorum::Waiting => {
                Step::error(state, ErrorType::QuorumFailure).recovered("partial_data", false)
            }
        },
        (State::Explore, StepOutcome::AggregationFailed) => {
            Step::error(state, ErrorType::AggregationFailed).recovered("aggregate_again", false)
        }
        (State::Plan, StepOutcome::Planned(answer)) => planned(*answer, counters),
        (State::Register, StepOutcome::Registered) => Step::to(State::Execute),
        (State::Execute, StepOutcome::Executed(executed)) => match executed {
            Executed::Complete | Executed::Blocked | Executed::Stuck { .. } => Step::to(State::Cascade),
            Executed::IterationsExhausted => Step::to(State::Cascade).recovered("iteration_exhausted", true),
            Executed::StuckDetected => Step::to(State::Cascade).recovered("stuck_detected", true),
            Executed::BuilderExhausted => {
                Step::error(state, ErrorType::BudgetExhausted).recovered("block_workspace", true)
            }
            Executed::Halted(reason) => Step::error(state, ErrorType::of_campaign(reason)),
        },
        (State::Build, StepOutcome::Executed(executed)) => match executed {
            Executed::BuilderExhausted => {
                Step::error(state, ErrorType::BudgetExhausted).recovered("block_workspace", true)
            }
            Executed::Halted(reason) => Step::error(state, ErrorType::of_campaign(reason)),
            _ => Step::to(State::Observe),
        },
        (State::Cascade, StepOutcome::Analysed { unreachable, goes_on }) => {
            if *unreachable < REPLAN_UNREACHABLE_MIN {
                // Fewer are no reason for another plan: their block is propagated and handed over.
                return Step::to(if *goes_on { State::Execute } else { State::Observe });
            }
            if counters.replans >= REPLANS_MAX {
                return without_replan(*goes_on).recovered("propagate_blocks", true);
            }
            Step { error: None, recovery: None, message: None, goto: Goto::Replan }
        }
        (State::Cascade, StepOutcome::Replanned) => Step::to(State::Execute).recovered("replan", true),
        (State::Cascade, StepOutcome::ReplanRefused { goes_on }) => {
            without_replan(*goes_on).recovered("replan", false)
        }
        (State::Observe, StepOutcome::Observed) => Step::to(State::Complete),
        (from, StepOutcome::Failed(reason)) => Step::error(from, ErrorType::of_campaign(reason)),
        (from, _) => Step::error(from, ErrorType::Other("state_invalid".to_owned())),
    }
}

/// Where a campaign without another plan goes: tasks that can begin are run first, else it is
/// stuck.
fn without_replan(goes_on: bool) -> Step {
    match goes_on {
        true => Step::to(State::Execute),
        false => Step::error(State::Cascade, ErrorType::CascadeStuck),
    }
}

fn planned(answer: PlanAnswer, counters: Counters) -> Step {
    match answer {
        PlanAnswer::Valid if counters.is_single => Step::to(State::Build),
        PlanAnswer::Valid => Step::to(State::Register),
        PlanAnswer::Confirm => Step { goto: Goto::Ask, ..Step::to(State::Plan) },
        PlanAnswer::Clarify | PlanAnswer::Invalid if counters.clarify_rounds < CLARIFY_ROUNDS_MAX => {
            Step { goto: Goto::Ask, ..Step::to(State::Plan) }
        }
        PlanAnswer::Invalid => Step::error(State::Plan, ErrorType::SchemaInvalid),
        PlanAnswer::Clarify => Step::error(State::Plan, ErrorType::Other("clarify_exhausted".to_owned())),
    }
}

/// The flow that a state belongs to; most belong to both.
fn flow_of(state: State) -> Flow {
    if state == State::Build { Flow::OneTask } else { Flow::Campaign }
}

/// Whether a step keeps to the table of transitions.
pub fn is_allowed(flow: Flow, from: State, step: &Step) -> bool {
    let mut at = from;
    if step.error.is_some() {
        if !flow.allows(at, State::Error) {
            return step.goto == Goto::Return;
        }
        at = State::Error;
    }
    match &step.goto {
        Goto::State(next) => flow.allows(at, *next),
        Goto::Ask => at == State::Plan,
        Goto::Replan => at == State::Cascade,
        Goto::Return => true,
    }
}

/// Counts what EXECUTE does without finishing anything: attempts since the last finished task, and
/// looks at which nothing had changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    iterations: u32,
    unchanged: u32,
    signature: Option<u64>,
}

impl Progress {
    /// An attempt has ended by its own doing, and `finished` says whether a task is newly complete.
    /// `signature` is that of all tasks: the status of each.
    pub fn look(&mut self, finished: bool, signature: u64) -> Option<Executed> {
        self.iterations = if finished { 0 } else { self.iterations + 1 };
        self.unchanged = if self.signature == Some(signature) { self.unchanged + 1 } else { 0 };
        self.signature = Some(signature);
        if self.iterations >= ITERATIONS_MAX {
            return Some(Executed::IterationsExhausted);
        }
        (self.unchanged >= UNCHANGED_LOOKS_MAX).then_some(Executed::StuckDetected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes() -> Vec<StepOutcome> {
        let mut all = vec![
            StepOutcome::Started,
            StepOutcome::AggregationFailed,
            StepOutcome::Registered,
            StepOutcome::Replanned,
            StepOutcome::ReplanRefused { goes_on: false },
            StepOutcome::ReplanRefused { goes_on: true },
            StepOutcome::Observed,
            StepOutcome::Failed("dependency_missing".to_owned()),
            StepOutcome::Failed("state_invalid".to_owned()),
            StepOutcome::Failed("timeout".to_owned()),
            StepOutcome::Failed("budget_exhausted".to_owned()),
        ];
        all.extend(Quorum::ALL.map(StepOutcome::Explored));
        let answers = [PlanAnswer::Valid, PlanAnswer::Invalid, PlanAnswer::Clarify, PlanAnswer::Confirm];
        all.extend(answers.map(StepOutcome::Planned));
        for goes_on in [false, true] {
            all.extend((0..4).map(|unreachable| StepOutcome::Analysed { unreachable, goes_on }));
        }
        all.extend(
            [
                Executed::Complete,
                Executed::Blocked,
                Executed::Stuck { unreachable: 3 },
                Executed::IterationsExhausted,
                Executed::StuckDetected,
                Executed::BuilderExhausted,
                Executed::Halted("auth_error".to_owned()),
                Executed::Halted("budget_exhausted".to_owned()),
            ]
            .map(StepOutcome::Executed),
        );
        all
    }

    /// Every state, every outcome, every count: a step that the table allows.
    #[test]
    fn every_outcome_in_every_state_leads_somewhere_that_is_allowed() {
        use State::{Build, Cascade, Execute, Register};
        for (flow, foreign) in
            [(Flow::Campaign, &[Build][..]), (Flow::OneTask, &[Register, Execute, Cascade][..])]
        {
            let is_single = flow == Flow::OneTask;
            for state in State::ALL.into_iter().filter(|state| !foreign.contains(state)) {
                for outcome in outcomes() {
                    for (clarify_rounds, replans) in (0..8).flat_map(|n| (0..4).map(move |m| (n, m))) {
                        let step = step(state, &outcome, Counters { clarify_rounds, replans, is_single });
                        assert!(is_allowed(flow, state, &step), "{state:?} {outcome:?}: {step:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn one_task_is_built_and_observed() {
        let single = Counters { is_single: true, ..Counters::default() };
        let valid = StepOutcome::Planned(PlanAnswer::Valid);
        assert_eq!(step(State::Plan, &valid, single).goto, Goto::State(State::Build));
        for executed in [Executed::Complete, Executed::Blocked, Executed::IterationsExhausted] {
            let step = step(State::Build, &StepOutcome::Executed(executed), single);
            assert_eq!(step, Step::to(State::Observe));
        }
        let used_up = step(State::Build, &StepOutcome::Executed(Executed::BuilderExhausted), single);
        assert_eq!(used_up.goto, Goto::State(State::Observe));
        assert_eq!(used_up.message.unwrap(), "Builder budget exhausted");
    }

    #[test]
    fn explorers_time_and_quorum() {
        let goes = |quorum| step(State::Explore, &StepOutcome::Explored(quorum), Counters::default());
        assert_eq!(goes(Quorum::AllComplete), Step::to(State::Plan));
        assert_eq!(goes(Quorum::QuorumMet).goto, Goto::State(State::Plan));
        let timeout = goes(Quorum::Timeout);
        assert_eq!((timeout.error, timeout.goto), (Some(ErrorType::Timeout), Goto::State(State::Plan)));
        assert_eq!(timeout.message.unwrap(), "Exploration timeout, using partial data");
        let failed = goes(Quorum::QuorumFailure);
        assert_eq!((failed.error, failed.goto), (Some(ErrorType::QuorumFailure), Goto::Return));
    }

    #[test]
    fn five_rounds_of_questions_and_no_sixth() {
        let asked = |answer, clarify_rounds| {
            step(
                State::Plan,
                &StepOutcome::Planned(answer),
                Counters { clarify_rounds, ..Counters::default() },
            )
        };
        for rounds in 1..CLARIFY_ROUNDS_MAX {
            assert_eq!(asked(PlanAnswer::Clarify, rounds).goto, Goto::Ask);
            assert_eq!(asked(PlanAnswer::Invalid, rounds).goto, Goto::Ask);
        }
        let over = asked(PlanAnswer::Clarify, CLARIFY_ROUNDS_MAX);
        assert_eq!(over.error.unwrap().name(), "clarify_exhausted");
        assert_eq!(over.goto, Goto::Return);
        let invalid = asked(PlanAnswer::Invalid, CLARIFY_ROUNDS_MAX);
        assert_eq!(invalid.message.unwrap(), "Invalid schema, cannot proceed");
        assert_eq!(asked(PlanAnswer::Valid, 99).goto, Goto::State(State::Register));
    }

    #[test]
    fn two_or_more_unreachable_tasks_are_planned_anew_at_most_twice() {
        let looked = |unreachable, goes_on, replans| {
            let outcome = StepOutcome::Analysed { unreachable, goes_on };
            step(State::Cascade, &outcome, Counters { replans, ..Counters::default() }).goto
        };
        let analysed = |unreachable, replans| looked(unreachable, false, replans);
        assert_eq!(analysed(0, 0), Goto::State(State::Observe));
        assert_eq!(analysed(1, 0), Goto::State(State::Observe));
        assert_eq!(analysed(2, 0), Goto::Replan);
        assert_eq!(analysed(9, 1), Goto::Replan);
        assert_eq!(analysed(9, 2), Goto::State(State::Observe));
        // Tasks that can begin are run before it is over.
        assert_eq!(looked(0, true, 0), Goto::State(State::Execute));
        assert_eq!(looked(2, true, 0), Goto::Replan);
        assert_eq!(looked(9, true, 2), Goto::State(State::Execute));
    }

    /// Every way out of CASCADE without another plan: the error is entered exactly where nothing
    /// can begin.
    #[test]
    fn without_another_plan_a_campaign_that_cannot_go_on_is_stuck() {
        let looked =
            |outcome, replans| step(State::Cascade, &outcome, Counters { replans, ..Counters::default() });
        for replans in 0..4 {
            for (outcome, recovery) in [
                (StepOutcome::ReplanRefused { goes_on: false }, ("replan", false)),
                (StepOutcome::Analysed { unreachable: 2, goes_on: false }, ("propagate_blocks", true)),
            ] {
                if replans < REPLANS_MAX && matches!(outcome, StepOutcome::Analysed { .. }) {
                    continue;
                }
                let stuck = looked(outcome, replans);
                assert_eq!(stuck.error, Some(ErrorType::CascadeStuck));
                assert_eq!(stuck.message.as_deref(), Some("Cascade stuck, returning analysis"));
                assert_eq!((stuck.recovery, stuck.goto), (Some(recovery), Goto::State(State::Observe)));
            }
            for outcome in [
                StepOutcome::ReplanRefused { goes_on: true },
                StepOutcome::Analysed { unreachable: 1, goes_on: false },
                StepOutcome::Analysed { unreachable: 2, goes_on: true },
                StepOutcome::Analysed { unreachable: 0, goes_on: true },
            ] {
                assert_eq!(looked(outcome.clone(), replans).error, None, "{outcome:?}");
            }
        }
        let refused = looked(StepOutcome::ReplanRefused { goes_on: true }, 1);
        assert_eq!((refused.goto, refused.recovery), (Goto::State(State::Execute), Some(("replan", false))));
    }

    #[test]
    fn a_builder_without_iterations_leads_to_observe_and_a_budget_of_the_campaign_returns() {
        let own =
            step(State::Execute, &StepOutcome::Executed(Executed::BuilderExhausted), Counters::default());
        assert_eq!(own.error, Some(ErrorType::BudgetExhausted));
        assert_eq!(own.message.unwrap(), "Builder budget exhausted");
        assert_eq!(own.recovery, Some(("block_workspace", true)));
        assert_eq!(own.goto, Goto::State(State::Observe));
        let reason = "budget_exhausted".to_owned();
        for (state, outcome) in [
            (State::Execute, StepOutcome::Executed(Executed::Halted(reason.clone()))),
            (State::Plan, StepOutcome::Failed(reason)),
        ] {
            let step = step(state, &outcome, Counters::default());
            assert_eq!(step.error.unwrap().name(), "campaign_budget_exhausted");
            assert_eq!(step.goto, Goto::Return);
        }
    }

    #[test]
    fn twenty_attempts_without_a_finished_task_force_cascade() {
        let mut progress = Progress::default();
        for n in 1..u64::from(ITERATIONS_MAX) {
            assert_eq!(progress.look(false, n), None);
        }
        assert_eq!(progress.look(true, 1000), None, "a finished task starts the count anew");
        for n in 1..u64::from(ITERATIONS_MAX) {
            assert_eq!(progress.look(false, 2000 + n), None);
        }
        assert_eq!(progress.look(false, 1), Some(Executed::IterationsExhausted));
    }

    #[test]
    fn three_looks_at_which_nothing_changed_force_cascade_and_equal_counts_do_not() {
        let mut progress = Progress::default();
        assert_eq!(
            [1, 2, 1, 2, 1].map(|seen| progress.look(false, seen)),
            [None; 5].map(|_: Option<()>| None)
        );
        assert_eq!(progress.look(false, 1), None);
        assert_eq!(progress.look(false, 1), None);
        assert_eq!(progress.look(false, 1), Some(Executed::StuckDetected));
    }
}
