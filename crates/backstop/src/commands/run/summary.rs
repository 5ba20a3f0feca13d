//! How a run ended, and what one would do: for people, and as JSON.

use super::PlanStart;
use super::watch::Show;
use crate::error::{CliError, DONE};
use crate::terminal;
use backstop_plan::Ending;
use backstop_plan::ended::EndedPlan;
use backstop_plan::view::ViewFolder;
use backstop_report::plan::{DryRun, dry_run as dry_text, dry_run_json};
use backstop_runtime::Project;
use std::time::Duration;

/// Tells how a run ended.
pub(super) fn tell(
    given: &PlanStart,
    project: &Project,
    views: &ViewFolder,
    ending: &Ending,
    elapsed: Duration,
    show: Show,
) -> Result<(), CliError> {
    let again = &given.request.resume_command;
    let Some(ended) = EndedPlan::of(project, views, ending, again, elapsed) else { return Ok(()) };
    if given.json {
        return terminal::print_json(&ended.json());
    }
    let style = terminal::stderr_style();
    let line = ended.line(style);
    if given.quiet && ending.conclusion.is_some() {
        terminal::say(&format!("{}: {line}\n", ending.record.path().line(200)));
    } else if !matches!(show, Show::Events(_)) {
        let text = ended.text(terminal::size().0, style);
        terminal::say(&format!("\n{}\n", project.redactor.redact(&text).trim_end()));
        if !line.is_empty() {
            terminal::say(&format!("{line}\n"));
        }
    }
    Ok(())
}

/// Shows what would be done.
pub(super) fn dry_run(json: bool, given: &DryRun) -> Result<u8, CliError> {
    if json {
        terminal::print_json(&dry_run_json(given))?;
    } else {
        terminal::print(&dry_text(given, terminal::stdout_width(), terminal::stdout_style()))?;
    }
    Ok(DONE)
}
