//! Agents' own sessions and what they cost: continued by id where work was cut off, begun anew
//! where it went wrong, added up over all attempts.
#![cfg(target_os = "linux")]

use crate::harness::{Project, until};
use crate::plan_text::{PlanText, events, has, place, reasons, run, signal};
use crate::simulated::under_simulated_time;
use std::os::unix::fs::PermissionsExt;

/// What every stub can call. Each call notes the words of its command line that name a session.
const HELPERS: &str = r#"
complete() { printf '{"phase_id": "%s", "status": "complete"}' "$BACKSTOP_PHASE" > "$BACKSTOP_RESULT"; }
first() { [ "$BACKSTOP_ATTEMPT" = 1 ]; }
session=new; last=
for word in "$@"; do case "$last" in --resume|resume|--session) session=$word;; esac; last=$word; done
resumed() { [ "$session" != new ]; }
cat > "$PLACE/prompt"
echo "$BACKSTOP_PHASE $BACKSTOP_ATTEMPT $session" >> "$PLACE/ran"
"#;

/// Lines that each agent prints: the beginning of session `s-1`, and an end with tokens and money,
/// as far as it tells them.
fn begin(agent: &str) -> &'static str {
    match agent {
        "claude" => r#"echo '{"type":"system","subtype":"init","session_id":"s-1"}'"#,
        "codex" => r#"echo '{"type":"thread.started","thread_id":"s-1"}'"#,
        _ => r#"echo '{"type":"step_start","sessionID":"s-1"}'"#,
    }
}

fn ending(agent: &str, tokens: u32, cents: u32) -> String {
    let dollars = f64::from(cents) / 100.0;
    match agent {
        "claude" => format!(
            r#"echo '{{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s-1","total_cost_usd":{dollars},"usage":{{"input_tokens":1,"output_tokens":1}},"modelUsage":{{"a":{{"inputTokens":{tokens},"outputTokens":0}}}}}}'"#
        ),
        "codex" => format!(
            r#"echo '{{"type":"turn.completed","usage":{{"input_tokens":{tokens},"output_tokens":0}}}}'"#
        ),
        _ => format!(
            r#"echo '{{"type":"step_finish","sessionID":"s-1","part":{{"reason":"stop","cost":{dollars},"tokens":{{"input":{tokens},"output":0}}}}}}'"#
        ),
    }
}

const AGENTS: [&str; 3] = ["claude", "codex", "opencode"];

/// A project whose agent is a script of this name.
fn project(name: &str, agent: &str, settings: &str, script: &str) -> (Project, String) {
    let project = Project::git(&format!("sessions-{name}-{agent}"));
    let bin = project.beside("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join(agent), format!("#!/bin/sh\n{HELPERS}\n{script}\n")).unwrap();
    std::fs::set_permissions(bin.join(agent), std::fs::Permissions::from_mode(0o755)).unwrap();
    PlanText::new().phase("1", "", &format!("agent = '{agent}'\n{settings}")).write(&project);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    (project, path)
}

fn ran(project: &Project) -> Vec<String> {
    place(project, "ran").lines().map(str::to_owned).collect()
}

#[test]
fn a_missing_result_is_asked_for_once_in_the_same_session() {
    for agent in AGENTS {
        let script = format!(
            "{}; if resumed; then complete; else echo one > one.txt; fi; {}",
            begin(agent),
            ending(agent, 10, 1)
        );
        let (project, path) = project("asked", agent, "gates = ['grep -q one one.txt']", &script);
        run(&project, &["--commit", "auto"]).env("PATH", &path).go().code(0);
        assert_eq!(ran(&project), ["1 1 new", "1 1 s-1"], "{agent}");
        has(&place(&project, "prompt"), &["the result is missing", "BACKSTOP_RESULT"]);
        assert!(reasons(&project).is_empty(), "{agent}");
    }
}

#[test]
fn work_that_was_cut_off_goes_on_in_its_session_with_its_files() {
    for agent in AGENTS {
        // It reports a lost network once, with half of the work done.
        let lost = match agent {
            "claude" => {
                r#"echo '{"type":"result","is_error":true,"result":"API Error: Connection error.","terminal_reason":"api_error"}'"#
            }
            "codex" => {
                r#"echo '{"type":"turn.failed","error":{"message":"stream disconnected before completion: connection reset by peer"}}'"#
            }
            _ => {
                r#"echo '{"type":"error","sessionID":"s-1","error":{"name":"APIError","data":{"message":"connection reset by peer","statusCode":503}}}'"#
            }
        };
        let script = format!(
            "{}; if first; then echo half > half.txt; {lost}; exit 1; fi; cat half.txt > $PLACE/found; echo one > one.txt; complete; {}",
            begin(agent),
            ending(agent, 10, 1)
        );
        let (project, path) = project("cut-off", agent, "", &script);
        under_simulated_time(&project, run(&project, &["--commit", "auto"])).env("PATH", &path).go().code(0);
        assert_eq!(ran(&project), ["1 1 new", "1 2 s-1"], "{agent}");
        assert_eq!(place(&project, "found"), "half\n", "{agent}");
        has(&place(&project, "prompt"), &["# Phase 1, continued", "was cut off"]);
        assert_eq!(project.sh("git show --name-only --format= HEAD"), "half.txt\none.txt\n", "{agent}");
    }
}

#[test]
fn a_run_that_was_killed_goes_on_in_its_session_and_names_what_was_saved() {
    let script = format!(
        "{}; if first; then echo half > half.txt; echo x > $PLACE/working; sleep 1000; fi; echo \"$BACKSTOP_PREVIOUS\" > $PLACE/previous; cat half.txt > $PLACE/found; complete; {}",
        begin("codex"),
        ending("codex", 10, 0)
    );
    let (project, path) = project("killed", "codex", "", &script);
    let mut child = run(&project, &["--commit", "auto"]).env("PATH", &path).command().spawn().unwrap();
    until("it works in a session", || {
        !place(&project, "working").is_empty() && !events(&project, "session.started").is_empty()
    });
    signal(&child, "KILL");
    child.wait().unwrap();
    run(&project, &["--commit", "auto"]).env("PATH", &path).go().code(0);
    assert_eq!(ran(&project), ["1 1 new", "1 2 s-1"]);
    assert_eq!(place(&project, "found"), "half\n");
    let previous = place(&project, "previous");
    assert_eq!(project.sh(&format!("git show {}:half.txt", previous.trim())), "half\n");
}

#[test]
fn whose_session_is_never_continued_is_told_what_was_saved() {
    let script = format!(
        "{}; if first; then echo half > half.txt; echo x > $PLACE/working; sleep 1000; fi; ls half.txt > $PLACE/found 2>&1; echo two > two.txt; complete; {}",
        begin("codex"),
        ending("codex", 10, 0)
    );
    let (project, path) = project("never", "codex", "", &script);
    let flags = ["--commit", "auto"];
    let go = || run(&project, &flags).env("PATH", &path).env("BACKSTOP_PLAN_CONTINUE_SESSION", "never");
    let mut child = go().command().spawn().unwrap();
    until("it works", || !place(&project, "working").is_empty());
    signal(&child, "KILL");
    child.wait().unwrap();
    go().go().code(0);
    assert_eq!(ran(&project), ["1 1 new", "1 2 new"]);
    assert!(place(&project, "found").contains("No such file"), "it begins from a clean tree");
    has(&place(&project, "prompt"), &["was interrupted", "is kept as commit", "git show "]);
}

#[test]
fn a_session_that_the_agent_does_not_know_any_more_uses_up_no_chance() {
    for (agent, words) in [
        ("claude", "No conversation found with session ID: s-1"),
        ("codex", "Error: thread/resume failed: no rollout found for thread id s-1 (code -32600)"),
        ("opencode", "Error: Session not found"),
    ] {
        let script = format!(
            "resumed && {{ echo '{words}' >&2; exit 1; }}; {}; if first; then echo half > half.txt; echo 'fetch failed: connect ECONNRESET 127.0.0.1:1' >&2; exit 1; fi; echo one > one.txt; complete; {}",
            begin(agent),
            ending(agent, 10, 1)
        );
        let (project, path) = project("gone", agent, "", &script);
        let run = under_simulated_time(&project, run(&project, &["--commit", "auto"]));
        let done = run.env("PATH", &path).go().code(0);
        assert_eq!(ran(&project), ["1 1 new", "1 2 s-1", "1 2 new"], "{agent}");
        has(&done.stderr(), &["knows no session s-1 any more"]);
        assert_eq!(reasons(&project), ["network_transient"], "{agent}");
    }
}

#[test]
fn a_wrong_path_begins_anew() {
    let script = format!(
        "{}; if first; then echo wrong > one.txt; else echo right > one.txt; fi; complete; {}",
        begin("claude"),
        ending("claude", 10, 1)
    );
    let (project, path) =
        project("wrong", "claude", "gates = [{ name = 'test', check = 'grep -q right one.txt' }]", &script);
    run(&project, &["--commit", "auto"]).env("PATH", &path).go().code(0);
    assert_eq!(ran(&project), ["1 1 new", "1 2 new"]);
    assert_eq!(reasons(&project), ["verification_mismatch"]);
}

#[test]
fn tokens_and_money_of_all_attempts_are_added_up_and_bounded() {
    // The session's own counters go on: 100 tokens and 0.20 USD, then 150 and 0.30 in all.
    let script = format!(
        "{}; echo $BACKSTOP_ATTEMPT > $BACKSTOP_PHASE.txt; if resumed; then complete; {}; else {}; if [ $BACKSTOP_PHASE = 2 ]; then complete; fi; fi",
        begin("claude"),
        ending("claude", 150, 30),
        ending("claude", 100, 20),
    );
    let (project, path) = project("money", "claude", "", &script);
    PlanText::new().phase("1", "", "agent = 'claude'").phase("2", "1", "agent = 'claude'").write(&project);
    let flags = ["--commit", "auto", "--max-cost", "0.25"];
    let done = run(&project, &flags).env("PATH", &path).go().code(3);
    has(
        &done.stderr(),
        &[
            "budget_exhausted",
            "have spent 0.30 USD of 0.25 USD",
            "--max-cost 0.60",
            "Used: 150 tokens, $0.30",
        ],
    );
    assert_eq!(ran(&project), ["1 1 new", "1 1 s-1"]);
    let status = project.run(&["plan", "status", "--json"]).go().code(0).json();
    assert_eq!(status["usage"]["input_tokens"], 150);
    assert!((status["phases"][0]["usage"]["cost_usd"].as_f64().unwrap() - 0.3).abs() < 1e-6, "{status}");
    assert_eq!(status["phases"][1]["usage"], serde_json::Value::Null);
    has(&project.run(&["plan", "status"]).go().code(0).stdout(), &["150 tokens, $0.30"]);
    // No attempt begins once the tokens are used up.
    let flags = ["--commit", "auto", "--max-tokens", "120"];
    let done = run(&project, &flags).env("PATH", &path).go().code(3);
    has(&done.stderr(), &["budget_exhausted", "150 tokens of 120"]);
    assert_eq!(ran(&project), ["1 1 new", "1 1 s-1"]);
    let flags = ["--commit", "auto", "--max-tokens", "1k"];
    let done = run(&project, &flags).env("PATH", &path).go().code(0);
    has(&done.stderr(), &["Tokens: 250 in", "Cost: 0.50 USD"]);
    let stats = project.run(&["stats", "--json"]).go().code(0).json();
    assert_eq!(
        (&stats["used"]["tokens_in"], &stats["used"]["cost_millionths"]),
        (&250.into(), &500_000.into())
    );
    has(&project.run(&["stats"]).go().code(0).stdout(), &["agents used 250 tokens, $0.50"]);
}
