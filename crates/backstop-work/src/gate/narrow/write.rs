//! The narrowed command of each runner.

use super::runner::{Runner, RunnerCommand};
use super::{Narrowed, Proof};

/// Words of a nextest filter that mean nothing but themselves.
const NEXTEST_CHARS: &str = "_:#.-";

/// The command narrowed to these tests. Nothing, where it cannot be done safely.
pub(super) fn narrowed(
    found: &RunnerCommand,
    names: &[&str],
    files: &[&str],
    text: &[u8],
) -> Option<Narrowed> {
    let (own, args) = found.words.split_at(found.args_at);
    let line = Line { own, args };
    match found.runner {
        Runner::Cargo => cargo(&line, names),
        Runner::Nextest => nextest(&line, names),
        Runner::Pytest => pytest(&line, text),
        Runner::Go => go(&line, names),
        Runner::Jest => jest(&line, names, files, text),
        Runner::Vitest => vitest(&line, names, files),
        Runner::Mocha => mocha(&line, names),
    }
}

/// A command in two parts: what runs the runner, and the runner's arguments.
struct Line<'w> {
    own: &'w [String],
    args: &'w [String],
}

impl Line<'_> {
    /// Whether one of these flags is there, alone or with its value.
    fn has(&self, flags: &[&str]) -> bool {
        self.args.iter().any(|arg| is_flag(arg, flags))
    }

    /// Whether there is `--`, after which nothing is a flag.
    fn has_end_of_flags(&self) -> bool {
        self.args.iter().any(|arg| arg == "--")
    }

    /// The command with more arguments before and after its own.
    fn with(&self, first: &[String], last: &[String]) -> Vec<String> {
        [self.own, first, self.args, last].concat()
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// `cargo test … -- --exact a b`. The harness knows no way to say that a name is no flag.
fn cargo(line: &Line<'_>, names: &[&str]) -> Option<Narrowed> {
    if names.iter().any(|name| name.starts_with('-')) {
        return None;
    }
    let mut last = Vec::new();
    if !line.has_end_of_flags() {
        last.push("--".to_owned());
    }
    last.push("--exact".to_owned());
    last.extend(owned(names));
    Some(Narrowed {
        argv: line.with(&[], &last),
        proof: Proof::CargoOk(owned(names)),
        stops_early: !line.has(&["--no-fail-fast"]),
    })
}

/// `cargo nextest run -E 'test(=a) | test(=b)' …`. Two filters would mean either.
fn nextest(line: &Line<'_>, names: &[&str]) -> Option<Narrowed> {
    let plain = |name: &&str| name.chars().all(|c| c.is_alphanumeric() || NEXTEST_CHARS.contains(c));
    if !names.iter().all(plain) || line.has(&["-E", "--filter-expr", "--filterset"]) {
        return None;
    }
    let filter = names.iter().map(|name| format!("test(={name})")).collect::<Vec<_>>().join(" | ");
    Some(Narrowed {
        argv: line.with(&["-E".to_owned(), filter], &[]),
        proof: Proof::NextestPass(owned(names)),
        stops_early: !line.has(&["--no-fail-fast", "--nff"]),
    })
}

/// `pytest --lf …`: it knows itself what failed last, by names that nobody else could garble.
fn pytest(line: &Line<'_>, text: &[u8]) -> Option<Narrowed> {
    if line.args.iter().any(|arg| arg.contains("no:cacheprovider")) {
        return None;
    }
    // `-vx` is `-v -x`.
    let clustered = |arg: &String| arg.starts_with('-') && !arg.starts_with("--") && arg[1..].contains('x');
    let stopped = String::from_utf8_lossy(text).contains("stopping after");
    Some(Narrowed {
        argv: line.with(&["--lf".to_owned()], &[]),
        proof: Proof::None,
        stops_early: line.has(&["--exitfirst", "--maxfail", "--stepwise"])
            || line.args.iter().any(clustered)
            || stopped,
    })
}

/// `go test -run '^(A|B)$' -count=1 -v …`: whole tests, for a subtest is found by another pattern
/// on each level.
fn go(line: &Line<'_>, names: &[&str]) -> Option<Narrowed> {
    if line.has(&["-run", "--run", "-json", "--json", "-skip", "--skip"]) {
        return None;
    }
    let mut tops: Vec<&str> = Vec::new();
    for top in names.iter().map(|name| name.split('/').next().unwrap_or(name)) {
        if !tops.contains(&top) {
            tops.push(top);
        }
    }
    let first = ["-run", &any_of(tops.iter().copied()), "-count=1", "-v"].map(str::to_owned);
    Some(Narrowed {
        argv: line.with(&first, &[]),
        proof: Proof::GoPass(owned(&tops)),
        stops_early: line.has(&["-failfast", "--failfast"]),
    })
}

/// `jest … -t '^(suite name|…)$' --runTestsByPath a.test.js`.
fn jest(line: &Line<'_>, names: &[&str], files: &[&str], text: &[u8]) -> Option<Narrowed> {
    if line.has(&["-t", "--testNamePattern", "--json"]) || line.has_end_of_flags() {
        return None;
    }
    let full: Vec<String> = names.iter().map(|name| name.replace(" › ", " ")).collect();
    let mut last = vec!["-t".to_owned(), any_of(full.iter().map(String::as_str))];
    let files = test_files(files);
    // With paths of its own, ours would be more, not fewer.
    if !files.is_empty() && line.args.iter().all(|arg| arg.starts_with('-')) {
        last.push("--runTestsByPath".to_owned());
        last.extend(files);
    }
    Some(Narrowed {
        argv: line.with(&[], &last),
        proof: Proof::TestsPassed(names.len()),
        stops_early: line.has(&["-b", "--bail"]) || suites_left_out(text),
    })
}

/// `vitest run … -t '^(suite name|…)$' a.test.ts`.
fn vitest(line: &Line<'_>, names: &[&str], files: &[&str]) -> Option<Narrowed> {
    if line.has(&["-t", "--testNamePattern"]) || line.has_end_of_flags() {
        return None;
    }
    let full: Vec<String> = names.iter().map(|name| name.replace(" > ", " ")).collect();
    let mut last = vec!["-t".to_owned(), any_of(full.iter().map(String::as_str))];
    if line.args.iter().all(|arg| arg.starts_with('-') || arg == "run") {
        last.extend(test_files(files));
    }
    Some(Narrowed {
        argv: line.with(&[], &last),
        proof: Proof::TestsPassed(names.len()),
        stops_early: line.has(&["--bail"]),
    })
}

/// `mocha … -g '^(suite name|…)$'`.
fn mocha(line: &Line<'_>, names: &[&str]) -> Option<Narrowed> {
    if line.has(&["-g", "--grep", "-f", "--fgrep", "-i", "--invert"]) || line.has_end_of_flags() {
        return None;
    }
    Some(Narrowed {
        argv: line.with(&[], &["-g".to_owned(), any_of(names.iter().copied())]),
        proof: Proof::Passing(names.len()),
        stops_early: line.has(&["-b", "--bail"]),
    })
}

/// Whether an argument is one of these flags, alone or with its value.
fn is_flag(arg: &str, flags: &[&str]) -> bool {
    flags.iter().any(|flag| {
        arg.strip_prefix(flag).is_some_and(|rest| {
            let short = flag.len() == 2 && !flag.starts_with("--");
            rest.is_empty() || rest.starts_with('=') || short
        })
    })
}

/// A pattern for exactly one of these. It begins with `^`, so it is never taken for a flag.
fn any_of<'n>(names: impl Iterator<Item = &'n str>) -> String {
    format!("^({})$", names.map(escaped).collect::<Vec<_>>().join("|"))
}

/// A text in which no character of a pattern means anything, in Go's dialect and in JavaScript's.
pub(super) fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Files that hold tests, as arguments that are never flags. Nothing, where one of the files does
/// not.
fn test_files(files: &[&str]) -> Vec<String> {
    let holds = |file: &&str| {
        (file.contains(".test.") || file.contains(".spec.") || file.contains("__tests__"))
            && !file.starts_with('-')
            && !file.chars().any(char::is_control)
    };
    if files.iter().all(holds) { files.iter().map(|file| (*file).to_owned()).collect() } else { Vec::new() }
}

/// Whether jest says that it did not run all suites.
fn suites_left_out(text: &[u8]) -> bool {
    String::from_utf8_lossy(text)
        .lines()
        .any(|line| line.trim_start().starts_with("Test Suites:") && line.contains(" of "))
}
