//! A message, rendered for every kind of sink, with the properties that routes and groups use.

use backstop_core::{Reason, RunId, SafeText, Severity, Timestamp, signature};
use backstop_report::{Notice, Style};
use serde::{Deserialize, Serialize};

/// The outcome of a run that froze its project.
const FROZEN: &str = "frozen";

/// The properties of a message that routes and groups use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The severity of the fault.
    pub severity: Severity,
    /// The reason of the fault. A test message has none.
    pub reason: Option<Reason>,
    /// How the run ended (`failed`, `halted`, `deferred`), or `retrying` while it goes on.
    pub outcome: String,
    /// The operation that failed.
    pub operation: SafeText,
    /// The project's folder.
    pub project: SafeText,
    /// The run, if there is one.
    pub run: Option<RunId>,
    /// The time of the failure.
    pub at: Timestamp,
}

/// A message, ready for every kind of sink. Text from outside is escaped in each of its forms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The properties that routes and groups use.
    pub about: About,
    /// The title.
    pub title: String,
    /// The text for a terminal or a program.
    pub plain: String,
    /// The Markdown for GitHub.
    pub markdown: String,
    /// The text for Slack, in its own markup.
    pub slack: String,
    /// The JSON for other programs. Text from outside is unescaped in it: the receiver escapes it.
    pub notice: serde_json::Value,
}

impl Message {
    /// Renders a notice. Only a notice can become a message, because it keeps our words apart from
    /// text from outside.
    pub fn new(notice: &Notice, about: About) -> Self {
        Self {
            about,
            title: notice.title().to_owned(),
            plain: notice.terminal(Style::PLAIN),
            markdown: notice.markdown(),
            slack: notice.slack(),
            notice: notice.json(),
        }
    }

    /// Replaces the Markdown by a text from the report crate, which is escaped too.
    pub fn with_markdown(self, markdown: String) -> Self {
        Self { markdown, ..self }
    }

    /// The group of the message: reason, severity, outcome, project, and the operation without its
    /// variable parts.
    pub fn group(&self) -> String {
        let About { severity, reason, outcome, operation, project, run, .. } = &self.about;
        let reason = reason.map_or("none", Reason::code);
        // Each freeze of a project is a group of its own, because a person lifted the one before.
        if let (FROZEN, Some(run)) = (outcome.as_str(), run) {
            return format!("{reason}|{severity}|{outcome}|{run}|{}", project.raw());
        }
        format!("{reason}|{severity}|{outcome}|{}|{}", signature(operation.raw()), project.raw())
    }
}
