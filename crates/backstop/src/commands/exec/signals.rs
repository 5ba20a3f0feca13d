//! Signals that reach us while a command runs.

use crate::error::CliError;
use backstop_engine::Cancel;
use backstop_exec::Stop;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

/// The first signal that asked us to end.
#[derive(Debug, Clone, Default)]
pub(super) struct Caught(Arc<AtomicI32>);

impl Caught {
    pub(super) fn first(&self) -> Option<i32> {
        Some(self.0.load(Ordering::SeqCst)).filter(|n| *n > 0)
    }

    fn note(&self, kind: SignalKind) {
        let _ = self.0.compare_exchange(0, kind.as_raw_value(), Ordering::SeqCst, Ordering::SeqCst);
    }
}

/// Passes signals on until it is aborted: the first that asks for the end is polite, the second is
/// not.
pub(super) fn watch(cancel: Cancel, stop: Stop, caught: Caught) -> Result<JoinHandle<()>, CliError> {
    let listen = |kind| signal(kind).map_err(CliError::signals);
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    let mut quit = listen(SignalKind::quit())?;
    let mut suspend = listen(SignalKind::from_raw(libc::SIGTSTP))?;
    let mut resized = listen(SignalKind::window_change())?;
    Ok(tokio::spawn(async move {
        loop {
            let kind = tokio::select! {
                () = next(&mut interrupt) => SignalKind::interrupt(),
                () = next(&mut terminate) => SignalKind::terminate(),
                () = next(&mut hangup) => SignalKind::hangup(),
                () = next(&mut quit) => SignalKind::quit(),
                () = next(&mut suspend) => {
                    if !stop.pause() {
                        // Nothing runs now: we wait, and stop alone.
                        backstop_exec::stop_here();
                    }
                    continue;
                }
                () = next(&mut resized) => {
                    stop.resized();
                    continue;
                }
            };
            caught.note(kind);
            cancel.cancel();
            stop.request();
        }
    }))
}

/// From now on signals do what they do to everybody: nobody listens any more.
pub(super) fn let_go() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP] {
        // SAFETY: the default action is set, no code of ours is called.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

async fn next(signal: &mut Signal) {
    if signal.recv().await.is_none() {
        std::future::pending::<()>().await;
    }
}
