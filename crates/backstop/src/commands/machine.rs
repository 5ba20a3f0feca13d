//! `backstop machine`: a campaign's decisions, as JSON lines.

use crate::error::{CliError, DONE};
use crate::{process, terminal};
use backstop_campaign::machine::Answers;
use clap::Args;

/// Answer a campaign's decisions as JSON lines: `{"fn", "input"}` in, `{"output"}` or `{"error"}`
/// out.
///
/// One answer a line, in order, until standard input ends. The functions, their inputs and an
/// example each are in docs/machine.md.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  echo '{\"fn\":\"state.transition\",\"input\":{\"from\":\"INIT\",\"to\":\"EXPLORE\"}}' | backstop machine"
)]
pub(crate) struct Machine {}

/// Answers until standard input ends.
pub(crate) fn run(_: &Machine) -> Result<u8, CliError> {
    for answer in Answers::new(std::io::stdin().lock(), process::now) {
        terminal::print_json(&answer.map_err(|error| CliError::read("standard input", error))?)?;
    }
    Ok(DONE)
}
