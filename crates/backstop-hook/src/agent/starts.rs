//! Whether a tool starts an agent, and whose requests that one sends.

use backstop_classify::programs;

/// Tools of agents that start another one.
const TOOLS: &[&str] = &["Task", "Agent"];

/// Programs that are agents: the provider whose guard counts, and what they do besides starting one.
const PROGRAMS: &[(&str, &str, &[&str])] = &[
    (
        "claude",
        "anthropic",
        &["mcp", "config", "doctor", "update", "install", "plugin", "auth", "setup-token", "agents"],
    ),
    (
        "codex",
        "openai",
        &["login", "logout", "mcp", "completion", "apply", "features", "sandbox", "debug", "help"],
    ),
    (
        "opencode",
        "opencode",
        &["auth", "models", "upgrade", "uninstall", "agent", "mcp", "stats", "export", "session", "debug"],
    ),
];

/// Words with which no program starts anything.
const ASKS: &[&str] = &["--version", "-v", "-V", "--help", "-h"];

/// The provider whose requests a tool call would begin to send; nothing where it starts no agent. `own` is the session's
/// own provider.
pub fn starts_agent(tool: &str, command: Option<&str>, own: &'static str) -> Option<&'static str> {
    if TOOLS.contains(&tool) {
        return Some(own);
    }
    let command = command?;
    // Most commands name no agent at all: nothing is taken apart for those.
    if !PROGRAMS.iter().any(|(program, ..)| command.contains(program)) {
        return None;
    }
    let (names, words) = programs(command);
    if words.iter().any(|word| ASKS.contains(&word.as_str())) {
        return None;
    }
    let started = PROGRAMS.iter().find(|(program, _, besides)| {
        let is = |wanted: &str| names.iter().any(|name| name == wanted);
        is(program) && !besides.iter().any(|sub| is(&format!("{program} {sub}")))
    });
    started.map(|(_, provider, _)| *provider)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_known_by_tool_and_by_program() {
        let cases = [
            ("Task", None, Some("anthropic")),
            ("Agent", Some("x"), Some("anthropic")),
            ("Bash", Some("claude -p 'fix it'"), Some("anthropic")),
            ("Bash", Some("cd x && timeout 60 claude -p 'fix it'"), Some("anthropic")),
            ("Bash", Some("bash -lc \"codex exec 'do'\""), Some("openai")),
            ("Bash", Some("npx opencode run hello"), Some("opencode")),
            ("Bash", Some("claude --version"), None),
            ("Bash", Some("claude mcp list"), None),
            ("Bash", Some("grep claude README.md"), None),
            ("Bash", Some("cat docs/codex.md"), None),
            ("Bash", Some("npm test"), None),
            ("Bash", Some(""), None),
            ("Bash", None, None),
            ("Read", None, None),
            ("", Some("\u{1b}]52;c;claude\u{7}"), None),
        ];
        for (tool, command, want) in cases {
            assert_eq!(starts_agent(tool, command, "anthropic"), want, "{tool} {command:?}");
        }
    }
}
