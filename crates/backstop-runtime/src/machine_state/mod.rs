//! Diagnostics: what the machine was like when something failed, and whether the machine itself is
//! the trouble.
//!
//! [`measure`] looks at the host: a few small files of the kernel's and the disks of the folders
//! that matter, never anything that takes long. [`MachineLimits`] says when a host is short of
//! something; that is pure. [`machine_state`] puts both together as what a fault keeps.
//! [`service_address`] finds which service was down, [`answers`] knocks at it.
//!
//! It must not decide what follows.

mod limits;
mod probe;
mod service;

pub use probe::{Disk, Measured, Memory, measure};
pub use service::{answers, service_address};

use crate::project::Project;
use backstop_core::{Fault, MachineLimits, MachineState, Resource, Shortage};
use std::path::{Path, PathBuf};

const MB: u64 = 1 << 20;
const GB: f64 = (1u64 << 30) as f64;

/// What the host is like now. The folders are those whose disks matter.
pub fn machine_state(folders: &[&Path], limits: &MachineLimits) -> MachineState {
    state_of(&measure(folders), limits)
}

/// What the machine that a project is on is like now. The disks that matter: the project's, the
/// current folder's, the one for temporary files, and the store's.
pub fn look(project: &Project) -> MachineState {
    let process = &project.process;
    let state = project.folder().ok().map(|folder| folder.root().to_owned());
    let here = Some(process.cwd.clone()).filter(|here| *here != project.root);
    let folders: Vec<PathBuf> =
        [project.root.clone(), process.temp_dir.clone()].into_iter().chain(here).chain(state).collect();
    let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    machine_state(&folders, &project.config.machine_limits())
}

/// Adds to a fault what the machine is like now, and how much work is put aside. A shortage that
/// confirms the fault makes it critical.
pub fn observe(project: &Project, deferred: Option<u32>, fault: &mut Fault) {
    let mut state = look(project);
    state.queue_length = deferred.map(u64::from);
    fault.add_machine_state(state);
}

/// Whether nothing of this is short now.
pub fn has_passed(resources: &[Resource], short_of: &[Shortage]) -> bool {
    !short_of.iter().any(|short| resources.contains(&short.resource))
}

fn state_of(measured: &Measured, limits: &MachineLimits) -> MachineState {
    let free = measured.disks.iter().map(|disk| disk.free_bytes).min();
    MachineState {
        memory_available_mb: measured.memory.map(|memory| memory.available_bytes / MB),
        disk_free_gb: free.map(|bytes| (bytes as f64 / GB * 100.0).round() / 100.0),
        load: measured.load,
        active_connections: measured.connections,
        queue_length: None,
        short_of: limits::shortages(limits, measured),
    }
}
