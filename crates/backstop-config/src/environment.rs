//! Every environment variable that Backstop reads or sets: one list, from which the reference is
//! generated.
//!
//! This module must not read any of them. A test checks the rest of the code against this list.

use crate::KEYS;
use backstop_core::nearest::nearest;

/// What Backstop does with a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Reads it.
    Read,
    /// Sets it, for the commands that it runs.
    Set,
    /// Sets it, and reads it when it runs inside itself.
    Both,
}

/// One environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The name of the variable.
    pub name: String,
    /// What Backstop does with it.
    pub direction: Direction,
    /// What it is for, in one line.
    pub doc: String,
}

use Direction::{Both, Read, Set};

const OWN: &[(&str, Direction, &str)] = &[
    ("BACKSTOP_STATE_DIR", Read, "the folder of the store, instead of `$XDG_STATE_HOME/backstop`"),
    ("BACKSTOP_DISABLE", Read, "`1` turns every recovery off: commands run once, unchanged"),
    ("BACKSTOP_SESSION", Read, "a name for the session, recorded with every event"),
    ("BACKSTOP_CALLER", Read, "a name for the caller, recorded with every event"),
    (
        "BACKSTOP_RUN_ID",
        Both,
        "the run that a command belongs to; a Backstop started inside records it as its parent",
    ),
    ("BACKSTOP_ATTEMPT", Set, "the number of the attempt, counted from 1"),
    ("BACKSTOP_PHASE", Set, "the phase of a plan, such as `2a`"),
    (
        "BACKSTOP_RESULT",
        Set,
        "the file for the result of a phase, as JSON; a command may write it, an agent must",
    ),
    ("BACKSTOP_RETRY_CONTEXT", Set, "a file with the failure of the phase's last attempt, as JSON"),
    ("BACKSTOP_PREVIOUS", Set, "the commit with the changes of the phase's last attempt"),
    (
        "BACKSTOP_SLOT",
        Set,
        "the number of the worktree that a phase runs in, counted from 1; for port numbers and the like",
    ),
    (
        "BACKSTOP_DEADLINE",
        Both,
        "when a command must have ended, as RFC 3339; a Backstop started inside obeys it",
    ),
    ("BACKSTOP_RUN_MARK", Set, "a mark on every process of a run, so that leftovers are found"),
    ("BACKSTOP_UPSTREAM_MARK", Set, "a mark on every process of an MCP server, so that leftovers are found"),
    ("BACKSTOP_CRASH_AT", Read, "debug builds only, for tests: ends Backstop at this commit of the journal"),
    ("BACKSTOP_CLOCK_FILE", Read, "debug builds only, for tests: simulated time"),
    ("BACKSTOP_CLOCK_JUMP", Read, "debug builds only, for tests: makes the clock jump"),
];

const OTHERS: &[(&str, Direction, &str)] = &[
    ("XDG_STATE_HOME", Read, "the folder above the store's `backstop`; else `~/.local/state`"),
    ("XDG_CONFIG_HOME", Read, "the folder above your `backstop/config.toml`; else `~/.config`"),
    ("HOME", Read, "the home folder"),
    ("PATH", Read, "where agents are looked for, by `init`, `doctor` and before a plan starts"),
    ("CLAUDE_CONFIG_DIR", Read, "the folder of your Claude Code settings; else `~/.claude`"),
    ("CODEX_HOME", Read, "the folder of your Codex hooks; else `~/.codex`"),
    ("TZ", Read, "the local time zone; else what `/etc/localtime` says"),
    ("NO_COLOR", Read, "any value turns colour off"),
    ("CI", Read, "any value turns colour and progress off"),
    ("TERM", Read, "`dumb` turns colour off"),
    ("LC_ALL", Read, "whether characters outside ASCII may be used; beats `LC_CTYPE` and `LANG`"),
    ("LC_CTYPE", Read, "the same; beats `LANG`"),
    ("LANG", Read, "the same"),
    ("GITHUB_TOKEN", Read, "the token of a `github` sink that names no variable of its own"),
    (
        "HTTPS_PROXY",
        Read,
        "the proxy for `https` addresses, as `http://USER:PASSWORD@HOST:PORT`; also in lower case",
    ),
    ("HTTP_PROXY", Read, "the proxy for `http` addresses; also in lower case"),
    ("ALL_PROXY", Read, "the proxy where neither of the two is set; also in lower case"),
    (
        "NO_PROXY",
        Read,
        "hosts, domains and address ranges that are reached without a proxy; also in lower case",
    ),
    (
        "REQUEST_METHOD",
        Read,
        "set by web servers for CGI programs, where `HTTP_PROXY` is a visitor's and not used",
    ),
    ("SUDO_UID", Read, "the user whose files root reads as its own"),
    ("RUST_BACKTRACE", Read, "any value but 0 shows where a defect of Backstop lies"),
    ("TMPDIR", Read, "where the demo makes its folder"),
    ("GIT_CEILING_DIRECTORIES", Set, "for the demo's commands, so that git finds no repository around them"),
];

fn listed(list: &[(&str, Direction, &str)]) -> impl Iterator<Item = Variable> {
    list.iter().map(|(name, direction, doc)| Variable {
        name: (*name).to_owned(),
        direction: *direction,
        doc: (*doc).to_owned(),
    })
}

fn from_keys() -> impl Iterator<Item = Variable> {
    KEYS.iter().filter_map(|key| {
        let doc = format!("sets `{}`: {}", key.name, key.doc);
        Some(Variable { name: key.variable()?, direction: Read, doc })
    })
}

/// Every variable, in the order in which it is shown.
pub fn all() -> Vec<Variable> {
    listed(OWN).chain(from_keys()).chain(listed(OTHERS)).collect()
}

/// The names in an environment that look like ours but are not, each with the nearest known name,
/// so that a typo such as `BACKSTOP_EXEC_TIMOUT` is noticed.
fn strangers<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<(String, Option<String>)> {
    let known: Vec<String> = all().into_iter().map(|variable| variable.name).collect();
    let ours = names.into_iter().filter(|name| name.starts_with("BACKSTOP_"));
    let strange = ours.filter(|name| !known.iter().any(|known| known == name));
    strange
        .map(|name| (name.to_owned(), nearest(name, known.iter().map(String::as_str)).map(str::to_owned)))
        .collect()
}

/// Variables that look like ours and are not: a mistake in one must not pass unseen. What it is,
/// and what was meant.
pub fn warnings(names: &[String]) -> Vec<(String, String)> {
    let warning = |(name, near): (String, Option<String>)| {
        let hint = near.map_or_else(
            || "`backstop config env` lists them all".to_owned(),
            |near| format!("did you mean {near}?"),
        );
        (format!("{name} is not a variable of Backstop; ignored"), hint)
    };
    strangers(names.iter().map(String::as_str)).into_iter().map(warning).collect()
}

/// The reference page.
pub fn markdown() -> String {
    let mut out = String::from(
        "# Environment\n\n\
         Every environment variable that Backstop reads, or sets for the commands that it runs. An empty\n\
         variable counts as not set. A value that is not valid is warned of and ignored. The values of\n\
         variables whose names contain words such as key, token, secret or password are masked wherever text\n\
         is stored or shown.\n",
    );
    let sections = [
        ("Backstop's own", listed(OWN).collect::<Vec<_>>()),
        ("For keys of the [config](config.md)", from_keys().collect()),
        ("Other programs' variables", listed(OTHERS).collect()),
    ];
    for (title, variables) in sections {
        out.push_str(&format!("\n## {title}\n\n| variable | | meaning |\n|---|---|---|\n"));
        for Variable { name, direction, doc } in variables {
            let direction = match direction {
                Read => "read",
                Set => "set",
                Both => "set and read",
            };
            out.push_str(&format!("| `{name}` | {direction} | {doc} |\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() => sources(&path, found),
                Some(rs) if rs == "rs" && path.file_stem().is_some_and(|stem| stem != "tests") => {
                    found.push(path);
                }
                _ => {}
            }
        }
    }

    /// The literals that stand directly behind this text.
    fn literals<'s>(source: &'s str, before: &'s str) -> impl Iterator<Item = &'s str> {
        source.split(before).skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
    }

    #[test]
    fn every_variable_that_the_source_names_is_listed() {
        let known: Vec<String> = all().into_iter().map(|variable| variable.name).collect();
        let mut files = Vec::new();
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for entry in std::fs::read_dir(&crates).unwrap().flatten() {
            sources(&entry.path().join("src"), &mut files);
        }
        let mut seen = Vec::new();
        for file in files {
            let source = std::fs::read_to_string(&file).unwrap();
            let source = source.split("#[cfg(test)]").next().unwrap_or_default();
            let calls = ["env::var(", "var_os(", ".env(", ".env_remove("];
            // Only the command line reads the environment; what others set is for git and agents.
            let reads = file.components().any(|part| part.as_os_str() == "backstop");
            let called = calls.iter().filter(|_| reads).flat_map(|call| literals(source, call));
            // Also a name in a list or a constant, wherever it is ours by its prefix.
            let ours = source.split('"').filter(|text| {
                let rest = text.strip_prefix("BACKSTOP_").unwrap_or_default();
                !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
            });
            for name in called.chain(ours) {
                assert!(
                    known.iter().any(|k| k == name),
                    "{} speaks of {name}, which is not listed",
                    file.display()
                );
                seen.push(name.to_owned());
            }
        }
        assert!(seen.iter().any(|name| name == "TERM"), "the test reads the wrong files");
    }

    #[test]
    fn names_are_unique_and_the_reference_has_them_all() {
        let all = all();
        let page = markdown();
        for (at, variable) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| other.name != variable.name), "{}", variable.name);
            assert!(page.contains(&format!("| `{}` | ", variable.name)));
        }
        assert!(all.iter().any(|variable| variable.name == "BACKSTOP_EXEC_TIMEOUT"));
        assert!(!all.iter().any(|variable| variable.name.contains("PACKS")));
    }

    #[test]
    fn a_mistake_in_a_name_is_seen() {
        let names = ["BACKSTOP_EXEC_TIMOUT", "BACKSTOP_EXEC_TIMEOUT", "PATH", "BACKSTOP_ZZZZZZZZZZZZZZZZZZ"];
        assert_eq!(
            strangers(names),
            [
                ("BACKSTOP_EXEC_TIMOUT".to_owned(), Some("BACKSTOP_EXEC_TIMEOUT".to_owned())),
                ("BACKSTOP_ZZZZZZZZZZZZZZZZZZ".to_owned(), None),
            ]
        );
    }
}
