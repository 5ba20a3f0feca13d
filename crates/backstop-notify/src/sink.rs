//! A sink: where messages go, and its route: which messages it takes.

use super::About;
use backstop_core::{Name, Reason, Severity, fnv1a};
use backstop_http::Address;
use std::path::{Path, PathBuf};

/// The kind of a sink, with its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkKind {
    /// The terminal of whoever runs the command.
    Terminal,
    /// An address that gets JSON.
    Webhook {
        /// The address.
        address: Address,
        /// The environment variable that holds a token, if one is needed.
        token_env: Option<String>,
    },
    /// A Slack channel, through an incoming webhook.
    Slack {
        /// The address, if it is not in an environment variable.
        address: Option<Address>,
        /// The environment variable that holds the address.
        address_env: Option<String>,
    },
    /// An issue or a pull request, as a comment.
    GitHub {
        /// The address of the comments in GitHub's REST API.
        address: Address,
        /// The environment variable that holds the token.
        token_env: String,
    },
    /// A program that gets the text on its standard input.
    Command {
        /// The program and its arguments.
        argv: Vec<String>,
    },
}

impl SinkKind {
    /// The name in the configuration.
    pub fn name(&self) -> &'static str {
        match self {
            SinkKind::Terminal => "terminal",
            SinkKind::Webhook { .. } => "webhook",
            SinkKind::Slack { .. } => "slack",
            SinkKind::GitHub { .. } => "github",
            SinkKind::Command { .. } => "command",
        }
    }
}

/// The messages that a sink takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The lowest severity.
    pub severity: Severity,
    /// The reasons; empty means all.
    pub reasons: Vec<Reason>,
    /// The folders, with everything below them; empty means all.
    pub projects: Vec<PathBuf>,
}

impl Route {
    /// Whether the route matches a message.
    pub fn takes(&self, about: &About) -> bool {
        let reason =
            self.reasons.is_empty() || about.reason.is_some_and(|reason| self.reasons.contains(&reason));
        let project = Path::new(about.project.raw());
        let here = self.projects.is_empty() || self.projects.iter().any(|folder| project.starts_with(folder));
        about.severity >= self.severity && reason && here
    }
}

/// A sink and its route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sink {
    /// The name in the configuration.
    pub name: Name,
    /// The kind and address.
    pub kind: SinkKind,
    /// The messages that it takes.
    pub route: Route,
}

impl Sink {
    /// An identifier of where the sink leads, with secrets hashed. Sinks with the same target share
    /// a rate limit.
    pub fn target(&self) -> String {
        let place = match &self.kind {
            SinkKind::Terminal => String::new(),
            SinkKind::Webhook { address, .. } | SinkKind::GitHub { address, .. } => {
                address.whole().to_owned()
            }
            SinkKind::Slack { address, address_env } => address
                .as_ref()
                .map(|address| address.whole().to_owned())
                .or_else(|| address_env.clone())
                .unwrap_or_default(),
            SinkKind::Command { argv } => argv.join("\0"),
        };
        format!("{}-{:016x}", self.name, fnv1a(format!("{}\0{place}", self.kind.name()).as_bytes()))
    }

    /// Where the sink leads, for people: a host without its path, which may be secret; a program
    /// without its arguments.
    pub fn place(&self) -> String {
        match &self.kind {
            SinkKind::Terminal => "the terminal".to_owned(),
            SinkKind::Webhook { address, .. } | SinkKind::GitHub { address, .. } => address.place(),
            SinkKind::Slack { address: Some(address), .. } => address.place(),
            SinkKind::Slack { address_env, .. } => format!("${}", address_env.as_deref().unwrap_or_default()),
            SinkKind::Command { argv } => argv.first().cloned().unwrap_or_default(),
        }
    }

    /// The environment variable that holds the sink's secret, if it has one.
    pub fn secret_env(&self) -> Option<&str> {
        match &self.kind {
            SinkKind::Webhook { token_env, .. } => token_env.as_deref(),
            SinkKind::Slack { address: None, address_env } => address_env.as_deref(),
            SinkKind::GitHub { token_env, .. } => Some(token_env),
            SinkKind::Slack { .. } | SinkKind::Terminal | SinkKind::Command { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::Timestamp;

    #[test]
    fn routes_are_by_severity_reason_and_project() {
        let about = |severity, reason, project: &str| About {
            severity,
            reason: Some(reason),
            outcome: "failed".into(),
            operation: "npm ci".into(),
            project: project.into(),
            run: None,
            at: Timestamp::from_millis(0),
        };
        let all = Route { severity: Severity::High, reasons: Vec::new(), projects: Vec::new() };
        let some = Route { reasons: vec![Reason::DiskFull], ..all.clone() };
        let here = Route { projects: vec!["/srv/shop".into()], ..all.clone() };
        for (route, severity, reason, project, want) in [
            (&all, Severity::High, Reason::Crash, "/x", true),
            (&all, Severity::Critical, Reason::Crash, "/x", true),
            (&all, Severity::Medium, Reason::Crash, "/x", false),
            (&some, Severity::High, Reason::DiskFull, "/x", true),
            (&some, Severity::High, Reason::Crash, "/x", false),
            (&here, Severity::High, Reason::Crash, "/srv/shop/web", true),
            (&here, Severity::High, Reason::Crash, "/srv/shopping", false),
        ] {
            assert_eq!(route.takes(&about(severity, reason, project)), want, "{route:?} {reason} {project}");
        }
    }
}
