//! A run that fails, is retried and ends, through every rendering.

use super::*;
use crate::samples::tests::is_unsafe;
use crate::{Style, to_json};
use backstop_core::{
    Action, Decision, EVENT_SCHEMA, Event, EventId, EventKind, Evidence, Fault, Outcome, Reason, RunId,
    SafeText, Timestamp,
};
use proptest::prelude::*;
use std::time::Duration;

const START_MS: i64 = 1_760_000_000_000;

fn events(kinds: Vec<(i64, EventKind)>) -> Vec<Event> {
    let run: RunId = "r-7f3a".parse().unwrap();
    let event = |(n, (at, kind)): (usize, (i64, EventKind))| {
        let seq = n as u64 + 1;
        Event {
            schema: EVENT_SCHEMA,
            id: EventId { run, seq },
            run,
            seq,
            at: Timestamp::from_millis(START_MS + at),
            session: None,
            surface: "exec".into(),
            caller: Some("figma-probe".into()),
            kind,
        }
    };
    kinds.into_iter().enumerate().map(event).collect()
}

fn fault(text: &SafeText) -> Box<Fault> {
    let mut fault = Fault::new(Reason::NetworkTransient);
    fault.cause = Some(text.clone());
    fault.evidence.push(Evidence {
        rule: "npm.econnreset".into(),
        line: Some(2),
        text: text.clone(),
        stream: None,
    });
    fault.facts.provider = Some("packages.example".into());
    Box::new(fault)
}

fn kinds(operation: &SafeText, text: &SafeText, outcome: Outcome) -> Vec<(i64, EventKind)> {
    let operation = || operation.clone();
    let finished = |attempt, success, duration_ms| EventKind::AttemptFinished {
        operation: operation(),
        attempt,
        success,
        duration_ms,
        exit: Some(i64::from(!success)),
        signal: None,
        output: (!success).then(|| SafeText::new(format!("npm error network\n  {}\n", text.raw()))),
        delivery: None,
    };
    let decided = Decision {
        action: Action::Retry { after: Duration::from_millis(1_100), attempt: 2, of: 4 },
        why: "network_transient has 3 retries left".into(),
    };
    let end = EventKind::RunEnded {
        outcome,
        reason: (outcome != Outcome::Done).then_some(Reason::NetworkPermanent),
        attempts: 2,
        duration_ms: 41_000,
        exit: Some(i32::from(outcome != Outcome::Done)),
        next: None,
    };
    vec![
        (
            0,
            EventKind::RunStarted {
                operation: operation(),
                folder: Some("/srv/shop".into()),
                profile: Some("command".into()),
                parent: None,
            },
        ),
        (0, EventKind::AttemptStarted { operation: operation(), attempt: 1 }),
        (1_200, finished(1, false, 1_200)),
        (1_200, EventKind::ErrorClassified { operation: operation(), attempt: 1, fault: fault(text) }),
        (
            1_200,
            EventKind::DecisionMade { operation: None, attempt: 1, decision: decided, reclassified: None },
        ),
        (
            1_300,
            EventKind::Override {
                by: "ana".into(),
                what: text.clone(),
                rationale: "the release waits".into(),
            },
        ),
        (2_300, EventKind::AttemptStarted { operation: operation(), attempt: 2 }),
        (41_000, finished(2, outcome == Outcome::Done, 38_700)),
        (
            41_000,
            EventKind::RecoveryAttempted {
                operation: None,
                strategy: "retry".into(),
                success: outcome == Outcome::Done,
                attempt: 2,
                detail: None,
            },
        ),
        (41_000, end),
    ]
}

fn story_of(kinds: Vec<(i64, EventKind)>) -> RunStory {
    RunStory::from_events(&events(kinds)).unwrap()
}

#[test]
fn the_story_of_a_recovery() {
    let told = story_of(kinds(&"npm ci".into(), &"npm error code ECONNRESET".into(), Outcome::Done));
    let json = serde_json::to_string_pretty(&story_json(&told)).unwrap();
    let shown = format!(
        "{}\n---- markdown\n{}\n---- json\n{json}",
        story(&told, Style::PLAIN),
        story_markdown(&told, false)
    );
    insta::assert_snapshot!(shown);
}

#[test]
fn the_story_of_a_failure_and_of_a_lost_run() {
    let all = kinds(&"npm ci".into(), &"npm error code ECONNRESET".into(), Outcome::Failed);
    let lost = EventKind::AttemptLost {
        operation: "npm ci".into(),
        attempt: 2,
        why: "the process is gone".into(),
        delivery: None,
    };
    let mut cut = all[..7].to_vec();
    cut.push((90_000, lost));
    let shown =
        format!("{}\n----\n\n{}", story(&story_of(all), Style::PLAIN), story(&story_of(cut), Style::PLAIN));
    insta::assert_snapshot!(shown);
}

#[test]
fn a_halted_run_is_resumed() {
    let mut all = kinds(&"docs/plan.md".into(), &"x".into(), Outcome::Done);
    all.pop();
    let resume = "backstop run docs/plan.md --resume".to_owned();
    all.push((50_000, EventKind::RunHalted { reason: Reason::TestFailure, resume }));
    let halted = story(&story_of(all.clone()), Style::PLAIN);
    assert!(halted.contains("halted: test_failure (permanent), after 2 attempts and 50 s"), "{halted}");
    assert!(halted.ends_with("next: `backstop run docs/plan.md --resume`\n"), "{halted}");
    all.push((60_000, EventKind::RunResumed {}));
    assert!(story_of(all).ending.is_none());
    assert!(RunStory::from_events(&[]).is_none());
}

#[test]
fn every_event_has_a_line_and_some_are_emitted() {
    let mut all = kinds(&"npm ci".into(), &"npm error \"code\" ECONNRESET".into(), Outcome::Failed);
    let name = |text: &str| text.parse().unwrap();
    let op = || SafeText::from("2A");
    all.extend(
        [
            EventKind::RunHalted { reason: Reason::AuthError, resume: "backstop run p.md --resume".into() },
            EventKind::RunResumed {},
            EventKind::AttemptLost {
                operation: op(),
                attempt: 1,
                why: "the worker is gone".into(),
                delivery: None,
            },
            EventKind::GuardUpdated {
                provider: name("openai"),
                until: Some(Timestamp::from_millis(START_MS)),
            },
            EventKind::GuardWaited { provider: name("openai"), waited_ms: 30_000 },
            EventKind::BudgetConsumed { budget: name("fix"), units: 1, remaining: 4 },
            EventKind::BudgetRefunded { budget: name("fix"), units: 1, remaining: 5 },
            EventKind::BudgetExhausted { budget: name("fix") },
            EventKind::GateFinished {
                gate: "lint".into(),
                passed: false,
                operation: Some("2a".into()),
                attempt: 1,
                duration_ms: 1200,
                reason: Some(Reason::LintError),
                flaky: Vec::new(),
                known_failures: 0,
            },
            EventKind::IntegrationStarted { operation: op(), attempt: 1, onto: None },
            EventKind::IntegrationFinished { operation: op(), tip: "3f2a".into() },
            EventKind::IntegrationConflicted { operation: op(), files: vec!["a.rs".into()], attempt: 1 },
            EventKind::CommitMade { operation: op(), sha: "3f2a".into(), subject: None },
            EventKind::StateEntered {
                operation: None,
                state: "PLAN".into(),
                error_type: None,
                context: None,
            },
            EventKind::StateEntered {
                operation: None,
                state: "ERROR".into(),
                error_type: Some("schema_invalid".into()),
                context: None,
            },
            EventKind::Notified { sink: "slack".into() },
            EventKind::Deferred { operation: op(), until: "the disk has space".into() },
        ]
        .map(|kind| (42_000, kind)),
    );
    let all = events(all);
    let lines: Vec<String> = all.iter().map(|event| event_line(event, Style::PLAIN)).collect();
    let emits: Vec<String> = all.iter().filter_map(event_emit).collect();
    let gdd: Vec<String> =
        all.iter().filter_map(event_gdd).map(|v| serde_json::to_string_pretty(&v).unwrap()).collect();
    insta::assert_snapshot!(format!("{}\n\n{}\n\n{}", lines.join("\n"), emits.join("\n"), gdd.join("\n")));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn nothing_from_outside_acts(operation in any::<String>(), text in any::<String>(), escape in any::<bool>()) {
        let text = SafeText::new(if escape { format!("{text}\x1b]0;\x07\u{202e}```") } else { text });
        let all = events(kinds(&operation.into(), &text, Outcome::Failed));
        let told = RunStory::from_events(&all).unwrap();
        let json = to_json(&story_json(&told));
        prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
        for shown in [story(&told, Style::PLAIN), story_markdown(&told, false), json] {
            prop_assert!(!shown.chars().any(is_unsafe), "{:?}", shown);
        }
        for event in &all {
            let line = event_line(event, Style::PLAIN);
            let emit = event_emit(event).unwrap_or_default();
            prop_assert!(!line.chars().chain(emit.chars()).any(|c| is_unsafe(c) || c == '\n'));
        }
    }
}

#[test]
fn a_decision_to_confirm_names_the_command_where_there_is_one() {
    let text = |command: &str| {
        let decision = Decision { action: Action::Confirm { command: command.into() }, why: String::new() };
        decision_words(&decision, date).terminal(Style::PLAIN)
    };
    assert_eq!(text(""), "needs confirmation before it is retried");
    let command = "backstop exec --confirm -- ./deploy";
    assert_eq!(text(command), format!("needs confirmation before it is retried: `{command}`"));
}
