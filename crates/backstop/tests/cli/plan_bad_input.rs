//! Plans that cannot be run: one clear error with its place, what to do, and nothing is started or
//! written.

use crate::harness::Project;
use crate::plan_text::{PlanText, has, run};

/// A plan of these rows whose phases would leave a mark.
fn rows(rows: &str) -> String {
    format!(
        "# P\n\n```backstop\ngates = []\ncommand = 'touch started'\n```\n\n| Phase | Name | Depends On |\n|---|---|---|\n{rows}"
    )
}

/// A plan of one phase with these settings.
fn settings(toml: &str) -> String {
    format!("# P\n\n| Phase | Name |\n|---|---|\n| 1 | A |\n\n### Phase 1: A\n```backstop\n{toml}\n```\n")
}

#[track_caller]
fn nothing_happened(project: &Project) {
    assert!(!project.path().join("started").exists(), "something was started");
    assert!(!project.path().join(".backstop").exists(), "views were written");
    assert!(!project.state().exists(), "something was recorded");
}

#[test]
fn a_plan_that_is_wrong_is_refused_with_line_and_column() {
    let project = Project::plain("bad-plan");
    let cases: &[(&str, String, &[&str])] = &[
        (
            "empty",
            String::new(),
            &["plan.md:1:1: this is no plan that Backstop can read", "| Phase | Name |"],
        ),
        ("no plan", "# P\n\ntext\n".to_owned(), &["this is no plan that Backstop can read"]),
        ("no rows", rows(""), &["plan.md:8:1: the table of phases has no rows"]),
        (
            "duplicate",
            rows("| 2-A | A | - |\n| phase 2a | B | - |\n"),
            &["plan.md:11:3: phase", "is already on line 10"],
        ),
        (
            "unknown",
            rows("| 1A | A | - |\n| 2 | B | 1B |\n"),
            &["plan.md:11:11: phase 2 depends on `1B`", "did you mean `1A`?"],
        ),
        ("itself", rows("| 1 | A | 1 |\n"), &["plan.md:10:11: phase 1 depends on itself"]),
        (
            "cycle",
            rows("| 1 | A | 3 |\n| 2 | B | 1 |\n| 3 | C | 2 |\n"),
            &["plan.md:10:11", "1 -> 3 -> 2 -> 1", "line 12: phase 3 depends on 2"],
        ),
        ("toml", settings("command = 'x"), &["plan.md:9:", "string"]),
        (
            "setting",
            settings("comand = 'x'"),
            &["plan.md:9:1: there is no setting `comand`", "did you mean `command`?"],
        ),
        ("type", settings("command = 7"), &["plan.md:9:"]),
        (
            "duration",
            settings("command = 'x'\ntimeout = '10M'"),
            &["plan.md:10:", "`10M` is not a duration", "`10m`"],
        ),
        ("agent", settings("agent = 'claud'"), &["there is no agent `claud`", "did you mean `claude`?"]),
        ("nobody", settings("gates = []"), &["nobody works on 1", "--agent claude"]),
        ("gate", settings("command = 'x'\ngates = ['lnt']"), &["the gate `lnt`", "gates = []"]),
    ];
    for (name, text, says) in cases {
        project.file("plan.md", text);
        let done = run(&project, &[]).go().code(2);
        assert_eq!(done.stdout(), "", "{name}");
        has(&done.stderr(), says);
        assert_eq!(done.stderr().matches("error: ").count(), 1, "{name}: {}", done.stderr());
        has(&done.stderr(), &["hint: "]);
        nothing_happened(&project);
    }
}

#[test]
fn what_is_no_file_is_no_plan() {
    let project = Project::plain("bad-file");
    project.sh("mkdir docs && touch docs/feature.md && mkfifo pipe");
    for (given, code, says) in [
        ("nope.md", 1, &["cannot read nope.md"][..]),
        ("docs", 2, &["docs is a folder, not a plan", "did you mean `docs/feature.md`?"]),
        ("pipe", 2, &["pipe is no file that can be a plan"]),
        ("/dev/zero", 2, &["/dev/zero is no file that can be a plan"]),
    ] {
        let done = project.run(&["run", given]).go().code(code);
        has(&done.stderr(), says);
        nothing_happened(&project);
    }
    project.run(&["run"]).go().code(2);
}

#[test]
fn what_is_too_much_is_refused_before_it_is_read() {
    let project = Project::plain("bad-large");
    let file = std::fs::File::create(project.path().join("plan.md")).unwrap();
    file.set_len(100_000_000).unwrap();
    has(&run(&project, &[]).go().code(2).stderr(), &["plan.md has 100000000 bytes", "split the plan"]);
    let many: String = (1..=100_000).map(|n| format!("| {n} | n{n} | - |\n")).collect();
    project.file("plan.md", rows(&many));
    has(&run(&project, &[]).go().code(2).stderr(), &["more than 10000 phases"]);
    project.file("plan.md", [0xee, 0x7f, 0, 1, 2, 3].repeat(1000));
    has(&run(&project, &[]).go().code(2).stderr(), &["plan.md:1:1: this is not UTF-8"]);
    project.file("plan.md", rows(&format!("| 1 | {} | - |\n", "x".repeat(2_000_000))));
    let done = run(&project, &["--dry-run"]).go();
    assert!(done.stderr().len() + done.stdout().len() < 100_000, "what is shown is bounded");
    nothing_happened(&project);
}

#[test]
fn names_with_tricks_reach_neither_a_shell_nor_the_terminal() {
    let project = Project::git("bad-names");
    let name =
        "$(touch hacked) `touch hacked` ; touch hacked \u{1b}[2J\u{1b}]52;c;aGFja2Vk\u{7} \u{202e}evil";
    let text = format!(
        "# P\n\n```backstop\ngates = []\n```\n\n| Phase | Name | Depends On |\n|---|---|---|\n| 1 | {name} | - |\n\n### Phase 1: {name}\n- [ ] {name}\n```backstop\ncommand = 'echo x > one.txt'\n```\n"
    );
    project.file("plan.md", text);
    let all = [
        run(&project, &["--dry-run"]).go().code(0),
        run(&project, &["--commit", "message-only"]).go().code(0),
        project.run(&["plan", "status"]).go().code(0),
    ];
    for done in all {
        for bad in ['\u{1b}', '\u{7}', '\u{202e}'] {
            assert!(!done.stderr().contains(bad) && !done.stdout().contains(bad), "{:?}", done.stderr());
        }
    }
    project.sh("sh .backstop/runs/plan/commits.sh");
    has(&project.sh("git log -1 --format=%s"), &["$(touch hacked)"]);
    assert!(!project.path().join("hacked").exists());
    assert!(project.read("plan.md").contains(name), "the plan is as it was");
}

#[test]
fn an_error_shows_hostile_text_harmlessly() {
    let project = Project::plain("bad-hostile");
    project.file("plan.md", rows("| 1 | A | \u{1b}[2J\u{1b}]0;x\u{7}\u{202e} |\n"));
    let said = run(&project, &[]).go().code(2).stderr();
    assert!(!said.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{said:?}");
    nothing_happened(&project);
}

#[test]
fn flags_that_are_wrong_start_nothing() {
    let project = Project::plain("bad-flags");
    PlanText::new().sh("1", "", "touch started").write(&project);
    let cases: &[(&[&str], &[&str])] = &[
        (&["--commit", "atuo"], &["atuo", "auto"]),
        (&["--jobs", "0"], &["0"]),
        (&["--jobs", "many"], &["many"]),
        (&["--timeout", "10M"], &["`10M` is not a duration", "`10m`"]),
        (&["--agent", "claud", "--dry-run", "--resume", "--fresh"], &["--fresh"]),
        (&["--retry", "never"], &["never", "immediate"]),
        (&["--comit", "auto"], &["--comit", "--commit"]),
    ];
    for (flags, says) in cases {
        has(&run(&project, flags).go().code(2).stderr(), says);
        nothing_happened(&project);
    }
}
