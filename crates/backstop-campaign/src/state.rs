//! The states of a campaign and of a single task, and which may follow which.
//!
//! Pure: two tables and the sentences of the ERROR state. Where a campaign goes next is decided in
//! [`step`](crate::step); here is what it may never do.

use serde::{Deserialize, Serialize};

/// A state of a campaign, or of the short flow for one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs)] // They are the names of the flow.
pub enum State {
    Init,
    Explore,
    Plan,
    Register,
    Execute,
    Build,
    Cascade,
    Observe,
    Complete,
    Error,
}

impl State {
    /// All states of both flows.
    pub const ALL: [State; 10] = [
        State::Init,
        State::Explore,
        State::Plan,
        State::Register,
        State::Execute,
        State::Build,
        State::Cascade,
        State::Observe,
        State::Complete,
        State::Error,
    ];

    /// The name in events and outputs: `EXPLORE`.
    pub fn name(self) -> &'static str {
        match self {
            State::Init => "INIT",
            State::Explore => "EXPLORE",
            State::Plan => "PLAN",
            State::Register => "REGISTER",
            State::Execute => "EXECUTE",
            State::Build => "BUILD",
            State::Cascade => "CASCADE",
            State::Observe => "OBSERVE",
            State::Complete => "COMPLETE",
            State::Error => "ERROR",
        }
    }

    /// The state of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// Which table of transitions counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flow {
    /// One task: INIT, EXPLORE, PLAN, BUILD, OBSERVE, COMPLETE.
    #[default]
    Task,
    /// A campaign: many tasks with dependencies, and ERROR as a state.
    Campaign,
    /// A campaign of one task: the flow of a task, with ERROR and rounds of planning as in a
    /// campaign.
    OneTask,
}

impl Flow {
    /// The flow of this name: `task` or `campaign`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "task" => Some(Flow::Task),
            "campaign" => Some(Flow::Campaign),
            _ => None,
        }
    }

    /// The states that may follow this one.
    pub fn after(self, from: State) -> &'static [State] {
        use State::*;
        match (self, from) {
            (Flow::Task, Init) => &[Explore],
            (Flow::Task, Explore) => &[Plan],
            (Flow::Task, Plan) => &[Build, Explore],
            (Flow::Task, Build) => &[Build, Observe],
            (Flow::Task, Observe) => &[Complete],
            (Flow::Task, Complete) => &[Init],
            (Flow::Task, Register | Execute | Cascade | Error) => &[],
            (Flow::Campaign | Flow::OneTask, Init) => &[Explore],
            (Flow::Campaign | Flow::OneTask, Explore) => &[Plan, Error],
            (Flow::Campaign, Plan) => &[Plan, Register, Error],
            (Flow::Campaign, Register) => &[Execute, Error],
            (Flow::Campaign, Execute) => &[Execute, Cascade, Error],
            (Flow::Campaign, Cascade) => &[Execute, Observe, Error],
            (Flow::Campaign | Flow::OneTask, Observe) => &[Complete],
            (Flow::Campaign | Flow::OneTask, Error) => &[Plan, Observe],
            (Flow::Campaign | Flow::OneTask, Complete) => &[Init],
            (Flow::Campaign, Build) => &[],
            (Flow::OneTask, Plan) => &[Plan, Build, Error],
            (Flow::OneTask, Build) => &[Build, Observe, Error],
            (Flow::OneTask, Register | Execute | Cascade) => &[],
        }
    }

    /// Whether one state may follow another.
    pub fn allows(self, from: State, to: State) -> bool {
        self.after(from).contains(&to)
    }
}

/// Why a campaign entered ERROR. The names are the original's; the reason of the taxonomy stands
/// beside them in events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorType {
    /// An explorer did not answer in time, and enough others did.
    Timeout,
    /// Too few explorers have answered.
    QuorumFailure,
    /// What the explorers said could not be put together, twice.
    AggregationFailed,
    /// The planner's plan is not what its schema says.
    SchemaInvalid,
    /// Nothing more can begin, and there is no other plan.
    CascadeStuck,
    /// A builder has used up its iterations.
    BudgetExhausted,
    /// Anything else, by its reason.
    Other(String),
}

impl ErrorType {
    /// The name in events: `quorum_failure`.
    pub fn name(&self) -> &str {
        match self {
            ErrorType::Timeout => "timeout",
            ErrorType::QuorumFailure => "quorum_failure",
            ErrorType::AggregationFailed => "aggregation_failed",
            ErrorType::SchemaInvalid => "schema_invalid",
            ErrorType::CascadeStuck => "cascade_stuck",
            ErrorType::BudgetExhausted => "budget_exhausted",
            ErrorType::Other(name) => name,
        }
    }

    /// The error type of this name, wherever it was raised.
    pub fn from_name(name: &str) -> Self {
        match name {
            "timeout" => ErrorType::Timeout,
            "quorum_failure" => ErrorType::QuorumFailure,
            "aggregation_failed" => ErrorType::AggregationFailed,
            "schema_invalid" => ErrorType::SchemaInvalid,
            "cascade_stuck" => ErrorType::CascadeStuck,
            "budget_exhausted" => ErrorType::BudgetExhausted,
            other => ErrorType::Other(other.to_owned()),
        }
    }

    /// The error type of a failure that ends the campaign. A budget that refuses a start is the
    /// campaign's, not a builder's: it is taken up again once there is more.
    pub fn of_campaign(reason: &str) -> Self {
        match reason {
            "budget_exhausted" => ErrorType::Other("campaign_budget_exhausted".to_owned()),
            other => Self::from_name(other),
        }
    }

    /// What ERROR does about it: the sentence, and the state that follows; none means that the
    /// campaign returns. `from` is the state that raised it: partial data of explorers helps nobody
    /// but EXPLORE.
    pub fn handled(&self, from: State) -> (String, Option<State>) {
        match self {
            ErrorType::Timeout if from == State::Explore => {
                ("Exploration timeout, using partial data".to_owned(), Some(State::Plan))
            }
            ErrorType::QuorumFailure => ("Insufficient explorer data".to_owned(), None),
            ErrorType::CascadeStuck => ("Cascade stuck, returning analysis".to_owned(), Some(State::Observe)),
            ErrorType::SchemaInvalid => ("Invalid schema, cannot proceed".to_owned(), None),
            ErrorType::BudgetExhausted => ("Builder budget exhausted".to_owned(), Some(State::Observe)),
            other => (format!("Unrecoverable error: {}", other.name()), None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use State::*;

    /// Every pair of states in each flow: what is not in these lists is not allowed.
    #[test]
    fn the_whole_table_of_transitions() {
        let task = [
            (Init, Explore),
            (Explore, Plan),
            (Plan, Build),
            (Plan, Explore),
            (Build, Build),
            (Build, Observe),
            (Observe, Complete),
            (Complete, Init),
        ];
        let campaign = [
            (Init, Explore),
            (Explore, Plan),
            (Explore, Error),
            (Plan, Plan),
            (Plan, Register),
            (Plan, Error),
            (Register, Execute),
            (Register, Error),
            (Execute, Execute),
            (Execute, Cascade),
            (Execute, Error),
            (Cascade, Execute),
            (Cascade, Observe),
            (Cascade, Error),
            (Observe, Complete),
            (Error, Plan),
            (Error, Observe),
            (Complete, Init),
        ];
        let one_task = [
            (Init, Explore),
            (Explore, Plan),
            (Explore, Error),
            (Plan, Plan),
            (Plan, Build),
            (Plan, Error),
            (Build, Build),
            (Build, Observe),
            (Build, Error),
            (Observe, Complete),
            (Error, Plan),
            (Error, Observe),
            (Complete, Init),
        ];
        for from in State::ALL {
            for to in State::ALL {
                assert_eq!(Flow::OneTask.allows(from, to), one_task.contains(&(from, to)), "{from:?} {to:?}");
                assert_eq!(Flow::Task.allows(from, to), task.contains(&(from, to)), "{from:?} {to:?}");
                assert_eq!(
                    Flow::Campaign.allows(from, to),
                    campaign.contains(&(from, to)),
                    "{from:?} {to:?}"
                );
            }
            assert_eq!(State::from_name(from.name()), Some(from));
        }
    }

    #[test]
    fn the_sentences_of_error_and_where_they_lead() {
        let handled = |name: &str, from| ErrorType::from_name(name).handled(from);
        let (sentence, next) = handled("timeout", Explore);
        assert_eq!((sentence.as_str(), next), ("Exploration timeout, using partial data", Some(Plan)));
        for from in State::ALL.into_iter().filter(|state| *state != Explore) {
            assert_eq!(handled("timeout", from), ("Unrecoverable error: timeout".to_owned(), None));
        }
        for from in State::ALL {
            assert_eq!(handled("quorum_failure", from), ("Insufficient explorer data".to_owned(), None));
            assert_eq!(handled("schema_invalid", from), ("Invalid schema, cannot proceed".to_owned(), None));
            // What is complete is brought to the user, and lessons are kept, before it returns.
            let analysis = "Cascade stuck, returning analysis".to_owned();
            assert_eq!(handled("cascade_stuck", from), (analysis, Some(Observe)));
            assert_eq!(
                handled("budget_exhausted", from),
                ("Builder budget exhausted".to_owned(), Some(Observe))
            );
            assert_eq!(handled("auth_error", from), ("Unrecoverable error: auth_error".to_owned(), None));
            let (_, next) = handled("aggregation_failed", from);
            assert_eq!(next, None);
        }
        // Whatever ERROR leads to is a transition that the table has.
        for name in ["timeout", "budget_exhausted", "cascade_stuck"] {
            assert!(handled(name, Explore).1.is_some_and(|next| Flow::Campaign.allows(Error, next)));
        }
    }
}
