//! A unified diff of two texts, as `diff -u` prints it, without the lines that name the files.

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};
use std::collections::HashSet;
use std::ops::Range;

/// How many lines around a change are shown.
const CONTEXT_LINES: usize = 3;

/// How many changed lines are told apart.
const CHANGES_MAX: usize = 400;

/// The unified diff; empty where the texts are equal.
pub(crate) fn unified(before: &str, after: &str) -> String {
    // Lines end with `\n` alone: a `\r` in the middle of a line is a part of it.
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let mut out = String::new();
    for hunk in group_diff_ops(operations(&old, &new), CONTEXT_LINES) {
        write_hunk(&mut out, &hunk, &old, &new);
    }
    out
}

/// The fewest changes from `old` to `new`. With too many, everything between the first and the last
/// changed line is one change, because the search takes time quadratic in their number.
fn operations(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old[head..].iter().rev().zip(new[head..].iter().rev());
    let tail = rest.take_while(|(a, b)| a == b).count();
    let (gone, added) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    if missing(gone, added) + missing(added, gone) <= CHANGES_MAX {
        return capture_diff_slices(Algorithm::Myers, old, new);
    }
    let (old_len, new_len) = (gone.len(), added.len());
    let mut operations = vec![
        DiffOp::Equal { old_index: 0, new_index: 0, len: head },
        DiffOp::Replace { old_index: head, old_len, new_index: head, new_len },
        DiffOp::Equal { old_index: head + old_len, new_index: head + new_len, len: tail },
    ];
    operations.retain(|operation| !operation.old_range().is_empty() || !operation.new_range().is_empty());
    operations
}

/// How many of these lines do not occur among the others: each of them is a change.
fn missing(lines: &[&str], others: &[&str]) -> usize {
    let others: HashSet<&str> = others.iter().copied().collect();
    lines.iter().filter(|line| !others.contains(*line)).count()
}

fn write_hunk(out: &mut String, hunk: &[DiffOp], old: &[&str], new: &[&str]) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
    let old_lines = first.old_range().start..last.old_range().end;
    let new_lines = first.new_range().start..last.new_range().end;
    out.push_str(&format!("@@ -{} +{} @@\n", position(&old_lines), position(&new_lines)));
    for operation in hunk {
        let (tag, gone, added) = operation.as_tag_tuple();
        if tag == DiffTag::Equal {
            write_lines(out, ' ', &old[gone]);
        } else {
            write_lines(out, '-', &old[gone]);
            write_lines(out, '+', &new[added]);
        }
    }
}

/// The line numbers of one side in the head of a hunk. A side without lines is named by the line
/// before it.
fn position(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn write_lines(out: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        out.push(mark);
        match line.strip_suffix('\n') {
            // The `\r` of a Windows line end would only disturb the terminal.
            Some(line) => out.push_str(line.strip_suffix('\r').unwrap_or(line)),
            None => {
                out.push_str(line);
                out.push_str("\n\\ No newline at end of file");
            }
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_reads_as_people_know_it() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let table = [
            (before, before, ""),
            ("", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"),
            ("a\n", "", "@@ -1 +0,0 @@\n-a\n"),
            (before, "a\nb\nc\nd\nx\ne\nf\ng\nh\n", "@@ -2,6 +2,7 @@\n b\n c\n d\n+x\n e\n f\n g\n"),
            ("{}", "{\n}\n", "@@ -1 +1,2 @@\n-{}\n\\ No newline at end of file\n+{\n+}\n"),
            ("a\r\n", "a\r\nb\r\n", "@@ -1 +1,2 @@\n a\n+b\n"),
        ];
        for (before, after, want) in table {
            assert_eq!(unified(before, after), want, "{before:?} {after:?}");
        }
    }

    #[test]
    fn far_changes_are_told_apart() {
        let before: String = (0..30).map(|n| format!("{n}\n")).collect();
        let after = before.replace("2\n3\n", "2\nx\n3\n").replace("\n27\n", "\n27\ny\n");
        assert_eq!(unified(&before, &after).matches("@@ -").count(), 2);
    }

    #[test]
    fn a_text_that_is_all_new_is_told_in_one() {
        let before: String = (0..5000).map(|n| format!("a{n}\n")).collect();
        let after: String = (0..5000).map(|n| format!("b{n}\n")).collect();
        assert!(unified(&before, &after).starts_with("@@ -1,5000 +1,5000 @@\n-a0\n"));
    }

    /// The lines of one side, as the operations give them.
    fn side(operations: &[DiffOp], lines: &[&str], range: fn(&DiffOp) -> Range<usize>) -> String {
        operations.iter().flat_map(|operation| lines[range(operation)].to_vec()).collect()
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_added(before in "([a-c]\n){0,12}[a-c]?", after in "([a-c]\n){0,12}[a-c]?") {
            let old: Vec<&str> = before.split_inclusive('\n').collect();
            let new: Vec<&str> = after.split_inclusive('\n').collect();
            let operations = operations(&old, &new);
            prop_assert_eq!(side(&operations, &old, DiffOp::old_range), before.as_str());
            prop_assert_eq!(side(&operations, &new, DiffOp::new_range), after.as_str());
        }
    }
}
