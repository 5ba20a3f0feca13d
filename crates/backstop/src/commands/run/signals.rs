//! Signals that reach us while a plan is run.

use crate::error::CliError;
use backstop_runtime::host::StopRequest;
use std::sync::mpsc::{Receiver, channel};
use tokio::signal::unix::{SignalKind, signal};

/// Turns signals into requests to stop. Ctrl-C lets running phases end, a second one does not; TERM
/// ends them at once.
pub(in crate::commands) fn listen() -> Result<Receiver<StopRequest>, CliError> {
    let (sender, requests) = channel();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::signals)?;
    let (mut interrupt, mut terminate, mut hangup, mut quit) = {
        let _inside = runtime.enter();
        let listen = |kind| signal(kind).map_err(CliError::signals);
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
    std::thread::Builder::new().name("signals".to_owned()).spawn(run).map_err(CliError::signals)?;
    Ok(requests)
}
