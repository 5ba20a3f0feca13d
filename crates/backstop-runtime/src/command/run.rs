//! One run of a command: its record is begun, it is attempted while signals are passed on to it,
//! its end is recorded, and what follows the end of every run is done. Streams, and whoever
//! watches, are given to it.

use super::{CommandAfter, CommandOperation, CommandSettings, PreparedCommand, ResultCache, confirm_with};
use crate::admission::{OnWait, OperationAdmission};
use crate::aftermath;
use crate::operation::OperationRun;
use crate::project::ProjectError;
use crate::recorder::{Observer, Recorder};
use crate::signals::{self, Caught};
use backstop_core::Name;
use backstop_engine::{Cancel, Finished};
use backstop_exec::{Input, Limits, OwnOutputs, Spec, Stop, has_controlling_terminal};
use backstop_report::CommandEnding;
use backstop_store::KeptResult;
use std::sync::Arc;
use std::time::Duration;

/// The limits that somebody named for a command.
#[derive(Debug, Clone, Default)]
pub struct NamedLimits {
    /// The provider behind it.
    pub provider: Option<Name>,
    /// The budget that each attempt takes a unit of.
    pub budget: Option<Name>,
}

/// The streams of a command, and what it keeps of them.
#[derive(Debug)]
pub struct CommandStreams {
    /// Its standard input.
    pub input: Input,
    /// Where its output goes.
    pub outputs: OwnOutputs,
    /// Whether it has a terminal of its own.
    pub pty: bool,
    /// Whether its output is held back until it is over.
    pub buffer: bool,
    /// Whether what it left running is left alone.
    pub keep_background: bool,
    /// The signals that it ignores, as we were started to.
    pub ignored_signals: Vec<i32>,
    /// Whether a code other than 0 may be the answer to a question, as of `grep` without a match.
    pub answers: bool,
}

/// A run of a command that has begun.
#[derive(Debug)]
pub struct CommandRun {
    command: Arc<PreparedCommand>,
    /// Its record.
    pub recorder: Arc<Recorder>,
    admission: Arc<OperationAdmission>,
    limits: NamedLimits,
    cache: Option<ResultCache>,
}

/// A result that was used again.
pub struct Reused {
    /// What the command printed then.
    pub result: KeptResult,
    /// How old it is.
    pub age: Duration,
    /// How the run ended.
    pub ending: CommandEnding,
}

/// How a command's run ended.
pub struct Concluded {
    /// How it ended.
    pub ending: CommandEnding,
    /// Whether it succeeded.
    pub is_done: bool,
    /// How often in a row it has failed the same way, where that is a loop.
    pub looping: Option<u32>,
    /// The signal that we have to end by, because the command did and shares our process group.
    pub end_by: Option<i32>,
}

impl CommandRun {
    /// Begins the record of a run. `cache` has results that may be used again.
    pub fn begin(
        command: &Arc<PreparedCommand>,
        limits: NamedLimits,
        cache: Option<ResultCache>,
        observers: Vec<Arc<dyn Observer>>,
        on_wait: Option<OnWait>,
    ) -> Result<Self, ProjectError> {
        let recorder = Arc::new(command.record(observers)?);
        let (provider, budget) = (limits.provider.clone(), limits.budget.clone());
        let admission = Arc::new(command.admission(recorder.run(), provider, budget, on_wait)?);
        Ok(Self { command: Arc::clone(command), recorder, admission, limits, cache })
    }

    /// A result that was kept, if there is one; the run has ended with it then.
    pub fn reuse(&self) -> Option<Reused> {
        let cache = self.cache.as_ref()?;
        let (result, age) = cache.find(&self.command.project, &self.recorder, &self.admission)?;
        Some(Reused { result, age, ending: cache.end_run(&self.command, &self.recorder, age) })
    }

    /// Attempts the command until it succeeds or nothing more is to be tried, and records its end.
    pub fn attempt(&self, streams: CommandStreams) -> std::io::Result<Concluded> {
        let (command, project) = (&self.command, &self.command.project);
        let (cancel, stop, deadline) = (Cancel::new(), Stop::new(), command.deadline());
        // Only on Linux are the processes of a command found that stays in our process group.
        let shares_group = cfg!(target_os = "linux") && !streams.pty && has_controlling_terminal();
        let settings = self.settings(streams, deadline, shares_group);
        let mut operation = CommandOperation::new(settings, stop.clone(), command, &self.recorder);
        let (after, caught) = (operation.after(), Caught::default());
        let around = OperationRun {
            project: Arc::clone(project),
            recorder: Arc::clone(&self.recorder),
            admission: Arc::clone(&self.admission),
            classifier: Arc::clone(&command.classifier),
            policy: command.policy.clone().into(),
            cancel: cancel.clone(),
            deadline,
            repeatable: !command.request.once,
            confirm_with: confirm_with(self.recorder.run()),
        };
        let watch = match signals::watch(cancel, stop, caught.clone(), shares_group) {
            Ok(watch) => Some(watch),
            Err(error) => {
                operation.cannot_start(error);
                None
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let finished = runtime.block_on(around.attempt(&command.shown, operation));
        if let Some(watch) = watch {
            watch.end();
        }
        // The command is over: whoever asks for our end now gets it.
        signals::let_go();
        after.last.release();
        if let (Some(cache), Ok(())) = (&self.cache, &finished.result) {
            cache.keep(project, &after.last);
        }
        let looping = around.learn(&finished);
        Ok(self.conclude(&after, finished, caught.first(), looping, shares_group))
    }

    fn conclude(
        &self,
        after: &CommandAfter,
        finished: Finished<()>,
        caught: Option<i32>,
        looping: Option<u32>,
        shares_group: bool,
    ) -> Concluded {
        let is_done = finished.result.is_ok();
        let ending = self.command.conclude(&self.recorder, after, finished, caught);
        let is_ours = |signal: &i32| shares_group && ending.exit == 128 + signal;
        let end_by = after.last.signal_number().filter(is_ours);
        Concluded { ending, is_done, looping, end_by }
    }

    /// What follows the end of every run. Called when whoever watches has been told how it ended.
    pub fn after(&self, concluded: &Concluded) {
        aftermath::run_ended(&self.command.project, &self.recorder, concluded.is_done);
    }

    fn settings(
        &self,
        streams: CommandStreams,
        deadline: Option<Duration>,
        shares_group: bool,
    ) -> CommandSettings {
        let command = &self.command;
        let settings = command.project.config.exec();
        let outputs = streams.outputs;
        CommandSettings {
            spec: Spec {
                argv: command.request.argv.clone(),
                limits: Limits {
                    wall: settings.timeout,
                    idle: settings.idle,
                    grace: settings.grace,
                    drain: settings.drain,
                    kept_bytes_max: usize::try_from(settings.output_bytes_max).unwrap_or(usize::MAX),
                },
                pty: streams.pty,
                stdout: outputs.stdout,
                stderr: outputs.stderr,
                joined: outputs.joined,
                shares_group,
                ignored_signals: streams.ignored_signals,
                keep_background: streams.keep_background,
                ..Spec::default()
            },
            input: streams.input,
            provider: self.limits.provider.as_ref().map(ToString::to_string),
            buffer: streams.buffer,
            keeps_output: self.cache.is_some(),
            deadline_at: deadline.map(|left| command.project.process.now().after(left)),
            answers: streams.answers,
            stdout: outputs.to_stdout,
            stderr: outputs.to_stderr,
        }
    }
}
