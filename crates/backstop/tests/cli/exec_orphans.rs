//! No process is left behind: not by a timeout, not by Ctrl-C, not by the death of Backstop itself.
#![cfg(target_os = "linux")]

use crate::harness::{Project, is_alive, until};
use std::process::{Child, Command};

/// A tree that tries to get away: a session of its own, a double fork, a cleared environment, one that ignores TERM.
const TREE: &str = "setsid sleep 601 & echo $! >> pids; \
    (sh -c 'echo $$ >> pids; exec sleep 602' &); \
    env -i setsid sh -c 'echo $$ >> pids; exec sleep 603' & \
    setsid sh -c 'trap \"\" TERM; echo $$ >> pids; while :; do sleep 0.1; done' & \
    sh -c 'echo $$ >> pids; kill -STOP $$; sleep 604' & \
    echo $$ >> pids; sleep 605";

fn pids(project: &Project) -> Vec<String> {
    project.read("pids").lines().map(str::to_owned).collect()
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_timeout_ends_the_whole_tree() {
    let project = Project::new("orphans-timeout");
    project.exec(&["--timeout", "1500ms", "--attempts", "1"], TREE).go().code(124);
    let pids = pids(&project);
    assert_eq!(pids.len(), 6);
    assert!(pids.iter().all(|pid| !is_alive(pid)), "{pids:?}");
}

#[test]
fn a_signal_ends_the_whole_tree_and_is_passed_on() {
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let project = Project::new(&format!("orphans{name}"));
        let child = project.exec(&[], TREE).command().spawn().unwrap();
        until("the tree is there", || pids(&project).len() == 6);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(pids(&project).iter().all(|pid| !is_alive(pid)));
        let runs = project.run(&["runs", "--json"]).go().code(0).json();
        assert_eq!(runs["runs"][0]["outcome"], "interrupted");
    }
}

#[test]
fn the_second_signal_does_not_wait() {
    let project = Project::new("orphans-twice");
    project.file("backstop.toml", "[exec]\ngrace = \"1h\"\n");
    let script = "trap '' TERM; echo $$ >> pids; while :; do sleep 0.1; done";
    let child = project.exec(&[], script).command().spawn().unwrap();
    until("it runs", || pids(&project).len() == 1);
    signal(&child, "-INT");
    // The first one is polite for an hour.
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(is_alive(&pids(&project)[0]));
    signal(&child, "-INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert!(!is_alive(&pids(&project)[0]));
}

#[test]
fn a_signal_during_a_wait_ends_at_once() {
    let project = Project::new("orphans-wait");
    project.file("backstop.toml", "[profile.command]\nbase = \"10m\"\ncap = \"10m\"\n");
    let script = "echo x >> tries; echo npm error code ECONNRESET; exit 1";
    let child = project.exec(&[], script).command().spawn().unwrap();
    until("it waits", || project.kinds().last().is_some_and(|k| k == "decision.made"));
    signal(&child, "-INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert_eq!(project.read("tries").lines().count(), 1);
}

#[test]
fn what_a_killed_backstop_left_behind_is_ended_by_the_next_run() {
    let project = Project::new("orphans-killed");
    // All but the one that cleared its environment: with Backstop gone, nothing ties that one to the run.
    let script = TREE.replace("env -i setsid", "setsid");
    let mut child = project.exec(&[], &script).command().spawn().unwrap();
    until("the tree is there", || pids(&project).len() == 6);
    let bystander = Command::new("sleep").arg("600").spawn();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(pids(&project).iter().any(|pid| is_alive(pid)));
    let doctor = project.run(&["doctor"]).go().code(0).stdout();
    assert!(doctor.contains("cut off when Backstop was killed"), "{doctor}");
    let next = project.exec(&[], "exit 0").go().code(0);
    assert!(next.stderr().contains("what it had left running is ended"), "{}", next.stderr());
    let pids = pids(&project);
    assert!(pids.iter().all(|pid| !is_alive(pid)), "{pids:?}");
    let mut bystander = bystander.unwrap();
    assert!(bystander.try_wait().unwrap().is_none(), "an innocent process was ended");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    let events = project.events();
    let lost = events.iter().find(|e| e["kind"] == "attempt.lost").unwrap();
    assert_eq!(lost["attempt"], 1);
    let runs = project.run(&["runs", "--json"]).go().code(0).json();
    assert_eq!(runs["runs"][1]["outcome"], "lost");
    // Once is enough.
    assert_eq!(project.exec(&[], "exit 0").go().code(0).stderr(), "");
}

#[test]
fn a_run_inside_a_killed_one_does_not_end_itself() {
    let project = Project::new("orphans-nested");
    let inner = format!(
        "echo $$ > outer; while [ ! -f go ]; do sleep 0.05; done; {} exec -- sh -c 'echo inner' > said 2>&1; echo over > over",
        env!("CARGO_BIN_EXE_backstop")
    );
    let mut child = project.exec(&[], &inner).command().spawn().unwrap();
    until("it runs", || !project.read("outer").is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    project.file("go", "");
    until("the inner one ends by itself", || !project.read("over").is_empty());
    assert!(project.read("said").contains("inner"), "{}", project.read("said"));
}
