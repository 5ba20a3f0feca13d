//! Any plan in Backstop's own form: a table with a row for each phase, and a section for each.

use super::plan::{Phase, Plan};
use super::settings::{GateSetting, Limit, Settings};
use super::status::Status;
use backstop_work::CommandLine;
use std::fmt::Write;

/// The plan in Backstop's own form. What was read from it is read from this, too.
pub fn normalised(plan: &Plan) -> String {
    let mut out = String::new();
    out.push_str("| Phase | Name | Depends On | Parallel With | Estimate | Status |\n");
    out.push_str("|-------|------|------------|---------------|----------|--------|\n");
    let ids = |of: &[usize]| of.iter().map(|at| plan.phases[*at].id.shown()).collect::<Vec<_>>().join(", ");
    for phase in &plan.phases {
        let depends_on = if phase.depends_on.is_empty() { "-".to_owned() } else { ids(&phase.depends_on) };
        let estimate = phase.estimate.as_ref().map(|text| cell(text.raw())).unwrap_or_default();
        let status = match phase.status {
            Status::Complete => "✅",
            Status::Skipped => "⏭️",
            Status::Failed => "❌",
            Status::Blocked => "⏸️",
            Status::InProgress => "🔄",
            Status::NotStarted | Status::Unknown => "⬜",
        };
        let _ = writeln!(
            out,
            "| {} | {} | {depends_on} | {} | {estimate} | {status} |",
            phase.id,
            cell(phase.name.raw()),
            ids(&phase.parallel_with)
        );
    }
    for phase in &plan.phases {
        let _ = write!(out, "\n## Phase {}: {}\n\n", phase.id, one_line(phase.name.raw()));
        section(&mut out, phase);
        settings(&mut out, &phase.settings);
    }
    out
}

/// A phase's tasks, and its text as a quotation: nothing in it is structure any more.
fn section(out: &mut String, phase: &Phase) {
    for task in &phase.tasks {
        let mark = if task.done { "x" } else { " " };
        let _ = writeln!(out, "{}- [{mark}] {}", "  ".repeat(task.depth), one_line(task.text.raw()));
    }
    if !phase.tasks.is_empty() {
        out.push('\n');
    }
    for line in phase.section.raw().lines() {
        let _ = writeln!(out, "{}", format!("> {line}").trim_end());
    }
}

/// The settings of a phase as a block; the defaults of the plan are among them.
fn settings(out: &mut String, settings: &Settings) {
    let mut lines = Vec::new();
    // A string of JSON is one of TOML.
    let text = |text: &str| serde_json::Value::String(text.to_owned()).to_string();
    let list =
        |all: &[String]| format!("[{}]", all.iter().map(|one| text(one)).collect::<Vec<_>>().join(", "));
    let command = |command: &CommandLine| match command {
        CommandLine::Shell(line) => text(line),
        CommandLine::Argv(words) => list(words),
    };
    let limit = |limit: &Limit| match limit {
        Limit::None => text("none"),
        Limit::After(limit) => text(&format!("{}s", limit.as_secs())),
    };
    let gate = |gate: &GateSetting| match &gate.check {
        None => text(gate.name.as_str()),
        Some(check) => {
            let fix = gate.fix.as_ref().map(|fix| format!(", fix = {}", command(fix))).unwrap_or_default();
            let timeout =
                gate.timeout.as_ref().map(|one| format!(", timeout = {}", limit(one))).unwrap_or_default();
            format!("{{ name = {}, check = {}{fix}{timeout} }}", text(gate.name.as_str()), command(check))
        }
    };
    let mut add =
        |key: &str, value: Option<String>| lines.extend(value.map(|value| format!("{key} = {value}")));
    add("command", settings.command.as_ref().map(command));
    add("agent", settings.agent.as_deref().map(text));
    add("model", settings.model.as_deref().map(text));
    add(
        "gates",
        settings
            .gates
            .as_ref()
            .map(|gates| format!("[{}]", gates.iter().map(gate).collect::<Vec<_>>().join(", "))),
    );
    add("timeout", settings.timeout.as_ref().map(limit));
    add("idle", settings.idle.as_ref().map(limit));
    add("dir", settings.dir.as_deref().map(text));
    add("files", (!settings.files.is_empty()).then(|| list(&settings.files)));
    add("setup", settings.setup.as_ref().map(command));
    add("setup_inputs", (!settings.setup_inputs.is_empty()).then(|| list(&settings.setup_inputs)));
    add("protect", (!settings.protect.is_empty()).then(|| list(&settings.protect)));
    add("fallback_agents", settings.fallback_agents.as_deref().map(list));
    add("flaky", settings.flaky.map(|flaky| flaky.to_string()));
    add("message", settings.message.as_deref().map(text));
    add("repeatable", settings.repeatable.map(|repeatable| repeatable.to_string()));
    if !settings.env.is_empty() {
        let pairs = settings.env.iter().map(|(name, value)| format!("{} = {}", text(name), text(value)));
        add("env", Some(format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))));
    }
    if !lines.is_empty() {
        let _ = write!(out, "\n```backstop\n{}\n```\n", lines.join("\n"));
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text as a cell of a table: on one line, its pipes escaped.
fn cell(text: &str) -> String {
    one_line(text).replace('\\', "\\\\").replace('|', "\\|")
}
