//! `backstop chain`: calls of MCP tools, one after the other.

use super::batch::{kept_file, read};
use super::tools::{make_known_for, with_toolbox};
use crate::error::{CliError, DONE, FAILED, INTERRUPTED, usage};
use crate::terminal;
use backstop_config::LogFormat;
use backstop_core::{RunId, shell};
use backstop_files::{Durability, named};
use backstop_report::{chain_steps, to_json};
use backstop_tools::{Chain as Steps, run_chain};
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
    /// Repeat the step of this run, which may have taken effect, once
    #[arg(long, value_name = "RUN")]
    pub(crate) confirm: Option<String>,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Chain, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    let confirm = args.confirm.as_deref().map(str::parse::<RunId>).transpose()?;
    let mut chain = Steps::read(&read(&args.file)?)
        .map_err(|error| usage(format!("{}: {error}", args.file.display())).hint(error.hint()))?;
    if let Some(run) = confirm {
        if !chain.waits_for(run) {
            return Err(usage(format!("no step of {} waits for {run}", args.file.display()))
                .hint("`--confirm` names the run in the `confirm` of a step"));
        }
        chain = chain.confirmed_by(run);
    }
    with_toolbox(log_format, async |toolbox, cancel| {
        toolbox.project().refuse_if_frozen()?;
        make_known_for(&toolbox, "chain", chain.tools(), None).await;
        let report = run_chain(&toolbox, chain, &cancel).await;
        let mut next = None;
        if !report.is_done()
            && let Some(file) = kept_file(toolbox.project(), "chain")
        {
            named::replace(&file, report.rest().as_bytes(), Durability::OnDisk)
                .map_err(|error| CliError::write(&file, error.into()))?;
            let confirm = report.confirm().map(|run| format!("--confirm {run} ")).unwrap_or_default();
            let file = shell::quoted(&file.display().to_string());
            next = Some(format!("backstop chain {confirm}{file}"));
        }
        if args.json {
            let mut all = report.report();
            all["continue"] = next.clone().into();
            terminal::print(&format!("{}\n", to_json(&all)))?;
        } else {
            terminal::print(&chain_steps(report.states()))?;
            if let Some(result) = report.last_result() {
                terminal::print(&format!("{}\n", to_json(result)))?;
            }
            if let Some((_, _, notice)) = report.failed() {
                terminal::say(notice);
            }
            if let Some(next) = &next {
                let when = match report.confirm() {
                    Some(_) => "To repeat the failed step, once it is certain that it took no effect",
                    None => "To continue with the failed step",
                };
                terminal::say(&format!("{when}: {next}\n"));
            }
        }
        Ok(match (report.is_done(), cancel.is_cancelled()) {
            (true, _) => DONE,
            (false, true) => INTERRUPTED,
            (false, false) => FAILED,
        })
    })
}
