//! Kiro's `tasks.md`: `- [ ] 1. Title` with `- [ ] 1.1 …` below it, nested or flat. `- [ ]*` is
//! optional, and not done unless somebody asks for it; `- [-]` is in progress.

use super::super::draft::{Draft, Group};
use super::super::format::By;
use super::super::inline::plain;
use super::super::label;
use super::super::status::Status;
use super::markdown::Markdown;
use std::collections::HashMap;

pub(super) fn score(document: &Markdown<'_>) -> u32 {
    let boxes = &document.blocks.checkboxes;
    let with_id = boxes.iter().filter(|item| label::numeric(item.text).is_some()).count();
    if with_id >= 2 && with_id * 2 >= boxes.len() { 80 } else { 0 }
}

pub(super) fn read(document: &Markdown<'_>) -> Draft {
    let mut draft = Draft { usual: By::Phase, ..Draft::default() };
    let mut by_id: HashMap<String, usize> = HashMap::new();
    for at in 0..document.blocks.items.len() {
        let item = document.item(at);
        let Some((id, rest)) = item.checkbox.and_then(|_| label::numeric(item.text)) else { continue };
        let limit =
            document.head_of(item.line).map_or(document.source.count(), |of| document.heads[of].own_end);
        let mut entry = document.entry_of_item(at, limit, None);
        entry.id = id.to_owned();
        if item.checkbox.is_some_and(|checkbox| document.blocks.checkboxes[checkbox as usize].is_hyphen) {
            entry.status = Status::InProgress;
        }
        let name = plain(rest);
        entry.beside = entry.beside || name.starts_with("[P]");
        entry.name = name.trim_start_matches("[P]").trim().to_owned();
        // Numbered boxes below it are tasks of their own.
        entry.steps.retain(|step| label::numeric(&step.text).is_none());
        let outer = id.split('.').next().unwrap_or(id);
        let is_inner = id.contains('.') && !id.ends_with(".0");
        match by_id.get(outer).copied().filter(|_| is_inner) {
            Some(group) => draft.groups[group].items.push(entry),
            None => {
                by_id.entry(outer.to_owned()).or_insert(draft.groups.len());
                draft.groups.push(Group { entry, items: Vec::new() });
            }
        }
    }
    draft
}
