//! What is repeated and what is not: commands that change something outside the project.

use crate::docs::fits;
use crate::harness::Project;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const SETTINGS: &str = "[profile.command]\nbase = \"1ms\"\n";

/// A program in the project's folder that counts its runs in `tries`, prints a line to standard
/// error and fails.
fn failing_program(project: &Project, name: &str, says: &str, exit: i32) -> String {
    use std::os::unix::fs::PermissionsExt;
    let folder = project.path().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\necho x >> tries\necho '{says}' >&2\nexit {exit}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("bin/{name}")
}

/// How often the programs ran since it was asked last.
fn tries(project: &Project) -> usize {
    let count = project.read("tries").lines().count();
    let _ = std::fs::remove_file(project.path().join("tries"));
    count
}

fn schema(name: &str) -> Value {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas");
    serde_json::from_str(&std::fs::read_to_string(format!("{root}/{name}.schema.json")).unwrap()).unwrap()
}

/// A server that gives every request the same answer, and counts them.
fn server(answer: impl Into<String>) -> (u16, Arc<AtomicUsize>) {
    let answer = answer.into();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (port, count)
}

#[test]
fn what_was_not_carried_out_is_repeated_wherever_its_error_is_printed() {
    let project = Project::new("repeat-streams");
    project.settings(SETTINGS);
    let refused = "error: dial tcp 127.0.0.1:1: connect: connection refused";
    for (name, arguments, says) in [
        ("gh", "pr create -f", "HTTP 429: too many requests, retry after 0 seconds"),
        ("kubectl", "apply -f x", refused),
        (
            "npm",
            "publish",
            "npm notice\nnpm notice Publishing to https://registry.npmjs.org/ with tag latest\nnpm error code E429\nnpm error 429 Too Many Requests - PUT https://registry.npmjs.org/x - retry after 0 seconds",
        ),
        (
            "cargo",
            "publish -p x",
            "error: failed to publish to registry at https://crates.io\n\nCaused by:\n  the remote server responded with an error (status 429 Too Many Requests): slow down, retry after 0 seconds",
        ),
        (
            "aws",
            "ec2 run-instances --count 1",
            "An error occurred (RequestLimitExceeded) when calling the RunInstances operation (reached max retries: 4): Request limit exceeded, retry after 0 seconds",
        ),
        ("git", "push", "fatal: unable to access 'https://x.invalid/': Could not resolve host: x.invalid"),
    ] {
        failing_program(&project, name, says, 1);
        for (streams, flags) in [("> o 2> e", "-q"), ("> o 2>&1", "-q"), ("2> e", "-q --json")] {
            let line = format!(
                "PATH=$PWD/bin:$PATH {} exec {flags} --attempts 2 -- {name} {arguments} {streams}",
                env!("CARGO_BIN_EXE_backstop")
            );
            project.program("sh", &["-c", &line]).output().unwrap();
            assert_eq!(tries(&project), 2, "{line}: {}", project.read("o"));
        }
        let line = format!(
            "PATH=$PWD/bin:$PATH {} exec -q --attempts 2 -- sh -c '{name} {arguments} 2>&1' > o 2> e",
            env!("CARGO_BIN_EXE_backstop")
        );
        project.program("sh", &["-c", &line]).output().unwrap();
        assert_eq!(tries(&project), 2, "{line}: {}", project.read("o"));
    }
    // Where one command makes many changes, a refusal says nothing of those before it.
    for (name, arguments) in [
        ("npm", "publish --workspaces"),
        ("cargo", "publish --workspace"),
        ("aws", "s3 rm s3://b --recursive"),
    ] {
        failing_program(&project, name, "error: HTTP 429 Too Many Requests, retry after 0 seconds", 1);
        let line = format!(
            "PATH=$PWD/bin:$PATH {} exec -q -- {name} {arguments} > o 2> e",
            env!("CARGO_BIN_EXE_backstop")
        );
        project.program("sh", &["-c", &line]).output().unwrap();
        assert_eq!(tries(&project), 1, "{line}");
    }
    // What it has made already, it has made, whichever stream says so.
    failing_program(&project, "kubectl", "configmap/a created\n'; echo '\''", 1);
    let script =
        format!("#!/bin/sh\necho x >> tries\necho configmap/a created\necho '{refused}' >&2\nexit 1\n");
    project.file("bin/kubectl", script);
    for call in
        ["kubectl apply -f x > o 2> e", "kubectl apply -f x > o 2>&1", "sh -c 'kubectl apply -f x 2>&1' > o"]
    {
        let line = format!("PATH=$PWD/bin:$PATH {} exec -q -- {call}", env!("CARGO_BIN_EXE_backstop"));
        project.program("sh", &["-c", &line]).output().unwrap();
        assert_eq!(tries(&project), 1, "{line}");
    }
}

#[test]
fn a_charge_that_answers_500_is_sent_once() {
    if std::process::Command::new("curl").arg("--version").output().is_err() {
        println!("there is no curl here");
        return;
    }
    let project = Project::new("repeat-charge");
    project.settings(SETTINGS);
    let (port, count) = server("HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n");
    let sent = || count.swap(0, Ordering::SeqCst);
    let address = format!("http://127.0.0.1:{port}/charge");
    let done = project.run(&["exec", "--json", "--", "curl", "-fsS", "-X", "POST", &address]).go().code(22);
    assert_eq!(sent(), 1);
    let json = done.json();
    assert_eq!(json["outcome"], "unconfirmed");
    let run = json["run"].as_str().unwrap();
    assert_eq!(json["next"], format!("backstop exec --confirm {run}"));
    let why = json["decision"]["why"].as_str().unwrap();
    assert!(why.contains("rule curl.send: it needs confirmation before it is retried"), "{why}");
    assert!(done.stderr().contains(&format!("backstop exec --confirm {run}")), "{}", done.stderr());
    project.run(&["exec", "--confirm", run]).go().code(22);
    assert_eq!(sent(), 1, "one confirmation is one repetition");
    // A request that only reads is repeated, and so is one that somebody calls repeatable.
    project.run(&["exec", "--", "curl", "-fsS", &address]).go().code(22);
    assert_eq!(sent(), 4);
    project.run(&["exec", "--repeatable", "--", "curl", "-fsS", "-d", "a=b", &address]).go().code(22);
    assert_eq!(sent(), 4);
    let (port, refused) =
        server("HTTP/1.1 429 Too Many Requests\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n");
    let address = format!("http://127.0.0.1:{port}/charge");
    project.run(&["exec", "--attempts", "2", "--", "curl", "-fsS", "-d", "a=b", &address]).go().code(22);
    assert_eq!(refused.load(Ordering::SeqCst), 2, "a refusal is not carried out");
    for (retry_after, starts) in [("retry-after: 0\r\n", 2), ("", 1)] {
        let (port, refused) =
            server(format!("HTTP/1.1 503 Service Unavailable\r\n{retry_after}content-length: 0\r\n\r\n"));
        let address = format!("http://127.0.0.1:{port}/charge");
        let words = ["exec", "--attempts", "2", "--", "curl", "-fsSi", "-d", "a=b", &address];
        project.run(&words).go().code(22);
        assert_eq!(refused.load(Ordering::SeqCst), starts, "503 with `{retry_after}`");
    }
}

#[test]
fn what_was_sent_waits_for_a_confirmation_and_what_was_not_is_repeated() {
    let project = Project::new("repeat-table");
    project.settings(SETTINGS);
    let (reset, refused) = (
        "curl: (56) Recv failure: Connection reset by peer",
        "curl: (7) Failed to connect to 127.0.0.1 port 1: Connection refused",
    );
    let error = "curl: (22) The requested URL returned error: ";
    let (e500, e429) = (format!("{error}500"), format!("{error}429"));
    let post: &[&str] = &["-X", "POST", "https://shop.example/charge"];
    let model: &[&str] = &["-d", "{}", "https://api.anthropic.com/v1/messages"];
    let cases: [(&str, &[&str], &str, i32, usize); 9] = [
        ("curl", post, &e500, 22, 1),
        ("curl", post, reset, 56, 1),
        ("curl", post, refused, 7, 4),
        ("curl", post, &e429, 22, 4),
        ("curl", model, &e500, 22, 4),
        ("curl", &["https://shop.example/items"], &e500, 22, 4),
        ("kubectl", &["apply", "-f", "a.yaml"], "read tcp 10.0.0.1:443: connection reset by peer", 1, 1),
        ("kubectl", &["get", "pods"], "read tcp 10.0.0.1:443: connection reset by peer", 1, 4),
        // A script makes many requests: the one that was refused may not have been the first.
        ("deploy.sh", &[], refused, 7, 1),
    ];
    for (name, args, says, exit, want) in cases {
        let program = failing_program(&project, name, says, exit);
        let words = [&["exec", "--json", "--", &program], args].concat();
        let json = project.run(&words).go().code(exit).json();
        assert_eq!(tries(&project), want, "{name} {args:?}: {says}: {json}");
        assert_eq!(json["outcome"] == "unconfirmed", want == 1, "{name} {args:?}: {json}");
    }
    // Every program of a line counts, and wrappers are looked through.
    let program = failing_program(&project, "npm", "npm error code ECONNRESET", 1);
    for (script, want) in [(format!("true && {program} publish"), 1), (format!("{program} ci"), 4)] {
        project.exec(&[], &script).go().code(1);
        assert_eq!(tries(&project), want, "{script}");
    }
}

#[test]
fn a_project_may_call_a_command_repeatable_only_when_trusted() {
    let project = Project::new("repeat-trust");
    let program = failing_program(&project, "deploy.sh", "npm error code ECONNRESET", 1);
    let settings = format!("[exec]\nrepeatable = [\"{program} *\"]\n{SETTINGS}");
    project.file("backstop.toml", settings);
    let args = ["exec", "--", program.as_str(), "staging"];
    let ignored = project.run(&args).go().code(1);
    assert_eq!(tries(&project), 1);
    assert!(ignored.stderr().contains("exec.repeatable"), "{}", ignored.stderr());
    project.run(&["trust"]).go().code(0);
    project.run(&args).go().code(1);
    assert_eq!(tries(&project), 4);
    let json = project.run(&["exec", "--dry-run", "--json", "--", &program]).go().code(0).json();
    assert_eq!((json["repeatable"].as_bool(), json["rule"].as_str()), (Some(true), Some("script.deploy")));
    // A flag needs no trust, and is recorded.
    let other = failing_program(&project, "release.sh", "npm error code ECONNRESET", 1);
    project.run(&["exec", "--repeatable", "--why", "it is staging", "--", &other]).go().code(1);
    assert_eq!(tries(&project), 4);
    let events = project.events();
    let said = events.iter().find(|e| e["kind"] == "override").unwrap();
    assert_eq!(
        (said["what"].as_str(), said["rationale"].as_str()),
        (Some("--repeatable"), Some("it is staging"))
    );
}

#[test]
fn a_pack_adds_commands_that_change_something() {
    let project = Project::new("repeat-pack");
    let program = failing_program(&project, "ledger", "npm error code ECONNRESET", 1);
    let pack = |misses: &str| {
        format!(
            "[[effect]]\nid = \"ledger.post\"\ndoes = \"books an entry\"\nprogram = [\"ledger\"]\nsubcommand = [\"post\"]\n\
             match = [\"ledger post 5\"]\nmiss = [\"{misses}\"]\n"
        )
    };
    project.settings(SETTINGS);
    project.file("pack.toml", pack("ledger show post"));
    project.run(&["rules", "test", "pack.toml"]).go().code(0);
    project.run(&["exec", "--rules", "pack.toml", "--", &program, "post", "5"]).go().code(1);
    assert_eq!(tries(&project), 1);
    project.run(&["exec", "--rules", "pack.toml", "--", &program, "show"]).go().code(1);
    assert_eq!(tries(&project), 4);
    project.file("pack.toml", pack("ledger post 6"));
    let refused = project.run(&["rules", "test", "pack.toml"]).go().code(2);
    assert!(refused.stderr().contains("`ledger.post` matches its near miss"), "{}", refused.stderr());
}

#[test]
fn a_dry_run_says_what_would_be_repeated_and_runs_nothing() {
    let project = Project::new("repeat-dry-run");
    let program = failing_program(&project, "curl", "x", 1);
    let dry_run = |flags: &[&str], args: &[&str]| {
        let words = [&["exec", "--dry-run"], flags, &["--", &program], args].concat();
        project.run(&words).go().code(0)
    };
    let post = ["-X", "POST", "https://shop.example/charge"];
    let text = dry_run(&[], &post).stdout();
    for part in [
        "nothing is run",
        "only after a confirmation: `curl` sends a request",
        "rule curl.send",
        "up to 4 attempts",
        "needs confirmation before it is retried; if nothing was changed",
        "one attempt: everything else",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    project.run(&["budget", "set", "night", "5"]).go().code(0);
    let flags: [&[&str]; 5] = [
        &["--json"],
        &["--json", "--once"],
        &["--json", "--repeatable"],
        &["--json", "--budget", "night", "--provider", "anthropic"],
        &["--json", "--profile", "request", "--timeout", "5s", "--on", "unknown=retry"],
    ];
    for flags in flags {
        let json = dry_run(flags, &post).json();
        fits(&schema("exec-dry-run"), &json, "exec --dry-run");
        let of = |reason: &str| {
            let reasons = json["reasons"].as_array().unwrap();
            reasons.iter().find(|row| row["reason"] == reason).unwrap()["action"].clone()
        };
        let repeatable = flags.contains(&"--repeatable");
        assert_eq!(json["repeatable"], repeatable, "{flags:?}");
        assert_eq!(of("network_transient"), if repeatable { "retry" } else { "confirm" }, "{flags:?}");
        assert_eq!(of("auth_error"), "surface", "{flags:?}");
        if flags.contains(&"--profile") {
            assert_eq!(
                (of("rate_limited"), of("context_overflow")),
                ("await_guard".into(), "surface".into())
            );
            assert_eq!(of("unknown"), "confirm");
        }
    }
    let read = dry_run(&["--json"], &["https://shop.example/items"]).json();
    assert_eq!((read["repeatable"].as_bool(), read["rule"].as_str()), (Some(true), None));
    let missing = project.run(&["exec", "--dry-run", "--budget", "nigth", "--", "true"]).go().code(125);
    assert!(missing.stderr().contains("night"), "{}", missing.stderr());
    assert_eq!(tries(&project), 0, "nothing was run");
    assert!(!project.kinds().iter().any(|kind| kind == "run.started"), "nothing was recorded");
}

#[test]
fn a_command_is_not_compressed() {
    let project = Project::new("repeat-overflow");
    let script = "echo x >> tries; echo 'Error: 413 {\"type\":\"error\",\"error\":{\"type\":\"request_too_large\"}}' >&2; \
                  echo 'prompt is too long: 210000 tokens > 200000 maximum' >&2; exit 1";
    let done = project.exec(&["--profile", "request", "--json"], script).go().code(1);
    let json = done.json();
    assert_eq!(json["reason"], "context_overflow", "{json}");
    assert_eq!((json["attempts"].as_u64(), tries(&project)), (Some(1), 1));
    assert!(done.stderr().contains("a command cannot be made smaller"), "{}", done.stderr());
    assert!(!project.events().iter().any(|event| event.to_string().contains("compress")));
}

/// Whether there is a curl here.
fn has_curl() -> bool {
    let found = std::process::Command::new("curl").arg("--version").output().is_ok();
    if !found {
        println!("there is no curl here");
    }
    found
}

#[test]
fn what_was_never_sent_is_repeated_whatever_it_would_have_changed() {
    if !has_curl() {
        return;
    }
    let project = Project::new("repeat-unsent");
    project.file("backstop.toml", SETTINGS);
    // A port on which nobody listens, and a name that no server knows.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (closed, unknown) = (format!("http://127.0.0.1:{closed}/charge"), "http://nosuch.invalid/charge");
    for (address, exit) in [(closed.as_str(), 7), (unknown, 6)] {
        for method in ["GET", "POST", "DELETE"] {
            let args = ["exec", "--json", "--", "curl", "-sS", "-X", method, address];
            let json = project.run(&args).go().code(exit).json();
            assert_eq!(json["attempts"], 4, "{method} {address}: {json}");
            assert_eq!(json["outcome"], "failed", "{method} {address}: {json}");
        }
    }
}

#[test]
fn nobody_is_told_to_repeat_a_charge_that_may_have_been_carried_out() {
    if !has_curl() {
        return;
    }
    let project = Project::new("repeat-advice");
    project.file("backstop.toml", SETTINGS);
    let (port, count) = server("");
    let address = format!("http://127.0.0.1:{port}/charge");
    let done = project.run(&["exec", "--", "curl", "-sS", "-X", "POST", &address]).go().code(52);
    assert_eq!(count.load(Ordering::SeqCst), 1);
    let report = project.run(&["exec", "--json", "--", "curl", "-sS", "-X", "POST", &address]).go().code(52);
    let run = report.json()["run"].as_str().unwrap().to_owned();
    let texts = [
        done.stderr(),
        report.stdout(),
        project.run(&["explain", &run]).go().code(0).stdout(),
        project.run(&["diagnose", &run]).go().code(0).stdout(),
        project.run(&["diagnose", &run, "--json"]).go().code(0).stdout(),
    ];
    for text in texts {
        let lower = text.to_lowercase();
        for words in ["try again", "run it again", "once more", "wait a moment"] {
            assert!(!lower.contains(words), "{words}: {text}");
        }
    }
}

#[test]
fn a_lock_that_is_held_means_that_nothing_was_started() {
    if std::process::Command::new("flock").arg("--version").output().is_err() {
        println!("there is no flock here");
        return;
    }
    let project = Project::new("repeat-flock");
    project.file("backstop.toml", SETTINGS);
    let deploy = failing_program(&project, "deploy.sh", "x", 1);
    let lock = project.file("l.lock", "");
    let lock = lock.to_str().unwrap();
    let mut holder = std::process::Command::new("flock").args([lock, "sleep", "60"]).spawn().unwrap();
    let is_held = || {
        let tried = std::process::Command::new("flock").args(["-n", lock, "true"]).status().unwrap();
        !tried.success()
    };
    while !is_held() {
        std::thread::yield_now();
    }
    let json = project.run(&["exec", "--json", "--", "flock", "-n", lock, &deploy]).go().code(1).json();
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!((json["attempts"].as_u64(), json["outcome"].as_str()), (Some(4), Some("failed")), "{json}");
    assert!(!project.path().join("tries").exists(), "the lock was held");
}

#[test]
fn an_answer_that_speaks_of_a_refused_connection_was_carried_out() {
    if !has_curl() {
        return;
    }
    let project = Project::new("repeat-answered");
    project.file("backstop.toml", SETTINGS);
    for words in ["connect ECONNREFUSED 10.0.0.5:25", "curl: (6) Could not resolve host: mail.internal"] {
        let body = format!("order placed; could not notify: {words}\n");
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 500 Internal Server Error\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        let (port, count) = server(Box::leak(answer.into_boxed_str()));
        let address = format!("http://127.0.0.1:{port}/charge");
        let args = ["exec", "--json", "--", "curl", "-sS", "--fail-with-body", "-d", "amount=5", &address];
        let json = project.run(&args).go().code(22).json();
        assert_eq!((count.load(Ordering::SeqCst), &json["attempts"]), (1, &1.into()), "{words}: {json}");
    }
}
