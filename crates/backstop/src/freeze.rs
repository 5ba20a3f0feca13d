//! A frozen project: no new work until somebody says so.

use crate::aftermath::Trouble;
use crate::cli::Unfreeze;
use crate::context::{self, Context};
use crate::error::CliError;
use crate::limits::record_override;
use crate::terminal;
use backstop_core::{EventKind, SafeText};
use backstop_report::{JSON_SCHEMA, to_json};
use backstop_store::Freeze;
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

/// Freezes this project, where that is called for: the host itself is short, or what it ended with is one of `freeze.reasons`.
/// What is recorded of it, and why; nothing where it is not frozen, or was before.
pub(crate) fn freeze(context: &Context, trouble: &Trouble<'_>) -> Option<(EventKind, SafeText)> {
    let short =
        trouble.faults.iter().rev().find_map(|fault| Some((fault.reason, fault.shortage()?.says.clone())));
    let named = || {
        let reason = trouble.ended_with.filter(|reason| context.config.freeze_reasons().contains(reason))?;
        let cause = trouble.faults.last().and_then(|fault| fault.cause.as_ref());
        let cause = cause.map(|cause| format!(": {}", cause.line(200))).unwrap_or_default();
        Some((reason, SafeText::new(format!("freeze.reasons names it{cause}"))))
    };
    let (reason, why) = short.or_else(named)?;
    let freeze = Freeze::new(reason, why, trouble.run, context::now());
    match context.folder().and_then(|folder| Ok(folder.freeze(&context.project, &freeze)?)) {
        Ok(true) => {
            let what = format!("this project is frozen ({}): {}", freeze.reason, freeze.why.line(200));
            terminal::warn(
                &what,
                Some(&format!("put it right, then `{UNFREEZE}`; until then nothing new begins")),
            );
            let entered = EventKind::StateEntered {
                operation: None,
                state: FROZEN.to_owned(),
                error_type: Some(freeze.reason.code().to_owned()),
                context: None,
            };
            Some((entered, freeze.why))
        }
        Ok(false) => None,
        Err(error) => {
            let hints = error.hints();
            terminal::warn(
                &format!("this project cannot be frozen: {error}"),
                Some(hints.first().map_or("begin nothing new here before it is put right", String::as_str)),
            );
            None
        }
    }
}

/// `backstop unfreeze`.
pub(crate) fn unfreeze(args: &Unfreeze) -> Result<(), CliError> {
    if args.why.trim().is_empty() {
        return Err(CliError::NoRationale);
    }
    let context = Context::new(&[], None)?;
    let was = frozen(&context);
    if let Some(freeze) = &was {
        // Recorded before it takes effect. A disk that is still full must not keep it frozen.
        let what = format!("unfreeze: {} ({})", freeze.why.line(200), freeze.reason);
        if let Err(error) = record_override(&context, "unfreeze", &what, Some(&args.why)) {
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
