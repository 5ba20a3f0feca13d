//! `backstop guard`: the shared rate limit of a provider.

use crate::error::{CliError, DEFERRED, DONE};
use crate::process;
use crate::terminal;
use backstop_core::guard::{Closed, closed_by};
use backstop_core::{Hints, Name, SafeText};
use backstop_report::{JSON_SCHEMA, duration, table, to_json};
use backstop_runtime::admission::{GuardWait, Step};
use backstop_runtime::aftermath::record_override;
use backstop_store::{BreakerState, GuardState, LimitStore};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

/// The shared rate limit of a provider: when one is told to wait, all wait.
#[derive(Debug, Args)]
pub(crate) struct Guard {
    #[command(subcommand)]
    pub(crate) action: GuardAction,
}

/// What to do with it.
#[derive(Debug, Subcommand)]
pub(crate) enum GuardAction {
    /// Learn from an answer of the provider: its status, headers and body
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
    /// Whether something may be sent now: exits 0 if so, 75 if not
    Check {
        /// The provider
        provider: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Wait until something may be sent: exits 0 then, 75 at once where that is after the deadline
    Wait {
        /// The provider
        provider: String,
        /// How long to wait at most, such as 10m
        #[arg(long, value_name = "DURATION")]
        deadline: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show guards and breakers
    Status {
        /// Only of this provider
        provider: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Open a guard, and close the provider's breakers, whatever was learned
    Clear {
        /// The provider
        provider: String,
        /// Why, for the record
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
    match &args.action {
        GuardAction::Ingest { provider, headers, body, status, json } => {
            ingest(provider, headers.as_deref(), body.as_deref(), *status, *json)
        }
        GuardAction::Check { provider, json } => check(provider, *json),
        GuardAction::Wait { provider, deadline, json } => {
            let deadline = deadline.as_deref().map(backstop_core::duration::parse).transpose()?;
            wait_for(provider, deadline, *json)
        }
        GuardAction::Status { provider, json } => status(provider.as_deref(), *json).map(|()| DONE),
        GuardAction::Clear { provider, why, json } => clear(provider, why.as_deref(), *json).map(|()| DONE),
    }
}

fn ingest(
    provider: &str,
    headers: Option<&Path>,
    body: Option<&Path>,
    status: Option<u16>,
    json: bool,
) -> Result<u8, CliError> {
    let provider: Name = provider.parse()?;
    let headers = headers.map(read).transpose()?.map(|text| Hints::parse_headers(&text)).unwrap_or_default();
    let body: Option<Value> = body.map(read).transpose()?.and_then(|text| serde_json::from_str(&text).ok());
    let project = process::open(&[], None)?;
    let now = process::now();
    let learned = closed_by(&Hints::read(&headers, body.as_ref(), now), status, now);
    let state = project.limits()?.learn(&provider, learned)?;
    tell(&provider, state.closed.as_ref(), json)
}

fn check(provider: &str, json: bool) -> Result<u8, CliError> {
    let provider: Name = provider.parse()?;
    let project = process::open(&[], None)?;
    let closed = project.limits()?.guard(&provider)?.and_then(|guard| guard.closed);
    tell(&provider, closed.as_ref(), json)
}

/// Says whether it is open, and exits accordingly.
fn tell(provider: &Name, closed: Option<&Closed>, json: bool) -> Result<u8, CliError> {
    let left = closed.map(|closed| closed.left(process::now()));
    if json {
        terminal::print(&format!("{}\n", to_json(&decision_json(provider, closed))))?;
    } else {
        terminal::print(&match (closed, left) {
            (Some(closed), Some(left)) => format!(
                "{provider} is limited for {} until {}: {}\n",
                duration(left),
                closed.until,
                SafeText::new(closed.why.clone()).line(200)
            ),
            _ => format!("{provider} is open\n"),
        })?;
    }
    Ok(if closed.is_some() { DEFERRED } else { DONE })
}

fn decision_json(provider: &Name, closed: Option<&Closed>) -> Value {
    let now = process::now();
    json!({
        "schema": JSON_SCHEMA,
        "provider": provider,
        "decision": if closed.is_some() { "rate-limited" } else { "open" },
        "until": closed.map(|c| c.until),
        "wait_seconds": closed.map_or(0.0, |c| c.left(now).as_secs_f64()),
        "why": closed.map(|c| c.why.clone()),
    })
}

fn wait_for(provider: &str, deadline: Option<Duration>, json: bool) -> Result<u8, CliError> {
    let provider: Name = provider.parse()?;
    let project = process::open(&[], None)?;
    let store = project.limits()?;
    let mut wait = GuardWait::new(provider.clone(), deadline);
    let mut announced = json;
    loop {
        match wait.next(store, process::now())? {
            Step::Open => return tell(&provider, None, json),
            Step::TooLong(closed) => return tell(&provider, Some(&closed), json),
            Step::Sleep(step) => {
                if !announced {
                    announced = true;
                    announce(store, &provider);
                }
                std::thread::sleep(step);
            }
        }
    }
}

/// Says what is waited for.
fn announce(store: &LimitStore, provider: &Name) {
    if let Ok(Some(GuardState { closed: Some(closed), .. })) = store.guard(provider) {
        let left = duration(closed.left(process::now()));
        let why = SafeText::new(closed.why).line(200);
        terminal::say(&format!("waiting {left} for {provider}: {why}\n"));
    }
}

fn status(provider: Option<&str>, json: bool) -> Result<(), CliError> {
    let only: Option<Name> = provider.map(str::parse).transpose()?;
    let project = process::open(&[], None)?;
    let store = project.limits()?;
    let wanted = |name: &Name| only.as_ref().is_none_or(|only| only == name);
    let guards: Vec<GuardState> = store.guards()?.into_iter().filter(|g| wanted(&g.provider)).collect();
    let breakers: Vec<BreakerState> = store.breakers()?.into_iter().filter(|b| wanted(&b.provider)).collect();
    let now = process::now();
    if json {
        let guards: Vec<Value> = guards
            .iter()
            .map(|guard| {
                let mut row = decision_json(&guard.provider, guard.closed.as_ref());
                row["waiting"] = json!(if guard.closed.is_some() { guard.queue } else { 0 });
                row["answers"] = json!(guard.answers);
                row["refusals"] = json!(guard.refusals);
                row["updated_at"] = json!(guard.updated_at);
                row
            })
            .collect();
        let breakers: Vec<Value> = breakers
            .iter()
            .map(|b| {
                json!({
                    "provider": b.provider, "operation": b.operation, "state": b.breaker.name(now), "failures": b.breaker.failures,
                    "opened": b.breaker.opened, "open_since": b.breaker.open_since, "updated_at": b.updated_at, "why": explained(b),
                })
            })
            .collect();
        let value = json!({ "schema": JSON_SCHEMA, "guards": guards, "breakers": breakers });
        return terminal::print(&format!("{}\n", to_json(&value)));
    }
    if guards.is_empty() && breakers.is_empty() {
        return terminal::print(
            "no guard has learned anything yet; `backstop guard ingest PROVIDER` teaches one\n",
        );
    }
    let mut text = String::new();
    if !guards.is_empty() {
        let rows: Vec<Vec<String>> = guards
            .iter()
            .map(|guard| {
                let (state, why) = match &guard.closed {
                    Some(closed) => {
                        let left = duration(closed.left(now));
                        (format!("limited for {left}"), SafeText::new(closed.why.clone()).line(80))
                    }
                    None => ("open".to_owned(), "-".to_owned()),
                };
                let waiting = if guard.closed.is_some() { guard.queue } else { 0 };
                vec![guard.provider.to_string(), state, waiting.to_string(), guard.refusals.to_string(), why]
            })
            .collect();
        text.push_str(&table(&["GUARD", "STATE", "WAITING", "REFUSALS", "WHY"], &rows));
    }
    if !breakers.is_empty() {
        let rows: Vec<Vec<String>> = breakers
            .iter()
            .map(|b| {
                let operation = SafeText::new(b.operation.clone()).line(40);
                vec![b.provider.to_string(), operation, b.breaker.name(now).to_owned(), explained(b)]
            })
            .collect();
        text.push_str(&table(&["BREAKER", "OPERATION", "STATE", "WHY"], &rows));
    }
    terminal::print(&text)
}

/// Why a breaker stands as it does.
fn explained(state: &BreakerState) -> String {
    let failures = state.breaker.failures;
    let now = process::now();
    match (state.breaker.name(now), state.breaker.open_since) {
        ("closed", _) => format!("{failures} of {} failures in a row", backstop_core::breaker::FAILURES_MAX),
        ("half-open", _) => "the next one is let through to see whether it works again".to_owned(),
        (_, Some(since)) => format!("{failures} failures in a row, open since {since}"),
        _ => format!("{failures} failures in a row"),
    }
}

fn clear(provider: &str, why: Option<&str>, json: bool) -> Result<(), CliError> {
    let provider: Name = provider.parse()?;
    let project = process::open(&[], None)?;
    record_override(&project, "guard", &format!("guard clear {provider}"), why)?;
    let store = project.limits()?;
    let was = store.clear_guard(&provider)?;
    let breakers = store.clear_breakers(&provider)?;
    terminal::print(&if json {
        let value =
            json!({ "schema": JSON_SCHEMA, "provider": provider, "was_limited": was, "breakers": breakers });
        format!("{}\n", to_json(&value))
    } else if was || breakers > 0 {
        format!("{provider} is open now\n")
    } else {
        format!("{provider} was open\n")
    })
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
