//! A plan of superpowers: `### Task N: Name`, a "Files:" list (Create, Modify, Test), steps as
//! checkboxes or in bold.

use super::super::draft::{Draft, Entry, Group};
use super::super::inline::plain;
use super::grouped::{draft, files, group, labelled};
use super::markdown::{Head, Markdown};

/// The headings of tasks.
fn tasks<'m>(document: &'m Markdown<'_>) -> Vec<&'m Head> {
    labelled(document, &|head| head.label.as_ref().is_some_and(|label| label.word == "task"))
}

pub(super) fn score(document: &Markdown<'_>) -> u32 {
    let tasks = tasks(document);
    let is_typical = |head: &&&Head| {
        let has_files = document.field(head.line + 1..head.end, &["files", "interfaces"]).is_some();
        let has_steps = document.items(head.line..head.end).any(|at| {
            let item = document.item(at);
            item.checkbox.is_some() && plain(item.text).starts_with("Step ")
        });
        has_files || has_steps
    };
    if tasks.iter().filter(is_typical).count() * 2 >= tasks.len().max(1) { 88 } else { 0 }
}

pub(super) fn read(document: &Markdown<'_>) -> Draft {
    draft(document, &tasks(document), &[], &|head| task(document, head))
}

/// A task with its steps and files.
pub(super) fn task(document: &Markdown<'_>, head: &Head) -> Group {
    let entry = |mut entry: Entry, text: &str| {
        entry.name = plain(text);
        entry
    };
    let mut group = group(document, head, &entry);
    group.entry.files = files(document, head);
    group
}
