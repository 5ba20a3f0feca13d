//! The on-error seed's three texts: a user error, a temporary issue, a task that cannot be
//! completed.

use crate::list::more;
use crate::notice::{NAME_CHARS_MAX, code_span};
use crate::reasons::sentence;
use crate::{date_time, duration, until_words};
use backstop_core::{Reason, SafeText};
use std::time::Duration;

/// How much of a message is shown.
const MESSAGE_CHARS_MAX: usize = 300;
/// How many commands are listed.
const COMMANDS_MAX: usize = 20;
/// The longest address that becomes a link.
const URL_CHARS_MAX: usize = 500;

/// A command that a user may type.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskCommand {
    /// The command.
    pub name: SafeText,
    /// What it does, where that is known.
    pub about: SafeText,
}

/// What follows an error of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskFollowUp {
    /// It is retried automatically.
    Retry {
        /// The wait before the retry.
        after: Duration,
        /// The number of the next attempt.
        attempt: u32,
        /// How many attempts are allowed.
        of: u32,
    },
    /// It is deferred until a condition holds.
    Deferred {
        /// A time in UTC, as RFC 3339 writes it, or the condition in words.
        until: SafeText,
    },
    /// Nothing: the task has failed.
    Over,
}

/// An error of a task, for the person who asked for the task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskError {
    /// The task.
    pub task: SafeText,
    /// The step that failed, where it is known.
    pub step: Option<SafeText>,
    /// The reason for the failure.
    pub reason: Reason,
    /// Possible causes.
    pub causes: &'static [&'static str],
    /// Next steps, after `next`.
    pub next_steps: &'static [&'static str],
    /// The error message.
    pub message: SafeText,
    /// The next step, in one line.
    pub next: SafeText,
    /// What was typed, and the command that was probably meant.
    pub did_you_mean: Option<(SafeText, SafeText)>,
    /// The commands that a user may type.
    pub commands: Vec<TaskCommand>,
    /// The address of the documentation.
    pub docs_url: Option<SafeText>,
    /// Whether a partial result is handed over.
    pub partial: bool,
    /// The fallback that is used instead, as the task names it.
    pub fallback: Option<SafeText>,
    /// What follows the error.
    pub follow_up: TaskFollowUp,
}

/// The text for the person who asked, in Markdown: a temporary issue if it is retried, a user error
/// if the user can fix it, else that the task cannot be completed.
pub fn task_error(error: &TaskError) -> String {
    match (&error.follow_up, error.reason.class()) {
        (TaskFollowUp::Retry { after, attempt, of }, _) => temporary(error, *after, *attempt, *of),
        (TaskFollowUp::Over, backstop_core::Class::User) => user(error),
        _ => unable(error),
    }
}

fn user(error: &TaskError) -> String {
    let mut out = String::from(
        "## Error in Task Execution ❌\n\nI encountered an error while processing your request:\n\n",
    );
    out.push_str(&format!("**Error:** {}\n\n", sentence(error.reason.info().remedy)));
    out.push_str(&format!("**Details:** {}", message_span(&error.message)));
    if let Some((typed, suggestion)) = &error.did_you_mean {
        out.push_str(&format!(" {} is not known. Did you mean {}?", name_span(typed), name_span(suggestion)));
    }
    out.push_str(&format!("\n\n**Suggestion:** {}\n", next(error)));
    if !error.commands.is_empty() {
        out.push_str("\nAvailable commands:\n");
        for command in error.commands.iter().take(COMMANDS_MAX) {
            let about = match command.about.raw().trim().is_empty() {
                true => String::new(),
                false => format!(": {}", name_span(&command.about)),
            };
            out.push_str(&format!("- {}{about}\n", name_span(&command.name)));
        }
        let rest = more(error.commands.len(), COMMANDS_MAX);
        if !rest.is_empty() {
            out.push_str(&format!("-{rest}\n"));
        }
    }
    if let Some(url) = &error.docs_url {
        out.push_str(&format!("\nNeed help? See {}.\n", link(url)));
    }
    out.push_str(&reference(error));
    out
}

fn temporary(error: &TaskError, after: Duration, attempt: u32, of: u32) -> String {
    format!(
        "## Temporary Issue ⚠️\n\nI encountered a temporary issue while processing your request. I'll automatically retry in a \
         moment.\n\n**Error:** {}\n**Retry:** Attempting again in {} (attempt {attempt}/{of})\n\nNo action needed from you.\n{}",
        message_span(&error.message),
        wait(after),
        reference(error)
    )
}

fn unable(error: &TaskError) -> String {
    let mut out =
        String::from("## Unable to Complete Task ❌\n\nI was unable to complete your request due to:\n\n");
    out.push_str(&format!("**Error:** {}\n", message_span(&error.message)));
    if let TaskFollowUp::Deferred { until } = &error.follow_up {
        let until = SafeText::new(until_words(until.raw(), date_time));
        out.push_str(&format!("\n**Put aside:** until {}\n", name_span(&until)));
    }
    if error.partial {
        out.push_str("\n**Partial result:** what there is of it is handed over; the rest is missing\n");
    }
    if let Some(fallback) = &error.fallback {
        out.push_str(&format!("\n**Fallback:** {}\n", name_span(fallback)));
    }
    out.push_str("\n**Possible causes:**\n");
    for cause in error.causes {
        out.push_str(&format!("- {}\n", sentence(cause)));
    }
    out.push_str(&format!("\n**Next steps:**\n1. {}\n", next(error)));
    let steps = error.next_steps.iter();
    let steps = steps.filter(|step| !step.eq_ignore_ascii_case(error.next.raw()));
    for (n, step) in steps.enumerate() {
        out.push_str(&format!("{}. {}\n", n + 2, sentence(step)));
    }
    if let Some(url) = &error.docs_url {
        out.push_str(&format!("\nNeed help? See {}.\n", link(url)));
    }
    out.push_str(&reference(error));
    out
}

/// The last line: the task, the step and the reason.
fn reference(error: &TaskError) -> String {
    let step = error.step.as_ref().map(|step| format!(", at {}", name_span(step))).unwrap_or_default();
    let reason = error.reason;
    format!(
        "\nTask ID: {}{step} (for reference); reason: `{reason}` ({})\n",
        name_span(&error.task),
        reason.class()
    )
}

/// `4 seconds`, `1 second`; longer waits in the usual form.
fn wait(after: Duration) -> String {
    match after.as_secs_f64().round() {
        1.0 => "1 second".to_owned(),
        seconds if seconds < 120.0 => format!("{seconds} seconds"),
        _ => duration(after),
    }
}

/// The next step: as a sentence where it is Backstop's own, as a code span where it may hold text
/// from outside.
fn next(error: &TaskError) -> String {
    let own = error.next_steps.iter().find(|step| step.eq_ignore_ascii_case(error.next.raw()));
    own.map_or_else(|| message_span(&error.next), |step| sentence(step))
}

fn message_span(text: &SafeText) -> String {
    match text.raw().trim().is_empty() {
        true => "(no message)".to_owned(),
        false => code_span(text, MESSAGE_CHARS_MAX),
    }
}

fn name_span(text: &SafeText) -> String {
    match text.raw().trim().is_empty() {
        true => "(nothing given)".to_owned(),
        false => code_span(text, NAME_CHARS_MAX),
    }
}

/// A link if the address has only safe characters, else the address as a code span.
fn link(url: &SafeText) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#@!$&'*+,;=%".contains(c);
    let raw = url.raw().trim();
    let web = raw.strip_prefix("https://").or_else(|| raw.strip_prefix("http://"));
    match web {
        Some(rest) if !rest.is_empty() && raw.len() <= URL_CHARS_MAX && raw.chars().all(plain) => {
            format!("[documentation]({raw})")
        }
        _ => name_span(url),
    }
}
