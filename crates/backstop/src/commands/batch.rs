//! `backstop batch`: many calls of MCP tools at once.

use super::tools::{make_known_for, with_toolbox};
use crate::error::{CliError, DONE, FAILED, INTERRUPTED, usage};
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::{Name, shell};
use backstop_files::{Durability, named};
use backstop_report::to_json;
use backstop_runtime::Project;
use backstop_tools::{BatchItem, run_batch};
use clap::Args;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Call many tools at once.
///
/// The file has one JSON object a line, or a list of them: {"id": …, "tool": …, "arguments": {…}}.
/// All of it is read before anything is called. Each item has its own attempts. Failed items are
/// written into a file that `--retry-failed` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  backstop batch calls.jsonl\n  backstop batch --at-once 8 --json calls.jsonl"
)]
pub(crate) struct Batch {
    /// The calls; `-` for standard input
    #[arg(value_name = "FILE", required_unless_present = "retry_failed")]
    pub(crate) file: Option<PathBuf>,
    /// Repeat the failed items of an earlier batch; what fails again stays in the file
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub(crate) retry_failed: Option<PathBuf>,
    /// How many calls run at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) at_once: u16,
    /// Write failed items into this file
    #[arg(long, value_name = "FILE", conflicts_with = "retry_failed")]
    pub(crate) failed_to: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Batch, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    let source = args.retry_failed.as_deref().or(args.file.as_deref()).unwrap_or(Path::new("-"));
    let items = BatchItem::read(&read(source)?).map_err(|error| {
        usage(format!("{}: {error}", source.display()))
            .hint("an item is {\"id\": …, \"tool\": …, \"arguments\": {…}}; nothing was called")
    })?;
    with_toolbox(log_format, async |toolbox, cancel| {
        toolbox.project().refuse_if_frozen()?;
        make_known_for(&toolbox, "batch", items.iter().map(|item| item.tool.as_str()), None).await;
        let report = run_batch(&toolbox, items, usize::from(args.at_once), &cancel).await;
        let rest = report.repeatable_subset();
        let failed_file = match (&args.retry_failed, &args.failed_to) {
            (Some(file), _) | (None, Some(file)) => Some(file.clone()),
            (None, None) if rest.is_empty() => None,
            (None, None) => kept_file(toolbox.project(), "batch"),
        };
        if let Some(file) = &failed_file {
            named::replace(file, rest.as_bytes(), Durability::OnDisk)
                .map_err(|error| CliError::write(file, error.into()))?;
        }
        let retry = failed_file.as_ref().filter(|_| !rest.is_empty()).map(|file| {
            format!("backstop batch --retry-failed {}", shell::quoted(&file.display().to_string()))
        });
        if args.json {
            let mut all = report.report();
            all["retry"] = retry.clone().into();
            terminal::print(&format!("{}\n", to_json(&all)))?;
        } else {
            let notice = report.notice(&source.display().to_string(), retry.as_deref());
            terminal::print(&notice.terminal(terminal::stdout_style()))?;
        }
        Ok(match (report.is_done(), cancel.is_cancelled()) {
            (true, _) => DONE,
            (false, true) => INTERRUPTED,
            (false, false) => FAILED,
        })
    })
}

/// Reads a whole file, or standard input.
pub(super) fn read(file: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let read = match file.to_str() {
        Some("-") => std::io::stdin().take(FILE_BYTES_MAX).read_to_string(&mut text),
        _ => std::fs::File::open(file).and_then(|open| open.take(FILE_BYTES_MAX).read_to_string(&mut text)),
    };
    read.map(|_| text).map_err(|error| CliError::read(file, error))
}

/// A file of the state folder for what is left of a batch or a chain.
pub(super) fn kept_file(project: &Project, kind: &str) -> Option<PathBuf> {
    let name: Name = kind.parse().ok()?;
    let folder = project.folder().ok()?.work_folder(&project.root, &name).ok()?;
    Some(folder.join(format!("{:016x}.json", process::random())))
}
