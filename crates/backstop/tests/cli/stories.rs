//! What people read after a failure: the output in full and in order, one advice on every surface,
//! notes once, times with a zone, and plain answers where there is nothing to show.

use crate::docs::fits;
use crate::harness::{Folder, Project, Run, schema, until};
use crate::plan_text::has;
use serde_json::{Value, json};
use std::process::{Command, Stdio};

fn explain(project: &Project, args: &[&str]) -> String {
    project.run(&[&["explain"], args].concat()).go().code(0).stdout()
}

/// The lines of a story's output, without what stands before the bar.
fn output_lines(story: &str) -> Vec<(String, String)> {
    let bar = |line: &str| {
        let (mark, text) = line.strip_prefix("    ")?.split_once('|')?;
        Some((mark.trim().to_owned(), text.trim().to_owned()))
    };
    story.lines().filter_map(bar).collect()
}

/// Finding 13.
#[test]
fn the_whole_output_of_both_streams_is_shown_in_order() {
    let project = Project::new("stories-log");
    // Each piece is read before the next one is written: the order is known.
    let script = "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo out $n; done; sleep 0.2; echo 'fatal: the cause' >&2; \
                  sleep 0.2; echo last; sleep 0.2; printf 'half a line' >&2; exit 3";
    project.exec(&[], script).go().code(3);
    let log = output_lines(&explain(&project, &["--log"]));
    let mut want: Vec<(String, String)> = (1..=12).map(|n| ("out".into(), format!("out {n}"))).collect();
    want.extend(
        [("err", "fatal: the cause"), ("out", "last"), ("err", "half a line")]
            .map(|(m, t)| (m.into(), t.into())),
    );
    assert_eq!(log, want);
    // Without --log: the end of it, and stdout is there although stderr has text.
    let story = explain(&project, &[]);
    has(&story, &["err | fatal: the cause", "out | last", "--log"]);
    assert!(output_lines(&story).len() <= 8, "{story}");
    // `runs show` is the same.
    let run =
        project.run(&["runs", "--json"]).go().code(0).json()["runs"][0]["run"].as_str().unwrap().to_owned();
    assert_eq!(
        project.run(&["runs", "show", &run, "--log"]).go().code(0).stdout(),
        explain(&project, &[&run, "--log"])
    );
    has(&explain(&project, &["--log", "--markdown"]), &["stdout: out 1\n", "stderr: fatal: the cause"]);
    let story = project.run(&["explain", "--log", "--json"]).go().code(0).json();
    fits(&schema("story"), &story, "explain --log --json");
    let parts = story["entries"][0]["log"].as_array().unwrap();
    let streams: Vec<&str> = parts.iter().map(|part| part["stream"].as_str().unwrap()).collect();
    assert_eq!(streams, ["stdout", "stderr", "stdout", "stderr"]);
    let without = project.run(&["explain", "--json"]).go().code(0).json();
    assert_eq!(without["entries"][0]["log"], Value::Null);
}

#[test]
fn a_log_is_bounded_masked_escaped_and_not_kept_of_a_success() {
    let project = Project::new("stories-bounds");
    project.file("big.py", "import sys\nfor n in range(400000):\n print('line %d' % n)\nsys.stderr.write('the end \\x1b[31m ghp_0123456789abcdefghijABCDEFGHIJ\\n')\nsys.exit(3)\n");
    let run = project
        .exec(&[], "python3 big.py")
        .command()
        // Two places: what goes to one is one stream.
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .status()
        .unwrap();
    assert_eq!(run.code(), Some(3));
    let log = explain(&project, &["--log"]);
    has(
        &log,
        &["out | line 0\n", "out | line 399999\n", "bytes were not kept", "err | the end \\e[31m [redacted]"],
    );
    assert!(log.len() < 3 << 20 && !log.contains('\x1b') && !log.contains("ghp_0123"), "{}", log.len());
    // A success writes nothing of its output.
    project.exec(&[], "printf hel%s lo").go().code(0);
    let story = project.run(&["explain", "--log", "--json"]).go().code(0).json();
    assert_eq!(story["entries"][0]["log"], Value::Null);
    assert!(!explain(&project, &["--log"]).contains("hello"));
}

/// One way to fail, as a command and as a reported error, and what is said about it.
struct Failing {
    name: &'static str,
    output: &'static str,
    /// The error type and the message for the hook.
    reported: (&'static str, &'static str),
    reason: &'static str,
    next: &'static str,
}

const FAILINGS: &[Failing] = &[
    Failing {
        name: "503",
        output: "curl: (22) The requested URL returned error: 503",
        reported: ("ServiceUnavailable", "HTTP 503 from the API"),
        reason: "network_permanent",
        next: "check the service's status",
    },
    Failing {
        name: "dns",
        output: "curl: (6) Could not resolve host: api.example.invalid",
        reported: ("HTTPError", "Could not resolve host: api.example.invalid"),
        reason: "network_permanent",
        next: "check the host name and DNS",
    },
    Failing {
        name: "missing-repository",
        output: "remote: Repository not found.\nfatal: repository 'https://example.invalid/a/b.git/' not found",
        reported: ("ResourceNotFound", "404 Repository not found"),
        reason: "network_permanent",
        next: "check the address, and that the resource still exists",
    },
    Failing {
        name: "auth",
        output: "fatal: Authentication failed for 'https://example.invalid/a/b.git/'",
        reported: ("AuthenticationError", "401 Unauthorized"),
        reason: "auth_error",
        next: "",
    },
    Failing {
        name: "429",
        output: "HTTP/1.1 429 Too Many Requests",
        reported: ("RateLimitExceeded", "429 Too Many Requests"),
        reason: "rate_limited",
        next: "",
    },
];

fn sentence(text: &str) -> String {
    text.trim().trim_end_matches('.').to_lowercase()
}

/// Finding 14: whatever the surface, the same reason and the same next step.
#[test]
fn one_ending_has_one_advice_on_every_surface() {
    for failing in FAILINGS {
        let project = Project::new(&format!("stories-advice-{}", failing.name));
        std::fs::create_dir_all(project.beside("home/.config/backstop")).unwrap();
        let sinks = "[notify.here]\ntype = \"terminal\"\nseverity = \"low\"\n";
        project.settings(sinks);
        project.file("says", failing.output);
        let done = project
            .exec(&["--attempts", "2", "--json", "--report", "report.json"], "cat says >&2; exit 22")
            .go();
        let (told, ending) = (done.stderr(), done.json());
        let name = failing.name;
        assert_eq!(ending["reason"], failing.reason, "{name}: {ending}");
        let next = ending["fault"]["suggested_action"].as_str().unwrap().to_owned();
        if !failing.next.is_empty() {
            assert_eq!(next, failing.next, "{name}");
        }
        // The ending on the terminal, and the notification.
        has(&told, &[&format!("  next: {next}"), &format!("Reason: {} (", failing.reason)]);
        let notified = told.lines().find(|line| line.trim().starts_with("1. ")).unwrap_or_default();
        assert_eq!(sentence(notified.trim().trim_start_matches("1. ")), sentence(&next), "{name}: {told}");
        // The report file, the suggestion for programs, the journal and the story.
        assert_eq!(ending["suggestion"], next.as_str(), "{name}");
        let report: Value = serde_json::from_str(&project.read("report.json")).unwrap();
        assert_eq!(report["fault"]["suggested_action"], next.as_str(), "{name}");
        has(&explain(&project, &[]), &[&format!("failed: {} (", failing.reason), &format!("next: {next};")]);
        has(&explain(&project, &["--markdown"]), &[failing.reason]);
        let events = project.events();
        let end = events.iter().rfind(|event| event["kind"] == "run.ended").unwrap();
        assert_eq!(end["reason"], failing.reason, "{name}");
        hook_agrees(&project, failing);
    }
}

/// The hook's answer has the reason of the journal, and the advice of the story.
fn hook_agrees(project: &Project, failing: &Failing) {
    let (kind, message) = failing.reported;
    let mut answer = Value::Null;
    // Until it is over: what is tried again has no ending yet.
    for _ in 0..8 {
        let report =
            json!({"task_data": {"task_id": failing.name}, "error": {"type": kind, "message": message}});
        answer = project.run(&["hook", "on-error"]).stdin(report.to_string()).go().code(0).json();
        if answer["retry"] == false {
            break;
        }
    }
    let run = answer["run"].as_str().unwrap();
    let events = project.run(&["events", "--run", run, "--json"]).go().code(0).lines();
    let end = events.iter().rfind(|event| event["kind"] == "run.ended").unwrap();
    assert_eq!(answer["reason"], end["reason"], "{}: {answer}", failing.name);
    assert_eq!(answer["reason"], failing.reason, "{}: {answer}", failing.name);
    let next = answer["fallback"]["next"].as_str().unwrap();
    if !failing.next.is_empty() {
        assert_eq!(next, failing.next, "{}: {answer}", failing.name);
    }
    has(&explain(project, &[run]), &[&format!("next: {next};")]);
    let steps = answer["message"].as_str().unwrap();
    let first = steps.lines().find(|line| line.starts_with("1. ")).unwrap();
    assert_eq!(sentence(&first.trim_start_matches("1. ").replace('`', "")), sentence(next), "{steps}");
    if failing.name == "missing-repository" {
        assert!(!steps.contains("DNS") && !steps.contains("host name"), "{steps}");
    }
}

/// Finding 15.
#[test]
fn stats_of_reports_only_do_not_say_that_nothing_failed() {
    let project = Project::new("stories-stats");
    for n in 0..5 {
        for kind in ["ConnectionError", "AuthenticationError"] {
            let report = json!({"task_data": {"task_id": format!("{kind}-{n}")}, "error": {"type": kind, "message": "x"}});
            project.run(&["hook", "on-error"]).stdin(report.to_string()).go().code(0);
        }
    }
    let text = project.run(&["stats"]).go().code(0).stdout();
    assert!(!text.contains("nothing failed") && !text.contains("no attempt"), "{text}");
    has(
        &text,
        &[
            "10 errors reported by hooks: 5 permanent (50 %), 5 transient (50 %)",
            "10 in the last hour",
            "10 runs",
        ],
    );
    let stats = project.run(&["stats", "--json"]).go().code(0).json();
    fits(&schema("stats"), &stats, "stats");
    assert_eq!(
        (stats["reported"]["errors"].as_u64(), stats["reported"]["last_hour"].as_u64()),
        (Some(10), Some(10))
    );
    let page = project.run(&["stats", "--prometheus"]).go().code(0).stdout();
    has(
        &page,
        &[
            "backstop_reported_errors_total{reason=\"auth_error\",class=\"permanent\"} 5\n",
            "backstop_reports_total{outcome=\"failed\"} 5\n",
            "backstop_reported_errors_last_hour 10\n",
        ],
    );
    // A success leaves the first line as it was.
    let fine = Project::new("stories-stats-fine");
    fine.exec(&[], "true").go().code(0);
    has(&fine.run(&["stats"]).go().code(0).stdout(), &["no time was lost: nothing failed"]);
}

/// Finding 16.
#[test]
fn deferred_work_is_offered_once_and_never_after_a_success() {
    let project = Project::new("stories-offers");
    let offered = |text: &str| text.contains("note: deferred work can be run now");
    project.exec(&[], "kill -9 $$").go();
    for _ in 0..2 {
        let done = project.exec(&[], "true").go().code(0);
        assert!(!offered(&done.stderr()), "{}", done.stderr());
    }
    let failed = project.exec(&[], "exit 7").go().code(7);
    has(
        &failed.stderr(),
        &["note: deferred work can be run now: d-1 (sh -c 'kill -9 $$'); `backstop deferred run d-1`"],
    );
    for args in [&["exec", "--", "false"] as &[&str], &["runs"], &["stats"], &["explain"]] {
        let done = project.run(args).go();
        assert!(!offered(&done.stderr()), "{args:?}: {}", done.stderr());
    }
    has(&project.run(&["deferred"]).go().code(0).stdout(), &["sh -c 'kill -9 $$'"]);
    // What is deferred again may be offered again, here by a command that looks.
    project.exec(&[], "kill -9 $$").go();
    assert!(offered(&project.run(&["runs"]).go().code(0).stderr()));
    assert!(!offered(&project.run(&["runs"]).go().code(0).stderr()));
}

/// Finding 17: the limit counts what is printed.
#[test]
fn the_limit_of_events_counts_lines() {
    let project = Project::new("stories-events");
    project.exec(&[], "echo 'error: unexpected argument' >&2; exit 2").go().code(2);
    project.exec(&[], "true").go().code(0);
    let lines = project.run(&["events", "--jsonl", "-n", "1"]).go().code(0).lines();
    assert_eq!(lines.len(), 1);
    fits(&schema("error-classified"), &lines[0], "events --jsonl");
    let emitted = project.run(&["--log-format", "emit", "events", "-n", "1"]).go().code(0).stdout();
    assert_eq!(emitted.lines().count(), 1, "{emitted}");
    assert!(project.run(&["events", "--jsonl", "-n", "0"]).go().code(0).stdout().is_empty());
    let refused = project.run(&["events", "--jsonl", "--kind", "run.ended"]).go().code(2);
    has(&refused.stderr(), &["--jsonl prints events of kind `error.classified` only", "--json"]);
    let unknown = project.run(&["events", "--run", "r-0000"]).go().code(2);
    has(&unknown.stderr(), &["no run r-0000 is recorded"]);
}

/// Finding 17.
#[test]
fn classify_obeys_the_format_or_says_why_not() {
    let json = Run::new(&["--log-format", "json", "classify", "--exit", "1"])
        .stdin("npm error code ECONNRESET\n")
        .go()
        .code(0)
        .json();
    assert_eq!(json["reason"], "network_transient");
    let refused = Run::new(&["classify", "--exit", "1", "--log-format", "emit"]).stdin("x").go().code(2);
    has(&refused.stderr(), &["no format `emit`", "--json"]);
}

/// Finding 17: what a demo says to type can be typed as it stands.
#[test]
fn the_run_that_a_demo_names_explains_itself() {
    let tmp = Folder::outside("stories-demo");
    let here = tmp.path().display().to_string();
    let own = |run: Run| {
        run.dir(tmp.path())
            .env("TMPDIR", &here)
            .env("HOME", &format!("{here}/home"))
            .env("BACKSTOP_STATE_DIR", &format!("{here}/state"))
    };
    let stdout = own(Run::new(&["demo", "command"])).go().code(0).stdout();
    let typed: Vec<String> = stdout
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|line| line.starts_with("backstop explain r-"))
        .map(str::to_owned)
        .collect();
    assert_eq!(typed.len(), 2, "{stdout}");
    for line in typed {
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        let story = own(Run::new(&words)).go().code(0).stdout();
        has(&story, &["sh install.sh", "done", "recovery: retry, it helped"]);
    }
}

#[test]
fn every_kind_of_run_is_explained_in_plain_words() {
    let project = Project::new("stories-kinds");
    has(&explain(&project, &[]), &["no runs are recorded in this project yet", "backstop exec -- COMMAND"]);
    project.exec(&[], "true").go().code(0);
    has(&explain(&project, &[]), &["· done\n", "done after 1 attempt"]);
    // One that goes on.
    let mut child = project.exec(&[], "echo begun > begun; read line").command().spawn().unwrap();
    until("it runs", || !project.read("begun").is_empty());
    has(&explain(&project, &[]), &["· running\n", "still running; last event at", "--follow"]);
    // One whose Backstop was killed.
    child.kill().unwrap();
    child.wait().unwrap();
    has(&explain(&project, &[]), &["· cut off\n", "Backstop was killed while it ran"]);
    drop(child.stdin.take());
    // One that nobody knows.
    let run =
        project.run(&["runs", "--json"]).go().code(0).json()["runs"][1]["run"].as_str().unwrap().to_owned();
    let last = if run.ends_with('0') { '1' } else { '0' };
    let near = format!("{}{last}", &run[..run.len() - 1]);
    let unknown = project.run(&["explain", &near]).go().code(2);
    has(
        &unknown.stderr(),
        &[&format!("no run {near} is recorded"), &format!("did you mean {run}?"), "`backstop runs` lists"],
    );
    let page = project.run(&["explain", "rate_limited"]).go().code(0).stdout();
    has(&page, &["rate_limited"]);
}

#[test]
fn a_story_fits_on_a_screen() {
    let project = Project::new("stories-screen");
    project
        .exec(&["--attempts", "7"], "seq 1 100; echo 'npm error code ECONNRESET' >&2; exit 1")
        .go()
        .code(1);
    let story = explain(&project, &[]);
    assert!(story.lines().count() <= 40, "{story}");
    assert!(!story.contains("\n\n\n"), "{story}");
    has(&story, &["2 more attempts and events: `backstop explain --log", "the same failure as in attempt 1"]);
    assert!(explain(&project, &["--log"]).lines().count() > 7 * 100);
}

/// Times are local with their zone for people, and UTC in JSON.
#[test]
fn people_read_local_times_and_programs_utc() {
    let project = Project::new("stories-zone");
    project.exec(&[], "exit 7").go().code(7);
    let in_zone = |args: &[&str], zone: &str| project.run(args).env("TZ", zone).go().code(0).stdout();
    for args in [&["explain"] as &[&str], &["runs"], &["events"], &["diagnose"], &["explain", "--markdown"]] {
        for (zone, name) in [("XYZ-5:45", " XYZ"), ("<+0330>-3:30", " +0330"), ("", " UTC"), ("UTC", " UTC")]
        {
            assert!(in_zone(args, zone).contains(name), "{args:?} {zone}: {}", in_zone(args, zone));
        }
        assert!(!in_zone(args, "XYZ-5:45").contains(" UTC"), "{args:?}");
    }
    // What leads out of the folder of zones, or is no zone, is UTC.
    for zone in ["../../../etc/passwd", "/etc/passwd", ":nowhere/at/all"] {
        assert!(in_zone(&["runs"], zone).contains(" UTC"), "{zone}");
    }
    let json = project.run(&["explain", "--json"]).env("TZ", "XYZ-5:45").go().code(0).json();
    assert!(json["started"].as_str().unwrap().ends_with('Z'), "{json}");
    let local = Command::new("date").arg("+%Z").env("TZ", "Asia/Kathmandu").output().unwrap();
    let local = String::from_utf8_lossy(&local.stdout).trim().to_owned();
    assert!(in_zone(&["runs"], "Asia/Kathmandu").contains(&format!(" {local}")), "{local}");
}

#[test]
fn our_own_words_begin_on_a_line_of_their_own() {
    let project = Project::new("stories-mid-line");
    let done = project.exec(&[], "printf 'no end of line' >&2; exit 1").go().code(1);
    assert!(done.stderr().starts_with("no end of line\nfailed after 1 attempt"), "{}", done.stderr());
    let done = project.exec(&[], "printf 'no end of line' >&2").go().code(0);
    assert_eq!(done.stderr(), "no end of line");
}

#[test]
fn a_signal_from_elsewhere_is_not_called_a_stop_by_you() {
    let project = Project::new("stories-elsewhere");
    let done = project.exec(&[], "kill -TERM $$").go().code(143);
    has(&done.stderr(), &["ended by SIGTERM from elsewhere"]);
    assert!(!done.stderr().contains("stopped by you"), "{}", done.stderr());
    // Without a terminal no key has sent it.
    let mut alone = project.program("setsid", &["-w", env!("CARGO_BIN_EXE_backstop"), "exec", "--"]);
    let output = alone.args(["sh", "-c", "kill -INT $$"]).output().unwrap();
    has(&String::from_utf8_lossy(&output.stderr), &["ended by SIGINT from elsewhere"]);
}

#[test]
fn the_last_run_is_the_last_thing_that_was_run() {
    let project = Project::new("stories-last");
    project.exec(&[], "exit 3").go().code(3);
    project.run(&["guard", "clear", "anthropic"]).go().code(0);
    has(&explain(&project, &[]), &["exit 3"]);
    project.exec(&[], "exit 3").go().code(3);
    let listed = project.run(&["runs", "-n", "1"]).go().code(0);
    has(&listed.stderr(), &["the newest 1; `backstop runs -n 5` lists more"]);
    assert_eq!(project.run(&["runs", "-n", "1", "--json"]).go().code(0).stderr(), "");
}

/// Whether a text holds a time as programs write it.
fn has_utc(text: &str) -> bool {
    text.as_bytes().windows(2).any(|pair| pair[0].is_ascii_digit() && pair[1] == b'Z')
}

#[test]
fn people_read_local_times_of_what_waits() {
    let project = Project::new("stories-until");
    let in_zone = |args: &[&str], input: &str| {
        let done = project.run(args).env("TZ", "XYZ-5:45").stdin(input).go();
        format!("{}{}", done.stdout(), done.stderr())
    };
    let script = "echo 'HTTP 429 Too Many Requests'; echo 'retry-after: 90000'; exit 1";
    let report = json!({
        "task_data": {"task_id": "t-1"},
        "error": {"type": "RateLimitExceeded", "message": "Error code: 429. Try again in 25h."},
    })
    .to_string();
    let start = json!({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Task",
        "tool_input": {"prompt": "x"}})
    .to_string();
    let answered = in_zone(&["hook", "on-error"], &report);
    let answer: Value = serde_json::from_str(&answered).unwrap();
    assert_eq!(answer["fallback"]["action"], "defer", "{answer}");
    assert!(has_utc(answer["fallback"]["until"].as_str().unwrap()), "{answer}");
    in_zone(&["guard", "ingest", "anthropic", "--headers", "-", "--status", "429"], "retry-after: 90000");
    let told = [
        ("message", answer["message"].as_str().unwrap().to_owned()),
        ("explain of a hook", in_zone(&["explain"], "")),
        ("exec", in_zone(&["exec", "--wait-max", "1s", "--", "sh", "-c", script], "")),
        ("explain", in_zone(&["explain"], "")),
        ("explain --markdown", in_zone(&["explain", "--markdown"], "")),
        ("events", in_zone(&["events"], "")),
        ("deferred", in_zone(&["deferred"], "")),
        ("guard", in_zone(&["guard", "check", "anthropic"], "")),
        ("deny", in_zone(&["hook", "agent"], &start)),
    ];
    for (what, text) in told {
        assert!(text.contains(" XYZ") && !has_utc(&text), "{what}: {text}");
    }
    let json = project.run(&["explain", "--json"]).env("TZ", "XYZ-5:45").go().code(0).json();
    assert!(!json.to_string().contains(" XYZ"), "{json}");
}

#[test]
fn the_story_of_a_report_counts_the_attempts_of_its_task() {
    let project = Project::new("stories-report");
    let report = r#"{"task_data":{"task_id":"t-1"},"error":{"type":"TimeoutError","message":"timed out"}}"#;
    for attempt in 1..=3 {
        project.run(&["hook", "on-error"]).stdin(report).go();
        let told = project.run(&["explain"]).go().code(0).stdout();
        let attempts = if attempt == 1 { "1 attempt".to_owned() } else { format!("{attempt} attempts") };
        has(&told, &[&format!("attempt {attempt} · "), &format!(", after {attempts}\n")]);
        assert!(!told.contains("0 ms"), "{told}");
        let json = project.run(&["explain", "--json"]).go().code(0).json();
        assert_eq!(json["attempts"], attempt, "{json}");
    }
}
