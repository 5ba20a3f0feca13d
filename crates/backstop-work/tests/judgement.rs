//! What an agent claims, beside what the gates found: every row.
#![allow(clippy::unwrap_used)] // Tests.

use backstop_core::{Evidence, Fault, Reason, SafeText};
use backstop_work::gate::{Checked, Claim, Judgement, judge};
use proptest::prelude::*;
use std::time::Duration;

fn checked(gate: &str, reason: Option<Reason>) -> Checked {
    let fault = reason.map(|reason| {
        let mut fault = Fault::new(reason);
        fault.cause = Some(SafeText::new(format!("{gate} says so")));
        fault.facts.files = vec![SafeText::new(format!("src/{gate}.rs"))];
        fault.facts.failed_tests = vec![SafeText::new(format!("{gate}::a"))];
        fault.evidence = vec![Evidence {
            rule: "some.rule".into(),
            line: Some(1),
            text: SafeText::new("a line"),
            stream: None,
        }];
        fault
    });
    Checked {
        gate: gate.to_owned(),
        passed: fault.is_none(),
        fault,
        failures: None,
        known_failures: 0,
        flaky: Vec::new(),
        reruns: 0,
        duration: Duration::ZERO,
        exit: Some(0),
        tail: Vec::new(),
        check: format!("check {gate}"),
        fix: Some(format!("fix {gate}")),
    }
}

fn outcome(judgement: &Judgement) -> Option<Reason> {
    match judgement {
        Judgement::Complete => None,
        Judgement::Failed(fault) => Some(fault.reason),
    }
}

#[test]
fn every_row_of_the_table() {
    use Claim::{Complete, Failed};
    use Reason::{
        CompileError, DependencyMissing, DiskFull, Interrupted, LintError, NetworkTransient, TaskIncomplete,
        TestFailure, Timeout, VerificationMismatch,
    };
    let pass = || checked("lint", None);
    let fail = |reason| checked("test", Some(reason));
    let (yes, no) = (Some(true), Some(false));
    type Row = (Option<Claim>, Vec<Checked>, Option<bool>, Option<u32>, Option<Reason>);
    let rows: Vec<Row> = vec![
        (Some(Complete), vec![pass()], yes, Some(0), None),
        (Some(Complete), vec![pass()], no, None, None),
        (Some(Complete), vec![], yes, Some(0), None),
        (Some(Complete), vec![pass()], yes, Some(1), Some(TaskIncomplete)),
        (Some(Complete), vec![pass(), fail(TestFailure)], yes, Some(0), Some(VerificationMismatch)),
        (Some(Complete), vec![fail(CompileError)], yes, Some(0), Some(VerificationMismatch)),
        (
            Some(Complete),
            vec![fail(TestFailure), fail(DependencyMissing)],
            yes,
            Some(0),
            Some(DependencyMissing),
        ),
        (
            Some(Complete),
            vec![fail(TestFailure), fail(NetworkTransient)],
            yes,
            Some(0),
            Some(NetworkTransient),
        ),
        (Some(Complete), vec![fail(DiskFull)], yes, Some(0), Some(DiskFull)),
        (Some(Complete), vec![fail(Timeout)], yes, Some(0), Some(Timeout)),
        (Some(Complete), vec![fail(Interrupted)], yes, Some(0), Some(Interrupted)),
        (
            Some(Complete),
            vec![fail(Timeout), fail(Interrupted), fail(DependencyMissing)],
            yes,
            None,
            Some(DependencyMissing),
        ),
        (None, vec![pass()], no, None, None),
        (None, vec![], None, Some(3), None),
        (None, vec![pass(), fail(LintError), fail(TestFailure)], yes, None, Some(LintError)),
        (None, vec![fail(LintError), fail(DependencyMissing)], yes, None, Some(DependencyMissing)),
        (Some(Failed), vec![fail(TestFailure)], yes, Some(0), Some(TestFailure)),
        (Some(Failed), vec![pass()], yes, Some(0), None),
        (Some(Failed), vec![pass()], yes, Some(2), Some(TaskIncomplete)),
        (Some(Failed), vec![pass()], yes, None, Some(TaskIncomplete)),
        (Some(Failed), vec![pass()], no, Some(0), Some(TaskIncomplete)),
        (Some(Failed), vec![pass()], None, Some(0), Some(TaskIncomplete)),
        (Some(Failed), vec![], yes, Some(0), Some(TaskIncomplete)),
    ];
    for (n, (claim, checks, changed, left, wanted)) in rows.into_iter().enumerate() {
        let judgement = judge(claim, &checks, changed, left);
        assert_eq!(outcome(&judgement), wanted, "row {n}: {judgement:?}");
    }
}

#[test]
fn a_mismatch_says_which_gate_found_what_and_keeps_its_facts() {
    let checks = [
        checked("lint", None),
        checked("test", Some(Reason::TestFailure)),
        checked("format", Some(Reason::FormatError)),
    ];
    let Judgement::Failed(fault) = judge(Some(Claim::Complete), &checks, Some(true), Some(0)) else {
        panic!("it failed")
    };
    assert_eq!(
        fault.cause.unwrap().raw(),
        "claimed complete, but gate `test` fails: test_failure: test says so; and so does format"
    );
    assert_eq!(fault.suggested_action.raw(), "run `check test`; much of it is put right by `fix test`");
    assert_eq!(
        fault.facts.failed_tests.iter().map(SafeText::raw).collect::<Vec<_>>(),
        ["test::a", "format::a"]
    );
    assert_eq!(fault.facts.files.len(), 2);
    let rules: Vec<&str> = fault.evidence.iter().map(|evidence| evidence.rule.as_str()).collect();
    assert_eq!(rules, ["gate.test", "gate.format", "some.rule"]);
    assert_eq!(fault.evidence[0].text.raw(), "test_failure: test says so");
}

proptest! {
    #[test]
    fn an_agent_that_changed_nothing_is_never_better_than_it_says(
        gates in prop::collection::vec(any::<bool>(), 0..4), left in prop::option::of(0u32..3), known in any::<bool>(),
    ) {
        let checks: Vec<Checked> =
            gates.iter().map(|pass| checked("g", (!pass).then_some(Reason::LintError))).collect();
        let changed = known.then_some(false);
        prop_assert_ne!(judge(Some(Claim::Failed), &checks, changed, left), Judgement::Complete);
    }

    #[test]
    fn a_failed_gate_is_never_complete(
        index in 0usize..Reason::all().count(), claim in prop::option::of(any::<bool>()),
        changed in prop::option::of(any::<bool>()), left in prop::option::of(0u32..3),
    ) {
        let reason = Reason::all().nth(index).unwrap();
        let claim = claim.map(|complete| if complete { Claim::Complete } else { Claim::Failed });
        let checks = [checked("a", None), checked("b", Some(reason)), checked("c", None)];
        prop_assert_ne!(judge(claim, &checks, changed, left), Judgement::Complete);
    }
}
