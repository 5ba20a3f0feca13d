//! kill -9 at every point of the journal: nothing acknowledged is lost, nothing is half-written,
//! nothing is left running.
#![cfg(target_os = "linux")]

use crate::harness::{Project, is_alive};
use serde_json::Value;
use std::os::unix::process::ExitStatusExt;

#[test]
fn nothing_acknowledged_is_lost_wherever_it_dies() {
    // Leaves its pid, a grandchild in a session of its own, and fails twice before it succeeds.
    let script = "echo $$ >> pids; setsid sleep 600 >/dev/null 2>&1 & echo $! >> pids; \
        [ $BACKSTOP_ATTEMPT -gt 2 ] || { echo npm error code ECONNRESET; exit 1; }";
    let mut points = 0;
    for point in 1.. {
        assert!(point < 200, "it never ends by itself");
        let project = Project::new(&format!("crash-{point}"));
        let run =
            project.exec(&["--log-format", "json"], script).env("BACKSTOP_CRASH_AT", &point.to_string());
        let output = run.command().output().unwrap();
        // What was told was on record before: it is the acknowledgement.
        let told: Vec<Value> = String::from_utf8_lossy(&output.stderr)
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter(|event: &Value| event["kind"].is_string())
            .collect();
        let kept = if project.state().exists() { project.events() } else { Vec::new() };
        for event in &told {
            assert!(kept.contains(event), "point {point}: lost {event}");
        }
        let crashed = output.status.signal() == Some(9);
        // The next run closes what was cut off, ends what was left, and works.
        let next = project.exec(&["--json"], "exit 0").go().code(0).json();
        assert_eq!(next["outcome"], "done");
        let runs = project.run(&["runs", "--json"]).go().code(0).json();
        let runs = runs["runs"].as_array().unwrap();
        assert!(runs.iter().all(|run| run["state"] == "ended"), "point {point}: {runs:?}");
        // The sequence of every run is whole, and begins with its beginning.
        let events = project.events();
        for run in runs {
            let seqs: Vec<u64> = events
                .iter()
                .filter(|e| e["run"] == run["run"])
                .map(|e| e["seq"].as_u64().unwrap())
                .collect();
            assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "point {point}");
        }
        let doctor = project.run(&["doctor", "--json"]).go().code(0).json();
        assert_eq!(doctor["ok"], true, "point {point}: {doctor}");
        for pid in project.read("pids").lines() {
            assert!(!is_alive(pid), "point {point}: {pid} is left running");
        }
        if !crashed {
            assert_eq!(output.status.code(), Some(0));
            points = point;
            break;
        }
    }
    println!("{points} points");
    assert!(points > 10, "only {points} points were seen");
}
