//! One of each text that a hook answers.

use super::Texts;
use super::tests::{beginning, is_unsafe, one_spaced};
use crate::*;
use backstop_core::{Fault, Reason, SafeText, Timestamp};
use std::time::Duration;

fn task(t: &Texts, reason: Reason, follow_up: TaskFollowUp) -> TaskError {
    TaskError {
        task: t.id.clone(),
        step: Some(t.test.clone()),
        reason,
        causes: reason.info().causes,
        next_steps: reason.info().next_steps,
        message: t.message.clone(),
        next: t.command.clone(),
        did_you_mean: Some((t.param.0.clone(), t.param.1.clone())),
        commands: vec![TaskCommand { name: t.check.clone(), about: t.file.clone() }],
        docs_url: Some(t.plan.clone()),
        partial: true,
        fallback: Some(t.file.clone()),
        follow_up,
    }
}

fn tasks(t: &Texts) -> Vec<(&'static str, TaskError)> {
    let retry = TaskFollowUp::Retry { after: Duration::from_secs(4), attempt: 2, of: 3 };
    let deferred = TaskFollowUp::Deferred { until: "the disk has space".into() };
    vec![
        ("task_user_error", task(t, Reason::InvalidUsage, TaskFollowUp::Over)),
        ("task_temporary_issue", task(t, Reason::NetworkTransient, retry)),
        ("task_unable", task(t, Reason::NetworkPermanent, TaskFollowUp::Over)),
        ("task_deferred", task(t, Reason::DiskFull, deferred)),
    ]
}

fn fault(t: &Texts) -> Fault {
    let mut fault = Fault::new(Reason::TestFailure);
    fault.cause = Some(t.message.clone());
    fault.facts.failed_tests = vec![t.test.clone()];
    fault
}

fn failure(t: &Texts, times: u32) -> String {
    let (tool, fault) = (t.tool.clone(), fault(t));
    agent_failure(&AgentFailure {
        tool: &tool,
        command: Some(&t.check),
        fault: &fault,
        advice: None,
        changes: false,
        only_reads: false,
        times,
        times_max: 3,
    })
}

fn stop_blocked(t: &Texts) -> String {
    let gate = FailedGate {
        gate: t.id.clone(),
        check: t.check.clone(),
        fix: Some(t.command.clone()),
        fault: fault(t),
        output: t.message.clone(),
    };
    agent_stop_blocked(&[gate.clone(), gate])
}

/// Every text, for snapshots.
pub(super) fn hook_texts(t: &Texts) -> Vec<(&'static str, String)> {
    let mut t = t.clone();
    t.plan = "https://example.invalid/help".into();
    let mut all: Vec<_> = tasks(&t).into_iter().map(|(name, given)| (name, task_error(&given))).collect();
    all.push(("agent_failure", failure(&t, 1)));
    all.push(("agent_failure_again", failure(&t, 3)));
    all.push(("agent_stop_blocked", stop_blocked(&t)));
    let until = Timestamp::from_millis(1_755_780_000_000);
    let why = SafeText::new("the server asks to wait");
    all.push(("agent_denied", agent_denied("anthropic", until, Duration::from_secs(90), &why)));
    all.push(("agent_frozen", agent_frozen(Reason::DataLoss, &t.problem)));
    all
}

/// Checks that each text names what it has to, and that text from outside has no meaning in
/// Markdown.
pub(super) fn check_hooks(t: &Texts) {
    for (name, given) in tasks(t) {
        let text = task_error(&given);
        assert!(!text.chars().any(is_unsafe), "{name}: {text:?}");
        let shown = one_spaced(&text);
        let reason = given.reason;
        assert!(shown.contains(reason.code()) && shown.contains(reason.class().name()), "{name}: {shown}");
        let mut wanted = vec![&t.message, &t.id, &t.test];
        if !matches!(given.follow_up, TaskFollowUp::Retry { .. }) {
            wanted.push(&t.command);
        } else {
            assert!(shown.contains("No action needed from you."), "{name}: {shown}");
        }
        for wanted in wanted {
            assert!(shown.contains(&beginning(wanted)), "{name}: no {wanted:?} in {shown}");
        }
        let bare = outside_code(&text);
        for bad in ["<!", "](http://b", "![", "@all", "</"] {
            assert!(!bare.contains(bad), "{name}: {bad} in {text}");
        }
    }
    let frozen = agent_frozen(Reason::DataLoss, &t.problem);
    assert!(!frozen.chars().any(is_unsafe) && frozen.contains("data_loss"), "{frozen:?}");
    assert!(one_spaced(&frozen).contains(&beginning(&t.problem)), "{frozen}");
    for text in [failure(t, 1), failure(t, 3), stop_blocked(t)] {
        assert!(!text.chars().any(is_unsafe), "{text:?}");
        assert!(text.contains("test_failure") && text.contains("permanent") && text.contains("Advice: "));
    }
    assert!(failure(t, 3).contains("Stop repeating it") && !failure(t, 2).contains("Stop repeating it"));
}

/// The text without its code spans, whose content has no meaning.
fn outside_code(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('`') {
        out.push_str(&rest[..at]);
        let fence = rest[at..].chars().take_while(|c| *c == '`').count();
        let (ticks, after) = rest[at..].split_at(fence);
        let mut from = 0;
        let end = loop {
            let Some(found) = after[from..].find(ticks).map(|found| from + found) else { return out };
            let run = after[found..].chars().take_while(|c| *c == '`').count();
            if run == fence {
                break found + fence;
            }
            from = found + run;
        };
        rest = &after[end..];
    }
    out + rest
}
