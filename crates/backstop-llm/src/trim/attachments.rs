//! Images, documents and recordings inside messages: how much they weigh, and how one is removed.

use crate::Api;
use serde_json::{Value, json};

/// What an attachment counts as, in bytes: a picture is about 1,600 tokens, whatever its file size.
const WORTH_BYTES: u64 = 6400;

/// How many bytes of attachments are more than what they cost a model.
pub(super) fn bytes_beyond_worth(value: &Value) -> u64 {
    let own = data_bytes(value).map_or(0, |bytes| (bytes as u64).saturating_sub(WORTH_BYTES));
    own + match value {
        Value::Array(items) => items.iter().map(bytes_beyond_worth).sum(),
        Value::Object(members) if own == 0 => members.values().map(bytes_beyond_worth).sum(),
        _ => 0,
    }
}

/// How many bytes of data a block carries, if it is an attachment.
fn data_bytes(block: &Value) -> Option<usize> {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    let text = |pointer: &str| block.pointer(pointer).and_then(Value::as_str);
    let inline = |url: &str| url.starts_with("data:").then_some(url.len());
    match kind {
        "image" | "document" => text("/source/data").map(str::len),
        "image_url" => text("/image_url/url").and_then(inline),
        "input_image" => text("/image_url").and_then(inline),
        "input_audio" => text("/input_audio/data").map(str::len),
        "file" => text("/file/file_data").map(str::len),
        "input_file" => text("/file_data").map(str::len),
        _ => text("/inlineData/data").or_else(|| text("/inline_data/data")).map(str::len),
    }
}

/// Puts a line in the place of attachments, oldest first, until `over` bytes are saved. Gives how
/// many were removed.
pub(super) fn remove(api: Api, value: &mut Value, over: u64) -> usize {
    let mut left = over;
    remove_from(api, value, &mut left)
}

fn remove_from(api: Api, value: &mut Value, left: &mut u64) -> usize {
    if *left == 0 {
        return 0;
    }
    if let Some(bytes) = data_bytes(value) {
        let what = match value.get("type").and_then(Value::as_str) {
            Some("document" | "file" | "input_file") => "document",
            Some("input_audio") => "recording",
            _ => "image",
        };
        let line = format!("[{what} removed by backstop: the request was too large]");
        let cached = value.get("cache_control").cloned();
        *value = match api {
            Api::Anthropic | Api::Chat => json!({"type": "text", "text": line}),
            Api::Responses => json!({"type": "input_text", "text": line}),
            Api::Gemini => json!({"text": line}),
        };
        if let Some(cached) = cached {
            value["cache_control"] = cached;
        }
        *left = left.saturating_sub(bytes as u64);
        return 1;
    }
    match value {
        Value::Array(items) => items.iter_mut().map(|item| remove_from(api, item, left)).sum(),
        Value::Object(members) => members.values_mut().map(|item| remove_from(api, item, left)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_and_breakpoints_stay() {
        let image = |data: &str| json!({"type": "image", "source": {"type": "base64", "data": data}});
        let mut last = image(&"b".repeat(900));
        last["cache_control"] = json!({"type": "ephemeral"});
        let mut message = json!({"role": "user", "content": [image(&"a".repeat(900)), last, {"type": "text", "text": "hi"}]});
        assert_eq!(remove(Api::Anthropic, &mut message.clone(), 1), 1);
        assert_eq!(remove(Api::Anthropic, &mut message, 5000), 2);
        assert_eq!(message["content"][1]["cache_control"]["type"], "ephemeral");
        assert_eq!(message["content"][1]["type"], "text");
        assert_eq!(message["content"][2]["text"], "hi");
        let mut part = json!({"parts": [{"inlineData": {"mimeType": "image/png", "data": "xx"}}]});
        assert_eq!(remove(Api::Gemini, &mut part, 1), 1);
        assert!(part["parts"][0]["text"].is_string());
    }

    #[test]
    fn a_picture_weighs_what_it_costs_a_model() {
        let url = format!("data:image/png;base64,{}", "x".repeat(100_000));
        let message = json!({"content": [{"type": "image_url", "image_url": {"url": url}}]});
        let beyond = bytes_beyond_worth(&message);
        assert_eq!(beyond, url.len() as u64 - WORTH_BYTES);
        assert_eq!(bytes_beyond_worth(&json!({"content": "x".repeat(100_000)})), 0);
    }
}
