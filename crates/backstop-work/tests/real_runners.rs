//! Real runners on real projects: cargo always, nextest and go where they are there.
#![allow(clippy::unwrap_used)] // Tests.

use backstop_classify::Classifier;
use backstop_core::{Reason, SafeText, Timestamp};
use backstop_exec::Stop;
use backstop_work::gate::{Checked, CommandLine, Gate, GateRun, Origin, detect, run};
use std::fs;
use std::path::Path;

fn here<'a>(folder: &'a Path, classifier: &'a Classifier) -> GateRun<'a> {
    let mut here = GateRun::new(folder, classifier, Timestamp::from_millis(1_700_000_000_000));
    here.env = vec![
        ("CARGO_TARGET_DIR".into(), folder.join("target").into()),
        ("CARGO_NET_OFFLINE".into(), "true".into()),
        ("GOFLAGS".into(), "-mod=mod".into()),
        ("GOPROXY".into(), "off".into()),
    ];
    here
}

fn check(gates: &[Gate], folder: &Path) -> Vec<Checked> {
    let classifier = Classifier::builtin();
    run(gates, &here(folder, &classifier), &Stop::new(), &mut |_| {}, &mut |_, _| {}).unwrap()
}

fn has(program: &str, args: &[&str]) -> bool {
    std::process::Command::new(program).args(args).output().is_ok_and(|out| out.status.success())
}

/// A crate with one test that fails the first time that it is run, and one that always passes.
fn flaky_crate(folder: &Path) {
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("Cargo.toml"), "[package]\nname = \"demo\"\nedition = \"2021\"\n[workspace]\n")
        .unwrap();
    let lib = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn flakes() {\n        let first = !std::path::Path::new(\"seen\").exists();\n        std::fs::write(\"seen\", \"\").unwrap();\n        assert!(!first, \"the first time\");\n    }\n\n    #[test]\n    fn stands() {}\n}\n";
    fs::write(folder.join("src/lib.rs"), lib).unwrap();
}

fn flaked(gate: &Gate, folder: &Path, name: &str, reruns: u32) {
    let checked = check(std::slice::from_ref(gate), folder).remove(0);
    let tail = String::from_utf8_lossy(&checked.tail).into_owned();
    assert!(checked.passed, "{:?}\n{tail}", checked.fault);
    assert_eq!(checked.flaky.iter().map(SafeText::raw).collect::<Vec<_>>(), [name], "{tail}");
    assert_eq!(checked.reruns, reruns, "{tail}");
}

#[test]
fn cargo_runs_only_the_test_that_failed_again() {
    let folder = tempfile::tempdir().unwrap();
    flaky_crate(folder.path());
    let gate =
        |words: &[&str]| Gate { flaky: 1, ..Gate::new("test", CommandLine::words_of(words), Origin::Plan) };
    flaked(&gate(&["cargo", "test", "--no-fail-fast"]), folder.path(), "tests::flakes", 1);
    // Without that, cargo may have ended before other tests: the whole is run once more.
    fs::remove_file(folder.path().join("seen")).unwrap();
    flaked(&gate(&["cargo", "test"]), folder.path(), "tests::flakes", 2);
    if has("cargo", &["nextest", "--version"]) {
        fs::remove_file(folder.path().join("seen")).unwrap();
        flaked(&gate(&["cargo", "nextest", "run", "--no-fail-fast"]), folder.path(), "tests::flakes", 1);
    }
}

#[test]
fn the_gates_of_a_crate_say_what_is_wrong_with_it() {
    let folder = tempfile::tempdir().unwrap();
    flaky_crate(folder.path());
    fs::write(folder.path().join("src/lib.rs"), "pub fn  a() -> bool { let x = true; x == true }\n").unwrap();
    let detected = detect(folder.path());
    let checked = check(&detected.gates, folder.path());
    let found: Vec<_> =
        checked.iter().map(|c| (c.gate.as_str(), c.fault.as_ref().map(|f| f.reason))).collect();
    assert_eq!(
        found,
        [
            ("lint", Some(Reason::LintError)),
            ("format", Some(Reason::FormatError)),
            ("typecheck", None),
            ("test", None),
        ]
    );
    let fault = checked[1].fault.as_ref().unwrap();
    assert_eq!(fault.suggested_action.raw(), "run `cargo fmt --all`, then `cargo fmt --all --check`");
}

#[test]
fn go_runs_only_the_test_that_failed_again() {
    if !has("go", &["version"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("go.mod"), "module demo\n\ngo 1.18\n").unwrap();
    let test = "package demo\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestFlakes(t *testing.T) {\n\tt.Run(\"a b\", func(t *testing.T) {\n\t\t_, err := os.Stat(\"seen\")\n\t\tos.WriteFile(\"seen\", nil, 0o600)\n\t\tif err != nil {\n\t\t\tt.Fatal(\"the first time\")\n\t\t}\n\t})\n}\n\nfunc TestStands(t *testing.T) {}\n";
    fs::write(folder.path().join("demo_test.go"), test).unwrap();
    let mut gates = detect(folder.path()).gates;
    gates.retain(|gate| gate.is_called("test") || gate.is_called("format"));
    gates[1].flaky = 1;
    let checked = check(&gates, folder.path());
    assert!(checked[0].passed, "{:?}", checked[0]);
    assert!(checked[1].passed, "{:?}\n{}", checked[1].fault, String::from_utf8_lossy(&checked[1].tail));
    assert_eq!(checked[1].reruns, 1);
    assert!(checked[1].flaky.iter().any(|test| test.raw() == "TestFlakes"), "{:?}", checked[1].flaky);
    fs::write(folder.path().join("bad.go"), "package  demo\n").unwrap();
    let checked = check(&gates[..1], folder.path());
    assert_eq!(checked[0].fault.as_ref().map(|fault| fault.reason), Some(Reason::FormatError));
    assert_eq!(checked[0].fault.as_ref().unwrap().facts.files[0].raw(), "bad.go");
}
