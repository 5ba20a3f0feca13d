//! What the tests share: a state folder of their own, with a clock that they can set.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use backstop_core::{EventKind, Fault, Outcome, Reason, Redactor, Timestamp};
use backstop_store::{Journal, ProcessId, RunHeader, StateFolder};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// When the tests begin: a day in November 2023.
pub const START: i64 = 1_700_000_000_000;

/// A process that is never alive.
pub const GONE: ProcessId = ProcessId { pid: 999_999, start: 1 };

/// A process that is alive where a test says so.
pub const HERE: ProcessId = ProcessId { pid: 7, start: 42 };

pub fn here_is_alive(process: &ProcessId) -> bool {
    *process == HERE
}

pub struct Place {
    _temp: tempfile::TempDir,
    pub folder: StateFolder,
    pub project: PathBuf,
    now: Arc<AtomicI64>,
}

impl Place {
    pub fn new() -> Self {
        Self::knowing(&[])
    }

    /// A place whose redactor knows these secrets.
    pub fn knowing(secrets: &[&str]) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let project = temp.path().join("shop");
        std::fs::create_dir(&project).unwrap();
        let now = Arc::new(AtomicI64::new(START));
        let clock = Arc::clone(&now);
        let folder = StateFolder::open(
            &temp.path().join("state"),
            Arc::new(move || Timestamp::from_millis(clock.load(Ordering::SeqCst))),
            Arc::new(Redactor::new(secrets)),
        )
        .unwrap();
        Self { _temp: temp, folder, project, now }
    }

    pub fn base(&self) -> &Path {
        self._temp.path()
    }

    pub fn journal(&self) -> Journal {
        Journal::open(&self.folder, &self.project).unwrap()
    }

    pub fn set(&self, millis: i64) {
        self.now.store(millis, Ordering::SeqCst);
    }

    pub fn pass_days(&self, days: i64) {
        self.now.fetch_add(days * 24 * 60 * 60 * 1000, Ordering::SeqCst);
    }
}

/// A state folder somewhere else, as another process opens it.
pub fn folder_at(root: &Path) -> StateFolder {
    let clock = Arc::new(|| Timestamp::from_millis(START));
    StateFolder::open(root, clock, Arc::new(Redactor::default())).unwrap()
}

pub fn header(random: u64) -> RunHeader {
    RunHeader::new("exec", HERE, random)
}

pub fn started(operation: &str) -> EventKind {
    EventKind::RunStarted { operation: operation.into(), folder: None, profile: None, parent: None }
}

pub fn attempt(operation: &str, attempt: u32) -> EventKind {
    EventKind::AttemptStarted { operation: operation.into(), attempt }
}

pub fn finished(operation: &str, attempt: u32) -> EventKind {
    EventKind::AttemptFinished {
        operation: operation.into(),
        attempt,
        success: true,
        duration_ms: 12,
        exit: Some(0),
        signal: None,
        output: None,
        delivery: None,
    }
}

pub fn classified(operation: &str, attempt: u32, reason: Reason) -> EventKind {
    EventKind::ErrorClassified { operation: operation.into(), attempt, fault: Box::new(Fault::new(reason)) }
}

pub fn ended(outcome: Outcome) -> EventKind {
    EventKind::RunEnded { outcome, reason: None, attempts: 1, duration_ms: 12, exit: Some(0), next: None }
}

/// Runs one ignored test of this binary in a process of its own, with the state folder and a word
/// to tell it.
#[allow(clippy::disallowed_methods, reason = "a test tells its children by their environment")]
pub fn child(test: &str, state: &Path, project: &Path, word: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--ignored", "--nocapture", "--test-threads", "1"])
        .env("BACKSTOP_TEST_STATE", state)
        .env("BACKSTOP_TEST_PROJECT", project)
        .env("BACKSTOP_TEST_WORD", word);
    command
}

/// The arguments that [`child`] passed; `None` where somebody runs the ignored tests by hand.
#[allow(clippy::disallowed_methods, reason = "a test tells its children by their environment")]
pub fn child_arguments() -> Option<(StateFolder, PathBuf, String)> {
    let state = std::env::var_os("BACKSTOP_TEST_STATE")?;
    let project = std::env::var_os("BACKSTOP_TEST_PROJECT")?;
    let word = std::env::var("BACKSTOP_TEST_WORD").ok()?;
    Some((folder_at(Path::new(&state)), project.into(), word))
}
