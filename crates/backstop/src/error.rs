//! The one place that maps errors to words and exit codes.

use backstop_classify::{ClassifierError, ExampleFailure, PackError};
use backstop_config::ConfigError;
use backstop_core::duration::QuantityError;
use backstop_core::{RunId, SafeText};
use backstop_plan::document::PlanError;
use backstop_store::StoreError;
use std::path::PathBuf;

/// It worked.
pub(crate) const DONE: u8 = 0;
/// It failed.
pub(crate) const FAILED: u8 = 1;
/// It was asked for in a way that cannot be understood.
pub(crate) const USAGE: u8 = 2;

/// It stopped, and can be gone on with.
pub(crate) const HALTED: u8 = 3;
/// Somebody asked for the end.
pub(crate) const INTERRUPTED: u8 = 130;
/// Not now: try later.
pub(crate) const DEFERRED: u8 = 75;

/// Everything that can go wrong in the CLI.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error("cannot read {}: {error}", file.display())]
    Read { file: PathBuf, error: std::io::Error },
    #[error("cannot write {}: {error}", file.display())]
    Write { file: PathBuf, error: std::io::Error },
    #[error("cannot run `{command}`: {error}")]
    Run { command: String, error: std::io::Error },
    #[error("cannot write the output: {0}")]
    Output(std::io::Error),
    #[error("{0}")]
    Reason(#[from] backstop_core::UnknownReason),
    #[error("`{given}` is no signal: use a number from 1 to 64, or a name such as SIGTERM")]
    Signal { given: String },
    #[error("`{given}` is no header: write it as `name: value`")]
    Header { given: String },
    #[error("{}", .0)]
    Pack(PackError),
    #[error("{}", .0)]
    Classifier(ClassifierError),
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Examples(Vec<ExampleFailure>),
    #[error("there is no rule `{given}`")]
    NoRule { given: String, nearest: Option<String> },
    #[error("there is no pack `{given}`")]
    NoPack { given: String, known: Vec<String> },
    #[error("{}", .0)]
    Config(ConfigError),
    #[error("{0}")]
    Store(StoreError),
    #[error("{0}")]
    Id(#[from] backstop_core::IdError),
    #[error("{0}")]
    DeferredId(#[from] backstop_store::DeferredIdError),
    #[error("{0}")]
    Quantity(#[from] QuantityError),
    #[error("there is no folder for Backstop's state: neither BACKSTOP_STATE_DIR nor HOME is set")]
    NoStateFolder,
    #[error("cannot tell the current folder: {0}")]
    NoFolder(std::io::Error),
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
    #[error("`{given}` is no override: write it as REASON=ACTION")]
    On { given: String },
    #[error("{run} does not wait for a confirmation in this project")]
    NotWaiting { run: RunId },
    #[error("{run} waits for a confirmation of another command: {waits}")]
    OtherCommand { run: RunId, waits: String },
    #[error("the command holds a secret, which was not stored: {command}")]
    Masked { command: String, again: String },
    #[error("no run {run} is recorded")]
    NoRun { run: RunId },
    #[error("no runs are recorded in this project")]
    NoRuns,
    #[error("there is no kind of event `{given}`")]
    NoKind { given: String, nearest: Option<&'static str> },
    #[error("no work {given} is put aside in this project")]
    NoDeferred { given: String },
    #[error("{}", match given { Some(given) => format!("there is no sink `{given}`"), None => "no sink is configured here".to_owned() })]
    NoSink { given: Option<String>, known: Vec<String> },
    #[error("there is no budget `{given}`")]
    NoBudget { given: String, known: Vec<String> },
    #[error("`{given}` is no scope of a budget: use total, day, run or task")]
    NoScope { given: String, nearest: Option<&'static str> },
    #[error("`{given}` names no input: {why}")]
    Glob { given: String, why: String },
    #[error("there is nothing to trust: no backstop.toml between here and the repository's root")]
    NothingToTrust,
    #[error("{lines} of the batch's lines could not be read; each is answered with an error")]
    Batch { lines: u64 },
    #[error("{}:{error}", .file.line(400))]
    Plan { file: SafeText, error: Box<PlanError> },
    #[error("{} is a folder, not a plan", file.display())]
    PlanIsFolder { file: PathBuf, nearest: Option<PathBuf> },
    #[error("{} is no file that can be a plan", file.display())]
    PlanIsNoFile { file: PathBuf },
    #[error("{} has {bytes} bytes; a plan has at most {}", file.display(), backstop_plan::document::PLAN_BYTES_MAX)]
    PlanTooLarge { file: PathBuf, bytes: u64 },
    #[error("{0}")]
    Agent(Box<backstop_work::agent::AgentError>),
    #[error("there is no agent `{given}`")]
    NoAgent { given: String, known: Vec<String> },
    #[error("`{program}`, which phase {phase} needs, is not on the PATH")]
    AgentMissing { program: String, phase: String },
    #[error("nobody works on {}: neither an agent nor a command is named", phases.iter().take(10).cloned().collect::<Vec<_>>().join(", "))]
    NoWorker { phases: Vec<String> },
    #[error(
        "phase {phase} names the gate `{given}`, which is neither detected here nor in the configuration"
    )]
    NoGate { phase: String, given: String },
    #[error("{0}")]
    Install(Box<backstop_install::InstallError>),
    #[error("{0}")]
    Git(Box<backstop_work::git::GitError>),
    #[error("a `git {what}` is under way here")]
    Underway { what: &'static str },
    #[error("tracked files have changes that are not committed: {}", some(files))]
    Dirty { files: Vec<PathBuf> },
    #[error("this repository has no commit yet, so there is nothing that worktrees can begin from")]
    NoCommit,
    #[error("how finished phases are committed is not said")]
    NoCommitMode,
    #[error("this run began with --commit {began}, not with --commit {given}")]
    OtherCommit { began: &'static str, given: &'static str },
    #[error("phase {} was cut off, nobody knows how far it got, and the plan says that it must not be repeated", phases.join(", "))]
    MayHaveHappened { phases: Vec<String> },
    #[error("this run began with --isolation {began}, and where finished work lies depends on it")]
    OtherIsolation { began: &'static str },
    #[error("--commit {given} needs a git repository, and here is none")]
    NoGitForCommit { given: &'static str },
    #[error(
        "what you have committed meanwhile and what the run has finished do not go together: {}",
        some(files)
    )]
    Diverged { tip: String, files: Vec<PathBuf> },
    #[error("{plan} is being run {}", holder_shown(holder.as_ref()))]
    HeldBy { holder: Option<backstop_store::Holder>, plan: String },
    #[error("there is no run of {plan} to go on with")]
    NothingToResume { plan: String },
    #[error("a fresh start was not confirmed")]
    NotConfirmed,
    #[error("{}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    StateFiles { errors: Vec<backstop_plan::view::EditError> },
    #[error("{0}")]
    Host(backstop_runtime::host::HostError),
    #[error("no plan was run in this project")]
    NoPlanRuns,
    #[error("several plans were run in this project: {}", plans.iter().take(10).map(|p| p.line(60)).collect::<Vec<_>>().join(", "))]
    WhichPlan { plans: Vec<SafeText> },
    #[error("there is no phase `{given}` in this run")]
    NoPhase { given: String, known: Vec<String> },
    #[error("phase {phase} has no attempt {attempt}; it has had {total}")]
    NoAttempt { phase: String, attempt: u32, total: u32 },
    #[error("phase {phase} has not run yet")]
    NotRun { phase: String },
    #[error("phase {phase} is complete; there is nothing to pass over")]
    PhaseComplete { phase: String },
    #[error("{plan} was never run in this project")]
    NoRunOf { plan: String },
    #[error("phases {} have no section in the plan that an agent could be told", phases.iter().take(10).cloned().collect::<Vec<_>>().join(", "))]
    NoSection { phases: Vec<String> },
    #[error("what phase {phase} changed was not saved: it ran outside a worktree, or not at all")]
    NoDiff { phase: String },
    #[error("{0}")]
    HookInput(backstop_hook::InputError),
    #[error("this project is frozen since {} ({}): {}", .0.at, .0.reason, .0.why.line(300))]
    Frozen(Box<backstop_store::Freeze>),
    #[error("`{task}` is a task that somebody else works on: only who reported it can go on")]
    IsTask { task: String },
    #[error("a project that is frozen is let go on for a reason, and none is given")]
    NoRationale,
    #[error("nothing has failed in this project yet")]
    NothingFailed,
    #[error("{0}")]
    Gate(String),
    #[error("no error of a task `{given}` was reported in this project")]
    NoTask { given: String, nearest: Option<String> },
}

/// Some of these files.
fn some(files: &[PathBuf]) -> String {
    let mut names: Vec<String> = files.iter().take(5).map(|file| file.display().to_string()).collect();
    if files.len() > names.len() {
        names.push(format!("and {} more", files.len() - names.len()));
    }
    names.join(", ")
}

fn holder_shown(holder: Option<&backstop_store::Holder>) -> String {
    match holder {
        Some(holder) => {
            let run = holder.run.map(|run| format!(" as {run}")).unwrap_or_default();
            format!("by process {}{run}, since {}", holder.pid, holder.since)
        }
        None => "by another process".to_owned(),
    }
}

impl CliError {
    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            CliError::Install(error) => match **error {
                backstop_install::InstallError::NothingFound => USAGE,
                _ => FAILED,
            },
            CliError::Frozen(_) => DEFERRED,
            CliError::Read { .. }
            | CliError::Write { .. }
            | CliError::Run { .. }
            | CliError::Output(_)
            | CliError::Store(_)
            | CliError::NoStateFolder
            | CliError::NoFolder(_)
            | CliError::Signals(_)
            | CliError::Masked { .. }
            | CliError::Git(_)
            | CliError::HeldBy { .. }
            | CliError::Host(_)
            | CliError::StateFiles { .. }
            | CliError::Diverged { .. }
            | CliError::AgentMissing { .. }
            | CliError::NotConfirmed
            | CliError::NothingFailed
            | CliError::IsTask { .. }
            | CliError::MayHaveHappened { .. }
            | CliError::Gate(_)
            | CliError::Batch { .. } => FAILED,
            CliError::Plan { .. }
            | CliError::PlanIsFolder { .. }
            | CliError::PlanIsNoFile { .. }
            | CliError::PlanTooLarge { .. }
            | CliError::Agent(_)
            | CliError::NoAgent { .. }
            | CliError::NoWorker { .. }
            | CliError::NoGate { .. }
            | CliError::Underway { .. }
            | CliError::Dirty { .. }
            | CliError::NoCommit
            | CliError::NoCommitMode
            | CliError::OtherCommit { .. }
            | CliError::NoGitForCommit { .. }
            | CliError::OtherIsolation { .. }
            | CliError::NothingToResume { .. }
            | CliError::NoPlanRuns
            | CliError::WhichPlan { .. }
            | CliError::NoPhase { .. }
            | CliError::NoAttempt { .. }
            | CliError::NotRun { .. }
            | CliError::PhaseComplete { .. }
            | CliError::NoRunOf { .. }
            | CliError::NoSection { .. }
            | CliError::HookInput(_)
            | CliError::NoTask { .. }
            | CliError::NoDiff { .. } => USAGE,
            CliError::Reason(_)
            | CliError::Signal { .. }
            | CliError::Header { .. }
            | CliError::Pack(_)
            | CliError::Classifier(_)
            | CliError::Examples(_)
            | CliError::NoRule { .. }
            | CliError::NoPack { .. }
            | CliError::Config(_)
            | CliError::Id(_)
            | CliError::DeferredId(_)
            | CliError::Quantity(_)
            | CliError::On { .. }
            | CliError::NotWaiting { .. }
            | CliError::OtherCommand { .. }
            | CliError::NoRun { .. }
            | CliError::NoRuns
            | CliError::NoKind { .. }
            | CliError::NoDeferred { .. }
            | CliError::NoBudget { .. }
            | CliError::NoSink { .. }
            | CliError::NoRationale
            | CliError::NoScope { .. }
            | CliError::Glob { .. }
            | CliError::NothingToTrust => USAGE,
        }
    }

    /// What to type next.
    pub(crate) fn hints(&self) -> Vec<String> {
        match self {
            CliError::Read { .. } => {
                vec!["check the path, and that it is a file that you may read".to_owned()]
            }
            CliError::Write { .. } => {
                vec!["name a folder that you may write, or one that is not there yet".to_owned()]
            }
            CliError::Run { command, .. } => vec![format!("install `{command}`, or put it on the PATH")],
            CliError::Output(_) => Vec::new(),
            CliError::Reason(_) => {
                vec!["`backstop reasons` lists them all; `backstop rules show RULE` shows a rule".to_owned()]
            }
            CliError::Signal { .. } => {
                vec!["for example: `backstop classify --signal SIGSEGV out.log`".to_owned()]
            }
            CliError::Header { .. } => vec!["for example: `--header 'retry-after: 30'`".to_owned()],
            CliError::Pack(error) => error.hint.clone().into_iter().collect(),
            CliError::Classifier(ClassifierError::Pack(error)) => error.hint.clone().into_iter().collect(),
            CliError::Classifier(_) => vec!["give the pack's rules fewer or shorter literals".to_owned()],
            CliError::Examples(failures) => {
                let matched = failures.first().map(|f| f.matched.join(", ")).filter(|m| !m.is_empty());
                let mut hints =
                    vec!["correct the rule or its example, then run `backstop rules test` again".to_owned()];
                hints.extend(matched.map(|m| format!("the first of these texts is matched by {m}")));
                hints
            }
            CliError::NoRule { nearest: Some(near), .. } => vec![format!("did you mean `{near}`?")],
            CliError::NoRule { .. } => vec!["`backstop rules list` lists them all".to_owned()],
            CliError::NoPack { known, .. } => vec![format!("packs are {}", known.join(", "))],
            CliError::Config(error) => error.hints(),
            CliError::Store(error) => vec![error.hint()],
            CliError::Id(_) | CliError::NoRun { .. } => {
                vec!["`backstop runs` lists the runs of this project".to_owned()]
            }
            CliError::NoRuns => {
                vec!["`backstop exec -- COMMAND` or `backstop run PLAN.md` makes one".to_owned()]
            }
            CliError::DeferredId(_) | CliError::NoDeferred { .. } => {
                vec!["`backstop deferred list` lists what is put aside".to_owned()]
            }
            CliError::Quantity(_) => vec!["for example: 30s, 10m, 1h30m, 7d".to_owned()],
            CliError::NoStateFolder => vec!["set BACKSTOP_STATE_DIR to a folder of your own".to_owned()],
            CliError::NoFolder(_) => vec!["change into a folder that is there".to_owned()],
            CliError::Signals(_) => Vec::new(),
            CliError::On { .. } => {
                vec!["for example: `--on unknown=retry`; `backstop reasons` lists the reasons".to_owned()]
            }
            CliError::OtherCommand { run, .. } => {
                vec![format!("`backstop exec --confirm {run}` runs the one that waits")]
            }
            CliError::NotWaiting { run } => {
                vec![format!(
                    "`backstop explain {run}` tells how it ended; `backstop deferred list` what waits"
                )]
            }
            CliError::Masked { again, .. } => vec![format!("type it again, with the secret: `{again}`")],
            CliError::NoKind { nearest: Some(near), .. } => vec![format!("did you mean `{near}`?")],
            CliError::NoKind { .. } => {
                vec![format!("kinds are {}", backstop_core::EventKind::NAMES.join(", "))]
            }
            CliError::NoSink { known, .. } if known.is_empty() => {
                vec!["for example: `[notify.here]` with `type = \"terminal\"` in the configuration; `backstop config keys` lists what a sink has".to_owned()]
            }
            CliError::NoSink { known, .. } => vec![format!("sinks are {}", known.join(", "))],
            CliError::NoBudget { given, known } if known.is_empty() => {
                vec![format!("`backstop budget set {given} 50 --per day` makes it")]
            }
            CliError::NoBudget { known, .. } => vec![format!("budgets are {}", known.join(", "))],
            CliError::NoScope { nearest: Some(near), .. } => vec![format!("did you mean `{near}`?")],
            CliError::NoScope { .. } => {
                vec!["for example: `backstop budget set night 50 --per day`".to_owned()]
            }
            CliError::Glob { .. } => vec!["for example: `--input 'src/**'`".to_owned()],
            CliError::NothingToTrust => vec!["docs/config.md says what it may hold".to_owned()],
            CliError::Batch { .. } => vec!["look for answers with an `error` field".to_owned()],
            other => other.plan_hints(),
        }
    }
}

impl CliError {
    /// Trouble with git.
    pub(crate) fn git(error: backstop_work::git::GitError) -> Self {
        Self::Git(Box::new(error))
    }

    /// What to type next, where a plan is concerned.
    fn plan_hints(&self) -> Vec<String> {
        let hint = match self {
            CliError::Plan { error, .. } => {
                let also = error.also.iter().map(|(line, what)| format!("line {line}: {what}"));
                return also.chain([error.hint()]).collect();
            }
            CliError::PlanIsFolder { nearest: Some(near), .. } => {
                format!("did you mean `{}`?", near.display())
            }
            CliError::PlanIsFolder { .. } | CliError::PlanIsNoFile { .. } => {
                "name a Markdown file; docs/plans.md says what a plan is".to_owned()
            }
            CliError::PlanTooLarge { .. } => "split the plan into several".to_owned(),
            CliError::Agent(error) => error.hint(),
            CliError::NoAgent { given, known } => {
                match backstop_core::nearest::nearest(given, known.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        format!("agents are {}; others are set with agent.NAME.command", known.join(", "))
                    }
                }
            }
            CliError::AgentMissing { program, .. } => {
                format!("install `{program}` or put it on the PATH, then check with `command -v {program}`")
            }
            CliError::NoWorker { .. } => {
                "name one with --agent claude, or give the phase a `command` in its backstop block".to_owned()
            }
            CliError::NoGate { given, .. } => {
                format!(
                    "write it out: gates = [{{ name = \"{given}\", check = \"...\" }}], or gates = [] for none"
                )
            }
            CliError::Git(error) => error.hint(),
            CliError::Install(error) => error.hint(),
            CliError::Underway { what } => format!("finish it, or end it with `git {what} --abort`"),
            CliError::Dirty { .. } => {
                "commit or stash them; with --allow-dirty phases begin from the last commit, without them"
                    .to_owned()
            }
            CliError::NoCommit => {
                "make one with `git commit --allow-empty -m start`, or use --isolation none".to_owned()
            }
            CliError::NoCommitMode => {
                "say --commit auto, --commit single, --commit message-only or --commit none".to_owned()
            }
            CliError::OtherCommit { began, .. } => {
                format!("go on with --commit {began}, or begin anew with --fresh")
            }
            CliError::OtherIsolation { began } => {
                format!("go on with --isolation {began}, or begin anew with --fresh")
            }
            CliError::MayHaveHappened { phases } => {
                let first = phases.first().map_or("1", String::as_str);
                return vec![
                    format!("look whether it has happened; if so: `backstop plan skip {first} --why done`"),
                    format!("if not: `backstop plan retry {first} --why again`"),
                ];
            }
            CliError::NoGitForCommit { .. } => "say --commit none, or `git init` first".to_owned(),
            CliError::Diverged { tip, .. } => {
                format!("bring them together with `git merge {tip}`, commit, then repeat the command")
            }
            CliError::HeldBy { .. } => {
                "watch it with `backstop plan status`, or wait until it has ended".to_owned()
            }
            CliError::NothingToResume { .. } => "leave --resume out, and it begins".to_owned(),
            CliError::NotConfirmed => "say so with --yes; without --fresh the run goes on".to_owned(),
            CliError::StateFiles { .. } => {
                return vec![
                    "correct the file; or delete it, and the phase is run again".to_owned(),
                    "or begin anew with --fresh; commits stay".to_owned(),
                ];
            }
            CliError::Host(error) => error.hint(),
            CliError::NoPlanRuns => "`backstop run PLAN.md` runs one".to_owned(),
            CliError::WhichPlan { .. } => "say which with --plan PLAN.md or --run RUN".to_owned(),
            CliError::NoPhase { known, .. } => {
                format!("phases are {}", known.iter().take(20).cloned().collect::<Vec<_>>().join(", "))
            }
            CliError::NoAttempt { .. } => "leave --attempt out for the last one".to_owned(),
            CliError::NotRun { .. } => "`backstop plan status` shows where it stands".to_owned(),
            CliError::PhaseComplete { phase } => format!("`backstop plan reset {phase}` sets it back"),
            CliError::NoRunOf { plan } => format!("`backstop run {plan}` runs it"),
            CliError::NoSection { phases } => {
                let first = phases.first().map_or("1", String::as_str);
                format!(
                    "write `### Phase {first}: NAME` with what is to be done, or give the phase a `command`"
                )
            }
            CliError::HookInput(error) => error.hint().to_owned(),
            CliError::IsTask { task } => {
                let end_of_flags = if task.starts_with('-') { "-- " } else { "" };
                let task = backstop_core::shell::quoted(task);
                format!("once it is done: `backstop hook resolved {end_of_flags}{task}`")
            }
            CliError::NoRationale => {
                "say what was put right: `backstop unfreeze --why 'made room on /'`".to_owned()
            }
            CliError::NothingFailed => "`backstop runs` lists what was done".to_owned(),
            CliError::Frozen(freeze) => {
                let mut hints = vec!["put it right, then `backstop unfreeze --why TEXT`".to_owned()];
                hints.extend(freeze.run.map(|run| format!("`backstop diagnose {run}` shows what happened")));
                return hints;
            }
            CliError::NoTask { nearest: Some(near), .. } => format!("did you mean `{near}`?"),
            CliError::NoTask { .. } => "`backstop hook status` lists those that are known".to_owned(),
            CliError::NoDiff { .. } => "look at the tree itself with `git status` and `git diff`".to_owned(),
            _ => return Vec::new(),
        };
        vec![hint]
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<backstop_install::InstallError> for CliError {
    fn from(error: backstop_install::InstallError) -> Self {
        Self::Install(Box::new(error))
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<PackError> for CliError {
    fn from(error: PackError) -> Self {
        Self::Pack(error)
    }
}

impl From<ClassifierError> for CliError {
    fn from(error: ClassifierError) -> Self {
        match error {
            ClassifierError::Pack(error) => Self::Pack(error),
            error @ ClassifierError::TooManyPatterns(_) => Self::Classifier(error),
        }
    }
}
