//! A secret of every shape is planted in every place that Backstop reads, and found in nothing that
//! it keeps, shows or exports.

use crate::harness::{Folder, Project, until};
use crate::notify::{Answers, OK, Server, kill, sender, sink};
use crate::plan_text::{PlanText, place, run};
use serde_json::json;
use std::path::Path;

#[path = "../../../backstop-core/tests/redact/planted.rs"]
mod planted;

use planted::{Planted, planted};

fn files_below(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files_below(&path, found);
        } else if path.is_file() {
            found.push((path.display().to_string(), std::fs::read(&path).unwrap_or_default()));
        }
    }
}

/// What is left of the planted secrets: where, and which shape. A place's own name is looked at,
/// too.
fn leaks(planted: &[Planted], places: &[(String, Vec<u8>)]) -> Vec<String> {
    let mut found = Vec::new();
    for (place, content) in places {
        let text = format!("{place}\n{}", String::from_utf8_lossy(content));
        for one in planted {
            if let Some(secret) = one.secrets.iter().find(|secret| text.contains(secret.as_str())) {
                found.push(format!("{place}: {}: {secret}", one.shape));
            }
        }
    }
    found
}

/// Everything that is stored, and what the commands that show it say.
fn kept(project: &Project) -> Vec<(String, Vec<u8>)> {
    let mut places = Vec::new();
    files_below(&project.state(), &mut places);
    assert!(places.iter().any(|(name, _)| name.ends_with(".db")));
    for args in [
        &["events", "--json"][..],
        &["events", "--jsonl"],
        &["explain", "last"],
        &["explain", "last", "--json"],
        &["diagnose", "last"],
        &["diagnose", "last", "--json"],
        &["stats"],
        &["stats", "--json"],
        &["notify", "list", "--json"],
        &["guard", "status", "--json"],
        &["runs", "--json"],
        &["deferred", "list", "--json"],
        &["hook", "status", "--json"],
    ] {
        let done = project.run(args).go();
        places.push((args.join(" "), [done.stdout(), done.stderr()].concat().into_bytes()));
    }
    places
}

/// Everybody who can be told of failures: a sink of every kind, a collector of traces, a file that
/// is tailed. Each keeps what it is sent.
struct Listeners {
    servers: [(&'static str, Server); 4],
}

impl Listeners {
    /// The user of the project has all of them.
    fn of(project: &Project) -> Self {
        let servers =
            ["slack", "github", "webhook", "traces"].map(|name| (name, Server::new(Answers::Say(&[OK]))));
        let mut settings = String::new();
        for (name, server) in &servers[..3] {
            settings.push_str(&sink(name, name, &server.url("/x")));
            settings.push_str("severity = \"low\"\n");
        }
        let told = project.beside("told").display().to_string();
        settings.push_str(&format!(
            "[notify.program]\ntype = \"command\"\ncommand = [\"sh\", \"-c\", \"cat >> {told}\"]\nseverity = \"low\"\n\
             [notify.here]\ntype = \"terminal\"\nseverity = \"low\"\n\
             [otel]\nendpoint = \"{}\"\n[events]\ntail_to = {:?}\n",
            servers[3].1.url(""),
            project.beside("tail.jsonl"),
        ));
        project.settings(settings);
        Self { servers }
    }

    /// What each was sent, once every sink was sent `least` messages.
    fn heard(&self, project: &Project, least: usize) -> Vec<(String, Vec<u8>)> {
        let told = || std::fs::read_to_string(project.beside("told")).unwrap_or_default();
        let sinks = || self.servers[..3].iter().all(|(_, server)| server.requests().len() >= least);
        until("every sink is told", || sinks() && told().matches("Next:").count() >= least);
        // Messages that repeat wait for their turn, which nobody waits for here.
        sender(project).into_iter().for_each(|pid| kill(&pid));
        let requests =
            |(name, server): &(&str, Server)| ((*name).to_owned(), server.requests().join("\n").into_bytes());
        let mut places: Vec<(String, Vec<u8>)> = self.servers.iter().map(requests).collect();
        places.push(("program".to_owned(), told().into_bytes()));
        places.push(("tail".to_owned(), std::fs::read(project.beside("tail.jsonl")).unwrap_or_default()));
        places
    }
}

fn assert_no_leaks(planted: &[Planted], places: &[(String, Vec<u8>)]) {
    let left = leaks(planted, places);
    assert!(
        left.is_empty(),
        "{} of {} shapes in {} places:\n{}",
        left.len(),
        planted.len(),
        places.len(),
        left.join("\n")
    );
}

#[test]
fn what_a_command_prints_is_found_nowhere() {
    let project = Project::new("leaks-output");
    let listeners = Listeners::of(&project);
    let all = planted(11);
    let text: String = all.iter().map(|one| format!("{}\n", one.line)).collect();
    project.file("lines", &text);
    // In pieces of uneven length, so that chunks end inside of secrets.
    let script = "dd if=lines bs=37 2>/dev/null; dd if=lines bs=53 2>/dev/null >&2; exit 1";
    let flags = ["--attempts", "2", "--json", "--report", "report.json", "--on", "unknown=retry"];
    let done = project.exec(&flags, script).env("GITHUB_TOKEN", "x").go().code(1);
    project.exec(&["--report", "report.md"], script).env("GITHUB_TOKEN", "x").go().code(1);
    let mut places = kept(&project);
    places.extend(listeners.heard(&project, 1));
    places.push(("--json".to_owned(), done.stdout().into_bytes()));
    for report in ["report.json", "report.md"] {
        places.push((report.to_owned(), project.read(report).into_bytes()));
    }
    assert_no_leaks(&all, &places);
}

#[test]
fn what_is_typed_is_found_nowhere() {
    let project = Project::new("leaks-typed");
    let listeners = Listeners::of(&project);
    let all = planted(12);
    // Each shape is a word. Commands as words of their own: `backstop-core/tests/redact`. So few at
    // once that all of them are in what is exported.
    for (number, some) in all.chunks(14).enumerate() {
        let words: Vec<&str> = some.iter().map(|one| one.line.as_str()).collect();
        let report = format!("report-{number}.json");
        let args = [
            &["exec", "--once", "--json", "--report", &report, "--", "sh", "-c", "exit 1", "sh"][..],
            &words,
        ]
        .concat();
        let done = project.run(&args).env("GITHUB_TOKEN", "x").go().code(1);
        let name = format!("what was said of {number}");
        let places =
            vec![(name, [done.stdout(), done.stderr(), project.read(&report)].concat().into_bytes())];
        assert_no_leaks(some, &places);
    }
    let mut places = kept(&project);
    places.extend(listeners.heard(&project, 1));
    assert_no_leaks(&all, &places);
    let traces = listeners.servers[3].1.requests();
    assert_eq!(traces.len(), all.len().div_ceil(14), "every run is exported");
}

#[test]
fn what_every_sink_is_told_is_masked() {
    let project = Project::new("leaks-sinks");
    let listeners = Listeners::of(&project);
    let all = planted(15);
    // Letters alone: reports whose names differ by a number are one message.
    let letters = |n: usize| [n / 26, n % 26].map(|n| char::from(b'a' + n as u8)).iter().collect::<String>();
    for (number, one) in all.iter().enumerate() {
        let fields = json!({ "name": one.line });
        let report = json!({
            "task_data": {"task_id": format!("task {}", letters(number))},
            "error": {"type": "SecurityBreach", "message": one.line, "function": one.line},
            "context": {"current_step": one.line, "fallback": one.line, "more": fields},
        });
        project.run(&["hook", "on-error"]).env("GITHUB_TOKEN", "x").stdin(report.to_string()).go().code(0);
    }
    let heard = listeners.heard(&project, all.len());
    assert_no_leaks(&all, &heard);
    assert_no_leaks(&all, &kept(&project));
    for (name, content) in heard.iter().filter(|(name, _)| name != "traces") {
        assert!(String::from_utf8_lossy(content).contains("[redacted]"), "{name} was told nothing");
    }
}

/// A server whose answers have every shape in their headers and in their bodies.
fn answering(status: &str, all: &[Planted]) -> Server {
    let header = |(n, one): (usize, &Planted)| format!("x-header-{n}: {}\r\n", one.line);
    let headers: String = all.iter().enumerate().map(header).collect();
    let challenge =
        format!("www-authenticate: Bearer error=\"{}\"\r\nset-cookie: sid={}\r\n", all[0].line, all[1].line);
    let body: String = all.iter().map(|one| format!("{}\n", one.line)).collect();
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\n{challenge}{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    let answer: &'static str = Box::leak(answer.into_boxed_str());
    Server::new(Answers::Say(Box::leak(Box::new([answer]))))
}

#[test]
fn what_servers_answer_is_found_nowhere() {
    let all = planted(16);
    for (number, some) in all.chunks(40).enumerate() {
        for status in ["400 Bad Request", "401 Unauthorized", "500 Internal Server Error"] {
            let project = Project::new("leaks-answers");
            let server = answering(status, some);
            let settings = sink("webhook", "webhook", &server.url("/"))
                + &format!("[mcp.far]\nurl = \"{}\"\n[profile.tool]\ndelays = [\"0\"]\n", server.url("/mcp"));
            project.settings(settings);
            let mut places = Vec::new();
            for args in [
                &["notify", "test"][..],
                &["tools", "doctor", "--json"],
                &["tools", "list"],
                &["call", "--json", "far__x", "{}"],
            ] {
                let done = project.run(args).go();
                places.push((args.join(" "), [done.stdout(), done.stderr()].concat().into_bytes()));
            }
            let response: String = some.iter().map(|one| format!("X-A: {}\n", one.line)).collect();
            let response = format!("HTTP/1.1 429 Too Many Requests\nRetry-After: 7\n{response}\n{response}");
            let done = project.run(&["guard", "ingest", "anthropic"]).stdin(response).go();
            places.push(("guard".to_owned(), [done.stdout(), done.stderr()].concat().into_bytes()));
            places.extend(kept(&project));
            assert!(!server.requests().is_empty(), "nobody asked");
            assert_no_leaks(some, &places);
            if number > 0 {
                break;
            }
        }
    }
}

/// Shapes that can be a file's name or a part of a branch's name.
fn names(all: &[Planted]) -> Vec<Planted> {
    let is_name = |line: &str| {
        line.len() < 200 && line.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-=".contains(&byte))
    };
    all.iter().filter(|one| is_name(&one.line) && !one.line.starts_with('-')).cloned().collect()
}

#[test]
fn what_folders_callers_and_sessions_are_called_is_found_nowhere() {
    let all = names(&planted(17));
    assert!(all.len() > 80, "{}", all.len());
    let project = Project::new("leaks-names");
    let listeners = Listeners::of(&project);
    let mut places = Vec::new();
    for one in &all {
        let folder = project.path().join(&one.line);
        std::fs::create_dir_all(&folder).unwrap();
        let file = one.line.as_str();
        // What the command itself says passes through unchanged.
        let script = "cat \"$0\" 2> said; cat said; exit 1";
        let done = project
            .run(&["exec", "--json", "--", "sh", "-c", script, file])
            .dir(&folder)
            .env("BACKSTOP_CALLER", file)
            .env("BACKSTOP_SESSION", file)
            .env("GITHUB_TOKEN", "x")
            .go();
        places.push(("exec".to_owned(), done.stdout().into_bytes()));
    }
    places.extend(kept(&project));
    places.extend(listeners.heard(&project, 1));
    assert_no_leaks(&all, &places);
}

#[test]
fn what_a_plan_says_and_its_agents_answer_is_in_no_commit_prompt_or_log() {
    // Names that invisible characters cut are not masked in the log of a prompt (SECURITY.md).
    let is_visible = |one: &Planted| !one.line.contains(['\u{200b}', '\u{2060}', '\u{ad}', '\u{feff}']);
    let visible = |seed| planted(seed).into_iter().filter(is_visible).collect::<Vec<_>>();
    let (of_plan, of_agent) = (visible(18), visible(19));
    let (named, branch) = (names(&planted(20)), names(&planted(21)));
    for mode in ["auto", "single", "message-only"] {
        let project = Project::git("leaks-agent");
        let listeners = Listeners::of(&project);
        let branch_name: Vec<&str> = branch.iter().take(40).map(|one| one.line.as_str()).collect();
        project.sh(&format!("git checkout -q -b work/{}", branch_name.join("/")));
        let lines = |all: &[Planted]| all.iter().map(|one| format!("{}\n", one.line)).collect::<String>();
        let said = Folder::outside("leaks-said");
        let file = |name: &str, text: String| said.file(name, text).display().to_string();
        let (lines_file, names_file) = (file("lines", lines(&of_agent)), file("names", lines(&named)));
        let result = |status: &str, seed: usize| {
            let some: Vec<&str> =
                of_agent.iter().skip(seed).step_by(7).map(|one| one.line.as_str()).collect();
            let text = some.join("\n");
            json!({
                "phase_id": "1", "status": status, "tasks_total": of_plan.len(),
                "tasks_completed": of_plan.len(), "commit_message": format!("feat: {text}"), "summary": text,
                "files_changed": {"created": some, "modified": some, "deleted": some},
                "error": {"type": "test_failure", "message": text, "details": text},
            })
        };
        let failed = file("failed", result("failed", 0).to_string());
        let complete = file("complete", result("complete", 1).to_string());
        let script = format!(
            "cat > $PLACE/prompt-$BACKSTOP_ATTEMPT; cat {lines_file} >&2; cat {lines_file}\n\
             if [ $BACKSTOP_ATTEMPT = 1 ]; then cp {failed} $BACKSTOP_RESULT; exit 1; fi\n\
             while read -r name; do mkdir -p \"in-$name\"; echo x > \"in-$name/$name\"; done < {names_file}\n\
             cp {complete} $BACKSTOP_RESULT"
        );
        let agent = file("agent.sh", script);
        let config = project.beside("home/.config/backstop/config.toml");
        let mut settings = std::fs::read_to_string(&config).unwrap();
        settings.push_str(&format!("[agent.fake]\ncommand = [\"sh\", \"{agent}\"]\n"));
        std::fs::write(&config, settings).unwrap();
        let gate = format!("gates = [{{ name = 'test', check = 'cat {lines_file}' }}]");
        // Titles and tasks of the plan are the user's own words, and are not for others.
        let tasks: String = of_plan.iter().map(|one| format!("- [ ] {}\n", one.line)).collect();
        let title = names(&of_plan).iter().take(3).map(|one| one.line.clone()).collect::<Vec<_>>().join(" ");
        let text = PlanText::new()
            .phase("1", "", &format!("agent = 'fake'\n{gate}"))
            .sh("2", "1", &format!("cat {lines_file}; echo 2 > two.txt"))
            .text()
            .replace("- [ ] task 1\n", &tasks)
            .replace("Step 2", &title);
        project.file("plan.md", text);
        let done = run(&project, &["--commit", mode]).env("GITHUB_TOKEN", "x").go().code(0);
        let again = run(&project, &["--commit", mode, "--json"]).env("GITHUB_TOKEN", "x").go();
        let mut places = kept(&project);
        files_below(&project.path().join(".backstop"), &mut places);
        for (name, done) in [("run", done), ("again", again)] {
            places.push((name.to_owned(), [done.stdout(), done.stderr()].concat().into_bytes()));
        }
        for args in [&["plan", "status"][..], &["plan", "status", "--json"], &["plan", "logs", "1"]] {
            let done = project.run(args).go();
            places.push((args.join(" "), [done.stdout(), done.stderr()].concat().into_bytes()));
        }
        places.push(("commits".to_owned(), project.sh("git log --all --format='%an %s %b'").into_bytes()));
        places.push(("refs".to_owned(), project.sh("git for-each-ref refs/backstop").into_bytes()));
        places.extend(listeners.heard(&project, 0));
        let everything = [of_plan.clone(), of_agent.clone(), named.clone(), branch.clone()].concat();
        assert_no_leaks(&everything, &places);
        // The agent is given the plan as it is, and of the last attempt what is masked.
        let prompt = place(&project, "prompt-2");
        assert!(
            prompt.contains("## The last attempt failed") && prompt.contains(&of_plan[0].line),
            "{prompt}"
        );
        assert_no_leaks(&of_agent, &[("prompt".to_owned(), prompt.into_bytes())]);
    }
}

#[test]
fn what_hooks_are_told_is_found_nowhere() {
    let project = Project::new("leaks-hooks");
    let all = planted(13);
    let text: String = all.iter().map(|one| format!("{}\n", one.line)).collect();
    let mut places = Vec::new();
    for (number, some) in all.chunks(40).enumerate() {
        let lines: Vec<&str> = some.iter().map(|one| one.line.as_str()).collect();
        let fields: serde_json::Map<String, serde_json::Value> =
            lines.iter().enumerate().map(|(n, line)| (format!("field_{n}"), json!(line))).collect();
        let report = json!({
            "task_data": {"task_id": format!("task-{number}")},
            "error": {"type": "ToolError", "message": lines.join("\n"), "stack_trace": text,
                "file": lines[0], "function": lines[1]},
            "context": {"current_step": lines[2], "partial_result": {"lines": lines}, "fallback": lines[3], "more": fields},
        });
        let done = project.run(&["hook", "on-error"]).stdin(report.to_string()).go().code(0);
        places.push((format!("answer {number}"), [done.stdout(), done.stderr()].concat().into_bytes()));
    }
    let event = json!({"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Bash",
        "tool_input": {"command": text}, "tool_response": {"stdout": text, "stderr": text, "exit_code": 1, "is_error": true}});
    let done = project.run(&["hook", "agent"]).stdin(event.to_string()).go().code(0);
    places.push(("hook agent".to_owned(), [done.stdout(), done.stderr()].concat().into_bytes()));
    places.extend(kept(&project));
    assert_no_leaks(&all, &places);
}

#[test]
fn what_a_plan_sets_and_its_phases_print_is_found_nowhere() {
    let project = Project::plain("leaks-plan");
    let all = planted(14);
    let text: String = all.iter().map(|one| format!("{}\n", one.line)).collect();
    let lines = project.file("lines", &text);
    let secrets = ["plain-words-only", "another-plain-one"];
    PlanText::new()
        .all(&format!("env = {{ DB_PASSWORD = '{}' }}", secrets[0]))
        .phase(
            "1",
            "",
            &format!(
                "command = '''cat {} >&2; echo $DB_PASSWORD $MORE_TOKEN; exit 1'''\nenv = {{ MORE_TOKEN = '{}' }}",
                lines.display(),
                secrets[1]
            ),
        )
        .write(&project);
    let done = run(&project, &[]).go();
    let mut places = kept(&project);
    files_below(&project.path().join(".backstop"), &mut places);
    places.push(("what was said".to_owned(), [done.stdout(), done.stderr()].concat().into_bytes()));
    assert_no_leaks(&all, &places);
    for (place, content) in &places {
        let text = String::from_utf8_lossy(content);
        for secret in secrets {
            assert!(!text.contains(secret), "{secret} is in {place}");
        }
    }
}

#[test]
fn what_is_known_by_its_value_is_found_nowhere() {
    let project = Project::new("leaks-known");
    project.file("backstop.toml", "[redact]\nenv = [\"ODD_NAME\"]\n");
    let home = project.path().join("home");
    std::fs::create_dir_all(home.join(".codex")).unwrap();
    let secrets = ["plain-words-only", "other-plain-words", "third-plain-words", "fourth-plain-words1"];
    std::fs::write(home.join(".codex/auth.json"), json!({ "OPENAI_API_KEY": secrets[3] }).to_string())
        .unwrap();
    let script = format!(
        "for word in {}; do echo it said $word; echo $word | base64 >&2; done; exit 1",
        secrets.join(" ")
    );
    let done = project
        .exec(&["--json"], &script)
        .env("HOME", &home.display().to_string())
        .env("ODD_NAME", secrets[0])
        .env("ACME_API_KEY", secrets[1])
        .env("DATABASE_URL", &format!("postgres://app:{}@db/x", secrets[2]))
        .go()
        .code(1);
    let mut places = kept(&project);
    places.push(("--json".to_owned(), done.stdout().into_bytes()));
    for (place, content) in &places {
        let text = String::from_utf8_lossy(content);
        for secret in secrets {
            assert!(!text.contains(secret), "{secret} is in {place}");
        }
    }
}

#[test]
fn what_lists_settings_shows_no_secret_of_them() {
    let project = Project::new("leaks-listed");
    project.settings(
        "[notify.x]\ntype = \"webhook\"\nurl = \"https://hooks.example.com/services/T0/plain-path-01/x?sig=plain-query\"\n\
         [notify.y]\ntype = \"command\"\ncommand = [\"notify\", \"--token\", \"plain-word-of-a-sink\"]\n\
         [mcp.s]\ncommand = \"/nonexistent/server --api-key plain-word-of-a-server\"\n\
         env = { API_KEY = \"plain-word-of-an-env\" }\n\
         [mcp.t]\nurl = \"http://127.0.0.1:1/mcp/plain-path-02?key=plain-query-of-a-server\"\n\
         headers = { Authorization = \"Bearer plain-word-of-a-header\" }\n\
         [agent.foo]\ncommand = [\"foo\", \"--password\", \"plain-word-of-an-agent\", \"{prompt_file}\"]\n\
         [llm.upstream.u]\nurl = \"http://127.0.0.1:1\"\nheaders = { X-Api-Key = \"plain-word-of-a-model\" }\n",
    );
    project.file("plan.md", "# Plan\n\n## Phase 1: a\n- [ ] x\n");
    for line in [
        "config show",
        "config show --origin",
        "config show --json",
        "config check",
        "config get agent.foo.command",
        "config get mcp.t.url",
        "config get notify.x.url",
        "agents",
        "agents --json",
        "doctor",
        "doctor --json",
        "doctor --sinks",
        "notify list",
        "notify list --json",
        "notify test",
        "tools list",
        "tools list --json",
        "tools doctor",
        "tools call s__x",
        "tools call t__x",
        "trust --show",
        "proxy --env",
        "run plan.md --agent foo --dry-run",
        "run plan.md --agent foo --commit none --gates none",
        "plan status",
        "plan status --json",
        "explain",
        "explain --json",
        "diagnose",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let done = project.run(&words).go();
        for text in [done.stdout(), done.stderr()] {
            assert!(!text.contains("plain-"), "`backstop {line}` shows: {text}");
        }
    }
}
