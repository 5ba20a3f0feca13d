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
