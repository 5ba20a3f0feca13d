//! The clock that nobody can set: the time since the machine was started, and which start that was.

use backstop_core::BootTime;
use std::sync::OnceLock;

/// The time since the machine was started, sleep included, and which start that was. Nobody can set
/// this clock.
pub fn boot_time() -> Option<BootTime> {
    static BOOT: OnceLock<Option<i64>> = OnceLock::new();
    let boot = (*BOOT.get_or_init(boot_number))?;
    // On macOS this clock runs on while the machine sleeps.
    #[cfg(target_os = "linux")]
    let clock = libc::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    let clock = libc::CLOCK_MONOTONIC;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result.
    let read = unsafe { libc::clock_gettime(clock, &raw mut time) };
    let millis = time.tv_sec.checked_mul(1000)?.checked_add(time.tv_nsec / 1_000_000)?;
    (read == 0).then_some(BootTime { boot, millis })
}

/// How many digits of a boot's id are kept: what fits into a number.
const BOOT_DIGITS: usize = 15;

/// A number for this start of the machine.
fn boot_number() -> Option<i64> {
    let id = boot_id()?;
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).take(BOOT_DIGITS).collect();
    i64::from_str_radix(&digits, 16).ok()
}

#[cfg(target_os = "linux")]
fn boot_id() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

#[cfg(target_os = "macos")]
fn boot_id() -> Option<String> {
    let mut id = [0u8; 64];
    let mut len = id.len();
    let name = c"kern.bootsessionuuid";
    // SAFETY: `id` has room for `len` bytes, and the name ends with a NUL.
    let read = unsafe {
        libc::sysctlbyname(name.as_ptr(), id.as_mut_ptr().cast(), &raw mut len, std::ptr::null_mut(), 0)
    };
    let text = id.get(..len).filter(|_| read == 0)?;
    std::str::from_utf8(text).ok().map(|text| text.trim_end_matches('\0').to_owned())
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn boot_id() -> Option<String> {
    None
}
