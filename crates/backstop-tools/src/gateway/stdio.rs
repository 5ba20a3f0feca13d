//! The gateway on standard streams: one client, a message a line.

use super::session::OUT_MAX;
use super::{Gateway, Session};
use crate::jsonrpc::{self, BadMessage, INVALID_REQUEST, Line, Lines, Message, PARSE_ERROR, RpcError, raw};
use backstop_core::SafeText;
use backstop_engine::Cancel;
use serde_json::Value;
use std::io::{Read, Write};
use std::sync::Arc;
use tokio::sync::mpsc;

/// How many bytes are read at once.
const CHUNK_BYTES: usize = 64 << 10;
/// How many messages may wait to be worked on.
const IN_MAX: usize = 64;

type Incoming = Result<Message, BadMessage>;

impl Gateway {
    /// Serves one client until its input ends or `cancel` fires, then ends all servers.
    pub async fn serve_stdio(
        self: &Arc<Self>,
        input: Box<dyn Read + Send>,
        output: Box<dyn Write + Send>,
        cancel: &Cancel,
    ) -> std::io::Result<()> {
        let (to_us, mut messages) = mpsc::channel::<Incoming>(IN_MAX);
        let (out, to_write) = mpsc::channel(OUT_MAX);
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        thread("mcp input").spawn(move || read(input, &to_us))?;
        let writer = thread("mcp output").spawn(move || write(output, to_write))?;
        let id = SafeText::new(format!("mcp-{:x}", (self.toolbox.project.process.random)() >> 32));
        let session = Arc::new(Session::new(out, id));
        self.add_session(&session);
        let looking = tokio::spawn(Arc::clone(self).look_after(cancel.clone()));
        loop {
            let message = tokio::select! {
                message = messages.recv() => message,
                () = cancel.cancelled() => None,
            };
            match message {
                Some(Ok(message)) => self.receive(&session, message).await,
                Some(Err(bad)) => {
                    let code = if bad == BadMessage::NotRpc { INVALID_REQUEST } else { PARSE_ERROR };
                    let error = Err(RpcError::new(code, bad.to_string()));
                    session.send(jsonrpc::response(&raw(&Value::Null), &error)).await;
                }
                None => break,
            }
        }
        looking.abort();
        session.cancel_all();
        self.toolbox.close().await;
        drop(session);
        let _ = writer;
        Ok(())
    }
}

/// Reads messages until the input ends.
fn read(mut input: Box<dyn Read + Send>, to: &mpsc::Sender<Incoming>) {
    let mut lines = Lines::default();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = match input.read(&mut chunk) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let mut open = true;
        lines.push(&chunk[..count], |line| {
            let message = match line {
                Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => return,
                Line::Whole(line) => Message::parse(line),
                Line::TooLong => Err(BadMessage::TooLong),
            };
            open &= to.blocking_send(message).is_ok();
        });
        if !open {
            return;
        }
    }
}

/// Writes messages until nobody has any more, or nobody reads them.
fn write(mut output: Box<dyn Write + Send>, mut messages: mpsc::Receiver<Vec<u8>>) {
    while let Some(mut message) = messages.blocking_recv() {
        message.push(b'\n');
        // What waits already goes with it in one write.
        while let Ok(mut next) = messages.try_recv() {
            message.append(&mut next);
            message.push(b'\n');
        }
        if output.write_all(&message).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}
