//! The plans in `examples/` do what their texts say.

use crate::harness::{Done, Project, pristine, root};
use crate::plan_text::has;
use std::path::Path;

/// A project with the examples, and a temporary folder of its own. The marks are as they are
/// committed, even if somebody has run the plans where they are.
fn project(name: &str) -> Project {
    let project = Project::git(&format!("examples-{name}"));
    std::fs::create_dir_all(project.path().join("examples")).unwrap();
    std::fs::create_dir_all(project.beside("tmp")).unwrap();
    let entries = std::fs::read_dir(root().join("examples")).unwrap().flatten();
    for entry in entries.filter(|entry| entry.path().is_file()) {
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let copy = project.path().join("examples").join(entry.file_name());
        std::fs::write(copy, pristine(&text)).unwrap();
    }
    project.sh("git add -A && git commit -q -m examples");
    project
}

/// The lines that an example tells to type.
fn told(project: &Project, name: &str) -> Vec<String> {
    let text = project.read(&format!("examples/{name}"));
    let before_settings = text.split("```").next().unwrap();
    before_settings.lines().filter_map(|line| Some(line.strip_prefix("    ")?.to_owned())).collect()
}

/// Types a line of an example, in a shell.
fn typed(project: &Project, line: &str) -> Done {
    let binary = Path::new(env!("CARGO_BIN_EXE_backstop")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let tmp = project.beside("tmp").display().to_string();
    project.run(&["-c", line]).program("sh").env("PATH", &path).env("TMPDIR", &tmp).go()
}

#[test]
fn the_first_plan_runs_as_it_says() {
    let project = project("first");
    let lines = told(&project, "first.md");
    assert_eq!(lines.len(), 2, "{lines:?}");
    typed(&project, &lines[0]).code(0);
    let text = typed(&project, &lines[1]).code(0).stderr();
    has(
        &text,
        &[
            "2A Backend: attempt 1 failed: test_failure",
            "2A Backend: complete on attempt 2",
            "BACKSTOP COMPLETE",
        ],
    );
    let all = std::fs::read_to_string(project.beside("tmp/backstop-first/all.txt")).unwrap();
    assert_eq!(all, "hello, ada\nhello, grace\nADA\nGRACE\n");
    assert_eq!(project.sh("git status --short"), "", "the marks are in the copy");
    assert_eq!(std::fs::read_to_string(project.beside("tmp/first.md")).unwrap().matches("✅").count(), 5);
}

#[test]
fn the_campaign_runs_as_it_says() {
    let project = project("campaign");
    std::fs::create_dir_all(project.path().join("examples/campaign")).unwrap();
    for name in ["README.md", "agent.sh"] {
        let path = format!("examples/campaign/{name}");
        std::fs::copy(root().join(&path), project.path().join(&path)).unwrap();
    }
    let lines = told(&project, "campaign/README.md");
    let codes = [0, 0, 0, 4, 0, 0, 0, 0];
    assert_eq!(lines.len(), codes.len(), "{lines:?}");
    for (line, code) in lines.iter().zip(codes) {
        typed(&project, line).code(code);
    }
    let words = std::fs::read_to_string(project.beside("tmp/backstop-campaign/words.txt")).unwrap();
    assert_eq!(words, "hello hola\n");
}

#[test]
fn the_plan_that_recovers_does_and_shows_what_failed() {
    let project = project("recovers");
    let lines = told(&project, "recovers.md");
    assert_eq!(lines.len(), 3, "{lines:?}");
    typed(&project, &lines[0]).code(0);
    has(
        &typed(&project, &lines[1]).code(0).stderr(),
        &["1 Build: attempt 1 failed: compile_error", "complete on attempt 2"],
    );
    has(&typed(&project, &lines[2]).code(0).stdout(), &["expected ';' before '}' token"]);
    let second = lines[2].replace(" --attempt 1", "");
    has(&typed(&project, &second).code(0).stdout(), &["told before:", "compile_error"]);
    assert_eq!(project.sh("git status --short"), "");
}

#[test]
fn the_plan_that_halts_goes_on_when_its_file_is_there() {
    let project = project("halts");
    let lines = told(&project, "halts.md");
    assert_eq!(lines.len(), 4, "{lines:?}");
    typed(&project, &lines[0]).code(0);
    let text = typed(&project, &lines[1]).code(3).stderr();
    let again = format!("Run: backstop run {} --commit none", project.beside("tmp/halts.md").display());
    // A long path is broken into several lines of the box.
    let text = text.replace(['║', '\n'], " ").split_whitespace().collect::<Vec<_>>().join(" ");
    has(&text, &["BACKSTOP HALTED", "Phase 2 failed after retry", &again]);
    typed(&project, &lines[2]).code(0);
    has(&typed(&project, &lines[3]).code(0).stderr(), &["1 of 3 phases are complete", "BACKSTOP COMPLETE"]);
    assert!(!project.beside("tmp/backstop-halts-ready").exists());
    assert_eq!(project.sh("git status --short"), "");
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
        let plan = format!("examples/{name}");
        let json = project.run(&["run", &plan, "--dry-run", "--json"]).go().code(0).json();
        assert_eq!(json["warnings"], serde_json::json!([]), "{name}");
        if let Some(agent) = name.strip_prefix("agent-").and_then(|rest| rest.strip_suffix(".md")) {
            assert_eq!(json["levels"][0][0]["by"], agent, "{name}");
        }
    }
    assert!(seen >= 6, "{seen}");
    assert!(!project.path().join(".backstop").exists());
}
