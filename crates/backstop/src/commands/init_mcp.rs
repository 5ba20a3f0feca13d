//! `backstop init --mcp`: moves an agent's MCP servers behind the gateway, and back.
//!
//! In the project's files that name MCP servers, all of them are replaced by our gateway; the
//! servers go into `backstop.toml`. `--remove` restores each file to the byte.

use super::init::{Init, folders};
use super::tools::places;
use crate::error::{CliError, failed, usage};
use crate::{process, terminal};
use backstop_config::McpServerSettings;
use backstop_core::{Name, SafeText};
use backstop_install::{Records, TextChange};
use backstop_report::{JSON_SCHEMA, to_json};
use backstop_tools::{Client, imports};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How much of a path is shown.
const PATH_CHARS_MAX: usize = 400;

/// The key under which a program keeps its servers, and our entry among them.
fn entry(client: Client) -> Option<(&'static str, Value)> {
    let usual = json!({ "backstop": { "command": "backstop", "args": ["mcp"] } });
    match client {
        Client::Project | Client::Cursor => Some(("mcpServers", usual)),
        Client::VsCode => Some(("servers", usual)),
        Client::OpenCode => {
            Some(("mcp", json!({ "backstop": { "type": "local", "command": ["backstop", "mcp"] } })))
        }
        // Files of the user's, or that are no JSON: `mcp.from` uses their servers where they are.
        Client::Claude | Client::ClaudeDesktop | Client::Codex => None,
    }
}

pub(super) fn run(args: &Init) -> Result<(), CliError> {
    let folders = folders()?;
    let state = process::state_root(folders.home.as_deref()).ok_or_else(|| {
        failed("there is no folder to keep what was there before").hint("set BACKSTOP_STATE_DIR")
    })?;
    let records = Records::new(Some(state.join("init")));
    let settings = folders.project.join("backstop.toml");
    // All are looked at before any is written.
    let changes = if args.remove {
        undo(&settings, &records, &folders.project)?
    } else {
        plan(&settings, &folders.project)?
    };
    if !args.dry_run {
        process::user_folder();
        for change in &changes {
            change.apply(&records)?;
        }
    }
    tell(args, &folders.project, &changes)
}

fn plan(settings: &Path, project: &Path) -> Result<Vec<TextChange>, CliError> {
    let (mut changes, mut moved) = (Vec::new(), BTreeMap::<Name, (McpServerSettings, PathBuf)>::new());
    for found in imports(&places()?).into_iter().filter(|found| found.file.starts_with(project)) {
        let Some((key, entry)) = entry(found.client) else { continue };
        let imported =
            found.servers.map_err(|error| usage(&error).hint("correct the file, then try again"))?;
        if imported.servers.is_empty() {
            continue;
        }
        if let Some((name, why)) = imported.left_out.iter().find(|(_, why)| !why.contains("Backstop itself"))
        {
            let (name, why) = (SafeText::new(name.as_str()).line(60), SafeText::new(why.as_str()).line(100));
            return Err(failed(format!("{}: `{name}` cannot be moved: {why}", found.file.display()))
                .hint("take it out of the file first, or name the file in `mcp.from`"));
        }
        let entry = serde_json::to_string_pretty(&entry).unwrap_or_default().replace('\n', "\n  ");
        changes.extend(TextChange::replace_object(project, &found.file, key, &entry)?);
        for (name, server) in imported.servers {
            match moved.get(&name) {
                Some((same, _)) if *same == server => {}
                Some((_, other)) => return Err(same_name(&name, &found.file, other)),
                None if has_server(settings, &name) => {
                    return Err(same_name(&name, &found.file, settings));
                }
                None => {
                    moved.insert(name, (server, found.file.clone()));
                }
            }
        }
    }
    if !moved.is_empty() {
        let blocks: String = moved.iter().map(|(name, (server, from))| block(name, server, from)).collect();
        changes.push(TextChange::append(project, settings, &blocks)?);
    }
    Ok(changes)
}

/// Two servers cannot have one name in `backstop.toml`.
fn same_name(name: &Name, file: &Path, other: &Path) -> CliError {
    let (file, other) = (file.display().to_string(), other.display().to_string());
    let (file, other) = (SafeText::new(file).line(PATH_CHARS_MAX), SafeText::new(other).line(PATH_CHARS_MAX));
    failed(format!("{file} and {other} each have a server `{name}`: nothing was moved"))
        .hint("give one of them another name, then try again")
}

/// Whether the settings have a table for this server.
fn has_server(settings: &Path, name: &Name) -> bool {
    let text = std::fs::read_to_string(settings).unwrap_or_default();
    let header = |line: &str| -> Option<String> {
        let inner = line.trim().strip_prefix('[')?.split_once(']')?.0;
        Some(inner.replace(['"', '\'', ' '], ""))
    };
    let is_its = |table: String| {
        table.strip_prefix("mcp.").is_some_and(|rest| {
            rest == name.as_str()
                || rest.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.'))
        })
    };
    text.lines().filter_map(header).any(is_its)
}

fn undo(settings: &Path, records: &Records, project: &Path) -> Result<Vec<TextChange>, CliError> {
    let here = |file: &PathBuf| file.starts_with(project);
    let mut files: Vec<PathBuf> =
        imports(&places()?).into_iter().map(|found| found.file).filter(here).collect();
    files.push(settings.to_owned());
    let mut changes = Vec::new();
    for file in files {
        changes.extend(TextChange::undo(project, &file, records)?);
    }
    Ok(changes)
}

/// A server as `backstop.toml` has it.
fn block(name: &Name, server: &McpServerSettings, from: &Path) -> String {
    let text = |text: &str| Value::from(text).to_string();
    let pairs = |pairs: &BTreeMap<String, String>| {
        let all: Vec<String> =
            pairs.iter().map(|(key, value)| format!("{} = {}", text(key), text(value))).collect();
        format!("{{ {} }}", all.join(", "))
    };
    let from = from.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut out = format!("\n# Moved from {from} by `backstop init --mcp`.\n[mcp.{name}]\n");
    let mut line = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            out.push_str(&format!("{key} = {value}\n"));
        }
    };
    line("command", server.command.as_deref().map(text));
    let args: Vec<String> = server.args.iter().map(|arg| text(arg)).collect();
    line("args", (!args.is_empty()).then(|| format!("[{}]", args.join(", "))));
    line("cwd", server.cwd.as_ref().map(|cwd| text(&cwd.display().to_string())));
    line("url", server.url.as_deref().map(text));
    line("env", (!server.env.is_empty()).then(|| pairs(&server.env)));
    line("headers", (!server.headers.is_empty()).then(|| pairs(&server.headers)));
    out
}

fn tell(args: &Init, project: &Path, changes: &[TextChange]) -> Result<(), CliError> {
    let last = match (changes.is_empty(), args.dry_run, args.remove) {
        (true, _, true) => "nothing was moved here",
        (true, _, false) => "no MCP servers to move were found in this project",
        (_, true, _) => "nothing was written",
        (_, false, true) => "everything is as it was before",
        (_, false, false) => "read backstop.toml, then `backstop trust`: its servers start only then",
    };
    tell_changes(args, project, changes, last)
}

/// Shows changes of files as diffs, and what to know about them last.
pub(super) fn tell_changes(
    args: &Init,
    folder: &Path,
    changes: &[TextChange],
    last: &str,
) -> Result<(), CliError> {
    let shown = |file: &Path| {
        let path = file.strip_prefix(folder).unwrap_or(file).display().to_string();
        SafeText::new(path).line(PATH_CHARS_MAX)
    };
    if args.json {
        let row = |change: &TextChange| {
            let diff = process_text(&change.diff(&shown(&change.file)));
            json!({ "file": change.file, "diff": diff })
        };
        let rows: Vec<Value> = changes.iter().map(row).collect();
        let all = json!({ "schema": JSON_SCHEMA, "written": !args.dry_run, "changes": rows });
        return terminal::print(&format!("{}\n", to_json(&all)));
    }
    let mut text: String = changes
        .iter()
        .map(|change| SafeText::new(process_text(&change.diff(&shown(&change.file)))).terminal())
        .collect();
    if !changes.is_empty() {
        text.push('\n');
    }
    text.push_str(&format!("{last}\n"));
    terminal::print(&text)
}

/// Text of a settings file as it is shown: secrets in it are masked.
fn process_text(text: &str) -> String {
    terminal::redactor().redact(text).into_owned()
}
