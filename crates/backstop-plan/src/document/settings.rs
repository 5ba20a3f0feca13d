//! The settings of a phase, as a plan writes them.
//!
//! It must not know where settings come from or what they default to: a value that is not given
//! stays unset.

use backstop_core::{ATTEMPTS_MAX, Name, duration};
use backstop_work::CommandLine;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The most entries in a list or table.
const LIST_MAX: usize = 256;

/// How a phase is run, as the plan says. All fields are optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The command that does the work.
    pub command: Option<CommandLine>,
    /// The agent that does the work.
    #[serde(deserialize_with = "word")]
    pub agent: Option<String>,
    /// The model that the agent uses.
    #[serde(deserialize_with = "word")]
    pub model: Option<String>,
    /// The gates that it must pass. An empty list means none.
    #[serde(deserialize_with = "gates")]
    pub gates: Option<Vec<GateSetting>>,
    /// How long an attempt may take.
    pub timeout: Option<Limit>,
    /// How long an attempt may be silent.
    pub idle: Option<Limit>,
    /// Files or patterns that the phase changes, relative to the project. An empty list means
    /// unknown.
    #[serde(deserialize_with = "files")]
    pub files: Vec<String>,
    /// Environment variables.
    #[serde(deserialize_with = "env")]
    pub env: BTreeMap<String, String>,
    /// How often a test that fails may be tried again before it counts as failed.
    #[serde(deserialize_with = "count")]
    pub flaky: Option<u32>,
    /// The message of its commit.
    #[serde(deserialize_with = "word")]
    pub message: Option<String>,
    /// Whether a lost attempt may be repeated.
    pub repeatable: Option<bool>,
    /// The command that sets a worktree up before anybody works in it.
    pub setup: Option<CommandLine>,
    /// Files or patterns that the set-up depends on. An empty list means the usual lock files.
    #[serde(deserialize_with = "files")]
    pub setup_inputs: Vec<String>,
    /// Files or patterns that the phase must not change.
    #[serde(deserialize_with = "files")]
    pub protect: Vec<String>,
    /// Agents that take over while the phase's own is limited, in order. An empty list means
    /// nobody.
    pub fallback_agents: Option<Vec<String>>,
    /// The folder below the project in which its agent and its gates work.
    #[serde(deserialize_with = "folder")]
    pub dir: Option<String>,
}

impl Settings {
    /// Merges these settings over others: values that are set here win. Environment variables are
    /// merged one by one.
    pub fn over(&self, base: &Settings) -> Settings {
        let mut env = base.env.clone();
        env.extend(self.env.clone());
        Settings {
            command: self.command.clone().or_else(|| base.command.clone()),
            agent: self.agent.clone().or_else(|| base.agent.clone()),
            model: self.model.clone().or_else(|| base.model.clone()),
            gates: self.gates.clone().or_else(|| base.gates.clone()),
            timeout: self.timeout.or(base.timeout),
            idle: self.idle.or(base.idle),
            files: if self.files.is_empty() { base.files.clone() } else { self.files.clone() },
            env,
            flaky: self.flaky.or(base.flaky),
            message: self.message.clone().or_else(|| base.message.clone()),
            repeatable: self.repeatable.or(base.repeatable),
            setup: self.setup.clone().or_else(|| base.setup.clone()),
            setup_inputs: match self.setup_inputs.is_empty() {
                true => base.setup_inputs.clone(),
                false => self.setup_inputs.clone(),
            },
            protect: if self.protect.is_empty() { base.protect.clone() } else { self.protect.clone() },
            fallback_agents: self.fallback_agents.clone().or_else(|| base.fallback_agents.clone()),
            dir: self.dir.clone().or_else(|| base.dir.clone()),
        }
    }
}

/// A gate: the name of a known one, or one of the phase's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateSetting {
    /// Its name.
    pub name: Name,
    /// The command that checks. Without it, the gate is one that is known by its name.
    pub check: Option<CommandLine>,
    /// The command that fixes what it can.
    pub fix: Option<CommandLine>,
    /// How long it may take.
    pub timeout: Option<Limit>,
}

impl GateSetting {
    /// A gate that is a command; nothing for a text that can be none.
    pub fn command(text: &str) -> Option<Self> {
        let text = checked::<serde::de::value::Error>(text.to_owned()).ok()?;
        let name = command_name(&text).parse().ok()?;
        Some(Self { name, check: Some(CommandLine::Shell(text)), fix: None, timeout: None })
    }
}

/// A limit of time, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// No limit.
    None,
    /// The limit.
    After(Duration),
}

fn checked<E: Error>(text: String) -> Result<String, E> {
    if text.trim().is_empty() {
        return Err(E::custom("this is empty"));
    }
    if text.contains('\0') {
        return Err(E::custom("there is a NUL in this text"));
    }
    Ok(text)
}

fn word<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    checked(String::deserialize(from)?).map(Some)
}

fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let number = i64::deserialize(from)?;
    let fits = u32::try_from(number).ok().filter(|number| *number <= ATTEMPTS_MAX);
    fits.map(Some)
        .ok_or_else(|| D::Error::custom(format!("{number} is not a number from 0 to {ATTEMPTS_MAX}")))
}

fn bounded<E: Error>(length: usize) -> Result<(), E> {
    match length {
        0..=LIST_MAX => Ok(()),
        more => Err(E::custom(format!("there are {more} entries, more than {LIST_MAX}"))),
    }
}

fn folder<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let folder = checked(String::deserialize(from)?)?;
    let folder = folder.trim_start_matches("./").trim_end_matches('/').to_owned();
    if folder.starts_with('/') || folder.split('/').any(|part| part == "..") {
        return Err(D::Error::custom(format!("`{folder}` is not below the project")));
    }
    Ok(Some(folder).filter(|folder| !folder.is_empty() && folder != "."))
}

fn files<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let files = Vec::<String>::deserialize(from)?;
    bounded(files.len())?;
    for file in &files {
        checked(file.clone())?;
        if file.starts_with('/') || file.split('/').any(|part| part == "..") {
            return Err(D::Error::custom(format!("`{file}` is not below the project")));
        }
    }
    Ok(files)
}

fn env<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let env = BTreeMap::<String, String>::deserialize(from)?;
    bounded(env.len())?;
    for (name, value) in &env {
        let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !letters || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(D::Error::custom(format!("`{name}` is no name of an environment variable")));
        }
        if value.contains('\0') {
            return Err(D::Error::custom(format!("there is a NUL in the value of `{name}`")));
        }
    }
    Ok(env)
}

fn gates<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<GateSetting>>, D::Error> {
    let gates = Vec::<GateSetting>::deserialize(from)?;
    bounded(gates.len())?;
    for (at, gate) in gates.iter().enumerate() {
        if gates[..at].iter().any(|other| other.name == gate.name && other != gate) {
            return Err(D::Error::custom(format!(
                "there are two gates `{}`: give them names, such as {{ name = \"unit\", check = \"...\" }}",
                gate.name
            )));
        }
        if gates[..at].iter().any(|other| other.name == gate.name) {
            return Err(D::Error::custom(format!("there are two gates `{}`", gate.name)));
        }
    }
    Ok(Some(gates))
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Limit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Limit, E> {
                if text.trim() == "none" {
                    return Ok(Limit::None);
                }
                match duration::parse(text).map_err(E::custom)? {
                    Duration::ZERO => {
                        Err(E::custom("a limit of 0 ends everything at once: write \"none\" for no limit"))
                    }
                    limit => Ok(Limit::After(limit)),
                }
            }

            // A bare number is seconds.
            fn visit_i64<E: Error>(self, number: i64) -> Result<Limit, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Limit, E> {
                self.visit_str(&number.to_string())
            }
        }
        from.deserialize_any(Reader)
    }
}

/// A gate's name made of its command: `python3 t.py` is called `python3-t.py`.
fn command_name(command: &str) -> String {
    const CHARS_MAX: usize = 60;
    let kept = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
    let lower = command.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !kept(c)).filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().take(CHARS_MAX).collect();
    let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if name.is_empty() { "check".to_owned() } else { name.to_owned() }
}

impl<'de> Deserialize<'de> for GateSetting {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            name: Name,
            check: Option<CommandLine>,
            fix: Option<CommandLine>,
            timeout: Option<Limit>,
        }
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = GateSetting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a gate: a name, a command, or a table with name and check")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<GateSetting, E> {
                let is_command = text.contains(|c: char| c.is_whitespace() || c == '/');
                let check =
                    is_command.then(|| checked(text.to_owned()).map(CommandLine::Shell)).transpose()?;
                let name = if is_command { command_name(text) } else { text.to_owned() };
                Ok(GateSetting { name: name.parse().map_err(E::custom)?, check, fix: None, timeout: None })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<GateSetting, A::Error> {
                let Table { name, check, fix, timeout } =
                    Table::deserialize(MapAccessDeserializer::new(map))?;
                Ok(GateSetting { name, check, fix, timeout })
            }
        }
        from.deserialize_any(Reader)
    }
}
