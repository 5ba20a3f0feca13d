//! The process supervisor: spawn, stream, cap, time out, end the whole tree.
//!
//! [`supervise`] runs one command once. Its output goes through untouched while the beginning and the end of it are kept
//! ([`HeadTail`]); it is ended by the clock, by silence or by a [`Stop`]; and when it is over, nothing that it started is left.
//! What comes back is an [`Ended`], which becomes a `Fault` by [`Ended::fault`].
//!
//! It must not retry, decide or record: that is for those above. It prints nothing of its own and reads no environment.
//! It does read the monotonic clock: a process runs in real time. Blocking; the caller gives it a thread.
//!
//! On Linux everything below the command is found: the supervisor is the reaper of orphans, so a grandchild that left
//! its process group is still ours. Elsewhere the process group is what can be ended.
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
