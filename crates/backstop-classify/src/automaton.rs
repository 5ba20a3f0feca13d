//! One multi-pattern pass over text, whatever the number of patterns.
//!
//! An Aho-Corasick automaton made into a dense table: one load for a byte's class, one for the next
//! state. Case and kinds of quotes and brackets are folded in the classes. The built-in table is
//! made by the build script and lies in the binary as it is used, so that a cold start builds
//! nothing. Of a long pattern only the rarest part is looked for: the rest is checked by whoever
//! gets the hit.
//!
//! A single walk waits for one load after the other. Four walks over four parts of the text wait
//! together, which is what makes this faster than one walk could be.

use std::borrow::Cow;
use std::collections::VecDeque;

/// How much of a pattern goes into the table. Longer patterns are told apart by the rule's own
/// check.
const WINDOW_BYTES_MAX: usize = 12;
/// The most states that a table can have.
const STATES_MAX: usize = u16::MAX as usize;
/// Text shorter than this is walked in one piece.
const LANES_BYTES_MIN: usize = 4096;
/// How many walks go side by side.
const LANES: usize = 8;

/// There are more or longer patterns than a table can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the literals of all rules need more than {STATES_MAX} states: use fewer or shorter ones")]
pub struct TooManyPatterns;

/// Where a pattern ends in the text, and the state that says which patterns those are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// One past the last byte.
    pub end: u32,
    /// The state.
    pub state: u16,
}

/// The table.
#[derive(Debug, Clone)]
pub struct Automaton {
    classes: Cow<'static, [u8]>,
    /// Rows of `1 << shift` next states.
    table: Cow<'static, [u16]>,
    shift: u32,
    /// States from here on are the ends of patterns.
    first_match: u16,
    /// For each such state, where its values begin in `values`.
    starts: Cow<'static, [u32]>,
    values: Cow<'static, [u16]>,
}

/// The parts of a table.
#[derive(Debug)]
pub struct Parts<'a> {
    /// The class of each byte.
    pub classes: &'a [u8],
    /// Rows of next states.
    pub table: &'a [u16],
    /// A row has `1 << shift` entries.
    pub shift: u32,
    /// States from here on are the ends of patterns.
    pub first_match: u16,
    /// For each such state, where its values begin.
    pub starts: &'a [u32],
    /// The values.
    pub values: &'a [u16],
}

impl Automaton {
    /// Builds a table of patterns, each with the values that a hit of it stands for.
    pub fn build<'p>(patterns: impl Iterator<Item = (&'p [u8], u16)>) -> Result<Self, TooManyPatterns> {
        let trie = Trie::new(patterns)?;
        Ok(trie.into_table())
    }

    /// A table that was built before and lies in the binary. Checked here, because walking trusts
    /// it.
    pub fn from_parts(
        classes: &'static [u8],
        table: &'static [u16],
        shift: u32,
        first_match: u16,
        starts: &'static [u32],
        values: &'static [u16],
    ) -> Self {
        let automaton = Self {
            classes: Cow::Borrowed(classes),
            table: Cow::Borrowed(table),
            shift,
            first_match,
            starts: Cow::Borrowed(starts),
            values: Cow::Borrowed(values),
        };
        assert!(automaton.shapes_fit(), "the built-in table is damaged");
        automaton
    }

    /// The parts, for the build script to write down.
    pub fn parts(&self) -> Parts<'_> {
        Parts {
            classes: &self.classes,
            table: &self.table,
            shift: self.shift,
            first_match: self.first_match,
            starts: &self.starts,
            values: &self.values,
        }
    }

    /// The sizes fit each other. That every entry is a state is held by construction, and by a test
    /// over the whole table: checking it here would touch megabytes at every start.
    fn shapes_fit(&self) -> bool {
        let states = self.table.len() >> self.shift;
        self.classes.len() == 256
            && self.classes.iter().all(|class| usize::from(*class) < 1 << self.shift)
            && states << self.shift == self.table.len()
            && states >= usize::from(self.first_match)
            && self.starts.len() == states - usize::from(self.first_match) + 1
    }

    /// Whether every entry of the table is a state.
    pub fn entries_are_states(&self) -> bool {
        let states = self.table.len() >> self.shift;
        self.table.iter().all(|next| usize::from(*next) < states)
    }

    /// What a hit stands for.
    pub fn values(&self, state: u16) -> &[u16] {
        let index = usize::from(state - self.first_match);
        let (from, to) = (self.starts[index] as usize, self.starts[index + 1] as usize);
        &self.values[from..to]
    }

    /// Walks the text and appends every hit, in the order of the text. No pattern spans a line end.
    pub fn scan(&self, text: &[u8], hits: &mut Vec<Hit>) {
        debug_assert!(u32::try_from(text.len()).is_ok());
        if text.len() < LANES_BYTES_MIN {
            self.walk(text, 0, 0, hits);
            return;
        }
        // Cut at line ends, where every walk is back at the start.
        let mut cuts = [0; LANES + 1];
        cuts[LANES] = text.len();
        for lane in 1..LANES {
            let from = (text.len() / LANES * lane).max(cuts[lane - 1]);
            cuts[lane] = memchr_newline(&text[from..]).map_or(text.len(), |n| from + n + 1);
        }
        self.walk_lanes(text, cuts, hits);
    }

    #[allow(unsafe_code)]
    fn walk_lanes(&self, text: &[u8], cuts: [usize; LANES + 1], hits: &mut Vec<Hit>) {
        let mut found: [Vec<Hit>; LANES] = Default::default();
        let shortest = (0..LANES).map(|lane| cuts[lane + 1] - cuts[lane]).min().unwrap_or(0);
        let lanes: [&[u8]; LANES] = std::array::from_fn(|lane| &text[cuts[lane]..cuts[lane] + shortest]);
        let mut states = [0u16; LANES];
        for at in 0..shortest {
            for lane in 0..LANES {
                // SAFETY: `at < shortest`, the length of every lane. A class is below `1 << shift`
                // and a state below the number of rows: `shapes_fit` and the construction of the
                // table hold that.
                states[lane] = unsafe {
                    let byte = *lanes[lane].get_unchecked(at);
                    let class = *self.classes.get_unchecked(usize::from(byte));
                    *self.table.get_unchecked((usize::from(states[lane]) << self.shift) | usize::from(class))
                };
            }
            if states.iter().any(|state| *state >= self.first_match) {
                for lane in 0..LANES {
                    if states[lane] >= self.first_match {
                        found[lane].push(Hit { end: position(cuts[lane] + at + 1), state: states[lane] });
                    }
                }
            }
        }
        for lane in 0..LANES {
            hits.append(&mut found[lane]);
            let from = cuts[lane] + shortest;
            self.walk(&text[from..cuts[lane + 1]], from, states[lane], hits);
        }
    }

    fn walk(&self, text: &[u8], base: usize, mut state: u16, hits: &mut Vec<Hit>) {
        for (at, byte) in text.iter().enumerate() {
            let class = self.classes[usize::from(*byte)];
            state = self.table[(usize::from(state) << self.shift) | usize::from(class)];
            if state >= self.first_match {
                hits.push(Hit { end: position(base + at + 1), state });
            }
        }
    }
}

/// Bytes that the table does not tell apart: case, kinds of quotes, brackets and slashes, and
/// everything outside ASCII. That keeps a row of the table within two cache lines.
fn folded(byte: u8) -> u8 {
    match byte {
        b'"' | b'`' => b'\'',
        b'[' | b'{' => b'(',
        b']' | b'}' => b')',
        b'\\' => b'/',
        b'>' => b'<',
        0x80.. => 0x80,
        other => other.to_ascii_lowercase(),
    }
}

/// The part of a pattern that is least likely to stand in a log by chance: the table looks for that
/// part alone.
fn rarest_window(pattern: &[u8]) -> &[u8] {
    let width = pattern.len().min(WINDOW_BYTES_MAX);
    let cost = |window: &[u8]| window.iter().map(|b| commonness(*b)).sum::<u32>();
    pattern.windows(width.max(1)).min_by_key(|window| cost(window)).unwrap_or(pattern)
}

/// How common a byte is in logs, roughly: twice the logarithm of its share.
fn commonness(byte: u8) -> u32 {
    match byte.to_ascii_lowercase() {
        b' ' => 16,
        b'e' | b't' => 13,
        b'a' | b'i' | b'n' | b'o' | b'r' | b's' => 12,
        b'c' | b'd' | b'l' | b'p' | b'm' | b'u' => 10,
        b'.' | b'-' | b'/' | b':' | b'_' | b'=' | b'0'..=b'9' => 10,
        b'b' | b'f' | b'g' | b'h' | b'v' | b'y' | b'k' | b'w' => 8,
        b'x' | b'j' | b'q' | b'z' => 6,
        _ => 5,
    }
}

fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn memchr_newline(text: &[u8]) -> Option<usize> {
    text.iter().position(|b| *b == b'\n')
}

/// The trie of all patterns, while the table is made.
struct Trie {
    classes: [u8; 256],
    class_count: usize,
    /// Next states by class; 0 is none, because nothing leads back to the root.
    next: Vec<Vec<u16>>,
    values: Vec<Vec<u16>>,
}

impl Trie {
    fn new<'p>(patterns: impl Iterator<Item = (&'p [u8], u16)>) -> Result<Self, TooManyPatterns> {
        let patterns: Vec<(Vec<u8>, u16)> = patterns
            .map(|(pattern, value)| {
                (rarest_window(pattern).iter().map(|b| folded(*b)).collect::<Vec<u8>>(), value)
            })
            .filter(|(pattern, _)| !pattern.is_empty())
            .collect();
        let mut classes = [0u8; 256];
        let mut class_count = 1;
        for byte in patterns.iter().flat_map(|(pattern, _)| pattern) {
            if classes[usize::from(*byte)] == 0 {
                classes[usize::from(*byte)] = u8::try_from(class_count).map_err(|_| TooManyPatterns)?;
                class_count += 1;
            }
        }
        for byte in 0..=u8::MAX {
            classes[usize::from(byte)] = classes[usize::from(folded(byte))];
        }
        let mut trie =
            Trie { classes, class_count, next: vec![vec![0; class_count]], values: vec![Vec::new()] };
        for (pattern, value) in &patterns {
            trie.insert(pattern, *value)?;
        }
        Ok(trie)
    }

    fn insert(&mut self, pattern: &[u8], value: u16) -> Result<(), TooManyPatterns> {
        let mut state = 0usize;
        for byte in pattern {
            let class = usize::from(self.classes[usize::from(*byte)]);
            if self.next[state][class] == 0 {
                let new = u16::try_from(self.next.len())
                    .ok()
                    .filter(|n| usize::from(*n) < STATES_MAX)
                    .ok_or(TooManyPatterns)?;
                self.next[state][class] = new;
                self.next.push(vec![0; self.class_count]);
                self.values.push(Vec::new());
            }
            state = usize::from(self.next[state][class]);
        }
        if !self.values[state].contains(&value) {
            self.values[state].push(value);
        }
        Ok(())
    }

    /// Follows the failure links into every row, then orders the states: those near the root first,
    /// because they are walked most and should lie close together; ends of patterns last, so that
    /// one comparison finds them.
    fn into_table(mut self) -> Automaton {
        let count = self.next.len();
        let mut fail = vec![0usize; count];
        let mut order = Vec::with_capacity(count);
        let mut queue = VecDeque::from([0usize]);
        while let Some(state) = queue.pop_front() {
            order.push(state);
            for class in 0..self.class_count {
                let child = usize::from(self.next[state][class]);
                let fallback = if state == 0 { 0 } else { usize::from(self.next[fail[state]][class]) };
                if child == 0 {
                    self.next[state][class] = u16::try_from(fallback).unwrap_or(0);
                } else {
                    fail[child] = fallback;
                    let inherited = self.values[fallback].clone();
                    for value in inherited {
                        if !self.values[child].contains(&value) {
                            self.values[child].push(value);
                        }
                    }
                    queue.push_back(child);
                }
            }
        }
        let (plain, ends): (Vec<usize>, Vec<usize>) =
            order.into_iter().partition(|s| self.values[*s].is_empty());
        let mut renamed = vec![0u16; count];
        for (new, old) in plain.iter().chain(&ends).enumerate() {
            renamed[*old] = u16::try_from(new).unwrap_or(0);
        }
        let shift = usize::BITS - (self.class_count.max(2) - 1).leading_zeros();
        let mut table = vec![0u16; count << shift];
        let mut starts = vec![0u32];
        let mut values = Vec::new();
        for old in plain.iter().chain(&ends) {
            let row = usize::from(renamed[*old]) << shift;
            for class in 0..self.class_count {
                table[row + class] = renamed[usize::from(self.next[*old][class])];
            }
        }
        for old in &ends {
            values.extend_from_slice(&self.values[*old]);
            starts.push(u32::try_from(values.len()).unwrap_or(u32::MAX));
        }
        Automaton {
            classes: Cow::Owned(self.classes.to_vec()),
            table: Cow::Owned(table),
            shift,
            first_match: u16::try_from(plain.len()).unwrap_or(u16::MAX),
            starts: Cow::Owned(starts),
            values: Cow::Owned(values),
        }
    }
}
