//! What builders are told beyond their task: what finished parents delivered, what blocked siblings
//! failed of, lessons of earlier campaigns, and how many iterations there are.
//!
//! It follows the run as it is recorded, so that the next prompt knows of it. It also counts what
//! EXECUTE does without finishing anything.

use crate::record::BLOCK_OVERRIDE;
use crate::step::{Executed, Progress};
use crate::task::{Task, TaskPlan};
use backstop_core::{Action, Decision, Event, EventKind, Reason, SafeText, signature};
use backstop_plan::workspace::Advice;
use backstop_runtime::host::{AttemptJob, NodeStatus};
use backstop_store::Lesson;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How many siblings and lessons go into a prompt.
const SIBLINGS_MAX: usize = 20;
const LESSONS_MAX: usize = 10;

/// Whether a task failed by its own doing. What the world did wrong is waited for and says nothing
/// about the tasks.
fn is_own_failure(decision: &Decision) -> bool {
    !matches!(decision.action, Action::AwaitGuard { .. })
}

/// What is known while tasks are worked on.
#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    plan: TaskPlan,
    lessons: Vec<Lesson>,
    /// What each complete task delivered, by seq.
    delivered: BTreeMap<String, String>,
    /// Why each blocked task is, by seq.
    blocked: BTreeMap<String, String>,
    causes: BTreeMap<String, String>,
    /// The status of each task that has one, by seq, and whether it has failed since it was opened.
    statuses: BTreeMap<String, (&'static str, bool)>,
    progress: Progress,
    /// Why CASCADE is to be entered although something could still begin.
    pub forced: Option<Executed>,
}

impl Knowledge {
    /// Of a campaign's tasks, with lessons of earlier ones.
    pub fn new(plan: TaskPlan, lessons: Vec<Lesson>) -> Self {
        Self { plan, lessons, ..Self::default() }
    }

    /// Learns from an event. Events of earlier processes count as well.
    pub fn learn(&mut self, event: &Event) {
        match &event.kind {
            EventKind::AttemptStarted { operation, .. } => self.enter(operation.raw(), NodeStatus::Running),
            EventKind::AttemptFinished { operation, success: true, delivery: Some(delivery), .. } => {
                let message = delivery.message.as_ref().map(|text| text.line(300));
                self.delivered.insert(operation.raw().to_owned(), message.unwrap_or_default());
            }
            EventKind::ErrorClassified { operation, fault, .. } => {
                let cause = fault
                    .cause
                    .as_ref()
                    .map_or_else(|| fault.reason.code().to_owned(), |cause| cause.line(300));
                self.causes.insert(operation.raw().to_owned(), cause);
            }
            EventKind::Override { what, rationale, .. } => {
                if let Some(seq) = what.raw().strip_prefix(BLOCK_OVERRIDE) {
                    let cause = format!("blocked by a person: {}", rationale.line(300));
                    self.causes.insert(seq.to_owned(), cause);
                }
            }
            EventKind::DecisionMade { operation: Some(seq), decision, .. } => {
                self.enter(seq.raw(), NodeStatus::Pending);
                self.statuses.entry(seq.raw().to_owned()).or_default().1 |= is_own_failure(decision);
            }
            EventKind::StateEntered { operation: Some(seq), state, .. } => {
                let status = NodeStatus::from_name(state);
                if let Some(status) = status {
                    self.enter(seq.raw(), status);
                }
                let seq = seq.raw().to_owned();
                match status {
                    Some(NodeStatus::Failed) => {
                        let by_person = || "blocked by a person".to_owned();
                        let cause = self.causes.get(&seq).cloned().unwrap_or_else(by_person);
                        self.blocked.insert(seq, cause);
                    }
                    Some(NodeStatus::Pending) => {
                        self.blocked.remove(&seq);
                        self.causes.remove(&seq);
                        self.statuses.remove(&seq);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Counts what was recorded just now; says whether CASCADE is to be entered.
    pub fn count(&mut self, events: &[Event]) {
        let finished = |event: &Event| matches!(&event.kind, EventKind::StateEntered { operation: Some(_), state, .. } if state == NodeStatus::Complete.name());
        let is_finished = events.iter().any(finished);
        for event in events {
            if let EventKind::DecisionMade { operation: Some(_), decision, .. } = &event.kind
                && is_own_failure(decision)
            {
                self.look(false);
            }
        }
        if is_finished {
            self.look(true);
        }
    }

    fn enter(&mut self, seq: &str, status: NodeStatus) {
        self.statuses.entry(seq.to_owned()).or_default().0 = status.name();
    }

    /// That a task fails for the first time is a change; that it fails again, as it did, is none.
    fn look(&mut self, finished: bool) {
        let mut hasher = DefaultHasher::new();
        self.statuses.hash(&mut hasher);
        if let Some(forced) = self.progress.look(finished, hasher.finish()) {
            self.forced.get_or_insert(forced);
        }
    }

    /// What the builder of an attempt is told.
    pub fn advice(&self, job: &AttemptJob) -> Advice {
        let Some(task) = self.plan.tasks.iter().find(|task| task.seq == job.id) else {
            return Advice::default();
        };
        let budget = self.plan.budget(task, !self.blocked.is_empty());
        // A workspace that is made anew has nothing in it that the task does not need.
        let is_minimal = job.previous.as_ref().is_some_and(|fault| fault.reason == Reason::StateInvalid);
        let context = if is_minimal { None } else { self.context(task, job) };
        Advice { context, iterations_max: Some(budget) }
    }

    fn context(&self, task: &Task, job: &AttemptJob) -> Option<SafeText> {
        let mut lines: Vec<String> = Vec::new();
        for parent in &task.depends {
            if let Some(delivered) = self.delivered.get(parent).filter(|text| !text.is_empty()) {
                lines.push(format!("Task {parent}, which this one builds on, delivered: {delivered}"));
            }
        }
        for (seq, reason) in self.blocked.iter().filter(|(seq, _)| **seq != task.seq).take(SIBLINGS_MAX) {
            lines.push(format!("Task {seq} is blocked: {reason}"));
        }
        let failed =
            job.previous.as_ref().and_then(|fault| fault.cause.as_ref()).map(|cause| signature(cause.raw()));
        let about = |lesson: &&Lesson| lesson.is_about(failed.as_deref(), &task.delta);
        for lesson in self.lessons.iter().filter(about).take(LESSONS_MAX) {
            let cure = lesson
                .cure
                .as_ref()
                .map_or("nothing cured it".to_owned(), |cure| format!("cured by: {}", cure.line(300)));
            lines.push(format!(
                "An earlier campaign failed with {} ({}); tried: {}; {cure}",
                lesson.reason.code(),
                lesson.signature.line(200),
                lesson.tried.line(200),
            ));
        }
        (!lines.is_empty()).then(|| SafeText::new(lines.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::{EventId, RunId, Timestamp};
    use std::time::Duration;

    /// A run whose events come one transaction after the other.
    #[derive(Default)]
    struct Told(Knowledge, u64);

    impl Told {
        fn tell(&mut self, kinds: Vec<EventKind>) -> Option<Executed> {
            let run: RunId = "r-0001".parse().unwrap();
            let events: Vec<Event> = kinds
                .into_iter()
                .map(|kind| {
                    self.1 += 1;
                    Event {
                        schema: backstop_core::EVENT_SCHEMA,
                        id: EventId { run, seq: self.1 },
                        run,
                        seq: self.1,
                        at: Timestamp::from_millis(0),
                        session: None,
                        surface: "campaign".into(),
                        caller: None,
                        kind,
                    }
                })
                .collect();
            events.iter().for_each(|event| self.0.learn(event));
            self.0.count(&events);
            self.0.forced.clone()
        }

        fn fails(&mut self, seq: &str) -> Option<Executed> {
            self.tell(vec![EventKind::AttemptStarted { operation: seq.into(), attempt: 1 }]);
            self.tell(vec![decision(seq, retry())])
        }

        fn enters(&mut self, seq: &str, status: NodeStatus) -> Option<Executed> {
            self.tell(vec![crate::drive::task_entered(seq, status)])
        }
    }

    fn retry() -> Action {
        Action::Retry { after: Duration::ZERO, attempt: 2, of: 9 }
    }

    fn decision(seq: &str, action: Action) -> EventKind {
        let decision = Decision { action, why: "it failed".to_owned() };
        EventKind::DecisionMade { operation: Some(seq.into()), attempt: 1, decision, reclassified: None }
    }

    #[test]
    fn a_task_that_fails_again_and_again_is_no_change() {
        let mut told = Told::default();
        let seen = [1, 2, 3].map(|_| told.fails("001"));
        assert_eq!(seen, [None, None, None]);
        assert_eq!(told.fails("001"), Some(Executed::StuckDetected), "three looks at which nothing changed");
    }

    #[test]
    fn many_tasks_that_each_fail_once_are_not_stuck() {
        let mut told = Told::default();
        let seqs: Vec<String> = (1..16).map(|n| format!("{n:03}")).collect();
        for seq in &seqs {
            told.tell(vec![EventKind::AttemptStarted { operation: seq.as_str().into(), attempt: 1 }]);
        }
        for seq in &seqs {
            // Begun again in the same transaction.
            let again = EventKind::AttemptStarted { operation: seq.as_str().into(), attempt: 2 };
            assert_eq!(told.tell(vec![decision(seq, retry()), again]), None, "{seq}");
        }
    }

    #[test]
    fn a_task_that_is_finished_or_blocked_in_between_is_a_change() {
        for status in [NodeStatus::Complete, NodeStatus::Failed, NodeStatus::Blocked] {
            let mut told = Told::default();
            for n in 1..7 {
                assert_eq!(told.fails("001"), None);
                assert_eq!(told.enters(&format!("{n:03}0"), status), None);
            }
        }
    }

    #[test]
    fn a_wait_for_the_world_is_no_look() {
        let mut told = Told::default();
        for _ in 0..9 {
            told.tell(vec![EventKind::AttemptStarted { operation: "001".into(), attempt: 1 }]);
            let waits =
                Action::AwaitGuard { provider: "a".to_owned(), after: Duration::ZERO, attempt: 2, of: 2 };
            assert_eq!(told.tell(vec![decision("001", waits)]), None);
        }
    }
}
