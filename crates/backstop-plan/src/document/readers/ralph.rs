//! A ralph loop's `prd.json`: `userStories: [{id, title, acceptanceCriteria, priority, passes}]`.
//! The order is that of the priorities.

use super::super::draft::{After, Draft, Entry, Group, Step};
use super::super::format::{By, Format};
use super::super::mark::{Mark, Place};
use super::super::status::Status;
use super::json::{Json, get, list, object};
use backstop_core::json::{Member, Node};

pub(super) fn read(document: &Json<'_>, stories: &[Node]) -> Draft {
    let mut all: Vec<(u64, Group)> = Vec::new();
    for node in stories {
        let Some(members) = object(node) else { continue };
        let priority = document.member(members, "priority").trim().parse().unwrap_or(u64::MAX);
        all.push((priority, Group { entry: story(document, node, members), items: Vec::new() }));
    }
    all.sort_by_key(|(priority, _)| *priority);
    let groups = all.into_iter().map(|(_, group)| group).collect();
    Draft { format: Format::Ralph, groups, usual: By::Task, ..Draft::default() }
}

fn story(document: &Json<'_>, node: &Node, members: &[Member]) -> Entry {
    let text = |key: &str| document.member(members, key);
    let (mut status, mut marks) = (Status::NotStarted, Vec::new());
    if let Some(flag) = get(members, "passes") {
        if document.text(flag) == "true" {
            status = Status::Complete;
        }
        marks.push(Mark { file: 0, place: Place::Flag { range: flag.start..flag.end } });
    }
    let criteria = list(members, "acceptanceCriteria").unwrap_or_default();
    let steps: Vec<Step> = criteria
        .iter()
        .map(|one| Step {
            text: document.text(one),
            done: status == Status::Complete,
            line: document.line(one.start),
            ..Step::default()
        })
        .collect();
    let named = ["dependsOn", "dependencies", "blockedBy"].into_iter().find_map(|key| list(members, key));
    let after = match named {
        Some(list) => After::Named(list.iter().map(|node| (document.text(node), node.start)).collect()),
        None => After::Order,
    };
    let (id, title) = (text("id"), text("title"));
    let mut section = format!("# {id}: {title}\n");
    for value in [text("description"), text("notes")].iter().filter(|value| !value.trim().is_empty()) {
        section.push_str(&format!("\n{}\n", value.trim()));
    }
    if !steps.is_empty() {
        section.push_str("\n## Acceptance criteria\n\n");
        steps.iter().for_each(|step| section.push_str(&format!("- {}\n", step.text)));
    }
    Entry {
        id,
        at: node.start,
        name: title,
        line: document.line(node.start),
        section: section.trim_end().to_owned(),
        after,
        status,
        marks,
        steps,
        ..Entry::default()
    }
}
