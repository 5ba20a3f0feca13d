//! BMAD: a story with its status, acceptance criteria and tasks; several stories and their
//! `sprint-status.yaml` are one plan.

use super::super::draft::{Draft, Entry, Group, Step};
use super::super::error::{PlanError, PlanErrorKind};
use super::super::format::{By, Format};
use super::super::inline::plain;
use super::super::mark::{Mark, Place, Vocabulary};
use super::super::source::Source;
use super::super::status::Status;
use super::PlanText;
use super::markdown::{Head, Markdown};
use std::ops::Range;

/// The key of the stories' states in `sprint-status.yaml`.
const STATES: &str = "development_status:";

/// What is in review was done and waits for a person: it is not done again.
const STATUSES: Vocabulary = Vocabulary {
    read: &[
        ("backlog", Status::NotStarted),
        ("draft", Status::NotStarted),
        ("drafted", Status::NotStarted),
        ("approved", Status::NotStarted),
        ("todo", Status::NotStarted),
        ("contexted", Status::NotStarted),
        ("ready-for-dev", Status::NotStarted),
        ("ready-for-development", Status::NotStarted),
        ("ready", Status::NotStarted),
        ("in-progress", Status::InProgress),
        ("inprogress", Status::InProgress),
        ("review", Status::Skipped),
        ("ready-for-review", Status::Skipped),
        ("ready-for-done", Status::Skipped),
        ("done", Status::Complete),
        ("complete", Status::Complete),
        ("completed", Status::Complete),
    ],
    written: &[
        (Status::NotStarted, "ready-for-dev"),
        (Status::InProgress, "in-progress"),
        (Status::Complete, "done"),
    ],
};

/// Whether a text is a `sprint-status.yaml`.
pub(super) fn is_sprint(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.lines().any(|line| line.trim_end() == STATES))
}

fn named<'m>(document: &'m Markdown<'_>, name: &str) -> Option<&'m Head> {
    document.heads.iter().find(|head| head.text.to_lowercase().starts_with(name))
}

pub(super) fn score(document: &Markdown<'_>) -> u32 {
    let is_story =
        document.heads.iter().any(|head| head.level == 1 && head.text.to_lowercase().starts_with("story"));
    let has = |name: &str| named(document, name).is_some();
    if has("acceptance criteria")
        && (has("tasks / subtasks") || has("tasks/subtasks") || (is_story && has("tasks")))
    {
        92
    } else {
        0
    }
}

/// Reads one story.
pub(super) fn read_story(document: &Markdown<'_>) -> Draft {
    let group = story(document, 0);
    let known = ["status", "story", "acceptance criteria", "tasks"];
    let is_other = |head: &&Head| {
        let text = head.text.to_lowercase();
        head.level == 2 && !known.iter().any(|name| text.starts_with(name))
    };
    let passed_over =
        document.heads.iter().filter(is_other).map(|head| (head.line, head.text.clone())).collect();
    Draft {
        format: Format::Bmad,
        groups: vec![group],
        usual: By::Phase,
        passed_over,
        renumber: true,
        ..Draft::default()
    }
}

/// A story as a group: its tasks are its items, its acceptance criteria are checked off by the
/// agent.
fn story(document: &Markdown<'_>, file: usize) -> Group {
    let title = document.heads.iter().find(|head| head.level == 1);
    let mut entry = Entry {
        section: document.text(0..document.source.count()),
        line: title.map_or(0, |head| head.line),
        ..Entry::default()
    };
    if let Some(label) = title.and_then(|head| head.label.as_ref()) {
        (entry.id, entry.name) = (label.id.clone(), label.name.clone());
    } else if let Some(title) = title {
        entry.name = title.text.clone();
    }
    if let Some(range) = status_word(document) {
        let word = &document.source.text()[range.clone()];
        entry.status = STATUSES.status(word);
        entry.marks.push(Mark { file, place: Place::Word { range: range.clone(), words: &STATUSES } });
        // The status is a mark, and no part of what is to be done.
        let line = document.source.position(range.start).0 - 1;
        entry.section =
            format!("{}\n{}", document.text(0..line), document.text(line + 1..document.source.count()));
    }
    let criteria = criteria(document);
    let mut items = Vec::new();
    if let Some(tasks) = named(document, "tasks") {
        let boxes: Vec<usize> = document
            .items(tasks.line..tasks.end)
            .filter(|at| document.item(*at).checkbox.is_some())
            .collect();
        let top = boxes.iter().map(|at| document.item(*at).depth).min().unwrap_or(0);
        for at in boxes.into_iter().filter(|at| document.item(*at).depth == top) {
            let mut item = document.entry_of_item(at, tasks.end, title);
            for mark in
                item.marks.iter_mut().chain(item.steps.iter_mut().filter_map(|step| step.mark.as_mut()))
            {
                mark.file = file;
            }
            let wanted = criteria_of(&item.name);
            for (number, step) in criteria.iter().filter(|(number, _)| wanted.contains(number)) {
                item.section.push_str(&format!("\n\nAcceptance criterion {number}: {}", step.text));
            }
            items.push(item);
        }
    }
    entry.steps = criteria.into_iter().map(|(_, step)| step).collect();
    Group { entry, items }
}

/// The byte range of the word in `Status: done`, or below a heading `Status`.
fn status_word(document: &Markdown<'_>) -> Option<Range<usize>> {
    if let Some(head) = named(document, "status") {
        let line =
            (head.line + 1..head.own_end).find(|line| !document.source.line(*line).trim().is_empty())?;
        let text = document.source.line(line);
        let word = text.trim().trim_matches(['*', '_', '`']);
        let at = text.find(word)?;
        let from = document.source.start(line) + at;
        return Some(from..from + word.len());
    }
    let (value, at) = document.field(0..document.source.count().min(40), &["status"])?;
    let word = value.trim_end_matches(['*', '_', '`']).trim_end();
    Some(at..at + word.len())
}

/// The acceptance criteria with their numbers.
fn criteria(document: &Markdown<'_>) -> Vec<(usize, Step)> {
    let Some(head) = named(document, "acceptance criteria") else { return Vec::new() };
    let items = document.items(head.line..head.end).filter(|at| document.item(*at).depth == 0);
    let criterion = |(n, at): (usize, usize)| {
        let item = document.item(at);
        let number = item.number.and_then(|number| number.parse().ok()).unwrap_or(n + 1);
        let text = format!("acceptance criterion {number}: {}", plain(item.text));
        (number, Step { text, line: item.line, ..Step::default() })
    };
    items.enumerate().map(criterion).collect()
}

/// The numbers in `(AC: #1, #2)`.
fn criteria_of(text: &str) -> Vec<usize> {
    let Some((_, rest)) = text.split_once("(AC") else { return Vec::new() };
    let inner = rest.split(')').next().unwrap_or_default();
    inner.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

/// Reads the stories that a `sprint-status.yaml` lists, in its order. The first text is that file.
pub(super) fn read_sprint(texts: &[PlanText<'_>]) -> Result<Draft, Vec<PlanError>> {
    let mut draft = Draft { format: Format::Bmad, usual: By::Phase, renumber: true, ..Draft::default() };
    let Some(first) = texts.first() else { return Ok(draft) };
    let source = Source::new(first.text).map_err(|error| vec![error])?;
    for (line, key, range) in states(&source) {
        let word = &source.text()[range.clone()];
        let mark = Mark { file: 0, place: Place::Word { range, words: &STATUSES } };
        let Some((id, slug)) = story_key(key) else {
            draft.passed_over.push((line, format!("{key} is no story")));
            continue;
        };
        let status = STATUSES.status(word);
        let file = texts.iter().skip(1).position(|text| is_story_file(text.name, key, &id)).map(|at| at + 1);
        let mut group = match file {
            Some(file) => {
                let document = Markdown::read(texts[file].text, file).map_err(|error| vec![error])?;
                story(&document, file)
            }
            None if matches!(status, Status::Complete | Status::Skipped) => Group::default(),
            None => {
                draft.passed_over.push((line, format!("{key} has no story file yet")));
                continue;
            }
        };
        group.entry.id = id;
        if group.entry.name.is_empty() {
            group.entry.name = slug.replace('-', " ");
        }
        if group.entry.section.is_empty() {
            group.entry.section = format!("Story {key}, which has no file here.");
        }
        group.entry.at = source.start(line);
        group.entry.line = line;
        group.entry.status = status;
        group.entry.marks.insert(0, mark);
        draft.groups.push(group);
    }
    if draft.groups.is_empty() {
        let expected =
            "lines such as `1-1-login: ready-for-dev` below `development_status:`, and their story files";
        let kind = PlanErrorKind::NotFormat { format: Format::Bmad.name(), expected };
        return Err(vec![PlanError::at(1, 1, kind)]);
    }
    Ok(draft)
}

/// The keys below `development_status:` with the byte ranges of their states.
fn states<'t>(source: &Source<'t>) -> Vec<(usize, &'t str, Range<usize>)> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in 0..source.count() {
        let text = source.line(line);
        if text.trim_end() == STATES {
            inside = true;
            continue;
        }
        let trimmed = text.trim();
        if !inside || trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if !text.starts_with([' ', '\t']) {
            inside = false;
            continue;
        }
        let Some((key, value)) = text.split_once(':') else { continue };
        let word = value.split(" #").next().unwrap_or(value).trim().trim_matches(['"', '\'']);
        let Some(at) = text[key.len()..].find(word).filter(|_| !word.is_empty()) else { continue };
        let from = source.start(line) + key.len() + at;
        found.push((line, key.trim().trim_matches(['"', '\'']), from..from + word.len()));
    }
    found
}

/// The id and the name of a story's key: `1-2-user-login` is 1.2.
fn story_key(key: &str) -> Option<(String, &str)> {
    let mut parts = key.splitn(3, '-');
    let (epic, story) = (parts.next()?, parts.next()?);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(epic) && is_number(story))
        .then(|| (format!("{epic}.{story}"), parts.next().unwrap_or_default()))
}

/// Whether a file is the story of a key.
pub(crate) fn is_story_file(name: &str, key: &str, id: &str) -> bool {
    let stem = name.strip_suffix(".md").unwrap_or(name).trim_end_matches(".story");
    let stem = stem.strip_prefix("story-").unwrap_or(stem);
    stem == key || stem == id || stem.starts_with(&format!("{id}."))
}

/// The keys of stories with their ids, and the folder that the file names for them.
pub(super) fn stories(text: &[u8]) -> Option<super::StoryList> {
    if !is_sprint(text) {
        return None;
    }
    let source = Source::new(text).ok()?;
    let keys =
        states(&source).into_iter().filter_map(|(_, key, _)| Some((key.to_owned(), story_key(key)?.0)));
    let place = source.text().lines().find_map(|line| line.strip_prefix("story_location:"));
    let place = place.map(|place| place.trim().trim_matches(['"', '\'']).to_owned());
    Some((place.filter(|place| !place.is_empty()), keys.collect()))
}
