//! Which parts of a conversation go or stay together.
//!
//! A unit is what the model said, with what was answered to it: its tool calls and all their
//! results, its reasoning and what follows it. Whoever removes whole units after the first user
//! message leaves every call with its results and the roles alternating.

use super::document::Item;
use crate::Api;
use serde_json::Value;
use std::collections::HashMap;

/// Who an item is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Instructions, which always stay.
    System,
    /// What the model said.
    Model,
    /// What a person said or a tool answered.
    Input,
}

/// Items that go or stay together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    /// Which items, in order.
    pub(super) items: Vec<usize>,
    /// Whether it stays.
    pub(super) pinned: bool,
}

/// What ties an item to others.
struct Links {
    part: Part,
    is_user: bool,
    /// Whether it stands for what was before it, so that it stays.
    is_summary: bool,
    /// Whether it begins with what the model thought.
    thinks: bool,
    /// Whether what the model thought may be in an item before it.
    may_continue: bool,
    /// The ids of the calls that it makes.
    calls: Vec<String>,
    /// The ids of the calls that it answers.
    answers: Vec<String>,
}

impl Links {
    fn of(api: Api, item: &Value) -> Self {
        Self {
            part: part(api, item),
            is_user: is_user(api, item),
            is_summary: api == Api::Anthropic && has_block(item, "compaction"),
            thinks: thinks(api, item),
            may_continue: may_continue(api, item),
            calls: calls(api, item),
            answers: answers(api, item),
        }
    }
}

/// The units of a conversation, oldest first, and the first message of a person.
pub(super) struct Units {
    pub(super) units: Vec<Unit>,
    pub(super) first_user: Option<usize>,
}

impl Units {
    pub(super) fn of(api: Api, items: &[Item<'_>]) -> Self {
        let links: Vec<Links> = items.iter().map(|item| Links::of(api, &item.value())).collect();
        let parts: Vec<Part> = links.iter().map(|item| item.part).collect();
        let first_user = links.iter().position(|item| item.is_user);
        let last_user = links.iter().rposition(|item| item.is_user);
        let mut units: Vec<Unit> = Vec::new();
        // The unit that what comes next belongs to: after the model's words come those of others.
        let mut open: Option<(usize, Part)> = None;
        for (n, part) in parts.iter().enumerate() {
            // Calls behind results, without a thought of their own: the thought that they need is
            // in the unit before. Where a person has spoken since, providers need none.
            let continues = |unit: &Unit| {
                let is_loop = api != Api::Anthropic || last_user.is_none_or(|last| n > last);
                let behind_results = n.checked_sub(1).is_some_and(|n| !links[n].is_user);
                let thought = unit.items.iter().any(|n| links[*n].thinks);
                links[n].may_continue && is_loop && behind_results && thought
            };
            let joins = match (open, part) {
                (Some((unit, Part::Model)), Part::Model | Part::Input) => Some(unit),
                (Some((unit, Part::Input)), Part::Input) => Some(unit),
                (Some((unit, Part::Input)), Part::Model) if continues(&units[unit]) => Some(unit),
                _ => None,
            };
            match (part, joins) {
                (Part::System, _) => units.push(Unit { items: vec![n], pinned: true }),
                _ if first_user == Some(n) => {
                    units.push(Unit { items: vec![n], pinned: true });
                    open = None;
                }
                (_, Some(unit)) => {
                    units[unit].items.push(n);
                    units[unit].pinned |= links[n].is_summary;
                    open = Some((unit, *part));
                }
                (_, None) => {
                    units.push(Unit { items: vec![n], pinned: links[n].is_summary });
                    open = Some((units.len() - 1, *part));
                }
            }
        }
        pin_the_end(&mut units, &parts);
        join_by_call(&links, &mut units);
        Self { units, first_user }
    }
}

/// The last words that were said to the model stay, and everything after them.
fn pin_the_end(units: &mut [Unit], parts: &[Part]) {
    let last_input = parts.iter().rposition(|part| *part == Part::Input);
    let Some(last) = last_input.or_else(|| parts.len().checked_sub(1)) else { return };
    for unit in units.iter_mut().filter(|unit| unit.items.iter().any(|n| *n >= last)) {
        unit.pinned = true;
    }
}

/// Calls and results that were not written next to each other belong together all the same.
fn join_by_call(links: &[Links], units: &mut Vec<Unit>) {
    let mut unit_of_call: HashMap<&str, usize> = HashMap::new();
    let mut joined: Vec<usize> = (0..units.len()).collect();
    for (n, unit) in units.iter().enumerate() {
        for item in &unit.items {
            // Some clients count the calls of each turn anew: the nearest one before is meant.
            for call in &links[*item].calls {
                unit_of_call.insert(call, n);
            }
            for answered in &links[*item].answers {
                if let Some(&asked) = unit_of_call.get(&**answered) {
                    let (one, other) = (first_of(&mut joined, asked), first_of(&mut joined, n));
                    joined[one.max(other)] = one.min(other);
                }
            }
        }
    }
    if joined.iter().enumerate().all(|(n, unit)| n == *unit) {
        return;
    }
    for n in 0..units.len() {
        let first = first_of(&mut joined, n);
        if first != n {
            let (gone, pinned) = (std::mem::take(&mut units[n].items), units[n].pinned);
            units[first].items.extend(gone);
            units[first].pinned |= pinned;
        }
    }
    units.retain(|unit| !unit.items.is_empty());
}

/// The first of the units that this one is joined with. Shortens the way to it.
fn first_of(joined: &mut [usize], mut unit: usize) -> usize {
    while joined[unit] != unit {
        joined[unit] = joined[joined[unit]];
        unit = joined[unit];
    }
    unit
}

/// Whether an item is an instruction of the program.
pub(super) fn is_instruction(item: &Value) -> bool {
    matches!(role(item), "system" | "developer")
}

fn role(item: &Value) -> &str {
    item.get("role").and_then(Value::as_str).unwrap_or_default()
}

fn kind(item: &Value) -> &str {
    item.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn part(api: Api, item: &Value) -> Part {
    let (role, kind) = (role(item), kind(item));
    if is_instruction(item) {
        return Part::System;
    }
    match api {
        Api::Anthropic | Api::Chat if role == "assistant" => Part::Model,
        Api::Gemini if role == "model" => Part::Model,
        // A conversation that is a single text.
        Api::Responses if item.is_string() => Part::Input,
        Api::Responses => match kind {
            "" | "message" if role == "user" => Part::Input,
            "compaction" | "compaction_summary" | "mcp_list_tools" => Part::System,
            kind if kind.ends_with("_output") || kind == "mcp_approval_response" => Part::Input,
            _ => Part::Model,
        },
        _ => Part::Input,
    }
}

/// Whether an item begins with what the model thought.
fn thinks(api: Api, item: &Value) -> bool {
    match api {
        Api::Anthropic => matches!(
            item.pointer("/content/0/type").and_then(Value::as_str),
            Some("thinking" | "redacted_thinking")
        ),
        Api::Responses => kind(item) == "reasoning",
        Api::Chat | Api::Gemini => false,
    }
}

/// Whether what led to an item may be in a thought before it.
fn may_continue(api: Api, item: &Value) -> bool {
    match api {
        Api::Anthropic => role(item) == "assistant" && !thinks(api, item),
        Api::Responses => kind(item).ends_with("_call"),
        Api::Chat | Api::Gemini => false,
    }
}

fn has_block(item: &Value, kind: &str) -> bool {
    let blocks = item.get("content").and_then(Value::as_array);
    blocks.into_iter().flatten().any(|block| block.get("type").and_then(Value::as_str) == Some(kind))
}

/// Whether an item is a message of a person, and no tool's answer.
fn is_user(api: Api, item: &Value) -> bool {
    match api {
        Api::Anthropic => role(item) == "user" && !has_block(item, "tool_result"),
        Api::Chat => role(item) == "user",
        Api::Responses if item.is_string() => true,
        Api::Responses => role(item) == "user" && matches!(kind(item), "" | "message"),
        Api::Gemini => {
            let parts = item.get("parts").and_then(Value::as_array);
            let answers = parts.into_iter().flatten().any(|part| {
                part.get("functionResponse").is_some() || part.get("function_response").is_some()
            });
            matches!(role(item), "user" | "") && !answers
        }
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// The ids of the calls that an item makes.
fn calls(api: Api, item: &Value) -> Vec<String> {
    match api {
        Api::Chat => {
            let calls = item.get("tool_calls").and_then(Value::as_array);
            calls.into_iter().flatten().filter_map(|call| text(call, "id")).collect()
        }
        Api::Responses if kind(item) == "mcp_approval_request" => text(item, "id").into_iter().collect(),
        Api::Responses if !kind(item).ends_with("_output") => text(item, "call_id").into_iter().collect(),
        // Answers follow their calls at once.
        _ => Vec::new(),
    }
}

/// The ids of the calls that an item answers.
fn answers(api: Api, item: &Value) -> Vec<String> {
    match api {
        Api::Chat => text(item, "tool_call_id").into_iter().collect(),
        Api::Responses if kind(item) == "mcp_approval_response" => {
            text(item, "approval_request_id").into_iter().collect()
        }
        Api::Responses if kind(item).ends_with("_output") => text(item, "call_id").into_iter().collect(),
        _ => Vec::new(),
    }
}
