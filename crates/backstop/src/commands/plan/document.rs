//! `backstop plan normalise` and `backstop plan new`: plans as documents.

use super::super::run::options;
use crate::error::{CliError, DONE, failed, usage};
use crate::{process, terminal};
use backstop_config::{Given, LogFormat};
use backstop_core::SafeText;
use backstop_exec::Stop;
use backstop_plan::document::normalised;
use backstop_plan::start::{Equipper, PlanFile, RunError, folder_name};
use backstop_plan::writer::{WriteError, write_plan};
use backstop_runtime::Project;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;

/// Print a plan of any format in Backstop's own form.
#[derive(Debug, Args)]
pub(crate) struct PlanNormalise {
    /// The plan
    pub(crate) plan: PathBuf,
    /// Format of the plan; it is found by the plan's structure
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// What a phase is: phase or task
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<super::super::run::ByWhat>,
}

/// Have an agent write a plan in Backstop's own form; it is checked before it is kept.
#[derive(Debug, Args)]
pub(crate) struct PlanNew {
    /// What is to be reached
    pub(crate) objective: String,
    /// The agent that writes it
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// File for the plan (default: plan.md); one that is there is not replaced
    #[arg(long, value_name = "FILE", default_value = "plan.md")]
    pub(crate) out: PathBuf,
}

/// Prints a plan in Backstop's own form.
pub(super) fn normalise(project: &Project, args: &PlanNormalise) -> Result<u8, CliError> {
    let by = super::super::word(args.by);
    let found = PlanFile::read(&args.plan, &project.root, &options(args.format.as_deref(), by.as_deref())?)?;
    for part in &found.plan.passed_over {
        terminal::warn(&format!("{}:{}: passed over: {}", found.path, part.line, part.text), None);
    }
    for warning in &found.plan.warnings {
        terminal::warn(&format!("{}:{}: {}", found.path, warning.line, warning.text), None);
    }
    terminal::print(&normalised(&found.plan))?;
    Ok(DONE)
}

/// Has an agent write a plan.
pub(super) fn new(args: &PlanNew, format: Option<LogFormat>) -> Result<u8, CliError> {
    let given = args.agent.clone().map(|value| Given {
        flag: "--agent".to_owned(),
        key: "plan.agent".to_owned(),
        value,
    });
    let project = process::open(&given.into_iter().collect::<Vec<_>>(), format)?;
    if args.out.exists() {
        return Err(usage(format!("{} is there already", args.out.display()))
            .hint("name another file with --out FILE"));
    }
    let equipper = Equipper::new(&project.config, &project.root, project.is_trusted())?;
    let agent = equipper.usual_agent()?.ok_or_else(|| {
        usage("no agent is named")
            .hint("say --agent claude, or set it with `backstop config set plan.agent claude`")
    })?;
    if let Some(program) = agent.argv.first().filter(|program| !process::is_on_the_path(program)) {
        return Err(RunError::AgentMissing { program: program.clone(), phase: "new".to_owned() }.into());
    }
    let folder = project.folder().map_err(RunError::from)?;
    let name = folder_name(backstop_core::RunId::from_random(process::random(), 8), "new");
    let scratch = folder.work_folder(&project.root, &name).map_err(RunError::from)?;
    let settings = project.config.plan();
    let written = std::fs::create_dir_all(&scratch).map_err(|error| failed(&error)).and_then(|()| {
        write_plan(&project, &agent, settings.model.as_deref(), &args.objective, &scratch, &Stop::new())
            .map_err(write_error)
    });
    let _ = std::fs::remove_dir_all(&scratch);
    let written = written?;
    let write = |error: std::io::Error| {
        failed(format!("cannot write {}: {error}", args.out.display()))
            .hint("name another file with --out FILE")
    };
    let mut file = std::fs::File::create_new(&args.out).map_err(write)?;
    file.write_all(written.text.as_bytes()).map_err(write)?;
    let count = written.plan.phases.len();
    terminal::say(&format!(
        "{}: {count} phases, asked {}; look with `backstop run {} --dry-run`\n",
        args.out.display(),
        if written.asked == 1 { "once" } else { "twice" },
        SafeText::new(args.out.to_string_lossy()).line(200),
    ));
    Ok(DONE)
}

fn write_error(error: WriteError) -> CliError {
    match error {
        WriteError::Start(error) => error.into(),
        other => failed(&other)
            .hint("say the objective in more words, or write a list: `backstop run FILE --dry-run` reads it")
            .multiline(),
    }
}
