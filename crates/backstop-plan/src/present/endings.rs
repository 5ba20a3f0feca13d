//! The summary at the end of a run: halted or complete.

use super::rows::short_hash;
use crate::Ending;
use crate::record::{GateRecord, PhaseProgress, RunRecord, fault_message};
use crate::view::{ViewFolder, blockers};
use crate::workspace::Conclusion;
use backstop_core::{BaseGate, BaseState, End, Fault, LimitWindow, Reason, SafeText, Timestamp, WorkAt};
use backstop_report::plan::{
    BlockedPhase, CompletePhase, CompletedPhase, Completion, FailedPhase, HaltSummary, PendingPhase,
    PreservedState, WaitSum,
};
use backstop_report::{duration, near_time, user_actions};
use backstop_runtime::host::NodeStatus;
use std::time::Duration;

/// What the summary needs beside the record.
pub struct Facts<'f> {
    /// Where the views are.
    pub views: &'f ViewFolder,
    /// Shortens a path for people.
    pub shown: &'f dyn Fn(&std::path::Path) -> String,
    /// The step that has to come first, where there is one.
    pub first: Option<SafeText>,
    /// The command that resumes the run.
    pub resume: String,
    /// Refs that hold work which is not on the user's branch.
    pub kept: Vec<SafeText>,
    /// How long the run took since it was started or resumed.
    pub elapsed: Duration,
    /// Notes for people.
    pub notes: Vec<SafeText>,
    /// The time.
    pub now: Timestamp,
}

/// How long after the end of a limit a run is started that halted because of it.
const START_MARGIN: Duration = Duration::from_secs(60);
/// A limit that ends later is nothing to wait for.
const START_MAX: Duration = Duration::from_secs(31 * 24 * 3600);
/// How many logs of failed phases are named.
const LOGS_MAX: usize = 3;

/// The text with a capital first letter.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The summary of a run that halted.
pub fn halt(ending: &Ending, facts: &Facts<'_>) -> Option<HaltSummary> {
    let record = &ending.record;
    let run = record.progress.run?;
    let with = |status: NodeStatus| record.phases().filter(move |phase| phase.node.status == status);
    let stopped = ending.end == End::Stopped;
    // A phase whose retry did not begin any more counts as failed.
    let unfinished = |phase: &PhaseProgress<'_>| {
        let node = phase.node;
        node.status == NodeStatus::Pending && node.attempt > 0 && node.last_error().is_some()
    };
    let failed: Vec<FailedPhase> = record
        .phases()
        .filter(|phase| phase.node.status == NodeStatus::Failed || (!stopped && unfinished(phase)))
        .map(|phase| failed_phase(phase, record.plan.max_attempts, facts))
        .collect();
    let reason = if stopped {
        ending.frozen.unwrap_or(Reason::Interrupted)
    } else {
        ending.reason.unwrap_or(Reason::Unknown)
    };
    let resume = SafeText::new(facts.resume.clone());
    Some(HaltSummary {
        box_title: "BACKSTOP HALTED".into(),
        plan: record.path().clone(),
        reason,
        reason_line: SafeText::new(reason_line(ending, reason, facts.now)),
        completed: with(NodeStatus::Complete).map(completed).collect(),
        blocked: with(NodeStatus::Blocked)
            .map(|phase| BlockedPhase {
                id: phase.plan.shown.clone(),
                name: phase.plan.name.clone(),
                by: blockers(record, &phase.plan.id).iter().map(|id| shown_id(record, id)).collect(),
            })
            .collect(),
        pending: with(NodeStatus::Pending)
            .filter(|phase| stopped || !unfinished(phase))
            .map(|phase| PendingPhase { id: phase.plan.shown.clone(), name: phase.plan.name.clone() })
            .collect(),
        usage: record.progress.used(),
        state: PreservedState {
            folder: SafeText::new((facts.shown)(facts.views.path())),
            files: record.len() as u64,
            logs: SafeText::new((facts.shown)(&facts.views.logs())),
            run,
            kept_refs: facts.kept.clone(),
        },
        steps: facts
            .first
            .iter()
            .cloned()
            .chain(steps(ending, reason, &failed, facts))
            .chain(weakened(record))
            .collect(),
        failed,
        resume,
        fresh_hint: SafeText::new("add --fresh; commits stay"),
    })
}

fn shown_id(record: &RunRecord, id: &str) -> SafeText {
    record.phase_of(id).map_or_else(|| SafeText::new(id), |phase| phase.plan.shown.clone())
}

fn completed(phase: PhaseProgress<'_>) -> CompletedPhase {
    CompletedPhase {
        id: phase.plan.shown.clone(),
        name: phase.plan.name.clone(),
        commits: commits(phase),
        skipped: phase.node.skipped,
    }
}

fn commits(phase: PhaseProgress<'_>) -> Vec<(SafeText, SafeText)> {
    phase.commits.iter().map(|(sha, subject)| (SafeText::new(short_hash(sha)), subject.clone())).collect()
}

fn failed_phase(phase: PhaseProgress<'_>, max_attempts: u32, facts: &Facts<'_>) -> FailedPhase {
    let last = phase.node.errors.last();
    FailedPhase {
        id: phase.plan.shown.clone(),
        name: phase.plan.name.clone(),
        attempts: phase.node.attempt,
        of: max_attempts.max(phase.node.attempt),
        total_attempts: phase.node.total,
        error: last.map_or(Reason::Unknown, |error| error.fault.reason),
        details: last.map(|error| fault_message(&error.fault)).unwrap_or_default(),
        retried: phase.node.attempt > 1,
        log: SafeText::new((facts.shown)(&facts.views.attempt_log(&phase.plan.id, phase.node.total))),
    }
}

fn reason_line(ending: &Ending, reason: Reason, now: Timestamp) -> String {
    let record = &ending.record;
    if let Some(fault) = &ending.unprepared {
        return format!("Nothing was begun: {}", fault_message(fault).line(300));
    }
    if let Some(fault) = &ending.unconcluded {
        return format!(
            "Every phase is complete, and the work cannot be put in place: {}",
            fault_message(fault).line(300)
        );
    }
    let End::Halted(failed) = &ending.end else {
        return match ending.frozen {
            Some(_) => "The project was frozen meanwhile: nothing new begins in it".to_owned(),
            None => "Interrupted (Ctrl-C)".to_owned(),
        };
    };
    let Some(phase) = failed.first().map(|at| record.phase(*at)) else {
        return format!("{reason}");
    };
    let id = phase.plan.shown.line(40);
    let limit = failed.iter().find_map(|at| limit_words(ending.record.phase(*at), now));
    if let Some(words) = limit.filter(|_| reason == Reason::RateLimited) {
        return format!("Phase {id} is limited: {words}");
    }
    match failed.len() {
        1 if phase.node.attempt > 1 => format!("Phase {id} failed after retry"),
        1 => format!("Phase {id} failed: {reason} is not tried again"),
        n => format!("{n} phases failed; the first was {id}"),
    }
}

/// Whose limit ended a phase, and when it ends:
/// `anthropic, weekly limit, resets 2026-11-20 08:00 UTC, which is longer than one wait may be`.
fn limit_words(phase: PhaseProgress<'_>, now: Timestamp) -> Option<String> {
    let facts =
        &phase.node.errors.last().filter(|error| error.fault.reason == Reason::RateLimited)?.fault.facts;
    let model = facts.model.as_ref().map(|model| format!(" ({})", model.line(40))).unwrap_or_default();
    let whom =
        facts.provider.as_ref().map(|provider| format!("{}{model}, ", provider.line(40))).unwrap_or_default();
    let what = facts.window.map_or("rate limit", LimitWindow::words);
    Some(match facts.resets_at.filter(|at| *at > now) {
        Some(at) => format!("{whom}{what}, resets {} (in {})", near_time(at, now), duration(at.since(now))),
        None => format!("{whom}{what}, and nobody says when it ends"),
    })
}

/// The command that starts a run again when its limit is over.
fn start_later(ending: &Ending, facts: &Facts<'_>) -> Option<SafeText> {
    let End::Halted(nodes) = &ending.end else { return None };
    let fault = |at: &usize| ending.record.phase(*at).node.errors.last().map(|error| &error.fault);
    let limits = nodes.iter().filter_map(fault).filter(|fault| fault.reason == Reason::RateLimited);
    let at = limits.filter_map(|fault| fault.facts.resets_at).filter(|at| *at > facts.now).max()?;
    let at = at.after(START_MARGIN);
    if at.since(facts.now) > START_MAX {
        return None;
    }
    Some(SafeText::new(format!("Start it when the limit is over: `{} --at {at}`", facts.resume)))
}

/// The next steps: what the fault suggests, then the usual step for its reason, then the logs.
fn steps(ending: &Ending, reason: Reason, failed: &[FailedPhase], facts: &Facts<'_>) -> Vec<SafeText> {
    if ending.end == End::Stopped {
        return Vec::new();
    }
    let mut steps = Vec::new();
    if let Some(fault) = ending.unprepared.as_ref().or(ending.unconcluded.as_ref()) {
        steps.push(SafeText::new(capital(fault.suggested_action.raw())));
        return steps;
    }
    let End::Halted(nodes) = &ending.end else { return steps };
    steps.extend(start_later(ending, facts));
    if ending.record.plan.isolation == "worktree" {
        let worked = failed.iter().filter(|phase| phase.total_attempts > 0).take(LOGS_MAX);
        steps.extend(worked.map(|phase| {
            SafeText::new(format!("See the failed work: `backstop plan diff {}`", phase.id.line(40)))
        }));
    }
    let fault =
        nodes.first().and_then(|at| ending.record.phase(*at).node.errors.last()).map(|error| &error.fault);
    if let Some(fault) = fault {
        let action = capital(&fault.suggested_action.line(300));
        if fault.facts.files.is_empty() {
            steps.push(SafeText::new(action));
        } else {
            let files: Vec<String> = fault.facts.files.iter().take(3).map(|file| file.line(100)).collect();
            steps.push(SafeText::new(format!("{action} ({})", files.join(", "))));
        }
    }
    let known = fault.cloned().map(|fault| fault.renamed(reason));
    for action in user_actions(&known.unwrap_or_else(|| Fault::new(reason))) {
        let listed =
            steps.iter().any(|step: &SafeText| step.raw().to_lowercase().contains(&action.to_lowercase()));
        if !listed {
            steps.push(SafeText::new(*action));
        }
    }
    for phase in failed.iter().take(LOGS_MAX) {
        steps.push(SafeText::new(format!("Read the log: {}", phase.log.raw())));
    }
    steps
}

/// What phases changed that they are judged by: somebody should look at it.
fn weakened(record: &RunRecord) -> impl Iterator<Item = SafeText> + '_ {
    record.phases().flat_map(|phase| {
        let signs =
            phase.node.delivery.as_ref().map(|delivery| delivery.weakened.clone()).unwrap_or_default();
        let id = phase.plan.shown.line(40);
        signs.into_iter().map(move |sign| SafeText::new(format!("Look at this: {id} {}", sign.raw())))
    })
}

/// How often and how long a run waited for rate limits.
pub fn wait_sum(record: &RunRecord, now: Timestamp) -> WaitSum {
    let (times, waited) = record.progress.waits.sum(now);
    WaitSum { times, waited }
}

/// How many of the phases that were not skipped had their work checked by a gate. One that failed
/// on the base and whose failures nobody can tell apart has checked nothing.
fn verified(record: &RunRecord) -> u64 {
    let is_verified = |phase: &PhaseProgress<'_>| {
        let says_something = |gate: &GateRecord| {
            gate.passed && (gate.known_failures == 0 || record.tells_failures(&gate.gate))
        };
        phase.gates.iter().any(says_something)
            && phase.gates.iter().all(|gate| gate.passed || gate.is_not_counted())
    };
    let done = record.phases().filter(|phase| !phase.node.skipped && is_verified(phase));
    done.fold(0, |sum, _| sum + 1)
}

/// The gates that fail on the user's own commits, with what fails: nobody has mended it.
fn red(gates: &[BaseGate]) -> Vec<SafeText> {
    let failed = gates.iter().filter(|gate| gate.state == BaseState::Failed);
    let shown = failed.map(|gate| match gate.failures.as_slice() {
        [] => gate.gate.clone(),
        [one] => format!("{} ({})", gate.gate, one.line(60)),
        [one, rest @ ..] => format!("{} ({} and {} more)", gate.gate, one.line(60), rest.len()),
    });
    shown.map(SafeText::new).collect()
}

/// The note about the squashed commit of `--commit single`.
fn one_commit((sha, subject): &(String, SafeText)) -> SafeText {
    SafeText::new(format!("One commit for all phases: {} {}", short_hash(sha), subject.line(200)))
}

/// The summary of a run that is complete.
pub fn completion(record: &RunRecord, conclusion: &Conclusion, facts: &Facts<'_>) -> Option<Completion> {
    let complete = |phase: PhaseProgress<'_>| CompletePhase {
        id: phase.plan.shown.clone(),
        name: phase.plan.name.clone(),
        skipped: phase.node.skipped,
        elapsed: (phase.node.total > 0).then(|| Duration::from_millis(phase.node.worked_ms)),
        attempts: phase.node.total,
        retried: !phase.node.errors.is_empty(),
        flaky: phase.gates.iter().flat_map(|gate| gate.flaky.clone()).collect(),
        gates_skipped: phase
            .gates
            .iter()
            .filter(|gate| gate.is_not_counted())
            .map(GateRecord::name)
            .collect(),
        commits: commits(phase),
    };
    Some(Completion {
        plan: record.path().clone(),
        run: record.progress.run?,
        elapsed: facts.elapsed,
        phases: record.phases().map(complete).collect(),
        one_commit: conclusion
            .commit
            .as_ref()
            .map(|(sha, subject)| (SafeText::new(short_hash(sha)), subject.clone())),
        work: conclusion.work.clone().unwrap_or(WorkAt::Uncommitted { command: None }),
        files_changed: conclusion.files_changed,
        usage: record.progress.used(),
        waits: wait_sum(record, facts.now),
        verified: verified(record),
        red: red(&conclusion.base_gates),
        notes: facts
            .notes
            .iter()
            .cloned()
            .chain(weakened(record))
            .chain(conclusion.commit.as_ref().map(one_commit))
            .collect(),
    })
}
