//! What a person asks of a run that goes on, and what a run asks of a person.

use crate::error::CliError;
use crate::terminal;
use backstop_runtime::host::StopRequest;
use std::io::{BufRead, IsTerminal, Write};
use std::sync::mpsc::{Receiver, channel};
use tokio::signal::unix::{SignalKind, signal};

/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 200;

/// Turns signals into requests to stop. Ctrl-C lets running phases end, a second one does not; TERM ends them at once.
pub(super) fn listen() -> Result<Receiver<StopRequest>, CliError> {
    let (sender, requests) = channel();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Signals)?;
    let (mut interrupt, mut terminate, mut hangup, mut quit) = {
        let _inside = runtime.enter();
        let listen = |kind| signal(kind).map_err(CliError::Signals);
        (
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
            listen(SignalKind::hangup())?,
            listen(SignalKind::quit())?,
        )
    };
    let run = move || {
        runtime.block_on(async {
            let mut before = 0;
            loop {
                let polite = tokio::select! {
                    _ = interrupt.recv() => true,
                    _ = terminate.recv() => false,
                    _ = hangup.recv() => false,
                    _ = quit.recv() => false,
                };
                let request = match (before, polite) {
                    (0, true) => StopRequest::Finish,
                    (0, false) => StopRequest::End,
                    _ => StopRequest::Kill,
                };
                before += 1;
                if sender.send(request).is_err() {
                    break;
                }
            }
        });
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(run).map_err(CliError::Signals)?;
    Ok(requests)
}

/// Whether somebody can be asked.
pub(super) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks, and gives the answer.
pub(super) fn ask(question: &str) -> Option<String> {
    terminal::say(question);
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    let stdin = std::io::stdin().lock();
    std::io::Read::take(stdin, ANSWER_BYTES_MAX).read_line(&mut line).ok()?;
    Some(line.trim().to_owned())
}

/// Whether the answer is yes.
pub(super) fn confirm(question: &str) -> bool {
    ask(question).is_some_and(|answer| matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes"))
}
