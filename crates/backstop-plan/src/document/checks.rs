//! Commands in a plan that check the work: the lines of a "Validation Commands" or "Verification"
//! section that run a known checker. What starts a server, installs or publishes something is not
//! one of them, nor is prose.

use super::inline::code_spans;

/// The most commands that one section gives.
const CHECKS_MAX: usize = 16;

/// Programs that check something.
const PROGRAMS: &[&str] = &[
    "cargo",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "deno",
    "pytest",
    "tox",
    "nox",
    "ruff",
    "mypy",
    "pyright",
    "black",
    "flake8",
    "pylint",
    "go",
    "gofmt",
    "golangci-lint",
    "make",
    "just",
    "task",
    "bazel",
    "cmake",
    "ctest",
    "gradle",
    "gradlew",
    "mvn",
    "mvnw",
    "dotnet",
    "swift",
    "xcodebuild",
    "flutter",
    "dart",
    "mix",
    "rake",
    "rspec",
    "rubocop",
    "composer",
    "phpunit",
    "tsc",
    "eslint",
    "prettier",
    "jest",
    "vitest",
    "playwright",
    "cypress",
    "biome",
    "shellcheck",
    "terraform",
    "cabal",
    "stack",
    "zig",
    "ninja",
    "meson",
    "test",
    "grep",
    "rg",
    "diff",
    "sh",
    "bash",
    "openspec",
    "vue-tsc",
    "svelte-check",
    "mocha",
    "ava",
    "stylelint",
    "markdownlint",
    "bandit",
    "isort",
    "nyc",
    "c8",
];

/// Programs that run another one, which is what counts, and the word before it.
const WRAPPERS: &[(&str, Option<&str>)] = &[
    ("npx", None),
    ("bunx", None),
    ("uvx", None),
    ("uv", Some("run")),
    ("poetry", Some("run")),
    ("pipenv", Some("run")),
    ("hatch", Some("run")),
    ("pdm", Some("run")),
    ("pixi", Some("run")),
    ("bundle", Some("exec")),
    ("pnpm", Some("exec")),
    ("yarn", Some("exec")),
    ("npm", Some("exec")),
];

/// Interpreters, and the word that makes a check of what they run. Without it, a file named after a
/// check is one.
const INTERPRETERS: &[(&str, &[&str])] = &[
    ("python", &["-m"]),
    ("python3", &["-m"]),
    ("node", &["--test", "--check"]),
    ("ruby", &["-c"]),
    ("php", &["-l"]),
];

/// Python's modules that check something.
const MODULES: &[&str] = &[
    "pytest",
    "unittest",
    "doctest",
    "mypy",
    "pyright",
    "ruff",
    "flake8",
    "black",
    "pylint",
    "isort",
    "bandit",
    "coverage",
    "tox",
    "nox",
    "behave",
    "compileall",
    "py_compile",
    "build",
];

/// What is in the name of a file, or is the word, of something that checks.
const CHECK_WORDS: &[&str] =
    &["test", "tests", "spec", "check", "checks", "lint", "verify", "validate", "typecheck", "build"];

/// Words that make a command something else than a check: it would not end, or would change the
/// machine.
const NO_CHECKS: &[&str] = &[
    "dev",
    "start",
    "serve",
    "server",
    "runserver",
    "watch",
    "--watch",
    "--dev",
    "--reload",
    "preview",
    "install",
    "ci",
    "i",
    "add",
    "sync",
    "publish",
    "deploy",
    "up",
    "push",
    "migrate",
    "apply",
];

/// Programs whose `run` starts what was built.
const RUNNERS: &[&str] = &["cargo", "go", "dotnet", "swift", "flutter", "make", "just", "task"];

/// Whether a line is a command that checks something.
pub(crate) fn is_check(line: &str) -> bool {
    let parts: Vec<&str> = line.split("&&").map(str::trim).collect();
    // `cd web && npm test`: only the last one counts, and the others go there.
    let Some((last, before)) = parts.split_last() else { return false };
    is_single_check(last) && before.iter().all(|part| part.starts_with("cd ") || is_single_check(part))
}

fn is_single_check(line: &str) -> bool {
    let is_assignment =
        |word: &&str| word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains('-'));
    let words: Vec<&str> = line.split_whitespace().skip_while(is_assignment).collect();
    let (words, is_wrapped) = unwrapped(&words);
    let Some(first) = words.first() else { return false };
    let name = first.rsplit('/').next().unwrap_or(first);
    if let Some((_, flags)) = INTERPRETERS.iter().find(|(known, _)| *known == name) {
        return is_checking_script(&words[1..], flags);
    }
    // `npx vite build` checks, `npx vite` serves.
    if is_wrapped && !PROGRAMS.contains(&name) {
        return words[1..].first().is_some_and(|word| CHECK_WORDS.contains(word));
    }
    let is_script = first.starts_with("./") || first.starts_with("scripts/") || first.starts_with("bin/");
    if !(PROGRAMS.contains(&name) || is_script) {
        return false;
    }
    let runs = RUNNERS.contains(&name) && words.get(1) == Some(&"run");
    let other = words[1..].iter().take(3).any(|word| NO_CHECKS.contains(word));
    !(runs || other || line.ends_with('&'))
}

/// The words of the program that is run in the end, and whether another one runs it.
fn unwrapped<'w>(words: &'w [&'w str]) -> (&'w [&'w str], bool) {
    let mut rest = words;
    // Nobody wraps more often.
    for n in 0..4 {
        let wrapper = WRAPPERS.iter().find(|(name, _)| rest.first() == Some(name));
        let inner = match wrapper {
            Some((_, None)) => &rest[1..],
            Some((_, Some(word))) if rest.get(1) == Some(word) => &rest[2..],
            _ => return (rest, n > 0),
        };
        let flags = inner.iter().take_while(|word| word.starts_with('-')).count();
        rest = &inner[flags..];
    }
    (rest, true)
}

/// Whether an interpreter with these words checks something.
fn is_checking_script(words: &[&str], flags: &[&str]) -> bool {
    match words {
        ["-m", module, ..] if flags.contains(&"-m") => MODULES.contains(module),
        [flag, ..] if flags.contains(flag) => true,
        // `node scripts/check.js`, `php vendor/bin/phpunit`, `python tests/run_tests.py`.
        [file, ..] if !file.starts_with('-') => {
            let name = file.rsplit('/').next().unwrap_or(file);
            let stem = name.split('.').next().unwrap_or(name);
            PROGRAMS.contains(&stem) || stem.split(['_', '-']).any(|part| CHECK_WORDS.contains(&part))
        }
        _ => false,
    }
}

/// The commands in these lines, and the lines of code that are none. A line comes with its number
/// and whether it is code of a shell.
pub(crate) fn commands<'l>(
    lines: impl Iterator<Item = (usize, &'l str, bool)>,
) -> (Vec<String>, Vec<(usize, String)>) {
    let (mut checks, mut others) = (Vec::new(), Vec::new());
    let mut add = |command: &str, line: usize, others: &mut Vec<(usize, String)>| {
        let command = command.trim().trim_start_matches("$ ").trim();
        let command = command.split(" #").next().unwrap_or(command).trim();
        if command.is_empty() || command.starts_with('#') {
            return;
        }
        match is_check(command) {
            true if checks.len() < CHECKS_MAX && !checks.iter().any(|known| known == command) => {
                checks.push(command.to_owned());
            }
            true => {}
            false => others.push((line, command.to_owned())),
        }
    };
    let mut joined = String::new();
    for (line, text, is_code) in lines {
        if is_code {
            joined.push_str(text.trim());
            if joined.ends_with('\\') {
                joined.pop();
                continue;
            }
            add(&std::mem::take(&mut joined), line, &mut others);
            continue;
        }
        // A line of prose names a command when nothing but a few words surround its code.
        let text = text.trim();
        let spans = code_spans(text);
        if let Some(span) = spans.first() {
            let command = text[span.clone()].trim_matches('`');
            let before = text[..span.start].trim_matches(|c: char| !c.is_alphanumeric());
            if before.split_whitespace().count() <= 2 && command.contains(' ') && is_check(command) {
                add(command, line, &mut others);
            }
        }
    }
    (checks, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_told_from_what_starts_or_changes_something() {
        for yes in [
            "cargo test",
            "npm run lint",
            "cd web && npm test",
            "CI=1 pytest -q",
            "./scripts/check.sh",
            "uv run pytest",
            "go vet ./...",
            "python -m unittest",
            "uv run --frozen pytest -q",
            "npx vite build",
            "npx tsc --noEmit",
            "bundle exec rspec",
            "poetry run python -m mypy src",
            "node --test",
            "python scripts/check_links.py",
            "php vendor/bin/phpunit",
            "make check",
        ] {
            assert!(is_check(yes), "{yes}");
        }
        for no in [
            "npm run dev",
            "cargo run",
            "npm ci",
            "curl localhost:3000",
            "docker compose up",
            "go run .",
            "rm -rf x",
            "npm start &",
            "curl x && npm test",
            "python app.py",
            "node server.js",
            "npx vite",
            "uv run uvicorn app:app",
            "uv run python -m src.main --dev",
            "python -m http.server",
            "make run",
            "php -S localhost:8000",
            "uv sync",
            "",
        ] {
            assert!(!is_check(no), "{no}");
        }
    }

    #[test]
    fn commands_are_found_in_code_and_in_short_lines() {
        let lines = [
            (0, "# lint first", true),
            (1, "$ cargo clippy \\", true),
            (2, "  --all-targets", true),
            (3, "curl -f localhost", true),
            (4, "- Run `cargo test -p api` and look", false),
            (5, "- The result of `cargo test` is green, as ever", false),
            (6, "1. `npm run lint`", false),
        ];
        let (checks, others) = commands(lines.into_iter());
        assert_eq!(checks, ["cargo clippy --all-targets", "cargo test -p api", "npm run lint"]);
        assert_eq!(others, [(3, "curl -f localhost".to_owned())]);
    }
}
