//! Which test runner a command runs.
//!
//! Wrappers that start a program directly (`uv run`, `poetry run`) are kept. Those that go through
//! a shell (`npx`, `npm test`) are replaced by the program itself, where it lies in
//! `node_modules/.bin`.

use super::super::detect::package_scripts;
use crate::command::plain_words;
use std::path::Path;

/// A test runner whose command line is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runner {
    Cargo,
    Nextest,
    Pytest,
    Jest,
    Vitest,
    Mocha,
    Go,
}

/// A command that runs a test runner.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RunnerCommand {
    pub(super) runner: Runner,
    /// The whole command.
    pub(super) words: Vec<String>,
    /// Where the runner's own arguments begin.
    pub(super) args_at: usize,
}

/// Options of `uv run` that take no value. With any other, nobody knows where the program begins.
const UV_OPTIONS: &[&str] = &[
    "--frozen",
    "--locked",
    "--no-sync",
    "--all-extras",
    "--dev",
    "--no-dev",
    "--isolated",
    "-q",
    "--quiet",
];
/// Options of `npx` and its kin that take no value.
const NPX_OPTIONS: &[&str] = &["--no-install", "--no", "--yes", "-y", "--", "--silent", "-s"];

/// The runner of a command, where it is known.
pub(super) fn find(words: Vec<String>, folder: &Path) -> Option<RunnerCommand> {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    match base(word(0)) {
        "cargo" => cargo(words),
        "go" if word(1) == "test" => Some(RunnerCommand { runner: Runner::Go, words, args_at: 2 }),
        "pytest" | "py.test" => Some(RunnerCommand { runner: Runner::Pytest, words, args_at: 1 }),
        "uv" if word(1) == "run" => {
            let skipped = words[2..].iter().take_while(|w| UV_OPTIONS.contains(&w.as_str())).count();
            python(words, 2 + skipped)
        }
        "poetry" | "pdm" | "pipenv" if word(1) == "run" => python(words, 2),
        name if name.starts_with("python") => python(words, 0),
        "jest" | "vitest" | "mocha" => {
            let runner = script_runner(base(word(0)))?;
            Some(RunnerCommand { runner, words, args_at: 1 })
        }
        "npx" | "bunx" => tool(&words[1..], folder),
        "npm" | "pnpm" | "yarn" | "bun" => managed(&words, folder),
        _ => None,
    }
}

fn cargo(words: Vec<String>) -> Option<RunnerCommand> {
    let at = 1 + usize::from(words.get(1).is_some_and(|word| word.starts_with('+')));
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    match (word(at), word(at + 1)) {
        ("test" | "t", _) => Some(RunnerCommand { runner: Runner::Cargo, words, args_at: at + 1 }),
        ("nextest", "run" | "r") => Some(RunnerCommand { runner: Runner::Nextest, words, args_at: at + 2 }),
        _ => None,
    }
}

/// `pytest`, or `python -m pytest`, from this word on.
fn python(words: Vec<String>, at: usize) -> Option<RunnerCommand> {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let args_at = match base(word(at)) {
        "pytest" | "py.test" => at + 1,
        name if name.starts_with("python") && word(at + 1) == "-m" && word(at + 2) == "pytest" => at + 3,
        _ => return None,
    };
    Some(RunnerCommand { runner: Runner::Pytest, words, args_at })
}

/// A package manager that runs a tool or a script.
fn managed(words: &[String], folder: &Path) -> Option<RunnerCommand> {
    let manager = base(&words[0]);
    let rest: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    match (manager, rest.as_slice()) {
        (_, ["exec", ..]) => tool(&words[2..], folder),
        ("npm" | "pnpm" | "yarn", ["test"]) | ("npm", ["t"]) => script("test", folder),
        (_, ["run" | "run-script", "jest" | "vitest" | "mocha", ..]) => {
            // A script of that name would be run in its place.
            let shadowed = package_scripts(folder).is_none_or(|scripts| scripts.contains_key(&words[2]));
            if shadowed { None } else { tool(&words[2..], folder) }
        }
        (_, ["run" | "run-script", name]) => script(name, folder),
        _ => None,
    }
}

/// A script of package.json that runs one tool and nothing else.
fn script(name: &str, folder: &Path) -> Option<RunnerCommand> {
    let scripts = package_scripts(folder)?;
    let around = [format!("pre{name}"), format!("post{name}")];
    if around.iter().any(|other| scripts.contains_key(other)) {
        return None;
    }
    tool(&plain_words(scripts.get(name)?)?, folder)
}

/// A tool of Node, by its file.
fn tool(words: &[String], folder: &Path) -> Option<RunnerCommand> {
    let skipped = words.iter().take_while(|word| NPX_OPTIONS.contains(&word.as_str())).count();
    let (name, args) = words[skipped..].split_first()?;
    let runner = script_runner(name)?;
    let program = format!("node_modules/.bin/{name}");
    if !folder.join(&program).is_file() {
        return None;
    }
    // Relative to the folder it is run in; a program is looked up before the folder is changed to.
    let program = folder.join(program).to_str()?.to_owned();
    let words = std::iter::once(program).chain(args.iter().cloned()).collect();
    Some(RunnerCommand { runner, words, args_at: 1 })
}

fn script_runner(name: &str) -> Option<Runner> {
    match name {
        "jest" => Some(Runner::Jest),
        "vitest" => Some(Runner::Vitest),
        "mocha" => Some(Runner::Mocha),
        _ => None,
    }
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}
