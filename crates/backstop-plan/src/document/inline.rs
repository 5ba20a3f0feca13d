//! Removes the Markdown markup of a cell or heading: what is left is what a reader sees.
//!
//! It takes one pass over the text, whatever the text is. It must not know what the text is for.

use std::collections::HashMap;
use std::ops::Range;

/// The code spans of a text, with their backticks, in order. A backtick run that is never closed is
/// not a span.
pub(crate) fn code_spans(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut spans = Vec::new();
    let run = |at: usize| bytes[at..].iter().take_while(|byte| **byte == b'`').count();
    // The positions of the runs by length: one pass is enough even where every run has another
    // length.
    let mut runs: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut at = 0;
    while let Some(next) = text[at..].find('`').map(|found| at + found) {
        let length = run(next);
        runs.entry(length).or_default().push(next);
        at = next + length;
    }
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'`' => {
                let length = run(at);
                let same = runs.get(&length).map_or(&[][..], Vec::as_slice);
                let close = same.get(same.partition_point(|start| *start < at + length)).copied();
                let end = close.map(|close| close + length);
                spans.extend(end.map(|end| at..end));
                at = end.unwrap_or(at + length);
            }
            _ => at += 1,
        }
    }
    spans
}

/// The text without its markup: emphasis, links, code marks, tags and escapes. `<br>` becomes a
/// line end.
pub(crate) fn plain(text: &str) -> String {
    let mut reader = Plain { text, out: Vec::with_capacity(text.len()), brackets: Vec::new(), dead: [0; 3] };
    let mut at = 0;
    for span in code_spans(text) {
        reader.outside(at, span.start);
        reader.code(&text[span.clone()]);
        at = span.end;
    }
    reader.outside(at, text.len());
    let seen: String = reader.out.into_iter().filter(|c| *c != GONE).collect();
    let seen = seen.trim_matches([' ', '\t', '\u{a0}']);
    let inner = seen.strip_prefix('_').and_then(|rest| rest.strip_suffix('_'));
    inner.map_or(seen, |inner| inner.trim_matches('_')).trim().to_owned()
}

/// Replaces a character that turns out to be markup. No text contains it.
const GONE: char = '\0';

struct Plain<'t> {
    text: &'t str,
    out: Vec<char>,
    /// The positions of opening brackets in `out`.
    brackets: Vec<usize>,
    /// Up to which byte there is known to be no `)`, `]`, `>`.
    dead: [usize; 3],
}

impl Plain<'_> {
    /// A code span, unchanged except that an escaped pipe loses its backslash.
    fn code(&mut self, span: &str) {
        let inner = span.trim_matches('`').replace("\\|", "|");
        self.out.extend(inner.trim().chars());
    }

    /// Text between two bytes without a code span.
    fn outside(&mut self, mut at: usize, end: usize) {
        while let Some(c) = self.text[at..end].chars().next() {
            let next = at + c.len_utf8();
            let after = self.text[next..end].chars().next();
            at = next;
            match c {
                '\\' if after.is_some_and(|c| c.is_ascii_punctuation()) => {
                    self.out.extend(after);
                    at += 1;
                }
                '`' => {}
                '*' | '~' => {
                    let before = self.out.last().copied();
                    let loose = |c: Option<char>| c.is_none_or(char::is_whitespace);
                    if loose(before) && loose(after)
                        || (c == '~' && before != Some(GONE) && after != Some('~'))
                    {
                        self.out.push(c);
                    } else {
                        self.out.push(GONE);
                    }
                }
                '[' => {
                    self.brackets.push(self.out.len());
                    self.out.push(c);
                }
                ']' => at = self.closed(at, end),
                '<' if after.is_some_and(|c| c.is_ascii_alphabetic() || c == '/') => {
                    match self.find(at, end, '>') {
                        Some(close) => {
                            if self.text[at..close].to_ascii_lowercase().starts_with("br") {
                                self.out.push('\n');
                            }
                            at = close + 1;
                        }
                        None => self.out.push(c),
                    }
                }
                c => self.out.push(c),
            }
        }
    }

    /// After a closing bracket: skips what follows if it is the target of a link.
    fn closed(&mut self, at: usize, end: usize) -> usize {
        let open = self.brackets.pop();
        let target = open.and_then(|open| {
            let close = match self.text[at..end].chars().next()? {
                '(' => self.find(at, end, ')')?,
                '[' => self.find(at, end, ']')?,
                _ => return None,
            };
            Some((open, close))
        });
        match target {
            Some((open, close)) => {
                self.out[open] = GONE;
                close + 1
            }
            None => {
                self.out.push(']');
                at
            }
        }
    }

    /// The next closing character. No part of the text is searched twice without success.
    fn find(&mut self, at: usize, end: usize, close: char) -> Option<usize> {
        let dead = &mut self.dead[match close {
            ')' => 0,
            ']' => 1,
            _ => 2,
        }];
        if at < *dead {
            return None;
        }
        let found = self.text[at..end].find(close).map(|found| at + found);
        if found.is_none() {
            *dead = end;
        }
        found
    }
}

/// The text without remarks in parentheses, and the remarks. A parenthesis that is never closed
/// runs to the end.
pub(crate) fn without_remarks(text: &str) -> (String, String) {
    let (mut outside, mut inside) = (String::new(), String::new());
    let mut depth = 0usize;
    for c in text.chars() {
        match c {
            '(' => {
                depth += 1;
                outside.push(' ');
            }
            ')' if depth > 0 => depth -= 1,
            c if depth == 0 => outside.push(c),
            c => inside.push(c),
        }
    }
    (outside.trim().to_owned(), inside.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_looked_through() {
        for (text, want) in [
            ("**2A**", "2A"),
            ("*2A*", "2A"),
            ("_2A_", "2A"),
            ("__2A__", "2A"),
            ("`2A`", "2A"),
            ("[2A](#phase-2a)", "2A"),
            ("[**Phase 2A**][ref]", "Phase 2A"),
            ("~~2A~~", "2A"),
            ("~2h", "~2h"),
            ("a\\|b `c\\|d` \\*e\\*", "a|b c|d *e*"),
            ("a * b", "a * b"),
            ("snake_case `*.rs`", "snake_case *.rs"),
            ("1<br>2<BR/>3", "1\n2\n3"),
            ("<a id=\"x\"></a>2A", "2A"),
            ("a < b > c", "a < b > c"),
            ("[ ] x [y", "[ ] x [y"),
            ("a ` b", "a  b"),
            ("", ""),
        ] {
            assert_eq!(plain(text), want, "{text}");
        }
    }

    #[test]
    fn code_spans_need_their_own_kind_of_end() {
        let spans = |text: &str| -> Vec<String> {
            code_spans(text).into_iter().map(|r| text[r].to_owned()).collect()
        };
        assert_eq!(spans("a `b` ``c`d`` `e"), ["`b`", "``c`d``"]);
        assert_eq!(spans("\\`a` b`"), ["` b`"]);
        assert_eq!(spans("`a\\`"), ["`a\\`"]);
        assert_eq!(spans("é\\é`x`"), ["`x`"]);
    }

    #[test]
    fn remarks_are_taken_out() {
        let of = |text: &str| without_remarks(text);
        assert_eq!(
            of("Phase 0 (or nothing if skipped)"),
            ("Phase 0".to_owned(), "or nothing if skipped".to_owned())
        );
        assert_eq!(of("(none)"), (String::new(), "none".to_owned()));
        assert_eq!(of("1 (a (b) c), 2"), ("1   , 2".to_owned(), "a b c".to_owned()));
        assert_eq!(of("1 (open"), ("1".to_owned(), "open".to_owned()));
        assert_eq!(of("1) 2"), ("1) 2".to_owned(), String::new()));
    }
}
