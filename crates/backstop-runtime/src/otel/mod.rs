//! OpenTelemetry: a run that has ended becomes one trace, sent to a collector as OTLP over HTTP, in JSON.
//!
//! Off unless `otel.endpoint` is set. It must not change how a run ends: what cannot be sent is an error for a warning, and
//! all of it takes two seconds at most. What is sent is what the journal holds: secrets are masked already.

mod http;
mod trace;

use crate::process::Process;
use crate::project::Project;
use crate::recorder::Observer;
use backstop_config::{Config, Endpoint};
use backstop_core::Event;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How long all of it may take, finding the address included.
const EXPORT_MAX: Duration = Duration::from_secs(2);

/// Why a trace could not be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OtelError {
    #[error("cannot send the trace to {to}: {error}")]
    Send { to: String, error: std::io::Error },
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
    process: Process,
}

impl Exporter {
    /// Where that is switched on.
    pub(crate) fn of(project: &Project) -> Option<Self> {
        project.config.otel()?;
        Some(Self { config: project.config.clone(), process: project.process.clone() })
    }
}

impl Observer for Exporter {
    fn recorded(&self, _: &[Event]) {}

    fn ended(&self, events: &dyn Fn() -> Vec<Event>) {
        if let Err(error) = export(&self.config, &events()) {
            self.process.warn(&error.to_string(), Some(error.hint()));
        }
    }
}

/// Sends the events of one run as a trace. Nothing is done where it is not switched on or there are no events.
pub(crate) fn export(config: &Config, events: &[Event]) -> Result<(), OtelError> {
    let Some((endpoint, service)) = config.otel() else { return Ok(()) };
    match trace::request(events, &service) {
        Some(request) => send(endpoint, request.to_string()),
        None => Ok(()),
    }
}

/// On a thread of its own, because looking a name up has no limit.
fn send(endpoint: Endpoint, body: String) -> Result<(), OtelError> {
    let to = http::shown(&endpoint);
    let (done, answer) = channel();
    let sender = std::thread::Builder::new().name("otel".to_owned()).spawn(move || {
        let _ = done.send(http::post(&endpoint, "/v1/traces", body.as_bytes()));
    });
    if let Err(error) = sender {
        return Err(OtelError::Send { to, error });
    }
    match answer.recv_timeout(EXPORT_MAX) {
        Ok(Ok(Some(200..=299))) => Ok(()),
        Ok(Ok(Some(status))) => Err(OtelError::Refused { to, status }),
        Ok(Ok(None)) => Err(OtelError::NoCollector { to }),
        Ok(Err(error)) => Err(OtelError::Send { to, error }),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(OtelError::Slow { to }),
    }
}

#[cfg(test)]
mod tests;
