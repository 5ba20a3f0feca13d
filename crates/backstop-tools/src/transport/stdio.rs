//! A server that is a program: messages are lines on its standard streams.
//!
//! The program is supervised as every command is (`backstop-exec`): in a process group of its own,
//! and ended with all that it started. Its standard error is always read, so that it never blocks,
//! and the end of it is kept. Its output is read by a task of this runtime, not by a thread of its
//! own: that saves every call a switch between threads.

use super::{Exit, Inbox, Outgoing, TransportFailure, TransportFailureKind};
use crate::jsonrpc::{Line, Lines};
use backstop_core::Dispatch;
use backstop_exec::{Ended, Input, Limits, Output, Spec, StartError, Started, Stop, Streams, supervise};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};

/// How much of standard error is kept, in bytes.
const STDERR_BYTES_MAX: usize = 8 << 10;
/// How many messages may wait to be written.
const QUEUE_MAX: usize = 64;
/// How many bytes are read at once.
const CHUNK_BYTES: usize = 64 << 10;
/// Messages that wait are written together up to this size, in bytes.
const WRITE_BYTES_MAX: usize = 64 << 10;
/// How long a program has to end once its input is closed.
const CLOSE_GRACE: Duration = Duration::from_millis(500);
/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long is waited in all for a program that was asked to end. Its supervisor goes on behind.
const END_MAX: Duration = Duration::from_secs(10);

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
            stdout: Output::Caller,
            dies_with_us: true,
            ..Spec::default()
        };
        let streams = Streams {
            stdout: Box::new(std::io::sink()),
            stderr: Box::new(Tail(Arc::clone(&stderr))),
            input: Input::Pipe(Arc::new(File::from(OwnedFd::from(reader)))),
        };
        let (tell, told) = oneshot::channel();
        let (tell_end, ended) = oneshot::channel();
        let stop_it = stop.clone();
        let supervised = move || {
            let mut tell = Some(tell);
            let result = supervise(&spec, streams, &stop_it, |started| {
                let _ = tell.take().map(|tell| tell.send(Ok(started)));
            });
            let _ = match result {
                Ok(ended) => tell_end.send(Some(ended)).map_err(|_| ()),
                Err(error) => {
                    let _ = tell_end.send(None);
                    tell.take().map_or(Ok(()), |tell| tell.send(Err(error)).map_err(|_| ()))
                }
            };
        };
        std::thread::Builder::new().name(format!("mcp {name}")).spawn(supervised).map_err(system)?;
        let not_started = || std::io::Error::other("it was not started");
        let mut started = told.await.unwrap_or_else(|_| Err(system(not_started())))?;
        let output = started.stdout.take().ok_or_else(|| system(not_started()))?;
        let output = pipe::Receiver::from_owned_fd(output).map_err(system)?;
        let reading = Reading { inbox: Arc::clone(inbox), stderr: Arc::clone(&stderr), stop: stop.clone() };
        tokio::spawn(reading.read(output, ended));
        let (queue, messages) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(write(messages, sender, Arc::clone(inbox)));
        Ok(Self { queue: Mutex::new(Some(queue)), inbox: Arc::clone(inbox), stop, stderr, started })
    }

    fn queue(&self) -> Option<mpsc::Sender<Outgoing>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) async fn send(&self, message: Outgoing) {
        let id = message.id;
        let queued = match self.queue().map(|queue| (queue.try_send(message), queue)) {
            Some((Ok(()), _)) => true,
            // Nobody takes from the queue of a program that does not read its input and has ended.
            Some((Err(mpsc::error::TrySendError::Full(message)), queue)) => {
                Box::pin(async {
                    tokio::select! {
                        queued = queue.send(message) => queued.is_ok(),
                        () = self.inbox.until_closed() => false,
                    }
                })
                .await
            }
            Some((Err(mpsc::error::TrySendError::Closed(_)), _)) | None => false,
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
        self.inbox.give_up();
        let _ = tokio::time::timeout(END_MAX, self.inbox.until_closed()).await;
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

/// Writes messages in order, each whole, and those that wait in one go.
async fn write(mut messages: mpsc::Receiver<Outgoing>, mut to: pipe::Sender, inbox: Arc<Inbox>) {
    let closed = inbox.until_closed();
    let mut closed = std::pin::pin!(closed);
    let (mut bytes, mut starts) = (Vec::new(), Vec::new());
    while let Some(first) = messages.recv().await {
        bytes.clear();
        starts.clear();
        let mut next = Some(first);
        while let Some(message) = next {
            if message.id.is_none_or(|id| inbox.begins_to_send(id)) {
                starts.extend(message.id.map(|id| (bytes.len(), id)));
                bytes.extend_from_slice(&message.bytes);
                bytes.push(b'\n');
            }
            next = if bytes.len() < WRITE_BYTES_MAX { messages.try_recv().ok() } else { None };
        }
        let mut left = &bytes[..];
        let written = tokio::select! {
            written = to.write_all_buf(&mut left) => written,
            // What reads the other end is gone, even if the pipe is still open here.
            () = &mut closed => return,
        };
        if let Err(error) = written {
            let reached = bytes.len() - left.len();
            for (start, id) in &starts {
                let dispatch = if *start >= reached { Dispatch::NotDispatched } else { Dispatch::Lost };
                let kind = TransportFailureKind::Write(error.to_string());
                inbox.fail(*id, TransportFailure::new(dispatch, kind));
            }
        }
        // One long message must not hold its memory for ever.
        bytes.shrink_to(WRITE_BYTES_MAX);
    }
}

/// What reads a program's output.
struct Reading {
    inbox: Arc<Inbox>,
    stderr: Arc<Mutex<Vec<u8>>>,
    stop: Stop,
}

impl Reading {
    /// Passes messages on until the program has ended, then says how it did. `ended` gives nothing
    /// where it could not be supervised.
    async fn read(self, mut output: pipe::Receiver, mut ended: oneshot::Receiver<Option<Ended>>) {
        let (mut lines, mut chunk) = (Lines::default(), vec![0; CHUNK_BYTES]);
        let ended = loop {
            let count = tokio::select! {
                biased;
                count = output.read(&mut chunk) => count.unwrap_or(0),
                ended = &mut ended => break ended,
            };
            if count == 0 {
                break self.without_output(ended).await;
            }
            self.pass_on(&mut lines, &chunk[..count]).await;
        };
        // All of its processes are gone: what they wrote is in the pipe already.
        while let Ok(count @ 1..) = output.try_read(&mut chunk) {
            self.pass_on(&mut lines, &chunk[..count]).await;
        }
        match ended {
            Ok(Some(ended)) => {
                let (stderr, garbage) = (text_of(&self.stderr), self.inbox.garbage());
                self.inbox.ended(Exit { ended, stderr, garbage });
            }
            _ => self.inbox.close(TransportFailureKind::Closed),
        }
    }

    /// The program has closed its output: it can answer nothing any more, and is ended.
    async fn without_output(
        &self,
        mut ended: oneshot::Receiver<Option<Ended>>,
    ) -> Result<Option<Ended>, oneshot::error::RecvError> {
        if let Ok(ended) = tokio::time::timeout(CLOSE_GRACE, &mut ended).await {
            return ended;
        }
        self.stop.request();
        ended.await
    }

    /// Passes on what is complete now. Whoever does not take what is theirs is waited for.
    async fn pass_on(&self, lines: &mut Lines, bytes: &[u8]) {
        let mut waiting = Vec::new();
        lines.push(bytes, |line| match line {
            Line::Whole(line) => match self.inbox.sort(line) {
                delivery if waiting.is_empty() => waiting.extend(self.inbox.deliver_now(delivery)),
                delivery => waiting.push(delivery),
            },
            Line::TooLong(head) => self.inbox.too_large(head),
        });
        for delivery in waiting {
            self.inbox.deliver(delivery).await;
        }
        // A server that floods leaves time to the others.
        if bytes.len() == CHUNK_BYTES {
            tokio::task::yield_now().await;
        }
    }
}

fn text_of(tail: &Mutex<Vec<u8>>) -> String {
    let bytes = tail.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&bytes).trim().to_owned()
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
