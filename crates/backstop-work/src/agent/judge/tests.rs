//! Every row of the table, with what agents really print.

use super::*;
use crate::agent::builtin;
use crate::agent::definition::OutputDialect::{
    self, Acp, ClaudeJson, CodexJsonl, CopilotJsonl, GeminiJsonl, OpencodeJsonl, QwenJson, Text,
};
use crate::agent::{dialect, find_result};
use backstop_core::{LimitWindow, Usage};
use backstop_exec::{HeadTail, Status};

const CLASSIFIED_AT: i64 = 1_790_000_000;
const OURS: &str = r#"{"phase_id":"2a","status":"complete"}"#;

fn kept(text: &str) -> HeadTail {
    let mut kept = HeadTail::new(1 << 20);
    kept.push(text.as_bytes());
    kept
}

fn ended(cause: Cause, code: Option<i32>, stdout: &str, stderr: &str) -> Ended {
    let limit = match cause {
        Cause::WallClock | Cause::Silence => Some(Duration::from_secs(40)),
        Cause::Itself | Cause::Stopped | Cause::Interrupted => None,
    };
    Ended {
        status: Status { code, signal: code.is_none().then_some(15) },
        cause,
        reader_left: false,
        unwritable: None,
        duration: Duration::from_secs(41),
        silent: Duration::ZERO,
        stdout: kept(stdout),
        stderr: kept(stderr),
        order: backstop_exec::StreamOrder::default(),
        is_one_stream: false,
        drained: true,
        left_behind: Vec::new(),
        unended: Vec::new(),
        read_terminal: false,
        limit,
    }
}

struct Judged {
    dialect: OutputDialect,
    ended: Ended,
    tasks: Vec<Task>,
    own_retry: Option<&'static str>,
    ended_for: Option<&'static str>,
}

fn retried(words: &str) -> Failure {
    Failure::from_words(words.to_owned())
}

impl Judged {
    fn new(dialect: OutputDialect, code: i32, stdout: &str) -> Self {
        Self {
            dialect,
            ended: ended(Cause::Itself, Some(code), stdout, ""),
            tasks: Vec::new(),
            own_retry: None,
            ended_for: None,
        }
    }

    fn fault(&self) -> Option<Fault> {
        let classifier = Classifier::builtin();
        let output = dialect::read_output(self.dialect, &self.ended.stdout);
        let found = match &output.structured {
            Some(object) => find_result(object.as_bytes(), "2a"),
            None => find_result(output.words.as_bytes(), "2a"),
        };
        let (command, provider) = match self.dialect {
            ClaudeJson => ("claude -p", Some("anthropic")),
            CodexJsonl => ("codex exec --json -", Some("openai")),
            OpencodeJsonl => ("opencode run --format json", None),
            GeminiJsonl => ("gemini --output-format stream-json", Some("google")),
            CopilotJsonl => ("copilot --output-format json", Some("copilot")),
            QwenJson => ("qwen --output-format stream-json", Some("qwen")),
            Acp | Text => ("mine", None),
        };
        let name = command.split(' ').next().unwrap_or_default();
        let case = Case {
            classifier: &classifier,
            at: Timestamp::from_millis(CLASSIFIED_AT * 1000),
            command,
            provider,
            ended: &self.ended,
            output: &output,
            envelope: found.as_ref().ok(),
            trouble: found.as_ref().err(),
            tasks: &self.tasks,
            question: None,
            last_lines: String::from_utf8_lossy(&self.ended.stdout.end(1 << 10)).into_owned(),
            own_retry: self.own_retry.map(retried),
            ended_for: self.ended_for.map(retried).map(EndedFor::repeated),
            exit_codes: builtin(name).map_or(&[], |agent| agent.exit_codes),
        };
        case.fault()
    }

    fn reason(&self) -> Option<Reason> {
        self.fault().map(|fault| fault.reason)
    }
}

/// claude's last line, as it comes with this status, terminal reason and words.
fn claude(status: &str, terminal: &str, words: &str) -> String {
    let init = r#"{"type":"system","subtype":"init","session_id":"s-1","tools":["Bash"]}"#;
    let result = format!(
        r#"{{"type":"result","subtype":"success","is_error":true,"api_error_status":{status},"duration_ms":812,"num_turns":1,"result":"{words}","session_id":"s-1","total_cost_usd":0,"usage":{{"input_tokens":0,"output_tokens":0}},"permission_denials":[],"terminal_reason":"{terminal}"}}"#
    );
    format!("{init}\n{result}\n")
}

fn claude_done(words: &str, more: &str) -> String {
    let words = serde_json::to_string(words).unwrap();
    format!(
        r#"{{"type":"result","subtype":"success","is_error":false,"result":{words},"session_id":"s-1","usage":{{"input_tokens":7,"cache_read_input_tokens":100,"output_tokens":3}},"total_cost_usd":0.25,"terminal_reason":"completed"{more}}}"#
    )
}

fn codex(words: &str, end: &str) -> String {
    let words = serde_json::to_string(words).unwrap();
    format!(
        "{}\n{}\n{}\n{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_1\",\"type\":\"agent_message\",\"text\":{words}}}}}\n{end}\n",
        r#"{"type":"thread.started","thread_id":"t-1"}"#,
        r#"{"type":"turn.started"}"#,
        r#"{"type":"error","message":"Reconnecting... 1/5 (unexpected status 401 Unauthorized)"}"#,
    )
}

const CODEX_DONE: &str = r#"{"type":"turn.completed","usage":{"input_tokens":24763,"cached_input_tokens":24448,"output_tokens":122}}"#;

fn codex_failed(message: &str) -> String {
    let message = serde_json::to_string(message).unwrap();
    codex("working", &format!(r#"{{"type":"turn.failed","error":{{"message":{message}}}}}"#))
}

fn opencode_failed(name: &str, data: &str) -> String {
    format!(
        r#"{{"type":"error","timestamp":1,"sessionID":"ses_1","error":{{"name":"{name}","data":{data}}}}}"#
    )
}

#[path = "tests_of_others.rs"]
mod others;

#[test]
fn what_a_dialect_reports_decides_whatever_the_exit_code_is() {
    use Reason::*;
    let overflow = "{\"error\":{\"message\":\"Your input exceeds the context window of this model.\",\"type\":\"invalid_request_error\",\"code\":\"context_length_exceeded\"}}";
    let cases = [
        (ClaudeJson, claude("401", "api_error", "Invalid API key · Fix external API key"), AuthError),
        (
            ClaudeJson,
            claude("429", "api_error", "API Error: Request rejected (429) · rate limited"),
            RateLimited,
        ),
        (ClaudeJson, claude("529", "api_error", "API Error: 529 Overloaded"), NetworkTransient),
        (ClaudeJson, claude("500", "api_error", "API Error: 500 Internal server error"), NetworkTransient),
        (ClaudeJson, claude("400", "prompt_too_long", "Prompt is too long"), ContextOverflow),
        (ClaudeJson, claude("400", "api_error", "Credit balance is too low"), QuotaExhausted),
        (
            ClaudeJson,
            claude("429", "api_error", "Claude usage limit reached. Your limit will reset at 5pm"),
            RateLimited,
        ),
        (ClaudeJson, claude("null", "api_error", "API Error: Connection error."), NetworkTransient),
        (
            ClaudeJson,
            r#"{"type":"result","subtype":"error_max_turns","is_error":true,"session_id":"s"}"#.to_owned(),
            BudgetExhausted,
        ),
        (
            ClaudeJson,
            r#"{"type":"result","subtype":"error_max_structured_output_retries","is_error":true}"#.to_owned(),
            ParseError,
        ),
        (
            ClaudeJson,
            r#"{"type":"result","subtype":"error_during_execution","is_error":false}"#.to_owned(),
            Unknown,
        ),
        (
            CodexJsonl,
            codex_failed("unexpected status 401 Unauthorized: Incorrect API key provided"),
            AuthError,
        ),
        (CodexJsonl, codex_failed("exceeded retry limit, last status: 429 Too Many Requests"), RateLimited),
        (
            CodexJsonl,
            codex_failed("We're currently experiencing high demand, which may cause temporary errors."),
            NetworkTransient,
        ),
        (CodexJsonl, codex_failed(overflow), ContextOverflow),
        (
            CodexJsonl,
            codex_failed("You've hit your usage limit. Upgrade to Pro or try again at 5:04 PM."),
            RateLimited,
        ),
        (
            OpencodeJsonl,
            opencode_failed(
                "APIError",
                r#"{"message":"invalid x-api-key","statusCode":401,"isRetryable":false}"#,
            ),
            AuthError,
        ),
        (
            OpencodeJsonl,
            opencode_failed("ContextOverflowError", r#"{"message":"prompt is too long"}"#),
            ContextOverflow,
        ),
        (
            OpencodeJsonl,
            opencode_failed("ProviderAuthError", r#"{"message":"no key","providerID":"x"}"#),
            AuthError,
        ),
    ];
    for (dialect, stdout, want) in cases {
        for code in [1, 0] {
            let fault = Judged::new(dialect, code, &stdout).fault().unwrap();
            assert_eq!(fault.reason, want, "exit {code}: {stdout}");
            assert!(!fault.cause.unwrap().is_empty());
        }
    }
}

#[test]
fn the_provider_and_the_time_of_reset_are_told() {
    let limited = format!(
        "{}\n{}",
        format_args!(
            r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":{},"rateLimitType":"five_hour"}}}}"#,
            CLASSIFIED_AT + 3600
        ),
        claude("429", "api_error", "You've hit your session limit · resets 9am (Europe/Berlin)")
    );
    let fault = Judged::new(ClaudeJson, 1, &limited).fault().unwrap();
    assert!(matches!(fault.reason, Reason::QuotaExhausted | Reason::RateLimited), "{}", fault.reason);
    assert_eq!(fault.facts.retry_after_seconds, Some(3600.0));
    assert_eq!(fault.facts.provider, Some("anthropic".into()));
    let auth = Judged::new(ClaudeJson, 1, &claude("401", "api_error", "Invalid API key")).fault().unwrap();
    assert_eq!(auth.facts.credential, Some("ANTHROPIC_API_KEY".into()));
    assert_eq!(auth.cause, Some("Invalid API key".into()));
}

#[test]
fn the_limit_that_refused_last_is_told_with_its_window() {
    let event = |status: &str, kind: &str, ahead: i64| {
        let at = CLASSIFIED_AT + ahead;
        format!(
            r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"{status}","resetsAt":{at},"rateLimitType":"{kind}"}}}}"#
        )
    };
    let five = event("rejected", "five_hour", 300);
    let cases: [(Vec<String>, Option<f64>, Option<LimitWindow>); 6] = [
        (vec![five.clone()], Some(300.0), Some(LimitWindow::FiveHour)),
        // Another limit that lets through says nothing about this one.
        (vec![five.clone(), event("allowed", "seven_day", 9000)], Some(300.0), Some(LimitWindow::FiveHour)),
        (vec![event("rejected", "seven_day_opus", 9000)], Some(9000.0), Some(LimitWindow::Week)),
        // It lets through again.
        (vec![five.clone(), event("allowed", "five_hour", 9000)], None, None),
        (vec![event("rejected", "five_hour", -300)], None, Some(LimitWindow::FiveHour)),
        (vec![event("allowed_warning", "five_hour", 300)], None, None),
    ];
    for (events, wait, window) in cases {
        let words = claude("429", "api_error", "API Error: Request rejected (429)");
        let stdout = format!("{}\n{words}", events.join("\n"));
        let fault = Judged::new(ClaudeJson, 1, &stdout).fault().unwrap();
        assert_eq!((fault.reason, fault.facts.retry_after_seconds), (Reason::RateLimited, wait), "{stdout}");
        assert!(window.is_none_or(|window| fault.facts.window == Some(window)), "{:?} {stdout}", fault.facts);
        // What ended five minutes ago ends now.
        let is_now = events.len() == 1 && events[0].contains(&(CLASSIFIED_AT - 300).to_string());
        assert!(!is_now || fault.facts.resets_at.is_some(), "{stdout}");
    }
}

#[test]
fn a_window_of_one_model_is_that_models_limit_unless_the_words_say_it_is_the_accounts() {
    let event = |kind: &str| {
        let at = CLASSIFIED_AT + 9000;
        format!(
            r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":{at},"rateLimitType":"{kind}"}}}}"#
        )
    };
    for (kind, words, model) in [
        ("seven_day_opus", "You've hit your Opus limit · resets Nov 25, 8am (UTC)", Some("opus")),
        ("seven_day_sonnet", "API Error: Request rejected (429)", Some("sonnet")),
        ("seven_day_sonnet", "You've hit your weekly limit · resets Nov 25, 8am (UTC)", None),
        ("seven_day", "You've hit your weekly limit · resets Nov 25, 8am (UTC)", None),
        (
            "seven_day_overage_included",
            "You've hit your Fable limit · resets Nov 25, 8am (UTC)",
            Some("fable"),
        ),
    ] {
        let stdout = format!("{}\n{}", event(kind), claude("429", "api_error", words));
        let facts = Judged::new(ClaudeJson, 1, &stdout).fault().unwrap().facts;
        assert_eq!(facts.model.as_ref().map(SafeText::raw), model, "{kind} {words}");
        assert_eq!(facts.retry_after_seconds, Some(9000.0));
    }
}

#[test]
fn errors_that_a_successful_run_prints_too_decide_nothing() {
    assert_eq!(Judged::new(CodexJsonl, 0, &codex(OURS, CODEX_DONE)).reason(), None);
    let recovered = format!(
        "{}\n{}\n{}",
        opencode_failed("APIError", r#"{"message":"overloaded","statusCode":529}"#),
        format_args!(
            r#"{{"type":"text","sessionID":"ses_1","part":{{"type":"text","text":{}}}}}"#,
            serde_json::to_string(OURS).unwrap()
        ),
        r#"{"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop","cost":0.01,"tokens":{"input":5,"output":2,"cache":{"read":1,"write":0}}}}"#
    );
    assert_eq!(Judged::new(OpencodeJsonl, 0, &recovered).reason(), None);
    // What a tool printed is not what the agent said.
    let tool = r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"{\"phase_id\":\"2a\",\"status\":\"complete\"} unexpected status 401"}]}}"#;
    let quoted = format!("{tool}\n{}", claude_done("done", ""));
    assert_eq!(Judged::new(ClaudeJson, 0, &quoted).reason(), Some(Reason::ParseError));
}

#[test]
fn our_clock_and_our_stop_come_first_but_for_what_it_had_reported() {
    let mut judged = Judged::new(ClaudeJson, 0, &claude_done(OURS, ""));
    judged.ended = ended(Cause::Silence, None, &claude_done(OURS, ""), "");
    let fault = judged.fault().unwrap();
    assert_eq!(
        (fault.reason, fault.cause),
        (Reason::Timeout, Some("silent for 40 s, which is the limit".into()))
    );
    judged.ended.cause = Cause::WallClock;
    assert_eq!(judged.fault().unwrap().cause, Some("ran for 40 s, which is the limit".into()));
    // opencode reports and then hangs: what it reported is what it is.
    let hung = opencode_failed("ContextOverflowError", r#"{"message":"prompt is too long"}"#);
    judged.dialect = OpencodeJsonl;
    judged.ended = ended(Cause::Silence, None, &hung, "");
    let fault = judged.fault().unwrap();
    assert_eq!(fault.reason, Reason::ContextOverflow);
    assert!(fault.evidence.iter().any(|e| e.rule == "agent.hung"));
    // Where somebody asked for the end, nothing else counts.
    judged.ended.cause = Cause::Stopped;
    assert_eq!(judged.reason(), Some(Reason::Interrupted));
}

#[test]
fn an_exit_code_is_outvoted_by_two_and_by_no_fewer() {
    let structured = format!(r#","structured_output":{OURS}"#);
    let done = claude_done("all done", &structured);
    assert_eq!(Judged::new(ClaudeJson, 0, &done).reason(), None);
    assert_eq!(Judged::new(ClaudeJson, 1, &done).reason(), None);
    assert_eq!(Judged::new(CodexJsonl, 3, &codex(OURS, CODEX_DONE)).reason(), None);
    // Without a report of its dialect the envelope is alone.
    assert_eq!(Judged::new(Text, 3, OURS).reason(), Some(Reason::Unknown));
    assert!(Judged::new(CodexJsonl, 3, &codex(OURS, "")).reason().is_some());
    // Without an envelope the report is alone.
    assert!(Judged::new(ClaudeJson, 1, &claude_done("all done", "")).reason().is_some());
    // A signal is no exit code.
    let mut killed = Judged::new(ClaudeJson, 0, &done);
    killed.ended.status = Status { code: None, signal: Some(11) };
    assert_eq!(killed.reason(), Some(Reason::Crash));
    // Without a report of any kind, the classifier reads what was printed.
    assert_eq!(
        Judged::new(Text, 1, "Tests:       3 failed, 44 passed, 47 total\n").reason(),
        Some(Reason::TestFailure)
    );
}

#[test]
fn exit_0_without_a_valid_result_says_what_was_wrong() {
    let cases = [
        ("Everything works now!", "there is no result"),
        (r#"{"phase_id":"3","status":"complete"}"#, "that of another phase, `3`"),
        (r#"{"phase_id":"2a","status":"done"}"#, "`status` is `done`"),
    ];
    for (text, want) in cases {
        for (dialect, stdout) in [
            (Text, text.to_owned()),
            (ClaudeJson, claude_done(text, "")),
            (CodexJsonl, codex(text, CODEX_DONE)),
        ] {
            let fault = Judged::new(dialect, 0, &stdout).fault().unwrap();
            assert_eq!(fault.reason, Reason::ParseError);
            let cause = fault.cause.unwrap();
            assert!(cause.raw().contains(want), "{cause}");
        }
    }
}

#[test]
fn a_claim_of_failure_is_the_reason_that_it_names() {
    let cases = [
        (r#""error":{"type":"test_failure","message":"3 tests fail"}"#, Reason::TestFailure, "3 tests fail"),
        (
            r#""error":{"type":"Missing dependency","message":"no jest"}"#,
            Reason::DependencyMissing,
            "no jest",
        ),
        (r#""error":{"type":"too hard","message":"I give up"}"#, Reason::TaskIncomplete, "I give up"),
        (r#""error":"I give up""#, Reason::TaskIncomplete, "I give up"),
        (r#""error":null"#, Reason::TaskIncomplete, "it says that it failed, and not why"),
    ];
    for (error, reason, cause) in cases {
        let text = format!(r#"{{"phase_id":"2a","status":"failed",{error}}}"#);
        let fault = Judged::new(Text, 0, &text).fault().unwrap();
        assert_eq!((fault.reason, fault.cause), (reason, Some(cause.into())), "{error}");
    }
}

#[test]
fn its_own_report_of_a_failure_counts_whatever_the_exit_code_is() {
    let jest = r#"{"phase_id":"2a","status":"failed","error":{"type":"dependency_missing","message":"need @types/jest"}}"#;
    let claude_failed = claude("null", "api_error", "API Error: Connection error.");
    let quoted = serde_json::to_string(jest).unwrap();
    let before =
        format!(r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":{quoted}}}]}}}}"#);
    for judged in [
        Judged::new(Text, 1, &format!("I will start by reading the plan section.\n{jest}\n")),
        Judged::new(Text, 1, &format!("FAIL src/a.test.ts\nTests: 1 failed, 1 total\n{jest}\n")),
        Judged::new(CodexJsonl, 1, &codex(jest, "")),
        Judged::new(ClaudeJson, 1, &format!("{before}\n{claude_failed}")),
    ] {
        let fault = judged.fault().unwrap();
        let want = (Reason::DependencyMissing, Some("need @types/jest".into()));
        assert_eq!((fault.reason, fault.cause), want, "{:?}", judged.ended.stdout);
    }
    // One that does not say of what it failed adds its words to what nobody recognises, and to
    // nothing else.
    let unnamed = r#"{"phase_id":"2a","status":"failed","error":"I give up"}"#;
    let fault = Judged::new(Text, 1, &format!("working\n{unnamed}\n")).fault().unwrap();
    assert_eq!((fault.reason, fault.cause), (Reason::TaskIncomplete, Some("I give up".into())));
    let limited = format!("API Error: 429 rate_limit_error\n{unnamed}\n");
    assert_eq!(Judged::new(Text, 1, &limited).reason(), Some(Reason::RateLimited));
    // Hard signals come first.
    let mut killed = Judged::new(Text, 0, jest);
    killed.ended.status = Status { code: None, signal: Some(11) };
    assert_eq!(killed.reason(), Some(Reason::Crash));
    killed.ended = ended(Cause::WallClock, None, jest, "");
    assert_eq!(killed.reason(), Some(Reason::Timeout));
}

#[test]
fn a_claim_of_completeness_that_leaves_tasks_open_names_them() {
    let task = |text: &str, done| Task { text: text.into(), done };
    let tasks = vec![task("route", false), task("schema", true), task("docs", false)];
    let cases = [
        (r#""tasks_total":3,"tasks_completed":2"#, Some("with 2 of 3 tasks done")),
        (
            r#""tasks_total":3,"tasks_completed":2,"tasks_done":[1,2]"#,
            Some("with 2 of 3 tasks done; not done: 3 (docs)"),
        ),
        (r#""tasks_done":[1]"#, Some("leaves tasks open; not done: 3 (docs)")),
        (r#""tasks_done":[1,3]"#, None),
        // It counts without what was ticked before, and lists all that was not.
        (r#""tasks_total":3,"tasks_completed":2,"tasks_done":[1,3]"#, None),
        (r#""tasks_total":3,"tasks_completed":2,"tasks_done":[1,2,3]"#, Some("with 2 of 3 tasks done")),
        (r#""tasks_total":3,"tasks_completed":3"#, None),
        (r#""tasks_total":20,"tasks_completed":1,"tasks_done":[1]"#, Some("12 and 8 more")),
        (r#""tasks_total":null"#, None),
    ];
    for (fields, want) in cases {
        let mut judged =
            Judged::new(Text, 0, &format!(r#"{{"phase_id":"2a","status":"complete",{fields}}}"#));
        judged.tasks = tasks.clone();
        let fault = judged.fault();
        match (want, fault) {
            (None, None) => {}
            (Some(want), Some(fault)) => {
                assert_eq!(fault.reason, Reason::TaskIncomplete);
                let cause = fault.cause.unwrap();
                assert!(cause.raw().contains(want), "{fields}: {cause}");
            }
            (want, fault) => panic!("{fields}: {want:?} {fault:?}"),
        }
    }
}

#[test]
fn words_sessions_denials_and_costs_are_heard() {
    let denied = r#","permission_denials":[{"tool_name":"Bash","tool_use_id":"t","tool_input":{"command":"npm test"}},{"tool_name":"WebFetch","tool_input":{}}]"#;
    let output = dialect::read_output(ClaudeJson, &kept(&claude_done("all done", denied)));
    assert_eq!(output.denials, [SafeText::new("Bash: npm test"), SafeText::new("WebFetch")]);
    assert_eq!(output.session_id.as_deref(), Some("s-1"));
    assert_eq!(output.message(), Some("all done".into()));
    let usage = output.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_usd), (107, 3, Some(0.25)));
    // Subagents are in `modelUsage`, and so is what was used before the session was continued.
    let models = r#","modelUsage":{"a":{"inputTokens":300,"outputTokens":16,"cacheReadInputTokens":40,"cacheCreationInputTokens":2,"costUSD":0.2},"b":{"inputTokens":58,"outputTokens":4,"costUSD":0.05}}"#;
    let output = dialect::read_output(ClaudeJson, &kept(&claude_done("all done", models)));
    let before = Usage { input_tokens: 100, output_tokens: 7, cost_usd: Some(0.125) };
    let own = Usage { input_tokens: 300, output_tokens: 13, cost_usd: Some(0.125) };
    assert_eq!(output.own_usage(before), Some(own));
    // The cost may be all that it tells.
    let alone = r#"{"type":"result","is_error":false,"result":"x","session_id":"s-1","total_cost_usd":0.5}"#;
    let usage = dialect::read_output(ClaudeJson, &kept(alone)).usage.unwrap();
    assert_eq!((usage.tokens(), usage.cost_usd), (0, Some(0.5)));
    // One that was ended before its result has said what its messages used, each once.
    let message = |id: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","content":[],"usage":{{"input_tokens":5,"output_tokens":1}}}}}}"#
        )
    };
    let cut = [message("m-1"), message("m-1"), message("m-2")].join("\n");
    assert_eq!(dialect::read_output(ClaudeJson, &kept(&cut)).usage.unwrap().tokens(), 12);
    let output = dialect::read_output(CodexJsonl, &kept(&codex("hello", CODEX_DONE)));
    assert_eq!((output.session_id.as_deref(), output.message()), (Some("t-1"), Some("hello".into())));
    assert_eq!(output.usage.unwrap().output_tokens, 122);
    // The steps of OpenCode add up; what it thinks and what it reads from its cache count, too.
    let step = |reason: &str| {
        format!(
            r#"{{"type":"step_finish","sessionID":"ses_1","part":{{"reason":"{reason}","cost":0.25,"tokens":{{"input":5,"output":2,"reasoning":4,"cache":{{"read":1,"write":3}}}}}}}}"#
        )
    };
    let steps = [step("tool-calls"), step("stop")].join("\n");
    let usage = dialect::read_output(OpencodeJsonl, &kept(&steps)).usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_usd), (18, 12, Some(0.5)));
    // The whole as one array, as `--output-format json --verbose` has it.
    let output = dialect::read_output(
        ClaudeJson,
        &kept(&format!("[\n{}\n]", claude_done("x", "").replace("\"type\"", "\n\"type\""))),
    );
    assert_eq!(output.report, Report::Succeeded);
}

#[test]
fn a_result_torn_by_what_was_left_out_is_none() {
    let mut torn = HeadTail::new(400);
    torn.push(format!("{:90}{}", "", "{\"phase_id\":").as_bytes());
    torn.push(&[b' '; 10_000]);
    torn.push(b"\"2a\",\"status\":\"complete\"}");
    assert!(torn.left_out_bytes() > 0);
    let output = dialect::read_output(Text, &torn);
    assert!(find_result(output.words.as_bytes(), "2a").is_err());
}
