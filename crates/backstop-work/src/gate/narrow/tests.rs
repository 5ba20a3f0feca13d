use super::*;
use backstop_core::SafeText;
use proptest::prelude::*;
use std::fs;

fn facts(names: &[&str], files: &[&str]) -> Facts {
    Facts {
        failed_tests: names.iter().map(|n| SafeText::new(*n)).collect(),
        files: files.iter().map(|n| SafeText::new(*n)).collect(),
        ..Facts::default()
    }
}

/// A folder with the runners of Node and these scripts.
fn folder(scripts: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("node_modules/.bin")).unwrap();
    for tool in ["jest", "vitest", "mocha"] {
        fs::write(folder.path().join("node_modules/.bin").join(tool), "").unwrap();
    }
    fs::write(folder.path().join("package.json"), format!("{{\"scripts\":{{{scripts}}}}}")).unwrap();
    folder
}

fn shell(line: &str) -> CommandLine {
    CommandLine::Shell(line.to_owned())
}

/// What each runner writes where so many tests fail and nothing else does.
fn output(check: &str, names: usize) -> String {
    let all = [
        ("nextest", format!("     Summary [   0.01s] 9 tests run: 1 passed, {names} failed, 0 skipped\n")),
        ("cargo", format!("test result: FAILED. 3 passed; {names} failed; 0 ignored\n")),
        ("go ", "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tdemo\t0.1s\n".to_owned()),
        ("vitest", format!("      Tests  {names} failed | 3 passed (9)\n")),
        ("unit", format!("      Tests  {names} failed | 3 passed (9)\n")),
        ("mocha", format!("  3 passing (4ms)\n  {names} failing\n")),
        ("run m", format!("  3 passing (4ms)\n  {names} failing\n")),
        ("", format!("Test Suites: 1 failed, 1 total\nTests:       {names} failed, 9 total\n")),
    ];
    all.into_iter().find(|(what, _)| check.contains(what)).unwrap().1
}

fn argv(check: &str, names: &[&str], files: &[&str], folder: &Path) -> Option<Vec<String>> {
    let bin = format!("{}/node_modules/.bin/", folder.display());
    let text = output(check, names.len());
    let narrowed = narrow(&shell(check), &facts(names, files), folder, text.as_bytes())?;
    Some(narrowed.argv.iter().map(|word| word.replace(&bin, "BIN/")).collect())
}

#[test]
fn every_runner_is_told_only_what_failed() {
    let here = folder(r#""test":"jest --ci","unit":"vitest run","m":"mocha 'test/*.js'""#);
    type Case<'c> = (&'c str, &'c [&'c str], &'c [&'c str], &'c [&'c str]);
    let cases: &[Case<'_>] = &[
        ("cargo test", &["a::b", "c"], &[], &["cargo", "test", "--", "--exact", "a::b", "c"]),
        (
            "cargo +nightly test -p x -- --test-threads=1",
            &["a"],
            &[],
            &["cargo", "+nightly", "test", "-p", "x", "--", "--test-threads=1", "--exact", "a"],
        ),
        (
            "cargo test --doc",
            &["src/lib.rs - add (line 3)"],
            &[],
            &["cargo", "test", "--doc", "--", "--exact", "src/lib.rs - add (line 3)"],
        ),
        (
            "cargo nextest run --all",
            &["a::b", "c"],
            &[],
            &["cargo", "nextest", "run", "-E", "test(=a::b) | test(=c)", "--all"],
        ),
        ("pytest -q tests", &["tests/a.py::test_b"], &[], &["pytest", "--lf", "-q", "tests"]),
        ("python3 -m pytest", &["t"], &[], &["python3", "-m", "pytest", "--lf"]),
        ("uv run --frozen pytest", &["t"], &[], &["uv", "run", "--frozen", "pytest", "--lf"]),
        (
            "poetry run python -m pytest -q",
            &["t"],
            &[],
            &["poetry", "run", "python", "-m", "pytest", "--lf", "-q"],
        ),
        (
            "go test ./...",
            &["TestA", "TestB/sub.one", "TestB/two"],
            &[],
            &["go", "test", "-run", "^(TestA|TestB)$", "-count=1", "-v", "./..."],
        ),
        (
            "npx jest --ci",
            &["math › adds (1+1)"],
            &["src/math.test.js"],
            &["BIN/jest", "--ci", "-t", r"^(math adds \(1\+1\))$", "--runTestsByPath", "src/math.test.js"],
        ),
        ("npm test", &["a"], &["src/math.js"], &["BIN/jest", "--ci", "-t", "^(a)$"]),
        (
            "npm run unit",
            &["s > a", "b"],
            &["a.spec.ts"],
            &["BIN/vitest", "run", "-t", "^(s a|b)$", "a.spec.ts"],
        ),
        ("pnpm exec vitest run src", &["a"], &["a.spec.ts"], &["BIN/vitest", "run", "src", "-t", "^(a)$"]),
        ("yarn run mocha", &["Queue pops"], &[], &["BIN/mocha", "-g", "^(Queue pops)$"]),
        ("npm run m", &["Queue pops"], &[], &["BIN/mocha", "test/*.js", "-g", "^(Queue pops)$"]),
        ("./node_modules/.bin/mocha", &["a"], &[], &["./node_modules/.bin/mocha", "-g", "^(a)$"]),
    ];
    for (check, names, files, wanted) in cases {
        let got = argv(check, names, files, here.path());
        assert_eq!(
            got.as_deref(),
            Some(&wanted.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..]),
            "{check}"
        );
    }
}

#[test]
fn what_cannot_be_narrowed_safely_is_run_as_a_whole() {
    let here = folder(
        r#""test":"jest","posttest":"echo","chain":"lint && jest","jest":"other","env":"CI=1 jest","stub":"make test""#,
    );
    for check in [
        "cargo test && cargo test --doc",
        "cargo test $PACKAGES",
        "RUST_LOG=1 cargo test",
        "make test",
        "npm test",
        "npm run chain",
        "npm run jest",
        "npm run env",
        "npm run stub",
        "npm run nothing",
        "npm run unit -- --x",
        "npx other",
        "bun test",
        "python3 -m unittest",
        "uv run --with x pytest",
        "pytest -p no:cacheprovider",
        "go test -run X ./...",
        "go test -json ./...",
        "npx jest -t x",
        "npx mocha --grep=x",
        "cargo nextest run -E 'test(x)'",
        "cargo build",
        "",
    ] {
        assert_eq!(
            narrow(&shell(check), &facts(&["a"], &[]), here.path(), output(check, 1).as_bytes()),
            None,
            "{check}"
        );
    }
    let gone = tempfile::tempdir().unwrap();
    assert_eq!(
        narrow(&shell("npx jest"), &facts(&["a"], &[]), gone.path(), output("jest", 1).as_bytes()),
        None
    );
}

#[test]
fn tests_that_are_not_all_known_by_name_are_not_narrowed_to() {
    let here = tempfile::tempdir().unwrap();
    let cargo = CommandLine::words_of(&["cargo", "test"]);
    let many: Vec<String> = (0..100).map(|n| format!("t{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let long = "x".repeat(NAMES_BYTES_MAX + 1);
    let too_few = Facts { failed_count: Some(3), ..facts(&["a", "b"], &[]) };
    for known in [
        facts(&[], &[]),
        facts(&many, &[]),
        facts(&[&long], &[]),
        facts(&["a\0b"], &[]),
        facts(&["a\nb"], &[]),
        too_few,
    ] {
        assert_eq!(
            narrow(&cargo, &known, here.path(), output("cargo", known.failed_tests.len()).as_bytes()),
            None
        );
    }
}

#[test]
fn a_runner_that_ends_at_the_first_failure_is_known() {
    let here = folder("");
    let cases: &[(&str, &str, bool)] = &[
        ("cargo test", "", true),
        ("cargo test --no-fail-fast", "", false),
        ("cargo nextest run", "", true),
        ("cargo nextest run --no-fail-fast", "", false),
        ("pytest", "", false),
        ("pytest -x", "", true),
        ("pytest -vx", "", true),
        ("pytest --maxfail=2", "", true),
        ("pytest", "!!!!! stopping after 1 failures !!!!!", true),
        ("go test ./...", "", false),
        ("go test -failfast ./...", "", true),
        ("npx jest", "", false),
        ("npx jest", "Test Suites: 1 failed, 1 of 3 total", true),
        ("npx jest --bail=1", "", true),
        ("npx vitest run", "", false),
        ("npx vitest run --bail 1", "", true),
        ("npx mocha", "", false),
        ("npx mocha -b", "", true),
    ];
    for (check, text, early) in cases {
        let text = format!("{text}\n{}", output(check, 1));
        let narrowed = narrow(&shell(check), &facts(&["a"], &[]), here.path(), text.as_bytes()).unwrap();
        assert_eq!(narrowed.stops_early, *early, "{check}");
    }
}

#[test]
fn where_more_failed_than_has_a_name_it_is_not_narrowed() {
    let here = folder("");
    let cases: &[(&str, &str, bool)] = &[
        ("cargo test", "test result: FAILED. 3 passed; 1 failed; 0 ignored", true),
        ("cargo test", "test result: FAILED. 3 passed; 2 failed; 0 ignored", false),
        (
            "cargo test",
            "test result: FAILED. 0 passed; 1 failed;\ntest result: FAILED. 0 passed; 1 failed;",
            false,
        ),
        (
            "cargo test",
            "test result: FAILED. 3 passed; 1 failed;\nCaused by:\n  process didn't exit successfully: `x` (signal: 11)",
            false,
        ),
        ("cargo test", "", false),
        ("cargo nextest run", "Summary [ 0.1s] 3 tests run: 1 passed, 1 failed, 0 skipped", true),
        (
            "cargo nextest run",
            "Summary [ 0.1s] 3 tests run: 1 passed, 1 failed, 1 timed out, 0 skipped",
            false,
        ),
        ("go test ./...", "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\ta\t0.1s\nok  \tb\t0.1s\nFAIL", true),
        ("go test ./...", "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\ta\t0.1s\nFAIL\tb\t0.1s\nFAIL", false),
        ("go test ./...", "--- FAIL: TestA (0.00s)\npanic: x [recovered]\nFAIL\ta\t0.1s", false),
        ("go test ./...", "--- FAIL: TestA (0.00s)\nFAIL\ta\t0.1s\nFAIL\tb [build failed]", false),
        ("npx jest", "Tests:       1 failed, 9 total", true),
        ("npx jest", "Tests:       2 failed, 9 total", false),
        ("npx jest", "  ● Test suite failed to run\nTests:       1 failed, 9 total", false),
        ("npx vitest run", "      Tests  1 failed | 2 passed (3)", true),
        ("npx vitest run", "⎯⎯ Failed Suites 1 ⎯⎯\n      Tests  1 failed | 2 passed (3)", false),
        ("npx mocha", "  1 passing (4ms)\n  1 failing", true),
        ("npx mocha", "  1 passing (4ms)\n  2 failing", false),
        ("pytest", "", true),
    ];
    for (check, text, narrows) in cases {
        let narrowed = narrow(&shell(check), &facts(&["TestA"], &[]), here.path(), text.as_bytes());
        assert_eq!(narrowed.is_some(), *narrows, "{check}: {text}");
    }
}

#[test]
fn a_pass_without_the_tests_is_no_pass() {
    let one = || vec!["a::b".to_owned()];
    let cases: &[(Proof, &str, bool)] = &[
        (Proof::CargoOk(one()), "running 1 test\ntest a::b ... ok\n", true),
        (Proof::CargoOk(one()), "test a::b - should panic ... ok\n", true),
        (Proof::CargoOk(one()), "test a::bc ... ok\n", false),
        (Proof::CargoOk(one()), "running 0 tests\n\ntest result: ok. 0 passed; 9 filtered out\n", false),
        (Proof::NextestPass(one()), "        PASS [   0.004s] (1/1) demo a::b\n", true),
        (
            Proof::NextestPass(one()),
            "        \x1b[32;1mPASS\x1b[0m [   0.004s] demo \x1b[34ma::b\x1b[0m\n",
            true,
        ),
        (Proof::NextestPass(one()), "        PASS [   0.004s] demo x::a::b\n", false),
        (Proof::GoPass(vec!["TestA".into()]), "=== RUN   TestA\n--- PASS: TestA (0.00s)\n", true),
        (Proof::GoPass(vec!["TestA".into()]), "--- PASS: TestAB (0.00s)\n", false),
        (Proof::GoPass(vec!["TestA".into()]), "testing: warning: no tests to run\nPASS\nok x 0.1s\n", false),
        (Proof::TestsPassed(2), "Tests:       4 skipped, 2 passed, 6 total\n", true),
        (Proof::TestsPassed(2), "Tests:       5 skipped, 1 passed, 6 total\n", false),
        (Proof::TestsPassed(1), "Tests:       6 skipped, 6 total\n", false),
        (Proof::TestsPassed(1), "      Tests  1 passed | 3 skipped (4)\n", true),
        (Proof::TestsPassed(1), "      Tests  4 skipped (4)\n", false),
        (Proof::Passing(1), "\n  1 passing (4ms)\n", true),
        (Proof::Passing(1), "\n  0 passing (4ms)\n", false),
        (Proof::None, "", true),
    ];
    for (proof, text, holds) in cases {
        assert_eq!(proof.holds(text.as_bytes()), *holds, "{proof:?} in {text:?}");
    }
}

/// What means something in a pattern.
const META: &str = ".+*?()|[]{}^$";

const RUNNERS: &[&str] = &[
    "cargo test",
    "cargo nextest run",
    "pytest",
    "go test ./...",
    "npx jest",
    "npx vitest run",
    "npx mocha",
];

#[test]
fn a_hostile_name_is_an_argument_or_nothing() {
    let here = folder("");
    for name in [
        "$(touch x)",
        "`touch x`",
        "a'; touch x; '",
        "a\"b",
        "-x",
        "--nocapture",
        "--",
        "a|b",
        "(a",
        "a)b",
        ".*",
    ] {
        for check in RUNNERS {
            let Some(found) = argv(check, &[name], &[name], here.path()) else { continue };
            assert!(!matches!(found[0].as_str(), "sh" | "bash" | "npx" | "npm"), "{check}: {found:?}");
            let own: Vec<String> = argv(check, &["plain"], &[], here.path()).unwrap();
            // Nothing begins with a dash that does not for a plain name.
            let flags =
                |words: &[String]| words.iter().filter(|w| w.starts_with('-')).cloned().collect::<Vec<_>>();
            assert_eq!(flags(&found), flags(&own), "{check} with {name}");
        }
    }
}

proptest! {
    #[test]
    fn no_name_becomes_a_flag_or_meets_a_shell(names in prop::collection::vec("\\PC{0,20}", 0..5)) {
        let here = folder("");
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for check in RUNNERS {
            if let Some(found) = argv(check, &names, &names, here.path()) {
                let own = argv(check, &["plain"], &[], here.path()).unwrap();
                let flags = |words: &[String]| words.iter().filter(|w| w.starts_with('-')).count();
                prop_assert_eq!(flags(&found), flags(&own), "{} {:?}", check, found);
                prop_assert_eq!(&found[0], &own[0]);
            }
        }
    }

    #[test]
    fn an_escaped_name_means_only_itself(name in "[ -~]{1,20}") {
        let escaped = write::escaped(&name);
        // Every character that means something follows a backslash.
        let mut chars = escaped.chars();
        let mut plain = String::new();
        while let Some(c) = chars.next() {
            let c = if c == '\\' { chars.next().unwrap() } else {
                prop_assert!(!META.contains(c));
                c
            };
            plain.push(c);
        }
        prop_assert_eq!(plain, name);
    }
}
