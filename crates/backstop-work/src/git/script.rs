//! `commits.sh`: the commits that somebody else is to make, as a script.
//!
//! Any name and any message goes through unchanged, and nothing in them is ever run. The script
//! stops where something else is staged, and passes over what is committed already.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// One commit to be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScriptEntry {
    /// The message.
    pub message: String,
    /// Paths that were created or modified, below the root.
    pub paths: Vec<OsString>,
    /// Paths that were deleted, below the root.
    pub deleted: Vec<OsString>,
    /// How many more paths belong to it that must not be written down: their names look like
    /// secrets.
    pub unnamed: usize,
}

const HEAD: &str = r#"#!/bin/sh
# Makes the commits of a Backstop run. StepState at them first; then run this in the repository.
set -eu
cd "$(git rev-parse --show-cdup)."
GIT_LITERAL_PATHSPECS=1
export GIT_LITERAL_PATHSPECS

if ! git diff --cached --quiet; then
  echo 'something else is staged: commit it or unstage it first' >&2
  exit 1
fi

changed() {
  for path do
    if [ -e "$path" ] || [ -L "$path" ] || git ls-files --error-unmatch -- "$path" >/dev/null 2>&1; then
      git add -A -- "$path"
    fi
  done
}

deleted() {
  for path do
    git rm -q -r --cached --ignore-unmatch -- "$path"
  done
}

commit() {
  if git diff --cached --quiet; then
    cat >/dev/null
  else
    git commit -q --cleanup=verbatim -F -
  fi
}
"#;

/// What is said of files that are not named, after their number.
const UNNAMED: &str = "changed files are not in this commit: their names look like secrets, and are not written \
    down; add and commit them yourself (git status shows them)";

/// The script that makes these commits.
pub fn commits_script(entries: &[ScriptEntry]) -> Vec<u8> {
    let mut out = HEAD.as_bytes().to_vec();
    for entry in entries {
        out.push(b'\n');
        call(&mut out, "deleted", &entry.deleted);
        call(&mut out, "changed", &entry.paths);
        if entry.unnamed > 0 {
            let line = format!("echo '{} {UNNAMED}' >&2\n", entry.unnamed);
            out.extend_from_slice(line.as_bytes());
        }
        let message: String = entry.message.chars().filter(|c| *c != '\0').collect();
        let tag = tag(&message);
        out.extend_from_slice(format!("commit <<'{tag}'\n{message}").as_bytes());
        if !message.ends_with('\n') {
            out.push(b'\n');
        }
        out.extend_from_slice(format!("{tag}\n").as_bytes());
    }
    out
}

fn call(out: &mut Vec<u8>, function: &str, paths: &[OsString]) {
    if paths.is_empty() {
        return;
    }
    out.extend_from_slice(function.as_bytes());
    for path in paths {
        out.extend_from_slice(b" \\\n  '");
        for byte in path.as_bytes() {
            match byte {
                0 => {}
                b'\'' => out.extend_from_slice(b"'\\''"),
                byte => out.push(*byte),
            }
        }
        out.push(b'\'');
    }
    out.push(b'\n');
}

/// A tag that is no line of the message.
fn tag(message: &str) -> String {
    let mut n = 0_u64;
    loop {
        let tag = format!("END_OF_MESSAGE_{n}");
        if !message.split('\n').any(|line| line.trim_end_matches('\r') == tag) {
            return tag;
        }
        n += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_line_of_a_message_ends_it(message in "(END_OF_MESSAGE_[0-2]\r?\n?|[a-z\n]){0,12}") {
            let tag = tag(&message);
            prop_assert!(message.lines().all(|line| line != tag));
        }
    }
}
