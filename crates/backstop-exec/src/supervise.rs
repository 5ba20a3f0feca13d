//! Supervises one command, from its start until every process that it started has ended.

use crate::ended::{Cause, Ended, Status};
use crate::keeper::Keeper;
use crate::mailbox::{Inbox, Mailbox, mailbox};
use crate::output_terminal::OutputTerminal;
use crate::pump::{self, Activity, SharedKeeper, SharedOrder, Stream};
use crate::reaper::Report;
use crate::spawn::{self, Root, Running, StartError};
use crate::stream_order::StreamOrder;
use crate::tree::{self, Process, Stat, Tree};
use crate::{HeadTail, Input, Spec, Stop, Streams, terminal};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::sync::{Arc, Mutex, PoisonError};
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
/// Nobody has read a question and answered it before this time.
const TYPED_AFTER: Duration = Duration::from_millis(200);
/// The longest wait between two looks at the clock.
const TICK_MAX: Duration = Duration::from_secs(3600);

/// A message to the thread that supervises the command.
#[derive(Debug)]
pub(crate) enum Message {
    /// The command has ended.
    Exited,
    /// Whoever reads our output has closed it.
    ReaderLeft,
    /// The command was stopped by this signal (SIGTTIN, SIGTSTP).
    Halted(i32),
    /// What it wrote could not be passed on, for another reason than that.
    Unwritable(std::io::Error),
    /// One of its output streams has ended.
    Drained,
    /// A stop was requested.
    Stop,
    /// A pause was requested (Ctrl-Z).
    Pause,
    /// Ctrl-C was typed a second time at a terminal of its own, and it ignores the signal.
    Insisted,
    /// This signal is to be passed on to the command's first process.
    Forward(i32),
    /// The terminal's size has changed.
    Resized,
}

/// A command that has just been started.
#[derive(Debug)]
pub struct Started {
    /// The process by which it is found if we are killed: its reaper or, where it has none, its
    /// own.
    pub process: Process,
    /// The command's process group.
    pub group: i32,
    /// Where its standard output can be read, if [`Output::Caller`](crate::Output::Caller) asked
    /// for that.
    pub stdout: Option<OwnedFd>,
}

/// Runs a command once. `started` is called when it runs. Blocks until the command and all its
/// processes have ended.
pub fn supervise(
    spec: &Spec,
    streams: Streams,
    stop: &Stop,
    started: impl FnOnce(Started),
) -> Result<Ended, StartError> {
    let program = || spec.argv.first().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    let system = |error| StartError::System { program: program(), error };
    let (sender, inbox) = mailbox().map_err(system)?;
    let origin = Instant::now();
    let mut running = spawn::start(spec, &streams.input, &sender)?;
    let stdout = running.for_caller.take();
    let listening = stop.listen(sender.clone());
    let (pid, top) = (running.root.pid(), running.root.top());
    let run = Supervision::new(spec, running, streams, stop, origin, sender, inbox).map_err(system);
    let result = run.and_then(|run| {
        let process = Process::find(top).unwrap_or(Process { pid: top, start: 0 });
        let group = if spec.shares_group { tree::own_group() } else { tree::pid(pid) };
        started(Started { process, group: group.map_or(0, |g| g.as_raw_nonzero().get()), stdout });
        run.watch().map_err(system)
    });
    drop(listening);
    result
}

struct Supervision<'s> {
    spec: &'s Spec,
    stop: &'s Stop,
    root: Root,
    /// Becomes readable when the command has ended, if it is our child and the system has such a
    /// thing. Else a thread waits for it, or its reaper reports it.
    exit: Option<OwnedFd>,
    /// Whether it is certain that no process of the command is left.
    nothing_left: bool,
    /// The command's process group, unless it is ours.
    group: Option<Pid>,
    tree: Tree,
    terminal: Option<terminal::Terminal>,
    windows: Vec<OutputTerminal>,
    lent: bool,
    mailbox: Mailbox,
    inbox: Inbox,
    input: Input,
    /// Whether the input is polled for what arrives.
    polls_input: bool,
    activity: Arc<Activity>,
    kept: Vec<SharedKeeper>,
    order: Arc<Mutex<StreamOrder>>,
    /// Output streams on which nothing was written yet. A thread is started with the first byte.
    waiting: Vec<Stream>,
    open_streams: usize,
    /// Why a thread could not be started, if one could not.
    failed: Option<std::io::Error>,
    origin: Instant,
    /// Time for which the command was paused; it does not count towards limits.
    paused: Duration,
    cause: Cause,
    /// Whether whoever reads our output has closed it.
    reader_left: bool,
    /// The last signal that was passed on to the command alone.
    forwarded: Option<i32>,
    /// Why its output could not be passed on, if it could not.
    unwritable: Option<String>,
    /// When the process tree is killed, once it was asked to end.
    kill_at: Option<Instant>,
    status: Option<Status>,
    left_behind: Vec<String>,
    unended: Vec<String>,
    /// Whether the command was given our terminal at any time.
    was_lent: bool,
}

impl<'s> Supervision<'s> {
    fn new(
        spec: &'s Spec,
        running: Running,
        streams: Streams,
        stop: &'s Stop,
        origin: Instant,
        mailbox: Mailbox,
        inbox: Inbox,
    ) -> std::io::Result<Self> {
        let Running { mut root, stdout, stderr, terminal, windows, for_caller: _ } = running;
        let pid = root.pid();
        let group = tree::pid(pid).filter(|_| !spec.shares_group);
        let mut exit = None;
        if let Root::Child(child) = &mut root {
            let may_stop = !spec.runs_nothing_else && terminal::has_controlling_terminal();
            exit = exit_descriptor(pid, may_stop);
            if exit.is_none()
                && let Err(error) = watch_exit(pid, mailbox.clone())
            {
                // Without a thread the command cannot be supervised, so it is not left running.
                if let Some(group) = group {
                    let _ = rustix::process::kill_process_group(group, Signal::KILL);
                }
                let _ = child.kill();
                let _ = child.wait();
                return Err(error);
            }
        }
        let new = || Arc::new(Mutex::new(Keeper::new(spec.limits.kept_bytes_max)));
        let kept = vec![new(), new()];
        let order: Arc<Mutex<StreamOrder>> = Arc::default();
        let sources = [(stdout, streams.stdout), (stderr, streams.stderr)].into_iter().zip(&kept).enumerate();
        let waiting: Vec<Stream> = sources
            .filter_map(|(stream, ((from, to), kept))| {
                let order = SharedOrder { order: Arc::clone(&order), stream };
                Some(Stream { from: from?, to, kept: Arc::clone(kept), order })
            })
            .collect();
        let top = match &root {
            Root::Child(_) => pid,
            Root::Below(reaper) => reaper.pid,
        };
        let process = Process::find(pid).unwrap_or(Process { pid, start: 0 });
        let tree =
            Tree { root: process, top, group, marks: if top == pid { Vec::new() } else { spec.env.clone() } };
        Ok(Self {
            spec,
            stop,
            root,
            exit,
            nothing_left: false,
            group,
            tree,
            terminal,
            windows,
            lent: false,
            mailbox,
            inbox,
            polls_input: streams.input.watched().is_some_and(|watched| watched.polled().is_some()),
            input: streams.input,
            activity: Arc::new(Activity::new(origin)),
            open_streams: waiting.len(),
            waiting,
            kept,
            order,
            failed: None,
            origin,
            paused: Duration::ZERO,
            cause: Cause::Itself,
            reader_left: false,
            forwarded: None,
            unwritable: None,
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

    fn watch(mut self) -> std::io::Result<Ended> {
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
        if let Some(watched) = self.input.watched() {
            watched.ended();
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        let by_forwarded = self.forwarded.is_some() && self.status.and_then(|s| s.signal) == self.forwarded;
        if self.cause == Cause::Itself && (self.stop.was_interrupted_by_key() || by_forwarded) {
            self.cause = Cause::Interrupted;
        }
        let drained = self.open_streams == 0;
        let order = std::mem::take(&mut *self.order.lock().unwrap_or_else(PoisonError::into_inner));
        let is_one_stream = self.spec.joined || self.spec.pty;
        let mut kept = self.kept.iter().map(|kept| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *kept).finish()
        });
        Ok(Ended {
            status: self.status.unwrap_or_default(),
            cause: self.cause,
            reader_left: self.reader_left,
            unwritable: self.unwritable,
            duration,
            silent,
            stdout: kept.next().unwrap_or_default(),
            stderr: kept.next().unwrap_or_else(|| HeadTail::new(0)),
            order,
            is_one_stream,
            drained,
            left_behind: self.left_behind,
            unended: self.unended,
            read_terminal: self.was_lent,
            limit: match self.cause {
                Cause::WallClock => self.spec.limits.wall,
                Cause::Silence => self.spec.limits.idle,
                Cause::Itself | Cause::Stopped | Cause::Interrupted => None,
            },
        })
    }

    /// The time until the next limit is reached.
    fn next_clock(&self) -> Duration {
        if let Some(kill_at) = self.kill_at {
            return kill_at.saturating_duration_since(Instant::now()).min(LOOK_EVERY);
        }
        let wall = self.spec.limits.wall.map(|wall| wall.saturating_sub(self.ran()));
        let idle = self.spec.limits.idle.map(|idle| idle.saturating_sub(self.silent()));
        let terminal = self.input.watched().filter(|watched| watched.is_unwatched_terminal());
        let typing = terminal.map(|_| TYPED_AFTER.saturating_sub(self.ran()));
        wall.into_iter().chain(idle).chain(typing).min().unwrap_or(TICK_MAX).max(Duration::from_millis(1))
    }

    /// Waits until something happens, or as long as is given, and deals with all that has happened.
    fn wait_once(&mut self, at_most: Duration) {
        let input = self.input.watched().filter(|_| self.polls_input).and_then(crate::Watched::polled);
        let mut polled = vec![PollFd::from_borrowed_fd(self.inbox.fd(), PollFlags::IN)];
        let exit = match &self.root {
            Root::Child(_) => self.exit.as_ref().map(AsFd::as_fd),
            Root::Below(reaper) => Some(reaper.fd()),
        };
        let exit = exit.filter(|_| self.status.is_none());
        polled.extend(exit.map(|exit| PollFd::from_borrowed_fd(exit, PollFlags::IN)));
        let first_stream = polled.len();
        polled.extend(self.waiting.iter().map(|stream| PollFd::new(&stream.from, PollFlags::IN)));
        let first_input = polled.len();
        polled.extend(input.map(|input| PollFd::from_borrowed_fd(input, PollFlags::IN)));
        let limit = Timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: at_most.subsec_nanos().into(),
        };
        if rustix::event::poll(&mut polled, Some(&limit)).is_err() {
            // Interrupted by a signal: it was noted elsewhere.
            return;
        }
        let ready: Vec<PollFlags> = polled.iter().map(PollFd::revents).collect();
        drop(polled);
        if !ready[0].is_empty() {
            self.inbox.clear();
        }
        if first_stream > 1 && !ready[1].is_empty() {
            self.reap();
        }
        for index in (first_stream..first_input).rev().filter(|index| !ready[*index].is_empty()) {
            self.read(index - first_stream, ready[index]);
        }
        if ready.get(first_input).is_some_and(|ready| !ready.is_empty())
            && let Some(watched) = self.input.watched()
        {
            watched.arrived();
            // It stays readable for as long as nobody reads: once is enough.
            self.polls_input = false;
        }
        while let Some(message) = self.inbox.next() {
            self.handle(message);
        }
    }

    /// A stream has something to read, or has ended.
    fn read(&mut self, index: usize, ready: PollFlags) {
        let mut stream = self.waiting.swap_remove(index);
        if !ready.contains(PollFlags::IN) {
            stream.from.ended();
            self.open_streams = self.open_streams.saturating_sub(1);
        } else if let Err(error) = pump::start(stream, Arc::clone(&self.activity), self.mailbox.clone()) {
            // Without a thread the command cannot be supervised, so it is ended.
            self.open_streams = self.open_streams.saturating_sub(1);
            self.failed = Some(error);
            self.ask_to_end(Cause::Stopped);
            self.kill_at = Some(Instant::now());
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Exited => self.reap(),
            Message::ReaderLeft => self.reader_left = true,
            Message::Unwritable(error) => self.unwritable = Some(error.to_string()),
            Message::Halted(signal) => self.halted(signal),
            Message::Drained => self.open_streams = self.open_streams.saturating_sub(1),
            Message::Stop => {
                if self.stop.requests() > 1 {
                    self.kill_at = Some(Instant::now());
                } else {
                    self.ask_to_end(Cause::Stopped);
                }
            }
            Message::Pause => self.pause(Signal::TSTP),
            Message::Forward(signal) => {
                if let (Some(pid), Some(signal)) =
                    (tree::pid(self.root.pid()), Signal::from_named_raw(signal))
                    && self.status.is_none()
                {
                    let _ = rustix::process::kill_process(pid, signal);
                    self.forwarded = Some(signal.as_raw());
                }
            }
            Message::Insisted => {
                // As if the key had reached us too: whoever listens for it learns of it.
                let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::INT);
                self.ask_to_end(Cause::Stopped);
                self.kill_at = Some(Instant::now());
            }
            Message::Resized => {
                if let Some(terminal) = &self.terminal {
                    terminal.resize();
                }
                if !self.windows.is_empty() {
                    self.windows.iter().for_each(OutputTerminal::resize);
                    // The command may have heard of it from the real terminal, before its own had
                    // the new size.
                    self.tree.signal(Signal::WINCH);
                }
            }
        }
    }

    fn look_at_the_clock(&mut self) {
        if self.status.is_some() {
            return;
        }
        if let Some(watched) = self.input.watched().filter(|watched| watched.is_unwatched_terminal())
            && self.ran() >= TYPED_AFTER
        {
            watched.watch_reads();
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
            let passed_on = Signal::from_named_raw(self.stop.signal()).filter(|_| cause == Cause::Stopped);
            self.tree.signal(passed_on.unwrap_or(Signal::TERM));
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
            if self.status.is_some() || matches!(self.root, Root::Child(_)) {
                self.reap();
            }
            if self.nothing_left {
                return;
            }
            // The child of a process that has just ended may not have been reparented yet.
            let alive = self.tree.alive();
            empty = if alive.is_empty() && !met { empty + 1 } else { 0 };
            if empty == EMPTY_LOOKS {
                return;
            }
            std::thread::sleep(Duration::from_millis(if empty > 0 { 1 } else { 2 }));
        }
        self.unended = names(&self.tree.alive());
    }

    /// Takes the command's ending, if it has ended, and learns whether anything of it is left.
    fn reap(&mut self) {
        match &mut self.root {
            Root::Child(child) => {
                if self.status.is_none()
                    && let Ok(Some(status)) = child.try_wait()
                {
                    self.status = Some(Status { code: status.code(), signal: status.signal() });
                    self.nothing_left = self.spec.runs_nothing_else;
                }
            }
            Root::Below(reaper) => {
                let Some(report) = reaper.next() else { return };
                match report {
                    Report::Stopped(signal) => self.halted(signal),
                    Report::Ended { status, alone } => {
                        self.status = Some(status);
                        self.nothing_left = alone;
                    }
                    Report::Gone if self.status.is_some() => self.nothing_left = true,
                    // Somebody killed the reaper: what it held together is ended.
                    Report::Gone => {
                        self.kill_all();
                        self.status = Some(Status { code: None, signal: Some(libc::SIGKILL) });
                    }
                }
            }
        }
    }

    fn reap_within(&mut self, limit: Duration) {
        let until = Instant::now() + limit;
        while self.status.is_none() && Instant::now() < until {
            self.reap();
            std::thread::sleep(Duration::from_millis(2));
        }
        // It was killed: what else its tracer, or the kernel, does with it nobody waits for.
        self.status.get_or_insert(Status { code: None, signal: Some(libc::SIGKILL) });
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
        if self.nothing_left || (self.spec.keep_background && self.cause == Cause::Itself) {
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
        let kill_at = self.kill_at.unwrap_or_else(|| Instant::now() + self.spec.limits.grace);
        if self.kill_at.is_none() || self.stop.signal() != libc::SIGTERM {
            self.tree.signal(Signal::TERM);
            self.tree.signal(Signal::CONT);
        }
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
        if self.spec.shares_group {
            // A report of an earlier stop, after which it was continued already, would stop us both
            // again.
            if cfg!(target_os = "linux") && !self.tree.is_root_stopped() {
                return;
            }
            // The terminal, or a signal to all of our group, has stopped it: we stop as well, so
            // that the shell sees it.
            self.stand_still(signal);
            self.tree.signal(Signal::CONT);
            return;
        }
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
        self.tree.signal(signal);
        if self.lent {
            terminal::take_back();
        }
        self.stand_still(libc::SIGSTOP);
        if let Some(group) = self.group.filter(|_| self.lent) {
            self.lent = terminal::lend(group);
        }
        self.tree.signal(Signal::CONT);
    }

    /// Suspends this process by a stop signal until it continues. The time does not count.
    fn stand_still(&mut self, signal: i32) {
        let from = Instant::now();
        stop_by(signal);
        // We continue here.
        let stood = from.elapsed();
        self.paused += stood;
        self.activity.touch();
        if let Some(kill_at) = &mut self.kill_at {
            *kill_at += stood;
        }
    }
}

/// The names of some processes.
fn names(pids: &[u32]) -> Vec<String> {
    pids.iter().take(NAMES_MAX).filter_map(|pid| Stat::read(*pid)).map(|stat| stat.name).collect()
}

/// Suspends this process. The calling thread does not run on until the process continues.
pub fn stop_here() {
    stop_by(libc::SIGSTOP);
}

/// Suspends this process by the signal that stopped the command, so that a shell sees the same.
fn stop_by(signal: i32) {
    // SAFETY: the actions are numbers and pointers, initialised by the system; the previous one is
    // put back. Raising a signal in the calling thread touches no memory.
    unsafe {
        let mut stops: libc::sigaction = std::mem::zeroed();
        stops.sa_sigaction = libc::SIG_DFL;
        let mut before: libc::sigaction = std::mem::zeroed();
        let changed = libc::sigaction(signal, &raw const stops, &raw mut before) == 0;
        libc::raise(signal);
        if changed {
            libc::sigaction(signal, &raw const before, std::ptr::null_mut());
        }
    }
}

/// A descriptor that becomes readable when the command ends. `None` where the system has none, or
/// where it must be known when a terminal stops the command.
#[cfg(target_os = "linux")]
fn exit_descriptor(raw: u32, stops: bool) -> Option<OwnedFd> {
    if stops {
        return None;
    }
    rustix::process::pidfd_open(tree::pid(raw)?, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn exit_descriptor(_: u32, _: bool) -> Option<OwnedFd> {
    None
}

/// Reports when the command stops or ends, from a thread of its own. It does not reap the command.
fn watch_exit(raw: u32, to: Mailbox) -> std::io::Result<()> {
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
                    if !to.send(Message::Halted(signal)) {
                        return;
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                _ => {
                    to.send(Message::Exited);
                    return;
                }
            }
        }
    };
    std::thread::Builder::new().name("exit".to_owned()).stack_size(128 << 10).spawn(run).map(|_| ())
}
