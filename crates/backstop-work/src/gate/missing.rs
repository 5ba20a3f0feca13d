//! Whether it is the gate's own tool that is missing.
//!
//! A linter that is not installed is no lint error. The classifier knows what shells and cargo say;
//! runners of tools (`npx`, `uv run`, `rustup`) have words of their own, which mean this only where
//! they name a word of the gate's command.

use super::CommandLine;
use backstop_core::SafeText;

/// The exit code with which a shell says that there is no such program.
const NOT_FOUND: i32 = 127;

/// What runners say of a tool that is not there: what stands before its name, and what after it.
/// Nothing after it means the end of the line.
const MISSING_PHRASES: &[(&str, &str)] = &[
    // uv run
    ("Failed to spawn: `", "`"),
    // poetry run
    ("Command not found: ", ""),
    // npx --no-install
    ("missing packages and no YES option: [\"", "\"]"),
    // pnpm exec, yarn 1
    ("Command \"", "\" not found"),
    // yarn 2 and later
    ("Couldn't find a script named \"", "\""),
    // bun run
    ("Script not found \"", "\""),
    // rustup
    ("error: '", "' is not installed for the toolchain"),
    // rustup, newer
    ("error: '", "' is not installed for the custom toolchain"),
    // cargo
    ("no such command: `", "`"),
    // python -m
    ("No module named ", ""),
];

/// The gate's tool, where that is what is missing.
pub(super) fn missing_tool(
    check: &CommandLine,
    found: Option<&SafeText>,
    code: Option<i32>,
    tail: &[u8],
) -> Option<String> {
    let words = check.rough_words();
    let known = |name: &str| {
        let name = tool_name(name);
        words.iter().any(|word| tool_name(word) == name).then(|| name.to_owned())
    };
    if code == Some(NOT_FOUND) {
        let program = || words.first().map(|word| tool_name(word).to_owned());
        return found.map(|name| name.raw().to_owned()).or_else(program);
    }
    if let Some(name) = found.and_then(|name| known(name.raw())) {
        return Some(name);
    }
    let text = String::from_utf8_lossy(tail);
    text.lines().rev().flat_map(missing_names).find_map(known)
}

/// Names of which a line says that they are missing.
fn missing_names(line: &str) -> impl Iterator<Item = &str> {
    MISSING_PHRASES.iter().filter_map(move |(before, after)| {
        let (_, rest) = line.split_once(before)?;
        let name = if after.is_empty() { rest.trim() } else { rest.split_once(after)?.0 };
        (!name.is_empty()).then_some(name.trim_matches(['\'', '"']))
    })
}

/// `cargo-clippy`, `eslint@9` and `/usr/bin/ruff` by their own names.
fn tool_name(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = name.strip_prefix("cargo-").unwrap_or(name);
    match name.find('@') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_runner_says_in_its_own_words_that_a_tool_is_missing() {
        let cases = [
            (
                "uv run --frozen ruff check .",
                "error: Failed to spawn: `ruff`\n  Caused by: No such file",
                "ruff",
            ),
            ("poetry run mypy .", "Command not found: mypy", "mypy"),
            (
                "npx --no-install eslint .",
                "npm error npx canceled due to missing packages and no YES option: [\"eslint@9.1.0\"]",
                "eslint",
            ),
            (
                "pnpm exec eslint .",
                "ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL  Command \"eslint\" not found",
                "eslint",
            ),
            ("yarn run eslint .", "error Command \"eslint\" not found.", "eslint"),
            ("yarn run eslint .", "Usage Error: Couldn't find a script named \"eslint\".", "eslint"),
            ("bun run tsc", "error: Script not found \"tsc\"", "tsc"),
            ("cargo clippy", "error: 'cargo-clippy' is not installed for the toolchain 'stable'.", "clippy"),
            (
                "cargo fmt --all --check",
                "error: 'cargo-fmt' is not installed for the toolchain 'stable'.",
                "fmt",
            ),
            ("cargo nextest run", "error: no such command: `nextest`", "nextest"),
            ("python3 -m pytest", "/usr/bin/python3: No module named pytest", "pytest"),
        ];
        for (check, tail, tool) in cases {
            let check = CommandLine::Shell(check.to_owned());
            assert_eq!(missing_tool(&check, None, Some(1), tail.as_bytes()).as_deref(), Some(tool), "{tail}");
        }
    }

    #[test]
    fn what_the_work_misses_is_not_the_gates_tool() {
        let check = CommandLine::words_of(&["pytest"]);
        let requests = SafeText::new("requests");
        let tail = b"ModuleNotFoundError: No module named 'requests'";
        assert_eq!(missing_tool(&check, Some(&requests), Some(1), tail), None);
        // A shell that does not find a program says 127, whoever asked for it.
        assert_eq!(missing_tool(&check, Some(&requests), Some(127), b"").as_deref(), Some("requests"));
        assert_eq!(missing_tool(&check, None, Some(127), b"").as_deref(), Some("pytest"));
    }
}
