//! What an agent says in a turn: for the log as it comes, as messages for what is known of the
//! turn.

use super::super::dialect::AgentOutput;
use super::conversation::Act;

/// How much of its words is kept, in bytes: the end.
const WORDS_BYTES_MAX: usize = 256 << 10;
/// How much of the last piece of its words is kept, in bytes.
const CHUNK_BYTES_MAX: usize = 4 << 10;

/// The words of one turn.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Those since the last tool call.
    open: String,
    /// The last piece of them.
    last_chunk: String,
    /// Whether the log is in the middle of a line.
    mid_line: bool,
}

impl Words {
    /// Takes a piece of its words. Gives what is logged.
    pub(super) fn add(&mut self, text: &str) -> Option<Act> {
        self.open.push_str(text);
        if self.open.len() > 2 * WORDS_BYTES_MAX {
            keep_end(&mut self.open);
        }
        (!text.is_empty()).then(|| {
            self.mid_line = !text.ends_with('\n');
            text[..text.floor_char_boundary(CHUNK_BYTES_MAX)].clone_into(&mut self.last_chunk);
            Act::Log(text.to_owned())
        })
    }

    /// A line of ours for the log.
    pub(super) fn line(&mut self, line: &str) -> Act {
        let before = if std::mem::take(&mut self.mid_line) { "\n" } else { "" };
        Act::Log(format!("{before}{line}\n"))
    }

    /// What it has said so far is one message of the output.
    pub(super) fn close(&mut self, output: &mut AgentOutput) {
        output.add_text(&std::mem::take(&mut self.open));
        if output.words.len() > 2 * WORDS_BYTES_MAX {
            keep_end(&mut output.words);
        }
    }

    /// The last piece of its words since the last tool call; it is forgotten then.
    pub(super) fn take_last_chunk(&mut self) -> String {
        std::mem::take(&mut self.last_chunk)
    }
}

fn keep_end(words: &mut String) {
    let from = words.ceil_char_boundary(words.len() - WORDS_BYTES_MAX);
    words.drain(..from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_bounded_and_their_end_is_kept() {
        let (mut words, mut output) = (Words::default(), AgentOutput::default());
        for _ in 0..40 {
            words.add(&"x".repeat(64 << 10));
            assert!(words.open.len() <= 2 * WORDS_BYTES_MAX);
        }
        words.add("the end");
        assert_eq!(words.take_last_chunk(), "the end");
        for _ in 0..3 {
            words.add(&"y".repeat(400 << 10));
            words.close(&mut output);
        }
        assert!(output.words.len() <= 2 * WORDS_BYTES_MAX && output.words.ends_with("y\n"));
    }

    #[test]
    fn a_line_of_ours_begins_at_the_beginning_of_a_line() {
        let mut words = Words::default();
        assert_eq!(words.add("Let me"), Some(Act::Log("Let me".to_owned())));
        assert_eq!(words.line("> ls"), Act::Log("\n> ls\n".to_owned()));
        assert_eq!(words.line("> cat"), Act::Log("> cat\n".to_owned()));
        assert_eq!(words.add(""), None);
    }
}
