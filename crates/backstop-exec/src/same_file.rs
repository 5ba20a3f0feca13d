//! Whether two of our output streams are the same open file.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// A byte far behind the end of every file. A lock on it is in nobody's way.
const FAR_BYTE: libc::off_t = libc::off_t::MAX - 1;

/// Whether everything written to `one` and `other` ends up in one sequence: they share an open file
/// description (`>file 2>&1`), both append, or are the same pipe, terminal or device. `>file
/// 2>file` is two descriptions, with a position each.
pub fn is_same_output(one: impl AsFd, other: impl AsFd) -> bool {
    let (one, other) = (one.as_fd(), other.as_fd());
    let (Ok(first), Ok(second)) = (rustix::fs::fstat(one), rustix::fs::fstat(other)) else { return false };
    if (first.st_dev, first.st_ino) != (second.st_dev, second.st_ino) {
        return false;
    }
    if rustix::fs::FileType::from_raw_mode(first.st_mode) != rustix::fs::FileType::RegularFile {
        return true;
    }
    // Appending, both write to the end, wherever that is.
    (appends(one) && appends(other))
        || same_description(one, other).or_else(|| same_lock_owner(one, other)).unwrap_or(false)
}

/// Asks the kernel. `None` where it does not answer: kcmp(2) is often forbidden in containers.
#[cfg(target_os = "linux")]
fn same_description(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> Option<bool> {
    const KCMP_FILE: libc::c_int = 0;
    let pid = std::process::id();
    // SAFETY: kcmp compares and changes nothing.
    let order =
        unsafe { libc::syscall(libc::SYS_kcmp, pid, pid, KCMP_FILE, one.as_raw_fd(), other.as_raw_fd()) };
    (order >= 0).then_some(order == 0)
}

#[cfg(not(target_os = "linux"))]
fn same_description(_: BorrowedFd<'_>, _: BorrowedFd<'_>) -> Option<bool> {
    None
}

/// Locks of this kind belong to the open file description: whoever has the lock does not see it.
#[cfg(target_os = "linux")]
fn same_lock_owner(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> Option<bool> {
    let lock = |kind: libc::c_int| {
        // SAFETY: all fields of this C struct are numbers.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = libc::c_short::try_from(kind).unwrap_or_default();
        lock.l_whence = libc::c_short::try_from(libc::SEEK_SET).unwrap_or_default();
        lock.l_start = FAR_BYTE;
        lock.l_len = 1;
        lock
    };
    let call = |fd: BorrowedFd<'_>, command, lock: &mut libc::flock| {
        // SAFETY: the descriptor is open and the struct is initialised.
        (unsafe { libc::fcntl(fd.as_raw_fd(), command, std::ptr::from_mut(lock)) }) == 0
    };
    if !call(one, libc::F_OFD_SETLK, &mut lock(libc::F_WRLCK)) {
        return None;
    }
    let mut seen = lock(libc::F_WRLCK);
    let answered = call(other, libc::F_OFD_GETLK, &mut seen);
    call(one, libc::F_OFD_SETLK, &mut lock(libc::F_UNLCK));
    answered.then_some(libc::c_int::from(seen.l_type) == libc::F_UNLCK)
}

#[cfg(not(target_os = "linux"))]
fn same_lock_owner(_: BorrowedFd<'_>, _: BorrowedFd<'_>) -> Option<bool> {
    let _ = FAR_BYTE;
    None
}

fn appends(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fcntl_getfl(fd).is_ok_and(|flags| flags.contains(rustix::fs::OFlags::APPEND))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn each_way_to_ask_gives_the_same_answer() {
        let path = std::env::temp_dir().join(format!("backstop-same-{}", std::process::id()));
        let one = File::create(&path).unwrap();
        let shared = one.try_clone().unwrap();
        let other = File::create(&path).unwrap();
        for (fd, same) in [(&shared, true), (&other, false)] {
            assert_eq!(is_same_output(&one, fd), same);
            assert_eq!(same_lock_owner(one.as_fd(), fd.as_fd()), Some(same));
            assert!(same_description(one.as_fd(), fd.as_fd()).is_none_or(|answer| answer == same));
        }
        std::fs::remove_file(&path).unwrap();
        let (_reader, writer) = std::io::pipe().unwrap();
        assert!(is_same_output(&writer, writer.try_clone().unwrap()));
        assert!(!is_same_output(&writer, &one));
    }
}
