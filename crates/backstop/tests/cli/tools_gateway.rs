//! The gateway on standard streams, with clients of both eras.

use crate::harness::{is_alive, until};
use crate::tools::{Tools, modern_meta};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

#[test]
fn a_client_of_the_old_era_lists_and_calls() {
    let tools = Tools::new("gateway", &[]);
    let mut client = tools.gateway(&[]);
    let hello = client.initialize(json!({}));
    assert_eq!(hello["protocolVersion"], "2025-11-25");
    assert_eq!(hello["serverInfo"]["name"], "backstop");
    let listed = client.request("tools/list", json!({}));
    assert!(listed.get("resultType").is_none());
    let echo = listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "fake__echo").unwrap();
    // What nobody here knows passes.
    assert_eq!(
        (&echo["x-unknown"]["kept"], &echo["annotations"]["readOnlyHint"]),
        (&json!(true), &json!(true))
    );
    let own = |tool: &Value| tool["name"].as_str().unwrap().starts_with("backstop_");
    assert_eq!(listed["tools"].as_array().unwrap().iter().filter(|tool| own(tool)).count(), 5);
    let result = client.call("echo", json!({ "message": "hi", }));
    assert_eq!((&result["content"][0]["text"], &result["_meta"]["kept"]), (&json!("hi"), &json!(1)));
    assert_eq!(client.request("ping", json!({})), json!({}));
    assert_eq!(client.leave(), Some(0));
    for pid in tools.pids() {
        until("the server is gone", || !is_alive(&pid));
    }
    // A success leaves no run.
    assert_eq!(tools.project.events().len(), 0);
}

#[test]
fn a_client_of_the_new_era_is_served_by_a_server_of_the_old_one() {
    for behaviour in ["usual", "modern"] {
        let tools = Tools::new("gateway-modern", &[behaviour]);
        let mut client = tools.gateway(&["--no-own-tools"]);
        let found = client.request("server/discover", json!({ "_meta": modern_meta() }));
        assert_eq!(found["supportedVersions"], json!(["2026-07-28"]));
        assert_eq!((&found["resultType"], &found["cacheScope"]), (&json!("complete"), &json!("private")));
        let listed = client.request("tools/list", json!({ "_meta": modern_meta() }));
        assert_eq!(listed["resultType"], "complete");
        assert!(listed["ttlMs"].is_u64() && listed["tools"].as_array().unwrap().len() > 10, "{listed}");
        let call = |message: &str| json!({ "name": "fake__echo", "arguments": { "message": message }, "_meta": modern_meta() });
        let result = client.request("tools/call", call("new"));
        assert_eq!(
            (&result["resultType"], &result["content"][0]["text"]),
            (&json!("complete"), &json!("new"))
        );
        let wrong = client
            .request("tools/call", json!({ "name": "fake__add", "arguments": {}, "_meta": modern_meta() }));
        assert_eq!(
            (&wrong["isError"], &wrong["structuredContent"]["reason"]),
            (&json!(true), &json!("invalid_parameters"))
        );
        let mut meta = modern_meta();
        meta["io.modelcontextprotocol/protocolVersion"] = "2031-01-01".into();
        let id = client.ask("tools/list", json!({ "_meta": meta }));
        let error = client.answer(id);
        assert_eq!(error["error"]["code"], -32022);
        assert!(error["error"]["data"]["supported"].to_string().contains("2026-07-28"), "{error}");
    }
}

#[test]
fn a_failure_is_explained_in_the_result() {
    let tools = Tools::new("gateway-failure", &[]);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    let wrong = client.call("add", json!({ "a": 1 }));
    let text = wrong["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("Missing: b") && wrong["isError"] == true, "{wrong}");
    let unknown = client.call("ecko", json!({}));
    assert!(unknown["content"][0]["text"].as_str().unwrap().contains("fake__echo"), "{unknown}");
    let failed = client.call("fail", json!({ "title": "x" }));
    let report = &failed["structuredContent"];
    assert_eq!((report["tool"].as_str(), report["attempts"].as_u64()), (Some("fake__fail"), Some(1)));
    assert!(failed["content"][0]["text"].as_str().unwrap().contains("backstop_confirm"), "{failed}");
    let run = report["run"].as_str().unwrap().to_owned();
    let explained = client
        .request("tools/call", json!({ "name": "backstop_explain_failure", "arguments": { "run": run } }));
    assert!(explained["content"][0]["text"].as_str().unwrap().contains("error.classified"), "{explained}");
    client.request("tools/call", json!({ "name": "backstop_confirm", "arguments": { "run": run } }));
    assert_eq!(tools.calls("fail"), 2);
    let again =
        client.request("tools/call", json!({ "name": "backstop_confirm", "arguments": { "run": run } }));
    assert_eq!(again["isError"], true);
    client.leave();
    // Who called is on record.
    let events = tools.run(&["events", "--json"]).go().code(0).stdout();
    assert!(events.contains("test-client 9"), "{events}");
}

#[test]
fn every_answer_about_a_failure_has_its_class_tool_parameters_and_next_step() {
    let tools = Tools::with("gateway-answers", &[], "idle = \"300ms\"\ndeadline = \"3s\"");
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    for (tool, reason) in [
        ("nope", "tool_not_found"),
        ("hang-write", "timeout"),
        ("fail", "tool_failed"),
        ("fail-read", "tool_failed"),
        ("auth", "auth_error"),
        ("denied", "permission_denied"),
        ("invalid", "invalid_parameters"),
        ("die", "crash"),
    ] {
        let arguments = if tool == "invalid" {
            json!({ "message": "key-value" })
        } else {
            json!({ "title": "key-value" })
        };
        let result = client.call(tool, arguments);
        let (text, report) = (result["content"][0]["text"].as_str().unwrap(), &result["structuredContent"]);
        assert_eq!(report["reason"], reason, "{text}");
        for part in [reason, "(", &format!("fake__{tool}"), "key-value", "Next: "] {
            assert!(text.contains(part), "{tool}: {part}\n{text}");
        }
        for key in ["tool", "attempts", "errors", "suggestion", "class", "next"] {
            assert!(!report[key].is_null(), "{tool}: {key}");
        }
        // What may have changed something is repeated only after a word.
        if ["hang-write", "fail", "die"].contains(&tool) {
            assert_eq!((tools.calls(tool), report["confirm"].is_string()), (1, true), "{report}");
        }
    }
}

#[test]
fn progress_is_complete_in_order_and_before_the_result() {
    let tools = Tools::new("gateway-progress", &[]);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    for round in 0..3 {
        let token = format!("token-{round}");
        let id = client.ask(
            "tools/call",
            json!({ "name": "fake__progress", "arguments": {}, "_meta": { "progressToken": token } }),
        );
        client.seen.clear();
        client.answer(id);
        let steps: Vec<&Value> =
            client.seen.iter().filter(|m| m["method"] == "notifications/progress").collect();
        let told: Vec<u64> = steps.iter().map(|m| m["params"]["progress"].as_u64().unwrap()).collect();
        assert_eq!(told, [1, 2, 3, 4, 5]);
        assert!(steps.iter().all(|m| m["params"]["progressToken"] == token), "{steps:?}");
    }
}

#[test]
fn a_cancellation_reaches_the_server_and_gets_no_answer() {
    let tools = Tools::new("gateway-cancel", &[]);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    let id = client.ask("tools/call", json!({ "name": "fake__hang", "arguments": {} }));
    until("the call is there", || tools.calls("hang") == 1);
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
    );
    until("the server is told", || tools.log().contains(&"notification notifications/cancelled".to_owned()));
    // The next call is answered, the cancelled one never was.
    client.seen.clear();
    client.call("echo", json!({ "message": "x" }));
    assert!(client.seen.iter().all(|message| message["id"] != id), "{:?}", client.seen);
}

#[test]
fn what_a_server_asks_reaches_the_client_whose_call_it_is() {
    let tools = Tools::new("gateway-ask", &[]);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({ "elicitation": {} }));
    let id = client.ask("tools/call", json!({ "name": "fake__ask", "arguments": {} }));
    let question = client.wait("the question", |message| message["method"] == "elicitation/create");
    assert_eq!(question["params"]["message"], "which one?");
    client.send(
        &json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": {} } }),
    );
    let answer = client.answer(id);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("accept"), "{text}");
    assert!(tools.log().iter().any(|line| line.starts_with("initialize") && line.contains("elicitation")));
}

#[test]
fn sampling_that_a_server_asks_for_reaches_the_client() {
    let tools = Tools::new("gateway-sample", &[]);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({ "sampling": {} }));
    let id = client.ask("tools/call", json!({ "name": "fake__sample", "arguments": {} }));
    let question = client.wait("the question", |message| message["method"] == "sampling/createMessage");
    assert_eq!(question["params"]["maxTokens"], 5);
    let said = json!({ "role": "assistant", "content": { "type": "text", "text": "it" }, "model": "m" });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": said }));
    let answer = client.answer(id);
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("assistant"), "{answer}");
    // In a batch, too.
    let items = json!([{ "tool": "fake__sample" }]);
    let id = client.ask("tools/call", json!({ "name": "backstop_batch", "arguments": { "items": items } }));
    let question = client.wait("the question", |message| {
        message["method"] == "sampling/createMessage" && message["id"] != question["id"]
    });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -1, "message": "no" } }));
    assert_eq!(client.answer(id)["result"]["structuredContent"]["succeeded"], 1);
    // A client that cannot is not asked, and the server is told so.
    let mut other = tools.gateway(&[]);
    other.initialize(json!({}));
    let result = other.call("sample", json!({}));
    assert!(result["content"][0]["text"].as_str().unwrap().contains("no client can answer"), "{result}");
}

#[test]
fn log_messages_pass_from_the_level_on_that_the_client_wants() {
    let tools = Tools::new("gateway-logs", &[]);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    let levels = |client: &mut crate::tools::Client| {
        client.seen.clear();
        client.call("logs", json!({}));
        // What was sent before the answer to a later request has arrived.
        client.call("echo", json!({ "message": "x" }));
        let logs = client.seen.iter().filter(|message| message["method"] == "notifications/message");
        logs.map(|log| {
            assert_eq!(
                (log["params"]["logger"].as_str(), log["params"]["data"].as_str()),
                (Some("fake"), Some("a line"))
            );
            log["params"]["level"].as_str().unwrap().to_owned()
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(levels(&mut client), ["debug", "error"]);
    assert_eq!(client.request("logging/setLevel", json!({ "level": "warning" })), json!({}));
    until("the server is told", || tools.log().contains(&"level warning".to_owned()));
    assert_eq!(levels(&mut client), ["error"]);
    let id = client.ask("logging/setLevel", json!({ "level": "loud" }));
    let wrong = client.answer(id);
    assert_eq!(wrong["error"]["code"], -32602);
    assert!(wrong["error"]["message"].as_str().unwrap().contains("emergency"), "{wrong}");
    // A server that is started later is told when it starts.
    let pid = tools.pids().last().unwrap().clone();
    std::process::Command::new("kill").args(["-9", &pid]).status().unwrap();
    until("it is dead", || !is_alive(&pid));
    client.call("echo", json!({ "message": "back" }));
    until("the new one is told", || tools.log().iter().filter(|line| *line == "level warning").count() == 2);
}

#[test]
fn a_client_of_the_new_era_gets_the_log_messages_of_its_own_calls() {
    let tools = Tools::new("gateway-logs-modern", &[]);
    let mut client = tools.gateway(&[]);
    let call = |client: &mut crate::tools::Client, level: Option<&str>| {
        client.seen.clear();
        let mut meta = modern_meta();
        if let Some(level) = level {
            meta["io.modelcontextprotocol/logLevel"] = level.into();
        }
        client.request("tools/call", json!({ "name": "fake__logs", "arguments": {}, "_meta": meta }));
        client.request("server/discover", json!({ "_meta": modern_meta() }));
        client.seen.iter().filter(|message| message["method"] == "notifications/message").count()
    };
    assert_eq!(call(&mut client, None), 0);
    assert_eq!(call(&mut client, Some("debug")), 2);
    assert_eq!(call(&mut client, Some("error")), 1);
}

#[test]
fn a_server_that_closes_its_output_is_ended() {
    let tools = Tools::new("gateway-mute", &[]);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    let mute = client.call("mute", json!({}));
    assert_eq!(mute["structuredContent"]["outcome"], "unconfirmed", "{mute}");
    let confirm = &mute["structuredContent"]["confirm_tool"];
    assert_eq!(
        (&confirm["name"], &confirm["arguments"]["run"]),
        (&json!("backstop_confirm"), &mute["structuredContent"]["run"])
    );
    let first = tools.pids()[0].clone();
    until("it is gone", || !is_alive(&first));
    assert_eq!(client.call("echo", json!({ "message": "back" }))["content"][0]["text"], "back");
    // Where the gateway has no tools of its own, none is named.
    let mut bare = tools.gateway(&["--no-own-tools"]);
    bare.initialize(json!({}));
    let lost = bare.call("lost", json!({}));
    assert!(
        !lost.to_string().contains("backstop_confirm") && lost.to_string().contains("--confirm"),
        "{lost}"
    );
}

#[test]
fn a_client_of_the_new_era_answers_what_a_server_of_the_old_one_asks() {
    let tools = Tools::new("gateway-ask-modern", &[]);
    let mut client = tools.gateway(&[]);
    let params = json!({ "name": "fake__ask", "arguments": {}, "_meta": modern_meta() });
    let wanted = client.request("tools/call", params.clone());
    assert_eq!(wanted["resultType"], "input_required", "{wanted}");
    let (key, question) = wanted["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(
        (question["method"].as_str(), question["params"]["message"].as_str()),
        (Some("elicitation/create"), Some("which one?"))
    );
    let mut again = params;
    again["requestState"] = wanted["requestState"].clone();
    again["inputResponses"] = json!({ key: { "action": "decline" } });
    let done = client.request("tools/call", again);
    assert!(done["content"][0]["text"].as_str().unwrap().contains("decline"), "{done}");
    assert_eq!(tools.calls("ask"), 1);
}

#[test]
fn a_server_that_dies_costs_its_own_call_and_comes_back() {
    let tools = Tools::new("gateway-die", &[]);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    let hanging = client.ask("tools/call", json!({ "name": "fake__hang-write", "arguments": {} }));
    until("the call is there", || tools.calls("hang-write") == 1);
    let dead = client.call("die", json!({}));
    assert_eq!(dead["structuredContent"]["reason"], "crash", "{dead}");
    // The call beside it is told, too.
    let beside = client.answer(hanging);
    assert_eq!(beside["result"]["structuredContent"]["reason"], "crash", "{beside}");
    assert_eq!(client.call("echo", json!({ "message": "back" }))["content"][0]["text"], "back");
    let pid = tools.pids().last().unwrap().clone();
    std::process::Command::new("kill").args(["-9", &pid]).status().unwrap();
    until("it is dead", || !is_alive(&pid));
    assert_eq!(client.call("echo", json!({ "message": "again" }))["content"][0]["text"], "again");
}

#[test]
fn nothing_is_left_however_the_gateway_ends() {
    for signal in ["-TERM", "-KILL"] {
        let tools = Tools::new("gateway-end", &[]);
        let mut client = tools.gateway(&[]);
        client.initialize(json!({}));
        client.call("echo", json!({ "message": "x" }));
        client.ask("tools/call", json!({ "name": "fake__hang", "arguments": {} }));
        until("the call is there", || tools.calls("hang") == 1);
        std::process::Command::new("kill").args([signal, &client.child.id().to_string()]).status().unwrap();
        client.child.wait().unwrap();
        for pid in tools.pids() {
            until("the server is gone", || !is_alive(&pid));
        }
    }
}

#[test]
fn a_server_that_nobody_uses_is_stopped() {
    let tools = Tools::with("gateway-idle", &[], "stop_after = \"200ms\"");
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    client.call("echo", json!({ "message": "x" }));
    let pid = tools.pids().last().unwrap().clone();
    until("the server is stopped", || !is_alive(&pid));
    assert_eq!(client.call("echo", json!({ "message": "y" }))["content"][0]["text"], "y");
}

#[test]
fn a_broken_server_costs_only_its_own_tools() {
    let tools = Tools::with(
        "gateway-broken",
        &[],
        "[mcp.broken]\ncommand = \"no-such-program-here\"\n[mcp.silent]\ncommand = \"sleep\"\nargs = [\"600\"]\nstart_timeout = \"1s\"",
    );
    let mut client = tools.gateway(&["--no-own-tools"]);
    client.initialize(json!({}));
    let listed = client.request("tools/list", json!({}));
    assert!(
        listed["tools"]
            .as_array()
            .unwrap()
            .iter()
            .all(|tool| tool["name"].as_str().unwrap().starts_with("fake__"))
    );
    assert_eq!(client.call("echo", json!({ "message": "x" }))["content"][0]["text"], "x");
}

#[test]
fn bad_messages_are_answered_in_words() {
    let tools = Tools::new("gateway-bad", &[]);
    let mut client = tools.gateway(&[]);
    client.send_text("{ not json");
    let error = client.wait("an error", |message| message["id"].is_null());
    assert_eq!(error["error"]["code"], -32700);
    client.send_text("{\"jsonrpc\": \"2.0\"}");
    assert_eq!(client.wait("an error", |message| message["id"].is_null())["error"]["code"], -32600);
    client.send_text(&"[".repeat(200));
    assert_eq!(client.wait("an error", |message| message["id"].is_null())["error"]["code"], -32700);
    client.initialize(json!({}));
    for (method, code) in [("no/such", -32601), ("completion/complete", -32601), ("tools/call", -32602)] {
        let id = client.ask(method, json!({}));
        assert_eq!(client.answer(id)["error"]["code"], code, "{method}");
    }
}

#[test]
fn the_gateways_own_tools_call_many_search_and_chain() {
    let tools = Tools::new("gateway-own", &[]);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    let found = client
        .request("tools/call", json!({ "name": "backstop_search_tools", "arguments": { "query": "echo" } }));
    assert_eq!(found["structuredContent"]["tools"][0]["tool"], "fake__echo");
    let items =
        json!([{ "tool": "fake__echo", "arguments": { "message": "x" } }, { "tool": "fake__fail-read" }]);
    let batch =
        client.request("tools/call", json!({ "name": "backstop_batch", "arguments": { "items": items } }));
    assert_eq!((&batch["structuredContent"]["succeeded"], &batch["isError"]), (&json!(1), &json!(true)));
    let steps = json!([
        { "id": "a", "tool": "fake__json" },
        { "tool": "fake__add", "arguments": { "a": 1, "b": { "$from": "a", "pointer": "/items/1/id" } } },
    ]);
    let chain =
        client.request("tools/call", json!({ "name": "backstop_chain", "arguments": { "steps": steps } }));
    assert_eq!(chain["structuredContent"]["steps"][1]["result"]["sum"], 9, "{chain}");
}

#[test]
fn items_of_a_batch_that_may_have_taken_effect_name_the_tool_that_repeats_them() {
    let tools = Tools::new("gateway-batch-confirm", &[]);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    let items = json!([{ "id": "q", "tool": "fake__fail", "arguments": { "k": "v" } }]);
    let batch =
        client.request("tools/call", json!({ "name": "backstop_batch", "arguments": { "items": items } }));
    let failure = &batch["structuredContent"]["items"][0]["failure"];
    assert_eq!(failure["confirm_tool"]["name"], "backstop_confirm", "{batch}");
    let text = batch["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("backstop_confirm") && !text.contains("repeat the failed items"), "{text}");
    client.request("tools/call", failure["confirm_tool"].clone());
    assert_eq!(tools.calls("fail"), 2);
}

#[test]
fn mistakes_in_calls_of_the_gateways_own_tools_are_explained() {
    let tools = Tools::new("gateway-mistakes", &[]);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    for (tool, arguments) in [
        ("backstop_batch", json!({ "items": [5] })),
        ("backstop_batch", json!({ "items": [{ "toll": "x" }] })),
        (
            "backstop_chain",
            json!({ "steps": [{ "id": "a", "tool": "x", "arguments": { "b": { "$from": "c" } } }] }),
        ),
        ("backstop_explain_failure", json!({ "run": "r-9999" })),
        ("backstop_confirm", json!({ "run": "r-9999" })),
    ] {
        let result = client.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        let (text, report) = (result["content"][0]["text"].as_str().unwrap(), &result["structuredContent"]);
        for part in ["invalid_parameters", "(user)", tool, "Next: "] {
            assert!(text.contains(part), "{tool}: {part}\n{text}");
        }
        for key in ["tool", "attempts", "errors", "suggestion", "class", "reason", "next"] {
            assert!(!report[key].is_null(), "{tool}: {key}\n{report}");
        }
        assert!(!text.contains("WrittenItem"), "{text}");
    }
}

#[test]
fn what_a_client_cannot_answer_is_a_failure_in_words() {
    let tools = Tools::new("gateway-ask-nobody", &["modern"]);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    let result = client.call("ask", json!({}));
    let (text, report) = (result["content"][0]["text"].as_str().unwrap(), &result["structuredContent"]);
    assert_eq!((&result["isError"], &report["reason"]), (&json!(true), &json!("invalid_usage")), "{result}");
    for part in ["which one?", "fake__ask", "invalid_usage", "Next: "] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_change_of_the_settings_is_taken_up_while_it_serves() {
    let tools = Tools::new("gateway-reload", &[]);
    let mut client = tools.gateway(&["--no-own-tools"]);
    client.initialize(json!({}));
    let names =
        |client: &mut crate::tools::Client| client.request("tools/list", json!({}))["tools"].to_string();
    assert!(names(&mut client).contains("fake__echo"));
    let changed = tools.settings(&[], "deny = [\"echo\"]");
    tools.project.file("backstop.toml", changed);
    // It is not trusted any more: its tools are gone, and a call says why.
    until("the tools are gone", || !names(&mut client).contains("fake__"));
    let refused = client.call("add", json!({ "a": 1, "b": 2 }));
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("backstop trust"), "{refused}");
    tools.run(&["trust"]).go().code(0);
    until("the tools are back", || names(&mut client).contains("fake__add"));
    assert!(!names(&mut client).contains("fake__echo"));
    assert!(client.seen.iter().any(|message| message["method"] == "notifications/tools/list_changed"));
    assert_eq!(client.call("add", json!({ "a": 1, "b": 2 }))["structuredContent"]["sum"], 3);
}

#[test]
fn advice_is_that_of_the_tools_kind_and_remembers_earlier_failures() {
    let tools = Tools::with("gateway-advice", &[], "category = \"browser\"");
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    let click = |client: &mut crate::tools::Client| {
        client.call("click", json!({ "uid": "1" }))["content"][0]["text"].to_string()
    };
    assert!(!click(&mut client).contains("hover"));
    // A click that fails again and again has advice of its own.
    assert!(click(&mut client).contains("hover over it"));
    let gone = client.call("fail", json!({ "uid": "1" }));
    assert!(gone["content"][0]["text"].as_str().unwrap().contains("take_snapshot"), "{gone}");
    assert!(
        gone["structuredContent"]["suggestion"].as_str().unwrap().contains("backstop call --confirm"),
        "{gone}"
    );
}

#[test]
fn advice_remembers_what_failed_in_earlier_commands() {
    let tools = Tools::with("calls-advice", &[], "category = \"browser\"");
    let click = || tools.run(&["call", "fake__click", "{}"]).go().code(1).stderr();
    assert!(!click().contains("hover"));
    let again = click();
    assert!(again.contains("hover over it"), "{again}");
}

#[test]
fn what_a_killed_gateway_left_is_ended() {
    let tools = Tools::new("gateway-leftover", &[]);
    let script = crate::harness::root().join("crates/backstop/tests/fakes/mcp_server.py");
    let pid_file = tools.project.beside("server/sleeper");
    let line = format!(
        "sleep 600 </dev/null >/dev/null 2>&1 & echo $! > {}; exec python3 {}",
        pid_file.display(),
        script.display()
    );
    tools.project.file("backstop.toml", format!("[mcp.fake]\ncommand = \"sh\"\nargs = [\"-c\", {line:?}]\n"));
    tools.run(&["trust"]).go().code(0);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    client.call("echo", json!({ "message": "x" }));
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    client.child.kill().unwrap();
    client.child.wait().unwrap();
    // It ignores that its input has ended.
    until("the leftover is gone", || !is_alive(&pid));
    tools.run(&["tools", "list"]).go().code(0);
}

#[test]
fn what_a_server_of_the_new_era_wants_to_know_is_asked_in_the_clients_own_way() {
    let tools = Tools::new("gateway-ask-new", &["modern"]);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({ "elicitation": {} }));
    let id = client.ask("tools/call", json!({ "name": "fake__ask", "arguments": {} }));
    let question = client.wait("the question", |message| message["method"] == "elicitation/create");
    assert_eq!(question["params"]["message"], "which one?");
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept" } }));
    let done = client.answer(id)["result"]["content"][0]["text"].to_string();
    assert!(done.contains("accept") && done.contains("state-1"), "{done}");
    // A client of the same era gets the question as it is, and answers it as it wants.
    let mut client = tools.gateway(&[]);
    let mut params = json!({ "name": "fake__ask", "arguments": {}, "_meta": modern_meta() });
    let wanted = client.request("tools/call", params.clone());
    assert_eq!(
        (wanted["resultType"].as_str(), wanted["requestState"].as_str()),
        (Some("input_required"), Some("state-1"))
    );
    params["requestState"] = "state-1".into();
    params["inputResponses"] = json!({ "q": { "action": "decline" } });
    let done = client.request("tools/call", params);
    assert!(done["content"][0]["text"].as_str().unwrap().contains("decline"), "{done}");
}

#[test]
fn the_chain_of_the_gateway_repeats_nothing_without_a_confirmation() {
    let tools = Tools::new("gateway-chain-confirm", &[]);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    let mut chain = |arguments: Value| {
        client.request("tools/call", json!({ "name": "backstop_chain", "arguments": arguments }))
    };
    let failed = chain(json!({ "steps": [{ "id": "a", "tool": "fake__fail" }] }));
    let run = failed["structuredContent"]["steps"][0]["failure"]["run"].as_str().unwrap().to_owned();
    let text = failed["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(&format!("\"confirm\": \"{run}\"")), "{text}");
    let rest = text.rsplit_once("again with ").unwrap().1.trim();
    let mut rest: Value = serde_json::from_str(rest).unwrap();
    rest.as_object_mut().unwrap().remove("schema");
    assert_eq!(chain(rest.clone())["isError"], true);
    assert_eq!(tools.calls("fail"), 1);
    rest["confirm"] = run.into();
    chain(rest);
    assert_eq!(tools.calls("fail"), 2);
}

#[test]
fn a_client_that_reads_nothing_does_not_hold_up_the_end() {
    let tools = Tools::new("gateway-unread", &[]);
    let mut command = tools.run(&["mcp"]).command();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let call = json!({ "name": "fake__spam", "arguments": {}, "_meta": { "progressToken": 1 } });
    for (id, method, params) in [
        (1, "initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": {} })),
        (2, "tools/call", call),
    ] {
        writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .unwrap();
    }
    until("the call is there", || tools.calls("spam") == 1);
    std::process::Command::new("kill").arg(child.id().to_string()).status().unwrap();
    // Its output stays open, and unread.
    until("the gateway has ended", || child.try_wait().unwrap().is_some());
    for pid in tools.pids() {
        until("the server is gone", || !is_alive(&pid));
    }
}

#[test]
fn a_call_of_a_client_that_reads_nothing_ends_in_time() {
    let tools =
        Tools::with("gateway-unread-call", &[], "timeout = \"1s\"\n[profile.tool.on]\ntimeout = \"surface\"");
    let mut command = tools.run(&["mcp"]).command();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let call = json!({ "name": "fake__spam", "arguments": {}, "_meta": { "progressToken": 1 } });
    for (id, method, params) in [
        (1, "initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": {} })),
        (2, "tools/call", call),
    ] {
        writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .unwrap();
    }
    until("the server is told", || tools.log().contains(&"notification notifications/cancelled".to_owned()));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn servers_from_before_a_change_of_the_settings_end_with_their_calls() {
    let tools = Tools::new("gateway-old-servers", &[]);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    client.call("echo", json!({ "message": "x" }));
    let old = tools.pids()[0].clone();
    tools.project.file("backstop.toml", tools.settings(&[], "deny = [\"add\"]"));
    tools.run(&["trust"]).go().code(0);
    until("the old server is gone", || !is_alive(&old));
    assert_eq!(client.call("echo", json!({ "message": "y" }))["content"][0]["text"], "y");
}

#[test]
fn resources_and_prompts_pass_through() {
    let tools = Tools::new("gateway-library", &["library"]);
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    let listed = client.request("resources/list", json!({}));
    assert_eq!(listed["resources"], json!([{ "uri": "memo://one", "name": "one", "x-unknown": 1 }]));
    let templates = client.request("resources/templates/list", json!({}));
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "memo://{name}");
    // One that was listed, and one that a template gives.
    for uri in ["memo://one", "memo://two"] {
        let read = client.request("resources/read", json!({ "uri": uri }));
        assert_eq!(read["contents"][0]["text"], format!("read {uri}"));
    }
    let names = |listed: &Value| -> Vec<String> {
        let all = listed["prompts"].as_array().unwrap().iter();
        all.map(|prompt| prompt["name"].as_str().unwrap().to_owned()).collect()
    };
    let listed = names(&client.request("prompts/list", json!({})));
    assert_eq!((listed.len(), listed[0].as_str()), (2, "fake__plain"));
    assert!(listed[1].starts_with("fake__with_dots_and_spaces_"), "{listed:?}");
    let got = |client: &mut crate::tools::Client, name: &str| {
        let got = client.request("prompts/get", json!({ "name": name, "arguments": { "a": "b" } }));
        got["messages"][0]["content"]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(got(&mut client, &listed[0]), "got plain{\"a\": \"b\"}");
    assert_eq!(got(&mut client, &listed[1]), "got with.dots and spaces{\"a\": \"b\"}");
    // A gateway that has not listed them finds them, too.
    let mut other = tools.gateway(&[]);
    other.initialize(json!({}));
    assert_eq!(got(&mut other, &listed[1]), "got with.dots and spaces{\"a\": \"b\"}");
    let id = other.ask("prompts/get", json!({ "name": "fake__nope" }));
    assert!(other.answer(id)["error"]["message"].as_str().unwrap().contains("no prompt"));
}

#[test]
fn descriptions_reach_the_agent_without_characters_that_act() {
    let tools = Tools::new("gateway-evil", &["evil"]);
    let mut client = tools.gateway(&["--no-own-tools"]);
    client.initialize(json!({}));
    let listed = client.request("tools/list", json!({}));
    let first = &listed["tools"][0];
    assert_eq!((&first["description"], &first["title"]), (&json!("one\n\ttwo[31mthree"), &json!("ab")));
    // What a tool answers passes as it is.
    let raw = "x\u{1b}[31m\u{202e}";
    assert_eq!(client.call("echo", json!({ "message": raw }))["content"][0]["text"], raw);
}

#[test]
fn a_change_that_a_server_tells_is_told_to_the_client() {
    let tools = Tools::new("gateway-grow", &[]);
    let mut client = tools.gateway(&["--no-own-tools"]);
    client.initialize(json!({}));
    let has = |client: &mut crate::tools::Client| {
        client.request("tools/list", json!({})).to_string().contains("fake__grown")
    };
    assert!(!has(&mut client));
    client.call("grow", json!({}));
    client.wait("the change", |message| message["method"] == "notifications/tools/list_changed");
    assert!(has(&mut client));
}

/// Whether a message tells a subscription that a list of tools changed.
fn tells_change(message: &Value, subscription: u64) -> bool {
    message["method"] == "notifications/tools/list_changed"
        && message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == subscription
}

#[test]
fn a_client_of_the_new_era_hears_of_the_changes_that_it_listens_for() {
    for behaviour in ["usual", "modern"] {
        let tools = Tools::new("gateway-listen", &[behaviour]);
        let mut client = tools.gateway(&["--no-own-tools"]);
        let found = client.request("server/discover", json!({ "_meta": modern_meta() }));
        assert_eq!(found["capabilities"]["tools"], json!({ "listChanged": true }), "{found}");
        let listed = client.request("tools/list", json!({ "_meta": modern_meta() }));
        assert!(!listed.to_string().contains("fake__grown"), "{listed}");
        let listen = |client: &mut crate::tools::Client, wanted: Value| {
            let params = json!({ "notifications": wanted, "_meta": modern_meta() });
            let id = client.ask("subscriptions/listen", params);
            let is_it = |message: &Value| {
                message["method"] == "notifications/subscriptions/acknowledged"
                    && message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == id
            };
            (id, client.wait("the acknowledgement", is_it)["params"]["notifications"].clone())
        };
        let wanted = json!({ "toolsListChanged": true, "resourceSubscriptions": ["memo://one"] });
        let (hears, honoured) = listen(&mut client, wanted);
        assert_eq!(honoured, json!({ "toolsListChanged": true }));
        let (other, _) = listen(&mut client, json!({ "promptsListChanged": true }));
        if behaviour == "modern" {
            until("the server is listened to", || tools.log().iter().any(|line| line.starts_with("listen ")));
        }
        client.request("tools/call", json!({ "name": "fake__grow", "_meta": modern_meta() }));
        client.wait("the change", |message| tells_change(message, hears));
        let listed = client.request("tools/list", json!({ "_meta": modern_meta() }));
        assert!(listed.to_string().contains("fake__grown"), "{listed}");
        // One that is cancelled hears nothing more, and gets no answer.
        client.send(&json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": hears },
        }));
        let (again, _) = listen(&mut client, json!({ "toolsListChanged": true }));
        client.seen.clear();
        tools.project.file("backstop.toml", tools.settings(&[behaviour, "changed"], ""));
        tools.run(&["trust"]).go().code(0);
        client.wait("the change of the settings", |message| tells_change(message, again));
        client.request("server/discover", json!({ "_meta": modern_meta() }));
        for message in &client.seen {
            assert!(message["id"] != hears && message["id"] != other, "{message}");
            assert!(!tells_change(message, hears) && !tells_change(message, other), "{message}");
            // Nothing is told that was not asked for.
            assert!(message["method"] != "notifications/tools/list_changed" || tells_change(message, again));
        }
    }
}

#[test]
fn what_cannot_be_listened_for_is_said() {
    let tools = Tools::new("gateway-listen-wrong", &[]);
    let mut client = tools.gateway(&[]);
    let id = client.ask("subscriptions/listen", json!({ "_meta": modern_meta() }));
    let error = client.answer(id)["error"].clone();
    assert_eq!(error["code"], -32602, "{error}");
    assert!(error["message"].as_str().unwrap().contains("notifications"), "{error}");
    let mut old = tools.gateway(&[]);
    old.initialize(json!({}));
    let id = old.ask("subscriptions/listen", json!({ "notifications": {} }));
    let error = old.answer(id)["error"].clone();
    assert_eq!(error["code"], -32601, "{error}");
    assert!(error["message"].as_str().unwrap().contains("2026-07-28"), "{error}");
}

#[test]
fn a_server_of_the_new_era_that_is_only_listened_to_is_not_used() {
    let tools = Tools::with("gateway-listen-idle", &["modern"], "stop_after = \"100ms\"");
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    client.call("echo", json!({ "message": "x" }));
    until("the server is listened to", || tools.log().iter().any(|line| line.starts_with("listen ")));
    let pid = tools.pids()[0].clone();
    until("it is stopped", || !is_alive(&pid));
    assert_eq!(client.call("echo", json!({ "message": "back" }))["content"][0]["text"], "back");
}

#[test]
fn a_single_server_is_served_without_its_name_where_the_settings_say_so() {
    let tools = Tools::with("gateway-no-prefix", &[], "concurrency = 1\n[mcp]\nprefix = false");
    let mut client = tools.gateway(&["--no-own-tools"]);
    client.initialize(json!({}));
    let listed = client.request("tools/list", json!({}));
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"echo") && !names.iter().any(|name| name.starts_with("fake__")), "{names:?}");
    // One call at a time: the second begins when the first has ended.
    let hanging = client.ask("tools/call", json!({ "name": "hang", "arguments": {} }));
    until("the call is there", || tools.calls("hang") == 1);
    let waiting = client.ask("tools/call", json!({ "name": "echo", "arguments": { "message": "x" } }));
    client.request("ping", json!({}));
    assert_eq!(tools.calls("echo"), 0);
    client.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": hanging },
    }));
    assert_eq!(client.answer(waiting)["result"]["content"][0]["text"], "x");
}

#[test]
fn calls_beside_a_frozen_server_are_told() {
    let tools = Tools::with("gateway-frozen", &[], "idle = \"1s\"\n[profile.tool.on]\ntimeout = \"surface\"");
    let mut client = tools.gateway(&[]);
    client.initialize(json!({}));
    let frozen = client.ask("tools/call", json!({ "name": "fake__freeze", "arguments": {} }));
    until("the server is frozen", || tools.calls("freeze") == 1);
    let beside = client.ask("tools/call", json!({ "name": "fake__hang-write", "arguments": {} }));
    assert_eq!(client.answer(frozen)["result"]["structuredContent"]["reason"], "timeout");
    let told = client.answer(beside);
    assert_eq!(told["result"]["isError"], true, "{told}");
    assert_eq!(client.call("echo", json!({ "message": "back" }))["content"][0]["text"], "back");
}

#[test]
fn a_file_that_the_settings_name_by_its_path_is_watched() {
    let tools = Tools::new("gateway-import-path", &[]);
    let script = crate::harness::root().join("crates/backstop/tests/fakes/mcp_server.py");
    let file = tools.project.beside("servers.json");
    let with = |name: &str| {
        let servers = json!({ "mcpServers": { name: { "command": "python3", "args": [script] } } });
        std::fs::write(&file, servers.to_string()).unwrap();
    };
    with("first");
    tools.project.file("backstop.toml", format!("[mcp]\nfrom = [{file:?}]\n"));
    tools.run(&["trust"]).go().code(0);
    let mut client = tools.gateway(&["--no-own-tools"]);
    client.initialize(json!({}));
    let mut has = |name: &str| {
        client.request("tools/list", json!({})).to_string().contains(&format!("\"{name}__echo\""))
    };
    assert!(has("first"));
    with("another");
    until("the change is taken up", || has("another"));
    assert!(!has("first"));
}
