//! Builds a [`Plan`] from its outline: reads each cell, settings block and section.

use super::draft::Draft;
use super::error::{PlanError, PlanErrorKind, PlanErrors, shown_text};
use super::format::{By, Format, ReadOptions};
use super::inline::plain;
use super::outline::Outline;
use super::plan::{Phase, Plan, Task};
use super::readers::{self, LOOSE_TABLE_SCORE, OWN_TABLE_SCORE, PlanText, TABLE_SCORE};
use super::reference::{Ids, Named};
use super::section::Owner;
use super::sequence::{Place, sequence};
use super::settings::Settings;
use super::source::Source;
use super::table::{Column, in_row};
use super::warning::{Warnings, quoted};
use super::{estimate, hash, settings_block, status};
use backstop_core::SafeText;
use backstop_core::order as graph;
use std::collections::HashMap;
use std::ops::Range;

/// Reads a plan that is one text, of any format.
pub fn parse(text: &[u8]) -> Result<Plan, PlanErrors> {
    read(&[PlanText { name: "", text }], &ReadOptions::default())
}

/// Reads a plan of one or more files. Its format is found by its structure, unless it is given.
pub fn read(texts: &[PlanText<'_>], options: &ReadOptions) -> Result<Plan, PlanErrors> {
    let first = texts.first().map_or(&[][..], |first| first.text);
    let source = Source::new(first)?;
    match draft(texts, options)? {
        Some(draft) => super::assemble::plan(draft, options.by, &source),
        None => table(first),
    }
}

/// The draft of a plan that is not in Backstop's own format.
pub(crate) fn draft(texts: &[PlanText<'_>], options: &ReadOptions) -> Result<Option<Draft>, PlanErrors> {
    let first = texts.first().map_or(&[][..], |first| first.text);
    let score = match options.format {
        Some(_) => 0,
        None => table_score(first)?,
    };
    Ok(readers::read(texts, options.format, score)?)
}

/// How sure it is that a text has a table of phases.
fn table_score(text: &[u8]) -> Result<u32, PlanError> {
    let source = Source::new(text)?;
    let blocks = super::block::read(&source);
    Ok(match super::table::find(&source, &blocks) {
        Ok(table) if table.is_loose => LOOSE_TABLE_SCORE,
        Ok(table) if table.place(Column::DependsOn).and(table.place(Column::Status)).is_some() => {
            OWN_TABLE_SCORE
        }
        Ok(_) => TABLE_SCORE,
        Err(error) => match error.kind {
            PlanErrorKind::EmptyTable => 50,
            PlanErrorKind::TooManyPhases { .. } => TABLE_SCORE,
            _ => 0,
        },
    })
}

/// Reads a plan in Backstop's own format.
fn table(text: &[u8]) -> Result<Plan, PlanErrors> {
    let mut outline = Outline::read(text).map_err(|error| match error.kind {
        // Without anything that looks like a table, nothing was meant to be one.
        PlanErrorKind::NoTable if error.also.is_empty() => PlanError::at(1, 1, PlanErrorKind::NoPlan),
        _ => error,
    })?;
    let warnings = std::mem::take(&mut outline.warnings);
    let errors = std::mem::take(&mut outline.errors);
    let mut reader = Reader { outline: &outline, warnings, errors };
    reader.odd_lines();
    let mut depends_on = reader.references(Column::DependsOn);
    let flags = reader.flags();
    let listed = match &flags {
        Some(_) => vec![Vec::new(); outline.ids.len()],
        None => reader.references(Column::ParallelWith),
    };
    let mut parallel_with = reader.symmetric(&listed);
    let has_order =
        outline.table.place(Column::DependsOn).is_none() && (outline.table.is_loose || flags.is_some());
    if let Some(waves) = reader.waves().filter(|_| outline.table.place(Column::DependsOn).is_none()) {
        (depends_on, parallel_with) = in_waves(&waves);
    } else if flags.is_some() || has_order {
        (depends_on, parallel_with) = reader.in_order(depends_on, flags.as_deref(), has_order);
    }
    if reader.acyclic(&depends_on) {
        reader.compatible(&depends_on, &listed, &parallel_with);
    }
    let settings = reader.settings();
    if let Some(errors) = PlanErrors::of(std::mem::take(&mut reader.errors)) {
        return Err(errors);
    }
    let lists = depends_on.into_iter().zip(parallel_with).enumerate();
    let mut phases = Vec::with_capacity(outline.ids.len());
    for (phase, (depends_on, parallel_with)) in lists {
        phases.push(reader.phase(phase, depends_on, parallel_with, &settings));
    }
    Ok(Plan {
        groups: phases.len(),
        items: phases.len(),
        phases,
        warnings: reader.warnings.into_sorted(),
        table_hash: hash::table(&outline),
        defaults: settings.defaults,
        defaults_hash: hash::text(&settings.defaults_text),
        format: Format::Backstop,
        by: By::Phase,
        passed_over: Vec::new(),
    })
}

/// The settings of a plan.
#[derive(Default)]
struct AllSettings {
    defaults: Settings,
    defaults_text: String,
    /// The settings of each phase, by its place in the table.
    own: Vec<Option<Settings>>,
}

/// What waits for what where each phase has the number of its wave: those of a wave run side by
/// side, after those of the wave before.
fn in_waves(waves: &[u32]) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let of = |wave: Option<u32>| -> Vec<usize> {
        (0..waves.len()).filter(|at| Some(waves[*at]) == wave).collect()
    };
    let before = |own: u32| of(waves.iter().copied().filter(|wave| *wave < own).max());
    let depends_on = waves.iter().map(|own| before(*own)).collect();
    let beside = |(at, own): (usize, &u32)| of(Some(*own)).into_iter().filter(|other| *other != at).collect();
    (depends_on, waves.iter().enumerate().map(beside).collect())
}

struct Reader<'o, 't> {
    outline: &'o Outline<'t>,
    warnings: Warnings,
    errors: Vec<PlanError>,
}

impl<'o, 't> Reader<'o, 't> {
    fn shown(&self, phase: usize) -> &'o str {
        self.outline.ids[phase].shown()
    }

    fn text(&self, range: &Range<usize>) -> &'t str {
        self.outline.text(range)
    }

    /// An error in a phase's row, at the cell of a column where the row has one.
    fn error(&self, phase: usize, column: Column, kind: PlanErrorKind) -> PlanError {
        let row = self.outline.row(phase);
        match self.outline.cell_range(phase, column) {
            Some(range) => in_row(&self.outline.source, row.line, range.start, kind),
            None => in_row(&self.outline.source, row.line, self.outline.source.range(row.line).start, kind),
        }
    }

    fn odd_lines(&mut self) {
        let outline = self.outline;
        for line in &outline.table.empty {
            self.warnings.add(*line, || "this row of the table is empty: it is left out".to_owned());
        }
        if let Some(line) = outline.table.cut_off {
            self.warnings.add(line, || {
                "this row is cut off from the table by the line before it: it is left out".to_owned()
            });
        }
        if let Some((line, what)) = outline.blocks.unclosed {
            self.warnings
                .add(line, || format!("this {what} is never closed: everything after it is part of it"));
        }
        for (phase, section) in outline.sections.of.iter().enumerate() {
            if section.lines.is_empty() && !outline.table.is_loose {
                let id = self.shown(phase);
                let text = || format!("phase {id} has no section: add a heading `### Phase {id}: …`");
                self.warnings.add(outline.row(phase).line, text);
            }
        }
    }

    /// The phases that each phase names in a column: its dependencies, its parallel phases.
    fn references(&mut self, column: Column) -> Vec<Vec<usize>> {
        let outline = self.outline;
        let mut names = HashMap::new();
        for phase in 0..outline.ids.len() {
            names.entry(self.name(phase).raw().to_lowercase()).or_insert(phase);
        }
        let ids = Ids { ids: &outline.ids, known: &outline.known, names: &names };
        let mut lists = Vec::with_capacity(outline.ids.len());
        for phase in 0..outline.ids.len() {
            let mut named = outline
                .cell_range(phase, column)
                .map(|range| ids.read(self.text(&range), phase))
                .unwrap_or_default();
            if let Some(unknown) = &named.unknown {
                let (id, given) = (self.shown(phase).into(), shown_text(unknown));
                let nearest = ids.nearest(unknown).map(Into::into);
                let kind = match column {
                    Column::ParallelWith => PlanErrorKind::UnknownParallel { phase: id, given, nearest },
                    _ => PlanErrorKind::UnknownDependency { phase: id, given, nearest },
                };
                let error = self.error(phase, column, kind);
                self.errors.push(error);
            }
            if named.phases.contains(&phase) {
                let id = self.shown(phase).into();
                let kind = match column {
                    Column::ParallelWith => PlanErrorKind::SelfParallel { phase: id },
                    _ => PlanErrorKind::SelfDependency { phase: id },
                };
                let error = self.error(phase, column, kind);
                self.errors.push(error);
                named.phases.retain(|other| *other != phase);
            }
            if let Some(remark) = &named.remark {
                let text = || format!("`({})` names no phase: taken as none", quoted(remark));
                self.warnings.add(outline.row(phase).line, text);
            }
            self.compare(phase, column, &named, &ids);
            lists.push(named.phases);
        }
        lists
    }

    /// What a column such as `Parallel?` says, where all of its cells are yes or no.
    fn flags(&self) -> Option<Vec<bool>> {
        self.outline.table.place(Column::ParallelWith)?;
        let mut any = false;
        let mut flags = Vec::with_capacity(self.outline.ids.len());
        for phase in 0..self.outline.ids.len() {
            let cell = self.outline.cell(phase, Column::ParallelWith);
            let text = cell.map(|cell| plain(self.text(&cell.text)).to_lowercase()).unwrap_or_default();
            let word =
                text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ',')).next().unwrap_or_default();
            let flag = match word {
                "yes" | "y" | "true" | "✅" | "✓" | "✔" | "[p]" | "p" | "ja" | "oui" | "sí" => true,
                "" | "no" | "n" | "false" | "-" | "–" | "—" | "❌" | "✗" | "nein" | "non" => false,
                _ => return None,
            };
            any |= flag || !matches!(word, "" | "-" | "–" | "—");
            flags.push(flag);
        }
        any.then_some(flags)
    }

    /// The numbers of a column such as `Wave`, where all of its cells have one.
    fn waves(&self) -> Option<Vec<u32>> {
        self.outline.table.place(Column::Wave)?;
        let number = |phase: usize| {
            let cell = plain(self.text(&self.outline.cell(phase, Column::Wave)?.text));
            let digits = cell.trim_start_matches(|c: char| !c.is_ascii_digit());
            digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        (0..self.outline.ids.len()).map(number).collect()
    }

    /// The order of the table as dependencies, where no column has any; neighbours that may run
    /// side by side do.
    fn in_order(
        &self,
        named: Vec<Vec<usize>>,
        flags: Option<&[bool]>,
        has_order: bool,
    ) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
        let place = |(at, named): (usize, Vec<usize>)| Place {
            with: Vec::new(),
            named: (!has_order || !named.is_empty()).then_some(named),
            beside: flags.is_some_and(|flags| flags[at]),
            group: 0,
        };
        sequence(&named.into_iter().enumerate().map(place).collect::<Vec<_>>())
    }

    /// Warns if a section contradicts the table.
    fn compare(&mut self, phase: usize, column: Column, table: &Named, ids: &Ids<'_>) {
        let field = self.outline.sections.of[phase].field(column);
        let (Some(field), Some(_)) = (field, self.outline.table.place(column)) else { return };
        let value = self.text(&field.value);
        let section = ids.read(value, phase);
        if section.phases != table.phases || section.unknown.is_some() {
            let name = if column == Column::DependsOn { "Depends On" } else { "Parallel With" };
            let id = self.shown(phase);
            self.warnings.add(field.line, || {
                let value = quoted(value);
                format!("the section of phase {id} says {name} `{value}`, the table says otherwise: the table counts")
            });
        }
    }

    fn acyclic(&mut self, depends_on: &[Vec<usize>]) -> bool {
        let Some(cycle) = graph::cycle(depends_on) else { return true };
        let ids = cycle.iter().map(|phase| self.shown(*phase).to_owned()).collect();
        let mut error = self.error(cycle[0], Column::DependsOn, PlanErrorKind::Cycle(ids));
        error.also.extend(cycle.windows(2).map(|edge| {
            let line = self.outline.row(edge[0]).line + 1;
            (line, format!("phase {} depends on {}", self.shown(edge[0]), self.shown(edge[1])))
        }));
        self.errors.push(error);
        false
    }

    /// Makes `Parallel With` symmetric: a phase that is listed lists the other too.
    fn symmetric(&mut self, listed: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let mut both = listed.to_vec();
        for (phase, others) in listed.iter().enumerate() {
            for &other in others {
                if listed[other].binary_search(&phase).is_err() {
                    both[other].push(phase);
                    let (id, its) = (self.shown(phase), self.shown(other));
                    self.warnings.add(self.outline.row(phase).line, || {
                        format!(
                            "phase {id} is parallel with {its}, but {its} does not list {id}: taken as both"
                        )
                    });
                }
            }
        }
        both.iter_mut().for_each(|list| list.sort_unstable());
        both
    }

    /// Refuses phases that are parallel with a phase that they depend on.
    fn compatible(&mut self, depends_on: &[Vec<usize>], listed: &[Vec<usize>], parallel_with: &[Vec<usize>]) {
        if listed.iter().all(Vec::is_empty) {
            return;
        }
        let reach = graph::Reach::new(depends_on);
        for (phase, others) in parallel_with.iter().enumerate() {
            // Of a pair, the first says it.
            let clashes = |other: &&usize| **other > phase && reach.either(phase, **other);
            let Some(&other) = others.iter().find(clashes) else { continue };
            let (waits, on) = if reach.waits(phase, other) { (phase, other) } else { (other, phase) };
            let path = graph::path(depends_on, waits, on).unwrap_or_default();
            let path = path.iter().map(|phase| self.shown(*phase).to_owned()).collect();
            let kind = PlanErrorKind::Contradiction {
                phase: self.shown(waits).into(),
                other: self.shown(on).into(),
                path,
            };
            let lists = if listed[phase].contains(&other) { phase } else { other };
            let mut error = self.error(lists, Column::ParallelWith, kind);
            let also = if lists == phase { other } else { phase };
            error.also.push((self.outline.row(also).line + 1, format!("phase {}", self.shown(also))));
            self.errors.push(error);
        }
    }

    fn settings(&mut self) -> AllSettings {
        let outline = self.outline;
        let mut all = AllSettings { own: vec![None; outline.ids.len()], ..AllSettings::default() };
        // The line of the settings block of the plan, or of a phase.
        let mut seen = HashMap::new();
        for fence in &outline.blocks.settings {
            let phase = match outline.sections.owner(fence.open) {
                Owner::Plan => None,
                Owner::Phase(phase) => Some(phase),
                Owner::Nobody => {
                    self.warnings
                        .add(fence.open, || "these settings are in a section that is left out".to_owned());
                    continue;
                }
            };
            if let Some(first) = seen.insert(phase, fence.open + 1) {
                let phase = phase.map(|phase| self.shown(phase).into());
                let kind = PlanErrorKind::DuplicateSettings { phase, first };
                let also = vec![(first, "the first".to_owned())];
                self.errors.push(PlanError { also, ..PlanError::at(fence.open + 1, 1, kind) });
                continue;
            }
            let settings = match settings_block::read(&outline.source, fence) {
                Ok(settings) => settings,
                Err(errors) => {
                    self.errors.extend(errors);
                    continue;
                }
            };
            match phase {
                Some(phase) => all.own[phase] = Some(settings),
                None => {
                    all.defaults = settings;
                    all.defaults_text = settings_block::text(&outline.source, fence);
                }
            }
        }
        all
    }

    fn phase(
        &self,
        phase: usize,
        depends_on: Vec<usize>,
        parallel_with: Vec<usize>,
        settings: &AllSettings,
    ) -> Phase {
        let outline = self.outline;
        let cell =
            |column| outline.cell_range(phase, column).map(|range| self.text(&range)).unwrap_or_default();
        let estimate = plain(cell(Column::Estimate));
        let empty = estimate.is_empty() || estimate == "-";
        let own = settings.own[phase].as_ref();
        let tasks = outline.checkboxes(phase).map(|checkbox| Task {
            text: SafeText::new(checkbox.text),
            done: checkbox.done,
            depth: checkbox.depth,
            line: checkbox.line + 1,
        });
        Phase {
            id: outline.ids[phase].clone(),
            name: self.name(phase),
            depends_on,
            parallel_with,
            estimated: estimate::duration(cell(Column::Estimate)),
            estimate: (!empty).then(|| SafeText::new(estimate)),
            status: status::read_cell(cell(Column::Status)).status(),
            tasks: tasks.collect(),
            section: self.section(phase),
            settings: own.map_or_else(|| settings.defaults.clone(), |own| own.over(&settings.defaults)),
            hash: hash::phase(outline, phase),
            line: outline.row(phase).line + 1,
        }
    }

    fn name(&self, phase: usize) -> SafeText {
        let cell = self.outline.cell(phase, Column::Name);
        let cell = cell.map(|cell| plain(self.text(&cell.text))).unwrap_or_default();
        let heading = &self.outline.sections.of[phase].name;
        let beside = &self.outline.names[phase];
        let name = [&cell, beside, heading].into_iter().find(|name| !name.is_empty());
        name.map_or_else(|| SafeText::new(format!("Phase {}", self.shown(phase))), SafeText::new)
    }

    /// The text of a section, without empty lines at its end.
    fn section(&self, phase: usize) -> SafeText {
        let source = &self.outline.source;
        let mut text = String::new();
        for lines in &self.outline.sections.of[phase].lines {
            text.push_str(self.text(&(source.start(lines.start)..source.start(lines.end))));
        }
        text.truncate(text.trim_end().len());
        if text.is_empty() && self.outline.table.is_loose {
            text = self.row_as_section(phase);
        }
        SafeText::new(text)
    }

    /// The row of a phase as its task, where a table of somebody else's has no sections.
    fn row_as_section(&self, phase: usize) -> String {
        let table = &self.outline.table;
        let (row, mut lines) = (self.outline.row(phase), Vec::new());
        for (at, (header, cell)) in table.header.cells.iter().zip(&row.cells).enumerate() {
            let told = [Column::Status, Column::DependsOn, Column::ParallelWith];
            let value = plain(self.text(&cell.text));
            if !value.is_empty() && told.iter().all(|column| table.place(*column) != Some(at)) {
                lines.push(format!("{}: {value}", plain(self.text(&header.text))));
            }
        }
        lines.join("\n")
    }
}
