//! An agent that speaks the Agent Client Protocol: it is started, talked to over its standard
//! streams, and ended.
//!
//! [`run`] supervises the process as every command is ([`backstop_exec::supervise`]) and holds the
//! conversation meanwhile ([`conversation`], which does no I/O). Its clocks are ours, because
//! agents have none: silence and the wall clock end it, and so does a step that is not answered.
//! The end is always the same: `session/cancel`, its input closed, then the supervisor's signals
//! and whatever is left ended by identity.
#![allow(clippy::disallowed_methods)] // The monotonic clock: a process runs in real time.

mod conversation;
mod evidence;
mod known;
mod message;
mod patience;
mod permission;
mod session_settings;
mod tool;
mod words;

pub use known::{KNOWN_ACP, KnownAcp, known_acp};

use super::definition::Agent;
use super::dialect::AgentOutput;
use super::iterations::Iterations;
use super::own_retries::OwnRetries;
use super::session::OnSession;
use crate::log::Tee;
use backstop_core::{Fault, Reason, duration};
use backstop_exec::{Cause, Ended, Input, Spec, StartError, Started, Status, Stop, Streams, supervise};
use conversation::{Act, Conversation, NOT_ACP, Step, Topic};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The longest message, in bytes.
const LINE_BYTES_MAX: usize = 8 << 20;
/// How many messages may wait to be written.
const QUEUE_MAX: usize = 256;
/// How many messages in so long are a flood. What a model says comes in pieces, a hundred of them
/// in a second.
const FLOOD_MESSAGES: u32 = 25_000;
const FLOOD_WITHIN: Duration = Duration::from_secs(5);
/// How long an agent has for each step before the prompt.
const STEP_MAX: Duration = Duration::from_secs(90);
/// How long a loaded session must have been silent before its replay counts as over, and how long
/// that may take.
const REPLAY_SILENCE: Duration = Duration::from_millis(700);
const REPLAY_MAX: Duration = Duration::from_secs(20);
/// How long a cancelled turn has to end, and then the process once its input is closed.
const CANCEL_MAX: Duration = Duration::from_secs(3);
const CLOSE_MAX: Duration = Duration::from_secs(4);
/// How often the clocks are looked at.
const TICK: Duration = Duration::from_millis(50);

/// What is asked of an agent.
pub(super) struct Request<'a> {
    pub(super) agent: &'a Agent,
    pub(super) prompt: String,
    pub(super) model: Option<&'a str>,
    pub(super) session: Option<String>,
    /// The folders in which it may work; the first is its own.
    pub(super) folders: Vec<PathBuf>,
    /// What links of its own folder may lead to.
    pub(super) linked: Vec<PathBuf>,
    pub(super) on_session: OnSession,
    pub(super) iterations: &'a Iterations,
    pub(super) own_retries: &'a OwnRetries,
    pub(super) log: Tee,
    /// Where its errors go.
    pub(super) stderr: Box<dyn Write + Send>,
}

/// What the conversation came to.
pub(super) struct Told {
    pub(super) output: AgentOutput,
    pub(super) trouble: Option<Fault>,
    pub(super) session_refused: bool,
}

/// Runs an agent once and talks to it. Blocking.
pub(super) fn run(
    spec: &Spec,
    request: Request<'_>,
    stop: &Stop,
    started: impl FnOnce(Started),
) -> Result<(Ended, Told), StartError> {
    let program = || spec.argv.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let (reader, writer) =
        std::io::pipe().map_err(|error| StartError::System { program: program(), error })?;
    let options = request.agent.acp.clone().unwrap_or_default();
    let topic = Topic {
        prompt: request.prompt,
        folders: request.folders,
        linked: request.linked,
        session: request.session,
        mode: options.mode,
        modes: known_acp(&request.agent.argv).map_or(&[], |known| known.modes),
        model: request.model.filter(|_| !request.agent.mentions("model")).map(str::to_owned),
        resolver: permission::Resolver(permission::on_disk),
    };
    let (conversation, first) = Conversation::new(topic);
    let (queue, messages) = sync_channel::<String>(QUEUE_MAX);
    let inner = Stop::new();
    let talk = Talk(Arc::new((
        Mutex::new(State {
            conversation,
            queue: Some(queue),
            log: request.log,
            on_session: request.on_session,
            iterations: request.iterations.clone(),
            iterations_stop: stop.clone(),
            own_retries: request.own_retries.clone(),
            last_line: Instant::now(),
            step_since: Instant::now(),
            flood: (Instant::now(), 0),
            is_over: false,
            ended_by: None,
        }),
        Condvar::new(),
    )));
    talk.state().act(first);
    let limits = (spec.limits.wall, spec.limits.idle);
    // The clocks are kept here, because an end begins with words; the supervisor only makes sure of
    // it.
    let spec = Spec {
        limits: backstop_exec::Limits {
            wall: limits.0.map(|wall| wall + CANCEL_MAX + CLOSE_MAX + CLOSE_MAX),
            idle: None,
            ..spec.limits.clone()
        },
        ..spec.clone()
    };
    let streams = Streams {
        stdout: Box::new(Lines { talk: talk.clone(), open: Vec::new() }),
        stderr: request.stderr,
        input: Input::Pipe(Arc::new(File::from(OwnedFd::from(reader)))),
    };
    let ended = std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut to = File::from(OwnedFd::from(writer));
            // It ends with the queue, or when nobody reads any more. Dropping the file closes the
            // agent's input.
            for message in messages {
                if to.write_all(message.as_bytes()).and_then(|()| to.write_all(b"\n")).is_err() {
                    break;
                }
            }
        });
        let clocks = Clocks { talk: &talk, wall: limits.0, idle: limits.1, stop, inner: &inner };
        let watching = scope.spawn(move || clocks.watch());
        let ended = supervise(&spec, streams, &inner, started);
        let mut state = talk.state();
        state.is_over = true;
        state.queue = None;
        drop(state);
        talk.0.1.notify_all();
        drop(watching);
        ended
    })?;
    Ok(talk.finish(ended, limits))
}

/// The conversation, shared by the thread that reads and the one that watches the clocks.
#[derive(Clone)]
struct Talk(Arc<(Mutex<State>, Condvar)>);

struct State {
    conversation: Conversation,
    /// Messages to the agent; nothing once its input is closed.
    queue: Option<SyncSender<String>>,
    log: Tee,
    on_session: OnSession,
    iterations: Iterations,
    iterations_stop: Stop,
    own_retries: OwnRetries,
    last_line: Instant,
    step_since: Instant,
    /// When the messages that are counted began, and how many there were.
    flood: (Instant, u32),
    /// Whether the process has ended.
    is_over: bool,
    /// What ended it, where that was us.
    ended_by: Option<Cause>,
}

impl State {
    /// Does what the conversation asks for.
    fn act(&mut self, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Send(message) => {
                    let sent = self.queue.as_ref().map(|queue| queue.try_send(message));
                    if let Some(Err(TrySendError::Full(_))) = sent {
                        let cause = "the agent does not read its standard input".to_owned();
                        self.conversation.fail(Reason::Validation, cause, NOT_ACP);
                    }
                }
                Act::Log(text) => {
                    self.own_retries.spoke();
                    let _ = self.log.write_all(text.as_bytes());
                }
                Act::Session(id) => (self.on_session)(&id),
                Act::Answers => self.own_retries.spoke(),
                Act::ToolCalled => {
                    self.own_retries.tool_used();
                    self.iterations.used(&self.iterations_stop);
                }
            }
        }
    }

    fn line(&mut self, line: &[u8]) {
        let now = Instant::now();
        self.last_line = now;
        if now.duration_since(self.flood.0) > FLOOD_WITHIN {
            self.flood = (now, 0);
        }
        self.flood.1 += 1;
        let before = self.conversation.step;
        if before == Step::Over {
            return;
        }
        let acts = self.conversation.line(line);
        self.act(acts);
        let is_replay = matches!(before, Step::Session | Step::Settings | Step::Replay);
        if self.flood.1 > FLOOD_MESSAGES && !is_replay {
            let cause = format!("it sent {FLOOD_MESSAGES} messages within {}", duration::shown(FLOOD_WITHIN));
            self.conversation.fail(Reason::ResourceExhausted, cause, "report it to the makers of the agent");
        }
        if self.conversation.step != before {
            self.step_since = now;
        }
    }
}

impl Talk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What came of it, once the process has ended.
    fn finish(self, mut ended: Ended, limits: (Option<Duration>, Option<Duration>)) -> (Ended, Told) {
        let mut state = self.state();
        let is_done = state.conversation.step == Step::Over;
        let by_itself = state.ended_by.is_none();
        state.conversation.ended(by_itself);
        match state.ended_by {
            // Nobody but us ended it, and only because it had nothing more to do.
            None if is_done => {
                ended.cause = Cause::Itself;
                ended.status = Status { code: Some(0), signal: None };
            }
            Some(Cause::Itself) => {
                ended.cause = Cause::Itself;
                ended.status = Status { code: Some(0), signal: None };
            }
            Some(cause) => {
                ended.cause = cause;
                ended.limit = match cause {
                    Cause::WallClock => limits.0,
                    Cause::Silence => limits.1,
                    _ => None,
                };
            }
            None => {}
        }
        let output = std::mem::take(&mut state.conversation.output);
        let trouble = state.conversation.trouble.take();
        (ended, Told { output, trouble, session_refused: state.conversation.session_refused })
    }
}

/// The agent's output, line by line.
struct Lines {
    talk: Talk,
    open: Vec<u8>,
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut state = self.talk.state();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.open.len() + piece.len() > LINE_BYTES_MAX {
                let cause = format!("it wrote a message of more than {} MB", LINE_BYTES_MAX >> 20);
                state.conversation.fail(Reason::Validation, cause, NOT_ACP);
                self.open = Vec::new();
            }
            if state.conversation.step == Step::Over {
                continue;
            }
            self.open.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                state.line(&std::mem::take(&mut self.open));
            }
        }
        drop(state);
        self.talk.0.1.notify_all();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What ends an agent.
struct Clocks<'a> {
    talk: &'a Talk,
    wall: Option<Duration>,
    idle: Option<Duration>,
    /// Somebody's request to end it.
    stop: &'a Stop,
    /// The supervisor's.
    inner: &'a Stop,
}

impl Clocks<'_> {
    /// Watches until the process has ended.
    fn watch(&self) {
        let began = Instant::now();
        let mut state = self.talk.state();
        loop {
            if state.is_over {
                return;
            }
            if let Some(cause) = self.cause(&mut state, began) {
                state.ended_by = Some(cause);
                return self.end(state);
            }
            let waited = self.talk.0.1.wait_timeout(state, TICK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Why it is to be ended now.
    fn cause(&self, state: &mut State, began: Instant) -> Option<Cause> {
        if self.stop.requests() > 0 {
            return Some(Cause::Stopped);
        }
        if state.conversation.step == Step::Over {
            return Some(Cause::Itself);
        }
        let (silent, in_step) = (state.last_line.elapsed(), state.step_since.elapsed());
        if self.wall.is_some_and(|wall| began.elapsed() >= wall) {
            return Some(Cause::WallClock);
        }
        if state.conversation.step == Step::Replay && (silent >= REPLAY_SILENCE || in_step >= REPLAY_MAX) {
            let acts = state.conversation.replayed();
            state.act(acts);
            state.step_since = Instant::now();
        }
        let step = state.conversation.step;
        let limit = self.idle.map_or(STEP_MAX, |idle| idle.min(STEP_MAX));
        if matches!(step, Step::Initialize | Step::Session | Step::Settings) && in_step >= limit {
            let garbage = state.conversation.first_garbage().map(|line| format!("; it wrote: {line}"));
            let cause = format!(
                "the agent did not answer {} within {}{}",
                step.awaited(),
                duration::shown(limit),
                garbage.unwrap_or_default()
            );
            state.conversation.fail(Reason::Timeout, cause, NOT_ACP);
            return Some(Cause::Itself);
        }
        self.idle.is_some_and(|idle| silent >= idle).then_some(Cause::Silence)
    }

    /// Ends it: `session/cancel`, its input closed, signals.
    fn end<'s>(&'s self, mut state: MutexGuard<'s, State>) {
        let acts = state.conversation.cancel();
        let is_at_work = !acts.is_empty();
        state.act(acts);
        if is_at_work {
            state = self.wait(state, CANCEL_MAX, |state| state.conversation.step == Step::Over);
        }
        state.queue = None;
        state = self.wait(state, CLOSE_MAX, |_| false);
        if !state.is_over {
            drop(state);
            self.inner.request();
            state = self.talk.state();
        }
        // A person who asks twice does not want to wait.
        while !state.is_over {
            if self.stop.requests() > 1 {
                drop(state);
                return self.inner.request();
            }
            let waited = self.talk.0.1.wait_timeout(state, TICK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for something, for the process to end or for time to be over.
    fn wait<'s>(
        &self,
        mut state: MutexGuard<'s, State>,
        at_most: Duration,
        is_done: impl Fn(&State) -> bool,
    ) -> MutexGuard<'s, State> {
        let began = Instant::now();
        while !state.is_over && !is_done(&state) && began.elapsed() < at_most && self.stop.requests() < 2 {
            let waited = self.talk.0.1.wait_timeout(state, TICK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }
}
