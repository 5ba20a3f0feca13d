//! MCP servers that move from other programs' settings behind the gateway, and back.
//!
//! In a project's files that name servers, all of them are replaced by our gateway; the servers go
//! into `backstop.toml`. Of a user it is their own files, and the servers go into their own
//! settings. What is undone restores each file to the byte; in one that its program has written to
//! meanwhile, the servers alone. Nothing is written here: what comes out are planned changes.

use crate::import::{Client, Found, ImportError, ImportPlaces, Imported, imports};
use backstop_config::McpServerSettings;
use backstop_core::{ErrorKind, HintedError, Name, SafeText};
use backstop_files::Folder;
use backstop_install::{InstallError, Records, TextChange};
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

/// Why servers cannot be moved, or cannot be put back.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// A file that names servers cannot be read.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A server cannot be moved, so the file cannot be ours alone.
    #[error("{file}: `{name}` cannot be moved: {why}")]
    Stays {
        /// The file.
        file: String,
        /// The server.
        name: String,
        /// Why.
        why: String,
    },
    /// Two servers cannot have one name in `backstop.toml`.
    #[error("{file} and {other} each have a server `{name}`: nothing was moved")]
    SameName {
        /// The server.
        name: Name,
        /// One file.
        file: String,
        /// The other file.
        other: String,
    },
    /// A file cannot be changed.
    #[error(transparent)]
    Install(#[from] InstallError),
}

impl MoveError {
    fn same_name(name: &Name, file: &Path, other: &Path) -> Self {
        let shown = |file: &Path| SafeText::new(file.display().to_string()).line(PATH_CHARS_MAX);
        Self::SameName { name: name.clone(), file: shown(file), other: shown(other) }
    }
}

impl HintedError for MoveError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Import(_) => ErrorKind::Usage,
            Self::Install(error) => error.kind(),
            Self::Stays { .. } | Self::SameName { .. } => ErrorKind::Failed,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Import(_) => "correct the file, then try again",
            Self::Stays { .. } => "take it out of the file first, or name the file in `mcp.from`",
            Self::SameName { .. } => "give one of them another name, then try again",
            Self::Install(error) => return HintedError::hints(error),
        };
        vec![hint.to_owned()]
    }
}

/// How our entry is put into a program's file.
enum Entry {
    /// The object under this key of a JSON file is replaced.
    Json(&'static str, Value),
    /// The table under this key of a TOML file is replaced by the one in this text.
    Toml(&'static str, &'static str),
}

impl Entry {
    /// Our entry in the file of a program.
    fn of(client: Client) -> Self {
        let usual = json!({ "backstop": { "command": "backstop", "args": ["mcp"] } });
        match client {
            Client::Project | Client::Cursor | Client::Claude | Client::ClaudeDesktop => {
                Self::Json("mcpServers", usual)
            }
            Client::VsCode => Self::Json("servers", usual),
            Client::OpenCode => {
                Self::Json("mcp", json!({ "backstop": { "type": "local", "command": ["backstop", "mcp"] } }))
            }
            Client::Codex => Self::Toml(
                "mcp_servers",
                "[mcp_servers.backstop]\ncommand = \"backstop\"\nargs = [\"mcp\"]\n",
            ),
        }
    }
}

/// Whose servers move, and where to.
#[derive(Debug)]
pub struct ServerMove {
    /// The project, where its own files are meant; none where the user's are.
    project: Option<PathBuf>,
    /// The settings that get the servers.
    settings: PathBuf,
    /// The folder that paths are shown relative to.
    shown_from: PathBuf,
    /// What programs' files name.
    found: Vec<Found>,
}

impl ServerMove {
    /// The servers of a project's own files.
    pub fn of_project(places: &ImportPlaces) -> Self {
        let project = places.project.clone();
        let found = imports(places).into_iter().filter(|found| found.file.starts_with(&project)).collect();
        let settings = project.join("backstop.toml");
        Self { settings, shown_from: project.clone(), project: Some(project), found }
    }

    /// The servers of the user's own files; they go into these settings.
    pub fn of_user(places: ImportPlaces, settings: PathBuf, home: PathBuf) -> Self {
        let places = ImportPlaces { project: PathBuf::from(NO_PROJECT), ..places };
        Self { settings, shown_from: home, project: None, found: imports(&places) }
    }

    /// The folder that paths are shown relative to.
    pub fn shown_from(&self) -> &Path {
        &self.shown_from
    }

    /// How many servers programs' files name.
    pub fn count(&self) -> usize {
        let imported = self.found.iter().filter_map(|found| found.servers.as_ref().ok());
        imported.map(|imported| imported.servers.len()).sum()
    }

    /// Plans to move the servers.
    pub fn plan(&self) -> Result<Vec<TextChange>, MoveError> {
        let (mut changes, mut moved) = (Vec::new(), BTreeMap::<Name, (McpServerSettings, PathBuf)>::new());
        for found in &self.found {
            let imported = found.servers.as_ref().map_err(ImportError::clone)?;
            if imported.servers.is_empty() {
                continue;
            }
            refuse_what_stays(found, imported)?;
            changes.extend(self.replace(found)?);
            for (name, server) in &imported.servers {
                match moved.get(name) {
                    Some((same, _)) if same == server => {}
                    Some((_, other)) => return Err(MoveError::same_name(name, &found.file, other)),
                    None if self.has_server(name) => {
                        return Err(MoveError::same_name(name, &found.file, &self.settings));
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

    /// Plans to put everything back as it was.
    pub fn undo(&self, records: &Records) -> Result<Vec<TextChange>, MoveError> {
        let mut changes = Vec::new();
        for file in self.found.iter().map(|found| &found.file).chain([&self.settings]) {
            let (folder, file) = self.opened(file);
            changes.extend(TextChange::undo(&folder, &file, records)?);
        }
        Ok(changes)
    }

    /// Plans to put our entry into a program's file, in place of its servers.
    fn replace(&self, found: &Found) -> Result<Option<TextChange>, InstallError> {
        let (folder, file) = self.opened(&found.file);
        match Entry::of(found.client) {
            Entry::Json(key, entry) => {
                let entry = serde_json::to_string_pretty(&entry).unwrap_or_default();
                TextChange::replace_object(&folder, &file, key, &entry.replace('\n', "\n  "))
            }
            Entry::Toml(key, entry) => TextChange::replace_table(&folder, &file, key, entry),
        }
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

    /// Whether the settings have a table for this server.
    fn has_server(&self, name: &Name) -> bool {
        let (folder, file) = self.opened(&self.settings);
        let read = Folder::new(&folder).read(&file, SETTINGS_BYTES_MAX).ok().flatten();
        let text = read.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        has_table(&text, name)
    }
}

/// A file becomes ours whole or not at all: of a server that cannot be moved somebody has to know.
fn refuse_what_stays(found: &Found, imported: &Imported) -> Result<(), MoveError> {
    let stays = imported.left_out.iter().find(|(_, why)| !why.contains("Backstop itself"));
    let Some((name, why)) = stays else { return Ok(()) };
    Err(MoveError::Stays {
        file: found.file.display().to_string(),
        name: SafeText::new(name.as_str()).line(60),
        why: SafeText::new(why.as_str()).line(100),
    })
}

/// Whether settings have a table for this server.
fn has_table(text: &str, name: &Name) -> bool {
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
    let start_timeout = server.start_timeout.filter(|_| server.start_timeout != usual.start_timeout);
    line("start_timeout", limit(start_timeout));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_found_by_its_name_alone() {
        let has = |text: &str| has_table(text, &"git".parse().unwrap());
        for text in ["[mcp.git]\n", " [ mcp.\"git\" ]", "[mcp.git.env] # mine", "a = 1\n[mcp.'git']\n"] {
            assert!(has(text), "{text}");
        }
        for text in ["[mcp.github]\n", "[mcp]\ngit = 1\n", "# [x]\n[other.git]\n", ""] {
            assert!(!has(text), "{text}");
        }
    }

    #[test]
    fn the_servers_of_a_project_move_and_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".mcp.json");
        let text = "{\n  \"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\"\\\"q\"]}}\n}\n";
        std::fs::write(&file, text).unwrap();
        let places = ImportPlaces { project: folder.path().to_owned(), ..ImportPlaces::default() };
        let records = Records::new(Some(folder.path().join("records")));
        let moving = ServerMove::of_project(&places);
        assert_eq!(moving.count(), 1);
        moving.plan().unwrap().iter().for_each(|change| change.apply(&records).unwrap());
        let settings = std::fs::read_to_string(folder.path().join("backstop.toml")).unwrap();
        let read: toml::Table = settings.parse().unwrap();
        assert_eq!(read["mcp"]["a"]["args"][0].as_str(), Some("\"q"), "{settings}");
        let moved = ServerMove::of_project(&places);
        assert!(moved.plan().unwrap().is_empty(), "our own entry does not move");
        moved.undo(&records).unwrap().iter().for_each(|change| change.apply(&records).unwrap());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        assert!(!folder.path().join("backstop.toml").exists());
    }
}
