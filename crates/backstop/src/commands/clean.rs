//! `backstop clean`: what is old goes, what is damaged is set aside.

use crate::error::CliError;
use crate::{process, terminal};
use backstop_config::Given;
use backstop_core::SafeText;
use backstop_report::{JSON_SCHEMA, to_json};
use backstop_runtime::Project;
use clap::Args;
use serde_json::json;

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
    let flags: Vec<Given> = [("--keep", "store.keep", &args.keep), ("--max", "store.max", &args.max)]
        .into_iter()
        .filter_map(|(flag, key, value)| {
            Some(Given { flag: flag.to_owned(), key: key.to_owned(), value: value.clone()? })
        })
        .collect();
    let project = process::open(&flags, None)?;
    if args.quarantine {
        return quarantine(&project, args.json);
    }
    let Some(journal) = project.existing_journal()? else {
        return terminal::print(if args.json {
            "{\"schema\":1,\"runs\":0,\"events\":0}\n"
        } else {
            "nothing is recorded in this project\n"
        });
    };
    let mut retention = project.retention();
    if args.keep.is_some() {
        // Asked for by a person, an age means that age: the newest runs are not spared.
        retention.runs_min = 0;
    }
    let cleaned = journal.clean(&retention, &process::is_alive)?;
    if args.json {
        return terminal::print(&format!(
            "{}\n",
            to_json(&json!({
                "schema": JSON_SCHEMA, "runs": cleaned.runs, "events": cleaned.events,
                "bytes_before": cleaned.bytes_before, "bytes_after": cleaned.bytes_after,
            }))
        ));
    }
    terminal::print(&format!(
        "removed {} runs with {} events; the store has {} KB, it had {} KB\n",
        cleaned.runs,
        cleaned.events,
        cleaned.bytes_after.div_ceil(1024),
        cleaned.bytes_before.div_ceil(1024)
    ))
}

/// Sets aside what is damaged; what is whole stays where it is.
fn quarantine(project: &Project, json: bool) -> Result<(), CliError> {
    let folder = project.folder()?;
    let mut moved = Vec::new();
    let damaged = |result: Result<(), backstop_store::StoreError>| {
        matches!(
            result,
            Err(backstop_store::StoreError::Corrupt { .. } | backstop_store::StoreError::Newer { .. })
        )
    };
    let journal = backstop_store::Journal::open_existing(folder, &project.root);
    if damaged(journal.and_then(|j| j.map_or(Ok(()), |j| j.check()))) {
        moved.extend(folder.quarantine(&project.root)?);
    }
    let user = backstop_store::UserStore::open_existing(folder);
    if damaged(user.and_then(|u| u.map_or(Ok(()), |u| u.check()))) {
        moved.extend(folder.quarantine_user()?);
    }
    let hooks = backstop_store::HookStore::open_existing(folder);
    if damaged(hooks.and_then(|h| h.map_or(Ok(()), |h| h.check()))) {
        moved.extend(folder.quarantine_hooks()?);
    }
    let outbox = backstop_store::Outbox::open_existing(folder);
    if damaged(outbox.and_then(|o| o.map_or(Ok(()), |o| o.check()))) {
        moved.extend(folder.quarantine_outbox()?);
    }
    let shown: Vec<String> =
        moved.iter().map(|path| SafeText::new(path.display().to_string()).line(400)).collect();
    terminal::print(&if json {
        format!("{}\n", to_json(&json!({ "schema": JSON_SCHEMA, "set_aside": shown })))
    } else if shown.is_empty() {
        "nothing is damaged, nothing was set aside\n".to_owned()
    } else {
        format!("set aside, nothing deleted: {}\n", shown.join(", "))
    })
}
