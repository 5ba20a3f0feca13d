//! The machine that we are on: what it has left when something fails, and whether that is enough.

use crate::context::Context;
use backstop_core::{Fault, HostState, Shortage};
use backstop_runtime::machine_state as diagnostics;
use std::path::PathBuf;

/// The folders whose disks matter: the project's, this one, the one for temporary files, and the store's.
fn folders(context: &Context) -> Vec<PathBuf> {
    let state = context.folder().ok().map(|folder| folder.root().to_owned());
    let here = std::env::current_dir().ok().filter(|here| *here != context.project);
    [context.project.clone(), std::env::temp_dir()].into_iter().chain(here).chain(state).collect()
}

/// Adds to a fault what the host is like now, and how much is put aside.
pub(crate) fn witness(context: &Context, queue: Option<u32>, fault: &mut Fault) {
    let mut state = look(context);
    state.queue_length = queue.map(u64::from);
    fault.seen_on(state);
}

/// What the host is like now.
pub(crate) fn look(context: &Context) -> HostState {
    let folders = folders(context);
    let folders: Vec<_> = folders.iter().map(PathBuf::as_path).collect();
    diagnostics::host_state(&folders, &context.config.host_limits())
}

/// What the host is short of now.
pub(crate) fn short_of(context: &Context) -> Vec<Shortage> {
    look(context).short_of
}
