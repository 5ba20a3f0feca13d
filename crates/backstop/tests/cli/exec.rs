//! `backstop exec`: what is retried, what is not, how it ends.

use crate::harness::{Project, until};
use serde_json::Value;

/// Fails with this text until it was started `times` times, then succeeds.
fn failing(times: u32, text: &str) -> String {
    format!(
        "echo x >> tries; if [ $(wc -l < tries) -le {times} ]; then echo '{text}' >&2; exit 1; fi; echo fine"
    )
}

const RESET: &str = "npm error code ECONNRESET";

#[test]
fn a_network_fault_is_retried_and_the_story_is_told() {
    let project = Project::new("exec-recovers");
    let done = project.exec(&[], &failing(2, RESET)).go().code(0);
    assert_eq!(done.stdout(), "fine\n");
    let stderr = done.stderr();
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.iter().filter(|l| **l == RESET).count(), 2, "the command's own words stay: {stderr}");
    assert!(
        lines[1].starts_with("attempt 1 failed: network_transient (npm error code ECONNRESET, rule "),
        "{stderr}"
    );
    assert!(
        lines[2].starts_with("retrying in ") && lines[2].ends_with("(attempt 2 of 4) · Ctrl-C to stop"),
        "{stderr}"
    );
    assert!(
        lines[6].starts_with("done on attempt 3 · ") && lines[6].contains("`backstop explain r-"),
        "{stderr}"
    );
    let story = project.run(&["explain", "last"]).go().code(0).stdout();
    for part in [
        "attempt 1",
        "attempt 2",
        "attempt 3",
        "recognised by rule js.",
        "decided: retry in",
        "1 used; wait 20 ms",
        "it helped",
    ] {
        assert!(story.contains(part), "{part} is missing in\n{story}");
    }
}

#[test]
fn what_failed_is_recorded_before_anything_is_done_about_it() {
    let project = Project::new("exec-order");
    project.exec(&[], &failing(1, RESET)).go().code(0);
    assert_eq!(
        project.kinds(),
        [
            "run.started",
            "attempt.started",
            "attempt.finished",
            "error.classified",
            "decision.made",
            "attempt.started",
            "attempt.finished",
            "recovery.attempted",
            "run.ended"
        ]
    );
}

#[test]
fn retries_end_and_the_network_is_called_permanent() {
    let project = Project::new("exec-exhausted");
    let done = project.exec(&["--json"], &failing(99, RESET)).go().code(1);
    let json = done.json();
    assert_eq!((json["attempts"].as_u64(), json["reason"].as_str()), (Some(4), Some("network_permanent")));
    assert_eq!(json["outcome"], "failed");
    assert_eq!(json["errors"].as_array().unwrap().len(), 4);
    assert_eq!(json["errors"][0], "Attempt 1: npm error code ECONNRESET");
    assert_eq!(json["tool"], "sh");
    assert!(json["suggestion"].is_string());
    assert!(json["decision"]["why"].as_str().unwrap().contains("4 attempts"), "{json}");
}

#[test]
fn what_a_retry_cannot_cure_is_not_retried() {
    let project = Project::new("exec-no-retry");
    for (text, reason) in [
        ("Tests:       3 failed, 44 passed, 47 total", "test_failure"),
        ("fatal: Authentication failed for https://example.invalid/", "auth_error"),
        ("something nobody has ever seen", "unknown"),
    ] {
        let json = project.exec(&["--json"], &format!("echo '{text}' >&2; exit 7")).go().code(7).json();
        assert_eq!((json["reason"].as_str(), json["attempts"].as_u64()), (Some(reason), Some(1)), "{text}");
        assert_eq!(json["exit"], 7);
    }
}

#[test]
fn a_first_success_says_nothing() {
    let project = Project::new("exec-quiet");
    let done = project.exec(&[], "echo out; echo err >&2").go().code(0);
    assert_eq!((done.stdout().as_str(), done.stderr().as_str()), ("out\n", "err\n"));
}

#[test]
fn exit_codes_are_those_of_timeout() {
    let project = Project::new("exec-codes");
    project.exec(&[], "exit 3").go().code(3);
    project.exec(&[], "kill -TERM $$").go().code(143);
    project.exec(&["--timeout", "200ms", "--attempts", "1"], "sleep 60").go().code(124);
    project.exec(&["--idle", "200ms", "--attempts", "1"], "echo x; sleep 60").go().code(124);
    project.run(&["exec", "--", "no-such-program-here"]).go().code(127);
    project.run(&["exec", "--", "/etc/passwd"]).go().code(126);
}

#[test]
fn a_timeout_says_which_limit_and_what_came_last() {
    let project = Project::new("exec-timeout");
    let flags = ["--json", "--idle", "300ms", "--attempts", "1"];
    let json = project.exec(&flags, "echo compiling core; sleep 60").go().code(124).json();
    assert_eq!(json["reason"], "timeout");
    assert_eq!(json["fault"]["facts"]["last_activity"], "compiling core");
    assert_eq!(json["fault"]["cause"], "silent for 300 ms, which is the limit");
}

#[test]
fn a_command_learns_where_it_stands() {
    let project = Project::new("exec-told");
    let script = "echo \"$BACKSTOP_ATTEMPT $BACKSTOP_RUN_ID $BACKSTOP_DEADLINE\" >> told; echo ECONNRESET: connection reset by peer >&2; exit 1";
    let json = project.exec(&["--json", "--attempts", "2", "--deadline", "1h"], script).go().code(1).json();
    let told = project.read("told");
    let rows: Vec<Vec<&str>> = told.lines().map(|l| l.split(' ').collect()).collect();
    assert_eq!((rows[0][0], rows[1][0]), ("1", "2"));
    assert_eq!(rows[0][1], json["run"].as_str().unwrap());
    assert!(rows[0][2].ends_with('Z') && rows[0][2] == rows[1][2], "{told}");
}

#[test]
fn the_deadline_is_a_ceiling_for_waits_and_for_the_attempt_itself() {
    let project = Project::new("exec-deadline");
    project.settings("[profile.command]\nbase = \"50s\"\n");
    let json = project.exec(&["--json", "--deadline", "10s"], &failing(9, RESET)).go().code(1).json();
    assert!(json["decision"]["why"].as_str().unwrap().contains("would pass the deadline"), "{json}");
    let json = project.exec(&["--json", "--deadline", "300ms"], "sleep 60").go().code(124).json();
    assert_eq!((json["reason"].as_str(), json["attempts"].as_u64()), (Some("timeout"), Some(1)));
}

#[test]
fn once_is_once_and_somebody_may_say_again() {
    let project = Project::new("exec-once");
    let done = project.exec(&["--once", "--json"], &failing(1, RESET)).go().code(1);
    let json = done.json();
    assert_eq!((json["outcome"].as_str(), json["attempts"].as_u64()), (Some("unconfirmed"), Some(1)));
    let next = json["next"].as_str().unwrap().to_owned();
    let run = json["run"].as_str().unwrap().to_owned();
    assert_eq!(next, format!("backstop exec --confirm {run}"));
    assert!(done.stderr().contains(&next), "{}", done.stderr());
    let again =
        project.run(&["exec", "--confirm", &run, "--why", "the registry says it is not there"]).go().code(0);
    assert_eq!(again.stdout(), "fine\n");
    let events = project.events();
    let said = events.iter().find(|e| e["kind"] == "override").unwrap();
    assert_eq!(said["what"], format!("--confirm {run}"));
    assert_eq!(said["rationale"], "the registry says it is not there");
    // One confirmation is one repetition, and is used up by it.
    let spent = project.run(&["exec", "--confirm", &run]).go().code(125);
    assert!(spent.stderr().contains("does not wait"), "{}", spent.stderr());
    assert_eq!(project.read("tries").lines().count(), 2);
    // What was never run before waits for nobody.
    let refused = project.run(&["exec", "--confirm", "r-0000"]).go().code(125);
    assert!(refused.stderr().contains("r-0000 does not wait"), "{}", refused.stderr());
}

#[test]
fn a_confirmed_command_is_repeated_once_and_asks_again() {
    let project = Project::new("exec-confirm-once");
    let script = "echo x >> tries; echo npm error code ECONNRESET; exit 1";
    let flags = ["--once", "--timeout", "50s", "--json"];
    let first = project.exec(&flags, script).go().code(1).json();
    let second = project.exec(&flags, script).go().code(1).json();
    // Each of the two has a confirmation of its own.
    for json in [&first, &second] {
        let again =
            project.run(&["exec", "--json", "--confirm", json["run"].as_str().unwrap()]).go().code(1).json();
        assert_eq!((again["attempts"].as_u64(), again["outcome"].as_str()), (Some(1), Some("unconfirmed")));
    }
    assert_eq!(project.read("tries").lines().count(), 4);
    let list = project.run(&["deferred", "list", "--json"]).go().code(0).json();
    let waiting = list["deferred"].as_array().unwrap();
    assert_eq!(waiting.len(), 2);
    assert!(
        waiting[0]["flags"].as_array().unwrap().contains(&"50s".into()),
        "its limits stay with it: {list}"
    );
    let id = waiting[0]["id"].as_str().unwrap();
    project.run(&["deferred", "run", id]).go().code(1);
    assert_eq!(project.read("tries").lines().count(), 5);
    let said = project.events();
    assert_eq!(said.iter().filter(|e| e["kind"] == "override").count(), 3);
}

#[test]
fn words_that_cannot_be_written_down_are_not_run_as_others() {
    use std::os::unix::ffi::OsStrExt;
    let project = Project::new("exec-not-utf8");
    let mut command =
        project.run(&["exec", "--on", "unknown=defer", "--", "sh", "-c", "exit 1", "x"]).command();
    command.arg(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    assert_eq!(command.output().unwrap().status.code(), Some(1));
    let refused = project.run(&["deferred", "run", "d-1"]).go().code(1);
    assert!(refused.stderr().contains("with the command as it was"), "{}", refused.stderr());
}

#[test]
fn a_deadline_that_has_passed_starts_nothing() {
    let project = Project::new("exec-past");
    let past =
        project.exec(&["--json"], "touch started").env("BACKSTOP_DEADLINE", "2001-01-01T00:00:00Z").go();
    assert_eq!(past.code(124).json()["reason"], "timeout");
    assert!(!project.path().join("started").exists());
    let odd = project.exec(&[], "exit 0").env("BACKSTOP_DEADLINE", "soon").go().code(0);
    assert!(odd.stderr().contains("BACKSTOP_DEADLINE is set to `soon`"), "{}", odd.stderr());
}

#[test]
fn three_levels_do_not_multiply_either() {
    let project = Project::new("exec-nested-three");
    let bin = env!("CARGO_BIN_EXE_backstop");
    let inner = format!("{bin} exec -- {bin} exec -- sh -c 'echo x >> tries; echo {RESET}; exit 1'");
    project.exec(&[], &inner).go().code(1);
    assert_eq!(project.read("tries").lines().count(), 4);
}

#[test]
fn a_limit_on_file_sizes_is_one_warning() {
    let project = Project::new("exec-fsize");
    project.exec(&[], "exit 0").go().code(0);
    let script =
        format!("ulimit -f 1; {} exec -- sh -c 'echo ran; sleep 0.1'", env!("CARGO_BIN_EXE_backstop"));
    let output = project.program("bash", &["-c", &script]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"ran\n"[..]), "{stderr}");
    assert_eq!(stderr.matches("this run is not recorded").count(), 1, "{stderr}");
    assert!(!stderr.contains("tells the story"), "{stderr}");
}

#[test]
fn once_does_not_ask_where_a_repetition_would_not_help() {
    let project = Project::new("exec-once-plain");
    let json = project.exec(&["--once", "--json"], "echo nobody knows this; exit 1").go().code(1).json();
    assert_eq!(json["outcome"], "failed");
}

#[test]
fn on_overrides_and_is_recorded() {
    let project = Project::new("exec-on");
    let flags = ["--on", "unknown=retry:3", "--why", "it is flaky", "--json"];
    let json = project.exec(&flags, &failing(2, "who knows")).go().code(0).json();
    assert_eq!(json["attempts"], 3);
    let events = project.events();
    let said = events.iter().find(|e| e["kind"] == "override").unwrap();
    assert_eq!(
        (said["what"].as_str(), said["rationale"].as_str()),
        (Some("--on unknown=retry:3"), Some("it is flaky"))
    );
    let json =
        project.exec(&["--on", "network_transient=surface", "--json"], &format!("echo {RESET}; exit 1"));
    assert_eq!(json.go().code(1).json()["attempts"], 1);
}

#[test]
fn quiet_failure_classifies_records_and_exits_0() {
    let project = Project::new("exec-quiet-failure");
    let done = project.exec(&["--quiet-failure"], "echo nobody knows >&2; exit 9").go().code(0);
    assert_eq!(done.stderr(), "nobody knows\n");
    assert!(project.kinds().contains(&"error.classified".to_owned()));
}

#[test]
fn classify_runs_once_and_explains() {
    let project = Project::new("exec-classify");
    let done = project.exec(&["--classify"], &failing(9, RESET)).go().code(1);
    assert!(
        done.stderr().contains("network_transient · transient · high · retry plain"),
        "{}",
        done.stderr()
    );
    assert_eq!(project.read("tries").lines().count(), 1);
}

#[test]
fn reports_are_written_whole() {
    let project = Project::new("exec-report");
    project.exec(&["--report", "out.json"], "exit 4").go().code(4);
    let json: Value = serde_json::from_str(&project.read("out.json")).unwrap();
    assert_eq!(json["exit"], 4);
    project.exec(&["--report", "out.md"], &failing(1, RESET)).go().code(0);
    assert!(project.read("out.md").starts_with("## r-"), "{}", project.read("out.md"));
    // What cannot be written is a warning: the command has run.
    let done = project.exec(&["--report", "no/such/folder/x.json"], "exit 4").go().code(4);
    assert!(done.stderr().contains("cannot write the report"), "{}", done.stderr());
}

#[test]
fn deferred_work_that_many_run_at_once_runs_once() {
    let project = Project::new("exec-deferred-race");
    let script = "test -f up || { echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?' >&2; exit 2; }; \
                  echo ran >> ran; until test -f go; do sleep 0.02; done";
    project.exec(&[], script).go().code(2);
    project.file("up", "");
    let run = || project.run(&["deferred", "run", "d-1"]);
    let children: Vec<_> = (0..6).map(|_| run().command().spawn().unwrap()).collect();
    // Five are refused while one runs it, whoever that is.
    until("one runs it", || project.read("ran") == "ran\n");
    let refused = run().go().code(75).stderr();
    assert!(refused.contains("d-1 is being run by process "), "{refused}");
    project.file("go", "");
    let mut codes: Vec<Option<i32>> = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        codes.push(output.status.code());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // Who comes when it is done finds nothing to run.
        let named = said.contains("d-1 is being run by ") || said.contains("there is no deferred work d-1");
        assert_eq!(named, output.status.code() != Some(0), "{said}");
    }
    assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 1, "{codes:?}");
    assert_eq!(project.read("ran"), "ran\n");
}

#[test]
fn a_service_that_is_down_is_put_aside_and_can_be_run_later() {
    let project = Project::new("exec-deferred");
    let script = "test -f up || { echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?' >&2; exit 2; }; echo rows";
    let json = project.exec(&["--json"], script).go().code(2).json();
    assert_eq!((json["reason"].as_str(), json["outcome"].as_str()), (Some("service_down"), Some("deferred")));
    assert_eq!(json["next"], "backstop deferred run d-1");
    project.exec(&[], script).go().code(2);
    let list = project.run(&["deferred", "list", "--json"]).go().code(0).json();
    assert_eq!(
        (list["deferred"].as_array().unwrap().len(), list["deferred"][0]["count"].as_u64()),
        (1, Some(2))
    );
    assert!(project.run(&["deferred", "list"]).go().code(0).stdout().contains("d-1"));
    project.run(&["deferred", "run", "d-1"]).go().code(2);
    project.file("up", "");
    assert_eq!(project.run(&["deferred", "run", "d-1"]).go().code(0).stdout(), "rows\n");
    assert!(project.run(&["deferred", "list"]).go().code(0).stdout().contains("there is no deferred work"));
    let gone = project.run(&["deferred", "drop", "d-1"]).go().code(2);
    assert!(gone.stderr().contains("hint: `backstop deferred list`"), "{}", gone.stderr());
}

#[test]
fn nested_backstops_do_not_multiply_their_retries() {
    let project = Project::new("exec-nested");
    let inner =
        format!("{} exec -- sh -c 'echo x >> tries; echo {RESET}; exit 1'", env!("CARGO_BIN_EXE_backstop"));
    let json = project.exec(&["--json"], &inner).go().code(1).json();
    assert_eq!(project.read("tries").lines().count(), 4, "{json}");
    assert!(
        json["decision"]["why"].as_str().unwrap().contains("a layer below has made 4 attempts"),
        "{json}"
    );
    let runs = project.run(&["runs", "--json"]).go().code(0).json();
    assert_eq!(runs["runs"][0]["parent"], json["run"]);
}

#[test]
fn disable_turns_every_recovery_off() {
    let project = Project::new("exec-disable");
    let json = project.exec(&["--json"], &failing(1, RESET)).env("BACKSTOP_DISABLE", "1").go().code(1).json();
    assert_eq!(json["attempts"], 1);
    assert!(json["decision"]["why"].as_str().unwrap().contains("BACKSTOP_DISABLE"), "{json}");
}

#[test]
fn an_outage_is_not_multiplied_without_end() {
    let project = Project::new("exec-budget");
    project.settings("[profile.command]\nbase = \"1ms\"\n[retry_budget]\nreserve = 4\nshare_percent = 0\n");
    let attempts: Vec<u64> = (0..3)
        .map(|_| {
            let done = project.exec(&["--json"], &format!("echo {RESET}; exit 1")).go().code(1);
            done.json()["attempts"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(attempts, [4, 2, 1]);
}

#[test]
fn what_it_left_running_is_ended_and_said() {
    let project = Project::new("exec-left");
    let done = project.exec(&[], "sleep 600 & echo $! > pid; echo started").go().code(0);
    assert!(done.stderr().contains("ended what it had left running: sleep"), "{}", done.stderr());
    let kept =
        project.exec(&["--keep-background"], "sleep 600 >/dev/null 2>&1 & echo $! > pid2").go().code(0);
    assert_eq!(kept.stderr(), "");
    #[cfg(target_os = "linux")]
    {
        use crate::harness::is_alive;
        assert!(!is_alive(&project.read("pid")));
        assert!(is_alive(&project.read("pid2")));
    }
    std::process::Command::new("kill").arg(project.read("pid2").trim()).status().unwrap();
}

#[test]
fn every_log_format_tells_the_same() {
    let project = Project::new("exec-log");
    let json = project.exec(&["--log-format", "json"], &failing(1, RESET)).go().code(0).stderr();
    let kinds: Vec<String> = json
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|event| event["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, project.kinds());
    std::fs::remove_file(project.path().join("tries")).unwrap();
    let emit = project.exec(&["--log-format", "emit"], &failing(1, RESET)).go().code(0).stderr();
    assert!(emit.contains("EMIT: TOOL_FAILURE tool="), "{emit}");
    assert!(emit.contains("EMIT: RECOVERY_ATTEMPT strategy=retry success=true"), "{emit}");
}

#[test]
fn a_pack_of_your_own_decides() {
    let project = Project::new("exec-rules");
    let pack = project.file(
        "own.toml",
        "[[rule]]\nid = \"own.hiccup\"\nreason = \"network_transient\"\nliterals = [\"the hub hiccupped\"]\n\
         match = [\"oh, the hub hiccupped again\"]\nmiss = [\"the hub is fine\"]\n",
    );
    let flags = ["--json", "--rules", pack.to_str().unwrap()];
    let json = project.exec(&flags, &failing(1, "oh, the hub hiccupped again")).go();
    let json = json.code(0).json();
    assert_eq!(json["attempts"], 2, "{json}");
}
