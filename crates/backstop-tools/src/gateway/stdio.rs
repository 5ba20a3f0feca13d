//! The gateway on standard streams: one client, a message a line.
//!
//! Pipes and sockets, which are what clients give, are read and written by the runtime itself: a
//! thread for each would cost every call two wake-ups. Anything else has a thread.

use super::awake::Awake;
use super::session::OUT_MAX;
use super::workers::Workers;
use super::{Gateway, Session};
use crate::jsonrpc::{BadMessage, Line, Lines, Message};
use backstop_core::SafeText;
use backstop_engine::Cancel;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

/// How many bytes are read at once.
const CHUNK_BYTES: usize = 64 << 10;
/// Messages that wait are written together up to this size, in bytes.
const WRITE_BYTES_MAX: usize = 64 << 10;
/// How many pieces of input may wait.
const IN_MAX: usize = 16;

impl Gateway {
    /// Serves one client until its input ends or `cancel` fires, then ends all servers.
    pub async fn serve_stdio(
        self: &Arc<Self>,
        input: File,
        output: File,
        cancel: &Cancel,
    ) -> std::io::Result<()> {
        let mut input = Input::open(input)?;
        let (out, to_write) = mpsc::channel(OUT_MAX);
        let awake = Arc::new(Awake::new());
        Output::open(output)?.begin(to_write, &awake)?;
        let id = SafeText::new(format!("mcp-{:x}", (self.toolbox().project.process.random)() >> 32));
        let session = Arc::new(Session::new(out, id));
        self.add_session(&session);
        let workers = Workers::new(self, &session);
        let looking = tokio::spawn(Arc::clone(self).look_after(cancel.clone()));
        let staying = {
            let (awake, session) = (Arc::clone(&awake), Arc::clone(&session));
            tokio::spawn(async move { awake.stay(&session).await })
        };
        let (mut lines, mut chunk) = (Lines::default(), vec![0; CHUNK_BYTES]);
        loop {
            let count = tokio::select! {
                count = input.read(&mut chunk) => count,
                () = cancel.cancelled() => 0,
            };
            if count == 0 {
                break;
            }
            awake.message();
            let mut answers = Vec::new();
            lines.push(&chunk[..count], |line| match line {
                Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => {}
                Line::Whole(line) => answers.extend(workers.take(Message::parse(line))),
                Line::TooLong(_) => answers.extend(workers.take(Err(BadMessage::TooLong))),
            });
            for answer in answers {
                // A client that does not read must not hold up the end.
                tokio::select! {
                    () = session.send(answer) => {}
                    () = cancel.cancelled() => {}
                }
            }
        }
        input.close();
        looking.abort();
        staying.abort();
        session.cancel_all();
        self.toolbox().close().await;
        Ok(())
    }
}

/// Where messages come from.
enum Input {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
    Thread(mpsc::Receiver<Vec<u8>>),
}

impl Input {
    fn open(mut file: File) -> std::io::Result<Self> {
        let kind = file.metadata()?.file_type();
        if kind.is_fifo() {
            return pipe::Receiver::from_owned_fd(OwnedFd::from(file)).map(Self::Pipe);
        }
        if kind.is_socket() {
            return socket(file).map(Self::Socket);
        }
        let (send, pieces) = mpsc::channel(IN_MAX);
        std::thread::Builder::new().name("mcp input".to_owned()).spawn(move || {
            let mut chunk = vec![0; CHUNK_BYTES];
            while let Ok(count @ 1..) = file.read(&mut chunk) {
                if send.blocking_send(chunk[..count].to_vec()).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self::Thread(pieces))
    }

    /// Reads a piece. None means that the input has ended.
    async fn read(&mut self, chunk: &mut [u8]) -> usize {
        match self {
            Self::Pipe(pipe) => pipe.read(chunk).await.unwrap_or(0),
            Self::Socket(socket) => socket.read(chunk).await.unwrap_or(0),
            Self::Thread(pieces) => match pieces.recv().await {
                Some(piece) => {
                    chunk[..piece.len()].copy_from_slice(&piece);
                    piece.len()
                }
                None => 0,
            },
        }
    }

    /// Leaves a pipe as it was: others may read from it after us.
    fn close(self) {
        if let Self::Pipe(pipe) = self {
            let _ = pipe.into_blocking_fd();
        }
    }
}

/// Where messages go.
enum Output {
    Pipe(pipe::Sender),
    Socket(UnixStream),
    Other(File),
}

fn socket(file: File) -> std::io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(OwnedFd::from(file));
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

impl Output {
    fn open(file: File) -> std::io::Result<Self> {
        let kind = file.metadata()?.file_type();
        if kind.is_fifo() {
            return pipe::Sender::from_owned_fd(OwnedFd::from(file)).map(Self::Pipe);
        }
        if kind.is_socket() {
            return socket(file).map(Self::Socket);
        }
        Ok(Self::Other(file))
    }

    /// Writes messages until nobody has any more, or nobody reads them.
    fn begin(self, mut messages: mpsc::Receiver<Vec<u8>>, awake: &Arc<Awake>) -> std::io::Result<()> {
        let awake = Arc::clone(awake);
        match self {
            Self::Pipe(mut pipe) => {
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    while next(&mut messages, &mut bytes).await {
                        if pipe.write_all(&bytes).await.is_err() {
                            return;
                        }
                        awake.message();
                    }
                    let _ = pipe.into_blocking_fd();
                });
            }
            Self::Socket(mut socket) => {
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    while next(&mut messages, &mut bytes).await {
                        if socket.write_all(&bytes).await.is_err() {
                            return;
                        }
                        awake.message();
                    }
                });
            }
            Self::Other(mut file) => {
                std::thread::Builder::new().name("mcp output".to_owned()).spawn(move || {
                    while let Some(mut bytes) = messages.blocking_recv() {
                        bytes.push(b'\n');
                        if file.write_all(&bytes).is_err() {
                            return;
                        }
                    }
                })?;
            }
        }
        Ok(())
    }
}

/// Puts the next message as a line into `bytes`, with those that wait already. False, once there
/// are none any more.
async fn next(messages: &mut mpsc::Receiver<Vec<u8>>, bytes: &mut Vec<u8>) -> bool {
    bytes.clear();
    // One long message must not hold its memory for ever.
    bytes.shrink_to(WRITE_BYTES_MAX);
    let mut next = messages.recv().await;
    if next.is_none() {
        return false;
    }
    while let Some(message) = next {
        if bytes.is_empty() && message.len() > bytes.capacity() {
            *bytes = message;
        } else {
            bytes.extend_from_slice(&message);
        }
        bytes.push(b'\n');
        next = if bytes.len() < WRITE_BYTES_MAX { messages.try_recv().ok() } else { None };
    }
    true
}
