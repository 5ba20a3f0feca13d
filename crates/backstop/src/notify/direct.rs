//! One message that could not be queued, delivered by a process of its own: on a full disk there is no room for an outbox.

use super::send::{detached, runtime, with_secret};
use crate::context::{self, Context};
use crate::error::{CliError, DONE};
use backstop_engine::Engine;
use backstop_notify::{Kind, Message, Resolved, Times, deliver};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Stdio;

/// The longest message.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;

/// What is handed over.
#[derive(Debug, Serialize, Deserialize)]
struct Handed {
    /// The folder whose configuration has the sinks.
    folder: PathBuf,
    message: Message,
}

/// Hands a message to a process of its own. It is not waited for, unless a pipe has no room for it.
pub(super) fn hand_over(message: &Message) {
    let Ok(folder) = std::env::current_dir() else { return };
    let handed = Handed { folder, message: message.clone() };
    let (Ok(text), Some(mut command)) =
        (serde_json::to_vec(&handed), detached(&["notify", "send", "--direct"]))
    else {
        return;
    };
    if let Ok(mut child) = command.stdin(Stdio::piped()).spawn()
        && let Some(mut input) = child.stdin.take()
    {
        let _ = input.write_all(&text);
    }
}

/// Delivers the message on standard input to every sink that takes it.
pub(super) fn run() -> Result<u8, CliError> {
    let _ = rustix::process::setsid();
    let mut text = Vec::new();
    let read = std::io::stdin().take(MESSAGE_BYTES_MAX).read_to_end(&mut text);
    read.map_err(|error| CliError::Read { file: "standard input".into(), error })?;
    let Ok(Handed { folder, message }) = serde_json::from_slice(&text) else { return Ok(DONE) };
    let context = Context::at(&folder)?;
    let engine = Engine::new(context.config.policy("request")?);
    let now = context::now();
    let times = Times { count: 1, first: now, last: now, mixed: false, names: Vec::new() };
    let sinks = backstop_notify::sinks(&context.config).into_iter().filter_map(|(_, sink)| sink.ok());
    let taking = sinks.filter(|sink| sink.kind != Kind::Terminal && sink.route.takes(&message.about));
    let runtime = runtime()?;
    for sink in taking {
        if let Resolved::Sink(sink, credential) = with_secret(sink) {
            runtime.block_on(deliver(&engine, &sink, credential.as_ref(), &message, &times));
        }
    }
    Ok(DONE)
}
