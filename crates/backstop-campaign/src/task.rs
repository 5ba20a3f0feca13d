//! The planner's plan: tasks with proofs, and whether they are what the schema says.
//!
//! [`TaskPlan::read`] is the one reader: JSON in, typed tasks or every error with its path out. The
//! schema is published as `docs/schemas/campaign-plan.schema.json`.

use backstop_core::order;
use backstop_work::idioms::Idioms;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// The most tasks of a plan.
pub const TASKS_MAX: usize = 1000;
/// The longest list in a task.
const LIST_MAX: usize = 200;
/// The longest text in a task, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// What kind of work a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum TaskType {
    /// Writes down, as tests, what is to be built.
    Spec,
    /// Builds it.
    #[default]
    Build,
    /// Only runs its proof: nobody works on it.
    Verify,
}

impl TaskType {
    /// The name in plans.
    pub fn name(self) -> &'static str {
        match self {
            TaskType::Spec => "SPEC",
            TaskType::Build => "BUILD",
            TaskType::Verify => "VERIFY",
        }
    }
}

/// One task of a campaign.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Three digits: `001`.
    pub seq: String,
    /// A short name: `spec-auth`.
    pub slug: String,
    /// What kind of work it is.
    #[serde(rename = "type", default)]
    pub kind: TaskType,
    /// The files that it changes or creates.
    pub delta: Vec<String>,
    /// The command that proves it.
    pub verify: String,
    /// Iterations that its builder has, where the planner says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u32>,
    /// The tasks that it waits for, by seq.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends: Vec<String>,
    /// Commands that must pass before its proof is run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preflight: Vec<String>,
    /// Idioms of this task, over those of the plan.
    #[serde(default, skip_serializing_if = "Idioms::is_empty")]
    pub idioms: Idioms,
    /// What is to be done, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Lines of files that matter, as `file: "10-40"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub target_lines: BTreeMap<String, String>,
}

impl Task {
    /// The id of its workspace: `001-spec-auth`.
    pub fn workspace_id(&self) -> String {
        format!("{}-{}", self.seq, self.slug)
    }

    /// Whether every entry of `target_lines` names lines: `12` or `10-40`, counted from 1.
    pub fn has_valid_lines(&self) -> bool {
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|line| *line > 0);
        self.target_lines.values().all(|lines| match lines.split_once('-') {
            Some((from, to)) => number(from).zip(number(to)).is_some_and(|(from, to)| from <= to),
            None => number(lines).is_some(),
        })
    }
}

/// A planner's plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPlan {
    /// What it is for.
    pub objective: String,
    /// Its short name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub campaign: String,
    /// The framework of the project, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framework: Option<String>,
    /// How sure that is, in hundredths.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub confidence_percent: u32,
    /// Idioms of every task.
    #[serde(default, skip_serializing_if = "Idioms::is_empty")]
    pub idioms: Idioms,
    /// The tasks, in the plan's order.
    pub tasks: Vec<Task>,
    /// Tasks that a re-plan drops, by seq.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// What is wrong in a plan, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    /// The place: `tasks[0].delta`.
    pub path: String,
    /// What is wrong there, in one sentence.
    pub message: String,
}

impl std::fmt::Display for PlanError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Reads a plan field by field and notes everything that is wrong.
struct Reader {
    errors: Vec<PlanError>,
}

impl Reader {
    fn wrong(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.errors.push(PlanError { path: path.into(), message: message.into() });
    }

    fn text(&mut self, value: &Value, path: &str, message: &str) -> String {
        match value.as_str().map(str::trim).filter(|text| !text.is_empty() && text.len() <= TEXT_BYTES_MAX) {
            Some(text) => text.to_owned(),
            None => {
                self.wrong(path, message);
                String::new()
            }
        }
    }

    fn list(&mut self, value: &Value, path: &str, label: &str) -> Vec<String> {
        let Some(items) = value.as_array().filter(|items| items.len() <= LIST_MAX) else {
            self.wrong(path, format!("{label} must be a list of texts"));
            return Vec::new();
        };
        let texts: Vec<String> = items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect();
        if texts.len() != items.len() || texts.iter().any(|text| text.trim().is_empty()) {
            self.wrong(path, format!("{label} must be a list of texts"));
        }
        texts
    }

    /// A share from 0 to 1, in hundredths.
    fn percent(&mut self, value: Option<&Value>, path: &str) -> u32 {
        let number = match value {
            None | Some(Value::Null) => Some(0.0),
            Some(Value::String(text)) => text.trim().parse::<f64>().ok().filter(|number| number.is_finite()),
            Some(other) => other.as_f64(),
        };
        if number.is_none() {
            self.wrong(path, format!("{path} must be a number from 0 to 1"));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Held between 0 and 100.
        {
            (number.unwrap_or(0.0).clamp(0.0, 1.0) * 100.0) as u32
        }
    }

    fn idioms(&mut self, value: Option<&Value>, path: &str) -> Idioms {
        let is_none = |value: &Value| value.is_null() || *value == Value::Array(Vec::new());
        let Some(value) = value.filter(|value| !is_none(value)) else { return Idioms::default() };
        if !value.is_object() {
            self.wrong(path, "idioms must be an object with required and forbidden");
        }
        let mut list = |name: &str| match value.get(name) {
            Some(list) => self.list(list, &format!("{path}.{name}"), &format!("idioms.{name}")),
            None => Vec::new(),
        };
        Idioms { required: list("required"), forbidden: list("forbidden") }
    }

    fn task(&mut self, at: usize, value: &Value) -> Task {
        let place = |name: &str| format!("tasks[{at}].{name}");
        if !value.is_object() {
            self.wrong(format!("tasks[{at}]"), format!("Task {at}: must be an object"));
            return Task::default();
        }
        for name in ["seq", "slug", "delta", "verify"] {
            if value.get(name).is_none_or(Value::is_null) {
                self.wrong(place(name), format!("Task {at}: missing required field: {name}"));
            }
        }
        let there = |name: &str| value.get(name).filter(|value| !value.is_null());
        let mut task = Task::default();
        if let Some(seq) = there("seq") {
            task.seq = seq.as_str().unwrap_or_default().to_owned();
            if task.seq.len() != 3 || !task.seq.bytes().all(|byte| byte.is_ascii_digit()) {
                self.wrong(place("seq"), format!("Task {at}: seq must be 3-digit string"));
            }
        }
        if let Some(slug) = there("slug") {
            task.slug = self.text(slug, &place("slug"), &format!("Task {at}: slug must be a text"));
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if !task.slug.chars().all(plain) || task.slug.len() > 100 {
                self.wrong(place("slug"), format!("Task {at}: slug must be letters, digits and hyphens"));
            }
        }
        if let Some(kind) = there("type") {
            match serde_json::from_value(kind.clone()) {
                Ok(kind) => task.kind = kind,
                Err(_) => self.wrong(place("type"), format!("Task {at}: type must be SPEC, BUILD or VERIFY")),
            }
        }
        if let Some(delta) = there("delta") {
            match delta.is_array() {
                true => task.delta = self.list(delta, &place("delta"), &format!("Task {at}: delta")),
                false => self.wrong(place("delta"), format!("Task {at}: delta must be a list")),
            }
            if delta.as_array().is_some_and(Vec::is_empty) {
                self.wrong(place("delta"), format!("Task {at}: delta list cannot be empty"));
            }
            let outside = |file: &String| file.starts_with('/') || file.split('/').any(|part| part == "..");
            if task.delta.iter().any(outside) {
                self.wrong(place("delta"), format!("Task {at}: delta must be files below the project"));
            }
        }
        if let Some(verify) = there("verify") {
            task.verify =
                self.text(verify, &place("verify"), &format!("Task {at}: verify must be a command"));
        }
        if let Some(budget) = there("budget") {
            match budget.as_u64().filter(|budget| (1..=1000).contains(budget)) {
                Some(budget) => task.budget = u32::try_from(budget).ok(),
                None => {
                    self.wrong(place("budget"), format!("Task {at}: budget must be a number from 1 to 1000"));
                }
            }
        }
        task.depends = match there("depends") {
            Some(value) => depends(value).unwrap_or_else(|| {
                self.wrong(place("depends"), format!("Task {at}: depends must be \"none\", a seq or a list"));
                Vec::new()
            }),
            None => Vec::new(),
        };
        if let Some(preflight) = there("preflight") {
            task.preflight = self.list(preflight, &place("preflight"), &format!("Task {at}: preflight"));
        }
        task.idioms = self.idioms(there("idioms"), &place("idioms"));
        task.description = there("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        match there("target_lines") {
            Some(Value::Object(lines)) => {
                let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                task.target_lines = lines.iter().map(|(file, value)| (file.clone(), shown(value))).collect();
            }
            Some(_) => {
                let message = format!("Task {at}: target_lines must be an object of files and their lines");
                self.wrong(place("target_lines"), message);
            }
            None => {}
        }
        task
    }
}

/// The seqs that `depends` names: `"none"`, a seq, or a list of seqs.
pub(crate) fn depends(value: &Value) -> Option<Vec<String>> {
    let one = |value: &Value| match value {
        Value::String(seq) => Some(seq.trim().to_owned()),
        Value::Number(number) => number.as_u64().map(|number| format!("{number:03}")),
        _ => None,
    };
    let is_some = |seq: &String| !seq.is_empty() && !seq.eq_ignore_ascii_case("none");
    match value {
        Value::Null => Some(Vec::new()),
        Value::Array(all) => {
            let all: Option<Vec<String>> = all.iter().map(one).collect();
            all.map(|all| all.into_iter().filter(is_some).collect())
        }
        other => {
            one(other).map(|seq| seq.split(',').map(|part| part.trim().to_owned()).filter(is_some).collect())
        }
    }
}

/// What is wrong with how tasks wait for each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DependencyError {
    /// A task waits for one that is not there.
    #[error("dangling dependency: task {task} waits for {other}, which is not in the plan")]
    Dangling {
        /// The task.
        task: String,
        /// What it waits for.
        other: String,
    },
    /// Tasks wait for each other. The first is named again at the end.
    #[error("cycle detected: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
}

/// Checks how tasks wait for each other; each is a seq and what it waits for. A cycle comes first:
/// it is found among those that are there.
pub fn check_dependencies(tasks: &[(&str, &[String])]) -> Result<(), DependencyError> {
    let mut number = HashMap::new();
    for (at, (seq, _)) in tasks.iter().enumerate() {
        number.entry(*seq).or_insert(at);
    }
    let known = |waits: &[String]| waits.iter().filter_map(|seq| number.get(seq.as_str()).copied()).collect();
    let graph: Vec<Vec<usize>> = tasks.iter().map(|(_, waits)| known(waits)).collect();
    if let Some(cycle) = order::cycle(&graph) {
        return Err(DependencyError::Cycle(cycle.into_iter().map(|at| tasks[at].0.to_owned()).collect()));
    }
    for (task, waits) in tasks {
        if let Some(other) = waits.iter().find(|other| !number.contains_key(other.as_str())) {
            return Err(DependencyError::Dangling { task: (*task).to_owned(), other: other.clone() });
        }
    }
    Ok(())
}

impl TaskPlan {
    /// Reads a plan. Everything that is wrong with it is named, each with its path. How tasks wait
    /// for each other is not looked at: that is [`TaskPlan::check`].
    pub fn read(value: &Value) -> Result<Self, Vec<PlanError>> {
        let mut reader = Reader { errors: Vec::new() };
        if !value.is_object() {
            reader.wrong("", "the plan must be an object");
            return Err(reader.errors);
        }
        let mut plan = Self::default();
        match value.get("objective") {
            Some(objective) => {
                plan.objective = reader.text(objective, "objective", "objective must be a text");
            }
            None => reader.wrong("objective", "Missing required field: objective"),
        }
        plan.campaign = value.get("campaign").and_then(Value::as_str).unwrap_or_default().to_owned();
        plan.framework = value.get("framework").and_then(Value::as_str).map(str::to_owned);
        plan.confidence_percent = reader.percent(value.get("framework_confidence"), "framework_confidence");
        plan.idioms = reader.idioms(value.get("idioms"), "idioms");
        if let Some(dropped) = value.get("drop").filter(|value| !value.is_null()) {
            plan.drop = reader.list(dropped, "drop", "drop");
        }
        match value.get("tasks") {
            None => reader.wrong("tasks", "Missing required field: tasks"),
            Some(Value::Array(tasks)) if tasks.is_empty() && plan.drop.is_empty() => {
                reader.wrong("tasks", "tasks list is empty");
            }
            Some(Value::Array(tasks)) if tasks.len() > TASKS_MAX => {
                reader.wrong("tasks", format!("there are {} tasks, more than {TASKS_MAX}", tasks.len()));
            }
            Some(Value::Array(tasks)) => {
                plan.tasks = tasks.iter().enumerate().map(|(at, task)| reader.task(at, task)).collect();
            }
            Some(_) => reader.wrong("tasks", "tasks must be a list"),
        }
        for (at, task) in plan.tasks.iter().enumerate() {
            if !task.seq.is_empty() && plan.tasks[..at].iter().any(|known| known.seq == task.seq) {
                let message = format!("Task {at}: seq {} is used twice", task.seq);
                reader.errors.push(PlanError { path: format!("tasks[{at}].seq"), message });
            }
        }
        if reader.errors.is_empty() { Ok(plan) } else { Err(reader.errors) }
    }

    /// Checks how the tasks of a whole plan wait for each other.
    pub fn check(&self) -> Result<(), DependencyError> {
        let tasks: Vec<(&str, &[String])> =
            self.tasks.iter().map(|task| (task.seq.as_str(), task.depends.as_slice())).collect();
        check_dependencies(&tasks)
    }

    /// How many iterations the builder of a task has: five, one more for each further file, two
    /// more where siblings have failed or the framework is known, at most nine; or what the planner
    /// says.
    pub fn budget(&self, task: &Task, siblings_failed: bool) -> u32 {
        let files = u32::try_from(task.delta.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let harder = siblings_failed || self.confidence_percent >= 60;
        let rule = 5u32.saturating_add(files).saturating_add(if harder { 2 } else { 0 }).min(9);
        task.budget.map_or(rule, |budget| budget.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn errors(plan: &Value) -> Vec<String> {
        TaskPlan::read(plan).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_mistake_is_named_with_its_path() {
        assert_eq!(
            errors(&json!({})),
            ["objective: Missing required field: objective", "tasks: Missing required field: tasks",]
        );
        let plan = json!({"objective": "x", "tasks": [
            {"seq": "1", "slug": "a b", "delta": [], "verify": "", "depends": {}, "type": "TEST", "budget": 0},
            {"seq": "002", "delta": ["../x"], "verify": "true"},
            {"seq": "002", "slug": "c", "delta": ["a"], "verify": "true"},
            7,
        ]});
        insta_like(
            &errors(&plan),
            &[
                "tasks[0].seq: Task 0: seq must be 3-digit string",
                "tasks[0].slug: Task 0: slug must be letters, digits and hyphens",
                "tasks[0].type: Task 0: type must be SPEC, BUILD or VERIFY",
                "tasks[0].delta: Task 0: delta list cannot be empty",
                "tasks[0].verify: Task 0: verify must be a command",
                "tasks[0].budget: Task 0: budget must be a number from 1 to 1000",
                "tasks[0].depends: Task 0: depends must be \"none\", a seq or a list",
                "tasks[1].slug: Task 1: missing required field: slug",
                "tasks[1].delta: Task 1: delta must be files below the project",
                "tasks[3]: Task 3: must be an object",
                "tasks[2].seq: Task 2: seq 002 is used twice",
            ],
        );
    }

    fn insta_like(found: &[String], wanted: &[&str]) {
        assert_eq!(found, wanted);
    }

    #[test]
    fn what_is_not_in_its_form_is_named_or_read_never_left_out() {
        let plan = |fields: Value, own: Value| {
            let mut plan = json!({"objective": "x", "tasks": [{"seq": "001", "slug": "a", "delta": ["a"], "verify": "true"}]});
            plan.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            plan["tasks"][0].as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            plan
        };
        for (fields, own, error) in [
            (json!({}), json!({"delta": "a.py"}), "tasks[0].delta: Task 0: delta must be a list"),
            (
                json!({}),
                json!({"target_lines": [1]}),
                "tasks[0].target_lines: Task 0: target_lines must be an object of files and their lines",
            ),
            (
                json!({}),
                json!({"idioms": ["x"]}),
                "tasks[0].idioms: idioms must be an object with required and forbidden",
            ),
            (
                json!({"framework_confidence": "high"}),
                json!({}),
                "framework_confidence: framework_confidence must be a number from 0 to 1",
            ),
            (
                json!({"idioms": "x"}),
                json!({}),
                "idioms: idioms must be an object with required and forbidden",
            ),
            (json!({"tasks": []}), json!(null), "tasks: tasks list is empty"),
        ] {
            let plan = if own.is_null() { json!({"objective": "x", "tasks": []}) } else { plan(fields, own) };
            assert_eq!(errors(&plan), [error]);
        }
        let read = plan(json!({"framework_confidence": "0.7", "idioms": []}), json!({"idioms": []}));
        assert_eq!(TaskPlan::read(&read).unwrap().confidence_percent, 70);
    }

    #[test]
    fn a_cycle_is_named_before_what_dangles() {
        let of = |depends: &[&[&str]]| {
            let waits: Vec<Vec<String>> =
                depends.iter().map(|all| all.iter().map(|seq| (*seq).to_owned()).collect()).collect();
            let tasks: Vec<(&str, &[String])> =
                ["001", "002", "003"].into_iter().zip(waits.iter().map(Vec::as_slice)).collect();
            check_dependencies(&tasks).unwrap_err().to_string()
        };
        assert!(of(&[&["099"], &["003"], &["002"]]).contains("cycle"));
        assert!(of(&[&["099"], &["003"], &[]]).contains("dangling"));
    }

    #[test]
    fn dependencies_may_be_none_one_or_many() {
        assert_eq!(depends(&json!("none")), Some(vec![]));
        assert_eq!(depends(&json!("001")), Some(vec!["001".to_owned()]));
        assert_eq!(depends(&json!(["001", "002"])), Some(vec!["001".to_owned(), "002".to_owned()]));
        assert_eq!(depends(&json!(1)), Some(vec!["001".to_owned()]));
        assert_eq!(depends(&json!({"a": 1})), None);
    }

    #[test]
    fn the_rule_of_budgets() {
        let task = |files: usize| Task { delta: vec!["f".to_owned(); files], ..Task::default() };
        let plan = TaskPlan::default();
        assert_eq!([1, 2, 4, 9].map(|files| plan.budget(&task(files), false)), [5, 6, 8, 9]);
        assert_eq!(plan.budget(&task(1), true), 7);
        let sure = TaskPlan { confidence_percent: 60, ..TaskPlan::default() };
        assert_eq!(sure.budget(&task(1), false), 7);
        assert_eq!(plan.budget(&Task { budget: Some(3), ..task(5) }, true), 3);
    }

    #[test]
    fn lines_that_are_no_numbers_are_noticed() {
        let with = |lines: &str| Task {
            target_lines: [("a.py".to_owned(), lines.to_owned())].into(),
            ..Task::default()
        };
        assert!(with("12").has_valid_lines() && with("10-40").has_valid_lines());
        assert!(with("7-7").has_valid_lines());
        for bad in ["ten", "10-", "10-5", "0-0", "0", "-3", "1-2-3", ""] {
            assert!(!with(bad).has_valid_lines(), "{bad}");
        }
    }
}
