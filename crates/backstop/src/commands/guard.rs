//! `backstop guard`: the shared rate limit of a provider.

use crate::error::{CliError, DEFERRED, DONE, usage};
use crate::{process, terminal};
use backstop_core::guard::Closed;
use backstop_core::{Hints, HttpAnswer, Name};
use backstop_report::{GuardCleared, GuardDecision, guard_waits};
use backstop_runtime::admission;
use clap::{Args, Subcommand};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Show and change the rate limits that everything on this machine shares: when one process is told
/// to wait, all wait.
///
/// Without a command, the guards and breakers are shown.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Guard {
    #[command(subcommand)]
    pub(crate) action: Option<GuardAction>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to do with it.
#[derive(Debug, Subcommand)]
pub(crate) enum GuardAction {
    /// Learn a limit from a provider's response: status, headers and body
    ///
    /// Without `--headers`, `--body` and `--status`, the response is read from standard input, as
    /// `curl -i` prints it.
    Ingest {
        /// The provider, such as `anthropic`
        provider: String,
        /// The headers, one `name: value` a line, or JSON; `-` is standard input
        #[arg(long, value_name = "FILE")]
        headers: Option<PathBuf>,
        /// The body
        #[arg(long, value_name = "FILE")]
        body: Option<PathBuf>,
        /// The HTTP status
        #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..600))]
        status: Option<u16>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Ask whether a request may be sent now: exits 0 if so, 75 if not
    Check {
        /// The provider
        provider: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Wait until a request may be sent: exits 0 then, 75 at once if that is after the deadline
    Wait {
        /// The provider
        provider: String,
        /// The longest wait, such as 10m
        #[arg(long, value_name = "DURATION")]
        deadline: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show guards and breakers
    Status {
        /// Only this provider
        provider: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget a provider's limit and reset its breakers
    Clear {
        /// The provider
        provider: String,
        /// Reason; it is recorded
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// How much of headers and bodies is read.
const INPUT_BYTES_MAX: u64 = 1 << 20;

pub(crate) fn run(args: &Guard) -> Result<u8, CliError> {
    let Some(action) = &args.action else { return status(None, args.json) };
    match action {
        GuardAction::Ingest { provider, headers, body, status, json } => {
            ingest(provider, headers.as_deref(), body.as_deref(), *status, *json)
        }
        GuardAction::Check { provider, json } => check(provider, *json),
        GuardAction::Wait { provider, deadline, json } => {
            let deadline = deadline.as_deref().map(backstop_core::duration::parse).transpose()?;
            wait(provider, deadline, *json)
        }
        GuardAction::Status { provider, json } => status(provider.as_deref(), *json),
        GuardAction::Clear { provider, why, json } => clear(provider, why.as_deref(), *json),
    }
}

fn ingest(
    provider: &str,
    headers: Option<&Path>,
    body: Option<&Path>,
    status: Option<u16>,
    json: bool,
) -> Result<u8, CliError> {
    let provider = admission::provider_named(provider)?;
    let answer = if headers.is_none() && body.is_none() && status.is_none() {
        HttpAnswer::parse(&read(Path::new("-"))?).ok_or_else(no_answer)?
    } else {
        let headers = headers.map(read).transpose()?;
        let body = body.map(read).transpose()?;
        HttpAnswer {
            status,
            headers: headers.map(|text| Hints::parse_headers(&text)).unwrap_or_default(),
            body: body.and_then(|text| serde_json::from_str(&text).ok()),
        }
    };
    let project = process::open(&[], None)?;
    let state = admission::learn_answer(&project, &provider, &answer)?;
    // What was learned is said; only `check` and `wait` answer by exit code.
    show(&provider, state.closed.as_ref(), json).map(|_| DONE)
}

fn no_answer() -> CliError {
    usage("there is no response on standard input to learn a limit from")
        .hint("`curl -sSi URL | backstop guard ingest PROVIDER`")
        .hint("or give its parts: `--headers FILE --body FILE --status 429`")
}

fn check(provider: &str, json: bool) -> Result<u8, CliError> {
    let project = process::open(&[], None)?;
    let store = project.limits()?;
    let provider = admission::known_provider(provider, store)?;
    let closed = store.guard(&provider)?.and_then(|guard| guard.closed);
    show(&provider, closed.as_ref(), json)
}

/// Shows whether it is open, and gives the exit code that says so.
fn show(provider: &Name, closed: Option<&Closed>, json: bool) -> Result<u8, CliError> {
    terminal::show(&GuardDecision { provider, closed, now: process::now() }, json)?;
    Ok(if closed.is_some() { DEFERRED } else { DONE })
}

fn wait(provider: &str, deadline: Option<Duration>, json: bool) -> Result<u8, CliError> {
    let project = process::open(&[], None)?;
    let provider = admission::known_provider(provider, project.limits()?)?;
    let closed = admission::wait_until_open(&project, &provider, deadline, |closed| {
        if !json {
            terminal::say(&guard_waits(&provider, closed, process::now()));
        }
    })?;
    show(&provider, closed.as_ref(), json)
}

fn status(provider: Option<&str>, json: bool) -> Result<u8, CliError> {
    let project = process::open(&[], None)?;
    let only = match provider {
        Some(given) => Some(admission::known_provider(given, project.limits()?)?),
        None => None,
    };
    terminal::show(&admission::known_limits(&project, only.as_ref())?, json).map(|()| DONE)
}

fn clear(provider: &str, why: Option<&str>, json: bool) -> Result<u8, CliError> {
    let project = process::open(&[], None)?;
    let provider = admission::known_provider(provider, project.limits()?)?;
    let (was_limited, breakers) = admission::forget_limits(&project, &provider, why)?;
    terminal::show(&GuardCleared { provider, was_limited, breakers }, json).map(|()| DONE)
}

fn read(file: &Path) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let done = if file == Path::new("-") {
        terminal::tell_waiting();
        std::io::stdin().take(INPUT_BYTES_MAX).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|f| f.take(INPUT_BYTES_MAX).read_to_end(&mut bytes))
    };
    done.map_err(|error| CliError::read(file, error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
