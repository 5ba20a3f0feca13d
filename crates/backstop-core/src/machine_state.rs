//! The state of the machine at the time of a failure: free memory and disk, load, and what is
//! short.
//!
//! Types and rules only. Measuring is done elsewhere; nothing here reads the system.

use crate::{Evidence, Fault, Reason, SafeText, Severity};
use serde::{Deserialize, Serialize};

/// A resource that a machine can run out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// Memory.
    Memory,
    /// Disk space.
    Disk,
}

/// One resource of which the machine has too little.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortage {
    /// The resource.
    pub resource: Resource,
    /// A sentence for people: how much is left, where, and how much is required.
    pub says: SafeText,
}

/// The state of a machine at one moment. A value that could not be measured is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineState {
    /// Memory available without swapping, in MB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_available_mb: Option<u64>,
    /// Free space on the fullest of the disks in use, in GB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_free_gb: Option<f64>,
    /// The load average of the last minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Open TCP connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_connections: Option<u64>,
    /// How many operations of this project are deferred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_length: Option<u64>,
    /// The resources of which the machine has too little.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub short_of: Vec<Shortage>,
}

/// How much memory and disk must be free. A limit that is not set depends on the machine's size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MachineLimits {
    /// Free bytes required on every disk in use. Default: 100 MB, or a twentieth of a small disk.
    pub disk_free_min: Option<u64>,
    /// Free bytes of memory required. The default is computed as for disks.
    pub memory_free_min: Option<u64>,
}

/// Adds the machine's state to a fault. Called for every failed attempt.
pub type Observe = dyn Fn(&mut Fault) + Send + Sync;

impl Reason {
    /// The resources that must be free again before a fault of this reason is over. Empty for
    /// reasons that do not depend on the machine.
    pub fn waits_for_resources(self) -> &'static [Resource] {
        match self {
            Reason::DiskFull => &[Resource::Disk],
            Reason::OutOfMemory => &[Resource::Memory],
            Reason::ResourceExhausted => &[Resource::Disk, Resource::Memory],
            _ => &[],
        }
    }
}

impl MachineState {
    /// The shortage that confirms `reason`, if there is one.
    pub fn confirms(&self, reason: Reason) -> Option<&Shortage> {
        self.short_of.iter().find(|short| reason.waits_for_resources().contains(&short.resource))
    }
}

impl Fault {
    /// Records the machine's state in the fault. A shortage that confirms the fault's reason makes
    /// it critical, because every run on this machine is affected.
    pub fn add_machine_state(&mut self, state: MachineState) {
        if let Some(short) = state.confirms(self.reason) {
            self.severity = Severity::Critical;
            let text = short.says.clone();
            self.evidence.push(Evidence { rule: "host".to_owned(), line: None, text, stream: None });
        }
        self.machine = Some(Box::new(state));
    }

    /// The shortage that confirms this fault, if the machine has one.
    pub fn shortage(&self) -> Option<&Shortage> {
        self.machine.as_ref()?.confirms(self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_shortage_that_confirms_the_reason_is_critical() {
        let short = |resource| MachineState {
            short_of: vec![Shortage { resource, says: "3 MB".into() }],
            ..MachineState::default()
        };
        for (reason, resource, want) in [
            (Reason::DiskFull, Resource::Disk, Severity::Critical),
            (Reason::DiskFull, Resource::Memory, Severity::High),
            (Reason::OutOfMemory, Resource::Memory, Severity::Critical),
            (Reason::OutOfMemory, Resource::Disk, Severity::High),
            (Reason::ResourceExhausted, Resource::Memory, Severity::Critical),
            (Reason::TestFailure, Resource::Disk, Severity::Medium),
        ] {
            let mut fault = Fault::new(reason);
            fault.add_machine_state(short(resource));
            assert_eq!(fault.severity, want, "{reason} {resource:?}");
            assert_eq!(fault.shortage().is_some(), want == Severity::Critical);
            assert_eq!(fault.evidence.len(), usize::from(want == Severity::Critical));
        }
        let mut fault = Fault::new(Reason::DiskFull);
        fault.add_machine_state(MachineState::default());
        assert_eq!((fault.severity, fault.shortage()), (Severity::High, None));
    }
}
