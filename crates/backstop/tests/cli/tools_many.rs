//! Batches and chains of MCP calls, lists of tools, and bad input.

use crate::docs::fits;
use crate::harness::schema;
use crate::tools::Tools;
use serde_json::{Value, json};

fn lines(items: &[Value]) -> String {
    items.iter().map(|item| format!("{item}\n")).collect()
}

#[test]
fn a_batch_reports_both_lists_and_repeats_only_what_failed() {
    let tools = Tools::new("batch", &[]);
    let items = [
        json!({ "id": "a", "tool": "fake__echo", "arguments": { "message": "x" } }),
        json!({ "id": "b", "tool": "fake__fail-read", "arguments": {} }),
        json!({ "id": "c", "tool": "fake__fail", "arguments": {} }),
        json!({ "id": "d", "tool": "fake__fail-twice", "arguments": {} }),
        json!({ "id": "e", "tool": "fake__nope" }),
    ];
    let file = tools.project.file("calls.jsonl", lines(&items));
    let done = tools.run(&["batch"]).arg(&file).go().code(1);
    let text = done.stdout();
    assert!(text.contains("Partial success: 2 succeeded, 3 failed"), "{text}");
    assert!(text.contains("Succeeded: [a, d]") && text.contains("Failed: [b, c, e]"), "{text}");
    let command = text.split('`').find(|part| part.starts_with("backstop batch --retry-failed ")).unwrap();
    let rest = command.strip_prefix("backstop batch --retry-failed ").unwrap().to_owned();
    // What needs a confirmation is not repeated with the others.
    let calls = tools.calls("fail");
    tools.run(&["batch", "--retry-failed", &rest]).go().code(1);
    assert_eq!((tools.calls("fail"), tools.calls("echo"), tools.calls("fail-read")), (calls, 1, 6));
    let report = tools.run(&["batch", "--json"]).arg(&file).go().code(1).json();
    assert_eq!(report["items"][1]["failure"]["attempts"], 3);
    assert_eq!(report["items"][0]["result"]["content"][0]["text"], "x");
}

#[test]
fn a_batch_of_many_items_is_bounded_and_a_mistake_in_it_calls_nothing() {
    let tools = Tools::new("batch-many", &[]);
    let item =
        |n: usize| json!({ "id": n.to_string(), "tool": "fake__echo", "arguments": { "message": "x" } });
    let file = tools.project.file("many.jsonl", lines(&(0..500).map(item).collect::<Vec<_>>()));
    let report = tools.run(&["batch", "--json", "--at-once", "16"]).arg(&file).go().code(0).json();
    assert_eq!((report["succeeded"].as_u64(), report["failed"].as_u64()), (Some(500), Some(0)));
    let calls = tools.calls("echo");
    let mut text = lines(&[item(1), item(2)]);
    text.push_str("{\"tool\": \"fake__echo\", \"argumnets\": {}}\n");
    let file = tools.project.file("typo.jsonl", text);
    let error = tools.run(&["batch"]).arg(&file).go().code(2).stderr();
    assert!(
        error.contains("line 3") && error.contains("argumnets") && error.contains("nothing was called"),
        "{error}"
    );
    assert_eq!(tools.calls("echo"), calls);
}

#[test]
fn a_chain_uses_earlier_results_and_continues_where_it_failed() {
    let tools = Tools::new("chain", &[]);
    let steps = json!([
        { "id": "sum", "tool": "fake__add", "arguments": { "a": { "$from": "list", "pointer": "/items/0/id" }, "b": 1 } },
        { "id": "list", "tool": "fake__json" },
        { "id": "bad", "tool": "fake__fail-twice", "arguments": { "n": { "$from": "sum", "pointer": "/sum" } } },
        { "id": "end", "tool": "fake__die-once" },
        { "id": "last", "tool": "fake__fail-read" },
    ]);
    let file = tools.project.file("steps.json", steps.to_string());
    let done = tools.run(&["chain", "--json"]).arg(&file).go().code(1);
    let report = done.json();
    let states: Vec<&str> =
        report["steps"].as_array().unwrap().iter().map(|step| step["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["done", "done", "done", "done", "failed"], "{report}");
    assert_eq!(report["steps"][1]["result"]["sum"], 8);
    let calls = tools.calls("add");
    let next = report["continue"].as_str().unwrap().strip_prefix("backstop chain ").unwrap().to_owned();
    let done = tools.run(&["chain", &next]).go().code(1);
    assert!(done.stdout().contains("sum: fake__add: done before"), "{}", done.stdout());
    assert!(done.stderr().contains("To continue with the failed step: backstop chain "), "{}", done.stderr());
    assert_eq!(tools.calls("add"), calls);
}

#[test]
fn a_chain_with_a_mistake_calls_nothing() {
    let tools = Tools::new("chain-mistakes", &[]);
    for (steps, says) in [
        (
            json!([{ "tool": "fake__echo", "arguments": { "message": { "$from": "lits" } } }]),
            "`lits`, which is not a step",
        ),
        (
            json!([
                { "id": "a", "tool": "fake__echo", "arguments": { "message": { "$from": "b" } } },
                { "id": "b", "tool": "fake__echo", "arguments": { "message": { "$from": "a" } } },
            ]),
            "a -> b -> a",
        ),
        (json!([{ "tol": "x" }]), "step 1"),
    ] {
        let file = tools.project.file("steps.json", steps.to_string());
        let error = tools.run(&["chain"]).arg(&file).go().code(2).stderr();
        assert!(error.contains(says), "{error}");
    }
    assert!(tools.log().is_empty(), "{:?}", tools.log());
}

#[test]
fn tools_are_listed_searched_and_shown_from_the_cache() {
    let tools = Tools::new("tools-list", &[]);
    let first = tools.run(&["tools", "list"]).go().code(0);
    assert!(first.stderr().contains("Cache missing or invalid at "), "{}", first.stderr());
    assert!(first.stderr().contains("Fallback: dynamic discovery enabled"), "{}", first.stderr());
    assert!(first.stdout().contains("fake__echo") && first.stdout().contains("reads"), "{}", first.stdout());
    let starts = tools.pids().len();
    let second = tools.run(&["tools", "list", "--json"]).go().code(0);
    assert_eq!((second.stderr().as_str(), tools.pids().len()), ("", starts));
    assert_eq!(second.json()["tools"].as_array().unwrap().len(), first.stdout().matches("fake__").count());
    assert!(tools.run(&["tools", "search", "echo"]).go().code(0).stdout().contains("fake__echo"));
    let shown = tools.run(&["tools", "show", "fake__add"]).go().code(0).stdout();
    assert!(shown.contains("a: number") && shown.contains("note?: string"), "{shown}");
    let unknown = tools.run(&["tools", "show", "fake__ad"]).go().code(2).stderr();
    assert!(unknown.contains("Tool not found") && unknown.contains("fake__add"), "{unknown}");
    // A broken cache is said, and rebuilt.
    let cache =
        std::fs::read_dir(tools.project.state().join("work")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(cache.join("tools/catalogue.json"), "{ broken").unwrap();
    let third = tools.run(&["tools", "list"]).go().code(0);
    assert!(
        third.stderr().contains("cache_invalid") && third.stdout().contains("fake__echo"),
        "{}",
        third.stderr()
    );
    assert_eq!(tools.run(&["tools", "list"]).go().code(0).stderr(), "");
}

#[test]
fn a_tool_that_is_described_differently_is_shown_by_the_doctor() {
    let tools = Tools::new("tools-changed", &[]);
    tools.run(&["tools", "refresh"]).go().code(0);
    // The same settings, another server behind them.
    let script = tools.project.beside("server/run.py");
    let real = crate::harness::root().join("crates/backstop/tests/fakes/mcp_server.py");
    let with = |behaviour: &str| {
        let text = format!(
            "import sys, runpy\nsys.argv = ['x', {behaviour:?}]\nrunpy.run_path({:?})\n",
            real.display().to_string()
        );
        std::fs::write(&script, text).unwrap();
    };
    with("usual");
    tools.project.file(
        "backstop.toml",
        format!("[mcp.fake]\ncommand = \"python3\"\nargs = [{:?}]\n", script.display().to_string()),
    );
    tools.run(&["trust"]).go().code(0);
    tools.run(&["tools", "refresh"]).go().code(0);
    with("changed");
    let refreshed = tools.run(&["tools", "refresh"]).go().code(0).stdout();
    assert!(refreshed.contains("changed"), "{refreshed}");
    let doctor = tools.run(&["tools", "doctor"]).go().code(0).stdout();
    assert!(doctor.contains("description of echo changed"), "{doctor}");
}

#[test]
fn an_untrusted_project_starts_no_server_and_says_so() {
    let tools = Tools::new("tools-untrusted", &[]);
    let changed = tools.settings(&[], "idle = \"5s\"");
    tools.project.file("backstop.toml", changed);
    let done = tools.run(&["tools", "list"]).go().code(0);
    assert!(
        done.stderr().contains("the tools of fake are missing") && done.stderr().contains("backstop trust"),
        "{}",
        done.stderr()
    );
    let call = tools.run(&["call", "fake__echo", "{\"message\": \"x\"}"]).go().code(1).stderr();
    assert!(call.contains("fake cannot be used") && call.contains("backstop trust"), "{call}");
    assert!(tools.log().is_empty());
    let doctor = tools.run(&["tools", "doctor"]).go().code(1).stdout();
    assert!(doctor.contains("not trusted"), "{doctor}");
    tools.run(&["trust"]).go().code(0);
    tools.call("echo", json!({ "message": "x" })).go().code(0);
}

#[test]
fn bad_input_has_its_place_and_a_hint() {
    let tools = Tools::new("tools-bad", &[]);
    for (args, says) in [
        (vec!["call"], "a call needs a tool"),
        (vec!["call", "fake__echo", "{"], "not JSON"),
        (vec!["call", "fake__echo", "[1]"], "not a JSON object"),
        (vec!["call", "--raw", "fake"], "--raw needs"),
        (vec!["call", "--confirm", "x"], "is not a run id"),
        (vec!["call", "--confirm", "r-1234"], "does not wait for a confirmation"),
        (vec!["call", "--timeout", "soon", "fake__echo", "{}"], "is not a duration"),
        (vec!["tools", "refresh", "fkae"], "did you mean `fake`?"),
        (vec!["batch"], "FILE"),
    ] {
        let error = tools.run(&args).go().code(2).stderr();
        assert!(error.contains(says), "{args:?}: {error}");
    }
    assert!(tools.run(&["batch", "nowhere.jsonl"]).go().code(1).stderr().contains("nowhere.jsonl"));
    tools.project.file("backstop.toml", "[mcp.fake]\ncomand = \"x\"\n[mcp.\"B ad\"]\ncommand = \"x\"\n");
    let error = tools.run(&["config", "check"]).go().code(1);
    let text = format!("{}{}", error.stdout(), error.stderr());
    assert!(
        text.contains("backstop.toml:2:1") && text.contains("did you mean `mcp.fake.command`?"),
        "{text}"
    );
}

#[test]
fn servers_of_other_programs_are_found_and_used_where_the_settings_say_so() {
    let tools = Tools::new("tools-import", &[]);
    let script = crate::harness::root().join("crates/backstop/tests/fakes/mcp_server.py");
    let entry = json!({ "command": "python3", "args": [script], "env": { "MCP_LOG": tools.project.beside("server/log") } });
    tools.project.file(
        ".mcp.json",
        json!({ "mcpServers": { "theirs": entry, "backstop": { "command": "backstop", "args": ["mcp"] } } })
            .to_string(),
    );
    let found = tools.run(&["mcp", "import"]).go().code(0).stdout();
    assert!(found.contains("theirs") && found.contains("it is Backstop itself"), "{found}");
    assert!(!tools.run(&["tools", "list"]).go().code(0).stdout().contains("theirs__"));
    tools.project.file("backstop.toml", "[mcp]\nfrom = [\"project\"]\n");
    tools.run(&["trust"]).go().code(0);
    let listed = tools.run(&["tools", "list"]).go().code(0).stdout();
    assert!(listed.contains("theirs__echo") && !listed.contains("backstop__"), "{listed}");
    // A file that has changed since it was trusted starts nothing.
    let starts = tools.pids().len();
    let evil = json!({ "mcpServers": { "theirs": { "command": "touch", "args": ["pwned"] } } });
    tools.project.file(".mcp.json", evil.to_string());
    let done = tools.run(&["tools", "refresh"]).go().code(0);
    assert!(
        done.stderr().contains("the tools of theirs are missing") && done.stderr().contains("backstop trust"),
        "{}",
        done.stderr()
    );
    assert!(!tools.project.path().join("pwned").exists() && tools.pids().len() == starts);
    let shown = tools.run(&["trust", "--show"]).go().code(0).stdout();
    assert!(shown.contains(".mcp.json (not trusted): theirs"), "{shown}");
}

#[test]
fn where_no_server_is_set_up_it_is_said_how_to_add_one() {
    let project = crate::harness::Project::new("tools-none");
    let adds = |text: &str| {
        text.contains("backstop.toml") && text.contains("[mcp.") && text.contains("backstop mcp import")
    };
    for args in [&["tools", "list"][..], &["tools", "refresh"], &["tools", "search", "x"]] {
        let done = project.run(args).go().code(0);
        assert!(adds(&done.stdout()), "{args:?}: {}", done.stdout());
    }
    assert!(adds(&project.run(&["tools", "doctor"]).go().code(0).stdout()));
    let call = project.run(&["call", "time__now"]).go().code(1);
    assert!(adds(&call.stderr()) && call.stderr().contains("Tool not found: time__now"), "{}", call.stderr());
    let server = project.run(&["tools", "list", "--server", "x"]).go().code(2);
    assert!(adds(&server.stderr()), "{}", server.stderr());
    let mcp = project.run(&["mcp"]).stdin("").go().code(0);
    assert!(adds(&mcp.stderr()) && mcp.stdout().is_empty(), "{}", mcp.stderr());
}

#[test]
fn outputs_of_tools_fit_their_schemas() {
    let tools = Tools::new("tools-schemas", &[]);
    let say = |args: &[&str], code: i32| tools.run(args).go().code(code).json();
    fits(&schema("tools"), &say(&["tools", "list", "--json"], 0), "tools list");
    fits(&schema("tools"), &say(&["tools", "search", "--json", "echo"], 0), "tools search");
    fits(&schema("tools-show"), &say(&["tools", "show", "--json", "fake__add"], 0), "tools show");
    fits(&schema("tools-refresh"), &say(&["tools", "refresh", "--json"], 0), "tools refresh");
    fits(&schema("tools-doctor"), &say(&["tools", "doctor", "--json"], 0), "tools doctor");
    fits(&schema("call"), &tools.call("partial", json!({})).go().code(0).json(), "call");
    for tool in ["fail", "add", "nope", "auth"] {
        fits(&schema("call-failure"), &tools.call(tool, json!({})).go().code(1).json(), "call-failure");
    }
    let items = [
        json!({ "tool": "fake__echo", "arguments": { "message": "x" } }),
        json!({ "tool": "fake__fail-read" }),
    ];
    let file = tools.project.file("calls.jsonl", lines(&items));
    let report = tools.run(&["batch", "--json"]).arg(&file).go().code(1).json();
    fits(&schema("batch"), &report, "batch");
    fits(&schema("call-failure"), &report["items"][1]["failure"], "a failed item");
    let file = tools.project.file(
        "steps.json",
        json!([{ "tool": "fake__json" }, { "tool": "fake__fail-read" }, { "tool": "fake__json" }])
            .to_string(),
    );
    fits(&schema("chain"), &tools.run(&["chain", "--json"]).arg(&file).go().code(1).json(), "chain");
    tools.project.file(".mcp.json", "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"b\": {}}}");
    fits(&schema("mcp-import"), &say(&["mcp", "import", "--json"], 0), "mcp import");
    for event in tools.project.events() {
        fits(&schema("event"), &event, "event");
    }
}

#[test]
fn a_projects_servers_move_behind_the_gateway_and_come_back_to_the_byte() {
    let tools = Tools::new("init-mcp", &[]);
    tools.project.file("backstop.toml", "[exec]\ngrace = \"1s\"");
    let script = crate::harness::root().join("crates/backstop/tests/fakes/mcp_server.py");
    let log = tools.project.beside("server/log");
    let mcp = format!(
        "{{\n  // ours\n  \"mcpServers\": {{ \"theirs\": {{\"command\": \"python3\", \"args\": [{:?}], \"env\": {{\"MCP_LOG\": {:?}}} }}, }},\n  \"x\": 1\n}}\n",
        script.display().to_string(),
        log.display().to_string()
    );
    let opencode = "{\"mcp\": {\"far\": {\"type\": \"remote\", \"url\": \"http://127.0.0.1:9/mcp\"}}, \"theme\": \"dark\"}";
    tools.project.file(".mcp.json", &mcp);
    tools.project.file("opencode.json", opencode);
    let before = || {
        (
            tools.project.read("backstop.toml"),
            tools.project.read(".mcp.json"),
            tools.project.read("opencode.json"),
        )
    };
    let was = before();
    let dry = tools.run(&["init", "--mcp", "--dry-run"]).go().code(0).stdout();
    assert!(dry.contains("+[mcp.theirs]") && dry.contains("nothing was written"), "{dry}");
    assert_eq!(before(), was);
    let moved = tools.run(&["init", "--mcp", "--json"]).go().code(0).json();
    fits(&schema("init-mcp"), &moved, "init --mcp");
    assert_eq!(moved["changes"].as_array().unwrap().len(), 3);
    assert!(
        before().1.contains("\"backstop\"")
            && before().1.contains("// ours")
            && !before().1.contains("theirs")
    );
    assert!(tools.run(&["config", "check"]).go().code(0).stdout().contains("no"), "the settings are sound");
    tools.run(&["trust"]).go().code(0);
    let listed = tools.run(&["tools", "list", "--server", "theirs"]).go().code(0).stdout();
    assert!(listed.contains("theirs__echo"), "{listed}");
    // Once is enough.
    assert!(tools.run(&["init", "--mcp"]).go().code(0).stdout().contains("no MCP servers to move"));
    tools.run(&["init", "--mcp", "--remove"]).go().code(0);
    assert_eq!(before(), was);
}
