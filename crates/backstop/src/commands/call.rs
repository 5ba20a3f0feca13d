//! `backstop call`: one call of an MCP tool.

use super::tools::{make_known_for, with_toolbox};
use crate::error::{CliError, DEFERRED, DONE, FAILED, INTERRUPTED};
use crate::terminal;
use backstop_config::LogFormat;
use backstop_core::{Outcome, RunId};
use backstop_report::to_json;
use backstop_tools::{CallFailure, CallOutcome, CallRequest, CallSuccess, Toolbox};
use clap::Args;
use std::io::Read;
use std::sync::Arc;
use tokio::time::Instant;

/// The longest arguments that are read, in bytes.
const ARGUMENTS_BYTES_MAX: u64 = 16 << 20;

/// Call a tool of an MCP server.
///
/// The arguments are checked before the call is sent. A failure that a retry can cure is retried,
/// up to three attempts; a call that may have taken effect is repeated only after a confirmation.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  backstop call time__get_current_time '{\"timezone\": \"UTC\"}'\n  backstop call --raw github prompts/list '{}'\n  backstop call --confirm r-7f3a"
)]
pub(crate) struct Call {
    /// The tool, such as `github__create_issue`; with --raw, the server, the method and its
    /// parameters
    #[arg(value_name = "TOOL")]
    pub(crate) words: Vec<String>,
    /// Any method of a server: SERVER METHOD '{…}'
    #[arg(long)]
    pub(crate) raw: bool,
    /// Repeat the call of this run, once
    #[arg(long, value_name = "RUN", conflicts_with = "raw")]
    pub(crate) confirm: Option<String>,
    /// Time limit for one attempt
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
    /// Time limit for all attempts and the waits between them
    #[arg(long, value_name = "DURATION")]
    pub(crate) deadline: Option<String>,
    /// Print the result, or the failure report, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Call, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    let timeout = args.timeout.as_deref().map(backstop_core::duration::parse).transpose()?;
    let deadline = args.deadline.as_deref().map(backstop_core::duration::parse).transpose()?;
    with_toolbox(log_format, async |toolbox, cancel| {
        let mut request = wanted(args, &toolbox)?.cancelled_by(cancel);
        request.timeout = timeout.or(request.timeout);
        request.deadline = deadline.or(request.deadline);
        request.parent = toolbox.project().process.parent;
        toolbox.project().refuse_if_frozen()?;
        if !args.raw && args.confirm.is_none() && toolbox.catalogue().get(&request.name()).is_none() {
            let began = Instant::now();
            make_known_for(&toolbox, "call", [request.name().as_str()], request.limit()).await;
            request.deadline = request.deadline.map(|deadline| deadline.saturating_sub(began.elapsed()));
        }
        tell(toolbox.call(request).await, args.json)
    })
}

/// Repeats the call of a run that waits for it.
pub(super) fn confirm(run: &str, json: bool, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    let args = Call {
        words: Vec::new(),
        raw: false,
        confirm: Some(run.to_owned()),
        timeout: None,
        deadline: None,
        json,
    };
    self::run(&args, log_format)
}

fn wanted(args: &Call, toolbox: &Arc<Toolbox>) -> Result<CallRequest, CliError> {
    if let Some(run) = &args.confirm {
        let run: RunId = run.parse()?;
        let typed = args.words.last().map(|given| arguments(given)).transpose()?;
        return Ok(toolbox.take_confirmed(run, typed.as_deref())?);
    }
    let mut words = args.words.clone();
    if let Some(given) = words.get_mut(if args.raw { 2 } else { 1 }) {
        *given = arguments(given)?;
    }
    Ok(CallRequest::typed(&words, args.raw)?)
}

/// The arguments as they are given: as text, from a file (`@FILE`) or from standard input (`-`).
fn arguments(given: &str) -> Result<String, CliError> {
    let mut text = String::new();
    let read = match given.strip_prefix('@') {
        Some(file) => std::fs::File::open(file)
            .and_then(|open| open.take(ARGUMENTS_BYTES_MAX).read_to_string(&mut text))
            .map_err(|error| CliError::read(file, error)),
        None if given == "-" => std::io::stdin()
            .take(ARGUMENTS_BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(|error| CliError::read("standard input", error)),
        None => return Ok(given.to_owned()),
    };
    read.map(|_| text)
}

/// Tells how a call ended. Gives the exit code.
fn tell(outcome: CallOutcome, json: bool) -> Result<u8, CliError> {
    match outcome {
        CallOutcome::Done(success) => tell_success(&success, json).map(|()| DONE),
        CallOutcome::Failed(failure) => {
            if json {
                terminal::print(&format!("{}\n", to_json(&failure.report())))?;
            } else {
                terminal::say(&failure.terminal(terminal::stderr_style()));
            }
            Ok(code(&failure))
        }
    }
}

/// The exit code of a call that failed.
fn code(failure: &CallFailure) -> u8 {
    match failure.outcome {
        Outcome::Deferred => DEFERRED,
        Outcome::Interrupted => INTERRUPTED,
        _ => FAILED,
    }
}

fn tell_success(success: &CallSuccess, json: bool) -> Result<(), CliError> {
    if let Some(notice) = success.notice().filter(|_| !terminal::is_quiet()) {
        terminal::say(&notice.terminal(terminal::stderr_style()));
    }
    terminal::show(success, json)
}
