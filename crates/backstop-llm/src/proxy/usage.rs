//! Tokens and money, as answers report them, and prices from the settings.

use crate::Api;
use backstop_core::Usage;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a model costs, in millionths of a dollar for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Price {
    /// Of what is read.
    pub input: u64,
    /// Of what is written.
    pub output: u64,
}

/// Prices by model. A model that is not listed costs what the longest listed beginning of its name
/// costs.
#[derive(Debug, Clone, Default)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    /// What was used, with what it cost where that is known.
    pub(super) fn priced(&self, model: Option<&str>, mut usage: Usage) -> Usage {
        let model = model.unwrap_or_default();
        let fitting = self.0.iter().filter(|(name, _)| model.starts_with(name.as_str()));
        if let Some((_, price)) = fitting.max_by_key(|(name, _)| name.len()) {
            let millionths = u128::from(usage.input_tokens) * u128::from(price.input)
                + u128::from(usage.output_tokens) * u128::from(price.output);
            #[expect(clippy::cast_precision_loss)] // A sum of money this large is no sum of money.
            let dollars = millionths as f64 / 1e12;
            usage.cost_usd = Some(dollars);
        }
        usage
    }
}

/// Adds what an answer, or an event of a stream, reports. Later reports of a stream replace earlier
/// ones, as they count from its beginning.
pub(super) fn read(api: Api, value: &Value, usage: &mut Usage) {
    let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_u64);
    let found = match api {
        Api::Anthropic => value.get("usage").or_else(|| value.pointer("/message/usage")),
        Api::Chat => value.get("usage"),
        Api::Responses => value.get("usage").or_else(|| value.pointer("/response/usage")),
        Api::Gemini => value.get("usageMetadata").or_else(|| value.pointer("/0/usageMetadata")),
    };
    let Some(found) = found.filter(|found| found.is_object()) else { return };
    let (input, output) = match api {
        Api::Anthropic => {
            let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
            let cached: u64 = cached.iter().filter_map(|key| number(found, key)).sum();
            (number(found, "input_tokens").map(|input| input + cached), number(found, "output_tokens"))
        }
        Api::Chat => (number(found, "prompt_tokens"), number(found, "completion_tokens")),
        Api::Responses => (number(found, "input_tokens"), number(found, "output_tokens")),
        Api::Gemini => {
            let thoughts = number(found, "thoughtsTokenCount").unwrap_or(0);
            let output = number(found, "candidatesTokenCount").map(|output| output + thoughts);
            (number(found, "promptTokenCount"), output)
        }
    };
    usage.input_tokens = input.unwrap_or(usage.input_tokens).max(usage.input_tokens);
    usage.output_tokens = output.unwrap_or(usage.output_tokens).max(usage.output_tokens);
}

/// Whether an event may report usage.
pub(super) fn may_report(event: &[u8]) -> bool {
    memchr::memmem::find(event, b"\"usage").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn usage_is_read_from_every_api() {
        for (api, values, input, output) in [
            (
                Api::Anthropic,
                vec![
                    json!({"type": "message_start", "message": {"usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 1}}}),
                    json!({"type": "message_delta", "usage": {"output_tokens": 42}}),
                ],
                100,
                42,
            ),
            (
                Api::Chat,
                vec![json!({"usage": null}), json!({"usage": {"prompt_tokens": 7, "completion_tokens": 3}})],
                7,
                3,
            ),
            (
                Api::Responses,
                vec![json!({"response": {"usage": {"input_tokens": 7, "output_tokens": 3}}})],
                7,
                3,
            ),
            (
                Api::Gemini,
                vec![
                    json!({"usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}}),
                ],
                7,
                5,
            ),
        ] {
            let mut usage = Usage::default();
            for value in &values {
                read(api, value, &mut usage);
            }
            assert_eq!((usage.input_tokens, usage.output_tokens), (input, output), "{api}");
        }
    }

    #[test]
    fn the_longest_name_that_fits_has_the_price() {
        let price = |input, output| Price { input, output };
        let prices = Prices(BTreeMap::from([
            ("gpt-5".to_owned(), price(1_000_000, 10_000_000)),
            ("gpt-5-mini".to_owned(), price(100_000, 1_000_000)),
        ]));
        let usage = Usage { input_tokens: 1_000_000, output_tokens: 500_000, cost_usd: None };
        let cost = |model| prices.priced(Some(model), usage).cost_usd;
        assert_eq!(cost("gpt-5-2026-01-01"), Some(6.0));
        assert_eq!(cost("gpt-5-mini"), Some(0.6));
        assert_eq!(cost("claude"), None);
    }
}
