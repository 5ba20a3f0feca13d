//! Messages that no rule knows, grouped by signature, with a rule for each that can be pasted.
//!
//! It must not group or compare: the groups and the shares are given.

mod stub;

pub use stub::rule_stub;

use crate::list::count;
use crate::run::date;
use crate::stats::percent;
use crate::{JSON_SCHEMA, Style, View};
use backstop_core::drift::{Drift, UnknownGroup};
use backstop_core::{SafeText, Share, Timestamp};
use serde_json::{Value, json};

/// How much of a message is shown.
const MESSAGE_CHARS_MAX: usize = 160;
/// How much of an operation is shown.
const OPERATION_CHARS_MAX: usize = 60;

/// The messages that no rule knows, and their share of all errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriftReport {
    /// The start of the period.
    pub since: Timestamp,
    /// The share in the last day.
    pub recent: Share,
    /// The share in the days before.
    pub before: Share,
    /// Whether the share in the last day is much larger than before.
    pub spike: bool,
    /// The groups, most frequent first.
    pub groups: Vec<UnknownGroup>,
    /// How many groups are not listed.
    pub groups_left_out: u64,
    /// Unknown errors that are in no group.
    pub ungrouped: u64,
}

impl DriftReport {
    /// What was found since `since`, with at most `groups_max` groups.
    pub fn new(found: Drift, since: Timestamp, groups_max: usize) -> Self {
        Self {
            since,
            recent: found.recent,
            before: found.before,
            spike: found.is_spike(),
            groups_left_out: found.groups.len().saturating_sub(groups_max) as u64,
            groups: found.groups.into_iter().take(groups_max).collect(),
            ungrouped: found.ungrouped,
        }
    }
}

impl View for DriftReport {
    fn text(&self, style: Style) -> String {
        drift(self, style)
    }

    fn json(&self) -> Value {
        drift_json(self)
    }
}

fn share(share: Share) -> String {
    let errors = count(share.errors, "error", "errors");
    format!("{} of {errors} ({})", share.unknown, percent(share.unknown, share.errors))
}

/// The proposed id of the rule for a group.
fn id(row: &UnknownGroup) -> String {
    stub::rule_id(row.operation.raw(), &row.signature)
}

/// The unknown messages for a terminal, each with a rule that can be pasted into a pack.
fn drift(report: &DriftReport, style: Style) -> String {
    let since = date(report.since);
    if report.groups.is_empty() && report.ungrouped == 0 {
        let errors = report.recent.errors + report.before.errors;
        return match errors {
            0 => format!("no error is recorded since {since}\n"),
            n => format!("nothing is unknown: rules know {} since {since}\n", count(n, "error", "errors")),
        };
    }
    let shares = format!(
        "unknown: {} in the last day, {} before, since {since}\n",
        share(report.recent),
        share(report.before)
    );
    let mut out = style.strong(shares.trim_end()) + "\n";
    if report.spike {
        out.push_str(&format!(
            "{} many more than before: the rules do not know something that is new\n",
            style.bad("spike:")
        ));
    }
    for row in &report.groups {
        out.push('\n');
        out.push_str(&group(row, style));
    }
    let rest = report.groups_left_out;
    if rest > 0 {
        out.push_str(&format!("\nand {}, seen less often\n", count(rest, "more group", "more groups")));
    }
    if report.ungrouped > 0 {
        out.push_str(&format!("\nand {} in no group\n", count(report.ungrouped, "error", "errors")));
    }
    out.push_str(
        "\nnext: put a rule into a pack, choose its reason, then `backstop rules test FILE`; docs/rules.md says more\n",
    );
    out
}

fn group(row: &UnknownGroup, style: Style) -> String {
    let line = |text: &SafeText, max| style.marks(&text.line(max));
    let message = match row.example.is_empty() {
        true => "(no message)".to_owned(),
        false => line(&row.example, MESSAGE_CHARS_MAX),
    };
    let dot = style.dot();
    let mut out = format!(
        "{}{dot}{message}\n  {}{dot}first {}{dot}last {}{dot}`backstop explain {}`\n",
        style.strong(&count(row.count, "time", "times")),
        line(&row.operation, OPERATION_CHARS_MAX),
        date(row.first_at),
        date(row.last_at),
        row.run
    );
    if let Some(stub) = rule_stub(&id(row), &row.signature, row.example.raw()) {
        out.extend(stub.lines().map(|line| format!("  {line}\n")));
    }
    out
}

/// The unknown messages as JSON.
fn drift_json(report: &DriftReport) -> Value {
    let share = |share: Share| json!({ "unknown": share.unknown, "errors": share.errors });
    let row = |row: &UnknownGroup| {
        json!({
            "signature": row.signature, "count": row.count, "first_at": row.first_at, "last_at": row.last_at,
            "example": row.example, "operation": row.operation, "run": row.run,
            "rule": rule_stub(&id(row), &row.signature, row.example.raw()),
        })
    };
    json!({
        "schema": JSON_SCHEMA, "since": report.since, "spike": report.spike, "recent": share(report.recent),
        "before": share(report.before), "groups": report.groups.iter().map(row).collect::<Vec<_>>(),
        "groups_left_out": report.groups_left_out, "ungrouped": report.ungrouped,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(signature: &str, example: &str) -> UnknownGroup {
        UnknownGroup {
            signature: signature.into(),
            count: 3,
            first_at: Timestamp::from_millis(1_760_000_000_000),
            last_at: Timestamp::from_millis(1_760_000_900_000),
            example: example.into(),
            operation: "npm test".into(),
            run: "r-7f3a".parse().unwrap(),
        }
    }

    fn report(groups: Vec<UnknownGroup>) -> DriftReport {
        DriftReport {
            since: Timestamp::from_millis(1_757_000_000_000),
            recent: Share { unknown: 7, errors: 20 },
            before: Share { unknown: 1, errors: 90 },
            spike: true,
            groups,
            groups_left_out: 1,
            ungrouped: 0,
        }
    }

    #[test]
    fn each_group_has_a_rule_that_can_be_pasted() {
        let groups = vec![
            row("worker-<n> died after <n>ms", "worker-8 died after 1ms"),
            row("evil \x1b[2J \"quoted\" \\", "evil \x1b[2J \"quoted\" \\"),
            row("", ""),
        ];
        let text = drift(&report(groups), Style::PLAIN);
        assert!(!text.contains('\x1b'), "{text:?}");
        insta::assert_snapshot!(text, @r#"
        unknown: 7 of 20 errors (35 %) in the last day, 1 of 90 errors (1.1 %) before, since 2025-09-04 15:33:20 UTC
        spike: many more than before: the rules do not know something that is new

        3 times · worker-8 died after 1ms
          npm test · first 2025-10-09 08:53:20 UTC · last 2025-10-09 09:08:20 UTC · `backstop explain r-7f3a`
          [[rule]]
          id = "npm.worker_died_after"
          reason = "unknown" # choose one: `backstop reasons` lists them
          literals = ["died after"]
          regex = 'worker-\S+\s+died\s+after\s+\S+ms'
          match = ["worker-8 died after 1ms"]
          miss = ["died something else"]

        3 times · evil \e[2J "quoted" \
          npm test · first 2025-10-09 08:53:20 UTC · last 2025-10-09 09:08:20 UTC · `backstop explain r-7f3a`
          [[rule]]
          id = "npm.evil_2j_quoted"
          reason = "unknown" # choose one: `backstop reasons` lists them
          literals = ["\"quoted\""]
          match = ["evil \u001B[2J \"quoted\" \\"]
          miss = ["something else"]

        3 times · (no message)
          npm test · first 2025-10-09 08:53:20 UTC · last 2025-10-09 09:08:20 UTC · `backstop explain r-7f3a`

        and 1 more group, seen less often

        next: put a rule into a pack, choose its reason, then `backstop rules test FILE`; docs/rules.md says more
        "#);
    }

    #[test]
    fn nothing_unknown_is_one_sentence() {
        let mut none = report(Vec::new());
        assert_eq!(
            drift(&none, Style::PLAIN),
            "nothing is unknown: rules know 110 errors since 2025-09-04 15:33:20 UTC\n"
        );
        (none.recent, none.before) = Default::default();
        assert_eq!(drift(&none, Style::PLAIN), "no error is recorded since 2025-09-04 15:33:20 UTC\n");
    }
}
