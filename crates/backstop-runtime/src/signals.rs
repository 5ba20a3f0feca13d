//! Signals that reach this process while something runs: passed on to a command ([`watch`]), or
//! turned into requests to stop a plan ([`stop_requests`]). It must not end the process unless it
//! is asked to ([`end_by`]).
//!
//! A key of the terminal (Ctrl-C, Ctrl-\, Ctrl-Z) sends its signal to our whole process group.
//! Where the command is in it, the command has it already, and does with it what it does without
//! us: a REPL prints a new prompt. Every other signal is passed on.

use crate::host::StopRequest;
use backstop_engine::Cancel;
use backstop_exec::Stop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

/// Whether this process ignores a signal now.
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: the action is only read, into a struct of numbers that is initialised.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// The signals that a key sends.
const KEYS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP];

/// The signals that mean something to one program and nothing to us. The command gets them.
const FORWARDED: [libc::c_int; 5] =
    [libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM, libc::SIGVTALRM, libc::SIGPROF];

/// Which of [`KEYS`] came from a key when they came last.
static BY_KEY: [AtomicBool; KEYS.len()] = [const { AtomicBool::new(false) }; KEYS.len()];

/// The first signal that asked us to end.
#[derive(Debug, Clone, Default)]
pub struct Caught(Arc<AtomicI32>);

impl Caught {
    /// The signal, if one came.
    pub fn first(&self) -> Option<i32> {
        Some(self.0.load(Ordering::SeqCst)).filter(|n| *n > 0)
    }

    fn note(&self, kind: SignalKind) {
        let _ = self.0.compare_exchange(0, kind.as_raw_value(), Ordering::SeqCst, Ordering::SeqCst);
    }
}

/// Passes signals on until it is aborted: the first that asks for the end is polite, the second is
/// not. `shares_group` says that the command gets what keys send without us.
pub fn watch(
    cancel: Cancel,
    stop: Stop,
    caught: Caught,
    shares_group: bool,
) -> std::io::Result<JoinHandle<()>> {
    if shares_group {
        notice_keys()?;
    }
    // What we were started to ignore (`nohup`) is ignored by the command as well.
    let listen = |kind: SignalKind| {
        if is_ignored(kind.as_raw_value()) {
            return Ok(None);
        }
        signal(kind).map(Some)
    };
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    let mut quit = listen(SignalKind::quit())?;
    let mut suspend = listen(SignalKind::from_raw(libc::SIGTSTP))?;
    let mut resized = listen(SignalKind::window_change())?;
    let mut others = Vec::new();
    for kind in FORWARDED.map(SignalKind::from_raw) {
        others.extend(listen(kind)?.map(|signal| (kind, signal)));
    }
    Ok(tokio::spawn(async move {
        loop {
            let kind = tokio::select! {
                () = next(&mut interrupt) => SignalKind::interrupt(),
                () = next(&mut terminate) => SignalKind::terminate(),
                () = next(&mut hangup) => SignalKind::hangup(),
                () = next(&mut quit) => SignalKind::quit(),
                () = next(&mut suspend) => {
                    let key = shares_group && came_from_key(libc::SIGTSTP);
                    if !key && backstop_exec::is_group_orphaned() {
                        // Without us it would be ignored: nobody is there who continues what is
                        // stopped.
                        continue;
                    }
                    let waits = if key { stop.paused_by_key() } else { stop.pause() };
                    if !waits {
                        // Nothing runs now: we wait, and stop alone.
                        backstop_exec::stop_here();
                    }
                    continue;
                }
                () = next(&mut resized) => {
                    stop.resized();
                    continue;
                }
                kind = any(&mut others) => {
                    if stop.forward(kind.as_raw_value()) {
                        continue;
                    }
                    // Nothing runs now: it ends us, as it ends whoever does not expect it.
                    kind
                }
            };
            if shares_group && came_from_key(kind.as_raw_value()) && stop.interrupted_by_key() {
                continue;
            }
            caught.note(kind);
            cancel.cancel();
            stop.pass_on(kind.as_raw_value());
        }
    }))
}

/// Notes for each signal of [`KEYS`] whether the kernel sent it. Registered before anybody else
/// listens, so that it is noted when they hear of it.
fn notice_keys() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    for (signal, by_key) in KEYS.into_iter().zip(&BY_KEY) {
        if is_ignored(signal) {
            continue;
        }
        // SAFETY: storing to an atomic is allowed in a signal handler.
        unsafe {
            signal_hook_registry::register_sigaction(signal, move |info| {
                by_key.store(info.si_code == libc::SI_KERNEL, Ordering::SeqCst);
            })?;
        }
    }
    Ok(())
}

fn came_from_key(signal: libc::c_int) -> bool {
    KEYS.iter().position(|key| *key == signal).is_some_and(|at| BY_KEY[at].load(Ordering::SeqCst))
}

/// From now on signals do what they do to everybody: nobody listens any more.
pub fn let_go() {
    let listened = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP];
    for signal in listened.into_iter().chain(FORWARDED) {
        if is_ignored(signal) {
            continue;
        }
        // SAFETY: the default action is set, no code of ours is called.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// Ends this process by the signal that ended the command. A shell that runs a script or a loop
/// stops only then where a key sent it, and puts the terminal's modes right only then.
pub fn end_by(signal: i32) {
    // SAFETY: no core is wanted of us, the default action is set, and the signal is raised.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// The next of these signals.
async fn any(signals: &mut [(SignalKind, Signal)]) -> SignalKind {
    std::future::poll_fn(|context| {
        for (kind, signal) in &mut *signals {
            if signal.poll_recv(context).is_ready() {
                return std::task::Poll::Ready(*kind);
            }
        }
        std::task::Poll::Pending
    })
    .await
}

async fn next(signal: &mut Option<Signal>) {
    if let Some(signal) = signal
        && signal.recv().await.is_some()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// Turns signals into requests to stop. Ctrl-C lets running phases end, a second one does not; TERM
/// ends them at once.
pub fn stop_requests() -> std::io::Result<Receiver<StopRequest>> {
    let (sender, requests) = channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut interrupt, mut terminate, mut hangup, mut quit) = {
        let _inside = runtime.enter();
        (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
            signal(SignalKind::quit())?,
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
    std::thread::Builder::new().name("signals".to_owned()).spawn(run)?;
    Ok(requests)
}
