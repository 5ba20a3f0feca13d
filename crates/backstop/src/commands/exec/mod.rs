//! `backstop exec`: any command, made dependable.
//!
//! What is here is what a terminal has to do with it: arguments, streams, signals, lines and the
//! exit code. Attempts, record and limits are the runtime's.

mod args;
mod countdown;
mod ending;
mod lines;
mod overrides;
mod signals;
mod stdin;
mod streams;

pub(crate) use args::Exec;
use args::StdinMode;

use super::deferred;
use super::proxy::ProxyBeside;
use crate::error::{CliError, failed};
use crate::{inherited, process, terminal};
use backstop_config::LogFormat;
use backstop_core::{Name, RunId};
use backstop_engine::{Cancel, Finished};
use backstop_exec::{Limits, Spec, Stop};
use backstop_report::{loop_warning, reused_line};
use backstop_runtime::admission::{OperationAdmission, client_of, near_provider, provider_named};
use backstop_runtime::aftermath;
use backstop_runtime::command::{
    CommandOperation, CommandSettings, PreparedCommand, ResultCache, confirm_with,
};
use backstop_runtime::operation::OperationRun;
use backstop_runtime::{Project, Recorder};
use lines::Lines;
use std::sync::Arc;
use std::time::Duration;

/// How the process ends when Backstop could not or would not start the command.
pub(crate) const NOT_STARTED: u8 = backstop_runtime::command::NOT_STARTED;

/// Runs a command. Gives the exit code.
pub(crate) fn run(args: &Exec, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    let mut args = args.clone();
    if args.is_quiet() {
        terminal::be_quiet();
    }
    // The environment is changed before anything else reads it.
    let _proxy = (args.proxy && !args.dry_run).then(ProxyBeside::start).transpose()?;
    let mut project = open(&args, log_format)?;
    let argv = overrides::argv(&mut args, &project)?;
    if args.confirm.is_some() {
        // The flags that it had are known only now.
        project = open(&args, log_format)?;
    }
    if !args.dry_run {
        project.refuse_if_frozen()?;
    }
    if args.is_quiet() {
        terminal::be_quiet();
    }
    let cached_for = args.cache.as_deref().map(backstop_core::duration::parse).transpose();
    let command = PreparedCommand::new(&Arc::new(project), args.request(argv))?;
    Run { cached_for: cached_for?, args, command }.go()
}

/// The project under these flags.
fn open(args: &Exec, log_format: Option<LogFormat>) -> Result<Project, CliError> {
    let mut given = args.settings();
    if args.attempts.is_none() && args.on.is_empty() {
        return process::open(&given, log_format);
    }
    // Which profile they change is known only when the settings were read.
    let project = process::open(&given, log_format)?;
    given.extend(overrides::flags(args, &project.config.exec().profile)?);
    process::open(&given, log_format)
}

/// A command that is run for somebody at a terminal.
struct Run {
    args: Exec,
    command: PreparedCommand,
    /// How old a result may be that is used again.
    cached_for: Option<Duration>,
}

impl Run {
    /// Whether a person reads what we say.
    fn is_for_people(&self) -> bool {
        !self.args.is_quiet() && self.command.project.config.log_format() == LogFormat::Human
    }

    fn go(&self) -> Result<u8, CliError> {
        let (args, command) = (&self.args, &self.command);
        let project = &command.project;
        terminal::warn_inert(&project.config);
        for (what, hint) in process::unknown_variables() {
            terminal::warn(&what, Some(&hint));
        }
        if let Some(given) = self.provider()?
            && let Some(near) = near_provider(&given)
        {
            let what = format!("no provider `{given}` is known: its limits are shared with nobody else");
            terminal::warn(&what, Some(&format!("did you mean `--provider {near}`?")));
        }
        let lines = Arc::new(Lines::new(project.config.log_format(), args.is_quiet()));
        if args.dry_run {
            let admission = self.admission(RunId::from_random(0, 4), &lines)?;
            let provider = self.provider()?.or_else(|| client_of(&command.shown));
            return terminal::show(&command.forecast(&admission, provider)?, args.json).map(|()| 0);
        }
        let recorder = Arc::new(command.record(vec![Arc::clone(&lines) as Arc<_>])?);
        let admission = Arc::new(self.admission(recorder.run(), &lines)?);
        let cache = self.cache()?;
        if let Some(cache) = &cache
            && self.reuse(cache, &recorder, &admission).is_some()
        {
            return Ok(self.code(0));
        }
        let (cancel, stop, deadline) = (Cancel::new(), Stop::new(), command.deadline());
        let settings = self.settings(cache.is_some(), deadline)?;
        let classifier = Arc::clone(&command.classifier);
        let operation = CommandOperation::new(settings, stop.clone(), classifier, project, &recorder);
        let after = operation.after();
        let around = OperationRun {
            project: Arc::clone(project),
            recorder: Arc::clone(&recorder),
            admission,
            classifier: Arc::clone(&command.classifier),
            policy: command.policy.clone().into(),
            cancel: cancel.clone(),
            deadline,
            repeatable: !args.once,
            confirm_with: confirm_with(recorder.run()),
        };
        let (caught, shares_group) = (signals::Caught::default(), self.shares_group());
        let finished = attempt(&around, &command.shown, operation, cancel, stop, &caught, shares_group)?;
        after.last.release();
        if let (Some(cache), Ok(())) = (&cache, &finished.result) {
            cache.keep(project, &after.last);
        }
        let looping = around.learn(&finished).filter(|_| self.is_for_people());
        let is_done = finished.result.is_ok();
        let ended = command.conclude(&recorder, &after, finished, caught.first());
        ending::tell(&ended, args, project);
        if let Some(times) = looping {
            let (what, hint) = loop_warning(times, args.budget.is_some());
            terminal::warn(&what, Some(hint));
        }
        aftermath::run_ended(project, &recorder, is_done);
        if !is_done && project.process.parent.is_none() && !args.json && self.is_for_people() {
            deferred::offer(project, &recorder.deferred(), Some(recorder.run()));
        }
        let signal = after.last.signal_number();
        if let Some(signal) = signal.filter(|signal| shares_group && ended.exit == 128 + signal) {
            signals::end_by(signal);
        }
        Ok(self.code(ended.exit))
    }

    /// The provider that was named.
    fn provider(&self) -> Result<Option<Name>, CliError> {
        Ok(self.args.provider.as_deref().map(provider_named).transpose()?)
    }

    fn admission(&self, run: RunId, lines: &Arc<Lines>) -> Result<OperationAdmission, CliError> {
        let budget = self.args.budget.as_deref().map(str::parse::<Name>).transpose();
        let lines = Arc::clone(lines);
        let on_wait = Arc::new(move |provider: &Name, closed: &_| lines.waiting(provider, closed));
        Ok(self.command.admission(run, self.provider()?, budget?, Some(on_wait))?)
    }

    /// Where a result is kept that may be used again.
    fn cache(&self) -> Result<Option<ResultCache>, CliError> {
        let Some(age) = self.cached_for else { return Ok(None) };
        let variables = self.args.cache_env.iter().map(|name| (name.clone(), std::env::var_os(name)));
        Ok(Some(ResultCache::new(&self.command, age, variables.collect(), &self.args.inputs)?))
    }

    /// Shows a result that was kept as the command would have shown it. Nothing, where there is none.
    fn reuse(&self, cache: &ResultCache, recorder: &Recorder, admission: &OperationAdmission) -> Option<()> {
        let (kept, old) = cache.find(&self.command.project, recorder, admission)?;
        if self.is_for_people() {
            terminal::say(&reused_line(&self.command.shown, old));
        }
        terminal::pass_on(&kept.stdout, &kept.stderr, self.args.json);
        ending::tell(&cache.end_run(&self.command, recorder, old), &self.args, &self.command.project);
        Some(())
    }

    fn settings(&self, keeps_output: bool, deadline: Option<Duration>) -> Result<CommandSettings, CliError> {
        let (args, command) = (&self.args, &self.command);
        let settings = command.project.config.exec();
        // A result that is stored for --cache has two streams.
        let outputs = streams::Outputs::new(args, keeps_output).map_err(CliError::output)?;
        Ok(CommandSettings {
            spec: Spec {
                argv: command.request.argv.clone(),
                limits: Limits {
                    wall: settings.timeout,
                    idle: settings.idle,
                    grace: settings.grace,
                    drain: settings.drain,
                    kept_bytes_max: usize::try_from(settings.output_bytes_max).unwrap_or(usize::MAX),
                },
                pty: args.pty,
                stdout: outputs.stdout,
                stderr: outputs.stderr,
                joined: outputs.joined,
                shares_group: self.shares_group(),
                ignored_signals: inherited::ignored(),
                keep_background: args.keep_background,
                exclusive: true,
                ..Spec::default()
            },
            input: stdin::input(args.stdin, settings.stdin_bytes_max, args.pty)?,
            shown: command.shown.clone(),
            provider: args.provider.clone(),
            once: args.once,
            effect: command.effect(),
            buffer: args.buffer,
            keeps_output,
            deadline_at: deadline.map(|left| process::now().after(left)),
            answers: !args.classify && args.on.is_empty(),
            stdout: outputs.to_stdout,
            stderr: outputs.to_stderr,
        })
    }

    /// Whether the command stays in our process group. Only on Linux are its processes found then.
    fn shares_group(&self) -> bool {
        cfg!(target_os = "linux") && !self.args.pty && backstop_exec::has_controlling_terminal()
    }

    fn code(&self, code: i32) -> u8 {
        if self.args.quiet_failure { 0 } else { u8::try_from(code & 0xff).unwrap_or(NOT_STARTED) }
    }
}

/// Attempts the command while signals are passed on to it.
fn attempt(
    around: &OperationRun,
    shown: &str,
    operation: CommandOperation,
    cancel: Cancel,
    stop: Stop,
    caught: &signals::Caught,
    shares_group: bool,
) -> Result<Finished<()>, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(format!("cannot run `{shown}`: {error}")))?;
    let finished = runtime.block_on(async {
        let watch = signals::watch(cancel, stop, caught.clone(), shares_group)?;
        let finished = around.attempt(shown, operation).await;
        watch.abort();
        Ok::<_, CliError>(finished)
    });
    let finished = finished?;
    runtime.shutdown_background();
    // The command is over: whoever asks for our end now gets it.
    signals::let_go();
    Ok(finished)
}
