//! A tool that would start an agent: not now, where nothing new may begin or its provider takes no requests.

use crate::context;
use crate::error::CliError;
use backstop_core::{Name, SafeText};
use backstop_hook::agent::{answer, starts_agent};
use backstop_report::{agent_denied, agent_frozen};
use backstop_store::LimitStore;
use serde_json::Value;

/// Says no, or nothing. `own` is the session's provider.
pub(super) fn answer(tool: &str, command: Option<&str>, own: &str) -> Result<Option<Value>, CliError> {
    let providers = starts_agent(tool, command, own);
    if providers.is_empty() || context::is_disabled() {
        return Ok(None);
    }
    let Some(folder) = context::user_folder() else { return Ok(None) };
    if let Ok(Some(freeze)) = folder.frozen(&context::project()?) {
        return Ok(Some(answer::deny(&agent_frozen(freeze.reason, &freeze.why))));
    }
    let Some(store) = LimitStore::open_existing(&folder)? else { return Ok(None) };
    for provider in providers {
        let provider: Name = provider.parse()?;
        if let Some(closed) = store.guard(&provider)?.and_then(|guard| guard.closed) {
            let left = closed.left(context::now());
            let why = SafeText::new(closed.why);
            let until = context::now().after(left);
            return Ok(Some(answer::deny(&agent_denied(provider.as_str(), until, left, &why))));
        }
    }
    Ok(None)
}
