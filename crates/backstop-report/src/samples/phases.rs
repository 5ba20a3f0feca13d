//! One of each notice about a phase.

use super::{Sample, Texts};
use crate::*;
use backstop_core::{Fault, Reason, SafeText};
use std::time::Duration;

fn fault(reason: Reason, t: &Texts) -> Fault {
    let mut fault = Fault::new(reason);
    fault.cause = Some(t.message.clone());
    let facts = &mut fault.facts;
    facts.files = vec![t.file.clone()];
    match reason {
        Reason::TestFailure => {
            facts.failed_count = Some(3);
            facts.failed_tests = vec![t.test.clone(), "refreshToken".into(), "handleExpired".into()];
        }
        Reason::LintError | Reason::TypecheckError => {
            facts.failed_count = Some(2);
            facts.line = Some(12);
            facts.rules = vec![t.test.clone()];
            facts.expected = Some("User".into());
            facts.actual = Some("null".into());
        }
        Reason::Timeout => facts.last_activity = Some(t.test.clone()),
        _ => {}
    }
    fault
}

/// Every notice about a phase.
pub(crate) fn phases(t: &Texts) -> Vec<Sample> {
    let phase = Phase { id: t.id.clone(), title: "Backend API".into() };
    let sample = |name, notice, cause: &SafeText, key: &[&SafeText]| Sample {
        name,
        notice,
        cause: cause.clone(),
        operation: t.id.clone(),
        key: key.iter().copied().cloned().collect(),
    };
    let context = |reason| GuidanceContext {
        check: Some(t.check.clone()),
        fix: (reason == Reason::LintError).then(|| "npm run lint -- --fix".into()),
        ran_for: (reason == Reason::Timeout).then_some(Duration::from_secs(1_800)),
        claimed: (reason == Reason::VerificationMismatch).then(|| "all gates pass".into()),
        found: (reason == Reason::VerificationMismatch).then(|| t.test.clone()),
        remaining: vec![],
    };
    let retry = PhaseRetry {
        phase: phase.clone(),
        attempt: 1,
        of: 2,
        fault: fault(Reason::TestFailure, t),
        context: context(Reason::TestFailure),
    };
    let mut all = vec![sample("phase_retry", phase_retry(&retry), &t.message, &[&t.test, &t.file])];
    for (name, reason, attempt, halts) in [
        ("test_failure", Reason::TestFailure, 1, false),
        ("lint_error", Reason::LintError, 2, false),
        ("typecheck_error", Reason::TypecheckError, 1, false),
        ("phase_timeout", Reason::Timeout, 2, false),
        ("verification_mismatch", Reason::VerificationMismatch, 1, false),
        ("phase_unknown", Reason::Unknown, 1, false),
        ("phase_auth_error", Reason::AuthError, 1, true),
    ] {
        let error = PhaseError {
            phase: phase.clone(),
            attempt,
            of: 2,
            fault: fault(reason, t),
            context: context(reason),
            halts,
            resume: t.command.clone(),
        };
        all.push(sample(name, phase_error(&error), &t.message, &[&t.file, &t.check]));
    }
    all.extend(batches(t));
    all.extend(halts(t, phase));
    all
}

fn batches(t: &Texts) -> Vec<Sample> {
    let of = |id: &SafeText, state| BatchPhase {
        id: id.clone(),
        state,
        attempt: 1,
        failure: (state == BatchState::Failed).then(|| (Reason::TestFailure, t.message.clone())),
    };
    let (b, c) = ("2B".into(), "2C".into());
    let batch = |second, retried: Vec<BatchPhase>| Batch {
        plan: t.plan.clone(),
        phases: vec![of(&t.id, BatchState::Failed), of(&b, second), of(&c, BatchState::Complete)],
        retried,
        commits: true,
        resume: t.command.clone(),
    };
    let sample = |name, notice| Sample {
        name,
        notice,
        cause: t.message.clone(),
        operation: t.id.clone(),
        key: vec![t.plan.clone()],
    };
    let ended = vec![of(&t.id, BatchState::Complete), of(&b, BatchState::Failed)];
    vec![
        sample("batch_partial_failure", batch_partial_failure(&batch(BatchState::Running, vec![]))),
        sample("batch_retry", batch_retry(&batch(BatchState::Complete, vec![]))),
        sample("batch_multiple_failures", batch_multiple_failures(&batch(BatchState::Failed, vec![]))),
        sample("batch_multiple_failures_ended", batch_multiple_failures(&batch(BatchState::Failed, ended))),
    ]
}

fn halts(t: &Texts, phase: Phase) -> Vec<Sample> {
    let sample = |name, notice, cause: &SafeText, operation: &SafeText, key: &[&SafeText]| Sample {
        name,
        notice,
        cause: cause.clone(),
        operation: operation.clone(),
        key: key.iter().copied().cloned().collect(),
    };
    let missing = DependencyMissing {
        phase: Some(phase),
        package: t.package.clone(),
        required_by: "Type checking".into(),
        message: Some(t.absent.clone()),
        install: Some("npm install -D @types/jest".into()),
        resume: t.command.clone(),
    };
    let cycle = CircularDependency {
        plan: t.plan.clone(),
        cycle: vec![(t.id.clone(), "3".into()), ("3".into(), t.id.clone())],
        run: t.command.clone(),
    };
    let range = |phase: &SafeText, first, last| LineRange { phase: phase.clone(), first, last };
    let conflict = FileConflict {
        files: vec![ConflictFile {
            file: t.file.clone(),
            changes: vec![range(&t.id, 10, 25), range(&"2B".into(), 15, 30)],
        }],
        kept: Some("refs/backstop/r-7f3a/2b/1".into()),
        resume: t.command.clone(),
    };
    let plan = PlanInvalid {
        plan: t.plan.clone(),
        line: Some(14),
        column: Some(3),
        problem: t.problem.clone(),
        expected: Some("the id of a phase, or a dash".into()),
        excerpt: Some(t.test.clone()),
        run: t.command.clone(),
    };
    let typed = SafeText::new(t.command.raw().replace("--resume", "--fresh"));
    let fresh = FreshStart {
        command: typed.clone(),
        plan: t.plan.clone(),
        folder: ".backstop/runs/feature-plan".into(),
        first_phase: "0".into(),
        because: Some((Reason::StateInvalid, t.problem.clone())),
        commits: 4,
        resume: t.command.clone(),
    };
    let asked = FreshStart { because: None, commits: 0, ..fresh.clone() };
    vec![
        sample(
            "dependency_missing",
            dependency_missing(&missing),
            &t.message,
            &t.id,
            &[&t.package, &t.command],
        ),
        sample(
            "circular_dependency",
            circular_dependency(&cycle),
            &"wait for each other".into(),
            &t.plan,
            &[&t.id],
        ),
        sample("file_conflict", file_conflict(&conflict), &"changed the same file".into(), &t.id, &[&t.file]),
        sample("plan_invalid", plan_invalid(&plan), &t.problem, &t.plan, &[&t.test]),
        sample("fresh_start", fresh_start(&fresh), &t.problem, &typed, &[]),
        sample("fresh_start_asked", fresh_start(&asked), &SafeText::default(), &typed, &[]),
    ]
}
