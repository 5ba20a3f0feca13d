//! OpenSpec's `tasks.md`: `## 1. Group`, `- [ ] 1.1 step`.

use super::super::draft::{Draft, Entry};
use super::super::format::By;
use super::super::label;
use super::grouped::{group, passed_over};
use super::markdown::{Head, Markdown};

/// Whether a heading has steps with its number.
fn has_steps(document: &Markdown<'_>, head: &Head) -> bool {
    let Some(of) = &head.label else { return false };
    let prefix = format!("{}.", of.id);
    document.items(head.line..head.end).any(|at| {
        let item = document.item(at);
        item.checkbox.is_some() && label::numeric(item.text).is_some_and(|(id, _)| id.starts_with(&prefix))
    })
}

fn heads<'m>(document: &'m Markdown<'_>) -> Vec<&'m Head> {
    let wanted = |head: &&Head| {
        head.label.as_ref().is_some_and(|label| label.word.is_empty()) && has_steps(document, head)
    };
    document.heads.iter().filter(wanted).collect()
}

pub(super) fn score(document: &Markdown<'_>) -> u32 {
    if heads(document).is_empty() { 0 } else { 85 }
}

pub(super) fn read(document: &Markdown<'_>) -> Draft {
    let heads = heads(document);
    let entry = |mut entry: Entry, text: &str| {
        if let Some((id, name)) = label::numeric(text) {
            (entry.id, entry.name) = (id.to_owned(), name.to_owned());
        }
        entry
    };
    Draft {
        groups: heads.iter().map(|head| group(document, head, &entry)).collect(),
        usual: By::Phase,
        passed_over: passed_over(document, &heads),
        ..Draft::default()
    }
}
