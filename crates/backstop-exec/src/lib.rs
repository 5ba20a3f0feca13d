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
//! On Linux the processes of a command are recognised by descent. A process that lost its parent
//! becomes a child of the command's reaper, a small process between us and the command; or of this
//! process, where that has no other children and runs nothing else. Elsewhere only the process
//! group can be ended.
#![allow(clippy::disallowed_methods)] // The monotonic clock: timeouts of a process are in real time.

mod boot;
mod bounded_input;
#[cfg(target_os = "linux")]
mod cgroup;
mod ended;
mod head_tail;
mod input;
mod keeper;
mod launch;
mod leftover;
mod mailbox;
mod output_terminal;
mod own_streams;
mod pump;
mod reaper;
#[cfg(target_os = "linux")]
mod reaper_process;
mod same_file;
mod spawn;
mod spec;
mod stop;
mod stream_order;
mod supervise;
#[cfg(target_os = "linux")]
mod system_call;
mod terminal;
pub mod tree;
mod unwatched;
mod watched;

pub use boot::boot_time;
pub use bounded_input::read_stdin;
pub use ended::{Cause, Ended, Status};
pub use head_tail::HeadTail;
pub use input::{Input, Replay};
pub use leftover::{Leftover, end_leftover};
pub use own_streams::{InputMode, OutputRequest, OwnOutputs, is_interactive_shell, own_input};
pub use pump::write_patiently;
pub use same_file::is_same_output;
pub use spawn::StartError;
pub use spec::{Limits, Output, Spec, Streams};
pub use stop::Stop;
pub use stream_order::{OutputPart, StreamOrder};
pub use supervise::{Started, stop_here, supervise};
pub use terminal::{has_controlling_terminal, is_group_orphaned};
pub use unwatched::{become_command, may_watch};
pub use watched::Watched;
