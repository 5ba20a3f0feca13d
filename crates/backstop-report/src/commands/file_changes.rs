//! Changes of settings files as diffs, and what to know about them last.

use crate::{JSON_SCHEMA, Style, View};
use backstop_core::SafeText;
use serde_json::{Value, json};
use std::path::PathBuf;

/// A change of one file.
#[derive(Debug, Clone)]
pub struct FileChange {
    /// The file.
    pub file: PathBuf,
    /// The change as `diff -u` shows it; secrets in it are masked.
    pub diff: String,
}

/// Changes of files.
#[derive(Debug, Clone)]
pub struct FileChanges {
    /// The changes.
    pub changes: Vec<FileChange>,
    /// Whether they were written.
    pub is_written: bool,
    /// What to know, or to do next.
    pub last: String,
}

impl View for FileChanges {
    fn text(&self, _: Style) -> String {
        let diff = |change: &FileChange| SafeText::new(change.diff.as_str()).terminal();
        let mut text: String = self.changes.iter().map(diff).collect();
        if !self.changes.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("{}\n", self.last));
        text
    }

    fn json(&self) -> Value {
        let row = |change: &FileChange| json!({ "file": change.file, "diff": change.diff });
        let rows: Vec<Value> = self.changes.iter().map(row).collect();
        json!({ "schema": JSON_SCHEMA, "written": self.is_written, "changes": rows })
    }
}

/// What to know once servers have moved behind the gateway.
pub fn servers_moved(is_user: bool) -> &'static str {
    match is_user {
        true => "they are in your own settings now: start the agent anew",
        false => "read backstop.toml, then `backstop trust`: its servers start only then",
    }
}

/// What becomes of the files whose servers move behind the gateway, or come back: the text after
/// the diffs.
pub fn server_move_last(is_any: bool, is_dry_run: bool, is_removal: bool, is_user: bool) -> &'static str {
    match (is_any, is_dry_run, is_removal) {
        (false, _, true) => "nothing was moved here",
        (false, _, false) if is_user => "no MCP servers to move were found in your settings",
        (false, _, false) => "no MCP servers to move were found in this project",
        (true, true, _) => "nothing was written",
        (true, false, true) => "everything is as it was before",
        (true, false, false) => servers_moved(is_user),
    }
}

/// Says that servers can move, and how that is done.
pub fn servers_can_move(count: usize, is_user: bool) -> String {
    let (whose, flag) = if is_user { ("your settings", " --user") } else { ("this project", "") };
    let servers = if count == 1 { "1 MCP server".to_owned() } else { format!("{count} MCP servers") };
    format!(
        "{servers} of {whose} can move behind the gateway, which checks, retries and explains their calls.\n\
         `backstop init --mcp{flag} --dry-run` shows the change, `backstop init --mcp{flag}` makes it.\n"
    )
}

/// What to know about the files of the service that goes on with interrupted runs. `start` and
/// `stop` are the commands that do it.
pub fn service_last(is_any: bool, is_dry_run: bool, is_removal: bool, start: &str, stop: &str) -> String {
    match (is_any, is_dry_run, is_removal) {
        (false, _, true) => "no service of Backstop is here".to_owned(),
        (false, _, false) => "the service is here already".to_owned(),
        (true, true, _) => "nothing was written".to_owned(),
        (true, false, true) => format!("everything is as it was before\nnext: {stop}"),
        (true, false, false) => format!("next: {start}"),
    }
}
