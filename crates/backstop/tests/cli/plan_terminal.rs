//! Plans on a real terminal: what a run asks a person, and the view that is drawn over itself.
#![cfg(target_os = "linux")] // What plays the terminal is `script` of util-linux.

use crate::harness::Project;
use crate::plan_text::{PlanText, has};
use std::io::Write;
use std::process::Stdio;

/// `backstop run plan.md FLAGS` on a terminal, with this typed. Its exit code and all that was
/// shown.
fn on_terminal(project: &Project, flags: &str, typed: &str) -> (i32, String) {
    let line = format!("{} run plan.md {flags}", env!("CARGO_BIN_EXE_backstop"));
    let mut command = project.program("script", &["-qefc", &line, "/dev/null"]);
    command.env("TERM", "xterm").env("LANG", "C.UTF-8").env("HOME", project.beside("home")).env_remove("CI");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut keys = child.stdin.take().unwrap();
    keys.write_all(typed.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(keys);
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn project(name: &str) -> Project {
    let project = Project::git(name);
    PlanText::new().sh("1", "", "echo one > one.txt").sh("2", "1", "echo two > two.txt").write(&project);
    project
}

fn subjects(project: &Project) -> Vec<String> {
    project.sh("git log --format=%s").lines().map(str::to_owned).collect()
}

#[test]
fn how_phases_are_committed_is_asked_for_until_it_is_one_of_the_four() {
    let project = project("terminal-commit");
    let (code, shown) = on_terminal(&project, "", "perhaps\nauto\n");
    assert_eq!(code, 0, "{shown}");
    has(&shown, &["How are finished phases committed?", "type one of the four words", "BACKSTOP COMPLETE"]);
    assert_eq!(subjects(&project), ["Phase 2: Step 2", "Phase 1: Step 1", "base"]);
}

#[test]
fn who_says_nothing_begins_nothing() {
    let project = project("terminal-silent");
    let (code, shown) = on_terminal(&project, "", "\n");
    assert_eq!(code, 2, "{shown}");
    has(&shown, &["--commit"]);
    assert!(!project.path().join("one.txt").exists() && project.events().is_empty());
}

#[test]
fn a_fresh_start_is_asked_for_and_no_is_no() {
    let project = project("terminal-fresh");
    assert_eq!(on_terminal(&project, "--commit none", "").0, 0);
    let runs = || project.run(&["runs", "--json"]).go().code(0).json()["runs"].as_array().unwrap().len();
    let (code, shown) = on_terminal(&project, "--commit none --fresh", "n\n");
    assert_eq!((code, runs()), (1, 1), "{shown}");
    has(&shown, &["Start fresh? [y/N]"]);
    let (code, shown) = on_terminal(&project, "--commit none --fresh --allow-dirty", "y\n");
    assert_eq!((code, runs()), (0, 2), "{shown}");
}

#[test]
fn the_view_is_drawn_over_itself_and_cleared_away_at_the_end() {
    let project = project("terminal-view");
    let slow = r"printf '\033]52;c;Zm9v\007\n'; sleep 1; echo one > one.txt";
    PlanText::new().sh("1", "", slow).sh("2", "1", "echo two > two.txt").write(&project);
    let (code, shown) = on_terminal(&project, "--commit none", "");
    assert_eq!(code, 0, "{shown}");
    has(&shown, &["\u{1b}[", "Step 1", "Step 2", "BACKSTOP COMPLETE"]);
    assert!(!shown.contains("\u{1b}]52"), "what a phase prints does not act on the terminal: {shown:?}");
    let end = shown.rsplit("BACKSTOP COMPLETE").next().unwrap();
    assert!(
        !end.contains("\u{1b}[1A") && !end.contains("\u{1b}[J"),
        "nothing is drawn after the end: {end:?}"
    );
    assert!(
        !shown.contains("\u{1b}[?25l") || shown.contains("\u{1b}[?25h"),
        "a cursor that was hidden is shown again"
    );
}

#[test]
fn whether_gates_that_a_project_suggests_are_run_is_asked_for() {
    for (answer, runs) in [("\n", true), ("n\n", false)] {
        let project = crate::plan_gates::suggesting("terminal-gates");
        let (code, shown) = on_terminal(&project, "--commit auto", answer);
        assert_eq!(code, 0, "{shown}");
        assert!(shown.contains("This project suggests checks for finished work:"), "{shown}");
        assert_eq!(!crate::plan_text::events(&project, "gate.finished").is_empty(), runs, "{shown}");
    }
}
