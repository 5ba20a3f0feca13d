//! One run, any surface: what is recorded, spent, exported, told and cleaned is the same for
//! `exec`, `run` and hooks, or the difference stands in this table with its reason.
#![cfg(target_os = "linux")]

use crate::harness::{Project, until};
use crate::plan_text::{PlanText, end, run, signal};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

/// What a run of a surface does besides being attempted.
struct Row {
    surface: &'static str,
    /// Runs something that a provider refuses with a 429.
    fails: fn(&Project),
    /// Whether each attempt takes a unit of `--budget`.
    spends: Result<(), &'static str>,
    /// Whether the trace of the run is exported.
    exports: Result<(), &'static str>,
    /// Whether failures are learned from: experience, loops.
    learns: Result<(), &'static str>,
    /// Whether old runs are removed when it ends, as `store.keep` and `store.max` say.
    cleans: Result<(), &'static str>,
}

const REFUSAL: &str = "HTTP 429 rate_limit_error from api.anthropic.com: retry-after: 1800";

const TABLE: &[Row] = &[
    Row {
        surface: "exec",
        fails: |project| {
            let script = format!("echo '{REFUSAL}' >&2; exit 1");
            let flags = ["--provider", "anthropic", "--budget", "night", "--attempts", "1"];
            project.exec(&flags, &script).go().code(1);
        },
        spends: Ok(()),
        exports: Ok(()),
        learns: Ok(()),
        cleans: Ok(()),
    },
    Row {
        surface: "run",
        fails: |project| {
            use std::os::unix::fs::PermissionsExt;
            let bin = project.beside("bin");
            std::fs::create_dir_all(&bin).unwrap();
            let answer = r#"{"type": "result", "is_error": true, "api_error_status": 429, "result": "API Error: 429 rate_limit_error"}"#;
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
        spends: Ok(()),
        exports: Ok(()),
        learns: Ok(()),
        cleans: Ok(()),
    },
    Row {
        surface: "hook",
        fails: |project| {
            let event = r#"{"hook_event_name": "StopFailure", "session_id": "s1", "error": "rate_limit"}"#;
            project.run(&["hook", "agent"]).stdin(event).go().code(0);
        },
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
        let surface = row.surface;
        let project = Project::plain(&format!("surface-{surface}"));
        let (port, traces) = collector();
        let tail = project.beside("tail.jsonl");
        let folder = project.beside("home/.config/backstop");
        std::fs::create_dir_all(&folder).unwrap();
        let config = format!(
            "[events]\ntail_to = {:?}\n[otel]\nendpoint = \"http://127.0.0.1:{port}\"\n[notify.here]\ntype = \"command\"\ncommand = [\"sh\", \"-c\", \"cat >> {}\"]\nseverity = \"low\"\n[store]\nmax = \"1MB\"\n",
            tail,
            project.beside("told").display(),
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
        let _ = (std::fs::remove_file(&tail), traces.try_iter().count());
        (row.fails)(&project);

        // Recorded: the failure first, then what it changes for others, then what is decided.
        let of_surface = |event: &serde_json::Value| event["surface"] == surface && event["run"] != old;
        let events: Vec<_> = project.events().into_iter().filter(of_surface).collect();
        let at = |kind: &str| events.iter().position(|event| event["kind"] == kind);
        let (classified, guard) = (at("error.classified").unwrap(), at("guard.updated"));
        assert!(guard.is_some_and(|guard| guard > classified), "{surface}: {events:?}");
        if let Some(finished) = at("attempt.finished") {
            assert!(finished < classified, "{surface}");
        }
        assert!(at("run.ended").or_else(|| at("run.halted")).is_some(), "{surface}");
        project.run(&["guard", "check", "anthropic"]).go().code(75);

        // Told to whoever tails the file, once.
        let lines = std::fs::read_to_string(&tail).unwrap_or_default();
        assert_eq!(lines.lines().count(), 1, "{surface}: {lines}");

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
