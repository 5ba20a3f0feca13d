//! Agents that speak the Agent Client Protocol: what they are asked and told, how they are ended,
//! and what comes of those that keep to no protocol at all.
#![cfg(target_os = "linux")]

use crate::harness::{Project, root, until};
use crate::plan_text::{PlanText, events, has, place, reasons, run};
use crate::simulated::{Simulated, under_simulated_time};
use serde_json::Value;

/// A project whose agent is the scripted one, doing `what`. It is named in the settings.
fn project(what: &str, settings: &str) -> Project {
    project_of(what, settings, "")
}

/// The same, with more settings of the agent.
fn project_of(what: &str, settings: &str, agent: &str) -> Project {
    let project = Project::git(&format!("acp-{what}"));
    let script = root().join("crates/backstop/tests/cli/acp_agent.py");
    project.settings(format!(
        "[agent.mine]\nacp = [\"python3\", \"{}\", \"{what}\"]\n{agent}",
        script.display()
    ));
    PlanText::new().phase("1", "", &format!("agent = 'mine'\n{settings}")).write(&project);
    project
}

/// The messages that the agent received.
fn received(project: &Project) -> Vec<Value> {
    place(project, "received").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn methods(project: &Project) -> Vec<String> {
    let messages = received(project);
    let methods = messages.iter().filter_map(|message| message["method"].as_str());
    methods.map(str::to_owned).collect()
}

#[test]
fn a_phase_is_done_over_acp_inside_of_the_worktree_and_nowhere_else() {
    let project = project("work", "");
    let said = run(&project, &["--commit", "auto"]).go().code(0).stderr();
    assert_eq!(methods(&project), ["initialize", "session/new", "session/set_mode", "session/prompt"]);
    let first = &received(&project)[0]["params"];
    assert_eq!(first["clientCapabilities"], serde_json::json!({}), "nothing is announced");
    assert_eq!(received(&project)[2]["params"]["modeId"], "acceptEdits");
    assert_eq!(project.sh("git show --name-only --format= HEAD"), "one.txt\n", "{said}");
    let log = project.run(&["plan", "logs", "1"]).go().code(0).stdout();
    has(&log, &["> Write one.txt", "All done.", "not allowed: Write /etc/backstop-was-here"]);
    let finished = events(&project, "attempt.finished");
    assert_eq!(finished[0]["delivery"]["tokens_in"], 7, "{finished:?}");
    let sessions = events(&project, "session.started");
    assert_eq!(sessions[0]["session_id"], "s-1");
}

#[test]
fn what_a_worktree_has_as_a_link_is_inside_of_it() {
    let project = project_of("linked", "", "[isolation]\nlink = [\"deps\"]\n");
    std::fs::create_dir(project.path().join("deps")).unwrap();
    run(&project, &["--commit", "auto"]).go().code(0);
    assert_eq!(project.sh("git show --name-only --format= HEAD"), "one.txt\n");
}

#[test]
fn a_command_after_acp_is_an_agent_of_its_own() {
    let project = project("work", "");
    let script = root().join("crates/backstop/tests/cli/acp_agent.py");
    let agent = format!("acp:python3 {} work", script.display());
    PlanText::new().phase("1", "", "").write(&project);
    run(&project, &["--agent", &agent, "--commit", "auto"]).go().code(0);
    assert_eq!(project.sh("git show --name-only --format= HEAD"), "one.txt\n");
}

#[test]
fn an_agent_that_is_known_to_speak_acp_is_run_by_its_name() {
    let plan = PlanText::new().phase("1", "", "");
    let this = Simulated::new("acp-by-name", &plan, &[]);
    let script = root().join("crates/backstop/tests/cli/acp_agent.py");
    this.program("goose", &format!("#!/bin/sh\nexec python3 '{}' work\n", script.display()));
    this.run(&["--agent", "goose", "--commit", "auto"]).go().code(0);
    assert_eq!(this.project.sh("git show --name-only --format= HEAD"), "one.txt\n");
}

#[test]
fn what_an_agent_says_is_no_result() {
    let project = project("talk", "");
    run(&project, &["--commit", "none"]).go().code(3);
    assert!(reasons(&project).iter().all(|reason| reason == "parse_error"), "{:?}", reasons(&project));
    // It was asked once more in its session, which was loaded and got its mode again.
    let methods = methods(&project);
    let load = methods.iter().position(|method| method == "session/load").unwrap();
    assert_eq!(methods[load + 1..load + 3], ["session/set_mode", "session/prompt"], "{methods:?}");
}

#[test]
fn work_that_was_cut_off_goes_on_in_its_session_by_id() {
    let project = project("resumed", "");
    under_simulated_time(&project, run(&project, &["--commit", "auto"])).go().code(0);
    let messages = received(&project);
    let loads: Vec<&Value> = messages.iter().filter(|message| message["method"] == "session/load").collect();
    assert_eq!((loads.len(), &loads[0]["params"]["sessionId"]), (1, &Value::from("s-1")));
    assert_eq!(project.sh("git show --name-only --format= HEAD"), "half.txt\n");
    let log = project.run(&["plan", "logs", "1"]).go().code(0).stdout();
    assert!(!log.contains("This was said before"), "what is replayed is not new: {log}");
}

#[test]
fn a_session_whose_load_answers_nothing_gets_its_mode_again() {
    for mode in ["", "mode = 'acceptEdits'\n"] {
        let project = project_of("null-load", "", mode);
        under_simulated_time(&project, run(&project, &["--commit", "auto"])).go().code(0);
        let messages = received(&project);
        let load = messages.iter().position(|message| message["method"] == "session/load").unwrap();
        let next = &messages[load + 1];
        assert_eq!(
            (&next["method"], &next["params"]["modeId"]),
            (&"session/set_mode".into(), &"acceptEdits".into())
        );
    }
}

#[test]
fn geminis_session_is_not_loaded_in_the_minute_in_which_it_was_begun() {
    for (what, begun, loaded) in [("resumed", 2, 0), ("resumed-later", 1, 1)] {
        let plan = PlanText::new().phase("1", "", "agent = 'mine'");
        let this = Simulated::new(&format!("acp-gemini-{what}"), &plan, &[]);
        this.project.settings("[agent.mine]\nacp = [\"gemini\", \"--acp\"]\n");
        let script = root().join("crates/backstop/tests/cli/acp_agent.py");
        this.program("gemini", &format!("#!/bin/sh\nexec python3 '{}' {what}\n", script.display()));
        // The first second of a minute, so that the next one is far away.
        this.begin_minute();
        let mut child = this.run(&["--commit", "auto"]).command().spawn().unwrap();
        if loaded > 0 {
            // A minute passes once the session is recorded, and only then does the first attempt
            // fail.
            until("the session is recorded", || !events(&this.project, "session.started").is_empty());
            this.pass_minute();
            std::fs::write(this.project.beside("place").join("go"), "").unwrap();
        }
        assert!(child.wait().unwrap().success(), "{what}");
        let methods = methods(&this.project);
        let count = |method: &str| methods.iter().filter(|known| *known == method).count();
        assert_eq!((count("session/new"), count("session/load")), (begun, loaded), "{what}: {methods:?}");
    }
}

#[test]
fn explorers_planners_and_builders_of_a_campaign_speak_acp() {
    let project = project("campaign", "");
    let script = root().join("crates/backstop/tests/cli/acp_agent.py");
    let agent = format!("acp:python3 {} campaign", script.display());
    let place = project.beside("place");
    std::fs::create_dir_all(&place).unwrap();
    let args = ["campaign", "Do it now", "--agent", &agent];
    project.run(&args).env("PLACE", &place.display().to_string()).go().code(0);
    assert_eq!(project.sh("git show --name-only --format= HEAD"), "one.txt\n");
    let prompts = methods(&project).iter().filter(|method| *method == "session/prompt").count();
    assert!(prompts >= 3, "an explorer, a planner and a builder: {:?}", methods(&project));
}

#[test]
fn one_that_repeats_a_failed_request_without_end_is_ended_and_its_failure_is_named() {
    let project = project("overflow", "");
    run(&project, &["--commit", "none"]).go().code(3);
    assert_eq!(reasons(&project)[0], "context_overflow");
    let faults = events(&project, "error.classified");
    assert!(faults[0].to_string().contains("agent.repeated"), "{}", faults[0]);
}

#[test]
fn a_limit_is_told_by_the_agents_own_code() {
    let project = project("limited", "");
    run(&project, &["--commit", "none", "--wait-max", "0s"]).go().code(3);
    assert_eq!(reasons(&project)[0], "rate_limited");
}

#[test]
fn a_stalled_turn_is_cancelled_by_our_clock() {
    for (name, limit) in [("idle", "idle = '1s'"), ("wall", "timeout = '3s'")] {
        let project = project("stall", limit);
        run(&project, &["--commit", "none"]).go().code(3);
        assert_eq!(reasons(&project)[0], "timeout", "{name}");
        assert_eq!(place(&project, "cancelled"), "yes", "{name}: it was asked to leave off first");
    }
}

#[test]
fn one_that_hears_nothing_is_ended_with_all_that_it_started() {
    let project = project("deaf", "idle = '1s'");
    run(&project, &["--commit", "none"]).go().code(3);
    assert_eq!(reasons(&project)[0], "timeout");
    let left =
        format!("ps -eo args | grep '[a]cp_agent.py deaf' | grep -c {} || true", project.path().display());
    until("nothing is left", || project.sh(&left).trim() == "0");
}

#[test]
fn harm_is_bounded_and_named_and_the_phase_fails_in_words() {
    for (what, settings, reason, words) in [
        ("garbage", "", "invalid_usage", "no messages of the Agent Client Protocol: Welcome to the agent!"),
        ("silent", "idle = '2s'", "timeout", "did not answer `initialize` within 2 s"),
        ("other-version", "", "invalid_usage", "it speaks version 7 of the Agent Client Protocol"),
        ("version-0", "", "invalid_usage", "it speaks version 0 of the Agent Client Protocol"),
        ("version-text", "", "invalid_usage", "it speaks no version of the Agent Client Protocol"),
        ("version-null", "", "invalid_usage", "it speaks no version of the Agent Client Protocol"),
        ("refused", "", "unknown", "boom"),
        ("no-session-id", "", "validation", "it began a session and gave it no id"),
        ("reads-nothing", "", "validation", "the agent does not read its standard input"),
        ("permission-loop", "", "permission_denied", "/etc/passwd is outside of the worktree"),
        ("unknown-requests", "", "validation", "requests that do not exist, the last `terminal/create`"),
        ("flood", "", "resource_exhausted", "messages within 5 s"),
        ("endless-line", "", "validation", "a message of more than 8 MB"),
        ("gone", "", "crash", "the agent ended before it answered the prompt"),
    ] {
        let project = project(what, settings);
        let done = run(&project, &["--commit", "none"]).go();
        assert_eq!(done.exit(), Some(3), "{what}: {}", done.stderr());
        assert_eq!(reasons(&project)[0], reason, "{what}");
        let faults = events(&project, "error.classified");
        let cause = faults[0]["fault"]["cause"].as_str().unwrap_or_default();
        assert!(cause.contains(words), "{what}: {cause}");
    }
}
