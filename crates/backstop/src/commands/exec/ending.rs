//! Tells how a command ended: to people on standard error, to programs as JSON, into a report.

use super::Exec;
use crate::terminal;
use backstop_config::LogFormat;
use backstop_files::Durability;
use backstop_report::{CommandEnding, RunStory, to_json};
use backstop_runtime::Project;

/// Tells how a command ended, wherever that was asked for.
pub(super) fn tell(ended: &CommandEnding, args: &Exec, project: &Project) {
    if project.config.log_format() == LogFormat::Human && !args.is_quiet() {
        if !ended.unended.is_empty() {
            let names = ended.unended.join(", ");
            terminal::warn(&format!("some processes could not be ended: {names}"), None);
        }
        terminal::say(&ended.text(args.classify, terminal::stderr_style()));
    }
    if args.json {
        let _ = terminal::print(&format!("{}\n", to_json(&ended.json())));
    }
    if let Some(file) = &args.report {
        let markdown = file.extension().is_some_and(|e| e == "md");
        let story = || {
            let journal = project.existing_journal().ok()??;
            let story = RunStory::from_events(&journal.load(ended.run).ok()?)?;
            let logs = journal.outputs(ended.run).unwrap_or_default();
            Some(backstop_report::story_markdown(&story.with_logs(logs), false))
        };
        let text = markdown.then(story).flatten().unwrap_or_else(|| format!("{}\n", to_json(&ended.json())));
        if let Err(error) = project.given(file).replace(text.as_bytes(), Durability::OnDisk) {
            terminal::warn(&format!("cannot write the report: {error}"), None);
        }
    }
}
