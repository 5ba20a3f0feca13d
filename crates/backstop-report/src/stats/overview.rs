//! The overview of `backstop stats`: time lost, runs and attempts, the worst reasons and
//! operations.

use super::{StatsReport, duration_text, percent};
use crate::Style;
use crate::list::count;
use crate::run::date;
use crate::width::{pad, width};
use backstop_core::{AgentUse, Class, Counts, Outcome, SafeText};
use std::cmp::Reverse;

/// How many reasons and how many operations are shown.
const ROWS_MAX: usize = 3;
/// How much of an operation or a signature is shown.
const NAME_CHARS_MAX: usize = 60;

/// The overview for a terminal, about ten lines, most important first.
pub fn stats(report: &StatsReport, style: Style) -> String {
    if report.stats.is_empty() && !report.models.is_empty() {
        return models(report).into_iter().map(|line| line + "\n").collect();
    }
    if report.stats.is_empty() {
        return match report.since {
            Some(since) => format!("nothing is recorded here since {}\n", date(since)),
            None => {
                "nothing is recorded here yet; `backstop exec -- COMMAND` makes the first run\n".to_owned()
            }
        };
    }
    let mut lines = vec![style.strong(&lost(report)), runs(report)];
    lines.extend(tries(report, style));
    lines.extend(used(report));
    lines.extend(models(report));
    lines.extend(reported(report, style));
    lines.extend(by_reason(report));
    lines.extend(by_operation(report, style));
    lines.extend(most_seen(report, style));
    lines.into_iter().map(|line| line + "\n").collect()
}

fn lost(report: &StatsReport) -> String {
    let total = &report.stats.total;
    let has_failed = report.stats.runs.iter().any(|(outcome, _)| *outcome != Outcome::Done);
    if total.lost_ms() == 0 {
        return match total.errors {
            0 if !has_failed => "no time was lost: nothing failed, and nothing had to wait".to_owned(),
            0 => "something failed; how much time that took is not known".to_owned(),
            errors => {
                format!("{}; how much time they took is not known", count(errors, "error", "errors"))
            }
        };
    }
    let mut parts = vec![format!("{} in attempts that failed", duration_text(total.failed_ms))];
    if total.waited_ms > 0 {
        parts.push(format!("{} waiting to try again", duration_text(total.waited_ms)));
    }
    if total.guard_ms > 0 {
        parts.push(format!("{} waiting for rate limits", duration_text(total.guard_ms)));
    }
    format!("time lost: {} ({})", duration_text(total.lost_ms()), parts.join(", "))
}

fn runs(report: &StatsReport) -> String {
    let mut parts: Vec<String> =
        report.stats.runs.iter().map(|(outcome, n)| format!("{n} {outcome}")).collect();
    if report.stats.runs_open > 0 {
        parts.push(format!("{} not ended", report.stats.runs_open));
    }
    let since = report.since.map(|since| format!(" since {}", date(since))).unwrap_or_default();
    let list = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    format!("{}{since}{list}", count(report.stats.all_runs(), "run", "runs"))
}

/// What agents used; nothing where none said so.
fn used(report: &StatsReport) -> Option<String> {
    used_line("agents used", report.stats.used)
}

fn used_line(who: &str, used: AgentUse) -> Option<String> {
    let tokens = used.tokens_in.saturating_add(used.tokens_out);
    let cost = used.cost_millionths.map(|cost| {
        let cents = cost.saturating_add(5_000) / 10_000;
        format!(", ${}.{:02}", cents / 100, cents % 100)
    });
    let is_known = tokens > 0 || cost.is_some();
    is_known.then(|| format!("{who} {tokens} tokens{}", cost.unwrap_or_default()))
}

/// What requests through the proxy used, a line for each of the models that were used most.
fn models(report: &StatsReport) -> Vec<String> {
    let line = |(model, used): &(SafeText, AgentUse)| {
        used_line(&format!("requests to {} used", model.line(NAME_CHARS_MAX)), *used)
    };
    report.models.iter().take(ROWS_MAX).filter_map(line).collect()
}

/// The attempts; nothing where there are only reports, which have none.
fn tries(report: &StatsReport, style: Style) -> Option<String> {
    let total = &report.stats.total;
    let mut parts = vec![match total.attempts {
        0 if report.stats.reported.errors > 0 => return None,
        0 => "no attempt has ended".to_owned(),
        attempts => {
            let of = count(attempts, "attempt", "attempts");
            format!("{} of {of} failed ({})", total.failed(), percent(total.failed(), attempts))
        }
    }];
    if total.lost > 0 {
        parts.push(format!("{} of them lost", total.lost));
    }
    if total.retried > 0 {
        parts.push(cured(total.cured, total.retried));
    }
    Some(parts.join(style.dot()))
}

/// `10 errors reported by hooks: 6 transient, 4 permanent · 2 in the last hour`.
fn reported(report: &StatsReport, style: Style) -> Option<String> {
    let reported = &report.stats.reported;
    if reported.errors == 0 {
        return None;
    }
    let mut classes: Vec<(Class, u64)> = Vec::new();
    for (reason, errors) in &reported.reasons {
        match classes.iter_mut().find(|(class, _)| *class == reason.class()) {
            Some((_, sum)) => *sum += errors,
            None => classes.push((reason.class(), *errors)),
        }
    }
    let classes: Vec<String> =
        classes.iter().map(|(class, n)| format!("{n} {class} ({})", percent(*n, reported.errors))).collect();
    let mut parts = vec![
        format!("{} reported by hooks: {}", count(reported.errors, "error", "errors"), classes.join(", ")),
        format!("{} in the last hour", reported.last_hour),
    ];
    parts.extend(per_day(report).map(|rate| format!("{rate} a day")));
    Some(parts.join(style.dot()))
}

/// How many errors a day hooks reported on average, from the first report until now.
fn per_day(report: &StatsReport) -> Option<String> {
    const DAY_MS: u128 = 24 * 60 * 60 * 1000;
    let reported = &report.stats.reported;
    let span = report.now?.since(report.since.or(reported.first)?).as_millis();
    // Of less than a day, a daily rate would be a guess.
    (span >= DAY_MS).then(|| {
        let tenths = u128::from(reported.errors) * 10 * DAY_MS / span;
        format!("{}.{}", tenths / 10, tenths % 10)
    })
}

/// `cured by retry: 6 of 7 (85.7 %)`.
fn cured(cured: u64, retried: u64) -> String {
    format!("cured by retry: {cured} of {retried} ({})", percent(cured, retried))
}

fn by_reason(report: &StatsReport) -> Vec<String> {
    let mut reasons = report.stats.reasons.clone();
    reasons.sort_by_key(|(_, tally)| Reverse((tally.lost_ms(), tally.errors)));
    let row = |name: String, tally: &Counts| {
        let mut line = vec![
            name,
            duration_text(tally.lost_ms()),
            format!("seen {}", count(tally.errors, "time", "times")),
        ];
        if tally.retried > 0 {
            line.push(cured(tally.cured, tally.retried));
        }
        line
    };
    let rows = reasons.iter().take(ROWS_MAX).map(|(reason, tally)| row(reason.code().to_owned(), tally));
    section("by reason", rows.collect(), reasons.len(), "`backstop stats --by reason`")
}

fn by_operation(report: &StatsReport, style: Style) -> Vec<String> {
    let troubled: Vec<_> =
        report.stats.operations.iter().filter(|(_, t)| t.lost_ms() > 0 || t.failed() > 0).collect();
    let row = |(name, tally): &&(SafeText, Counts)| {
        let failed = format!(
            "{} of {} failed ({})",
            tally.failed(),
            count(tally.attempts, "attempt", "attempts"),
            percent(tally.failed(), tally.attempts)
        );
        vec![style.marks(&name.line(NAME_CHARS_MAX)), duration_text(tally.lost_ms()), failed]
    };
    let rows = troubled.iter().take(ROWS_MAX).map(row).collect();
    section("by operation", rows, troubled.len(), "`backstop stats --by operation`")
}

/// A heading and its rows with aligned columns; empty where there are no rows.
fn section(name: &str, rows: Vec<Vec<String>>, of: usize, more: &str) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let head = match of.saturating_sub(rows.len()) {
        0 => format!("{name}:"),
        left => format!("{name} ({left} more: {more}):"),
    };
    let widest = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0)
    };
    let widths = [widest(0), widest(1)];
    let line = |row: &Vec<String>| {
        let cell = |column: usize| pad(row.get(column).map_or("", String::as_str), widths[column]);
        format!("  {}  {}  {}", cell(0), cell(1), row.get(2..).unwrap_or_default().join(", "))
    };
    std::iter::once(head).chain(rows.iter().map(line)).collect()
}

fn most_seen(report: &StatsReport, style: Style) -> Option<String> {
    let first = report.signatures.first()?;
    let retried = match first.retried {
        0 => "never tried again".to_owned(),
        retried => cured(first.cured, retried),
    };
    let text = style.marks(&SafeText::new(first.signature.as_str()).line(NAME_CHARS_MAX));
    Some(format!(
        "most seen in all projects: \"{text}\" ({}), {}, {retried}",
        first.reason,
        count(first.seen, "time", "times")
    ))
}
