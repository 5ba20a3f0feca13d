//! `backstop chain`: calls of MCP tools, one after the other.

use super::batch::{kept_file, read};
use super::tools::{make_known, with_toolbox};
use crate::error::{CliError, DONE, FAILED, INTERRUPTED, usage};
use crate::terminal;
use backstop_config::LogFormat;
use backstop_core::{SafeText, shell};
use backstop_files::{Durability, named};
use backstop_report::to_json;
use backstop_tools::{Chain as Steps, StepResult, run_chain};
use clap::Args;
use std::path::PathBuf;

/// Call tools one after the other; later calls use earlier results.
///
/// The file is a JSON list of {"id": …, "tool": …, "arguments": {…}}. In arguments,
/// {"$from": "STEP", "pointer": "/items/0/id"} stands for that part of a step's result. A step that
/// fails ends the chain; what was done is kept in a file from which the chain is continued.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  backstop chain steps.json\n  backstop chain --json - < steps.json")]
pub(crate) struct Chain {
    /// The steps; `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Chain, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    let chain = Steps::read(&read(&args.file)?)
        .map_err(|error| usage(format!("{}: {error}", args.file.display())).hint(error.hint()))?;
    with_toolbox(log_format, async |toolbox, cancel| {
        toolbox.project().refuse_if_frozen()?;
        make_known(&toolbox, "chain").await;
        let report = run_chain(&toolbox, chain, &cancel).await;
        let mut next = None;
        if !report.is_done()
            && let Some(file) = kept_file(toolbox.project(), "chain")
        {
            named::replace(&file, report.rest().as_bytes(), Durability::OnDisk)
                .map_err(|error| CliError::write(&file, error.into()))?;
            next = Some(format!("backstop chain {}", shell::quoted(&file.display().to_string())));
        }
        if args.json {
            let mut all = report.report();
            all["continue"] = next.clone().into();
            terminal::print(&format!("{}\n", to_json(&all)))?;
        } else {
            let mut text = String::new();
            for (id, tool, step) in &report.steps {
                let state = match step {
                    StepResult::Done { before: true, .. } => "done before",
                    StepResult::Done { .. } => "done",
                    StepResult::Failed(..) => "failed",
                    StepResult::NotBegun => "not begun",
                };
                let (id, tool) = (SafeText::new(id.as_str()).line(40), SafeText::new(tool.as_str()).line(80));
                text.push_str(&format!("{id}: {tool}: {state}\n"));
            }
            terminal::print(&text)?;
            if let Some((_, _, notice)) = report.failed() {
                terminal::say(notice);
            }
            if let Some(next) = &next {
                terminal::say(&format!("To continue with the failed step: {next}\n"));
            }
        }
        Ok(match (report.is_done(), cancel.is_cancelled()) {
            (true, _) => DONE,
            (false, true) => INTERRUPTED,
            (false, false) => FAILED,
        })
    })
}
