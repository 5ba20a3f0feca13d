//! A PRP: context sections, a list of tasks in order (also in a code fence, as `Task 1:` lines),
//! and "Validation Loop" levels with commands. Checkboxes are its success criteria, no tasks.

use super::super::block::Kind;
use super::super::draft::{Draft, Entry, Group};
use super::super::format::By;
use super::super::inline::plain;
use super::super::label;
use super::super::mark::{Mark, Place};
use super::super::status::{self, COLOURED, Status};
use super::grouped::{labelled, section_checks};
use super::markdown::{Head, Markdown};

pub(super) fn score(document: &Markdown<'_>) -> u32 {
    let has = |name: &str| document.heads.iter().any(|head| head.text.to_lowercase().contains(name));
    if has("validation loop") && (has("task") || has("blueprint")) { 86 } else { 0 }
}

pub(super) fn read(document: &Markdown<'_>) -> Draft {
    let list = |head: &&Head| {
        let text = head.text.to_lowercase();
        text.contains("task") && head.label.is_none()
    };
    let place = document
        .heads
        .iter()
        .find(list)
        .or_else(|| document.heads.iter().find(|head| head.text.to_lowercase().contains("blueprint")));
    let mut draft = Draft { usual: By::Task, renumber: true, ..Draft::default() };
    if let Some(head) = place {
        draft.groups = lines(document, head);
        if draft.groups.is_empty() {
            let inside = |one: &Head| (head.line + 1..head.end).contains(&one.line);
            let heads = labelled(document, &inside);
            draft.groups = heads
                .iter()
                .map(|head| Group { entry: document.entry_of_head(head), items: Vec::new() })
                .collect();
        }
        if draft.groups.is_empty() {
            draft.groups = numbered(document, head);
        }
    }
    let (checks, others) = section_checks(document, &["validation loop", "level"]);
    draft.checks = checks;
    draft.checks.dedup();
    let is_other = |head: &&Head| {
        head.level == 2
            && place.is_none_or(|place| !(head.line..head.end).contains(&place.line))
            && !head.text.to_lowercase().contains("validation loop")
    };
    draft.passed_over =
        document.heads.iter().filter(is_other).map(|head| (head.line, head.text.clone())).collect();
    draft.passed_over.extend(others);
    draft
}

/// `Task 1: …` lines in this section, in code or in prose, each with what follows up to the next.
fn lines(document: &Markdown<'_>, head: &Head) -> Vec<Group> {
    let mut starts: Vec<(usize, label::Label)> = Vec::new();
    for line in head.line + 1..head.end {
        if !matches!(document.blocks.kinds[line], Kind::Code | Kind::Text) {
            continue;
        }
        let text = document.source.line(line);
        if text.starts_with([' ', '\t']) {
            continue;
        }
        let found = label::heading(&plain(text.trim_end_matches(COLOURED).trim_end_matches('✅')));
        if let Some(found) = found.filter(|label| label.word == "task" && label.id != "N") {
            starts.push((line, found));
        }
    }
    let ends = |at: usize| starts.get(at + 1).map_or(head.end, |(line, _)| *line);
    let group = |(at, (line, label)): (usize, &(usize, label::Label))| {
        // The fence that the list is in belongs to no task.
        let end =
            (line + 1..ends(at)).find(|line| document.blocks.kinds[*line] == Kind::Fence).unwrap_or(ends(at));
        let section = document.text(*line..end);
        let range = document.source.range(*line);
        let text = document.source.line(*line).trim_end();
        let at = range.start + text.len();
        let is_done = text.trim_end_matches(COLOURED).chars().next_back().and_then(status::picture);
        let there = is_done.map(|_| {
            let bare = text.trim_end_matches(COLOURED);
            let last = bare.chars().next_back().map_or(0, char::len_utf8);
            range.start + bare.len() - last..at
        });
        let first = section
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty() && !line.to_lowercase().starts_with("task "));
        let name =
            if label.name.is_empty() { first.unwrap_or_default().to_owned() } else { label.name.clone() };
        let entry = Entry {
            id: label.id.clone(),
            at: range.start,
            name,
            line: *line,
            section,
            status: is_done.unwrap_or(Status::Unknown),
            marks: vec![Mark { file: 0, place: Place::Sign { at, there } }],
            ..Entry::default()
        };
        Group { entry, items: Vec::new() }
    };
    starts.iter().enumerate().map(group).collect()
}

/// The numbered items of this section.
fn numbered(document: &Markdown<'_>, head: &Head) -> Vec<Group> {
    let items = document.items(head.line..head.end);
    let wanted = items.filter(|at| document.item(*at).number.is_some() && document.item(*at).depth == 0);
    let group = |at: usize| {
        let mut entry = document.entry_of_item(at, head.end, Some(head));
        entry.id = document.item(at).number.unwrap_or_default().to_owned();
        Group { entry, items: Vec::new() }
    };
    wanted.map(group).collect()
}
