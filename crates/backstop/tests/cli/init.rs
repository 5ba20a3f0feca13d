//! Hooks in agents' settings: what is there stays, what was put in comes out without a trace.

use crate::harness::{Project, Run, root};
use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const CLAUDE: &str = ".claude/settings.json";

/// Settings as people and editors leave them.
const FIXTURES: &[(&str, &str)] = &[
    ("empty", ""),
    ("blank", "\n\n"),
    ("an empty object", "{}"),
    ("an empty object on two lines", "{\n}\n"),
    ("minified", r#"{"model":"opus","permissions":{"allow":["Bash(ls:*)"],"deny":[]}}"#),
    (
        "two spaces, other hooks, keys in no order",
        "{\n  \"z\": 1,\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"./stop.sh\" }] }\n    ],\n    \"Notification\": []\n  },\n  \"a\": [1,2,  3]\n}\n",
    ),
    (
        "four spaces",
        "{\n    \"env\": {\n        \"A\": \"b\"\n    },\n    \"hooks\": {\n        \"PreToolUse\": [\n            {\n                \"matcher\": \"Write\",\n                \"hooks\": [\n                    {\n                        \"type\": \"command\",\n                        \"command\": \"x\"\n                    }\n                ]\n            }\n        ]\n    }\n}",
    ),
    ("tabs and CRLF", "{\r\n\t\"a\": \"\u{e9}\\u00e9\",\r\n\t\"b\": {}\r\n}\r\n"),
    ("empty lists with spaces in them", "{ \"hooks\" : { \"Stop\" : [ ] , \"SessionEnd\":[\n] } }"),
    ("an empty object of hooks", "{\n  \"hooks\": { }\n}\n"),
    ("a byte order mark", "\u{feff}{\n  \"a\": 1\n}\n"),
];

/// `backstop init`, on a machine with no agents but those that are put on its PATH.
fn init(project: &Project, flags: &[&str]) -> Run {
    let bin = bin(project);
    project.run(&[&["init"], flags].concat()).env("PATH", &bin.display().to_string())
}

fn bin(project: &Project) -> PathBuf {
    let bin = project.beside("bin");
    std::fs::create_dir_all(&bin).unwrap();
    bin
}

fn program(project: &Project, name: &str, script: &str) -> PathBuf {
    let file = bin(project).join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file
}

fn settings(project: &Project, text: &str) {
    std::fs::create_dir_all(project.path().join(".claude")).unwrap();
    project.file(CLAUDE, text);
}

/// Every file and folder below one, with what is in it.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(tree(&path));
            found.insert(path, None);
        } else {
            found.insert(path.clone(), Some(std::fs::read(&path).unwrap_or_default()));
        }
    }
    found
}

fn value(text: &str) -> serde_json::Value {
    serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap()
}

#[test]
fn it_goes_in_once_and_comes_out_without_a_trace() {
    for (n, (name, text)) in FIXTURES.iter().enumerate() {
        let project = Project::new(&format!("init-fixture-{n}"));
        settings(&project, text);
        let before = tree(&project.path());
        let done = init(&project, &["--claude"]).go().code(0);
        assert!(
            done.stdout().starts_with("--- .claude/settings.json\n+++ .claude/settings.json\n@@ "),
            "{name}"
        );
        let after = project.read(CLAUDE);
        let hooks = &value(&after)["hooks"];
        for event in ["PreToolUse", "PostToolUseFailure", "Stop", "StopFailure", "SessionEnd"] {
            let ours = hooks[event].as_array().unwrap().last().unwrap();
            assert_eq!(ours["hooks"][0]["command"], "backstop hook agent", "{name}: {event}");
            assert_eq!(ours["matcher"].as_str(), (event == "PreToolUse").then_some("Task|Agent|Bash"));
        }
        let again = init(&project, &["--claude"]).go().code(0);
        assert_eq!((again.stdout().as_str(), project.read(CLAUDE)), ("", after), "{name}");
        assert!(again.stderr().contains("has the hooks already"), "{}", again.stderr());
        init(&project, &["--remove"]).go().code(0);
        assert_eq!(tree(&project.path()), before, "{name}");
        let records = tree(&project.state());
        assert!(!records.keys().any(|path| path.starts_with(project.state().join("init"))), "{records:?}");
    }
}

#[test]
fn files_and_folders_that_it_made_go_too() {
    let project = Project::new("init-made");
    let before = tree(project.path().parent().unwrap());
    let done = init(&project, &["--all", "--json"]).go().code(0).json();
    let agents = done["agents"].as_array().unwrap();
    assert!(agents.iter().all(|agent| agent["action"] == "made" && agent["found"] == "named"), "{done}");
    for file in [CLAUDE, ".codex/hooks.json", ".opencode/plugin/backstop.js"] {
        assert!(project.path().join(file).is_file(), "{file}");
    }
    let codex = value(&project.read(".codex/hooks.json"));
    let events: Vec<&String> = codex["hooks"].as_object().unwrap().keys().collect();
    assert_eq!(events, ["PostToolUse", "PreToolUse", "Stop"]);
    init(&project, &["--remove", "--json"]).go().code(0);
    let mut after = tree(project.path().parent().unwrap());
    after.retain(|path, _| !path.starts_with(project.state()) && !path.starts_with(project.beside("bin")));
    assert_eq!(after, before);
}

#[test]
fn hooks_of_gemini_copilot_and_qwen_go_in_once_and_come_out_to_the_byte() {
    for (agent, file) in
        [("gemini", Some(".gemini/settings.json")), ("copilot", None), ("qwen", Some(".qwen/settings.json"))]
    {
        let project = Project::new(&format!("init-{agent}"));
        if let Some(file) = file {
            std::fs::create_dir_all(project.path().join(file).parent().unwrap()).unwrap();
            project.file(file, "{ \"ui\":{\"theme\":\"x\"},\n\t\"hooks\" : {\"Stop\": [ ]} }\n");
        }
        let before = tree(&project.path());
        let flag = format!("--{agent}");
        let first = init(&project, &[&flag]).go().code(0);
        assert!(first.stdout().contains("backstop hook agent"), "{agent}: {}", first.stdout());
        let after = tree(&project.path());
        assert_ne!(after, before, "{agent}");
        let again = init(&project, &[&flag]).go().code(0);
        assert_eq!((again.stdout().as_str(), tree(&project.path())), ("", after), "{agent}");
        init(&project, &[&flag, "--remove"]).go().code(0);
        assert_eq!(tree(&project.path()), before, "{agent}");
    }
}

#[test]
fn folders_that_hold_something_else_stay() {
    let project = Project::new("init-shared-folder");
    init(&project, &["--claude"]).go().code(0);
    project.file(".claude/mine.md", "x");
    init(&project, &["--remove"]).go().code(0);
    assert_eq!(project.read(".claude/mine.md"), "x");
    assert!(!project.path().join(CLAUDE).exists());
}

#[test]
fn dry_run_writes_nothing_and_shows_the_same() {
    let project = Project::new("init-dry");
    settings(&project, "{\n  \"a\": 1\n}\n");
    let before = tree(project.path().parent().unwrap());
    let dry = init(&project, &["--all", "--dry-run"]).go().code(0);
    assert!(dry.stderr().contains("would be changed") && dry.stderr().contains("nothing was written"));
    let mut after = tree(project.path().parent().unwrap());
    after.retain(|path, _| !path.starts_with(project.beside("bin")));
    assert_eq!(after, before);
    assert_eq!(init(&project, &["--all"]).go().code(0).stdout(), dry.stdout());
    let out = init(&project, &["--remove", "--dry-run"]).go().code(0);
    assert!(out.stdout().contains("\n-  \"hooks\": {\n"), "{}", out.stdout());
    assert!(project.read(CLAUDE).contains("backstop"));
}

#[test]
fn what_it_shows_is_a_diff_that_git_can_apply() {
    let project = Project::git("init-git-apply");
    settings(&project, "{\n  \"a\": 1,\n  \"hooks\": {\"Stop\": []},\n  \"z\": 2\n}");
    let diff = init(&project, &["--all", "--dry-run"]).go().code(0).stdout();
    std::fs::write(project.beside("d.patch"), diff).unwrap();
    project.sh("git apply -p0 ../d.patch");
    let done = init(&project, &["--all"]).go().code(0);
    assert_eq!((done.stdout().as_str(), done.stderr().matches("has the hooks already").count()), ("", 6));
}

#[test]
fn agents_that_are_here_are_found_and_named() {
    let project = Project::new("init-found");
    let none = init(&project, &[]).go().code(2);
    assert!(
        none.stderr().contains("no agent was found") && none.stderr().contains("--claude"),
        "{}",
        none.stderr()
    );
    std::fs::create_dir(project.path().join(".codex")).unwrap();
    program(&project, "opencode", "exit 0");
    let done = init(&project, &[]).go().code(0);
    let words = done.stderr();
    assert!(words.contains("codex (found .codex): .codex/hooks.json was made: "), "{words}");
    assert!(words.contains("opencode (on the PATH): .opencode/plugin/backstop.js was made\n"), "{words}");
    assert!(!words.contains("claude") && !project.path().join(".claude").exists(), "{words}");
    // Nothing is trusted by it, and it says who has to.
    assert!(
        words.contains("backstop trust")
            && words.contains("/hooks")
            && words.contains("on the PATH: the agents")
    );
    assert!(!project.state().join("user.db").exists());
}

#[test]
fn nothing_to_take_out_is_no_error() {
    let project = Project::new("init-nothing");
    settings(&project, "{\"a\":1}");
    let before = tree(&project.path());
    let done = init(&project, &["--remove"]).go().code(0);
    assert!(done.stderr().contains("claude (looked at): .claude/settings.json has no hooks of Backstop\n"));
    assert_eq!((done.stdout(), tree(&project.path())), (String::new(), before));
    assert!(!project.state().exists());
}

#[test]
fn what_somebody_took_out_comes_back_and_goes_again() {
    let project = Project::new("init-partial");
    let text = "{\n  \"a\": 1\n}\n";
    settings(&project, text);
    init(&project, &["--claude"]).go().code(0);
    let all = project.read(CLAUDE);
    let stop = all.find("\"Stop\": [").unwrap();
    let end = all.find("\"StopFailure\"").unwrap();
    project.file(CLAUDE, format!("{}{}", &all[..stop], &all[end..]));
    let done = init(&project, &["--claude"]).go().code(0);
    assert!(done.stderr().contains("was changed: Stop\n"), "{}", done.stderr());
    assert_eq!(value(&project.read(CLAUDE)), value(&all));
    init(&project, &["--remove"]).go().code(0);
    assert_eq!(project.read(CLAUDE), text);
}

#[test]
fn what_others_wrote_meanwhile_stays() {
    let project = Project::new("init-meanwhile");
    init(&project, &["--claude"]).go().code(0);
    let changed = project.read(CLAUDE).replacen('{', "{\n  \"model\": \"opus\",", 1);
    project.file(CLAUDE, changed);
    init(&project, &["--remove"]).go().code(0);
    assert_eq!(project.read(CLAUDE), "{\n  \"model\": \"opus\"\n}\n");
}

#[test]
fn a_lost_record_costs_nothing_but_exactness() {
    let project = Project::new("init-lost");
    let text = "{\n    \"a\": 1\n}\n";
    settings(&project, text);
    init(&project, &["--all"]).go().code(0);
    std::fs::remove_dir_all(project.state()).unwrap();
    init(&project, &["--remove"]).go().code(0);
    assert_eq!(project.read(CLAUDE), text);
    // A file that says nothing any more goes; folders that may be somebody's stay.
    assert!(!project.path().join(".codex/hooks.json").exists() && project.path().join(".codex").exists());
    // A state folder that cannot be used is no reason to fail.
    let file = project.file("file", "");
    let odd =
        init(&project, &["--codex"]).env("BACKSTOP_STATE_DIR", &file.display().to_string()).go().code(0);
    assert!(odd.stderr().contains("could not be stored"), "{}", odd.stderr());
    assert!(project.path().join(".codex/hooks.json").exists());
}

#[test]
fn what_is_not_json_is_left_alone_with_its_place() {
    let table = [
        ("{\n  /* mine\n  \"a\": 1\n}\n", ":2:3: a comment that is never closed", "correct the file"),
        ("{\n  a: 1,\n}\n", ":2:3: a key in double quotes was expected", "run the command again"),
        ("{\n  \"a\": 1", ":2:9: the file ends", "run the command again"),
        ("{\n  \"hooks\": [],\n  \"a\": 1\n}\n", ":2:12: `hooks` is not an object", "docs/hooks-init.md"),
        ("{\"hooks\": {\"Stop\": 1}}", ":1:20: `hooks.Stop` is not an array", "docs/hooks-init.md"),
        ("{\"hooks\": {}, \"hooks\": {}}", ":1:15: the key `hooks` is set twice", "docs/hooks-init.md"),
        ("not json", ":1:1: a value was expected", "correct the file"),
    ];
    for (n, (text, place, hint)) in table.into_iter().enumerate() {
        let project = Project::new(&format!("init-bad-{n}"));
        settings(&project, text);
        let before = tree(&project.path());
        for flags in [vec!["--all"], vec!["--all", "--dry-run"], vec!["--all", "--json"]] {
            let done = init(&project, &flags).go().code(1);
            let words = done.stderr();
            assert!(words.contains(&format!("settings.json{place}")) && words.contains(hint), "{words}");
            // Of the other agents nothing is written either.
            assert_eq!((done.stdout(), tree(&project.path())), (String::new(), before.clone()), "{text}");
        }
    }
}

#[test]
fn what_is_no_settings_file_is_refused() {
    let project = Project::new("init-odd");
    settings(&project, "");
    let file = project.path().join(CLAUDE);
    let refused = |what: &str| {
        let words = init(&project, &["--claude"]).go().code(1).stderr();
        assert!(words.contains(what) && words.contains("hint: "), "{words}");
        std::fs::remove_file(&file).or_else(|_| std::fs::remove_dir(&file)).unwrap();
    };
    std::fs::write(&file, b"{\"a\": \"\xff\"}").unwrap();
    refused("settings.json:1:8: not UTF-8");
    std::fs::write(&file, format!("{{\"a\": \"{}\"}}", "x".repeat(1 << 20))).unwrap();
    refused("larger than");
    std::fs::write(&file, "[".repeat(500_000)).unwrap();
    refused("nested too deeply");
    std::fs::create_dir(&file).unwrap();
    refused("is not a file");
    symlink("nowhere.json", &file).unwrap();
    refused("is a symbolic link, and links in a project are not followed");
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    refused("is not a file");
}

#[test]
fn a_file_that_is_read_only_stays_as_it_is() {
    let project = Project::new("init-read-only");
    settings(&project, "{}");
    let mode = |mode| {
        std::fs::set_permissions(project.path().join(CLAUDE), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o444);
    let words = init(&project, &["--claude"]).go().code(1).stderr();
    assert!(words.contains("cannot write") && words.contains("it is read-only"), "{words}");
    assert_eq!(project.read(CLAUDE), "{}");
    mode(0o644);
}

#[test]
fn a_link_of_the_users_own_is_followed_and_stays() {
    let project = Project::new("init-link");
    let real = project.beside("dotfiles.json");
    std::fs::write(&real, "{}").unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::create_dir(project.beside("home/.claude")).unwrap();
    let link = project.beside("home").join(CLAUDE);
    symlink(&real, &link).unwrap();
    let done = init(&project, &["--claude", "--user"]).go().code(0);
    assert!(done.stderr().contains("(a link to ") && done.stderr().contains("dotfiles.json"));
    assert!(std::fs::read_to_string(&real).unwrap().contains("backstop hook agent"));
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // Also where it is not known any more who made what.
    std::fs::remove_dir_all(project.state()).unwrap();
    init(&project, &["--remove", "--user"]).go().code(0);
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "{}");
}

#[test]
fn a_link_in_a_project_is_not_followed() {
    for (name, at, to) in [("file", CLAUDE, "settings.json"), ("folder", ".claude", "")] {
        let project = Project::new(&format!("init-link-{name}"));
        let outside = project.beside("home/other");
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("settings.json"), "{}").unwrap();
        std::fs::create_dir_all(project.path().join(at).parent().unwrap()).unwrap();
        symlink(outside.join(to), project.path().join(at)).unwrap();
        let words = init(&project, &["--claude"]).go().code(1).stderr();
        assert!(words.contains("is a symbolic link") && words.contains("hint: remove it (`rm "), "{words}");
        assert_eq!(std::fs::read_to_string(outside.join("settings.json")).unwrap(), "{}");
    }
}

#[test]
fn a_plugin_of_somebody_else_is_not_touched() {
    let project = Project::new("init-plugin");
    std::fs::create_dir_all(project.path().join(".opencode/plugin")).unwrap();
    let file = ".opencode/plugin/backstop.js";
    project.file(file, "export const Mine = 1\n");
    let words = init(&project, &["--opencode"]).go().code(1).stderr();
    assert!(words.contains("was not made by `backstop init`"), "{words}");
    init(&project, &["--remove"]).go().code(0);
    assert_eq!(project.read(file), "export const Mine = 1\n");
    // An older one of ours is written anew.
    project.file(file, "// Made by `backstop init --opencode`. Long ago.\n");
    assert!(init(&project, &["--opencode"]).go().code(0).stderr().contains("was changed"));
    init(&project, &["--remove"]).go().code(0);
    assert!(!project.path().join(file).exists() && project.path().join(".opencode/plugin").exists());
}

#[test]
fn user_settings_are_where_the_agents_look() {
    let project = Project::new("init-user");
    let home = project.beside("home");
    std::fs::remove_dir_all(home.join(".config")).unwrap();
    let done = init(&project, &["--all", "--user", "--json"]).go().code(0).json();
    assert_eq!(done["scope"], "user");
    for file in [CLAUDE, ".codex/hooks.json", ".config/opencode/plugin/backstop.js"] {
        assert!(home.join(file).is_file(), "{file}");
    }
    assert!(!project.path().join(".claude").exists());
    init(&project, &["--remove", "--user"]).go().code(0);
    assert!(tree(&home).is_empty(), "{:?}", tree(&home));
    let moved = project.beside("moved");
    let at = |name: &str| moved.join(name).display().to_string();
    let run = init(&project, &["--all", "--user"]);
    run.env("CLAUDE_CONFIG_DIR", &at("c")).env("CODEX_HOME", &at("x")).go().code(0);
    assert!(moved.join("c/settings.json").is_file() && moved.join("x/hooks.json").is_file());
}

#[test]
fn from_a_folder_of_the_project_its_root_is_meant() {
    let project = Project::new("init-root");
    let below = project.path().join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    init(&project, &["--claude"]).dir(&below).go().code(0);
    assert!(project.path().join(CLAUDE).is_file());
    init(&project, &["--remove"]).dir(&below).go().code(0);
    assert!(!project.path().join(".claude").exists());
}

#[test]
fn secrets_and_escapes_of_a_settings_file_are_not_shown() {
    let project = Project::new("init-secret");
    let key = format!("sk-ant-api03-{}", "Zk9x".repeat(20));
    settings(&project, &format!("{{\n  \"k\": \"{key}\",\n  \"o\": \"\u{202e}\u{9b}31m\"\n}}\n"));
    for flags in [vec!["--claude", "--dry-run"], vec!["--claude", "--dry-run", "--json"]] {
        let shown = init(&project, &flags).go().code(0).stdout();
        assert!(!shown.contains(&key) && !shown.contains(['\u{202e}', '\u{9b}']), "{shown}");
    }
    init(&project, &["--claude"]).go().code(0);
    assert!(project.read(CLAUDE).contains(&key));
    for (path, bytes) in tree(&project.state()) {
        let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
        assert!(!text.contains(&key), "{}", path.display());
    }
}

#[test]
fn the_page_shows_what_is_put_in() {
    let page = std::fs::read_to_string(root().join("docs/hooks-init.md")).unwrap();
    let project = Project::new("init-page");
    init(&project, &["--all"]).go().code(0);
    for file in [CLAUDE, ".codex/hooks.json"] {
        let text = project.read(file);
        assert!(page.contains(&text), "docs/hooks-init.md does not show what is in {file}:\n{text}");
    }
}

/// Runs the plugin as OpenCode would, where there is a Node to run it; what Backstop was told, and
/// what was printed.
fn plugin(project: &Project, answer: &str, script: &str) -> Option<(Vec<serde_json::Value>, String)> {
    let node =
        std::env::split_paths(&std::env::var_os("PATH")?).map(|p| p.join("node")).find(|p| p.is_file())?;
    init(project, &["--opencode"]).go().code(0);
    let told = project.beside("told.jsonl");
    let _ = std::fs::remove_file(&told);
    program(
        project,
        "backstop",
        &format!("cat >> '{0}'; echo >> '{0}'\nprintf '%s' '{answer}'", told.display()),
    );
    let module = project.beside("plugin.mjs");
    std::fs::copy(project.path().join(".opencode/plugin/backstop.js"), &module).unwrap();
    let main = format!(
        "import {{ Backstop }} from {:?}\nconst on = await Backstop({{ directory: {:?} }})\n{script}\n",
        module.display().to_string(),
        project.path().display().to_string()
    );
    std::fs::write(project.beside("main.mjs"), main).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin(project).display());
    let ran = Command::new(node).arg(project.beside("main.mjs")).env("PATH", path).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let told = std::fs::read_to_string(told).unwrap_or_default();
    let told = told.lines().filter(|l| !l.is_empty()).map(|l| serde_json::from_str(l).unwrap()).collect();
    Some((told, String::from_utf8_lossy(&ran.stdout).into_owned()))
}

#[test]
fn the_plugin_tells_what_failed_and_passes_advice_on() {
    let project = Project::new("init-plugin-runs");
    let script = r#"
const input = (callID) => ({ tool: "bash", sessionID: "s1", callID, args: { command: "make" } })
const good = { output: "fine", metadata: { exit: 0 } }
await on["tool.execute.after"](input("c1"), good)
const bad = { output: "boom", metadata: { exit: 3 } }
await on["tool.execute.after"](input("c2"), bad)
console.log(good.output, bad.output)
const event = (type, properties) => on.event({ event: { type, properties } })
await event("session.error", { sessionID: "s1", error: { name: "APIError", data: { statusCode: 429, message: "slow down", responseHeaders: { "retry-after": "7", date: "x" } } } })
await event("session.error", { sessionID: "s1", error: { name: "MessageAbortedError", data: {} } })
const part = { type: "tool", tool: "read", sessionID: "s1", callID: "c3", state: { status: "error", input: { filePath: "x" }, error: "no such file" } }
await event("message.part.updated", { part })
await event("message.part.updated", { part })
await event("session.idle", {})
"#;
    let answer =
        r#"{"hookSpecificOutput":{"hookEventName":"PostToolUseFailure","additionalContext":"ADVICE"}}"#;
    let Some((told, printed)) = plugin(&project, answer, script) else { return };
    assert_eq!(printed, "fine boom\n\nADVICE\n");
    let named: Vec<_> = told.iter().map(|e| e["hook_event_name"].as_str().unwrap()).collect();
    assert_eq!(named, ["PostToolUseFailure", "StopFailure", "PostToolUseFailure"]);
    assert_eq!(told[0]["error"], "Exit code 3\nboom");
    assert_eq!((&told[0]["tool_name"], &told[0]["tool_input"]["command"]), (&"Bash".into(), &"make".into()));
    assert_eq!((&told[1]["error"], &told[1]["session_id"]), (&"rate_limit".into(), &"s1".into()));
    assert_eq!(told[1]["error_details"], "slow down\nretry-after: 7");
    assert_eq!(told[2]["error"], "no such file");
}

#[test]
fn the_plugin_refuses_only_where_backstop_does() {
    let project = Project::new("init-plugin-denies");
    let script = r#"
for (const tool of ["bash", "task", "read"]) {
  try {
    await on["tool.execute.before"]({ tool, sessionID: "s", callID: tool }, { args: {} })
    console.log(tool, "passes")
  } catch (error) {
    console.log(tool, error.message)
  }
}
"#;
    let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"rate-limited until 12:00"}}"#;
    let Some((_, printed)) = plugin(&project, deny, script) else { return };
    assert_eq!(printed, "bash rate-limited until 12:00\ntask rate-limited until 12:00\nread passes\n");
    for odd in ["", "not json", "null", "[]", "{\"hookSpecificOutput\":7}"] {
        let (_, printed) = plugin(&project, odd, script).unwrap();
        assert_eq!(printed, "bash passes\ntask passes\nread passes\n", "{odd}");
    }
}

#[test]
fn comments_and_trailing_commas_survive_and_come_out_to_the_byte() {
    let project = Project::new("init-jsonc");
    let text =
        "{\n  // mine\n  \"model\": \"opus\", // the large one\n  \"env\": { \"A\": \"1\", /* b */ },\n}\n";
    settings(&project, text);
    init(&project, &["--claude"]).go().code(0);
    let with = project.read(CLAUDE);
    assert!(with.contains("\"model\": \"opus\", // the large one\n"), "{with}");
    assert!(with.contains("{ \"A\": \"1\", /* b */ },\n  \"hooks\": {"), "{with}");
    init(&project, &["--claude"]).go().code(0);
    assert_eq!(project.read(CLAUDE), with);
    // Edited meanwhile, and without what was remembered: only the hooks go.
    let edited = with.replace("opus", "sonnet");
    project.file(CLAUDE, &edited);
    std::fs::remove_dir_all(project.state()).unwrap();
    init(&project, &["--claude", "--remove"]).go().code(0);
    assert_eq!(project.read(CLAUDE), text.replace("opus", "sonnet"));
}

#[test]
fn hooks_in_both_settings_are_warned_of() {
    let project = Project::new("init-twice");
    program(&project, "backstop", "");
    let first = init(&project, &["--claude", "--user"]).go().code(0);
    assert!(!first.stderr().contains("handled twice"), "{}", first.stderr());
    let doctor = || project.run(&["doctor"]).env("PATH", &bin(&project).display().to_string()).go();
    let text = doctor().code(0).stdout();
    assert!(text.contains("installed for claude (user)") && !text.contains("handled twice"), "{text}");
    let second = init(&project, &["--claude"]).go().code(0);
    assert!(second.stderr().contains("each event is handled twice"), "{}", second.stderr());
    assert!(second.stderr().contains("`backstop init --user --remove`"), "{}", second.stderr());
    let text = doctor().code(0).stdout();
    assert!(text.contains("handled twice"), "{text}");
    let last = init(&project, &["--claude", "--user", "--remove"]).go().code(0);
    assert!(!last.stderr().contains("handled twice"), "{}", last.stderr());
}

#[test]
fn doctor_looks_at_hooks() {
    let project = Project::new("init-doctor");
    let doctor = |path: &Path| project.run(&["doctor"]).env("PATH", &path.display().to_string()).go();
    let here = bin(&project);
    assert!(doctor(&here).code(0).stdout().contains("not installed; `backstop init` installs them"));
    init(&project, &["--all"]).go().code(0);
    let text = doctor(&here).code(0).stdout();
    assert!(text.contains("claude (project): they call `backstop`, which is not on the PATH"), "{text}");
    program(&project, "backstop", "");
    let text = doctor(&here).code(0).stdout();
    assert!(text.contains("installed for claude (project), codex (project), opencode (project)"), "{text}");
    let other = project.read(CLAUDE).replacen("backstop hook agent", "/no/such/backstop hook agent", 1);
    project.file(CLAUDE, other);
    let text = doctor(&here).code(1).stdout();
    assert!(text.contains("they call `/no/such/backstop`, which does not exist"), "{text}");
    settings(&project, &project.read(".codex/hooks.json"));
    let text = doctor(&here).code(0).stdout();
    assert!(text.contains("claude (project): no hook for PostToolUseFailure"), "{text}");
}
