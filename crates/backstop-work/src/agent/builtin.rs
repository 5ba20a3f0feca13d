//! The agents that are known by name: one table, nothing else.

use super::definition::{Agent, OutputDialect, PromptBy, Resume};

/// An agent that is known by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// Its command line, with placeholders. `{options}` is where a model and further arguments go.
    pub argv: &'static [&'static str],
    /// The flag that a model's name follows.
    pub model_flag: &'static str,
    /// In which dialect it answers.
    pub output: OutputDialect,
    /// Variables for it alone, with placeholders.
    pub env: &'static [(&'static str, &'static str)],
    /// Whose models it uses, where it uses those of one.
    pub provider: Option<&'static str>,
    /// How it continues a session.
    pub resume: Resume,
}

/// Every agent that is known by name. All take their prompt on standard input: a command line is seen by every user of
/// the machine, and has a length.
pub const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "claude",
        argv: &[
            "claude",
            "-p",
            // A line for everything that it does, not one at the end: the inactivity clock needs to see that it works.
            "--output-format",
            "stream-json",
            // Without it stream-json is refused.
            "--verbose",
            // It edits files unasked. What else it asks for is denied, goes on, and is told in `permission_denials`.
            "--permission-mode",
            "acceptEdits",
            // Without it, commands are denied headless, gates among them, and the run goes on as if nothing were.
            "--allowedTools",
            "Bash",
            // The result file lies outside of the tree; only its own folder is opened.
            "--add-dir",
            "{result_folder}",
            // Its last answer has the shape of a result, whether or not it writes the file.
            "--json-schema",
            "{schema}",
            "{resume}",
            "{options}",
        ],
        model_flag: "--model",
        output: OutputDialect::ClaudeJson,
        // By itself it tries ten times, over three minutes, even a refused key. The waiting is ours: it is recorded,
        // shared with other phases and shown.
        env: &[("CLAUDE_CODE_MAX_RETRIES", "2")],
        provider: Some("anthropic"),
        // Newer versions find a session from another worktree of its repository too; older ones refuse it.
        resume: Resume {
            words: &["--resume", "{session}"],
            refused: &["No conversation found with session ID"],
            same_folder: false,
        },
    },
    Builtin {
        name: "codex",
        argv: &[
            "codex",
            "exec",
            // Events, one a line; without it there is only prose.
            "--json",
            // It writes in its folder and nowhere else, without asking.
            "-s",
            "workspace-write",
            // The result file lies outside of the tree; only its own folder is opened.
            "--add-dir",
            "{result_folder}",
            // Whether this is a repository is Backstop's business.
            "--skip-git-repo-check",
            // The last message also goes to a file, where no event can be mistaken for it.
            "-o",
            "{last_message_file}",
            "{options}",
            "{resume}",
            // The prompt comes on standard input.
            "-",
        ],
        model_flag: "--model",
        output: OutputDialect::CodexJsonl,
        env: &[],
        provider: Some("openai"),
        resume: Resume {
            words: &["resume", "{session}"],
            refused: &["no rollout found for", "No saved session found"],
            same_folder: false,
        },
    },
    Builtin {
        name: "opencode",
        argv: &[
            "opencode",
            "run",
            "--format",
            "json",
            // It keeps what a provider answered to its log, retries and says nothing: the log is the only trace.
            "--print-logs",
            "--log-level",
            "ERROR",
            "{resume}",
            "{options}",
        ],
        model_flag: "--model",
        output: OutputDialect::OpencodeJsonl,
        // A write outside of the tree that it has to ask for ends it, with exit code 0.
        env: &[("OPENCODE_PERMISSION", "{\"external_directory\":{\"{result_folder}/*\":\"allow\"}}")],
        // It speaks to any of them: a guard of its own, which its hooks close, too.
        provider: Some("opencode"),
        // Elsewhere it hangs and says nothing.
        resume: Resume {
            words: &["--session", "{session}"],
            refused: &["Session not found", "NotFoundError"],
            same_folder: true,
        },
    },
];

/// The agent of this name, where it is a built-in one.
pub fn builtin(name: &str) -> Option<Agent> {
    let found = BUILTINS.iter().find(|known| known.name == name)?;
    Some(Agent {
        name: found.name.to_owned(),
        argv: found.argv.iter().map(|a| (*a).to_owned()).collect(),
        prompt: PromptBy::Stdin,
        model_flag: Some(found.model_flag.to_owned()),
        options: Vec::new(),
        output: found.output,
        env: found.env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        provider: found.provider.map(str::to_owned),
        resume: Some(found.resume),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_agent_is_one_that_a_template_could_be() {
        for known in BUILTINS {
            let agent = builtin(known.name).unwrap();
            agent.check().unwrap();
            assert_eq!(agent.argv.iter().filter(|a| *a == "{options}").count(), 1);
        }
        assert!(builtin("nobody").is_none());
    }
}
