//! The request formats of model APIs, and how one is recognised by its path or its body.

use serde_json::Value;

/// The format of a model request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Api {
    /// Anthropic Messages: `POST /v1/messages`.
    Anthropic,
    /// OpenAI Chat Completions: `POST /v1/chat/completions`.
    Chat,
    /// OpenAI Responses: `POST /v1/responses`.
    Responses,
    /// Gemini: `POST /v1beta/models/MODEL:generateContent`.
    Gemini,
}

impl Api {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Chat, Self::Responses, Self::Gemini];

    /// The name by which it is chosen and shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Chat => "openai-chat",
            Self::Responses => "openai-responses",
            Self::Gemini => "gemini",
        }
    }

    /// Reads what [`name`](Self::name) gives.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.name() == name)
    }

    /// The member of a request that holds the conversation.
    pub fn conversation_key(self) -> &'static str {
        match self {
            Self::Anthropic | Self::Chat => "messages",
            Self::Responses => "input",
            Self::Gemini => "contents",
        }
    }

    /// The format of a request by its members. Anthropic and Chat look much alike: a model, content
    /// blocks or a top-level `system` tell them apart.
    pub fn of_body(body: &Value) -> Option<Self> {
        if body.get("contents").is_some_and(Value::is_array) {
            return Some(Self::Gemini);
        }
        if body.get("input").is_some() {
            return Some(Self::Responses);
        }
        let messages = body.get("messages")?.as_array()?;
        let model = body.get("model").and_then(Value::as_str).unwrap_or_default();
        let has_anthropic_block = messages.iter().any(|message| {
            let blocks = message.get("content").and_then(Value::as_array);
            blocks.into_iter().flatten().any(|block| {
                let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
                matches!(kind, "tool_use" | "tool_result" | "thinking" | "image" | "document")
            })
        });
        let is_chat = messages.iter().any(|message| {
            let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
            matches!(role, "system" | "developer" | "tool" | "function")
                || message.get("tool_calls").is_some()
        });
        let is_anthropic = body.get("system").is_some() || has_anthropic_block || model.contains("claude");
        Some(if is_anthropic && !is_chat { Self::Anthropic } else { Self::Chat })
    }
}

impl std::fmt::Display for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_body_tells_its_format() {
        let user = json!([{"role": "user", "content": "hi"}]);
        for (body, api) in [
            (json!({"model": "claude-x", "messages": user}), Some(Api::Anthropic)),
            (json!({"model": "m", "system": "s", "messages": user}), Some(Api::Anthropic)),
            (
                json!({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}),
                Some(Api::Anthropic),
            ),
            (json!({"model": "gpt-5", "messages": user}), Some(Api::Chat)),
            (json!({"model": "claude-x", "messages": [{"role": "system", "content": "s"}]}), Some(Api::Chat)),
            (json!({"model": "gpt-5", "input": "hi"}), Some(Api::Responses)),
            (json!({"contents": []}), Some(Api::Gemini)),
            (json!({"prompt": "x"}), None),
            (json!([]), None),
        ] {
            assert_eq!(Api::of_body(&body), api, "{body}");
        }
        for api in Api::ALL {
            assert_eq!(Api::from_name(api.name()), Some(api));
        }
    }
}
