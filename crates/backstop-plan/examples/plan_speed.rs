//! How long plans take to be read and marked: a Task Master file of 1.5 MB with 100 tasks, a
//! Markdown plan of 70 KB, and one mark in plans of 10 and of 1,000 phases: the place found and the
//! text changed, and with the file compared and replaced on the disk, as a run does it. Prints,
//! asserts nothing.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures real time and prints it")]

use backstop_files::{Durability, Folder};
use backstop_plan::document::{Change, Edit, MarkIndex, PlanText, ReadOptions, parse};
use std::time::Instant;

fn milliseconds(times: u32, mut what: impl FnMut()) -> f64 {
    what();
    let start = Instant::now();
    (0..times).for_each(|_| what());
    start.elapsed().as_secs_f64() * 1000.0 / f64::from(times)
}

fn tasks(count: usize, bytes: usize) -> String {
    let filler = "Lorem ipsum \\\"dolor\\\" sit amet. ".repeat(bytes / count / 34);
    let task = |n: usize| {
        format!(
            "    {{ \"id\": {n}, \"title\": \"Task {n}\", \"details\": \"{filler}\", \"status\": \"pending\", \"dependencies\": [] }}"
        )
    };
    let tasks: Vec<String> = (1..=count).map(task).collect();
    format!("{{\n  \"master\": {{\n  \"tasks\": [\n{}\n  ] }}\n}}\n", tasks.join(",\n"))
}

fn markdown(phases: usize, bytes: usize) -> String {
    let filler = "- do this with `care` and **attention**\n".repeat(bytes / phases / 40);
    let phase = |n: usize| format!("## Phase {n}: Part {n}\n\n- [ ] one\n- [ ] two\n\n{filler}\n");
    (1..=phases).map(phase).collect()
}

fn main() {
    let json = tasks(100, 1_500_000);
    let plan = markdown(20, 70_000);
    for (what, text) in [("Task Master", &json), ("Markdown", &plan)] {
        let took = milliseconds(20, || {
            let _ = parse(text.as_bytes());
        });
        println!("{what} plan of {} bytes read in {took:.1} ms (less than 50 is wanted)", text.len());
    }
    let folder = std::env::temp_dir().join(format!("plan-speed-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder of its own");
    let mark = |count: usize, on_disk: bool| {
        let text = markdown(count, count * 400);
        let (files, file) = (Folder::new(&folder), folder.join("plan.md"));
        files.replace(&file, text.as_bytes(), Durability::OnDisk).expect("the plan is written");
        let texts = [PlanText { name: "plan.md", text: text.as_bytes() }];
        let mut index = MarkIndex::read(&texts, &ReadOptions::default()).expect("a plan");
        let mut is_done = false;
        milliseconds(200, || {
            is_done = !is_done;
            let change = if is_done { Change::TickAll } else { Change::UntickAll };
            let edit = Edit { phase: "7".parse().expect("an id"), change };
            if on_disk {
                let there = files.read(&file, 8 << 20).expect("readable").expect("there");
                assert!(there == index.text(0), "nobody else writes into it");
            }
            assert!(!index.apply(&[edit]).is_empty(), "the mark changes");
            if on_disk {
                files.replace(&file, index.text(0), Durability::OnDisk).expect("writable");
            }
        })
    };
    for (what, on_disk) in [("in the text", false), ("with the file on the disk", true)] {
        let (few, many) = (mark(10, on_disk), mark(1000, on_disk));
        println!(
            "one mark {what}: of 10 phases {few:.4} ms, of 1000 phases {many:.4} ms, ratio {:.1}",
            many / few
        );
    }
    std::fs::remove_dir_all(&folder).expect("the folder goes away");
}
