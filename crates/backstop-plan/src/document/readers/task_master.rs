//! Task Master's `tasks.json`: tasks by tag, with dependencies, a status and subtasks. Other JSON
//! with a list of tasks, steps or phases is read in the same way.

use super::super::draft::{After, Draft, Entry, Group, Step};
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
        ("not-started", Status::NotStarted),
        ("open", Status::NotStarted),
        ("in-progress", Status::InProgress),
        ("blocked", Status::Blocked),
        ("done", Status::Complete),
        ("completed", Status::Complete),
        ("complete", Status::Complete),
        ("finished", Status::Complete),
        ("skipped", Status::Skipped),
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

/// The keys of a list of tasks.
const LISTS: &[&str] = &["tasks", "phases", "steps", "stories"];
/// The keys of what a task waits for.
const DEPENDS: &[&str] = &[
    "dependencies",
    "depends_on",
    "dependsOn",
    "dependencies_on",
    "deps",
    "needs",
    "after",
    "blockedBy",
    "blocked_by",
    "requires",
];

/// The tag that is read where there are several.
const TAG: &str = "master";

/// The list of tasks of an object.
fn tasks_of(members: &[Member]) -> Option<&[Node]> {
    let found = LISTS.iter().find_map(|key| list(members, key))?;
    (found.is_empty() || found.iter().any(|node| object(node).is_some())).then_some(found)
}

/// Reads the tasks of an object; nothing where it has none.
pub(super) fn read(document: &Json<'_>, members: &[Member]) -> Option<Draft> {
    let mut passed_over = Vec::new();
    let tasks = match tasks_of(members) {
        Some(tasks) => tasks,
        None => {
            let tags: Vec<(&Member, &[Node])> = members
                .iter()
                .filter_map(|member| Some((member, tasks_of(object(&member.node)?)?)))
                .collect();
            let wanted = tags.iter().position(|(tag, _)| tag.key == TAG).unwrap_or(0);
            for (_, (tag, tasks)) in tags.iter().enumerate().filter(|(at, _)| *at != wanted) {
                passed_over
                    .push((document.line(tag.start), format!("tag {}: {} tasks", tag.key, tasks.len())));
            }
            tags.get(wanted)?.1
        }
    };
    Some(Draft { passed_over, ..read_tasks(document, tasks) })
}

/// Reads a list of tasks. Where none of them says what it waits for, order is order.
pub(super) fn read_tasks(document: &Json<'_>, tasks: &[Node]) -> Draft {
    let says = |node: &Node| {
        object(node).is_some_and(|members| DEPENDS.iter().any(|key| get(members, key).is_some()))
    };
    let is_ordered = !tasks.iter().any(says);
    let group = |node: &Node| {
        let members = object(node)?;
        let mut group = Group { entry: entry(document, node, members, ""), items: Vec::new() };
        if is_ordered {
            group.entry.after = After::Order;
        }
        for inner in ["subtasks", "tasks", "steps"].iter().filter_map(|key| list(members, key)).flatten() {
            match object(inner) {
                Some(members) => group.items.push(entry(document, inner, members, &group.entry.id)),
                None => group.entry.steps.push(Step {
                    text: document.text(inner),
                    done: group.entry.is_done(),
                    line: document.line(inner.start),
                    ..Step::default()
                }),
            }
        }
        Some(group)
    };
    Draft {
        format: Format::TaskMaster,
        groups: tasks.iter().filter_map(group).collect(),
        usual: By::Phase,
        ..Draft::default()
    }
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
    let named = DEPENDS.iter().find_map(|key| get(members, key));
    let after = match named.map(|node| (node, &node.value)) {
        Some((_, Value::Array(list))) => list.iter().map(dependency).collect(),
        Some((node, _)) if document.text(node) != "null" => vec![dependency(node)],
        _ => Vec::new(),
    };
    let mut marks = Vec::new();
    let mut status = Status::NotStarted;
    if let Some(Node { start, end, value: Value::Text(word) }) = get(members, "status") {
        status = STATUSES.status(word);
        marks.push(Mark { file: 0, place: Place::Word { range: start + 1..end - 1, words: &STATUSES } });
    } else if let Some(flag) = ["done", "completed", "passes"].iter().find_map(|key| get(members, key))
        && matches!(document.text(flag).as_str(), "true" | "false")
    {
        if document.text(flag) == "true" {
            status = Status::Complete;
        }
        marks.push(Mark { file: 0, place: Place::Flag { range: flag.start..flag.end } });
    }
    let title =
        ["title", "name", "task", "summary"].iter().map(|key| text(key)).find(|text| !text.is_empty());
    let title = title.unwrap_or_default();
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
    for step in ["tasks", "steps"].iter().filter_map(|key| list(members, key)).flatten() {
        if object(step).is_none() {
            section.push_str(&format!("\n- {}", document.text(step)));
        }
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
