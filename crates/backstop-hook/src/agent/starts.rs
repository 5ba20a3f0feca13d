//! Whether a tool starts an agent, and whose requests that one sends, for which model.

use backstop_classify::{calls, model_of_words};

/// Tools of agents that start another one.
const TOOLS: &[&str] = &["Task", "Agent"];

/// An agent's program.
struct Program {
    /// What it is called, by itself and as a package.
    names: &'static [&'static str],
    /// The provider whose guard counts.
    provider: &'static str,
    /// What it does besides starting an agent.
    besides: &'static [&'static str],
}

const PROGRAMS: &[Program] = &[
    Program {
        names: &["claude", "claude-code"],
        provider: "anthropic",
        besides: &["mcp", "config", "doctor", "update", "install", "plugin", "auth", "setup-token", "agents"],
    },
    Program {
        names: &["codex"],
        provider: "openai",
        besides: &["login", "logout", "mcp", "completion", "apply", "features", "sandbox", "debug", "help"],
    },
    Program {
        names: &["opencode", "opencode-ai"],
        provider: "opencode",
        besides: &[
            "auth",
            "models",
            "upgrade",
            "uninstall",
            "agent",
            "mcp",
            "stats",
            "export",
            "session",
            "debug",
        ],
    },
];

/// Words with which an agent's program starts nothing.
const ASKS: &[&str] = &["--version", "-v", "-V", "--help", "-h"];

/// Whose requests an agent that is started would send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started<'p> {
    /// The provider.
    pub provider: &'p str,
    /// The model that its command line asks for.
    pub model: Option<String>,
}

/// Whose requests a tool call would begin to send, each once; none where it starts no agent. `own`
/// is the session's own provider.
pub fn starts_agent<'p>(tool: &str, command: Option<&str>, own: &'p str) -> Vec<Started<'p>> {
    if TOOLS.contains(&tool) {
        return vec![Started { provider: own, model: None }];
    }
    let Some(command) = command else { return Vec::new() };
    // Most commands name no agent at all: nothing is taken apart for those.
    if !PROGRAMS.iter().any(|program| program.names.iter().any(|name| command.contains(name))) {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (name, words) in calls(command) {
        let Some(program) = PROGRAMS.iter().find(|program| program.names.contains(&name.as_str())) else {
            continue;
        };
        let first = words.iter().find(|word| !word.starts_with('-'));
        let asks = words.iter().any(|word| ASKS.contains(&word.as_str()));
        let beside = first.is_some_and(|first| program.besides.contains(&first.as_str()));
        let started = Started { provider: program.provider, model: model_of_words(&words) };
        if !asks && !beside && !all.contains(&started) {
            all.push(started);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_known_by_tool_and_by_program() {
        let cases = [
            ("Task", None, "anthropic"),
            ("Agent", Some("x"), "anthropic"),
            ("Bash", Some("claude -p 'fix it'"), "anthropic"),
            ("Bash", Some("cd x && timeout 60 claude -p 'fix it'"), "anthropic"),
            ("Bash", Some("bash -lc \"codex exec 'do'\""), "openai"),
            ("Bash", Some("npx opencode run hello"), "opencode"),
            ("Bash", Some("df -h; claude -p hi"), "anthropic"),
            ("Bash", Some("claude -p hi && ls -h"), "anthropic"),
            ("Bash", Some("grep -v x f | claude -p y"), "anthropic"),
            ("Bash", Some("claude mcp list && claude -p x"), "anthropic"),
            ("Bash", Some("npx @anthropic-ai/claude-code@latest -p hi"), "anthropic"),
            ("Bash", Some("npx -y opencode-ai run x"), "opencode"),
            ("Bash", Some("sudo -u me claude -p x"), "anthropic"),
            ("Bash", Some("backstop exec --timeout 10m -- claude -p x"), "anthropic"),
            ("Bash", Some("codex exec a & claude -p b; codex exec c"), "openai anthropic"),
            ("Bash", Some("claude --version"), ""),
            ("Bash", Some("claude mcp list"), ""),
            ("Bash", Some("grep claude README.md"), ""),
            ("Bash", Some("cat docs/codex.md"), ""),
            ("Bash", Some("npm test"), ""),
            ("Bash", Some(""), ""),
            ("Bash", None, ""),
            ("Read", None, ""),
            ("", Some("\u{1b}]52;c;claude\u{7}"), ""),
            ("Bash", Some("claude --model opus -p a; claude --model=opus -p b"), "anthropic"),
            ("Bash", Some("claude --model opus -p a; claude -p b"), "anthropic anthropic"),
        ];
        for (tool, command, want) in cases {
            let started = starts_agent(tool, command, "anthropic");
            let providers: Vec<&str> = started.iter().map(|one| one.provider).collect();
            assert_eq!(providers.join(" "), want, "{tool} {command:?}");
        }
    }
}
