//! `backstop events`: what was recorded, filtered, followed, in every format.

use crate::cli::{Events, LogFormat};
use crate::context::Context;
use crate::error::CliError;
use crate::{runs, terminal};
use backstop_core::nearest::nearest;
use backstop_core::{Event, EventKind, Reason, RunId};
use backstop_store::EventFilter;
use std::time::Duration;

/// How often a followed journal is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &Events, log_format: Option<LogFormat>) -> Result<(), CliError> {
    let filter = filter(args)?;
    let context = Context::new(&[], log_format)?;
    let show = |event: &Event| -> Result<(), CliError> {
        let Some(line) = line(args, context.log_format, event) else { return Ok(()) };
        match &args.tail_to {
            Some(file) => terminal::append(file, &format!("{line}\n"))
                .map_err(|error| CliError::Write { file: file.clone(), error }),
            None => terminal::print(&format!("{line}\n")),
        }
    };
    let mut journal = context.existing_journal()?;
    let mut after = None;
    if let Some(journal) = &journal {
        // Where the journal ends is asked first: what is recorded from then on is not passed over.
        let last = EventFilter { newest: true, limit: 1, ..EventFilter::default() };
        after = journal.events(&last)?.last().map(|(position, _)| *position);
        let newest = EventFilter { newest: true, ..filter.clone() };
        for (position, event) in journal.events(&newest)? {
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
            journal = context.existing_journal()?;
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

fn filter(args: &Events) -> Result<EventFilter, CliError> {
    let kind = match &args.kind {
        Some(kind) if EventKind::NAMES.contains(&kind.as_str()) => Some(kind.clone()),
        Some(kind) => {
            let nearest = nearest(kind, EventKind::NAMES.iter().copied());
            return Err(CliError::NoKind { given: kind.clone(), nearest });
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
    match log_format {
        _ if args.json => Some(backstop_report::to_json(event)),
        LogFormat::Json => Some(backstop_report::to_json(event)),
        LogFormat::Emit => backstop_report::event_emit(event),
        LogFormat::Human => Some(backstop_report::event_line(event, terminal::stdout_style())),
    }
}
