//! `backstop demo command`: a command that fails, and recovers.

use super::Demo;
use super::scratch::Scratch;
use crate::error::CliError;
use crate::terminal;
use backstop_core::SafeText;
use backstop_report::{JSON_SCHEMA, to_json};
use serde_json::{Value, json};

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

/// Runs a command that fails once, under `exec`, and tells its story.
pub(super) fn run(args: &Demo) -> Result<(), CliError> {
    let scratch = Scratch::make()?;
    scratch.write("install.sh", INSTALL)?;
    let exec = ["exec", "--", "sh", "install.sh"];
    if args.json {
        let answer = output(&scratch, &["exec", "--json", "--", "sh", "install.sh"], "/dev/null")?;
        let ending: Value = serde_json::from_str(answer.trim()).unwrap_or_default();
        let value = json!({
            "schema": JSON_SCHEMA, "folder": scratch.root().display().to_string(), "exit": ending["exit"],
            "ending": ending, "next": [scratch.typed(&["explain", "last"])],
        });
        return terminal::print(&format!("{}\n", to_json(&value)));
    }
    let style = terminal::stdout_style();
    let show = |title: &str, text: &str| {
        let title = style.strong(&format!("$ {title}"));
        terminal::print(&format!("{title}\n{}\n", SafeText::new(text).terminal()))
    };
    terminal::print("A command that fails, and recovers.\n\n")?;
    // Both streams in one, in the order in which a terminal would show them.
    let shown = output(&scratch, &exec, "&1")?;
    show("backstop exec -- sh install.sh", &shown)?;
    let run = run_in(&shown).unwrap_or("last");
    show(&format!("backstop explain {run}"), &output(&scratch, &["explain", run], "&1")?)?;
    terminal::print(&format!(
        "The demo's runs are kept apart from your own: `backstop explain {run}` shows this one again.\n\
         Now with one of your own: `backstop exec -- COMMAND`\n"
    ))
}

/// The run whose story the lines offer.
fn run_in(lines: &str) -> Option<&str> {
    let (_, rest) = lines.split_once("backstop explain ")?;
    rest.split(|c: char| c != '-' && !c.is_ascii_alphanumeric()).next().filter(|run| run.starts_with("r-"))
}

/// What a command of ours prints, with standard error where `stderr` says.
fn output(scratch: &Scratch, words: &[&str], stderr: &str) -> Result<String, CliError> {
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("{} 2>{stderr}", scratch.typed(words))])
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| super::cannot_run("sh", &error))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
