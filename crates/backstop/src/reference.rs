//! What is made from definitions: reasons and their pages, completions, man pages.

use crate::cli::{Cli, Completions, Explain, Man, Reasons, Shell};
use crate::error::CliError;
use crate::terminal;
use backstop_core::{Reason, from_seed_name};
use clap::CommandFactory;

pub(crate) fn reasons(args: &Reasons) -> Result<(), CliError> {
    terminal::print(&match (args.json, args.markdown) {
        (true, _) => format!("{}\n", backstop_report::to_json(&backstop_report::reasons_json())),
        (_, true) => backstop_report::reasons_markdown(),
        _ => backstop_report::reasons_table(terminal::stdout_style()),
    })
}

pub(crate) fn explain(args: &Explain) -> Result<(), CliError> {
    let reason = from_seed_name(&args.what).map_or_else(|| args.what.parse::<Reason>(), Ok)?;
    if args.json {
        let all = backstop_report::reasons_json();
        let mut row = all["reasons"]
            .as_array()
            .and_then(|rows| rows.iter().find(|row| row["reason"] == reason.code()).cloned());
        if let Some(row) = &mut row {
            row["schema"] = all["schema"].clone();
        }
        return terminal::print(&format!("{}\n", backstop_report::to_json(&row)));
    }
    terminal::print(&backstop_report::reason_page(reason))
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
    clap_complete::generate(target, &mut Cli::command(), "backstop", &mut out);
    terminal::print(&String::from_utf8_lossy(&out))
}

pub(crate) fn man(args: &Man) -> Result<(), CliError> {
    let write_error = |error| CliError::Write { file: args.folder.clone(), error };
    std::fs::create_dir_all(&args.folder).map_err(write_error)?;
    clap_mangen::generate_to(Cli::command(), &args.folder).map_err(write_error)
}
