//! Tokens and money, in words and as JSON.

use backstop_core::Usage;
use serde_json::{Value, json};

/// `12.3k tokens, $0.42`; nothing where nothing is known.
pub(super) fn usage_words(usage: Usage) -> String {
    let tokens = (usage.tokens() > 0).then(|| format!("{} tokens", short(usage.tokens())));
    let cost = usage.cost_usd.filter(|cost| cost.is_finite()).map(|cost| format!("${cost:.2}"));
    [tokens, cost].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A number in three digits or so: `999`, `12.3k`, `2.05M`.
#[expect(clippy::cast_precision_loss)] // Three digits of it are shown.
fn short(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{:.1}k", number as f64 / 1e3),
        _ => format!("{:.2}M", number as f64 / 1e6),
    }
}

/// Usage as JSON.
pub(super) fn usage_json(usage: Usage) -> Value {
    let cost = usage.cost_usd.filter(|cost| cost.is_finite());
    json!({ "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "cost_usd": cost })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_in_words() {
        let words = |input_tokens, cost_usd| usage_words(Usage { input_tokens, output_tokens: 0, cost_usd });
        assert_eq!(words(999, None), "999 tokens");
        assert_eq!(words(12_345, Some(0.416)), "12.3k tokens, $0.42");
        assert_eq!(words(2_050_000, Some(f64::NAN)), "2.05M tokens");
        assert_eq!(words(0, Some(0.0)), "$0.00");
        assert_eq!(words(0, None), "");
    }
}
