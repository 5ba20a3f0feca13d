//! Texts of hooks for an agent: about a failed call, a stop that is blocked, an agent that may not
//! be started.

use crate::notice::{NAME_CHARS_MAX, code_span};
use crate::reasons::sentence;
use crate::{GuidanceContext, duration, fault_guidance, near_time};
use backstop_core::{Fault, Reason, SafeText, Shape, Timestamp};
use std::time::Duration;

/// How much of the cause is quoted.
const QUOTED_BYTES_MAX: usize = 600;
/// How much of a gate's output is quoted.
const OUTPUT_BYTES_MAX: usize = 3_000;
/// How much is quoted of why something is refused.
const WHY_CHARS_MAX: usize = 200;
/// How many gates are listed.
const GATES_MAX: usize = 8;

/// A failed tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentFailure<'f> {
    /// The tool.
    pub tool: &'f SafeText,
    /// The command, where the tool ran one.
    pub command: Option<&'f SafeText>,
    /// The fault.
    pub fault: &'f Fault,
    /// What is advised about this error of this tool, where something is.
    pub advice: Option<&'f str>,
    /// Whether the tool changes nothing, so that a second call does no harm.
    pub only_reads: bool,
    /// Whether the command is known to change something outside the project.
    pub changes: bool,
    /// How often in a row this session has had this fault.
    pub times: u32,
    /// From how many times on the agent is told to stop.
    pub times_max: u32,
}

/// The text about a failed call: the fault, what to do, and to stop when it is repeated too often.
pub fn agent_failure(given: &AgentFailure<'_>) -> String {
    let fault = given.fault;
    let again = match (fault.retryable, given.only_reads) {
        (true, true) => "the same again may work",
        // Nobody knows what a command or another tool had done before it failed.
        (true, false) => "it may pass by itself; repeat it only if a second time does no harm",
        (false, _) => "the same again will fail again",
    };
    let mut out = format!(
        "Backstop on the failed {} call: `{}` ({}); {again}.\n",
        tool_name(given.tool),
        fault.reason,
        fault.class
    );
    if let Some(cause) = fault.cause.as_ref().filter(|cause| !cause.raw().trim().is_empty()) {
        out.push_str(&format!("{}\n", cause.prompt("cause", QUOTED_BYTES_MAX)));
    }
    if given.times >= given.times_max {
        out.push_str(&format!(
            "You have met this same fault {} times now. Stop repeating it: do not run this again unchanged. Find out what \
             differs from what you expect, change the approach, or report it as blocked and say what you tried.\n",
            given.times
        ));
    }
    out.push_str(&format!("Advice: {}\n", advice(given)));
    out
}

fn advice(given: &AgentFailure<'_>) -> String {
    let facts = &given.fault.facts;
    if let Some(advice) = given.advice {
        let advice = sentence(advice);
        return if advice.ends_with('.') { advice } else { format!("{advice}.") };
    }
    // The guidance for these reasons assumes that Backstop has waited or shortened the request; a
    // hook has done neither.
    match given.fault.reason {
        Reason::RateLimited => {
            let wait = facts.retry_after_seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
            let wait =
                wait.map_or_else(|| "a while".to_owned(), |wait| format!("at least {}", duration(wait)));
            format!("A limit was reached. Wait {wait} and do other work meanwhile; look at what is already done before you go on.")
        }
        Reason::ContextOverflow => {
            "The request is too long. Make it smaller before you send it again: less input, fewer files, a shorter history.".to_owned()
        }
        Reason::NetworkTransient if !given.only_reads => {
            "The connection failed in passing. Find out whether the step took effect, and repeat it only if a second time does no harm.".to_owned()
        }
        Reason::ResourceContention if !given.only_reads => {
            "Somebody else holds what you need. Wait until it is free, look at what is already done, and go on from there; do not remove a lock whose owner is alive.".to_owned()
        }
        Reason::PartialSuccess if !given.only_reads => {
            "Some items failed. Find out which of them took effect, and send only those again that did not.".to_owned()
        }
        Reason::AggregationFailed if !given.only_reads => {
            "The results could not be put together. Look at each of them, and name the one that does not fit.".to_owned()
        }
        Reason::Interrupted => {
            "It was stopped from outside, not by a mistake. Look at what is already there before you repeat it.".to_owned()
        }
        reason => {
            // An agent that repeats itself is not told to run the command again, and of other
            // commands than checks nobody knows whether a second time does harm.
            let check = given.command.filter(|_| is_check(reason) && !given.changes && given.times < given.times_max);
            fault_guidance(given.fault, &GuidanceContext { check: check.cloned(), ..GuidanceContext::default() })
        }
    }
}

/// Whether what fails for this reason is a check, which may be run as often as one likes.
fn is_check(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::TestFailure
            | Reason::LintError
            | Reason::TypecheckError
            | Reason::FormatError
            | Reason::CompileError
    )
}

/// A gate that failed when an agent tried to stop.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedGate {
    /// Its name.
    pub gate: SafeText,
    /// The command that checks.
    pub check: SafeText,
    /// The command that fixes it, where there is one.
    pub fix: Option<SafeText>,
    /// The fault.
    pub fault: Fault,
    /// The end of its output.
    pub output: SafeText,
}

/// Why an agent's stop is blocked: the gates that fail, and what to do about them.
pub fn agent_stop_blocked(failed: &[FailedGate]) -> String {
    let names: Vec<String> = failed.iter().take(GATES_MAX).map(|gate| name(&gate.gate)).collect();
    let count = if failed.len() == 1 { "1 gate fails" } else { "gates fail" };
    let mut out = format!(
        "Backstop holds this turn once: {count}{}: {}. Put it right, run the checks again, then stop; the next stop is not held.\n",
        if failed.len() == 1 { String::new() } else { format!(" ({})", failed.len()) },
        names.join(", ")
    );
    for gate in failed.iter().take(GATES_MAX) {
        let fault = &gate.fault;
        let context = GuidanceContext {
            check: Some(gate.check.clone()),
            fix: gate.fix.clone(),
            ..GuidanceContext::default()
        };
        out.push_str(&format!("\nGate {}: `{}` ({}).\n", name(&gate.gate), fault.reason, fault.class));
        if !gate.output.raw().trim().is_empty() {
            out.push_str(&format!(
                "{}\n",
                gate.output.prompt("output of the gate", OUTPUT_BYTES_MAX / failed.len().min(GATES_MAX))
            ));
        }
        out.push_str(&format!("Advice: {}\n", fault_guidance(fault, &context)));
    }
    out
}

/// Why an agent may not be started now. `why` may be from outside.
pub fn agent_denied(provider: &str, until: Timestamp, left: Duration, why: &SafeText) -> String {
    let until = near_time(until, until.before(left));
    format!(
        "rate-limited: {provider} takes no requests until {until} (in {}). Start no agent before then; do other work, or stop.{}",
        duration(left),
        quoted(why)
    )
}

/// Why no agent may be started in a frozen project. `why` may be from outside.
pub fn agent_frozen(reason: Reason, why: &SafeText) -> String {
    format!(
        "frozen: no new work begins in this project ({reason}). A person has to put it right and run `backstop unfreeze --why TEXT`. \
         Start no agent before then; finish what you have, or stop and say so.{}",
        quoted(why)
    )
}

/// Why something is so, fenced as data; nothing where nobody said.
fn quoted(why: &SafeText) -> String {
    match why.raw().trim().is_empty() {
        true => String::new(),
        false => format!("\n{}", SafeText::new(why.line(WHY_CHARS_MAX)).prompt("why", usize::MAX)),
    }
}

/// The name of a tool, which its server chose.
fn tool_name(tool: &SafeText) -> String {
    tool.shaped(Shape::Test).map_or_else(|| "tool".to_owned(), |tool| SafeText::new(tool).code_span())
}

fn name(text: &SafeText) -> String {
    match text.raw().trim().is_empty() {
        true => "tool".to_owned(),
        false => code_span(text, NAME_CHARS_MAX),
    }
}
