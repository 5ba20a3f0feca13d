//! kill -9 at every point of the journal of a plan, then the same command again: the end is that of
//! an uninterrupted run.
#![cfg(target_os = "linux")]

use crate::harness::{Project, is_alive};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;

/// Parallel phases, a retry, a deletion; each phase says outside of the tree that it ran.
const PLAN: &str = r#"# Plan

```backstop
gates = []
```

| Phase | Name  | Depends On | Parallel With | Status |
|-------|-------|------------|---------------|--------|
| 1     | Setup | -          |               | ⬜     |
| 2A    | Back  | 1          | 2B            | ⬜     |
| 2B    | Front | 1          | 2A            | ⬜     |
| 3     | End   | 2A, 2B     |               | ⬜     |

### Phase 1: Setup
- [ ] one
```backstop
command = 'echo "1 $$" >> "$TALLY"; echo one > one.txt'
```
### Phase 2A: Back
- [ ] two
```backstop
command = 'echo "2a $$" >> "$TALLY"; echo back > back.txt; rm -f base.txt'
```
### Phase 2B: Front
- [ ] three
```backstop
command = 'echo "2b $$" >> "$TALLY"; [ $BACKSTOP_ATTEMPT -gt 1 ] || { echo "error: not yet" >&2; exit 1; }; echo front > front.txt'
```
### Phase 3: End
- [ ] four
```backstop
command = 'echo "3 $$" >> "$TALLY"; cat one.txt back.txt front.txt > all.txt'
```
"#;

fn project(name: &str) -> Project {
    let project = Project::git(name);
    project.file("base.txt", "base\n");
    project.sh("git add -A && git commit -q -m more");
    project.file("plan.md", PLAN);
    project.file("mine.txt", "a file of the user's\n");
    project
}

fn run(project: &Project, mode: &str) -> crate::harness::Run {
    let tally = project.beside("tally").display().to_string();
    project.run(&["run", "plan.md", "--commit", mode]).env("TALLY", &tally)
}

/// How often each phase ran, and the processes.
fn tally(project: &Project) -> (BTreeMap<String, usize>, Vec<String>) {
    let text = std::fs::read_to_string(project.beside("tally")).unwrap_or_default();
    let (mut counts, mut pids) = (BTreeMap::new(), Vec::new());
    for (phase, pid) in text.lines().filter_map(|line| line.split_once(' ')) {
        *counts.entry(phase.to_owned()).or_default() += 1;
        pids.push(pid.to_owned());
    }
    (counts, pids)
}

/// What is to be the same however often it was killed: commits, files, marks.
fn end(project: &Project) -> (Vec<String>, String, String) {
    let log = project.sh("git log --format=%s");
    let mut subjects: Vec<String> = log.lines().map(str::to_owned).collect();
    // Two phases that run side by side come in in either order.
    subjects.sort();
    let files = project.sh("for f in *.txt; do echo \"$f: $(cat $f)\"; done; git status --short");
    (subjects, files, project.read("plan.md"))
}

fn complete(project: &Project) -> Vec<String> {
    let status = project.run(&["plan", "status", "--json"]).go();
    let Ok(value) = serde_json::from_str::<serde_json::Value>(&status.stdout()) else { return Vec::new() };
    let phases = value["phases"].as_array().cloned().unwrap_or_default();
    let done = phases.iter().filter(|phase| phase["status"] == "complete");
    done.map(|phase| phase["phase_id"].as_str().unwrap_or_default().to_lowercase()).collect()
}

fn every_point(mode: &str, remainder: u64, of: u64) {
    let whole = project(&format!("crash-plan-{mode}-{remainder}-whole"));
    run(&whole, mode).go().code(0);
    let want = end(&whole);
    assert!(want.2.matches("✅").count() == 4 && want.2.matches("[x]").count() == 4, "{}", want.2);
    for point in (1..).filter(|point| point % of == remainder) {
        assert!(point < 400, "it never ends by itself");
        let project = project(&format!("crash-plan-{mode}-{point}"));
        let output =
            run(&project, mode).env("BACKSTOP_CRASH_AT", &point.to_string()).command().output().unwrap();
        let crashed = output.status.signal() == Some(9);
        let (before, done) = (tally(&project).0, complete(&project));
        run(&project, mode).go().code(0);
        let (after, pids) = tally(&project);
        for phase in &done {
            assert_eq!(
                before.get(phase),
                after.get(phase),
                "point {point}: {phase} was complete and ran again"
            );
        }
        assert_eq!(end(&project), want, "point {point}");
        assert_eq!(project.read("mine.txt"), "a file of the user's\n");
        for pid in pids {
            assert!(!is_alive(&pid), "point {point}: {pid} is left running");
        }
        let worktrees = project.sh("git worktree list --porcelain");
        assert_eq!(worktrees.matches("worktree ").count(), 1, "point {point}: {worktrees}");
        if !crashed {
            println!("{mode}: {point} points");
            assert!(point > 12, "only {point} points were seen");
            break;
        }
    }
}

// Every point, in four tests that run side by side.

#[test]
fn plan_auto_points_from_1() {
    every_point("auto", 1, 4);
}

#[test]
fn plan_auto_points_from_2() {
    every_point("auto", 2, 4);
}

#[test]
fn plan_auto_points_from_3() {
    every_point("auto", 3, 4);
}

#[test]
fn plan_auto_points_from_4() {
    every_point("auto", 0, 4);
}

#[test]
fn plan_single_every_fourth_point() {
    every_point("single", 3, 4);
}

#[test]
fn plan_message_only_every_fourth_point() {
    every_point("message-only", 2, 4);
}

#[test]
fn what_was_committed_meanwhile_is_never_undone() {
    // Points at which work is handed in, integrated, landed.
    for (mode, point) in [("single", 8), ("none", 9), ("auto", 8), ("message-only", 30), ("auto", 24)] {
        let project = project(&format!("meanwhile-{mode}-{point}"));
        let killed =
            run(&project, mode).env("BACKSTOP_CRASH_AT", &point.to_string()).command().output().unwrap();
        assert_eq!(killed.status.signal(), Some(9), "{mode} {point}");
        project.file("user.txt", "theirs\n");
        project.sh("git add user.txt backstop.toml && git commit -q -m user");
        // What cannot be landed beside the user's commit is kept, said, and brought in by the same
        // command again.
        let first = run(&project, mode).go();
        if first.exit() == Some(3) {
            assert!(first.stderr().contains("refs/backstop/"), "{}", first.stderr());
            run(&project, mode).go().code(0);
        }
        assert_eq!(project.read("user.txt"), "theirs\n", "{mode} {point}");
        assert_eq!(project.sh("git log --format=%s -- user.txt").trim(), "user", "{mode} {point}");
        assert_eq!(project.read("all.txt"), "one\nback\nfront\n", "{mode} {point}");
    }
}
