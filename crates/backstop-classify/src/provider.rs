//! The providers: where each one's credential is kept and renewed.

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
