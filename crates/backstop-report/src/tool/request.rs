//! Notices about calls that could not be made: no such tool, wrong parameters, no list of tools.

use super::REFRESH;
use crate::Notice;
use crate::notice::{NAME_CHARS_MAX, Value, Words};
use backstop_core::{Reason, SafeText};
use serde_json::json;

/// How many names are suggested.
const SUGGESTIONS_MAX: usize = 5;

/// A tool that does not exist.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolNotFound {
    /// The id that was asked for.
    pub tool: SafeText,
    /// The parameters of the call.
    pub params: Vec<(SafeText, SafeText)>,
    /// The nearest tools, nearest first. Five are shown.
    pub nearest: Vec<SafeText>,
    /// The known prefixes, where the tool's own is not among them.
    pub prefixes: Vec<SafeText>,
    /// Why its server is not there, where that is known.
    pub message: Option<SafeText>,
    /// What to do about that.
    pub next: Option<SafeText>,
}

/// The notice about a tool that does not exist.
pub fn tool_not_found(given: &ToolNotFound) -> Notice {
    let nearest: Vec<SafeText> = given.nearest.iter().take(SUGGESTIONS_MAX).cloned().collect();
    let suggestions = match (nearest.is_empty(), given.prefixes.is_empty()) {
        (false, _) => Value::Names(nearest),
        (true, true) => Value::Line("none: no known tool has a name like it".into()),
        (true, false) => Value::Line("none: no known tool has this prefix".into()),
    };
    let prefixes = (!given.prefixes.is_empty()).then_some(&given.prefixes);
    let next: Words = match (&given.next, given.nearest.is_empty()) {
        (Some(next), _) => Words::outside(next),
        (None, true) => format!("name another tool, or run `{REFRESH}` to list the tools anew").into(),
        (None, false) => format!("say which one you mean, or run `{REFRESH}` to list the tools anew").into(),
    };
    Notice::new("tool_not_found", "Tool not found", Some(Reason::ToolNotFound))
        .field("error", "Error", Words::own("Tool not found: ").and_outside(&given.tool))
        .data("tool", crate::notice::json_text(&given.tool))
        .reason_line()
        .with(given.message.as_ref(), |notice, message| {
            notice.value("message", "Message", Value::Message(message.clone()))
        })
        .with((!given.params.is_empty()).then_some(&given.params), |notice, params| {
            notice.value("params", "Params", Value::Params(params.clone()))
        })
        .value("suggestions", "Suggestions", suggestions)
        .with(prefixes, |notice, prefixes| {
            notice.value("known_prefixes", "Known prefixes", Value::Names(prefixes.clone()))
        })
        .next_line(next)
}

/// A parameter of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: SafeText,
    /// Its type, as in the tool's schema.
    pub kind: SafeText,
}

/// A call with invalid parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InvalidParameters {
    /// The tool.
    pub tool: SafeText,
    /// The parameters of the call.
    pub params: Vec<(SafeText, SafeText)>,
    /// Required parameters that are missing.
    pub missing: Vec<SafeText>,
    /// Parameters of the wrong type: the name, and the type that was given.
    pub mistyped: Vec<Param>,
    /// Parameters that the tool does not know.
    pub unknown: Vec<SafeText>,
    /// The parameters that are expected.
    pub expected: Vec<Param>,
    /// The tool's own message, where there is one.
    pub message: Option<SafeText>,
}

/// The notice about parameters that are missing or invalid.
pub fn invalid_parameters(given: &InvalidParameters) -> Notice {
    let some = |list: &[SafeText]| (!list.is_empty()).then(|| Value::Names(list.to_vec()));
    let pairs = |list: &[Param], between: &str| -> Vec<SafeText> {
        let text = |p: &Param| format!("{}{between}{}", p.name.line(60), p.kind.line(NAME_CHARS_MAX - 80));
        list.iter().map(|param| SafeText::new(text(param))).collect()
    };
    let next = match (given.missing.is_empty(), given.mistyped.is_empty()) {
        (false, true) => "give the missing values",
        (true, false) => "give values of the expected types",
        (false, false) => "give the missing values, and the others in the expected types",
        (true, true) if !given.unknown.is_empty() => "leave out what the tool does not know",
        (true, true) => "compare what was given with what is expected",
    };
    let fits = Words::own("invalid parameters for ").and_outside(&given.tool);
    Notice::new("invalid_parameters", "Invalid parameters", Some(Reason::InvalidParameters))
        .field("error", "Error", fits)
        .data("tool", crate::notice::json_text(&given.tool))
        .reason_line()
        .with(given.message.as_ref(), |notice, message| {
            notice.value("message", "Message", Value::Message(message.clone()))
        })
        .with((!given.params.is_empty()).then_some(&given.params), |notice, params| {
            notice.value("params", "Params", Value::Params(params.clone()))
        })
        .with(some(&given.missing), |notice, names| notice.value("missing", "Missing", names))
        .with(some(&pairs(&given.mistyped, " is ")), |notice, names| {
            notice.value("mistyped", "Mistyped", names)
        })
        .with(some(&given.unknown), |notice, names| notice.value("unknown", "Unknown", names))
        .value("expected", "Expected", Value::Names(pairs(&given.expected, ": ")))
        .next_line(next)
}

/// A list of tools that is not there or cannot be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CacheMissing {
    /// The path of the file.
    pub path: SafeText,
    /// The tool or command that needs it.
    pub operation: SafeText,
    /// What is wrong with the file, where there is one.
    pub problem: Option<SafeText>,
    /// Whether the servers are asked directly instead.
    pub live: bool,
}

/// The notice about a list of tools that is missing or cannot be read.
pub fn cache_missing(given: &CacheMissing) -> Notice {
    let fallback = if given.live { "dynamic discovery enabled" } else { "none: no server answers" };
    let cause = given.problem.clone().unwrap_or_else(|| "there is no such file".into());
    Notice::new("cache_missing", "Cache missing or invalid", Some(Reason::CacheInvalid))
        .line("error", Words::own("Cache missing or invalid at ").and_outside(&given.path))
        .data("path", crate::notice::json_text(&given.path))
        .value("cause", "Cause", Value::Message(cause))
        .field("operation", "Needed by", Words::outside(&given.operation))
        .reason_line()
        .field("suggestion", "Suggestion", format!("run `{REFRESH}`"))
        .field("fallback", "Fallback", fallback)
        .data("live_discovery", json!(given.live))
        .next_shown(format!("run `{REFRESH}`"))
}
