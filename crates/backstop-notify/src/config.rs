//! Builds sinks from the configuration, and reports what is wrong with them.

use super::{Route, Sink, SinkKind};
use backstop_config::{Config, SINK_KINDS, SinkSettings};
use backstop_core::{IdError, Name, Severity};
use backstop_http::{Address, AddressError};

/// The variable that holds the GitHub token, where the configuration names none.
const GITHUB_TOKEN: &str = "GITHUB_TOKEN";

/// What is wrong with the configuration of a sink.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// No type is configured.
    #[error("`notify.{sink}` has no type")]
    NoType {
        /// The sink.
        sink: String,
    },
    /// A required key is missing.
    #[error("`notify.{sink}` is of type {kind} and has no `{key}`")]
    Missing {
        /// The sink.
        sink: String,
        /// The type of the sink.
        kind: &'static str,
        /// The missing key.
        key: &'static str,
    },
    /// The address is not valid.
    #[error("the address of `notify.{sink}.url` {error}")]
    Address {
        /// The sink.
        sink: String,
        /// What is wrong with the address.
        error: AddressError,
    },
    /// The name of an environment variable is not valid.
    #[error("`notify.{sink}.token_env` is no name of an environment variable")]
    Variable {
        /// The sink.
        sink: String,
    },
    /// The name of the sink is not valid.
    #[error("`notify.{sink}`: {error}")]
    Name {
        /// The sink.
        sink: String,
        /// What is wrong with the name.
        error: IdError,
    },
}

impl SinkError {
    /// What to write instead, for the `hint:` line.
    pub fn hint(&self) -> String {
        match self {
            SinkError::NoType { sink } => {
                format!("set `notify.{sink}.type` to one of {}", SINK_KINDS.join(", "))
            }
            SinkError::Missing { sink, kind: "slack", .. } => {
                format!(
                    "set `notify.{sink}.token_env` to the variable that holds the address, or `notify.{sink}.url`"
                )
            }
            SinkError::Missing { sink, key, .. } => format!("set `notify.{sink}.{key}`"),
            SinkError::Address { error: AddressError::UserInfo, sink } => {
                format!("put the credential into a variable, and name it with `notify.{sink}.token_env`")
            }
            SinkError::Address { error, .. } => error.hint().to_owned(),
            SinkError::Variable { .. } => {
                "give the name, such as \"SLACK_WEBHOOK\": not `$SLACK_WEBHOOK`, and not its value".to_owned()
            }
            SinkError::Name { .. } => "use letters, digits and dashes".to_owned(),
        }
    }
}

/// Every trusted sink of a configuration by its name, or what is wrong with it.
pub fn sinks(config: &Config) -> Vec<(String, Result<Sink, SinkError>)> {
    let sink = |(name, settings): (String, SinkSettings)| {
        let sink = Sink::from_settings(&name, &settings);
        (name, sink)
    };
    config.sinks().into_iter().map(sink).collect()
}

impl Sink {
    /// Builds a sink from its settings.
    pub fn from_settings(name: &str, settings: &SinkSettings) -> Result<Self, SinkError> {
        let sink = || name.to_owned();
        let checked: Name = name.parse().map_err(|error| SinkError::Name { sink: sink(), error })?;
        let severity = match settings.severity.as_deref() {
            Some("low") => Severity::Low,
            Some("medium") => Severity::Medium,
            Some("critical") => Severity::Critical,
            _ => Severity::High,
        };
        let kind = SinkKind::from_settings(name, settings)?;
        Ok(Sink {
            name: checked,
            kind,
            route: Route { severity, reasons: settings.reasons.clone(), projects: settings.projects.clone() },
        })
    }
}

impl SinkKind {
    fn from_settings(sink: &str, settings: &SinkSettings) -> Result<Self, SinkError> {
        let named = || sink.to_owned();
        let missing = |kind, key| SinkError::Missing { sink: named(), kind, key };
        let address = match &settings.url {
            Some(url) => {
                Some(Address::parse(url).map_err(|error| SinkError::Address { sink: named(), error })?)
            }
            None => None,
        };
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let token_env = settings.token_env.clone();
        if token_env.as_deref().is_some_and(|name| name.is_empty() || !name.bytes().all(allowed)) {
            return Err(SinkError::Variable { sink: named() });
        }
        match settings.kind.as_deref() {
            Some("terminal") => Ok(SinkKind::Terminal),
            Some("webhook") => Ok(SinkKind::Webhook {
                address: address.ok_or_else(|| missing("webhook", "url"))?,
                token_env,
            }),
            Some("slack") if address.is_none() && token_env.is_none() => Err(missing("slack", "url")),
            Some("slack") => Ok(SinkKind::Slack { address, address_env: token_env }),
            Some("github") => Ok(SinkKind::GitHub {
                address: github_comments(address.ok_or_else(|| missing("github", "url"))?),
                token_env: token_env.unwrap_or_else(|| GITHUB_TOKEN.to_owned()),
            }),
            Some("command") if settings.command.is_empty() => Err(missing("command", "command")),
            Some("command") => Ok(SinkKind::Command { argv: settings.command.clone() }),
            _ => Err(SinkError::NoType { sink: named() }),
        }
    }
}

/// The API address of the comments, if `address` is the page of a GitHub issue or pull request;
/// otherwise `address`.
fn github_comments(address: Address) -> Address {
    let parts: Vec<&str> = address.path().trim_matches('/').split('/').collect();
    let comments = match parts.as_slice() {
        [owner, repo, "issues" | "pull", number]
            if address.host() == "github.com" && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            format!("https://api.github.com/repos/{owner}/{repo}/issues/{number}/comments")
        }
        _ => return address,
    };
    Address::parse(&comments).unwrap_or(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(kind: &str, url: &str) -> SinkSettings {
        SinkSettings {
            kind: Some(kind.into()),
            url: (!url.is_empty()).then(|| url.into()),
            ..Default::default()
        }
    }

    #[test]
    fn what_is_a_sink_and_what_is_not() {
        assert_eq!(Sink::from_settings("me", &settings("terminal", "")).unwrap().kind, SinkKind::Terminal);
        let github = Sink::from_settings("gh", &settings("github", "https://github.com/a/b/pull/7")).unwrap();
        assert_eq!(github.secret_env(), Some("GITHUB_TOKEN"));
        assert_eq!(github.place(), "https://api.github.com");
        let slack = SinkSettings { token_env: Some("HOOK".into()), ..settings("slack", "") };
        assert_eq!(Sink::from_settings("ops", &slack).unwrap().secret_env(), Some("HOOK"));
        let variable = SinkSettings { token_env: Some("$X".into()), ..settings("webhook", "http://x/") };
        for (given, want) in [
            (SinkSettings::default(), "`notify.s` has no type"),
            (settings("webhook", ""), "is of type webhook and has no `url`"),
            (settings("slack", ""), "is of type slack and has no `url`"),
            (settings("command", ""), "has no `command`"),
            (settings("github", "ftp://x"), "is no http or https address"),
            (variable, "no name of an environment variable"),
        ] {
            let error = Sink::from_settings("s", &given).unwrap_err();
            assert!(error.to_string().contains(want), "{error}");
            assert!(!error.hint().is_empty());
        }
    }

    #[test]
    fn sinks_that_lead_to_the_same_place_are_limited_together() {
        let target = |url: &str| Sink::from_settings("s", &settings("webhook", url)).unwrap().target();
        assert_eq!(target("http://x/a"), target("http://x/a"));
        assert_ne!(target("http://x/a"), target("http://x/b"));
        assert!(!target("http://x/s3cret").contains("s3cret"));
    }

    #[test]
    fn the_page_of_an_issue_is_where_its_comments_are() {
        let api = |text: &str| github_comments(Address::parse(text).unwrap()).whole().to_owned();
        for page in ["https://github.com/acme/shop/issues/12", "https://github.com/acme/shop/pull/12/"] {
            assert_eq!(api(page), "https://api.github.com/repos/acme/shop/issues/12/comments");
        }
        for other in ["https://ghe.acme.dev/api/v3/repos/a/b/issues/1/comments", "https://github.com/a/b"] {
            assert_eq!(api(other), other);
        }
    }
}
