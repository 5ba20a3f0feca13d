//! `backstop notify test`: a message through each sink, now, and what came of it.

use super::send::{runtime, with_secret};
use crate::context::{self, Context};
use crate::error::{CliError, DONE, FAILED};
use crate::terminal;
use backstop_core::{SafeText, Severity};
use backstop_engine::Engine;
use backstop_hook::notify::{About, Kind, Message, Outcome, Resolved, Sink, Times, deliver};
use backstop_report::{JSON_SCHEMA, notify_test, to_json};
use serde_json::{Value, json};

/// What came of one sink.
struct Tried {
    sink: Sink,
    sent: bool,
    said: SafeText,
    attempts: u32,
}

pub(super) fn run(only: Option<&str>, json: bool) -> Result<u8, CliError> {
    let context = Context::new(&[], None)?;
    terminal::warn_inert(&context.config);
    let all = context.config.sinks();
    let known: Vec<String> = all.iter().map(|(name, _)| name.clone()).collect();
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let chosen: Vec<_> = all.into_iter().filter(|(name, _)| wanted(name)).collect();
    if chosen.is_empty() {
        let given = SafeText::new(only.unwrap_or("…")).line(60);
        return Err(CliError::NoSink { given, known });
    }
    let engine = Engine::new(context.config.policy("request")?);
    let runtime = runtime()?;
    let mut tried = Vec::new();
    for (_, sink) in chosen {
        let sink = sink.map_err(CliError::Sink)?;
        let one = runtime.block_on(try_one(&engine, &context, sink, json));
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

async fn try_one(engine: &Engine, context: &Context, sink: Sink, json: bool) -> Tried {
    let (sink, credential) = match with_secret(sink.clone()) {
        Resolved::Sink(sink, credential) => (*sink, credential),
        Resolved::NoSecret { variable } => {
            let said = SafeText::new(format!("the variable {variable} is not set"));
            return Tried { sink, sent: false, said, attempts: 0 };
        }
        Resolved::Gone(said) => return Tried { sink, sent: false, said, attempts: 0 },
    };
    let now = context::now();
    let notice = notify_test(&SafeText::new(sink.name.as_str()), now);
    let about = About {
        severity: Severity::Low,
        reason: None,
        operation: "backstop notify test".into(),
        project: SafeText::new(context.project.to_string_lossy()),
        run: None,
        at: now,
    };
    let message = Message::new(&notice, about);
    if sink.kind == Kind::Terminal && !json {
        terminal::say(&message.plain);
    }
    let times = Times { count: 1, first: now, last: now, mixed: false };
    let (sent, said, attempts) = match deliver(engine, &sink, credential.as_ref(), &message, &times).await {
        Outcome::Sent { said, attempts } => (true, said, attempts),
        Outcome::Later { why, attempts, .. } | Outcome::Refused { why, attempts } => (false, why, attempts),
    };
    Tried { sink, sent, said, attempts }
}

fn said(context: &Context, one: &Tried) -> String {
    context.redactor.redact(one.said.raw()).into_owned()
}

fn line(context: &Context, one: &Tried) -> String {
    let how = if one.sent { "sent" } else { "not sent" };
    let attempts = if one.attempts > 1 { format!(", {} attempts", one.attempts) } else { String::new() };
    let (name, kind, place) =
        (&one.sink.name, one.sink.kind.name(), SafeText::new(one.sink.place()).line(100));
    let said = SafeText::new(said(context, one)).line(300);
    format!("{name} ({kind}, {place}): {how}: {said}{attempts}\n")
}

fn row(context: &Context, one: &Tried) -> Value {
    json!({
        "sink": one.sink.name, "type": one.sink.kind.name(), "place": one.sink.place(), "sent": one.sent,
        "said": said(context, one), "attempts": one.attempts,
    })
}
