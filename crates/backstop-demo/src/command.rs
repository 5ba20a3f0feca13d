//! A command that fails, and recovers.

use crate::{DemoError, Scratch};
use std::process::{Command, Stdio};

/// A download that breaks off the first time, as they do.
const INSTALL: &str = "\
if [ ! -f half-done ]; then
  touch half-done
  echo 'npm error code ECONNRESET' >&2
  echo 'npm error network read ECONNRESET' >&2
  exit 1
fi
echo 'added 214 packages'
";

/// Writes the script that fails once.
pub(crate) fn prepare(scratch: &Scratch) -> Result<(), DemoError> {
    scratch.write("install.sh", INSTALL)
}

/// What a command of ours prints, with standard error where `stderr` says, such as `&1`.
pub(crate) fn output(scratch: &Scratch, words: &[&str], stderr: &str) -> Result<String, DemoError> {
    let output = Command::new("sh")
        .args(["-c", &format!("{} 2>{stderr}", scratch.typed(words))])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| DemoError::CannotRun { program: "sh", error })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The run whose story the lines offer.
pub(crate) fn run_in(lines: &str) -> Option<&str> {
    let (_, rest) = lines.split_once("backstop explain ")?;
    rest.split(|c: char| c != '-' && !c.is_ascii_alphanumeric()).next().filter(|run| run.starts_with("r-"))
}
