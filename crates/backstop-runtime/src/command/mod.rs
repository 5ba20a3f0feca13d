//! A command as an operation of the engine: supervised, classified, its children recorded.
//!
//! Whose streams it writes to is given to it. It must not decide about retries, and it must not
//! print.

mod cache_key;
mod input_files;
mod nested;
mod output;

pub use cache_key::{CacheKey, CacheKeyError};
pub use output::LastAttempt;

use crate::project::Project;
use crate::recorder::Recorder;
use backstop_classify::Classifier;
use backstop_core::{Dispatch, Fault, Reason, Redactor, SafeText, Signal, Timestamp};
use backstop_engine::{Attempt, Failed, Operation};
use backstop_exec::{Ended, HeadTail, Input, Spec, StartError, Stop, Streams, supervise};
use backstop_store::Child;
use nested::Nested;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

/// How much of the output is looked at for secrets before its end is kept.
const SCANNED_BYTES: usize = 256 << 10;
/// How much of the end of the output is recorded.
const RECORDED_BYTES: usize = 4 << 10;

/// How a command is run, and where its output goes.
pub struct CommandSettings {
    /// The command and its limits.
    pub spec: Spec,
    /// Its standard input.
    pub input: Input,
    /// The command as one would type it.
    pub shown: String,
    /// Whether it must not be repeated by itself.
    pub once: bool,
    /// Whether its output is held back until it is over.
    pub buffer: bool,
    /// Whether the whole output of a success is wanted.
    pub keeps_output: bool,
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
    classifier: Arc<Classifier>,
    project: Arc<Project>,
    recorder: Arc<Recorder>,
    last: Arc<LastAttempt>,
    nested: Arc<Nested>,
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
        classifier: Arc<Classifier>,
        project: &Arc<Project>,
        recorder: &Arc<Recorder>,
    ) -> Self {
        Self {
            settings,
            stop,
            classifier,
            project: Arc::clone(project),
            recorder: Arc::clone(recorder),
            last: Arc::default(),
            nested: Arc::new(Nested::new(Arc::clone(project), Arc::clone(recorder))),
        }
    }

    /// What is left when its attempts are over.
    pub fn after(&self) -> CommandAfter {
        CommandAfter { last: Arc::clone(&self.last), nested: Arc::clone(&self.nested) }
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

    async fn attempt(&mut self, attempt: Attempt) -> Result<(), Failed> {
        if attempt.left.is_some_and(|left| left.is_zero()) {
            self.last.left().exit = Some(124);
            let mut fault = Fault::new(Reason::Timeout);
            fault.cause = Some("the deadline had passed before it was started".into());
            return Err(Failed::classified(fault, Dispatch::NotDispatched));
        }
        self.nested.attempt_begins();
        let mut spec = self.settings.spec.clone();
        spec.env = self.variables(attempt.number);
        spec.limits.wall = shorter(spec.limits.wall, attempt.left);
        let (streams, held) = match self.streams() {
            Ok(streams) => streams,
            Err(error) => {
                return Err(
                    self.not_started(&StartError::System { program: self.settings.shown.clone(), error })
                );
            }
        };
        let (stop, recorder, number) = (self.stop.clone(), Arc::clone(&self.recorder), attempt.number);
        let supervised = tokio::task::spawn_blocking(move || {
            supervise(&spec, streams, &stop, |started| {
                recorder.child_started(Child {
                    operation: None,
                    attempt: number,
                    pid: started.process.pid,
                    start: started.process.start,
                    group: started.group,
                });
            })
        })
        .await;
        let result = match supervised {
            Ok(Ok(ended)) => self.ended(&ended),
            Ok(Err(error)) => Err(self.not_started(&error)),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        self.last.left().held = held;
        result
    }
}

impl CommandOperation {
    fn ended(&self, ended: &Ended) -> Result<(), Failed> {
        {
            let mut last = self.last.left();
            last.exit = Some(ended.exit());
            last.signal = ended.signal_name();
            last.left_behind.clone_from(&ended.left_behind);
            last.unended.clone_from(&ended.unended);
        }
        let Some(fault) = ended.fault(&self.classifier, &self.settings.shown, self.project.process.now())
        else {
            if self.settings.keeps_output {
                self.last.left().output = whole(&ended.stdout).zip(whole(&ended.stderr));
            }
            return Ok(());
        };
        // What a command did before it failed nobody knows: where it must not be repeated, that
        // counts as lost.
        let dispatch = if self.settings.once { Dispatch::Lost } else { ended.dispatch() };
        let mut failed = Failed::classified(fault, dispatch);
        failed.exit = ended.status.code.map(i64::from);
        failed.signal = ended.signal_name();
        failed.output = excerpt(ended, &self.recorder.redactor());
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

    /// A command that was never started: free to repeat, as far as harm goes.
    fn not_started(&self, error: &StartError) -> Failed {
        self.last.left().exit = Some(error.exit());
        let signal = Signal {
            command: Some(self.settings.shown.clone()),
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
            StartError::NotExecutable { .. } => Fault::new(Reason::PermissionDenied),
            StartError::Folder { .. } => Fault::new(Reason::InvalidUsage),
            StartError::System { .. } => {
                self.classifier.classify(&signal).unwrap_or_else(|| Fault::new(Reason::ResourceExhausted))
            }
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
        let (out, err) = (tempfile::tempfile_in(folder)?, tempfile::tempfile_in(folder)?);
        let streams =
            Streams { stdout: Box::new(out.try_clone()?), stderr: Box::new(err.try_clone()?), input };
        Ok((streams, vec![(out, to_stdout), (err, to_stderr)]))
    }
}

/// The shorter of two limits.
fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// What to do about a program that is not there.
fn where_to_look(program: &str) -> String {
    const BUILT_IN: &[&str] =
        &["alias", "cd", "eval", "exec", "export", "set", "source", ".", "ulimit", "umask", "unset"];
    if BUILT_IN.contains(&program) {
        return format!("`{program}` is built into the shell: run it with `sh -c '{program} …'`");
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

/// All of a stream, where all of it was kept.
fn whole(kept: &HeadTail) -> Option<Vec<u8>> {
    let (before, after) = kept.tail();
    (kept.left_out_bytes() == 0).then(|| [kept.head(), before, after].concat())
}

/// The end of what it wrote, with secrets masked: of its errors, or where there are none of its
/// output.
fn excerpt(ended: &Ended, redactor: &Redactor) -> Option<SafeText> {
    let end = |kept: &HeadTail| -> Option<String> {
        let bytes = kept.end(SCANNED_BYTES);
        let mut stream = redactor.stream();
        let mut text = String::new();
        for piece in bytes.chunks(64 << 10) {
            text.push_str(&stream.push(piece));
        }
        text.push_str(&stream.finish());
        let from = text.ceil_char_boundary(text.len().saturating_sub(RECORDED_BYTES));
        let cut =
            if from == 0 { &text[..] } else { text[from..].split_once('\n').map_or("", |(_, rest)| rest) };
        let cut = cut.trim_end();
        (!cut.trim().is_empty()).then(|| cut.to_owned())
    };
    end(&ended.stderr).or_else(|| end(&ended.stdout)).map(SafeText::new)
}
