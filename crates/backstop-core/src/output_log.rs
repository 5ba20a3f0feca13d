//! The output of one attempt as it is recorded: both streams, in the order in which they were read.

use crate::SafeText;
use serde::{Deserialize, Serialize};

/// A stream of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Both in one: a terminal, or one file for both.
    Both,
}

impl OutputStream {
    /// The name as it is written in outputs.
    pub fn name(self) -> &'static str {
        match self {
            OutputStream::Stdout => "stdout",
            OutputStream::Stderr => "stderr",
            OutputStream::Both => "output",
        }
    }
}

/// Consecutive text of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedOutput {
    /// The stream.
    pub stream: OutputStream,
    /// The text, with secrets masked.
    pub text: SafeText,
    /// How many bytes of the stream before this text were not kept.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub left_out_bytes: u64,
}

/// The output of one attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OutputLog {
    /// Its parts, in the order in which they were read.
    pub parts: Vec<LoggedOutput>,
}

impl OutputLog {
    /// Whether there is no text in it.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.text.is_empty())
    }

    /// Appends text of a stream. Text that follows text of the same stream is joined to it.
    pub fn push(&mut self, stream: OutputStream, text: &str, left_out_bytes: u64) {
        if text.is_empty() && left_out_bytes == 0 {
            return;
        }
        let last = self.parts.last_mut().filter(|last| last.stream == stream && left_out_bytes == 0);
        if let Some(last) = last {
            last.text = SafeText::new(format!("{}{text}", last.text.raw()));
            return;
        }
        self.parts.push(LoggedOutput { stream, text: SafeText::new(text), left_out_bytes });
    }

    /// How many bytes of text it has.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.text.raw().len()).sum()
    }

    /// The same within `bytes_max` bytes: where it is longer, its beginning (a quarter) and its end
    /// stay, and what lies between is counted.
    #[must_use]
    pub fn bounded(self, bytes_max: usize) -> Self {
        let total = self.bytes();
        if total <= bytes_max {
            return self;
        }
        let head_to = bytes_max / 4;
        let tail_from = total - (bytes_max - head_to);
        let mut bounded = Self::default();
        let mut left_out: Vec<(OutputStream, u64)> = Vec::new();
        let mut at = 0;
        let mut gap_at = None;
        for part in self.parts {
            let text = part.text.raw();
            let head = &text[..text.floor_char_boundary(head_to.saturating_sub(at))];
            let rest = &text[head.len()..];
            let skipped = tail_from.saturating_sub(at + head.len()).min(rest.len());
            let tail = &rest[rest.ceil_char_boundary(skipped)..];
            at += text.len();
            bounded.push(part.stream, head, if head.is_empty() { 0 } else { part.left_out_bytes });
            let known = if head.is_empty() { part.left_out_bytes } else { 0 };
            let missing = known + (rest.len() - tail.len()) as u64;
            let earlier = left_out.iter().position(|(stream, _)| *stream == part.stream);
            let earlier = earlier.map_or(0, |at| left_out.swap_remove(at).1);
            if tail.is_empty() {
                left_out.push((part.stream, earlier + missing));
            } else {
                gap_at.get_or_insert(bounded.parts.len());
                bounded.push(part.stream, tail, earlier + missing);
            }
        }
        // A stream of which nothing is in the end: it is missing where the end begins.
        let gap_at = gap_at.unwrap_or(bounded.parts.len());
        for (stream, left_out_bytes) in left_out.into_iter().filter(|(_, bytes)| *bytes > 0) {
            let text = SafeText::default();
            bounded.parts.insert(gap_at, LoggedOutput { stream, text, left_out_bytes });
        }
        bounded
    }

    /// Its lines in order, each with its stream.
    pub fn lines(&self) -> impl Iterator<Item = (OutputStream, &str)> {
        self.parts.iter().flat_map(|part| part.text.raw().lines().map(move |line| (part.stream, line)))
    }

    /// The lines that are shown where there is room for `lines_max`: the last ones, but at least
    /// some of each stream that wrote anything, because the stream that wrote last is not always
    /// the one that says what is wrong. Empty lines are left out.
    pub fn last_lines(&self, lines_max: usize) -> Vec<(OutputStream, &str)> {
        /// How many lines of each stream are shown, if it has them.
        const OF_EACH_MIN: usize = 3;
        let lines: Vec<(OutputStream, &str)> =
            self.lines().filter(|(_, line)| !line.trim().is_empty()).collect();
        let mut chosen = vec![false; lines.len()];
        for stream in [OutputStream::Stderr, OutputStream::Stdout, OutputStream::Both] {
            let of_stream = (0..lines.len()).rev().filter(|at| lines[*at].0 == stream);
            for at in of_stream.take(OF_EACH_MIN.min(lines_max / 2)) {
                chosen[at] = true;
            }
        }
        let mut room = lines_max.saturating_sub(chosen.iter().filter(|chosen| **chosen).count());
        for at in (0..lines.len()).rev() {
            if room == 0 {
                break;
            }
            if !chosen[at] {
                chosen[at] = true;
                room -= 1;
            }
        }
        lines.into_iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(line, _)| line).collect()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref)] // serde's interface.
fn is_zero(n: &u64) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use OutputStream::{Stderr, Stdout};

    #[test]
    fn the_last_lines_have_some_of_each_stream() {
        let mut log = OutputLog::default();
        log.push(Stderr, "early\nerror: the cause\n", 0);
        for n in 0..100 {
            log.push(Stdout, &format!("out {n}\n"), 0);
        }
        let lines = log.last_lines(6);
        assert_eq!(
            lines,
            [
                (Stderr, "early"),
                (Stderr, "error: the cause"),
                (Stdout, "out 96"),
                (Stdout, "out 97"),
                (Stdout, "out 98"),
                (Stdout, "out 99")
            ]
        );
        assert_eq!(log.parts.len(), 2);
        assert!(log.last_lines(0).is_empty() && OutputLog::default().last_lines(5).is_empty());
    }

    #[test]
    fn a_long_log_keeps_its_beginning_and_its_end() {
        let mut log = OutputLog::default();
        log.push(Stdout, &"a".repeat(100), 0);
        log.push(Stderr, &"é".repeat(50), 0);
        log.push(Stdout, &"c".repeat(100), 7);
        let all = log.bytes();
        assert_eq!(log.clone().bounded(all), log);
        for max in 0..all {
            let bounded = log.clone().bounded(max);
            assert!(bounded.bytes() <= max, "{max}");
            let left_out: u64 = bounded.parts.iter().map(|part| part.left_out_bytes).sum();
            assert_eq!(bounded.bytes() as u64 + left_out, all as u64 + 7, "{max}: {bounded:?}");
        }
        let half = log.bounded(100);
        assert_eq!(half.parts[0].text.raw(), "a".repeat(25));
        assert_eq!(half.parts.last().unwrap().text.raw(), "c".repeat(75));
    }

    #[test]
    fn streams_stay_apart_and_in_order() {
        let mut log = OutputLog::default();
        log.push(Stdout, "a\n", 0);
        log.push(Stderr, "b\n", 0);
        log.push(Stdout, "c\n", 10);
        log.push(Stdout, "", 0);
        let json = serde_json::to_value(&log).unwrap();
        assert_eq!(json[2]["left_out_bytes"], 10);
        assert_eq!(serde_json::from_value::<OutputLog>(json).unwrap(), log);
        assert_eq!(log.lines().collect::<Vec<_>>(), [(Stdout, "a"), (Stderr, "b"), (Stdout, "c")]);
    }
}
