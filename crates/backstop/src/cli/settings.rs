//! What may be typed about configuration, trust and the machine.

use clap::{Args, Subcommand};

/// Show and check the configuration.
#[derive(Debug, Args)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) action: ConfigAction,
}

/// What to do with it.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Show every value
    Show {
        /// And which file, variable or flag has set it
        #[arg(long)]
        origin: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the reference of all keys, in Markdown
    Keys,
    /// Print the reference of all environment variables, in Markdown
    Env,
    /// Read all files and say what is wrong with them
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Trust this project's `backstop.toml` as it is now. It has to be trusted again when it changes.
#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// Show what would be trusted, and what is
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) show: bool,
    /// Trust it no longer
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Check this machine.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
