//! `backstop tools list`, `search`, `show`, `refresh`.

use super::{make_known, warn_problems, with_toolbox};
use crate::error::{CliError, DONE, FAILED, usage};
use crate::terminal;
use backstop_config::LogFormat;
use backstop_core::nearest::nearest;
use backstop_core::{Name, SafeText};
use backstop_report::{JSON_SCHEMA, table, to_json};
use backstop_tools::{Catalogue, Tool, Toolbox};
use serde_json::{Value, json};
use std::sync::Arc;

/// How much of a description is shown in a table.
const DESCRIPTION_CHARS: usize = 70;

fn as_json(tool: &Tool) -> Value {
    json!({
        "tool": tool.name, "server": tool.server, "name": tool.tool,
        "description": tool.description, "read_only": tool.read_only, "repeatable": tool.repeatable,
        "category": tool.category(), "input_schema": tool.raw().get("inputSchema"),
        "schema_problem": tool.schema_problem(),
    })
}

fn print(
    tools: &[&Arc<Tool>],
    problems: &[backstop_tools::SetupProblem],
    json: bool,
) -> Result<u8, CliError> {
    if json {
        let rows: Vec<Value> = tools.iter().map(|tool| as_json(tool)).collect();
        let missing: Vec<Value> = problems
            .iter()
            .map(|problem| json!({ "server": problem.server, "what": problem.what, "next": problem.hint }))
            .collect();
        let all = json!({ "schema": JSON_SCHEMA, "tools": rows, "problems": missing });
        return terminal::print(&format!("{}\n", to_json(&all))).map(|()| DONE);
    }
    if tools.is_empty() {
        return terminal::print("there are no tools here\n").map(|()| DONE);
    }
    let row = |tool: &&Arc<Tool>| {
        let mark = if tool.read_only {
            "reads"
        } else if tool.repeatable {
            "repeatable"
        } else {
            "-"
        };
        vec![tool.name.clone(), mark.to_owned(), tool.description.line(DESCRIPTION_CHARS)]
    };
    let rows: Vec<Vec<String>> = tools.iter().map(row).collect();
    terminal::print(&table(&["TOOL", "EFFECT", "DESCRIPTION"], &rows)).map(|()| DONE)
}

/// A server by its name.
pub(super) fn server(toolbox: &Toolbox, given: &str) -> Result<Name, CliError> {
    let known = given.parse::<Name>().ok().filter(|name| toolbox.upstreams().contains_key(name));
    known.ok_or_else(|| {
        let problem = toolbox.problems().iter().find(|problem| problem.server == given);
        let near = nearest(given, toolbox.upstreams().keys().map(Name::as_str));
        let error = usage(format!("there is no MCP server `{}`", SafeText::new(given).line(60)));
        match (problem, near) {
            (Some(problem), _) => error.hint(format!("{}; {}", problem.what.line(200), problem.hint)),
            (None, Some(near)) => error.hint(format!("did you mean `{near}`?")),
            (None, None) => error.hint("servers are set up in backstop.toml as [mcp.NAME]; `backstop mcp import` finds those of other programs"),
        }
    })
}

pub(super) fn list(only: Option<&str>, json: bool, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    with_toolbox(log_format, async |toolbox, _| {
        let only = only.map(|given| server(&toolbox, given)).transpose()?;
        make_known(&toolbox, "tools list").await;
        let catalogue = toolbox.catalogue();
        let wanted = |tool: &&Arc<Tool>| only.as_ref().is_none_or(|only| tool.server == *only);
        print(&catalogue.tools().filter(wanted).collect::<Vec<_>>(), toolbox.problems(), json)
    })
}

pub(super) fn search(words: &str, json: bool, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    with_toolbox(log_format, async |toolbox, _| {
        make_known(&toolbox, "tools search").await;
        print(&toolbox.catalogue().search(words), toolbox.problems(), json)
    })
}

fn not_found(catalogue: &Catalogue, given: &str) -> CliError {
    let near = nearest(given, catalogue.tools().map(|tool| tool.name.as_str()));
    let error = usage(format!("Tool not found: {}", SafeText::new(given).line(80)));
    match near {
        Some(near) => {
            error.hint(format!("did you mean `{near}`? `backstop tools refresh` lists the tools anew"))
        }
        None => error.hint(
            "`backstop tools search WORD` looks for one; `backstop tools refresh` lists the tools anew",
        ),
    }
}

pub(super) fn show(name: &str, json: bool, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    with_toolbox(log_format, async |toolbox, cancel| {
        make_known(&toolbox, "tools show").await;
        if toolbox.catalogue().get(name).is_none()
            && let Some((prefix, _)) = name.split_once("__")
            && let Ok(server) = server(&toolbox, prefix)
        {
            let _ = toolbox.refresh(&server, &cancel).await;
        }
        let catalogue = toolbox.catalogue();
        let tool = catalogue.get(name).ok_or_else(|| not_found(&catalogue, name))?;
        if json {
            let mut all = as_json(tool);
            all["schema"] = JSON_SCHEMA.into();
            return terminal::print(&format!("{}\n", to_json(&all))).map(|()| DONE);
        }
        let mut text = format!("{}\n", tool.name);
        text.push_str(&format!(
            "server     {} ({})\n",
            tool.server,
            SafeText::new(tool.tool.as_str()).line(80)
        ));
        let effect = match (tool.read_only, tool.repeatable) {
            (true, _) => "only reads; a call may be repeated",
            (false, true) => "a call may be repeated",
            (false, false) => "a call may change something; it is repeated only after a confirmation",
        };
        text.push_str(&format!("effect     {effect}\n"));
        for (index, (param, kind)) in tool.parameters().iter().enumerate() {
            let label = if index == 0 { "parameters" } else { "" };
            let (param, kind) =
                (SafeText::new(param.as_str()).line(60), SafeText::new(kind.as_str()).line(120));
            text.push_str(&format!("{label:<10} {param}: {kind}\n"));
        }
        if let Some(problem) = tool.schema_problem() {
            text.push_str(&format!("schema     not checked here: {}\n", SafeText::new(problem).line(200)));
        }
        text.push_str(&format!("\n{}\n", tool.description));
        terminal::print(&text).map(|()| DONE)
    })
}

pub(super) fn refresh(given: &[String], json: bool, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    with_toolbox(log_format, async |toolbox, _| {
        let mut servers = Vec::new();
        for name in given {
            servers.push(server(&toolbox, name)?);
        }
        if servers.is_empty() {
            servers = toolbox.upstreams().keys().cloned().collect();
        }
        let answers = toolbox.refresh_all(servers, None).await;
        let catalogue = toolbox.catalogue();
        let count = |server: &Name| catalogue.tools().filter(|tool| tool.server == *server).count();
        let any_failed = answers.values().any(Result::is_err);
        let code = if any_failed { FAILED } else { DONE };
        if json {
            let row = |(server, answer): (&Name, &Result<bool, Box<backstop_core::Fault>>)| match answer {
                Ok(changed) => {
                    json!({ "server": server, "ok": true, "tools": count(server), "changed": changed, "fault": null })
                }
                Err(fault) => {
                    json!({ "server": server, "ok": false, "tools": count(server), "changed": false, "fault": fault })
                }
            };
            let rows: Vec<Value> = answers.iter().map(row).collect();
            let all = json!({ "schema": JSON_SCHEMA, "servers": rows });
            return terminal::print(&format!("{}\n", to_json(&all))).map(|()| code);
        }
        warn_problems(&toolbox);
        if answers.is_empty() {
            return terminal::print("there are no MCP servers here\n").map(|()| DONE);
        }
        for (server, answer) in &answers {
            if let Err(fault) = answer {
                let cause = fault.cause.as_ref().map(|cause| cause.line(300)).unwrap_or_default();
                let what = format!("{server} does not answer ({}): {cause}", fault.reason);
                terminal::warn(&what, Some(&fault.suggested_action.line(300)));
            }
        }
        let row = |(server, answer): (&Name, &Result<bool, Box<backstop_core::Fault>>)| {
            let state = match answer {
                Ok(true) => "changed",
                Ok(false) => "unchanged",
                Err(_) => "failed",
            };
            vec![server.to_string(), count(server).to_string(), state.to_owned()]
        };
        let rows: Vec<Vec<String>> = answers.iter().map(row).collect();
        terminal::print(&table(&["SERVER", "TOOLS", "STATE"], &rows)).map(|()| code)
    })
}
