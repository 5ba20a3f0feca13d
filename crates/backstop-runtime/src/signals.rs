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
use std::io::{PipeReader, PipeWriter, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};

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

/// The most of one signal that is dealt with at once: the second Ctrl-C asks for more than the
/// first, the others for nothing else.
const COUNT_MAX: u32 = 3;

/// A signal that is listened to, and how often it has come and was not dealt with yet: a second
/// Ctrl-C is not lost because the first still waits for a turn on a busy machine.
struct Received {
    signal: libc::c_int,
    count: AtomicU32,
}

/// The signals that come.
struct Inbox {
    reader: PipeReader,
    all: Vec<Arc<Received>>,
}

impl Inbox {
    /// Listens to these from now on.
    fn listen(signals: impl IntoIterator<Item = libc::c_int>) -> std::io::Result<Self> {
        let (reader, writer) = std::io::pipe()?;
        let writer = Arc::new(writer);
        let mut all = Vec::new();
        for signal in signals {
            let received = Arc::new(Received { signal, count: AtomicU32::new(0) });
            listen(&received, &writer)?;
            all.push(received);
        }
        Ok(Self { reader, all })
    }

    /// Waits for signals. Gives each as often as it came; none where nothing can come any more.
    fn wait(&mut self) -> Option<Vec<libc::c_int>> {
        let mut woken = [0; LISTENED.len() + FORWARDED.len()];
        loop {
            match self.reader.read(&mut woken) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(1..) => break,
                _ => return None,
            }
        }
        let counted = self.all.iter().map(|one| (one.signal, one.count.swap(0, Ordering::SeqCst)));
        Some(counted.flat_map(|(signal, count)| (0..count.min(COUNT_MAX)).map(move |_| signal)).collect())
    }
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
    // What we were started to ignore (`nohup`) is ignored by the command as well.
    let wanted = LISTENED.into_iter().chain(FORWARDED).filter(|signal| !is_ignored(*signal));
    let mut inbox = Inbox::listen(wanted)?;
    let watch = Watch(Arc::default());
    let over = Arc::clone(&watch.0);
    let run = move || {
        while let Some(signals) = inbox.wait() {
            for signal in signals {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                act(signal, &cancel, &stop, &caught, shares_group);
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
            if received.count.fetch_add(1, Ordering::SeqCst) == 0 {
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
    let mut inbox = Inbox::listen([libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT])?;
    let run = move || {
        let mut before = 0;
        while let Some(signals) = inbox.wait() {
            for signal in signals {
                let request = match (before, signal) {
                    (0, libc::SIGINT) => StopRequest::Finish,
                    (0, _) => StopRequest::End,
                    _ => StopRequest::Kill,
                };
                before += 1;
                if sender.send(request).is_err() {
                    return;
                }
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(run)?;
    Ok(requests)
}
