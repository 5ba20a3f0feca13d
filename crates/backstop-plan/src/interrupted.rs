//! Runs that nobody carries on: Backstop was killed, or the machine was started again. They are
//! found in every project of the user, so that a login item or a timer can go on with them.

use crate::record::RunRecord;
use crate::runs::resume_command;
use crate::start::{PlanFile, RunCommand, recorded_options, view_name};
use crate::view::ViewFolder;
use backstop_config::{Surroundings, foreign_project};
use backstop_core::{Outcome, RunId, SafeText, Timestamp, shell};
use backstop_runtime::host::{CAMPAIGN, NodeStatus};
use backstop_store::{Journal, ProcessId, RunFilter, RunState, StateFolder, StoreError};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How many runs of a project are looked at.
const RUNS_MAX: u32 = 1000;

/// A run of a plan, or a campaign, that was cut off.
#[derive(Debug)]
pub struct InterruptedRun {
    /// The run.
    pub run: RunId,
    /// Whether it is a campaign.
    pub is_campaign: bool,
    /// The project's folder.
    pub project: PathBuf,
    /// The plan, or the objective, as it was given.
    pub plan: String,
    /// The command that goes on with it.
    pub resume: String,
    /// When it is to start, if it has not started.
    pub starts_at: Option<Timestamp>,
    /// How many of its phases are complete, and how many there are.
    pub phases: (usize, usize),
    record: RunRecord,
}

/// Why a run that was cut off is left to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// What is in the way.
    pub what: String,
    /// What a person can do.
    pub hint: String,
}

/// How many phases an obstacle names.
const NAMED_MAX: usize = 6;

impl InterruptedRun {
    /// Goes on with it by our own program, where nothing is in the way. Gives what a person is
    /// told.
    pub fn resume(&self, program: &Path, around: &Surroundings<'_>) -> Result<String, Obstacle> {
        let place = SafeText::new(self.project.to_string_lossy()).line(300);
        let plan = SafeText::new(self.plan.as_str()).line(200);
        if let Some(obstacle) = self.obstacle(around) {
            return Err(Obstacle {
                what: format!("{place}: {plan} is left to you: {}", obstacle.what),
                ..obstacle
            });
        }
        let log = self.start(program).map_err(|error| Obstacle {
            what: format!("{place}: {plan} could not be started: {error}"),
            hint: format!("in {place}: `{}`", self.resume),
        })?;
        let (done, all) = self.phases;
        let log = log.map(|log| format!("; its output goes to {}", log.display())).unwrap_or_default();
        Ok(format!("{place}: {plan} goes on ({done} of {all} phases complete){log}\n"))
    }

    /// Why it must not be started while nobody watches: its folder or its plan belongs to somebody
    /// else, or the plan is no longer what the person started.
    pub fn obstacle(&self, around: &Surroundings<'_>) -> Option<Obstacle> {
        let file = (!self.is_campaign).then(|| {
            let given = RunCommand::of(&self.record).map_or_else(|| self.plan.clone(), |asked| asked.plan);
            self.project.join(given)
        });
        let files: Vec<PathBuf> =
            file.iter().cloned().chain(file.iter().filter_map(|file| file.canonicalize().ok())).collect();
        if let Some(foreign) = foreign_project(&self.project, &files, around) {
            return Some(Obstacle { what: foreign.whose(), hint: foreign.hint() });
        }
        let by_hand = format!("`{}` goes on with it", self.resume);
        match PlanFile::read(&file?, &self.project, &recorded_options(&self.record)) {
            Ok(found) => self.changed(&found).map(|what| Obstacle {
                what,
                hint: format!("read the plan, then in {}: {by_hand}", self.project.display()),
            }),
            Err(error) => Some(Obstacle {
                what: error.to_string(),
                hint: format!("mend it, then in {}: {by_hand}", self.project.display()),
            }),
        }
    }

    /// What of the plan, as far as it is still to be done, is not as it was when somebody started
    /// it.
    fn changed(&self, found: &PlanFile) -> Option<String> {
        let is_new = |phase: &&crate::document::Phase| match self.record.phase_of(phase.id.key().as_str()) {
            Some(known) => known.node.status != NodeStatus::Complete && known.plan.hash != phase.hash,
            None => true,
        };
        let changed: Vec<&str> =
            found.plan.phases.iter().filter(is_new).map(|phase| phase.id.shown()).collect();
        if !changed.is_empty() {
            let more = match changed.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let named = changed[..changed.len().min(NAMED_MAX)].join(", ");
            return Some(format!("the plan has changed since it was started: {named}{more}"));
        }
        let recorded = &self.record.plan.defaults;
        let is_changed = !recorded.is_empty() && *recorded != found.plan.defaults_hash;
        is_changed.then(|| "the plan's settings for all phases have changed since it was started".to_owned())
    }

    /// Opens the file that the output of the resumed run is appended to; nothing where that cannot
    /// be written.
    pub fn open_log(&self) -> Option<(File, PathBuf)> {
        let own = self.is_campaign.then(|| format!("{CAMPAIGN}-{}", self.run).parse().ok()).flatten();
        let views = ViewFolder::new(&self.project, &own.unwrap_or_else(|| view_name(&self.plan)));
        Some((views.open_resumed_log().ok()?, views.resumed_log()))
    }

    /// Starts the command that goes on with it, by our own program, without a terminal and in a
    /// group of its own: it lives on when we end. Gives where its output goes.
    pub fn start(&self, program: &Path) -> std::io::Result<Option<PathBuf>> {
        let words = shell::words(&self.resume).unwrap_or_default();
        let surface = if self.is_campaign { CAMPAIGN } else { "run" };
        let args: Vec<String> = match words.as_slice() {
            [name, command, rest @ ..] if name == "backstop" && command == surface => rest.to_vec(),
            _ => vec![self.plan.clone()],
        };
        let mut command = Command::new(program);
        command.arg(surface).args(args).current_dir(&self.project);
        if !self.is_campaign {
            // A campaign that was cut off goes on by itself.
            command.arg("--resume");
        }
        if let Some(at) = self.starts_at {
            command.args(["--at", &at.to_string()]);
        }
        let log = self.open_log();
        match &log {
            Some((file, _)) => command.stdout(file.try_clone()?).stderr(file.try_clone()?),
            None => command.stdout(Stdio::null()).stderr(Stdio::null()),
        };
        command.stdin(Stdio::null()).process_group(0).spawn()?;
        Ok(log.map(|(_, path)| path))
    }
}

/// All runs of plans and campaigns that were cut off, in every project, and the databases that
/// cannot be read. Only the last run of a plan counts, and the last campaign of a project; one that
/// halted, was stopped or runs below another is left to whoever looks after it.
pub fn interrupted_runs(
    folder: &StateFolder,
    is_alive: &dyn Fn(&ProcessId) -> bool,
) -> Result<(Vec<InterruptedRun>, Vec<StoreError>), StoreError> {
    let (journals, mut unreadable) = folder.journals()?;
    let mut found = Vec::new();
    for journal in journals {
        match in_journal(&journal, is_alive) {
            Ok(runs) => found.extend(runs),
            Err(error) => unreadable.push(error),
        }
    }
    Ok((found, unreadable))
}

fn in_journal(
    journal: &Journal,
    is_alive: &dyn Fn(&ProcessId) -> bool,
) -> Result<Vec<InterruptedRun>, StoreError> {
    let Some(project) = journal.project_path()?.filter(|path| path.is_dir()) else { return Ok(Vec::new()) };
    let of = |surface: &str, limit: u32| {
        journal.runs(&RunFilter { surface: Some(surface.to_owned()), limit, ..RunFilter::default() })
    };
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    let plans = of("run", RUNS_MAX)?.into_iter().map(|run| (run, false));
    let last_campaign = of(CAMPAIGN, 1)?.into_iter().map(|run| (run, true));
    for (run, is_campaign) in plans.chain(last_campaign) {
        let Some(plan) = run.operation.as_ref().map(|plan| plan.raw().to_owned()) else { continue };
        let is_last = seen.insert((is_campaign, plan.clone()));
        // Whoever looked at it meanwhile has noted that it was lost.
        let is_lost = run.state == RunState::Open || run.outcome == Some(Outcome::Lost);
        let is_cut_off = is_lost && run.parent.is_none() && !is_alive(&run.process);
        if !is_last || !is_cut_off {
            continue;
        }
        let record = RunRecord::of(&journal.load(run.id)?);
        found.push(InterruptedRun {
            run: run.id,
            is_campaign,
            project: project.clone(),
            resume: match record.plan.resume.as_str() {
                "" if is_campaign => format!("backstop {CAMPAIGN}"),
                _ => resume_command(&record),
            },
            starts_at: record.progress.starts_at,
            phases: (record.count(NodeStatus::Complete), record.len()),
            plan,
            record,
        });
    }
    Ok(found)
}
