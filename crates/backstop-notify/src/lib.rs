//! Notifications: what a person must know reaches a person, once.
//!
//! Recorded events are what triggers them ([`ended`]). A [`Message`] goes to every [`Sink`] whose [`Route`] takes it, by way
//! of the outbox ([`queue`]): nothing here waits for a network, except the one [`Sender`] of a user, which is a process of its
//! own. It delivers through the engine, so that what a wait cures is waited for and the rest is not tried again.
//!
//! What is the same trouble is one message with a count: [`limits`] says when a group and a sink may speak again. Text from
//! outside is escaped by `backstop-report`, for each sink in its own way, before it is queued; nothing in an error message can
//! ping a channel, forge a link or run.
//!
//! It must not read the environment or a clock: who asks for a credential is given a function, and requests are bounded by
//! `backstop-http`.

mod config;
mod deliver;
pub mod limits;
mod message;
mod program;
mod queue;
mod render;
mod sender;
mod sink;
mod trigger;

pub use config::{SinkError, sinks};
pub use deliver::{Credential, DeliveryOutcome, attempt_once, deliver};
pub use message::{About, Message};
pub use queue::{QueueOutcome, queue};
pub use render::{Times, rendered};
pub use sender::{Resolved, Sender, SenderEnd};
pub use sink::{Route, Sink, SinkKind};
pub use trigger::ended;
