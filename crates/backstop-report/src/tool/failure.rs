//! Notices about calls that were made and failed: any error, the tool's own error, a timeout, a
//! partial success.

use super::advice::{tool_advice, tool_kind};
use crate::Notice;
use crate::notice::{ITEMS_MAX, Marker, Value, Words};
use backstop_core::{Reason, SafeText};
use std::time::Duration;

/// The default next step.
const ASK: &str = "say whether to repeat it, or call it with other parameters";
/// The default suggestions.
const ACTIONS: &[&str] = &[
    "Look again at what the call refers to: it may have changed, or be gone",
    "Correct the parameters or narrow them, then call it again",
];

/// The suggestions for a tool that crashed: its authors' are those of the taxonomy.
const CRASH_ACTIONS: &[&str] = &[
    "See what its server wrote before it ended",
    "Call it with other parameters, or tell the server's authors",
];
/// The suggestions for a call that may have taken effect: none of them repeats it.
const UNCONFIRMED_ACTIONS: &[&str] = &[
    "Check whether the call took effect",
    "Look again at what the call refers to: it may have changed, or be gone",
];
/// The next step of a call that may have taken effect and was not put aside.
const CHECK_FIRST: &str = "it may have taken effect: check that before it is called again";

/// A failed call, whatever the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolError {
    /// The reason for the failure.
    pub reason: Reason,
    /// The tool's message.
    pub message: SafeText,
    /// The tool.
    pub tool: SafeText,
    /// The category of the tool, where it is known.
    pub category: Option<SafeText>,
    /// The parameters of the call.
    pub params: Vec<(SafeText, SafeText)>,
    /// The next step, where the caller knows better than the taxonomy.
    pub next: Option<SafeText>,
}

/// The notice about any failed call, with variants for browser, GitHub, GraphQL and docs tools.
pub fn generic_error(given: &ToolError) -> Notice {
    let advice = tool_advice(&given.tool, given.category.as_ref(), given.reason, &given.message, 1);
    let known = tool_kind(&given.tool, given.category.as_ref()).is_some();
    let (key, label) = if known { ("params", "Params") } else { ("context", "Context") };
    let next = match (&given.next, advice) {
        (Some(next), _) => Words::outside(next),
        (None, Some(advice)) => advice.next.into(),
        (None, None) if matches!(given.reason, Reason::Unknown | Reason::ToolFailed) => ASK.into(),
        (None, None) => given.reason.first_step().into(),
    };
    Notice::new("tool_error", "Tool call failed", Some(given.reason))
        .field("status", "Status", "failure")
        .value("error", "Error", Value::Message(given.message.clone()))
        .field("tool", "Tool", Words::outside(&given.tool))
        .value(key, label, Value::Params(given.params.clone()))
        .reason_line()
        .next_line(next)
}

/// A tool that ran and reported an error.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutionFailure {
    /// The reason for the failure, mostly `tool_failed`.
    pub reason: Reason,
    /// The tool's message.
    pub message: SafeText,
    /// The tool.
    pub tool: SafeText,
    /// The category of the tool, where it is known.
    pub category: Option<SafeText>,
    /// The parameters of the call.
    pub params: Vec<(SafeText, SafeText)>,
    /// How many attempts were made.
    pub attempts: u32,
    /// How often in a row calls of this tool had failed before this one.
    pub earlier: u32,
    /// Whether it may have taken effect: nothing repeats it before somebody has looked.
    pub may_have_taken_effect: bool,
    /// The command that repeats the call, where that needs confirmation.
    pub confirm: Option<SafeText>,
    /// The next step, where the fault itself says it.
    pub next: Option<SafeText>,
}

/// The notice about a tool that ran and reported an error.
pub fn execution_failure(given: &ExecutionFailure) -> Notice {
    let failures = given.attempts.saturating_add(given.earlier);
    let advice = tool_advice(&given.tool, given.category.as_ref(), given.reason, &given.message, failures);
    let actions = match (advice, given.reason) {
        (Some(advice), _) => advice.actions,
        _ if given.may_have_taken_effect => UNCONFIRMED_ACTIONS,
        (None, Reason::ToolFailed) => ACTIONS,
        (None, Reason::Crash) => CRASH_ACTIONS,
        (None, reason) => reason.info().next_steps,
    };
    let next = match (&given.confirm, &given.next) {
        (Some(command), _) => Words::own("run ")
            .and_code(command)
            .and_own(" to repeat it as it was, or call it with other parameters"),
        (None, _) if given.may_have_taken_effect => CHECK_FIRST.into(),
        (None, Some(next)) => Words::outside(next),
        (None, None) => ASK.into(),
    };
    Notice::new("execution_failure", "Tool failed", Some(given.reason))
        .value("error", "Error", Value::Message(given.message.clone()))
        .field("tool", "Tool", Words::outside(&given.tool))
        .value("params", "Params", Value::Params(given.params.clone()))
        .reason_line()
        .data("attempts", given.attempts)
        .list(
            "suggestions",
            "Suggestions",
            Marker::Paren,
            actions.iter().map(|action| (*action).into()).collect(),
        )
        .next_line(next)
}

/// A call that exceeded its time limit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolTimeout {
    /// The tool.
    pub tool: SafeText,
    /// The parameters of the call.
    pub params: Vec<(SafeText, SafeText)>,
    /// The time after which it was ended.
    pub after: Duration,
    /// The partial output, shortened.
    pub partial: Option<SafeText>,
    /// Whether the time was over before the call was sent: its server was not ready.
    pub not_sent: bool,
    /// Whether it may have taken effect: nothing repeats it before somebody has looked.
    pub may_have_taken_effect: bool,
    /// The command that repeats the call, where it may have taken effect already.
    pub confirm: Option<SafeText>,
    /// The next step, where the fault itself says it.
    pub next: Option<SafeText>,
}

/// The notice about a call that exceeded its time limit.
pub fn tool_timeout(given: &ToolTimeout) -> Notice {
    let ms = u64::try_from(given.after.as_millis()).unwrap_or(u64::MAX);
    let partial = given.partial.clone().map_or_else(|| Value::Line("none".into()), Value::Message);
    let next = match (&given.confirm, &given.next) {
        (Some(command), _) => Words::own("it may have taken effect: check that, then run ").and_code(command),
        (None, _) if given.may_have_taken_effect => CHECK_FIRST.into(),
        (None, Some(next)) => Words::outside(next),
        (None, None) => "repeat it with narrower parameters, or raise its time limit".into(),
    };
    let suggestions = match (given.not_sent, given.may_have_taken_effect) {
        (true, _) => "see what its server waits for, or give it more time",
        (false, true) => "check whether it took effect, then narrow the scope or ask for less output",
        (false, false) => "narrow the scope, ask for less output, then retry",
    };
    Notice::new("tool_timeout", "Timeout", Some(Reason::Timeout))
        .field("timeout", "Timeout", Words::outside(&given.tool).and_own(format!(" after {ms}ms")))
        .data("tool", crate::notice::json_text(&given.tool))
        .data("after_ms", ms)
        .value("params", "Params", Value::Params(given.params.clone()))
        .value("partial", "Partial", partial)
        .reason_line()
        .field("suggestions", "Suggestions", suggestions)
        .next_line(next)
}

/// An item that failed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FailedItem {
    /// The item's id.
    pub id: SafeText,
    /// The item's error message.
    pub message: SafeText,
}

/// A call or a batch of which a part succeeded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PartialSuccess {
    /// The tool, or the batch.
    pub tool: SafeText,
    /// The parameters of the call.
    pub params: Vec<(SafeText, SafeText)>,
    /// The ids of items that succeeded.
    pub succeeded: Vec<SafeText>,
    /// The items that failed.
    pub failed: Vec<FailedItem>,
    /// How many of those may have taken effect: nothing repeats them before somebody has looked.
    pub unconfirmed: usize,
    /// Warnings of items that succeeded.
    pub warnings: Vec<SafeText>,
    /// The command that repeats the failed items only, where there is one.
    pub retry: Option<SafeText>,
}

/// The notice about a batch of which nothing failed.
fn success(given: &PartialSuccess) -> Notice {
    Notice::new("success", "Success", None)
        .field("success", "Success", format!("{} succeeded, 0 failed", given.succeeded.len()))
        .data("succeeded_count", given.succeeded.len())
        .data("failed_count", 0)
        .value("succeeded", "Succeeded", Value::Bracketed(given.succeeded.clone()))
        .field("tool", "Tool", Words::outside(&given.tool))
        .next_line("nothing needs to be repeated")
}

/// The notice about a partial success.
pub fn partial_success(given: &PartialSuccess) -> Notice {
    if given.failed.is_empty() && given.warnings.is_empty() {
        return success(given);
    }
    let failed: Vec<SafeText> = given.failed.iter().map(|item| item.id.clone()).collect();
    let why = |item: &FailedItem| Words::outside(&item.id).and_own(": ").and_outside(&item.message);
    let counts = format!("{} succeeded, {} failed", given.succeeded.len(), failed.len());
    let next = match (&given.retry, failed.len(), given.unconfirmed) {
        (Some(command), _, 0) => {
            Words::own("run ").and_code(command).and_own(": it repeats the failed items only")
        }
        (Some(command), ..) => Words::own("run ").and_code(command).and_own(
            ": it repeats the failed items only, without those that may have taken effect: check these",
        ),
        (None, 0, _) => "read the warnings; nothing needs to be repeated".into(),
        (None, _, 0) => "repeat the failed items only, with other parameters".into(),
        (None, failed, unconfirmed) if failed == unconfirmed => {
            "the failed items may have taken effect: check that before any of them is called again".into()
        }
        (None, ..) => "repeat the failed items only, with other parameters; check first whether those took \
                       effect that need a confirmation"
            .into(),
    };
    let params = (!given.params.is_empty()).then_some(&given.params);
    Notice::new("partial_success", "Partial success", Some(Reason::PartialSuccess))
        .field("partial_success", "Partial success", counts)
        .data("succeeded_count", given.succeeded.len())
        .data("failed_count", failed.len())
        .value("succeeded", "Succeeded", Value::Bracketed(given.succeeded.clone()))
        .value("failed", "Failed", Value::Bracketed(failed))
        .list("errors", "Errors", Marker::Indent, given.failed.iter().map(why).collect())
        .list(
            "warnings",
            "Warnings",
            Marker::Indent,
            given.warnings.iter().take(ITEMS_MAX).map(Words::outside).collect(),
        )
        .field("tool", "Tool", Words::outside(&given.tool))
        .with(params, |notice, params| notice.value("params", "Params", Value::Params(params.clone())))
        .reason_line()
        .next_line(next)
}
