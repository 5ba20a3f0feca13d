//! Programs that are known to speak the Agent Client Protocol, and what each needs.

/// A program that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownAcp {
    /// The name that `backstop agents` shows.
    pub name: &'static str,
    /// Its command line.
    pub argv: &'static [&'static str],
    /// Arguments that are added where it is run as a person wrote it, with placeholders.
    pub args: &'static [&'static str],
    /// Variables for it alone.
    pub env: &'static [(&'static str, &'static str)],
    /// Modes in which it asks least and still asks for what is outside of its folder, the best
    /// first.
    pub modes: &'static [&'static str],
    /// Whose models it uses, where it uses those of one.
    pub provider: Option<&'static str>,
    /// Settings for it alone, as the text of a file that `{settings_file}` names.
    pub settings: Option<&'static str>,
    /// The newest version with which it was tried; empty where it was not.
    pub tested: &'static str,
    /// How it is installed.
    pub install: &'static str,
}

/// The modes that are looked for in an agent that is not known.
pub(super) const MODES: &[&str] =
    &["acceptEdits", "autoEdit", "auto-edit", "auto_edit", "smart_approve", "build"];

/// Every program that is known. Those that also have a row of [`BUILTINS`](super::super::BUILTINS)
/// are better run by that: a command line tells more.
pub const KNOWN_ACP: &[KnownAcp] = &[
    KnownAcp {
        name: "claude-agent-acp",
        argv: &["claude-agent-acp"],
        args: &[],
        env: &[("CLAUDE_CODE_MAX_RETRIES", "2")],
        modes: &["acceptEdits"],
        provider: Some("anthropic"),
        settings: None,
        tested: "0.99.1",
        install: "npm i -g @agentclientprotocol/claude-agent-acp",
    },
    KnownAcp {
        name: "codex-acp",
        argv: &["codex-acp"],
        // The result file lies outside of the tree; only its own folder is opened.
        args: &["-c", "sandbox_workspace_write.writable_roots=[\"{result_folder}\"]"],
        env: &[],
        // Its default is read-only: writes fail, and nobody is asked.
        modes: &["auto"],
        provider: Some("openai"),
        settings: None,
        tested: "0.16.0",
        install: "npm i -g @zed-industries/codex-acp",
    },
    KnownAcp {
        name: "opencode",
        argv: &["opencode", "acp"],
        // What its provider answered stands in its log and nowhere else, and so does that it
        // begins a step anew.
        args: &["--print-logs", "--log-level", "INFO"],
        env: &[("OPENCODE_PERMISSION", "{\"external_directory\":{\"{result_folder}/*\":\"allow\"}}")],
        modes: &["build"],
        provider: Some("opencode"),
        settings: None,
        tested: "1.18.33",
        install: "npm i -g opencode-ai",
    },
    KnownAcp {
        name: "gemini",
        argv: &["gemini", "--acp"],
        // A worktree is a folder that nobody has trusted yet, in which it takes no mode.
        args: &["--skip-trust", "--include-directories", "{result_folder}"],
        env: &[],
        modes: &["autoEdit"],
        provider: Some("google"),
        settings: None,
        tested: "0.61.0",
        install: "npm i -g @google/gemini-cli",
    },
    KnownAcp {
        name: "copilot",
        argv: &["copilot", "--acp"],
        args: &["--add-dir", "{result_folder}"],
        env: &[],
        modes: &[],
        provider: Some("copilot"),
        settings: None,
        tested: "1.0.102",
        install: "npm i -g @github/copilot",
    },
    KnownAcp {
        name: "qwen",
        argv: &["qwen", "--acp"],
        args: &["--add-dir", "{result_folder}"],
        env: &[("QWEN_CODE_SYSTEM_DEFAULTS_PATH", "{settings_file}"), ("OPENAI_LOG", "info")],
        modes: &["auto-edit"],
        provider: Some("qwen"),
        settings: Some("{\"model\": {\"generationConfig\": {\"maxRetries\": 0}}}\n"),
        tested: "0.24.4",
        install: "npm i -g @qwen-code/qwen-code",
    },
    untried("goose", &["goose", "acp"], "https://github.com/aaif-goose/goose"),
];

/// A program of which it is only known that it speaks the protocol.
const fn untried(name: &'static str, argv: &'static [&'static str], install: &'static str) -> KnownAcp {
    KnownAcp {
        name,
        argv,
        args: &[],
        env: &[],
        modes: &[],
        provider: None,
        settings: None,
        tested: "",
        install,
    }
}

/// What is known about the program of a command line, by its name: it may be given by its path.
pub fn known_acp(argv: &[String]) -> Option<&'static KnownAcp> {
    let program = argv.first()?.rsplit('/').next()?;
    KNOWN_ACP.iter().find(|known| known.argv.first() == Some(&program))
}
