//! What an agent says while it works, as text: its words and the tools that it uses, out of the
//! events that it prints as JSON.

use backstop_core::SafeText;
use serde_json::Value;

/// How much of a tool's arguments is shown.
const TOOL_CHARS_MAX: usize = 120;

/// A line of an agent's output as people read it; nothing for an event that says nothing to them.
/// What is no JSON is shown as it is.
pub fn agent_words(line: &str) -> Option<String> {
    let trimmed = line.trim_end();
    if !trimmed.starts_with('{') {
        return Some(SafeText::new(trimmed).terminal());
    }
    let Ok(event) = serde_json::from_str::<Value>(trimmed) else {
        return Some(SafeText::new(trimmed).terminal());
    };
    let mut said = Vec::new();
    // Claude Code: a message with parts.
    if event["type"] == "assistant" {
        for part in event["message"]["content"].as_array().into_iter().flatten() {
            said.extend(part["text"].as_str().map(str::to_owned));
            said.extend(part["name"].as_str().map(|name| tool(name, &part["input"])));
        }
    }
    // Codex: items.
    if event["type"] == "item.completed" || event["type"] == "item.started" {
        let item = &event["item"];
        let is_over = event["type"] == "item.completed";
        match item["type"].as_str().unwrap_or_default() {
            "agent_message" | "reasoning" if is_over => said.extend(item["text"].as_str().map(str::to_owned)),
            "command_execution" if !is_over => {
                said.extend(item["command"].as_str().map(|line| tool("run", &line.into())));
            }
            _ => {}
        }
    }
    // opencode: parts.
    let part = &event["part"];
    match event["type"].as_str().unwrap_or_default() {
        "text" => said.extend(part["text"].as_str().map(str::to_owned)),
        "tool_use" => said.extend(part["tool"].as_str().map(|name| tool(name, &part["state"]["input"]))),
        _ => {}
    }
    let text = said.join("\n");
    (!text.trim().is_empty()).then(|| SafeText::new(text.trim_end()).terminal())
}

/// A tool with the first of its arguments.
fn tool(name: &str, input: &Value) -> String {
    let first = match input {
        Value::String(text) => text.clone(),
        Value::Object(fields) => fields.values().find_map(Value::as_str).unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    format!("[{name}] {}", SafeText::new(first).line(TOOL_CHARS_MAX)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_agents_are_read_as_words() {
        for (line, want) in [
            (
                r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I look."},{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}"#,
                Some("I look.\n[Bash] ls"),
            ),
            (r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"x"}]}}"#, None),
            (r#"{"type":"system","subtype":"init"}"#, None),
            (r#"{"type":"item.completed","item":{"type":"agent_message","text":"Done."}}"#, Some("Done.")),
            (
                r#"{"type":"item.started","item":{"type":"command_execution","command":"make"}}"#,
                Some("[run] make"),
            ),
            (r#"{"type":"text","part":{"text":"Hello"}}"#, Some("Hello")),
            ("plain words", Some("plain words")),
            ("{ not json", Some("{ not json")),
        ] {
            assert_eq!(agent_words(line).as_deref(), want, "{line}");
        }
        assert!(
            !agent_words("{\"type\":\"text\",\"part\":{\"text\":\"\\u001b[31m\"}}")
                .unwrap()
                .contains('\u{1b}')
        );
    }
}
