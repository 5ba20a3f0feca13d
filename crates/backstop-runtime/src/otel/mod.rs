//! OpenTelemetry: a run that has ended becomes one trace, sent to a collector as OTLP over HTTP, in
//! JSON.
//!
//! Off unless `otel.endpoint` is set. It must not change how a run ends: what cannot be sent is an
//! error for a warning, and all of it takes two seconds at most. What is sent is what the journal
//! holds: secrets are masked already.

mod trace;

use crate::process::Process;
use crate::project::Project;
use crate::recorder::Observer;
use backstop_config::Config;
use backstop_core::Event;
use backstop_http::{Address, Client, HttpErrorKind, Limits, Request};
use std::sync::Arc;
use std::time::Duration;

/// How long all of it may take, finding the address included.
const EXPORT_MAX: Duration = Duration::from_secs(2);
/// How long connecting and waiting for the answer may take.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(1), idle: Duration::from_secs(1), total: Some(EXPORT_MAX) };

/// Why a trace could not be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OtelError {
    #[error("cannot send the trace to {to}: {why}")]
    Send { to: String, why: String },
    #[error(
        "cannot send the trace to {to}: it did not answer within {}",
        backstop_report::duration(EXPORT_MAX)
    )]
    Slow { to: String },
    #[error("the collector at {to} refused the trace with status {status}")]
    Refused { to: String, status: u16 },
    #[error("{to} does not answer as a collector does")]
    NoCollector { to: String },
}

impl OtelError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            OtelError::Send { .. } | OtelError::Slow { .. } => {
                "start the collector, or set `otel.endpoint` to \"none\""
            }
            OtelError::Refused { .. } | OtelError::NoCollector { .. } => {
                "check `otel.endpoint`: it is the address before `/v1/traces`, of OTLP over HTTP"
            }
        }
    }
}

/// Exports a run that has ended. What cannot be sent is a warning.
pub(crate) struct Exporter {
    config: Config,
    process: Arc<Process>,
}

impl Exporter {
    /// Where that is switched on.
    pub(crate) fn of(project: &Project) -> Option<Self> {
        project.config.otel()?;
        Some(Self { config: project.config.clone(), process: Arc::clone(&project.process) })
    }
}

impl Observer for Exporter {
    fn recorded(&self, _: &[Event]) {}

    fn ended(&self, events: &dyn Fn() -> Vec<Event>) {
        if let Err(error) = export(&self.config, &self.process.http_client(), &events()) {
            self.process.warn(&error.to_string(), Some(error.hint()));
        }
    }
}

/// Sends the events of one run as a trace. Nothing is done where it is not switched on or there are
/// no events.
pub(crate) fn export(config: &Config, client: &Client, events: &[Event]) -> Result<(), OtelError> {
    let Some((endpoint, service)) = config.otel() else { return Ok(()) };
    match trace::request(events, &service) {
        Some(request) => send(client, &endpoint, request.to_string()),
        None => Ok(()),
    }
}

/// In a small runtime of its own: whoever ends a run has none any more.
fn send(client: &Client, endpoint: &Address, body: String) -> Result<(), OtelError> {
    let to = endpoint.place();
    let unusable = |error: std::io::Error| OtelError::Send { to: to.clone(), why: error.to_string() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(unusable)?;
    let sent = runtime.block_on(async {
        let address = endpoint.below("/v1/traces").map_err(|error| error.to_string())?;
        let request = Request::post(&address).header("content-type", "application/json");
        let request = request.map_err(|error| error.to_string())?.body(body.into_bytes()).limits(LIMITS);
        Ok::<_, String>(client.send(request).await)
    });
    match sent.map_err(|why| OtelError::Send { to: to.clone(), why })? {
        Ok(response) if response.is_success() => Ok(()),
        Ok(response) => Err(OtelError::Refused { to, status: response.status() }),
        Err(error) if error.timeout().is_some() => Err(OtelError::Slow { to }),
        Err(error) if matches!(error.kind(), HttpErrorKind::NotHttp { .. }) => {
            Err(OtelError::NoCollector { to })
        }
        Err(error) => Err(OtelError::Send { to, why: error.kind().to_string() }),
    }
}

#[cfg(test)]
mod tests;
