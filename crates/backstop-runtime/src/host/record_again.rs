//! An update that could not be recorded: where the log is there and the update is still due, it is
//! recorded once more; where it is on record already, the run goes on from it.

use super::{RunLog, RunLogError};
use backstop_core::{Event, EventKind, Fault, MASK, Reason, SafeText};
use serde_json::Value;

/// What failed, as people and `EMIT` lines name it. No node has this id.
const OPERATION: &str = "journal.append";
/// The update was due, and was recorded once more.
const RECORD_AGAIN: &str = "record_again";
/// The update was on record, though that was not confirmed.
const ALREADY_RECORDED: &str = "already_recorded";
/// How much two numbers may differ that are the same one, written and read.
const ROUNDING: f64 = 1e-9;

/// Records an update, all of it or nothing; once more where that is due. Returns all that is on
/// record now and was not before, the failure and the recovery included. The failure is recorded
/// before anything is done about it: where that fails too, the log cannot be used.
///
/// A log that somebody else has written to is left alone, whatever was written.
pub fn record(log: &dyn RunLog, version: u64, update: Vec<EventKind>) -> Result<Vec<Event>, RunLogError> {
    let error = match log.append(version, update.clone()) {
        Err(error @ RunLogError::Unavailable { .. }) => error,
        done => return done,
    };
    let Ok(found) = log.load() else { return Err(error) };
    let mut events: Vec<Event> = found.into_iter().filter(|event| event.seq > version).collect();
    if is_update(&events, &update) {
        let version = version + events.len() as u64;
        log.continue_from(version)?;
        if !update.iter().any(is_end) {
            // Trouble with it is met again by the next update.
            let said = log.append(version, vec![failure(&error), recovery(ALREADY_RECORDED, true)]);
            events.extend(said.unwrap_or_default());
        }
        return Ok(events);
    }
    if !events.is_empty() {
        return Err(error);
    }
    let Ok(mut events) = log.append(version, vec![failure(&error)]) else { return Err(error) };
    let version = version + events.len() as u64;
    let recorded = log.append(version, recovered(update)).inspect_err(|_| {
        let _ = log.append(version, vec![recovery(RECORD_AGAIN, false)]);
    })?;
    events.extend(recorded);
    Ok(events)
}

/// The update with its recovery, which comes before the run's end: nothing follows that.
fn recovered(mut update: Vec<EventKind>) -> Vec<EventKind> {
    let at = update.iter().position(is_end).unwrap_or(update.len());
    update.insert(at, recovery(RECORD_AGAIN, true));
    update
}

fn is_end(kind: &EventKind) -> bool {
    matches!(kind, EventKind::RunEnded { .. } | EventKind::RunHalted { .. })
}

/// Whether these recorded events are this update, field by field. Secrets are masked in what is
/// recorded: of a masked text nothing more can be told.
fn is_update(recorded: &[Event], update: &[EventKind]) -> bool {
    let is_same = |(event, kind): (&Event, &EventKind)| {
        let values = serde_json::to_value(&event.kind).ok().zip(serde_json::to_value(kind).ok());
        values.is_some_and(|(recorded, said)| is_same_value(&recorded, &said))
    };
    recorded.len() == update.len() && recorded.iter().zip(update).all(is_same)
}

fn is_same_value(recorded: &Value, said: &Value) -> bool {
    match (recorded, said) {
        (Value::String(recorded), Value::String(said)) => recorded == said || recorded.contains(MASK),
        (Value::Array(recorded), Value::Array(said)) => {
            recorded.len() == said.len()
                && recorded.iter().zip(said).all(|(recorded, said)| is_same_value(recorded, said))
        }
        (Value::Object(recorded), Value::Object(said)) => {
            let is_same = |(name, field): (&String, &Value)| {
                said.get(name).is_some_and(|said| is_same_value(field, said))
            };
            recorded.len() == said.len() && recorded.iter().all(is_same)
        }
        (Value::Number(recorded), Value::Number(said)) => {
            let numbers = recorded.as_f64().zip(said.as_f64());
            numbers.is_some_and(|(recorded, said)| (recorded - said).abs() <= ROUNDING * said.abs())
        }
        (recorded, said) => recorded == said,
    }
}

fn failure(error: &RunLogError) -> EventKind {
    let mut fault = Fault::new(error.reason());
    fault.cause = Some(SafeText::new(error.to_string()));
    EventKind::ErrorClassified { operation: OPERATION.into(), attempt: 1, fault: Box::new(fault) }
}

fn recovery(strategy: &str, success: bool) -> EventKind {
    EventKind::RecoveryAttempted {
        operation: Some(OPERATION.into()),
        strategy: strategy.to_owned(),
        success,
        attempt: 1,
        detail: None,
    }
}

impl RunLogError {
    /// What it is in the words of the taxonomy.
    fn reason(&self) -> Reason {
        match self {
            RunLogError::Conflict { .. } => Reason::StateInvalid,
            RunLogError::Unavailable { reason, .. } => *reason,
        }
    }
}
