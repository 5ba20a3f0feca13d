//! Notifications: a person is informed of a failure that needs them, once.
//!
//! Recorded events trigger them ([`ended`]). A [`Message`] goes to every [`Sink`] whose [`Route`]
//! matches, through the outbox ([`queue`]). Nothing here waits for a network except the [`Sender`],
//! of which a user has one, in a process of its own. It delivers through the engine, so that only
//! transient failures are retried.
//!
//! Repeated failures of one kind are one message with a count: [`limits`] says when a group and a
//! sink may send again. Text from outside is escaped by `backstop-report` for each kind of sink
//! before it is queued; an error message cannot mention a channel, forge a link or run a command.
//!
//! This crate must not read the environment or a clock: credentials are looked up through a
//! function that the caller provides, and requests are bounded by `backstop-http`.

mod config;
mod deliver;
pub mod limits;
mod listing;
mod message;
mod program;
mod queue;
mod render;
mod sender;
mod sink;
mod trigger;

pub use config::{SinkError, sinks};
pub use deliver::{Credential, DeliveryOutcome, attempt_once, deliver};
pub use listing::{message_row, sink_rows};
pub use message::{About, Message};
pub use queue::{QueueOutcome, queue};
pub use render::{Times, rendered};
pub use sender::{Resolved, Sender, SenderEnd};
pub use sink::{Route, Sink, SinkKind};
pub use trigger::ended;
