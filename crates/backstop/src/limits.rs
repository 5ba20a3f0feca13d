//! The store of shared limits, as commands use it.

use crate::context::{self, Context};
use crate::error::CliError;
use crate::terminal;
use backstop_core::{EventKind, Outcome, SafeText};
use backstop_store::{LimitStore, RunHeader, StoreError};

/// Opens the shared limits. A damaged file is set aside: what it knew is lost, which means open guards and one warning.
pub(crate) fn open(context: &Context) -> Result<LimitStore, CliError> {
    let folder = context.folder()?;
    match LimitStore::open(&folder) {
        Err(StoreError::Corrupt { file, why }) => {
            let aside = folder.quarantine_limits()?;
            let place = aside.map(|p| p.display().to_string()).unwrap_or_default();
            terminal::warn(
                &format!(
                    "{} was damaged ({why}) and is set aside as {place}; guards are open, budgets are not set",
                    file.display()
                ),
                None,
            );
            Ok(LimitStore::open(&folder)?)
        }
        other => Ok(other?),
    }
}

/// Records what a person overrides outside a run: as a run of its own, with its rationale.
pub(crate) fn record_override(
    context: &Context,
    surface: &str,
    what: &str,
    why: Option<&str>,
) -> Result<(), CliError> {
    let journal = context.journal()?;
    let (caller, session) = context::caller_and_session();
    let header = RunHeader {
        session: session.map(SafeText::new),
        caller: caller.clone().map(SafeText::new),
        ..RunHeader::new(surface, context::host(), context::random())
    };
    let events = vec![
        EventKind::RunStarted { operation: SafeText::new(what), folder: None, profile: None, parent: None },
        EventKind::Override {
            by: SafeText::new(caller.unwrap_or_else(|| "command line".to_owned())),
            what: SafeText::new(what),
            rationale: SafeText::new(why.unwrap_or("none given")),
        },
        EventKind::RunEnded {
            outcome: Outcome::Done,
            reason: None,
            attempts: 0,
            duration_ms: 0,
            exit: None,
            next: None,
        },
    ];
    journal.begin(header, events)?;
    Ok(())
}
