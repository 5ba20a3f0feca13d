//! What the agents of a run may use in all: tokens and money, as far as they say what they use.
//!
//! It is asked before each attempt; an attempt that is under way is not ended. What an agent does
//! not tell cannot be counted.

use backstop_config::PlanSettings;
use backstop_core::{Fault, Reason, SafeText, Usage};

/// The limits of a run; nothing is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// In millionths of a dollar.
    max_cost: Option<u64>,
    max_tokens: Option<u64>,
    /// The command that goes on, as it was typed.
    resume: String,
}

impl Allowance {
    pub(crate) fn new(settings: &PlanSettings, resume: String) -> Self {
        Self { max_cost: settings.max_cost, max_tokens: settings.max_tokens, resume }
    }

    /// Whether another attempt may begin, after so much was used.
    #[expect(clippy::cast_precision_loss)] // Compared with what agents say in cents.
    pub(crate) fn check(&self, used: Usage) -> Result<(), Box<Fault>> {
        if let (Some(max), Some(cost)) = (self.max_cost.map(|max| max as f64 / 1e6), used.cost_usd)
            && cost >= max
        {
            let cause = format!("the agents of this run have spent {cost:.2} USD of {max:.2} USD");
            return Err(self.exhausted(&cause, "--max-cost", &format!("{:.2}", 2.0 * cost.max(max))));
        }
        if let Some(max) = self.max_tokens.filter(|max| used.tokens() >= *max) {
            let cause = format!("the agents of this run have used {} tokens of {max}", used.tokens());
            return Err(self.exhausted(&cause, "--max-tokens", &(2 * used.tokens().max(max)).to_string()));
        }
        Ok(())
    }

    fn exhausted(&self, cause: &str, flag: &str, more: &str) -> Box<Fault> {
        let mut fault = Fault::new(Reason::BudgetExhausted);
        fault.cause = Some(SafeText::new(cause));
        fault.suggested_action =
            SafeText::new(format!("allow more to go on: `{}`", self.with_flag(flag, more)));
        Box::new(fault)
    }

    /// The command that goes on, with another value for this flag.
    fn with_flag(&self, flag: &str, value: &str) -> String {
        let words: Vec<&str> = self.resume.split(' ').collect();
        match words.iter().position(|word| *word == flag) {
            Some(at) if at + 1 < words.len() => {
                let mut words = words;
                words[at + 1] = value;
                words.join(" ")
            }
            _ => format!("{} {flag} {value}", self.resume),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowance(max_cost: Option<u64>, max_tokens: Option<u64>) -> Allowance {
        Allowance { max_cost, max_tokens, resume: "backstop run plan.md --max-cost 5.00".to_owned() }
    }

    fn used(tokens: u64, cost_usd: Option<f64>) -> Usage {
        Usage { input_tokens: tokens, output_tokens: 0, cost_usd }
    }

    #[test]
    fn it_stops_at_its_limit_and_names_the_numbers_and_the_command() {
        let limit = allowance(Some(5_000_000), Some(1000));
        assert!(limit.check(used(999, Some(4.99))).is_ok());
        let fault = limit.check(used(10, Some(5.125))).unwrap_err();
        assert_eq!(fault.reason, Reason::BudgetExhausted);
        assert_eq!(fault.cause, Some("the agents of this run have spent 5.12 USD of 5.00 USD".into()));
        let next = "allow more to go on: `backstop run plan.md --max-cost 10.25`";
        assert_eq!(fault.suggested_action, next.into());
        let fault = limit.check(used(1000, None)).unwrap_err();
        assert_eq!(fault.cause, Some("the agents of this run have used 1000 tokens of 1000".into()));
        let next = "allow more to go on: `backstop run plan.md --max-cost 5.00 --max-tokens 2000`";
        assert_eq!(fault.suggested_action, next.into());
        // Nothing is allowed, and nothing was said to have been spent.
        assert!(allowance(Some(0), None).check(used(10, None)).is_ok());
        assert!(allowance(None, None).check(used(u64::MAX, Some(1e9))).is_ok());
    }
}
