//! A message: one notice, rendered for every kind of sink, and what it is about.

use backstop_core::{Reason, RunId, SafeText, Severity, Timestamp, signature};
use backstop_report::{Notice, Style};
use serde::{Deserialize, Serialize};

/// The outcome of what froze its project.
const FROZEN: &str = "frozen";

/// What a message is about: what routes and groups look at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// How bad it is.
    pub severity: Severity,
    /// What it is. A test message has none.
    pub reason: Option<Reason>,
    /// How it ended: `failed`, `halted`, `deferred`; or that it goes on: `retrying`.
    pub outcome: String,
    /// What failed.
    pub operation: SafeText,
    /// The project's folder.
    pub project: SafeText,
    /// The run, where there is one.
    pub run: Option<RunId>,
    /// When.
    pub at: Timestamp,
}

/// A message, ready for every kind of sink. Text from outside is escaped in each of its forms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// What it is about.
    pub about: About,
    /// What it is called.
    pub title: String,
    /// For a terminal or a program.
    pub plain: String,
    /// For GitHub.
    pub markdown: String,
    /// For Slack.
    pub slack: String,
    /// For other programs. Text from outside is as it came: whoever shows it escapes it.
    pub notice: serde_json::Value,
}

impl Message {
    /// A notice as a message. Only a notice can become one, because it is what keeps our words and those of others apart.
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

    /// With another Markdown text, which the reports made: escaped like every other.
    pub fn with_markdown(self, markdown: String) -> Self {
        Self { markdown, ..self }
    }

    /// What is the same trouble has the same group: the reason, how bad it is and how it ended, and the operation without its
    /// variable parts, in one project.
    pub fn group(&self) -> String {
        let About { severity, reason, outcome, operation, project, run, .. } = &self.about;
        let reason = reason.map_or("none", Reason::code);
        // Each time that a project is frozen is trouble of its own: somebody had let it go on.
        if let (FROZEN, Some(run)) = (outcome.as_str(), run) {
            return format!("{reason}|{severity}|{outcome}|{run}|{}", project.raw());
        }
        format!("{reason}|{severity}|{outcome}|{}|{}", signature(operation.raw()), project.raw())
    }
}
