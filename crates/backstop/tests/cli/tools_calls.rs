//! One call of an MCP tool from the command line: what is checked, retried, confirmed, explained
//! and recorded.

use crate::harness::{is_alive, until};
use crate::plan_text::interrupt_twice;
use crate::tools::Tools;
use serde_json::json;

#[test]
fn a_result_passes_unchanged_and_leaves_no_run() {
    let tools = Tools::new("call-echo", &[]);
    let done = tools.call("echo", json!({ "message": "hi\u{1b}[31m" })).go().code(0);
    let answer = done.json();
    assert_eq!(answer["result"]["content"][0]["text"], "hi\u{1b}[31m");
    assert_eq!(answer["result"]["_meta"]["kept"], 1);
    assert!(!done.stdout().contains('\u{1b}'));
    assert_eq!(tools.project.events().len(), 0);
    let text = tools.run(&["call", "fake__echo", "{\"message\": \"plain\"}"]).go().code(0).stdout();
    assert_eq!(text, "plain\n");
}

#[test]
fn wrong_arguments_are_never_sent() {
    let tools = Tools::new("call-arguments", &[]);
    let done = tools.run(&["call", "fake__add", "{\"a\": \"x\", \"c\": 1}"]).go().code(1);
    let text = done.stderr();
    for line in [
        "Error: invalid parameters for fake__add",
        "Missing: b",
        "Mistyped: a is a string",
        "Unknown: c",
        "Expected: a: number, b: number, note?: string",
        "Next: give the missing values",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert_eq!(tools.calls("add"), 0);
    let report = tools.call("add", json!({})).go().code(1).json();
    assert_eq!(
        (report["reason"].as_str(), report["attempts"].as_u64()),
        (Some("invalid_parameters"), Some(1))
    );
    // What the server itself calls invalid parameters means the same.
    let report = tools.call("invalid", json!({})).go().code(1).json();
    assert_eq!(report["reason"], "invalid_parameters");
    assert_eq!(tools.calls("invalid"), 1);
}

#[test]
fn an_unknown_tool_is_asked_for_once_and_others_are_suggested() {
    let tools = Tools::new("call-unknown", &[]);
    tools.run(&["tools", "list"]).go().code(0);
    let lists = || tools.log().iter().filter(|line| *line == "list").count();
    let before = lists();
    let report = tools.call("ecko", json!({})).go().code(1).json();
    assert_eq!(report["reason"], "tool_not_found");
    assert!(lists() > before);
    let suggestions = report["notice"]["suggestions"].to_string();
    assert!(suggestions.contains("fake__echo"), "{report}");
    assert!(report["next"].as_str().unwrap().contains("backstop tools refresh"), "{report}");
    let text = tools.run(&["call", "nope__x", "{}"]).go().code(1).stderr();
    assert!(text.contains("Known prefixes: fake"), "{text}");
}

#[test]
fn what_only_reads_is_retried_and_what_may_change_something_is_not() {
    let tools = Tools::new("call-retry", &[]);
    let report = tools.call("fail-read", json!({ "uid": "1_42" })).go().code(1).json();
    assert_eq!((tools.calls("fail-read"), report["attempts"].as_u64()), (3, Some(3)));
    assert_eq!(report["errors"][2], "Attempt 3: element not found: it is gone");
    assert_eq!(report["params"]["uid"], "1_42");
    assert!(!report["suggestion"].as_str().unwrap().is_empty());
    assert_eq!(tools.call("fail-twice", json!({})).go().code(0).json()["attempts"], 3);

    let report = tools.call("fail", json!({ "title": "x" })).go().code(1).json();
    assert_eq!((tools.calls("fail"), report["outcome"].as_str()), (1, Some("unconfirmed")));
    let confirm = report["confirm"].as_str().unwrap().to_owned();
    let run = confirm.strip_prefix("backstop call --confirm ").unwrap();
    // One word is one repetition.
    tools.run(&["call", "--confirm", run]).go().code(1);
    assert_eq!(tools.calls("fail"), 2);
    assert_eq!(tools.log().iter().filter(|line| *line == "call fail {\"title\": \"x\"}").count(), 2);
    let again = tools.run(&["call", "--confirm", run]).go().code(2).stderr();
    assert!(again.contains("does not wait for a confirmation"), "{again}");
    assert!(tools.project.kinds().contains(&"override".to_owned()));
}

#[test]
fn a_call_that_waits_is_confirmed_from_the_list_of_deferred_work() {
    let tools = Tools::new("call-deferred", &[]);
    tools.call("fail", json!({})).go().code(1);
    let rows = tools.run(&["deferred", "--json"]).go().code(0).json();
    let id = rows["deferred"][0]["id"].as_str().unwrap().to_owned();
    let run = rows["deferred"][0]["run"].as_str().unwrap().to_owned();
    // It is no command.
    tools.run(&["exec", "--confirm", &run]).go().code(125);
    tools.run(&["deferred", "run", &id]).go().code(1);
    assert_eq!(tools.calls("fail"), 2);
}

#[test]
fn the_settings_may_say_that_a_tool_can_be_repeated() {
    let tools = Tools::with("call-repeatable", &[], "repeatable = [\"fai*\"]");
    assert_eq!(tools.call("fail", json!({})).go().code(1).json()["attempts"], 3);
    assert_eq!(tools.calls("fail"), 3);
}

#[test]
fn a_server_that_dies_is_started_again_where_the_call_may_be_repeated() {
    let tools = Tools::new("call-die", &[]);
    let answer = tools.call("die-once", json!({})).go().code(0).json();
    assert_eq!(
        (answer["attempts"].as_u64(), answer["result"]["content"][0]["text"].as_str()),
        (Some(2), Some("alive again"))
    );
    let report = tools.call("die", json!({})).go().code(1).json();
    assert_eq!((tools.calls("die"), report["outcome"].as_str()), (1, Some("unconfirmed")));
    let error = report["errors"][0].as_str().unwrap();
    assert!(error.contains("exited with code 7") && error.contains("it all ends here"), "{error}");
    for pid in tools.pids() {
        until("the server is gone", || !is_alive(&pid));
    }
}

#[test]
fn a_call_that_hangs_is_ended_and_says_what_arrived() {
    let tools = Tools::with("call-hang", &[], "idle = \"300ms\"\n[profile.tool.on]\ntimeout = \"surface\"");
    let report = tools.call("hang", json!({})).go().code(1).json();
    assert_eq!(report["reason"], "timeout");
    assert!(report["notice"]["after_ms"].as_u64().unwrap() >= 300, "{report}");
    let text = tools.run(&["call", "fake__hang-write", "{}"]).go().code(1).stderr();
    assert!(text.contains("Timeout: fake__hang-write after ") && text.contains("Partial: none"), "{text}");
    assert!(tools.log().contains(&"notification notifications/cancelled".to_owned()), "{:?}", tools.log());
    // Progress keeps a call alive, up to its limit in all.
    let tools = Tools::with("call-slow", &[], "idle = \"400ms\"\n");
    let done = tools.call("progress", json!({})).env("MCP_STEP", "0.15").go().code(0);
    assert_eq!(done.json()["result"]["content"][0]["text"], "done");
    let tools = Tools::with("call-limit", &[], "timeout = \"300ms\"\n");
    let report = tools.call("progress", json!({})).env("MCP_STEP", "0.2").go().code(1).json();
    assert!(report["partial"].as_str().unwrap().contains("progress 1/5 step 1"), "{report}");
}

#[test]
fn a_call_that_may_have_taken_effect_needs_a_word_after_a_timeout() {
    let tools = Tools::with("call-lost", &[], "idle = \"300ms\"\n");
    let report = tools.call("hang-write", json!({})).go().code(1).json();
    assert_eq!((tools.calls("hang-write"), report["outcome"].as_str()), (1, Some("unconfirmed")));
    assert!(report["next"].as_str().unwrap().contains("it may have taken effect"), "{report}");
    // What only reads is tried again.
    assert_eq!(tools.call("hang-once", json!({})).go().code(0).json()["attempts"], 2);
}

#[test]
fn a_frozen_server_is_ended_and_not_waited_for() {
    let tools = Tools::with("call-frozen", &[], "idle = \"300ms\"\ndeadline = \"20s\"\n");
    let report = tools.call("freeze", json!({})).go().code(1).json();
    assert_eq!(report["reason"], "timeout");
    assert_eq!(tools.pids().len(), 3, "each attempt had a new process: {:?}", tools.log());
    for pid in tools.pids() {
        until("the server is gone", || !is_alive(&pid));
    }
}

#[test]
fn a_rate_limit_is_waited_for_and_closes_the_guard() {
    let tools = Tools::new("call-limit", &[]);
    let answer = tools.call("rate-limited", json!({})).go().code(0).json();
    assert_eq!(
        (answer["attempts"].as_u64(), answer["result"]["content"][0]["text"].as_str()),
        (Some(2), Some("let in"))
    );
    let kinds = tools.project.kinds();
    let at = |kind: &str| {
        kinds.iter().position(|found| found == kind).unwrap_or_else(|| panic!("{kind}: {kinds:?}"))
    };
    assert!(
        at("error.classified") < at("guard.updated") && at("guard.updated") < at("decision.made"),
        "{kinds:?}"
    );
}

#[test]
fn a_refused_credential_and_a_denied_permission_are_not_retried() {
    let tools = Tools::new("call-auth", &[]);
    for (tool, reason) in [("auth", "auth_error"), ("denied", "permission_denied")] {
        let report = tools.call(tool, json!({})).go().code(1).json();
        assert_eq!((report["reason"].as_str(), tools.calls(tool)), (Some(reason), 1), "{report}");
    }
    let other = "[mcp.other]\ncommand = \"python3\"\nenv = { SECRET = \"${NO_SUCH_VARIABLE}\" }";
    let tools = Tools::with("call-unset", &[], other);
    let report = tools.run(&["call", "--json", "other__echo", "{}"]).go().code(1).json();
    assert_eq!(
        (report["reason"].as_str(), report["attempts"].as_u64()),
        (Some("auth_error"), Some(1)),
        "{report}"
    );
    assert!(report["next"].as_str().unwrap().contains("set NO_SUCH_VARIABLE"), "{report}");
    let doctor = tools.run(&["tools", "doctor", "--json"]).go().code(1).json().to_string();
    assert!(doctor.contains("NO_SUCH_VARIABLE") && doctor.contains("auth_error"), "{doctor}");
}

#[test]
fn answers_that_nobody_asked_for_and_garbage_cost_nothing() {
    let tools = Tools::new("call-odd", &["garbage-first"]);
    for (tool, want) in [("twice", "first"), ("other-id", "yours"), ("flood", "dry again"), ("echo", "x")] {
        let answer = tools.call(tool, json!({ "message": "x" })).go().code(0).json();
        assert_eq!(answer["result"]["content"][0]["text"], want);
    }
    let doctor = tools.run(&["tools", "doctor"]).go().code(0).stdout();
    assert!(doctor.contains("lines that are no message"), "{doctor}");
}

#[test]
fn a_long_result_is_whole_and_one_that_is_too_long_is_said_to_be() {
    let tools = Tools::new("call-wide", &[]);
    let wide = |bytes: usize| json!({ "message": format!("wide {bytes}") }).to_string();
    let shown = tools.run(&["call", "fake__echo", &wide(100_000)]).go().code(0).stdout();
    let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(read["wide"].as_str().map(str::len), Some(100_000));
    // Later steps of a chain see all of it, too.
    let steps = json!([
        { "id": "one", "tool": "fake__echo", "arguments": { "message": "wide 100000" } },
        { "id": "two", "tool": "fake__echo", "arguments": { "message": { "$from": "one", "pointer": "/last" } } },
    ]);
    tools.project.file("steps.json", steps.to_string());
    let done = tools.run(&["chain", "--json", "steps.json"]).go().code(0).json().to_string();
    assert!(done.contains(r#"{"text":"z"}"#), "{}", &done[done.len() - 400..]);
    let report = tools.run(&["call", "--json", "fake__echo", &wide(17 << 20)]).go().code(1).json();
    assert_eq!(
        (report["reason"].as_str(), report["attempts"].as_u64()),
        (Some("validation"), Some(1)),
        "{report}"
    );
    assert!(report.to_string().contains("larger than 16 MiB"), "{report}");
}

#[test]
fn a_part_that_did_not_work_is_a_partial_success() {
    let tools = Tools::new("call-partial", &[]);
    let done = tools.call("partial", json!({})).go().code(0);
    assert_eq!(done.json()["warnings"], json!(["one is old", "one is gone"]));
    assert!(done.stderr().contains("Partial success: 1 succeeded, 0 failed"), "{}", done.stderr());
    assert_eq!(done.json()["result"]["structuredContent"]["warnings"][0], "one is old");
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let tools = Tools::new("call-start", &["exit-at-start"]);
    let doctor = tools.run(&["tools", "doctor"]).go().code(1).stdout();
    assert!(doctor.contains("failed fake") && doctor.contains("left-pad"), "{doctor}");
    let done = tools.run(&["call", "fake__echo", "{}"]).go().code(1);
    assert!(done.stderr().contains("left-pad"), "{}", done.stderr());
    let silent = Tools::with("call-silent", &["never-initialize"], "start_timeout = \"300ms\"");
    let doctor = silent.run(&["tools", "doctor"]).go().code(1).stdout();
    assert!(doctor.contains("timeout: no answer from fake within 300 ms"), "{doctor}");
    let missing = Tools::with("call-missing", &[], "");
    missing.project.file("backstop.toml", "[mcp.fake]\ncommand = \"no-such-program-here\"\n");
    missing.run(&["trust"]).go().code(0);
    let doctor = missing.run(&["tools", "doctor"]).go().code(1).stdout();
    assert!(
        doctor.contains("dependency_missing") && doctor.contains("install no-such-program-here"),
        "{doctor}"
    );
}

#[test]
fn a_server_of_the_new_era_is_spoken_to_as_it_wants() {
    let tools = Tools::new("call-modern", &["modern"]);
    let answer = tools.call("echo", json!({ "message": "new" })).go().code(0).json();
    assert_eq!(answer["result"]["content"][0]["text"], "new");
    let before = tools.log().iter().filter(|line| line.starts_with("initialize")).count();
    tools.call("echo", json!({ "message": "new" })).go().code(0);
    // Which era it speaks is remembered.
    assert_eq!(tools.log().iter().filter(|line| line.starts_with("initialize")).count(), before);
}

#[test]
fn any_method_can_be_called_as_it_is() {
    let tools = Tools::new("call-raw", &[]);
    let answer = tools.run(&["call", "--json", "--raw", "fake", "tools/list", "{}"]).go().code(0).json();
    assert_eq!(answer["result"]["tools"][0]["x-unknown"]["kept"], true);
    let report = tools.run(&["call", "--json", "--raw", "fake", "no/such", "{}"]).go().code(1).json();
    assert_eq!(report["reason"], "tool_not_found");
    let error = tools.run(&["call", "--raw", "nope", "ping"]).go().code(1).stderr();
    assert!(error.contains("fake"), "{error}");
}

#[test]
fn what_a_variable_gave_to_a_secret_of_the_settings_is_shown_nowhere() {
    let tools = Tools::new("call-expanded", &[]);
    let settings = tools.settings(&[], "").replace("env = {", "env = { GH_PASS = \"${MYTOK}\",");
    tools.project.file("backstop.toml", settings);
    tools.run(&["trust"]).go().code(0);
    let call = tools.call("complain", json!({ "message": "it is plainvalue123 here" }));
    let report = call.env("MYTOK", "plainvalue123").go().code(1).stdout();
    assert!(report.contains("it is ") && !report.contains("plainvalue123"), "{report}");
}

#[test]
fn a_crash_shows_what_was_written_and_asks_for_no_repetition() {
    let tools = Tools::new("call-crash", &[]);
    let text = tools.run(&["call", "fake__die", "{}"]).go().code(1).stderr();
    assert!(text.contains("loading the last page\n") && text.contains("fatal: it all ends here"), "{text}");
    assert!(text.contains("backstop call --confirm") && !text.contains("same input"), "{text}");
}

#[test]
fn a_secret_is_in_no_answer_and_in_no_record() {
    const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB";
    let tools = Tools::new("call-secret", &[]);
    let done = tools.call("secret", json!({ "token": TOKEN })).go().code(1);
    assert!(!done.stdout().contains(TOKEN) && !done.stderr().contains(TOKEN), "{}", done.stdout());
    let events = tools.run(&["events", "--json"]).go().code(0).stdout();
    assert!(!events.contains(TOKEN), "{events}");
    // Arguments with a secret are not stored, and have to be typed again.
    let report = done.json();
    let run = report["run"].as_str().unwrap();
    let error = tools.run(&["call", "--confirm", run]).go().code(2).stderr();
    assert!(error.contains("hold a secret"), "{error}");
    let again = json!({ "token": TOKEN }).to_string();
    tools.run(&["call", "--confirm", run, &again]).go().code(1);
    assert_eq!(tools.calls("secret"), 2);
}

#[test]
fn a_result_of_a_tool_that_reads_is_used_again_where_the_settings_say_so() {
    let tools = Tools::with("call-cache", &[], "cache = \"10m\"");
    let twice = "{\"id\":\"a\",\"tool\":\"fake__echo\",\"arguments\":{\"message\":\"y\"}}\n{\"id\":\"b\",\"tool\":\"fake__echo\",\"arguments\":{\"message\":\"y\"}}\n";
    let file = tools.project.file("twice.jsonl", twice);
    let report = tools.run(&["batch", "--json", "--at-once", "1"]).arg(&file).go().code(0).json();
    assert_eq!(report["succeeded"], 2);
    assert_eq!(tools.log().iter().filter(|line| line.contains("\"y\"")).count(), 1);
}

#[test]
fn nothing_of_a_server_is_left_when_a_call_is_stopped() {
    let tools = Tools::new("call-stop", &[]);
    let mut child = tools.run(&["call", "fake__hang", "{}"]).command().spawn().unwrap();
    until("the server works", || tools.calls("hang") == 1);
    // SIGTERM is a word; SIGKILL is none.
    std::process::Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    for pid in tools.pids() {
        until("the server is gone", || !is_alive(&pid));
    }
    let mut child = tools.run(&["call", "fake__hang", "{}"]).command().spawn().unwrap();
    until("the server works", || tools.calls("hang") == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    for pid in tools.pids() {
        until("the server is gone", || !is_alive(&pid));
    }
}

#[test]
fn the_second_ctrl_c_ends_every_command_of_tools_though_the_server_ignores_it() {
    let surfaces: [(&str, &[&str], &[&str]); 5] = [
        ("call", &["stubborn"], &["call", "fake__hang", "{}"]),
        ("batch", &["stubborn"], &["batch", "items.jsonl"]),
        ("chain", &["stubborn"], &["chain", "steps.json"]),
        ("tools", &["stubborn", "never-initialize"], &["tools", "doctor"]),
        ("mcp", &["stubborn"], &["mcp"]),
    ];
    for (surface, behaviours, args) in surfaces {
        let tools = Tools::new(&format!("twice-{surface}"), behaviours);
        tools.project.file("items.jsonl", "{\"id\":\"a\",\"tool\":\"fake__hang\",\"arguments\":{}}\n");
        tools.project.file("steps.json", "[{\"id\":\"a\",\"tool\":\"fake__hang\"}]");
        let taken = if surface == "mcp" {
            let mut client = tools.gateway(&[]);
            client.initialize(json!({}));
            client.ask("tools/call", json!({ "name": "fake__hang", "arguments": {} }));
            until("the call is there", || tools.calls("hang") == 1);
            interrupt_twice(&mut client.child)
        } else {
            let mut child = tools.run(args).command().spawn().unwrap();
            until(surface, || tools.calls("hang") == 1 || (surface == "tools" && !tools.pids().is_empty()));
            interrupt_twice(&mut child)
        };
        println!("{surface}: {taken:?} after the second");
        for pid in tools.pids() {
            until("its reaper has ended the server", || !is_alive(&pid));
        }
    }
}

#[test]
fn a_server_that_is_never_ready_is_ended_with_all_that_it_started() {
    let tools = Tools::new("call-never-ready", &[]);
    let pid_file = tools.project.beside("server/sleeper");
    let line = format!("sleep 600 & echo $! > {}; sleep 600", pid_file.display());
    let settings =
        format!("[mcp.fake]\ncommand = \"sh\"\nargs = [\"-c\", {line:?}]\nstart_timeout = \"500ms\"\n");
    tools.project.file("backstop.toml", settings);
    tools.run(&["trust"]).go().code(0);
    tools.run(&["tools", "doctor"]).go().code(1);
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    assert!(!is_alive(&pid), "it is gone when the command has ended");
}

#[test]
fn a_refused_credential_is_named_wherever_the_refusal_stands() {
    let tools = Tools::new("call-auth-facts", &[]);
    let settings = tools.settings(&[], "").replace("env = {", "env = { FAKE_TOKEN = \"${FAKE_TOKEN}\",");
    tools.project.file("backstop.toml", settings);
    tools.run(&["trust"]).go().code(0);
    let report = tools.call("auth", json!({})).env("FAKE_TOKEN", "x1y2z3").go().code(1).json();
    assert_eq!(report["reason"], "auth_error");
    assert_eq!(report["next"], "renew the credential of fake: FAKE_TOKEN");
}

#[test]
fn a_raw_call_of_a_tool_is_treated_as_a_call_of_it() {
    let tools = Tools::new("call-raw-tool", &[]);
    tools.run(&["tools", "refresh"]).go().code(0);
    let raw = |tool: &str| {
        let params = json!({ "name": tool, "arguments": {} }).to_string();
        tools.run(&["call", "--json", "--raw", "fake", "tools/call", &params]).go().code(1).json()
    };
    let report = raw("fail");
    assert_eq!((report["reason"].as_str(), tools.calls("fail")), (Some("tool_failed"), 1));
    let run = report["confirm"].as_str().unwrap().strip_prefix("backstop call --confirm ").unwrap();
    assert!(tools.project.kinds().contains(&"run.ended".to_owned()), "{:?}", tools.project.kinds());
    tools.run(&["call", "--confirm", run]).go().code(1);
    assert_eq!(tools.calls("fail"), 2);
    // What its annotations say counts.
    assert_eq!((raw("fail-read")["attempts"].as_u64(), tools.calls("fail-read")), (Some(3), 3));
}

#[test]
fn a_result_that_is_used_again_takes_nothing_of_the_budget() {
    let tools = Tools::with("call-cache-budget", &[], "cache = \"10m\"\n[mcp]\nbudget = \"few\"");
    tools.run(&["budget", "set", "few", "1"]).go().code(0);
    let item = |id: &str, message: &str| {
        format!("{}\n", json!({ "id": id, "tool": "fake__echo", "arguments": { "message": message } }))
    };
    let items = [item("a", "same"), item("b", "same"), item("c", "other")].concat();
    let file = tools.project.file("calls.jsonl", items);
    let report = tools.run(&["batch", "--json", "--at-once", "1"]).arg(&file).go().code(1).json();
    let ok: Vec<bool> =
        report["items"].as_array().unwrap().iter().map(|item| item["ok"].as_bool().unwrap()).collect();
    assert_eq!(ok, [true, true, false], "{report}");
    assert_eq!(report["items"][2]["failure"]["reason"], "budget_exhausted");
}
