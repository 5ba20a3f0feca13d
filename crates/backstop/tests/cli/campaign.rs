//! Campaigns from one sentence to their end, with scripted agents: what they survive, what people
//! see.
#![cfg(target_os = "linux")]

use crate::docs::fits;
use crate::harness::{Done, Folder, Project, Run, root, schema, until};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;

/// What every agent here can call.
const HELPERS: &str = r#"
prompt=$(cat)
answer() { cat > "$BACKSTOP_RESULT"; }
complete() { printf '{"phase_id": "%s", "status": "complete", "commit_message": "%s"}' "$BACKSTOP_PHASE" "${1:-$BACKSTOP_PHASE}" | answer; }
first() { [ "$BACKSTOP_ATTEMPT" = 1 ]; }
echo "$BACKSTOP_PHASE $BACKSTOP_ATTEMPT" >> "$TALLY"
case $BACKSTOP_PHASE in structure|pattern|memory|delta)
  [ -e "$TALLY.silent" ] || { echo "{\"mode\":\"$BACKSTOP_PHASE\",\"status\":\"ok\"}" | answer; exit 0; } ;;
esac
"#;

/// Makes a script the agent `fake`, in the user's configuration.
fn configure(project: &Project, script: &str) {
    let file = project.beside("agent.sh");
    std::fs::write(&file, script).unwrap();
    let command = json!(["sh", file.display().to_string()]);
    project.settings(format!("[agent.fake]\ncommand = {command}\n[exec]\ngrace = \"200ms\"\n"));
}

fn project(name: &str, script: &str) -> Project {
    let project = Project::git(&format!("campaign-{name}"));
    configure(&project, &format!("{HELPERS}\n{script}\n"));
    project
}

pub(crate) fn campaign(project: &Project, args: &[&str]) -> Run {
    let mut all = vec!["campaign"];
    all.extend(args);
    if args.first().is_none_or(|first| first.contains(' ') || first.starts_with('-')) {
        all.extend(["--agent", "fake"]);
    }
    project.run(&all).env("TALLY", &project.beside("tally").display().to_string())
}

fn tally(project: &Project) -> Vec<String> {
    let text = std::fs::read_to_string(project.beside("tally")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

pub(crate) fn status(project: &Project) -> Value {
    let status = project.run(&["campaign", "status", "--json"]).go().code(0).json();
    fits(&schema("campaign"), &status, "campaign");
    status
}

fn statuses(status: &Value) -> Vec<(String, String)> {
    let tasks = status["tasks"].as_array().unwrap().iter();
    tasks
        .map(|task| (task["seq"].as_str().unwrap().to_owned(), task["status"].as_str().unwrap().to_owned()))
        .collect()
}

fn states(project: &Project) -> Vec<String> {
    let events = project.events();
    let own = events.iter().filter(|event| event["kind"] == "state.entered" && event["operation"].is_null());
    own.map(|event| event["state"].as_str().unwrap().to_owned()).collect()
}

fn has(done: &Done, parts: &[&str]) {
    let text = format!("{}{}", done.stdout(), done.stderr());
    for part in parts {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

/// A plan in a planner's answer.
fn plan(tasks: &Value) -> String {
    format!("answer <<'END'\n### Confidence: PROCEED\n{}\nEND\n", json!({"objective": "x", "tasks": tasks}))
}

fn task(seq: &str, depends: &[&str], verify: &str) -> Value {
    json!({"seq": seq, "slug": format!("t-{seq}"), "delta": [format!("{seq}.txt")], "verify": verify, "budget": 9, "depends": depends})
}

#[test]
fn the_example_asks_works_around_a_block_and_is_complete() {
    let project = Project::git("campaign-example");
    let script = std::fs::read_to_string(root().join("examples/campaign/agent.sh")).unwrap();
    configure(&project, &script);
    let asked = campaign(&project, &["A program that greets"]).go().code(4);
    has(&asked, &["In which language is the greeting?", "backstop campaign answer"]);
    let waiting = status(&project);
    assert_eq!(waiting["questions"], json!(["In which language is the greeting?"]));
    assert_eq!(
        (waiting["state"].clone(), waiting["explorers"].clone()),
        (json!("PLAN"), json!(["structure", "pattern", "memory"]))
    );
    campaign(&project, &[]).go().code(4);
    project.run(&["campaign", "answer", "a", "b"]).go().code(2);
    project.run(&["campaign", "answer", "English"]).go().code(0);
    let done = campaign(&project, &[]).go().code(0);
    has(&done, &["5 of 5 complete"]);
    let end = status(&project);
    assert!(statuses(&end).iter().all(|(_, status)| status == "complete"), "{end}");
    assert_eq!((end["replans"].clone(), end["rounds"].clone()), (json!(1), json!(2)));
    assert_eq!(end["cause"], json!(null), "what was worked around needs no explanation any more");
    let log = project.sh("git log --format=%s");
    let subjects: Vec<&str> = log.lines().collect();
    for subject in ["Specify the greeting", "Greet", "Translate by hand", "Choose a word"] {
        assert_eq!(subjects.iter().filter(|known| **known == subject).count(), 1, "{log}");
    }
    assert_eq!(project.sh("sh choose.sh").trim(), "hola");
    let order = [
        "INIT", "EXPLORE", "PLAN", "PLAN", "REGISTER", "EXECUTE", "CASCADE", "EXECUTE", "CASCADE", "OBSERVE",
        "COMPLETE",
    ];
    assert_eq!(states(&project), order);
    let lessons = project.run(&["campaign", "lessons", "--json"]).go().code(0).json();
    fits(&schema("campaign-lessons"), &lessons, "lessons");
    has(&project.run(&["campaign", "lessons"]).go().code(0), &["003-translate", "Translate by hand"]);
    for event in project.events() {
        fits(&schema("event"), &event, "event");
    }
    // It is over: nothing is done again.
    let before = project.sh("git rev-parse HEAD");
    campaign(&project, &[]).go().code(0);
    assert_eq!(project.sh("git rev-parse HEAD"), before);
}

#[test]
fn failures_are_emitted_before_anything_is_done_about_them() {
    let project = project(
        "emit",
        &format!(
            "case $BACKSTOP_PHASE in plan1) {} ;; *) echo done > $BACKSTOP_PHASE.txt; complete ;; esac",
            plan(&json!([task("001", &[], "true")]))
        ),
    );
    std::fs::write(project.beside("tally.silent"), "").unwrap();
    let text = campaign(&project, &["Do it now", "--log-format", "emit"]).go().code(3).stdout();
    let lines: Vec<&str> = text.lines().collect();
    let at = |part: &str| {
        lines.iter().position(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}: {text}"))
    };
    assert!(lines.iter().all(|line| line.starts_with("EMIT: ")), "{text}");
    let failed = at("TOOL_FAILURE tool=explore error=\"0 of 4 explorers have answered, 3 are needed\"");
    let entered = at("STATE_ENTRY state=ERROR error_type=quorum_failure");
    let said = at("EMIT: \"Insufficient explorer data\"");
    let recovery = at("RECOVERY_ATTEMPT strategy=partial_data success=false");
    assert!(failed < entered && entered < said && said < recovery, "{text}");
    assert_eq!(status(&project)["error_type"], "quorum_failure");
    // The explorers work again: it is taken up where it was.
    std::fs::remove_file(project.beside("tally.silent")).unwrap();
    campaign(&project, &[]).go().code(0);
    assert_eq!(project.read("001.txt"), "done\n");
}

#[test]
fn an_explorer_that_hangs_is_gone_on_without() {
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) {} ;; *) echo x > $BACKSTOP_PHASE.txt; complete ;; esac",
        plan(&json!([task("001", &[], "true")]))
    );
    let project = Project::git("campaign-hang");
    configure(&project, &format!("[ \"$BACKSTOP_PHASE\" = memory ] && exec sleep 600\n{HELPERS}\n{script}"));
    let done = campaign(&project, &["Do it now", "--explore-timeout", "2s"]).go().code(0);
    has(&done, &["Exploration timeout, using partial data"]);
    assert!(states(&project).windows(2).any(|two| two == ["ERROR", "PLAN"]), "{:?}", states(&project));
    assert!(
        tally(&project).iter().filter(|line| line.starts_with("memory")).count() <= 1,
        "time that is over is not given again"
    );
}

#[test]
fn a_planner_that_answers_garbage_has_five_rounds() {
    let project = project("garbage", "echo 'I { will not } plan ]['");
    let done = campaign(&project, &["Do it now"]).go().code(4);
    has(&done, &["Unrecoverable error: clarify_exhausted"]);
    assert_eq!(tally(&project).iter().filter(|line| line.starts_with("plan")).count(), 5);
    assert_eq!(status(&project)["rounds"], 5);
}

#[test]
fn a_cyclic_plan_is_sent_back_and_the_revised_one_is_taken() {
    let cyclic = plan(&json!([task("001", &["002"], "true"), task("002", &["001"], "true")]));
    let good = plan(&json!([task("001", &[], "true")]));
    let project = project(
        "cycle",
        &format!(
            "case $BACKSTOP_PHASE in plan1) {cyclic} ;; plan2) case $prompt in *'cycle detected: 001'*) {good} ;; esac ;; *) echo x > $BACKSTOP_PHASE.txt; complete ;; esac"
        ),
    );
    campaign(&project, &["Do it now"]).go().code(0);
    assert_eq!(statuses(&status(&project)), [("001".to_owned(), "complete".to_owned())]);
}

#[test]
fn a_builder_that_lies_is_blocked_and_a_person_opens_it_again() {
    let tasks = json!([
        task("001", &[], "grep -q right 001.txt"),
        task("002", &["001"], "true"),
        task("003", &[], "true")
    ]);
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) {} ;; 001) [ -e \"$TALLY.honest\" ] && echo right > 001.txt || echo wrong > 001.txt; complete ;; *) echo x > $BACKSTOP_PHASE.txt; complete ;; esac",
        plan(&tasks)
    );
    let project = project("lies", &script);
    let done = campaign(&project, &["Do it now"]).go().code(4);
    has(&done, &["1 of 3 complete, 2 blocked", "backstop campaign retry 001"]);
    let end = status(&project);
    assert_eq!(
        (end["state"].clone(), end["tasks"][1]["blocked_by"].clone()),
        (json!("COMPLETE"), json!(["001"]))
    );
    assert_eq!(project.read("003.txt"), "x\n", "what does not wait for it is done");
    assert!(!project.path().join("001.txt").exists());
    // Nothing is tried again before somebody says so.
    campaign(&project, &[]).go().code(4);
    assert_eq!(
        tally(&project).iter().filter(|line| line.starts_with("001")).count(),
        2,
        "one retry with what went wrong"
    );
    project.run(&["campaign", "retry", "009"]).go().code(2);
    project.run(&["campaign", "retry", "003"]).go().code(2);
    std::fs::write(project.beside("tally.honest"), "").unwrap();
    project.run(&["campaign", "retry", "001", "--why", "it tells the truth now"]).go().code(0);
    let overridden = project.events().into_iter().find(|event| event["kind"] == "override").unwrap();
    assert_eq!(
        (overridden["what"].clone(), overridden["rationale"].clone()),
        (json!("campaign retry 001"), json!("it tells the truth now"))
    );
    campaign(&project, &[]).go().code(0);
    assert_eq!((project.read("001.txt"), project.read("002.txt")), ("right\n".to_owned(), "x\n".to_owned()));
    assert_eq!(project.sh("git log --format=%s").lines().count(), 4, "each commit once");
}

/// Blocked at 001, with a chain behind it.
fn stuck(name: &str, replan: &Value) -> Project {
    let tasks = json!([
        task("001", &[], "false"),
        task("002", &["001"], "true"),
        task("003", &["002"], "true"),
        task("004", &[], "true")
    ]);
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) {} ;; replan*) answer <<'END'\n{replan}\nEND\n;; *) echo x > $BACKSTOP_PHASE.txt; complete ;; esac",
        plan(&tasks)
    );
    project(name, &script)
}

#[test]
fn a_re_plan_changes_adds_and_drops_together() {
    let project = stuck(
        "replan",
        &json!({"drop": ["001"], "tasks": [task("002", &["005"], "true"), task("005", &["004"], "true")]}),
    );
    campaign(&project, &["Do it now"]).go().code(0);
    let end = status(&project);
    let seqs: Vec<String> = statuses(&end).into_iter().map(|(seq, _)| seq).collect();
    assert_eq!(seqs, ["002", "003", "004", "005"]);
    let ran: Vec<String> =
        tally(&project).iter().filter_map(|line| line.split(' ').next().map(str::to_owned)).collect();
    let at = |seq: &str| ran.iter().position(|known| known == seq).unwrap();
    assert!(at("005") < at("002") && at("002") < at("003") && at("004") < at("005"), "{ran:?}");
}

#[test]
fn a_cyclic_re_plan_changes_nothing_and_the_analysis_is_returned() {
    let project = stuck("replan-cycle", &json!({"tasks": [task("002", &["003"], "true")]}));
    let done = campaign(&project, &["Do it now"]).go().code(4);
    let said = ["recovery: replan, it did not help", "cycle detected", "Cascade stuck, returning analysis"];
    has(&done, &said);
    has(&done, &["unreachable: 002 (waits for 001), 003 (waits for 002)"]);
    let end = status(&project);
    assert_eq!(
        (end["error_type"].clone(), end["state"].clone()),
        (json!("cascade_stuck"), json!("COMPLETE"))
    );
    let analysis = json!([{"seq": "002", "blocked_by": ["001"]}, {"seq": "003", "blocked_by": ["002"]}]);
    assert_eq!(end["unreachable"], analysis);
    let is_error = |event: &&Value| event["kind"] == "state.entered" && event["state"] == "ERROR";
    let events = project.events();
    let error = events.iter().find(is_error).unwrap();
    let context: Value =
        serde_json::from_str(error["context"]["fields"]["analysis"].as_str().unwrap()).unwrap();
    assert_eq!((context["unreachable"].clone(), context["blocked"].clone()), (analysis, json!(["001"])));
    let states = states(&project);
    assert_eq!(states[states.len() - 4..], ["CASCADE", "ERROR", "OBSERVE", "COMPLETE"]);
    // What is complete is brought to the user, and lessons are kept.
    let lessons = project.run(&["campaign", "lessons", "--json"]).go().code(0).json();
    assert_eq!(lessons["lessons"][0]["task"], "001-t-001");
    assert_eq!(end["summary"]["blocked"], 3, "{end}");
    assert_eq!((end["replans"].clone(), project.read("004.txt")), (json!(1), "x\n".to_owned()));
    assert_eq!(end["tasks"][2]["blocked_by"], json!(["002"]));
}

#[test]
fn a_re_plan_that_drops_what_is_complete_leaves_it() {
    let project =
        stuck("replan-drops", &json!({"drop": ["004", "001"], "tasks": [task("002", &[], "true")]}));
    campaign(&project, &["Do it now"]).go().code(0);
    let seqs: Vec<String> = statuses(&status(&project)).into_iter().map(|(seq, _)| seq).collect();
    assert_eq!(seqs, ["002", "003", "004"]);
}

#[test]
fn a_person_asks_for_another_plan_and_sets_tasks_aside() {
    let project = stuck("by-hand", &json!({"tasks": [task("001", &[], "true")]}));
    campaign(&project, &["Do it now"]).go().code(0);
    let has_replanned = status(&project)["replans"].clone();
    assert_eq!(has_replanned, 1);
    project.run(&["campaign", "block", "001"]).go().code(2);
    project.run(&["campaign", "replan", "--why", "it should be prettier"]).go().code(0);
    campaign(&project, &[]).go().code(0);
    assert_eq!(status(&project)["replans"], 2);
}

#[test]
fn sixteen_questions_at_once_are_answered_in_their_order() {
    let questions: String = (1..=16).map(|n| format!("{n}. Question number {n}?\n")).collect();
    let good = plan(&json!([task("001", &[], "true")]));
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) answer <<'END'\n### Confidence: CLARIFY\n## Blocking Questions\n{questions}END\n;; plan2) case $prompt in *'Question number 16?'*answer-16*) {good} ;; esac ;; *) echo x > $BACKSTOP_PHASE.txt; complete ;; esac"
    );
    let project = project("questions", &script);
    campaign(&project, &["Do it now"]).go().code(4);
    assert_eq!(status(&project)["questions"].as_array().unwrap().len(), 16);
    let answers: Vec<String> = (1..=16).map(|n| format!("answer-{n}")).collect();
    let mut args = vec!["campaign", "answer"];
    args.extend(answers.iter().map(String::as_str));
    project.run(&args).go().code(0);
    campaign(&project, &[]).go().code(0);
}

#[test]
fn blocking_questions_are_asked_though_there_is_a_plan() {
    let good = json!({"objective": "x", "tasks": [task("001", &[], "true")]});
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) answer <<'END'\n### Confidence: PROCEED\n{good}\n## Blocking Questions\n1.Which DB?\nEND\n;; plan2) answer <<'END'\n## Blocking Questions\nNone\n### Confidence: PROCEED\n{good}\nEND\n;; *) echo x > $BACKSTOP_PHASE.txt; complete ;; esac"
    );
    let project = project("blocking", &script);
    has(&campaign(&project, &["Do it now"]).go().code(4), &["Which DB?"]);
    assert!(!tally(&project).iter().any(|line| line.starts_with("001")), "nothing was begun");
    project.run(&["campaign", "answer", "SQLite"]).go().code(0);
    campaign(&project, &[]).go().code(0);
    assert_eq!(project.read("001.txt"), "x\n");
}

#[test]
fn three_looks_at_which_nothing_has_changed_force_cascade() {
    let tasks = json!([task("001", &[], "grep -q right 001.txt"), task("002", &["001"], "true")]);
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) {} ;; *) echo wrong > 001.txt; complete ;; esac",
        plan(&tasks)
    );
    let project = project("no-change", &script);
    let file = json!(["sh", project.beside("agent.sh").display().to_string()]);
    project.settings(format!(
        "[agent.fake]\ncommand = {file}\n[profile.phase.on]\nverification_mismatch = \"retry:8\"\ntest_failure = \"retry:8\"\n"
    ));
    let done = campaign(&project, &["Do it now"]).go().code(4);
    has(&done, &["nothing has changed at three looks", "recovery: stuck_detected, it helped"]);
    let events = project.events();
    let cascade = events.iter().position(|event| event["state"] == "CASCADE").unwrap();
    let begun = |event: &&Value| event["kind"] == "attempt.started" && event["operation"] == "001";
    let count = events[..cascade].iter().filter(begun).count();
    // One, three that changed nothing, and the one that may have begun by then.
    assert!((4..=5).contains(&count), "{count}");
}

#[test]
fn what_explorers_said_is_returned_where_they_are_too_few() {
    let script = r#"case $BACKSTOP_PHASE in
structure) echo '{"mode":"structure","status":"ok","directories":["lib"]}' | answer ;;
pattern) echo '{"mode":"pattern","framework":"none"}' | answer ;;
memory) echo '{"mode":"memory","status":"error","error":"no history"}' | answer ;;
esac"#;
    let project = project("partial", script);
    std::fs::write(project.beside("tally.silent"), "").unwrap();
    let done = campaign(&project, &["Do it now"]).go().code(3);
    has(&done, &["partial results of the explorers", "structure ok: {\"directories\":{\"lib\":true}"]);
    let end = status(&project);
    assert_eq!(
        (end["error_type"].clone(), end["explorers"].clone()),
        (json!("quorum_failure"), json!(["structure"]))
    );
    let partial = &end["partial"];
    assert_eq!(
        (&partial["structure"]["status"], &partial["pattern"]["status"]),
        (&json!("ok"), &json!("error"))
    );
    assert_eq!(partial["memory"]["_error"], "no history");
}

#[test]
fn a_plan_that_waits_for_a_word_gets_one() {
    let confirm = plan(&json!([task("001", &[], "true")])).replace("PROCEED", "CONFIRM");
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) {confirm} ;; *) echo x > $BACKSTOP_PHASE.txt; complete ;; esac"
    );
    let asked = project("confirm", &script);
    has(&campaign(&asked, &["Do it now"]).go().code(4), &["Shall this plan be carried out?"]);
    asked.run(&["campaign", "answer", "yes"]).go().code(0);
    campaign(&asked, &[]).go().code(0);
    let yes = project("confirm-yes", &script);
    campaign(&yes, &["Do it now", "--yes"]).go().code(0);
}

#[test]
fn forbidden_idioms_block_and_lines_that_are_no_numbers_do_not() {
    let mut forbidden = task("001", &[], "true");
    forbidden["idioms"] = json!({"forbidden": ["evil"]});
    let mut lines = task("002", &[], "true");
    lines["target_lines"] = json!({"002.txt": "ten to twelve"});
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) {} ;; *) echo evil > $BACKSTOP_PHASE.txt; complete ;; esac",
        plan(&json!([forbidden, lines]))
    );
    let project = project("idioms", &script);
    campaign(&project, &["Do it now"]).go().code(4);
    let end = status(&project);
    assert!(
        end["tasks"][0]["reason"].as_str().unwrap().starts_with("idiom_violation: forbidden idiom `evil`"),
        "{end}"
    );
    assert_eq!(end["tasks"][1]["status"], "complete");
    let recovered = project.events().into_iter().any(|event| event["strategy"] == "fallback_context");
    assert!(recovered);
}

#[test]
fn a_later_builder_knows_what_parents_delivered_and_siblings_failed_of() {
    // The proof of 002 leaves a mark when it fails; 001 is done after that.
    let marks = Folder::new("campaign-marks");
    let mark = marks.path().join("failed");
    let tasks = json!([
        task("001", &[], "true"),
        task("002", &[], &format!("touch {}; false", mark.display())),
        task(
            "003",
            &["001"],
            "grep -q 'Task 001, which this one builds on, delivered: the parts' 003.txt && grep -q 'Task 002 is blocked' 003.txt"
        )
    ]);
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) {} ;; 001) until [ -e '{}' ]; do sleep 0.05; done; echo x > 001.txt; complete 'the parts' ;; 003) printf '%s' \"$prompt\" > 003.txt; complete ;; *) echo x > $BACKSTOP_PHASE.txt; complete ;; esac",
        plan(&tasks),
        mark.display()
    );
    let project = project("context", &script);
    campaign(&project, &["Do it now", "--jobs", "2"]).go().code(4);
    let end = status(&project);
    assert_eq!(
        (end["tasks"][2]["status"].clone(), end["tasks"][1]["status"].clone()),
        (json!("complete"), json!("blocked")),
        "{end}"
    );
}

#[test]
fn outside_git_the_folder_itself_is_worked_in() {
    let project = Project::plain("campaign-plain");
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) {} ;; *) echo x > $BACKSTOP_PHASE.txt; complete ;; esac",
        plan(&json!([task("001", &[], "true"), task("002", &["001"], "test -e 001.txt")]))
    );
    configure(&project, &format!("{HELPERS}\n{script}\n"));
    campaign(&project, &["Do it now"]).go().code(0);
    assert_eq!((project.read("001.txt"), project.read("002.txt")), ("x\n".to_owned(), "x\n".to_owned()));
}

#[test]
fn outside_git_explorers_look_side_by_side() {
    let project = Project::plain("campaign-plain-side-by-side");
    // Each explorer waits until all four have begun: one after the other, none would answer.
    let script = format!(
        "case $BACKSTOP_PHASE in structure|pattern|memory|delta) : > \"$TALLY.$BACKSTOP_PHASE\"; n=0; \
         until [ -e \"$TALLY.structure\" ] && [ -e \"$TALLY.pattern\" ] && [ -e \"$TALLY.memory\" ] && [ -e \"$TALLY.delta\" ]; do \
         sleep 0.1; n=$((n+1)); [ $n -lt 300 ] || exit 1; done; \
         echo \"{{\\\"mode\\\":\\\"$BACKSTOP_PHASE\\\",\\\"status\\\":\\\"ok\\\"}}\" | answer ;; \
         plan1) {} ;; *) echo x > $BACKSTOP_PHASE.txt; complete ;; esac",
        plan(&json!([task("001", &[], "test -e 001.txt")]))
    );
    configure(&project, &format!("{HELPERS}\n{script}\n"));
    std::fs::write(project.beside("tally.silent"), "").unwrap();
    campaign(&project, &["Do it now"]).go().code(0);
    assert_eq!(status(&project)["explorers"], json!(["structure", "pattern", "memory", "delta"]));
}

#[test]
fn one_task_is_explored_planned_built_and_observed() {
    let two = plan(&json!([task("001", &[], "true"), task("002", &[], "true")]));
    let one = plan(&json!([task("001", &[], "grep -q good 001.txt")]));
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) case $prompt in *'exactly one task'*) {two} ;; esac ;; \
         plan2) case $prompt in *'one task was asked for, and there are 2'*) {one} ;; esac ;; \
         001) [ -e \"$TALLY.good\" ] && echo good > 001.txt || echo bad > 001.txt; complete ;; esac"
    );
    let project = project("one-task", &script);
    let done = campaign(&project, &["Do one thing", "--task"]).go().code(4);
    has(&done, &["backstop campaign retry 001"]);
    let first = ["INIT", "EXPLORE", "PLAN", "PLAN", "BUILD", "OBSERVE", "COMPLETE"];
    assert_eq!(states(&project), first);
    assert_eq!(statuses(&status(&project)), [("001".to_owned(), "blocked".to_owned())]);
    // It stays in its flow when it is carried on, without being told so again.
    std::fs::write(project.beside("tally.good"), "").unwrap();
    project.run(&["campaign", "retry", "001", "--why", "the fixture is there now"]).go().code(0);
    campaign(&project, &[]).go().code(0);
    assert_eq!(states(&project)[first.len()..], ["BUILD", "OBSERVE", "COMPLETE"]);
    assert_eq!(project.sh("git log --format=%s -1").trim(), "001");
    for event in project.events() {
        fits(&schema("event"), &event, "event");
    }
}

#[test]
fn one_task_survives_kill_9_at_every_point() {
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) {} ;; 001) echo x > 001.txt; complete ;; esac",
        plan(&json!([task("001", &[], "test -e 001.txt")]))
    );
    // All of them take minutes of two processors: every sixth unless BACKSTOP_EVERY_POINT is set.
    let step = if std::env::var_os("BACKSTOP_EVERY_POINT").is_some() { 1 } else { 6 };
    for point in (2..).step_by(step) {
        assert!(point < 400, "it never ends by itself");
        let project = project(&format!("one-task-crash-{point}"), &script);
        let start = || campaign(&project, &["Do one thing", "--task"]);
        let output = start().env("BACKSTOP_CRASH_AT", &point.to_string()).command().output().unwrap();
        let crashed = output.status.signal() == Some(9);
        start().go().code(0);
        let order = states(&project);
        let is_short = |state: &String| {
            ["INIT", "EXPLORE", "PLAN", "BUILD", "OBSERVE", "COMPLETE"].contains(&state.as_str())
        };
        assert!(order.iter().all(is_short), "{point}: {order:?}");
        let log = project.sh("git log --format=%s");
        assert_eq!(log.lines().filter(|line| *line == "001").count(), 1, "{point}: {log}");
        if !crashed {
            assert!(point > 8, "only {point} points were seen");
            break;
        }
    }
}

#[test]
fn a_workspace_that_cannot_be_made_is_made_anew_once_and_then_blocked() {
    // The first builder puts files where the folders of the others' attempts would be.
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) {} ;; \
         001) scratch=${{BACKSTOP_RESULT%/*/*/*}}; \
           for taken in 002-1 003-1 003-2; do : > \"$scratch/$taken\"; done; echo x > 001.txt; complete ;; \
         *) printf '%s' \"$prompt\" > \"$TALLY.$BACKSTOP_PHASE\"; echo x > $BACKSTOP_PHASE.txt; complete ;; esac",
        plan(&json!([
            task("001", &[], "true"),
            task("002", &["001"], "true"),
            task("003", &["001"], "true"),
            task("004", &["002"], "true"),
        ]))
    );
    let project = project("workspace-anew", &script);
    campaign(&project, &["Do it now"]).go().code(4);
    let end = status(&project);
    let wanted = [("001", "complete"), ("002", "complete"), ("003", "blocked"), ("004", "complete")];
    assert_eq!(statuses(&end), wanted.map(|(seq, status)| (seq.to_owned(), status.to_owned())), "{end}");
    let reason = end["tasks"][2]["reason"].as_str().unwrap().to_owned();
    assert!(reason.starts_with("state_invalid: cannot make"), "{reason}");
    let told = |seq: &str| std::fs::read_to_string(project.beside(&format!("tally.{seq}"))).unwrap();
    assert!(!told("002").contains("delivered"), "nothing but the task itself: {}", told("002"));
    assert!(told("004").contains("delivered"), "{}", told("004"));
    let tries: Vec<(String, bool)> = project
        .events()
        .iter()
        .filter(|event| event["strategy"] == "regenerate_workspace")
        .map(|event| (event["operation"].as_str().unwrap().to_owned(), event["success"] == true))
        .collect();
    assert_eq!(tries.len(), 2, "{tries:?}");
    assert!(
        tries.contains(&("002".to_owned(), true)) && tries.contains(&("003".to_owned(), false)),
        "{tries:?}"
    );
}

#[test]
fn nothing_is_there_before_the_first_campaign() {
    let project = Project::git("campaign-none");
    for args in [
        &["campaign", "status"][..],
        &["campaign", "answer", "x"],
        &["campaign", "retry", "001"],
        &["campaign", "watch"],
        &["campaign"],
    ] {
        has(
            &project.run(args).go().code(1),
            &["no campaign was started in this project", "backstop campaign \""],
        );
    }
    has(
        &project.run(&["campaign", "lessons"]).go().code(0),
        &["no campaign of this project has taught anything yet"],
    );
}

/// What each task's builder does unless a test says otherwise.
const BUILD: &str = "*) echo x > $BACKSTOP_PHASE.txt; complete ;; esac";

#[test]
fn finished_work_lands_when_another_plan_is_refused() {
    for (mode, name) in [("single", "land-single"), ("message-only", "land-message")] {
        let project = stuck(name, &json!("no"));
        let done = campaign(&project, &["Do it now", "--commit", mode]).go().code(4);
        has(&done, &["1 of 4 complete, 3 blocked", "work: ", "backstop campaign retry 001"]);
        assert_eq!(project.read("004.txt"), "x\n", "{mode}");
        let commits = project.sh("git log --format=%s").lines().count();
        assert_eq!(commits, if mode == "single" { 2 } else { 1 }, "{mode}");
    }
}

#[test]
fn a_single_commit_holds_all_tasks() {
    let tasks = json!([task("001", &[], "true"), task("002", &["001"], "true")]);
    let script = format!("case $BACKSTOP_PHASE in plan1) {} ;; {BUILD}", plan(&tasks));
    let project = project("single", &script);
    campaign(&project, &["Do it now", "--commit", "single"]).go().code(0);
    assert_eq!(project.sh("git log --format=%s").lines().count(), 2);
    assert_eq!(project.sh("git show --name-only --format= HEAD").trim(), "001.txt\n002.txt");
}

#[test]
fn a_used_up_budget_halts_lands_the_work_and_goes_on_when_there_is_more() {
    let tasks = json!([task("001", &[], "true"), task("002", &["001"], "true")]);
    let script = format!("case $BACKSTOP_PHASE in plan1) {} ;; {BUILD}", plan(&tasks));
    let project = project("budget", &script);
    // Four explorers, the planner and the first task.
    project.run(&["budget", "set", "few", "6"]).go().code(0);
    let args = ["Do it now", "--commit", "single", "--budget", "few", "--jobs", "1"];
    let done = campaign(&project, &args).go().code(3);
    has(&done, &["campaign_budget_exhausted", "backstop budget reset few"]);
    assert_eq!(project.read("001.txt"), "x\n");
    assert_eq!(states(&project).last().unwrap(), "ERROR");
    let events = project.events();
    let error = events.iter().rfind(|event| event["state"] == "ERROR").unwrap();
    assert_eq!(error["context"]["current_step"], "EXECUTE", "{error}");
    assert_eq!(error["context"]["fields"]["task"], "002", "{error}");
    project.run(&["budget", "reset", "few"]).go().code(0);
    campaign(&project, &args).go().code(0);
    assert_eq!(project.read("002.txt"), "x\n");
}

#[test]
fn a_person_s_reason_for_another_plan_reaches_the_planner() {
    let tasks = json!([task("001", &[], "true")]);
    let revised = json!({"tasks": [task("002", &[], "true")]});
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) {} ;; replan1) case $prompt in *'it should be prettier'*) answer <<'END'\n{revised}\nEND\n;; *) echo no | answer ;; esac ;; {BUILD}",
        plan(&tasks)
    );
    let project = project("replan-why", &script);
    campaign(&project, &["Do it now"]).go().code(0);
    project.run(&["campaign", "replan", "--why", "it should be prettier"]).go().code(0);
    campaign(&project, &[]).go().code(0);
    assert_eq!(project.read("002.txt"), "x\n");
}

#[test]
fn a_forced_cascade_goes_on_with_tasks_that_can_begin() {
    // Three may be slow: what the fourth worker tries without success is more than twenty attempts.
    let failing = (1..=14).map(|n| task(&format!("{n:03}"), &[], "false"));
    let good = (15..=17).map(|n| task(&format!("{n:03}"), &[], "true"));
    let tasks = Value::from(failing.chain(good).collect::<Vec<Value>>());
    let script = format!("case $BACKSTOP_PHASE in plan1) {} ;; {BUILD}", plan(&tasks));
    let project = project("forced", &script);
    let done = campaign(&project, &["Do it now", "--jobs", "4"]).go().code(4);
    has(&done, &["3 of 17 complete, 14 blocked, 0 to come"]);
    assert!(!done.stderr().contains("Ctrl-C again"), "{}", done.stderr());
    let forced = project.events().into_iter().any(|event| event["strategy"] == "iteration_exhausted");
    assert!(forced);
    let all = states(&project);
    assert!(all.windows(2).any(|two| two == ["CASCADE", "EXECUTE"]), "{all:?}");
    assert_eq!(project.read("017.txt"), "x\n");
}

#[test]
fn a_dropped_task_that_is_added_again_begins_anew() {
    let tasks =
        json!([task("001", &[], "false"), task("002", &["001"], "true"), task("003", &["002"], "true")]);
    let first = json!({"drop": ["001"], "tasks": [task("002", &["005"], "true"), task("005", &[], "false")]});
    let second = json!({"drop": ["005"], "tasks": [task("001", &[], "true"), task("002", &["001"], "true")]});
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) {} ;; replan1) answer <<'END'\n{first}\nEND\n;; replan2) answer <<'END'\n{second}\nEND\n;; {BUILD}",
        plan(&tasks)
    );
    let project = project("added-again", &script);
    campaign(&project, &["Do it now"]).go().code(0);
    assert_eq!(project.read("001.txt"), "x\n");
}

/// What an agent prints whose credential is refused.
const REFUSED: &str = "echo 'API Error: 401 {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"invalid x-api-key\"}}' >&2; exit 1";

#[test]
fn a_refused_credential_halts_in_every_stage() {
    let explorers = Project::git("campaign-auth-explore");
    configure(&explorers, REFUSED);
    let done = campaign(&explorers, &["Do it now"]).go().code(3);
    has(&done, &["Unrecoverable error: auth_error"]);
    assert_eq!(status(&explorers)["error_type"], "auth_error");
    let tasks =
        json!([task("001", &[], "false"), task("002", &["001"], "true"), task("003", &["002"], "true")]);
    let good = json!({"drop": ["001"], "tasks": [task("002", &[], "true")]});
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) {} ;; replan1) if [ -e \"$TALLY.renewed\" ]; then answer <<'END'\n{good}\nEND\nelse {REFUSED}; fi ;; {BUILD}",
        plan(&tasks)
    );
    let project = project("auth-replan", &script);
    let done = campaign(&project, &["Do it now"]).go().code(3);
    has(&done, &["Unrecoverable error: auth_error"]);
    std::fs::write(project.beside("tally.renewed"), "").unwrap();
    campaign(&project, &[]).go().code(0);
    assert_eq!(project.read("003.txt"), "x\n");
}

#[test]
fn the_first_advice_names_the_task_that_failed() {
    let tasks = json!([task("001", &["002"], "true"), task("002", &[], "false")]);
    let script = format!("case $BACKSTOP_PHASE in plan1) {} ;; {BUILD}", plan(&tasks));
    let project = project("root-cause", &script);
    has(&campaign(&project, &["Do it now"]).go().code(4), &["next: backstop campaign retry 002"]);
    let events = project.events();
    let ended = events.iter().rfind(|event| event["kind"] == "run.ended").unwrap();
    assert_eq!(ended["next"], "backstop campaign retry 002", "{ended}");
}

#[test]
fn a_first_question_is_no_exhausted_clarification() {
    let script = "case $BACKSTOP_PHASE in plan1) printf '### Confidence: CLARIFY\\n## Blocking Questions\\n1. Which?\\n' | answer ;; esac";
    let project = project("first-question", script);
    campaign(&project, &["Do it now"]).go().code(4);
    let events = project.events();
    let halted = events.iter().rfind(|event| event["kind"] == "run.halted").unwrap();
    assert_eq!(halted["reason"], "decision_unknown", "{halted}");
}

#[test]
fn a_task_that_a_person_blocks_is_left_out_and_builders_are_told_why() {
    let tasks = json!([
        task("001", &[], "true"),
        task("002", &[], "true"),
        task("003", &["001"], "grep -q 'Task 002 is blocked: blocked by a person: too early' 003.txt")
    ]);
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) {} ;; 001) [ -e \"$TALLY.go\" ] || {{ {REFUSED}; }}; echo x > 001.txt; complete ;; 003) printf '%s' \"$prompt\" > 003.txt; complete ;; {BUILD}",
        plan(&tasks)
    );
    let project = project("set-aside", &script);
    campaign(&project, &["Do it now", "--jobs", "1"]).go().code(3);
    project.run(&["campaign", "block", "002", "--why", "too early"]).go().code(0);
    std::fs::write(project.beside("tally.go"), "").unwrap();
    project.run(&["campaign", "retry", "001"]).go().code(0);
    campaign(&project, &[]).go().code(4);
    let end = status(&project);
    assert_eq!(end["summary"]["complete"], 2, "{end}");
    assert_eq!(end["tasks"][1]["reason"], "blocked by a person: too early");
    assert!(!project.path().join("002.txt").exists());
}

#[test]
fn watch_ends_when_the_campaign_was_killed_and_resume_all_goes_on_with_it() {
    let tasks = json!([task("001", &[], "true")]);
    let script = format!("case $BACKSTOP_PHASE in plan1) {} ;; {BUILD}", plan(&tasks));
    let project = project("watch", &script);
    let killed = campaign(&project, &["Do it now"]).env("BACKSTOP_CRASH_AT", "9").go();
    assert_eq!(killed.exit(), None, "it was to be killed");
    let left = project.run(&["campaign", "watch"]).go().code(3);
    has(&left, &["state: EXPLORE", "nobody carries this campaign on; next: backstop campaign"]);
    let tally = project.beside("tally").display().to_string();
    let resumed = project.run(&["run", "--resume-all"]).env("TALLY", &tally).go().code(0);
    has(&resumed, &["Do it now goes on"]);
    // It follows the campaign that goes on, to its end.
    until("the campaign is over", || status(&project)["state"] == "COMPLETE");
    let ended = project.run(&["campaign", "watch"]).go().code(0);
    has(&ended, &["001: complete", "state: COMPLETE"]);
    let emitted = project.run(&["campaign", "watch", "--log-format", "emit"]).go().code(0).stdout();
    assert!(emitted.contains("STATE_ENTRY state=complete node=001"), "{emitted}");
    assert_eq!(project.read("001.txt"), "x\n");
}

#[test]
fn lessons_are_offered_to_later_builders_by_file_and_by_signature() {
    let verify = "! grep -q wrong *.txt";
    let script = |tasks: &Value| {
        format!(
            "{HELPERS}\ncase $BACKSTOP_PHASE in plan1) {} ;; *) printf '%s' \"$prompt\" > \"$TALLY.$BACKSTOP_PHASE.$BACKSTOP_ATTEMPT\"; first && echo wrong > $BACKSTOP_PHASE.txt || echo right $$ > $BACKSTOP_PHASE.txt; complete 'Write the right word' ;; esac",
            plan(tasks)
        )
    };
    let project = Project::git("campaign-lessons");
    configure(&project, &script(&json!([task("001", &[], verify)])));
    campaign(&project, &["Do it now"]).go().code(0);
    configure(&project, &script(&json!([task("001", &[], verify), task("002", &["001"], verify)])));
    campaign(&project, &["Do it again", "--fresh"]).go().code(0);
    let prompt = |of: &str| std::fs::read_to_string(project.beside(&format!("tally.{of}"))).unwrap();
    let lesson = "cured by: Write the right word";
    assert!(prompt("001.1").contains(lesson), "the same file: {}", prompt("001.1"));
    assert!(!prompt("002.1").contains(lesson), "nothing has failed yet: {}", prompt("002.1"));
    assert!(prompt("002.2").contains(lesson), "the same failure: {}", prompt("002.2"));
}

#[test]
fn a_builder_that_uses_up_its_iterations_is_blocked_and_error_leads_to_observe() {
    let mut greedy = task("001", &[], "true");
    greedy["budget"] = json!(1);
    let turn = r#"{"type":"assistant","message":{"id":"mN","content":[{"type":"tool_use","name":"x"}]}}"#;
    let turns: String =
        (1..=3).map(|n| format!("echo '{}'\n", turn.replace("mN", &format!("m{n}")))).collect();
    let script = format!(
        "case $BACKSTOP_PHASE in plan1) {} ;; 001) {turns} sleep 600 ;; {BUILD}",
        plan(&json!([greedy, task("002", &["001"], "true"), task("003", &[], "true")]))
    );
    let project = project("iterations", &script);
    // Only the events of an agent that Backstop knows are counted.
    let folder = project.beside("bin");
    std::fs::create_dir(&folder).unwrap();
    let agent = project.beside("agent.sh").display().to_string();
    std::fs::write(folder.join("claude"), format!("#!/bin/sh\nexec sh '{agent}'\n")).unwrap();
    std::fs::set_permissions(folder.join("claude"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let args = ["campaign", "Do it now", "--agent", "claude", "--log-format", "emit"];
    let run = project.run(&args).env("TALLY", &project.beside("tally").display().to_string());
    let text = run.env("PATH", &path).go().code(4).stdout();
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    let entered = at("STATE_ENTRY state=ERROR error_type=budget_exhausted");
    let said = at("EMIT: \"Builder budget exhausted\"");
    let recovery = at("RECOVERY_ATTEMPT strategy=block_workspace success=true");
    assert!(entered < said && said < recovery && recovery < at("STATE_ENTRY state=OBSERVE"), "{text}");
    let end = status(&project);
    assert_eq!((end["summary"]["blocked"].clone(), end["summary"]["complete"].clone()), (json!(2), json!(1)));
}

#[test]
fn a_mistyped_agent_or_a_second_objective_displaces_no_campaign() {
    let script = "case $BACKSTOP_PHASE in plan1) answer <<'END'\n### Confidence: CLARIFY\n## Blocking Questions\n1. Which DB?\nEND\n;; esac";
    let project = project("displaced", script);
    let refused = |objective: &str, agent: &str| {
        project.run(&["campaign", objective, "--agent", agent]).go().code(2).stderr()
    };
    // Nothing is recorded of what nobody would work on.
    assert!(refused("Do it now", "nosuch").contains("there is no agent `nosuch`"));
    assert!(refused("", "fake").contains("no objective is given"));
    assert!(!project.run(&["campaign", "status"]).go().stdout().contains("Do it now"));
    let said = campaign(&project, &["Do it now"]).go().code(4).stderr();
    assert!(!said.contains("was cut off"), "{said}");
    assert!(refused("Something else", "nosuch").contains("there is no agent `nosuch`"));
    let said = refused("Something else", "fake");
    assert!(said.contains("a campaign is not finished in this project: Do it now"), "{said}");
    assert!(said.contains("`--fresh` starts another one"), "{said}");
    let said = project.run(&["campaign", "retry", "001"]).go().code(2).stderr();
    assert!(said.contains("it has no tasks yet"), "{said}");
    assert_eq!(status(&project)["questions"].as_array().unwrap().len(), 1, "it waits as before");
    campaign(&project, &["Something else", "--fresh"]).go().code(4);
}
