//! What agents and models used: tokens and money.

/// Tokens and cost, as agents report them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Tokens that the models read, cached ones included where the agent counts them.
    pub input_tokens: u64,
    /// Tokens that the models wrote.
    pub output_tokens: u64,
    /// The cost in US dollars, where the agent says so.
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// Both together. A cost that only one of them knows is that one's.
    #[must_use]
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cost_usd: match (self.cost_usd, other.cost_usd) {
                (None, None) => None,
                (one, another) => Some(one.unwrap_or(0.0) + another.unwrap_or(0.0)),
            },
        }
    }

    /// What came on top of `before`. Where less is counted than before, counting began anew, and
    /// all of it is new.
    #[must_use]
    pub fn since(self, before: Usage) -> Usage {
        let tokens = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        let cost = |now: f64| match before.cost_usd {
            Some(before) if before <= now => now - before,
            _ => now,
        };
        Usage {
            input_tokens: tokens(self.input_tokens, before.input_tokens),
            output_tokens: tokens(self.output_tokens, before.output_tokens),
            cost_usd: self.cost_usd.map(cost),
        }
    }

    /// Tokens read and written.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input_tokens: u64, output_tokens: u64, cost_usd: Option<f64>) -> Usage {
        Usage { input_tokens, output_tokens, cost_usd }
    }

    #[test]
    fn sums_and_differences() {
        assert_eq!(usage(1, 2, None).plus(usage(3, 4, Some(0.5))), usage(4, 6, Some(0.5)));
        assert_eq!(usage(300, 16, Some(0.75)).since(usage(100, 7, Some(0.25))), usage(200, 9, Some(0.5)));
        assert_eq!(usage(300, 16, None).since(Usage::default()), usage(300, 16, None));
        // Counted anew.
        assert_eq!(usage(50, 3, Some(0.1)).since(usage(100, 7, Some(0.25))), usage(50, 3, Some(0.1)));
        assert_eq!(usage(u64::MAX, 1, None).plus(usage(1, 1, None)).tokens(), u64::MAX);
    }
}
