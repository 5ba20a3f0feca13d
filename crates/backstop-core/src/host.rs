//! What a machine had left when something failed on it.

use crate::{Evidence, Fault, Reason, SafeText, Severity};
use serde::{Deserialize, Serialize};

/// Something that a host can run out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// Room for processes.
    Memory,
    /// Room for files.
    Disk,
}

/// A host is short of something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortage {
    /// Of what.
    pub resource: Resource,
    /// How much is left, where, and how much is wanted.
    pub says: SafeText,
}

/// What a machine had left. What could not be found out is not there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostState {
    /// Memory that can be had without swapping, in MB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_available_mb: Option<u64>,
    /// Free space on the fullest of the disks that matter here, in GB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_free_gb: Option<f64>,
    /// The load of the last minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Open TCP connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_connections: Option<u64>,
    /// How much work of this project is put aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_length: Option<u64>,
    /// What it is short of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub short_of: Vec<Shortage>,
}

/// How much of a machine has to be free. What is not set depends on the machine's size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostLimits {
    /// On every disk that matters, in bytes. Not set: 100 MB, or a twentieth of a smaller disk.
    pub disk_free_min: Option<u64>,
    /// In memory, in bytes. Not set: as for disks.
    pub memory_free_min: Option<u64>,
}

/// What somebody who looks at the host adds to a fault.
pub type Witness = dyn Fn(&mut Fault) + Send + Sync;

impl Reason {
    /// What of the host somebody has to look at before this is over; nothing where the host is not what it waits for.
    pub fn waits_for_host(self) -> &'static [Resource] {
        match self {
            Reason::DiskFull => &[Resource::Disk],
            Reason::OutOfMemory => &[Resource::Memory],
            Reason::ResourceExhausted => &[Resource::Disk, Resource::Memory],
            _ => &[],
        }
    }
}

impl HostState {
    /// The shortage that confirms a reason, where there is one.
    pub fn confirms(&self, reason: Reason) -> Option<&Shortage> {
        self.short_of.iter().find(|short| reason.waits_for_host().contains(&short.resource))
    }
}

impl Fault {
    /// Adds what the host was like. A shortage that confirms it makes it critical: then it is the machine's trouble, and everybody's.
    pub fn seen_on(&mut self, host: HostState) {
        if let Some(short) = host.confirms(self.reason) {
            self.severity = Severity::Critical;
            let text = short.says.clone();
            self.evidence.push(Evidence { rule: "host".to_owned(), line: None, text, stream: None });
        }
        self.host = Some(Box::new(host));
    }

    /// What the host is short of, where that confirms this fault.
    pub fn shortage(&self) -> Option<&Shortage> {
        self.host.as_ref()?.confirms(self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_host_confirms_is_critical() {
        let short = |resource| HostState {
            short_of: vec![Shortage { resource, says: "3 MB".into() }],
            ..HostState::default()
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
            fault.seen_on(short(resource));
            assert_eq!(fault.severity, want, "{reason} {resource:?}");
            assert_eq!(fault.shortage().is_some(), want == Severity::Critical);
            assert_eq!(fault.evidence.len(), usize::from(want == Severity::Critical));
        }
        let mut fault = Fault::new(Reason::DiskFull);
        fault.seen_on(HostState::default());
        assert_eq!((fault.severity, fault.shortage()), (Severity::High, None));
    }
}
