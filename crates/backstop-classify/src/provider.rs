//! The providers: where each one's credential is kept and renewed, and how it is recognised: by its
//! own programs, and by the addresses of its service.

use crate::program::calls;

/// A known provider.
pub(crate) struct Known {
    pub(crate) name: &'static str,
    pub(crate) credential: &'static str,
    pub(crate) renewal: &'static str,
}

const PROVIDERS: &[Known] = &[
    Known {
        name: "anthropic",
        credential: "ANTHROPIC_API_KEY",
        renewal: "https://console.anthropic.com/settings/keys",
    },
    Known {
        name: "claude-code",
        credential: "ANTHROPIC_API_KEY",
        renewal: "https://console.anthropic.com/settings/keys",
    },
    Known { name: "openai", credential: "OPENAI_API_KEY", renewal: "https://platform.openai.com/api-keys" },
    Known { name: "codex", credential: "OPENAI_API_KEY", renewal: "https://platform.openai.com/api-keys" },
    Known { name: "gemini", credential: "GEMINI_API_KEY", renewal: "https://aistudio.google.com/apikey" },
    Known {
        name: "vertex",
        credential: "GOOGLE_APPLICATION_CREDENTIALS",
        renewal: "https://console.cloud.google.com/apis/credentials",
    },
    Known { name: "azure", credential: "AZURE_OPENAI_API_KEY", renewal: "https://portal.azure.com" },
    Known { name: "bedrock", credential: "AWS_ACCESS_KEY_ID", renewal: "https://console.aws.amazon.com/iam" },
    Known { name: "mistral", credential: "MISTRAL_API_KEY", renewal: "https://console.mistral.ai/api-keys" },
    Known { name: "groq", credential: "GROQ_API_KEY", renewal: "https://console.groq.com/keys" },
    Known {
        name: "openrouter",
        credential: "OPENROUTER_API_KEY",
        renewal: "https://openrouter.ai/settings/keys",
    },
    Known { name: "cohere", credential: "COHERE_API_KEY", renewal: "https://dashboard.cohere.com/api-keys" },
    Known { name: "xai", credential: "XAI_API_KEY", renewal: "https://console.x.ai" },
    Known {
        name: "deepseek",
        credential: "DEEPSEEK_API_KEY",
        renewal: "https://platform.deepseek.com/api_keys",
    },
    Known { name: "huggingface", credential: "HF_TOKEN", renewal: "https://huggingface.co/settings/tokens" },
    Known {
        name: "replicate",
        credential: "REPLICATE_API_TOKEN",
        renewal: "https://replicate.com/account/api-tokens",
    },
    Known {
        name: "together",
        credential: "TOGETHER_API_KEY",
        renewal: "https://api.together.ai/settings/api-keys",
    },
    Known {
        name: "fireworks",
        credential: "FIREWORKS_API_KEY",
        renewal: "https://fireworks.ai/account/api-keys",
    },
    Known { name: "cerebras", credential: "CEREBRAS_API_KEY", renewal: "https://cloud.cerebras.ai" },
    Known {
        name: "perplexity",
        credential: "PERPLEXITY_API_KEY",
        renewal: "https://www.perplexity.ai/settings/api",
    },
    Known {
        name: "moonshot",
        credential: "MOONSHOT_API_KEY",
        renewal: "https://platform.moonshot.ai/console/api-keys",
    },
    Known { name: "github", credential: "GITHUB_TOKEN", renewal: "https://github.com/settings/tokens" },
    Known { name: "npm", credential: "NPM_TOKEN", renewal: "`npm login`" },
];

/// The provider of this name; `openai-responses` and `litellm/openai` are OpenAI too.
pub(crate) fn known(name: &str) -> Option<&'static Known> {
    let name = name.to_ascii_lowercase();
    PROVIDERS.iter().find(|p| p.name == name).or_else(|| {
        let parts: Vec<&str> = name.split(['/', '-', ' ', '_']).collect();
        PROVIDERS.iter().find(|p| parts.contains(&p.name))
    })
}

/// Programs that are a provider's own client. Where words are given, one of them must be the first
/// argument: the rest of what the program does is local.
const CLIENTS: &[(&str, &str, &[&str])] = &[
    ("claude", "anthropic", &[]),
    ("codex", "openai", &[]),
    ("gemini", "gemini", &[]),
    ("gh", "github", &[]),
    ("copilot", "copilot", &[]),
    ("cursor-agent", "cursor", &[]),
    ("qwen", "qwen", &[]),
    ("kimi", "moonshot", &[]),
    ("amp", "amp", &[]),
    ("droid", "factory", &[]),
    ("opencode", "opencode", &[]),
    ("npm", "npm", &["install", "i", "ci", "add", "update", "publish", "view", "audit", "outdated", "login"]),
    ("pnpm", "npm", &["install", "i", "add", "update", "publish"]),
    ("yarn", "npm", &["install", "add", "up", "upgrade"]),
    ("pip", "pypi", &["install", "download"]),
    ("pip3", "pypi", &["install", "download"]),
    ("twine", "pypi", &["upload"]),
    ("docker", "docker", &["pull", "push", "build", "login"]),
    ("cargo", "crates-io", &["publish", "search", "owner", "yank"]),
    ("aws", "aws", &[]),
    ("gcloud", "gcp", &[]),
    ("hf", "huggingface", &[]),
    ("huggingface-cli", "huggingface", &[]),
    ("vercel", "vercel", &[]),
    ("heroku", "heroku", &[]),
    ("glab", "gitlab", &[]),
];

/// First arguments with which a provider's program only does something on this machine, or only
/// looks after its own login: no model is asked, so that no rate limit of models is waited for.
const LOCAL_COMMANDS: &[(&str, &[&str])] = &[
    (
        "claude",
        &[
            "mcp",
            "config",
            "doctor",
            "update",
            "upgrade",
            "install",
            "plugin",
            "plugins",
            "setup-token",
            "auth",
        ],
    ),
    (
        "codex",
        &["login", "logout", "mcp", "completion", "features", "sandbox", "debug", "app", "update", "plugin"],
    ),
    ("gemini", &["mcp", "extensions", "skills", "hooks"]),
    ("qwen", &["mcp", "extensions", "auth"]),
    ("gh", &["auth", "config", "completion", "alias", "extension", "extensions", "ext"]),
    ("copilot", &["login", "logout", "mcp", "plugin", "update"]),
    ("cursor-agent", &["login", "logout", "status", "whoami", "mcp", "update", "about", "models"]),
    ("kimi", &["login", "logout", "mcp", "info"]),
    ("amp", &["login", "logout", "mcp", "update", "skill", "permissions", "doctor"]),
    ("droid", &["mcp", "plugin", "update"]),
    ("opencode", &["auth", "mcp", "upgrade", "uninstall", "models", "stats", "session", "export", "import"]),
    ("hf", &["auth", "cache", "env", "version"]),
    ("aws", &["configure", "help"]),
    ("gcloud", &["config", "info", "components", "help"]),
    ("vercel", &["login", "logout", "help"]),
    ("heroku", &["login", "logout", "autocomplete", "plugins"]),
    ("glab", &["auth", "config", "completion", "alias"]),
];
/// First arguments that only tell about the program itself, whichever it is.
const TELLING: &[&str] = &["-h", "-v", "-V", "help", "version", "--version", "--help"];

/// Whether a provider's program is asked about itself, or does something on this machine only.
fn is_local(program: &str, words: &[String]) -> bool {
    let is_first = |known: &[&str]| words.first().is_some_and(|word| known.contains(&word.as_str()));
    let is_help = words.iter().take_while(|word| *word != "--").any(|word| word == "--help");
    let own = LOCAL_COMMANDS.iter().find(|(name, _)| *name == program);
    is_help || is_first(TELLING) || own.is_some_and(|(_, known)| is_first(known))
}

/// Hosts of providers' services.
const HOSTS: &[(&str, &str)] = &[
    ("api.anthropic.com", "anthropic"),
    ("api.openai.com", "openai"),
    ("chatgpt.com/backend-api", "openai"),
    ("generativelanguage.googleapis.com", "gemini"),
    ("cloudcode-pa.googleapis.com", "gemini"),
    ("aiplatform.googleapis.com", "vertex"),
    ("openai.azure.com", "azure"),
    ("bedrock-runtime.", "bedrock"),
    ("api.mistral.ai", "mistral"),
    ("api.groq.com", "groq"),
    ("openrouter.ai/api", "openrouter"),
    ("api.cohere.com", "cohere"),
    ("api.x.ai", "xai"),
    ("api.deepseek.com", "deepseek"),
    ("huggingface.co", "huggingface"),
    ("api.replicate.com", "replicate"),
    ("api.together.xyz", "together"),
    ("api.fireworks.ai", "fireworks"),
    ("api.cerebras.ai", "cerebras"),
    ("api.perplexity.ai", "perplexity"),
    ("api.moonshot.ai", "moonshot"),
    ("api.github.com", "github"),
    ("registry.npmjs.org", "npm"),
    ("pypi.org", "pypi"),
    ("registry-1.docker.io", "docker"),
    ("crates.io", "crates-io"),
    ("gitlab.com", "gitlab"),
    ("api.vercel.com", "vercel"),
];

/// Names of exceptions and pages by which a provider's own library is recognised in a text.
const LIBRARIES: &[(&str, &str)] = &[
    ("openai.RateLimitError", "openai"),
    ("openai.APIStatusError", "openai"),
    ("com.openai.errors", "openai"),
    ("OpenAIException", "openai"),
    ("platform.openai.com/", "openai"),
    ("anthropic.RateLimitError", "anthropic"),
    ("anthropic.APIStatusError", "anthropic"),
    ("AnthropicException", "anthropic"),
    ("google.genai.errors", "gemini"),
    ("groq.RateLimitError", "groq"),
    ("console.groq.com/", "groq"),
    ("mistralai.models", "mistral"),
    ("cohere.errors", "cohere"),
];

/// Wordings that only one provider's agent has, and the shape of only one provider's error body. A
/// sentence that anybody could print is none.
const WORDINGS: &[(&str, &str)] = &[
    ("Claude AI usage limit reached|", "anthropic"),
    ("hit your session limit · resets", "anthropic"),
    ("hit your weekly limit · resets", "anthropic"),
    ("hit your Opus limit · resets", "anthropic"),
    ("hit your Sonnet limit · resets", "anthropic"),
    ("5-hour limit reached ∙ resets", "anthropic"),
    ("\"type\":\"error\",\"error\":{\"type\":\"", "anthropic"),
    ("\"type\": \"error\", \"error\": {\"type\": \"", "anthropic"),
    ("'type': 'error', 'error': {'type': '", "anthropic"),
];

/// The provider whose own library or agent wrote a text, or whose error body stands in it.
pub(crate) fn provider_of_library(text: &str) -> Option<&'static str> {
    let by_library = LIBRARIES.iter().find(|(name, _)| text.contains(name));
    // A test that expects the sentence, or a text that cites it, is no agent.
    let is_cited = |at: usize, wording: &str| {
        !wording.starts_with(['"', '\'']) && text[..at].contains(['"', '`', '“', '«'])
    };
    let by_wording =
        || WORDINGS.iter().find(|(wording, _)| text.find(wording).is_some_and(|at| !is_cited(at, wording)));
    by_library.or_else(by_wording).map(|(_, provider)| *provider)
}

/// The provider behind the name of a program or an agent: `anthropic` for `claude`.
pub fn provider_of_name(name: &str) -> Option<&'static str> {
    let is_agent = |program: &&(&str, &str, &[&str])| program.0 == name && program.2.is_empty();
    let by_program = CLIENTS.iter().find(is_agent).map(|(_, provider, _)| *provider);
    by_program.or_else(|| (name == "claude-code").then_some("anthropic"))
}

/// The names of all known agents.
pub fn agent_names() -> impl Iterator<Item = &'static str> {
    CLIENTS.iter().filter(|(_, _, first)| first.is_empty()).map(|(name, ..)| *name)
}

/// The names of all known providers.
pub fn provider_names() -> impl Iterator<Item = &'static str> {
    let keyed = PROVIDERS.iter().map(|known| known.name);
    let by_client = CLIENTS.iter().map(|(_, provider, _)| *provider);
    keyed.chain(by_client).chain(HOSTS.iter().map(|(_, provider)| *provider))
}

/// The provider whose client a command line runs, or whose service it calls: `claude -p …`,
/// `curl https://api.anthropic.com/…`.
pub fn provider_of_command(command: &str) -> Option<&'static str> {
    let calls = calls(command);
    let by_program = calls.iter().find_map(|(program, words)| {
        let (_, provider, first) = CLIENTS.iter().find(|(name, ..)| name == program)?;
        let fits = first.is_empty() || words.iter().any(|word| first.contains(&word.as_str()));
        (fits && !is_local(program, words)).then_some(*provider)
    });
    // An address counts where it is called, and not where a text mentions it.
    let is_address = |word: &&String| word.starts_with("https://") || word.starts_with("http://");
    by_program.or_else(|| {
        calls.iter().flat_map(|(_, words)| words).filter(is_address).find_map(|word| provider_of_text(word))
    })
}

/// The provider whose address stands in a text.
pub(crate) fn provider_of_text(text: &str) -> Option<&'static str> {
    HOSTS
        .iter()
        .find(|(host, _)| {
            text.match_indices(host).any(|(at, _)| {
                // `notapi.openai.com` is somebody else's.
                let before = text[..at].chars().next_back();
                before.is_none_or(|c| !(c.is_ascii_alphanumeric() || c == '-'))
                    || host.starts_with("openai.azure")
            })
        })
        .map(|(_, provider)| *provider)
}

/// Variables in which a provider's credential may be kept, in the order in which its clients look.
const VARIABLES: &[(&str, &[&str])] = &[
    ("anthropic", &["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"]),
    ("github", &["GH_TOKEN", "GITHUB_TOKEN"]),
    ("gemini", &["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
    ("openai", &["CODEX_API_KEY", "OPENAI_API_KEY"]),
    ("huggingface", &["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"]),
    ("npm", &["NPM_TOKEN", "NODE_AUTH_TOKEN"]),
];

/// The variables in which a provider's credential may be kept; the first that is set counts.
pub fn credential_variables(provider: &str) -> Vec<&'static str> {
    match VARIABLES.iter().find(|(name, _)| *name == provider) {
        Some((_, variables)) => variables.to_vec(),
        None => known(provider).map(|known| known.credential).into_iter().collect(),
    }
}

/// The model that a command line asks for: `--model opus`, `-m gpt-5`.
pub fn model_of_command(command: &str) -> Option<String> {
    calls(command).into_iter().find_map(|(program, words)| {
        CLIENTS.iter().find(|(name, ..)| *name == program)?;
        model_of_words(&words)
    })
}

/// The model that the arguments of an agent ask for.
pub fn model_of_words(words: &[String]) -> Option<String> {
    let joined = words.iter().find_map(|word| word.strip_prefix("--model="));
    let after = || words.iter().skip_while(|word| !matches!(word.as_str(), "--model" | "-m")).nth(1);
    let model = joined.map(str::to_owned).or_else(|| after().cloned())?;
    (!model.is_empty() && model.len() <= MODEL_BYTES_MAX).then_some(model)
}

/// The longest name of a model.
const MODEL_BYTES_MAX: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wording_that_is_cited_is_not_that_of_its_agent() {
        let own = "You've hit your weekly limit · resets Nov 25, 8am (UTC)";
        assert_eq!(provider_of_library(own), Some("anthropic"));
        assert_eq!(provider_of_library(&format!("Error: {own}")), Some("anthropic"));
        let body = r#"429 {"type":"error","error":{"type":"rate_limit_error"}}"#;
        assert_eq!(provider_of_library(body), Some("anthropic"));
        for cited in [format!("E  AssertionError: assert \"{own}\" == text"), format!("expected `{own}`")] {
            assert_eq!(provider_of_library(&cited), None, "{cited}");
        }
    }

    #[test]
    fn a_provider_is_known_by_program_and_by_host() {
        for (command, want) in [
            ("claude -p hi", Some("anthropic")),
            ("timeout 10 codex exec 'fix it'", Some("openai")),
            ("sh -c 'gemini -p x'", Some("gemini")),
            ("gh api /user", Some("github")),
            ("npm ci", Some("npm")),
            ("npm test", None),
            ("curl -s https://api.anthropic.com/v1/messages", Some("anthropic")),
            ("curl https://notapi.openai.com/", None),
            ("cat claude.log", None),
            ("echo 'see https://api.anthropic.com/v1'", None),
            ("make", None),
            ("claude --version", None),
            ("claude mcp list", None),
            ("claude -p 'mcp list'", Some("anthropic")),
            ("claude -p login", Some("anthropic")),
            ("codex login", None),
            ("codex exec --help", None),
            ("gh auth status", None),
            ("gh pr list", Some("github")),
        ] {
            assert_eq!(provider_of_command(command), want, "{command}");
        }
        assert_eq!(model_of_command("claude --model opus -p x").as_deref(), Some("opus"));
        assert_eq!(model_of_command("codex exec --model=gpt-5 x").as_deref(), Some("gpt-5"));
        assert_eq!(model_of_command("claude -p x"), None);
    }

    #[test]
    fn an_agent_stands_for_its_provider() {
        assert_eq!(provider_of_name("claude"), Some("anthropic"));
        assert_eq!(provider_of_name("codex"), Some("openai"));
        assert_eq!(provider_of_name("docker"), None);
        assert!(
            ["anthropic", "github", "copilot", "vertex"]
                .iter()
                .all(|name| provider_names().any(|n| n == *name))
        );
    }

    #[test]
    fn a_provider_is_known_by_wordings_that_only_its_agent_has() {
        for (text, want) in [
            ("Claude AI usage limit reached|1760000000", Some("anthropic")),
            (
                "API Error: 429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"}}",
                Some("anthropic"),
            ),
            ("You've hit your session limit · resets 4pm (UTC)", Some("anthropic")),
            ("anthropic said: rate limit exceeded, try again in 20 minutes", None),
            ("Rate limit reached. Please try again in 2s.", None),
            ("{\"error\":{\"type\":\"rate_limit_error\"}}", None),
        ] {
            assert_eq!(provider_of_library(text), want, "{text}");
        }
    }
}
