//! An event of an agent's hooks.

use super::fault::runs_commands;
use crate::input::{InputError, cut, cut_start, parse, text};
use backstop_core::{Redactor, SafeText};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// How much of a name is kept.
const NAME_BYTES_MAX: usize = 200;
/// How much of a command is kept.
const COMMAND_BYTES_MAX: usize = 16 << 10;
/// How much of an error is kept: its end.
const ERROR_BYTES_MAX: usize = 1 << 20;
/// How long a path may be.
const PATH_BYTES_MAX: usize = 4 << 10;

/// What Copilot CLI calls the end of a tool call, in its settings: it does not tell it.
pub(super) const COPILOT_EVENT: &str = "postToolUse";

/// A tool call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFailure {
    /// The tool.
    pub tool: SafeText,
    /// The command, where the tool runs one.
    pub command: Option<SafeText>,
    /// The exit code, where there is one.
    pub exit: Option<i64>,
    /// What it said, without the line about the exit code.
    pub said: SafeText,
    /// The event that told of it, in whose name it is answered.
    pub event: &'static str,
}

impl ToolFailure {
    /// With every secret masked.
    pub fn masked(self, redactor: &Redactor) -> Self {
        let mask = |text: &SafeText| SafeText::new(redactor.redact(text.raw()).into_owned());
        Self {
            tool: mask(&self.tool),
            command: self.command.as_ref().map(mask),
            said: mask(&self.said),
            ..self
        }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A tool call failed.
    ToolFailed(ToolFailure),
    /// A tool call ended, and only the transcript says how.
    ToolEnded {
        /// The id of the call.
        call: String,
        /// What there is to say, should it have failed.
        failure: ToolFailure,
    },
    /// A tool is about to be called.
    BeforeTool {
        /// The tool.
        tool: String,
        /// The command, where the tool runs one.
        command: Option<String>,
    },
    /// The agent wants to stop.
    Stop {
        /// Whether it goes on because a hook held it; nothing where the agent does not say.
        held: Option<bool>,
    },
    /// A turn broke off.
    TurnFailed {
        /// What the agent calls it.
        error: SafeText,
        /// What is known of it.
        said: SafeText,
    },
    /// The session is over.
    SessionEnded {
        /// Why.
        reason: SafeText,
    },
    /// Something else, which needs no answer.
    Other,
}

/// An event, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEvent {
    /// What happened.
    pub event: Event,
    /// The event's name, as it came.
    pub name: SafeText,
    /// The session.
    pub session: SafeText,
    /// Where the session is written down.
    pub transcript: Option<PathBuf>,
    /// Whose models the session uses, where it says so.
    pub provider: Option<&'static str>,
}

impl AgentEvent {
    /// Reads an event. An event that nobody here knows is [`Event::Other`].
    pub fn read(bytes: &[u8]) -> Result<Self, InputError> {
        let fields = parse(bytes)?;
        // Copilot CLI names no event: what it is about tells it.
        let copilot = fields.contains_key("toolName") && fields.contains_key("toolResult");
        let name = text(&fields, "hook_event_name").or(copilot.then_some(COPILOT_EVENT));
        let Some(name) = name else {
            return Err(InputError::Missing { field: "hook_event_name", expected: "the name of an event" });
        };
        let named =
            |field: &str| SafeText::new(cut(text(&fields, field).unwrap_or_default(), NAME_BYTES_MAX));
        let event = match name {
            "PostToolUseFailure" if fields.get("is_interrupt") == Some(&Value::Bool(true)) => Event::Other,
            "PostToolUseFailure" => failed(&fields).map_or(Event::Other, Event::ToolFailed),
            "PostToolUse" => ended(&fields).unwrap_or(Event::Other),
            "AfterTool" => after_tool(&fields).map_or(Event::Other, Event::ToolFailed),
            COPILOT_EVENT => copilot_ended(&fields).map_or(Event::Other, Event::ToolFailed),
            "PreToolUse" => Event::BeforeTool {
                tool: cut(text(&fields, "tool_name").unwrap_or_default(), NAME_BYTES_MAX).to_owned(),
                command: command(&fields).map(str::to_owned),
            },
            "Stop" => Event::Stop { held: fields.get("stop_hook_active").and_then(Value::as_bool) },
            "StopFailure" => Event::TurnFailed {
                error: named("error"),
                said: SafeText::new(
                    ["error_details", "last_assistant_message"]
                        .iter()
                        .filter_map(|field| text_or_json(fields.get(*field)?))
                        .map(|text| cut_start(&text, ERROR_BYTES_MAX / 2).to_owned())
                        .collect::<Vec<String>>()
                        .join("\n"),
                ),
            },
            "SessionEnd" => Event::SessionEnded { reason: named("reason") },
            _ => Event::Other,
        };
        Ok(Self {
            event,
            name: SafeText::new(cut(name, NAME_BYTES_MAX)),
            session: named(if copilot { "sessionId" } else { "session_id" }),
            transcript: transcript(&fields),
            provider: text(&fields, "model").and_then(provider_of),
        })
    }
}

/// Whose model it is, by its name.
fn provider_of(model: &str) -> Option<&'static str> {
    let model = model.trim().to_ascii_lowercase();
    let last = model.rsplit('/').next().unwrap_or(&model);
    let known = [
        ("claude", "anthropic"),
        ("gpt", "openai"),
        ("codex", "openai"),
        ("o1", "openai"),
        ("o3", "openai"),
        ("o4", "openai"),
        ("gemini", "google"),
    ];
    known.iter().find(|(prefix, _)| last.starts_with(prefix)).map(|(_, provider)| *provider)
}

fn command(fields: &Map<String, Value>) -> Option<&str> {
    let input = fields.get("tool_input")?.as_object()?;
    let command = input.get("command").or_else(|| input.get("cmd"))?;
    Some(cut(command.as_str()?, COMMAND_BYTES_MAX))
}

fn tool(fields: &Map<String, Value>) -> SafeText {
    SafeText::new(cut(text(fields, "tool_name").unwrap_or_default(), NAME_BYTES_MAX))
}

/// Claude Code's: `error` is `Exit code 3`, then what was written.
fn failed(fields: &Map<String, Value>) -> Option<ToolFailure> {
    let error = text_or_json(fields.get("error")?)?;
    let (exit, rest) = exit_line(&error);
    let framed = named_exit(&error).filter(|_| exit.is_none() && runs_commands(tool(fields).raw()));
    let command = command(fields).map(SafeText::new);
    let inside = if framed.is_some() { without_frame(&error) } else { without_tags(rest).to_owned() };
    let said = SafeText::new(cut_start(&inside, ERROR_BYTES_MAX));
    let exit = exit.or(framed);
    Some(ToolFailure { tool: tool(fields), command, exit, said, event: "PostToolUseFailure" })
}

/// Gemini CLI's: every tool call, with what its model is told. That a command failed stands there
/// as a line of its own; that another tool did, in `error`.
fn after_tool(fields: &Map<String, Value>) -> Option<ToolFailure> {
    let response = fields.get("tool_response")?.as_object()?;
    let said = text_or_json(response.get("llmContent")?)?;
    let exit = named_exit(&said).filter(|_| runs_commands(tool(fields).raw()));
    let error = response.get("error").filter(|error| !error.is_null()).and_then(text_or_json);
    if exit.is_none() && error.is_none() {
        return None;
    }
    let said = without_frame(&said);
    let said = SafeText::new(cut_start(&error.unwrap_or(said), ERROR_BYTES_MAX));
    let command = command(fields).map(SafeText::new);
    Some(ToolFailure { tool: tool(fields), command, exit, said, event: "AfterTool" })
}

/// Copilot CLI's: every tool call. A command that failed has succeeded as a tool, and its exit code
/// is in the last line.
fn copilot_ended(fields: &Map<String, Value>) -> Option<ToolFailure> {
    let result = fields.get("toolResult")?.as_object()?;
    let said = text_or_json(result.get("textResultForLlm")?)?;
    let last = said.trim_end().rsplit('\n').next().unwrap_or_default();
    let marked = last.strip_suffix('>').and_then(|last| last.rsplit_once(" completed with exit code "));
    let exit = marked.and_then(|(_, code)| code.parse::<i64>().ok()).filter(|code| *code != 0);
    let is_refused = matches!(result.get("resultType").and_then(Value::as_str), Some("failure" | "error"));
    if exit.is_none() && !is_refused {
        return None;
    }
    let given = fields.get("toolArgs").and_then(|args| match args {
        Value::String(text) => serde_json::from_str(text).ok(),
        other => Some(other.clone()),
    });
    let command = given
        .and_then(|args| args.get("command")?.as_str().map(|text| cut(text, COMMAND_BYTES_MAX).to_owned()));
    let body = said.trim_end().strip_suffix(last).filter(|_| exit.is_some()).unwrap_or(&said);
    Some(ToolFailure {
        tool: SafeText::new(cut(text(fields, "toolName").unwrap_or_default(), NAME_BYTES_MAX)),
        command: command.map(SafeText::new),
        exit,
        said: SafeText::new(cut_start(body, ERROR_BYTES_MAX)),
        event: COPILOT_EVENT,
    })
}

/// The exit code of a line of its own, as Gemini CLI and Qwen Code tell it to their models:
/// `Exit Code: 3`.
fn named_exit(text: &str) -> Option<i64> {
    let mut codes =
        text.lines().filter_map(|line| line.trim().strip_prefix("Exit Code: ")?.trim().parse::<i64>().ok());
    codes.next_back().filter(|code| *code != 0)
}

/// What a command wrote, without the lines that Gemini CLI and Qwen Code put around it.
fn without_frame(text: &str) -> String {
    const FRAME: [&str; 8] = [
        "Command: ",
        "Directory: ",
        "Error: (none)",
        "Exit Code: ",
        "Signal: ",
        "Process Group PGID: ",
        "<untrusted_context>",
        "</untrusted_context>",
    ];
    let lines = text.lines().filter(|line| !FRAME.iter().any(|frame| line.starts_with(frame)));
    lines.map(|line| line.strip_prefix("Output: ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// Codex's. Of a command there is the bare output, in which nothing can be believed about how it
/// ended: that stands in the transcript. Other answers say that a tool failed, by an exit code or
/// by a word.
fn ended(fields: &Map<String, Value>) -> Option<Event> {
    let failure = |exit: Option<i64>, text: &str| ToolFailure {
        tool: tool(fields),
        command: command(fields).map(SafeText::new),
        exit,
        said: SafeText::new(cut_start(text, ERROR_BYTES_MAX)),
        event: "PostToolUse",
    };
    match fields.get("tool_response")? {
        Value::String(text) => {
            // Of other tools no transcript says how they ended.
            let call = text_id(fields, "tool_use_id").filter(|_| runs_commands(tool(fields).raw()))?;
            Some(Event::ToolEnded { call, failure: failure(None, text) })
        }
        Value::Object(inner) => {
            let code = |of: &Map<String, Value>| {
                ["exit_code", "exitCode"].iter().find_map(|key| of.get(*key)?.as_i64())
            };
            let nested = inner.get("metadata").and_then(Value::as_object);
            let refused =
                ["is_error", "isError"].iter().any(|key| inner.get(*key) == Some(&Value::Bool(true)));
            let exit = code(inner).or_else(|| nested.and_then(code)).or(refused.then_some(1));
            let parts = ["output", "stdout", "stderr", "error"];
            let text =
                parts.iter().filter_map(|key| inner.get(*key)?.as_str()).collect::<Vec<_>>().join("\n");
            let exit = exit.filter(|code| *code != 0)?;
            Some(Event::ToolFailed(failure(Some(exit), &text)))
        }
        _ => None,
    }
}

/// An id, which is nothing where it is cut.
fn text_id(fields: &Map<String, Value>, name: &str) -> Option<String> {
    text(fields, name).filter(|id| !id.is_empty() && id.len() <= NAME_BYTES_MAX).map(str::to_owned)
}

fn transcript(fields: &Map<String, Value>) -> Option<PathBuf> {
    let path = text(fields, "transcript_path").filter(|path| path.len() <= PATH_BYTES_MAX)?;
    Some(PathBuf::from(path)).filter(|path| path.is_absolute())
}

/// What a tool of Claude Code said, without the tags that it puts around that.
fn without_tags(text: &str) -> &str {
    let inside =
        text.trim().strip_prefix("<tool_use_error>").and_then(|rest| rest.strip_suffix("</tool_use_error>"));
    inside.unwrap_or(text)
}

/// The exit code that the first line names, and the rest. `Exit code 3`, `Exit code: 3`, `Process
/// exited with code 3`.
fn exit_line(text: &str) -> (Option<i64>, &str) {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let lower = first.trim().to_ascii_lowercase();
    let code = ["exit code:", "exit code", "process exited with code"]
        .iter()
        .find_map(|before| lower.strip_prefix(before)?.trim().parse::<i64>().ok());
    match code {
        Some(code) => (Some(code), rest),
        None => (None, text),
    }
}

/// A text, or what a value is as JSON.
fn text_or_json(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(value: &Value) -> Event {
        AgentEvent::read(value.to_string().as_bytes()).unwrap().event
    }

    #[test]
    fn a_failing_tool_is_read_in_both_dialects() {
        let claude = json!({"hook_event_name": "PostToolUseFailure", "session_id": "s", "tool_name": "Bash",
            "tool_input": {"command": "npm test"}, "error": "Exit code 3\nboom", "is_interrupt": false});
        let Event::ToolFailed(failed) = read(&claude) else { panic!() };
        assert_eq!((failed.exit, failed.said.raw(), failed.event), (Some(3), "boom", "PostToolUseFailure"));
        assert_eq!(failed.command.unwrap().raw(), "npm test");
        let tagged = json!({"hook_event_name": "PostToolUseFailure", "tool_name": "Read",
            "error": "<tool_use_error>File does not exist.</tool_use_error>"});
        let Event::ToolFailed(failed) = read(&tagged) else { panic!() };
        assert_eq!(failed.said.raw(), "File does not exist.");
        let codex = [
            json!({"exit_code": 3, "output": "boom"}),
            json!({"metadata": {"exit_code": 3}, "output": "boom"}),
            json!({"is_error": true, "output": "boom"}),
        ];
        for response in codex {
            let event =
                json!({"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_response": response});
            let Event::ToolFailed(failed) = read(&event) else { panic!("{response}") };
            assert_eq!((failed.said.raw(), failed.event), ("boom", "PostToolUse"), "{response}");
        }
    }

    #[test]
    fn the_others_tell_a_failed_command_as_they_tell_their_models() {
        let framed = "Command: npm test\nDirectory: (root)\nOutput: boom\nError: (none)\nExit Code: 3\nSignal: (none)\nProcess Group PGID: 23689";
        let qwen = json!({"hook_event_name": "PostToolUseFailure", "session_id": "q", "tool_name": "run_shell_command",
            "tool_input": {"command": "npm test"}, "error": framed, "is_interrupt": false});
        let content = "<untrusted_context>\nOutput: boom\nExit Code: 3\nProcess Group PGID: 31380\n</untrusted_context>";
        let gemini = json!({"hook_event_name": "AfterTool", "session_id": "g", "tool_name": "run_shell_command",
            "tool_input": {"command": "npm test"}, "tool_response": {"llmContent": content, "returnDisplay": "boom"}});
        let copilot = json!({"sessionId": "c", "toolName": "bash", "toolArgs": {"command": "npm test"},
            "toolResult": {"resultType": "success", "textResultForLlm": "boom\n<shellId: 0 completed with exit code 3>"}});
        for (event, name) in
            [(&qwen, "PostToolUseFailure"), (&gemini, "AfterTool"), (&copilot, "postToolUse")]
        {
            let whole = AgentEvent::read(event.to_string().as_bytes()).unwrap();
            assert!(!whole.session.is_empty(), "{event}");
            let Event::ToolFailed(failed) = whole.event else { panic!("{event}") };
            assert_eq!(
                (failed.exit, failed.said.raw().trim(), failed.event),
                (Some(3), "boom", name),
                "{event}"
            );
            assert_eq!(failed.command.unwrap().raw(), "npm test", "{event}");
        }
        let fine = [
            json!({"hook_event_name": "AfterTool", "tool_name": "run_shell_command", "tool_response": {"llmContent": "Output: Exit Code: 3 is bad"}}),
            json!({"hook_event_name": "AfterTool", "tool_name": "read_file", "tool_response": {"llmContent": "Exit Code: 3\n"}}),
            json!({"sessionId": "c", "toolName": "bash", "toolArgs": {}, "toolResult": {"resultType": "success", "textResultForLlm": "<shellId: 0 completed with exit code 3> was there\n<shellId: 1 completed with exit code 0>"}}),
            json!({"sessionId": "c", "toolName": "view", "toolResult": {"resultType": "success", "textResultForLlm": "x"}}),
        ];
        for event in fine {
            assert_eq!(read(&event), Event::Other, "{event}");
        }
    }

    #[test]
    fn what_a_command_printed_says_nothing_about_how_it_ended() {
        for response in ["boom\n", "Exit code: 3\nboom", "Process exited with code 3\nboom", ""] {
            let event = json!({"hook_event_name": "PostToolUse", "session_id": "s", "transcript_path": "/x/t.jsonl", "tool_name": "Bash",
                "tool_input": {"command": "npm test"}, "tool_response": response, "tool_use_id": "call_1"});
            let read = AgentEvent::read(event.to_string().as_bytes()).unwrap();
            assert_eq!(read.transcript, Some(PathBuf::from("/x/t.jsonl")));
            let Event::ToolEnded { call, failure } = read.event else { panic!("{response}") };
            assert_eq!((call.as_str(), failure.exit, failure.said.raw()), ("call_1", None, response));
        }
        let unknown = json!({"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_response": "Exit code: 3\nboom"});
        assert_eq!(read(&unknown), Event::Other);
        let elsewhere = json!({"hook_event_name": "PostToolUse", "transcript_path": "t.jsonl"});
        assert_eq!(AgentEvent::read(elsewhere.to_string().as_bytes()).unwrap().transcript, None);
    }

    #[test]
    fn what_went_well_or_was_interrupted_needs_no_answer() {
        let fine = [
            json!({"hook_event_name": "PostToolUse", "tool_response": {"stdout": "error", "interrupted": false}}),
            json!({"hook_event_name": "PostToolUse", "tool_response": {"exit_code": 0}}),
            json!({"hook_event_name": "PostToolUse"}),
            json!({"hook_event_name": "PostToolUseFailure", "error": "Exit code 1", "is_interrupt": true}),
            json!({"hook_event_name": "PostToolUseFailure"}),
            json!({"hook_event_name": "Notification"}),
            json!({"hook_event_name": "\u{1b}[2J"}),
        ];
        for event in fine {
            assert_eq!(read(&event), Event::Other, "{event}");
        }
        assert!(AgentEvent::read(b"{}").is_err() && AgentEvent::read(b"{\"hook_event_name\":7}").is_err());
    }

    #[test]
    fn a_model_says_whose_it_is() {
        let provider = |model: &str| {
            let event = json!({"hook_event_name": "Stop", "model": model});
            AgentEvent::read(event.to_string().as_bytes()).unwrap().provider
        };
        assert_eq!(provider("gpt-5.1-codex"), Some("openai"));
        assert_eq!(provider("anthropic/claude-opus-4"), Some("anthropic"));
        assert_eq!(provider("llama"), None);
    }

    proptest! {
        #[test]
        fn nothing_that_comes_in_makes_it_panic(bytes in any::<Vec<u8>>(), text in any::<String>(), name in "(Post|Pre)ToolUse(Failure)?|Stop(Failure)?") {
            let _ = AgentEvent::read(&bytes);
            let event = json!({"hook_event_name": name, "session_id": text, "tool_name": text, "model": text, "error": text,
                "tool_input": {"command": text}, "tool_response": text, "error_details": text});
            let _ = AgentEvent::read(event.to_string().as_bytes());
        }
    }
}
