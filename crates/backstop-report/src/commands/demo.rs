//! The words around a demo: what is about to be seen, what was seen, and what to try next.

use crate::{JSON_SCHEMA, Style};
use backstop_core::SafeText;
use serde_json::{Value, json};
use std::path::Path;

/// Before a command is run that fails and recovers.
pub const DEMO_COMMAND_STARTS: &str = "A command that fails, and recovers.\n\n";
/// Before failures are classified.
pub const DEMO_FAULTS_START: &str =
    "Ten things that go wrong, one after the other. Nothing leaves this machine.\n\n";
/// After that.
pub const DEMO_FAULTS_END: &str = "Now with one of your own: `backstop exec -- COMMAND`\n";

/// What somebody would type, and what it printed.
pub fn demo_step(typed: &str, printed: &str, style: Style) -> String {
    format!("{}\n{printed}\n", style.strong(&format!("$ {typed}")))
}

/// After a command has recovered in this run.
pub fn demo_command_ended(run: &str) -> String {
    format!(
        "The demo's runs are kept apart from your own: `backstop explain {run}` shows this one again.\n\
         Now with one of your own: `backstop exec -- COMMAND`\n"
    )
}

/// The demo of a command as JSON. `ending` is what `exec --json` printed.
pub fn demo_command_json(folder: &Path, ending: &Value, explain: &str) -> Value {
    json!({
        "schema": JSON_SCHEMA, "folder": folder.display().to_string(), "exit": ending["exit"],
        "ending": ending, "next": [explain],
    })
}

/// Before a plan is run by this command, in this repository.
pub fn demo_plan_starts(repository: &Path, typed: &[&str], style: Style) -> String {
    let folder = SafeText::new(repository.to_string_lossy()).line(usize::MAX);
    format!(
        "A plan of four phases, in a new git repository: {folder}\n\
         Nothing else on this machine is changed, and nothing leaves it.\n\n{}\n",
        style.strong(&format!("$ {}", typed.join(" "))),
    )
}

/// After a plan is complete: its commits as git shows them, what was seen, and the commands that
/// are worth a look, each with a line that says why.
pub fn demo_plan_ended(typed: &[&str], log: &str, look: &[(String, &str)], style: Style) -> String {
    let log = SafeText::new(log).terminal();
    let mut text = format!(
        "\n{}\n{log}\n{}\n  \
         Phases 2A and 2B ran at the same time, each in a git worktree of its own.\n  \
         2A forgot a name, and the project's tests noticed: Backstop read their output and called it\n  \
         `test_failure`. The second attempt was told which test had failed, and passed.\n  \
         Each finished phase is a commit. The failed attempt is in none of them.\n\n{}\n",
        style.strong(&format!("$ {}", typed.join(" "))),
        style.strong("What you saw"),
        style.strong("Look closer (the demo's state is apart from yours, so it has a script of its own)"),
    );
    for (typed, why) in look {
        text.push_str(&format!("  {typed}\n      {why}\n"));
    }
    text.push_str(&format!(
        "\n{}\n  \
         backstop run PLAN.md --agent claude --commit auto     a plan of your own; --dry-run shows it first\n  \
         backstop exec -- npm test                             any command, classified and retried\n  \
         backstop demo command, backstop demo faults           more to watch\n",
        style.strong("Next"),
    ));
    text
}

/// After a plan did not end as it should: what is said, and what to do about it.
pub fn demo_plan_stopped(is_interrupted: bool, again: &str, explain: &str) -> (&'static str, String) {
    let what = if is_interrupted { "the demo was stopped" } else { "the demo did not end as it should" };
    (what, format!("`{again}` goes on with it, `{explain}` says why"))
}

/// The run of a demo's plan, for programs.
#[derive(Debug, Clone)]
pub struct DemoPlan<'d> {
    /// The folder of all of it.
    pub folder: &'d Path,
    /// The repository.
    pub repository: &'d Path,
    /// The exit code of `run`.
    pub exit: u8,
    /// The lines of JSON that `run --json` printed: events, then how it ended.
    pub lines: Vec<Value>,
    /// The commits, oldest first: hash and subject.
    pub commits: Vec<(String, String)>,
    /// The commands that are worth a look.
    pub next: Vec<String>,
}

impl DemoPlan<'_> {
    /// One object: the completion, what failed on the way, and the commits.
    pub fn json(mut self) -> Value {
        let ending = self.lines.pop().unwrap_or_default();
        let failed = self.lines.iter().filter(|event| event["kind"] == "error.classified");
        let failures: Vec<Value> = failed
            .map(|event| {
                json!({
                    "phase": event["operation"], "attempt": event["attempt"],
                    "reason": event["fault"]["reason"], "cause": event["fault"]["cause"],
                })
            })
            .collect();
        let commits = self.commits.iter();
        let commits: Vec<Value> =
            commits.map(|(sha, subject)| json!({ "sha": sha, "subject": subject })).collect();
        json!({
            "schema": JSON_SCHEMA, "folder": self.folder.display().to_string(),
            "repository": self.repository.display().to_string(), "exit": self.exit, "ending": ending,
            "failures": failures, "commits": commits, "next": self.next,
        })
    }
}
