//! What went wrong with a server or a call, as a fault: what the classifier finds in the evidence,
//! with what only this crate knows (which server, which program, which credential).

use crate::connection::RequestFailure;
use crate::jsonrpc::{MESSAGE_BYTES_MAX, RpcError};
use crate::transport::{Exit, TransportFailure, TransportFailureKind};
use crate::upstream::Upstream;
use backstop_classify::Classifier;
use backstop_core::{Dispatch, Fault, Name, Reason, SafeText, Signal, Surface};
use backstop_exec::StartError;
use backstop_report::duration;
use backstop_runtime::Project;
use serde_json::{Value, json};
use std::sync::OnceLock;
use std::time::Duration;

/// How much of a message is kept as the cause, in characters.
const CAUSE_CHARS_MAX: usize = 2000;

/// How many lines of what a program wrote are shown.
const TAIL_LINES_MAX: usize = 10;
/// How many characters of each.
const TAIL_LINE_CHARS_MAX: usize = 180;

/// How many questions of a server are named.
const QUESTIONS_MAX: usize = 8;

/// What tools say of a file that they may not open.
const FILE_DENIED: &[&str] =
    &["EACCES", "EPERM", "outside allowed directories", "Permission denied (os error"];

/// Why a server could not be started or greeted.
#[derive(Debug)]
pub(crate) enum StartFailure {
    /// Its settings name neither a program nor an address.
    Nothing,
    /// A variable that its settings name is not set.
    Unset { variable: String, secret: bool },
    /// Its address is none.
    Address(String, &'static str),
    /// The program could not be started.
    Program(StartError),
    /// It was not greeted.
    Greeting { failure: RequestFailure, stderr: Option<String> },
}

/// A failure, and how far the request got.
pub(crate) struct Classified {
    pub(crate) fault: Fault,
    pub(crate) dispatch: Dispatch,
    /// The time after which a limit of ours ended it.
    pub(crate) timed_out: Option<Duration>,
}

fn classifier(project: &Project) -> &'static Classifier {
    // The rules are the same for every failure of this process; packs of the project count where
    // the engine classifies.
    static CLASSIFIER: OnceLock<Classifier> = OnceLock::new();
    CLASSIFIER.get_or_init(|| project.classifier_or_builtin(|_| {}))
}

fn masked(project: &Project, text: &str) -> SafeText {
    let text: String = text.chars().take(CAUSE_CHARS_MAX).collect();
    SafeText::new(project.redactor.redact(&text).into_owned())
}

fn of(reason: Reason, project: &Project, cause: &str, next: &str) -> Fault {
    let mut fault = Fault::new(reason);
    fault.cause = Some(masked(project, cause));
    fault.suggested_action = masked(project, next);
    fault
}

/// What a call waited for before it could be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitedFor {
    /// A place among the calls that the server gets at once.
    Slot,
    /// The server's start.
    Start,
}

/// The fault of a call whose time was over before it could be sent.
pub(crate) fn of_wait(server: &Name, waited_for: WaitedFor, limit: Duration) -> Fault {
    let limit = duration(limit);
    let (cause, next) = match waited_for {
        WaitedFor::Slot => (
            format!("{server} had no place for one more call within {limit}"),
            format!("wait for its other calls, or raise `mcp.{server}.concurrency`"),
        ),
        WaitedFor::Start => (
            format!("{server} was not ready within {limit}"),
            format!(
                "check that it starts (`backstop tools doctor {server}`), or raise the time limit and \
                 `mcp.{server}.start_timeout`"
            ),
        ),
    };
    let mut fault = Fault::new(Reason::Timeout);
    fault.cause = Some(SafeText::new(cause));
    fault.suggested_action = SafeText::new(next);
    fault
}

/// A server that is not started yet again.
pub(crate) fn backing_off(server: &Name, left: Duration, last: &Fault) -> Fault {
    let mut fault = last.clone();
    let cause = last.cause.as_ref().map(|cause| format!(": {}", cause.raw())).unwrap_or_default();
    fault.cause = Some(SafeText::new(format!("{server} is started again in {}{cause}", duration(left))));
    fault.facts.retry_after_seconds = Some(left.as_secs_f64());
    fault
}

/// The fault of a server that could not be started.
pub(crate) fn of_start(upstream: &Upstream, project: &Project, failure: StartFailure) -> Fault {
    let server = &upstream.name;
    let mut fault = match failure {
        StartFailure::Nothing => of(
            Reason::InvalidUsage,
            project,
            &format!("the settings of {server} name neither a command nor a url"),
            &format!("set `mcp.{server}.command` or `mcp.{server}.url`"),
        ),
        StartFailure::Unset { variable, secret } => {
            let reason = if secret { Reason::AuthError } else { Reason::InvalidUsage };
            let cause = format!("the settings of {server} name the variable {variable}, which is not set");
            let mut fault = of(reason, project, &cause, &format!("set {variable}, then repeat the call"));
            fault.facts.credential = secret.then(|| SafeText::new(variable));
            fault
        }
        StartFailure::Address(what, hint) => {
            of(Reason::InvalidUsage, project, &format!("the url of {server} {what}"), hint)
        }
        StartFailure::Program(error) => of_program(server, project, &error),
        StartFailure::Greeting {
            failure:
                RequestFailure::Transport(TransportFailure { kind: TransportFailureKind::Ended(exit), .. }),
            ..
        } => of_exit(upstream, project, &exit, true),
        StartFailure::Greeting { failure, stderr } => {
            let mut classified = of_request(upstream, project, failure);
            if classified.timed_out.is_some() {
                let next = format!("check that it starts, or raise `mcp.{server}.start_timeout`");
                classified.fault.suggested_action = SafeText::new(next);
            }
            with_output(project, &mut classified.fault, &stderr.unwrap_or_default());
            classified.fault
        }
    };
    fault.facts.provider.get_or_insert_with(|| SafeText::new(server.to_string()));
    fault
}

fn of_program(server: &Name, project: &Project, error: &StartError) -> Fault {
    let words = error.to_string();
    match error {
        StartError::NotFound { program } => {
            let next = format!("install {program}, or correct `mcp.{server}.command`");
            let mut fault = of(Reason::DependencyMissing, project, &words, &next);
            fault.facts.missing = Some(masked(project, program));
            fault
        }
        StartError::NotExecutable { .. } => of(
            Reason::PermissionDenied,
            project,
            &words,
            &format!("make it executable, or correct `mcp.{server}.command`"),
        ),
        StartError::Folder { .. } => {
            of(Reason::InvalidUsage, project, &words, &format!("correct `mcp.{server}.cwd`"))
        }
        StartError::System { .. } => of(Reason::ResourceExhausted, project, &words, "close other programs"),
    }
}

/// The fault of a server whose connection is closed.
pub(crate) fn of_closed(upstream: &Upstream, project: &Project, kind: &TransportFailureKind) -> Fault {
    of_transport(upstream, project, &TransportFailure::new(Dispatch::Lost, kind.clone()))
}

/// The fault of a request that has no result, with what the program wrote where it did not answer.
pub(crate) fn of_request_that_wrote(
    upstream: &Upstream,
    project: &Project,
    failure: RequestFailure,
    stderr: &str,
) -> Classified {
    let mut classified = of_request(upstream, project, failure);
    if classified.timed_out.is_some() {
        with_output(project, &mut classified.fault, stderr);
    }
    classified
}

/// Adds the end of what a program wrote to the cause of a fault, where it is not there already.
fn with_output(project: &Project, fault: &mut Fault, stderr: &str) {
    let cause = fault.cause.as_ref().map(|cause| cause.raw().to_owned()).unwrap_or_default();
    if last_line(stderr).is_some_and(|last| !cause.contains(last)) {
        fault.cause = Some(masked(project, &format!("{cause}{}", wrote(stderr))));
    }
}

/// The end of what a program wrote, as the end of a sentence. Nothing where it wrote nothing.
fn wrote(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.trim_end().chars().take(TAIL_LINE_CHARS_MAX).collect::<String>())
        .filter(|line| !line.trim().is_empty())
        .collect();
    match &lines[lines.len().saturating_sub(TAIL_LINES_MAX)..] {
        [] => String::new(),
        [line] => format!("; it wrote: {}", line.trim()),
        lines => format!("; it wrote:\n{}", lines.join("\n")),
    }
}

/// The fault of a request that has no result.
pub(crate) fn of_request(upstream: &Upstream, project: &Project, failure: RequestFailure) -> Classified {
    let server = &upstream.name;
    let sent_or_not = |sent: bool| if sent { Dispatch::Lost } else { Dispatch::NotDispatched };
    match failure {
        RequestFailure::Rpc(error) => Classified {
            fault: of_rpc(upstream, project, &error),
            dispatch: Dispatch::Answered,
            timed_out: None,
        },
        RequestFailure::Transport(failure) => Classified {
            fault: of_transport(upstream, project, &failure),
            dispatch: failure.dispatch,
            timed_out: None,
        },
        RequestFailure::TimedOut { after, limit, since_progress, sent } => {
            let what = if since_progress { "no progress" } else { "no answer" };
            let cause = format!("{what} from {server} within {}", duration(limit));
            let key = if since_progress { "idle" } else { "timeout" };
            let next = format!("narrow the scope, or raise `mcp.{server}.{key}`");
            let fault = of(Reason::Timeout, project, &cause, &next);
            Classified { fault, dispatch: sent_or_not(sent), timed_out: Some(after) }
        }
        RequestFailure::TooLarge { what, max } => {
            let cause = format!("the answer of {server} to {what} is larger than {} MiB", max >> 20);
            let next = format!("take {server} out of the settings, or have it list less");
            let fault = of(Reason::Validation, project, &cause, &next);
            Classified { fault, dispatch: Dispatch::Answered, timed_out: None }
        }
        RequestFailure::Cancelled { sent } => Classified {
            fault: of(
                Reason::Interrupted,
                project,
                "the call was cancelled",
                "call it again if it is wanted",
            ),
            dispatch: sent_or_not(sent),
            timed_out: None,
        },
    }
}

fn classify(project: &Project, signal: &Signal) -> Fault {
    classifier(project).classify(signal).unwrap_or_else(|| Fault::new(Reason::Unknown))
}

fn response(project: &Project) -> Signal {
    Signal { surface: Surface::Response, at: Some(project.process.now()), ..Signal::default() }
}

/// The fault of an error that a server answered with.
pub(crate) fn of_rpc(upstream: &Upstream, project: &Project, error: &RpcError) -> Fault {
    let body = json!({ "error": error.to_json() }).to_string().into_bytes();
    let mut fault = classify(project, &Signal { stdout: body, ..response(project) });
    if fault.reason == Reason::Unknown {
        fault = fault.renamed(Reason::ToolFailed);
    }
    fault.cause = Some(masked(project, &error.message));
    if fault.reason == Reason::AuthError {
        auth_facts(upstream, &[], &mut fault);
    }
    fault
}

/// The fault of a result that says that the tool failed: its text is classified as what it is.
pub(crate) fn of_error_result(upstream: &Upstream, project: &Project, result: &Value) -> Fault {
    let text = crate::result::text_of(result);
    let body = result.to_string().into_bytes();
    let mut fault = classify(project, &Signal { stdout: body, ..response(project) });
    if fault.reason == Reason::Unknown {
        fault = fault.renamed(Reason::ToolFailed);
    }
    // A file that may not be opened is no matter of a credential.
    if fault.reason == Reason::AuthError && FILE_DENIED.iter().any(|words| text.contains(words)) {
        fault = fault.renamed(Reason::PermissionDenied);
    }
    let silent = "the tool reports an error without a message";
    fault.cause = Some(masked(project, if text.is_empty() { silent } else { &text }));
    if fault.reason == Reason::AuthError {
        auth_facts(upstream, &[], &mut fault);
    }
    fault
}

/// The fault of a call whose server wants to know something before it goes on, where nobody can be
/// asked: what it asks, and how the answer is given.
pub(crate) fn of_input_required(server: &Name, tool: &str, project: &Project, result: &Value) -> Fault {
    let asked = result["inputRequests"].as_object().into_iter().flatten().take(QUESTIONS_MAX);
    let question = |(key, wanted): (&String, &Value)| {
        let method = wanted["method"].as_str().unwrap_or("?");
        let message = wanted["params"]["message"].as_str().map(|message| format!(" \"{message}\""));
        format!("{key}: {method}{}", message.unwrap_or_default())
    };
    let questions: Vec<String> = asked.clone().map(question).collect();
    let cause = format!("{server} asks for input before it goes on: {}", questions.join("; "));
    let responses: Value =
        asked.map(|(key, _)| (key.clone(), json!({ "action": "accept", "content": {} }))).collect();
    let mut params = json!({ "name": tool, "arguments": {}, "inputResponses": responses });
    if let Some(state) = result.get("requestState") {
        params["requestState"] = state.clone();
    }
    let next = format!(
        "call it through `backstop mcp` from a client that can be asked, or give the answer: \
         `backstop call --raw {server} tools/call '{params}'`"
    );
    of(Reason::InvalidUsage, project, &cause, &next)
}

fn of_transport(upstream: &Upstream, project: &Project, failure: &TransportFailure) -> Fault {
    let server = &upstream.name;
    match &failure.kind {
        TransportFailureKind::Ended(exit) => of_exit(upstream, project, exit, false),
        TransportFailureKind::Closed => of(
            Reason::NetworkTransient,
            project,
            &format!("the connection to {server} is closed"),
            "wait a moment and try again",
        ),
        TransportFailureKind::Write(error) => of(
            Reason::NetworkTransient,
            project,
            &format!("{server} does not take messages: {error}"),
            "wait a moment and try again",
        ),
        TransportFailureKind::SessionExpired => of(
            Reason::NetworkTransient,
            project,
            &format!("{server} has forgotten the session"),
            "wait a moment and try again",
        ),
        TransportFailureKind::NoAnswer(what) => {
            of(Reason::NetworkTransient, project, &format!("{server}: {what}"), "wait a moment and try again")
        }
        // The same again would be as large.
        TransportFailureKind::TooLarge => of(
            Reason::Validation,
            project,
            &format!(
                "{server}'s answer is larger than {} MiB, the most that is read",
                MESSAGE_BYTES_MAX >> 20
            ),
            "ask for less: a page, a filter or a smaller range",
        ),
        TransportFailureKind::Http { message, errno, timed_out } => {
            let signal = Signal {
                errno: errno.map(str::to_owned),
                timed_out: *timed_out,
                dispatch: failure.dispatch,
                stderr: message.clone().into_bytes(),
                ..response(project)
            };
            let mut fault = classify(project, &signal);
            if fault.reason == Reason::Unknown {
                fault = fault.renamed(Reason::NetworkTransient);
            }
            fault.cause = Some(masked(project, message));
            fault
        }
        TransportFailureKind::Status { status, headers, body } => {
            let signal = Signal {
                status: Some(*status),
                headers: headers.clone(),
                stdout: body.clone(),
                ..response(project)
            };
            let mut fault = classify(project, &signal);
            fault.facts.status.get_or_insert(*status);
            if fault.cause.is_none() {
                fault.cause = Some(SafeText::new(format!("{server} answers with HTTP status {status}")));
            }
            if fault.reason == Reason::AuthError {
                auth_facts(upstream, headers, &mut fault);
            }
            fault
        }
    }
}

/// Which credential was refused, and where it is renewed.
fn auth_facts(upstream: &Upstream, headers: &[(String, String)], fault: &mut Fault) {
    let server = &upstream.name;
    let variables = upstream.credential_variables();
    fault.facts.provider = Some(SafeText::new(server.to_string()));
    fault.facts.credential = Some(match variables.is_empty() {
        true if upstream.settings.url.is_none() => SafeText::new(format!("mcp.{server}.env")),
        true => SafeText::new(format!("mcp.{server}.headers")),
        false => SafeText::new(variables.join(", ")),
    });
    let challenge = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("www-authenticate"));
    let metadata = challenge.and_then(|(_, value)| {
        let rest = value.split_once("resource_metadata=")?.1;
        Some(rest.trim_start_matches('"').split(['"', ',', ' ']).next()?.to_owned())
    });
    if let Some(address) = metadata {
        fault.facts.renewal = Some(SafeText::new(address));
    }
    let credential = fault.facts.credential.as_ref().map(|text| text.raw().to_owned()).unwrap_or_default();
    let renewal =
        fault.facts.renewal.as_ref().map(|text| format!(" (see {})", text.raw())).unwrap_or_default();
    fault.suggested_action =
        SafeText::new(format!("renew the credential of {server}: {credential}{renewal}"));
}

/// The fault of a program that ended. What it wrote before it was ready says why it did not start;
/// later it may be about anything.
fn of_exit(upstream: &Upstream, project: &Project, exit: &Exit, starting: bool) -> Fault {
    let server = &upstream.name;
    // Its standard output is messages: tools' names and descriptions, and no reason.
    let signal = Signal {
        command: upstream.settings.command.clone(),
        exit: exit.ended.status.code.map(i64::from),
        signal: exit.ended.status.signal.map(i64::from),
        at: Some(project.process.now()),
        stderr: exit.stderr.clone().into_bytes(),
        ..Signal::default()
    };
    let found = starting.then(|| classifier(project).classify(&signal)).flatten();
    let found = found.filter(|fault| fault.reason != Reason::Unknown);
    let mut fault = found.unwrap_or_else(|| Fault::new(Reason::Crash));
    let output = match last_line(&exit.stderr) {
        Some(_) => &exit.stderr,
        None => exit.garbage.as_ref().unwrap_or(&exit.stderr),
    };
    let mut output = wrote(output);
    // What the rules found may stand before the lines that are shown.
    if let Some(cause) = fault.cause.as_ref().filter(|_| starting)
        && !output.contains(cause.raw())
    {
        output = format!("; it wrote: {}\n{}", cause.raw(), output.trim_start_matches("; it wrote:").trim());
    }
    fault.cause = Some(masked(project, &format!("{server} {}{output}", exit.words())));
    if fault.reason == Reason::Crash {
        let next = format!("see what it wrote before it ended; `backstop tools doctor {server}` checks it");
        fault.suggested_action = SafeText::new(next);
    }
    fault
}

/// The last line that says something.
fn last_line(text: &str) -> Option<&str> {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty())
}
