//! The JSON of each text fits its published schema, and leaves none of its fields out.

use super::super::*;
use super::seed;
use crate::samples::plans;
use backstop_core::{Usage, WorkAt};
use serde_json::Value;

fn schema(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        other => panic!("unknown type {other} in a schema"),
    }
}

/// As much of JSON Schema as these schemas use.
fn fits(schema: &Value, value: &Value, at: &str) {
    match &schema["type"] {
        Value::String(kind) => assert!(is(value, kind), "{at}: {value} is not {kind}"),
        Value::Array(kinds) => {
            let any = kinds.iter().any(|kind| is(value, kind.as_str().unwrap()));
            assert!(any, "{at}: {value} is none of {kinds:?}");
        }
        _ => assert!(schema["enum"].as_array().unwrap().contains(value), "{at}: {value}"),
    }
    if let Some(object) = value.as_object() {
        let properties = schema["properties"].as_object().unwrap();
        for (key, field) in object {
            let inner = properties.get(key).unwrap_or_else(|| panic!("{at}: {key} is not in the schema"));
            fits(inner, field, &format!("{at}.{key}"));
        }
        for key in schema["required"].as_array().unwrap() {
            assert!(object.contains_key(key.as_str().unwrap()), "{at}: {key} is missing");
        }
    }
    for (n, item) in value.as_array().into_iter().flatten().enumerate() {
        fits(&schema["items"], item, &format!("{at}[{n}]"));
    }
}

#[test]
fn a_halt_fits_its_schema() {
    let schema = schema(include_str!("../../../../../docs/schemas/plan-halt.schema.json"));
    fits(&schema, &halt_json(&plans::halt(&seed())), "halt");
}

#[test]
fn a_completion_fits_its_schema() {
    let schema = schema(include_str!("../../../../../docs/schemas/plan-completion.schema.json"));
    let completion = plans::completion(&seed());
    let landed = WorkAt::Landed { branch: "main".into(), sha: "a1b2c3d".into() };
    let nowhere = WorkAt::Uncommitted { command: None };
    let usage = Usage { cost_usd: Some(f64::NAN), ..Usage::default() };
    for (work, usage) in [(completion.work.clone(), None), (landed, Some(usage)), (nowhere, completion.usage)]
    {
        fits(&schema, &completion_json(&Completion { work, usage, ..completion.clone() }), "completion");
    }
}

#[test]
fn a_dry_run_fits_its_schema() {
    let schema = schema(include_str!("../../../../../docs/schemas/plan-dry-run.schema.json"));
    fits(&schema, &dry_run_json(&plans::dry(&seed())), "dry run");
    fits(&schema, &dry_run_json(&DryRun::default()), "empty dry run");
}

#[test]
fn a_status_fits_its_schema() {
    let schema = schema(include_str!("../../../../../docs/schemas/plan-status.schema.json"));
    let status = plans::status(&seed());
    for state in [status.state, RunState::Running { pid: 4711 }, RunState::Complete, RunState::Interrupted] {
        fits(&schema, &plan_status_json(&PlanStatus { state, ..status.clone() }), "status");
    }
}
