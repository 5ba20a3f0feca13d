//! Waits in the output of a command: headers that it printed, objects on a line, sentences.

use super::body::object_in;
use super::clock::Clock;
use super::hints::Hints;
use super::prose;
use super::{Wait, fields};

/// How many lines are read of a text.
const LINES_MAX: usize = 4096;
/// How far a line may be from words about a limit to count as near to them.
const NEAR_LINES: u64 = 3;

/// A line of output.
#[derive(Debug, Clone, Copy)]
pub struct OutputLine<'t> {
    /// Its number.
    pub number: u64,
    /// Its text.
    pub text: &'t str,
    /// Whether it is known to stand beside words about a limit.
    pub near_limit: bool,
}

/// The wait that a whole text asks for.
pub fn in_output(text: &str, clock: &Clock) -> Option<Wait> {
    let lines: Vec<&str> = text.lines().take(LINES_MAX).collect();
    let limits: Vec<u64> =
        (0u64..).zip(&lines).filter(|(_, line)| prose::speaks_of_a_limit(line)).map(|(n, _)| n).collect();
    let lines = (0u64..).zip(&lines).map(|(number, text)| OutputLine {
        number,
        text,
        near_limit: limits.iter().any(|limit| limit.abs_diff(number) <= NEAR_LINES),
    });
    in_lines(lines, !limits.is_empty(), clock)
}

/// The wait that some lines of an output ask for. Fields beat sentences; of several answers the
/// last one counts. In a refusal, the end of a window counts even where nothing says that it is
/// used up.
pub fn in_lines<'t>(
    lines: impl IntoIterator<Item = OutputLine<'t>>,
    is_refusal: bool,
    clock: &Clock,
) -> Option<Wait> {
    let mut answers = Hints::default();
    let mut structured = None;
    let mut unexplained = None;
    let mut worded = None;
    let mut opens_delay = false;
    for line in lines {
        // `retry_delay {`, and on the next line `seconds: 23`.
        let delay = line.text.trim_start().strip_prefix("seconds:").filter(|_| opens_delay);
        opens_delay = line.text.trim_end().ends_with("retry_delay {");
        if let Some(seconds) = delay {
            answers.read_field("retry-after", seconds, clock);
            continue;
        }
        // Another answer begins: what was asked for before is over.
        if line.text.trim_start_matches(['<', ' ']).starts_with("HTTP/") {
            structured = answers.structured().or(structured);
            unexplained = None;
            answers = Hints::default();
        }
        if let Some((object, rest)) = object_in(line.text) {
            let mut inner = Hints::default();
            inner.read_body(&object, clock, 0);
            structured = inner.structured().or(structured);
            unexplained = inner.unexplained_reset().or(unexplained);
            // A program may say in words what it makes of the answer.
            let near_limit = line.near_limit || prose::speaks_of_a_limit(line.text);
            worded = prose::read(rest, near_limit, clock).or(inner.in_words).or(worded);
            continue;
        }
        let fields = fields::read(line.text);
        let is_field =
            fields.iter().fold(false, |known, (name, value)| answers.read_field(name, value, clock) || known);
        if is_field {
            continue;
        }
        if let Some(after) = prose::marked(line.text, clock) {
            structured = Some(after);
            continue;
        }
        worded = prose::read(line.text, line.near_limit, clock).or(worded);
    }
    let structured = answers.structured().or(structured);
    let unexplained = answers.unexplained_reset().or(unexplained).filter(|_| is_refusal);
    let wait = |after, is_structured| Wait { after, is_structured };
    structured
        .map(|after| wait(after, true))
        .or_else(|| worded.map(|after| wait(after, false)))
        .or_else(|| unexplained.map(|after| wait(after, true)))
}
