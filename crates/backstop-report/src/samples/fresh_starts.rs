//! One of each warning before a fresh start of a plan.

use super::{Sample, Texts};
use crate::{FreshStart, fresh_start};
use backstop_core::{Reason, SafeText};

pub(crate) fn fresh_starts(t: &Texts) -> Vec<Sample> {
    let command = SafeText::new(t.command.raw().replace("--resume", "--fresh"));
    let forced = FreshStart {
        command: command.clone(),
        plan: t.plan.clone(),
        folder: ".backstop/runs/feature-plan".into(),
        first_phase: "0".into(),
        because: Some((Reason::StateInvalid, t.problem.clone())),
        commits: 4,
        resume: t.command.clone(),
    };
    let asked = FreshStart { because: None, commits: 0, ..forced.clone() };
    let sample = |name, given: &FreshStart, cause: SafeText| Sample {
        name,
        notice: fresh_start(given),
        cause,
        operation: command.clone(),
        key: vec![],
    };
    vec![
        sample("fresh_start", &forced, t.problem.clone()),
        sample("fresh_start_asked", &asked, SafeText::default()),
    ]
}
