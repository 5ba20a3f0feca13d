//! How a run ended, and what one would do: for people, and as JSON.

use super::Run;
use super::watch::Show;
use crate::error::{CliError, DONE};
use crate::{process, terminal};
use backstop_core::{End, SafeText};
use backstop_plan::Ending;
use backstop_plan::present::{Facts, completion, halt};
use backstop_plan::saved_work::unlanded_refs;
use backstop_plan::start::path_in_project;
use backstop_plan::view::ViewFolder;
use backstop_report::plan::{
    DryRun, completion_json, completion_line, completion_summary, dry_run as dry_text, dry_run_json,
    halt_json, halt_summary,
};
use backstop_runtime::Project;
use backstop_runtime::admission::UNFREEZE;
use std::path::Path;
use std::time::Duration;

/// Tells how a run ended.
pub(super) fn tell(
    args: &Run,
    project: &Project,
    views: &ViewFolder,
    ending: &Ending,
    again: &str,
    elapsed: Duration,
    show: Show,
) -> Result<(), CliError> {
    let shown = |path: &Path| {
        path_in_project(&path.canonicalize().unwrap_or_else(|_| path.to_owned()), &project.root)
    };
    let facts = Facts {
        views,
        shown: &shown,
        first: project
            .frozen()
            .map(|_| SafeText::new(format!("Put right why the project is frozen, then `{UNFREEZE}`"))),
        resume: again.to_owned(),
        kept: unlanded_refs(project, ending),
        elapsed,
        notes: Vec::new(),
        now: process::now(),
    };
    let style = terminal::stderr_style();
    let (width, _) = terminal::size();
    let mut line = String::new();
    let (text, json) = match (&ending.end, &ending.conclusion) {
        (End::Complete, Some(conclusion)) => {
            let Some(done) = completion(&ending.record, conclusion, &facts) else { return Ok(()) };
            line = completion_line(&done, style);
            (completion_summary(&done, width, style), completion_json(&done))
        }
        _ => {
            let Some(halted) = halt(ending, &facts) else { return Ok(()) };
            (halt_summary(&halted, width, style), halt_json(&halted))
        }
    };
    if args.json {
        return terminal::print_json(&json);
    }
    if args.quiet && ending.conclusion.is_some() {
        terminal::say(&format!("{}: {line}\n", ending.record.path().line(200)));
    } else if !matches!(show, Show::Events(_)) {
        let text = project.redactor.redact(&text).into_owned();
        terminal::say(&format!("\n{}\n", text.trim_end()));
        if !line.is_empty() {
            terminal::say(&format!("{line}\n"));
        }
    }
    Ok(())
}

/// Shows what would be done.
pub(super) fn dry_run(args: &Run, given: &DryRun) -> Result<u8, CliError> {
    if args.json {
        terminal::print_json(&dry_run_json(given))?;
    } else {
        terminal::print(&dry_text(given, terminal::stdout_width(), terminal::stdout_style()))?;
    }
    Ok(DONE)
}
