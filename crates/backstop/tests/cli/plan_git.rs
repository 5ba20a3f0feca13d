//! Plans in a repository: how work is committed, what happens where it meets other work, what of
//! the user's is never touched.

use crate::harness::Project;
use crate::plan_text::{PlanText, events, has, place, reasons, run, state};

/// A repository with a few files more.
fn project(name: &str) -> Project {
    let project = Project::git(name);
    project.file("shared.txt", "a\nb\nc\n");
    project.file("gone.txt", "to be deleted\n");
    project.sh("git add -A && git commit -q -m more");
    project
}

/// Adds, deletes and changes; then one more phase.
fn two_phases() -> PlanText {
    PlanText::new().sh("1", "", "echo one > one.txt; rm gone.txt; mkdir d; echo x > 'd/odd name.txt'").phase(
        "2",
        "1",
        "command = 'echo two > two.txt; echo d >> shared.txt'\nmessage = 'feat: two'",
    )
}

fn subjects(project: &Project) -> Vec<String> {
    project.sh("git log --format=%s").lines().map(str::to_owned).collect()
}

/// Waits in a phase until the work of another one is on the user's branch.
fn until_in(id: &str) -> String {
    format!("until git log --format=%s main | grep -q 'Step {id}'; do sleep 0.02; done")
}

#[test]
fn auto_makes_one_commit_a_phase_of_its_own_paths() {
    let project = project("git-auto");
    two_phases().write(&project);
    project.file("mine.txt", "the user's own\n");
    let done = run(&project, &["--commit", "auto"]).go().code(0);
    assert_eq!(subjects(&project), ["feat: two", "Phase 1: Step 1", "more", "base"]);
    let first = project.sh("git show --name-status --format= HEAD~1");
    assert_eq!(first, "A\td/odd name.txt\nD\tgone.txt\nA\tone.txt\n");
    assert_eq!(project.sh("git show --name-status --format= HEAD"), "M\tshared.txt\nA\ttwo.txt\n");
    assert_eq!(project.sh("git status --short"), "?? mine.txt\n?? plan.md\n");
    assert!(!project.path().join("gone.txt").exists());
    let head = project.sh("git rev-parse HEAD");
    assert_eq!(state(&project, "2")["commit"]["commit_sha"], head.trim());
    has(&done.stderr(), &[&head[..7], "feat: two"]);
    assert_eq!(project.sh("git worktree list").lines().count(), 1);
}

#[test]
fn a_tracked_plan_gets_its_marks_and_is_in_no_commit() {
    let project = project("git-tracked-plan");
    two_phases().write(&project);
    project.sh("git add plan.md && git commit -q -m plan");
    run(&project, &["--commit", "auto"]).go().code(0);
    assert_eq!(project.sh("git log --format=%s -- plan.md"), "plan\n");
    assert_eq!(project.sh("git status --short"), " M plan.md\n");
    assert_eq!(project.read("plan.md").matches("✅").count(), 2);
}

#[test]
fn single_makes_one_commit_at_the_end() {
    let project = project("git-single");
    two_phases().write(&project);
    run(&project, &["--commit", "single"]).go().code(0);
    assert_eq!(subjects(&project), ["Complete plan.md: 2 phases", "more", "base"]);
    has(&project.sh("git log -1 --format=%b"), &["- 1: Phase 1: Step 1", "- 2: feat: two"]);
    assert_eq!(project.sh("git status --short"), "?? plan.md\n");
    assert_eq!(project.sh("git show --name-status --format= HEAD").lines().count(), 5);
}

#[test]
fn none_leaves_the_work_in_the_tree() {
    let project = project("git-none");
    two_phases().write(&project);
    run(&project, &["--commit", "none"]).go().code(0);
    assert_eq!(subjects(&project), ["more", "base"]);
    let status = project.sh("git status --short -uall");
    has(&status, &[" D gone.txt", " M shared.txt", "?? \"d/odd name.txt\"", "?? one.txt", "?? two.txt"]);
}

#[test]
fn message_only_writes_a_script_that_commits_phase_by_phase() {
    let project = project("git-script");
    two_phases().write(&project);
    let done = run(&project, &["--commit", "message-only"]).go().code(0);
    assert_eq!(subjects(&project), ["more", "base"]);
    has(&done.stderr(), &["commits.sh"]);
    project.sh("sh .backstop/runs/plan/commits.sh");
    assert_eq!(subjects(&project), ["feat: two", "Phase 1: Step 1", "more", "base"]);
    assert_eq!(project.sh("git show --name-status --format= HEAD~1").lines().count(), 3);
    assert_eq!(project.sh("git status --short"), "?? plan.md\n");
}

#[test]
fn the_script_is_safe_for_any_name_and_message() {
    let project = project("git-script-safe");
    let name = "-rf $(touch hacked) 'q' \"d\" `id`\nline";
    PlanText::new()
        .phase(
            "1",
            "",
            "command = '''printf x > \"$NAME\"'''\nmessage = '''it's $(touch hacked) `id` \"q\" \\ !'''",
        )
        .write(&project);
    run(&project, &["--commit", "message-only"]).env("NAME", &format!("./{name}")).go().code(0);
    project.sh("sh .backstop/runs/plan/commits.sh");
    assert_eq!(project.sh("git log -1 --format=%s"), "it's $(touch hacked) `id` \"q\" \\ !\n");
    assert_eq!(project.sh("git ls-tree -z --name-only HEAD").split('\0').filter(|n| *n == name).count(), 1);
    assert!(!project.path().join("hacked").exists());
}

#[test]
fn commits_that_a_phase_makes_itself_are_a_part_of_its_one_commit() {
    let project = project("git-own-commits");
    let script = "echo a > a.txt; git add -A; git commit -q -m 'feat: my own'; echo b > b.txt";
    PlanText::new().sh("1", "", script).write(&project);
    let done = run(&project, &["--commit", "auto"]).go().code(0);
    assert_eq!(subjects(&project), ["feat: my own", "more", "base"]);
    assert_eq!(project.sh("git show --name-status --format= HEAD"), "A\ta.txt\nA\tb.txt\n");
    has(&done.stderr(), &["1 made a commit by itself"]);
}

#[test]
fn a_conflict_is_done_once_more_on_top_of_the_other_work() {
    let project = project("git-conflict");
    let second = format!(
        "echo \"$BACKSTOP_ATTEMPT\" >> $PLACE/two; if [ $BACKSTOP_ATTEMPT = 1 ]; then {}; sed -i s/b/two/ shared.txt; \
         else cat $BACKSTOP_RETRY_CONTEXT > $PLACE/context; sed -i s/one/one-two/ shared.txt; fi",
        until_in("1")
    );
    PlanText::new()
        .all("timeout = '20s'")
        .sh("1", "", "until [ -e $PLACE/two ]; do sleep 0.02; done; sed -i s/b/one/ shared.txt")
        .sh("2", "", &second)
        .write(&project);
    run(&project, &["--commit", "auto", "--parallel", "auto"]).go().code(0);
    assert_eq!(place(&project, "two"), "1\n2\n");
    assert_eq!(project.read("shared.txt"), "a\none-two\nc\n");
    assert_eq!(events(&project, "integration.conflicted").len(), 1);
    let context = place(&project, "context");
    has(&context, &["file_conflict", "shared.txt", "phase 2 changed lines 2-2", "phase 1 changed lines 2-2"]);
    assert_eq!(subjects(&project)[..2], ["Phase 2: Step 2", "Phase 1: Step 1"]);
}

#[test]
fn an_agent_is_shown_the_conflicting_lines() {
    let project = project("git-conflict-agent");
    let agent = format!(
        "cat > $PLACE/prompt-$BACKSTOP_ATTEMPT; if [ $BACKSTOP_ATTEMPT = 1 ]; then {}; sed -i s/b/two/ shared.txt; \
         else sed -i s/one/both/ shared.txt; fi; \
         echo \"{{\\\"phase_id\\\": \\\"2\\\", \\\"status\\\": \\\"complete\\\", \\\"tasks_completed\\\": 1}}\" > $BACKSTOP_RESULT",
        until_in("1")
    );
    let config = project.beside("home/.config/backstop");
    std::fs::create_dir_all(&config).unwrap();
    let command = serde_json::json!(["sh", "-c", agent]);
    std::fs::write(config.join("config.toml"), format!("[agent.fake]\ncommand = {command}\n")).unwrap();
    PlanText::new()
        .all("timeout = '20s'")
        .sh("1", "", "until [ -e $PLACE/prompt-1 ]; do sleep 0.02; done; sed -i s/b/one/ shared.txt")
        .phase("2", "", "agent = 'fake'")
        .write(&project);
    run(&project, &["--commit", "auto", "--parallel", "auto"]).go().code(0);
    assert!(!place(&project, "prompt-1").contains("## Conflict"));
    let told = place(&project, "prompt-2");
    let (_, conflict) = told.split_once("## Conflict").expect(&told);
    has(conflict, &["conflicting hunks", "<<<<<<<", "one", "two", ">>>>>>>"]);
    assert_eq!(project.read("shared.txt"), "a\nboth\nc\n");
}

#[test]
fn a_conflict_names_files_lines_and_phases_and_is_run_again_alone() {
    let project = project("git-conflict-alone");
    let second = format!(
        "echo x > $PLACE/two-$BACKSTOP_ATTEMPT; if [ $BACKSTOP_ATTEMPT = 1 ]; then {}; sed -i s/b/two/ shared.txt; \
         else test -e three.txt && sed -i s/one/both/ shared.txt; fi",
        until_in("1"),
    );
    PlanText::new()
        .all("timeout = '20s'")
        .sh("1", "", "until [ -e $PLACE/two-1 ]; do sleep 0.02; done; sed -i s/b/one/ shared.txt")
        .sh("2", "", &second)
        .sh("3", "", &format!("{}; sleep 1; echo three > three.txt", until_in("1")))
        .write(&project);
    let done = run(&project, &["--commit", "auto", "--parallel", "auto"]).go().code(0);
    has(
        &done.stderr(),
        &["file_conflict", "shared.txt: phase 2 changed lines 2-2, phase 1 changed lines 2-2"],
    );
    assert_eq!(reasons(&project), ["file_conflict"]);
    assert_eq!(
        project.read("shared.txt"),
        "a\nboth\nc\n",
        "its second attempt began when the others had ended"
    );
}

#[test]
fn gates_that_fail_only_on_the_merged_tree_are_a_conflict() {
    let project = project("git-merged-gates");
    let second = format!(
        "echo x >> $PLACE/two; if [ $BACKSTOP_ATTEMPT = 1 ]; then {}; else rm one.txt; fi; echo two > two.txt",
        until_in("1")
    );
    let gate = "gates = [{ name = 'one-of-them', check = 'test ! -e one.txt || test ! -e two.txt' }]";
    PlanText::new()
        .all("timeout = '20s'")
        .sh("1", "", "until [ -e $PLACE/two ]; do sleep 0.02; done; echo one > one.txt")
        .phase("2", "", &format!("command = '''{second}'''\n{gate}"))
        .write(&project);
    run(&project, &["--commit", "auto", "--parallel", "auto"]).go().code(0);
    assert_eq!(reasons(&project), ["file_conflict"]);
    let cause = events(&project, "error.classified")[0]["fault"]["cause"].to_string();
    has(&cause, &["one-of-them", "fails together with what came in meanwhile"]);
    assert!(project.path().join("two.txt").exists() && !project.path().join("one.txt").exists());
    let log = project.read(".backstop/runs/plan/logs/phase-2/attempt-1.log");
    has(&log, &["--- gates on the merged tree ---"]);
}

#[test]
fn what_the_user_commits_meanwhile_is_merged_with_the_work_and_checked() {
    for (mode, ours) in [("auto", "Phase 2: Step 2"), ("single", "Complete plan.md: 2 phases")] {
        let project = project(&format!("git-user-commits-{mode}"));
        let script = "cd $MAIN && echo mine > mine.txt && git add mine.txt && git commit -q -m mine; cd - && echo one > one.txt";
        PlanText::new().sh("1", "", script).sh("2", "1", "cat one.txt > two.txt").write(&project);
        run(&project, &["--commit", mode]).go().code(0);
        let log = project.sh("git log --format=%s");
        has(&log, &["mine", ours]);
        assert_eq!(
            (project.read("two.txt").as_str(), project.read("mine.txt").as_str()),
            ("one\n", "mine\n")
        );
        assert_eq!(project.sh("git status --porcelain -- . ':!plan.md' ':!.backstop'"), "", "{mode}");
    }
}

/// A phase renames a function while the user commits a test that uses the old name: each passes
/// alone, and git merges them without a conflict.
fn broken_together(name: &str) -> Project {
    let project = project(name);
    project.file("lib.sh", "add() { echo $(($1 + $2)); }\n");
    project
        .file("check.sh", ". ./lib.sh\nfor t in t_*.sh; do . ./$t || { echo \"FAIL: $t\"; exit 1; }; done\n");
    project.file("t_one.sh", "true\n");
    project.sh("git add -A . ':!plan.md' && git commit -q -m checked");
    let commit = "cd $MAIN && printf '[ \"$(add 1 2)\" = 3 ]\\n' > t_two.sh && git add t_two.sh && git commit -q -m mine; cd -";
    let gates = "gates = [{ name = 'check', check = 'sh check.sh' }]";
    let script = format!("command = \'\'\'{commit}; sed -i s/add/plus/ lib.sh\'\'\'\n{gates}");
    PlanText::new().phase("1", "", &script).write(&project);
    project
}

#[test]
fn a_merge_that_breaks_a_gate_never_lands() {
    let project = broken_together("git-broken-together");
    let done = run(&project, &["--commit", "auto"]).go().code(3);
    has(&done.stderr(), &["fails on both together", "gate check"]);
    assert_eq!(project.sh("git log -1 --format=%s"), "mine\n");
    // The same command does not land it either.
    run(&project, &["--commit", "auto"]).go().code(3);
    assert_eq!(project.sh("git log -1 --format=%s"), "mine\n");
    // The user puts it right on the branch; then it lands, and the tree is green.
    project.sh("printf '[ \"$(plus 1 2)\" = 3 ]\\n' > t_two.sh && git commit -q -a -m fixed");
    run(&project, &["--commit", "auto"]).go().code(0);
    project.sh("sh check.sh");
    has(&project.sh("git log --format=%s"), &["fixed", "Phase 1: Step 1"]);
}

#[test]
fn a_branch_that_the_user_left_is_not_followed() {
    let project = project("git-user-switches");
    PlanText::new().sh("1", "", "git -C $MAIN switch -q -c other; echo one > one.txt").write(&project);
    let done = run(&project, &["--commit", "auto"]).go().code(3);
    has(&done.stderr(), &["other is checked out now", "refs/backstop/r-"]);
    assert_eq!(subjects(&project), ["more", "base"]);
    assert!(!project.path().join("one.txt").exists());
}

#[test]
fn work_never_goes_over_a_change_of_the_users() {
    let project = project("git-in-the-way");
    for (mode, left) in [("auto", "more\n"), ("none", "more\n")] {
        project.sh("git checkout -q -- .");
        PlanText::new().sh("1", "", "echo mine > $MAIN/shared.txt; echo theirs > shared.txt").write(&project);
        let done = run(&project, &["--commit", mode, "--fresh", "--yes"]).go().code(3);
        has(&done.stderr(), &["changes of yours are in the way: shared.txt", "refs/backstop/r-"]);
        assert_eq!(project.read("shared.txt"), "mine\n", "{mode}");
        assert_eq!(project.sh("git log -1 --format=%s"), left, "{mode}");
    }
}

#[test]
fn a_dirty_tree_is_refused_unless_somebody_says_so() {
    let project = project("git-dirty");
    PlanText::new().sh("1", "", "cat shared.txt > seen.txt").write(&project);
    project.file("shared.txt", "changed\n");
    let refused = run(&project, &["--commit", "auto"]).go().code(2);
    has(&refused.stderr(), &["not committed: shared.txt", "--allow-dirty"]);
    assert!(!project.path().join(".backstop").exists());
    run(&project, &["--commit", "auto", "--allow-dirty", "--why", "only notes"]).go().code(0);
    assert_eq!(project.read("seen.txt"), "a\nb\nc\n", "phases begin from the last commit");
    assert_eq!(project.read("shared.txt"), "changed\n");
    let said = &events(&project, "override")[0];
    assert_eq!(
        (said["what"].as_str(), said["rationale"].as_str()),
        (Some("--allow-dirty"), Some("only notes"))
    );
}

#[test]
fn a_hook_that_rejects_halts_with_its_own_words() {
    let project = project("git-hook");
    PlanText::new().sh("1", "", "echo one > one.txt").write(&project);
    project.file(".git/hooks/pre-commit", "#!/bin/sh\necho 'no ticket in the message' >&2\nexit 1\n");
    project.sh("chmod +x .git/hooks/pre-commit");
    let done = run(&project, &["--commit", "auto"]).go().code(3);
    has(&done.stderr(), &["vcs_error", "no ticket in the message"]);
    assert_eq!(subjects(&project), ["more", "base"]);
    project.sh("rm .git/hooks/pre-commit");
    run(&project, &["--commit", "auto"]).go().code(0);
    assert_eq!(subjects(&project), ["Phase 1: Step 1", "more", "base"]);
}

#[test]
fn hooks_run_for_each_commit_of_a_phase() {
    let project = project("git-hook-runs");
    PlanText::new().sh("1", "", "echo one > one.txt").sh("2", "1", "echo two > two.txt").write(&project);
    project.file(".git/hooks/commit-msg", "#!/bin/sh\necho 'Checked: yes' >> \"$1\"\n");
    project.sh("chmod +x .git/hooks/commit-msg");
    run(&project, &["--commit", "auto"]).go().code(0);
    assert_eq!(project.sh("git log --format=%B").matches("Checked: yes").count(), 2);
}

#[test]
fn a_detached_head_goes_on_without_a_branch() {
    let project = project("git-detached");
    project.sh("git checkout -q --detach");
    PlanText::new().sh("1", "", "echo one > one.txt").write(&project);
    run(&project, &["--commit", "auto"]).go().code(0);
    assert_eq!(subjects(&project), ["Phase 1: Step 1", "more", "base"]);
    assert_eq!(project.sh("git log -1 --format=%s main"), "more\n");
    assert_eq!(project.read("one.txt"), "one\n");
}

#[test]
fn a_repository_without_a_commit_is_told_what_to_do() {
    let project = Project::plain("git-unborn");
    project.sh("git init -q -b main");
    PlanText::new().sh("1", "", "echo one > one.txt").write(&project);
    let done = run(&project, &["--commit", "auto"]).go().code(2);
    has(&done.stderr(), &["no commit yet", "git commit --allow-empty", "--isolation none"]);
    assert!(!project.path().join(".backstop").exists());
    run(&project, &["--commit", "none", "--isolation", "none"]).go().code(0);
    assert_eq!(project.read("one.txt"), "one\n");
}

#[test]
fn without_isolation_phases_run_in_the_tree_and_commit_their_own_paths() {
    let project = project("git-in-place");
    project.file("mine.txt", "the user's own\n");
    PlanText::new()
        .sh("1", "", "pwd > $PLACE/where; echo one > one.txt; rm gone.txt")
        .sh("2", "1", "echo two > two.txt")
        .write(&project);
    run(&project, &["--commit", "auto", "--isolation", "none"]).go().code(0);
    assert_eq!(place(&project, "where").trim(), project.path().canonicalize().unwrap().display().to_string());
    assert_eq!(subjects(&project), ["Phase 2: Step 2", "Phase 1: Step 1", "more", "base"]);
    assert_eq!(project.sh("git show --name-status --format= HEAD~1"), "D\tgone.txt\nA\tone.txt\n");
    assert_eq!(project.sh("git status --short"), "?? mine.txt\n?? plan.md\n");
}

#[test]
fn a_worktree_gets_its_links_and_copies_and_they_are_not_committed() {
    // What git ignores is given all the same.
    for (name, ignored) in [("git-provided", ""), ("git-provided-ignored", "node_modules\n.env\n")] {
        let project = project(name);
        project.settings("[isolation]\nlink = ['node_modules']\ncopy = ['.env']\n");
        project.file(".gitignore", ignored);
        project.sh(
            "git add -A && git commit -q -m config && mkdir node_modules && echo lib > node_modules/lib.js",
        );
        project.file(".env", "KEY=1\n");
        PlanText::new()
            .sh("1", "", "test -L node_modules; cat node_modules/lib.js .env > seen.txt; echo KEY=2 > .env")
            .write(&project);
        run(&project, &["--commit", "auto"]).go().code(0);
        assert_eq!(project.read("seen.txt"), "lib\nKEY=1\n");
        assert_eq!(project.read(".env"), "KEY=1\n", "a copy is a copy");
        assert_eq!(project.sh("git show --name-only --format= HEAD"), "seen.txt\n");
        assert_eq!(project.read("node_modules/lib.js"), "lib\n");
    }
}

#[test]
fn a_plan_in_a_subfolder_is_the_same_run_from_everywhere() {
    let project = project("git-subfolder");
    project.sh("mkdir docs");
    let plan = PlanText::new()
        .sh("1", "", "pwd > $PLACE/where; git rev-parse --show-toplevel > $PLACE/top; echo one > one.txt")
        .sh("2", "1", "test -e ready.txt");
    project.file("docs/plan.md", plan.text());
    let place_path = project.beside("place").display().to_string();
    std::fs::create_dir_all(&place_path).unwrap();
    let at_root = project.run(&["run", "docs/plan.md", "--commit", "auto"]).env("PLACE", &place_path);
    has(&at_root.go().code(3).stderr(), &["backstop run docs/plan.md --commit auto"]);
    assert_eq!(place(&project, "where"), place(&project, "top"), "phases run at the root of their worktree");
    project.file("ready.txt", "");
    project.sh("git add ready.txt && git commit -q -m ready");
    let below = project.run(&["run", "plan.md", "--commit", "auto"]).dir(&project.path().join("docs"));
    has(&below.env("PLACE", &place_path).go().code(0).stderr(), &["1 of 2 phases are complete"]);
    assert!(!project.path().join("docs/.backstop").exists() && project.path().join(".backstop").exists());
}

#[test]
fn a_fix_that_the_user_committed_is_taken_in() {
    for mode in ["auto", "single"] {
        let project = project(&format!("git-fix-{mode}"));
        PlanText::new()
            .sh("1", "", "echo one > one.txt")
            .sh("2", "1", "cat one.txt fix.txt > two.txt")
            .write(&project);
        run(&project, &["--commit", mode]).go().code(3);
        project.file("fix.txt", "fix\n");
        project.sh("git add fix.txt && git commit -q -m fix");
        run(&project, &["--commit", mode]).go().code(0);
        assert_eq!(project.read("two.txt"), "one\nfix\n", "{mode}");
        let want = if mode == "auto" {
            vec!["Phase 2: Step 2", "fix", "Phase 1: Step 1", "more", "base"]
        } else {
            vec!["Complete plan.md: 2 phases", "fix", "more", "base"]
        };
        assert_eq!(subjects(&project), want);
        assert_eq!(project.sh("git status --short"), "?? plan.md\n", "{mode}");
    }
}

#[test]
fn commits_that_do_not_go_together_with_finished_work_are_told_and_merged_by_the_user() {
    let project = project("git-diverged");
    PlanText::new()
        .sh("1", "", "sed -i s/b/one/ shared.txt")
        .sh("2", "1", "test -e ready.txt")
        .write(&project);
    run(&project, &["--commit", "single"]).go().code(3);
    project.sh(
        "sed -i s/b/mine/ shared.txt && touch ready.txt && git add -A . ':!plan.md' && git commit -q -m mine",
    );
    let done = run(&project, &["--commit", "single"]).go().code(3);
    let said = done.stderr();
    has(&said, &["have changed the same lines of", "shared.txt", "git merge "]);
    let (_, rest) = said.split_once("git merge ").expect(&said);
    let tip: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    project.sh(&format!("git merge -q {tip} >/dev/null 2>&1 || true; printf 'a\\nboth\\nc\\n' > shared.txt; git commit -q -a -m both"));
    run(&project, &["--commit", "single"]).go().code(0);
    assert_eq!(project.read("shared.txt"), "a\nboth\nc\n");
}

#[test]
fn a_merge_that_the_user_made_is_checked_before_the_run_is_complete() {
    let project = project("git-users-merge");
    project.file("check.sh", "grep -q good state.txt || { echo 'FAIL: state'; exit 1; }\n");
    project.sh("echo good > state.txt && git add check.sh state.txt && git commit -q -m checked");
    let commit = "cd $MAIN && sed -i s/b/mine/ shared.txt && git commit -q -a -m mine; cd -";
    let gates = "gates = [{ name = 'check', check = 'sh check.sh' }]";
    let phase = format!("command = '''{commit}; sed -i s/b/one/ shared.txt'''\n{gates}");
    PlanText::new().phase("1", "", &phase).write(&project);
    let said = run(&project, &["--commit", "auto"]).go().code(3).stderr();
    let (_, rest) = said.split_once("git merge ").expect(&said);
    let tip: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    // What is checked breaks in the merge itself.
    project.sh(&format!(
        "git merge -q {tip} >/dev/null 2>&1 || true; printf 'a\\nboth\\nc\\n' > shared.txt; \
         echo bad > state.txt; git commit -q -a -m both"
    ));
    for _ in 0..2 {
        let said = run(&project, &["--commit", "auto"]).go().code(3).stderr();
        let words = said.replace('║', "").split_whitespace().collect::<Vec<_>>().join(" ");
        has(
            &words,
            &["gate check", "fails on your merge of the two", "`sh check.sh` shows", "commit, and run"],
        );
        assert!(!said.contains("verified as it landed"), "{said}");
    }
    project.sh("echo good > state.txt && git commit -q -a -m fixed");
    has(&run(&project, &["--commit", "auto"]).go().code(0).stderr(), &["COMPLETE"]);
    assert_eq!(project.read("shared.txt"), "a\nboth\nc\n");
}

#[test]
fn what_the_user_breaks_after_a_good_merge_is_not_blamed_on_the_merge() {
    let project = project("git-after-merge");
    project.file("check.sh", "grep -q good state.txt || { echo 'FAIL: state'; exit 1; }\n");
    project.sh("echo good > state.txt && git add check.sh state.txt && git commit -q -m checked");
    let commit = "cd $MAIN && sed -i s/b/mine/ shared.txt && git commit -q -a -m mine; cd -";
    let gates = "gates = [{ name = 'check', check = 'sh check.sh' }]";
    let phase = format!("command = '''{commit}; sed -i s/b/one/ shared.txt'''\n{gates}");
    PlanText::new().phase("1", "", &phase).write(&project);
    let said = run(&project, &["--commit", "auto"]).go().code(3).stderr();
    let (_, rest) = said.split_once("git merge ").expect(&said);
    let tip: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    project.sh(&format!(
        "git merge -q {tip} >/dev/null 2>&1 || true; printf 'a\\nboth\\nc\\n' > shared.txt; \
         git commit -q -a -m both; echo bad > state.txt; git commit -q -a -m later"
    ));
    let said = run(&project, &["--commit", "auto"]).go().code(0).stderr();
    has(&said, &["gate check fails on your own commits"]);
}

#[test]
fn a_merge_under_way_is_not_disturbed() {
    let project = project("git-underway");
    project.sh("git switch -q -c other && sed -i s/b/other/ shared.txt && git commit -q -a -m other && git switch -q main");
    project.sh(
        "sed -i s/b/main/ shared.txt && git commit -q -a -m main; git merge other >/dev/null 2>&1 || true",
    );
    PlanText::new().sh("1", "", "echo one > one.txt").write(&project);
    let done = run(&project, &["--commit", "auto"]).go().code(2);
    has(&done.stderr(), &["`git merge` is under way", "git merge --abort"]);
    has(&project.read("shared.txt"), &["<<<<<<<"]);
}

#[test]
fn every_attempt_is_saved_on_a_ref_of_its_own() {
    let project = project("git-refs");
    PlanText::new()
        .sh("1", "", "echo $BACKSTOP_ATTEMPT > tried.txt; test $BACKSTOP_ATTEMPT = 2")
        .write(&project);
    run(&project, &["--commit", "auto"]).go().code(0);
    let refs = project.sh("git for-each-ref --format='%(refname)' refs/backstop");
    let of = |n: u32| {
        refs.lines().find(|name| name.ends_with(&format!("/1/{n}"))).map(str::to_owned).expect(&refs)
    };
    assert_eq!(project.sh(&format!("git show {}:tried.txt", of(1))), "1\n");
    assert_eq!(project.sh(&format!("git show {}:tried.txt", of(2))), "2\n");
    has(
        &project.run(&["plan", "diff", "1", "--attempt", "1"]).go().code(0).stdout(),
        &["+++ b/tried.txt", "+1"],
    );
}

/// A second run of what is complete changes nothing, however it was committed.
#[test]
fn what_is_complete_is_put_in_place_once() {
    let modes: [(&str, &[&str]); 4] = [
        ("auto", &["feat: two", "Phase 1: Step 1", "more", "base"]),
        ("single", &["Complete plan.md: 2 phases", "more", "base"]),
        ("message-only", &["more", "base"]),
        ("none", &["more", "base"]),
    ];
    for (mode, log) in modes {
        let project = project(&format!("git-again-{mode}"));
        two_phases().write(&project);
        run(&project, &["--commit", mode]).go().code(0);
        let before = project.sh("git status --short");
        run(&project, &["--commit", mode]).go().code(0);
        assert_eq!(subjects(&project), log);
        assert_eq!(project.sh("git status --short"), before, "{mode}");
    }
}

#[test]
fn a_script_that_was_run_leaves_nothing_to_do() {
    let project = project("git-script-again");
    PlanText::new()
        .sh("1", "", "echo one > one.txt; rm gone.txt")
        .sh("2", "1", "echo two > two.txt")
        .write(&project);
    run(&project, &["--commit", "message-only"]).go().code(0);
    project.sh("sh .backstop/runs/plan/commits.sh");
    run(&project, &["--commit", "message-only"]).go().code(0);
    assert_eq!(project.sh("git status --short"), "?? plan.md\n");
}

#[test]
fn without_isolation_the_script_commits_deletions_too() {
    let project = project("git-in-place-script");
    PlanText::new()
        .sh("1", "", "echo one > one.txt; rm gone.txt")
        .sh("2", "1", "echo two > two.txt")
        .write(&project);
    run(&project, &["--commit", "message-only", "--isolation", "none"]).go().code(0);
    project.sh("sh .backstop/runs/plan/commits.sh");
    assert_eq!(project.sh("git log --format=%s"), "Phase 2: Step 2\nPhase 1: Step 1\nmore\nbase\n");
    assert_eq!(project.sh("git status --short"), "?? plan.md\n");
}

#[test]
fn without_isolation_one_commit_has_the_phases_paths_alone() {
    let project = project("git-in-place-single");
    project.file("mine.txt", "x");
    PlanText::new()
        .sh("1", "", "echo one > one.txt; rm gone.txt")
        .sh("2", "1", "echo two > two.txt")
        .write(&project);
    run(&project, &["--commit", "single", "--isolation", "none"]).go().code(0);
    assert_eq!(project.sh("git log --format=%s"), "Complete plan.md: 2 phases\nmore\nbase\n");
    assert_eq!(project.sh("git status --short"), "?? mine.txt\n?? plan.md\n");
}

#[test]
fn a_hook_that_rejects_the_one_commit_halts_and_runs_no_phase_again() {
    let project = project("git-single-hook");
    PlanText::new().sh("1", "", "echo x >> $PLACE/ran; echo one > one.txt").write(&project);
    project.file(".git/hooks/pre-commit", "#!/bin/sh\necho 'no ticket' >&2\nexit 1\n");
    project.sh("chmod +x .git/hooks/pre-commit");
    let done = run(&project, &["--commit", "single"]).go().code(3);
    has(&done.stderr(), &["no ticket", "Every phase is complete"]);
    project.sh("rm .git/hooks/pre-commit");
    run(&project, &["--commit", "single"]).go().code(0);
    assert_eq!(place(&project, "ran"), "x\n");
    assert_eq!(project.sh("git log --format=%s"), "Complete plan.md: 1 phase\nmore\nbase\n");
}

#[test]
fn a_fix_is_taken_in_without_commits_too() {
    let project = project("git-none-meanwhile");
    PlanText::new().sh("1", "", "echo one > one.txt").sh("2", "1", "cat fix.txt > two.txt").write(&project);
    run(&project, &["--commit", "none"]).go().code(3);
    project.file("fix.txt", "fix\n");
    project.sh("git add fix.txt && git commit -q -m fix");
    run(&project, &["--commit", "none"]).go().code(0);
    assert_eq!(project.sh("git status --short"), "?? one.txt\n?? plan.md\n?? two.txt\n");
}

#[test]
fn a_script_goes_on_top_of_a_fix_of_the_users() {
    let project = project("git-script-meanwhile");
    PlanText::new().sh("1", "", "echo one > one.txt").sh("2", "1", "cat fix.txt > two.txt").write(&project);
    run(&project, &["--commit", "message-only"]).go().code(3);
    project.file("fix.txt", "fix\n");
    project.sh("git add fix.txt && git commit -q -m fix");
    run(&project, &["--commit", "message-only"]).go().code(0);
    project.sh("sh .backstop/runs/plan/commits.sh");
    assert_eq!(project.sh("git log --format=%s"), "Phase 2: Step 2\nPhase 1: Step 1\nfix\nmore\nbase\n");
    assert_eq!(project.sh("git status --short"), "?? plan.md\n");
}

#[test]
fn a_script_copes_with_phases_that_change_one_file() {
    let project = project("git-script-shared");
    PlanText::new()
        .sh("1", "", "echo one >> a.txt")
        .sh("2", "1", "echo two >> a.txt; rm gone.txt")
        .sh("3", "2", "echo three > gone.txt; rm a.txt")
        .write(&project);
    run(&project, &["--commit", "message-only"]).go().code(0);
    project.sh("sh .backstop/runs/plan/commits.sh");
    assert_eq!(project.sh("git status --short"), "?? plan.md\n");
}

#[test]
fn what_git_ignores_stays_in_the_worktree() {
    let project = project("git-ignored");
    project.file(".gitignore", "*.log\n");
    project.sh("git add -A && git commit -q -m ignore");
    PlanText::new()
        .sh("1", "", "echo x > build.log; echo one > one.txt")
        .sh("2", "1", "ls > $PLACE/ls; echo 2 > two.txt")
        .write(&project);
    run(&project, &["--commit", "auto"]).go().code(0);
    assert!(!project.path().join("build.log").exists());
    assert_eq!(project.sh("git status --short"), "?? plan.md\n");
}

#[test]
fn an_untracked_file_of_the_users_is_never_written_over() {
    for mode in ["auto", "single", "none"] {
        let project = project(&format!("git-untracked-{mode}"));
        project.file("one.txt", "mine\n");
        PlanText::new().sh("1", "", "echo one > one.txt").write(&project);
        let done = run(&project, &["--commit", mode]).go().code(3);
        has(&done.stderr(), &["one.txt", "refs/backstop/r-"]);
        assert_eq!(project.read("one.txt"), "mine\n", "{mode}");
    }
}

#[test]
fn in_place_what_a_failed_attempt_left_is_committed_with_the_phase() {
    let project = project("in-place-retry");
    PlanText::new()
        .sh("1", "", "[ -e a.txt ] || { echo a > a.txt; exit 1; }; echo b > b.txt")
        .write(&project);
    run(&project, &["--commit", "auto", "--isolation", "none"]).go().code(0);
    assert_eq!(project.sh("git show --name-only --format= HEAD"), "a.txt\nb.txt\n");
    assert_eq!(project.sh("git status --short"), "?? plan.md\n");
}

#[test]
fn in_place_an_agent_that_commits_all_by_itself_has_done_something() {
    let project = project("in-place-own");
    let folder = project.beside("home/.config/backstop");
    std::fs::create_dir_all(&folder).unwrap();
    let script = "echo a > a.txt; git add a.txt; git commit -q -m own; printf '{\"phase_id\": \"1\", \"status\": \"complete\", \"tasks_completed\": 1}' > $BACKSTOP_RESULT";
    std::fs::write(
        folder.join("config.toml"),
        format!("[agent.fake]\ncommand = {}\n", serde_json::json!(["sh", "-c", script])),
    )
    .unwrap();
    PlanText::new().phase("1", "", "agent = 'fake'").write(&project);
    run(&project, &["--commit", "auto", "--isolation", "none"]).go().code(0);
    assert_eq!(reasons(&project), Vec::<String>::new());
    assert_eq!(project.sh("git log --format=%s"), "own\nmore\nbase\n");
}

#[test]
fn phases_that_begin_together_do_not_disturb_each_other() {
    let project = Project::git("git-together");
    let plan = (1..=8).fold(PlanText::new(), |plan, n| plan.sh(&n.to_string(), "", "true"));
    plan.write(&project);
    for _ in 0..3 {
        run(&project, &["--commit", "none", "--parallel", "auto", "--jobs", "8", "--fresh", "--yes"])
            .go()
            .code(0);
    }
    assert_eq!(reasons(&project), Vec::<String>::new());
}

#[test]
fn the_one_commit_is_counted_and_stays_counted() {
    for (at, flags) in [&[][..], &["--isolation", "none"]].into_iter().enumerate() {
        let project = project(&format!("git-single-counted-{at}"));
        two_phases().write(&project);
        let flags = [&["--commit", "single"][..], flags].concat();
        for _ in 0..2 {
            let said = run(&project, &flags).go().code(0).stderr();
            has(&said, &["COMPLETE  2 phases · 1 commit on main", "One commit for all phases: "]);
        }
        assert_eq!(subjects(&project), ["Complete plan.md: 2 phases", "more", "base"]);
        // It is there still when the user has gone on.
        project.sh("echo mine > mine.txt; git add mine.txt; git commit -qm mine");
        has(&run(&project, &flags).go().code(0).stderr(), &["COMPLETE  2 phases · 1 commit on main"]);
    }
}
