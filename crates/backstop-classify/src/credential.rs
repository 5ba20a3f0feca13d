//! Which credential was refused, whose it is, and how it is renewed.
//!
//! The provider is taken from what the caller or a rule said, else from a variable that the text
//! names, from a host in the text or in the command line, or from the program that ran. A key in a
//! variable and a login are renewed in different ways: the words of the error say which one it was,
//! and where they do not, the program does. Nothing is read from the environment here.

use crate::program::calls;
use crate::provider;
use backstop_core::{Facts, Fault, Reason, SafeText};

/// How much of the text is looked at.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// The longest host that becomes a provider's name.
const HOST_BYTES_MAX: usize = 100;

/// What is known of a refused credential. Unknown parts are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CredentialFacts {
    /// Whose it is: `github`, `anthropic`, or the host that refused it.
    pub provider: Option<String>,
    /// The variable that holds it, or a login by name.
    pub credential: Option<String>,
    /// An address, or a command in backticks.
    pub renewal: Option<String>,
}

/// What a refusal was seen in.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Context<'c> {
    /// The provider, where it is known.
    pub(crate) provider: Option<&'c str>,
    /// Whether somebody named it, and not a rule: then it does not matter which host refused.
    pub(crate) is_named: bool,
    /// The command line.
    pub(crate) command: Option<&'c str>,
    /// The lines that say so.
    pub(crate) text: &'c str,
}

/// A variable and the page where its value is made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) credential: &'static str,
    pub(crate) renewal: &'static str,
}

/// A login and the command that makes it anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Login {
    /// Programs that use it.
    programs: &'static [&'static str],
    name: &'static str,
    command: &'static str,
}

/// A provider, and how it is recognised. Its key is in [`provider`] where `key` is `None`.
struct Credentials {
    provider: &'static str,
    /// Other names of it.
    aliases: &'static [&'static str],
    key: Option<Key>,
    /// Variables that hold its keys.
    variables: &'static [&'static str],
    /// The ends of its hosts' names.
    hosts: &'static [&'static str],
    logins: &'static [Login],
    /// Programs that use its key and have no login.
    programs: &'static [&'static str],
    /// Words of its libraries' errors.
    words: &'static [&'static str],
}

const NONE: Credentials = Credentials {
    provider: "",
    aliases: &[],
    key: None,
    variables: &[],
    hosts: &[],
    logins: &[],
    programs: &[],
    words: &[],
};

const TABLE: &[Credentials] = &[
    Credentials {
        provider: "anthropic",
        aliases: &["claude", "claude-code"],
        variables: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
        hosts: &["anthropic.com", "claude.ai", "claude.com"],
        words: &[
            "anthropic.AuthenticationError",
            "anthropic.PermissionDeniedError",
            "AnthropicError",
            "x-api-key",
            "Please run /login",
        ],
        logins: &[Login {
            programs: &["claude", "claude-code"],
            name: "the login of Claude Code",
            command: "`claude /login`",
        }],
        ..NONE
    },
    Credentials {
        provider: "openai",
        aliases: &["codex"],
        variables: &["OPENAI_API_KEY", "CODEX_API_KEY"],
        hosts: &["openai.com", "chatgpt.com"],
        words: &["openai.AuthenticationError", "openai.PermissionDeniedError", "openai.OpenAIError"],
        logins: &[Login { programs: &["codex"], name: "the login of Codex", command: "`codex login`" }],
        ..NONE
    },
    Credentials {
        provider: "gemini",
        aliases: &["google"],
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        hosts: &["generativelanguage.googleapis.com", "aistudio.google.com"],
        logins: &[Login {
            programs: &["gemini"],
            name: "the login of Gemini CLI",
            command: "`gemini`, then `/auth`",
        }],
        ..NONE
    },
    Credentials {
        provider: "opencode",
        logins: &[Login {
            programs: &["opencode", "opencode-ai"],
            name: "the login of OpenCode",
            command: "`opencode auth login`",
        }],
        ..NONE
    },
    Credentials {
        provider: "cursor",
        variables: &["CURSOR_API_KEY"],
        hosts: &["cursor.com", "cursor.sh"],
        logins: &[Login {
            programs: &["cursor-agent"],
            name: "the login of Cursor",
            command: "`cursor-agent login`",
        }],
        ..NONE
    },
    Credentials {
        provider: "github",
        aliases: &["copilot"],
        variables: &["GITHUB_TOKEN", "GH_TOKEN", "GITHUB_PAT"],
        hosts: &["github.com", "githubusercontent.com", "ghcr.io"],
        logins: &[
            Login { programs: &["gh"], name: "the login of gh", command: "`gh auth login`" },
            Login {
                programs: &["copilot"],
                name: "the login of Copilot CLI",
                command: "`copilot`, then `/login`",
            },
        ],
        ..NONE
    },
    Credentials {
        provider: "gitlab",
        key: Some(Key {
            credential: "GITLAB_TOKEN",
            renewal: "https://gitlab.com/-/user_settings/personal_access_tokens",
        }),
        variables: &["GITLAB_TOKEN", "CI_JOB_TOKEN", "GL_TOKEN"],
        hosts: &["gitlab.com"],
        logins: &[Login { programs: &["glab"], name: "the login of glab", command: "`glab auth login`" }],
        ..NONE
    },
    Credentials {
        provider: "bitbucket",
        key: Some(Key {
            credential: "the app password",
            renewal: "https://bitbucket.org/account/settings/app-passwords/",
        }),
        hosts: &["bitbucket.org"],
        ..NONE
    },
    Credentials {
        provider: "npm",
        variables: &["NPM_TOKEN", "NODE_AUTH_TOKEN", "NPM_CONFIG__AUTH"],
        hosts: &["npmjs.org", "npmjs.com"],
        logins: &[
            Login { programs: &["npm", "npx"], name: "the login of npm", command: "`npm login`" },
            Login { programs: &["pnpm"], name: "the login of pnpm", command: "`pnpm login`" },
            Login { programs: &["yarn"], name: "the login of yarn", command: "`yarn npm login`" },
        ],
        ..NONE
    },
    Credentials {
        provider: "aws",
        key: Some(Key { credential: "AWS_ACCESS_KEY_ID", renewal: "https://console.aws.amazon.com/iam" }),
        variables: &["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"],
        hosts: &["amazonaws.com"],
        words: &["botocore.exceptions", "InvalidClientTokenId", "UnrecognizedClientException"],
        logins: &[Login {
            programs: &["aws", "sam", "cdk"],
            name: "the login of AWS",
            command: "`aws sso login`",
        }],
        programs: &["copilot-cli", "eksctl"],
        ..NONE
    },
    Credentials {
        provider: "gcloud",
        aliases: &["google-cloud", "gcp"],
        key: Some(Key {
            credential: "GOOGLE_APPLICATION_CREDENTIALS",
            renewal: "https://console.cloud.google.com/apis/credentials",
        }),
        variables: &["GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_AUTH_ACCESS_TOKEN"],
        hosts: &["googleapis.com", "gcr.io", "pkg.dev"],
        logins: &[Login {
            programs: &["gcloud", "gsutil", "bq"],
            name: "the login of gcloud",
            command: "`gcloud auth login`",
        }],
        ..NONE
    },
    Credentials {
        provider: "azure",
        key: Some(Key { credential: "AZURE_CLIENT_SECRET", renewal: "https://portal.azure.com" }),
        variables: &["AZURE_CLIENT_SECRET", "AZURE_CLIENT_ID", "AZURE_TENANT_ID"],
        hosts: &["azure.com", "windows.net", "azurecr.io", "microsoftonline.com"],
        logins: &[Login { programs: &["az", "azd"], name: "the login of Azure CLI", command: "`az login`" }],
        ..NONE
    },
    Credentials {
        provider: "docker",
        aliases: &["docker-hub", "dockerhub"],
        key: Some(Key {
            credential: "the access token of Docker Hub",
            renewal: "https://app.docker.com/settings/personal-access-tokens",
        }),
        variables: &["DOCKER_PASSWORD", "DOCKER_AUTH_CONFIG"],
        hosts: &["docker.io", "docker.com"],
        logins: &[
            Login { programs: &["docker"], name: "the login of docker", command: "`docker login`" },
            Login { programs: &["podman"], name: "the login of podman", command: "`podman login`" },
        ],
        ..NONE
    },
    Credentials {
        provider: "crates.io",
        key: Some(Key { credential: "CARGO_REGISTRY_TOKEN", renewal: "https://crates.io/settings/tokens" }),
        variables: &["CARGO_REGISTRY_TOKEN"],
        hosts: &["crates.io"],
        logins: &[Login { programs: &["cargo"], name: "the login of cargo", command: "`cargo login`" }],
        ..NONE
    },
    Credentials {
        provider: "pypi",
        key: Some(Key { credential: "TWINE_PASSWORD", renewal: "https://pypi.org/manage/account/token/" }),
        variables: &["TWINE_PASSWORD", "TWINE_USERNAME", "UV_PUBLISH_TOKEN", "POETRY_PYPI_TOKEN_PYPI"],
        hosts: &["pypi.org"],
        programs: &["twine"],
        ..NONE
    },
    Credentials {
        provider: "rubygems",
        key: Some(Key { credential: "GEM_HOST_API_KEY", renewal: "https://rubygems.org/profile/api_keys" }),
        variables: &["GEM_HOST_API_KEY"],
        hosts: &["rubygems.org"],
        logins: &[Login { programs: &["gem"], name: "the login of gem", command: "`gem signin`" }],
        ..NONE
    },
    Credentials {
        provider: "huggingface",
        variables: &["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"],
        hosts: &["huggingface.co"],
        logins: &[Login {
            programs: &["hf", "huggingface-cli"],
            name: "the login of Hugging Face",
            command: "`hf auth login`",
        }],
        ..NONE
    },
    Credentials {
        provider: "vercel",
        key: Some(Key { credential: "VERCEL_TOKEN", renewal: "https://vercel.com/account/settings/tokens" }),
        variables: &["VERCEL_TOKEN"],
        hosts: &["vercel.com"],
        logins: &[Login { programs: &["vercel"], name: "the login of Vercel", command: "`vercel login`" }],
        ..NONE
    },
    Credentials {
        provider: "cloudflare",
        key: Some(Key {
            credential: "CLOUDFLARE_API_TOKEN",
            renewal: "https://dash.cloudflare.com/profile/api-tokens",
        }),
        variables: &["CLOUDFLARE_API_TOKEN", "CF_API_TOKEN"],
        hosts: &["cloudflare.com"],
        logins: &[Login {
            programs: &["wrangler"],
            name: "the login of wrangler",
            command: "`wrangler login`",
        }],
        ..NONE
    },
    Credentials {
        provider: "fly",
        key: Some(Key { credential: "FLY_API_TOKEN", renewal: "https://fly.io/tokens" }),
        variables: &["FLY_API_TOKEN"],
        hosts: &["fly.io"],
        logins: &[Login {
            programs: &["fly", "flyctl"],
            name: "the login of fly",
            command: "`fly auth login`",
        }],
        ..NONE
    },
    Credentials {
        provider: "terraform",
        key: Some(Key {
            credential: "TF_TOKEN_app_terraform_io",
            renewal: "https://app.terraform.io/app/settings/tokens",
        }),
        hosts: &["terraform.io"],
        logins: &[Login {
            programs: &["terraform"],
            name: "the login of Terraform",
            command: "`terraform login`",
        }],
        ..NONE
    },
    Credentials {
        provider: "heroku",
        key: Some(Key { credential: "HEROKU_API_KEY", renewal: "https://dashboard.heroku.com/account" }),
        variables: &["HEROKU_API_KEY"],
        hosts: &["heroku.com"],
        logins: &[Login { programs: &["heroku"], name: "the login of Heroku", command: "`heroku login`" }],
        ..NONE
    },
    Credentials { provider: "mistral", variables: &["MISTRAL_API_KEY"], hosts: &["mistral.ai"], ..NONE },
    Credentials { provider: "groq", variables: &["GROQ_API_KEY"], hosts: &["groq.com"], ..NONE },
    Credentials {
        provider: "openrouter",
        variables: &["OPENROUTER_API_KEY"],
        hosts: &["openrouter.ai"],
        ..NONE
    },
    Credentials {
        provider: "cohere",
        variables: &["COHERE_API_KEY", "CO_API_KEY"],
        hosts: &["cohere.com", "cohere.ai"],
        ..NONE
    },
    Credentials { provider: "xai", variables: &["XAI_API_KEY"], hosts: &["x.ai"], ..NONE },
    Credentials { provider: "deepseek", variables: &["DEEPSEEK_API_KEY"], hosts: &["deepseek.com"], ..NONE },
    Credentials {
        provider: "replicate",
        variables: &["REPLICATE_API_TOKEN"],
        hosts: &["replicate.com"],
        ..NONE
    },
    Credentials {
        provider: "together",
        variables: &["TOGETHER_API_KEY"],
        hosts: &["together.ai", "together.xyz"],
        ..NONE
    },
    Credentials {
        provider: "fireworks",
        variables: &["FIREWORKS_API_KEY"],
        hosts: &["fireworks.ai"],
        ..NONE
    },
    Credentials { provider: "cerebras", variables: &["CEREBRAS_API_KEY"], hosts: &["cerebras.ai"], ..NONE },
    Credentials {
        provider: "perplexity",
        variables: &["PERPLEXITY_API_KEY"],
        hosts: &["perplexity.ai"],
        ..NONE
    },
    Credentials {
        provider: "moonshot",
        variables: &["MOONSHOT_API_KEY"],
        hosts: &["moonshot.ai", "moonshot.cn"],
        ..NONE
    },
];

/// Words that say that a login was used and not a key.
const LOGIN_WORDS: &[&str] = &[
    "oauth",
    "/login",
    "auth login",
    "not logged in",
    "logged out",
    "log in",
    "login",
    "sign in",
    "refresh token",
    "refreshing your",
    "reauthentication",
    "sso session",
    "session has expired",
    "session expired",
];

/// Words that say that a key was used.
const KEY_WORDS: &[&str] = &["api key", "api_key", "x-api-key", "apikey", "access key", "api-key"];

/// Words that say that the credential was known, and may not do what was asked.
const PERMISSION_WORDS: &[&str] = &[
    "accessdenied",
    "not authorized to",
    "not have permission",
    "lacks permission",
    "lacks the",
    "forbidden",
    "permission_error",
    "permissiondenied",
    "insufficient_scope",
    "insufficient permission",
    "not accessible by",
    "error: 403",
    "status 403",
    "403 client error",
];

/// Words that say that it is no longer or was never valid.
const EXPIRED_WORDS: &[&str] =
    &["expired", "revoked", "invalid", "401", "unauthorized", "unauthenticated", "need auth"];

/// What the words of a refusal and the command line say about the credential: for errors that
/// others have named already.
pub fn credential_facts(
    provider: Option<&str>,
    command: Option<&str>,
    text: &str,
) -> Option<CredentialFacts> {
    find(&Context { provider, is_named: provider.is_some(), command, text })
}

/// Adds to an `auth_error` whose credential it was, which one and how it is renewed, where the
/// classifier did not know the provider or the reason came from somebody else.
pub fn add_credential_facts(fault: &mut Fault, provider: Option<&str>, command: Option<&str>) {
    if fault.reason != Reason::AuthError {
        return;
    }
    let cited = fault.evidence.iter().map(|evidence| &evidence.text);
    let text: Vec<&str> = fault.cause.iter().chain(cited).map(SafeText::raw).collect();
    let named = fault.facts.provider.clone();
    let provider = named.as_ref().map(SafeText::raw).or(provider);
    let text = text.join("\n");
    let is_named = provider.is_some() && named.is_none();
    let Some(found) = find(&Context { provider, is_named, command, text: &text }) else { return };
    fault.facts.provider = named.or(found.provider.map(SafeText::new));
    if let Some(credential) = found.credential {
        fault.facts.credential = Some(SafeText::new(credential));
        fault.facts.renewal = found.renewal.map(SafeText::new);
    }
    if let Some(step) = next_step(&fault.facts, &text) {
        fault.suggested_action = SafeText::new(step);
    }
}

/// What to do about a refused credential; `None` where nothing is known of it.
pub(crate) fn next_step(facts: &Facts, text: &str) -> Option<String> {
    let of = facts.provider.as_ref().map(|provider| format!(" ({})", provider.raw())).unwrap_or_default();
    if lacks_permission(facts, text) {
        return match (&facts.credential, &facts.provider) {
            (Some(credential), _) => Some(format!("check what {} may do{of}", credential.raw())),
            (None, Some(provider)) => {
                Some(format!("check what the credential for {} may do", provider.raw()))
            }
            (None, None) => None,
        };
    }
    match (&facts.credential, &facts.renewal, &facts.provider) {
        (_, Some(renewal), _) if renewal.raw().starts_with('`') => {
            Some(format!("log in again with {}{of}", renewal.raw()))
        }
        (Some(credential), Some(renewal), _) => {
            Some(format!("renew {} at {}{of}", credential.raw(), renewal.raw()))
        }
        (Some(credential), None, _) => Some(format!("renew {}{of}", credential.raw())),
        (None, _, Some(provider)) => Some(format!("renew the credential for {}", provider.raw())),
        (None, _, None) => None,
    }
}

/// Whether the credential was known and may not do this: to renew it would change nothing.
fn lacks_permission(facts: &Facts, text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    (facts.status == Some(403) || says(PERMISSION_WORDS)) && !says(LOGIN_WORDS) && !says(EXPIRED_WORDS)
}

/// The key of a provider, by its name.
pub(crate) fn key_of(name: &str) -> Option<Key> {
    row_named(name).and_then(Credentials::key).or_else(|| {
        let known = provider::known(name)?;
        Some(Key { credential: known.credential, renewal: known.renewal })
    })
}

/// What is known of the refused credential; `None` where nothing names or implies a provider.
pub(crate) fn find(context: &Context<'_>) -> Option<CredentialFacts> {
    let text = &context.text[..context.text.floor_char_boundary(TEXT_BYTES_MAX)];
    let calls = context.command.map(calls).unwrap_or_default();
    let runs = |programs: &[&str]| calls.iter().any(|(name, _)| programs.contains(&name.as_str()));
    if text.contains("Permission denied (publickey") {
        return Some(ssh_key(context, text));
    }
    let command = context.command.unwrap_or_default();
    let hosts: Vec<&str> = hosts(text).chain(hosts(command)).collect();
    let by_name = || {
        by_variable(text)
            .or_else(|| TABLE.iter().find(|row| row.words.iter().any(|word| text.contains(word))))
            .or_else(|| TABLE.iter().find(|row| row.logins.iter().any(|login| login.is_named_in(text))))
    };
    let given = context.provider.and_then(row_named);
    let named = match context.provider {
        Some(_) if context.is_named => given,
        Some(_) => by_name().filter(|row| given.is_some_and(|given| given.provider == row.provider)),
        None => by_name(),
    };
    let row = named.or_else(|| match context.provider {
        Some(_) => given,
        None => {
            let by_program = || TABLE.iter().find(|row| row.runs(&runs));
            // A bare name may stand for something else, so it is looked for last.
            let by_word = || hosts.is_empty().then(|| by_provider_name(text)).flatten();
            hosts.iter().find_map(|host| by_host(host)).or_else(by_program).or_else(by_word)
        }
    });
    let Some(row) = row else {
        let key = context.provider.and_then(key_of);
        let host = hosts.first().map(|host| (*host).to_owned());
        let provider = context.provider.map(str::to_owned).or(host)?;
        return Some(CredentialFacts {
            provider: Some(provider),
            credential: key.map(|key| key.credential.to_owned()),
            renewal: key.map(|key| key.renewal.to_owned()),
        });
    };
    // Another host has refused it than those of this provider: the credential is the same, but
    // where it is renewed nobody knows.
    let is_named = context.is_named || named.is_some();
    let is_elsewhere = !is_named && !hosts.is_empty() && hosts.iter().all(|host| by_host(host).is_none());
    let other_host = hosts.first().filter(|_| is_elsewhere);
    let provider = context.provider.or(other_host.copied()).unwrap_or(row.provider);
    let provider = Some(provider.to_owned());
    let lower = text.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let variable = row.variables.iter().find(|name| names_word(text, name));
    let login = row.logins.iter().find(|login| runs(login.programs));
    let is_login = match (says(LOGIN_WORDS), variable.is_some() || says(KEY_WORDS)) {
        (true, _) => true,
        (false, true) => false,
        (false, false) => login.is_some(),
    };
    if let Some(login) = login.or(row.logins.first()).filter(|_| is_login) {
        let renewal = (!is_elsewhere).then(|| login.command.to_owned());
        return Some(CredentialFacts { provider, credential: Some(login.name.to_owned()), renewal });
    }
    let key = row.key();
    let credential = variable.map(|name| (*name).to_owned()).or(key.map(|key| key.credential.to_owned()));
    let renewal = key.filter(|_| !is_elsewhere).map(|key| key.renewal.to_owned());
    Some(CredentialFacts { provider, credential, renewal })
}

impl Login {
    /// Whether a text names the command that makes it anew: `run: gcloud auth login`.
    fn is_named_in(&self, text: &str) -> bool {
        let command = self.command.split('`').nth(1).unwrap_or_default();
        command.contains(' ') && names_word(text, command)
    }
}

impl Credentials {
    fn key(&self) -> Option<Key> {
        self.key.or_else(|| {
            let known = provider::known(self.provider)?;
            Some(Key { credential: known.credential, renewal: known.renewal })
        })
    }

    fn runs(&self, runs: &dyn Fn(&[&str]) -> bool) -> bool {
        runs(self.programs) || self.logins.iter().any(|login| runs(login.programs))
    }
}

fn row_named(name: &str) -> Option<&'static Credentials> {
    let name = name.to_ascii_lowercase();
    TABLE.iter().find(|row| row.provider == name || row.aliases.contains(&name.as_str()))
}

/// The provider that a text names: `Invalid API key for Anthropic`.
fn by_provider_name(text: &str) -> Option<&'static Credentials> {
    let lower = text.to_ascii_lowercase();
    TABLE.iter().find(|row| names_word(&lower, row.provider))
}

fn by_variable(text: &str) -> Option<&'static Credentials> {
    TABLE.iter().find(|row| row.variables.iter().any(|name| names_word(text, name)))
}

fn by_host(host: &str) -> Option<&'static Credentials> {
    let ends = |end: &&&str| {
        host.strip_suffix(**end).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    // The longest ending is the most precise one.
    let length = |row: &Credentials| row.hosts.iter().filter(|end| ends(end)).map(|end| end.len()).max();
    TABLE.iter().filter(|row| length(row).is_some()).max_by_key(|row| length(row))
}

/// An SSH key that a server refused, by the server's name: `git@github.com: Permission denied`.
fn ssh_key(context: &Context<'_>, text: &str) -> CredentialFacts {
    let line = text.lines().find(|line| line.contains("Permission denied (publickey")).unwrap_or_default();
    let before = line.split(": Permission denied").next().unwrap_or_default();
    let host = before.rsplit(['@', ' ']).next().filter(|host| is_host(host));
    let row = host.and_then(by_host);
    let provider = context.provider.or(row.map(|row| row.provider)).or(host).map(str::to_owned);
    let renewal = match row.map(|row| row.provider) {
        Some("github") => Some("https://github.com/settings/keys"),
        Some("gitlab") => Some("https://gitlab.com/-/user_settings/ssh_keys"),
        Some("bitbucket") => Some("https://bitbucket.org/account/settings/ssh-keys/"),
        _ => None,
    };
    CredentialFacts {
        provider,
        credential: Some("the SSH key".to_owned()),
        renewal: renewal.map(str::to_owned),
    }
}

/// The hosts of the addresses in a text, without their ports.
fn hosts(text: &str) -> impl Iterator<Item = &str> {
    text.split("://").skip(1).filter_map(|rest| {
        let end = rest.find(['/', ' ', '\'', '"', '`', ')', ',', '\n', '>', '?', '#', ';', ']']);
        let authority = &rest[..end.unwrap_or(rest.len())];
        let host = authority.rsplit('@').next()?.split(':').next()?.trim_end_matches('.');
        Some(host).filter(|host| is_host(host) && !is_documentation(host))
    })
}

/// Whether a host is one that errors refer to for reading, and not the one that refused.
fn is_documentation(host: &str) -> bool {
    let first = host.split('.').next().unwrap_or_default();
    ["doc", "docs", "help", "support", "developer", "developers", "wiki"].contains(&first)
}

fn is_host(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= HOST_BYTES_MAX
        && text.contains('.')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
}

/// Whether a text names this word, and not a longer one that contains it.
fn names_word(text: &str, word: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(inside) && !text[at + word.len()..].starts_with(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(provider: &'static str, command: &'static str, text: &str) -> String {
        let given = |text: &'static str| (!text.is_empty()).then_some(text);
        match credential_facts(given(provider), given(command), text) {
            None => "nothing".to_owned(),
            Some(facts) => {
                let part = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
                format!("{} | {} | {}", part(facts.provider), part(facts.credential), part(facts.renewal))
            }
        }
    }

    #[test]
    fn whose_credential_it_is_and_how_it_is_renewed() {
        const CLAUDE: &str = "anthropic | the login of Claude Code | `claude /login`";
        const ANTHROPIC: &str = "anthropic | ANTHROPIC_API_KEY | https://console.anthropic.com/settings/keys";
        const CODEX: &str = "openai | the login of Codex | `codex login`";
        const GH: &str = "github | the login of gh | `gh auth login`";
        let cases = [
            (
                "",
                "claude -p hi",
                "OAuth token has expired. Please obtain a new token · Please run /login",
                CLAUDE,
            ),
            ("anthropic", "", "authentication_error: OAuth token has been revoked", CLAUDE),
            ("", "claude -p hi", "API Error: 401", CLAUDE),
            ("anthropic", "curl https://example.org", "401 Unauthorized", ANTHROPIC),
            ("", "claude -p hi", "Invalid API key · Fix external API key", ANTHROPIC),
            ("anthropic", "", "invalid x-api-key", ANTHROPIC),
            ("", "", "AuthenticationError: set ANTHROPIC_API_KEY", ANTHROPIC),
            ("", "", "Invalid API key for Anthropic", ANTHROPIC),
            ("", "", "OAuth token has expired. Please run /login", CLAUDE),
            ("", "", "misanthropic: access denied", "nothing"),
            (
                "",
                "codex exec x",
                "unexpected status 401 Unauthorized, url: https://api.openai.com/v1/responses",
                CODEX,
            ),
            (
                "",
                "python x.py",
                "401 for https://api.openai.com/v1/responses",
                "openai | OPENAI_API_KEY | https://platform.openai.com/api-keys",
            ),
            ("", "gh pr create", "HTTP 401: Bad credentials (https://api.github.com/graphql)", GH),
            (
                "",
                "gh pr list",
                "set the GH_TOKEN environment variable",
                "github | GH_TOKEN | https://github.com/settings/tokens",
            ),
            (
                "",
                "git push",
                "fatal: Authentication failed for 'https://github.com/a/b.git/'",
                "github | GITHUB_TOKEN | https://github.com/settings/tokens",
            ),
            (
                "",
                "git push",
                "fatal: Authentication failed for 'https://git.example.com/a/b.git/'",
                "git.example.com | - | -",
            ),
            (
                "",
                "git pull",
                "git@github.com: Permission denied (publickey).",
                "github | the SSH key | https://github.com/settings/keys",
            ),
            ("", "ssh x", "me@10.0.0.7: Permission denied (publickey).", "10.0.0.7 | the SSH key | -"),
            (
                "",
                "docker push x/y",
                "denied: requested access to the resource is denied",
                "docker | the login of docker | `docker login`",
            ),
            (
                "",
                "aws s3 ls",
                "An error occurred (ExpiredToken) when calling ListBuckets",
                "aws | the login of AWS | `aws sso login`",
            ),
            (
                "",
                "gcloud run deploy",
                "Reauthentication failed. Please run: gcloud auth login",
                "gcloud | the login of gcloud | `gcloud auth login`",
            ),
            ("", "npm publish", "npm error code ENEEDAUTH", "npm | the login of npm | `npm login`"),
            ("", "gemini -p x", "", "gemini | the login of Gemini CLI | `gemini`, then `/auth`"),
            ("", "npx @anthropic-ai/claude-code -p x", "401", CLAUDE),
            ("mistral", "", "", "mistral | MISTRAL_API_KEY | https://console.mistral.ai/api-keys"),
            (
                "litellm/openai",
                "",
                "401",
                "litellm/openai | OPENAI_API_KEY | https://platform.openai.com/api-keys",
            ),
            ("acme", "", "401", "acme | - | -"),
            ("", "python x.py", "not logged in: run `gh auth login` first", GH),
            (
                "",
                "npm i x --registry http://127.0.0.1:38080/x",
                "401 Unauthorized",
                "127.0.0.1 | the login of npm | -",
            ),
            ("", "twine upload x", "401 from http://10.0.0.7/legacy/", "10.0.0.7 | TWINE_PASSWORD | -"),
            ("anthropic", "curl https://proxy.example", "401 from https://proxy.example", ANTHROPIC),
            ("", "python x.py", "anthropic.AuthenticationError: Error code: 401", ANTHROPIC),
            (
                "",
                "cargo build",
                "require a credential-provider, see https://doc.rust-lang.org/cargo/x",
                "crates.io | the login of cargo | `cargo login`",
            ),
            (
                "",
                "python x.py http://127.0.0.1:1/x",
                "anthropic.AuthenticationError: Error code: 401",
                ANTHROPIC,
            ),
            // Near misses: nothing is implied.
            ("", "psql", "FATAL: password authentication failed for user \"app\"", "nothing"),
            ("", "", "401 Unauthorized", "nothing"),
            ("", "cat claude.md", "401 Unauthorized", "nothing"),
            ("", "", "see notgithub.com and MY_GITHUB_TOKENS", "nothing"),
            ("", "curl -s https://notgithub.com/x", "401", "notgithub.com | - | -"),
        ];
        for (provider, command, text, want) in cases {
            assert_eq!(found(provider, command, text), want, "{provider} {command}: {text}");
        }
    }

    #[test]
    fn what_may_not_do_something_is_not_renewed() {
        let step = |text: &str| {
            let mut fault = Fault::new(Reason::AuthError);
            fault.cause = Some(text.into());
            add_credential_facts(&mut fault, Some("aws"), Some("aws s3 ls"));
            fault.suggested_action.raw().to_owned()
        };
        let denied = "(AccessDeniedException): User ci is not authorized to perform: s3:ListBuckets";
        assert_eq!(step(denied), "check what the login of AWS may do (aws)");
        assert_eq!(step("(ExpiredToken): the token has expired"), "log in again with `aws sso login` (aws)");
    }

    #[test]
    fn every_row_has_a_key_or_a_login_and_no_two_share_a_mark() {
        let mut marks: Vec<&str> = Vec::new();
        for row in TABLE {
            assert!(row.key().is_some() || !row.logins.is_empty(), "{}", row.provider);
            marks.extend(row.variables.iter().chain(row.hosts).copied());
            marks.extend(row.logins.iter().flat_map(|login| login.programs).chain(row.programs));
            for login in row.logins {
                assert!(login.command.starts_with('`'), "{}", login.command);
            }
        }
        let count = marks.len();
        marks.sort_unstable();
        marks.dedup();
        assert_eq!(marks.len(), count);
    }

    #[test]
    fn nothing_in_a_text_makes_it_panic() {
        for text in [
            "://",
            "://é/",
            "https://user:pw@host.example:9/x",
            "x://[::1]:3/",
            "Permission denied (publickey",
            "é: Permission denied (publickey",
        ] {
            let _ = credential_facts(None, Some(text), text);
        }
        assert_eq!(hosts("https://user:pw@host.example:9/x").collect::<Vec<_>>(), ["host.example"]);
    }
}
