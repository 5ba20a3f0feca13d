//! The plans in `examples/` do what their texts say.

use crate::harness::{Done, Project, root};
use crate::plan_text::has;

/// A project with the examples, and a temporary folder of its own.
fn project(name: &str) -> Project {
    let project = Project::git(&format!("examples-{name}"));
    std::fs::create_dir_all(project.path().join("examples")).unwrap();
    std::fs::create_dir_all(project.beside("tmp")).unwrap();
    for entry in std::fs::read_dir(root().join("examples")).unwrap().flatten() {
        std::fs::copy(entry.path(), project.path().join("examples").join(entry.file_name())).unwrap();
    }
    project.sh("git add -A && git commit -q -m examples");
    project
}

/// The command that a text names, without its program.
fn typed(project: &Project, line: &str) -> Done {
    let args: Vec<&str> = line.split(' ').skip(1).collect();
    let tmp = project.beside("tmp").display().to_string();
    project.run(&args).env("TMPDIR", &tmp).go()
}

#[test]
fn the_first_plan_runs_as_it_says() {
    let project = project("first");
    let line = "backstop run examples/first.md --commit none";
    has(&project.read("examples/first.md"), &[&format!("`{line}`")]);
    let said = typed(&project, line).code(0).stderr();
    has(
        &said,
        &[
            "2A Backend: attempt 1 failed: test_failure",
            "2A Backend: complete on attempt 2",
            "BACKSTOP COMPLETE",
        ],
    );
    let all = std::fs::read_to_string(project.beside("tmp/backstop-first/all.txt")).unwrap();
    assert_eq!(all, "hello, ada\nhello, grace\nADA\nGRACE\n");
    assert_eq!(project.sh("git status --short"), " M examples/first.md\n", "nothing but its marks");
    assert_eq!(project.read("examples/first.md").matches("✅").count(), 5);
}

#[test]
fn the_plan_that_recovers_does_and_shows_what_failed() {
    let project = project("recovers");
    let line = "backstop run examples/recovers.md --commit none";
    let look = "backstop plan logs 1 --attempt 1 --plan examples/recovers.md";
    has(&project.read("examples/recovers.md"), &[&format!("`{line}`"), &format!("`{look}`")]);
    has(
        &typed(&project, line).code(0).stderr(),
        &["1 Build: attempt 1 failed: compile_error", "complete on attempt 2"],
    );
    has(&typed(&project, look).code(0).stdout(), &["expected ';' before '}' token"]);
    let second = "backstop plan logs 1 --plan examples/recovers.md";
    has(&typed(&project, second).code(0).stdout(), &["told before:", "compile_error"]);
}

#[test]
fn the_plan_that_halts_goes_on_when_its_file_is_there() {
    let project = project("halts");
    let line = "backstop run examples/halts.md --commit none";
    assert_eq!(project.read("examples/halts.md").matches(line).count(), 2);
    let said = typed(&project, line).code(3).stderr();
    has(&said, &["BACKSTOP HALTED", "Phase 2 failed after retry", &format!("Run: {line}")]);
    std::fs::write(project.beside("tmp/backstop-halts-ready"), "").unwrap();
    has(&typed(&project, line).code(0).stderr(), &["1 of 3 phases are complete", "BACKSTOP COMPLETE"]);
    assert!(!project.beside("tmp/backstop-halts-ready").exists());
}

#[test]
fn every_example_can_be_looked_at() {
    let project = project("dry");
    let mut seen = 0;
    for entry in std::fs::read_dir(root().join("examples")).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".md") || name == "README.md" {
            continue;
        }
        seen += 1;
        let json = typed(&project, &format!("backstop run examples/{name} --dry-run --json")).code(0).json();
        assert_eq!(json["warnings"], serde_json::json!([]), "{name}");
        if let Some(agent) = name.strip_prefix("agent-").and_then(|rest| rest.strip_suffix(".md")) {
            assert_eq!(json["levels"][0][0]["by"], agent, "{name}");
        }
    }
    assert!(seen >= 6, "{seen}");
    assert!(!project.path().join(".backstop").exists());
}
