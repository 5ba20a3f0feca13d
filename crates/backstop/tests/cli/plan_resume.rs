//! Halted, edited, killed, interrupted: the same command goes on, and says what it found.
#![cfg(target_os = "linux")]

use crate::harness::{Project, is_alive, until};
use crate::plan_text::{PlanText, end, events, has, place, run, signal, state};
use std::process::Child;

/// Phase 2 fails until `$PLACE/ready` is there; 3 waits for it.
fn halting() -> PlanText {
    PlanText::new()
        .sh("1", "", "echo 1 >> $PLACE/ran; echo one > one.txt")
        .sh("2", "1", "echo 2 >> $PLACE/ran; ls $PLACE/ready && echo two > two.txt")
        .sh("3", "2", "echo 3 >> $PLACE/ran; echo three > three.txt")
}

fn halted(name: &str) -> Project {
    let project = Project::git(&format!("resume-{name}"));
    halting().write(&project);
    run(&project, &["--commit", "auto"]).go().code(3);
    project
}

fn ready(project: &Project) {
    std::fs::write(project.beside("place/ready"), "").unwrap();
}

fn ran(project: &Project) -> String {
    place(project, "ran").lines().collect::<Vec<_>>().join(" ")
}

/// A finished run of three phases.
fn finished(name: &str) -> Project {
    let project = halted(name);
    ready(&project);
    run(&project, &["--commit", "auto"]).go().code(0);
    assert_eq!(ran(&project), "1 2 2 2 3");
    project
}

fn edit(project: &Project, id: &str, from: &str, to: &str) {
    let name = format!(".backstop/runs/plan/phases/phase-{id}.json");
    let text = project.read(&name);
    assert!(text.contains(from), "{from} is not in {text}");
    project.file(&name, text.replace(from, to));
}

#[test]
fn a_run_of_a_subfolder_that_was_killed_is_shown_and_goes_on_from_anywhere() {
    let project = Project::git("resume-subfolder");
    let kill = r#"pid=${BACKSTOP_RUN_MARK#*.}; kill -9 "${pid%%.*}"; sleep 5"#;
    let script = format!("echo half > half.txt; mkdir \"$PLACE/killed\" && {{ {kill}; }}; true");
    project.sh("mkdir -p pkg/a");
    project.file("pkg/a/plan.md", PlanText::new().sh("1", "", &script).text());
    // Another plan of that name, at the root.
    project.file("plan.md", PlanText::new().sh("other", "", "true").text());
    run(&project, &["--commit", "none"]).dir(&project.path().join("pkg/a")).go();
    let plan = project.path().canonicalize().unwrap().join("pkg/a/plan.md");
    let next = format!("next: backstop run {} --commit none --dir pkg/a", plan.display());
    let status = project.run(&["plan", "status"]).go().code(0).stdout();
    has(&status, &["interrupted", "cut off: 1", "backstop plan diff 1", &next]);
    let json = project.run(&["plan", "status", "--json"]).go().code(0).json();
    assert_eq!(json["cut_off"][0], "1", "{json}");
    let diff = project.run(&["plan", "diff", "1"]).go().code(0).stdout();
    has(&diff, &["+++ b/pkg/a/half.txt", "+half"]);

    let place = project.beside("place").display().to_string();
    project.run(&["run", "--resume-all"]).env("PLACE", &place).go().code(0);
    until("it is complete", || events(&project, "run.ended").iter().any(|end| end["outcome"] == "done"));
    assert_eq!(project.read("pkg/a/half.txt"), "half\n");
}

#[test]
fn nobody_watches_resume_all_so_it_starts_only_what_a_person_started() {
    let project = Project::git("resume-all-owner");
    let kill = r#"pid=${BACKSTOP_RUN_MARK#*.}; kill -9 "${pid%%.*}"; sleep 5"#;
    let plan = |last: &str| {
        PlanText::new()
            .sh("1", "", "true")
            .sh("2", "1", &format!("mkdir \"$PLACE/killed\" && {{ {kill}; }}; true"))
            .sh("3", "2", last)
    };
    plan("touch $PLACE/as-started").write(&project);
    run(&project, &["--commit", "none"]).go();
    let place_folder = project.beside("place").display().to_string();
    let all = || project.run(&["run", "--resume-all"]).env("PLACE", &place_folder).go();
    let is_left = |why: &[&str]| {
        let said = all().code(1).stderr();
        has(&said, &["warning:", "plan.md is left to you: "]);
        has(&said, why);
    };

    // What came with a `git pull` is nobody's word yet; what is complete may be told differently.
    let marked = project.read("plan.md");
    project.file("plan.md", marked.replace("as-started", "as-pulled"));
    is_left(&[
        "the plan has changed since it was started: 3",
        "hint: read the plan, then in ",
        "`backstop run ",
    ]);
    project.file("plan.md", marked.replacen("gates = []", "gates = []\nsetup = [\"touch pulled\"]", 1));
    is_left(&["the plan's settings for all phases have changed since it was started"]);
    project.sh("mv plan.md away.md");
    is_left(&["hint: mend it, then in "]);
    project.file("plan.md", &marked);

    // Only root can give a file away.
    if rustix::process::geteuid().is_root() {
        let give = |path: &str, uid: u32| {
            std::os::unix::fs::chown(project.path().join(path), Some(uid), None).unwrap();
        };
        for path in ["plan.md", ".git", "."] {
            give(path, 65534);
            is_left(&["belongs to another user (uid 65534)", "trust.safe_directories"]);
            give(path, 0);
        }
    }
    has(&all().code(0).stderr(), &["plan.md goes on (1 of 3 phases complete)"]);
    until("it is complete", || events(&project, "run.ended").iter().any(|end| end["outcome"] == "done"));
    assert!(project.beside("place/as-started").exists());
    assert!(!project.beside("place/as-pulled").exists());
}

#[test]
fn a_halt_says_what_was_done_what_was_not_and_how_to_go_on() {
    let project = Project::git("resume-summary");
    halting().write(&project);
    let said = run(&project, &["--commit", "auto"]).go().code(3).stderr();
    let head = project.sh("git rev-parse --short=7 HEAD");
    has(&said, &["BACKSTOP HALTED", "Phase 2 failed after retry", "Phase 1: Step 1", head.trim()]);
    has(&said, &["FAILED PHASE", "Attempts: 2/2", "No such file or directory", "phase-2/attempt-2.log"]);
    has(&said, &["Phase 3: Step 3", "BLOCKED", ".backstop/runs/plan", "Run: r-"]);
    has(&said, &["Run: backstop run plan.md --commit auto"]);
    let blocked = state(&project, "3");
    assert_eq!(
        (blocked["status"].as_str(), &blocked["error"]["blocking_phase"][0]),
        (Some("blocked"), &"2".into())
    );
}

#[test]
fn a_halt_is_data_too() {
    let project = Project::git("resume-json");
    halting().write(&project);
    let lines = run(&project, &["--commit", "auto", "--json"]).go().code(3).lines();
    let ending = lines.last().unwrap();
    assert_eq!(ending["schema"], 1);
    let text = ending.to_string();
    has(&text, &["backstop run plan.md --commit auto", "blocked", "\"completed\"", "\"failed\""]);
    assert_eq!(lines[lines.len() - 2]["kind"], "run.halted");
}

#[test]
fn the_same_command_goes_on_and_counts_anew() {
    let project = halted("counts");
    let said = run(&project, &["--commit", "auto"]).go().code(3).stderr();
    has(&said, &["1 of 3 phases are complete; attempts so far: 3"]);
    let phase = state(&project, "2");
    assert_eq!((phase["attempt"].as_u64(), phase["total_attempts"].as_u64()), (Some(2), Some(4)));
    ready(&project);
    run(&project, &["--commit", "auto", "--resume"]).go().code(0);
    let phase = state(&project, "2");
    assert_eq!((phase["attempt"].as_u64(), phase["total_attempts"].as_u64()), (Some(1), Some(5)));
    assert_eq!(ran(&project), "1 2 2 2 2 2 3");
    assert_eq!(project.sh("git log --format=%s").lines().count(), 4);
    for attempt in 1..=5 {
        assert!(
            project.path().join(format!(".backstop/runs/plan/logs/phase-2/attempt-{attempt}.log")).exists()
        );
    }
}

#[test]
fn what_is_finished_is_not_run_again() {
    let project = finished("finished");
    let said = run(&project, &["--commit", "auto"]).go().code(0).stderr();
    has(&said, &["3 of 3 phases are complete"]);
    assert_eq!(ran(&project), "1 2 2 2 3");
    assert_eq!(project.sh("git log --format=%s").lines().count(), 4);
}

#[test]
fn resume_without_a_run_is_an_error() {
    let project = Project::git("resume-nothing");
    halting().write(&project);
    let done = run(&project, &["--commit", "auto", "--resume"]).go().code(2);
    has(&done.stderr(), &["there is no run of plan.md to go on with", "leave --resume out"]);
    assert!(!project.path().join(".backstop").exists());
}

#[test]
fn a_fresh_start_has_to_be_confirmed_and_moves_the_old_state_aside() {
    let project = halted("fresh");
    let before = project.read(".backstop/runs/plan/phases/phase-2.json");
    let refused = run(&project, &["--commit", "auto", "--fresh"]).go().code(1);
    has(&refused.stderr(), &["a fresh start was not confirmed", "--yes"]);
    assert_eq!(project.read(".backstop/runs/plan/phases/phase-2.json"), before);
    ready(&project);
    run(&project, &["--commit", "auto", "--fresh", "--yes", "--why", "new idea"]).go().code(0);
    assert_eq!(project.read(".backstop/runs/plan.old-1/phases/phase-2.json"), before);
    assert_eq!(ran(&project), "1 2 2 1 2 3");
    assert_eq!(
        project.sh("git log --format=%s"),
        "Phase 3: Step 3\nPhase 2: Step 2\nPhase 1: Step 1\nbase\n"
    );
    let said = events(&project, "override");
    assert!(
        said.iter().any(|event| event["what"] == "--fresh" && event["rationale"] == "new idea"),
        "{said:?}"
    );
}

#[test]
fn a_finished_phase_whose_text_changed_is_named_and_run_again_only_when_asked() {
    let project = halted("edited");
    project.file("plan.md", project.read("plan.md").replace("echo one >", "echo uno >"));
    ready(&project);
    let said = run(&project, &["--commit", "auto"]).go().code(0).stderr();
    has(&said, &["1: changed in the plan since it was finished, and not run again; --rerun-changed does"]);
    assert_eq!(project.read("one.txt"), "one\n");
    run(&project, &["--commit", "auto", "--rerun-changed"]).go().code(0);
    assert_eq!(project.read("one.txt"), "uno\n");
    assert_eq!(ran(&project), "1 2 2 2 3 1");
    has(&events(&project, "override")[0]["what"].to_string(), &["--rerun-changed: 1 is run again"]);
}

#[test]
fn marks_that_backstop_made_are_no_change_of_the_plan() {
    let project = finished("marks");
    let said = run(&project, &["--commit", "auto", "--rerun-changed"]).go().code(0).stderr();
    assert!(!said.contains("changed in the plan"), "{said}");
    assert_eq!(ran(&project), "1 2 2 2 3");
}

#[test]
fn phases_may_come_and_go_between_runs() {
    let project = halted("phases");
    PlanText::new()
        .sh("1", "", "echo 1 >> $PLACE/ran; echo one > one.txt")
        .sh("3", "1", "echo 3 >> $PLACE/ran; echo three > three.txt")
        .sh("4", "3", "echo 4 >> $PLACE/ran; echo four > four.txt")
        .write(&project);
    let said = run(&project, &["--commit", "auto"]).go().code(0).stderr();
    has(&said, &["4: new in the plan", "2: no longer in the plan; what was done stays"]);
    assert_eq!(ran(&project), "1 2 2 3 4");
}

#[test]
fn a_status_set_to_pending_by_hand_is_run_again() {
    let project = finished("edit-pending");
    edit(&project, "3", "\"status\": \"complete\"", "\"status\": \"pending\"");
    let said = run(&project, &["--commit", "auto"]).go().code(0).stderr();
    has(&said, &["the status of 3 was set from complete to pending in its state file"]);
    assert_eq!(ran(&project), "1 2 2 2 3 3");
    assert!(events(&project, "override").iter().any(|event| event["by"] == "state file"));
}

#[test]
fn a_status_set_to_complete_by_hand_is_believed() {
    let project = halted("edit-complete");
    edit(&project, "2", "\"status\": \"failed\"", "\"status\": \"complete\"");
    run(&project, &["--commit", "auto"]).go().code(0);
    assert_eq!(ran(&project), "1 2 2 3");
}

#[test]
fn a_deleted_state_file_means_again() {
    let project = halted("edit-deleted");
    std::fs::remove_file(project.path().join(".backstop/runs/plan/phases/phase-1.json")).unwrap();
    ready(&project);
    let said = run(&project, &["--commit", "auto"]).go().code(0).stderr();
    has(&said, &["phase-1.json was deleted"]);
    assert_eq!(ran(&project), "1 2 2 1 2 3");
}

#[test]
fn deleted_views_are_written_again_and_nothing_is_run_again() {
    let project = finished("edit-folder");
    let before = state(&project, "2");
    std::fs::remove_dir_all(project.path().join(".backstop")).unwrap();
    run(&project, &["--commit", "auto"]).go().code(0);
    assert_eq!(ran(&project), "1 2 2 2 3");
    assert_eq!(state(&project, "2")["status"], before["status"]);
    assert_eq!(project.read(".backstop/.gitignore"), "*\n");
}

#[test]
fn nonsense_in_a_state_file_is_told_with_the_field_and_the_ways_out() {
    let project = halted("edit-nonsense");
    let name = ".backstop/runs/plan/phases/phase-2.json";
    let good = project.read(name);
    let cases = [
        (
            good.replace("\"failed\"", "\"done\""),
            "`status` must be one of pending, running, complete, failed, blocked",
        ),
        (good.replace("\"attempt\": 2", "\"attempt\": \"two\""), "`attempt` must be a number"),
        (good.replace("\"phase_id\": \"2\"", "\"phase_id\": \"7\""), "`phase_id` must be `2`"),
        ("{".to_owned(), "it is no JSON"),
        (String::new(), "it is no JSON"),
    ];
    for (text, says) in cases {
        assert_ne!(text, good, "{says}");
        project.file(name, text);
        let said = run(&project, &["--commit", "auto"]).go().code(1).stderr();
        has(&said, &["phase-2.json cannot be used", says, "correct the file; or delete it", "--fresh"]);
    }
    assert_eq!(ran(&project), "1 2 2", "nothing was begun");
    project.file(name, good);
    ready(&project);
    run(&project, &["--commit", "auto"]).go().code(0);
}

#[test]
fn another_commit_mode_is_refused() {
    let project = halted("mode");
    let done = run(&project, &["--commit", "single"]).go().code(2);
    has(&done.stderr(), &["began with --commit auto, not with --commit single", "--fresh"]);
    assert_eq!(ran(&project), "1 2 2");
}

/// A run whose first phase waits until somebody makes `$PLACE/go`.
fn waiting(name: &str) -> (Project, Child) {
    let project = Project::git(&format!("resume-{name}"));
    PlanText::new()
        .all("timeout = '30s'")
        .sh(
            "1",
            "",
            "echo $$ >> $PLACE/pids; until [ -e $PLACE/go ]; do sleep 0.02; done; echo one > one.txt",
        )
        .sh("2", "1", "echo two > two.txt")
        .write(&project);
    let stderr = std::fs::File::create(project.beside("stderr")).unwrap();
    let child = run(&project, &["--commit", "auto"]).command().stderr(stderr).spawn().unwrap();
    until("the phase runs", || !place(&project, "pids").is_empty());
    (project, child)
}

/// What a run that waits has written to standard error so far.
fn stderr(project: &Project) -> String {
    std::fs::read_to_string(project.beside("stderr")).unwrap()
}

/// Interrupts a run, and waits until it has heard that: two signals of one kind at once are one.
fn interrupt(project: &Project, child: &Child) {
    signal(child, "INT");
    until("the signal is heard", || stderr(project).contains("1 phase may end what it does"));
}

fn go(project: &Project) {
    std::fs::write(project.beside("place/go"), "").unwrap();
}

#[test]
fn a_second_run_is_told_who_holds_the_plan() {
    let (project, child) = waiting("two");
    let said = run(&project, &["--commit", "auto"]).go().code(1).stderr();
    has(&said, &["plan.md is being run by process", &child.id().to_string(), "backstop plan status"]);
    for args in [["plan", "reset", "1"], ["plan", "skip", "1"]] {
        has(&project.run(&args).go().code(1).stderr(), &["plan.md is being run by process"]);
    }
    has(&project.run(&["plan", "status"]).go().code(0).stdout(), &["running", &child.id().to_string()]);
    go(&project);
    assert_eq!(end(child).0, Some(0));
    assert_eq!(place(&project, "pids").lines().count(), 1);
}

#[test]
fn the_lock_of_a_run_that_died_is_as_good_as_free() {
    let (project, mut child) = waiting("dead-holder");
    child.kill().unwrap();
    child.wait().unwrap();
    // A process that it was just starting has the lock for a moment longer.
    let locks = project.state().join("locks");
    let mut files = std::fs::read_dir(&locks).unwrap().flatten().map(|entry| entry.path());
    let lock = files.find(|path| std::fs::read_to_string(path).unwrap().contains("\"run\"")).unwrap();
    let script = "import fcntl, sys, time; f = open(sys.argv[1], 'r+'); fcntl.flock(f, fcntl.LOCK_EX); \
        print('locked', flush=True); time.sleep(0.7)";
    let mut holder = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(lock)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut [0; 6]).unwrap();
    go(&project);
    run(&project, &["--commit", "auto"]).go().code(0);
    assert!(holder.wait().unwrap().success());
    assert_eq!(project.sh("git log --format=%s"), "Phase 2: Step 2\nPhase 1: Step 1\nbase\n");
}

#[test]
fn one_ctrl_c_lets_the_running_phase_end() {
    let (project, child) = waiting("ctrl-c");
    interrupt(&project, &child);
    go(&project);
    let code = end(child).0;
    assert_eq!(code, Some(130), "{}", stderr(&project));
    has(&stderr(&project), &["backstop run plan.md --commit auto"]);
    assert_eq!(state(&project, "1")["status"], "complete");
    assert_eq!(state(&project, "2")["status"], "pending");
    run(&project, &["--commit", "auto"]).go().code(0);
    assert_eq!(place(&project, "pids").lines().count(), 1, "it was finished");
    assert_eq!(project.sh("git log --format=%s"), "Phase 2: Step 2\nPhase 1: Step 1\nbase\n");
}

#[test]
fn a_second_ctrl_c_ends_what_runs_and_term_does_at_once() {
    for (name, last) in [("ctrl-c-twice", "INT"), ("term", "TERM"), ("hup", "HUP")] {
        let (project, child) = waiting(name);
        if last == "INT" {
            interrupt(&project, &child);
        }
        signal(&child, last);
        let code = end(child).0;
        assert_eq!(code, Some(130), "{name}: {}", stderr(&project));
        let pids = place(&project, "pids");
        assert!(!is_alive(&pids), "{name}: {pids} is left running");
        let phase = project.run(&["plan", "status"]).go().code(0).stdout();
        let phase = phase.lines().find_map(|line| line.strip_prefix("cut off: ")).unwrap_or_default();
        let phase = phase.split(';').next().unwrap_or_default();
        has(
            &project.run(&["plan", "show", phase]).go().code(0).stdout(),
            &["interrupted: what it left is kept"],
        );
        go(&project);
        run(&project, &["--commit", "auto"]).go().code(0);
        assert_eq!(place(&project, "pids").lines().count(), 2, "{name}");
        assert_eq!(project.sh("git log --format=%s").lines().count(), 3, "{name}");
    }
}

#[test]
fn a_halt_waits_for_running_phases_only_so_long() {
    let project = Project::git("resume-halt-timeout");
    PlanText::new()
        .sh("1", "", "until [ -e $PLACE/pid ]; do sleep 0.02; done; echo 'fatal: Authentication failed for https://example.invalid/' >&2; exit 1")
        .sh("2", "", "echo $$ > $PLACE/pid; sleep 1000")
        .write(&project);
    run(&project, &["--commit", "auto", "--parallel", "auto", "--halt-timeout", "300ms"]).go().code(3);
    assert!(!is_alive(&place(&project, "pid")));
    assert_eq!(state(&project, "2")["status"], "pending", "it is not its fault");
    assert_eq!(events(&project, "attempt.lost").len(), 1);
}

#[test]
fn a_halt_lets_running_phases_end_and_keeps_their_work() {
    let project = Project::git("resume-halt-sibling");
    PlanText::new()
        .sh("1", "", "until [ -e $PLACE/two ]; do sleep 0.02; done; echo 'fatal: Authentication failed for https://example.invalid/' >&2; touch $PLACE/failed; exit 1")
        .sh("2", "", "touch $PLACE/two; until [ -e $PLACE/failed ]; do sleep 0.02; done; sleep 0.3; echo two > two.txt")
        .sh("3", "2", "touch $PLACE/three")
        .write(&project);
    run(&project, &["--commit", "auto", "--parallel", "auto"]).go().code(3);
    assert_eq!(state(&project, "2")["status"], "complete");
    assert_eq!(project.read("two.txt"), "two\n");
    assert!(!project.beside("place/three").exists(), "nothing new begins");
}

#[test]
fn a_store_that_cannot_be_written_lets_nothing_begin() {
    let project = Project::git("resume-store");
    halting().write(&project);
    let file = project.beside("a-file");
    std::fs::write(&file, "").unwrap();
    let state = file.join("state").display().to_string();
    let done = run(&project, &["--commit", "auto"]).env("BACKSTOP_STATE_DIR", &state).go().code(1);
    has(&done.stderr(), &["a-file"]);
    assert_eq!(ran(&project), "");
    assert!(!project.path().join(".backstop").exists());
}

#[test]
fn a_state_file_that_is_deleted_after_the_end_means_again() {
    let project = Project::plain("probe-deleted");
    PlanText::new().sh("1", "", "echo x >> $PLACE/ran").write(&project);
    run(&project, &[]).go().code(0);
    std::fs::remove_file(project.path().join(".backstop/runs/plan/phases/phase-1.json")).unwrap();
    run(&project, &[]).go().code(0);
    assert_eq!(place(&project, "ran"), "x\nx\n");
}

#[test]
fn json_begins_with_the_beginning() {
    let project = Project::plain("probe-json");
    PlanText::new().sh("1", "", "true").write(&project);
    let lines = run(&project, &["--json"]).go().code(0).lines();
    assert_eq!(lines[0]["kind"], "run.started");
}

#[test]
fn log_begins_with_start_and_says_resume_and_override() {
    let project = Project::plain("probe-log");
    PlanText::new().sh("1", "", "test -e $PLACE/ready").write(&project);
    run(&project, &[]).go().code(3);
    std::fs::write(project.beside("place/ready"), "").unwrap();
    run(&project, &[]).go().code(0);
    let log = project.read(".backstop/runs/plan/logs/execution.log");
    has(&log, &[" START run=r-", " CONFIG ", " RESUME run=r-"]);
}

#[test]
fn a_fresh_start_says_that_files_are_moved() {
    let project = Project::plain("probe-fresh");
    PlanText::new().sh("1", "", "true").write(&project);
    run(&project, &[]).go().code(0);
    let said = run(&project, &["--fresh", "--yes"]).go().code(0).stderr();
    assert!(!said.contains("are removed"), "{said}");
}

#[test]
fn the_halt_says_everything_once() {
    let project = Project::plain("probe-box");
    PlanText::new().sh("1", "", "false").write(&project);
    let said = run(&project, &[]).go().code(3).stderr();
    assert_eq!(said.matches("To start fresh").count(), 1, "{said}");
}

#[test]
fn a_failure_is_learned_once_however_often_the_run_is_resumed() {
    let project = halted("learned");
    let seen = || {
        let stats = project.run(&["stats", "--json"]).go().code(0).json();
        let rows = stats["signatures"].as_array().unwrap().clone();
        assert_eq!(rows.len(), 1, "{stats}");
        ["seen", "retried", "cured"].map(|key| rows[0][key].as_u64().unwrap())
    };
    assert_eq!(seen(), [2, 1, 0]);
    project.run(&["plan", "skip", "2"]).go().code(0);
    run(&project, &["--commit", "auto"]).go().code(0);
    run(&project, &["--commit", "auto"]).go().code(0);
    assert_eq!(seen(), [2, 1, 0], "a skipped phase was not cured");
}
