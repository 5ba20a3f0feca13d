//! Headings, a phase each: labelled (`## Phase 1: …`, `## 1. Setup`) with checkboxes below them, or
//! plain ones.

use super::super::draft::{Draft, Entry};
use super::super::inline::plain;
use super::grouped::{draft, group, is_about, labelled};
use super::markdown::{Head, Markdown};

const CHECKS: &[&str] = &["verification", "validation", "validation commands", "testing", "how to verify"];

/// The headings that are phases: labelled ones, else those of the first level that has two which
/// are not about the plan.
fn heads<'m>(document: &'m Markdown<'_>) -> Vec<&'m Head> {
    let found = labelled(document, &|_| true);
    if found.len() > 1 {
        return found;
    }
    for level in 1..=6 {
        let all: Vec<&Head> = document
            .heads
            .iter()
            .filter(|head| head.level == level && !is_about(head) && !is_inside_about(document, head))
            .collect();
        if all.len() >= 2 {
            return all;
        }
    }
    found
}

/// Whether a heading is below one that is about the plan.
fn is_inside_about(document: &Markdown<'_>, head: &Head) -> bool {
    document.heads.iter().any(|outer| {
        outer.level < head.level && (outer.line..outer.end).contains(&head.line) && is_about(outer)
    })
}

pub(super) fn score(document: &Markdown<'_>) -> u32 {
    let has_boxes = !document.blocks.checkboxes.is_empty();
    let found = labelled(document, &|_| true);
    match (found.len(), heads(document).len()) {
        (2.., _) => 65,
        (1, _) if has_boxes && found[0].level > 1 => 45,
        (_, 2..) if !has_boxes && document.heads.iter().all(|head| head.label.is_none()) => 20,
        _ => 0,
    }
}

pub(super) fn read(document: &Markdown<'_>) -> Draft {
    let heads = heads(document);
    let entry = |mut entry: Entry, text: &str| {
        if entry.name.is_empty() {
            entry.name = plain(text);
        }
        entry
    };
    draft(document, &heads, CHECKS, &|head| group(document, head, &entry))
}
