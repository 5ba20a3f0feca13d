//! What differs between two texts, line by line, as people know it from `diff -u`.

/// How many lines around a change are shown.
const CONTEXT_LINES: usize = 3;

/// How many changed lines are told apart. With more, everything between the first and the last one counts as changed.
const CHANGES_MAX: usize = 400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Same,
    Gone,
    New,
}

type Line<'t> = (Kind, &'t str);

/// The difference, without a head; empty where there is none.
pub(crate) fn unified(before: &str, after: &str) -> String {
    let lines = compare(before, after);
    let changed: Vec<usize> = (0..lines.len()).filter(|n| lines[*n].0 != Kind::Same).collect();
    let mut out = String::new();
    let mut next = 0;
    while let Some(first) = changed.get(next) {
        let from = first.saturating_sub(CONTEXT_LINES);
        let mut to = first + 1;
        // Changes that share context are told together.
        while let Some(at) = changed.get(next).filter(|at| **at <= to + 2 * CONTEXT_LINES) {
            to = at + 1;
            next += 1;
        }
        hunk(&mut out, &lines, from, (to + CONTEXT_LINES).min(lines.len()));
    }
    out
}

fn hunk(out: &mut String, lines: &[Line<'_>], from: usize, to: usize) {
    let count = |range: &[Line<'_>], not: Kind| range.iter().filter(|(kind, _)| *kind != not).count();
    let side = |not: Kind| {
        let (skipped, shown) = (count(&lines[..from], not), count(&lines[from..to], not));
        // A side without lines is named by the line before it.
        let first = if shown == 0 { skipped } else { skipped + 1 };
        if shown == 1 { first.to_string() } else { format!("{first},{shown}") }
    };
    out.push_str(&format!("@@ -{} +{} @@\n", side(Kind::New), side(Kind::Gone)));
    for (kind, line) in &lines[from..to] {
        out.push(match kind {
            Kind::Same => ' ',
            Kind::Gone => '-',
            Kind::New => '+',
        });
        match line.strip_suffix('\n') {
            // The end of a line of another system is layout, not content.
            Some(line) => out.push_str(line.strip_suffix('\r').unwrap_or(line)),
            None => {
                out.push_str(line);
                out.push_str("\n\\ No newline at end of file");
            }
        }
        out.push('\n');
    }
}

fn compare<'t>(before: &'t str, after: &'t str) -> Vec<Line<'t>> {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old[head..].iter().rev().zip(new[head..].iter().rev());
    let tail = rest.take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let all = |kind: Kind, lines: &[&'t str]| lines.iter().map(|line| (kind, *line)).collect::<Vec<_>>();
    let mut lines = all(Kind::Same, &old[..head]);
    lines.extend(shortest(a, b).unwrap_or_else(|| [all(Kind::Gone, a), all(Kind::New, b)].concat()));
    lines.extend(all(Kind::Same, &old[old.len() - tail..]));
    lines
}

/// The fewest changes from one to the other, by Myers' greedy way; nothing where there are too many. `reached[n]` is how far
/// into `a` one gets with d changes on the diagonal `n - d`.
fn shortest<'t>(a: &[&'t str], b: &[&'t str]) -> Option<Vec<Line<'t>>> {
    let mut steps: Vec<Vec<usize>> = Vec::new();
    for d in 0..=CHANGES_MAX.min(a.len() + b.len()) {
        let mut reached = vec![0; 2 * d + 1];
        for n in (0..=2 * d).step_by(2) {
            let mut x = match steps.last() {
                None => 0,
                Some(last) => start(last, n).0,
            };
            let mut y = (x + d).saturating_sub(n);
            while x < a.len() && y < b.len() && a[x] == b[y] {
                (x, y) = (x + 1, y + 1);
            }
            reached[n] = x;
            if x >= a.len() && y >= b.len() {
                steps.push(reached);
                return Some(walk_back(a, b, &steps, n));
            }
        }
        steps.push(reached);
    }
    None
}

/// Where a step begins, and whether it goes down, to a new line, or right, past one that is gone. The further one counts.
fn start(last: &[usize], n: usize) -> (usize, bool) {
    let right = n.checked_sub(2).and_then(|n| last.get(n)).map(|x| x + 1);
    let down = last.get(n).copied();
    match (right, down) {
        (Some(right), Some(down)) if right > down => (right, false),
        (Some(right), None) => (right, false),
        (_, down) => (down.unwrap_or(0), true),
    }
}

fn walk_back<'t>(a: &[&'t str], b: &[&'t str], steps: &[Vec<usize>], mut n: usize) -> Vec<Line<'t>> {
    let (mut x, mut y) = (a.len(), b.len());
    let mut lines = Vec::new();
    for d in (1..steps.len()).rev() {
        let (from, down) = start(&steps[d - 1], n);
        while x > from {
            (x, y) = (x - 1, y.saturating_sub(1));
            lines.push((Kind::Same, a[x]));
        }
        if down {
            y = y.saturating_sub(1);
            lines.push((Kind::New, b[y]));
        } else {
            x = x.saturating_sub(1);
            lines.push((Kind::Gone, a[x]));
            n -= 2;
        }
    }
    while x > 0 {
        x -= 1;
        lines.push((Kind::Same, a[x]));
    }
    lines.reverse();
    lines
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

    fn both(lines: &[Line<'_>], not: Kind) -> String {
        lines.iter().filter(|(kind, _)| *kind != not).map(|(_, line)| *line).collect()
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_added(before in "([a-c]\n){0,12}[a-c]?", after in "([a-c]\n){0,12}[a-c]?") {
            let lines = compare(&before, &after);
            prop_assert_eq!(both(&lines, Kind::New), before.as_str());
            prop_assert_eq!(both(&lines, Kind::Gone), after.as_str());
        }
    }
}
