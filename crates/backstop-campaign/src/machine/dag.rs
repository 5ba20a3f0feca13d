//! Tasks with dependencies, as JSON: what is ready, what is stuck, what another plan makes of them.
//!
//! Fields that nobody here knows stay as they are. What ready, blocked and cycle mean is
//! `backstop-core`'s: dependencies become its `Graph`.

use super::InputError;
use crate::task::{DependencyError, check_dependencies, depends};
use backstop_core::Graph;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// How much of a delivery and of a reason goes into the input of a re-plan, in characters.
const DELIVERED_CHARS_MAX: usize = 200;
const REASON_CHARS_MAX: usize = 100;

/// Tasks and how they wait for each other.
struct Dag {
    tasks: Vec<Map<String, Value>>,
    seqs: Vec<String>,
    depends: Vec<Vec<String>>,
}

/// A seq as it is compared: `1` is `001`.
fn seq_of(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(seq) if !seq.trim().is_empty() => Some(padded(seq.trim())),
        Value::Number(number) => number.as_u64().map(|number| format!("{number:03}")),
        _ => None,
    }
}

fn padded(seq: &str) -> String {
    let is_number = seq.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { format!("{seq:0>3}") } else { seq.to_owned() }
}

impl Dag {
    fn read(tasks: &Value) -> Result<Self, InputError> {
        let list = tasks.as_array().ok_or_else(|| InputError::field("tasks", "a list of tasks"))?;
        let mut dag = Dag { tasks: Vec::new(), seqs: Vec::new(), depends: Vec::new() };
        for (at, task) in list.iter().enumerate() {
            let object = task.as_object();
            let object = object.ok_or_else(|| InputError::field(&format!("tasks[{at}]"), "an object"))?;
            let seq = seq_of(object.get("seq"));
            let seq = seq.ok_or_else(|| InputError::field(&format!("tasks[{at}].seq"), "a text"))?;
            let waits = depends(object.get("depends").unwrap_or(&Value::Null));
            let waits = waits.ok_or_else(|| {
                InputError::field(&format!("tasks[{at}].depends"), "\"none\", a seq or a list")
            })?;
            dag.depends.push(waits.iter().map(|seq| padded(seq)).collect());
            dag.tasks.push(object.clone());
            dag.seqs.push(seq);
        }
        Ok(dag)
    }

    fn check(&self) -> Result<Graph, DependencyError> {
        let tasks: Vec<(&str, &[String])> = self
            .seqs
            .iter()
            .zip(&self.depends)
            .map(|(seq, waits)| (seq.as_str(), waits.as_slice()))
            .collect();
        let graph = check_dependencies(&tasks)?;
        // Every cycle is found before, and every number is one of a task.
        Ok(Graph::new(graph).unwrap_or_default())
    }

    fn status(&self, at: usize) -> &str {
        self.tasks[at].get("status").and_then(Value::as_str).unwrap_or("pending")
    }

    fn with(&self, status: &str) -> Vec<usize> {
        (0..self.tasks.len()).filter(|at| self.status(*at) == status).collect()
    }

    /// A seq that two tasks have.
    fn duplicate(&self) -> Option<&String> {
        let is_second = |at: &usize| self.seqs[..*at].contains(&self.seqs[*at]);
        (0..self.seqs.len()).find(is_second).map(|at| &self.seqs[at])
    }

    fn number(&self, seq: &str) -> Option<usize> {
        self.seqs.iter().position(|known| known == seq)
    }

    /// Pending with every dependency complete, in the plan's order.
    fn ready(&self) -> Vec<usize> {
        let complete = |seq: &String| self.number(seq).is_some_and(|at| self.status(at) == "complete");
        let mut ready = self.with("pending");
        ready.retain(|at| self.depends[*at].iter().all(complete));
        ready
    }

    /// Whether something goes on: then nothing is unreachable for good.
    fn goes_on(&self) -> bool {
        !self.ready().is_empty() || !self.with("in_progress").is_empty()
    }

    fn blocked_parents(&self, at: usize, blocked: &dyn Fn(usize) -> bool) -> Vec<String> {
        let is_blocked = |seq: &&String| self.number(seq).is_some_and(blocked);
        self.depends[at].iter().filter(is_blocked).map(|seq| self.shown(seq)).collect()
    }

    /// A seq as its task writes it.
    fn shown(&self, seq: &str) -> String {
        let own = self.number(seq).and_then(|at| self.tasks[at].get("seq")).and_then(Value::as_str);
        own.unwrap_or(seq).to_owned()
    }

    fn shown_at(&self, at: usize) -> String {
        self.shown(&self.seqs[at])
    }

    fn all(&self) -> Value {
        Value::Array(self.tasks.iter().cloned().map(Value::Object).collect())
    }
}

fn dag(input: &Value) -> Result<Dag, InputError> {
    Dag::read(input.get("tasks").unwrap_or(&Value::Null))
}

pub(super) fn register(input: &Value) -> Result<Value, InputError> {
    let mut dag = dag(input)?;
    if let Some(seq) = dag.duplicate() {
        return Ok(json!({"ok": false, "error": format!("duplicate seq: {seq}")}));
    }
    if let Err(error) = dag.check() {
        return Ok(json!({"ok": false, "error": error.to_string()}));
    }
    for task in &mut dag.tasks {
        task.insert("status".to_owned(), json!("pending"));
    }
    Ok(json!({"ok": true, "tasks": dag.all()}))
}

pub(super) fn ready(input: &Value) -> Result<Value, InputError> {
    let dag = dag(input)?;
    let seqs: Vec<String> = dag.ready().into_iter().map(|at| dag.shown_at(at)).collect();
    Ok(json!({"seqs": seqs}))
}

pub(super) fn next(input: &Value) -> Result<Value, InputError> {
    let dag = dag(input)?;
    let first = dag.with("pending").first().copied();
    Ok(first.map_or(Value::Null, |at| {
        let mut task = dag.tasks[at].clone();
        task.insert("status".to_owned(), json!("pending"));
        Value::Object(task)
    }))
}

pub(super) fn cascade(input: &Value) -> Result<Value, InputError> {
    let dag = dag(input)?;
    let (ready, pending, running) = (dag.ready(), dag.with("pending"), dag.with("in_progress"));
    let blocked = dag.with("blocked");
    let mut unreachable = Vec::new();
    let mut transitive: Vec<String> = Vec::new();
    if !dag.goes_on() {
        for &at in &pending {
            let by = dag.blocked_parents(at, &|parent| blocked.contains(&parent));
            if !by.is_empty() {
                unreachable.push(json!({"seq": dag.shown_at(at), "blocked_by": by}));
            }
        }
        let closure = closure(&dag, &blocked);
        transitive.extend(pending.iter().filter(|at| closure.contains(at)).map(|at| dag.shown_at(*at)));
    }
    let state = if dag.goes_on() {
        "in_progress"
    } else if pending.is_empty() {
        "complete"
    } else if unreachable.is_empty() {
        "all_blocked"
    } else {
        "stuck"
    };
    Ok(json!({
        "state": state, "ready": ready.len(), "pending": pending.len(), "in_progress": running.len(),
        "complete": dag.with("complete").len(), "blocked": blocked.len(),
        "unreachable": unreachable, "unreachable_transitive": transitive,
    }))
}

/// Everything that waits for these, at whatever distance.
fn closure(dag: &Dag, from: &[usize]) -> Vec<usize> {
    match dag.check() {
        Ok(graph) => from.iter().flat_map(|at| graph.all_dependents(*at)).collect(),
        Err(_) => Vec::new(),
    }
}

pub(super) fn propagate(input: &Value) -> Result<Value, InputError> {
    let mut dag = dag(input)?;
    let mut propagated = Vec::new();
    if !dag.goes_on() {
        loop {
            let blocked = dag.with("blocked");
            let found: Vec<(usize, Vec<String>)> = dag
                .with("pending")
                .into_iter()
                .map(|at| (at, dag.blocked_parents(at, &|parent| blocked.contains(&parent))))
                .filter(|(_, by)| !by.is_empty())
                .collect();
            if found.is_empty() {
                break;
            }
            for (at, by) in found {
                propagated.push(dag.shown_at(at));
                dag.tasks[at].insert("status".to_owned(), json!("blocked"));
                dag.tasks[at].insert("blocked_by".to_owned(), json!(by));
            }
        }
    }
    let statuses: BTreeMap<String, &str> =
        (0..dag.tasks.len()).map(|at| (dag.shown_at(at), dag.status(at))).collect();
    Ok(json!({"propagated": propagated, "tasks": dag.all(), "statuses": statuses}))
}

pub(super) fn merge(input: &Value) -> Result<Value, InputError> {
    let before = dag(input)?;
    let revised = input.pointer("/revised/tasks").or_else(|| input.get("revised").filter(|r| r.is_array()));
    let revised = Dag::read(revised.unwrap_or(&Value::Null))
        .map_err(|error| InputError::field("revised.tasks", &error.wanted))?;
    let refused = |error: String| Ok(json!({"error": error, "merged": 0, "tasks": before.all()}));
    if let Some(seq) = revised.duplicate() {
        return refused(format!("duplicate seq: {seq}"));
    }
    let mut after =
        Dag { tasks: before.tasks.clone(), seqs: before.seqs.clone(), depends: before.depends.clone() };
    let mut merged = 0;
    for (at, task) in revised.tasks.iter().enumerate() {
        let seq = &revised.seqs[at];
        let Some(known) = before.number(seq) else {
            let mut new = task.clone();
            new.insert("seq".to_owned(), json!(seq));
            new.insert("status".to_owned(), json!("pending"));
            after.tasks.push(new);
            after.seqs.push(seq.clone());
            after.depends.push(revised.depends[at].clone());
            continue;
        };
        let status = before.status(known).to_owned();
        if status == "complete" {
            continue;
        }
        let mut own = before.tasks[known].clone();
        let is_own = |name: &str| matches!(name, "seq" | "status" | "blocked_by");
        let said = task.iter().filter(|(name, _)| !is_own(name));
        own.extend(said.map(|(name, value)| (name.clone(), value.clone())));
        let rewired = task.contains_key("depends") && revised.depends[at] != before.depends[known];
        if rewired {
            after.depends[known].clone_from(&revised.depends[at]);
        }
        let is_changed = own != before.tasks[known];
        if !is_changed && status != "blocked" {
            continue;
        }
        if status == "in_progress" {
            return refused(format!("task {} is under way: it stays as it is", before.shown_at(known)));
        }
        merged += 1;
        if rewired || status == "blocked" {
            own.insert("status".to_owned(), json!("pending"));
            own.remove("blocked_by");
        }
        after.tasks[known] = own;
    }
    if let Err(error) = after.check() {
        return refused(error.to_string());
    }
    let added = after.tasks.len() - before.tasks.len();
    Ok(json!({
        "merged": merged, "unchanged": before.tasks.len() - merged, "added": added, "tasks": after.all(),
    }))
}

/// The workspaces by seq.
fn workspaces(input: &Value) -> BTreeMap<String, &Value> {
    let list = input.get("workspaces").and_then(Value::as_array);
    let seq = |workspace: &Value| {
        let id = workspace.get("workspace_id").and_then(Value::as_str).unwrap_or_default();
        seq_of(workspace.get("seq")).or_else(|| id.split('-').next().map(padded))
    };
    list.into_iter().flatten().filter_map(|workspace| Some((seq(workspace)?, workspace))).collect()
}

pub(super) fn replan_input(input: &Value) -> Result<Value, InputError> {
    let dag = dag(input)?;
    let objective = input.get("objective").and_then(Value::as_str);
    let objective = objective.ok_or_else(|| InputError::field("objective", "a text"))?;
    let known = workspaces(input);
    let text = |at: usize, chars: usize| {
        let workspace = known.get(&dag.seqs[at]);
        let delivered = workspace.and_then(|workspace| workspace.get("delivered")).and_then(Value::as_str);
        let text = delivered.unwrap_or("(no workspace)");
        text.strip_prefix("BLOCKED: ").unwrap_or(text).chars().take(chars).collect::<String>()
    };
    let slug = |at: usize| dag.tasks[at].get("slug").cloned().unwrap_or(Value::Null);
    let complete: Vec<Value> = dag.with("complete").into_iter().map(|at| {
        json!({"seq": dag.shown_at(at), "slug": slug(at), "delivered": text(at, DELIVERED_CHARS_MAX)})
    }).collect();
    let blocked: Vec<Value> = dag
        .with("blocked")
        .into_iter()
        .map(|at| json!({"seq": dag.shown_at(at), "slug": slug(at), "reason": text(at, REASON_CHARS_MAX)}))
        .collect();
    let rest = dag.with("pending").into_iter().chain(dag.with("in_progress"));
    let remaining: Vec<Value> = rest
        .map(|at| {
            let mut task = dag.tasks[at].clone();
            task.remove("status");
            Value::Object(task)
        })
        .collect();
    Ok(json!({
        "mode": "replan", "objective": objective, "framework": input.get("framework"),
        "completed_count": complete.len(), "blocked_count": blocked.len(), "pending_count": remaining.len(),
        "completed_tasks": complete, "blocked_tasks": blocked, "remaining_tasks": remaining,
    }))
}

pub(super) fn complete(input: &Value) -> Result<Value, InputError> {
    let dag = dag(input)?;
    Ok(json!({
        "status": "complete",
        "objective": input.get("objective"),
        "summary": {
            "total": dag.tasks.len(), "complete": dag.with("complete").len(), "blocked": dag.with("blocked").len(),
            "pending": dag.with("pending").len(), "in_progress": dag.with("in_progress").len(),
        },
    }))
}
