//! The record of one task's work: its id, what its parents delivered, what its siblings failed of.

use super::InputError;
use crate::task::depends;
use backstop_core::Timestamp;
use serde_json::{Value, json};

/// What a known failure of a sibling costs, in the original's tokens.
const SIBLING_COST: u32 = 1000;

pub(super) fn id(input: &Value) -> Result<Value, InputError> {
    let path =
        input.get("path").and_then(Value::as_str).ok_or_else(|| InputError::field("path", "a text"))?;
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let stem =
        ["_complete", "_blocked", "_active"].iter().find_map(|end| stem.strip_suffix(end)).unwrap_or(stem);
    Ok(json!({"id": stem.replacen('_', "-", 1)}))
}

pub(super) fn finish(input: &Value, now: Timestamp) -> Result<Value, InputError> {
    let text =
        |name: &str| input.get(name).and_then(Value::as_str).ok_or_else(|| InputError::field(name, "a text"));
    let (id, action, words) = (text("id")?, text("action")?, text("text")?);
    match action {
        "complete" => Ok(json!({
            "workspace_id": id, "status": "complete", "delivered": words, "completed_at": now.to_string(),
        })),
        "block" => Ok(json!({
            "workspace_id": id, "status": "blocked", "delivered": format!("BLOCKED: {words}"),
            "blocked_at": now.to_string(),
        })),
        _ => Err(InputError::field("action", "complete or block")),
    }
}

fn list(input: &Value) -> Result<&Vec<Value>, InputError> {
    let list = input.get("workspaces").and_then(Value::as_array);
    list.ok_or_else(|| InputError::field("workspaces", "a list of workspaces"))
}

fn text<'v>(workspace: &'v Value, name: &str) -> &'v str {
    workspace.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn lineage(input: &Value) -> Result<Value, InputError> {
    let waits = depends(input.get("depends").unwrap_or(&Value::Null));
    let waits = waits.ok_or_else(|| InputError::field("depends", "\"none\", a seq or a list"))?;
    let workspaces = list(input)?;
    let parents: Vec<Value> = waits
        .iter()
        .filter_map(|seq| {
            workspaces.iter().find(|one| text(one, "seq") == seq && text(one, "status") == "complete")
        })
        .map(|one| json!({"seq": text(one, "seq"), "delivered": text(one, "delivered")}))
        .collect();
    Ok(if parents.is_empty() { json!({}) } else { json!({"parents": parents}) })
}

pub(super) fn siblings(input: &Value) -> Result<Value, InputError> {
    let blocked = list(input)?.iter().filter(|one| text(one, "status") == "blocked");
    let sibling = |one: &Value| {
        let reason = text(one, "delivered");
        let reason = reason.strip_prefix("BLOCKED:").unwrap_or(reason).trim();
        let trigger = reason.lines().next().map(str::trim).filter(|line| !line.is_empty());
        let mut sibling = json!({
            "name": format!("sibling-{}", text(one, "workspace_id")),
            "trigger": trigger.unwrap_or("no details"), "cost": SIBLING_COST,
        });
        let fix = reason.lines().find_map(|line| line.trim().strip_prefix("Fix:"));
        if let Some(fix) = fix {
            sibling["fix"] = json!(fix.trim());
        }
        sibling
    };
    Ok(Value::Array(blocked.map(sibling).collect()))
}

pub(super) fn verify_source(input: &Value) -> Result<Value, InputError> {
    let cmd = input.get("cmd").and_then(Value::as_str).ok_or_else(|| InputError::field("cmd", "a text"))?;
    Ok(json!({"path": source_of(cmd)}))
}

/// The one file that a verify command names; none for patterns, folders and several.
fn source_of(cmd: &str) -> Option<&str> {
    let words = cmd.split([' ', '\t', ';', '&', '|']).map(|word| word.trim_matches(['"', '\'']));
    let files: Vec<&str> = words.filter_map(file_of).collect();
    let is_pattern = cmd.contains(['*', '?', '[']);
    match files.first() {
        Some(first) if !is_pattern && files.iter().all(|file| file == first) => Some(first),
        _ => None,
    }
}

/// The file that a word is: `tests/test_a.py::test_b` is `tests/test_a.py`.
fn file_of(word: &str) -> Option<&str> {
    let file = word.split("::").next().unwrap_or(word);
    let name = file.rsplit('/').next().unwrap_or(file);
    let (stem, extension) = name.rsplit_once('.')?;
    let is_name = !stem.is_empty() && (1..=5).contains(&extension.len());
    let is_plain = extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && extension.bytes().any(|byte| byte.is_ascii_alphabetic());
    (is_name && is_plain && !file.starts_with('-') && !file.contains('=')).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_file_of_a_command() {
        for (cmd, path) in [
            ("pytest tests/test_auth.py -v", Some("tests/test_auth.py")),
            ("pytest tests/test_auth.py::test_login", Some("tests/test_auth.py")),
            ("python -m pytest tests/", None),
            ("pytest tests/*.py", None),
            ("diff a.txt b.txt", None),
            ("node test.js && node test.js", Some("test.js")),
            ("cargo test", None),
            ("python3.11 -c 'x'", None),
            ("true", None),
        ] {
            assert_eq!(source_of(cmd), path, "{cmd}");
        }
    }

    #[test]
    fn ids_and_siblings() {
        let of = |path: &str| id(&json!({"path": path})).unwrap()["id"].clone();
        assert_eq!(of("/p/002_foo-bar_complete.xml"), "002-foo-bar");
        assert_eq!(of("001_a.json"), "001-a");
        assert_eq!(of("003-c"), "003-c");
        let all = siblings(&json!({"workspaces": [
            {"workspace_id": "001-x", "status": "blocked", "delivered": "BLOCKED: boom\nTried: y\nFix: turn it off"},
            {"workspace_id": "002-x", "status": "blocked"},
            {"workspace_id": "003-x", "status": "complete", "delivered": "fine"},
        ]}));
        assert_eq!(
            all.unwrap(),
            json!([
                {"name": "sibling-001-x", "trigger": "boom", "fix": "turn it off", "cost": 1000},
                {"name": "sibling-002-x", "trigger": "no details", "cost": 1000},
            ])
        );
    }
}
