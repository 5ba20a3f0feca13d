//! `backstop demo`.
use crate::cli::Demo;
use crate::error::CliError;
pub(crate) fn run(_args: &Demo) -> Result<(), CliError> { Ok(()) }
