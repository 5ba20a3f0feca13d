//! Marks of every format: setting them gives exactly the document that its author would have
//! written with those marks, whatever its names and line ends are.

use backstop_plan::document::{
    By, Change, Edit, Format, MarkIndex, PlanText, ReadOptions, Status, read, updated_files,
};
use proptest::prelude::*;

/// A document of a format with these tasks, done or not, and how it is read.
fn document(format: Format, tasks: &[(String, bool)], end: &str) -> (String, By) {
    let x = |done: bool| if done { "x" } else { " " };
    let sign = |done: bool| if done { " ✅" } else { "" };
    let each = |line: &dyn Fn(usize, &str, bool) -> String| -> String {
        tasks.iter().enumerate().map(|(n, (name, done))| line(n + 1, name, *done)).collect()
    };
    let (text, by) = match format {
        Format::Backstop => {
            let cell = |done: bool| if done { "✅" } else { "⬜" };
            let rows = each(&|n, name, done| format!("| {n} | {name} | {} |\n", cell(done)));
            (format!("| Phase | Name | Status |\n|--|--|--|\n{rows}"), By::Phase)
        }
        Format::SpecKit => {
            let rows = each(&|n, name, done| format!("- [{}] T{n:03} [P] {name}\n", x(done)));
            (format!("# Tasks\n\n## Phase 1: A\n\n{rows}"), By::Task)
        }
        Format::TaskMaster => {
            let status = |done: bool| if done { "done" } else { "pending" };
            let rows: Vec<String> = tasks
                .iter()
                .enumerate()
                .map(|(n, (name, done))| {
                    format!(
                        "  {{ \"id\": {},\t\"title\": \"{name}\", \"status\" : \"{}\" }}",
                        n + 1,
                        status(*done)
                    )
                })
                .collect();
            (format!("{{ \"master\": {{\"tasks\" : [\n{}\n]}} }}\n", rows.join(",\n")), By::Phase)
        }
        Format::Kiro => (
            each(&|n, name, done| format!("- [{}] {n}. {name}\n  - _Requirements: 1.1_\n", x(done))),
            By::Phase,
        ),
        Format::Openspec => (
            format!("## 1. G\n{}", each(&|n, name, done| format!("- [{}] 1.{n} {name}\n", x(done)))),
            By::Task,
        ),
        Format::Bmad => {
            let rows = each(&|_, name, done| format!("- [{}] {name}\n", x(done)));
            let head = "# Story 1.1: S\n\n## Acceptance Criteria\n\n1. a\n\n## Tasks / Subtasks\n\n";
            (format!("{head}{rows}"), By::Task)
        }
        Format::Claude => {
            let rows = each(&|n, name, done| format!("## Step {n}: {name}{}\n\n- do it\n\n", sign(done)));
            (format!("# P\n\n{rows}## Verification\n\nLook.\n"), By::Phase)
        }
        Format::Execplan => {
            let rows = each(&|_, name, done| format!("- [{}] (2025-01-01 10:00Z) {name}\n", x(done)));
            (format!("# P\n\n## Progress\n\n{rows}\n## Decision Log\n\nnone\n"), By::Task)
        }
        Format::Superpowers => {
            let rows = each(&|n, name, done| {
                format!(
                    "### Task {n}: {name}\n\n**Files:**\n- Create: `a.rs`\n\n- [{}] **Step 1: t**\n\n",
                    x(done)
                )
            });
            (format!("# P\n\n{rows}"), By::Phase)
        }
        Format::Prp => {
            let rows = each(&|n, name, done| format!("{n}. {name}{}\n", sign(done)));
            (format!("# P\n\n## Tasks\n\n{rows}\n## Validation Loop\n\nnone\n"), By::Task)
        }
        Format::Ralphex => {
            let rows = each(&|n, name, done| format!("### Task {n}: {name}\n- [{}] t\n\n", x(done)));
            (format!("# P\n\n## Validation Commands\n- `cargo test`\n\n{rows}"), By::Phase)
        }
        Format::Conductor => {
            let rows = each(&|_, name, done| format!("- [{}] Task: {name}\n", x(done)));
            (format!("# P\n\n## Phase 1\n{rows}- [ ] Task: last\n"), By::Task)
        }
        Format::Ralph => {
            let rows: Vec<String> = tasks
                .iter()
                .enumerate()
                .map(|(n, (name, done))| {
                    format!("{{\"id\":\"US-{:03}\",\"title\":\"{name}\",\"passes\": {done}}}", n + 1)
                })
                .collect();
            (format!("{{\n\t\"userStories\": [{}]\n}}", rows.join(", ")), By::Task)
        }
        Format::List => (each(&|_, name, done| format!("* [{}] {name}\n", x(done))), By::Task),
        Format::Headings => {
            let rows = each(&|n, name, done| format!("## Phase {n}: {name}\n\n- [{}] t\n\n", x(done)));
            (format!("# P\n\n{rows}## Phase 99: last\n\n- [ ] t\n"), By::Phase)
        }
    };
    (text.replace('\n', end), by)
}

fn tasks() -> impl Strategy<Value = Vec<(String, bool, bool)>> {
    let name = "[aéß漢я🚀\u{200d}\u{301}\u{202e}\u{a0}ñ]{0,8}".prop_map(|odd| format!("N{odd}z"));
    prop::collection::vec((name, any::<bool>(), any::<bool>()), 2..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn marks_of_every_format_are_those_that_its_author_would_have_written(
        tasks in tasks(),
        end in prop::sample::select(&["\n", "\r\n"][..]),
        mark in any::<bool>(),
    ) {
        let before: Vec<(String, bool)> = tasks.iter().map(|(name, done, _)| (name.clone(), *done)).collect();
        let after: Vec<(String, bool)> = tasks.iter().map(|(name, _, done)| (name.clone(), *done)).collect();
        for format in Format::ALL {
            let with_mark = |text: String| if mark { format!("\u{feff}{text}") } else { text };
            let (text, by) = document(format, &before, end);
            let (text, want) = (with_mark(text), with_mark(document(format, &after, end).0));
            let options = ReadOptions { format: None, by: Some(by) };
            let texts = [PlanText { name: "plan", text: text.as_bytes() }];
            let plan = read(&texts, &options);
            prop_assert!(plan.is_ok(), "{}: {:?}\n{}", format.name(), plan, text);
            let plan = plan.unwrap();
            prop_assert_eq!(plan.format, format, "{}", text);
            let is_done: Vec<bool> = plan.phases.iter().map(|phase| phase.status == Status::Complete).collect();
            let was: Vec<bool> = before.iter().map(|(_, done)| *done).collect();
            prop_assert_eq!(&is_done[..was.len()], &was[..], "{}\n{}", format.name(), text);
            let mut edits = Vec::new();
            for (phase, (_, done)) in plan.phases.iter().zip(&after) {
                let mut add = |change| edits.push(Edit { phase: phase.id.clone(), change });
                add(Change::Status(Status::InProgress));
                if !*done {
                    add(Change::UntickAll);
                }
                add(Change::Status(if *done { Status::Complete } else { Status::NotStarted }));
            }
            let changed = updated_files(&texts, &options, &edits).unwrap();
            let found = changed.into_iter().next().map_or_else(|| text.clone(), |(_, text)| String::from_utf8(text).unwrap());
            prop_assert_eq!(found, want, "{}", format.name());
        }
    }

    /// What is known about the places of marks stays true while they are written: a plan is read
    /// once, however often it is marked.
    #[test]
    fn marks_that_are_set_one_after_another_are_those_of_a_plan_that_is_read_anew_each_time(
        tasks in tasks(),
        end in prop::sample::select(&["\n", "\r\n"][..]),
        steps in prop::collection::vec((0..6_usize, 0..6_usize), 1..12),
    ) {
        let before: Vec<(String, bool)> = tasks.iter().map(|(name, done, _)| (name.clone(), *done)).collect();
        for format in Format::ALL {
            let (text, by) = document(format, &before, end);
            let options = ReadOptions { format: Some(format), by: Some(by) };
            let plan = |text: &str| read(&[PlanText { name: "plan", text: text.as_bytes() }], &options).unwrap();
            let ids: Vec<_> = plan(&text).phases.into_iter().map(|phase| phase.id).collect();
            let mut anew = text.clone();
            let mut index =
                MarkIndex::read(&[PlanText { name: "plan", text: text.as_bytes() }], &options).unwrap();
            for (phase, change) in &steps {
                let phase = ids[phase % ids.len()].clone();
                let change = match change {
                    0 => Change::Status(Status::Complete),
                    1 => Change::Status(Status::NotStarted),
                    2 => Change::Status(Status::InProgress),
                    3 => Change::Status(Status::Failed),
                    4 => Change::Tick(vec![0, 7]),
                    _ => Change::UntickAll,
                };
                let edits = [Edit { phase, change }];
                let texts = [PlanText { name: "plan", text: anew.as_bytes() }];
                let changed = updated_files(&texts, &options, &edits).unwrap();
                let again = changed.into_iter().next().map(|(_, text)| String::from_utf8(text).unwrap());
                let is_changed = again.is_some();
                anew = again.unwrap_or(anew);
                prop_assert_eq!(!index.apply(&edits).is_empty(), is_changed, "{} {:?}", format.name(), edits);
                let kept = std::str::from_utf8(index.text(0)).unwrap();
                prop_assert_eq!(kept, &anew, "{} {:?}", format.name(), edits);
            }
        }
    }
}
