//! Plans of other programs through the binary: what is understood, what is run, how marks are
//! written back.

use crate::harness::Project;

/// An agent that writes a file for its phase and reports success.
const AGENT: &str = r#"sh -c 'cat > prompt.$BACKSTOP_PHASE.txt; echo "{\"phase_id\":\"$BACKSTOP_PHASE\",\"status\":\"complete\",\"tasks_done\":[1]}" > "$BACKSTOP_RESULT"'"#;

const TASKS: &str = "# Tasks\r\n\r\n## Phase 1: Setup\r\n- [x] T001 Create it\r\n- [ ] T002 Lint it\r\n\r\n## Phase 2: Core\r\n\
    - [ ] T003 [P] Left\r\n- [ ] T004 [P] Right\r\n- [ ] T005 Join\r\n\r\n## Notes\r\nnone\r\n";

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn a_dry_run_says_what_was_understood_and_what_was_passed_over() {
    let project = Project::git("formats-dry");
    project.file("tasks.md", TASKS);
    let done = project.run(&["run", "tasks.md", "--dry-run", "--agent", AGENT]).go().code(0);
    has(
        &done.stdout(),
        &[
            "Spec Kit tasks · 5 tasks in 2 phases · run by task · 1 done",
            "wave 1 T002 Lint it",
            "wave 2 T003 ∥ T004 side by side",
            "wave 3 T005 Join",
            "checks: none",
            "estimate: unknown for 4 phases · agent sh · commits not said yet",
            "passed over: line 12: Notes",
        ],
    );
    let json = project.run(&["run", "tasks.md", "--dry-run", "--agent", AGENT, "--json"]).go().code(0).json();
    assert_eq!(json["reading"]["done"], 1);
    let by_phase =
        project.run(&["run", "tasks.md", "--dry-run", "--by", "phase", "--agent", AGENT]).go().code(0);
    has(&by_phase.stdout(), &["5 tasks in 2 phases · run by phase · 1 done"]);
    assert_eq!(json["reading"]["waves"][1]["side_by_side"], true);
    let by = project.run(&["run", "tasks.md", "--dry-run", "--agent", AGENT, "--by", "phase"]).go().code(0);
    has(&by.stdout(), &["wave 1 1 2 in order"]);
    let forced =
        project.run(&["run", "tasks.md", "--dry-run", "--agent", AGENT, "--format", "list"]).go().code(0);
    has(&forced.stdout(), &["list · 5 tasks"]);
    let wrong = project.run(&["run", "tasks.md", "--dry-run", "--format", "kirro"]).go().code(2);
    has(&wrong.stderr(), &["there is no format `kirro`", "did you mean `kiro`?"]);
}

#[test]
fn what_is_ticked_is_not_run_and_what_is_done_is_ticked() {
    let project = Project::git("formats-run");
    project.file("tasks.md", TASKS);
    let flags = ["run", "tasks.md", "--agent", AGENT, "--commit", "auto"];
    let done = project.run(&flags).go().code(0);
    has(&done.stderr(), &["read as Spec Kit tasks, by task: 5 phases", "done by the plan's own marks: T001"]);
    assert_eq!(project.read("tasks.md"), TASKS.replace("[ ]", "[x]"), "nothing but marks");
    assert!(!project.path().join("prompt.t001.txt").exists(), "it was done already");
    let prompt = project.read("prompt.t003.txt");
    has(&prompt, &["T003 [P] Left", "## Phase 2: Core", "phase T002 (Lint it)", "tasks.md"]);
    assert!(!prompt.contains("- [ ] T004"), "its part of the document, and no more\n{prompt}");
    // Set back, and begun anew.
    project.run(&["plan", "reset", "T005"]).go().code(0);
    has(&project.read("tasks.md"), &["- [ ] T005", "- [x] T004"]);
    project.run(&flags).go().code(0);
    let fresh: Vec<&str> = flags.iter().copied().chain(["--fresh", "--yes"]).collect();
    project.sh("git rm -q prompt.*.txt && git commit -q -m clean");
    project.run(&fresh).go().code(0);
    assert!(project.path().join("prompt.t001.txt").exists(), "--fresh runs what was marked as done");
}

#[test]
fn marks_that_are_there_count_in_our_own_form() {
    let project = Project::git("formats-own");
    project.file(
        "plan.md",
        "| Phase | Name | Depends On | Status |\n|-|-|-|-|\n| 1 | A | - | ✅ |\n| 2 | B | 1 | ⏭️ |\n| 3 | C | 2 | ⬜ |\n\n\
         ## Phase 1: A\n```backstop\ncommand = 'echo a > a.txt'\n```\n## Phase 2: B\n```backstop\ncommand = 'echo b > b.txt'\n```\n\
         ## Phase 3: C\n```backstop\ncommand = 'echo c > c.txt'\n```\n",
    );
    let done = project.run(&["run", "plan.md", "--commit", "auto"]).go().code(0);
    has(&done.stderr(), &["not run: done by the plan's own marks: 1; skipped by the plan's own marks: 2"]);
    let there = |name: &str| project.path().join(name).exists();
    assert_eq!([there("a.txt"), there("b.txt"), there("c.txt")], [false, false, true]);
    has(&project.read("plan.md"), &["| 1 | A | - | ✅ |", "| 2 | B | 1 | ⏭️ |", "| 3 | C | 2 | ✅ |"]);
}

#[test]
fn a_row_of_somebody_elses_table_is_the_task_where_there_is_no_section() {
    let project = Project::git("formats-rows");
    let table = "| Step | Task | Owner | Status |\n|-|-|-|-|\n| 1 | Write the schema | Kim | todo |\n| 2 | Write the API | Lee | todo |\n";
    project.file("plan.md", table);
    let agent = AGENT.replace(r#",\"tasks_done\":[1]"#, "");
    project.run(&["run", "plan.md", "--agent", &agent, "--commit", "auto"]).go().code(0);
    has(&project.read("prompt.2.txt"), &["Task: Write the API", "Owner: Lee"]);
}

#[test]
fn an_optional_step_that_nobody_did_is_not_ticked_off() {
    let project = Project::git("formats-optional");
    let plan = "- [ ] 1. Data\n  - [ ] 1.1 Models\n  - [ ]* 1.2 Unit tests\n- [ ] 2. API\n";
    project.file("tasks.md", plan);
    let agent = AGENT.replace(r#",\"tasks_done\":[1]"#, "");
    project.run(&["run", "tasks.md", "--by", "phase", "--agent", &agent, "--commit", "auto"]).go().code(0);
    let marked = project.read("tasks.md");
    has(&marked, &["- [x] 1. Data", "- [ ]* 1.2 Unit tests", "- [x] 2. API"]);
}

#[test]
fn several_stories_are_one_plan_however_it_is_named() {
    let project = Project::git("formats-bmad");
    let sprint = "project: Shop\ndevelopment_status:\n  epic-1: in-progress\n  1-1-setup: done\n  1-2-login: ready-for-dev # next\n  1-3-later: backlog\n";
    let story = "# Story 1.2: Login\n\nStatus: ready-for-dev\n\n## Acceptance Criteria\n1. works\n\n## Tasks / Subtasks\n- [ ] Form (AC: #1)\n";
    project.sh("mkdir stories");
    project.file("stories/sprint-status.yaml", sprint);
    project.file("stories/1-2-login.md", story);
    for plan in ["stories", "stories/sprint-status.yaml", "stories/1-2-login.md"] {
        let done = project.run(&["run", plan, "--dry-run", "--agent", AGENT]).go().code(0);
        has(
            &done.stdout(),
            &["BMAD stories · 2 phases · 1 done", "wave 1 1.2 Login", "1-3-later has no story file yet"],
        );
    }
    // The acceptance criterion is a task that the result checks off.
    let agent = AGENT.replace("[1]", "[1,2]");
    project.run(&["run", "stories", "--agent", &agent, "--commit", "auto"]).go().code(0);
    assert_eq!(project.read("stories/sprint-status.yaml"), sprint.replace("ready-for-dev", "done"));
    let marked = story.replace("Status: ready-for-dev", "Status: done").replace("- [ ]", "- [x]");
    assert_eq!(project.read("stories/1-2-login.md"), marked);
}

#[test]
fn json_keeps_its_layout() {
    let project = Project::git("formats-json");
    let tasks = "{\n\t\"master\" : { \"tasks\": [\n\t\t{\"id\":1,\"title\":\"A\",\"status\" : \"pending\",\"dependencies\":[]},\n\t\t{\"id\":2,\"title\":\"B\",\"status\":\"pending\",\"dependencies\":[1],\"x\":1e3}\n\t]}\n}";
    project.file("tasks.json", tasks);
    project.run(&["run", "tasks.json", "--agent", AGENT, "--commit", "auto"]).go().code(0);
    assert_eq!(project.read("tasks.json"), tasks.replace("pending", "done"));
}

#[test]
fn all_mistakes_are_told_at_once_with_line_column_and_what_would_be_accepted() {
    let project = Project::git("formats-errors");
    project.file(
        "plan.md",
        "| Phase | Depends On | Parallel With |\n|-|-|-|\n| 1 | 9 | |\n| 2 | 1 | 7 |\n| 2 | 1 | |\n| 3 | 3 | |\n\n## Phase 1\n```backstop\ntimeot = 1\n```\n",
    );
    let done = project.run(&["run", "plan.md", "--dry-run"]).go().code(2);
    has(
        &done.stderr(),
        &[
            "plan.md:3:7: phase 1 depends on `9`",
            "plan.md:4:11: phase 2 is parallel with `7`",
            "plan.md:5:3: phase 2 is already on line 4",
            "plan.md:6:7: phase 3 depends on itself",
            "plan.md:10:1: there is no setting `timeot`: did you mean `timeout`?",
        ],
    );
}

#[test]
fn a_normalised_plan_is_read_and_run() {
    let project = Project::git("formats-normalise");
    project.file("list.md", "1. First\n2. Second\n");
    let done = project.run(&["plan", "normalise", "list.md"]).go().code(0);
    project.file("new.md", done.stdout());
    let dry = project.run(&["run", "new.md", "--dry-run", "--agent", AGENT]).go().code(0);
    has(&dry.stdout(), &["Backstop plan · 2 phases · 0 done", "wave 1 1 2 in order"]);
}

#[test]
fn a_plan_that_an_agent_writes_is_checked_and_asked_for_once_more() {
    let project = Project::git("formats-new");
    project.file(
        "writer.sh",
        "#!/bin/sh\ncat > last-prompt.txt\nif [ -e asked ]; then\n  printf '| Phase | Name | Depends On |\\n|-|-|-|\\n| 1 | A | - |\\n| 2 | B | 1 |\\n\\n## Phase 1: A\\nx\\n\\n## Phase 2: B\\ny\\n'\nelse\n  touch asked\n  printf '| Phase | Name | Depends On |\\n|-|-|-|\\n| 1 | A | 7 |\\n'\nfi\n",
    );
    let done = project
        .run(&["plan", "new", "Make it fast", "--agent", "sh writer.sh", "--out", "made.md"])
        .go()
        .code(0);
    has(&done.stderr(), &["made.md: 2 phases, asked twice"]);
    has(&project.read("made.md"), &["| 2 | B | 1 |"]);
    has(&project.read("last-prompt.txt"), &["Make it fast", "phase 1 depends on `7`"]);
    let again =
        project.run(&["plan", "new", "x", "--agent", "sh writer.sh", "--out", "made.md"]).go().code(2);
    has(&again.stderr(), &["made.md is there already"]);
    project.sh("rm asked");
    project.file("writer.sh", "cat > /dev/null; echo no plan at all\n");
    let none = project.run(&["plan", "new", "x", "--agent", "sh writer.sh", "--out", "none.md"]).go().code(1);
    has(&none.stderr(), &["what the agent wrote is no plan"]);
    assert!(!project.path().join("none.md").exists(), "what cannot be read is not kept");
}

#[test]
fn agents_and_gates_work_where_the_plan_says_or_is_run() {
    let project = Project::git("formats-dir");
    project.sh("mkdir -p packages/a");
    project.file("packages/a/here.txt", "x\n");
    project.sh("git add -A && git commit -q -m more");
    let plan = |dir: &str| {
        format!(
            "| Phase | Name |\n|-|-|\n| 1 | A |\n\n## Phase 1: A\n```backstop\ncommand = 'test -e here.txt && echo x > made.txt'\ngates = [\"test -e made.txt\"]\n{dir}```\n"
        )
    };
    project.file("plan.md", plan("dir = \"packages/a\"\n"));
    project.run(&["run", "plan.md", "--commit", "auto"]).go().code(0);
    assert!(project.path().join("packages/a/made.txt").exists());
    project.sh("git rm -q packages/a/made.txt && git commit -q -m again");
    project.file("packages/a/own.md", plan(""));
    project.run(&["run", "own.md", "--commit", "auto"]).dir(&project.path().join("packages/a")).go().code(0);
    assert!(project.path().join("packages/a/made.txt").exists(), "the folder where it is run");
    let out = project.run(&["run", "plan.md", "--dir", "../x", "--dry-run"]).go().code(2);
    has(&out.stderr(), &["is not below the project"]);
}

#[test]
fn phases_work_in_submodules_and_their_work_lands_there() {
    let project = Project::git("formats-submodules");
    project.sh("git init -q ../inner && git -C ../inner -c user.name=a -c user.email=a@b commit -q --allow-empty -m inner");
    project.sh(
        "git -c protocol.file.allow=always submodule add -q ../inner lib/inner && git commit -q -m submodule",
    );
    project.file("plan.md", "1. [ ] One\n2. [ ] Two\n");
    let agent = r#"sh -c 'cat > /dev/null; test -e lib/inner/.git; echo work >> lib/inner/made.txt; echo "{\"phase_id\":\"$BACKSTOP_PHASE\",\"status\":\"complete\"}" > "$BACKSTOP_RESULT"'"#;
    project.run(&["run", "plan.md", "--agent", agent, "--commit", "auto"]).go().code(0);
    let made = std::fs::read_to_string(project.path().join("lib/inner/made.txt")).unwrap();
    assert_eq!(made, "work\nwork\n", "both phases, one after the other");
    let inner = project.sh("git -C lib/inner log --format=%s");
    assert_eq!(inner.lines().count(), 3, "a commit for each phase: {inner}");
    assert_eq!(project.sh("git status --porcelain -- lib"), "");
}

#[test]
fn what_an_agent_says_is_followed_as_text() {
    let project = Project::git("formats-watch");
    let agent = r#"sh -c 'cat > /dev/null; echo "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"I begin.\"}]}}"; echo x > made.txt; echo "{\"phase_id\":\"1\",\"status\":\"complete\"}" > "$BACKSTOP_RESULT"'"#;
    project.file("list.md", "- [ ] Only one\n");
    project.run(&["run", "list.md", "--agent", agent, "--commit", "auto"]).go().code(0);
    let done = project.run(&["plan", "watch", "1"]).go().code(0);
    has(&done.stdout(), &["I begin."]);
    assert!(!done.stdout().contains("\"type\""), "{}", done.stdout());
}

/// The lines of the box at the end of a run.
fn box_lines(text: &str) -> Vec<&str> {
    let start = text.find(['╔', '+']).unwrap_or(0);
    text[start..].lines().filter(|line| line.starts_with(['╔', '║', '╠', '╚', '|', '+'])).collect()
}

#[test]
fn an_ending_fits_one_screen_and_a_phase_has_its_details() {
    let project = Project::git("formats-ending");
    let items: String = (1..=40).map(|n| format!("{n}. [ ] Part {n}\n")).collect();
    project.file("list.md", items);
    let work = |fails_at: &str| {
        format!(
            r#"sh -c 'cat > /dev/null; if [ "$BACKSTOP_PHASE" = {fails_at} ]; then echo no such thing; exit 1; fi; echo x > made.$BACKSTOP_PHASE; echo "{{\"phase_id\":\"$BACKSTOP_PHASE\",\"status\":\"complete\"}}" > "$BACKSTOP_RESULT"'"#
        )
    };
    let run = |agent: &str, code| {
        let args = [
            "run",
            "list.md",
            "--agent",
            agent,
            "--commit",
            "none",
            "--isolation",
            "none",
            "--gates",
            "none",
        ];
        project.run(&args).go().code(code)
    };
    let halted = run(&work("30"), 3).stderr();
    let lines = box_lines(&halted);
    assert!((10..=42).contains(&lines.len()), "{} lines: {halted}", lines.len());
    has(&halted, &["and 25 more", "Phase 30: Part 30", "plan show PHASE"]);
    let shown = project.run(&["plan", "show", "30"]).go().code(0).stdout();
    has(
        &shown,
        &["Phase 30: Part 30", "failed", "2 attempts", "attempt 1: ", "attempt 2: ", "backstop plan logs 30"],
    );
    let json = project.run(&["plan", "show", "30", "--json"]).go().code(0).json();
    assert_eq!((json["phase_id"].as_str(), json["status"].as_str()), (Some("30"), Some("failed")));
    let done = run(&work("none"), 0).stderr();
    let lines = box_lines(&done);
    assert!((10..=30).contains(&lines.len()), "{} lines: {done}", lines.len());
    has(&done, &["Phases: 40", "and 36 more", "Attempts: 42 (1 phase retried)", "Files changed: 40"]);
    has(
        &project.run(&["plan", "show", "7"]).go().code(0).stdout(),
        &["Phase 7: Part 7", "complete", "1 attempt"],
    );
    project.run(&["plan", "show", "99"]).go().code(2);
}

#[test]
fn an_agent_may_be_the_path_of_a_program_and_a_diff_of_nothing_says_so() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::git("formats-path");
    project.file("list.md", "- [ ] Only one\n");
    let agent = project.beside("agent.sh");
    std::fs::write(&agent, "#!/bin/sh\ncat > /dev/null\necho segfault in the thing\nexit 1\n").unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    let agent = agent.display().to_string();
    project.run(&["run", "list.md", "--agent", &agent, "--commit", "auto"]).go().code(3);
    let diff = project.run(&["plan", "diff", "1"]).go().code(0).stdout();
    has(&diff, &["attempt 2 of phase 1 changed no file"]);
    let wrong = project.run(&["run", "list.md", "--agent", "zzzzzzzz", "--commit", "auto"]).go();
    has(&wrong.code(2).stderr(), &["there is no agent `zzzzzzzz`", "--agent 'my-agent"]);
}

#[test]
fn how_often_a_phase_is_tried_is_a_setting() {
    let agent = "sh -c 'cat > /dev/null; echo segfault in the thing; exit 1'";
    for (setting, attempts) in
        [("", 2), ("[profile.phase]\nattempts = 4\n", 4), ("[profile.phase]\nattempts = 1\n", 1)]
    {
        let project = Project::git("formats-retries");
        project.file("list.md", "- [ ] Only one\n");
        project.settings(setting);
        project.run(&["run", "list.md", "--agent", agent, "--commit", "auto"]).go().code(3);
        let json = project.run(&["plan", "show", "1", "--json"]).go().code(0).json();
        assert_eq!(json["total_attempts"].as_u64(), Some(attempts), "{setting}: {json}");
    }
}
