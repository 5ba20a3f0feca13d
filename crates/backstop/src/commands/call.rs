//! `backstop call`: one call of an MCP tool.

use super::tools::{make_known_for, with_toolbox};
use crate::error::{CliError, DEFERRED, DONE, FAILED, INTERRUPTED, usage};
use crate::terminal;
use backstop_config::LogFormat;
use backstop_core::{Name, Outcome, RunId, SafeText};
use backstop_report::{JSON_SCHEMA, PartialSuccess, partial_success, to_json};
use backstop_tools::{CallFailure, CallOutcome, CallRequest, CallSuccess, ConfirmError, Toolbox};
use clap::Args;
use serde_json::{Value, json};
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
        return toolbox.take_confirmed(run, typed.as_deref()).map_err(|error| match error {
            ConfirmError::Masked(_) => {
                usage(&error).hint(format!("type them again: `backstop call --confirm {run} '{{…}}'`"))
            }
            ConfirmError::NotWaiting(_) => usage(&error).hint(format!(
                "`backstop explain {run}` tells how it ended; `backstop deferred list` what waits"
            )),
            ConfirmError::Arguments(_) => usage(&error).hint("give a JSON object in single quotes"),
        });
    }
    let not_json = |error: serde_json::Error| {
        usage(format!("the arguments are not JSON: {error}"))
            .hint("give a JSON object in single quotes: '{\"name\": \"value\"}'")
    };
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    let (request, given) = match (args.raw, words.as_slice()) {
        (true, [server, method]) => (CallRequest::raw(server_name(server)?, method, "{}"), "{}".to_owned()),
        (true, [server, method, params]) => {
            let given = arguments(params)?;
            (CallRequest::raw(server_name(server)?, method, &given), given)
        }
        (false, [tool]) => (CallRequest::tool(tool, "{}"), "{}".to_owned()),
        (false, [tool, given]) => {
            let given = arguments(given)?;
            (CallRequest::tool(tool, &given), given)
        }
        (true, _) => return Err(usage("--raw needs a server, a method and its parameters")
            .hint("for example: `backstop call --raw github tools/list '{}'`")),
        (false, _) => return Err(usage("a call needs a tool and its arguments")
            .hint("for example: `backstop call time__get_current_time '{\"timezone\": \"UTC\"}'`; `backstop tools list` lists the tools")),
    };
    let request = request.map_err(not_json)?;
    if !matches!(serde_json::from_str::<Value>(&given), Ok(Value::Object(_))) {
        return Err(usage("the arguments are not a JSON object").hint("for example: '{\"name\": \"value\"}'"));
    }
    Ok(request)
}

fn server_name(given: &str) -> Result<Name, CliError> {
    given.parse().map_err(|error| usage(&error).hint("servers are set up in backstop.toml as [mcp.NAME]"))
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
    if !success.warnings.is_empty() && !terminal::is_quiet() {
        let notice = partial_success(&PartialSuccess {
            tool: SafeText::new(success.tool.as_str()),
            params: success.params(),
            succeeded: vec![SafeText::new(success.tool.as_str())],
            failed: Vec::new(),
            unconfirmed: 0,
            warnings: success.warnings.clone(),
            retry: None,
        });
        terminal::say(&notice.terminal(terminal::stderr_style()));
    }
    let result: Value = serde_json::from_str(success.result()).unwrap_or(Value::Null);
    if json {
        let all = json!({
            "schema": JSON_SCHEMA, "tool": success.tool, "attempts": success.attempts, "result": result,
            "warnings": success.warnings,
        });
        return terminal::print(&format!("{}\n", to_json(&all)));
    }
    let text = success.text();
    match text.is_empty() {
        true => terminal::print(&format!("{}\n", to_json(&result))),
        false => terminal::print(&format!("{}\n", SafeText::new(text))),
    }
}
