//! `backstop notify test`: a message through each sink, now, and what came of it.

use super::send::{runtime, with_secret};
use crate::context::{self, Context};
use crate::error::{CliError, DONE, FAILED};
use crate::terminal;
use backstop_core::{SafeText, Severity};
use backstop_engine::Engine;
use backstop_notify::{About, Kind, Message, Outcome, Resolved, Sink, Times, deliver};
use backstop_report::{JSON_SCHEMA, notify_test, to_json};
use serde_json::{Value, json};

/// What came of one sink.
struct Tried {
    name: String,
    /// Nothing where it is no sink.
    sink: Option<Sink>,
    sent: bool,
    said: SafeText,
    hint: Option<String>,
    attempts: u32,
}

pub(super) fn run(only: Option<&str>, json: bool) -> Result<u8, CliError> {
    let context = Context::new(&[], None)?;
    terminal::warn_inert(&context.config);
    let all = backstop_notify::sinks(&context.config);
    let known: Vec<String> = all.iter().map(|(name, _)| name.clone()).collect();
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let chosen: Vec<_> = all.into_iter().filter(|(name, _)| wanted(name)).collect();
    if chosen.is_empty() {
        let given = only.map(|name| SafeText::new(name).line(60));
        return Err(CliError::NoSink { given, known });
    }
    let engine = Engine::new(context.config.policy("request")?);
    let runtime = runtime()?;
    let mut tried = Vec::new();
    for (name, sink) in chosen {
        let one = match sink {
            Ok(sink) => runtime.block_on(try_one(&engine, &context, name, sink)),
            Err(error) => {
                let (said, hint) = (SafeText::new(error.to_string()), Some(error.hint()));
                Tried { name, sink: None, sent: false, said, hint, attempts: 0 }
            }
        };
        if !json {
            terminal::print(&line(&context, &one))?;
        }
        tried.push(one);
    }
    if json {
        let rows: Vec<Value> = tried.iter().map(|one| row(&context, one)).collect();
        terminal::print(&format!("{}\n", to_json(&json!({ "schema": JSON_SCHEMA, "sinks": rows }))))?;
    }
    Ok(if tried.iter().all(|one| one.sent) { DONE } else { FAILED })
}

async fn try_one(engine: &Engine, context: &Context, name: String, sink: Sink) -> Tried {
    let mut tried = Tried {
        name,
        sink: Some(sink.clone()),
        sent: false,
        said: SafeText::default(),
        hint: None,
        attempts: 0,
    };
    let (sink, credential) = match with_secret(sink) {
        Resolved::Sink(sink, credential) => (*sink, credential),
        Resolved::NoSecret { variable } => {
            tried.said = SafeText::new(format!("the variable {variable} is not set"));
            tried.hint =
                Some(format!("`export {variable}=…`, where the commands run that are to tell somebody"));
            return tried;
        }
        Resolved::Gone(said) => return Tried { said, ..tried },
    };
    let now = context::now();
    let notice = notify_test(&SafeText::new(sink.name.as_str()), now);
    let about = About {
        outcome: "test".to_owned(),
        severity: Severity::Low,
        reason: None,
        operation: "backstop notify test".into(),
        project: SafeText::new(context.project.to_string_lossy()),
        run: None,
        at: now,
    };
    let message = Message::new(&notice, about);
    if sink.kind == Kind::Terminal {
        terminal::say(&message.plain);
    }
    let times = Times { count: 1, first: now, last: now, mixed: false, names: Vec::new() };
    (tried.sent, tried.said, tried.attempts) =
        match deliver(engine, &sink, credential.as_ref(), &message, &times).await {
            Outcome::Sent { said, attempts } => (true, said, attempts),
            Outcome::Later { why, attempts, .. } | Outcome::Refused { why, attempts } => {
                (false, why, attempts)
            }
        };
    if !tried.sent && tried.said.raw().contains("curl") {
        tried.hint = Some("install curl: https goes through it".to_owned());
    }
    tried
}

fn said(context: &Context, one: &Tried) -> String {
    context.redactor.redact(one.said.raw()).into_owned()
}

fn line(context: &Context, one: &Tried) -> String {
    let how = if one.sent { "sent" } else { "not sent" };
    let attempts = if one.attempts > 1 { format!(", {} attempts", one.attempts) } else { String::new() };
    let what = one
        .sink
        .as_ref()
        .map(|sink| format!(" ({}, {})", sink.kind.name(), SafeText::new(sink.place()).line(100)));
    let said = SafeText::new(said(context, one)).line(300);
    let hint = one.hint.as_ref().map(|hint| format!("  hint: {hint}\n")).unwrap_or_default();
    let name = SafeText::new(one.name.clone()).line(60);
    format!("{name}{}: {how}: {said}{attempts}\n{hint}", what.unwrap_or_default())
}

fn row(context: &Context, one: &Tried) -> Value {
    let sink = one.sink.as_ref();
    json!({
        "sink": one.name, "type": sink.map(|sink| sink.kind.name()), "place": sink.map(Sink::place), "sent": one.sent,
        "said": said(context, one), "hint": one.hint, "attempts": one.attempts,
    })
}
