//! `backstop demo faults`: a shipped script of things that fail, each classified.

use super::Demo;
use super::scratch::Scratch;
use crate::error::CliError;
use crate::{process, terminal};
use backstop_classify::Classifier;
use backstop_core::{Signal, Surface};
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};

/// One step of the script.
enum Step {
    /// A command that is really run, by `sh`.
    Run(&'static str),
    /// A command that many machines do not have: what it left behind, as it was seen.
    Seen { command: &'static str, exit: i64, output: &'static str },
    /// A command that the clock ended, as it was seen.
    TimedOut { command: &'static str, output: &'static str },
    /// An answer of a model provider, as it was seen.
    Answer {
        provider: &'static str,
        status: u16,
        headers: &'static [(&'static str, &'static str)],
        body: &'static str,
    },
}

const SCRIPT: &[Step] = &[
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

pub(super) fn run(args: &Demo) -> Result<(), CliError> {
    let scratch = Scratch::make()?;
    // Without git, the first step says so: it is a failure like any other.
    let _ = scratch.git(&["init", "--quiet", "--template="]);
    let result = play(args, &scratch.project());
    scratch.remove();
    result
}

fn play(args: &Demo, folder: &Path) -> Result<(), CliError> {
    let classifier = Classifier::builtin().redacting(terminal::redactor().as_ref().clone());
    let style = terminal::stdout_style();
    if !args.json {
        terminal::print("Ten things that go wrong, one after the other. Nothing leaves this machine.\n\n")?;
    }
    for step in SCRIPT {
        let (title, signal) = step.play(folder)?;
        let fault = classifier.classify(&signal);
        if args.json {
            let mut value = backstop_report::fault_json(fault.as_ref());
            value["step"] = json!(title);
            terminal::print(&format!("{}\n", backstop_report::to_json(&value)))?;
            continue;
        }
        let answer = match &fault {
            Some(fault) => backstop_report::fault(fault, style),
            None => backstop_report::success(style),
        };
        terminal::print(&format!("{}\n{answer}\n", style.strong(&format!("$ {title}"))))?;
    }
    if !args.json {
        terminal::print("Now with one of your own: `backstop exec -- COMMAND`\n")?;
    }
    Ok(())
}

impl Step {
    /// What is shown, and what was seen.
    fn play(&self, folder: &Path) -> Result<(String, Signal), CliError> {
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
                let signal = Signal {
                    headers,
                    provider: provider_name,
                    at: Some(process::now()),
                    ..Signal::answered(*status)
                };
                (format!("POST to {provider}, answered {status}"), signal.text(*body))
            }
        })
    }
}

/// Runs a script and keeps what it left behind.
fn run_script(script: &str, folder: &Path) -> Result<Signal, CliError> {
    let output = Command::new("sh")
        .args(["-c", script])
        .current_dir(folder)
        .stdin(Stdio::null())
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder))
        .output()
        .map_err(|error| super::cannot_run("sh", &error))?;
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
