//! The processes of one attempt: the agent or command, and the agent once more where its session is
//! refused or its result is missing.

use super::attempt_log::AttemptLog;
use super::phase_runner::{AttemptDir, PhaseRunner, Worker};
use super::sessions::{ContinueSession, is_old_enough};
use crate::record::fault_message;
use backstop_core::SafeText;
use backstop_exec::Limits;
use backstop_runtime::host::{AgentSession, AttemptJob, Note};
use backstop_work::agent::{
    Assignment, Attempt, AttemptError, Attempted, Continued, OnSession, RetryContext, Silences, Wanted, Work,
    ask_for_result, attempt, continuation, prompt,
};
use backstop_work::{CommandLine, Log};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long an agent may take to write a result that is missing.
const ASK_WALL: Duration = Duration::from_secs(10 * 60);

/// What the processes of one attempt need.
pub(super) struct AttemptProcess<'a> {
    pub(super) runner: &'a PhaseRunner<'a>,
    pub(super) job: &'a AttemptJob,
    pub(super) dir: &'a AttemptDir<'a>,
    pub(super) log: &'a AttemptLog,
    pub(super) scratch: &'a Path,
    pub(super) context: Option<&'a RetryContext>,
    pub(super) iterations_max: Option<u32>,
}

impl AttemptProcess<'_> {
    /// Runs the agent, in its earlier session where there is one. A session that the agent does not
    /// know any more is no failure of the work: it begins anew.
    pub(super) fn agent(
        &self,
        assignment: &Assignment,
        session: Option<AgentSession>,
    ) -> Result<Attempted, AttemptError> {
        if let Some(session) = session {
            let previous = self.job.previous.as_ref().filter(|_| !self.job.lost);
            let why = previous
                .map_or_else(|| "it was interrupted".to_owned(), |fault| format!("`{}`", fault.reason));
            let said = previous.map(|fault| self.runner.masked(&fault_message(fault)));
            let short = continuation(assignment, &why, said.as_ref());
            self.say(&format!("continues session {} of {}", session.id, session.agent));
            let continued = Continued { id: session.id.clone(), used: session.used };
            let attempted = self.run_agent(short, Some(continued), None)?;
            if !attempted.session_refused {
                return Ok(attempted);
            }
            self.say(&format!(
                "{} knows no session {} any more; it starts a new one",
                session.agent, session.id
            ));
        }
        self.run_agent(prompt(assignment), None, None)
    }

    /// Asks the agent for a result that is missing, in the session in which it did the work.
    pub(super) fn ask(&self, attempted: &Attempted) -> Option<Attempted> {
        self.say("the work is there and its result is not: the agent is asked for it once");
        let session = attempted.session_id.clone().filter(|_| {
            // How long it worked says which minute it began in; a replayed run has no other clock.
            let now = (self.runner.now)();
            let begun = now.before(attempted.duration);
            self.runner.continue_session != ContinueSession::Never
                && self
                    .runner
                    .agent(self.job)
                    .is_some_and(|agent| agent.resume.is_some() && is_old_enough(begun, &agent, now))
        });
        let before = self.job.session.as_ref().filter(|prior| Some(&prior.session.id) == session.as_ref());
        let used = before.map(|prior| prior.session.used).unwrap_or_default();
        let used = used.plus(attempted.usage.unwrap_or_default());
        let short = ask_for_result(&self.runner.assignment(self.job, None, self.scratch));
        self.run_agent(short, session.map(|id| Continued { id, used }), Some(ASK_WALL)).ok()
    }

    /// Asks the agent for words.
    pub(super) fn words(&self, prompt: String) -> Result<Attempted, AttemptError> {
        self.run_agent(prompt, None, None)
    }

    fn say(&self, text: &str) {
        self.log.write_line(&format!("--- {text} ---"));
        let id = self.runner.phase(self.job.node).id.shown();
        self.dir.reporter.note(Note::Message(SafeText::new(format!("{id}: {text}"))));
    }

    fn run_agent(
        &self,
        prompt: String,
        session: Option<Continued>,
        wall: Option<Duration>,
    ) -> Result<Attempted, AttemptError> {
        let runner = self.runner;
        let Worker::Agent { agent, model } = &runner.worker(self.job) else {
            return self.run(Work::Command(CommandLine::Argv(Vec::new())), wall);
        };
        let key = runner.key(self.job.node);
        let name = if wall.is_some() { "result.prompt.md" } else { "prompt.md" };
        let masked = runner.redactor.redact(&prompt);
        if let Err(error) = runner.views.write_prompt(key, self.job.attempt, name, masked.as_bytes()) {
            runner.note_refusal(self.dir, &format!("its prompt is not stored: {error}"));
        }
        self.run(Work::Agent { agent, model: model.as_deref(), prompt, session }, wall)
    }

    pub(super) fn run(&self, work: Work<'_>, wall: Option<Duration>) -> Result<Attempted, AttemptError> {
        let (runner, job, dir) = (self.runner, self.job, self.dir);
        let limits = runner.equipment[job.node].limits.clone();
        let wall = [limits.wall, wall].into_iter().flatten().min();
        let on_session: OnSession = match &work {
            Work::Agent { agent, .. } => {
                let folder = SafeText::new(dir.folder.to_string_lossy());
                Arc::new(dir.reporter.session_reporter(agent.name.clone(), folder))
            }
            Work::Command(_) => Arc::new(|_: &str| {}),
        };
        let folder = runner.work_folder(dir);
        attempt(
            Attempt {
                work,
                folder: &folder,
                scratch: self.scratch,
                phase_key: runner.key(job.node),
                number: job.attempt,
                tasks: &runner.tasks(job.node),
                env: runner.env(dir),
                limits: Limits { wall, ..limits },
                retry_context: self.context,
                log: Log::to(self.log.clone()),
                redactor: &runner.redactor,
                on_session,
                silences: Silences::default(),
                wanted: match runner.equipment[job.node].asked {
                    Some(_) => Wanted::Answer,
                    None => Wanted::Result,
                },
                iterations_max: self.iterations_max,
                allow_overage: runner.allow_overage,
                linked: &runner.linked,
            },
            runner.classifier,
            &|| (runner.now)(),
            &job.stop,
            |started| runner.record_child(dir, started),
        )
    }
}
