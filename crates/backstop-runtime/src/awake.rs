//! Keeps the machine awake while a run works, and lets it sleep while the run only waits.
//!
//! A helper of the system does it (`systemd-inhibit`, `caffeinate`) for as long as `cat` runs under
//! it; `cat` ends when our end of its input is closed, so that a Backstop which is killed keeps
//! nothing awake. Where there is no helper, nothing happens: it must not make a run fail, wait or
//! print.

use crate::host::{Fold, HostState, Observer, ObserverError};
use backstop_core::{Event, NodeState};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// The helpers, each with the words before the command that it runs.
const HELPERS: [&[&str]; 2] = [
    &["systemd-inhibit", "--what=sleep:idle", "--mode=block", "--who=Backstop", "--why=a plan is running"],
    &["caffeinate", "-i"],
];

/// Keeps the machine awake while a run's nodes are worked on.
#[derive(Debug)]
pub struct KeepAwake {
    is_wanted: bool,
    helper: Option<Child>,
}

impl KeepAwake {
    /// Where `is_wanted`; otherwise it does nothing.
    pub fn new(is_wanted: bool) -> Self {
        Self { is_wanted, helper: None }
    }

    fn set(&mut self, awake: bool) {
        if awake && self.is_wanted && self.helper.is_none() {
            self.helper = HELPERS.iter().find_map(|words| start(words));
            // Without a helper it is not tried again.
            self.is_wanted = self.helper.is_some();
        } else if !awake && let Some(mut helper) = self.helper.take() {
            // `cat` ends with its input, and the helper with `cat`.
            drop(helper.stdin.take());
            let _ = helper.wait();
        }
    }
}

impl Drop for KeepAwake {
    fn drop(&mut self) {
        self.set(false);
    }
}

fn start(words: &[&str]) -> Option<Child> {
    let (program, args) = words.split_first()?;
    Command::new(program)
        .args(args)
        .arg("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C is for the run: it lets its phases end, and they need the machine.
        .process_group(0)
        .spawn()
        .ok()
}

/// Whether a run does nothing but wait: for a time, or for a rate limit.
fn only_waits<R: Fold>(state: &HostState<'_, R>) -> bool {
    let nodes = 0..state.schedule.graph().len();
    let waits = |at: usize| matches!(state.schedule.state(at), NodeState::Waiting { not_before, .. } if *not_before > state.now);
    let is_scheduled = state.record.progress().starts_at.is_some();
    state.schedule.running().is_empty() && (is_scheduled || nodes.into_iter().any(waits))
}

impl<R: Fold> Observer<R> for KeepAwake {
    fn started(&mut self, _: &[Event], state: &HostState<'_, R>) -> Result<(), ObserverError> {
        self.set(!only_waits(state));
        Ok(())
    }

    fn recorded(&mut self, _: &[Event], state: &HostState<'_, R>) -> Result<(), ObserverError> {
        self.set(!only_waits(state));
        Ok(())
    }

    fn closed(&mut self, _: &HostState<'_, R>) -> Result<(), ObserverError> {
        self.set(false);
        Ok(())
    }
}
