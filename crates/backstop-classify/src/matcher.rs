//! Runs rules on the lines that their literals selected, and keeps what they found.
//!
//! Everything kept is bounded, and so is the work on a hot rule: in each block its first and its
//! last candidates are looked at, not the thousands between. What the matches mean is for
//! [`crate::weigh`] to say.

use crate::Classifier;
use crate::automaton::Hit;
use crate::chunk::Block;
use crate::clean::{visible, without_timestamp};
use crate::excerpt::Excerpt;
use crate::pattern::Pattern;
use crate::rule::Rule;
use crate::section::Marks;
use crate::trace::{self, Exceptions};
use backstop_core::Reason;
use memchr::{memchr, memchr_iter, memrchr};
use regex_automata::PatternID;
use std::collections::HashMap;

/// How many matches of a rule are kept from the start of the text, and how many from its end.
const KEPT_FIRST: usize = 6;
const KEPT_LAST: usize = 6;
/// How many candidates of a rule are looked at in a block: first, and last.
const EVALUATED_FIRST: u32 = 512;
const EVALUATED_LAST: usize = 8;
/// After this many looks at a rule's candidates the rule is hot: it gets only a few, in one block
/// of several, until the last block. The end of the text is what decides, and is looked at as
/// closely as its start.
const EVALUATED_HOT: u64 = 512;
const HOT_BLOCKS: u64 = 8;
const EVALUATED_FIRST_HOT: u32 = 2;
const EVALUATED_LAST_HOT: usize = 2;
const EVALUATED_FIRST_AT_END: u32 = 8192;
/// How much of a line a rule sees.
const LINE_BYTES_MAX: usize = 4 << 10;
/// How much of a line is kept.
const KEPT_BYTES_MAX: usize = 1000;
/// How many lines a rule may look up and down.
const ABOVE_LINES_MAX: usize = 80;
const BELOW_LINES_MAX: usize = 12;
/// Over how many lines a test's name may go.
const JOINED_LINES_MAX: usize = 6;
/// How many findings on one line are taken.
const CAPTURES_PER_LINE_MAX: usize = 64;
/// How many facts of a kind are kept for a reason.
const FACTS_MAX: usize = 100;

/// One match of a rule.
#[derive(Debug, Clone)]
pub(crate) struct Match {
    /// The line, counted from 1 within its stream.
    pub(crate) line: u64,
    /// The stream.
    pub(crate) stream: u8,
    /// The line's text.
    pub(crate) text: String,
    /// The part that states the cause, if the rule captured one.
    pub(crate) cause: Option<String>,
    /// The HTTP status that the rule captured.
    pub(crate) status: Option<u16>,
}

/// The matches of one rule.
#[derive(Debug, Default)]
pub(crate) struct RuleState {
    pub(crate) count: u64,
    pub(crate) first: Vec<Match>,
    pub(crate) last: Vec<Match>,
    looked: u64,
    deferred: Vec<u32>,
}

/// The counters that are touched for every candidate line, kept together so that they stay in the
/// CPU cache.
#[derive(Debug, Clone, Copy, Default)]
struct RuleProgress {
    /// The last line that was looked at, so that two literals on one line count once.
    stamp: u64,
    /// The number of candidates in this block.
    in_block: u32,
    /// How many candidates are looked at in this block.
    limit: u32,
    /// Whether the rule applies to this signal at all.
    enabled: bool,
    hot: bool,
}

impl RuleState {
    /// All stored matches, in order.
    pub(crate) fn matches(&self) -> impl DoubleEndedIterator<Item = &Match> {
        self.first.iter().chain(&self.last)
    }

    fn keep(&mut self, matched: Match) {
        self.count += 1;
        if self.first.len() < KEPT_FIRST {
            self.first.push(matched);
        } else {
            if self.last.len() == KEPT_LAST {
                self.last.remove(0);
            }
            self.last.push(matched);
        }
    }
}

/// The lists of facts, by the reason of the rule that found them.
#[derive(Debug, Default)]
pub(crate) struct FactLists {
    lists: HashMap<(Option<Reason>, &'static str), Vec<String>>,
}

impl FactLists {
    fn add(&mut self, reason: Option<Reason>, kind: &'static str, value: &str) {
        let value = value.trim();
        if value.is_empty() || value.len() > 400 {
            return;
        }
        let list = self.lists.entry((reason, kind)).or_default();
        if list.len() < FACTS_MAX && !list.iter().any(|known| known == value) {
            list.push(value.to_owned());
        }
    }

    /// The values of a kind that were found for a reason.
    pub(crate) fn get(&self, reason: Option<Reason>, kind: &'static str) -> &[String] {
        self.lists.get(&(reason, kind)).map_or(&[], Vec::as_slice)
    }
}

/// The matches of all rules in all streams.
#[derive(Debug)]
pub(crate) struct Matcher {
    pub(crate) rules: Vec<RuleState>,
    pub(crate) facts: FactLists,
    pub(crate) exceptions: Exceptions,
    /// For each rule.
    progress: Vec<RuleProgress>,
    /// Lines seen in each stream.
    pub(crate) lines: Vec<u64>,
    /// The last line of each stream that is not empty.
    pub(crate) tails: Vec<Option<(u64, String)>>,
    /// The beginning and the end of each stream.
    pub(crate) excerpts: Vec<Excerpt>,
    /// Where sections of the log begin and end.
    pub(crate) marks: Marks,
    hot: Vec<u16>,
    stamps: u64,
    blocks: u64,
    short_rules_closed: bool,
}

impl Matcher {
    pub(crate) fn new(enabled: Vec<bool>) -> Self {
        Self {
            rules: std::iter::repeat_with(RuleState::default).take(enabled.len()).collect(),
            progress: enabled
                .iter()
                .map(|on| RuleProgress { enabled: *on, ..RuleProgress::default() })
                .collect(),
            facts: FactLists::default(),
            exceptions: Exceptions::default(),
            lines: vec![0],
            tails: vec![None],
            excerpts: vec![Excerpt::default()],
            marks: Marks::default(),
            hot: Vec::new(),
            stamps: 0,
            blocks: 0,
            short_rules_closed: false,
        }
    }

    /// Skips lines of this stream that were not stored.
    pub(crate) fn skip(&mut self, lines: u64) {
        if let Some(counted) = self.lines.last_mut() {
            *counted += lines;
        }
    }

    /// Another stream begins: its lines are counted from 1.
    pub(crate) fn next_stream(&mut self) {
        self.lines.push(0);
        self.tails.push(None);
        self.excerpts.push(Excerpt::default());
    }

    /// Looks at every candidate of a block.
    pub(crate) fn block(&mut self, classifier: &Classifier, block: &Block, hits: &[Hit]) {
        let mut cursor = Cursor { block, line: self.lines.last().copied().unwrap_or(0) + 1, at: block.from };
        let mut bounds = 0..0;
        self.set_limits(block.last);
        for hit in hits {
            let at = block.from + hit.end as usize - 1;
            if !bounds.contains(&at) {
                bounds = line_bounds(&block.text, at);
                self.stamps += 1;
            }
            for rule in classifier.automaton.values(hit.state) {
                self.candidate(classifier, &mut cursor, *rule, at, bounds.clone());
            }
        }
        self.deferred(classifier, block);
        let counted = memchr_iter(b'\n', &block.text[block.from..block.to]).count() as u64;
        let stream = self.lines.len() - 1;
        self.lines[stream] += counted;
        self.close_short_rules(classifier);
        self.keep_tail(block);
        if let Some(excerpt) = self.excerpts.last_mut() {
            excerpt.add(&block.text[block.from..block.to]);
        }
    }

    /// Sets how many candidates each rule gets in this block.
    fn set_limits(&mut self, last: bool) {
        let awake = self.blocks.is_multiple_of(HOT_BLOCKS);
        self.blocks += 1;
        for progress in self.progress.iter_mut().filter(|progress| progress.enabled) {
            progress.limit = match (last, progress.hot) {
                (true, _) => EVALUATED_FIRST_AT_END,
                (false, false) => EVALUATED_FIRST,
                (false, true) if awake => EVALUATED_FIRST_HOT,
                (false, true) => 0,
            };
        }
    }

    /// Disables rules for short texts in a text that is longer.
    fn close_short_rules(&mut self, classifier: &Classifier) {
        let lines: u64 = self.lines.iter().sum();
        if lines <= 1000 || self.short_rules_closed {
            return;
        }
        self.short_rules_closed = true;
        for (progress, rule) in self.progress.iter_mut().zip(classifier.rules.iter()) {
            if rule.max_lines > 0 && u64::from(rule.max_lines) < lines {
                progress.limit = 0;
                progress.enabled = false;
            }
        }
    }

    fn candidate(
        &mut self,
        classifier: &Classifier,
        cursor: &mut Cursor<'_>,
        rule: u16,
        at: usize,
        bounds: std::ops::Range<usize>,
    ) {
        let index = usize::from(rule);
        let progress = &mut self.progress[index];
        if progress.stamp == self.stamps || progress.limit == 0 {
            return;
        }
        progress.stamp = self.stamps;
        if progress.in_block == 0 {
            self.hot.push(rule);
        }
        progress.in_block += 1;
        let state = &mut self.rules[index];
        if progress.in_block > progress.limit {
            let kept =
                if progress.limit == EVALUATED_FIRST_HOT { EVALUATED_LAST_HOT } else { EVALUATED_LAST };
            if state.deferred.len() == kept {
                state.deferred.remove(0);
            }
            state.deferred.push(u32::try_from(at).unwrap_or(u32::MAX));
            return;
        }
        state.looked += 1;
        progress.hot = state.looked > EVALUATED_HOT;
        self.look(classifier, cursor, index, at, bounds);
    }

    /// The last candidates of rules that had too many in this block.
    fn deferred(&mut self, classifier: &Classifier, block: &Block) {
        let base = self.lines.last().copied().unwrap_or(0) + 1;
        for rule in std::mem::take(&mut self.hot) {
            let index = usize::from(rule);
            self.progress[index].in_block = 0;
            let mut cursor = Cursor { block, line: base, at: block.from };
            for at in std::mem::take(&mut self.rules[index].deferred) {
                let at = at as usize;
                self.look(classifier, &mut cursor, index, at, line_bounds(&block.text, at));
            }
        }
    }

    fn look(
        &mut self,
        classifier: &Classifier,
        cursor: &mut Cursor<'_>,
        index: usize,
        at: usize,
        bounds: std::ops::Range<usize>,
    ) {
        let rule = &classifier.rules[index];
        let text = &cursor.block.text;
        let line = window(text, at, &bounds);
        let line = without_timestamp(line);
        if rule.skip_warnings && is_warning(line) {
            return;
        }
        let patterns = classifier.patterns(index);
        let regex = patterns.regex.as_ref();
        let Some(mut captures) = Captures::of(rule, regex, line) else { return };
        // A secret is known by what stands around it: it is masked before anything is cut out of
        // the line.
        let whole = String::from_utf8_lossy(line);
        let masked = classifier.redactor.redact(&whole);
        if *masked != *whole {
            captures =
                Captures::of(rule, regex, masked.as_bytes()).unwrap_or(Captures { values: Vec::new() });
        }
        if let Some(regex) = &patterns.above {
            let seen =
                captures.extend_above(regex, text, bounds.start, lines_or(rule.above_lines, ABOVE_LINES_MAX));
            if rule.above_required && !seen {
                return;
            }
        }
        if let Some(regex) = &patterns.below {
            let seen =
                captures.extend_below(regex, text, bounds.end, lines_or(rule.below_lines, BELOW_LINES_MAX));
            if rule.below_required && !seen {
                return;
            }
        }
        if let Some(end) = &rule.join_until {
            captures.join_test(end, text, bounds.end);
        }
        let number = cursor.number(bounds.start);
        let stream = u8::try_from(self.lines.len() - 1).unwrap_or(u8::MAX);
        if let Some(language) = rule.trace {
            let body = &text[bounds.start..];
            trace::read(language, body, &text[..bounds.start], number, &mut self.exceptions);
        }
        let found = Match {
            line: number,
            stream,
            text: line_text(masked.as_bytes()),
            cause: captures.get("cause").map(|c| line_text(c.as_bytes())),
            status: captures.get("status").and_then(|s| s.parse().ok()),
        };
        self.marks.note(&rule.id, &found);
        self.keep_facts(rule.reason(), &captures);
        self.rules[index].keep(found);
    }

    fn keep_facts(&mut self, reason: Option<Reason>, captures: &Captures) {
        for (name, value) in &captures.values {
            let value = match *name {
                // Suites are separated by marks that few keyboards have.
                "test" => value.replace(" › ", " > "),
                "cause" | "status" => continue,
                _ => value.clone(),
            };
            self.facts.add(reason, name, &value);
        }
    }

    fn keep_tail(&mut self, block: &Block) {
        let mut end = block.to;
        let body = &block.text[..block.to];
        let mut line = self.lines.last().copied().unwrap_or(0) + 1;
        while end > block.from {
            let start = memrchr(b'\n', &body[..end]).map_or(0, |n| n + 1).max(block.from);
            let text = visible(&body[start..end], end - start);
            let text = if text.is_empty() {
                visible(&body[start..end], (end - start).saturating_sub(1))
            } else {
                text
            };
            if !text.trim_ascii().is_empty() {
                if let Some(tail) = self.tails.last_mut() {
                    *tail = Some((line, line_text(text)));
                }
                return;
            }
            line -= 1;
            end = start.saturating_sub(1);
        }
    }
}

/// Counts lines up to a place in a block; places come in rising order.
struct Cursor<'b> {
    block: &'b Block,
    line: u64,
    at: usize,
}

impl Cursor<'_> {
    fn number(&mut self, at: usize) -> u64 {
        if at >= self.at {
            self.line += memchr_iter(b'\n', &self.block.text[self.at..at]).count() as u64;
            self.at = at;
        }
        self.line
    }
}

/// The named captures of a match, own and from around.
struct Captures {
    values: Vec<(&'static str, String)>,
}

impl Captures {
    fn of(rule: &Rule, regex: Option<&Pattern<'_>>, line: &[u8]) -> Option<Self> {
        let mut captures = Self { values: Vec::new() };
        match regex {
            Some(regex) => captures.take(regex, line)?,
            // Without a regex, a literal must be there as it is written.
            None => rule
                .literals
                .iter()
                .any(|l| memchr::memmem::find(line, l.as_bytes()).is_some())
                .then_some(())?,
        }
        Some(captures)
    }

    fn take(&mut self, pattern: &Pattern<'_>, line: &[u8]) -> Option<()> {
        let regex = pattern.engine(line)?;
        if regex.captures_len() == 1 {
            return regex.is_match(line).then_some(());
        }
        let mut found_any = None;
        // A report on one line, such as JSON, has many findings on it.
        for found in regex.captures_iter(line).take(CAPTURES_PER_LINE_MAX) {
            for (group, name) in regex.group_info().pattern_names(PatternID::ZERO).enumerate() {
                let Some(known) = name.and_then(crate::pack::fact_name) else { continue };
                let listed = found_any.is_some() && matches!(known, "test" | "file" | "rule");
                if let (Some(span), true) = (found.get_group(group), listed || self.get(known).is_none()) {
                    self.values.push((known, String::from_utf8_lossy(&line[span.range()]).into_owned()));
                }
            }
            found_any = Some(());
        }
        found_any
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Runners that nest suites write a test's name over several lines, the last of which ends in a
    /// colon.
    fn join_test(&mut self, until: &str, text: &[u8], line_end: usize) {
        let Some((_, test)) = self.values.iter_mut().find(|(name, _)| *name == "test") else { return };
        let mut start = line_end;
        for _ in 0..JOINED_LINES_MAX {
            if test.ends_with(until) || start >= text.len() {
                break;
            }
            let end = memchr(b'\n', &text[start..]).map_or(text.len(), |n| start + n + 1);
            let line = String::from_utf8_lossy(trimmed(&text[start..end])).trim().to_owned();
            if line.is_empty() || line.len() > 200 {
                break;
            }
            test.push(' ');
            test.push_str(&line);
            start = end;
        }
        test.truncate(test.trim_end_matches(until).len());
    }

    fn extend_above(&mut self, regex: &Pattern<'_>, text: &[u8], line_start: usize, lines: usize) -> bool {
        let mut end = line_start;
        for _ in 0..lines {
            if end == 0 {
                return false;
            }
            let start = memrchr(b'\n', &text[..end - 1]).map_or(0, |n| n + 1);
            let line = trimmed(&text[start..end]);
            if line.len() <= LINE_BYTES_MAX && self.take(regex, without_timestamp(line)).is_some() {
                return true;
            }
            end = start;
        }
        false
    }

    fn extend_below(&mut self, regex: &Pattern<'_>, text: &[u8], line_end: usize, lines: usize) -> bool {
        let mut start = line_end;
        for _ in 0..lines {
            if start >= text.len() {
                return false;
            }
            let end = memchr(b'\n', &text[start..]).map_or(text.len(), |n| start + n + 1);
            let line = trimmed(&text[start..end]);
            if line.len() <= LINE_BYTES_MAX && self.take(regex, without_timestamp(line)).is_some() {
                return true;
            }
            start = end;
        }
        false
    }
}

/// Whether a line calls itself a warning: `npm warn …`, `warning: …`, `[WARN] …`.
fn is_warning(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let line = line.strip_prefix(b"npm ").or_else(|| line.strip_prefix(b"[")).unwrap_or(line);
    line.get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"warn"))
}

fn lines_or(lines: u32, usual: usize) -> usize {
    if lines == 0 { usual } else { lines as usize }
}

/// The bounds of the line at `at`, its end included.
fn line_bounds(text: &[u8], at: usize) -> std::ops::Range<usize> {
    let start = memrchr(b'\n', &text[..at]).map_or(0, |n| n + 1);
    let end = memchr(b'\n', &text[at..]).map_or(text.len(), |n| at + n + 1);
    start..end
}

/// What a rule sees of a line: all of it, or the part around `at` where it is too long.
fn window<'t>(text: &'t [u8], at: usize, bounds: &std::ops::Range<usize>) -> &'t [u8] {
    let line = trimmed(&text[bounds.clone()]);
    let at = (at - bounds.start).min(line.len());
    let line = if line.contains(&b'\r') { visible(line, at) } else { line };
    if line.len() <= LINE_BYTES_MAX {
        return line;
    }
    let at = at.min(line.len());
    let start = at.saturating_sub(LINE_BYTES_MAX / 2);
    // Not in the middle of a word: half a secret is not known as one.
    let start = memchr(b' ', &line[start..at]).map_or(start, |n| start + n);
    &line[start..line.len().min(start + LINE_BYTES_MAX)]
}

pub(crate) fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn line_text(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(KEPT_BYTES_MAX)]);
    text.trim_end().to_owned()
}
