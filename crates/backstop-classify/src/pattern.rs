//! A rule's regex, built no sooner and no dearer than it is needed.
//!
//! Building a regex costs more than a short text takes to read. So a line is first asked for the
//! literals without which the regex cannot match, then a plain engine is built, and the fast one
//! only for a regex that is used again and again, or on a long line. All of them find the same.

use crate::pack::{REGEX_CACHE_BYTES_MAX, REGEX_COMPILED_BYTES_MAX, REGEX_NEST_MAX};
use memchr::memmem;
use regex_automata::meta::{BuildError, Regex};
use regex_automata::util::syntax;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// After so many lines the fast engine pays.
const PLAIN_USES_MAX: u32 = 64;
/// On a longer line it pays at once.
const PLAIN_BYTES_MAX: usize = 512;

/// What a line must hold, as `needs.rs` wrote it. Empty where nobody knows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Needs(pub(crate) &'static [u8]);

/// A regex that may not have been built yet.
#[derive(Debug)]
pub(crate) struct Pattern<'c> {
    pub(crate) text: &'c str,
    pub(crate) needs: Needs,
    pub(crate) built: &'c Built,
}

/// What was built of a regex so far. Every regex was built once when its pack was read, so building
/// cannot fail; if it does, it matches nothing.
#[derive(Debug, Default)]
pub(crate) struct Built {
    plain: OnceLock<Option<Regex>>,
    fast: OnceLock<Option<Regex>>,
    uses: AtomicU32,
}

impl<'c> Pattern<'c> {
    /// The engine for this line; none where the regex cannot match on it.
    pub(crate) fn engine(&self, line: &[u8]) -> Option<&'c Regex> {
        let Built { plain, fast, uses } = self.built;
        if let Some(fast) = fast.get() {
            return fast.as_ref();
        }
        // Counted with a load and a store: whether one use is lost makes no difference.
        let used = uses.load(Ordering::Relaxed);
        uses.store(used.saturating_add(1), Ordering::Relaxed);
        if used < PLAIN_USES_MAX {
            if !self.needs.are_met(line) {
                return None;
            }
            if line.len() <= PLAIN_BYTES_MAX {
                return plain.get_or_init(|| build(self.text, false).ok()).as_ref();
            }
        }
        fast.get_or_init(|| build(self.text, true).ok()).as_ref()
    }
}

impl Needs {
    /// Whether a line holds what is needed.
    fn are_met(self, line: &[u8]) -> bool {
        self.0.is_empty() || is_met(self.0, line, &line.to_ascii_lowercase()).is_none_or(|(met, _)| met)
    }
}

/// Whether the first need is met, and the needs after it. None where they are damaged.
fn is_met<'n>(needs: &'n [u8], line: &[u8], lower: &[u8]) -> Option<(bool, &'n [u8])> {
    let ([kind, low, high], rest) = needs.split_first_chunk()?;
    let (mut body, rest) = rest.split_at_checked(u16::from_le_bytes([*low, *high]).into())?;
    let met = match kind {
        b'&' | b'|' => {
            let enough = *kind == b'|';
            loop {
                if body.is_empty() {
                    break !enough;
                }
                let (met, others) = is_met(body, line, lower)?;
                if met == enough {
                    break enough;
                }
                body = others;
            }
        }
        b'=' => memmem::find(line, body).is_some(),
        b'~' => memmem::find(lower, body).is_some(),
        b'^' => line.starts_with(body),
        b'$' => line.ends_with(body),
        _ => return None,
    };
    Some((met, rest))
}

/// Builds a regex as [`crate::pack::build_regex`] does; the plain one without what takes long to
/// build.
fn build(pattern: &str, fast: bool) -> Result<Regex, Box<BuildError>> {
    let config = Regex::config()
        .utf8_empty(false)
        .nfa_size_limit(Some(REGEX_COMPILED_BYTES_MAX))
        .hybrid_cache_capacity(REGEX_CACHE_BYTES_MAX)
        .auto_prefilter(fast)
        .hybrid(fast)
        .onepass(fast);
    Regex::builder()
        .configure(config)
        .syntax(syntax::Config::new().unicode(false).utf8(false).nest_limit(REGEX_NEST_MAX))
        .build(pattern)
        .map_err(Box::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use crate::pack::build_regex;

    /// All regexes of the built-in rules with what they need.
    fn regexes() -> impl Iterator<Item = (&'static str, Needs)> {
        builtin::RULES.iter().enumerate().flat_map(|(index, rule)| {
            let texts = [&rule.regex, &rule.above, &rule.below].into_iter().enumerate();
            texts.filter_map(move |(which, text)| Some((text.as_deref()?, builtin::needs(index, which))))
        })
    }

    #[test]
    fn a_line_on_which_a_regex_matches_holds_what_it_needs() {
        let examples: Vec<&str> = builtin::RULES
            .iter()
            .flat_map(|rule| rule.matches.iter().chain(rule.misses.iter()))
            .flat_map(|example| example.text.lines())
            .collect();
        let mut needed = 0;
        for (text, needs) in regexes() {
            needed += usize::from(!needs.0.is_empty());
            let regex = build_regex(text).unwrap();
            for line in &examples {
                assert!(
                    needs.are_met(line.as_bytes()) || !regex.is_match(line.as_bytes()),
                    "{text}\nneeds {needs:?}\n{line}"
                );
            }
        }
        assert!(needed * 10 > regexes().count() * 8, "only {needed} regexes say what they need");
    }

    #[test]
    fn all_engines_find_the_same() {
        for (text, _) in regexes() {
            let (plain, fast) = (build(text, false).unwrap(), build(text, true).unwrap());
            let regex = build_regex(text).unwrap();
            let rules = builtin::RULES.iter().filter(|rule| rule.regex.as_deref() == Some(text));
            let examples = rules.flat_map(|rule| rule.matches.iter().chain(rule.misses.iter()));
            for line in examples.flat_map(|example| example.text.lines()) {
                let spans = |engine: &Regex| -> Vec<Vec<Option<(usize, usize)>>> {
                    let spans = |found: regex_automata::util::captures::Captures| {
                        found.iter().map(|span| span.map(|s| (s.start, s.end))).collect()
                    };
                    engine.captures_iter(line).map(spans).collect()
                };
                let want: Vec<Vec<_>> = regex
                    .captures_iter(line.as_bytes())
                    .map(|found| found.iter().map(|group| group.map(|g| (g.start(), g.end()))).collect())
                    .collect();
                assert_eq!(spans(&plain), want, "{text}\n{line}");
                assert_eq!(spans(&fast), want, "{text}\n{line}");
            }
        }
    }
}
