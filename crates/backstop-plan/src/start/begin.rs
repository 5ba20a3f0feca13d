//! How a run begins or goes on: one holder, what was recorded, what somebody edited; then the first
//! events.

use super::preflight::{self, Workspace};
use super::read::{lock_name, path_in_project};
use super::{PlanFile, Prompts, RunError, RunRequest};
use crate::observers::mark;
use crate::record::RunRecord;
use crate::runs::typed_anywhere;
use crate::start_events::{self, Resumed};
use crate::view::{Edits, ViewErrors, ViewFolder};
use crate::workspace::set_tip;
use backstop_config::PlanSettings;
use backstop_core::{Event, EventKind, Name, Outcome, PlanRecord, RunId, SafeText};
use backstop_files::FileError;
use backstop_report::{FreshStart, fresh_start};
use backstop_runtime::aftermath::leftovers;
use backstop_runtime::host::NodeStatus;
use backstop_runtime::{Opening, Project, Recorder};
use backstop_store::{Held, Hold, Holder, Journal, ProcessId, RunFilter, RunState};
use backstop_work::git::{Sha, tip_ref};

/// A run that has begun: recorded, and nothing of it carried out yet.
pub struct Begun {
    /// Its record.
    pub recorder: Recorder,
    /// What was recorded so far.
    pub record: RunRecord,
    /// Where it works.
    pub workspace: Workspace,
    /// What a person should know.
    pub notes: Vec<String>,
    /// Nobody else runs this plan until it is dropped.
    pub hold: Hold,
    /// What was recorded of its beginning.
    pub opened: Vec<Event>,
}

/// Begins a run, or goes on with the last one.
pub fn begin(
    request: &RunRequest,
    project: &Project,
    prompts: &dyn Prompts,
    settings: &PlanSettings,
    found: &PlanFile,
    views: &ViewFolder,
    max_attempts: u32,
) -> Result<Begun, RunError> {
    let mut hold = match project.hold(&lock_name(&found.path))? {
        Held::Ours(hold) => hold,
        Held::By(holder) => return Err(RunError::HeldBy { holder, plan: found.path.clone() }),
    };
    let journal = project.journal()?;
    let cut_off = running(journal, &found.path)?;
    for cut_off in leftovers::end_all(journal, &project.process) {
        if !project.process.output.is_quiet() {
            project.process.warn(&cut_off.warning(), None);
        }
    }
    let last = last_run(journal, &found.path)?;
    let known = match last {
        Some(run) => {
            let events = journal.load(run)?;
            let record = RunRecord::of(&events);
            Some((run, events, record))
        }
        None if request.resume => return Err(RunError::NothingToResume { plan: found.path.clone() }),
        None => None,
    };
    let (known, aside) = match known {
        Some((_, _, record)) if request.fresh => {
            (None, Some(start_fresh(request, project, prompts, found, views, &record)?))
        }
        known => (known, None),
    };
    let before = known.as_ref().map(|(_, _, record)| record);
    let mut workspace = preflight::preflight(request, project, prompts, settings, found, before)?;
    let mut notes: Vec<String> = aside.into_iter().flatten().collect();
    if let Some((_, _, record)) = &known {
        if !cut_off.is_empty() {
            let names: Vec<String> = cut_off.iter().map(|id| id.line(40)).collect();
            notes.push(format!("{}: cut off when Backstop was ended", names.join(", ")));
        }
        must_be_repeatable(request, found, record)?;
    }
    let before = known.as_ref().map_or(0, |(_, events, _)| events.len());
    let resume_command = typed_anywhere(&request.resume_command, &found.file, project);
    let mode = workspace.mode(&resume_command, max_attempts);
    let plan = start_events::plan_record(&found.plan, &mode);
    let (recorder, record) = match known {
        Some(known) => resume(request, project, views, &mut workspace, known, plan, &mut notes)?,
        None => new_run(request, project, found, plan, &mut notes)?,
    };
    let run = recorder.run();
    let mut stand = || -> Result<(), RunError> {
        set_slots(project, &mut workspace, run)?;
        if let Workspace::Worktrees(ground) = &workspace {
            set_tip(&ground.repo, run, &ground.base, &record)?;
        }
        let ProcessId { pid, start } = project.process.id;
        hold.note(&Holder { pid, start, run: Some(run), since: project.process.now() })?;
        Ok(())
    };
    if let Err(error) = stand() {
        // It has ended, and nobody killed it. Where that cannot be recorded either, it stays open.
        let reason = error.reason();
        let _ = recorder.append(vec![EventKind::RunHalted { reason, resume: resume_command }]);
        return Err(error);
    }
    if let Err(error) = views.make().map_err(ViewErrors::from).and_then(|()| {
        // Files of phases that have not begun are written when they have, or at the end.
        let has_begun = |at: &usize| {
            let phase = record.phase(*at).node;
            phase.total > 0 || phase.skipped
        };
        let begun: Vec<usize> = (0..record.len()).filter(has_begun).collect();
        views.write_phases(&record, &begun)
    }) {
        let place = views.path().display();
        project.process.warn(&format!("the views in {place} cannot be written: {error}"), None);
    }
    let opened = journal.load(run)?.split_off(before);
    Ok(Begun { recorder, record, workspace, notes, hold, opened })
}

/// The phases that are under way by the record of the last run: read before what a killed Backstop
/// left is closed.
fn running(journal: &Journal, path: &str) -> Result<Vec<SafeText>, RunError> {
    let Some(run) = last_run(journal, path)? else { return Ok(Vec::new()) };
    let record = RunRecord::of(&journal.load(run)?);
    let cut_off = record.all_phases().filter(|phase| phase.node.is_cut_off());
    Ok(cut_off.map(|phase| phase.plan.shown.clone()).collect())
}

/// A phase that must not be repeated, and of which nobody knows how it ended, waits for somebody's
/// word.
fn must_be_repeatable(request: &RunRequest, found: &PlanFile, record: &RunRecord) -> Result<(), RunError> {
    let harmful = found.plan.phases.iter().filter(|phase| {
        let known = record.phase_of(phase.id.key().as_str());
        phase.settings.repeatable == Some(false) && known.is_some_and(|known| known.node.lost)
    });
    let phases: Vec<String> = harmful.map(|phase| phase.id.shown().to_owned()).collect();
    if phases.is_empty() || request.yes { Ok(()) } else { Err(RunError::MayHaveHappened { phases }) }
}

fn opening(request: &RunRequest) -> Opening {
    Opening { observers: request.observers.0.clone(), ..Opening::new("run") }
}

/// The last run of this plan.
pub fn last_run(journal: &Journal, path: &str) -> Result<Option<RunId>, RunError> {
    let filter = RunFilter {
        surface: Some("run".to_owned()),
        operation_contains: Some(path.to_owned()),
        limit: 1000,
        ..RunFilter::default()
    };
    let runs = journal.runs(&filter)?;
    Ok(runs
        .into_iter()
        .find(|run| run.operation.as_ref().is_some_and(|op| op.raw() == path))
        .map(|run| run.id))
}

fn new_run(
    request: &RunRequest,
    project: &Project,
    found: &PlanFile,
    plan: PlanRecord,
    notes: &mut Vec<String>,
) -> Result<(Recorder, RunRecord), RunError> {
    let parent = project.process.parent;
    let opening = Opening { parent, required: true, ..opening(request) };
    let recorder = Recorder::begin(project, opening)?;
    let mut first = vec![
        EventKind::RunStarted {
            operation: SafeText::new(found.path.clone()),
            folder: Some(SafeText::new(project.root.to_string_lossy())),
            profile: Some("phase".to_owned()),
            parent,
        },
        EventKind::PlanLoaded { plan: Box::new(plan) },
    ];
    first.extend(overrides(request, project));
    if !request.fresh {
        let (marked, note) = start_events::marked(&found.plan);
        first.extend(marked);
        notes.extend(note);
    }
    recorder.append(first)?;
    let record = RunRecord::of(&recorder.events());
    if request.fresh
        && let Err(error) = mark(&found.file, &record, &(0..record.len()).collect::<Vec<_>>())
    {
        notes.push(format!("the plan's marks cannot be taken away: {error}"));
    }
    Ok((recorder, record))
}

fn overrides(request: &RunRequest, project: &Project) -> Vec<EventKind> {
    let person = request.person(project);
    let typed = [("--allow-dirty", request.allow_dirty), ("--fresh", request.fresh)];
    typed.into_iter().filter(|(_, typed)| *typed).map(|(flag, _)| person.overrides(flag)).collect()
}

fn resume(
    request: &RunRequest,
    project: &Project,
    views: &ViewFolder,
    workspace: &mut Workspace,
    (run, events, record): (RunId, Vec<Event>, RunRecord),
    plan: PlanRecord,
    notes: &mut Vec<String>,
) -> Result<(Recorder, RunRecord), RunError> {
    let journal = project.journal()?;
    let summary = journal.run(run)?;
    // Views are whole when a run comes to an end by itself; of one that was cut off, a file may
    // never have been written.
    let done = record.progress.ended == Some(Outcome::Done);
    let whole = done
        || record.progress.halted.is_some()
        || summary.is_some_and(|summary| summary.state == RunState::Halted);
    let edits = Edits::find(views, &events, &record, whole);
    if !edits.broken.is_empty() {
        return Err(RunError::StateFiles { errors: edits.broken });
    }
    meet(workspace, run, &record)?;
    if let Workspace::Worktrees(ground) = workspace
        && let (Some(branch), Some(now)) = (&record.plan.branch, &ground.branch)
        && branch != now
    {
        notes.push(format!("the run began on {branch}; finished work now goes to {now}"));
    }
    let person = request.person(project);
    let (mut kinds, told) = start_events::resume(&record, plan, &edits.edits, request.rerun_changed, &person);
    kinds.extend(overrides(request, project));
    let recorder = Recorder::resume(project, run, opening(request))?;
    recorder.append(kinds)?;
    let after = RunRecord::of(&recorder.events());
    note_resumed(&told, &after, request.rerun_changed, notes);
    Ok((recorder, after))
}

/// Has the run's work brought together with what the user has committed since, before anything
/// begins.
pub fn meet(workspace: &mut Workspace, run: RunId, record: &RunRecord) -> Result<(), RunError> {
    let Workspace::Worktrees(ground) = workspace else { return Ok(()) };
    let before: Option<Sha> = record.progress.tip.as_ref().and_then(|tip| tip.parse().ok());
    if let Some(before) = before {
        // What is handed in is integrated onto the tip as it was; the two meet at the next start.
        let waiting = record.all_phases().any(|phase| phase.node.is_delivered());
        let actual = ground.repo.read_ref(&tip_ref(run))?;
        let settled = actual.as_ref().is_none_or(|actual| *actual == before);
        ground.meet = (!waiting && settled).then_some(before);
    }
    Ok(())
}

fn note_resumed(told: &Resumed, record: &RunRecord, rerun: bool, notes: &mut Vec<String>) {
    let names = |list: &[SafeText]| list.iter().map(|id| id.line(40)).collect::<Vec<_>>().join(", ");
    let attempts = record.progress.attempts();
    let done = record.count(NodeStatus::Complete);
    notes.push(format!(
        "going on with {}: {done} of {} phases are complete; attempts so far: {attempts}",
        record.progress.run.map(|run| run.to_string()).unwrap_or_default(),
        record.len()
    ));
    let mut say = |list: &[SafeText], what: &str| {
        if !list.is_empty() {
            notes.push(format!("{}: {what}", names(list)));
        }
    };
    say(&told.cut_off, "cut off when Backstop was ended; run again");
    say(&told.handed_in, "finished before Backstop was ended; only put in now");
    say(&told.added, "new in the plan");
    say(&told.gone, "no longer in the plan; what was done stays");
    if rerun {
        say(&told.changed, "changed in the plan since it was finished; run again");
    } else {
        say(
            &told.changed,
            "changed in the plan since it was finished, and not run again; --rerun-changed does",
        );
    }
    notes.extend(told.edited.iter().map(|what| what.line(300)));
}

/// Moves an earlier run aside. Asks, unless somebody said yes.
fn start_fresh(
    request: &RunRequest,
    project: &Project,
    prompts: &dyn Prompts,
    found: &PlanFile,
    views: &ViewFolder,
    record: &RunRecord,
) -> Result<Option<String>, RunError> {
    let commits: u64 = record.all_phases().map(|phase| phase.commits.len() as u64).sum();
    let again = &request.resume_command;
    let notice = fresh_start(&FreshStart {
        command: SafeText::new(format!("{again} --fresh")),
        plan: SafeText::new(found.path.clone()),
        folder: SafeText::new(path_in_project(views.path(), &project.root)),
        first_phase: SafeText::new(
            found.plan.phases.first().map(|phase| phase.id.shown()).unwrap_or_default(),
        ),
        because: None,
        commits,
        resume: SafeText::new(again.clone()),
    });
    if !prompts.fresh_start(&notice, request.yes) {
        return Err(RunError::NotConfirmed);
    }
    let error = |error: FileError| RunError::Write { file: views.path().to_owned(), error: error.into() };
    let aside = views.put_aside().map_err(error)?;
    let place = |path: std::path::PathBuf| path_in_project(&path, &project.root);
    Ok(aside.map(|path| format!("the earlier run's files are in {}", place(path))))
}

/// The name of a run's folder in the state folder.
pub fn folder_name(run: RunId, what: &str) -> Name {
    format!("{run}.{what}").parse().unwrap_or_else(|_| lock_name(what))
}

/// Names the folder of a run's worktrees.
pub fn set_slots(project: &Project, workspace: &mut Workspace, run: RunId) -> Result<(), RunError> {
    if let Workspace::Worktrees(ground) = workspace {
        ground.folder = project.folder()?.work_folder(&project.root, &folder_name(run, "slots"))?;
    }
    Ok(())
}
