//! How much that is no conversation an agent may do before it is ended: lines that are no messages,
//! requests that do not exist, permissions that it asks for again and again.

use super::conversation::{NOT_ACP, quoted};
use backstop_core::{Reason, SafeText};

/// How many lines that are no messages an agent may write before it is ended.
pub(super) const GARBAGE_LINES_MAX: u32 = 50;
/// How much of such a line is quoted, in bytes.
const GARBAGE_BYTES_MAX: usize = 480;
/// How many requests that do not exist an agent may make.
pub(super) const UNKNOWN_REQUESTS_MAX: u32 = 1000;
/// How often it may ask for permission, and how often it may be told no.
pub(super) const PERMISSIONS_MAX: u32 = 2000;
pub(super) const REJECTED_MAX: u32 = 20;

/// Why the conversation cannot go on: what it is, in words, and what to do about it.
pub(super) type Enough = (Reason, String, &'static str);

/// What has been put up with so far.
#[derive(Debug, Default)]
pub(super) struct Patience {
    garbage_lines: u32,
    first_garbage: String,
    unknown_requests: u32,
    permissions: u32,
    rejected: u32,
}

impl Patience {
    /// A line that is no message.
    pub(super) fn garbage(&mut self, line: &[u8]) -> Option<Enough> {
        if self.garbage_lines == 0 {
            self.first_garbage = quoted(&String::from_utf8_lossy(&line[..line.len().min(GARBAGE_BYTES_MAX)]));
        }
        self.garbage_lines += 1;
        (self.garbage_lines > GARBAGE_LINES_MAX).then(|| {
            let cause = format!(
                "it writes lines that are no messages of the Agent Client Protocol: {}",
                self.first_garbage
            );
            (Reason::InvalidUsage, cause, NOT_ACP)
        })
    }

    /// The first line that was no message.
    pub(super) fn first_garbage(&self) -> Option<&str> {
        (self.garbage_lines > 0).then_some(self.first_garbage.as_str())
    }

    /// A request that does not exist.
    pub(super) fn unknown_request(&mut self, method: &str) -> Option<Enough> {
        self.unknown_requests += 1;
        (self.unknown_requests > UNKNOWN_REQUESTS_MAX).then(|| {
            let cause = format!(
                "it made {UNKNOWN_REQUESTS_MAX} requests that do not exist, the last `{}`",
                quoted(method)
            );
            (Reason::Validation, cause, "")
        })
    }

    /// A permission that was asked for; `denied` says what was not allowed.
    pub(super) fn permission(&mut self, denied: Option<&SafeText>) -> Option<Enough> {
        self.permissions += 1;
        self.rejected += u32::from(denied.is_some());
        let cause = match denied {
            Some(denied) if self.rejected > REJECTED_MAX => {
                let last = quoted(denied.raw());
                format!("it asked {} times for what it is not allowed: {last}", self.rejected)
            }
            _ if self.permissions > PERMISSIONS_MAX => {
                format!("it asked {} times for permission", self.permissions)
            }
            _ => return None,
        };
        let next = "say in the phase what it may use, or let it work by its own command line";
        Some((Reason::PermissionDenied, cause, next))
    }
}
