//! Answers to `session/request_permission`: inside of the worktree once, outside of it no, and
//! never for ever.
//!
//! What a tool call touches is told by its `locations`, by the diffs in its `content` and by what
//! is in its `rawInput`: every agent has names of its own for that, so each of its values is looked
//! at ([`Named`]). Links on the way are followed ([`ground`]). A command names paths as words
//! ([`command`]). What names no path works in the session's folder.

mod command;
mod ground;

pub(super) use ground::{Resolver, on_disk};

use backstop_core::{SafeText, shell};
use ground::Ground;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// How much of a tool call's title is recorded.
const TITLE_CHARS_MAX: usize = 200;
/// Longer texts are no paths, in bytes.
const PATH_BYTES_MAX: usize = 4096;
/// Names of fields that hold a path, whatever it looks like. Names are compared in small letters
/// without `_` and `-`.
const PATH_FIELDS: &[&str] = &[
    "filepath",
    "path",
    "abspath",
    "absolutepath",
    "targetfile",
    "filename",
    "file",
    "cwd",
    "directory",
    "dir",
    "notebookpath",
    "source",
    "destination",
    "paths",
    "files",
    "oldpath",
    "newpath",
    "workdir",
];
/// Names of fields that say where a command runs.
const FOLDER_FIELDS: &[&str] = &["cwd", "workdir", "directory", "workingdirectory", "dirpath"];
/// Names of fields that hold a command.
const COMMAND_FIELDS: &[&str] =
    &["command", "cmd", "script", "shellcommand", "commandline", "bash", "commands", "argv"];
/// Names of fields that hold text: what is written, what is looked for, what somebody says.
const TEXT_FIELDS: &[&str] = &[
    "content",
    "contents",
    "text",
    "filetext",
    "old",
    "new",
    "oldstring",
    "newstring",
    "oldstr",
    "newstr",
    "oldtext",
    "newtext",
    "insertline",
    "inserttext",
    "newsource",
    "codeedit",
    "replacement",
    "description",
    "instruction",
    "instructions",
    "explanation",
    "reason",
    "justification",
    "pattern",
    "regex",
    "regexp",
    "query",
    "search",
    "prompt",
    "message",
    "title",
    "body",
    "thought",
    "question",
];
/// Names of fields that hold a patch, in which only the heads of files are paths.
const PATCH_FIELDS: &[&str] = &["unifieddiff", "diff", "patch", "patchtext", "input"];
/// Names of fields whose own fields are named by paths.
const FIELDS_BY_PATH: &[&str] = &["changes", "filechanges"];
/// What stands before the path of a file in a patch.
const PATCH_HEADS: &[&str] =
    &["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ", "--- /", "+++ /"];

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
/// `resolver` says where a path leads.
pub(super) fn decide(params: &Value, folders: &[PathBuf], resolver: Resolver) -> Decision {
    let option = |kind: &str| {
        let options = params.get("options").and_then(Value::as_array);
        let of_kind = |option: &&Value| option.get("kind").and_then(Value::as_str) == Some(kind);
        let found = options.into_iter().flatten().find(of_kind)?;
        found.get("optionId").and_then(Value::as_str).map(str::to_owned)
    };
    let call = params.get("toolCall").unwrap_or(&Value::Null);
    let objection = Ground::new(folders, resolver).and_then(|ground| objection(call, &ground));
    let title = title(call);
    match (objection, option("allow_once")) {
        (None, Some(once)) => Decision { option: Some(once), denied: None },
        (None, None) => Decision {
            option: option("reject_once"),
            denied: Some(format!("{title}: it could not be allowed once, only for ever").into()),
        },
        (Some(words), _) => {
            Decision { option: option("reject_once"), denied: Some(format!("{title}: {words}").into()) }
        }
    }
}

/// Why a tool call is not allowed.
fn objection(call: &Value, ground: &Ground) -> Option<String> {
    match outside(call, ground) {
        Some(path) => Some(format!("{} is outside of the worktree", path.display())),
        None => ground.is_cut.get().then(|| "it names more than is looked at".to_owned()),
    }
}

/// What is asked for, in words.
fn title(call: &Value) -> String {
    let text = |name: &str| call.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let words = text("title").or_else(|| text("kind")).unwrap_or("a tool call");
    words.chars().take(TITLE_CHARS_MAX).collect()
}

/// The first place outside of the ground that a tool call names.
fn outside(call: &Value, ground: &Ground) -> Option<PathBuf> {
    let mut named = Named::default();
    let input = call.get("rawInput").unwrap_or(&Value::Null);
    named.take(input, "", &ground.cwd);
    for piece in list(call, "content") {
        named.paths.extend(piece.get("path").and_then(Value::as_str).map(str::to_owned));
    }
    let is_command = call.get("kind").and_then(Value::as_str) == Some("execute");
    if is_command && named.commands.is_empty() {
        // Some tell the command in the title alone.
        let words = input.as_str().or_else(|| call.get("title")?.as_str()).unwrap_or_default();
        named.commands.push((ground.cwd.clone(), words.to_owned()));
    }
    if let Some(path) = named.paths.iter().find_map(|path| ground.outside(&ground.cwd, path)) {
        return Some(path);
    }
    let likely = |path: &&String| !path.starts_with('/') || ground.is_plausible(path);
    let mut texts = named.maybe_paths.iter().filter(likely);
    if let Some(path) = texts.find_map(|path| ground.outside(&ground.cwd, path)) {
        return Some(path);
    }
    let mut allowed = Vec::new();
    for (from, text) in &named.commands {
        if let Some(path) = command::outside(ground, from, text, &mut allowed) {
            return Some(path);
        }
    }
    // The locations of a command are paths among its words.
    let located = list(call, "locations").filter_map(|location| location.get("path")?.as_str());
    located.filter_map(|path| ground.outside(&ground.cwd, path)).find(|path| !allowed.contains(path))
}

fn list<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// What the input of a tool names.
#[derive(Default)]
struct Named {
    paths: Vec<String>,
    /// Values that begin as paths do and may be something else.
    maybe_paths: Vec<String>,
    /// Commands, with the folder in which each begins.
    commands: Vec<(PathBuf, String)>,
}

impl Named {
    /// Takes a value of the input. `folder` is where a command in it runs.
    fn take(&mut self, value: &Value, field: &str, folder: &Path) {
        let is = |fields: &[&str]| fields.contains(&field);
        match value {
            Value::String(text) if is(COMMAND_FIELDS) => {
                self.commands.push((folder.to_owned(), text.clone()));
            }
            Value::Array(values)
                if is(COMMAND_FIELDS) && field != "commands" && all_texts(values).is_some() =>
            {
                let line = shell::line(all_texts(values).unwrap_or_default());
                self.commands.push((folder.to_owned(), line));
            }
            Value::String(text) => self.take_text(text, field),
            Value::Array(values) => values.iter().for_each(|value| self.take(value, field, folder)),
            Value::Object(fields) => self.take_object(fields, field, folder),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn take_object(&mut self, fields: &Map<String, Value>, own: &str, folder: &Path) {
        let texts = || fields.iter().filter_map(|(name, value)| Some((plain(name), value.as_str()?)));
        let said = texts().find(|(name, _)| FOLDER_FIELDS.contains(&name.as_str()));
        let folder = &said.map_or_else(|| folder.to_owned(), |(_, said)| folder.join(said));
        // A program in one field and its words in another.
        let words = fields.get("args").and_then(Value::as_array).and_then(|words| all_texts(words));
        let program = texts().find(|(name, _)| matches!(name.as_str(), "command" | "cmd")).zip(words);
        for (name, value) in fields {
            if FIELDS_BY_PATH.contains(&own) {
                self.paths.push(name.clone());
            }
            match &program {
                Some(((_, program), words)) if name == "args" => {
                    let line = format!("{program} {}", shell::line(words));
                    self.commands.push((folder.clone(), line));
                }
                _ => self.take(value, &plain(name), folder),
            }
        }
    }

    fn take_text(&mut self, text: &str, field: &str) {
        let in_patch = |line: &str| {
            let head = PATCH_HEADS.iter().find(|head| line.starts_with(**head))?;
            let path = &line[head.trim_end_matches('/').len()..];
            Some(path.split('\t').next().unwrap_or_default().trim().to_owned())
        };
        let is_maybe_path = !TEXT_FIELDS.contains(&field) && !text.is_empty();
        if let Some((_, path)) = text.split_once("://").filter(|(scheme, _)| scheme.ends_with("file")) {
            let path = path.strip_prefix("localhost").unwrap_or(path);
            self.paths.push(without_percents(path));
        } else if PATCH_FIELDS.contains(&field) {
            self.paths.extend(text.lines().filter_map(in_patch));
        } else if PATH_FIELDS.contains(&field) {
            self.paths.push(text.to_owned());
        } else if is_maybe_path && text.len() <= PATH_BYTES_MAX && !text.contains("://") {
            let is_line = !text.contains('\n') && !text.contains(' ');
            let to = if is_line && !text.starts_with("//") { &mut self.paths } else { &mut self.maybe_paths };
            to.push(text.to_owned());
        }
    }
}

fn all_texts(values: &[Value]) -> Option<Vec<&str>> {
    values.iter().map(Value::as_str).collect()
}

/// A name of a field, to compare.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase()).collect()
}

/// The path of a `file:` address.
fn without_percents(path: &str) -> String {
    let (mut out, mut rest) = (Vec::new(), path.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &after[2..];
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests;
