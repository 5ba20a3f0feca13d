//! Which secrets are known by their values: those in environment variables and in the credential
//! files of programs that agents use.

use backstop_config::Config;
use backstop_core::{MASK, Redactor};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Words in a variable's name that say that its value is a secret.
const WORDS: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "CREDENTIAL",
    "PASSPHRASE",
    "SSHPASS",
    "CONNECTION_STRING",
    "WEBHOOK",
];
/// Last words of a variable's name that say so: `DB_PASS`, `TF_VAR_db_pw`, `PW2`.
const LAST_WORDS: &[&str] = &[
    "PASS", "PW", "PWD", "PAT", "AUTH", "JWT", "COOKIE", "CREDS", "CRED", "DSN", "BEARER", "PASSCODE",
    "MNEMONIC",
];
/// Last words that say so of a value that looks random: `DESKTOP_SESSION` is a setting.
const LAST_WORDS_OF_RANDOM: &[&str] =
    &["ACCESS", "PRIVATE", "SESSION", "SALT", "PEPPER", "SEED", "OTP", "SID", "SIGNATURE"];
/// What a last word ends in without a sign before it: `PGPASS`, `DBPW`.
const JOINED: &[&str] = &["PASS", "PW"];
/// Words that end so and are others.
const NO_SECRETS: &[&str] = &["OLDPWD", "BYPASS", "COMPASS", "SURPASS"];
/// Values that are settings, under whatever name.
const SETTINGS: &[&str] = &["enabled", "disabled", "always", "default", "manual", "required", "optional"];
/// A shorter value is a setting.
const SECRET_BYTES_MIN: usize = 6;

/// Whether a variable of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let last = last_word(&name);
    let is_other = matches!(name.as_str(), "PWD" | "OLDPWD") || NO_SECRETS.contains(&last);
    WORDS.iter().any(|word| name.contains(word))
        || (!is_other && (LAST_WORDS.contains(&last) || JOINED.iter().any(|end| last.ends_with(end))))
}

/// Whether a variable of this name and value holds a secret, though the name says little.
fn is_random_secret(name: &str, value: &str) -> bool {
    const BYTES_MIN: usize = 10;
    let has = |accept: fn(&u8) -> bool| value.as_bytes().iter().any(accept);
    LAST_WORDS_OF_RANDOM.contains(&last_word(&name.to_ascii_uppercase()))
        && value.len() >= BYTES_MIN
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && !value.contains([' ', '/', ':', '\\'])
}

/// The last word of a variable's name, without a number behind it.
fn last_word(name: &str) -> &str {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_');
    name.rsplit(['_', '-', '.']).next().unwrap_or(name)
}

/// The secrets among these variables, and the values of those that are `named`, whatever they are
/// called.
pub fn secrets_in(variables: &[(String, String)], named: &[String]) -> Vec<String> {
    // The path of a file or a short word under such a name is a setting, not a secret.
    let is_setting = |value: &str| {
        value.len() < SECRET_BYTES_MIN
            || SETTINGS.contains(&value.to_ascii_lowercase().as_str())
            || (value.starts_with('/') && Path::new(value).exists())
    };
    let by_name = variables.iter().filter(|(name, value)| {
        (is_secret_name(name) || is_random_secret(name, value)) && !is_setting(value)
    });
    let asked_for = variables.iter().filter(|(name, _)| named.contains(name));
    // `DATABASE_URL=postgres://app:secret@db/x` holds one whatever it is called.
    let shapes = Redactor::default();
    let in_addresses = variables.iter().filter(|(_, value)| value.contains("://"));
    let in_addresses = in_addresses.flat_map(|(_, value)| shapes.secrets_of(value));
    by_name.chain(asked_for).map(|(_, value)| value.clone()).chain(in_addresses).collect()
}

/// Masks the secrets among these variables, those that are `named`, those that are `known`, and
/// those in the credential files below a home folder. The files are read when something is first
/// redacted.
pub fn redactor(
    variables: Vec<(String, String)>,
    named: Vec<String>,
    known: Vec<String>,
    home: Option<PathBuf>,
) -> Redactor {
    Redactor::reading(move || {
        let mut secrets = secrets_in(&variables, &named);
        secrets.extend(known.iter().cloned());
        secrets.extend(home.iter().flat_map(|home| in_credential_files(home)));
        secrets
    })
}

/// A longer credential file is not read.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// The credential files of programs that agents use, below the home folder.
const FILES: &[&str] = &[
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".qwen/oauth_creds.json",
    ".local/share/opencode/auth.json",
    ".config/github-copilot/apps.json",
    ".config/github-copilot/hosts.json",
    ".config/gh/hosts.yml",
    ".config/glab-cli/config.yml",
    ".config/gcloud/application_default_credentials.json",
    ".config/hub",
    ".git-credentials",
    ".netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".aws/credentials",
    ".docker/config.json",
    ".kube/config",
    ".terraform.d/credentials.tfrc.json",
    ".my.cnf",
];

/// Files that hold a token and nothing else.
const TOKEN_FILES: &[&str] = &[".vault-token", ".cache/huggingface/token", ".huggingface/token"];

fn in_credential_files(home: &Path) -> Vec<String> {
    let shapes = Redactor::default();
    let mut secrets: Vec<String> = FILES
        .iter()
        .filter_map(|file| read(&home.join(file)))
        .flat_map(|text| shapes.secrets_of(&text))
        .collect();
    let tokens = TOKEN_FILES.iter().filter_map(|file| read(&home.join(file)));
    secrets.extend(tokens.map(|text| text.trim().to_owned()).filter(|token| token.len() >= SECRET_BYTES_MIN));
    // `password` under a short or plain value is a setting there as well.
    secrets.retain(|secret| secret.len() >= SECRET_BYTES_MIN);
    secrets
}

/// A regular file that is not too long.
fn read(path: &Path) -> Option<String> {
    let is_file = path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= FILE_BYTES_MAX);
    let file = is_file.then(|| std::fs::File::open(path).ok()).flatten()?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The secrets that the settings hold as they are: headers of models and of MCP servers, variables
/// whose names say so, parts of addresses, words of commands, and the same where it takes no
/// effect. What they take from the environment is known already.
pub(super) fn of_settings(config: &Config) -> Vec<String> {
    let mut found: Vec<String> = config.addresses().iter().flat_map(|url| in_address(url)).collect();
    let lines = config.command_lines();
    found.extend(lines.iter().flat_map(|words| in_command(words)));
    found.extend(lines.iter().flatten().filter(|word| word.contains("://")).flat_map(|url| in_address(url)));
    let is_written = |value: &str| value.len() >= SECRET_BYTES_MIN && !value.contains("${");
    let unheeded = config.unheeded();
    // `token_env = "NAME"` names a variable, `token_budget` a budget; `max_tokens` is a number.
    let is_setting = |(name, value): &(String, String)| {
        name.ends_with("_env")
            || name.ends_with("_budget")
            || value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
    };
    let values: Vec<(String, String)> =
        unheeded.values.iter().filter(|pair| !is_setting(pair)).cloned().collect();
    let unread = unheeded.secrets.iter().cloned().chain(secrets_in(&values, &[]));
    found.extend(unread.filter(|secret| is_written(secret)));
    for upstream in config.llm().upstreams.into_values() {
        let values = upstream.headers.into_values();
        let values = values.map(|value| value.strip_prefix("Bearer ").unwrap_or(&value).to_owned());
        found.extend(values.filter(|value| is_written(value)));
    }
    for settings in config.mcp_servers().into_values() {
        let variables = settings.env.into_iter().filter(|(name, _)| is_secret_name(name));
        for (_, value) in variables.chain(settings.headers) {
            let value = value.strip_prefix("Bearer ").unwrap_or(&value);
            if is_written(value) {
                found.push(value.to_owned());
            }
        }
    }
    found
}

/// What may be secret in an address: its password, the values of its query, and the long parts of
/// its path.
fn in_address(address: &str) -> Vec<String> {
    const PART_BYTES_MIN: usize = 12;
    let Some((_, rest)) = address.split_once("://") else { return Vec::new() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let password = authority.rsplit_once('@').and_then(|(user, _)| Some(user.split_once(':')?.1));
    let values = query.split(['&', '#']).map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
    let parts = path.split('/').filter(|part| part.len() >= PART_BYTES_MIN);
    let all = password.into_iter().chain(values).chain(parts);
    let is_written = |part: &&str| part.len() >= SECRET_BYTES_MIN && !part.contains("${");
    all.filter(is_written).map(str::to_owned).collect()
}

/// The words, and the parts of them, that are masked in a command.
fn in_command(words: &[String]) -> Vec<String> {
    let masked = Redactor::default().redact_arguments(words);
    let pairs = words.iter().zip(&masked).filter(|(word, masked)| word != masked);
    let secret = |(word, masked): (&String, &String)| {
        let (before, after) = masked.split_once(MASK)?;
        let secret = word.strip_prefix(before)?.strip_suffix(after.rsplit(MASK).next()?)?;
        (secret.len() >= SECRET_BYTES_MIN).then(|| secret.to_owned())
    };
    pairs.filter_map(secret).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_in_addresses_and_commands_is_known() {
        for (address, want) in [
            (
                "http://127.0.0.1:9/hooks/plainpathwords?x=queryplainwords",
                &["queryplainwords", "plainpathwords"][..],
            ),
            ("http://bob:plainuserwords@127.0.0.1:9/x", &["plainuserwords"]),
            ("https://example.com/v1/chat", &[]),
            ("https://example.com/${TENANT_OF_MINE}?key=${KEY_OF_MINE}", &[]),
            ("no address", &[]),
        ] {
            assert_eq!(in_address(address), want, "{address}");
        }
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(in_command(&words("agent --api-key plainagentwords")), ["plainagentwords"]);
        assert_eq!(in_command(&words("agent --api-key=plainagentwords -v")), ["plainagentwords"]);
        assert_eq!(in_command(&words("curl -u bob:plainwords x")), ["plainwords"]);
        assert_eq!(in_command(&words("agent run --model large")), Vec::<String>::new());
    }

    #[test]
    fn secrets_are_found_by_name_and_settings_are_left() {
        let variables: Vec<(String, String)> = [
            ("API_KEY", "abcdef123"),
            ("api_token", "qwertz789"),
            ("DB_PWD", "geheim42"),
            ("TOKEN_FILE", "/"),
            ("KEY", "short"),
            ("PWD", "/home/nobody"),
            ("PLAIN", "visible1"),
            ("PASS", "mellon42"),
            ("DBPW", "sesame42"),
            ("PGPASS", "opensesame"),
            ("TF_VAR_db_pw", "friend42"),
            ("MYSQL_PWD", "enter4242"),
            ("OLDPWD", "/home/nobody2"),
            ("BEARER", "bear42bear"),
            ("AUTH_BYPASS", "nothing42"),
            ("MY_ACCESS", "a1b2c3d4e5"),
            ("APP_PRIVATE", "p1b2c3d4e5"),
            ("APP_SESSION", "s1b2c3d4e5"),
            ("HASH_SALT", "t1b2c3d4e5"),
            ("DESKTOP_SESSION", "ubuntu-wayland"),
            ("PUBLIC_ACCESS", "everybody"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let found = [
            "abcdef123",
            "qwertz789",
            "geheim42",
            "mellon42",
            "sesame42",
            "opensesame",
            "friend42",
            "enter4242",
            "bear42bear",
            "a1b2c3d4e5",
            "p1b2c3d4e5",
            "s1b2c3d4e5",
            "t1b2c3d4e5",
        ];
        assert_eq!(secrets_in(&variables, &[]), found);
        assert!(secrets_in(&variables, &["PLAIN".to_owned()]).contains(&"visible1".to_owned()));
        let address = [("DATABASE_URL".to_owned(), "postgres://app:sw0rdfish@db/x".to_owned())];
        assert_eq!(secrets_in(&address, &[]), ["sw0rdfish"]);
    }

    #[test]
    fn credential_files_are_read_when_something_is_redacted() {
        let home = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let redactor = redactor(Vec::new(), Vec::new(), Vec::new(), Some(home.path().to_owned()));
        let secret = |n: usize| format!("x{n}Kq7Zt{n}mBw3Rv9");
        write(
            ".claude/.credentials.json",
            format!("{{\"claudeAiOauth\":{{\"accessToken\":\"{}\"}}}}", secret(1)),
        );
        write(
            ".config/gh/hosts.yml",
            format!("github.example:\n    user: bob\n    oauth_token: {}\n", secret(2)),
        );
        write(".netrc", format!("machine h.example\n  login bob\n  password {}\n", secret(3)));
        write(".npmrc", format!("//registry.example/:_authToken={}\n", secret(4)));
        write(".aws/credentials", format!("[default]\naws_secret_access_key = {}\n", secret(5)));
        write(".docker/config.json", format!("{{\"auths\":{{\"r\":{{\"auth\":\"{}\"}}}}}}", secret(6)));
        write(".git-credentials", format!("https://bob:{}@github.example\n", secret(7)));
        write(".vault-token", format!("{}\n", secret(8)));
        write(".pypirc", "x".repeat(1 << 20));
        for n in 1..=8 {
            let text = format!("it said {} twice", secret(n));
            assert_eq!(redactor.redact(&text), "it said [redacted] twice", "{n}");
        }
    }
}
