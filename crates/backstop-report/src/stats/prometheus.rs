//! Counters in the text format of Prometheus.
//!
//! Only what the journal counts. Removing old runs lowers a counter, which Prometheus takes for a
//! restart of the process.

use super::StatsReport;
use backstop_core::Counts;
use std::fmt::Write as _;

/// The statistics as Prometheus counters, each with its `HELP` and `TYPE` line.
pub fn stats_prometheus(report: &StatsReport) -> String {
    let mut out = Page::default();
    let total = &report.stats.total;
    out.metric("backstop_runs_total", "Runs that ended, by outcome.");
    for (outcome, count) in &report.stats.runs {
        out.count(&[("outcome", outcome.name())], *count);
    }
    out.metric("backstop_attempts_total", "Attempts that ended, by operation and result.");
    let others = ("(others)".into(), others(report));
    for (operation, tally) in report.stats.operations.iter().chain([&others]) {
        let name = operation.terminal();
        for (result, count) in [
            ("success", tally.succeeded),
            ("failure", tally.failed().saturating_sub(tally.lost)),
            ("lost", tally.lost),
        ] {
            if count > 0 {
                out.count(&[("operation", &name), ("result", result)], count);
            }
        }
    }
    out.metric("backstop_errors_total", "Errors that were classified, by reason and class.");
    for (reason, tally) in &report.stats.reasons {
        out.count(&[("reason", reason.code()), ("class", reason.class().name())], tally.errors);
    }
    out.metric("backstop_reported_errors_total", "Errors that hooks reported, by reason and class.");
    for (reason, errors) in &report.stats.reported.reasons {
        out.count(&[("reason", reason.code()), ("class", reason.class().name())], *errors);
    }
    out.metric("backstop_reports_total", "Reports of hooks, by outcome.");
    for (outcome, reports) in &report.stats.reported.outcomes {
        out.count(&[("outcome", outcome.name())], *reports);
    }
    out.gauge("backstop_reported_errors_last_hour", "Errors that hooks reported in the last hour.");
    out.count(&[], report.stats.reported.last_hour);
    out.metric("backstop_retries_total", "Recoveries that were tried, by the reason they were tried for.");
    for (reason, tally) in &report.stats.reasons {
        out.count(&[("reason", reason.code())], tally.retried);
    }
    out.metric("backstop_cured_total", "Recoveries that helped, by the reason they were tried for.");
    for (reason, tally) in &report.stats.reasons {
        out.count(&[("reason", reason.code())], tally.cured);
    }
    out.metric("backstop_attempt_seconds_total", "Time that attempts took, failed ones included.");
    out.seconds(&[], total.attempts_ms);
    out.metric("backstop_failed_attempt_seconds_total", "Time that failed attempts took.");
    out.seconds(&[], total.failed_ms);
    out.metric("backstop_wait_seconds_total", "Time waited, to try again or for a rate limit.");
    out.seconds(&[("for", "retry")], total.waited_ms);
    out.seconds(&[("for", "guard")], total.guard_ms);
    out.text
}

/// The attempts of operations that are not listed.
fn others(report: &StatsReport) -> Counts {
    let mut rest = report.stats.total;
    for (_, tally) in &report.stats.operations {
        rest.attempts = rest.attempts.saturating_sub(tally.attempts);
        rest.succeeded = rest.succeeded.saturating_sub(tally.succeeded);
        rest.lost = rest.lost.saturating_sub(tally.lost);
    }
    rest
}

#[derive(Default)]
struct Page {
    text: String,
    name: &'static str,
}

impl Page {
    fn metric(&mut self, name: &'static str, help: &str) {
        self.begin(name, help, "counter");
    }

    fn gauge(&mut self, name: &'static str, help: &str) {
        self.begin(name, help, "gauge");
    }

    fn begin(&mut self, name: &'static str, help: &str, kind: &str) {
        self.name = name;
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn count(&mut self, labels: &[(&str, &str)], value: u64) {
        self.sample(labels, &value.to_string());
    }

    fn seconds(&mut self, labels: &[(&str, &str)], ms: u64) {
        self.sample(labels, &format!("{}.{:03}", ms / 1000, ms % 1000));
    }

    fn sample(&mut self, labels: &[(&str, &str)], value: &str) {
        let labels: Vec<String> =
            labels.iter().map(|(name, text)| format!("{name}=\"{}\"", escaped(text))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "{}{labels} {value}", self.name);
    }
}

/// A label's value: a backslash, a quote and a line end are escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
