//! What was recorded: listed, followed, filtered, cleaned.

use crate::harness::{Project, until};
use std::io::{BufRead, BufReader};

#[test]
fn events_are_filtered_and_come_in_every_format() {
    let project = Project::new("journal-events");
    let first = project
        .exec(&["--json", "--session", "s-1", "--caller", "figma-probe"], "echo who knows; exit 1")
        .go()
        .code(1)
        .json();
    project.exec(&["--attempts", "1"], "echo npm error code ECONNRESET; exit 1").go().code(1);
    let run = first["run"].as_str().unwrap();
    let of_run = project.run(&["events", "--run", run, "--json"]).go().code(0).lines();
    assert_eq!(of_run.len(), 6);
    assert!(of_run.iter().all(|e| e["run"] == run
        && e["session"] == "s-1"
        && e["caller"] == "figma-probe"
        && e["schema"] == 1));
    let reasons = project
        .run(&["events", "--reason", "unknown", "--kind", "error.classified", "--json"])
        .go()
        .code(0)
        .lines();
    assert_eq!(reasons.len(), 1);
    let gdd = project.run(&["events", "--jsonl"]).go().code(0).lines();
    assert_eq!(gdd.len(), 2);
    assert_eq!(
        (gdd[0]["type"].as_str(), gdd[0]["sessionId"].as_str()),
        (Some("error.classified"), Some("s-1"))
    );
    assert_eq!(gdd[0]["payload"]["reason"], "unknown");
    assert_eq!(
        (gdd[0]["payload"]["retryable"].as_bool(), gdd[0]["payload"]["caller"].as_str()),
        (Some(false), Some("figma-probe"))
    );
    assert_eq!(
        project
            .run(&["events", "--since", "2001-01-01T00:00:00Z", "-n", "3"])
            .go()
            .code(0)
            .stdout()
            .lines()
            .count(),
        3
    );
    let newest = project.run(&["events", "-n", "1", "--json"]).go().code(0).lines();
    assert_eq!(newest[0]["kind"], "run.ended");
    let emit = project.run(&["--log-format", "emit", "events"]).go().code(0).stdout();
    assert!(emit.starts_with("EMIT: TOOL_FAILURE tool="), "{emit}");
    project.run(&["events", "--tail-to", "tail.jsonl"]).go().code(0);
    assert_eq!(project.read("tail.jsonl").lines().count(), 2);
}

#[test]
fn events_can_be_followed() {
    let project = Project::new("journal-follow");
    let mut child = project.run(&["events", "--follow", "--json"]).command().spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    project.exec(&[], "exit 0").go().code(0);
    let kinds: Vec<String> = lines
        .by_ref()
        .take(4)
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(&line.unwrap()).unwrap()["kind"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(kinds, ["run.started", "attempt.started", "attempt.finished", "run.ended"]);
    // When nobody reads any more, it ends by itself.
    drop(lines);
    project.exec(&[], "exit 0").go().code(0);
    until("it ends", || child.try_wait().unwrap().is_some());
}

#[test]
fn a_run_is_found_from_another_folder() {
    let project = Project::new("journal-elsewhere");
    let json = project.exec(&["--json"], "exit 3").go().code(3).json();
    let run = json["run"].as_str().unwrap();
    let story = project.run(&["explain", run]).dir(std::path::Path::new("/")).go().code(0).stdout();
    assert!(story.contains("exit 3"), "{story}");
    let told = project.run(&["explain", run, "--json"]).go().code(0).json();
    assert_eq!((told["run"].as_str(), told["schema"].as_u64()), (Some(run), Some(1)));
    assert!(project.run(&["explain", run, "--markdown"]).go().code(0).stdout().starts_with("## "));
}

#[test]
fn runs_are_listed_newest_first() {
    let project = Project::new("journal-runs");
    project.exec(&[], "exit 0").go().code(0);
    project.exec(&[], "echo x; exit 3").go().code(3);
    let text = project.run(&["runs"]).go().code(0).stdout();
    let rows: Vec<&str> = text.lines().collect();
    assert!(rows[0].starts_with("RUN") && rows[1].contains("failed") && rows[2].contains("done"), "{text}");
    assert_eq!(
        project.run(&["runs", "--failed", "--json"]).go().code(0).json()["runs"].as_array().unwrap().len(),
        1
    );
    assert!(
        project
            .run(&["runs"])
            .dir(std::path::Path::new("/"))
            .go()
            .code(0)
            .stdout()
            .contains("nothing has been run")
    );
}

#[test]
fn what_is_old_goes_and_what_waits_stays() {
    let project = Project::new("journal-clean");
    let script = "echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?' >&2; exit 2";
    let old = (-40 * 24 * 3600 * 1000i64).to_string();
    let jump = format!("0:{old}");
    project.exec(&[], "exit 0").env("BACKSTOP_CLOCK_JUMP", &jump).go().code(0);
    project.exec(&[], script).env("BACKSTOP_CLOCK_JUMP", &jump).go().code(2);
    project.exec(&[], "exit 0").go().code(0);
    let cleaned = project.run(&["clean", "--json"]).go().code(0).json();
    assert_eq!(cleaned["runs"], 0, "the newest hundred stay whatever their age: {cleaned}");
    let cleaned = project.run(&["clean", "--keep", "30d", "--json"]).go().code(0).json();
    assert_eq!(cleaned["runs"], 1, "{cleaned}");
    let left = project.run(&["runs", "--json"]).go().code(0).json();
    let outcomes: Vec<&str> =
        left["runs"].as_array().unwrap().iter().map(|r| r["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes.len(), 2);
    assert!(outcomes.contains(&"deferred"));
}

#[test]
fn doctor_finds_nothing_wrong_here() {
    let project = Project::new("journal-doctor");
    let text = project.run(&["doctor"]).go().code(0).stdout();
    for check in ["version", "configuration", "state folder", "store", "supervision", "rules", "git"] {
        assert!(text.contains(check), "{check}: {text}");
    }
}
