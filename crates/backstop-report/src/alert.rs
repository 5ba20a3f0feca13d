//! What a person is told who was not there: something ended that a person has to look at.

use crate::Notice;
use crate::notice::{Field, Marker, Value, Words, slack_words};
use backstop_core::{Reason, RunId, SafeText, Severity, Timestamp};

/// What lets a frozen project go on.
const UNFREEZE: &str = "backstop unfreeze --why TEXT";

/// Something ended that a person has to look at.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    /// How bad it is.
    pub severity: Severity,
    /// What it is.
    pub reason: Reason,
    /// How it ended: `failed`, `halted`, `deferred`; or that it goes on: `retrying`.
    pub outcome: &'static str,
    /// What failed: a command, a plan, a task.
    pub operation: SafeText,
    /// The part of it that failed: a phase.
    pub part: Option<SafeText>,
    /// The project's folder.
    pub project: SafeText,
    /// The line that says why.
    pub cause: Option<SafeText>,
    /// How many attempts were made.
    pub attempts: u32,
    /// The run, where there is one.
    pub run: Option<RunId>,
    /// When it ended.
    pub at: Timestamp,
    /// The exact command that continues, where there is one.
    pub next: Option<SafeText>,
    /// Why the project was frozen for it, where it was.
    pub frozen: Option<SafeText>,
}

impl Alert {
    /// Something failed with this reason, and nothing else is known.
    pub fn new(reason: Reason, at: Timestamp) -> Self {
        let (operation, project) = (SafeText::default(), SafeText::default());
        let severity = backstop_core::Fault::new(reason).ending_severity();
        let (part, cause, run, next, frozen) = (None, None, None, None, None);
        Self {
            severity,
            reason,
            outcome: "failed",
            operation,
            part,
            project,
            cause,
            attempts: 1,
            run,
            at,
            next,
            frozen,
        }
    }
}

/// Something ended that a person has to look at.
pub fn alert(given: &Alert) -> Notice {
    let info = given.reason.info();
    let steps: Vec<Words> = info.next_steps.iter().map(|step| Words::own(*step)).collect();
    let mut about = vec![
        Field::new("operation", "Operation", Words::outside(&given.operation)),
        Field::new("project", "Project", Words::outside(&given.project)),
        Field {
            key: "cause",
            label: "Cause",
            value: Value::Message(given.cause.clone().unwrap_or_else(|| SafeText::new(info.remedy))),
        },
        Field::new("", "Attempts", given.attempts.to_string()),
        Field::new("at", "At", given.at.to_string()),
    ];
    if let Some(part) = &given.part {
        about.insert(1, Field::new("phase", "Phase", Words::outside(part)));
    }
    if let Some(why) = &given.frozen {
        about.insert(0, Field::new("frozen", "Nothing new begins", Words::outside(why)));
    }
    about.extend(given.run.map(|run| Field::new("run", "Run", run.to_string())));
    let explain = || match given.run {
        Some(run) => Words::code(&SafeText::new(format!("backstop explain {run}"))),
        None => Words::code(&SafeText::new(format!("backstop explain {}", given.reason))),
    };
    let unfreeze = given.frozen.as_ref().map(|_| SafeText::new(UNFREEZE));
    let next = unfreeze.as_ref().or(given.next.as_ref()).filter(|next| !next.raw().trim().is_empty());
    let next = next.map_or_else(explain, Words::code);
    let mut notice = Notice::headed("alert", title(given), Some(given.reason))
        .reason_line()
        .field("severity", "Severity", given.severity.name())
        .data("outcome", given.outcome)
        .data("attempts", given.attempts);
    for field in about {
        notice = notice.value(field.key, field.label, field.value);
    }
    notice.list("steps", "What helps", Marker::Number, steps).next_line(next)
}

fn title(given: &Alert) -> String {
    let what = match given.outcome {
        _ if given.frozen.is_some() => "The project is frozen",
        "retrying" => "A task is tried again",
        "halted" => "A run has halted and can be resumed",
        "deferred" => "Work was put aside",
        "unconfirmed" => "A run waits for somebody to confirm it",
        "partial" => "A run was done in part",
        "interrupted" => "A run was stopped",
        _ => "A run has failed",
    };
    format!("{what}: {}", given.reason)
}

/// Where a text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A terminal, or a program that prints it.
    Terminal,
    /// Markdown.
    Markdown,
    /// Slack's own.
    Slack,
}

/// How many names of what it happened to are listed.
const NAMED_MAX: usize = 10;

/// Names from outside in one line, escaped for where they go.
pub fn name_list(names: &[SafeText], form: Form) -> String {
    let words = Words::names(names, NAMED_MAX);
    match form {
        Form::Terminal => words.terminal(crate::Style::PLAIN),
        Form::Markdown => words.markdown(),
        Form::Slack => slack_words(&words),
    }
}

/// A message that shows that messages arrive.
pub fn notify_test(sink: &SafeText, at: Timestamp) -> Notice {
    Notice::headed("notify_test", "A test message from Backstop", None)
        .field("sink", "Sink", Words::outside(sink))
        .field("at", "At", at.to_string())
        .next_line(Words::own("Nothing is to be done: what a person has to know will arrive here"))
}
