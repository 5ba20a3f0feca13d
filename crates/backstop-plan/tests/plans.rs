//! Plans as people write them, good and bad: what is read, what is told, and what an edit leaves
//! alone.

use backstop_plan::document::{Change, Edit, Limit, Plan, PlanError, Status, parse, updated};
use std::time::Duration;

const FEATURE: &str = include_str!("plans/feature.md");

fn ids(plan: &Plan, of: &[usize]) -> String {
    of.iter().map(|phase| plan.phases[*phase].id.shown()).collect::<Vec<_>>().join(" ")
}

fn told(text: &str) -> String {
    match parse(text.as_bytes()) {
        Ok(plan) => {
            let warnings = plan.warnings.iter().map(|warning| format!("{}: {}", warning.line, warning.text));
            warnings.collect::<Vec<_>>().join("\n")
        }
        Err(errors) => {
            let told = |error: &PlanError| {
                let mut out = format!("{error} | {}", error.hint());
                out.extend(error.row.iter().map(|row| format!("\n  {row}")));
                out.extend(error.also.iter().map(|(line, text)| format!("\n  {line}: {text}")));
                format!("{out}\n  {}", error.reason())
            };
            errors.list().iter().map(told).collect::<Vec<_>>().join("\n")
        }
    }
}

#[test]
fn a_plan_is_read_as_it_is_meant() {
    let plan = parse(FEATURE.as_bytes()).unwrap();
    let row = |n: usize| {
        let phase = &plan.phases[n];
        let tasks = format!("{}/{}", phase.tasks.iter().filter(|task| task.done).count(), phase.tasks.len());
        let estimated = phase.estimated.map(|d| d.as_secs() / 60);
        format!(
            "{} {:?} <[{}] |[{}] {:?}={estimated:?} {} {tasks} @{}",
            phase.id,
            phase.name.raw(),
            ids(&plan, &phase.depends_on),
            ids(&plan, &phase.parallel_with),
            phase.estimate.as_ref().map_or("", |text| text.raw()),
            phase.status,
            phase.line
        )
    };
    let rows: Vec<String> = (0..plan.phases.len()).map(row).collect();
    insta::assert_snapshot!(rows.join("\n"), @r#"
    0 "Bootstrap" <[] |[] "30 min"=Some(30) complete 2/2 @12
    1 "Schema" <[0] |[] "2h"=Some(120) not started 0/1 @13
    2A "Backend" <[1] |[2B 2C] "1-2 days"=Some(2880) not started 0/4 @14
    2B "Pages" <[1] |[2A 2C] "3 points"=None not started 0/1 @15
    2C "a | b" <[1] |[2A 2B] "~4h"=Some(240) unknown 0/1 @16
    3 "Integration" <[2A 2B 2C] |[] ""=None blocked 0/0 @17
    "#);
    insta::assert_snapshot!(told(FEATURE), @r#"
    16: phase 2C is parallel with 2B, but 2B does not list 2C: taken as both
    17: phase 3 has no section: add a heading `### Phase 3: …`
    33: the section of phase 2A says Depends On `Phase 0`, the table says otherwise: the table counts
    "#);
    assert_eq!([plan.find("2-b"), plan.find("Phase2B"), plan.find("9")], [Some(3), Some(3), None]);
    assert_eq!(plan.levels(), [vec![0], vec![1], vec![2, 3, 4], vec![5]]);
    assert_eq!(plan.overlaps(), [(2, 4, vec!["src/api/**".to_owned(), "src/api/types.rs".to_owned()])]);
}

#[test]
fn a_phase_has_its_section_its_tasks_and_its_settings() {
    let plan = parse(FEATURE.as_bytes()).unwrap();
    let backend = &plan.phases[plan.find("phase 2-a").unwrap()];
    let section = backend.section.raw();
    assert!(section.starts_with("### Phase 2A: Backend\n"), "{section}");
    assert!(section.ends_with("* [ ] no test is skipped"), "{section}");
    let tasks: Vec<String> =
        backend.tasks.iter().map(|t| format!("{} {} {}", t.line, t.depth, t.text)).collect();
    assert_eq!(tasks, ["39 0 routes", "40 1 one for each verb", "41 1 errors", "58 0 no test is skipped"]);
    assert_eq!(backend.settings.timeout, Some(Limit::After(Duration::from_secs(1200))));
    assert_eq!(backend.settings.idle, Some(Limit::None));
    assert_eq!(plan.defaults.timeout, Some(Limit::After(Duration::from_secs(600))));
    assert_eq!(plan.phases[0].settings, plan.defaults);
    // A section inside another phase's section is its own.
    let parent = &plan.phases[1];
    assert!(parent.section.raw().contains("after the inner one"));
    assert!(!parent.section.raw().contains("Backend"));
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_a_way_out() {
    let many: String =
        (0..10_001).fold("|Phase|Name|\n|-|-|\n".to_owned(), |text, n| format!("{text}|{n}||\n"));
    let plans = [
        "# A plan\n\nNo table.\n",
        "| Phase | Name |\n\n| Phase | Depends On |\n| 1 | - |\n",
        "| Name | Depends On |\n|---|---|\n| a | - |\n",
        "```\n| Phase | Name |\n|---|---|\n| 1 | a |\n```\n",
        "x\n\n| Phase | Name |\n|-------|------|\n",
        "| Phase | Name |\n|---|---|\n| 1 | a | b |\n",
        "| Phase | Name |\n|---|---|\n| 2-A | a |\n| 3 | b |\n| **2A** | c |\n",
        "| Phase | Name |\n|---|---|\n| 2/A | a |\n",
        "| Phase | Name |\n|---|---|\n|  | a |\n",
        "| Phase | Name |\n|---|---|\n| 1 | a |\nA paragraph, too near.\n",
        "| Phase | Name | Depends On |\n|---|---|---|\n| 2A | a | - |\n| 3 | b | Phase 2Q |\n",
        "| Phase | Name | Depends On |\n|---|---|---|\n| 1 | a | - |\n| 3 | b | 1-3 |\n| 13 | b | |\n",
        "| Phase | Parallel With |\n|---|---|\n| 1 | everything else |\n",
        "| Phase | Depends On |\n|---|---|\n| 1 | Phase 1 |\n",
        "| Phase | Parallel |\n|---|---|\n| 1 | 1 |\n",
        "| Phase | Depends On |\n|---|---|\n| 0 | 3 |\n| 2A | 3 |\n| 3 | 4, 2A |\n| 4 | 2A |\n",
        "| Phase | Depends On | Parallel With |\n|---|---|---|\n| 2A | 3 | |\n| 3 | 2B | |\n| 2B | | 2A |\n",
        "| Phase | Name |\n|---|---|\n| 1 | a |\n\n## Phase 1: a\n\n```backstop\ntimeot = \"1s\"\n```\n",
        "| Phase | Name |\n|---|---|\n| 1 | a |\n\n## Phase 1: a\n```backstop\n```\n~~~backstop\n~~~\n",
        "```backstop\n```\n| Phase | Name |\n|---|---|\n| 1 | a |\n\n```backstop\nagent = \"x\"\n```\n",
        "| Phase | Name |\n|---|---|\n| 1 | a\0 |\n",
        "| Phase | Name |\n|---|---|\n| \x1b[31m | a |\n",
        &many,
    ];
    let all: Vec<String> = plans.iter().map(|text| told(text)).collect();
    insta::assert_snapshot!(all.join("\n"), @r#"
    1:1: this is no plan that Backstop can read | write a checklist (`- [ ] …`), a numbered list, headings such as `## Phase 1: Name`, or a table such as `| Phase | Name | Depends On | Status |`; --format forces one of backstop, spec-kit, task-master, kiro, openspec, bmad, claude, execplan, superpowers, prp, ralphex, conductor, ralph, list, headings
      plan_invalid
    1:1: there is no table of phases | add a table such as `| Phase | Name | Depends On | Status |`, with a line of dashes below its header and a row for each phase
      1: this looks like its header, but no line of dashes follows
      plan_invalid
    1:1: the table has no column `Phase` | add a column `Phase` with an id for each row
      | Name | Depends On |
      plan_invalid
    1:1: this is no plan that Backstop can read | write a checklist (`- [ ] …`), a numbered list, headings such as `## Phase 1: Name`, or a table such as `| Phase | Name | Depends On | Status |`; --format forces one of backstop, spec-kit, task-master, kiro, openspec, bmad, claude, execplan, superpowers, prp, ralphex, conductor, ralph, list, headings
      plan_invalid
    3:1: the table of phases has no rows | add a row for each phase, such as `| 1 | Set up | - | ⬜ |`
      | Phase | Name |
      plan_invalid
    3:11: the row has 3 cells, the table has 2 columns | write a `|` inside a cell as `\|`
      | 1 | a | b |
      plan_invalid
    5:3: phase 2A is already on line 3 | give one of the two another id; case, spaces and hyphens make no difference
      | **2A** | c |
      3: phase 2-A
      plan_invalid
    3:3: `2/A` is no phase id | an id has letters and digits, with dots between them where there are any, such as 2A or 1.1; if this line is not part of the table, put an empty line before it
      | 2/A | a |
      plan_invalid
    3:2: this row has no phase id | give the row an id, such as 2A or 1.1
      |  | a |
      plan_invalid
    4:1: `A paragraph, too near.` is no phase id | an id has letters and digits, with dots between them where there are any, such as 2A or 1.1; if this line is not part of the table, put an empty line before it
      A paragraph, too near.
      plan_invalid
    4:11: phase 3 depends on `Phase 2Q`, which is no phase of this plan | did you mean `2A`?
      | 3 | b | Phase 2Q |
      plan_invalid
    4:11: phase 3 depends on itself | take it out of its own `Depends On`
      | 3 | b | 1-3 |
      plan_invalid
    3:7: phase 1 is parallel with `everything else`, which is no phase of this plan | write the ids of phases that have a row, separated by commas, under `Parallel With`; also a range such as 1-3, or `all previous`
      | 1 | everything else |
      plan_invalid
    3:7: phase 1 depends on itself | take it out of its own `Depends On`
      | 1 | Phase 1 |
      plan_invalid
    3:7: phase 1 is parallel with itself | take it out of its own `Parallel With`
      | 1 | 1 |
      plan_invalid
    4:8: phases wait for each other: 2A -> 3 -> 2A | take one of these dependencies away, so that no phase waits for itself
      | 2A | 3 |
      4: phase 2A depends on 3
      5: phase 3 depends on 2A
      circular_dependency
    5:10: phases 2A and 2B are parallel, but one waits for the other: 2A -> 3 -> 2B | take `2B` out of what 2A waits for, or take the two out of each other's `Parallel With`
      | 2B | | 2A |
      3: phase 2A
      plan_invalid
    8:1: there is no setting `timeot` | did you mean `timeout`?
      plan_invalid
    8:1: phase 1 already has settings, on line 6 | put all of it into one block
      6: the first
      plan_invalid
    7:1: the plan already has settings, on line 1 | put all of it into one block
      1: the first
      plan_invalid
    3:8: this is no text: there is a NUL in it | save the plan as UTF-8 text
      plan_invalid
    3:3: `\e[31m` is no phase id | an id has letters and digits, with dots between them where there are any, such as 2A or 1.1; if this line is not part of the table, put an empty line before it
      | \e[31m | a |
      plan_invalid
    10003:1: the plan has more than 10000 phases | split it into several plans
      plan_invalid
    "#);
    let large = vec![b'\n'; (8 << 20) + 1];
    assert_eq!(parse(&large).unwrap_err().to_string(), "1:1: the plan has 8388609 bytes, more than 8388608");
    assert_eq!(parse(b"a\xff").unwrap_err().to_string(), "1:2: this is not UTF-8");
}

#[test]
fn what_is_odd_is_a_warning() {
    let plans = [
        "| # | Phase |\n|---|---|\n| 1 | Set up |\n\n## Phase 1\n",
        "| Phase | Name |\n|---|---|\n| 1 | a |\n",
        "| Phase | Name |\n|---|---|\n| 1 | a |\n| | |\n\n## Phase 1: a\n\n## Phase 1: b\n\n## Phase 7: c\n```backstop\n```\n",
        "| Phase | Name |\n|---|---|\n| a | a |\n\n| b | b |\n\n## A\n",
        "| Phase | Depends On | Parallel |\n|---|---|---|\n| 1 | (at once) | |\n| 2 | | 3 |\n| 3 | | |\n\n\
            ## 1: a\n## 2: b\n> **Depends On:** Phase 1\n> **Can Run With**: 3\n\n## Phase 3\n```\n",
    ];
    let all: Vec<String> = plans.iter().map(|text| told(text)).collect();
    insta::assert_snapshot!(all.join("\n--\n"), @r#"

    --
    3: phase 1 has no section: add a heading `### Phase 1: …`
    --
    4: this row of the table is empty: it is left out
    8: phase 1 has a second section: the one on line 6 counts
    10: this section is of phase 7, which has no row in the table: it is left out
    11: these settings are in a section that is left out
    --
    5: this row is cut off from the table by the line before it: it is left out
    --
    3: `(at once)` names no phase: taken as none
    4: phase 2 is parallel with 3, but 3 does not list 2: taken as both
    9: the section of phase 2 says Depends On `Phase 1`, the table says otherwise: the table counts
    13: this code fence is never closed: everything after it is part of it
    "#);
}

#[test]
fn columns_and_sections_are_found_however_they_are_written() {
    for (text, want) in [
        // Other names, another order, columns of its own, short rows.
        (
            "STATUS | `ID` | Owner | **Depends-On** | Title\n:-- | - | - | - | -\nDONE | 1 | Bob | | One\nTODO | 2 | | 1 | Two\nDONE | 3\n",
            "1 One complete [] | 2 Two not started [0] | 3 Phase 3 complete []",
        ),
        // A number and no name: the phase is the name.
        (
            "| # | Phase | Depends |\n|--|--|--|\n| 1 | Set up | |\n| 2 | Build | 1 |\n",
            "1 Set up unknown [] | 2 Build unknown [0]",
        ),
        // The heading names it, and says what the table does not.
        (
            "| Phase | Estimate |\n|--|--|\n| [1](#one) | |\n| 2 (optional) | 1h |\n\n## Phase 1: **One**\n\n#### Phase 2 - Two\n> **Depends On**: Phase 1\n> Status: ✅ Complete\n",
            "1 One unknown [] | 2 Two complete [0]",
        ),
        // Pipes that are no borders; two tables, of which the second is the overview.
        (
            "| a | b |\n|--|--|\n| 1 | 2 |\n\n| Phase | Name |\n|--|--|\n| 1 | a\\|b |\n| 2 | `c|d` |\n",
            "1 a|b unknown [] | 2 c|d unknown []",
        ),
        // A plain heading counts, not one that only begins like it.
        (
            "| Phase | Effort |\n|--|--|\n| 1 | |\n\n## Phase 1 and 2 notes\n\n## Phase 1: Real\n",
            "1 Real unknown []",
        ),
        // A table in a comment is none.
        (
            "<!--\n| Phase | Name |\n|--|--|\n| 9 | a |\n-->\n| Phase | Name |\r\n|--|--|\r\n| 1 | b |\r\n",
            "1 b unknown []",
        ),
    ] {
        for text in
            [text.to_owned(), format!("\u{feff}{text}"), text.replace("\r\n", "\n").replace('\n', "\r\n")]
        {
            let plan = parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let shown =
                plan.phases.iter().map(|p| format!("{} {} {} {:?}", p.id, p.name, p.status, p.depends_on));
            assert_eq!(shown.collect::<Vec<_>>().join(" | "), want, "{text}");
        }
    }
}

fn edit(phase: &str, change: Change) -> Edit {
    Edit { phase: phase.parse().expect("an id"), change }
}

#[test]
fn an_edit_changes_marks_and_nothing_else() {
    let edits = [
        edit("2A", Change::Status(Status::InProgress)),
        edit("2A", Change::Tick(vec![0, 2, 99])),
        edit("2A", Change::Status(Status::Complete)),
        edit("2B", Change::Status(Status::Failed)),
        edit("2C", Change::TickAll),
        edit("0", Change::UntickAll),
        edit("gone", Change::TickAll),
        edit("3", Change::Status(Status::Unknown)),
    ];
    let after = String::from_utf8(updated(FEATURE.as_bytes(), &edits).unwrap()).unwrap();
    let changed: Vec<String> = FEATURE
        .lines()
        .zip(after.lines())
        .filter(|(old, new)| old != new)
        .map(|(old, new)| format!("{old}\n{new}"))
        .collect();
    assert_eq!(FEATURE.lines().count(), after.lines().count());
    insta::assert_snapshot!(changed.join("\n"), @r#"
    | 2A    | **Backend** | Phase 1                         | 2B, 2C        | 1-2 days | ⬜ Not Started |
    | 2A    | **Backend** | Phase 1                         | 2B, 2C        | 1-2 days | ✅ Complete    |
    | 2B    | Pages       | 1                               | 2A            | 3 points | ⬜/⏭️          |
    | 2B    | Pages       | 1                               | 2A            | 3 points | ❌             |
    - [x] tools
    - [ ] tools
    - [X] hooks
    - [ ] hooks
    > **Status**: ⬜ Not Started
    > **Status**: ✅ Complete
    1. [ ] routes
    1. [x] routes
       - [ ] errors
       - [x] errors
    - [ ] types
    - [x] types
    "#);
    let (old, new) = (parse(FEATURE.as_bytes()).unwrap(), parse(after.as_bytes()).unwrap());
    assert_eq!(old.table_hash, new.table_hash);
    for (old, new) in old.phases.iter().zip(&new.phases) {
        assert_eq!(old.hash, new.hash, "{}", old.id);
    }
}

#[test]
fn line_ends_and_the_byte_order_mark_stay() {
    let text = "\u{feff}| Phase | Done |\r\n|--|--|\n| 1 | [ ] |\r| 2 ||\r\n\r\n## Phase 1\r\n- [] a\r\n> **Status**:\r\n- [X] b";
    let edits = [
        edit("1", Change::Status(Status::Complete)),
        edit("2", Change::Status(Status::Skipped)),
        edit("1", Change::TickAll),
    ];
    let after = String::from_utf8(updated(text.as_bytes(), &edits).unwrap()).unwrap();
    assert_eq!(
        after,
        "\u{feff}| Phase | Done |\r\n|--|--|\n| 1 | [x] |\r| 2 | ⏭️ |\r\n\r\n## Phase 1\r\n- [x] a\r\n> **Status**: ✅\r\n- [X] b"
    );
    // A plan with a mistake in its cells can still be kept up to date.
    let broken = "| Phase | Depends On | Status |\n|--|--|--|\n| 1 | 9 | ⬜ |\n";
    let after = updated(broken.as_bytes(), &[edit("1", Change::Status(Status::Failed))]).unwrap();
    assert_eq!(String::from_utf8(after).unwrap(), broken.replace('⬜', "❌"));
}
