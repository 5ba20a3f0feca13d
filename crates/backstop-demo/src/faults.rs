//! A shipped script of things that fail.

use crate::DemoError;
use crate::Scratch;
use backstop_core::{Signal, Surface, Timestamp};
use std::path::Path;
use std::process::{Command, Stdio};

/// One step of the script.
#[derive(Debug)]
pub(crate) enum Step {
    /// A command that is really run, by `sh`.
    Run(&'static str),
    /// A command that many machines do not have: what it left behind, as it was seen.
    Seen {
        /// The command.
        command: &'static str,
        /// Its exit code.
        exit: i64,
        /// What it printed.
        output: &'static str,
    },
    /// A command that the clock ended, as it was seen.
    TimedOut {
        /// The command.
        command: &'static str,
        /// What it printed.
        output: &'static str,
    },
    /// An answer of a model provider, as it was seen.
    Answer {
        /// The provider.
        provider: &'static str,
        /// The HTTP status.
        status: u16,
        /// The headers.
        headers: &'static [(&'static str, &'static str)],
        /// The body.
        body: &'static str,
    },
}

/// The script.
pub(crate) const SCRIPT: &[Step] = &[
    Step::Run("git checkout no-such-branch"),
    Step::Run("frobnicate --now"),
    Step::Run("mkdir out && mkdir out"),
    Step::Run("kill -SEGV $$"),
    Step::Run("echo 'ERROR: 3 errors found, 3 errors repaired'; exit 0"),
    Step::Seen { command: "npm test", exit: 1, output: include_str!("jest.log") },
    Step::Seen {
        command: "npm ci",
        exit: 1,
        output: "npm error code ECONNRESET\nnpm error syscall read\nnpm error network read ECONNRESET\n",
    },
    Step::TimedOut {
        command: "cargo build",
        output: "    Blocking waiting for file lock on build directory\n",
    },
    Step::Answer {
        provider: "anthropic",
        status: 429,
        headers: &[("retry-after", "41"), ("anthropic-ratelimit-input-tokens-remaining", "0")],
        body: "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"This request would exceed your organization's rate limit of 50,000 input tokens per minute\"}}",
    },
    Step::Answer {
        provider: "openai",
        status: 429,
        headers: &[],
        body: "{\"error\":{\"code\":\"insufficient_quota\",\"message\":\"You exceeded your current quota, please check your plan and billing details.\"}}",
    },
];

/// Prepares the folder in which the script is played. Without git, the first step says so: it is a
/// failure like any other.
pub(crate) fn prepare(scratch: &Scratch) {
    let _ = scratch.git(&["init", "--quiet", "--template="]);
}

impl Step {
    /// Plays the step in this folder. Gives what is shown, and what was seen.
    pub(crate) fn play(&self, folder: &Path, now: Timestamp) -> Result<(String, Signal), DemoError> {
        Ok(match self {
            Step::Run(script) => ((*script).to_owned(), run_script(script, folder)?),
            Step::Seen { command, exit, output } => {
                ((*command).to_owned(), Signal::exited(*exit).command(*command).text(*output))
            }
            Step::TimedOut { command, output } => {
                let signal = Signal { timed_out: true, ..Signal::default() };
                (format!("{command}    (ended by the clock)"), signal.command(*command).text(*output))
            }
            Step::Answer { provider, status, headers, body } => {
                let headers = headers.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
                let provider_name = Some((*provider).to_owned());
                let signal =
                    Signal { headers, provider: provider_name, at: Some(now), ..Signal::answered(*status) };
                (format!("POST to {provider}, answered {status}"), signal.text(*body))
            }
        })
    }
}

/// Runs a script and keeps what it left behind.
fn run_script(script: &str, folder: &Path) -> Result<Signal, DemoError> {
    let output = Command::new("sh")
        .args(["-c", script])
        .current_dir(folder)
        .stdin(Stdio::null())
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder))
        .output()
        .map_err(|error| DemoError::CannotRun { program: "sh", error })?;
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&output.status).map(i64::from);
    #[cfg(not(unix))]
    let signal = None;
    Ok(Signal {
        surface: Surface::Command,
        command: Some(script.to_owned()),
        exit: output.status.code().map(i64::from),
        signal,
        stdout: output.stdout,
        stderr: output.stderr,
        ..Signal::default()
    })
}
