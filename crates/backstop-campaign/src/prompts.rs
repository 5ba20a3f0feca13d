//! What explorers and planners are told.
//!
//! Text from outside (the objective, answers of others) stands in fences as data.

use crate::explore::Mode;
use crate::record::CampaignRecord;
use backstop_core::SafeText;
use serde_json::{Value, json};

/// How much of what explorers said is shown.
const EXPLORED_BYTES_MAX: usize = 128 << 10;
/// How much of an objective, a question or an answer is shown.
const TEXT_BYTES_MAX: usize = 16 << 10;

const READS_ONLY: &str = "You only read: change no file. Nobody can answer questions. Write your answer to the file that the \
    environment variable BACKSTOP_RESULT names; where you cannot, make it your last message.\n\n";

/// What an explorer is told.
pub(crate) fn explorer(mode: Mode, objective: &SafeText) -> String {
    let (look, fields) = match mode {
        Mode::Structure => (
            "how the code is laid out: folders, entry points, where tests are and how they are run",
            r#""directories": {"lib": true}, "entry_points": ["src/main.py"], "test_pattern": "tests/test_*.py""#,
        ),
        Mode::Pattern => (
            "which framework and idioms the code uses, and how sure that is",
            r#""framework": "none", "confidence": 0.5, "idioms": {"required": [], "forbidden": []}"#,
        ),
        Mode::Memory => (
            "what is known of earlier failures and how they were cured: the history, notes, changelogs",
            r#""failures": [{"name": "...", "trigger": "...", "fix": "..."}], "patterns": []"#,
        ),
        Mode::Delta => (
            "which files the objective will change or create, and which functions and lines matter",
            r#""candidates": [{"path": "src/a.py", "lines": "10-40", "why": "..."}]"#,
        ),
    };
    format!(
        "# Explore: {name}\n\nYou look at the code in the current folder, for one question only: {look}.\n\n{READS_ONLY}\
         ## Objective\n\n{objective}\n\n## Answer\n\nOne JSON object and nothing else:\n\n\
         {{\"mode\": \"{name}\", \"status\": \"ok\", {fields}}}\n\n\
         `status` is \"ok\", \"partial\", or \"error\" with an `error`.\n",
        name = mode.name(),
        objective = objective.prompt("objective", TEXT_BYTES_MAX),
    )
}

const PLAN_FORMAT: &str = r#"{"objective": "...", "campaign": "short-name", "framework": "none", "framework_confidence": 0.5,
 "idioms": {"required": [], "forbidden": []},
 "tasks": [{"seq": "001", "slug": "spec-auth", "type": "SPEC", "description": "what is to be done",
   "delta": ["tests/test_auth.py"], "verify": "pytest tests/test_auth.py", "budget": 20, "depends": "none", "preflight": []}]}"#;

const PLAN_RULES: &str = "- `seq` is three digits, `slug` a short name, `type` SPEC (writes tests), BUILD or VERIFY (only runs `verify`).\n\
    - `delta` lists the files that the task changes or creates; `verify` is a command that fails before the task and passes after it.\n\
    - `depends` is \"none\", a seq, or a list of seqs; there must be no cycle.\n\
    - `budget` is how many turns with tools the builder needs. `preflight` are commands that must pass before `verify`.\n\
    - Idioms are texts that added lines must, or must not, contain.\n";

/// What a planner is told in a round. `notes` say what was wrong with its last answer.
pub(crate) fn planner(record: &CampaignRecord, explored: &Value, notes: &[String]) -> String {
    let mut out = format!(
        "# Plan\n\nYou plan how the objective is reached, as tasks that builders carry out one by one, each proved by a command.\n\n\
         {READS_ONLY}## Objective\n\n{}\n\n## What explorers found\n\n{}\n\n",
        record.objective().prompt("objective", TEXT_BYTES_MAX),
        SafeText::new(explored.to_string()).prompt("exploration", EXPLORED_BYTES_MAX),
    );
    if !record.answers.is_empty() {
        let said =
            |(question, answer): &(SafeText, SafeText)| format!("Q: {}\nA: {}", question.raw(), answer.raw());
        let all: Vec<String> = record.answers.iter().map(said).collect();
        let text = SafeText::new(all.join("\n\n"));
        out.push_str(&format!(
            "## Your questions, answered\n\n{}\n\n",
            text.prompt("answers", TEXT_BYTES_MAX)
        ));
    }
    if record.counters().is_single {
        out.push_str("## One task\n\nThe plan has exactly one task, `001`, which depends on nothing.\n\n");
    }
    revision(&mut out, notes);
    out.push_str(&format!(
        "## Answer\n\nOne line `### Confidence: WORD`, where WORD is\n\n\
         - PROCEED, then the plan as JSON; or\n\
         - CONFIRM, then the plan, where somebody should look at it first; or\n\
         - CLARIFY, then the heading `## Blocking Questions` with a numbered list, where you cannot plan without answers.\n\n\
         The plan:\n\n{PLAN_FORMAT}\n\n{PLAN_RULES}"
    ));
    out
}

/// What a planner is told when the campaign is stuck.
pub(crate) fn replanner(record: &CampaignRecord) -> String {
    let input = replan_input(record);
    let mut out = format!(
        "# Plan anew\n\nTasks are blocked, and others wait for them. Find another way to the objective around what is blocked.\n\n\
         {READS_ONLY}## Where the campaign stands\n\n{}\n\n",
        SafeText::new(input.to_string()).prompt("campaign", EXPLORED_BYTES_MAX),
    );
    if let Some(why) = &record.replan_why {
        let why = why.prompt("rationale", TEXT_BYTES_MAX);
        out.push_str(&format!("## Why a person asks for another plan\n\n{why}\n\n"));
    }
    out.push_str(&format!(
        "## Answer\n\n`### Confidence: PROCEED`, then one JSON object with the tasks that change and the new ones, whole, and under \
         `drop` the seqs that are left out. What is complete stays. A blocked task begins anew only where something of it changes.\n\n\
         {PLAN_FORMAT}\n\n{PLAN_RULES}- `\"drop\": [\"004\"]` leaves tasks out; nothing may wait for them.\n"
    ));
    out
}

fn revision(out: &mut String, notes: &[String]) {
    if notes.is_empty() {
        return;
    }
    let text = SafeText::new(notes.join("\n"));
    out.push_str(&format!(
        "## Your last answer could not be used\n\n{}\n\nSend a revised one.\n\n",
        text.prompt("errors", TEXT_BYTES_MAX)
    ));
}

/// What the planner is told of a campaign that is stuck: `dag.replan_input` of its tasks.
pub(crate) fn replan_input(record: &CampaignRecord) -> Value {
    let task = |task: &crate::task::Task| {
        let mut value = serde_json::to_value(task).unwrap_or(Value::Null);
        value["status"] = json!(record.status(&task.seq));
        value
    };
    let workspace = |task: &crate::task::Task| {
        let delivered = match record.status(&task.seq) {
            "blocked" => format!("BLOCKED: {}", record.blocked_reason(&task.seq)),
            _ => delivered(record, &task.seq),
        };
        json!({"workspace_id": task.workspace_id(), "seq": task.seq, "status": record.status(&task.seq), "delivered": delivered})
    };
    let input = json!({
        "objective": record.objective().raw(),
        "framework": record.plan.framework,
        "tasks": record.plan.tasks.iter().map(task).collect::<Vec<_>>(),
        "workspaces": record.plan.tasks.iter().map(workspace).collect::<Vec<_>>(),
    });
    crate::machine::replan_input(&input)
}

/// What a task has delivered, in one line.
pub(crate) fn delivered(record: &CampaignRecord, seq: &str) -> String {
    let phase = record.run.phase_of(seq);
    let message = phase
        .as_ref()
        .and_then(|phase| phase.node.delivery.as_ref()?.message.as_ref().map(|text| text.line(300)));
    message.unwrap_or_else(|| record.task(seq).map(|(task, _)| task.slug.clone()).unwrap_or_default())
}
