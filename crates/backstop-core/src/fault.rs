//! A fault: a classified signal with its evidence and the facts found in it.

use crate::{Class, Confidence, MachineState, Reason, Retry, SafeText, Severity, Timestamp};
use serde::{Deserialize, Serialize};

/// The name of the learned back-off in the evidence of its guesses.
pub const LEARNED: &str = "learned";

/// A piece of text that a rule matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The rule, such as `jest.summary`.
    pub rule: String,
    /// The line, counted from 1, where the evidence is text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u64>,
    /// The line itself, or the circumstance: `exit 127`.
    pub text: SafeText,
    /// The stream it was on, where there are several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stream: Option<String>,
}

/// An uncaught exception or panic.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exception {
    /// The language of the trace: `python`, `javascript`, `java`, `go`, `rust`, `ruby`.
    pub language: String,
    /// Its type: `KeyError`, `java.lang.IllegalStateException`.
    #[serde(rename = "type")]
    pub kind: SafeText,
    /// Its message.
    pub message: SafeText,
    /// The file of the innermost user frame.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<SafeText>,
    /// The line of the innermost user frame.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u64>,
    /// The function of the innermost user frame.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub function: Option<SafeText>,
    /// The root of the cause chain, where there is one: `Type: message`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub root: Option<SafeText>,
}

/// The facts found in a signal. Every list is bounded by the classifier.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Failed tests, as the runner names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_tests: Vec<SafeText>,
    /// The number of failures, as the tool counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_count: Option<u64>,
    /// Files with errors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<SafeText>,
    /// The line number in the first of the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Rules or error codes of the tool that reported them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<SafeText>,
    /// The expected value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<SafeText>,
    /// The actual value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<SafeText>,
    /// The package, module, header or tool that is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<SafeText>,
    /// The tool whose output was recognised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The provider of the service that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<SafeText>,
    /// The model that a rate limit is of, where it is that of one model: `opus`, `gpt-4o`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<SafeText>,
    /// The credential that was refused: the variable that holds it, or a login by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<SafeText>,
    /// How the credential or the plan is renewed: an address, or a command in backticks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewal: Option<SafeText>,
    /// The HTTP status of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The wait that the server asks for, in seconds. None where its end has come already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<f64>,
    /// The time at which the wait ends that somebody asks for: a server, a program, an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
    /// The window of time that the limit counts in, where the text names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<crate::wait::LimitWindow>,
    /// Whether the wait was a sentence and not a header or a field.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wait_in_words: bool,
    /// Whether the provider is known by its own client: the program, the address that was called,
    /// or a structured answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub from_client: bool,
    /// Whether a retry makes sense, as the server says or the failure shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub should_retry: Option<bool>,
    /// The signal that ended the process, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The last line of output before a time limit ended the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_activity: Option<SafeText>,
    /// The uncaught exception.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exception: Option<Exception>,
    /// Whether it may have changed something outside the project before it failed, so that nobody
    /// is advised to repeat it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_have_changed: bool,
}

/// A classified signal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// The reason.
    pub reason: Reason,
    /// The class of the reason.
    pub class: Class,
    /// The severity.
    pub severity: Severity,
    /// How the operation may be retried.
    pub retry: Retry,
    /// Whether an unchanged retry is likely to succeed.
    pub retryable: bool,
    /// How sure the classifier is of the reason.
    #[serde(default, skip_serializing_if = "Confidence::is_certain")]
    pub confidence: Confidence,
    /// The line of the output that states the cause, verbatim.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause: Option<SafeText>,
    /// The next step for a person, in one line.
    pub suggested_action: SafeText,
    /// The facts found in the signal.
    pub facts: Facts,
    /// The matches that decided, strongest first.
    pub evidence: Vec<Evidence>,
    /// The state of the machine at the time of the failure, if it was measured.
    #[serde(rename = "host", skip_serializing_if = "Option::is_none", default)]
    pub machine: Option<Box<MachineState>>,
}

impl Fault {
    /// A fault with a reason and nothing else.
    pub fn new(reason: Reason) -> Self {
        Self {
            reason,
            class: reason.class(),
            severity: reason.severity(),
            retry: reason.retry(),
            retryable: reason.retryable(),
            confidence: Confidence::CERTAIN,
            cause: None,
            suggested_action: SafeText::new(reason.first_step()),
            facts: Facts::default(),
            evidence: Vec::new(),
            machine: None,
        }
    }

    /// The fault without a guess of the learned back-off: what nobody knows. For those who have
    /// evidence of their own for that case.
    #[must_use]
    pub fn without_guess(self) -> Self {
        let is_learned = |evidence: &Evidence| evidence.rule == LEARNED;
        if !self.evidence.iter().any(is_learned) {
            return self;
        }
        let mut fault = self.renamed(Reason::Unknown);
        fault.evidence.retain(|evidence| !is_learned(evidence));
        fault
    }

    /// Sets how sure the reason is. A guess is never a reason to try the same again.
    pub fn set_confidence(&mut self, confidence: Confidence) {
        self.confidence = confidence;
        if confidence.is_low() {
            self.forbid_retry();
        }
    }

    /// Makes of a fault that would be tried again unchanged one that is not.
    pub fn forbid_retry(&mut self) {
        if self.retryable || self.retry == Retry::Plain {
            self.retryable = false;
            self.retry = Retry::No;
            self.facts.should_retry = Some(false);
        }
    }

    /// The severity to report when this fault ended a run or a task: `medium` becomes `high`, the
    /// others stay.
    pub fn ending_severity(&self) -> Severity {
        if self.severity == Severity::Medium { Severity::High } else { self.severity }
    }
}
