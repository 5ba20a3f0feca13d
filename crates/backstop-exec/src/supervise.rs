//! Supervises one command, from its start until every process that it started has ended.

use crate::ended::{Cause, Ended, Status};
use crate::pump::{self, Activity, SharedHeadTail};
use crate::spawn::{self, Running, StartError};
use crate::tree::{self, Process, Stat, Tree};
use crate::{HeadTail, Spec, Stop, Streams, terminal};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// How often surviving processes are looked for during the grace period.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How many times survivors are killed before they are given up. Each round finds processes that
/// were forked in between.
const KILL_ROUNDS_MAX: u32 = 500;
/// This many empty looks in a row mean that nothing is left.
const EMPTY_LOOKS: u32 = 3;
/// How long output is waited for after everything was killed.
const LAST_DRAIN: Duration = Duration::from_millis(500);
/// How many names of left-behind processes are kept.
const NAMES_MAX: usize = 8;
/// The longest wait between two looks at the clock.
const TICK_MAX: Duration = Duration::from_secs(3600);

/// A message to the thread that supervises the command.
#[derive(Debug)]
pub(crate) enum Message {
    /// The command has ended.
    Exited,
    /// The command was stopped by this signal (SIGTTIN, SIGTSTP).
    Halted(i32),
    /// One of its output streams has ended.
    Drained,
    /// A stop was requested.
    Stop,
    /// A pause was requested (Ctrl-Z).
    Pause,
    /// The terminal's size has changed.
    Resized,
}

/// A command that has just been started.
#[derive(Debug, Clone, Copy)]
pub struct Started {
    /// The process.
    pub process: Process,
    /// Its process group.
    pub group: i32,
}

/// Runs a command once. `started` is called when it runs. Blocks until the command and all its
/// processes have ended.
pub fn supervise(
    spec: &Spec,
    streams: Streams,
    stop: &Stop,
    started: impl FnOnce(Started),
) -> Result<Ended, StartError> {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let (sender, messages) = channel();
    let origin = Instant::now();
    let running = spawn::start(spec, &streams.input)?;
    stop.listen(sender.clone());
    let pid = running.child.id();
    let group = tree::pid(pid);
    let activity = Arc::new(Activity::new(origin));
    let run = Supervision::new(spec, running, streams, stop, origin, &activity, &sender, messages);
    let result = run.map(|run| {
        let process = Process::find(pid).unwrap_or(Process { pid, start: 0 });
        started(Started { process, group: group.map_or(0, |g| g.as_raw_nonzero().get()) });
        run.watch()
    });
    stop.deafen();
    result
}

struct Supervision<'s> {
    spec: &'s Spec,
    stop: &'s Stop,
    child: Child,
    group: Option<Pid>,
    tree: Tree,
    terminal: Option<terminal::Terminal>,
    lent: bool,
    messages: Receiver<Message>,
    activity: Arc<Activity>,
    kept: Vec<SharedHeadTail>,
    open_streams: usize,
    origin: Instant,
    /// Time for which the command was paused; it does not count towards limits.
    paused: Duration,
    cause: Cause,
    /// When the process tree is killed, once it was asked to end.
    kill_at: Option<Instant>,
    status: Option<Status>,
    left_behind: Vec<String>,
    unended: Vec<String>,
    /// Whether the command was given our terminal at any time.
    was_lent: bool,
}

impl<'s> Supervision<'s> {
    #[expect(clippy::too_many_arguments)] // One caller; they are the parts of one thing.
    fn new(
        spec: &'s Spec,
        running: Running,
        streams: Streams,
        stop: &'s Stop,
        origin: Instant,
        activity: &Arc<Activity>,
        sender: &Sender<Message>,
        messages: Receiver<Message>,
    ) -> Result<Self, StartError> {
        let Running { mut child, stdout, stderr, terminal } = running;
        let pid = child.id();
        let group = tree::pid(pid);
        let start = || -> std::io::Result<Vec<SharedHeadTail>> {
            watch_exit(pid, sender.clone())?;
            let max = spec.limits.kept_bytes_max;
            let mut kept =
                vec![pump::start(stdout, streams.stdout, max, Arc::clone(activity), sender.clone())?];
            if let Some(stderr) = stderr {
                kept.push(pump::start(stderr, streams.stderr, max, Arc::clone(activity), sender.clone())?);
            }
            Ok(kept)
        };
        let kept = match start() {
            Ok(kept) => kept,
            Err(error) => {
                // Without threads the command cannot be supervised, so it is not left running.
                if let Some(group) = group {
                    let _ = rustix::process::kill_process_group(group, Signal::KILL);
                }
                let _ = child.kill();
                let _ = child.wait();
                let program = spec.argv.first().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
                return Err(StartError::System { program, error });
            }
        };
        let tree = Tree { root: pid, group, exclusive: spec.exclusive, marks: spec.env.clone() };
        Ok(Self {
            spec,
            stop,
            child,
            group,
            tree,
            terminal,
            lent: false,
            messages,
            activity: Arc::clone(activity),
            open_streams: kept.len(),
            kept,
            origin,
            paused: Duration::ZERO,
            cause: Cause::Itself,
            kill_at: None,
            status: None,
            left_behind: Vec::new(),
            unended: Vec::new(),
            was_lent: false,
        })
    }

    fn ran(&self) -> Duration {
        self.origin.elapsed().saturating_sub(self.paused)
    }

    fn silent(&self) -> Duration {
        let last = Duration::from_millis(self.activity.last_ms());
        self.origin.elapsed().saturating_sub(last)
    }

    fn watch(mut self) -> Ended {
        if self.stop.requests() > 0 {
            self.ask_to_end(Cause::Stopped);
        }
        while self.status.is_none() {
            self.wait_once(self.next_clock());
            self.look_at_the_clock();
        }
        let duration = self.ran();
        let silent = self.silent();
        if self.lent {
            terminal::take_back();
        }
        self.drain();
        self.end_what_is_left();
        let drained = self.open_streams == 0;
        let mut kept = self.kept.iter().map(|kept| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *kept)
        });
        Ended {
            status: self.status.unwrap_or_default(),
            cause: self.cause,
            duration,
            silent,
            stdout: kept.next().unwrap_or_default(),
            stderr: kept.next().unwrap_or_else(|| HeadTail::new(0)),
            drained,
            left_behind: self.left_behind,
            unended: self.unended,
            read_terminal: self.was_lent,
            limit: match self.cause {
                Cause::WallClock => self.spec.limits.wall,
                Cause::Silence => self.spec.limits.idle,
                Cause::Itself | Cause::Stopped => None,
            },
        }
    }

    /// The time until the next limit is reached.
    fn next_clock(&self) -> Duration {
        if let Some(kill_at) = self.kill_at {
            return kill_at.saturating_duration_since(Instant::now()).min(LOOK_EVERY);
        }
        let wall = self.spec.limits.wall.map(|wall| wall.saturating_sub(self.ran()));
        let idle = self.spec.limits.idle.map(|idle| idle.saturating_sub(self.silent()));
        wall.into_iter().chain(idle).min().unwrap_or(TICK_MAX).max(Duration::from_millis(1))
    }

    fn wait_once(&mut self, at_most: Duration) {
        match self.messages.recv_timeout(at_most) {
            Ok(Message::Exited) => self.reap(),
            Ok(Message::Halted(signal)) => self.halted(signal),
            Ok(Message::Drained) => self.open_streams = self.open_streams.saturating_sub(1),
            Ok(Message::Stop) => {
                if self.stop.requests() > 1 {
                    self.kill_at = Some(Instant::now());
                } else {
                    self.ask_to_end(Cause::Stopped);
                }
            }
            Ok(Message::Pause) => self.pause(Signal::TSTP),
            Ok(Message::Resized) => {
                if let Some(terminal) = &self.terminal {
                    terminal.resize();
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }

    fn look_at_the_clock(&mut self) {
        if self.status.is_some() {
            return;
        }
        if let Some(kill_at) = self.kill_at {
            if Instant::now() >= kill_at {
                self.kill_all();
                // The process is dead now, or stuck in the kernel where nothing can end it.
                self.reap_within(LAST_DRAIN);
            }
        } else if self.spec.limits.wall.is_some_and(|wall| self.ran() >= wall) {
            self.ask_to_end(Cause::WallClock);
        } else if self.spec.limits.idle.is_some_and(|idle| self.silent() >= idle) {
            self.ask_to_end(Cause::Silence);
        }
    }

    fn ask_to_end(&mut self, cause: Cause) {
        if self.kill_at.is_none() {
            self.cause = cause;
            self.kill_at = Some(Instant::now() + self.spec.limits.grace);
            self.tree.signal(Signal::TERM);
            // A stopped process does not receive SIGTERM until it continues.
            self.tree.signal(Signal::CONT);
        }
    }

    /// Kills everything, repeatedly, until nothing is left. One empty look is no proof: a process
    /// may be between a fork and its parent's exit.
    fn kill_all(&mut self) {
        let mut empty = 0;
        for _ in 0..KILL_ROUNDS_MAX {
            let met = self.tree.strike();
            // Stopped processes cannot fork while the others are killed.
            if !self.tree.signal(Signal::STOP).is_empty() {
                self.tree.signal(Signal::KILL);
            }
            self.reap();
            // The child of a process that has just ended may not have been reparented to us yet.
            let alive = self.tree.alive();
            empty = if alive.is_empty() && !met { empty + 1 } else { 0 };
            if empty == EMPTY_LOOKS {
                return;
            }
            std::thread::sleep(Duration::from_millis(if empty > 0 { 1 } else { 2 }));
        }
        self.unended = names(&self.tree.alive());
    }

    fn reap(&mut self) {
        if self.status.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.status = Some(Status { code: status.code(), signal: status.signal() });
        }
    }

    fn reap_within(&mut self, limit: Duration) {
        let until = Instant::now() + limit;
        while self.status.is_none() && Instant::now() < until {
            self.reap();
            std::thread::sleep(Duration::from_millis(2));
        }
        self.status.get_or_insert_default();
    }

    /// Reads what is still in the pipes. A process left behind may hold them open, but not for
    /// long.
    fn drain(&mut self) {
        let limit = if self.kill_at.is_some() { LAST_DRAIN } else { self.spec.limits.drain };
        let until = Instant::now() + limit;
        while self.open_streams > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || (self.kill_at.is_some() && self.stop.requests() > 1) {
                return;
            }
            self.wait_once(left);
        }
    }

    /// Ends the processes that the command left behind.
    fn end_what_is_left(&mut self) {
        if self.spec.keep_background && self.cause == Cause::Itself {
            return;
        }
        let mut alive = self.tree.alive();
        // Looked for twice: a process that forks and exits at once is seen by one of the two.
        if alive.is_empty() && self.cause != Cause::Itself {
            std::thread::sleep(Duration::from_millis(2));
            alive = self.tree.alive();
        }
        if alive.is_empty() && self.cause == Cause::Itself {
            return;
        }
        self.left_behind = names(&alive);
        let kill_at = match self.kill_at {
            Some(kill_at) => kill_at,
            None => {
                self.tree.signal(Signal::TERM);
                self.tree.signal(Signal::CONT);
                Instant::now() + self.spec.limits.grace
            }
        };
        while !alive.is_empty() && Instant::now() < kill_at && self.stop.requests() < 2 {
            std::thread::sleep(LOOK_EVERY.min(kill_at.saturating_duration_since(Instant::now())));
            alive = self.tree.alive();
        }
        self.kill_all();
        let until = Instant::now() + LAST_DRAIN;
        while self.open_streams > 0 && Instant::now() < until {
            self.wait_once(until.saturating_duration_since(Instant::now()));
        }
    }

    /// The command was stopped. One that reads our terminal is given it; one that was suspended
    /// suspends us too.
    fn halted(&mut self, signal: i32) {
        let Some(group) = self.group else { return };
        match signal {
            libc::SIGTTIN | libc::SIGTTOU if self.terminal.is_none() && terminal::lend(group) => {
                self.lent = true;
                self.was_lent = true;
                let _ = rustix::process::kill_process_group(group, Signal::CONT);
            }
            libc::SIGTSTP if self.lent => self.pause(Signal::TSTP),
            _ => {}
        }
    }

    /// Suspends the command and ourselves; when we continue, so does the command. Limits do not run
    /// meanwhile.
    fn pause(&mut self, signal: Signal) {
        let Some(group) = self.group else { return };
        let _ = rustix::process::kill_process_group(group, signal);
        if self.lent {
            terminal::take_back();
        }
        let from = Instant::now();
        stop_here();
        // We continue here.
        let stood = from.elapsed();
        self.paused += stood;
        self.activity.touch();
        if let Some(kill_at) = &mut self.kill_at {
            *kill_at += stood;
        }
        if self.lent {
            self.lent = terminal::lend(group);
        }
        let _ = rustix::process::kill_process_group(group, Signal::CONT);
    }
}

/// The names of some processes.
fn names(pids: &[u32]) -> Vec<String> {
    pids.iter().take(NAMES_MAX).filter_map(|pid| Stat::read(*pid)).map(|stat| stat.name).collect()
}

/// Suspends this process. The calling thread does not run on until the process continues.
pub fn stop_here() {
    // SAFETY: raising a signal in the calling thread touches no memory.
    unsafe {
        libc::raise(libc::SIGSTOP);
    }
}

/// Reports when the command stops or ends, from a thread of its own. It does not reap the command.
fn watch_exit(raw: u32, to: Sender<Message>) -> std::io::Result<()> {
    let Some(pid) = tree::pid(raw) else { return Ok(()) };
    let run = move || {
        loop {
            let peek = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
            match rustix::process::waitid(WaitId::Pid(pid), peek) {
                Ok(Some(status)) if status.stopped() => {
                    let signal = status.stopping_signal().unwrap_or_default();
                    // Consume this report, so that the next one is waited for.
                    let taken = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
                    let _ = rustix::process::waitid(WaitId::Pid(pid), taken);
                    if to.send(Message::Halted(signal)).is_err() {
                        return;
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                _ => {
                    let _ = to.send(Message::Exited);
                    return;
                }
            }
        }
    };
    std::thread::Builder::new().name("exit".to_owned()).stack_size(128 << 10).spawn(run).map(|_| ())
}
