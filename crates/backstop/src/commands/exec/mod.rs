//! `backstop exec`: any command, made dependable.
//!
//! What is here is what a terminal has to do with it: arguments, streams, signals, lines and the
//! exit code. Attempts, record and limits are the runtime's.

mod args;
mod countdown;
mod ending;
mod lines;
mod overrides;

pub(crate) use args::Exec;

use super::deferred;
use super::proxy::ProxyBeside;
use crate::error::{CliError, failed};
use crate::{inherited, process, terminal};
use backstop_config::LogFormat;
use backstop_core::{Name, RunId};
use backstop_exec::{OutputRequest, OwnOutputs, is_interactive_shell, own_input};
use backstop_report::{loop_warning, reused_line};
use backstop_runtime::admission::{OnWait, client_of, near_provider, provider_named};
use backstop_runtime::command::{
    CommandRun, CommandStreams, NamedLimits, PreparedCommand, ResultCache, profile_settings,
};
use backstop_runtime::{EventLines, Observer, Project, signals};
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
    let request = args.request(argv);
    let asks_for_result = args.json || args.dry_run || args.classify || args.quiet_failure || args.proxy;
    if !asks_for_result && args.report.is_none() && args.cache.is_none() && request.must_go_unwatched() {
        let error = request.run_unwatched(|what, hint| terminal::warn(what, Some(hint)));
        return Err(failed(format!("cannot start the command: {error}")));
    }
    let cached_for = args.cache.as_deref().map(backstop_core::duration::parse).transpose();
    let command = Arc::new(PreparedCommand::new(&Arc::new(project), request)?);
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
    given.extend(profile_settings(args.attempts, &args.on, &project.config.exec().profile)?);
    process::open(&given, log_format)
}

/// A command that is run for somebody at a terminal.
struct Run {
    args: Exec,
    command: Arc<PreparedCommand>,
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
        let limits = self.limits()?;
        self.warn(&limits);
        let lines = Arc::new(Lines::new(!self.is_for_people()));
        let waiting = Arc::clone(&lines);
        let on_wait: OnWait = Arc::new(move |provider, closed| waiting.waiting(provider, closed));
        if args.dry_run {
            let (run, provider) = (RunId::from_random(0, 4), limits.provider.clone());
            let admission = command.admission(run, limits.provider, limits.budget, Some(on_wait))?;
            let provider = provider.or_else(|| client_of(&command.shown));
            return terminal::show(&command.forecast(&admission, provider)?, args.json).map(|()| 0);
        }
        let mut observers: Vec<Arc<dyn Observer>> = vec![lines];
        observers.extend(
            EventLines::new(project.config.log_format(), terminal::say).map(|lines| Arc::new(lines) as _),
        );
        let run = CommandRun::begin(command, limits, self.cache()?, observers, Some(on_wait))?;
        if let Some(reused) = run.reuse() {
            if self.is_for_people() {
                terminal::say(&reused_line(&command.shown, reused.age));
            }
            terminal::pass_on(&reused.result.stdout, &reused.result.stderr, args.json);
            ending::tell(&reused.ending, args, project);
            return Ok(self.code(0));
        }
        let concluded = run.attempt(self.streams()?);
        let concluded =
            concluded.map_err(|error| failed(format!("cannot run `{}`: {error}", command.shown)))?;
        ending::tell(&concluded.ending, args, project);
        if let Some(times) = concluded.looping.filter(|_| self.is_for_people()) {
            let (what, hint) = loop_warning(times, args.budget.is_some());
            terminal::warn(&what, Some(hint));
        }
        run.after(&concluded);
        let is_failed = !concluded.is_done && project.process.parent.is_none();
        if is_failed && !args.json && self.is_for_people() {
            deferred::offer(project, &run.recorder.deferred(), Some(run.recorder.run()));
        }
        if let Some(signal) = concluded.end_by {
            signals::end_by(signal);
        }
        Ok(self.code(concluded.ending.exit))
    }

    /// Warns of what will be otherwise than somebody may think.
    fn warn(&self, limits: &NamedLimits) {
        terminal::warn_inert(&self.command.project.config);
        for (what, hint) in process::unknown_variables() {
            terminal::warn(&what, Some(&hint));
        }
        if let Some(given) = &limits.provider
            && let Some(near) = near_provider(given)
        {
            let what = format!("no provider `{given}` is known: its limits are shared with nobody else");
            terminal::warn(&what, Some(&format!("did you mean `--provider {near}`?")));
        }
    }

    /// The provider and the budget that were named.
    fn limits(&self) -> Result<NamedLimits, CliError> {
        Ok(NamedLimits {
            provider: self.args.provider.as_deref().map(provider_named).transpose()?,
            budget: self.args.budget.as_deref().map(str::parse::<Name>).transpose()?,
        })
    }

    /// Where a result is kept that may be used again.
    fn cache(&self) -> Result<Option<ResultCache>, CliError> {
        let Some(age) = self.cached_for else { return Ok(None) };
        let variables = self.args.cache_env.iter().map(|name| (name.clone(), std::env::var_os(name)));
        Ok(Some(ResultCache::new(&self.command, age, variables.collect(), &self.args.inputs)?))
    }

    fn streams(&self) -> Result<CommandStreams, CliError> {
        let args = &self.args;
        let bytes_max = self.command.project.config.exec().stdin_bytes_max;
        let asked = OutputRequest {
            // With --json, standard output is for the JSON.
            all_to_stderr: args.json,
            no_terminal: args.no_pty || args.buffer,
            // A result that is stored for --cache has two streams.
            apart: self.cached_for.is_some(),
            is_shell: is_interactive_shell(&self.command.request.argv),
        };
        Ok(CommandStreams {
            input: own_input(args.stdin.into(), bytes_max, args.pty, inherited::is_closed(0))
                .map_err(CliError::output)?,
            outputs: OwnOutputs::new(asked, &inherited::is_closed).map_err(CliError::output)?,
            pty: args.pty,
            buffer: args.buffer,
            keep_background: args.keep_background,
            ignored_signals: inherited::ignored(),
            answers: !args.classify && args.on.is_empty(),
        })
    }

    fn code(&self, code: i32) -> u8 {
        if self.args.quiet_failure { 0 } else { u8::try_from(code & 0xff).unwrap_or(NOT_STARTED) }
    }
}
