//! What an older version has left on somebody's disk: its state folder, settings and projects are
//! read as they are, and what was begun with it goes on. `tests/formats/make-state` has made the
//! archive.
#![cfg(target_os = "linux")]

use crate::harness::{Done, Folder, Run};
use crate::plan_text::has;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

const ARCHIVE: &str = "state-0.1.0-f7d2f0e.tar.gz";

/// What depends on the time at which it is asked for.
const OF_THE_MOMENT: &[&str] = &["wait_seconds", "since"];

/// An unpacked archive. Its paths begin with `/srv`, so each command has a mount namespace of its
/// own in which they do; its time is that of a second after it was made, so that what has an end
/// has not met it.
struct OldState {
    folder: Folder,
    namespace: &'static str,
    clock: String,
}

impl OldState {
    fn new(name: &str) -> Self {
        let folder = Folder::outside(&format!("old-state-{name}"));
        let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats").join(ARCHIVE);
        let unpacked = Command::new("python3")
            .args(["-m", "tarfile", "-e"])
            .arg(archive)
            .arg(folder.path())
            .stderr(std::process::Stdio::null())
            .status();
        assert!(unpacked.unwrap().success());
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        folder.file("bin/backstop", "");
        let can_mount = |flag: &str| {
            let look = Command::new("unshare").args([flag, "mount", "--bind", "/srv", "/srv"]).output();
            look.unwrap().status.success()
        };
        let namespace = if can_mount("-Urm") { "-Urm" } else { "-m" };
        let made: i64 =
            std::fs::read_to_string(folder.path().join("made-at")).unwrap().trim().parse().unwrap();
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
        let clock = format!("0:{}", made + 1_000 - i64::try_from(now).unwrap());
        Self { folder, namespace, clock }
    }

    /// A command of today, in the project.
    fn run(&self, args: &[&str]) -> Run {
        self.run_in("project", args)
    }

    /// A command of today, in one of the projects.
    fn run_in(&self, project: &str, args: &[&str]) -> Run {
        const SCRIPT: &str = "mount --bind \"$2\" \"$1/bin/backstop\" && mount --rbind \"$1\" /srv && \
             cd \"/srv/$3\" && shift 3 && exec /srv/bin/backstop \"$@\"";
        let root = self.folder.path().display().to_string();
        let words =
            [self.namespace, "sh", "-c", SCRIPT, "sh", &root, env!("CARGO_BIN_EXE_backstop"), project];
        let mut run = Run::new(&[&words[..], args].concat()).program("unshare");
        for (name, value) in [
            ("BACKSTOP_STATE_DIR", "/srv/state"),
            ("BACKSTOP_CLOCK_JUMP", self.clock.as_str()),
            ("HOME", "/srv/home"),
            ("XDG_CONFIG_HOME", "/srv/home/.config"),
            ("CODEX_HOME", "/srv/home/.codex"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_AUTHOR_NAME", "A"),
            ("GIT_AUTHOR_EMAIL", "a@example.invalid"),
            ("GIT_COMMITTER_NAME", "A"),
            ("GIT_COMMITTER_EMAIL", "a@example.invalid"),
        ] {
            run = run.env(name, value);
        }
        run
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn make(&self, name: &str) {
        std::fs::write(self.path(name), "").unwrap();
    }

    /// What the old version printed for a command: one value, or one a line.
    fn expected(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(&format!("expected/{name}.json"))).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The runs whose operation has this in it, the newest first.
    fn runs(&self, operation: &str) -> Vec<String> {
        let runs = self.expected("runs").remove(0);
        let of = |run: &&Value| run["operation"].as_str().unwrap().contains(operation);
        let runs = runs["runs"].as_array().unwrap().iter().filter(of);
        runs.map(|run| run["run"].as_str().unwrap().to_owned()).collect()
    }
}

/// Checks that a value has all that an old one has; there may be more. Lists keep their order.
#[track_caller]
fn covers(new: &Value, old: &Value, at: &str) {
    if let Some((place, was, is)) = missing(new, old, at) {
        panic!("{place} was {was}\nand is {is}");
    }
}

/// What the new value lacks first: where, what was there, what is there now.
fn missing(new: &Value, old: &Value, at: &str) -> Option<(String, Value, Value)> {
    let lacks = || Some((at.to_owned(), old.clone(), new.clone()));
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            // The sentence about an event is for people, and may become clearer.
            let is_sentence = |key: &str| key == "text" && old.contains_key("kind") && old.contains_key("at");
            let counts = |key: &str| !OF_THE_MOMENT.contains(&key) && !is_sentence(key);
            old.iter().filter(|(key, _)| counts(key)).find_map(|(key, old)| {
                missing(new.get(key).unwrap_or(&Value::Null), old, &format!("{at}.{key}"))
            })
        }
        (Value::Array(new), Value::Array(old)) if new.len() == old.len() => old
            .iter()
            .zip(new)
            .enumerate()
            .find_map(|(n, (old, new))| missing(new, old, &format!("{at}[{n}]"))),
        (Value::Array(new), Value::Array(old)) => {
            let mut rest = new.iter();
            let found = |old: &Value| rest.any(|new| missing(new, old, at).is_none());
            if old.iter().all(found) { None } else { lacks() }
        }
        _ if new == old => None,
        _ => lacks(),
    }
}

#[test]
fn what_was_shown_is_shown() {
    let old = OldState::new("shown");
    // Trust covers more than it did, so that it has to be given again; nothing else is different.
    let trust = old.run(&["trust", "--show"]).go().code(0).stdout();
    has(&trust, &["is not trusted any more: what trust covers has changed"]);
    old.run(&["trust"]).go().code(0);
    let mut commands: Vec<(String, String)> = [
        // First, because a breaker opens again after half a minute.
        ("guard-status", "guard status"),
        ("runs", "runs --limit 100"),
        ("events", "events"),
        ("deferred", "deferred list"),
        ("budget", "budget status"),
        ("hook-status", "hook status"),
        ("notify", "notify list"),
        ("plan-done", "plan status --plan done.md"),
        ("plan-halts", "plan status --plan halts.md"),
        ("trust", "trust --show"),
        ("config", "config show"),
        ("stats", "stats --since 1h"),
    ]
    .map(|(name, command)| (name.to_owned(), command.to_owned()))
    .to_vec();
    commands.extend(old.runs("").iter().map(|run| (format!("explain-{run}"), format!("explain {run}"))));
    assert!(commands.len() > 30, "{commands:?}");
    for (name, command) in commands {
        let args: Vec<&str> = command.split(' ').chain(["--json"]).collect();
        let done = old.run(&args).go().code(0);
        let (mut was, is) = (old.expected(&name), done.lines());
        // Detected gates are the default now where a project is trusted.
        for settings in was.iter_mut().filter_map(|line| line.get_mut("settings")?.as_array_mut()) {
            settings.retain(|row| row["key"] != "plan.gates");
        }
        assert!(!was.is_empty());
        covers(&Value::Array(is), &Value::Array(was), &command);
        // For people, too, without a word about anything that is wrong.
        let done = old.run(&args[..args.len() - 1]).go().code(0);
        assert!(
            !done.stdout().is_empty() && !done.stderr().contains("warning"),
            "{command}: {}",
            done.stderr()
        );
    }
    let runs = old.run_in("frozen", &["runs", "--json"]).go().code(0).json();
    covers(&runs, &old.expected("frozen-runs")[0], "runs of the frozen project");
    has(&old.run(&["doctor"]).go().code(0).stdout(), &["store"]);
    let left = std::fs::read_dir(old.path("state/projects")).unwrap().flatten();
    let aside: Vec<_> =
        left.map(|e| e.file_name()).filter(|n| n.to_string_lossy().contains("damaged")).collect();
    assert!(aside.is_empty(), "{aside:?}");
}

#[test]
fn what_was_put_aside_or_waits_for_a_word_is_done() {
    let old = OldState::new("deferred");
    old.make("project/docker");
    old.run(&["deferred", "run", "d-1"]).go().code(0);
    old.make("project/paid");
    let waits = &old.runs("test -e paid")[0];
    old.run(&["exec", "--confirm", waits]).go().code(0);
    let left = old.run(&["deferred", "list", "--json"]).go().code(0).json();
    let left: Vec<&Value> = left["deferred"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(left, ["d-3", "d-4"]);
}

#[test]
fn limits_are_still_counted() {
    let old = OldState::new("limits");
    old.run(&["guard", "check", "openai"]).go().code(75);
    // Two of five were spent.
    for code in [0, 0, 0, 125] {
        old.run(&["exec", "--budget", "night", "--", "true"]).go().code(code);
    }
    let json =
        ["exec", "--json", "--cache", "10m", "--input", "backstop.toml", "--", "sh", "-c", "echo kept"];
    let kept = old.run(&json).go().code(0).json();
    assert!(kept["cached_seconds"].is_number(), "{kept}");
}

#[test]
fn a_task_and_a_session_are_still_known() {
    let old = OldState::new("hooks");
    let report = json!({"task_data": {"task_id": "task-1"}, "error": {"type": "ConnectionError", "message": "Connection refused"}});
    let answer = old.run(&["hook", "on-error"]).stdin(report.to_string()).go().code(0).json();
    assert_eq!((&answer["attempt"], &answer["retry"]), (&json!(3), &json!(false)), "{answer}");
    // The third time in a row that this session meets it.
    let event = json!({"session_id": "s-9", "transcript_path": "/x", "cwd": "/srv/project",
        "hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_input": {"command": "npm test"},
        "tool_use_id": "t-3", "error": "Exit code 1\nTests: 2 failed, 44 passed, 46 total", "is_interrupt": false});
    let answer = old.run(&["hook", "agent"]).stdin(event.to_string()).go().code(0).stdout();
    has(&answer, &["3"]);
    let again =
        old.run(&["hook", "agent"]).stdin(event.to_string().replace("s-9", "s-10")).go().code(0).stdout();
    assert_ne!(answer, again, "another session meets it for the first time");
}

#[test]
fn a_halted_plan_goes_on_and_a_finished_one_stays() {
    let old = OldState::new("plan");
    let git = |args: &[&str]| {
        let output = Command::new("git").arg("-C").arg(old.path("project")).args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let before = git(&["log", "--format=%H"]);
    old.make("go");
    let run = |plan: &str| -> Done { old.run(&["run", plan, "--commit", "auto"]).go().code(0) };
    has(&run("halts.md").stderr(), &["1 of 3 phases are complete", "BACKSTOP COMPLETE"]);
    assert_eq!(git(&["log", "--format=%s", "-2"]), "Phase 3: Three\nPhase 2: Two\n");
    assert!(git(&["log", "--format=%H"]).ends_with(&before), "what was committed stays");
    let explained = old.run(&["explain", &old.runs("halts.md")[0]]).go().code(0).stdout();
    has(&explained, &["attempt 2 of phase 2", "resumed"]);
    let now = git(&["rev-parse", "HEAD"]);
    run("done.md");
    assert_eq!(git(&["rev-parse", "HEAD"]), now);
}

#[test]
fn a_frozen_project_is_frozen_until_somebody_says_otherwise() {
    let old = OldState::new("frozen");
    let refused = old.run_in("frozen", &["exec", "--", "true"]).go().code(125).stderr();
    has(&refused, &["this project is frozen", "(disk_full)"]);
    old.run_in("frozen", &["unfreeze", "--why", "made room"]).go().code(0);
    old.run_in("frozen", &["exec", "--", "true"]).go().code(0);
}

#[test]
fn hooks_come_out_of_agents_settings_to_the_byte() {
    let old = OldState::new("init");
    old.run(&["init", "--remove", "--project"]).go().code(0);
    old.run(&["init", "--remove", "--user"]).go().code(0);
    for (now, before) in [
        ("project/.claude/settings.json", "before/project-claude/settings.json"),
        ("home/.codex/hooks.json", "before/home-codex/hooks.json"),
    ] {
        assert_eq!(
            String::from_utf8(std::fs::read(old.path(now)).unwrap()).unwrap(),
            std::fs::read_to_string(old.path(before)).unwrap(),
            "{now}"
        );
    }
    assert!(!old.path("project/.opencode").exists(), "what init made is gone");
}
