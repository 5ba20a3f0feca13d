//! The hooks that each agent gets, and how they are recognised in a file.

use super::agent::Agent;
use super::layout::Piece;
use backstop_core::json::{Node, Value};

/// The command that every hook calls.
pub const COMMAND: &str = "backstop hook agent";

/// How long an agent waits for a hook that only classifies and records, in seconds. It takes
/// milliseconds; without this limit, an overloaded machine could block an agent for its default of
/// ten minutes.
const QUICK_SECONDS: u32 = 10;

/// How long an agent waits at the end of a turn, where gates may run, in seconds.
const GATES_SECONDS: u32 = 600;

/// One hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hook {
    /// The event.
    pub(crate) event: &'static str,
    /// A pattern for the tools that the hook is for.
    matcher: Option<&'static str>,
    /// How long the agent waits for it, in the agent's own unit.
    timeout: u32,
}

const fn hook(event: &'static str, matcher: Option<&'static str>, timeout: u32) -> Hook {
    Hook { event, matcher, timeout }
}

const CLAUDE: &[Hook] = &[
    hook("PreToolUse", Some("Task|Agent|Bash"), QUICK_SECONDS),
    hook("PostToolUseFailure", None, QUICK_SECONDS),
    hook("Stop", None, GATES_SECONDS),
    hook("StopFailure", None, QUICK_SECONDS),
    hook("SessionEnd", None, QUICK_SECONDS),
];

/// Codex has no event for a failed tool or an interrupted turn, so its hook runs after every tool.
const CODEX: &[Hook] = &[
    hook("PreToolUse", Some("Bash"), QUICK_SECONDS),
    hook("PostToolUse", None, QUICK_SECONDS),
    hook("Stop", None, GATES_SECONDS),
];

/// Gemini CLI tells every tool call and counts in milliseconds.
const GEMINI: &[Hook] = &[hook("AfterTool", None, 1000 * QUICK_SECONDS)];

/// Qwen Code has Claude Code's events.
const QWEN: &[Hook] = &[hook("PostToolUseFailure", None, QUICK_SECONDS)];

/// The hooks of an agent that has them in a JSON file which holds other things, too.
pub(crate) fn hooks(agent: Agent) -> &'static [Hook] {
    match agent {
        Agent::Claude => CLAUDE,
        Agent::Codex => CODEX,
        Agent::Gemini => GEMINI,
        Agent::Qwen => QWEN,
        Agent::Opencode | Agent::Copilot => &[],
    }
}

impl Hook {
    /// The entry for the event's list in the settings file.
    pub(crate) fn group(&self) -> Piece {
        let handler = Piece::Object(vec![
            ("type", Piece::Text("command")),
            ("command", Piece::Text(COMMAND)),
            ("timeout", Piece::Number(self.timeout)),
        ]);
        let matcher = self.matcher.map(|matcher| ("matcher", Piece::Text(matcher)));
        Piece::Object(matcher.into_iter().chain([("hooks", Piece::Array(vec![handler]))]).collect())
    }
}

/// Whether a handler in a settings file is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Our handler: it calls Backstop and nothing else.
    Ours,
    /// It calls Backstop, but was edited.
    Changed,
    /// Another handler.
    Other,
}

/// The command of a handler.
fn command(handler: &Node) -> Option<&str> {
    let Value::Object(members) = &handler.value else { return None };
    match members.iter().rfind(|m| m.key == "command").map(|m| &m.node.value) {
        Some(Value::Text(command)) => Some(command),
        _ => None,
    }
}

/// The program that a handler calls, if it calls Backstop.
pub(crate) fn program(handler: &Node) -> Option<String> {
    let calls_us = whose(handler) != Whose::Other;
    command(handler).filter(|_| calls_us)?.split_whitespace().next().map(str::to_owned)
}

/// Whether a handler is ours. The program may be given by its path.
pub(crate) fn whose(handler: &Node) -> Whose {
    let Some(command) = command(handler) else { return Whose::Other };
    let mut words = command.split_whitespace();
    let program = words.next().and_then(|program| program.rsplit('/').next());
    if program != Some("backstop") || words.next() != Some("hook") || words.next() != Some("agent") {
        return Whose::Other;
    }
    if words.next().is_none() { Whose::Ours } else { Whose::Changed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::json::parse;

    #[test]
    fn ours_is_told_from_others() {
        let table = [
            (r#"{"type":"command","command":"backstop hook agent"}"#, Whose::Ours),
            (r#"{"command":" /usr/local/bin/backstop  hook agent ","timeout":3}"#, Whose::Ours),
            (r#"{"command":"backstop hook agent"}"#, Whose::Ours),
            (r#"{"command":"backstop hook agent | tee log"}"#, Whose::Changed),
            (r#"{"command":"backstop hook agents"}"#, Whose::Other),
            (r#"{"command":"mybackstop hook agent"}"#, Whose::Other),
            (r#"{"command":"backstop hook on-error"}"#, Whose::Other),
            (r#"{"command":""}"#, Whose::Other),
            (r#"{"command":7}"#, Whose::Other),
            (r#""backstop hook agent""#, Whose::Other),
        ];
        for (text, want) in table {
            assert_eq!(whose(&parse(text).unwrap().unwrap()), want, "{text}");
        }
    }
}
