//! `backstop notify test`: a message through each sink, now, and what came of it.

use crate::error::{CliError, DONE, FAILED, usage};
use crate::process;
use crate::terminal;
use backstop_core::{SafeText, Severity};
use backstop_engine::Engine;
use backstop_notify::{About, DeliveryOutcome, Message, Resolved, Sink, SinkKind, Times, deliver};
use backstop_report::{JSON_SCHEMA, notify_test, to_json};
use backstop_runtime::Project;
use backstop_runtime::aftermath::sender::{runtime, with_secret};
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
    let project = process::open(&[], None)?;
    terminal::warn_inert(&project.config);
    let all = backstop_notify::sinks(&project.config);
    let known: Vec<String> = all.iter().map(|(name, _)| name.clone()).collect();
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let chosen: Vec<_> = all.into_iter().filter(|(name, _)| wanted(name)).collect();
    if chosen.is_empty() {
        let given = only.map(|name| SafeText::new(name).line(60));
        return Err(no_sink(given, &known));
    }
    let engine = Engine::new(project.config.policy("request")?);
    let runtime = runtime(&project)?;
    let mut tried = Vec::new();
    for (name, sink) in chosen {
        let one = match sink {
            Ok(sink) => runtime.block_on(try_one(&engine, &project, name, sink)),
            Err(error) => {
                let (said, hint) = (SafeText::new(error.to_string()), Some(error.hint()));
                Tried { name, sink: None, sent: false, said, hint, attempts: 0 }
            }
        };
        if !json {
            terminal::print(&line(&project, &one))?;
        }
        tried.push(one);
    }
    if json {
        let rows: Vec<Value> = tried.iter().map(|one| row(&project, one)).collect();
        terminal::print(&format!("{}\n", to_json(&json!({ "schema": JSON_SCHEMA, "sinks": rows }))))?;
    }
    Ok(if tried.iter().all(|one| one.sent) { DONE } else { FAILED })
}

fn no_sink(given: Option<String>, known: &[String]) -> CliError {
    let what = match given {
        Some(given) => format!("there is no sink `{given}`"),
        None => "no sink is configured here".to_owned(),
    };
    usage(what).hint(if known.is_empty() {
        "for example: `[notify.here]` with `type = \"terminal\"` in the configuration; `backstop config keys` lists what a sink has"
            .to_owned()
    } else {
        format!("sinks are {}", known.join(", "))
    })
}

async fn try_one(engine: &Engine, project: &Project, name: String, sink: Sink) -> Tried {
    let mut tried = Tried {
        name,
        sink: Some(sink.clone()),
        sent: false,
        said: SafeText::default(),
        hint: None,
        attempts: 0,
    };
    let (sink, credential) = match with_secret(project, sink) {
        Resolved::Sink(sink, credential) => (*sink, credential),
        Resolved::NoSecret { variable } => {
            tried.said = SafeText::new(format!("the variable {variable} is not set"));
            tried.hint =
                Some(format!("`export {variable}=…`, where the commands run that are to tell somebody"));
            return tried;
        }
        Resolved::Gone(said) => return Tried { said, ..tried },
    };
    let now = process::now();
    let notice = notify_test(&SafeText::new(sink.name.as_str()), now);
    let about = About {
        outcome: "test".to_owned(),
        severity: Severity::Low,
        reason: None,
        operation: "backstop notify test".into(),
        project: SafeText::new(project.root.to_string_lossy()),
        run: None,
        at: now,
    };
    let message = Message::new(&notice, about);
    if sink.kind == SinkKind::Terminal {
        terminal::say(&message.plain);
    }
    let times = Times { count: 1, first: now, last: now, mixed: false, names: Vec::new() };
    (tried.sent, tried.said, tried.attempts) =
        match deliver(engine, &sink, credential.as_ref(), &message, &times).await {
            DeliveryOutcome::Sent { response, attempts } => (true, response, attempts),
            DeliveryOutcome::Later { why, attempts, .. } | DeliveryOutcome::Refused { why, attempts } => {
                (false, why, attempts)
            }
        };
    tried
}

fn said(project: &Project, one: &Tried) -> String {
    project.redactor.redact(one.said.raw()).into_owned()
}

fn line(project: &Project, one: &Tried) -> String {
    let how = if one.sent { "sent" } else { "not sent" };
    let attempts = if one.attempts > 1 { format!(", {} attempts", one.attempts) } else { String::new() };
    let what = one
        .sink
        .as_ref()
        .map(|sink| format!(" ({}, {})", sink.kind.name(), SafeText::new(sink.place()).line(100)));
    let said = SafeText::new(said(project, one)).line(300);
    let hint = one.hint.as_ref().map(|hint| format!("  hint: {hint}\n")).unwrap_or_default();
    let name = SafeText::new(one.name.clone()).line(60);
    format!("{name}{}: {how}: {said}{attempts}\n{hint}", what.unwrap_or_default())
}

fn row(project: &Project, one: &Tried) -> Value {
    let sink = one.sink.as_ref();
    json!({
        "sink": one.name, "type": sink.map(|sink| sink.kind.name()), "place": sink.map(Sink::place), "sent": one.sent,
        "said": said(project, one), "hint": one.hint, "attempts": one.attempts,
    })
}
