//! Masks secrets with known values, e.g. from environment variables.

use super::scattered::Scattered;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// From this much text on, the faster table is built: building it takes longer than a short
/// command.
const PLAIN_BYTES_MAX: usize = 256 << 10;

/// The known values. Both tables find the same matches.
#[derive(Debug)]
pub(super) struct Known {
    values: Vec<String>,
    plain: AhoCorasick,
    scattered: Scattered,
    fast: OnceLock<Option<AhoCorasick>>,
    read: AtomicUsize,
}

impl Known {
    /// Nothing where there are none.
    pub(super) fn new(mut values: Vec<String>) -> Option<Self> {
        values.sort();
        values.dedup();
        if values.is_empty() {
            return None;
        }
        let plain = build(&values, Some(AhoCorasickKind::NoncontiguousNFA))?;
        let scattered = Scattered::new(&values);
        Some(Self { values, plain, scattered, fast: OnceLock::new(), read: AtomicUsize::new(0) })
    }

    /// All values, in all their forms.
    pub(super) fn values(&self) -> &[String] {
        &self.values
    }

    /// The length of the longest value.
    pub(super) fn bytes_max(&self) -> usize {
        self.values.iter().map(String::len).max().unwrap_or(0)
    }

    /// Adds the positions of all known values.
    pub(super) fn find(&self, text: &[u8], found: &mut Vec<Range<usize>>) {
        let read = self.read.fetch_add(text.len(), Ordering::Relaxed);
        let table = if read.saturating_add(text.len()) > PLAIN_BYTES_MAX {
            self.fast.get_or_init(|| build(&self.values, None)).as_ref().unwrap_or(&self.plain)
        } else {
            &self.plain
        };
        found.extend(table.find_iter(text).map(|found| found.range()));
    }

    /// Adds the positions of known values that are folded over several lines or dumped byte by
    /// byte.
    pub(super) fn find_scattered(&self, text: &[u8], found: &mut Vec<Range<usize>>) {
        self.scattered.find_folded(text, |joined, found| self.find(joined, found), found);
        self.scattered.find_dumped(text, &self.values, found);
    }

    /// Where in whole lines those begin from which a known value may go on in the next one.
    pub(super) fn open_fold(&self, lines: &[u8]) -> Option<usize> {
        self.scattered.open_fold(lines)
    }
}

fn build(values: &[String], kind: Option<AhoCorasickKind>) -> Option<AhoCorasick> {
    AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).kind(kind).build(values).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_text_changes_nothing() {
        let known = Known::new(vec!["canary".to_owned(), "canary-2".to_owned()]).unwrap();
        let (few, many) = ("a canary-2, a canary", "a canary-2, a canary ".repeat(PLAIN_BYTES_MAX / 16));
        let find = |text: &str| {
            let mut found = Vec::new();
            known.find(text.as_bytes(), &mut found);
            found
        };
        let first = find(few);
        assert_eq!(first, [2..10, 14..20]);
        assert!(known.fast.get().is_none());
        assert_eq!(find(&many).len(), PLAIN_BYTES_MAX / 16 * 2);
        assert!(known.fast.get().is_some());
        assert_eq!(find(few), first);
    }
}
