//! Tool results inside messages, which are shortened where a whole unit is too large.

use crate::Api;
use serde_json::Value;

/// How much of a shortened result is left: its start,
const HEAD_BYTES: usize = 1500;
/// and its end.
const TAIL_BYTES: usize = 500;
/// A result is shortened only where that saves at least so much.
const SAVED_BYTES_MIN: usize = 500;

/// Shortens the results in an item, oldest first, until `over` bytes are saved. Gives how many were
/// shortened.
pub(super) fn shorten(api: Api, item: &mut Value, over: u64) -> usize {
    let mut left = over;
    let text = |item: &Value, key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    match api {
        Api::Anthropic => {
            let blocks = item.get_mut("content").and_then(Value::as_array_mut);
            let results = blocks.into_iter().flatten();
            let results = results.filter(|block| block.get("type").is_some_and(|kind| kind == "tool_result"));
            results.filter_map(|block| block.get_mut("content")).map(|content| one(content, &mut left)).sum()
        }
        Api::Chat if matches!(text(item, "role").as_str(), "tool" | "function") => {
            item.get_mut("content").map_or(0, |content| one(content, &mut left))
        }
        Api::Responses
            if matches!(text(item, "type").as_str(), "function_call_output" | "custom_tool_call_output") =>
        {
            item.get_mut("output").map_or(0, |output| one(output, &mut left))
        }
        Api::Gemini => {
            let parts = item.get_mut("parts").and_then(Value::as_array_mut).into_iter().flatten();
            let responses = parts.filter_map(|part| {
                let key = if part.get("functionResponse").is_some() {
                    "functionResponse"
                } else {
                    "function_response"
                };
                part.get_mut(key)?.get_mut("response")
            });
            responses.map(|response| one(response, &mut left)).sum()
        }
        Api::Chat | Api::Responses => 0,
    }
}

/// Shortens one result: 1 if it changed.
fn one(content: &mut Value, left: &mut u64) -> usize {
    if *left == 0 {
        return 0;
    }
    let saved = shorten_texts(content);
    *left = left.saturating_sub(saved as u64);
    usize::from(saved > 0)
}

/// Shortens every long text. Gives how many bytes that saves.
fn shorten_texts(value: &mut Value) -> usize {
    match value {
        Value::String(text) => match shortened(text) {
            Some(shorter) => {
                let saved = text.len() - shorter.len();
                *text = shorter;
                saved
            }
            None => 0,
        },
        Value::Array(items) => items.iter_mut().map(shorten_texts).sum(),
        Value::Object(members) => {
            let is_data = members
                .get("type")
                .and_then(Value::as_str)
                .is_some_and(|kind| kind != "text" && kind != "input_text");
            // What is in an image is no text.
            if is_data && members.contains_key("source") {
                0
            } else {
                members.values_mut().map(shorten_texts).sum()
            }
        }
        _ => 0,
    }
}

fn shortened(text: &str) -> Option<String> {
    if text.starts_with("data:") {
        return None;
    }
    let mut head = HEAD_BYTES.min(text.len());
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len().checked_sub(TAIL_BYTES)?;
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    let removed = tail.checked_sub(head)?;
    if removed < SAVED_BYTES_MIN {
        return None;
    }
    let note = format!("\n[… {removed} bytes of this result removed by backstop …]\n");
    Some(format!("{}{note}{}", &text[..head], &text[tail..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_results_are_shortened_and_their_ends_stay() {
        let long = format!("start{}end", "ü".repeat(5000));
        let mut message = json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": long},
            {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": long}]},
            {"type": "text", "text": long},
        ]});
        let mut once = message.clone();
        assert_eq!(shorten(Api::Anthropic, &mut once, 10), 1);
        assert_eq!(once["content"][1], message["content"][1]);
        assert_eq!(shorten(Api::Anthropic, &mut message, 1_000_000), 2);
        for text in [&message["content"][0]["content"], &message["content"][1]["content"][0]["text"]] {
            let text = text.as_str().unwrap();
            assert!(text.starts_with("startü") && text.ends_with("üend") && text.len() < 2200, "{text}");
        }
        assert_eq!(message["content"][2]["text"], long);
        assert_eq!(shorten(Api::Anthropic, &mut message, 1_000_000), 0, "short enough");
        let mut user = json!({"role": "user", "content": long});
        assert_eq!(shorten(Api::Chat, &mut user, 1_000_000), 0);
    }
}
