//! `backstop clean`: what is old goes, what is damaged is set aside.

use crate::error::CliError;
use crate::{process, terminal};
use backstop_config::Given;
use backstop_report::{CleanedStore, SetAside};
use clap::Args;

/// Remove old runs. Runs that are still open stay.
#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// Age at which runs are removed, such as 30d
    #[arg(long, value_name = "DURATION")]
    pub(crate) keep: Option<String>,
    /// Size limit of the store, such as 1GB
    #[arg(long, value_name = "SIZE")]
    pub(crate) max: Option<String>,
    /// Move this project's store aside if it is damaged; nothing is deleted
    #[arg(long, conflicts_with_all = ["keep", "max"])]
    pub(crate) quarantine: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Clean) -> Result<(), CliError> {
    let flags =
        Given::those([("--keep", "store.keep", args.keep.clone()), ("--max", "store.max", args.max.clone())]);
    let project = process::open(&flags, None)?;
    if args.quarantine {
        return terminal::show(&SetAside(project.quarantine_damaged()?), args.json);
    }
    let Some(journal) = project.existing_journal()? else {
        return terminal::show(&CleanedStore(None), args.json);
    };
    let mut retention = project.retention();
    if args.keep.is_some() {
        // Asked for by a person, an age means that age: the newest runs are not spared.
        retention.runs_min = 0;
    }
    let cleaned = journal.clean(&retention, &process::is_alive)?;
    terminal::show(&CleanedStore(Some(cleaned)), args.json)
}
