//! What runs a gate beside the gate's own command: `make test` does what the Makefile says.

use super::name_of;

/// A program that is named in a check, and the files that say what it does, in lower case: a name,
/// the beginning of one (`gulpfile.`), or the end of a path (`.cargo/config.toml`).
const RUNNERS: &[(&[&str], &[&str])] = &[
    (&["make", "gmake"], &["makefile", "gnumakefile", "*.mk"]),
    (&["just"], &["justfile", ".justfile"]),
    (&["task", "go-task"], &["taskfile."]),
    (&["rake"], &["rakefile"]),
    (&["ant"], &["build.xml"]),
    (&["mage"], &["magefile.go"]),
    (&["mise"], &["mise.toml", ".mise.toml"]),
    (&["earthly"], &["earthfile"]),
    (&["bazel", "bazelisk"], &[".bazelrc"]),
    (&["tox"], &["tox.ini"]),
    (&["nox"], &["noxfile.py"]),
    (&["invoke", "inv"], &["tasks.py"]),
    (&["pytest", "py.test"], &["conftest.py"]),
    (&["pre-commit", "prek"], &[".pre-commit-config.yaml", ".pre-commit-hooks.yaml"]),
    (&["lefthook"], &["lefthook.", ".lefthook."]),
    (&["cargo"], &["/.cargo/config.toml", "/.cargo/config", "/.config/nextest.toml"]),
    (&["deno"], &["deno.json"]),
    (&["composer"], &["composer.json"]),
    (&["turbo"], &["turbo.json"]),
    (&["nx"], &["nx.json", "project.json"]),
    (&["gulp"], &["gulpfile."]),
    (&["grunt"], &["gruntfile."]),
];

/// The programs that run a script of `package.json`.
const PACKAGE_RUNNERS: &[&str] = &["npm", "yarn", "pnpm", "bun"];

/// The words of a check: those of `cd web && make -s test` are `cd`, `web`, `make`, `-s`, `test`.
pub(super) fn words(check: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '\'' | '"');
    check.split(ends).filter(|word| !word.is_empty())
}

/// Whether a file says what a program of this check does.
pub(super) fn is_of_a_runner(path: &str, check: &str) -> bool {
    let path = path.to_lowercase();
    let is_file = |file: &&str| match file.strip_prefix('*') {
        Some(end) => path.ends_with(end),
        None if file.starts_with('/') => format!("/{path}").ends_with(file),
        None if file.len() > 1 && file.ends_with('.') => name_of(&path).starts_with(file),
        None => name_of(&path) == *file,
    };
    words(check).map(name_of).any(|word| {
        RUNNERS.iter().any(|(programs, files)| programs.contains(&word) && files.iter().any(&is_file))
    })
}

/// Whether a line of `package.json` is the script that this check runs.
pub(super) fn is_script_of(line: &str, check: &str) -> bool {
    let mut words = words(check).map(name_of);
    let key = line.trim_start().strip_prefix('"').and_then(|rest| rest.split_once("\":"));
    let Some((key, _)) = key.filter(|_| words.any(|word| PACKAGE_RUNNERS.contains(&word))) else {
        return false;
    };
    words.any(|word| word == key)
}
