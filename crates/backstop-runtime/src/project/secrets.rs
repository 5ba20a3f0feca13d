//! Which environment variables hold secrets.

use backstop_config::Config;
use std::path::Path;

/// Words in a variable's name that say that its value is a secret.
const WORDS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PASSPHRASE"];
/// Ends of a variable's name that say so.
const ENDS: &[&str] = &["_PASS", "_PAT", "_PWD", "_AUTH"];
/// A shorter value is a setting.
const SECRET_BYTES_MIN: usize = 6;

/// Whether a variable of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ENDS.iter().any(|end| name.ends_with(end)) || WORDS.iter().any(|word| name.contains(word))
}

/// The secrets among these variables, and the values of those that are `named`, whatever they are
/// called.
pub fn secrets_in(variables: &[(String, String)], named: &[String]) -> Vec<String> {
    // The path of a file or a short word under such a name is a setting, not a secret.
    let is_setting =
        |value: &str| value.len() < SECRET_BYTES_MIN || (value.starts_with('/') && Path::new(value).exists());
    let by_name = variables.iter().filter(|(name, value)| is_secret_name(name) && !is_setting(value));
    let asked_for = variables.iter().filter(|(name, _)| named.contains(name));
    by_name.chain(asked_for).map(|(_, value)| value.clone()).collect()
}

/// The secrets that the settings of MCP servers hold as they are: headers, and variables whose names
/// say so. What they take from the environment is known already.
pub(super) fn of_mcp_servers(config: &Config) -> Vec<String> {
    let mut found = Vec::new();
    for settings in config.mcp_servers().into_values() {
        let variables = settings.env.into_iter().filter(|(name, _)| is_secret_name(name));
        for (_, value) in variables.chain(settings.headers) {
            let value = value.strip_prefix("Bearer ").unwrap_or(&value);
            if value.len() >= SECRET_BYTES_MIN && !value.contains("${") {
                found.push(value.to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        assert_eq!(secrets_in(&variables, &[]), ["abcdef123", "qwertz789", "geheim42"]);
        assert!(secrets_in(&variables, &["PLAIN".to_owned()]).contains(&"visible1".to_owned()));
    }
}
