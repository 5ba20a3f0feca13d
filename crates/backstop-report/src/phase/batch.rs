//! Phases that run side by side, when one or several of them fail.

use crate::notice::{Marker, Notice, Value, Words, json_text};
use backstop_core::{Reason, SafeText};

/// Where a phase of a batch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchState {
    /// It has not begun.
    Pending,
    /// It runs.
    Running,
    /// It is complete.
    Complete,
    /// It failed.
    Failed,
}

/// A phase of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchPhase {
    /// Its id, such as `2A`.
    pub id: SafeText,
    /// Where it stands.
    pub state: BatchState,
    /// The attempt that this is about, counted from 1.
    pub attempt: u32,
    /// Why it failed, and what was said.
    pub failure: Option<(Reason, SafeText)>,
}

/// Phases that run side by side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// The plan.
    pub plan: SafeText,
    /// The phases, in the plan's order.
    pub phases: Vec<BatchPhase>,
    /// How the retries ended, once they have.
    pub retried: Vec<BatchPhase>,
    /// Whether finished phases are committed at once.
    pub commits: bool,
    /// The command that continues the run.
    pub resume: SafeText,
}

/// A phase failed while its siblings still run.
pub fn batch_partial_failure(given: &Batch) -> Notice {
    let running = given.ids(BatchState::Running);
    let failed = given.ids(BatchState::Failed);
    let names = |ids: &[SafeText]| Words::names(ids, crate::notice::NAMES_MAX);
    given
        .headed("batch_partial_failure", "PARALLEL BATCH - PARTIAL FAILURE")
        .value(
            "batch",
            "Batch",
            Value::Bracketed(given.phases.iter().map(|phase| phase.id.clone()).collect()),
        )
        .gap()
        .list(
            "status",
            "Status",
            Marker::Indent,
            given.phases.iter().map(|phase| phase.words(true)).collect(),
        )
        .gap()
        .with(given.failures(), failures)
        .field("decision", "Decision", "the siblings that run are left to finish; the retry follows")
        .gap()
        .list(
            "rationale",
            "Rationale",
            Marker::Number,
            vec![
                "What they finish is kept".into(),
                Words::own("Retrying ").and_words(names(&failed)).and(" later cannot get in their way"),
                "Ending them now would only mean doing their work again".into(),
            ],
        )
        .gap()
        .next_line(Words::own("nothing for you to do: waiting for ").and_words(names(&running)))
}

/// The siblings have finished; the phase is tried again.
pub fn batch_retry(given: &Batch) -> Notice {
    let failed = given.ids(BatchState::Failed);
    let complete = Words::names(&given.ids(BatchState::Complete), crate::notice::NAMES_MAX);
    let committed = match given.commits {
        true => " is kept, and is committed already; the retry runs apart from it",
        false => " is kept; the retry runs apart from it",
    };
    given
        .headed("batch_retry", "PARALLEL BATCH - RETRY AFTER SIBLINGS")
        .gap()
        .list(
            "status",
            "All siblings complete",
            Marker::Indent,
            given.phases.iter().map(|phase| phase.words(false)).collect(),
        )
        .gap()
        .with(given.failures(), failures)
        .field("note", "Note", Words::own("the work of ").and_words(complete).and(committed))
        .gap()
        .next_line(
            Words::own("nothing for you to do: the retry of ")
                .and_words(Words::names(&failed, crate::notice::NAMES_MAX))
                .and(" starts now"),
        )
}

/// Several phases of a batch failed; and how their retries ended, once they have.
pub fn batch_multiple_failures(given: &Batch) -> Notice {
    let failed = given.ids(BatchState::Failed);
    let retry = |(n, id): (usize, &SafeText)| {
        let others: Vec<SafeText> =
            failed.iter().enumerate().filter(|(other, _)| *other != n).map(|(_, id)| id.clone()).collect();
        let retry = Words::own(format!("Retry {}: Phase ", n + 1)).and_outside(id);
        if others.is_empty() {
            return retry;
        }
        retry.and(" (parallel with ").and_words(Words::names(&others, 3)).and(" retry)")
    };
    let page = given
        .headed("batch_multiple_failures", "PARALLEL BATCH - MULTIPLE FAILURES")
        .value(
            "batch",
            "Batch",
            Value::Bracketed(given.phases.iter().map(|phase| phase.id.clone()).collect()),
        )
        .gap()
        .list(
            "results",
            "Results",
            Marker::Indent,
            given.phases.iter().map(|phase| phase.result(false)).collect(),
        )
        .gap()
        .with(given.failures(), failures)
        .list(
            "retries",
            "Several phases failed; each has its own retry, side by side",
            Marker::Indent,
            failed.iter().enumerate().map(retry).collect(),
        )
        .gap();
    if given.retried.is_empty() {
        return page.next_line("nothing for you to do: the retries start now");
    }
    let lost: Vec<SafeText> = given
        .retried
        .iter()
        .filter(|phase| phase.state == BatchState::Failed)
        .map(|phase| phase.id.clone())
        .collect();
    let page = page
        .list(
            "retry_results",
            "Retry results",
            Marker::Indent,
            given.retried.iter().map(|phase| phase.result(true)).collect(),
        )
        .gap();
    if lost.is_empty() {
        return page.next_line("nothing: every retry succeeded, and the run goes on");
    }
    page.line("verdict", Words::own("After its retry, still failed: ").and_words(Words::names(&lost, 8)))
        .line("closing", "BACKSTOP HALTED")
        .gap()
        .next_line(Words::own("mend what failed, then ").and_code(&given.resume))
}

fn failures(notice: Notice, items: Vec<Words>) -> Notice {
    notice.list("", "Failure details", Marker::Indent, items).gap()
}

impl Batch {
    fn ids(&self, state: BatchState) -> Vec<SafeText> {
        self.phases.iter().filter(|phase| phase.state == state).map(|phase| phase.id.clone()).collect()
    }

    /// The reason of the first phase that failed.
    fn headed(&self, kind: &'static str, title: &str) -> Notice {
        let reason =
            self.phases.iter().find_map(|phase| phase.failure.as_ref()).map_or(Reason::Unknown, |f| f.0);
        Notice::headed(kind, title, Some(reason))
            .field("plan", "Plan", Words::outside(&self.plan))
            .reason_line()
            .data("phases", self.phases.iter().map(BatchPhase::json).collect::<Vec<_>>())
    }

    /// What each failed phase failed of.
    fn failures(&self) -> Option<Vec<Words>> {
        let line = |phase: &BatchPhase| {
            let (reason, message) = phase.failure.as_ref()?;
            let head = Words::outside(&phase.id).and(format!(": {reason} ({}): ", reason.class()));
            Some(head.and_outside(message))
        };
        let items: Vec<Words> = self.phases.iter().filter_map(line).collect();
        (!items.is_empty()).then_some(items)
    }
}

impl BatchPhase {
    /// `Phase 2A: failed (attempt 1)`.
    fn words(&self, loud: bool) -> Words {
        let state = match self.state {
            BatchState::Pending => "pending".to_owned(),
            BatchState::Running => "running...".to_owned(),
            BatchState::Complete => "complete".to_owned(),
            BatchState::Failed if loud => format!("FAILED (attempt {})", self.attempt),
            BatchState::Failed => format!("failed (attempt {})", self.attempt),
        };
        Words::own("Phase ").and_outside(&self.id).and(format!(": {state}"))
    }

    /// `Phase 2A: failed`, or `Phase 2A: complete (retry succeeded)`.
    fn result(&self, retry: bool) -> Words {
        let state = match (self.state, retry) {
            (BatchState::Complete, true) => "complete (retry succeeded)",
            (BatchState::Failed, true) => "failed (retry failed)",
            (BatchState::Complete, false) => "complete",
            (BatchState::Failed, false) => "failed",
            (BatchState::Pending, _) => "pending",
            (BatchState::Running, _) => "running...",
        };
        Words::own("Phase ").and_outside(&self.id).and(format!(": {state}"))
    }

    fn json(&self) -> serde_json::Value {
        let state = match self.state {
            BatchState::Pending => "pending",
            BatchState::Running => "running",
            BatchState::Complete => "complete",
            BatchState::Failed => "failed",
        };
        let failure = self.failure.as_ref();
        serde_json::json!({
            "phase_id": json_text(&self.id), "status": state, "attempt": self.attempt,
            "type": failure.map(|(reason, _)| reason), "message": failure.map(|(_, message)| json_text(message)),
        })
    }
}
