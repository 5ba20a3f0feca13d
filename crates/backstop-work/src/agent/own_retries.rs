//! Requests that an agent repeats by itself: what it says of them, and when they are enough.
//!
//! Agents repeat a refused request for minutes, some for ever, and tell nobody but their log. Where
//! an agent has a setting it is turned down (`builtin.rs`). [`OwnRetries`] is for all others: it
//! follows both streams and remembers what failed. An agent whose request has failed in the same
//! way [`SAME_MAX`] times, and that has used no tool in between, is asked to end: the waiting is
//! ours, which is recorded, shown and shared with everybody who uses the same provider. So is one
//! that is silent for [`SILENCE`] after a failure: it sleeps until the end of a limit that it does
//! not tell. One that our clock ends while it waits in silence has failed of what it said last.

use super::definition::OutputDialect;
use super::dialect::{self, Failure};
use super::lines::Dropped;
use backstop_core::Reason;
use backstop_exec::Stop;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often the same request may fail in the same way.
const SAME_MAX: u32 = 3;
/// How long an agent may be silent after a failure. What agents wait by themselves between two
/// attempts is at most 30 s; a model that answers at last may think for a while.
pub(super) const SILENCE: Duration = Duration::from_secs(120);
/// How much of a line of an agent's log is looked at, in bytes.
pub(super) const LOG_LINE_BYTES_MAX: usize = 4 << 10;

/// How agents say in their log that they try again: Qwen Code, Gemini CLI.
const RETRYING: &[&str] = &["Retrying in ", "Retrying after ", "Retrying with backoff"];
/// How OpenCode's log says that a request of its model failed, and where it says of what.
const OPENCODE_FAILED: &str = "message=\"stream error\"";
const OPENCODE_ERROR: &str = "error.error=\"";
/// How OpenCode's log says that it begins a step, and of which session.
const OPENCODE_STEP: &str = " message=loop ";
const OPENCODE_SESSION: &str = " session.id=";
/// How the OpenAI client that Qwen Code uses says in its log that a request failed, before and
/// after what it was.
const CLIENT_LOG: &str = "[log_";
const CLIENT_FAILED: &[&str] = &[" failed with status ", "] connection failed", "] connection timed out"];
/// What stands in such a line where the request was for a title, and not for the work.
const OPENCODE_ASIDE: &str = " small=true ";

/// For what an agent was asked to end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EndedFor {
    /// The request that failed.
    pub(super) failure: Failure,
    /// What the agent did about it: the name and the words of the evidence.
    pub(super) rule: &'static str,
    pub(super) words: &'static str,
}

impl EndedFor {
    pub(super) fn repeated(failure: Failure) -> Self {
        let words = "it repeated the same failed request and did nothing else; it was ended for that";
        Self { failure, rule: "agent.repeated", words }
    }

    fn waited(failure: Failure) -> Self {
        let words = "it waited in silence to repeat a failed request; it was ended for that";
        Self { failure, rule: "agent.waited", words }
    }
}

/// The requests of one attempt that failed and were repeated. Clones share them.
#[derive(Clone, Default)]
pub(super) struct OwnRetries(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    /// The line of its log before this one: some say there what failed.
    line_before: String,
    /// What failed last, where nothing has been done since.
    last: Option<Failure>,
    /// The session whose steps OpenCode's log tells of: those of a subagent have another.
    session: Option<String>,
    /// Whether nothing was said, done or logged since such a step began.
    step_is_empty: bool,
    /// What has failed again and again since a tool was last used, and how often.
    same: String,
    times: u32,
    /// For what it was asked to end.
    ended_for: Option<EndedFor>,
    /// Whether it may be asked to end.
    may_end: bool,
    /// Whether it may sleep until the end of a limit, and prints while its model answers: only of
    /// such an agent silence says that it sleeps.
    may_sleep: bool,
    /// How often `last` was set or cleared.
    changes: u64,
    is_over: bool,
}

impl OwnRetries {
    /// Of an agent of this dialect. One that prints plain text may be a script whose commands print
    /// to the same streams: what is repeated there may be theirs, and ends nothing.
    pub(super) fn new(dialect: OutputDialect) -> Self {
        let retries = Self::default();
        let mut state = retries.state();
        state.may_end = dialect != OutputDialect::Text;
        // Codex ends where a limit lasts, and prints nothing until a whole message is there.
        state.may_sleep = dialect != OutputDialect::CodexJsonl;
        drop(state);
        retries
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the agent once it is silent for so long after a failure. Blocking, until
    /// [`OwnRetries::over`].
    pub(super) fn watch(&self, stop: &Stop, silence: Duration) {
        let mut state = self.state();
        while !state.is_over {
            let (before, is_waiting) =
                (state.changes, state.last.is_some() && state.may_end && state.may_sleep);
            if !is_waiting {
                state = self.0.1.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let waited = self.0.1.wait_timeout(state, silence);
            let (next, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = next;
            if timeout.timed_out() && state.changes == before && !state.is_over {
                if let (None, Some(failure)) = (&state.ended_for, state.last.clone()) {
                    state.ended_for = Some(EndedFor::waited(failure));
                    stop.request();
                }
                return;
            }
        }
    }

    /// The agent has ended: nothing is watched any more.
    pub(super) fn over(&self) {
        self.state().is_over = true;
        self.0.1.notify_all();
    }

    /// Takes a line of its log, which is its standard error. `stop` is requested once it is enough.
    pub(super) fn log_line(&self, line: &[u8], stop: &Stop) {
        let line = String::from_utf8_lossy(line).trim_end().to_owned();
        if line.is_empty() {
            return;
        }
        let mut state = self.state();
        if let Some(session) = opencode_step(&line) {
            if state.session.get_or_insert_with(|| session.to_owned()) == session
                && std::mem::replace(&mut state.step_is_empty, true)
            {
                let failure = dialect::lost_answer();
                let words = failure.text.clone();
                state.failed(failure, &words, stop);
                state.step_is_empty = true;
                self.0.1.notify_all();
            }
            return;
        }
        let before = std::mem::replace(&mut state.line_before, line.clone());
        let is_retry = RETRYING.iter().any(|words| line.contains(words));
        // What failed stands in the same line, or in the one before.
        let printed = || is_retry.then(|| Failure::from_words(format!("{line}\n{before}")));
        let answered =
            opencode_failure(&line).map(|words| Failure { is_answer: true, ..Failure::from_words(words) });
        let (failure, words) = match client_failure(&line) {
            // The line names the request anew each time.
            Some(words) => {
                let failure = Failure::from_words(words.to_owned());
                let reason = failure.status.is_none().then_some(Reason::NetworkTransient);
                (Some(Failure { reason, ..failure }), words)
            }
            None => (answered.or_else(printed), line.as_str()),
        };
        if let Some(failure) = failure {
            state.failed(failure, words, stop);
            self.0.1.notify_all();
        }
    }

    /// Takes an event of its output.
    pub(super) fn event(&self, dialect: OutputDialect, line: &[u8], stop: &Stop) {
        if let Some(failure) = dialect::failed_request(dialect, line) {
            let kind = failure.text.clone();
            self.state().failed(failure, &kind, stop);
            return self.0.1.notify_all();
        }
        if dialect::tool_turn(dialect, line).is_some() {
            self.tool_used();
        } else if dialect::is_progress(dialect, line) {
            self.spoke();
        } else if dialect == OutputDialect::QwenJson {
            // Its client's log stands among the events.
            self.log_line(line, stop);
        }
    }

    /// It said something: what failed last was got over.
    pub(super) fn spoke(&self) {
        self.state().got_over();
    }

    /// It used a tool: it works, and whatever fails now fails for the first time.
    pub(super) fn tool_used(&self) {
        let mut state = self.state();
        state.got_over();
        state.times = 0;
    }

    /// What failed last, where nothing has been done since.
    pub(super) fn last(&self) -> Option<Failure> {
        self.state().last.clone()
    }

    /// For what it was asked to end.
    pub(super) fn ended_for(&self) -> Option<EndedFor> {
        self.state().ended_for.clone()
    }
}

impl State {
    /// Notes a failure. `words` are those that come again where it does.
    fn failed(&mut self, failure: Failure, words: &str, stop: &Stop) {
        // Times and counts differ from one to the next.
        let same: String = words.chars().filter(|c| !c.is_ascii_digit()).collect();
        self.times = if self.times > 0 && self.same == same { self.times + 1 } else { 1 };
        self.same = same;
        if self.times == SAME_MAX && self.ended_for.is_none() && self.may_end {
            self.ended_for = Some(EndedFor::repeated(failure.clone()));
            stop.request();
        }
        self.last = Some(failure);
        self.step_is_empty = false;
        self.changes += 1;
    }

    /// What failed last was got over. Who watches looks again once its time is over.
    fn got_over(&mut self) {
        self.changes += u64::from(self.last.take().is_some());
        self.step_is_empty = false;
    }
}

/// What a line of an OpenAI client's log says that a request failed of.
fn client_failure(line: &str) -> Option<&str> {
    let at = CLIENT_FAILED.iter().find_map(|words| line.find(words))?;
    let words = line[at + 1..].trim_start();
    let end = words.find(" in ").or_else(|| words.find(" - ")).unwrap_or(words.len());
    line.starts_with(CLIENT_LOG).then(|| &words[..end])
}

/// The session of which a line of OpenCode's log says that a step begins. Where an answer breaks
/// off before its first word, the next step begins as if nothing were, without end.
fn opencode_step(line: &str) -> Option<&str> {
    let (_, session) = line.split_once(OPENCODE_SESSION).filter(|_| line.contains(OPENCODE_STEP))?;
    session.split(' ').next()
}

/// The lines of OpenCode's log that are not for people: only what they say of its steps is read.
pub(super) const OPENCODE_CHATTER: Dropped = Dropped { begin: b"timestamp=", is_dropped: is_chatter };

fn is_chatter(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    line.contains(" level=INFO ") || line.contains(" level=DEBUG ")
}

/// What a line of OpenCode's log says that a request of its model failed of.
fn opencode_failure(line: &str) -> Option<String> {
    if !line.contains(OPENCODE_FAILED) || line.contains(OPENCODE_ASIDE) {
        return None;
    }
    let (_, words) = line.split_once(OPENCODE_ERROR)?;
    let words = words.strip_suffix('"').unwrap_or(words);
    Some(words.strip_prefix("AI_APICallError: ").unwrap_or(words).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use OutputDialect::{CodexJsonl, CopilotJsonl, GeminiJsonl, OpencodeJsonl, QwenJson};

    fn opencode(words: &str, more: &str) -> String {
        format!(
            "timestamp=2026-11-18T16:49:13.588Z level=ERROR run=9caeba7e message=\"stream error\" \
             providerID=fake session.id=ses_1 small=false agent=build{more} \
             error.error=\"AI_APICallError: {words}\"\n"
        )
    }

    #[test]
    fn the_third_failure_of_the_same_kind_ends_it() {
        let (retries, stop) = (OwnRetries::new(OpencodeJsonl), Stop::new());
        for at in 1..=3 {
            assert_eq!(stop.requests(), 0, "{at}");
            let line = format!("Attempt {at} failed with status 503. Retrying with backoff... {{}}\n");
            retries.log_line(line.as_bytes(), &stop);
            retries.log_line(b"    at processTicksAndRejections (node:internal:103:5)\n", &stop);
        }
        assert_eq!(stop.requests(), 1);
        let failure = retries.ended_for().unwrap().failure;
        assert!(failure.text.contains("status 503"), "{}", failure.text);
        let (of_script, other) = (OwnRetries::new(OutputDialect::Text), Stop::new());
        for _ in 0..5 {
            of_script.log_line(b"Retrying in 5 s\n", &other);
        }
        assert_eq!(other.requests(), 0, "a script's own");
        // It is asked once, however long it goes on.
        retries.log_line(b"Attempt 4 failed with status 503. Retrying with backoff... {}\n", &stop);
        assert_eq!(stop.requests(), 1);
    }

    #[test]
    fn words_between_failures_do_not_make_them_others_and_tools_do() {
        let event = br#"{"type":"text","part":{"text":"Compacted."}}"#;
        let tools = br#"{"type":"step_finish","part":{"reason":"tool-calls"}}"#;
        for (between, ends) in [(event.as_slice(), 1), (tools.as_slice(), 0)] {
            let (retries, stop) = (OwnRetries::new(OpencodeJsonl), Stop::new());
            for _ in 0..3 {
                retries.log_line(opencode("prompt is too long", "").as_bytes(), &stop);
                assert_eq!(retries.last().unwrap().text, "prompt is too long");
                retries.event(OpencodeJsonl, between, &stop);
                assert_eq!(retries.last(), None);
            }
            assert_eq!(stop.requests(), ends);
        }
        // One failure and then another is no loop; nor is a title that cannot be had.
        let (retries, stop) = (OwnRetries::new(OpencodeJsonl), Stop::new());
        for at in 0..9 {
            let words = if at % 2 == 0 { "Overloaded" } else { "connection reset" };
            retries.log_line(opencode(words, "").as_bytes(), &stop);
            retries
                .log_line(opencode("bad title", "").replace("small=false", "small=true").as_bytes(), &stop);
        }
        assert_eq!(stop.requests(), 0);
    }

    #[test]
    fn answers_that_break_off_before_the_first_word_are_a_failure() {
        let empty = br#"{"type":"step_finish","part":{"reason":"unknown","tokens":{"input":0,"output":0}}}"#;
        let (retries, stop) = (OwnRetries::new(OpencodeJsonl), Stop::new());
        for _ in 0..3 {
            retries.event(OpencodeJsonl, br#"{"type":"step_start","part":{}}"#, &stop);
            retries.event(OpencodeJsonl, empty, &stop);
        }
        assert_eq!(stop.requests(), 1);
        assert_eq!(retries.ended_for().unwrap().failure.reason, Some(Reason::NetworkTransient));
        let said = br#"{"type":"step_finish","part":{"reason":"unknown","tokens":{"input":9,"output":2}}}"#;
        let (retries, stop) = (OwnRetries::new(OpencodeJsonl), Stop::new());
        (0..9).for_each(|_| retries.event(OpencodeJsonl, said, &stop));
        assert_eq!((stop.requests(), retries.last()), (0, None));
    }

    #[test]
    fn opencodes_steps_in_which_nothing_happens_are_answers_that_broke_off() {
        let step = |session: &str, step: u32| {
            format!(
                "timestamp=2026-11-19T22:35:05.974Z level=INFO run=30cd6803 message=loop session.id={session} step={step}\n"
            )
        };
        let run = |between: &dyn Fn(&OwnRetries, &Stop)| {
            let (retries, stop) = (OwnRetries::new(OutputDialect::Acp), Stop::new());
            for at in 0..=3 {
                assert_eq!(stop.requests(), 0, "{at}");
                retries.log_line(step("ses_1", at).as_bytes(), &stop);
                // The steps of a subagent are not its own.
                (0..9).for_each(|at| retries.log_line(step("ses_2", at).as_bytes(), &stop));
                between(&retries, &stop);
            }
            (stop.requests(), retries.ended_for())
        };
        let (requests, ended_for) = run(&|_, _| ());
        assert_eq!((requests, ended_for.unwrap().failure.reason), (1, Some(Reason::NetworkTransient)));
        assert_eq!(run(&|retries, _| retries.tool_used()).0, 0);
        assert_eq!(run(&|retries, _| retries.spoke()).0, 0);
        // What its log says of the failure is what failed.
        let (retries, stop) = (OwnRetries::new(OutputDialect::Acp), Stop::new());
        for at in 0..3 {
            retries.log_line(step("ses_1", at).as_bytes(), &stop);
            retries.log_line(opencode("prompt is too long", "").as_bytes(), &stop);
            assert_eq!(retries.last().unwrap().text, "prompt is too long");
        }
        assert_eq!(retries.ended_for().unwrap().failure.text, "prompt is too long");
        assert!(is_chatter(step("ses_1", 0).as_bytes()) && !is_chatter(opencode("x", "").as_bytes()));
    }

    #[test]
    fn codex_says_itself_that_it_connects_anew() {
        let line = |at: u32, why: &str| {
            let message = format!("Reconnecting... {at}/5 ({why})");
            serde_json::json!({"type": "error", "message": message}).to_string()
        };
        let overloaded =
            "unexpected status 529 <unknown status code>: Overloaded, url: http://127.0.0.1:1/v1/responses";
        let (retries, stop) = (OwnRetries::new(CodexJsonl), Stop::new());
        for at in 1..=3 {
            assert_eq!(stop.requests(), 0, "{at}");
            retries.event(CodexJsonl, line(at, overloaded).as_bytes(), &stop);
        }
        let failure = retries.ended_for().unwrap().failure;
        assert_eq!((stop.requests(), failure.status), (1, Some(529)));
        assert_eq!(failure.text, overloaded);
        // A command in between is progress; what else it calls an error is not.
        let command = r#"{"type":"item.completed","item":{"type":"command_execution","status":"completed"}}"#;
        let notice = r#"{"type":"item.completed","item":{"type":"error","message":"Model metadata"}}"#;
        for (between, ends) in [(command, 0), (notice, 1)] {
            let (retries, stop) = (OwnRetries::new(CodexJsonl), Stop::new());
            for at in 1..=3 {
                retries.event(CodexJsonl, line(at, overloaded).as_bytes(), &stop);
                retries.event(CodexJsonl, between.as_bytes(), &stop);
            }
            assert_eq!(stop.requests(), ends, "{between}");
        }
        // It may think for long once it is connected again.
        let (retries, stop) = (OwnRetries::new(CodexJsonl), Stop::new());
        retries.event(CodexJsonl, line(1, "stream disconnected before completion").as_bytes(), &stop);
        retries.over();
        retries.watch(&stop, Duration::ZERO);
        assert_eq!((stop.requests(), retries.last().is_some()), (0, true));
    }

    #[test]
    fn what_qwens_client_logs_among_its_events_is_a_failure() {
        let failed =
            |at: u32, how: &str| format!("[log_{at}f, retryOf: log_6f961e] {how}, {at} attempts remaining\n");
        let refused = "post http://127.0.0.1:1/v1/chat/completions failed with status 429 in 16ms - retrying";
        let lost = "connection failed - retrying";
        for (how, status, reason) in
            [(refused, Some(429), None), (lost, None, Some(Reason::NetworkTransient))]
        {
            let (retries, stop) = (OwnRetries::new(QwenJson), Stop::new());
            for at in 1..=3 {
                assert_eq!(stop.requests(), 0, "{how} {at}");
                retries.event(QwenJson, failed(at, how).as_bytes(), &stop);
            }
            let failure = retries.ended_for().unwrap().failure;
            assert_eq!((stop.requests(), failure.status, failure.reason), (1, status, reason), "{how}");
        }
        let (retries, stop) = (OwnRetries::new(QwenJson), Stop::new());
        let fine = b"[log_1] post http://127.0.0.1:1/v1/chat/completions succeeded with status 200 in 5ms\n";
        (0..9).for_each(|_| retries.event(QwenJson, fine, &stop));
        assert_eq!((stop.requests(), retries.last()), (0, None));
    }

    #[test]
    fn copilots_failed_calls_are_failures_until_its_model_answers() {
        let body = r#"{\"type\":\"usage_limit_reached\",\"message\":\"The usage limit has been reached\",\"resets_at\":1790000000}"#;
        let failed =
            format!(r#"{{"type":"model.call_failure","data":{{"statusCode":429,"errorMessage":"{body}"}}}}"#);
        let [asleep, result] =
            [r#"{"type":"assistant.turn_retry","data":{}}"#, r#"{"type":"result","exitCode":0}"#];
        let answer = r#"{"type":"assistant.message_delta","data":{"content":"x"}}"#;
        let (retries, stop) = (OwnRetries::new(CopilotJsonl), Stop::new());
        for line in [&failed, asleep, result] {
            retries.event(CopilotJsonl, line.as_bytes(), &stop);
        }
        let failure = retries.last().unwrap();
        assert_eq!((failure.status, failure.reason), (Some(429), Some(Reason::RateLimited)));
        assert_eq!((failure.resets_at, stop.requests()), (Some(1_790_000_000), 0));
        retries.event(CopilotJsonl, answer.as_bytes(), &stop);
        assert_eq!(retries.last(), None);
    }

    #[test]
    fn what_failed_stands_beside_the_words_that_it_is_tried_again() {
        let (retries, stop) = (OwnRetries::new(OpencodeJsonl), Stop::new());
        retries.log_line(b"Attempt 1 failed: Resource has been exhausted.\n", &stop);
        retries.log_line(b"Suggested retry after 1s.. Retrying after 5092ms...\n", &stop);
        assert!(retries.last().unwrap().text.contains("Resource has been exhausted"));
        retries.event(QwenJson, br#"{"type":"system","subtype":"retry"}"#, &stop);
        assert!(retries.last().is_some(), "only that it tries again");
        retries.event(GeminiJsonl, br#"{"type":"message","role":"assistant","content":"x"}"#, &stop);
        assert_eq!(retries.last(), None);
    }
}
