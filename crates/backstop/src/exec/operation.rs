//! A command as an operation of the engine.

use super::journal::ExecJournal;
use super::{shorter, told};
use crate::context;
use backstop_classify::Classifier;
use backstop_core::{Dispatch, Fault, Reason, Redactor, SafeText, Signal, Timestamp};
use backstop_engine::{Attempt, Failed, Operation};
use backstop_exec::{Ended, Input, Kept, Spec, StartError, Stop, Streams, supervise};
use backstop_store::Child;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much of the output is looked at for secrets before its end is kept.
const SCANNED_BYTES: usize = 256 << 10;
/// How much of the end of the output is recorded.
const RECORDED_BYTES: usize = 4 << 10;

/// A command that is attempted.
pub(super) struct CommandOperation {
    pub(super) spec: Spec,
    pub(super) input: Input,
    pub(super) command: String,
    pub(super) once: bool,
    pub(super) json: bool,
    pub(super) buffer: bool,
    pub(super) stop: Stop,
    pub(super) classifier: Arc<Classifier>,
    pub(super) journal: Arc<ExecJournal>,
    pub(super) deadline_at: Option<Timestamp>,
    pub(super) passed: Arc<Passed>,
}

/// What the last attempt left to be passed on.
#[derive(Default)]
pub(super) struct Passed(Mutex<Last>);

#[derive(Default)]
struct Last {
    exit: Option<i32>,
    signal: Option<String>,
    left_behind: Vec<String>,
    /// Held-back output: what was written, and where it belongs.
    held: Vec<(File, File)>,
}

impl Passed {
    fn last(&self) -> MutexGuard<'_, Last> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn exit(&self) -> i32 {
        self.last().exit.unwrap_or(i32::from(super::NOT_STARTED))
    }

    pub(super) fn signal(&self) -> Option<String> {
        self.last().signal.clone()
    }

    pub(super) fn left_behind(&self) -> Vec<String> {
        self.last().left_behind.clone()
    }

    /// Shows the output that was held back.
    pub(super) fn release(&self, _failed: bool) {
        for (mut held, mut to) in std::mem::take(&mut self.last().held) {
            if held.seek(SeekFrom::Start(0)).is_ok() {
                let _ = std::io::copy(&mut held, &mut to);
            }
        }
    }
}

impl Operation for CommandOperation {
    type Output = ();

    async fn attempt(&mut self, attempt: Attempt) -> Result<(), Failed> {
        let mut spec = self.spec.clone();
        let run = self.journal.run();
        spec.env = told(run, attempt.number, self.deadline_at);
        spec.limits.wall = shorter(spec.limits.wall, attempt.left);
        let (streams, held) = match self.streams() {
            Ok(streams) => streams,
            Err(error) => {
                return Err(self.not_started(&StartError::System { program: self.command.clone(), error }));
            }
        };
        let (stop, journal, number) = (self.stop.clone(), Arc::clone(&self.journal), attempt.number);
        let supervised = tokio::task::spawn_blocking(move || {
            supervise(&spec, streams, &stop, |started| {
                journal.child_started(Child {
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
        self.passed.last().held = held;
        result
    }
}

impl CommandOperation {
    fn ended(&self, ended: &Ended) -> Result<(), Failed> {
        {
            let mut last = self.passed.last();
            last.exit = Some(ended.exit());
            last.signal = ended.signal_name();
            last.left_behind.clone_from(&ended.left_behind);
        }
        let Some(mut fault) = ended.fault(&self.classifier, &self.command, context::now()) else {
            return Ok(());
        };
        explain_timeout(&mut fault, ended, &self.spec);
        // What a command did before it failed nobody knows: where it must not be repeated, that counts as lost.
        let dispatch = if self.once { Dispatch::Lost } else { ended.dispatch() };
        let mut failed = Failed::classified(fault, dispatch);
        failed.exit = ended.status.code.map(i64::from);
        failed.signal = ended.signal_name();
        failed.output = excerpt(ended, &self.journal.redactor());
        failed.unrepeatable = self.input.unrepeatable();
        failed.retried_below = self.journal.retried_below();
        Err(failed)
    }

    /// A command that was never started: free to repeat, as far as harm goes.
    fn not_started(&self, error: &StartError) -> Failed {
        self.passed.last().exit = Some(error.exit());
        let signal = Signal {
            command: Some(self.command.clone()),
            exit: Some(i64::from(error.exit())),
            stderr: error.to_string().into_bytes(),
            ..Signal::default()
        };
        let mut fault = match error {
            StartError::NotFound { program } => {
                let mut fault = Fault::new(Reason::DependencyMissing);
                fault.facts.missing = Some(SafeText::new(program.clone()));
                fault.suggested_action = SafeText::new(format!(
                    "install `{program}`, or put it on the PATH; check how it is written"
                ));
                fault
            }
            StartError::NotExecutable { .. } => Fault::new(Reason::PermissionDenied),
            StartError::Folder { .. } => Fault::new(Reason::InvalidUsage),
            StartError::System { .. } => {
                self.classifier.classify(&signal).unwrap_or_else(|| Fault::new(Reason::ResourceExhausted))
            }
        };
        fault.cause = Some(SafeText::new(error.to_string()));
        let mut failed = Failed::classified(fault, Dispatch::NotDispatched);
        failed.exit = Some(i64::from(error.exit()));
        failed
    }

    /// Where its output goes: through, or held back. With `--json`, standard output is for the JSON.
    fn streams(&self) -> std::io::Result<(Streams, Vec<(File, File)>)> {
        let ours =
            |fd: std::os::fd::BorrowedFd<'_>| Ok::<_, std::io::Error>(File::from(fd.try_clone_to_owned()?));
        let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
        let to_stdout = ours(if self.json { stderr.as_fd() } else { stdout.as_fd() })?;
        let to_stderr = ours(stderr.as_fd())?;
        let input = self.input.clone();
        if !self.buffer {
            return Ok((
                Streams { stdout: Box::new(to_stdout), stderr: Box::new(to_stderr), input },
                Vec::new(),
            ));
        }
        let (out, err) = (hidden_file()?, hidden_file()?);
        let streams =
            Streams { stdout: Box::new(out.try_clone()?), stderr: Box::new(err.try_clone()?), input };
        Ok((streams, vec![(out, to_stdout), (err, to_stderr)]))
    }
}

/// A file that nobody else can open and that goes when it is closed.
fn hidden_file() -> std::io::Result<File> {
    let folder = std::env::temp_dir();
    for n in 0..100u32 {
        let path = folder.join(format!(".backstop-{}-{n}", std::process::id()));
        let opened = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        match opened {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other("no free name for a temporary file"))
}

/// Which limit it was.
fn explain_timeout(fault: &mut Fault, ended: &Ended, spec: &Spec) {
    if !ended.timed_out() {
        return;
    }
    let shown = backstop_core::duration::shown;
    let what = match ended.cause {
        backstop_exec::Cause::Silence => {
            format!("silent for {}, which is the limit", shown(spec.limits.idle.unwrap_or(ended.silent)))
        }
        _ => format!("ran for {}, which is the limit", shown(ended.duration)),
    };
    if fault.reason == Reason::Timeout {
        fault.cause = Some(SafeText::new(what));
    }
}

/// The end of what it wrote, with secrets masked: of its errors, or where there are none of its output.
fn excerpt(ended: &Ended, redactor: &Redactor) -> Option<SafeText> {
    let end = |kept: &Kept| -> Option<String> {
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

impl Drop for CommandOperation {
    fn drop(&mut self) {
        let _ = std::io::stdout().flush();
    }
}
