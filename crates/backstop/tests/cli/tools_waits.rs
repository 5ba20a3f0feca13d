//! Servers that are never ready: a call ends in its time, and everything else goes on.

use crate::tools::Tools;
use serde_json::{Value, json};

/// A server beside the usual one that starts and never says a word.
const SILENT: &str = "[mcp.silent]\ncommand = \"sleep\"\nargs = [\"600\"]\nstart_timeout = \"1h\"";

#[test]
fn a_call_of_a_server_that_is_never_ready_ends_in_its_time() {
    let tools = Tools::with("waits-call", &["never-initialize"], "start_timeout = \"1h\"");
    for words in [vec!["fake__echo", "{}"], vec!["--raw", "fake", "tools/list"]] {
        let flags = ["call", "--json", "--timeout", "200ms", "--deadline", "1s"];
        let args: Vec<&str> = flags.into_iter().chain(words).collect();
        let report = tools.run(&args).go().code(1).json();
        assert_eq!(report["reason"], "timeout", "{report}");
        assert!(report["notice"]["after_ms"].as_u64().unwrap() > 0, "{report}");
        assert!(report["next"].as_str().unwrap().contains("check that it starts"), "{report}");
    }
    // The server's own limit says what to raise.
    let tools = Tools::with("waits-start", &["never-initialize"], "start_timeout = \"200ms\"");
    let text = tools.run(&["call", "--deadline", "100s", "fake__echo", "{}"]).go().code(1).stderr();
    assert!(text.contains("raise `mcp.fake.start_timeout`") && !text.contains("after 0ms"), "{text}");
    assert!(!text.contains("narrow"), "{text}");
}

#[test]
fn a_deadline_of_the_settings_counts_for_a_server_that_is_never_ready() {
    let more = "start_timeout = \"1h\"\ndeadline = \"500ms\"";
    let tools = Tools::with("waits-deadline", &["never-initialize"], more);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    let report = client.call("echo", json!({ "message": "x" }))["structuredContent"].clone();
    assert_eq!(report["reason"], "timeout", "{report}");
    assert!(report["next"].as_str().unwrap().contains("check that it starts"), "{report}");
    client.leave();
}

#[test]
fn lists_of_the_gateway_do_not_wait_for_a_server_that_is_never_ready() {
    let tools = Tools::with("waits-lists", &["library"], SILENT);
    tools.run(&["tools", "refresh", "fake"]).go().code(0);
    let mut client = tools.gateway(&["--no-own-tools"]);
    client.initialize(json!({}));
    let names = |listed: &Value| -> Vec<String> {
        let all = listed["tools"].as_array().unwrap().iter();
        all.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(names(&client.request("tools/list", json!({}))).contains(&"fake__echo".to_owned()));
    let listed = client.request("resources/list", json!({}));
    assert_eq!(listed["resources"][0]["uri"], "memo://one", "{listed}");
    let read = client.request("resources/read", json!({ "uri": "memo://one" }));
    assert_eq!(read["contents"][0]["text"], "read memo://one");
    let got = client.request("prompts/get", json!({ "name": "fake__plain", "arguments": {} }));
    assert!(got["messages"][0]["content"]["text"].as_str().unwrap().starts_with("got plain"), "{got}");
    client.leave();
}

#[test]
fn calls_do_not_wait_for_a_server_that_they_do_not_name() {
    let tools = Tools::with("waits-others", &[], SILENT);
    let echo = json!({ "tool": "fake__echo", "arguments": { "message": "x" } });
    // Nothing is known yet: the server of the call alone is asked.
    assert_eq!(tools.call("echo", echo["arguments"].clone()).go().code(0).json()["attempts"], 1);
    let batch = tools.project.file("items.jsonl", format!("{echo}\n"));
    tools.run(&["batch", batch.to_str().unwrap()]).go().code(0);
    let chain = tools.project.file("chain.json", json!({ "steps": [echo] }).to_string());
    tools.run(&["chain", chain.to_str().unwrap()]).go().code(0);
    // A list says who is missing.
    let listed = tools.run(&["tools", "list"]).go().code(0);
    assert!(listed.stdout().contains("fake__echo"), "{}", listed.stdout());
    assert!(listed.stderr().contains("backstop tools refresh silent"), "{}", listed.stderr());
}

#[test]
fn many_unknown_tools_of_a_server_are_one_question() {
    let tools = Tools::new("waits-unknown", &[]);
    tools.run(&["tools", "refresh"]).go().code(0);
    let lists = || tools.log().iter().filter(|line| *line == "list").count();
    let before = lists();
    let items: String = (0..40).map(|n| format!("{}\n", json!({ "tool": format!("fake__no{n}") }))).collect();
    let file = tools.project.file("items.jsonl", items);
    let report = tools.run(&["batch", "--json", file.to_str().unwrap()]).go().code(1).json();
    assert_eq!(report["failed"], 40);
    let after = lists();
    assert!(after > before && after < before + 40, "{before} to {after} pages for 40 names");
}

#[test]
fn a_tool_that_its_server_has_no_more_is_looked_for_and_others_are_suggested() {
    let tools = Tools::new("waits-gone", &[]);
    tools.run(&["tools", "refresh"]).go().code(0);
    let work = std::fs::read_dir(tools.project.state().join("work")).unwrap().next().unwrap().unwrap();
    let file = work.path().join("tools/catalogue.json");
    let mut kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let listed = kept["servers"]["fake"]["tools"].as_array_mut().unwrap();
    listed.push(json!({ "name": "ecko", "inputSchema": { "type": "object" } }));
    std::fs::write(&file, kept.to_string()).unwrap();
    let report = tools.call("ecko", json!({})).go().code(1).json();
    assert_eq!(report["reason"], "tool_not_found", "{report}");
    assert!(report["notice"]["suggestions"].to_string().contains("fake__echo"), "{report}");
    // The list is that of the server again.
    let listed = tools.run(&["tools", "list"]).go().code(0).stdout();
    assert!(!listed.contains("fake__ecko"), "{listed}");
}

#[test]
fn a_gateway_says_that_its_kept_lists_cannot_be_used() {
    let tools = Tools::new("waits-cache", &[]);
    tools.run(&["tools", "refresh"]).go().code(0);
    let work = std::fs::read_dir(tools.project.state().join("work")).unwrap().next().unwrap().unwrap();
    std::fs::write(work.path().join("tools/catalogue.json"), "{ broken").unwrap();
    let mut client = tools.gateway(&[]);
    let hello = client.initialize(json!({}));
    assert!(hello["instructions"].as_str().unwrap().contains("cache_invalid"), "{hello}");
    // A search asks the servers where nothing is known.
    let search = json!({ "name": "backstop_search_tools", "arguments": { "query": "echo" } });
    let found = client.request("tools/call", search);
    assert_eq!(found["structuredContent"]["tools"][0]["tool"], "fake__echo", "{found}");
    client.leave();
    let ended = tools.run(&["mcp"]).stdin("").go().code(0);
    assert!(!ended.stderr().contains("cache_invalid"), "it was made anew: {}", ended.stderr());
    // What was wrong is on record before it was mended, and that it was.
    let events = tools.project.events();
    let of: Vec<&Value> = events.iter().filter(|event| event["run"] == events[0]["run"]).collect();
    let kinds: Vec<&str> = of.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    let wanted = ["run.started", "error.classified", "decision.made", "recovery.attempted", "run.ended"];
    assert_eq!(kinds, wanted, "{events:?}");
    assert_eq!(of[1]["fault"]["reason"], "cache_invalid");
    assert_eq!((&of[2]["action"], &of[2]["to"]), (&json!("fallback"), &json!("live discovery")));
    assert_eq!((&of[3]["success"], &of[4]["outcome"]), (&json!(true), &json!("done")));
}
