//! The table of runs.

use super::{date, duration};
use crate::width::{pad, width};
use crate::{Style, table};
use backstop_core::{Outcome, Reason, RunId, SafeText, Timestamp};
use std::time::Duration;

/// How much of an operation is shown.
const OPERATION_CHARS_MAX: usize = 60;

/// A row of the table of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// The run.
    pub run: RunId,
    /// When it began.
    pub started: Timestamp,
    /// The operation.
    pub operation: SafeText,
    /// How it ended, if it has.
    pub outcome: Option<Outcome>,
    /// Whether it halted and can be resumed.
    pub halted: bool,
    /// The reason, where the outcome is not done.
    pub reason: Option<Reason>,
    /// How many attempts were made.
    pub attempts: u32,
    /// How long it took, if it has ended.
    pub duration: Option<Duration>,
}

/// The table of runs, in the given order.
pub fn runs_table(rows: &[RunRow], style: Style) -> String {
    if rows.is_empty() {
        return "nothing has been run in this project yet; `backstop exec -- COMMAND` runs a command\n"
            .to_owned();
    }
    let cells = |row: &RunRow| {
        vec![
            row.run.to_string(),
            date(row.started),
            row.outcome.map_or(if row.halted { "halted" } else { "running" }, Outcome::name).to_owned(),
            row.reason.map_or("-", Reason::code).to_owned(),
            row.attempts.to_string(),
            row.duration.map_or_else(|| "-".to_owned(), duration),
            style.marks(&row.operation.line(OPERATION_CHARS_MAX)),
        ]
    };
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let text = table(&["RUN", "STARTED", "OUTCOME", "REASON", "ATTEMPTS", "TIME", "OPERATION"], &rows);
    let (head, body) = text.split_once('\n').unwrap_or((&text, ""));
    format!("{}\n{body}", style.strong(head))
}

/// The table of runs of several projects, each run with its project, in the given order.
pub fn runs_table_of_projects(rows: &[(SafeText, RunRow)], style: Style) -> String {
    let runs: Vec<RunRow> = rows.iter().map(|(_, row)| row.clone()).collect();
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

    #[test]
    fn runs_stand_below_each_other() {
        let row = |run: &str, outcome, reason, operation: &str| RunRow {
            run: run.parse().unwrap(),
            started: Timestamp::from_millis(1_760_000_000_000),
            operation: operation.into(),
            outcome,
            halted: false,
            reason,
            attempts: 2,
            duration: outcome.map(|_| Duration::from_secs(41)),
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
