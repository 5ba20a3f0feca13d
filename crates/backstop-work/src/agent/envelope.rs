//! What an agent says it did: the result envelope.
//!
//! Only `phase_id` and `status` decide whether it is one. Everything else is read as far as it can
//! be: a number in quotes is a number, a list of finished tasks is their count, what fits nothing
//! is left out. What was odd is noted ([`Envelope::oddities`]). Every text and list is cut.

use super::phase;
use super::trouble::ResultTrouble;
use crate::Claim;
use backstop_core::{Redactor, SafeText};
use serde_json::{Map, Value};

/// How many tasks a result may speak of.
const TASKS_MAX: u64 = 10_000;
/// How many gates are read.
const GATES_MAX: usize = 64;
/// How many files of each kind are read.
const FILES_MAX: usize = 2_000;
/// How much of a path or a name is kept.
const NAME_BYTES_MAX: usize = 4 << 10;
/// How much of a commit message or an error message is kept.
const MESSAGE_BYTES_MAX: usize = 16 << 10;
/// How much of an error's details is kept.
const DETAILS_BYTES_MAX: usize = 64 << 10;

/// Files that the agent says it touched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// Those that were not there before.
    pub created: Vec<SafeText>,
    /// Those that were.
    pub modified: Vec<SafeText>,
    /// Those that are gone.
    pub deleted: Vec<SafeText>,
}

/// What the agent says about a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateClaim {
    /// The gate.
    pub name: SafeText,
    /// Whether it passed.
    pub passed: bool,
}

/// Why the agent says that it failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimedError {
    /// What it calls it: `test_failure`.
    pub kind: Option<SafeText>,
    /// What it says.
    pub message: Option<SafeText>,
    /// More of it.
    pub details: Option<SafeText>,
}

/// What an agent says it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The phase, as the agent spells it.
    pub phase_id: SafeText,
    /// How it went.
    pub status: Claim,
    /// How many tasks there are.
    pub tasks_total: Option<u32>,
    /// How many are done.
    pub tasks_completed: Option<u32>,
    /// Which are done, counted from 1, in order.
    pub tasks_done: Option<Vec<usize>>,
    /// What it says about the gates.
    pub quality_gates: Vec<GateClaim>,
    /// The commit message that it proposes.
    pub commit_message: Option<SafeText>,
    /// The files that it says it touched.
    pub files: Files,
    /// Why it failed.
    pub error: Option<ClaimedError>,
    /// Fields that are not as they were asked for, in words.
    pub oddities: Vec<String>,
}

impl Envelope {
    /// Reads an object as the result of this phase.
    pub(super) fn read(object: &Map<String, Value>, phase_key: &str) -> Result<Self, ResultTrouble> {
        let phase_id = match object.get("phase_id") {
            None => return Err(ResultTrouble::Missing),
            Some(Value::String(id)) => id.clone(),
            Some(Value::Number(id)) => id.to_string(),
            Some(_) => return Err(ResultTrouble::invalid("phase_id", "is not text")),
        };
        if !phase::is_same(&phase_id, phase_key) {
            return Err(ResultTrouble::OtherPhase(cut(&phase_id, NAME_BYTES_MAX)));
        }
        let status = status(object.get("status"))?;
        let mut odd = Oddities::default();
        let tasks = match object.get("tasks") {
            None | Some(Value::Null | Value::Array(_)) => None,
            Some(Value::Object(tasks)) => Some(tasks),
            Some(_) => {
                odd.note("tasks", "is not an object");
                None
            }
        };
        let task = |field: &str| {
            let flat = object.get(&format!("tasks_{field}"));
            flat.filter(|v| !v.is_null()).or_else(|| tasks.and_then(|t| t.get(field)))
        };
        let mut tasks_total = count("tasks_total", task("total"), &mut odd);
        let tasks_completed = count("tasks_completed", task("completed"), &mut odd);
        if let (Some(total), Some(completed)) = (tasks_total, tasks_completed)
            && completed > total
        {
            odd.note("tasks_completed", &format!("is {completed} of {total}"));
            tasks_total = None;
        }
        let listed = task("done").or_else(|| task("completed").filter(|value| value.is_array()));
        Ok(Self {
            status,
            phase_id: cut(&phase_id, NAME_BYTES_MAX),
            tasks_total,
            tasks_completed,
            tasks_done: done(listed, &mut odd),
            quality_gates: gates(object.get("quality_gates")),
            commit_message: text(object.get("commit_message"), MESSAGE_BYTES_MAX),
            files: files(object.get("files")),
            error: error(object.get("error")),
            oddities: odd.0,
        })
    }

    /// With every secret masked.
    pub(super) fn masked(mut self, redactor: &Redactor) -> Self {
        let mask = |text: &mut SafeText| *text = masked(text, redactor);
        mask(&mut self.phase_id);
        self.commit_message.as_mut().map(mask);
        let files = &mut self.files;
        files.created.iter_mut().chain(&mut files.modified).chain(&mut files.deleted).for_each(mask);
        self.quality_gates.iter_mut().for_each(|gate| mask(&mut gate.name));
        if let Some(error) = &mut self.error {
            [&mut error.kind, &mut error.message, &mut error.details].into_iter().flatten().for_each(mask);
        }
        self
    }
}

/// Text with every secret masked.
pub(super) fn masked(text: &SafeText, redactor: &Redactor) -> SafeText {
    SafeText::new(redactor.redact(text.raw()).into_owned())
}

fn cut(text: &str, bytes_max: usize) -> SafeText {
    SafeText::new(&text[..text.floor_char_boundary(bytes_max)])
}

fn text(value: Option<&Value>, bytes_max: usize) -> Option<SafeText> {
    value.and_then(Value::as_str).filter(|t| !t.trim().is_empty()).map(|t| cut(t, bytes_max))
}

fn status(value: Option<&Value>) -> Result<Claim, ResultTrouble> {
    let Some(value) = value else { return Err(ResultTrouble::invalid("status", "is missing")) };
    match value.as_str().map(|s| s.trim().to_ascii_lowercase()).as_deref() {
        Some("complete") => Ok(Claim::Complete),
        Some("failed") => Ok(Claim::Failed),
        Some(other) => {
            let shown = SafeText::new(other).line(40);
            Err(ResultTrouble::invalid("status", format!("is `{shown}`, neither `complete` nor `failed`")))
        }
        None => Err(ResultTrouble::invalid("status", "is not text")),
    }
}

/// What is not as it was asked for.
#[derive(Default)]
struct Oddities(Vec<String>);

impl Oddities {
    fn note(&mut self, field: &str, why: &str) {
        self.0.push(format!("`{field}` {why}"));
    }
}

/// A number, however it is written: `3`, `3.0`, `"3"`, `"3 of 5"`, `"3/5"`.
fn number(value: &Value) -> Option<u64> {
    let number = match value {
        Value::String(text) => {
            let text = text.trim();
            let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            let rest = text[digits..].trim_start();
            let is_count = rest.is_empty() || rest.starts_with('/') || rest.starts_with("of ");
            text[..digits].parse().ok().filter(|_| is_count)
        }
        value => value.as_u64().or_else(|| whole(value.as_f64()?)),
    };
    number.filter(|n| *n <= TASKS_MAX)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Held within the range first.
fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..=1e9).contains(&number)).then_some(number as u64)
}

/// How many tasks. A list stands for its length.
fn count(field: &str, value: Option<&Value>, odd: &mut Oddities) -> Option<u32> {
    let value = value.filter(|value| !value.is_null())?;
    let count = match value {
        Value::Array(items) => u64::try_from(items.len()).ok().filter(|n| *n <= TASKS_MAX),
        value => number(value),
    };
    if !value.is_u64() {
        odd.note(field, if value.is_array() { "is a list, not a number" } else { "is not a number" });
    } else if count.is_none() {
        odd.note(field, &format!("is no number from 0 to {TASKS_MAX}"));
    }
    count.and_then(|n| u32::try_from(n).ok())
}

/// The numbers of finished tasks, counted from 1. A list with anything else in it says nothing
/// about which are done.
fn done(value: Option<&Value>, odd: &mut Oddities) -> Option<Vec<usize>> {
    let items = match value? {
        Value::Null => return None,
        Value::Array(items) => items,
        _ => {
            odd.note("tasks_done", "is no list of numbers");
            return None;
        }
    };
    let task = |item: &Value| number(item).filter(|n| *n >= 1).and_then(|n| usize::try_from(n).ok());
    let Some(mut numbers) = items.iter().map(task).collect::<Option<Vec<usize>>>() else {
        odd.note("tasks_done", "is no list of task numbers, counted from 1");
        return None;
    };
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

fn gates(value: Option<&Value>) -> Vec<GateClaim> {
    let passed = |value: &Value| value.as_bool().or_else(|| value.get("passed")?.as_bool());
    let claim = |name: &str, value: &Value| {
        passed(value).map(|passed| GateClaim { name: cut(name, NAME_BYTES_MAX), passed })
    };
    match value {
        Some(Value::Object(fields)) => {
            fields.iter().filter_map(|(n, v)| claim(n, v)).take(GATES_MAX).collect()
        }
        Some(Value::Array(items)) => {
            items.iter().filter_map(|i| claim(i.get("name")?.as_str()?, i)).take(GATES_MAX).collect()
        }
        _ => Vec::new(),
    }
}

fn files(value: Option<&Value>) -> Files {
    let list = |field: &str| {
        let items = value.and_then(|v| v.get(field)).and_then(Value::as_array);
        let paths = items.into_iter().flatten().filter_map(Value::as_str).filter(|p| !p.is_empty());
        paths.take(FILES_MAX).map(|p| cut(p, NAME_BYTES_MAX)).collect()
    };
    Files { created: list("created"), modified: list("modified"), deleted: list("deleted") }
}

/// Why it failed: an object, a text, or whatever else was written there.
fn error(value: Option<&Value>) -> Option<ClaimedError> {
    let written = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match value? {
        Value::Null => None,
        Value::Object(fields) => Some(ClaimedError {
            kind: text(fields.get("type"), NAME_BYTES_MAX),
            message: text(fields.get("message"), MESSAGE_BYTES_MAX),
            details: fields
                .get("details")
                .filter(|details| !details.is_null())
                .map(|details| cut(&written(details), DETAILS_BYTES_MAX)),
        }),
        other => Some(ClaimedError {
            message: Some(cut(&written(other), MESSAGE_BYTES_MAX)),
            ..ClaimedError::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Result<Envelope, ResultTrouble> {
        Envelope::read(value.as_object().unwrap(), "2a")
    }

    #[test]
    fn the_older_shape_and_the_flat_one_say_the_same() {
        let nested = read(json!({
            "phase_id": "Phase 2-A", "status": "complete", "tasks": {"total": 3, "completed": 2, "done": [2, 1, 2]},
            "quality_gates": {"lint": {"passed": true, "output": ""}, "test": {"passed": false}, "format": null},
            "commit_message": "feat: x", "files": {"created": ["a"], "modified": ["b"], "deleted": ["c"]},
            "plan_updated": true
        }));
        let flat = read(json!({
            "phase_id": "Phase 2-A", "status": " Complete ", "tasks_total": 3, "tasks_completed": 2, "tasks_done": [1, 2],
            "quality_gates": [{"name": "lint", "passed": true}, {"name": "test", "passed": false}],
            "commit_message": "feat: x", "files": {"created": ["a"], "modified": ["b"], "deleted": ["c"]}, "error": null
        }));
        assert_eq!(nested, flat);
        let envelope = flat.unwrap();
        assert_eq!(envelope.tasks_done, Some(vec![1, 2]));
        assert_eq!(envelope.quality_gates.len(), 2);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            (json!({"phase_id": "2a"}), "status"),
            (json!({"phase_id": "2a", "status": "complete | failed"}), "status"),
            (json!({"phase_id": "2a", "status": 1}), "status"),
            (json!({"phase_id": [], "status": "complete"}), "phase_id"),
        ];
        for (value, want) in cases {
            match read(value.clone()) {
                Err(ResultTrouble::Invalid { field, .. }) => assert_eq!(field, want, "{value}"),
                other => panic!("{value}: {other:?}"),
            }
        }
        assert_eq!(
            read(json!({"phase_id": "3", "status": "complete"})),
            Err(ResultTrouble::OtherPhase("3".into()))
        );
        assert_eq!(read(json!({"status": "complete"})), Err(ResultTrouble::Missing));
    }

    #[test]
    fn a_field_of_the_wrong_type_is_read_as_far_as_it_can_be_and_noted() {
        let complete = |more: Value| {
            let mut object = json!({"phase_id": "2a", "status": "complete"});
            object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            read(object).unwrap()
        };
        let cases = [
            (json!({"tasks_completed": ["add the route", "write tests"]}), Some(2), "tasks_completed"),
            (json!({"tasks_completed": "2"}), Some(2), "tasks_completed"),
            (json!({"tasks_completed": "2 of 5"}), Some(2), "tasks_completed"),
            (json!({"tasks_completed": 2.0}), Some(2), "tasks_completed"),
            (json!({"tasks_completed": "all"}), None, "tasks_completed"),
            (json!({"tasks_completed": -1}), None, "tasks_completed"),
            (json!({"tasks_completed": 1e9}), None, "tasks_completed"),
            (json!({"tasks_completed": true}), None, "tasks_completed"),
            (json!({"tasks": 3}), None, "tasks"),
            (json!({"tasks": {"total": 1, "completed": 2}}), Some(2), "tasks_completed"),
            (json!({"tasks_done": [0]}), None, "tasks_done"),
            (json!({"tasks_done": "1, 2"}), None, "tasks_done"),
        ];
        for (more, completed, odd) in cases {
            let envelope = complete(more.clone());
            assert_eq!(envelope.tasks_completed, completed, "{more}");
            assert!(envelope.oddities[0].contains(odd), "{more}: {:?}", envelope.oddities);
        }
        assert_eq!(complete(json!({"tasks_completed": [1, "3"]})).tasks_done, Some(vec![1, 3]));
        assert_eq!(complete(json!({"tasks_done": ["1", 2]})).tasks_done, Some(vec![1, 2]));
        assert_eq!(complete(json!({"error": 7})).error.unwrap().message, Some("7".into()));
        assert!(
            complete(json!({"tasks_completed": 2, "tasks_total": 2, "tasks_done": [1, 2]}))
                .oddities
                .is_empty()
        );
    }

    #[test]
    fn what_others_check_does_not_make_a_result_invalid() {
        let envelope = read(json!({
            "phase_id": "2a", "status": "complete", "quality_gates": {"lint": "passed"}, "commit_message": 7,
            "files": {"created": ["a", 7, ""], "modified": "b"}
        }));
        let envelope = envelope.unwrap();
        assert_eq!(envelope.files.created, vec![SafeText::new("a")]);
        assert!(envelope.quality_gates.is_empty() && envelope.commit_message.is_none());
    }

    #[test]
    fn secrets_are_masked() {
        let envelope = read(json!({
            "phase_id": "2a", "status": "failed", "commit_message": "use C4n4ry-Value",
            "error": {"type": "auth_error", "message": "C4n4ry-Value refused", "details": {"key": "C4n4ry-Value"}}
        }));
        let masked = envelope.unwrap().masked(&Redactor::new(["C4n4ry-Value"]));
        assert!(!format!("{masked:?}").contains("C4n4ry"));
    }
}
