//! Limits that are shared: guards, budgets, breakers, results.

use crate::harness::Project;
use crate::plan_text::{PlanText, run};
use serde_json::Value;

const RESET: &str = "npm error code ECONNRESET";

#[test]
fn a_guard_learns_checks_waits_and_is_cleared() {
    let project = Project::new("guard");
    let check = |code: i32| project.run(&["guard", "check", "anthropic", "--json"]).go().code(code).json();
    assert_eq!(check(0)["decision"], "open");
    let headers = "HTTP/2 429\nretry-after: 2\nanthropic-ratelimit-requests-remaining: 0\n";
    let learned = project
        .run(&["guard", "ingest", "anthropic", "--headers", "-", "--status", "429"])
        .stdin(headers)
        .go()
        .code(0);
    assert!(learned.stdout().starts_with("anthropic is limited for "), "{}", learned.stdout());
    let limited = check(75);
    assert_eq!(limited["decision"], "rate-limited");
    assert!(limited["until"].is_string() && limited["why"].is_string(), "{limited}");
    // One whose deadline is nearer gets its answer at once.
    project.run(&["guard", "wait", "anthropic", "--deadline", "100ms"]).go().code(75);
    // A stale, less restrictive answer does not loosen it.
    project.run(&["guard", "ingest", "anthropic", "--headers", "-"]).stdin("retry-after: 1").go().code(0);
    assert!(project.run(&["guard", "status"]).go().code(0).stdout().contains("limited for"));
    project.run(&["guard", "wait", "anthropic"]).go().code(0);
    assert_eq!(check(0)["decision"], "open");
    project
        .run(&["guard", "ingest", "anthropic", "--headers", "-"])
        .stdin("{\"retry-after\": \"3600\"}")
        .go()
        .code(0);
    project.run(&["guard", "clear", "anthropic", "--why", "a new key"]).go().code(0);
    assert_eq!(check(0)["decision"], "open");
    let said = project.events();
    assert!(said.iter().any(|e| e["kind"] == "override" && e["rationale"] == "a new key"));
    for name in ["../../x", "A B", ""] {
        project.run(&["guard", "check", name]).go().code(2);
    }
}

#[test]
fn hostile_headers_close_nothing_for_ever() {
    let project = Project::new("guard-hostile");
    for value in ["-1", "NaN", "soon", &"9".repeat(64 * 1024), "", "\u{1b}[2J"] {
        project
            .run(&["guard", "ingest", "x", "--headers", "-"])
            .stdin(format!("retry-after: {value}"))
            .go()
            .code(0);
    }
    for value in ["1000000000000000000000000000000", "Fri, 31 Dec 9999 23:59:59 GMT"] {
        project.run(&["guard", "ingest", "y", "--headers", "-"]).stdin(format!("retry-after: {value}")).go();
    }
    let status = project.run(&["guard", "status", "--json"]).go().code(0).json();
    for guard in status["guards"].as_array().unwrap() {
        assert!(guard["wait_seconds"].as_f64().unwrap() <= 8.0 * 86_400.0, "{guard}");
    }
}

#[test]
fn a_command_waits_for_the_guard_and_teaches_it() {
    let project = Project::new("guard-exec");
    project
        .run(&["guard", "ingest", "openai", "--headers", "-", "--status", "429"])
        .stdin("retry-after: 1")
        .go()
        .code(0);
    let done = project.exec(&["--provider", "openai"], "echo went").go().code(0);
    assert_eq!(done.stdout(), "went\n");
    assert!(
        done.stderr().starts_with("waiting ") && done.stderr().contains("for openai"),
        "{}",
        done.stderr()
    );
    assert!(project.kinds().contains(&"guard.waited".to_owned()));
    // What is limited for longer than the deadline is not started.
    project
        .run(&["guard", "ingest", "openai", "--headers", "-", "--status", "429"])
        .stdin("retry-after: 600")
        .go()
        .code(0);
    let flags = ["--provider", "openai", "--deadline", "1s", "--json"];
    let refused = project.exec(&flags, "touch started").go().code(125).json();
    assert_eq!(refused["reason"], "rate_limited");
    assert!(!project.path().join("started").exists());
    // A refusal that a command meets closes the guard for the others.
    let script = "echo 'HTTP 429 Too Many Requests: rate limit exceeded, retry after 600 seconds'; exit 1";
    project.exec(&["--provider", "groq", "--attempts", "1"], script).go().code(1);
    project.run(&["guard", "check", "groq"]).go().code(75);
    assert!(project.kinds().contains(&"guard.updated".to_owned()));
}

#[test]
fn a_breaker_opens_and_says_so() {
    let project = Project::new("breaker");
    for _ in 0..5 {
        project
            .exec(&["--provider", "npm", "--attempts", "1"], &format!("echo {RESET}; exit 1"))
            .go()
            .code(1);
    }
    let refused = project.exec(&["--provider", "npm", "--json"], "touch started").go().code(125).json();
    assert!(refused["fault"]["cause"].as_str().unwrap().contains("the breaker of npm"), "{refused}");
    assert!(!project.path().join("started").exists());
    let status = project.run(&["guard", "status", "--json"]).go().code(0).json();
    assert_eq!(
        (status["breakers"][0]["state"].as_str(), status["breakers"][0]["failures"].as_u64()),
        (Some("open"), Some(5))
    );
    project.run(&["guard", "clear", "npm"]).go().code(0);
    project.exec(&["--provider", "npm"], "exit 0").go().code(0);
}

#[test]
fn a_budget_is_spent_by_every_attempt_and_then_refuses() {
    let project = Project::new("budget");
    let none = project.exec(&["--budget", "night"], "exit 0").go().code(125);
    assert!(none.stderr().contains("`backstop budget set night 50 --per day` makes it"), "{}", none.stderr());
    project.run(&["budget", "set", "night", "3", "--per", "day"]).go().code(0);
    let script = format!("[ $BACKSTOP_ATTEMPT -gt 1 ] || {{ echo {RESET}; exit 1; }}");
    project.exec(&["--budget", "night"], &script).go().code(0);
    let left = |want: u64| {
        let status = project.run(&["budget", "status", "--json"]).go().code(0).json();
        assert_eq!(status["budgets"][0]["remaining"], want, "{status}");
    };
    left(1);
    // The last unit is there for the first attempt, none for the second.
    let json = project.exec(&["--budget", "night", "--json"], &script).go().code(125).json();
    assert_eq!(json["reason"], "budget_exhausted");
    left(0);
    let kinds = project.kinds();
    assert_eq!(kinds.iter().filter(|k| *k == "budget.consumed").count(), 3);
    assert!(kinds.contains(&"budget.exhausted".to_owned()));
    project.run(&["budget", "reset", "night", "--why", "a new day"]).go().code(0);
    left(3);
    let unknown = project.run(&["budget", "set", "x", "3", "--per", "dya"]).go().code(2);
    assert!(unknown.stderr().contains("did you mean `day`?"), "{}", unknown.stderr());
}

#[test]
fn a_loop_is_said_and_stopped_where_there_is_a_budget() {
    let project = Project::new("loop");
    project.run(&["budget", "set", "fix", "100"]).go().code(0);
    let script = "echo 'error 17: widget 4711 is broken'; exit 1";
    for round in 1..=3 {
        let done = project.exec(&["--budget", "fix"], script).go().code(1);
        assert_eq!(done.stderr().contains("3 times in a row"), round == 3, "{}", done.stderr());
    }
    let stopped = project.exec(&["--budget", "fix", "--json"], script).go().code(125).json();
    assert_eq!(stopped["reason"], "stuck_detected");
    assert!(
        stopped["fault"]["cause"].as_str().unwrap().contains("the same failure 3 times in a row"),
        "{stopped}"
    );
    assert!(!project.kinds().contains(&"budget.exhausted".to_owned()), "97 units are left");
    // Without a budget it is said, not stopped; a success ends it.
    let free = project.exec(&[], script).go().code(1);
    assert!(free.stderr().contains("4 times in a row"), "{}", free.stderr());
    project.run(&["budget", "reset", "fix"]).go().code(0);
    project.exec(&["--budget", "fix"], script).go().code(1);
}

#[test]
fn where_a_file_changed_in_between_it_is_no_loop() {
    let project = Project::new("no-loop");
    project.run(&["budget", "set", "fix", "50"]).go().code(0);
    // What the command itself writes is no change that somebody made.
    let script = "date +%N >> log; echo 'error 17: widget 4711 is broken'; exit 1";
    for round in 1..=6 {
        project.file("source.txt", "x".repeat(round));
        let done = project.exec(&["--budget", "fix"], script).go().code(1);
        assert!(!done.stderr().contains("in a row"), "{}", done.stderr());
    }
    for _ in 0..2 {
        project.exec(&["--budget", "fix"], script).go().code(1);
    }
    let stopped = project.exec(&["--budget", "fix", "--json"], script).go().code(125).json();
    assert_eq!((stopped["reason"].as_str(), stopped["attempts"].as_u64()), (Some("stuck_detected"), Some(0)));
    let dry = project.exec(&["--budget", "fix", "--dry-run", "--json"], script).go().code(0).json();
    assert_eq!((dry["failures_in_a_row"].as_u64(), dry["refused"].is_string()), (Some(3), true), "{dry}");
    // A change lets it run again.
    project.file("source.txt", "mended");
    project.exec(&["--budget", "fix"], "exit 0").go().code(0);
    project.exec(&["--budget", "fix"], script).go().code(1);
}

#[test]
fn a_budget_keeps_what_is_not_given_and_can_be_deleted() {
    let project = Project::new("budget-set");
    let set =
        |args: &[&str]| project.run(&[&["budget", "set", "night"], args].concat()).go().code(0).stdout();
    assert!(set(&["50", "--per", "day", "--unit", "tokens"]).contains("50 tokens per day;"));
    let changed = set(&["5"]);
    assert!(changed.contains("5 tokens per day (was 50 tokens per day);"), "{changed}");
    let changed = set(&["5", "--per", "run"]);
    assert!(changed.contains("5 tokens per run (was 5 tokens per day);"), "{changed}");
    let unknown = project.run(&["budget", "delete", "nigth"]).go().code(2);
    assert!(unknown.stderr().contains("did you mean `night`?"), "{}", unknown.stderr());
    let deleted = project.run(&["budget", "delete", "night", "--why", "done"]).go().code(0).stdout();
    let undo = "`backstop budget set night 5 --per run --unit tokens` makes it again";
    assert!(deleted.contains(undo), "{deleted}");
    let said = project.events();
    assert!(said.iter().any(|e| e["what"] == "budget delete night" && e["rationale"] == "done"));
    project.run(&["budget", "delete", "night"]).go().code(2);
    let status = project.run(&["budget", "status", "--json"]).go().code(0).json();
    assert_eq!(status["budgets"].as_array().unwrap().len(), 0);
    // A new one of that name begins whole.
    assert!(set(&["3"]).contains("3 iterations in all;"));
    let json = project.run(&["budget", "delete", "night", "--json"]).go().code(0).json();
    assert_eq!((json["deleted"].as_str(), json["per"].as_str()), (Some("night"), Some("total")));
}

#[test]
fn a_result_is_used_again_until_what_it_depends_on_changes() {
    let project = Project::new("cache");
    project.file("input.txt", "one");
    project.run(&["budget", "set", "b", "2"]).go().code(0);
    let run = || {
        let flags = ["--cache", "10m", "--input", "*.txt", "--cache-env", "FLAVOUR", "--budget", "b"];
        project.exec(&flags, "echo x >> runs.log; echo out; echo err >&2")
    };
    assert_eq!(run().go().code(0).stdout(), "out\n");
    let hit = run().go().code(0);
    assert_eq!(hit.stdout(), "out\n");
    assert!(
        hit.stderr().starts_with("from the cache, ") && hit.stderr().ends_with("err\n"),
        "{}",
        hit.stderr()
    );
    assert_eq!(project.read("runs.log").lines().count(), 1);
    assert!(project.kinds().contains(&"budget.refunded".to_owned()));
    project.file("input.txt", "two");
    run().go().code(0);
    assert_eq!(project.read("runs.log").lines().count(), 2);
    project.run(&["budget", "reset", "b"]).go().code(0);
    run().env("FLAVOUR", "vanilla").go().code(0);
    assert_eq!(project.read("runs.log").lines().count(), 3);
    // A failure is no result, and a secret is not kept.
    for _ in 0..2 {
        project.exec(&["--cache", "10m"], "echo y >> fails.log; exit 1").go().code(1);
        let secret = project
            .exec(&["--cache", "10m"], "echo z >> secrets.log; echo C4n4ry-Value")
            .env("API_TOKEN", "C4n4ry-Value");
        assert!(secret.go().code(0).stderr().contains("it holds a secret"));
    }
    assert_eq!(
        (project.read("fails.log").lines().count(), project.read("secrets.log").lines().count()),
        (2, 2)
    );
    project.exec(&["--cache", "10m", "--input", "../x"], "exit 0").go().code(125);
}

#[test]
fn a_damaged_guard_file_is_set_aside_with_one_warning() {
    let project = Project::new("guard-corrupt");
    project.run(&["guard", "ingest", "openai", "--headers", "-"]).stdin("retry-after: 600").go().code(0);
    let file = project.state().join("limits.db");
    std::fs::write(&file, "no database at all\n".repeat(500)).unwrap();
    for suffix in ["limits.db-wal", "limits.db-shm"] {
        let _ = std::fs::remove_file(project.state().join(suffix));
    }
    let open = project.run(&["guard", "check", "openai"]).go().code(0);
    assert_eq!(open.stderr().matches("warning:").count(), 1, "{}", open.stderr());
    assert!(open.stderr().contains("set aside"), "{}", open.stderr());
    assert_eq!(project.run(&["guard", "check", "openai"]).go().code(0).stderr(), "");
    let aside = std::fs::read_dir(project.state()).unwrap().flatten();
    assert!(aside.into_iter().any(|e| e.file_name().to_string_lossy().contains("corrupt")));
}

#[test]
fn sixty_four_processes_on_one_guard_lose_nothing() {
    let project = Project::new("guard-contention");
    let children: Vec<_> = (0..64)
        .map(|n| {
            let wait = format!("retry-after: {}", 600 + n);
            let mut child =
                project.run(&["guard", "ingest", "shared", "--headers", "-"]).command().spawn().unwrap();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), wait.as_bytes()).unwrap();
            child
        })
        .collect();
    for child in children {
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    }
    let status = project.run(&["guard", "status", "--json"]).go().code(0).json();
    let guard: &Value = &status["guards"][0];
    assert_eq!((guard["answers"].as_u64(), guard["refusals"].as_u64()), (Some(64), Some(64)));
    assert!(guard["wait_seconds"].as_f64().unwrap() > 600.0, "the longest holds: {guard}");
}

#[test]
fn what_a_retry_has_never_cured_is_learned() {
    let project = Project::new("learn");
    let config = |learn: bool| format!("[profile.command]\nbase = \"1ms\"\nlearn = {learn}\n");
    project.settings(config(true));
    let run = || {
        let json = project.exec(&["--json"], &format!("echo {RESET}; exit 1")).go().code(1).json();
        (json["attempts"].as_u64().unwrap(), json["decision"]["why"].as_str().unwrap().to_owned())
    };
    assert_eq!(run().0, 4);
    assert_eq!(run().0, 4);
    let (attempts, why) = run();
    assert_eq!(attempts, 1);
    assert_eq!(why, "experience: a retry has never cured this in 6 tries");
    project.settings(config(false));
    assert_eq!(run().0, 4);
}

#[test]
fn a_plan_does_not_retry_either_what_a_retry_has_never_cured() {
    let project = Project::plain("learn-plan");
    PlanText::new().sh("1", "", "echo 'error: test failed, to rerun pass `--lib`'; exit 101").write(&project);
    let attempts = |learn: bool| {
        project.settings(format!("[profile.phase]\nlearn = {learn}\n"));
        let before = project.events().len();
        run(&project, &["--commit", "none", "--fresh", "--yes"]).go().code(3);
        let events = project.events();
        let kinds = events[before..].iter().filter(|event| event["kind"] == "attempt.started");
        kinds.count()
    };
    for _ in 0..5 {
        assert_eq!(attempts(true), 2);
    }
    assert_eq!(attempts(true), 1, "five retries have cured nothing");
    let why = project.run(&["explain"]).go().code(0).stdout();
    assert!(why.contains("a retry has never cured this in 5 tries"), "{why}");
    assert_eq!(attempts(false), 2);
}

/// A server that allows so many requests in each window, and says when the next one begins.
fn server(
    limit: usize,
    window: std::time::Duration,
    windows: usize,
) -> (u16, std::thread::JoinHandle<Vec<(usize, usize)>>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move || {
        let from = std::time::Instant::now();
        let mut counts: Vec<(usize, usize)> = Vec::new();
        let mut served = 0;
        while served < limit * windows {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let index = (from.elapsed().as_nanos() / window.as_nanos()) as usize;
            counts.resize(counts.len().max(index + 1), (0, 0));
            counts[index].0 += 1;
            let answer = if counts[index].1 < limit {
                counts[index].1 += 1;
                served += 1;
                "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned()
            } else {
                let left = window.mul_f64((index + 1) as f64).saturating_sub(from.elapsed()).as_millis() + 1;
                format!(
                    "HTTP/1.1 429 Too Many Requests\r\nretry-after-ms: {left}\r\ncontent-length: 0\r\n\r\n"
                )
            };
            let _ = stream.write_all(answer.as_bytes());
        }
        counts
    };
    (port, std::thread::spawn(serve))
}

#[test]
fn sixteen_clients_share_one_limit() {
    const CLIENTS: usize = 16;
    const LIMIT: usize = 20;
    const WINDOWS: usize = 4;
    let project = Project::new("guard-server");
    let window = std::time::Duration::from_secs(5);
    let began = std::time::Instant::now();
    let (port, server) = server(LIMIT, window, WINDOWS);
    let left = std::sync::atomic::AtomicIsize::new((LIMIT * WINDOWS) as isize);
    let request = || -> bool {
        use std::io::{Read, Write};
        // The server goes when everything is served.
        let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", port)) else { return true };
        let _ = stream.write_all(b"GET / HTTP/1.1\r\n\r\n");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        let status = answer.split(' ').nth(1).unwrap_or("200").to_owned();
        if status == "429" {
            let ingest = ["guard", "ingest", "groq", "--headers", "-", "--status", "429"];
            project.run(&ingest).stdin(&answer).go();
        }
        status == "200"
    };
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while left.fetch_sub(1, std::sync::atomic::Ordering::SeqCst) > 0 {
                    loop {
                        project.run(&["guard", "wait", "groq"]).go().code(0);
                        if request() {
                            break;
                        }
                    }
                }
            });
        }
    });
    let counts = server.join().unwrap();
    let theory = window.as_secs_f64() * (WINDOWS - 1) as f64;
    println!(
        "windows (sent, served): {counts:?}; took {:.1} s, at least {theory} s",
        began.elapsed().as_secs_f64()
    );
    assert!(counts.iter().all(|(sent, _)| *sent <= LIMIT + CLIENTS), "{counts:?}");
}

#[test]
fn a_run_is_exported_where_that_is_switched_on() {
    use std::io::{Read, Write};
    let project = Project::new("otel");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let collector = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut text = String::new();
        let mut buffer = [0; 4096];
        // Until the body has come: its length is announced.
        loop {
            let read = stream.read(&mut buffer).unwrap();
            text.push_str(&String::from_utf8_lossy(&buffer[..read]));
            let length = text
                .to_ascii_lowercase()
                .split("content-length: ")
                .nth(1)
                .and_then(|t| t.split("\r\n").next()?.parse::<usize>().ok());
            let body = text.split_once("\r\n\r\n").map(|(_, body)| body.len());
            if length.zip(body).is_some_and(|(length, body)| body >= length) || read == 0 {
                break;
            }
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
        text
    });
    let script = format!("[ $BACKSTOP_ATTEMPT -gt 1 ] || {{ echo {RESET}; exit 1; }}");
    project.exec(&[], &script).env("BACKSTOP_OTEL_ENDPOINT", &endpoint).go().code(0);
    let request = collector.join().unwrap();
    assert!(request.starts_with("POST /v1/traces "), "{request}");
    let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!(spans.len(), 3, "the run and two attempts");
    // A collector that is not there is a warning, never another exit code.
    let gone = project.exec(&[], "exit 3").env("BACKSTOP_OTEL_ENDPOINT", &endpoint).go().code(3);
    assert_eq!(gone.stderr().matches("warning:").count(), 1, "{}", gone.stderr());
}

#[test]
fn writers_that_are_killed_lose_nothing_that_was_acknowledged() {
    let project = Project::new("guard-killed");
    let mut acknowledged = 0;
    for round in 0..30u64 {
        let mut children: Vec<_> = (0..4)
            .map(|_| {
                let mut child =
                    project.run(&["guard", "ingest", "shared", "--headers", "-"]).command().spawn().unwrap();
                std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"retry-after: 600").unwrap();
                child
            })
            .collect();
        // Somewhere on their way, a different place in every round.
        std::thread::sleep(std::time::Duration::from_millis(round % 15));
        children.iter_mut().take(2).for_each(|child| child.kill().unwrap());
        for child in children {
            acknowledged += u64::from(child.wait_with_output().unwrap().status.code() == Some(0));
        }
    }
    let status = project.run(&["guard", "status", "--json"]).go().code(0);
    assert_eq!(status.stderr(), "");
    let answers = status.json()["guards"][0]["answers"].as_u64().unwrap();
    assert!(answers >= acknowledged && acknowledged >= 60, "{answers} kept, {acknowledged} acknowledged");
}

#[test]
fn a_clock_that_jumps_neither_holds_a_guard_closed_nor_opens_it_early() {
    let project = Project::new("guard-clock");
    project.run(&["guard", "ingest", "openai", "--headers", "-"]).stdin("retry-after: 60").go().code(0);
    let days = 10 * 24 * 3600 * 1000i64;
    let check = |jump: i64| {
        project
            .run(&["guard", "check", "openai", "--json"])
            .env("BACKSTOP_CLOCK_JUMP", &format!("0:{jump}"))
            .go()
    };
    assert!(check(-days).code(75).json()["wait_seconds"].as_f64().unwrap() <= 60.0);
    assert!(check(days).code(75).json()["wait_seconds"].as_f64().unwrap() <= 60.0);
    // Time that really passes, asleep or awake, opens it.
    let clock = project.file("clock", "61000");
    let later = project.run(&["guard", "check", "openai", "--json"]);
    let later = later.env("BACKSTOP_CLOCK_FILE", &clock.display().to_string()).go();
    assert_eq!(later.code(0).json()["decision"], "open");
}

#[test]
fn budgets_are_for_a_run_a_task_or_a_day() {
    let project = Project::new("budget-scopes");
    project.run(&["budget", "set", "each-task", "1", "--per", "task"]).go().code(0);
    project.run(&["budget", "set", "each-run", "1", "--per", "run"]).go().code(0);
    let task = |task: &str, code: i32| {
        project.exec(&["--budget", "each-task", "--task", task], "exit 0").go().code(code);
    };
    task("a", 0);
    task("b", 0);
    task("a", 125);
    project.exec(&["--budget", "each-run"], "exit 0").go().code(0);
    // A run of its own has a budget of its own; the attempts of one run share it.
    let json = project
        .exec(&["--budget", "each-run", "--json"], &format!("echo {RESET}; exit 1"))
        .go()
        .code(125)
        .json();
    assert_eq!((json["attempts"].as_u64(), json["reason"].as_str()), (Some(1), Some("budget_exhausted")));
    let day = (24 * 3600 * 1000i64).to_string();
    project.run(&["budget", "set", "each-day", "1", "--per", "day"]).go().code(0);
    let spend = || project.exec(&["--budget", "each-day"], "exit 0");
    spend().go().code(0);
    spend().go().code(125);
    // Somebody sets the clock: no new day. It passes: a new one.
    spend().env("BACKSTOP_CLOCK_JUMP", &format!("0:{day}")).go().code(125);
    let clock = project.file("clock", &day);
    spend().env("BACKSTOP_CLOCK_FILE", &clock.display().to_string()).go().code(0);
}

#[test]
fn a_guard_reads_bodies_and_every_spelling_of_headers() {
    let project = Project::new("guard-dialects");
    let body = project.file(
        "body.json",
        r#"{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.4s"}]}}"#,
    );
    let path = body.to_str().unwrap();
    let gemini = project
        .run(&["guard", "ingest", "gemini", "--body", path, "--status", "429", "--json"])
        .go()
        .code(0)
        .json();
    let wait = |json: &Value| json["wait_seconds"].as_f64().unwrap();
    assert!((30.0..=34.4).contains(&wait(&gemini)), "{gemini}");
    for (provider, headers, at_most) in [
        ("openai", "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 1m30s", 90.0),
        ("ietf", "RateLimit: \"default\";r=0;t=30", 30.0),
        ("azure", "retry-after-ms: 1500", 1.5),
    ] {
        let ingest = ["guard", "ingest", provider, "--headers", "-", "--json"];
        let json = project.run(&ingest).stdin(headers).go().code(0).json();
        assert!(wait(&json) > 0.0 && wait(&json) <= at_most, "{json}");
    }
    let missing = project.run(&["guard", "ingest", "x", "--headers", "no-such-file"]).go().code(1);
    assert!(missing.stderr().contains("cannot read no-such-file"), "{}", missing.stderr());
}

#[test]
fn a_response_is_learned_from_standard_input_without_flags() {
    let project = Project::new("limits-ingest-stdin");
    for (provider, response) in [
        ("whole", "HTTP/1.1 429 Too Many Requests\r\nretry-after: 600\r\n\r\n{\"error\":{}}\n"),
        ("second", "HTTP/1.1 100 Continue\r\n\r\nHTTP/2 429\r\nretry-after: 600\r\n\r\n"),
        ("headers", "retry-after: 600\n"),
        ("json", "{\"retry-after\": \"600\"}"),
    ] {
        let learned = project.run(&["guard", "ingest", provider, "--json"]).stdin(response).go().code(0);
        assert_eq!(learned.json()["provider"], provider);
        project.run(&["guard", "check", provider]).go().code(75);
    }
    let fine = "HTTP/1.1 302 Found\nretry-after: 600\n\nHTTP/1.1 200 OK\ncontent-type: text/plain\n\nhello\n";
    project.run(&["guard", "ingest", "fine"]).stdin(fine).go().code(0);
    project.run(&["guard", "check", "fine"]).go().code(0);
    for nothing in ["", "\n", "no response at all\n", "7"] {
        let refused = project.run(&["guard", "ingest", "x"]).stdin(nothing).go().code(2);
        assert!(refused.stderr().contains("backstop guard ingest PROVIDER"), "{}", refused.stderr());
    }
}
