//! `backstop exec`: any command, made dependable.
//!
//! What is here is what a terminal has to do with it: arguments, streams, signals, lines and the
//! exit code. Attempts, record and limits are the runtime's.

mod countdown;
mod dry_run;
mod ending;
mod lines;
mod overrides;
mod signals;
mod stdin;
mod streams;

use super::deferred;
use super::guard::provider_named;
use crate::error::{CliError, failed, usage};
use crate::{inherited, process, terminal};
use backstop_config::{EXEC_WAIT_MAX, EXEC_WAIT_MAX_WATCHED, Given, LogFormat};
use backstop_core::{
    Action, Decision, EventKind, Fault, Name, Outcome, Policy, Reason, RunId, SafeText, shell,
};
use backstop_engine::{Cancel, Finished};
use backstop_exec::{Limits, Spec, Stop};
use backstop_report::{CommandEnding, duration};
use backstop_runtime::admission::{Admission, BudgetScope, OperationAdmission, OperationLimits, client_of};
use backstop_runtime::aftermath::deferred::stored_until;
use backstop_runtime::aftermath::{self, leftovers};
use backstop_runtime::command::{CacheKey, CommandAfter, CommandOperation, CommandSettings, LastAttempt};
use backstop_runtime::operation::OperationRun;
use backstop_runtime::{Opening, Project, Recorder, machine_state};
use backstop_store::{DeferredWork, LimitStore};
use clap::{Args, ValueEnum};
use lines::Lines;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Run a command and make it dependable, without changing it.
///
/// Its output streams through untouched. A failure is classified and recorded; where another
/// attempt helps, it is made, after a wait that the failure calls for. When it ends, nothing that
/// it started is left running. Exits as the command does; 124 where the clock ended it, 125 where
/// Backstop could not start it, 126 not executable, 127 not found, 128 + n for signal n.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    backstop exec --timeout 10m --idle 2m -- npm ci\n  \
    backstop exec --once -- ./migrate            never repeated unless somebody says so\n  \
    backstop exec --dry-run -- ./deploy.sh       what would be repeated, and why not\n  \
    backstop exec --on unknown=retry -- make     retry what no rule knows, too\n  \
    backstop exec --json -- cargo test           how it ended, as JSON on standard output")]
pub(crate) struct Exec {
    /// The command and its arguments, after `--`
    #[arg(trailing_var_arg = true, value_name = "COMMAND", required_unless_present = "confirm")]
    pub(crate) command: Vec<OsString>,
    /// The profile that decides how often and how long apart: command, tool, request, task, phase,
    /// state
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) profile: Option<String>,
    /// How often the command is started at most, the first time included, wherever the profile allows
    /// more than one attempt
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) attempts: Option<u32>,
    /// Time limit for one attempt, such as 10m; a bare number is seconds
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
    /// Time limit for an attempt without output, such as 2m
    #[arg(long, value_name = "DURATION")]
    pub(crate) idle: Option<String>,
    /// Time limit for all attempts together, waits included
    #[arg(long, value_name = "DURATION")]
    pub(crate) deadline: Option<String>,
    /// How long a rate limit is waited for; where it lasts longer, the command is put aside
    /// [default: 60s, 1h on a terminal]
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    pub(crate) wait_max: Option<String>,
    /// Do not repeat it by itself: where a repetition would help, the ending names the command that
    /// makes it
    #[arg(long)]
    pub(crate) once: bool,
    /// Repeat the command by itself although it changes something outside the project, such as
    /// `curl -X POST` or `npm publish`
    #[arg(long, conflicts_with = "once", hide_short_help = true)]
    pub(crate) repeatable: bool,
    /// Run nothing: show what would be repeated and what not, and why
    #[arg(long, conflicts_with_all = ["confirm", "cache"])]
    pub(crate) dry_run: bool,
    /// Action for a reason: retry, retry:N, surface, defer or confirm; may be given several times
    #[arg(long = "on", value_name = "REASON=ACTION")]
    pub(crate) on: Vec<String>,
    /// Print nothing of Backstop's own; the exit code stays
    #[arg(long, short = 'q')]
    pub(crate) quiet: bool,
    /// Classify and record a failure, print nothing, and exit 0
    #[arg(long, hide_short_help = true)]
    pub(crate) quiet_failure: bool,
    /// Run the command once, and explain a failure
    #[arg(long, conflicts_with_all = ["attempts", "on", "once"], hide_short_help = true)]
    pub(crate) classify: bool,
    /// Write the result into this file: JSON, or Markdown if the name ends in .md
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Name of the caller; it is recorded
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) caller: Option<String>,
    /// Id of the session; it is recorded
    #[arg(long, value_name = "ID", hide_short_help = true)]
    pub(crate) session: Option<String>,
    /// Reason for an override (--on, --confirm); it is recorded
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub(crate) why: Option<String>,
    /// Repeat the command of a run that waits for somebody to say so
    #[arg(long, value_name = "RUN", hide_short_help = true)]
    pub(crate) confirm: Option<String>,
    /// Print the result as JSON on standard output; the command's own output goes to standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the output at the end; that of failed attempts only if the last one fails too
    #[arg(long, hide_short_help = true)]
    pub(crate) buffer: bool,
    /// Give it a terminal of its own for input and output, even where ours is none
    #[arg(long, conflicts_with = "no_pty", hide_short_help = true)]
    pub(crate) pty: bool,
    /// Give it pipes even where our output is a terminal: no colours, no pager
    #[arg(long, hide_short_help = true)]
    pub(crate) no_pty: bool,
    /// Where its standard input comes from
    #[arg(long, value_name = "MODE", default_value = "auto", hide_short_help = true)]
    pub(crate) stdin: StdinMode,
    /// Let background processes that the command started run on
    #[arg(long, hide_short_help = true)]
    pub(crate) keep_background: bool,
    /// The provider behind it, such as `anthropic`: its shared rate limit and breaker are asked
    /// first and told afterwards
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Budget to spend: one unit for each attempt, the first included
    #[arg(long, value_name = "NAME")]
    pub(crate) budget: Option<String>,
    /// Id of the task, for budgets per task (default: the session)
    #[arg(long, value_name = "ID", hide_short_help = true)]
    pub(crate) task: Option<String>,
    /// Use a stored result that is not older than this, such as 10m, if no declared input has
    /// changed; for commands that only read
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    pub(crate) cache: Option<String>,
    /// Input files of the command, such as 'src/**'; may be given several times
    #[arg(long = "input", value_name = "GLOB", requires = "cache", hide_short_help = true)]
    pub(crate) inputs: Vec<String>,
    /// Environment variables that the result depends on; may be given several times
    #[arg(long, value_name = "NAME", requires = "cache", hide_short_help = true)]
    pub(crate) cache_env: Vec<String>,
    /// A rule pack of your own; may be given several times
    #[arg(long = "rules", value_name = "FILE", hide_short_help = true)]
    pub(crate) packs: Vec<PathBuf>,
}

/// Where a command's standard input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StdinMode {
    /// From ours, as it is; not retried where input that it took cannot be given again
    Auto,
    /// From ours; a pipe is read ahead, stored and given to every attempt
    Replay,
    /// From ours, as it is: a second attempt reads what the first has left
    Inherit,
    /// From nowhere
    Null,
}

impl Exec {
    /// Whether we say nothing of our own.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet || self.quiet_failure
    }
}

/// How the process ends when Backstop could not or would not start the command.
pub(crate) const NOT_STARTED: u8 = 125;

/// Runs a command. Gives the exit code.
pub(crate) fn run(args: &Exec, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    let mut args = args.clone();
    if args.is_quiet() {
        terminal::be_quiet();
    }
    let mut project = open(&args, log_format)?;
    let argv = overrides::argv(&mut args, &project)?;
    if args.confirm.is_some() {
        // The flags that it had are known only now.
        project = open(&args, log_format)?;
    }
    Exec::go(&args, &Arc::new(project), &argv)
}

/// The project under these flags.
fn open(args: &Exec, log_format: Option<LogFormat>) -> Result<Project, CliError> {
    let mut given = flags(args);
    if args.attempts.is_none() && args.on.is_empty() {
        return process::open(&given, log_format);
    }
    // Which profile they change is known only when the settings were read.
    let project = process::open(&given, log_format)?;
    given.extend(overrides::flags(args, &project.config.exec().profile)?);
    process::open(&given, log_format)
}

/// The flags that are also keys of the configuration.
fn flags(args: &Exec) -> Vec<Given> {
    let given = [
        ("--profile", "exec.profile", &args.profile),
        ("--timeout", "exec.timeout", &args.timeout),
        ("--idle", "exec.idle", &args.idle),
        ("--deadline", "exec.deadline", &args.deadline),
        ("--wait-max", "exec.wait_max", &args.wait_max),
    ];
    given
        .into_iter()
        .filter_map(|(flag, key, value)| {
            Some(Given { flag: flag.to_owned(), key: key.to_owned(), value: value.clone()? })
        })
        .collect()
}

impl Exec {
    /// Runs this command as the arguments say.
    fn go(&self, project: &Arc<Project>, argv: &[OsString]) -> Result<u8, CliError> {
        if !self.dry_run {
            project.refuse_if_frozen()?;
        }
        if self.is_quiet() {
            terminal::be_quiet();
        }
        let typed: Vec<String> = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        // What the command is, and what is stored and shown of it.
        let (command, shown) = (shell::line(&typed), project.redactor.redact_command(&typed));
        let policy = project.config.policy(&project.config.exec().profile)?;
        let mut policy = if self.classify { policy.with_attempts(1) } else { policy };
        if let Some(attempts) = self.attempts {
            policy = policy.with_starts_max(attempts);
        }
        let settings = project.config.exec();
        policy.wait_max = settings.wait_max.unwrap_or_else(|| wait_max(&policy));
        let cached_for = self.cache.as_deref().map(backstop_core::duration::parse).transpose()?;
        let classifier = Arc::new(project.classifier(&self.packs)?);
        let repeatable = project.effects(&self.packs)?.judge(&command, &project.config.repeatable_commands());
        terminal::warn_inert(&project.config);
        for (what, hint) in process::unknown_variables() {
            terminal::warn(&what, Some(&hint));
        }
        let lines = Arc::new(Lines::new(project.config.log_format(), self.is_quiet()));
        if self.dry_run {
            let admission = self.admission(project, RunId::from_random(0, 4), &shown, &policy, &lines)?;
            return self.show_dry_run(project, &shown, &policy, &repeatable, &admission);
        }
        let recorder = Arc::new(self.record(project, &shown, &lines)?);
        let admission = Arc::new(self.admission(project, recorder.run(), &shown, &policy, &lines)?);
        let key = self.cache_key(cached_for, argv, project)?;
        if let Some((key, age)) = &key
            && let Some(code) = self.reuse_cached(project, &recorder, &admission, key, *age, &shown)
        {
            return self.code(code);
        }
        let (cancel, stop) = (Cancel::new(), Stop::new());
        let deadline = deadline(project);
        let mut settings = self.command(project, argv, &shown, key.is_some(), deadline)?;
        settings.effect = self.effect(&repeatable);
        let operation =
            CommandOperation::new(settings, stop.clone(), Arc::clone(&classifier), project, &recorder);
        let after = operation.after();
        let around = OperationRun {
            project: Arc::clone(project),
            recorder: Arc::clone(&recorder),
            admission,
            classifier,
            policy,
            cancel: cancel.clone(),
            deadline,
            repeatable: !self.once,
            confirm_with: confirm_with(recorder.run()),
        };
        let caught = signals::Caught::default();
        let shares_group = self.shares_group();
        let finished = attempt(&around, &shown, operation, cancel, stop, &caught, shares_group)?;
        after.last.release();
        if let (Some((key, _)), Ok(())) = (&key, &finished.result) {
            keep(project, key, &after.last);
        }
        let looping = around.learn(&finished);
        let is_done = finished.result.is_ok();
        let code = self.conclude(project, argv, &shown, &recorder, &after, finished, &caught);
        self.warn_of_loop(project, looping);
        aftermath::run_ended(project, &recorder, is_done);
        if !is_done
            && project.process.parent.is_none()
            && !self.is_quiet()
            && !self.json
            && project.config.log_format() == LogFormat::Human
        {
            deferred::offer(project, &recorder.deferred(), Some(recorder.run()));
        }
        if let Some(signal) = after.last.signal_number().filter(|signal| shares_group && code == 128 + signal)
        {
            signals::end_by(signal);
        }
        self.code(code)
    }

    /// Begins the record, ends what a killed Backstop left, and notes what a person overrides
    /// before it takes effect.
    fn record(&self, project: &Project, shown: &str, lines: &Arc<Lines>) -> Result<Recorder, CliError> {
        let text = |given: &Option<String>| given.clone().map(SafeText::new);
        let parent = project.process.parent;
        let started = EventKind::RunStarted {
            operation: SafeText::new(shown),
            folder: Some(SafeText::new(project.process.cwd.display().to_string())),
            profile: Some(project.config.exec().profile),
            parent,
        };
        let recorder = Recorder::begin(
            project,
            Opening {
                first: vec![started],
                session: text(&self.session),
                caller: text(&self.caller),
                parent,
                observers: vec![Arc::clone(lines) as Arc<_>],
                ..Opening::new("exec")
            },
        )?;
        if let Some(journal) = recorder.journal() {
            for cut_off in leftovers::end_all(&journal, &project.process) {
                if !self.is_quiet() {
                    terminal::warn(&cut_off.warning(), None);
                }
            }
        }
        let by = recorder.caller().cloned().unwrap_or_else(|| SafeText::new("command line"));
        let rationale = SafeText::new(self.why.clone().unwrap_or_else(|| "no reason given".to_owned()));
        let overridden = overrides::typed(self).into_iter().map(|typed| EventKind::Override {
            by: by.clone(),
            what: SafeText::new(typed),
            rationale: rationale.clone(),
        });
        recorder.note_first(overridden);
        Ok(recorder)
    }

    fn admission(
        &self,
        project: &Arc<Project>,
        run: RunId,
        shown: &str,
        policy: &Policy,
        lines: &Arc<Lines>,
    ) -> Result<OperationAdmission, CliError> {
        let name = |given: &Option<String>| given.as_deref().map(str::parse::<Name>).transpose();
        let session = project.process.session.as_ref().map(|session| session.raw().to_owned());
        let program: Vec<&str> = shown.split(' ').take(2).collect();
        let limits = OperationLimits {
            provider: self.provider.as_deref().map(provider_named).transpose()?,
            client: client_of(shown),
            command: shown.to_owned(),
            budget: name(&self.budget)?,
            scope: BudgetScope {
                run: project.process.parent.unwrap_or(run),
                task: self.task.clone().or_else(|| self.session.clone()).or(session),
            },
            operation: program.join(" "),
            place: format!("{}: {shown}", project.root.display()),
            wait_max: policy.wait_max,
            learns: policy.learn,
        };
        let lines = Arc::clone(lines);
        let on_wait = Arc::new(move |provider: &Name, closed: &_| lines.waiting(provider, closed));
        Ok(Admission::new(Arc::clone(project)).operation(limits, Some(on_wait))?)
    }

    /// The key of a result that may be used again, and how old it may be.
    fn cache_key(
        &self,
        age: Option<Duration>,
        argv: &[OsString],
        project: &Project,
    ) -> Result<Option<(String, Duration)>, CliError> {
        let Some(age) = age else { return Ok(None) };
        let variables = self.cache_env.iter().map(|name| (name.clone(), std::env::var_os(name)));
        let key = CacheKey {
            argv,
            folder: &project.process.cwd,
            variables: variables.collect(),
            inputs: &self.inputs,
        };
        let hash = key.hash().map_err(|error| usage(&error).hint(error.hint()))?;
        Ok(Some((hash, age)))
    }

    fn command(
        &self,
        project: &Project,
        argv: &[OsString],
        shown: &str,
        keeps_output: bool,
        deadline: Option<Duration>,
    ) -> Result<CommandSettings, CliError> {
        let settings = project.config.exec();
        // A result that is stored for --cache has two streams.
        let outputs = streams::Outputs::new(self, keeps_output).map_err(CliError::output)?;
        Ok(CommandSettings {
            spec: Spec {
                argv: argv.to_vec(),
                limits: Limits {
                    wall: settings.timeout,
                    idle: settings.idle,
                    grace: settings.grace,
                    drain: settings.drain,
                    kept_bytes_max: usize::try_from(settings.output_bytes_max).unwrap_or(usize::MAX),
                },
                pty: self.pty,
                stdout: outputs.stdout,
                stderr: outputs.stderr,
                joined: outputs.joined,
                shares_group: self.shares_group(),
                ignores_sigpipe: inherited::ignores_sigpipe(),
                keep_background: self.keep_background,
                exclusive: true,
                ..Spec::default()
            },
            input: stdin::input(self.stdin, settings.stdin_bytes_max, self.pty)?,
            shown: shown.to_owned(),
            provider: self.provider.clone(),
            once: self.once,
            effect: None,
            buffer: self.buffer,
            keeps_output,
            deadline_at: deadline.map(|left| process::now().after(left)),
            answers: !self.classify && self.on.is_empty(),
            stdout: outputs.to_stdout,
            stderr: outputs.to_stderr,
        })
    }

    /// Whether the command stays in our process group. Only on Linux are its processes found then.
    fn shares_group(&self) -> bool {
        cfg!(target_os = "linux") && !self.pty && backstop_exec::has_controlling_terminal()
    }

    /// A result that was kept, shown as the command would have shown it. Nothing, where there is
    /// none.
    fn reuse_cached(
        &self,
        project: &Project,
        recorder: &Recorder,
        admission: &OperationAdmission,
        key: &str,
        age: Duration,
        shown: &str,
    ) -> Option<i32> {
        let kept = project.existing_limits().ok()??.result(key, age).ok()??;
        // Spent before work, and given back: nothing was done.
        admission.spend(recorder).ok()?;
        admission.refund(recorder);
        let old = process::now().since(kept.at);
        if !self.is_quiet() && project.config.log_format() == LogFormat::Human {
            let command = SafeText::new(shown).line(80);
            terminal::say(&format!("from the cache, {} old: `{command}`\n", duration(old)));
        }
        terminal::pass_on(&kept.stdout, &kept.stderr, self.json);
        let _ = recorder.end(vec![EventKind::RunEnded {
            outcome: Outcome::Done,
            reason: None,
            attempts: 0,
            duration_ms: 0,
            exit: Some(0),
            next: None,
        }]);
        let command = SafeText::new(project.redactor.redact(shown).into_owned());
        let mut ended = CommandEnding::cached(recorder.run(), command);
        ended.cached_seconds = Some(old.as_secs_f64());
        ending::tell(&ended, self, project);
        Some(0)
    }

    fn warn_of_loop(&self, project: &Project, times: Option<u32>) {
        if let Some(times) =
            times.filter(|_| !self.is_quiet() && project.config.log_format() == LogFormat::Human)
        {
            terminal::warn(
                &format!(
                    "the same failure {times} times in a row, and no file has changed in between: this may be a loop"
                ),
                Some(match self.budget {
                    Some(_) => "change something first: unchanged, the next one is not started",
                    None => "change something first; with --budget NAME the next one would not be started",
                }),
            );
        }
    }

    fn code(&self, code: i32) -> Result<u8, CliError> {
        if self.quiet_failure {
            return Ok(0);
        }
        Ok(u8::try_from(code & 0xff).unwrap_or(NOT_STARTED))
    }

    /// Records the ending, tells it, and gives the exit code.
    #[expect(clippy::too_many_arguments)] // One caller: the last step of one function.
    fn conclude(
        &self,
        project: &Project,
        argv: &[OsString],
        shown: &str,
        recorder: &Recorder,
        after: &CommandAfter,
        finished: Finished<()>,
        caught: &signals::Caught,
    ) -> i32 {
        // Whether the command ran when it was stopped, and had its own say.
        let ran = finished.result.as_ref().map_or_else(|e| e.fault.reason == Reason::Interrupted, |()| true);
        let own = after.last.exit().filter(|_| ran && after.last.signal().is_none());
        let exit = match (&finished.result, caught.first()) {
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
        };
        let mut events = finished.unrecorded;
        let (mut outcome, fault, mut decision) = match finished.result {
            Ok(()) if caught.first().is_none() => (Outcome::Done, None, None),
            Ok(()) => (Outcome::Interrupted, None, None),
            Err(ending) => {
                let outcome = if caught.first().is_some() { Outcome::Interrupted } else { ending.outcome };
                (outcome, Some(ending.fault), Some(ending.decision))
            }
        };
        if let (Some(Decision { action: Action::Defer { until }, .. }), Some(fault)) = (&mut decision, &fault)
        {
            *until = stored_until(until, fault, process::now());
        }
        let next = match decision.as_ref().map(|d| &d.action) {
            Some(Action::Defer { until }) if outcome == Outcome::Deferred => {
                let address = fault.as_ref().and_then(machine_state::service_address);
                let words = self.words_to_repeat(argv, None);
                match self.defer(recorder, project, &words, argv, fault.as_ref(), until, address) {
                    Some(next) => {
                        let operation = SafeText::new(shown);
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
                let words = self.words_to_repeat(argv, Some(recorder.run()));
                let until = overrides::CONFIRMATION;
                self.defer(recorder, project, &words, argv, fault.as_ref(), until, None)
                    .map(|_| confirm_with(recorder.run()))
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
        let masked = |text: &str| SafeText::new(project.redactor.redact(text).into_owned());
        let ended = CommandEnding {
            run: recorder.run(),
            outcome,
            exit,
            attempts: finished.attempts,
            elapsed: finished.elapsed,
            command: masked(shown),
            program: argv.first().map(|p| masked(&p.to_string_lossy())).unwrap_or_default(),
            fault,
            faults: finished.faults,
            decision,
            ended_at: process::now(),
            next,
            signal: after.last.signal(),
            // The keys of a terminal send these two to the command itself.
            stopped_here: caught.first().is_some()
                || after.last.signal_number().is_none_or(|n| matches!(n, libc::SIGINT | libc::SIGQUIT)),
            reader_left: after.last.reader_left(),
            left_behind: after.last.left_behind(),
            unended: after.last.unended(),
            cached_seconds: None,
            recorded: recorder.is_recorded(),
        };
        ending::tell(&ended, self, project);
        exit
    }

    /// Puts the command aside. Gives the id under which it is found.
    #[expect(clippy::too_many_arguments)] // All of it is what is stored.
    fn defer(
        &self,
        recorder: &Recorder,
        project: &Project,
        words: &[OsString],
        argv: &[OsString],
        fault: Option<&Fault>,
        until: &str,
        address: Option<String>,
    ) -> Option<String> {
        let work = DeferredWork {
            run: recorder.run(),
            argv: words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            whole: argv.iter().all(|word| word.to_str().is_some()),
            folder: project.process.cwd.display().to_string(),
            reason: fault.map_or(Reason::Unknown, |fault| fault.reason),
            until: SafeText::new(until),
            is_task: false,
            address,
        };
        recorder.defer(&work).map(|id| id.to_string())
    }

    /// What is put aside: the flags that say how to run it, then the command. What waits for a
    /// confirmation names its run, so that each has its own.
    fn words_to_repeat(&self, argv: &[OsString], waits: Option<RunId>) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        if let Some(run) = waits {
            words.extend(["--once".into(), "--confirm".into(), run.to_string().into()]);
        }
        let flags = [
            ("--profile", &self.profile),
            ("--timeout", &self.timeout),
            ("--idle", &self.idle),
            ("--deadline", &self.deadline),
            ("--wait-max", &self.wait_max),
            ("--provider", &self.provider),
            ("--budget", &self.budget),
        ];
        for (flag, value) in flags {
            if let Some(value) = value {
                words.extend([flag.into(), value.into()]);
            }
        }
        if self.repeatable && waits.is_none() {
            words.push("--repeatable".into());
        }
        words.push("--".into());
        words.extend(argv.iter().cloned());
        words
    }
}

/// The command that repeats what a run did, where somebody has to say so.
fn confirm_with(run: RunId) -> String {
    format!("backstop exec --confirm {run}")
}

/// How long a rate limit is waited for where nothing says how long: longer where a person sees it.
fn wait_max(policy: &Policy) -> Duration {
    let built_in = backstop_core::profile(&policy.name).map(|profile| profile.wait_max);
    if built_in.is_some_and(|built_in| built_in != policy.wait_max) {
        return policy.wait_max;
    }
    if terminal::is_watched() { EXEC_WAIT_MAX_WATCHED } else { EXEC_WAIT_MAX }
}

/// How long all attempts may take: as is set, and as an outer run wants it.
fn deadline(project: &Project) -> Option<Duration> {
    let inherited = project.process.deadline.map(|at| at.since(process::now()));
    project.config.exec().deadline.into_iter().chain(inherited).min()
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

/// Keeps a result, unless it holds a secret: what is kept is kept as it is.
fn keep(project: &Project, key: &str, last: &LastAttempt) {
    let (Ok(store), Some((stdout, stderr))) = (project.limits(), last.take_output()) else { return };
    let store: &LimitStore = store;
    let clean = [&stdout, &stderr].into_iter().all(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        project.redactor.redact(&text) == text
    });
    if clean {
        let _ = store.keep_result(key, &stdout, &stderr);
    } else {
        terminal::warn("the result is not kept for --cache: it holds a secret", None);
    }
}
