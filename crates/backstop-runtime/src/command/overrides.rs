//! Flags of a command that change its profile. They are keys of the settings, so that they are
//! checked and layered as its values are.

use backstop_config::Given;
use backstop_core::{ErrorKind, HintedError, Reason, UnknownReason};

/// Why what was typed changes no profile.
#[derive(Debug, thiserror::Error)]
pub enum OverrideError {
    /// It has another form.
    #[error("`{0}` is no override: write it as REASON=ACTION")]
    Form(String),
    /// There is no such reason.
    #[error(transparent)]
    Reason(#[from] UnknownReason),
}

impl HintedError for OverrideError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Usage
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Form(_) => {
                vec!["for example: `--on unknown=retry`; `backstop reasons` lists the reasons".to_owned()]
            }
            Self::Reason(error) => error.hints(),
        }
    }
}

/// What `--attempts` and `--on REASON=ACTION` set in this profile.
pub fn profile_settings(
    attempts: Option<u32>,
    on: &[String],
    profile: &str,
) -> Result<Vec<Given>, OverrideError> {
    let given = |flag: &str, key: String, value: String| Given { flag: flag.to_owned(), key, value };
    let attempts =
        attempts.map(|count| given("--attempts", format!("profile.{profile}.attempts"), count.to_string()));
    let mut all = Vec::from_iter(attempts);
    for typed in on {
        let form = || OverrideError::Form(typed.clone());
        let (reason, action) = typed.split_once('=').ok_or_else(form)?;
        if action.trim() == "halt" {
            return Err(form());
        }
        // A reason is a code; with anything else in it, it would be another key.
        let reason: Reason = reason.trim().parse()?;
        all.push(given("--on", format!("profile.{profile}.on.{reason}"), action.to_owned()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_is_a_key_of_the_profile() {
        let all = profile_settings(Some(3), &["unknown=retry:2".to_owned()], "command").unwrap();
        let keys: Vec<(&str, &str)> = all.iter().map(|given| (&*given.key, &*given.value)).collect();
        assert_eq!(keys, [("profile.command.attempts", "3"), ("profile.command.on.unknown", "retry:2")]);
        for typed in ["unknown", "unknown=halt", "no.such=retry"] {
            assert!(profile_settings(None, &[typed.to_owned()], "command").is_err(), "{typed}");
        }
    }
}
