//! One attempt, from its files to its judgement.

use super::assignment::Task;
use super::definition::{Agent, OutputDialect, PromptBy};
use super::dialect::{self, AgentOutput};
use super::envelope::{Envelope, masked};
use super::error::AttemptError;
use super::find::find_result;
use super::judge::Case;
use super::places::{Places, read_written};
use super::retry::RetryContext;
use super::schema::RESULT_SCHEMA;
use super::trouble::ResultTrouble;
use crate::CommandLine;
use crate::log::{Log, Tee};
use backstop_classify::Classifier;
use backstop_core::{Dispatch, Fault, Redactor, SafeText, Timestamp, Usage};
use backstop_exec::{Ended, Input, Limits, Spec, Started, Stop, Streams, supervise};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How much of the command line is shown to the classifier.
const COMMAND_CHARS_MAX: usize = 4 << 10;

/// What is to be run.
#[derive(Debug, Clone)]
pub enum Work<'a> {
    /// An agent, with its prompt.
    Agent {
        /// The agent.
        agent: &'a Agent,
        /// Its model, where it is not its own choice.
        model: Option<&'a str>,
        /// What it is told.
        prompt: String,
    },
    /// A command.
    Command(CommandLine),
}

/// One attempt of a phase.
pub struct Attempt<'a> {
    /// What is to be run.
    pub work: Work<'a>,
    /// The folder that it works in.
    pub folder: &'a Path,
    /// A private folder for its files, outside of the tree and of this attempt alone: by the variables that name it, its
    /// processes are told from others'. An absolute path, in UTF-8.
    pub scratch: &'a Path,
    /// The phase's key.
    pub phase_key: &'a str,
    /// Which attempt it is, counted from 1.
    pub number: u32,
    /// The phase's tasks, to name those that are left open.
    pub tasks: &'a [Task],
    /// Variables to add to its environment.
    pub env: Vec<(String, String)>,
    /// The clock, and how much of its output is kept.
    pub limits: Limits,
    /// What the last attempt failed of.
    pub retry_context: Option<&'a RetryContext>,
    /// Everything that it writes goes here, as it is. The caller masks and caps it.
    pub log: Log,
    /// Masks what is given back.
    pub redactor: &'a Redactor,
    /// Whether nothing else is run by this process meanwhile: then every orphan is this one's.
    pub exclusive: bool,
}

/// An attempt that is over.
#[derive(Debug, Clone)]
pub struct Attempted {
    /// What it is, where it failed.
    pub fault: Option<Fault>,
    /// Whether it says that everything is done, and how it ended says otherwise.
    pub is_contradicted: bool,
    /// What it says it did, also where it failed.
    pub envelope: Option<Envelope>,
    /// Why there is no envelope, where one was asked for or written.
    pub result_trouble: Option<ResultTrouble>,
    /// Its exit code, where it exited by itself.
    pub exit: Option<i64>,
    /// The signal that ended it.
    pub signal: Option<String>,
    /// Whether our clock ended it.
    pub timed_out: bool,
    /// How far it got, as far as anybody knows.
    pub dispatch: Dispatch,
    /// How long it ran.
    pub duration: Duration,
    /// How long it had been silent in the end.
    pub silent: Duration,
    /// The end of what it wrote, both streams as they came.
    pub tail: Vec<u8>,
    /// The agent's last words.
    pub message: Option<SafeText>,
    /// The agent's own name for its session.
    pub session_id: Option<SafeText>,
    /// What it asked for and was denied.
    pub denials: Vec<SafeText>,
    /// Processes that it left and that were ended.
    pub left_behind: Vec<String>,
    /// Processes that could not be ended.
    pub unended: Vec<String>,
    /// What it cost.
    pub usage: Option<Usage>,
    /// What kept the log from being written.
    pub log_trouble: Option<String>,
}

/// Runs an attempt once and says what came of it. Blocking; `stop` is of this attempt alone, `at` is now.
pub fn attempt(
    attempt: Attempt<'_>,
    classifier: &Classifier,
    at: Timestamp,
    stop: &Stop,
    started: impl FnOnce(Started),
) -> Result<Attempted, AttemptError> {
    let places = Places::new(attempt.scratch, attempt.folder);
    places.clear()?;
    let argv = argv(&attempt, &places)?;
    let input = input(&attempt.work, &places)?;
    let spec = Spec {
        folder: Some(attempt.folder.to_owned()),
        env: environment(&attempt, &places)?,
        limits: attempt.limits.clone(),
        argv,
        exclusive: attempt.exclusive,
        ..Spec::default()
    };
    let log = Tee::new(attempt.log.clone());
    let streams = Streams { stdout: Box::new(log.clone()), stderr: Box::new(log.clone()), input };
    let ended = supervise(&spec, streams, stop, started)?;

    let dialect = dialect_of(&attempt.work);
    let output = dialect::read_output(dialect, &ended.stdout);
    let (envelope, result_trouble) = envelope(&attempt.work, &places, &output, &ended, attempt.phase_key);
    let envelope = envelope.map(|envelope| envelope.masked(attempt.redactor));
    let result_trouble = result_trouble.map(|trouble| trouble.masked(attempt.redactor));
    let command = shown(&attempt.work, &spec.argv);
    let agent = matches!(attempt.work, Work::Agent { .. });
    let case = Case {
        classifier,
        at,
        command: &command,
        provider: provider(&attempt.work),
        ended: &ended,
        output: &output,
        envelope: envelope.as_ref(),
        trouble: result_trouble.as_ref(),
        tasks: attempt.tasks,
    };
    let mask = |text: &SafeText| masked(text, attempt.redactor);
    let mut fault = case.fault();
    if let Some(fault) = &mut fault {
        fault.cause = fault.cause.as_ref().map(mask);
    }
    let is_contradicted = case.is_contradicted();
    Ok(Attempted {
        fault,
        is_contradicted,
        envelope,
        result_trouble,
        exit: ended.status.code.map(i64::from).filter(|_| !ended.timed_out()),
        signal: ended.signal_name(),
        timed_out: ended.timed_out(),
        dispatch: ended.dispatch(),
        duration: ended.duration,
        silent: ended.silent,
        tail: log.masked_tail(attempt.redactor),
        message: output.message().filter(|_| agent).map(|text| mask(&text)),
        session_id: output.session_id.as_deref().map(|id| mask(&SafeText::new(SafeText::new(id).line(200)))),
        denials: output.denials.iter().map(mask).collect(),
        left_behind: ended.left_behind,
        unended: ended.unended,
        usage: output.usage,
        log_trouble: attempt.log.trouble(),
    })
}

fn dialect_of(work: &Work<'_>) -> OutputDialect {
    match work {
        Work::Agent { agent, .. } => agent.output,
        Work::Command(_) => OutputDialect::Text,
    }
}

fn provider<'w>(work: &Work<'w>) -> Option<&'w str> {
    match work {
        Work::Agent { agent, .. } => agent.provider.as_deref(),
        Work::Command(_) => None,
    }
}

fn argv(attempt: &Attempt<'_>, places: &Places) -> Result<Vec<OsString>, AttemptError> {
    let argv: Vec<OsString> = match &attempt.work {
        Work::Agent { agent, model, .. } => agent.command_line(*model, places)?,
        Work::Command(line) if line.is_empty() => Vec::new(),
        Work::Command(line) => line.argv(),
    };
    if argv.first().is_none_or(|program| program.is_empty()) {
        return Err(AttemptError::NoCommand { phase: attempt.phase_key.to_owned() });
    }
    Ok(argv)
}

/// The standard input, and the files that the command line names.
fn input(work: &Work<'_>, places: &Places) -> Result<Input, AttemptError> {
    let Work::Agent { agent, prompt, .. } = work else { return Ok(Input::Null) };
    let path = places.prompt();
    Places::write(&path, prompt)?;
    if agent.mentions("schema_file") {
        Places::write(&places.schema(), RESULT_SCHEMA)?;
    }
    if agent.prompt == PromptBy::File {
        return Ok(Input::Null);
    }
    let file = std::fs::File::open(&path).map_err(|error| (path, error))?;
    Ok(Input::File { file: Arc::new(file), from: 0 })
}

/// The variables: the agent's, the caller's, then ours, each name once. By them its processes are told from others'.
fn environment(attempt: &Attempt<'_>, places: &Places) -> Result<Vec<(String, String)>, AttemptError> {
    let path = |path: PathBuf| path.to_string_lossy().into_owned();
    let mut all: Vec<(String, String)> = Vec::new();
    if let Work::Agent { agent, .. } = &attempt.work {
        all.extend(agent.variables(places));
    }
    all.extend(attempt.env.iter().cloned());
    all.push(("BACKSTOP_RESULT".to_owned(), path(places.result())));
    all.push(("BACKSTOP_PHASE".to_owned(), attempt.phase_key.to_owned()));
    all.push(("BACKSTOP_ATTEMPT".to_owned(), attempt.number.to_string()));
    if let Some(context) = attempt.retry_context {
        Places::write(&places.retry_context(), &context.to_json())?;
        all.push(("BACKSTOP_RETRY_CONTEXT".to_owned(), path(places.retry_context())));
    }
    let mut env: Vec<(String, String)> = Vec::new();
    for (name, value) in all {
        env.retain(|(known, _)| *known != name);
        env.push((name, value));
    }
    Ok(env)
}

/// The envelope, from the first place that has a valid one; else what was wrong at the place that came closest.
fn envelope(
    work: &Work<'_>,
    places: &Places,
    output: &AgentOutput,
    ended: &Ended,
    key: &str,
) -> (Option<Envelope>, Option<ResultTrouble>) {
    let mut closest: Option<ResultTrouble> = None;
    let mut look = |found: Result<Envelope, ResultTrouble>| match found {
        Ok(envelope) => Some(envelope),
        Err(trouble) => {
            if closest.as_ref().is_none_or(|known| trouble.closeness() > known.closeness()) {
                closest = Some(trouble);
            }
            None
        }
    };
    let written = |path: &Path| match read_written(path) {
        Ok(bytes) => bytes.map(|bytes| find_result(&bytes, key)),
        Err(trouble) => Some(Err(trouble)),
    };
    let mut envelope = written(&places.result()).and_then(&mut look);
    if let Work::Agent { agent, .. } = work {
        let mut or = |found: &mut dyn FnMut() -> Option<Result<Envelope, ResultTrouble>>| {
            if envelope.is_none() {
                envelope = found().and_then(&mut look);
            }
        };
        or(&mut || output.structured.as_ref().map(|object| find_result(object.as_bytes(), key)));
        // What is wrong with that file is no fault of the result's: its words are heard too.
        or(&mut || read_written(&places.last_message()).ok().flatten().map(|bytes| find_result(&bytes, key)));
        or(&mut || Some(find_result(output.words.as_bytes(), key)));
        if agent.output == OutputDialect::Text {
            or(&mut || Some(find_result(&ended.stderr.end(usize::MAX), key)));
        }
    }
    let trouble = closest.filter(|_| envelope.is_none());
    (envelope, trouble)
}

/// The command line as the classifier sees it, which looks for the programs in it.
fn shown(work: &Work<'_>, argv: &[OsString]) -> String {
    let line = match work {
        Work::Command(CommandLine::Shell(line)) => line.clone(),
        _ => argv.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" "),
    };
    line.chars().take(COMMAND_CHARS_MAX).collect()
}
