//! A command as somebody asked for it, and what follows from the project's settings: under which
//! policy it is run, whether it may be repeated, what is asked and recorded before it begins.

use crate::admission::{Admission, BudgetScope, OnWait, OperationAdmission, OperationLimits, client_of};
use crate::aftermath::leftovers;
use crate::project::{Project, ProjectError};
use crate::recorder::{Observer, Opening, Recorder};
use backstop_classify::{Classifier, Effect, Effects, Repeatable};
use backstop_config::{EXEC_WAIT_MAX, EXEC_WAIT_MAX_WATCHED};
use backstop_core::{EventKind, Name, Policy, RunId, SafeText, shell};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A command as somebody asked for it.
#[derive(Debug, Clone, Default)]
pub struct CommandRequest {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Whether it is never repeated by itself.
    pub once: bool,
    /// Whether it is repeated by itself although it changes something outside the project.
    pub repeatable: bool,
    /// Whether there is one attempt, whatever the profile allows.
    pub single_attempt: bool,
    /// How often it is started at most, wherever the profile allows more than one attempt.
    pub attempts: Option<u32>,
    /// Whether somebody sees that a rate limit is waited for: then it may last longer.
    pub is_watched: bool,
    /// Rule packs beside the project's.
    pub packs: Vec<PathBuf>,
    /// Id of the task, for budgets per task.
    pub task: Option<String>,
    /// Id of the session.
    pub session: Option<String>,
    /// Name of the caller.
    pub caller: Option<String>,
    /// What a person overrides, as it was typed.
    pub overrides: Vec<String>,
    /// Why.
    pub why: Option<String>,
    /// The flags of `exec` with which it is run again, if it is put aside.
    pub flags: Vec<(&'static str, String)>,
}

impl CommandRequest {
    /// Whether too few files may be open to watch the command, and nothing was asked for that only
    /// a watched one has: a limit, a provider, a budget.
    pub fn must_go_unwatched(&self) -> bool {
        self.flags.iter().all(|(flag, _)| *flag == "--profile") && !backstop_exec::may_watch()
    }

    /// Makes this process the command, after a warning. Returns only where that fails.
    pub fn run_unwatched(&self, warn: impl FnOnce(&str, &str)) -> std::io::Error {
        warn(
            "too few files may be open to watch the command; it is run without Backstop",
            "`ulimit -n 64` allows more: without, nothing of it is retried, limited or recorded",
        );
        backstop_exec::become_command(&self.argv)
    }
}

/// A command that may be run: what was asked for, under the settings of a project.
#[derive(Debug)]
pub struct PreparedCommand {
    /// What was asked for.
    pub request: CommandRequest,
    /// The project.
    pub project: Arc<Project>,
    /// The command as one would type it, without its secrets.
    pub shown: String,
    /// How often, and how long apart.
    pub policy: Policy,
    /// Says what a failure is.
    pub classifier: Arc<Classifier>,
    /// The table of commands that change something, and the command as it was typed.
    effects: Effects,
    typed: String,
    judged: OnceLock<Repeatable>,
}

/// The policy for a request under a project's settings.
fn policy(project: &Project, request: &CommandRequest) -> Result<Policy, ProjectError> {
    let settings = project.config.exec();
    let policy = project.config.policy(&settings.profile)?;
    let mut policy = if request.single_attempt { policy.with_attempts(1) } else { policy };
    if let Some(attempts) = request.attempts {
        policy = policy.with_starts_max(attempts);
    }
    policy.wait_max = settings.wait_max.unwrap_or_else(|| wait_max(&policy, request.is_watched));
    Ok(policy)
}

/// How long a rate limit is waited for where nothing says how long: longer where a person sees it.
fn wait_max(policy: &Policy, is_watched: bool) -> Duration {
    let built_in = backstop_core::profile(&policy.name).map(|profile| profile.wait_max);
    if built_in.is_some_and(|built_in| built_in != policy.wait_max) {
        return policy.wait_max;
    }
    if is_watched { EXEC_WAIT_MAX_WATCHED } else { EXEC_WAIT_MAX }
}

impl PreparedCommand {
    /// What a request means in a project.
    pub fn new(project: &Arc<Project>, request: CommandRequest) -> Result<Self, ProjectError> {
        let typed: Vec<String> =
            request.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        // What the command is, and what is stored and shown of it.
        let (command, shown) = (shell::line(&typed), project.redactor.redact_command(&typed));
        let policy = policy(project, &request)?;
        let classifier = Arc::new(project.classifier(&request.packs)?);
        let effects = project.effects(&request.packs)?;
        let (project, judged) = (Arc::clone(project), OnceLock::new());
        Ok(Self { request, project, shown, policy, classifier, effects, typed: command, judged })
    }

    /// Whether it may be repeated by itself, and which rule says so. Looked up when it is first
    /// asked for: a command that succeeds need not wait for that.
    pub fn judged(&self) -> &Repeatable {
        self.judged
            .get_or_init(|| self.effects.judge(&self.typed, &self.project.config.repeatable_commands()))
    }

    /// What keeps it from being repeated by itself.
    pub fn effect(&self) -> Option<Effect> {
        match self.judged() {
            Repeatable::No(effect) if !self.request.repeatable => Some(effect.clone()),
            _ => None,
        }
    }

    /// How long all attempts may take: as is set, and as an outer run wants it.
    pub fn deadline(&self) -> Option<Duration> {
        let process = &self.project.process;
        let inherited = process.deadline.map(|at| at.since(process.now()));
        self.project.config.exec().deadline.into_iter().chain(inherited).min()
    }

    /// What it asks before each attempt, with the provider and the budget that were named.
    pub fn admission(
        &self,
        run: RunId,
        provider: Option<Name>,
        budget: Option<Name>,
        on_wait: Option<OnWait>,
    ) -> Result<OperationAdmission, ProjectError> {
        let (request, shown, process) = (&self.request, &self.shown, &self.project.process);
        let session = process.session.as_ref().map(|session| session.raw().to_owned());
        let program: Vec<&str> = shown.split(' ').take(2).collect();
        let limits = OperationLimits {
            provider,
            client: client_of(shown),
            command: shown.clone(),
            budget,
            scope: BudgetScope {
                run: process.parent.unwrap_or(run),
                task: request.task.clone().or_else(|| request.session.clone()).or(session),
            },
            operation: program.join(" "),
            place: format!("{}: {shown}", self.project.root.display()),
            wait_max: self.policy.wait_max,
            learns: self.policy.learn,
        };
        Admission::new(Arc::clone(&self.project)).operation(limits, on_wait)
    }

    /// Begins the record, ends what a killed Backstop left, and notes what a person overrides
    /// before it takes effect.
    pub fn record(&self, observers: Vec<Arc<dyn Observer>>) -> Result<Recorder, ProjectError> {
        let (project, request) = (&*self.project, &self.request);
        let text = |given: &Option<String>| given.clone().map(SafeText::new);
        let parent = project.process.parent;
        let started = EventKind::RunStarted {
            operation: SafeText::new(self.shown.as_str()),
            folder: Some(SafeText::new(project.process.cwd.display().to_string())),
            profile: Some(project.config.exec().profile),
            parent,
        };
        let recorder = Recorder::begin(
            project,
            Opening {
                first: vec![started],
                session: text(&request.session),
                caller: text(&request.caller),
                parent,
                observers,
                ..Opening::new("exec")
            },
        )?;
        if let Some(journal) = recorder.journal() {
            for cut_off in leftovers::end_all(&journal, &project.process) {
                if !project.process.output.is_quiet() {
                    project.process.warn(&cut_off.warning(), None);
                }
            }
        }
        let by = recorder.caller().cloned().unwrap_or_else(|| SafeText::new("command line"));
        let rationale = SafeText::new(request.why.clone().unwrap_or_else(|| "no reason given".to_owned()));
        let overridden = request.overrides.iter().map(|typed| EventKind::Override {
            by: by.clone(),
            what: SafeText::new(typed.as_str()),
            rationale: rationale.clone(),
        });
        recorder.note_first(overridden);
        Ok(recorder)
    }
}
