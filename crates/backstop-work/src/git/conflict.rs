//! What two changes do not agree on, in words and lines that whoever tries again can use.
//!
//! How much is told is bounded: 8 KB of marked lines a file, 32 KB in all.

use super::changes::Entry;
use super::{GitError, Repo, Sha};
use backstop_core::SafeText;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// How much of one file's marked lines is kept.
const FILE_BYTES_MAX: usize = 8 << 10;
/// How much of all files' marked lines is kept.
const ALL_BYTES_MAX: usize = 32 << 10;
/// How many conflicts are looked at closely.
const DETAILED_MAX: usize = 100;
/// The largest file that is looked at closely.
const LOOKED_AT_BYTES_MAX: u64 = 4 << 20;
/// How many line ranges are listed.
const RANGES_MAX: usize = 64;
/// How many lines around a conflict are kept.
const CONTEXT_LINES: usize = 3;

/// A path on which two changes do not agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The path. It need not be UTF-8.
    pub path: OsString,
    /// What kind of disagreement it is.
    pub kind: ConflictKind,
    /// The lines that changed from the base to the tip, first and last, counted in the tip's file.
    pub ours: Vec<(u32, u32)>,
    /// The lines that changed from the base to the work, first and last, counted in the work's
    /// file.
    pub theirs: Vec<(u32, u32)>,
    /// The marked lines, with some around them. Empty where there are none, or too many.
    pub hunks: SafeText,
}

/// What kind of disagreement it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictKind {
    /// Both changed the same lines.
    Content,
    /// Both added it, with other content.
    AddAdd,
    /// The tip deleted it and the work changed it.
    DeletedInTip,
    /// The work deleted it and the tip changed it.
    DeletedInWork,
    /// A nested repository is at two commits.
    Submodule,
    /// A file and a folder, a rename, or something else that git can tell and lines cannot.
    Other,
}

/// What base, tip and work have at a path: stages 1, 2 and 3. Stage 0 is nothing.
pub(crate) type Stages = [Option<Entry>; 4];

/// Reads `<mode> <oid> <stage>\t<path>`.
pub(crate) fn stage(part: &[u8]) -> Option<(&[u8], usize, Entry)> {
    let tab = part.iter().position(|b| *b == b'\t')?;
    let mut words = std::str::from_utf8(&part[..tab]).ok()?.split(' ');
    let mode = u32::from_str_radix(words.next()?, 8).ok()?;
    let oid = words.next()?.parse().ok()?;
    let stage = words.next()?.parse().ok().filter(|stage| (1..=3).contains(stage))?;
    Some((&part[tab + 1..], stage, Entry { mode, oid }))
}

fn kind(stages: &Stages) -> ConflictKind {
    if stages.iter().flatten().any(Entry::is_link) {
        return ConflictKind::Submodule;
    }
    match stages {
        [_, Some(_), Some(_), Some(_)] => ConflictKind::Content,
        [_, None, Some(_), Some(_)] => ConflictKind::AddAdd,
        [_, Some(_), None, Some(_)] => ConflictKind::DeletedInTip,
        [_, Some(_), Some(_), None] => ConflictKind::DeletedInWork,
        _ => ConflictKind::Other,
    }
}

/// Tells conflicts in detail, as far as the bounds go.
pub(crate) fn describe(
    repo: &Repo,
    tree: &Sha,
    found: BTreeMap<OsString, Stages>,
) -> Result<Vec<Conflict>, GitError> {
    let mut room = ALL_BYTES_MAX;
    let mut conflicts = Vec::new();
    for (path, stages) in found {
        let kind = kind(&stages);
        let mut conflict =
            Conflict { path, kind, ours: Vec::new(), theirs: Vec::new(), hunks: SafeText::default() };
        if conflicts.len() < DETAILED_MAX && kind != ConflictKind::Submodule {
            conflict.ours = ranges(repo, stages[1].as_ref(), stages[2].as_ref())?;
            conflict.theirs = ranges(repo, stages[1].as_ref(), stages[3].as_ref())?;
            let hunks = marked(repo, tree, &conflict.path, FILE_BYTES_MAX.min(room))?;
            room -= hunks.len().min(room);
            conflict.hunks = SafeText::new(hunks);
        }
        conflicts.push(conflict);
    }
    Ok(conflicts)
}

/// The lines of a file that changed, first and last.
fn ranges(repo: &Repo, base: Option<&Entry>, side: Option<&Entry>) -> Result<Vec<(u32, u32)>, GitError> {
    let Some(side) = side.filter(|side| side.is_file()) else { return Ok(Vec::new()) };
    let Some(base) = base.filter(|base| base.is_file()) else {
        let Some(text) = blob(repo, side.oid.as_str().into())? else { return Ok(Vec::new()) };
        let lines = text.split_inclusive(|b| *b == b'\n').count();
        return Ok(u32::try_from(lines).ok().filter(|n| *n > 0).map(|n| vec![(1, n)]).unwrap_or_default());
    };
    let call = repo.call().args(["diff", "-U0", "--no-color", "--no-ext-diff", "--no-textconv"]);
    let call = call.args(["--inter-hunk-context=0", "--no-indent-heuristic"]).arg(&base.oid).arg(&side.oid);
    let answer = call.read_only().done()?;
    let lines = answer.stdout.split(|b| *b == b'\n');
    Ok(lines.filter_map(range).take(RANGES_MAX).collect())
}

/// The new lines of `@@ -1,2 +3,4 @@`. Where lines were only deleted, the line after which they
/// were.
fn range(line: &[u8]) -> Option<(u32, u32)> {
    let rest = line.strip_prefix(b"@@ -")?;
    let text = std::str::from_utf8(&rest[..rest.len().min(60)]).ok()?;
    let new = text.split(' ').nth(1)?.strip_prefix('+')?;
    let (first, count) = new.split_once(',').unwrap_or((new, "1"));
    let (first, count): (u32, u32) = (first.parse().ok()?, count.parse().ok()?);
    Some((first.max(1), (first + count.saturating_sub(1)).max(1)))
}

fn blob(repo: &Repo, name: OsString) -> Result<Option<Vec<u8>>, GitError> {
    let size = repo.call().args(["cat-file", "-s"]).arg(&name).read_only().answer()?;
    let small = size.code == 0 && size.text()?.parse::<u64>().is_ok_and(|size| size <= LOOKED_AT_BYTES_MAX);
    if !small {
        return Ok(None);
    }
    let answer = repo.call().args(["cat-file", "blob"]).arg(&name).read_only().answer()?;
    Ok((answer.code == 0).then_some(answer.stdout))
}

/// The marked lines of a file of the merged tree.
fn marked(repo: &Repo, tree: &Sha, path: &OsString, bytes_max: usize) -> Result<String, GitError> {
    let mut name = OsString::from(format!("{tree}:"));
    name.push(path);
    let text = blob(repo, name)?.filter(|text| !text.contains(&0)).unwrap_or_default();
    Ok(hunks(&String::from_utf8_lossy(&text), bytes_max))
}

/// Everything between markers, with some lines around, cut at a line end.
fn hunks(text: &str, bytes_max: usize) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut keep = vec![false; lines.len()];
    let mut begin = None;
    for (n, line) in lines.iter().enumerate() {
        if line.starts_with("<<<<<<< ") {
            begin = Some(n);
        } else if line.starts_with(">>>>>>> ")
            && let Some(begin) = begin.take()
        {
            let end = (n + CONTEXT_LINES + 1).min(lines.len());
            keep[begin.saturating_sub(CONTEXT_LINES)..end].fill(true);
        }
    }
    let mut out = String::new();
    let mut last = None;
    for (n, line) in lines.iter().enumerate().filter(|(n, _)| keep[*n]) {
        let gap = if last.is_some_and(|last| last + 1 != n) { "…\n" } else { "" };
        if out.len() + gap.len() + line.len() > bytes_max {
            break;
        }
        out.push_str(gap);
        out.push_str(line);
        last = Some(n);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_those_of_the_new_lines() {
        for (line, expected) in [
            ("@@ -1,2 +3,4 @@ fn x", Some((3, 6))),
            ("@@ -1 +1 @@", Some((1, 1))),
            ("@@ -5,3 +4,0 @@", Some((4, 4))),
            ("@@ -1,3 +0,0 @@", Some((1, 1))),
            ("+@@ -1 +1 @@", None),
            ("@@ -x +y @@", None),
        ] {
            assert_eq!(range(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn hunks_have_some_lines_around_them() {
        let text = "1\n2\n3\n4\n5\n<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n6\n7\n8\n9\n10\n<<<<<<< a\n=======\nz\n>>>>>>> b\n";
        let expected = "3\n4\n5\n<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n6\n7\n8\n9\n10\n<<<<<<< a\n=======\nz\n>>>>>>> b\n";
        assert_eq!(hunks(text, 1000), expected);
        assert_eq!(hunks("no markers\n<<<<<<< a\nnever closed\n", 1000), "");
    }

    proptest! {
        #[test]
        fn no_more_is_kept_than_may_be(text in "(<<<<<<< a\n|=======\n|>>>>>>> b\n|[a-z]{0,9}\n|é){0,60}", max in 0_usize..200) {
            prop_assert!(hunks(&text, max).len() <= max);
        }

        #[test]
        fn no_line_of_git_panics(line in any::<Vec<u8>>()) {
            let _ = (range(&line), stage(&line));
        }
    }
}
