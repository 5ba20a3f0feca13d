//! kill -9 at every point of the journal of a campaign, then the same command again: the end is
//! that of an uninterrupted one.
#![cfg(target_os = "linux")]

use crate::harness::{Project, root};
use std::os::unix::process::ExitStatusExt;

fn project(name: &str) -> Project {
    let project = Project::git(name);
    let file = project.beside("agent.sh");
    std::fs::copy(root().join("examples/campaign/agent.sh"), &file).unwrap();
    let command = serde_json::json!(["sh", file.display().to_string()]);
    project.settings(format!("[agent.fake]\ncommand = {command}\n[exec]\ngrace = \"200ms\"\n"));
    project
}

/// A quorum of three, a clarification, a block, a re-plan: the example, answered as soon as it
/// asks.
fn carry_on(project: &Project) {
    for _ in 0..4 {
        let done = project.run(&["campaign", "A program that greets", "--agent", "fake"]).go();
        match done.exit() {
            Some(0) => return,
            Some(4) => {
                project.run(&["campaign", "answer", "English"]).go().code(0);
            }
            other => panic!("{other:?}: {}", done.stderr()),
        }
    }
    panic!("it does not end");
}

/// What is to be the same however often it was killed: commits, files, tasks.
fn end(project: &Project) -> (Vec<String>, String, String) {
    let mut subjects: Vec<String> = project.sh("git log --format=%s").lines().map(str::to_owned).collect();
    subjects.sort();
    let files = project.sh("for f in *.sh *.txt; do echo \"$f: $(cat $f)\"; done; git status --short");
    let status = project.run(&["campaign", "status", "--json"]).go().code(0).json();
    let tasks: Vec<String> = status["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| format!("{} {}", task["seq"], task["status"]))
        .collect();
    (subjects, files, format!("{} {tasks:?}", status["state"]))
}

fn start(project: &Project) -> crate::harness::Run {
    project.run(&["campaign", "A program that greets", "--agent", "fake"])
}

/// Kills at these points: of the first command, which ends with the question, or of the second,
/// which goes on after the answer.
fn every_point(is_answered: bool, remainder: u64, of: u64) {
    let half = if is_answered { "second" } else { "first" };
    let whole = project(&format!("crash-campaign-{half}-{remainder}-whole"));
    carry_on(&whole);
    let want = end(&whole);
    assert_eq!(want.0.len(), 5, "{want:?}");
    // All of them take minutes of two processors: every eighth unless BACKSTOP_EVERY_POINT is set.
    let step = if std::env::var_os("BACKSTOP_EVERY_POINT").is_some() { 1 } else { 8 };
    for point in (1..).filter(|point| point % of == remainder).step_by(step) {
        assert!(point < 400, "it never ends by itself");
        let project = project(&format!("crash-campaign-{half}-{point}"));
        if is_answered {
            start(&project).go().code(4);
            project.run(&["campaign", "answer", "English"]).go().code(0);
        }
        let output = start(&project).env("BACKSTOP_CRASH_AT", &point.to_string()).command().output().unwrap();
        let crashed = output.status.signal() == Some(9);
        carry_on(&project);
        assert_eq!(end(&project), want, "{half} {point}");
        let worktrees = project.sh("git worktree list --porcelain");
        assert_eq!(worktrees.matches("worktree ").count(), 1, "{half} {point}: {worktrees}");
        if !crashed {
            println!("{half}: {point} points");
            assert!(point > 8, "only {point} points were seen");
            break;
        }
    }
}

// In tests that run side by side; each has other points.

#[test]
fn campaign_first_odd_points() {
    every_point(false, 1, 2);
}

#[test]
fn campaign_first_even_points() {
    every_point(false, 0, 2);
}

#[test]
fn campaign_second_points_from_1() {
    every_point(true, 1, 4);
}

#[test]
fn campaign_second_points_from_2() {
    every_point(true, 2, 4);
}

#[test]
fn campaign_second_points_from_3() {
    every_point(true, 3, 4);
}

#[test]
fn campaign_second_points_from_4() {
    every_point(true, 0, 4);
}
