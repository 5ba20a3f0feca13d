//! Campaigns for people and programs: where one stands or how it ended, and what was learned.
//!
//! It must not look anything up: the values are given.

use crate::list::count;
use crate::run::date;
use crate::{JSON_SCHEMA, Style, View};
use backstop_core::{RunId, SafeText, Timestamp};
use serde_json::{Map, Value, json};

/// How much of a text is shown.
const TEXT_CHARS_MAX: usize = 200;
/// How many tasks are listed.
const TASKS_MAX: usize = 100;

/// One task of a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// Its seq.
    pub seq: String,
    /// Its short name.
    pub slug: String,
    /// SPEC, BUILD or VERIFY.
    pub kind: &'static str,
    /// `pending`, `in_progress`, `complete` or `blocked`.
    pub status: &'static str,
    /// The tasks that it waits for.
    pub depends: Vec<String>,
    /// How many attempts there were.
    pub attempts: u32,
    /// Why it is blocked.
    pub reason: Option<SafeText>,
    /// The blocked tasks that it waits for directly.
    pub blocked_by: Vec<String>,
}

/// A task that waits for blocked ones, at whatever distance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreachableRow {
    /// Its seq.
    pub seq: String,
    /// Those of the tasks it waits for that are in its way.
    pub blocked_by: Vec<String>,
}

/// Where a campaign stands, or how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignReport {
    /// The run.
    pub run: RunId,
    /// What it is for.
    pub objective: SafeText,
    /// The state that was entered last.
    pub state: &'static str,
    /// Why ERROR was entered last.
    pub error_type: Option<String>,
    /// How it ended: `complete`, `blocked`, `questions`, `returned`, `stopped`; none while it goes
    /// on.
    pub end: Option<&'static str>,
    /// Questions that wait for a person.
    pub questions: Vec<SafeText>,
    /// The explorers that have answered.
    pub explorers: Vec<&'static str>,
    /// The tasks, in the plan's order.
    pub tasks: Vec<TaskRow>,
    /// Tasks that wait for blocked ones, whether they are blocked for it or not.
    pub unreachable: Vec<UnreachableRow>,
    /// What the explorers said, where too few of them did.
    pub partial: Option<Value>,
    /// Rounds of planning and re-plans so far.
    pub rounds: u32,
    /// Re-plans so far.
    pub replans: u32,
    /// What failed last, of the campaign itself.
    pub cause: Option<SafeText>,
    /// Where the work is, in words.
    pub work: Option<SafeText>,
    /// What to type next.
    pub next: Vec<SafeText>,
}

impl CampaignReport {
    fn count(&self, status: &str) -> u64 {
        self.tasks.iter().filter(|task| task.status == status).count() as u64
    }
}

impl View for CampaignReport {
    fn text(&self, style: Style) -> String {
        campaign(self, style)
    }

    fn json(&self) -> Value {
        campaign_json(self)
    }
}

/// A campaign for a terminal.
fn campaign(report: &CampaignReport, style: Style) -> String {
    let mut out = String::new();
    let objective = report.objective.line(TEXT_CHARS_MAX);
    out.push_str(&format!("{} {} — {}\n", style.strong("Campaign"), report.run, style.marks(&objective)));
    let error = report.error_type.as_ref().filter(|_| report.state == "ERROR");
    let error = error.map(|error| format!(" ({error})")).unwrap_or_default();
    out.push_str(&format!("state: {}{error}\n", report.state));
    if let Some(cause) = &report.cause {
        out.push_str(&format!("why: {}\n", style.marks(&cause.line(TEXT_CHARS_MAX))));
    }
    if let Some(partial) = &report.partial {
        out.push_str(&partial_lines(partial, style));
    } else if report.tasks.is_empty() && !report.explorers.is_empty() {
        out.push_str(&format!("explorers: {}\n", report.explorers.join(", ")));
    }
    if !report.tasks.is_empty() {
        let (done, blocked) = (report.count("complete"), report.count("blocked"));
        let rest = report.tasks.len() as u64 - done - blocked;
        out.push_str(&format!(
            "tasks: {done} of {} complete, {blocked} blocked, {rest} to come\n\n",
            report.tasks.len()
        ));
        for task in report.tasks.iter().take(TASKS_MAX) {
            out.push_str(&row(task, style));
        }
        if report.tasks.len() > TASKS_MAX {
            let more = (report.tasks.len() - TASKS_MAX) as u64;
            out.push_str(&format!("  and {}\n", count(more, "more task", "more tasks")));
        }
    }
    if !report.unreachable.is_empty() {
        let row = |row: &UnreachableRow| format!("{} (waits for {})", row.seq, row.blocked_by.join(", "));
        let rows: Vec<String> = report.unreachable.iter().take(TASKS_MAX).map(row).collect();
        out.push_str(&format!("\nunreachable: {}\n", rows.join(", ")));
    }
    if !report.questions.is_empty() {
        out.push_str("\nQuestions of the planner:\n");
        for (at, question) in report.questions.iter().enumerate() {
            out.push_str(&format!("  {}. {}\n", at + 1, style.marks(&question.line(TEXT_CHARS_MAX))));
        }
    }
    if let Some(work) = &report.work {
        out.push_str(&format!("\nwork: {}\n", style.marks(&work.line(TEXT_CHARS_MAX))));
    }
    for next in &report.next {
        out.push_str(&format!("next: {}\n", next.line(TEXT_CHARS_MAX)));
    }
    out
}

/// What each explorer said, a line for each.
fn partial_lines(partial: &Value, style: Style) -> String {
    let mut out = String::new();
    let said = partial.as_object().into_iter().flatten().filter(|(name, _)| *name != "_meta");
    for (name, part) in said {
        let status = part.get("status").and_then(Value::as_str).unwrap_or_default();
        let rest = part.as_object().into_iter().flatten();
        let fields: Map<String, Value> = rest
            .filter(|(field, _)| !matches!(field.as_str(), "mode" | "status"))
            .map(|(field, value)| (field.clone(), value.clone()))
            .collect();
        let text = SafeText::new(Value::Object(fields).to_string()).line(TEXT_CHARS_MAX);
        out.push_str(&format!("  {name} {status}: {}\n", style.marks(&text)));
    }
    match out.is_empty() {
        true => "no explorer has said anything\n".to_owned(),
        false => format!("partial results of the explorers (whole with --json):\n{out}"),
    }
}

fn row(task: &TaskRow, style: Style) -> String {
    let status = match task.status {
        "complete" => style.good("complete"),
        "blocked" => style.bad("blocked"),
        "in_progress" => "running".to_owned(),
        other => other.to_owned(),
    };
    let attempts = match task.attempts {
        0 | 1 => String::new(),
        n => format!(", {n} attempts"),
    };
    let why =
        task.reason.as_ref().map(|why| format!(": {}", style.marks(&why.line(120)))).unwrap_or_default();
    format!("  {} {} {status}{attempts}{why}\n", task.seq, task.slug)
}

/// A campaign as JSON.
fn campaign_json(report: &CampaignReport) -> Value {
    let task = |task: &TaskRow| {
        json!({
            "seq": task.seq, "slug": task.slug, "type": task.kind, "status": task.status, "depends": task.depends,
            "attempts": task.attempts, "reason": task.reason.as_ref().map(SafeText::raw), "blocked_by": task.blocked_by,
        })
    };
    let unreachable = |row: &UnreachableRow| json!({"seq": row.seq, "blocked_by": row.blocked_by});
    json!({
        "schema": JSON_SCHEMA,
        "run": report.run.to_string(),
        "objective": report.objective.raw(),
        "state": report.state,
        "error_type": report.error_type,
        "end": report.end,
        "questions": report.questions.iter().map(SafeText::raw).collect::<Vec<_>>(),
        "explorers": report.explorers,
        "tasks": report.tasks.iter().map(task).collect::<Vec<_>>(),
        "summary": {
            "total": report.tasks.len(), "complete": report.count("complete"), "blocked": report.count("blocked"),
            "pending": report.count("pending"), "in_progress": report.count("in_progress"),
        },
        "unreachable": report.unreachable.iter().map(unreachable).collect::<Vec<_>>(),
        "partial": report.partial,
        "rounds": report.rounds,
        "replans": report.replans,
        "cause": report.cause.as_ref().map(SafeText::raw),
        "work": report.work.as_ref().map(SafeText::raw),
        "next": report.next.iter().map(SafeText::raw).collect::<Vec<_>>(),
    })
}

/// A lesson of an earlier campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LessonRow {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: SafeText,
    /// The failure without its variable parts.
    pub signature: SafeText,
    /// Its reason.
    pub reason: &'static str,
    /// The files of the task.
    pub files: Vec<String>,
    /// What was tried.
    pub tried: SafeText,
    /// What cured it.
    pub cure: Option<SafeText>,
    /// How many attempts it took, and how long.
    pub attempts: u32,
    /// How long they took together.
    pub cost_ms: u64,
    /// When it was learned.
    pub at: Timestamp,
}

/// The lessons of earlier campaigns, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lessons(pub Vec<LessonRow>);

impl View for Lessons {
    fn text(&self, style: Style) -> String {
        lessons(&self.0, style)
    }

    fn json(&self) -> Value {
        lessons_json(&self.0)
    }
}

/// Lessons for a terminal.
fn lessons(rows: &[LessonRow], style: Style) -> String {
    if rows.is_empty() {
        return "no campaign of this project has taught anything yet\n".to_owned();
    }
    let mut out = String::new();
    for row in rows {
        out.push_str(&format!(
            "{} {} {} ({}): {}\n",
            date(row.at),
            row.run,
            style.strong(&row.task.line(60)),
            row.reason,
            style.marks(&row.signature.line(TEXT_CHARS_MAX))
        ));
        let cure = row.cure.as_ref().map_or_else(|| "nothing".to_owned(), |cure| cure.line(TEXT_CHARS_MAX));
        out.push_str(&format!("  cured by: {}\n", style.marks(&cure)));
    }
    out
}

/// Lessons as JSON.
fn lessons_json(rows: &[LessonRow]) -> Value {
    let row = |row: &LessonRow| {
        json!({
            "run": row.run.to_string(), "task": row.task.raw(), "signature": row.signature.raw(), "reason": row.reason,
            "files": row.files, "tried": row.tried.raw(), "cure": row.cure.as_ref().map(SafeText::raw),
            "attempts": row.attempts, "cost_ms": row.cost_ms, "at": row.at.to_string(),
        })
    };
    json!({"schema": JSON_SCHEMA, "lessons": rows.iter().map(row).collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_campaign_says_what_waits_and_what_to_type() {
        let task = |seq: &str, status, reason: Option<&str>| TaskRow {
            seq: seq.to_owned(),
            slug: format!("t-{seq}"),
            kind: "BUILD",
            status,
            depends: Vec::new(),
            attempts: 2,
            reason: reason.map(SafeText::new),
            blocked_by: Vec::new(),
        };
        let report = CampaignReport {
            run: "r-7f3a".parse().unwrap(),
            objective: "Add a login\u{1b}[31m".into(),
            state: "COMPLETE",
            error_type: None,
            end: Some("blocked"),
            questions: vec!["Which?".into()],
            explorers: vec!["structure"],
            tasks: vec![
                task("001", "complete", None),
                task("002", "blocked", Some("test_failure: 2 failed")),
            ],
            unreachable: vec![UnreachableRow { seq: "003".to_owned(), blocked_by: vec!["002".to_owned()] }],
            partial: Some(
                json!({"_meta": {}, "delta": {"status": "error", "_error": "no", "candidates": []}}),
            ),
            rounds: 1,
            replans: 2,
            cause: None,
            work: None,
            next: vec!["backstop campaign retry 002".into()],
        };
        let text = campaign(&report, Style::PLAIN);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        for part in [
            "1 of 2 complete, 1 blocked",
            "002 t-002 blocked, 2 attempts: test_failure",
            "unreachable: 003 (waits for 002)",
            r#"  delta error: {"_error":"no","candidates":[]}"#,
            "next: backstop campaign retry 002",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(campaign_json(&report)["summary"]["blocked"], 1);
        assert!(lessons(&[], Style::PLAIN).ends_with("yet\n"));
    }
}
