//! An ExecPlan: long prose with a `## Progress` section of dated checkboxes, and milestones.

use super::super::draft::{Draft, Entry, Group};
use super::super::format::By;
use super::super::label;
use super::grouped::section_checks;
use super::markdown::{Head, Markdown};

fn named<'m>(document: &'m Markdown<'_>, name: &str) -> Option<&'m Head> {
    document.heads.iter().find(|head| head.text.to_lowercase().starts_with(name))
}

fn milestones<'m>(document: &'m Markdown<'_>) -> Vec<&'m Head> {
    let is_milestone = |head: &&Head| head.label.as_ref().is_some_and(|label| label.word == "milestone");
    document.heads.iter().filter(is_milestone).collect()
}

pub(super) fn score(document: &Markdown<'_>) -> u32 {
    let typical = ["decision log", "surprises", "validation and acceptance", "outcomes"];
    let is_typical = typical.iter().filter(|name| named(document, name).is_some()).count();
    if named(document, "progress").is_some() && is_typical >= 1 { 91 } else { 0 }
}

pub(super) fn read(document: &Markdown<'_>) -> Draft {
    let mut draft = Draft { usual: By::Task, renumber: true, ..Draft::default() };
    let milestones = milestones(document);
    if let Some(progress) = named(document, "progress") {
        let boxes =
            document.items(progress.line..progress.end).filter(|at| document.item(*at).checkbox.is_some());
        let top = boxes.clone().map(|at| document.item(at).depth).min().unwrap_or(0);
        for at in boxes.filter(|at| document.item(*at).depth == top) {
            let mut entry = document.entry_of_item(at, progress.end, None);
            entry.name = without_date(&entry.name).to_owned();
            if let Some(milestone) = milestone_of(&milestones, &entry) {
                entry.section =
                    format!("{}\n\n{}", entry.section, document.text(milestone.line..milestone.end));
            }
            draft.groups.push(Group { entry, items: Vec::new() });
        }
    }
    if draft.groups.is_empty() {
        draft.groups = milestones
            .iter()
            .map(|head| Group { entry: document.entry_of_head(head), items: Vec::new() })
            .collect();
    }
    let (checks, others) = section_checks(document, &["validation and acceptance", "validation"]);
    draft.checks = checks;
    let level = |head: &&Head| head.level == 2 && !head.text.to_lowercase().starts_with("progress");
    draft.passed_over =
        document.heads.iter().filter(level).map(|head| (head.line, head.text.clone())).collect();
    draft.passed_over.extend(others);
    draft
}

/// The milestone that an entry names.
fn milestone_of<'m>(milestones: &[&'m Head], entry: &Entry) -> Option<&'m Head> {
    let lower = entry.name.to_lowercase();
    let at = lower.find("milestone")?;
    let label = label::heading(entry.name.get(at..)?)?;
    milestones.iter().copied().find(|head| head.label.as_ref().is_some_and(|known| known.id == label.id))
}

/// The text without the date that it begins with: `(2025-10-01 13:00Z) …`.
fn without_date(text: &str) -> &str {
    let dated = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    match dated {
        Some((date, rest)) if date.starts_with(|c: char| c.is_ascii_digit()) => rest.trim_start(),
        _ => text,
    }
}
