//! A tool that would start an agent: not now, where nothing new may begin or its provider takes no
//! requests.

use super::{answer, starts_agent};
use crate::surroundings::{HookError, Surroundings};
use backstop_core::guard::GuardKey;
use backstop_core::{Name, SafeText};
use backstop_report::{agent_denied, agent_frozen};
use backstop_runtime::ProjectError;
use backstop_store::LimitStore;
use serde_json::Value;

/// Says no, or nothing. `own` is the session's provider. No settings are read: it is asked before
/// every tool.
pub(super) fn answer(
    around: &Surroundings<'_>,
    tool: &str,
    command: Option<&str>,
    own: &str,
) -> Result<Option<Value>, HookError> {
    let started = starts_agent(tool, command, own);
    if started.is_empty() || around.disabled {
        return Ok(None);
    }
    let Some(folder) = (around.folder)() else { return Ok(None) };
    if let Some(root) = (around.root)()
        && let Ok(Some(freeze)) = folder.frozen(&root)
    {
        return Ok(Some(answer::deny(&agent_frozen(freeze.reason, &freeze.why))));
    }
    let Some(store) = LimitStore::open_existing(&folder)? else { return Ok(None) };
    for started in started {
        let provider: Name = started.provider.parse().map_err(ProjectError::from)?;
        // A limit of one model keeps nobody from asking for another one.
        let key = GuardKey::any_account(provider.clone());
        let key = started.model.map_or_else(|| key.clone(), |model| key.clone().with_model(&model));
        if let Some(closed) = store.guard(key)?.and_then(|guard| guard.closed) {
            let now = (around.now)();
            let left = closed.left(now);
            let why = SafeText::new(closed.why);
            return Ok(Some(answer::deny(&agent_denied(provider.as_str(), now.after(left), left, &why))));
        }
    }
    Ok(None)
}
