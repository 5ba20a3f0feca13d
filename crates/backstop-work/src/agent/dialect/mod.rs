//! What an agent writes to its standard output, in its own dialect.
//!
//! One file for each dialect turns its output into an [`AgentOutput`]: whether it reports success
//! or failure, its words, and what else it tells. Nothing here judges; a line that is not
//! understood is passed over.

mod claude;
mod codex;
pub(super) mod copilot;
mod gemini;
mod opencode;
mod qwen;

use super::definition::OutputDialect;
use backstop_core::{LimitWindow, Reason, SafeText, Usage};
use backstop_exec::HeadTail;
use serde_json::Value;

/// The longest line that is read as an event.
const LINE_BYTES_MAX: usize = 2 << 20;
/// How much of an agent's last words is kept.
const MESSAGE_BYTES_MAX: usize = 4 << 10;
/// How much of the end of plain text is taken for last words.
const LAST_WORDS_BYTES_MAX: usize = 1 << 10;
/// The longest id of a session.
const SESSION_BYTES_MAX: usize = 200;
/// How many denials are kept, and how much of each.
const DENIALS_MAX: usize = 32;
const DENIAL_CHARS_MAX: usize = 300;

/// What a dialect reports about the end.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Report {
    /// Nothing.
    #[default]
    Unsaid,
    /// That it worked.
    Succeeded,
    /// That it failed.
    Failed(Failure),
}

/// A failure that a dialect reports.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Failure {
    /// The status that the provider answered with.
    pub(super) status: Option<u16>,
    /// The words.
    pub(super) text: String,
    /// Whether the words are the provider's, though no status is told.
    pub(super) is_answer: bool,
    /// The fields that say what it is, as the agent names them; nothing that the work put there.
    pub(super) fields: Value,
    /// When the limit ends, in seconds since 1970.
    pub(super) resets_at: Option<i64>,
    /// The window that the limit counts in.
    pub(super) window: Option<LimitWindow>,
    /// The model that the limit is of, where a field says so.
    pub(super) model: Option<&'static str>,
    /// What it is, where a code of the agent's own says so.
    pub(super) reason: Option<Reason>,
}

impl Failure {
    /// A failure of which only words are known, and the status that they name.
    pub(super) fn from_words(words: String) -> Self {
        Self { status: status_in(&words), text: words, ..Self::default() }
    }
}

/// What an agent wrote to its standard output.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct AgentOutput {
    /// What it reports about the end.
    pub(super) report: Report,
    /// Its own words, in order, without what tools printed.
    pub(super) words: String,
    /// The words that stand for the whole.
    pub(super) last_words: Option<String>,
    /// An answer that was held to a schema.
    pub(super) structured: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) denials: Vec<SafeText>,
    pub(super) usage: Option<Usage>,
    /// Whether `usage` is that of the whole session, what was used before it was continued
    /// included.
    pub(super) usage_of_session: bool,
}

impl AgentOutput {
    /// What this run of a session used, where `before` is what its earlier ones did.
    pub(super) fn own_usage(&self, before: Usage) -> Option<Usage> {
        let usage = self.usage?;
        Some(if self.usage_of_session { usage.since(before) } else { usage })
    }

    pub(super) fn add_text(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.words.push_str(text);
            self.words.push('\n');
            self.last_words = Some(text.to_owned());
        }
    }

    pub(super) fn add_denial(&mut self, text: String) {
        if self.denials.len() < DENIALS_MAX {
            self.denials.push(SafeText::new(SafeText::new(text).line(DENIAL_CHARS_MAX)));
        }
    }

    /// What the agent answers where a text is asked for: all that it printed, or its last message.
    pub(super) fn answer(&self, dialect: OutputDialect) -> Option<String> {
        let text = match dialect {
            OutputDialect::Text => Some(self.words.as_str()),
            _ => self.last_words.as_deref(),
        };
        text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// The agent's last words, cut.
    pub(super) fn message(&self) -> Option<SafeText> {
        let text = self.last_words.as_deref()?.trim();
        let from = text.ceil_char_boundary(text.len().saturating_sub(MESSAGE_BYTES_MAX));
        (!text.is_empty()).then(|| SafeText::new(&text[from..]))
    }
}

/// Reads an agent's standard output. What lies between the kept beginning and the kept end is not
/// read.
pub(super) fn read_output(dialect: OutputDialect, stdout: &HeadTail) -> AgentOutput {
    let (before, after) = stdout.tail();
    let mut text = stdout.head().to_vec();
    if stdout.left_out_bytes() > 0 {
        // Neither half of a torn line is an event, and no result reaches from one to the other: no
        // JSON holds a NUL.
        text.extend_from_slice(b"\n\0\n");
    }
    text.extend_from_slice(before);
    text.extend_from_slice(after);
    let mut output = AgentOutput::default();
    match dialect {
        OutputDialect::ClaudeJson => claude::read_output(&events(&text), &mut output),
        OutputDialect::CodexJsonl => codex::read_output(&events(&text), &mut output),
        OutputDialect::OpencodeJsonl => opencode::read_output(&events(&text), &mut output),
        OutputDialect::GeminiJsonl => gemini::read_output(&events(&text), &mut output),
        OutputDialect::CopilotJsonl => copilot::read_output(&events(&text), &mut output),
        OutputDialect::QwenJson => qwen::read_output(&events(&text), &mut output),
        // What it said was read while it ran.
        OutputDialect::Acp => {}
        OutputDialect::Text => {
            output.words = String::from_utf8_lossy(&text).into_owned();
            let words = output.words.trim_end();
            let from = words.ceil_char_boundary(words.len().saturating_sub(LAST_WORDS_BYTES_MAX));
            output.last_words = Some(words[from..].to_owned());
        }
    }
    output
}

/// The id of the session that an event names.
pub(super) fn session_of(dialect: OutputDialect, line: &[u8]) -> Option<String> {
    let event = event_of(line)?;
    let id = match dialect {
        OutputDialect::ClaudeJson | OutputDialect::QwenJson | OutputDialect::GeminiJsonl => {
            text(&event, "/session_id")
        }
        OutputDialect::CodexJsonl if text(&event, "/type") == Some("thread.started") => {
            text(&event, "/thread_id")
        }
        OutputDialect::OpencodeJsonl => text(&event, "/sessionID"),
        OutputDialect::CopilotJsonl => text(&event, "/sessionId"),
        OutputDialect::CodexJsonl | OutputDialect::Acp | OutputDialect::Text => None,
    };
    id.filter(|id| is_session_id(id)).map(str::to_owned)
}

/// The event that a line is.
fn event_of(line: &[u8]) -> Option<Value> {
    let line = line.trim_ascii();
    let is_event = line.starts_with(b"{") && line.len() <= LINE_BYTES_MAX;
    is_event.then(|| serde_json::from_slice(line).ok()).flatten()
}

/// The turn that an event belongs to, where the agent uses a tool in it; empty where turns have no
/// names.
pub(super) fn tool_turn(dialect: OutputDialect, line: &[u8]) -> Option<String> {
    let event = event_of(line)?;
    match dialect {
        OutputDialect::ClaudeJson | OutputDialect::QwenJson if text(&event, "/type") == Some("assistant") => {
            let content = event.pointer("/message/content").and_then(Value::as_array)?;
            let uses_tool = content.iter().any(|part| text(part, "/type") == Some("tool_use"));
            uses_tool.then(|| text(&event, "/message/id").unwrap_or_default().to_owned())
        }
        OutputDialect::CodexJsonl if text(&event, "/type") == Some("item.completed") => {
            let kind = text(&event, "/item/type");
            let is_tool = !matches!(kind, Some("agent_message" | "reasoning" | "error") | None);
            is_tool.then(String::new)
        }
        OutputDialect::OpencodeJsonl if text(&event, "/type") == Some("step_finish") => {
            (text(&event, "/part/reason") == Some("tool-calls")).then(String::new)
        }
        OutputDialect::GeminiJsonl if text(&event, "/type") == Some("tool_use") => Some(String::new()),
        OutputDialect::CopilotJsonl if text(&event, "/type") == Some("assistant.message") => {
            let asked = event.pointer("/data/toolRequests").and_then(Value::as_array)?;
            (!asked.is_empty()).then(String::new)
        }
        _ => None,
    }
}

/// A request of the agent's model that failed and that the agent repeats by itself, where an event
/// says so.
pub(super) fn failed_request(dialect: OutputDialect, line: &[u8]) -> Option<Failure> {
    match dialect {
        OutputDialect::CodexJsonl => codex::repeated(&event_of(line)?),
        OutputDialect::OpencodeJsonl => opencode::broken_off(&event_of(line)?),
        OutputDialect::CopilotJsonl => copilot::failed_request(&event_of(line)?),
        _ => None,
    }
}

/// The failure of an answer that OpenCode's connection lost before its first word.
pub(super) fn lost_answer() -> Failure {
    opencode::lost()
}

/// Whether a line is an event which says that the agent goes on, and not that it tries again.
pub(super) fn is_progress(dialect: OutputDialect, line: &[u8]) -> bool {
    if !line.trim_ascii_start().starts_with(b"{\"") {
        return false;
    }
    match dialect {
        OutputDialect::CopilotJsonl => event_of(line).is_some_and(|event| copilot::is_progress(&event)),
        OutputDialect::QwenJson => !qwen::is_retry(line),
        _ => true,
    }
}

/// The tokens that an agent wrote to a file of its own, where its dialect has one: of the whole
/// session.
pub(super) fn usage_file(dialect: OutputDialect, bytes: &[u8]) -> Option<Usage> {
    match dialect {
        OutputDialect::CopilotJsonl => copilot::usage_file(bytes),
        _ => None,
    }
}

/// Whether this can be the id of a session. It becomes a word of a command line: no option, no
/// path, no control.
pub(super) fn is_session_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    id.len() <= SESSION_BYTES_MAX
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.chars().all(is_plain)
}

/// The events of a text: one a line, or all of them in one array or object.
fn events(text: &[u8]) -> Vec<Value> {
    let lines = text.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    let objects = lines.filter(|l| l.starts_with(b"{") && l.len() <= LINE_BYTES_MAX);
    let found: Vec<Value> = objects.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    if !found.is_empty() {
        return found;
    }
    match serde_json::from_slice(text.trim_ascii()) {
        Ok(Value::Array(events)) => events,
        Ok(event @ Value::Object(_)) => vec![event],
        _ => found,
    }
}

fn text<'v>(value: &'v Value, path: &str) -> Option<&'v str> {
    value.pointer(path).and_then(Value::as_str)
}

fn number(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or(0)
}

/// The status that an agent's words name: `unexpected status 401 Unauthorized`, `last status: 429`,
/// `(HTTP 401)`, or the first number of them: `[API Error: 429 …`, `Error: 529 Overloaded`.
pub(super) fn status_in(words: &str) -> Option<u16> {
    const MARKS: [&str; 5] =
        ["unexpected status ", "last status: ", "failed with status ", "(HTTP ", "Last error: "];
    let read = |text: &str| -> Option<u16> {
        let digits = text.get(..3).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        let ends = text[3..].chars().next().is_none_or(|c| !c.is_ascii_alphanumeric());
        digits.parse().ok().filter(|status| ends && (400..600).contains(status))
    };
    let marked = MARKS.iter().find_map(|mark| words.split_once(mark)).and_then(|(_, after)| read(after));
    let begins = || {
        let bare = words.trim_start().trim_start_matches('[');
        let bare = bare.strip_prefix("API ").unwrap_or(bare);
        read(bare.strip_prefix("Error: ").unwrap_or(bare).trim_start())
    };
    marked.or_else(begins)
}

fn status(value: Option<&Value>) -> Option<u16> {
    let status = value?;
    let number = status.as_u64().or_else(|| status.as_str()?.parse().ok())?;
    u16::try_from(number).ok().filter(|n| (100..1000).contains(n))
}
