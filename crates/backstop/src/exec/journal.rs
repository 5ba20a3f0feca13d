//! The record of one `exec`: written first, then told.
//!
//! When the store cannot be written, the command goes on: one warning, and the events are told but not kept.

use super::countdown::Countdown;
use crate::cli::{Exec, LogFormat};
use crate::context::{self, Context};
use crate::error::CliError;
use crate::{leftovers, terminal};
use backstop_core::guard::Closed;
use backstop_core::{
    Action, EVENT_SCHEMA, Event, EventId, EventKind, Fault, Name, Reason, Recent, Record, RecordError,
    Redactor, RunId, SafeText,
};
use backstop_report::Style;
use backstop_store::{
    Child, Deferred, DeferredId, DeferredWork, Journal, Retention, RunHeader, RunJournal, StateFolder,
    UserStore,
};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The record of one `exec`.
pub(super) struct ExecJournal {
    state: Mutex<State>,
    redactor: Arc<Redactor>,
    log_format: LogFormat,
    quiet: bool,
    style: Style,
    surface: &'static str,
    session: Option<SafeText>,
    caller: Option<SafeText>,
    why: Option<String>,
    parent: Option<RunId>,
    folder: String,
    tail_to: Option<PathBuf>,
    retention: Retention,
    state_folder: Option<StateFolder>,
    /// The line about the attempt that failed last.
    failed: Mutex<String>,
    countdown: Countdown,
    /// When the current attempt began, in milliseconds.
    attempt_at: AtomicI64,
    /// The most attempts that a Backstop below has made.
    below: AtomicU32,
    /// How it began, and what was told since: where it cannot be kept, people have to be told all the same.
    started: EventKind,
    told: Mutex<Vec<Event>>,
}

enum State {
    /// Nothing is written yet.
    Pending { journal: Journal, header: RunHeader, first: Vec<EventKind>, run: RunId },
    /// Everything is written.
    Open(Box<RunJournal>),
    /// Nothing can be written.
    Off { run: RunId, seq: u64 },
}

impl ExecJournal {
    pub(super) fn open(
        args: &Exec,
        context: &Context,
        command: &str,
        profile: &str,
        parent: Option<RunId>,
    ) -> Self {
        let random = context::random();
        let folder = std::env::current_dir().unwrap_or_default().display().to_string();
        let (caller, session) = context::caller_and_session();
        let text =
            |given: &Option<String>, variable: Option<String>| given.clone().or(variable).map(SafeText::new);
        let (caller, session) = (text(&args.caller, caller), text(&args.session, session));
        let run = RunId::from_random(random, 4);
        let opened = context.journal();
        let state_folder = context.folder().ok();
        let started = EventKind::RunStarted {
            operation: SafeText::new(command),
            folder: Some(SafeText::new(folder.clone())),
            profile: Some(profile.to_owned()),
            parent,
        };
        let this = Self {
            state: Mutex::new(State::Off { run, seq: 0 }),
            redactor: Arc::clone(&context.redactor),
            log_format: context.log_format,
            quiet: args.is_quiet(),
            style: terminal::stderr_style(),
            surface: "exec",
            session: session.clone(),
            caller: caller.clone(),
            why: args.why.clone(),
            parent,
            folder: folder.clone(),
            tail_to: context.config.tail_to(),
            retention: context.retention(),
            state_folder,
            failed: Mutex::default(),
            countdown: Countdown::default(),
            attempt_at: AtomicI64::new(0),
            below: AtomicU32::new(0),
            started: started.clone(),
            told: Mutex::default(),
        };
        match opened {
            Ok(journal) => {
                let header =
                    RunHeader { session, caller, parent, ..RunHeader::new("exec", context::host(), random) };
                *this.state() = State::Pending { journal, header, first: vec![started], run };
            }
            Err(error) => this.warn(&error),
        }
        this
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run's id. Before the first event it may still change.
    pub(super) fn run(&self) -> RunId {
        match &*self.state() {
            State::Pending { run, .. } | State::Off { run, .. } => *run,
            State::Open(run) => run.id(),
        }
    }

    pub(super) fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&self.redactor)
    }

    fn warn(&self, error: &CliError) {
        terminal::warn(
            &format!("this run is not recorded: {error}"),
            error.hints().first().map(String::as_str),
        );
    }

    /// Writes, and gives what is on record. From the first trouble on nothing is written any more.
    fn write(&self, kinds: Vec<EventKind>) -> Vec<Event> {
        let mut state = self.state();
        let taken = std::mem::replace(&mut *state, State::Off { run: RunId::from_random(0, 4), seq: 0 });
        let (next, events, error) = match taken {
            State::Pending { journal, header, mut first, run } => {
                first.extend(kinds.clone());
                match journal.begin(header, first) {
                    Ok(open) => {
                        let events = if self.log_format == LogFormat::Json {
                            journal.load(open.id()).unwrap_or_default()
                        } else {
                            self.as_events(open.id(), 0, kinds)
                        };
                        (State::Open(Box::new(open)), events, None)
                    }
                    Err(error) => {
                        let events = self.as_events(run, 0, kinds);
                        (State::Off { run, seq: events.len() as u64 }, events, Some(error))
                    }
                }
            }
            State::Open(open) => match open.append(kinds.clone()) {
                Ok(events) => (State::Open(open), events, None),
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
        self.told().extend(events.clone());
        *state = next;
        drop(state);
        if let Some(error) = error {
            self.warn(&CliError::from(error));
        }
        events
    }

    /// Events that are told without being kept.
    fn as_events(&self, run: RunId, seq: u64, kinds: Vec<EventKind>) -> Vec<Event> {
        let masked = backstop_store::masked(&self.redactor, kinds);
        (seq + 1..)
            .zip(masked)
            .map(|(seq, kind)| Event {
                schema: EVENT_SCHEMA,
                id: EventId { run, seq },
                run,
                seq,
                at: context::now(),
                session: self.session.clone(),
                surface: self.surface.to_owned(),
                caller: self.caller.clone(),
                kind,
            })
            .collect()
    }

    fn tell(&self, events: &[Event]) {
        self.countdown.stop();
        if let Some(file) = &self.tail_to {
            let lines: String = events
                .iter()
                .filter_map(backstop_report::event_gdd)
                .map(|value| format!("{}\n", backstop_report::to_json(&value)))
                .collect();
            if !lines.is_empty()
                && let Err(error) = terminal::append(file, &lines)
            {
                terminal::warn(&format!("cannot append to {}: {error}", file.display()), None);
            }
        }
        if self.quiet && self.log_format == LogFormat::Human {
            return;
        }
        for event in events {
            let line = match self.log_format {
                LogFormat::Json => Some(backstop_report::to_json(event)),
                LogFormat::Emit => backstop_report::event_emit(event),
                LogFormat::Human => self.human(&event.kind),
            };
            if let Some(line) = line {
                terminal::say(&format!("{line}\n"));
            }
            if let (LogFormat::Human, EventKind::DecisionMade { decision, .. }) =
                (self.log_format, &event.kind)
                && let Action::Retry { after, .. } | Action::AwaitGuard { after, .. } = &decision.action
            {
                self.countdown.start(*after);
            }
        }
    }

    /// What a person is told while it goes on. How it ended is told at the end.
    fn human(&self, kind: &EventKind) -> Option<String> {
        match kind {
            EventKind::ErrorClassified { attempt, fault, .. } => {
                // Told with what is done about it; a failure that ends the run is told by the ending.
                let line = backstop_report::attempt_failed(*attempt, fault, self.style);
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = line;
                None
            }
            EventKind::DecisionMade { decision, .. } => match &decision.action {
                Action::Retry { after, attempt, of } | Action::AwaitGuard { after, attempt, of, .. } => {
                    let failed =
                        std::mem::take(&mut *self.failed.lock().unwrap_or_else(PoisonError::into_inner));
                    let retrying = backstop_report::retrying(*after, *attempt, *of, self.style);
                    Some(format!("{failed}\n{retrying}"))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Tells that a guard is waited for.
    pub(super) fn waiting(&self, provider: &Name, closed: &Closed) {
        if self.quiet || self.log_format != LogFormat::Human {
            return;
        }
        let left = closed.left(context::now());
        let why = SafeText::new(closed.why.clone()).line(100);
        let dot = self.style.dot();
        terminal::say(&format!(
            "waiting {} for {provider} ({why}){dot}Ctrl-C to stop\n",
            backstop_report::duration(left)
        ));
        self.countdown.start(left);
    }

    /// Ends what a killed Backstop left behind in this project, and closes its runs.
    pub(super) fn end_leftovers(&self) {
        let state = self.state();
        let State::Pending { journal, .. } = &*state else { return };
        for cut_off in leftovers::end_all(journal) {
            if !self.quiet {
                terminal::warn(&cut_off.warning(), None);
            }
        }
    }

    /// Records what a person overrides, before it takes effect.
    pub(super) fn overridden(&self, typed: &[String]) {
        let by = self.caller.clone().unwrap_or_else(|| SafeText::new("command line"));
        let rationale = SafeText::new(self.why.clone().unwrap_or_else(|| "none given".to_owned()));
        let kinds = typed.iter().map(|typed| EventKind::Override {
            by: by.clone(),
            what: SafeText::new(typed.clone()),
            rationale: rationale.clone(),
        });
        if let State::Pending { first, .. } = &mut *self.state() {
            first.extend(kinds);
        }
    }

    pub(super) fn child_started(&self, child: Child) {
        if let State::Open(run) = &*self.state() {
            // The next event meets the same trouble and warns of it.
            let _ = run.child_started(child);
        }
    }

    /// What was attempted lately in this project.
    pub(super) fn recent(&self, window: Duration) -> Recent {
        let since = context::now().before(window);
        match &*self.state() {
            State::Open(run) => run.journal().recent_attempts(since).unwrap_or_default(),
            _ => Recent::default(),
        }
    }

    /// Another attempt begins: what was tried below before does not count for it.
    pub(super) fn attempt_begins(&self) {
        self.attempt_at.store(context::now().as_millis(), Ordering::SeqCst);
    }

    /// All that was recorded of this run; where nothing could be, what would have been.
    pub(super) fn events(&self) -> Vec<Event> {
        match &*self.state() {
            State::Open(run) => run.journal().load(run.id()).unwrap_or_default(),
            State::Pending { run, .. } | State::Off { run, .. } => {
                let mut events = self.as_events(*run, 0, vec![self.started.clone()]);
                events.append(&mut self.told());
                events
            }
        }
    }

    fn told(&self) -> MutexGuard<'_, Vec<Event>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a story to tell.
    pub(super) fn is_recorded(&self) -> bool {
        matches!(&*self.state(), State::Open(_))
    }

    /// How often a Backstop inside this attempt has tried already.
    pub(super) fn retried_below(&self) -> Option<u32> {
        let State::Open(run) = &*self.state() else { return None };
        let since = backstop_core::Timestamp::from_millis(self.attempt_at.load(Ordering::SeqCst));
        let user = UserStore::open_existing(self.state_folder.as_ref()?).ok()??;
        let below = user.nested(run.id(), since).ok()?.map(|nested| nested.attempts);
        self.below.fetch_max(below.unwrap_or(0), Ordering::SeqCst);
        below
    }

    /// Tells the run that started this one that retries were made here, or below, and did not help.
    pub(super) fn note_nested(&self, attempts: u32, fault: Option<&Fault>) {
        let attempts = attempts.max(self.below.load(Ordering::SeqCst));
        if let (Some(parent), Some(fault), Some(folder), true) =
            (self.parent, fault, &self.state_folder, attempts > 1)
            && let Ok(user) = UserStore::open(folder)
        {
            let _ = user.note_nested(parent, self.run(), attempts, fault.reason);
        }
    }

    /// Puts the command aside.
    pub(super) fn defer(
        &self,
        words: &[OsString],
        argv: &[OsString],
        reason: Option<Reason>,
        until: &str,
        address: Option<String>,
    ) -> Option<DeferredId> {
        let state = self.state();
        let State::Open(run) = &*state else { return None };
        let work = DeferredWork {
            run: run.id(),
            argv: words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            whole: argv.iter().all(|word| word.to_str().is_some()),
            folder: self.folder.clone(),
            reason: reason.unwrap_or(Reason::Unknown),
            until: SafeText::new(until),
            is_task: false,
            address,
        };
        run.journal().defer(&work).ok().map(|deferred| deferred.id)
    }

    /// How much work of this project is put aside.
    pub(super) fn deferred_count(&self) -> Option<u32> {
        match &*self.state() {
            State::Pending { journal, .. } => journal.deferred_count().ok(),
            State::Open(run) => run.journal().deferred_count().ok(),
            State::Off { .. } => None,
        }
    }

    /// The work of this project that is put aside.
    pub(super) fn deferred(&self) -> Vec<Deferred> {
        match &*self.state() {
            State::Open(run) => run.journal().deferred().unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// Records what followed the end, where something did.
    pub(super) fn note(&self, kinds: Vec<EventKind>) {
        if !kinds.is_empty() {
            self.tell(&self.write(kinds));
        }
    }

    /// The last events of the run; then, now and then, what is old goes.
    pub(super) fn finish(&self, kinds: Vec<EventKind>) {
        let events = self.write(kinds);
        self.tell(&events);
        if let State::Open(run) = &*self.state() {
            let _ = run.journal().clean_if_due(&self.retention, &context::is_alive);
        }
    }
}

impl Record for ExecJournal {
    fn record(&self, kinds: Vec<EventKind>) -> Result<(), RecordError> {
        let events = self.write(kinds);
        self.tell(&events);
        Ok(())
    }
}
