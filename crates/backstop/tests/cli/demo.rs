//! The demo shows what it says, leaves the user's things alone, and can be looked at afterwards.

use crate::docs::fits;
use crate::harness::{Folder, Run, schema, until};
use crate::plan_text::has;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

/// The demo with a temporary folder of its own, in which nothing of others is.
fn demo(tmp: &Folder, args: &[&str]) -> Run {
    let path = tmp.path().display().to_string();
    Run::new(&[&["demo"], args].concat())
        .dir(tmp.path())
        .env("TMPDIR", &path)
        .env("HOME", &format!("{path}/home"))
        .env("BACKSTOP_STATE_DIR", &format!("{path}/state"))
}

/// Types a line as it stands in the output, in another folder and with none of our variables.
fn typed(line: &str) -> String {
    let output = Command::new("sh").args(["-c", line]).current_dir("/").env_clear().output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{line}\n{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn folders(tmp: &Folder) -> Vec<String> {
    let names = fs::read_dir(tmp.path()).unwrap().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("backstop-demo-")).collect();
    names.sort();
    names
}

#[test]
fn a_plan_fails_recovers_and_is_committed_and_can_be_looked_at() {
    let tmp = Folder::outside("demo-plan");
    let done = demo(&tmp, &[]).go().code(0);
    let (stdout, stderr) = (done.stdout(), done.stderr());
    has(
        &stderr,
        &[
            "2A Greetings: started",
            "2B Page: started",
            "2A Greetings: attempt 1 failed: test_failure: not ok 3 - greets Barbara",
            "2A Greetings: complete on attempt 2",
            "BACKSTOP COMPLETE",
        ],
    );
    has(
        &stdout,
        &[
            "$ backstop run plan.md --commit auto",
            "$ git log --oneline --graph",
            "Release: the greetings are in the page",
            "What you saw",
        ],
    );
    assert!(!tmp.path().join("state").exists(), "the user's own state is not touched");
    // Every line that it says to type can be typed, wherever one is.
    let root = format!("  {}/backstop-demo-", tmp.path().display());
    let lines: Vec<&str> = stdout.lines().filter(|line| line.starts_with(&root)).collect();
    assert_eq!(lines.len(), 3, "{stdout}");
    has(
        &typed(lines[0]),
        &["test_failure (permanent): 1 test failed: greets Barbara", "recovery: retry, it helped"],
    );
    has(&typed(lines[1]), &["complete · 4 of 4", "on attempt 2"]);
    has(&typed(lines[2]), &["Hello, Grace!", "not ok 3 - greets Barbara"]);
}

/// In a repository whose owner has no name but signs, whose hooks refuse everything, and from
/// inside one of those hooks.
#[test]
fn no_setting_of_the_users_has_a_say() {
    let tmp = Folder::outside("demo-settings");
    let sh = |line: &str| {
        assert!(Command::new("sh").args(["-c", line]).current_dir(tmp.path()).status().unwrap().success());
    };
    sh("git init -q . && mkdir -p home/.config/backstop hooks templates/hooks");
    tmp.file("home/.gitconfig", format!(
        "[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = false\n[user]\n\tuseConfigOnly = true\n[core]\n\thooksPath = {0}/hooks\n[init]\n\ttemplateDir = {0}/templates\n",
        tmp.path().display()
    ));
    for hooks in ["hooks", "templates/hooks"] {
        tmp.file(&format!("{hooks}/pre-commit"), "#!/bin/sh\necho no >&2\nexit 1\n");
        sh(&format!("chmod +x {hooks}/pre-commit"));
    }
    tmp.file("home/.config/backstop/config.toml", "[plan]\njobs = 1\ncommit = \"none\"\n");
    let git = tmp.path().join(".git").display().to_string();
    let json = demo(&tmp, &["--json"])
        .env("GIT_DIR", &git)
        .env("GIT_INDEX_FILE", "index.lock")
        .env("GIT_AUTHOR_NAME", "")
        .env("BACKSTOP_DISABLE", "1")
        .env("BACKSTOP_PLAN_JOBS", "1")
        .go()
        .code(0)
        .json();
    fits(&schema("demo"), &json, "demo");
    fits(&schema("plan-completion"), &json["ending"], "demo");
    assert_eq!(json["failures"].as_array().unwrap().len(), 1, "{json}");
    assert_eq!(json["failures"][0]["reason"], "test_failure");
    assert_eq!(json["commits"].as_array().unwrap().len(), 5, "{json}");
    // 2B begins before 2A has ended.
    let own = format!("{}/backstop", json["folder"].as_str().unwrap());
    let events = typed(&format!("{own} events --json"));
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let at = |kind: &str, phase: &str| {
        events.iter().position(|event| event["kind"] == kind && event["operation"] == phase).unwrap()
    };
    assert!(at("attempt.started", "2b") < at("attempt.finished", "2a"));
    assert!(at("attempt.started", "2a") < at("attempt.finished", "2b"));
    let page =
        fs::read_to_string(Path::new(json["repository"].as_str().unwrap()).join("index.html")).unwrap();
    has(&page, &["Hello, Ada!", "Hello, Barbara!"]);
}

#[test]
fn a_demo_that_is_stopped_says_how_it_goes_on() {
    use std::os::unix::process::CommandExt;
    let tmp = Folder::outside("demo-stopped");
    let log = tmp.path().join("stderr");
    let mut child = demo(&tmp, &[])
        .command()
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let text = || fs::read_to_string(&log).unwrap();
    until("a phase begins", || text().contains("2B Page: started"));
    // As a terminal does it: all of the group.
    let group = format!("-{}", child.id());
    assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130), "{}", text());
    let text = text();
    has(&text, &["the demo was stopped"]);
    let again = text.lines().find_map(|line| line.strip_prefix("hint: `")).unwrap();
    typed(again.split('`').next().unwrap());
}

#[test]
fn old_folders_go_and_what_is_not_its_own_or_in_use_stays() {
    let tmp = Folder::outside("demo-folders");
    let make = |name: &str| {
        let folder = tmp.path().join(format!("backstop-demo-{name}"));
        fs::create_dir(&folder).unwrap();
        let lock = fs::File::create(folder.join("in-use")).unwrap();
        let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
        fs::File::open(&folder).unwrap().set_modified(long_ago).unwrap();
        lock
    };
    let used = make("used");
    used.lock().unwrap();
    for n in 0..6 {
        make(&n.to_string());
    }
    fs::create_dir(tmp.path().join("elsewhere")).unwrap();
    tmp.file("elsewhere/in-use", "");
    symlink(tmp.path().join("elsewhere"), tmp.path().join("backstop-demo-link")).unwrap();
    fs::create_dir(tmp.path().join("backstop-demo-strange")).unwrap();
    demo(&tmp, &["faults"]).go().code(0);
    let left = folders(&tmp);
    for stays in ["used", "link", "strange"] {
        assert!(left.contains(&format!("backstop-demo-{stays}")), "{left:?}");
    }
    assert!(tmp.path().join("elsewhere/in-use").exists());
    assert!(left.len() <= 3 + 2, "{left:?}");
}

#[test]
fn a_command_recovers_and_its_story_is_told() {
    let tmp = Folder::outside("demo-command");
    let stdout = demo(&tmp, &["command"]).go().code(0).stdout();
    assert!(stdout.starts_with("A command that fails, and recovers."), "{stdout}");
    has(
        &stdout,
        &[
            "attempt 1 failed: network_transient",
            "retrying in ",
            "done on attempt 2",
            "recognised by rule js.network_code",
        ],
    );
    assert!(stdout.contains("shows this one again."), "{stdout}");
    let json = demo(&tmp, &["command", "--json"]).go().code(0).json();
    fits(&schema("demo"), &json, "demo command");
    fits(&schema("exec"), &json["ending"], "demo command");
    assert_eq!(
        (json["ending"]["outcome"].as_str(), json["ending"]["attempts"].as_u64()),
        (Some("done"), Some(2))
    );
}

#[test]
fn ten_faults_are_classified() {
    let tmp = Folder::outside("demo-faults");
    let steps = demo(&tmp, &["faults", "--json"]).go().code(0).lines();
    let reasons: Vec<&str> = steps.iter().map(|s| s["reason"].as_str().unwrap_or("success")).collect();
    let want = [
        "vcs_error",
        "dependency_missing",
        "file_conflict",
        "crash",
        "success",
        "test_failure",
        "network_transient",
        "resource_contention",
        "rate_limited",
        "quota_exhausted",
    ];
    assert_eq!(reasons, want);
    let stdout = demo(&tmp, &["faults"]).go().code(0).stdout();
    assert!(stdout.starts_with("Ten things that go wrong"), "{stdout}");
    assert_eq!(stdout.matches("\n$ ").count(), 10);
    assert_eq!(stdout.matches("\n  next: ").count(), 9);
    assert_eq!(folders(&tmp), [""; 0], "nothing is left of it");
}
