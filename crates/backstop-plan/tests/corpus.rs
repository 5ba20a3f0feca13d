//! Plans as people and models write them, in all formats: each is read as it was meant, and its
//! marks are set in its own way.
//!
//! A file of `corpus/` has many: a line `===== NAME` (with `crlf` at its end for other line ends),
//! the document, for BMAD a line `+++++ NAME.md` before each story, a line `-----` (with `by=task`
//! or `by=phase`), then format and granularity, the gates, and a line for each phase: its id, `x`
//! for done, `s` for skipped, `.` for open, what it waits for (`<`) and what it may run beside
//! (`|`).

#![allow(clippy::unwrap_used)]

use backstop_plan::document::{
    By, Change, Edit, Format, Plan, PlanText, ReadOptions, Status, normalised, parse, read, updated_files,
};
use backstop_work::CommandLine;

struct Case {
    name: String,
    files: Vec<(String, String)>,
    options: ReadOptions,
    want: String,
}

const FILES: &[(&str, &str)] = &[
    ("spec_kit", include_str!("corpus/spec_kit.txt")),
    ("json", include_str!("corpus/json.txt")),
    ("kiro_openspec", include_str!("corpus/kiro_openspec.txt")),
    ("bmad", include_str!("corpus/bmad.txt")),
    ("agents", include_str!("corpus/agents.txt")),
    ("plain", include_str!("corpus/plain.txt")),
    ("tables", include_str!("corpus/tables.txt")),
    ("held_back", include_str!("corpus/held_back.txt")),
    ("many_hands", include_str!("corpus/many_hands.txt")),
];

fn cases() -> Vec<Case> {
    let of = |text: &str| {
        let (head, rest) = text.split_once('\n').unwrap();
        let is_crlf = head.ends_with(" crlf");
        let (document, want) = rest.split_once("\n-----").unwrap();
        let (how, want) = want.split_once('\n').unwrap();
        let mut files = Vec::new();
        for (n, part) in document.split("\n+++++ ").enumerate() {
            let (name, text) = if n == 0 { ("plan", part) } else { part.split_once('\n').unwrap() };
            let text = format!("{text}\n");
            files.push((name.to_owned(), if is_crlf { text.replace('\n', "\r\n") } else { text }));
        }
        let by = how.trim().strip_prefix("by=").and_then(By::from_name);
        let options = ReadOptions { format: None, by };
        Case { name: head.trim_end_matches(" crlf").to_owned(), files, options, want: want.trim().to_owned() }
    };
    FILES.iter().flat_map(|(_, text)| text.split("===== ").skip(1).map(of)).collect()
}

fn texts(files: &[(String, String)]) -> Vec<PlanText<'_>> {
    files.iter().map(|(name, text)| PlanText { name, text: text.as_bytes() }).collect()
}

fn shown(plan: &Plan) -> String {
    let mut lines = vec![format!("{} {}", plan.format.name(), plan.by.name())];
    for gate in plan.phases.first().and_then(|phase| phase.settings.gates.as_ref()).into_iter().flatten() {
        lines.push(format!("gate {}", gate.check.as_ref().map(CommandLine::shown).unwrap_or_default()));
    }
    for phase in &plan.phases {
        let mark = match phase.status {
            Status::Complete => "x",
            Status::Skipped => "s",
            _ => ".",
        };
        let ids =
            |list: &[usize]| list.iter().map(|at| plan.phases[*at].id.shown()).collect::<Vec<_>>().join(",");
        let mut line = format!("{} {mark}", phase.id);
        if !phase.depends_on.is_empty() {
            line.push_str(&format!(" <{}", ids(&phase.depends_on)));
        }
        if !phase.parallel_with.is_empty() {
            line.push_str(&format!(" |{}", ids(&phase.parallel_with)));
        }
        lines.push(line);
    }
    lines.join("\n")
}

#[test]
fn every_plan_is_read_as_it_was_meant() {
    let cases = cases();
    assert!(cases.len() >= 60, "{}", cases.len());
    let mut formats: Vec<Format> = Vec::new();
    let mut wrong = Vec::new();
    for case in &cases {
        let found = match read(&texts(&case.files), &case.options) {
            Ok(plan) => {
                formats.push(plan.format);
                shown(&plan)
            }
            Err(errors) => errors.to_string(),
        };
        if found != case.want {
            wrong.push(format!("== {}\n-- wanted\n{}\n-- found\n{found}", case.name, case.want));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong\n{}", wrong.len(), cases.len(), wrong.join("\n\n"));
    for format in Format::ALL {
        assert!(formats.contains(&format), "no plan is of the format {}", format.name());
    }
}

/// What is left of a text without anything that is a mark.
fn without_marks(text: &str) -> String {
    let mut text = text.replace("true", "").replace("false", "");
    for mark in ["[x]", "[X]", "[✓]", "[~]", "[-]", "[ ]", "[]"] {
        text = text.replace(mark, "[]");
    }
    for word in [
        "ready-for-dev",
        "in-progress",
        "In Progress",
        "pending",
        "todo",
        "completed",
        "backlog",
        "deferred",
        "review",
        "blocked",
        "cancelled",
        "done",
        "Done",
        "Approved",
        "Ready For Dev",
        "true",
        "false",
    ] {
        text = text.replace(&format!("\"{word}\""), "\"\"");
        text = text.replace(&format!(": {word}"), ": ");
    }
    for line in ["Done", "done", "Ready For Dev", "Ready for Review", "In Progress"] {
        text = text.replace(&format!("\n{line}\n"), "\n\n");
    }
    let signs = ['✅', '⬜', '⏭', '\u{fe0f}', '🔄', '❌', '⏸', '⏳', '🚧'];
    let text: String = text.chars().filter(|c| !signs.contains(c)).collect();
    for word in ["Todo", "In Progress", "Not Started", "Complete", "Skipped", "(done)", "open"] {
        // The words of status cells.
        if text.contains('|') {
            return text.replace(word, "").replace("Done", "").replace("done", "").replace(' ', "");
        }
    }
    text.replace("(done)", "").lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[test]
fn marks_are_set_and_taken_away_and_nothing_else_changes() {
    for case in cases() {
        let Ok(plan) = read(&texts(&case.files), &case.options) else { continue };
        let options = ReadOptions { format: Some(plan.format), by: Some(plan.by) };
        let set = |files: &[(String, String)], changes: &[Change]| {
            let mut files = files.to_vec();
            let edits: Vec<Edit> = plan
                .phases
                .iter()
                .flat_map(|phase| {
                    changes.iter().map(|change| Edit { phase: phase.id.clone(), change: change.clone() })
                })
                .collect();
            for (at, text) in updated_files(&texts(&files), &options, &edits).unwrap() {
                files[at].1 = String::from_utf8(text).unwrap();
            }
            files
        };
        let done = set(&case.files, &[Change::TickAll, Change::Status(Status::Complete)]);
        let after = read(&texts(&done), &options).unwrap_or_else(|errors| panic!("{}: {errors}", case.name));
        for (old, new) in plan.phases.iter().zip(&after.phases) {
            let has_mark = new.status != Status::Unknown;
            let is_done = new.status == Status::Complete || new.tasks.iter().all(|task| task.done);
            assert!(is_done, "{} {}: {:?} is marked {has_mark}", case.name, new.id, new.status);
            assert_eq!(old.hash, new.hash, "{} {}: marks change no hash", case.name, new.id);
        }
        let open = set(&done, &[Change::UntickAll, Change::Status(Status::NotStarted)]);
        let again = read(&texts(&open), &options).unwrap();
        for phase in &again.phases {
            assert!(
                !matches!(phase.status, Status::Complete),
                "{} {}: {:?}",
                case.name,
                phase.id,
                phase.status
            );
        }
        // Status cells have many words: `an_edit_changes_nothing_but_marks` holds for tables.
        if plan.format == Format::Backstop {
            continue;
        }
        for ((name, before), (_, now)) in case.files.iter().zip(&open).chain(case.files.iter().zip(&done)) {
            assert_eq!(without_marks(before), without_marks(now), "{} {name}", case.name);
            assert_eq!(before.matches('\r').count(), now.matches('\r').count(), "{}", case.name);
            assert_eq!(before.matches('\n').count(), now.matches('\n').count(), "{}", case.name);
        }
    }
}

#[test]
fn a_normalised_plan_means_the_same() {
    for case in cases() {
        let Ok(plan) = read(&texts(&case.files), &case.options) else { continue };
        let text = normalised(&plan);
        let again = parse(text.as_bytes()).unwrap_or_else(|errors| panic!("{}: {errors}\n{text}", case.name));
        assert_eq!(again.format, Format::Backstop, "{}", case.name);
        let of = |plan: &Plan| shown(plan).split_once('\n').map(|(_, rest)| rest.to_owned());
        assert_eq!(of(&again), of(&plan), "{}\n{text}", case.name);
        let tasks = |plan: &Plan| plan.phases.iter().map(|phase| phase.tasks.len()).collect::<Vec<_>>();
        assert_eq!(tasks(&again), tasks(&plan), "{}", case.name);
    }
}
