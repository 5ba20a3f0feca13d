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
    // However many there are, all of them are read first.
    let mut text = "{\"tool\":\"fake__echo\",\"arguments\":{\"message\":\"x\"}}\n".repeat(99_999);
    text.push_str("{\"tool\": 5}\n");
    let file = tools.project.file("huge.jsonl", text);
    let error = tools.run(&["batch"]).arg(&file).go().code(2).stderr();
    assert!(error.contains("line 100000") && error.contains("nothing was called"), "{error}");
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
    // One that is done gives the result of its last step.
    let file = tools.project.file("one.json", json!([{ "tool": "fake__json" }]).to_string());
    let done = tools.run(&["chain"]).arg(&file).go().code(0).stdout();
    assert!(done.ends_with("{\"items\":[{\"id\":7},{\"id\":8}]}\n"), "{done}");
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
    assert!(call.contains("Next: read the file, then `backstop trust`"), "{call}");
    // Servers of one file are one warning.
    tools.project.file("backstop.toml", tools.settings(&[], "[mcp.other]\ncommand = \"true\""));
    let listed = tools.run(&["tools", "list"]).go().code(0).stderr();
    assert!(listed.contains("the tools of fake, other are missing: they are set up by"), "{listed}");
    tools.project.file("backstop.toml", tools.settings(&[], "idle = \"5s\""));
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
fn a_link_or_a_pipe_in_place_of_a_file_of_servers_is_refused_and_holds_nothing_up() {
    let settings = json!({ "mcpServers": { "theirs": { "command": "touch", "args": ["pwned"] } } });
    for (n, from) in ["project", "sub/servers.json", "codex"].into_iter().enumerate() {
        for kind in ["link", "folder link", "pipe"] {
            let project =
                crate::harness::Project::new(&format!("tools-import-{n}-{}", kind.replace(' ', "-")));
            std::fs::create_dir_all(project.beside("outside")).unwrap();
            let elsewhere = project.beside("outside/servers.json");
            std::fs::write(&elsewhere, settings.to_string()).unwrap();
            std::fs::write(project.beside("outside/config.toml"), "[mcp_servers.theirs]\ncommand = 'true'\n")
                .unwrap();
            let file = match from {
                "project" => project.path().join(".mcp.json"),
                "codex" => project.path().join(".codex/config.toml"),
                path => project.path().join(path),
            };
            let (folder, is_deep) = (file.parent().unwrap(), file.parent() != Some(&project.path()));
            if kind == "folder link" && is_deep {
                std::os::unix::fs::symlink(project.beside("outside"), folder).unwrap();
            } else {
                std::fs::create_dir_all(folder).unwrap();
                match kind {
                    "pipe" => project.sh(&format!("mkfifo {}", file.display())),
                    _ => {
                        std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
                        String::new()
                    }
                };
            }
            project.file("backstop.toml", format!("[mcp]\nfrom = [{from:?}]\n"));
            let is = if kind == "pipe" { "is a named pipe" } else { "is a symbolic link" };
            let trusted = project.run(&["trust"]).go().code(0);
            assert!(trusted.stderr().contains(is), "{from}, {kind}: {}", trusted.stderr());
            let listed = project.run(&["tools", "list"]).go();
            assert!(!listed.stdout().contains("theirs"), "{from}, {kind}: {}", listed.stdout());
            assert!(listed.stderr().contains(is), "{from}, {kind}: {}", listed.stderr());
            project.run(&["mcp", "import"]).go().code(0);
            assert!(!project.path().join("pwned").exists());
        }
    }
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
fn a_users_servers_and_codexs_move_too_and_init_offers_it() {
    let tools = Tools::new("init-mcp-user", &[]);
    tools.project.file("backstop.toml", "");
    let home = tools.project.beside("home");
    std::fs::create_dir_all(home.join(".codex")).unwrap();
    std::fs::create_dir_all(tools.project.path().join(".codex")).unwrap();
    let claude = "{\"numStartups\": 3, \"mcpServers\": {\"mine\": {\"command\": \"true\"}}}";
    let codex = "model = \"m\" # mine\n\n[mcp_servers.near]\ncommand = \"true\"\n\n[tui]\ntheme = 1\n";
    let project_codex = "[mcp_servers.here]\ncommand = \"true\"\nenabled_tools = [\"look\"]\n\
                         disabled_tools = [\"drop\"]\ntool_timeout_sec = 90\nstartup_timeout_sec = 2.5\n";
    std::fs::write(home.join(".claude.json"), claude).unwrap();
    std::fs::write(home.join(".codex/config.toml"), codex).unwrap();
    tools.project.file(".codex/config.toml", project_codex);
    let settings_before = std::fs::read_to_string(home.join(".config/backstop/config.toml")).ok();
    let read = |path: &str| std::fs::read_to_string(home.join(path)).unwrap();
    // Installing hooks offers it, and moves nothing by itself.
    let said = tools.run(&["init", "--claude"]).go().code(0).stderr();
    assert!(said.contains("1 MCP server of this project") && said.contains("backstop init --mcp"), "{said}");
    let said = tools.run(&["init", "--claude", "--user"]).go().code(0).stderr();
    assert!(said.contains("2 MCP servers of your settings") && said.contains("--mcp --user"), "{said}");
    assert_eq!((read(".claude.json").as_str(), read(".codex/config.toml").as_str()), (claude, codex));
    // The project's.
    tools.run(&["init", "--mcp"]).go().code(0);
    let here = tools.project.read(".codex/config.toml");
    assert!(here.contains("[mcp_servers.backstop]") && !here.contains("here"), "{here}");
    let settings = tools.project.read("backstop.toml");
    for line in [
        "[mcp.here]",
        "allow = [\"look\"]",
        "deny = [\"drop\"]",
        "timeout = \"90000ms\"",
        "start_timeout = \"2500ms\"",
    ] {
        assert!(settings.contains(line), "{line}\n{settings}");
    }
    tools.run(&["config", "check"]).go().code(0);
    tools.run(&["init", "--mcp", "--remove"]).go().code(0);
    assert_eq!(tools.project.read(".codex/config.toml"), project_codex);
    // The user's.
    let moved = tools.run(&["init", "--mcp", "--user", "--json"]).go().code(0).json();
    fits(&schema("init-mcp"), &moved, "init --mcp --user");
    let settings = read(".config/backstop/config.toml");
    assert!(settings.contains("[mcp.mine]") && settings.contains("[mcp.near]"), "{settings}");
    assert!(read(".claude.json").contains("\"backstop\"") && !read(".claude.json").contains("mine"));
    let now = read(".codex/config.toml");
    assert!(now.contains("# mine") && now.contains("[tui]") && !now.contains("near"), "{now}");
    // Claude Code writes to its file all the time.
    std::fs::write(home.join(".claude.json"), read(".claude.json").replace("3", "4")).unwrap();
    tools.run(&["init", "--mcp", "--user", "--remove"]).go().code(0);
    assert_eq!(read(".claude.json"), claude.replace('3', "4"));
    assert_eq!(read(".codex/config.toml"), codex);
    assert_eq!(std::fs::read_to_string(home.join(".config/backstop/config.toml")).ok(), settings_before);
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

#[test]
fn a_chain_repeats_a_step_that_may_have_taken_effect_only_after_a_confirmation() {
    let tools = Tools::new("chain-confirm", &[]);
    let steps = json!([{ "id": "a", "tool": "fake__json" }, { "id": "b", "tool": "fake__fail" }]);
    let file = tools.project.file("steps.json", steps.to_string());
    let report = tools.run(&["chain", "--json"]).arg(&file).go().code(1).json();
    fits(&schema("chain"), &report, "chain");
    assert_eq!((tools.calls("json"), tools.calls("fail")), (1, 1));
    let next = report["continue"].as_str().unwrap().to_owned();
    let run = report["steps"][1]["failure"]["run"].as_str().unwrap();
    let rest = next.strip_prefix(&format!("backstop chain --confirm {run} ")).unwrap().to_owned();
    // Without the confirmation nothing is called, and the command that confirms it is named again.
    let refused = tools.run(&["chain", &rest]).go().code(1);
    assert!(refused.stderr().contains(&format!("backstop chain --confirm {run} ")), "{}", refused.stderr());
    assert!(refused.stderr().contains("may have taken effect"), "{}", refused.stderr());
    fits(&schema("chain"), &tools.run(&["chain", "--json", &rest]).go().code(1).json(), "a refused chain");
    assert_eq!((tools.calls("json"), tools.calls("fail")), (1, 1));
    // One word is one repetition.
    tools.run(&["chain", "--confirm", run, &rest]).go().code(1);
    assert_eq!(tools.calls("fail"), 2);
    tools.run(&["chain", "--confirm", run, &rest]).go().code(1);
    assert_eq!((tools.calls("json"), tools.calls("fail")), (1, 2));
    let other = tools.run(&["chain", "--confirm", "r-1234", &rest]).go().code(2).stderr();
    assert!(other.contains("waits for r-1234"), "{other}");
}

#[test]
fn a_server_that_asks_for_input_nobody_can_give_fails_the_call() {
    let tools = Tools::new("input-required", &["modern"]);
    let done = tools.run(&["call", "fake__ask", "{}"]).go().code(1);
    assert!(
        done.stderr().contains("which one?") && done.stderr().contains("inputResponses"),
        "{}",
        done.stderr()
    );
    let report = tools.call("ask", json!({})).go().code(1).json();
    fits(&schema("call-failure"), &report, "call-failure");
    assert_eq!((report["reason"].as_str(), report["attempts"].as_u64()), (Some("invalid_usage"), Some(1)));
    // What it says works.
    let params = json!({
        "name": "ask", "requestState": "state-1", "inputResponses": { "q": { "action": "accept" } },
    });
    let raw = tools.run(&["call", "--raw", "fake", "tools/call", &params.to_string()]).go().code(0).stdout();
    assert!(raw.contains("answered"), "{raw}");
    let file = tools.project.file("calls.jsonl", lines(&[json!({ "tool": "fake__ask" })]));
    assert_eq!(tools.run(&["batch", "--json"]).arg(&file).go().code(1).json()["failed"], 1);
    let steps = json!([{ "tool": "fake__ask" }, { "tool": "fake__json" }]);
    let file = tools.project.file("steps.json", steps.to_string());
    tools.run(&["chain"]).arg(&file).go().code(1);
    assert_eq!(tools.calls("json"), 0);
}

#[test]
fn lists_that_processes_refresh_at_once_are_all_kept() {
    let script = crate::harness::root().join("crates/backstop/tests/fakes/mcp_server.py");
    let names = ["a", "b", "c", "d"];
    let table = |name: &&str| format!("[mcp.{name}]\ncommand = \"python3\"\nargs = [{script:?}]\n");
    let tools = Tools::new("cache-merge", &[]);
    tools.project.file("backstop.toml", names.iter().map(table).collect::<String>());
    tools.run(&["trust"]).go().code(0);
    let refresh = |name: &&str| tools.run(&["tools", "refresh", name]).command().spawn().unwrap();
    for mut child in names.iter().map(refresh).collect::<Vec<_>>() {
        assert!(child.wait().unwrap().success());
    }
    // Nothing is missing: nobody has to be asked again.
    let listed = tools.run(&["tools", "list"]).go().code(0);
    assert_eq!(listed.stderr(), "");
    for name in names {
        assert!(listed.stdout().contains(&format!("{name}__echo")), "{name}: {}", listed.stdout());
    }
}

#[test]
fn servers_with_one_name_are_not_moved() {
    let tools = Tools::new("init-mcp-names", &[]);
    let before = tools.project.read("backstop.toml");
    tools.project.file(".mcp.json", "{\"mcpServers\": {\"fs\": {\"command\": \"one\"}}}");
    tools
        .project
        .file("opencode.json", "{\"mcp\": {\"fs\": {\"type\": \"local\", \"command\": [\"other\"]}}}");
    let error = tools.run(&["init", "--mcp"]).go().code(1).stderr();
    assert!(error.contains("each have a server `fs`") && error.contains("opencode.json"), "{error}");
    // The same server in two files is one.
    tools.project.file("opencode.json", "{\"mcp\": {\"fs\": {\"type\": \"local\", \"command\": [\"one\"]}}}");
    let dry = tools.run(&["init", "--mcp", "--dry-run"]).go().code(0).stdout();
    assert_eq!(dry.matches("+[mcp.fs]").count(), 1, "{dry}");
    // A name that the settings have already.
    tools.project.file("opencode.json", "{\"mcp\": {\"fake\": {\"type\": \"local\", \"command\": [\"x\"]}}}");
    let error = tools.run(&["init", "--mcp"]).go().code(1).stderr();
    assert!(error.contains("each have a server `fake`") && error.contains("backstop.toml"), "{error}");
    let names = "{\"mcpServers\": {\"a b\": {\"command\": \"one\"}, \"a-b\": {\"command\": \"two\"}}}";
    tools.project.file(".mcp.json", names);
    tools.project.file("opencode.json", "{}");
    assert!(tools.run(&["init", "--mcp"]).go().code(1).stderr().contains("there is another `a-b`"));
    assert_eq!(tools.project.read("backstop.toml"), before);
}

#[test]
fn a_list_that_is_too_large_costs_only_its_own_server() {
    let script = crate::harness::root().join("crates/backstop/tests/fakes/mcp_server.py");
    let more = format!("[mcp.huge]\ncommand = \"python3\"\nargs = [{script:?}, \"huge\"]\n");
    let tools = Tools::with("tools-huge", &[], &more);
    let listed = tools.run(&["tools", "list"]).go().code(0);
    assert!(listed.stderr().contains("larger than 8 MiB"), "{}", listed.stderr());
    assert!(listed.stdout().contains("fake__echo") && !listed.stdout().contains("huge__"));
}

#[test]
fn a_server_may_have_the_separator_in_its_name() {
    let script = crate::harness::root().join("crates/backstop/tests/fakes/mcp_server.py");
    let more = format!("[mcp.fake__two]\ncommand = \"python3\"\nargs = [{script:?}, \"modern\"]\n");
    let tools = Tools::with("tools-separator", &[], &more);
    let answer = tools.run(&["call", "--json", "fake__two__add", "{\"a\": 1, \"b\": 2}"]).go().code(0).json();
    assert_eq!(answer["result"]["structuredContent"]["sum"], 3);
    let missing = tools.run(&["call", "fake__two__nope", "{}"]).go().code(1).stderr();
    assert!(missing.contains("fake__two__"), "{missing}");
}

#[test]
fn the_view_beside_the_project_is_never_believed() {
    let tools = Tools::new("tools-view", &[]);
    std::fs::create_dir_all(tools.project.path().join(".backstop")).unwrap();
    tools.run(&["tools", "list"]).go().code(0);
    let view = tools.project.read(".backstop/tools.json");
    assert!(view.contains("\"echo\""), "{view}");
    tools.project.file(".backstop/tools.json", view.replace("\"echo\"", "\"forged\""));
    let listed = tools.run(&["tools", "list"]).go().code(0).stdout();
    assert!(listed.contains("fake__echo") && !listed.contains("forged"), "{listed}");
}

#[test]
fn a_batch_of_which_nothing_failed_is_no_partial_success() {
    let tools = Tools::new("batch-success", &[]);
    let item = json!({ "id": "a", "tool": "fake__echo", "arguments": { "message": "x" } });
    let file = tools.project.file("calls.jsonl", lines(&[item]));
    let text = tools.run(&["batch"]).arg(&file).go().code(0).stdout();
    assert!(text.starts_with("Success: 1 succeeded, 0 failed") && !text.contains("artial"), "{text}");
}

#[test]
fn a_list_that_is_old_is_said_renewed_and_used_meanwhile() {
    let tools = Tools::new("tools-stale", &[]);
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
        format!("[mcp]\ncache_for = \"1ms\"\n[mcp.fake]\ncommand = \"python3\"\nargs = [{script:?}]\n"),
    );
    tools.run(&["trust"]).go().code(0);
    tools.run(&["tools", "refresh"]).go().code(0);
    with("changed");
    let renewed = tools.run(&["tools", "list"]).go().code(0);
    for words in ["Cache missing or invalid at ", "are old: fake", "Fallback: dynamic discovery enabled"] {
        assert!(renewed.stderr().contains(words), "{words}: {}", renewed.stderr());
    }
    assert!(renewed.stdout().contains("another echo"), "{}", renewed.stdout());
    // One that does not answer is not waited for.
    with("never-initialize");
    let old = tools.run(&["tools", "list"]).go().code(0);
    assert!(old.stderr().contains("fake does not answer: its old list of tools is used"), "{}", old.stderr());
    assert!(old.stdout().contains("another echo"), "{}", old.stdout());
}

#[test]
fn all_files_of_a_program_are_read_and_their_variables_filled_in() {
    let tools = Tools::new("tools-import-all", &[]);
    let script = crate::harness::root().join("crates/backstop/tests/fakes/mcp_server.py");
    let servers = |name: &str| {
        let log = "${env:HOME}/../server/log";
        json!({ "mcpServers": { name: { "command": "python3", "args": [script], "env": { "MCP_LOG": log } } } })
    };
    std::fs::create_dir_all(tools.project.path().join(".cursor")).unwrap();
    tools.project.file(".cursor/mcp.json", servers("here").to_string());
    std::fs::create_dir_all(tools.project.beside("home/.cursor")).unwrap();
    std::fs::write(tools.project.beside("home/.cursor/mcp.json"), servers("everywhere").to_string()).unwrap();
    let own = json!({ "projects": { tools.project.path().to_str().unwrap(): servers("own") } });
    std::fs::write(tools.project.beside("home/.claude.json"), own.to_string()).unwrap();
    tools.project.file("backstop.toml", "[mcp]\nfrom = [\"cursor\", \"claude\"]\n");
    tools.run(&["trust"]).go().code(0);
    let listed = tools.run(&["tools", "list"]).go().code(0);
    for name in ["here__echo", "everywhere__echo", "own__echo"] {
        assert!(listed.stdout().contains(name), "{name}: {}{}", listed.stdout(), listed.stderr());
    }
    assert_eq!(tools.pids().len(), 3);
}
