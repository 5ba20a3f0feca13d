//! `backstop tools list`, `search`, `show`, `refresh`, `doctor`.

use super::{make_known, with_toolbox};
use crate::error::{CliError, DONE, FAILED, usage};
use crate::terminal;
use backstop_config::LogFormat;
use backstop_core::SafeText;
use backstop_core::nearest::nearest;
use backstop_report::{
    ToolRow, checked_json, checked_text, refreshed_json, refreshed_table, to_json, tool_page, tool_page_json,
    tools_json, tools_table,
};
use backstop_tools::{Catalogue, Toolbox, fault_warning};
use serde_json::Value;

/// Prints JSON where it is asked for, else text.
fn print(json: bool, value: impl FnOnce() -> Value, text: impl FnOnce() -> String) -> Result<(), CliError> {
    terminal::print(&if json { format!("{}\n", to_json(&value())) } else { text() })
}

fn print_tools(toolbox: &Toolbox, tools: &[ToolRow], json: bool) -> Result<u8, CliError> {
    let servers = toolbox.upstreams().len() + toolbox.problems().len();
    print(json, || tools_json(tools, &toolbox.missing()), || tools_table(tools, servers)).map(|()| DONE)
}

pub(super) fn list(only: Option<&str>, json: bool, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    with_toolbox(log_format, async |toolbox, _| {
        let only = only.map(|given| toolbox.server_named(given)).transpose()?;
        make_known(&toolbox, "tools list").await;
        let catalogue = toolbox.catalogue();
        let wanted = catalogue.tools().filter(|tool| only.as_ref().is_none_or(|only| tool.server == *only));
        print_tools(&toolbox, &wanted.map(|tool| tool.row()).collect::<Vec<_>>(), json)
    })
}

pub(super) fn search(words: &str, json: bool, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    with_toolbox(log_format, async |toolbox, _| {
        make_known(&toolbox, "tools search").await;
        let found: Vec<ToolRow> =
            toolbox.catalogue().search(words).into_iter().map(|tool| tool.row()).collect();
        print_tools(&toolbox, &found, json)
    })
}

fn not_found(catalogue: &Catalogue, given: &str) -> CliError {
    let near = nearest(given, catalogue.tools().map(|tool| tool.name.as_str()));
    let look = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`backstop tools search WORD` looks for one;".to_owned(),
    };
    usage(format!("Tool not found: {}", SafeText::new(given).line(80)))
        .hint(format!("{look} `backstop tools refresh` lists the tools anew"))
}

pub(super) fn show(name: &str, json: bool, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    with_toolbox(log_format, async |toolbox, cancel| {
        make_known(&toolbox, "tools show").await;
        if toolbox.catalogue().get(name).is_none()
            && let Some(server) = toolbox.server_of_tool(name).cloned()
        {
            let _ = toolbox.refresh(&server, &cancel).await;
        }
        let catalogue = toolbox.catalogue();
        let tool = catalogue.get(name).ok_or_else(|| not_found(&catalogue, name))?.row();
        print(json, || tool_page_json(&tool), || tool_page(&tool)).map(|()| DONE)
    })
}

pub(super) fn refresh(given: &[String], json: bool, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    with_toolbox(log_format, async |toolbox, _| {
        let refreshed = toolbox.refresh_servers(toolbox.servers_named(given)?).await;
        if !json {
            let failed = refreshed.iter().filter_map(|one| Some((&one.server, one.changed.as_ref().err()?)));
            let failed =
                failed.map(|(server, fault)| fault_warning(&format!("{server} does not answer"), fault));
            for (what, hint) in toolbox.setup_warnings().into_iter().chain(failed) {
                terminal::warn(&what, hint.as_deref());
            }
        }
        print(json, || refreshed_json(&refreshed), || refreshed_table(&refreshed))?;
        Ok(if refreshed.iter().all(|one| one.changed.is_ok()) { DONE } else { FAILED })
    })
}

pub(super) fn doctor(given: &[String], json: bool, log_format: Option<LogFormat>) -> Result<u8, CliError> {
    with_toolbox(log_format, async |toolbox, _| {
        let mut checked = toolbox.check(toolbox.servers_named(given)?).await;
        if given.is_empty() {
            checked.extend(toolbox.check_setup());
        }
        let cache = toolbox.cache_words();
        print(json, || checked_json(&cache, &checked), || checked_text(&cache, &checked))?;
        Ok(if checked.iter().all(|server| server.ok) { DONE } else { FAILED })
    })
}
