//! How a run begins or goes on: one holder, what was recorded, what somebody edited; then the first events.

use super::ground::{self, Site};
use super::read::{self, Found};
use super::{asks, person};
use crate::context::{self, Context};
use crate::error::CliError;
use crate::{cli, leftovers, terminal};
use backstop_config as config;
use backstop_core::{Event, EventKind, Name, Outcome, RunId, SafeText};
use backstop_plan::record::RunRecord;
use backstop_plan::start_events::{self, Resumed};
use backstop_plan::view::{Edits, ViewFolder};
use backstop_report::{FreshStart, fresh_start};
use backstop_runtime::host::NodeStatus;
use backstop_store::{Held, Hold, Holder, Journal, RunFilter, RunHeader, RunJournal, RunState};
use backstop_work::git::{Sha, tip_ref};

/// A run that has begun: recorded, and nothing of it carried out yet.
pub(super) struct Begun {
    pub(super) journal: RunJournal,
    pub(super) record: RunRecord,
    pub(super) site: Site,
    /// What a person should know.
    pub(super) notes: Vec<String>,
    /// Nobody else runs this plan until it is dropped.
    pub(super) hold: Hold,
    /// What was recorded of its beginning.
    pub(super) opened: Vec<Event>,
}

/// Begins a run, or goes on with the last one.
pub(super) fn begin(
    args: &cli::Run,
    context: &Context,
    settings: &config::PlanSettings,
    found: &Found,
    views: &ViewFolder,
    max_attempts: u32,
) -> Result<Begun, CliError> {
    let folder = context.folder()?;
    let mut hold = match folder.hold(&context.project, &read::lock_name(&found.path), context::host())? {
        Held::Ours(hold) => hold,
        Held::By(holder) => return Err(CliError::HeldBy { holder, plan: found.path.clone() }),
    };
    let journal = context.journal()?;
    let cut_off = running(&journal, &found.path)?;
    for cut_off in leftovers::end_all(&journal) {
        if !args.quiet {
            terminal::warn(&cut_off.warning(), None);
        }
    }
    let last = last_run(&journal, &found.path)?;
    let known = match last {
        Some(run) => {
            let events = journal.load(run)?;
            let record = RunRecord::of(&events);
            Some((run, events, record))
        }
        None if args.resume => return Err(CliError::NothingToResume { plan: found.path.clone() }),
        None => None,
    };
    let (known, aside) = match known {
        Some((_, _, record)) if args.fresh => {
            (None, Some(start_fresh(args, context, found, views, &record)?))
        }
        known => (known, None),
    };
    let mut site = ground::look(args, context, settings, found, known.as_ref().map(|(_, _, record)| record))?;
    let mut notes: Vec<String> = aside.into_iter().flatten().collect();
    if let Some((_, _, record)) = &known {
        if !cut_off.is_empty() {
            let names: Vec<String> = cut_off.iter().map(|id| id.line(40)).collect();
            notes.push(format!("{}: cut off when Backstop was ended", names.join(", ")));
        }
        must_be_repeatable(args, found, record)?;
    }
    let before = known.as_ref().map_or(0, |(_, events, _)| events.len());
    let (run, record) = match known {
        Some((run, events, record)) => {
            resume(args, found, views, &journal, &mut site, (run, events, record), &mut notes, max_attempts)?
        }
        None => new_run(args, context, found, &journal, &site, max_attempts)?,
    };
    set_slots(context, &mut site, run.id())?;
    set_tip(&site, &run, &record)?;
    hold.note(&Holder { pid: context::host().pid, run: Some(run.id()), since: context::now() })?;
    if let Err(error) = views.make().and_then(|()| {
        // Files of phases that have not begun are written when they have, or at the end.
        let has_begun = |at: &usize| {
            let phase = record.phase(*at).node;
            phase.total > 0 || phase.skipped
        };
        let begun: Vec<usize> = (0..record.len()).filter(has_begun).collect();
        views.write_phases(&record, &begun)
    }) {
        terminal::warn(&format!("the views in {} cannot be written: {error}", views.path().display()), None);
    }
    let opened = journal.load(run.id())?.split_off(before);
    Ok(Begun { journal: run, record, site, notes, hold, opened })
}

/// The phases that are under way by the record of the last run: read before what a killed Backstop left is closed.
fn running(journal: &Journal, path: &str) -> Result<Vec<SafeText>, CliError> {
    let Some(run) = last_run(journal, path)? else { return Ok(Vec::new()) };
    let record = RunRecord::of(&journal.load(run)?);
    let cut_off = record.all_phases().filter(|phase| phase.node.is_cut_off());
    Ok(cut_off.map(|phase| phase.plan.shown.clone()).collect())
}

/// A phase that must not be repeated, and of which nobody knows how it ended, waits for somebody's word.
fn must_be_repeatable(args: &cli::Run, found: &Found, record: &RunRecord) -> Result<(), CliError> {
    let harmful = found.plan.phases.iter().filter(|phase| {
        let known = record.phase_of(phase.id.key().as_str());
        phase.settings.repeatable == Some(false) && known.is_some_and(|known| known.node.lost)
    });
    let phases: Vec<String> = harmful.map(|phase| phase.id.shown().to_owned()).collect();
    if phases.is_empty() || args.yes { Ok(()) } else { Err(CliError::MayHaveHappened { phases }) }
}

/// The last run of this plan.
pub(super) fn last_run(journal: &Journal, path: &str) -> Result<Option<RunId>, CliError> {
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
    args: &cli::Run,
    context: &Context,
    found: &Found,
    journal: &Journal,
    site: &Site,
    max_attempts: u32,
) -> Result<(RunJournal, RunRecord), CliError> {
    let (caller, session) = context::caller_and_session();
    let (parent, _) = context::outer();
    let header = RunHeader {
        session: session.map(SafeText::new),
        caller: caller.map(SafeText::new),
        parent,
        ..RunHeader::new("run", context::host(), context::random())
    };
    let mut first = vec![
        EventKind::RunStarted {
            operation: SafeText::new(found.path.clone()),
            folder: Some(SafeText::new(context.project.to_string_lossy())),
            profile: Some("phase".to_owned()),
            parent,
        },
        EventKind::PlanLoaded {
            plan: Box::new(start_events::plan_record(
                &found.plan,
                &site.mode(&super::again(args, &found.path), max_attempts),
            )),
        },
    ];
    first.extend(overrides(args));
    let run = journal.begin(header, first)?;
    let record = RunRecord::of(&journal.load(run.id())?);
    Ok((run, record))
}

fn overrides(args: &cli::Run) -> Vec<EventKind> {
    let person = person(args.why.as_ref());
    let typed = [("--allow-dirty", args.allow_dirty), ("--fresh", args.fresh)];
    typed.into_iter().filter(|(_, typed)| *typed).map(|(flag, _)| person.overrides(flag)).collect()
}

#[expect(clippy::too_many_arguments)] // One caller: the second half of one function.
fn resume(
    args: &cli::Run,
    found: &Found,
    views: &ViewFolder,
    journal: &Journal,
    site: &mut Site,
    (run, events, record): (RunId, Vec<Event>, RunRecord),
    notes: &mut Vec<String>,
    max_attempts: u32,
) -> Result<(RunJournal, RunRecord), CliError> {
    let summary = journal.run(run)?;
    // Views are whole when a run comes to an end by itself; of one that was cut off, a file may never have been written.
    let done = record.progress.ended == Some(Outcome::Done);
    let whole = done
        || record.progress.halted.is_some()
        || summary.is_some_and(|summary| summary.state == RunState::Halted);
    let edits = Edits::find(views, &events, &record, whole);
    if !edits.broken.is_empty() {
        return Err(CliError::StateFiles { errors: edits.broken });
    }
    let mut new =
        start_events::plan_record(&found.plan, &site.mode(&super::again(args, &found.path), max_attempts));
    let mut tip = None;
    if let Site::Worktrees(ground) = site {
        let before: Option<Sha> = record.progress.tip.as_ref().and_then(|tip| tip.parse().ok());
        if let Some(before) = &before {
            // What is handed in is integrated onto the tip as it was; the two meet at the next start.
            let waiting = record.all_phases().any(|phase| phase.node.is_delivered());
            let actual = ground.repo.read_ref(&tip_ref(run)).map_err(CliError::git)?;
            let settled = actual.as_ref().is_none_or(|actual| actual == before);
            if !waiting && settled {
                tip = ground::meet(ground, before)?;
            }
        }
        if let (Some(branch), Some(now)) = (&record.plan.branch, &ground.branch)
            && branch != now
        {
            notes.push(format!("the run began on {branch}; finished work now goes to {now}"));
        }
    }
    let (mut kinds, told) = start_events::resume(
        &record,
        std::mem::take(&mut new),
        &edits.edits,
        args.rerun_changed,
        &person(args.why.as_ref()),
    );
    if let Some(tip) = &tip {
        kinds.push(EventKind::IntegrationFinished {
            operation: SafeText::new("what was committed meanwhile"),
            tip: tip.to_string(),
        });
    }
    kinds.extend(overrides(args));
    let writer = RunJournal::resume(journal, run, context::host())?;
    writer.append(kinds)?;
    let after = RunRecord::of(&journal.load(run)?);
    tell_resumed(&told, &after, args.rerun_changed, notes);
    Ok((writer, after))
}

fn tell_resumed(told: &Resumed, record: &RunRecord, rerun: bool, notes: &mut Vec<String>) {
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
    args: &cli::Run,
    context: &Context,
    found: &Found,
    views: &ViewFolder,
    record: &RunRecord,
) -> Result<Option<String>, CliError> {
    let commits: u64 = record.all_phases().map(|phase| phase.commits.len() as u64).sum();
    let again = super::again(args, &found.path);
    let notice = fresh_start(&FreshStart {
        command: SafeText::new(format!("{again} --fresh")),
        plan: SafeText::new(found.path.clone()),
        folder: SafeText::new(read::shown(views.path(), &context.project)),
        first_phase: SafeText::new(
            found.plan.phases.first().map(|phase| phase.id.shown()).unwrap_or_default(),
        ),
        because: None,
        commits,
        resume: SafeText::new(again),
    });
    terminal::say(&notice.terminal(terminal::stderr_style()));
    if !args.yes {
        if !asks::can_ask() {
            return Err(CliError::NotConfirmed);
        }
        if !asks::confirm("Start fresh? [y/N] ") {
            return Err(CliError::NotConfirmed);
        }
    }
    let error = |error| CliError::Write { file: views.path().to_owned(), error };
    let aside = views.put_aside().map_err(error)?;
    Ok(aside.map(|path| format!("the earlier run's files are in {}", read::shown(&path, &context.project))))
}

/// The name of a run's folder in the state folder.
pub(super) fn folder_name(run: RunId, what: &str) -> Name {
    format!("{run}.{what}").parse().unwrap_or_else(|_| read::lock_name(what))
}

fn set_slots(context: &Context, site: &mut Site, run: RunId) -> Result<(), CliError> {
    if let Site::Worktrees(ground) = site {
        ground.folder = context.folder()?.work_folder(&context.project, &folder_name(run, "slots"))?;
    }
    Ok(())
}

/// The tip of a run is a ref of its own: nothing that it reaches is ever collected.
fn set_tip(site: &Site, run: &RunJournal, record: &RunRecord) -> Result<(), CliError> {
    let Site::Worktrees(ground) = site else { return Ok(()) };
    let name = tip_ref(run.id());
    let tip: Sha =
        record.progress.tip.as_ref().and_then(|tip| tip.parse().ok()).unwrap_or_else(|| ground.base.clone());
    let now = ground.repo.read_ref(&name).map_err(CliError::git)?;
    let behind = match &now {
        None => true,
        // Recorded and not carried out yet.
        Some(now) => *now != tip && ground.repo.contains(&tip, now).map_err(CliError::git)?,
    };
    if behind {
        ground.repo.set_ref(&name, &tip, now.as_ref()).map_err(CliError::git)?;
    }
    Ok(())
}
