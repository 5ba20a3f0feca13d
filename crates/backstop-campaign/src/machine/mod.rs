//! The functions of `backstop machine`: a campaign's decisions as JSON, for other harnesses and
//! tests.
//!
//! [`answer`] takes one line and gives one: `{"fn", "input"}` in, `{"output"}` or `{"error"}` out.
//! It must not fail, whatever the line is, and it does no I/O: the time is an argument.

mod dag;
mod serve;
mod workspace;

pub use serve::Answers;

use crate::explore::{self, Mode, Quorum};
use crate::planner_answer::PlannerAnswer;
use crate::state::{Flow, State};
use crate::task::TaskPlan;
use backstop_core::Timestamp;
use backstop_core::nearest::nearest;
use serde_json::{Value, json};

/// The longest line that is read, in bytes.
pub const LINE_BYTES_MAX: usize = 8 << 20;

/// The names of all functions.
pub const FUNCTIONS: [&str; 19] = [
    "dag.register",
    "dag.ready",
    "dag.next",
    "dag.cascade",
    "dag.propagate",
    "dag.merge",
    "dag.replan_input",
    "plan.decision",
    "plan.validate",
    "explore.aggregate",
    "explore.extract_json",
    "explore.quorum",
    "state.transition",
    "campaign.complete",
    "workspace.finish",
    "workspace.id",
    "workspace.lineage",
    "workspace.siblings",
    "workspace.verify_source",
];

/// What is wrong with the input of a function.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("input.{field} must be {wanted}")]
pub(crate) struct InputError {
    field: String,
    wanted: String,
}

impl InputError {
    fn field(field: &str, wanted: &str) -> Self {
        Self { field: field.to_owned(), wanted: wanted.to_owned() }
    }
}

/// What a planner is told when it is asked for another plan: `dag.replan_input`.
pub(crate) fn replan_input(input: &Value) -> Value {
    dag::replan_input(input).unwrap_or(Value::Null)
}

/// The answer to one line.
pub fn answer(line: &str, now: Timestamp) -> Value {
    match reply(line, now) {
        Ok(output) => json!({"output": output}),
        Err(error) => json!({"error": error}),
    }
}

fn reply(line: &str, now: Timestamp) -> Result<Value, String> {
    if line.len() > LINE_BYTES_MAX {
        return Err(format!("the line has {} bytes; at most {LINE_BYTES_MAX} are read", line.len()));
    }
    let call: Value = serde_json::from_str(line).map_err(|error| format!("the line is no JSON: {error}"))?;
    let name = call.get("fn").and_then(Value::as_str);
    let name = name.ok_or_else(|| "the line names no function: {\"fn\": …, \"input\": {…}}".to_owned())?;
    let input = call.get("input").unwrap_or(&Value::Null);
    if !input.is_object() {
        return Err(format!("{name}: input must be an object"));
    }
    let output = match name {
        "dag.register" => dag::register(input),
        "dag.ready" => dag::ready(input),
        "dag.next" => dag::next(input),
        "dag.cascade" => dag::cascade(input),
        "dag.propagate" => dag::propagate(input),
        "dag.merge" => dag::merge(input),
        "dag.replan_input" => dag::replan_input(input),
        "campaign.complete" => dag::complete(input, now),
        "plan.decision" => text(input, "text").map(decision),
        "plan.validate" => Ok(validation(input.get("plan").unwrap_or(&Value::Null))),
        "explore.aggregate" => aggregate(input),
        "explore.extract_json" => {
            text(input, "text").map(|text| explore::extract_json(text).unwrap_or(Value::Null))
        }
        "explore.quorum" => quorum(input),
        "state.transition" => transition(input),
        "workspace.finish" => workspace::finish(input, now),
        "workspace.id" => workspace::id(input),
        "workspace.lineage" => workspace::lineage(input),
        "workspace.siblings" => workspace::siblings(input),
        "workspace.verify_source" => workspace::verify_source(input),
        unknown => {
            let known = nearest(unknown, FUNCTIONS);
            let meant = known.map(|known| format!("; did you mean {known}?")).unwrap_or_default();
            return Err(format!("there is no function {unknown:?}{meant}"));
        }
    };
    output.map_err(|error| format!("{name}: {error}"))
}

fn text<'v>(input: &'v Value, name: &str) -> Result<&'v str, InputError> {
    input.get(name).and_then(Value::as_str).ok_or_else(|| InputError::field(name, "a text"))
}

fn decision(text: &str) -> Value {
    let answer = PlannerAnswer::read(text);
    let mut out = json!({"decision": answer.word.name(), "questions": answer.questions});
    if let Some(plan) = answer.plan {
        out["validation"] = validation(&plan);
        out["plan_json"] = plan;
    }
    out
}

fn validation(plan: &Value) -> Value {
    let errors = TaskPlan::read(plan).err().unwrap_or_default();
    let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    let paths: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
    json!({"valid": errors.is_empty(), "errors": messages, "paths": paths})
}

fn aggregate(input: &Value) -> Result<Value, InputError> {
    let lines = input.get("lines").and_then(Value::as_array);
    let lines = lines.ok_or_else(|| InputError::field("lines", "a list of texts"))?;
    // An answer may be given as an object, too.
    let shown = |line: &Value| line.as_str().map_or_else(|| line.to_string(), str::to_owned);
    let answers: Vec<String> = lines.iter().map(shown).collect();
    Ok(explore::aggregate(input.get("objective").and_then(Value::as_str), &answers))
}

fn quorum(input: &Value) -> Result<Value, InputError> {
    let completed = input.get("completed").and_then(Value::as_array);
    let completed = completed.ok_or_else(|| InputError::field("completed", "a list of modes"))?;
    let required = match input.get("required") {
        None | Some(Value::Null) => explore::QUORUM,
        Some(required) => {
            let number = required.as_u64().and_then(|number| usize::try_from(number).ok());
            number.ok_or_else(|| InputError::field("required", "a number"))?
        }
    };
    let timed_out = input.get("timed_out").and_then(Value::as_bool).unwrap_or(false);
    let is_there = |mode: &&Mode| completed.iter().any(|done| done.as_str() == Some(mode.name()));
    let (there, missing): (Vec<Mode>, Vec<Mode>) = Mode::ALL.into_iter().partition(|mode| is_there(&mode));
    let names = |modes: &[Mode]| modes.iter().map(|mode| mode.name()).collect::<Vec<_>>();
    let status = Quorum::of(there.len(), required, timed_out);
    Ok(json!({"status": status.name(), "completed": names(&there), "missing": names(&missing)}))
}

fn transition(input: &Value) -> Result<Value, InputError> {
    let flow = match input.get("flow") {
        None | Some(Value::Null) => Flow::Task,
        Some(name) => {
            let flow = name.as_str().and_then(Flow::from_name);
            flow.ok_or_else(|| InputError::field("flow", "task or campaign"))?
        }
    };
    let (from, to) = (text(input, "from")?, text(input, "to")?);
    let state = |name: &str| State::from_name(name).ok_or_else(|| format!("unknown state {name:?}"));
    Ok(match (state(from), state(to)) {
        (Ok(from), Ok(to)) if flow.allows(from, to) => json!({"valid": true}),
        (Ok(from), Ok(to)) => {
            let after: Vec<&str> = flow.after(from).iter().map(|state| state.name()).collect();
            let after = if after.is_empty() { "nothing".to_owned() } else { after.join(", ") };
            let (from, to) = (from.name(), to.name());
            let reason = format!("Invalid transition: {to} does not follow {from}; {after} does");
            json!({"valid": false, "reason": reason})
        }
        (Err(reason), _) | (_, Err(reason)) => json!({"valid": false, "reason": reason}),
    })
}
