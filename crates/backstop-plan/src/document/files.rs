//! Finds phases whose declared `files` may overlap.
//!
//! A pattern has `*` and `?` within a name and `**` over folders; the name of a folder stands for
//! all that is in it. It must not look at any file: two patterns overlap if some path could match
//! both.

use std::collections::{BTreeMap, BTreeSet};

/// The most steps of the comparison. After that, pairs are left out.
const STEPS_MAX: usize = 10_000_000;
/// The most pairs that are reported.
const PAIRS_MAX: usize = 10_000;

/// A declared pattern: its phase, its text, and its path components.
struct Pattern<'f> {
    phase: usize,
    written: &'f str,
    parts: Vec<&'f str>,
}

/// Pairs of phases, each with the patterns that overlap.
type Pairs = BTreeMap<(usize, usize), BTreeSet<String>>;

/// Pairs of phases that declare overlapping files, except where `ordered` says that one waits for
/// the other.
pub(crate) fn overlaps(
    declared: &[&[String]],
    ordered: impl Fn(usize, usize) -> bool,
) -> Vec<(usize, usize, Vec<String>)> {
    let mut patterns: Vec<Pattern<'_>> = Vec::new();
    for (phase, files) in declared.iter().enumerate() {
        patterns.extend(files.iter().map(|written| Pattern { phase, written, parts: parts(written) }));
    }
    // Sorted by their leading folders without wildcards: what may overlap with a pattern is inside
    // its folder or around it.
    let plain = |pattern: &Pattern<'_>| pattern.parts.iter().take_while(|part| !is_wild(part)).count();
    patterns.sort_by(|a, b| (&a.parts[..plain(a)], a.phase).cmp(&(&b.parts[..plain(b)], b.phase)));
    let (mut pairs, mut steps) = (Pairs::new(), 0);
    // The patterns whose folders contain the current one.
    let mut above: Vec<usize> = Vec::new();
    for (at, pattern) in patterns.iter().enumerate() {
        let folders = &pattern.parts[..plain(pattern)];
        while above
            .last()
            .is_some_and(|top| !folders.starts_with(&patterns[*top].parts[..plain(&patterns[*top])]))
        {
            above.pop();
        }
        for other in above.iter().map(|other| &patterns[*other]) {
            let pair = (pattern.phase.min(other.phase), pattern.phase.max(other.phase));
            if pair.0 == pair.1 || ordered(pair.0, pair.1) {
                steps += 1;
            } else if meet(&pattern.parts, &other.parts, &mut steps) {
                let files = pairs.entry(pair).or_default();
                files.extend([pattern.written.to_owned(), other.written.to_owned()]);
            }
            if steps > STEPS_MAX || pairs.len() >= PAIRS_MAX {
                return listed(pairs);
            }
        }
        above.push(at);
    }
    listed(pairs)
}

/// Whether a path is one that a pattern means, itself or through a folder that contains it.
pub(crate) fn means(pattern: &str, path: &str) -> bool {
    let mut steps = 0;
    let (pattern, path) = (parts(pattern), parts(path));
    // A folder above what is meant is not meant.
    pattern.len() <= path.len() + pattern.iter().filter(|part| **part == "**").count()
        && meet(&pattern, &path, &mut steps)
}

fn listed(pairs: Pairs) -> Vec<(usize, usize, Vec<String>)> {
    pairs.into_iter().map(|((a, b), files)| (a, b, files.into_iter().collect())).collect()
}

fn parts(written: &str) -> Vec<&str> {
    written.split('/').filter(|part| !part.is_empty() && *part != ".").collect()
}

fn is_wild(part: &str) -> bool {
    part.contains(['*', '?'])
}

/// Whether some path matches both patterns, itself or through a folder that contains it.
fn meet(a: &[&str], b: &[&str], steps: &mut usize) -> bool {
    // `row[j]`: whether the parts of `a` so far and the first `j` of `b` can match the same folder.
    let mut row = vec![false; b.len() + 1];
    row[0] = true;
    for j in 0..b.len() {
        row[j + 1] = row[j] && b[j] == "**";
    }
    for part in a {
        // One pattern has ended: the rest of the other is inside its folder.
        if row[b.len()] {
            return true;
        }
        let mut next = vec![false; b.len() + 1];
        next[0] = row[0] && *part == "**";
        for j in 0..b.len() {
            let one =
                if *part == "**" || b[j] == "**" { true } else { row[j] && names_meet(part, b[j], steps) };
            next[j + 1] = row[j] && one
                || *part == "**" && (row[j + 1] || next[j])
                || b[j] == "**" && (next[j] || row[j + 1]);
            *steps += 1;
        }
        row = next;
    }
    row.iter().any(|meets| *meets)
}

/// Whether some file name matches both patterns of `*`, `?` and letters.
fn names_meet(a: &str, b: &str, steps: &mut usize) -> bool {
    if !is_wild(a) && !is_wild(b) {
        *steps += 1;
        return a == b;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row = vec![false; b.len() + 1];
    row[0] = true;
    for j in 0..b.len() {
        row[j + 1] = row[j] && b[j] == '*';
    }
    for c in a.chars() {
        let mut next = vec![false; b.len() + 1];
        next[0] = row[0] && c == '*';
        for j in 0..b.len() {
            let d = b[j];
            let same = c == d || matches!(c, '*' | '?') || matches!(d, '*' | '?');
            next[j + 1] =
                row[j] && same || c == '*' && (row[j + 1] || next[j]) || d == '*' && (next[j] || row[j + 1]);
            *steps += 1;
        }
        row = next;
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn overlap(a: &str, b: &str) -> bool {
        let (a, b) = (vec![a.to_owned()], vec![b.to_owned()]);
        !overlaps(&[&a, &b], |_, _| false).is_empty()
    }

    #[test]
    fn patterns_overlap_if_a_file_could_be_both() {
        for (a, b, want) in [
            ("src/a.rs", "src/a.rs", true),
            ("./src//a.rs", "src/a.rs", true),
            ("src/a.rs", "src/b.rs", false),
            ("src", "src/a.rs", true),
            ("src/", "src/deep/a.rs", true),
            ("src", "srcs/a.rs", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a.txt", false),
            ("src/*.rs", "src/a*", true),
            ("src/a*", "src/b*", false),
            ("src/**", "src/x/y.rs", true),
            ("**/*.rs", "src/x/y.rs", true),
            ("**/*.rs", "docs/**", true),
            ("**/*.rs", "docs/a.md", true),
            ("src/**/a.rs", "src/a.rs", true),
            ("src/**/a.rs", "src/x/y/b.rs", true),
            ("src/*/a", "lib/*/a", false),
            ("a?c", "abc", true),
            ("a?c", "abbc", false),
            ("*", "x/y", true),
        ] {
            assert_eq!(overlap(a, b), want, "{a} {b}");
            assert_eq!(overlap(b, a), want, "{b} {a}");
        }
    }

    #[test]
    fn pairs_are_told_once_with_their_files() {
        let files = |list: &[&str]| -> Vec<String> { list.iter().map(|f| (*f).to_owned()).collect() };
        let (a, b, c) =
            (files(&["src/api/**", "README.md"]), files(&["src/api/x.rs", "README.md"]), files(&["src"]));
        let found = overlaps(&[&a, &b, &c], |x, y| (x, y) == (1, 2));
        assert_eq!(
            found,
            [
                (0, 1, files(&["README.md", "src/api/**", "src/api/x.rs"])),
                (0, 2, files(&["src", "src/api/**"]))
            ]
        );
    }

    #[test]
    fn very_many_patterns_are_bounded() {
        let declared: Vec<Vec<String>> = (0..10_000).map(|n| vec![format!("a{n}*")]).collect();
        let declared: Vec<&[String]> = declared.iter().map(Vec::as_slice).collect();
        assert!(overlaps(&declared, |_, _| false).len() <= PAIRS_MAX);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_who_is_asked_first(a in "[ab*?/]{0,12}", b in "[ab*?/]{0,12}") {
            prop_assert_eq!(overlap(&a, &b), overlap(&b, &a));
            prop_assert_eq!(overlap(&a, &a), true);
        }
    }
}
