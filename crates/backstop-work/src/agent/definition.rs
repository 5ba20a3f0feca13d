//! What an agent is: a command line with places to fill in.
//!
//! Placeholders are filled in argument by argument; nothing goes through a shell, and what is
//! filled in is not looked at again.

use super::agent_error::AgentError;
use super::places::Places;
use backstop_core::Reason;
use serde::Deserialize;
use std::ffi::OsString;

/// How many arguments a command line may have.
pub(super) const ARGUMENTS_MAX: usize = 256;
/// How long an argument may be.
pub(super) const ARGUMENT_BYTES_MAX: usize = 64 << 10;

/// What may stand in a command line: its name, and what it becomes.
pub const PLACEHOLDERS: &[(&str, &str)] = &[
    ("prompt_file", "the file with the prompt; without it, the prompt comes on standard input"),
    ("result_file", "the file that the result is to be written to"),
    ("result_folder", "the folder of that file, which holds nothing else"),
    ("last_message_file", "a file for the agent's last message"),
    ("schema_file", "a file with the JSON schema of a result"),
    ("schema", "the JSON schema of a result"),
    ("folder", "the folder that it works in"),
    ("model", "the model; without it, the model follows the model flag"),
    ("options", "an argument of its own: the model and further arguments go here, else at the end"),
    ("resume", "an argument of its own: the words that continue a session go here, where one is continued"),
    ("session", "the id of the session: the one that is continued, else a new one of our own"),
    ("usage_file", "a file for the tokens that the agent used"),
    ("settings_file", "a file with settings for this agent alone"),
];

/// How an agent continues a session of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resume {
    /// The words that say so; `{session}` is the session's id.
    pub words: &'static [&'static str],
    /// What it prints where it knows no such session.
    pub refused: &'static [&'static str],
    /// Whether it finds a session only in the folder in which that was begun.
    pub same_folder: bool,
    /// Whether it loses a session that is continued in the minute in which it was begun.
    pub later_minute: bool,
}

/// How an agent takes its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptBy {
    /// On standard input.
    Stdin,
    /// From a file that an argument names.
    File,
}

/// In which dialect an agent answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum OutputDialect {
    /// claude's `stream-json` or `json`.
    #[serde(rename = "claude-json")]
    ClaudeJson,
    /// codex's events.
    #[serde(rename = "codex-jsonl")]
    CodexJsonl,
    /// opencode's events.
    #[serde(rename = "opencode-jsonl")]
    OpencodeJsonl,
    /// Gemini CLI's `stream-json`.
    #[serde(rename = "gemini-jsonl")]
    GeminiJsonl,
    /// Copilot CLI's events.
    #[serde(rename = "copilot-jsonl")]
    CopilotJsonl,
    /// Qwen Code's `stream-json`.
    #[serde(rename = "qwen-json")]
    QwenJson,
    /// The Agent Client Protocol: it is talked to while it runs.
    #[serde(skip)]
    Acp,
    /// Plain text.
    #[default]
    #[serde(rename = "text")]
    Text,
}

/// An agent that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Its command line, with [`PLACEHOLDERS`] in braces.
    pub argv: Vec<String>,
    /// How it takes its prompt.
    pub prompt: PromptBy,
    /// The flag that a model's name follows.
    pub model_flag: Option<String>,
    /// Further arguments, as they are.
    pub options: Vec<String>,
    /// In which dialect it answers.
    pub output: OutputDialect,
    /// Variables for it alone.
    pub env: Vec<(String, String)>,
    /// Whose models it uses, where it is known: `anthropic`, `openai`.
    pub provider: Option<String>,
    /// How it continues a session; nothing where it has none.
    pub resume: Option<Resume>,
    /// What its own exit codes mean.
    pub exit_codes: &'static [(i32, Reason)],
    /// Settings for it alone, as the text of a file that `{settings_file}` names.
    pub settings: Option<&'static str>,
    /// How it is talked to, where it speaks the Agent Client Protocol.
    pub acp: Option<AcpOptions>,
}

/// How an agent of the Agent Client Protocol is talked to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AcpOptions {
    /// The mode that it is to work in. Without one, the mode that asks least and still asks for
    /// what is outside of its folder.
    pub mode: Option<String>,
}

/// What else may be said about an agent of one's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemplateOptions {
    /// In which dialect it answers.
    pub output: OutputDialect,
    /// The flag that a model's name follows.
    pub model_flag: Option<String>,
    /// Variables for it alone.
    pub env: Vec<(String, String)>,
    /// Whose models it uses.
    pub provider: Option<String>,
}

/// An agent of one's own. It takes its prompt from the file that `{prompt_file}` names, else on
/// standard input.
pub fn from_template(name: &str, argv: Vec<String>, options: TemplateOptions) -> Result<Agent, AgentError> {
    let by_file = argv.iter().any(|a| a.contains("{prompt_file}"));
    let agent = Agent {
        name: name.to_owned(),
        argv,
        prompt: if by_file { PromptBy::File } else { PromptBy::Stdin },
        model_flag: options.model_flag,
        options: Vec::new(),
        output: options.output,
        env: options.env,
        provider: options.provider,
        resume: None,
        exit_codes: &[],
        settings: None,
        acp: None,
    };
    agent.check()?;
    Ok(agent)
}

impl Resume {
    fn line(self, session: &str) -> impl Iterator<Item = OsString> {
        self.words.iter().map(move |word| word.replace("{session}", session).into())
    }
}

/// A piece of an argument.
enum Piece<'a> {
    Text(&'a str),
    Placeholder(&'a str),
}

/// The pieces of an argument. Braces around anything but a lower-case word are text.
fn pieces(argument: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let (mut from, mut look) = (0, 0);
    while let Some(open) = argument[look..].find('{').map(|n| look + n) {
        let inside = &argument[open + 1..];
        let word =
            inside.len() - inside.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '_').len();
        look = open + 1;
        if word > 0 && inside[word..].starts_with('}') {
            found.push(Piece::Text(&argument[from..open]));
            found.push(Piece::Placeholder(&inside[..word]));
            from = open + word + 2;
            look = from;
        }
    }
    found.push(Piece::Text(&argument[from..]));
    found
}

impl Agent {
    /// The same agent with further arguments, as they are.
    pub fn with_options(mut self, options: impl IntoIterator<Item = String>) -> Self {
        self.options.extend(options);
        self
    }

    /// Whether it can be run as it is described.
    pub fn check(&self) -> Result<(), AgentError> {
        let agent = || self.name.clone();
        if self.argv.first().is_none_or(|program| program.trim().is_empty() || program == "{options}") {
            return Err(AgentError::Empty { agent: agent() });
        }
        let all = || self.argv.iter().chain(&self.options);
        if all().count() > ARGUMENTS_MAX || all().any(|a| a.len() > ARGUMENT_BYTES_MAX) {
            return Err(AgentError::TooLong { agent: agent() });
        }
        if all().any(|a| a.contains('\0')) {
            return Err(AgentError::Unpassable { agent: agent(), what: "an argument".to_owned() });
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                let what = format!("variable `{}`", name.escape_debug());
                return Err(AgentError::Unpassable { agent: agent(), what });
            }
        }
        for piece in self.argv.iter().flat_map(|a| pieces(a)) {
            if let Piece::Placeholder(name) = piece
                && !PLACEHOLDERS.iter().any(|(known, _)| *known == name)
            {
                return Err(AgentError::UnknownPlaceholder { agent: agent(), placeholder: name.to_owned() });
            }
        }
        Ok(())
    }

    /// Whether its command line has this placeholder.
    pub(super) fn mentions(&self, placeholder: &str) -> bool {
        let is = |p: &Piece<'_>| matches!(p, Piece::Placeholder(name) if *name == placeholder);
        self.argv.iter().any(|a| pieces(a).iter().any(is))
    }

    /// The command line, filled in.
    pub(super) fn command_line(
        &self,
        model: Option<&str>,
        session: Option<&str>,
        places: &Places,
    ) -> Result<Vec<OsString>, AgentError> {
        self.check()?;
        let agent = || self.name.clone();
        let mut options: Vec<OsString> = Vec::new();
        match (model, &self.model_flag) {
            (None, _) if self.mentions("model") => return Err(AgentError::NeedsModel { agent: agent() }),
            (Some(_), _) if self.mentions("model") => {}
            (Some(model), Some(flag)) => options.extend([flag.into(), model.into()]),
            // It is told its model in the conversation.
            (Some(_), None) if self.acp.is_some() => {}
            (Some(_), None) => return Err(AgentError::TakesNoModel { agent: agent() }),
            (None, _) => {}
        }
        options.extend(self.options.iter().map(OsString::from));
        let mut line: Vec<OsString> = Vec::new();
        for argument in &self.argv {
            if argument == "{options}" {
                line.append(&mut options);
                continue;
            }
            if argument == "{resume}" {
                let words = self.resume.zip(session).map(|(resume, id)| resume.line(id));
                line.extend(words.into_iter().flatten());
                continue;
            }
            if argument == "{session}" {
                line.push(session.map_or_else(|| places.new_session(), str::to_owned).into());
                continue;
            }
            line.push(filled(argument, model, places));
        }
        line.append(&mut options);
        Ok(line)
    }

    /// The variables for it alone, filled in.
    pub(super) fn variables(&self, places: &Places) -> impl Iterator<Item = (String, String)> {
        let value = |value: &String| filled(value, None, places).to_string_lossy().into_owned();
        self.env.iter().map(move |(name, text)| (name.clone(), value(text)))
    }
}

/// A text with its placeholders filled in.
fn filled(text: &str, model: Option<&str>, places: &Places) -> OsString {
    let mut filled = OsString::new();
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => filled.push(text),
            Piece::Placeholder("model") => filled.push(model.unwrap_or_default()),
            Piece::Placeholder(name) => filled.push(places.filled(name)),
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::builtin;
    use std::path::Path;

    fn shown(agent: &Agent, model: Option<&str>) -> Vec<String> {
        let places = Places::new(Path::new("S"), Path::new("F"));
        let line = agent.command_line(model, None, &places).unwrap();
        line.iter().map(|a| a.to_string_lossy().into_owned()).collect()
    }

    fn template(argv: &[&str]) -> Result<Agent, AgentError> {
        from_template("mine", argv.iter().map(|a| (*a).to_owned()).collect(), TemplateOptions::default())
    }

    #[test]
    fn places_are_filled_in_and_a_model_goes_where_options_go() {
        let codex = builtin("codex").unwrap().with_options(["-c".to_owned(), "a={b}".to_owned()]);
        let line = shown(&codex, Some("gpt-{folder}"));
        assert_eq!(
            &line[line.len() - 7..],
            ["-o", "S/last-message.txt", "--model", "gpt-{folder}", "-c", "a={b}", "-"]
        );
        let mine =
            template(&["mine", "--in={prompt_file}", "{\"json\": {folder}}", "{Model}", "-m", "{model}"])
                .unwrap();
        assert_eq!(mine.prompt, PromptBy::File);
        assert_eq!(
            shown(&mine, Some("m")),
            ["mine", "--in=S/prompt.md", "{\"json\": F}", "{Model}", "-m", "m"]
        );
    }

    #[test]
    fn a_session_is_continued_by_its_id_and_the_prompt_stays_last() {
        let places = Places::new(Path::new("S"), Path::new("F"));
        for (name, want) in [
            ("claude", &["--resume", "s-1", "--model", "m"][..]),
            ("codex", &["--model", "m", "resume", "s-1", "-"]),
            ("opencode", &["--session", "s-1", "--model", "m"]),
        ] {
            let agent = builtin(name).unwrap();
            let line = agent.command_line(Some("m"), Some("s-1"), &places).unwrap();
            assert_eq!(
                line[line.len() - want.len()..],
                want.iter().map(OsString::from).collect::<Vec<_>>()[..]
            );
            let without = agent.command_line(Some("m"), None, &places).unwrap();
            assert!(!without.iter().any(|word| word.to_string_lossy().contains("resume")), "{without:?}");
        }
    }

    #[test]
    fn what_cannot_be_run_is_named_with_a_way_out() {
        let long = "x".repeat(ARGUMENT_BYTES_MAX + 1);
        let cases: &[(&[&str], &str, &str)] = &[
            (&[], "has no command line", "a program"),
            (&[""], "has no command line", "a program"),
            (&["a", "{prompt_fil}"], "no placeholder `{prompt_fil}`", "did you mean `{prompt_file}`?"),
            (&["a", "{zzzzzzzzzz}"], "no placeholder", "there are {prompt_file}"),
            (&["a", "x\0y"], "an argument holds a NUL", "NUL"),
            (&["a", &long], "more than 256 arguments", "a file"),
        ];
        for (argv, message, hint) in cases {
            let error = template(argv).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
            assert!(error.hint().contains(hint), "{}", error.hint());
        }
        let places = Places::new(Path::new("S"), Path::new("F"));
        let needs = template(&["a", "{model}"]).unwrap().command_line(None, None, &places).unwrap_err();
        assert!(matches!(needs, AgentError::NeedsModel { .. }));
        let takes_none = template(&["a"]).unwrap().command_line(Some("m"), None, &places).unwrap_err();
        assert!(matches!(takes_none, AgentError::TakesNoModel { .. }));
        let env = TemplateOptions { env: vec![("A=B".to_owned(), String::new())], ..Default::default() };
        assert!(from_template("mine", vec!["a".to_owned()], env).is_err());
    }
}
