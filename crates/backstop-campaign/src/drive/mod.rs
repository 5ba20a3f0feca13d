//! Carries a campaign out: one stage after the other, each a set of phases under the runtime's
//! host, with what is decided between them recorded in one transaction.
//!
//! Nothing is kept in memory that the record does not say: after a crash the same state is taken up
//! again, and what it decides is what it would have decided. It must not print: an [`Audience`]
//! follows, and is asked.

mod planning;
mod stages;
mod tasks;

use crate::error::CampaignError;
use crate::explore::{self, Mode};
use crate::knowledge::Knowledge;
use crate::phases::{asked_phase, plan_of, task_phases};
use crate::planner_answer::PlannerWord;
use crate::record::{CampaignRecord, FLOW, ONE_TASK, planner_phase, replanner_phase};
use crate::replan::{self, Replanned};
use crate::stage::{Relay, StageObserver};
use crate::state::State;
use crate::step::{Executed, Goto, PlanAnswer, REPLAN_UNREACHABLE_MIN, REPLANS_MAX, Step, StepOutcome, step};
use crate::task::{TaskPlan, TaskType};
use crate::{lessons, prompts};
use backstop_config::PlanSettings;
use backstop_core::{
    End, Event, EventKind, ExecutionContext, Fault, How, Name, Outcome, Reason, RunId, SafeText, WorkAt,
};
use backstop_plan::document::{Phase, Plan};
use backstop_plan::record::RunRecord;
use backstop_plan::run::{PlanRun, Ran, Stage, jobs};
use backstop_plan::start::{
    Begun, Equipper, PlanFile, Prompts, RunError, RunRequest, SuggestedGates, Workspace,
    drop_missing_fallbacks, lock_name, meet, missing_programs, person, preflight, set_slots,
};
use backstop_plan::start_events;
use backstop_plan::view::ViewFolder;
use backstop_plan::workspace::{Advice, Equipment, Worker};
use backstop_runtime::aftermath::{self, leftovers};
use backstop_runtime::host::{CAMPAIGN, NodeStatus, Observer, StopRequest, record};
use backstop_runtime::{Opening, Project, Recorder};
use backstop_store::{Held, Hold, Journal, RunFilter};
use backstop_work::CommandLine;
use backstop_work::gate::{Gate, Origin};
use backstop_work::git::Repo;
use serde_json::{Value, json};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long explorers have together.
pub const EXPLORE_TIMEOUT: Duration = Duration::from_secs(300);
/// How much of what explorers said a planner is given, as JSON.
const EXPLORED_BYTES_MAX: usize = 512 << 10;
/// How many unreachable tasks are recorded with ERROR.
const ANALYSIS_TASKS_MAX: usize = 200;
/// How much of it is recorded with ERROR, as JSON.
const PARTIAL_BYTES_MAX: usize = 16 << 10;
/// How long a text in it may be when it is put together once more.
const TRIMMED_CHARS: usize = 2000;
/// How many lessons of earlier campaigns are looked at.
const LESSONS_READ: u32 = 500;

/// Who follows a campaign, and who is asked.
pub trait Audience {
    /// Follows the phases of a stage.
    fn stage<'a>(&'a mut self, plan: &'a Plan, jobs: usize) -> Box<dyn Observer<RunRecord> + 'a>;
    /// What was recorded between stages.
    fn recorded(&mut self, events: &[Event]);
    /// Answers to a planner's questions, one each; nothing where nobody can be asked.
    fn answers(&mut self, questions: &[String]) -> Option<Vec<String>>;
    /// Something that a person should know.
    fn note(&mut self, text: &str);
}

/// How a campaign came to its end, for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CampaignEnd {
    /// Every task is complete.
    Complete,
    /// It is over, and tasks are blocked.
    Blocked,
    /// A planner's questions wait for somebody.
    Questions(Vec<String>),
    /// It returned from ERROR, and can be taken up again.
    Returned(Reason),
    /// Somebody stopped it, or the project was frozen meanwhile.
    Stopped {
        /// Why the project is frozen, where it is.
        frozen: Option<Reason>,
    },
}

impl CampaignEnd {
    /// Whether only a person can carry it on: the same again would end the same.
    pub fn needs_a_person(&self) -> bool {
        match self {
            Self::Complete | Self::Stopped { .. } => false,
            Self::Blocked | Self::Questions(_) => true,
            Self::Returned(reason) => {
                matches!(reason, Reason::ClarifyExhausted | Reason::PlanInvalid | Reason::CircularDependency)
            }
        }
    }
}

/// A campaign that has ended for now.
pub struct EndedCampaign {
    /// How.
    pub end: CampaignEnd,
    /// What its events add up to.
    pub record: CampaignRecord,
    /// Its record.
    pub recorder: Recorder,
    /// Where the work is.
    pub work: Option<WorkAt>,
}

/// What a campaign is started or taken up again with.
pub struct Campaign<'c> {
    /// The project.
    pub project: &'c Arc<Project>,
    /// How phases are run, as for a plan.
    pub settings: PlanSettings,
    /// What was typed.
    pub request: RunRequest,
    /// Who is asked about git.
    pub prompts: &'c dyn Prompts,
    /// How long explorers have.
    pub explore_timeout: Duration,
    /// Whether a new campaign is about one task.
    pub is_single: bool,
    /// The budget that each attempt takes a unit of.
    pub budget: Option<Name>,
    /// Whether a program is on the PATH.
    pub is_there: &'c dyn Fn(&str) -> bool,
    /// Time since the campaign was started or taken up again.
    pub clock: &'c (dyn Fn() -> Duration + Sync),
}

/// The last campaign of a project, or the last one with this objective.
pub fn last_campaign(journal: &Journal, objective: Option<&str>) -> Result<Option<RunId>, CampaignError> {
    let filter = RunFilter { surface: Some(CAMPAIGN.to_owned()), limit: 1000, ..RunFilter::default() };
    let runs = journal.runs(&filter)?;
    let is_it = |operation: Option<&SafeText>| {
        objective.is_none_or(|objective| operation.is_some_and(|known| known.raw() == objective))
    };
    Ok(runs.into_iter().find(|run| is_it(run.operation.as_ref())).map(|run| run.id))
}

/// How phases are run, as for a plan. In a repository finished tasks are committed one by one,
/// unless somebody says otherwise.
pub fn settings(project: &Project) -> Result<PlanSettings, CampaignError> {
    let mut settings = project.config.plan();
    if settings.commit.is_none() && Repo::find(&project.root).map_err(RunError::from)?.is_some() {
        settings.commit = Some("auto".to_owned());
    }
    Ok(settings)
}

/// The views of a campaign.
pub fn views(project: &Project, run: RunId) -> ViewFolder {
    let name: Name = format!("campaign-{run}").parse().unwrap_or_else(|_| lock_name(CAMPAIGN));
    ViewFolder::new(&project.root, &name)
}

/// The name of the lock: a project has one campaign at a time.
pub fn campaign_lock() -> Name {
    lock_name(CAMPAIGN)
}

/// A campaign under way.
struct Driver<'c, 'a> {
    campaign: &'c Campaign<'c>,
    equipper: Equipper,
    audience: &'a mut dyn Audience,
    relay: Relay,
    run: RunId,
    record: CampaignRecord,
    /// Both are lent to a stage while it runs.
    recorder: Option<Recorder>,
    hold: Option<Hold>,
    work: Option<WorkAt>,
    /// Whether the work of the tasks that were run last was brought to the user.
    is_landed: bool,
}

/// What came of a stage.
enum StageEnd {
    /// It came to an end of its own.
    Over(End),
    /// Somebody stopped it.
    Stopped(Option<Reason>),
    /// It could not begin, or its work could not be brought to the user.
    Unconcluded(Box<Fault>),
}

/// How the tasks are run.
struct TaskStage {
    known: Arc<Mutex<Knowledge>>,
    /// Whether tasks may begin; otherwise what is complete is only brought to the user.
    begins: bool,
}

impl Campaign<'_> {
    /// Starts a campaign, or takes the last one up again, and carries it on until it ends or needs
    /// a person.
    pub fn run(
        &self,
        objective: Option<&str>,
        audience: &mut dyn Audience,
        requests: Receiver<StopRequest>,
    ) -> Result<EndedCampaign, CampaignError> {
        let project = self.project;
        if objective.is_some_and(|objective| objective.trim().is_empty()) {
            return Err(CampaignError::NoObjective);
        }
        let hold = match project.hold(&campaign_lock())? {
            Held::Ours(hold) => hold,
            Held::By(holder) => return Err(CampaignError::HeldBy { holder }),
        };
        let journal = project.journal()?;
        for cut_off in leftovers::end_all(journal, &project.process) {
            if !project.process.output.is_quiet() {
                project.process.warn(&cut_off.warning(), None);
            }
        }
        let known = match self.request.fresh {
            true => None,
            false => last_campaign(journal, objective)?,
        };
        let equipper = Equipper::new(&project.config, &project.root, SuggestedGates::may_run(project))?;
        let agent = equipper.usual_agent()?;
        if known.is_none() && objective.is_some() {
            // Nothing is recorded of what nobody would work on.
            agent.ok_or(RunError::NoAgentNamed)?;
            self.refuse_beside_another(journal)?;
        }
        let observers = self.request.observers.0.clone();
        let recorder = match (known, objective) {
            (Some(run), _) => {
                let opening = Opening { observers, ..Opening::new(CAMPAIGN) };
                Recorder::resume(project, run, opening)?
            }
            (None, Some(objective)) => {
                let parent = project.process.parent;
                let opening = Opening { parent, required: true, observers, ..Opening::new(CAMPAIGN) };
                let recorder = Recorder::begin(project, opening)?;
                recorder.append(self.first_events(objective))?;
                recorder
            }
            (None, None) => return Err(CampaignError::NoCampaign),
        };
        let mut driver = Driver {
            campaign: self,
            equipper,
            audience,
            relay: Relay::new(requests),
            run: recorder.run(),
            record: CampaignRecord::of(&recorder.events()),
            recorder: Some(recorder),
            hold: Some(hold),
            work: None,
            is_landed: false,
        };
        let end = driver.begin(known.is_some()).and_then(|()| driver.carry_on());
        let end = end.inspect_err(|error| driver.broke_off(error))?;
        let recorder = driver.recorder.take().ok_or(CampaignError::NoCampaign)?;
        let is_done = end == CampaignEnd::Complete;
        aftermath::run_ended(project, &recorder, is_done);
        recorder.clean();
        drop(driver.hold.take());
        Ok(EndedCampaign { end, record: driver.record, recorder, work: driver.work })
    }

    /// A project has one campaign at a time.
    fn refuse_beside_another(&self, journal: &Journal) -> Result<(), CampaignError> {
        let Some(last) = last_campaign(journal, None)?.filter(|_| !self.request.fresh) else { return Ok(()) };
        let record = CampaignRecord::of(&journal.load(last)?);
        match record.state() {
            State::Complete => Ok(()),
            _ => Err(CampaignError::Unfinished { objective: record.objective().clone() }),
        }
    }

    /// The entry of INIT, with the flow where it is not the usual one.
    fn initial(&self) -> EventKind {
        let mut context = ExecutionContext::default();
        context.fields.insert(FLOW.to_owned(), SafeText::new(ONE_TASK));
        EventKind::StateEntered {
            operation: None,
            state: State::Init.name().to_owned(),
            error_type: None,
            context: self.is_single.then(|| Box::new(context)),
        }
    }

    fn first_events(&self, objective: &str) -> Vec<EventKind> {
        let person = person(self.project, self.request.why.as_deref());
        let mut first = vec![
            EventKind::RunStarted {
                operation: SafeText::new(objective),
                folder: Some(SafeText::new(self.project.root.to_string_lossy())),
                profile: Some("state".to_owned()),
                parent: self.project.process.parent,
            },
            self.initial(),
        ];
        let typed = [("--allow-dirty", self.request.allow_dirty), ("--fresh", self.request.fresh)];
        first.extend(typed.into_iter().filter(|(_, typed)| *typed).map(|(flag, _)| person.overrides(flag)));
        first
    }
}

/// The event that gives a campaign a state.
pub(crate) fn entered(state: State) -> EventKind {
    EventKind::StateEntered {
        operation: None,
        state: state.name().to_owned(),
        error_type: None,
        context: None,
    }
}

/// The event that gives a task a status.
pub(crate) fn task_entered(seq: &str, status: NodeStatus) -> EventKind {
    EventKind::StateEntered {
        operation: Some(SafeText::new(seq)),
        state: status.name().to_owned(),
        error_type: None,
        context: None,
    }
}

fn fault_of(reason: Reason, cause: impl Into<String>) -> Fault {
    let mut fault = Fault::new(reason);
    fault.cause = Some(SafeText::new(cause.into()));
    fault
}

impl Driver<'_, '_> {
    fn recorder(&self) -> Result<&Recorder, CampaignError> {
        self.recorder.as_ref().ok_or(CampaignError::NoCampaign)
    }

    /// Records, all or none, once more where that is due, and takes notice of it.
    fn append(&mut self, kinds: Vec<EventKind>) -> Result<(), CampaignError> {
        if kinds.is_empty() {
            return Ok(());
        }
        let recorder = self.recorder()?;
        let events = record(recorder, recorder.version(), kinds)?;
        self.record = CampaignRecord::of(&self.recorder()?.events());
        self.audience.recorded(&events);
        Ok(())
    }

    fn begin(&mut self, is_known: bool) -> Result<(), CampaignError> {
        if is_known {
            return self.take_up();
        }
        let opened = self.recorder()?.events();
        self.audience.recorded(&opened);
        Ok(())
    }

    /// An error ends the campaign, and nobody killed it. Where that cannot be recorded either, it
    /// stays open.
    fn broke_off(&mut self, error: &CampaignError) {
        let resume = self.campaign.request.resume_command.clone();
        let ended = vec![EventKind::RunHalted { reason: error.reason(), resume }];
        let _ = match self.recorder.take() {
            Some(recorder) => recorder.append(ended).map(|_| ()).map_err(|_| ()),
            None => Recorder::resume(self.campaign.project, self.run, Opening::new(CAMPAIGN))
                .map_err(|_| ())
                .and_then(|recorder| recorder.append(ended).map(|_| ()).map_err(|_| ())),
        };
    }

    /// Takes a campaign up again: what was cut off is lost, what ERROR returned from begins anew.
    fn take_up(&mut self) -> Result<(), CampaignError> {
        let person = person(self.campaign.project, self.campaign.request.why.as_deref());
        let is_complete = self.record.state() == State::Complete;
        if is_complete && !self.record.has_ready() {
            return Ok(());
        }
        let plan = self.record.run.plan.clone();
        let (mut kinds, _) = start_events::resume(&self.record.run, plan, &[], false, &person);
        if self.record.run.is_empty() {
            kinds.retain(|kind| !matches!(kind, EventKind::PlanLoaded { .. }));
        }
        if is_complete {
            // It was given up with tasks that can begin: whoever carries on wants them tried.
            let state = self.record.work_state();
            kinds.push(entered(state));
            kinds.extend(self.stage_of(state)?);
        }
        if self.record.state() == State::Error {
            let back = self.record.state_before_error();
            let is_task = back == self.record.work_state();
            let policy = self.stage_policy(back)?;
            let counted: Vec<&str> = self.record.explored().0.iter().map(|(mode, _)| mode.name()).collect();
            let order = self.record.run.progress.order.clone();
            for id in order {
                let Some(phase) = self.record.run.phase_of(&id) else { continue };
                let halted = |reason: Reason| matches!(policy.allowance(reason).how, How::Halt);
                let again = phase.node.status == NodeStatus::Failed
                    && (!is_task || phase.node.last_error().is_some_and(|error| halted(error.fault.reason)));
                // An explorer whose answer does not count is asked again, too.
                let unheard = back == State::Explore && !counted.contains(&id.as_str());
                if again || unheard {
                    kinds.push(task_entered(&id, NodeStatus::Pending));
                }
            }
            kinds.push(entered(back));
            let is_planned = back == State::Plan && self.record.planner_answer().is_some();
            if is_planned && self.record.open_questions_of_error().is_empty() {
                // It could not be read: whoever carries on gives the planner one more round.
                kinds.extend(self.stage_of(State::Plan)?);
            }
        }
        self.append(kinds)
    }

    /// One state after the other, until the campaign ends or needs a person.
    fn carry_on(&mut self) -> Result<CampaignEnd, CampaignError> {
        loop {
            let next = match self.record.state() {
                State::Init => self.take(&StepOutcome::Started, None, Vec::new())?,
                State::Explore => self.explore()?,
                State::Plan => self.plan()?,
                State::Register => self.register()?,
                State::Execute | State::Build => self.execute()?,
                State::Cascade => self.cascade()?,
                State::Observe => self.observe()?,
                State::Complete => return Ok(self.ended()),
                // It is entered and left in one transaction, except where it returns.
                State::Error => Some(CampaignEnd::Returned(Reason::StateInvalid)),
            };
            if let Some(end) = next {
                return Ok(end);
            }
        }
    }

    /// Records a step from where the campaign is, with what else belongs to it, and says whether
    /// the campaign returns.
    fn take(
        &mut self,
        outcome: &StepOutcome,
        fault: Option<Fault>,
        with: Vec<EventKind>,
    ) -> Result<Option<CampaignEnd>, CampaignError> {
        let Step { error, recovery, message, goto } =
            step(self.record.state(), outcome, self.record.counters());
        let mut kinds = Vec::new();
        let context = fault.as_ref().map(|fault| self.error_context(fault));
        let reason = fault.as_ref().map_or(Reason::StateInvalid, |fault| fault.reason);
        if let Some(fault) = fault {
            kinds.push(classified(self.record.state(), fault));
        }
        if let Some(error) = &error {
            kinds.push(EventKind::StateEntered {
                operation: None,
                state: State::Error.name().to_owned(),
                error_type: Some(error.name().to_owned()),
                context,
            });
        }
        kinds.extend(message.map(|message| EventKind::StateMessage { message: SafeText::new(message) }));
        if let Some((strategy, success)) = recovery {
            kinds.push(recovered(strategy, success));
        }
        let is_loaded = with.iter().any(|kind| matches!(kind, EventKind::PlanLoaded { .. }));
        kinds.extend(with);
        match goto {
            Goto::State(state) => {
                kinds.push(entered(state));
                if !is_loaded {
                    kinds.extend(self.stage_of(state)?);
                }
                self.append(kinds)?;
                Ok(None)
            }
            Goto::Ask | Goto::Replan => {
                self.append(kinds)?;
                Ok(None)
            }
            Goto::Return => {
                kinds.push(EventKind::RunHalted {
                    reason,
                    resume: self.campaign.request.resume_command.clone(),
                });
                self.append(kinds)?;
                Ok(Some(CampaignEnd::Returned(reason)))
            }
        }
    }

    /// What ERROR is entered with: where, why, which task, and what there is in spite of it.
    fn error_context(&self, fault: &Fault) -> Box<ExecutionContext> {
        let record = &self.record;
        let mut context = ExecutionContext {
            current_step: Some(SafeText::new(record.state().name())),
            ..ExecutionContext::default()
        };
        let mut field = |name: &str, text: String| {
            context.fields.insert(name.to_owned(), SafeText::new(text));
        };
        let cause = fault.cause.as_ref().map(|cause| format!(": {}", cause.raw())).unwrap_or_default();
        field("error", format!("{}{cause}", fault.reason.code()));
        let is_about = |seq: &&str| {
            let error = record.run.phase_of(seq).and_then(|phase| phase.node.last_error());
            error.is_some_and(|error| error.fault.as_ref() == fault)
        };
        if let Some(seq) = record.tasks_with("blocked").into_iter().find(is_about) {
            field("task", seq.to_owned());
        }
        let errors = match record.state() {
            State::Plan => self.notes_on(record.counters().clarify_rounds),
            _ => Vec::new(),
        };
        if !errors.is_empty() {
            field("schema_errors", Value::from(errors).to_string());
        }
        if record.state() == State::Cascade {
            field("analysis", analysis(record).to_string());
        }
        if record.state() == State::Explore {
            let partial = self.explored().map(|explored| explored.to_string());
            context.partial_result =
                partial.filter(|text| text.len() <= PARTIAL_BYTES_MAX).map(SafeText::new);
        }
        Box::new(context)
    }

    /// Ends the campaign for a failure that no state recovers from. It can be taken up again.
    fn fail(&mut self, fault: Fault) -> Result<Option<CampaignEnd>, CampaignError> {
        let outcome = StepOutcome::Failed(fault.reason.code().to_owned());
        self.take(&outcome, Some(fault), Vec::new())
    }

    /// The failure of this stage that no other phase can do anything about, such as a refused
    /// credential.
    fn halting_fault(&self) -> Option<Fault> {
        let policy = self.stage_policy(self.record.state()).ok()?;
        let halts = |fault: &&Fault| matches!(policy.allowance(fault.reason).how, How::Halt);
        let progress = &self.record.run.progress;
        let failed = progress.order.iter().filter_map(|id| progress.nodes.get(id));
        let mut failed: Vec<_> = failed.filter(|node| node.status == NodeStatus::Failed).collect();
        // The newest first: a builder's used-up iterations halt nothing, and may be recorded as
        // well.
        failed.sort_by_key(|node| std::cmp::Reverse(node.ended_at));
        let faults = failed.into_iter().filter_map(|node| node.last_error());
        faults.map(|error| error.fault.as_ref()).find(halts).cloned()
    }

    /// The phases that a state begins with, as they are recorded with its entry.
    fn stage_of(&mut self, state: State) -> Result<Option<EventKind>, CampaignError> {
        match state {
            State::Explore => self.loaded(self.explorers()).map(Some),
            State::Plan => {
                let round = self.record.counters().clarify_rounds + 1;
                self.loaded(self.planners(round, false)).map(Some)
            }
            State::Execute | State::Build if !self.record.plan.tasks.is_empty() => {
                self.loaded(task_phases(&self.record.plan)).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn loaded(&self, phases: Vec<Phase>) -> Result<EventKind, CampaignError> {
        let found = self.plan_file(phases);
        let workspace = self.workspace(&found)?;
        let mode = workspace.mode(&self.campaign.request.resume_command, self.attempts()?);
        Ok(EventKind::PlanLoaded { plan: Box::new(start_events::plan_record(&found.plan, &mode)) })
    }

    fn attempts(&self) -> Result<u32, CampaignError> {
        Ok(self.campaign.project.config.policy("phase")?.usual_attempts())
    }

    /// Phases as a plan that is in no file.
    fn plan_file(&self, phases: Vec<Phase>) -> PlanFile {
        let file = self.campaign.project.root.join(".backstop").join("campaign");
        let path = self.record.objective().raw().to_owned();
        PlanFile { plan: plan_of(phases), file, path, others: Vec::new() }
    }

    fn workspace(&self, found: &PlanFile) -> Result<Workspace, CampaignError> {
        let before = Some(&self.record.run).filter(|record| !record.is_empty());
        // Changes that a person makes while it runs are theirs; they are looked at when it starts.
        let allow_dirty = self.campaign.request.allow_dirty || before.is_some();
        let request = RunRequest { allow_dirty, ..self.campaign.request.clone() };
        let Campaign { project, prompts, settings, .. } = self.campaign;
        Ok(preflight(&request, project, *prompts, settings, found, before)?)
    }

    fn ended(&self) -> CampaignEnd {
        let open = |status: &str| !self.record.tasks_with(status).is_empty();
        if open("blocked") || open("pending") { CampaignEnd::Blocked } else { CampaignEnd::Complete }
    }

    /// Records that somebody stopped it, where that is so.
    fn interrupted(&mut self, end: &StageEnd) -> Result<Option<CampaignEnd>, CampaignError> {
        let frozen = match end {
            StageEnd::Stopped(frozen) => *frozen,
            StageEnd::Over(End::Stopped) => None,
            _ => return Ok(None),
        };
        let resume = self.campaign.request.resume_command.clone();
        self.append(vec![EventKind::RunHalted { reason: frozen.unwrap_or(Reason::Interrupted), resume }])?;
        Ok(Some(CampaignEnd::Stopped { frozen }))
    }
}

/// Which tasks wait for what is blocked, as it is recorded with ERROR.
fn analysis(record: &CampaignRecord) -> Value {
    let all = record.analysis();
    let row = |(seq, blocked_by): &(&str, Vec<&str>)| json!({"seq": seq, "blocked_by": blocked_by});
    let unreachable: Vec<Value> = all.iter().take(ANALYSIS_TASKS_MAX).map(row).collect();
    json!({"blocked": record.tasks_with("blocked"), "unreachable": unreachable, "total": all.len()})
}

fn classified(state: State, fault: Fault) -> EventKind {
    let operation = SafeText::new(state.name().to_ascii_lowercase());
    EventKind::ErrorClassified { operation, attempt: 1, fault: Box::new(fault) }
}

fn recovered(strategy: &str, success: bool) -> EventKind {
    EventKind::RecoveryAttempted {
        operation: None,
        strategy: strategy.to_owned(),
        success,
        attempt: 1,
        detail: None,
    }
}
