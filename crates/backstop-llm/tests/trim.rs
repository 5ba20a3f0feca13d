//! A valid conversation stays valid when it is trimmed, whatever is in it.
#![allow(clippy::unwrap_used)] // A generator that cannot make a conversation ends the test.

use backstop_llm::trim::MARKER;
use backstop_llm::{Api, Overflow, TrimError, TrimOptions, trim};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::HashSet;

/// One turn of a conversation, as every API can have it.
#[derive(Debug, Clone)]
enum Turn {
    /// A person says something, perhaps with a picture of so many bytes.
    User(usize, Option<usize>),
    /// The model answers.
    Answer(usize),
    /// The model thinks, calls so many tools at once, and gets results of so many bytes.
    Tools { thinks: bool, results: Vec<usize> },
    /// Instructions in the middle.
    System(usize),
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        3 => (1usize..400, prop::option::weighted(0.2, 10usize..5000)).prop_map(|(n, image)| Turn::User(n, image)),
        2 => (1usize..400).prop_map(Turn::Answer),
        4 => (any::<bool>(), prop::collection::vec(1usize..6000, 1..4))
            .prop_map(|(thinks, results)| Turn::Tools { thinks, results }),
        1 => (1usize..100).prop_map(Turn::System),
    ]
}

fn text(n: usize) -> String {
    "word ü ".chars().cycle().take(n).collect()
}

/// Messages in the shape of an API, beginning with a person.
fn conversation(api: Api, turns: &[Turn]) -> Value {
    let mut items: Vec<Value> = Vec::new();
    let mut call = 0;
    let mut all = vec![Turn::User(50, None)];
    all.extend(turns.iter().cloned());
    for turn in &all {
        match turn {
            Turn::User(n, image) => items.push(user(api, *n, *image)),
            Turn::Answer(n) => items.push(answer(api, *n)),
            Turn::System(n) => items.extend(system(api, *n)),
            Turn::Tools { thinks, results } => tools(api, *thinks, results, &mut call, &mut items),
        }
    }
    if api == Api::Anthropic {
        think_first(&mut items);
        set_breakpoints(&mut items);
    }
    let mut body = match api {
        Api::Anthropic => {
            json!({"model": "claude-x", "max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 1024}, "system": [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}]})
        }
        Api::Chat => json!({"model": "gpt-x", "max_completion_tokens": 1000}),
        Api::Responses => json!({"model": "gpt-x", "instructions": "be kind"}),
        Api::Gemini => json!({"systemInstruction": {"parts": [{"text": "be kind"}]}}),
    };
    body[api.conversation_key()] = items.into();
    body
}

/// Lets the first words of the model after a person's begin with thinking, as it does where that is
/// enabled.
fn think_first(items: &mut [Value]) {
    let mut is_first = false;
    for (n, item) in items.iter_mut().enumerate() {
        if item["role"] == "user" {
            is_first |= item["content"][0]["type"] != "tool_result";
        } else if std::mem::take(&mut is_first) && item["content"][0]["type"] != "thinking" {
            let thinking = json!({"type": "thinking", "thinking": "well", "signature": format!("first_{n}")});
            item["content"].as_array_mut().unwrap().insert(0, thinking);
        }
    }
}

/// Sets cache breakpoints on messages: three, as the instructions have one.
fn set_breakpoints(items: &mut [Value]) {
    let n = items.len();
    for at in std::collections::BTreeSet::from([n / 3, n / 2, n - 1]) {
        let block = items[at]["content"].as_array_mut().unwrap().last_mut().unwrap();
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

fn user(api: Api, n: usize, image: Option<usize>) -> Value {
    let data = image.map(|n| "A".repeat(n));
    match api {
        Api::Anthropic => {
            let mut blocks = vec![json!({"type": "text", "text": text(n)})];
            blocks.extend(data.map(|data| json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})));
            json!({"role": "user", "content": blocks})
        }
        Api::Chat => match data {
            None => json!({"role": "user", "content": text(n)}),
            Some(data) => json!({"role": "user", "content": [{"type": "text", "text": text(n)},
                {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}}]}),
        },
        Api::Responses => match data {
            None => json!({"role": "user", "content": text(n)}),
            Some(data) => {
                json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text(n)},
                {"type": "input_image", "image_url": format!("data:image/png;base64,{data}")}]})
            }
        },
        Api::Gemini => {
            let mut parts = vec![json!({"text": text(n)})];
            parts.extend(data.map(|data| json!({"inlineData": {"mimeType": "image/png", "data": data}})));
            json!({"role": "user", "parts": parts})
        }
    }
}

fn answer(api: Api, n: usize) -> Value {
    match api {
        Api::Anthropic => json!({"role": "assistant", "content": [{"type": "text", "text": text(n)}]}),
        Api::Chat => json!({"role": "assistant", "content": text(n)}),
        Api::Responses => {
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text(n)}]})
        }
        Api::Gemini => json!({"role": "model", "parts": [{"text": text(n)}]}),
    }
}

fn system(api: Api, n: usize) -> Option<Value> {
    match api {
        Api::Chat => Some(json!({"role": "system", "content": text(n)})),
        Api::Responses => Some(json!({"role": "developer", "content": text(n)})),
        Api::Anthropic | Api::Gemini => None,
    }
}

fn tools(api: Api, thinks: bool, results: &[usize], call: &mut u32, items: &mut Vec<Value>) {
    let ids: Vec<String> = results
        .iter()
        .map(|_| {
            *call += 1;
            format!("call_{call}")
        })
        .collect();
    match api {
        Api::Anthropic => {
            let mut blocks = Vec::new();
            if thinks {
                blocks.push(
                    json!({"type": "thinking", "thinking": "hm", "signature": format!("sig_{}", ids[0])}),
                );
            }
            blocks.extend(
                ids.iter().map(|id| json!({"type": "tool_use", "id": id, "name": "read", "input": {}})),
            );
            items.push(json!({"role": "assistant", "content": blocks}));
            let answers: Vec<Value> = ids
                .iter()
                .zip(results)
                .map(|(id, n)| json!({"type": "tool_result", "tool_use_id": id, "content": text(*n)}))
                .collect();
            items.push(json!({"role": "user", "content": answers}));
        }
        Api::Chat => {
            let calls: Vec<Value> = ids.iter()
                .map(|id| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}})).collect();
            items.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
            items.extend(
                ids.iter()
                    .zip(results)
                    .map(|(id, n)| json!({"role": "tool", "tool_call_id": id, "content": text(*n)})),
            );
        }
        Api::Responses => {
            if thinks {
                items.push(json!({"type": "reasoning", "id": format!("rs_{}", ids[0]), "summary": [], "encrypted_content": "x"}));
            }
            let calls = ids.iter().map(|id| {
                let mut call =
                    json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"});
                if thinks {
                    call["id"] = format!("fc_after_rs_{}", ids[0]).into();
                }
                call
            });
            let outputs = ids
                .iter()
                .zip(results)
                .map(|(id, n)| json!({"type": "function_call_output", "call_id": id, "output": text(*n)}));
            if results.len().is_multiple_of(2) {
                // Some clients write each result behind its call.
                items.extend(calls.zip(outputs).flat_map(|(call, output)| [call, output]));
            } else {
                items.extend(calls.chain(outputs));
            }
        }
        Api::Gemini => {
            let calls: Vec<Value> = ids
                .iter()
                .map(|id| {
                    let mut part = json!({"functionCall": {"id": id, "name": "read", "args": {}}});
                    if thinks {
                        part["thoughtSignature"] = format!("sig_{id}").into();
                    }
                    part
                })
                .collect();
            items.push(json!({"role": "model", "parts": calls}));
            let answers: Vec<Value> = ids.iter().zip(results)
                .map(|(id, n)| json!({"functionResponse": {"id": id, "name": "read", "response": {"result": text(*n)}}})).collect();
            items.push(json!({"role": "user", "parts": answers}));
        }
    }
}

fn blocks<'v>(item: &'v Value, key: &str) -> Vec<&'v Value> {
    item.get(key).and_then(Value::as_array).map(|all| all.iter().collect()).unwrap_or_default()
}

fn ids(all: &[&Value], kind: &str, key: &str) -> Vec<String> {
    all.iter()
        .filter(|block| block["type"] == kind)
        .map(|block| block[key].as_str().unwrap().to_owned())
        .collect()
}

/// What the provider would say against a conversation.
fn objection(api: Api, body: &Value) -> Option<String> {
    let items = body[api.conversation_key()].as_array().unwrap();
    let fails = |n: usize, why: &str| Some(format!("item {n}: {why}: {}", items[n]));
    match api {
        Api::Anthropic => {
            if items.first()?["role"] != "user"
                || !ids(&blocks(&items[0], "content"), "tool_result", "tool_use_id").is_empty()
            {
                return fails(0, "the first message is no user's");
            }
            for (n, item) in items.iter().enumerate() {
                let content = blocks(item, "content");
                if content.is_empty() && item["content"].as_str().is_none_or(str::is_empty) {
                    return fails(n, "empty content");
                }
                let called = ids(&content, "tool_use", "id");
                let next =
                    items.get(n + 1).map(|next| ids(&blocks(next, "content"), "tool_result", "tool_use_id"));
                if !called.is_empty() && next.as_ref() != Some(&called) {
                    return fails(n, "calls without results");
                }
                let answered = ids(&content, "tool_result", "tool_use_id");
                let asked =
                    n.checked_sub(1).map(|before| ids(&blocks(&items[before], "content"), "tool_use", "id"));
                if !answered.is_empty() && asked != Some(answered) {
                    return fails(n, "results without calls");
                }
            }
            let last_user = items.iter().rposition(|item| {
                item["role"] == "user"
                    && ids(&blocks(item, "content"), "tool_result", "tool_use_id").is_empty()
            });
            let since = &items[last_user.map_or(0, |n| n + 1)..];
            if body["thinking"]["type"] == "enabled"
                && items.last()?["role"] == "user"
                && since.first().is_some_and(|item| item["content"][0]["type"] != "thinking")
            {
                return fails(items.len() - since.len(), "a tool loop has lost its thinking");
            }
            let breakpoints = body.to_string().matches("cache_control").count();
            (breakpoints > 4).then(|| format!("{breakpoints} breakpoints"))
        }
        Api::Chat => {
            let mut open: Vec<String> = Vec::new();
            for (n, item) in items.iter().enumerate() {
                if item["role"] == "tool" {
                    let id = item["tool_call_id"].as_str().unwrap();
                    match open.iter().position(|open| open == id) {
                        Some(at) => {
                            open.remove(at);
                        }
                        None => return fails(n, "a result without a call"),
                    }
                } else if !open.is_empty() {
                    return fails(n, "calls are not answered");
                }
                open.extend(
                    blocks(item, "tool_calls").iter().map(|call| call["id"].as_str().unwrap().to_owned()),
                );
            }
            (!open.is_empty()).then(|| "calls are not answered at the end".to_owned())
        }
        Api::Responses => {
            let of = |kind: &str| -> HashSet<String> {
                items
                    .iter()
                    .filter(|item| item["type"] == kind)
                    .map(|item| item["call_id"].as_str().unwrap().to_owned())
                    .collect()
            };
            if of("function_call") != of("function_call_output") {
                return Some("calls and results do not match".to_owned());
            }
            for (n, item) in items.iter().enumerate() {
                let needs = item["id"].as_str().and_then(|id| id.strip_prefix("fc_after_"));
                if needs.is_some_and(|needs| items[..n].iter().all(|item| item["id"] != needs)) {
                    return fails(n, "a call without its reasoning");
                }
                if item["type"] == "reasoning"
                    && items.get(n + 1).is_none_or(|next| next["type"] != "function_call")
                {
                    return fails(n, "reasoning without what follows it");
                }
            }
            None
        }
        Api::Gemini => {
            if items.first()?["role"] != "user" {
                return fails(0, "the first content is no user's");
            }
            let count = |n: usize, key: &str| {
                items.get(n).map_or(0, |item| {
                    blocks(item, "parts").iter().filter(|part| part.get(key).is_some()).count()
                })
            };
            for (n, item) in items.iter().enumerate() {
                let calls = count(n, "functionCall");
                if calls > 0 && count(n + 1, "functionResponse") != calls {
                    return fails(n, "calls without responses");
                }
                if count(n, "functionResponse") > 0
                    && (n == 0 || count(n - 1, "functionCall") != count(n, "functionResponse"))
                {
                    return fails(n, "responses without calls");
                }
                if blocks(item, "parts").is_empty() {
                    return fails(n, "no parts");
                }
            }
            None
        }
    }
}

fn texts(item: &Value) -> String {
    item.to_string()
}

fn check(api: Api, turns: &[Turn], options: &TrimOptions) -> Result<(), TestCaseError> {
    let body = conversation(api, turns);
    prop_assert_eq!(objection(api, &body), None, "the generator is wrong");
    let sent = serde_json::to_vec(&body).unwrap();
    let trimmed = match trim(api, &sent, options) {
        Ok(trimmed) => trimmed,
        Err(
            TrimError::NothingToRemove { .. }
            | TrimError::FixedTooLarge { .. }
            | TrimError::StillTooLarge { .. },
        ) => return Ok(()),
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    let after: Value = serde_json::from_slice(&trimmed.body).unwrap();
    prop_assert_eq!(objection(api, &after), None);
    let (before, left) =
        (body[api.conversation_key()].as_array().unwrap(), after[api.conversation_key()].as_array().unwrap());
    prop_assert_eq!(before.len() - left.len(), trimmed.report.messages_removed);
    prop_assert!(trimmed.body.len() <= sent.len() + MARKER.len() + 80);
    // Instructions stay, in their order.
    let instructions = |items: &[Value]| -> Vec<String> {
        items
            .iter()
            .filter(|item| item["role"] == "system" || item["role"] == "developer")
            .map(texts)
            .collect()
    };
    prop_assert_eq!(instructions(before), instructions(left));
    for key in ["system", "instructions", "systemInstruction", "model"] {
        prop_assert_eq!(body.get(key), after.get(key));
    }
    // What a person said first stays, with one marker where something is missing.
    let first_words = text(50);
    let first = left.iter().find(|item| item["role"] == "user").unwrap();
    prop_assert!(texts(first).contains(&first_words));
    let marks = after.to_string().matches(MARKER).count();
    prop_assert_eq!(marks, usize::from(trimmed.report.messages_removed > 0));
    // The model's own words stay as they were, thinking with its signatures included.
    let said: HashSet<String> = before.iter().map(texts).collect();
    for item in left
        .iter()
        .filter(|item| item["role"] == "assistant" || item["role"] == "model" || item["type"] == "reasoning")
    {
        prop_assert!(said.contains(&texts(item)));
    }
    // The last item stays, shortened at most.
    let (was, is) = (before.last().unwrap(), left.last().unwrap());
    if trimmed.report.results_shortened + trimmed.report.attachments_removed == 0 && before.len() > 1 {
        prop_assert!(texts(was) == texts(is));
    }
    // Trimming twice has one marker.
    if let Ok(again) = trim(api, &trimmed.body, options) {
        let again: Value = serde_json::from_slice(&again.body).unwrap();
        prop_assert_eq!(objection(api, &again), None);
        prop_assert!(again.to_string().matches(MARKER).count() <= 1);
    }
    Ok(())
}

fn options() -> impl Strategy<Value = TrimOptions> {
    let overflow = prop_oneof![
        Just(Overflow::default()),
        (1000u64..300_000, 500u64..200_000).prop_map(|(prompt, limit)| Overflow {
            prompt: Some(prompt),
            limit: Some(limit),
            ..Overflow::default()
        }),
        Just(Overflow { is_bytes: true, ..Overflow::default() }),
    ];
    (1u8..99, overflow).prop_map(|(keep_percent, overflow)| TrimOptions { keep_percent, overflow })
}

proptest! {
    #[test]
    fn a_valid_conversation_with_anthropic_stays_valid(turns in prop::collection::vec(turn(), 0..14), options in options()) {
        check(Api::Anthropic, &turns, &options)?;
    }

    #[test]
    fn a_valid_conversation_with_chat_stays_valid(turns in prop::collection::vec(turn(), 0..14), options in options()) {
        check(Api::Chat, &turns, &options)?;
    }

    #[test]
    fn a_valid_conversation_with_responses_stays_valid(turns in prop::collection::vec(turn(), 0..14), options in options()) {
        check(Api::Responses, &turns, &options)?;
    }

    #[test]
    fn a_valid_conversation_with_gemini_stays_valid(turns in prop::collection::vec(turn(), 0..14), options in options()) {
        check(Api::Gemini, &turns, &options)?;
    }

    #[test]
    fn nothing_that_is_sent_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), options in options()) {
        for api in Api::ALL {
            let _ = trim(api, &bytes, &options);
        }
    }
}

fn long(turns: usize) -> Vec<Turn> {
    (0..turns).flat_map(|_| [Turn::Answer(300), Turn::User(300, None)]).collect()
}

fn trimmed(api: Api, body: &Value, options: &TrimOptions) -> (Value, backstop_report::TrimReport) {
    let trimmed = trim(api, &serde_json::to_vec(body).unwrap(), options).unwrap();
    (serde_json::from_slice(&trimmed.body).unwrap(), trimmed.report)
}

#[test]
fn about_half_is_left_and_the_oldest_are_gone() {
    for api in Api::ALL {
        let body = conversation(api, &long(40));
        let (after, report) = trimmed(api, &body, &TrimOptions::default());
        let share = report.bytes.1 * 100 / report.bytes.0;
        assert!((40..=52).contains(&share), "{api}: {share} %");
        let (before, left) = (&body[api.conversation_key()], &after[api.conversation_key()]);
        let kept = left.as_array().unwrap().len();
        assert_eq!(before[before.as_array().unwrap().len() - 1], left[kept - 1], "{api}");
    }
}

#[test]
fn the_providers_numbers_say_how_much_has_to_go() {
    let body = conversation(Api::Anthropic, &long(100));
    let overflow = Overflow::read(Some(400), "prompt is too long: 900000 tokens > 200000 maximum");
    let (_, report) = trimmed(Api::Anthropic, &body, &TrimOptions { overflow, ..TrimOptions::default() });
    assert_eq!(report.tokens.0, 900_000);
    assert!(report.tokens.1 <= 160_000, "{report:?}");
}

#[test]
fn a_last_unit_that_is_too_large_loses_text_of_its_oldest_results() {
    for api in Api::ALL {
        let body = conversation(api, &[Turn::Tools { thinks: true, results: vec![60_000, 60_000, 300] }]);
        let (after, report) =
            trimmed(api, &body, &TrimOptions { keep_percent: 60, ..TrimOptions::default() });
        assert_eq!((report.messages_removed, report.results_shortened), (0, 1), "{api}");
        assert_eq!(objection(api, &after), None);
        assert!(!after.to_string().contains(MARKER));
    }
}

#[test]
fn an_answer_that_is_too_large_is_asked_for_smaller() {
    let message = "This model's maximum context length is 32768 tokens. However, you requested 33077 tokens (1077 in the messages, 32000 in the completion).";
    let options = TrimOptions { overflow: Overflow::read(Some(400), message), ..TrimOptions::default() };
    for (api, pointer, body) in [
        (
            Api::Chat,
            "/max_tokens",
            json!({"max_tokens": 32000, "messages": [{"role": "user", "content": "x"}]}),
        ),
        (Api::Chat, "/max_completion_tokens", json!({"max_completion_tokens": 32000, "messages": []})),
        (
            Api::Anthropic,
            "/max_tokens",
            json!({"max_tokens": 32000, "thinking": {"type": "enabled", "budget_tokens": 31999}, "messages": []}),
        ),
        (Api::Responses, "/max_output_tokens", json!({"max_output_tokens": 32000, "input": []})),
        (Api::Responses, "/max_output_tokens", json!({"max_output_tokens": 32000, "input": "a text"})),
        (
            Api::Responses,
            "/max_output_tokens",
            json!({"max_output_tokens": 32000, "input": "x", "previous_response_id": "resp_1"}),
        ),
        (
            Api::Gemini,
            "/generation_config/max_output_tokens",
            json!({"generation_config": {"max_output_tokens": 32000}, "contents": []}),
        ),
        (
            Api::Gemini,
            "/generationConfig/maxOutputTokens",
            json!({"generationConfig": {"maxOutputTokens": 32000, "topK": 1}, "contents": []}),
        ),
    ] {
        let (after, report) = trimmed(api, &body, &options);
        assert_eq!(report.max_tokens, Some((32_000, 31_364)), "{api}");
        assert_eq!(after.pointer(pointer).and_then(Value::as_u64), Some(31_364), "{api}");
        assert_eq!(body[api.conversation_key()], after[api.conversation_key()]);
        if let Some(budget) = after.pointer("/thinking/budget_tokens") {
            assert_eq!(budget, 31_363);
        }
    }
}

#[test]
fn what_removing_turns_cannot_help_is_said_with_numbers() {
    let mut body = conversation(Api::Anthropic, &long(3));
    body["tools"] = json!([{"name": "x", "description": text(500_000), "input_schema": {}}]);
    let overflow = Overflow::read(Some(400), "prompt is too long: 213462 tokens > 200000 maximum");
    let options = TrimOptions { overflow, ..TrimOptions::default() };
    let error = trim(Api::Anthropic, &serde_json::to_vec(&body).unwrap(), &options).unwrap_err();
    assert!(
        matches!(error, TrimError::FixedTooLarge { fixed: 200_000..=213_462, limit: 200_000 }),
        "{error}"
    );
    let tiny = br#"{"messages":[{"role":"user","content":"x"}]}"#;
    assert_eq!(
        trim(Api::Chat, tiny, &TrimOptions::default()),
        Err(TrimError::NothingToRemove { messages: 1 })
    );
    let last = json!({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}, {"role": "user", "content": "z"}, {"role": "assistant", "content": "y"}, {"role": "user", "content": text(90_000)}]});
    let overflow = Overflow::read(Some(400), "prompt is too long: 896779 tokens > 200000 maximum");
    let options = TrimOptions { overflow, ..TrimOptions::default() };
    let error = trim(Api::Chat, last.to_string().as_bytes(), &options).unwrap_err();
    assert!(matches!(error, TrimError::StillTooLarge { limit: 200_000, .. }), "{error}");
    let kept = br#"{"previous_response_id":"resp_1","input":[]}"#;
    assert_eq!(
        trim(Api::Responses, kept, &TrimOptions::default()),
        Err(TrimError::ServerSide("previous_response_id"))
    );
    for (body, error) in [
        (&b"[]"[..], "no JSON object"),
        (b"{}", "no list"),
        (br#"{"messages":7}"#, "no list"),
        (b"{", "no JSON object"),
    ] {
        let found = trim(Api::Chat, body, &TrimOptions::default()).unwrap_err();
        assert!(found.to_string().contains(error) && !found.hint().is_empty(), "{found}");
    }
}

#[test]
fn calls_whose_ids_are_used_again_go_one_by_one() {
    let turn = |api: Api| match api {
        Api::Chat => vec![
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "x", "arguments": "{}"}}]}),
            json!({"role": "tool", "tool_call_id": "call_0", "content": text(1000)}),
        ],
        _ => vec![
            json!({"type": "function_call", "call_id": "call_0", "name": "x", "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": "call_0", "output": text(1000)}),
        ],
    };
    for api in [Api::Chat, Api::Responses] {
        let mut items = vec![json!({"role": "user", "content": "task"})];
        items.extend((0..20).flat_map(|_| turn(api)));
        let body = json!({"model": "m", api.conversation_key(): items});
        let (after, report) = trimmed(api, &body, &TrimOptions::default());
        assert_eq!(report.results_shortened, 0, "{api}");
        assert!((18..=24).contains(&report.messages_removed), "{api}: {report:?}");
        assert_eq!(objection(api, &after), None);
    }
}

#[test]
fn one_large_result_is_cut_to_about_half_and_small_turns_stay() {
    for api in Api::ALL {
        let mut turns = long(10);
        turns.push(Turn::Tools { thinks: true, results: vec![400_000] });
        let body = conversation(api, &turns);
        let (after, report) = trimmed(api, &body, &TrimOptions::default());
        assert_eq!((report.messages_removed, report.results_shortened), (0, 1), "{api}");
        let share = report.bytes.1 * 100 / report.bytes.0;
        assert!((45..=50).contains(&share), "{api}: {share} %");
        assert_eq!(objection(api, &after), None);
    }
}

#[test]
fn the_output_of_shells_is_shortened() {
    for (call, output) in [
        (
            json!({"type": "local_shell_call", "call_id": "a", "action": {}}),
            json!({"type": "local_shell_call_output", "call_id": "a", "output": text(90_000)}),
        ),
        (
            json!({"type": "shell_call", "call_id": "a", "action": {}}),
            json!({"type": "shell_call_output", "call_id": "a", "output": [{"stdout": text(90_000), "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}),
        ),
    ] {
        let body = json!({"input": [{"role": "user", "content": "x"}, call, output]});
        let (_, report) = trimmed(Api::Responses, &body, &TrimOptions::default());
        assert_eq!((report.messages_removed, report.results_shortened), (0, 1), "{body}");
    }
}

#[test]
fn behind_a_summary_its_answer_stays() {
    let user = |n: usize| json!({"role": "user", "content": text(n)});
    let said = |n: usize| json!({"role": "assistant", "content": [{"type": "text", "text": text(n)}]});
    let summary = json!({"role": "assistant", "content": [{"type": "compaction", "content": "summary"}]});
    let body = json!({"messages": [user(9), said(900), user(900), summary, user(900), said(900), user(9), said(9), user(9)]});
    let (after, report) =
        trimmed(Api::Anthropic, &body, &TrimOptions { keep_percent: 10, ..TrimOptions::default() });
    assert!(report.messages_removed > 0);
    let roles: Vec<&Value> = after["messages"].as_array().unwrap().iter().map(|item| &item["role"]).collect();
    assert!(roles.windows(2).all(|two| two != ["assistant", "assistant"]), "{after}");
    assert!(after.to_string().contains("compaction"));
}

#[test]
fn where_bytes_are_the_cause_the_oldest_pictures_go() {
    for api in Api::ALL {
        let turns: Vec<Turn> =
            (0..4).flat_map(|_| [Turn::User(20, Some(100_000)), Turn::Answer(20)]).collect();
        let body = conversation(api, &[turns, vec![Turn::User(20, Some(100_000))]].concat());
        let overflow = Overflow::read(Some(413), "Request Entity Too Large");
        let (after, report) = trimmed(api, &body, &TrimOptions { overflow, ..TrimOptions::default() });
        assert_eq!((report.attachments_removed, report.messages_removed), (3, 0), "{api}");
        assert_eq!(objection(api, &after), None);
        let items = after[api.conversation_key()].as_array().unwrap();
        assert!(items.last().unwrap().to_string().len() > 100_000, "{api}: the last picture stays");
    }
}

#[test]
fn results_that_are_not_beside_their_calls_stay_with_them() {
    let filler = text(4000);
    let body = json!({"input": [
        {"role": "user", "content": "task"},
        {"type": "function_call", "call_id": "a", "name": "x", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "x", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "b", "output": filler},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "waiting"}]},
        {"type": "function_call_output", "call_id": "a", "output": filler},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
        {"role": "user", "content": "next"},
    ]});
    let (after, report) =
        trimmed(Api::Responses, &body, &TrimOptions { keep_percent: 80, ..TrimOptions::default() });
    assert_eq!(report.messages_removed, 5);
    assert_eq!(after["input"].as_array().unwrap().len(), 3);
}

#[test]
fn what_stays_is_what_was_sent_to_the_byte() {
    let body = format!(
        r#"{{ "model":"m" , "big":123456789012345678901234567890, "messages": [{{"role":"user","content":"t"}},{{"role":"assistant","content":"{0}"}},{{"role":"user","content":"u"}},{{"role":"assistant","content":"v"  ,"x":1.0}},{{"role":"user","content":"w"}}]}}"#,
        text(2000)
    );
    let after = trim(Api::Chat, body.as_bytes(), &TrimOptions::default()).unwrap();
    let after = String::from_utf8(after.body).unwrap();
    assert!(after.contains(r#""big":123456789012345678901234567890"#), "{after}");
    assert!(
        after.contains(r#"{"role":"assistant","content":"v"  ,"x":1.0},{"role":"user","content":"w"}]"#),
        "{after}"
    );
}
