//! Alerts: messages to people who did not watch the run, about an ending that needs them.

use crate::notice::{Field, Marker, Value, Words, slack_words};
use crate::{Notice, advice, date_time};
use backstop_core::{Fault, Reason, RunId, SafeText, Severity, Timestamp};

/// The command that unfreezes a project.
const UNFREEZE: &str = "backstop unfreeze --why TEXT";

/// An ending that a person has to look at.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    /// The severity.
    pub severity: Severity,
    /// The reason.
    pub reason: Reason,
    /// What helps, in order.
    pub steps: Vec<SafeText>,
    /// The outcome: `failed`, `halted`, `deferred`; or `retrying` or `waiting` where it goes on.
    pub outcome: &'static str,
    /// The command, plan or task that failed.
    pub operation: SafeText,
    /// The part of it that failed: a phase.
    pub part: Option<SafeText>,
    /// The project's folder.
    pub project: SafeText,
    /// The cause, in one line.
    pub cause: Option<SafeText>,
    /// How many attempts were made.
    pub attempts: u32,
    /// The run, where there is one.
    pub run: Option<RunId>,
    /// When it ended.
    pub at: Timestamp,
    /// The exact command to type next, where there is one.
    pub next: Option<SafeText>,
    /// Why the project was frozen, where it was.
    pub frozen: Option<SafeText>,
}

impl Alert {
    /// An alert for a failure of which only the reason is known.
    pub fn new(reason: Reason, at: Timestamp) -> Self {
        let (operation, project) = (SafeText::default(), SafeText::default());
        let fault = Fault::new(reason);
        let (part, cause, run, next, frozen) = (None, None, None, None, None);
        Self {
            severity: fault.ending_severity(),
            reason,
            steps: advice(&fault),
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

    /// An alert for this fault: its reason, severity, cause and advice.
    pub fn about(fault: &Fault, at: Timestamp) -> Self {
        Self {
            severity: fault.ending_severity(),
            cause: fault.cause.clone(),
            steps: advice(fault),
            ..Self::new(fault.reason, at)
        }
    }
}

/// The notice of an alert.
pub fn alert(given: &Alert) -> Notice {
    let info = given.reason.info();
    let known = |step: &SafeText| {
        let own = info.next_steps.iter().find(|own| own.eq_ignore_ascii_case(step.raw()));
        own.map_or_else(|| Words::outside(step), |own| Words::own(*own))
    };
    let steps: Vec<Words> = given.steps.iter().map(known).collect();
    let mut about = vec![
        Field::new("operation", "Operation", Words::outside(&given.operation)),
        Field::new("project", "Project", Words::outside(&given.project)),
        Field {
            key: "cause",
            label: "Cause",
            value: Value::Message(given.cause.clone().unwrap_or_else(|| SafeText::new(info.remedy))),
        },
        Field::new("", "Attempts", given.attempts.to_string()),
        Field::new("", "At", date_time(given.at)),
    ];
    if let Some(part) = &given.part {
        about.insert(1, Field::new("phase", "Phase", Words::outside(part)));
    }
    if let Some(why) = &given.frozen {
        about.insert(0, Field::new("frozen", "Frozen because", Words::outside(why)));
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
        .data("at", given.at.to_string())
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

/// The format that a text is escaped for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A terminal, or a program that prints it.
    Terminal,
    /// Markdown.
    Markdown,
    /// Slack's mrkdwn.
    Slack,
}

/// How many names are listed before "and n more".
const NAMED_MAX: usize = 10;

/// Names from outside on one line, escaped for the format.
pub fn name_list(names: &[SafeText], form: Form) -> String {
    let words = Words::names(names, NAMED_MAX);
    match form {
        Form::Terminal => words.terminal(crate::Style::PLAIN),
        Form::Markdown => words.markdown(),
        Form::Slack => slack_words(&words),
    }
}

/// The notice that `backstop notify test` sends.
pub fn notify_test(sink: &SafeText, at: Timestamp) -> Notice {
    Notice::headed("notify_test", "A test message from Backstop", None)
        .field("sink", "Sink", Words::outside(sink))
        .data("at", at.to_string())
        .field("", "At", date_time(at))
        .next_line(Words::own("Nothing to do: alerts will arrive here"))
}
