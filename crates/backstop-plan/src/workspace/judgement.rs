//! Judges an attempt by three signals: how its process ended, what it claims, and what the gates
//! say.

use super::attempt_log::AttemptLog;
use super::phase_runner::{AttemptDir, IsChanged, PhaseRunner, Worker};
use backstop_core::{Delivery, Fault, Reason, SafeText};
use backstop_runtime::host::AttemptResult;
use backstop_work::agent::{Attempted, Claim};
use backstop_work::gate::{Judgement, judge};
use std::cell::OnceCell;
use std::time::Duration;

/// How much of the end of an attempt's output is recorded, in bytes.
const OUTPUT_BYTES_MAX: usize = 2 << 10;

/// Asks the agent for the result of work that is there.
pub(super) type AskForResult<'a> = &'a dyn Fn(&Attempted) -> Option<Attempted>;

impl PhaseRunner<'_> {
    /// Runs the gates and compares them with what the attempt claims.
    pub(super) fn judge_attempt(
        &self,
        dir: &AttemptDir<'_>,
        log: &AttemptLog,
        changed: IsChanged<'_>,
        mut attempted: Attempted,
        ask: AskForResult<'_>,
    ) -> AttemptResult {
        let phase = self.phase(dir.node);
        let mut unreported = None;
        if attempted.lacks_only_result() && changed() != Some(false) {
            // Red gates say more than a missing result; green ones make it worth asking for.
            unreported = self.failed_gates(dir, log);
            if unreported.is_none()
                && let Some(asked) = ask(&attempted)
            {
                attempted = attempted.asked_again(asked);
            }
        }
        let is_agent = matches!(self.equipment[dir.node].worker, Worker::Agent { .. });
        let claim = attempted.envelope.as_ref().map(|envelope| envelope.status);
        let done = tasks_done(phase.tasks.len(), is_agent, &attempted);
        // An agent that exits 0 and claims to have failed may have done the work: gates and tree
        // decide.
        let only_claims = claim == Some(Claim::Failed) && attempted.exit == Some(0);
        let mut fault = unreported.or_else(|| attempted.fault.clone().map(Box::new));
        // One that claims to be done and exits with an error has to be confirmed by a gate.
        let is_contradicted = attempted.is_contradicted && !self.equipment[dir.node].gates.is_empty();
        // Looked at once, after the gates: nothing runs from there on.
        let is_changed = OnceCell::new();
        let changed = || *is_changed.get_or_init(changed);
        if fault.is_none() || only_claims || is_contradicted {
            let checks = self.run_gates(dir, log, "gates");
            let left = u32::try_from(phase.tasks.len().saturating_sub(done.len())).ok();
            fault = match checks {
                Ok(checks) => match judge(claim, &checks, changed(), left) {
                    Judgement::Complete => None,
                    // Not confirmed: how it ended counts.
                    Judgement::Failed(_) if is_contradicted => fault,
                    // The agent's own error says more than "it claims to have failed".
                    Judgement::Failed(found) if found.reason == Reason::TaskIncomplete && only_claims => {
                        fault.or(Some(found))
                    }
                    Judgement::Failed(found) => Some(found),
                },
                Err(found) => Some(found),
            };
        }
        // Where somebody has put the tree right meanwhile, an agent that truthfully changes nothing
        // has done all there is to do, if the gates say so.
        let is_put_right = dir.moved_since && !self.equipment[dir.node].gates.is_empty();
        if fault.is_none() && is_agent && !is_put_right && changed() == Some(false) {
            fault = Some(Box::new(did_nothing()));
        }
        if let Some(fault) = fault.as_mut().filter(|fault| fault.cause.is_none()) {
            fault.cause = Some(SafeText::new(match output_tail(&attempted.tail) {
                Some(output) => output.raw().lines().last().unwrap_or_default().to_owned(),
                None => match (attempted.exit, &attempted.signal) {
                    (_, Some(signal)) => format!("it was ended by {signal} and said nothing"),
                    (exit, None) => format!("it exited with {} and said nothing", exit.unwrap_or(-1)),
                },
            }));
        }
        self.note_oddities(dir, &attempted);
        let worker_lost = fault.is_some() && is_taken(dir, &attempted);
        let usage = attempted.usage.unwrap_or_default();
        let message = phase.settings.message.as_ref().map(|text| SafeText::new(text.clone()));
        let claimed = attempted.envelope.as_ref().and_then(|envelope| envelope.commit_message.clone());
        AttemptResult {
            output: fault.as_ref().and_then(|_| output_tail(&attempted.tail)),
            fault,
            dispatch: attempted.dispatch,
            worker_lost,
            exit: attempted.exit,
            signal: attempted.signal,
            duration: Duration::ZERO,
            delivery: Delivery {
                tasks_done: done,
                tasks_total: u32::try_from(phase.tasks.len()).unwrap_or(u32::MAX),
                message: message.or(claimed),
                tokens_in: usage.input_tokens,
                tokens_out: usage.output_tokens,
                cost_millionths: usage.cost_usd.map(millionths),
                ..Delivery::default()
            },
            events: Vec::new(),
        }
    }
}

impl PhaseRunner<'_> {
    /// Judges an agent that was to answer in words: they are what it delivers.
    pub(super) fn judge_answer(&self, dir: &AttemptDir<'_>, attempted: Attempted) -> AttemptResult {
        self.note_oddities(dir, &attempted);
        let mut fault = attempted.fault.clone().map(Box::new);
        if fault.is_none() && attempted.answer.is_none() {
            let mut silent = Fault::new(Reason::ParseError);
            silent.cause = Some("it ended well and said nothing".into());
            fault = Some(Box::new(silent));
        }
        let usage = attempted.usage.unwrap_or_default();
        AttemptResult {
            output: fault.as_ref().and_then(|_| output_tail(&attempted.tail)),
            dispatch: attempted.dispatch,
            worker_lost: is_taken(dir, &attempted) && fault.is_some(),
            exit: attempted.exit,
            signal: attempted.signal,
            duration: Duration::ZERO,
            delivery: Delivery {
                message: attempted.answer,
                tokens_in: usage.input_tokens,
                tokens_out: usage.output_tokens,
                cost_millionths: usage.cost_usd.map(millionths),
                ..Delivery::default()
            },
            events: Vec::new(),
            fault,
        }
    }

    /// What the gates find in work that came without a result; nothing where they pass.
    fn failed_gates(&self, dir: &AttemptDir<'_>, log: &AttemptLog) -> Option<Box<Fault>> {
        let checks = match self.run_gates(dir, log, "gates, before the result is asked for") {
            Ok(checks) => checks,
            Err(fault) => return Some(fault),
        };
        match judge(None, &checks, None, None) {
            Judgement::Complete => None,
            Judgement::Failed(fault) => Some(fault),
        }
    }

    /// Judges a phase whose work a person has done: by its gates alone.
    pub(super) fn judge_accepted(&self, dir: &AttemptDir<'_>, log: &AttemptLog) -> AttemptResult {
        log.write_line("accepted by a person: only the gates are run");
        let total = u32::try_from(self.phase(dir.node).tasks.len()).unwrap_or(u32::MAX);
        let judgement = self.run_gates(dir, log, "gates").map(|checks| judge(None, &checks, None, None));
        match judgement {
            Ok(Judgement::Complete) => AttemptResult::succeeded(Delivery {
                tasks_done: (1..=total).collect(),
                tasks_total: total,
                ..Delivery::default()
            }),
            Ok(Judgement::Failed(mut fault)) | Err(mut fault) => {
                // Nobody works on it: the same again would fail again.
                fault.facts.should_retry = Some(false);
                AttemptResult { dispatch: backstop_core::Dispatch::Answered, ..AttemptResult::failed(*fault) }
            }
        }
    }
}

/// Whether somebody else ended the worker.
fn is_taken(dir: &AttemptDir<'_>, attempted: &Attempted) -> bool {
    let taken = |name: &str| matches!(name, "SIGKILL" | "SIGTERM" | "SIGHUP" | "SIGINT");
    !attempted.timed_out && dir.stop.requests() == 0 && attempted.signal.as_deref().is_some_and(taken)
}

/// The numbers of the tasks that were done, counted from 1.
fn tasks_done(total: usize, is_agent: bool, attempted: &Attempted) -> Vec<u32> {
    let count = |n: usize| (1..=u32::try_from(n.min(total)).unwrap_or(u32::MAX)).collect();
    if !is_agent && attempted.envelope.is_none() {
        return if attempted.fault.is_none() { count(total) } else { Vec::new() };
    }
    let Some(envelope) = &attempted.envelope else { return Vec::new() };
    if let Some(done) = &envelope.tasks_done {
        let valid = |n: &&usize| (1..=total).contains(*n);
        return done.iter().filter(valid).filter_map(|n| u32::try_from(*n).ok()).collect();
    }
    match (envelope.status, envelope.tasks_completed) {
        (Claim::Complete, None) => count(total),
        (_, Some(n)) => count(usize::try_from(n).unwrap_or(0)),
        (Claim::Failed, None) => Vec::new(),
    }
}

/// Dollars as millionths: recorded costs are compared and added up, which floats are bad at.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Held within the range first.
fn millionths(dollars: f64) -> u64 {
    (dollars.clamp(0.0, 1e9) * 1e6).round() as u64
}

fn did_nothing() -> Fault {
    let mut fault = Fault::new(Reason::VerificationMismatch);
    fault.cause = Some("the agent says that the phase is complete, and nothing was changed".into());
    fault.suggested_action =
        "read the agent's log; where there was nothing to do, pass the phase over with `backstop plan skip`"
            .into();
    fault
}

fn output_tail(tail: &[u8]) -> Option<SafeText> {
    let text = String::from_utf8_lossy(tail);
    let text = text.trim_end();
    let from = text.ceil_char_boundary(text.len().saturating_sub(OUTPUT_BYTES_MAX));
    let cut = if from == 0 { text } else { text[from..].split_once('\n').map_or("", |(_, rest)| rest) };
    (!cut.trim().is_empty()).then(|| SafeText::new(cut))
}
