//! The settings of MCP servers, `mcp.*`. `backstop-tools` checks whether they make an upstream.

use super::Config;
use super::layers::Setting;
use super::value::{Value, Written};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

const PREFIX: &str = "mcp.";
/// The keys below `mcp.` that belong to no server.
const COMMON: &[&str] = &["from", "prefix", "cache_for", "budget"];
/// What is shown instead of a value that may be a secret.
const HIDDEN: &str = "…";

/// The settings of one MCP server, as they were written: `${NAME}` is not filled in yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerSettings {
    /// `mcp.<server>.command`
    pub command: Option<String>,
    /// `mcp.<server>.args`
    pub args: Vec<String>,
    /// `mcp.<server>.cwd`, as a whole path
    pub cwd: Option<PathBuf>,
    /// `mcp.<server>.env.*`
    pub env: BTreeMap<String, String>,
    /// `mcp.<server>.url`
    pub url: Option<String>,
    /// `mcp.<server>.headers.*`
    pub headers: BTreeMap<String, String>,
    /// `mcp.<server>.disabled`
    pub disabled: bool,
    /// `mcp.<server>.timeout`
    pub timeout: Option<Duration>,
    /// `mcp.<server>.idle`
    pub idle: Option<Duration>,
    /// `mcp.<server>.deadline`
    pub deadline: Option<Duration>,
    /// `mcp.<server>.start_timeout`
    pub start_timeout: Option<Duration>,
    /// `mcp.<server>.stop_after`
    pub stop_after: Option<Duration>,
    /// `mcp.<server>.concurrency`
    pub concurrency: usize,
    /// `mcp.<server>.allow`; empty for all
    pub allow: Vec<String>,
    /// `mcp.<server>.deny`
    pub deny: Vec<String>,
    /// `mcp.<server>.category`
    pub category: Option<String>,
    /// `mcp.<server>.repeatable`
    pub repeatable: Vec<String>,
    /// `mcp.<server>.cache`
    pub cache: Option<Duration>,
}

impl Default for McpServerSettings {
    fn default() -> Self {
        let seconds = |n| Some(Duration::from_secs(n));
        Self {
            command: None,
            args: Vec::new(),
            cwd: None,
            env: BTreeMap::new(),
            url: None,
            headers: BTreeMap::new(),
            disabled: false,
            timeout: seconds(300),
            idle: seconds(60),
            deadline: seconds(600),
            start_timeout: seconds(30),
            stop_after: seconds(600),
            concurrency: 32,
            allow: Vec::new(),
            deny: Vec::new(),
            category: None,
            repeatable: Vec::new(),
            cache: None,
        }
    }
}

/// The settings that all MCP servers have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommonMcpSettings {
    /// `mcp.from`: the names of other programs, or paths of files, relative ones made whole.
    pub from: Vec<String>,
    /// `mcp.prefix`
    pub prefix: bool,
    /// `mcp.cache_for`
    pub cache_for: Duration,
    /// `mcp.budget`
    pub budget: Option<String>,
}

impl Config {
    /// The settings that all MCP servers have in common.
    pub fn mcp(&self) -> CommonMcpSettings {
        let whole = |text: &String| match text.contains(['/', '.']) {
            true => self.resolved("mcp.from", text).display().to_string(),
            false => text.clone(),
        };
        CommonMcpSettings {
            from: self.list("mcp.from").iter().map(whole).collect(),
            prefix: self.text("mcp.prefix").as_deref() != Some("false"),
            cache_for: self.duration("mcp.cache_for").unwrap_or_default(),
            budget: self.text("mcp.budget").filter(|name| name != "none"),
        }
    }

    /// The settings of each MCP server, by name, without those that are not trusted.
    pub fn mcp_servers(&self) -> BTreeMap<String, McpServerSettings> {
        let mut found: BTreeMap<String, McpServerSettings> = BTreeMap::new();
        for (key, setting) in self.set_below(PREFIX) {
            let Some((name, field)) = server_key(key) else { continue };
            let server = found.entry(name.to_owned()).or_default();
            self.set_field(server, key, field, setting);
        }
        found
    }

    /// The names of MCP servers that a project's file has and that are not trusted.
    pub fn untrusted_mcp_servers(&self) -> Vec<String> {
        let names = self.inert().iter().filter_map(|inert| server_key(&inert.key).map(|(name, _)| name));
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.dedup();
        names
    }

    fn set_field(&self, server: &mut McpServerSettings, key: &str, field: &str, setting: &Setting) {
        let value = &setting.written.value;
        let text = || match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        };
        let texts = || match value {
            Value::Texts(list) => list.clone(),
            Value::Text(one) => vec![one.clone()],
            _ => Vec::new(),
        };
        let duration = || match value {
            Value::Duration(duration) => Some(*duration),
            _ => None,
        };
        match field.split_once('.') {
            Some(("env", name)) => {
                server.env.extend(text().map(|text| (name.to_owned(), text)));
                return;
            }
            Some(("headers", name)) => {
                server.headers.extend(text().map(|text| (name.to_owned(), text)));
                return;
            }
            _ => {}
        }
        match field {
            "command" => server.command = text(),
            "args" => server.args = texts(),
            "cwd" => server.cwd = text().map(|path| self.resolved(key, &path)),
            "url" => server.url = text(),
            "disabled" => server.disabled = text().as_deref() == Some("true"),
            "timeout" => server.timeout = duration(),
            "idle" => server.idle = duration(),
            "deadline" => server.deadline = duration(),
            "start_timeout" => server.start_timeout = duration(),
            "stop_after" => server.stop_after = duration(),
            "cache" => server.cache = duration(),
            "allow" => server.allow = texts(),
            "deny" => server.deny = texts(),
            "category" => server.category = text(),
            "repeatable" => server.repeatable = texts(),
            "concurrency" => {
                if let Value::Count(count) = value {
                    server.concurrency = usize::try_from(*count).unwrap_or(1);
                }
            }
            _ => {}
        }
    }
}

/// The server and the field that a key names.
fn server_key(key: &str) -> Option<(&str, &str)> {
    let rest = key.strip_prefix(PREFIX)?;
    let (name, field) = rest.split_once('.')?;
    (!COMMON.contains(&name)).then_some((name, field))
}

/// A value as it is shown. Variables and headers of a server may be secrets: only a reference to a
/// variable is shown.
pub(super) fn shown(key: &str, written: &Written) -> Written {
    let mut written = written.clone();
    let field = server_key(key).and_then(|(_, field)| field.split_once('.'));
    let is_reference = written.text.starts_with("${") && written.text.ends_with('}');
    if field.is_some_and(|(table, _)| matches!(table, "env" | "headers")) && !is_reference {
        written.text = HIDDEN.to_owned();
        written.value = Value::Text(HIDDEN.to_owned());
    }
    written
}

#[cfg(test)]
mod tests {
    use super::super::load;
    use super::super::scratch::Scratch;
    use super::*;

    const FILE: &str = r#"
[mcp]
from = ["claude", "./other.json"]
prefix = false
[mcp.github]
command = "npx"
args = ["-y", "server", ""]
env = { GITHUB_TOKEN = "${GH}", PLAIN = "canary", EMPTY = "" }
timeout = "10s"
idle = "none"
allow = ["get_*"]
concurrency = 4
[mcp.remote]
url = "https://${HOST:-example.com}/mcp"
headers = { Authorization = "Bearer canary" }
"#;

    #[test]
    fn servers_are_read_and_their_secrets_are_not_shown() {
        let scratch = Scratch::new();
        scratch.write("backstop.toml", FILE);
        let config = load(&scratch.around(""), &[], &|_, _| true).unwrap();
        assert!(config.problems().is_none(), "{:?}", config.problems());
        let common = config.mcp();
        assert!(!common.prefix && common.from[0] == "claude" && common.from[1].ends_with("other.json"));
        let servers = config.mcp_servers();
        assert_eq!(servers.keys().collect::<Vec<_>>(), ["github", "remote"]);
        let github = &servers["github"];
        assert_eq!(github.args, ["-y", "server", ""]);
        assert_eq!((github.env["EMPTY"].as_str(), github.env["PLAIN"].as_str()), ("", "canary"));
        assert_eq!((github.timeout, github.idle), (Some(Duration::from_secs(10)), None));
        assert_eq!((github.concurrency, github.allow.as_slice()), (4, &["get_*".to_owned()][..]));
        assert_eq!(servers["remote"].headers["Authorization"], "Bearer canary");
        let shown = super::super::show(&config, true);
        assert!(shown.contains("${GH}") && !shown.contains("canary"), "{shown}");
    }

    #[test]
    fn the_defaults_are_those_of_the_reference() {
        let scratch = Scratch::new();
        scratch.write("backstop.toml", "[mcp.a]\ncommand = \"x\"\n");
        let config = load(&scratch.around(""), &[], &|_, _| true).unwrap();
        let server = McpServerSettings { command: Some("x".to_owned()), ..McpServerSettings::default() };
        assert_eq!(config.mcp_servers()["a"], server);
        for (key, want) in [
            ("timeout", server.timeout),
            ("idle", server.idle),
            ("deadline", server.deadline),
            ("start_timeout", server.start_timeout),
            ("stop_after", server.stop_after),
        ] {
            let default = crate::keys::named(&format!("mcp.a.{key}")).unwrap().default;
            assert_eq!(backstop_core::duration::parse(default).ok(), want, "{key}");
        }
        assert_eq!(config.mcp().cache_for, Duration::from_secs(86_400));
    }

    #[test]
    fn an_untrusted_project_has_no_servers() {
        let scratch = Scratch::new();
        scratch.write("backstop.toml", FILE);
        let config = load(&scratch.around(""), &[], &|_, _| false).unwrap();
        assert!(config.mcp_servers().is_empty() && config.mcp().from.is_empty());
        assert_eq!(config.untrusted_mcp_servers(), ["github", "remote"]);
    }
}
