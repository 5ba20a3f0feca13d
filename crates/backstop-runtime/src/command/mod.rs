//! A command as an operation of the engine: supervised, classified, its children recorded. What is
//! asked for is a [`CommandRequest`]; under a project's settings it is a [`PreparedCommand`], which
//! knows how its run begins and ends.
//!
//! Whose streams it writes to is given to it. It must not decide about retries, and it must not
//! print.

mod cache_key;
mod conclude;
mod dry_run;
mod input_files;
mod nested;
mod output;
mod overrides;
mod request;
mod results;
mod run;

pub use cache_key::{CacheKey, CacheKeyError};
pub use conclude::{NOT_STARTED, confirm_with};
pub use output::LastAttempt;
pub use overrides::{OverrideError, profile_settings};
pub use request::{CommandRequest, PreparedCommand};
pub use results::ResultCache;
pub use run::{CommandRun, CommandStreams, Concluded, NamedLimits, Reused};

use crate::project::Project;
use crate::recorder::Recorder;
use backstop_classify::{Effect, NothingDone, add_credential_facts};
use backstop_core::{
    Dispatch, Fault, OutputLog, OutputStream, Reason, Redactor, SafeText, Shape, Signal, Timestamp,
};
use backstop_engine::{Attempt, Failed, Operation};
use backstop_exec::{Cause, Ended, HeadTail, Input, Spec, StartError, Started, Stop, Streams, supervise};
use backstop_store::Child;
use nested::Nested;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// How much of the output of a failed attempt is recorded, in bytes: its beginning and its end.
const LOG_BYTES_MAX: usize = 1 << 20;
/// How much of the end of the output is in the event, in bytes.
const EXCERPT_BYTES_MAX: usize = 4 << 10;
/// How many lines of it, where both streams have text.
const EXCERPT_LINES_MAX: usize = 40;
/// How much of one of these lines, in characters.
const EXCERPT_LINE_CHARS_MAX: usize = 400;

/// How a command is run, and where its output goes.
pub struct CommandSettings {
    /// The command and its limits.
    pub spec: Spec,
    /// Its standard input.
    pub input: Input,
    /// The provider behind it, where it is known: whose credential an `auth_error` is about.
    pub provider: Option<String>,
    /// Whether its output is held back until it is over.
    pub buffer: bool,
    /// Whether the whole output of a success is wanted.
    pub keeps_output: bool,
    /// Whether a code other than 0 may be the answer to a question, as of `grep` without a match.
    pub answers: bool,
    /// When all attempts must be over.
    pub deadline_at: Option<Timestamp>,
    /// Where its output goes, and its errors.
    pub stdout: File,
    /// Where its errors go.
    pub stderr: File,
}

/// A command that is attempted.
pub struct CommandOperation {
    settings: CommandSettings,
    stop: Stop,
    command: Arc<PreparedCommand>,
    project: Arc<Project>,
    recorder: Arc<Recorder>,
    last: Arc<LastAttempt>,
    nested: Arc<Nested>,
    /// Why it cannot be started, where that is known before.
    unstartable: Option<Error>,
}

/// What is left of a command when its attempts are over.
#[derive(Debug, Clone)]
pub struct CommandAfter {
    /// What the last attempt left.
    pub last: Arc<LastAttempt>,
    nested: Arc<Nested>,
}

impl CommandAfter {
    /// Tells the run that started this one how often it was tried in vain.
    pub fn tell_parent(&self, attempts: u32, fault: Option<&Fault>) {
        self.nested.tell_parent(attempts, fault);
    }
}

impl CommandOperation {
    /// A command of this run. `stop` asks for its end.
    pub fn new(
        settings: CommandSettings,
        stop: Stop,
        command: &Arc<PreparedCommand>,
        recorder: &Arc<Recorder>,
    ) -> Self {
        let project = &command.project;
        Self {
            settings,
            stop,
            command: Arc::clone(command),
            project: Arc::clone(project),
            recorder: Arc::clone(recorder),
            last: Arc::default(),
            nested: Arc::new(Nested::new(Arc::clone(project), Arc::clone(recorder))),
            unstartable: None,
        }
    }

    /// Something that it needs cannot be had: its next attempt ends with that.
    pub fn cannot_start(&mut self, error: Error) {
        self.unstartable = Some(error);
    }

    /// What is left when its attempts are over.
    pub fn after(&self) -> CommandAfter {
        CommandAfter { last: Arc::clone(&self.last), nested: Arc::clone(&self.nested) }
    }

    /// What keeps it from being repeated by itself, other than that nobody wants it.
    fn effect(&self) -> Option<Effect> {
        if self.command.request.once { None } else { self.command.effect() }
    }

    /// The variables that tell a command where it stands.
    fn variables(&self, attempt: u32) -> Vec<(String, String)> {
        let run = self.recorder.run();
        let mut all = vec![
            ("BACKSTOP_RUN_ID".to_owned(), run.to_string()),
            ("BACKSTOP_RUN_MARK".to_owned(), self.project.process.mark(run)),
            ("BACKSTOP_ATTEMPT".to_owned(), attempt.to_string()),
        ];
        let deadline = self.settings.deadline_at;
        all.extend(deadline.map(|at| ("BACKSTOP_DEADLINE".to_owned(), at.to_string())));
        all
    }
}

impl Operation for CommandOperation {
    type Output = ();

    /// The supervisor ends it, with all that it started; it must not be dropped.
    fn ends_itself(&self) -> bool {
        true
    }

    fn success_exit(&self) -> i64 {
        self.last.left().exit.map_or(0, i64::from)
    }

    fn needs_confirmation(&self) -> Option<String> {
        self.effect().as_ref().map(why_confirm)
    }

    /// Nobody but the command itself can make what it sends smaller.
    fn is_compressible(&self) -> bool {
        false
    }

    async fn attempt(&mut self, attempt: Attempt) -> Result<(), Failed> {
        if attempt.left.is_some_and(|left| left.is_zero()) {
            self.last.left().exit = Some(124);
            let mut fault = Fault::new(Reason::Timeout);
            fault.cause = Some("the deadline had passed before it was started".into());
            return Err(Failed::classified(fault, Dispatch::NotDispatched));
        }
        self.nested.attempt_begins();
        let mut spec = self.settings.spec.clone();
        spec.env = self.variables(attempt.number).into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        spec.limits.wall = shorter(spec.limits.wall, attempt.left);
        let (streams, held) = match self.streams() {
            Ok(streams) => streams,
            Err(error) => {
                return Err(
                    self.not_started(&StartError::System { program: self.command.shown.clone(), error })
                );
            }
        };
        let (recorder, number) = (&self.recorder, attempt.number);
        let started = |started: Started| {
            recorder.child_started(Child {
                operation: None,
                attempt: number,
                pid: started.process.pid,
                start: started.process.start,
                group: started.group,
            });
        };
        let system = |error| StartError::System { program: self.command.shown.clone(), error };
        // It blocks: nothing else is to be done meanwhile, and another thread waits for signals.
        let supervised = match &self.unstartable {
            Some(error) => {
                Err(system(error.raw_os_error().map_or(error.kind().into(), Error::from_raw_os_error)))
            }
            None => catch_unwind(AssertUnwindSafe(|| supervise(&spec, streams, &self.stop, started)))
                .unwrap_or_else(|_| Err(system(Error::other("its supervisor has failed")))),
        };
        let result = match supervised {
            Ok(ended) => self.ended(attempt.number, &ended),
            Err(error) => Err(self.not_started(&error)),
        };
        self.last.left().held = held;
        result
    }
}

impl CommandOperation {
    fn ended(&self, attempt: u32, ended: &Ended) -> Result<(), Failed> {
        {
            let mut last = self.last.left();
            last.exit = Some(ended.exit());
            last.signal = ended.signal_name();
            last.signal_number = ended.status.signal;
            last.reader_left = ended.ended_by_reader();
            last.left_behind.clone_from(&ended.left_behind);
            last.unended.clone_from(&ended.unended);
        }
        let beside_words = if ended.is_one_stream { &ended.stdout } else { &ended.stderr };
        self.project.process.output.command_wrote(beside_words.end(1).last().is_some_and(|b| *b != b'\n'));
        if self.is_answer(ended) {
            return Ok(());
        }
        let Some(mut fault) =
            ended.fault(&self.command.classifier, &self.command.shown, self.project.process.now())
        else {
            if self.settings.keeps_output {
                self.last.left().output = whole(&ended.stdout).zip(whole(&ended.stderr));
            }
            return Ok(());
        };
        if let Some(provider) = &self.settings.provider {
            add_credential_facts(&mut fault, Some(provider), Some(&self.command.shown));
            // Whose limit it is somebody has said: its guard is waited for, before any delay.
            if fault.reason == Reason::RateLimited && fault.facts.provider.is_none() {
                fault.facts.provider = Some(SafeText::new(provider.clone()));
            }
        }
        // What a command did before it failed nobody knows: where it must not be repeated, that
        // counts as lost.
        let exit = ended.status.code.map(i64::from);
        let (once, effect) = (self.command.request.once, self.effect());
        let effect = effect.as_ref();
        let is_errors_only =
            |effect: &Effect| whole(&ended.stdout).is_some_and(|text| effect.is_errors_only(&text, &fault));
        // A command that joins its streams itself (`2>&1`) writes nothing to standard error.
        let is_joined = ended.is_one_stream || ended.stderr.bytes() == 0;
        let has_output = ended.stdout.bytes() > 0 && !(is_joined && effect.is_some_and(is_errors_only));
        let nothing_done = effect.and_then(|effect| effect.nothing_done(&fault, exit, has_output));
        if nothing_done.is_none() && (once || effect.is_some()) {
            fault = fault.may_have_changed();
        }
        if ended.status.code.is_some() && fault.is_unanswered_lookup() {
            fault.facts.should_retry = Some(true);
        }
        let dispatch = match nothing_done {
            _ if once => Dispatch::Lost,
            Some(NothingDone::NeverSent) => Dispatch::NotDispatched,
            _ => ended.dispatch(),
        };
        let mut failed = Failed::classified(fault, dispatch);
        failed.exit = exit;
        failed.nothing_done = nothing_done.is_some();
        failed.signal = ended.signal_name();
        let log = log(ended, &self.recorder.redactor());
        failed.output = excerpt(&log);
        self.recorder.keep_output(attempt, &log);
        let typed = "it read from the terminal: what was typed cannot be given to another attempt";
        failed.unrepeatable = self
            .settings
            .input
            .unrepeatable()
            .or_else(|| ended.read_terminal.then(|| typed.to_owned()))
            .map(String::into_boxed_str);
        failed.retried_below = self.nested.retried_below();
        Err(failed)
    }

    /// Whether its exit code answers a question and is no failure.
    fn is_answer(&self, ended: &Ended) -> bool {
        let is_its_own = ended.cause == Cause::Itself && ended.unwritable.is_none();
        let exit = ended.status.code.filter(|code| *code != 0 && is_its_own);
        let words = || self.settings.spec.argv.iter().map(|word| word.to_string_lossy().into_owned());
        exit.is_some_and(|exit| {
            self.settings.answers && backstop_classify::is_answer(&words().collect::<Vec<_>>(), exit)
        })
    }

    /// A command that was never started: free to repeat, as far as harm goes.
    fn not_started(&self, error: &StartError) -> Failed {
        self.last.left().exit = Some(error.exit());
        let signal = Signal {
            command: Some(self.command.shown.clone()),
            exit: Some(i64::from(error.exit())),
            stderr: error.to_string().into_bytes(),
            ..Signal::default()
        };
        let redactor = self.recorder.redactor();
        let masked = |text: &str| SafeText::new(redactor.redact(text).into_owned());
        let mut fault = match error {
            StartError::NotFound { program } => {
                let mut fault = Fault::new(Reason::DependencyMissing);
                fault.facts.missing = Some(masked(program));
                fault.suggested_action = masked(&where_to_look(program));
                fault
            }
            StartError::NotExecutable { program, .. } => {
                let mut fault = Fault::new(Reason::PermissionDenied);
                if let Some(file) = masked(program).shaped(Shape::Path).filter(|file| file.contains('/')) {
                    fault.suggested_action = SafeText::new(format!("make it executable: `chmod +x {file}`"));
                }
                fault
            }
            StartError::Folder { .. } => Fault::new(Reason::InvalidUsage),
            // No process, or no memory for one: nothing is wrong with the command.
            StartError::System { error, .. }
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::OutOfMemory) =>
            {
                Fault::new(Reason::ResourceExhausted)
            }
            StartError::System { .. } => self
                .command
                .classifier
                .classify(&signal)
                .unwrap_or_else(|| Fault::new(Reason::ResourceExhausted)),
        };
        fault.cause = Some(masked(&error.to_string()));
        let mut failed = Failed::classified(fault, Dispatch::NotDispatched);
        failed.exit = Some(i64::from(error.exit()));
        failed
    }

    /// Where its output goes: through, or held back.
    fn streams(&self) -> std::io::Result<(Streams, Vec<(File, File)>)> {
        let (to_stdout, to_stderr) = (self.settings.stdout.try_clone()?, self.settings.stderr.try_clone()?);
        let input = self.settings.input.clone();
        if !self.settings.buffer {
            let streams = Streams { stdout: Box::new(to_stdout), stderr: Box::new(to_stderr), input };
            return Ok((streams, Vec::new()));
        }
        // Files that nobody else can open, and that go when they are closed.
        let folder = &self.project.process.temp_dir;
        if self.settings.spec.joined {
            let out = tempfile::tempfile_in(folder)?;
            let streams =
                Streams { stdout: Box::new(out.try_clone()?), stderr: Box::new(std::io::sink()), input };
            return Ok((streams, vec![(out, to_stdout)]));
        }
        let (out, err) = (tempfile::tempfile_in(folder)?, tempfile::tempfile_in(folder)?);
        let streams =
            Streams { stdout: Box::new(out.try_clone()?), stderr: Box::new(err.try_clone()?), input };
        Ok((streams, vec![(out, to_stdout), (err, to_stderr)]))
    }
}

/// Why a command that changes something is not repeated by itself.
pub fn why_confirm(effect: &Effect) -> String {
    let Effect { program, does, rule, .. } = effect;
    format!("`{program}` {does}, rule {rule}: it needs confirmation before it is retried")
}

/// The shorter of two limits.
fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// What to do about a program that is not there.
fn where_to_look(program: &str) -> String {
    const BUILT_IN: &[&str] = &[
        "alias", "bg", "builtin", "cd", "command", "declare", "eval", "exec", "export", "fg", "hash",
        "history", "jobs", "let", "local", "popd", "pushd", "read", "set", "shift", "shopt", "source", ".",
        "trap", "type", "ulimit", "umask", "unset", "wait",
    ];
    if BUILT_IN.contains(&program) {
        return format!("`{program}` is built into the shell: run it with `sh -c '{program} …'`");
    }
    if program.split_once('=').is_some_and(|(name, _)| is_variable(name)) {
        return format!(
            "`{program}` sets a variable: put `env` before it, `backstop exec -- env {program} …`"
        );
    }
    if program.contains([' ', '|', '&', ';', '>', '<', '$']) {
        return format!("that looks like a line for a shell: run it with `sh -c '{program}'`");
    }
    if program.contains('/') {
        return format!(
            "there is no file `{program}` from here: check the path, and its first line if it is a script"
        );
    }
    format!("install `{program}`, or put it on the PATH; check how it is written")
}

/// Whether this is the name of a variable.
fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// All of a stream, where all of it was kept.
fn whole(kept: &HeadTail) -> Option<Vec<u8>> {
    let (before, after) = kept.tail();
    (kept.left_out_bytes() == 0).then(|| [kept.head(), before, after].concat())
}

/// What both streams wrote, in the order in which it was read, with secrets masked. Text is
/// released line by line, so that a secret is found wherever a stream was cut.
fn log(ended: &Ended, redactor: &Redactor) -> OutputLog {
    let stream = |number: usize| match number {
        0 if ended.is_one_stream => OutputStream::Both,
        0 => OutputStream::Stdout,
        _ => OutputStream::Stderr,
    };
    let mut masks = [redactor.stream(), redactor.stream()];
    let mut log = OutputLog::default();
    for part in ended.output() {
        let mask = &mut masks[part.stream.min(1)];
        if part.left_out_bytes > 0 {
            // The line that was cut ends here.
            let rest = std::mem::replace(mask, redactor.stream()).finish();
            log.push(stream(part.stream), &rest, 0);
            log.push(stream(part.stream), "", part.left_out_bytes);
        }
        let text: String = part.bytes.iter().map(|bytes| mask.push(bytes)).collect();
        log.push(stream(part.stream), &text, 0);
    }
    for (number, mask) in masks.into_iter().enumerate() {
        log.push(stream(number), &mask.finish(), 0);
    }
    log.bounded(LOG_BYTES_MAX)
}

/// The end of what it wrote. Where both streams have text, some of both.
fn excerpt(log: &OutputLog) -> Option<SafeText> {
    let mut streams: Vec<OutputStream> = Vec::new();
    for part in log.parts.iter().filter(|part| !part.text.raw().trim().is_empty()) {
        if !streams.contains(&part.stream) {
            streams.push(part.stream);
        }
    }
    let text = match streams.len() {
        0 => return None,
        1 => log.parts.iter().map(|part| part.text.raw()).collect::<String>(),
        _ => {
            let cut = |(_, line): &(OutputStream, &str)| {
                let end = line.char_indices().nth(EXCERPT_LINE_CHARS_MAX).map_or(line.len(), |(at, _)| at);
                format!("{}\n", &line[..end])
            };
            let lines = |count: usize| log.last_lines(count).iter().map(cut).collect::<String>();
            let counts = std::iter::successors(Some(EXCERPT_LINES_MAX), |count| Some(count / 2));
            let fits = counts.take_while(|count| *count > 6).map(lines);
            fits.into_iter().find(|text| text.len() <= EXCERPT_BYTES_MAX).unwrap_or_else(|| lines(6))
        }
    };
    let from = text.ceil_char_boundary(text.len().saturating_sub(EXCERPT_BYTES_MAX));
    let cut = if from == 0 { &text[..] } else { text[from..].split_once('\n').map_or("", |(_, rest)| rest) };
    let cut = cut.trim_end();
    (!cut.trim().is_empty()).then(|| SafeText::new(cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_has_the_end_of_both_streams() {
        let mut log = OutputLog::default();
        log.push(OutputStream::Stderr, "error: the cause\n", 0);
        log.push(OutputStream::Stdout, &"progress\n".repeat(5000), 0);
        let text = excerpt(&log).unwrap();
        assert!(text.raw().starts_with("error: the cause\nprogress\n"), "{}", text.raw());
        assert!(text.raw().len() <= EXCERPT_BYTES_MAX);
        let mut long = OutputLog::default();
        long.push(OutputStream::Stderr, &"e".repeat(100_000), 0);
        long.push(OutputStream::Stdout, &"o".repeat(100_000), 0);
        let text = excerpt(&long).unwrap();
        assert!(
            text.raw().contains('e') && text.raw().contains('o') && text.raw().len() <= EXCERPT_BYTES_MAX
        );
        assert_eq!(excerpt(&OutputLog::default()), None);
    }
}
