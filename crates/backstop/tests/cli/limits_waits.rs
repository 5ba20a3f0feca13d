//! Waits that somebody asks for: in headers, bodies and sentences, on every surface. What was
//! waited is read from the record, never from a clock.

use crate::harness::Project;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// A loopback server that refuses with this answer so many times, then serves.
fn refusing(times: usize, answer: String) -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let served = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nok\n";
            let _ = stream.write_all(if n < times { answer.as_bytes() } else { served.as_bytes() });
        }
    });
    port
}

fn answer(headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 429 Too Many Requests\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// A client in the shell: prints what it was answered, fails unless that is 200.
fn client(port: u16) -> String {
    format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET / HTTP/1.1\\r\\n\\r\\n' >&3; out=$(cat <&3); \
         printf '%s\\n' \"$out\"; case $out in *' 200 '*) exit 0;; *) exit 1;; esac"
    )
}

fn run_bash(project: &Project, flags: &[&str], script: &str) -> crate::harness::Run {
    project.run(&[&["exec"], flags, &["--", "bash", "-c", script]].concat())
}

fn decisions(project: &Project) -> Vec<Value> {
    project.events().into_iter().filter(|event| event["kind"] == "decision.made").collect()
}

/// A program of this name that prints a text and fails, in a folder for the PATH.
pub(crate) fn stub(project: &Project, name: &str, text: &str) -> String {
    let folder = project.path().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    std::fs::write(&file, format!("#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit 1\n")).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

#[test]
fn the_wait_of_an_answer_is_the_floor_of_the_delay() {
    let cases = [
        ("header", answer("retry-after: 2\r\n", "slow down")),
        ("body", answer("", "{\"error\":{\"message\":\"Slow down.\",\"retry_after\":2}}")),
        ("sentence", answer("", "Rate limit reached. Please try again in 2s.")),
    ];
    for (name, refusal) in cases {
        let project = Project::new(&format!("wait-{name}"));
        let port = refusing(1, refusal);
        run_bash(&project, &[], &client(port)).go().code(0);
        let decided = decisions(&project);
        assert_eq!(decided.len(), 1, "{name}: {decided:?}");
        let after = decided[0]["after_seconds"].as_f64().unwrap();
        assert!((1.9..3.0).contains(&after), "{name}: {after}");
        let fault = project.events().into_iter().find(|e| e["kind"] == "error.classified").unwrap();
        assert_eq!(fault["fault"]["facts"]["retry_after_seconds"], 2.0, "{name}: {fault}");
        assert!(fault["fault"]["facts"]["resets_at"].is_string(), "{name}: {fault}");
    }
}

#[test]
fn the_guard_of_a_provider_that_somebody_names_is_waited_for_before_any_delay() {
    let project = Project::new("wait-named-provider");
    let script = "echo 'HTTP 429 Too Many Requests'; echo 'retry-after-ms: 20'; exit 7";
    for profile in ["command", "request"] {
        let flags = ["--provider", "in-house", "--profile", profile, "--attempts", "2"];
        project.exec(&flags, script).go().code(7);
        let decided = decisions(&project);
        let first = decided.first().unwrap();
        assert_eq!(
            (&first["action"], &first["provider"]),
            (&json!("await_guard"), &json!("in-house")),
            "{first}"
        );
        project.sh("rm -rf ../state");
    }
}

#[test]
fn a_limit_with_a_stated_end_uses_up_no_attempt() {
    let project = Project::new("wait-attempts");
    // Four refusals, then an answer: more than the three retries that a command has.
    let port = refusing(4, answer("retry-after-ms: 20\r\n", ""));
    project.settings("[profile.command]\nbase = \"1ms\"\n");
    let json = run_bash(&project, &["--json"], &client(port)).go().code(0).json();
    assert_eq!((json["outcome"].as_str(), json["attempts"].as_u64()), (Some("done"), Some(5)), "{json}");
}

#[test]
fn attempts_bound_how_often_a_command_is_started() {
    let script = "echo x >> starts; echo 'HTTP 429 Too Many Requests'; echo 'retry-after-ms: 20'; exit 7";
    for (profile, attempts) in [("command", 2), ("tool", 2), ("state", 3), ("request", 2), ("command", 1)] {
        let project = Project::new(&format!("wait-bound-{profile}-{attempts}"));
        project.settings(format!("[profile.{profile}]\nbase = \"1ms\"\n"));
        let bound = attempts.to_string();
        let flags = ["--profile", profile, "--attempts", &bound, "--json"];
        let json = project.exec(&flags, script).go().code(7).json();
        let starts = std::fs::read_to_string(project.path().join("starts")).unwrap().lines().count();
        assert_eq!((starts, json["attempts"].as_u64()), (attempts, Some(attempts as u64)), "{json}");
        let promised = decisions(&project).into_iter().filter_map(|event| event["of"].as_u64());
        assert!(promised.clone().all(|of| of == attempts as u64), "{:?}", promised.collect::<Vec<_>>());
        if attempts > 1 {
            let why = json["decision"]["why"].as_str().unwrap().to_owned();
            assert_eq!(why, format!("{attempts} attempts are allowed in all, and all are used"), "{json}");
        }
    }
}

/// A loopback server that refuses everybody for a while after the first request, then serves.
fn limited_for(window: Duration, refusal: String) -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut first = None;
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let is_over = first.get_or_insert_with(Instant::now).elapsed() >= window;
            let served = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nok\n";
            let _ = stream.write_all(if is_over { served.as_bytes() } else { refusal.as_bytes() });
        }
    });
    port
}

#[test]
fn eight_at_once_are_told_to_wait_two_seconds_and_wait_no_thirty() {
    let project = Project::new("wait-eight");
    project.settings("[profile.command]\nbase = \"10ms\"\n");
    let port = limited_for(Duration::from_millis(1900), answer("retry-after: 2\r\n", ""));
    let children: Vec<_> = (0..8)
        .map(|_| {
            let mut command = run_bash(&project, &["--provider", "loopback"], &client(port)).command();
            command.stdin(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let done = child.wait_with_output().unwrap();
        let (said, told) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "{}: {said}{told}", done.status);
    }
    // Who was refused waits before the next attempt, who comes later at the guard.
    let waited: Vec<f64> = project
        .events()
        .iter()
        .filter_map(|event| match event["kind"].as_str() {
            Some("guard.waited") => event["waited_ms"].as_f64().map(|ms| ms / 1000.0),
            Some("decision.made") => event["after_seconds"].as_f64(),
            _ => None,
        })
        .collect();
    // Two seconds from the last refusal, and their spread; a guard that was told no time has
    // thirty.
    assert!(waited.iter().any(|seconds| *seconds > 1.0), "{waited:?}");
    assert!(waited.iter().all(|seconds| *seconds < 10.0), "{waited:?}");
}

/// A time as `date` writes it in a zone.
pub(crate) fn date_in(zone: &str, epoch: u64, format: &str) -> String {
    let mut date = std::process::Command::new("date");
    let done = date.env("TZ", zone).args(["-d", &format!("@{epoch}"), format]).output().unwrap();
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_limit_that_lasts_too_long_puts_the_command_aside_with_its_time_and_its_own_code() {
    let project = Project::new("wait-deferred");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let end = now + 2 * 24 * 3600;
    let path = stub(&project, "claude", &format!("Claude AI usage limit reached|{end}"));
    let report = project.path().join("report.json");
    let (zone, other) = ("XYZ-5:45", "ABC+4");
    let done = project
        .run(&["exec", "--wait-max", "1s", "--report", report.to_str().unwrap(), "--", "claude", "-p", "hi"])
        .env("PATH", &path)
        .env("TZ", zone)
        .go()
        .code(1);
    let last = done.stderr().lines().rfind(|line| line.starts_with("  next: ")).unwrap().to_owned();
    let local = date_in(zone, end, "+ after %Y-%m-%d %H:%M XYZ");
    assert!(last.contains(&local), "{local}: {}", done.stderr());
    let json: Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    assert_eq!((json["outcome"].as_str(), json["attempts"].as_u64()), (Some("deferred"), Some(1)), "{json}");
    assert_eq!((json["reason"].as_str(), json["exit"].as_u64()), (Some("rate_limited"), Some(1)), "{json}");
    assert_eq!(json["fault"]["facts"]["provider"], "anthropic", "{json}");
    // Programs read UTC everywhere, wherever it was recorded and wherever it is read.
    let utc = date_in("UTC", end, "+%Y-%m-%dT%H:%M:%S.000Z");
    assert_eq!(json["decision"]["until"], utc, "{json}");
    let events = project.events();
    let untils = events.iter().filter(|event| event["kind"] == "deferred" || event["action"] == "defer");
    let untils: Vec<&Value> = untils.map(|event| &event["until"]).collect();
    assert_eq!(untils, [&json!(utc), &json!(utc)], "{events:?}");
    let list = |flags: &[&str]| project.run(&[&["deferred", "list"], flags].concat()).env("TZ", other).go();
    let row = list(&["--json"]).code(0).json()["deferred"][0].clone();
    assert_eq!((&row["until"], &row["ready"]), (&json!(utc), &json!(false)), "{row}");
    let elsewhere = date_in(other, end, "+%Y-%m-%d %H:%M ABC");
    assert!(list(&[]).code(0).stdout().contains(&elsewhere), "{elsewhere}");
}

#[test]
fn a_deferred_rate_limit_is_ready_when_its_time_has_come_and_is_offered_once() {
    let project = Project::new("wait-ready");
    let limited = |seconds: u32| {
        let script = format!("echo 'HTTP 429 Too Many Requests'; echo 'retry-after: {seconds}'; exit 1");
        project.exec(&["-q", "--wait-max", "1s"], &script).go().code(1);
    };
    limited(2);
    limited(6000);
    let list = || project.run(&["deferred", "list", "--json"]).go().code(0).json()["deferred"].clone();
    // Only time makes it ready.
    crate::harness::until("the limit has ended", || list()[0]["ready"] == true);
    assert_eq!(list()[1]["ready"], false, "{}", list());
    let offered = project.run(&["runs"]).go().code(0).stderr();
    assert!(
        offered.contains("can be run now: d-1") && offered.contains("`backstop deferred run d-1`"),
        "{offered}"
    );
    assert!(!project.run(&["runs"]).go().code(0).stderr().contains("can be run now"));
    // Rows that hold the time as a text of long ago are shown as they are.
    let entries = std::fs::read_dir(project.state().join("projects")).unwrap();
    let file = entries.map(|e| e.unwrap().path()).find(|p| p.extension().is_some_and(|e| e == "db")).unwrap();
    let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(\"update deferred set until = '21:00 EST'\"); c.commit()";
    let python = std::process::Command::new("python3").args(["-c", script]).arg(file).status().unwrap();
    assert!(python.success());
    let old = list();
    assert_eq!((&old[0]["until"], &old[0]["ready"]), (&json!("21:00 EST"), &Value::Null), "{old}");
    assert!(project.run(&["deferred"]).go().code(0).stdout().contains(" 21:00 EST "));
}

#[test]
fn agents_own_limits_are_rate_limits_and_teach_their_guards() {
    let soon = "in 20 minutes";
    let cases = [
        ("claude", "anthropic", format!("5-hour limit reached. Resets {soon}.")),
        ("codex", "openai", format!("You’ve hit your usage limit. Upgrade to Pro or try again {soon}.")),
        (
            "gemini",
            "gemini",
            "[API Error: You have exhausted your capacity on this model. Your quota will reset after 20m0s.]"
                .to_owned(),
        ),
    ];
    for (program, provider, text) in cases {
        let project = Project::new(&format!("wait-{program}"));
        let path = stub(&project, program, &text);
        let flags = ["exec", "--json", "--wait-max", "1h", "--deadline", "1m", "--", program];
        let json = project.run(&flags).env("PATH", &path).go().code(1).json();
        assert_eq!(json["reason"], "rate_limited", "{json}");
        assert_eq!(json["fault"]["facts"]["provider"], provider, "{json}");
        assert_eq!(json["fault"]["facts"]["retry_after_seconds"], 1200.0, "{json}");
        // The guard knows the end that was stated, by the provider's name and by the agent's.
        for name in [provider, program] {
            let closed = project.run(&["guard", "check", name, "--json"]).go().code(75).json();
            let wait = closed["wait_seconds"].as_f64().unwrap();
            assert!(wait > 1000.0 && wait <= 1200.0, "{closed}");
        }
    }
}

#[test]
fn a_sentence_that_anybody_printed_teaches_nothing() {
    let project = Project::new("wait-anybody");
    let text = "anthropic said: API Error: rate limit exceeded, try again in 20 minutes. https://api.anthropic.com/v1";
    project.exec(&["--attempts", "1"], &format!("echo '{text}'; exit 1")).go().code(1);
    project.run(&["guard", "check", "anthropic"]).go().code(0);
    assert!(!project.kinds().contains(&"guard.updated".to_owned()));
}

#[test]
fn a_refused_start_is_no_attempt() {
    let project = Project::new("wait-refused");
    project
        .run(&["guard", "ingest", "groq", "--headers", "-", "--status", "429"])
        .stdin("retry-after: 600")
        .go()
        .code(0);
    let refused = project.exec(&["--provider", "groq", "--json"], "touch started").go().code(125).json();
    assert_eq!(
        (refused["outcome"].as_str(), refused["attempts"].as_u64()),
        (Some("deferred"), Some(0)),
        "{refused}"
    );
    let kinds = project.kinds();
    assert!(!kinds.contains(&"attempt.started".to_owned()), "{kinds:?}");
    // One that ran and is then refused ends with its own code, and counts what ran.
    let script = "echo 'HTTP 429 Too Many Requests'; echo 'retry-after: 600'; exit 7";
    let ran = project.exec(&["--provider", "mistral", "--json"], script).go().code(7).json();
    assert_eq!((ran["outcome"].as_str(), ran["attempts"].as_u64()), (Some("deferred"), Some(1)), "{ran}");
    let said = project.exec(&["--provider", "groq"], "exit 0").go().code(125).stderr();
    assert!(!said.contains("999999"), "{said}");
}

#[test]
fn guards_are_those_of_an_account_and_a_model() {
    let project = Project::new("wait-accounts");
    let path = stub(&project, "codex", "Rate limit reached for requests. Please try again in 50s.");
    let run = |key: &str, model: &str, wait_max: &str| {
        let words = ["exec", "--json", "--attempts", "1", "--wait-max", wait_max, "--", "codex", "exec"];
        project
            .run(&[&words[..], &["--model", model]].concat())
            .env("PATH", &path)
            .env("OPENAI_API_KEY", key)
            .go()
    };
    run("sk-mine", "gpt-5", "1m").code(1);
    // The same account and model is not started; another account is, and so is another model.
    run("sk-mine", "gpt-5", "1s").code(125);
    run("sk-mine", "gpt-5-mini", "1m").code(1);
    run("sk-other", "gpt-5", "1m").code(1);
    let status = project.run(&["guard", "status", "--json"]).go().code(0).json();
    let guards = status["guards"].as_array().unwrap();
    assert_eq!(guards.len(), 3, "{status}");
    assert!(guards.iter().all(|guard| guard["provider"] == "openai" && guard["account"].is_string()));
    assert!(!status.to_string().contains("sk-"), "{status}");
    // A provider's name addresses all its accounts.
    project.run(&["guard", "check", "openai"]).go().code(75);
    project.run(&["guard", "clear", "openai"]).go().code(0);
    project.run(&["guard", "check", "openai"]).go().code(0);
}

#[test]
fn a_limit_of_the_account_closes_every_model_and_one_of_a_model_only_that() {
    let cases = [
        ("You've hit your usage limit. Try again in 50 seconds.", Value::Null, 125),
        (
            "Rate limit reached for gpt-4o in organization org-x (TPM). Please try again in 50s.",
            json!("gpt-4o"),
            1,
        ),
    ];
    for (n, (text, model, other)) in cases.into_iter().enumerate() {
        let project = Project::new(&format!("wait-model-{n}"));
        let path = stub(&project, "codex", text);
        let run = |model: &str, wait_max: &str| {
            let words =
                ["exec", "--attempts", "1", "--wait-max", wait_max, "--", "codex", "exec", "--model", model];
            project.run(&words).env("PATH", &path).go()
        };
        run("gpt-5", "1m").code(1);
        let status = project.run(&["guard", "status", "--json"]).go().code(0).json();
        assert_eq!(status["guards"][0]["model"], model, "{status}");
        run("gpt-5-mini", "1s").code(other);
    }
}

#[test]
fn every_variable_of_a_credential_tells_accounts_apart() {
    let cases = [
        ("gh", "GH_TOKEN"),
        ("gh", "GITHUB_TOKEN"),
        ("claude", "ANTHROPIC_AUTH_TOKEN"),
        ("claude", "CLAUDE_CODE_OAUTH_TOKEN"),
    ];
    for (program, variable) in cases {
        let project = Project::new(&format!("wait-{}", variable.to_ascii_lowercase().replace('_', "-")));
        let path = stub(&project, program, "HTTP 429 Too Many Requests\nretry-after: 600");
        for token in ["token-of-one", "token-of-another"] {
            let words = ["exec", "--attempts", "1", "--", program, "api"];
            project.run(&words).env("PATH", &path).env(variable, token).go().code(1);
        }
        let status = project.run(&["guard", "status", "--json"]).go().code(0).json();
        let guards = status["guards"].as_array().unwrap();
        assert_eq!(guards.len(), 2, "{variable}: {status}");
        assert!(guards.iter().all(|guard| guard["account"].is_string()), "{variable}: {status}");
        assert!(!status.to_string().contains("token-of"), "{status}");
    }
}

#[test]
fn wordings_that_only_one_agent_has_teach_its_guard() {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let epoch = format!("Claude AI usage limit reached|{}", seconds + 3000);
    let body = r#"API Error: 429 {"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
    for (n, text) in [epoch.as_str(), body].into_iter().enumerate() {
        let project = Project::new(&format!("wait-wording-{n}"));
        project.file("says", format!("{text}\n"));
        let json = project
            .exec(
                &["--attempts", "1", "--json"],
                "while read -r line; do echo \"$line\"; done < says; exit 1",
            )
            .go()
            .code(1)
            .json();
        assert_eq!(json["fault"]["facts"]["provider"], "anthropic", "{json}");
        // A limit may be a subscription's: no key is to be renewed.
        assert_eq!(json["fault"]["facts"]["credential"], Value::Null, "{json}");
        assert_eq!(json["fault"]["facts"]["wait_in_words"], Value::Null, "{json}");
        project.run(&["guard", "check", "anthropic"]).go().code(75);
    }
    let session = "You've hit your session limit · resets in 50 minutes";
    let error = r#"Error code: 429 - {'type': 'error', 'error': {'type': 'rate_limit_error', 'message': 'x'}} anthropic retry-after: 45"#;
    for (n, (kind, message)) in [("RateLimitExceeded", session), ("RateLimitError", error)].iter().enumerate()
    {
        let project = Project::new(&format!("wait-wording-hook-{n}"));
        let report = json!({"task_data": {"task_id": "t-1"}, "error": {"type": kind, "message": message}});
        project.run(&["hook", "on-error"]).stdin(report.to_string()).go();
        project.run(&["guard", "check", "anthropic"]).go().code(75);
    }
}

#[test]
fn hooks_teach_the_guard_of_whoever_refused() {
    let project = Project::new("wait-hooks");
    let failure = json!({
        "hook_event_name": "PostToolUseFailure", "session_id": "s", "cwd": project.path(), "tool_name": "Bash",
        "tool_input": {"command": "curl -sS https://api.openai.com/v1/responses"},
        "error": "Exit code 22\nHTTP/2 429\nretry-after: 600\ncurl: (22) The requested URL returned error: 429",
    });
    project.run(&["hook", "agent"]).stdin(failure.to_string()).go().code(0);
    let closed = project.run(&["guard", "check", "openai", "--json"]).go().code(75).json();
    assert!(closed["wait_seconds"].as_f64().unwrap() > 500.0, "{closed}");
    let report = json!({
        "task_data": {"task_id": "t-1"},
        "error": {"type": "RateLimitExceeded",
            "message": "groq.RateLimitError: Error code: 429 - Please try again in 7m12s."},
    });
    project.run(&["hook", "on-error"]).stdin(report.to_string()).go();
    project.run(&["guard", "check", "groq"]).go().code(75);
}
