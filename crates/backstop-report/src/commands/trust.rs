//! What a project's settings may do, and whether they are trusted.

use crate::{JSON_SCHEMA, Style, View};
use backstop_core::SafeText;
use serde_json::{Value, json};
use std::path::PathBuf;

/// How many characters of a path are shown.
const PATH_CHARS_MAX: usize = 200;

/// What was done about the trust in a project's settings.
#[derive(Debug, Clone)]
pub enum TrustChange {
    /// It was only looked at. What has changed since it was trusted.
    Shown(Option<Vec<String>>),
    /// It was trusted as it is now.
    Given,
    /// It was revoked; whether there was any.
    Revoked(bool),
}

/// A setting of a project's file: the key, the value with its secrets as they are, the same with
/// them masked, and the line.
pub type SetValue = (String, String, String, usize);

/// A project's settings, and whether they are trusted.
#[derive(Debug, Clone)]
pub struct TrustState {
    /// What was done.
    pub change: TrustChange,
    /// Whether they are trusted now.
    pub is_trusted: bool,
    /// The file as it is shown.
    pub file: String,
    /// The file's canonical path.
    pub canonical: PathBuf,
    /// The hash of the file.
    pub hash: String,
    /// The settings that need trust.
    pub sets: Vec<SetValue>,
    /// The settings that take effect without it.
    pub without_trust: Vec<SetValue>,
    /// The files that trust covers.
    pub covers: Vec<String>,
    /// Files from which MCP servers are taken: path, hash, servers, and whether it is trusted.
    pub imports: Vec<(PathBuf, String, Vec<String>, bool)>,
}

impl TrustState {
    fn word(&self) -> &'static str {
        if self.is_trusted { "trusted" } else { "not trusted" }
    }

    fn covered(&self) -> String {
        format!("trust covers {}: a change in one of them ends it\n", self.covers.join(", "))
    }
}

fn lines(head: &str, sets: &[SetValue]) -> String {
    let mut text = if sets.is_empty() { String::new() } else { format!("{head}\n") };
    for (key, _, value, line) in sets {
        let value = SafeText::new(value.as_str()).line(120);
        text.push_str(&format!("  line {line}: {key} = {value}\n"));
    }
    text
}

impl View for TrustState {
    fn text(&self, _: Style) -> String {
        let file = SafeText::new(self.file.as_str()).line(PATH_CHARS_MAX);
        let mut text = match &self.change {
            TrustChange::Shown(changes) => {
                let is = self.word();
                let none = if self.sets.is_empty() { "; nothing in it needs trust" } else { "" };
                let changed = match changes {
                    Some(changes) if !self.is_trusted => format!(" any more: {}", changes.join(", ")),
                    _ => String::new(),
                };
                let needs = match self.is_trusted {
                    true => "takes effect because it is trusted:",
                    false => "ignored until it is trusted:",
                };
                [
                    format!("{file} is {is}{changed}{none}\n"),
                    lines(needs, &self.sets),
                    lines("takes effect without trust:", &self.without_trust),
                    self.covered(),
                ]
                .concat()
            }
            TrustChange::Revoked(true) => format!("{file} is trusted no longer\n"),
            TrustChange::Revoked(false) => format!("{file} was not trusted\n"),
            TrustChange::Given => [
                format!("{file} is trusted as it is now\n"),
                lines("takes effect from now on:", &self.sets),
                self.covered(),
            ]
            .concat(),
        };
        for (path, _, servers, is_trusted) in self.imports.iter().filter(|_| self.is_trusted) {
            let path = SafeText::new(path.display().to_string()).line(PATH_CHARS_MAX);
            let servers = SafeText::new(servers.join(", ")).line(PATH_CHARS_MAX);
            let is = if *is_trusted { "trusted" } else { "not trusted" };
            text.push_str(&format!("  MCP servers of {path} ({is}): {servers}\n"));
        }
        text
    }

    fn json(&self) -> Value {
        let sets = |sets: &[SetValue]| -> Vec<Value> {
            sets.iter()
                .map(|(key, value, _, line)| json!({ "key": key, "value": value, "line": line }))
                .collect()
        };
        let imports = self.imports.iter();
        let imports: Vec<Value> = imports
            .map(|(file, hash, servers, _)| json!({ "file": file, "hash": hash, "servers": servers }))
            .collect();
        json!({
            "schema": JSON_SCHEMA, "file": self.canonical.display().to_string(), "hash": self.hash,
            "state": self.word(), "sets": sets(&self.sets), "without_trust": sets(&self.without_trust),
            "covers": self.covers, "imports": imports,
        })
    }
}

/// The files that are trusted, where the project has none.
#[derive(Debug, Clone)]
pub struct TrustedFiles(pub Vec<PathBuf>);

impl View for TrustedFiles {
    fn text(&self, _: Style) -> String {
        let mut text = "there is no backstop.toml here\n".to_owned();
        for path in &self.0 {
            text.push_str(&format!("trusted: {}\n", SafeText::new(path.display().to_string()).line(400)));
        }
        text
    }

    fn json(&self) -> Value {
        let paths: Vec<String> = self.0.iter().map(|path| path.display().to_string()).collect();
        json!({ "schema": JSON_SCHEMA, "trusted": paths })
    }
}
