//! A plan of Claude Code's plan mode: `## Phase N: …` or `## Step N`, bullets without checkboxes,
//! "Files to modify", "Verification".

use super::super::draft::Draft;
use super::super::format::By;
use super::grouped::{files, group, labelled, passed_over, section_checks};
use super::markdown::{Head, Markdown};

/// Sections whose commands check the work.
const CHECKS: &[&str] =
    &["verification", "verify", "how to verify", "testing", "validation", "test plan", "verification steps"];

fn is_boxless(document: &Markdown<'_>, head: &Head) -> bool {
    document.items(head.line..head.end).all(|at| document.item(at).checkbox.is_none())
}

pub(super) fn score(document: &Markdown<'_>) -> u32 {
    let heads = labelled(document, &|_| true);
    if heads.is_empty() || !heads.iter().all(|head| is_boxless(document, head)) {
        return 0;
    }
    let is_typical = document.heads.iter().any(|head| {
        let text = head.text.to_lowercase();
        ["verification", "files to", "critical files"].iter().any(|name| text.starts_with(name))
    });
    match (heads.len(), is_typical) {
        (_, true) => 75,
        (1, false) => 0,
        _ => 70,
    }
}

pub(super) fn read(document: &Markdown<'_>) -> Draft {
    let heads = labelled(document, &|_| true);
    let (checks, others) = section_checks(document, CHECKS);
    let mut draft = Draft {
        groups: heads.iter().map(|head| group(document, head, &|entry, _| entry)).collect(),
        usual: By::Phase,
        checks,
        passed_over: passed_over(document, &heads),
        ..Draft::default()
    };
    for (group, head) in draft.groups.iter_mut().zip(&heads) {
        group.entry.files = files(document, head);
    }
    draft.passed_over.extend(others);
    draft
}
