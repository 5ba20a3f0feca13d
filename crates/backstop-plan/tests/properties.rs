//! Whatever comes in, nothing panics, nothing is lost, and work grows with the text and no faster.

use backstop_plan::document::{Change, ERRORS_MAX, Edit, Plan, Status, parse, updated};
use proptest::prelude::*;
use std::time::Instant;

const STATUSES: &[&str] = &[
    "⬜",
    "🔄",
    "✅",
    "⏸️",
    "⏭️",
    "❌",
    "⬜ Not Started",
    "TODO",
    "done",
    "In Progress",
    "[ ]",
    "[x]",
    "[]",
    "",
    "???",
    "**Complete**",
    "⬜/⏭️",
];

/// A plan, with what it is made of at random.
fn plan() -> impl Strategy<Value = String> {
    let status = prop::sample::select(STATUSES);
    let task = prop::sample::select(
        &["- [ ] a", "* [x] b", "  - [] c", "1. [X] d", "text", "", "```\n- [ ] code\n```", "#### Part"][..],
    );
    let phase = (status.clone(), prop::collection::vec(task, 0..6), prop::option::of(status), any::<bool>());
    let end = prop::sample::select(&["\n", "\r\n", "\r"][..]);
    (prop::collection::vec(phase, 1..6), end, any::<bool>(), any::<bool>()).prop_map(
        |(phases, end, mark, column)| {
            let mut table = String::from(if column {
                "| Phase | Depends On | Status |\n|--|--|--|\n"
            } else {
                "| Phase | Depends On |\n|--|--|\n"
            });
            let mut sections = String::from("\nWords. - [ ] not a box\n\n");
            for (n, (status, tasks, quote, section)) in phases.iter().enumerate() {
                let on = n.checked_sub(1).map_or("-".to_owned(), |before| format!("P{before}"));
                table += &if column {
                    format!("| P{n} | {on} | {status}  |\n")
                } else {
                    format!("| P{n} | {on} |\n")
                };
                if *section {
                    sections += &format!("## Phase P{n}: Name\n\n");
                    sections += &quote.map_or(String::new(), |status| format!("> **Status**: {status}\n\n"));
                    sections += &format!("{}\n", tasks.join("\n"));
                }
            }
            let text = (table + &sections).replace('\n', end);
            if mark { format!("\u{feff}{text}") } else { text }
        },
    )
}

fn change() -> impl Strategy<Value = Change> {
    use Status::*;
    let status =
        prop::sample::select(&[NotStarted, InProgress, Complete, Blocked, Skipped, Failed, Unknown][..]);
    let tasks = || prop::collection::vec(0usize..8, 0..4);
    prop_oneof![
        status.prop_map(Change::Status),
        tasks().prop_map(Change::Tick),
        tasks().prop_map(Change::Untick),
        Just(Change::TickAll),
        Just(Change::UntickAll),
    ]
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = (0usize..8, change())
        .prop_map(|(n, change)| Edit { phase: format!("P{n}").parse().expect("an id"), change });
    prop::collection::vec(edit, 0..6)
}

/// A text without anything that could be a mark, and without the padding of cells.
fn without_marks(text: &str) -> String {
    let mut text = text.replace("[x]", "[]").replace("[X]", "[]").replace("[ ]", "[]");
    for word in ["⬜", "🔄", "✅", "⏸️", "⏭️", "❌", "???", "/"] {
        text = text.replace(word, "");
    }
    let mut words =
        ["Not Started", "In Progress", "Complete", "Blocked", "Skipped", "Failed", "Todo", "Done"]
            .map(str::to_owned)
            .to_vec();
    words.extend(words.clone().iter().flat_map(|word| [word.to_uppercase(), word.to_lowercase()]));
    words.iter().fold(text, |text, word| text.replace(word, "")).replace(' ', "")
}

fn hashes(plan: &Plan) -> Vec<&str> {
    plan.phases.iter().map(|phase| phase.hash.as_str()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400), edits in edits()) {
        let _ = parse(&bytes);
        let _ = updated(&bytes, &edits);
        prop_assert_eq!(updated(&bytes, &[]).unwrap(), bytes);
    }

    #[test]
    fn any_text_is_survived(text in "[ \\t\\n\\r|`~#>*_\\[\\]()<>:\\\\xé12Phase,;&-]{0,300}", edits in edits()) {
        for text in [text.clone(), format!("|Phase|Status|Depends On|\n|-|-|-|\n|P1|x|{text}"), format!("|Phase|Status|\n|-|-|\n|P1|x|\n\n# P1: x\n{text}")] {
            if let Ok(plan) = parse(text.as_bytes()) {
                let _ = (plan.levels(), plan.overlaps());
            }
            if let Ok(after) = updated(text.as_bytes(), &edits) {
                prop_assert_eq!(updated(&after, &edits).unwrap(), after, "an edit twice is the same as once");
            }
        }
    }

    #[test]
    fn an_edit_of_what_is_gone_changes_nothing(text in plan()) {
        let gone = [
            Edit { phase: "gone".parse().unwrap(), change: Change::TickAll },
            Edit { phase: "P0".parse().unwrap(), change: Change::Tick(vec![99]) },
        ];
        prop_assert_eq!(updated(text.as_bytes(), &gone).unwrap(), text.as_bytes());
    }

    #[test]
    fn an_edit_changes_nothing_but_marks(text in plan(), edits in edits()) {
        let after = String::from_utf8(updated(text.as_bytes(), &edits).unwrap()).unwrap();
        prop_assert_eq!(without_marks(&text), without_marks(&after));
        let (old, new) = (parse(text.as_bytes()).unwrap(), parse(after.as_bytes()).unwrap());
        prop_assert_eq!(hashes(&old), hashes(&new));
        prop_assert_eq!(&old.table_hash, &new.table_hash);
        // The last word about each task holds.
        for (n, phase) in new.phases.iter().enumerate() {
            for (at, task) in phase.tasks.iter().enumerate() {
                let mut want = old.phases[n].tasks[at].done;
                for edit in edits.iter().filter(|edit| edit.phase == phase.id) {
                    match &edit.change {
                        Change::TickAll => want = true,
                        Change::UntickAll => want = false,
                        Change::Tick(tasks) if tasks.contains(&at) => want = true,
                        Change::Untick(tasks) if tasks.contains(&at) => want = false,
                        _ => {}
                    }
                }
                prop_assert_eq!(task.done, want);
            }
        }
    }

    #[test]
    fn other_words_in_a_section_change_its_hash_and_no_other(text in plan(), at in any::<prop::sample::Index>()) {
        let plan = parse(text.as_bytes()).unwrap();
        let with: Vec<usize> = (0..plan.phases.len()).filter(|n| !plan.phases[*n].section.is_empty()).collect();
        prop_assume!(!with.is_empty());
        let n = *at.get(&with);
        let heading = format!("## Phase P{n}: Name");
        for words in [format!("{heading} changed"), format!("{heading}\nA paragraph.\n")] {
            let changed = parse(text.replacen(&heading, &words, 1).as_bytes()).unwrap();
            for (m, (old, new)) in plan.phases.iter().zip(&changed.phases).enumerate() {
                prop_assert_eq!(old.hash == new.hash, m != n);
            }
        }
        let after = text.replacen("| P0 ", "| P0 (x) ", 1);
        let changed = parse(after.as_bytes()).unwrap();
        prop_assert!(changed.phases[0].hash != plan.phases[0].hash && changed.table_hash != plan.table_hash);
    }
}

/// Reads a text and prints how long it took: what is not linear takes minutes here.
#[allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it measures real time and asserts nothing about it"
)]
fn timed(what: &str, text: &str) -> Result<Plan, String> {
    let start = Instant::now();
    let plan = parse(text.as_bytes()).map_err(|error| error.to_string());
    let edit = Edit { phase: "1".parse().expect("an id"), change: Change::Status(Status::Complete) };
    let _ = updated(text.as_bytes(), &[edit]);
    println!("{what}: {} bytes in {:?}", text.len(), start.elapsed());
    plan
}

#[test]
fn ten_thousand_phases() {
    let mut text = String::from("| Phase | Depends On | Parallel With | Status |\n|--|--|--|--|\n");
    for n in 0..10_000usize {
        let on: Vec<String> =
            (1..=20).filter_map(|back| n.checked_sub(back * 2)).map(|on| on.to_string()).collect();
        let pair = if n % 2 == 0 { n + 1 } else { n - 1 };
        text += &format!("| {n} | {} | {pair} | ⬜ |\n", on.join(", "));
    }
    for n in 0..10_000 {
        text += &format!(
            "\n### Phase {n}: Name\n\n> **Depends On**: 1\n\n- [ ] a\n\n```backstop\nfiles = [\"src/{n}/**\"]\n```\n"
        );
    }
    let plan = timed("10,000 phases", &text).unwrap();
    assert_eq!((plan.phases.len(), plan.levels().len(), plan.overlaps().len()), (10_000, 5_000, 0));
    assert_eq!(plan.phases[9_999].parallel_with, [9_998]);
}

#[test]
fn ten_thousand_phases_with_mistakes_are_told_all_at_once() {
    let mut text = String::from("| Phase | Depends On |\n|--|--|\n");
    for n in 0..10_000usize {
        // A cycle through all of them, every tenth id twice, every hundredth dependency unknown.
        let id = if n % 10 == 9 { n - 1 } else { n };
        let on = if n % 100 == 50 { "x9".to_owned() } else { ((n + 1) % 10_000).to_string() };
        text += &format!("| {id} | {on} |\n");
    }
    let errors = parse(text.as_bytes()).unwrap_err();
    assert_eq!(errors.list().len(), ERRORS_MAX);
    assert!(errors.left_out() > 1_000, "{}", errors.left_out());
    let json: Vec<String> = (0..10_000)
        .map(|n| format!("{{\"id\":{},\"title\":\"t\",\"dependencies\":[{}]}}", n % 9_000, (n + 1) % 9_000))
        .collect();
    let json = format!("{{\"tasks\":[{}]}}", json.join(",\n"));
    let errors = parse(json.as_bytes()).unwrap_err();
    assert_eq!(errors.list().len() + errors.left_out(), 1_001, "a thousand ids twice, and a cycle");
    assert_eq!(errors.reason().code(), "circular_dependency");
}

#[test]
fn eight_megabytes_of_anything() {
    const BYTES: usize = 8 << 20;
    let table = "| Phase | Depends On | Status |\n|--|--|--|\n| 1 | ";
    let section = "| Phase | Depends On | Status |\n|--|--|--|\n| 1 | - | ⬜ |\n\n## Phase 1: a\n";
    let fill = |before: &str, unit: &str, bytes: usize| {
        format!("{before}{}", unit.repeat((bytes - before.len()) / unit.len()))
    };
    for (unit, before) in [("\n", section), ("words\n", section), ("é", table)] {
        let _ = timed(&format!("{unit:?}"), &fill(before, unit, BYTES));
    }
    // What is quadratic takes minutes with a quarter of a megabyte too.
    const SOME: usize = 256 << 10;
    let mut runs = String::from(table);
    for length in (1..).take_while(|length| length * (length + 3) / 2 < SOME) {
        runs += &"`".repeat(length);
        runs.push(' ');
    }
    let _ = timed("runs of backticks", &runs);
    for unit in ["|", "`", "[", "](", "[a](", "<a", "(", "\\", "1,", "and ", "*", "[`a`](", "~ "] {
        let heading = format!("{section}\n## Phase ");
        for (place, before) in [("a cell", table), ("a section", section), ("a heading", &heading)] {
            let _ = timed(&format!("{unit:?} in {place}"), &fill(before, unit, SOME));
        }
    }
    let lines = [
        "- [ ] a\n",
        "#\n",
        "## Phase 1: a\n",
        "> **Status**: x\n",
        "```backstop\n```\n",
        "|a|b|\n|-|-|\n",
        "  ",
        "x\r",
        "<!--\n",
    ];
    for unit in lines {
        let _ = timed(&format!("lines of {unit:?}"), &fill("", unit, SOME));
        let _ = timed(&format!("lines of {unit:?} in a section"), &fill(section, unit, SOME));
    }
}
