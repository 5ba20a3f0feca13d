//! The agents that are known by name: one table, nothing else.

use super::acp::{KNOWN_ACP, known_acp};
use super::agent_error::AgentError;
use super::definition::{AcpOptions, Agent, OutputDialect, PromptBy, Resume, TemplateOptions, from_template};
use backstop_core::Reason;

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
    /// What its own exit codes mean.
    pub exit_codes: &'static [(i32, Reason)],
    /// Settings for it alone, as the text of a file that `{settings_file}` names.
    pub settings: Option<&'static str>,
    /// What `backstop agents` says about it.
    pub about: About,
}

/// What is known about an agent besides how it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// The newest version with which all of this was tried.
    pub tested: &'static str,
    /// How it is installed.
    pub install: &'static str,
    /// What it tells besides that it is done.
    pub tells: &'static [&'static str],
    /// What it hides, in one line.
    pub hides: &'static str,
}

/// Every agent that is known by name. All take their prompt on standard input: a command line is
/// seen by every user of the machine, and has a length.
pub const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "claude",
        argv: &[
            "claude",
            "-p",
            // A line for everything that it does, not one at the end: the inactivity clock needs to
            // see that it works.
            "--output-format",
            "stream-json",
            // Without it stream-json is refused.
            "--verbose",
            // It edits files unasked. What else it asks for is denied, goes on, and is told in
            // `permission_denials`.
            "--permission-mode",
            "acceptEdits",
            // Without it, commands are denied headless, gates among them, and the run goes on as if
            // nothing were.
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
        // By itself it tries ten times, over three minutes, even a refused key. The waiting is
        // ours: it is recorded, shared with other phases and shown.
        env: &[("CLAUDE_CODE_MAX_RETRIES", "2")],
        provider: Some("anthropic"),
        // Newer versions find a session from another worktree of its repository too; older ones
        // refuse it.
        resume: Resume {
            words: &["--resume", "{session}"],
            refused: &["No conversation found with session ID"],
            same_folder: false,
            later_minute: false,
        },
        exit_codes: &[],
        settings: None,
        about: About {
            tested: "2.1.325",
            install: "npm i -g @anthropic-ai/claude-code",
            tells: &["sessions", "tokens", "cost", "limits with reset", "denials"],
            hides: "retries of a refused request; it is let make two",
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
            later_minute: false,
        },
        exit_codes: &[],
        settings: None,
        about: About {
            tested: "0.166.0",
            install: "npm i -g @openai/codex",
            tells: &["sessions", "tokens", "limits with reset", "denials"],
            hides: "which of its commands failed in the sandbox, in part",
        },
    },
    Builtin {
        name: "opencode",
        argv: &[
            "opencode",
            "run",
            "--format",
            "json",
            // It keeps what a provider answered to its log, retries and says nothing: the log is
            // the only trace.
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
            later_minute: false,
        },
        exit_codes: &[],
        settings: None,
        about: About {
            tested: "1.18.33",
            install: "npm i -g opencode-ai",
            tells: &["sessions", "tokens", "cost"],
            hides: "a usage limit: it sleeps until the reset and tells only its log",
        },
    },
    Builtin {
        name: "gemini",
        argv: &[
            "gemini",
            "--output-format",
            "stream-json",
            // What it would ask for is denied headless, and it goes on as if nothing were.
            "--approval-mode",
            "yolo",
            // A worktree is a folder that nobody has trusted yet.
            "--skip-trust",
            // The result file lies outside of the tree; only its own folder is opened.
            "--include-directories",
            "{result_folder}",
            "{resume}",
            "{options}",
        ],
        model_flag: "--model",
        output: OutputDialect::GeminiJsonl,
        env: &[],
        provider: Some("google"),
        // By id: `latest` would be whichever session a person began last.
        resume: Resume {
            words: &["--resume", "{session}"],
            refused: &["Invalid session identifier", "No previous sessions found"],
            same_folder: true,
            later_minute: false,
        },
        // Its own codes, then HTTP statuses modulo 256: 400, 401, 403, 429, 500, 503.
        exit_codes: &[
            (41, Reason::AuthError),
            (42, Reason::InvalidUsage),
            (53, Reason::BudgetExhausted),
            (144, Reason::Validation),
            (145, Reason::AuthError),
            (147, Reason::AuthError),
            (173, Reason::RateLimited),
            (244, Reason::NetworkTransient),
            (247, Reason::NetworkTransient),
        ],
        settings: None,
        about: About {
            tested: "0.61.0",
            install: "npm i -g @google/gemini-cli",
            tells: &["sessions", "tokens"],
            hides: "when a limit ends; it repeats a refused request for minutes and tells only its log",
        },
    },
    Builtin {
        name: "copilot",
        argv: &[
            "copilot",
            "--output-format",
            "json",
            // Without them it asks, headless too, and ends.
            "--allow-all-tools",
            "--no-ask-user",
            "--no-auto-update",
            "--no-color",
            // The result file lies outside of the tree; only its own folder is opened.
            "--add-dir",
            "{result_folder}",
            // It names its session at the very end only. With an id of ours one that was killed can
            // be continued: the same flag begins a session and continues it.
            "--session-id",
            "{session}",
            // Its events have no tokens.
            "--usage-output-file",
            "{usage_file}",
            "{options}",
        ],
        model_flag: "--model",
        output: OutputDialect::CopilotJsonl,
        env: &[],
        provider: Some("copilot"),
        // It knows every session, or begins it.
        resume: Resume { words: &[], refused: &[], same_folder: false, later_minute: false },
        exit_codes: &[],
        settings: None,
        about: About {
            tested: "1.0.102",
            install: "npm i -g @github/copilot",
            tells: &["sessions", "tokens", "limits with reset"],
            hides: "the id of its session until it ends; Backstop gives it one",
        },
    },
    Builtin {
        name: "qwen",
        argv: &[
            "qwen",
            "--output-format",
            "stream-json",
            // What it would ask for is denied headless.
            "--approval-mode",
            "yolo",
            // The result file lies outside of the tree; only its own folder is opened.
            "--add-dir",
            "{result_folder}",
            "{resume}",
            "{options}",
        ],
        model_flag: "--model",
        output: OutputDialect::QwenJson,
        env: &[
            ("QWEN_CODE_SUPPRESS_YOLO_WARNING", "1"),
            ("QWEN_CODE_SYSTEM_DEFAULTS_PATH", "{settings_file}"),
            // It says of no request that it was refused; the client that it uses does.
            ("OPENAI_LOG", "info"),
        ],
        // It speaks to any of them: a guard of its own.
        provider: Some("qwen"),
        resume: Resume {
            words: &["--resume", "{session}"],
            refused: &["No saved session found with ID"],
            same_folder: true,
            later_minute: false,
        },
        exit_codes: &[(55, Reason::BudgetExhausted)],
        // By itself it tries ten times more, a minute apart. These are defaults: a person's own
        // settings beat them.
        settings: Some("{\"model\": {\"generationConfig\": {\"maxRetries\": 0}}}\n"),
        about: About {
            tested: "0.24.4",
            install: "npm i -g @qwen-code/qwen-code",
            tells: &["sessions", "tokens", "denials"],
            hides: "when a limit ends; it sleeps until then and tells only its client's log",
        },
    },
];

/// The agent of this name, where it is a known one: by its command line, which tells more, else by
/// the Agent Client Protocol.
pub fn builtin(name: &str) -> Option<Agent> {
    let Some(found) = BUILTINS.iter().find(|known| known.name == name) else {
        let known = KNOWN_ACP.iter().find(|known| known.name == name)?;
        let argv = known.argv.iter().map(|word| (*word).to_owned()).collect();
        return from_acp(name, argv, AcpOptions::default()).ok();
    };
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
        exit_codes: found.exit_codes,
        settings: found.settings,
        acp: None,
    })
}

/// An agent that speaks the Agent Client Protocol, by its command line.
pub fn from_acp(name: &str, argv: Vec<String>, options: AcpOptions) -> Result<Agent, AgentError> {
    let known = known_acp(&argv);
    let mut agent = from_template(name, argv, TemplateOptions::default())?;
    agent.argv.extend(known.into_iter().flat_map(|known| known.args).map(|arg| (*arg).to_owned()));
    agent.output = OutputDialect::Acp;
    agent.acp = Some(options);
    agent.env = known
        .into_iter()
        .flat_map(|known| known.env)
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    agent.provider = known.and_then(|known| known.provider).map(str::to_owned);
    agent.settings = known.and_then(|known| known.settings);
    // Which folders a session is found in differs: its own it is always found in.
    let later_minute = known.is_some_and(|known| known.name == "gemini");
    agent.resume = Some(Resume { words: &[], refused: &[], same_folder: true, later_minute });
    agent.check()?;
    Ok(agent)
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
        for known in KNOWN_ACP {
            let is_plain = BUILTINS.iter().any(|plain| plain.name == known.name);
            let agent = builtin(known.name).unwrap();
            assert_eq!((agent.name.as_str(), agent.acp.is_none()), (known.name, is_plain));
        }
    }
}
