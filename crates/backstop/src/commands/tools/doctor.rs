//! `backstop tools doctor`: whether each server works, and what is odd about it.

use super::list::server;
use super::with_toolbox;
use crate::error::{CliError, DONE, FAILED};
use crate::terminal;
use backstop_config::LogFormat;
use backstop_core::{Name, SafeText};
use backstop_report::{JSON_SCHEMA, near_time, to_json};
use backstop_tools::{CacheState, Toolbox};
use serde_json::{Value, json};

/// What was found out about one server.
struct Checked {
    server: String,
    ok: bool,
    tools: usize,
    /// What is wrong, or worth a look.
    notes: Vec<String>,
    next: Option<String>,
}

pub(super) fn run(given: &[String], json: bool, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    with_toolbox(log_format, async |toolbox, _| {
        let mut servers = Vec::new();
        for name in given {
            servers.push(server(&toolbox, name)?);
        }
        if servers.is_empty() {
            servers = toolbox.upstreams().keys().cloned().collect();
        }
        let answers = toolbox.refresh_all(servers, None).await;
        let mut checked = Vec::new();
        for (name, answer) in &answers {
            checked.push(check(&toolbox, name, answer.as_ref().err().map(|fault| &**fault)).await);
        }
        if given.is_empty() {
            checked.extend(toolbox.problems().iter().map(|problem| Checked {
                server: problem.server.clone(),
                ok: false,
                tools: 0,
                notes: vec![problem.what.line(300)],
                next: Some(problem.hint.clone()),
            }));
        }
        tell(&toolbox, &checked, json)
    })
}

async fn check(toolbox: &Toolbox, name: &Name, fault: Option<&backstop_core::Fault>) -> Checked {
    let catalogue = toolbox.catalogue();
    let tools: Vec<_> = catalogue.tools().filter(|tool| tool.server == *name).collect();
    let mut notes = Vec::new();
    if let Some(fault) = fault {
        let cause = fault.cause.as_ref().map(|cause| cause.line(500)).unwrap_or_default();
        notes.push(format!("{}: {cause}", fault.reason));
    }
    if let Some(listing) = catalogue.listings().get(name) {
        if listing.left_out > 0 {
            notes.push(format!("{} more tools are left out: there are too many", listing.left_out));
        }
        let now = crate::process::now();
        notes.extend(listing.changes.iter().map(|change| {
            let tool = SafeText::new(change.tool.as_str()).line(60);
            format!("{} of {tool} changed, noticed {}", change.what.join(" and "), near_time(change.at, now))
        }));
    }
    for tool in &tools {
        if let Some(problem) = tool.schema_problem() {
            let problem = SafeText::new(problem).line(200);
            notes.push(format!("the arguments of {} are not checked: {problem}", tool.name));
        }
    }
    if let Some(upstream) = toolbox.upstreams().get(name) {
        let state = upstream.state().await;
        if state.unreadable > 0 {
            notes.push(format!("it wrote {} lines that are no message", state.unreadable));
        }
        if state.stray_answers > 0 {
            notes.push(format!("it gave {} answers to nothing", state.stray_answers));
        }
        notes.push(format!("set up by {}", SafeText::new(upstream.origin.as_str()).line(200)));
    }
    let next = fault.map(|fault| fault.suggested_action.line(300));
    Checked { server: name.to_string(), ok: fault.is_none(), tools: tools.len(), notes, next }
}

fn tell(toolbox: &Toolbox, checked: &[Checked], json: bool) -> Result<u8, CliError> {
    let code = if checked.iter().all(|server| server.ok) { DONE } else { FAILED };
    let cache = match toolbox.cache_state() {
        CacheState::Read => "read".to_owned(),
        CacheState::Missing => "missing".to_owned(),
        CacheState::Invalid(why) => format!("invalid: {}", SafeText::new(why.as_str()).line(200)),
    };
    if json {
        let row = |server: &Checked| {
            json!({
                "server": server.server, "ok": server.ok, "tools": server.tools, "notes": server.notes,
                "next": server.next,
            })
        };
        let rows: Vec<Value> = checked.iter().map(row).collect();
        let all = json!({ "schema": JSON_SCHEMA, "ok": code == DONE, "cache": cache, "servers": rows });
        return terminal::print(&format!("{}\n", to_json(&all))).map(|()| code);
    }
    let mut text = format!("cache  {cache}\n");
    if checked.is_empty() {
        text.push_str("there are no MCP servers here; `backstop mcp import` finds those of other programs\n");
    }
    for server in checked {
        let mark = if server.ok { "ok    " } else { "failed" };
        let name = SafeText::new(server.server.as_str()).line(80);
        text.push_str(&format!("{mark} {name}: {} tools\n", server.tools));
        for note in &server.notes {
            text.push_str(&format!("       {note}\n"));
        }
        if let Some(next) = &server.next {
            text.push_str(&format!("       next: {next}\n"));
        }
    }
    terminal::print(&text).map(|()| code)
}
