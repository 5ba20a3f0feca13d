//! Groups below headings: which headings begin one, and what is in them. The readers of formats
//! with `## Phase N` or `### Task N` use it.

use super::super::draft::{Draft, Entry, Group};
use super::super::format::By;
use super::super::inline::plain;
use super::super::status::Status;
use super::super::words::ORDER_SECTIONS;
use super::markdown::{Head, Markdown};

/// Sections that say something about a plan and are no part of the work.
const ABOUT: &[&str] = &[
    "overview",
    "goal",
    "goals",
    "objective",
    "objectives",
    "background",
    "context",
    "summary",
    "introduction",
    "notes",
    "note",
    "risks",
    "risk",
    "references",
    "links",
    "success criteria",
    "acceptance criteria",
    "acceptance",
    "testing",
    "testing strategy",
    "test strategy",
    "test plan",
    "verification",
    "validation",
    "validation commands",
    "validation loop",
    "validation checklist",
    "final validation checklist",
    "open questions",
    "questions",
    "out of scope",
    "scope",
    "non-goals",
    "dependencies",
    "prerequisites",
    "architecture",
    "tech stack",
    "timeline",
    "schedule",
    "rollback",
    "rollback plan",
    "appendix",
    "files to modify",
    "files to change",
    "files",
    "critical files",
    "assumptions",
    "constraints",
    "requirements",
    "decision log",
    "decisions",
    "changelog",
    "glossary",
    "format",
    "path conventions",
    "dependencies & execution order",
    "dependencies and execution order",
    "implementation strategy",
    "parallel example",
    "parallel opportunities",
    "parallel execution",
    "progress",
    "estimated effort",
    "conclusion",
    "next steps",
    "definition of done",
    "why",
    "what",
    "how to use",
    "table of contents",
    "current state",
    "problem",
    "problem statement",
    "approach",
    "design",
    "legend",
    "mitigations",
    "alternatives",
    "anti-patterns to avoid",
    "resources",
    "description",
    "global constraints",
    "conventions",
    "kontext",
    "ziel",
    "übersicht",
    "objectif",
    "contexte",
    "objetivo",
    "resumen",
];

/// Whether a heading is about the plan, and no part of the work.
pub(super) fn is_about(head: &Head) -> bool {
    if head.label.is_some() {
        return false;
    }
    let text = head.text.to_lowercase();
    let text = text.trim_matches(|c: char| !c.is_alphanumeric());
    let first = text.split([':', '(']).next().unwrap_or(text).trim();
    [text, first].iter().any(|text| ABOUT.contains(text) || ORDER_SECTIONS.contains(text))
}

/// The headings that begin a group: those of the level that a wanted label is found at first, where
/// there are several; other labels below them are their items.
pub(super) fn labelled<'m>(document: &'m Markdown<'_>, wanted: &dyn Fn(&Head) -> bool) -> Vec<&'m Head> {
    let found: Vec<&Head> =
        document.heads.iter().filter(|head| head.label.is_some() && wanted(head)).collect();
    let mut levels: Vec<usize> = found.iter().map(|head| head.level).collect();
    levels.sort_unstable();
    levels.dedup();
    let at_level = |level: usize| found.iter().filter(|head| head.level == level).count();
    // A title such as `# Phase 2: Login` above `## Step 1` and `## Step 2` is not the only phase.
    let level = levels.iter().copied().find(|level| at_level(*level) >= 2).or(levels.first().copied());
    found.into_iter().filter(|head| Some(head.level) == level).collect()
}

/// A group for a heading: its checkboxes are its items, with what is nested in them; without any,
/// labelled headings below it are.
pub(super) fn group(document: &Markdown<'_>, head: &Head, entry: &dyn Fn(Entry, &str) -> Entry) -> Group {
    let mut group = Group { entry: document.entry_of_head(head), items: Vec::new() };
    let all = document.items(head.line..head.end);
    let boxes: Vec<usize> = all.clone().filter(|at| document.item(*at).checkbox.is_some()).collect();
    if boxes.is_empty() {
        let below = document.heads.iter().filter(|below| {
            (head.line + 1..head.end).contains(&below.line)
                && below.level == head.level + 1
                && below.label.is_some()
        });
        group.items = below.map(|below| document.entry_of_head(below)).collect();
        return group;
    }
    let top = boxes.iter().map(|at| document.item(*at).depth).min().unwrap_or(0);
    for at in boxes.into_iter().filter(|at| document.item(*at).depth == top) {
        let item = document.item(at);
        let limit =
            document.head_of(item.line).map_or(head.end, |of| document.heads[of].own_end.min(head.end));
        let found = document.entry_of_item(at, limit, Some(head));
        group.items.push(entry(found, &plain(item.text)));
    }
    // Its boxes are its marks, unless its heading has one.
    if head.status == Status::Unknown {
        group.entry.marks.clear();
    }
    group
}

/// The headings at the level of these and above that are no group, as what was passed over.
pub(super) fn passed_over(document: &Markdown<'_>, groups: &[&Head]) -> Vec<(usize, String)> {
    let level = groups.iter().map(|head| head.level).min().unwrap_or(1);
    let is_group = |head: &&Head| groups.iter().any(|group| group.line == head.line);
    let holds = |head: &Head| groups.iter().any(|group| (head.line + 1..head.end).contains(&group.line));
    let others = document.heads.iter().filter(|head| head.level <= level && !is_group(head) && !holds(head));
    others.map(|head| (head.line, head.text.clone())).collect()
}

/// A draft with a group for each of these headings, a phase each; the sections with one of the
/// names in `checks` have the commands that check every phase.
pub(super) fn draft(
    document: &Markdown<'_>,
    heads: &[&Head],
    checks: &[&str],
    group: &dyn Fn(&Head) -> Group,
) -> Draft {
    let (checks, others) = section_checks(document, checks);
    let mut draft = Draft {
        groups: heads.iter().map(|head| group(head)).collect(),
        usual: By::Phase,
        renumber: true,
        checks,
        passed_over: passed_over(document, heads),
        ..Draft::default()
    };
    draft.passed_over.extend(others);
    draft
}

/// The commands of the sections with one of these names.
pub(super) fn section_checks(document: &Markdown<'_>, names: &[&str]) -> (Vec<String>, Vec<(usize, String)>) {
    let (mut checks, mut others) = (Vec::new(), Vec::new());
    for head in &document.heads {
        let text = head.text.to_lowercase();
        let is_named = names.iter().any(|name| {
            text == *name || text.starts_with(&format!("{name} ")) || text.starts_with(&format!("{name}:"))
        });
        if is_named {
            let (found, rest) = document.checks(head.line + 1..head.end);
            checks.extend(found);
            others.extend(rest);
        }
    }
    checks.dedup();
    let shown =
        |(line, command): (usize, String)| (line, format!("`{command}` is no check that Backstop knows"));
    (checks, others.into_iter().map(shown).collect())
}

/// The files of a `Files:` list below a heading: the paths in code after Create, Modify and Test.
pub(super) fn files(document: &Markdown<'_>, head: &Head) -> Vec<String> {
    const FILES_MAX: usize = 100;
    let mut files = Vec::new();
    for line in head.line + 1..head.end {
        if document.blocks.kinds[line] != super::super::block::Kind::Item {
            continue;
        }
        let text = document.source.line(line).trim().trim_start_matches(['-', '*', '+', ' ']);
        let word = text.split([':', ' ']).next().unwrap_or_default().to_lowercase();
        let word = word.trim_matches(['*', '_']);
        if !["create", "modify", "test", "update", "edit", "delete", "add"].contains(&word) {
            continue;
        }
        for span in super::super::inline::code_spans(text) {
            let path = text[span].trim_matches('`');
            let path = path.split(':').next().unwrap_or(path).trim();
            let is_path = !path.is_empty()
                && (path.contains('/') || path.contains('.'))
                && !path.contains(char::is_whitespace)
                && !path.starts_with('/')
                && !path.split('/').any(|part| part == "..");
            if is_path && files.len() < FILES_MAX && !files.iter().any(|known| known == path) {
                files.push(path.to_owned());
            }
        }
    }
    files
}
