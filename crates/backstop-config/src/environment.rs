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
    ("BACKSTOP_DISABLE", Read, "`1` turns every recovery off: commands run once, as they are"),
    ("BACKSTOP_SESSION", Read, "a name for the session, recorded with every event"),
    ("BACKSTOP_CALLER", Read, "a name for who calls, recorded with every event"),
    ("BACKSTOP_RUN_ID", Both, "the run that a command belongs to; inside another run it says which"),
    ("BACKSTOP_ATTEMPT", Set, "the attempt that a command is, counted from 1"),
    ("BACKSTOP_PHASE", Set, "the phase of a plan that is worked on, as `2a`"),
    ("BACKSTOP_RESULT", Set, "the file that a phase may write its result to, as JSON; an agent must"),
    ("BACKSTOP_RETRY_CONTEXT", Set, "a file that tells what the phase's last attempt failed of, as JSON"),
    ("BACKSTOP_PREVIOUS", Set, "the commit that holds what the phase's last attempt left"),
    ("BACKSTOP_SLOT", Set, "the worktree that a phase runs in, counted from 1: for ports and the like"),
    (
        "BACKSTOP_DEADLINE",
        Both,
        "when a command must have ended, as RFC 3339; inside another run it is kept to",
    ),
    ("BACKSTOP_RUN_MARK", Set, "what everything below a run is marked with, so that leftovers are found"),
    ("BACKSTOP_CRASH_AT", Read, "debug builds only, for tests: ends Backstop at this commit of the journal"),
    ("BACKSTOP_CLOCK_JUMP", Read, "debug builds only, for tests: lets the clock on the wall jump"),
];

const OTHERS: &[(&str, Direction, &str)] = &[
    ("XDG_STATE_HOME", Read, "where the store is, in `backstop`; else `~/.local/state`"),
    ("XDG_CONFIG_HOME", Read, "where the user's config is, in `backstop/config.toml`; else `~/.config`"),
    ("HOME", Read, "the home folder"),
    ("PATH", Read, "where the agents of a plan are looked for before it is begun, and by `init`"),
    ("CLAUDE_CONFIG_DIR", Read, "where Claude Code's settings of the user are; else `~/.claude`"),
    ("CODEX_HOME", Read, "where Codex' hooks of the user are; else `~/.codex`"),
    ("NO_COLOR", Read, "anything turns colour off"),
    ("CI", Read, "anything means plain lines, without colour and progress"),
    ("TERM", Read, "`dumb` turns colour off"),
    ("LC_ALL", Read, "whether marks outside ASCII may be used; it comes before `LC_CTYPE` and `LANG`"),
    ("LC_CTYPE", Read, "the same; it comes before `LANG`"),
    ("LANG", Read, "the same"),
    ("GITHUB_TOKEN", Read, "the token of a `github` sink that names no variable of its own"),
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
pub fn strangers<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<(String, Option<String>)> {
    let known: Vec<String> = all().into_iter().map(|variable| variable.name).collect();
    let ours = names.into_iter().filter(|name| name.starts_with("BACKSTOP_"));
    let strange = ours.filter(|name| !known.iter().any(|known| known == name));
    strange
        .map(|name| (name.to_owned(), nearest(name, known.iter().map(String::as_str)).map(str::to_owned)))
        .collect()
}

/// The reference page.
pub fn markdown() -> String {
    let mut out = String::from(
        "# Environment\n\n\
         Every environment variable that Backstop reads, or sets for the commands that it runs. An empty variable is as good as none. The values of\n\
         variables whose names speak of keys, tokens, secrets or passwords are masked in all that is kept or shown.\n",
    );
    let sections = [
        ("Backstop's own", listed(OWN).collect::<Vec<_>>()),
        ("For keys of the [config](config.md)", from_keys().collect()),
        ("Of others", listed(OTHERS).collect()),
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
