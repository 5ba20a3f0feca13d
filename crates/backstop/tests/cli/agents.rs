//! The agents that are known by name: what is installed, and what becomes of those that repeat a
//! failed request.
#![cfg(target_os = "linux")]

use crate::plan_text::{PlanText, events, has, place, reasons};
use crate::simulated::Simulated;

#[test]
fn agents_are_listed_with_their_state_and_a_newer_one_is_said() {
    let this = Simulated::new("agents-listed", &PlanText::new().phase("1", "", ""), &[]);
    this.program("claude", "#!/bin/sh\necho '99.1.2 (Claude Code)'\n");
    this.program("goose", "#!/bin/sh\necho ' 1.9.2'\n");
    // Nothing but these: what else is installed on this machine is not found.
    let path = format!("{}:/usr/bin:/bin", this.project.beside("bin").display());
    let go = |args: &[&str]| this.project.run(args).env("PATH", &path).go();
    let said = go(&["agents"]).code(0).stdout();
    let line = |name: &str| {
        let found = said.lines().find(|line| line.split_whitespace().next() == Some(name));
        found.unwrap_or_else(|| panic!("{name} is not in\n{said}")).to_owned()
    };
    has(
        &line("claude"),
        &["99.1.2", "ready", "plain · sessions", "newer than ", "the newest that was tried"],
    );
    has(&line("copilot"), &["not found", "npm i -g @github/copilot"]);
    has(&line("goose"), &["1.9.2", "ready", "acp"]);
    let all = go(&["agents", "--json"]).code(0).json();
    let claude = all["agents"].as_array().unwrap().iter().find(|agent| agent["agent"] == "claude").unwrap();
    assert_eq!((&claude["newer_than_tested"], &claude["state"]), (&true.into(), &"ready".into()));
    has(claude["command"].as_str().unwrap(), &["claude -p --output-format stream-json"]);
    has(&go(&["doctor"]).stdout(), &["claude is newer than "]);
}

#[test]
fn an_agent_that_repeats_a_failed_request_without_end_is_ended_and_the_failure_named() {
    // What OpenCode prints when a stream is cut, and what Gemini CLI says in its log.
    let cut = r#"echo '{"type":"step_finish","sessionID":"s-1","part":{"reason":"unknown","tokens":{"input":0,"output":0}}}'"#;
    let overloaded = "echo 'Attempt 1 failed with status 503. Retrying with backoff... _ApiError: {}' >&2";
    for (agent, line) in [("opencode", cut), ("gemini", overloaded)] {
        let plan = PlanText::new().phase("1", "", &format!("agent = '{agent}'"));
        let script = format!(
            "if [ $(calls 1) = 0 ]; then while true; do {line}; sleep 0.05; done; fi; echo 1 > 1.txt; complete"
        );
        let this = Simulated::new(&format!("agents-repeat-{agent}"), &plan, &[(agent, &script)]);
        this.run(&["--commit", "auto"]).go().code(0);
        assert_eq!(reasons(&this.project), ["network_transient"], "{agent}");
        let fault = &events(&this.project, "error.classified")[0]["fault"];
        has(&fault.to_string(), &["agent.repeated", "it was ended for that"]);
        assert_eq!(place(&this.project, "ran").lines().count(), 2, "{agent}: it was tried again");
    }
}
