//! Statistics as JSON.

use super::{StatsReport, day};
use crate::JSON_SCHEMA;
use backstop_core::{Counts, Reported};
use serde_json::{Map, Value, json};

/// The statistics as JSON: every table, whichever one people asked for.
pub fn stats_json(report: &StatsReport) -> Value {
    let runs: Map<String, Value> = report
        .stats
        .runs
        .iter()
        .map(|(outcome, count)| (outcome.name().to_owned(), (*count).into()))
        .collect();
    let named = |key: &str, name: Value, tally: &Counts| {
        let mut row = counts_json(tally);
        row[key] = name;
        row
    };
    let reason = |(reason, tally): &(backstop_core::Reason, Counts)| {
        let mut row = named("reason", reason.code().into(), tally);
        row["class"] = reason.class().name().into();
        row
    };
    let rows = |rows: Vec<Value>| Value::Array(rows);
    json!({
        "schema": JSON_SCHEMA,
        "since": report.since,
        "runs": { "all": report.stats.all_runs(), "open": report.stats.runs_open, "outcomes": runs },
        "total": counts_json(&report.stats.total),
        "reasons": rows(report.stats.reasons.iter().map(reason).collect()),
        "classes": rows(report.stats.classes().iter().map(|(c, t)| named("class", c.name().into(), t)).collect()),
        "operations": rows(report.stats.operations.iter().map(|(o, t)| named("operation", o.raw().into(), t)).collect()),
        "operations_left_out": report.stats.operations_left_out,
        "days": rows(report.stats.days.iter().map(|(d, t)| named("day", day(*d).into(), t)).collect()),
        "reported": reported_json(&report.stats.reported),
        "used": {
            "tokens_in": report.stats.used.tokens_in,
            "tokens_out": report.stats.used.tokens_out,
            "cost_millionths": report.stats.used.cost_millionths,
        },
        "models": report.models.iter().map(|(model, used)| json!({
            "model": model,
            "tokens_in": used.tokens_in,
            "tokens_out": used.tokens_out,
            "cost_millionths": used.cost_millionths,
        })).collect::<Vec<_>>(),
        "signatures": report.signatures.iter().map(|row| json!({
            "signature": row.signature, "reason": row.reason, "seen": row.seen, "retried": row.retried,
            "cured": row.cured, "last_at": row.last_at,
        })).collect::<Vec<_>>(),
    })
}

fn reported_json(reported: &Reported) -> Value {
    let reasons: Vec<Value> = reported
        .reasons
        .iter()
        .map(|(reason, errors)| {
            json!({ "reason": reason.code(), "class": reason.class().name(), "errors": errors })
        })
        .collect();
    let outcomes: Map<String, Value> = reported
        .outcomes
        .iter()
        .map(|(outcome, count)| (outcome.name().to_owned(), (*count).into()))
        .collect();
    json!({
        "errors": reported.errors, "last_hour": reported.last_hour, "first_at": reported.first,
        "reasons": reasons, "outcomes": outcomes,
    })
}

fn counts_json(tally: &Counts) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "a share for people and plots")]
    let rate = (tally.attempts > 0).then(|| tally.failed() as f64 / tally.attempts as f64);
    json!({
        "attempts": tally.attempts, "succeeded": tally.succeeded, "failed": tally.failed(), "lost": tally.lost,
        "error_rate": rate, "errors": tally.errors, "retried": tally.retried, "cured": tally.cured,
        "failed_ms": tally.failed_ms, "attempts_ms": tally.attempts_ms, "waited_ms": tally.waited_ms,
        "guard_waited_ms": tally.guard_ms,
    })
}
