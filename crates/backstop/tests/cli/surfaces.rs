//! One run, any surface: what is recorded, spent, exported, told and cleaned is the same for
//! `exec`, `run` and hooks, or the difference stands in this table with its reason.
#![cfg(target_os = "linux")]

use crate::harness::{Project, until};
use crate::plan_text::{PlanText, end, run, signal};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

/// A failure of a provider, as each surface meets it.
struct Trouble {
    /// What a command prints.
    output: &'static str,
    /// What an agent's program answers.
    agent: &'static str,
    /// The error of an agent's hook event.
    event: &'static str,
    /// The type of a reported error.
    report: &'static str,
}

/// A request is refused with a 429.
const LIMITED: Trouble = Trouble {
    output: "HTTP 429 rate_limit_error from api.anthropic.com: retry-after: 1800",
    agent: r#"{"type": "result", "is_error": true, "api_error_status": 429, "result": "API Error: 429 rate_limit_error"}"#,
    event: "rate_limit",
    report: "RateLimitExceeded",
};

/// The other side fails.
const DOWN: Trouble = Trouble {
    output: "npm error code ECONNRESET",
    agent: r#"{"type": "result", "is_error": true, "api_error_status": 503, "result": "API Error: 503 service unavailable"}"#,
    event: "server_error",
    report: "ConnectionError",
};

/// What a run of a surface does besides being attempted.
struct Row {
    name: &'static str,
    surface: &'static str,
    /// Runs something that meets this trouble.
    fails: fn(&Project, &Trouble),
    /// Whether the breaker of the provider counts a failure of the other side.
    breaks: Result<(), &'static str>,
    /// Whether somebody is told who asked for it.
    notifies: Result<(), &'static str>,
    /// Whether each attempt takes a unit of `--budget`.
    spends: Result<(), &'static str>,
    /// Whether the trace of the run is exported.
    exports: Result<(), &'static str>,
    /// Whether failures are learned from: experience, loops.
    learns: Result<(), &'static str>,
    /// Whether old runs are removed when it ends, as `store.keep` and `store.max` say.
    cleans: Result<(), &'static str>,
}

const TABLE: &[Row] = &[
    Row {
        name: "exec",
        surface: "exec",
        fails: |project, trouble| {
            let script = format!("echo '{}' >&2; exit 1", trouble.output);
            let flags = ["--provider", "anthropic", "--budget", "night", "--attempts", "1"];
            project.exec(&flags, &script).go().code(1);
        },
        breaks: Ok(()),
        notifies: Ok(()),
        spends: Ok(()),
        exports: Ok(()),
        learns: Ok(()),
        cleans: Ok(()),
    },
    Row {
        name: "run",
        surface: "run",
        fails: |project, trouble| {
            use std::os::unix::fs::PermissionsExt;
            let bin = project.beside("bin");
            std::fs::create_dir_all(&bin).unwrap();
            let answer = trouble.agent;
            std::fs::write(
                bin.join("claude"),
                format!("#!/bin/sh\ncat > /dev/null; echo '{answer}'; exit 1\n"),
            )
            .unwrap();
            std::fs::set_permissions(bin.join("claude"), std::fs::Permissions::from_mode(0o755)).unwrap();
            let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
            PlanText::new().phase("1", "", "agent = 'claude'").write(project);
            let flags = ["--commit", "none", "--isolation", "none", "--budget", "night"];
            let child = run(project, &flags).env("PATH", &path).command().spawn().unwrap();
            // A limit that is known to end later is waited for: the run is stopped once the failure
            // is on record.
            let is_decided = |e: &serde_json::Value| e["surface"] == "run" && e["kind"] == "decision.made";
            until("it is decided about", || project.events().iter().any(is_decided));
            signal(&child, "INT");
            end(child);
        },
        breaks: Err("an agent makes many requests and retries them itself: its end tells of none of them"),
        notifies: Ok(()),
        spends: Ok(()),
        exports: Ok(()),
        learns: Ok(()),
        cleans: Ok(()),
    },
    Row {
        name: "hook agent",
        surface: "hook",
        fails: |project, trouble| {
            let event = json!({"hook_event_name": "StopFailure", "session_id": "s1", "error": trouble.event});
            project.run(&["hook", "agent"]).stdin(event.to_string()).go().code(0);
        },
        breaks: Err("an agent reports the end of a turn, and retries requests itself"),
        notifies: Ok(()),
        spends: Err("whoever reports has made the attempt already: nothing could still be refused"),
        exports: Err("the reporter waits for the answer, and a collector that is down must not hold it up"),
        learns: Err("repetitions are counted by session and by task, in a store of their own"),
        cleans: Ok(()),
    },
    Row {
        name: "hook on-error",
        surface: "hook",
        fails: |project, trouble| {
            let report = json!({"task_data": {"task_id": "task-1"},
                "error": {"type": trouble.report, "message": trouble.output}});
            project.run(&["hook", "on-error"]).stdin(report.to_string()).go().code(0);
        },
        breaks: Err("a report does not say which operation of a provider it is about"),
        notifies: Ok(()),
        spends: Err("whoever reports has made the attempt already: nothing could still be refused"),
        exports: Err("the reporter waits for the answer, and a collector that is down must not hold it up"),
        learns: Err("repetitions are counted by session and by task, in a store of their own"),
        cleans: Ok(()),
    },
];

/// A collector that takes every trace, and says how many there were.
fn collector() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, traces) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(50) {
            let mut stream = stream.unwrap();
            let mut text = Vec::new();
            let mut piece = [0; 4096];
            loop {
                let read = stream.read(&mut piece).unwrap_or(0);
                text.extend_from_slice(&piece[..read]);
                let whole = String::from_utf8_lossy(&text);
                let length =
                    whole.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                let body = whole.split_once("\r\n\r\n").map_or(0, |(_, body)| body.len());
                if read == 0 || length.is_some_and(|length: usize| body >= length) {
                    break;
                }
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
        }
    });
    (port, traces)
}

#[test]
fn what_every_run_does_is_the_same_on_each_surface_or_has_a_reason() {
    for row in TABLE {
        let (surface, name) = (row.surface, row.name);
        let project = Project::plain(&format!("surface-{}", name.replace(' ', "-")));
        let told = project.beside("told");
        let (port, traces) = collector();
        let tail = project.beside("tail.jsonl");
        let folder = project.beside("home/.config/backstop");
        std::fs::create_dir_all(&folder).unwrap();
        let config = format!(
            "[events]\ntail_to = {:?}\n[otel]\nendpoint = \"http://127.0.0.1:{port}\"\n[notify.here]\ntype = \"command\"\ncommand = [\"sh\", \"-c\", \"cat >> {}\"]\nseverity = \"low\"\n[store]\nmax = \"1MB\"\n",
            tail,
            told.display(),
        );
        std::fs::write(folder.join("config.toml"), config).unwrap();
        project.run(&["budget", "set", "night", "5"]).go().code(0);
        // A run of the day before yesterday, when everything old was removed for the last time.
        let two_days_ago = format!("0:{}", -2 * 24 * 3600 * 1000);
        let script = "head -c 1500000 /dev/urandom | base64; exit 1";
        let old = project.exec(&["--json"], script).env("BACKSTOP_CLOCK_JUMP", &two_days_ago).go().code(1);
        let old = old.json()["run"].as_str().unwrap().to_owned();
        let is_listed = || project.run(&["runs", "--json"]).go().code(0).stdout().contains(&old);
        assert!(is_listed());
        // Nobody waits to be told of the old run.
        until("the old run is told", || told.exists());
        let _ = (std::fs::remove_file(&tail), std::fs::remove_file(&told), traces.try_iter().count());
        (row.fails)(&project, &LIMITED);

        // Recorded: the failure first, then what it changes for others, then what is decided.
        let of_surface = |event: &serde_json::Value| event["surface"] == surface && event["run"] != old;
        let events: Vec<_> = project.events().into_iter().filter(of_surface).collect();
        let at = |kind: &str| events.iter().position(|event| event["kind"] == kind);
        let (classified, guard) = (at("error.classified").unwrap(), at("guard.updated"));
        assert!(guard.is_some_and(|guard| guard > classified), "{name}: {events:?}");
        let decided = at("decision.made");
        assert!(guard < decided.or_else(|| at("run.ended")), "{name}: {events:?}");
        if let Some(finished) = at("attempt.finished") {
            assert!(finished < classified, "{surface}");
        }
        assert!(at("run.ended").or_else(|| at("run.halted")).is_some(), "{surface}");
        project.run(&["guard", "check", "anthropic"]).go().code(75);

        // Told to whoever tails the file, once.
        let lines = std::fs::read_to_string(&tail).unwrap_or_default();
        assert_eq!(lines.lines().count(), 1, "{surface}: {lines}");

        // Told to whoever the settings name.
        let is_told = events.iter().any(|event| event["kind"] == "notified");
        assert_eq!(is_told, row.notifies.is_ok(), "{name} notifies: {:?}", row.notifies.err());
        if is_told {
            let told = || std::fs::read_to_string(&told).unwrap_or_default();
            until("the sink has it", || !told().is_empty());
            assert!(told().contains("Operation"), "{name}: {}", told());
        }

        // Spent, exported, learned: or why not.
        let spent = at("budget.consumed").is_some();
        assert_eq!(spent, row.spends.is_ok(), "{surface} spends: {:?}", row.spends.err());
        if let Some(consumed) = at("budget.consumed") {
            assert!(consumed < classified, "{surface}: spent before the work");
        }
        let run = events[0]["run"].as_str().unwrap().to_owned();
        let exported = std::iter::from_fn(|| traces.try_recv().ok()).any(|trace| trace.contains(&run));
        assert_eq!(exported, row.exports.is_ok(), "{surface} exports: {:?}", row.exports.err());
        let stats = project.run(&["stats", "--json"]).go().code(0).json();
        let signatures = stats["signatures"].as_array().unwrap();
        let learned = signatures.iter().any(|signature| signature["reason"] == "rate_limited");
        assert_eq!(learned, row.learns.is_ok(), "{surface} learns: {:?}", row.learns.err());
        assert_eq!(!is_listed(), row.cleans.is_ok(), "{surface} cleans: {:?}", row.cleans.err());
    }
}

#[test]
fn the_breaker_counts_a_failure_of_the_other_side_on_each_surface_or_there_is_a_reason() {
    for row in TABLE {
        let name = row.name;
        let project = Project::plain(&format!("breaker-{}", name.replace(' ', "-")));
        project.run(&["budget", "set", "night", "5"]).go().code(0);
        (row.fails)(&project, &DOWN);
        let events = project.events();
        let classified = events.iter().find(|event| event["kind"] == "error.classified").unwrap();
        let reason = classified["fault"]["reason"].as_str().unwrap();
        assert!(["network_transient", "service_down"].contains(&reason), "{name}: {classified}");
        let status = project.run(&["guard", "status", "--json"]).go().code(0).json();
        let counts = status["breakers"].as_array().unwrap().iter().any(|breaker| breaker["failures"] == 1);
        assert_eq!(counts, row.breaks.is_ok(), "{name} breaks: {:?}: {status}", row.breaks.err());
    }
}
