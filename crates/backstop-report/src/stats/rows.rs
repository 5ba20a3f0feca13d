//! Statistics as a table by reason, class, operation or day.

use super::{StatsBy, StatsReport, day, duration_text, percent, stats};
use crate::{Style, table};
use backstop_core::Counts;

/// How much of an operation is shown.
const NAME_CHARS_MAX: usize = 60;

/// The statistics as a table. Reasons and classes have no attempts of their own: they have a share
/// of all errors instead of a failure rate.
pub fn stats_by(report: &StatsReport, by: StatsBy, style: Style) -> String {
    if report.stats.is_empty() {
        return stats(report, style);
    }
    let text = match by {
        StatsBy::Reason => of_errors(
            "REASON",
            report.stats.reasons.iter().map(|(r, t)| (r.to_string(), t)),
            &report.stats.total,
        ),
        StatsBy::Class => {
            let classes = report.stats.classes();
            of_errors("CLASS", classes.iter().map(|(c, t)| (c.to_string(), t)), &report.stats.total)
        }
        StatsBy::Operation => {
            let name = |name: &backstop_core::SafeText| style.marks(&name.line(NAME_CHARS_MAX));
            of_attempts("OPERATION", report.stats.operations.iter().map(|(o, t)| (name(o), t)))
        }
        StatsBy::Day => of_attempts("DAY", report.stats.days.iter().rev().map(|(d, t)| (day(*d), t))),
    };
    let (head, body) = text.split_once('\n').unwrap_or((&text, ""));
    let more = match (by, report.stats.operations_left_out) {
        (StatsBy::Operation, 1..) => format!("and {} more\n", report.stats.operations_left_out),
        _ => String::new(),
    };
    format!("{}\n{body}{more}", style.strong(head))
}

fn of_errors<'t>(name: &str, rows: impl Iterator<Item = (String, &'t Counts)>, total: &Counts) -> String {
    let row = |(name, tally): (String, &Counts)| {
        vec![
            name,
            tally.errors.to_string(),
            percent(tally.errors, total.errors),
            tally.retried.to_string(),
            tally.cured.to_string(),
            duration_text(tally.failed_ms),
            duration_text(tally.waited_ms),
        ]
    };
    let rows: Vec<Vec<String>> = rows.map(row).collect();
    if rows.is_empty() {
        return "no error was recorded\n".to_owned();
    }
    table(&[name, "ERRORS", "SHARE", "RETRIED", "CURED", "FAILED FOR", "WAITED"], &rows)
}

fn of_attempts<'t>(name: &str, rows: impl Iterator<Item = (String, &'t Counts)>) -> String {
    let row = |(name, tally): (String, &Counts)| {
        vec![
            name,
            tally.attempts.to_string(),
            tally.failed().to_string(),
            percent(tally.failed(), tally.attempts),
            tally.retried.to_string(),
            tally.cured.to_string(),
            duration_text(tally.failed_ms),
            duration_text(tally.waited_ms.saturating_add(tally.guard_ms)),
        ]
    };
    let rows: Vec<Vec<String>> = rows.map(row).collect();
    table(&[name, "ATTEMPTS", "FAILED", "RATE", "RETRIED", "CURED", "FAILED FOR", "WAITED"], &rows)
}
