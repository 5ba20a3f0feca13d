//! A command as an operation of the engine.

use super::gate::{Gate, signature_of};
use super::journal::ExecJournal;
use super::{shorter, told};
use crate::context::{self, Context};
use backstop_classify::Classifier;
use backstop_core::{Dispatch, Experience, Fault, Reason, Redactor, SafeText, Signal, Timestamp};
use backstop_engine::{Attempt, Failed, Operation};
use backstop_exec::{Ended, Input, Kept, Spec, StartError, Stop, Streams, supervise};
use backstop_store::Child;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
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
    pub(super) gate: Arc<Gate>,
    pub(super) context: Arc<Context>,
    pub(super) learns: bool,
    /// Whether the whole output of a success is wanted.
    pub(super) keeps: bool,
}

/// What the last attempt left to be passed on.
#[derive(Default)]
pub(super) struct Passed(Mutex<Last>);

#[derive(Default)]
struct Last {
    exit: Option<i32>,
    signal: Option<String>,
    left_behind: Vec<String>,
    unended: Vec<String>,
    /// The whole output of a success, where it is wanted and was kept.
    output: Option<(Vec<u8>, Vec<u8>)>,
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

    pub(super) fn output(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.last().output.take()
    }

    pub(super) fn unended(&self) -> Vec<String> {
        self.last().unended.clone()
    }

    pub(super) fn left_behind(&self) -> Vec<String> {
        self.last().left_behind.clone()
    }

    /// Shows the output that was held back.
    pub(super) fn release(&self) {
        for (mut held, mut to) in std::mem::take(&mut self.last().held) {
            if held.seek(SeekFrom::Start(0)).is_ok() {
                let mut buffer = vec![0; 64 << 10];
                while let Ok(read @ 1..) = held.read(&mut buffer) {
                    if backstop_exec::write_patiently(&mut to, &buffer[..read]).is_err() {
                        break;
                    }
                }
            }
        }
    }
}

impl Operation for CommandOperation {
    type Output = ();

    /// The supervisor ends it, with all that it started; it must not be dropped.
    fn ends_itself(&self) -> bool {
        true
    }

    async fn attempt(&mut self, attempt: Attempt) -> Result<(), Failed> {
        if let Err(refused) = self.gate.before(attempt.left, &attempt.cancel, &self.journal).await {
            self.passed.last().exit = Some(i32::from(super::NOT_STARTED));
            return Err(refused);
        }
        if attempt.left.is_some_and(|left| left.is_zero()) {
            self.passed.last().exit = Some(124);
            let mut fault = Fault::new(Reason::Timeout);
            fault.cause = Some("the deadline had passed before it was started".into());
            return Err(Failed::classified(fault, Dispatch::NotDispatched));
        }
        self.journal.attempt_begins();
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
            last.unended.clone_from(&ended.unended);
        }
        let Some(fault) = ended.fault(&self.classifier, &self.command, context::now()) else {
            self.gate.succeeded();
            if self.keeps {
                self.passed.last().output = whole(&ended.stdout).zip(whole(&ended.stderr));
            }
            return Ok(());
        };
        self.gate.failed(&fault, &self.context, &self.journal);
        let experience = self.learns.then(|| self.experience(&fault)).flatten();
        // What a command did before it failed nobody knows: where it must not be repeated, that counts as lost.
        let dispatch = if self.once { Dispatch::Lost } else { ended.dispatch() };
        let mut failed = Failed::classified(fault, dispatch);
        failed.exit = ended.status.code.map(i64::from);
        failed.signal = ended.signal_name();
        failed.output = excerpt(ended, &self.journal.redactor());
        let typed = "it read from the terminal: what was typed cannot be given to another attempt";
        failed.unrepeatable = self
            .input
            .unrepeatable()
            .or_else(|| ended.read_terminal.then(|| typed.to_owned()))
            .map(String::into_boxed_str);
        failed.retried_below = self.journal.retried_below();
        failed.experience = experience;
        Err(failed)
    }

    fn experience(&self, fault: &Fault) -> Option<Experience> {
        let known = match self.gate.store() {
            Some(store) => store.experience(&signature_of(fault)).ok()??,
            None => crate::limits::open(&self.context).ok()?.experience(&signature_of(fault)).ok()??,
        };
        let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        Some(Experience { retried: count(known.retried), cured: count(known.cured) })
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
        let redactor = self.journal.redactor();
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

/// All of a stream, where all of it was kept.
fn whole(kept: &Kept) -> Option<Vec<u8>> {
    let (before, after) = kept.tail();
    (kept.left_out_bytes() == 0).then(|| [kept.head(), before, after].concat())
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
