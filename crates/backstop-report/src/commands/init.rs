//! Changes of agents' settings files: the diff, a line for each file, and what to do next.

use crate::{JSON_SCHEMA, Style, View};
use backstop_core::{FileAction, SafeText};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// How much of a path is shown.
const PATH_CHARS_MAX: usize = 400;

/// What happens to one settings file.
#[derive(Debug, Clone)]
pub struct HookChange {
    /// The agent, such as `claude`.
    pub agent: &'static str,
    /// Why this agent is meant.
    pub found: String,
    /// The file.
    pub file: PathBuf,
    /// The file that it is a link to.
    pub leads_to: Option<PathBuf>,
    /// What is done to it.
    pub action: FileAction,
    /// The events whose hooks are put in or taken out.
    pub events: Vec<String>,
    /// The folders that are made or removed with it.
    pub folders: Vec<PathBuf>,
    /// How many hooks that call Backstop stay, because they were edited by hand.
    pub left: usize,
    /// Whether its hooks run gates at the end of a turn.
    pub has_gates: bool,
    /// Whether the agent runs new hooks only after a person has approved them.
    pub asks_approval: bool,
    /// The change as a diff. Secrets are masked.
    pub diff: String,
}

/// What happens to all of them.
#[derive(Debug, Clone)]
pub struct HookChanges {
    /// The folder below which paths are shown shorter.
    pub project: PathBuf,
    /// Whose settings: `project` or `user`.
    pub scope: &'static str,
    /// Whether hooks are taken out.
    pub is_removal: bool,
    /// Whether nothing is written.
    pub is_dry_run: bool,
    /// The files.
    pub changes: Vec<HookChange>,
    /// Whether an agent finds `backstop` on the PATH.
    pub is_on_the_path: bool,
}

impl HookChanges {
    /// A path as it is shown: relative to the project where it is inside it.
    pub fn path(project: &Path, path: &Path) -> String {
        SafeText::new(path.strip_prefix(project).unwrap_or(path).to_string_lossy()).line(PATH_CHARS_MAX)
    }

    /// The lines for people beside the diffs: one for each file, and what to do next.
    pub fn summary(&self) -> String {
        let lines = self.changes.iter().map(|change| self.line(change));
        lines.chain(self.next().into_iter().map(|next| format!("next: {next}\n"))).collect()
    }

    fn line(&self, change: &HookChange) -> String {
        let mut file = Self::path(&self.project, &change.file);
        if let Some(real) = &change.leads_to {
            file.push_str(&format!(" (a link to {})", Self::path(&self.project, real)));
        }
        let is = if self.is_dry_run { "would be" } else { "was" };
        let what = match change.action {
            FileAction::Absent => "does not exist: nothing to remove".to_owned(),
            FileAction::Unchanged if self.is_removal => "has no hooks of Backstop".to_owned(),
            FileAction::Unchanged => "has the hooks already".to_owned(),
            action => format!("{is} {}", action.name()),
        };
        let events: Vec<String> = change.events.iter().map(|event| SafeText::new(event).line(60)).collect();
        let events = if events.is_empty() { String::new() } else { format!(": {}", events.join(", ")) };
        let left = match change.left {
            0 => String::new(),
            n => format!("; {n} edited by hand, which call Backstop, stay"),
        };
        format!("{} ({}): {file} {what}{events}{left}\n", change.agent, change.found)
    }

    /// What to do next.
    fn next(&self) -> Vec<String> {
        let mut next = Vec::new();
        if self.is_dry_run {
            next.push("nothing was written; run it without --dry-run to write".to_owned());
        }
        if self.is_removal {
            return next;
        }
        let is_new = |change: &&HookChange| matches!(change.action, FileAction::Made | FileAction::Changed);
        let any = |wanted: fn(&HookChange) -> bool| self.changes.iter().filter(is_new).any(wanted);
        if any(|change| change.has_gates) {
            next.push(
                "gates at the end of a turn run after `backstop trust`, if backstop.toml sets them; init \
                 trusts nothing"
                    .to_owned(),
            );
        }
        if any(|change| change.asks_approval) {
            next.push("Codex runs new hooks only after you approve them: type /hooks in Codex".to_owned());
        }
        if !self.is_on_the_path {
            next.push("put backstop on the PATH: the agents look for it there".to_owned());
        }
        next
    }
}

impl View for HookChanges {
    /// The diffs alone; [`HookChanges::summary`] goes to standard error.
    fn text(&self, _: Style) -> String {
        self.changes.iter().map(|change| SafeText::new(change.diff.as_str()).terminal()).collect()
    }

    fn json(&self) -> Value {
        let path = |path: &PathBuf| path.display().to_string();
        let row = |change: &HookChange| {
            json!({
                "agent": change.agent, "found": change.found, "file": path(&change.file),
                "leads_to": change.leads_to.as_ref().map(path), "action": change.action.name(),
                "events": change.events, "folders": change.folders.iter().map(path).collect::<Vec<_>>(),
                "left": change.left, "diff": change.diff,
            })
        };
        json!({
            "schema": JSON_SCHEMA, "scope": self.scope, "remove": self.is_removal,
            "dry_run": self.is_dry_run, "agents": self.changes.iter().map(row).collect::<Vec<_>>(),
            "next": self.next(),
        })
    }
}
