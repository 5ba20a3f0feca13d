//! Between the host of a stage and the campaign: requests to stop, and what builders are to know.

use crate::knowledge::Knowledge;
use backstop_core::Event;
use backstop_plan::record::RunRecord;
use backstop_runtime::host::{HostState, Note, Observer, ObserverError, StopRequest};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Passes requests to stop on to the stage that is under way. One that comes between two stages
/// stops the next.
pub(crate) struct Relay {
    state: Arc<Mutex<RelayState>>,
}

#[derive(Default)]
struct RelayState {
    to: Option<Sender<StopRequest>>,
    last: Option<StopRequest>,
}

impl Relay {
    pub(crate) fn new(requests: Receiver<StopRequest>) -> Self {
        let state: Arc<Mutex<RelayState>> = Arc::default();
        let passing = Arc::clone(&state);
        // Ends with the process, or when whoever asks is gone.
        std::thread::spawn(move || {
            while let Ok(request) = requests.recv() {
                let mut state = passing.lock().unwrap_or_else(PoisonError::into_inner);
                state.last = Some(request);
                if let Some(to) = &state.to {
                    let _ = to.send(request);
                }
            }
        });
        Self { state }
    }

    /// The requests of the next stage, and how the campaign itself stops it.
    pub(crate) fn stage(&self) -> (Receiver<StopRequest>, Sender<StopRequest>) {
        let (sender, receiver) = channel();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = state.last {
            let _ = sender.send(last);
        }
        state.to = Some(sender.clone());
        (receiver, sender)
    }

    /// Whether somebody has asked for the end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).last.is_some()
    }
}

/// Follows a stage for the campaign and for whoever watches.
pub(crate) struct StageObserver<'o> {
    pub(crate) inner: Box<dyn Observer<RunRecord> + 'o>,
    pub(crate) known: Option<Arc<Mutex<Knowledge>>>,
    pub(crate) stopper: Sender<StopRequest>,
    /// Whether the campaign itself has asked for the end, and nobody else was told of it yet.
    pub(crate) is_own_stop: bool,
}

impl Observer<RunRecord> for StageObserver<'_> {
    fn started(&mut self, opened: &[Event], state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        self.inner.started(opened, state)
    }

    fn applied(&mut self, event: &Event, record: &RunRecord) {
        self.inner.applied(event, record);
    }

    fn recorded(&mut self, events: &[Event], state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        if let Some(known) = &self.known {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let before = known.forced.is_some();
            events.iter().for_each(|event| known.learn(event));
            known.count(events);
            if known.forced.is_some() && !before {
                // Nothing more begins; what runs may end.
                self.is_own_stop = self.stopper.send(StopRequest::Finish).is_ok();
            }
        }
        self.inner.recorded(events, state)
    }

    fn due_in(&self, now: Duration) -> Option<Duration> {
        self.inner.due_in(now)
    }

    fn tick(&mut self, state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        self.inner.tick(state)
    }

    fn noted(&mut self, node: Option<usize>, note: &Note) {
        self.inner.noted(node, note);
    }

    fn stop_requested(&mut self, request: StopRequest, running: usize) {
        // Nobody pressed a key: nobody is told what another one would do.
        let is_own = std::mem::take(&mut self.is_own_stop) && request == StopRequest::Finish;
        if !is_own {
            self.inner.stop_requested(request, running);
        }
    }

    fn trouble(&mut self, message: &str) {
        self.inner.trouble(message);
    }

    fn before_end(&mut self, state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        self.inner.before_end(state)
    }

    fn closed(&mut self, state: &HostState<'_, RunRecord>) -> Result<(), ObserverError> {
        self.inner.closed(state)
    }
}
