//! What may be typed about limits that are shared.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// The shared rate limit of a provider: when one is told to wait, all wait.
#[derive(Debug, Args)]
pub(crate) struct Guard {
    #[command(subcommand)]
    pub(crate) action: GuardAction,
}

/// What to do with it.
#[derive(Debug, Subcommand)]
pub(crate) enum GuardAction {
    /// Learn from an answer of the provider: its status, headers and body
    Ingest {
        /// The provider, such as `anthropic`
        provider: String,
        /// The headers, one `name: value` a line, or JSON; `-` is standard input
        #[arg(long, value_name = "FILE")]
        headers: Option<PathBuf>,
        /// The body
        #[arg(long, value_name = "FILE")]
        body: Option<PathBuf>,
        /// The HTTP status
        #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..600))]
        status: Option<u16>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Whether something may be sent now: exits 0 if so, 75 if not
    Check {
        /// The provider
        provider: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Wait until something may be sent: exits 0 then, 75 at once where that is after the deadline
    Wait {
        /// The provider
        provider: String,
        /// How long to wait at most, such as 10m
        #[arg(long, value_name = "DURATION")]
        deadline: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show guards and breakers
    Status {
        /// Only of this provider
        provider: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Open a guard, and close the provider's breakers, whatever was learned
    Clear {
        /// The provider
        provider: String,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Allowances that are spent before work: what is used up stops a loop before it has burnt the night.
#[derive(Debug, Args)]
pub(crate) struct Budget {
    #[command(subcommand)]
    pub(crate) action: BudgetAction,
}

/// What to do with budgets.
#[derive(Debug, Subcommand)]
pub(crate) enum BudgetAction {
    /// Show what is left
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a budget, or change its size
    Set {
        /// Its name
        name: String,
        /// How many units there are
        #[arg(value_parser = clap::value_parser!(u64).range(0..=1_000_000_000_000))]
        units: u64,
        /// For what: total, day, run or task
        #[arg(long, value_name = "SCOPE", default_value = "total")]
        per: String,
        /// What a unit is; `exec` spends one iteration an attempt
        #[arg(long, value_name = "UNIT", default_value = "iterations")]
        unit: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget what was spent, so that there is all of it again
    Reset {
        /// Its name
        name: String,
        /// Only for this day, run or task
        #[arg(long, value_name = "SCOPE")]
        scope: Option<String>,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
