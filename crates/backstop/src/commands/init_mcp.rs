//! `backstop init --mcp`: moves an agent's MCP servers behind the gateway, and back.
//!
//! In the project's files that name MCP servers, all of them are replaced by our gateway; the
//! servers go into `backstop.toml`. With `--user` it is the user's own files, and the servers go
//! into the user's settings. `--remove` restores each file to the byte; in one that its program has
//! written to meanwhile, the servers alone.

use super::init::{Init, folders};
use super::tools::places;
use crate::error::{CliError, failed, usage};
use crate::{process, prompt, terminal};
use backstop_config::{McpServerSettings, user_file_path};
use backstop_core::{Name, SafeText};
use backstop_files::Folder;
use backstop_install::{Records, TextChange};
use backstop_report::{JSON_SCHEMA, to_json};
use backstop_tools::{Client, Found, imports};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The largest settings file that is read, in bytes.
const SETTINGS_BYTES_MAX: u64 = 16 << 20;
/// How much of a path is shown.
const PATH_CHARS_MAX: usize = 400;

/// No project: where only the user's own files are looked for. Nothing can be below it.
const NO_PROJECT: &str = "/dev/null/no-project";

/// How our entry is put into a program's file.
enum Entry {
    /// The object under this key of a JSON file is replaced.
    Json(&'static str, Value),
    /// The table under this key of a TOML file is replaced by the one in this text.
    Toml(&'static str, &'static str),
}

/// Our entry in the file of a program.
fn entry(client: Client) -> Entry {
    let usual = json!({ "backstop": { "command": "backstop", "args": ["mcp"] } });
    match client {
        Client::Project | Client::Cursor | Client::Claude | Client::ClaudeDesktop => {
            Entry::Json("mcpServers", usual)
        }
        Client::VsCode => Entry::Json("servers", usual),
        Client::OpenCode => {
            Entry::Json("mcp", json!({ "backstop": { "type": "local", "command": ["backstop", "mcp"] } }))
        }
        Client::Codex => {
            Entry::Toml("mcp_servers", "[mcp_servers.backstop]\ncommand = \"backstop\"\nargs = [\"mcp\"]\n")
        }
    }
}

/// Whose servers move, and where to.
struct Move {
    /// The project, where its own files are meant; none where the user's are.
    project: Option<PathBuf>,
    /// The settings that get the servers.
    settings: PathBuf,
    /// What paths are shown relative to.
    shown_from: PathBuf,
    /// What programs' files name.
    found: Vec<Found>,
}

impl Move {
    fn of(args: &Init) -> Result<Self, CliError> {
        let (folders, mut places) = (folders()?, places()?);
        if !args.user {
            let project = folders.project;
            let is_here = |found: &Found| found.file.starts_with(&project);
            let found = imports(&places).into_iter().filter(is_here).collect();
            let settings = project.join("backstop.toml");
            return Ok(Self { settings, shown_from: project.clone(), project: Some(project), found });
        }
        let around = process::surroundings()?;
        let no_home = || failed("there is no home folder to write to").hint("set HOME");
        let settings = user_file_path(&around).ok_or_else(no_home)?;
        places.project = PathBuf::from(NO_PROJECT);
        let shown_from = folders.home.ok_or_else(no_home)?;
        Ok(Self { settings, shown_from, project: None, found: imports(&places) })
    }

    /// The folder below which a file is opened without following links, and its path: a person's
    /// own links are followed.
    fn opened(&self, file: &Path) -> (PathBuf, PathBuf) {
        if let Some(project) = &self.project {
            return (project.clone(), file.to_owned());
        }
        let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        // A folder that is missing is made below the home folder.
        let folder = file.parent().filter(|folder| folder.is_dir()).unwrap_or(&self.shown_from);
        (folder.to_owned(), file.clone())
    }

    fn plan(&self) -> Result<Vec<TextChange>, CliError> {
        let (mut changes, mut moved) = (Vec::new(), BTreeMap::<Name, (McpServerSettings, PathBuf)>::new());
        for found in &self.found {
            let imported = match &found.servers {
                Ok(imported) => imported,
                Err(error) => return Err(usage(error).hint("correct the file, then try again")),
            };
            if imported.servers.is_empty() {
                continue;
            }
            let stays = imported.left_out.iter().find(|(_, why)| !why.contains("Backstop itself"));
            if let Some((name, why)) = stays {
                let name = SafeText::new(name.as_str()).line(60);
                let why = SafeText::new(why.as_str()).line(100);
                return Err(failed(format!("{}: `{name}` cannot be moved: {why}", found.file.display()))
                    .hint("take it out of the file first, or name the file in `mcp.from`"));
            }
            let (folder, file) = self.opened(&found.file);
            changes.extend(match entry(found.client) {
                Entry::Json(key, entry) => {
                    let entry = serde_json::to_string_pretty(&entry).unwrap_or_default();
                    TextChange::replace_object(&folder, &file, key, &entry.replace('\n', "\n  "))?
                }
                Entry::Toml(key, entry) => TextChange::replace_table(&folder, &file, key, entry)?,
            });
            for (name, server) in &imported.servers {
                match moved.get(name) {
                    Some((same, _)) if same == server => {}
                    Some((_, other)) => return Err(same_name(name, &found.file, other)),
                    None if self.has_server(name) => {
                        return Err(same_name(name, &found.file, &self.settings));
                    }
                    None => {
                        moved.insert(name.clone(), (server.clone(), found.file.clone()));
                    }
                }
            }
        }
        if !moved.is_empty() {
            let blocks: String =
                moved.iter().map(|(name, (server, from))| block(name, server, from)).collect();
            let (folder, file) = self.opened(&self.settings);
            changes.push(TextChange::append(&folder, &file, &blocks)?);
        }
        Ok(changes)
    }

    fn undo(&self, records: &Records) -> Result<Vec<TextChange>, CliError> {
        let mut changes = Vec::new();
        for file in self.found.iter().map(|found| &found.file).chain([&self.settings]) {
            let (folder, file) = self.opened(file);
            changes.extend(TextChange::undo(&folder, &file, records)?);
        }
        Ok(changes)
    }

    /// Whether the settings have a table for this server.
    fn has_server(&self, name: &Name) -> bool {
        let (folder, file) = self.opened(&self.settings);
        let read = Folder::new(&folder).read(&file, SETTINGS_BYTES_MAX).ok().flatten();
        let text = read.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
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
}

pub(super) fn run(args: &Init) -> Result<(), CliError> {
    let records = records()?;
    let moving = Move::of(args)?;
    // All are looked at before any is written.
    let changes = if args.remove { moving.undo(&records)? } else { moving.plan()? };
    if !args.dry_run {
        write(&changes, &records)?;
    }
    tell(args, &moving.shown_from, &changes)
}

fn records() -> Result<Records, CliError> {
    let state = process::state_root(folders()?.home.as_deref()).ok_or_else(|| {
        failed("there is no folder to keep what was there before").hint("set BACKSTOP_STATE_DIR")
    })?;
    Ok(Records::new(Some(state.join("init"))))
}

fn write(changes: &[TextChange], records: &Records) -> Result<(), CliError> {
    process::user_folder();
    changes.iter().try_for_each(|change| change.apply(records)).map_err(CliError::from)
}

/// Offers to move the servers that `init` finds: on a terminal they are moved if somebody says so,
/// elsewhere the command that does it is named. What cannot be moved is not offered.
pub(super) fn offer(args: &Init) -> Result<(), CliError> {
    let moving = Move::of(args)?;
    let Ok(changes) = moving.plan() else { return Ok(()) };
    if changes.is_empty() {
        return Ok(());
    }
    let count: usize = moving
        .found
        .iter()
        .filter_map(|found| found.servers.as_ref().ok())
        .map(|one| one.servers.len())
        .sum();
    let (whose, flag) = if args.user { ("your settings", " --user") } else { ("this project", "") };
    let servers = if count == 1 { "1 MCP server".to_owned() } else { format!("{count} MCP servers") };
    terminal::say(&format!(
        "{servers} of {whose} can move behind the gateway, which checks, retries and explains their calls.\n\
         `backstop init --mcp{flag} --dry-run` shows the change, `backstop init --mcp{flag}` makes it.\n"
    ));
    if args.dry_run || !prompt::can_ask() {
        return Ok(());
    }
    tell_changes(args, &moving.shown_from, &changes, "nothing of this is written yet")?;
    if prompt::confirm("Move them? `backstop init --mcp --remove` undoes it to the byte. [y/N] ") {
        write(&changes, &records()?)?;
        terminal::say(&format!("{}\n", moved_words(args)));
    }
    Ok(())
}

/// What to do once servers have moved.
fn moved_words(args: &Init) -> &'static str {
    match args.user {
        true => "they are in your own settings now: start the agent anew",
        false => "read backstop.toml, then `backstop trust`: its servers start only then",
    }
}

/// Two servers cannot have one name in `backstop.toml`.
fn same_name(name: &Name, file: &Path, other: &Path) -> CliError {
    let (file, other) = (file.display().to_string(), other.display().to_string());
    let (file, other) = (SafeText::new(file).line(PATH_CHARS_MAX), SafeText::new(other).line(PATH_CHARS_MAX));
    failed(format!("{file} and {other} each have a server `{name}`: nothing was moved"))
        .hint("give one of them another name, then try again")
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
    let list = |all: &[String]| {
        let all: Vec<String> = all.iter().map(|one| text(one)).collect();
        (!all.is_empty()).then(|| format!("[{}]", all.join(", ")))
    };
    line("allow", list(&server.allow));
    line("deny", list(&server.deny));
    let usual = McpServerSettings::default();
    let limit = |limit: Option<Duration>| limit.map(|limit| text(&format!("{}ms", limit.as_millis())));
    line("timeout", limit(server.timeout.filter(|_| server.timeout != usual.timeout)));
    line(
        "start_timeout",
        limit(server.start_timeout.filter(|_| server.start_timeout != usual.start_timeout)),
    );
    out
}

fn tell(args: &Init, project: &Path, changes: &[TextChange]) -> Result<(), CliError> {
    let last = match (changes.is_empty(), args.dry_run, args.remove) {
        (true, _, true) => "nothing was moved here",
        (true, _, false) if args.user => "no MCP servers to move were found in your settings",
        (true, _, false) => "no MCP servers to move were found in this project",
        (_, true, _) => "nothing was written",
        (_, false, true) => "everything is as it was before",
        (_, false, false) => moved_words(args),
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
