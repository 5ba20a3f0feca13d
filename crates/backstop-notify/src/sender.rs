//! The sender: takes due notes from the outbox, delivers them, and exits when there is nothing more
//! to wait for.
//!
//! A user has one; the caller holds its lock. Each target has one delivery in progress at a time,
//! and targets do not wait for each other. A message that cannot be delivered now is postponed a
//! few times, longer each time.

use super::{Credential, DeliveryOutcome, Message, Sink, Times, deliver, limits};
use backstop_core::{Policy, SafeText, Timestamp};
use backstop_engine::Engine;
use backstop_http::Client;
use backstop_store::{Delivered, Note, Outbox, StoreError};
use std::collections::HashSet;
use std::time::Duration;
use tokio::task::JoinSet;

/// The sender exits after this long without work.
const IDLE: Duration = Duration::from_secs(2);
/// How often it polls while deliveries are in progress.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often it polls while it only waits.
const LOOK_SELDOM: Duration = Duration::from_secs(1);
/// The first postponement; it doubles each time.
const PUT_OFF: Duration = Duration::from_secs(30);
/// How often a message is postponed before it is given up.
const ROUNDS_MAX: u32 = 6;
/// The longest wait within a delivery. If the server asks for more, the message is postponed
/// instead.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// A sink looked up in the current configuration, with its secret.
#[derive(Debug, Clone)]
pub enum Resolved {
    /// The sink, and its secret if it needs one.
    Sink(Box<Sink>, Option<Credential>),
    /// The secret is not in this sender's environment; another sender may have it.
    NoSecret {
        /// The environment variable.
        variable: String,
    },
    /// The sink no longer exists; why, in words.
    Gone(SafeText),
}

/// The result of a sender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SenderEnd {
    /// The number of notes that wait for a sender with their secret.
    pub without_secret: u32,
}

/// Delivers the notes of an outbox.
pub struct Sender<'s> {
    /// The outbox.
    pub outbox: &'s Outbox,
    /// Looks a sink up by its project and name.
    pub resolve: &'s dyn Fn(&Note) -> Resolved,
    /// Whether another sender waits to take over.
    pub relieved: &'s dyn Fn() -> bool,
    /// The retry policy: the `request` profile.
    pub policy: Policy,
    /// Sends requests.
    pub client: Client,
}

impl std::fmt::Debug for Sender<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").field("outbox", &self.outbox).finish_non_exhaustive()
    }
}

/// A delivery that has ended.
struct Done {
    note: i64,
    target: String,
    rounds: u32,
    outcome: DeliveryOutcome,
}

impl Sender<'_> {
    /// Delivers until there is nothing left to wait for.
    pub async fn run(&self) -> Result<SenderEnd, StoreError> {
        self.outbox.recover()?;
        let policy = Policy { wait_max: self.policy.wait_max.min(WAIT_MAX), ..self.policy.clone() };
        let engine = Engine::new(policy);
        let mut end = SenderEnd::default();
        let mut under_way: JoinSet<Done> = JoinSet::new();
        let mut busy: HashSet<String> = HashSet::new();
        let mut passed_over: HashSet<i64> = HashSet::new();
        let mut idle = Duration::ZERO;
        loop {
            let now = self.outbox.now();
            let mut next: Option<Timestamp> = None;
            let sent = self.outbox.sent_since(now.before(limits::SINK_WINDOW))?;
            for note in self.outbox.queued()? {
                if passed_over.contains(&note.id) || busy.contains(&note.note.target) {
                    continue;
                }
                let due = limits::due(&note, &sent, now);
                if due > now {
                    next = Some(next.map_or(due, |next| next.min(due)));
                    continue;
                }
                match self.begin(&note, &engine, &mut under_way)? {
                    Begun::UnderWay => {
                        busy.insert(note.note.target.clone());
                    }
                    Begun::PassedOver => {
                        passed_over.insert(note.id);
                        self.outbox.give_up(note.id)?;
                    }
                    Begun::Over => {}
                }
                idle = Duration::ZERO;
            }
            end.without_secret = u32::try_from(passed_over.len()).unwrap_or(u32::MAX);
            let waiting = next.is_some() && self.outbox.file().exists();
            if under_way.is_empty()
                && ((idle >= IDLE && !waiting) || (end.without_secret > 0 && (self.relieved)()))
            {
                self.outbox.forget_old()?;
                return Ok(end);
            }
            let left = next.map_or(LOOK_EVERY, |next| next.since(now));
            let pause = if idle < IDLE { LOOK_EVERY } else { LOOK_SELDOM };
            let pause = pause.min(left).max(Duration::from_millis(10));
            match tokio::time::timeout(pause, under_way.join_next()).await {
                Ok(Some(Ok(done))) => {
                    busy.remove(&done.target);
                    idle = Duration::ZERO;
                    self.finish(&done)?;
                }
                // Nothing is in progress: sleep for the rest of the pause.
                Ok(None) => {
                    tokio::time::sleep(pause).await;
                    idle += pause;
                }
                Ok(Some(Err(_))) | Err(_) => {}
            }
        }
    }

    fn begin(
        &self,
        note: &Note,
        engine: &Engine,
        under_way: &mut JoinSet<Done>,
    ) -> Result<Begun, StoreError> {
        let (sink, credential) = match (self.resolve)(note) {
            Resolved::Sink(sink, credential) => (sink, credential),
            Resolved::NoSecret { .. } => return Ok(Begun::PassedOver),
            Resolved::Gone(why) => {
                self.outbox.finish(note.id, &Delivered::Failed(why))?;
                return Ok(Begun::Over);
            }
        };
        // From here on nothing is merged into this note: a repetition becomes another message.
        let Some(note) = self.outbox.take(note.id)? else { return Ok(Begun::PassedOver) };
        let message: Message = match serde_json::from_value(note.note.body.clone()) {
            Ok(message) => message,
            Err(error) => {
                let why = SafeText::new(format!("it cannot be read: {error}"));
                self.outbox.finish(note.id, &Delivered::Failed(why))?;
                return Ok(Begun::Over);
            }
        };
        let times = Times {
            count: note.count,
            first: note.first_at,
            last: note.last_at,
            mixed: note.note.group == Outbox::OTHERS,
            names: note.labels.clone(),
        };
        let (engine, client) = (engine.clone(), self.client.clone());
        under_way.spawn(async move {
            let outcome = deliver(&engine, &client, &sink, credential.as_ref(), &message, &times).await;
            Done { note: note.id, target: note.note.target, rounds: note.rounds, outcome }
        });
        Ok(Begun::UnderWay)
    }

    fn finish(&self, done: &Done) -> Result<(), StoreError> {
        let delivered = match &done.outcome {
            DeliveryOutcome::Sent { response, .. } => Delivered::Sent(response.clone()),
            DeliveryOutcome::Later { why, wait, .. } if done.rounds < ROUNDS_MAX => {
                let doubled = PUT_OFF.saturating_mul(1 << done.rounds.min(10));
                let wait = wait.unwrap_or_default().max(doubled).min(limits::PUT_OFF_MAX);
                Delivered::Later { until: self.outbox.now().after(wait), why: why.clone() }
            }
            DeliveryOutcome::Later { why, .. } | DeliveryOutcome::Refused { why, .. } => {
                Delivered::Failed(why.clone())
            }
        };
        self.outbox.finish(done.note, &delivered)
    }
}

/// What happened to a due note.
enum Begun {
    UnderWay,
    PassedOver,
    Over,
}
