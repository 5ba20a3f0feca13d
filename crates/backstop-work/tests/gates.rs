//! Gates that are run for real, by small scripts.
#![allow(clippy::unwrap_used)] // Tests.

use backstop_classify::Classifier;
use backstop_core::{Reason, SafeText, Timestamp};
use backstop_exec::Stop;
use backstop_work::gate::{Checked, CommandLine, Gate, GateError, GateRun, Log, Origin, Passes, run};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

static CLASSIFIER: LazyLock<Classifier> = LazyLock::new(Classifier::builtin);

fn shell(name: &str, line: &str) -> Gate {
    Gate::new(name, CommandLine::Shell(line.to_owned()), Origin::Plan)
}

fn argv(name: &str, words: &[&str]) -> Gate {
    Gate::new(name, CommandLine::words_of(words), Origin::Plan)
}

/// Where several tests run commands at once, the folder tells their processes apart.
fn here(folder: &Path) -> GateRun<'_> {
    let mut here = GateRun::new(folder, &CLASSIFIER, Timestamp::from_millis(1_700_000_000_000));
    here.env = vec![("GATE_TEST_FOLDER".into(), folder.into())];
    here.limits.grace = Duration::from_millis(200);
    here
}

fn all(gates: &[Gate], folder: &Path) -> Vec<Checked> {
    run(gates, &here(folder), &Stop::new(), &mut |_| {}, &mut |_, _| {}).unwrap()
}

fn one(gate: Gate, folder: &Path) -> Checked {
    all(&[gate], folder).remove(0)
}

fn reason(checked: &Checked) -> Option<Reason> {
    checked.fault.as_ref().map(|fault| fault.reason)
}

fn said(checked: &Checked) -> String {
    checked.fault.as_ref().unwrap().suggested_action.raw().to_owned()
}

fn script(folder: &Path, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn all_gates_run_in_order_even_when_one_fails() {
    let folder = tempfile::tempdir().unwrap();
    let gates = [
        shell("lint", "echo one >> order; exit 1"),
        shell("test", "echo two >> order"),
        argv("mine", &["sh", "-c", "echo three >> order; exit 3"]),
    ];
    let (mut started, mut done) = (Vec::new(), Vec::new());
    let checked = run(
        &gates,
        &here(folder.path()),
        &Stop::new(),
        &mut |s| started.push((s.gate.to_owned(), s.again, s.child.process.pid > 0)),
        &mut |_, c| done.push(c.gate.clone()),
    )
    .unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("order")).unwrap(), "one\ntwo\nthree\n");
    assert_eq!(done, ["lint", "test", "mine"]);
    assert_eq!(started, ["lint", "test", "mine"].map(|name| (name.to_owned(), 0, true)));
    assert_eq!(
        checked.iter().map(|c| (c.passed, c.exit)).collect::<Vec<_>>(),
        [(false, Some(1)), (true, Some(0)), (false, Some(3)),]
    );
}

#[test]
fn the_name_says_what_a_failure_is_where_its_output_does_not() {
    let folder = tempfile::tempdir().unwrap();
    for (name, wanted) in [
        ("lint", Reason::LintError),
        ("lint:rust", Reason::LintError),
        ("format", Reason::FormatError),
        ("typecheck", Reason::TypecheckError),
        ("test", Reason::TestFailure),
        ("mine", Reason::Unknown),
    ] {
        let checked = one(shell(name, "echo some words; exit 1"), folder.path());
        assert_eq!(reason(&checked), Some(wanted), "{name}");
        assert_eq!(checked.tail, b"some words\n");
    }
}

#[test]
fn what_the_output_says_is_believed() {
    let folder = tempfile::tempdir().unwrap();
    for (name, output, wanted) in [
        ("typecheck", "error: could not compile `x` (lib) due to 1 previous error", Reason::CompileError),
        ("test", "npm error code ENOSPC\nno space left on device", Reason::DiskFull),
        ("lint", "curl: (6) Could not resolve host: example.invalid", Reason::NetworkPermanent),
        ("test", "Tests:       3 failed, 44 passed, 47 total", Reason::TestFailure),
    ] {
        fs::write(folder.path().join("out"), output).unwrap();
        let checked = one(shell(name, "cat out >&2; exit 1"), folder.path());
        let found = reason(&checked).unwrap();
        let network = |r| matches!(r, Reason::NetworkPermanent | Reason::NetworkTransient);
        assert!(found == wanted || (network(found) && network(wanted)), "{output}: {found:?}");
    }
}

#[test]
fn a_missing_tool_is_no_finding() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        argv("lint", &["no-such-linter", "."]),
        shell("lint", "no-such-linter ."),
        shell("lint", "echo 'error: no such command: `no-such-linter`' >&2; exit 101 # cargo no-such-linter"),
        shell("lint", "echo 'Command not found: no-such-linter' >&2; exit 1 # no-such-linter"),
    ];
    for mut gate in cases {
        gate.install = Some("get no-such-linter".to_owned());
        let checked = one(gate.clone(), folder.path());
        assert_eq!(reason(&checked), Some(Reason::DependencyMissing), "{gate:?}");
        assert_eq!(said(&checked), "install it: `get no-such-linter`");
        let missing = checked.fault.unwrap().facts.missing.unwrap();
        assert_eq!(missing.raw(), "no-such-linter");
    }
    let checked = one(argv("lint", &["no-such-linter"]), folder.path());
    assert!(said(&checked).contains("install `no-such-linter`"), "{}", said(&checked));
    assert_eq!(checked.exit, Some(127));
}

#[test]
fn a_file_that_may_not_be_run_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("plain"), "x").unwrap();
    let program = folder.path().join("plain");
    let checked = one(argv("lint", &[program.to_str().unwrap()]), folder.path());
    assert_eq!(reason(&checked), Some(Reason::PermissionDenied));
}

#[test]
fn a_gate_that_must_say_nothing_fails_when_it_speaks() {
    let folder = tempfile::tempdir().unwrap();
    let gate = |line| Gate {
        passes: Passes::SaysNothing,
        fix: Some(CommandLine::words_of(&["gofmt", "-w", "."])),
        ..shell("format", line)
    };
    assert!(one(gate("true"), folder.path()).passed);
    assert!(one(gate("echo warning >&2"), folder.path()).passed);
    let checked = one(gate("printf 'a.go\\nb/c.go\\n'"), folder.path());
    assert_eq!((checked.passed, reason(&checked), checked.exit), (false, Some(Reason::FormatError), Some(0)));
    let fault = checked.fault.clone().unwrap();
    assert_eq!(fault.facts.files.iter().map(SafeText::raw).collect::<Vec<_>>(), ["a.go", "b/c.go"]);
    assert_eq!(fault.facts.failed_count, Some(2));
    assert!(fault.cause.unwrap().raw().contains("lists a.go and 1 more"));
    assert!(said(&checked).starts_with("run `gofmt -w .`, then `printf"), "{}", said(&checked));
    assert_eq!(reason(&one(gate("exit 2"), folder.path())), Some(Reason::FormatError));
}

#[test]
fn the_clock_ends_a_gate_and_it_is_the_clocks_doing() {
    let folder = tempfile::tempdir().unwrap();
    let gate =
        Gate { timeout: Some(Duration::from_millis(200)), flaky: 2, ..shell("test", "echo on; sleep 60") };
    let checked = one(gate, folder.path());
    assert_eq!((reason(&checked), checked.exit, checked.reruns), (Some(Reason::Timeout), None, 0));
    assert!(checked.fault.unwrap().cause.unwrap().raw().contains("which is the limit"));
    let mut silent = here(folder.path());
    silent.limits.idle = Some(Duration::from_millis(200));
    let checked =
        run(&[shell("test", "sleep 60")], &silent, &Stop::new(), &mut |_| {}, &mut |_, _| {}).unwrap();
    assert!(checked[0].fault.as_ref().unwrap().cause.as_ref().unwrap().raw().starts_with("silent for"));
}

#[test]
fn a_request_to_stop_ends_the_running_gate_and_the_rest_is_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let stop = Stop::new();
    let gates = [shell("lint", "sleep 60"), shell("test", "touch ran")];
    let asked = stop.clone();
    let checked = run(&gates, &here(folder.path()), &stop, &mut |_| asked.request(), &mut |_, _| {}).unwrap();
    assert_eq!(checked.len(), 1);
    assert_eq!(reason(&checked[0]), Some(Reason::Interrupted));
    assert!(!folder.path().join("ran").exists());
    assert_eq!(run(&gates, &here(folder.path()), &stop, &mut |_| {}, &mut |_, _| {}).unwrap(), []);
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn everything_is_logged_and_the_end_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let shared = Shared::default();
    let mut logged = here(folder.path());
    logged.log = Log::to(shared.clone());
    let gate = shell("test", "seq 1 20000; echo last >&2; exit 1");
    let checked = run(&[gate], &logged, &Stop::new(), &mut |_| {}, &mut |_, _| {}).unwrap().remove(0);
    let log = String::from_utf8(shared.0.lock().unwrap().clone()).unwrap();
    assert!(log.starts_with("gate test: seq 1 20000; echo last >&2; exit 1\n1\n2\n"), "{}", &log[..80]);
    assert!(log.contains("\n20000\n") && log.contains("last\n"));
    assert!(checked.tail.len() <= 8 << 10 && checked.tail.len() > 7 << 10);
}

#[test]
fn what_cannot_be_run_at_all_is_an_error_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    let ask = |gates: &[Gate], folder: &Path| {
        run(gates, &here(folder), &Stop::new(), &mut |_| {}, &mut |_, _| {}).unwrap_err()
    };
    let first = shell("lint", "touch ran");
    let errors = [
        ask(&[first.clone(), shell("test", " ")], folder.path()),
        ask(&[first.clone(), argv("test", &["a\0b"])], folder.path()),
        ask(&[shell("lint", "true")], &gone),
    ];
    assert!(matches!(errors[0], GateError::Empty { .. }));
    assert!(matches!(errors[1], GateError::Nul { .. }));
    assert!(matches!(errors[2], GateError::Folder { .. }), "{:?}", errors[2]);
    assert!(errors.iter().all(|error| !error.hint().is_empty()));
    assert!(!folder.path().join("ran").exists());
}

/// A runner that fails the first so many times that it is run.
fn flaky_runner(folder: &Path, name: &str, failures: u32, fails: &str, passes: &str) {
    let text = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" >> args\necho x >> count\nif [ $(wc -l < count) -le {failures} ]; then\ncat <<'E'\n{fails}\nE\nexit 1\nfi\ncat <<'E'\n{passes}\nE\n"
    );
    script(folder, name, &text);
}

#[test]
fn a_test_that_fails_once_is_flaky_and_the_gate_has_passed() {
    let folder = tempfile::tempdir().unwrap();
    flaky_runner(
        folder.path(),
        "bin/pytest",
        1,
        "FAILED tests/a.py::test_b - assert 1 == 2\n1 failed, 3 passed in 0.1s",
        "1 passed in 0.1s",
    );
    let program = folder.path().join("bin/pytest");
    let gate = Gate { flaky: 2, ..argv("test", &[program.to_str().unwrap(), "-q"]) };
    let mut again = Vec::new();
    let checked =
        run(&[gate], &here(folder.path()), &Stop::new(), &mut |s| again.push(s.again), &mut |_, _| {})
            .unwrap();
    let checked = &checked[0];
    assert!(checked.passed && checked.fault.is_none(), "{checked:?}");
    assert_eq!(checked.flaky.iter().map(SafeText::raw).collect::<Vec<_>>(), ["tests/a.py::test_b"]);
    assert_eq!((checked.reruns, checked.exit, again), (1, Some(0), vec![0, 1]));
    let fault = checked.flaky_fault().unwrap();
    assert_eq!(fault.reason, Reason::FlakyTest);
    assert_eq!(fault.cause.unwrap().raw(), "tests/a.py::test_b failed, then passed unchanged");
    let args = fs::read_to_string(folder.path().join("args")).unwrap();
    assert_eq!(args, "1\n-q\n2\n--lf\n-q\n");
}

#[test]
fn a_test_that_keeps_failing_fails_the_gate() {
    let folder = tempfile::tempdir().unwrap();
    flaky_runner(
        folder.path(),
        "bin/pytest",
        9,
        "FAILED tests/a.py::test_b - assert 1 == 2\n1 failed in 0.1s",
        "",
    );
    let program = folder.path().join("bin/pytest");
    let gate = Gate { flaky: 2, ..argv("test", &[program.to_str().unwrap()]) };
    let checked = one(gate, folder.path());
    assert_eq!((checked.passed, checked.reruns, checked.flaky.len()), (false, 2, 0));
    assert_eq!(reason(&checked), Some(Reason::TestFailure));
    assert_eq!(checked.flaky_fault(), None);
}

#[test]
fn without_leave_nothing_is_run_again_and_a_broken_build_never_is() {
    let folder = tempfile::tempdir().unwrap();
    let count = || fs::read_to_string(folder.path().join("n")).unwrap().lines().count();
    let checked = one(shell("test", "echo x >> n; echo 1 failed; exit 1"), folder.path());
    assert_eq!((checked.passed, count()), (false, 1));
    let broken =
        "echo x >> n; echo 'error: could not compile `x` (lib) due to 1 previous error' >&2; exit 101";
    let checked = one(Gate { flaky: 3, ..shell("test", broken) }, folder.path());
    assert_eq!((reason(&checked), count()), (Some(Reason::CompileError), 2));
}

#[test]
fn an_unknown_runner_is_run_again_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let line = "echo x >> n; if [ $(wc -l < n) -lt 3 ]; then echo 1 test failed; exit 1; fi";
    let checked = one(Gate { flaky: 2, ..shell("test", line) }, folder.path());
    assert!(checked.passed && checked.reruns == 2, "{checked:?}");
    assert!(checked.flaky_fault().is_some());
}

#[test]
fn a_narrowed_run_without_the_tests_does_not_count() {
    // It exits with 0 and runs nothing, whenever it is given names.
    let folder = tempfile::tempdir().unwrap();
    let text = "#!/bin/sh\nprintf '%s|' \"$@\" >> args\necho >> args\ncase \"$*\" in *--exact*) echo 'running 0 tests'; exit 0;; esac\necho 'test a::b ... FAILED'\necho 'test result: FAILED. 0 passed; 1 failed; 0 ignored'\nexit 101\n";
    script(folder.path(), "bin/cargo", text);
    let program = folder.path().join("bin/cargo");
    let gate = Gate { flaky: 1, ..argv("test", &[program.to_str().unwrap(), "test", "--no-fail-fast"]) };
    let checked = one(gate, folder.path());
    assert!(!checked.passed);
    let args = fs::read_to_string(folder.path().join("args")).unwrap();
    assert_eq!(args, "test|--no-fail-fast|\ntest|--no-fail-fast|--|--exact|a::b|\ntest|--no-fail-fast|\n");
}

#[test]
fn where_a_runner_ends_at_the_first_failure_the_rest_must_pass_too() {
    let folder = tempfile::tempdir().unwrap();
    // The flaky test hides another one, which always fails.
    let text = "#!/bin/sh\necho x >> n\ncase \"$*\" in *'--exact a::b') echo 'test a::b ... ok'; exit 0;; esac\nt=a::b; [ $(wc -l < n) -gt 1 ] && t=c::d\necho \"test $t ... FAILED\"\necho 'test result: FAILED. 0 passed; 1 failed; 0 ignored'\nexit 101\n";
    script(folder.path(), "bin/cargo", text);
    let program = folder.path().join("bin/cargo");
    let gate = Gate { flaky: 1, ..argv("test", &[program.to_str().unwrap(), "test"]) };
    let checked = one(gate, folder.path());
    assert_eq!((checked.passed, checked.reruns), (false, 2));
}

#[test]
fn a_hostile_test_name_reaches_no_shell_and_is_no_flag() {
    for name in ["$(touch owned)", "`touch owned`", "a'; touch owned; '", "\"; touch owned; \""] {
        let folder = tempfile::tempdir().unwrap();
        flaky_runner(
            folder.path(),
            "node_modules/.bin/jest",
            1,
            &format!("  ● {name}\n\nTests:       1 failed, 1 total"),
            "Tests:       1 passed, 1 total",
        );
        fs::write(folder.path().join("package.json"), r#"{"scripts":{"test":"jest"}}"#).unwrap();
        // What `npm test` would do the first time.
        script(folder.path(), "bin/npm", "#!/bin/sh\nexec node_modules/.bin/jest\n");
        let program = folder.path().join("bin/npm");
        let gate = Gate { flaky: 1, ..argv("test", &[program.to_str().unwrap(), "test"]) };
        let checked = one(gate, folder.path());
        assert!(checked.passed && checked.flaky.len() == 1, "{name}: {checked:?}");
        assert!(!folder.path().join("owned").exists(), "{name}");
        let args = fs::read_to_string(folder.path().join("args")).unwrap();
        assert!(args.contains("\n2\n-t\n^("), "{name}: {args}");
    }
}
