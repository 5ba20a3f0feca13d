//! MCP servers that other programs' settings name: `.mcp.json`, Claude Code, Claude Desktop,
//! Cursor, VS Code, OpenCode, Codex. They are read, never changed. Our own entry in them is no
//! upstream.

use backstop_config::{McpServerSettings, trust_hash};
use backstop_core::Name;
use backstop_files::GivenPath;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What editors write for the project's folder.
const WORKSPACE: &str = "${workspaceFolder}";
/// How many characters of an input's name are shown.
const INPUT_CHARS_MAX: usize = 60;
/// The largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A program whose settings may name MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Client {
    /// The file `.mcp.json` of a project, which several programs read.
    Project,
    /// Claude Code's settings of the user.
    Claude,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// VS Code.
    VsCode,
    /// OpenCode.
    OpenCode,
    /// Codex.
    Codex,
}

impl Client {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 7] = [
        Self::Project,
        Self::Claude,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::OpenCode,
        Self::Codex,
    ];

    /// Its name in `mcp.from`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Claude => "claude",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::OpenCode => "opencode",
            Self::Codex => "codex",
        }
    }

    /// The files in which it keeps its servers, those of the project first.
    fn files(self, places: &ImportPlaces) -> Vec<PathBuf> {
        let project = |path: &str| Some(places.project.join(path));
        let home = |path: &str| places.home.as_ref().map(|home| home.join(path));
        let config = |path: &str| {
            let folder =
                places.config.clone().or_else(|| places.home.as_ref().map(|home| home.join(".config")));
            folder.map(|folder| folder.join(path))
        };
        let claude = || match &places.claude {
            Some(folder) => Some(folder.join(".claude.json")),
            None => home(".claude.json"),
        };
        let codex = || places.codex.clone().or_else(|| home(".codex"));
        let files = match self {
            Self::Project => vec![project(".mcp.json")],
            Self::Claude => vec![claude()],
            Self::ClaudeDesktop => vec![
                config("Claude/claude_desktop_config.json"),
                home("Library/Application Support/Claude/claude_desktop_config.json"),
            ],
            Self::Cursor => vec![project(".cursor/mcp.json"), home(".cursor/mcp.json")],
            Self::VsCode => vec![project(".vscode/mcp.json"), config("Code/User/mcp.json")],
            Self::OpenCode => {
                vec![project("opencode.json"), project("opencode.jsonc"), config("opencode/opencode.json")]
            }
            Self::Codex => {
                vec![project(".codex/config.toml"), codex().map(|folder| folder.join("config.toml"))]
            }
        };
        files.into_iter().flatten().collect()
    }
}

/// Where files of other programs are looked for.
#[derive(Debug, Clone, Default)]
pub struct ImportPlaces {
    /// The project's folder.
    pub project: PathBuf,
    /// The home folder.
    pub home: Option<PathBuf>,
    /// The folder for configuration files, if it is not the default.
    pub config: Option<PathBuf>,
    /// Claude Code's folder, if it is not the default.
    pub claude: Option<PathBuf>,
    /// Codex' folder, if it is not the default.
    pub codex: Option<PathBuf>,
}

/// Why a file's servers cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// It is neither the name of a program nor a path.
    #[error("`{0}` is neither the name of a known program nor a path")]
    Unknown(String),
    /// There is none of its files.
    #[error("there is no such file: {0}")]
    Missing(String),
    /// It cannot be read.
    #[error("{file} cannot be read: {why}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        why: String,
    },
}

/// The servers of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The file.
    pub file: PathBuf,
    /// Its servers, by name, without our own entry.
    pub servers: BTreeMap<Name, McpServerSettings>,
    /// What it has besides, and why it is not used.
    pub left_out: Vec<(String, String)>,
    /// What trust is given to: its path and its content.
    pub(crate) hash: String,
}

/// A file of the project that the settings take servers from. It starts nothing before it is
/// trusted as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectImport {
    /// The file, under its canonical path.
    pub(crate) file: PathBuf,
    /// What trust is given to: its path and its content.
    pub(crate) hash: String,
    /// The names of its servers.
    pub(crate) servers: Vec<String>,
}

/// The files of the project that these entries of `mcp.from` name, and what is wrong with others.
pub(crate) fn project_imports(
    from: &[String],
    places: &ImportPlaces,
) -> (Vec<ProjectImport>, Vec<ImportError>) {
    let (mut imports, mut errors) = (Vec::new(), Vec::new());
    for found in from.iter().flat_map(|from| servers_of(from, places)) {
        match found {
            Ok(imported) if is_of_project(&imported.file, places) => imports.push(ProjectImport {
                servers: imported.servers.keys().map(ToString::to_string).collect(),
                file: canonical(&imported.file),
                hash: imported.hash,
            }),
            Ok(_) => {}
            Err(error) => errors.push(error),
        }
    }
    (imports, errors)
}

fn canonical(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|_| file.to_owned())
}

/// Whether a file comes with the project, and so maybe from somebody else.
pub(crate) fn is_of_project(file: &Path, places: &ImportPlaces) -> bool {
    canonical(file).starts_with(canonical(&places.project)) || file.starts_with(&places.project)
}

/// What was found of one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The program.
    pub client: Client,
    /// The file.
    pub file: PathBuf,
    /// Its servers, or why they cannot be read.
    pub servers: Result<Imported, ImportError>,
}

/// Looks at every known file that exists.
pub fn imports(places: &ImportPlaces) -> Vec<Found> {
    let of = |client: Client| {
        let there = client.files(places).into_iter().filter(|file| is_there(file));
        there.map(move |file| Found { client, servers: read(&file, places), file }).collect::<Vec<_>>()
    };
    Client::ALL.into_iter().flat_map(of).collect()
}

/// The servers that an entry of `mcp.from` names: those of each of a program's files that exists,
/// the project's first.
pub(crate) fn servers_of(from: &str, places: &ImportPlaces) -> Vec<Result<Imported, ImportError>> {
    if is_path(from) {
        return vec![read(Path::new(from), places)];
    }
    let Some(client) = Client::ALL.into_iter().find(|client| client.name() == from) else {
        return vec![Err(ImportError::Unknown(from.to_owned()))];
    };
    let files = client.files(places);
    let found: Vec<_> = files.iter().filter(|file| is_there(file)).map(|file| read(file, places)).collect();
    if found.is_empty() {
        let looked = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>();
        return vec![Err(ImportError::Missing(looked.join(", ")))];
    }
    found
}

/// Whether something has this name, be it a file or not: a link or a pipe is refused in words.
fn is_there(file: &Path) -> bool {
    file.symlink_metadata().is_ok_and(|found| !found.is_dir())
}

/// Whether an entry of `mcp.from` is a path, and not the name of a program.
pub fn is_path(from: &str) -> bool {
    from.contains(['/', '.'])
}

fn read(file: &Path, places: &ImportPlaces) -> Result<Imported, ImportError> {
    let unreadable = |why: String| ImportError::Unreadable { file: file.display().to_string(), why };
    // Links in the project are the repository's, those of a person's own files are followed.
    let given = GivenPath::new(file, &places.project, &places.project);
    let bytes = given.read(FILE_BYTES_MAX).map_err(|error| unreadable(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8".to_owned()))?;
    let hash = trust_hash(&canonical(file), text.as_bytes());
    let is_toml = file.extension().is_some_and(|extension| extension == "toml");
    let content: Value = if is_toml {
        toml::from_str(&text).map_err(|error| unreadable(error.message().to_owned()))?
    } else {
        serde_json::from_str(&without_comments(&text)).map_err(|error| unreadable(error.to_string()))?
    };
    Ok(Imported { hash, ..servers_in(file, &content, &places.project) })
}

/// The servers in a file's content, wherever its program keeps them: `mcpServers`, `servers` (VS
/// Code), `mcp` (OpenCode), `mcp_servers` (Codex); `projects.PATH.mcpServers` (Claude Code) for
/// this project, before those for all.
fn servers_in(file: &Path, content: &Value, project: &Path) -> Imported {
    let mut imported = Imported {
        file: file.to_owned(),
        servers: BTreeMap::new(),
        left_out: Vec::new(),
        hash: String::new(),
    };
    let of_project = |path: &Path| content.get("projects")?.get(path.to_str()?)?.get("mcpServers");
    let own = of_project(project).or_else(|| of_project(&canonical(project)));
    let all = ["mcpServers", "servers", "mcp", "mcp_servers"].map(|key| content.get(key));
    for servers in std::iter::once(own).chain(all).flatten() {
        for (name, entry) in servers.as_object().into_iter().flatten() {
            match settings(entry, project) {
                Ok(settings) if is_ours(name, &settings) => {
                    imported.left_out.push((name.clone(), "it is Backstop itself".to_owned()));
                }
                Ok(settings) => match clean_name(name) {
                    Some(clean) if imported.servers.contains_key(&clean) => {
                        imported.left_out.push((name.clone(), format!("there is another `{clean}`")));
                    }
                    Some(clean) => {
                        imported.servers.insert(clean, settings);
                    }
                    None => imported.left_out.push((name.clone(), "its name cannot be used".to_owned())),
                },
                Err(why) => imported.left_out.push((name.clone(), why)),
            }
        }
    }
    imported
}

/// A server's name as it is written here.
fn clean_name(name: &str) -> Option<Name> {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '-' };
    let clean: String = name.to_ascii_lowercase().chars().map(allowed).collect();
    clean.trim_matches('-').parse().ok()
}

/// An entry of a file, as settings of ours. `project` is the folder that editors call the
/// workspace.
fn settings(entry: &Value, project: &Path) -> Result<McpServerSettings, String> {
    let written = entry.to_string();
    if let Some((_, rest)) = written.split_once("${input:") {
        let input: String = rest.chars().take_while(|c| *c != '}').take(INPUT_CHARS_MAX).collect();
        return Err(format!(
            "its program asks a person for `{input}` first: set it up in backstop.toml with a variable instead"
        ));
    }
    let with_variables = |text: &str| with_variables(text, project);
    let text = |value: &Value| value.as_str().map(with_variables);
    let texts = |value: Option<&Value>| -> Vec<String> {
        value.and_then(Value::as_array).into_iter().flatten().filter_map(text).collect()
    };
    let pairs = |keys: &[&str]| -> BTreeMap<String, String> {
        let found = keys.iter().find_map(|key| entry.get(*key).and_then(Value::as_object));
        found.into_iter().flatten().filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect()
    };
    let off = |key: &str, is_off: bool| entry.get(key).and_then(Value::as_bool) == Some(is_off);
    if off("disabled", true) || off("enabled", false) {
        return Err("it is turned off there".to_owned());
    }
    let mut settings = McpServerSettings {
        env: pairs(&["env", "environment"]),
        headers: pairs(&["headers", "http_headers"]),
        cwd: entry.get("cwd").and_then(text).map(PathBuf::from),
        // Codex' words for what is offered, and for how long.
        allow: texts(entry.get("enabled_tools")),
        deny: texts(entry.get("disabled_tools")),
        ..McpServerSettings::default()
    };
    let seconds = |key: &str| {
        let seconds = entry.get(key)?.as_f64()?;
        Duration::try_from_secs_f64(seconds).ok().filter(|seconds| !seconds.is_zero())
    };
    settings.timeout = seconds("tool_timeout_sec").or(settings.timeout);
    settings.start_timeout = seconds("startup_timeout_sec").or(settings.start_timeout);
    // Codex names the variable that holds the token.
    if let Some(variable) = entry.get("bearer_token_env_var").and_then(Value::as_str) {
        settings.headers.insert("Authorization".to_owned(), format!("Bearer ${{{variable}}}"));
    }
    for (header, variable) in entry.get("env_http_headers").and_then(Value::as_object).into_iter().flatten() {
        if let Some(variable) = variable.as_str() {
            settings.headers.insert(header.clone(), format!("${{{variable}}}"));
        }
    }
    if let Some(url) = entry.get("url").or_else(|| entry.get("serverUrl")).and_then(text) {
        if entry.get("type").and_then(Value::as_str) == Some("sse") {
            return Err("it uses the old SSE transport".to_owned());
        }
        settings.url = Some(url);
        return Ok(settings);
    }
    match entry.get("command") {
        Some(Value::String(command)) => {
            settings.command = Some(with_variables(command));
            settings.args = texts(entry.get("args"));
        }
        // OpenCode has the program and its arguments in one list.
        words @ Some(Value::Array(_)) => {
            let mut words = texts(words).into_iter();
            settings.command = words.next();
            settings.args = words.collect();
        }
        _ => {}
    }
    if settings.command.is_some() {
        Ok(settings)
    } else {
        Err("it has neither a command nor a url".to_owned())
    }
}

/// A text with variables as they are written here, `${VAR}`: Cursor and VS Code write `${env:VAR}`,
/// OpenCode `{env:VAR}`. `${workspaceFolder}` is the project's folder.
fn with_variables(text: &str, project: &Path) -> String {
    let text = text.replace("${env:", "${").replace("{env:", "${");
    match text.contains(WORKSPACE) {
        true => text.replace(WORKSPACE, &project.display().to_string()),
        false => text,
    }
}

/// Whether an entry is our own gateway.
fn is_ours(name: &str, settings: &McpServerSettings) -> bool {
    if let Some(url) = &settings.url {
        return name.eq_ignore_ascii_case("backstop") && is_served_here(url);
    }
    let program = settings.command.as_deref().and_then(|command| Path::new(command).file_name());
    let words = || settings.args.iter().map(String::as_str);
    program.is_some_and(|program| program == "backstop")
        || words().any(|word| Path::new(word).file_name().is_some_and(|name| name == "backstop"))
            && words().any(|word| word == "mcp")
}

/// Whether an address is one at which `backstop mcp --http` serves on this machine.
fn is_served_here(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else { return false };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let is_here = matches!(name, "localhost" | "[::1]" | "::1") || name.starts_with("127.");
    is_here && path.trim_end_matches('/') == "mcp"
}

/// JSON without the comments and trailing commas that editors' settings may have.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let (mut in_text, mut escaped) = (false, false);
    while let Some(c) = rest.next() {
        if in_text {
            out.push(c);
            (escaped, in_text) = (c == '\\' && !escaped, escaped || c != '"');
            continue;
        }
        match (c, rest.peek()) {
            ('/', Some('/')) => {
                while rest.peek().is_some_and(|next| *next != '\n') {
                    rest.next();
                }
            }
            ('/', Some('*')) => {
                rest.next();
                let mut last = ' ';
                for next in rest.by_ref() {
                    if last == '*' && next == '/' {
                        break;
                    }
                    last = next;
                }
            }
            ('}' | ']', _) => {
                let end = out.trim_end().len();
                if out[..end].ends_with(',') {
                    out.truncate(end - 1);
                }
                out.push(c);
            }
            (c, _) => {
                in_text = c == '"';
                out.push(c);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_and_trailing_commas_go_and_texts_stay() {
        let text = "{ // a\n \"u\": \"http://x/*y*/\\\"//\", /* b */ \"l\": [1, 2,], }";
        let value: Value = serde_json::from_str(&without_comments(text)).unwrap();
        assert_eq!(value, json!({ "u": "http://x/*y*/\"//", "l": [1, 2] }));
    }

    #[test]
    fn a_project_in_claudes_settings_has_servers_of_its_own() {
        let server = |command: &str| json!({ "command": command });
        let content = json!({
            "mcpServers": { "all": server("a"), "both": server("b") },
            "projects": {
                "/src/here": { "mcpServers": { "own": server("c"), "both": server("d") } },
                "/src/there": { "mcpServers": { "other": server("e") } },
            },
        });
        let found = servers_in(Path::new("f"), &content, Path::new("/src/here"));
        assert_eq!(found.servers.keys().map(Name::as_str).collect::<Vec<_>>(), ["all", "both", "own"]);
        let both: Name = "both".parse().unwrap();
        assert_eq!(found.servers[&both].command.as_deref(), Some("d"));
    }

    #[test]
    fn variables_are_written_as_here() {
        for (text, want) in [
            ("${env:A}/x", "${A}/x"),
            ("Bearer {env:B}", "Bearer ${B}"),
            ("${C:-d} {e}", "${C:-d} {e}"),
            ("${workspaceFolder}/x", "/src/here/x"),
        ] {
            assert_eq!(with_variables(text, Path::new("/src/here")), want);
        }
    }

    #[test]
    fn each_program_has_its_own_words() {
        let of = |content: Value| servers_in(Path::new("f"), &content, Path::new("/src/here"));
        let claude = of(json!({ "mcpServers": {
            "GitHub Tools": { "command": "npx", "args": ["-y", "x"], "env": { "T": "${T}" } },
            "remote": { "type": "http", "url": "https://x/mcp", "headers": { "A": "b" } },
            "old": { "type": "sse", "url": "https://x/sse" },
            "off": { "command": "x", "disabled": true },
            "backstop": { "command": "/usr/bin/backstop", "args": ["mcp"] },
            "Backstop": { "type": "http", "url": "http://127.0.0.1:8765/mcp" },
            "odd": 5,
        } }));
        assert_eq!(claude.servers.keys().map(Name::as_str).collect::<Vec<_>>(), ["github-tools", "remote"]);
        assert_eq!(claude.left_out.len(), 5, "{:?}", claude.left_out);
        let opencode = of(
            json!({ "mcp": { "a": { "type": "local", "command": ["x", "y"], "environment": { "E": "1" } } } }),
        );
        let server = &opencode.servers[&"a".parse::<Name>().unwrap()];
        assert_eq!(
            (server.command.as_deref(), server.args.as_slice(), server.env["E"].as_str()),
            (Some("x"), &["y".to_owned()][..], "1")
        );
        let codex =
            of(json!({ "mcp_servers": { "a": { "url": "https://x", "bearer_token_env_var": "TOKEN" } } }));
        assert_eq!(codex.servers[&"a".parse::<Name>().unwrap()].headers["Authorization"], "Bearer ${TOKEN}");
        let codex = of(json!({ "mcp_servers": { "a": {
            "command": "x", "enabled_tools": ["b"], "disabled_tools": ["c"], "tool_timeout_sec": 1.5,
            "startup_timeout_sec": 20,
        } } }));
        let server = &codex.servers[&"a".parse::<Name>().unwrap()];
        assert_eq!((server.allow.as_slice(), server.deny.as_slice()), (&["b".into()][..], &["c".into()][..]));
        assert_eq!(server.timeout, Some(Duration::from_millis(1500)));
        assert_eq!(server.start_timeout, Some(Duration::from_secs(20)));
        assert_eq!(of(json!({ "servers": { "a": { "command": "x" } } })).servers.len(), 1);
        let asks = of(json!({ "servers": { "a": { "command": "x", "env": { "K": "${input:key}" } } } }));
        assert!(asks.servers.is_empty() && asks.left_out[0].1.contains("`key`"), "{:?}", asks.left_out);
    }

    #[test]
    fn files_are_found_where_their_programs_keep_them() {
        let folder = tempfile::tempdir().unwrap();
        let (project, home) = (folder.path().join("p"), folder.path().join("h"));
        for (file, text) in [
            (project.join(".mcp.json"), r#"{"mcpServers":{"a":{"command":"x"}}}"#),
            (project.join(".vscode/mcp.json"), r#"{"servers":{"b":{"command":"x"}}} // c"#),
            (home.join(".codex/config.toml"), "[mcp_servers.c]\ncommand = \"x\"\nargs = [\"y\"]\n"),
            (home.join(".cursor/mcp.json"), "{ broken"),
        ] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let places = ImportPlaces { project, home: Some(home), ..ImportPlaces::default() };
        let found = imports(&places);
        let names: Vec<&str> = found.iter().map(|found| found.client.name()).collect();
        assert_eq!(names, ["project", "cursor", "vscode", "codex"]);
        assert!(found[1].servers.is_err());
        assert_eq!(servers_of("codex", &places)[0].as_ref().unwrap().servers.len(), 1);
        assert!(matches!(servers_of("opencode", &places)[..], [Err(ImportError::Missing(_))]));
        assert!(matches!(servers_of("emacs", &places)[..], [Err(ImportError::Unknown(_))]));
    }
}
