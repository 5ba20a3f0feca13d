//! A signal: the raw evidence of a failed attempt.

use crate::Timestamp;
use std::time::Duration;

/// The source of a signal: the kind of operation that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Surface {
    /// A command that was run: exit code, signal, output.
    #[default]
    Command,
    /// A request that was answered, or not: status, headers, body, errno, message.
    Response,
}

/// Whether the request was sent and answered. This decides whether it may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dispatch {
    /// It was never sent: safe to repeat.
    NotDispatched,
    /// It was answered, with a failure: the reason decides.
    #[default]
    Answered,
    /// It was sent and no answer came: repeated only if the operation is repeatable.
    Lost,
}

/// The raw evidence of a failed attempt, before it is classified.
///
/// The output may be given here, or streamed to the classifier if it is too large for memory.
#[derive(Debug, Clone, Default)]
pub struct Signal {
    /// The kind of operation that failed.
    pub surface: Surface,
    /// Whether the request was sent and answered.
    pub dispatch: Dispatch,
    /// The command line, as it was typed.
    pub command: Option<String>,
    /// The exit code. `None` means that it failed in an unknown way.
    pub exit: Option<i64>,
    /// The signal that ended it.
    pub signal: Option<i64>,
    /// Whether a time limit of ours ended it.
    pub timed_out: bool,
    /// The time of the failure. Without it, times of day in headers cannot be used.
    pub at: Option<Timestamp>,
    /// How long it ran.
    pub duration: Option<Duration>,
    /// The HTTP status of the answer.
    pub status: Option<u16>,
    /// The headers of the answer.
    pub headers: Vec<(String, String)>,
    /// The errno, or what the client calls it: `ECONNRESET`, `CERT_HAS_EXPIRED`.
    pub errno: Option<String>,
    /// Who answered: `openai`, `anthropic`, `nginx`.
    pub provider: Option<String>,
    /// A name that the surface itself gives the failure: `RateLimitExceeded`, `cascade_stuck`.
    pub reported: Option<String>,
    /// What it wrote to standard output, or the body of the answer.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error, or the client's own message.
    pub stderr: Vec<u8>,
}

impl Signal {
    /// A command that ended with this exit code.
    pub fn exited(code: i64) -> Self {
        Self { exit: Some(code), ..Self::default() }
    }

    /// An answer with this HTTP status.
    pub fn answered(status: u16) -> Self {
        Self { surface: Surface::Response, status: Some(status), ..Self::default() }
    }

    /// With this command line.
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }

    /// With this text: all output, or the body of the answer.
    pub fn text(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.stdout = text.into();
        self
    }

    /// Whether the command succeeded: exit 0 is success, whatever the text says.
    pub fn is_success(&self) -> bool {
        self.surface == Surface::Command && self.exit == Some(0) && self.signal.is_none() && !self.timed_out
    }
}

/// The signals that end processes, by number.
const SIGNALS: &[(i64, &str)] = &[
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (10, "SIGUSR1"),
    (11, "SIGSEGV"),
    (12, "SIGUSR2"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (24, "SIGXCPU"),
    (25, "SIGXFSZ"),
    (31, "SIGSYS"),
];

/// The name of a signal, such as `SIGKILL`.
pub fn signal_name(number: i64) -> String {
    let known = SIGNALS.iter().find(|(n, _)| *n == number);
    known.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned())
}

/// The number of a signal that is given by number or by name, with or without `SIG`, in any case.
pub fn signal_number(given: &str) -> Option<i64> {
    let upper = given.to_ascii_uppercase();
    let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
    let known = SIGNALS.iter().find(|(_, name)| name.strip_prefix("SIG") == Some(bare)).map(|(n, _)| *n);
    known.or_else(|| given.parse().ok().filter(|n| (1..=64).contains(n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_known_by_number_and_name() {
        for given in ["9", "KILL", "SIGKILL", "sigkill"] {
            assert_eq!(signal_number(given), Some(9), "{given}");
        }
        assert_eq!(signal_number("SIGFOO"), None);
        assert_eq!(signal_number("65"), None);
        assert_eq!(signal_name(11), "SIGSEGV");
        assert_eq!(signal_name(40), "signal 40");
    }
}
