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
use std::io::{PipeWriter, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use tokio::signal::unix::{SignalKind, signal};

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

    fn note(&self, signal: i32) {
        let _ = self.0.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
    }
}

/// The signals that are listened to besides [`FORWARDED`].
const LISTENED: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP, libc::SIGWINCH];

/// What is written into a pipe when a signal comes.
const WAKES: &[u8] = &[0];

/// A signal that is listened to, and whether it has come and was not dealt with yet.
struct Received {
    signal: libc::c_int,
    came: AtomicBool,
}

/// Passes signals on until [`Watch::end`].
#[derive(Debug)]
pub struct Watch(Arc<AtomicBool>);

impl Watch {
    /// From now on nothing is done about a signal. The thread that waits for them ends with the
    /// process.
    pub fn end(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Passes signals on, from a thread of its own: the first that asks for the end is polite, the
/// second is not. `shares_group` says that the command gets what keys send without us.
pub fn watch(cancel: Cancel, stop: Stop, caught: Caught, shares_group: bool) -> std::io::Result<Watch> {
    let (mut reader, writer) = std::io::pipe()?;
    let writer = Arc::new(writer);
    let mut all = Vec::new();
    // What we were started to ignore (`nohup`) is ignored by the command as well.
    for signal in LISTENED.into_iter().chain(FORWARDED).filter(|signal| !is_ignored(*signal)) {
        let received = Arc::new(Received { signal, came: AtomicBool::new(false) });
        listen(&received, &writer)?;
        all.push(received);
    }
    let watch = Watch(Arc::default());
    let over = Arc::clone(&watch.0);
    let run = move || {
        let mut woken = [0; LISTENED.len() + FORWARDED.len()];
        loop {
            match reader.read(&mut woken) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Ok(1..) => {}
                _ => return,
            }
            for received in all.iter().filter(|received| received.came.swap(false, Ordering::SeqCst)) {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                act(received.signal, &cancel, &stop, &caught, shares_group);
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).stack_size(128 << 10).spawn(run)?;
    Ok(watch)
}

/// Notes when a signal comes, and for each of [`KEYS`] whether the kernel sent it.
fn listen(received: &Arc<Received>, wake: &Arc<PipeWriter>) -> std::io::Result<()> {
    let (received, wake) = (Arc::clone(received), Arc::clone(wake));
    let by_key = KEYS.iter().position(|key| *key == received.signal).map(|at| &BY_KEY[at]);
    // SAFETY: a signal handler may store to an atomic and write to a pipe. It is not full: it holds
    // one byte of each signal at most.
    unsafe {
        signal_hook_registry::register_sigaction(received.signal, move |info| {
            #[cfg(target_os = "linux")]
            if let Some(by_key) = by_key {
                by_key.store(info.si_code == libc::SI_KERNEL, Ordering::SeqCst);
            }
            #[cfg(not(target_os = "linux"))]
            let _ = (info, by_key);
            if !received.came.swap(true, Ordering::SeqCst) {
                let _ = rustix::io::write(&*wake, WAKES);
            }
        })?;
    }
    Ok(())
}

/// Does what a signal asks for.
fn act(signal: libc::c_int, cancel: &Cancel, stop: &Stop, caught: &Caught, shares_group: bool) {
    match signal {
        libc::SIGTSTP => {
            let key = shares_group && came_from_key(signal);
            if !key && backstop_exec::is_group_orphaned() {
                // Without us it would be ignored: nobody is there who continues what is stopped.
                return;
            }
            let waits = if key { stop.paused_by_key() } else { stop.pause() };
            if !waits {
                // Nothing runs now: we wait, and stop alone.
                backstop_exec::stop_here();
            }
            return;
        }
        libc::SIGWINCH => {
            stop.resized();
            return;
        }
        // Where nothing runs, it ends us, as it ends whoever does not expect it.
        signal if FORWARDED.contains(&signal) && stop.forward(signal) => return,
        _ => {}
    }
    if shares_group && came_from_key(signal) && stop.interrupted_by_key(signal) {
        return;
    }
    caught.note(signal);
    cancel.cancel();
    stop.pass_on(signal);
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
