//! What is written down is what the program says. `BACKSTOP_WRITE_DOCS=1 cargo test docs` writes
//! the generated parts anew.

use crate::harness::{Folder, Project, Run, root, schema};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

fn same(path: &Path, want: &str) {
    if std::env::var_os("BACKSTOP_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, want).unwrap();
    }
    let have = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        have == want,
        "{} is not what the program says: `BACKSTOP_WRITE_DOCS=1 cargo test docs` writes it anew",
        path.display()
    );
}

#[test]
fn there_is_a_page_for_every_reason_and_no_other() {
    let json = Run::new(&["reasons", "--json"]).go().code(0).json();
    let codes: BTreeSet<String> = json["reasons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["reason"].as_str().unwrap().to_owned())
        .collect();
    for code in &codes {
        same(
            &root().join(format!("docs/reasons/{code}.md")),
            &Run::new(&["explain", code]).go().code(0).stdout(),
        );
    }
    let pages = std::fs::read_dir(root().join("docs/reasons")).unwrap();
    let pages: BTreeSet<String> =
        pages.map(|e| e.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(pages, codes);
    let index = format!(
        "# Reasons\n\nEvery reason that a failure can have. `backstop reasons` prints this table.\n\n{}",
        Run::new(&["reasons", "--markdown"]).go().code(0).stdout()
    );
    same(&root().join("docs/reasons.md"), &index);
}

/// The commands below one, as its help lists them: a name after two spaces, above the options.
/// Hidden commands are not there, arguments stand in brackets.
fn commands_in(help: &str) -> Vec<String> {
    let is_name = |word: &str| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    help.lines()
        .take_while(|line| *line != "Options:")
        .filter_map(|line| line.strip_prefix("  "))
        .filter_map(|line| line.split(' ').next())
        .filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()) && is_name(word) && *word != "help")
        .map(str::to_owned)
        .collect()
}

/// Writes the help of a command, then that of every command below it.
fn reference(command: &[String], page: &mut String) {
    let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
    args.push("--help");
    let help = Run::new(&args).go().code(0).stdout();
    args[command.len()] = "";
    let title = ["backstop"].into_iter().chain(args).collect::<Vec<_>>().join(" ");
    page.push_str(&format!("\n## {}\n\n```text\n{}\n```\n", title.trim_end(), help.trim_end()));
    for name in commands_in(&help) {
        reference(&[command, &[name]].concat(), page);
    }
}

#[test]
fn the_reference_of_commands_is_the_help() {
    let mut page = String::from("# Commands\n\nWhat `--help` says, command by command.\n");
    reference(&[], &mut page);
    for command in ["run", "plan status", "hook on-error", "man"] {
        assert!(page.contains(&format!("\n## backstop {command}\n")), "no section for {command}");
    }
    same(&root().join("docs/commands.md"), &page);
}

#[test]
fn the_schema_of_events_has_every_kind() {
    let refused = Run::new(&["events", "--kind", "zzzzzzzz"]).go().code(2).stderr();
    let kinds = refused.split_once("kinds are ").unwrap().1.trim_end();
    let schema = schema("event");
    let listed: Vec<&str> = schema["properties"]["kind"]["enum"]
        .as_array()
        .unwrap()
        .iter()
        .map(|k| k.as_str().unwrap())
        .collect();
    assert_eq!(listed.join(", "), kinds);
}

#[test]
fn keys_and_variables_are_written_down() {
    for (command, page) in [("keys", "docs/config.md"), ("env", "docs/environment.md")] {
        same(&root().join(page), &Run::new(&["config", command]).go().code(0).stdout());
    }
}

/// As much of JSON Schema as our schemas use. A crate for all of it would turn on Unicode in
/// `regex` and other features for the binary under test, which would then not be the one that is
/// shipped.
pub(crate) fn fits(schema: &Value, value: &Value, at: &str) {
    if let Some(types) = schema.get("type") {
        let is = |t: &Value| match t.as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            other => panic!("unknown type {other} in a schema"),
        };
        let ok = types.as_array().map_or_else(|| is(types), |all| all.iter().any(is));
        assert!(ok, "{at}: {value} is not {types}");
    }
    if let Some(Value::Array(allowed)) = schema.get("enum") {
        assert!(allowed.contains(value), "{at}: {value} is not one of {allowed:?}");
    }
    if let (Some(Value::Object(properties)), Some(object)) = (schema.get("properties"), value.as_object()) {
        for (key, field) in object {
            match properties.get(key) {
                Some(inner) => fits(inner, field, &format!("{at}.{key}")),
                None => assert!(
                    schema.get("additionalProperties") != Some(&Value::Bool(false)),
                    "{at}: {key} is not in the schema"
                ),
            }
        }
        for key in schema["required"].as_array().into_iter().flatten() {
            assert!(object.contains_key(key.as_str().unwrap()), "{at}: {key} is missing");
        }
    }
    if let (Some(items), Some(list)) = (schema.get("items"), value.as_array()) {
        list.iter().enumerate().for_each(|(n, item)| fits(items, item, &format!("{at}[{n}]")));
    }
}

#[test]
fn outputs_fit_their_schemas() {
    let fault = schema("fault");
    for step in Run::new(&["demo", "faults", "--json"]).go().code(0).lines() {
        fits(&fault, &step, "demo");
    }
    let crash = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x\nKeyError: 'x'\n";
    fits(
        &fault,
        &Run::new(&["classify", "--exit", "1", "--json"]).stdin(crash).go().code(0).json(),
        "classify",
    );
    for answer in
        Run::new(&["classify", "--batch"]).stdin("{\"id\":1,\"exit_code\":1}\nx\n").go().code(1).lines()
    {
        fits(&fault, &answer, "batch");
    }
    let project = Project::new("docs-schemas");
    let (done, failed) = ("exit 0", "echo npm error code ECONNRESET; exit 1");
    let down = "echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?'; exit 1";
    for (script, code) in [(done, 0), (failed, 1), (down, 1)] {
        let flags = ["--json", "--session", "s", "--caller", "c", "--on", "unknown=retry"];
        fits(&schema("exec"), &project.exec(&flags, script).go().code(code).json(), "exec");
        fits(&schema("story"), &project.run(&["explain", "last", "--json"]).go().code(0).json(), "story");
    }
    project.exec(&["--once"], failed).go().code(1);
    for event in project.events() {
        fits(&schema("event"), &event, "event");
    }
    for line in project.run(&["events", "--jsonl"]).go().code(0).lines() {
        fits(&schema("error-classified"), &line, "error.classified");
    }
    let say = |args: &[&str]| project.run(args).go().code(0).json();
    fits(&schema("runs"), &say(&["runs", "--json"]), "runs");
    project.exec(&[], "echo flux capacitor 7 offline; exit 1").go().code(1);
    let stats = say(&["stats", "--json"]);
    assert!(stats["signatures"].as_array().is_some_and(|known| !known.is_empty()), "{stats}");
    fits(&schema("stats"), &stats, "stats");
    fits(&schema("drift"), &say(&["drift", "--json"]), "drift");
    fits(&schema("deferred"), &say(&["deferred", "list", "--json"]), "deferred");
    fits(&schema("init"), &say(&["init", "--all", "--json"]), "init");
    fits(&schema("init"), &say(&["init", "--remove", "--json"]), "init");
    fits(&schema("config"), &say(&["config", "show", "--json"]), "config");
    fits(&schema("config-check"), &say(&["config", "check", "--json"]), "config check");
    fits(&schema("config-get"), &say(&["config", "get", "exec.timeout", "--json"]), "config get");
    fits(&schema("config-set"), &say(&["config", "set", "exec.drain", "2", "--json"]), "config set");
    fits(&schema("config-set"), &say(&["config", "unset", "exec.drain", "--json"]), "config unset");
    fits(&schema("runs"), &say(&["runs", "--all", "--json"]), "runs --all");
    fits(&schema("trust"), &say(&["trust", "--show", "--json"]), "trust");
    fits(&schema("trust"), &say(&["trust", "--json"]), "trust");
    fits(&schema("clean"), &say(&["clean", "--json"]), "clean");
    fits(&schema("clean"), &say(&["clean", "--quarantine", "--json"]), "clean");
    fits(&schema("doctor"), &say(&["doctor", "--json"]), "doctor");
    fits(&schema("agents"), &say(&["agents", "--json"]), "agents");
    let ingest = ["guard", "ingest", "openai", "--headers", "-", "--status", "429", "--json"];
    fits(&schema("guard"), &project.run(&ingest).stdin("retry-after: 60").go().code(0).json(), "guard");
    fits(&schema("guard"), &say(&["guard", "check", "groq", "--json"]), "guard");
    project.exec(&["--provider", "npm", "--attempts", "1"], failed).go().code(1);
    fits(&schema("guard-status"), &say(&["guard", "status", "--json"]), "guard status");
    plans_fit_their_schemas(&schema);
    project.run(&["budget", "set", "night", "5", "--per", "day"]).go().code(0);
    project.exec(&["--budget", "night"], done).go().code(0);
    fits(&schema("budget"), &say(&["budget", "status", "--json"]), "budget");
    fits(&schema("budget-delete"), &say(&["budget", "delete", "night", "--json"]), "budget delete");
    fits(&schema("exec-dry-run"), &say(&["exec", "--dry-run", "--json", "--", "npm", "publish"]), "dry run");
    project.file("backstop.toml", "[exec]\ntimout = 3\n");
    fits(
        &schema("config-check"),
        &project.run(&["config", "check", "--json"]).go().code(1).json(),
        "config check",
    );
    fits(&schema("reasons"), &Run::new(&["reasons", "--json"]).go().code(0).json(), "reasons");
    fits(&schema("rules"), &Run::new(&["rules", "list", "--json"]).go().code(0).json(), "rules");
}

fn plans_fit_their_schemas(schema: &dyn Fn(&str) -> Value) {
    let project = Project::plain("docs-plans");
    let table =
        "| Phase | Name | Depends On |\n|---|---|---|\n| 1 | One | - |\n| 2 | Two | 1 |\n| 3 | Three | 2 |\n";
    let block = |id: u8, command: &str| {
        format!("\n### Phase {id}: x\n```backstop\ncommand = '{command}'\ngates = []\n```\n")
    };
    let plan = format!("{table}{}{}{}", block(1, "true"), block(2, "test -e go"), block(3, "true"));
    project.file("plan.md", plan);
    let say = |args: &[&str], code| project.run(args).go().code(code);
    fits(&schema("plan-dry-run"), &say(&["run", "plan.md", "--dry-run", "--json"], 0).json(), "dry run");
    let halted = say(&["run", "plan.md", "--json"], 3).lines();
    for event in &halted[..halted.len() - 1] {
        fits(&schema("event"), event, "event of a plan");
    }
    fits(&schema("plan-halt"), halted.last().unwrap(), "halt");
    fits(&schema("plan-status"), &say(&["plan", "status", "--json"], 0).json(), "plan status");
    fits(&schema("plan-logs"), &say(&["plan", "logs", "1", "--json"], 0).json(), "plan logs");
    fits(&schema("plan-phase"), &say(&["plan", "show", "2", "--json"], 0).json(), "plan show");
    let state =
        std::fs::read_to_string(project.path().join(".backstop/runs/plan/phases/phase-2.json")).unwrap();
    fits(&schema("plan-phase"), &serde_json::from_str(&state).unwrap(), "state file");
    fits(&schema("plan-change"), &say(&["plan", "reset", "2", "--json"], 0).json(), "plan reset");
    fits(&schema("plan-change"), &say(&["plan", "skip", "2", "--why", "x", "--json"], 0).json(), "plan skip");
    let done = say(&["run", "plan.md", "--json"], 0).lines();
    fits(&schema("plan-completion"), done.last().unwrap(), "completion");
}

/// A terminal as a picture: one text element a line, reasons in red, commands in bold.
fn picture(text: &str) -> String {
    let escape = |line: &str| line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let lines: Vec<&str> = text.lines().collect();
    let width = lines.iter().map(|l| l.chars().count()).max().unwrap_or(0) * 8 + 40;
    let height = lines.len() * 19 + 36;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n"
    );
    for (n, line) in lines.iter().enumerate() {
        let y = n * 19 + 32;
        let (fill, weight) = match line {
            l if l.starts_with("$ ") => ("#ffffff", "bold"),
            l if l.starts_with("  because") => ("#8b93a1", "normal"),
            l if l.starts_with("  ") && l.contains(" failed: ") => ("#ff7a70", "normal"),
            l if l.starts_with("  ") && l.contains(": complete ") => ("#7fd1a0", "normal"),
            l if l.starts_with("  next:") => ("#7fd1a0", "normal"),
            l if l.starts_with("  ") || l.starts_with("npm ") || l.starts_with("added") => {
                ("#d6dae2", "normal")
            }
            l if l.starts_with("retrying") => ("#8b93a1", "normal"),
            l if l.starts_with("done") => ("#7fd1a0", "bold"),
            _ => ("#ff7a70", "bold"),
        };
        svg.push_str(&format!(
            "<text x=\"20\" y=\"{y}\" fill=\"{fill}\" font-weight=\"{weight}\" xml:space=\"preserve\">{}</text>\n",
            escape(line)
        ));
    }
    svg.push_str("</svg>\n");
    svg
}

/// The same on every machine and every day: waits and ids are those of one run.
fn steady(text: &str) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    for n in 0..words.len() {
        if let Some(at) = words[n].find("r-").filter(|at| words[n][at + 2..].len() >= 4) {
            words[n].replace_range(at..at + 6, "r-7f3a");
        }
        if n > 0 && matches!(words[n].as_str(), "ms" | "s") && words[n - 1].parse::<f64>().is_ok() {
            words[n - 1] = "1.1".to_owned();
            words[n] = "s".to_owned();
        }
    }
    words.join(" ")
}

#[test]
fn the_picture_shows_what_the_demo_prints() {
    let tmp = Folder::outside("docs-demo");
    let demo = |what| {
        let run = Run::new(&["demo", what]).env("TMPDIR", &tmp.path().display().to_string());
        run.go().code(0).stdout()
    };
    let (recovery, faults) = (demo("command"), demo("faults"));
    // The recovery, then the steps that were recorded: what git and the shell say differs from
    // machine to machine.
    let recovery =
        &recovery[recovery.find("$ backstop exec").unwrap()..recovery.find("$ backstop explain").unwrap()];
    let from = faults.find("$ npm test").unwrap();
    let to = faults.find("$ cargo build").unwrap();
    let text = format!("{}\n\n{}", steady(recovery.trim_end()), faults[from..to].trim_end());
    same(&root().join("docs/demo.svg"), &picture(&text));
}

/// The order in which two phases that run side by side are shown: theirs differs from run to run.
const SIDE_BY_SIDE: &[&str] = &[
    "2A Greetings: started",
    "2B Page: started",
    "2A Greetings: gate",
    "2A Greetings: attempt 1",
    "2B Page: committed",
    "2B Page: complete",
    "2A Greetings: attempt 2",
    "2A Greetings: committed",
    "2A Greetings: complete",
];

#[test]
fn the_picture_shows_what_the_plan_of_the_demo_prints() {
    let tmp = Folder::outside("docs-plan");
    let done = Run::new(&["demo"]).env("TMPDIR", &tmp.path().display().to_string()).go().code(0);
    let (stdout, stderr) = (done.stdout(), done.stderr());
    let mut lines: Vec<&str> = stderr[..stderr.find("╔").unwrap()].trim_end().lines().collect();
    lines.sort_by_key(|line| match SIDE_BY_SIDE.iter().position(|start| line.starts_with(start)) {
        Some(at) => (1, at),
        None => (if line.starts_with('1') { 0 } else { 2 }, 0),
    });
    let log = &stdout[stdout.find("$ git log").unwrap()..stdout.find("What you saw").unwrap()];
    let lines = ["$ backstop demo"].into_iter().chain(lines).chain([""]).chain(log.trim_end().lines());
    let mut commits = Vec::new();
    let lines: Vec<String> = lines
        .map(|line| line.replace("; retried now", "; retried after 2B"))
        .map(|line| with_steady_commits(&timeless(&line), &mut commits))
        .map(|line| format!("{}{line}", if line.starts_with('$') { "" } else { "  " }))
        .collect();
    same(&root().join("docs/plan.svg"), &picture(&lines.join("\n")));
}

/// A line whose commits are those of one run, in the order in which they first appear in `seen`.
fn with_steady_commits(line: &str, seen: &mut Vec<String>) -> String {
    const SHOWN: [&str; 5] = ["8efea9d", "c62e657", "588bf1b", "e3d0ede", "6342995"];
    let is_commit = |word: &str| word.len() == 7 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let word = |word: &str| {
        if !is_commit(word) {
            return word.to_owned();
        }
        let at = seen.iter().position(|known| known == word).unwrap_or_else(|| {
            seen.push(word.to_owned());
            seen.len() - 1
        });
        SHOWN[at].to_owned()
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// A line without what differs from run to run: ids and times.
fn timeless(line: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in line.split(' ') {
        let is_unit = matches!(word.trim_end_matches([',', ';']), "ms" | "s");
        if is_unit && words.last().is_some_and(|number| number.parse::<f64>().is_ok()) {
            words.pop();
            while words.last().is_some_and(|word| word.is_empty()) {
                words.pop();
            }
            words.extend(["1", "s"]);
        } else if word.starts_with("r-") {
            words.push("r-7f3a");
        } else {
            words.push(word);
        }
    }
    words.join(" ").trim_end().to_owned()
}

#[test]
fn the_readme_shows_what_the_program_prints() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() <= 120, "the README is one page");
    for command in ["cargo run --bin backstop -- demo", "cargo test --workspace"] {
        assert!(readme.contains(command), "{command}");
    }
    assert!(readme.contains("docs/plan.svg"));
    let jest = Run::new(&["classify", "--exit", "1"])
        .stdin(include_str!("../../../backstop-demo/src/jest.log"))
        .go()
        .code(0)
        .stdout();
    assert!(readme.contains(&jest), "the README's example is not what the program prints:\n{jest}");
}

/// The Rust files below a folder, with their texts.
fn source_files(folder: &Path, files: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            source_files(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The names in backticks that are made of so many words.
fn names_in(text: &str, words_min: usize) -> Vec<&str> {
    let is_name = |name: &&str| {
        name.split('_').count() >= words_min
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'*')
    };
    text.split('`').skip(1).step_by(2).filter(is_name).collect()
}

#[test]
fn every_test_that_the_documents_name_exists() {
    let mut files = Vec::new();
    source_files(&root().join("crates"), &mut files);
    let code: String = files.into_iter().map(|(_, text)| text).collect();
    // A star stands for any words: the tests of that name are several.
    let is_there = |name: &str| {
        let (start, end) = name.split_once('*').unwrap_or((name, ""));
        let head = format!("fn {start}");
        let mut found = code.split(&head).skip(1);
        found.any(|rest| match name.contains('*') {
            true => rest.split_once('(').is_some_and(|(rest, _)| rest.ends_with(end)),
            false => rest.starts_with(['(', '<']),
        })
    };
    let security = std::fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let architecture = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, table) = architecture.split_once("## Invariants").unwrap();
    let (table, _) = table.split_once("`tests/cli/` is").unwrap();
    // In prose, names of tests have more words than anything else in backticks; in the table
    // nothing else is a name.
    for (text, words_min, least) in [(security.as_str(), 4, 50), (table, 2, 80)] {
        let names = names_in(text, words_min);
        assert!(names.len() > least, "{names:?}");
        let missing: Vec<&&str> = names.iter().filter(|name| !is_there(name)).collect();
        assert!(missing.is_empty(), "no test has these names: {missing:?}");
    }
}

/// What stands in the walks as `file.rs: name` is there.
#[test]
fn the_walks_of_the_architecture_page_name_what_exists() {
    let mut files = Vec::new();
    source_files(&root().join("crates"), &mut files);
    let architecture = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, walks) = architecture.split_once("## A failure's way through the code").unwrap();
    let (walks, _) = walks.split_once("## Invariants").unwrap();
    let defines = |text: &str, name: &str| {
        ["fn", "struct", "for"].iter().any(|word| {
            let head = format!("{word} {name}");
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let stands =
                |at: usize| !text[..at].ends_with(is_part) && !text[at + head.len()..].starts_with(is_part);
            text.match_indices(&head).any(|(at, _)| stands(at))
        })
    };
    let mut count = 0;
    for step in walks.lines().flat_map(|line| line.split(" -> ")).flat_map(|step| step.split("; ")) {
        let Some((before, after)) = step.split_once(".rs: ") else { continue };
        let file = format!("/{}.rs", before.split_whitespace().last().unwrap());
        let texts: Vec<&str> =
            files.iter().filter(|(path, _)| path.ends_with(&file)).map(|(_, text)| text.as_str()).collect();
        let names = after.split("  ").next().unwrap_or_default();
        for name in names.split(", ").flat_map(|names| names.split("::")) {
            assert!(
                texts.iter().any(|text| defines(text, name.trim())),
                "{step}: there is no {name} in {file}"
            );
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}
