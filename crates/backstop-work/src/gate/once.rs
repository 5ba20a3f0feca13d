//! One command of a gate, run once.

use super::{CommandLine, Gate, GateError, GateRun, Passes, fault};
use crate::log::Tee;
use backstop_core::{Fault, SafeText};
use backstop_exec::{Ended, HeadTail, Input, Limits, Spec, Started, Stop, Streams, supervise};
use std::time::Duration;

/// A gate's command that has just been started.
#[derive(Debug)]
pub struct StartedGate<'g> {
    /// The gate's name.
    pub gate: &'g str,
    /// How often it was run before: not 0 where failed tests are run again.
    pub again: u32,
    /// The process.
    pub child: Started,
}

/// What came of one command.
#[derive(Debug)]
pub(super) struct CommandResult {
    /// What it is, where it failed.
    pub(super) fault: Option<Fault>,
    pub(super) exit: Option<i64>,
    pub(super) duration: Duration,
    pub(super) tail: Vec<u8>,
    /// What was kept of both streams, one after the other.
    pub(super) text: Vec<u8>,
}

/// What all commands of one call have in common.
pub(super) struct GateContext<'b> {
    pub(super) run: &'b GateRun<'b>,
    pub(super) stop: &'b Stop,
    pub(super) started: &'b mut dyn FnMut(StartedGate<'_>),
    /// How long all commands so far ran: the time of day is that of the beginning, and this.
    pub(super) spent: Duration,
}

impl GateContext<'_> {
    /// Whether somebody asks for the end.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.requests() > 0
    }

    /// Runs one command for a gate.
    pub(super) fn once(
        &mut self,
        gate: &Gate,
        line: &CommandLine,
        again: u32,
    ) -> Result<CommandResult, GateError> {
        let shown = line.shown();
        let spec = Spec {
            argv: line.argv(),
            folder: Some(self.run.folder.to_owned()),
            env: self.run.env.clone(),
            limits: limits(gate, &self.run.limits),
            dies_with_us: self.run.dies_with_us,
            // Both go to one log: in the order in which they were written. Where standard output
            // must be empty, it has to be told from the other.
            joined: gate.passes != Passes::SaysNothing,
            ..Spec::default()
        };
        let tee = Tee::new(self.run.log.clone());
        let title = if again == 0 { "gate" } else { "again, gate" };
        let title = format!("{title} {}: {shown}", gate.name);
        self.run.log.put(format!("{}\n", SafeText::new(title).line(4096)).as_bytes());
        let streams =
            Streams { stdout: Box::new(tee.clone()), stderr: Box::new(tee.clone()), input: Input::Null };
        let started = &mut *self.started;
        let name = &gate.name;
        let ended =
            supervise(&spec, streams, self.stop, |child| started(StartedGate { gate: name, again, child }));
        let at = self.run.at.after(self.spent);
        let once = match ended {
            Ok(ended) => {
                let tail = tee.tail();
                let fault = fault::ended(gate, &ended, &tail, self.run.classifier, &shown, at);
                CommandResult {
                    fault,
                    exit: exit(&ended),
                    duration: ended.duration,
                    tail,
                    text: text(&ended),
                }
            }
            Err(error) => {
                let exit = Some(i64::from(error.exit()));
                let tail = format!("{error}\n").into_bytes();
                let fault = fault::not_started(gate, error, self.run.classifier, &shown)?;
                CommandResult { fault: Some(fault), exit, duration: Duration::ZERO, tail, text: Vec::new() }
            }
        };
        self.spent = self.spent.saturating_add(once.duration);
        Ok(once)
    }
}

/// A gate with a timeout of its own has that one clock: a long silent check is what it was made
/// for.
fn limits(gate: &Gate, usual: &Limits) -> Limits {
    match gate.timeout {
        Some(timeout) => Limits { wall: Some(timeout), idle: None, ..usual.clone() },
        None => usual.clone(),
    }
}

fn exit(ended: &Ended) -> Option<i64> {
    ended.status.code.map(i64::from).filter(|_| !ended.timed_out())
}

fn text(ended: &Ended) -> Vec<u8> {
    let all = |kept: &HeadTail| {
        let (before, after) = kept.tail();
        [kept.head(), before, after].concat()
    };
    let mut text = all(&ended.stdout);
    if !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    text.append(&mut all(&ended.stderr));
    text
}
