//! What a tool's result says: its text, whether it is an error, and what it warns of.

use crate::jsonrpc::Raw;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// How many warnings are taken.
const WARNINGS_MAX: usize = 20;
/// How many characters of each.
const WARNING_CHARS_MAX: usize = 500;

/// What is looked at in every result, whatever else it has.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Head {
    #[serde(rename = "isError")]
    pub(crate) is_error: bool,
    #[serde(rename = "resultType")]
    pub(crate) result_type: Option<String>,
    #[serde(rename = "structuredContent")]
    structured: Option<Raw>,
    warnings: Option<Value>,
    errors: Option<Value>,
}

impl Head {
    pub(crate) fn of(result: &RawValue) -> Self {
        serde_json::from_str(result.get()).unwrap_or_default()
    }

    /// Whether the server wants to know something before it goes on.
    pub(crate) fn wants_input(&self) -> bool {
        self.result_type.as_deref() == Some("input_required")
    }

    /// Whether its structured content is no object.
    pub(crate) fn is_structured_otherwise(&self) -> bool {
        self.structured.as_ref().is_some_and(|structured| !structured.get().starts_with('{'))
    }

    /// What a result that is no error warns of: structured `warnings` and `errors` beside its
    /// content.
    pub(crate) fn warnings(&self) -> Vec<String> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Structured {
            warnings: Option<Value>,
            errors: Option<Value>,
        }
        let inner: Structured =
            self.structured.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let lists = [&self.warnings, &self.errors, &inner.warnings, &inner.errors];
        let items = lists.into_iter().flatten().filter_map(Value::as_array).flatten();
        items.take(WARNINGS_MAX).map(words).collect()
    }
}

fn words(item: &Value) -> String {
    let text = item.as_str().or_else(|| item.get("message").and_then(Value::as_str));
    let text = text.map_or_else(|| item.to_string(), str::to_owned);
    text.chars().take(WARNING_CHARS_MAX).collect()
}

fn blocks(result: &Value) -> &[Value] {
    result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text_in(block: &Value) -> Option<&str> {
    block.get("text").and_then(Value::as_str)
}

/// The text of a result's content, all of it.
pub(crate) fn text_of(result: &Value) -> String {
    blocks(result).iter().filter_map(text_in).collect::<Vec<_>>().join("\n")
}

/// The same for people: blocks that are no text are named where they stand.
pub(crate) fn shown_of(result: &Value) -> String {
    let shown = |block: &Value| {
        if let Some(text) = text_in(block) {
            return text.to_owned();
        }
        let member = |names: &[&str]| names.iter().find_map(|name| block.pointer(name)?.as_str());
        let kind = member(&["/type"]).unwrap_or("block");
        let about = member(&["/uri", "/resource/uri", "/mimeType", "/resource/mimeType"]);
        let about = about.map(|about| format!(" {about}")).unwrap_or_default();
        format!("[{kind}{about}: `--json` shows it]")
    };
    blocks(result).iter().map(shown).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::raw;
    use serde_json::json;

    #[test]
    fn warnings_are_those_beside_the_content() {
        let of = |value: Value| Head::of(&raw(&value)).warnings();
        assert!(of(json!({ "content": [{ "type": "text", "text": "errors: none" }] })).is_empty());
        assert!(of(json!({ "structuredContent": { "errors": [], "warnings": "none" } })).is_empty());
        assert_eq!(
            of(json!({ "structuredContent": { "errors": [{ "message": "a" }, 5], "warnings": ["b"] } })),
            ["b", "a", "5"]
        );
        assert_eq!(of(json!({ "warnings": ["c"] })), ["c"]);
        assert!(Head::of(&raw(&json!({ "isError": true }))).is_error);
        assert!(!Head::of(&raw(&json!([]))).is_error);
    }

    #[test]
    fn the_text_is_that_of_all_blocks() {
        let result = json!({ "content": [{ "text": "a" }, { "type": "image" }, { "text": "b\n" }] });
        assert_eq!(text_of(&result), "a\nb\n");
        assert_eq!(shown_of(&result), "a\n[image: `--json` shows it]\nb\n");
        let link = json!({ "content": [{ "type": "resource_link", "uri": "file:///a" }] });
        assert_eq!(shown_of(&link), "[resource_link file:///a: `--json` shows it]");
        let long = "x".repeat(1 << 20);
        assert_eq!(text_of(&json!({ "content": [{ "text": long }] })), long);
        assert_eq!(text_of(&json!(null)), "");
    }
}
