//! What builders are told beyond their task: what finished parents delivered, what blocked siblings
//! failed of, lessons of earlier campaigns, and how many iterations there are.
//!
//! It follows the run as it is recorded, so that the next prompt knows of it. It also counts what
//! EXECUTE does without finishing anything.

use crate::record::BLOCK_OVERRIDE;
use crate::step::{Executed, Progress};
use crate::task::{Task, TaskPlan};
use backstop_core::{Event, EventKind, Reason, SafeText, signature};
use backstop_plan::workspace::Advice;
use backstop_runtime::host::{AttemptJob, NodeStatus};
use backstop_store::Lesson;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How many siblings and lessons go into a prompt.
const SIBLINGS_MAX: usize = 20;
const LESSONS_MAX: usize = 10;

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
    failures: BTreeMap<String, u32>,
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
            EventKind::StateEntered { operation: Some(seq), state, .. } => {
                let seq = seq.raw().to_owned();
                match NodeStatus::from_name(state) {
                    Some(NodeStatus::Failed) => {
                        let by_person = || "blocked by a person".to_owned();
                        let cause = self.causes.get(&seq).cloned().unwrap_or_else(by_person);
                        self.blocked.insert(seq, cause);
                    }
                    Some(NodeStatus::Pending) => {
                        self.blocked.remove(&seq);
                        self.causes.remove(&seq);
                        self.failures.remove(&seq);
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
            if let EventKind::DecisionMade { operation: Some(seq), decision, .. } = &event.kind {
                // What the world did wrong is waited for and says nothing about the tasks.
                if matches!(decision.action, backstop_core::Action::AwaitGuard { .. }) {
                    continue;
                }
                *self.failures.entry(seq.raw().to_owned()).or_default() += 1;
                self.look(false);
            }
        }
        if is_finished {
            self.look(true);
        }
    }

    fn look(&mut self, finished: bool) {
        let mut hasher = DefaultHasher::new();
        (&self.failures, &self.blocked, self.delivered.len()).hash(&mut hasher);
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
