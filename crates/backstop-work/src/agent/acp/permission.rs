//! Answers to `session/request_permission`: inside of the worktree once, outside of it no, and
//! never for ever.
//!
//! What a tool call touches is told by its `locations` and by the paths in its `rawInput`. A
//! command names paths as words: absolute ones, `~` and `..`. What names no path works in the
//! session's folder.

use backstop_core::SafeText;
use serde_json::{Value, json};
use std::path::{Component, Path, PathBuf};

/// How much of a tool call's title is recorded.
const TITLE_CHARS_MAX: usize = 200;
/// Names of fields in which tools of known agents have a path.
const PATH_FIELDS: &[&str] = &[
    "file_path",
    "filePath",
    "path",
    "abs_path",
    "absolute_path",
    "target_file",
    "fileName",
    "cwd",
    "directory",
];
/// Where output is thrown away or shown.
const SINKS: &[&str] = &["/dev/null", "/dev/stdout", "/dev/stderr"];
/// Where commands read programs, whoever they belong to.
const PROGRAMS: &[&str] = &["/bin", "/usr", "/opt", "/lib", "/lib64", "/nix"];

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    /// The chosen option; nothing where none fits, which is answered with `cancelled`.
    pub(super) option: Option<String>,
    /// What was asked for and not allowed, in words.
    pub(super) denied: Option<SafeText>,
}

impl Decision {
    /// The result of the request.
    pub(super) fn result(&self) -> Value {
        match &self.option {
            Some(option) => json!({"outcome": {"outcome": "selected", "optionId": option}}),
            None => json!({"outcome": {"outcome": "cancelled"}}),
        }
    }
}

/// Decides about a request. `folders` are those in which it may work.
pub(super) fn decide(params: &Value, folders: &[PathBuf]) -> Decision {
    let option = |kind: &str| {
        let options = params.get("options").and_then(Value::as_array);
        let of_kind = |option: &&Value| option.get("kind").and_then(Value::as_str) == Some(kind);
        let found = options.into_iter().flatten().find(of_kind)?;
        found.get("optionId").and_then(Value::as_str).map(str::to_owned)
    };
    let call = params.get("toolCall").unwrap_or(&Value::Null);
    let outside = outside(call, folders);
    let title = title(call);
    match (outside, option("allow_once")) {
        (None, Some(once)) => Decision { option: Some(once), denied: None },
        (None, None) => Decision {
            option: option("reject_once"),
            denied: Some(format!("{title}: it could not be allowed once, only for ever").into()),
        },
        (Some(path), _) => Decision {
            option: option("reject_once"),
            denied: Some(format!("{title}: {} is outside of the worktree", path.display()).into()),
        },
    }
}

/// What is asked for, in words.
fn title(call: &Value) -> String {
    let text = |name: &str| call.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let words = text("title").or_else(|| text("kind")).unwrap_or("a tool call");
    words.chars().take(TITLE_CHARS_MAX).collect()
}

/// The first path of a tool call that is outside of the folders.
fn outside(call: &Value, folders: &[PathBuf]) -> Option<PathBuf> {
    let first = folders.first()?;
    let is_outside = |path: &Path| {
        let full = lexical(&first.join(path));
        (!folders.iter().any(|folder| full.starts_with(folder))).then_some(full)
    };
    let located = call.get("locations").and_then(Value::as_array).into_iter().flatten();
    let located = located.filter_map(|location| location.get("path").and_then(Value::as_str));
    let input = call.get("rawInput").unwrap_or(&Value::Null);
    let named = PATH_FIELDS.iter().filter_map(|field| input.get(*field).and_then(Value::as_str));
    let words = command_words(input);
    let is_below = |path: &Path, folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
    // The locations of a command are paths among its words: a program that it calls, a file that it
    // reads.
    let is_harmless = |path: &PathBuf| is_below(path, SINKS) || !words.is_empty() && is_below(path, PROGRAMS);
    let mentioned = words.iter().filter_map(|word| path_in(word));
    let mentioned =
        located.map(str::to_owned).chain(mentioned).filter_map(|path| is_outside(Path::new(&path)));
    let worked_on = named.filter_map(|path| is_outside(Path::new(path)));
    worked_on.filter(|path| !is_below(path, SINKS)).chain(mentioned.filter(|path| !is_harmless(path))).next()
}

/// The words of a command.
fn command_words(input: &Value) -> Vec<String> {
    let split = |line: &str| {
        let is_edge = |c: char| {
            c.is_whitespace() || matches!(c, ';' | '|' | '&' | '<' | '>' | '(' | ')' | '`' | '=' | ':')
        };
        line.split(is_edge).map(|word| word.trim_matches(['"', '\'']).to_owned()).collect::<Vec<_>>()
    };
    match input.get("command").or_else(|| input.get("cmd")) {
        Some(Value::String(line)) => split(line),
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).flat_map(split).collect(),
        _ => Vec::new(),
    }
}

/// The path that a word of a command is, where it may leave the folder. A home folder is outside,
/// whosever it is.
fn path_in(word: &str) -> Option<String> {
    if word.starts_with('~') || word.starts_with("$HOME") || word.starts_with("${HOME}") {
        return Some(format!("/{word}"));
    }
    let leaves = (word.starts_with('/') && word.len() > 1 && !word.starts_with("//"))
        || word == ".."
        || word.starts_with("../")
        || word.contains("/../");
    leaves.then(|| word.to_owned())
}

/// A path without `.` and `..`, without looking at the disk: what is asked about may not be there
/// yet.
fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(call: Value) -> Decision {
        let options = json!([
            {"optionId": "always", "kind": "allow_always"}, {"optionId": "yes", "kind": "allow_once"},
            {"optionId": "no", "kind": "reject_once"}, {"optionId": "never", "kind": "reject_always"},
        ]);
        let folders = [PathBuf::from("/w/tree"), PathBuf::from("/s/out")];
        decide(&json!({"toolCall": call, "options": options}), &folders)
    }

    #[test]
    fn inside_is_allowed_once() {
        for call in [
            json!({"title": "write", "locations": [{"path": "/w/tree/src/a.rs"}]}),
            json!({"rawInput": {"file_path": "src/../b.rs"}}),
            json!({"rawInput": {"path": "/s/out/result.json"}}),
            json!({"kind": "execute", "rawInput": {"command": "cargo test && git status > /dev/null"}}),
            json!({"kind": "execute", "rawInput": {"command": ["bash", "-lc", "/usr/bin/env ls /w/tree"]}}),
            json!({"kind": "execute", "rawInput": {"command": "echo a/b https://example.org/x"}}),
            json!({"kind": "execute", "rawInput": {"command": "tail -f /dev/null"}, "locations": [{"path": "/dev/null"}]}),
            json!({"kind": "execute", "rawInput": {"command": "/usr/bin/env ls"}, "locations": [{"path": "/usr/bin/env"}]}),
            json!({"kind": "fetch", "title": "look something up"}),
            json!({}),
        ] {
            assert_eq!(
                asked(call.clone()),
                Decision { option: Some("yes".to_owned()), denied: None },
                "{call}"
            );
        }
    }

    #[test]
    fn outside_is_rejected_once_and_named() {
        for (call, path) in [
            (json!({"title": "write", "locations": [{"path": "/etc/passwd"}]}), "/etc/passwd"),
            (json!({"rawInput": {"file_path": "../../x"}}), "/x"),
            (json!({"kind": "edit", "locations": [{"path": "/usr/bin/env"}]}), "/usr/bin/env"),
            (
                json!({"rawInput": {"command": "cat /etc/passwd"}, "locations": [{"path": "/etc/passwd"}]}),
                "/etc/passwd",
            ),
            (json!({"rawInput": {"command": "make", "cwd": "/usr/src"}}), "/usr/src"),
            (json!({"rawInput": {"path": "/w/tree-of-another/x"}}), "/w/tree-of-another/x"),
            (json!({"rawInput": {"command": "rm -rf ~/work"}}), "/~/work"),
            (json!({"rawInput": {"command": "echo x >/home/me/.bashrc"}}), "/home/me/.bashrc"),
            (json!({"rawInput": {"command": "ls", "cwd": "/"}}), "/"),
            (json!({"rawInput": {"command": ["sh", "-c", "cat ../../secret"]}}), "/secret"),
        ] {
            let decision = asked(call.clone());
            assert_eq!(decision.option.as_deref(), Some("no"), "{call}");
            assert!(decision.denied.unwrap().raw().contains(&format!("{path} is outside")), "{call}");
        }
    }

    #[test]
    fn what_could_only_be_allowed_for_ever_is_not() {
        let folders = [PathBuf::from("/w/tree")];
        let only =
            json!({"toolCall": {"title": "run"}, "options": [{"optionId": "a", "kind": "allow_always"}]});
        let decision = decide(&only, &folders);
        assert_eq!((decision.option.as_deref(), decision.denied.is_some()), (None, true));
        assert_eq!(decision.result()["outcome"]["outcome"], "cancelled");
        for broken in
            [json!({}), json!({"options": 7}), json!({"options": [{"kind": "allow_once"}]}), json!(null)]
        {
            assert_eq!(decide(&broken, &folders).option, None, "{broken}");
        }
    }
}
