//! Gates on the tree that a run starts from, and what a person does beside a run.

use crate::harness::{Project, until};
use crate::plan_text::{PlanText, events, has, reasons, run, state};

/// A project whose gate `check` names each failed test, as the user's configuration has it.
fn project(name: &str, tests: &[(&str, &str)]) -> Project {
    let project = Project::git(name);
    for (test, text) in tests {
        project.file(&format!("t_{test}.sh"), text);
    }
    // The Test Anything Protocol: each failed test has a name.
    project.file(
        "check.sh",
        "echo \"$BACKSTOP_PHASE\" >> \"$PLACE/checked\"\nn=0; bad=0\nfor t in t_*.sh; do n=$((n + 1)); \
         if sh \"$t\"; then echo \"ok $n - $t\"; else echo \"not ok $n - $t\"; bad=1; fi; done\necho \"1..$n\"\nexit $bad\n",
    );
    project.sh("git add -A && git commit -qm tests");
    let folder = project.beside("home/.config/backstop");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "[gates.test]\ncheck = [\"sh\", \"check.sh\"]\n").unwrap();
    project
}

/// A plan whose phases leave the gates to the configuration.
fn plan(project: &Project, phases: &[(&str, &str)]) {
    let mut plan = PlanText::new();
    let mut after = String::new();
    for (id, script) in phases {
        plan = plan.sh(id, &after, script);
        after = (*id).to_owned();
    }
    project.file("plan.md", plan.text().replace("gates = []\n", ""));
}

#[test]
fn a_red_base_is_named_and_a_phase_is_judged_by_what_it_adds() {
    let project = project("base-red", &[("old", "exit 1\n"), ("good", "true\n")]);
    plan(
        &project,
        &[
            ("1", "echo one > one.txt"),
            ("2", "test $BACKSTOP_ATTEMPT = 2 || echo 'exit 1' > t_new.sh; echo two > two.txt"),
        ],
    );
    let done = run(&project, &["--commit", "auto"]).go().code(0);
    has(&done.stderr(), &["gate test fails before the run (1 failure)", "no worse than on the base"]);
    has(&done.stderr(), &["each verified as it landed · fails on your own commits: test (t_old.sh)"]);
    // Only what the second phase added was blamed.
    assert_eq!(reasons(&project), ["test_failure"]);
    let error = events(&project, "error.classified");
    assert_eq!(error[0]["fault"]["facts"]["failed_tests"][0], "t_new.sh", "{}", error[0]);
    let base = events(&project, "base.checked");
    assert_eq!(base[0]["gates"][0]["failures"][0], "t_old.sh", "{}", base[0]);
}

#[test]
fn a_gate_of_the_whole_plan_that_is_red_on_the_base_blames_no_phase() {
    let project = project("base-plan-wide", &[("old", "exit 1\n"), ("good", "true\n")]);
    let gate = "gates = [{ name = 'test', check = 'sh check.sh' }]";
    let write = |phases: &[(&str, &str)]| {
        let plan = phases.iter().fold(PlanText::new(), |plan, (id, script)| {
            plan.sh(id, "", &format!("echo worked >> $PLACE/{id}; {script}"))
        });
        project.file("plan.md", plan.text().replace("gates = []", gate));
    };
    write(&[("1", "echo one > one.txt"), ("2", "test -e t_new.sh || echo 'exit 1' > t_new.sh")]);
    let done = run(&project, &["--commit", "auto"]).go().code(3);
    has(&done.stderr(), &["gate test fails before the run (1 failure)", "no worse than on the base"]);
    let worked = |id: &str| crate::plan_text::place(&project, id).lines().count();
    assert_eq!((worked("1"), worked("2")), (1, 2), "only what adds a failure is tried again");
    assert_eq!(state(&project, "1")["status"], "complete");
    // The same gate in a phase's own section is what that phase is for.
    let own = format!("command = 'echo three > three.txt'\n{gate}");
    PlanText::new().phase("3", "", &own).write(&project);
    let done = run(&project, &["--commit", "auto", "--fresh", "--yes"]).go().code(3);
    has(&done.stderr(), &["gate test fails before the run; its phase must mend that"]);
}

#[test]
fn the_ending_says_how_much_was_verified_and_what_is_red() {
    let project = project("base-ending", &[("good", "true\n")]);
    let config = project.beside("home/.config/backstop/config.toml");
    let lint = "[gates.lint]\ncheck = [\"./lint.sh\"]\n";
    std::fs::write(&config, std::fs::read_to_string(&config).unwrap() + lint).unwrap();
    let phase = |id: &str, gate: &str| format!("command = 'echo {id} > {id}.txt'\ngates = ['{gate}']");
    PlanText::new()
        .phase("1", "", &phase("one", "test"))
        .phase("2", "1", &phase("two", "test"))
        .phase("3", "2", &phase("three", "lint"))
        .write(&project);
    let said = run(&project, &["--commit", "auto"]).go().code(0).stderr();
    has(&said, &["2 of 3 phases verified as they landed", "gate lint could not run: its tool is missing"]);
    assert!(!said.contains("dependency_missing"), "{said}");

    // What the user commits while it runs comes in at the end, and is said to be red.
    let red = "cd \"$MAIN\" && echo exit 1 > t_mine.sh && git add t_mine.sh && git commit -qm mine";
    plan(&project, &[("1", &format!("echo four > four.txt; {red}"))]);
    std::fs::write(&config, "[gates.test]\ncheck = [\"sh\", \"check.sh\"]\n").unwrap();
    let args = ["--commit", "auto", "--fresh", "--yes"];
    let said = run(&project, &args).go().code(0).stderr();
    has(&said, &["each verified as it landed", "fails on your own commits: test (t_mine.sh)"]);
    let base = events(&project, "base.checked");
    assert_eq!(base.last().unwrap()["gates"][0]["failures"][0], "t_mine.sh", "{base:?}");
}

#[test]
fn a_phase_is_not_blamed_for_what_the_user_committed_since() {
    let project = project("base-users-red", &[("good", "true\n")]);
    plan(&project, &[("1", "test -e $PLACE/ready && echo one > one.txt"), ("2", "echo two > two.txt")]);
    run(&project, &["--commit", "auto"]).go().code(3);
    let place = project.beside("place");
    std::fs::write(place.join("ready"), "").unwrap();
    project.sh("echo 'exit 1' > t_mine.sh && git add t_mine.sh && git commit -q -m mine");
    let before = events(&project, "attempt.started").len();
    let done = run(&project, &["--commit", "auto"]).go().code(0);
    has(&done.stderr(), &["gate test fails on your own commits", "no worse than on the base"]);
    assert_eq!(events(&project, "attempt.started").len() - before, 2, "one attempt for each phase");
    let base = events(&project, "base.checked");
    assert_eq!(base.last().unwrap()["gates"][0]["failures"][0], "t_mine.sh", "{base:?}");
}

#[test]
fn what_the_user_broke_is_still_known_at_the_next_start() {
    let project = project("base-users-red-again", &[("good", "true\n")]);
    plan(&project, &[("1", "test -e $PLACE/ready && echo one > one.txt")]);
    run(&project, &["--commit", "auto"]).go().code(3);
    project.sh("echo 'exit 1' > t_mine.sh && git add t_mine.sh && git commit -q -m mine");
    run(&project, &["--commit", "auto"]).go().code(3);
    std::fs::write(project.beside("place").join("ready"), "").unwrap();
    run(&project, &["--commit", "auto"]).go().code(0);
    assert!(!reasons(&project).contains(&"test_failure".to_owned()), "{:?}", reasons(&project));
}

#[test]
fn a_green_base_is_not_checked_again_for_the_same_tree() {
    let project = project("base-cached", &[("good", "true\n")]);
    plan(&project, &[("1", "exit 1")]);
    run(&project, &["--commit", "auto"]).go().code(3);
    let checked =
        || std::fs::read_to_string(project.beside("place").join("checked")).unwrap().lines().count();
    let before = checked();
    run(&project, &["--commit", "auto", "--fresh", "--yes"]).go().code(3);
    assert_eq!(checked(), before, "the gate ran on the same tree again");
}

#[test]
fn a_tool_that_the_plan_asks_for_and_the_machine_lacks_halts_before_anybody_works() {
    let project = project("base-tool", &[("good", "true\n")]);
    let gates = "gates = [{ name = 'lint', check = 'no-such-linter-here .' }]";
    let phase = format!("command = 'echo worked >> $PLACE/worked'\n{gates}");
    PlanText::new().phase("1", "", &phase).write(&project);
    let done = run(&project, &["--commit", "auto"]).go().code(3);
    has(&done.stderr(), &["Nothing was begun", "no-such-linter-here"]);
    assert!(!project.beside("place").join("worked").exists());
    assert_eq!(reasons(&project), ["dependency_missing"]);
}

#[test]
fn a_phase_that_weakens_its_own_tests_is_flagged_and_one_that_touches_protected_files_halts() {
    let project = project("base-weakened", &[("good", "true\n")]);
    project.sh("mkdir tests && echo 'assert 1' > tests/test_a.py && git add -A && git commit -qm more");
    let work = project.beside("place");
    std::fs::create_dir_all(&work).unwrap();
    let script = |n: u32| format!("echo 'assert {n}' > tests/test_a.py; echo 'x = {n}  # noqa' > a.py\n");
    std::fs::write(work.join("work.sh"), script(2)).unwrap();
    let config = project.beside("home/.config/backstop/config.toml");
    let sink = "[notify.me]\ntype = \"command\"\ncommand = [\"sh\", \"-c\", \"cat >> $PLACE/told\"]\n";
    std::fs::write(&config, std::fs::read_to_string(&config).unwrap() + sink).unwrap();
    plan(&project, &[("1", "sh $PLACE/work.sh")]);
    let done = run(&project, &["--commit", "auto"]).go().code(0);
    has(
        &done.stderr(),
        &["changed the test file tests/test_a.py", "silences a finding in a.py", "Look at this"],
    );
    let finished = events(&project, "attempt.finished");
    assert_eq!(finished[0]["delivery"]["weakened"].as_array().unwrap().len(), 2, "{}", finished[0]);

    let told = || crate::plan_text::place(&project, "told");
    until("people are told", || told().contains("look at this: it changed the test file"));

    // A run that halts later says so as well.
    std::fs::write(work.join("work.sh"), script(4)).unwrap();
    plan(&project, &[("1", "sh $PLACE/work.sh"), ("2", "exit 1")]);
    let done = run(&project, &["--commit", "auto", "--fresh", "--yes"]).go().code(3);
    has(&done.stderr(), &["Look at this: 1 changed the test file tests/test_a.py"]);

    std::fs::write(work.join("work.sh"), script(3)).unwrap();
    let text = PlanText::new().all("protect = ['tests/**']").sh("1", "", "sh $PLACE/work.sh").text();
    project.file("plan.md", text.replace("gates = []\n", ""));
    let done = run(&project, &["--commit", "auto", "--fresh", "--yes"]).go().code(3);
    has(&done.stderr(), &["it changed protected files: tests/test_a.py"]);
    assert_eq!(project.read("tests/test_a.py"), "assert 4\n");
    let began = events(&project, "attempt.started");
    let last = began.last().unwrap();
    let of_last = began.iter().filter(|event| event["run"] == last["run"]).count();
    assert_eq!(of_last, 1, "it is not tried again");
}

#[test]
fn a_test_that_is_moved_away_is_flagged() {
    let project = project("base-moved", &[("good", "true\n")]);
    project.sh("mkdir tests && echo 'assert 1' > tests/test_a.py && git add -A && git commit -qm more");
    plan(&project, &[("1", "git mv tests/test_a.py a.txt")]);
    let done = run(&project, &["--commit", "auto"]).go().code(0);
    has(&done.stderr(), &["deleted the test file tests/test_a.py"]);
}

#[test]
fn protected_and_weakened_files_are_looked_at_in_the_folder_itself_too() {
    let project = project("base-in-place", &[("good", "true\n")]);
    project.sh("mkdir tests && echo 'assert 1' > tests/test_a.py && git add -A && git commit -qm more");
    let flags = ["--commit", "auto", "--isolation", "none"];
    plan(&project, &[("1", "rm tests/test_a.py")]);
    let done = run(&project, &flags).go().code(0);
    has(&done.stderr(), &["deleted the test file tests/test_a.py"]);
    // What a failed attempt left counts, too.
    let script = "mkdir -p tests; echo x > tests/new.py; test $BACKSTOP_ATTEMPT = 2";
    let text = PlanText::new().all("protect = ['tests/**']\nsetup = 'true'").sh("1", "", script).text();
    project.file("plan.md", text);
    let done = run(&project, &[&flags[..], &["--fresh", "--yes"]].concat()).go().code(3);
    has(&done.stderr(), &["it changed protected files: tests/new.py", "`setup` is not run"]);
}

#[test]
fn what_a_person_finished_by_hand_is_accepted_by_its_gates() {
    let project = project("base-accept", &[("good", "true\n")]);
    let gates = "gates = [{ name = 'has', check = 'test -e ready.txt' }]";
    let phase = format!("command = 'exit 1'\n{gates}");
    PlanText::new().phase("1", "", &phase).sh("2", "1", "cat ready.txt > two.txt").write(&project);
    run(&project, &["--commit", "auto"]).go().code(3);
    // Not done yet: its gate says so, and nobody works on it.
    let refused =
        project.run(&["plan", "accept", "1", "--why", "done by hand"]).env("PLACE", "/tmp").go().code(3);
    has(&refused.stderr(), &["has"]);
    project.sh("echo ready > ready.txt && git add ready.txt && git commit -qm mine");
    let done =
        project.run(&["plan", "accept", "1", "--why", "done by hand"]).env("PLACE", "/tmp").go().code(0);
    has(&done.stderr(), &["1: accepted", "COMPLETE"]);
    assert_eq!(project.read("two.txt"), "ready\n");
    assert_eq!(state(&project, "1")["status"], "complete");
    let said = events(&project, "override");
    assert_eq!(said.last().unwrap()["rationale"], "done by hand", "{said:?}");
}

#[test]
fn an_agent_that_finds_its_work_done_by_a_person_is_complete_if_the_gates_say_so() {
    let project = project("base-put-right", &[("good", "true\n")]);
    let agent = project.beside("agent.sh");
    let result = r#"{"phase_id": "1", "status": "complete", "tasks_total": 1, "tasks_completed": 1}"#;
    std::fs::write(&agent, format!("cat > /dev/null; echo '{result}' > $BACKSTOP_RESULT\n")).unwrap();
    let config = format!("[agent.mine]\ncommand = [\"sh\", \"{}\"]\n", agent.display());
    std::fs::write(project.beside("home/.config/backstop/config.toml"), config).unwrap();
    let gates = "agent = 'mine'\ngates = [{ name = 'has', check = 'test -e ready.txt' }]";
    PlanText::new().phase("1", "", gates).write(&project);
    run(&project, &["--commit", "auto"]).go().code(3);
    // It changes nothing again, and there is nothing left to change.
    project.sh("echo ready > ready.txt && git add ready.txt && git commit -qm mine");
    run(&project, &["--commit", "auto"]).go().code(0);
    assert_eq!(state(&project, "1")["status"], "complete");
}

#[test]
fn gates_are_run_on_the_tree_as_it_is_by_plan_verify() {
    let project = project("base-verify", &[("good", "true\n")]);
    plan(&project, &[("1", "true")]);
    let place = project.beside("place");
    std::fs::create_dir_all(&place).unwrap();
    let verify = |flags: &[&str]| {
        let mut args = vec!["plan", "verify", "--plan", "plan.md"];
        args.extend(flags);
        project.run(&args).env("PLACE", &place.display().to_string()).go()
    };
    has(&verify(&[]).code(0).stdout(), &["test: passed"]);
    project.file("t_bad.sh", "exit 1\n");
    let json: serde_json::Value = serde_json::from_str(&verify(&["--json"]).code(1).stdout()).unwrap();
    assert_eq!((&json["passed"], &json["gates"][0]["reason"]), (&false.into(), &"test_failure".into()));
    has(&verify(&["1"]).code(1).stdout(), &["test: test_failure"]);
    has(&verify(&["9"]).code(2).stderr(), &["there is no phase `9`"]);
    // Nobody works: nobody has to be able to.
    for (script, code) in [("exit 0\n", 0), ("exit 1\n", 1)] {
        project.file("check.sh", script);
        project.file("list.md", "- [ ] One\n- [ ] Two\n\n## Verification\n\n- `sh check.sh`\n");
        project.run(&["plan", "verify", "--plan", "list.md"]).go().code(code);
    }
}

#[test]
fn a_repository_that_was_made_anew_is_noticed() {
    let project = project("base-anew", &[("good", "true\n")]);
    PlanText::new().sh("1", "", "exit 1").write(&project);
    run(&project, &["--commit", "auto"]).go().code(3);
    project.sh("rm -rf .git && git init -q -b main && git add -A . ':!plan.md' && git commit -qm anew");
    let done = run(&project, &["--commit", "auto"]).go().code(2);
    has(&done.stderr(), &["this repository does not have commit", "--fresh"]);
    PlanText::new().sh("1", "", "echo one > one.txt").write(&project);
    run(&project, &["--commit", "auto", "--fresh", "--yes"]).go().code(0);
}

#[test]
fn a_worktree_is_set_up_once_for_the_same_inputs() {
    let project = project("base-setup", &[("good", "true\n")]);
    project.sh("echo 1 > deps.lock && git add -A && git commit -qm lock");
    let setup = "setup = 'echo set-up >> $PLACE/set-up; mkdir -p made; cp deps.lock made/'\nsetup_inputs = ['deps.lock']";
    PlanText::new()
        .all(setup)
        .sh("1", "", "test -e made/deps.lock && echo 1 > one.txt")
        .sh("2", "1", "echo 2 > deps.lock")
        .sh("3", "2", "cat made/deps.lock > three.txt")
        .write(&project);
    project.sh("echo made > .git/info/exclude");
    run(&project, &["--commit", "auto"]).go().code(0);
    assert_eq!(project.read("three.txt"), "2\n");
    let times = std::fs::read_to_string(project.beside("place").join("set-up")).unwrap().lines().count();
    assert_eq!(times, 2, "once at first, once for the new lock file");
}

#[test]
fn the_ending_does_not_call_verified_what_no_gate_has_passed_on() {
    let project = Project::git("base-never-green");
    let plan = PlanText::new().sh("1", "", "echo one > one.txt").text();
    project.file(
        "plan.md",
        plan.replace("gates = []", "gates = [{ name = 'good', check = 'test -f good.txt' }]"),
    );
    let said = run(&project, &["--commit", "auto"]).go().code(0).stderr();
    has(&said, &["1 commit on main; no gate has passed on them · fails on your own commits: good"]);
    assert!(!said.contains("verified as"), "{said}");
}

#[test]
fn what_the_user_has_mended_is_not_said_to_fail() {
    let project = Project::git("base-mended");
    let own = "command = 'echo one > one.txt'\ngates = [{ name = 'good', check = 'test -f good.txt' }]";
    PlanText::new().phase("1", "", own).write(&project);
    run(&project, &["--commit", "auto"]).go().code(3);
    project.sh("touch good.txt; git add good.txt; git commit -qm good");
    project.run(&["plan", "accept", "1"]).go().code(0);
    let said = run(&project, &["--commit", "auto"]).go().code(0).stderr();
    has(&said, &["COMPLETE  1 phase · ", "each verified as it landed"]);
    assert!(!said.contains("fails on your own commits"), "{said}");
}

#[test]
fn skipped_phases_are_counted_apart() {
    let project = Project::git("base-skipped");
    PlanText::new().sh("1", "", "exit 1").sh("2", "", "echo two > two.txt").write(&project);
    run(&project, &["--commit", "auto"]).go().code(3);
    project.run(&["plan", "skip", "1"]).go().code(0);
    let said = run(&project, &["--commit", "auto"]).go().code(0).stderr();
    has(&said, &["COMPLETE  1 phase · 1 skipped · 1 commit on main"]);
}
