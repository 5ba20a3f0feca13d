//! Guards: what they know, who is held by them, who is let through, and what holds where the shared
//! limits cannot be written or read.

use crate::harness::{Folder, Project, in_a_room};
use crate::limits_waits::{date_in, stub};
use crate::plan_text::PlanText;
use serde_json::{Value, json};
use std::io::Read;
use std::time::Duration;

#[test]
fn the_guard_knows_the_stated_end_and_a_caller_that_waits_less_ends_at_once_with_it() {
    let project = Project::new("wait-two-ends");
    let path = stub(&project, "claude", "API Error: 429 rate_limit_error\nretry-after: 57600");
    let run =
        |words: &[&str]| project.run(&[&["exec"], words].concat()).env("PATH", &path).env("TZ", "UTC").go();
    run(&["--wait-max", "5s", "--", "claude", "-p", "one"]).code(1);
    let at = |text: &Value| backstop_core::Timestamp::parse_rfc3339(text.as_str().unwrap()).unwrap();
    let learned = project.events().into_iter().find(|event| event["kind"] == "guard.updated").unwrap();
    let hours = |event: &Value| at(&event["until"]).since(at(&event["at"])).as_secs_f64() / 3600.0;
    assert!((15.9..16.1).contains(&hours(&learned)), "{learned}");
    // The next one is not started: what it would have to wait for is known.
    let refused = run(&["--json", "--", "claude", "-p", "two"]).code(125);
    let json = refused.json();
    assert_eq!((json["outcome"].as_str(), json["attempts"].as_u64()), (Some("deferred"), Some(0)), "{json}");
    let until = at(&json["decision"]["until"]);
    assert!(
        until.since(at(&learned["until"])).max(at(&learned["until"]).since(until)) < Duration::from_secs(2)
    );
    let last = refused.stderr().lines().rfind(|line| line.starts_with("  next: ")).unwrap().to_owned();
    let end = date_in("UTC", u64::try_from(until.as_millis() / 1000).unwrap(), "+%H:%M UTC");
    assert!(last.contains(&end), "{end}: {last}");
    for row in
        project.run(&["deferred", "list", "--json"]).go().code(0).json()["deferred"].as_array().unwrap()
    {
        let off = at(&row["until"])
            .since(at(&learned["until"]))
            .max(at(&learned["until"]).since(at(&row["until"])));
        assert!(off < Duration::from_secs(2), "{row}");
    }
    let listed = project.run(&["guard"]).go().code(0).stdout();
    assert!(listed.contains("limited for 1") && listed.contains(" until "), "{listed}");
    // What sends no request is not held, and a dry run sees the guard of the recognised client.
    std::fs::write(project.path().join("bin/claude"), "#!/bin/sh\necho fine\n").unwrap();
    run(&["--", "claude", "--version"]).code(0);
    run(&["--", "claude", "mcp", "list"]).code(0);
    let forecast = run(&["--dry-run", "--", "claude", "-p", "three"]).code(0).stdout();
    assert!(forecast.contains("its guard opens too late"), "{forecast}");
}

#[test]
fn a_limit_of_one_model_lets_a_command_with_another_model_through() {
    let project = Project::new("guard-of-a-model");
    let path = stub(&project, "claude", "You've hit your Opus limit. Try again in 3 hours.");
    let run = |wait_max: &str, model: &str| {
        let words = ["exec", "--wait-max", wait_max, "--", "claude", "-p", "x", "--model", model];
        project.run(&words).env("PATH", &path).env("TZ", "UTC").go()
    };
    run("1h", "opus").code(1);
    let listed = project.run(&["guard"]).go().code(0).stdout();
    assert!(listed.contains("anthropic/opus"), "{listed}");
    std::fs::write(project.path().join("bin/claude"), "#!/bin/sh\necho fine\n").unwrap();
    run("1s", "claude-opus-4-1").code(125);
    run("1s", "sonnet").code(0);
}

/// A guard that a sentence closed, in milliseconds from the event that says so.
fn closed_for(project: &Project) -> u128 {
    let at = |text: &Value| backstop_core::Timestamp::parse_rfc3339(text.as_str().unwrap()).unwrap();
    let event = project
        .events()
        .into_iter()
        .rfind(|event| event["kind"] == "guard.updated" && event["until"].is_string())
        .unwrap();
    at(&event["until"]).since(at(&event["at"])).as_millis()
}

#[test]
fn a_sentence_closes_a_guard_for_no_longer_than_whoever_read_it_waits() {
    const SENTENCE: &str = "You've hit your session limit. Resets in 16 hours.";
    let near = |project: &Project, seconds: u128| {
        let closed = closed_for(project);
        let range = (seconds - 2) * 1000..=seconds * 1000 + 500;
        assert!(range.contains(&closed), "{seconds} s: {closed} ms");
    };
    // A command: its own limit, whatever the sentence says. How it ends names the stated time.
    let project = Project::new("sentence-exec");
    let path = stub(&project, "claude", SENTENCE);
    let exec = |flags: &[&str]| {
        let words = [&["exec", "--json"], flags, &["--", "claude", "-p", "x"]].concat();
        let json = project.run(&words).env("PATH", &path).go().code(1).json();
        project.run(&["guard", "clear", "claude", "--why", "the next row"]).go().code(0);
        json
    };
    let json = exec(&["--wait-max", "20s"]);
    near(&project, 20);
    assert_eq!(json["fault"]["facts"]["retry_after_seconds"], 57600.0, "{json}");
    assert_eq!(json["outcome"], "deferred", "{json}");
    exec(&[]);
    near(&project, 60);
    // A plan: `plan.wait_max`.
    let project = Project::plain("sentence-plan");
    let path = stub(&project, "claude", SENTENCE);
    project.settings("[plan]\nwait_max = \"2h\"\n");
    PlanText::new().phase("1", "", "agent = 'claude'").write(&project);
    let flags = ["run", "plan.md", "--commit", "none", "--isolation", "none"];
    project.run(&flags).env("PATH", &path).go();
    near(&project, 7200);
    // A hook and `guard ingest`: as long as a command on a terminal waits.
    let project = Project::new("sentence-hook");
    let event = json!({ "hook_event_name": "StopFailure", "session_id": "s", "error": "rate_limit", "last_assistant_message": SENTENCE });
    project.run(&["hook", "agent"]).stdin(event.to_string()).go().code(0);
    near(&project, 3600);
    let answer = json!({ "error": { "message": "Rate limit reached. Please try again in 16 hours." } });
    let answer = format!("HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n\r\n{answer}");
    let learned = project.run(&["guard", "ingest", "openai", "--json"]).stdin(answer).go().code(0).json();
    let wait = learned["wait_seconds"].as_f64().unwrap();
    assert!((3590.0..=3600.0).contains(&wait), "{learned}");
}

#[test]
fn what_a_sentence_closed_for_hours_is_tried_by_one_each_hour_and_a_success_opens_it_for_all() {
    let project = Project::new("wait-probe");
    let path = stub(&project, "claude", "You've hit your session limit. Resets in 16 hours.");
    let run = |jump_minutes: i64, code: i32| {
        let clock = project.beside("clock");
        std::fs::write(&clock, (jump_minutes * 60_000).to_string()).unwrap();
        let run = project.run(&[
            "exec",
            "--attempts",
            "1",
            "--wait-max",
            "5h",
            "--deadline",
            "1m",
            "--",
            "claude",
            "-p",
            "x",
        ]);
        run.env("PATH", &path).env("BACKSTOP_CLOCK_FILE", &clock.display().to_string()).go().code(code);
    };
    run(0, 1);
    run(30, 125);
    run(61, 1);
    run(62, 125);
    std::fs::write(project.path().join("bin/claude"), "#!/bin/sh\necho fine\n").unwrap();
    run(63, 125);
    run(122, 0);
    run(122, 0);
    project.run(&["guard", "check", "claude"]).go().code(0);
}

#[test]
fn a_guard_is_asked_for_by_a_name_that_is_known() {
    let project = Project::new("wait-names");
    project.run(&["guard", "check", "claude"]).go().code(0);
    let typo = project.run(&["guard", "check", "antropic"]).go().code(2).stderr();
    assert!(typo.contains("did you mean `anthropic`?"), "{typo}");
    project.run(&["guard", "wait", "nobody-at-all"]).go().code(2);
    project.run(&["guard", "clear", "nobody-at-all"]).go().code(2);
    let ingest = ["guard", "ingest", "my-proxy", "--headers", "-"];
    project.run(&ingest).stdin("retry-after: 60").go().code(0);
    project.run(&["guard", "check", "my-proxy"]).go().code(75);
}

#[test]
fn what_a_log_says_happened_to_somebody_else() {
    let project = Project::new("wait-reader");
    let text = "openai.RateLimitError: Error code: 429 - {'error': {'message': 'Please try again in 20s.'}}";
    project.file("run.log", text);
    let json = project.run(&["exec", "--json", "--", "cat", "run.log", "nowhere.log"]).go().code(1).json();
    assert_ne!(json["reason"], "rate_limited", "{json}");
    assert_eq!(json["attempts"], 1, "{json}");
    project.run(&["guard", "check", "openai"]).go().code(0);
}

#[test]
fn a_refusal_of_what_runs_once_names_the_command_that_repeats_it() {
    let project = Project::new("wait-once");
    let json =
        project.exec(&["--once", "--json"], "echo 'HTTP 429 Too Many Requests'; exit 1").go().code(1).json();
    assert_eq!(json["decision"]["action"], "confirm", "{json}");
    let command = format!("backstop exec --confirm {}", json["run"].as_str().unwrap());
    assert_eq!((&json["decision"]["command"], &json["next"]), (&json!(command), &json!(command)), "{json}");
}

#[test]
fn a_waiter_that_was_killed_is_not_counted() {
    let project = Project::new("wait-killed");
    project.run(&["guard", "ingest", "groq", "--headers", "-"]).stdin("retry-after: 600").go().code(0);
    let mut waiter = project.run(&["guard", "wait", "groq"]).command().spawn().unwrap();
    let waiting =
        || project.run(&["guard", "status", "--json"]).go().code(0).json()["guards"][0]["waiting"].clone();
    crate::harness::until("it waits", || waiting() == 1);
    waiter.kill().unwrap();
    waiter.wait().unwrap();
    assert_eq!(waiting(), 0);
}

#[test]
fn a_limit_that_an_agent_tells_of_closes_the_guard_although_the_journal_is_locked() {
    let project = Project::new("guard-journal-locked");
    project.exec(&[], "exit 3").go().code(3);
    let projects = std::fs::read_dir(project.state().join("projects")).unwrap();
    let mut databases = projects.map(|entry| entry.unwrap().path());
    let database = databases.find(|path| path.extension().is_some_and(|end| end == "db")).unwrap();
    let mut holder = held_open(&database, "c.execute('begin immediate')");
    let event = r#"{"hook_event_name":"StopFailure","session_id":"s1","error":"rate_limit"}"#;
    project.run(&["hook", "agent"]).stdin(event).go().code(0);
    drop(holder.stdin.take());
    holder.wait().unwrap();
    project.run(&["guard", "check", "anthropic"]).go().code(75);
}

/// Holds the limits open for writing in another process, until its input ends.
fn locked(project: &Project) -> std::process::Child {
    held(project, "c.execute('begin immediate')")
}

/// The same, so that nobody can read them either.
fn locked_for_readers(project: &Project) -> std::process::Child {
    held(
        project,
        "c.execute('pragma locking_mode=exclusive'); c.execute('begin exclusive'); c.execute('update budgets set unit = unit')",
    )
}

fn held(project: &Project, lock: &str) -> std::process::Child {
    held_open(&project.state().join("limits.db"), lock)
}

fn held_open(database: &std::path::Path, lock: &str) -> std::process::Child {
    let script = format!(
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); {lock}; \
         print('locked', flush=True); sys.stdin.read()"
    );
    let mut holder = std::process::Command::new("python3")
        .args(["-c", &script])
        .arg(database)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    holder.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    holder
}

#[test]
fn limits_that_cannot_be_written_are_obeyed_all_the_same() {
    let project = Project::new("wait-locked");
    project.run(&["guard", "ingest", "groq", "--headers", "-"]).stdin("retry-after: 600").go().code(0);
    project.run(&["budget", "set", "spent", "1"]).go().code(0);
    project.exec(&["--budget", "spent"], "exit 0").go().code(0);
    project.run(&["budget", "set", "left", "2"]).go().code(0);
    let mut holder = locked(&project);
    let closed = project.exec(&["--provider", "groq"], "echo ran").go().code(125);
    assert!(closed.stderr().contains("the limit lasts another"), "{}", closed.stderr());
    let spent = project.exec(&["--budget", "spent"], "echo ran").go().code(125);
    assert!(spent.stderr().contains("nothing is left of budget spent"), "{}", spent.stderr());
    // What is left goes on, and says that it is not counted.
    let left = project.exec(&["--budget", "left"], "echo ran").go().code(0);
    assert_eq!(
        left.stderr().matches("what is spent of budget left is not stored").count(),
        1,
        "{}",
        left.stderr()
    );
    drop(holder.stdin.take());
    holder.wait().unwrap();
}

#[test]
fn a_lock_of_a_process_that_died_holds_nobody_up() {
    for (name, lock) in
        [("writers", locked as fn(&Project) -> std::process::Child), ("all", locked_for_readers)]
    {
        let project = Project::new(&format!("guards-dead-{name}"));
        project.run(&["budget", "set", "left", "2"]).go().code(0);
        let mut holder = lock(&project);
        // Killed, and not even waited for: what it had begun is undone, and its lock goes with it.
        holder.kill().unwrap();
        for code in [0, 0, 125] {
            let done = project.exec(&["--budget", "left"], "exit 0").go().code(code);
            assert!(code == 125 || done.stderr().is_empty(), "{name}: {}", done.stderr());
        }
        holder.wait().unwrap();
    }
}

#[test]
fn limits_on_a_full_or_read_only_disk_are_obeyed_and_what_is_not_counted_is_said() {
    let folder = Folder::new("guards-disk");
    let state = folder.path().join("state");
    std::fs::create_dir_all(&state).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=2m,mode=700 tmpfs {state}; export BACKSTOP_STATE_DIR={state}; \
         printf 'retry-after: 600' | {bin} guard ingest groq --headers - || exit 90; {bin} budget set spent 1; \
         {bin} exec -q --budget spent -- true || exit 91; {bin} budget set left 3; \
         try() {{ {bin} exec --provider groq -- echo ran > $1-guard 2>&1; echo $? >> $1-guard; \
         {bin} exec --budget spent -- echo ran > $1-spent 2>&1; echo $? >> $1-spent; \
         {bin} exec --budget left -- echo ran > $1-left 2>&1; echo $? >> $1-left; }}; \
         dd if=/dev/zero of={state}/filler bs=1k 2>/dev/null; try full; rm {state}/filler; \
         mount -o remount,ro {state}; try read-only",
        state = state.display(),
        bin = env!("CARGO_BIN_EXE_backstop"),
    );
    in_a_room(&script, || {
        let mut command = std::process::Command::new("unshare");
        command.current_dir(folder.path());
        command
    });
    let read = |name: String| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    for disk in ["full", "read-only"] {
        let (guard, spent) = (read(format!("{disk}-guard")), read(format!("{disk}-spent")));
        assert!(guard.ends_with("125\n") && guard.contains("the limit lasts another"), "{disk}: {guard}");
        assert!(
            spent.ends_with("125\n") && spent.contains("nothing is left of budget spent"),
            "{disk}: {spent}"
        );
        let left = read(format!("{disk}-left"));
        assert!(left.ends_with("0\n") && left.contains("ran\n"), "{disk}: {left}");
        assert_eq!(left.matches("what is spent of budget left is not stored").count(), 1, "{disk}: {left}");
    }
}

#[test]
fn a_plan_whose_budget_is_used_up_halts_in_words_although_the_limits_are_locked() {
    let project = Project::git("guards-plan");
    project.run(&["budget", "set", "spent", "1"]).go().code(0);
    project.exec(&["--budget", "spent"], "exit 0").go().code(0);
    PlanText::new().sh("1", "", "echo one > one.txt").write(&project);
    let mut holder = locked(&project);
    let halted = project.run(&["run", "plan.md", "--budget", "spent", "--commit", "none"]).go().code(3);
    let said = halted.stdout() + &halted.stderr();
    assert!(said.contains("nothing is left of budget spent"), "{said}");
    assert!(!project.path().join("one.txt").exists());
    drop(holder.stdin.take());
    holder.wait().unwrap();
}

#[test]
fn a_budget_that_is_never_given_anew_is_in_all() {
    let project = Project::new("guards-budget-words");
    project.run(&["budget", "set", "night", "5"]).go().code(0);
    let shown = project.run(&["budget", "status"]).go().code(0).stdout();
    assert!(shown.contains(" in all ") && !shown.contains("per total"), "{shown}");
}

#[test]
fn limits_that_cannot_be_read_are_said_once_and_a_named_budget_is_an_error() {
    let project = Project::new("guards-unreadable");
    project.run(&["budget", "set", "night", "5"]).go().code(0);
    let mut holder = locked_for_readers(&project);
    let done = project.exec(&["--provider", "groq"], "echo ran").go().code(0);
    assert_eq!(done.stderr().matches("the shared limits cannot be read").count(), 1, "{}", done.stderr());
    let refused = project.exec(&["--budget", "night"], "echo ran").go().code(125);
    assert!(refused.stderr().contains("is locked by another process"), "{}", refused.stderr());
    drop(holder.stdin.take());
    holder.wait().unwrap();
}

#[test]
fn a_providers_name_with_a_slip_is_warned_of() {
    let project = Project::new("guards-slip");
    let done = project.exec(&["--provider", "antropic"], "exit 0").go().code(0);
    assert!(done.stderr().contains("did you mean `--provider anthropic`?"), "{}", done.stderr());
    let done = project.exec(&["--provider", "in-house"], "exit 0").go().code(0);
    assert_eq!(done.stderr(), "");
}
