//! A frozen project: no new work until somebody says so.

use crate::cli::Unfreeze;
use crate::context::{self, Context};
use crate::error::CliError;
use crate::terminal;
use backstop_core::{EventKind, Fault, Outcome, RunId, SafeText};
use backstop_report::{JSON_SCHEMA, to_json};
use backstop_store::{Freeze, RunHeader};
use serde_json::json;

/// The state that is recorded of a project which is frozen.
pub(crate) const FROZEN: &str = "frozen";
/// What lets it go on.
pub(crate) const UNFREEZE: &str = "backstop unfreeze --why TEXT";

/// Why this project is frozen, where it is. A marker that cannot be looked at freezes nothing: whoever cannot read the state
/// folder is told so elsewhere.
pub(crate) fn frozen(context: &Context) -> Option<Freeze> {
    context.folder().ok()?.frozen(&context.project).ok()?
}

/// Refuses new work in a frozen project.
pub(crate) fn refuse_if_frozen(context: &Context) -> Result<(), CliError> {
    match frozen(context) {
        Some(freeze) => Err(CliError::Frozen(Box::new(freeze))),
        None => Ok(()),
    }
}

/// Freezes this project for a fault, where that is called for: the host itself is short, or the configuration says so.
/// What is recorded of it; nothing where it is not frozen, or was before.
pub(crate) fn freeze(context: &Context, fault: &Fault, run: Option<RunId>) -> Option<EventKind> {
    let why = match fault.shortage() {
        Some(short) => short.says.clone(),
        None if context.config.freeze_reasons().contains(&fault.reason) => {
            let cause = fault.cause.as_ref().map(|cause| format!(": {}", cause.line(200)));
            SafeText::new(format!("freeze.reasons names it{}", cause.unwrap_or_default()))
        }
        None => return None,
    };
    let freeze = Freeze::new(fault.reason, why, run, context::now());
    match context.folder().and_then(|folder| Ok(folder.freeze(&context.project, &freeze)?)) {
        Ok(true) => {
            let what = format!("this project is frozen ({}): {}", freeze.reason, freeze.why.line(200));
            terminal::warn(
                &what,
                Some(&format!("put it right, then `{UNFREEZE}`; until then nothing new begins")),
            );
            Some(EventKind::StateEntered {
                operation: None,
                state: FROZEN.to_owned(),
                error_type: Some(freeze.reason.code().to_owned()),
                context: None,
            })
        }
        Ok(false) => None,
        Err(error) => {
            terminal::warn(&format!("this project cannot be frozen: {error}"), None);
            None
        }
    }
}

/// `backstop unfreeze`.
pub(crate) fn unfreeze(args: &Unfreeze) -> Result<(), CliError> {
    let context = Context::new(&[], None)?;
    let was = frozen(&context);
    if let Some(freeze) = &was {
        // Recorded before it takes effect. A disk that is still full must not keep it frozen.
        if let Err(error) = record(&context, freeze, &args.why) {
            terminal::warn(
                &format!("this is not recorded: {error}"),
                error.hints().first().map(String::as_str),
            );
        }
        context.folder()?.unfreeze(&context.project)?;
    }
    if args.json {
        let value = json!({
            "schema": JSON_SCHEMA, "was_frozen": was.is_some(), "reason": was.as_ref().map(|freeze| freeze.reason),
            "frozen_at": was.as_ref().map(|freeze| freeze.at), "run": was.as_ref().and_then(|freeze| freeze.run),
        });
        return terminal::print(&format!("{}\n", to_json(&value)));
    }
    let text = match &was {
        Some(freeze) => {
            format!("new work may begin again; it was frozen since {} ({})\n", freeze.at, freeze.reason)
        }
        None => "this project is not frozen\n".to_owned(),
    };
    terminal::print(&text)?;
    let short = crate::host::short_of(&context);
    if let (Some(_), Some(short)) = (&was, short.first()) {
        let hint = "it will be frozen again when something fails of it";
        terminal::warn(&format!("the host is still short: {}", short.says.line(200)), Some(hint));
    }
    Ok(())
}

fn record(context: &Context, freeze: &Freeze, why: &str) -> Result<(), CliError> {
    let (caller, session) = context::caller_and_session();
    let by = SafeText::new(caller.clone().unwrap_or_else(|| "command line".to_owned()));
    let header = RunHeader {
        session: session.map(SafeText::new),
        caller: caller.map(SafeText::new),
        ..RunHeader::new("unfreeze", context::host(), context::random())
    };
    let events = vec![
        EventKind::RunStarted {
            operation: SafeText::new("unfreeze"),
            folder: Some(SafeText::new(context.project.to_string_lossy())),
            profile: None,
            parent: None,
        },
        EventKind::Override {
            by,
            what: SafeText::new(format!("unfreeze: {} ({})", freeze.why.line(200), freeze.reason)),
            rationale: SafeText::new(why),
        },
        EventKind::RunEnded {
            outcome: Outcome::Done,
            reason: None,
            attempts: 0,
            duration_ms: 0,
            exit: Some(0),
            next: None,
        },
    ];
    context.journal()?.begin(header, events)?;
    Ok(())
}
