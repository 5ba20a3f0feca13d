//! `backstop machine`: a campaign's decisions, as JSON lines.

use crate::error::{CliError, DONE, failed};
use crate::{process, terminal};
use backstop_campaign::machine::{LINE_BYTES_MAX, answer};
use backstop_report::to_json;
use clap::Args;
use std::io::{BufRead, Read};

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
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        // One byte more than is read as a call: what is longer is answered with an error.
        let taken = input.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
        let taken = taken.map_err(|error| failed(format!("cannot read standard input: {error}")))?;
        if taken == 0 {
            return Ok(DONE);
        }
        if taken > LINE_BYTES_MAX && !line.ends_with(b"\n") {
            skip_line(&mut input).map_err(|error| failed(format!("cannot read standard input: {error}")))?;
        }
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            terminal::print(&format!("{}\n", to_json(&answer(text.trim_end(), process::now()))))?;
        }
    }
}

/// Reads on to the end of a line that is too long.
fn skip_line(input: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let (end, found) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        input.consume(end);
        if found {
            return Ok(());
        }
    }
}
