//! Tool results inside messages, which are shortened where a whole unit is too large.

use crate::Api;
use serde_json::Value;

/// How much of a shortened result is left at least: its start,
const HEAD_BYTES_MIN: usize = 1500;
/// and its end.
const TAIL_BYTES_MIN: usize = 500;
/// The share of its start in what is left of it, in percent.
const HEAD_PERCENT: usize = 75;
/// The longest line that stands for what was removed.
const NOTE_BYTES: usize = 80;
/// Blocks whose texts are no words.
const DATA: [&str; 8] = [
    "image",
    "document",
    "image_url",
    "input_image",
    "input_file",
    "input_audio",
    "file",
    "computer_screenshot",
];
/// A result is shortened only where that saves at least so much.
const SAVED_BYTES_MIN: usize = 500;

/// Shortens the results in an item, oldest first, until about `over` bytes are saved. Gives how
/// many were shortened.
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
        // Of functions, shells and whatever else there will be.
        Api::Responses if text(item, "type").ends_with("_output") => {
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
    let before = *left;
    shorten_texts(content, left);
    usize::from(*left < before)
}

/// Shortens long texts until `left` bytes are saved.
fn shorten_texts(value: &mut Value, left: &mut u64) {
    match value {
        Value::String(text) => {
            if let Some(shorter) = shortened(text, *left) {
                *left = left.saturating_sub((text.len() - shorter.len()) as u64);
                *text = shorter;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| shorten_texts(item, left)),
        Value::Object(members) => {
            let kind = members.get("type").and_then(Value::as_str);
            // What is in an image is no text.
            if !kind.is_some_and(|kind| DATA.contains(&kind)) {
                members.values_mut().for_each(|member| shorten_texts(member, left));
            }
        }
        _ => {}
    }
}

/// A text without its middle, `over` bytes shorter where it is long enough for that.
fn shortened(text: &str, over: u64) -> Option<String> {
    if over == 0 || text.starts_with("data:") {
        return None;
    }
    let over = usize::try_from(over).unwrap_or(usize::MAX).saturating_add(NOTE_BYTES);
    let kept = text.len().saturating_sub(over).max(HEAD_BYTES_MIN + TAIL_BYTES_MIN);
    let tail_bytes = kept - kept / 100 * HEAD_PERCENT - kept % 100 * HEAD_PERCENT / 100;
    let head = text.floor_char_boundary(kept - tail_bytes);
    let tail = text.ceil_char_boundary(text.len().checked_sub(tail_bytes)?);
    let removed = tail.checked_sub(head)?;
    if removed < SAVED_BYTES_MIN.min(over) {
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
