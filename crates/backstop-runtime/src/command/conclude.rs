//! How a command's run ends: its exit code, what is put aside, what is recorded.

use super::{CommandAfter, PreparedCommand};
use crate::aftermath::deferred::stored_until;
use crate::machine_state;
use crate::recorder::Recorder;
use backstop_core::{Action, Decision, EventKind, Fault, Outcome, Reason, RunId, SafeText};
use backstop_engine::Finished;
use backstop_exec::has_controlling_terminal;
use backstop_report::CommandEnding;
use backstop_store::DeferredWork;
use rustix::process::Signal;
use std::ffi::OsString;

/// The exit code where Backstop could not or would not start a command.
pub const NOT_STARTED: u8 = 125;

/// What a run waits for that must not be repeated by itself.
const CONFIRMATION: &str = "somebody says that it is to be repeated";

/// The command that repeats what a run did, where somebody has to say so.
pub fn confirm_with(run: RunId) -> String {
    format!("backstop exec --confirm {run}")
}

impl PreparedCommand {
    /// Puts the command aside where that was decided, and records how its run ended. `caught` is
    /// the first signal that asked for its end.
    pub fn conclude(
        &self,
        recorder: &Recorder,
        after: &CommandAfter,
        finished: Finished<()>,
        caught: Option<i32>,
    ) -> CommandEnding {
        let exit = exit_code(after, &finished, caught);
        let mut events = finished.unrecorded;
        let (mut outcome, fault, mut decision) = match finished.result {
            Ok(()) if caught.is_none() => (Outcome::Done, None, None),
            Ok(()) => (Outcome::Interrupted, None, None),
            Err(ending) => {
                let outcome = if caught.is_some() { Outcome::Interrupted } else { ending.outcome };
                (outcome, Some(ending.fault), Some(ending.decision))
            }
        };
        let now = self.project.process.now();
        if let (Some(Decision { action: Action::Defer { until }, .. }), Some(fault)) = (&mut decision, &fault)
        {
            *until = stored_until(until, fault, now);
        }
        let next = match decision.as_ref().map(|d| &d.action) {
            Some(Action::Defer { until }) if outcome == Outcome::Deferred => {
                let address = fault.as_ref().and_then(machine_state::service_address);
                match self.defer(recorder, None, fault.as_ref(), until, address) {
                    Some(next) => {
                        let operation = SafeText::new(self.shown.as_str());
                        events.push(EventKind::Deferred { operation, until: until.clone() });
                        Some(format!("backstop deferred run {next}"))
                    }
                    // What could not be put aside has failed.
                    None => {
                        outcome = Outcome::Failed;
                        None
                    }
                }
            }
            Some(Action::Confirm { .. }) if outcome == Outcome::Unconfirmed => {
                let run = recorder.run();
                self.defer(recorder, Some(run), fault.as_ref(), CONFIRMATION, None).map(|_| confirm_with(run))
            }
            _ => None,
        };
        let next = next.map(SafeText::new);
        events.push(EventKind::RunEnded {
            outcome,
            reason: fault.as_ref().map(|f| f.reason),
            attempts: finished.attempts,
            duration_ms: u64::try_from(finished.elapsed.as_millis()).unwrap_or(u64::MAX),
            exit: Some(exit),
            next: next.clone(),
        });
        after.tell_parent(finished.attempts, fault.as_ref());
        let _ = recorder.end(events);
        let masked = |text: &str| SafeText::new(self.project.redactor.redact(text).into_owned());
        let is_key = |n: i32| [Signal::INT, Signal::QUIT].iter().any(|key| key.as_raw() == n);
        CommandEnding {
            run: recorder.run(),
            outcome,
            exit,
            attempts: finished.attempts,
            elapsed: finished.elapsed,
            command: masked(&self.shown),
            program: self.request.argv.first().map(|p| masked(&p.to_string_lossy())).unwrap_or_default(),
            fault,
            faults: finished.faults,
            decision,
            ended_at: self.project.process.now(),
            next,
            signal: after.last.signal(),
            // The keys of a terminal send these two to the command itself.
            stopped_here: caught.is_some()
                || after
                    .last
                    .signal_number()
                    .is_none_or(|signal| is_key(signal) && has_controlling_terminal()),
            reader_left: after.last.reader_left(),
            left_behind: after.last.left_behind(),
            unended: after.last.unended(),
            cached_seconds: None,
            recorded: recorder.is_recorded(),
        }
    }

    /// Puts the command aside. What waits for a confirmation names its run, so that each has its
    /// own. Gives the id under which it is found.
    fn defer(
        &self,
        recorder: &Recorder,
        waits: Option<RunId>,
        fault: Option<&Fault>,
        until: &str,
        address: Option<String>,
    ) -> Option<String> {
        let argv = &self.request.argv;
        let words = self.words_to_repeat(waits);
        let work = DeferredWork {
            run: recorder.run(),
            argv: words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            whole: argv.iter().all(|word| word.to_str().is_some()),
            folder: self.project.process.cwd.display().to_string(),
            reason: fault.map_or(Reason::Unknown, |fault| fault.reason),
            until: SafeText::new(until),
            is_task: false,
            address,
        };
        recorder.defer(&work).map(|id| id.to_string())
    }

    /// What is put aside: the flags that say how to run it, then the command.
    fn words_to_repeat(&self, waits: Option<RunId>) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        if let Some(run) = waits {
            words.extend(["--once".into(), "--confirm".into(), run.to_string().into()]);
        }
        for (flag, value) in &self.request.flags {
            words.extend([(*flag).into(), value.into()]);
        }
        if self.request.repeatable && waits.is_none() {
            words.push("--repeatable".into());
        }
        words.push("--".into());
        words.extend(self.request.argv.iter().cloned());
        words
    }
}

/// The exit code of a run.
fn exit_code(after: &CommandAfter, finished: &Finished<()>, caught: Option<i32>) -> i32 {
    // Whether the command ran when it was stopped, and had its own say.
    let ran = finished.result.as_ref().map_or_else(|e| e.fault.reason == Reason::Interrupted, |()| true);
    let own = after.last.exit().filter(|_| ran && after.last.signal().is_none());
    match (&finished.result, caught) {
        (_, Some(signal)) => own.unwrap_or(128 + signal),
        // An answer, such as that of `grep` without a match.
        (Ok(()), None) => after.last.exit().unwrap_or(0),
        // A limit that lasts too long ends it as it had ended; what never ran has no code.
        (Err(ending), None)
            if finished.refused && (finished.attempts == 0 || ending.outcome != Outcome::Deferred) =>
        {
            i32::from(NOT_STARTED)
        }
        (Err(_), None) => after.last.exit().unwrap_or(i32::from(NOT_STARTED)),
    }
}
