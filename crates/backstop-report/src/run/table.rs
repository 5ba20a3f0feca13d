//! The list of runs.

use super::{date, duration};
use crate::width::{pad, width};
use crate::{JSON_SCHEMA, Style, View, table};
use backstop_core::{Outcome, Reason, RunState, RunSummary, SafeText};
use serde_json::{Value, json};
use std::time::Duration;

/// How much of an operation is shown.
const OPERATION_CHARS_MAX: usize = 60;

/// Runs, in the given order.
#[derive(Debug, Clone, PartialEq)]
pub enum RunList {
    /// Of one project.
    Project(Vec<RunSummary>),
    /// Of several projects, each run with its project's folder.
    Projects(Vec<(SafeText, RunSummary)>),
}

impl View for RunList {
    fn text(&self, style: Style) -> String {
        match self {
            Self::Project(runs) => runs_table(runs, style),
            Self::Projects(runs) => runs_table_of_projects(runs, style),
        }
    }

    fn json(&self) -> Value {
        let rows: Vec<Value> = match self {
            Self::Project(runs) => runs.iter().map(summary_json).collect(),
            Self::Projects(runs) => runs
                .iter()
                .map(|(project, run)| {
                    let mut row = summary_json(run);
                    row["project"] = json!(project);
                    row
                })
                .collect(),
        };
        json!({ "schema": JSON_SCHEMA, "runs": rows })
    }
}

fn summary_json(run: &RunSummary) -> Value {
    json!({
        "run": run.id, "state": run.state.name(), "surface": run.surface, "session": run.session,
        "caller": run.caller, "parent": run.parent, "operation": run.operation, "folder": run.folder,
        "profile": run.profile, "started_at": run.started_at, "ended_at": run.ended_at,
        "outcome": run.outcome, "reason": run.reason, "attempts": run.attempts, "exit": run.exit,
        "duration_ms": run.duration_ms, "next": run.next, "events": run.events,
    })
}

/// The table of runs, in the given order.
fn runs_table(rows: &[RunSummary], style: Style) -> String {
    if rows.is_empty() {
        return "nothing has been run in this project yet; `backstop exec -- COMMAND` runs a command\n"
            .to_owned();
    }
    let cells = |run: &RunSummary| {
        let going_on = if run.state == RunState::Halted { "halted" } else { "running" };
        let reason = run.reason.filter(|_| run.outcome != Some(Outcome::Done));
        let operation = run.operation.clone().unwrap_or_default();
        let took = run.duration_ms.map(Duration::from_millis);
        vec![
            run.id.to_string(),
            date(run.started_at),
            run.outcome.map_or(going_on, Outcome::name).to_owned(),
            reason.map_or("-", Reason::code).to_owned(),
            run.attempts.to_string(),
            took.map_or_else(|| "-".to_owned(), duration),
            style.marks(&operation.line(OPERATION_CHARS_MAX)),
        ]
    };
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let text = table(&["RUN", "STARTED", "OUTCOME", "REASON", "ATTEMPTS", "TIME", "OPERATION"], &rows);
    let (head, body) = text.split_once('\n').unwrap_or((&text, ""));
    format!("{}\n{body}", style.strong(head))
}

/// The table of runs of several projects, each run with its project, in the given order.
fn runs_table_of_projects(rows: &[(SafeText, RunSummary)], style: Style) -> String {
    let runs: Vec<RunSummary> = rows.iter().map(|(_, row)| row.clone()).collect();
    let text = runs_table(&runs, Style { colour: false, ..style });
    if rows.is_empty() {
        return text;
    }
    let projects: Vec<String> = rows.iter().map(|(project, _)| project.line(OPERATION_CHARS_MAX)).collect();
    let columns = projects.iter().map(|project| width(project)).max().unwrap_or(0).max("PROJECT".len());
    let names = std::iter::once("PROJECT").chain(projects.iter().map(String::as_str));
    let mut lines =
        names.zip(text.lines()).map(|(project, line)| format!("{}  {line}", pad(project, columns)));
    let head = lines.next().unwrap_or_default();
    let body: String = lines.map(|line| format!("{line}\n")).collect();
    format!("{}\n{body}", style.strong(&head))
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::{ProcessId, Timestamp};

    #[test]
    fn runs_stand_below_each_other() {
        let row = |run: &str, outcome: Option<Outcome>, reason, operation: &str| RunSummary {
            id: run.parse().unwrap(),
            events: 3,
            state: if outcome.is_some() { RunState::Ended } else { RunState::Open },
            surface: "exec".to_owned(),
            session: None,
            caller: None,
            parent: None,
            process: ProcessId { pid: 7, start: 1 },
            operation: Some(operation.into()),
            folder: None,
            profile: None,
            started_at: Timestamp::from_millis(1_760_000_000_000),
            ended_at: None,
            outcome,
            reason,
            attempts: 2,
            exit: None,
            duration_ms: outcome.map(|_| 41_000),
            next: None,
        };
        let rows = [
            row("r-7f3a", Some(Outcome::Done), None, "npm ci"),
            row("r-7f3b", Some(Outcome::Failed), Some(Reason::TestFailure), "cargo test\n\x1b[2J"),
            row("r-7f3c", None, None, &"x".repeat(100)),
        ];
        insta::assert_snapshot!(runs_table(&rows, Style::PLAIN), @r"
        RUN     STARTED                  OUTCOME  REASON        ATTEMPTS  TIME  OPERATION
        r-7f3a  2025-10-09 08:53:20 UTC  done     -             2         41 s  npm ci
        r-7f3b  2025-10-09 08:53:20 UTC  failed   test_failure  2         41 s  cargo test \e[2J
        r-7f3c  2025-10-09 08:53:20 UTC  running  -             2         -     xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
        ");
        assert!(runs_table(&[], Style::PLAIN).starts_with("nothing has been run"));
    }
}
