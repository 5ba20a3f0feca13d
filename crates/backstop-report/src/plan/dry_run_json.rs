//! A dry run as JSON.

use super::dry_run::{DryPhase, DryRun, PlanReading, Wave};
use crate::JSON_SCHEMA;
use crate::json::ms;
use crate::notice::json_text;
use backstop_core::SafeText;
use serde_json::{Value, json};

/// The dry run as JSON; nothing is cut.
pub fn dry_run_json(given: &DryRun) -> Value {
    let texts = |list: &[SafeText]| list.iter().map(json_text).collect::<Vec<_>>();
    let overlap = |(a, b, files): &(SafeText, SafeText, Vec<SafeText>)| json!({ "phases": [json_text(a), json_text(b)], "files": texts(files) });
    let level = |level: &Vec<DryPhase>| level.iter().map(phase_json).collect::<Vec<_>>();
    json!({
        "schema": JSON_SCHEMA,
        "outcome": "dry_run",
        "plan": given.plan.raw(),
        "phases": given.phases(),
        "levels": given.levels.iter().map(level).collect::<Vec<_>>(),
        "order": texts(&given.order),
        "jobs": given.jobs,
        "parallel": json_text(&given.parallel),
        "isolation": json_text(&given.isolation),
        "commit": json_text(&given.commit),
        "max_attempts": given.most_attempts,
        "expected_ms": given.expected.map(ms),
        "overlaps": given.overlaps.iter().map(overlap).collect::<Vec<_>>(),
        "warnings": texts(&given.warnings),
        "next": given.run.raw(),
        "reading": given.reading.as_ref().map(reading_json),
    })
}

fn reading_json(reading: &PlanReading) -> Value {
    let texts = |list: &[SafeText]| list.iter().map(json_text).collect::<Vec<_>>();
    let wave = |wave: &Wave| json!({ "phases": texts(&wave.ids), "side_by_side": wave.beside });
    json!({
        "format": json_text(&reading.format),
        "by": json_text(&reading.by),
        "tasks": reading.tasks,
        "groups": reading.groups,
        "done": reading.done,
        "waves": reading.waves.iter().map(wave).collect::<Vec<_>>(),
        "checks": texts(&reading.checks),
        "passed_over": texts(&reading.passed_over),
    })
}

fn phase_json(phase: &DryPhase) -> Value {
    json!({
        "phase_id": json_text(&phase.id), "phase_name": json_text(&phase.name), "by": json_text(&phase.by),
        "max_attempts": phase.attempts_most, "tasks": phase.tasks,
        "estimate": phase.estimate.as_ref().map(json_text),
        "gates": phase.gates.iter().map(json_text).collect::<Vec<_>>(), "done": phase.done,
    })
}
