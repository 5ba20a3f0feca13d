//! `backstop exec`: any command, made dependable.

mod countdown;
mod ending;
mod journal;
mod operation;
mod overrides;
mod signals;
mod stdin;

use crate::cli::{Exec, LogFormat};
use crate::config::Given;
use crate::context::{self, Context};
use crate::error::CliError;
use crate::{classify, terminal};
use backstop_core::{Action, EventKind, Outcome, RunId, SafeText, Timestamp};
use backstop_engine::{Cancel, Engine, Finished};
use backstop_exec::{Limits, Spec, Stop};
use ending::Ended;
use journal::ExecJournal;
use operation::{CommandOperation, Passed};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// How the process ends when Backstop could not or would not start the command.
pub(crate) const NOT_STARTED: u8 = 125;

/// Runs a command. Gives the exit code.
pub(crate) fn run(args: &Exec, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    let mut given = flags(args);
    let mut context = Context::new(&given, log_format)?;
    // Which profile they change is known only now.
    let changes = overrides::flags(args, &context.config.exec().profile)?;
    if !changes.is_empty() {
        given.extend(changes);
        context = Context::new(&given, log_format)?;
    }
    let argv = overrides::argv(args, &context)?;
    go(args, &context, &argv)
}

/// The flags that are also keys of the configuration.
fn flags(args: &Exec) -> Vec<Given> {
    let given = [
        ("--profile", "exec.profile", &args.profile),
        ("--timeout", "exec.timeout", &args.timeout),
        ("--idle", "exec.idle", &args.idle),
        ("--deadline", "exec.deadline", &args.deadline),
    ];
    given
        .into_iter()
        .filter_map(|(flag, key, value)| {
            Some(Given { flag: flag.to_owned(), key: key.to_owned(), value: value.clone()? })
        })
        .collect()
}

/// Runs this command as the arguments say.
pub(crate) fn go(args: &Exec, context: &Context, argv: &[OsString]) -> Result<u8, CliError> {
    let settings = context.config.exec();
    let policy = context.config.policy(&settings.profile)?;
    let policy = if args.classify { policy.with_attempts(1) } else { policy };
    let packs = [context.config.packs(), args.packs.clone()].concat();
    let classifier = Arc::new(classify::classifier_with(&packs, &context.redactor)?);
    terminal::warn_inert(&context.config);
    for (what, hint) in context::strange_variables() {
        terminal::warn(&what, Some(&hint));
    }
    let command = shown_command(argv);
    let (parent, outer_deadline) = context::outer();
    let inherited = outer_deadline.map(|at| at.since(context::now()));
    let deadline = settings.deadline.into_iter().chain(inherited).min();
    let journal = Arc::new(ExecJournal::open(args, context, &command, &settings.profile, parent));
    journal.end_leftovers();
    journal.overridden(&overrides::typed(args));
    let (cancel, stop) = (Cancel::new(), Stop::new());
    let passed = Arc::new(Passed::default());
    let operation = CommandOperation {
        spec: Spec {
            argv: argv.to_vec(),
            limits: Limits {
                wall: settings.timeout,
                idle: settings.idle,
                grace: settings.grace,
                drain: settings.drain,
                kept_bytes_max: usize::try_from(settings.output_bytes_max).unwrap_or(usize::MAX),
            },
            pty: args.pty,
            keep_background: args.keep_background,
            exclusive: true,
            ..Spec::default()
        },
        input: stdin::input(args.stdin, settings.stdin_bytes_max)?,
        command: command.clone(),
        once: args.once,
        json: args.json,
        buffer: args.buffer,
        stop: stop.clone(),
        classifier: Arc::clone(&classifier),
        journal: Arc::clone(&journal),
        deadline_at: deadline.map(|left| context::now().after(left)),
        passed: Arc::clone(&passed),
    };
    let recent = Arc::clone(&journal);
    let budget = context.config.retry_budget();
    let engine = Engine::new(policy)
        .classifying(classifier)
        .recording(Arc::clone(&journal) as Arc<_>)
        .cancelled_by(cancel.clone())
        .deadline(deadline)
        .disabled(context::is_disabled())
        .budget(budget, Some(Arc::new(move || recent.recent(budget.window))))
        .repeatable(!args.once, "");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::Run { command: command.clone(), error })?;
    let caught = signals::Caught::default();
    let finished = runtime.block_on(async {
        let watch = signals::watch(cancel, stop, caught.clone())?;
        let finished = engine.run(&command, operation).await;
        watch.abort();
        Ok::<_, CliError>(finished)
    });
    let finished = finished?;
    runtime.shutdown_background();
    let code = conclude(args, context, argv, &command, &journal, &passed, finished, &caught);
    passed.release(code != 0);
    code_of(args, code)
}

fn code_of(args: &Exec, code: i32) -> Result<u8, CliError> {
    if args.quiet_failure {
        return Ok(0);
    }
    Ok(u8::try_from(code & 0xff).unwrap_or(NOT_STARTED))
}

/// Records the ending, tells it, and gives the exit code.
#[expect(clippy::too_many_arguments)] // One caller: the last step of one function.
fn conclude(
    args: &Exec,
    context: &Context,
    argv: &[OsString],
    command: &str,
    journal: &ExecJournal,
    passed: &Passed,
    finished: Finished<()>,
    caught: &signals::Caught,
) -> i32 {
    let exit = match (&finished.result, caught.first()) {
        // Stopped from outside is never a success, whatever the command made of it.
        (_, Some(signal)) => 128 + signal,
        (Ok(()), None) => 0,
        (Err(_), None) => passed.exit(),
    };
    let mut events = finished.unrecorded;
    let (outcome, fault, decision) = match finished.result {
        Ok(()) if caught.first().is_none() => (Outcome::Done, None, None),
        Ok(()) => (Outcome::Interrupted, None, None),
        Err(ending) => {
            let outcome = if caught.first().is_some() { Outcome::Interrupted } else { ending.outcome };
            (outcome, Some(ending.fault), Some(ending.decision))
        }
    };
    let next = match decision.as_ref().map(|d| &d.action) {
        Some(Action::Defer { until }) if outcome == Outcome::Deferred => {
            let reason = fault.as_ref().map(|f| f.reason);
            events.push(EventKind::Deferred { operation: SafeText::new(command), until: until.clone() });
            journal.defer(argv, reason, until).map(|id| format!("backstop deferred run {id}"))
        }
        Some(Action::Confirm { .. }) => {
            journal.defer(argv, fault.as_ref().map(|f| f.reason), overrides::CONFIRMATION);
            Some(format!("backstop exec --confirm {}", journal.run()))
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
    journal.note_nested(finished.attempts, fault.as_ref());
    journal.finish(events);
    let ended = Ended {
        run: journal.run(),
        outcome,
        exit,
        attempts: finished.attempts,
        elapsed: finished.elapsed,
        command: SafeText::new(context.redactor.redact(command).into_owned()),
        program: argv.first().map(|p| SafeText::new(p.to_string_lossy())).unwrap_or_default(),
        fault,
        faults: finished.faults,
        decision,
        next,
        signal: passed.signal(),
        left_behind: passed.left_behind(),
    };
    ended.tell(args, context, journal);
    exit
}

/// A command as one would type it.
fn shown_command(argv: &[OsString]) -> String {
    argv.iter().map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+~".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The variables that tell a command where it stands.
fn told(run: RunId, attempt: u32, deadline: Option<Timestamp>) -> Vec<(String, String)> {
    let mut told = vec![
        ("BACKSTOP_RUN_ID".to_owned(), run.to_string()),
        ("BACKSTOP_ATTEMPT".to_owned(), attempt.to_string()),
    ];
    told.extend(deadline.map(|at| ("BACKSTOP_DEADLINE".to_owned(), at.to_string())));
    told
}

/// The shorter of two limits.
fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}
