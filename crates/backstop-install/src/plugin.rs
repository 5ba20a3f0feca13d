//! Files that belong to Backstop as a whole: the plugin for OpenCode, the hooks of Copilot CLI.

use super::agent::Agent;

/// A file that is ours from its first byte to its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnFile {
    /// What stands in it.
    pub(crate) text: &'static str,
    /// What stands in every version of it, and in nobody else's.
    mark: &'static str,
}

/// The file of an agent whose hooks have one of their own.
pub(crate) fn own_file(agent: Agent) -> Option<OwnFile> {
    match agent {
        Agent::Opencode => {
            Some(OwnFile { text: include_str!("plugin.js"), mark: "// Made by `backstop init --opencode`." })
        }
        Agent::Copilot => Some(OwnFile { text: include_str!("copilot.json"), mark: COPILOT_MARK }),
        Agent::Claude | Agent::Codex | Agent::Gemini | Agent::Qwen => None,
    }
}

/// JSON has no comments: this is how the file begins.
const COPILOT_MARK: &str = "{\n  \"version\": 1,\n  \"hooks\": {\n    \"postToolUse\": [\n      { \"type\": \"command\", \"bash\": \"backstop hook agent\"";

impl OwnFile {
    /// Whether a file is ours, of any version.
    pub(crate) fn is_ours(self, text: &str) -> bool {
        text.starts_with(self.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_has_the_mark() {
        for agent in [Agent::Opencode, Agent::Copilot] {
            let file = own_file(agent).unwrap();
            assert!(file.is_ours(file.text) && !file.is_ours("") && !file.is_ours("export const X = 1\n"));
            assert!(file.text.lines().all(|line| line.len() <= 120));
        }
        assert!(own_file(Agent::Claude).is_none());
        let hooks: serde_json::Value = serde_json::from_str(own_file(Agent::Copilot).unwrap().text).unwrap();
        assert_eq!(hooks["hooks"]["postToolUse"][0]["bash"], super::super::hooks::COMMAND);
    }
}
