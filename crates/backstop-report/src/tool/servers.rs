//! Lists of MCP servers and their tools, as people read them and as JSON.
//!
//! Values enter, text leaves. Names and descriptions are text from outside.

use super::REFRESH;
use crate::{JSON_SCHEMA, table};
use backstop_core::{Fault, SafeText};
use serde_json::{Value, json};

/// How much of a description is shown in a table.
const DESCRIPTION_CHARS: usize = 70;

/// What to do where no MCP server is set up.
pub const NO_SERVERS: &str = "\
no MCP servers are set up here
next: name one in backstop.toml, then run `backstop trust`:

    [mcp.time]
    command = \"uvx\"
    args = [\"mcp-server-time\"]

`backstop mcp import` shows the servers that other programs have; `backstop init --mcp` moves them here
";

/// The same in one line, as part of a sentence.
pub const NO_SERVERS_LINE: &str = "no MCP servers are set up here: name one in backstop.toml as [mcp.NAME], \
     or look at `backstop mcp import`";

/// A tool in a list.
#[derive(Debug, Clone)]
pub struct ToolRow {
    /// The name that callers use.
    pub name: String,
    /// The server that has it.
    pub server: String,
    /// The name that the server uses.
    pub tool: SafeText,
    /// What it is for.
    pub description: SafeText,
    /// Whether it changes nothing.
    pub read_only: bool,
    /// Whether a second call does no more than the first.
    pub repeatable: bool,
    /// The kind that its advice is chosen by.
    pub category: Option<String>,
    /// Its parameters: name and type.
    pub parameters: Vec<(SafeText, SafeText)>,
    /// Its schema as the server gave it.
    pub input_schema: Option<Value>,
    /// Why its arguments are not checked, where they are not.
    pub schema_problem: Option<SafeText>,
}

/// A server whose tools are missing because of how it is set up.
#[derive(Debug, Clone)]
pub struct MissingServer {
    /// Its name in the settings.
    pub server: String,
    /// What is wrong.
    pub what: SafeText,
    /// What to do.
    pub next: String,
}

fn tool_json(tool: &ToolRow) -> Value {
    json!({
        "tool": tool.name, "server": tool.server, "name": tool.tool, "description": tool.description,
        "read_only": tool.read_only, "repeatable": tool.repeatable, "category": tool.category,
        "input_schema": tool.input_schema, "schema_problem": tool.schema_problem,
    })
}

/// A list of tools for programs.
pub fn tools_json(tools: &[ToolRow], missing: &[MissingServer]) -> Value {
    let problem = |one: &MissingServer| json!({ "server": one.server, "what": one.what, "next": one.next });
    json!({
        "schema": JSON_SCHEMA,
        "tools": tools.iter().map(tool_json).collect::<Vec<_>>(),
        "problems": missing.iter().map(problem).collect::<Vec<_>>(),
    })
}

/// A list of tools for people. `servers` is how many servers are set up.
pub fn tools_table(tools: &[ToolRow], servers: usize) -> String {
    if tools.is_empty() && servers == 0 {
        return NO_SERVERS.to_owned();
    }
    if tools.is_empty() {
        return format!(
            "no tools were found; `{REFRESH}` asks the servers, `backstop tools doctor` checks them\n"
        );
    }
    let effect = |tool: &ToolRow| match (tool.read_only, tool.repeatable) {
        (true, _) => "reads",
        (false, true) => "repeatable",
        (false, false) => "-",
    };
    let row = |tool: &ToolRow| {
        vec![tool.name.clone(), effect(tool).to_owned(), tool.description.line(DESCRIPTION_CHARS)]
    };
    table(&["TOOL", "EFFECT", "DESCRIPTION"], &tools.iter().map(row).collect::<Vec<_>>())
}

/// One tool for programs.
pub fn tool_page_json(tool: &ToolRow) -> Value {
    let mut page = tool_json(tool);
    page["schema"] = JSON_SCHEMA.into();
    page
}

/// One tool for people: its parameters, and whether a call may be repeated.
pub fn tool_page(tool: &ToolRow) -> String {
    let effect = match (tool.read_only, tool.repeatable) {
        (true, _) => "only reads; a call may be repeated",
        (false, true) => "a call may be repeated",
        (false, false) => "a call may change something; it is repeated only after a confirmation",
    };
    let mut text = format!("{}\nserver     {} ({})\n", tool.name, tool.server, tool.tool.line(80));
    text.push_str(&format!("effect     {effect}\n"));
    for (index, (param, kind)) in tool.parameters.iter().enumerate() {
        let label = if index == 0 { "parameters" } else { "" };
        text.push_str(&format!("{label:<10} {}: {}\n", param.line(60), kind.line(120)));
    }
    if let Some(problem) = &tool.schema_problem {
        text.push_str(&format!("schema     not checked here: {}\n", problem.line(200)));
    }
    text.push_str(&format!("\n{}\n", tool.description));
    text
}

/// What became of a server that was asked for its tools.
#[derive(Debug, Clone)]
pub struct RefreshedServer {
    /// Its name in the settings.
    pub server: String,
    /// How many tools of it are known now.
    pub tools: usize,
    /// Whether its list is another one than before, or why it did not answer.
    pub changed: Result<bool, Box<Fault>>,
}

/// The servers that were asked for their tools, for programs.
pub fn refreshed_json(servers: &[RefreshedServer]) -> Value {
    let row = |one: &RefreshedServer| {
        json!({
            "server": one.server, "ok": one.changed.is_ok(), "tools": one.tools,
            "changed": *one.changed.as_ref().unwrap_or(&false), "fault": one.changed.as_ref().err(),
        })
    };
    json!({ "schema": JSON_SCHEMA, "servers": servers.iter().map(row).collect::<Vec<_>>() })
}

/// The same for people.
pub fn refreshed_table(servers: &[RefreshedServer]) -> String {
    if servers.is_empty() {
        return NO_SERVERS.to_owned();
    }
    let state = |one: &RefreshedServer| match one.changed {
        Ok(true) => "changed",
        Ok(false) => "unchanged",
        Err(_) => "failed",
    };
    let row = |one: &RefreshedServer| vec![one.server.clone(), one.tools.to_string(), state(one).to_owned()];
    table(&["SERVER", "TOOLS", "STATE"], &servers.iter().map(row).collect::<Vec<_>>())
}

/// What was found out about one server.
#[derive(Debug, Clone)]
pub struct CheckedServer {
    /// Its name in the settings.
    pub server: String,
    /// Whether it works.
    pub ok: bool,
    /// How many tools of it are known.
    pub tools: usize,
    /// What is wrong, or worth a look.
    pub notes: Vec<String>,
    /// What to do where it does not work.
    pub next: Option<String>,
}

/// Checked servers for programs. `cache` says whether the lists on disk could be used.
pub fn checked_json(cache: &str, servers: &[CheckedServer]) -> Value {
    let row = |one: &CheckedServer| json!({ "server": one.server, "ok": one.ok, "tools": one.tools, "notes": one.notes, "next": one.next });
    json!({
        "schema": JSON_SCHEMA, "ok": servers.iter().all(|server| server.ok), "cache": cache,
        "servers": servers.iter().map(row).collect::<Vec<_>>(),
    })
}

/// The same for people.
pub fn checked_text(cache: &str, servers: &[CheckedServer]) -> String {
    let mut text = format!("cache  {cache}\n");
    if servers.is_empty() {
        text.push_str(NO_SERVERS);
    }
    for server in servers {
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
    text
}

/// The MCP servers in one settings file of another program.
#[derive(Debug, Clone)]
pub struct ImportedFile {
    /// The program.
    pub program: &'static str,
    /// Its file.
    pub file: SafeText,
    /// Servers that can be used.
    pub servers: Vec<String>,
    /// Servers that cannot, and why.
    pub left_out: Vec<(SafeText, SafeText)>,
    /// Why the file cannot be read, where it cannot.
    pub error: Option<SafeText>,
}

/// Other programs' servers for programs.
pub fn imported_json(files: &[ImportedFile]) -> Value {
    let row = |one: &ImportedFile| {
        let left_out = one.left_out.iter().map(|(name, why)| json!({ "name": name, "why": why }));
        json!({
            "program": one.program, "file": one.file, "error": one.error, "servers": one.servers,
            "left_out": left_out.collect::<Vec<_>>(),
        })
    };
    json!({ "schema": JSON_SCHEMA, "found": files.iter().map(row).collect::<Vec<_>>() })
}

/// The same for people.
pub fn imported_table(files: &[ImportedFile]) -> String {
    if files.is_empty() {
        return "no other program's MCP servers were found here\n".to_owned();
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for one in files {
        let file = one.file.line(120);
        let mut row = |server: String, state: String| {
            rows.push(vec![one.program.to_owned(), server, state, file.clone()]);
        };
        for name in &one.servers {
            row(name.clone(), "can be used".to_owned());
        }
        for (name, why) in &one.left_out {
            row(name.line(40), why.line(60));
        }
        if let Some(error) = &one.error {
            row("-".to_owned(), error.line(80));
        }
    }
    let table = table(&["PROGRAM", "SERVER", "STATE", "FILE"], &rows);
    format!("{table}\nTo use them, name the program in backstop.toml:\n\n[mcp]\nfrom = [\"PROGRAM\"]\n")
}

/// How far a step of a chain got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepState {
    /// It was done by an earlier run of the chain.
    DoneBefore,
    /// It is done.
    Done,
    /// It failed.
    Failed,
    /// A step before it failed.
    NotBegun,
}

/// The steps of a chain, one a line.
pub fn chain_steps<'s>(steps: impl IntoIterator<Item = (&'s str, &'s str, StepState)>) -> String {
    let line = |(id, tool, state): (&str, &str, StepState)| {
        let state = match state {
            StepState::DoneBefore => "done before",
            StepState::Done => "done",
            StepState::Failed => "failed",
            StepState::NotBegun => "not begun",
        };
        format!("{}: {}: {state}\n", SafeText::new(id).line(40), SafeText::new(tool).line(80))
    };
    steps.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_is_set_up_the_next_step_is_named() {
        let words = [tools_table(&[], 0), refreshed_table(&[]), checked_text("missing", &[])];
        for text in words {
            assert!(text.contains("[mcp.time]") && text.contains("backstop mcp import"), "{text}");
        }
        assert!(tools_table(&[], 2).contains("tools doctor"));
    }

    #[test]
    fn nothing_from_outside_reaches_the_terminal_as_it_is() {
        let evil = "a\u{1b}[31m\u{202e}b\nc";
        let tool = ToolRow {
            name: "s__t".to_owned(),
            server: "s".to_owned(),
            tool: SafeText::new(evil),
            description: SafeText::new(evil),
            read_only: false,
            repeatable: false,
            category: None,
            parameters: vec![(SafeText::new(evil), SafeText::new(evil))],
            input_schema: None,
            schema_problem: Some(SafeText::new(evil)),
        };
        let file = ImportedFile {
            program: "claude",
            file: SafeText::new(evil),
            servers: Vec::new(),
            left_out: vec![(SafeText::new(evil), SafeText::new(evil))],
            error: Some(SafeText::new(evil)),
        };
        let steps = chain_steps([(evil, evil, StepState::NotBegun)]);
        for text in [tool_page(&tool), tools_table(&[tool], 1), imported_table(&[file]), steps] {
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
        }
    }
}
