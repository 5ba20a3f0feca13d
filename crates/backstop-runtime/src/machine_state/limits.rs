//! When a host is short of something.

use super::{Disk, MB, Measured};
use backstop_core::{MachineLimits, Resource, SafeText, Shortage};

/// What has to be free where nobody says otherwise: this much,
const FREE_MIN: u64 = 100 * MB;
/// or this share of it, where it is small.
const FREE_SHARE: u64 = 20;

fn wanted(said: Option<u64>, total: u64) -> u64 {
    said.unwrap_or(FREE_MIN.min(total / FREE_SHARE))
}

/// A size as people read it. Less than one is not none.
fn shown(bytes: u64) -> String {
    match bytes {
        0 => "nothing".to_owned(),
        1..MB => format!("{} KB", (bytes >> 10).max(1)),
        _ => format!("{} MB", bytes / MB),
    }
}

/// What is short, each once: of disks the fullest is told.
pub(super) fn shortages(limits: &MachineLimits, measured: &Measured) -> Vec<Shortage> {
    let mut all = Vec::new();
    if let Some(memory) = measured.memory {
        let min = wanted(limits.memory_free_min, memory.total_bytes);
        if memory.available_bytes < min {
            let says =
                format!("{} of memory is left, {} is wanted", shown(memory.available_bytes), shown(min));
            all.push(Shortage { resource: Resource::Memory, says: SafeText::new(says) });
        }
    }
    let short = |disk: &&Disk| {
        disk.free_bytes < wanted(limits.disk_free_min, disk.total_bytes) || disk.files_free == Some(0)
    };
    if let Some(disk) = measured.disks.iter().filter(short).min_by_key(|disk| disk.free_bytes) {
        let folder = disk.folder.display();
        let says = if disk.files_free == Some(0) {
            format!("no more files can be made on the disk of {folder}")
        } else {
            let min = wanted(limits.disk_free_min, disk.total_bytes);
            format!("{} is left on the disk of {folder}, {} is wanted", shown(disk.free_bytes), shown(min))
        };
        all.push(Shortage { resource: Resource::Disk, says: SafeText::new(says) });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::Memory;
    use super::*;

    fn measured(memory: (u64, u64), disk: (u64, u64, Option<u64>)) -> Measured {
        Measured {
            memory: Some(Memory { available_bytes: memory.0 * MB, total_bytes: memory.1 * MB }),
            disks: vec![
                Disk {
                    folder: "/p".into(),
                    free_bytes: disk.0 * MB,
                    total_bytes: disk.1 * MB,
                    files_free: disk.2,
                },
                Disk {
                    folder: "/tmp".into(),
                    free_bytes: 1 << 40,
                    total_bytes: 1 << 41,
                    files_free: Some(9),
                },
            ],
            load: None,
            connections: None,
        }
    }

    #[test]
    fn what_is_short_and_what_is_only_small() {
        let plenty = (8_000, 16_000);
        let roomy = (5_000, 9_000, Some(10));
        let usual = MachineLimits::default();
        let said = MachineLimits { disk_free_min: Some(6_000 * MB), memory_free_min: Some(9_000 * MB) };
        for (limits, memory, disk, want) in [
            (usual, plenty, roomy, vec![]),
            (usual, (90, 16_000), roomy, vec!["90 MB of memory is left, 100 MB is wanted"]),
            (usual, (90, 1_000), roomy, vec![]),
            (usual, plenty, (3, 9_000, Some(10)), vec!["3 MB is left on the disk of /p, 100 MB is wanted"]),
            (usual, plenty, (0, 64, Some(10)), vec!["nothing is left on the disk of /p, 3 MB is wanted"]),
            (usual, plenty, (30, 64, Some(10)), vec![]),
            (usual, plenty, (5_000, 9_000, Some(0)), vec!["no more files can be made on the disk of /p"]),
            (
                said,
                plenty,
                roomy,
                vec![
                    "8000 MB of memory is left, 9000 MB is wanted",
                    "5000 MB is left on the disk of /p, 6000 MB is wanted",
                ],
            ),
        ] {
            let short = shortages(&limits, &measured(memory, disk));
            let says: Vec<&str> = short.iter().map(|short| short.says.raw()).collect();
            assert_eq!(says, want);
        }
        assert!(shortages(&usual, &Measured::default()).is_empty());
    }
}
