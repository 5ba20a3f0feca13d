//! A checklist or a numbered list, with or without headings over its parts.

use super::super::block::ListItem;
use super::super::draft::{Draft, Group};
use super::super::format::By;
use super::super::{label, status};
use super::grouped::{is_about, section_checks};
use super::markdown::{Head, Markdown};

/// What makes an item one of the plan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// A checkbox.
    Boxes,
    /// A sign such as ✅ or ⬜ in place of one.
    Signs,
    /// A number.
    Numbers,
}

impl Wanted {
    /// What counts in a document: the first of which there is enough.
    fn of(document: &Markdown<'_>) -> Self {
        let count = |wanted: Wanted| document.blocks.items.iter().filter(|item| wanted.is(item)).count();
        match () {
            () if !document.blocks.checkboxes.is_empty() => Wanted::Boxes,
            () if count(Wanted::Signs) >= 2 => Wanted::Signs,
            () => Wanted::Numbers,
        }
    }

    fn is(self, item: &ListItem<'_>) -> bool {
        match self {
            Wanted::Boxes => item.checkbox.is_some(),
            Wanted::Signs => item.text.chars().next().and_then(status::picture).is_some(),
            Wanted::Numbers => item.number.is_some() && item.depth == 0,
        }
    }
}

pub(super) fn score(document: &Markdown<'_>) -> u32 {
    let wanted = Wanted::of(document);
    let count = document.blocks.items.iter().filter(|item| wanted.is(item)).count();
    match (wanted, count) {
        (Wanted::Boxes, 2..) => 40,
        (Wanted::Boxes, 1) => 35,
        (Wanted::Signs, _) => 38,
        (Wanted::Numbers, 2..) => 30,
        _ => 0,
    }
}

pub(super) fn read(document: &Markdown<'_>) -> Draft {
    let wanted = Wanted::of(document);
    let mut draft = Draft { renumber: true, ..Draft::default() };
    let mut of_group: Option<Option<usize>> = None;
    let mut about: Vec<&Head> = Vec::new();
    for at in 0..document.blocks.items.len() {
        let item = document.item(at);
        if !wanted.is(item) {
            continue;
        }
        let head = document.head_of(item.line).map(|at| &document.heads[at]);
        if let Some(head) = head.filter(|head| is_about(head)) {
            if about.last().is_none_or(|last| last.line != head.line) {
                about.push(head);
            }
            continue;
        }
        let line = head.map(|head| head.line);
        if of_group != Some(line) {
            of_group = Some(line);
            let mut group = Group::default();
            group.entry.line = item.line;
            if let Some(head) = head.filter(|head| head.level > 1) {
                group.entry = document.entry_of_head(head);
                group.entry.marks.clear();
                group.entry.section = document.text(head.line..head.own_end);
            }
            draft.groups.push(group);
        }
        let Some(group) = draft.groups.last_mut() else { continue };
        // What is nested is a step of the item above it.
        let top = group.items.first().map_or(item.depth, |_| depth_of(document, group));
        if !group.items.is_empty() && item.depth > top {
            continue;
        }
        let limit = head.map_or(document.source.count(), |head| head.own_end);
        let mut entry = document.entry_of_item(at, limit, head);
        if let Some(label) = label::heading(&entry.name) {
            entry.id = label.id;
            // `Part 2` alone is a name, too.
            if !label.name.is_empty() {
                entry.name = label.name;
            }
        } else if let Some(number) = item.number {
            entry.id = number.to_owned();
        }
        group.items.push(entry);
    }
    let named = draft.groups.iter().filter(|group| !group.entry.section.is_empty()).count();
    draft.usual = if named >= 2 { By::Phase } else { By::Task };
    if named < 2 {
        // One list: its items are the plan.
        for group in std::mem::take(&mut draft.groups) {
            draft.groups.extend(group.items.into_iter().map(|entry| Group { entry, items: Vec::new() }));
        }
    }
    let (checks, others) = section_checks(document, &["verification", "validation", "validation commands"]);
    draft.checks = checks;
    draft.passed_over = about.iter().map(|head| (head.line, head.text.clone())).collect();
    draft.passed_over.extend(others);
    draft
}

/// How deep the items of a group are.
fn depth_of(document: &Markdown<'_>, group: &Group) -> usize {
    let line = group.items.first().map_or(0, |entry| entry.line);
    let at = document.items(line..line + 1).start;
    document.item(at).depth
}
