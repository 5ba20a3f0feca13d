//! Tasks with dependencies, as JSON: what is ready, what is stuck, what another plan makes of them.
//!
//! Fields that nobody here knows stay as they are. Time and memory grow with tasks and
//! dependencies, no faster.

use super::{InputError, workspace};
use crate::task::{DependencyError, check_dependencies, depends};
use backstop_core::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};

/// How much of a delivery and of a reason goes into the input of a re-plan, in characters.
const DELIVERED_CHARS_MAX: usize = 200;
const REASON_CHARS_MAX: usize = 100;

/// Tasks and how they wait for each other.
#[derive(Clone, Default)]
struct Dag {
    tasks: Vec<Map<String, Value>>,
    seqs: Vec<String>,
    depends: Vec<Vec<String>>,
    /// Where the first task of a seq is.
    number: HashMap<String, usize>,
}

/// A seq as it is compared: `1` is `001`.
pub(super) fn seq_of(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(seq) if !seq.trim().is_empty() => Some(padded(seq.trim())),
        Value::Number(number) => number.as_u64().map(|number| format!("{number:03}")),
        _ => None,
    }
}

pub(super) fn padded(seq: &str) -> String {
    let is_number = seq.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { format!("{seq:0>3}") } else { seq.to_owned() }
}

impl Dag {
    fn read(tasks: &Value) -> Result<Self, InputError> {
        let list = tasks.as_array().ok_or_else(|| InputError::field("tasks", "a list of tasks"))?;
        let mut dag = Self::default();
        for (at, task) in list.iter().enumerate() {
            dag.read_task(task).map_err(|InputError { field, wanted }| {
                let field = format!("tasks[{at}]{field}");
                InputError { field, wanted }
            })?;
        }
        Ok(dag)
    }

    /// What of a list is a task; the rest is left out.
    fn read_some(list: &[Value]) -> Self {
        let mut dag = Self::default();
        for task in list {
            let _ = dag.read_task(task);
        }
        dag
    }

    fn read_task(&mut self, task: &Value) -> Result<(), InputError> {
        let object = task.as_object().ok_or_else(|| InputError::field("", "an object"))?;
        let seq = seq_of(object.get("seq")).ok_or_else(|| InputError::field(".seq", "a text"))?;
        let waits = depends(object.get("depends").unwrap_or(&Value::Null));
        let waits = waits.ok_or_else(|| InputError::field(".depends", "\"none\", a seq or a list"))?;
        self.push(object.clone(), seq, waits.iter().map(|seq| padded(seq)).collect());
        Ok(())
    }

    fn push(&mut self, task: Map<String, Value>, seq: String, depends: Vec<String>) {
        self.number.entry(seq.clone()).or_insert(self.seqs.len());
        self.tasks.push(task);
        self.seqs.push(seq);
        self.depends.push(depends);
    }

    fn check(&self) -> Result<(), DependencyError> {
        let waits = self.depends.iter().map(Vec::as_slice);
        let tasks: Vec<(&str, &[String])> = self.seqs.iter().map(String::as_str).zip(waits).collect();
        check_dependencies(&tasks)
    }

    fn status(&self, at: usize) -> &str {
        self.tasks[at].get("status").and_then(Value::as_str).unwrap_or("pending")
    }

    fn with(&self, status: &str) -> Vec<usize> {
        (0..self.tasks.len()).filter(|at| self.status(*at) == status).collect()
    }

    /// A seq that two tasks have.
    fn duplicate(&self) -> Option<&String> {
        self.seqs.iter().enumerate().find(|(at, seq)| self.number(seq) != Some(*at)).map(|(_, seq)| seq)
    }

    fn number(&self, seq: &str) -> Option<usize> {
        self.number.get(seq).copied()
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

    /// The tasks that this one waits for and that are blocked.
    fn blocked_parents(&self, at: usize) -> Vec<String> {
        let is_blocked =
            |seq: &&String| self.number(seq).is_some_and(|parent| self.status(parent) == "blocked");
        self.depends[at].iter().filter(is_blocked).map(|seq| self.shown(seq)).collect()
    }

    /// The pending tasks that wait for a blocked one, at whatever distance: those that wait for it
    /// directly, those that wait for them, and so on, each once and in the plan's order. What
    /// dangles or goes round in a circle elsewhere is nothing to them.
    fn behind_blocked(&self) -> Vec<Vec<usize>> {
        let mut dependents = vec![Vec::new(); self.tasks.len()];
        for (at, waits) in self.depends.iter().enumerate() {
            for parent in waits.iter().filter_map(|seq| self.number(seq)) {
                dependents[parent].push(at);
            }
        }
        let mut is_known: Vec<bool> = (0..self.tasks.len()).map(|at| self.status(at) != "pending").collect();
        let mut rows: Vec<Vec<usize>> = Vec::new();
        let mut row = self.with("blocked");
        loop {
            let mut next: Vec<usize> = row.iter().flat_map(|at| dependents[*at].iter().copied()).collect();
            next.retain(|at| !std::mem::replace(&mut is_known[*at], true));
            next.sort_unstable();
            if next.is_empty() {
                return rows;
            }
            rows.push(next.clone());
            row = next;
        }
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
        for (name, default) in [("type", "BUILD"), ("depends", "none")] {
            let known = task.entry(name).or_insert(Value::Null);
            if known.is_null() {
                *known = json!(default);
            }
        }
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
    let rows = if dag.goes_on() { Vec::new() } else { dag.behind_blocked() };
    let direct = rows.first().into_iter().flatten();
    let unreachable: Vec<Value> =
        direct.map(|at| json!({"seq": dag.shown_at(*at), "blocked_by": dag.blocked_parents(*at)})).collect();
    let mut all: Vec<usize> = rows.concat();
    all.sort_unstable();
    let transitive: Vec<String> = all.into_iter().map(|at| dag.shown_at(at)).collect();
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

pub(super) fn propagate(input: &Value) -> Result<Value, InputError> {
    let mut dag = dag(input)?;
    let mut propagated = Vec::new();
    let rows = if dag.goes_on() { Vec::new() } else { dag.behind_blocked() };
    for row in rows {
        let found: Vec<(usize, Vec<String>)> =
            row.into_iter().map(|at| (at, dag.blocked_parents(at))).collect();
        for (at, by) in found {
            propagated.push(dag.shown_at(at));
            dag.tasks[at].insert("status".to_owned(), json!("blocked"));
            dag.tasks[at].insert("blocked_by".to_owned(), json!(by));
        }
    }
    let statuses: BTreeMap<String, &str> =
        (0..dag.tasks.len()).map(|at| (dag.shown_at(at), dag.status(at))).collect();
    Ok(json!({"propagated": propagated, "tasks": dag.all(), "statuses": statuses}))
}

pub(super) fn merge(input: &Value) -> Result<Value, InputError> {
    let before = dag(input)?;
    let list = match input.get("revised") {
        Some(Value::Array(list)) => Some(list.as_slice()),
        Some(Value::Object(revised)) => match revised.get("tasks") {
            None | Some(Value::Null) => Some(&[][..]),
            Some(tasks) => tasks.as_array().map(Vec::as_slice),
        },
        _ => None,
    };
    let list = list.ok_or_else(|| InputError::field("revised", "an object with a list of tasks"))?;
    let revised = Dag::read_some(list);
    let refused = |error: String| Ok(json!({"error": error, "merged": 0, "tasks": before.all()}));
    if let Some(seq) = revised.duplicate() {
        return refused(format!("duplicate seq: {seq}"));
    }
    let mut after = before.clone();
    let mut merged = 0;
    for (at, task) in revised.tasks.iter().enumerate() {
        let seq = &revised.seqs[at];
        let Some(known) = before.number(seq) else {
            let mut new = task.clone();
            new.insert("seq".to_owned(), json!(seq));
            new.insert("status".to_owned(), json!("pending"));
            after.push(new, seq.clone(), revised.depends[at].clone());
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
    list.into_iter().flatten().filter_map(|one| Some((workspace::seq(one)?, one))).collect()
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
        workspace::without_blocked(text).chars().take(chars).collect::<String>()
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

pub(super) fn complete(input: &Value, now: Timestamp) -> Result<Value, InputError> {
    let dag = dag(input)?;
    Ok(json!({
        "status": "complete",
        "completed_at": now.to_string(),
        "objective": input.get("objective"),
        "summary": {
            "total": dag.tasks.len(), "complete": dag.with("complete").len(), "blocked": dag.with("blocked").len(),
            "pending": dag.with("pending").len(), "in_progress": dag.with("in_progress").len(),
        },
    }))
}
