//! A look at the host.

use std::path::{Path, PathBuf};

/// Memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// What can be had without swapping.
    pub available_bytes: u64,
    /// All of it, or as much as this process may have.
    pub total_bytes: u64,
}

/// The disk of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// The folder.
    pub folder: PathBuf,
    /// What this user may still write.
    pub free_bytes: u64,
    /// All of it.
    pub total_bytes: u64,
    /// How many files can still be made; nothing where the file system does not count them.
    pub files_free: Option<u64>,
}

/// What was found out. What could not be is not there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Memory.
    pub memory: Option<Memory>,
    /// The disks of the folders that were asked for.
    pub disks: Vec<Disk>,
    /// The load of the last minute.
    pub load: Option<f64>,
    /// Open TCP connections.
    pub connections: Option<u64>,
}

/// Looks at the host.
pub fn measure(folders: &[&Path]) -> Measured {
    Measured {
        memory: memory(),
        disks: folders.iter().filter_map(|folder| disk(folder)).collect(),
        load: read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
        connections: connections(),
    }
}

fn read(file: &str) -> Option<String> {
    std::fs::read_to_string(file).ok()
}

fn disk(folder: &Path) -> Option<Disk> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    Some(Disk {
        folder: folder.to_owned(),
        free_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
        total_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
        files_free: (stat.f_files > 0).then_some(stat.f_favail),
    })
}

/// The least of what the machine has and what the group of this process may have.
fn memory() -> Option<Memory> {
    let machine = read("/proc/meminfo").and_then(|text| from_meminfo(&text))?;
    let group = group_memory().filter(|group| group.total_bytes < machine.total_bytes);
    Some(match group {
        Some(group) if group.available_bytes < machine.available_bytes => group,
        _ => machine,
    })
}

fn from_meminfo(text: &str) -> Option<Memory> {
    let kilobytes = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').split_whitespace().next()?.parse().ok()
    };
    Some(Memory {
        available_bytes: kilobytes("MemAvailable")? << 10,
        total_bytes: kilobytes("MemTotal")? << 10,
    })
}

/// What a container may have, by its control group. What it holds only as a cache is free.
fn group_memory() -> Option<Memory> {
    let path = read("/proc/self/cgroup")?;
    let own = path.lines().find_map(|line| line.strip_prefix("0::"))?.trim_start_matches('/').to_owned();
    let root = Path::new("/sys/fs/cgroup");
    let folder =
        [root.join(own), root.to_owned()].into_iter().find(|folder| folder.join("memory.max").exists())?;
    let number = |file: &str| std::fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
    let (max, used) = (number("memory.max")?, number("memory.current")?);
    let stat = std::fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cached =
        stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.trim().parse::<u64>().ok());
    let held = used.saturating_sub(cached.unwrap_or(0));
    Some(Memory { available_bytes: max.saturating_sub(held), total_bytes: max })
}

/// From the kernel's own count: a list of all connections can be very long.
fn connections() -> Option<u64> {
    let count = |file: &str, name: &str| {
        read(file).and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned();
            line.strip_prefix("inuse ")?.split(' ').next()?.parse::<u64>().ok()
        })
    };
    let v4 = count("/proc/net/sockstat", "TCP:")?;
    Some(v4 + count("/proc/net/sockstat6", "TCP6:").unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_what_the_kernel_says() {
        let text = "MemTotal:        8000000 kB\nMemFree:          100 kB\nMemAvailable:    2000000 kB\n";
        let memory = from_meminfo(text).unwrap();
        assert_eq!((memory.available_bytes, memory.total_bytes), (2_000_000 << 10, 8_000_000 << 10));
        assert_eq!(from_meminfo("nonsense"), None);
    }

    #[test]
    fn the_disk_of_a_folder_is_found_and_a_folder_that_is_gone_is_passed_over() {
        let measured = measure(&[Path::new("/"), Path::new("/nowhere/at/all")]);
        assert_eq!(measured.disks.len(), 1);
        assert!(measured.disks[0].total_bytes > 0);
        if cfg!(target_os = "linux") {
            assert!(measured.memory.is_some_and(|memory| memory.total_bytes >= memory.available_bytes));
            assert!(measured.load.is_some() && measured.connections.is_some());
        }
    }
}
