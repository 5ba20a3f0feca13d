//! What follows a fault: diagnostics, a project that is frozen, work that is offered again.

use crate::docs::fits;
use crate::harness::{Folder, Project, in_a_room, schema};
use crate::plan_text::{PlanText, has, reasons, run, state};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::Command;

/// Any host is short of this much.
const SHORT: &str = "[host]\ndisk_free_min = \"900TB\"\n";
const FULL: &str = "echo 'cp: error writing x: No space left on device' >&2; exit 1";

fn report(project: &Project, task: &str, kind: &str, message: &str) -> Value {
    let report = json!({"task_data": {"task_id": task}, "error": {"type": kind, "message": message}});
    project.run(&["hook", "on-error"]).stdin(report.to_string()).go().code(0).json()
}

fn unfreeze(project: &Project) -> Value {
    let done = project.run(&["unfreeze", "--why", "made room", "--json"]).go().code(0).json();
    fits(&schema("unfreeze"), &done, "unfreeze");
    done
}

#[test]
fn a_host_that_is_short_freezes_the_project_until_somebody_says_so() {
    let project = Project::new("freeze-short");
    // Without a host that confirms it, it is put aside and no more.
    project.exec(&[], FULL).go().code(1);
    project.exec(&[], "true").go().code(0);

    project.settings(SHORT);
    let failed = project.exec(&["--json"], FULL).go().code(1);
    assert_eq!(failed.json()["fault"]["severity"], "critical", "{}", failed.json());
    has(&failed.stderr(), &["this project is frozen (disk_full)", "backstop unfreeze --why"]);
    let refused = project.exec(&[], "echo ran > ran").go().code(125);
    has(&refused.stderr(), &["this project is frozen since", "disk_full", "backstop unfreeze --why"]);
    project.run(&["deferred", "run", "d-1"]).go().code(75);
    PlanText::new().sh("1", "", "echo ran > ran").write(&project);
    run(&project, &[]).go().code(75);
    assert!(!project.path().join("ran").exists());
    // Looking is no work.
    project.run(&["runs"]).go().code(0);

    project.run(&["unfreeze"]).go().code(2);
    has(&project.run(&["unfreeze", "--why", " "]).go().code(2).stderr(), &["no reason is given", "hint: "]);
    let done = unfreeze(&project);
    assert_eq!((&done["was_frozen"], &done["reason"]), (&json!(true), &json!("disk_full")));
    assert_eq!(unfreeze(&project)["was_frozen"], false);
    project.exec(&[], "true").go().code(0);
    let events = project.events();
    let of = |kind: &str| events.iter().filter(|event| event["kind"] == kind).cloned().collect::<Vec<_>>();
    assert!(
        of("state.entered")
            .iter()
            .any(|event| event["state"] == "frozen" && event["error_type"] == "disk_full")
    );
    assert_eq!(of("override")[0]["rationale"], "made room");
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_really_full_is_confirmed_by_the_probe() {
    let folder = Folder::outside("freeze-full-disk");
    let (disk, state) = (folder.path().join("disk"), folder.path().join("state"));
    std::fs::create_dir_all(&disk).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=2m tmpfs {disk} && cd {disk} || exit 90; export BACKSTOP_STATE_DIR={state}; \
         {bin} exec --json -- dd if=/dev/zero of=filler bs=64k > ../first 2> ../err; echo $? > ../code; \
         {bin} exec -- true 2>> ../err; echo $? > ../frozen; \
         {bin} deferred list --json > ../full; rm filler; {bin} unfreeze --why 'made room' 2> ../offer; \
         {bin} deferred list --json > ../room; {bin} exec -- true 2> ../again; echo $? > ../after",
        disk = disk.display(),
        state = state.display(),
        bin = env!("CARGO_BIN_EXE_backstop"),
    );
    in_a_room(&script, || {
        let mut command = Command::new("unshare");
        command.current_dir(folder.path());
        command
    });
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    let parsed = |name: &str| serde_json::from_str::<Value>(&read(name)).unwrap();
    assert_eq!(
        (read("code").as_str(), read("frozen").as_str(), read("after").as_str()),
        ("1\n", "125\n", "0\n")
    );
    assert_eq!(parsed("first")["fault"]["severity"], "critical", "{}", read("first"));
    has(&read("err"), &["this project is frozen (disk_full): nothing is left on the disk of"]);
    assert_eq!(parsed("full")["deferred"][0]["ready"], false, "{}", read("full"));
    assert_eq!(parsed("room")["deferred"][0]["ready"], true, "{}", read("room"));
    has(&read("offer"), &["deferred work can be run now: d-1", "backstop deferred run d-1"]);
    assert!(!read("again").contains("can be run now"), "{}", read("again"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_the_store_is_on_as_well_freezes_all_the_same() {
    let folder = Folder::outside("freeze-full-store");
    let disk = folder.path().join("disk");
    std::fs::create_dir_all(&disk).unwrap();
    let report = r#"{"task_data":{"task_id":"t"},"error":{"type":"DiskFull","message":"no space"}}"#;
    std::fs::write(folder.path().join("report.json"), report).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=3m tmpfs {disk} && cd {disk} || exit 90; export BACKSTOP_STATE_DIR={disk}/state; \
         {bin} exec -- true || exit 91; cat /dev/zero > filler 2>/dev/null; \
         {bin} exec --json -- dd if=/dev/zero of=y bs=64k > ../first 2> ../err; echo $? > ../code; \
         {bin} exec -- true 2>> ../err; echo $? > ../frozen; {bin} hook on-error < ../report.json > ../answer 2> /dev/null; \
         rm filler; {bin} unfreeze --why 'made room' > ../out || exit 92; {bin} exec -- true; echo $? > ../after",
        disk = disk.display(),
        bin = env!("CARGO_BIN_EXE_backstop"),
    );
    in_a_room(&script, || {
        let mut command = Command::new("unshare");
        command.current_dir(folder.path());
        command
    });
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    assert_eq!(read("frozen"), "125\n", "{}", read("err"));
    has(&read("err"), &["this project is frozen (disk_full)"]);
    assert!(!read("err").contains("put aside"), "nothing was: {}", read("err"));
    let answer: Value = serde_json::from_str(&read("answer")).unwrap();
    assert_eq!(
        (&answer["severity"], &answer["fallback"]["action"]),
        (&json!("critical"), &json!("surface")),
        "{answer}"
    );
    assert_eq!(read("after"), "0\n");
}

#[test]
fn a_full_disk_on_which_nothing_can_be_recorded_freezes_all_the_same() {
    let folder = Folder::outside("freeze-full-state");
    let disk = folder.path().join("disk");
    std::fs::create_dir_all(&disk).unwrap();
    let tool = json!({"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "session_id": "s",
        "tool_input": {"command": "cp x y"}, "error": "Exit code 1\ncp: error writing 'y': No space left on device"});
    let task = json!({"task_data": {"task_id": "t"}, "error": {"type": "DiskFull", "message": "No space left on device"}});
    let script = format!(
        "mount -t tmpfs -o size=3m tmpfs {disk} && cd {disk} || exit 90; export BACKSTOP_STATE_DIR={disk}/state; \
         bin={bin}; $bin exec -- true; tries() {{ $bin exec -- true 2> ../err.$1; echo $? > ../$1; $bin unfreeze --why x; }}; \
         $bin exec -- dd if=/dev/zero of=filler bs=4k 2> ../said; tries exec; \
         echo '{task}' | $bin hook on-error > ../answer; tries task; \
         printf '%s' \"$TOOL\" | $bin hook agent > ../advice; tries agent; rm filler; $bin exec -- true",
        disk = disk.display(),
        bin = env!("CARGO_BIN_EXE_backstop"),
    );
    let output = in_a_room(&script, || {
        let mut command = Command::new("unshare");
        command.current_dir(folder.path()).env("TOOL", tool.to_string());
        command
    });
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    for what in ["exec", "task", "agent"] {
        assert_eq!(read(what), "125\n", "{what}: {}", String::from_utf8_lossy(&output.stderr));
        has(&read(&format!("err.{what}")), &["this project is frozen since", "disk_full"]);
    }
    has(&read("said"), &["this run is not recorded", "this project is frozen (disk_full)"]);
    assert!(!read("said").contains("put aside"), "{}", read("said"));
    let answer: Value = serde_json::from_str(&read("answer")).unwrap();
    assert_eq!((&answer["retry"], &answer["severity"]), (&json!(false), &json!("critical")), "{answer}");
    has(&read("advice"), &["additionalContext"]);
}

#[test]
fn a_configuration_may_freeze_for_other_reasons_and_nothing_else_does() {
    let project = Project::new("freeze-reasons");
    let answer = report(&project, "t", "SecurityBreach", "keys were read");
    assert_eq!((&answer["reason"], &answer["severity"]), (&json!("security_breach"), &json!("critical")));
    project.exec(&[], "true").go().code(0);

    project.settings("[freeze]\nreasons = ['security_breach', 'timeout']\n");
    // What is tried again has not ended anything.
    assert_eq!(report(&project, "slow", "TimeoutError", "too slow")["retry"], true);
    project.exec(&[], "true").go().code(0);
    assert_eq!(report(&project, "t", "SecurityBreach", "keys were read")["retry"], false);
    project.exec(&[], "true").go().code(125);
    // No task of a frozen project is tried again, and no agent is started in it.
    let answer = report(&project, "other", "ConnectionError", "refused");
    assert_eq!(
        (&answer["retry"], &answer["fallback"]["action"]),
        (&json!(false), &json!("defer")),
        "{answer}"
    );
    has(answer["why"].as_str().unwrap(), &["frozen"]);
    let before = |tool: &str, command: &str| {
        let event = json!({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": tool,
            "tool_input": {"command": command}});
        project.run(&["hook", "agent"]).stdin(event.to_string()).go().code(0).stdout()
    };
    has(&before("Task", ""), &["\"deny\"", "frozen", "backstop unfreeze"]);
    has(&before("Bash", "claude -p hello"), &["\"deny\"", "frozen"]);
    assert!(!before("Bash", "ls").contains("deny"));
    unfreeze(&project);
    assert!(!before("Task", "").contains("deny"));
    project.file("backstop.toml", "[freeze]\nreasons = ['time_out']\n");
    let wrong = project.run(&["config", "check"]).go();
    has(
        &format!("{}{}", wrong.stdout(), wrong.stderr()),
        &["there is no reason `time_out`", "did you mean `timeout`?"],
    );
}

#[test]
fn a_plan_halts_at_once_when_the_host_is_short_and_goes_on_afterwards() {
    let project = Project::git("freeze-plan");
    project.settings(SHORT);
    PlanText::new()
        .sh("1", "", &format!("test -e $PLACE/room || {{ {FULL}; }}; echo one > one.txt"))
        .sh("2", "1", "echo two > two.txt")
        .write(&project);
    let halted = run(&project, &["--commit", "auto"]).go().code(3);
    has(&halted.stderr(), &["this project is frozen (disk_full)"]);
    assert_eq!(reasons(&project), ["disk_full"], "a second attempt would fill what is left");
    run(&project, &["--commit", "auto"]).go().code(75);
    unfreeze(&project);
    std::fs::write(project.beside("place/room"), "").unwrap();
    run(&project, &["--commit", "auto"]).go().code(0);
    assert_eq!(project.read("two.txt"), "two\n");
}

#[test]
fn one_critical_fault_of_many_freezes() {
    let project = Project::git("freeze-siblings");
    project.settings(SHORT);
    PlanText::new()
        .sh("1", "", FULL)
        .sh("2", "", "sleep 1; echo 'Tests:       2 failed, 44 passed, 46 total'; exit 1")
        .beside("1")
        .write(&project);
    let halted = run(&project, &["--commit", "auto"]).go().code(3);
    has(&halted.stderr(), &["this project is frozen (disk_full)", "1. Put right why the project is frozen"]);
    project.exec(&[], "true").go().code(125);
}

#[test]
fn what_a_phase_reports_from_its_worktree_concerns_its_project() {
    let project = Project::git("freeze-slot");
    project.settings("[freeze]\nreasons = ['data_loss']\n");
    let report = r#"{"task_data": {"task_id": "t"}, "error": {"type": "DataLoss", "message": "gone"}}"#;
    std::fs::write(project.beside("report.json"), report).unwrap();
    let reports = format!(
        "{} hook on-error < {} > /dev/null; echo one > one.txt",
        env!("CARGO_BIN_EXE_backstop"),
        project.beside("report.json").display()
    );
    PlanText::new().sh("1", "", &reports).sh("2", "1", "echo two > two.txt").write(&project);
    run(&project, &["--commit", "auto"]).go().code(75);
    assert!(!project.path().join("two.txt").exists());
    let tasks = project.run(&["hook", "status", "--json"]).go().code(0).json();
    assert_eq!(tasks["tasks"][0]["task_id"], "t", "{tasks}");
    let runs = project.run(&["runs", "--json"]).go().code(0).json();
    let of = |surface: &str| {
        runs["runs"].as_array().unwrap().iter().find(|run| run["surface"] == surface).cloned().unwrap()
    };
    assert_eq!(of("hook")["parent"], of("run")["run"], "it is a part of the plan's run");
}

#[test]
fn a_plan_that_runs_begins_nothing_more_once_the_project_is_frozen() {
    let project = Project::git("freeze-meanwhile");
    project.file(
        "report.json",
        json!({"task_data": {"task_id": "t"}, "error": {"type": "DataLoss", "message": "gone"}}).to_string(),
    );
    project.settings("[freeze]\nreasons = ['data_loss']\n");
    project.sh("git add -A && git commit -qm config");
    let freezes = format!(
        "(cd {} && {} hook on-error < report.json > /dev/null); echo one > one.txt",
        project.path().display(),
        env!("CARGO_BIN_EXE_backstop")
    );
    PlanText::new().sh("1", "", &freezes).sh("2", "1", "echo two > two.txt").write(&project);
    let stopped = run(&project, &["--commit", "auto"]).go().code(75);
    has(
        &stopped.stderr(),
        &["The project was frozen meanwhile", "data_loss", "backstop unfreeze --why TEXT"],
    );
    assert_eq!(state(&project, "1")["status"], "complete", "what ran was let end");
    assert!(!project.path().join("two.txt").exists());
    unfreeze(&project);
    run(&project, &["--commit", "auto"]).go().code(0);
    assert_eq!(project.read("two.txt"), "two\n");
}

#[test]
fn what_waits_for_a_service_is_offered_once_it_answers() {
    let project = Project::new("deferred-service");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let answer =
        report(&project, "t-1", "DatabaseConnectionFailed", &format!("connect ECONNREFUSED {address}"));
    assert_eq!((&answer["error_type"], &answer["fallback"]["action"]), (&json!("system"), &json!("defer")));
    let list = || {
        let list = project.run(&["deferred", "list", "--json"]).go().code(0).json();
        fits(&schema("deferred"), &list, "deferred");
        list["deferred"].clone()
    };
    assert_eq!(list()[0]["is_task"], true);
    assert_eq!(list()[0]["ready"], false);
    assert!(!project.exec(&[], "false").go().code(1).stderr().contains("can be run now"));
    let listener = TcpListener::bind(address).unwrap();
    assert_eq!(list()[0]["ready"], true);
    for quiet in [&["--quiet"][..], &["--json"]] {
        assert!(!project.exec(quiet, "false").go().code(1).stderr().contains("can be run now"));
    }
    has(&project.exec(&[], "false").go().code(1).stderr(), &["can be run now: d-1 (task t-1)"]);
    assert!(!project.run(&["runs"]).go().code(0).stderr().contains("can be run now"));
    let refused = project.run(&["deferred", "run", "d-1"]).go().code(1);
    has(&refused.stderr(), &["only who reported it can go on", "backstop hook resolved t-1"]);
    // One that fails otherwise does not wait any more; one that is resolved neither.
    report(&project, "t-1", "AuthenticationError", "bad token");
    assert_eq!(list(), json!([]));
    report(&project, "t-1", "DatabaseConnectionFailed", &format!("connect ECONNREFUSED {address}"));
    project.run(&["hook", "resolved", "t-1"]).go().code(0);
    assert_eq!(list(), json!([]));
    // Those elsewhere, which are not asked, take nobody's place; and an id may look like a flag.
    for n in 1..=5 {
        report(&project, &format!("far-{n}"), "DatabaseConnectionFailed", &format!("refused 192.0.2.{n}:9"));
    }
    report(&project, "--", "DatabaseConnectionFailed", &format!("refused {address}"));
    let runs = project.run(&["runs"]).go().code(0);
    has(&runs.stderr(), &["can be run now: d-", "(task --)"]);
    let id = runs.stderr().split_whitespace().find(|word| word.starts_with("d-")).unwrap().to_owned();
    let refused = project.run(&["deferred", "run", &id]).go().code(1);
    has(&refused.stderr(), &["`--` is a task", "backstop hook resolved -- --"]);
    project.run(&["hook", "resolved", "--", "--"]).go().code(0);
    drop(listener);
}

#[test]
fn a_diagnosis_shows_the_machine_how_far_it_came_and_the_error() {
    let project = Project::new("diagnose");
    has(&project.run(&["diagnose"]).go().code(2).stderr(), &["backstop exec -- COMMAND"]);
    project.exec(&[], "true").go().code(0);
    has(&project.run(&["diagnose"]).go().code(1).stderr(), &["nothing has failed in this project yet"]);
    let trace = "Traceback (most recent call last):\n  File \"core/mcp_client.py\", line 45, in call_tool\n    x()\n\
                 ConnectionError: Connection refused\n";
    let report = json!({"task_data": {"task_id": "task-abc-123"},
        "error": {"type": "ConnectionError", "message": "Connection refused", "stack_trace": trace},
        "context": {"current_step": "result_posting", "elapsed_seconds": 23.4,
            "partial_result": "half \u{1b}[2J of it, and ghp_012345678901234567890123456789012345"}});
    let answer = project.run(&["hook", "on-error"]).stdin(report.to_string()).go().code(0).json();
    assert_eq!(answer["diagnostics_saved"], true);
    let told = project.run(&["diagnose", "task-abc-123", "--json"]).go().code(0).json();
    fits(&schema("diagnose"), &told, "diagnose");
    assert_eq!(told["run"], answer["run"]);
    let error = &told["errors"][0];
    let context = &error["execution_context"];
    assert_eq!(context["task_id"], "task-abc-123");
    assert_eq!(
        (&context["current_step"], &context["elapsed_seconds"]),
        (&json!("result_posting"), &json!(23.4))
    );
    assert!(!told.to_string().contains("ghp_0"), "{told}");
    let details = &error["error_details"];
    assert_eq!(details["exception_type"], "ConnectionError");
    assert_eq!(details["exception_message"], "Connection refused");
    assert_eq!((&details["file"], &details["line"]), (&json!("core/mcp_client.py"), &json!(45)));
    assert_eq!(details["function"], "call_tool");
    for state in [&error["system_state"], &told["now"]] {
        assert!(state["disk_free_gb"].is_number() && state["queue_length"].is_u64(), "{state}");
        if cfg!(target_os = "linux") {
            assert!(state["memory_available_mb"].is_u64() && state["active_connections"].is_u64(), "{state}");
            assert!(state["load"].is_number(), "{state}");
        }
    }
    let text = project.run(&["diagnose", "last"]).go().code(0).stdout();
    has(
        &text,
        &[
            "core/mcp_client.py:45, in call_tool",
            "result_posting",
            "half \\e[2J of it",
            "System state then",
            "disk free",
        ],
    );
    assert!(!text.contains('\u{1b}') && !text.contains("ghp_0"), "{text:?}");

    // Of every surface, and by every name.
    project.settings("[profile.command]\nbase = \"1ms\"\n");
    project.exec(&[], "echo npm error code ECONNRESET; exit 1").go().code(1);
    let told = project.run(&["diagnose", "--json"]).go().code(0).json();
    assert_eq!((&told["surface"], told["errors"].as_array().unwrap().len()), (&json!("exec"), 4));
    assert!(told["errors"][3]["execution_context"]["elapsed_seconds"].is_number());
    project.exec(&[], FULL).go().code(1);
    let by_deferred = project.run(&["diagnose", "d-1", "--json"]).go().code(0).json();
    assert_eq!(by_deferred["errors"][0]["error_details"]["reason"], "disk_full");
    let by_run =
        project.run(&["diagnose", by_deferred["run"].as_str().unwrap(), "--json"]).go().code(0).json();
    assert_eq!(by_run["errors"], by_deferred["errors"]);
    for unknown in ["r-ffff", "d-99", "task-abd-123", "\u{1b}[2J"] {
        let refused = project.run(&["diagnose", unknown]).go();
        assert!(refused.exit().is_some_and(|code| code == 1 || code == 2), "{unknown}");
        assert!(
            !refused.stderr().contains('\u{1b}') && refused.stderr().contains("hint: "),
            "{}",
            refused.stderr()
        );
    }
}
