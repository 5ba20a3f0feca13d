//! What an agent claims, beside what the gates found.
//!
//! | claim | gates | verdict |
//! |---|---|---|
//! | any | one lacks its tool | `dependency_missing` |
//! | any | one was stopped | `interrupted` |
//! | any | one failed by the world's doing | that fault |
//! | complete | one failed | `verification_mismatch`, with the gate's findings |
//! | failed, or none (a command) | one failed | the gate's own fault |
//! | complete | all passed | complete; `task_incomplete` where tasks are left |
//! | failed | all passed, at least one | complete only if the tree changed and no task is left; else `task_incomplete` |
//! | failed | none was run | `task_incomplete` |
//! | none | all passed | complete |
//!
//! It must not run anything or look anything up.

use super::{Checked, Claim};
use backstop_core::{Evidence, Fault, Reason, SafeText};

/// How many names of one kind are put together from several gates.
const NAMES_MAX: usize = 100;
/// How much of a gate's cause is said in one line.
const CAUSE_CHARS_MAX: usize = 200;

/// Whether the work is done.
#[derive(Debug, Clone, PartialEq)]
pub enum Judgement {
    /// It is.
    Complete,
    /// It is not, and why.
    Failed(Box<Fault>),
}

/// What a gate found that is not the work's doing, and that the work cannot cure.
fn is_the_worlds(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::RateLimited
            | Reason::QuotaExhausted
            | Reason::NetworkTransient
            | Reason::NetworkPermanent
            | Reason::ServiceDown
            | Reason::AuthError
            | Reason::ResourceContention
            | Reason::ResourceExhausted
            | Reason::DiskFull
            | Reason::OutOfMemory
            | Reason::Timeout
    )
}

/// Whether the work is done. `claim` is nothing for a command, which claims nothing. `tree_changed`
/// and `tasks_left` are nothing where nobody knows; what nobody knows does not speak for an agent
/// that says it failed.
pub fn judge(
    claim: Option<Claim>,
    checks: &[Checked],
    tree_changed: Option<bool>,
    tasks_left: Option<u32>,
) -> Judgement {
    let failed: Vec<(&Checked, Fault)> =
        checks.iter().filter(|checked| !checked.passed).map(|checked| (checked, fault_of(checked))).collect();
    let ranks: [fn(Reason) -> bool; 3] =
        [|reason| reason == Reason::DependencyMissing, |reason| reason == Reason::Interrupted, is_the_worlds];
    for wins in ranks {
        if let Some((_, fault)) = failed.iter().find(|(_, fault)| wins(fault.reason)) {
            return Judgement::Failed(Box::new(fault.clone()));
        }
    }
    if let Some((_, fault)) = failed.first() {
        let mismatch = claim == Some(Claim::Complete);
        return Judgement::Failed(Box::new(if mismatch { mismatched(&failed) } else { fault.clone() }));
    }
    let left = tasks_left.unwrap_or(0);
    match claim {
        None => Judgement::Complete,
        Some(Claim::Complete) if left == 0 => Judgement::Complete,
        Some(Claim::Complete) => incomplete(format!("claimed complete, but {} left", counted(left)), left),
        Some(Claim::Failed) if checks.is_empty() => {
            incomplete("claimed failed, and there was no gate to say otherwise".to_owned(), left)
        }
        Some(Claim::Failed) => match (tree_changed, tasks_left) {
            (Some(true), Some(0)) => Judgement::Complete,
            (Some(true), Some(left)) => {
                incomplete(format!("claimed failed: all gates pass, but {} left", counted(left)), left)
            }
            (Some(true), None) => incomplete(
                "claimed failed: all gates pass, but nobody knows which tasks are left".to_owned(),
                0,
            ),
            (Some(false), _) => incomplete(
                "claimed failed, and nothing was changed: all gates pass as they did before".to_owned(),
                left,
            ),
            (None, _) => incomplete(
                "claimed failed: all gates pass, but nobody knows whether anything was changed".to_owned(),
                left,
            ),
        },
    }
}

fn fault_of(checked: &Checked) -> Fault {
    checked.fault.clone().unwrap_or_else(|| Fault::new(Reason::Unknown))
}

fn counted(left: u32) -> String {
    if left == 1 { "1 task is".to_owned() } else { format!("{left} tasks are") }
}

fn incomplete(cause: String, left: u32) -> Judgement {
    let mut fault = Fault::new(Reason::TaskIncomplete);
    fault.cause = Some(SafeText::new(cause));
    fault.facts.failed_count = (left > 0).then_some(u64::from(left));
    Judgement::Failed(Box::new(fault))
}

/// Claimed complete, and a gate fails: what was claimed, and what was found.
fn mismatched(failed: &[(&Checked, Fault)]) -> Fault {
    let mut fault = Fault::new(Reason::VerificationMismatch);
    let Some((first, finding)) = failed.first() else { return fault };
    let mut said = format!("claimed complete, but gate `{}` fails: {}", first.gate, finding.reason.code());
    if let Some(cause) = &finding.cause {
        said.push_str(": ");
        said.extend(cause.raw().trim().chars().take(CAUSE_CHARS_MAX));
    }
    let others: Vec<&str> = failed.iter().skip(1).map(|(checked, _)| checked.gate.as_str()).collect();
    if !others.is_empty() {
        said.push_str(&format!("; and so does {}", others.join(", ")));
    }
    fault.cause = Some(SafeText::new(said));
    fault.suggested_action = SafeText::new(match &first.fix {
        Some(fix) => format!("run `{}`; much of it is put right by `{fix}`", first.check),
        None => format!("run `{}` and put right what it finds", first.check),
    });
    fault.facts = finding.facts.clone();
    for (_, more) in failed.iter().skip(1) {
        add(&mut fault.facts.files, &more.facts.files);
        add(&mut fault.facts.failed_tests, &more.facts.failed_tests);
        add(&mut fault.facts.rules, &more.facts.rules);
    }
    for (checked, finding) in failed {
        let cause = finding.cause.as_ref().map(|cause| format!(": {}", cause.raw())).unwrap_or_default();
        fault.evidence.push(Evidence {
            rule: format!("gate.{}", checked.gate),
            line: None,
            text: SafeText::new(format!("{}{cause}", finding.reason.code())),
            stream: None,
        });
    }
    fault.evidence.extend(finding.evidence.iter().cloned());
    fault
}

fn add(names: &mut Vec<SafeText>, more: &[SafeText]) {
    for name in more {
        if names.len() < NAMES_MAX && !names.contains(name) {
            names.push(name.clone());
        }
    }
}
