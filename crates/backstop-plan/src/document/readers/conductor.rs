//! Gemini Conductor's `plan.md`: `## Phase N`, `- [x] Task: … (commit hash)`.

use super::super::draft::{Draft, Entry};
use super::super::format::By;
use super::grouped::{group, passed_over};
use super::markdown::{Head, Markdown};

/// The word that tasks begin with.
const WORD: &str = "task:";

/// The text behind the word.
fn task(text: &str) -> Option<&str> {
    let (word, rest) = text.split_at_checked(WORD.len())?;
    word.eq_ignore_ascii_case(WORD).then(|| rest.trim())
}

pub(super) fn score(document: &Markdown<'_>) -> u32 {
    let with_word =
        document.blocks.checkboxes.iter().filter(|item| task(item.text.trim_matches('*')).is_some()).count();
    if with_word >= 2 && !document.heads.is_empty() { 87 } else { 0 }
}

pub(super) fn read(document: &Markdown<'_>) -> Draft {
    let has_tasks =
        |head: &Head| document.items(head.line..head.end).any(|at| document.item(at).checkbox.is_some());
    let labelled: Vec<&Head> =
        document.heads.iter().filter(|head| head.label.is_some() && has_tasks(head)).collect();
    let heads = match labelled.is_empty() {
        true => document.heads.iter().filter(|head| head.level == 2 && has_tasks(head)).collect(),
        false => labelled,
    };
    let entry = |mut entry: Entry, text: &str| {
        entry.name = without_commit(task(text).unwrap_or(text)).to_owned();
        entry
    };
    let mut draft = Draft {
        groups: heads.iter().map(|head| group(document, head, &entry)).collect(),
        usual: By::Phase,
        renumber: true,
        passed_over: passed_over(document, &heads),
        ..Draft::default()
    };
    for group in &mut draft.groups {
        group.entry.name = without_commit(&group.entry.name).to_owned();
    }
    draft
}

/// The text without the commit that Conductor adds: `(abc1234)`, `[abc1234]`,
/// `[checkpoint: abc1234]`.
fn without_commit(text: &str) -> &str {
    let is_hash = |inner: &str| {
        let hash = inner.trim().trim_start_matches("checkpoint:").trim_start_matches("commit").trim();
        (6..=40).contains(&hash.len()) && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    for (open, close) in [('(', ')'), ('[', ']')] {
        if let Some((before, inner)) =
            text.trim_end().strip_suffix(close).and_then(|text| text.rsplit_once(open))
            && is_hash(inner)
        {
            return before.trim_end();
        }
    }
    text
}
