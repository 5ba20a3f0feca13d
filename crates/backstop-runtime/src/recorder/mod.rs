//! The record of one run: the one way to begin it, append to it and end it.
//!
//! A [`Recorder`] writes first and tells its [`Observer`]s then: lines for people, JSON, the file
//! that others tail, traces. Nothing is written before the first event, so that a run begins and
//! records its first attempt in one transaction.
//!
//! Three things can be asked of it when it begins ([`Opening`]):
//! - **What if the store cannot be written?** A wrapper goes on with one warning, and its events
//!   are told but not kept; a plan refuses.
//! - **Is it held back?** A tool call or a model request that succeeds leaves no run: its events
//!   wait in memory until something fails. A success is counted ([`successes`]), and the count is
//!   written with the next run or at the end.
//! - **Who watches?** Observers are given when it begins.
//!
//! It must not decide, print or wait.

mod event_lines;
mod observers;
mod opening;
pub mod run_numbers;
pub mod successes;

pub use event_lines::EventLines;
pub use observers::{Observer, Observers, TailFile};
pub use opening::Opening;

use crate::process::Process;
use crate::project::{Project, ProjectError};
use backstop_core::{
    EVENT_SCHEMA, Event, EventId, EventKind, Outcome, OutputLog, Recent, Record, RecordError, Redactor,
    RunId, SafeText, Timestamp,
};
use backstop_store::{
    Child, Deferred, DeferredId, DeferredWork, Journal, Retention, RunHeader, RunJournal, StoreError,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The record of one run.
pub struct Recorder {
    state: Mutex<State>,
    surface: &'static str,
    process: Arc<Process>,
    redactor: Arc<Redactor>,
    session: Option<SafeText>,
    caller: Option<SafeText>,
    retention: Retention,
    required: bool,
    successes: Option<Arc<successes::Successes>>,
    observers: Vec<Arc<dyn Observer>>,
    /// What was recorded of this run here, for when it cannot be read back.
    in_memory: Mutex<Vec<Event>>,
}

enum State {
    /// Nothing is written yet. `waiting` is what comes first.
    Pending { journal: Journal, header: RunHeader, waiting: Vec<EventKind>, run: RunId, held: bool },
    /// Everything is written.
    Open(Box<RunJournal>),
    /// Nothing can be written.
    Off { run: RunId, seq: u64 },
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("run", &self.run()).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Begins the record of a run. Nothing is written before its first event is recorded. Where the
    /// store cannot be used, that is an error for a run that must be recorded, and a warning for
    /// others.
    pub fn begin(project: &Project, opening: Opening) -> Result<Self, ProjectError> {
        let process = &project.process;
        let random = opening.random.unwrap_or_else(process.random);
        let run = RunId::from_random(random, 4);
        let (session, caller) = opening.who(process);
        let header = RunHeader {
            session: session.clone(),
            caller: caller.clone(),
            parent: opening.parent,
            ..RunHeader::new(opening.surface, process.id, random)
        };
        let observers = opening.observers_in(project);
        let state = match project.journal() {
            Ok(journal) => State::Pending {
                journal: journal.clone(),
                header,
                waiting: opening.first,
                run,
                held: opening.held,
            },
            Err(error) if opening.required => return Err(error),
            Err(error) => {
                warn_unrecorded(process, &error);
                State::Off { run, seq: 0 }
            }
        };
        Ok(Self {
            state: Mutex::new(state),
            surface: opening.surface,
            process: Arc::clone(process),
            redactor: Arc::clone(&project.redactor),
            session,
            caller,
            retention: project.retention(),
            required: opening.required,
            successes: opening.successes,
            observers,
            in_memory: Mutex::default(),
        })
    }

    /// Opens the record of a run that is there already. It must be recorded.
    pub fn resume(project: &Project, run: RunId, opening: Opening) -> Result<Self, ProjectError> {
        let process = &project.process;
        let (session, caller) = opening.who(process);
        let open = RunJournal::resume(project.journal()?, run, process.id)?;
        Ok(Self {
            state: Mutex::new(State::Open(Box::new(open))),
            surface: opening.surface,
            process: Arc::clone(process),
            redactor: Arc::clone(&project.redactor),
            session,
            caller,
            retention: project.retention(),
            required: true,
            successes: None,
            observers: opening.observers_in(project),
            in_memory: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run's id. Before its first event is written it may still change.
    pub fn run(&self) -> RunId {
        match &*self.state() {
            State::Pending { run, .. } | State::Off { run, .. } => *run,
            State::Open(run) => run.id(),
        }
    }

    /// The redactor of everything that is recorded.
    pub fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&self.redactor)
    }

    /// Who called, and who overrides something where nobody else is named.
    pub fn caller(&self) -> Option<&SafeText> {
        self.caller.as_ref()
    }

    /// Adds to what is written first, with whatever is recorded next. Once something is written, it
    /// is recorded.
    pub fn note_first(&self, kinds: impl IntoIterator<Item = EventKind>) {
        if let State::Pending { waiting, .. } = &mut *self.state() {
            waiting.extend(kinds);
            return;
        }
        let kinds: Vec<EventKind> = kinds.into_iter().collect();
        if !kinds.is_empty() {
            let _ = self.append(kinds);
        }
    }

    /// Records these, in order, all or none, and tells the observers. They come back as they were
    /// stored.
    pub fn append(&self, kinds: Vec<EventKind>) -> Result<Vec<Event>, StoreError> {
        let (events, trouble) = self.write(kinds);
        if let Some(error) = trouble {
            if self.required {
                return Err(error);
            }
            warn_unrecorded(&self.process, &ProjectError::from(error));
        }
        for observer in &self.observers {
            observer.recorded(&events);
        }
        Ok(events)
    }

    /// Writes, and gives what is on record. Where the run need not be recorded, nothing is written
    /// from the first trouble on.
    fn write(&self, kinds: Vec<EventKind>) -> (Vec<Event>, Option<StoreError>) {
        let mut state = self.state();
        if let State::Pending { waiting, held: held @ true, .. } = &mut *state {
            if !kinds.iter().any(needs_recording) {
                waiting.extend(kinds);
                return (Vec::new(), None);
            }
            *held = false;
        }
        let taken = std::mem::replace(&mut *state, State::Off { run: RunId::from_random(0, 4), seq: 0 });
        let (next, events, error) = match taken {
            State::Pending { journal, header, mut waiting, run, .. } => {
                waiting.extend(kinds);
                match journal.begin_with_events(header, waiting.clone()) {
                    Ok((open, events)) => {
                        if let Some(successes) = &self.successes {
                            successes.write(&journal);
                        }
                        (State::Open(Box::new(open)), events, None)
                    }
                    Err(error) => {
                        let events = self.as_events(run, 0, waiting);
                        (State::Off { run, seq: events.len() as u64 }, events, Some(error))
                    }
                }
            }
            State::Open(open) => match open.append(kinds.clone()) {
                Ok(events) => (State::Open(open), events, None),
                Err(error) if self.required => (State::Open(open), Vec::new(), Some(error)),
                Err(error) => {
                    let (run, seq) = (open.id(), open.version());
                    let events = self.as_events(run, seq, kinds);
                    (State::Off { run, seq: seq + events.len() as u64 }, events, Some(error))
                }
            },
            State::Off { run, seq } => {
                let events = self.as_events(run, seq, kinds);
                (State::Off { run, seq: seq + events.len() as u64 }, events, None)
            }
        };
        if !self.required {
            self.in_memory().extend(events.iter().cloned());
        }
        *state = next;
        (events, error)
    }

    fn in_memory(&self) -> MutexGuard<'_, Vec<Event>> {
        self.in_memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Events as they are told, with secrets masked.
    fn as_events(&self, run: RunId, seq: u64, kinds: Vec<EventKind>) -> Vec<Event> {
        let at = self.process.now();
        let masked = backstop_store::masked(&self.redactor, kinds);
        let event = |(seq, kind)| Event {
            schema: EVENT_SCHEMA,
            id: EventId { run, seq },
            run,
            seq,
            at,
            session: self.session.clone(),
            surface: self.surface.to_owned(),
            caller: self.caller.clone(),
            kind,
        };
        (seq + 1..).zip(masked).map(event).collect()
    }

    /// All that was recorded of this run; where nothing could be, what would have been.
    pub fn events(&self) -> Vec<Event> {
        self.recorded().unwrap_or_else(|_| self.in_memory().clone())
    }

    /// Like [`Self::events`], where a journal that cannot be read is an error.
    pub fn recorded(&self) -> Result<Vec<Event>, StoreError> {
        match &*self.state() {
            State::Open(run) => run.journal().load(run.id()),
            State::Pending { run, waiting, .. } => Ok(self.as_events(*run, 0, waiting.clone())),
            State::Off { .. } => Ok(self.in_memory().clone()),
        }
    }

    /// What is recorded next comes after this version, which was written here though that was not
    /// confirmed. The observers are told of it now.
    pub fn continue_from(&self, version: u64) -> Result<(), StoreError> {
        let unconfirmed = match &*self.state() {
            State::Open(run) => {
                let known = run.version();
                let mut events = run.journal().load(run.id())?;
                run.continue_from(version)?;
                events.retain(|event| event.seq > known && event.seq <= version);
                events
            }
            State::Pending { .. } | State::Off { .. } => Vec::new(),
        };
        if !unconfirmed.is_empty() {
            self.observers.iter().for_each(|observer| observer.recorded(&unconfirmed));
        }
        Ok(())
    }

    /// How many events are recorded: the version that the next append expects.
    pub fn version(&self) -> u64 {
        match &*self.state() {
            State::Pending { .. } => 0,
            State::Open(run) => run.version(),
            State::Off { seq, .. } => *seq,
        }
    }

    /// Whether there is something on record.
    pub fn is_recorded(&self) -> bool {
        matches!(&*self.state(), State::Open(_))
    }

    /// The journal that the run is in, where it can be used.
    pub fn journal(&self) -> Option<Journal> {
        match &*self.state() {
            State::Pending { journal, .. } => Some(journal.clone()),
            State::Open(run) => Some(run.journal().clone()),
            State::Off { .. } => None,
        }
    }

    /// Records a process that an attempt has started, so that a later Backstop can end it if this
    /// one dies. Trouble with it is met again by the next event.
    pub fn child_started(&self, child: Child) {
        if let State::Open(run) = &*self.state() {
            let _ = run.child_started(child);
        }
    }

    /// Stores the output of an attempt that failed. Trouble with it is met again by the next event.
    pub fn keep_output(&self, attempt: u32, log: &OutputLog) {
        if let State::Open(run) = &*self.state()
            && !log.is_empty()
        {
            let _ = run.keep_output(attempt, log);
        }
    }

    /// What was attempted lately in this project.
    pub fn recent(&self, window: Duration) -> Recent {
        let since: Timestamp = self.process.now().before(window);
        let mut recent = match &*self.state() {
            State::Open(run) => run.journal().recent_attempts(since).unwrap_or_default(),
            _ => Recent::default(),
        };
        recent.attempts += self.successes.as_ref().map_or(0, |successes| successes.since(since));
        recent
    }

    /// Puts work aside that is to be done later. Nothing, where it cannot be recorded.
    pub fn defer(&self, work: &DeferredWork) -> Option<DeferredId> {
        match &*self.state() {
            State::Open(run) => run.journal().defer(work).ok().map(|deferred| deferred.id),
            _ => None,
        }
    }

    /// The work of this project that is put aside.
    pub fn deferred(&self) -> Vec<Deferred> {
        self.journal().and_then(|journal| journal.deferred().ok()).unwrap_or_default()
    }

    /// How much work of this project is put aside.
    pub fn deferred_count(&self) -> Option<u32> {
        self.journal()?.deferred_count().ok()
    }

    /// The last events of the run. A run that was held back and went well is only counted. Now and
    /// then, what is old goes.
    pub fn end(&self, kinds: Vec<EventKind>) -> Result<Vec<Event>, StoreError> {
        let succeeded = {
            let state = self.state();
            matches!(&*state, State::Pending { held: true, .. }) && !kinds.iter().any(needs_recording)
        };
        if succeeded {
            if let Some(successes) = &self.successes {
                successes.add(self.surface);
                successes.note(self.process.now());
            }
            return Ok(Vec::new());
        }
        let events = self.append(kinds)?;
        self.warn_if_removed();
        self.clean();
        Ok(events)
    }

    /// Warns if the journal's file was removed while this ran: the system lets us write into it,
    /// and nobody will ever read it.
    fn warn_if_removed(&self) {
        let Some(journal) = self.journal() else { return };
        if !journal.file().exists() {
            let what =
                format!("{} was removed meanwhile: the record of this run is lost", journal.file().display());
            self.process.warn(&what, None);
        }
    }

    /// Removes what is old, where that is due.
    pub fn clean(&self) {
        if let State::Open(run) = &*self.state() {
            let _ = run.journal().clean_if_due(&self.retention, &self.process.is_alive);
        }
    }

    /// Tells the observers that nothing more follows, and gives what went wrong with that.
    pub fn close(&self) {
        let events = std::sync::LazyLock::new(|| self.events());
        for observer in &self.observers {
            observer.ended(&|| events.clone());
        }
    }
}

/// Whether an event says that something did not go well: then everything is recorded.
fn needs_recording(kind: &EventKind) -> bool {
    match kind {
        EventKind::RunStarted { .. } | EventKind::AttemptStarted { .. } => false,
        EventKind::AttemptFinished { success, .. } => !success,
        EventKind::RunEnded { outcome, .. } => *outcome != Outcome::Done,
        EventKind::BudgetConsumed { .. } | EventKind::BudgetRefunded { .. } => false,
        _ => true,
    }
}

fn warn_unrecorded(process: &Process, error: &ProjectError) {
    process.warn(&format!("this run is not recorded: {error}"), error.hints().first().map(String::as_str));
}

impl Record for Recorder {
    fn record(&self, kinds: Vec<EventKind>) -> Result<(), RecordError> {
        self.append(kinds).map(|_| ()).map_err(|error| RecordError(error.to_string()))
    }
}
