//! Delivers one message to one sink through the engine, with its retries.

use super::{Message, Sink, SinkKind, Times, program, rendered};
use backstop_classify::Classifier;
use backstop_core::{Action, Class, Dispatch, Fault, Reason, SafeText, Signal, Surface};
use backstop_engine::{Attempt, Engine, Failed};
use backstop_http::{Address, Client, HeaderError, HttpError, Limits, Request};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The time and size limits of a request.
const REQUEST: Limits = Limits {
    connect: Duration::from_secs(5),
    idle: Duration::from_secs(5),
    total: Some(Duration::from_secs(10)),
};
/// How long a program may run.
const PROGRAM_MAX: Duration = Duration::from_secs(30);
/// How many bytes of a refusal's body are read.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
/// How many characters of a response are shown.
const SAID_CHARS_MAX: usize = 200;

/// A secret that a sink needs: a token, or an address.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(String);

impl Credential {
    /// A secret, from the value of an environment variable.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credential(…)")
    }
}

/// The result of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The message was accepted.
    Sent {
        /// The response of the other side.
        response: SafeText,
        /// The number of attempts.
        attempts: u32,
    },
    /// The message cannot be delivered now.
    Later {
        /// The reason in words.
        why: SafeText,
        /// The wait that the other side asks for, if it does.
        wait: Option<Duration>,
        /// The number of attempts.
        attempts: u32,
    },
    /// The message was refused.
    Refused {
        /// The reason in words.
        why: SafeText,
        /// The number of attempts.
        attempts: u32,
    },
}

/// Delivers a message, with the retries of `policy`. A message whose delivery was lost may have
/// arrived already, so it arrives at least once, and possibly more often.
pub async fn deliver(
    engine: &Engine,
    client: &Client,
    sink: &Sink,
    credential: Option<&Credential>,
    message: &Message,
    times: &Times,
) -> DeliveryOutcome {
    let work = Arc::new((sink.clone(), credential.cloned(), message.clone(), times.clone()));
    let finished = engine
        .run(sink.name.as_str(), |_: Attempt| {
            let (work, client) = (Arc::clone(&work), client.clone());
            async move {
                let (sink, credential, message, times) = &*work;
                attempt_once(&client, sink, credential.as_ref(), message, times).await
            }
        })
        .await;
    let attempts = finished.attempts;
    match finished.result {
        Ok(response) => DeliveryOutcome::Sent { response, attempts },
        Err(ending) => {
            let why = failure_line(&ending.fault);
            let last = finished.faults.last().unwrap_or(&ending.fault);
            let wait = last.facts.retry_after_seconds.and_then(|wait| Duration::try_from_secs_f64(wait).ok());
            let passes = matches!(last.class, Class::Transient | Class::System) && last.retryable;
            if passes || matches!(ending.decision.action, Action::Defer { .. }) {
                DeliveryOutcome::Later { why, wait, attempts }
            } else {
                DeliveryOutcome::Refused { why, attempts }
            }
        }
    }
}

/// A failed delivery in one line: the status, the reason and the cause.
fn failure_line(fault: &Fault) -> SafeText {
    let status = fault.evidence.iter().find_map(|evidence| evidence.text.raw().strip_prefix("status "));
    let mut parts: Vec<String> = status.map(|status| format!("answered {status}")).into_iter().collect();
    parts.push(fault.reason.to_string());
    // The field in which the cause was found does not matter here.
    let bare = |text: String| {
        let bare = ["body: ", "message: "].iter().find_map(|place| text.strip_prefix(place));
        bare.map_or_else(|| text.clone(), str::to_owned)
    };
    parts.extend(fault.cause.as_ref().map(|cause| bare(cause.line(SAID_CHARS_MAX))));
    SafeText::new(parts.join(": "))
}

/// Makes one attempt, and returns the response.
pub async fn attempt_once(
    client: &Client,
    sink: &Sink,
    credential: Option<&Credential>,
    message: &Message,
    times: &Times,
) -> Result<SafeText, Failed> {
    let body = rendered(sink, message, times);
    match &sink.kind {
        // The process that owns the terminal prints it.
        SinkKind::Terminal => Ok(SafeText::new("told")),
        SinkKind::Webhook { address, .. } => post(client, address, &[], credential, body).await,
        SinkKind::Slack { address: Some(address), .. } => post(client, address, &[], None, body).await,
        SinkKind::Slack { address: None, .. } => {
            let Some(Credential(text)) = credential else {
                return Err(invalid("there is no address".to_owned()));
            };
            let address = Address::parse(text.trim())
                .map_err(|error| invalid(format!("what the variable holds {error}; {}", error.hint())))?;
            post(client, &address, &[], None, body).await
        }
        SinkKind::GitHub { address, .. } => {
            let headers = [("accept", "application/vnd.github+json"), ("x-github-api-version", "2022-11-28")];
            post(client, address, &headers, credential, body).await
        }
        SinkKind::Command { argv } => {
            let (argv, message) = (argv.clone(), message.clone());
            let ran = tokio::task::spawn_blocking(move || command(&argv, &message, &body)).await;
            ran.unwrap_or_else(|_| Err(Failed::from(Fault::new(Reason::Crash))))
        }
    }
}

fn invalid(why: String) -> Failed {
    let mut fault = Fault::new(Reason::InvalidUsage);
    fault.cause = Some(SafeText::new(why));
    Failed::classified(fault, Dispatch::NotDispatched)
}

/// A request that got no answer: the rules say what that is, the client's own words say why.
fn not_answered(error: HttpError) -> Failed {
    let (why, dispatch) = (error.kind().to_string(), error.dispatch());
    let signal = Signal::from(error);
    let mut fault = Classifier::builtin().classify(&signal).unwrap_or_else(|| Fault::new(Reason::Unknown));
    fault.cause = Some(SafeText::new(why));
    Failed::classified(fault, dispatch)
}

async fn post(
    client: &Client,
    address: &Address,
    headers: &[(&str, &str)],
    bearer: Option<&Credential>,
    body: String,
) -> Result<SafeText, Failed> {
    let request = || -> Result<Request, HeaderError> {
        let mut request = Request::post(address).header("content-type", "application/json")?;
        for (name, value) in headers {
            request = request.header(name, value)?;
        }
        if let Some(Credential(token)) = bearer {
            request = request.secret_header("authorization", format!("Bearer {token}"))?;
        }
        Ok(request.body(body.into_bytes()).limits(REQUEST))
    };
    let request = request().map_err(|error| invalid(error.to_string()))?;
    let mut response = client.send(request).await.map_err(not_answered)?;
    if response.is_success() {
        return Ok(SafeText::new(format!("answered {}", response.status())));
    }
    let body = response.body_start(REFUSAL_BYTES_MAX).await;
    Err(Failed::from(response.signal(body)))
}

/// Runs a program with the text on its standard input, in the project's folder if that still
/// exists.
fn command(argv: &[String], message: &Message, text: &str) -> Result<SafeText, Failed> {
    let folder = Some(PathBuf::from(message.about.project.raw())).filter(|folder| folder.is_dir());
    let ran = program::run(argv, folder.as_deref(), text.as_bytes(), PROGRAM_MAX)?;
    if ran.exit == Some(0) && !ran.timed_out {
        return Ok(SafeText::new("exit 0"));
    }
    Err(Failed::from(Signal {
        surface: Surface::Command,
        dispatch: if ran.timed_out { Dispatch::Lost } else { Dispatch::Answered },
        command: argv.first().cloned(),
        exit: ran.exit,
        timed_out: ran.timed_out,
        stdout: ran.stdout,
        stderr: ran.stderr,
        ..Signal::default()
    }))
}
