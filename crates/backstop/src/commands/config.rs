//! `backstop config`: show and check the settings.

use crate::error::CliError;
use crate::{process, terminal};
use backstop_config::{self as settings, environment};
use backstop_report::to_json;
use backstop_runtime::ProjectError;
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

pub(crate) fn run(args: &Config) -> Result<(), CliError> {
    let print = |value| terminal::print(&format!("{}\n", to_json(&value)));
    match args.action {
        ConfigAction::Show { origin, json } => {
            let project = process::open(&[], None)?;
            if json {
                return print(settings::show_json(&project.config));
            }
            terminal::print(&settings::show(&project.config, origin))?;
            terminal::warn_inert(&project.config);
            Ok(())
        }
        ConfigAction::Keys => terminal::print(&settings::markdown()),
        ConfigAction::Env => terminal::print(&environment::markdown()),
        ConfigAction::Check { json } => check(json),
    }
}

fn check(json: bool) -> Result<(), CliError> {
    let print = |value| terminal::print(&format!("{}\n", to_json(&value)));
    let project = match process::open(&[], None) {
        Ok(project) => project,
        Err(error) => {
            if let (true, Some(ProjectError::Config(config))) = (json, error.project_error()) {
                print(settings::check_json(Err(config)))?;
            }
            return Err(error);
        }
    };
    if json {
        return print(settings::check_json(Ok(&project.config)));
    }
    let sinks = backstop_notify::sinks(&project.config).into_iter();
    let wrong = sinks.filter_map(|(_, sink)| sink.err());
    let wrong: Vec<String> = wrong.map(|error| format!("{error}; {}", error.hint())).collect();
    terminal::print(&settings::check(&project.config, &wrong))
}
