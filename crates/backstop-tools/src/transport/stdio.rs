//! A server that is a program: messages are lines on its standard streams.
//!
//! The program is supervised as every command is (`backstop-exec`): in a process group of its own,
//! and ended with all that it started. Its standard error is always read, so that it never blocks,
//! and the end of it is kept.

use super::{Exit, Inbox, Outgoing, TransportFailure, TransportFailureKind};
use crate::jsonrpc::{Line, Lines};
use backstop_core::Dispatch;
use backstop_exec::{Input, Limits, Spec, StartError, Started, Stop, Streams, supervise};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};

/// How much of standard error is kept, in bytes.
const STDERR_BYTES_MAX: usize = 8 << 10;
/// How many messages may wait to be written.
const QUEUE_MAX: usize = 64;
/// How long a program has to end once its input is closed.
const CLOSE_GRACE: Duration = Duration::from_millis(500);
/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// A program to start.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) argv: Vec<String>,
    pub(crate) folder: Option<PathBuf>,
    /// Its own variables, and the marks by which its processes are found.
    pub(crate) env: Vec<(String, String)>,
}

/// A program that runs.
#[derive(Debug)]
pub(crate) struct Stdio {
    queue: Mutex<Option<mpsc::Sender<Outgoing>>>,
    inbox: Arc<Inbox>,
    stop: Stop,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// The process, for whoever ends what a killed Backstop left.
    pub(crate) started: Started,
}

impl Stdio {
    /// Starts a program. What it writes goes to the inbox.
    pub(crate) async fn start(program: Program, inbox: &Arc<Inbox>) -> Result<Self, StartError> {
        let name = program.argv.first().cloned().unwrap_or_default();
        let system = |error| StartError::System { program: name.clone(), error };
        let (reader, writer) = std::io::pipe().map_err(system)?;
        let sender = pipe::Sender::from_owned_fd(OwnedFd::from(writer)).map_err(system)?;
        let stderr: Arc<Mutex<Vec<u8>>> = Arc::default();
        let stop = Stop::new();
        let spec = Spec {
            argv: program.argv.iter().map(Into::into).collect(),
            folder: program.folder,
            env: program.env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            limits: Limits { grace: GRACE, kept_bytes_max: STDERR_BYTES_MAX, ..Limits::default() },
            dies_with_us: true,
            ..Spec::default()
        };
        let streams = Streams {
            stdout: Box::new(ToInbox { lines: Lines::default(), inbox: Arc::clone(inbox) }),
            stderr: Box::new(Tail(Arc::clone(&stderr))),
            input: Input::Pipe(Arc::new(File::from(OwnedFd::from(reader)))),
        };
        let (tell, told) = oneshot::channel();
        let (stop_it, at_end, tail) = (stop.clone(), Arc::clone(inbox), Arc::clone(&stderr));
        let supervised = move || {
            let mut tell = Some(tell);
            let result = supervise(&spec, streams, &stop_it, |started| {
                let _ = tell.take().map(|tell| tell.send(Ok(started)));
            });
            match result {
                Ok(ended) => {
                    let (stderr, garbage) = (text_of(&tail), at_end.garbage());
                    at_end.ended(Exit { ended, stderr, garbage });
                }
                Err(error) => {
                    let _ = tell.take().map(|tell| tell.send(Err(error)));
                    at_end.close(TransportFailureKind::Closed);
                }
            }
        };
        std::thread::Builder::new().name(format!("mcp {name}")).spawn(supervised).map_err(system)?;
        let started =
            told.await.unwrap_or_else(|_| Err(system(std::io::Error::other("it was not started"))))?;
        let (queue, messages) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(write(messages, sender, Arc::clone(inbox)));
        Ok(Self { queue: Mutex::new(Some(queue)), inbox: Arc::clone(inbox), stop, stderr, started })
    }

    fn queue(&self) -> Option<mpsc::Sender<Outgoing>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) async fn send(&self, message: Outgoing) {
        let id = message.id;
        let queued = match self.queue() {
            // Nobody takes from the queue of a program that does not read its input and has ended.
            Some(queue) => tokio::select! {
                queued = queue.send(message) => queued.is_ok(),
                () = self.inbox.until_closed() => false,
            },
            None => false,
        };
        if let (false, Some(id)) = (queued, id) {
            let kind = self.inbox.closed().unwrap_or(TransportFailureKind::Closed);
            self.inbox.fail(id, TransportFailure::new(Dispatch::NotDispatched, kind));
        }
    }

    /// What it writes to standard error, readable after it has gone.
    pub(crate) fn tail(&self) -> StderrTail {
        StderrTail(Arc::clone(&self.stderr))
    }

    /// Closes its input, then asks it to end, then ends it.
    pub(super) async fn stop(&self) {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        if tokio::time::timeout(CLOSE_GRACE, self.inbox.until_closed()).await.is_ok() {
            return;
        }
        self.stop.request();
        self.inbox.until_closed().await;
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        // Nobody can talk to it any more.
        if self.inbox.closed().is_none() {
            self.stop.request();
        }
    }
}

/// The end of what a program writes to standard error.
pub(crate) struct StderrTail(Arc<Mutex<Vec<u8>>>);

impl StderrTail {
    pub(crate) fn text(&self) -> String {
        text_of(&self.0)
    }
}

/// Writes messages in order, each whole.
async fn write(mut messages: mpsc::Receiver<Outgoing>, mut to: pipe::Sender, inbox: Arc<Inbox>) {
    while let Some(Outgoing { mut bytes, id, .. }) = messages.recv().await {
        if id.is_some_and(|id| !inbox.begins_to_send(id)) {
            continue;
        }
        bytes.push(b'\n');
        let mut left = &bytes[..];
        let written = tokio::select! {
            written = to.write_all_buf(&mut left) => written,
            // What reads the other end is gone, even if the pipe is still open here.
            () = inbox.until_closed() => return,
        };
        if let (Err(error), Some(id)) = (written, id) {
            let nothing = left.len() == bytes.len();
            let dispatch = if nothing { Dispatch::NotDispatched } else { Dispatch::Lost };
            let kind = TransportFailureKind::Write(error.to_string());
            inbox.fail(id, TransportFailure::new(dispatch, kind));
        }
    }
}

fn text_of(tail: &Mutex<Vec<u8>>) -> String {
    let bytes = tail.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

/// What a program writes, cut into messages.
struct ToInbox {
    lines: Lines,
    inbox: Arc<Inbox>,
}

impl Write for ToInbox {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let inbox = &self.inbox;
        self.lines.push(bytes, |line| match line {
            Line::Whole(line) => inbox.receive_blocking(line),
            Line::TooLong => inbox.unreadable(b"(a line that is too long)"),
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The end of what a program writes.
struct Tail(Arc<Mutex<Vec<u8>>>);

impl Write for Tail {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        // Twice the limit before it is cut, so that not every write moves everything.
        if kept.len() > 2 * STDERR_BYTES_MAX {
            let from = kept.len() - STDERR_BYTES_MAX;
            kept.drain(..from);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
