//! Server-sent events as they pass: where one ends, whether it is content, and whether it hides an
//! error. Only whole events are passed on, so that what follows a cut is never half an event.

use crate::Api;
use serde_json::Value;
use std::collections::BTreeMap;

/// An event that grows beyond this is passed on in pieces.
const EVENT_BYTES_MAX: usize = 16 << 20;
/// How many choices of one answer are told apart.
const CHOICES_MAX: usize = 1024;

/// What an event is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Event {
    /// It comes before content, or says nothing.
    Preamble,
    /// Content for whoever asked.
    Content,
    /// The regular end, of one choice at least.
    End,
    /// An error, as JSON.
    Error(Value),
}

/// What is known of a stream from its events so far.
#[derive(Debug)]
pub(super) struct StreamReader {
    api: Api,
    content_seen: bool,
    /// Whether the last event was seen.
    is_done: bool,
    /// The choices (Chat) or candidates (Gemini) by their index, and whether each has finished.
    choices: BTreeMap<u64, bool>,
}

impl StreamReader {
    pub(super) fn new(api: Api) -> Self {
        Self { api, content_seen: false, is_done: false, choices: BTreeMap::new() }
    }

    /// Reads the next event.
    pub(super) fn read(&mut self, event: &[u8]) -> Event {
        let kind = classify(self.api, event, self.content_seen);
        match self.api {
            Api::Anthropic | Api::Responses => self.is_done |= kind == Event::End,
            Api::Chat | Api::Gemini => self.note_choices(event, &kind),
        }
        self.content_seen |= matches!(kind, Event::Content | Event::End);
        kind
    }

    /// Whether nothing is missing: the last event was seen, or, as some servers send none, every
    /// choice that was begun has finished.
    pub(super) fn is_complete(&self) -> bool {
        self.is_done || (!self.choices.is_empty() && self.choices.values().all(|finished| *finished))
    }

    fn note_choices(&mut self, event: &[u8], kind: &Event) {
        // Most events are about the first choice, which is told by their bytes.
        if self.content_seen && !may_matter(self.api, event) && !names_other_choice(event) {
            self.choices.entry(0).or_insert(false);
            return;
        }
        let Some(value) = data(event) else {
            self.is_done |= *kind == Event::End;
            return;
        };
        let (list, finish) = match self.api {
            Api::Gemini => ("candidates", "finishReason"),
            _ => ("choices", "finish_reason"),
        };
        let first = value.get(0).unwrap_or(&value);
        for choice in first.get(list).and_then(Value::as_array).into_iter().flatten() {
            let index = choice.get("index").and_then(Value::as_u64).unwrap_or(0);
            if self.choices.len() < CHOICES_MAX || self.choices.contains_key(&index) {
                *self.choices.entry(index).or_insert(false) |=
                    choice.get(finish).is_some_and(Value::is_string);
            }
        }
    }
}

/// Whether an event has an index other than 0: of a choice, or of something else.
fn names_other_choice(event: &[u8]) -> bool {
    const INDEX: &[u8] = b"\"index\"";
    memchr::memmem::find_iter(event, INDEX).any(|at| {
        let value =
            event[at + INDEX.len()..].iter().find(|byte| !byte.is_ascii_whitespace() && **byte != b':');
        value.is_some_and(|byte| matches!(byte, b'1'..=b'9'))
    })
}

/// How many bytes at the start of `bytes` are whole events, of which none ends in the first `seen`:
/// an event that arrives in many pieces is looked at once.
pub(super) fn whole_events(bytes: &[u8], seen: usize) -> usize {
    // Blank lines end events, with any kind of line end.
    let mut end = bytes.len();
    while let Some(at) = memchr::memrchr(b'\n', &bytes[seen.min(end)..end]).map(|at| at + seen) {
        let before = &bytes[..at];
        if before.ends_with(b"\n") || before.ends_with(b"\n\r") {
            return at + 1;
        }
        end = at;
    }
    if bytes.len() > EVENT_BYTES_MAX { bytes.len() } else { 0 }
}

/// The events in `bytes`, which are whole.
pub(super) fn split(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut from = 0;
        let end = loop {
            let Some(at) = memchr::memchr(b'\n', &rest[from..]).map(|at| at + from) else { break rest.len() };
            match rest.get(at + 1) {
                Some(b'\n') => break at + 2,
                Some(b'\r') if rest.get(at + 2) == Some(&b'\n') => break at + 3,
                _ => from = at + 1,
            }
        };
        let (event, after) = rest.split_at(end);
        rest = after;
        Some(event)
    })
}

/// The lines of a field, joined as the standard says.
fn field(event: &[u8], name: &str) -> Option<Vec<u8>> {
    let mut found: Option<Vec<u8>> = None;
    for line in event.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(rest) = line.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b":")) else {
            continue;
        };
        let value = rest.strip_prefix(b" ").unwrap_or(rest);
        match &mut found {
            Some(text) => {
                text.push(b'\n');
                text.extend_from_slice(value);
            }
            None => found = Some(value.to_vec()),
        }
    }
    found
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(haystack, needle).is_some()
}

/// The JSON of an event.
pub(super) fn data(event: &[u8]) -> Option<Value> {
    serde_json::from_slice(&field(event, "data")?).ok()
}

/// What an event is. After content has been seen only ends and errors matter, which most events are
/// not: they are told by their bytes.
pub(super) fn classify(api: Api, event: &[u8], content_seen: bool) -> Event {
    if content_seen && !may_matter(api, event) {
        return Event::Content;
    }
    let name = field(event, "event").and_then(|name| String::from_utf8(name).ok()).unwrap_or_default();
    let Some(text) = field(event, "data") else { return Event::Preamble };
    if text == b"[DONE]" {
        return Event::End;
    }
    let Ok(value) = serde_json::from_slice::<Value>(&text) else {
        // What is no JSON is nothing that an API sends.
        return if content_seen { Event::Content } else { Event::Preamble };
    };
    let kind = value.get("type").and_then(Value::as_str).unwrap_or(&name).to_owned();
    match api {
        Api::Anthropic => match kind.as_str() {
            "error" => Event::Error(value),
            "message_start" | "ping" => Event::Preamble,
            "content_block_start" if is_empty_block(&value["content_block"]) => Event::Preamble,
            "message_stop" => Event::End,
            _ => Event::Content,
        },
        Api::Responses => match kind.as_str() {
            "error" => Event::Error(value),
            "response.failed" => Event::Error(value.get("response").cloned().unwrap_or(value)),
            "response.created" | "response.queued" | "response.in_progress" | "keepalive" => Event::Preamble,
            "response.completed" | "response.incomplete" | "response.cancelled" | "response.done" => {
                Event::End
            }
            "response.output_item.added" if is_empty_item(&value["item"]) => Event::Preamble,
            "response.content_part.added" | "response.reasoning_summary_part.added"
                if is_empty_block(&value["part"]) =>
            {
                Event::Preamble
            }
            _ => Event::Content,
        },
        Api::Chat => match value.get("error").filter(|error| !error.is_null()) {
            Some(_) => Event::Error(value),
            None => chat_event(&value),
        },
        Api::Gemini => {
            let first = value.get(0).unwrap_or(&value);
            if first.get("error").is_some() {
                return Event::Error(first.clone());
            }
            let candidates = first.get("candidates").and_then(Value::as_array);
            let finished = |candidate: &Value| candidate.get("finishReason").is_some_and(Value::is_string);
            let ends = candidates.is_some_and(|all| all.iter().any(finished));
            if ends { Event::End } else { Event::Content }
        }
    }
}

/// Whether a block of text or thinking has begun and says nothing yet.
fn is_empty_block(block: &Value) -> bool {
    let key = match block.get("type").and_then(Value::as_str) {
        Some("thinking") => "thinking",
        Some("text" | "output_text" | "summary_text" | "reasoning_text") => "text",
        Some("refusal") => "refusal",
        _ => return false,
    };
    block.get(key).is_none_or(|text| text == "" || text.is_null())
}

/// Whether a message or reasoning has begun and says nothing yet.
fn is_empty_item(item: &Value) -> bool {
    let is_empty = |key: &str| item.get(key).and_then(Value::as_array).is_none_or(Vec::is_empty);
    matches!(item.get("type").and_then(Value::as_str), Some("message" | "reasoning"))
        && is_empty("content")
        && is_empty("summary")
}

/// Whether an event may be an end or an error.
fn may_matter(api: Api, event: &[u8]) -> bool {
    match api {
        Api::Anthropic => contains(event, b"message_stop") || contains(event, b"\"error\""),
        Api::Responses => {
            contains(event, b"\"response.completed\"")
                || contains(event, b"\"response.incomplete\"")
                || contains(event, b"\"response.cancelled\"")
                || contains(event, b"\"response.failed\"")
                || contains(event, b"\"response.done\"")
                || contains(event, b"\"error\"")
        }
        Api::Chat => {
            contains(event, b"[DONE]")
                || contains(event, b"\"error\"")
                || (contains(event, b"\"finish_reason\"") && !contains(event, b"\"finish_reason\":null"))
        }
        Api::Gemini => contains(event, b"\"finishReason\"") || contains(event, b"\"error\""),
    }
}

fn chat_event(value: &Value) -> Event {
    let Some(choices) = value.get("choices").and_then(Value::as_array) else { return Event::Preamble };
    if choices.iter().any(|choice| choice.get("finish_reason").is_some_and(Value::is_string)) {
        return Event::End;
    }
    let says = |choice: &Value| {
        let Some(Value::Object(delta)) = choice.get("delta") else { return choice.get("text").is_some() };
        delta.iter().any(|(key, value)| {
            key != "role"
                && !value.is_null()
                && value.as_str() != Some("")
                && value.as_array().is_none_or(|a| !a.is_empty())
        })
    };
    if choices.iter().any(says) { Event::Content } else { Event::Preamble }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_end_with_a_blank_line() {
        for (text, whole) in [
            ("", 0),
            ("data: x", 0),
            ("data: x\n", 0),
            ("data: x\n\n", 9),
            ("data: x\r\n\r\n", 11),
            ("data: x\n\ndata: y\n", 9),
            ("data: x\n\ndata: y\n\n: z", 18),
        ] {
            assert_eq!(whole_events(text.as_bytes(), 0), whole, "{text:?}");
            // What was seen without an end of an event is not looked at again.
            for seen in (0..=text.len()).filter(|seen| whole_events(&text.as_bytes()[..*seen], 0) == 0) {
                assert_eq!(whole_events(text.as_bytes(), seen), whole, "{text:?} from {seen}");
            }
        }
        let all: Vec<&[u8]> = split(b"data: x\n\nevent: e\r\ndata: y\r\n\r\n: z\n\n").collect();
        assert_eq!(all, [&b"data: x\n\n"[..], b"event: e\r\ndata: y\r\n\r\n", b": z\n\n"]);
    }

    #[test]
    fn content_errors_and_ends_are_told_apart() {
        use Event::{Content, End, Preamble};
        for (api, event, want) in [
            (Api::Anthropic, "event: message_start\ndata: {\"type\":\"message_start\"}\n\n", Preamble),
            (Api::Anthropic, "event: ping\ndata: {\"type\": \"ping\"}\n\n", Preamble),
            (Api::Anthropic, ": comment\n\n", Preamble),
            (Api::Anthropic, "data: {\"type\":\"content_block_start\"}\n\n", Content),
            (Api::Anthropic, "data: {\"type\":\"message_stop\"}\n\n", End),
            (
                Api::Chat,
                "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n",
                Preamble,
            ),
            (
                Api::Chat,
                "data: {\"choices\":[{\"delta\":{\"content\":\"h\"},\"finish_reason\":null}]}\n\n",
                Content,
            ),
            (Api::Chat, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{}]}}]}\n\n", Content),
            (Api::Chat, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", End),
            (Api::Chat, "data: [DONE]\n\n", End),
            (Api::Responses, "event: response.created\ndata: {\"type\":\"response.created\"}\n\n", Preamble),
            (Api::Responses, "data: {\"type\":\"response.output_item.added\"}\n\n", Content),
            (
                Api::Responses,
                "data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"message\",\"content\":[]}}\n\n",
                Preamble,
            ),
            (
                Api::Responses,
                "data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"function_call\",\"name\":\"x\"}}\n\n",
                Content,
            ),
            (
                Api::Responses,
                "data: {\"type\":\"response.content_part.added\",\"part\":{\"type\":\"output_text\",\"text\":\"\"}}\n\n",
                Preamble,
            ),
            (
                Api::Anthropic,
                "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n",
                Preamble,
            ),
            (
                Api::Anthropic,
                "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"h\"}}\n\n",
                Content,
            ),
            (
                Api::Anthropic,
                "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\"}}\n\n",
                Content,
            ),
            (Api::Responses, "data: {\"type\":\"response.completed\"}\n\n", End),
            (Api::Gemini, "data: {\"candidates\":[{\"content\":{}}]}\n\n", Content),
            (Api::Gemini, "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\r\n\r\n", End),
        ] {
            assert_eq!(classify(api, event.as_bytes(), false), want, "{event}");
            if want != Preamble {
                assert_eq!(classify(api, event.as_bytes(), true), want, "{event}");
            }
        }
        for (api, event) in [
            (
                Api::Anthropic,
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n",
            ),
            (Api::Chat, "data: {\"error\":{\"message\":\"x\"}}\n\n"),
            (
                Api::Responses,
                "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"x\"}}}\n\n",
            ),
            (Api::Responses, "event: error\ndata: {\"type\":\"error\",\"code\":\"x\"}\n\n"),
            (Api::Gemini, "data: {\"error\":{\"code\":503}}\n\n"),
        ] {
            for seen in [false, true] {
                assert!(matches!(classify(api, event.as_bytes(), seen), Event::Error(_)), "{event}");
            }
        }
    }

    #[test]
    fn a_stream_is_complete_once_every_choice_has_finished() {
        let chat = |index: u64, finish: &str| {
            format!(
                "data: {{\"choices\":[{{\"index\":{index},\"delta\":{{\"content\":\"h\"}},\"finish_reason\":{finish}}}]}}\n\n"
            )
        };
        let gemini = |index: u64, finish: &str| {
            format!("data: {{\"candidates\":[{{\"index\": {index},\"content\":{{}}{finish}}}]}}\n\n")
        };
        let stop = ",\"finishReason\":\"STOP\"";
        let done = || "data: [DONE]\n\n".to_owned();
        let usage = || "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n".to_owned();
        for (api, events, complete) in [
            (Api::Chat, vec![chat(0, "null")], false),
            (Api::Chat, vec![chat(0, "null"), chat(0, "\"stop\""), usage()], true),
            (Api::Chat, vec![chat(0, "null"), chat(1, "null"), chat(0, "\"stop\"")], false),
            (Api::Chat, vec![chat(1, "null"), chat(0, "null"), chat(1, "\"stop\"")], false),
            (Api::Chat, vec![chat(0, "\"stop\""), chat(1, "null")], false),
            (
                Api::Chat,
                vec![chat(0, "null"), chat(1, "null"), chat(1, "\"stop\""), chat(0, "\"stop\"")],
                true,
            ),
            (Api::Chat, vec![chat(0, "null"), chat(1, "null"), done()], true),
            (Api::Gemini, vec![gemini(0, ""), gemini(0, stop)], true),
            (Api::Gemini, vec![gemini(0, ""), gemini(1, ""), gemini(0, stop)], false),
            (Api::Gemini, vec![gemini(0, ""), gemini(1, stop)], false),
            (Api::Gemini, vec![gemini(0, ""), gemini(1, stop), gemini(0, stop)], true),
            (Api::Anthropic, vec!["data: {\"type\":\"message_delta\"}\n\n".to_owned()], false),
            (Api::Anthropic, vec!["data: {\"type\":\"message_stop\"}\n\n".to_owned()], true),
        ] {
            let mut reader = StreamReader::new(api);
            for event in &events {
                reader.read(event.as_bytes());
            }
            assert_eq!(reader.is_complete(), complete, "{events:?}");
        }
    }
}
