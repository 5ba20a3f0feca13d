//! A plan that an agent writes: asked for in Backstop's own form, checked, and asked for once more
//! with everything that is wrong.

use crate::document::{Format, Plan, PlanErrors, PlanText, ReadOptions, read};
use crate::start::{Equipper, RunError, folder_name};
use backstop_core::{ErrorKind, Fault, HintedError, RunId, SafeText};
use backstop_exec::{Limits, Stop};
use backstop_runtime::Project;
use backstop_work::Log;
use backstop_work::agent::{Agent, Attempt, Silences, Wanted, Work, attempt};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// How often the agent is asked: once, and once more with what is wrong.
const ASKED_MAX: u32 = 2;

/// A plan that was written and can be read.
#[derive(Debug)]
pub struct WrittenPlan {
    /// Its text.
    pub text: String,
    /// What it means.
    pub plan: Plan,
    /// How often the agent was asked.
    pub asked: u32,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The agent failed.
    #[error("the agent wrote no plan: {}", .0.cause.as_ref().map_or_else(|| .0.reason.code().to_owned(), |cause| cause.line(300)))]
    Agent(Box<Fault>),
    /// What it wrote cannot be read, also not the second time.
    #[error("what the agent wrote is no plan:\n{0}")]
    Plan(PlanErrors),
    /// It could not be asked.
    #[error("{0}")]
    Start(#[from] RunError),
}

impl HintedError for WriteError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Start(error) => HintedError::kind(error),
            Self::Agent(_) | Self::Plan(_) => ErrorKind::Failed,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Start(error) => HintedError::hints(error),
            Self::Agent(_) | Self::Plan(_) => vec![
                "say the objective in more words, or write a list: `backstop run FILE --dry-run` reads it"
                    .to_owned(),
            ],
        }
    }

    fn is_multiline(&self) -> bool {
        match self {
            Self::Start(error) => HintedError::is_multiline(error),
            Self::Agent(_) | Self::Plan(_) => true,
        }
    }
}

/// Has the agent of the settings write a plan into a new file. `is_found` looks for a program.
pub fn write_new_plan(
    project: &Project,
    objective: &str,
    file: &Path,
    is_found: &dyn Fn(&str) -> bool,
) -> Result<WrittenPlan, WriteError> {
    if file.exists() {
        return Err(RunError::FileThere { file: file.to_owned() }.into());
    }
    let equipper = Equipper::new(&project.config, &project.root, project.is_trusted())?;
    let agent = equipper.usual_agent()?.ok_or(RunError::NoAgentNamed)?;
    if let Some(program) = agent.argv.first().filter(|program| !is_found(program)) {
        return Err(RunError::AgentMissing { program: program.clone(), phase: "new".to_owned() }.into());
    }
    let folder = project.folder().map_err(RunError::from)?;
    let name = folder_name(RunId::from_random((project.process.random)(), 8), "new");
    let scratch = folder.work_folder(&project.root, &name).map_err(RunError::from)?;
    let cannot = |file: &Path, error| RunError::Write { file: file.to_owned(), error };
    std::fs::create_dir_all(&scratch).map_err(|error| cannot(&scratch, error))?;
    let model = project.config.plan().model;
    let written = write_plan(project, &agent, model.as_deref(), objective, &scratch, &Stop::new());
    let _ = std::fs::remove_dir_all(&scratch);
    let written = written?;
    let mut out = File::create_new(file).map_err(|error| cannot(file, error))?;
    out.write_all(written.text.as_bytes()).map_err(|error| cannot(file, error))?;
    Ok(written)
}

/// What the agent is asked.
fn prompt(objective: &str, wrong: Option<(&str, &PlanErrors)>) -> String {
    let mut out = format!(
        "Write a plan for this objective, and do nothing else. Read the project as far as you need to; change no file.\n\n\
         Objective: {objective}\n\n\
         Answer with the plan alone, as Markdown in exactly this form:\n\n\
         | Phase | Name | Depends On | Parallel With | Estimate | Status |\n\
         |-------|------|------------|---------------|----------|--------|\n\
         | 1 | Short name | - | | 20m | ⬜ |\n\
         | 2A | Short name | 1 | 2B | 1h | ⬜ |\n\
         | 2B | Short name | 1 | 2A | 1h | ⬜ |\n\n\
         ## Phase 1: Short name\n\n\
         What is to be done, for somebody who has only read this section.\n\n\
         - [ ] a task that can be checked\n\n\
         Rules: every phase has a row and a section; `Depends On` and `Parallel With` name ids of rows; phases that may run \
         at the same time change different files; three to nine phases, each an hour of work or less.\n"
    );
    if let Some((text, errors)) = wrong {
        out.push_str(&format!(
            "\nYour last answer could not be read:\n\n{errors}\n\nIt was:\n\n{}\n",
            SafeText::new(text).prompt("answer", 20_000)
        ));
    }
    out
}

/// Has an agent write a plan. Nothing is kept that cannot be read.
fn write_plan(
    project: &Project,
    agent: &Agent,
    model: Option<&str>,
    objective: &str,
    scratch: &Path,
    stop: &Stop,
) -> Result<WrittenPlan, WriteError> {
    let classifier = project.classifier(&[]).map_err(RunError::from)?;
    let mut last: Option<(String, PlanErrors)> = None;
    for asked in 1..=ASKED_MAX {
        let wrong = last.as_ref().map(|(text, errors)| (text.as_str(), errors));
        let given = Attempt {
            work: Work::Agent { agent, model, prompt: prompt(objective, wrong), session: None },
            folder: &project.root,
            scratch,
            phase_key: "plan",
            number: asked,
            tasks: &[],
            env: Vec::new(),
            limits: Limits::default(),
            retry_context: None,
            log: Log::to(std::io::sink()),
            redactor: &project.redactor,
            on_session: Arc::new(|_: &str| {}),
            silences: Silences::default(),
            wanted: Wanted::Answer,
            iterations_max: None,
            allow_overage: false,
            linked: &[],
        };
        let now = || (project.process.now)();
        let done = attempt(given, &classifier, &now, stop, |_| {});
        let done = done.map_err(|error| WriteError::Agent(Box::new(error.fault())))?;
        let text = match (done.fault, done.answer) {
            (None, Some(answer)) => without_fence(answer.raw()).to_owned(),
            (fault, _) => {
                let fault = fault.unwrap_or_else(|| Fault::new(backstop_core::Reason::ParseError));
                return Err(WriteError::Agent(Box::new(fault)));
            }
        };
        let options = ReadOptions { format: Some(Format::Backstop), by: None };
        match read(&[PlanText { name: "", text: text.as_bytes() }], &options) {
            Ok(plan) => return Ok(WrittenPlan { text: format!("{}\n", text.trim_end()), plan, asked }),
            Err(errors) => last = Some((text, errors)),
        }
    }
    let (_, errors) = last.unwrap_or_else(|| (String::new(), Vec::new().into()));
    Err(WriteError::Plan(errors))
}

/// An answer without the fence that the whole of it is in, and without words before the table.
fn without_fence(answer: &str) -> &str {
    let text = answer.trim();
    let inner = text.strip_prefix("```markdown").or_else(|| text.strip_prefix("```md"));
    let inner = inner.and_then(|inner| inner.trim_end().strip_suffix("```"));
    inner.unwrap_or(text).trim()
}
