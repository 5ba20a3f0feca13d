//! Who is told what was recorded.

use crate::process::Process;
use backstop_core::Event;
use backstop_files::GivenPath;
use std::sync::{Arc, Mutex};

/// Somebody who is told what was recorded, after it was.
pub trait Observer: Send + Sync {
    /// These events are on record, or would be if they could.
    fn recorded(&self, events: &[Event]);
    /// Nothing more follows. `events` gives the whole run.
    fn ended(&self, _events: &dyn Fn() -> Vec<Event>) {}
}

/// Everybody who is told what is recorded of a run, as whoever starts it says.
#[derive(Clone, Default)]
pub struct Observers(pub Vec<Arc<dyn Observer>>);

impl std::fmt::Debug for Observers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} observers", self.0.len())
    }
}

/// Appends classified errors to a file that others tail, as `events --jsonl` prints them.
pub struct TailFile {
    file: GivenPath,
    process: Arc<Process>,
    /// The last trouble that was told.
    told: Mutex<Option<String>>,
}

impl TailFile {
    /// Appends to this file.
    pub fn new(file: GivenPath, process: Arc<Process>) -> Self {
        Self { file, process, told: Mutex::default() }
    }
}

impl Observer for TailFile {
    fn recorded(&self, events: &[Event]) {
        let lines: String = events
            .iter()
            .filter_map(backstop_report::event_gdd)
            .map(|value| format!("{}\n", backstop_report::to_json(&value)))
            .collect();
        if lines.is_empty() {
            return;
        }
        if let Err(error) = self.file.append_lines(lines.as_bytes()) {
            let what = format!("cannot append events: {error}");
            let mut told = self.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if told.as_ref() != Some(&what) {
                self.process.warn(&what, None);
                *told = Some(what);
            }
        }
    }
}
