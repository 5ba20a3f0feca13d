//! Makes a conversation smaller and leaves it valid.
//!
//! The oldest units go first (`units`), or the oldest attachments where bytes are the cause, until
//! about half is left, and one marker says so. Instructions, the first message of a person and the
//! last unit stay; what stays, stays to the byte. Where what stays is too large by itself, its
//! oldest tool results are shortened, first of all. Where the answer that was asked for is what
//! does not fit, it is made smaller instead.
//!
//! Sizes are estimated by bytes and calibrated by the numbers in the provider's own message, where
//! it names some. It must not change the meaning of what it keeps, and it knows no model.

mod attachments;
mod document;
mod tool_results;
mod units;

use crate::{Api, Overflow};
use backstop_core::{ErrorKind, HintedError};
use backstop_report::TrimReport;
use document::{Document, Item, Unreadable};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use units::Units;

/// What stands in the first message of a person once turns were removed.
pub const MARKER: &str = "[Earlier turns of this conversation were removed by backstop, so that it fits the model's context window.]";
/// A token has about so many bytes.
const BYTES_PER_TOKEN: u64 = 4;
/// How much of the window a trimmed conversation may fill, in percent: the estimate of what is left
/// is not exact.
const WINDOW_PERCENT_MAX: u64 = 80;
/// A request is not worth sending if the estimate of its size is beyond this share of what the
/// model takes, in percent.
const HOPELESS_PERCENT: u64 = 150;
/// Anthropic refuses a smaller thinking budget.
const THINKING_TOKENS_MIN: u64 = 1024;

/// How a conversation is trimmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrimOptions {
    /// How much is kept, in percent: 1 to 99.
    pub keep_percent: u8,
    /// What the provider said about its size.
    pub overflow: Overflow,
}

impl Default for TrimOptions {
    fn default() -> Self {
        Self { keep_percent: 50, overflow: Overflow::default() }
    }
}

/// A smaller request, and what is different.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trimmed {
    /// The request, as JSON.
    pub body: Vec<u8>,
    /// What was done to it.
    pub report: TrimReport,
}

/// Why a request cannot be made smaller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrimError {
    /// It is no JSON object.
    #[error("the request is no JSON object: {0}")]
    NotJson(String),
    /// There is no list of messages in it.
    #[error("the request has no list `{0}`")]
    NoConversation(&'static str),
    /// The provider keeps the conversation; it is not in the request.
    #[error("the conversation is kept by the provider (`{0}`), so that nothing can be removed from it here")]
    ServerSide(&'static str),
    /// Instructions and tools alone do not fit.
    #[error(
        "instructions and tools alone are about {fixed} tokens, and the model takes {limit}: removing turns would not help"
    )]
    FixedTooLarge {
        /// Their size in tokens.
        fixed: u64,
        /// What the model takes.
        limit: u64,
    },
    /// What has to stay does not fit, even with shorter tool results.
    #[error(
        "what has to stay is still about {left} tokens, and the model takes {limit}: the first and the last messages are too large"
    )]
    StillTooLarge {
        /// The size of what would be left, in tokens.
        left: u64,
        /// What the model takes.
        limit: u64,
    },
    /// Everything in it has to stay.
    #[error(
        "there is nothing that can be removed: {messages} messages, all of them instructions, the first or the last ones"
    )]
    NothingToRemove {
        /// How many messages there are.
        messages: usize,
    },
}

impl TrimError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotJson(_) | Self::NoConversation(_) => {
                "give the body of a request to Anthropic Messages, OpenAI Chat or Responses, or Gemini"
            }
            Self::ServerSide(_) => "set `truncation` to `auto` in the request, or begin a new conversation",
            Self::FixedTooLarge { .. } => {
                "use fewer tools or shorter instructions, or a model with a larger window"
            }
            Self::StillTooLarge { .. } | Self::NothingToRemove { .. } => {
                "shorten the last message, or begin a new conversation"
            }
        }
    }
}

impl HintedError for TrimError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotJson(_) | Self::NoConversation(_) => ErrorKind::Usage,
            _ => ErrorKind::Failed,
        }
    }

    fn hints(&self) -> Vec<String> {
        vec![self.hint().to_owned()]
    }
}

/// The members that refer to a conversation which the provider keeps.
const SERVER_SIDE: [&str; 2] = ["previous_response_id", "conversation"];

/// Makes a request smaller.
pub fn trim(api: Api, body: &[u8], options: &TrimOptions) -> Result<Trimmed, TrimError> {
    let key = api.conversation_key();
    let document = Document::read(body, api).map_err(|error| match error {
        Unreadable::NotJson(why) => TrimError::NotJson(why),
        Unreadable::NoConversation => TrimError::NoConversation(key),
    })?;
    Trim::new(api, body.len(), document, options).run()
}

/// A request with another value of one member. None where it is no JSON object.
pub(crate) fn with_member(body: &[u8], name: &str, value: &Value) -> Option<Vec<u8>> {
    let members: document::Members<'_> = serde_json::from_slice(body).ok()?;
    let mut text = String::from("{");
    for (n, (key, raw)) in members.0.iter().enumerate() {
        text.push_str(if n > 0 { "," } else { "" });
        text.push_str(&Value::from(key.as_ref()).to_string());
        text.push(':');
        text.push_str(&if key == name { value.to_string() } else { raw.get().to_owned() });
    }
    text.push('}');
    Some(text.into_bytes())
}

/// A request that is being trimmed.
struct Trim<'j> {
    api: Api,
    document: Document<'j>,
    options: TrimOptions,
    keep: Vec<bool>,
    report: TrimReport,
    /// The size of everything beside the conversation, in bytes.
    beside: u64,
}

impl<'j> Trim<'j> {
    fn new(api: Api, bytes: usize, document: Document<'j>, options: &TrimOptions) -> Self {
        let report =
            TrimReport { messages: document.items.len(), bytes: (bytes, bytes), ..TrimReport::default() };
        let keep = vec![true; document.items.len()];
        let beside = document.bytes_beside() as u64;
        Self { api, document, options: *options, keep, report, beside }
    }

    fn run(mut self) -> Result<Trimmed, TrimError> {
        let overflow = self.options.overflow;
        if let Some(smaller) = overflow.smaller_completion()
            && let Some(trimmed) = self.with_smaller_answer(smaller)
        {
            return Ok(trimmed);
        }
        let is_set = |name: &&str| self.document.member(name).is_some_and(|member| !member.is_null());
        if let Some(name) = SERVER_SIDE.into_iter().find(is_set).filter(|_| self.api == Api::Responses) {
            return Err(TrimError::ServerSide(name));
        }
        let before = self.size();
        let units = Units::of(self.api, &self.document.items);
        self.check_fixed(&units, before)?;
        let target = self.target(before);
        if overflow.is_bytes {
            self.remove_attachments(&units, target);
        }
        self.shorten_pinned(&units, target);
        self.remove_units(&units, target);
        if self.size() > target {
            self.shorten_results(target);
        }
        if self.report.messages_removed > 0 {
            self.mark(units.first_user);
        }
        let report = &self.report;
        if report.messages_removed + report.attachments_removed + report.results_shortened == 0 {
            return Err(TrimError::NothingToRemove { messages: report.messages });
        }
        let left = self.tokens(self.size(), before);
        if let (Some(_), Some(limit), false) = (overflow.prompt, overflow.limit, overflow.is_bytes)
            && left.saturating_mul(100) > limit.saturating_mul(HOPELESS_PERCENT)
        {
            return Err(TrimError::StillTooLarge { left, limit });
        }
        let body = self.document.write(&self.keep, &[]);
        self.report.tokens = (self.tokens(before, before), left);
        self.report.bytes.1 = body.len();
        Ok(Trimmed { body, report: self.report })
    }

    /// The size of one item, in bytes. A picture costs a model about the same however many bytes it
    /// has, unless bytes are what counts.
    fn weight(&self, item: &Item<'_>) -> u64 {
        let bytes = item.text.len() as u64;
        if self.options.overflow.is_bytes {
            return bytes;
        }
        bytes - item.beyond_worth.min(bytes)
    }

    /// The size of what is kept so far.
    fn size(&self) -> u64 {
        let kept = self.document.items.iter().zip(&self.keep).filter(|(_, keep)| **keep);
        self.beside + kept.map(|(item, _)| self.weight(item)).sum::<u64>()
    }

    /// A size in tokens: by the provider's own count of the whole, where it named it.
    fn tokens(&self, size: u64, whole: u64) -> u64 {
        match self.options.overflow.prompt {
            Some(prompt) if whole > 0 => {
                u64::try_from(u128::from(size) * u128::from(prompt) / u128::from(whole)).unwrap_or(u64::MAX)
            }
            _ => size / BYTES_PER_TOKEN,
        }
    }

    /// How large the request may be: what is to be kept of it, and no more than the provider takes.
    fn target(&self, before: u64) -> u64 {
        let overflow = self.options.overflow;
        let wanted = before / 100 * u64::from(self.options.keep_percent.clamp(1, 99));
        let allowed = if overflow.is_bytes {
            overflow.bytes_limit.map(|limit| limit / 100 * WINDOW_PERCENT_MAX)
        } else {
            self.window(before)
        };
        allowed.map_or(wanted, |allowed| wanted.min(allowed))
    }

    /// What fits into the model's window beside the answer, as a size like all others here.
    fn window(&self, before: u64) -> Option<u64> {
        let (prompt, limit) = (self.options.overflow.prompt?, self.options.overflow.limit?);
        let answer = self.options.overflow.completion.unwrap_or(0).min(limit / 2);
        let room = (limit - answer) / 100 * WINDOW_PERCENT_MAX;
        let size = u128::from(before) * u128::from(room) / u128::from(prompt.max(1));
        u64::try_from(size).ok()
    }

    /// Refuses what cannot be helped by removing turns.
    fn check_fixed(&self, units: &Units, before: u64) -> Result<(), TrimError> {
        let Some(limit) = self.options.overflow.limit.filter(|_| !self.options.overflow.is_bytes) else {
            return Ok(());
        };
        let items = &self.document.items;
        let instructions = units.units.iter().filter(|unit| unit.pinned).flat_map(|unit| &unit.items);
        let instructions = instructions.filter(|n| units::is_instruction(&items[**n].value()));
        let size = self.beside + instructions.map(|n| self.weight(&items[*n])).sum::<u64>();
        let fixed = self.tokens(size, before);
        if fixed >= limit { Err(TrimError::FixedTooLarge { fixed, limit }) } else { Ok(()) }
    }

    fn remove_units(&mut self, units: &Units, target: u64) {
        let mut size = self.size();
        for unit in units.units.iter().filter(|unit| !unit.pinned) {
            if size <= target {
                return;
            }
            for n in &unit.items {
                size -= self.weight(&self.document.items[*n]).min(size);
                self.keep[*n] = false;
                self.report.messages_removed += 1;
            }
        }
    }

    /// Removes the oldest images and documents; those of the last unit only if nothing else helps.
    fn remove_attachments(&mut self, units: &Units, target: u64) {
        let last: BTreeSet<usize> =
            units.units.last().map(|unit| unit.items.iter().copied().collect()).unwrap_or_default();
        let older = (0..self.document.items.len()).filter(|n| !last.contains(n));
        let order: Vec<usize> = older.chain(last.iter().copied()).collect();
        let mut size = self.size();
        for n in order {
            let over = size.saturating_sub(target);
            if over == 0 {
                return;
            }
            let (removed, saved) = self.change_item(n, |api, value| attachments::remove(api, value, over));
            size = size.saturating_sub(saved);
            self.report.attachments_removed += removed;
        }
    }

    /// Changes an item. Gives what `change` counted, and by how much the item weighs less.
    fn change_item(&mut self, n: usize, change: impl FnOnce(Api, &mut Value) -> usize) -> (usize, u64) {
        let before = self.weight(&self.document.items[n]);
        let item = &mut self.document.items[n];
        let mut value = item.value();
        let count = change(self.api, &mut value);
        if count == 0 {
            return (0, 0);
        }
        item.change(&value);
        (count, before.saturating_sub(self.weight(&self.document.items[n])))
    }

    /// Shortens the results in what has to stay, where that alone is too large: removing all the
    /// rest would not help. Then at least half of the room is left for the rest.
    fn shorten_pinned(&mut self, units: &Units, target: u64) {
        let mut pinned = vec![false; self.keep.len()];
        for n in units.units.iter().filter(|unit| unit.pinned).flat_map(|unit| &unit.items) {
            pinned[*n] = true;
        }
        let size = self.size();
        let rest = self.document.items.iter().zip(&pinned).filter(|(_, pinned)| !**pinned);
        let rest: u64 = rest.map(|(item, _)| self.weight(item)).sum();
        if size - rest > target {
            let room = target.saturating_sub(rest).max(target / 2);
            self.shorten(&pinned, size - rest - room);
        }
    }

    /// Shortens the results in everything that is left.
    fn shorten_results(&mut self, target: u64) {
        let kept = self.keep.clone();
        self.shorten(&kept, self.size().saturating_sub(target));
    }

    /// Shortens the oldest results in some items until they weigh less by `over` bytes.
    fn shorten(&mut self, which: &[bool], mut over: u64) {
        for (n, _) in which.iter().enumerate().filter(|(_, is_wanted)| **is_wanted) {
            if over == 0 {
                return;
            }
            let (shortened, saved) =
                self.change_item(n, |api, value| tool_results::shorten(api, value, over));
            over = over.saturating_sub(saved);
            self.report.results_shortened += shortened;
        }
    }

    /// Says in the first message of a person that something is missing, once.
    fn mark(&mut self, first_user: Option<usize>) {
        let Some(n) = first_user.filter(|n| self.keep[*n]) else { return };
        let item = &mut self.document.items[n];
        if item.text.contains(MARKER) {
            return;
        }
        let (key, block) = match self.api {
            Api::Anthropic | Api::Chat => ("content", json!({"type": "text", "text": MARKER})),
            Api::Responses => ("content", json!({"type": "input_text", "text": MARKER})),
            Api::Gemini => ("parts", json!({"text": MARKER})),
        };
        let mut value = item.value();
        match value.get_mut(key) {
            Some(Value::String(text)) => {
                text.push_str("\n\n");
                text.push_str(MARKER);
            }
            // Behind everything else: what a provider has cached of the start stays valid.
            Some(Value::Array(blocks)) => blocks.push(block),
            _ => return,
        }
        item.change(&value);
    }

    /// The same request with a smaller answer; none where the request does not say how large the
    /// answer may be, or thinking would not fit into it.
    fn with_smaller_answer(&mut self, smaller: u64) -> Option<Trimmed> {
        let mut replaced: Vec<(&str, Value)> = Vec::new();
        // Gemini has two spellings, and the number one level deeper.
        let keys: &[(&str, Option<&str>)] = match self.api {
            Api::Anthropic => &[("max_tokens", None)],
            Api::Chat => &[("max_completion_tokens", None), ("max_tokens", None)],
            Api::Responses => &[("max_output_tokens", None)],
            Api::Gemini => &[
                ("generationConfig", Some("maxOutputTokens")),
                ("generationConfig", Some("max_output_tokens")),
                ("generation_config", Some("max_output_tokens")),
                ("generation_config", Some("maxOutputTokens")),
            ],
        };
        let (key, inner, mut member, before) = keys.iter().find_map(|(key, inner)| {
            let member = self.document.member(key)?;
            let number = inner.map_or(Some(&member), |inner| member.get(inner)).and_then(Value::as_u64)?;
            Some((*key, *inner, member, number))
        })?;
        match inner {
            Some(inner) => member[inner] = smaller.into(),
            None => member = smaller.into(),
        }
        replaced.push((key, member));
        if before <= smaller {
            return None;
        }
        if let Some(mut thinking) = self.document.member("thinking")
            && let Some(budget) = thinking.get("budget_tokens").and_then(Value::as_u64)
            && budget >= smaller
        {
            if smaller <= THINKING_TOKENS_MIN {
                return None;
            }
            thinking["budget_tokens"] = (smaller - 1).max(THINKING_TOKENS_MIN).into();
            replaced.push(("thinking", thinking));
        }
        let body = self.document.write(&self.keep, &replaced);
        let size = self.size();
        let tokens = self.tokens(size, size);
        let report = TrimReport {
            max_tokens: Some((before, smaller)),
            tokens: (tokens, tokens),
            bytes: (self.report.bytes.0, body.len()),
            ..self.report
        };
        Some(Trimmed { body, report })
    }
}
