//! The conversation with one agent: which message is answered by which, and what it adds up to.
//!
//! It does no I/O and reads no clock. Lines come in; messages to send, text for the log and the end
//! of the conversation go out. The steps are `initialize`, then `session/new` (or `resume`, or
//! `load`), then the mode, the model, the prompt.

use super::super::dialect::{AgentOutput, Failure, Report, copilot, is_session_id, status_in};
use super::evidence;
use super::message::{self, Incoming};
use super::patience::{Enough, Patience};
use super::permission::{self, Resolver};
use super::session_settings::{self, NoSuchMode, Setting};
use super::tool::ToolCalls;
use super::words::Words;
use backstop_core::{Fault, Reason, SafeText, Usage};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The version of the protocol that is spoken here.
const PROTOCOL: u64 = 1;
/// How much of an agent's words is quoted.
const QUOTE_CHARS_MAX: usize = 120;
/// How much of what is not allowed is logged.
const DENIED_CHARS_MAX: usize = 400;

/// What the conversation is about.
#[derive(Debug, Clone, Default)]
pub(super) struct Topic {
    /// What it is told.
    pub(super) prompt: String,
    /// The folders in which it may work; the first is its own.
    pub(super) folders: Vec<PathBuf>,
    /// What links of its own folder may lead to.
    pub(super) linked: Vec<PathBuf>,
    /// The session that it continues.
    pub(super) session: Option<String>,
    /// The mode that somebody asked for.
    pub(super) mode: Option<String>,
    /// The modes that are good for it, the best first.
    pub(super) modes: &'static [&'static str],
    /// The model that somebody asked for.
    pub(super) model: Option<String>,
    /// Where the paths lead that it asks for.
    pub(super) resolver: Resolver,
}

/// Where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Initialize,
    Session,
    /// Its mode or its model is being set.
    Settings,
    /// What a loaded session replays is let pass.
    Replay,
    Prompt,
    Over,
}

impl Step {
    /// What is waited for, in words.
    pub(super) fn awaited(self) -> &'static str {
        match self {
            Step::Initialize => "`initialize`",
            Step::Session => "the start of a session",
            Step::Settings => "its mode or its model",
            Step::Replay | Step::Prompt => "the prompt",
            Step::Over => "nothing",
        }
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Send(String),
    Log(String),
    /// The session has this id.
    Session(String),
    /// A tool was called.
    ToolCalled,
    /// The model answers, and nothing of that is shown.
    Answers,
}

/// A conversation.
#[derive(Debug)]
pub(super) struct Conversation {
    topic: Topic,
    pub(super) step: Step,
    /// The id of our request that is under way, and of the next one.
    awaited: u64,
    next_id: u64,
    session: Option<String>,
    /// Whether the session was loaded, which is replayed.
    is_loaded: bool,
    /// Settings that are still to be made, the last one first.
    settings: Vec<Setting>,
    is_setting_mode: bool,
    is_cancelled: bool,
    pub(super) output: AgentOutput,
    /// Whether the agent does not know the session that it was to continue.
    pub(super) session_refused: bool,
    /// Why the conversation cannot go on.
    pub(super) trouble: Option<Fault>,
    limit: Option<evidence::RejectedLimit>,
    words: Words,
    tools: ToolCalls,
    cost: Option<f64>,
    chunk_usage: Option<Usage>,
    patience: Patience,
    acts: Vec<Act>,
}

impl Conversation {
    /// A conversation, and its first message.
    pub(super) fn new(topic: Topic) -> (Self, Vec<Act>) {
        let mut new = Self {
            topic,
            step: Step::Initialize,
            awaited: 0,
            next_id: 0,
            session: None,
            is_loaded: false,
            settings: Vec::new(),
            is_setting_mode: false,
            is_cancelled: false,
            output: AgentOutput::default(),
            session_refused: false,
            trouble: None,
            limit: None,
            words: Words::default(),
            tools: ToolCalls::default(),
            cost: None,
            chunk_usage: None,
            patience: Patience::default(),
            acts: Vec::new(),
        };
        // Nothing is announced: what a client offers, agents use in place of what they can do
        // themselves.
        let client = json!({"name": "backstop", "version": env!("CARGO_PKG_VERSION")});
        new.ask(
            "initialize",
            json!({"protocolVersion": PROTOCOL, "clientCapabilities": {}, "clientInfo": client}),
        );
        let acts = std::mem::take(&mut new.acts);
        (new, acts)
    }

    fn ask(&mut self, method: &str, params: Value) {
        self.awaited = self.next_id;
        self.next_id += 1;
        self.acts.push(Act::Send(message::request(self.awaited, method, params)));
    }

    /// Takes a line of its output.
    pub(super) fn line(&mut self, line: &[u8]) -> Vec<Act> {
        let line = line.trim_ascii();
        if !line.is_empty() {
            match message::read(line) {
                Some(Incoming::Answer { id, result }) if id == self.awaited => self.answered(result),
                // An answer to what nobody asked.
                Some(Incoming::Answer { .. }) => {}
                Some(Incoming::Notification { method, params }) if method == "session/update" => {
                    self.updated(params.get("update").unwrap_or(&Value::Null));
                }
                Some(Incoming::Notification { .. }) => {}
                Some(Incoming::Request { id, method, params }) => self.requested(&id, &method, &params),
                None => self.no_message(line),
            }
        }
        std::mem::take(&mut self.acts)
    }

    /// The replay of a loaded session is over.
    pub(super) fn replayed(&mut self) -> Vec<Act> {
        if self.step == Step::Replay {
            self.prompt();
        }
        std::mem::take(&mut self.acts)
    }

    /// Asks it to leave off, where it is at work. What it asks from now on is answered with
    /// `cancelled`.
    pub(super) fn cancel(&mut self) -> Vec<Act> {
        if let (Step::Prompt, Some(session), false) = (self.step, &self.session, self.is_cancelled) {
            self.acts.push(Act::Send(message::notification("session/cancel", json!({"sessionId": session}))));
        }
        self.is_cancelled = true;
        std::mem::take(&mut self.acts)
    }

    /// Ends the conversation for a reason of ours.
    pub(super) fn fail(&mut self, reason: Reason, cause: String, next: &str) {
        if self.trouble.is_none() && self.step != Step::Over {
            let mut fault = Fault::new(reason);
            fault.cause = Some(SafeText::new(cause));
            if !next.is_empty() {
                fault.suggested_action = SafeText::new(next);
            }
            self.trouble = Some(fault);
        }
        self.step = Step::Over;
    }

    fn answered(&mut self, result: Result<Value, Value>) {
        match (self.step, result) {
            (Step::Initialize, Ok(result)) => self.initialized(&result),
            (Step::Session, Ok(result)) => self.session_begun(&result),
            (Step::Session, Err(error)) if self.topic.session.is_some() => {
                self.session_refused = true;
                self.failed(evidence::failure(&error));
            }
            (Step::Settings, Ok(_)) => {
                if self.is_setting_mode {
                    self.settings.retain(|setting| !session_settings::is_mode(setting));
                }
                self.next_setting();
            }
            // A mode that nobody asked for is no condition: what it then asks is answered.
            (Step::Settings, Err(error)) if self.topic.mode.is_none() && self.is_setting_mode => {
                if error.get("code").and_then(Value::as_i64) == Some(message::METHOD_NOT_FOUND) {
                    self.settings.retain(|setting| !session_settings::is_mode(setting));
                }
                if !self.settings.last().is_some_and(session_settings::is_mode) {
                    let words = evidence::failure(&error).text;
                    self.log(&format!("- its mode stays as it is: {}", quoted(&words)));
                }
                self.next_setting();
            }
            (Step::Settings, Err(error)) => {
                let words = evidence::failure(&error).text;
                let cause = format!("the agent does not take its settings: {}", quoted(&words));
                let next = "name a mode and a model that it has: `agent.NAME.mode`, `plan.model`, or none";
                self.fail(Reason::InvalidUsage, cause, next);
            }
            (Step::Prompt, Ok(result)) => self.turn_over(&result),
            (Step::Initialize | Step::Session | Step::Prompt, Err(error)) => {
                self.failed(evidence::failure(&error));
            }
            (Step::Replay | Step::Over, _) => {}
        }
    }

    fn failed(&mut self, mut failure: Failure) {
        failure.resets_at = self.limit.map(|limit| limit.resets_at);
        failure.window = self.limit.and_then(|limit| limit.window);
        failure.model = self.limit.and_then(|limit| limit.model);
        self.close_words();
        self.output.report = Report::Failed(failure);
        self.step = Step::Over;
    }

    fn initialized(&mut self, result: &Value) {
        let version = result.get("protocolVersion").and_then(Value::as_u64);
        if version != Some(PROTOCOL) {
            let said =
                version.map_or_else(|| "no version".to_owned(), |version| format!("version {version}"));
            let cause =
                format!("it speaks {said} of the Agent Client Protocol, and Backstop version {PROTOCOL}");
            return self.fail(
                Reason::InvalidUsage,
                cause,
                "install a version of the agent that speaks version 1",
            );
        }
        let can = |path: &str| result.pointer(&format!("/agentCapabilities{path}")).is_some_and(is_yes);
        let cwd = self
            .topic
            .folders
            .first()
            .map(|folder| folder.to_string_lossy().into_owned())
            .unwrap_or_default();
        let mut params = json!({"cwd": cwd, "mcpServers": []});
        if can("/sessionCapabilities/additionalDirectories") {
            let others: Vec<String> = self
                .topic
                .folders
                .iter()
                .skip(1)
                .map(|folder| folder.to_string_lossy().into_owned())
                .collect();
            params["additionalDirectories"] = json!(others);
        }
        self.step = Step::Session;
        let Some(session) = self.topic.session.clone() else { return self.ask("session/new", params) };
        params["sessionId"] = Value::from(session.as_str());
        self.session = Some(session);
        // Without a replay where there is a choice.
        if can("/sessionCapabilities/resume") {
            return self.ask("session/resume", params);
        }
        if can("/loadSession") {
            self.is_loaded = true;
            return self.ask("session/load", params);
        }
        self.session_refused = true;
        self.failed(Failure { text: "it cannot continue a session".to_owned(), ..Failure::default() });
    }

    fn session_begun(&mut self, result: &Value) {
        let named = result.get("sessionId").and_then(Value::as_str).map(str::to_owned);
        self.session = named.or(self.session.take());
        let Some(session) = self.session.clone() else {
            return self.fail(Reason::Validation, "it began a session and gave it no id".to_owned(), "");
        };
        if is_session_id(&session) {
            self.output.session_id = Some(session.clone());
            self.acts.push(Act::Session(session.clone()));
        }
        match session_settings::requests(&self.topic, result, &session) {
            Ok(settings) => self.settings = settings,
            Err(NoSuchMode { cause, next }) => return self.fail(Reason::InvalidUsage, cause, &next),
        }
        self.step = Step::Settings;
        self.next_setting();
    }

    fn next_setting(&mut self) {
        if let Some(setting) = self.settings.pop() {
            self.is_setting_mode = session_settings::is_mode(&setting);
            return self.ask(setting.0, setting.1);
        }
        if self.is_loaded {
            // Some go on replaying after they have answered: none of that belongs to the turn that
            // follows.
            self.step = Step::Replay;
        } else {
            self.prompt();
        }
    }

    fn prompt(&mut self) {
        self.step = Step::Prompt;
        let text = std::mem::take(&mut self.topic.prompt);
        let session = self.session.clone();
        self.ask("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}));
    }

    fn turn_over(&mut self, result: &Value) {
        let reason = result.get("stopReason").and_then(Value::as_str).unwrap_or("no stop reason");
        let last = self.words.take_last_chunk();
        self.close_words();
        let own = evidence::usage(result).or(self.chunk_usage);
        let cost = self.cost;
        self.output.usage =
            own.or(cost.map(|_| Usage::default())).map(|usage| Usage { cost_usd: cost, ..usage });
        let failure = match evidence::stopped(reason) {
            Some(_) if reason == "cancelled" && self.is_cancelled => None,
            Some(failure) => Some(failure),
            // Copilot's way to say that its model could not be reached: a last piece of its own.
            None => last.trim().strip_prefix("Error: ").map(|words| Failure {
                status: status_in(words),
                reason: copilot::reason(None, words),
                text: words.to_owned(),
                fields: json!({"stopReason": reason}),
                ..Failure::default()
            }),
        };
        match failure {
            Some(failure) => self.failed(failure),
            // The end of a turn is no success: the result file, the gates and the diff decide.
            None => self.step = Step::Over,
        }
    }

    fn updated(&mut self, update: &Value) {
        let kind = update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default();
        self.limit = evidence::rejected(update).or(self.limit);
        if self.step != Step::Prompt {
            // What is replayed was said before.
            return;
        }
        match kind {
            "agent_message_chunk" => {
                let text = update.pointer("/content/text").and_then(Value::as_str).unwrap_or_default();
                self.acts.extend(self.words.add(text));
                if let Some(usage) = update.pointer("/_meta/usage") {
                    let tokens = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
                    let usage = Usage {
                        input_tokens: tokens("inputTokens"),
                        output_tokens: tokens("outputTokens"),
                        cost_usd: None,
                    };
                    self.chunk_usage = Some(self.chunk_usage.unwrap_or_default().plus(usage));
                }
            }
            "tool_call" => {
                self.close_words();
                self.words.take_last_chunk();
                let line = self.tools.began(update);
                self.log(&line);
                self.acts.push(Act::ToolCalled);
            }
            "agent_thought_chunk" => self.acts.push(Act::Answers),
            "tool_call_update" => {
                for line in self.tools.updated(update) {
                    self.log(&line);
                }
            }
            "usage_update" => {
                self.cost = update.pointer("/cost/amount").and_then(Value::as_f64).or(self.cost);
            }
            _ => {}
        }
    }

    fn log(&mut self, line: &str) {
        let act = self.words.line(line);
        self.acts.push(act);
    }

    /// What it has said so far is one message.
    fn close_words(&mut self) {
        self.words.close(&mut self.output);
    }

    /// Ends the conversation where it is enough.
    fn bear(&mut self, enough: Option<Enough>) {
        if let Some((reason, cause, next)) = enough {
            self.fail(reason, cause, next);
        }
    }

    fn requested(&mut self, id: &Value, method: &str, params: &Value) {
        if method != "session/request_permission" {
            self.acts.push(Act::Send(message::no_such_method(id, method)));
            let enough = self.patience.unknown_request(method);
            return self.bear(enough);
        }
        if self.is_cancelled {
            let cancelled = json!({"outcome": {"outcome": "cancelled"}});
            return self.acts.push(Act::Send(message::answer(id, cancelled)));
        }
        let folders = [&self.topic.folders[..], &self.topic.linked].concat();
        let decision = permission::decide(params, &folders, self.topic.resolver);
        self.acts.push(Act::Send(message::answer(id, decision.result())));
        if let Some(denied) = &decision.denied {
            self.log(&format!("- not allowed: {}", denied.line(DENIED_CHARS_MAX)));
            self.output.add_denial(denied.raw().to_owned());
        }
        let enough = self.patience.permission(decision.denied.as_ref());
        self.bear(enough);
    }

    fn no_message(&mut self, line: &[u8]) {
        let enough = self.patience.garbage(line);
        self.bear(enough);
    }

    /// What is known of lines that were no messages.
    pub(super) fn first_garbage(&self) -> Option<&str> {
        self.patience.first_garbage()
    }

    /// The process has ended, by itself or because we ended it. While something was waited for, the
    /// first is a failure.
    pub(super) fn ended(&mut self, by_itself: bool) {
        self.close_words();
        if self.step == Step::Over || !by_itself {
            return;
        }
        let garbage = self.first_garbage().map(|line| format!("; it wrote: {line}")).unwrap_or_default();
        let text = format!("the agent ended before it answered {}{garbage}", self.step.awaited());
        let reason = if self.step == Step::Initialize { Reason::InvalidUsage } else { Reason::Crash };
        self.output.report = Report::Failed(Failure { text, reason: Some(reason), ..Failure::default() });
    }
}

/// What to do about a program that speaks something else.
pub(super) const NOT_ACP: &str =
    "check the command: it must speak the Agent Client Protocol on its standard streams";

/// A line of an agent's words, cut.
pub(super) fn quoted(text: &str) -> String {
    SafeText::new(text.trim()).line(QUOTE_CHARS_MAX)
}

/// Whether a capability is there: `true`, or an object.
fn is_yes(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

#[cfg(test)]
mod tests;
