//! The command line of Backstop: arguments, wiring, exit codes, terminal. No logic of its own.
#![allow(clippy::disallowed_methods)] // This crate is the one that touches the process and its environment.

mod batch;
mod classify;
mod cli;
mod demo;
mod error;
mod reference;
mod rules;
mod terminal;

use clap::Parser;
use cli::{Cli, Command};
use error::{CliError, DONE};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return terminal::tell_usage(&error),
    };
    let result = match cli.command {
        None => terminal::print(THREE_THINGS_TO_TRY),
        Some(Command::Classify(args)) => classify::run(&args),
        Some(Command::Reasons(args)) => reference::reasons(&args),
        Some(Command::Explain(args)) => reference::explain(&args),
        Some(Command::Rules(args)) => rules::run(&args),
        Some(Command::Demo(args)) => demo::run(&args),
        Some(Command::Completions(args)) => reference::completions(&args),
        Some(Command::Man(args)) => reference::man(&args),
    };
    match result {
        Ok(()) => ExitCode::from(DONE),
        Err(error) => {
            terminal::tell(&error);
            ExitCode::from(CliError::code(&error))
        }
    }
}

const THREE_THINGS_TO_TRY: &str = "\
Backstop stands behind everything an AI agent does that can fail.

Three things to try:
  backstop demo                                                  watch commands fail and be classified
  npm test > out.log 2>&1; backstop classify --exit $? out.log   what failed, why, and what to do
  backstop reasons                                               every reason a failure can have

`backstop --help` lists all commands.
";
