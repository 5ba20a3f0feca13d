//! Task Master's `tasks.json`: tasks by tag, with dependencies, a status and subtasks.

use super::super::draft::{After, Draft, Entry, Group};
use super::super::format::{By, Format};
use super::super::mark::{Mark, Place, Vocabulary};
use super::super::status::Status;
use super::json::{Json, get, list, object};
use backstop_core::json::{Member, Node, Value};

/// What is in review was done and waits for a person: it is not done again.
const STATUSES: Vocabulary = Vocabulary {
    read: &[
        ("pending", Status::NotStarted),
        ("todo", Status::NotStarted),
        ("in-progress", Status::InProgress),
        ("blocked", Status::Blocked),
        ("done", Status::Complete),
        ("completed", Status::Complete),
        ("review", Status::Skipped),
        ("deferred", Status::Skipped),
        ("cancelled", Status::Skipped),
    ],
    written: &[
        (Status::NotStarted, "pending"),
        (Status::InProgress, "in-progress"),
        (Status::Complete, "done"),
        (Status::Skipped, "deferred"),
        (Status::Failed, "pending"),
        (Status::Blocked, "pending"),
    ],
};

/// The tag that is read where there are several.
const TAG: &str = "master";

/// Reads the tasks of an object; nothing where it has none.
pub(super) fn read(document: &Json<'_>, members: &[Member]) -> Option<Draft> {
    let mut passed_over = Vec::new();
    let tasks = match list(members, "tasks") {
        Some(tasks) => tasks,
        None => {
            let tags: Vec<(&Member, &[Node])> = members
                .iter()
                .filter_map(|member| Some((member, list(object(&member.node)?, "tasks")?)))
                .collect();
            let wanted = tags.iter().position(|(tag, _)| tag.key == TAG).unwrap_or(0);
            for (_, (tag, tasks)) in tags.iter().enumerate().filter(|(at, _)| *at != wanted) {
                passed_over
                    .push((document.line(tag.start), format!("tag {}: {} tasks", tag.key, tasks.len())));
            }
            tags.get(wanted)?.1
        }
    };
    let group = |node: &Node| {
        let members = object(node)?;
        let mut group = Group { entry: entry(document, node, members, ""), items: Vec::new() };
        for subtask in list(members, "subtasks").unwrap_or_default() {
            let Some(inner) = object(subtask) else { continue };
            group.items.push(entry(document, subtask, inner, &group.entry.id));
        }
        Some(group)
    };
    Some(Draft {
        format: Format::TaskMaster,
        groups: tasks.iter().filter_map(group).collect(),
        usual: By::Phase,
        passed_over,
        ..Draft::default()
    })
}

/// A task, or a subtask of the task with the id `outer`.
fn entry(document: &Json<'_>, node: &Node, members: &[Member], outer: &str) -> Entry {
    let text = |key: &str| document.member(members, key);
    let own = text("id");
    let id = if outer.is_empty() || own.contains('.') { own } else { format!("{outer}.{own}") };
    let dependency = |node: &Node| {
        let named = document.text(node);
        // A subtask names its neighbours by their numbers alone.
        let named = if outer.is_empty() || named.contains('.') { named } else { format!("{outer}.{named}") };
        (named, node.start)
    };
    let after = list(members, "dependencies").unwrap_or_default().iter().map(dependency).collect();
    let mut marks = Vec::new();
    let mut status = Status::NotStarted;
    if let Some(Node { start, end, value: Value::Text(word) }) = get(members, "status") {
        status = STATUSES.status(word);
        marks.push(Mark { file: 0, place: Place::Word { range: start + 1..end - 1, words: &STATUSES } });
    }
    let title = text("title");
    let mut section = format!("# Task {id}: {title}\n");
    for (heading, key) in [("", "description"), ("Details", "details"), ("Test strategy", "testStrategy")] {
        let value = text(key);
        if !value.trim().is_empty() {
            let heading = if heading.is_empty() { String::new() } else { format!("## {heading}\n\n") };
            section.push_str(&format!("\n{heading}{}\n", value.trim()));
        }
    }
    let priority = text("priority");
    if !priority.is_empty() {
        section.push_str(&format!("\nPriority: {priority}\n"));
    }
    for subtask in list(members, "subtasks").unwrap_or_default().iter().filter_map(object) {
        let of = |key: &str| document.member(subtask, key);
        section.push_str(&format!(
            "\n## {id}.{} {}\n\n{}\n{}\n",
            of("id"),
            of("title"),
            of("description"),
            of("details")
        ));
    }
    Entry {
        id,
        at: node.start,
        name: title,
        line: document.line(node.start),
        section: section.trim_end().to_owned(),
        after: After::Named(after),
        status,
        marks,
        ..Entry::default()
    }
}
