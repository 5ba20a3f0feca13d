//! Signs that a change weakens what it is judged by: tests deleted, skipped or changed without
//! being asked for, findings silenced, thresholds lowered, gates' commands and settings changed.
//!
//! A sign is no proof: it is shown to people, who decide. Pure: a unified diff in, sentences out.
//! It must not run anything, and it must not judge the work.

mod runners;
mod test_work;

use backstop_core::SafeText;
use std::collections::BTreeMap;

/// How many signs of one change are kept.
const SIGNS_MAX: usize = 20;
/// How much of a line is shown, in characters.
const LINE_CHARS_MAX: usize = 120;

/// What a change was asked to do, and what it is judged by.
#[derive(Debug, Clone, Copy)]
pub struct Task<'t> {
    /// All that the phase was told: its section, tasks and files.
    pub text: &'t str,
    /// The commands of its gates.
    pub checks: &'t [String],
}

/// One file of a diff.
#[derive(Debug, Default)]
struct FileChange<'d> {
    path: String,
    is_new: bool,
    is_deleted: bool,
    added: Vec<&'d str>,
    removed: Vec<&'d str>,
}

/// What disables a test, in the words of its framework.
const SKIPS: &[&str] = &[
    "#[ignore",
    "@pytest.mark.skip",
    "@pytest.mark.xfail",
    "pytest.skip(",
    "@unittest.skip",
    "self.skiptest(",
    "it.skip(",
    "test.skip(",
    "describe.skip(",
    "it.only(",
    "test.only(",
    "describe.only(",
    "it.todo(",
    "test.todo(",
    "xit(",
    "xdescribe(",
    "t.skip(",
    "t.skipnow(",
    "@disabled",
    "@ignore",
    "[ignore]",
    "skip: true",
    "pending(",
];

/// What silences a finding of a linter, a type checker or a compiler.
const SILENCERS: &[&str] = &[
    "eslint-disable",
    "biome-ignore",
    "prettier-ignore",
    "@ts-ignore",
    "@ts-expect-error",
    "@ts-nocheck",
    "# noqa",
    "# type: ignore",
    "# pyright: ignore",
    "# pylint: disable",
    "# mypy: ignore",
    "#[allow(",
    "#![allow(",
    "#[rustfmt::skip]",
    "//nolint",
    "// nolint",
    "@suppresswarnings",
    "rubocop:disable",
    "phpcs:ignore",
    "@phpstan-ignore",
    "shellcheck disable",
];

/// Settings of tools that gates run, by the beginning of the file's name.
const TOOL_SETTINGS: &[&str] = &[
    ".eslintrc",
    "eslint.config.",
    "biome.json",
    ".prettierrc",
    "tsconfig",
    "jest.config.",
    "vitest.config.",
    "playwright.config.",
    "karma.conf.",
    ".mocharc",
    "ruff.toml",
    ".ruff.toml",
    ".flake8",
    "mypy.ini",
    ".mypy.ini",
    "pytest.ini",
    "tox.ini",
    ".coveragerc",
    "clippy.toml",
    ".clippy.toml",
    "rustfmt.toml",
    ".rustfmt.toml",
    ".golangci.",
    ".rubocop",
    "phpunit.xml",
    "phpstan.",
    "codecov.y",
];

/// What a test claims with, in the words of its framework.
const ASSERTIONS: &[&str] = &[
    "assert",
    "expect(",
    "expect_",
    ".should",
    "should.",
    "must_equal",
    "require.",
    "t.error(",
    "t.errorf(",
    "t.fatal(",
    "t.fatalf(",
    "verify(",
    "check(",
    "is(",
    "ok(",
];

/// Names of numbers that a result must reach.
const THRESHOLDS: &[&str] = &[
    "fail_under",
    "fail-under",
    "coveragethreshold",
    "threshold",
    "minimum_coverage",
    "branches",
    "functions",
    "lines",
    "statements",
];

/// Signs that a change weakens what it is judged by, as sentences.
pub fn signs(diff: &str, task: Task<'_>) -> Vec<SafeText> {
    let mut all: Vec<String> = Vec::new();
    let asked_for_tests = test_work::is_asked_for(task.text);
    for file in files(diff) {
        let is_test = is_test_file(&file.path);
        let is_asked = task.text.contains(&file.path) || task.text.contains(name_of(&file.path));
        let path = SafeText::new(file.path.clone()).line(LINE_CHARS_MAX);
        if is_test && file.is_deleted {
            all.push(format!("deleted the test file {path}"));
        } else if is_test && !file.is_new && !asked_for_tests && !is_asked {
            all.push(format!("changed the test file {path}, which it was not asked to do"));
        }
        let gone = tests_defined(&file.removed).saturating_sub(tests_defined(&file.added));
        if gone > 0 && !file.is_deleted {
            let tests = if gone == 1 { "a test" } else { "tests" };
            all.push(format!("removed {tests} from {path} ({gone})"));
        }
        let gone = assertions(&file.removed).saturating_sub(assertions(&file.added));
        if is_test && gone > 0 && !file.is_deleted {
            let what = if gone == 1 { "an assertion" } else { "assertions" };
            all.push(format!("removed {what} from {path} ({gone})"));
        }
        if let Some(line) = more_of(SKIPS, &file) {
            all.push(format!("skips tests in {path}: {line}"));
        }
        if let Some(line) = more_of(SILENCERS, &file) {
            all.push(format!("silences a finding in {path}: {line}"));
        }
        if let Some((name, before, after)) = lowered(&file) {
            all.push(format!("lowered {name} in {path} from {before} to {after}"));
        }
        if !file.is_new && changes_a_gate(&file, task.checks) {
            all.push(format!("changed {path}, which its gates are run by"));
        }
    }
    all.truncate(SIGNS_MAX);
    all.into_iter().map(SafeText::new).collect()
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a path is that of a test, by the habits of languages.
fn is_test_file(path: &str) -> bool {
    let lower = path.to_lowercase();
    let name = name_of(&lower);
    let stem = name.split('.').next().unwrap_or(name);
    let folders = ["test/", "tests/", "__tests__/", "spec/", "specs/", "testdata/", "__snapshots__/"];
    let in_folder = folders.iter().any(|f| lower.starts_with(f) || lower.contains(&format!("/{f}")));
    in_folder
        || name.contains(".test.")
        || name.contains(".spec.")
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_spec")
        || (name.ends_with(".java") || name.ends_with(".kt")) && stem.ends_with("test")
}

/// How many tests these lines define.
fn tests_defined(lines: &[&str]) -> usize {
    let defines = |line: &&&str| {
        let line = line.trim_start();
        line.starts_with("#[test]")
            || line.starts_with("#[tokio::test")
            || line.starts_with("def test_")
            || line.starts_with("async def test_")
            || line.starts_with("func Test")
            || line.starts_with("@Test")
            || line.starts_with("it(")
            || line.starts_with("test(")
            || line.starts_with("it '")
            || line.starts_with("it \"")
    };
    lines.iter().filter(defines).count()
}

/// How many assertions these lines make.
fn assertions(lines: &[&str]) -> usize {
    let asserts = |line: &&&str| {
        let line = line.to_lowercase();
        ASSERTIONS.iter().any(|word| starts_a_word(&line, word))
    };
    lines.iter().filter(asserts).count()
}

/// The first added line with one of these words, where more of them are added than removed.
fn more_of(words: &[&str], file: &FileChange<'_>) -> Option<String> {
    let has = |line: &&&str| {
        let lower = line.to_lowercase();
        words.iter().any(|word| starts_a_word(&lower, word))
    };
    let removed = file.removed.iter().filter(has).count();
    let added: Vec<&&str> = file.added.iter().filter(has).collect();
    (added.len() > removed).then(|| SafeText::new(added[removed].trim()).line(LINE_CHARS_MAX))
}

/// Whether a word stands in a line and is not the end of another one: `xit(` is no `exit(`.
fn starts_a_word(line: &str, word: &str) -> bool {
    let is_free = |at: usize| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            || !word.starts_with(|c: char| c.is_alphanumeric())
    };
    line.match_indices(word).any(|(at, _)| is_free(at))
}

/// A number that was lowered: its name, what it was and what it is.
fn lowered(file: &FileChange<'_>) -> Option<(String, f64, f64)> {
    let named = |lines: &[&str]| -> BTreeMap<&'static str, f64> {
        let one = |line: &&str| {
            let lower = line.to_lowercase();
            let name = THRESHOLDS.iter().find(|name| lower.contains(*name))?;
            let rest = &lower[lower.find(name)? + name.len()..];
            let digits: String = rest
                .chars()
                .skip_while(|c| !c.is_ascii_digit())
                .take_while(|c| c.is_ascii_digit() || *c == '.')
                .collect();
            Some((*name, digits.parse().ok()?))
        };
        lines.iter().filter_map(one).collect()
    };
    let (before, after) = (named(&file.removed), named(&file.added));
    before.into_iter().find_map(|(name, was)| {
        let is = *after.get(name)?;
        (is < was).then(|| (name.to_owned(), was, is))
    })
}

/// Whether a file decides what a gate runs or accepts.
fn changes_a_gate(file: &FileChange<'_>, checks: &[String]) -> bool {
    let name = name_of(&file.path);
    let is_named = |check: &String| {
        runners::words(check).any(|word| word.trim_start_matches("./") == file.path)
            || runners::is_of_a_runner(&file.path, check)
    };
    let is_script = |line: &&str| {
        let line = line.trim_start();
        ["\"test", "\"lint", "\"typecheck", "\"type-check", "\"format", "\"check"]
            .iter()
            .any(|key| line.starts_with(key) && line.contains("\":"))
            || checks.iter().any(|check| runners::is_script_of(line, check))
    };
    checks.iter().any(is_named)
        || TOOL_SETTINGS.iter().any(|start| name.starts_with(start))
        || (name == "package.json" && file.removed.iter().any(is_script))
}

/// The files of a unified diff.
fn files(diff: &str) -> Vec<FileChange<'_>> {
    let mut all: Vec<FileChange<'_>> = Vec::new();
    let mut in_hunk = false;
    for line in diff.lines() {
        if let Some(paths) = line.strip_prefix("diff --git ") {
            let path = paths.rsplit_once(" b/").map_or(paths, |(_, path)| path);
            all.push(FileChange { path: path.trim_end_matches('"').to_owned(), ..FileChange::default() });
            in_hunk = false;
            continue;
        }
        let Some(file) = all.last_mut() else { continue };
        if line.starts_with("@@") {
            in_hunk = true;
        } else if !in_hunk {
            file.is_new |= line.starts_with("new file mode");
            file.is_deleted |= line.starts_with("deleted file mode");
        } else if let Some(added) = line.strip_prefix('+') {
            file.added.push(added);
        } else if let Some(removed) = line.strip_prefix('-') {
            file.removed.push(removed);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(path: &str, head: &str, lines: &[&str]) -> String {
        format!(
            "diff --git a/{path} b/{path}\n{head}--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n{}\n",
            lines.join("\n")
        )
    }

    fn found(diff: &str, text: &str) -> Vec<String> {
        let checks = ["sh check.sh".to_owned()];
        signs(diff, Task { text, checks: &checks }).iter().map(|sign| sign.raw().to_owned()).collect()
    }

    #[test]
    fn every_way_to_weaken_a_check_is_a_sign() {
        let cases: &[(String, &str)] = &[
            (diff("tests/a.test.js", "", &["-expect(1)", "+expect(2)"]), "changed the test file"),
            (
                diff("tests/test_a.py", "deleted file mode 100644\n", &["-def test_a():"]),
                "deleted the test file",
            ),
            (diff("src/lib.rs", "", &["-    #[test]", "-    fn a() {}"]), "removed a test from"),
            (
                diff("tests/a.test.js", "", &["-  expect(sum(1, 2)).toBe(3);", "+  sum(1, 2);"]),
                "removed an assertion from",
            ),
            (
                diff("tests/test_a.py", "", &["-    assert a() == 1", "-    assert b() == 2", "+    a()"]),
                "removed assertions from tests/test_a.py (2)",
            ),
            (diff("src/lib.rs", "", &["+    #[ignore = \"later\"]"]), "skips tests"),
            (diff("a_spec.rb", "", &["+  xit('works')"]), "skips tests"),
            (diff("src/a.ts", "", &["+// @ts-ignore"]), "silences a finding"),
            (diff("src/a.py", "", &["+import os  # noqa: F401"]), "silences a finding"),
            (diff("setup.cfg", "", &["-fail_under = 90", "+fail_under = 60"]), "lowered fail_under"),
            (
                diff("package.json", "", &["-  \"test\": \"jest\",", "+  \"test\": \"true\","]),
                "its gates are run by",
            ),
            (diff("check.sh", "", &["-npm test", "+true"]), "its gates are run by"),
            (diff(".eslintrc.json", "", &["-\"no-var\": 2", "+\"no-var\": 0"]), "its gates are run by"),
        ];
        for (diff, sign) in cases {
            let found = found(diff, "write the parser");
            assert!(found.iter().any(|known| known.contains(sign)), "{sign}: {found:?}");
        }
    }

    #[test]
    fn what_a_gates_program_reads_is_what_it_is_judged_by() {
        let line = ["-test: all", "+test:"];
        let signed = |check: &str, path: &str, head: &str, lines: &[&str]| {
            let checks = [check.to_owned()];
            let signs = signs(&diff(path, head, lines), Task { text: "write the parser", checks: &checks });
            signs.iter().any(|sign| sign.raw().contains("which its gates are run by"))
        };
        for (check, path) in [
            ("make test", "Makefile"),
            ("cd web && make -s test", "web/rules.mk"),
            ("/usr/bin/make", "GNUmakefile"),
            ("just check", "justfile"),
            ("task lint", "Taskfile.yml"),
            ("nox -s tests", "noxfile.py"),
            ("tox -q", "tox.ini"),
            ("pre-commit run -a", ".pre-commit-config.yaml"),
            ("cargo check-all", ".cargo/config.toml"),
            ("cargo nextest run", "crates/a/.config/nextest.toml"),
            ("python3 -m pytest", "conftest.py"),
            ("npx gulp test", "gulpfile.mjs"),
            ("bundle exec rake", "Rakefile"),
        ] {
            assert!(signed(check, path, "", &line), "{check}: {path}");
        }
        for (check, path) in [
            ("cargo test", "Makefile"),
            ("make test", "src/make.rs"),
            ("make test", "docs/Makefile.md"),
            ("cargo test", "crates/a/config.toml"),
            ("taskset 1 npm test", "Taskfile.yml"),
        ] {
            assert!(!signed(check, path, "", &line), "{check}: {path}");
        }
        assert!(!signed("make test", "Makefile", "new file mode 100644\n", &["+test:"]));
        // The script that the gate runs, whatever it is called.
        let verify = ["-  \"verify\": \"jest\",", "+  \"verify\": \"true\","];
        assert!(signed("npm run verify", "package.json", "", &verify));
        assert!(!signed("npm run other", "package.json", "", &verify));
    }

    #[test]
    fn an_assertion_that_is_dropped_is_a_sign_even_where_tests_are_the_task() {
        let dropped = diff("tests/a.test.js", "", &["-  expect(sum(1, 2)).toBe(3);", "+  sum(1, 2);"]);
        let signs = found(&dropped, "Update the tests of the parser.");
        assert_eq!(signs, ["removed an assertion from tests/a.test.js (1)"]);
    }

    #[test]
    fn that_tests_must_pass_does_not_ask_for_a_change_of_tests() {
        let changed = diff("tests/a.test.js", "", &["-expect(1)", "+expect(2)"]);
        let signs = found(&changed, "Write the parser. All tests must pass.");
        assert_eq!(signs, ["changed the test file tests/a.test.js, which it was not asked to do"]);
    }

    #[test]
    fn ordinary_work_has_no_sign() {
        let cases: &[(String, &str)] = &[
            // New tests are welcome, asked for or not.
            (
                diff("tests/b.test.js", "new file mode 100644\n", &["+test('b', () => {})"]),
                "write the parser",
            ),
            // Tests that it was asked to work on.
            (diff("tests/a.test.js", "", &["-expect(1)", "+expect(2)"]), "update the tests of the parser"),
            (diff("tests/a.test.js", "", &["-expect(1)", "+expect(2)"]), "change `a.test.js`"),
            (diff("src/a.rs", "", &["+process::exit(1);", "+fn latest(lines: u8) {}"]), "write the parser"),
            (diff("src/a.rs", "", &["-#[allow(dead_code)]"]), "write the parser"),
            (diff("setup.cfg", "", &["-fail_under = 60", "+fail_under = 90"]), "write the parser"),
            (diff("package.json", "", &["+  \"left-pad\": \"1\","]), "write the parser"),
            (diff("src/contest.py", "", &["+x = 1"]), "write the parser"),
        ];
        for (diff, text) in cases {
            assert_eq!(found(diff, text), Vec::<String>::new());
        }
    }
}
