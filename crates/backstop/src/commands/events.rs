//! `backstop events`: what was recorded, filtered, followed, in every format.

use super::runs;
use crate::error::{CliError, usage};
use crate::{process, terminal};
use backstop_config::LogFormat;
use backstop_core::nearest::nearest;
use backstop_core::{Event, EventKind, Reason, RunId};
use backstop_runtime::EventLines;
use backstop_store::EventFilter;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// List, follow and filter the recorded events of this project.
#[derive(Debug, Args)]
pub(crate) struct Events {
    /// Keep running, and print new events as they are recorded
    #[arg(long, short = 'f')]
    pub(crate) follow: bool,
    /// Only events of this period, such as 2h, or since a time, such as 2026-01-05T10:00:00Z
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only classified errors with this reason
    #[arg(long, value_name = "REASON")]
    pub(crate) reason: Option<String>,
    /// Only events of this run
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Only events of this kind, such as `decision.made`
    #[arg(long, value_name = "KIND", hide_short_help = true)]
    pub(crate) kind: Option<String>,
    /// Maximum number of events; the newest are printed
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1000)]
    pub(crate) limit: u32,
    /// Print classified errors as JSON lines: `type`, `timestamp`, `sessionId`, `payload`
    #[arg(long, hide_short_help = true)]
    pub(crate) jsonl: bool,
    /// Append to this file instead of printing; implies --jsonl
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) tail_to: Option<PathBuf>,
    /// Print every event as a line of JSON
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) json: bool,
}

/// How often a followed journal is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &Events, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let filter = filter(args)?;
    let project = process::open(&[], log_format)?;
    let show = |event: &Event| -> Result<(), CliError> {
        let Some(line) = line(args, project.config.log_format(), event) else { return Ok(()) };
        match &args.tail_to {
            Some(file) => project
                .given(file)
                .append_lines(format!("{line}\n").as_bytes())
                .map_err(|error| CliError::write(file, error.into())),
            None => terminal::print(&format!("{line}\n")),
        }
    };
    let mut journal = match filter.run {
        Some(run) => Some(runs::journal_of(&project, run)?),
        None => project.existing_journal()?.cloned(),
    };
    let mut after = None;
    if let Some(journal) = &journal {
        // Where the journal ends is asked first: what is recorded from then on is not passed over.
        let last = EventFilter { newest: true, limit: 1, ..EventFilter::default() };
        after = journal.events(&last)?.last().map(|(position, _)| *position);
        let has_line = |event: &Event| line(args, project.config.log_format(), event).is_some();
        for (position, event) in journal.newest_events(&filter, has_line)? {
            after = after.max(Some(position));
            show(&event)?;
        }
    }
    if !args.follow {
        return Ok(());
    }
    loop {
        std::thread::sleep(LOOK_EVERY);
        if journal.is_none() {
            journal = project.existing_journal()?.cloned();
        }
        let Some(journal) = &journal else { continue };
        let newer = EventFilter { after, limit: 1000, ..filter.clone() };
        for (position, event) in journal.events(&newer)? {
            after = Some(position);
            show(&event)?;
        }
        // A reader that has gone is the end of following.
        if !terminal::is_read() {
            return Ok(());
        }
    }
}

/// The kind of event that `--jsonl` prints.
const CLASSIFIED: &str = "error.classified";

fn filter(args: &Events) -> Result<EventFilter, CliError> {
    let is_jsonl = args.jsonl || args.tail_to.is_some();
    let kind = match &args.kind {
        Some(kind) if is_jsonl && kind != CLASSIFIED && EventKind::NAMES.contains(&kind.as_str()) => {
            return Err(usage(format!("--jsonl prints events of kind `{CLASSIFIED}` only, not `{kind}`"))
                .hint(format!("`backstop events --kind {kind} --json` prints those as JSON")));
        }
        None if is_jsonl => Some(CLASSIFIED.to_owned()),
        Some(kind) if EventKind::NAMES.contains(&kind.as_str()) => Some(kind.clone()),
        Some(kind) => {
            let hint = match nearest(kind, EventKind::NAMES.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("kinds are {}", EventKind::NAMES.join(", ")),
            };
            return Err(usage(format!("there is no kind of event `{kind}`")).hint(hint));
        }
        None => None,
    };
    Ok(EventFilter {
        run: args.run.as_deref().map(str::parse::<RunId>).transpose()?,
        since: args.since.as_deref().map(runs::since).transpose()?,
        reason: args.reason.as_deref().map(str::parse::<Reason>).transpose()?,
        kind,
        limit: args.limit,
        ..EventFilter::default()
    })
}

fn line(args: &Events, log_format: LogFormat, event: &Event) -> Option<String> {
    if args.jsonl || args.tail_to.is_some() {
        return backstop_report::event_gdd(event).map(|value| backstop_report::to_json(&value));
    }
    match if args.json { LogFormat::Json } else { log_format } {
        format @ (LogFormat::Json | LogFormat::Emit) => EventLines::line(format, event),
        LogFormat::Human => Some(backstop_report::event_line(event, terminal::stdout_style())),
    }
}
