//! A secret of every shape is planted in every place that Backstop reads, and found in nothing that
//! it keeps, shows or exports.

use crate::harness::Project;
use crate::plan_text::{PlanText, run};
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

/// What is left of the planted secrets: where, and which shape.
fn leaks(planted: &[Planted], places: &[(String, Vec<u8>)]) -> Vec<String> {
    let mut found = Vec::new();
    for (place, content) in places {
        let text = String::from_utf8_lossy(content);
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
        &["runs", "--json"],
        &["deferred", "list", "--json"],
        &["hook", "status", "--json"],
    ] {
        let done = project.run(args).go();
        places.push((args.join(" "), [done.stdout(), done.stderr()].concat().into_bytes()));
    }
    places
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
    let all = planted(11);
    let text: String = all.iter().map(|one| format!("{}\n", one.line)).collect();
    project.file("lines", &text);
    // In pieces of uneven length, so that chunks end inside of secrets.
    let script = "dd if=lines bs=37 2>/dev/null; dd if=lines bs=53 2>/dev/null >&2; exit 1";
    let flags = ["--attempts", "2", "--json", "--report", "report.json", "--on", "unknown=retry"];
    let done = project.exec(&flags, script).go().code(1);
    project.exec(&["--report", "report.md"], script).go().code(1);
    let mut places = kept(&project);
    places.push(("--json".to_owned(), done.stdout().into_bytes()));
    for report in ["report.json", "report.md"] {
        places.push((report.to_owned(), project.read(report).into_bytes()));
    }
    assert_no_leaks(&all, &places);
}

#[test]
fn what_is_typed_is_found_nowhere() {
    let project = Project::new("leaks-typed");
    let all = planted(12);
    // Each shape is a word. Commands as words of their own: `backstop-core/tests/redact`.
    for (number, some) in all.chunks(70).enumerate() {
        let words: Vec<&str> = some.iter().map(|one| one.line.as_str()).collect();
        let report = format!("report-{number}.json");
        let args = [
            &["exec", "--once", "--json", "--report", &report, "--", "sh", "-c", "exit 1", "sh"][..],
            &words,
        ]
        .concat();
        let done = project.run(&args).go().code(1);
        let name = format!("what was said of {number}");
        let places =
            vec![(name, [done.stdout(), done.stderr(), project.read(&report)].concat().into_bytes())];
        assert_no_leaks(some, &places);
    }
    assert_no_leaks(&all, &kept(&project));
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
