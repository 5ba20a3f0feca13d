//! The marks of a plan's phases and where each is, so that one can be set without reading the plan
//! again: a mark costs the same in a plan of 10 phases and in one of 1,000.
//!
//! It is true for the texts that it was read from and for what it wrote itself. Whoever keeps it
//! compares [`MarkIndex::text`] with the file before the next edit, and reads it again where
//! somebody else has changed it.

use super::assemble;
use super::draft::Draft;
use super::edit::{Change, Edit};
use super::error::PlanErrors;
use super::format::ReadOptions;
use super::mark::{self, Mark, Place};
use super::outline::Outline;
use super::read::draft;
use super::readers::PlanText;
use super::source::Source;
use super::spelling::says_todo;
use super::status::Status;
use super::table::Column;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A mark, as an index into the list of all.
type MarkId = usize;

/// The marks of a plan.
#[derive(Debug)]
pub struct MarkIndex {
    files: Vec<MarkedText>,
    marks: Vec<KnownMark>,
    /// The place of each phase in the plan, by key.
    known: HashMap<String, usize>,
    phases: Vec<PhaseMarks>,
    /// The groups whose tasks are phases.
    groups: Vec<GroupMarks>,
}

/// A file of the plan as it is now.
#[derive(Debug)]
struct MarkedText {
    text: String,
    moves: Moves,
}

#[derive(Debug)]
struct KnownMark {
    file: usize,
    /// Its number among the marks of its file, in the order of their places.
    number: usize,
    /// Its place, not counting what was written before it.
    place: Place,
}

#[derive(Debug, Default)]
struct PhaseMarks {
    own: Vec<MarkId>,
    /// The marks of its tasks; a task may have none.
    tasks: Vec<Option<MarkId>>,
    /// Whether it has no mark of its own and is done when all of its tasks are ticked.
    is_done_by_tasks: bool,
    is_done: bool,
    group: Option<usize>,
}

/// A group is done when all of its phases are.
#[derive(Debug)]
struct GroupMarks {
    own: Vec<MarkId>,
    /// How many of its phases are not done.
    open: usize,
}

impl MarkIndex {
    /// Finds the marks of a plan of one or more files. Only what concerns marks is checked: a plan
    /// with a mistake in its settings can still be kept up to date.
    pub fn read(texts: &[PlanText<'_>], options: &ReadOptions) -> Result<Self, PlanErrors> {
        let mut index = Builder::default();
        match draft(texts, options)? {
            Some(draft) => index.add_draft(draft, texts, options)?,
            None => index.add_table(texts.first().map_or(&[][..], |first| first.text))?,
        }
        Ok(index.finish(texts))
    }

    /// What the index takes a file's content to be.
    pub fn text(&self, file: usize) -> &[u8] {
        self.files[file].text.as_bytes()
    }

    /// The files with the marks that these edits are about.
    pub fn files_of(&self, edits: &[Edit]) -> BTreeSet<usize> {
        let phases = edits.iter().filter_map(|edit| self.known.get(edit.phase.key().as_str()));
        let marks = phases.flat_map(|at| {
            let phase = &self.phases[*at];
            let group = phase.group.into_iter().flat_map(|group| &self.groups[group].own);
            phase.own.iter().chain(phase.tasks.iter().flatten()).chain(group)
        });
        marks.map(|mark| self.marks[*mark].file).collect()
    }

    /// Makes these edits, the last one of a mark counts, and says which files have changed. A phase
    /// or task that is not there is skipped.
    pub fn apply(&mut self, edits: &[Edit]) -> BTreeSet<usize> {
        let mut wanted: BTreeMap<MarkId, Status> = BTreeMap::new();
        let mut groups = BTreeSet::new();
        for edit in edits {
            let Some(&at) = self.known.get(edit.phase.key().as_str()) else { continue };
            let phase = &mut self.phases[at];
            groups.extend(phase.group);
            let (listed, status) = match &edit.change {
                Change::Status(Status::Unknown) => continue,
                Change::Status(status) => {
                    let is_done = matches!(status, Status::Complete | Status::Skipped);
                    if let Some(group) = phase.group.filter(|_| phase.is_done != is_done) {
                        let open = &mut self.groups[group].open;
                        *open = if is_done { *open - 1 } else { *open + 1 };
                    }
                    phase.is_done = is_done;
                    wanted.extend(phase.own.iter().map(|mark| (*mark, *status)));
                    if !phase.is_done_by_tasks || *status != Status::Complete {
                        continue;
                    }
                    (None, Status::Complete)
                }
                Change::Tick(tasks) => (Some(tasks), Status::Complete),
                Change::TickAll => (None, Status::Complete),
                Change::Untick(tasks) => (Some(tasks), Status::NotStarted),
                Change::UntickAll => (None, Status::NotStarted),
            };
            let set = |mark: &Option<MarkId>| Some(((*mark)?, status));
            match listed {
                Some(tasks) => wanted.extend(tasks.iter().filter_map(|task| set(phase.tasks.get(*task)?))),
                None => wanted.extend(phase.tasks.iter().filter_map(set)),
            }
        }
        for group in groups {
            let group = &self.groups[group];
            let status = if group.open == 0 { Status::Complete } else { Status::NotStarted };
            wanted.extend(group.own.iter().map(|mark| (*mark, status)));
        }
        wanted.into_iter().filter_map(|(mark, status)| self.set(mark, status)).collect()
    }

    /// Writes a mark; the file, if that changed it.
    fn set(&mut self, mark: MarkId, status: Status) -> Option<usize> {
        let mark = &mut self.marks[mark];
        let MarkedText { text, moves } = &mut self.files[mark.file];
        let moved = moves.before(mark.number);
        let place = mark.place.moved(moved);
        let (range, new) = mark::written(text, &place, status)?;
        mark.place = place.rewritten(&range, &new).moved(-moved);
        moves.add_after(mark.number, new.len() as isize - range.len() as isize);
        text.replace_range(range, &new);
        Some(mark.file)
    }
}

/// By how many bytes each mark of a file was moved by what was written before it: a Fenwick tree
/// over the numbers of marks.
#[derive(Debug, Default)]
struct Moves(Vec<isize>);

impl Moves {
    fn of(count: usize) -> Self {
        Self(vec![0; count + 1])
    }

    /// The sum of what was added after marks with a smaller number.
    fn before(&self, number: usize) -> isize {
        let (mut at, mut sum) = (number, 0);
        while at > 0 {
            sum += self.0[at];
            at &= at - 1;
        }
        sum
    }

    /// Moves the marks that come after this one.
    fn add_after(&mut self, number: usize, by: isize) {
        let mut at = number + 1;
        while by != 0 && at < self.0.len() {
            self.0[at] += by;
            at += at & at.wrapping_neg();
        }
    }
}

/// Collects the marks of phases; a place that is found twice is one mark.
#[derive(Default)]
struct Builder {
    marks: Vec<Mark>,
    ids: HashMap<(usize, usize), MarkId>,
    known: HashMap<String, usize>,
    phases: Vec<PhaseMarks>,
    groups: Vec<GroupMarks>,
}

impl Builder {
    fn id(&mut self, file: usize, place: Place) -> MarkId {
        let next = self.marks.len();
        let id = *self.ids.entry((file, place.start())).or_insert(next);
        if id == next {
            self.marks.push(Mark { file, place });
        }
        id
    }

    fn ids(&mut self, marks: &[Mark]) -> Vec<MarkId> {
        marks.iter().map(|mark| self.id(mark.file, mark.place.clone())).collect()
    }

    /// A plan that is not in Backstop's own format.
    fn add_draft(
        &mut self,
        mut draft: Draft,
        texts: &[PlanText<'_>],
        options: &ReadOptions,
    ) -> Result<(), PlanErrors> {
        let source = Source::new(texts[0].text)?;
        let all = assemble::units(&mut draft, options.by, &source);
        for (at, (unit, id)) in all.units.iter().zip(&all.ids).enumerate() {
            // Of two phases with one id the last counts, as in a list of all of them.
            self.known.insert(id.key().as_str().to_owned(), at);
            let own = self.ids(&unit.entry.marks);
            let steps = unit.entry.steps.iter();
            let tasks = steps.map(|step| self.ids(step.mark.as_slice()).first().copied()).collect();
            self.phases.push(PhaseMarks {
                is_done_by_tasks: own.is_empty(),
                own,
                tasks,
                is_done: unit.entry.is_done(),
                group: None,
            });
        }
        for (marks, units) in &all.outer {
            let own = self.ids(marks);
            let open = units.iter().filter(|at| !self.phases[**at].is_done).count();
            units.iter().for_each(|at| self.phases[*at].group = Some(self.groups.len()));
            self.groups.push(GroupMarks { own, open });
        }
        Ok(())
    }

    /// A plan in Backstop's own format.
    fn add_table(&mut self, text: &[u8]) -> Result<(), PlanErrors> {
        let mut outline = Outline::read(text)?;
        if let Some(errors) = PlanErrors::of(std::mem::take(&mut outline.errors)) {
            return Err(errors);
        }
        let todo = outline.table.rows.iter().any(|row| {
            outline.table.cell(row, Column::Status).is_some_and(|cell| says_todo(outline.text(&cell.text)))
        });
        for phase in 0..outline.ids.len() {
            let mut marks = PhaseMarks::default();
            if let Some(cell) = outline.cell(phase, Column::Status) {
                marks.own.push(self.id(0, Place::Cell { cell: cell.clone(), todo }));
            }
            if let Some(field) = outline.sections.of[phase].field(Column::Status) {
                marks.own.push(self.id(0, Place::Field { range: field.value.clone(), todo }));
            }
            let boxes = outline.checkboxes(phase);
            let place = |at, bare| Place::Box { at, bare };
            marks.tasks = boxes.map(|one| Some(self.id(0, place(one.mark, one.bare)))).collect();
            self.phases.push(marks);
        }
        self.known = outline.known;
        Ok(())
    }

    fn finish(self, texts: &[PlanText<'_>]) -> MarkIndex {
        let mut counts = vec![0; texts.len()];
        let mut order: Vec<MarkId> = (0..self.marks.len()).collect();
        order.sort_by_key(|id| self.marks[*id].place.start());
        let mut numbers = vec![0; self.marks.len()];
        for id in order {
            let count = &mut counts[self.marks[id].file];
            numbers[id] = *count;
            *count += 1;
        }
        let marks = self.marks.into_iter().zip(numbers);
        let marks = marks.map(|(Mark { file, place }, number)| KnownMark { file, number, place }).collect();
        let files = texts.iter().zip(counts).map(|(file, count)| MarkedText {
            // A file that is no text has no marks.
            text: std::str::from_utf8(file.text).unwrap_or_default().to_owned(),
            moves: Moves::of(count),
        });
        MarkIndex {
            files: files.collect(),
            marks,
            known: self.known,
            phases: self.phases,
            groups: self.groups,
        }
    }
}
