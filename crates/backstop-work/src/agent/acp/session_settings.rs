//! The settings of a session: its mode, which a loaded session may have lost, and its model.

use super::conversation::{Topic, quoted};
use super::known::MODES;
use serde_json::{Value, json};

/// How many modes are named where the one that was asked for does not exist.
const NAMED_MODES_MAX: usize = 10;

/// A request that makes a setting: method and parameters.
pub(super) type Setting = (&'static str, Value);

/// A mode that the agent does not have: what is wrong, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoSuchMode {
    pub(super) cause: String,
    pub(super) next: String,
}

/// The requests that make the settings of a session, the last one first. `result` is what the agent
/// answered when the session was begun, loaded or resumed: it names the modes and options that
/// there are, or nothing. Of several modes the first counts that the agent takes.
pub(super) fn requests(topic: &Topic, result: &Value, session: &str) -> Result<Vec<Setting>, NoSuchMode> {
    let mut settings: Vec<Setting> = Vec::new();
    let set_option = |option: &Value, value: &str| {
        let id = option.get("id").cloned().unwrap_or_default();
        ("session/set_config_option", json!({"sessionId": session, "configId": id, "value": value}))
    };
    if let Some(model) = &topic.model {
        if let Some(option) = option(result, "model") {
            settings.push(set_option(option, model));
        } else if result.get("models").is_some() {
            settings.push(("session/set_model", json!({"sessionId": session, "modelId": model})));
        }
    }
    let ids = texts(result.pointer("/modes/availableModes"), "id");
    let mode_option = option(result, "mode").filter(|_| ids.is_empty());
    let values = texts(mode_option.and_then(|option| option.get("options")), "value");
    let known: Vec<&str> = ids.into_iter().chain(values).collect();
    let has = |mode: &&str| known.contains(mode);
    let wanted: Vec<&str> = match &topic.mode {
        Some(mode) if known.is_empty() || has(&mode.as_str()) => vec![mode],
        Some(mode) => return Err(no_such_mode(mode, &known)),
        None if !known.is_empty() => topic.modes.iter().chain(MODES).copied().find(has).into_iter().collect(),
        // A loaded session may have lost its mode, and its answer names none: the agent itself
        // knows which of these it has.
        None if topic.session.is_some() && topic.modes.is_empty() => MODES.to_vec(),
        None if topic.session.is_some() => topic.modes.to_vec(),
        None => Vec::new(),
    };
    settings.extend(wanted.into_iter().rev().map(|mode| match mode_option {
        Some(option) => set_option(option, mode),
        None => ("session/set_mode", json!({"sessionId": session, "modeId": mode})),
    }));
    Ok(settings)
}

/// Whether this request sets a mode.
pub(super) fn is_mode((method, params): &Setting) -> bool {
    *method != "session/set_model" && params["configId"] != "model"
}

/// The option of a session with this id or of this category.
fn option<'v>(result: &'v Value, name: &str) -> Option<&'v Value> {
    let mut options = result.get("configOptions").and_then(Value::as_array).into_iter().flatten();
    let is = |option: &&Value, field: &str| option.get(field).and_then(Value::as_str) == Some(name);
    options.find(|option| is(option, "id") || is(option, "category"))
}

/// What this field says in each object of a list.
fn texts<'v>(list: Option<&'v Value>, field: &str) -> Vec<&'v str> {
    let objects = list.and_then(Value::as_array).into_iter().flatten();
    objects.filter_map(|object| object.get(field).and_then(Value::as_str)).collect()
}

fn no_such_mode(mode: &str, known: &[&str]) -> NoSuchMode {
    let names: Vec<String> =
        known.iter().take(NAMED_MODES_MAX).map(|id| format!("`{}`", quoted(id))).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    NoSuchMode {
        cause: format!("the agent has no mode `{}`", quoted(mode)),
        next: format!("it has {names}; set `agent.NAME.mode`"),
    }
}
