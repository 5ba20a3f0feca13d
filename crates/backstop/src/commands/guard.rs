//! `backstop guard`: the shared rate limit of a provider.

use crate::error::{CliError, DEFERRED, DONE, usage};
use crate::process;
use crate::terminal;
use backstop_classify::{agent_names, provider_names, provider_of_name};
use backstop_core::guard::{Closed, GuardKey, PROBE_EVERY, closed_by};
use backstop_core::nearest::nearest;
use backstop_core::{Clock, Hints, Name, SafeText};
use backstop_report::{JSON_SCHEMA, duration, table, to_json};
use backstop_runtime::admission::{GuardWait, Step, key_of};
use backstop_runtime::aftermath::record_override;
use backstop_store::{BreakerState, GuardState, LimitStore};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;
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

/// The provider that a name stands for: an agent's name stands for its provider.
pub(crate) fn provider_named(given: &str) -> Result<Name, CliError> {
    let given = given.to_ascii_lowercase();
    Ok(provider_of_name(&given).unwrap_or(&given).parse()?)
}

/// The same, where only a provider that is known makes sense: by its name, or by a guard or breaker
/// that was learned.
fn known_provider(given: &str, store: &LimitStore) -> Result<Name, CliError> {
    let provider = provider_named(given)?;
    if provider_names().any(|name| name == provider.as_str()) {
        return Ok(provider);
    }
    let learned = store.guards()?.into_iter().map(|guard| guard.key.provider);
    let learned: Vec<Name> = learned.chain(store.breakers()?.into_iter().map(|b| b.provider)).collect();
    if learned.contains(&provider) {
        return Ok(provider);
    }
    let mut names: Vec<&str> = learned.iter().map(Name::as_str).collect();
    provider_names().chain(agent_names()).for_each(|name| names.push(name));
    let error = usage(format!("no provider is called `{provider}`, and no limit of it was learned"));
    Err(match nearest(provider.as_str(), names) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error
            .hint("`backstop guard` lists what was learned; `guard ingest NAME` learns a limit of any name"),
    })
}

/// How much of headers and bodies is read.
const INPUT_BYTES_MAX: u64 = 1 << 20;

pub(crate) fn run(args: &Guard) -> Result<u8, CliError> {
    let Some(action) = &args.action else { return status(None, args.json).map(|()| DONE) };
    match action {
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
    let provider = provider_named(provider)?;
    let response = if headers.is_none() && body.is_none() && status.is_none() {
        Response::parse(&read(Path::new("-"))?).ok_or_else(no_response)?
    } else {
        let headers = headers.map(read).transpose()?;
        let body = body.map(read).transpose()?;
        Response {
            status,
            headers: headers.map(|text| Hints::parse_headers(&text)).unwrap_or_default(),
            body: body.and_then(|text| serde_json::from_str(&text).ok()),
        }
    };
    let project = process::open(&[], None)?;
    let now = process::now();
    let clock = Clock { now: Some(now), zone: process::zone() };
    let learned =
        closed_by(&Hints::read(&response.headers, response.body.as_ref(), &clock), response.status, now);
    let store = project.limits()?;
    let key = key_of(store, &provider, None, &project.process, true);
    let state = store.learn(&key, learned)?;
    // What was learned is said; only `check` and `wait` answer by exit code.
    tell(&provider, state.closed.as_ref(), json).map(|_| DONE)
}

/// A provider's response, as far as a limit can be learned from it.
#[derive(Debug, PartialEq)]
struct Response {
    status: Option<u16>,
    headers: Vec<(String, String)>,
    body: Option<Value>,
}

impl Response {
    /// Reads a response as `curl -i` prints it: a status line, headers, an empty line, a body. Only
    /// the headers or only a JSON body will do. `None` where it is none of these.
    fn parse(text: &str) -> Option<Self> {
        let text = text.replace("\r\n", "\n");
        let mut rest = text.trim_start();
        if let Ok(body) = serde_json::from_str::<Value>(rest) {
            let headers = Hints::parse_headers(rest);
            return (body.is_object() || body.is_array()).then_some(Self {
                status: None,
                headers,
                body: Some(body),
            });
        }
        let mut response = Self { status: None, headers: Vec::new(), body: None };
        // A redirect or `100 Continue` comes before the response that counts: the last one.
        loop {
            let (head, body) = rest.split_once("\n\n").unwrap_or((rest, ""));
            response.status = status_of(head);
            response.headers = Hints::parse_headers(head);
            rest = body.trim_start();
            if status_of(rest).is_none() {
                break;
            }
        }
        response.body = serde_json::from_str(rest).ok();
        let is_response = response.status.is_some() || !response.headers.is_empty();
        is_response.then_some(response)
    }
}

/// The status in a status line such as `HTTP/1.1 429 Too Many Requests`, where `text` begins with
/// one.
fn status_of(text: &str) -> Option<u16> {
    let (_, rest) = text.strip_prefix("HTTP/")?.split_once(' ')?;
    rest.split_whitespace().next()?.parse().ok().filter(|status| (100..600).contains(status))
}

fn no_response() -> CliError {
    usage("there is no response on standard input to learn a limit from")
        .hint("`curl -sSi URL | backstop guard ingest PROVIDER`")
        .hint("or give its parts: `--headers FILE --body FILE --status 429`")
}

fn check(provider: &str, json: bool) -> Result<u8, CliError> {
    let project = process::open(&[], None)?;
    let store = project.limits()?;
    let provider = known_provider(provider, store)?;
    let closed = store.guard(&provider)?.and_then(|guard| guard.closed);
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
                process::zone().shown(closed.until, process::now()),
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
    let project = process::open(&[], None)?;
    let store = project.limits()?;
    let provider = known_provider(provider, store)?;
    let mut wait = GuardWait::new(GuardKey::from(&provider), deadline, project.process.id);
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
    let project = process::open(&[], None)?;
    let store = project.limits()?;
    let only = provider.map(|given| known_provider(given, store)).transpose()?;
    let wanted = |name: &Name| only.as_ref().is_none_or(|only| only == name);
    let guards: Vec<GuardState> = store.guards()?.into_iter().filter(|g| wanted(&g.key.provider)).collect();
    let breakers: Vec<BreakerState> = store.breakers()?.into_iter().filter(|b| wanted(&b.provider)).collect();
    let now = process::now();
    let waiting = |guard: &GuardState| match &guard.closed {
        Some(_) => store.waiting(&guard.key, &project.process.is_alive).unwrap_or(0),
        None => 0,
    };
    if json {
        let guards: Vec<Value> = guards
            .iter()
            .map(|guard| {
                let mut row = decision_json(&guard.key.provider, guard.closed.as_ref());
                row["account"] = json!(guard.key.account());
                row["model"] = json!(guard.key.model());
                row["waiting"] = json!(waiting(guard));
                row["in_words"] = json!(guard.closed.as_ref().is_some_and(|closed| closed.in_words));
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
            "no rate limit is known yet; `backstop exec --provider NAME -- COMMAND` learns one, and so does \
             `backstop guard ingest NAME`\n",
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
                        let until = process::zone().shown(closed.until, now);
                        (format!("limited for {left} until {until}"), explained_guard(closed))
                    }
                    None => ("open".to_owned(), "-".to_owned()),
                };
                let (waiting, refusals) = (waiting(guard).to_string(), guard.refusals.to_string());
                vec![guard.key.to_string(), state, waiting, refusals, why]
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

/// Why a guard is closed.
fn explained_guard(closed: &Closed) -> String {
    let why = SafeText::new(closed.why.clone()).line(80);
    // Shorter ones are over before anybody may try.
    let is_probed = closed.in_words && closed.until.since(closed.learned_at) > PROBE_EVERY;
    if is_probed { format!("{why} (in words: one may try each {})", duration(PROBE_EVERY)) } else { why }
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
    let project = process::open(&[], None)?;
    let store = project.limits()?;
    let provider = known_provider(provider, store)?;
    record_override(&project, "guard", &format!("guard clear {provider}"), why)?;
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
