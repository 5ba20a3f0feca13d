//! The process supervisor: spawn, stream, cap, time out, end the whole tree.
//!
//! [`supervise`] runs one command once. Its output passes through unchanged, and the beginning and
//! the end of it are stored ([`HeadTail`]). The command is ended by a time limit, by an idle limit
//! or by a [`Stop`]; afterwards no process that it started is left. The result is an [`Ended`],
//! which [`Ended::fault`] classifies.
//!
//! This crate must not retry, decide or record: the crates above do. It prints nothing and reads no
//! environment variables. It reads the monotonic clock, because a process runs in real time. It
//! blocks; the caller provides a thread.
//!
//! On Linux every descendant of the command is found, because the supervisor is a subreaper: a
//! grandchild that left its process group becomes a child of the supervisor. Elsewhere only the
//! process group can be ended.
#![allow(clippy::disallowed_methods)] // The monotonic clock: timeouts of a process are in real time.

mod ended;
mod head_tail;
mod input;
mod leftover;
mod pump;
mod spawn;
mod spec;
mod stop;
mod supervise;
mod terminal;
pub mod tree;

pub use ended::{Cause, Ended, Status};
pub use head_tail::HeadTail;
pub use input::{Input, Replay};
pub use leftover::{Leftover, end_leftover};
pub use pump::write_patiently;
pub use spawn::StartError;
pub use spec::{Limits, Spec, Streams};
pub use stop::Stop;
pub use supervise::{Started, stop_here, supervise};
