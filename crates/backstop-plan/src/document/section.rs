//! Finds the section of each phase, and the fields in the quote block at its head.
//!
//! A section goes from its heading to the next heading of the same or a higher level, without the
//! sections of other phases inside it: every line belongs to one phase at most.

use super::block::{Blocks, Kind};
use super::heading::{HeadingMatch, heading_matches, names_phase};
use super::inline::plain;
use super::source::Source;
use super::table::{Column, column, header_name};
use super::warning::Warnings;
use std::collections::HashMap;
use std::ops::Range;

/// The section that a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// No phase: the plan as a whole.
    Plan,
    /// A phase, by its place in the table.
    Phase(usize),
    /// The section of a phase that the table does not have, or a second one of a phase.
    Nobody,
}

/// A field of a section's quote block: `> **Status**: ⬜`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) column: Column,
    /// Its line, counted from 0.
    pub(crate) line: usize,
    /// The byte range of its value; empty, after the colon, if there is none.
    pub(crate) value: Range<usize>,
}

/// The section of a phase.
#[derive(Debug, Default)]
pub(crate) struct Section {
    /// The lines of the section, in order. Empty if there is no section.
    pub(crate) lines: Vec<Range<usize>>,
    /// The phase's name in the heading.
    pub(crate) name: String,
    /// The fields of its quote block, each column once.
    pub(crate) fields: Vec<Field>,
}

impl Section {
    /// The field of a column.
    pub(crate) fn field(&self, column: Column) -> Option<&Field> {
        self.fields.iter().find(|field| field.column == column)
    }
}

/// The sections of all phases.
pub(crate) struct Sections {
    /// The section of each phase, by its place in the table.
    pub(crate) of: Vec<Section>,
    /// The lines (counted from 0) at which the owner changes, with the new owner.
    owners: Vec<(usize, Owner)>,
}

impl Sections {
    /// The owner of a line.
    pub(crate) fn owner(&self, line: usize) -> Owner {
        let after = self.owners.partition_point(|(start, _)| *start <= line);
        after.checked_sub(1).map_or(Owner::Plan, |at| self.owners[at].1)
    }
}

/// The heading levels that may begin a section.
const LEVELS: std::ops::RangeInclusive<usize> = 2..=6;

/// Finds the sections of phases. `known` has the place of each key in the table, `shown` the ids as
/// the table writes them.
pub(crate) fn find(
    source: &Source<'_>,
    blocks: &Blocks<'_>,
    known: &HashMap<String, usize>,
    shown: &[&str],
    warnings: &mut Warnings,
) -> Sections {
    let chosen = section_headings(blocks, known, shown.len());
    let mut sections = Sections { of: Vec::new(), owners: Vec::new() };
    sections.of.resize_with(shown.len(), Section::default);
    // The headings around the current line, with their levels and owners.
    let mut inside: Vec<(usize, Owner)> = Vec::new();
    for (at, heading) in blocks.headings.iter().enumerate() {
        while inside.last().is_some_and(|(level, _)| *level >= heading.level) {
            inside.pop();
        }
        let mut begins = None;
        match &chosen[at] {
            SectionHeading::Nothing => {}
            SectionHeading::First(phase, name) => {
                sections.of[*phase].name.clone_from(name);
                begins = Some(Owner::Phase(*phase));
            }
            SectionHeading::Second(phase, first) => {
                warnings.add(heading.line, || {
                    format!(
                        "phase {} has a second section: the one on line {} counts",
                        shown[*phase],
                        first + 1
                    )
                });
                begins = Some(Owner::Nobody);
            }
            SectionHeading::UnknownPhase(id) => {
                warnings.add(heading.line, || {
                    format!("this section is of phase {id}, which has no row in the table: it is left out")
                });
                begins = Some(Owner::Nobody);
            }
        }
        inside.extend(begins.map(|owner| (heading.level, owner)));
        let owner = inside.last().map_or(Owner::Plan, |(_, owner)| *owner);
        let end = blocks.headings.get(at + 1).map_or(source.count(), |next| next.line);
        if let Owner::Phase(phase) = owner {
            let section = &mut sections.of[phase];
            if matches!(begins, Some(Owner::Phase(_))) {
                section.fields = fields(source, blocks, heading.line + 1..end);
            }
            match section.lines.last_mut() {
                Some(last) if last.end == heading.line => last.end = end,
                _ => section.lines.push(heading.line..end),
            }
        }
        sections.owners.push((heading.line, owner));
    }
    sections
}

/// How a heading relates to the table's phases.
enum SectionHeading {
    Nothing,
    First(usize, String),
    /// A phase that has a section already, and the line of that one.
    Second(usize, usize),
    UnknownPhase(String),
}

/// How each heading relates to the table's phases. A plain heading wins over a likely one, the
/// first over later ones.
fn section_headings(
    blocks: &Blocks<'_>,
    known: &HashMap<String, usize>,
    phases: usize,
) -> Vec<SectionHeading> {
    let mut first: Vec<Option<(usize, bool)>> = vec![None; phases];
    let mut headings = Vec::with_capacity(blocks.headings.len());
    for (at, heading) in blocks.headings.iter().enumerate() {
        if !LEVELS.contains(&heading.level) {
            headings.push(None);
            continue;
        }
        let text = plain(heading.text);
        let matched = heading_matches(&text);
        let place =
            |matched: HeadingMatch| known.get(matched.id.key().as_str()).map(|phase| (*phase, matched));
        let unknown = names_phase(&text, &matched);
        match matched.into_iter().find_map(place) {
            Some((phase, matched)) => {
                let better = first[phase].is_none_or(|(_, plainly)| matched.plainly && !plainly);
                if better {
                    first[phase] = Some((at, matched.plainly));
                }
                headings.push(Some(Ok((phase, matched))));
            }
            None => headings.push(unknown.map(|id| Err(id.to_string()))),
        }
    }
    let headings = headings.into_iter().enumerate().map(|(at, headings)| match headings {
        None => SectionHeading::Nothing,
        Some(Err(id)) => SectionHeading::UnknownPhase(id),
        Some(Ok((phase, matched))) => match first[phase] {
            Some((first, _)) if first == at => SectionHeading::First(phase, matched.name),
            Some((first, _)) if matched.plainly => SectionHeading::Second(phase, blocks.headings[first].line),
            _ => SectionHeading::Nothing,
        },
    });
    headings.collect()
}

/// The fields of the quote block in these lines.
fn fields(source: &Source<'_>, blocks: &Blocks<'_>, lines: Range<usize>) -> Vec<Field> {
    let mut found: Vec<Field> = Vec::new();
    for line in lines.filter(|line| blocks.kinds[*line] == Kind::Quote) {
        if let Some(field) = field(source, line)
            && !found.iter().any(|other| other.column == field.column)
        {
            found.push(field);
        }
    }
    found
}

/// `> **Depends On**: 1` and `> **Depends On:** 1`.
fn field(source: &Source<'_>, line: usize) -> Option<Field> {
    /// The longest name of a field, in bytes with its markup.
    const NAME_BYTES_MAX: usize = 64;
    let text = source.line(line);
    let colon = text.bytes().take(NAME_BYTES_MAX).position(|byte| byte == b':')?;
    let name = header_name(text[..colon].trim_start_matches([' ', '\t', '>', '-']));
    let column = column(&name).filter(|column| !matches!(column, Column::Phase | Column::Name))?;
    let rest = &text[colon + 1..];
    let behind = rest.trim_start_matches(['*', '_']);
    // Markup that was opened before the name may be closed after the colon; other markup belongs to
    // the value.
    let markup = if text[..colon].matches("**").count() % 2 == 1 { rest.len() - behind.len() } else { 0 };
    let start = source.start(line) + colon + 1 + markup;
    let rest = &rest[markup..];
    let value = rest.trim();
    let left = if value.is_empty() { 0 } else { rest.len() - rest.trim_start().len() };
    Some(Field { column, line, value: start + left..start + left + value.len() })
}
