//! What advice never says: to repeat what may have changed something, and anything that somebody
//! outside has written.

#[path = "support/injections.rs"]
mod injections;

use backstop_core::{
    Action, Decision, Exception, Facts, Fault, MachineState, Reason, RunId, SafeText, Timestamp,
    advises_repeating,
};
use backstop_report::{
    AgentFailure, Alert, DiagnosedError, Diagnosis, FailedGate, GuidanceContext, Style, TaskError,
    TaskFollowUp, View, agent_denied, agent_failure, agent_frozen, agent_stop_blocked, alert, gave_up,
    retry_guidance, task_error, user_actions,
};
use injections::{SENTENCES, WRAPPINGS, holds, outside_fences};
use std::time::Duration;

fn failure<'f>(tool: &'f SafeText, command: &'f SafeText, fault: &'f Fault) -> AgentFailure<'f> {
    AgentFailure {
        tool,
        command: Some(command),
        fault,
        advice: None,
        only_reads: false,
        changes: true,
        times: 1,
        times_max: 3,
    }
}

fn task(fault: &Fault, message: &SafeText) -> TaskError {
    TaskError {
        task: "t-1".into(),
        step: None,
        reason: fault.reason,
        causes: fault.causes(),
        next_steps: fault.next_steps(),
        message: message.clone(),
        next: fault.suggested_action.clone(),
        did_you_mean: None,
        commands: Vec::new(),
        docs_url: None,
        partial: false,
        fallback: None,
        follow_up: TaskFollowUp::Over,
    }
}

/// Everything that a person or an agent reads about the end of something that must not be repeated.
fn texts_about(fault: &Fault) -> Vec<(&'static str, String)> {
    let (tool, command) = (SafeText::new("Bash"), SafeText::new("./charge-customers.sh"));
    let run: RunId = "r-1825".parse().expect("a run's id");
    let at = Timestamp::default();
    let why = "it needs confirmation before it is retried".to_owned();
    let decision = Decision { action: Action::Surface, why };
    let error = DiagnosedError {
        operation: command.clone(),
        attempt: 1,
        at,
        fault: fault.clone(),
        decision: Some(decision.clone()),
        reported: None,
        context: Default::default(),
    };
    let diagnosis =
        Diagnosis { run, surface: "exec".into(), errors: vec![error], now: MachineState::default() };
    vec![
        ("hook agent", agent_failure(&failure(&tool, &command, fault))),
        ("hook on-error", task_error(&task(fault, &"it failed".into()))),
        ("exec", gave_up(fault, &decision, 1, Duration::ZERO, Some(run), None, at, Style::PLAIN)),
        ("explain", backstop_report::fault(fault, Style::PLAIN)),
        ("diagnose", diagnosis.text(Style::PLAIN)),
        ("notification", alert(&Alert::about(fault, at)).markdown()),
        ("halt", user_actions(fault).join("\n")),
    ]
}

#[test]
fn nobody_is_advised_to_repeat_what_may_have_changed_something() {
    let suggestions = ["", "wait 5 s, as the server asks, then try again", "install x, then run it again"];
    for reason in Reason::all() {
        for suggestion in suggestions {
            let mut fault = Fault::new(reason);
            if !suggestion.is_empty() {
                fault.suggested_action = suggestion.into();
            }
            fault.cause = Some("it failed".into());
            for (surface, text) in texts_about(&fault.may_have_changed()) {
                assert!(!advises_repeating(&text), "{surface}, {reason}: {text}");
            }
        }
    }
}

#[test]
fn a_check_may_be_run_again_and_a_reader_may_try_again() {
    let (tool, command) = (SafeText::new("Bash"), SafeText::new("npm test"));
    let tests = Fault::new(Reason::TestFailure);
    let given = AgentFailure { changes: false, ..failure(&tool, &command, &tests) };
    assert!(agent_failure(&given).contains("Run `npm test` to see what is left"));
    let network = Fault::new(Reason::NetworkTransient);
    let read = AgentFailure { only_reads: true, changes: false, ..failure(&tool, &command, &network) };
    assert!(advises_repeating(&agent_failure(&read)));
}

/// A text without its code spans.
fn outside_spans(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        out.push_str(&rest[..at]);
        let ticks: String = rest[at..].chars().take_while(|c| *c == '`').collect();
        let after = &rest[at + ticks.len()..];
        let Some(end) = after.find(&ticks) else { break };
        rest = &after[end + ticks.len()..];
    }
    out + rest
}

fn facts_of(text: &SafeText) -> Facts {
    let some = || Some(text.clone());
    Facts {
        failed_tests: vec![text.clone(), "a::b".into()],
        files: vec![text.clone(), "src/a.rs".into()],
        rules: vec![text.clone()],
        expected: some(),
        actual: some(),
        missing: some(),
        provider: some(),
        credential: some(),
        renewal: some(),
        last_activity: some(),
        exception: Some(Exception {
            kind: text.clone(),
            message: text.clone(),
            file: some(),
            function: some(),
            root: some(),
            ..Exception::default()
        }),
        ..Facts::default()
    }
}

#[test]
fn no_sentence_from_outside_stands_outside_the_fence() {
    let mut injections = 0;
    let command = SafeText::new("npm test");
    for sentence in SENTENCES {
        for wrapping in WRAPPINGS {
            injections += 1;
            let text = SafeText::new(wrapping.replace("{}", sentence));
            let context = GuidanceContext {
                claimed: Some(text.clone()),
                found: Some(text.clone()),
                remaining: vec![text.clone()],
                // Commands are those of the settings, or the agent's own.
                check: Some(command.clone()),
                fix: Some(command.clone()),
                ran_for: None,
            };
            let left = Duration::from_secs(60);
            let mut texts = vec![
                agent_denied("anthropic", Timestamp::default(), left, &text),
                agent_frozen(Reason::DataLoss, &text),
            ];
            for reason in Reason::all() {
                let mut fault = Fault::new(reason);
                fault.facts = facts_of(&text);
                fault.cause = Some(text.clone());
                let gate = FailedGate {
                    gate: "test".into(),
                    check: command.clone(),
                    fix: Some(command.clone()),
                    fault: fault.clone(),
                    output: text.clone(),
                };
                texts.push(retry_guidance(reason, &fault.facts, &context));
                texts.push(agent_failure(&failure(&text, &command, &fault)));
                texts.push(agent_stop_blocked(&[gate]));
                // In the text for a person, a message is quoted as a span.
                let told = outside_spans(&task_error(&task(&fault, &text)));
                assert!(!holds(&told, sentence), "{reason}: {told}");
            }
            for given in texts {
                assert!(!holds(&outside_fences(&given), sentence), "{text:?}: {given}");
            }
        }
    }
    assert!(injections >= 100, "{injections}");
}
