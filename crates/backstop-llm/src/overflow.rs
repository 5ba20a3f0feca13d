//! The numbers in a provider's message about a request that is too large: how large it is, and how
//! large it may be. They calibrate the estimate by which a conversation is trimmed.

use regex::Regex;
use std::sync::LazyLock;

/// How many bytes of a message are looked at.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// An answer of so many tokens is worth having, however many were asked for.
const USEFUL_TOKENS_MIN: u64 = 1024;

/// How large a request is and may be, as far as the provider says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overflow {
    /// Tokens that were sent.
    pub prompt: Option<u64>,
    /// Tokens that were asked for as an answer.
    pub completion: Option<u64>,
    /// The most tokens that the model takes.
    pub limit: Option<u64>,
    /// Whether bytes were too many, and not tokens.
    pub is_bytes: bool,
    /// The most bytes that a request may have.
    pub bytes_limit: Option<u64>,
}

/// What providers write, each with the numbers that it names.
static WORDINGS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"(?P<prompt>[0-9]+) tokens? > (?P<limit>[0-9]+)",
        r"limit: (?P<prompt>[0-9]+) \+ (?P<completion>[0-9]+) > (?P<limit>[0-9]+)",
        r"too large: (?P<completion>[0-9]+)\..*?context length is (?P<limit>[0-9]+) tokens.{0,40}?request has (?P<prompt>[0-9]+) input tokens",
        r"maximum context length is (?P<limit>[0-9]+) tokens.{0,40}?requested (?P<completion>[0-9]+) output tokens.{0,40}?contains (?:at least )?(?P<prompt>[0-9]+) input tokens",
        r"maximum context length is (?P<limit>[0-9]+) tokens.{0,40}?(?:request has|prompt contains)(?: at least)? (?P<prompt>[0-9]+) input tokens",
        r"context length of (?P<limit>[0-9]+) tokens.{0,40}?total of [0-9]+ tokens: (?P<prompt>[0-9]+) tokens from the input messages and (?P<completion>[0-9]+) tokens",
        r"(?:maximum context length is|limit of) (?P<limit>[0-9]+) tokens.{0,40}?resulted in (?P<prompt>[0-9]+) tokens",
        r"prompt contains (?P<prompt>[0-9]+) tokens.{0,80}?with (?P<limit>[0-9]+) maximum context length",
        r"prompt \(length (?P<prompt>[0-9]+)\)[^0-9]{0,80}length of (?P<limit>[0-9]+)",
        r"token count of (?P<prompt>[0-9]+) exceeds the limit of (?P<limit>[0-9]+)",
        r"length \(?(?P<prompt>[0-9]+)\)? exceeds [^(0-9]{0,60}\((?P<limit>[0-9]+)\)",
        r"too long: (?P<prompt>[0-9]+)[^0-9]{1,40}length: (?P<limit>[0-9]+)",
        r"must be <= (?P<limit>[0-9]+)\. given: (?P<prompt>[0-9]+) .?inputs.? tokens and (?P<completion>[0-9]+) .?max_new_tokens",
        r"less than (?P<limit>[0-9]+) tokens\. given: (?P<prompt>[0-9]+)",
        r"maximum context length is (?P<limit>[0-9]+)[^(]*?requested (?:about )?(?P<total>[0-9]+) tokens(?: \((?P<parts>[^)]*)\))?",
        r"token count \(?(?P<prompt>[0-9]+)\)? exceeds [^(]*\((?P<limit>[0-9]+)\)",
        r"length: 1\.\.(?P<limit>[0-9]+), actual: (?P<prompt>[0-9]+)",
        r"\((?P<prompt>[0-9]+) tokens\)[^(]*\((?P<limit>[0-9]+) tokens\)",
        r"n_keep: (?P<prompt>[0-9]+) *>= *n_ctx: (?P<limit>[0-9]+)",
        r"maximum prompt length is (?P<limit>[0-9]+)[^0-9]*(?P<prompt>[0-9]+) tokens",
        r"length is (?P<prompt>[0-9]+) while limit is (?P<limit>[0-9]+)",
        r"token limit: (?P<limit>[0-9]+) \(requested: (?P<prompt>[0-9]+)\)",
        r"exceed (?P<limit>[0-9]+) - received (?P<prompt>[0-9]+)",
        r"exceeded by (?P<over>[0-9]+) tokens.*?limit for this model is (?P<limit>[0-9]+)",
        r"(?P<prompt>[0-9]+) tokens \(limit (?P<limit>[0-9]+)\)",
        r#""n_prompt_tokens" *: *(?P<prompt>[0-9]+) *, *"n_ctx" *: *(?P<limit>[0-9]+)"#,
        r"limit of (?P<limit>[0-9]+) tokens",
        r"must be <= (?P<limit>[0-9]+)",
    ]
    .into_iter()
    .filter_map(|pattern| Regex::new(&format!("(?s){pattern}")).ok())
    .collect()
});

static PARTS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?P<n>[0-9]+) (?:of|in) (?:the )?(?P<what>[a-z ]+)").ok());

static BYTES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:limit|maximum)[^0-9]{0,20}(?P<limit>[0-9]+) ?(?P<unit>bytes|kb|mb|mib)").ok()
});

impl Overflow {
    /// Reads a provider's message; `status` is that of its answer.
    pub fn read(status: Option<u16>, message: &str) -> Self {
        let mut end = message.len().min(MESSAGE_BYTES_MAX);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        // Lower case instead of a flag: the tables for that are not compiled in.
        let message = without_commas(&message[..end]).to_ascii_lowercase();
        let tokens = message.contains("token") || message.contains("context");
        let is_bytes = !tokens
            && (status == Some(413)
                || ["request_too_large", "payload size", "entity too large", "payload too large"]
                    .iter()
                    .any(|words| message.contains(words)));
        let mut overflow = Self { is_bytes, ..Self::default() };
        if is_bytes {
            overflow.bytes_limit = bytes_limit(&message);
            return overflow;
        }
        let Some(found) = WORDINGS.iter().find_map(|wording| wording.captures(&message)) else {
            return overflow;
        };
        let number = |name: &str| found.name(name).and_then(|text| text.as_str().parse::<u64>().ok());
        overflow.limit = number("limit");
        overflow.prompt = number("prompt");
        overflow.completion = number("completion");
        if let Some(parts) = found.name("parts") {
            let (prompt, completion) = read_parts(parts.as_str());
            overflow.prompt = prompt;
            overflow.completion = completion;
        }
        if let Some(total) = number("total").filter(|_| overflow.prompt.is_none()) {
            overflow.prompt = Some(total.saturating_sub(overflow.completion.unwrap_or(0)));
        }
        if let (Some(over), Some(limit)) = (number("over"), overflow.limit) {
            overflow.prompt = Some(limit.saturating_add(over));
        }
        overflow
    }

    /// The largest answer that fits beside what was sent, where the answer that was asked for is
    /// what does not fit. None where too little is left for an answer worth having.
    pub fn smaller_completion(&self) -> Option<u64> {
        let (prompt, completion, limit) = (self.prompt?, self.completion?, self.limit?);
        let margin = limit / 100;
        let left = limit.checked_sub(prompt)?.checked_sub(margin)?;
        let is_useful = left >= USEFUL_TOKENS_MIN || left >= completion.div_ceil(4);
        (is_useful && left < completion && left > 0).then_some(left)
    }
}

/// `6683 in the messages, 730 in the functions, and 800 in the completion`.
fn read_parts(text: &str) -> (Option<u64>, Option<u64>) {
    let (mut prompt, mut completion): (Option<u64>, Option<u64>) = (None, None);
    for part in PARTS.iter().flat_map(|parts| parts.captures_iter(text)) {
        let Ok(n) = part["n"].parse::<u64>() else { continue };
        let what = &part["what"];
        let place = if what.contains("completion") || what.contains("output") {
            &mut completion
        } else {
            &mut prompt
        };
        *place = Some(place.unwrap_or(0).saturating_add(n));
    }
    (prompt, completion)
}

fn bytes_limit(message: &str) -> Option<u64> {
    let found = BYTES.as_ref()?.captures(message)?;
    let number: u64 = found["limit"].parse().ok()?;
    let unit = match &found["unit"] {
        "kb" => 1 << 10,
        "mb" | "mib" => 1 << 20,
        _ => 1,
    };
    number.checked_mul(unit)
}

/// `1,234,567` as `1234567`.
fn without_commas(text: &str) -> String {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    text.char_indices()
        .filter(|(at, c)| *c != ',' || !(digit(at.checked_sub(1)) && digit(Some(at + 1))))
        .map(|(_, c)| c)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_each_providers_words() {
        for (message, prompt, completion, limit) in [
            ("prompt is too long: 213462 tokens > 200000 maximum", Some(213_462), None, Some(200_000)),
            (
                "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
                Some(188_240),
                Some(21_333),
                Some(200_000),
            ),
            (
                "This model's maximum context length is 8192 tokens. However, you requested 8213 tokens (6683 in the messages, 730 in the functions, and 800 in the completion).",
                Some(7413),
                Some(800),
                Some(8192),
            ),
            (
                "This endpoint's maximum context length is 65,536 tokens. However, you requested about 81,000 tokens (80,000 of text input, 1,000 in the output).",
                Some(80_000),
                Some(1000),
                Some(65_536),
            ),
            (
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 500000 tokens. Please reduce the length of the messages.",
                Some(500_000),
                None,
                Some(128_000),
            ),
            (
                "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 344888 tokens.",
                Some(344_888),
                None,
                Some(272_000),
            ),
            (
                "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 1077 input tokens (32000 > 32768 - 1077). (parameter=max_tokens, value=32000)",
                Some(1077),
                Some(32_000),
                Some(32_768),
            ),
            (
                "This model's maximum context length is 32768 tokens. However, you requested 32000 output tokens and your prompt contains at least 1077 input tokens, for a total of at least 33077 tokens.",
                Some(1077),
                Some(32_000),
                Some(32_768),
            ),
            (
                "This model's maximum context length is 32768 tokens. However, your request has 40960 input tokens. Please reduce the length of the input messages.",
                Some(40_960),
                None,
                Some(32_768),
            ),
            (
                "This model's maximum context length is 32768 tokens. However, your prompt contains at least 32769 input tokens.",
                Some(32_769),
                None,
                Some(32_768),
            ),
            (
                "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 33077 tokens: 1077 tokens from the input messages and 32000 tokens for the completion.",
                Some(1077),
                Some(32_000),
                Some(32_768),
            ),
            (
                "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
                Some(40_000),
                None,
                Some(32_768),
            ),
            (
                "The decoder prompt (length 40000) is longer than the maximum model length of 32768.",
                Some(40_000),
                None,
                Some(32_768),
            ),
            (
                "Input length (40000) exceeds model's maximum context length (32768).",
                Some(40_000),
                None,
                Some(32_768),
            ),
            ("prompt token count of 213462 exceeds the limit of 128000", Some(213_462), None, Some(128_000)),
            (
                "The prompt is too long: 213462, model maximum context length: 131071",
                Some(213_462),
                None,
                Some(131_071),
            ),
            (
                "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3900 `inputs` tokens and 500 `max_new_tokens`",
                Some(3900),
                Some(500),
                Some(4096),
            ),
            (
                "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000",
                Some(2000),
                None,
                Some(1024),
            ),
            (
                "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)",
                Some(1_196_265),
                None,
                Some(1_048_575),
            ),
            ("prompt: length: 1..200000, actual: 231000 context", Some(231_000), None, Some(200_000)),
            (
                "The input (40960 tokens) is longer than the model's context length (32768 tokens).",
                Some(40_960),
                None,
                Some(32_768),
            ),
            (
                "request (138229 tokens) exceeds the available context size (133376 tokens), try increasing it",
                Some(138_229),
                None,
                Some(133_376),
            ),
            ("is greater than the context length (n_keep: 9120>= n_ctx: 4096)", Some(9120), None, Some(4096)),
            (
                "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
                Some(537_812),
                None,
                Some(131_072),
            ),
            ("Current length is 50000 while limit is 40000 context", Some(50_000), None, Some(40_000)),
            (
                "Your request exceeded model token limit: 262144 (requested: 269030)",
                Some(269_030),
                None,
                Some(262_144),
            ),
            (
                "total number of tokens in the prompt cannot exceed 4081 - received 4297.",
                Some(4297),
                None,
                Some(4081),
            ),
            (
                "size limit exceeded by 1200 tokens. Try fewer. The limit for this model is 128000 tokens.",
                Some(129_200),
                None,
                Some(128_000),
            ),
            ("the request is ~213462 tokens (limit 200000)", Some(213_462), None, Some(200_000)),
            ("exceeds the model's maximum context limit of 8192 tokens.", None, None, Some(8192)),
            ("Input is too long for requested model.", None, None, None),
        ] {
            let read = Overflow::read(Some(400), message);
            assert_eq!((read.prompt, read.completion, read.limit), (prompt, completion, limit), "{message}");
            assert!(!read.is_bytes, "{message}");
        }
    }

    #[test]
    fn bytes_are_told_from_tokens() {
        let read = |status, message| Overflow::read(Some(status), message);
        assert!(read(413, "413 Request Entity Too Large").is_bytes);
        assert!(
            read(
                413,
                r#"{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#
            )
            .is_bytes
        );
        let vertex = read(400, "Request payload size exceeds the limit: 20971520 bytes.");
        assert_eq!((vertex.is_bytes, vertex.bytes_limit), (true, Some(20_971_520)));
        assert_eq!(read(413, "maximum size of 32 MB").bytes_limit, Some(32 << 20));
        assert!(!read(413, "prompt is too long: 3 tokens > 2").is_bytes);
        assert!(!read(400, "The request payload size has exceed context limit.").is_bytes);
    }

    #[test]
    fn an_answer_that_does_not_fit_is_told_from_a_prompt_that_does_not() {
        let of = |prompt, completion, limit| Overflow {
            prompt: Some(prompt),
            completion: Some(completion),
            limit: Some(limit),
            ..Overflow::default()
        };
        assert_eq!(of(1077, 32_000, 32_768).smaller_completion(), Some(31_364));
        assert_eq!(of(188_240, 21_333, 200_000).smaller_completion(), Some(9760), "a useful answer is left");
        assert_eq!(of(197_500, 21_333, 200_000).smaller_completion(), None, "500 of 21,333 is none");
        assert_eq!(of(7800, 500, 8192).smaller_completion(), Some(311), "more than a quarter of it");
        assert_eq!(of(300_000, 1000, 200_000).smaller_completion(), None);
        assert_eq!(Overflow::default().smaller_completion(), None);
    }
}
