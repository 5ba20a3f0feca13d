//! What an agent is advised about a failed call of one of its own tools: read, edit, search, fetch,
//! start another agent.
//!
//! [`ADVICE`] is the data: for each error of a tool the words that it is known by, its reason, and
//! one sentence that says what to do next, with examples that must match and near misses that must
//! not. No sentence says to repeat a call unchanged that may have had an effect. Tools of MCP
//! servers have advice by their kind ([`backstop_report::tool_advice`]).

mod table;

pub(super) use table::ADVICE;

use backstop_core::Reason;

/// How much of an error is looked at: its beginning, in bytes. What a file or a page holds comes
/// after what a tool says.
const ERROR_BYTES_MAX: usize = 2 << 10;

/// A kind of tool that agents bring with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum OwnTool {
    /// Reads a file.
    Read,
    /// Replaces text in a file, or applies a patch.
    Edit,
    /// Writes a whole file.
    Write,
    /// Changes a cell of a notebook.
    Notebook,
    /// Runs a command.
    Shell,
    /// Looks for text in files, or for files.
    Search,
    /// Fetches a page.
    Fetch,
    /// Searches the web.
    WebSearch,
    /// Starts another agent.
    Agent,
}

/// What the tools are called: by Claude Code, by Codex and by OpenCode, in lower case.
const NAMES: &[(OwnTool, &[&str])] = &[
    (OwnTool::Read, &["read", "notebookread", "read_file", "view", "view_image", "ls", "list", "list_dir"]),
    (OwnTool::Edit, &["edit", "multiedit", "apply_patch", "patch", "str_replace", "multi_edit"]),
    (OwnTool::Write, &["write", "write_file"]),
    (OwnTool::Notebook, &["notebookedit"]),
    (
        OwnTool::Shell,
        &[
            "bash",
            "powershell",
            "shell",
            "local_shell",
            "exec_command",
            "unified_exec",
            "bashoutput",
            "killshell",
        ],
    ),
    (OwnTool::Search, &["grep", "glob", "grep_files", "codesearch"]),
    (OwnTool::Fetch, &["webfetch"]),
    (OwnTool::WebSearch, &["websearch", "web_search"]),
    (OwnTool::Agent, &["task", "agent", "spawn_agent"]),
];

impl OwnTool {
    /// The kind of a tool, by its name; `None` for tools of others.
    pub(super) fn of(tool: &str) -> Option<Self> {
        let tool = tool.trim().to_ascii_lowercase();
        NAMES.iter().find(|(_, names)| names.contains(&tool.as_str())).map(|(kind, _)| *kind)
    }

    /// Whether a call changes nothing, so that a second one does no harm.
    pub(super) fn only_reads(self) -> bool {
        matches!(self, Self::Read | Self::Search | Self::Fetch | Self::WebSearch)
    }
}

/// An example: a tool, and what it said.
pub(super) type Example = (&'static str, &'static str);

/// What to do about one error of one kind of tool.
#[derive(Debug)]
pub(super) struct ToolError {
    /// The kinds of tools that say it.
    pub(super) tools: &'static [OwnTool],
    /// Words that it is known by, in lower case. One of these alternatives must be there, and of an
    /// alternative every part, in this order.
    pub(super) says: &'static [&'static [&'static str]],
    /// What it is; `None` where the rules know better.
    pub(super) reason: Option<Reason>,
    /// What to do next: one sentence.
    pub(super) advice: &'static str,
    /// What it must match.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(super) matches: &'static [Example],
    /// What it must not match.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(super) misses: &'static [Example],
}

impl ToolError {
    fn is(&self, tool: OwnTool, error: &str) -> bool {
        self.tools.contains(&tool)
            && self.says.iter().any(|parts| {
                let mut rest = error;
                parts.iter().all(|part| match rest.find(part) {
                    Some(at) => {
                        rest = &rest[at + part.len()..];
                        true
                    }
                    None => false,
                })
            })
    }
}

/// The entry for what a tool said; `None` where no entry knows it.
pub(super) fn own_tool_error(tool: &str, error: &str) -> Option<&'static ToolError> {
    let tool = OwnTool::of(tool)?;
    let error = error.trim_start();
    let error = error[..error.floor_char_boundary(ERROR_BYTES_MAX)].to_lowercase();
    ADVICE.iter().find(|entry| entry.is(tool, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_matches_its_examples_and_not_its_near_misses() {
        for entry in ADVICE {
            assert!(!entry.matches.is_empty() && !entry.misses.is_empty(), "{}", entry.advice);
            for (tool, error) in entry.matches {
                let found = own_tool_error(tool, error).map(|found| found.advice);
                assert_eq!(found, Some(entry.advice), "{tool}: {error}");
            }
            for (tool, error) in entry.misses {
                let found = own_tool_error(tool, error).map(|found| found.advice);
                assert_ne!(found, Some(entry.advice), "{tool}: {error}");
            }
            for word in entry.says.iter().copied().flatten() {
                assert_eq!(*word, word.to_lowercase(), "{}", entry.advice);
            }
        }
    }

    #[test]
    fn advice_is_one_imperative_sentence_and_never_to_repeat_what_may_have_had_an_effect() {
        for entry in ADVICE {
            let advice = entry.advice;
            assert!(advice.ends_with('.') && advice.len() < 260, "{advice}");
            assert_eq!(advice.matches(". ").count(), 0, "{advice}");
            assert!(advice.chars().next().is_some_and(char::is_uppercase), "{advice}");
            let harmless = entry.tools.iter().all(|tool| tool.only_reads());
            let lower = advice.to_lowercase();
            let repeats =
                ["try again", "repeat it", "retry", "run it again"].iter().any(|word| lower.contains(word));
            assert!(harmless || !repeats || lower.contains("no harm"), "{advice}");
        }
    }

    #[test]
    fn tools_are_known_in_three_dialects() {
        for (name, want) in [
            ("Read", Some(OwnTool::Read)),
            ("read", Some(OwnTool::Read)),
            ("MultiEdit", Some(OwnTool::Edit)),
            ("apply_patch", Some(OwnTool::Edit)),
            ("patch", Some(OwnTool::Edit)),
            ("exec_command", Some(OwnTool::Shell)),
            ("webfetch", Some(OwnTool::Fetch)),
            ("task", Some(OwnTool::Agent)),
            ("mcp__github__read", None),
            ("", None),
        ] {
            assert_eq!(OwnTool::of(name), want, "{name}");
        }
    }
}
