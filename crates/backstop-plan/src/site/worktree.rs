//! Phases in worktrees of their own: begun from the run's tip, saved whatever becomes of them, integrated one at a time.
//!
//! The order of steps is what a crash is survived by: an attempt is saved before it is reported; the tip moves by
//! compare-and-swap after its commit exists; the user's branch follows the tip. Each step can be done again.

use super::crew::{Bench, Crew, Performed};
use super::landing::{Conclusion, Landed};
use super::log::AttemptLog;
use crate::host::{AttemptJob, CONFLICT, Integrated, IntegrationJob, Note, Tell, Worked, Workshop};
use crate::record::RunRecord;
use backstop_core::{Evidence, Fault, Reason, RunId, SafeText};
use backstop_report::plan::WorkAt;
use backstop_work::git::{CommitTrouble, Conflict, GitError, Merged, Repo, Sha, Slot, attempt_ref, tip_ref};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How much of a conflict is told and recorded.
const HUNKS_CHARS_MAX: usize = 8000;

/// How finished phases are committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// One commit a phase, on the user's branch as soon as it is in.
    Auto,
    /// None; a script has one command a phase.
    MessageOnly,
    /// One commit at the end.
    Single,
    /// None.
    None,
}

impl Commit {
    /// All of them, by name.
    pub const ALL: [(&'static str, Commit); 4] = [
        ("auto", Commit::Auto),
        ("message-only", Commit::MessageOnly),
        ("single", Commit::Single),
        ("none", Commit::None),
    ];

    /// The name as it is written.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, commit)| *commit == self).map_or("none", |(name, _)| name)
    }

    /// By its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, commit)| commit)
    }
}

/// A slot, and the commit that holds all that is in it.
struct Place {
    slot: Slot,
    number: usize,
    saved: Option<Sha>,
}

#[derive(Default)]
struct Slots {
    free: Vec<Place>,
    /// Slots of phases whose work is not in yet.
    held: BTreeMap<usize, Place>,
    made: usize,
}

/// Phases in worktrees of their own.
pub struct Worktrees<'w> {
    crew: &'w Crew<'w>,
    repo: Repo,
    run: RunId,
    folder: PathBuf,
    commit: Commit,
    /// The branch that finished work goes to.
    branch: Option<String>,
    /// What the user's tree begins from.
    base: Sha,
    exclude: Vec<PathBuf>,
    link: Vec<String>,
    copy: Vec<String>,
    slots: Mutex<Slots>,
    /// Where the user's branch was brought last, and what kept it from going on.
    landed: Mutex<(Sha, Option<Landed>)>,
}

/// What a site of worktrees is made of.
pub struct Ground {
    /// The repository.
    pub repo: Repo,
    /// The folder of the slots.
    pub folder: PathBuf,
    /// How finished phases are committed.
    pub commit: Commit,
    /// The branch that finished work goes to.
    pub branch: Option<String>,
    /// What the user's tree begins from.
    pub base: Sha,
    /// Paths that belong to no phase.
    pub exclude: Vec<PathBuf>,
    /// What a worktree gets as links.
    pub link: Vec<String>,
    /// What a worktree gets as copies.
    pub copy: Vec<String>,
}

impl<'w> Worktrees<'w> {
    /// A site that has no slot yet.
    pub fn new(crew: &'w Crew<'w>, ground: Ground) -> Self {
        let Ground { repo, folder, commit, branch, base, exclude, link, copy } = ground;
        let landed = Mutex::new((base.clone(), None));
        let run = crew.journal.id();
        let slots = Mutex::default();
        Self { crew, repo, run, folder, commit, branch, base, exclude, link, copy, slots, landed }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tip(&self, tip: Option<&String>) -> Result<Sha, Box<Fault>> {
        match tip {
            Some(tip) => tip.parse().map_err(|error| state_invalid(&format!("the tip of the run: {error}"))),
            None => Ok(self.base.clone()),
        }
    }

    /// A free slot, or a new one.
    fn take(&self) -> Result<Place, GitError> {
        let number = {
            let mut slots = self.slots();
            if let Some(place) = slots.free.pop() {
                return Ok(place);
            }
            slots.made += 1;
            slots.made
        };
        self.open(number)
    }

    fn slot_path(&self, number: usize) -> PathBuf {
        self.folder.join(format!("slot-{number}"))
    }

    fn open(&self, number: usize) -> Result<Place, GitError> {
        let path = self.slot_path(number);
        let mut slot = self.repo.add_slot(&path, &self.base, &format!("backstop {}", self.run))?;
        slot.exclude(&self.exclude);
        let mut place = Place { slot, number, saved: None };
        if place.slot.was_there() {
            // A killed Backstop left it as it was: whatever is in it is kept before anything is done to it.
            let name = format!("refs/backstop/{}/%slot-{number}/{}", self.run, self.found(number)?);
            let at = place.slot.at()?;
            place.saved = Some(place.slot.save(&at, &name, "what a killed run left")?.sha);
        }
        Ok(place)
    }

    /// How often a slot was found with something in it.
    fn found(&self, number: usize) -> Result<usize, GitError> {
        let prefix = format!("refs/backstop/{}/%slot-{number}/", self.run);
        Ok(self.repo.runs_refs(self.run)?.iter().filter(|(name, _)| name.starts_with(&prefix)).count())
    }

    /// The slot of a phase whose work is not in yet. A function of its own: nobody may hold the lock after it.
    fn held(&self, node: usize) -> Option<Place> {
        self.slots().held.remove(&node)
    }

    fn give_back(&self, place: Place) {
        let mut slots = self.slots();
        slots.free.push(place);
        // The same slot for the same kind of work: warm caches, and an order that does not depend on time.
        slots.free.sort_by_key(|place| std::cmp::Reverse(place.number));
    }

    fn work(&self, job: &AttemptJob, tell: &Tell) -> Result<Performed, Box<Fault>> {
        let base = self.tip(job.tip.as_ref())?;
        let mut place = self.take().map_err(|error| git_fault(&error))?;
        let done = self.work_in(job, tell, &base, &mut place);
        match &done {
            Ok(performed) if performed.fault.is_none() => {
                self.slots().held.insert(job.node, place);
            }
            Ok(_) => self.give_back(place),
            // Git cannot work in it any more: it stays as it is, and the next attempt gets another.
            Err(_) => {}
        }
        done
    }

    fn work_in(
        &self,
        job: &AttemptJob,
        tell: &Tell,
        base: &Sha,
        place: &mut Place,
    ) -> Result<Performed, Box<Fault>> {
        let fault = |error: GitError| git_fault(&error);
        let reset = place.slot.reset_to(base, place.saved.as_ref()).map_err(fault)?;
        place.saved = None;
        for path in reset.put_aside {
            let text = format!("a repository inside the worktree was put aside: {}", path.display());
            tell.note(Note::Said(SafeText::new(text)));
        }
        place.slot.provide(self.repo.root(), &self.link, &self.copy).map_err(fault)?;
        let base_tree = self.repo.tree_of(base).map_err(fault)?;
        let phase = self.crew.phase(job.node).id.key();
        let previous = job.attempt.checked_sub(1).filter(|n| *n > 0 && job.previous.is_some());
        let previous =
            previous.and_then(|n| self.repo.read_ref(&attempt_ref(self.run, phase, n)).ok().flatten());
        let mut performed = {
            let changed = || place.slot.tree_hash().ok().map(|tree| tree != base_tree);
            let bench = Bench {
                folder: place.slot.path(),
                slot: place.number,
                previous: previous.map(|sha| sha.to_string()),
                changed: &changed,
            };
            self.crew.perform(job, &bench, tell)
        };
        let name = attempt_ref(self.run, phase, job.attempt);
        let message = self.crew.message(job.node, &performed.delivery);
        let saved = place.slot.save(base, &name, &message).map_err(fault)?;
        if performed.fault.is_none() && !saved.unsaved.is_empty() {
            performed.fault = Some(Box::new(unsaved(&saved.unsaved)));
        }
        if performed.fault.is_none() && saved.changed.is_empty() && super::crew::conflict(job).is_some() {
            performed.fault = Some(Box::new(nothing_again()));
        }
        if performed.delivery.message.is_none() {
            performed.delivery.message = saved.own_commits.first().map(|commit| commit.subject.clone());
        }
        performed.delivery.own_commits = u32::try_from(saved.own_commits.len()).unwrap_or(u32::MAX);
        performed.delivery.saved = Some(saved.sha.to_string());
        performed.delivery.base = Some(base.to_string());
        if !saved.own_commits.is_empty() {
            let text = format!(
                "{} made {} by itself; they are a part of this phase",
                self.crew.phase(job.node).id.shown(),
                match saved.own_commits.len() {
                    1 => "a commit".to_owned(),
                    n => format!("{n} commits"),
                }
            );
            tell.note(Note::Said(SafeText::new(text)));
        }
        place.saved = Some(saved.sha);
        Ok(performed)
    }

    fn put_in(&self, job: &IntegrationJob, tell: &Tell) -> Result<Integrated, Box<Fault>> {
        let fault = |error: GitError| git_fault(&error);
        let tip_name = tip_ref(self.run);
        let tip = self.tip(job.tip.as_ref())?;
        let now = self.repo.read_ref(&tip_name).map_err(fault)?;
        if let Some(now) = now.as_ref().filter(|now| **now != tip) {
            // A Backstop that was killed had got this far, and nobody else moves this ref.
            if !job.resumed || !self.repo.contains(now, &tip).map_err(fault)? {
                return Err(state_invalid(&format!(
                    "{tip_name} is at {now}, and by the record it is at {tip}"
                )));
            }
            self.land(now, tell);
            return Ok(self.done(job, Some(now.clone())));
        }
        let parse = |text: &Option<String>| -> Result<Sha, Box<Fault>> {
            let text = text.as_ref().ok_or_else(|| state_invalid("the work of a phase was not saved"))?;
            text.parse().map_err(|error| state_invalid(&format!("the saved work of a phase: {error}")))
        };
        let (saved, base) = (parse(&job.delivery.saved)?, parse(&job.delivery.base)?);
        let tree = self.repo.tree_of(&saved).map_err(fault)?;
        if tree == self.repo.tree_of(&base).map_err(fault)? {
            return Ok(Integrated::Done { tip: None, commit: None });
        }
        tell.note(Note::Integrating);
        let merged =
            if tip == base { Merged::Clean(tree) } else { self.repo.merge(&tip, &saved).map_err(fault)? };
        let tree = match merged {
            Merged::Clean(tree) => tree,
            Merged::Conflicted(conflicts) => return Ok(self.conflicted(job, &base, &tip, &conflicts)),
        };
        if tree == self.repo.tree_of(&tip).map_err(fault)? {
            // Somebody else did just the same meanwhile.
            return Ok(Integrated::Done { tip: None, commit: None });
        }
        let mut place = match self.held(job.node) {
            Some(place) => place,
            None => self.take().map_err(fault)?,
        };
        let done = self.commit(job, tell, &mut place, &tip, &base, &saved, &tree);
        self.give_back(place);
        let Some(new) = done? else { return Ok(Integrated::Done { tip: None, commit: None }) };
        let new = match new {
            Ok(new) => new,
            Err(integrated) => return Ok(*integrated),
        };
        if !self.repo.set_ref(&tip_name, &new, Some(&tip)).map_err(fault)? {
            return Err(state_invalid(&format!("{tip_name} was moved by somebody else")));
        }
        self.land(&new, tell);
        Ok(self.done(job, Some(new)))
    }

    /// The commit of the merged tree. Nothing where there is nothing to commit; what stands in the way otherwise.
    #[expect(clippy::too_many_arguments)] // One caller; they are the parts of one step.
    fn commit(
        &self,
        job: &IntegrationJob,
        tell: &Tell,
        place: &mut Place,
        tip: &Sha,
        base: &Sha,
        saved: &Sha,
        tree: &Sha,
    ) -> Result<Option<Result<Sha, Box<Integrated>>>, Box<Fault>> {
        let fault = |error: GitError| git_fault(&error);
        let message = self.crew.message(job.node, &job.delivery);
        place.saved.get_or_insert_with(|| saved.clone());
        if tip != base && !self.crew.equipment[job.node].gates.is_empty() {
            let merged =
                self.repo.commit_tree(tree, &[tip, saved], "merged, not checked yet").map_err(fault)?;
            if let Some(refused) = self.check_merged(job, tell, place, &merged)? {
                return Ok(Some(Err(Box::new(refused))));
            }
        }
        if self.commit != Commit::Auto {
            return Ok(Some(Ok(self.repo.commit_tree(tree, &[tip], &message).map_err(fault)?)));
        }
        // Files that are right already are not written again, so that nothing has to be built again.
        if tip != base || job.delivery.own_commits > 0 {
            place.slot.reset_to(tip, place.saved.as_ref()).map_err(fault)?;
        }
        place.saved = None;
        match self.repo.commit_in(&place.slot, tree, tip, &message) {
            Ok(committed) => {
                place.saved = Some(committed.sha.clone());
                Ok(Some(Ok(committed.sha)))
            }
            Err(CommitTrouble::NoChange) => Ok(None),
            Err(trouble) => {
                let name = attempt_ref(self.run, self.crew.phase(job.node).id.key(), job.attempt);
                let name = format!("{name}-refused");
                place.saved = Some(place.slot.save(tip, &name, &message).map_err(fault)?.sha);
                Ok(Some(Err(Box::new(Integrated::Failed(commit_fault(&trouble))))))
            }
        }
    }

    /// The gates once more, on the merged tree. What they find there and did not find before is a conflict.
    fn check_merged(
        &self,
        job: &IntegrationJob,
        tell: &Tell,
        place: &mut Place,
        merged: &Sha,
    ) -> Result<Option<Integrated>, Box<Fault>> {
        let fault = |error: GitError| git_fault(&error);
        place.slot.reset_to(merged, place.saved.as_ref()).map_err(fault)?;
        place.saved = None;
        let key = self.crew.phase(job.node).id.key();
        let log = AttemptLog::open(
            &self.crew.views.attempt_log(key.as_str(), job.attempt),
            Arc::clone(&self.crew.redactor),
        );
        log.say("--- gates on the merged tree ---");
        let as_attempt = AttemptJob {
            node: job.node,
            attempt: job.attempt,
            chance: 1,
            of: 1,
            tip: None,
            previous: None,
            tasks_done: Vec::new(),
            output: None,
            beside: Vec::new(),
            stop: job.stop.clone(),
        };
        let env = vec![
            ("BACKSTOP_RUN_ID".to_owned(), self.run.to_string()),
            ("BACKSTOP_RUN_MARK".to_owned(), self.crew.mark.clone()),
            ("BACKSTOP_PHASE".to_owned(), key.as_str().to_owned()),
            ("BACKSTOP_ATTEMPT".to_owned(), job.attempt.to_string()),
            ("BACKSTOP_SLOT".to_owned(), place.number.to_string()),
        ];
        let checked = self.crew.check(&as_attempt, place.slot.path(), env, &log, tell, &job.stop);
        log.finish();
        let name = format!("{}-merged", attempt_ref(self.run, key, job.attempt));
        place.saved =
            Some(place.slot.save(merged, &name, "the merged tree, after its gates").map_err(fault)?.sha);
        let found = match checked {
            Ok(checks) => checks.into_iter().find(|checked| !checked.passed),
            Err(fault) => return Ok(Some(Integrated::Failed(fault))),
        };
        let Some(found) = found else { return Ok(None) };
        let inner = found.fault.unwrap_or_else(|| Fault::new(Reason::Unknown));
        if matches!(inner.reason, Reason::Interrupted | Reason::DependencyMissing) {
            return Ok(Some(Integrated::Failed(Box::new(inner))));
        }
        let cause =
            inner.cause.as_ref().map_or_else(|| inner.reason.code().to_owned(), |cause| cause.line(200));
        let mut fault = Fault::new(Reason::FileConflict);
        fault.cause = Some(SafeText::new(format!(
            "gate {} passes on this phase's own work and fails together with what came in meanwhile: {cause}",
            found.gate
        )));
        fault.facts = inner.facts;
        let output = self.crew.redactor.redact(&String::from_utf8_lossy(&found.tail)).into_owned();
        fault.evidence = vec![evidence(output)];
        let files = vec![format!("gate {} on the merged tree", found.gate)];
        Ok(Some(Integrated::Conflicted { files, fault: Box::new(fault) }))
    }

    fn conflicted(&self, job: &IntegrationJob, base: &Sha, tip: &Sha, conflicts: &[Conflict]) -> Integrated {
        if let Some(place) = self.held(job.node) {
            self.give_back(place);
        }
        let name = |conflict: &Conflict| conflict.path.to_string_lossy().into_owned();
        let files: Vec<String> = conflicts.iter().map(name).collect();
        let ranges = |ranges: &[(u32, u32)]| {
            let all: Vec<String> = ranges.iter().take(10).map(|(from, to)| format!("{from}-{to}")).collect();
            if all.is_empty() { String::new() } else { format!(" lines {}", all.join(", ")) }
        };
        let others = self.others(base, tip);
        let line = |conflict: &Conflict| {
            format!(
                "{}: phase {} changed{}, {others} changed{}",
                SafeText::new(name(conflict)).line(200),
                self.crew.phase(job.node).id.shown(),
                ranges(&conflict.theirs),
                ranges(&conflict.ours),
            )
        };
        let lines: Vec<String> = conflicts.iter().take(10).map(line).collect();
        let mut fault = Fault::new(Reason::FileConflict);
        fault.cause = Some(SafeText::new(lines.join("; ")));
        fault.facts.files = files.iter().map(|file| SafeText::new(file.clone())).collect();
        let hunks: Vec<String> = conflicts.iter().map(|conflict| conflict.hunks.raw().to_owned()).collect();
        fault.evidence = vec![evidence(format!("{}\n\n{}", lines.join("\n"), hunks.join("\n")))];
        Integrated::Conflicted { files, fault: Box::new(fault) }
    }

    /// The phases whose work came in between two tips, in words.
    fn others(&self, base: &Sha, tip: &Sha) -> String {
        let commits = self.crew.journal.journal().load(self.run).unwrap_or_default();
        let mut names = Vec::new();
        for event in &commits {
            if let backstop_core::EventKind::IntegrationFinished { operation, tip: at } = &event.kind {
                let between = at.parse::<Sha>().is_ok_and(|at| {
                    self.repo.contains(tip, &at).unwrap_or(false)
                        && !self.repo.contains(base, &at).unwrap_or(true)
                });
                if between {
                    names.push(operation.line(40).to_uppercase());
                }
            }
        }
        match names.len() {
            0 => "somebody else".to_owned(),
            1 => format!("phase {}", names[0]),
            _ => format!("phases {}", names.join(", ")),
        }
    }

    fn done(&self, job: &IntegrationJob, tip: Option<Sha>) -> Integrated {
        let subject = self.crew.message(job.node, &job.delivery);
        let subject = SafeText::new(subject.lines().next().unwrap_or_default());
        let commit = match (self.commit, &tip) {
            (Commit::Auto, Some(tip)) => Some((tip.to_string(), subject)),
            _ => None,
        };
        Integrated::Done { tip: tip.map(|tip| tip.to_string()), commit }
    }

    /// Brings the user's branch to the tip, where phases are committed as they come in.
    ///
    /// The work is in, whatever becomes of this: what keeps the branch from following is told, and tried again at the end.
    fn land(&self, tip: &Sha, tell: &Tell) {
        if self.commit != Commit::Auto {
            return;
        }
        let mut landed = self.landed.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = self.repo.land_ff(self.branch.as_deref(), &landed.0, tip);
        let answer = answer.map_or_else(
            |error| Landed::Kept(error.to_string()),
            |answer| Landed::of(answer, self.branch.as_deref()),
        );
        match answer {
            Landed::There => *landed = (tip.clone(), None),
            kept => {
                if landed.1.is_none() {
                    let text = kept.note(&tip_ref(self.run));
                    tell.note(Note::Said(SafeText::new(text)));
                }
                landed.1 = Some(kept);
            }
        }
    }

    /// What is left to do once every phase is complete.
    pub fn conclude(&self, record: &RunRecord) -> Result<Conclusion, Box<Fault>> {
        let fault = |error: GitError| git_fault(&error);
        let tip = self.tip(record.tip.as_ref())?;
        super::landing::conclude(
            self.crew,
            &super::landing::Last {
                repo: &self.repo,
                run: self.run,
                commit: self.commit,
                branch: self.branch.as_deref(),
                base: &self.base,
                tip: &tip,
                landed: &self.landed.lock().unwrap_or_else(PoisonError::into_inner).0,
                exclude: &self.exclude,
            },
            record,
            &mut |tree, parent, message| {
                let mut place = self.take()?;
                place.slot.reset_to(parent, place.saved.as_ref())?;
                place.saved = None;
                let made = self.repo.commit_in(&place.slot, tree, parent, message);
                if let Ok(made) = &made {
                    place.saved = Some(made.sha.clone());
                    self.give_back(place);
                }
                Ok(made.map(|made| made.sha))
            },
        )
        .map_err(|trouble| match trouble {
            super::landing::Trouble::Git(error) => fault(error),
            super::landing::Trouble::Commit(trouble) => commit_fault(&trouble),
        })
    }

    /// Removes the slots of a run that is complete. What is not clean, or not saved, stays.
    pub fn clear_away(&self) {
        let (mut places, made) = {
            let mut slots = self.slots();
            (std::mem::take(&mut slots.free), slots.made)
        };
        // Those that a killed Backstop made and this one did not need.
        let left = (made + 1..).take_while(|number| self.slot_path(*number).exists());
        places.extend(left.filter_map(|number| self.open(number).ok()));
        for place in places {
            let _ = place.slot.reset_to(&self.base, place.saved.as_ref());
            let _ = self.repo.remove_slot(place.slot);
        }
        let _ = std::fs::remove_dir(&self.folder);
    }
}

impl Workshop for Worktrees<'_> {
    fn integrates(&self) -> bool {
        true
    }

    fn attempt(&self, job: &AttemptJob, tell: &Tell) -> Worked {
        let began = now();
        let performed = self.work(job, tell).unwrap_or_else(Performed::failed);
        performed.worked(began.elapsed())
    }

    fn integrate(&self, job: &IntegrationJob, tell: &Tell) -> Integrated {
        let done = self.put_in(job, tell);
        // Whatever became of it, its slot is free.
        if let Some(place) = self.held(job.node) {
            self.give_back(place);
        }
        done.unwrap_or_else(Integrated::Failed)
    }

    fn conclude(&self, record: &RunRecord) -> Result<Conclusion, Box<Fault>> {
        let concluded = Worktrees::conclude(self, record)?;
        match &concluded.work {
            // Finished is what the user has: until then the run can be gone on with, which tries again.
            Some(WorkAt::Kept { reference, why, command }) => {
                let mut fault = Fault::new(Reason::VcsError);
                fault.cause =
                    Some(SafeText::new(format!("it is kept on {}: {}", reference.raw(), why.raw())));
                fault.suggested_action = SafeText::new(format!("Bring it in: `{}`", command.raw()));
                Err(Box::new(fault))
            }
            _ => Ok(concluded),
        }
    }
}

/// A process runs in real time.
#[expect(clippy::disallowed_methods)]
pub(super) fn now() -> Instant {
    Instant::now()
}

impl Performed {
    pub(super) fn worked(self, duration: Duration) -> Worked {
        let Self { fault, dispatch, worker_lost, exit, signal, output, delivery } = self;
        Worked { fault, dispatch, worker_lost, exit, signal, output, duration, delivery }
    }
}

/// What the next attempt is told about a conflict.
fn evidence(text: String) -> Evidence {
    let cut = text.chars().take(HUNKS_CHARS_MAX).collect::<String>();
    Evidence { rule: CONFLICT.to_owned(), line: None, text: SafeText::new(cut), stream: None }
}

/// Work that git can only keep as a link would be lost in silence.
fn unsaved(paths: &[PathBuf]) -> Fault {
    let names: Vec<String> = paths.iter().take(3).map(|path| path.display().to_string()).collect();
    let mut fault = Fault::new(Reason::VcsError);
    fault.cause = Some(SafeText::new(format!(
        "a repository inside the worktree cannot be kept with the phase's work: {}",
        names.join(", ")
    )));
    fault.suggested_action =
        SafeText::new("remove its `.git` folder, or work on it in a phase of its own repository");
    fault
}

/// The re-run of a conflict left the work out: what was done first is only on its ref.
fn nothing_again() -> Fault {
    let mut fault = Fault::new(Reason::VerificationMismatch);
    fault.cause =
        Some("after a conflict it was run again and changed nothing; its first work is not in".into());
    fault
}

/// Trouble with git, as a fault.
pub(super) fn git_fault(error: &GitError) -> Box<Fault> {
    let full = error.to_string().contains("No space left on device");
    let mut fault = Fault::new(if full { Reason::DiskFull } else { Reason::VcsError });
    fault.cause = Some(SafeText::new(error.to_string()));
    fault.suggested_action = SafeText::new(error.hint());
    Box::new(fault)
}

pub(super) fn commit_fault(trouble: &CommitTrouble) -> Box<Fault> {
    let mut fault = Fault::new(Reason::VcsError);
    fault.cause = Some(SafeText::new(trouble.to_string()));
    fault.suggested_action = SafeText::new(trouble.hint());
    Box::new(fault)
}

fn state_invalid(what: &str) -> Box<Fault> {
    let mut fault = Fault::new(Reason::StateInvalid);
    fault.cause = Some(SafeText::new(what));
    Box::new(fault)
}
