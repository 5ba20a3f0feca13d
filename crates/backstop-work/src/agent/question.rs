//! A question that nobody will answer: an agent that asks for permission, a login, trust, an update
//! or a model waits for ever when it runs headless.
//!
//! [`Questions`] follows both streams of an agent while it runs. Where it has been silent for
//! [`SILENCE`] and its last lines are a known question (`questions.toml`), it is asked to end. What
//! only draws a line again (a spinner, the same dialog once more) is silence.
//! Lines that are events of the agent's own format are no questions: whatever a model says is in
//! them.

use super::overage;
use crate::log::Tee;
use backstop_classify::{Classifier, pack};
use backstop_core::{Confidence, Fault, SafeText, Signal};
use backstop_exec::Stop;
use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long an agent is silent after a question before it is ended.
pub(super) const SILENCE: Duration = Duration::from_secs(30);
/// How many of the last lines are looked at. A dialog has its question, a frame and its choices.
const LINES_MAX: usize = 14;
/// How much of a line is looked at.
const LINE_BYTES_MAX: usize = 1 << 10;
/// How many events of the other stream a line outlives: the two streams are read apart, and what
/// was written first may be read last.
const EVENTS_OUTLIVED: u8 = 2;
/// How sure it is at least that it asks, in percent.
const SURE_PERCENT: u8 = 80;
/// How much of the question is quoted.
const QUOTE_CHARS_MAX: usize = 160;

static RULES: LazyLock<Option<Classifier>> = LazyLock::new(|| {
    let rules = pack::parse("questions.toml", include_str!("questions.toml")).ok()?;
    Classifier::only(rules).ok()
});

/// What these last lines ask, where they ask something.
pub(super) fn asked(lines: &str) -> Option<Fault> {
    let signal = Signal::exited(1).text(lines);
    let mut fault = RULES.as_ref()?.classify(&signal)?;
    let rule = fault.evidence.iter().find(|evidence| evidence.rule.starts_with("question."))?;
    let quote = SafeText::new(rule.text.raw().trim()).line(QUOTE_CHARS_MAX);
    fault.cause = Some(SafeText::new(format!("it asks, and nobody will answer: {quote}")));
    // It would ask the same again, however well the words are known.
    fault.confidence = fault.confidence.max(Confidence::of_percent(SURE_PERCENT));
    fault.facts.should_retry = Some(false);
    Some(fault)
}

/// The last lines of both streams that are no events, as they come in.
#[derive(Clone, Default)]
pub(super) struct Questions(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    lines: VecDeque<Line>,
    /// The line that has not ended yet, of each stream.
    open: [Vec<u8>; 2],
    /// What can be read of it.
    open_words: [String; 2],
    /// How many writes there were that said something new.
    writes: u64,
    is_over: bool,
    fault: Option<Fault>,
    /// Whether an agent that goes on with paid usage is let go on.
    allows_overage: bool,
}

/// A line that is no event.
struct Line {
    text: String,
    /// What can be read of it, without frames and spinners.
    words: String,
    stream: usize,
    /// How many events of the other stream came after it.
    events_after: u8,
}

impl State {
    /// Takes what was written. Says whether it is more than a line that is drawn again.
    fn push(&mut self, stream: usize, bytes: &[u8]) -> bool {
        let mut is_new = false;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let open = &mut self.open[stream];
            let room = LINE_BYTES_MAX.saturating_sub(open.len());
            open.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(open);
                self.open_words[stream].clear();
                is_new |= self.end_line(stream, &line);
                continue;
            }
            redrawn(open);
            let words = words_of(open);
            let goes_on = room == 0 && !words_of(piece).is_empty();
            let is_known = words.is_empty() || words == self.open_words[stream] || self.has(stream, &words);
            is_new |= is_event(&self.open[stream]) || goes_on || !is_known;
            self.open_words[stream] = words;
        }
        self.writes += u64::from(is_new);
        is_new
    }

    /// Whether one of the last lines says this.
    fn has(&self, stream: usize, words: &str) -> bool {
        self.lines.iter().any(|line| line.stream == stream && line.words == words)
    }

    /// Takes a whole line. Says whether it is new.
    fn end_line(&mut self, stream: usize, line: &[u8]) -> bool {
        if is_event(line) {
            if !self.allows_overage && self.fault.is_none() {
                self.fault = overage::begun(line);
            }
            // It went on after whatever was asked before.
            self.lines.iter_mut().for_each(|line| line.events_after = line.events_after.saturating_add(1));
            self.lines.retain(|line| line.stream != stream && line.events_after <= EVENTS_OUTLIVED);
            return true;
        }
        let mut line = line.trim_ascii_end().to_vec();
        redrawn(&mut line);
        let words = words_of(&line);
        if words.is_empty() || self.has(stream, &words) {
            return false;
        }
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        self.lines.push_back(Line { text, words, stream, events_after: 0 });
        true
    }

    fn text(&self) -> String {
        let open = self.open.iter().filter(|line| !line.is_empty() && !is_event(line));
        let open = open.map(|line| String::from_utf8_lossy(line).into_owned());
        self.lines.iter().map(|line| line.text.clone()).chain(open).collect::<Vec<_>>().join("\n")
    }
}

/// Leaves of a line that was drawn several times the last time that says something.
fn redrawn(line: &mut Vec<u8>) {
    if !line.contains(&b'\r') {
        return;
    }
    let says = |piece: &&[u8]| !words_of(piece).is_empty();
    let last = line.split(|byte| *byte == b'\r').rfind(says).unwrap_or_default().to_vec();
    *line = last;
}

/// The letters and digits of a text, without escape sequences.
fn words_of(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut words = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            words.extend(Some(c).filter(|c| c.is_alphanumeric()));
            continue;
        }
        match chars.next() {
            Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
            Some(']') => while chars.next().is_some_and(|c| c != '\u{7}') {},
            _ => {}
        }
    }
    words
}

fn is_event(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"{\"")
}

impl Questions {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of an agent that may use what is paid for beside its subscription, or may not.
    pub(super) fn new(allows_overage: bool) -> Self {
        let questions = Self::default();
        questions.state().allows_overage = allows_overage;
        questions
    }

    /// A stream that is followed on its way to the log.
    pub(super) fn stream(&self, number: usize, log: Tee) -> impl Write + Send + 'static {
        Followed { questions: self.clone(), number, log }
    }

    /// Ends the agent once it is silent after a question. Blocking, until [`Questions::over`].
    pub(super) fn watch(&self, stop: &Stop, silence: Duration) {
        let mut state = self.state();
        while !state.is_over {
            let before = state.writes;
            let waited = self.0.1.wait_timeout(state, silence);
            let (next, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = next;
            if state.fault.is_some() && !state.is_over {
                drop(state);
                stop.request();
                return;
            }
            if timeout.timed_out() && state.writes == before && !state.is_over {
                if let Some(fault) = asked(&state.text()) {
                    state.fault = Some(fault);
                    drop(state);
                    stop.request();
                    return;
                }
                // Nothing new can be asked before something is written.
                while state.writes == before && !state.is_over && state.fault.is_none() {
                    state = self.0.1.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// The agent has ended: nothing is watched any more.
    pub(super) fn over(&self) {
        self.state().is_over = true;
        self.0.1.notify_all();
    }

    /// The question for which it was ended.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.state().fault.clone()
    }

    /// The last lines that are no events.
    pub(super) fn last_lines(&self) -> String {
        self.state().text()
    }
}

struct Followed {
    questions: Questions,
    number: usize,
    log: Tee,
}

impl Write for Followed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut state = self.questions.state();
        // Who watches is not woken for a line that is drawn again.
        if state.push(self.number, bytes) || state.fault.is_some() {
            self.questions.0.1.notify_all();
        }
        drop(state);
        self.log.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.log.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use backstop_classify::check_examples;
    use backstop_core::Reason;

    #[test]
    fn every_question_matches_its_examples_and_not_its_near_misses() {
        let rules = pack::parse("questions.toml", include_str!("questions.toml")).unwrap();
        assert!(rules.len() >= 20);
        assert!(rules.iter().all(|rule| rule.next.is_some() && rule.id.starts_with("question.")));
        let classifier = Classifier::only(rules).unwrap();
        let failures = check_examples(&classifier, |_| true);
        let list: Vec<String> = failures.iter().map(ToString::to_string).collect();
        assert!(list.is_empty(), "{}", list.join("\n"));
    }

    #[test]
    fn a_question_names_the_setting_that_avoids_it() {
        let dialog = "Reading the plan\nWould you like to run the following command?\n  1. Yes\n  2. No";
        let fault = asked(dialog).unwrap();
        assert_eq!(fault.reason, Reason::PermissionDenied);
        assert!(fault.suggested_action.raw().contains("-s workspace-write"), "{}", fault.suggested_action);
        assert!(fault.cause.unwrap().raw().contains("Would you like to run"));
        // It is not asked a second time.
        assert_eq!((fault.facts.should_retry, fault.confidence.is_low()), (Some(false), false));
        let guessed = asked("Continue? [y/N]").unwrap();
        assert_eq!((guessed.facts.should_retry, guessed.confidence.is_low()), (Some(false), false));
        assert!(asked("Compiling a v0.1.0\nFinished").is_none());
        assert!(asked("").is_none());
    }

    #[test]
    fn what_a_model_says_in_an_event_is_no_question() {
        let questions = Questions::default();
        let mut out = questions.stream(0, Tee::new(Log::none()));
        let mut err = questions.stream(1, Tee::new(Log::none()));
        writeln!(out, "Do you trust the files in this folder?").unwrap();
        assert!(asked(&questions.last_lines()).is_some());
        writeln!(out, "{{\"type\":\"assistant\",\"text\":\"Continue? [y/N]\"}}").unwrap();
        assert!(asked(&questions.last_lines()).is_none(), "it went on");
        // The streams are read apart: what was written to the other one first may be read last.
        let event = "{\"type\":\"system\"}";
        writeln!(err, "Do you trust the files in this folder?\n > 1. Yes").unwrap();
        writeln!(out, "{event}\n{event}").unwrap();
        assert!(asked(&questions.last_lines()).is_some());
        writeln!(out, "{event}").unwrap();
        assert!(asked(&questions.last_lines()).is_none(), "it went on");
        write!(err, "Overwrite? (y/n) ").unwrap();
        assert!(asked(&questions.last_lines()).is_some(), "a line without an end counts");
        for _ in 0..100 {
            write!(err, "{}", "x".repeat(100_000)).unwrap();
        }
        assert!(questions.last_lines().len() < 2 * LINE_BYTES_MAX);
    }

    /// Gives whether it was new.
    fn written(questions: &Questions, bytes: &str) -> bool {
        questions.state().push(0, bytes.as_bytes())
    }

    #[test]
    fn what_only_draws_a_line_again_is_silence() {
        let questions = Questions::default();
        assert!(written(&questions, "Do you trust the files in this folder?\n  1. Yes\n  2. No\n"));
        for again in [
            "\r|",
            "\r/",
            "\r-",
            "\r\\",
            "\x1b[2K\r⠋ ",
            "\r⠙\n",
            "\n",
            "  ",
            ".",
            "\x1b[?25l",
            "\x1b[1A\x1b[2K",
            "\x1b[2K\x1b[1ADo you trust the files in this folder?\r\n  1. Yes\r\n",
            "╭────╮\n│ 1. Yes │\n",
            "  2. No",
            "\x1b]0;⠋\x07",
            "\n",
        ] {
            assert!(!written(&questions, again), "{again:?}");
        }
        assert!(written(&questions, "⠋ Waiting"), "once");
        assert!(!written(&questions, "\r⠙ Waiting") && !written(&questions, "\r⠹ Waiting"));
        assert!(asked(&questions.last_lines()).is_some(), "{}", questions.last_lines());
        for life in [
            "\r⠙ Thinking 5s",
            "\r⠙ Thinking 6s",
            "\nReading a.rs\n",
            "{\"type\"",
            ":1",
            ",2",
            "}\n",
            "1. Yes\n",
        ] {
            assert!(written(&questions, life), "{life:?}");
        }
        // A line without an end says something as long as it goes on.
        let questions = Questions::default();
        for _ in 0..40 {
            assert!(written(&questions, &"word ".repeat(40)));
        }
        assert!(!written(&questions, "\r|"));
        // The question is what was drawn last that says something.
        let questions = Questions::default();
        written(&questions, "Loading\rOverwrite a.rs? [y/N] \r|");
        assert_eq!(questions.last_lines(), "Overwrite a.rs? [y/N] ");
    }

    #[test]
    fn a_spinner_does_not_keep_a_question_alive() {
        let (questions, stop) = (Questions::default(), Stop::new());
        let mut out = questions.stream(0, Tee::new(Log::none()));
        std::thread::scope(|scope| {
            let watching = scope.spawn(|| questions.watch(&stop, Duration::from_millis(40)));
            writeln!(out, "Do you trust the files in this folder?").unwrap();
            // It spins as long as nobody ends it.
            while stop.requests() == 0 {
                write!(out, "\r|").unwrap();
                std::thread::yield_now();
            }
            watching.join().unwrap();
        });
        assert_eq!(questions.fault().unwrap().reason, Reason::PermissionDenied);
    }

    #[test]
    fn silence_after_a_question_ends_it_and_other_silence_does_not() {
        let (questions, stop) = (Questions::default(), Stop::new());
        let mut out = questions.stream(0, Tee::new(Log::none()));
        std::thread::scope(|scope| {
            let watching = scope.spawn(|| questions.watch(&stop, Duration::from_millis(5)));
            writeln!(out, "thinking").unwrap();
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(stop.requests(), 0);
            write!(out, "Continue? [y/N] ").unwrap();
            watching.join().unwrap();
        });
        assert_eq!(stop.requests(), 1);
        assert!(questions.fault().is_some());
        // One that ends by itself is let go at once.
        let questions = Questions::default();
        std::thread::scope(|scope| {
            scope.spawn(|| questions.watch(&stop, Duration::from_secs(3600)));
            questions.over();
        });
        assert!(questions.fault().is_none());
    }
}
