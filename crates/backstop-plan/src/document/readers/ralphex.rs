//! A plan of ralphex: `### Task N: …` or `### Iteration N: …` with checkboxes, and a "Validation
//! Commands" section.

use super::super::draft::Draft;
use super::grouped::{draft, labelled};
use super::markdown::{Head, Markdown};
use super::superpowers::task;

const CHECKS: &[&str] = &["validation commands", "validation"];

/// The headings of tasks.
fn tasks<'m>(document: &'m Markdown<'_>) -> Vec<&'m Head> {
    let is_task = |head: &Head| {
        head.label.as_ref().is_some_and(|label| ["task", "iteration"].contains(&label.word.as_str()))
    };
    labelled(document, &is_task)
}

pub(super) fn score(document: &Markdown<'_>) -> u32 {
    let has_commands =
        document.heads.iter().any(|head| head.text.to_lowercase().starts_with("validation commands"));
    if has_commands && !tasks(document).is_empty() { 89 } else { 0 }
}

pub(super) fn read(document: &Markdown<'_>) -> Draft {
    draft(document, &tasks(document), CHECKS, &|head| task(document, head))
}
