//! `backstop run` and `backstop plan`: order, output, what phases are told, what is written where.

use crate::harness::Project;
use crate::plan_text::{PlanText, events, has, place, run, state};
use serde_json::Value;

/// Phase 2 fails the first time.
fn recovering() -> PlanText {
    PlanText::new()
        .sh("1", "", "echo hello from one")
        .sh("2", "1", "until grep -qs t.:.$BACKSTOP_ATTEMPT, $MAIN/.backstop/runs/plan/phases/phase-2.json; do sleep 0.02; done; cat $MAIN/.backstop/runs/plan/phases/phase-2.json > $PLACE/stage-$BACKSTOP_ATTEMPT; echo try $BACKSTOP_ATTEMPT; \
            [ $BACKSTOP_ATTEMPT = 2 ] || { echo 'FAILED test_a.py::test_b - AssertionError' >&2; echo '1 failed, 2 passed in 0.1s' >&2; exit 1; }")
        .sh("3", "2", "echo three >> $PLACE/ran")
}

fn recovered(name: &str) -> Project {
    let project = Project::plain(&format!("run-{name}"));
    recovering().write(&project);
    run(&project, &[]).go().code(0);
    project
}

/// A run outside git whose phase 2 fails for good.
fn halted(name: &str) -> Project {
    let project = Project::plain(&format!("run-{name}"));
    PlanText::new()
        .sh("1", "", "echo one >> $PLACE/ran")
        .sh("2", "1", "echo two >> $PLACE/ran; cat $PLACE/ready")
        .sh("3", "2", "echo three >> $PLACE/ran")
        .write(&project);
    run(&project, &[]).go().code(3);
    project
}

fn ran(project: &Project) -> String {
    place(project, "ran").lines().collect::<Vec<_>>().join(" ")
}

/// Without what differs from run to run.
fn timeless(line: &str) -> String {
    line.split(" after ").next().unwrap_or_default().to_owned()
}

#[test]
fn a_pipe_gets_a_line_for_each_change_and_nothing_on_standard_output() {
    let project = Project::plain("run-lines");
    recovering().write(&project);
    let done = run(&project, &[]).go().code(0);
    assert_eq!(done.stdout(), "");
    let stderr = done.stderr();
    let lines: Vec<String> = stderr.lines().take_while(|line| !line.is_empty()).map(timeless).collect();
    let want = [
        "1 Step 1: started",
        "1 Step 1: complete",
        "2 Step 2: started",
        "2 Step 2: attempt 1 failed: test_failure: AssertionError; retried now",
        "2 Step 2: attempt 2 of 2 started",
        "2 Step 2: complete on attempt 2",
        "3 Step 3: started",
        "3 Step 3: complete",
    ];
    assert_eq!(lines, want);
    has(&stderr, &["BACKSTOP COMPLETE", "Attempts: 4 (1 phase retried)"]);
    assert!(!stderr.contains('\u{1b}'), "no colour in a pipe");
}

#[test]
fn json_is_a_stream_of_events_with_the_ending_last() {
    let project = Project::plain("run-json");
    recovering().write(&project);
    let done = run(&project, &["--json"]).go().code(0);
    assert_eq!(done.stderr(), "");
    let lines = done.lines();
    let (ending, stream) = lines.split_last().unwrap();
    assert_eq!((ending["outcome"].as_str(), ending["schema"].as_u64()), (Some("complete"), Some(1)));
    assert_eq!(ending["phases"].as_array().unwrap().len(), 3);
    let seqs: Vec<u64> = stream.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(seqs.windows(2).all(|pair| pair[1] == pair[0] + 1), "{seqs:?}");
    assert_eq!(stream.last().unwrap()["kind"], "run.ended");
    let recorded = project.events();
    assert!(stream.iter().all(|event| recorded.contains(event)), "what is printed is what is recorded");
}

#[test]
fn what_failed_is_recorded_before_anything_is_done_about_it() {
    let project = recovered("order");
    let of_two: Vec<String> = project
        .events()
        .iter()
        .filter(|event| event["operation"] == "2")
        .map(|event| event["kind"].as_str().unwrap().to_owned())
        .collect();
    let want = [
        "attempt.started",
        "attempt.finished",
        "error.classified",
        "decision.made",
        "attempt.started",
        "attempt.finished",
        "recovery.attempted",
        "state.entered",
    ];
    assert_eq!(of_two, want);
}

#[test]
fn quiet_says_only_how_it_ended() {
    let project = Project::plain("run-quiet");
    recovering().write(&project);
    let done = run(&project, &["--quiet"]).go().code(0);
    assert_eq!(done.stdout(), "");
    assert!(!done.stderr().contains("started"), "{}", done.stderr());
    assert_eq!(done.stderr().lines().count(), 1, "{}", done.stderr());
    has(&done.stderr(), &["plan.md: COMPLETE  3 phases"]);
}

#[test]
fn a_dry_run_shows_the_order_and_does_nothing() {
    let project = Project::git("run-dry");
    PlanText::new()
        .phase("1", "", "command = 'touch $PLACE/started'\nfiles = ['a.txt']")
        .phase("2A", "1", "command = 'touch $PLACE/started'\nfiles = ['src/b.txt']")
        .phase("2B", "1", "command = 'touch $PLACE/started'\nfiles = ['src/b.txt']")
        .beside("2A")
        .write(&project);
    let before = project.read("plan.md");
    let shown = run(&project, &["--dry-run"]).go().code(0).stdout();
    has(
        &shown,
        &["3 phases · 2 levels", "order: 1, 2A, 2B", "src/b.txt", "nothing was run", "backstop run plan.md"],
    );
    let json = run(&project, &["--dry-run", "--json", "--commit", "auto"]).go().code(0).json();
    assert_eq!(json["order"], serde_json::json!(["1", "2A", "2B"]));
    assert_eq!((json["outcome"].as_str(), json["commit"].as_str()), (Some("dry_run"), Some("auto")));
    assert_eq!(json["overlaps"].as_array().unwrap().len(), 1, "{json}");
    assert!(!project.beside("place/started").exists() && !project.path().join(".backstop").exists());
    assert!(!project.state().exists(), "not even a store");
    assert_eq!(project.read("plan.md"), before);
    assert_eq!(project.sh("git for-each-ref refs/backstop"), "");
}

/// Says so where it is not alone.
const ALONE: &str = "mkdir $PLACE/lock || touch $PLACE/overlap; sleep 0.15; rmdir $PLACE/lock";

#[test]
fn phases_run_side_by_side_only_where_it_is_declared() {
    let project = Project::git("run-declared");
    PlanText::new().sh("1", "", ALONE).sh("2", "", ALONE).sh("3", "", ALONE).write(&project);
    run(&project, &["--commit", "none"]).go().code(0);
    assert!(!project.beside("place/overlap").exists());
}

/// Each waits for the other: only side by side do they end.
fn meeting() -> PlanText {
    let meet = |mine: &str, other: &str| {
        format!("touch $PLACE/{mine}; until [ -e $PLACE/{other} ]; do sleep 0.02; done")
    };
    PlanText::new().all("timeout = '20s'").sh("1", "", &meet("a", "b")).sh("2", "", &meet("b", "a"))
}

#[test]
fn declared_siblings_run_side_by_side() {
    let project = Project::git("run-beside");
    meeting().beside("1").write(&project);
    run(&project, &["--commit", "none"]).go().code(0);
}

#[test]
fn parallel_auto_uses_the_graph_alone_and_jobs_bounds_it() {
    let project = Project::git("run-auto");
    meeting().write(&project);
    run(&project, &["--commit", "none", "--parallel", "auto"]).go().code(0);
    let project = Project::git("run-jobs");
    PlanText::new().sh("1", "", ALONE).sh("2", "", ALONE).sh("3", "", ALONE).write(&project);
    run(&project, &["--commit", "none", "--parallel", "auto", "--jobs", "1"]).go().code(0);
    assert!(!project.beside("place/overlap").exists());
}

/// Where an event of a phase is among all of them.
fn at(events: &[Value], kind: &str, phase: &str, attempt: u64) -> usize {
    let is =
        |event: &&Value| event["kind"] == kind && event["operation"] == phase && event["attempt"] == attempt;
    let found = events.iter().position(|event| is(&event));
    found.unwrap_or_else(|| panic!("no {kind} of {phase}, attempt {attempt}"))
}

#[test]
fn a_retry_waits_for_the_siblings_unless_it_is_immediate() {
    for (flags, wait) in [
        (&["--retry", "immediate"][..], "until [ -e $PLACE/again ]; do sleep 0.02; done"),
        (&[], "until [ -e $PLACE/failed ]; do sleep 0.02; done; sleep 0.3"),
    ] {
        let project = Project::git(&format!("run-retry-{}", flags.len()));
        PlanText::new()
            .all("timeout = '20s'")
            .sh("1", "", "[ $BACKSTOP_ATTEMPT = 1 ] || { touch $PLACE/again; exit 0; }; until [ -e $PLACE/two ]; do sleep 0.02; done; touch $PLACE/failed; exit 1")
            .sh("2", "", &format!("touch $PLACE/two; {wait}"))
            .write(&project);
        let mut all = vec!["--commit", "none", "--parallel", "auto"];
        all.extend(flags);
        run(&project, &all).go().code(0);
        let events = project.events();
        let (retried, ended) =
            (at(&events, "attempt.started", "1", 2), at(&events, "attempt.finished", "2", 1));
        assert_eq!(retried < ended, !flags.is_empty(), "{flags:?}");
    }
}

#[test]
fn a_retry_is_told_six_things() {
    let project = Project::plain("run-context");
    PlanText::new()
        .sh("1", "", "if [ -z \"$BACKSTOP_RETRY_CONTEXT\" ]; then echo 'src/main.c:3:12: error: expected a semicolon' >&2; exit 1; fi; cat $BACKSTOP_RETRY_CONTEXT > $PLACE/context")
        .write(&project);
    run(&project, &[]).go().code(0);
    let context: Value = serde_json::from_str(&place(&project, "context")).unwrap();
    let mut keys: Vec<&str> = context.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    let want = [
        "previous_error_details",
        "previous_error_message",
        "previous_error_type",
        "retry_guidance",
        "tasks_completed",
        "tasks_total",
    ];
    assert_eq!(keys, want);
    assert_eq!(
        (context["previous_error_type"].as_str(), context["tasks_total"].as_u64()),
        (Some("compile_error"), Some(1))
    );
    has(context["previous_error_message"].as_str().unwrap(), &["expected a semicolon"]);
}

#[test]
fn a_phase_learns_where_it_stands() {
    let project = Project::plain("run-env");
    PlanText::new()
        .all("env = { COLOUR = 'blue' }")
        .sh("2 a", "", "echo \"$BACKSTOP_PHASE $BACKSTOP_ATTEMPT $BACKSTOP_SLOT $COLOUR $BACKSTOP_RUN_ID\" > $PLACE/told; [ -n \"$BACKSTOP_RESULT\" ]")
        .write(&project);
    run(&project, &[]).go().code(0);
    let id = project.events()[0]["run"].as_str().unwrap().to_owned();
    assert_eq!(place(&project, "told"), format!("2a 1 1 blue {id}\n"));
}

/// Odd spacing, columns of one's own, boxes that are no tasks, no end of line at the end.
const ODD: &str = "---\ntitle: x\n---\n# Plan  \n\n|Status|  Phase |Owner| Name|Depends On |\n|:--|---|---|:-:|---|\n| ⬜ |1|ann | First|none|\n| ⬜ |2|bob \\| eve| Second|1|\n\n\
    ## Phase 1: First\n\n* [ ]   one  \n\t- [ ] one and a half\n```\n- [ ] not a task\n```\n~~~backstop\ncommand = 'true'\n~~~\n\n\n## Phase 2: Second\n1. [ ] two\n- [X] done before\n\n```backstop\ncommand = 'true'\n```\ntail without an end";

#[test]
fn only_marks_are_changed_in_the_plan() {
    for (name, text) in
        [("lf", ODD.to_owned()), ("crlf", ODD.replace('\n', "\r\n")), ("bom", format!("\u{feff}{ODD}"))]
    {
        let project = Project::plain(&format!("run-marks-{name}"));
        project.file("plan.md", &text);
        run(&project, &[]).go().code(0);
        let want = text
            .replace("⬜", "✅")
            .replace("[ ]   one", "[x]   one")
            .replace("[ ] one and", "[x] one and")
            .replace("[ ] two", "[x] two");
        assert_eq!(project.read("plan.md"), want, "{name}");
    }
}

#[test]
fn what_failed_and_what_waits_is_marked_too() {
    let project = halted("marks-halted");
    let plan = project.read("plan.md");
    assert_eq!(
        (plan.matches("✅").count(), plan.matches("❌").count(), plan.matches("[x]").count()),
        (1, 1, 1),
        "{plan}"
    );
}

#[test]
fn the_execution_log_tells_the_story_line_by_line() {
    let project = recovered("log");
    let log = project.read(".backstop/runs/plan/logs/execution.log");
    let words: Vec<&str> = log
        .lines()
        .map(|line| line.split(' ').nth(1).unwrap())
        .filter(|w| *w != "START" && *w != "CONFIG")
        .collect();
    let want = [
        "PHASE_START",
        "PHASE_COMPLETE",
        "PHASE_START",
        "PHASE_FAIL",
        "RETRY",
        "PHASE_START",
        "PHASE_COMPLETE",
        "PHASE_START",
        "PHASE_COMPLETE",
        "COMPLETE",
    ];
    assert_eq!(words, want);
    has(&log, &["PHASE_FAIL phase=2 attempt=1 type=test_failure message=AssertionError"]);
    has(&log, &["RETRY phase=2 attempt=2 of=2", "COMPLETE phases=3"]);
}

#[test]
fn the_log_of_every_attempt_is_kept() {
    let project = recovered("logs");
    let log = |n: u32| project.read(&format!(".backstop/runs/plan/logs/phase-2/attempt-{n}.log"));
    // Two streams have no order between them.
    has(&log(1), &["try 1\n", "FAILED test_a.py::test_b - AssertionError\n", "1 failed, 2 passed in 0.1s\n"]);
    assert_eq!(log(2), "try 2\n");
}

#[test]
fn a_state_file_has_the_known_shape_in_all_its_stages() {
    let project = recovered("stages");
    let stage = |name: &str| -> Value { serde_json::from_str(&place(&project, name)).unwrap() };
    let running = stage("stage-1");
    assert_eq!((running["status"].as_str(), running["attempt"].as_u64()), (Some("running"), Some(1)));
    assert_eq!(running["error"], Value::Null);
    let again = stage("stage-2");
    assert_eq!((again["status"].as_str(), again["attempt"].as_u64()), (Some("running"), Some(2)));
    assert_eq!((again["phase_id"].as_str(), again["max_attempts"].as_u64()), (Some("2"), Some(2)));
    assert_eq!(again["error"]["attempt_1"]["type"], "test_failure");
    let complete = state(&project, "2");
    assert_eq!((complete["status"].as_str(), complete["attempt"].as_u64()), (Some("complete"), Some(2)));
    assert_eq!(complete["error"]["resolved_on_retry"], true);
    assert_eq!(complete["dependencies"], serde_json::json!({ "depends_on": ["1"], "blocks": ["3"] }));
    let project = halted("stages-failed");
    let failed = state(&project, "2");
    assert_eq!(
        (failed["status"].as_str(), failed["error"]["final"].as_str()),
        (Some("failed"), Some("Failed after maximum retries"))
    );
    assert!(
        failed["error"]["attempt_1"]["type"].is_string()
            && failed["error"]["attempt_2"]["message"].is_string()
    );
}

#[test]
fn views_stay_out_of_version_control() {
    let project = recovered("ignored");
    assert_eq!(project.read(".backstop/.gitignore"), "*\n");
    let config: Value = serde_json::from_str(&project.read(".backstop/runs/plan/config.json")).unwrap();
    assert_eq!(
        (config["phases"]["completed"].as_u64(), config["plan_path"].as_str()),
        (Some(3), Some("plan.md"))
    );
}

#[test]
fn status_says_where_each_phase_stands() {
    let project = halted("status");
    let shown = project.run(&["plan", "status"]).go().code(0).stdout();
    has(&shown, &["halted", "1 of 3", "Step 2", "Step 3", "backstop run plan.md"]);
    let json = project.run(&["plan", "status", "--json"]).go().code(0).json();
    let states: Vec<&str> =
        json["phases"].as_array().unwrap().iter().map(|p| p["status"].as_str().unwrap()).collect();
    assert_eq!(states, ["complete", "failed", "blocked"]);
    assert_eq!(
        (json["state"].as_str(), json["next"].as_str()),
        (Some("halted"), Some("backstop run plan.md"))
    );
    let run = json["run"].as_str().unwrap();
    assert_eq!(project.run(&["plan", "status", "--json", "--run", run]).go().code(0).json()["run"], run);
}

#[test]
fn logs_are_shown_by_phase_and_attempt() {
    let project = recovered("plan-logs");
    assert_eq!(project.run(&["plan", "logs", "2"]).go().code(0).stdout(), "try 2\n");
    has(
        &project.run(&["plan", "logs", "phase 2", "--attempt", "1"]).go().code(0).stdout(),
        &["try 1", "1 failed"],
    );
    let json = project.run(&["plan", "logs", "2", "--json"]).go().code(0).json();
    assert_eq!((json["attempt"].as_u64(), json["text"].as_str()), (Some(2), Some("try 2\n")));
    has(
        &project.run(&["plan", "logs", "2", "--attempt", "9"]).go().code(2).stderr(),
        &["phase 2 has no attempt 9; it has had 2"],
    );
    has(&project.run(&["plan", "logs", "7"]).go().code(2).stderr(), &["there is no phase `7`"]);
}

#[test]
fn diff_shows_what_an_attempt_changed() {
    let project = Project::git("run-diff");
    PlanText::new().sh("1", "", "echo one > one.txt; rm backstop.toml").write(&project);
    run(&project, &["--commit", "none"]).go().code(0);
    has(
        &project.run(&["plan", "diff", "1"]).go().code(0).stdout(),
        &["+++ b/one.txt", "+one", "deleted file"],
    );
    let json = project.run(&["plan", "diff", "1", "--json"]).go().code(0).json();
    let paths: Vec<&str> =
        json["paths"].as_array().unwrap().iter().map(|p| p["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["backstop.toml", "one.txt"]);
    let project = recovered("no-diff");
    has(&project.run(&["plan", "diff", "1"]).go().code(2).stderr(), &["was not saved", "git diff"]);
}

#[test]
fn a_phase_that_is_passed_over_lets_others_begin_and_the_reason_is_kept() {
    let project = halted("skip");
    let json = project.run(&["plan", "skip", "2", "--why", "done by hand", "--json"]).go().code(0).json();
    assert_eq!(
        (json["phases"][0]["skipped"].as_bool(), json["next"].as_str()),
        (Some(true), Some("backstop run plan.md"))
    );
    run(&project, &[]).go().code(0);
    assert_eq!(ran(&project), "one two two three");
    let said = &events(&project, "override")[0];
    assert_eq!(
        (said["what"].as_str(), said["rationale"].as_str()),
        (Some("plan skip 2"), Some("done by hand"))
    );
}

#[test]
fn a_phase_that_is_set_back_is_run_again() {
    let project = halted("reset");
    let done = project.run(&["plan", "reset", "1", "--why", "again, please"]).go().code(0);
    has(&done.stderr(), &["1: pending again; go on with `backstop run plan.md`"]);
    std::fs::write(project.beside("place/ready"), "").unwrap();
    run(&project, &[]).go().code(0);
    assert_eq!(ran(&project), "one two two one two three");
    let said = &events(&project, "override")[0];
    assert_eq!(
        (said["what"].as_str(), said["rationale"].as_str()),
        (Some("plan reset 1"), Some("again, please"))
    );
}

#[test]
fn retry_sets_a_phase_back_and_goes_on() {
    let project = halted("retry");
    std::fs::write(project.beside("place/ready"), "").unwrap();
    let json = project.run(&["plan", "retry", "2", "--no-run", "--json"]).go().code(0).json();
    assert_eq!(json["phases"][0]["status"], "pending");
    assert_eq!(ran(&project), "one two two", "nothing is run yet");
    let place = project.beside("place").display().to_string();
    project.run(&["plan", "retry", "2"]).env("PLACE", &place).go().code(0);
    assert_eq!(ran(&project), "one two two two three");
}

#[test]
fn several_plans_have_to_be_told_apart() {
    let project = recovered("several");
    project.file("other.md", PlanText::new().sh("1", "", "true").text());
    project.run(&["run", "other.md"]).go().code(0);
    has(&project.run(&["plan", "status"]).go().code(2).stderr(), &["other.md, plan.md", "--plan PLAN.md"]);
    has(&project.run(&["plan", "status", "--plan", "other.md"]).go().code(0).stdout(), &["1 of 1"]);
    let nothing = Project::plain("run-no-runs");
    has(&nothing.run(&["plan", "status"]).go().code(2).stderr(), &["no plan was run in this project"]);
}

#[test]
fn a_commit_mode_has_to_be_said_in_a_repository() {
    let project = Project::git("run-no-mode");
    recovering().write(&project);
    has(
        &run(&project, &[]).go().code(2).stderr(),
        &["how finished phases are committed is not said", "--commit auto"],
    );
    assert!(!project.path().join(".backstop").exists());
    let project = Project::plain("run-mode-no-git");
    recovering().write(&project);
    has(
        &run(&project, &["--commit", "auto"]).go().code(2).stderr(),
        &["needs a git repository", "--commit none"],
    );
}
