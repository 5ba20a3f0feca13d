//! Begins a run: its header, and an id that is free.

use crate::RunSummary;
use crate::fold::fold;
use crate::row::{insert_events, insert_run};
use crate::{Journal, ProcessId, RunJournal, RunState, StoreError};
use backstop_core::{Event, EventKind, RunId, SafeText};

/// The smallest and the largest number of digits in a run's id.
const DIGITS: std::ops::RangeInclusive<u32> = 4..=16;

/// How many further random numbers are derived before giving up.
const ROUNDS_MAX: u32 = 64;

/// What is known of a run when it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHeader {
    /// The surface that begins it, e.g. `exec`, `hook`, `run`.
    pub surface: String,
    /// The session of the agent or the person, if known.
    pub session: Option<SafeText>,
    /// Who called, if known.
    pub caller: Option<SafeText>,
    /// The run that started this one.
    pub parent: Option<RunId>,
    /// The Backstop process.
    pub process: ProcessId,
    /// A random number, from which the id is made.
    pub random: u64,
}

impl RunHeader {
    /// A header with only the fields that every run has.
    pub fn new(surface: impl Into<String>, process: ProcessId, random: u64) -> Self {
        Self { surface: surface.into(), session: None, caller: None, parent: None, process, random }
    }
}

impl Journal {
    /// Begins a run: picks an id that is free in this project, and records the run with its first
    /// events in one transaction.
    pub fn begin(&self, header: RunHeader, first: Vec<EventKind>) -> Result<RunJournal, StoreError> {
        Ok(self.begin_with_events(header, first)?.0)
    }

    /// Like [`Journal::begin`], and returns the first events as they were stored.
    pub fn begin_with_events(
        &self,
        header: RunHeader,
        first: Vec<EventKind>,
    ) -> Result<(RunJournal, Vec<Event>), StoreError> {
        let at = self.now();
        let masked = self.mask(first)?;
        let mut run = RunSummary {
            id: RunId::from_random(header.random, *DIGITS.start()),
            events: masked.len() as u64,
            state: RunState::Open,
            surface: header.surface,
            session: header.session.map(|text| self.mask_text(&text)),
            caller: header.caller.map(|text| self.mask_text(&text)),
            parent: header.parent,
            process: header.process,
            operation: None,
            folder: None,
            profile: None,
            started_at: at,
            ended_at: None,
            outcome: None,
            reason: None,
            attempts: 0,
            exit: None,
            duration_ms: None,
            next: None,
        };
        for event in &masked {
            fold(&mut run, &event.kind, at);
        }
        let (row, events) = self.write(false, |tx| {
            for id in ids(header.random) {
                run.id = id;
                if let Some(row) = insert_run(tx, &run)? {
                    let events = insert_events(tx, &row, 0, masked, at)?;
                    return Ok((row, events));
                }
            }
            let what = format!("a run beside {}", run.id);
            let why = "no id is free: is the random number always the same?".to_owned();
            Err(StoreError::Unrecordable { what, file: self.file().to_owned(), why }.into())
        })?;
        Ok((RunJournal::new(self.clone(), row), events))
    }
}

/// The ids to try: longer and longer prefixes of one random number, then of others derived from it.
fn ids(random: u64) -> impl Iterator<Item = RunId> {
    let randoms = (0..ROUNDS_MAX).map(move |round| {
        random.wrapping_add(u64::from(round).wrapping_mul(0x9e37_79b9_7f4a_7c15)).rotate_left(round)
    });
    randoms.flat_map(|random| DIGITS.map(move |digits| RunId::from_random(random, digits)))
}
