//! `backstop exec`: any command, made dependable.

mod cache;
mod countdown;
mod ending;
mod gate;
mod journal;
mod operation;
mod overrides;
mod signals;
mod stdin;

use crate::cli::{Exec, LogFormat};
use crate::context::{self, Context};
use crate::error::CliError;
use crate::{aftermath, classify, deferred, freeze, host, terminal};
use backstop_config::Given;
use backstop_core::{Action, EventKind, Fault, Outcome, Record, RunId, SafeText, Timestamp, shell};
use backstop_engine::{Cancel, Engine, Finished};
use backstop_exec::{Limits, Spec, Stop};
use backstop_report::duration;
use backstop_runtime::machine_state as diagnostics;
use backstop_store::Per;
use ending::Ended;
use gate::Gate;
use journal::ExecJournal;
use operation::{CommandOperation, Passed};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// How the process ends when Backstop could not or would not start the command.
pub(crate) const NOT_STARTED: u8 = 125;

/// Runs a command. Gives the exit code.
pub(crate) fn run(args: &Exec, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    let mut args = args.clone();
    let mut context = configured(&args, log_format)?;
    let argv = overrides::argv(&mut args, &context)?;
    if args.confirm.is_some() {
        // The flags that it had are known only now.
        context = configured(&args, log_format)?;
    }
    go(&args, &Arc::new(context), &argv)
}

/// The configuration under these flags.
fn configured(args: &Exec, log_format: Option<LogFormat>) -> Result<Context, CliError> {
    let mut given = flags(args);
    let context = Context::new(&given, log_format)?;
    // Which profile they change is known only now.
    let changes = overrides::flags(args, &context.config.exec().profile)?;
    if changes.is_empty() {
        return Ok(context);
    }
    given.extend(changes);
    Context::new(&given, log_format)
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
pub(crate) fn go(args: &Exec, context: &Arc<Context>, argv: &[OsString]) -> Result<u8, CliError> {
    freeze::refuse_if_frozen(context)?;
    if args.is_quiet() {
        terminal::be_quiet();
    }
    let settings = context.config.exec();
    let policy = context.config.policy(&settings.profile)?;
    let policy = if args.classify { policy.with_attempts(1) } else { policy };
    let cached_for = args.cache.as_deref().map(backstop_core::duration::parse).transpose()?;
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
    let scope = |per| scope_of(per, args, parent.unwrap_or_else(|| journal.run()));
    let gate = Arc::new(Gate::open(args, context, &command, &scope, policy.wait_max)?);
    let key = match cached_for {
        Some(age) => {
            let key = cache::key(args, argv, &std::env::current_dir().map_err(CliError::NoFolder)?)?;
            if let Some(code) = from_cache(args, context, &journal, &gate, &key, age, &command) {
                return code_of(args, code);
            }
            Some(key)
        }
        None => None,
    };
    let learns = policy.learn;
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
        input: stdin::input(args.stdin, settings.stdin_bytes_max, args.pty)?,
        command: command.clone(),
        once: args.once,
        json: args.json,
        buffer: args.buffer,
        stop: stop.clone(),
        classifier: Arc::clone(&classifier),
        journal: Arc::clone(&journal),
        deadline_at: deadline.map(|left| context::now().after(left)),
        passed: Arc::clone(&passed),
        gate: Arc::clone(&gate),
        context: Arc::clone(context),
        learns,
        keeps: key.is_some(),
    };
    let recent = Arc::clone(&journal);
    let (around, counted) = (Arc::clone(context), Arc::clone(&journal));
    let witness = Arc::new(move |fault: &mut Fault| host::witness(&around, counted.deferred_count(), fault));
    let budget = context.config.retry_budget();
    let engine = Engine::new(policy)
        .classifying(classifier)
        .witnessed_by(witness)
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
    // The command is over: whoever asks for our end now gets it.
    signals::let_go();
    passed.release();
    if let (Some(key), Ok(())) = (&key, &finished.result) {
        keep(context, &gate, key, &passed);
    }
    let looping = gate.learn(context, &finished.faults, finished.result.is_ok(), finished.attempts);
    let is_done = finished.result.is_ok();
    let code = conclude(args, context, argv, &command, &journal, &passed, finished, &caught);
    if let Some(times) = looping.filter(|_| !args.is_quiet() && context.log_format == LogFormat::Human) {
        terminal::warn(
            &format!("the same failure {times} times in a row, with no success between: this may be a loop"),
            Some("change something before it is tried again; with --budget NAME it would be stopped here"),
        );
    }
    journal.note(aftermath::run_ended(context, is_done, || journal.events()));
    if parent.is_none() && !args.is_quiet() && !args.json && context.log_format == LogFormat::Human {
        deferred::offer(context, &journal.deferred(), Some(journal.run()));
    }
    if context.config.otel().is_some()
        && let Err(error) = crate::otel::export(&context.config, &journal.events())
    {
        terminal::warn(&error.to_string(), Some(error.hint()));
    }
    code_of(args, code)
}

/// The scope in which a budget is spent.
fn scope_of(per: Per, args: &Exec, run: RunId) -> String {
    let (_, session) = context::caller_and_session();
    match per {
        Per::Total => "all".to_owned(),
        Per::Day => context::now().to_string().chars().take(10).collect(),
        Per::Run => run.to_string(),
        Per::Task => args
            .task
            .clone()
            .or_else(|| args.session.clone())
            .or(session)
            .unwrap_or_else(|| "none".to_owned()),
    }
}

/// A result that was kept, shown as the command would have shown it. Nothing, where there is none.
fn from_cache(
    args: &Exec,
    context: &Context,
    journal: &ExecJournal,
    gate: &Gate,
    key: &str,
    age: Duration,
    command: &str,
) -> Option<i32> {
    let kept = gate.store()?.result(key, age).ok()??;
    // Spent before work, and given back: nothing was done.
    let _ = journal.record(Vec::new());
    gate.take(journal).ok()?;
    gate.refund(journal);
    let old = context::now().since(kept.at);
    if !args.is_quiet() && context.log_format == LogFormat::Human {
        terminal::say(&format!(
            "from the cache, {} old: `{}`\n",
            duration(old),
            SafeText::new(command).line(80)
        ));
    }
    terminal::pass_on(&kept.stdout, &kept.stderr, args.json);
    let mut ended =
        Ended::cached(journal.run(), SafeText::new(context.redactor.redact(command).into_owned()));
    ended.cached_seconds = Some(old.as_secs_f64());
    journal.finish(vec![EventKind::RunEnded {
        outcome: Outcome::Done,
        reason: None,
        attempts: 0,
        duration_ms: 0,
        exit: Some(0),
        next: None,
    }]);
    ended.tell(args, context, journal);
    Some(0)
}

/// Keeps a result, unless it holds a secret: what is kept is kept as it is.
fn keep(context: &Context, gate: &Gate, key: &str, passed: &Passed) {
    let (Some(store), Some((stdout, stderr))) = (gate.store(), passed.output()) else { return };
    let clean = [&stdout, &stderr].into_iter().all(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        context.redactor.redact(&text) == text
    });
    if clean {
        let _ = store.keep_result(key, &stdout, &stderr);
    } else {
        terminal::warn("the result is not kept for --cache: it holds a secret", None);
    }
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
    let reason = fault.as_ref().map(|f| f.reason);
    let mut outcome = outcome;
    let next = match decision.as_ref().map(|d| &d.action) {
        Some(Action::Defer { until }) if outcome == Outcome::Deferred => {
            let words = deferred_words(args, argv, None);
            let address = fault.as_ref().and_then(diagnostics::service_address);
            let id = journal.defer(&words, argv, reason, until, address);
            match id {
                Some(_) => {
                    let operation = SafeText::new(command);
                    events.push(EventKind::Deferred { operation, until: until.clone() });
                }
                // What could not be put aside has failed.
                None => outcome = Outcome::Failed,
            }
            id.map(|id| format!("backstop deferred run {id}"))
        }
        Some(Action::Confirm { .. }) if outcome == Outcome::Unconfirmed => {
            let words = deferred_words(args, argv, Some(journal.run()));
            let id = journal.defer(&words, argv, reason, overrides::CONFIRMATION, None);
            id.map(|_| format!("backstop exec --confirm {}", journal.run()))
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
        program: argv
            .first()
            .map(|p| SafeText::new(context.redactor.redact(&p.to_string_lossy()).into_owned()))
            .unwrap_or_default(),
        fault,
        faults: finished.faults,
        decision,
        next,
        signal: passed.signal(),
        left_behind: passed.left_behind(),
        unended: passed.unended(),
        cached_seconds: None,
        recorded: journal.is_recorded(),
    };
    ended.tell(args, context, journal);
    exit
}

/// What is put aside: the flags that say how to run it, then the command. What waits for a confirmation names its run, so
/// that each has its own.
fn deferred_words(args: &Exec, argv: &[OsString], waits: Option<RunId>) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    if let Some(run) = waits {
        words.extend(["--once".into(), "--confirm".into(), run.to_string().into()]);
    }
    let flags = [
        ("--profile", &args.profile),
        ("--timeout", &args.timeout),
        ("--idle", &args.idle),
        ("--deadline", &args.deadline),
        ("--provider", &args.provider),
        ("--budget", &args.budget),
    ];
    for (flag, value) in flags {
        if let Some(value) = value {
            words.extend([flag.into(), value.into()]);
        }
    }
    words.push("--".into());
    words.extend(argv.iter().cloned());
    words
}

/// A command as one would type it.
fn shown_command(argv: &[OsString]) -> String {
    shell::line(argv.iter().map(|word| word.to_string_lossy()))
}

/// The variables that tell a command where it stands.
fn told(run: RunId, attempt: u32, deadline: Option<Timestamp>) -> Vec<(String, String)> {
    let mut told = vec![
        ("BACKSTOP_RUN_ID".to_owned(), run.to_string()),
        ("BACKSTOP_RUN_MARK".to_owned(), context::mark(run, &context::host())),
        ("BACKSTOP_ATTEMPT".to_owned(), attempt.to_string()),
    ];
    told.extend(deadline.map(|at| ("BACKSTOP_DEADLINE".to_owned(), at.to_string())));
    told
}

/// The shorter of two limits.
fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}
