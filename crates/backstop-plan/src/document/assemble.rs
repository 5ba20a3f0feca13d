//! From a draft to a plan: which of its entries are phases, their ids, what waits for what. All
//! that is wrong is found at once.

use super::draft::{After, Draft, Entry, Group, Sentence, Step};
use super::error::{PlanError, PlanErrorKind, PlanErrors, shown_text};
use super::format::By;
use super::hash;
use super::id::PhaseId;
use super::mark::Mark;
use super::plan::{Phase, Plan, Task};
use super::reference::{Wide, is_none, range_ends, wide};
use super::sequence::{Place, sequence};
use super::settings::GateSetting;
use super::source::Source;
use super::status::Status;
use super::warning::{Warning, Warnings, quoted};
use super::{PHASES_MAX, estimate, label, words};
use backstop_core::SafeText;
use backstop_core::nearest::nearest;
use backstop_core::order as graph;
use std::collections::HashMap;

/// The most tasks that are a phase each where nobody says so; of more, each group is one.
const BY_TASK_MAX: usize = 60;

/// The entries that are phases.
pub(crate) struct Units {
    pub(crate) by: By,
    pub(crate) units: Vec<Unit>,
    pub(crate) ids: Vec<PhaseId>,
    /// The marks of groups whose tasks are phases: done when all of them are.
    pub(crate) outer: Vec<(Vec<Mark>, Vec<usize>)>,
    /// The ids of groups whose tasks are phases, and of tasks in groups that are phases.
    others: Vec<(String, Vec<usize>)>,
    pub(crate) errors: Vec<PlanError>,
}

/// A phase with what marks it.
pub(crate) struct Unit {
    pub(crate) entry: Entry,
    pub(crate) group: usize,
}

/// What a phase is: as somebody says, else by format and size.
fn choose(draft: &Draft, by: Option<By>) -> By {
    let tasks: usize = draft.groups.iter().map(|group| group.items.len().max(1)).sum();
    by.unwrap_or(match draft.usual {
        By::Task if tasks > BY_TASK_MAX && draft.groups.len() >= 2 => By::Phase,
        By::Phase if draft.groups.len() == 1 && tasks > 1 => By::Task,
        usual => usual,
    })
}

/// Chooses the phases of a draft.
pub(crate) fn units(draft: &mut Draft, by: Option<By>, source: &Source<'_>) -> Units {
    let by = choose(draft, by);
    let mut all = Units {
        by,
        units: Vec::new(),
        ids: Vec::new(),
        outer: Vec::new(),
        others: Vec::new(),
        errors: Vec::new(),
    };
    let groups = std::mem::take(&mut draft.groups);
    let several = groups.iter().filter(|group| !group.items.is_empty()).count() > 1;
    for (at, group) in groups.into_iter().enumerate() {
        if group.items.is_empty() {
            // Tasks that are in no group are neighbours.
            all.units.push(Unit { entry: group.entry, group: usize::MAX });
        } else if by == By::Phase {
            let inner = group.items.iter().filter(|item| !item.id.is_empty());
            all.others.extend(inner.map(|item| (item.id.clone(), vec![all.units.len()])));
            all.units.push(Unit { entry: whole(group), group: at });
        } else {
            all.add_items(group, at, draft.renumber && several);
        }
    }
    all.give_ids(draft.renumber && by == By::Task, source);
    all
}

/// A group as one phase: its tasks are what is ticked off.
fn whole(group: Group) -> Entry {
    let Group { mut entry, items } = group;
    let own = std::mem::take(&mut entry.steps);
    for item in &items {
        entry.steps.push(item.as_step());
        entry.steps.extend(item.steps.iter().map(|step| Step { depth: step.depth + 1, ..step.clone() }));
        entry.checks.extend(item.checks.iter().cloned());
        for file in &item.files {
            if !entry.files.contains(file) {
                entry.files.push(file.clone());
            }
        }
    }
    entry.steps.extend(own);
    if matches!(entry.status, Status::Unknown | Status::NotStarted) && items.iter().all(Entry::is_done) {
        entry.status = Status::Complete;
    }
    entry
}

impl Units {
    fn add_items(&mut self, group: Group, at: usize, numbered: bool) {
        let Group { entry: outer, items } = group;
        let first = self.units.len();
        for (n, mut item) in items.into_iter().enumerate() {
            if numbered {
                let prefix = if outer.id.is_empty() { (at + 1).to_string() } else { outer.id.clone() };
                item.id = format!("{prefix}.{}", n + 1);
            }
            item.settings = item.settings.or_else(|| outer.settings.clone());
            if outer.is_done() && !item.is_done() {
                item.status = outer.status;
            }
            if let (After::Named(own), After::Named(outer)) = (&mut item.after, &outer.after) {
                own.extend(outer.iter().cloned());
            }
            item.checks.extend(outer.checks.iter().cloned());
            self.units.push(Unit { entry: item, group: at });
        }
        let units: Vec<usize> = (first..self.units.len()).collect();
        if !outer.marks.is_empty() {
            self.outer.push((outer.marks, units.clone()));
        }
        if !outer.id.is_empty() {
            self.others.push((outer.id, units));
        }
    }

    /// Gives every phase an id: the written one, else a number. Numbers of lists may begin anew.
    fn give_ids(&mut self, renumber: bool, source: &Source<'_>) {
        let written: Vec<Option<PhaseId>> = self
            .units
            .iter()
            .map(|unit| unit.entry.id.parse().ok().filter(|_| !unit.entry.id.is_empty()))
            .collect();
        let mut first: HashMap<String, usize> = HashMap::new();
        let mut twice = Vec::new();
        for (at, id) in written.iter().enumerate() {
            let Some(id) = id else { continue };
            match first.get(id.key().as_str()) {
                Some(before) => twice.push((at, *before)),
                None => {
                    first.insert(id.key().as_str().to_owned(), at);
                }
            }
        }
        let anew = renumber && (!twice.is_empty() || written.iter().any(Option::is_none));
        if !anew {
            for (at, before) in &twice {
                let (entry, known) = (&self.units[*at].entry, &self.units[*before].entry);
                let (line, column) = source.position(entry.at);
                let kind = PlanErrorKind::DuplicateId { id: shown_text(&entry.id), first: known.line + 1 };
                let mut error = PlanError::at(line, column, kind);
                error.also.push((known.line + 1, format!("phase {}", shown_text(&known.id))));
                self.errors.push(error);
            }
        }
        let mut next = 0;
        for (at, id) in written.into_iter().enumerate() {
            let id = id.filter(|_| !anew || self.units[at].entry.id.contains('.') && twice.is_empty());
            self.ids.push(id.unwrap_or_else(|| {
                loop {
                    next += 1;
                    if anew || !first.contains_key(&next.to_string()) {
                        break number(next);
                    }
                }
            }));
        }
    }
}

#[expect(clippy::expect_used)] // Digits are an id.
fn number(n: usize) -> PhaseId {
    n.to_string().parse().expect("digits are an id")
}

/// Makes a plan of a draft.
pub(crate) fn plan(mut draft: Draft, by: Option<By>, source: &Source<'_>) -> Result<Plan, PlanErrors> {
    let groups = draft.groups.len();
    let items = draft.groups.iter().map(|group| group.items.len().max(1)).sum();
    let mut all = units(&mut draft, by, source);
    if all.units.len() > PHASES_MAX {
        let kind = PlanErrorKind::TooManyPhases { limit: PHASES_MAX };
        return Err(PlanError::at(all.units[PHASES_MAX].entry.line + 1, 1, kind).into());
    }
    let mut warnings = Warnings::default();
    let (depends_on, parallel_with) = all.edges(&draft.order, source, &mut warnings);
    if let Some(cycle) = graph::cycle(&depends_on) {
        let shown: Vec<String> = cycle.iter().map(|at| all.ids[*at].shown().to_owned()).collect();
        let (line, column) = source.position(all.units[cycle[0]].entry.at);
        let mut error = PlanError::at(line, column, PlanErrorKind::Cycle(shown));
        error.also.extend(cycle.windows(2).map(|edge| {
            let line = all.units[edge[0]].entry.line + 1;
            (line, format!("phase {} depends on {}", all.ids[edge[0]], all.ids[edge[1]]))
        }));
        all.errors.push(error);
    }
    if let Some(errors) = PlanErrors::of(std::mem::take(&mut all.errors)) {
        return Err(errors);
    }
    let mut digest = String::new();
    let lists = depends_on.into_iter().zip(parallel_with);
    let mut phases = Vec::with_capacity(all.units.len());
    for ((unit, id), (depends_on, parallel_with)) in all.units.into_iter().zip(all.ids).zip(lists) {
        let phase = phase(unit.entry, id, depends_on, parallel_with, &draft);
        digest.push_str(&format!("{} {:?}\n", phase.id, phase.depends_on));
        phases.push(phase);
    }
    let passed_over =
        draft.passed_over.iter().map(|(line, text)| Warning { line: line + 1, text: quoted(text) });
    Ok(Plan {
        phases,
        warnings: warnings.into_sorted(),
        table_hash: hash::text(&digest),
        defaults_hash: hash::text(&draft.defaults_text),
        format: draft.format,
        by: all.by,
        groups,
        items,
        passed_over: passed_over.collect(),
        defaults: draft.defaults,
    })
}

fn phase(
    entry: Entry,
    id: PhaseId,
    depends_on: Vec<usize>,
    parallel_with: Vec<usize>,
    draft: &Draft,
) -> Phase {
    let mut settings = match &entry.settings {
        Some(own) => own.over(&draft.defaults),
        None => draft.defaults.clone(),
    };
    if settings.gates.is_none() {
        settings.gates = gates(entry.checks.iter().chain(&draft.checks));
    }
    if settings.files.is_empty() {
        settings.files = entry.files;
    }
    let task = |step: Step| Task {
        text: SafeText::new(step.text),
        done: step.done,
        depth: step.depth,
        line: step.line + 1,
    };
    let name = if entry.name.is_empty() { format!("Phase {id}") } else { entry.name };
    Phase {
        hash: hash::entry(id.key().as_str(), &name, &entry.section),
        name: SafeText::new(name),
        id,
        depends_on,
        parallel_with,
        estimated: entry.estimate.as_deref().and_then(estimate::duration),
        estimate: entry.estimate.map(SafeText::new),
        status: entry.status,
        tasks: entry.steps.into_iter().map(task).collect(),
        section: SafeText::new(entry.section),
        settings,
        line: entry.line + 1,
    }
}

/// The gates of commands that a plan names; nothing where it names none.
fn gates<'c>(commands: impl Iterator<Item = &'c String>) -> Option<Vec<GateSetting>> {
    let mut gates: Vec<GateSetting> = Vec::new();
    for command in commands {
        let Some(mut gate) = GateSetting::command(command) else { continue };
        if gates.iter().any(|known| known.check == gate.check) {
            continue;
        }
        let name = gate.name.to_string();
        let mut n = 1;
        while gates.iter().any(|known| known.name == gate.name) {
            n += 1;
            let Ok(other) = format!("{name}-{n}").parse() else { break };
            gate.name = other;
        }
        gates.push(gate);
    }
    (!gates.is_empty()).then_some(gates)
}

impl Units {
    /// What waits for what, and what may run at the same time. Names that lead nowhere are errors.
    fn edges(
        &mut self,
        order: &[Sentence],
        source: &Source<'_>,
        warnings: &mut Warnings,
    ) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
        let known = Known::new(self);
        let said = Said::new(order, &known, self.units.len());
        let mut places = Vec::with_capacity(self.units.len());
        let mut errors = Vec::new();
        for (at, unit) in self.units.iter().enumerate() {
            let named = match &unit.entry.after {
                After::Order => None,
                After::Named(list) => {
                    let mut on = Vec::new();
                    let mut is_prose = !list.is_empty();
                    for (value, from) in list {
                        let found = known.resolve(value, at);
                        is_prose &= found.on.is_empty() && !found.is_none && found.unknown.is_none();
                        on.extend(found.on);
                        let (line, column) = source.position(*from);
                        if let Some(given) = found.unknown {
                            let nearest = known.nearest(&given).map(Into::into);
                            let (phase, given) = (self.ids[at].shown().into(), shown_text(&given));
                            let kind = PlanErrorKind::UnknownDependency { phase, given, nearest };
                            errors.push(PlanError::at(line, column, kind));
                        }
                        if let Some(words) = found.words {
                            let words = quoted(&words);
                            warnings.add(line - 1, || format!("`{words}` names no phase: passed over"));
                        }
                    }
                    if on.contains(&at) {
                        let (line, column) = source.position(unit.entry.at);
                        let kind = PlanErrorKind::SelfDependency { phase: self.ids[at].shown().into() };
                        errors.push(PlanError::at(line, column, kind));
                        on.retain(|other| *other != at);
                    }
                    (!is_prose).then_some(on)
                }
            };
            let hinted = |list: &[(String, usize)]| -> Vec<usize> {
                list.iter().filter_map(|(value, _)| known.names(value, at)).flatten().collect()
            };
            let before = |mut on: Vec<usize>| {
                on.retain(|other| *other < at);
                (!on.is_empty()).then_some(on)
            };
            let named =
                named.or_else(|| before(hinted(&unit.entry.hints))).or_else(|| before(said.on[at].clone()));
            let mut with = hinted(&unit.entry.with);
            with.extend(&said.with[at]);
            places.push(Place { named, beside: unit.entry.beside, group: unit.group, with });
        }
        self.errors.extend(errors);
        if self.by == By::Phase {
            // Groups beside each other are neighbours.
            places.iter_mut().for_each(|place| place.group = 0);
        }
        sequence(&places)
    }
}

/// What the sections about the order of a plan say of each of its phases.
struct Said {
    on: Vec<Vec<usize>>,
    with: Vec<Vec<usize>>,
}

impl Said {
    /// A sentence counts where all of it leads to phases.
    fn new(order: &[Sentence], known: &Known<'_>, count: usize) -> Self {
        let mut said = Self { on: vec![Vec::new(); count], with: vec![Vec::new(); count] };
        let names = |text: &str| known.names(text, 0);
        for sentence in order {
            match sentence {
                Sentence::Waits(who, on) => said.waits(names(who), names(on)),
                Sentence::Chain(parts) => {
                    let parts: Vec<_> = parts.iter().map(|part| names(part)).collect();
                    for pair in parts.windows(2) {
                        said.waits(pair[1].clone(), pair[0].clone());
                    }
                    parts.into_iter().flatten().for_each(|part| said.beside(&part));
                }
                Sentence::Beside(who) => names(who).iter().for_each(|who| said.beside(who)),
            }
        }
        said
    }

    /// The later of the two waits for the earlier one, whichever way an arrow points.
    fn waits(&mut self, who: Option<Vec<usize>>, on: Option<Vec<usize>>) {
        for &one in who.iter().flatten() {
            for &other in on.iter().flatten() {
                self.on[one.max(other)].extend((one != other).then_some(one.min(other)));
            }
        }
    }

    fn beside(&mut self, all: &[usize]) {
        for pair in all.windows(2) {
            self.with[pair[1]].push(pair[0]);
        }
    }
}

/// The names by which phases are known.
struct Known<'u> {
    ids: &'u [PhaseId],
    by_key: HashMap<String, Vec<usize>>,
    by_name: HashMap<String, usize>,
    /// The first phase of the group that a phase is in.
    starts: Vec<usize>,
}

/// What a text names.
#[derive(Default)]
struct Resolved {
    on: Vec<usize>,
    /// A name that should be a phase and is none.
    unknown: Option<String>,
    /// Words that name no phase.
    words: Option<String>,
    is_none: bool,
}

impl<'u> Known<'u> {
    fn new(units: &'u Units) -> Self {
        let mut by_key: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, id) in units.ids.iter().enumerate() {
            by_key.entry(id.key().as_str().to_owned()).or_insert_with(|| vec![at]);
        }
        for (id, list) in &units.others {
            if let Ok(id) = id.parse::<PhaseId>() {
                by_key.entry(id.key().as_str().to_owned()).or_insert_with(|| list.clone());
            }
        }
        let mut by_name = HashMap::new();
        let mut starts = Vec::with_capacity(units.units.len());
        for (at, unit) in units.units.iter().enumerate() {
            let name = unit.entry.name.to_lowercase();
            // `Audit — run it on all pages` is `Audit`.
            let short = name.split([':', '–', '—', '(']).next().unwrap_or_default();
            let short = short.split(" - ").next().unwrap_or_default().trim().to_owned();
            by_name.entry(name).or_insert(at);
            by_name.entry(short).or_insert(at);
            let start = match units.units.get(at.wrapping_sub(1)) {
                Some(before) if before.group == unit.group => starts[at - 1],
                _ => at,
            };
            starts.push(start);
        }
        Self { ids: &units.ids, by_key, by_name, starts }
    }

    /// The phases that a text names, where it names nothing else.
    fn names(&self, value: &str, at: usize) -> Option<Vec<usize>> {
        let found = self.resolve(value, at);
        let is_all = found.unknown.is_none() && found.words.is_none() && !found.on.is_empty();
        is_all.then_some(found.on)
    }

    fn resolve(&self, value: &str, at: usize) -> Resolved {
        let mut found = Resolved::default();
        let outside = super::inline::without_remarks(value).0;
        let value = if outside.is_empty() { value } else { &outside };
        if is_none(value.trim().trim_end_matches('.')) {
            found.is_none = true;
            return found;
        }
        match wide(value) {
            Some(Wide::AllBefore) => {
                found.on = (0..at).collect();
                found.is_none = at == 0;
                return found;
            }
            Some(Wide::Before) => {
                let start = self.starts[at].min(at);
                found.on = at.checked_sub(1).into_iter().filter(|_| start <= at).collect();
                found.is_none = at == 0;
                return found;
            }
            None => {}
        }
        for part in value.split([',', ';', '\n', '、', '，']) {
            let part = part.trim().trim_end_matches('.');
            // A name may have an "and" of its own.
            if let Some(at) = self.by_name.get(&part.to_lowercase()) {
                found.on.push(*at);
                continue;
            }
            for item in words::joined(part) {
                let item = words::bare(&item);
                if is_none(item) {
                    continue;
                }
                if let Some(list) = self.one(item).or_else(|| self.range(item)) {
                    found.on.extend(list);
                } else if looks_like_an_id(item) {
                    found.unknown.get_or_insert_with(|| item.to_owned());
                } else {
                    found.words.get_or_insert_with(|| item.to_owned());
                }
            }
        }
        found
    }

    fn one(&self, text: &str) -> Option<Vec<usize>> {
        let by_id = |text: &str| self.by_key.get(text.parse::<PhaseId>().ok()?.key().as_str()).cloned();
        let labelled = label::heading(&label::singular(text));
        let head =
            text.split_once([':', '–', '—']).or_else(|| text.split_once(" - ")).map(|(head, _)| head.trim());
        by_id(text)
            .or_else(|| labelled.and_then(|label| by_id(&label.id)))
            .or_else(|| head.and_then(by_id))
            .or_else(|| self.by_name.get(&text.to_lowercase()).map(|at| vec![*at]))
    }

    fn range(&self, text: &str) -> Option<Vec<usize>> {
        let (from, to) = range_ends(text)?;
        let (from, to) = (self.one(from)?, self.one(to)?);
        let (first, last) = (from.into_iter().min()?, to.into_iter().max()?);
        (first <= last).then(|| (first..=last).collect())
    }

    fn nearest(&self, text: &str) -> Option<&'u str> {
        let key =
            text.parse::<PhaseId>().map_or_else(|_| text.to_lowercase(), |id| id.key().as_str().to_owned());
        let near = nearest(&key, self.ids.iter().map(|id| id.key().as_str()))?;
        self.ids.iter().find(|id| id.key().as_str() == near).map(PhaseId::shown)
    }
}

/// Whether a text can only mean a phase: a number, a code, or a word of a row with a number.
fn looks_like_an_id(text: &str) -> bool {
    let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
    let is_short = text.len() <= 12 && !text.contains(char::is_whitespace);
    has_digit && (is_short && !text.contains('/') || label::heading(&label::singular(text)).is_some())
}
