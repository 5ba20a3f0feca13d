//! What keeps a plan from being run, and what to type next.

use crate::document::{Format, PLAN_BYTES_MAX, PlanErrors};
use crate::view::EditError;
use backstop_core::nearest::nearest;
use backstop_core::{ErrorKind, HintedError, Reason, RunId, SafeText, Timestamp};
use backstop_report::date_time;
use backstop_runtime::ProjectError;
use backstop_store::{Holder, StoreError};
use backstop_work::agent::AgentError;
use backstop_work::gate::GateError;
use backstop_work::git::GitError;
use std::path::PathBuf;

/// How many names a message lists.
const NAMES_MAX: usize = 10;

/// What keeps a plan from being run.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs)] // The message of each says what it is; the fields are what it names.
pub enum RunError {
    #[error("{0}")]
    Project(#[from] ProjectError),
    #[error("cannot read {}: {error}", file.display())]
    Read { file: PathBuf, error: std::io::Error },
    #[error("cannot write {}: {error}", file.display())]
    Write { file: PathBuf, error: std::io::Error },
    #[error("{}", mistakes(file, errors))]
    Plan { file: SafeText, errors: Box<PlanErrors> },
    #[error("{} is a folder, not a plan", file.display())]
    PlanIsFolder { file: PathBuf, nearest: Option<PathBuf> },
    #[error("{} is no file that can be a plan", file.display())]
    PlanIsNoFile { file: PathBuf },
    #[error("{} has {bytes} bytes; a plan has at most {PLAN_BYTES_MAX}", file.display())]
    PlanTooLarge { file: PathBuf, bytes: u64 },
    #[error("there is no format `{given}`")]
    NoFormat { given: String },
    #[error("--dir {dir} is not below the project")]
    NotBelow { dir: String },
    #[error("`{given}` is not a time that --at knows")]
    NoStartTime { given: String },
    #[error("`{given}` is {}, more than 31 days away", date_time(*at))]
    StartTooFar { given: String, at: Timestamp },
    #[error("{0}")]
    Agent(Box<AgentError>),
    #[error("no agent is named")]
    NoAgentNamed,
    #[error("{} is there already", file.display())]
    FileThere { file: PathBuf },
    #[error("there is no agent `{given}`")]
    NoAgent { given: String, known: Vec<String> },
    #[error("`{program}`, which phase {phase} needs, is not on the PATH")]
    AgentMissing { program: String, phase: String },
    #[error("nobody works on {}: neither an agent nor a command is named", some(phases))]
    NoWorker { phases: Vec<String> },
    #[error("{} in the plan that an agent could be told", if phases.len() == 1 { format!("phase {} has no section", some(phases)) } else { format!("phases {} have no section", some(phases)) })]
    NoSection { phases: Vec<String> },
    #[error(
        "phase {phase} names the gate `{given}`, which is neither detected here nor in the configuration"
    )]
    NoGate { phase: String, given: String },
    #[error("{0}")]
    Gate(Box<GateError>),
    #[error("{0}")]
    Git(Box<GitError>),
    #[error("a `git {what}` is under way here")]
    Underway { what: &'static str },
    #[error("tracked files have changes that are not committed: {}", some_files(files))]
    Dirty { files: Vec<PathBuf> },
    #[error("this repository has no commit yet, so there is nothing that worktrees can begin from")]
    NoCommit,
    #[error("how finished phases are committed is not said")]
    NoCommitMode,
    #[error("this run began with --commit {began}, not with --commit {given}")]
    OtherCommit { began: &'static str, given: &'static str },
    #[error("this run began with --isolation {began}, and where finished work lies depends on it")]
    OtherIsolation { began: &'static str },
    #[error("phase {} was cut off, nobody knows how far it got, and the plan says that it must not be repeated", phases.join(", "))]
    MayHaveHappened { phases: Vec<String> },
    #[error("--commit {given} needs a git repository, and here is none")]
    NoGitForCommit { given: &'static str },
    #[error("{plan} is being run {}", holder_shown(holder.as_ref()))]
    HeldBy { holder: Option<Holder>, plan: String },
    #[error("there is no run of {plan} to go on with")]
    NothingToResume { plan: String },
    #[error("no plan was run in this project")]
    NoPlanRuns,
    #[error("{plan} was never run in this project")]
    NoRunOf { plan: String },
    #[error("no run {run} is recorded")]
    NoRun { run: RunId },
    #[error("several plans were run in this project: {}", plans.iter().take(NAMES_MAX).map(|p| p.line(60)).collect::<Vec<_>>().join(", "))]
    WhichPlan { plans: Vec<SafeText> },
    #[error("there is no phase `{given}` in this run")]
    NoPhase { given: String, known: Vec<String> },
    #[error("phase {phase} has not run yet")]
    NotRunYet { phase: String },
    #[error("phase {phase} has no attempt {attempt}; it has had {total}")]
    NoAttempt { phase: String, attempt: u32, total: u32 },
    #[error("what phase {phase} changed was not saved: it ran outside a worktree, or not at all")]
    NotSaved { phase: String },
    #[error("no phase of {plan} has a gate: there is nothing to check")]
    NoGates { plan: String },
    #[error("this repository does not have commit {commit}, which the last run of {plan} was at")]
    OtherRepository { plan: String, commit: String },
    #[error("phase {phase} is complete; there is nothing to pass over")]
    PhaseComplete { phase: String },
    #[error("a fresh start was not confirmed")]
    NotConfirmed,
    #[error("{}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    StateFiles { errors: Vec<EditError> },
}

impl RunError {
    /// What a run that was begun ends with because of it.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Git(error) => match &**error {
                GitError::NoRoom { .. } => Reason::DiskFull,
                GitError::ReadOnly { .. } => Reason::PermissionDenied,
                _ => Reason::VcsError,
            },
            _ => Reason::InvalidUsage,
        }
    }
}

/// Everything that is wrong with a plan, a line each, with what would be accepted where there are
/// several.
fn mistakes(file: &SafeText, errors: &PlanErrors) -> String {
    let file = file.line(400);
    match errors.list() {
        [one] => format!("{file}:{one}"),
        all => {
            let line = |error: &crate::document::PlanError| format!("{file}:{error}: {}", error.hint());
            let mut lines: Vec<String> = all.iter().map(line).collect();
            if errors.left_out() > 0 {
                lines.push(format!("and {} more", errors.left_out()));
            }
            lines.join("\n")
        }
    }
}

/// Some of these names.
fn some(names: &[String]) -> String {
    names.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ")
}

/// Some of these files.
fn some_files(files: &[PathBuf]) -> String {
    let mut names: Vec<String> = files.iter().take(5).map(|file| file.display().to_string()).collect();
    if files.len() > names.len() {
        names.push(format!("and {} more", files.len() - names.len()));
    }
    names.join(", ")
}

fn holder_shown(holder: Option<&Holder>) -> String {
    match holder {
        Some(holder) => {
            let run = holder.run.map(|run| format!(" as {run}")).unwrap_or_default();
            format!("by process {}{run}, since {}", holder.pid, holder.since)
        }
        None => "by another process".to_owned(),
    }
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self::Project(error.into())
    }
}

impl From<GitError> for RunError {
    fn from(error: GitError) -> Self {
        Self::Git(Box::new(error))
    }
}

impl From<GateError> for RunError {
    fn from(error: GateError) -> Self {
        Self::Gate(Box::new(error))
    }
}

impl From<AgentError> for RunError {
    fn from(error: AgentError) -> Self {
        Self::Agent(Box::new(error))
    }
}

impl HintedError for RunError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Project(error) => error.kind(),
            _ if self.is_usage() => ErrorKind::Usage,
            _ => ErrorKind::Failed,
        }
    }

    fn hints(&self) -> Vec<String> {
        Self::hints(self)
    }

    fn is_multiline(&self) -> bool {
        match self {
            Self::Project(error) => error.is_multiline(),
            _ => Self::is_multiline(self),
        }
    }
}

impl RunError {
    /// Whether it is a mistake in what was typed or written, and not trouble of this machine.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Project(error) => error.is_usage(),
            Self::Read { .. }
            | Self::Write { .. }
            | Self::Gate(_)
            | Self::Git(_)
            | Self::HeldBy { .. }
            | Self::StateFiles { .. }
            | Self::AgentMissing { .. }
            | Self::NotConfirmed
            | Self::MayHaveHappened { .. } => false,
            _ => true,
        }
    }

    /// Whether each line of its message is ours.
    pub fn is_multiline(&self) -> bool {
        matches!(self, Self::Plan { .. } | Self::StateFiles { .. } | Self::Project(ProjectError::Config(_)))
    }

    /// What to type next.
    pub fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Project(error) => return error.hints(),
            Self::Read { .. } => "check the path, and that it is a file that you may read".to_owned(),
            Self::Write { .. } => "name a folder that you may write, or one that is not there yet".to_owned(),
            Self::Plan { file, errors } => match errors.list() {
                [error] => {
                    let also = error.also.iter().map(|(line, what)| format!("line {line}: {what}"));
                    return also.chain([error.hint()]).collect();
                }
                _ => format!("correct them, and look with `backstop run {} --dry-run`", file.line(400)),
            },
            Self::PlanIsFolder { nearest: Some(near), .. } => format!("did you mean `{}`?", near.display()),
            Self::PlanIsFolder { .. } | Self::PlanIsNoFile { .. } => {
                "name a plan's file; docs/plans.md says what a plan is".to_owned()
            }
            Self::PlanTooLarge { .. } => "split the plan into several".to_owned(),
            Self::NoFormat { given } => {
                let names = Format::ALL.map(Format::name);
                match nearest(given, names) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("formats are {}", names.join(", ")),
                }
            }
            Self::NotBelow { .. } => {
                "write a folder such as packages/api, from the project's root".to_owned()
            }
            Self::NoStartTime { .. } | Self::StartTooFar { .. } => {
                "write a time of day such as 22:30, or a date and a time such as 2026-11-20T08:00".to_owned()
            }
            Self::Agent(error) => error.hint(),
            Self::NoAgentNamed => {
                "say --agent claude, or set it with `backstop config set plan.agent claude`".to_owned()
            }
            Self::FileThere { .. } => "name another file with --out FILE".to_owned(),
            Self::NoAgent { given, known } => match nearest(given, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "agents are {}; others are set with agent.NAME.command, or given as a command: \
                     --agent 'my-agent --prompt {{prompt_file}}'",
                    known.join(", ")
                ),
            },
            Self::AgentMissing { program, .. } => {
                format!("install `{program}` or put it on the PATH, then check with `command -v {program}`")
            }
            Self::NoWorker { .. } => {
                "name one with --agent claude, or give the phase a `command` in its backstop block".to_owned()
            }
            Self::NoSection { phases } => {
                let first = phases.first().map_or("1", String::as_str);
                format!(
                    "write `### Phase {first}: NAME` with what is to be done, or give the phase a `command`"
                )
            }
            Self::NoGate { given, .. } => {
                format!(
                    "write it out: gates = [{{ name = \"{given}\", check = \"...\" }}], or gates = [] for none"
                )
            }
            Self::NotRunYet { .. } => "`backstop plan status` shows where it stands".to_owned(),
            Self::NoAttempt { .. } => "leave --attempt out for the last one".to_owned(),
            Self::NotSaved { .. } => "look at the tree itself with `git status` and `git diff`".to_owned(),
            Self::Gate(error) => error.hint(),
            Self::Git(error) => error.hint(),
            Self::Underway { what } => format!("finish it, or end it with `git {what} --abort`"),
            Self::Dirty { .. } => {
                "commit or stash them; with --allow-dirty phases begin from the last commit, without them"
                    .to_owned()
            }
            Self::NoCommit => {
                "make one with `git commit --allow-empty -m start`, or use --isolation none".to_owned()
            }
            Self::NoCommitMode => {
                "say --commit auto, --commit single, --commit message-only or --commit none".to_owned()
            }
            Self::OtherCommit { began, .. } => {
                format!("go on with --commit {began}, or begin anew with --fresh")
            }
            Self::OtherIsolation { began } => {
                format!("go on with --isolation {began}, or begin anew with --fresh")
            }
            Self::MayHaveHappened { phases } => {
                let first = phases.first().map_or("1", String::as_str);
                return vec![
                    format!("look whether it has happened; if so: `backstop plan skip {first} --why done`"),
                    format!("if not: `backstop plan retry {first} --why again`"),
                ];
            }
            Self::NoGitForCommit { .. } => "say --commit none, or `git init` first".to_owned(),
            Self::HeldBy { .. } => {
                "watch it with `backstop plan status`, or wait until it has ended".to_owned()
            }
            Self::NothingToResume { .. } => "leave --resume out, and it begins".to_owned(),
            Self::NoPlanRuns => "`backstop run PLAN.md` runs one".to_owned(),
            Self::NoRunOf { plan } => format!("`backstop run {plan}` runs it"),
            Self::NoRun { .. } => "`backstop runs` lists the runs of this project".to_owned(),
            Self::WhichPlan { .. } => "say which with --plan PLAN.md or --run RUN".to_owned(),
            Self::NoPhase { known, .. } => {
                format!("phases are {}", known.iter().take(20).cloned().collect::<Vec<_>>().join(", "))
            }
            Self::NoGates { .. } => {
                "name gates in the plan or the config, or let them be detected: --gates auto".to_owned()
            }
            Self::OtherRepository { .. } => {
                "the repository was made anew since: begin anew with --fresh".to_owned()
            }
            Self::PhaseComplete { phase } => format!("`backstop plan reset {phase}` sets it back"),
            Self::NotConfirmed => "say so with --yes; without --fresh the run goes on".to_owned(),
            Self::StateFiles { .. } => {
                return vec![
                    "correct the file; or delete it, and the phase is run again".to_owned(),
                    "or begin anew with --fresh; commits stay".to_owned(),
                ];
            }
        };
        vec![hint]
    }
}
