//! A plan of ralphex: `### Task N: …` with checkboxes, and a "Validation Commands" section.

use super::super::draft::Draft;
use super::grouped::draft;
use super::markdown::Markdown;
use super::superpowers::{task, tasks};

const CHECKS: &[&str] = &["validation commands", "validation"];

pub(super) fn score(document: &Markdown<'_>) -> u32 {
    let has_commands =
        document.heads.iter().any(|head| head.text.to_lowercase().starts_with("validation commands"));
    if has_commands && !tasks(document).is_empty() { 89 } else { 0 }
}

pub(super) fn read(document: &Markdown<'_>) -> Draft {
    draft(document, &tasks(document), CHECKS, &|head| task(document, head))
}
