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
    "npx",
    "bunx",
    "deno",
    "node",
    "python",
    "python3",
    "pytest",
    "uv",
    "poetry",
    "pipenv",
    "hatch",
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
    "bundle",
    "rake",
    "rspec",
    "rubocop",
    "php",
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
];

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
const RUNNERS: &[&str] = &["cargo", "go", "dotnet", "swift", "flutter"];

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
    let Some(first) = words.first() else { return false };
    let name = first.rsplit('/').next().unwrap_or(first);
    let is_script = first.starts_with("./") || first.starts_with("scripts/") || first.starts_with("bin/");
    if !(PROGRAMS.contains(&name) || is_script) {
        return false;
    }
    let runs = RUNNERS.contains(&name) && words.get(1) == Some(&"run");
    let other = words[1..].iter().take(3).any(|word| NO_CHECKS.contains(word));
    !(runs || other || line.ends_with('&'))
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
