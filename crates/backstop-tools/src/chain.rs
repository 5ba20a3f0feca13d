//! Calls one after the other, where later ones use the results of earlier ones.
//!
//! A step's arguments may hold `{"$from": "STEP", "pointer": "/a/0"}` wherever a value may stand:
//! it is replaced by that part of the step's result, by JSON Pointer. A step that fails ends the
//! chain, with everything that was done, and a file from which it can be continued.

use crate::call::{CallFailure, CallOutcome, CallRequest, Caller};
use crate::toolbox::Toolbox;
use backstop_core::nearest::nearest;
use backstop_core::{Outcome, RunId, SafeText};
use backstop_engine::Cancel;
use backstop_report::StepState;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many steps a chain may have.
const STEPS_MAX: usize = 1000;
/// What marks a value that is taken from a result.
const FROM: &str = "$from";

/// One step of a chain.
#[derive(Debug, Clone, PartialEq)]
struct Step {
    id: String,
    tool: String,
    arguments: Value,
    /// The run of this step that may have taken effect: it is repeated only after a confirmation.
    confirm: Option<String>,
}

/// A chain that can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    steps: Vec<Step>,
    /// The results of steps that were done before, by id.
    done: BTreeMap<String, Value>,
    /// The run that somebody has confirmed: its step is called once more.
    confirmed: Option<String>,
}

/// Why a chain cannot be run. Nothing of it was called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// A step cannot be read.
    #[error("step {number}: {what}")]
    Step {
        /// The number of the step, from 1.
        number: usize,
        /// What is wrong.
        what: String,
    },
    /// A step uses the result of one that is not there.
    #[error("step `{step}` uses the result of `{missing}`, which is not a step of this chain")]
    Missing {
        /// The step.
        step: String,
        /// The step that is missing.
        missing: String,
        /// A step with a similar name.
        nearest: Option<String>,
    },
    /// Steps wait for each other.
    #[error("the steps wait for each other: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
}

impl ChainError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Missing { nearest: Some(near), .. } => format!("did you mean `{near}`?"),
            Self::Missing { .. } => "`$from` names the `id` of another step".to_owned(),
            Self::Cycle(_) => {
                "a step can use the results of others only if those do not use its own".to_owned()
            }
            Self::Unreadable(_) | Self::Step { .. } => {
                "a chain is a list of {\"id\": …, \"tool\": …, \"arguments\": …}".to_owned()
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStep {
    #[serde(default)]
    id: Option<String>,
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    #[serde(default)]
    confirm: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenChain {
    #[serde(default)]
    schema: Option<u32>,
    steps: Vec<Value>,
    #[serde(default)]
    done: BTreeMap<String, Value>,
    #[serde(default)]
    confirm: Option<String>,
}

impl Chain {
    /// Reads a chain: a list of steps, or an object with `steps`. Steps are put into an order in
    /// which each comes after those whose results it uses; else they stay as they are.
    pub fn read(text: &str) -> Result<Self, ChainError> {
        let unreadable = |error: serde_json::Error| ChainError::Unreadable(format!("not a chain: {error}"));
        let value: Value = serde_json::from_str(text).map_err(unreadable)?;
        let written = match value {
            Value::Array(steps) => WrittenChain { steps, ..WrittenChain::default() },
            other => serde_json::from_value(other).map_err(unreadable)?,
        };
        let _ = written.schema;
        if written.steps.is_empty() || written.steps.len() > STEPS_MAX {
            return Err(ChainError::Unreadable(format!(
                "a chain has 1 to {STEPS_MAX} steps, this one has {}",
                written.steps.len()
            )));
        }
        let mut steps: Vec<Step> = Vec::new();
        for (index, step) in written.steps.into_iter().enumerate() {
            let wrong = |what: String| ChainError::Step { number: index + 1, what };
            let step: WrittenStep = serde_json::from_value(step).map_err(|error| wrong(error.to_string()))?;
            let id = step.id.unwrap_or_else(|| (index + 1).to_string());
            if steps.iter().any(|known| known.id == id) {
                return Err(wrong(format!("the id `{id}` is there twice")));
            }
            let arguments = Value::Object(step.arguments);
            check_references(&arguments).map_err(wrong)?;
            steps.push(Step { id, tool: step.tool, arguments, confirm: step.confirm });
        }
        Ok(Self { steps: ordered(steps)?, done: written.done, confirmed: written.confirm })
    }

    /// Confirms that the step of this run is called once more, though it may have taken effect.
    pub fn confirmed_by(mut self, run: RunId) -> Self {
        self.confirmed = Some(run.to_string());
        self
    }

    /// Whether a step waits for a confirmation of this run.
    pub fn waits_for(&self, run: RunId) -> bool {
        let run = run.to_string();
        self.steps.iter().any(|step| step.confirm.as_ref() == Some(&run))
    }

    /// The tools of its steps.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(|step| step.tool.as_str())
    }

    /// The ids of its steps, in the order in which they are called.
    pub fn ids(&self) -> Vec<&str> {
        self.steps.iter().map(|step| step.id.as_str()).collect()
    }
}

/// The step and the pointer that a value names, where it is a reference.
fn reference(value: &Value) -> Option<(&str, &str)> {
    let object = value.as_object()?;
    let step = object.get(FROM)?.as_str()?;
    Some((step, object.get("pointer").map_or("", |pointer| pointer.as_str().unwrap_or_default())))
}

fn check_references(value: &Value) -> Result<(), String> {
    match value {
        Value::Object(object) if object.contains_key(FROM) => {
            let odd = object.keys().find(|key| !matches!(key.as_str(), FROM | "pointer"));
            if let Some(odd) = odd {
                return Err(format!("a reference has `{FROM}` and `pointer`: found `{odd}`"));
            }
            let pointer_is_text = object.get("pointer").is_none_or(Value::is_string);
            match reference(value) {
                Some((_, pointer)) if pointer_is_text && (pointer.is_empty() || pointer.starts_with('/')) => {
                    Ok(())
                }
                _ => Err(format!(
                    "`{FROM}` names a step, and `pointer` is a JSON Pointer such as \"/items/0\""
                )),
            }
        }
        Value::Object(object) => object.values().try_for_each(check_references),
        Value::Array(list) => list.iter().try_for_each(check_references),
        _ => Ok(()),
    }
}

/// The steps whose results a value uses.
fn used(value: &Value, found: &mut Vec<String>) {
    match (reference(value), value) {
        (Some((step, _)), _) => found.push(step.to_owned()),
        (None, Value::Object(object)) => object.values().for_each(|value| used(value, found)),
        (None, Value::Array(list)) => list.iter().for_each(|value| used(value, found)),
        _ => {}
    }
}

/// Puts each step after those whose results it uses.
fn ordered(steps: Vec<Step>) -> Result<Vec<Step>, ChainError> {
    let needs: Vec<Vec<usize>> = steps
        .iter()
        .map(|step| {
            let mut names = Vec::new();
            used(&step.arguments, &mut names);
            let index = |name: String| {
                steps.iter().position(|other| other.id == name).ok_or_else(|| ChainError::Missing {
                    step: step.id.clone(),
                    nearest: nearest(&name, steps.iter().map(|step| step.id.as_str())).map(str::to_owned),
                    missing: name,
                })
            };
            names.into_iter().map(index).collect()
        })
        .collect::<Result<_, _>>()?;
    let (mut order, mut placed): (Vec<usize>, Vec<bool>) = (Vec::new(), vec![false; steps.len()]);
    while order.len() < steps.len() {
        let next = (0..steps.len()).find(|at| !placed[*at] && needs[*at].iter().all(|need| placed[*need]));
        let Some(next) = next else { return Err(ChainError::Cycle(cycle(&steps, &needs, &placed))) };
        placed[next] = true;
        order.push(next);
    }
    let mut steps: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|at| steps[at].take()).collect())
}

/// One cycle among the steps that could not be placed, spelled out.
fn cycle(steps: &[Step], needs: &[Vec<usize>], placed: &[bool]) -> Vec<String> {
    let Some(mut at) = (0..steps.len()).find(|at| !placed[*at]) else { return Vec::new() };
    let mut path: Vec<usize> = Vec::new();
    while !path.contains(&at) {
        path.push(at);
        // Every step that is not placed needs another one that is not.
        let Some(next) = needs[at].iter().find(|need| !placed[**need]) else { break };
        at = *next;
    }
    let from = path.iter().position(|step| *step == at).unwrap_or(0);
    path[from..].iter().chain([&at]).map(|step| steps[*step].id.clone()).collect()
}

/// The arguments with every reference replaced. An error names the reference that leads nowhere.
fn filled(value: &Value, results: &BTreeMap<String, Value>) -> Result<Value, String> {
    if let Some((step, pointer)) = reference(value) {
        let result = results.get(step).ok_or_else(|| format!("step `{step}` has no result"))?;
        return result
            .pointer(pointer)
            .cloned()
            .ok_or_else(|| format!("the result of step `{step}` has nothing at `{pointer}`"));
    }
    match value {
        Value::Object(object) => {
            let members = object.iter().map(|(key, value)| Ok((key.clone(), filled(value, results)?)));
            members.collect::<Result<Map<_, _>, String>>().map(Value::Object)
        }
        Value::Array(list) => {
            list.iter().map(|value| filled(value, results)).collect::<Result<_, _>>().map(Value::Array)
        }
        other => Ok(other.clone()),
    }
}

/// What later steps see of a result: its structured content, else the JSON in its text, else all of
/// it.
fn seen(result: &Value) -> Value {
    if let Some(structured) = result.get("structuredContent").filter(|structured| !structured.is_null()) {
        return structured.clone();
    }
    let text = crate::result::text_of(result);
    match serde_json::from_str::<Value>(&text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
        _ if text.is_empty() => result.clone(),
        _ => json!({ "text": text }),
    }
}

/// What became of one step.
#[derive(Debug)]
pub enum StepResult {
    /// It was done, now or by an earlier run.
    Done {
        /// What later steps see of its result.
        result: Value,
        /// Whether an earlier run did it.
        before: bool,
    },
    /// It failed, and the chain ended.
    Failed(Box<FailedStep>),
    /// It was not begun.
    NotBegun,
}

/// A step that failed.
#[derive(Debug)]
pub struct FailedStep {
    /// The report for programs.
    report: Value,
    message: SafeText,
    /// The text for people.
    text: String,
    /// The run that may have taken effect, where a repetition needs a confirmation.
    confirm: Option<String>,
}

impl FailedStep {
    /// A step that was not called.
    fn before(step: &Step, what: String, reason: &str, next: &str) -> Self {
        let report = json!({
            "schema": backstop_report::JSON_SCHEMA, "tool": step.tool, "attempts": 0,
            "errors": [format!("Attempt 1: {what}")], "reason": reason, "suggestion": next,
        });
        let text = format!(
            "Error: {what}\nReason: {reason} (user)\nTool: {}\nNext: {next}\n",
            SafeText::new(step.tool.as_str())
        );
        Self { report, message: SafeText::new(what), text, confirm: step.confirm.clone() }
    }

    fn of_call(failure: &CallFailure) -> Self {
        // A run that was not recorded cannot be confirmed; its step is not repeated either.
        let run = || failure.run.map_or_else(|| "unrecorded".to_owned(), |run| run.to_string());
        Self {
            report: failure.report(),
            message: failure.errors.last().cloned().unwrap_or_default(),
            text: failure.text(),
            confirm: (failure.outcome == Outcome::Unconfirmed).then(run),
        }
    }
}

/// What became of a chain.
#[derive(Debug)]
pub struct ChainReport {
    chain: Chain,
    /// Each step's id and tool, and what became of it, in order.
    pub steps: Vec<(String, String, StepResult)>,
}

impl ChainReport {
    /// Whether every step was done.
    pub fn is_done(&self) -> bool {
        self.steps.iter().all(|(_, _, step)| matches!(step, StepResult::Done { .. }))
    }

    /// What the last step gave. Nothing, where the chain was not done.
    pub fn last_result(&self) -> Option<&Value> {
        match self.steps.last() {
            Some((_, _, StepResult::Done { result, .. })) if self.is_done() => Some(result),
            _ => None,
        }
    }

    /// The step that failed: its id, its message, and its text for people.
    pub fn failed(&self) -> Option<(&str, &SafeText, &str)> {
        self.steps.iter().find_map(|(id, _, step)| match step {
            StepResult::Failed(failed) => Some((id.as_str(), &failed.message, failed.text.as_str())),
            _ => None,
        })
    }

    /// The run of the failed step, where a repetition of it needs a confirmation.
    pub fn confirm(&self) -> Option<&str> {
        self.steps.iter().find_map(|(_, _, step)| match step {
            StepResult::Failed(failed) => failed.confirm.as_deref(),
            _ => None,
        })
    }

    /// A file that [`Chain::read`] reads and that continues with the step that failed. A step that
    /// may have taken effect keeps the run that has to be confirmed.
    pub fn rest(&self) -> String {
        let done: BTreeMap<&str, &Value> = self
            .steps
            .iter()
            .filter_map(|(id, _, step)| match step {
                StepResult::Done { result, .. } => Some((id.as_str(), result)),
                _ => None,
            })
            .collect();
        let steps: Vec<Value> = self
            .chain
            .steps
            .iter()
            .zip(&self.steps)
            .map(|(step, (_, _, became))| {
                let mut rest = json!({ "id": step.id, "tool": step.tool, "arguments": step.arguments });
                let confirm = match became {
                    StepResult::Failed(failed) => &failed.confirm,
                    StepResult::Done { .. } => &None,
                    StepResult::NotBegun => &step.confirm,
                };
                if let Some(run) = confirm {
                    rest["confirm"] = run.as_str().into();
                }
                rest
            })
            .collect();
        json!({ "schema": 1, "steps": steps, "done": done }).to_string()
    }

    /// Every step with its tool and how far it got.
    pub fn states(&self) -> impl Iterator<Item = (&str, &str, StepState)> {
        self.steps.iter().map(|(id, tool, step)| {
            let state = match step {
                StepResult::Done { before: true, .. } => StepState::DoneBefore,
                StepResult::Done { .. } => StepState::Done,
                StepResult::Failed(..) => StepState::Failed,
                StepResult::NotBegun => StepState::NotBegun,
            };
            (id.as_str(), tool.as_str(), state)
        })
    }

    /// The report for programs.
    pub fn report(&self) -> Value {
        let step = |(id, tool, step): &(String, String, StepResult)| match step {
            StepResult::Done { result, before } => json!({
                "id": id, "tool": tool, "state": "done", "before": before, "result": result, "failure": null,
            }),
            StepResult::Failed(failed) => json!({
                "id": id, "tool": tool, "state": "failed", "before": false, "result": null,
                "failure": failed.report,
            }),
            StepResult::NotBegun => json!({
                "id": id, "tool": tool, "state": "not_begun", "before": false, "result": null, "failure": null,
            }),
        };
        json!({
            "schema": backstop_report::JSON_SCHEMA,
            "done": self.is_done(),
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(),
        })
    }
}

/// Runs a chain. A step that fails has had its attempts, and ends it.
pub async fn run_chain(toolbox: &Arc<Toolbox>, chain: Chain, cancel: &Cancel) -> ChainReport {
    run_chain_by(toolbox, chain, cancel).await
}

/// The same for whoever makes the calls.
pub(crate) async fn run_chain_by<C: Caller>(caller: &C, chain: Chain, cancel: &Cancel) -> ChainReport {
    let mut results = chain.done.clone();
    let mut steps = Vec::new();
    let mut ended = false;
    for step in &chain.steps {
        let result = if ended {
            StepResult::NotBegun
        } else if let Some(result) = chain.done.get(&step.id) {
            StepResult::Done { result: result.clone(), before: true }
        } else {
            run_step(caller, &chain, step, &results, cancel).await
        };
        match &result {
            StepResult::Done { result, .. } => {
                results.insert(step.id.clone(), result.clone());
            }
            _ => ended = true,
        }
        steps.push((step.id.clone(), step.tool.clone(), result));
    }
    ChainReport { chain, steps }
}

async fn run_step<C: Caller>(
    caller: &C,
    chain: &Chain,
    step: &Step,
    results: &BTreeMap<String, Value>,
    cancel: &Cancel,
) -> StepResult {
    let arguments = match filled(&step.arguments, results) {
        Ok(arguments) => arguments,
        Err(what) => {
            let failed = FailedStep::before(step, what, "invalid_parameters", "correct the pointer");
            return StepResult::Failed(Box::new(failed));
        }
    };
    let request = match request(caller, chain, step, &arguments.to_string()) {
        Ok(request) => request.cancelled_by(cancel.clone()),
        Err(failed) => return StepResult::Failed(failed),
    };
    match caller.make_call(request).await {
        CallOutcome::Done(success) => {
            let result: Value = serde_json::from_str(success.result()).unwrap_or(Value::Null);
            StepResult::Done { result: seen(&result), before: false }
        }
        CallOutcome::Failed(failure) => StepResult::Failed(Box::new(FailedStep::of_call(&failure))),
    }
}

/// The call of a step. One that may have taken effect already is called only where its run was
/// confirmed, and the confirmation is used up by it.
fn request<C: Caller>(
    caller: &C,
    chain: &Chain,
    step: &Step,
    arguments: &str,
) -> Result<CallRequest, Box<FailedStep>> {
    let refused = |what: String, next: &str| FailedStep::before(step, what, "invalid_usage", next);
    let Some(run) = &step.confirm else {
        return CallRequest::tool(&step.tool, arguments)
            .map_err(|error| Box::new(refused(error.to_string(), "correct the arguments")));
    };
    if chain.confirmed.as_ref() != Some(run) {
        let what = format!("step `{}` may have taken effect in {run}: it is not repeated", step.id);
        return Err(Box::new(refused(what, &format!("check whether it did; `--confirm {run}` repeats it"))));
    }
    let lost = "check whether it took effect; put its result under `done`, or take `confirm` out of it";
    let Ok(id) = run.parse::<RunId>() else {
        return Err(Box::new(refused(format!("`{run}` is not a run that can be confirmed"), lost)));
    };
    let request = caller.confirmed_call(id, arguments).map_err(|error| refused(error.to_string(), lost))?;
    if request.name() != step.tool {
        let what = format!("{run} was a call of {}, not of {}", request.name(), step.tool);
        return Err(Box::new(refused(what, lost)));
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chain(text: &str) -> Result<Vec<String>, ChainError> {
        Chain::read(text).map(|chain| chain.ids().into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn steps_come_after_those_that_they_use() {
        let text = r#"[{"id":"b","tool":"t","arguments":{"x":[{"$from":"a","pointer":"/y"}]}},{"id":"a","tool":"t"},{"tool":"t"}]"#;
        assert_eq!(chain(text).unwrap(), ["a", "b", "3"]);
    }

    #[test]
    fn a_missing_step_and_a_cycle_are_spelled_out() {
        let missing = chain(r#"[{"id":"list","tool":"t"},{"tool":"t","arguments":{"x":{"$from":"lits"}}}]"#)
            .unwrap_err();
        assert_eq!(
            missing.to_string(),
            "step `2` uses the result of `lits`, which is not a step of this chain"
        );
        assert_eq!(missing.hint(), "did you mean `list`?");
        let cycle = chain(
            r#"[{"id":"a","tool":"t","arguments":{"x":{"$from":"b"}}},{"id":"b","tool":"t","arguments":{"x":{"$from":"a"}}}]"#,
        )
        .unwrap_err();
        assert_eq!(cycle.to_string(), "the steps wait for each other: a -> b -> a");
        let own = chain(r#"[{"id":"a","tool":"t","arguments":{"x":{"$from":"a"}}}]"#).unwrap_err();
        assert_eq!(own, ChainError::Cycle(vec!["a".into(), "a".into()]));
    }

    #[test]
    fn mistakes_are_found_before_anything_is_called() {
        for text in [
            "",
            "[]",
            "{}",
            "5",
            r#"[{"tol":"t"}]"#,
            r#"[{"tool":"t","arguments":5}]"#,
            r#"[{"id":"a","tool":"t"},{"id":"a","tool":"t"}]"#,
            r#"[{"id":"a","tool":"t"},{"tool":"t","arguments":{"x":{"$from":"a","path":"/"}}}]"#,
            r#"[{"id":"a","tool":"t"},{"tool":"t","arguments":{"x":{"$from":"a","pointer":"x"}}}]"#,
            r#"[{"id":"a","tool":"t"},{"tool":"t","arguments":{"x":{"$from":5}}}]"#,
            r#"{"steps":[{"tool":"t"}],"stepps":[]}"#,
        ] {
            assert!(chain(text).is_err(), "{text}");
        }
    }

    #[test]
    fn results_are_taken_by_pointer() {
        let results = BTreeMap::from([("a".to_owned(), json!({ "items": [{ "id": 7 }] }))]);
        let arguments =
            json!({ "id": { "$from": "a", "pointer": "/items/0/id" }, "all": { "$from": "a" }, "x": [1] });
        let want = json!({ "id": 7, "all": { "items": [{ "id": 7 }] }, "x": [1] });
        assert_eq!(filled(&arguments, &results), Ok(want));
        let gone = filled(&json!({ "x": { "$from": "a", "pointer": "/nope" } }), &results).unwrap_err();
        assert_eq!(gone, "the result of step `a` has nothing at `/nope`");
        assert_eq!(seen(&json!({ "content": [{ "text": "[1]" }] })), json!([1]));
        assert_eq!(seen(&json!({ "content": [{ "text": "hi" }] })), json!({ "text": "hi" }));
        assert_eq!(seen(&json!({ "structuredContent": { "a": 1 } })), json!({ "a": 1 }));
    }

    proptest! {
        #[test]
        fn every_chain_without_a_cycle_has_an_order(needs in prop::collection::vec(prop::collection::vec(0usize..12, 0..3), 1..12)) {
            let steps: Vec<Value> = needs.iter().enumerate().map(|(at, needs)| {
                // Only earlier steps are needed: there is no cycle.
                let from: Vec<Value> = needs.iter().filter(|need| **need < at).map(|need| json!({ "$from": need.to_string() })).collect();
                json!({ "id": at.to_string(), "tool": "t", "arguments": { "x": from } })
            }).rev().collect();
            let order = Chain::read(&Value::Array(steps).to_string()).unwrap();
            let order = order.ids();
            for (at, needs) in needs.iter().enumerate() {
                let place = |step: usize| order.iter().position(|id| *id == step.to_string()).unwrap();
                for need in needs.iter().filter(|need| **need < at) {
                    prop_assert!(place(*need) < place(at));
                }
            }
        }
    }
}
