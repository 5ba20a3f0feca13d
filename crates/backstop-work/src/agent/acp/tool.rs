//! Tool calls of a turn as lines for the phase's log: what was called, and of what failed the end
//! of its output. Agents put the output and the exit code into different fields, and some call a
//! command that failed completed.

use backstop_core::SafeText;
use serde_json::Value;
use std::collections::VecDeque;

/// How much of a title is shown.
const TITLE_CHARS_MAX: usize = 200;
/// How many calls are remembered by their titles.
const CALLS_MAX: usize = 64;
/// How many lines of a failed call's output are shown, and how much of each.
const OUTPUT_LINES_MAX: usize = 10;
const OUTPUT_CHARS_MAX: usize = 300;
/// Where agents put what a tool printed, apart from the protocol's `content`.
const OUTPUTS: &[&str] = &[
    "/rawOutput",
    "/rawOutput/formatted_output",
    "/rawOutput/aggregated_output",
    "/rawOutput/metadata/output",
    "/rawOutput/output",
    "/rawOutput/error",
    "/rawOutput/content",
];
/// Where they put its exit code.
const EXITS: &[&str] = &[
    "/rawOutput/exit_code",
    "/rawOutput/exitCode",
    "/rawOutput/metadata/exit",
    "/rawOutput/contents/0/exitCode",
];

/// The tool calls of a turn, by their ids.
#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    titles: VecDeque<(String, String)>,
}

impl ToolCalls {
    /// Takes a tool call. Gives the line for the log.
    pub(super) fn began(&mut self, update: &Value) -> String {
        let title = title(update).unwrap_or_else(|| "a tool".to_owned());
        self.remember(id(update), title.clone());
        format!("> {title}")
    }

    fn remember(&mut self, id: String, title: String) {
        if self.titles.len() >= CALLS_MAX {
            self.titles.pop_front();
        }
        self.titles.push_back((id, title));
    }

    /// Takes what became of one. Gives the lines for the log: a title that says more than the
    /// first, and the failure.
    pub(super) fn updated(&mut self, update: &Value) -> Vec<String> {
        let mut lines = Vec::new();
        let (id, named) = (id(update), title(update));
        let status = update.get("status").and_then(Value::as_str);
        let is_over = matches!(status, Some("completed" | "failed"));
        let known = self.titles.iter_mut().find(|(known, _)| *known == id);
        let title = match (known, named) {
            // The title of the end says what became of it.
            (Some((_, before)), Some(title)) if !is_over && title != *before => {
                lines.push(format!("> {title}"));
                before.clone_from(&title);
                title
            }
            (Some((_, before)), _) => before.clone(),
            // Gemini tells of no call that it asked a permission for.
            (None, Some(title)) => {
                lines.push(format!("> {title}"));
                self.remember(id, title.clone());
                title
            }
            (None, None) => "the tool".to_owned(),
        };
        let exit = EXITS.iter().find_map(|path| update.pointer(path)?.as_i64());
        let has_failed = status == Some("failed") || (is_over && exit.is_some_and(|code| code != 0));
        if has_failed {
            let exit = exit.map(|code| format!(" (exit code {code})")).unwrap_or_default();
            lines.push(format!("  failed: {title}{exit}"));
            lines.extend(output_end(update).into_iter().map(|line| format!("  | {line}")));
        }
        lines
    }
}

fn id(update: &Value) -> String {
    SafeText::new(update.get("toolCallId").and_then(Value::as_str).unwrap_or_default()).line(TITLE_CHARS_MAX)
}

/// The command that it runs, where it says so, else its title.
fn title(update: &Value) -> Option<String> {
    let command = update.pointer("/rawInput/command").and_then(Value::as_str);
    let title = command.or_else(|| update.get("title")?.as_str())?;
    let title = SafeText::new(title).line(TITLE_CHARS_MAX);
    (!title.trim().is_empty()).then_some(title)
}

/// The last lines of what a tool printed.
fn output_end(update: &Value) -> Vec<String> {
    let content = update.get("content").and_then(Value::as_array).into_iter().flatten();
    let content: Vec<&str> = content.filter_map(|part| part.pointer("/content/text")?.as_str()).collect();
    let raw = || OUTPUTS.iter().find_map(|path| update.pointer(path)?.as_str()).unwrap_or_default();
    let text =
        if content.iter().all(|text| text.trim().is_empty()) { raw().to_owned() } else { content.join("\n") };
    let is_said = |line: &&str| !line.trim().is_empty() && !line.starts_with("```");
    let mut lines: Vec<String> = text
        .lines()
        .rev()
        .filter(is_said)
        .take(OUTPUT_LINES_MAX)
        .map(|line| SafeText::new(line).line(OUTPUT_CHARS_MAX))
        .collect();
    lines.reverse();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_output_of_a_failed_call_is_logged_wherever_an_agent_puts_it() {
        let call = |title: &str| json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": title});
        let text = |text: &str| json!([{"type": "content", "content": {"type": "text", "text": text}}]);
        for (agent, update, want) in [
            (
                "claude",
                json!({"status": "failed", "rawOutput": "Exit code 3\nboom", "content": text("```\nExit code 3\nboom\n```")}),
                "  failed: echo\n  | Exit code 3\n  | boom",
            ),
            (
                "codex",
                json!({"status": "failed", "rawOutput": {"stdout": "", "exit_code": 3, "aggregated_output": "boom\n"}}),
                "  failed: echo (exit code 3)\n  | boom",
            ),
            (
                "opencode",
                json!({"status": "completed", "content": text("boom\n"), "rawOutput": {"output": "boom\n", "metadata": {"exit": 3}}}),
                "  failed: echo (exit code 3)\n  | boom",
            ),
            (
                "copilot",
                json!({"status": "completed", "content": text("boom\n<shellId: 0 completed with exit code 3>"),
                    "rawOutput": {"content": "boom", "contents": [{"type": "shell_exit", "exitCode": 3, "outputPreview": "boom\n"}]}}),
                "  failed: echo (exit code 3)\n  | boom\n  | <shellId: 0 completed with exit code 3>",
            ),
            (
                "qwen",
                json!({"status": "failed", "content": [], "rawOutput": {"type": "shell_result", "output": "boom", "exitCode": 3}}),
                "  failed: echo (exit code 3)\n  | boom",
            ),
            ("fine", json!({"status": "completed", "rawOutput": {"exitCode": 0, "output": "fine"}}), ""),
            ("silent", json!({"status": "failed"}), "  failed: echo"),
        ] {
            let mut calls = ToolCalls::default();
            assert_eq!(calls.began(&call("echo")), "> echo");
            let mut update = update;
            update["toolCallId"] = json!("t");
            assert_eq!(calls.updated(&update).join("\n"), want, "{agent}");
        }
    }

    #[test]
    fn a_title_that_says_more_is_logged_once_and_output_is_bounded() {
        let mut calls = ToolCalls::default();
        calls.began(&json!({"toolCallId": "t", "title": "Terminal"}));
        let named = json!({"toolCallId": "t", "title": "echo boom >&2; exit 3"});
        assert_eq!(calls.updated(&named), ["> echo boom >&2; exit 3"]);
        assert!(calls.updated(&named).is_empty());
        let described =
            json!({"toolCallId": "d", "title": "Runs a command", "rawInput": {"command": "make"}});
        assert_eq!(calls.began(&described), "> make");
        let end = json!({"toolCallId": "t", "status": "completed", "title": "../out/result.json"});
        assert!(calls.updated(&end).is_empty());
        let only_end = json!({"toolCallId": "u", "status": "completed", "title": "make test"});
        assert_eq!(calls.updated(&only_end), ["> make test"]);
        let long = "x\n".repeat(5000) + &"y".repeat(5000);
        let lines = calls.updated(&json!({"toolCallId": "t", "status": "failed", "rawOutput": long}));
        assert_eq!(lines.len(), 1 + OUTPUT_LINES_MAX);
        assert!(lines.iter().all(|line| line.chars().count() < 2 * OUTPUT_CHARS_MAX));
        (0..1000).for_each(|at| drop(calls.began(&json!({"toolCallId": at.to_string()}))));
        assert_eq!(calls.titles.len(), CALLS_MAX);
    }
}
