//! The keys of the configuration: one list, from which files are checked, values are parsed and the
//! reference is generated.
//!
//! It must not read anything: `value` parses values, `layers` combines them.

use backstop_core::nearest::nearest;
use backstop_core::{ATTEMPTS_MAX, DELAY_MAX, Name, PROFILES, Reason, TAXONOMY};
use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

/// Stands for the name of a profile in the name of a key.
const PROFILE: &str = "<profile>";
/// Stands for the code of a reason in the name of a key.
const REASON: &str = "<reason>";
/// Stands for the name of a gate in the name of a key.
const GATE: &str = "<gate>";
/// Stands for the name of an agent in the name of a key.
const AGENT: &str = "<agent>";
/// Stands for the name of a sink in the name of a key.
const SINK: &str = "<sink>";
/// Stands for the name of an MCP server in the name of a key.
const SERVER: &str = "<server>";
/// Stands for the name of a provider of models in the name of a key.
const UPSTREAM: &str = "<upstream>";
/// Stands for the name of an environment variable in the name of a key.
const VARIABLE: &str = "<variable>";
/// Stands for the name of an HTTP header in the name of a key.
const HEADER: &str = "<header>";

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
const YEAR: Duration = Duration::from_secs(366 * 24 * 3600);
const KB: u64 = 1 << 10;
const MB: u64 = 1 << 20;
const GB: u64 = 1 << 30;
const PB: u64 = 1 << 50;

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// A duration.
    Duration {
        /// Whether `none` is allowed.
        none: bool,
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// A list of durations.
    Durations,
    /// A whole number.
    Count {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A size in bytes.
    Size {
        /// The smallest, in bytes.
        min: u64,
        /// The largest, in bytes.
        max: u64,
    },
    /// An amount of US dollars, or `none`. It is kept in millionths.
    Dollars,
    /// A number of tokens, or `none`.
    Tokens,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A path, or `none`.
    Path,
    /// A list of paths.
    Paths,
    /// The words of a command: a program and its arguments.
    Words,
    /// A list of reasons.
    Reasons,
    /// The address of a collector, or `none`.
    Endpoint,
    /// The address of a sink: http or https.
    Address,
    /// One line of text.
    Line,
    /// Any text without NUL, empty text included; `${NAME}` in it stands for a variable.
    Text,
    /// A list of names of environment variables. Those of all layers count together.
    Names,
    /// A list of patterns of commands, such as `./deploy.sh *`.
    Patterns,
    /// A list of patterns of tools' names, such as `get_*`.
    ToolPatterns,
    /// A list of agents, by name.
    Agents,
    /// The jitter of delays.
    Jitter,
    /// What is done about a reason.
    Action,
}

/// One key of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The name; `<profile>` and `<reason>` stand for any profile and any reason.
    pub name: &'static str,
    /// The type of its value.
    pub kind: ValueKind,
    /// The default, as it would be written in a file.
    pub default: &'static str,
    /// What it is for, in one line.
    pub doc: &'static str,
    /// Why a project's file may set it without trust. `None`: only when trusted.
    pub harmless: Option<&'static str>,
}

/// The longest wait for a rate limit: as long as the longest window.
const LIMIT_WAIT_MAX: Duration = Duration::from_secs(31 * 24 * 3600);
const LIMIT: ValueKind = ValueKind::Duration { none: true, min: MILLISECOND, max: YEAR };
const PAUSE: ValueKind = ValueKind::Duration { none: false, min: Duration::ZERO, max: HOUR };
const DELAY: ValueKind = ValueKind::Duration { none: false, min: Duration::ZERO, max: DELAY_MAX };
const OF_THE_PROFILE: &str = "as the profile";

/// A key that a project's file sets only when it is trusted, as nearly all of them.
const fn key(name: &'static str, kind: ValueKind, default: &'static str, doc: &'static str) -> Key {
    Key { name, kind, default, doc, harmless: None }
}

/// A key that a project's file sets without trust: it changes neither what is run, how often, how
/// long or where, nor what is stored, sent or removed. `why` says so to whoever decides about
/// trust.
const fn without_trust(
    name: &'static str,
    kind: ValueKind,
    default: &'static str,
    doc: &'static str,
    why: &'static str,
) -> Key {
    Key { name, kind, default, doc, harmless: Some(why) }
}

/// The words of a switch. In a file they may be written without quotes.
pub(crate) const YES_OR_NO: &[&str] = &["true", "false"];

/// Every key, in the order in which it is shown.
pub const KEYS: &[Key] = &[
    key("exec.profile", ValueKind::OneOf(PROFILES), "command", "the profile that decides about retries"),
    key("exec.timeout", LIMIT, "none", "time limit for one attempt"),
    key("exec.idle", LIMIT, "none", "time limit for an attempt without output"),
    key("exec.deadline", LIMIT, "none", "time limit for all attempts and the waits between them"),
    key(
        "exec.wait_max",
        ValueKind::Duration { none: false, min: Duration::ZERO, max: DELAY_MAX },
        "60s",
        "how long a rate limit is waited for before the command is put aside; unset, 1h on a terminal",
    ),
    key("exec.grace", PAUSE, "5s", "time between SIGTERM and SIGKILL when a command is ended"),
    key(
        "exec.stdin_max",
        ValueKind::Size { min: 0, max: GB },
        "8MB",
        "how much piped input is stored for a retry",
    ),
    key(
        "exec.output_max",
        ValueKind::Size { min: 4 * KB, max: GB },
        "4MB",
        "how much of each output stream is stored for classifying",
    ),
    key("exec.drain", PAUSE, "1s", "how long to wait for a pipe that a background process holds open"),
    key(
        "exec.repeatable",
        ValueKind::Patterns,
        "[]",
        "commands that may be repeated although they change something, such as `./deploy.sh *`; `*` stands for anything",
    ),
    key(
        "plan.agent",
        ValueKind::Line,
        "none",
        "the agent for phases that name neither an agent nor a command",
    ),
    key("plan.model", ValueKind::Line, "none", "the model that agents are told to use"),
    key(
        "plan.commit",
        ValueKind::OneOf(&["ask", "auto", "message-only", "single", "none"]),
        "ask",
        "how finished phases are committed",
    ),
    key(
        "plan.isolation",
        ValueKind::OneOf(&["auto", "none"]),
        "auto",
        "where phases run: in git worktrees of their own (`auto`, in a repository), or in the folder itself",
    ),
    key("plan.jobs", ValueKind::Count { min: 1, max: 64 }, "4", "how many phases run at once"),
    key(
        "plan.parallel",
        ValueKind::OneOf(&["declared", "auto"]),
        "declared",
        "which phases may run at once: those that the plan declares parallel, or all whose dependencies are complete",
    ),
    key(
        "plan.retry",
        ValueKind::OneOf(&["after-siblings", "immediate"]),
        "after-siblings",
        "when a failed phase is retried",
    ),
    key("plan.timeout", LIMIT, "1h", "time limit for one attempt of a phase"),
    key(
        "plan.idle",
        LIMIT,
        "15m",
        "time limit for an agent without output; a command has one only if its phase sets it",
    ),
    key(
        "plan.wait_max",
        ValueKind::Duration { none: false, min: Duration::ZERO, max: LIMIT_WAIT_MAX },
        "6h",
        "the longest single wait for a rate limit; a limit that ends later halts the run",
    ),
    key(
        "plan.waits_max",
        ValueKind::Count { min: 0, max: 100 },
        "4",
        "how many times a run waits for a rate limit before it halts; phases that wait together count once",
    ),
    key(
        "plan.allow_overage",
        ValueKind::OneOf(YES_OR_NO),
        "false",
        "whether an agent may go on with paid usage once its subscription is used up; without it, the reset is waited for",
    ),
    key(
        "plan.fallback_agents",
        ValueKind::Agents,
        "[]",
        "agents that take over a phase whose own agent is limited, in order, such as `[\"codex\"]`",
    ),
    key(
        "plan.inhibit",
        ValueKind::OneOf(YES_OR_NO),
        "true",
        "whether the machine is kept awake while a phase runs; while a run only waits, it may sleep",
    ),
    key(
        "plan.continue_session",
        ValueKind::OneOf(&["auto", "never", "always"]),
        "auto",
        "whether a retry continues the agent's own session: where its work was only cut off (`auto`), never, or wherever there is one",
    ),
    key(
        "plan.max_cost",
        ValueKind::Dollars,
        "none",
        "US dollars that the agents of a run may spend before it halts, as far as they say what they spend",
    ),
    key(
        "plan.max_tokens",
        ValueKind::Tokens,
        "none",
        "tokens that the agents of a run may use before it halts, such as `2M`",
    ),
    key("plan.halt_timeout", LIMIT, "10m", "time that running phases have to finish once a run halts"),
    key(
        "plan.gates",
        ValueKind::OneOf(&["ask", "auto", "none"]),
        "ask",
        "whether to run the gates detected from the project's files: always (`auto`), never, or where the project is trusted, and asked for on a terminal elsewhere",
    ),
    key(
        "plan.setup",
        ValueKind::Words,
        "[]",
        "the command that sets a worktree up before anybody works in it, such as `[\"npm\", \"ci\"]`",
    ),
    key(
        "plan.setup_inputs",
        ValueKind::Paths,
        "[]",
        "what the set-up depends on: it runs again when one of these files has changed (default: lock files)",
    ),
    key(
        "plan.protect",
        ValueKind::Paths,
        "[]",
        "files or patterns that no phase may change, such as `tests/**`: one that does halts the run",
    ),
    key("plan.gate_timeout", LIMIT, "10m", "time limit for one gate"),
    key(
        "plan.flaky",
        ValueKind::Count { min: 0, max: 10 },
        "0",
        "how often failed tests are run again to see whether they are flaky",
    ),
    key(
        "isolation.link",
        ValueKind::Paths,
        "[]",
        "paths below the repository's root that a worktree gets as links",
    ),
    key("isolation.copy", ValueKind::Paths, "[]", "paths that a worktree gets as copies, such as `.env`"),
    key("gates.<gate>.check", ValueKind::Words, "as detected", "the command of a gate, as a list of words"),
    key("gates.<gate>.fix", ValueKind::Words, "as detected", "the command that fixes what the gate finds"),
    key(
        "agent.<agent>.command",
        ValueKind::Words,
        "none",
        "the command of your own agent, as a list of words; `{prompt_file}`, `{result_file}` and `{model}` are filled in",
    ),
    key(
        "agent.<agent>.acp",
        ValueKind::Words,
        "none",
        "the command of an agent that speaks the Agent Client Protocol, as a list of words",
    ),
    key(
        "agent.<agent>.mode",
        ValueKind::Line,
        "as it asks least",
        "the mode that an agent of the Agent Client Protocol works in",
    ),
    key(
        "agent.<agent>.prompt",
        ValueKind::OneOf(&["stdin", "file"]),
        "stdin",
        "how that agent gets its prompt",
    ),
    key("notify.<sink>.type", ValueKind::OneOf(crate::sinks::SINK_KINDS), "none", "the kind of sink"),
    key(
        "notify.<sink>.url",
        ValueKind::Address,
        "none",
        "the address of a webhook, of Slack's incoming webhook, or of the issue or pull request to comment on",
    ),
    key(
        "notify.<sink>.command",
        ValueKind::Words,
        "none",
        "the command that gets the message on its standard input, as a list of words",
    ),
    key(
        "notify.<sink>.token_env",
        ValueKind::Line,
        "none",
        "the environment variable that holds the token; for Slack, the whole address if `url` is not set",
    ),
    key(
        "notify.<sink>.severity",
        ValueKind::OneOf(&["low", "medium", "high", "critical"]),
        "high",
        "the lowest severity that is sent",
    ),
    key("notify.<sink>.reason", ValueKind::Reasons, "all", "only these reasons"),
    key("notify.<sink>.project", ValueKind::Paths, "all", "only projects in these folders"),
    key("llm.listen", ValueKind::Line, "127.0.0.1:4141", "where `backstop proxy` takes requests"),
    key(
        "llm.deadline",
        ValueKind::Duration { none: false, min: SECOND, max: DAY },
        "9m",
        "time limit for a model request until its answer begins: all attempts, and the waits for limits",
    ),
    key(
        "llm.idle",
        ValueKind::Duration { none: false, min: SECOND, max: DAY },
        "10m",
        "time limit for a provider that sends nothing",
    ),
    key(
        "llm.body_max",
        ValueKind::Size { min: KB, max: GB },
        "64MB",
        "the largest model request that is taken",
    ),
    key(
        "llm.cache",
        ValueKind::OneOf(YES_OR_NO),
        "false",
        "whether the answer to an identical request with `temperature` 0 is used again",
    ),
    key(
        "llm.budget",
        ValueKind::Line,
        "none",
        "the budget that each attempt of a model request takes a unit of",
    ),
    key("llm.token_budget", ValueKind::Line, "none", "the budget that each token of a model takes a unit of"),
    key(
        "llm.cent_budget",
        ValueKind::Line,
        "none",
        "the budget that each US cent takes a unit of, by `llm.prices`",
    ),
    key(
        "llm.fallback",
        ValueKind::Words,
        "[]",
        "models that are used instead where nothing else helps, as `MODEL=OTHER`",
    ),
    key(
        "llm.prices",
        ValueKind::Words,
        "[]",
        "what models cost, as `MODEL=INPUT/OUTPUT` in US dollars for a million tokens",
    ),
    key(
        "llm.upstream.<upstream>.url",
        ValueKind::Text,
        "none",
        "the origin of a provider, such as `https://api.example.com`",
    ),
    key(
        "llm.upstream.<upstream>.concurrency",
        ValueKind::Count { min: 1, max: 4096 },
        "unlimited",
        "how many requests it gets at once",
    ),
    key(
        "llm.upstream.<upstream>.headers.<header>",
        ValueKind::Text,
        "none",
        "a header of every request to it, such as its credential; replaces the client's",
    ),
    key(
        "mcp.from",
        ValueKind::Paths,
        "[]",
        "where else MCP servers are taken from: `claude`, `claude-desktop`, `cursor`, `vscode`, `codex`, `opencode`, or the path of such a file",
    ),
    key(
        "mcp.prefix",
        ValueKind::OneOf(YES_OR_NO),
        "true",
        "whether a tool is called `server__tool` even if there is only one server",
    ),
    key(
        "mcp.cache_for",
        ValueKind::Duration { none: false, min: Duration::ZERO, max: YEAR },
        "1d",
        "how old the list of tools may be before the servers are asked again",
    ),
    key("mcp.budget", ValueKind::Line, "none", "the budget that each attempt of a call takes a unit of"),
    key("mcp.<server>.command", ValueKind::Text, "none", "the program of a server that is started"),
    key("mcp.<server>.args", ValueKind::Words, "[]", "its arguments"),
    key("mcp.<server>.cwd", ValueKind::Path, "none", "the folder that it is started in"),
    key("mcp.<server>.env.<variable>", ValueKind::Text, "none", "a variable of its environment"),
    key("mcp.<server>.url", ValueKind::Text, "none", "the address of a server that is reached over HTTP"),
    key("mcp.<server>.headers.<header>", ValueKind::Text, "none", "a header of every request to it"),
    key("mcp.<server>.disabled", ValueKind::OneOf(YES_OR_NO), "false", "whether the server is left out"),
    key("mcp.<server>.timeout", LIMIT, "5m", "time limit for one attempt of a call"),
    key("mcp.<server>.idle", LIMIT, "1m", "time limit for a call since its last progress"),
    key("mcp.<server>.deadline", LIMIT, "10m", "time limit for all attempts of a call and the waits"),
    key("mcp.<server>.start_timeout", LIMIT, "30s", "time limit for the server to start and list tools"),
    key(
        "mcp.<server>.stop_after",
        LIMIT,
        "10m",
        "how long a server that was started may be unused before it is stopped",
    ),
    key(
        "mcp.<server>.concurrency",
        ValueKind::Count { min: 1, max: 1024 },
        "32",
        "how many calls it gets at once",
    ),
    key("mcp.<server>.allow", ValueKind::ToolPatterns, "all", "only these of its tools"),
    key("mcp.<server>.deny", ValueKind::ToolPatterns, "[]", "none of these of its tools"),
    key(
        "mcp.<server>.category",
        ValueKind::Line,
        "by its name",
        "the kind of its tools, for advice: `browser`, `github`, `graphql`, `docs`",
    ),
    key(
        "mcp.<server>.repeatable",
        ValueKind::ToolPatterns,
        "[]",
        "tools that may be called again although nobody knows whether the last call took effect",
    ),
    key("mcp.<server>.cache", LIMIT, "none", "how long the result of a read-only tool is used again"),
    key(
        "host.disk_free_min",
        ValueKind::Size { min: 0, max: PB },
        "100MB",
        "free disk space below which the host counts as short of disk; on small disks the default is a twentieth of the disk",
    ),
    key(
        "host.memory_free_min",
        ValueKind::Size { min: 0, max: PB },
        "100MB",
        "free memory below which the host counts as short of memory; on small hosts the default is a twentieth of the memory",
    ),
    key(
        "freeze.reasons",
        ValueKind::Reasons,
        "[]",
        "reasons that freeze the project when they end a run, besides a host that is short of disk or memory",
    ),
    without_trust(
        "log.format",
        ValueKind::OneOf(&["human", "json", "emit"]),
        "human",
        "how events are printed",
        "changes only how events look",
    ),
    key(
        "store.keep",
        ValueKind::Duration { none: false, min: HOUR, max: YEAR },
        "30d",
        "how long the journal of an ended run is kept",
    ),
    key(
        "store.max",
        ValueKind::Size { min: MB, max: 1024 * GB },
        "1GB",
        "size of a project's store above which the oldest ended runs are removed",
    ),
    key(
        "classify.learned",
        ValueKind::OneOf(YES_OR_NO),
        "true",
        "whether the learned back-off is asked where no rule is sure",
    ),
    key(
        "rules.packs",
        ValueKind::Paths,
        "[]",
        "rule packs of your own; a path is relative to the file that names it",
    ),
    key(
        "events.tail_to",
        ValueKind::Path,
        "none",
        "a file to which every classified error is appended as a line of JSON",
    ),
    key(
        "otel.endpoint",
        ValueKind::Endpoint,
        "none",
        "where each run of `exec` and `run` is sent as an OpenTelemetry trace, such as `http://127.0.0.1:4318`",
    ),
    without_trust(
        "otel.service",
        ValueKind::Line,
        "backstop",
        "the name of the service that traces are sent under",
        "a name, sent only to where you send traces",
    ),
    without_trust(
        "redact.env",
        ValueKind::Names,
        "[]",
        "environment variables whose values are masked wherever text is stored or shown; the lists of all layers are joined",
        "only masks more",
    ),
    key(
        "trust.safe_directories",
        ValueKind::Paths,
        "[]",
        "projects of other users whose `backstop.toml` is read, as git's `safe.directory`: a folder, a folder and `/*` for all below it, or `*`; counts in your own file only",
    ),
    key(
        "retry_budget.reserve",
        ValueKind::Count { min: 0, max: 1_000_000 },
        "30",
        "number of retries within the window that are always allowed",
    ),
    key(
        "retry_budget.share_percent",
        ValueKind::Count { min: 0, max: 100 },
        "50",
        "beyond the reserve, the share of all attempts that may be retries",
    ),
    key(
        "retry_budget.window",
        ValueKind::Duration { none: false, min: Duration::from_secs(1), max: DELAY_MAX },
        "60s",
        "how far back attempts are counted",
    ),
    key(
        "profile.<profile>.attempts",
        ValueKind::Count { min: 1, max: ATTEMPTS_MAX as u64 },
        OF_THE_PROFILE,
        "number of attempts in all, wherever the profile has more than one; 1 turns retries off",
    ),
    key(
        "profile.<profile>.delays",
        ValueKind::Durations,
        OF_THE_PROFILE,
        "the waits between attempts, in order; the last repeats",
    ),
    key(
        "profile.<profile>.base",
        DELAY,
        OF_THE_PROFILE,
        "the first wait, which doubles with every failed attempt; `task` starts with twice as much",
    ),
    key("profile.<profile>.cap", DELAY, OF_THE_PROFILE, "the longest doubled wait, before jitter"),
    key(
        "profile.<profile>.jitter",
        ValueKind::Jitter,
        OF_THE_PROFILE,
        "by how much each wait is moved: `20%` both ways, `+10%` only longer, `0` not at all",
    ),
    key(
        "profile.<profile>.wait_max",
        DELAY,
        OF_THE_PROFILE,
        "the longest wait that a server may ask for; operations that would wait longer are deferred",
    ),
    key(
        "profile.<profile>.learn",
        ValueKind::OneOf(YES_OR_NO),
        "false",
        "whether to stop retrying a failure that no retry has cured in 5 tries",
    ),
    key(
        "profile.<profile>.on.<reason>",
        ValueKind::Action,
        OF_THE_PROFILE,
        "what is done about this reason: `retry`, `retry:5` (attempts in all), `surface`, `halt`, `defer`, `confirm`",
    ),
];

impl Key {
    /// Whether a project's file sets it only when trusted.
    pub fn needs_trust(&self) -> bool {
        self.harmless.is_none()
    }

    /// Whether the name is a pattern that stands for many keys.
    pub fn is_pattern(&self) -> bool {
        self.name.contains('<')
    }

    /// Whether its value is a list.
    pub fn is_list(&self) -> bool {
        matches!(
            self.kind,
            ValueKind::Durations
                | ValueKind::Paths
                | ValueKind::Names
                | ValueKind::Words
                | ValueKind::Reasons
                | ValueKind::Patterns
                | ValueKind::Agents
                | ValueKind::ToolPatterns
        )
    }

    /// The environment variable that sets it. Lists and patterns have none.
    pub fn variable(&self) -> Option<String> {
        (!self.is_pattern() && !self.is_list()).then(|| self.variable_name())
    }

    /// The name that a variable for it has, or would have.
    pub fn variable_name(&self) -> String {
        format!("BACKSTOP_{}", self.name.replace('.', "_").to_ascii_uppercase())
    }

    fn segments(&self) -> impl Iterator<Item = &'static str> {
        self.name.split('.')
    }
}

/// What a dotted path in the configuration names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyMatch {
    /// A key.
    Key(&'static Key),
    /// A table with keys in it.
    Section,
    /// Neither a key nor a section.
    Unknown,
}

fn fits(pattern: &str, segment: &str) -> bool {
    match pattern {
        PROFILE => PROFILES.contains(&segment),
        REASON => Reason::from_code(segment).is_some(),
        // Keys are written with dots: a dot in a name would be taken for the end of it.
        GATE | AGENT | SINK | SERVER | UPSTREAM => !segment.contains('.') && segment.parse::<Name>().is_ok(),
        VARIABLE => is_variable(segment),
        HEADER => is_header(segment),
        name => name == segment,
    }
}

/// Whether a segment stands for a name that people choose.
fn is_name(pattern: &str) -> bool {
    matches!(pattern, GATE | AGENT | SINK | SERVER | UPSTREAM)
}

/// Whether this can be the name of an environment variable.
fn is_variable(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    name.bytes().all(allowed) && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

/// Whether this can be the name of an HTTP header.
fn is_header(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

fn begins_with(key: &Key, path: &[&str]) -> bool {
    let mut segments = key.segments();
    path.iter().all(|segment| segments.next().is_some_and(|pattern| fits(pattern, segment)))
}

/// The name that a section at the top of a file has everywhere else: `agents` is `agent`.
pub(crate) fn section_name(given: &str) -> &str {
    if given == "agents" { "agent" } else { given }
}

/// Looks a path up.
pub(crate) fn find(path: &[&str]) -> KeyMatch {
    let mut below = KEYS.iter().filter(|key| begins_with(key, path)).peekable();
    match below.peek() {
        None => KeyMatch::Unknown,
        Some(first) if first.segments().count() == path.len() => KeyMatch::Key(first),
        Some(_) => KeyMatch::Section,
    }
}

/// The key with this name, written with dots.
pub(crate) fn named(name: &str) -> Option<&'static Key> {
    // Settings are looked up by their whole name, often: that needs no pattern.
    static WHOLE: LazyLock<HashMap<&str, &Key>> =
        LazyLock::new(|| KEYS.iter().filter(|key| !key.is_pattern()).map(|key| (key.name, key)).collect());
    if let Some(key) = WHOLE.get(name) {
        return Some(key);
    }
    match find(&name.split('.').collect::<Vec<_>>()) {
        KeyMatch::Key(key) => Some(key),
        KeyMatch::Section | KeyMatch::Unknown => None,
    }
}

/// The names allowed in a section, with placeholders, each once.
fn patterns_below(section: &[&str]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for key in KEYS.iter().filter(|key| begins_with(key, section)) {
        if let Some(name) = key.segments().nth(section.len())
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

/// The message and the hint for a name that its section does not have.
pub(crate) fn unknown(section: &[&str], given: &str) -> (String, String) {
    let below = patterns_below(section);
    let within = |name: &str| section.iter().copied().chain([name]).collect::<Vec<_>>().join(".");
    match below.as_slice() {
        [PROFILE] => {
            let near = nearest(given, PROFILES.iter().copied());
            let all = || format!("profiles are {}", PROFILES.join(", "));
            let hint = near.map_or_else(all, |name| format!("did you mean `{}`?", within(name)));
            (format!("unknown profile `{given}`"), hint)
        }
        [REASON] => {
            let near = nearest(given, TAXONOMY.iter().map(|row| row.code));
            let all = || "`backstop reasons` lists them all".to_owned();
            let hint = near.map_or_else(all, |name| format!("did you mean `{}`?", within(name)));
            (format!("unknown reason `{given}`"), hint)
        }
        names if given.contains('.') && named(given).is_none() && names.iter().any(|name| is_name(name)) => {
            let hint = format!("write a name without a dot: `{}`", within(&given.replace('.', "-")));
            (format!("`{given}` cannot be a name here: it has a dot"), hint)
        }
        names => {
            let hint = if named(given).is_some() {
                format!("write it without quotes: {given} = …")
            } else if let Some(near) = nearest(given, names.iter().copied()) {
                format!("did you mean `{}`?", within(near))
            } else if let Some(near) = elsewhere(&within(given), given) {
                format!("did you mean `{near}`?")
            } else if section.is_empty() {
                format!("the sections are {}", names.join(", "))
            } else {
                format!("the keys of `{}` are {}", section.join("."), names.join(", "))
            };
            (format!("unknown key `{}`", within(given)), hint)
        }
    }
}

/// A key with this name in another section.
fn elsewhere(whole: &str, last: &str) -> Option<&'static str> {
    let plain = || KEYS.iter().filter(|key| !key.is_pattern());
    let leaf = |key: &Key| key.segments().last().unwrap_or_default();
    nearest(whole, plain().map(|key| key.name)).or_else(|| {
        let near = nearest(last, plain().map(leaf))?;
        plain().find(|key| leaf(key) == near).map(|key| key.name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_dot_is_not_read_as_its_first_half() {
        assert_eq!(find(&["mcp", "my.srv"]), KeyMatch::Unknown);
        assert_eq!(find(&["mcp", "my.srv", "command"]), KeyMatch::Unknown);
        let (message, hint) = unknown(&["mcp"], "my.srv");
        assert!(message.contains("`my.srv` cannot be a name here"), "{message}");
        assert_eq!(hint, "write a name without a dot: `mcp.my-srv`");
        assert!(unknown(&["gates"], "a.b").1.contains("gates.a-b"));
    }

    #[test]
    fn names_are_unique_and_no_key_is_a_section() {
        for (at, key) in KEYS.iter().enumerate() {
            assert!(
                !key.doc.is_empty() && !key.doc.contains('\n') && !key.doc.ends_with('.'),
                "{}",
                key.name
            );
            for other in &KEYS[at + 1..] {
                assert_ne!(key.name, other.name);
                assert!(!other.name.starts_with(&format!("{}.", key.name)), "{}", key.name);
                assert_ne!(key.variable_name(), other.variable_name());
            }
        }
    }

    #[test]
    fn a_path_leads_to_a_key_a_section_or_nothing() {
        assert_eq!(named("exec.timeout").unwrap().name, "exec.timeout");
        assert_eq!(named("profile.tool.on.rate_limited").unwrap().kind, ValueKind::Action);
        assert_eq!(find(&["exec"]), KeyMatch::Section);
        assert_eq!(find(&["profile", "tool"]), KeyMatch::Section);
        assert_eq!(find(&["profile", "tool", "on"]), KeyMatch::Section);
        for nothing in
            ["timeout", "exec.timout", "profile.comand", "profile.tool.on.nope", "exec.timeout.x", ""]
        {
            assert_eq!(find(&nothing.split('.').collect::<Vec<_>>()), KeyMatch::Unknown, "{nothing}");
        }
    }

    #[test]
    fn what_a_project_sets_without_trust_is_this_list_and_no_more() {
        let free: Vec<&str> = KEYS.iter().filter(|key| !key.needs_trust()).map(|key| key.name).collect();
        assert_eq!(free, ["log.format", "otel.service", "redact.env"]);
    }

    #[test]
    fn variables_are_for_what_is_one_value() {
        assert_eq!(named("exec.timeout").unwrap().variable().as_deref(), Some("BACKSTOP_EXEC_TIMEOUT"));
        assert_eq!(named("rules.packs").unwrap().variable(), None);
        assert_eq!(named("profile.tool.attempts").unwrap().variable(), None);
    }

    #[test]
    fn a_wrong_name_gets_the_nearest_right_one() {
        let hint = |section: &[&str], given: &str| unknown(section, given).1;
        assert_eq!(hint(&["exec"], "timout"), "did you mean `exec.timeout`?");
        assert_eq!(hint(&[], "exce"), "did you mean `exec`?");
        assert_eq!(hint(&[], "timeout"), "did you mean `exec.timeout`?");
        assert_eq!(hint(&["store"], "grace"), "did you mean `exec.grace`?");
        assert_eq!(hint(&["profile"], "comand"), "did you mean `profile.command`?");
        assert_eq!(
            hint(&["profile", "tool", "on"], "rate_limit"),
            "did you mean `profile.tool.on.rate_limited`?"
        );
        assert_eq!(hint(&[], "exec.timeout"), "write it without quotes: exec.timeout = …");
        assert_eq!(hint(&["log"], "zzzzzz"), "the keys of `log` are format");
        assert!(hint(&[], "zzzzzz").starts_with("the sections are exec, plan, isolation"));
    }
}
