//! How long plans take to be read and marked: a Task Master file of 1.5 MB with 100 tasks, a Markdown
//! plan of 70 KB, and one mark in plans of 10 and of 1,000 phases. Prints, asserts nothing.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures real time and prints it")]

use backstop_plan::document::{Change, Edit, Status, parse, updated};
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
    let mark = |count: usize| {
        let text = markdown(count, count * 400);
        let edit = [Edit { phase: "7".parse().expect("an id"), change: Change::Status(Status::Complete) }];
        milliseconds(20, || {
            let _ = updated(text.as_bytes(), &edit);
        })
    };
    let (few, many) = (mark(10), mark(1000));
    println!("one mark of 10 phases {few:.3} ms, of 1000 phases {many:.3} ms, ratio {:.1}", many / few);
}
