//! The record of one task's work: its id, what its parents delivered, what its siblings failed of.

use super::InputError;
use super::dag::{padded, seq_of};
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

fn workspace_id(workspace: &Value) -> &str {
    [text(workspace, "workspace_id"), text(workspace, "id")]
        .into_iter()
        .find(|id| !id.is_empty())
        .unwrap_or("")
}

/// The seq of a workspace, or the one that its id begins with.
pub(super) fn seq(workspace: &Value) -> Option<String> {
    let of_id = || workspace_id(workspace).split('-').next().filter(|seq| !seq.is_empty()).map(padded);
    seq_of(workspace.get("seq")).or_else(of_id)
}

pub(super) fn lineage(input: &Value) -> Result<Value, InputError> {
    let waits = depends(input.get("depends").unwrap_or(&Value::Null));
    let waits = waits.ok_or_else(|| InputError::field("depends", "\"none\", a seq or a list"))?;
    let complete: Vec<(String, &Value)> = list(input)?
        .iter()
        .filter(|one| text(one, "status") == "complete")
        .filter_map(|one| Some((seq(one)?, one)))
        .collect();
    if waits.is_empty() {
        return Ok(json!({}));
    }
    let parents: Vec<Value> = waits
        .iter()
        .filter_map(|waited| complete.iter().find(|(seq, _)| *seq == padded(waited)))
        .map(|(seq, one)| json!({"seq": seq, "delivered": text(one, "delivered")}))
        .collect();
    Ok(json!({"parents": parents}))
}

/// What a text says after the mark `BLOCKED:`, wherever and however that is written; the whole of
/// it where there is none.
pub(super) fn without_blocked(text: &str) -> &str {
    const MARK: &str = "BLOCKED:";
    let is_mark = |at: &usize| {
        let rest = text.as_bytes().get(*at..*at + MARK.len());
        rest.is_some_and(|rest| rest.eq_ignore_ascii_case(MARK.as_bytes()))
            && !text[..*at].ends_with(|c: char| c.is_alphanumeric())
    };
    let mark = text.char_indices().map(|(at, _)| at).find(is_mark);
    mark.map_or(text, |at| &text[at + MARK.len()..]).trim()
}

pub(super) fn siblings(input: &Value) -> Result<Value, InputError> {
    let blocked = list(input)?.iter().filter(|one| text(one, "status") == "blocked");
    let sibling = |one: &Value| {
        let reason = without_blocked(text(one, "delivered"));
        let trigger = reason.lines().next().map(str::trim).filter(|line| !line.is_empty());
        let mut sibling = json!({
            "name": format!("sibling-{}", workspace_id(one)),
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
    Ok(json!({"path": source_of(cmd, 0)}))
}

/// How deep shells in shells are looked into.
const SHELLS_MAX: u32 = 3;
/// Options whose value is code, a module or an expression, never a file.
const CODE_OPTIONS: [&str; 6] = ["-c", "-e", "-m", "-k", "--eval", "--command"];

/// The one file that a verify command names: the one test where there are others beside it; none
/// for patterns, folders and several.
fn source_of(cmd: &str, depth: u32) -> Option<String> {
    let words = words(cmd);
    if cmd.contains('*') || words.iter().any(Word::is_pattern) {
        return None;
    }
    let mut files: Vec<String> = Vec::new();
    let (mut program, mut before) = ("", "");
    for word in &words {
        if word.is_first {
            (program, before) = (name_of(&word.text), "");
        }
        let is_code = CODE_OPTIONS.contains(&before);
        if is_code && before == "-c" && matches!(program, "sh" | "bash" | "dash" | "zsh") {
            files.extend((depth < SHELLS_MAX).then(|| source_of(&word.text, depth + 1)).flatten());
        } else if !is_code {
            files.extend(file_of(word).map(str::to_owned));
        }
        before = &word.text;
    }
    files.sort_unstable();
    files.dedup();
    let is_test = |file: &&String| file.to_ascii_lowercase().contains("test");
    if files.len() > 1 && files.iter().filter(is_test).count() == 1 {
        files.retain(|file| is_test(&file));
    }
    files.pop().filter(|_| files.is_empty())
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A word of a command line.
#[derive(Debug, Default)]
struct Word {
    text: String,
    is_quoted: bool,
    /// Whether it is the program of its command.
    is_first: bool,
}

impl Word {
    /// Whether the shell makes files of it. `[` alone is a program.
    fn is_pattern(&self) -> bool {
        !self.is_quoted && self.text.len() > 2 && self.text.contains(['?', '['])
    }
}

/// The words of a command line, without those that it is redirected to.
fn words(cmd: &str) -> Vec<Word> {
    let mut all = Vec::new();
    let mut word: Option<Word> = None;
    let (mut quote, mut is_first, mut is_redirected) = (None, true, false);
    for c in cmd.chars().chain([' ']) {
        match (quote, c) {
            (Some(end), c) if c == end => quote = None,
            (Some(_), c) => word.get_or_insert_default().text.push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default().is_quoted = true;
            }
            (None, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')') => {
                if let Some(known) = word.take()
                    && !std::mem::take(&mut is_redirected)
                {
                    all.push(Word { is_first, ..known });
                    is_first = false;
                }
                is_first |= matches!(c, '\n' | ';' | '&' | '|' | '(' | ')');
                is_redirected |= matches!(c, '<' | '>');
            }
            (None, c) => word.get_or_insert_default().text.push(c),
        }
    }
    all
}

/// The file that a word is: `tests/test_a.py::test_b` is `tests/test_a.py`.
fn file_of(word: &Word) -> Option<&str> {
    let file = word.text.split("::").next().unwrap_or(&word.text);
    let (stem, extension) = name_of(file).rsplit_once('.')?;
    let is_name = !stem.is_empty() && (1..=5).contains(&extension.len());
    let is_plain = extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && extension.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_other = file.starts_with('-') || file.contains('=') || file.contains("://");
    // Words in quotes are a sentence unless they look like a path.
    let is_sentence = file.contains(' ') && !file.contains('/');
    (is_name && is_plain && !is_other && !is_sentence).then_some(file)
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
            ("python -c 'import a.b'", None),
            ("python -m a.b", None),
            ("curl https://example.com/a.html", None),
            ("pytest tests/test_a.py > out.log 2>&1", Some("tests/test_a.py")),
            ("pytest tests/test_a.py &> out.log", Some("tests/test_a.py")),
            ("python3 main.py && pytest tests/test_a.py", Some("tests/test_a.py")),
            ("python3 main.py && python3 other.py", None),
            ("pytest tests/test_a.py tests/test_b.py", None),
            ("pytest \"tests/my test_a.py\"", Some("tests/my test_a.py")),
            ("pytest 'tests/test_a.py::test_b c'", Some("tests/test_a.py")),
            ("sh -c 'pytest tests/test_a.py'", Some("tests/test_a.py")),
            ("bash -c 'cd x; sh -c \"pytest tests/test_a.py\"'", Some("tests/test_a.py")),
            ("echo 'see the README.md' && cargo test", None),
            ("[ -f x.txt ]", Some("x.txt")),
            ("pytest tests/test_[ab].py", None),
            ("(cd x && pytest tests/test_a.py)", Some("tests/test_a.py")),
            ("pytest 'tests/test_a.py", None),
            ("", None),
        ] {
            assert_eq!(source_of(cmd, 0).as_deref(), path, "{cmd}");
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
            {"id": "004-x", "status": "blocked", "delivered": "Status blocked:boom"},
            {"workspace_id": "005-x", "status": "blocked", "delivered": "it is unblocked: später"},
        ]}));
        assert_eq!(
            all.unwrap(),
            json!([
                {"name": "sibling-001-x", "trigger": "boom", "fix": "turn it off", "cost": 1000},
                {"name": "sibling-002-x", "trigger": "no details", "cost": 1000},
                {"name": "sibling-004-x", "trigger": "boom", "cost": 1000},
                {"name": "sibling-005-x", "trigger": "it is unblocked: später", "cost": 1000},
            ])
        );
    }

    #[test]
    fn parents_are_found_by_seq_or_id_and_none_to_have_is_not_none_complete() {
        let of = |depends: Value| {
            let workspaces = json!([
                {"workspace_id": "003-x", "status": "complete", "delivered": "three"},
                {"seq": "004", "status": "active"},
                {"seq": 5, "status": "complete", "delivered": "five"},
            ]);
            lineage(&json!({"depends": depends, "workspaces": workspaces})).unwrap()
        };
        let three = json!({"parents": [{"seq": "003", "delivered": "three"}]});
        assert_eq!(
            [of(json!("003")), of(json!("3")), of(json!([3, "004"]))],
            [three.clone(), three.clone(), three]
        );
        assert_eq!(of(json!(["005"]))["parents"][0]["delivered"], "five");
        assert_eq!([of(json!("004")), of(json!(["009"]))], [json!({"parents": []}), json!({"parents": []})]);
        assert_eq!([of(json!("none")), of(json!([])), of(json!(null))], [json!({}), json!({}), json!({})]);
    }
}
