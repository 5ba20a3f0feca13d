//! One attempt, from its files to its judgement.

use super::acp;
use super::assignment::Task;
use super::definition::{Agent, OutputDialect, PromptBy};
use super::delivery::{answer, envelope};
use super::dialect::{self, AgentOutput, Report};
use super::envelope::{Envelope, masked};
use super::error::AttemptError;
use super::iterations::Iterations;
use super::judge::Case;
use super::lines::{LineFilter, LineStream};
use super::own_retries::{self, LOG_LINE_BYTES_MAX, OwnRetries};
use super::places::{Places, read_written};
use super::question::{self, Questions};
use super::retry::RetryContext;
use super::schema::RESULT_SCHEMA;
use super::session::{Continued, OnSession, SessionSearch};
use super::trouble::ResultTrouble;
use crate::CommandLine;
use crate::log::{Log, Tee};
use backstop_classify::Classifier;
use backstop_core::{Dispatch, Fault, Reason, Redactor, SafeText, Timestamp, Usage};
use backstop_exec::{Cause, Ended, Input, Limits, Spec, Started, Stop, Streams, supervise};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The longest event that is looked at while it is printed, in bytes.
const EVENT_BYTES_MAX: usize = 2 << 20;

/// How much of the command line is shown to the classifier.
const COMMAND_CHARS_MAX: usize = 4 << 10;

/// How much of the end of an agent's errors is looked through for the refusal of a session.
const REFUSAL_BYTES_MAX: usize = 8 << 10;

/// How long an agent may be silent after what it will not get over by itself, before it is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silences {
    /// After a question that nobody will answer.
    pub question: Duration,
    /// After a failed request that it means to repeat: it sleeps until the end of a limit.
    pub own_retry: Duration,
}

impl Default for Silences {
    fn default() -> Self {
        Self { question: question::SILENCE, own_retry: own_retries::SILENCE }
    }
}

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
        /// The session of its own that it continues.
        session: Option<Continued>,
    },
    /// A command.
    Command(CommandLine),
}

/// What an attempt is to come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wanted {
    /// Work, and a result that says what was done.
    #[default]
    Result,
    /// Words alone: an explorer's or a planner's answer.
    Answer,
}

/// One attempt of a phase.
pub struct Attempt<'a> {
    /// What is to be run.
    pub work: Work<'a>,
    /// The folder that it works in.
    pub folder: &'a Path,
    /// A private folder for its files, outside of the tree and of this attempt alone. An absolute
    /// path, in UTF-8.
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
    /// Is told the agent's session as soon as it is known.
    pub on_session: OnSession,
    /// How long an agent may be silent where it waits for something.
    pub silences: Silences,
    /// What it is to come to.
    pub wanted: Wanted,
    /// How many turns with tools the agent has, where that is limited and its dialect shows them.
    pub iterations_max: Option<u32>,
    /// Whether an agent may go on with paid usage once its subscription is used up. One that may
    /// not is ended, and its limit waited for.
    pub allow_overage: bool,
    /// What links of the folder lead to that its user has put there: an agent that asks may work
    /// there as in the folder.
    pub linked: &'a [PathBuf],
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
    /// What it answers, where that was wanted: what it wrote to the result file, else what it said.
    pub answer: Option<SafeText>,
    /// How many turns with tools there were; nothing where its dialect does not show them.
    pub iterations: Option<u32>,
    /// The agent's own name for its session.
    pub session_id: Option<String>,
    /// Whether it knows no such session as it was to continue.
    pub session_refused: bool,
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

impl Attempted {
    /// Whether it ended well and nothing is missing but a valid result.
    pub fn lacks_only_result(&self) -> bool {
        let is_missing = self.fault.as_ref().is_some_and(|fault| fault.reason == Reason::ParseError);
        is_missing && self.result_trouble.is_some() && self.exit == Some(0)
    }

    /// The attempt with what it said when it was asked for its result. Both were paid for.
    #[must_use]
    pub fn asked_again(self, asked: Attempted) -> Attempted {
        let usage = [self.usage, asked.usage].into_iter().flatten().reduce(Usage::plus);
        let mut tail = self.tail;
        tail.extend_from_slice(&asked.tail);
        Attempted {
            usage,
            duration: self.duration + asked.duration,
            denials: self.denials.into_iter().chain(asked.denials).collect(),
            left_behind: self.left_behind.into_iter().chain(asked.left_behind).collect(),
            unended: self.unended.into_iter().chain(asked.unended).collect(),
            session_id: asked.session_id.or(self.session_id),
            log_trouble: self.log_trouble.or(asked.log_trouble),
            tail,
            ..asked
        }
    }
}

/// Runs an attempt once and says what came of it. Blocking; `stop` is of this attempt alone. `now`
/// is asked when it has ended: an agent may have worked for hours before it says when its limit
/// ends.
pub fn attempt(
    attempt: Attempt<'_>,
    classifier: &Classifier,
    now: &dyn Fn() -> Timestamp,
    stop: &Stop,
    started: impl FnOnce(Started),
) -> Result<Attempted, AttemptError> {
    let places = Places::new(attempt.scratch, attempt.folder);
    places.clear()?;
    let argv = argv(&attempt, &places)?;
    let input = input(&attempt.work, &places)?;
    let spec = Spec {
        folder: Some(attempt.folder.to_owned()),
        env: environment(&attempt, &places)?.into_iter().map(|(k, v)| (k.into(), v.into())).collect(),
        limits: attempt.limits.clone(),
        argv,
        ..Spec::default()
    };
    let log = Tee::new(attempt.log.clone());
    let dialect = dialect_of(&attempt.work);
    let questions = Questions::new(attempt.allow_overage);
    let iterations = Iterations::new(dialect, attempt.iterations_max);
    let own_retries = OwnRetries::new(dialect);
    if let Some(id) = own_session(&attempt.work, &places) {
        (attempt.on_session)(&id);
    }
    let mut told: Option<acp::Told> = None;
    let ended = std::thread::scope(|scope| {
        let watching = matches!(attempt.work, Work::Agent { .. });
        if watching {
            scope.spawn(|| questions.watch(stop, attempt.silences.question));
            scope.spawn(|| own_retries.watch(stop, attempt.silences.own_retry));
        }
        let ended = match &attempt.work {
            Work::Agent { agent, model, prompt, session } if agent.acp.is_some() => {
                let request = acp::Request {
                    agent,
                    prompt: prompt.clone(),
                    model: *model,
                    session: session.as_ref().map(|session| session.id.clone()),
                    folders: vec![attempt.folder.to_owned(), places.result_folder()],
                    linked: attempt.linked.to_vec(),
                    on_session: Arc::clone(&attempt.on_session),
                    iterations: &iterations,
                    own_retries: &own_retries,
                    log: log.clone(),
                    stderr: errors(&questions, &own_retries, &log, stop),
                };
                acp::run(&spec, request, stop, started).map(|(ended, said)| {
                    told = Some(said);
                    ended
                })
            }
            work => {
                let watched = (&questions, &iterations, &own_retries);
                let streams = streams(work, &attempt, input, &log, watched, stop);
                supervise(&spec, streams, stop, started)
            }
        };
        questions.over();
        own_retries.over();
        ended
    })?;
    let mut output = match &mut told {
        Some(told) => std::mem::take(&mut told.output),
        None => dialect::read_output(dialect, &ended.stdout),
    };
    let counted = read_written(places.scratch(), &places.usage()).ok().flatten();
    if let Some(usage) = counted.and_then(|bytes| dialect::usage_file(dialect, &bytes)) {
        output.usage = Some(usage);
        output.usage_of_session = true;
    }
    let (envelope, result_trouble) = match attempt.wanted {
        Wanted::Result => envelope(&attempt.work, &places, &output, &ended, attempt.phase_key),
        Wanted::Answer => (None, None),
    };
    let answer = (attempt.wanted == Wanted::Answer).then(|| answer(&places, &output, dialect)).flatten();
    let envelope = envelope.map(|envelope| envelope.masked(attempt.redactor));
    let result_trouble = result_trouble.map(|trouble| trouble.masked(attempt.redactor));
    let command = shown(&attempt.work, &spec.argv);
    let agent = matches!(attempt.work, Work::Agent { .. });
    let case = Case {
        classifier,
        at: now(),
        command: &command,
        provider: provider(&attempt.work),
        ended: &ended,
        output: &output,
        envelope: envelope.as_ref(),
        trouble: result_trouble.as_ref(),
        tasks: attempt.tasks,
        question: questions.fault().or_else(|| iterations.fault()).or_else(|| told.as_ref()?.trouble.clone()),
        last_lines: questions.last_lines(),
        own_retry: own_retries.last(),
        ended_for: own_retries.ended_for(),
        exit_codes: exit_codes(&attempt.work),
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
        answer: answer.map(|text| mask(&SafeText::new(text))),
        iterations: iterations.count().filter(|_| agent),
        session_refused: told.as_ref().is_some_and(|told| told.session_refused)
            || session_refused(&attempt.work, &ended, &output),
        session_id: (output.session_id.clone().or_else(|| own_session(&attempt.work, &places)))
            .filter(|id| dialect::is_session_id(id)),
        denials: output.denials.iter().map(mask).collect(),
        left_behind: ended.left_behind,
        unended: ended.unended,
        usage: output.own_usage(used_before(&attempt.work)),
        log_trouble: attempt.log.trouble(),
    })
}

/// What was used in the session that is continued.
fn used_before(work: &Work<'_>) -> Usage {
    match work {
        Work::Agent { session: Some(session), .. } => session.used,
        _ => Usage::default(),
    }
}

/// Whether the agent says that it knows no such session.
fn session_refused(work: &Work<'_>, ended: &Ended, output: &AgentOutput) -> bool {
    let Work::Agent { agent, session: Some(_), .. } = work else { return false };
    let Some(resume) = agent.resume.filter(|_| ended.cause == Cause::Itself && !ended.status.is_success())
    else {
        return false;
    };
    let reported = match &output.report {
        Report::Failed(failure) => failure.text.clone(),
        _ => String::new(),
    };
    let printed = ended.stderr.end(REFUSAL_BYTES_MAX);
    let printed = String::from_utf8_lossy(&printed);
    resume.refused.iter().any(|words| reported.contains(words) || printed.contains(words))
}

/// The id of the session, where the agent takes one from us: it is known before the agent says
/// anything.
fn own_session(work: &Work<'_>, places: &Places) -> Option<String> {
    let Work::Agent { agent, session, .. } = work else { return None };
    let given = session.as_ref().map(|session| session.id.clone());
    agent.mentions("session").then(|| given.unwrap_or_else(|| places.new_session()))
}

/// Where the output of a process goes that is not talked to, and where its input comes from.
fn streams(
    work: &Work<'_>,
    attempt: &Attempt<'_>,
    input: Input,
    log: &Tee,
    (questions, iterations, own_retries): (&Questions, &Iterations, &OwnRetries),
    stop: &Stop,
) -> Streams {
    if matches!(work, Work::Command(_)) {
        return Streams { stdout: Box::new(log.clone()), stderr: Box::new(log.clone()), input };
    }
    let dialect = dialect_of(work);
    let to = questions.stream(0, log.clone());
    let stdout: Box<dyn Write + Send> = if dialect == OutputDialect::Text {
        Box::new(to)
    } else {
        let (iterations, retries, stop) = (iterations.clone(), own_retries.clone(), stop.clone());
        let mut session = SessionSearch::new(dialect, Arc::clone(&attempt.on_session));
        Box::new(LineStream::new(to, EVENT_BYTES_MAX, move |line| {
            session.line(line);
            iterations.event(line, &stop);
            retries.event(dialect, line, &stop);
        }))
    };
    Streams { stdout, stderr: errors(questions, own_retries, log, stop), input }
}

/// Where the standard error of an agent goes: its log.
fn errors(questions: &Questions, retries: &OwnRetries, log: &Tee, stop: &Stop) -> Box<dyn Write + Send> {
    let (retries, stop) = (retries.clone(), stop.clone());
    let to = LineFilter::new(questions.stream(1, log.clone()), own_retries::OPENCODE_CHATTER);
    Box::new(LineStream::new(to, LOG_LINE_BYTES_MAX, move |line| retries.log_line(line, &stop)))
}

/// What the agent's own exit codes mean.
fn exit_codes(work: &Work<'_>) -> &'static [(i32, Reason)] {
    match work {
        Work::Agent { agent, .. } => agent.exit_codes,
        Work::Command(_) => &[],
    }
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
        Work::Agent { agent, model, session, .. } => {
            let session = session.as_ref().map(|session| session.id.as_str());
            agent.command_line(*model, session, places)?
        }
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
    if let Some(settings) = agent.settings {
        Places::write(&places.settings(), settings)?;
    }
    if agent.prompt == PromptBy::File || agent.acp.is_some() {
        return Ok(Input::Null);
    }
    let file = std::fs::File::open(&path).map_err(|error| (path, error))?;
    Ok(Input::File { file: Arc::new(file), from: 0 })
}

/// The variables: the agent's, the caller's, then ours, each name once.
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

/// The command line as the classifier sees it, which looks for the programs in it.
fn shown(work: &Work<'_>, argv: &[OsString]) -> String {
    let line = match work {
        Work::Command(CommandLine::Shell(line)) => line.clone(),
        _ => argv.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" "),
    };
    line.chars().take(COMMAND_CHARS_MAX).collect()
}
