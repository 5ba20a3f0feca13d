//! The configuration: files, environment and flags combined into one set of checked values, each
//! with its origin.
//!
//! This crate must not act on any value, and must not read the environment: folders, variables,
//! flags and trust are arguments. An unknown key is a problem that everybody who loads the
//! configuration is given: a typo such as `timout` must not pass unseen.

mod edit;
mod endpoint;
pub mod environment;
mod error;
mod file;
mod find;
mod keys;
mod layers;
mod llm;
mod mcp;
mod owner;
mod profile;
mod reference;
#[cfg(test)]
mod scratch;
mod show;
mod sinks;
mod trust;
mod value;

pub use edit::{Edit, EditScope, edit, unset};
pub use error::ConfigError;
pub use find::{Surroundings, repository_of_slot, repository_root, user_file_path};
pub use keys::{KEYS, Key, ValueKind};
pub use layers::{FileRead, Given, Inert, Origin, Unheeded, load};
pub use llm::{LlmSettings, LlmUpstreamSettings};
pub use mcp::{CommonMcpSettings, McpServerSettings};
pub use owner::{Foreign, foreign_project};
pub use reference::markdown;
pub use show::{check, check_json, get_json, show, show_json, untrusted, warning};
pub use sinks::{SINK_KINDS, SinkSettings};
pub use trust::{Candidate, Sets, candidate, hash as trust_hash};

use backstop_core::{MachineLimits, Policy, Reason, RetryBudget};
use backstop_http::Address;
use error::Problem;
use layers::{Setting, plain_keys, texts};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use value::{Value, Written};

/// All values, each with its origin.
#[derive(Debug, Clone)]
pub struct Config {
    /// The values that were set, by key, lowest layer first. Defaults are not in it.
    settings: BTreeMap<String, Vec<Setting>>,
    inert: Vec<Inert>,
    /// The path and the hashes of a project's file that is not trusted.
    not_trusted: Option<(PathBuf, String)>,
    /// The path and the hashes of the project's file, whether it is trusted or not.
    project_trust: Option<(PathBuf, String)>,
    /// What has changed since the project's file was trusted, in words.
    changes: Vec<String>,
    foreign: Option<Foreign>,
    notes: Vec<String>,
    files: Vec<FileRead>,
    unread: Unheeded,
    cwd: PathBuf,
    home: Option<PathBuf>,
    problems: Vec<Problem>,
}

/// How `exec` runs a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecSettings {
    /// The profile that decides about retries.
    pub profile: String,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// How long an attempt may be silent.
    pub idle: Option<Duration>,
    /// How long all attempts together may take.
    pub deadline: Option<Duration>,
    /// How long a rate limit is waited for, where somebody said so.
    pub wait_max: Option<Duration>,
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// How many bytes of piped input are stored for a retry.
    pub stdin_bytes_max: u64,
    /// How many bytes of each stream are stored for classifying.
    pub output_bytes_max: u64,
    /// How long to wait for a pipe that a process left behind holds open.
    pub drain: Duration,
}

/// How long `exec` waits for a rate limit where nothing says how long.
pub const EXEC_WAIT_MAX: Duration = Duration::from_secs(60);
/// The same on a terminal, where a person sees that it waits.
pub const EXEC_WAIT_MAX_WATCHED: Duration = Duration::from_secs(3600);

/// How events are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    Human,
    /// The journal's events as JSON lines.
    Json,
    /// Lines of `EMIT: ...`.
    Emit,
}

impl LogFormat {
    /// The word in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            LogFormat::Human => "human",
            LogFormat::Json => "json",
            LogFormat::Emit => "emit",
        }
    }
}

/// How plans are run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanSettings {
    /// The agent for phases that name none, if there is one.
    pub agent: Option<String>,
    /// The model that agents are asked to use; `None` for their own default.
    pub model: Option<String>,
    /// How finished work is committed; `None` if the user is to be asked.
    pub commit: Option<String>,
    /// `auto` or `none`: worktrees, or the folder itself.
    pub isolation: String,
    /// How many phases run side by side.
    pub jobs: usize,
    /// `declared` or `auto`: which phases may run side by side.
    pub parallel: String,
    /// `after-siblings` or `immediate`.
    pub retry: String,
    /// How long one attempt of a phase may take.
    pub timeout: Option<Duration>,
    /// How long an agent may be silent.
    pub idle: Option<Duration>,
    /// `auto`, `never` or `always`: whether a retry continues the agent's own session.
    pub continue_session: String,
    /// How much the agents of a run may spend, in millionths of a dollar.
    pub max_cost: Option<u64>,
    /// How many tokens the agents of a run may use.
    pub max_tokens: Option<u64>,
    /// How long running phases may continue once the run halts.
    pub halt_timeout: Option<Duration>,
    /// `ask`, `auto` or `none`: whether detected gates are run.
    pub gates: String,
    /// How long one gate may take.
    pub gate_timeout: Option<Duration>,
    /// How often a failed test is run again to see whether it is flaky.
    pub flaky: u32,
    /// Ignored paths that worktrees get as links.
    pub link: Vec<String>,
    /// Ignored paths that worktrees get as copies.
    pub copy: Vec<String>,
    /// The command that sets a worktree up.
    pub setup: Option<Vec<String>>,
    /// What the set-up depends on.
    pub setup_inputs: Vec<String>,
    /// What no phase may change.
    pub protect: Vec<String>,
    /// Whether an agent may go on with paid usage once its subscription is used up.
    pub allow_overage: bool,
    /// The agents that take over where an agent is limited.
    pub fallback_agents: Vec<String>,
    /// Whether the machine is kept awake while a phase runs.
    pub inhibit: bool,
}

/// How long and how much the store keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreSettings {
    /// How long the journal of an ended run is kept.
    pub keep: Duration,
    /// How large it may grow, in bytes.
    pub bytes_max: u64,
}

/// One value as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// The key's name.
    pub key: String,
    /// The value as it was written. It is text from outside: escape it.
    pub text: String,
    /// The value as JSON: a number, a list, null, or its text.
    pub json: serde_json::Value,
    /// Its origin; for lists that are joined, the highest layer that added to it.
    pub origin: Origin,
}

impl Config {
    /// The value that was set for this key in the highest layer, if any.
    fn set(&self, key: &str) -> Option<&Setting> {
        self.settings.get(key)?.last()
    }

    /// The values that were set for keys with this prefix.
    fn set_below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Setting)> {
        let from = self.settings.range(prefix.to_owned()..);
        let below = from.take_while(move |(key, _)| key.starts_with(prefix));
        below.filter_map(|(key, settings)| Some((key.as_str(), settings.last()?)))
    }

    /// The effective value, and its text.
    fn written(&self, key: &Key) -> Written {
        let Some(settings) = self.settings.get(key.name) else { return value::default(key) };
        if key.kind == ValueKind::Names {
            return texts(settings.iter().flat_map(|setting| match &setting.written.value {
                Value::Texts(list) => list.as_slice(),
                _ => &[],
            }));
        }
        settings.last().map_or_else(|| value::default(key), |setting| setting.written.clone())
    }

    fn value(&self, name: &str) -> Value {
        let key = keys::named(name);
        debug_assert!(key.is_some_and(|key| !key.is_pattern()), "{name} is no key");
        key.map_or(Value::None, |key| self.written(key).value)
    }

    fn duration(&self, key: &str) -> Option<Duration> {
        match self.value(key) {
            Value::Duration(duration) => Some(duration),
            _ => None,
        }
    }

    fn size(&self, key: &str) -> u64 {
        match self.value(key) {
            Value::Size(bytes) => bytes,
            _ => 0,
        }
    }

    fn count(&self, key: &str) -> u64 {
        match self.value(key) {
            Value::Count(count) => count,
            _ => 0,
        }
    }

    /// A number that may be `none`.
    fn amount(&self, key: &str) -> Option<u64> {
        match self.value(key) {
            Value::Count(amount) => Some(amount),
            _ => None,
        }
    }

    fn text(&self, key: &str) -> Option<String> {
        match self.value(key) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn list(&self, key: &str) -> Vec<String> {
        match self.value(key) {
            Value::Texts(list) => list,
            _ => Vec::new(),
        }
    }

    /// Resolves a path: relative to the file that names it, else to the current folder; `~/` is the
    /// home folder.
    fn resolved(&self, key: &str, path: &str) -> PathBuf {
        if let (Some(rest), Some(home)) = (path.strip_prefix("~/"), &self.home) {
            return home.join(rest);
        }
        let folder = match self.set(key).map(|setting| &setting.origin) {
            Some(Origin::File { file, .. }) => file.path.parent().unwrap_or(&self.cwd),
            _ => &self.cwd,
        };
        folder.join(Path::new(path))
    }

    /// How `exec` runs a command.
    pub fn exec(&self) -> ExecSettings {
        ExecSettings {
            profile: self.text("exec.profile").unwrap_or_else(|| "command".to_owned()),
            timeout: self.duration("exec.timeout"),
            idle: self.duration("exec.idle"),
            deadline: self.duration("exec.deadline"),
            wait_max: self.set("exec.wait_max").and_then(|_| self.duration("exec.wait_max")),
            grace: self.duration("exec.grace").unwrap_or_default(),
            stdin_bytes_max: self.size("exec.stdin_max"),
            output_bytes_max: self.size("exec.output_max"),
            drain: self.duration("exec.drain").unwrap_or_default(),
        }
    }

    /// Patterns of commands that may be repeated although they change something.
    pub fn repeatable_commands(&self) -> Vec<String> {
        self.list("exec.repeatable")
    }

    /// How plans are run.
    pub fn plan(&self) -> PlanSettings {
        let named = |key: &str| self.text(key).filter(|text| text != "none");
        let word = |key: &str| self.text(key).unwrap_or_default();
        PlanSettings {
            agent: named("plan.agent"),
            model: named("plan.model"),
            commit: self.text("plan.commit").filter(|text| text != "ask"),
            isolation: word("plan.isolation"),
            jobs: usize::try_from(self.count("plan.jobs")).unwrap_or(1),
            parallel: word("plan.parallel"),
            retry: word("plan.retry"),
            timeout: self.duration("plan.timeout"),
            idle: self.duration("plan.idle"),
            continue_session: word("plan.continue_session"),
            max_cost: self.amount("plan.max_cost"),
            max_tokens: self.amount("plan.max_tokens"),
            halt_timeout: self.duration("plan.halt_timeout"),
            gates: word("plan.gates"),
            gate_timeout: self.duration("plan.gate_timeout"),
            flaky: u32::try_from(self.count("plan.flaky")).unwrap_or(0),
            link: self.list("isolation.link"),
            copy: self.list("isolation.copy"),
            setup: self.words("plan.setup"),
            setup_inputs: self.list("plan.setup_inputs"),
            protect: self.list("plan.protect"),
            allow_overage: word("plan.allow_overage") == "true",
            fallback_agents: self.list("plan.fallback_agents"),
            inhibit: word("plan.inhibit") != "false",
        }
    }

    /// The words of a command, if one is set.
    fn words(&self, key: &str) -> Option<Vec<String>> {
        match &self.set(key)?.written.value {
            Value::Texts(words) => Some(words.clone()).filter(|words| !words.is_empty()),
            Value::Text(line) => Some(vec!["sh".to_owned(), "-c".to_owned(), line.clone()]),
            _ => None,
        }
    }

    /// How an agent of the configuration gets its prompt.
    pub fn agent_prompt(&self, agent: &str) -> Option<String> {
        self.agent_text(agent, "prompt")
    }

    /// The mode that an agent of the Agent Client Protocol works in.
    pub fn agent_mode(&self, agent: &str) -> Option<String> {
        self.agent_text(agent, "mode")
    }

    fn agent_text(&self, agent: &str, field: &str) -> Option<String> {
        match &self.set(&format!("agent.{agent}.{field}"))?.written.value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// The words of commands below a section, by name: `gates.lint.check`.
    pub fn commands(&self, section: &str, field: &str) -> BTreeMap<String, Vec<String>> {
        let prefix = format!("{section}.");
        let named = self.set_below(&prefix).filter_map(|(key, setting)| {
            let (name, last) = key.strip_prefix(&prefix)?.rsplit_once('.')?;
            match &setting.written.value {
                Value::Texts(words) if last == field => Some((name.to_owned(), words.clone())),
                Value::Text(word) if last == field => Some((name.to_owned(), vec![word.clone()])),
                _ => None,
            }
        });
        named.collect()
    }

    /// How much memory and disk must be free. A limit that is not set depends on the machine's
    /// size.
    pub fn machine_limits(&self) -> MachineLimits {
        let configured = |key: &str| self.set(key).map(|_| self.size(key));
        MachineLimits {
            disk_free_min: configured("host.disk_free_min"),
            memory_free_min: configured("host.memory_free_min"),
        }
    }

    /// The reasons that freeze a project.
    pub fn freeze_reasons(&self) -> Vec<Reason> {
        self.list("freeze.reasons").iter().filter_map(|word| Reason::from_code(word)).collect()
    }

    /// How long and how much the store keeps.
    pub fn store(&self) -> StoreSettings {
        StoreSettings {
            keep: self.duration("store.keep").unwrap_or_default(),
            bytes_max: self.size("store.max"),
        }
    }

    /// How events are printed.
    pub fn log_format(&self) -> LogFormat {
        match self.text("log.format").as_deref() {
            Some("json") => LogFormat::Json,
            Some("emit") => LogFormat::Emit,
            _ => LogFormat::Human,
        }
    }

    /// Whether the learned back-off is asked where no rule is sure.
    pub fn learns(&self) -> bool {
        self.text("classify.learned").as_deref() != Some("false")
    }

    /// The rule packs of the user.
    pub fn packs(&self) -> Vec<PathBuf> {
        self.list("rules.packs").iter().map(|path| self.resolved("rules.packs", path)).collect()
    }

    /// The file that classified errors are appended to.
    pub fn tail_to(&self) -> Option<PathBuf> {
        self.text("events.tail_to").map(|path| self.resolved("events.tail_to", &path))
    }

    /// The address that traces are sent to, if any, and the service name.
    pub fn otel(&self) -> Option<(Address, String)> {
        let endpoint = endpoint::parse_endpoint(&self.text("otel.endpoint")?).ok()?;
        Some((endpoint, self.text("otel.service").unwrap_or_else(|| "backstop".to_owned())))
    }

    /// Every address that is set: of sinks, collectors, MCP servers and models. They may hold
    /// secrets.
    pub fn addresses(&self) -> Vec<String> {
        let is_address = |key: &str| key == "otel.endpoint" || key.ends_with(".url");
        let set = self.set_below("").filter(|(key, _)| is_address(key));
        let texts = set.filter_map(|(_, setting)| match &setting.written.value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        });
        texts.collect()
    }

    /// The words of every command that is set. They may hold secrets.
    pub fn command_lines(&self) -> Vec<Vec<String>> {
        let is_command = |key: &str| [".command", ".args", ".acp"].iter().any(|end| key.ends_with(end));
        let set = self.set_below("").filter(|(key, _)| is_command(key));
        let words = set.filter_map(|(_, setting)| match &setting.written.value {
            Value::Texts(words) => Some(words.clone()),
            _ => None,
        });
        words.collect()
    }

    /// Environment variables whose values are masked, from all layers.
    pub fn redact_env(&self) -> Vec<String> {
        self.list("redact.env")
    }

    /// The share of recent attempts that may be retries.
    pub fn retry_budget(&self) -> RetryBudget {
        RetryBudget {
            window: self.duration("retry_budget.window").unwrap_or_default(),
            reserve: self.count("retry_budget.reserve"),
            share_percent: self.count("retry_budget.share_percent"),
        }
    }

    /// The profile with this name, with the changes of the configuration.
    pub fn policy(&self, name: &str) -> Result<Policy, ConfigError> {
        profile::policy(self, name).map_err(ConfigError::one)
    }

    /// The origin of the value of a key; `None` if there is no such key.
    #[cfg(test)]
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        keys::named(key)?;
        Some(self.set(key).map_or(&Origin::Default, |setting| &setting.origin))
    }

    /// Every value in the order of the reference, then the values set for profiles.
    pub fn settings(&self) -> Vec<Shown> {
        let row = |key: &str, written: Written| Shown {
            key: key.to_owned(),
            json: json(&written),
            text: written.text,
            origin: self.set(key).map_or(Origin::Default, |setting| setting.origin.clone()),
        };
        let plain = plain_keys().map(|key| row(key.name, show::shown(key.name, &self.written(key))));
        let below = |prefix| {
            let is_pattern = |key: &str| keys::named(key).is_none_or(Key::is_pattern);
            let set = self.set_below(prefix).filter(move |(key, _)| is_pattern(key));
            set.map(|(key, setting)| row(key, show::shown(key, &setting.written)))
        };
        plain.chain(["gates.", "agent.", "notify.", "mcp.", "profile."].into_iter().flat_map(below)).collect()
    }

    /// The value of one key. A key of a profile, gate, agent or sink that is not set has its
    /// default as text.
    pub fn get(&self, name: &str) -> Result<Shown, ConfigError> {
        let key = edit::known(name)?;
        if let Some(found) = self.settings().into_iter().find(|setting| setting.key == name) {
            return Ok(found);
        }
        let text = key.default.to_owned();
        Ok(Shown { key: name.to_owned(), text, json: serde_json::Value::Null, origin: Origin::Default })
    }

    /// Whether the project has settings of its own, and somebody trusts them as they are. `trusted`
    /// gives the hashes that were trusted for a file.
    pub fn is_project_trusted(&self, trusted: &dyn Fn(&Path) -> Option<String>) -> bool {
        let known = self.project_trust.as_ref();
        known.is_some_and(|(path, hashes)| trusted(path).as_ref() == Some(hashes))
    }

    /// The values that are ignored because the project's file is not trusted.
    pub fn inert(&self) -> &[Inert] {
        &self.inert
    }

    /// The project's file that is ignored because it, or its repository, is another user's.
    pub fn foreign(&self) -> Option<&Foreign> {
        self.foreign.as_ref()
    }

    /// Finds out what has changed since the project's file was trusted. `trusted` gives the hashes
    /// that were, for its path; it is asked only where values are ignored.
    pub fn explain_trust(&mut self, trusted: &dyn Fn(&Path) -> Option<String>) {
        if let Some((path, now)) = &self.not_trusted
            && let Some(before) = trusted(path)
        {
            self.changes = trust::changes(&before, now);
        }
    }

    /// What is wrong in files and variables; the values that it is in are ignored.
    pub fn problems(&self) -> Option<ConfigError> {
        ConfigError::of(self.problems.clone())
    }

    /// Notes that are no errors.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What stands in files of which some values take no effect.
    pub fn unheeded(&self) -> &Unheeded {
        &self.unread
    }

    /// The files that were read, lowest layer first.
    pub fn files(&self) -> &[FileRead] {
        &self.files
    }
}

fn json(written: &Written) -> serde_json::Value {
    match &written.value {
        Value::None => serde_json::Value::Null,
        Value::Count(count) => (*count).into(),
        Value::Texts(list) => list.clone().into(),
        Value::Durations(list) => list.iter().map(|wait| format!("{}ms", wait.as_millis())).collect(),
        _ => written.text.clone().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::scratch::Scratch;
    use super::*;

    #[test]
    fn what_holds_if_nobody_sets_anything() {
        let scratch = Scratch::new();
        let config = load(&scratch.around(""), &[], &|_, _| false).unwrap();
        assert_eq!(
            config.exec(),
            ExecSettings {
                profile: "command".to_owned(),
                timeout: None,
                idle: None,
                deadline: None,
                wait_max: None,
                grace: Duration::from_secs(5),
                stdin_bytes_max: 8 << 20,
                output_bytes_max: 4 << 20,
                drain: Duration::from_secs(1),
            }
        );
        assert_eq!(
            config.store(),
            StoreSettings { keep: Duration::from_secs(30 * 86_400), bytes_max: 1 << 30 }
        );
        assert_eq!(config.log_format(), LogFormat::Human);
        assert_eq!(config.retry_budget(), RetryBudget::default());
        assert!(config.packs().is_empty() && config.redact_env().is_empty() && config.tail_to().is_none());
        assert!(config.files().is_empty() && config.inert().is_empty() && config.notes().is_empty());
    }
}
