//! What is made from definitions: `backstop reasons`, `completions`, `man`.

use crate::cli;
use crate::error::CliError;
use crate::terminal;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// List the reasons.
#[derive(Debug, Args)]
pub(crate) struct Reasons {
    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// Print a Markdown table
    #[arg(long)]
    pub(crate) markdown: bool,
}

/// Print completions.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}

/// A shell that completions are made for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Shell {
    /// bash
    Bash,
    /// elvish
    Elvish,
    /// fish
    Fish,
    /// PowerShell
    Powershell,
    /// zsh
    Zsh,
}

/// Write the man pages.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder; it is created if it does not exist
    pub(crate) folder: PathBuf,
}

pub(crate) fn reasons(args: &Reasons) -> Result<(), CliError> {
    terminal::print(&match (args.json, args.markdown) {
        (true, _) => format!("{}\n", backstop_report::to_json(&backstop_report::reasons_json())),
        (_, true) => backstop_report::reasons_markdown(),
        _ => backstop_report::reasons_table(terminal::stdout_style()),
    })
}

pub(crate) fn completions(args: &Completions) -> Result<(), CliError> {
    use clap_complete::Shell as Target;
    let target = match args.shell {
        Shell::Bash => Target::Bash,
        Shell::Elvish => Target::Elvish,
        Shell::Fish => Target::Fish,
        Shell::Powershell => Target::PowerShell,
        Shell::Zsh => Target::Zsh,
    };
    let mut out = Vec::new();
    clap_complete::generate(target, &mut cli::command(), "backstop", &mut out);
    terminal::print(&String::from_utf8_lossy(&out))
}

pub(crate) fn man(args: &Man) -> Result<(), CliError> {
    let write_error = |error| CliError::write(&args.folder, error);
    std::fs::create_dir_all(&args.folder).map_err(write_error)?;
    clap_mangen::generate_to(cli::command(), &args.folder).map_err(write_error)
}
