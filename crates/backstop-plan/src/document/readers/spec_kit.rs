//! GitHub Spec Kit's `tasks.md`: `## Phase N: Name`, then `- [ ] T012 [P] [US1] description`.

use super::super::draft::{After, Draft, Group};
use super::super::format::By;
use super::super::inline::plain;
use super::super::label;
use super::super::words::WAITS;
use super::grouped::passed_over;
use super::markdown::{Head, Markdown};

/// The letter that ids begin with.
const PREFIX: &str = "T";
pub(super) fn score(document: &Markdown<'_>) -> u32 {
    let with_id =
        document.blocks.checkboxes.iter().filter(|item| label::code(item.text, PREFIX).is_some()).count();
    if with_id >= 2 || (with_id == 1 && document.blocks.checkboxes.len() == 1) { 95 } else { 0 }
}

pub(super) fn read(document: &Markdown<'_>) -> Draft {
    let mut draft = Draft { usual: By::Task, ..Draft::default() };
    let mut heads: Vec<&Head> = Vec::new();
    let mut of_group: Option<usize> = None;
    for at in 0..document.blocks.items.len() {
        let item = document.item(at);
        let Some((id, rest)) = item.checkbox.and_then(|_| label::code(item.text, PREFIX)) else { continue };
        let head = group_head(document, item.line);
        let line = head.map(|head| head.line);
        if draft.groups.is_empty() || of_group != line {
            of_group = line;
            let mut group = Group::default();
            if let Some(head) = head {
                heads.push(head);
                group.entry = document.entry_of_head(head);
                group.entry.marks.clear();
            } else {
                group.entry.line = item.line;
                group.entry.name = "Tasks".to_owned();
            }
            draft.groups.push(group);
        }
        let limit =
            document.head_of(item.line).map_or(document.source.count(), |of| document.heads[of].own_end);
        let mut entry = document.entry_of_item(at, limit, head);
        let (text, labels) = bracketed(rest);
        entry.id = id.to_owned();
        entry.beside = labels.iter().any(|label| label.eq_ignore_ascii_case("P"));
        entry.name = plain(text);
        if let Some(named) = waits_for(item.text) {
            let place = |named: &str| document.place(named);
            entry.after = After::Named(named.into_iter().map(|id| (id.to_owned(), place(id))).collect());
        }
        if let Some(group) = draft.groups.last_mut() {
            group.items.push(entry);
        }
    }
    draft.passed_over = passed_over(document, &heads);
    draft
}

/// The heading of the group that a line is in: the outermost one that is labelled, else of level 2.
fn group_head<'m>(document: &'m Markdown<'_>, line: usize) -> Option<&'m Head> {
    let around =
        || document.heads.iter().filter(move |head| (head.line..head.end).contains(&line) && head.level >= 2);
    around().find(|head| head.label.is_some()).or_else(|| around().next())
}

/// The text behind labels in brackets, and the labels.
fn bracketed(text: &str) -> (&str, Vec<&str>) {
    let (mut rest, mut labels) = (text.trim_start(), Vec::new());
    while let Some((label, behind)) = rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        if behind.starts_with('(') {
            break;
        }
        labels.push(label.trim());
        rest = behind.trim_start();
    }
    (rest, labels)
}

/// The ids that a task says it waits for.
fn waits_for(text: &str) -> Option<Vec<&str>> {
    let lower = text.to_ascii_lowercase();
    let mut named = Vec::new();
    for word in WAITS {
        for (at, _) in lower.match_indices(word) {
            let part = &text[at + word.len()..];
            let part = &part[..part.find([')', ';']).unwrap_or(part.len())];
            // Prose after the word names nobody.
            let first = part.trim_start().trim_start_matches([':', '*', '_', '`', ' ']);
            if label::code(first, PREFIX).is_none() {
                continue;
            }
            named.push(part.trim_matches([' ', ':', '.']));
        }
    }
    (!named.is_empty()).then_some(named)
}
