//! Diagnostics: what the machine was like when something failed, and whether the machine itself is the trouble.
//!
//! [`measure`] looks at the host: a few small files of the kernel's and the disks of the folders that matter, never anything
//! that takes long. [`HostLimits`] says when a host is short of something; that is pure. [`host_state`] puts both together as
//! what a fault keeps. [`service_address`] finds which service was down, [`answers`] knocks at it.
//!
//! It must not decide what follows.

mod limits;
mod probe;
mod service;

pub use probe::{Disk, Measured, Memory, measure};
pub use service::{answers, service_address};

use backstop_core::{HostLimits, HostState, Resource, Shortage};
use std::path::Path;

const MB: u64 = 1 << 20;
const GB: f64 = (1u64 << 30) as f64;

/// What the host is like now. The folders are those whose disks matter.
pub fn host_state(folders: &[&Path], limits: &HostLimits) -> HostState {
    state_of(&measure(folders), limits)
}

/// Whether nothing of this is short now.
pub fn has_passed(resources: &[Resource], short_of: &[Shortage]) -> bool {
    !short_of.iter().any(|short| resources.contains(&short.resource))
}

fn state_of(measured: &Measured, limits: &HostLimits) -> HostState {
    let free = measured.disks.iter().map(|disk| disk.free_bytes).min();
    HostState {
        memory_available_mb: measured.memory.map(|memory| memory.available_bytes / MB),
        disk_free_gb: free.map(|bytes| (bytes as f64 / GB * 100.0).round() / 100.0),
        load: measured.load,
        active_connections: measured.connections,
        queue_length: None,
        short_of: limits::shortages(limits, measured),
    }
}
