//! Small scripts in the part of agents: what they print, leave, write and refuse to end.
#![allow(missing_docs, clippy::unwrap_used)]

use backstop_classify::Classifier;
use backstop_core::{Dispatch, Reason, Redactor, SafeText, Timestamp, Usage};
use backstop_exec::tree::Process;
use backstop_exec::{Limits, Stop};
use backstop_work::agent::{
    Agent, Assignment, Attempt, AttemptError, Attempted, Claim, CommandLine, Continued, OnSession,
    OutputDialect, ResultTrouble, RetryContext, Silences, TemplateOptions, Wanted, Work, attempt,
    from_template, prompt, result_file,
};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

static CLASSIFIER: LazyLock<Classifier> = LazyLock::new(Classifier::builtin);

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<(u64, Vec<u8>)>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut state = self.0.lock().unwrap();
        state.0 += bytes.len() as u64;
        if state.1.len() < 1 << 20 {
            state.1.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A script that is run as an agent or as a command, in a folder of its own.
struct Script {
    folder: tempfile::TempDir,
    scratch: tempfile::TempDir,
    agent: Option<Agent>,
    line: String,
    prompt: String,
    model: Option<String>,
    env: Vec<(String, String)>,
    limits: Limits,
    retry: Option<RetryContext>,
    redactor: Redactor,
    stop: Stop,
    log: Sink,
    /// Whether its scratch folder is given by a relative path.
    relative: bool,
    session: Option<Continued>,
    /// The sessions that were told while it ran.
    sessions: Arc<Mutex<Vec<String>>>,
}

impl Script {
    fn new(agent: Option<Agent>, line: &str) -> Self {
        let limits = Limits {
            wall: Some(Duration::from_secs(60)),
            grace: Duration::from_millis(300),
            drain: Duration::from_millis(300),
            ..Limits::default()
        };
        Self {
            folder: tempfile::tempdir().unwrap(),
            scratch: tempfile::tempdir().unwrap(),
            agent,
            line: line.to_owned(),
            prompt: "do it\n".to_owned(),
            model: None,
            env: Vec::new(),
            limits,
            retry: None,
            redactor: Redactor::default(),
            stop: Stop::new(),
            log: Sink::default(),
            relative: false,
            session: None,
            sessions: Arc::default(),
        }
    }

    fn on_session(&self) -> OnSession {
        let sessions = Arc::clone(&self.sessions);
        Arc::new(move |id| sessions.lock().unwrap().push(id.to_owned()))
    }

    /// An agent of plain text.
    fn agent(script: &str) -> Self {
        Self::dialect(OutputDialect::Text, script)
    }

    fn dialect(output: OutputDialect, script: &str) -> Self {
        let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
        let options = TemplateOptions { output, ..TemplateOptions::default() };
        Self::new(Some(from_template("script", argv, options).unwrap()), "")
    }

    fn command(line: &str) -> Self {
        Self::new(None, line)
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    fn try_run(&self) -> Result<Attempted, AttemptError> {
        let work = match &self.agent {
            Some(agent) => Work::Agent {
                agent,
                model: self.model.as_deref(),
                prompt: self.prompt.clone(),
                session: self.session.clone(),
            },
            None => Work::Command(CommandLine::Shell(self.line.clone())),
        };
        let what = Attempt {
            work,
            folder: self.folder.path(),
            scratch: if self.relative { Path::new("scratch") } else { self.scratch.path() },
            phase_key: "2a",
            number: 2,
            tasks: &[],
            env: self.env.clone(),
            limits: self.limits.clone(),
            retry_context: self.retry.as_ref(),
            log: backstop_work::Log::to(self.log.clone()),
            redactor: &self.redactor,
            on_session: self.on_session(),
            silences: Silences {
                question: Duration::from_millis(300),
                own_retry: Duration::from_millis(400),
            },
            wanted: Wanted::default(),
            iterations_max: None,
            allow_overage: false,
            linked: &[],
        };
        attempt(what, &CLASSIFIER, &|| Timestamp::from_millis(1_790_000_000_000), &self.stop, |_| {})
    }

    fn run(&self) -> Attempted {
        self.try_run().unwrap()
    }
}

fn reason(attempted: &Attempted) -> Option<Reason> {
    attempted.fault.as_ref().map(|fault| fault.reason)
}

fn cause(attempted: &Attempted) -> String {
    attempted.fault.as_ref().and_then(|f| f.cause.clone()).unwrap_or_default().to_string()
}

const OURS: &str = r#"{"phase_id":"2a","status":"complete"}"#;

#[test]
fn the_prompt_comes_on_standard_input_and_the_result_goes_to_a_file() {
    let script = format!(
        "cat > got; echo \"$BACKSTOP_PHASE $BACKSTOP_ATTEMPT $MINE ${{BACKSTOP_RETRY_CONTEXT:-none}}\" > env; echo '{OURS}' > \"$BACKSTOP_RESULT\"; echo bye; echo oops >&2"
    );
    let mut script = Script::agent(&script);
    script.prompt = "do `this` \"$(exactly)\"\n".to_owned();
    script.env =
        vec![("MINE".to_owned(), "a b".to_owned()), ("BACKSTOP_PHASE".to_owned(), "forged".to_owned())];
    let done = script.run();
    assert_eq!(reason(&done), None, "{done:?}");
    assert_eq!(done.envelope.unwrap().status, Claim::Complete);
    assert_eq!(
        (done.exit, done.signal, done.timed_out, done.dispatch),
        (Some(0), None, false, Dispatch::Answered)
    );
    assert_eq!(script.file("got"), script.prompt);
    assert_eq!(script.file("env"), "2a 2 a b none\n");
    assert_eq!(done.message, Some("bye".into()));
    let tail = String::from_utf8(done.tail).unwrap();
    assert!(tail.contains("bye\n") && tail.contains("oops\n"), "{tail}");
    assert_eq!(script.log.0.lock().unwrap().0, 9);
}

#[test]
fn a_prompt_file_a_model_and_the_schema_are_passed_on() {
    let argv = [
        "sh",
        "-c",
        "cat \"$1\"; echo; echo \"$2\"; head -c 1 \"$3\"; cat; echo '{\"phase_id\":\"2a\",\"status\":\"complete\"}'",
        "x",
        "{prompt_file}",
        "{model}",
        "{schema_file}",
    ];
    let agent = from_template("mine", argv.map(str::to_owned).to_vec(), TemplateOptions::default()).unwrap();
    let mut script = Script::new(Some(agent), "");
    script.model = Some("large".to_owned());
    let done = script.run();
    assert_eq!(reason(&done), None, "{done:?}");
    assert_eq!(String::from_utf8(done.tail).unwrap(), format!("do it\n\nlarge\n{{{OURS}\n"));
}

#[test]
fn it_prints_the_template_back() {
    let assignment =
        Assignment { phase_id: "2A".to_owned(), phase_key: "2a".to_owned(), ..Assignment::default() };
    let mut script = Script::agent("cat");
    script.prompt = prompt(&assignment);
    let echoed = script.run();
    assert_eq!(reason(&echoed), Some(Reason::ParseError));
    assert!(echoed.envelope.is_none());
    assert!(cause(&echoed).contains("the result is not valid"), "{}", cause(&echoed));
}

#[test]
fn it_prints_another_phases_result_last() {
    let other = r#"{"phase_id":"3","status":"failed"}"#;
    let both = Script::agent(&format!("cat >/dev/null; echo '{OURS}'; echo '{other}'")).run();
    assert_eq!((reason(&both), both.envelope.unwrap().status), (None, Claim::Complete));
    let only = Script::agent(&format!("echo '{other}'")).run();
    assert_eq!(only.result_trouble, Some(ResultTrouble::OtherPhase("3".into())));
    assert_eq!(reason(&only), Some(Reason::ParseError));
}

#[test]
fn it_prints_trailing_braces() {
    let done = Script::agent(&format!("echo 'so: {{ {OURS}}}}} }} done'")).run();
    assert_eq!((reason(&done), done.envelope.is_some()), (None, true));
}

#[test]
fn it_hangs_and_is_ended_by_silence() {
    let mut script = Script::agent(&format!("echo '{OURS}'; exec sleep 600"));
    script.limits.idle = Some(Duration::from_millis(400));
    let hung = script.run();
    assert_eq!((reason(&hung), hung.timed_out, hung.dispatch), (Some(Reason::Timeout), true, Dispatch::Lost));
    assert!(hung.silent >= Duration::from_millis(300), "{:?}", hung.silent);
    assert_eq!(hung.exit, None);
    assert!(hung.envelope.is_some(), "what it had said is not lost");
    assert!(cause(&hung).starts_with("silent for"), "{}", cause(&hung));
}

#[test]
fn it_reports_a_failure_and_then_hangs() {
    let line = r#"{"type":"error","sessionID":"ses_1","error":{"name":"ContextOverflowError","data":{"message":"prompt is too long"}}}"#;
    let mut script = Script::dialect(OutputDialect::OpencodeJsonl, &format!("echo '{line}'; exec sleep 600"));
    script.limits.idle = Some(Duration::from_millis(400));
    let hung = script.run();
    assert_eq!((reason(&hung), hung.timed_out), (Some(Reason::ContextOverflow), true));
    assert_eq!(hung.session_id, Some("ses_1".into()));
}

#[test]
fn it_ignores_that_it_should_end() {
    let mut script = Script::agent("trap '' TERM; echo on; while :; do sleep 0.05; echo still; done");
    script.limits.wall = Some(Duration::from_millis(400));
    script.limits.grace = Duration::from_millis(100);
    let ended = script.run();
    assert_eq!((reason(&ended), ended.timed_out), (Some(Reason::Timeout), true));
}

#[test]
fn it_forks_away() {
    let script = format!(
        "python3 -c 'import os,time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\nopen(\"pid\",\"w\").write(str(os.getpid()))\ntime.sleep(600)'; while [ ! -s pid ]; do sleep 0.01; done; echo '{OURS}'"
    );
    let script = Script::agent(&script);
    let done = script.run();
    assert_eq!(reason(&done), None, "{done:?}");
    if cfg!(target_os = "linux") {
        assert_eq!(done.left_behind.len(), 1, "{:?}", done.left_behind);
        let pid = script.file("pid").parse().unwrap();
        assert!(Process::find(pid).is_none_or(|process| !process.is_alive()));
    }
}

#[test]
fn it_prints_a_gigabyte() {
    let script = format!("head -c 1073741824 /dev/zero | tr '\\0' 'x'; echo; echo '{OURS}'");
    let mut script = Script::agent(&script);
    script.limits.wall = Some(Duration::from_secs(120));
    let done = script.run();
    assert_eq!((reason(&done), done.envelope.is_some()), (None, true));
    assert!(done.tail.len() <= 8 << 10);
    assert!(done.message.unwrap().raw().len() <= 4 << 10);
    assert_eq!(script.log.0.lock().unwrap().0, (1 << 30) + 1 + OURS.len() as u64 + 1);
}

#[test]
fn somebody_asks_for_its_end() {
    let script = Script::agent("exec sleep 600");
    script.stop.request();
    let stopped = script.run();
    assert_eq!((reason(&stopped), stopped.timed_out), (Some(Reason::Interrupted), false));
}

#[test]
fn an_old_result_is_no_result() {
    let script = Script::agent("cat >/dev/null");
    std::fs::create_dir_all(script.scratch.path().join("out")).unwrap();
    std::fs::write(result_file(script.scratch.path()), OURS).unwrap();
    assert_eq!(reason(&script.run()), Some(Reason::ParseError));
}

#[test]
fn a_result_that_is_a_link_is_not_read_and_its_words_are_heard_instead() {
    let link = "echo '{\"phase_id\":\"2a\",\"status\":\"complete\"}' > elsewhere; ln -s \"$PWD/elsewhere\" \"$BACKSTOP_RESULT\"";
    let linked = Script::agent(link).run();
    assert_eq!(reason(&linked), Some(Reason::ParseError));
    assert!(cause(&linked).contains("not a regular file"), "{}", cause(&linked));
    let said = Script::agent(&format!("{link}; echo '{OURS}'")).run();
    assert_eq!(reason(&said), None);
}

#[test]
fn the_file_comes_before_the_words() {
    let failed = r#"{"phase_id":"2a","status":"failed","error":{"type":"lint_error","message":"2 errors"}}"#;
    let done = Script::agent(&format!("echo '{failed}' > \"$BACKSTOP_RESULT\"; echo '{OURS}'")).run();
    assert_eq!((reason(&done), cause(&done)), (Some(Reason::LintError), "2 errors".to_owned()));
}

#[test]
fn codexs_last_message_counts_where_nothing_was_written() {
    let line = "printf '%s' '{\"phase_id\":\"2a\",\"status\":\"complete\"}' > \"$1\"; echo '{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}'; exit 1";
    let argv = ["sh", "-c", line, "codex", "{last_message_file}"].map(str::to_owned).to_vec();
    let options = TemplateOptions { output: OutputDialect::CodexJsonl, ..TemplateOptions::default() };
    let done = Script::new(Some(from_template("codex", argv, options).unwrap()), "").run();
    assert_eq!((reason(&done), done.exit, done.envelope.is_some()), (None, Some(1), true));
    assert_eq!(done.usage.unwrap().input_tokens, 3);
}

#[test]
fn a_command_is_judged_by_its_exit_code_alone() {
    assert_eq!(reason(&Script::command("echo 'error: 3 tests failed'").run()), None);
    let failed = Script::command("echo 'Tests:       3 failed, 44 passed, 47 total'; exit 1").run();
    assert_eq!((reason(&failed), failed.exit), (Some(Reason::TestFailure), Some(1)));
    assert!(failed.result_trouble.is_none() && failed.message.is_none());
    let missing = Script::command("no-such-program-here").run();
    assert_eq!((reason(&missing), missing.exit), (Some(Reason::DependencyMissing), Some(127)));
    let killed = Script::command("kill -SEGV $$").run();
    assert_eq!((reason(&killed), killed.signal.as_deref()), (Some(Reason::Crash), Some("SIGSEGV")));
    // What it prints is no result, what it writes is.
    let printed = Script::command(&format!("echo '{OURS}'")).run();
    assert_eq!((reason(&printed), printed.envelope), (None, None));
    let written = Script::command(&format!("echo '{OURS}' > \"$BACKSTOP_RESULT\"")).run();
    assert_eq!((reason(&written), written.envelope.is_some()), (None, true));
    let bad = Script::command("echo nonsense > \"$BACKSTOP_RESULT\"").run();
    assert_eq!(reason(&bad), Some(Reason::ParseError));
}

#[test]
fn a_command_has_no_input_and_finds_the_retry_context() {
    let mut script = Script::command("cat; cat \"$BACKSTOP_RETRY_CONTEXT\" > got");
    script.retry = Some(RetryContext {
        previous_error_type: "test_failure".to_owned(),
        tasks_total: 3,
        ..RetryContext::default()
    });
    assert_eq!(reason(&script.run()), None);
    assert!(script.file("got").contains("\"previous_error_type\": \"test_failure\""));
}

#[test]
fn secrets_are_masked_in_what_is_given_back() {
    let line = "echo 'key C4n4ry-Value'; echo '{\"phase_id\":\"2a\",\"status\":\"failed\",\"error\":{\"type\":\"C4n4ry-Value\",\"message\":\"C4n4ry-Value\"}}'";
    let mut script = Script::agent(line);
    script.redactor = Redactor::new(["C4n4ry-Value"]);
    let done = script.run();
    assert!(!String::from_utf8_lossy(&done.tail).contains("C4n4ry"));
    assert!(!format!("{done:?}").contains("C4n4ry"), "{done:?}");
    assert_eq!(reason(&done), Some(Reason::TaskIncomplete));
}

#[test]
fn what_cannot_be_started_says_so_with_a_way_out() {
    let agent =
        from_template("gone", vec!["no-such-agent-here".to_owned()], TemplateOptions::default()).unwrap();
    let error = Script::new(Some(agent), "").try_run().unwrap_err();
    assert_eq!(error.fault().reason, Reason::DependencyMissing);
    assert_eq!(error.fault().facts.missing, Some(SafeText::new("no-such-agent-here")));
    assert!(error.hint().contains("install `no-such-agent-here`"));
    let empty = Script::command("  ").try_run().unwrap_err();
    assert_eq!(
        (empty.fault().reason, empty.to_string().as_str()),
        (Reason::PlanInvalid, "the command of phase `2a` is empty")
    );
    let script = Script::agent("true");
    std::fs::write(script.scratch.path().join("out"), "in the way").unwrap();
    assert!(matches!(script.try_run().unwrap_err(), AttemptError::Scratch { .. }));
    let mut script = Script::agent("true");
    script.relative = true;
    let error = script.try_run().unwrap_err();
    assert!(error.to_string().contains("not an absolute path"), "{error}");
}

#[test]
fn a_question_that_nobody_answers_ends_the_attempt_in_words() {
    let script = "echo working; printf 'Do you want to proceed?\\n > 1. Yes\\n   2. No\\n'; sleep 1000";
    let asked = Script::agent(script).run();
    let fault = asked.fault.unwrap();
    assert_eq!(fault.reason, Reason::PermissionDenied);
    assert_eq!(fault.cause, Some("it asks, and nobody will answer: Do you want to proceed?".into()));
    assert!(fault.suggested_action.raw().contains("--permission-mode acceptEdits"));
    assert!(!asked.timed_out);
    // One that ends with its question has asked it as well; a command asks whom it likes.
    let script =
        "echo 'Not inside a trusted directory and --skip-git-repo-check was not specified.' >&2; exit 1";
    let fault = Script::agent(script).run().fault.unwrap();
    assert_eq!(fault.reason, Reason::PermissionDenied);
    assert!(fault.suggested_action.raw().contains("--skip-git-repo-check"));
    assert!(Script::command("echo 'Continue? [y/N]'; sleep 1").run().fault.is_none());
}

#[test]
fn an_agent_that_sleeps_after_a_failed_request_is_ended_and_one_that_goes_on_is_not() {
    let limit = "echo 'message=\"stream error\" small=false error.error=\"AI_APICallError: \
        This request would exceed your account rate limit.\"' >&2; ";
    let asleep = Script::dialect(OutputDialect::OpencodeJsonl, &format!("{limit} sleep 1000")).run();
    let fault = asleep.fault.unwrap();
    assert_eq!((fault.reason, asleep.timed_out), (Reason::RateLimited, false));
    let evidence = fault.evidence.iter().find(|evidence| evidence.rule == "agent.waited").unwrap();
    assert!(evidence.text.raw().contains("waited in silence"), "{}", evidence.text);
    // It goes on at once and then takes its time; and one of plain text is a script of somebody's.
    let step = "echo '{\"type\":\"step_start\",\"sessionID\":\"s-1\",\"part\":{}}'";
    // Two pipes have no order: what is said on one is read before what follows on the other.
    let went_on = format!("{limit} sleep 0.2; {step}; sleep 1.2; echo '{OURS}' > \"$BACKSTOP_RESULT\"");
    for (dialect, script) in [(OutputDialect::OpencodeJsonl, &went_on), (OutputDialect::Text, &went_on)] {
        let attempted = Script::dialect(dialect, script).run();
        assert!(attempted.fault.is_none(), "{dialect:?}: {:?}", attempted.fault);
    }
}

#[test]
fn a_session_is_told_while_it_runs_continued_by_its_id_and_its_refusal_is_seen() {
    let script = "printf '{\"type\":\"thread.started\",\"thread_id\":\"t-7\"}\\n'; echo \"$0 $*\" > words; \
        printf '{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":300,\"output_tokens\":16}}\\n'";
    let mut run = Script::dialect(OutputDialect::CodexJsonl, script);
    let agent = run.agent.as_mut().unwrap();
    agent.resume = backstop_work::agent::builtin("codex").unwrap().resume;
    agent.argv.push("{resume}".to_owned());
    let first = run.run();
    assert_eq!(*run.sessions.lock().unwrap(), ["t-7"]);
    assert_eq!((first.session_id.as_deref(), run.file("words").trim()), (Some("t-7"), "sh"));
    let used = Usage { input_tokens: 100, output_tokens: 7, cost_usd: None };
    run.session = Some(Continued { id: "t-7".to_owned(), used });
    let second = run.run();
    assert_eq!(run.file("words").trim(), "resume t-7");
    assert_eq!(second.usage.unwrap(), Usage { input_tokens: 200, output_tokens: 9, cost_usd: None });
    assert!(!second.session_refused);
    let mut gone = Script::dialect(
        OutputDialect::CodexJsonl,
        "echo 'Error: thread/resume failed: no rollout found for thread id t-7 (code -32600)' >&2; exit 1",
    );
    gone.agent.as_mut().unwrap().resume = backstop_work::agent::builtin("codex").unwrap().resume;
    assert!(!gone.run().session_refused, "none was to be continued");
    gone.session.clone_from(&run.session);
    assert!(gone.run().session_refused);
}
